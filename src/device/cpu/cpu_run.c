/* SPDX-License-Identifier: MIT
 * Running an executable, by one of three plans. The plain loop costs nothing a node; segments use all participants, but
 * cost counters and hand-overs; lanes (cpu_lanes.c) cost less, but cannot even out what takes longer than was thought.
 * Which is fastest is measured: the first runs try each plan a few times, the best one stays, and all are tried again
 * ever more rarely, and after changes. All compute the same bits, since a kernel must not depend on how its grid is
 * cut.
 *
 * Under contention (cpu_contention.c), or where there was some since its last run, times say nothing of the plans, and
 * a plan for the whole device would wait for processors that others have: a long run goes node by node there. But one
 * that is brief even there is brief, and on trial no more: a few runs beside others are timed for that.
 *
 * By segments: the last predecessor's participant runs the first ready successor itself and pushes the others on its
 * deque, which wakes a worker that sleeps where the run is long enough for that. The starter works along until the last
 * sink is done. An executable that waits for events inside is suspended instead (its starter must not hold a worker),
 * and whoever finishes its last sink finishes the queue's item; `sinks_left` then counts one more for the starter
 * itself. After its last sink an executable is not touched.
 */
#include "device/cpu/cpu_run.h"
#include "base/clock.h"
#include "base/trace.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_contention.h"
#include "device/cpu/cpu_deque.h"
#include "device/cpu/cpu_grid.h"
#include "device/cpu/cpu_lanes.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_semaphore.h"
#include "device/cpu/cpu_timeline.h"
#include "device/cpu/cpu_wait.h"

enum {
  TRIALS = 3,              /* runs of each plan that are timed */
  MOST_PROBES = 8,         /* runs beside others that are timed */
  TRY_AGAIN_AT_LEAST = 16, /* runs */
  TRY_AGAIN_AT_MOST = 20000,
  WAKE_GAIN_NS = 20 * 1000,
  LONG_RUN_NS = 20 * 1000 /* shorter ones are not worth counting */
};
enum { MAX_ENTRY_COUNT = (1 << (32 - CPU_SLOT_BITS)) - 1, MOST_PREFETCHED = 4 };

/* Nodes ----------------------------------------------------------------------------------------------------------- */

static bool is_watched(const cpu_executable *executable) { return rondo_trace_on() || executable->times != NULL; }

static void run_grid(const cpu_executable *executable, cpu_participant *self, const cpu_node *node) {
  if (node->blocks.last > 1 && !cpu_crowd_is_full(&executable->device->pool))
    cpu_grid_run(self, executable->queue, node->function, node->args, node->blocks);
  else
    node->function(node->blocks, node->args);
}

/* Shares grids with others, as segments do, unless `self` is NULL, as in the plain loop. */
static void run_watched(const cpu_executable *executable, cpu_participant *self, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++) {
    const cpu_node *node = &executable->nodes[i];
    rondo_trace_here(RONDO_TRACE_BEGIN, "node", executable->names[i]);
    const uint64_t begun = executable->times == NULL ? 0 : rondo_clock_ns();
    if (self != NULL) {
      run_grid(executable, self, node);
    } else {
      node->function(node->blocks, node->args);
    }
    if (executable->times != NULL) executable->times[i] = rondo_clock_ns() - begun;
    rondo_trace_here(RONDO_TRACE_END, "node", executable->names[i]);
  }
}

/* Aligned, and not a part of its callers: a loop that lies across two cache lines takes a quarter longer for nodes that
 * do nothing, and where it lies would hang on what else is in the library. */
__attribute__((aligned(RONDO_CACHE_LINE), noinline)) static void run_loop(const cpu_executable *executable) {
  if (__builtin_expect(is_watched(executable), 0)) {
    run_watched(executable, NULL, 0, (uint32_t)executable->node_count);
    return;
  }
  const cpu_node *nodes = executable->nodes;
  for (size_t i = 0, count = executable->node_count; i < count; i++) nodes[i].function(nodes[i].blocks, nodes[i].args);
}

static void run_nodes(const cpu_executable *executable, cpu_participant *self, uint32_t first, uint32_t count) {
  if (__builtin_expect(is_watched(executable), 0)) {
    run_watched(executable, self, first, count);
    return;
  }
  const cpu_node *node = &executable->nodes[first];
  for (const cpu_node *end = node + count; node < end; node++) run_grid(executable, self, node);
}

void cpu_run_segment(const cpu_executable *executable, cpu_participant *self, const cpu_segment *segment) {
  run_nodes(executable, self, segment->first, segment->count);
}

void cpu_run_record(rondo_blocks blocks, void *const *args) {
  cpu_timeline *timeline = args[0];
  const cpu_executable *executable = args[1];
  (void)blocks;
  if (timeline->stamped) atomic_store_explicit(&timeline->stamp_ns, rondo_clock_ns(), memory_order_relaxed);
  cpu_timeline_advance(timeline, executable->runs_begun);
}

/* Segments -------------------------------------------------------------------------------------------------------- */

/* What has to be given back when a run is over. */
static void end_run(cpu_executable *executable) {
  cpu_bindings *bindings = executable->bindings;
  executable->bindings = NULL;
  if (bindings == NULL) return;
  bindings->next = atomic_load_explicit(&executable->spent_bindings, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&executable->spent_bindings, &bindings->next, bindings)) {
  }
}

static void leave_run(cpu_pool *pool, cpu_executable *executable) {
  atomic_store_explicit(&executable->queue->runs, false, memory_order_relaxed);
  atomic_fetch_sub(&pool->active_runs, 1);
}

void cpu_run_wake_starters(cpu_pool *pool) {
  if (atomic_load(&pool->starter_sleepers) == 0) return;
  atomic_fetch_add(&pool->starter_epoch, 1);
  rondo_futex_wake(&pool->starter_epoch, UINT32_MAX);
}

static void sink_done(cpu_executable *executable) {
  cpu_pool *pool = &executable->device->pool;
  const bool suspends = executable->wait_count > 0;
  if (atomic_fetch_sub(&executable->sinks_left, 1) != 1) return;
  if (!suspends) {
    cpu_run_wake_starters(pool);
    return;
  }
  cpu_queue *queue = executable->queue;
  leave_run(pool, executable);
  end_run(executable);
  cpu_queue_finish_graph(queue);
}

/* Entries: successors[first .. first + count) are ready. A queue runs one graph at a time, so its slot names the run.
 */
static uint64_t make_entry(const cpu_executable *executable, uint32_t first, uint32_t count) {
  return (uint64_t)executable->queue->slot << 32 | (uint64_t)count << CPU_SLOT_BITS << 32 | first;
}
static uint32_t entry_first(uint64_t entry) { return (uint32_t)entry; }
static uint32_t entry_count(uint64_t entry) { return (uint32_t)(entry >> 32 >> CPU_SLOT_BITS); }

/* For others to take, who may all be asleep by now: first those who wait for this queue anyway, then a worker. */
static void put_up(const cpu_executable *executable, cpu_participant *self, uint64_t entry) {
  const bool wakes = executable->wakes;
  cpu_deque_push(&self->deque, entry, wakes);
  if (wakes && !cpu_queue_rouse(executable->queue)) cpu_pool_wake(&executable->device->pool);
}

void cpu_run_invite(const cpu_executable *executable, cpu_participant *self, uint32_t lane) {
  put_up(executable, self, make_entry(executable, lane, 1));
}

/* Keeps the first of an entry and puts halves of the rest up for others, the largest first, where thieves look. */
static uint32_t split_entry(const cpu_executable *executable, cpu_participant *self, uint64_t entry) {
  const uint32_t first = entry_first(entry);
  uint32_t count = entry_count(entry);
  while (count > 1) {
    const uint32_t half = count / 2;
    count -= half;
    put_up(executable, self, make_entry(executable, first + count, half));
  }
  return executable->successors[first];
}

static bool becomes_ready(cpu_segment *segment) {
  if (segment->predecessors < 2) return true;
  if (atomic_fetch_sub_explicit(&segment->pending, 1, memory_order_acq_rel) != 1) return false;
  atomic_store_explicit(&segment->pending, segment->predecessors, memory_order_relaxed); /* for the next run */
  return true;
}

/* Marks a segment done. Returns an entry of what is ready now, for the participant to go on with; the rest it puts up.
 * The run may be over as soon as the last successor is counted down, unless it became ready here: nothing of the
 * executable is read after that. */
static uint64_t finish_segment(cpu_executable *executable, cpu_participant *self, const cpu_segment *segment) {
  const uint32_t end = segment->successors_end;
  uint32_t k = segment->successors_first;
  if (k == end) {
    sink_done(executable);
    return CPU_DEQUE_EMPTY;
  }
  uint64_t next = CPU_DEQUE_EMPTY;
  uint32_t ready = 0; /* how many just before k */
  for (; k < end; k++) {
    const bool is_ready = becomes_ready(&executable->segments[executable->successors[k]]);
    if (is_ready) ready++;
    if (ready == 0 || (is_ready && k + 1 < end && ready < MAX_ENTRY_COUNT)) continue;
    if (next != CPU_DEQUE_EMPTY) put_up(executable, self, next);
    next = make_entry(executable, k + is_ready - ready, ready);
    ready = 0;
  }
  return next;
}

/* Asks for the counters of what comes next, which another processor may have counted last: they are here by the time
 * the segment has run. */
static void prefetch_successors(const cpu_executable *executable, const cpu_segment *segment) {
  uint32_t end = segment->successors_end;
  if (end - segment->successors_first > MOST_PREFETCHED) end = segment->successors_first + MOST_PREFETCHED;
  for (uint32_t k = segment->successors_first; k < end; k++)
    rondo_prefetch_for_write(&executable->segments[executable->successors[k]]);
}

/* The wait of a segment is over. */
static void settle_wait(const cpu_executable *executable, const cpu_segment *segment) {
  cpu_point_settle(executable->bindings->points[segment->wait], executable->queue);
}

/* Runs one segment; false when it has to wait for an event first, and will be injected. */
static bool step(cpu_executable *executable, cpu_participant *self, uint32_t number) {
  const cpu_segment *segment = &executable->segments[number];
  if (segment->wait == CPU_NO_WAIT) {
    prefetch_successors(executable, segment);
    cpu_run_segment(executable, self, segment);
    return true;
  }
  const cpu_point point = cpu_point_now(executable->bindings->points[segment->wait]);
  cpu_waiter *waiter = &executable->waiters[segment->wait];
  *waiter = (cpu_waiter){.target = point.value, .executable = executable, .segment = number};
  if (!cpu_point_reached(point) && !cpu_timeline_pass_or_wait(point.timeline, waiter)) return false;
  settle_wait(executable, segment);
  return true;
}

/* Works from an entry on until the participant's deque is empty. */
static void run_from(cpu_executable *executable, cpu_participant *self, uint64_t entry) {
  while (entry != CPU_DEQUE_EMPTY) {
    const uint32_t number = split_entry(executable, self, entry);
    entry = CPU_DEQUE_EMPTY;
    if (step(executable, self, number)) entry = finish_segment(executable, self, &executable->segments[number]);
    if (entry == CPU_DEQUE_EMPTY) entry = cpu_deque_pop(&self->deque);
  }
}

void cpu_run_entry(cpu_pool *pool, cpu_participant *self, uint64_t entry) {
  cpu_executable *executable = atomic_load_explicit(&pool->runs[cpu_entry_slot(entry)], memory_order_acquire);
  cpu_pool_turn_to(self, executable->queue);
  if (executable->running == CPU_PLAN_LANES) {
    cpu_lanes_join(executable, self, entry_first(entry));
    sink_done(executable);
  } else {
    run_from(executable, self, entry);
  }
}

static void put_back_injected(cpu_pool *pool, cpu_waiter *first) {
  cpu_waiter *expected = NULL, *last = first;
  if (atomic_compare_exchange_strong(&pool->injected, &expected, first)) return;
  while (last->next != NULL) last = last->next;
  last->next = expected;
  while (!atomic_compare_exchange_weak(&pool->injected, &last->next, first)) {
  }
}

/* One of them; the others are left to whoever has time, since what follows from one may take any. */
static cpu_waiter *take_injected(cpu_pool *pool) {
  cpu_waiter *waiter = atomic_exchange(&pool->injected, NULL);
  if (waiter == NULL || waiter->next == NULL) return waiter;
  put_back_injected(pool, waiter->next);
  cpu_pool_wake(pool);
  return waiter;
}

bool cpu_run_injected(cpu_pool *pool, cpu_participant *self) {
  const cpu_waiter *waiter = take_injected(pool);
  if (waiter == NULL) return false;
  cpu_pool_take_room(pool, self);
  cpu_executable *executable = waiter->executable;
  cpu_pool_turn_to(self, executable->queue);
  const cpu_segment *segment = &executable->segments[waiter->segment];
  settle_wait(executable, segment);
  uint64_t entry = finish_segment(executable, self, segment);
  if (entry == CPU_DEQUE_EMPTY) entry = cpu_deque_pop(&self->deque);
  run_from(executable, self, entry);
  return true;
}

/* Opens the run to thieves. */
static void enter_run(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  cpu_pool *pool = &executable->device->pool;
  cpu_pool_take_room(pool, self);
  atomic_store_explicit(&pool->runs[queue->slot], executable, memory_order_release);
  atomic_store_explicit(&queue->runs, true, memory_order_relaxed);
  atomic_fetch_add(&pool->active_runs, 1);
}

static void run_sources(cpu_executable *executable, cpu_participant *self) {
  const uint32_t end = executable->sources_first + executable->source_count;
  uint32_t first = executable->sources_first;
  for (; end - first > MAX_ENTRY_COUNT; first += MAX_ENTRY_COUNT)
    put_up(executable, self, make_entry(executable, first, MAX_ENTRY_COUNT));
  run_from(executable, self, make_entry(executable, first, end - first));
}

/* True when it was woken for something to do. */
static bool sleep_as_starter(const cpu_executable *executable, cpu_queue *queue, const cpu_participant *self) {
  cpu_pool *pool = &executable->device->pool;
  atomic_fetch_add(&pool->starter_sleepers, 1);
  const uint32_t epoch = atomic_load(&pool->starter_epoch);
  const uint32_t doze = cpu_queue_doze(queue);
  cpu_pool_spread(pool);
  if (atomic_load(&executable->sinks_left) != 0 && !cpu_pool_has_shared(pool, self, queue))
    rondo_futex_wait(&pool->starter_epoch, epoch);
  atomic_fetch_sub(&pool->starter_sleepers, 1);
  return cpu_queue_rise(queue, doze);
}

static void await_sinks(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  cpu_pool *pool = &executable->device->pool;
  cpu_patience patience = {0};
  while (atomic_load_explicit(&executable->sinks_left, memory_order_acquire) != 0) {
    if (cpu_pool_help(pool, self, queue)) {
      patience = (cpu_patience){0};
      continue;
    }
    const bool tired = cpu_patience_turn(&patience, pool);
    if (tired && self->index >= pool->worker_count) cpu_pool_note_host(pool);
    if (tired && sleep_as_starter(executable, queue, self)) patience = (cpu_patience){0};
  }
}

static void run_shared(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, uint32_t plan) {
  if (plan == CPU_PLAN_LANES) {
    cpu_lanes_run(executable, self);
  } else {
    atomic_store_explicit(&executable->sinks_left, executable->sink_count, memory_order_relaxed);
    run_sources(executable, self);
  }
  await_sinks(executable, queue, self);
  leave_run(&executable->device->pool, executable);
}

/* With event-wait nodes inside. True when it is over already. */
static bool run_suspending(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  enter_run(executable, queue, self);
  executable->running = CPU_PLAN_SEGMENTS;
  executable->wakes = true; /* it is not measured */
  atomic_store_explicit(&executable->sinks_left, executable->sink_count + 1, memory_order_relaxed);
  run_sources(executable, self);
  atomic_store(&queue->owner, CPU_BLOCKED);
  if (atomic_fetch_sub(&executable->sinks_left, 1) != 1) return false;
  atomic_store(&queue->owner, CPU_OWNED);
  leave_run(&executable->device->pool, executable);
  return true;
}

/* The choice ------------------------------------------------------------------------------------------------------ */

static uint32_t trial_count(const cpu_executable *executable) {
  return executable->lane_count > 0 ? CPU_PLANS * TRIALS : CPU_PLAN_LANES * TRIALS;
}

static bool is_on_trial(const cpu_executable *executable) { return executable->trial < trial_count(executable); }

/* Known to be. */
static bool is_brief(const cpu_executable *executable) {
  return !is_on_trial(executable) && executable->best_ns[CPU_PLAN_LOOP] < LONG_RUN_NS;
}

static uint32_t choose_plan(const cpu_executable *executable) {
  if (!executable->parallel) return CPU_PLAN_LOOP;
  return is_on_trial(executable) ? executable->trial / TRIALS : executable->plan;
}

/* On trial no more. A result that comes again holds for longer each time, a clear one for much longer; a new one, which
 * a busy machine may have caused, is looked at again soon. */
static void settle(cpu_executable *executable, uint32_t plan, bool clear) {
  const uint32_t longer = executable->try_again_at * (clear ? 8 : 2);
  executable->try_again_at = TRY_AGAIN_AT_LEAST;
  if (plan == executable->plan && longer > TRY_AGAIN_AT_LEAST)
    executable->try_again_at = longer < TRY_AGAIN_AT_MOST ? longer : TRY_AGAIN_AT_MOST;
  executable->plan = plan;
  executable->trial = trial_count(executable);
}

/* By what was measured. */
static void decide(cpu_executable *executable) {
  const uint64_t *best_ns = executable->best_ns;
  uint32_t plan = CPU_PLAN_SEGMENTS;
  if (executable->lane_count > 0 && best_ns[CPU_PLAN_LANES] < best_ns[plan]) plan = CPU_PLAN_LANES;
  const bool clear = best_ns[CPU_PLAN_LOOP] > 2 * best_ns[plan] || best_ns[plan] > 2 * best_ns[CPU_PLAN_LOOP];
  if (best_ns[plan] >= best_ns[CPU_PLAN_LOOP]) plan = CPU_PLAN_LOOP;
  settle(executable, plan, clear);
}

static void note_time(cpu_executable *executable, uint32_t plan, uint64_t spent_ns) {
  if (executable->trial % TRIALS == 0 || spent_ns < executable->best_ns[plan]) executable->best_ns[plan] = spent_ns;
  if (++executable->trial == trial_count(executable)) decide(executable);
}

/* While measuring all should be awake; afterwards a wake-up must cost less than it gains. */
static bool wakes_pay(const cpu_executable *executable) {
  if (is_on_trial(executable)) return true;
  return executable->best_ns[CPU_PLAN_LOOP] > executable->best_ns[executable->plan] + WAKE_GAIN_NS;
}

static void run_plan(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, uint32_t plan) {
  executable->running = plan;
  if (plan != CPU_PLAN_LOOP) {
    executable->wakes = wakes_pay(executable);
    enter_run(executable, queue, self);
    if (executable->wakes) cpu_pool_wake(&executable->device->pool);
    run_shared(executable, queue, self, plan);
  } else {
    run_loop(executable);
  }
}

/* Measuring begins anew. */
static void try_again(cpu_executable *executable) {
  executable->trial = 0;
  executable->probes = 0;
}

/* The plain loop beside others: that only adds to its time. Whatever always runs beside others would be on trial for
 * ever, and counted among the long ones however brief it is. What proves long stays on trial, which costs it nothing
 * there, for when it is alone. */
static void probe(cpu_executable *executable) {
  const uint64_t begun = rondo_clock_ns();
  executable->running = CPU_PLAN_LOOP;
  executable->probes++;
  run_loop(executable);
  const uint64_t spent_ns = rondo_clock_ns() - begun;
  if (spent_ns >= LONG_RUN_NS) return;
  executable->best_ns[CPU_PLAN_LOOP] = spent_ns;
  settle(executable, CPU_PLAN_LOOP, false);
}

static void run_in_crowd(cpu_executable *executable, cpu_participant *self) {
  executable->running = CPU_PLAN_LOOP;
  for (uint32_t i = 0; i < executable->node_count; i++) {
    cpu_crowd_follow(self);
    run_nodes(executable, self, i, 1);
  }
}

/* By the plan that is on trial. What became crowded meanwhile is tried again, later. */
static void run_trial(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  const uint32_t plan = choose_plan(executable);
  const uint64_t begun = rondo_clock_ns();
  run_plan(executable, queue, self, plan);
  if (cpu_crowd_count(&executable->device->pool) == executable->crowds_seen)
    note_time(executable, plan, rondo_clock_ns() - begun);
}

static void run_chosen(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  run_plan(executable, queue, self, choose_plan(executable));
  if (++executable->trial > executable->try_again_at) try_again(executable);
}

static void run_alone(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  if (is_on_trial(executable))
    run_trial(executable, queue, self);
  else
    run_chosen(executable, queue, self);
}

/* In this run, or since the one before: whether there was a crowd. */
static bool has_company(cpu_executable *executable) {
  const uint64_t before = executable->crowds_seen;
  executable->crowds_seen = cpu_crowd_count(&executable->device->pool);
  return executable->crowds_seen != before;
}

/* Counted among the long ones. */
static void run_long(cpu_executable *executable, cpu_queue *queue, cpu_participant *self) {
  cpu_crowd_enter(self);
  if (!has_company(executable))
    run_alone(executable, queue, self);
  else if (is_on_trial(executable) && executable->probes < MOST_PROBES)
    probe(executable);
  else
    run_in_crowd(executable, self);
  cpu_crowd_leave(self);
}

bool cpu_executable_run(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, cpu_item *item) {
  executable->queue = queue;
  executable->runs_begun++;
  executable->bindings = item->as.graph.bindings;
  if (executable->wait_count > 0) {
    if (!run_suspending(executable, queue, self)) return false;
    end_run(executable);
    return true;
  }
  if (!executable->parallel || is_brief(executable))
    run_chosen(executable, queue, self);
  else
    run_long(executable, queue, self);
  return true;
}
