/* SPDX-License-Identifier: MIT
 * The trace: one sink for the process, and the sink that writes Chrome's JSON. Each event is one write to a file opened
 * for appending, so threads need no lock, lines are never interleaved, and a crash loses nothing. The comma precedes an
 * event, so the file is always valid JSON except for the closing bracket, which the format allows to be missing. The
 * file replaces an older one once its first line is on the disk. Threads: any. Installing sinks and opening or closing
 * the file takes `change`; tracing never does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/allocation.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files/file_limit.h"
#include "base/files/file_replacement.h"
#include "base/log.h"
#include "base/sink.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/trace.h"

#define AREA_BYTES 128
#define NAME_BYTES 1024
#define LINE_BYTES (AREA_BYTES + NAME_BYTES + 256)
#define THREAD_NAME_BYTES 16 /* the kernel's, with the NUL */

typedef struct trace_file {
  uint64_t number; /* unique in the process, never 0 */
  int descriptor;
  int process;
  struct stat identity;     /* device and inode tell whether a path names this file */
  uint64_t limit;           /* on the size of files, when it was opened */
  _Atomic uint64_t written; /* bytes so far */
  _Atomic int error;        /* errno of the first write that failed; nothing is written after it */
  _Atomic bool is_partial;  /* the write that failed was partial */
  char *path;
} trace_file;

atomic_bool rondo_trace_active;

static rondo_sink sink;
static trace_file *open_file; /* the open trace file; it gets no events while another sink is installed */
static bool file_installed;
static _Thread_local uint64_t named_in; /* number of the file that has the calling thread's name; 0 none */
static _Atomic uint64_t file_count;
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

/* With `change` held. */
static void install(rondo_trace_fn fn, void *user) {
  rondo_sink_set(&sink, (rondo_sink_fn)fn, user, 0);
  atomic_store(&rondo_trace_active, fn != NULL);
}

void rondo_trace_set_sink(rondo_trace_fn fn, void *user) {
  pthread_mutex_lock(&change);
  file_installed = false;
  install(fn, user);
  pthread_mutex_unlock(&change);
}

void rondo_trace_emit(rondo_trace_kind kind, const char *area, const char *name, uint64_t track, double value) {
  rondo_sink_slot *slot = rondo_sink_enter(&sink);
  if (slot == NULL) return;
  const rondo_trace_event event = {
      .kind = kind, .area = area, .name = name, .track = track, .time_ns = rondo_clock_ns(), .value = value};
  ((rondo_trace_fn)slot->fn)(slot->user, &event);
  rondo_sink_leave(&sink, slot);
}

/* Keeps the first error of the file. */
static void keep_error(trace_file *file, int error) {
  int none = 0;
  atomic_compare_exchange_strong(&file->error, &none, error);
}

/* Exceeding the limit would raise SIGXFSZ, which ends the process. */
static bool is_within_limit(trace_file *file, size_t count) {
  const uint64_t before = atomic_fetch_add_explicit(&file->written, count, memory_order_relaxed);
  if (!S_ISREG(file->identity.st_mode) || before + count <= file->limit) return true;
  keep_error(file, EFBIG);
  return false;
}

static void write_all(trace_file *file, const char *bytes, size_t count) {
  const char *const begin = bytes;
  if (!is_within_limit(file, count)) return;
  while (count > 0 && atomic_load_explicit(&file->error, memory_order_relaxed) == 0) {
    const ssize_t written = write(file->descriptor, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      keep_error(file, written < 0 ? errno : EIO);
      if (bytes != begin) atomic_store(&file->is_partial, true);
      return;
    }
    bytes += written;
    count -= (size_t)written;
  }
}

/* Writes the fields of an event other than kind, time, track and names. */
static void describe_extra(const rondo_trace_event *event, char out[64]) {
  char value[RONDO_JSON_DOUBLE_BYTES];
  out[0] = '\0';
  if (event->kind == RONDO_TRACE_INSTANT) {
    snprintf(out, 64, ",\"s\":\"t\""); /* its scope is the track */
  } else if (event->kind == RONDO_TRACE_COUNTER) {
    rondo_json_double_text(value, event->value);
    snprintf(out, 64, ",\"args\":{\"value\":%s}", value);
  }
}

/* Names the calling thread's track. */
static void write_thread_name(trace_file *file) {
  char raw[THREAD_NAME_BYTES], name[6 * THREAD_NAME_BYTES], line[LINE_BYTES];
  named_in = file->number;
  if (pthread_getname_np(pthread_self(), raw, sizeof raw) != 0) return;
  rondo_json_escape(name, sizeof name, raw);
  const int length = snprintf(line, sizeof line,
                              ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu64
                              ",\"name\":\"thread_name\","
                              "\"args\":{\"name\":\"%s\"}}",
                              file->process, rondo_thread_id(), name);
  write_all(file, line, (size_t)length);
}

static void write_event(void *user, const rondo_trace_event *event) {
  static const char phases[] = {
      [RONDO_TRACE_BEGIN] = 'B', [RONDO_TRACE_END] = 'E', [RONDO_TRACE_INSTANT] = 'i', [RONDO_TRACE_COUNTER] = 'C'};
  trace_file *file = user;
  if (named_in != file->number && event->track == rondo_thread_id()) write_thread_name(file);
  char area[AREA_BYTES], name[NAME_BYTES], extra[64], line[LINE_BYTES];
  rondo_json_escape(area, sizeof area, event->area);
  rondo_json_escape(name, sizeof name, event->name);
  describe_extra(event, extra);
  const int length = snprintf(line, sizeof line,
                              ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu64 ",\"ts\":%" PRIu64
                              ".%03u,"
                              "\"cat\":\"%s\",\"name\":\"%s\"%s}",
                              phases[event->kind], file->process, event->track, event->time_ns / 1000,
                              (unsigned)(event->time_ns % 1000), area, name, extra);
  write_all(file, line, (size_t)length);
}

static void free_file(trace_file *file) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_release_text(&allocator, file->path);
  rondo_release(&allocator, file, 1, sizeof *file);
}

static rondo_status allocate_file(const char *path, trace_file **out) {
  const rondo_allocator allocator = rondo_allocator_default();
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof **out, out));
  const rondo_status status = rondo_allocate_text(&allocator, path, &(*out)->path);
  if (status == RONDO_OK) return RONDO_OK;
  free_file(*out);
  *out = NULL;
  return status;
}

/* Removes the last event, which was written only in part. Returns the new size of the file; -1 on failure. */
static off_t cut_last_event(const trace_file *file, off_t bytes) {
  char tail[2 * LINE_BYTES];
  const off_t begin = bytes > (off_t)sizeof tail ? bytes - (off_t)sizeof tail : 0;
  ssize_t at = pread(file->descriptor, tail, sizeof tail, begin) - 2;
  while (at >= 0 && memcmp(tail + at, ",\n", 2) != 0) at--;
  return at >= 0 && ftruncate(file->descriptor, begin + at) == 0 ? begin + at : -1;
}

/* After a failed write: makes the file end with the last complete event, and with the bracket if it fits. */
static void end_early(const trace_file *file) {
  static const char end[] = "\n]\n";
  const size_t count = sizeof end - 1;
  struct stat info;
  if (fstat(file->descriptor, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const off_t bytes = file->is_partial ? cut_last_event(file, info.st_size) : info.st_size;
  if (bytes < 0 || (uint64_t)bytes + count > file->limit) return;
  const bool is_ended = write(file->descriptor, end, count) == (ssize_t)count;
  (void)is_ended; /* the bracket may be missing */
}

/* Closes and frees the file. Returns the first error since it was opened. Files that cannot be synced return EINVAL. */
static rondo_status finish_file(trace_file *file) {
  write_all(file, "\n]\n", 3);
  if (atomic_load(&file->error) != 0) end_early(file);
  if (fsync(file->descriptor) != 0 && errno != EINVAL) keep_error(file, errno);
  if (close(file->descriptor) != 0 && errno != EINTR) keep_error(file, errno);
  const int error = atomic_load(&file->error);
  rondo_status status = RONDO_OK;
  if (error != 0)
    status = rondo_fail_errno(
        RONDO_IO_ERROR, error, "the trace file '%s' is incomplete: %s, or name another file", file->path,
        error == EFBIG ? "raise the limit on the size of files (ulimit -f)" : "make room and run again");
  free_file(file);
  return status;
}

static bool is_being_written(const char *path) {
  struct stat found;
  if (stat(path, &found) != 0 || !S_ISREG(found.st_mode)) return false;
  pthread_mutex_lock(&change);
  const bool same =
      open_file != NULL && open_file->identity.st_dev == found.st_dev && open_file->identity.st_ino == found.st_ino;
  pthread_mutex_unlock(&change);
  return same;
}

/* Opens the file for appending, so that the events of a forked process are appended too. */
static rondo_status place_file(trace_file *file, rondo_file_replacement *made) {
  RONDO_TRY(rondo_file_replacement_place(made));
  if (fstat(made->file, &file->identity) != 0 || (!made->is_direct && fcntl(made->file, F_SETFL, O_APPEND) != 0))
    return rondo_fail_errno(RONDO_IO_ERROR, errno, "it cannot be appended to");
  file->descriptor = made->file;
  file->limit = rondo_file_limit();
  atomic_store(&file->written, made->written);
  return RONDO_OK;
}

/* Writes a file with its first line, and replaces an older one. */
static rondo_status make_file(trace_file *file) {
  rondo_file_replacement made;
  char head[128];
  const int length = snprintf(head, sizeof head,
                              "[\n{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\","
                              "\"args\":{\"name\":\"rondo\"}}",
                              file->process);
  RONDO_TRY(rondo_file_replacement_begin(file->path, &made));
  rondo_status status = rondo_file_replacement_write(&made, head, (size_t)length);
  if (status == RONDO_OK) status = place_file(file, &made);
  return status == RONDO_OK ? RONDO_OK : rondo_file_replacement_end(&made, status);
}

static rondo_status begin_file(const char *path, trace_file **out) {
  trace_file *file;
  *out = NULL;
  if (is_being_written(path))
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "the trace file '%s' is being written already: close it first, or name another file", path);
  RONDO_TRY(allocate_file(path, &file));
  file->number = atomic_fetch_add(&file_count, 1) + 1;
  file->process = (int)getpid();
  const rondo_status status = make_file(file);
  if (status == RONDO_OK) {
    *out = file;
    return RONDO_OK;
  }
  free_file(file);
  return rondo_fail_context(status, "the trace file '%s' cannot be written", path);
}

rondo_status rondo_trace_open_json(const char *path) {
  if (path == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "path is NULL: name the file to write");
  trace_file *file;
  RONDO_TRY(begin_file(path, &file));
  pthread_mutex_lock(&change);
  trace_file *old = open_file;
  open_file = file;
  file_installed = true;
  install(write_event, file);
  pthread_mutex_unlock(&change);
  if (old != NULL && finish_file(old) != RONDO_OK)
    rondo_log(RONDO_LOG_ERROR, "trace", "%s", rondo_last_error()->message);
  return RONDO_OK;
}

rondo_status rondo_trace_close_json(void) {
  pthread_mutex_lock(&change);
  trace_file *file = open_file;
  open_file = NULL;
  if (file_installed) install(NULL, NULL);
  file_installed = false;
  pthread_mutex_unlock(&change);
  return file == NULL ? RONDO_OK : finish_file(file);
}
