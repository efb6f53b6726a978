/* SPDX-License-Identifier: MIT
 * Reserving addresses for graph memory, and converting between offsets and addresses in a space of several ranges.
 * Reserving calls the driver, without the lock of the device's memory. If two threads reserve for one space, the second
 * one releases its addresses.
 */
#include "memory/graph_memory/address_ranges.h"

#include <assert.h>

#include "base/error.h"
#include "base/log.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/heap/graph_heap.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"

#define MIN_SPACE (UINT64_C(64) << 20) /* the smallest reservation to try */
/* A graph wants at least this many times its first allocation, or its profile's peak. */
#define NEEDED_TIMES 8
#define SPACE_ALIGNMENT ((size_t)2 << 20)

/* The process's addresses ----------------------------------------------------------------------------------------- */

/* The number of ranges of all devices of the process. */
static atomic_uint ranges;

size_t rondo_graph_addresses_wanted(const rondo_device_memory *memory) {
  if (memory->limit_bytes >= RONDO_ADDRESS_SPACE_MAX / 2) return (size_t)RONDO_ADDRESS_SPACE_MAX;
  const uint64_t twice = memory->limit_bytes * 2 / SPACE_ALIGNMENT * SPACE_ALIGNMENT;
  return (size_t)(twice > RONDO_ADDRESS_SPACE_MIN ? twice : RONDO_ADDRESS_SPACE_MIN);
}

/* The bytes to reserve, in whole pages. The first graphs of a process get addresses for all of the device's memory.
 * When there are many, each further one gets a share, so that the sum grows with the logarithm of their number. */
static size_t wanted_by(const rondo_device_memory *memory, size_t min_bytes) {
  const uint64_t whole = rondo_graph_addresses_wanted(memory);
  const uint64_t count = (uint64_t)atomic_load_explicit(&ranges, memory_order_relaxed) + 1;
  uint64_t share = RONDO_ADDRESS_SPACE_SHARED / count;
  if (share < MIN_SPACE) share = MIN_SPACE;
  if (share / NEEDED_TIMES < min_bytes) share = min_bytes < whole / NEEDED_TIMES ? min_bytes * NEEDED_TIMES : whole;
  return (size_t)((share < whole ? share : whole) / SPACE_ALIGNMENT * SPACE_ALIGNMENT);
}

static rondo_status fail_reserving(rondo_status status, rondo_device *device, size_t bytes, size_t min_bytes) {
  const rondo_device_memory *memory = rondo_device_memory_made(device);
  const unsigned others = atomic_load_explicit(&ranges, memory_order_relaxed);
  char size[RONDO_SIZE_TEXT];
  rondo_saved_error failure;
  if (status == RONDO_OUT_OF_MEMORY && memory != NULL && min_bytes > memory->limit_bytes)
    return rondo_memory_fail_larger(memory, RONDO_REASON_ADDRESS_SPACE, min_bytes, " of graph memory");
  rondo_error_save(&failure);
  if (failure.reason == RONDO_REASON_NONE) failure.reason = RONDO_REASON_ADDRESS_SPACE;
  rondo_error_restore(&failure);
  return rondo_fail_context(status,
                            "reserving at least %s of addresses for graph memory on %s, with %u such range%s in the "
                            "process: destroy graphs that are not needed",
                            rondo_size_text(size, bytes), device->name, others, others == 1 ? "" : "s");
}

/* The size to try after `bytes`: a quarter, and last `min_bytes`; 0 after that. */
static size_t next_smaller(size_t bytes, size_t min_bytes) {
  const size_t quarter = bytes / 4 / SPACE_ALIGNMENT * SPACE_ALIGNMENT;
  const size_t end = min_bytes > MIN_SPACE ? min_bytes : (size_t)MIN_SPACE;
  if (bytes <= end) return 0;
  return quarter > end ? quarter : end;
}

/* A reservation is a mapping too, and the process may have reached its limit of mappings. */
static rondo_status reserve_reclaiming(rondo_device *device, size_t bytes, void **out_base) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  if (memory == NULL) return RONDO_OUT_OF_MEMORY;
  rondo_reclaim reclaim = rondo_reclaim_begin(memory);
  rondo_status status = RONDO_OUT_OF_MEMORY;
  while (rondo_reclaim_more(&reclaim, status)) status = rondo_peers_reserve(device, bytes, SPACE_ALIGNMENT, out_base);
  return status;
}

rondo_status rondo_graph_addresses_reserve(rondo_device *device, size_t min_bytes, size_t wanted, char **out_base,
                                           size_t *out_bytes) {
  size_t bytes = wanted > min_bytes ? wanted : min_bytes;
  void *base;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = rondo_peers_reserve(device, bytes, SPACE_ALIGNMENT, &base);
  const bool at_once = status == RONDO_OK;
  for (size_t next; status == RONDO_OUT_OF_MEMORY && (next = next_smaller(bytes, min_bytes)) != 0;) {
    bytes = next;
    status = rondo_peers_reserve(device, bytes, SPACE_ALIGNMENT, &base);
  }
  if (status == RONDO_OUT_OF_MEMORY) status = reserve_reclaiming(device, bytes, &base);
  if (status != RONDO_OK) return fail_reserving(status, device, bytes, min_bytes);
  atomic_fetch_add_explicit(&ranges, 1, memory_order_relaxed);
  if (!at_once) rondo_error_restore(&before);
  *out_base = base;
  *out_bytes = bytes;
  return RONDO_OK;
}

/* For addresses that nothing refers to yet. */
static rondo_status unreserve(rondo_device *device, char *base, size_t bytes) {
  atomic_fetch_sub_explicit(&ranges, 1, memory_order_relaxed);
  return rondo_peers_unreserve(device, base, bytes);
}

void rondo_graph_addresses_give_back(rondo_device_memory *memory, char *base, size_t bytes, uint32_t index_node,
                                     bool unmapped) {
  rondo_device *device = memory->device;
  const rondo_allocation all = {.address = base, .bytes = bytes, .kind = RONDO_ALLOCATION_SPACE};
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_note_freed(&memory->table, &all);
  rondo_memory_note_gone(memory, base, bytes, index_node);
  pthread_mutex_unlock(&memory->lock);
  atomic_fetch_sub_explicit(&ranges, 1, memory_order_relaxed);
  if (!unmapped) rondo_peers_forget(device, base);
  if (unmapped && rondo_peers_unreserve(device, base, bytes) != RONDO_OK)
    rondo_log(RONDO_LOG_ERROR, "memory", "releasing addresses of graph memory failed: %s", rondo_last_error()->message);
}

/* A space's ranges ------------------------------------------------------------------------------------------------- */

rondo_address_range *rondo_address_range_last(rondo_address_space *space) {
  rondo_address_range *range = &space->first;
  for (rondo_address_range *next; (next = rondo_address_range_next(range)) != NULL;) range = next;
  return range;
}

size_t rondo_address_range_bytes(const rondo_address_range *range) {
  const rondo_address_range *next = rondo_address_range_next(range);
  return next == NULL ? range->bytes : next->offset - range->offset;
}

const rondo_address_range *rondo_address_range_of(const rondo_address_space *space, size_t offset) {
  const rondo_address_range *range = &space->first;
  for (const rondo_address_range *next; (next = rondo_address_range_next(range)) != NULL && next->offset <= offset;)
    range = next;
  return range;
}

char *rondo_address_space_at(const rondo_address_space *space, size_t offset) {
  const rondo_address_range *range = rondo_address_range_of(space, offset);
  return range->base + (offset - range->offset);
}

size_t rondo_address_space_offset(const rondo_address_space *space, const char *address) {
  const rondo_address_range *range = &space->first;
  while (!rondo_address_range_has(range, address)) {
    range = rondo_address_range_next(range);
    assert(range != NULL); /* the address is the space's */
  }
  return range->offset + (size_t)(address - range->base);
}

static rondo_status begin(rondo_address_space *space, size_t min_bytes, size_t wanted) {
  rondo_device_memory *memory = space->memory;
  rondo_retired_sweep(memory, false);
  pthread_mutex_lock(&memory->lock);
  const bool has_range = space->first.base != NULL;
  pthread_mutex_unlock(&memory->lock);
  if (has_range) return RONDO_OK;
  char *base = NULL;
  size_t bytes = 0;
  RONDO_TRY(rondo_graph_addresses_reserve(memory->device, min_bytes, wanted, &base, &bytes));
  pthread_mutex_lock(&memory->lock);
  const bool is_first = space->first.base == NULL;
  if (is_first) {
    space->first.base = base;
    space->first.bytes = bytes;
    space->first.index_node = rondo_memory_note_own(memory, base, bytes);
  }
  pthread_mutex_unlock(&memory->lock);
  return is_first ? RONDO_OK : unreserve(memory->device, base, bytes);
}

rondo_status rondo_address_space_begin(rondo_address_space *space, size_t bytes) {
  const rondo_profile *planned = space->planned.profile;
  const size_t known = planned != NULL && planned->plan.peak > bytes ? (size_t)planned->plan.peak : bytes;
  return begin(space, bytes, wanted_by(space->memory, known));
}

rondo_status rondo_address_space_reserve(rondo_address_space *space, size_t bytes) {
  size_t whole, wanted = (size_t)MIN_SPACE;
  if (!rondo_checked_align(bytes, space->memory->page_bytes, &whole)) return rondo_memory_fail_size(bytes);
  while (wanted / 4 < whole && wanted < (size_t)RONDO_ADDRESS_SPACE_MIN) wanted *= 2;
  return begin(space, whole, wanted);
}

/* The offset after all allocations in the last range. The rest of the range stays unused, so that no memory is mapped
 * there. Under the lock. */
static size_t end_of(const rondo_address_space *space, const rondo_address_range *range) {
  const size_t page = space->memory->page_bytes;
  size_t end = range->offset;
  for (size_t i = 0; i < space->allocations.count; i++) {
    const rondo_graph_allocation *record = space->allocations.items[i];
    if (!rondo_address_range_has(range, record->base.address)) continue;
    const size_t after =
        rondo_address_space_offset(space, record->base.address) + rondo_graph_allocation_rounded(record);
    if (after > end) end = after;
  }
  end = (end + page - 1) / page * page;
  return end > space->fresh ? end : space->fresh;
}

/* Adds the range after `full`, if that is still the last one. */
static bool link_range(rondo_address_space *space, const rondo_address_range *full, rondo_address_range *range) {
  pthread_mutex_lock(&space->memory->lock);
  rondo_address_range *last = rondo_address_range_last(space);
  const bool is_linked = last == full;
  if (is_linked) {
    range->offset = end_of(space, last);
    range->index_node = rondo_memory_note_own(space->memory, range->base, range->bytes);
    atomic_store_explicit(&last->next, range, memory_order_release);
  }
  pthread_mutex_unlock(&space->memory->lock);
  return is_linked;
}

/* Each range is at least twice as large as the previous one, so that there are few. */
rondo_status rondo_address_space_grow(rondo_address_space *space, const rondo_address_range *full, size_t bytes) {
  rondo_device_memory *memory = space->memory;
  size_t min_bytes, wanted = wanted_by(memory, bytes);
  rondo_address_range *range;
  /* With guard pages around it. */
  if (!rondo_checked_add(bytes, 4 * memory->page_bytes, &min_bytes) ||
      !rondo_checked_align(min_bytes, memory->page_bytes, &min_bytes))
    return rondo_memory_fail_size(bytes);
  if (wanted / 2 < full->bytes) wanted = full->bytes < SIZE_MAX / 2 ? 2 * full->bytes : full->bytes;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *range, &range));
  rondo_status status = rondo_graph_addresses_reserve(memory->device, min_bytes, wanted, &range->base, &range->bytes);
  if (status == RONDO_OK && link_range(space, full, range)) return RONDO_OK;
  if (status == RONDO_OK) status = unreserve(memory->device, range->base, range->bytes);
  rondo_release(&memory->allocator, range, 1, sizeof *range);
  return status;
}

void rondo_address_space_give_back(rondo_address_space *space, bool unmapped) {
  rondo_device_memory *memory = space->memory;
  rondo_address_range *range = rondo_address_range_next(&space->first);
  if (space->first.base == NULL) return;
  rondo_graph_addresses_give_back(memory, space->first.base, space->first.bytes, space->first.index_node, unmapped);
  while (range != NULL) {
    rondo_address_range *next = rondo_address_range_next(range);
    rondo_graph_addresses_give_back(memory, range->base, range->bytes, range->index_node, unmapped);
    rondo_release(&memory->allocator, range, 1, sizeof *range);
    range = next;
  }
}
