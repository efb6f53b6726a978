/* SPDX-License-Identifier: MIT
 * External semaphores: those of another API, such as Vulkan, or of another process. Work on a device signals them and
 * waits for them, in streams and in graphs.
 *
 * Only CUDA devices have them: others refuse to import one (UNSUPPORTED/NOT_SUPPORTED). An external semaphore is
 * thread-safe. NULL is refused with INVALID_ARGUMENT/NULL_ARGUMENT.
 */
#ifndef RONDO_EXTERNAL_SEMAPHORE_H
#define RONDO_EXTERNAL_SEMAPHORE_H

#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

/* What a file descriptor refers to. The numbers are CUDA's. */
typedef enum rondo_semaphore_type {
  RONDO_SEMAPHORE_OPAQUE_FD = 1,  /* a binary semaphore, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT in Vulkan */
  RONDO_SEMAPHORE_TIMELINE_FD = 9 /* a timeline: a number that grows */
} rondo_semaphore_type;

typedef struct rondo_semaphore_import_options {
  uint32_t struct_size; /* RONDO_SEMAPHORE_IMPORT_OPTIONS_INIT sets it; 0 means the library's own */
  rondo_semaphore_type type;
  const char *name; /* for messages and dumps; copied; may be NULL */
} rondo_semaphore_import_options;
#define RONDO_SEMAPHORE_IMPORT_OPTIONS_INIT .struct_size = sizeof(rondo_semaphore_import_options)

/* Imports a semaphore from a file descriptor, which belongs to the driver if the call succeeds. Graphs, execs and
 * enqueued work keep it, so it may be destroyed before them. Errors: INVALID_ARGUMENT (NULL; OUT_OF_RANGE: a negative
 * descriptor; BAD_OPTIONS: no such type, or the descriptor is not of such a semaphore); UNSUPPORTED/NOT_SUPPORTED (see
 * above, or the driver does not have the type); OUT_OF_MEMORY; errors of the driver. */
RONDO_API RONDO_MUST_USE rondo_status rondo_external_semaphore_import(rondo_device *device, int descriptor,
                                                                      const rondo_semaphore_import_options *options,
                                                                      rondo_external_semaphore **out_semaphore);

/* Releases the caller's reference. NULL is fine. */
RONDO_API void rondo_external_semaphore_destroy(rondo_external_semaphore *semaphore);

/* Enqueue signals of semaphores after the earlier work of the stream, or waits for semaphores before its later work.
 * Captures turn them into nodes. Thread-compatible. Errors as rondo_graph_add_semaphore_signal; CAPTURE_INVALID,
 * OUT_OF_MEMORY, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_semaphore_signal_async(rondo_stream *stream,
                                                                   const rondo_semaphore_value *values, size_t count);
RONDO_API RONDO_MUST_USE rondo_status rondo_semaphore_wait_async(rondo_stream *stream,
                                                                 const rondo_semaphore_value *values, size_t count);

RONDO_EXTERN_C_END

#endif
