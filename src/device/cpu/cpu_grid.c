/* SPDX-License-Identifier: MIT
 * Sharing the blocks of one kernel between participants. If they take longer than sharing costs, the owner of the
 * kernel opens its grid job, from which all take chunks by one counter. How long they take is known from the last run
 * of the node. If it is not, the owner runs a first piece alone and times it. Of few blocks that piece is a large part:
 * of eight, two participants would take the time of five instead of four.
 *
 * A participant that reads a job first adds itself to `users`, then checks that the job is open. The owner closes the
 * job and then waits until there are no users, before it changes the fields. Both sides are sequentially consistent.
 */
#include "device/cpu/cpu_grid.h"

#include <assert.h>

#include "base/clock.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_wait.h"

enum {
  PIECES = 256,            /* a first piece is this fraction of the grid, and chunks are twice as large */
  SHARE_FROM_NS = 1500,    /* one thread finishes shorter work sooner */
  WAKE_FROM_NS = 40 * 1000 /* for work of at least this time, a parked worker is woken */
};

/* Runs chunks until there are none. A guest (its pool; NULL for the owner) leaves them to the owner under contention.
 */
static uint64_t take_chunks(cpu_grid_job *job, rondo_cpu_function function, void *const *args, rondo_grid grid,
                            uint64_t blocks, uint64_t chunk, const cpu_pool *guest) {
  uint64_t mine = 0, first;
  while ((guest == NULL || !cpu_contention_is_full(guest)) &&
         (first = atomic_fetch_add_explicit(&job->next, chunk, memory_order_relaxed)) < blocks) {
    const uint64_t last = blocks - first < chunk ? blocks : first + chunk;
    function((rondo_blocks){(size_t)first, (size_t)last, grid}, args);
    mine += last - first;
  }
  return mine;
}

/* Each participant that comes wakes another one while there are blocks left. */
static void wake_another(cpu_pool *pool, cpu_grid_job *job) {
  if (!job->wakes || atomic_load_explicit(&job->next, memory_order_relaxed) >= job->blocks) return;
  if (!cpu_queue_wake_waiters(atomic_load_explicit(&job->queue, memory_order_relaxed))) cpu_pool_wake(pool);
}

bool cpu_grid_has_more(cpu_participant *owner, const cpu_queue *queue) {
  cpu_grid_job *job = &owner->job;
  if (atomic_load(&job->open) == 0) return false;
  atomic_fetch_add(&job->users, 1);
  const bool more = atomic_load(&job->open) != 0 &&
                    (queue == NULL || atomic_load_explicit(&job->queue, memory_order_relaxed) == queue) &&
                    atomic_load_explicit(&job->next, memory_order_relaxed) < job->blocks;
  atomic_fetch_sub(&job->users, 1);
  return more;
}

bool cpu_grid_join(cpu_participant *self, cpu_participant *owner, const cpu_queue *queue) {
  cpu_grid_job *job = &owner->job;
  if (atomic_load_explicit(&job->open, memory_order_relaxed) == 0) return false;
  atomic_fetch_add(&job->users, 1);
  uint64_t mine = 0;
  const bool open = atomic_load(&job->open) != 0;
  const cpu_queue *shared = atomic_load_explicit(&job->queue, memory_order_relaxed);
  if (open && (queue == NULL || shared == queue)) {
    cpu_pool_turn_to(self, shared);
    wake_another(&self->device->pool, job);
    mine = take_chunks(job, job->function, job->args, job->grid, job->blocks, job->chunk, &self->device->pool);
    if (mine > 0) atomic_fetch_add_explicit(&job->done, mine, memory_order_release);
  }
  atomic_fetch_sub(&job->users, 1);
  return mine > 0;
}

/* Notes that `some` of `count` blocks took `spent_ns`. Nearly the same is not stored again, so that others keep the
 * cache line. */
static void note_cost(uint32_t *cost_ns, uint64_t spent_ns, uint64_t some, uint64_t count) {
  if (cost_ns == NULL || some == 0) return;
  const double all = (double)spent_ns * (double)count / (double)some;
  const uint32_t cost = all < (double)UINT32_MAX ? (uint32_t)all : UINT32_MAX;
  if (cost / 4 * 3 > *cost_ns || cost < *cost_ns / 4 * 3) *cost_ns = cost;
}

/* True if others ran some blocks. */
static bool share(cpu_participant *self, cpu_queue *queue, rondo_cpu_function function, void *const *args,
                  rondo_blocks rest, uint64_t rest_ns, uint32_t *cost_ns) {
  cpu_pool *pool = &self->device->pool;
  cpu_grid_job *job = &self->job;
  const uint64_t count = rest.last - rest.first;
  job->function = function;
  job->args = args;
  job->grid = rest.grid;
  job->blocks = rest.last;
  job->chunk = count / (PIECES / 2) + 1;
  job->wakes = rest_ns >= WAKE_FROM_NS;
  atomic_store_explicit(&job->next, rest.first, memory_order_relaxed);
  atomic_store_explicit(&job->done, 0, memory_order_relaxed);
  atomic_store_explicit(&job->queue, queue, memory_order_relaxed);
  atomic_store(&job->open, 1);
  atomic_fetch_add(&pool->open_jobs, 1);
  wake_another(pool, job);
  assert(atomic_load(&job->users) == 0 || atomic_load(&job->open) == 1);
  const uint64_t begun = cost_ns == NULL ? 0 : rondo_clock_ns();
  const uint64_t mine = take_chunks(job, function, args, rest.grid, rest.last, job->chunk, NULL);
  if (cost_ns != NULL) note_cost(cost_ns, rondo_clock_ns() - begun, mine, count);
  atomic_fetch_sub(&pool->open_jobs, 1);
  atomic_store(&job->open, 0);
  cpu_backoff backoff = {0};
  while (atomic_load(&job->users) != 0 || atomic_load_explicit(&job->done, memory_order_acquire) + mine != count) {
    (void)cpu_backoff_step(&backoff, NULL);
  }
  return mine != count;
}

/* The time of the blocks, without that of the first piece. */
static uint64_t rest_of(uint64_t cost_ns, uint64_t piece, uint64_t count) {
  return (uint64_t)((double)cost_ns * (double)(count - piece) / (double)count);
}

bool cpu_grid_run(cpu_participant *self, cpu_queue *queue, rondo_cpu_function function, void *const *args,
                  rondo_blocks all, uint32_t *cost_ns) {
  const uint64_t count = all.last - all.first;
  if (count < 2) {
    function(all, args);
    return false;
  }
  const uint64_t piece = count / PIECES + 1;
  if (cost_ns != NULL && rest_of(*cost_ns, piece, count) >= SHARE_FROM_NS)
    return share(self, queue, function, args, all, *cost_ns, cost_ns);
  const uint64_t begun = rondo_clock_ns();
  function((rondo_blocks){all.first, all.first + (size_t)piece, all.grid}, args);
  const uint64_t spent = rondo_clock_ns() - begun;
  const rondo_blocks rest = {all.first + (size_t)piece, all.last, all.grid};
  const uint64_t rest_ns = (uint64_t)((double)spent * (double)(count - piece) / (double)piece);
  note_cost(cost_ns, spent, piece, count);
  if (rest_ns >= SHARE_FROM_NS) return share(self, queue, function, args, rest, rest_ns, NULL);
  function(rest, args);
  return false;
}
