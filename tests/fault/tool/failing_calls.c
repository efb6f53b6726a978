/* SPDX-License-Identifier: MIT
 * A library that the sweep preloads into the tool. It counts the calls of the C library that can fail, from any library
 * of the process, and lets one fail, or that one and all later ones. Writing to standard error never fails, so that the
 * sweep can require a message. The C library's own streams would bypass these functions, so streams on these functions
 * replace standard output and the streams that are opened. Threads: all of the tool's; the counts are atomic.
 */
#define _GNU_SOURCE
#include "failing_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Also before this library's constructor has run. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static failing_calls *shared;
static _Thread_local bool is_inside; /* what noting a failure calls itself does not count */

/* Noting a failure ------------------------------------------------------------------------------------------------ */

static size_t note_frame(void *frame, char *out, size_t room) {
  Dl_info info = {0};
  if (!dladdr(frame, &info) || info.dli_fname == NULL) return (size_t)snprintf(out, room, "? %p\n", frame);
  const char *file = strrchr(info.dli_fname, '/');
  const char *base = info.dli_sname ? info.dli_saddr : info.dli_fbase;
  return (size_t)snprintf(out, room, "%s %s+0x%zx\n", file ? file + 1 : info.dli_fname,
                          info.dli_sname ? info.dli_sname : "", (size_t)((const char *)frame - base));
}

static void note(const char *name) {
  enum { MOST_FRAMES = 64, OWN_FRAMES = 3 };
  void *frames[MOST_FRAMES];
  const int count = backtrace(frames, MOST_FRAMES);
  size_t length = 0;
  snprintf(shared->name, sizeof shared->name, "%s", name);
  for (int i = OWN_FRAMES; i < count && length < sizeof shared->stack; i++)
    length += note_frame(frames[i], shared->stack + length, sizeof shared->stack - length);
}

/* Returns whether this call fails. */
static bool fails(failing_kind kind, const char *name) {
  if (shared == NULL || is_inside) return false;
  const size_t number = __atomic_add_fetch(&shared->counts[kind], 1, __ATOMIC_RELAXED);
  if (shared->at == 0 || kind != shared->kind || number < shared->at) return false;
  if (number > shared->at && !shared->rest) return false;
  is_inside = true;
  if (__atomic_fetch_add(&shared->failed, 1, __ATOMIC_RELAXED) == 0) note(name);
  is_inside = false;
  return true;
}

/* Memory ---------------------------------------------------------------------------------------------------------- */

static bool has_no_memory(const char *name) {
  if (!fails(FAILING_MEMORY, name)) return false;
  errno = ENOMEM;
  return true;
}

EXPORT void *malloc(size_t bytes) { return has_no_memory("malloc") ? NULL : __libc_malloc(bytes); }

EXPORT void *calloc(size_t count, size_t bytes) { return has_no_memory("calloc") ? NULL : __libc_calloc(count, bytes); }

EXPORT void *realloc(void *pointer, size_t bytes) {
  return has_no_memory("realloc") ? NULL : __libc_realloc(pointer, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes) {
  return has_no_memory("aligned_alloc") ? NULL : __libc_memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t bytes) {
  if (has_no_memory("posix_memalign")) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}

/* Files, mappings and threads ------------------------------------------------------------------------------------- */

/* The C library's own function. A data pointer can hold a function pointer (POSIX, dlsym). */
static void find_real(const char *name, void *out) {
  void *found = dlsym(RTLD_NEXT, name);
  memcpy(out, &found, sizeof found);
}

static bool is_refused(const char *name, int error) {
  if (!fails(FAILING_SYSTEM, name)) return false;
  errno = error;
  return true;
}

/* Defines a function that fails with `error`, or else calls the C library's. */
#define DEFINE(type, name, parameters, arguments, failure, error) \
  EXPORT type name parameters {                                   \
    static type(*real) parameters;                                \
    if (is_refused(#name, error)) return failure;                 \
    if (real == NULL) find_real(#name, (void *)&real);            \
    return real arguments;                                        \
  }

DEFINE(ssize_t, read, (int file, void *out, size_t bytes), (file, out, bytes), -1, EIO)
DEFINE(ssize_t, pread, (int file, void *out, size_t bytes, off_t at), (file, out, bytes, at), -1, EIO)
DEFINE(int, ftruncate, (int file, off_t bytes), (file, bytes), -1, ENOSPC)
DEFINE(int, posix_fallocate, (int file, off_t from, off_t bytes), (file, from, bytes), ENOSPC, ENOSPC)
DEFINE(int, stat, (const char *path, struct stat *out), (path, out), -1, EIO)
DEFINE(int, fstat, (int file, struct stat *out), (file, out), -1, EIO)
DEFINE(int, fstatat, (int folder, const char *path, struct stat *out, int flags), (folder, path, out, flags), -1, EIO)
DEFINE(int, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags), -1, EIO)
DEFINE(int, access, (const char *path, int mode), (path, mode), -1, EIO)
DEFINE(int, fchmod, (int file, mode_t mode), (file, mode), -1, EPERM)
DEFINE(int, fchown, (int file, uid_t user, gid_t group), (file, user, group), -1, EPERM)
DEFINE(int, rename, (const char *from, const char *to), (from, to), -1, EIO)
DEFINE(int, renameat, (int from_folder, const char *from, int to_folder, const char *to),
       (from_folder, from, to_folder, to), -1, EIO)
DEFINE(int, unlink, (const char *path), (path), -1, EIO)
DEFINE(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), -1, EIO)
DEFINE(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
DEFINE(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
DEFINE(DIR *, fdopendir, (int file), (file), NULL, EMFILE)
DEFINE(ssize_t, readlink, (const char *path, char *out, size_t bytes), (path, out, bytes), -1, EIO)
DEFINE(char *, realpath, (const char *path, char *out), (path, out), NULL, EIO)
DEFINE(int, flock, (int file, int operation), (file, operation), -1, ENOLCK)
DEFINE(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, EMFILE)
DEFINE(void *, mmap, (void *at, size_t bytes, int protection, int flags, int file, off_t offset),
       (at, bytes, protection, flags, file, offset), MAP_FAILED, ENOMEM)
DEFINE(int, mprotect, (void *at, size_t bytes, int protection), (at, bytes, protection), -1, ENOMEM)
DEFINE(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1, ENOMEM)
DEFINE(int, pthread_create, (pthread_t * out, const pthread_attr_t *attributes, void *(*run)(void *), void *user),
       (out, attributes, run, user), EAGAIN, EAGAIN)
DEFINE(int, pthread_key_create, (pthread_key_t * out, void (*destroy)(void *)), (out, destroy), EAGAIN, EAGAIN)

EXPORT void *mremap(void *from, size_t old_bytes, size_t bytes, int flags, ...) {
  static void *(*real)(void *, size_t, size_t, int, ...);
  va_list arguments;
  va_start(arguments, flags);
  void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void *) : NULL;
  va_end(arguments);
  if (is_refused("mremap", ENOMEM)) return MAP_FAILED;
  if (real == NULL) find_real("mremap", (void *)&real);
  return real(from, old_bytes, bytes, flags, to);
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(arguments, unsigned) : 0;
}

static int open_in(const char *name, int folder, const char *path, int flags, mode_t mode) {
  static int (*real)(int, const char *, int, ...);
  if (is_refused(name, EIO)) return -1;
  if (real == NULL) find_real("openat", (void *)&real);
  return real(folder, path, flags, mode);
}

EXPORT int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_in("open", AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_in("openat", folder, path, flags, mode);
}

EXPORT ssize_t write(int file, const void *bytes, size_t count) {
  static ssize_t (*real)(int, const void *, size_t);
  if (file != STDERR_FILENO && is_refused("write", ENOSPC)) return -1;
  if (real == NULL) find_real("write", (void *)&real);
  return real(file, bytes, count);
}

/* Does not wait for a disk: the test reads the system's view of the file. */
EXPORT int fsync(int file) {
  (void)file;
  return is_refused("fsync", EIO) ? -1 : 0;
}

/* Like Linux: the file is closed even when the call fails. */
EXPORT int close(int file) {
  static int (*real)(int);
  if (real == NULL) find_real("close", (void *)&real);
  const bool refused = is_refused("close", EIO);
  const int closed = real(file);
  if (refused) errno = EIO;
  return refused ? -1 : closed;
}

/* Streams --------------------------------------------------------------------------------------------------------- */

static ssize_t read_stream(void *cookie, char *out, size_t bytes) { return read((int)(intptr_t)cookie, out, bytes); }

/* 0 is a failure here (fopencookie). */
static ssize_t write_stream(void *cookie, const char *bytes, size_t count) {
  const ssize_t written = write((int)(intptr_t)cookie, bytes, count);
  return written > 0 ? written : 0;
}

static int close_stream(void *cookie) { return close((int)(intptr_t)cookie); }

static FILE *make_stream(int file, const char *mode) {
  return fopencookie((void *)(intptr_t)file, mode,
                     (cookie_io_functions_t){.read = read_stream, .write = write_stream, .close = close_stream});
}

EXPORT FILE *fopen(const char *path, const char *mode) {
  static FILE *(*real)(const char *, const char *);
  if (real == NULL) find_real("fopen", (void *)&real);
  if (shared == NULL || shared->kind != FAILING_SYSTEM || mode[0] != 'r') return real(path, mode);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  return file < 0 ? NULL : make_stream(file, mode);
}

/* Setting up ------------------------------------------------------------------------------------------------------ */

static failing_calls *map(const char *path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    fprintf(stderr, "%s: cannot be mapped: %s\n", path, strerror(errno));
    _exit(99);
  }
  close(file);
  return mapped;
}

__attribute__((constructor)) static void set_up(void) {
  const char *path = getenv(FAILING_CALLS_VARIABLE);
  void *frame;
  if (path == NULL) return;
  backtrace(&frame, 1); /* loads what it needs */
  failing_calls *mapped = map(path);
  if (mapped->kind == FAILING_SYSTEM) stdout = make_stream(STDOUT_FILENO, "w");
  shared = mapped;
}
