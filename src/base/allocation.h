/* SPDX-License-Identifier: MIT
 * Host memory through the allocator of an object. Sizes are checked for overflow here and nowhere else; a failure has
 * set the error detail (OUT_OF_MEMORY, ALLOCATION_FAILED, with the bytes). No other file calls malloc.
 */
#ifndef RONDO_BASE_ALLOCATION_H
#define RONDO_BASE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include <rondo/allocator.h>
#include <rondo/status.h>

/* The C library's. */
rondo_allocator rondo_allocator_default(void);

/* `given` when it is not NULL (both functions must be there: INVALID_ARGUMENT), else the default. */
RONDO_MUST_USE rondo_status rondo_allocator_resolve(const rondo_allocator *given, rondo_allocator *out);

/* Zeroed memory for `count` things of `bytes` each, aligned to 16. *out is NULL on failure. count * bytes = 0 gives
 * NULL and OK. */
RONDO_MUST_USE rondo_status rondo_allocate(const rondo_allocator *allocator, size_t count, size_t bytes, void **out);

/* A block of `count` things that begins with `old`, a block of no more, and is zero behind; `old`, which may be NULL,
 * is released unless this fails. */
RONDO_MUST_USE rondo_status rondo_reallocate(const rondo_allocator *allocator, void *old, size_t old_count,
                                             size_t count, size_t bytes, void **out);

/* A block that is a copy of one of as many things. */
RONDO_MUST_USE rondo_status rondo_allocate_copy(const rondo_allocator *allocator, const void *from, size_t count,
                                                size_t bytes, void **out);

/* rondo_allocate for a pointer of any type: `out` is its address, which is written as bytes, since a void ** would
 * alias it.
 */
RONDO_MUST_USE rondo_status rondo_allocate_items(const rondo_allocator *allocator, size_t count, size_t bytes,
                                                 void *out);

/* Memory with an alignment (a power of two, at least 16) that is not zeroed: what users ask for, which may be large and
 * have no pages until it is touched. */
RONDO_MUST_USE rondo_status rondo_allocate_untouched(const rondo_allocator *allocator, size_t bytes, size_t alignment,
                                                     void **out);

/* As rondo_allocate with an alignment (a power of two, at least 16). */
RONDO_MUST_USE rondo_status rondo_allocate_aligned(const rondo_allocator *allocator, size_t count, size_t bytes,
                                                   size_t alignment, void **out);

/* count and bytes as at the allocation. NULL is fine. */
void rondo_release(const rondo_allocator *allocator, void *pointer, size_t count, size_t bytes);

/* A copy of `text`; NULL becomes "". Freed by rondo_release_text, which needs its length: never shorten it in place. */
RONDO_MUST_USE rondo_status rondo_allocate_text(const rondo_allocator *allocator, const char *text, char **out);
void rondo_release_text(const rondo_allocator *allocator, char *text);

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
RONDO_MUST_USE rondo_status rondo_scratch_take(rondo_scratch *scratch, size_t count, size_t bytes, void *out);

/* Releases all that was taken; the scratch can be used again. */
void rondo_scratch_free(rondo_scratch *scratch);

/* False when the result does not fit; *out is then unchanged. */
bool rondo_checked_add(size_t a, size_t b, size_t *out);
bool rondo_checked_multiply(size_t a, size_t b, size_t *out);

/* Rounds up to a multiple of a power of two; false when that does not fit. */
bool rondo_checked_align(size_t value, size_t alignment, size_t *out);

#endif
