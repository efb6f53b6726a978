/* SPDX-License-Identifier: MIT
 * Crowds: every processor has a long run of an executable of its own. Whoever helped with one of them would take the
 * processor of another, and be waited for while that one has it; so nobody does, and each goes node by node. Runs count
 * where they are: two that the system has put on one processor leave another to helpers. Between the end of a run and
 * the beginning of the next on the same stream there is a little time: a crowd is over only when nothing has taken that
 * place meanwhile.
 *
 * What is known is a hint, read without order: all plans of a run are right in a crowd and outside.
 */
#include "base/clock.h"
#include "device/cpu/cpu.h"

#define LINGER_NS UINT64_C(250000)

static bool fill_all(const cpu_pool *pool, const _Atomic uint32_t *number) {
  const uint32_t count = atomic_load_explicit(number, memory_order_relaxed);
  return count > 1 && count >= pool->processor_count;
}

static bool is_full(const cpu_pool *pool) { return fill_all(pool, &pool->occupied); }

bool cpu_crowd_is_there(const cpu_pool *pool) {
  if (is_full(pool)) return true;
  const uint64_t until = atomic_load_explicit(&pool->crowded_until_ns, memory_order_relaxed);
  return until != 0 && rondo_clock_ns() < until;
}

bool cpu_crowd_is_due(const cpu_pool *pool) { return fill_all(pool, &pool->long_runs) || cpu_crowd_is_there(pool); }

bool cpu_crowd_is_stacked(const cpu_pool *pool) { return fill_all(pool, &pool->long_runs) && !is_full(pool); }

bool cpu_crowd_has_run_at(const cpu_pool *pool, uint32_t place) {
  return atomic_load_explicit(&pool->occupants[place], memory_order_relaxed) != 0;
}

/* One that the process may not have used when the device was opened counts as the first. */
static uint32_t place_of(const cpu_pool *pool, int processor) {
  for (uint32_t i = 0; i < pool->processor_count; i++)
    if (pool->processors[i] == processor) return i;
  return 0;
}

static void occupy(cpu_pool *pool, uint32_t place) {
  if (atomic_fetch_add_explicit(&pool->occupants[place], 1, memory_order_relaxed) == 0)
    atomic_fetch_add_explicit(&pool->occupied, 1, memory_order_relaxed);
}

static void vacate(cpu_pool *pool, uint32_t place) {
  if (atomic_fetch_sub_explicit(&pool->occupants[place], 1, memory_order_relaxed) == 1)
    atomic_fetch_sub_explicit(&pool->occupied, 1, memory_order_relaxed);
}

void cpu_crowd_enter(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  atomic_fetch_add_explicit(&pool->long_runs, 1, memory_order_relaxed);
  self->run_processor = rondo_processor_now();
  self->run_place = place_of(pool, self->run_processor);
  occupy(pool, self->run_place);
}

void cpu_crowd_follow(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  const int processor = rondo_processor_now();
  if (__builtin_expect(processor == self->run_processor, 1)) return;
  vacate(pool, self->run_place);
  self->run_processor = processor;
  self->run_place = place_of(pool, processor);
  occupy(pool, self->run_place);
}

void cpu_crowd_leave(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  if (is_full(pool)) atomic_store_explicit(&pool->crowded_until_ns, rondo_clock_ns() + LINGER_NS, memory_order_relaxed);
  vacate(pool, self->run_place);
  atomic_fetch_sub_explicit(&pool->long_runs, 1, memory_order_relaxed);
}
