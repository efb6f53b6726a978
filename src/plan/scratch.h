/* SPDX-License-Identifier: MIT
 * Working memory that is released together. Whoever owns a scratch passes it to everything that it builds, and frees it
 * once; so the parts need no functions of their own to free them, and a failure halfway needs no care.
 *
 * Temporary arrays of a function have a scratch of their own. Threads: one at a time.
 */
#ifndef RONDO_PLAN_SCRATCH_H
#define RONDO_PLAN_SCRATCH_H

#include "base/allocation.h"

typedef struct rondo_scratch_block rondo_scratch_block;

typedef struct rondo_scratch {
  const rondo_allocator *allocator;
  rondo_scratch_block *last;
} rondo_scratch;

/* Zeroed memory for `count` things of `bytes` each. `out` is the address of a pointer of any type, which becomes NULL
 * where there are none, and on failure. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_scratch_take(rondo_scratch *scratch, size_t count, size_t bytes, void *out);

/* Releases all that was taken; the scratch can be used again. */
void rondo_scratch_free(rondo_scratch *scratch);

#endif
