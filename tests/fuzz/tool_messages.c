/* SPDX-License-Identifier: MIT
 * Stores messages of the tool instead of writing them.
 */
#include "fuzz/tool_messages.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/tool.h"
#include "fuzz/fuzz_target.h"

char tool_message[1400];

static int keep(const char *format, va_list arguments) RONDO_PRINTF(1, 0);
static int keep(const char *format, va_list arguments) {
  vsnprintf(tool_message, sizeof tool_message, format, arguments);
  return TOOL_FAILURE;
}

int tool_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int failed = keep(format, arguments);
  va_end(arguments);
  return failed;
}

int tool_fail_memory(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int failed = keep(format, arguments);
  va_end(arguments);
  return failed;
}

int tool_fail_status(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int failed = keep(format, arguments);
  va_end(arguments);
  REQUIRE(rondo_last_error()->message[0] != '\0');
  return failed;
}
