/* SPDX-License-Identifier: MIT
 * Writing whole files: texts that the library returns (graphs, reports, pictures), and anything else that must never
 * be found half written.
 *
 *   RONDO_TRY(rondo_graph_to_json(graph, true, &text));
 *   status = rondo_file_write("step.json", text, strlen(text));
 *   rondo_text_free(text);
 *
 * The library writes all its files in this way, also in rondo_weights_save. For traces see rondo_trace_open_json.
 *
 * The bytes go to a temporary file in the same folder. The file is flushed to the disk and renamed to `path`, and the
 * folder is flushed. So at any time `path` is the complete old file or the complete new file, even if the disk is full,
 * the process is killed or the machine stops. The folder must be writable; an old file need not be. The new file has
 * the permissions of the old one, and its owner and group where the process may set them. If the group cannot be kept,
 * the new group gets no more permissions than everybody has. Other hard links to the old file keep the old content. A
 * symbolic link stays, and the file that it names is replaced.
 *
 * Anything but a regular file is written directly: pipes, devices, and /dev/stdout, /dev/stderr and /dev/fd/N, also
 * where these are redirected to a file. Opening a pipe waits for its reader.
 *
 * The name of a temporary file is .rondo-HASH-PID-N.tmp, whatever the length of the file's name. Its writer holds a
 * lock (flock) on it. If a process is killed, its temporary file remains. The next write of the same file removes
 * it.
 */
#ifndef RONDO_FILES_H
#define RONDO_FILES_H

#include <stddef.h>

#include <rondo/status.h>

RONDO_EXTERN_C_BEGIN

/* Writes `count` bytes as the file `path`, in place of what is there. `bytes` may be NULL for a count of 0. A failure
 * leaves the old file as it was, except where the message says that the new one is in place and may be lost if the
 * machine stops. Thread-safe; of two calls for one file at once, the last one that finishes wins.
 * Errors: INVALID_ARGUMENT with NULL_ARGUMENT; IO_ERROR with errno, which includes EFBIG when the file would pass the
 * limit on the size of files (`ulimit -f`). */
RONDO_API RONDO_MUST_USE rondo_status rondo_file_write(const char *path, const void *bytes, size_t count);

/* Finds out whether rondo_file_write could write `path`, before the work whose result goes there: makes a temporary
 * file in its folder and removes it. Nothing else changes. For a pipe or device, only the permissions are checked.
 * Thread-safe. Errors: as rondo_file_write. */
RONDO_API RONDO_MUST_USE rondo_status rondo_file_check(const char *path);

RONDO_EXTERN_C_END

#endif
