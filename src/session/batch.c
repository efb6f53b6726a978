/* SPDX-License-Identifier: MIT
 * Batches: requests of a model that run together, by the graphs that the table says for their rows. Who forms a batch
 * leads it: it takes parts as other lanes do, waits for theirs, and gives the answers. All but running parts is done
 * under the session's lock.
 */
#include <string.h>

#include "base/clock.h"
#include "session/session_internal.h"

/* Forming --------------------------------------------------------------------------------------------------------- */

/* By graphs alone, whatever un-recorded runs cost. */
static bool wants_graphs(const rondo_ticket *ticket) {
  return ticket->way == RONDO_WAY_RECORDED || ticket->session->options.strict;
}

static const rondo_table *table_for(const rondo_ticket *ticket, bool is_loaded) {
  const rondo_session_tables *tables = is_loaded ? &ticket->model->loaded : &ticket->model->idle;
  if (ticket->way == RONDO_WAY_UNRECORDED) return NULL;
  return wants_graphs(ticket) ? tables->recorded : tables->any;
}

static uint64_t wait_for(const rondo_ticket *ticket, uint64_t now) {
  const rondo_session *session = ticket->session;
  const uint64_t delay = (uint64_t)session->options.max_delay_us * 1000;
  const rondo_table *table = table_for(ticket, false);
  if (delay == 0 || session->is_draining || table == NULL) return 0;
  if (ticket->model->waiting_rows >= table->largest_rows) return 0;
  const uint64_t waited = now - ticket->taken_ns;
  return waited >= delay ? 0 : delay - waited;
}

static bool has_free_lane_beside(const rondo_lane *lane) {
  const rondo_session *session = lane->session;
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (i != lane->number && !session->lanes[i].is_claimed) return true;
  return false;
}

/* Requests that could run together, in the order of the queue, and what they take one by one: of all lanes' time, and
 * the longest of them. */
typedef struct company {
  const rondo_table *now, *loaded; /* by which it is decided, and for lanes that are all busy */
  rondo_ticket *requests[RONDO_SESSION_MAX_BATCH];
  size_t count, rows;
  double share_us, longest_us;
} company;

/* One by one; on several lanes at once if one is free. */
static double cost_apart(const company *c) {
  return c->now == c->loaded || c->share_us > c->longest_us ? c->share_us : c->longest_us;
}

/* Nobody has a program for a sum of rows that would run un-recorded. */
static bool fits(const company *c, const rondo_ticket *leader, const rondo_ticket *ticket) {
  const size_t most = c->now->largest_rows;
  if (ticket->model != leader->model || ticket->way != leader->way) return false;
  if (ticket->rows > most || c->rows > most - ticket->rows) return false;
  return c->count == 0 || c->now->entries[c->rows + ticket->rows].way != RONDO_WAY_UNRECORDED;
}

static void add_company(company *c, rondo_ticket *ticket) {
  const double us = (double)c->now->entries[ticket->rows].us;
  c->requests[c->count++] = ticket;
  c->rows += ticket->rows;
  c->share_us += (double)c->loaded->entries[ticket->rows].us;
  if (us > c->longest_us) c->longest_us = us;
}

/* As many as save most: nobody waits for others where that saves next to nothing. */
static size_t find_company(size_t most_requests, rondo_ticket *leader, company *c) {
  size_t best = 1;
  double most = 0;
  for (rondo_ticket *at = leader; at != NULL && c->count < most_requests; at = at->next) {
    if (!fits(c, leader, at)) continue;
    add_company(c, at);
    const double saved = cost_apart(c) * (1 - RONDO_DECISION_MARGIN) - (double)c->now->entries[c->rows].us;
    if (c->count < 2 || saved <= most) continue;
    most = saved;
    best = c->count;
  }
  return best;
}

static void add_request(rondo_session *session, rondo_batch *batch, rondo_ticket *ticket) {
  rondo_queue_remove(session, ticket);
  ticket->state = RONDO_SLOT_RUNNING;
  batch->requests[batch->count] = ticket;
  batch->first[batch->count++] = batch->rows;
  batch->rows += ticket->rows;
}

static void gather(rondo_session *session, rondo_lane *lane, rondo_ticket *leader) {
  const rondo_table *now = table_for(leader, lane->batch.is_loaded);
  company c = {.now = now, .loaded = table_for(leader, true)};
  size_t count = 1;
  if (now != NULL && leader->rows <= now->largest_rows) count = find_company(session->options.max_batch, leader, &c);
  if (c.count == 0) c.requests[0] = leader;
  for (size_t i = 0; i < count; i++) add_request(session, &lane->batch, c.requests[i]);
}

/* What runs it. */
static void decide(rondo_batch *batch, const rondo_ticket *leader) {
  const rondo_table *table = table_for(leader, batch->is_loaded);
  batch->reason = leader->way != RONDO_WAY_AUTO ? RONDO_WAY_ASKED : RONDO_WAY_CHEAPEST;
  batch->is_unrecorded = table == NULL;
  batch->parts = 1;
  if (table == NULL) {
    if (leader->way != RONDO_WAY_UNRECORDED) batch->reason = RONDO_WAY_NO_GRAPH;
    return;
  }
  batch->decision = rondo_table_decide(table, batch->rows);
  if (batch->decision.repeats > 0) batch->decision = rondo_table_decide(batch->model->loaded.recorded, batch->rows);
  const rondo_table_entry *entry = batch->decision.entry;
  batch->is_unrecorded = entry != NULL && entry->way == RONDO_WAY_UNRECORDED;
  if (!batch->is_unrecorded) batch->parts = batch->decision.repeats + (entry == NULL ? 0 : entry->count);
}

static void begin(rondo_batch *batch, rondo_session_model *model, bool is_loaded) {
  *batch = (rondo_batch){.model = model, .is_loaded = is_loaded, .began_ns = rondo_clock_ns()};
}

bool rondo_batch_form(rondo_session *session, rondo_lane *lane, uint64_t *out_wait_ns) {
  *out_wait_ns = UINT64_MAX;
  if (session->head == NULL) return false;
  const uint64_t now = rondo_clock_ns();
  rondo_queue_expire(session, now);
  rondo_ticket *leader = session->head;
  for (; leader != NULL; leader = leader->next) {
    const uint64_t wait = wait_for(leader, now);
    if (wait == 0) break;
    if (wait < *out_wait_ns) *out_wait_ns = wait;
  }
  if (leader == NULL) return false;
  begin(&lane->batch, leader->model, !has_free_lane_beside(lane));
  gather(session, lane, leader);
  decide(&lane->batch, leader);
  return true;
}

/* Parts ----------------------------------------------------------------------------------------------------------- */

static uint32_t graph_of(const rondo_batch *batch, size_t part) {
  if (batch->is_unrecorded) return RONDO_UNRECORDED_PART;
  const size_t repeats = batch->decision.repeats;
  return part < repeats ? batch->model->loaded.recorded->largest : batch->decision.entry->graphs[part - repeats];
}

static bool take_part(rondo_batch *batch, rondo_part *out) {
  if (batch->taken == batch->parts) return false;
  const uint32_t graph = graph_of(batch, batch->taken);
  const size_t left = batch->rows - batch->next_row;
  *out = (rondo_part){.batch = batch, .first = batch->next_row, .rows = left, .graph = graph};
  if (graph != RONDO_UNRECORDED_PART) {
    rondo_session_graph *g = &batch->model->graphs.items[graph];
    if (left > g->rows) out->rows = g->rows;
    batch->padding += g->rows - out->rows;
    g->launches++;
    g->rows_run += out->rows;
    batch->model->info.launches++;
  }
  if (batch->taken == 0) batch->first_graph = graph == RONDO_UNRECORDED_PART ? 0 : graph;
  batch->taken++;
  batch->next_row += out->rows;
  return true;
}

static void unlink_open(rondo_session *session, rondo_batch *batch) {
  for (rondo_batch **at = &session->open; *at != NULL; at = &(*at)->next) {
    if (*at != batch) continue;
    *at = batch->next;
    return;
  }
}

/* Runs the part without the lock. */
static void run_part(rondo_session *session, rondo_lane *lane, const rondo_part *part) {
  rondo_batch *batch = part->batch;
  if (batch->taken == batch->parts) unlink_open(session, batch);
  pthread_mutex_unlock(&session->lock);
  const rondo_status status = rondo_part_run(&batch->model->places[lane->number], part);
  pthread_mutex_lock(&session->lock);
  if (status != RONDO_OK && batch->status == RONDO_OK) {
    batch->status = status;
    rondo_error_save(&batch->error);
  }
  if (++batch->done == batch->parts && batch->parts > 1) pthread_cond_broadcast(&session->change);
}

bool rondo_batch_help(rondo_session *session, rondo_lane *lane) {
  rondo_part part;
  if (session->open == NULL || !take_part(session->open, &part)) return false;
  run_part(session, lane, &part);
  return true;
}

static void run_parts(rondo_session *session, rondo_lane *lane, rondo_batch *batch) {
  if (batch->parts > 1 && session->options.streams > 1) {
    batch->next = session->open;
    session->open = batch;
    pthread_cond_broadcast(&session->work);
  }
  for (rondo_part part; take_part(batch, &part);) run_part(session, lane, &part);
  while (batch->done < batch->parts) pthread_cond_wait(&session->change, &session->lock);
}

/* Answers --------------------------------------------------------------------------------------------------------- */

static rondo_answer answer_of(const rondo_batch *batch, const rondo_lane *lane, const rondo_ticket *ticket,
                              uint64_t now) {
  const bool is_one = batch->parts == 1;
  return (rondo_answer){.struct_size = sizeof(rondo_answer),
                        .way = batch->is_unrecorded ? RONDO_WAY_UNRECORDED
                               : is_one             ? RONDO_WAY_RECORDED
                                                    : RONDO_WAY_DIVIDED,
                        .reason = batch->reason,
                        .graph = batch->first_graph,
                        .graphs = batch->is_unrecorded ? 0 : (uint32_t)batch->parts,
                        .stream = lane->number,
                        .batch_requests = (uint32_t)batch->count,
                        .batch_rows = batch->rows,
                        .padding_rows = batch->padding,
                        .queue_us = (double)(batch->began_ns - ticket->taken_ns) / 1e3,
                        .run_us = (double)(now - batch->began_ns) / 1e3};
}

static void give_answers(const rondo_batch *batch, const rondo_lane *lane) {
  rondo_model_info *info = &batch->model->info;
  const uint64_t now = rondo_clock_ns();
  info->padding_rows += batch->padding;
  info->batches += batch->count > 1;
  info->batched += batch->count > 1 ? batch->count : 0;
  for (size_t i = 0; i < batch->count; i++) {
    rondo_ticket *ticket = batch->requests[i];
    ticket->answer = answer_of(batch, lane, ticket, now);
    rondo_ticket_finish(ticket, batch->status == RONDO_OK ? RONDO_OK : rondo_error_raise(&batch->error));
  }
}

/* Each request by itself, so that what is wrong with one is no matter of the others. */
static void run_alone(rondo_session *session, rondo_lane *lane, const rondo_batch *failed) {
  failed->model->info.isolated++;
  for (size_t i = 0; i < failed->count; i++) {
    rondo_batch alone;
    begin(&alone, failed->model, failed->is_loaded);
    alone.began_ns = failed->began_ns;
    alone.requests[0] = failed->requests[i];
    alone.rows = failed->requests[i]->rows;
    alone.count = 1;
    decide(&alone, failed->requests[i]);
    alone.reason = RONDO_WAY_ALONE;
    run_parts(session, lane, &alone);
    give_answers(&alone, lane);
  }
}

void rondo_batch_lead(rondo_session *session, rondo_lane *lane) {
  rondo_batch *batch = &lane->batch;
  run_parts(session, lane, batch);
  if (batch->status != RONDO_OK && batch->status != RONDO_DEVICE_LOST && batch->count > 1)
    run_alone(session, lane, batch);
  else
    give_answers(batch, lane);
}
