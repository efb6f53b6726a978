/* SPDX-License-Identifier: MIT
 * The list of waiting flights. They are in the session's list of flights too. Any thread appends to it; only the
 * watching thread takes flights out, so it can release the lock between two of them.
 */
#include "triton/sequence_requests.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "triton/execution.h"
#include "triton/server_functions.h"

static const rondo_triton_correlation *correlation_of(const rondo_triton_flight *flight) {
  return &flight->options.correlation;
}

/* Whether `later` has to wait for `earlier`: it is of the same sequence, or both need a slot. */
static bool must_follow(const rondo_triton_flight *earlier, const rondo_triton_flight *later) {
  const bool is_same = rondo_triton_has_correlation(correlation_of(later)) &&
                       rondo_triton_is_same_correlation(correlation_of(earlier), correlation_of(later));
  return is_same || (earlier->options.starts && later->options.starts);
}

/* Under the lock. Whether one of those that wait, up to `end`, comes before the flight. */
static bool has_earlier(const rondo_triton_served *served, const rondo_triton_flight *flight,
                        const rondo_triton_flight *end) {
  for (const rondo_triton_flight *at = served->waiting; at != end; at = at->next_waiting)
    if (must_follow(at, flight)) return true;
  return false;
}

/* The tokens that the request and the slot allow. */
static void limit_tokens(rondo_triton_flight *flight) {
  rondo_sequence_info info = {.struct_size = sizeof info};
  flight->most_tokens = flight->options.max_tokens;
  if (rondo_sequence_get_info(flight->request.sequence, &info) != RONDO_OK) return; /* submitting says why */
  const size_t used = info.positions + flight->request.length;
  const uint64_t most = used <= info.max_positions ? info.max_positions - used + 1 : 1;
  if (flight->most_tokens > most) flight->most_tokens = most;
}

static rondo_status begin(rondo_triton_flight *flight) {
  rondo_triton_served *served = flight->instance->served;
  rondo_session *session = served->recorded->session; /* sizes of a model with sequences are not chosen again */
  RONDO_TRY(rondo_triton_sequence_begin(&served->sequences, session, served->model->name, &flight->options,
                                        &flight->sequence));
  flight->request.sequence = flight->source.sequence = flight->sequence->sequence;
  if (flight->options.max_tokens > 0) limit_tokens(flight);
  return RONDO_OK;
}

/* Under the lock. At least half of the places are left for requests of open sequences, which make slots free. */
static rondo_status append(rondo_triton_served *served, rondo_triton_flight *flight) {
  if (served->waiting_count >= served->most_in_flight / 2)
    return rondo_fail(
        RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
        "the %zu slots of model '%s' are taken, and %u requests wait for one: give the model more slots, or "
        "parameter 'max_queue' more requests",
        served->sequences.slots, served->model->name, served->waiting_count);
  rondo_triton_flight **at = &served->waiting;
  while (*at != NULL) at = &(*at)->next_waiting;
  *at = flight;
  flight->next_waiting = NULL;
  served->waiting_count++;
  served->sequence_ends++;
  pthread_cond_signal(&served->wake);
  return RONDO_NOT_READY;
}

/* A prompt that no slot can take does not wait for one. */
static rondo_status check_prompt(const rondo_triton_flight *flight) {
  const size_t most = flight->instance->served->model->source.options.slot_positions;
  if (!flight->options.starts || flight->request.length <= most) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "the %zu positions of the prompt do not fit into %zu, those of a slot: shorten it",
                    flight->request.length, most);
}

static rondo_status check_source(const rondo_triton_flight *flight) {
  const rondo_triton_source *source = &flight->instance->served->model->source;
  if (source->step_inputs == source->inputs.count || !flight->options.starts || flight->source.rows > 0)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_CALL_ORDER,
                    "the request begins a sequence without a source: give it input '%s'",
                    source->inputs.items[source->step_inputs].name);
}

rondo_status rondo_triton_sequence_start(rondo_triton_flight *flight) {
  rondo_triton_served *served = flight->instance->served;
  RONDO_TRY(check_source(flight));
  RONDO_TRY(check_prompt(flight));
  pthread_mutex_lock(&served->lock);
  rondo_status status = has_earlier(served, flight, NULL) ? append(served, flight) : RONDO_OK;
  pthread_mutex_unlock(&served->lock);
  if (status != RONDO_OK) return status;
  status = begin(flight);
  if (status != RONDO_NOT_READY) return status;
  pthread_mutex_lock(&served->lock);
  status = append(served, flight);
  pthread_mutex_unlock(&served->lock);
  return status;
}

/* A sequence whose first request fails is not left open. */
void rondo_triton_sequence_leave(rondo_triton_flight *flight, rondo_status status) {
  rondo_triton_served *served = flight->instance->served;
  if (flight->sequence == NULL) return;
  const bool has_ended = flight->options.ends || (flight->options.starts && status != RONDO_OK);
  rondo_triton_sequence_end(&served->sequences, flight->sequence, has_ended);
  flight->sequence = NULL;
}

/* The watching thread ---------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void take_out(rondo_triton_served *served, rondo_triton_flight *flight) {
  rondo_triton_flight **at = &served->waiting;
  while (*at != flight) at = &(*at)->next_waiting;
  *at = flight->next_waiting;
  assert(served->waiting_count > 0);
  served->waiting_count--;
}

/* What it waited for: a slot, or the requests of its sequence before it. */
static rondo_status fail_late(const rondo_triton_flight *flight) {
  const rondo_triton_served *served = flight->instance->served;
  const bool has_name = rondo_triton_has_correlation(correlation_of(flight));
  const unsigned long long deadline = flight->request.deadline_us;
  char text[RONDO_TRITON_SEQUENCE_TEXT];
  const char *name = has_name ? rondo_triton_sequence_text(correlation_of(flight), text) : "the request";
  if (!flight->options.starts)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT,
                      "earlier requests of %s were not answered before the deadline of this one, %llu us: give it more "
                      "time, or send it after their answers",
                      name, deadline);
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT,
                    "%s did not get a slot before its deadline of %llu us, because the %zu slots of model '%s' are "
                    "taken: give the model more slots, or let idle sequences lose theirs (its parameters 'slots', "
                    "'evict_idle' and 'max_idle_ms')",
                    name, deadline, served->sequences.slots, served->model->name);
}

/* Why a flight does not wait any longer. */
static rondo_status check_waiting(rondo_triton_flight *flight) {
  bool is_cancelled = false;
  const uint64_t waited_us = (rondo_clock_ns() - flight->began_ns) / 1000;
  if (rondo_triton_server.request_is_cancelled != NULL)
    rondo_triton_ignore(rondo_triton_server.request_is_cancelled(flight->handle, &is_cancelled));
  if (is_cancelled) return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED, "the request was cancelled");
  if (flight->request.deadline_us == 0 || waited_us < flight->request.deadline_us) return RONDO_OK;
  return fail_late(flight);
}

/* The deadline counts from now on. */
static void shorten_deadline(rondo_triton_flight *flight) {
  const uint64_t waited_us = (rondo_clock_ns() - flight->began_ns) / 1000;
  if (flight->request.deadline_us > 0)
    flight->request.deadline_us = flight->request.deadline_us > waited_us ? flight->request.deadline_us - waited_us : 1;
}

/* Without the lock. NOT_READY: it waits on. */
static rondo_status try_to_begin(rondo_triton_flight *flight, bool is_behind) {
  RONDO_TRY(check_waiting(flight));
  if (is_behind) return RONDO_NOT_READY;
  RONDO_TRY(begin(flight));
  shorten_deadline(flight);
  return RONDO_OK;
}

/* Under the lock, which is released meanwhile. */
static void serve(rondo_triton_served *served, rondo_triton_flight *flight) {
  const bool is_behind = has_earlier(served, flight, flight);
  pthread_mutex_unlock(&served->lock);
  const rondo_status status = try_to_begin(flight, is_behind);
  pthread_mutex_lock(&served->lock);
  if (status == RONDO_NOT_READY) return;
  take_out(served, flight);
  pthread_mutex_unlock(&served->lock);
  if (status == RONDO_OK)
    rondo_triton_submit(flight);
  else
    rondo_triton_answer(flight, status);
  pthread_mutex_lock(&served->lock);
}

/* The session's callback, which calls this, must not call the session; and it uses the sequence until that returns. */
void rondo_triton_source_was_read(rondo_triton_flight *flight) {
  rondo_triton_served *served = flight->instance->served;
  flight->next_waiting = served->sourced;
  served->sourced = flight;
  served->sequence_ends++;
  pthread_cond_signal(&served->wake);
}

/* Whether the session uses the sequence of a flight. */
static bool is_busy(const rondo_triton_flight *flight) {
  rondo_sequence_info info = {.struct_size = sizeof info};
  return rondo_sequence_get_info(flight->request.sequence, &info) == RONDO_OK && info.is_busy;
}

/* Under the lock, which is released meanwhile. Submits steps whose sources were read. */
static void serve_sourced(rondo_triton_served *served) {
  rondo_triton_flight *flight = served->sourced;
  served->sourced = NULL; /* others may be added meanwhile */
  while (flight != NULL) {
    rondo_triton_flight *next = flight->next_waiting;
    pthread_mutex_unlock(&served->lock);
    const bool has_to_wait = is_busy(flight);
    if (!has_to_wait) {
      shorten_deadline(flight);
      rondo_triton_submit(flight);
    }
    pthread_mutex_lock(&served->lock);
    if (has_to_wait) {
      flight->next_waiting = served->sourced;
      served->sourced = flight;
    }
    flight = next;
  }
}

bool rondo_triton_sequences_serve(rondo_triton_served *served) {
  if (served->sequences.items == NULL) return false;
  pthread_mutex_unlock(&served->lock);
  const bool is_left = rondo_triton_sequences_close_ended(&served->sequences);
  pthread_mutex_lock(&served->lock);
  serve_sourced(served);
  for (rondo_triton_flight *at = served->waiting, *next; at != NULL; at = next) {
    next = at->next_waiting; /* of a flight that waits on, as only this thread takes them out */
    serve(served, at);
  }
  return is_left || served->waiting != NULL || served->sourced != NULL;
}
