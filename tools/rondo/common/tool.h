/* SPDX-License-Identifier: MIT
 * Shared by all commands: exit statuses, error messages and the display of progress. Results go to standard output,
 * everything else to standard error. All functions except tool_log belong to the main thread.
 */
#ifndef RONDO_TOOL_H
#define RONDO_TOOL_H

#include <rondo/rondo.h>

/* Exit statuses. interrupt.h defines that of an interrupted command. */
enum { TOOL_OK = 0, TOOL_FAILURE = 1, TOOL_USAGE = 2 };

/* Sets the prefix of all messages, for example "rondo train". */
void tool_set_command(const char *name);

/* Makes this process one rank of several that run the command together. Rank 0 speaks: the others show no progress and
 * no warnings. A failure names the rank. Other ranks wait two seconds before they say theirs: if all have the same, the
 * first one to say it has had them ended by then. */
void tool_set_rank(uint32_t rank);

/* Print one line that says why the command fails, and return its exit status. Only the first failure is printed,
 * because later ones, during cleanup, are its consequences. tool_fail_status appends the text of rondo_last_error(). */
int tool_fail(const char *format, ...) RONDO_PRINTF(1, 2);
int tool_fail_status(const char *format, ...) RONDO_PRINTF(1, 2);
int tool_fail_usage(const char *format, ...) RONDO_PRINTF(1, 2);

/* Like tool_fail: tool_fail_memory after a failed allocation for the named thing, tool_fail_thread after pthread_create
 * failed with this number. */
int tool_fail_memory(const char *format, ...) RONDO_PRINTF(1, 2);
int tool_fail_thread(int error);

/* For what needs models in files, in a tool without the component rondo-onnx. */
int tool_fail_without_onnx(void);

/* Prints a one-line warning; the command continues. */
void tool_warn(const char *format, ...) RONDO_PRINTF(1, 2);

/* Prints a text from a file, the environment or a library to standard output. Control characters other than newlines,
 * and bytes that are not UTF-8, are printed as \xNN. */
void tool_print_text(const char *text);

/* Call it after writing to standard output. Returns TOOL_OK, or TOOL_FAILURE after a message if a write failed. */
int tool_check_output(void);

/* Prints a heading and a description of the device: "NAME: the processor's own name, 3 workers". */
void tool_print_device(const char *heading, const char *name, const rondo_device_info *info);

/* Shows the progress on a line that the next call replaces, if standard error is a terminal. What ranks print goes
 * through their launcher, so rank 0 prints a line every five seconds instead. */
void tool_show_progress(const char *format, ...) RONDO_PRINTF(1, 2);
void tool_clear_progress(void);

/* A callback for the library's log; prints each message on a line. Any thread. */
void tool_log(void *user, rondo_log_level level, const char *area, const char *message);

/* Returns from the calling function unless the call returns RONDO_OK. */
#define TOOL_TRY(call)                        \
  do {                                        \
    const rondo_status tool_status_ = (call); \
    if (tool_status_) return tool_status_;    \
  } while (0)

#endif
