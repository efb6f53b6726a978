/* SPDX-License-Identifier: MIT
 * A library that does not know Rondo, as cuBLAS does not. It receives the native handle of a stream
 * (rondo_stream_native) and calls the CUDA driver itself, which it loads from RONDO_CUDA_LIBRARY or else libcuda.so.1.
 * Its kernel is PTX; with the fake driver, it is the CPU function of that name.
 *
 * All calls return the driver's code, 0 for success, and leave the caller's current context unchanged. One thread.
 */
#ifndef RONDO_TESTS_SUPPORT_FOREIGN_LIBRARY_H
#define RONDO_TESTS_SUPPORT_FOREIGN_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

typedef struct foreign_library foreign_library;

enum {
  FOREIGN_UNSUPPORTED = 900, /* codes of captures that are refused */
  FOREIGN_INVALIDATED = 901
};

/* NULL if there is no driver. */
foreign_library *foreign_open(void);
void foreign_close(foreign_library *library);

/* word = word * factor + term, by a kernel. Its arguments are passed one by one; as one buffer; or one by one to a
 * launch with its own priority that may begin before the previous kernel has ended (programmatic dependent launch). */
int foreign_affine(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word);
int foreign_affine_by_buffer(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word);
int foreign_affine_early(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word);

/* The kernel, whose name is "foreign_affine": a CUfunction. */
void *foreign_affine_function(const foreign_library *library);
/* The same with attributes; zeros are not set. */
typedef struct foreign_launch {
  unsigned block[3], cluster[3], shared_bytes;
  int priority, shared_percent, memory_domain, cooperative;
} foreign_launch;
int foreign_affine_with(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word,
                        const foreign_launch *how);

int foreign_copy(foreign_library *library, void *stream, void *dst, const void *src, size_t bytes);
int foreign_copy_rows(foreign_library *library, void *stream, void *dst, size_t dst_pitch, const void *src,
                      size_t src_pitch, size_t width, size_t height);
int foreign_fill(foreign_library *library, void *stream, uint32_t *words, uint32_t value, size_t count);
int foreign_host(foreign_library *library, void *stream, void (*function)(void *), void *user);
/* Waits on the device until the word is `value`. Only the driver's own graphs can contain this work. */
int foreign_wait_value(foreign_library *library, void *stream, uint32_t *word, uint32_t value);

/* Allocates memory from the driver in stream order, as a library without a workspace does. */
int foreign_allocate(foreign_library *library, void *stream, size_t bytes, void **out);
int foreign_free(foreign_library *library, void *stream, void *memory);

/* Forks one of the library's own streams from the caller's stream, and joins it again. */
int foreign_fork(foreign_library *library, void *stream, void **out_own_stream);
int foreign_join(foreign_library *library, void *stream);

/* Streams of the library's own; and the handles of the default streams. */
enum { FOREIGN_BLOCKING = 0, FOREIGN_NON_BLOCKING = 1 };
enum { FOREIGN_LEGACY = 1, FOREIGN_PER_THREAD = 2 };
int foreign_stream_create(foreign_library *library, unsigned flags, void **out_stream);
int foreign_stream_destroy(foreign_library *library, void *stream);

/* Makes `to` wait for the work enqueued on `from`, by the library's own event. */
int foreign_order(foreign_library *library, void *from, void *to);

/* Records the library's own event as a node. The event may be used outside the capture. */
int foreign_record_external(foreign_library *library, void *stream);

/* Calls that a library should not make on a capturing stream. */
int foreign_synchronize(foreign_library *library, void *stream);
int foreign_begin_capture(foreign_library *library, void *stream);
int foreign_end_capture(foreign_library *library, void *stream);

/* Graphs of the library's own. `end` returns what foreign_begin_capture began to capture. A child is added after no
 * node. `run` instantiates a graph, launches it and waits; `launch` launches an executable graph and waits; `enqueue`
 * only launches it. */
int foreign_graph_end(foreign_library *library, void *stream, void **out_graph);
int foreign_graph_destroy(foreign_library *library, void *graph);
int foreign_graph_add_child(foreign_library *library, void *graph, void *child);
int foreign_graph_count(foreign_library *library, void *graph, size_t *out_count);
int foreign_graph_run(foreign_library *library, void *graph, void *stream);
int foreign_exec_enqueue(foreign_library *library, void *exec, void *stream);
int foreign_exec_launch(foreign_library *library, void *exec, void *stream);

#endif
