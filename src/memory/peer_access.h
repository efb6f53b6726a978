/* SPDX-License-Identifier: MIT
 * Devices that access each other's memory (GM-17): which device an address belongs to, and whether another device may
 * access it. One directory of the process has every range of addresses that a device reserves, so that an address is
 * found without asking each device. While only one device has memory, nothing is looked up.
 *
 * Access is granted to a device's index, as in the hardware, so to every open device with that index. Allocations of
 * graph memory that share addresses have one mapping, and so the access of all of them.
 *
 * Threads: any. Looking up an address takes no lock, unless the directory changes at that moment. Looking up the
 * access to an allocation of another device takes the lock of that device's memory. No other lock is taken under the
 * directory's lock.
 */
#ifndef RONDO_MEMORY_PEER_ACCESS_H
#define RONDO_MEMORY_PEER_ACCESS_H

#include "base/component.h"
#include "memory/device_memory.h"

/* The driver's reserve and unreserve, which also update the directory. */
RONDO_MUST_USE rondo_status rondo_peers_reserve(rondo_device *device, size_t bytes, size_t alignment,
                                                void **out_address);
RONDO_MUST_USE rondo_status rondo_peers_unreserve(rondo_device *device, void *address, size_t bytes);

/* Adds the addresses of memory from the device's guard to the directory; removes them. */
RONDO_MUST_USE rondo_status rondo_peers_note(rondo_device *device, const void *address, size_t bytes);
void rondo_peers_forget(rondo_device *device, const void *address);

/* How many devices have addresses. */
extern atomic_uint rondo_peers_with_memory;

static inline bool rondo_peers_others_have_memory(const rondo_device *device) {
  const unsigned own = atomic_load_explicit(&device->reservations, memory_order_relaxed) > 0;
  return atomic_load_explicit(&rondo_peers_with_memory, memory_order_relaxed) > own;
}

/* The device that reserved the address; NULL when there is none. */
RONDO_PRIVATE rondo_device *rondo_peers_owner(const void *address);

/* UNKNOWN_DEVICE when the list names a device that cannot access memory of `owner`. */
RONDO_MUST_USE rondo_status rondo_peers_check_list(const char *call, const rondo_device *owner, uint64_t peers);

/* Lets the driver enable access to memory of `owner` by those devices. Called before access is granted. */
RONDO_MUST_USE rondo_status rondo_peers_admit(rondo_device *owner, uint64_t peers);

/* What is at an address of another device. */
#define RONDO_PEER_NAME 64
typedef struct rondo_peer_memory {
  const rondo_device *owner;
  const char *begin; /* of the allocation; NULL when there is none */
  size_t bytes;
  char name[RONDO_PEER_NAME]; /* may be truncated; "" for none */
  bool allowed;               /* the requesting device may access it */
} rondo_peer_memory;

/* False when the address belongs to `device` or to no device. */
bool rondo_peers_find(const rondo_device *device, const void *address, rondo_peer_memory *out);

/* NO_ACCESS when the work uses memory of another device that `device` may not access: INVALID_GRAPH for the node
 * `where`, INVALID_ARGUMENT for work on a stream (`where` is NULL). */
RONDO_MUST_USE rondo_status rondo_peers_check_slowly(const rondo_device *device, const char *call,
                                                     const rondo_node_params *work, const rondo_node_where *where);

static inline rondo_status rondo_peers_check(const rondo_device *device, const char *call,
                                             const rondo_node_params *work, const rondo_node_where *where) {
  return __builtin_expect(rondo_peers_others_have_memory(device), 0)
             ? rondo_peers_check_slowly(device, call, work, where)
             : RONDO_OK;
}

#endif
