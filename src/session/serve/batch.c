/* SPDX-License-Identifier: MIT
 * Batches. The thread that forms a batch runs its parts, with the help of other workers, waits for all parts, and
 * answers the requests.
 *
 * The parts run without the session's lock, everything else under it. Forming a batch does not allocate, and scans a
 * bounded number of requests.
 *
 * A batch of a model that changes states is one part, so that its failure leaves them: the dispatch table splits only
 * what no graph can run, no requests are added to that, and a request of so many rows runs eagerly if it may.
 */
#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "session/serve/batch.h"
#include "session/serve/batch_delay.h"
#include "session/serve/batch_part.h"
#include "session/serve/cache_slots.h"
#include "session/serve/request_queue.h"
#include "session/serve/request_steps.h"
#include "session/serve/stream_worker.h"
#include "session/serve/utilisation.h"
#include "session/session_internal.h"
#include "session/sizing/model_times.h"

#define ROW_COST_TOLERANCE 1.1 /* relative to the lowest cost of a row among the requests that wait */
enum { MAX_SCANNED = 64 };

/* Forming ---------------------------------------------------------------------------------------------------------- */

static const rondo_dispatch_table *table_for(const rondo_slot *request, bool is_loaded) {
  return rondo_model_dispatch_table(request->model, request->mode, is_loaded);
}

/* Whether running several graphs at once would slow down other work, or would find no free worker. */
static bool is_loaded(const rondo_stream_worker *worker) {
  const rondo_session *session = worker->session;
  if (rondo_session_count_running(session) > 0) return true;
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (i != worker->number && !session->workers[i].is_claimed) return false;
  return true;
}

/* Requests that could run together, in the order of the queue. */
typedef struct batch_candidates {
  const rondo_dispatch_table *table;  /* the table that dispatches them */
  const rondo_dispatch_table *loaded; /* its costs are shares of the time of all workers */
  rondo_slot *requests[RONDO_SESSION_MAX_BATCH];
  size_t rows[RONDO_SESSION_MAX_BATCH]; /* the sum of the rows up to and including each request */
  size_t count;
} batch_candidates;

/* Whether the request can run with the candidates so far. Not if they would run eagerly, because there is no program
 * for the sum of their rows. */
static bool fits(const batch_candidates *c, const rondo_slot *leader, const rondo_slot *request) {
  const size_t rows = c->count == 0 ? 0 : c->rows[c->count - 1], max_rows = c->table->largest_rows;
  if (request->mode != leader->mode) return false;
  if (request->rows > max_rows || rows > max_rows - request->rows) return false;
  return c->count == 0 || c->table->entries[rows + request->rows].mode != RONDO_RUN_EAGER;
}

/* Lists requests of the model, starting with the leader. Stops after MAX_SCANNED requests that do not fit, to bound the
 * time. */
static void list_candidates(size_t max_requests, rondo_slot *leader, batch_candidates *c) {
  size_t passed = 0;
  for (rondo_slot *at = leader; at != NULL && c->count < max_requests; at = at->next) {
    if (!fits(c, leader, at)) {
      if (++passed == MAX_SCANNED) return;
      continue;
    }
    c->requests[c->count] = at;
    c->rows[c->count] = at->rows + (c->count == 0 ? 0 : c->rows[c->count - 1]);
    c->count++;
  }
}

/* Chooses how many of the first candidates run: the smallest number whose cost per row is nearly the lowest. Other
 * workers run the rest. So no request waits for others if that saves little. */
static size_t choose_count(const batch_candidates *c) {
  double least = INFINITY;
  for (size_t i = 0; i < c->count; i++) least = fmin(least, rondo_dispatch_table_row_us(c->loaded, c->rows[i]));
  size_t count = 1;
  assert(c->count > 0);
  while (rondo_dispatch_table_row_us(c->loaded, c->rows[count - 1]) > least * ROW_COST_TOLERANCE) count++;
  return count;
}

static void add_request(rondo_batch *batch, rondo_slot *request) {
  assert(batch->count < RONDO_SESSION_MAX_BATCH && request->rows > 0);
  batch->requests[batch->count] = request;
  batch->first[batch->count++] = batch->rows;
  batch->rows += request->rows;
}

static void take_request(rondo_session *session, rondo_batch *batch, rondo_slot *request) {
  assert(request->state == RONDO_SLOT_QUEUED && request->model == batch->model);
  rondo_queue_remove(session, request);
  request->state = RONDO_SLOT_RUNNING;
  add_request(batch, request);
}

/* Whether graphs can run that many more rows in the same time. */
static bool has_spare_rows(const rondo_dispatch_table *table, const rondo_batch *batch, size_t more, float us) {
  const size_t most = batch->model->changed.count > 0 ? table->largest_rows : table->rows;
  if (more > most || batch->rows > most - more) return false;
  const rondo_dispatch_entry *entry = &table->entries[batch->rows + more];
  return entry->mode != RONDO_RUN_EAGER && entry->us <= us;
}

/* Adds requests that fit into the padding of the batch, which costs nothing. Scans up to MAX_SCANNED of the oldest
 * requests of the model, including those before the leader and those that choose_count left out.
 *
 * No request starves. A request that does not fit does not wait longer, because the batch takes the same time without
 * the added ones. And a request becomes a leader when its wait is over and no older request is ready. */
static void fill_spare_rows(rondo_session *session, rondo_batch *batch, const rondo_dispatch_table *table) {
  const rondo_slot *leader = batch->requests[0];
  const float us = table->entries[batch->rows].us;
  rondo_slot *at = batch->model->waiting.head;
  for (size_t scanned = 0; at != NULL && scanned < MAX_SCANNED; scanned++) {
    rondo_slot *const next = at->next;
    if (batch->count == session->options.max_batch || !has_spare_rows(table, batch, 1, us)) return;
    if (at->mode == leader->mode && has_spare_rows(table, batch, at->rows, us)) take_request(session, batch, at);
    at = next;
  }
}

/* Steps of several sequences cannot run eagerly together. Where that would be cheapest, they run together by graphs, if
 * this costs less than each of them alone. */
static void join_steps(const rondo_batch *batch, size_t max_requests, rondo_slot *leader, batch_candidates *c) {
  batch_candidates joined = {.table = rondo_model_dispatch_table(batch->model, RONDO_RUN_RECORDED, batch->is_loaded),
                             .loaded = c->loaded};
  if (leader->sequence == NULL || joined.table == c->table || leader->rows > joined.table->largest_rows) return;
  list_candidates(max_requests, leader, &joined);
  if (joined.count <= c->count) return;
  const float together_us = joined.table->entries[joined.rows[joined.count - 1]].us;
  if (together_us < (float)joined.count * c->table->entries[leader->rows].us) *c = joined;
}

/* A request that is larger than the largest graph runs without candidates, because these would overtake it
 * repeatedly. Requests in the padding of its last graph wait until all graphs are done, so they are added only if the
 * batch has at most twice the rows of the largest graph. Steps of sequences all run together: those that are left would
 * wait for the next batch, and while requests wait there are no trials, so a time that is too long would not be
 * corrected. */
static void gather(rondo_session *session, rondo_stream_worker *worker, rondo_slot *leader) {
  batch_candidates c = {.table = table_for(leader, worker->batch.is_loaded), .loaded = table_for(leader, true)};
  if (c.table != NULL && leader->rows <= c.table->largest_rows) {
    list_candidates(session->options.max_batch, leader, &c);
    join_steps(&worker->batch, session->options.max_batch, leader, &c);
  }
  const bool is_step = leader->sequence != NULL;
  const size_t count = c.count == 0 || is_step ? c.count : choose_count(&c);
  if (count == 0) take_request(session, &worker->batch, leader);
  for (size_t i = 0; i < count; i++) take_request(session, &worker->batch, c.requests[i]);
  if (c.table != NULL && worker->batch.rows <= c.table->rows) fill_spare_rows(session, &worker->batch, c.table);
}

/* Finds what runs the batch. Several requests always run by graphs, because there is no program for the sum of their
 * rows. The table may have an eager entry for half of a failed batch; then the table without eager runs is used. */
static rondo_dispatch look_up(const rondo_batch *batch, const rondo_dispatch_table *table) {
  const rondo_session_model *model = batch->model;
  const rondo_dispatch found = rondo_dispatch_table_find(table, batch->rows);
  if (found.repeats > 0) return rondo_dispatch_table_find(model->loaded.recorded, batch->rows);
  if (batch->count == 1 || found.entry->mode != RONDO_RUN_EAGER) return found;
  return rondo_dispatch_table_find((batch->is_loaded ? &model->loaded : &model->idle)->recorded, batch->rows);
}

/* Whether the batch is split although it could be one eager run, which changes all states or none. */
static bool must_be_whole(const rondo_batch *batch) {
  const rondo_session_model *model = batch->model;
  return model->changed.count > 0 && batch->parts > 1 && batch->count == 1 &&
         batch->requests[0]->mode == RONDO_RUN_AUTO && !model->session->options.strict;
}

static void run_eagerly(rondo_batch *batch) {
  batch->entry = (rondo_dispatch_entry){.mode = RONDO_RUN_EAGER};
  batch->is_eager = true;
  batch->repeats = 0;
  batch->parts = 1;
  batch->reason = RONDO_RUN_NO_GRAPH;
}

/* Sets how the batch runs: its graphs, or eagerly, and the reason. */
static void dispatch(rondo_batch *batch) {
  const rondo_slot *leader = batch->requests[0];
  const rondo_dispatch_table *table = table_for(leader, batch->is_loaded);
  batch->reason = leader->mode != RONDO_RUN_AUTO ? RONDO_RUN_REQUESTED : RONDO_RUN_CHEAPEST;
  batch->is_eager = table == NULL;
  batch->parts = 1;
  if (table == NULL) {
    if (leader->mode != RONDO_RUN_EAGER || leader->has_no_graph) batch->reason = RONDO_RUN_NO_GRAPH;
    return;
  }
  const rondo_dispatch found = look_up(batch, table);
  batch->repeats = found.repeats;
  if (found.entry != NULL) batch->entry = *found.entry;
  batch->is_eager = batch->entry.mode == RONDO_RUN_EAGER;
  if (!batch->is_eager) batch->parts = batch->repeats + batch->entry.count;
  if (must_be_whole(batch)) run_eagerly(batch);
}

static void begin(rondo_batch *batch, rondo_session_model *model, bool is_loaded) {
  *batch = (rondo_batch){.model = model, .is_loaded = is_loaded, .began_ns = rondo_clock_ns()};
}

bool rondo_batch_form(rondo_session *session, rondo_stream_worker *worker, uint64_t *out_wait_ns) {
  *out_wait_ns = UINT64_MAX;
  if (session->waiting == 0) return false;
  const uint64_t now = rondo_clock_ns();
  rondo_queue_expire(session, now);
  rondo_slot *leader = rondo_batch_delay_find_ready(session, now, out_wait_ns);
  if (leader == NULL) return false;
  begin(&worker->batch, leader->model, is_loaded(worker));
  gather(session, worker, leader);
  dispatch(&worker->batch);
  rondo_batch_begin_trial(worker, &worker->batch);
  rondo_utilisation_count_forming(session, worker->batch.count, now);
  return true;
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

static uint32_t graph_of(const rondo_batch *batch, size_t part) {
  if (batch->is_eager) return RONDO_EAGER_PART;
  const size_t repeats = batch->repeats;
  return part < repeats ? batch->model->loaded.recorded->largest : batch->entry.graphs[part - repeats];
}

static bool take_part(rondo_batch *batch, rondo_part *out) {
  if (batch->started == batch->parts) return false;
  const uint32_t graph = graph_of(batch, batch->started);
  const size_t left = batch->rows - batch->next_row;
  *out = (rondo_part){.batch = batch, .first = batch->next_row, .rows = left, .graph = graph};
  if (graph != RONDO_EAGER_PART) {
    rondo_session_graph *g = &batch->model->graphs.items[graph];
    const rondo_cache_slots *slots = batch->model->head->slots;
    if (left > g->info.rows) out->rows = g->info.rows;
    out->is_by_slot = slots != NULL && g->info.rows >= slots->count;
    batch->padding += g->info.rows - out->rows;
    g->info.launches++;
    g->info.rows_run += out->rows;
    batch->model->info.launches++;
  }
  if (batch->started == 0) batch->first_graph = graph == RONDO_EAGER_PART ? 0 : graph;
  batch->started++;
  batch->next_row += out->rows;
  assert(out->rows > 0 && batch->next_row <= batch->rows);
  return true;
}

static void unlink_open(rondo_session *session, rondo_batch *batch) {
  for (rondo_batch **at = &session->open; *at != NULL; at = &(*at)->next) {
    if (*at != batch) continue;
    *at = batch->next;
    return;
  }
}

/* Takes a sample of a part that ran alone on the device and is its whole batch. A part that follows another would find
 * warm caches. */
static void add_sample(const rondo_stream_worker *worker, const rondo_part *part) {
  if (part->graph != RONDO_EAGER_PART && part->batch->parts == 1)
    rondo_model_add_sample(part->batch->model, part->graph, worker->sample_begin_ns, worker->sample_end_ns);
}

/* Runs the part without the lock. Other workers may take the remaining parts. */
static void run_part(rondo_session *session, rondo_stream_worker *worker, const rondo_part *part) {
  rondo_batch *batch = part->batch;
  if (batch->started == batch->parts) unlink_open(session, batch);
  rondo_stream_workers_wake_for_rest(session);
  const uint64_t claims = ++session->claims;
  const bool is_alone = rondo_stream_worker_is_alone(worker);
  pthread_mutex_unlock(&session->lock);
  const rondo_status status = rondo_part_run(&batch->model->instances[worker->number], part);
  pthread_mutex_lock(&session->lock);
  rondo_utilisation_count_enqueue(worker);
  if (status == RONDO_OK && is_alone && session->claims == claims) add_sample(worker, part);
  if (status != RONDO_OK && batch->status == RONDO_OK) {
    batch->status = status;
    rondo_error_save(&batch->error);
  }
  if (++batch->done == batch->parts && batch->parts > 1) pthread_cond_broadcast(&session->change);
}

bool rondo_batch_run_other_part(rondo_session *session, rondo_stream_worker *worker) {
  rondo_part part;
  if (session->open == NULL || !take_part(session->open, &part)) return false;
  worker->is_running = true;
  run_part(session, worker, &part);
  worker->is_running = false;
  return true;
}

static void run_parts(rondo_session *session, rondo_stream_worker *worker, rondo_batch *batch) {
  if (batch->parts > 1 && session->options.streams > 1) {
    batch->next = session->open;
    session->open = batch;
    rondo_stream_workers_wake(session, batch->parts - 1);
  }
  for (rondo_part part; take_part(batch, &part);) run_part(session, worker, &part);
  while (batch->done < batch->parts) pthread_cond_wait(&session->change, &session->lock);
}

/* Answers ---------------------------------------------------------------------------------------------------------- */

static rondo_answer answer_of(const rondo_batch *batch, const rondo_stream_worker *worker, const rondo_slot *request,
                              uint64_t now) {
  const bool is_one = batch->parts == 1;
  return (rondo_answer){.struct_size = sizeof(rondo_answer),
                        .mode = batch->is_eager ? RONDO_RUN_EAGER
                                : is_one        ? RONDO_RUN_RECORDED
                                                : RONDO_RUN_SPLIT,
                        .reason = batch->reason,
                        .graph = batch->first_graph,
                        .graphs = batch->is_eager ? 0 : (uint32_t)batch->parts,
                        .stream = worker->number,
                        .batch_requests = (uint32_t)batch->count,
                        .batch_rows = batch->rows,
                        .padding_rows = batch->padding,
                        .queue_us = (double)(request->began_ns - request->accepted_ns) / 1e3,
                        .run_us = (double)(now - request->began_ns) / 1e3,
                        .length = rondo_batch_length(batch),
                        .steps = request->sequence == NULL ? 0 : request->steps + 1};
}

/* Requests that have another part or step go to the queue. */
static void answer_or_go_on(const rondo_batch *batch, rondo_slot *request) {
  rondo_status status = RONDO_OK;
  if (batch->status == RONDO_OK && rondo_steps_go_on(request, &status)) return;
  rondo_slot_finish(request, batch->status == RONDO_OK ? status : rondo_error_raise(&batch->error));
}

static void answer_requests(const rondo_batch *batch, const rondo_stream_worker *worker) {
  rondo_model_info *info = &batch->model->info;
  assert(batch->done == batch->parts && batch->started == batch->parts);
  assert(batch->status != RONDO_OK || batch->next_row == batch->rows);
  const uint64_t now = rondo_clock_ns();
  rondo_trial_account(batch, now - batch->began_ns);
  info->padding_rows += batch->padding;
  info->batches += batch->count > 1;
  info->batched += batch->count > 1 ? batch->count : 0;
  for (size_t i = 0; i < batch->count; i++) {
    rondo_slot *request = batch->requests[i];
    if (request->began_ns == 0) request->began_ns = batch->began_ns;
    request->answer = answer_of(batch, worker, request, now);
  }
  if (batch->status == RONDO_OK) rondo_steps_ask(batch);
  for (size_t i = 0; i < batch->count; i++) answer_or_go_on(batch, batch->requests[i]);
}

/* Failures --------------------------------------------------------------------------------------------------------- */

/* Requests first to first + count - 1 of a failed batch. */
typedef struct failed_part {
  size_t first, count;
} failed_part;

static bool must_run_in_halves(const rondo_batch *batch) {
  return batch->status != RONDO_OK && batch->status != RONDO_DEVICE_LOST && batch->count > 1;
}

/* The first half is on top of the stack. */
static void push_halves(failed_part *stack, size_t *height, failed_part of) {
  const size_t half = of.count / 2;
  stack[(*height)++] = (failed_part){of.first + half, of.count - half};
  stack[(*height)++] = (failed_part){of.first, half};
}

static void form_from_half(const rondo_batch *failed, failed_part of, rondo_batch *out) {
  begin(out, failed->model, failed->is_loaded);
  out->began_ns = failed->began_ns;
  for (size_t i = of.first; i < of.first + of.count; i++) add_request(out, failed->requests[i]);
  dispatch(out);
  out->reason = RONDO_RUN_RETRY;
}

/* Runs the batch again in two halves, and splits failing halves again, so that a faulty request fails alone. One faulty
 * request among n costs 2 log n runs. */
static void run_in_halves(rondo_session *session, rondo_stream_worker *worker, const rondo_batch *failed) {
  failed_part stack[RONDO_SESSION_MAX_BATCH];
  size_t height = 0;
  assert(failed->status != RONDO_OK && failed->count > 1);
  failed->model->info.isolated++;
  push_halves(stack, &height, (failed_part){0, failed->count});
  while (height > 0) {
    const failed_part of = stack[--height];
    rondo_batch again;
    form_from_half(failed, of, &again);
    run_parts(session, worker, &again);
    if (must_run_in_halves(&again))
      push_halves(stack, &height, of);
    else
      answer_requests(&again, worker);
  }
}

void rondo_batch_run(rondo_session *session, rondo_stream_worker *worker) {
  rondo_batch *batch = &worker->batch;
  assert(worker->is_claimed && batch->count > 0);
  worker->is_running = true;
  run_parts(session, worker, batch);
  if (must_run_in_halves(batch))
    run_in_halves(session, worker, batch);
  else
    answer_requests(batch, worker);
  worker->is_running = false;
}
