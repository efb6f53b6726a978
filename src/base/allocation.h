/* SPDX-License-Identifier: MIT
 * Host memory through the allocator of an object. Sizes are checked for overflow here and nowhere else; a failing
 * function sets the error detail (OUT_OF_MEMORY, ALLOCATION_FAILED, with the number of bytes). No other file calls
 * malloc.
 */
#ifndef RONDO_BASE_ALLOCATION_H
#define RONDO_BASE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include <rondo/allocator.h>
#include <rondo/status.h>

#include "base/component.h"

/* The C library's allocator. */
RONDO_PRIVATE rondo_allocator rondo_allocator_default(void);

/* Writes `given`, or the default if it is NULL. INVALID_ARGUMENT if `given` lacks one of its functions. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocator_resolve(const rondo_allocator *given, rondo_allocator *out);

/* Zeroed memory for `count` items of `bytes` each, aligned to 16. *out is NULL on failure. count * bytes = 0 gives NULL
 * and OK. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocate(const rondo_allocator *allocator, size_t count, size_t bytes,
                                                         void **out);

/* Grows a block to `count` items: copies the items of `old` and zeroes the rest. `old` may be NULL; it is released
 * unless this fails. */
RONDO_MUST_USE rondo_status rondo_reallocate(const rondo_allocator *allocator, void *old, size_t old_count,
                                             size_t count, size_t bytes, void **out);

/* A copy of a block of `count` items. `out` is as of rondo_allocate_items. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocate_copy(const rondo_allocator *allocator, const void *from,
                                                              size_t count, size_t bytes, void *out);

/* rondo_allocate for a pointer of any type: `out` is its address. It is written as bytes, because a void ** would
 * violate strict aliasing. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocate_items(const rondo_allocator *allocator, size_t count,
                                                               size_t bytes, void *out);

/* Memory that is not zeroed, with an alignment (a power of two, at least 16). For memory that users request: it may be
 * large, and has no pages until it is touched. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocate_untouched(const rondo_allocator *allocator, size_t bytes,
                                                                   size_t alignment, void **out);

/* As rondo_allocate with an alignment (a power of two, at least 16). */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocate_aligned(const rondo_allocator *allocator, size_t count,
                                                                 size_t bytes, size_t alignment, void **out);

/* `count` and `bytes` must be those of the allocation. NULL is allowed. */
RONDO_PRIVATE void rondo_release(const rondo_allocator *allocator, void *pointer, size_t count, size_t bytes);

/* A copy of `text`; NULL becomes "". Free it with rondo_release_text, which computes the size with strlen: never
 * shorten it in place. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_allocate_text(const rondo_allocator *allocator, const char *text,
                                                              char **out);
RONDO_PRIVATE void rondo_release_text(const rondo_allocator *allocator, char *text);

/* Scratch memory: blocks that are released together. The owner of a scratch passes it to everything that it builds, and
 * frees it once. So the parts need no functions to free them, and a failure halfway needs no care. One thread at a
 * time. */
typedef struct rondo_scratch_block rondo_scratch_block;

typedef struct rondo_scratch {
  const rondo_allocator *allocator;
  rondo_scratch_block *last;
} rondo_scratch;

/* Zeroed memory for `count` things of `bytes` each. `out` is the address of a pointer of any type, which becomes NULL
 * for no things, and on failure. Errors: OUT_OF_MEMORY. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_scratch_take(rondo_scratch *scratch, size_t count, size_t bytes,
                                                             void *out);

/* A copy of `text`; NULL stays NULL. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_scratch_text(rondo_scratch *scratch, const char *text,
                                                             const char **out);

/* Releases all that was taken; the scratch can be used again. */
RONDO_PRIVATE void rondo_scratch_free(rondo_scratch *scratch);

/* False when the result does not fit; *out is then unchanged. */
RONDO_PRIVATE bool rondo_checked_add(size_t a, size_t b, size_t *out);
RONDO_PRIVATE bool rondo_checked_multiply(size_t a, size_t b, size_t *out);

/* Rounds up to a multiple of a power of two; false when that does not fit. */
RONDO_PRIVATE bool rondo_checked_align(size_t value, size_t alignment, size_t *out);

#endif
