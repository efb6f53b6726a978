/* SPDX-License-Identifier: MIT
 * The ranges of addresses that graph memory reserves. A graph's space begins with one range, whose size depends on how
 * many ranges the process has, and gets another range when that is full. Offsets in a space continue from range to
 * range, while addresses do not: only these functions convert between them. No allocation and no mapping is in two
 * ranges.
 *
 * Ranges are added under the lock of the device's memory, and stay until their space is destroyed. So code that retains
 * the space and knows an allocation in a range may look it up without the lock.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_RANGES_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_RANGES_H

#include "memory/graph_memory/address_space.h"

/* Reserves at least `least` and at most `wanted` bytes of addresses. */
RONDO_MUST_USE rondo_status rondo_graph_addresses_reserve(rondo_device *device, size_t least, size_t wanted,
                                                          char **out_base, size_t *out_bytes);
/* Gives them back. Addresses where something is still mapped are lost. */
void rondo_graph_addresses_give_back(rondo_device_memory *memory, char *base, size_t bytes, uint32_t place,
                                     bool unmapped);
/* How many to reserve when the need is not known: enough for all of the device's memory with gaps. */
size_t rondo_graph_addresses_wanted(const rondo_device_memory *memory);

/* The first range of a space that has none yet, for at least `bytes`. */
RONDO_MUST_USE rondo_status rondo_address_space_begin(rondo_address_space *space, size_t bytes);
/* The same for a space of no graph, with room for the larger chunks of a heap. */
RONDO_MUST_USE rondo_status rondo_address_space_reserve(rondo_address_space *space, size_t bytes);
/* Adds a range for at least `bytes` after `full`, unless that is not the last one any more. */
RONDO_MUST_USE rondo_status rondo_address_space_grow(rondo_address_space *space, const rondo_address_range *full,
                                                     size_t bytes);
/* Gives all ranges back. */
void rondo_address_space_give_back(rondo_address_space *space, bool unmapped);

static inline rondo_address_range *rondo_address_range_next(const rondo_address_range *range) {
  return atomic_load_explicit(&range->next, memory_order_acquire);
}
rondo_address_range *rondo_address_range_last(rondo_address_space *space);
/* The bytes of the range that are used: up to the offset at which the next range begins. */
size_t rondo_address_range_bytes(const rondo_address_range *range);
static inline bool rondo_address_range_has(const rondo_address_range *range, const char *address) {
  return (uintptr_t)address - (uintptr_t)range->base < range->bytes;
}

/* The range that has the offset; the address at an offset; the offset of an address in the space. */
const rondo_address_range *rondo_address_range_of(const rondo_address_space *space, size_t offset);
char *rondo_address_space_at(const rondo_address_space *space, size_t offset);
size_t rondo_address_space_offset(const rondo_address_space *space, const char *address);

#endif
