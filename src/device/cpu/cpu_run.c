/* SPDX-License-Identifier: MIT
 * Running an executable: in a plain loop, or by work stealing (base/tasks/task_graph.h). README.md describes both, and
 * cpu_choice.c chooses.
 *
 * To run by stealing, the starter, which owns the queue, runs the sources. The participant that counts down the last
 * predecessor of a task continues with this task. It puts other tasks that become ready where others can take them. The
 * starter helps until the last sink is done. An executable that waits for events is different, because its starter must
 * not hold a worker: the queue is set aside, and the participant that finishes the last sink finishes the queue's item.
 * Then `sinks_left` counts one more, for the starter. Participants that are busy poll between their tasks. A chain is
 * run like this only from the first wait that is not over on. Nothing of an executable is read after its last sink.
 *
 * Under contention (cpu_contention.c) times mean nothing, and a stealing run would wait for processors that others use.
 * So a long run goes node by node. A run that is brief even then is known to be brief.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/trace.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_grid.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_run.h"
#include "device/cpu/cpu_timeline.h"
#include "device/cpu/cpu_wait.h"

enum { LONG_RUN_NS = 20 * 1000 /* shorter runs are not counted */, MOST_PREFETCHED = 4, MOST_DONE = 8 };

/* Nodes ----------------------------------------------------------------------------------------------------------- */

static bool is_watched(const cpu_executable *executable) { return rondo_trace_on() || executable->times != NULL; }

static inline void run_grid(const cpu_executable *executable, cpu_participant *self, uint32_t position) {
  const cpu_node *node = &executable->nodes[position];
  self->ran_alone++;
  if (node->blocks.last < 2 || cpu_contention_is_full(&executable->device->pool))
    node->function(node->blocks, node->args);
  else if (cpu_grid_run(self, executable->queue, node->function, node->args, node->blocks,
                        &executable->grid_costs[position]))
    self->ran_alone--;
}

/* Runs nodes with traces and times. Shares grids with others unless `self` is NULL, as in the plain loop. */
static void run_watched(const cpu_executable *executable, cpu_participant *self, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    const cpu_node *node = &executable->nodes[i];
    rondo_trace_here(RONDO_TRACE_BEGIN, "node", executable->names[i]);
    const uint64_t begun = executable->times == NULL ? 0 : rondo_clock_ns();
    if (self != NULL)
      run_grid(executable, self, i);
    else
      node->function(node->blocks, node->args);
    if (executable->times != NULL) executable->times[i] = rondo_clock_ns() - begun;
    rondo_trace_here(RONDO_TRACE_END, "node", executable->names[i]);
  }
}

/* Aligned and not inlined. If the loop crosses two cache lines, it takes a quarter longer for nodes that do nothing.
 * Without the alignment, that would depend on the other code of the library. */
__attribute__((aligned(RONDO_CACHE_LINE), noinline)) static void run_loop(const cpu_executable *executable) {
  if (__builtin_expect(is_watched(executable), 0)) {
    run_watched(executable, NULL, 0, (uint32_t)executable->node_count);
    return;
  }
  const cpu_node *nodes = executable->nodes;
  for (size_t i = 0, count = executable->node_count; i < count; i++) nodes[i].function(nodes[i].blocks, nodes[i].args);
}

static inline void run_nodes(const cpu_executable *executable, cpu_participant *self, uint32_t first, uint32_t count) {
  if (__builtin_expect(is_watched(executable), 0)) {
    run_watched(executable, self, first, count);
    return;
  }
  for (uint32_t end = first + count; first < end; first++) run_grid(executable, self, first);
}

void cpu_run_record(rondo_blocks blocks, void *const *args) {
  cpu_timeline *timeline = args[0];
  const cpu_executable *executable = args[1];
  (void)blocks;
  if (timeline->stamped) atomic_store_explicit(&timeline->stamp_ns, rondo_clock_ns(), memory_order_relaxed);
  cpu_timeline_advance(timeline, executable->runs_begun);
}

/* Stealing -------------------------------------------------------------------------------------------------------- */

static cpu_pool *pool_of(const cpu_executable *executable) { return &executable->device->pool; }

/* Lets thieves in. Here and below, a value that is already there is not stored again: thieves keep the cache lines that
 * they have read in the run before. */
static void enter_run(cpu_executable *executable) {
  cpu_pool *pool = pool_of(executable);
  cpu_queue *queue = executable->queue;
  if (atomic_load_explicit(&pool->runs[queue->slot], memory_order_relaxed) != executable)
    atomic_store_explicit(&pool->runs[queue->slot], executable, memory_order_release);
  atomic_store_explicit(&queue->runs, true, memory_order_relaxed);
  atomic_fetch_add(&pool->active_runs, 1);
}

/* The run does not read them any more. Only runs, which are one at a time, give bindings back, and a launch only takes
 * all: an empty list stays empty. */
static void give_bindings_back(cpu_executable *executable) {
  cpu_bindings *bindings = executable->bindings;
  if (bindings == NULL) return;
  executable->bindings = NULL;
  bindings->next = atomic_load_explicit(&executable->spent_bindings, memory_order_relaxed);
  if (bindings->next == NULL) {
    atomic_store_explicit(&executable->spent_bindings, bindings, memory_order_release);
    return;
  }
  while (!atomic_compare_exchange_weak(&executable->spent_bindings, &bindings->next, bindings)) {
  }
}

/* Ends a run that no thief takes part in any more. */
static void leave_run(cpu_executable *executable) {
  cpu_pool *pool = pool_of(executable);
  atomic_store_explicit(&executable->queue->runs, false, memory_order_relaxed);
  assert(atomic_load(&pool->active_runs) > 0);
  atomic_fetch_sub(&pool->active_runs, 1);
  give_bindings_back(executable);
}

void cpu_run_wake_starters(cpu_pool *pool) {
  if (rondo_sleepers_exist(&pool->starters)) rondo_sleepers_wake(&pool->starters, UINT32_MAX);
}

/* Counts sinks that are done. */
static void finish_sinks(cpu_executable *executable, uint32_t done) {
  cpu_pool *pool = pool_of(executable);
  const bool suspends = executable->wait_count > 0;
  const uint32_t before = atomic_fetch_sub(&executable->sinks_left, done);
  assert(done > 0 && before >= done);
  if (before != done) return;
  if (!suspends) {
    cpu_run_wake_starters(pool);
    return;
  }
  cpu_queue *queue = executable->queue;
  leave_run(executable);
  cpu_queue_finish_graph(queue);
}

/* Others, who may all sleep, can take so many more entries. Wakes first those who wait for this queue, then workers. */
static void offer(const cpu_executable *executable, uint32_t entries) {
  if (!executable->wakes) return;
  for (; entries > 0; entries--)
    if (!cpu_queue_wake_waiters(executable->queue)) cpu_pool_wake(pool_of(executable));
}

/* Offers an entry that is ready in addition to the one that the participant continues with. */
static void give(const cpu_executable *executable, cpu_participant *self, uint64_t entry) {
  if (executable->is_short)
    rondo_task_keep(&self->tasks, &executable->graph, entry);
  else if (rondo_task_put(&self->tasks, &executable->graph, entry))
    offer(executable, 1);
}

static uint64_t make_entry(const cpu_executable *executable, uint32_t first, uint32_t count) {
  return rondo_task_entry(executable->queue->slot, first, count);
}

static uint32_t successor_count(const rondo_task *task) { return task->successors_end - task->successors_first; }

/* A task with several successors is done. Returns an entry of ready tasks to continue with: the first of its
 * successors, because they are in the order in which they should run; `next` if none is ready. */
static uint64_t finish_task(const cpu_executable *executable, cpu_participant *self, const rondo_task *task,
                            uint64_t next) {
  const uint32_t end = task->successors_end;
  uint32_t at = task->successors_first, ready_end = 0, ready;
  uint64_t first = RONDO_DEQUE_EMPTY;
  while ((ready = rondo_task_next_ready(&executable->graph, &at, end, &ready_end)) > 0) {
    const uint64_t entry = make_entry(executable, ready_end - ready, ready);
    const uint64_t later = first == RONDO_DEQUE_EMPTY ? next : entry;
    if (later != RONDO_DEQUE_EMPTY) give(executable, self, later);
    if (first == RONDO_DEQUE_EMPTY) first = entry;
  }
  return first != RONDO_DEQUE_EMPTY ? first : next;
}

/* The same for `done` tasks whose only successor is at `at` in the successors. */
static uint64_t finish_alike(const cpu_executable *executable, cpu_participant *self, uint32_t at, uint32_t done,
                             uint64_t next) {
  if (!rondo_task_count_down(&executable->graph.tasks[executable->graph.successors[at]], done)) return next;
  if (next != RONDO_DEQUE_EMPTY) give(executable, self, next);
  return make_entry(executable, at, 1);
}

/* Prefetches the counters of the successors, which another processor may have changed last. They arrive while the task
 * runs. */
static void prefetch_successors(const rondo_task_graph *graph, const rondo_task *task) {
  uint32_t end = task->successors_end;
  if (end - task->successors_first > MOST_PREFETCHED) end = task->successors_first + MOST_PREFETCHED;
  for (uint32_t k = task->successors_first; k < end; k++) rondo_prefetch_for_write(&graph->tasks[graph->successors[k]]);
}

/* The wait of a task is over. */
static void settle_wait(const cpu_executable *executable, const rondo_task *task) {
  assert(task->mark < executable->wait_count);
  cpu_point_settle(executable->bindings->points[task->mark], executable->queue);
}

/* False if the task has to wait for an event first, and will be injected. */
static inline bool run_task(cpu_executable *executable, cpu_participant *self, uint32_t number) {
  const rondo_task *task = &executable->graph.tasks[number];
  if (task->mark == CPU_NO_WAIT) {
    prefetch_successors(&executable->graph, task);
    run_nodes(executable, self, task->first, task->count);
    return true;
  }
  cpu_point_begin(executable->bindings->points[task->mark]);
  const cpu_point point = cpu_point_now(executable->bindings->points[task->mark]);
  cpu_waiter *waiter = &executable->waiters[task->mark];
  *waiter = (cpu_waiter){.target = point.value, .executable = executable, .task = number};
  if (!cpu_point_reached(point) && !cpu_timeline_pass_or_wait(point.timeline, waiter)) return false;
  settle_wait(executable, task);
  return true;
}

/* Tasks that a participant has run but not counted down yet. */
typedef struct done_tasks {
  const rondo_task *tasks[MOST_DONE];
  uint32_t count;
  uint32_t sinks;
} done_tasks;

/* Counts them down. Tasks whose only successor is the same are counted down together. Returns an entry to continue
 * with. After this, nothing of the run may be read unless something is ready or a sink is left to count. */
static uint64_t settle_done(const cpu_executable *executable, cpu_participant *self, done_tasks *done) {
  const uint32_t *successors = executable->graph.successors, count = done->count;
  uint64_t next = RONDO_DEQUE_EMPTY;
  done->count = 0;
  for (uint32_t i = 0; i < count;) {
    const uint32_t first = i, at = done->tasks[i]->successors_first;
    if (successor_count(done->tasks[i++]) > 1) {
      next = finish_task(executable, self, done->tasks[first], next);
      continue;
    }
    while (i < count && successor_count(done->tasks[i]) == 1 &&
           successors[done->tasks[i]->successors_first] == successors[at])
      i++;
    next = finish_alike(executable, self, at, i - first, next);
  }
  return next;
}

static inline void note_done(done_tasks *done, const rondo_task *task) {
  if (successor_count(task) == 0)
    done->sinks++;
  else
    done->tasks[done->count++] = task;
}

/* Prefetches the arguments of the next task. Its node is usually in the cache. */
static inline void prefetch_kept(const cpu_executable *executable, const cpu_participant *self) {
  const rondo_task_graph *graph = &executable->graph;
  if (self->tasks.kept_count == 0) return;
  const uint64_t entry = self->tasks.kept[self->tasks.kept_count - 1];
  const rondo_task *task = &graph->tasks[graph->successors[rondo_task_entry_first(entry)]];
  /* 0 without arguments, which is allowed */
  const uintptr_t arguments = (uintptr_t)executable->nodes[task->first].args;
  __builtin_prefetch((const void *)arguments);
  __builtin_prefetch((const void *)(arguments + CPU_GRANULE));
}

/* Shares kept tasks. If others sleep who should be woken, shares all that they could run. */
static void share_kept(const cpu_executable *executable, cpu_participant *self) {
  const bool is_anyone_asleep = atomic_load_explicit(&pool_of(executable)->sleepers.count, memory_order_relaxed) != 0 ||
                                cpu_queue_has_sleepers(executable->queue);
  const bool all = executable->wakes && is_anyone_asleep;
  const uint32_t shared = rondo_task_share_kept(&self->tasks, &executable->graph, all);
  if (shared > 0) offer(executable, shared);
}

/* Runs tasks that the participant keeps, while `done` has capacity and others have something to take. There are few
 * instructions between tasks, so the processor begins a task while it finishes the one before. */
static void run_kept(const cpu_executable *executable, cpu_participant *self, done_tasks *done) {
  const rondo_task_graph *graph = &executable->graph;
  assert(done->count == 0 && executable->wait_count == 0);
  do {
    if (rondo_deque_looks_empty(&self->tasks.deque)) share_kept(executable, self);
    const rondo_task *task = &graph->tasks[rondo_task_next_kept(&self->tasks, graph)];
    if (successor_count(task) > 1) prefetch_successors(graph, task);
    prefetch_kept(executable, self);
    run_nodes(executable, self, task->first, task->count);
    note_done(done, task);
  } while (self->tasks.kept_count > 0 && done->count < MOST_DONE && !rondo_deque_looks_empty(&self->tasks.deque));
}

/* Runs one task: the first of the entry, or one that did not fit into the participant's deque. False if there is none.
 */
static bool run_one(cpu_executable *executable, cpu_participant *self, uint64_t entry, done_tasks *done) {
  uint32_t shared = 0;
  const uint32_t number = entry == RONDO_DEQUE_EMPTY
                              ? rondo_task_list_take(&self->tasks.list, &executable->graph)
                              : rondo_task_split(&self->tasks, &executable->graph, entry, &shared);
  if (number == RONDO_NO_TASK) return false;
  if (shared > 0) offer(executable, shared);
  if (run_task(executable, self, number)) note_done(done, &executable->graph.tasks[number]);
  return true;
}

static void put_back_injected(cpu_pool *pool, cpu_waiter *first) {
  cpu_waiter *expected = NULL, *last = first;
  if (atomic_compare_exchange_strong(&pool->injected, &expected, first)) return;
  while (last->next != NULL) last = last->next;
  last->next = expected;
  while (!atomic_compare_exchange_weak(&pool->injected, &last->next, first)) {
  }
}

/* Takes one injected task, of `queue` unless it is NULL. The others are left to other participants, because what
 * follows from one may take any time. */
static cpu_waiter *take_injected(cpu_pool *pool, const cpu_queue *queue) {
  cpu_waiter *const first = atomic_exchange(&pool->injected, NULL), *taken = first, *before = NULL;
  while (taken != NULL && queue != NULL && taken->executable->queue != queue) {
    before = taken;
    taken = taken->next;
  }
  cpu_waiter *const left = before == NULL && taken != NULL ? taken->next : first;
  if (before != NULL && taken != NULL) before->next = taken->next;
  if (left == NULL) return taken;
  put_back_injected(pool, left);
  cpu_pool_wake(pool);
  return taken;
}

/* A wait may end while all participants are busy. So a busy one polls between its tasks, and what follows a wait, such
 * as the next collective, comes before its other tasks. `entry` is ready, so the run is not over. */
static uint64_t go_on_after_waits(const cpu_executable *executable, cpu_participant *self, done_tasks *done,
                                  uint64_t entry) {
  cpu_pool *pool = pool_of(executable);
  if (atomic_load_explicit(&pool->polled_count, memory_order_relaxed) != 0) (void)cpu_pool_poll_each(pool);
  if (atomic_load_explicit(&pool->injected, memory_order_relaxed) == NULL) return entry;
  const cpu_waiter *waiter = take_injected(pool, executable->queue);
  if (waiter == NULL) return entry;
  assert(waiter->executable == executable); /* a queue runs one graph at a time */
  const rondo_task *task = &executable->graph.tasks[waiter->task];
  settle_wait(executable, task);
  if (successor_count(task) > 0) return finish_task(executable, self, task, entry);
  done->sinks++;
  return entry;
}

/* Runs an entry and all tasks that follow, until the participant has nothing left. Sinks are counted last, because the
 * run may be over after that. */
static void run_from(cpu_executable *executable, cpu_participant *self, uint64_t entry) {
  const bool is_short = executable->is_short, waits = executable->wait_count > 0;
  done_tasks done = {.count = 0};
  for (;;) {
    if (entry == RONDO_DEQUE_EMPTY && self->tasks.kept_count == 0) entry = rondo_deque_pop(&self->tasks.deque);
    if (waits && entry != RONDO_DEQUE_EMPTY) entry = go_on_after_waits(executable, self, &done, entry);
    if (is_short && entry != RONDO_DEQUE_EMPTY) rondo_task_keep(&self->tasks, &executable->graph, entry);
    if (self->tasks.kept_count > 0)
      run_kept(executable, self, &done);
    else if (!run_one(executable, self, entry, &done))
      break;
    entry = done.count == 0 ? RONDO_DEQUE_EMPTY : settle_done(executable, self, &done);
  }
  if (done.sinks > 0) finish_sinks(executable, done.sinks);
}

void cpu_run_entry(cpu_pool *pool, cpu_participant *self, uint64_t entry) {
  cpu_executable *executable = atomic_load_explicit(&pool->runs[rondo_task_entry_tag(entry)], memory_order_acquire);
  cpu_pool_turn_to(self, executable->queue);
  run_from(executable, self, entry);
}

bool cpu_run_injected(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue) {
  const cpu_waiter *waiter = take_injected(pool, queue);
  if (waiter == NULL) return false;
  cpu_executable *executable = waiter->executable;
  const rondo_task *task = &executable->graph.tasks[waiter->task];
  cpu_pool_turn_to(self, executable->queue);
  settle_wait(executable, task);
  if (successor_count(task) == 0) {
    finish_sinks(executable, 1);
    return true;
  }
  const uint64_t entry = finish_task(executable, self, task, RONDO_DEQUE_EMPTY);
  if (entry != RONDO_DEQUE_EMPTY) run_from(executable, self, entry);
  return true;
}

static void run_sources(cpu_executable *executable, cpu_participant *self) {
  const uint32_t end = executable->graph.sources_first + executable->graph.source_count;
  uint32_t first = executable->graph.sources_first;
  for (; end - first > RONDO_MOST_IN_ENTRY; first += RONDO_MOST_IN_ENTRY)
    give(executable, self, make_entry(executable, first, RONDO_MOST_IN_ENTRY));
  run_from(executable, self, make_entry(executable, first, end - first));
}

/* True if it was woken for work. */
static bool sleep_as_starter(const cpu_executable *executable, const cpu_participant *self) {
  cpu_pool *pool = pool_of(executable);
  const uint32_t epoch = rondo_sleepers_enter(&pool->starters);
  const uint32_t ticket = cpu_queue_begin_sleep(executable->queue);
  cpu_pool_spread(pool);
  if (atomic_load(&executable->sinks_left) != 0 && !cpu_pool_has_shared(pool, self, executable->queue))
    rondo_sleepers_sleep(&pool->starters, epoch);
  rondo_sleepers_leave(&pool->starters);
  return cpu_queue_end_sleep(executable->queue, ticket);
}

static void await_sinks(const cpu_executable *executable, cpu_participant *self) {
  cpu_pool *pool = pool_of(executable);
  cpu_backoff backoff = {0};
  while (atomic_load_explicit(&executable->sinks_left, memory_order_acquire) != 0) {
    if (cpu_pool_help(pool, self, executable->queue)) {
      backoff = (cpu_backoff){0};
      continue;
    }
    const bool tired = cpu_backoff_step(&backoff, pool);
    if (tired && self->index >= pool->worker_count) cpu_pool_note_host(pool);
    if (tired && sleep_as_starter(executable, self)) backoff = (cpu_backoff){0};
  }
}

static void run_stealing(cpu_executable *executable, cpu_participant *self) {
  const bool wakes = cpu_choice_wakes(&executable->choice);
  const bool is_short = cpu_choice_is_short(&executable->choice, executable->graph.item_count);
  if (executable->wakes != wakes) executable->wakes = wakes;
  if (executable->is_short != is_short) executable->is_short = is_short;
  atomic_store_explicit(&executable->sinks_left, executable->graph.sink_count, memory_order_relaxed);
  enter_run(executable);
  if (wakes) cpu_pool_wake(pool_of(executable));
  run_sources(executable, self);
  await_sinks(executable, self);
  leave_run(executable);
}

/* Runs the tasks of a chain, up to the first one whose wait is not over, or to the end. Returns how many. Nothing is
 * counted, because no other participant takes part yet. While semaphores are polled, busy participants poll between
 * tasks, so that is left to run_from, and so are waits whose beginning does something, which must be done once. */
static uint32_t run_chain(cpu_executable *executable, cpu_participant *self) {
  const rondo_task_graph *graph = &executable->graph;
  const _Atomic uint32_t *polled_count = &pool_of(executable)->polled_count;
  uint32_t done = 0;
  for (; done < graph->task_count && atomic_load_explicit(polled_count, memory_order_relaxed) == 0; done++) {
    const rondo_task *task = &graph->tasks[done];
    if (task->mark == CPU_NO_WAIT) {
      run_nodes(executable, self, task->first, task->count);
      continue;
    }
    const cpu_point point = executable->bindings->points[task->mark];
    if (cpu_point_has_begin(point) || !cpu_point_reached(cpu_point_now(point))) break;
    settle_wait(executable, task);
  }
  return done;
}

/* Runs an executable with event-wait nodes. True if the run is over already. */
static bool run_suspending(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  const rondo_task_graph *graph = &executable->graph;
  const uint32_t done = executable->is_chain ? run_chain(executable, self) : 0;
  if (done == graph->task_count) {
    give_bindings_back(executable);
    return true;
  }
  executable->wakes = true; /* it has no samples */
  atomic_store_explicit(&executable->sinks_left, graph->sink_count + 1, memory_order_relaxed);
  enter_run(executable);
  if (done == 0)
    run_sources(executable, self);
  else
    run_from(executable, self, make_entry(executable, graph->tasks[done - 1].successors_first, 1));
  atomic_store(&queue->owner, CPU_BLOCKED);
  if (atomic_fetch_sub(&executable->sinks_left, 1) != 1) return false;
  atomic_store(&queue->owner, CPU_OWNED);
  leave_run(executable);
  return true;
}

/* Loop or stealing ------------------------------------------------------------------------------------------------ */

/* Whether helpers came in time: they ran at least a quarter of the nodes that others can run. */
static bool came_in_time(const cpu_executable *executable, uint32_t helped) {
  const uint32_t nodes = executable->graph.item_count, participants = executable->device->pool.worker_count + 1;
  const uint32_t beside_path = nodes - executable->graph.longest_path, beside_own = nodes - nodes / participants;
  assert(helped <= nodes);
  return helped > 0 && helped >= (beside_path < beside_own ? beside_path : beside_own) / 4;
}

/* Runs by stealing. Returns whether helpers came in time. */
static bool run_with_helpers(cpu_executable *executable, cpu_participant *self) {
  const uint32_t before = self->ran_alone;
  run_stealing(executable, self);
  return came_in_time(executable, executable->graph.item_count - (self->ran_alone - before));
}

/* Runs a sample. It is dropped if contention began meanwhile. */
static void run_sample(cpu_executable *executable, cpu_participant *self, bool steals) {
  bool in_time = false;
  const uint64_t begun = rondo_clock_ns();
  if (steals)
    in_time = run_with_helpers(executable, self);
  else
    run_loop(executable);
  const uint64_t spent_ns = rondo_clock_ns() - begun;
  if (cpu_contention_count(pool_of(executable)) != executable->contentions_seen) return;
  if (steals)
    cpu_choice_note_steal(&executable->choice, spent_ns, in_time);
  else
    cpu_choice_note_loop(&executable->choice, spent_ns);
}

static void run_by_choice(cpu_executable *executable, cpu_participant *self) {
  bool steals;
  if (cpu_choice_begin(&executable->choice, &steals))
    run_sample(executable, self, steals);
  else if (steals)
    cpu_choice_note_helpers(&executable->choice, run_with_helpers(executable, self));
  else
    run_loop(executable);
}

/* An executable that always runs under contention would never get samples, and would be counted among the long runs
 * even if it is brief. So a few of its runs are timed: other runs can only increase the time. If it proves to be long,
 * its trial stays open, which costs nothing under contention, until it runs alone. */
static void probe(cpu_executable *executable) {
  const uint64_t begun = rondo_clock_ns();
  run_loop(executable);
  cpu_choice_note_probe(&executable->choice, rondo_clock_ns() - begun, LONG_RUN_NS);
}

static void run_contended(cpu_executable *executable, cpu_participant *self) {
  for (uint32_t i = 0; i < executable->node_count; i++) {
    cpu_contention_follow(self);
    run_nodes(executable, self, i, 1);
  }
}

/* Whether there is contention, or was since the last run. */
static bool has_contention(cpu_executable *executable) {
  const uint64_t before = executable->contentions_seen;
  executable->contentions_seen = cpu_contention_count(pool_of(executable));
  return executable->contentions_seen != before;
}

/* Runs an executable that is counted among the long runs. */
static void run_long(cpu_executable *executable, cpu_participant *self) {
  cpu_contention_enter(self);
  if (!has_contention(executable))
    run_by_choice(executable, self);
  else if (!executable->choice.is_closed && executable->choice.probes < CPU_MOST_PROBES)
    probe(executable);
  else
    run_contended(executable, self);
  cpu_contention_leave(self);
}

static bool is_brief(const cpu_choice *choice) { return choice->is_closed && choice->loop_ns < LONG_RUN_NS; }

bool cpu_executable_run(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, cpu_item *item) {
  if (executable->queue != queue) executable->queue = queue;
  executable->runs_begun++;
  if (executable->bindings != item->as.graph.bindings) executable->bindings = item->as.graph.bindings;
  if (executable->wait_count > 0) return run_suspending(executable, queue, self);
  if (!executable->parallel)
    run_loop(executable);
  else if (is_brief(&executable->choice))
    run_by_choice(executable, self);
  else
    run_long(executable, self);
  return true;
}
