/* SPDX-License-Identifier: MIT
 * See semaphore_data.h.
 */
#include "graph/semaphore_data.h"

#include <assert.h>

#include "base/error.h"

rondo_status rondo_semaphore_make(rondo_device *device, const rondo_allocator *allocator, const char *name,
                                  rondo_external_semaphore **out) {
  rondo_external_semaphore *semaphore;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *semaphore, &semaphore));
  atomic_init(&semaphore->references, 1);
  semaphore->allocator = *allocator;
  semaphore->device = device;
  const rondo_status status = rondo_allocate_text(allocator, name, &semaphore->name);
  if (status == RONDO_OK)
    *out = semaphore;
  else
    rondo_release(allocator, semaphore, 1, sizeof *semaphore);
  return status;
}

void rondo_semaphore_retain(rondo_external_semaphore *semaphore) {
  if (semaphore != NULL) atomic_fetch_add_explicit(&semaphore->references, 1, memory_order_relaxed);
}

void rondo_semaphore_release(rondo_external_semaphore *semaphore) {
  if (semaphore == NULL) return;
  assert(atomic_load_explicit(&semaphore->references, memory_order_relaxed) > 0);
  if (atomic_fetch_sub_explicit(&semaphore->references, 1, memory_order_acq_rel) != 1) return;
  if (semaphore->driver_release != NULL) semaphore->driver_release(semaphore->driver_data);
  const rondo_allocator allocator = semaphore->allocator;
  rondo_release_text(&allocator, semaphore->name);
  rondo_release(&allocator, semaphore, 1, sizeof *semaphore);
}
