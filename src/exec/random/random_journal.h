/* SPDX-License-Identifier: MIT
 * Taking draws back: what the calling thread draws from generators between a journal's begin and its end, eagerly or by
 * launches, can be drawn again afterwards, as if nothing had been drawn. If another thread drew from a generator in
 * between, or it was seeded, its numbers stay drawn, so that no number is used twice.
 *
 * Threads: a journal is its thread's. While no thread has one, drawing costs one look at a counter.
 */
#ifndef RONDO_EXEC_RANDOM_RANDOM_JOURNAL_H
#define RONDO_EXEC_RANDOM_RANDOM_JOURNAL_H

#include <stdatomic.h>

#include <rondo/random.h>

#include "base/array.h"

/* What was drawn of a generator, from one offset to another. */
typedef struct rondo_random_drawn {
  rondo_generator *generator; /* a reference */
  uint64_t first, next;
  bool is_shared; /* another thread drew in between */
} rondo_random_drawn;

typedef struct rondo_random_journal {
  struct rondo_random_journal *outer; /* of the thread */
  rondo_allocator allocator;
  bool is_open;
  RONDO_ARRAY(rondo_random_drawn) drawn;
} rondo_random_journal;

void rondo_random_journal_begin(rondo_random_journal *journal, const rondo_allocator *allocator);
/* The innermost one of its thread. One that is not open is left alone. */
void rondo_random_journal_end(rondo_random_journal *journal, bool takes_back);

extern atomic_uint rondo_random_journals; /* open ones, of all threads */

static inline bool rondo_random_is_noted(void) {
  return __builtin_expect(atomic_load_explicit(&rondo_random_journals, memory_order_relaxed) != 0, 0);
}

/* The thread took `increment` from the offset on; or gave that back, if it was the last. */
void rondo_random_note(rondo_generator *generator, uint64_t offset, uint64_t increment);
void rondo_random_note_untaken(const rondo_generator *generator, uint64_t offset, uint64_t increment);

#endif
