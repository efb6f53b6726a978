/* SPDX-License-Identifier: MIT
 * Allocators: where the library gets its host memory from.
 *
 * A root object (a device, a graph created without a device, a program) takes an allocator in its options. Objects that
 * are created from it inherit the allocator. NULL means the C library. The library allocates no host memory in any
 * other way.
 */
#ifndef RONDO_ALLOCATOR_H
#define RONDO_ALLOCATOR_H

#include <stddef.h>

#include <rondo/version.h>

RONDO_EXTERN_C_BEGIN

/* Both functions must be thread-safe, must not call Rondo, and must outlive every object that was made with them.
 * The struct itself is copied. */
typedef struct rondo_allocator {
  void *self; /* passed to both functions */
  /* Returns `bytes` (at least 1) aligned to `alignment` (a power of two, at least 16), or NULL. */
  void *(*allocate)(void *self, size_t bytes, size_t alignment);
  /* Frees what allocate returned. `bytes` is the size that was requested. `pointer` is never NULL. */
  void (*release)(void *self, void *pointer, size_t bytes);
} rondo_allocator;

/* Frees a string that the library returned (`char **out_text`). NULL is fine. The string may outlive the objects that
 * it describes, and their device, but not their allocator. Thread-safe. */
RONDO_API void rondo_text_free(char *text);

RONDO_EXTERN_C_END

#endif
