/* SPDX-License-Identifier: MIT
 * The tool's messages about failures (common/tool.h) in a library: the last error of the thread, which the caller
 * reports.
 */
#include <stdarg.h>
#include <stdio.h>

#include "common/tool.h"

enum { MESSAGE_BYTES = 1024 };

static int fail(rondo_status status, const char *after, const char *format, va_list arguments) RONDO_PRINTF(3, 0);
static int fail(rondo_status status, const char *after, const char *format, va_list arguments) {
  char what[MESSAGE_BYTES], message[2 * MESSAGE_BYTES];
  (void)vsnprintf(what, sizeof what, format, arguments);
  (void)snprintf(message, sizeof message, "%s%s", what, after);
  (void)rondo_error_set(&(rondo_error){.status = status, .node = RONDO_NO_NODE, .message = message});
  return TOOL_FAILURE;
}

int tool_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = fail(RONDO_INVALID_DATA, "", format, arguments);
  va_end(arguments);
  return result;
}

int tool_fail_status(const char *format, ...) {
  char after[MESSAGE_BYTES];
  va_list arguments;
  (void)snprintf(after, sizeof after, ": %s", rondo_last_error()->message);
  va_start(arguments, format);
  const int result = fail(rondo_last_error()->status, after, format, arguments);
  va_end(arguments);
  return result;
}

int tool_fail_memory(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = fail(RONDO_OUT_OF_MEMORY, ": there is not enough memory", format, arguments);
  va_end(arguments);
  return result;
}
