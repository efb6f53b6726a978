/* SPDX-License-Identifier: MIT
 * Streams of the caller's. Two sessions would use one stream from two threads, and one would record what the other
 * enqueues. So the process has a list of the workers that have such streams. Streams are compared by their native
 * handles, because several rondo_streams, also of several rondo_devices, may be one stream.
 *
 * Invariant: a stream that a worker has is lent, and no other worker has a stream with that native handle. Threads: the
 * list has a lock; a worker that is not in it belongs to the thread that creates or destroys its session.
 */
#include "session/session_streams.h"

#include "exec/stream/stream_internal.h"
#include "session/session.h"

static const char *const call = "rondo_session_create";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_stream_worker *workers; /* under the lock, by next_lent */

/* Refusals --------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_default(const rondo_stream *stream) {
  if (stream->queue->ops->require_thread == NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: %s is a default stream, where a session cannot record and run models on its threads: the "
                    "driver does not capture the legacy one, and that of a thread is another stream on each thread: "
                    "give a stream that was created, and order it after the default stream with events",
                    call, stream->label);
}

static rondo_status refuse_capturing(rondo_stream *stream) {
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_capture_get_info(stream, &info));
  if (info.state == RONDO_CAPTURE_NONE) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING, "%s: %s captures: end the capture first", call,
                    stream->label);
}

/* The driver says here that the owner has destroyed the stream. */
static rondo_status refuse_failed(rondo_stream *stream) {
  const rondo_status status = stream->queue->ops->query(stream->queue);
  return status == RONDO_NOT_READY ? RONDO_OK : rondo_fail_context(status, "%s: %s", call, stream->label);
}

static rondo_status check_stream(const rondo_session *session, uint32_t number, const rondo_stream *stream) {
  if (stream == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "%s: stream_list[%u] of rondo_session_options is NULL: give %u streams", call, number,
                      session->options.streams);
  if (stream->device != session->device)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: stream_list[%u], %s, is a stream of device '%s', and the session is for '%s': adopt it for "
                      "this device (rondo_stream_adopt)",
                      call, number, stream->label, stream->device->name, session->device->name);
  return refuse_default(stream);
}

/* Taking ----------------------------------------------------------------------------------------------------------- */

static bool is_same(rondo_stream *a, rondo_stream *b) {
  return rondo_stream_native(a) == rondo_stream_native(b) && a->device->ops == b->device->ops;
}

/* Adds the worker to the list. False if another one has the stream. */
static bool add(rondo_stream_worker *worker, rondo_stream *stream) {
  pthread_mutex_lock(&lock);
  const rondo_stream_worker *at = workers;
  while (at != NULL && !is_same(at->lent, stream)) at = at->next_lent;
  if (at == NULL) {
    worker->lent = stream;
    worker->next_lent = workers;
    workers = worker;
  }
  pthread_mutex_unlock(&lock);
  return at == NULL;
}

/* Only a stream that no other session uses is asked for its state. */
static rondo_status take(rondo_session *session, uint32_t number, rondo_stream *stream) {
  RONDO_TRY(check_stream(session, number, stream));
  if (!add(&session->workers[number], stream))
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
        "%s: stream_list[%u], %s, is a stream of a session already: give each stream to one session, once", call,
        number, stream->label);
  rondo_stream_lend(stream);
  RONDO_TRY(refuse_capturing(stream));
  return refuse_failed(stream);
}

static void remove_worker(rondo_stream_worker *worker) {
  pthread_mutex_lock(&lock);
  rondo_stream_worker **at = &workers;
  while (*at != worker) at = &(*at)->next_lent;
  *at = worker->next_lent;
  pthread_mutex_unlock(&lock);
  rondo_stream_return(worker->lent);
  worker->lent = NULL;
}

rondo_status rondo_session_streams_take(rondo_session *session) {
  rondo_stream *const *list = session->options.stream_list;
  for (uint32_t i = 0; list != NULL && i < session->options.streams; i++) RONDO_TRY(take(session, i, list[i]));
  session->options.stream_list = NULL; /* it belongs to the caller */
  return RONDO_OK;
}

void rondo_session_streams_return(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (session->workers[i].lent != NULL) remove_worker(&session->workers[i]);
}
