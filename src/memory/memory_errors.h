/* SPDX-License-Identifier: MIT
 * What is wrong with an address or a size, in words: every misuse its own error, which names the allocation (GM-18),
 * and who holds the memory when there is no more.
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

/* Whether work may touch the range: OUT_OF_RANGE when it begins in an allocation and passes its end (B4),
 * INVALID_LIFETIME with USE_AFTER_FREE when it lies in one that was freed lately. `what` names the range. Graph memory
 * that is not allocated is NOT_ALLOCATED or USE_AFTER_FREE too for work that is queued `now`, and fine for nodes.
 * Addresses in no allocation of the device's pass. */
RONDO_MUST_USE rondo_status rondo_memory_check_range(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes, bool now);

/* What was freed last. */
typedef struct rondo_freed_marks {
  uint64_t device, host;
} rondo_freed_marks;
void rondo_memory_mark_freed(rondo_device_memory *memory, rondo_freed_marks *out);

/* The freed allocation that the range begins in: one whose addresses nobody else can have, because the device has them,
 * or has, because they are not mapped, or one that was freed after `since` (NULL: not known); NULL when there is none
 * known. Under the lock. */
const rondo_freed *rondo_memory_find_freed(rondo_device_memory *memory, const void *address, size_t bytes,
                                           const rondo_freed_marks *since);

/* As rondo_memory_check_range for work that is queued now, whose addresses were checked at `since`: so what was freed
 * later is USE_AFTER_FREE also where its addresses are gone. `since` may be NULL: not known. Takes the lock. */
RONDO_MUST_USE rondo_status rondo_memory_check_still(rondo_device_memory *memory, const char *call, const char *what,
                                                     const void *address, size_t bytes, const rondo_freed_marks *since);

/* The allocation, under the conditions of rondo_memory_is_plain. */
bool rondo_memory_find_plain(const rondo_device_memory *memory, const void *address, size_t bytes,
                             rondo_range_found *out);

/* True, without the lock, when the range lies in an allocation of the device's own that no graph and no arena has;
 * false says that it takes a closer look. Any thread. */
bool rondo_memory_is_plain(const rondo_device_memory *memory, const void *address, size_t bytes);

/* OUT_OF_MEMORY for what is more than all memory of the device; `of` is "" or " of graph memory". */
rondo_status rondo_memory_fail_larger(const rondo_device_memory *memory, rondo_reason reason, size_t bytes,
                                      const char *of);

/* Puts before the message of a failure to get `bytes` for `what` ("rondo_malloc") who holds how much. Without the lock.
 */
rondo_status rondo_memory_fail_growth(rondo_device_memory *memory, rondo_status status, const char *what, size_t bytes);

#endif
