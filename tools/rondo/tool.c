/* SPDX-License-Identifier: MIT
 * Messages of the tool. All are one line of text: bytes in what is quoted that are none are shown as \xNN.
 */
#define _POSIX_C_SOURCE 200809L
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "timing.h"
#include "utf8.h"

#define LINE_BYTES 1400
#define PROGRESS_INTERVAL_NS 100000000u

static const char *command_name = "rondo";
static bool failure_said;
static bool progress_shown;

void tool_set_command(const char *name) { command_name = name; }

/* A control character would act on the terminal: those of ASCII, and U+0080 to U+009F. */
static bool is_shown(const unsigned char *text, size_t length) {
  if (length == 0 || text[0] < ' ' || text[0] == 0x7f) return false;
  return text[0] != 0xc2 || text[1] >= 0xa0;
}

/* `out` has room for 4 bytes to each of the line, and 1. */
static void make_showable(const char *line, char *out) {
  for (size_t left = strlen(line); left > 0;) {
    const unsigned char *text = (const unsigned char *)line;
    const size_t length = utf8_length(text, left), taken = is_shown(text, length) ? length : 1;
    if (is_shown(text, length)) {
      memcpy(out, line, length);
      out += length;
    } else {
      out += sprintf(out, "\\x%02x", text[0]);
    }
    line += taken;
    left -= taken;
  }
  *out = '\0';
}

static void say(const char *text, const char *detail, const char *hint) {
  char line[LINE_BYTES], shown[4 * LINE_BYTES];
  snprintf(line, sizeof line, "%s: %s%s%s%s", command_name, text, detail[0] ? ": " : "", detail, hint);
  make_showable(line, shown);
  tool_clear_progress();
  (void)fflush(stdout); /* what was found stands above what became of it, in a file of both too */
  fprintf(stderr, "%s\n", shown);
}

static void say_once(const char *detail, const char *hint, const char *format, va_list arguments) RONDO_PRINTF(3, 0);
static void say_once(const char *detail, const char *hint, const char *format, va_list arguments) {
  if (failure_said) return;
  failure_said = true;
  char text[LINE_BYTES / 2];
  vsnprintf(text, sizeof text, format, arguments);
  say(text, detail, hint);
}

int tool_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_once("", "", format, arguments);
  va_end(arguments);
  return TOOL_FAILURE;
}

int tool_fail_status(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_once(rondo_last_error()->message, "", format, arguments);
  va_end(arguments);
  return TOOL_FAILURE;
}

int tool_fail_memory(const char *format, ...) {
  char what[LINE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return tool_fail("there is no memory for %s; ask for less, or free some", what);
}

int tool_fail_thread(int error) {
  return tool_fail("a thread could not be started: %s; raise the user's limit (ulimit -u)", strerror(error));
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
  char text[LINE_BYTES / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say(text, "", "");
}

int tool_check_output(void) {
  return ferror(stdout) ? tool_fail("cannot write to standard output: %s", strerror(errno)) : TOOL_OK;
}

void tool_print_device(const char *heading, const char *name, const rondo_device_info *info) {
  printf("%s%s: %s, ", heading, name, info->description);
  if (info->cuda)
    printf("%" PRIu32 " multiprocessors\n", info->processors);
  else
    printf("%" PRIu32 " worker%s\n", info->workers, info->workers == 1 ? "" : "s");
}

void tool_show_progress(const char *format, ...) {
  static uint64_t shown_at;
  const uint64_t now = clock_ns();
  if (now - shown_at < PROGRESS_INTERVAL_NS || !isatty(STDERR_FILENO)) return;
  shown_at = now;
  progress_shown = true;
  va_list arguments;
  va_start(arguments, format);
  fputs("\r\033[K", stderr);
  vfprintf(stderr, format, arguments);
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
  fprintf(stderr, "rondo: %s: %s: %s\n", names[level], area, message);
}
