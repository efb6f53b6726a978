/* SPDX-License-Identifier: MIT
 * The counter lives in memory of the allocator below it, so it ends before that one does. Calls may come from several
 * threads: the number is atomic, and the rest never changes.
 */
#include "base/counting_allocator.h"

#include <stdatomic.h>

#include "base/allocation.h"
#include "base/error.h"

typedef struct counting_allocator {
  rondo_allocator inner;
  _Atomic uint64_t calls;
} counting_allocator;

static void *count_and_allocate(void *self, size_t bytes, size_t alignment) {
  counting_allocator *counter = self;
  atomic_fetch_add_explicit(&counter->calls, 1, memory_order_relaxed);
  return counter->inner.allocate(counter->inner.self, bytes, alignment);
}

static void release_through(void *self, void *pointer, size_t bytes) {
  const counting_allocator *counter = self;
  counter->inner.release(counter->inner.self, pointer, bytes);
}

rondo_status rondo_counting_allocator_make(const rondo_allocator *given, rondo_allocator *out) {
  rondo_allocator inner;
  void *memory;
  RONDO_TRY(rondo_allocator_resolve(given, &inner));
  RONDO_TRY(rondo_allocate(&inner, 1, sizeof(counting_allocator), &memory));
  counting_allocator *counter = memory;
  counter->inner = inner;
  *out = (rondo_allocator){.self = counter, .allocate = count_and_allocate, .release = release_through};
  return RONDO_OK;
}

void rondo_counting_allocator_free(const rondo_allocator *counting) {
  counting_allocator *counter = counting->self;
  const rondo_allocator inner = counter->inner;
  rondo_release(&inner, counter, 1, sizeof *counter);
}

uint64_t rondo_counting_allocator_calls(const rondo_allocator *counting) {
  const counting_allocator *counter = counting->self;
  return atomic_load_explicit(&counter->calls, memory_order_relaxed);
}

rondo_allocator rondo_allocator_uncounted(const rondo_allocator *allocator) {
  if (allocator->allocate != count_and_allocate) return *allocator;
  const counting_allocator *counter = allocator->self;
  return counter->inner;
}
