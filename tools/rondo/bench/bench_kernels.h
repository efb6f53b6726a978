/* SPDX-License-Identifier: MIT
 * The kernels of benchmarks that compare Rondo with the bare driver. Both create them from the same options, so that
 * both run the same code. Each runs one block of one thread.
 */
#ifndef RONDO_TOOL_BENCH_KERNELS_H
#define RONDO_TOOL_BENCH_KERNELS_H

#include <rondo/kernel.h>

extern const rondo_kernel_options bench_empty;     /* () */
extern const rondo_kernel_options bench_touch;     /* (at): sets a byte */
extern const rondo_kernel_options bench_set_word;  /* (word, value) */
extern const rondo_kernel_options bench_read_word; /* (in, out) */
extern const rondo_kernel_options bench_next_word; /* (in, out): out = 3 in + 1 */

#endif
