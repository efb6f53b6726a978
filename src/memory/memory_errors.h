/* SPDX-License-Identifier: MIT
 * Messages about an address or a size: each misuse has its own error, which names the allocation (GM-18), and
 * OUT_OF_MEMORY says who has how much memory. Also the checks of ranges that work accesses.
 */
#ifndef RONDO_MEMORY_MEMORY_ERRORS_H
#define RONDO_MEMORY_MEMORY_ERRORS_H

#include "memory/device_memory.h"

/* Why there is nothing to free at the address. Under the lock. */
RONDO_MUST_USE rondo_status rondo_memory_refuse_free(const rondo_device_memory *memory, const char *call,
                                                     const void *address);
/* The same for rondo_host_free. */
RONDO_MUST_USE rondo_status rondo_memory_refuse_host_free(const rondo_device_memory *memory, const void *address);

/* Why a free node of an address that no alloc node has cannot be made: FOREIGN_ADDRESS. Under the lock. */
RONDO_MUST_USE rondo_status rondo_memory_refuse_free_node(const rondo_device_memory *memory, const void *address);

/* Whether work may access the range: OUT_OF_RANGE when it begins in an allocation and passes its end (B4),
 * INVALID_LIFETIME with USE_AFTER_FREE when it lies in an allocation that was freed recently. `what` names the range.
 * Graph memory that is not allocated is NOT_ALLOCATED or USE_AFTER_FREE for work that is enqueued `now`, and fine for
 * nodes. Addresses in no allocation of the device pass. */
RONDO_MUST_USE rondo_status rondo_memory_check_range(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes, bool now);

/* How much has been freed so far, to tell later frees from earlier ones. */
typedef struct rondo_freed_marks {
  uint64_t device, host;
} rondo_freed_marks;
void rondo_memory_mark_freed(rondo_device_memory *memory, rondo_freed_marks *out);

/* The freed allocation that the range begins in; NULL if none is known. It is one whose addresses nobody else has,
 * because they still belong to the device or are not mapped, or one that was freed after `since` (NULL: not known).
 * Under the lock. */
const rondo_freed *rondo_memory_find_freed(rondo_device_memory *memory, const void *address, size_t bytes,
                                           const rondo_freed_marks *since);

/* As rondo_memory_check_range for work that is enqueued now, whose addresses were checked at `since` (NULL: not known).
 * What was freed after that is USE_AFTER_FREE, even if its addresses were released. Takes the lock. */
RONDO_MUST_USE rondo_status rondo_memory_check_still(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes, const rondo_freed_marks *since);

/* The allocation, under the conditions of rondo_memory_is_plain. */
bool rondo_memory_find_plain(const rondo_device_memory *memory, const void *address, size_t bytes,
                             rondo_range_found *out);

/* True, without the lock, when the range lies in an allocation of the device that belongs to no graph and no arena.
 * False means that a closer look is needed. Any thread. */
bool rondo_memory_is_plain(const rondo_device_memory *memory, const void *address, size_t bytes);

/* OUT_OF_MEMORY for a size that does not fit the address space when it is rounded. */
rondo_status rondo_memory_fail_size(size_t bytes);

/* OUT_OF_MEMORY for more than all memory of the device; `of` is "" or " of graph memory". */
rondo_status rondo_memory_fail_larger(const rondo_device_memory *memory, rondo_reason reason, size_t bytes,
                                      const char *of);

/* Adds who has how much memory to the message of a failure to get `bytes` for `what` ("rondo_malloc"). Without the
 * lock.
 */
rondo_status rondo_memory_fail_growth(rondo_device_memory *memory, rondo_status status, const char *what, size_t bytes);

#endif
