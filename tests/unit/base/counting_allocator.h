/* SPDX-License-Identifier: MIT
 * An allocator over the C library's that counts, can fail at a chosen call, and notices a release with another number
 * of bytes than was asked for. Threads: one.
 */
#ifndef RONDO_TESTS_COUNTING_ALLOCATOR_H
#define RONDO_TESTS_COUNTING_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/allocation.h"

#define COUNTING_BLOCKS 256

typedef struct counting_allocator {
  size_t calls;
  size_t fail_at; /* the call that fails, from 1 on; 0: none */
  size_t live;
  size_t live_bytes;
  bool wrong_release;
  size_t alignment; /* of the last call */
  struct {
    void *pointer;
    size_t bytes;
  } blocks[COUNTING_BLOCKS];
} counting_allocator;

static inline void *counting_allocate(void *self, size_t bytes, size_t alignment) {
  counting_allocator *counting = self;
  const rondo_allocator libc = rondo_allocator_default();
  counting->calls++;
  counting->alignment = alignment;
  if (counting->calls == counting->fail_at || counting->live == COUNTING_BLOCKS) return NULL;
  void *pointer = libc.allocate(libc.self, bytes, alignment);
  if (pointer == NULL) return NULL;
  for (size_t i = 0; i < bytes; i++) ((unsigned char *)pointer)[i] = 0xA5;
  counting->blocks[counting->live].pointer = pointer;
  counting->blocks[counting->live].bytes = bytes;
  counting->live++;
  counting->live_bytes += bytes;
  return pointer;
}

static inline void counting_release(void *self, void *pointer, size_t bytes) {
  counting_allocator *counting = self;
  const rondo_allocator libc = rondo_allocator_default();
  for (size_t i = 0; i < counting->live; i++) {
    if (counting->blocks[i].pointer != pointer) continue;
    if (counting->blocks[i].bytes != bytes) counting->wrong_release = true;
    counting->live_bytes -= counting->blocks[i].bytes;
    counting->blocks[i] = counting->blocks[--counting->live];
    libc.release(libc.self, pointer, bytes);
    return;
  }
  counting->wrong_release = true;
}

static inline rondo_allocator counting_hook(counting_allocator *counting) {
  return (rondo_allocator){.self = counting, .allocate = counting_allocate, .release = counting_release};
}

#endif
