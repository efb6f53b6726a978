/* SPDX-License-Identifier: MIT
 * The tables of addresses of a checking device, and its virtual memory.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_MEMORY_H
#define RONDO_DEVICE_CHECK_CHECK_MEMORY_H

#include "device/check/check.h"

/* The first range that ends after `address`. */
size_t check_index_seek(const check_index *index, const void *address);

/* The range that holds `address`, or NULL. */
const check_range *check_index_find(const check_index *index, const void *address);

/* Inserts a range. With `edit` held, but not `spin`. */
RONDO_MUST_USE rondo_status check_index_insert(struct check_state *check, check_index *index, check_range range);

/* Removes the first range that overlaps [begin, end). False if there is none. With `edit` held. */
bool check_index_remove(check_state *check, check_index *index, const char *begin, const char *end, check_range *out);
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

/* Restores what was at the scratch memory of a run (NULL: at all that overlaps the range). With both locks held. */
void check_scratch_clear(check_state *check, const check_run *run, const char *begin, const char *end);

/* False if there are too many, or no memory. With the spin lock held. */
bool check_scratch_map(check_state *check, check_scratch scratch);

#endif
