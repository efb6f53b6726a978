/* SPDX-License-Identifier: MIT
 * The user objects of execs. An exec retains them in a record of its own. When the exec is destroyed or gets others,
 * the record is retired: an event marks the end of the launches so far. A later call of the program finds the event
 * complete and releases the objects.
 *
 * Threads: a record as its exec; retired records any. The list of a device is taken as a whole, so no lock is held
 * while the user's functions run.
 */
#ifndef RONDO_DEVICE_RETIRED_OBJECTS_H
#define RONDO_DEVICE_RETIRED_OBJECTS_H

#include "device/device.h"

typedef struct rondo_launched_objects rondo_launched_objects;

/* What the graph and its children retain. *out is NULL if that is nothing. Everything that retiring needs is made here,
 * so that it cannot fail for memory. */
RONDO_MUST_USE rondo_status rondo_launched_objects_make(rondo_device *device, const rondo_graph *graph,
                                                        rondo_launched_objects **out);

/* Releases the objects of an exec that was never made. NULL is fine. */
void rondo_launched_objects_free(rondo_launched_objects *objects);

/* Releases the objects once the executable's launches so far have ended. `last` is the number of the queue of the last
 * launch, or one of the two below. The caller then looks for what is over. `objects` NULL is fine. The thread's error
 * stays. */
#define RONDO_QUEUE_NONE UINT64_C(0)
#define RONDO_QUEUE_UNKNOWN UINT64_MAX
void rondo_launched_objects_retire(rondo_launched_objects *objects, rondo_executable *executable, uint64_t last);

/* Releases retired objects whose launches have ended: those that are known to have, and those whose last launch was on
 * the queue `waited`, for which the caller has waited; it may be RONDO_QUEUE_NONE. Nothing happens in host functions
 * and on threads of the library. The thread's error stays. */
void rondo_retired_objects_settle(rondo_device *device, uint64_t waited);
static inline void rondo_retired_objects_look(rondo_device *device, uint64_t waited) {
  if (atomic_load_explicit(&device->retired, memory_order_relaxed) != NULL)
    rondo_retired_objects_settle(device, waited);
}

/* Takes all retired objects, but none on a thread of the library, before the caller waits for the device. Afterwards
 * they are released, or retired again if their launches may not be over. */
rondo_launched_objects *rondo_retired_objects_take(rondo_device *device);
void rondo_retired_objects_end(rondo_device *device, rondo_launched_objects *list, bool are_over);

/* For rondo_device_close, which takes them: before the driver's close, and after it. */
void rondo_retired_objects_unmark(rondo_launched_objects *list);
void rondo_retired_objects_free(const rondo_allocator *allocator, rondo_launched_objects *list);

#endif
