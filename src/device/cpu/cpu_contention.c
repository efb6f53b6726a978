/* SPDX-License-Identifier: MIT
 * Contention. The header describes its effects.
 *
 * A run is counted on the processor where its thread last saw it. A worker is bound to its processor. If a run arrives
 * there while another processor has no run, the thread that notices this moves the worker to the other processor: a
 * thread that runs nodes, or one that goes to sleep and leaves its processor.
 */
#include <assert.h>

#include "device/cpu/cpu.h"

#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_pool.h"

static bool fill_all(const cpu_pool *pool, const _Atomic uint32_t *number) {
  const uint32_t count = atomic_load_explicit(number, memory_order_relaxed);
  return count > 1 && count >= pool->processor_count;
}

bool cpu_contention_exists(const cpu_pool *pool) { return fill_all(pool, &pool->long_runs); }

bool cpu_contention_is_near(const cpu_pool *pool) {
  const uint32_t count = atomic_load(&pool->long_runs);
  return count > 0 && count + 1 >= pool->processor_count;
}

bool cpu_contention_is_full(const cpu_pool *pool) { return fill_all(pool, &pool->occupied); }

bool cpu_contention_is_uneven(const cpu_pool *pool) {
  return cpu_contention_exists(pool) && !cpu_contention_is_full(pool);
}

uint64_t cpu_contention_count(const cpu_pool *pool) {
  return atomic_load_explicit(&pool->contentions, memory_order_relaxed);
}

bool cpu_contention_has_run_at(const cpu_pool *pool, uint32_t index) {
  return atomic_load_explicit(&pool->occupants[index], memory_order_relaxed) != 0;
}

bool cpu_contention_has_run_beside(const cpu_pool *pool, const cpu_participant *worker) {
  const uint32_t own = atomic_load_explicit(&worker->runs_long, memory_order_relaxed);
  return atomic_load_explicit(&pool->occupants[worker->processor_index], memory_order_relaxed) > own;
}

/* A processor that the process could not use when the device was opened counts as the first. */
static uint32_t index_of(const cpu_pool *pool, int processor) {
  for (uint32_t i = 0; i < pool->processor_count; i++)
    if (pool->processors[i] == processor) return i;
  return 0;
}

static void occupy(cpu_pool *pool, uint32_t index) {
  if (atomic_fetch_add_explicit(&pool->occupants[index], 1, memory_order_relaxed) == 0)
    atomic_fetch_add_explicit(&pool->occupied, 1, memory_order_relaxed);
}

static void vacate(cpu_pool *pool, uint32_t index) {
  assert(index < pool->processor_count);
  const uint32_t before = atomic_fetch_sub_explicit(&pool->occupants[index], 1, memory_order_relaxed);
  assert(before > 0);
  if (before == 1) atomic_fetch_sub_explicit(&pool->occupied, 1, memory_order_relaxed);
}

void cpu_contention_enter(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  atomic_fetch_add_explicit(&pool->long_runs, 1, memory_order_relaxed);
  if (cpu_contention_exists(pool)) atomic_fetch_add_explicit(&pool->contentions, 1, memory_order_relaxed);
  self->run_processor = rondo_processor_now();
  self->run_index = index_of(pool, self->run_processor);
  atomic_store_explicit(&self->runs_long, true, memory_order_relaxed);
  occupy(pool, self->run_index);
}

void cpu_contention_follow(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  cpu_pool_spread(pool);
  const int processor = rondo_processor_now();
  if (__builtin_expect(processor == self->run_processor, 1)) return;
  vacate(pool, self->run_index);
  self->run_processor = processor;
  self->run_index = index_of(pool, processor);
  occupy(pool, self->run_index);
}

void cpu_contention_leave(cpu_participant *self) {
  cpu_pool *pool = &self->device->pool;
  vacate(pool, self->run_index);
  atomic_store_explicit(&self->runs_long, false, memory_order_relaxed);
  atomic_fetch_sub_explicit(&pool->long_runs, 1, memory_order_relaxed);
}
