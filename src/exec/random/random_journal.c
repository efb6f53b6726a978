/* SPDX-License-Identifier: MIT
 * Journals of draws: for each generator the range that the thread took, as long as it is one range.
 */
#include "exec/random/random_journal.h"

#include <assert.h>

#include "base/log.h"
#include "exec/random/random_internal.h"

atomic_uint rondo_random_journals;

static _Thread_local rondo_random_journal *innermost;

void rondo_random_journal_begin(rondo_random_journal *journal, const rondo_allocator *allocator) {
  *journal = (rondo_random_journal){.outer = innermost, .allocator = *allocator, .is_open = true};
  innermost = journal;
  atomic_fetch_add_explicit(&rondo_random_journals, 1, memory_order_relaxed);
}

static rondo_random_drawn *find(const rondo_random_journal *journal, const rondo_generator *generator) {
  for (size_t i = 0; i < journal->drawn.count; i++)
    if (journal->drawn.items[i].generator == generator) return &journal->drawn.items[i];
  return NULL;
}

/* Drawing does not fail for want of a note: the numbers then stay drawn. */
static void note(rondo_random_journal *journal, rondo_generator *generator, uint64_t offset, uint64_t increment) {
  rondo_random_drawn *drawn = find(journal, generator);
  if (drawn != NULL) {
    drawn->is_shared |= drawn->next != offset;
    drawn->next = offset + increment;
    return;
  }
  const rondo_random_drawn first = {.generator = generator, .first = offset, .next = offset + increment};
  rondo_saved_error error;
  rondo_error_save(&error);
  if (rondo_array_push(&journal->allocator, &journal->drawn, &first) == RONDO_OK) {
    rondo_generator_retain(generator);
    return;
  }
  rondo_error_restore(&error);
  rondo_log(RONDO_LOG_WARNING, "exec", "no memory to note a draw, which so is not taken back");
}

void rondo_random_note(rondo_generator *generator, uint64_t offset, uint64_t increment) {
  for (rondo_random_journal *journal = innermost; journal != NULL; journal = journal->outer)
    note(journal, generator, offset, increment);
}

void rondo_random_note_untaken(const rondo_generator *generator, uint64_t offset, uint64_t increment) {
  for (const rondo_random_journal *journal = innermost; journal != NULL; journal = journal->outer) {
    rondo_random_drawn *drawn = find(journal, generator);
    if (drawn != NULL && drawn->next == offset + increment) drawn->next = offset;
  }
}

void rondo_random_journal_end(rondo_random_journal *journal, bool takes_back) {
  if (!journal->is_open) return;
  assert(innermost == journal);
  innermost = journal->outer;
  journal->is_open = false;
  atomic_fetch_sub_explicit(&rondo_random_journals, 1, memory_order_relaxed);
  for (size_t i = 0; i < journal->drawn.count; i++) {
    const rondo_random_drawn *drawn = &journal->drawn.items[i];
    if (takes_back && !drawn->is_shared) rondo_generator_move_back(drawn->generator, drawn->next, drawn->first);
    rondo_generator_release(drawn->generator);
  }
  rondo_array_free(&journal->allocator, &journal->drawn);
}
