/* SPDX-License-Identifier: MIT
 * A library that knows nothing of Rondo, as cuBLAS and its like do not: it is given a stream's native handle
 * (rondo_stream_native) and talks to the CUDA driver by itself, which it finds by name: RONDO_CUDA_LIBRARY, else
 * libcuda.so.1. Its kernel is PTX; with the fake driver the CPU function of that name.
 *
 * All calls return the driver's code, 0 for success; they leave the caller's current context as it was. One thread.
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

/* NULL where there is no driver. */
foreign_library *foreign_open(void);
void foreign_close(foreign_library *library);

/* word = word * factor + term, by a kernel whose arguments are given one by one; as one buffer; or by one that may
 * begin before the kernel in front of it has ended (programmatic dependent launch), at a priority of its own. */
int foreign_affine(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word);
int foreign_affine_by_buffer(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word);
int foreign_affine_early(foreign_library *library, void *stream, uint32_t factor, uint32_t term, uint32_t *word);

int foreign_copy(foreign_library *library, void *stream, void *dst, const void *src, size_t bytes);
int foreign_copy_rows(foreign_library *library, void *stream, void *dst, size_t dst_pitch, const void *src,
                      size_t src_pitch, size_t width, size_t height);
int foreign_fill(foreign_library *library, void *stream, uint32_t *words, uint32_t value, size_t count);
int foreign_host(foreign_library *library, void *stream, void (*function)(void *), void *user);
/* Waits on the device until the word is `value`: work that can stand in the driver's own graphs alone. */
int foreign_wait_value(foreign_library *library, void *stream, uint32_t *word, uint32_t value);

/* Memory from the driver in stream order, as a library takes it that was given no workspace. */
int foreign_allocate(foreign_library *library, void *stream, size_t bytes, void **out);
int foreign_free(foreign_library *library, void *stream, void *memory);

/* Forks a stream of the library's own off from the caller's, and joins it again. */
int foreign_fork(foreign_library *library, void *stream, void **out_own_stream);
int foreign_join(foreign_library *library, void *stream);

/* Lets `to` wait for what `from` has been given, by the library's own event. */
int foreign_order(foreign_library *library, void *from, void *to);

/* A record of the library's own event, as a node (it is outside of the capture that it counts). */
int foreign_record_external(foreign_library *library, void *stream);

/* What a library should not do to a stream that captures. */
int foreign_synchronize(foreign_library *library, void *stream);
int foreign_begin_capture(foreign_library *library, void *stream);
int foreign_end_capture(foreign_library *library, void *stream);

#endif
