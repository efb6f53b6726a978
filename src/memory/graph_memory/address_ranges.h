/* SPDX-License-Identifier: MIT
 * The address ranges that graph memory reserves. A graph's space begins with one range, whose size depends on the
 * number of ranges in the process, and gets another range when that is full. Offsets in a space continue from range to
 * range, but addresses do not: only these functions convert between them. No allocation and no mapping spans two
 * ranges.
 *
 * Ranges are added under the lock of the device's memory, and stay until their space is destroyed. So code that retains
 * the space and knows an allocation in a range may look it up without the lock.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_RANGES_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_RANGES_H

#include "memory/graph_memory/address_space.h"

/* Reserves at least `min_bytes` and at most `wanted` bytes of addresses. */
RONDO_MUST_USE rondo_status rondo_graph_addresses_reserve(rondo_device *device, size_t min_bytes, size_t wanted,
                                                          char **out_base, size_t *out_bytes);
/* Releases them. Addresses where memory is still mapped are lost. */
void rondo_graph_addresses_give_back(rondo_device_memory *memory, char *base, size_t bytes, uint32_t index_node,
                                     bool unmapped);
/* The bytes to reserve if the need is not known: enough for all of the device's memory with gaps. */
size_t rondo_graph_addresses_wanted(const rondo_device_memory *memory);

/* Reserves the first range, for at least `bytes`, unless the space has one. */
RONDO_MUST_USE rondo_status rondo_address_space_begin(rondo_address_space *space, size_t bytes);
/* The same for the space of a relocated exec, with extra addresses for the larger chunks of a heap. */
RONDO_MUST_USE rondo_status rondo_address_space_reserve(rondo_address_space *space, size_t bytes);
/* Adds a range for at least `bytes` after `full`, unless another thread has added one already. */
RONDO_MUST_USE rondo_status rondo_address_space_grow(rondo_address_space *space, const rondo_address_range *full,
                                                     size_t bytes);
/* Releases all ranges. */
void rondo_address_space_give_back(rondo_address_space *space, bool unmapped);

static inline rondo_address_range *rondo_address_range_next(const rondo_address_range *range) {
  return atomic_load_explicit(&range->next, memory_order_acquire);
}
rondo_address_range *rondo_address_range_last(rondo_address_space *space);
/* The usable bytes of the range: up to the offset at which the next range begins. */
size_t rondo_address_range_bytes(const rondo_address_range *range);
static inline bool rondo_address_range_has(const rondo_address_range *range, const char *address) {
  return (uintptr_t)address - (uintptr_t)range->base < range->bytes;
}

/* The range that contains the offset; the address at an offset; the offset of an address. */
const rondo_address_range *rondo_address_range_of(const rondo_address_space *space, size_t offset);
char *rondo_address_space_at(const rondo_address_space *space, size_t offset);
size_t rondo_address_space_offset(const rondo_address_space *space, const char *address);

#endif
