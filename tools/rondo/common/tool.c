/* SPDX-License-Identifier: MIT
 * Messages of the tool. Each is one line of text: invalid bytes and control characters in quoted names are printed as
 * \xNN.
 */
#define _POSIX_C_SOURCE 200809L
#include "common/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/timing.h"
#include "common/utf8.h"

#define LINE_BYTES 1400
#define PROGRESS_INTERVAL_NS 100000000u
#define LINE_INTERVAL_NS UINT64_C(5000000000)
#define WAIT_TO_SPEAK_NS UINT64_C(2000000000)

static const char *command_name = "rondo";
static bool failure_said;
static bool progress_shown;
static char rank_prefix[24];  /* "rank 3: " */
static uint32_t rank_of_tool; /* 0: it speaks */

void tool_set_command(const char *name) { command_name = name; }

void tool_set_rank(uint32_t rank) {
  snprintf(rank_prefix, sizeof rank_prefix, "rank %" PRIu32 ": ", rank);
  rank_of_tool = rank;
  if (rank > 0) rondo_log_set_sink(tool_log, NULL, RONDO_LOG_ERROR);
}

/* Writes the first character of a text in printable form: control characters and invalid bytes as \xNN. `out` has space
 * for 5 bytes. Returns the number of bytes of `text` that it consumed. */
static size_t make_showable(const char *text, size_t left, char *out) {
  const unsigned char *bytes = (const unsigned char *)text;
  const size_t length = utf8_length(bytes, left);
  if (length > 0 && !utf8_is_control(bytes, length)) {
    memcpy(out, text, length);
    out[length] = '\0';
    return length;
  }
  sprintf(out, "\\x%02x", bytes[0]);
  return 1;
}

void tool_print_text(const char *text) {
  for (size_t left = strlen(text); left > 0;) {
    char shown[5] = "\n";
    const size_t taken = text[0] == '\n' ? 1 : make_showable(text, left, shown);
    fputs(shown, stdout);
    text += taken;
    left -= taken;
  }
}

/* Writes one line to standard error with a single call, so that lines of other threads cannot interleave. */
static void write_line(const char *line) {
  char shown[4 * LINE_BYTES] = "", *end = shown;
  for (size_t left = strlen(line); left > 0;) {
    const size_t taken = make_showable(line, left, end);
    end += strlen(end);
    line += taken;
    left -= taken;
  }
  fprintf(stderr, "%s\n", shown);
}

static void say(const char *text, const char *detail, const char *hint) {
  char line[LINE_BYTES];
  snprintf(line, sizeof line, "%s: %s%s%s%s", command_name, text, detail[0] ? ": " : "", detail, hint);
  tool_clear_progress();
  (void)fflush(stdout); /* keeps the order of output and message if both go to one file */
  write_line(line);
}

static void say_once(const char *detail, const char *hint, const char *format, va_list arguments) RONDO_PRINTF(3, 0);
static void say_once(const char *detail, const char *hint, const char *format, va_list arguments) {
  if (failure_said) return;
  failure_said = true;
  char text[LINE_BYTES / 2];
  const size_t prefix = (size_t)snprintf(text, sizeof text, "%s", rank_prefix);
  vsnprintf(text + prefix, sizeof text - prefix, format, arguments);
  if (rank_of_tool > 0) clock_wait_until(clock_ns() + WAIT_TO_SPEAK_NS);
  say(text, detail, hint);
}

int tool_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_once("", "", format, arguments);
  va_end(arguments);
  return TOOL_FAILURE;
}

/* Messages of the library say timeout_ms, which the tool sets from --timeout. */
static void name_option(const char *message, char out[LINE_BYTES]) {
  static const char theirs[] = "timeout_ms", ours[] = "--timeout";
  const char *at = rank_prefix[0] ? strstr(message, theirs) : NULL;
  const char *rest = at ? at + strlen(theirs) : message;
  snprintf(out, LINE_BYTES, "%.*s%s%s", at ? (int)(at - message) : 0, message, at ? ours : "", rest);
}

int tool_fail_status(const char *format, ...) {
  char message[LINE_BYTES];
  va_list arguments;
  name_option(rondo_last_error()->message, message);
  va_start(arguments, format);
  say_once(message, "", format, arguments);
  va_end(arguments);
  return TOOL_FAILURE;
}

int tool_fail_memory(const char *format, ...) {
  char what[LINE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return tool_fail("out of memory for %s: use smaller settings, or free memory", what);
}

int tool_fail_thread(int error) {
  return tool_fail("a thread could not be started: %s; raise the user's limit (ulimit -u)", strerror(error));
}

int tool_fail_without_onnx(void) {
  return tool_fail("this tool was built without rondo-onnx: build it where protobuf-c is installed");
}

int tool_fail_usage(const char *format, ...) {
  char hint[80];
  snprintf(hint, sizeof hint, "; see '%s --help'", command_name);
  va_list arguments;
  va_start(arguments, format);
  say_once("", hint, format, arguments);
  va_end(arguments);
  return TOOL_USAGE;
}

void tool_warn(const char *format, ...) {
  if (rank_of_tool > 0) return;
  char text[LINE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say(text, "", "");
}

/* The write error may be old and errno may have changed since. Writing one more byte reports the cause again. */
int tool_check_output(void) {
  if (!ferror(stdout)) return TOOL_OK;
  if (write(STDOUT_FILENO, "\n", 1) < 0) return tool_fail("cannot write to standard output: %s", strerror(errno));
  return tool_fail("some output was lost, because standard output could not be written for a while");
}

void tool_print_device(const char *heading, const char *name, const rondo_device_info *info) {
  printf("%s%s: ", heading, name);
  tool_print_text(info->description);
  printf(", ");
  if (info->cuda)
    printf("%" PRIu32 " multiprocessors\n", info->processors);
  else
    printf("%" PRIu32 " worker%s\n", info->workers, info->workers == 1 ? "" : "s");
}

void tool_show_progress(const char *format, ...) {
  static uint64_t shown_at;
  const uint64_t now = clock_ns();
  const bool is_line = rank_prefix[0] && !isatty(STDERR_FILENO);
  if (shown_at == 0) shown_at = is_line ? now : 1;
  if (rank_of_tool > 0 || now - shown_at < (is_line ? LINE_INTERVAL_NS : PROGRESS_INTERVAL_NS)) return;
  if (!is_line && !isatty(STDERR_FILENO)) return;
  shown_at = now;
  progress_shown = !is_line;
  va_list arguments;
  va_start(arguments, format);
  fputs(is_line ? "" : "\r\033[K", stderr);
  vfprintf(stderr, format, arguments);
  fputs(is_line ? "\n" : "", stderr);
  va_end(arguments);
  fflush(stderr);
}

void tool_clear_progress(void) {
  if (!progress_shown) return;
  progress_shown = false;
  fputs("\r\033[K", stderr);
  fflush(stderr);
}

void tool_log(void *user, rondo_log_level level, const char *area, const char *message) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  (void)user;
  char line[LINE_BYTES];
  snprintf(line, sizeof line, "rondo: %s: %s: %s", names[level], area, message);
  write_line(line);
}
