/* SPDX-License-Identifier: MIT
 * Messages about an address or a size: each misuse has its own error, which names the allocation (GM-18), and
 * OUT_OF_MEMORY lists the users of the memory. Also the checks of ranges that work accesses.
 */
#ifndef RONDO_MEMORY_MEMORY_ERRORS_H
#define RONDO_MEMORY_MEMORY_ERRORS_H

#include "memory/device_memory.h"

/* Says why the address cannot be freed. Under the lock. */
RONDO_MUST_USE rondo_status rondo_memory_refuse_free(const rondo_device_memory *memory, const char *call,
                                                     const void *address);
/* The same for rondo_host_free. */
RONDO_MUST_USE rondo_status rondo_memory_refuse_host_free(const rondo_device_memory *memory, const void *address);

/* Refuses a free node of an address that no alloc node has: FOREIGN_ADDRESS. Under the lock. */
RONDO_MUST_USE rondo_status rondo_memory_refuse_free_node(const rondo_device_memory *memory, const void *address);

/* Checks whether work may access the range. OUT_OF_RANGE if it begins in an allocation and passes its end (B4).
 * INVALID_LIFETIME with USE_AFTER_FREE if it is in an allocation that was freed recently. `what` names the range. Graph
 * memory that is not allocated is NOT_ALLOCATED or USE_AFTER_FREE for work that is enqueued `now`, and allowed for
 * nodes. Addresses in no allocation of the device are allowed. */
RONDO_MUST_USE rondo_status rondo_memory_check_range(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes, bool now);

/* How many allocations have been freed so far, to distinguish later frees from earlier ones. */
typedef struct rondo_freed_marks {
  uint64_t device, host;
} rondo_freed_marks;
void rondo_memory_mark_freed(rondo_device_memory *memory, rondo_freed_marks *out);

/* The freed allocation in which the range begins; NULL if none is known. Its addresses are not in use again, because
 * they still belong to the device or are not mapped; or it was freed after `since` (NULL: not known). Under the lock.
 */
const rondo_freed *rondo_memory_find_freed(rondo_device_memory *memory, const void *address, size_t bytes,
                                           const rondo_freed_marks *since);

/* As rondo_memory_check_range for work that is enqueued now, whose addresses were checked at `since` (NULL: not known).
 * What was freed after that is USE_AFTER_FREE, even if its addresses were released. Takes the lock. */
RONDO_MUST_USE rondo_status rondo_memory_check_still(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes, const rondo_freed_marks *since);

/* As rondo_memory_is_plain; *out is the allocation. */
bool rondo_memory_find_plain(const rondo_device_memory *memory, const void *address, size_t bytes,
                             rondo_range_found *out);

/* True if the range is in an allocation of the device that belongs to no graph and no arena. False means that a slower
 * check is needed. Takes no lock. Any thread. */
bool rondo_memory_is_plain(const rondo_device_memory *memory, const void *address, size_t bytes);

/* OUT_OF_MEMORY for a size that does not fit the address space after rounding. */
rondo_status rondo_memory_fail_size(size_t bytes);

/* OUT_OF_MEMORY for more bytes than the device has memory; `of` is "" or " of graph memory". */
rondo_status rondo_memory_fail_larger(const rondo_device_memory *memory, rondo_reason reason, size_t bytes,
                                      const char *of);

/* Adds the users of the memory to the message of a failure to allocate `bytes` for `what` ("rondo_malloc"). Without the
 * lock. */
rondo_status rondo_memory_fail_growth(rondo_device_memory *memory, rondo_status status, const char *what, size_t bytes);

#endif
