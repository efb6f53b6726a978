/* SPDX-License-Identifier: MIT
 * Work-stealing deques: D. Chase and Y. Lev, Dynamic circular work-stealing deque, SPAA 2005. The memory orders are
 * those of N. M. Le, A. Pop, A. Cohen, F. Zappa Nardelli, Correct and efficient work-stealing for weak memory models,
 * PPoPP 2013, with the fences folded into sequentially consistent accesses, because ThreadSanitizer ignores fences.
 */
#include "base/tasks/steal_deque.h"

#include <assert.h>

static _Atomic uint64_t *entry_at(rondo_steal_deque *deque, int64_t index) {
  return &deque->entries[(uint64_t)index % RONDO_DEQUE_CAPACITY];
}

void rondo_deque_check(const rondo_steal_deque *deque) {
#ifdef NDEBUG
  (void)deque;
#else
  const int64_t bottom = atomic_load(&deque->bottom), top = atomic_load(&deque->top);
  assert(top >= 0 && top <= bottom + 1);
  assert(bottom - top <= RONDO_DEQUE_CAPACITY);
#endif
}

uint32_t rondo_deque_push(rondo_steal_deque *deque, const uint64_t *entries, uint32_t count) {
  const int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
  /* An old value of top is smaller, which only makes the deque look fuller. */
  const int64_t held = bottom - atomic_load_explicit(&deque->top, memory_order_acquire);
  assert(held <= RONDO_DEQUE_CAPACITY);
  if (count > RONDO_DEQUE_CAPACITY - held) count = (uint32_t)(RONDO_DEQUE_CAPACITY - held);
  if (count == 0) return 0;
  for (uint32_t i = 0; i < count; i++) {
    assert(entries[i] != RONDO_DEQUE_EMPTY);
    atomic_store_explicit(entry_at(deque, bottom + i), entries[i], memory_order_relaxed);
  }
  atomic_store(&deque->bottom, bottom + count);
  return count;
}

uint64_t rondo_deque_pop(rondo_steal_deque *deque) {
  const int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - 1;
  if (bottom < atomic_load_explicit(&deque->top, memory_order_relaxed)) return RONDO_DEQUE_EMPTY;
  atomic_store(&deque->bottom, bottom);
  int64_t top = atomic_load(&deque->top);
  uint64_t entry = RONDO_DEQUE_EMPTY;
  if (top <= bottom) {
    entry = atomic_load_explicit(entry_at(deque, bottom), memory_order_relaxed);
    assert(entry != RONDO_DEQUE_EMPTY);
    if (top < bottom) return entry;
    if (!atomic_compare_exchange_strong(&deque->top, &top, top + 1)) entry = RONDO_DEQUE_EMPTY;
  }
  atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_relaxed);
  return entry;
}

bool rondo_deque_peek(rondo_steal_deque *deque, rondo_steal *out) {
  const int64_t top = atomic_load(&deque->top);
  if (top >= atomic_load(&deque->bottom)) return false;
  *out = (rondo_steal){top, atomic_load_explicit(entry_at(deque, top), memory_order_relaxed)};
  return true;
}

bool rondo_deque_take(rondo_steal_deque *deque, const rondo_steal *steal) {
  int64_t top = steal->top;
  assert(steal->entry != RONDO_DEQUE_EMPTY);
  return atomic_compare_exchange_strong(&deque->top, &top, top + 1);
}
