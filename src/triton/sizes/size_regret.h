/* SPDX-License-Identifier: MIT
 * How much more the requests that came cost with the recorded sizes than with the best ones.
 */
#ifndef RONDO_TRITON_SIZE_REGRET_H
#define RONDO_TRITON_SIZE_REGRET_H

#include <rondo/sizes.h>

#include "base/error.h"

/* A recorded size. */
typedef struct rondo_triton_size_time {
  size_t rows;
  double us;
} rondo_triton_size_time;

/* Sets *out to the mean cost of a request with these sizes, divided by that with at most max_sizes of the best sizes,
 * minus 1; 0 without sizes or demands. Times of other sizes are estimated from those of the recorded ones, and a row
 * costs, besides its time, what a row of the largest size costs, as in rondo_session_capture. Sorts the sizes. At most
 * RONDO_TRITON_MOST_DEMANDS of both. Pure. Errors: those of rondo_sizes_choose. */
enum { RONDO_TRITON_MOST_DEMANDS = 512 };
RONDO_MUST_USE rondo_status rondo_triton_size_regret(rondo_triton_size_time *sizes, size_t count,
                                                     const rondo_size_demand *demands, size_t demand_count,
                                                     uint32_t max_sizes, double *out);

#endif
