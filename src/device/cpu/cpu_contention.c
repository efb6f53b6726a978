/* SPDX-License-Identifier: MIT
 * Crowds: as many long runs of executables as there are processors. What an executable does when it has the device for
 * itself says nothing then, so that each goes node by node, and shares its grids, as un-recorded work does, with whom
 * the crowd leaves a processor: runs count where they are, and two that the system has put on one leave another to
 * helpers. Where each processor has a run, nobody helps: who did would take the processor of another run, and be waited
 * for while that one has it.
 *
 * A worker is bound to its processor; where a run comes to that one while another has none, it is moved there, by
 * whoever notices: who runs nodes, or goes to sleep and leaves its processor.
 *
 * What is known is a hint, read without order: all plans of a run are right in a crowd and outside.
 */
#include "device/cpu/cpu.h"

#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_pool.h"

static bool fill_all(const cpu_pool *pool, const _Atomic uint32_t *number) {
  const uint32_t count = atomic_load_explicit(number, memory_order_relaxed);
  return count > 1 && count >= pool->processor_count;
}

bool cpu_crowd_is_there(const cpu_pool *pool) { return fill_all(pool, &pool->long_runs); }

bool cpu_crowd_wants_one(const cpu_pool *pool) {
  const uint32_t count = atomic_load(&pool->long_runs);
  return count > 0 && count + 1 >= pool->processor_count;
}

bool cpu_crowd_is_full(const cpu_pool *pool) { return fill_all(pool, &pool->occupied); }

bool cpu_crowd_is_stacked(const cpu_pool *pool) { return cpu_crowd_is_there(pool) && !cpu_crowd_is_full(pool); }

uint64_t cpu_crowd_count(const cpu_pool *pool) { return atomic_load_explicit(&pool->crowds, memory_order_relaxed); }

bool cpu_crowd_has_run_at(const cpu_pool *pool, uint32_t place) {
  return atomic_load_explicit(&pool->occupants[place], memory_order_relaxed) != 0;
}

bool cpu_crowd_has_run_beside(const cpu_pool *pool, const cpu_participant *worker) {
  const uint32_t own = atomic_load_explicit(&worker->runs_long, memory_order_relaxed);
  return atomic_load_explicit(&pool->occupants[worker->place], memory_order_relaxed) > own;
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
  if (cpu_crowd_is_there(pool)) atomic_fetch_add_explicit(&pool->crowds, 1, memory_order_relaxed);
  self->run_processor = rondo_processor_now();
  self->run_place = place_of(pool, self->run_processor);
  atomic_store_explicit(&self->runs_long, true, memory_order_relaxed);
  occupy(pool, self->run_place);
}

void cpu_crowd_follow(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  cpu_pool_spread(pool);
  const int processor = rondo_processor_now();
  if (__builtin_expect(processor == self->run_processor, 1)) return;
  vacate(pool, self->run_place);
  self->run_processor = processor;
  self->run_place = place_of(pool, processor);
  occupy(pool, self->run_place);
}

void cpu_crowd_leave(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  vacate(pool, self->run_place);
  atomic_store_explicit(&self->runs_long, false, memory_order_relaxed);
  atomic_fetch_sub_explicit(&pool->long_runs, 1, memory_order_relaxed);
}
