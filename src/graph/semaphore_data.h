/* SPDX-License-Identifier: MIT
 * An external semaphore as data: a reference count and what the driver made of it. It is in this layer because graphs
 * refer to semaphores. Threads: any.
 */
#ifndef RONDO_GRAPH_SEMAPHORE_DATA_H
#define RONDO_GRAPH_SEMAPHORE_DATA_H

#include <stdatomic.h>

#include "graph/graph_internal.h"

struct rondo_external_semaphore {
  atomic_uint references;
  rondo_allocator allocator;
  rondo_device *device;
  char *name; /* "" without one */
  bool is_timeline;
  void *driver_data; /* the driver's; released with the last reference */
  void (*driver_release)(void *driver_data);
};

/* The caller gets one reference. */
RONDO_MUST_USE rondo_status rondo_semaphore_make(rondo_device *device, const rondo_allocator *allocator,
                                                 const char *name, rondo_external_semaphore **out);
void rondo_semaphore_retain(rondo_external_semaphore *semaphore);  /* NULL is fine, here and below */
void rondo_semaphore_release(rondo_external_semaphore *semaphore); /* frees with the last */

#endif
