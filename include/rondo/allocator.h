/* SPDX-License-Identifier: MIT
 * Where the library gets its host memory from.
 *
 * A root object (device, graph made without a device, program) takes an allocator in its options; what is made from it
 * inherits it. NULL means the C library. The library calls malloc nowhere else.
 */
#ifndef RONDO_ALLOCATOR_H
#define RONDO_ALLOCATOR_H

#include <stddef.h>

#include <rondo/version.h>

RONDO_EXTERN_C_BEGIN

/* Both functions must be thread-safe, must not call Rondo, and must outlive every object that was made with them.
 * The struct itself is copied. */
typedef struct rondo_allocator {
  void *self; /* handed to both functions */
  /* Returns `bytes` (at least 1) aligned to `alignment` (a power of two, at least 16), or NULL. */
  void *(*allocate)(void *self, size_t bytes, size_t alignment);
  /* Takes back what allocate returned; `bytes` is what was asked for then. `pointer` is never NULL. */
  void (*release)(void *self, void *pointer, size_t bytes);
} rondo_allocator;

/* Frees a text that the library handed out (`char **out_text`). NULL is fine. Thread-safe. */
RONDO_API void rondo_text_free(char *text);

RONDO_EXTERN_C_END

#endif
