/* SPDX-License-Identifier: MIT
 * Requests: taken into a bounded number of slots, queued, waited for. A slot is the ticket. The caller of
 * rondo_session_run that finds a lane free runs what waits by itself; otherwise the lanes' threads do.
 */
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/versioned.h"
#include "exec/front.h"
#include "memory/device_memory.h"
#include "session/session_internal.h"

/* What a ticket's futex says. */
enum { PENDING = 0, DONE = 1, AWAITED = 2 };

/* The queue ------------------------------------------------------------------------------------------------------- */

static void append(rondo_session *session, rondo_ticket *ticket) {
  ticket->next = NULL;
  ticket->before = session->tail;
  if (session->tail == NULL)
    session->head = ticket;
  else
    session->tail->next = ticket;
  session->tail = ticket;
  ticket->model->waiting_rows += ticket->rows;
  if (ticket->deadline_ns < session->next_deadline_ns) session->next_deadline_ns = ticket->deadline_ns;
}

void rondo_queue_remove(rondo_session *session, rondo_ticket *ticket) {
  if (ticket->before == NULL)
    session->head = ticket->next;
  else
    ticket->before->next = ticket->next;
  if (ticket->next == NULL)
    session->tail = ticket->before;
  else
    ticket->next->before = ticket->before;
  ticket->model->waiting_rows -= ticket->rows;
}

static void count_answer(rondo_model_info *info, const rondo_ticket *ticket, rondo_status status) {
  if (status != RONDO_OK) {
    info->failed += ticket->state == RONDO_SLOT_RUNNING;
    return;
  }
  if (ticket->answer.way == RONDO_WAY_CAPTURED) return;
  info->requests++;
  info->rows += ticket->rows;
  info->recorded += ticket->answer.way == RONDO_WAY_RECORDED;
  info->divided += ticket->answer.way == RONDO_WAY_DIVIDED;
  info->unrecorded += ticket->answer.way == RONDO_WAY_UNRECORDED;
}

void rondo_ticket_finish(rondo_ticket *ticket, rondo_status status) {
  rondo_session *session = ticket->session;
  ticket->error.status = RONDO_OK;
  if (status != RONDO_OK) rondo_error_save(&ticket->error);
  count_answer(&ticket->model->info, ticket, status);
  ticket->model->taken--;
  session->running--;
  if (session->running == 0) pthread_cond_broadcast(&session->change);
  ticket->state = RONDO_SLOT_DONE;
  if (atomic_exchange_explicit(&ticket->done, DONE, memory_order_release) == AWAITED)
    rondo_futex_wake(&ticket->done, INT_MAX);
}

static void expire(rondo_session *session, rondo_ticket *ticket) {
  rondo_queue_remove(session, ticket);
  ticket->model->info.timed_out++;
  rondo_ticket_finish(ticket, rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT,
                                         "a request of %zu rows for model '%s' had not begun to run by its deadline",
                                         ticket->rows, ticket->model->name));
}

void rondo_queue_expire(rondo_session *session, uint64_t now) {
  uint64_t deadline = UINT64_MAX;
  if (now < session->next_deadline_ns) return;
  for (rondo_ticket *at = session->head, *next; at != NULL; at = next) {
    next = at->next;
    if (at->deadline_ns <= now)
      expire(session, at);
    else if (at->deadline_ns < deadline)
      deadline = at->deadline_ns;
  }
  session->next_deadline_ns = deadline;
}

/* Taking ---------------------------------------------------------------------------------------------------------- */

static rondo_status check_values(const char *call, const rondo_session_model *model, const rondo_request *r) {
  if ((r->input_count != 0 && r->input_count != model->inputs.count) ||
      (r->output_count != 0 && r->output_count != model->outputs.count))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                      "%s: model '%s' has %zu inputs and %zu outputs, not %zu and %zu", call, model->name,
                      model->inputs.count, model->outputs.count, r->input_count, r->output_count);
  for (size_t i = 0; i < model->inputs.count; i++) {
    size_t bytes;
    RONDO_TRY(rondo_require(call, model->inputs.items[i].name, r->inputs[i]));
    if (!rondo_checked_multiply(model->inputs.items[i].row_bytes, r->rows, &bytes))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "%s: %zu rows of '%s' have more bytes than there are", call, r->rows,
                        model->inputs.items[i].name);
  }
  return RONDO_OK;
}

static rondo_status check_request(const char *call, const rondo_request *r) {
  RONDO_TRY(rondo_require(call, "inputs", r->inputs));
  if (r->rows == 0) return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a request of no rows", call);
  if (r->way == RONDO_WAY_AUTO || r->way == RONDO_WAY_RECORDED || r->way == RONDO_WAY_UNRECORDED) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: there is no way %d to ask for", call,
                    (int)r->way);
}

static rondo_status check_state(const char *call, rondo_session *session, rondo_session_model *model,
                                const rondo_request *r) {
  if (session->is_draining)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE, "%s: the session takes no more requests", call);
  if (model->is_changing && session->capturing != model)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                      "%s: model '%s' is being captured or changed", call, model->name);
  const bool wants_graph = r->way == RONDO_WAY_RECORDED || (session->options.strict && r->way == RONDO_WAY_AUTO);
  if (wants_graph && model->idle.any == NULL && session->capturing != model)
    return rondo_fail(
        RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED,
        "%s: model '%s' has no graph for %zu rows: capture it (rondo_session_capture), or let the request "
        "run un-recorded",
        call, model->name, r->rows);
  return RONDO_OK;
}

static rondo_status take_slot(const char *call, rondo_session_model *model, rondo_ticket **out) {
  rondo_session *session = model->session;
  if (session->free_slots == NULL) {
    model->info.refused++;
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
                      "%s: %u requests wait or run already (rondo_session_options.max_queue): try again later", call,
                      session->options.max_queue);
  }
  *out = session->free_slots;
  session->free_slots = (*out)->next;
  session->taken++;
  session->running++;
  model->taken++;
  return RONDO_OK;
}

/* Which inputs need not be put together in staging memory first. */
static uint64_t find_direct(const rondo_session_model *model, const rondo_request *r) {
  rondo_device_memory *memory = rondo_device_memory_made(model->session->device);
  uint64_t direct = 0;
  if (!model->session->is_cuda) return UINT64_MAX;
  for (size_t i = 0; memory != NULL && i < model->inputs.count; i++)
    if (rondo_memory_host_has(memory, r->inputs[i], model->inputs.items[i].row_bytes * r->rows))
      direct |= UINT64_C(1) << i;
  return direct;
}

static void fill_slot(rondo_ticket *ticket, rondo_session_model *model, const rondo_request *r) {
  ticket->model = model;
  ticket->way = r->way;
  ticket->rows = r->rows;
  ticket->taken_ns = rondo_clock_ns();
  ticket->deadline_ns = UINT64_MAX;
  if (r->deadline_us > 0 && r->deadline_us < (UINT64_MAX - ticket->taken_ns) / 1000)
    ticket->deadline_ns = ticket->taken_ns + r->deadline_us * 1000;
  memcpy(ticket->inputs, r->inputs, model->inputs.count * sizeof *ticket->inputs);
  ticket->direct = find_direct(model, r);
  memset(ticket->outputs, 0, model->outputs.count * sizeof *ticket->outputs);
  if (r->outputs != NULL) memcpy(ticket->outputs, r->outputs, model->outputs.count * sizeof *ticket->outputs);
  ticket->answer = (rondo_answer){.struct_size = sizeof ticket->answer};
  ticket->state = RONDO_SLOT_QUEUED;
  atomic_store_explicit(&ticket->done, PENDING, memory_order_relaxed);
}

/* Under the lock. In capture mode the ticket is not queued. */
static rondo_status take(const char *call, rondo_session *session, const char *name, const rondo_request *r,
                         rondo_ticket **out) {
  rondo_session_model *model;
  RONDO_TRY(rondo_session_find(session, call, name, &model));
  RONDO_TRY(check_values(call, model, r));
  RONDO_TRY(check_state(call, session, model, r));
  RONDO_TRY(take_slot(call, model, out));
  fill_slot(*out, model, r);
  if (session->capturing != model) append(session, *out);
  return RONDO_OK;
}

static rondo_status read_request(const char *call, rondo_session *session, const char *name,
                                 const rondo_request *request, rondo_request *out) {
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "model", name));
  RONDO_TRY(rondo_require(call, "request", request));
  RONDO_TRY(rondo_versioned_read("rondo_request", request, out, sizeof *out));
  return check_request(call, out);
}

/* Capture mode ---------------------------------------------------------------------------------------------------- */

/* Under the lock, which is given up meanwhile. One records at a time. */
static void record(rondo_session *session, rondo_ticket *ticket) {
  rondo_session_model *model = ticket->model;
  while (model->is_recording) pthread_cond_wait(&session->change, &session->lock);
  model->is_recording = true;
  pthread_mutex_unlock(&session->lock);
  const rondo_status status = rondo_session_record(model, ticket->rows);
  pthread_mutex_lock(&session->lock);
  model->is_recording = false;
  pthread_cond_broadcast(&session->change);
  ticket->state = RONDO_SLOT_RUNNING;
  ticket->answer.way = RONDO_WAY_CAPTURED;
  ticket->answer.reason = RONDO_WAY_CAPTURING;
  ticket->answer.graph = model->graphs.count == 0 ? 0 : (uint32_t)model->graphs.count - 1;
  rondo_ticket_finish(ticket, status);
}

/* Waiting --------------------------------------------------------------------------------------------------------- */

static void wait_past_deadline(rondo_ticket *ticket) {
  rondo_session *session = ticket->session;
  pthread_mutex_lock(&session->lock);
  if (ticket->state == RONDO_SLOT_QUEUED) expire(session, ticket);
  pthread_mutex_unlock(&session->lock);
}

static void wait_until_done(rondo_ticket *ticket) {
  uint64_t deadline = ticket->deadline_ns;
  for (;;) {
    uint32_t seen = PENDING;
    if (!atomic_compare_exchange_strong_explicit(&ticket->done, &seen, AWAITED, memory_order_acquire,
                                                 memory_order_acquire) &&
        seen == DONE)
      return;
    const uint64_t now = deadline == UINT64_MAX ? 0 : rondo_clock_ns();
    if (deadline == UINT64_MAX) {
      rondo_futex_wait(&ticket->done, AWAITED);
    } else if (now < deadline) {
      rondo_futex_wait_for(&ticket->done, AWAITED, deadline - now);
    } else {
      wait_past_deadline(ticket);
      deadline = UINT64_MAX; /* it runs, or is done */
    }
  }
}

/* The answer and the slot are given back. */
static rondo_status settle(rondo_ticket *ticket, rondo_answer *out_answer) {
  rondo_session *session = ticket->session;
  const rondo_status status = rondo_error_raise(&ticket->error);
  rondo_status written = RONDO_OK;
  if (out_answer != NULL && status == RONDO_OK)
    written = rondo_versioned_write("rondo_answer", &ticket->answer, out_answer, sizeof ticket->answer);
  pthread_mutex_lock(&session->lock);
  ticket->state = RONDO_SLOT_FREE;
  ticket->next = session->free_slots;
  session->free_slots = ticket;
  session->taken--;
  pthread_mutex_unlock(&session->lock);
  return status == RONDO_OK ? written : status;
}

rondo_status rondo_ticket_wait(rondo_ticket *ticket, rondo_answer *out_answer) {
  RONDO_TRY(rondo_front("rondo_ticket_wait", "the ticket", ticket));
  wait_until_done(ticket);
  return settle(ticket, out_answer);
}

rondo_status rondo_ticket_query(rondo_ticket *ticket) {
  RONDO_TRY(rondo_require("rondo_ticket_query", "the ticket", ticket));
  return atomic_load_explicit(&ticket->done, memory_order_acquire) == DONE ? RONDO_OK : RONDO_NOT_READY;
}

void rondo_ticket_cancel(rondo_ticket *ticket) {
  if (ticket == NULL) return;
  rondo_session *session = ticket->session;
  pthread_mutex_lock(&session->lock);
  if (ticket->state == RONDO_SLOT_QUEUED) {
    rondo_saved_error error;
    rondo_error_save(&error);
    rondo_queue_remove(session, ticket);
    ticket->model->info.cancelled++;
    rondo_ticket_finish(
        ticket, rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED,
                           "the request of %zu rows for model '%s' was cancelled", ticket->rows, ticket->model->name));
    rondo_error_restore(&error);
  }
  pthread_mutex_unlock(&session->lock);
}

/* The front doors ------------------------------------------------------------------------------------------------- */

static rondo_lane *find_free_lane(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (rondo_lane_is_free(&session->lanes[i])) return &session->lanes[i];
  return NULL;
}

/* Under the lock: the caller runs what is ripe on a free lane, once; else the lanes' threads are told. What becomes of
 * other requests is none of the caller's errors. */
static void run_or_tell(rondo_session *session) {
  rondo_lane *lane = find_free_lane(session);
  uint64_t wait_ns;
  rondo_saved_error before;
  if (lane == NULL) return;
  rondo_error_save(&before);
  if (rondo_batch_form(session, lane, &wait_ns)) {
    lane->is_claimed = true;
    rondo_batch_lead(session, lane);
    lane->is_claimed = false;
    pthread_cond_broadcast(&session->change);
  }
  rondo_error_restore(&before);
  if (session->head != NULL || session->open != NULL) pthread_cond_broadcast(&session->work);
}

rondo_status rondo_session_run(rondo_session *session, const char *model, const rondo_request *request,
                               rondo_answer *out_answer) {
  static const char call[] = "rondo_session_run";
  rondo_request r;
  rondo_ticket *ticket = NULL;
  RONDO_TRY(read_request(call, session, model, request, &r));
  pthread_mutex_lock(&session->lock);
  const rondo_status status = take(call, session, model, &r, &ticket);
  if (status == RONDO_OK && session->capturing == ticket->model)
    record(session, ticket);
  else if (status == RONDO_OK)
    run_or_tell(session);
  pthread_mutex_unlock(&session->lock);
  RONDO_TRY(status);
  wait_until_done(ticket);
  return settle(ticket, out_answer);
}

rondo_status rondo_session_submit(rondo_session *session, const char *model, const rondo_request *request,
                                  rondo_ticket **out_ticket) {
  static const char call[] = "rondo_session_submit";
  rondo_request r;
  RONDO_TRY(rondo_require(call, "out_ticket", out_ticket));
  *out_ticket = NULL;
  RONDO_TRY(read_request(call, session, model, request, &r));
  pthread_mutex_lock(&session->lock);
  rondo_ticket *ticket = NULL;
  const rondo_status status = take(call, session, model, &r, &ticket);
  if (status == RONDO_OK && session->capturing == ticket->model) record(session, ticket);
  if (status == RONDO_OK) pthread_cond_broadcast(&session->work);
  pthread_mutex_unlock(&session->lock);
  if (status == RONDO_OK) *out_ticket = ticket;
  return status;
}
