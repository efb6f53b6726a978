/* SPDX-License-Identifier: MIT
 * The flights of requests. A flight is in the session's list from its beginning until it has been answered; after that
 * the request is released, and the flight becomes idle. What was bound belongs to the flight alone, so it is used
 * without the lock.
 *
 * The answer of a request may come before rondo_session_submit_batch returns. So a ticket is kept only if the flight
 * still has the number that it had.
 */
#include "triton/execution.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"
#include "triton/request_binding.h"
#include "triton/sequence_requests.h"
#include "triton/server_functions.h"
#include "triton/sizes/size_choice.h"
#include "triton/token_generation.h"

enum { FEW_FLIGHTS = 16, BRIEF_US = 20 };

/* Flights ---------------------------------------------------------------------------------------------------------- */

void rondo_triton_flights_check(const rondo_triton_served *served) {
  uint32_t count = 0;
  const rondo_triton_flight *last = NULL;
  for (const rondo_triton_flight *at = served->flights; at != NULL; last = at, at = at->next, count++) {
    assert(at->previous == last && at->handle != NULL);
    assert(at->instance->in_flight > 0);
  }
  assert(count <= served->in_flight && served->in_flight <= served->most_in_flight);
  (void)count, (void)last;
}

/* Checks few flights only, because the check takes time for each of them. */
static void check_few_flights(const rondo_triton_served *served) {
#ifndef NDEBUG
  if (served->in_flight <= FEW_FLIGHTS) rondo_triton_flights_check(served);
#else
  (void)served;
#endif
}

/* Under the lock. The watching thread is woken once, and looks at the list from time to time while it has flights. The
 * places that are taken say nothing about the list, because a place is taken before its flight is linked. */
static void link_flight(rondo_triton_served *served, rondo_triton_flight *flight) {
  flight->previous = NULL;
  flight->next = served->flights;
  if (flight->next != NULL) flight->next->previous = flight;
  served->flights = flight;
  if (!served->is_asleep) return;
  served->is_asleep = false;
  pthread_cond_signal(&served->wake);
}

/* Under the lock. */
static void unlink_flight(rondo_triton_served *served, rondo_triton_flight *flight) {
  *(flight->previous == NULL ? &served->flights : &flight->previous->next) = flight->next;
  if (flight->next != NULL) flight->next->previous = flight->previous;
}

/* Under the lock, which is released while memory is allocated. */
static rondo_status take_idle(rondo_triton_served *served, rondo_triton_flight **out) {
  *out = served->idle;
  if (served->idle != NULL) {
    served->idle = served->idle->next;
    return RONDO_OK;
  }
  pthread_mutex_unlock(&served->lock);
  const rondo_status status = rondo_allocate_items(&served->allocator, 1, sizeof **out, out);
  pthread_mutex_lock(&served->lock);
  return status;
}

/* Under the lock. The place of a flight was taken. */
static rondo_status begin(rondo_triton_instance *instance, triton_request *handle, rondo_triton_flight **out) {
  rondo_triton_served *served = instance->served;
  RONDO_TRY(take_idle(served, out));
  rondo_triton_flight *flight = *out;
  flight->instance = instance;
  flight->handle = handle;
  flight->response = NULL;
  flight->ticket = (rondo_ticket){.session = NULL};
  flight->is_cancelled = flight->is_broken = false;
  flight->sequence = NULL;
  flight->recorded = NULL;
  flight->is_reading = false;
  flight->options.chooses_sizes = false;
  flight->number = ++served->numbered;
  flight->began_ns = rondo_clock_ns();
  link_flight(served, flight);
  check_few_flights(served);
  return RONDO_OK;
}

/* Under the lock. */
static void take_place(rondo_triton_instance *instance) {
  instance->served->in_flight++;
  instance->in_flight++;
}

/* Under the lock. */
static void leave_place(rondo_triton_instance *instance) {
  assert(instance->in_flight > 0 && instance->served->in_flight > 0);
  instance->in_flight--;
  instance->served->in_flight--;
  pthread_cond_broadcast(&instance->served->change);
}

void rondo_triton_await_answers(rondo_triton_instance *instance) {
  rondo_triton_served *served = instance->served;
  pthread_mutex_lock(&served->lock);
  while (instance->in_flight > 0) pthread_cond_wait(&served->change, &served->lock);
  pthread_mutex_unlock(&served->lock);
}

void rondo_triton_free_flights(rondo_triton_served *served) {
  assert(served->in_flight == 0 && served->flights == NULL);
  while (served->idle != NULL) {
    rondo_triton_flight *flight = served->idle;
    served->idle = flight->next;
    rondo_release(&served->allocator, flight, 1, sizeof *flight);
  }
}

/* Answers ---------------------------------------------------------------------------------------------------------- */

/* When work began and ended, for the server's statistics. */
typedef struct flight_times {
  uint64_t began_ns, run_ns, ran_ns, ended_ns;
} flight_times;

static flight_times times_of(const rondo_triton_flight *flight, const rondo_answer *answer) {
  const uint64_t now = rondo_clock_ns();
  flight_times t = {.began_ns = flight->began_ns, .run_ns = now, .ran_ns = now, .ended_ns = now};
  if (answer == NULL) return t;
  t.run_ns = t.began_ns + (uint64_t)(answer->queue_us * 1e3);
  if (t.run_ns > now) t.run_ns = now;
  t.ran_ns = t.run_ns + (uint64_t)(answer->run_us * 1e3);
  if (t.ran_ns > now) t.ran_ns = now;
  return t;
}

static void log_failure(triton_error *error, const char *what) {
  if (error == NULL) return;
  rondo_triton_log(TRITON_LOG_ERROR, "%s: %s", what, rondo_triton_server.error_message(error));
  rondo_triton_ignore(error);
}

/* Sends the response, or `failure`, which it deletes. */
static void send_response(triton_request *handle, triton_response *response, triton_error *failure) {
  if (response == NULL) log_failure(rondo_triton_server.response_new(&response, handle), "TRITONBACKEND_ResponseNew");
  if (response != NULL)
    log_failure(rondo_triton_server.response_send(response, TRITON_RESPONSE_COMPLETE_FINAL, failure),
                "TRITONBACKEND_ResponseSend");
  rondo_triton_ignore(failure);
}

/* The server counts batches when they are reported. Batches of k requests give k answers each, in any order. Of
 * sequences, whose steps are in many batches, each request counts as a batch. */
static void report_batch(const rondo_triton_flight *flight, const rondo_answer *answer, const flight_times *t) {
  rondo_triton_served *served = flight->instance->served;
  const bool is_alone = served->sequences.items != NULL || answer->batch_requests > RONDO_SESSION_MAX_BATCH;
  const size_t requests = is_alone ? 0 : answer->batch_requests;
  rondo_triton_batch_count *count = &served->batches[requests];
  uint64_t rows = 0;
  pthread_mutex_lock(&served->lock);
  flight->recorded->padded += answer->padding_rows > 0;
  count->rows += flight->request.rows;
  if (++count->answers >= requests) {
    rows = count->rows;
    *count = (rondo_triton_batch_count){0};
  }
  pthread_mutex_unlock(&served->lock);
  if (rows > 0)
    rondo_triton_ignore(rondo_triton_server.report_batch(flight->instance->handle, rows, t->began_ns, t->run_ns,
                                                         t->ran_ns, t->ended_ns));
}

/* Under the lock. The watching thread frees a retired session once nothing uses it. */
static void leave_recorded(rondo_triton_served *served, rondo_triton_recorded *recorded, uint32_t users) {
  assert(recorded->users >= users);
  recorded->users -= users;
  if (recorded->users == 0 && recorded == served->retired) pthread_cond_signal(&served->wake);
}

/* Returns the flight. Its instance may be gone as soon as the lock is released. */
static void end(rondo_triton_flight *flight) {
  rondo_triton_served *served = flight->instance->served;
  rondo_triton_unbind(flight);
  pthread_mutex_lock(&served->lock);
  flight->next = served->idle;
  served->idle = flight;
  if (served->sequences.items != NULL && (served->waiting != NULL || flight->options.ends)) {
    served->sequence_ends++;
    pthread_cond_signal(&served->wake);
  }
  if (flight->options.chooses_sizes) rondo_triton_sizes_want(served);
  if (flight->recorded != NULL) leave_recorded(served, flight->recorded, 1);
  leave_place(flight->instance);
  pthread_mutex_unlock(&served->lock);
}

/* `answer` is NULL after a failure. The last error is its message. */
static void answer_flight(rondo_triton_flight *flight, rondo_status status, const rondo_answer *answer) {
  rondo_triton_served *served = flight->instance->served;
  const flight_times t = times_of(flight, answer);
  rondo_triton_sequence_leave(flight, status);
  if (answer != NULL && flight->options.max_tokens > 0) status = rondo_triton_generation_finish(flight);
  if (answer == NULL) flight->options.chooses_sizes = false;
  pthread_mutex_lock(&served->lock);
  unlink_flight(served, flight);
  pthread_mutex_unlock(&served->lock);
  if (answer != NULL) report_batch(flight, answer, &t);
  if (answer != NULL && served->history != NULL) rondo_triton_history_count(served->history, flight->request.rows);
  rondo_triton_ignore(rondo_triton_server.report_request(flight->instance->handle, flight->handle, answer != NULL,
                                                         t.began_ns, t.run_ns, t.ran_ns, t.ended_ns));
  send_response(flight->handle, flight->response, rondo_triton_error(status));
  log_failure(rondo_triton_server.request_release(flight->handle, TRITON_REQUEST_RELEASE_ALL),
              "TRITONBACKEND_RequestRelease");
  end(flight);
}

/* rondo_request_done; user: the flight. */
static void answer_done(void *user, rondo_status status, const rondo_answer *answer) {
  answer_flight(user, status, answer);
}

void rondo_triton_answer(rondo_triton_flight *flight, rondo_status status) { answer_flight(flight, status, NULL); }

/* A request without a flight. */
static void refuse(rondo_triton_instance *instance, triton_request *handle, rondo_status status) {
  send_response(handle, NULL, rondo_triton_error(status));
  log_failure(rondo_triton_server.request_release(handle, TRITON_REQUEST_RELEASE_ALL), "TRITONBACKEND_RequestRelease");
  pthread_mutex_lock(&instance->served->lock);
  leave_place(instance);
  pthread_mutex_unlock(&instance->served->lock);
}

/* Submitting ------------------------------------------------------------------------------------------------------- */

/* Flights that are submitted together, or the source of one. */
typedef struct submission {
  const char *model;
  bool is_source;
  rondo_triton_flight *flights[RONDO_SESSION_MAX_BATCH];
  const rondo_request *requests[RONDO_SESSION_MAX_BATCH];
  uint64_t numbers[RONDO_SESSION_MAX_BATCH];
  size_t count;
} submission;

/* The flights, and this call, use the recorded session. */
static rondo_triton_recorded *enter_recorded(rondo_triton_served *served, submission *s) {
  pthread_mutex_lock(&served->lock);
  rondo_triton_recorded *recorded = served->recorded;
  recorded->users += (uint32_t)s->count + 1;
  for (size_t i = 0; i < s->count; i++) {
    s->flights[i]->recorded = recorded;
    s->flights[i]->is_reading = s->is_source;
  }
  pthread_mutex_unlock(&served->lock);
  return recorded;
}

static void keep_tickets(rondo_triton_served *served, const submission *s, size_t first, const rondo_ticket *tickets,
                         size_t count) {
  pthread_mutex_lock(&served->lock);
  for (size_t i = 0; i < count; i++) {
    rondo_triton_flight *flight = s->flights[first + i];
    if (flight->number == s->numbers[first + i] && flight->is_reading == s->is_source) flight->ticket = tickets[i];
  }
  pthread_mutex_unlock(&served->lock);
}

/* Whether nothing else is in flight, and the request takes less time than it takes to wake a thread for it, so that a
 * batch would save nothing either. */
static bool is_brief(rondo_triton_served *served, const rondo_triton_recorded *recorded, const submission *s) {
  uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
  rondo_run_mode mode;
  double us;
  if (s->count > 1 || served->sequences.items != NULL || served->max_delay_us > 0) return false;
  pthread_mutex_lock(&served->lock);
  const bool is_alone = served->in_flight == 1;
  pthread_mutex_unlock(&served->lock);
  return is_alone &&
         rondo_session_get_dispatch(recorded->session, served->model->name, s->requests[0]->rows, &mode, parts, &count,
                                    &us) == RONDO_OK &&
         mode == RONDO_RUN_RECORDED && us < BRIEF_US;
}

static void run_here(const rondo_triton_served *served, const rondo_triton_recorded *recorded,
                     rondo_triton_flight *flight) {
  rondo_answer answer = {.struct_size = sizeof answer};
  rondo_request request = flight->request;
  request.done = NULL;
  const rondo_status status = rondo_session_run(recorded->session, served->model->name, &request, &answer);
  answer_flight(flight, status, status == RONDO_OK ? &answer : NULL);
}

/* A request that the session refuses is answered with the reason, and those after it are submitted. */
static void submit_all(rondo_triton_served *served, const rondo_triton_recorded *recorded, const submission *s) {
  rondo_ticket tickets[RONDO_SESSION_MAX_BATCH];
  for (size_t first = 0; first < s->count;) {
    size_t accepted = 0;
    const rondo_status status = rondo_session_submit_batch(recorded->session, s->model, s->requests + first,
                                                           s->count - first, tickets, &accepted);
    keep_tickets(served, s, first, tickets, accepted);
    first += accepted;
    if (status != RONDO_OK && first < s->count) answer_flight(s->flights[first++], status, NULL);
  }
}

static void submit(rondo_triton_served *served, submission *s) {
  if (s->count == 0) return;
  rondo_triton_recorded *recorded = enter_recorded(served, s);
  if (is_brief(served, recorded, s))
    run_here(served, recorded, s->flights[0]);
  else
    submit_all(served, recorded, s);
  s->count = 0;
  pthread_mutex_lock(&served->lock);
  leave_recorded(served, recorded, 1);
  pthread_mutex_unlock(&served->lock);
}

static void add(submission *s, rondo_triton_flight *flight) {
  flight->request.done = answer_done;
  s->flights[s->count] = flight;
  s->requests[s->count] = &flight->request;
  s->numbers[s->count++] = flight->number;
}

/* rondo_request_done of a source; user: the flight. The step must not be submitted here. */
static void source_done(void *user, rondo_status status, const rondo_answer *answer) {
  rondo_triton_flight *flight = user;
  rondo_triton_served *served = flight->instance->served;
  (void)answer;
  if (status != RONDO_OK) {
    answer_flight(flight, status, NULL);
    return;
  }
  pthread_mutex_lock(&served->lock);
  leave_recorded(served, flight->recorded, 1);
  flight->recorded = NULL;
  flight->is_reading = false;
  flight->ticket = (rondo_ticket){.session = NULL};
  flight->source.rows = 0;
  rondo_triton_source_was_read(flight);
  pthread_mutex_unlock(&served->lock);
}

static void submit_source(rondo_triton_flight *flight) {
  rondo_triton_served *served = flight->instance->served;
  submission s = {.model = served->source_name, .is_source = true, .count = 1};
  flight->source.done = source_done;
  s.flights[0] = flight;
  s.requests[0] = &flight->source;
  s.numbers[0] = flight->number;
  submit(served, &s);
}

void rondo_triton_submit(rondo_triton_flight *flight) {
  submission s = {.model = flight->instance->served->model->name};
  if (flight->source.rows > 0) {
    submit_source(flight);
    return;
  }
  add(&s, flight);
  submit(flight->instance->served, &s);
}

/* Waits for a place for a request, after what was added has been submitted. */
static void await_place(rondo_triton_instance *instance, submission *s) {
  rondo_triton_served *served = instance->served;
  pthread_mutex_lock(&served->lock);
  if (served->in_flight >= served->most_in_flight && s->count > 0) {
    pthread_mutex_unlock(&served->lock);
    submit(served, s);
    pthread_mutex_lock(&served->lock);
  }
  while (served->in_flight >= served->most_in_flight) pthread_cond_wait(&served->change, &served->lock);
  take_place(instance);
  pthread_mutex_unlock(&served->lock);
}

static void accept_request(rondo_triton_instance *instance, triton_request *handle, submission *s) {
  rondo_triton_flight *flight;
  await_place(instance, s);
  pthread_mutex_lock(&instance->served->lock);
  rondo_status status = begin(instance, handle, &flight);
  pthread_mutex_unlock(&instance->served->lock);
  if (status != RONDO_OK) {
    refuse(instance, handle, status);
    return;
  }
  status = rondo_triton_bind(flight);
  if (status == RONDO_OK && instance->served->sequences.items != NULL) {
    if (flight->options.starts) submit(instance->served, s); /* slots are kept once they have a request */
    status = rondo_triton_sequence_start(flight);
  }
  if (status == RONDO_OK && flight->source.rows > 0)
    rondo_triton_submit(flight);
  else if (status == RONDO_OK)
    add(s, flight);
  else if (status != RONDO_NOT_READY) /* it waits for its sequence */
    answer_flight(flight, status, NULL);
}

void rondo_triton_execute(rondo_triton_instance *instance, triton_request *const *requests, uint32_t count) {
  submission s = {.model = instance->served->model->name};
  for (uint32_t i = 0; i < count; i++) {
    accept_request(instance, requests[i], &s);
    if (s.count == RONDO_SESSION_MAX_BATCH) submit(instance->served, &s);
  }
  submit(instance->served, &s);
}
