/* SPDX-License-Identifier: MIT
 * A work-stealing deque: its owner pushes and pops at the bottom, any participant steals at the top. cpu.h has the type
 * and says what an entry means. Invariant: top <= bottom + 1, and no more entries than the owner's buffer holds.
 * Threads: push, pop and grow are the owner's; prepare, peek and take are for any thread.
 */
#ifndef RONDO_DEVICE_CPU_CPU_DEQUE_H
#define RONDO_DEVICE_CPU_CPU_DEQUE_H

#include "device/cpu/cpu.h"

/* Stealing: a look at the oldest entry, which somebody else may take meanwhile, and taking it. */
typedef struct cpu_steal {
  int64_t top;
  uint64_t entry;
} cpu_steal;

/* Makes a buffer for at least `capacity` entries, a power of two, unless there is one. On any thread. */
RONDO_MUST_USE rondo_status cpu_deque_prepare(cpu_device *device, cpu_deque *deque, size_t capacity);

/* The owner, whose deque is empty, takes up the largest buffer when its own has less. */
void cpu_deque_grow(cpu_deque *deque, size_t capacity);
void cpu_deque_free(cpu_device *device, cpu_deque *deque);

/* Who is to wake sleepers for the entry pushes it `loudly`: sequentially consistent with what tells of them. */
void cpu_deque_push(cpu_deque *deque, uint64_t entry, bool loudly);
uint64_t cpu_deque_pop(cpu_deque *deque);
bool cpu_deque_peek(cpu_deque *deque, cpu_steal *out);

/* Sequentially consistent, as loud pushes are. */
bool cpu_deque_is_empty(cpu_deque *deque);
/* Asserts the invariants. By the owner, or while nobody else is at the deque. */
void cpu_deque_check(const cpu_deque *deque);
bool cpu_deque_take(cpu_deque *deque, const cpu_steal *steal);

#endif
