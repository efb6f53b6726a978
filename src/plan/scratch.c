/* SPDX-License-Identifier: MIT
 * A list of blocks, linked by the headers before them. A header keeps the alignment that rondo_allocate promises.
 */
#include "plan/scratch.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

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

void rondo_scratch_free(rondo_scratch *scratch) {
  while (scratch->last != NULL) {
    rondo_scratch_block *const block = scratch->last;
    scratch->last = block->previous;
    rondo_release(scratch->allocator, block, block->bytes, 1);
  }
}
