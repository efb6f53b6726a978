/* SPDX-License-Identifier: MIT
 * The workers of a CPU device, and how they find work: queues that are ready, tasks of running graphs, and blocks of
 * shared grids.
 *
 * A worker stays attached to the queue that it served last and watches it, so the next launch needs no wake. An idle
 * worker pauses, yields now and then, and parks after spin_ns. Before it parks, it detaches from its queue, counts
 * itself among the sleepers, and looks for work once more. The thread that makes work ready reads that count
 * afterwards.
 *
 * A launch wakes nobody if a worker would only take a processor from a long run, or from other ranks of the machine,
 * and the host that launched is expected to wait and to run the launch itself. The queue is still marked as ready, and
 * one worker checks it every GUARD_NS.
 */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/environment.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_grid.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_run.h"

enum { TURNS_A_YIELD = 64, WATCH_NS = 400, BRIEF_ITEM_NS = 150, MOST_RESERVE = 3, ALONE_DRAINS = 8 };
enum {
  GUARD_NS = 4 * 1000 * 1000,
  CONTENTION_NS = 3000 /* a yield takes longer only if another thread ran meanwhile */
};

static uint64_t spin_limit(const cpu_pool *pool, bool polls) {
  if (pool == NULL) return UINT64_MAX;
  if (cpu_contention_is_full(pool)) return 0;
  return pool->spin_ns + (polls ? atomic_load_explicit(&pool->polling_ns, memory_order_relaxed) : 0);
}

bool cpu_backoff_step(cpu_backoff *backoff, const cpu_pool *pool) {
  /* What is polled may wait for a thread that this one keeps from its processor. */
  const bool is_in_the_way = backoff->polls && backoff->yield_ns > CONTENTION_NS;
  if (++backoff->turns % TURNS_A_YIELD != 0 && !is_in_the_way) {
    rondo_relax();
    return false;
  }
  const uint64_t begun = rondo_clock_ns();
  rondo_yield();
  const uint64_t now = rondo_clock_ns();
  backoff->yield_ns = now - begun;
  if (backoff->since_ns == 0) backoff->since_ns = now;
  return now - backoff->since_ns >= spin_limit(pool, backoff->polls);
}

void cpu_pool_note_host(cpu_pool *pool) {
  const int processor = rondo_processor_now();
  if (atomic_load_explicit(&pool->host_processor, memory_order_relaxed) != processor)
    atomic_store_explicit(&pool->host_processor, processor, memory_order_relaxed);
}

/* Binds a worker to its processor. If the system refuses, the worker runs anywhere, only slower. */
static void bind_worker(cpu_pool *pool, cpu_participant *worker) {
  const int processor = pool->processors[worker->processor_index];
  atomic_store_explicit(&worker->processor, processor, memory_order_relaxed);
  (void)rondo_thread_bind(pool->threads[worker->index], processor);
}

static void exchange_processors(cpu_pool *pool, cpu_participant *worker) {
  const uint32_t index = worker->processor_index;
  worker->processor_index = pool->spare;
  pool->spare = index;
  bind_worker(pool, worker);
}

/* Whether a long run of another thread is on the worker's processor, and none on the spare one. For the mover. */
static bool is_beside_run(const cpu_pool *pool, const cpu_participant *worker) {
  return cpu_contention_has_run_beside(pool, worker) && !cpu_contention_has_run_at(pool, pool->spare);
}

/* Exchanges the processors of workers for the spare one: of each worker, or only of those with another's run on their
 * processor. Does nothing while another thread moves workers. */
static void move_to_spare(cpu_pool *pool, cpu_participant *workers, uint32_t count, bool if_runs) {
  if (atomic_exchange_explicit(&pool->moving, true, memory_order_acquire)) return;
  for (uint32_t i = 0; i < count; i++)
    if (!if_runs || is_beside_run(pool, &workers[i])) exchange_processors(pool, &workers[i]);
  atomic_store_explicit(&pool->moving, false, memory_order_release);
}

void cpu_pool_spread(cpu_pool *pool) {
  if (pool->bound && cpu_contention_is_uneven(pool)) move_to_spare(pool, pool->participants, pool->worker_count, true);
}

/* A worker that sleeps on the caller's processor could not run there when it is woken, and could not move itself. */
static void clear_processor(cpu_pool *pool) {
  const int processor = rondo_processor_now();
  for (uint32_t i = 0; i < pool->worker_count; i++) {
    cpu_participant *worker = &pool->participants[i];
    if (atomic_load_explicit(&worker->processor, memory_order_relaxed) != processor) continue;
    if (!pthread_equal(pool->threads[i].handle, pthread_self())) move_to_spare(pool, worker, 1, false);
    return;
  }
}

void cpu_pool_wake(cpu_pool *pool) {
  if (!rondo_sleepers_exist(&pool->sleepers)) return;
  if (pool->bound) clear_processor(pool);
  atomic_fetch_add_explicit(&pool->wakes, 1, memory_order_relaxed);
  rondo_sleepers_wake(&pool->sleepers, 1);
}

cpu_participant *cpu_pool_join(cpu_pool *pool) {
  uint32_t taken = atomic_load_explicit(&pool->hosts, memory_order_relaxed), left;
  while ((left = ~taken & ((1u << CPU_HOSTS) - 1)) != 0) {
    const uint32_t bit = left & (~left + 1);
    if (atomic_compare_exchange_weak_explicit(&pool->hosts, &taken, taken | bit, memory_order_acquire,
                                              memory_order_relaxed))
      return &pool->participants[pool->worker_count + (uint32_t)__builtin_ctz(bit)];
  }
  return NULL;
}

void cpu_pool_leave(cpu_pool *pool, cpu_participant *participant) {
  if (participant == NULL) return;
  assert(participant->index >= pool->worker_count && participant->index < pool->participant_count);
  const uint32_t bit = 1u << (participant->index - pool->worker_count);
  assert((atomic_load(&pool->hosts) & bit) != 0);
  atomic_fetch_and_explicit(&pool->hosts, ~bit, memory_order_release);
}

/* The next participant after `index` that may share work: workers first, then the hosts that are participants now. */
static uint32_t next_participant(const cpu_pool *pool, uint32_t hosts, uint32_t index) {
  if (++index < pool->worker_count) return index;
  const uint32_t host = index - pool->worker_count;
  const uint32_t left = host < CPU_HOSTS ? hosts >> host : 0;
  return left == 0 ? 0 : index + (uint32_t)__builtin_ctz(left);
}

bool cpu_pool_help_grid(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue) {
  if (atomic_load_explicit(&pool->open_jobs, memory_order_relaxed) == 0) return false;
  const uint32_t hosts = atomic_load_explicit(&pool->hosts, memory_order_relaxed);
  uint32_t other = self->index;
  while ((other = next_participant(pool, hosts, other)) != self->index) {
    if (cpu_grid_join(self, &pool->participants[other], queue)) return true;
  }
  return false;
}

/* Finds an entry of a run of `queue`, or of any run if it is NULL. */
static bool find_entry(rondo_steal_deque *deque, const cpu_queue *queue, rondo_steal *out) {
  return rondo_deque_peek(deque, out) && (queue == NULL || rondo_task_entry_tag(out->entry) == queue->slot);
}

static bool help_run(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue) {
  if (atomic_load_explicit(&pool->active_runs, memory_order_relaxed) == 0) return false;
  if (queue != NULL && !atomic_load_explicit(&queue->runs, memory_order_relaxed)) return false;
  const uint32_t hosts = atomic_load_explicit(&pool->hosts, memory_order_relaxed);
  uint32_t victim = self->index;
  while ((victim = next_participant(pool, hosts, victim)) != self->index) {
    rondo_steal steal;
    rondo_steal_deque *deque = &pool->participants[victim].tasks.deque;
    if (!find_entry(deque, queue, &steal) || !rondo_deque_take(deque, &steal)) continue;
    cpu_run_entry(pool, self, steal.entry);
    return true;
  }
  return false;
}

/* A run is completed without helpers too. */
bool cpu_pool_help(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue) {
  if (cpu_contention_is_full(pool)) return false;
  return cpu_pool_help_grid(pool, self, queue) || help_run(pool, self, queue);
}

bool cpu_pool_has_shared(cpu_pool *pool, const cpu_participant *self, const cpu_queue *queue) {
  if (cpu_contention_is_full(pool)) return false;
  const uint32_t hosts = atomic_load(&pool->hosts);
  uint32_t other = self->index;
  while ((other = next_participant(pool, hosts, other)) != self->index) {
    rondo_steal steal;
    cpu_participant *owner = &pool->participants[other];
    if (cpu_grid_has_more(owner, queue) || find_entry(&owner->tasks.deque, queue, &steal)) return true;
  }
  return false;
}

/* Semaphores that are polled --------------------------------------------------------------------------------------- */

/* An entry is the address of a semaphore, and this bit while a thread polls it. */
static const uintptr_t POLLED_NOW = 1;
static _Thread_local const cpu_semaphore *polled_here; /* by this thread, now */

bool cpu_pool_begin_polling(cpu_pool *pool, cpu_semaphore *semaphore, uint64_t expected_ns) {
  atomic_store_explicit(&pool->polling_ns, expected_ns, memory_order_relaxed);
  for (uint32_t i = 0; i < CPU_MOST_POLLED; i++)
    if ((atomic_load(&pool->polled[i]) & ~POLLED_NOW) == (uintptr_t)semaphore) return true;
  for (uint32_t i = 0; i < CPU_MOST_POLLED; i++) {
    uintptr_t expected = 0;
    if (!atomic_compare_exchange_strong(&pool->polled[i], &expected, (uintptr_t)semaphore)) continue;
    atomic_fetch_add(&pool->polled_count, 1);
    return true;
  }
  return false;
}

void cpu_pool_end_polling(cpu_pool *pool, const cpu_semaphore *semaphore) {
  const uintptr_t entry = (uintptr_t)semaphore;
  if (polled_here == semaphore) return; /* it ends in the poll, which removes the entry */
  for (uint32_t i = 0; i < CPU_MOST_POLLED; i++) {
    uintptr_t found = atomic_load(&pool->polled[i]);
    while ((found & ~POLLED_NOW) == entry) {
      if (found == entry && atomic_compare_exchange_strong(&pool->polled[i], &found, 0)) {
        atomic_fetch_sub(&pool->polled_count, 1);
        break;
      }
      rondo_yield();
      found = atomic_load(&pool->polled[i]);
    }
  }
}

/* The semaphore may be gone after it was polled with success. */
static bool poll_entry(cpu_pool *pool, uint32_t i) {
  uintptr_t entry = atomic_load_explicit(&pool->polled[i], memory_order_relaxed);
  if (entry == 0 || (entry & POLLED_NOW) != 0) return false;
  if (!atomic_compare_exchange_strong(&pool->polled[i], &entry, entry | POLLED_NOW)) return false;
  const cpu_semaphore *semaphore = (const cpu_semaphore *)entry;
  polled_here = semaphore;
  const bool is_done = semaphore->poll(semaphore->user);
  polled_here = NULL;
  if (is_done) atomic_fetch_sub(&pool->polled_count, 1);
  atomic_store(&pool->polled[i], is_done ? 0 : entry);
  return true;
}

bool cpu_pool_is_polled_here(const cpu_pool *pool) {
  return polled_here != NULL && &polled_here->timeline.device->pool == pool;
}

bool cpu_pool_poll_each(cpu_pool *pool) {
  bool any = false;
  for (uint32_t i = 0; i < CPU_MOST_POLLED && polled_here == NULL; i++) any = poll_entry(pool, i) || any;
  return any;
}

void cpu_pool_poll_all(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue, cpu_backoff *backoff) {
  if (cpu_pool_poll_each(pool)) backoff->polls = true;
  if (!backoff->polls || atomic_load(&pool->injected) == NULL) return;
  if (self == NULL)
    cpu_pool_wake(pool);
  else if (cpu_run_injected(pool, self, queue)) /* it wakes a worker for what it leaves */
    *backoff = (cpu_backoff){0};
}

/* Takes the next ready queue after the one that was taken last. */
static cpu_queue *take_ready(cpu_device *device, cpu_participant *self) {
  cpu_pool *pool = &device->pool;
  for (uint32_t n = 0; n <= CPU_QUEUE_WORDS; n++) {
    const uint32_t start = n == 0 ? self->next_slot % 64 : 0;
    const uint32_t word = (self->next_slot / 64 + n) % CPU_QUEUE_WORDS;
    uint64_t bits = atomic_load(&pool->ready[word]) & (UINT64_MAX << start);
    while (bits != 0) {
      const uint64_t bit = bits & (~bits + 1);
      const uint64_t before = atomic_fetch_and(&pool->ready[word], ~bit);
      if (before & bit) {
        const uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bit);
        self->next_slot = (slot + 1) % CPU_MAX_QUEUES;
        return atomic_load(&device->queues[slot]);
      }
      bits &= ~bit;
    }
  }
  return NULL;
}

/* Clears the bits of the summary whose words are 0, and checks again, so that no queue is missed. */
static void tidy_summary(cpu_pool *pool) {
  uint64_t words = atomic_load(&pool->ready_summary);
  while (words != 0) {
    const uint32_t word = (uint32_t)__builtin_ctzll(words);
    const uint64_t bit = UINT64_C(1) << word;
    words &= ~bit;
    if (atomic_load(&pool->ready[word]) != 0) continue;
    atomic_fetch_and(&pool->ready_summary, ~bit);
    if (atomic_load(&pool->ready[word]) != 0) atomic_fetch_or(&pool->ready_summary, bit);
  }
}

static void detach(cpu_participant *self) {
  cpu_queue *queue = self->watched;
  if (queue == NULL) return;
  self->watched = NULL;
  atomic_store(&queue->attached, CPU_DETACHED);
  if (cpu_queue_pending(queue)) cpu_queue_schedule(queue);
  cpu_queue_release(queue);
}

void cpu_pool_turn_to(cpu_participant *self, const cpu_queue *queue) {
  if (self->watched != queue) detach(self);
}

static bool switch_queue(cpu_device *device, cpu_participant *self) {
  if (atomic_load_explicit(&device->pool.ready_summary, memory_order_relaxed) == 0) return false;
  cpu_queue *next = take_ready(device, self);
  tidy_summary(&device->pool);
  if (next == NULL) return false;
  detach(self);
  cpu_queue_retain(next);
  atomic_store(&next->attached, CPU_ATTACHED);
  self->watched = next;
  self->reserve = 0;
  self->drains = 0;
  return true;
}

/* After brief work the worker waits, so that the producer can get ahead and keeps its cache lines: the longer the
 * worker has served only this queue, the longer it waits. If it serves several queues, which often wait for each other,
 * it does not wait. */
static void set_pace(cpu_participant *self, uint64_t spent_ns) {
  const bool alone = ++self->drains >= ALONE_DRAINS;
  self->brief = spent_ns < WATCH_NS + (alone ? BRIEF_ITEM_NS * self->drained : 0);
  if (!self->brief || !alone)
    self->reserve = 0;
  else if (self->reserve < MOST_RESERVE)
    self->reserve++;
}

/* Runs the queue that the worker watches. False if there was nothing to do. */
static bool watch(cpu_device *device, cpu_participant *self) {
  cpu_queue *queue = self->watched;
  if (queue == NULL) return false;
  if (atomic_load_explicit(&queue->detach, memory_order_relaxed)) {
    detach(self);
    return false;
  }
  if (!cpu_queue_pending(queue)) return false;
  const uint64_t begun = rondo_clock_ns();
  if (!cpu_queue_drain(queue, self, CPU_BUDGET)) return false;
  set_pace(self, rondo_clock_ns() - begun);
  (void)switch_queue(device, self);
  return true;
}

/* True now and then: less often if `reserve` is high, unless something waits for the queue. */
static bool is_time_to_watch(const cpu_pool *pool, const cpu_participant *self, uint32_t turn) {
  if (turn % pool->watch_turns != 0) return false;
  if (turn % (pool->watch_turns << self->reserve) == 0) return true;
  return self->watched != NULL && atomic_load_explicit(&self->watched->timeline.waiters, memory_order_relaxed) != NULL;
}

/* Looks for one piece of work of any kind. False if there is none. Tasks that have waited come first: no host thread
 * runs them, and a queue that is never empty would keep them waiting. The watched queue is checked in some turns only:
 * each check takes its cache lines from the thread that launches, which usually waits next and then runs the work
 * itself. */
static bool work_once(cpu_device *device, cpu_participant *self, uint32_t turn) {
  cpu_pool *pool = &device->pool;
  if (atomic_load_explicit(&pool->injected, memory_order_relaxed) != NULL && cpu_run_injected(pool, self, NULL))
    return true;
  if (is_time_to_watch(pool, self, turn) && watch(device, self)) return true;
  return switch_queue(device, self) || cpu_pool_help(pool, self, NULL);
}

/* Whether a worker that wakes would take a processor from a thread that it needs. */
static bool is_contended(const cpu_pool *pool) { return atomic_load(&pool->contended) || cpu_contention_is_near(pool); }

bool cpu_pool_leaves_to_host(const cpu_pool *pool) { return is_contended(pool) && atomic_load(&pool->guarded); }

/* Sleeps until woken. If launches may be left to their hosts, one worker stays on guard: if a host does not wait, its
 * work begins at the next check of the guard. True if this worker was on guard. */
static bool sleep_till_woken(cpu_pool *pool, uint32_t epoch) {
  if (!is_contended(pool) || atomic_exchange(&pool->guarded, true)) {
    rondo_sleepers_sleep(&pool->sleepers, epoch);
    return false;
  }
  rondo_futex_wait_for(&pool->sleepers.epoch, epoch, GUARD_NS);
  atomic_store(&pool->guarded, false);
  return true;
}

/* Wakes a worker for each ready queue. Nobody was woken for queues that were left to hosts, and the first work that the
 * guard takes may keep it from the others. */
static void end_guard(cpu_pool *pool) {
  for (uint32_t word = 0; word < CPU_QUEUE_WORDS; word++)
    for (uint64_t bits = atomic_load(&pool->ready[word]); bits != 0; bits &= bits - 1) cpu_pool_wake(pool);
}

static void park(cpu_device *device, cpu_participant *self) {
  cpu_pool *pool = &device->pool;
  bool was_on_guard = false;
  detach(self);
  const uint32_t epoch = rondo_sleepers_enter(&pool->sleepers);
  tidy_summary(pool);
  const bool is_idle = atomic_load(&pool->ready_summary) == 0 && atomic_load(&pool->injected) == NULL &&
                       !cpu_pool_has_shared(pool, self, NULL);
  if (is_idle && !atomic_load(&pool->stop)) {
    atomic_fetch_add_explicit(&self->parks, 1, memory_order_relaxed);
    was_on_guard = sleep_till_woken(pool, epoch);
  }
  rondo_sleepers_leave(&pool->sleepers);
  if (was_on_guard) end_guard(pool);
}

/* If a host thread waits on this worker's processor, the two would slow each other down while another processor is idle
 * (systems do pack threads this way). So the worker moves to the spare processor. It also moves if several long runs
 * share its processor; the system moves a single one sooner itself. */
static void make_way(cpu_pool *pool, cpu_participant *self) {
  if (!pool->bound) return;
  if (atomic_load_explicit(&pool->host_processor, memory_order_relaxed) ==
      atomic_load_explicit(&self->processor, memory_order_relaxed))
    move_to_spare(pool, self, 1, false);
  else if (cpu_contention_is_uneven(pool))
    move_to_spare(pool, self, 1, true);
}

/* One turn of an idle worker. Spinning, it would keep other ranks, which it waits for, from its processor. */
static bool is_time_to_park(cpu_pool *pool, cpu_backoff *backoff) {
  const bool is_late = cpu_backoff_step(backoff, pool);
  if (!atomic_load_explicit(&pool->has_ranks, memory_order_relaxed)) return is_late;
  const bool is_contended_now = backoff->yield_ns > CONTENTION_NS;
  if (is_late || is_contended_now) atomic_store_explicit(&pool->contended, is_contended_now, memory_order_relaxed);
  return is_late || is_contended_now;
}

static void *worker_main(void *argument) {
  cpu_participant *self = argument;
  cpu_device *device = self->device;
  cpu_backoff backoff = {0};
  while (!atomic_load_explicit(&device->pool.stop, memory_order_relaxed)) {
    if (work_once(device, self, backoff.turns)) {
      backoff = (cpu_backoff){.turns = self->brief ? 1 : 0}; /* after brief work the producer can get ahead */
      self->brief = false;
    } else {
      cpu_pool_poll(&device->pool, self, NULL, &backoff);
      if (is_time_to_park(&device->pool, &backoff)) {
        park(device, self);
        backoff = (cpu_backoff){0};
      }
    }
    if (backoff.turns % TURNS_A_YIELD == 0) make_way(&device->pool, self);
  }
  detach(self);
  return NULL;
}

/* Turns of an idle worker between two checks of its queue: about WATCH_NS. The length of a pause differs tenfold
 * between processors. */
static uint32_t measure_watch_turns(void) {
  enum { PAUSES = 256 };
  const uint64_t begun = rondo_clock_ns();
  for (int i = 0; i < PAUSES; i++) rondo_relax();
  const uint64_t spent = rondo_clock_ns() - begun;
  const uint64_t turns = spent == 0 ? WATCH_NS : (uint64_t)WATCH_NS * PAUSES / spent;
  return turns < 1 ? 1 : (turns > TURNS_A_YIELD / 2 ? TURNS_A_YIELD / 2 : (uint32_t)turns);
}

static uint32_t choose_worker_count(uint32_t asked) {
  const uint32_t count = asked != 0 ? asked : (uint32_t)rondo_option_number(RONDO_OPTION_CPU_WORKERS);
  if (count != 0) return count;
  const uint32_t processors = rondo_processor_count();
  if (processors > CPU_MAX_WORKERS) return CPU_MAX_WORKERS;
  return processors > 1 ? processors - 1 : 1;
}

static rondo_status make_participants(cpu_device *device) {
  cpu_pool *pool = &device->pool;
  const rondo_allocator *allocator = &device->base.allocator;
  void *memory;
  RONDO_TRY(
      rondo_allocate_aligned(allocator, pool->participant_count, sizeof(cpu_participant), RONDO_CACHE_LINE, &memory));
  pool->participants = memory;
  for (uint32_t i = 0; i < pool->participant_count; i++) {
    pool->participants[i].device = device;
    pool->participants[i].index = i;
    pool->participants[i].tasks.list = RONDO_TASK_LIST_EMPTY;
    pool->participants[i].processor_index = (i + 1 + device->base.index) % pool->processor_count;
  }
  RONDO_TRY(rondo_allocate_items(allocator, pool->worker_count, sizeof(rondo_thread), &pool->threads));
  RONDO_TRY(rondo_allocate_items(allocator, pool->processor_count, sizeof(int), &pool->processors));
  for (uint32_t i = 0; i < pool->processor_count; i++) pool->processors[i] = rondo_processor_at(i);
  return rondo_allocate_items(allocator, pool->processor_count, sizeof *pool->occupants, &pool->occupants);
}

/* No worker is moved before all have their processors. */
static rondo_status start_workers(cpu_device *device) {
  cpu_pool *pool = &device->pool;
  rondo_status status = RONDO_OK;
  atomic_store(&pool->moving, true);
  for (uint32_t i = 0; status == RONDO_OK && i < pool->worker_count; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "rondo-%u-%u", device->base.index, i);
    status = rondo_thread_start(&pool->threads[i], name, worker_main, &pool->participants[i]);
    if (status == RONDO_OK) pool->threads_started++;
    if (status == RONDO_OK && pool->bound) bind_worker(pool, &pool->participants[i]);
  }
  atomic_store_explicit(&pool->moving, false, memory_order_release);
  return status;
}

rondo_status cpu_pool_start(cpu_device *device, uint32_t workers) {
  cpu_pool *pool = &device->pool;
  const uint32_t want = choose_worker_count(workers);
  if (want > CPU_MAX_WORKERS) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                      "device '%s': %u workers, and at most %d are possible: set fewer in rondo_device_options.workers "
                      "or RONDO_CPU_WORKERS",
                      device->base.name, want, CPU_MAX_WORKERS);
  }
  pool->spin_ns = rondo_option_number(RONDO_OPTION_CPU_SPIN_US) * 1000;
  pool->watch_turns = measure_watch_turns();
  pool->participant_count = want + CPU_HOSTS;
  pool->processor_count = rondo_processor_count();
  pool->worker_count = want;
  pool->bound = rondo_option_flag(RONDO_OPTION_CPU_BIND) && want < pool->processor_count;
  pool->spare = device->base.index % pool->processor_count;
  atomic_store(&pool->host_processor, -1);
  rondo_status status = make_participants(device);
  if (status == RONDO_OK) status = start_workers(device);
  if (status != RONDO_OK) cpu_pool_stop(device);
  return status;
}

void cpu_pool_stop(cpu_device *device) {
  cpu_pool *pool = &device->pool;
  atomic_store(&pool->stop, true);
  rondo_sleepers_wake(&pool->sleepers, UINT32_MAX);
  if (pool->threads != NULL) {
    for (uint32_t i = 0; i < pool->threads_started; i++) rondo_thread_join(pool->threads[i]);
  }
  rondo_release(&device->base.allocator, pool->threads, pool->worker_count, sizeof(rondo_thread));
  rondo_release(&device->base.allocator, pool->processors, pool->processor_count, sizeof(int));
  rondo_release(&device->base.allocator, pool->occupants, pool->processor_count, sizeof *pool->occupants);
  rondo_release(&device->base.allocator, pool->participants, pool->participant_count, sizeof(cpu_participant));
}
