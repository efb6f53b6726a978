/* SPDX-License-Identifier: MIT
 * The server is the process itself, so its functions are found among the symbols of the process, or in the library
 * libtritonserver.so of a process that has loaded it for itself alone. The table is not linked: a backend has to load
 * whatever the name of the server's library is.
 */
#define _GNU_SOURCE
#include "triton/server_functions.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rondo_triton_functions rondo_triton_server;

typedef struct function_row {
  const char *symbol;
  bool is_optional;
} function_row;

#define REQUIRED_ROW(result, member, symbol, arguments) {#symbol, false},
#define OPTIONAL_ROW(result, member, symbol, arguments) {#symbol, true},
static const function_row rows[] = {TRITON_FUNCTIONS(REQUIRED_ROW) TRITON_OPTIONAL_FUNCTIONS(OPTIONAL_ROW)};
enum { FUNCTIONS = sizeof rows / sizeof *rows };

_Static_assert(sizeof(rondo_triton_functions) == FUNCTIONS * sizeof(void *), "the table has a member for each row");

/* Writes the functions that are there. Returns the first that is missing; NULL: none. */
static const char *fill_table(void *library, rondo_triton_functions *out) {
  const char *missing = NULL;
  for (size_t i = 0; i < FUNCTIONS; i++) {
    void *function = dlsym(RTLD_DEFAULT, rows[i].symbol);
    if (function == NULL && library != NULL) function = dlsym(library, rows[i].symbol);
    if (function == NULL && !rows[i].is_optional && missing == NULL) missing = rows[i].symbol;
    memcpy((char *)out + i * sizeof function, &function, sizeof function);
  }
  return missing;
}

static pthread_mutex_t search = PTHREAD_MUTEX_INITIALIZER;
static bool is_found;

/* What is there is written even if a function is missing: the server is told which one by its own functions. */
static rondo_status find(void) {
  if (is_found) return RONDO_OK;
  void *library = dlopen("libtritonserver.so", RTLD_LAZY | RTLD_NOLOAD);
  const char *missing = fill_table(library, &rondo_triton_server);
  if (library != NULL) (void)dlclose(library); /* the process has it for itself */
  if (missing != NULL)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                      "this process has no function %s: the backend is for Triton Inference Server 2.40 or later",
                      missing);
  is_found = true;
  return RONDO_OK;
}

static rondo_status check_version(void) {
  uint32_t major = 0, minor = 0;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.api_version(&major, &minor), "TRITONBACKEND_ApiVersion"));
  if (major == TRITON_API_MAJOR) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "the server has version %u.%u of the backend interface, and this backend is for version %d: use a "
                    "server of that version",
                    major, minor, TRITON_API_MAJOR);
}

rondo_status rondo_triton_find_server(void) {
  pthread_mutex_lock(&search);
  const rondo_status status = find();
  pthread_mutex_unlock(&search);
  return status == RONDO_OK ? check_version() : status;
}

/* Errors ----------------------------------------------------------------------------------------------------------- */

static triton_error_code code_of(rondo_status status, rondo_reason reason) {
  if (reason == RONDO_REASON_ABORTED) return TRITON_ERROR_CANCELLED;
  switch (status) {
    case RONDO_INVALID_ARGUMENT:
      return TRITON_ERROR_INVALID_ARGUMENT;
    case RONDO_NOT_FOUND:
      return TRITON_ERROR_NOT_FOUND;
    case RONDO_UNSUPPORTED:
      return TRITON_ERROR_UNSUPPORTED;
    case RONDO_UNAVAILABLE:
    case RONDO_LIMIT_EXCEEDED:
      return TRITON_ERROR_UNAVAILABLE;
    default:
      return TRITON_ERROR_INTERNAL;
  }
}

static rondo_status status_of(triton_error_code code) {
  switch (code) {
    case TRITON_ERROR_INVALID_ARGUMENT:
      return RONDO_INVALID_ARGUMENT;
    case TRITON_ERROR_NOT_FOUND:
      return RONDO_NOT_FOUND;
    case TRITON_ERROR_UNSUPPORTED:
      return RONDO_UNSUPPORTED;
    default:
      return RONDO_UNAVAILABLE;
  }
}

triton_error *rondo_triton_error(rondo_status status) {
  if (status == RONDO_OK) return NULL;
  const rondo_error *last = rondo_last_error();
  const bool is_last = last->status == status;
  return rondo_triton_server.error_new(code_of(status, is_last ? last->reason : RONDO_REASON_NONE),
                                       is_last ? last->message : rondo_status_name(status));
}

rondo_status rondo_triton_check(triton_error *error, const char *what) {
  if (error == NULL) return RONDO_OK;
  const rondo_status status = rondo_fail(status_of(rondo_triton_server.error_code(error)), RONDO_REASON_NONE, "%s: %s",
                                         what, rondo_triton_server.error_message(error));
  rondo_triton_server.error_delete(error);
  return status;
}

void rondo_triton_ignore(triton_error *error) {
  if (error != NULL) rondo_triton_server.error_delete(error);
}

void rondo_triton_log(triton_log_level level, const char *format, ...) {
  char line[RONDO_ERROR_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  rondo_triton_ignore(rondo_triton_server.log_message(level, "rondo", 0, line));
}
