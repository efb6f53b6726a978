/* SPDX-License-Identifier: MIT
 * Slots of device memory, each a seed and an offset, which launches read. They are filled on the launching queue, and
 * kept until the last launch is done. References are counted: an exec has one, and the draft of an update that takes
 * them over.
 *
 * Threads: as the exec. The device's list is under a lock, which is a leaf.
 */
#ifndef RONDO_EXEC_RANDOM_RANDOM_CELLS_H
#define RONDO_EXEC_RANDOM_RANDOM_CELLS_H

#include <pthread.h>

#include "device/device.h"

/* The words of a slot that are in it once what was queued so far is done. */
typedef struct rondo_random_words {
  uint32_t words[4];
  bool known[4];
} rondo_random_words;

typedef struct rondo_random_cells {
  rondo_device *device;
  uint32_t references;
  size_t count;
  uint64_t *address;               /* count * {seed, offset} */
  rondo_random_words *written;     /* as many */
  rondo_queue *queue;              /* of the last launch; NULL when all is done. An identity: it may be gone */
  rondo_device_event *event;       /* after that launch */
  struct rondo_random_cells *next; /* in the device's list */
} rondo_random_cells;

RONDO_MUST_USE rondo_status rondo_random_cells_create(rondo_device *device, size_t count, rondo_random_cells **out);
rondo_random_cells *rondo_random_cells_retain(rondo_random_cells *cells);
/* The last release frees the cells after their launches, without waiting. */
void rondo_random_cells_release(rondo_random_cells *cells);

/* Around a launch. After `enter`, what follows on the queue comes after all launches so far. `write` writes the words
 * of a slot that differ. `leave` makes what was enqueued since one of the launches; it returns `status`, unless that is
 * OK and it fails itself. No allocation, no lock. */
RONDO_MUST_USE rondo_status rondo_random_cells_enter(rondo_random_cells *cells, rondo_queue *queue);
RONDO_MUST_USE rondo_status rondo_random_cells_write(rondo_random_cells *cells, rondo_queue *queue, size_t slot,
                                                     uint64_t seed, uint64_t offset);
RONDO_MUST_USE rondo_status rondo_random_cells_leave(rondo_random_cells *cells, rondo_queue *queue,
                                                     rondo_status status);

uint64_t rondo_random_cells_host_bytes(const rondo_random_cells *cells);

/* What a device has of all this: hung on it when it is first asked for, freed when it closes. */
typedef struct rondo_random_store {
  rondo_allocator allocator;
  pthread_mutex_t lock;
  rondo_random_cells *waiting;        /* without an exec, and with launches that may not be done */
  struct rondo_generator *generators; /* all, by `next` */
  _Atomic uintptr_t first, last;      /* of the addresses that cells of generators ever had; to look without the lock */
} rondo_random_store;
RONDO_MUST_USE rondo_status rondo_random_store_of(rondo_device *device, rondo_random_store **out);
static inline rondo_random_store *rondo_random_store_made(const rondo_device *device) {
  return atomic_load_explicit(&device->random.state, memory_order_acquire); /* NULL when it was never asked for */
}

/* Memory of the device that is no user's: not among the allocations that keep the device open. */
RONDO_MUST_USE rondo_status rondo_random_allocate(rondo_device *device, size_t bytes, const char *name,
                                                  void **out_address);
void rondo_random_free(rondo_device *device, void *address);

#endif
