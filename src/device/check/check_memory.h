/* SPDX-License-Identifier: MIT
 * A checking device's tables of addresses, and its virtual memory: what plain devices do, noted by address, with
 * pages that cannot be accessed until an area on them lives, and reservations that are kept for a while when they
 * are given back.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_MEMORY_H
#define RONDO_DEVICE_CHECK_CHECK_MEMORY_H

#include "device/check/check.h"

/* The first range that ends behind `address`. */
size_t check_index_seek(const check_index *index, const void *address);

/* The range that holds `address`, or NULL. */
const check_range *check_index_find(const check_index *index, const void *address);

/* The tables and the memory (check_memory.c). Ranges are entered with `edit` held, and not `spin`. */
RONDO_MUST_USE rondo_status check_index_insert(struct check_state *check, check_index *index, check_range range);

/* Takes the first range that touches [begin, end) out; false when there is none. With `edit` held. */
bool check_index_remove(check_state *check, check_index *index, const char *begin, const char *end, void **out_object);
void check_memory_init(check_state *check);
void check_memory_deinit(check_state *check);
RONDO_MUST_USE rondo_status check_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
RONDO_MUST_USE rondo_status check_unreserve(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status check_map(rondo_device *device, void *address, rondo_physical *physical);
RONDO_MUST_USE rondo_status check_unmap(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status check_host_allocate(rondo_device *device, size_t bytes, void **out_address);
void check_host_release(rondo_device *device, void *address, size_t bytes);
void check_lock(check_state *check);
void check_unlock(check_state *check);
void check_spin_lock(check_state *check);
void check_spin_unlock(check_state *check);

/* Puts back what was at the scratches of a run (NULL: at all that touch the range). With both locks held. */
void check_scratch_clear(check_state *check, const check_run *run, const char *begin, const char *end);

/* False when there are too many, or no memory. With the spin lock held. */
bool check_scratch_map(check_state *check, check_scratch scratch);

#endif
