/* SPDX-License-Identifier: MIT
 * The ranges of addresses that graph memory takes of the process. A graph's space begins with one range, whose size
 * depends on how many ranges there are, and gets another one when that is full. Offsets in a space go on from range to
 * range, where addresses do not: what has an offset is found at an address by these functions alone. No allocation and
 * no mapping reaches from one range into another.
 *
 * Ranges are added under the lock of the device's memory, and stay until their space is destroyed. So whoever holds the
 * space and knows of an allocation in a range may look for it without the lock.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_RANGES_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_RANGES_H

#include "memory/graph_memory/address_space.h"

/* Addresses, at least so many and at most so many as are wanted. */
RONDO_MUST_USE rondo_status rondo_graph_addresses_reserve(rondo_device *device, size_t least, size_t wanted,
                                                          char **out_base, size_t *out_bytes);
/* Gives them back. Those where something is still mapped are lost. */
void rondo_graph_addresses_give_back(rondo_device_memory *memory, char *base, size_t bytes, uint32_t place,
                                     bool unmapped);
/* What is wanted where it is not known how much is needed: enough for all of the device's memory with gaps. */
size_t rondo_graph_addresses_wanted(const rondo_device_memory *memory);

/* The first range of a space that has none yet, for at least `bytes`. */
RONDO_MUST_USE rondo_status rondo_address_space_begin(rondo_address_space *space, size_t bytes);
/* The same for a space that no graph has, with room for the larger chunks of a heap. */
RONDO_MUST_USE rondo_status rondo_address_space_reserve(rondo_address_space *space, size_t bytes);
/* Another range, for at least `bytes`, behind `full`, the last one; unless there is another one already. */
RONDO_MUST_USE rondo_status rondo_address_space_grow(rondo_address_space *space, const rondo_address_range *full,
                                                     size_t bytes);
/* Gives all ranges back. */
void rondo_address_space_give_back(rondo_address_space *space, bool unmapped);

static inline rondo_address_range *rondo_address_range_next(const rondo_address_range *range) {
  return atomic_load_explicit(&range->next, memory_order_acquire);
}
const rondo_address_range *rondo_address_range_last(const rondo_address_space *space);
/* The bytes of the range that count: in all but the last, those before the offset at which the next one begins. */
size_t rondo_address_range_bytes(const rondo_address_range *range);
static inline bool rondo_address_range_has(const rondo_address_range *range, const char *address) {
  return (uintptr_t)address - (uintptr_t)range->base < range->bytes;
}

/* The range that an offset is in. */
const rondo_address_range *rondo_address_range_of(const rondo_address_space *space, size_t offset);
char *rondo_address_space_at(const rondo_address_space *space, size_t offset);
/* Of an address in the space. */
size_t rondo_address_space_offset(const rondo_address_space *space, const char *address);

#endif
