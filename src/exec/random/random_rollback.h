/* SPDX-License-Identifier: MIT
 * Taking draws back. What the calling thread draws from generators between the begin and the end of a rollback, eagerly
 * or by launches, can be drawn again afterwards, as if nothing had been drawn. If another thread drew from a generator
 * in between, or it was seeded, its offset stays, so that no number is used twice.
 *
 * Threads: a rollback belongs to its thread. While no thread has one, drawing costs one load of a counter.
 */
#ifndef RONDO_EXEC_RANDOM_RANDOM_ROLLBACK_H
#define RONDO_EXEC_RANDOM_RANDOM_ROLLBACK_H

#include <stdatomic.h>

#include <rondo/random.h>

#include "base/array.h"

/* What was drawn from a generator: one range of offsets. */
typedef struct rondo_random_drawn {
  rondo_generator *generator; /* a reference */
  uint64_t first, next;
  bool is_shared; /* another thread drew in between */
} rondo_random_drawn;

typedef struct rondo_random_rollback {
  struct rondo_random_rollback *outer; /* the enclosing one of the thread */
  rondo_allocator allocator;
  bool is_open;
  RONDO_ARRAY(rondo_random_drawn) drawn;
} rondo_random_rollback;

void rondo_random_rollback_begin(rondo_random_rollback *rollback, const rondo_allocator *allocator);
/* Ends the innermost rollback of the thread. Does nothing if it is not open. */
void rondo_random_rollback_end(rondo_random_rollback *rollback, bool takes_back);

extern atomic_uint rondo_random_rollbacks; /* those that are open, of all threads */

static inline bool rondo_random_is_noted(void) {
  return __builtin_expect(atomic_load_explicit(&rondo_random_rollbacks, memory_order_relaxed) != 0, 0);
}

/* Note that the thread took `increment` numbers at the offset, or that it gave them back if they were the last. */
void rondo_random_note(rondo_generator *generator, uint64_t offset, uint64_t increment);
void rondo_random_note_untaken(const rondo_generator *generator, uint64_t offset, uint64_t increment);

#endif
