/* SPDX-License-Identifier: MIT
 * A request with a sequence is one or more steps, and a step is one or more parts. After each part the request goes to
 * the end of the queue of the length that fits what is left. So steps of other sequences run between the parts of a
 * long prompt, and sequences join and leave the batches of steps.
 *
 * The sequence gets the positions of a step when all parts of it are done. So after a failure it is as before the step.
 * A request for the network that reads sources is one part, and sets the positions of the source instead.
 */
#include <assert.h>

#include "base/clock.h"
#include "exec/api_check.h"
#include "session/model_lengths.h"
#include "session/serve/cache_slots.h"
#include "session/serve/request_queue.h"
#include "session/serve/request_steps.h"
#include "session/session.h"

/* Checks ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_request_check_lengths(const char *call, const rondo_request *r) {
  if (r->lengths == NULL) return RONDO_OK;
  if (r->length == 0 || r->sequence.session != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: lengths of rows need the length of the request, and no sequence (rondo_request.length)",
                      call);
  for (size_t i = 0; i < r->rows; i++)
    if (r->lengths[i] < 1 || (size_t)r->lengths[i] > r->length)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: row %zu has %d valid positions of %zu: give 1 to %zu (rondo_request.lengths)", call, i,
                        (int)r->lengths[i], r->length, r->length);
  return RONDO_OK;
}

static rondo_status check_unsized(const char *call, const rondo_session_model *model, const rondo_request *r) {
  if (r->length == 0 && r->lengths == NULL && r->sequence.session == NULL && r->next == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: model '%s' has no lengths and no sequences: leave length, lengths, sequence and next of "
                    "rondo_request zero",
                    call, model->name);
}

static rondo_status check_next(const char *call, const rondo_session_model *model, const rondo_request *r) {
  const bool has_slots = model->head->slots != NULL;
  if (!has_slots && (r->sequence.session != NULL || r->next != NULL))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: model '%s' has no sequences: make it with slots (rondo_model_options.slots)", call,
                      model->name);
  if (rondo_model_reads_source(model) && r->next != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: model '%s' reads the source of a sequence, in one step: leave next of rondo_request zero",
                      call, model->name);
  if (!has_slots || r->rows == 1 || rondo_model_is_captured(model)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: a request with %zu rows for model '%s', which has sequences: give one row, of one sequence",
                    call, r->rows, model->name);
}

static rondo_status fail_length(const char *call, const rondo_session_model *model, size_t length) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: a request of length %zu for model '%s', whose longest is %zu: give a shorter one, or make the "
                    "model with a longer length (rondo_model_options.lengths)",
                    call, length, model->name, model->length);
}

/* A row that is shorter than its request would be padded. */
static rondo_status check_exact(const char *call, const rondo_session_model *model, const rondo_request *r) {
  for (size_t i = 0; model->has_exact_lengths && r->lengths != NULL && i < r->rows; i++)
    if ((size_t)r->lengths[i] < r->length)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "%s: row %zu has %d valid positions of %zu, and model '%s' cannot be padded "
                        "(rondo_model_options.exact_lengths): make a request for each length",
                        call, i, (int)r->lengths[i], r->length, model->name);
  return RONDO_OK;
}

rondo_status rondo_request_find_length(const char *call, rondo_session_model *named, const char *name,
                                       const rondo_request *r, rondo_session_model **out) {
  const bool is_whole = rondo_model_is_whole(named, name);
  *out = named;
  if (named->length == 0) return check_unsized(call, named, r);
  RONDO_TRY(check_next(call, named, r));
  RONDO_TRY(check_exact(call, named, r));
  if (r->length == 0 && is_whole && rondo_model_lengths_end(named) != named->next)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: model '%s' has several lengths: give that of the request (rondo_request.length)", call,
                      name);
  if (is_whole) *out = rondo_model_lengths_find(named, r->length);
  const bool has_parts = is_whole && named->slots != NULL && !rondo_model_is_captured(named);
  return r->length <= (*out)->length || has_parts ? RONDO_OK : fail_length(call, *out, r->length);
}

static size_t length_of(const rondo_session_model *model, const rondo_request *r) {
  return r->length > 0 ? r->length : model->length;
}

/* The length that runs the last part of a step, whose first part `first` runs. */
static const rondo_session_model *last_length(rondo_session_model *first, size_t positions) {
  if (positions <= first->length || positions % first->length == 0) return first;
  return rondo_model_lengths_find(first->network, positions % first->length);
}

/* Whether no graph of the model fits the length, because lengths are exact. */
static bool is_inexact(const rondo_session_model *model, size_t positions) {
  return model->has_exact_lengths && model->length != positions;
}

/* UNSUPPORTED if the request must not run eagerly, and a part of the step has no graph. */
static rondo_status require_graphs(const char *call, rondo_session_model *first, rondo_run_mode mode, size_t rows,
                                   size_t positions) {
  const bool is_strict = first->session->options.strict && mode == RONDO_RUN_AUTO;
  const rondo_session_model *last = first->length == 0 ? first : last_length(first, positions);
  if (mode != RONDO_RUN_RECORDED && !is_strict) return RONDO_OK;
  if (is_inexact(first, positions))
    return rondo_fail(
        RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED,
        "%s: model '%s' has no graph of exactly %zu positions, and it cannot be padded: give it the length "
        "(rondo_model_options.lengths), or let the request run eagerly (RONDO_RUN_AUTO)",
        call, first->name, positions);
  if (first->idle.any != NULL && last->idle.any != NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED,
                    "%s: model '%s' has no graph for %zu rows: capture it (rondo_session_capture), or let the "
                    "request run eagerly (RONDO_RUN_AUTO)",
                    call, first->idle.any == NULL ? first->name : last->name, rows);
}

rondo_status rondo_request_require_graphs(const char *call, rondo_session_model *model, const rondo_request *r) {
  return rondo_model_is_captured(model) ? RONDO_OK : require_graphs(call, model, r->mode, r->rows, length_of(model, r));
}

static rondo_status require_source(const char *call, const rondo_session_model *model, const rondo_cache_slot *slot) {
  if (model->head->build_source == NULL || slot->source > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_CALL_ORDER,
                    "%s: the sequence in slot %u of model '%s' has no source: run '%s.source' with it first", call,
                    slot->index, model->name, model->head->whole_name);
}

rondo_status rondo_request_find_sequence(const char *call, const rondo_session_model *model, const rondo_request *r,
                                         rondo_cache_slot **out) {
  *out = NULL;
  if (model->head->slots == NULL || rondo_model_is_captured(model)) return RONDO_OK;
  RONDO_TRY(rondo_cache_slot_find(call, model, r->sequence, out));
  if (rondo_model_reads_source(model)) return RONDO_OK;
  RONDO_TRY(require_source(call, model, *out));
  return rondo_cache_slot_check_space(call, model, *out, (*out)->positions, length_of(model, r));
}

/* Parts and steps -------------------------------------------------------------------------------------------------- */

/* The next part has what is left of the step, or as much as the model has. */
static void begin_part(rondo_slot *slot, rondo_session_model *model) {
  const size_t left = slot->length - slot->from;
  slot->model = model;
  slot->positions = left < model->length ? left : model->length;
  const bool has_start = slot->sequence != NULL && !rondo_model_reads_source(model);
  slot->start = has_start ? slot->sequence->positions + slot->from : 0;
  slot->source = has_start ? slot->sequence->source : 0;
}

void rondo_steps_begin(rondo_slot *slot, const rondo_request *r, rondo_cache_slot *sequence) {
  slot->length = length_of(slot->model, r);
  slot->from = 0;
  slot->lengths = r->lengths;
  slot->sequence = sequence;
  slot->next_step = r->next;
  slot->call_done = r->done;
  slot->user = r->user;
  slot->steps = slot->began_ns = slot->next_length = 0;
  slot->is_cancelled = false;
  if (sequence != NULL) rondo_cache_slot_begin_use(sequence);
  begin_part(slot, slot->model);
  slot->has_no_graph = slot->mode == RONDO_RUN_AUTO && is_inexact(slot->model, slot->length);
  if (slot->has_no_graph) slot->mode = RONDO_RUN_EAGER;
}

void rondo_steps_end(rondo_slot *slot) {
  if (slot->sequence != NULL) rondo_cache_slot_end_use(slot->model->head->slots, slot->sequence);
  slot->sequence = NULL;
}

static bool is_last_part(const rondo_slot *slot) { return slot->from + slot->positions == slot->length; }

void rondo_steps_ask(const rondo_batch *batch) {
  rondo_session *session = batch->model->session;
  rondo_session_callback callback;
  bool has_next = false;
  for (size_t i = 0; i < batch->count; i++) has_next |= batch->requests[i]->next_step != NULL;
  if (!has_next) return;
  pthread_mutex_unlock(&session->lock);
  rondo_session_callback_enter(&callback, session);
  for (size_t i = 0; i < batch->count; i++) {
    rondo_slot *slot = batch->requests[i];
    slot->next_length = 0;
    if (slot->next_step != NULL && is_last_part(slot)) slot->next_length = slot->next_step(slot->user, &slot->answer);
  }
  rondo_session_callback_leave(&callback);
  pthread_mutex_lock(&session->lock);
}

/* Ends a step, and checks the next one, if there is one. */
static rondo_status end_step(rondo_slot *slot) {
  static const char call[] = "a step of a request";
  rondo_session_model *network = slot->model->network;
  slot->steps++;
  if (rondo_model_reads_source(slot->model))
    slot->sequence->source = slot->length;
  else
    slot->sequence->positions += slot->length;
  slot->from = 0;
  slot->length = slot->next_length;
  if (slot->length == 0) return RONDO_OK;
  RONDO_TRY(rondo_cache_slot_check_space(call, slot->model, slot->sequence, slot->sequence->positions, slot->length));
  return require_graphs(call, rondo_model_lengths_find(network, slot->length), slot->mode, slot->rows, slot->length);
}

/* Whether a request may wait for its next part. A thread that waits for the answer until the deadline looks at it once,
 * so a late request does not wait again. */
static rondo_status check_waiting(rondo_slot *slot) {
  if (slot->is_cancelled) {
    slot->model->info.cancelled++;
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED,
                      "the request for model '%s' was cancelled after %llu steps", slot->model->name,
                      (unsigned long long)slot->steps);
  }
  const bool is_late = slot->deadline_ns != UINT64_MAX && rondo_clock_ns() >= slot->deadline_ns;
  return is_late ? rondo_request_fail_late(slot) : RONDO_OK;
}

bool rondo_steps_go_on(rondo_slot *slot, rondo_status *out_status) {
  *out_status = RONDO_OK;
  if (slot->sequence == NULL) return false;
  slot->model->info.steps++;
  if (is_last_part(slot))
    *out_status = end_step(slot);
  else
    slot->from += slot->positions;
  if (*out_status != RONDO_OK || slot->length == 0) return false;
  slot->state = RONDO_SLOT_QUEUED; /* what ends it now is not counted as a failure of its work */
  *out_status = check_waiting(slot);
  if (*out_status != RONDO_OK) return false;
  begin_part(slot, rondo_model_lengths_find(slot->model->network, slot->length - slot->from));
  rondo_queue_append(slot->session, slot);
  return true;
}
