/* SPDX-License-Identifier: MIT
 * What all commands share: how they end, how they say what went wrong, and how they show that they are at work.
 * Results go to standard output, everything else to standard error. Only the main thread uses this, but for tool_log.
 */
#ifndef RONDO_TOOL_H
#define RONDO_TOOL_H

#include <rondo/rondo.h>

/* Exit statuses; that of an interrupted command is in interrupt.h. */
enum { TOOL_OK = 0, TOOL_FAILURE = 1, TOOL_USAGE = 2 };

/* What messages begin with: "rondo train". */
void tool_set_command(const char *name);

/* Say in one line why the command fails, and return its exit status. Only the first failure is said: it is the cause of
 * those that follow while things are taken down. tool_fail_status appends the text of rondo_last_error() to the
 * context. */
int tool_fail(const char *format, ...) RONDO_PRINTF(1, 2);
int tool_fail_status(const char *format, ...) RONDO_PRINTF(1, 2);
int tool_fail_usage(const char *format, ...) RONDO_PRINTF(1, 2);

/* As tool_fail, where memory for this cannot be had, and where pthread_create has failed with this number. */
int tool_fail_memory(const char *format, ...) RONDO_PRINTF(1, 2);
int tool_fail_thread(int error);

/* Says in one line what the user should know of a command that goes on. */
void tool_warn(const char *format, ...) RONDO_PRINTF(1, 2);

/* Prints a text to standard output that comes from a file, the environment or a library: control characters but line
 * ends, and bytes that are no text, are shown as \xNN. */
void tool_print_text(const char *text);

/* Call it after writing to standard output: TOOL_OK, or TOOL_FAILURE after a message it cannot be written. */
int tool_check_output(void);

/* What the device is, on a line of standard output, after the heading: "NAME: the processor's own name, 3 workers". */
void tool_print_device(const char *heading, const char *name, const rondo_device_info *info);

/* Shows how far the command is, on a line that the next one replaces, when standard error is a terminal. */
void tool_show_progress(const char *format, ...) RONDO_PRINTF(1, 2);
void tool_clear_progress(void);

/* The library's log: each message is a line. Any thread. */
void tool_log(void *user, rondo_log_level level, const char *area, const char *message);

/* Returns from the calling function when the call was not RONDO_OK. */
#define TOOL_TRY(call)                        \
  do {                                        \
    const rondo_status tool_status_ = (call); \
    if (tool_status_) return tool_status_;    \
  } while (0)

#endif
