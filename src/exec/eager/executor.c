/* SPDX-License-Identifier: MIT
 * An executor is a ready queue whose workers have streams: one for each purpose. Worker 0 is the thread that calls run.
 * Its stream for compute is the stream that was passed to run.
 *
 * A stream's position counts the nodes that a run has enqueued on it. A node's mark holds the node's stream and
 * position. A node waits for the event of a predecessor on another stream, unless its stream or the host has already
 * waited for that position. A node's event is recorded unless all its successors must be on the same stream.
 *
 * Threads: the lock guards only the claim. Only the thread that has claimed the executor uses the streams. In a run
 * each worker uses its own streams, and reads other workers' marks and positions only for nodes that are finished.
 */
#include "exec/eager/executor.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"
#include "exec/eager/ready_queue.h"

enum { CHOSEN_THREADS = 4, NAME_BYTES = 64 };
#define EXPENSIVE_US 20

/* In a run only the stream's worker accesses this. */
typedef struct executor_stream {
  rondo_stream *stream;
  rondo_event *joined; /* recorded after the last work of a run */
  bool is_used;        /* in this run */
  uint32_t position;   /* of the last node enqueued; 0: none yet */
  uint32_t done;       /* the host has waited up to this position */
  uint32_t *known;     /* for each stream, the position that this stream has waited for */
} executor_stream;

struct rondo_executor {
  rondo_allocator allocator;
  rondo_device *device;
  char name[NAME_BYTES];
  uint32_t threads, stream_count;
  bool computes;
  uint64_t expensive_ns;
  rondo_ready_queue *queue;
  executor_stream *streams; /* by worker and purpose */
  uint32_t *known;          /* stream_count of each */
  uint32_t *wanted;         /* for each worker and stream, a node to wait for, plus one; zeros between nodes */
  rondo_event *begun;       /* recorded on the caller's stream before the run */
  pthread_mutex_t lock;
  pthread_cond_t freed;
  bool is_claimed;
  _Atomic uint32_t plans;
  _Atomic uint64_t events, waits, joins, busy_runs;
};

/* The stream and position of a node, once it is finished. */
typedef struct node_mark {
  uint32_t stream, position;
  bool is_done;   /* the host has waited for it */
  bool is_marked; /* its event was recorded */
} node_mark;

struct rondo_executor_plan {
  rondo_executor *executor;
  rondo_ready_graph graph;
  uint32_t *before_start, *before;
  rondo_purpose *purposes;
  rondo_event **events; /* NULL: none is needed */
  node_mark *marks;
  rondo_executor_run_node run_node;
  void *user;        /* of this run */
  bool spreads;      /* threads run the expensive nodes */
  bool uses_streams; /* uses other streams than the caller's */
  bool is_unsettled; /* a run has used other streams since the last rondo_executor_settle */
};

/* Claims ----------------------------------------------------------------------------------------------------------- */

static void claim(rondo_executor *executor) {
  pthread_mutex_lock(&executor->lock);
  while (executor->is_claimed) pthread_cond_wait(&executor->freed, &executor->lock);
  executor->is_claimed = true;
  pthread_mutex_unlock(&executor->lock);
}

static bool try_claim(rondo_executor *executor) {
  pthread_mutex_lock(&executor->lock);
  const bool is_free = !executor->is_claimed;
  executor->is_claimed = true;
  pthread_mutex_unlock(&executor->lock);
  return is_free;
}

static void release_claim(rondo_executor *executor) {
  pthread_mutex_lock(&executor->lock);
  assert(executor->is_claimed);
  executor->is_claimed = false;
  pthread_cond_signal(&executor->freed);
  pthread_mutex_unlock(&executor->lock);
}

static void count_up(_Atomic uint64_t *counter) { atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); }

/* Nodes ------------------------------------------------------------------------------------------------------------ */

static rondo_status wait_for(rondo_executor *executor, executor_stream *at, rondo_event *event) {
  count_up(&executor->waits);
  return rondo_stream_wait_event(at->stream, event);
}

static rondo_status record(rondo_executor *executor, rondo_event *event, const executor_stream *at) {
  count_up(&executor->events);
  return rondo_event_record(event, at->stream);
}

/* Makes the stream's first node in a run wait for the work on the caller's stream. */
static rondo_status enter(rondo_executor *executor, executor_stream *at) {
  if (at->is_used) return RONDO_OK;
  at->is_used = true;
  memset(at->known, 0, executor->stream_count * sizeof *at->known);
  return wait_for(executor, at, executor->begun);
}

/* Finds the predecessors that the node's stream has not waited for, and writes the last one on each stream to `wanted`.
 */
static bool list_wanted(const rondo_executor_plan *plan, uint32_t stream, uint32_t node, uint32_t *wanted) {
  const executor_stream *at = &plan->executor->streams[stream];
  bool any = false;
  for (uint32_t i = plan->before_start[node]; i < plan->before_start[node + 1]; i++) {
    const uint32_t other = plan->before[i];
    const node_mark *mark = &plan->marks[other];
    if (mark->is_done || mark->stream == stream || at->known[mark->stream] >= mark->position) continue;
    uint32_t *last = &wanted[mark->stream];
    if (*last == 0 || plan->marks[*last - 1].position < mark->position) *last = other + 1;
    any = true;
  }
  return any;
}

static rondo_status order(const rondo_executor_plan *plan, uint32_t worker, uint32_t stream, uint32_t node) {
  rondo_executor *executor = plan->executor;
  executor_stream *at = &executor->streams[stream];
  uint32_t *wanted = &executor->wanted[(size_t)worker * executor->stream_count];
  rondo_status status = enter(executor, at);
  if (!list_wanted(plan, stream, node, wanted)) return status;
  for (uint32_t i = 0; i < executor->stream_count; i++) {
    const uint32_t last = wanted[i];
    wanted[i] = 0;
    if (last == 0 || status != RONDO_OK) continue;
    assert(plan->marks[last - 1].is_marked);
    status = wait_for(executor, at, plan->events[last - 1]);
    at->known[i] = plan->marks[last - 1].position;
  }
  return status;
}

/* Whether `next`, a successor of `node`, may run on another stream: because it has another purpose, or because another
 * worker may finish its last predecessor. */
static bool may_change_stream(const rondo_executor_plan *plan, uint32_t node, uint32_t next, bool is_running) {
  if (plan->purposes[next] != plan->purposes[node]) return true;
  if (!plan->spreads) return false;
  if (plan->graph.is_expensive[next]) return true;
  return is_running ? !rondo_ready_waits_for_one(&plan->graph, next) : plan->graph.tasks.tasks[next].predecessors > 1;
}

static bool needs_event(const rondo_executor_plan *plan, uint32_t node, bool is_running) {
  const rondo_task *task = &plan->graph.tasks.tasks[node];
  for (uint32_t i = task->successors_first; i < task->successors_end; i++)
    if (may_change_stream(plan, node, plan->graph.tasks.successors[i], is_running)) return true;
  return false;
}

static rondo_status mark_finished(const rondo_executor_plan *plan, executor_stream *at, uint32_t node,
                                  node_mark *mark) {
  rondo_executor *executor = plan->executor;
  if (plan->spreads && executor->computes && plan->graph.is_expensive[node]) {
    RONDO_TRY(rondo_stream_drain(at->stream, "rondo_executor_run"));
    at->done = at->position;
    mark->is_done = true;
    return RONDO_OK;
  }
  if (plan->events[node] == NULL || !needs_event(plan, node, true)) return RONDO_OK;
  mark->is_marked = true;
  return record(executor, plan->events[node], at);
}

/* rondo_ready_run_node; user: the plan. */
static rondo_status run_node(void *user, uint32_t worker, uint32_t node) {
  const rondo_executor_plan *plan = user;
  const uint32_t stream = worker * RONDO_PURPOSES + (uint32_t)plan->purposes[node];
  executor_stream *at = &plan->executor->streams[stream];
  node_mark *mark = &plan->marks[node];
  assert(worker <= plan->executor->threads && node < plan->graph.tasks.item_count);
  assert(at->stream != NULL); /* created with the plan */
  RONDO_TRY(order(plan, worker, stream, node));
  *mark = (node_mark){.stream = stream, .position = ++at->position};
  RONDO_TRY(plan->run_node(plan->user, node, at->stream));
  return mark_finished(plan, at, node, mark);
}

/* Joining ---------------------------------------------------------------------------------------------------------- */

/* Makes the caller's stream wait for this one. If that fails, waits on the host. */
static rondo_status join(rondo_executor *executor, executor_stream *at) {
  rondo_saved_error error;
  rondo_status status = record(executor, at->joined, at);
  if (status == RONDO_OK) {
    count_up(&executor->joins);
    status = wait_for(executor, &executor->streams[0], at->joined);
  }
  if (status == RONDO_OK) return RONDO_OK;
  rondo_error_save(&error);
  rondo_status_ignore(rondo_stream_drain(at->stream, "rondo_executor_run"), "the first failure is the one to report");
  return rondo_error_raise(&error);
}

static rondo_status join_all(rondo_executor *executor) {
  rondo_saved_error first = {.status = RONDO_OK};
  for (uint32_t i = 1; i < executor->stream_count; i++) {
    executor_stream *at = &executor->streams[i];
    if (!at->is_used || at->done == at->position || executor->streams[0].known[i] >= at->position) continue;
    if (join(executor, at) != RONDO_OK && first.status == RONDO_OK) rondo_error_save(&first);
  }
  return rondo_error_raise(&first);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void begin(rondo_executor_plan *plan, rondo_stream *stream, void *user) {
  rondo_executor *executor = plan->executor;
  for (uint32_t i = 0; i < executor->stream_count; i++) {
    executor_stream *at = &executor->streams[i];
    at->is_used = i == 0;
    at->position = at->done = 0;
  }
  memset(executor->streams[0].known, 0, executor->stream_count * sizeof *executor->known);
  assert(executor->streams[0].stream == NULL); /* no other run is in progress */
  executor->streams[0].stream = stream;
  plan->user = user;
}

static rondo_status run_nodes(rondo_executor_plan *plan) {
  rondo_executor *executor = plan->executor;
  if (plan->uses_streams) RONDO_TRY(record(executor, executor->begun, &executor->streams[0]));
  plan->is_unsettled |= plan->uses_streams;
  const rondo_status status = rondo_ready_queue_run(executor->queue, &plan->graph, run_node, plan);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status joined = join_all(executor);
  return status == RONDO_OK ? joined : rondo_error_raise(&error);
}

rondo_status rondo_executor_run(rondo_executor_plan *plan, rondo_stream *stream, void *user, bool *out_has_run) {
  rondo_executor *executor = plan->executor;
  *out_has_run = false;
  RONDO_TRY(rondo_device_require_own("rondo_compiled_run", executor->device)); /* a fork has no threads */
  if (rondo_stream_find_capture(stream) != NULL) return RONDO_OK;
  if (!try_claim(executor)) {
    count_up(&executor->busy_runs);
    return RONDO_OK;
  }
  *out_has_run = true;
  begin(plan, stream, user);
  const rondo_status status = run_nodes(plan);
  executor->streams[0].stream = NULL;
  release_claim(executor);
  return status;
}

static rondo_status drain_all(const rondo_executor *executor) {
  rondo_saved_error first = {.status = RONDO_OK};
  for (uint32_t i = 1; i < executor->stream_count; i++) {
    rondo_stream *stream = executor->streams[i].stream;
    if (stream == NULL || rondo_stream_drain(stream, "rondo_executor_settle") == RONDO_OK) continue;
    if (first.status == RONDO_OK) rondo_error_save(&first);
  }
  return rondo_error_raise(&first);
}

rondo_status rondo_executor_settle(rondo_executor_plan *plan) {
  if (plan == NULL || !plan->is_unsettled || plan->executor->device->is_inherited) return RONDO_OK;
  claim(plan->executor);
  const rondo_status status = drain_all(plan->executor);
  release_claim(plan->executor);
  plan->is_unsettled = false;
  return status;
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

static rondo_status make_stream(rondo_executor *executor, uint32_t index) {
  static const char *const purposes[] = {[RONDO_PURPOSE_COMPUTE] = "compute",
                                         [RONDO_PURPOSE_HOST_TO_DEVICE] = "from host",
                                         [RONDO_PURPOSE_DEVICE_TO_HOST] = "to host",
                                         [RONDO_PURPOSE_DEVICE_TO_DEVICE] = "within device"};
  executor_stream *at = &executor->streams[index];
  char name[2 * NAME_BYTES];
  (void)snprintf(name, sizeof name, "%s %s %u", executor->name, purposes[index % RONDO_PURPOSES],
                 index / RONDO_PURPOSES);
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = name};
  if (at->joined == NULL) RONDO_TRY(rondo_event_create(executor->device, NULL, &at->joined));
  return rondo_stream_create(executor->device, &options, &at->stream);
}

/* Creates the streams that the plan's nodes may run on. */
static rondo_status make_streams(const rondo_executor_plan *plan) {
  rondo_executor *executor = plan->executor;
  bool is_needed[RONDO_PURPOSES] = {false};
  for (uint32_t p = 0; p < plan->graph.tasks.item_count; p++) is_needed[plan->purposes[p]] = true;
  const uint32_t last = plan->spreads ? executor->stream_count : (uint32_t)RONDO_PURPOSES;
  for (uint32_t i = 1; i < last; i++)
    if (is_needed[i % RONDO_PURPOSES] && executor->streams[i].stream == NULL) RONDO_TRY(make_stream(executor, i));
  return RONDO_OK;
}

static rondo_status make_events(rondo_executor_plan *plan) {
  for (uint32_t p = 0; p < plan->graph.tasks.item_count; p++)
    if (needs_event(plan, p, false)) RONDO_TRY(rondo_event_create(plan->executor->device, NULL, &plan->events[p]));
  return RONDO_OK;
}

static rondo_status copy_lists(rondo_executor_plan *plan, const rondo_executor_work *work) {
  const rondo_allocator *allocator = &plan->executor->allocator;
  const size_t count = work->count, edges = work->before_start[count];
  RONDO_TRY(rondo_ready_graph_make(allocator, work->count, work->before_start, work->before, work->is_expensive,
                                   &plan->graph));
  RONDO_TRY(rondo_allocate_items(allocator, count + 1, sizeof *plan->before_start, &plan->before_start));
  memcpy(plan->before_start, work->before_start, (count + 1) * sizeof *plan->before_start);
  RONDO_TRY(rondo_allocate_items(allocator, edges, sizeof *plan->before, &plan->before));
  if (edges > 0) memcpy(plan->before, work->before, edges * sizeof *plan->before);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *plan->purposes, &plan->purposes));
  if (count > 0) memcpy(plan->purposes, work->purposes, count * sizeof *plan->purposes);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *plan->events, &plan->events));
  return rondo_allocate_items(allocator, count, sizeof *plan->marks, &plan->marks);
}

static rondo_status make_plan(rondo_executor_plan *plan, const rondo_executor_work *work) {
  RONDO_TRY(copy_lists(plan, work));
  for (uint32_t p = 0; p < work->count; p++) {
    plan->spreads |= work->is_expensive[p] && plan->executor->threads > 0;
    plan->uses_streams |= work->purposes[p] != RONDO_PURPOSE_COMPUTE;
  }
  plan->uses_streams |= plan->spreads;
  RONDO_TRY(make_events(plan));
  claim(plan->executor);
  const rondo_status status = make_streams(plan);
  release_claim(plan->executor);
  return status;
}

rondo_status rondo_executor_plan_create(rondo_executor *executor, const rondo_executor_work *work,
                                        rondo_executor_plan **out) {
  rondo_executor_plan *plan;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(&executor->allocator, 1, sizeof *plan, &plan));
  *plan = (rondo_executor_plan){.executor = executor, .run_node = work->run_node};
  atomic_fetch_add_explicit(&executor->plans, 1, memory_order_relaxed);
  const rondo_status status = make_plan(plan, work);
  if (status == RONDO_OK)
    *out = plan;
  else
    rondo_executor_plan_destroy(plan);
  return status;
}

void rondo_executor_plan_destroy(rondo_executor_plan *plan) {
  if (plan == NULL) return;
  rondo_executor *executor = plan->executor;
  const rondo_allocator *allocator = &executor->allocator;
  const size_t count = plan->graph.tasks.item_count;
  assert(atomic_load(&executor->plans) > 0);
  for (size_t p = 0; plan->events != NULL && p < count; p++) rondo_event_destroy(plan->events[p]);
  rondo_release(allocator, plan->marks, count, sizeof *plan->marks);
  rondo_release(allocator, plan->events, count, sizeof *plan->events);
  rondo_release(allocator, plan->purposes, count, sizeof *plan->purposes);
  rondo_release(allocator, plan->before, plan->graph.tasks.edge_count, sizeof *plan->before);
  rondo_release(allocator, plan->before_start, count + 1, sizeof *plan->before_start);
  rondo_ready_graph_free(allocator, &plan->graph);
  rondo_release(allocator, plan, 1, sizeof *plan);
  atomic_fetch_sub_explicit(&executor->plans, 1, memory_order_release);
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static rondo_status check_options(const rondo_executor_options *options) {
  if (options->threads != RONDO_EXECUTOR_NO_THREADS && options->threads > RONDO_EXECUTOR_MAX_THREADS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_executor_create: %u threads: give at most %d, or RONDO_EXECUTOR_NO_THREADS",
                      options->threads, RONDO_EXECUTOR_MAX_THREADS);
  if (isfinite(options->expensive_us) && options->expensive_us >= 0 && options->expensive_us <= 1e9) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "rondo_executor_create: expensive_us is %g: give 0 to 1e9", options->expensive_us);
}

static uint32_t choose_threads(uint32_t wanted) {
  const unsigned processors = rondo_processor_count();
  if (wanted == RONDO_EXECUTOR_NO_THREADS) return 0;
  if (wanted > 0) return wanted;
  if (processors <= 2) return 1;
  return processors - 1 < CHOSEN_THREADS ? processors - 1 : CHOSEN_THREADS;
}

static rondo_status open_executor(rondo_executor *executor) {
  const rondo_allocator *allocator = &executor->allocator;
  const size_t streams = executor->stream_count, workers = executor->threads + (size_t)1;
  RONDO_TRY(rondo_allocate_items(allocator, streams, sizeof *executor->streams, &executor->streams));
  RONDO_TRY(rondo_allocate_items(allocator, streams * streams, sizeof *executor->known, &executor->known));
  RONDO_TRY(rondo_allocate_items(allocator, workers * streams, sizeof *executor->wanted, &executor->wanted));
  for (size_t i = 0; i < streams; i++) executor->streams[i].known = &executor->known[i * streams];
  RONDO_TRY(rondo_event_create(executor->device, NULL, &executor->begun));
  return rondo_ready_queue_create(allocator, executor->threads, &executor->queue);
}

static rondo_status free_executor(rondo_executor *executor) {
  const rondo_allocator allocator = executor->allocator;
  const size_t streams = executor->stream_count, workers = executor->threads + (size_t)1;
  rondo_saved_error first = {.status = RONDO_OK};
  rondo_ready_queue_destroy(executor->queue);
  for (size_t i = 1; executor->streams != NULL && i < streams; i++) {
    if (rondo_stream_destroy(executor->streams[i].stream) != RONDO_OK && first.status == RONDO_OK)
      rondo_error_save(&first);
    rondo_event_destroy(executor->streams[i].joined);
  }
  rondo_event_destroy(executor->begun);
  rondo_release(&allocator, executor->wanted, workers * streams, sizeof *executor->wanted);
  rondo_release(&allocator, executor->known, streams * streams, sizeof *executor->known);
  rondo_release(&allocator, executor->streams, streams, sizeof *executor->streams);
  pthread_cond_destroy(&executor->freed);
  pthread_mutex_destroy(&executor->lock);
  rondo_release(&allocator, executor, 1, sizeof *executor);
  return rondo_error_raise(&first);
}

static rondo_status make_executor(rondo_device *device, const rondo_executor_options *options, rondo_executor **out) {
  rondo_executor *executor;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *executor, &executor));
  executor->allocator = device->allocator;
  executor->device = device;
  executor->computes = !rondo_device_takes_libraries(device);
  executor->threads = choose_threads(options->threads);
  executor->stream_count = (executor->threads + 1) * RONDO_PURPOSES;
  executor->expensive_ns = (uint64_t)(1e3 * (options->expensive_us == 0 ? EXPENSIVE_US : options->expensive_us));
  (void)snprintf(executor->name, sizeof executor->name, "%s", options->name == NULL ? "executor" : options->name);
  pthread_mutex_init(&executor->lock, NULL);
  pthread_cond_init(&executor->freed, NULL);
  const rondo_status status = open_executor(executor);
  if (status == RONDO_OK) {
    *out = executor;
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(free_executor(executor), "the failure that led here is the one to report");
  return rondo_error_raise(&error);
}

rondo_status rondo_executor_create(rondo_device *device, const rondo_executor_options *options,
                                   rondo_executor **out_executor) {
  rondo_executor_options known;
  RONDO_TRY(rondo_check_call("rondo_executor_create", "out_executor", (const void *)out_executor));
  *out_executor = NULL;
  RONDO_TRY(rondo_require("rondo_executor_create", "the device", device));
  RONDO_TRY(rondo_versioned_read("rondo_executor_options", options, &known, sizeof known));
  RONDO_TRY(check_options(&known));
  return make_executor(device, &known, out_executor);
}

rondo_status rondo_executor_destroy(rondo_executor *executor) {
  if (executor == NULL || executor->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_check_call("rondo_executor_destroy", "the executor", executor));
  const uint32_t plans = atomic_load_explicit(&executor->plans, memory_order_acquire);
  if (plans == 0) return free_executor(executor);
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "rondo_executor_destroy: %u program%s compiled with it: destroy %s first", plans,
                    plans == 1 ? " was" : "s were", plans == 1 ? "it" : "them");
}

/* Information ------------------------------------------------------------------------------------------------------ */

rondo_status rondo_executor_get_info(const rondo_executor *executor, rondo_executor_info *out_info) {
  rondo_ready_counts counts;
  RONDO_TRY(rondo_require("rondo_executor_get_info", "executor", executor));
  RONDO_TRY(rondo_require("rondo_executor_get_info", "out_info", out_info));
  rondo_ready_queue_count(executor->queue, &counts);
  const rondo_executor_info info = {.struct_size = sizeof info,
                                    .threads = executor->threads,
                                    .runs = counts.runs,
                                    .nodes = counts.nodes,
                                    .inline_nodes = counts.nodes - counts.threads,
                                    .thread_nodes = counts.threads,
                                    .queued_nodes = counts.shared,
                                    .events = atomic_load_explicit(&executor->events, memory_order_relaxed),
                                    .waits = atomic_load_explicit(&executor->waits, memory_order_relaxed),
                                    .joins = atomic_load_explicit(&executor->joins, memory_order_relaxed),
                                    .busy_runs = atomic_load_explicit(&executor->busy_runs, memory_order_relaxed),
                                    .run_us = (double)counts.run_ns / 1e3,
                                    .idle_us = (double)counts.idle_ns / 1e3};
  return rondo_versioned_write("rondo_executor_info", &info, out_info, sizeof info);
}

bool rondo_executor_computes(const rondo_executor *executor) { return executor->computes; }
uint64_t rondo_executor_expensive_ns(const rondo_executor *executor) { return executor->expensive_ns; }
rondo_device *rondo_executor_device(const rondo_executor *executor) { return executor->device; }
