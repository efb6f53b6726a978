/* SPDX-License-Identifier: MIT
 * Returning statuses. A failing function returns rondo_fail(...), which writes the thread-local detail and returns the
 * code. Its callers add context with rondo_fail_context or return the status unchanged. Reporting an error never fails:
 * a thread's first error allocates a buffer for texts, and without that memory only the numbers are kept. Messages
 * longer than the buffer are truncated after a whole character and end in "...". RONDO_NOT_READY keeps no detail: these
 * functions return it and write nothing.
 */
#ifndef RONDO_BASE_ERROR_H
#define RONDO_BASE_ERROR_H

#include <rondo/status.h>

#include "base/component.h"

/* Returns `status`. The message says what is wrong, with names and sizes, and what to do. It has no newline. */
RONDO_PRIVATE rondo_status rondo_fail(rondo_status status, rondo_reason reason, const char *format, ...)
    RONDO_PRINTF(3, 4);

/* As rondo_fail, for an error about one node of a graph. */
RONDO_PRIVATE rondo_status rondo_fail_node(rondo_status status, rondo_reason reason, uint32_t node, const char *format,
                                           ...) RONDO_PRINTF(4, 5);

/* INVALID_ARGUMENT/NULL_ARGUMENT: "call: what is NULL". */
rondo_status rondo_refuse_null(const char *call, const char *what);

/* The same if `pointer` is NULL, else RONDO_OK. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_require(const char *call, const char *what, const void *pointer);

/* As rondo_fail, with the driver's or the system's error code and its name (NULL: none). Appends " (NAME NUMBER)" to
 * the message. */
RONDO_PRIVATE rondo_status rondo_fail_driver(rondo_status status, rondo_reason reason, int32_t driver_code,
                                             const char *driver_name, const char *format, ...) RONDO_PRINTF(5, 6);

/* As rondo_fail_driver for an errno value: " (ENOSPC 28, No space left on device)" is appended to the message. ENOMEM
 * becomes OUT_OF_MEMORY with ALLOCATION_FAILED whatever `status` is. */
rondo_status rondo_fail_errno(rondo_status status, int error_number, const char *format, ...) RONDO_PRINTF(3, 4);

/* Puts "context: " before the message of the thread's last error, which has `status`; returns `status`. RONDO_OK is
 * returned as it is. Where the last error has another status, the context becomes the message. */
RONDO_PRIVATE rondo_status rondo_fail_context(rondo_status status, const char *format, ...) RONDO_PRINTF(2, 3);

#define RONDO_ERROR_NAME_BYTES 48
#define RONDO_ERROR_MESSAGE_BYTES 960

/* An error detail that is passed from one thread to another: saved where the work failed, raised where a thread
 * synchronizes. */
typedef struct rondo_saved_error {
  rondo_status status;
  rondo_reason reason;
  uint32_t node;
  int32_t driver_code;
  uint64_t number; /* rondo_error_number */
  char driver_name[RONDO_ERROR_NAME_BYTES];
  char message[RONDO_ERROR_MESSAGE_BYTES];
} rondo_saved_error;

/* The calling thread's last error; its status is RONDO_OK if nothing has failed yet. */
RONDO_PRIVATE void rondo_error_save(rondo_saved_error *out);

/* Makes `saved` the calling thread's last error and returns its status; RONDO_OK leaves the last error as it is. */
RONDO_PRIVATE rondo_status rondo_error_raise(const rondo_saved_error *saved);

/* Makes `saved` the calling thread's last error, even if it is RONDO_OK: the failures since then were handled. */
RONDO_PRIVATE void rondo_error_restore(const rondo_saved_error *saved);

/* The number of the thread's last error, unique in the thread; 0 if nothing has failed yet. */
RONDO_PRIVATE uint64_t rondo_error_number(void);

/* Reports `status`, which a user's callback returned. `before` is rondo_error_number before the callback. If no call of
 * the library failed with `status` during the callback, the message becomes "the callback returned STATUS, and no call
 * ... says why", so that an older error does not seem to be the cause. Returns `status`. */
RONDO_PRIVATE rondo_status rondo_fail_callback(rondo_status status, uint64_t before, const char *format, ...)
    RONDO_PRINTF(3, 4);

/* Ignores a status on purpose, and restores the thread's last error. `why` is the reason. */
#define rondo_status_ignore(expression, why)                             \
  do {                                                                   \
    rondo_saved_error ignored_before_;                                   \
    rondo_error_save(&ignored_before_);                                  \
    if ((expression) != RONDO_OK) rondo_error_restore(&ignored_before_); \
  } while (0)

/* Keeps the first failure of several statuses. */
static inline void rondo_status_keep_first(rondo_status *kept, rondo_status status) {
  if (*kept == RONDO_OK) *kept = status;
}

/* Calls `cleanup`, also after a failure. `status` and the thread's last error keep the first failure of the two. */
#define RONDO_THEN(status, cleanup)                              \
  do {                                                           \
    rondo_saved_error then_error_;                               \
    if ((status) != RONDO_OK) rondo_error_save(&then_error_);    \
    const rondo_status then_status_ = (cleanup);                 \
    if ((status) != RONDO_OK) rondo_error_restore(&then_error_); \
    if ((status) == RONDO_OK) (status) = then_status_;           \
  } while (0)

/* Returns from the calling function when the expression is not RONDO_OK. */
#define RONDO_TRY(expression)                        \
  do {                                               \
    const rondo_status try_status_ = (expression);   \
    if (try_status_ != RONDO_OK) return try_status_; \
  } while (0)

/* "4.0 KiB", "17 B", "1.5 GiB" into `buffer`, for messages; returns buffer. RONDO_SIZE makes a buffer that lives as
 * long as the block around it. */
#define RONDO_SIZE_TEXT 24
#define RONDO_SIZE(bytes) rondo_size_text((char[RONDO_SIZE_TEXT]){""}, (bytes))
RONDO_PRIVATE const char *rondo_size_text(char buffer[RONDO_SIZE_TEXT], uint64_t bytes);

/* "'scratch' (4.0 KiB)", or "(no name, 4.0 KiB)" for NULL and "", to be used after the word "allocation". */
#define RONDO_ALLOCATION_LABEL 112
const char *rondo_named_size(char buffer[RONDO_ALLOCATION_LABEL], const char *name, uint64_t bytes);

#endif
