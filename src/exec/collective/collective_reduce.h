/* SPDX-License-Identifier: MIT
 * Combining what ranks have, element by element (rondo_combine_find in <rondo/collective_engine.h>).
 */
#ifndef RONDO_EXEC_COLLECTIVE_REDUCE_H
#define RONDO_EXEC_COLLECTIVE_REDUCE_H

#include <rondo/collective_engine.h>
#include <stdbool.h>

bool rondo_reduction_is_known(rondo_reduction reduction);

/* dst[i] = dst[i] / ranks, of a floating-point type; rounded to nearest. */
void rondo_reduce_divide(rondo_type type, void *dst, size_t count, uint32_t ranks);

#endif
