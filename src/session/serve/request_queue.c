/* SPDX-License-Identifier: MIT
 * The queue and tickets. A caller of rondo_session_run that finds a free worker runs the next batch itself. Otherwise
 * the threads of the workers do.
 */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "memory/host_memory.h"
#include "session/model_capture.h"
#include "session/model_values.h"
#include "session/serve/answer_callbacks.h"
#include "session/serve/batch.h"
#include "session/serve/batch_delay.h"
#include "session/serve/request_queue.h"
#include "session/serve/request_steps.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/session_internal.h"

/* States of a request's futex. */
enum { PENDING = 0, DONE = 1, SLEPT_ON = 2 };
enum { SHORT_QUEUE = 16 };

/* The queue -------------------------------------------------------------------------------------------------------- */

void rondo_queue_append(rondo_session *session, rondo_slot *slot) {
  rondo_session_model *model = slot->model;
  slot->next = NULL;
  slot->previous = model->waiting.tail;
  *(slot->previous == NULL ? &model->waiting.head : &slot->previous->next) = slot;
  model->waiting.tail = slot;
  model->waiting_rows += slot->rows;
  session->waiting++;
  rondo_batch_delay_add(slot);
  if (slot->deadline_ns < session->next_deadline_ns) session->next_deadline_ns = slot->deadline_ns;
}

void rondo_queue_remove(rondo_session *session, rondo_slot *slot) {
  rondo_session_model *model = slot->model;
  assert(session->waiting > 0 && model->waiting_rows >= slot->rows);
  *(slot->previous == NULL ? &model->waiting.head : &slot->previous->next) = slot->next;
  *(slot->next == NULL ? &model->waiting.tail : &slot->next->previous) = slot->previous;
  model->waiting_rows -= slot->rows;
  session->waiting--;
  rondo_batch_delay_remove(slot);
}

/* Asserts the list of a model's waiting requests, and that the trees contain the same number of them. */
static void check_model_queue(const rondo_session_model *model, uint64_t next_deadline_ns, size_t *inout_waiting) {
  size_t count = 0, rows = 0, nodes = 0;
  const rondo_slot *last = NULL;
  for (const rondo_slot *at = model->waiting.head; at != NULL; last = at, at = at->next) {
    assert(at->model == model && at->state == RONDO_SLOT_QUEUED);
    assert(at->previous == last);
    assert(last == NULL || last->waiting.order < at->waiting.order);
    assert(at->deadline_ns >= next_deadline_ns);
    count++;
    rows += at->rows;
  }
  assert(model->waiting.tail == last);
  assert(model->waiting_rows == rows);
  for (size_t i = 0; i < RONDO_RUN_CAPTURED; i++) nodes += rondo_waiting_tree_check(&model->waiting_by_mode[i]);
  assert(nodes == count);
  *inout_waiting += count;
  (void)next_deadline_ns, (void)rows, (void)nodes, (void)last;
}

void rondo_session_queue_check(const rondo_session *session) {
  size_t waiting = 0;
  for (const rondo_session_model *m = session->models; m != NULL; m = m->next)
    check_model_queue(m, session->next_deadline_ns, &waiting);
  assert(session->waiting == waiting);
  (void)waiting;
}

/* Checks short queues only, because the check takes time for each waiting request. */
static void check_short_queue(const rondo_session *session) {
#ifndef NDEBUG
  if (session->waiting <= SHORT_QUEUE) rondo_session_queue_check(session);
#else
  (void)session;
#endif
}

static void count_answer(rondo_model_info *info, const rondo_slot *slot, rondo_status status) {
  if (status != RONDO_OK) {
    info->failed += slot->state == RONDO_SLOT_RUNNING;
    return;
  }
  if (slot->answer.mode == RONDO_RUN_CAPTURED) return;
  info->requests++;
  info->rows += slot->rows;
  info->recorded += slot->answer.mode == RONDO_RUN_RECORDED;
  info->split += slot->answer.mode == RONDO_RUN_SPLIT;
  info->eager += slot->answer.mode == RONDO_RUN_EAGER;
}

/* The request no longer keeps its model from being removed, and the session from being drained. */
static void end_use(rondo_slot *slot) {
  rondo_session *session = slot->session;
  assert(slot->model->head->in_use > 0 && session->unanswered > 0);
  slot->model->head->in_use--;
  session->unanswered--;
  if (session->unanswered == 0) pthread_cond_broadcast(&session->change);
}

void rondo_slot_finish(rondo_slot *slot, rondo_status status) {
  slot->error.status = RONDO_OK;
  if (status != RONDO_OK) rondo_error_save(&slot->error);
  count_answer(&slot->model->info, slot, status);
  assert(slot->state == RONDO_SLOT_QUEUED || slot->state == RONDO_SLOT_RUNNING);
  rondo_steps_end(slot);
  slot->state = RONDO_SLOT_DONE;
  if (slot->call_done == NULL)
    end_use(slot);
  else
    rondo_answered_append(slot);
  if (atomic_exchange_explicit(&slot->done, DONE, memory_order_release) == SLEPT_ON)
    rondo_futex_wake(&slot->done, INT_MAX);
}

rondo_status rondo_request_fail_late(const rondo_slot *slot) {
  static const char fix[] = "give it more time (rondo_request.deadline_us), or send fewer requests at once";
  slot->model->info.timed_out++;
  if (slot->steps == 0 && slot->from == 0)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT,
                      "a request of %zu rows for model '%s' did not start before its deadline: %s", slot->rows,
                      slot->model->name, fix);
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT,
                    "a request for model '%s' had %llu steps before its deadline, and had not finished: %s",
                    slot->model->name, (unsigned long long)slot->steps, fix);
}

static void expire(rondo_session *session, rondo_slot *slot) {
  rondo_queue_remove(session, slot);
  rondo_slot_finish(slot, rondo_request_fail_late(slot));
}

void rondo_queue_expire(rondo_session *session, uint64_t now) {
  if (now < session->next_deadline_ns) return;
  for (const rondo_session_model *m = session->models; m != NULL; m = m->next)
    for (rondo_slot *late; (late = rondo_batch_delay_find_expired(m, now)) != NULL;) expire(session, late);
  session->next_deadline_ns = rondo_batch_delay_next_deadline(session);
}

/* Accepting -------------------------------------------------------------------------------------------------------- */

static rondo_status check_count(const char *call, const rondo_session_model *model, const char *what, size_t count,
                                size_t given) {
  if (given == 0 || given == count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                    "%s: model '%s' has %zu %s%s, and the request gives %zu: give as many", call, model->name, count,
                    what, count == 1 ? "" : "s", given);
}

static rondo_status check_device_value(const char *call, const rondo_session_model *model,
                                       const rondo_session_value *value, const void *address) {
  rondo_device *device = model->session->device;
  bool is_device = true;
  if (device->ops->knows_address == NULL || (device->ops->knows_address(device, address, &is_device) && is_device))
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_WRONG_MEMORY,
                    "%s: '%s' of model '%s' at %p is not memory of a device: clear its bit in "
                    "rondo_request.device_inputs or device_outputs",
                    call, value->name, model->name, address);
}

static rondo_status check_addresses(const char *call, const rondo_session_model *model, const rondo_request *r) {
  for (size_t i = 0; i < model->given_inputs; i++)
    if ((r->device_inputs >> i & 1) != 0)
      RONDO_TRY(check_device_value(call, model, &model->inputs.items[i], r->inputs[i]));
  for (size_t i = 0; i < model->outputs.count; i++)
    if ((r->device_outputs >> i & 1) != 0 && r->outputs != NULL && r->outputs[i] != NULL)
      RONDO_TRY(check_device_value(call, model, &model->outputs.items[i], r->outputs[i]));
  return RONDO_OK;
}

static rondo_status check_values(const char *call, const rondo_session_model *model, const rondo_request *r) {
  RONDO_TRY(check_count(call, model, "input", model->given_inputs, r->input_count));
  RONDO_TRY(check_count(call, model, "output", model->outputs.count, r->output_count));
  for (size_t i = 0; i < model->given_inputs; i++)
    RONDO_TRY(rondo_require(call, model->inputs.items[i].name, r->inputs[i]));
  if ((r->device_inputs | r->device_outputs) != 0 && (model->devices != NULL || model->length > 0))
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_WRONG_MEMORY,
                      "%s: model '%s' %s, so its inputs and outputs must be host memory: copy them", call, model->name,
                      model->devices != NULL ? "is divided" : "has lengths");
  return rondo_model_check_rows(call, model, r->rows);
}

/* Without the lock, because the driver is asked for the addresses. What else is wrong with the request, taking it says.
 */
static rondo_status check_device_memory(const char *call, rondo_session *session, const char *name,
                                        const rondo_request *r) {
  rondo_session_model *model;
  if ((r->device_inputs | r->device_outputs) == 0) return RONDO_OK;
  RONDO_TRY(rondo_session_enter(call, session, name, &model));
  rondo_status status = rondo_request_find_length(call, model, name, r, &model);
  RONDO_THEN(status, status == RONDO_OK ? check_values(call, model, r) : RONDO_OK);
  model->head->in_use++; /* so the model cannot be removed */
  pthread_mutex_unlock(&session->lock);
  if (status == RONDO_OK) status = check_addresses(call, model, r);
  pthread_mutex_lock(&session->lock);
  model->head->in_use--;
  pthread_cond_broadcast(&session->change);
  pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_status check_request(const char *call, const rondo_request *r) {
  RONDO_TRY(rondo_require(call, "inputs", r->inputs));
  if (r->rows == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a request of 0 rows: give at least 1", call);
  RONDO_TRY(rondo_request_check_lengths(call, r));
  if (r->mode == RONDO_RUN_AUTO || r->mode == RONDO_RUN_RECORDED || r->mode == RONDO_RUN_EAGER) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: mode %d cannot be requested; use AUTO (%d), RECORDED (%d) or EAGER (%d)", call, (int)r->mode,
                    RONDO_RUN_AUTO, RONDO_RUN_RECORDED, RONDO_RUN_EAGER);
}

static rondo_status check_state(const char *call, rondo_session *session, rondo_session_model *model,
                                const rondo_request *r) {
  if (session->is_draining)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                      "%s: the session takes no more requests: rondo_session_drain or rondo_session_destroy was called",
                      call);
  if (model->head->is_changing && !rondo_model_is_captured(model))
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                      "%s: model '%s' is being captured or changed: try again after that", call, model->name);
  return rondo_request_require_graphs(call, model, r);
}

static rondo_status take_slot(const char *call, rondo_session_model *model, rondo_slot **out) {
  rondo_session *session = model->session;
  if (session->free_slots == NULL) {
    model->info.refused++;
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
                      "%s: %u requests already wait or run (rondo_session_options.max_queue): try again later", call,
                      session->options.max_queue);
  }
  *out = session->free_slots;
  assert((*out)->state == RONDO_SLOT_FREE);
  session->free_slots = (*out)->next_free;
  session->used_slots++;
  session->unanswered++;
  model->head->in_use++;
  return RONDO_OK;
}

/* Sets a bit for each input that the device can copy without staging memory. */
static uint64_t find_direct(const rondo_session_model *model, const rondo_request *r) {
  rondo_device_memory *memory = rondo_device_memory_made(model->session->device);
  uint64_t direct = 0;
  if (!model->session->is_cuda) return UINT64_MAX;
  for (size_t i = 0; memory != NULL && i < model->given_inputs; i++)
    if (model->inputs.items[i].position_bytes == 0 &&
        rondo_memory_host_has(memory, r->inputs[i], model->inputs.items[i].row_bytes * r->rows))
      direct |= UINT64_C(1) << i;
  return direct;
}

static void fill_slot(rondo_slot *slot, rondo_session_model *model, const rondo_request *r) {
  slot->model = model;
  slot->mode = r->mode;
  slot->rows = r->rows;
  slot->accepted_ns = rondo_clock_ns();
  slot->deadline_ns = UINT64_MAX;
  if (r->deadline_us > 0 && r->deadline_us < (UINT64_MAX - slot->accepted_ns) / 1000)
    slot->deadline_ns = slot->accepted_ns + r->deadline_us * 1000;
  memcpy(slot->inputs, r->inputs, model->given_inputs * sizeof *slot->inputs);
  slot->direct = find_direct(model, r) | r->device_inputs;
  slot->device_inputs = r->device_inputs;
  slot->device_outputs = r->device_outputs;
  memset(slot->outputs, 0, model->outputs.count * sizeof *slot->outputs);
  if (r->outputs != NULL) memcpy(slot->outputs, r->outputs, model->outputs.count * sizeof *slot->outputs);
  slot->answer = (rondo_answer){.struct_size = sizeof slot->answer};
  slot->state = RONDO_SLOT_QUEUED;
  atomic_store_explicit(&slot->done, PENDING, memory_order_release); /* also publishes the new number */
}

/* Under the lock. A request in capture mode is not queued. */
static rondo_status take(const char *call, rondo_session *session, const char *name, const rondo_request *r,
                         rondo_slot **out) {
  rondo_session_model *model;
  struct rondo_cache_slot *sequence;
  RONDO_TRY(rondo_session_find(session, call, name, &model));
  RONDO_TRY(rondo_request_find_length(call, model, name, r, &model));
  RONDO_TRY(check_values(call, model, r));
  RONDO_TRY(check_state(call, session, model, r));
  RONDO_TRY(rondo_request_find_sequence(call, model, r, &sequence));
  RONDO_TRY(take_slot(call, model, out));
  fill_slot(*out, model, r);
  rondo_steps_begin(*out, r, sequence);
  if (r->done != NULL) /* nobody waits for it */
    atomic_fetch_or_explicit(&(*out)->number, RONDO_SLOT_CLAIMED, memory_order_release);
  if (!rondo_model_is_captured(model)) rondo_queue_append(session, *out);
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

/* Capture mode ----------------------------------------------------------------------------------------------------- */

/* Under the lock, which is released while recording. One thread records at a time. */
static void record(rondo_session *session, rondo_slot *slot) {
  rondo_session_model *model = slot->model;
  while (model->head->is_recording) pthread_cond_wait(&session->change, &session->lock);
  model->head->is_recording = true;
  pthread_mutex_unlock(&session->lock);
  const rondo_status status = rondo_session_record(model, slot->rows);
  pthread_mutex_lock(&session->lock);
  model->head->is_recording = false;
  pthread_cond_broadcast(&session->change);
  slot->state = RONDO_SLOT_RUNNING;
  slot->answer.mode = RONDO_RUN_CAPTURED;
  slot->answer.reason = RONDO_RUN_CAPTURING;
  slot->answer.graph = model->graphs.count == 0 ? 0 : (uint32_t)model->graphs.count - 1;
  rondo_slot_finish(slot, status);
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

static void wait_past_deadline(rondo_slot *slot) {
  rondo_session *session = slot->session;
  pthread_mutex_lock(&session->lock);
  if (slot->state == RONDO_SLOT_QUEUED) expire(session, slot);
  pthread_mutex_unlock(&session->lock);
}

static void wait_until_done(rondo_slot *slot) {
  uint64_t deadline = slot->deadline_ns;
  for (;;) {
    uint32_t seen = PENDING;
    if (!atomic_compare_exchange_strong_explicit(&slot->done, &seen, SLEPT_ON, memory_order_acquire,
                                                 memory_order_acquire) &&
        seen == DONE)
      return;
    const uint64_t now = deadline == UINT64_MAX ? 0 : rondo_clock_ns();
    if (deadline == UINT64_MAX) {
      rondo_futex_wait(&slot->done, SLEPT_ON);
    } else if (now < deadline) {
      rondo_futex_wait_for(&slot->done, SLEPT_ON, deadline - now);
    } else {
      wait_past_deadline(slot);
      deadline = UINT64_MAX; /* the request runs or is done */
    }
  }
}

void rondo_slot_free(rondo_slot *slot) {
  rondo_session *session = slot->session;
  assert(slot->state == RONDO_SLOT_DONE && session->used_slots > 0);
  if (slot->call_done != NULL) end_use(slot);
  const uint64_t number = atomic_load_explicit(&slot->number, memory_order_relaxed) & ~RONDO_SLOT_CLAIMED;
  atomic_store_explicit(&slot->number, number + RONDO_SLOT_REUSED, memory_order_release);
  slot->state = RONDO_SLOT_FREE;
  slot->next_free = session->free_slots;
  session->free_slots = slot;
  session->used_slots--;
}

/* Returns the answer and frees the slot. */
static rondo_status finish_ticket(rondo_slot *slot, rondo_answer *out_answer) {
  rondo_session *session = slot->session;
  const rondo_status status = rondo_error_raise(&slot->error);
  rondo_status written = RONDO_OK;
  if (out_answer != NULL && status == RONDO_OK)
    written = rondo_versioned_write("rondo_answer", &slot->answer, out_answer, sizeof slot->answer);
  pthread_mutex_lock(&session->lock);
  rondo_slot_free(slot);
  pthread_mutex_unlock(&session->lock);
  return status == RONDO_OK ? written : status;
}

/* Tickets ---------------------------------------------------------------------------------------------------------- */

void rondo_slots_init_numbers(rondo_slot *slots, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) atomic_init(&slots[i].number, RONDO_SLOT_REUSED | (uint64_t)i << 1);
}

/* The slot of the ticket; NULL: the session has no such ticket. */
static rondo_slot *find_slot(rondo_ticket ticket) {
  const uint64_t index = ticket.number % RONDO_SLOT_REUSED >> 1;
  const bool is_one = (ticket.number & RONDO_SLOT_CLAIMED) == 0 && index < ticket.session->options.max_queue;
  return is_one ? &ticket.session->slots[index] : NULL;
}

static bool is_of(const rondo_slot *slot, rondo_ticket ticket) {
  if (slot == NULL) return false;
  return (atomic_load_explicit(&slot->number, memory_order_acquire) & ~RONDO_SLOT_CLAIMED) == ticket.number;
}

static rondo_status fail_stale(const char *call, const char *why) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET, "%s: %s: a ticket is waited for once", call, why);
}

/* The first thread to claim the ticket may wait for it. */
static rondo_status claim_ticket(const char *call, rondo_ticket ticket, rondo_slot *slot) {
  uint64_t number = ticket.number;
  if (slot != NULL && atomic_compare_exchange_strong_explicit(&slot->number, &number, number | RONDO_SLOT_CLAIMED,
                                                              memory_order_acquire, memory_order_relaxed))
    return RONDO_OK;
  return fail_stale(call, number == (ticket.number | RONDO_SLOT_CLAIMED)
                              ? "another thread waits for the ticket, or its request has a callback"
                              : "the ticket was waited for already");
}

rondo_status rondo_ticket_wait(rondo_ticket ticket, rondo_answer *out_answer) {
  static const char call[] = "rondo_ticket_wait";
  RONDO_TRY(rondo_require(call, "the ticket", ticket.session));
  RONDO_TRY(rondo_session_front(call, ticket.session));
  RONDO_TRY(rondo_versioned_check("rondo_answer", out_answer, sizeof *out_answer));
  rondo_slot *slot = find_slot(ticket);
  RONDO_TRY(claim_ticket(call, ticket, slot));
  wait_until_done(slot);
  return finish_ticket(slot, out_answer);
}

/* The state that was read belongs to the ticket if the slot has its number before and after reading. */
rondo_status rondo_ticket_query(rondo_ticket ticket) {
  static const char call[] = "rondo_ticket_query";
  RONDO_TRY(rondo_require(call, "the ticket", ticket.session));
  RONDO_TRY(rondo_device_require_own(call, ticket.session->device));
  const rondo_slot *slot = find_slot(ticket);
  const bool was_there = is_of(slot, ticket);
  const bool is_done = was_there && atomic_load_explicit(&slot->done, memory_order_acquire) == DONE;
  if (!was_there || !is_of(slot, ticket)) return fail_stale(call, "the ticket was waited for already");
  return is_done ? RONDO_OK : RONDO_NOT_READY;
}

/* Under the lock. */
static void cancel(rondo_session *session, rondo_slot *slot) {
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_queue_remove(session, slot);
  slot->model->info.cancelled++;
  rondo_slot_finish(slot,
                    rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED,
                               "the request of %zu rows for model '%s' was cancelled", slot->rows, slot->model->name));
  rondo_error_restore(&error);
}

void rondo_ticket_cancel(rondo_ticket ticket) {
  rondo_session *session = ticket.session;
  if (session == NULL || session->device->is_inherited) return;
  rondo_slot *slot = find_slot(ticket);
  pthread_mutex_lock(&session->lock);
  if (is_of(slot, ticket) && slot->state == RONDO_SLOT_QUEUED) cancel(session, slot);
  if (is_of(slot, ticket) && slot->state == RONDO_SLOT_RUNNING) slot->is_cancelled = true;
  rondo_session_call_back(session);
  pthread_mutex_unlock(&session->lock);
}

/* Running and submitting ------------------------------------------------------------------------------------------- */

static rondo_stream_worker *find_free_worker(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (rondo_stream_worker_is_free(&session->workers[i])) return &session->workers[i];
  return NULL;
}

/* Under the lock. If a worker is free, runs one batch on it. Failures of other requests do not change the caller's last
 * error. */
static void run_or_wake(rondo_session *session) {
  rondo_stream_worker *worker = find_free_worker(session);
  uint64_t wait_ns;
  rondo_saved_error before;
  if (worker == NULL) return;
  rondo_error_save(&before);
  if (rondo_batch_form(session, worker, &wait_ns)) {
    worker->is_claimed = true;
    rondo_batch_run(session, worker);
    worker->is_claimed = false;
    pthread_cond_broadcast(&session->change);
  }
  rondo_error_restore(&before);
  rondo_stream_workers_wake_for_rest(session);
  rondo_session_call_back(session);
}

rondo_status rondo_session_run(rondo_session *session, const char *model, const rondo_request *request,
                               rondo_answer *out_answer) {
  static const char call[] = "rondo_session_run";
  rondo_request r;
  rondo_slot *slot = NULL;
  RONDO_TRY(read_request(call, session, model, request, &r));
  if (r.done != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: rondo_request.done is for submitted requests: use rondo_session_submit, or leave it NULL",
                      call);
  RONDO_TRY(rondo_versioned_check("rondo_answer", out_answer, sizeof *out_answer));
  RONDO_TRY(check_device_memory(call, session, model, &r));
  pthread_mutex_lock(&session->lock);
  const rondo_status status = take(call, session, model, &r, &slot);
  if (status == RONDO_OK && rondo_model_is_captured(slot->model))
    record(session, slot);
  else if (status == RONDO_OK)
    run_or_wake(session);
  check_short_queue(session);
  pthread_mutex_unlock(&session->lock);
  RONDO_TRY(status);
  wait_until_done(slot);
  return finish_ticket(slot, out_answer);
}

/* Under the lock. The request may be answered once the lock is released, and then its slot may have another one. */
static rondo_status submit(const char *call, rondo_session *session, const char *model, const rondo_request *r,
                           rondo_ticket *out_ticket) {
  rondo_slot *slot;
  RONDO_TRY(take(call, session, model, r, &slot));
  *out_ticket =
      (rondo_ticket){session, atomic_load_explicit(&slot->number, memory_order_relaxed) & ~RONDO_SLOT_CLAIMED};
  if (rondo_model_is_captured(slot->model)) record(session, slot);
  return RONDO_OK;
}

/* Under the lock, which is released. Others do not wait for callbacks. */
static void run_submitted(rondo_session *session) {
  if (session->answered != NULL) rondo_stream_workers_wake_for_rest(session);
  rondo_session_call_back(session);
  check_short_queue(session);
  rondo_stream_workers_unlock_and_wake(session);
}

rondo_status rondo_session_submit(rondo_session *session, const char *model, const rondo_request *request,
                                  rondo_ticket *out_ticket) {
  static const char call[] = "rondo_session_submit";
  rondo_request r;
  RONDO_TRY(rondo_require(call, "out_ticket", out_ticket));
  *out_ticket = (rondo_ticket){.session = NULL};
  RONDO_TRY(read_request(call, session, model, request, &r));
  RONDO_TRY(check_device_memory(call, session, model, &r));
  pthread_mutex_lock(&session->lock);
  const rondo_status status = submit(call, session, model, &r, out_ticket);
  run_submitted(session);
  return status;
}

/* Recording releases the lock, so in capture mode others could run before the last request is accepted. */
static rondo_status check_batch(const char *call, rondo_session *session, const char *name, size_t count) {
  rondo_session_model *model;
  RONDO_TRY(rondo_session_find(session, call, name, &model));
  if (count == 1 || !rondo_model_is_captured(model)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                    "%s: model '%s' is being captured, and there are %zu requests: submit one at a time", call,
                    model->name, count);
}

static rondo_status submit_all(const char *call, rondo_session *session, const char *model,
                               const rondo_request *const *requests, size_t count, rondo_ticket *out_tickets,
                               size_t *out_accepted) {
  rondo_request r;
  RONDO_TRY(check_batch(call, session, model, count));
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(read_request(call, session, model, requests[i], &r));
    RONDO_TRY(submit(call, session, model, &r, &out_tickets[i]));
    ++*out_accepted;
  }
  return RONDO_OK;
}

/* How many requests, from the first one, have right values in device memory. `out_status` is why there are no more. */
static size_t count_checked(const char *call, rondo_session *session, const char *model,
                            const rondo_request *const *requests, size_t count, rondo_status *out_status) {
  rondo_request r;
  size_t checked = 0;
  *out_status = RONDO_OK;
  for (; checked < count; checked++) {
    *out_status = read_request(call, session, model, requests[checked], &r);
    if (*out_status == RONDO_OK) *out_status = check_device_memory(call, session, model, &r);
    if (*out_status != RONDO_OK) break;
  }
  return checked;
}

rondo_status rondo_session_submit_batch(rondo_session *session, const char *model, const rondo_request *const *requests,
                                        size_t count, rondo_ticket *out_tickets, size_t *out_accepted) {
  static const char call[] = "rondo_session_submit_batch";
  RONDO_TRY(rondo_require(call, "out_tickets", out_tickets));
  RONDO_TRY(rondo_require(call, "out_accepted", out_accepted));
  *out_accepted = 0;
  for (size_t i = 0; i < count; i++) out_tickets[i] = (rondo_ticket){.session = NULL};
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "model", model));
  RONDO_TRY(rondo_require(call, "requests", requests));
  if (count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: no requests: give at least 1", call);
  rondo_status refused;
  rondo_saved_error why;
  const size_t checked = count_checked(call, session, model, requests, count, &refused);
  if (refused != RONDO_OK) rondo_error_save(&why);
  pthread_mutex_lock(&session->lock);
  const rondo_status status = submit_all(call, session, model, requests, checked, out_tickets, out_accepted);
  run_submitted(session);
  if (status != RONDO_OK || refused == RONDO_OK) return status;
  rondo_error_restore(&why);
  return refused;
}
