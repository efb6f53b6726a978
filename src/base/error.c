/* SPDX-License-Identifier: MIT
 * The error detail of each thread: numbers in thread-local storage, and a buffer for texts. The buffer is allocated at
 * the thread's first failure and freed when the thread ends, unless the library is unloaded before. If it cannot be
 * allocated, the detail has the numbers and a constant message, so reporting an error never fails. (Thread-local
 * storage must be small: a library that is loaded by dlopen gets very little static TLS. scripts/check-symbols limits
 * it.) A new detail is built in a separate buffer and then copied, because messages quote the thread's last error. The
 * lists of names are in switches without a default, so the compiler reports a status or reason that is missing.
 */
#define _GNU_SOURCE
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/text.h"

/* clang-format off */
#define STATUS_NAMES(X)                                                                                      \
  X(OK) X(INVALID_ARGUMENT) X(OUT_OF_MEMORY) X(NOT_FOUND) X(UNSUPPORTED) X(UNAVAILABLE) X(INVALID_STATE)      \
  X(NOT_READY) X(INVALID_GRAPH) X(INVALID_LIFETIME) X(CAPTURE_REFUSED) X(CAPTURE_INVALID) X(UPDATE_REFUSED)   \
  X(INVALID_DATA) X(IO_ERROR) X(LIMIT_EXCEEDED) X(EXECUTION_FAILED) X(DEVICE_LOST)

#define REASON_NAMES(X)                                                                                      \
  X(NONE) X(NULL_ARGUMENT) X(BAD_SIZE) X(BAD_OPTIONS) X(ALLOCATION_FAILED) X(UNKNOWN_DEVICE) X(NO_DRIVER)     \
  X(OTHER_DEVICE) X(ARGUMENT_COUNT) X(NO_FUNCTION) X(OUT_OF_RANGE) X(IN_CALLBACK) X(STILL_IN_USE)             \
  X(UNKNOWN_NODE) X(NODE_KIND) X(DUPLICATE_EDGE) X(MISSING_EDGE) X(SELF_EDGE) X(CYCLE) X(EDGE_IN_USE)         \
  X(CAPTURING_INTO) X(ALREADY_CAPTURING) X(NOT_CAPTURING) X(UNSUPPORTED_CALL) X(INVALIDATED) X(MERGE)         \
  X(UNMATCHED_STREAM) X(UNJOINED) X(ISOLATION) X(CAPTURED_EVENT) X(WRONG_THREAD) X(EVENT_NOT_RECORDED)        \
  X(NO_TIMING) X(ALREADY_PROFILING) X(NOT_PROFILING) X(ALREADY_CAPTURED) X(NOT_CAPTURED) X(WAS_RESET)         \
  X(HOST_DECISION) X(TOPOLOGY_CHANGED) X(NODE_KIND_CHANGED) X(PARAMETERS_CHANGED) X(FUNCTION_CHANGED)         \
  X(NOT_UPDATABLE) X(FOREIGN_ADDRESS) X(DOUBLE_FREE) X(NOT_ALLOCATED) X(USE_AFTER_FREE) X(STILL_ALLOCATED)    \
  X(ADDRESS_SPACE) X(INTERIOR_ADDRESS) X(WRONG_MEMORY) X(RACE) X(NO_ACCESS) X(NO_ADDRESS) X(NOT_RELOCATABLE)  \
  X(SHAPE) X(TYPE) X(UNKNOWN_NAME) X(DUPLICATE_NAME) X(TRUNCATED) X(MALFORMED) X(UNPREPARED)                  \
  X(HOST_FUNCTION_FAILED) X(FOREIGN_WORK) X(MISALIGNED) X(STALE_PATCHES) X(MISMATCH) X(TIMED_OUT)             \
  X(PEER_LOST) X(OVERLAP) X(ABORTED) X(STALE_BUFFER) X(TREE_GONE) X(CONCURRENT_USE) X(SCOPE) X(NOT_RECORDED)  \
  X(NO_OUTPUT) X(CALL_ORDER) X(STRAY_WORK)                                                                    \
  X(CHECKSUM) X(OVERWRITTEN) X(STALE_TICKET) X(NOT_SUPPORTED) X(OTHER_PROCESS) X(STREAM_GONE)             \
  X(REGION_LEFT) X(REGION_NESTED) X(REGION_STREAM) X(REGION_NOT_OPEN) X(CONTRADICTED) X(STALE_SEQUENCE)
/* clang-format on */

#define STATUS_CASE(name) \
  case RONDO_##name:      \
    return #name;
#define REASON_CASE(name)   \
  case RONDO_REASON_##name: \
    return #name;

/* What rondo_last_error returns. Its texts are in `texts`, or constant. */
static _Thread_local rondo_error last = {.node = RONDO_NO_NODE, .driver_name = "", .message = ""};
static _Thread_local uint64_t last_number, errors; /* the number of `last`; how many errors the thread has had */

typedef struct error_texts {
  char driver_name[RONDO_ERROR_NAME_BYTES];
  char message[RONDO_ERROR_MESSAGE_BYTES];
} error_texts;

static _Thread_local error_texts *texts; /* NULL: nothing failed yet */
static _Thread_local bool is_ending;     /* the thread ends: nothing would free the texts */
static pthread_key_t texts_key;          /* frees the texts when their thread ends */
static atomic_bool has_texts_key;

static void free_texts(void *buffer) {
  const rondo_allocator allocator = rondo_allocator_default();
  texts = NULL;
  is_ending = true;
  last.driver_name = last.message = "";
  rondo_release(&allocator, buffer, 1, sizeof(error_texts));
}

static void make_texts_key(void) { atomic_store(&has_texts_key, pthread_key_create(&texts_key, free_texts) == 0); }

/* Runs when the library is unloaded or the process ends, so that threads that end later do not call into unmapped code.
 */
__attribute__((destructor)) static void forget_texts_key(void) {
  if (!atomic_exchange(&has_texts_key, false)) return;
  (void)pthread_key_delete(texts_key); /* the key is valid */
  free_texts(texts);
}

/* NULL if there is no memory or no key. Does not use rondo_allocate, which reports its failures through this file. */
static error_texts *make_texts(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const rondo_allocator allocator = rondo_allocator_default();
  (void)pthread_once(&once, make_texts_key);
  if (is_ending || !atomic_load(&has_texts_key)) return NULL;
  error_texts *made = allocator.allocate(allocator.self, sizeof *made, _Alignof(max_align_t));
  if (made == NULL || pthread_setspecific(texts_key, made) == 0) return made;
  rondo_release(&allocator, made, 1, sizeof *made);
  return NULL;
}

const rondo_error *rondo_last_error(void) { return &last; }

rondo_status rondo_error_set(const rondo_error *error) {
  if (error == NULL || error->status == RONDO_OK) return RONDO_OK;
  rondo_saved_error saved = {
      .status = error->status, .reason = error->reason, .node = error->node, .driver_code = error->driver_code};
  (void)snprintf(saved.driver_name, sizeof saved.driver_name, "%s",
                 error->driver_name == NULL ? "" : error->driver_name);
  (void)snprintf(saved.message, sizeof saved.message, "%s", error->message == NULL ? "" : error->message);
  return rondo_error_raise(&saved);
}

/* Copies only the used part of the buffer: texts are mostly short, and callbacks and ignored statuses save errors
 * often. */
static void copy_text(char *to, const char *from) { memcpy(to, from, strlen(from) + 1); }

const char *rondo_status_name(rondo_status status) {
  switch (status) { STATUS_NAMES(STATUS_CASE) }
  return "UNKNOWN";
}

const char *rondo_reason_name(rondo_reason reason) {
  switch (reason) { REASON_NAMES(REASON_CASE) }
  return "UNKNOWN";
}

/* Appends to the message of `error`. */
static void append(rondo_saved_error *error, const char *format, ...) RONDO_PRINTF(2, 3);
static void append(rondo_saved_error *error, const char *format, ...) {
  const size_t length = strlen(error->message);
  const size_t room = sizeof error->message - length;
  if (room < 8) return; /* the message was truncated before */
  va_list arguments;
  va_start(arguments, format);
  rondo_format_cut(error->message + length, room, format, arguments);
  va_end(arguments);
}

static rondo_saved_error make(rondo_status status, rondo_reason reason, const char *format, va_list arguments)
    RONDO_PRINTF(3, 0);
static rondo_saved_error make(rondo_status status, rondo_reason reason, const char *format, va_list arguments) {
  assert(status != RONDO_OK);
  rondo_saved_error error = {.status = status, .reason = reason, .node = RONDO_NO_NODE};
  rondo_format_cut(error.message, sizeof error.message, format, arguments);
  return error;
}

/* Sets `error` in a function that ends in "const char *format, ...". */
#define MAKE_ERROR(error, status, reason, format)      \
  do {                                                 \
    va_list arguments;                                 \
    va_start(arguments, format);                       \
    (error) = make(status, reason, format, arguments); \
    va_end(arguments);                                 \
  } while (0)

rondo_status rondo_fail(rondo_status status, rondo_reason reason, const char *format, ...) {
  rondo_saved_error error;
  MAKE_ERROR(error, status, reason, format);
  return rondo_error_raise(&error);
}

rondo_status rondo_fail_node(rondo_status status, rondo_reason reason, uint32_t node, const char *format, ...) {
  rondo_saved_error error;
  MAKE_ERROR(error, status, reason, format);
  error.node = node;
  return rondo_error_raise(&error);
}

rondo_status rondo_refuse_null(const char *call, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: %s is NULL", call, what);
}

rondo_status rondo_require(const char *call, const char *what, const void *pointer) {
  return pointer == NULL ? rondo_refuse_null(call, what) : RONDO_OK;
}

rondo_status rondo_fail_driver(rondo_status status, rondo_reason reason, int32_t driver_code, const char *driver_name,
                               const char *format, ...) {
  rondo_saved_error error;
  MAKE_ERROR(error, status, reason, format);
  const char *name = driver_name == NULL ? "" : driver_name;
  error.driver_code = driver_code;
  snprintf(error.driver_name, sizeof error.driver_name, "%s", name);
  append(&error, " (%s%s%" PRId32 ")", name, *name == '\0' ? "" : " ", driver_code);
  return rondo_error_raise(&error);
}

rondo_status rondo_fail_errno(rondo_status status, int error_number, const char *format, ...) {
  const bool no_memory = error_number == ENOMEM;
  rondo_saved_error error;
  MAKE_ERROR(error, no_memory ? RONDO_OUT_OF_MEMORY : status,
             no_memory ? RONDO_REASON_ALLOCATION_FAILED : RONDO_REASON_NONE, format);
  const char *name = strerrorname_np(error_number);
  const char *description = strerrordesc_np(error_number);
  error.driver_code = error_number;
  snprintf(error.driver_name, sizeof error.driver_name, "%s", name == NULL ? "" : name);
  append(&error, " (%s %d, %s)", name == NULL ? "errno" : name, error_number,
         description == NULL ? "unknown" : description);
  return rondo_error_raise(&error);
}

rondo_status rondo_fail_context(rondo_status status, const char *format, ...) {
  if (status == RONDO_OK) return status;
  rondo_saved_error error;
  MAKE_ERROR(error, status, RONDO_REASON_NONE, format);
  if (last.status == status) {
    error.reason = last.reason;
    error.node = last.node;
    error.driver_code = last.driver_code;
    copy_text(error.driver_name, last.driver_name);
    append(&error, ": %s", last.message);
  }
  return rondo_error_raise(&error);
}

static void put_texts(const rondo_saved_error *from) {
  last.driver_name = last.message = "";
  if (from->message[0] == '\0' && from->driver_name[0] == '\0') return;
  if (texts == NULL) texts = make_texts();
  if (texts == NULL) {
    last.message = "the message could not be kept: there is no memory, or no thread-specific key, for it";
    return;
  }
  copy_text(texts->driver_name, from->driver_name);
  copy_text(texts->message, from->message);
  last.driver_name = texts->driver_name;
  last.message = texts->message;
}

void rondo_error_save(rondo_saved_error *out) {
  out->status = last.status;
  out->reason = last.reason;
  out->node = last.node;
  out->driver_code = last.driver_code;
  out->number = last_number;
  copy_text(out->driver_name, last.driver_name);
  copy_text(out->message, last.message);
}

void rondo_error_restore(const rondo_saved_error *saved) {
  last.status = saved->status;
  last.reason = saved->reason;
  last.node = saved->node;
  last.driver_code = saved->driver_code;
  last_number = saved->number;
  put_texts(saved);
}

rondo_status rondo_error_raise(const rondo_saved_error *saved) {
  if (saved->status == RONDO_OK || saved->status == RONDO_NOT_READY) return saved->status;
  rondo_error_restore(saved);
  last_number = ++errors;
  return saved->status;
}

uint64_t rondo_error_number(void) { return last_number; }

rondo_status rondo_fail_callback(rondo_status status, uint64_t before, const char *format, ...) {
  if (status == RONDO_OK || (last.status == status && last_number != before)) return status;
  rondo_saved_error error;
  MAKE_ERROR(error, status, RONDO_REASON_HOST_FUNCTION_FAILED, format);
  append(&error, " returned %s, and no call of Rondo that failed says why", rondo_status_name(status));
  return rondo_error_raise(&error);
}

const char *rondo_size_text(char buffer[RONDO_SIZE_TEXT], uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    snprintf(buffer, RONDO_SIZE_TEXT, "%" PRIu64 " B", bytes);
    return buffer;
  }
  double value = (double)bytes / 1024;
  size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1024; /* never "1024.0 KiB" */
  snprintf(buffer, RONDO_SIZE_TEXT, "%.1f %s", value, units[unit]);
  return buffer;
}

const char *rondo_named_size(char buffer[RONDO_ALLOCATION_LABEL], const char *name, uint64_t bytes) {
  char size[RONDO_SIZE_TEXT];
  rondo_size_text(size, bytes);
  if (name == NULL || name[0] == '\0')
    (void)snprintf(buffer, RONDO_ALLOCATION_LABEL, "(no name, %s)", size);
  else
    (void)snprintf(buffer, RONDO_ALLOCATION_LABEL, "'%.64s' (%s)", name, size);
  return buffer;
}
