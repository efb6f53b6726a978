/* SPDX-License-Identifier: MIT
 * Rollbacks note, for each generator, the range that the thread took, as long as it is one range.
 */
#include "exec/random/random_rollback.h"

#include <assert.h>

#include "base/log.h"
#include "exec/random/random_internal.h"

atomic_uint rondo_random_rollbacks;

static _Thread_local rondo_random_rollback *innermost;

void rondo_random_rollback_begin(rondo_random_rollback *rollback, const rondo_allocator *allocator) {
  *rollback = (rondo_random_rollback){.outer = innermost, .allocator = *allocator, .is_open = true};
  innermost = rollback;
  atomic_fetch_add_explicit(&rondo_random_rollbacks, 1, memory_order_relaxed);
}

static rondo_random_drawn *find(const rondo_random_rollback *rollback, const rondo_generator *generator) {
  for (size_t i = 0; i < rollback->drawn.count; i++)
    if (rollback->drawn.items[i].generator == generator) return &rollback->drawn.items[i];
  return NULL;
}

/* Without memory for the note, drawing does not fail, and the numbers are not taken back. */
static void note(rondo_random_rollback *rollback, rondo_generator *generator, uint64_t offset, uint64_t increment) {
  rondo_random_drawn *drawn = find(rollback, generator);
  if (drawn != NULL) {
    drawn->is_shared |= drawn->next != offset;
    drawn->next = offset + increment;
    return;
  }
  const rondo_random_drawn first = {.generator = generator, .first = offset, .next = offset + increment};
  rondo_saved_error error;
  rondo_error_save(&error);
  if (rondo_array_push(&rollback->allocator, &rollback->drawn, &first) == RONDO_OK) {
    rondo_generator_retain(generator);
    return;
  }
  rondo_error_restore(&error);
  rondo_log(RONDO_LOG_WARNING, "exec", "no memory to note a draw of random numbers: it will not be taken back");
}

void rondo_random_note(rondo_generator *generator, uint64_t offset, uint64_t increment) {
  for (rondo_random_rollback *rollback = innermost; rollback != NULL; rollback = rollback->outer)
    note(rollback, generator, offset, increment);
}

void rondo_random_note_untaken(const rondo_generator *generator, uint64_t offset, uint64_t increment) {
  for (const rondo_random_rollback *rollback = innermost; rollback != NULL; rollback = rollback->outer) {
    rondo_random_drawn *drawn = find(rollback, generator);
    if (drawn != NULL && drawn->next == offset + increment) drawn->next = offset;
  }
}

void rondo_random_rollback_end(rondo_random_rollback *rollback, bool takes_back) {
  if (!rollback->is_open) return;
  assert(innermost == rollback);
  innermost = rollback->outer;
  rollback->is_open = false;
  atomic_fetch_sub_explicit(&rondo_random_rollbacks, 1, memory_order_relaxed);
  for (size_t i = 0; i < rollback->drawn.count; i++) {
    const rondo_random_drawn *drawn = &rollback->drawn.items[i];
    if (takes_back && !drawn->is_shared) rondo_generator_move_back(drawn->generator, drawn->next, drawn->first);
    rondo_generator_release(drawn->generator);
  }
  rondo_array_free(&rollback->allocator, &rollback->drawn);
}
