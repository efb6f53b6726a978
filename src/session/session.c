/* SPDX-License-Identifier: MIT
 * The session: creating, draining and destroying it, its models by name, and the guard of its public calls. A model
 * that is being added is private to its thread until it enters the list, under the lock.
 */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "session/model_lengths.h"
#include "session/model_values.h"
#include "session/placement/upstream_parts.h"
#include "session/serve/request_queue.h"
#include "session/serve/stream_worker.h"
#include "session/serve/utilisation.h"
#include "session/session.h"
#include "session/session_model.h"
#include "session/session_streams.h"
#include "session/sizing/model_times.h"

static const rondo_device_use session_use = {.rank = 0, .name = "session"};

/* Callbacks -------------------------------------------------------------------------------------------------------- */

static _Thread_local const rondo_session_callback *innermost;

void rondo_session_callback_enter(rondo_session_callback *callback, const rondo_session *session) {
  *callback = (rondo_session_callback){.session = session, .outer = innermost};
  innermost = callback;
}

void rondo_session_callback_leave(const rondo_session_callback *callback) {
  assert(innermost == callback);
  innermost = callback->outer;
}

bool rondo_session_is_in_done(const rondo_session *session) {
  for (const rondo_session_callback *at = innermost; at != NULL; at = at->outer)
    if (at->session == session && at->is_answer) return true;
  return false;
}

rondo_status rondo_session_front(const char *call, const rondo_session *session) {
  RONDO_TRY(rondo_check_call(call, "the session", session));
  RONDO_TRY(rondo_device_require_own(call, session->device));
  for (const rondo_session_callback *at = innermost; at != NULL; at = at->outer)
    if (at->session == session)
      return rondo_fail(
          RONDO_INVALID_STATE, RONDO_REASON_IN_CALLBACK,
          "%s was called from a callback (build, body, next, done) of one of the session's models: a callback must "
          "not call its session",
          call);
  return RONDO_OK;
}

/* Models by name --------------------------------------------------------------------------------------------------- */

static rondo_session_model *look_up(const rondo_session *session, const char *name) {
  rondo_session_model *model = session->models;
  while (model != NULL && strcmp(model->name, name) != 0 &&
         (model->whole_name == NULL || strcmp(model->whole_name, name) != 0))
    model = model->next;
  return model;
}

rondo_status rondo_session_find(rondo_session *session, const char *call, const char *name, rondo_session_model **out) {
  *out = look_up(session, name);
  if (*out != NULL) return RONDO_OK;
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                    "%s: the session has no model '%s': add it first (rondo_session_add_model)", call, name);
}

/* Keeps the lock after success. */
rondo_status rondo_session_enter(const char *call, rondo_session *session, const char *name,
                                 rondo_session_model **out) {
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "model", name));
  pthread_mutex_lock(&session->lock);
  const rondo_status status = rondo_session_find(session, call, name, out);
  if (status != RONDO_OK) pthread_mutex_unlock(&session->lock);
  return status;
}

rondo_status rondo_session_fail_range(const char *call, const char *what, size_t index, size_t count) {
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: there is no %s %zu of %zu", call, what, index,
                    count);
}

static rondo_status refuse_used(const char *call, const rondo_session_model *model) {
  const char *stream = rondo_session_has_manual_stream(model->session) ? "; a stream of the session is taken" : "";
  if (model->head->in_use == 0 && *stream == '\0') return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "%s: model '%s' is in use: requests that wait or run: %u; states being written: %u%s: wait for "
                    "that first",
                    call, model->name, model->head->in_use - model->head->writes, model->head->writes, stream);
}

rondo_status rondo_session_change_begin_locked(const char *call, rondo_session_model *model) {
  rondo_session_model *head = model->head;
  if (head->is_changing)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                      "%s: model '%s' is being captured or changed: end that first", call, model->name);
  RONDO_TRY(refuse_used(call, model));
  head->is_changing = true;
  for (rondo_session_model *m = head; m != rondo_model_group_end(head); m = m->next) rondo_model_stop_renewal(m);
  return RONDO_OK;
}

rondo_status rondo_session_change_begin(rondo_session *session, const char *call, const char *name,
                                        rondo_session_model **out) {
  RONDO_TRY(rondo_session_enter(call, session, name, out));
  const rondo_status status = rondo_session_change_begin_locked(call, *out);
  pthread_mutex_unlock(&session->lock);
  return status;
}

void rondo_session_change_end(rondo_session_model *model) {
  pthread_mutex_lock(&model->session->lock);
  assert(model->head->is_changing);
  model->head->is_changing = false;
  pthread_cond_broadcast(&model->session->change);
  pthread_mutex_unlock(&model->session->lock);
}

static rondo_status check_model(const rondo_session *session, const rondo_model_options *o) {
  RONDO_TRY(rondo_model_devices_check(session, o));
  RONDO_TRY(rondo_model_lengths_check(o));
  if (o->build == NULL && o->build_sized == NULL && o->body == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "rondo_session_add_model: build and body are NULL, and so is build_sized: give one of them");
  if (o->body != NULL) RONDO_TRY(rondo_function_model_check(o));
  if (o->history_count > 0) RONDO_TRY(rondo_require("rondo_session_add_model", "history", o->history));
  if (o->max_sizes > RONDO_SESSION_MAX_SIZES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_session_add_model: max_sizes of rondo_model_options is %u, and the maximum is %d",
                      o->max_sizes, RONDO_SESSION_MAX_SIZES);
  for (size_t i = 0; i < o->history_count; i++)
    if (o->history[i] == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "rondo_session_add_model: request %zu of the history has 0 rows: leave it out", i);
  return RONDO_OK;
}

static rondo_status fail_duplicate(const char *name) {
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
      "rondo_session_add_model: the session already has a model '%s': give another name, or remove that model "
      "(rondo_session_remove_model)",
      name);
}

static rondo_status check_model_name(const char *name) {
  RONDO_TRY(rondo_require("rondo_session_add_model", "name", name));
  if (name[0] != '\0') return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                    "rondo_session_add_model: the name is empty: give the name that requests will use");
}

/* Whether a name of the list is taken, for instance by another thread since the model was made. */
static bool is_taken(const rondo_session *session, const char *name, const rondo_session_model *first) {
  bool is_taken = look_up(session, name) != NULL;
  for (const rondo_session_model *m = first; m != NULL; m = m->next)
    is_taken |= look_up(session, m->name) != NULL || (m->whole_name != NULL && look_up(session, m->whole_name) != NULL);
  return is_taken;
}

static bool link_models(rondo_session *session, const char *name, rondo_session_model *first) {
  rondo_session_model *last = first;
  while (last->next != NULL) last = last->next;
  pthread_mutex_lock(&session->lock);
  const bool is_free = !is_taken(session, name, first);
  if (is_free) {
    last->next = session->models;
    session->models = first;
  }
  pthread_mutex_unlock(&session->lock);
  return is_free;
}

rondo_status rondo_session_add_model(rondo_session *session, const char *name, const rondo_model_options *options) {
  rondo_model_options o, source;
  rondo_session_model *first = NULL;
  RONDO_TRY(rondo_session_front("rondo_session_add_model", session));
  RONDO_TRY(check_model_name(name));
  RONDO_TRY(rondo_require("rondo_session_add_model", "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_model_options", options, &o, sizeof o));
  if (o.source != NULL) {
    RONDO_TRY(rondo_versioned_read("rondo_model_options", o.source, &source, sizeof source));
    RONDO_TRY(check_model(session, &source));
    o.source = &source;
  }
  RONDO_TRY(check_model(session, &o));
  pthread_mutex_lock(&session->lock);
  const bool was_there = look_up(session, name) != NULL;
  pthread_mutex_unlock(&session->lock);
  if (was_there) return fail_duplicate(name);
  RONDO_TRY(rondo_model_lengths_make(session, name, &o, &first));
  if (link_models(session, name, first)) return RONDO_OK;
  RONDO_TRY(rondo_model_lengths_free(first));
  return fail_duplicate(name);
}

static void unlink_models(rondo_session *session, rondo_session_model *first) {
  rondo_session_model **at = &session->models, *last = first;
  rondo_session_model *end = rondo_model_group_end(first);
  while (*at != first) at = &(*at)->next;
  while (last->next != end) last = last->next;
  *at = end;
  last->next = NULL;
}

static size_t count_runs(const rondo_session_model *head) {
  size_t runs = 0;
  for (const rondo_session_model *m = head; m != rondo_model_group_end(head); m = m->next) runs += m->runs;
  return runs;
}

/* Under the lock throughout, or another thread could use the model or take a stream in between. */
static rondo_status unlink_unused_model(const char *call, rondo_session_model *model) {
  RONDO_TRY(rondo_session_change_begin_locked(call, model));
  const size_t runs = count_runs(model);
  if (runs == 0) {
    unlink_models(model->session, model);
    return RONDO_OK;
  }
  model->is_changing = false;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "%s: model '%s' has %zu run%s: destroy them first (rondo_model_run_destroy)", call, model->name,
                    runs, runs == 1 ? "" : "s");
}

static rondo_status refuse_part(const char *call, const rondo_session_model *model, const char *name) {
  if (rondo_model_is_whole(model, name) && !rondo_model_reads_source(model)) return RONDO_OK;
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME, "%s: '%s' is %s of model '%s': name the whole model",
                    call, name, rondo_model_is_whole(model, name) ? "the source" : "one length",
                    model->head->whole_name);
}

rondo_status rondo_session_remove_model(rondo_session *session, const char *name) {
  static const char call[] = "rondo_session_remove_model";
  rondo_session_model *model;
  RONDO_TRY(rondo_session_enter(call, session, name, &model));
  rondo_status status = refuse_part(call, model, name);
  if (status == RONDO_OK) status = unlink_unused_model(call, model);
  pthread_mutex_unlock(&session->lock);
  return status == RONDO_OK ? rondo_model_lengths_free(model) : status;
}

/* Lifetime --------------------------------------------------------------------------------------------------------- */

static rondo_status check_limit(const char *option, uint32_t value, uint32_t maximum) {
  if (value <= maximum) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "rondo_session_create: %s of rondo_session_options is %u, and the maximum is %u", option, value,
                    maximum);
}

static rondo_status resolve_options(const rondo_session_options *given, rondo_session_options *out) {
  RONDO_TRY(rondo_versioned_read("rondo_session_options", given, out, sizeof *out));
  if (out->streams == 0) out->streams = 1;
  if (out->max_queue == 0) out->max_queue = 1024;
  if (out->max_eager_programs == 0) out->max_eager_programs = 8;
  if (out->max_batch == 0) out->max_batch = RONDO_SESSION_MAX_BATCH;
  RONDO_TRY(check_limit("streams", out->streams, RONDO_SESSION_MAX_STREAMS));
  RONDO_TRY(check_limit("max_queue", out->max_queue, 1u << RONDO_SLOT_INDEX_BITS));
  RONDO_TRY(check_limit("max_eager_programs", out->max_eager_programs, 4096));
  return check_limit("max_batch", out->max_batch, RONDO_SESSION_MAX_BATCH);
}

static rondo_status make_slots(rondo_session *session) {
  const uint32_t count = session->options.max_queue;
  RONDO_TRY(rondo_allocate_items(&session->allocator, count, sizeof *session->slots, &session->slots));
  for (uint32_t i = 0; i < count; i++) {
    session->slots[i].session = session;
    session->slots[i].next_free = session->free_slots;
    session->free_slots = &session->slots[i];
  }
  rondo_slots_init_numbers(session->slots, count);
  return RONDO_OK;
}

static void init_locks(rondo_session *session) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&session->lock, NULL);
  for (uint32_t i = 0; i < RONDO_SESSION_MAX_STREAMS; i++) {
    pthread_cond_init(&session->workers[i].wake, &clock);
    pthread_mutex_init(&session->workers[i].timer.lock, NULL);
  }
  pthread_cond_init(&session->change, NULL);
  pthread_condattr_destroy(&clock);
}

static rondo_status start_workers(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_stream_worker *worker = &session->workers[i];
    worker->session = session;
    worker->number = i;
    RONDO_TRY(rondo_thread_start(&worker->thread, "rondo-session", rondo_stream_worker_main, worker));
    worker->has_thread = true;
  }
  return RONDO_OK;
}

static rondo_status make_executors(rondo_session *session) {
  const rondo_executor_options *options = session->options.executor;
  for (uint32_t i = 0; options != NULL && i < session->options.streams; i++)
    RONDO_TRY(rondo_executor_create(session->device, options, &session->workers[i].executor));
  session->options.executor = NULL; /* it belongs to the caller */
  return RONDO_OK;
}

static void stop_workers(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  session->is_stopping = true;
  for (uint32_t i = 0; i < session->options.streams; i++) pthread_cond_signal(&session->workers[i].wake);
  pthread_mutex_unlock(&session->lock);
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (session->workers[i].has_thread) rondo_thread_join(session->workers[i].thread);
  while (atomic_load(&session->signals) > 0) rondo_yield(); /* by calls whose requests were answered */
}

static rondo_status free_models(rondo_session *session) {
  rondo_status status = RONDO_OK;
  while (session->models != NULL) {
    rondo_session_model *model = session->models;
    session->models = model->next;
    rondo_status_keep_first(&status, rondo_model_free(model));
  }
  return status;
}

static rondo_status free_session(rondo_session *session) {
  const rondo_allocator allocator = session->allocator;
  rondo_device *device = session->device;
  stop_workers(session);
  rondo_status status = free_models(session);
  for (uint32_t i = 0; i < session->options.streams; i++)
    rondo_status_keep_first(&status, rondo_executor_destroy(session->workers[i].executor));
  rondo_utilisation_close(session);
  rondo_session_streams_return(session);
  for (uint32_t i = 0; i < RONDO_SESSION_MAX_STREAMS; i++) {
    pthread_cond_destroy(&session->workers[i].wake);
    pthread_mutex_destroy(&session->workers[i].timer.lock);
  }
  pthread_cond_destroy(&session->change);
  pthread_mutex_destroy(&session->lock);
  rondo_release(&allocator, session->slots, session->options.max_queue, sizeof *session->slots);
  rondo_release_text(&allocator, session->name);
  rondo_release(&allocator, session, 1, sizeof *session);
  rondo_device_end_use(device, &session_use);
  return status;
}

static rondo_status open_session(rondo_session *session) {
  rondo_device_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_device_get_info(session->device, &info));
  session->is_cuda = info.cuda;
  RONDO_TRY(rondo_allocate_text(&session->allocator, session->options.name, &session->name));
  RONDO_TRY(rondo_session_streams_take(session));
  RONDO_TRY(make_slots(session));
  RONDO_TRY(rondo_utilisation_open(session));
  RONDO_TRY(make_executors(session));
  return start_workers(session);
}

rondo_status rondo_session_create(rondo_device *device, const rondo_session_options *options,
                                  rondo_session **out_session) {
  RONDO_TRY(rondo_require("rondo_session_create", "out_session", out_session));
  *out_session = NULL;
  RONDO_TRY(rondo_check_call("rondo_session_create", "the device", device));
  RONDO_TRY(rondo_device_require_own("rondo_session_create", device));
  rondo_session_options resolved;
  rondo_session *session = NULL;
  RONDO_TRY(resolve_options(options, &resolved));
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *session, &session));
  session->allocator = device->allocator;
  session->device = device;
  rondo_device_begin_use(device, &session_use);
  session->options = resolved;
  init_locks(session);
  const rondo_status status = open_session(session);
  if (status == RONDO_OK) {
    *out_session = session;
    return RONDO_OK;
  }
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(free_session(session), "the first failure is reported");
  return rondo_error_raise(&error);
}

/* Asserts the state of slots and models once every request is answered. Under the lock. */
static void check_drained(const rondo_session *session) {
#ifndef NDEBUG
  uint32_t free_slots = 0;
  for (const rondo_slot *slot = session->free_slots; slot != NULL; slot = slot->next_free, free_slots++)
    assert(slot->state == RONDO_SLOT_FREE);
  assert(free_slots + session->used_slots == session->options.max_queue);
  assert(session->waiting == 0 && session->open == NULL);
  for (const rondo_session_model *m = session->models; m != NULL; m = m->next) {
    assert(m->in_use == m->writes);
    assert(m->slots == NULL || m->head == m);
    assert(m->waiting.head == NULL && m->waiting_rows == 0);
  }
  rondo_session_queue_check(session);
#else
  (void)session;
#endif
}

rondo_status rondo_session_drain(rondo_session *session) {
  RONDO_TRY(rondo_session_front("rondo_session_drain", session));
  pthread_mutex_lock(&session->lock);
  session->is_draining = true;
  rondo_stream_workers_wake_for_rest(session);
  while (session->unanswered > 0) pthread_cond_wait(&session->change, &session->lock);
  check_drained(session);
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

/* Otherwise draining could wait for a request that waits for a stream that the caller has taken. */
static rondo_status refuse_manual_streams(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  session->is_draining = true;
  const bool has_taken = rondo_session_has_manual_stream(session);
  rondo_stream_workers_wake_for_rest(session);
  pthread_mutex_unlock(&session->lock);
  if (!has_taken) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "rondo_session_destroy: a stream is taken: give it back first (rondo_session_release_stream)");
}

rondo_status rondo_session_destroy(rondo_session *session) {
  if (session == NULL || session->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_session_front("rondo_session_destroy", session));
  RONDO_TRY(refuse_manual_streams(session));
  RONDO_TRY(rondo_session_drain(session));
  pthread_mutex_lock(&session->lock);
  const uint32_t taken = session->used_slots, runs = session->runs;
  pthread_mutex_unlock(&session->lock);
  if (taken > 0 || runs > 0)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
        "rondo_session_destroy: the session has %u tickets that were not waited for, and %u runs: wait for the "
        "tickets (rondo_ticket_wait) and destroy the runs (rondo_model_run_destroy)",
        taken, runs);
  return free_session(session);
}
