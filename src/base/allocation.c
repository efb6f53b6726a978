/* SPDX-License-Identifier: MIT
 * The only caller of the C library's malloc, and the only place where sizes of host memory are multiplied. A block is
 * released with exactly the number of bytes that it was allocated with, so allocators can rely on that.
 */
#define _GNU_SOURCE
#include "base/allocation.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define BASIC_ALIGNMENT 16

static void *allocate_from_libc(void *self, size_t bytes, size_t alignment) {
  (void)self;
  if (alignment <= _Alignof(max_align_t)) return malloc(bytes);
  void *pointer = NULL;
  return posix_memalign(&pointer, alignment, bytes) == 0 ? pointer : NULL;
}

static void release_to_libc(void *self, void *pointer, size_t bytes) {
  (void)self;
  (void)bytes;
  free(pointer);
}

rondo_allocator rondo_allocator_default(void) {
  return (rondo_allocator){.allocate = allocate_from_libc, .release = release_to_libc};
}

rondo_status rondo_allocator_resolve(const rondo_allocator *given, rondo_allocator *out) {
  *out = (rondo_allocator){0};
  if (given == NULL) {
    *out = rondo_allocator_default();
    return RONDO_OK;
  }
  if (given->allocate == NULL || given->release == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "the allocator has no %s function: give both, or NULL for the C library's",
                      given->allocate == NULL ? "allocate" : "release");
  *out = *given;
  return RONDO_OK;
}

/* Not zeroed; NULL for no bytes. */
static rondo_status allocate(const rondo_allocator *allocator, size_t count, size_t bytes, size_t alignment,
                             size_t *out_total, void **out) {
  assert(alignment >= BASIC_ALIGNMENT && (alignment & (alignment - 1)) == 0);
  *out = NULL;
  *out_total = 0;
  if (!rondo_checked_multiply(count, bytes, out_total))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                      "%zu items of %zu bytes are more than the address space holds: ask for fewer", count, bytes);
  if (*out_total == 0) return RONDO_OK;
  *out = allocator->allocate(allocator->self, *out_total, alignment);
  if (*out != NULL) return RONDO_OK;
  char size[RONDO_SIZE_TEXT];
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                    "the allocator has no %zu bytes (%s) of host memory aligned to %zu: free some, or raise the "
                    "limit of the process",
                    *out_total, rondo_size_text(size, *out_total), alignment);
}

rondo_status rondo_allocate_untouched(const rondo_allocator *allocator, size_t bytes, size_t alignment, void **out) {
  size_t total;
  return allocate(allocator, 1, bytes, alignment, &total, out);
}

rondo_status rondo_allocate_aligned(const rondo_allocator *allocator, size_t count, size_t bytes, size_t alignment,
                                    void **out) {
  size_t total;
  RONDO_TRY(allocate(allocator, count, bytes, alignment, &total, out));
  if (total > 0) memset(*out, 0, total);
  return RONDO_OK;
}

rondo_status rondo_reallocate(const rondo_allocator *allocator, void *old, size_t old_count, size_t count, size_t bytes,
                              void **out) {
  const size_t kept = old == NULL ? 0 : old_count * bytes;
  size_t total;
  assert(count >= old_count);
  RONDO_TRY(allocate(allocator, count, bytes, BASIC_ALIGNMENT, &total, out));
  if (kept > 0) memcpy(*out, old, kept);
  if (total > kept) memset((char *)*out + kept, 0, total - kept);
  rondo_release(allocator, old, old_count, bytes);
  return RONDO_OK;
}

rondo_status rondo_allocate_copy(const rondo_allocator *allocator, const void *from, size_t count, size_t bytes,
                                 void *out) {
  void *copy;
  size_t total;
  const rondo_status status = allocate(allocator, count, bytes, BASIC_ALIGNMENT, &total, &copy);
  if (status == RONDO_OK && total > 0) memcpy(copy, from, total);
  memcpy(out, &copy, sizeof copy);
  return status;
}

rondo_status rondo_allocate(const rondo_allocator *allocator, size_t count, size_t bytes, void **out) {
  return rondo_allocate_aligned(allocator, count, bytes, BASIC_ALIGNMENT, out);
}

rondo_status rondo_allocate_items(const rondo_allocator *allocator, size_t count, size_t bytes, void *out) {
  void *memory;
  const rondo_status status = rondo_allocate(allocator, count, bytes, &memory);
  memcpy(out, &memory, sizeof memory);
  return status;
}

void rondo_release(const rondo_allocator *allocator, void *pointer, size_t count, size_t bytes) {
  if (pointer != NULL) allocator->release(allocator->self, pointer, count * bytes);
}

rondo_status rondo_allocate_text(const rondo_allocator *allocator, const char *text, char **out) {
  *out = NULL;
  const char *source = text == NULL ? "" : text;
  void *copy;
  RONDO_TRY(rondo_allocate_copy(allocator, source, strlen(source) + 1, 1, &copy));
  *out = copy;
  return RONDO_OK;
}

void rondo_release_text(const rondo_allocator *allocator, char *text) {
  if (text != NULL) rondo_release(allocator, text, strlen(text) + 1, 1);
}

/* Scratch ---------------------------------------------------------------------------------------------------------- */

/* A header before each block keeps the alignment that rondo_allocate promises. */
struct rondo_scratch_block {
  rondo_scratch_block *previous;
  size_t bytes; /* with this header */
};

_Static_assert(sizeof(rondo_scratch_block) % 16 == 0, "what follows a header is aligned to 16 bytes");

rondo_status rondo_scratch_take(rondo_scratch *scratch, size_t count, size_t bytes, void *out) {
  void *memory = NULL;
  size_t total = 0;
  assert(scratch->allocator != NULL && bytes > 0);
  memset(out, 0, sizeof memory);
  if (count == 0) return RONDO_OK;
  if (!rondo_checked_multiply(count, bytes, &total) || !rondo_checked_add(total, sizeof(rondo_scratch_block), &total)) {
    total = SIZE_MAX; /* more than any allocator has: it says so */
  }
  RONDO_TRY(rondo_allocate(scratch->allocator, total, 1, &memory));
  rondo_scratch_block *const block = memory;
  *block = (rondo_scratch_block){scratch->last, total};
  scratch->last = block;
  memory = block + 1;
  memcpy(out, &memory, sizeof memory);
  return RONDO_OK;
}

rondo_status rondo_scratch_text(rondo_scratch *scratch, const char *text, const char **out) {
  char *copy;
  *out = NULL;
  if (text == NULL) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, strlen(text) + 1, 1, &copy));
  memcpy(copy, text, strlen(text) + 1);
  *out = copy;
  return RONDO_OK;
}

void rondo_scratch_free(rondo_scratch *scratch) {
  while (scratch->last != NULL) {
    rondo_scratch_block *const block = scratch->last;
    scratch->last = block->previous;
    rondo_release(scratch->allocator, block, block->bytes, 1);
  }
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

bool rondo_checked_add(size_t a, size_t b, size_t *out) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

bool rondo_checked_multiply(size_t a, size_t b, size_t *out) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

bool rondo_checked_align(size_t value, size_t alignment, size_t *out) {
  assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
  size_t raised;
  if (!rondo_checked_add(value, alignment - 1, &raised)) return false;
  *out = raised & ~(alignment - 1);
  return true;
}
