/* SPDX-License-Identifier: MIT
 * The tables of addresses of a checking device, and its virtual memory. It works like that of plain devices, except
 * that what is reserved and mapped is listed, pages cannot be accessed before an area on them is live, and reservations
 * that are released stay in quarantine for a while.
 *
 * Invariant: the ranges of a table are in ascending order and do not overlap. Tables grow outside of the spin lock, so
 * that the signal handler, which takes it, never waits for an allocator. Threads: as check.h says.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/binary_search.h"
#include "device/check/check.h"
#include "device/check/check_memory.h"
#include "device/cpu/cpu_memory.h"

/* The most that is in quarantine. */
#define QUARANTINE_BYTES ((size_t)1 << 40)
#define QUARANTINE_COUNT 4096

struct check_region {
  char *base;
  size_t bytes;
  check_region *next; /* in the quarantine, the oldest first */
};

/* Locks ------------------------------------------------------------------------------------------------------------ */

void check_lock(check_state *check) { pthread_mutex_lock(&check->edit); }
void check_unlock(check_state *check) { pthread_mutex_unlock(&check->edit); }

void check_spin_lock(check_state *check) {
  while (atomic_exchange_explicit(&check->spin, 1, memory_order_acquire) != 0) rondo_yield();
}
void check_spin_unlock(check_state *check) { atomic_store_explicit(&check->spin, 0, memory_order_release); }

/* Indices ---------------------------------------------------------------------------------------------------------- */

size_t check_index_seek(const check_index *index, const void *address) {
  size_t low = 0, high = index->count;
  RONDO_BINARY_SEARCH(low, high, middle, (const void *)index->items[middle].end <= address)
  return low;
}

const check_range *check_index_find(const check_index *index, const void *address) {
  const size_t at = check_index_seek(index, address);
  return at < index->count && (const void *)index->items[at].begin <= address ? &index->items[at] : NULL;
}

/* Asserts the invariant around an index that has changed. */
static void check_index_check(const check_index *index, size_t at) {
  const size_t from = at > 0 ? at - 1 : 0;
  assert(index->count <= index->capacity);
  for (size_t i = from; i < index->count && i <= at + 1; i++) {
    assert(index->items[i].begin < index->items[i].end);
    assert(i == from || index->items[i - 1].end <= index->items[i].begin);
  }
  (void)index, (void)from;
}

rondo_status check_index_insert(check_state *check, check_index *index, check_range range) {
  check_range *old = NULL;
  const size_t old_capacity = index->capacity;
  if (index->count == index->capacity) {
    const size_t capacity = old_capacity == 0 ? 64 : 2 * old_capacity;
    void *memory;
    RONDO_TRY(rondo_allocate(&check->allocator, capacity, sizeof range, &memory));
    if (index->count > 0) memcpy(memory, index->items, index->count * sizeof range);
    check_spin_lock(check);
    old = index->items;
    index->items = memory;
    index->capacity = capacity;
    check_spin_unlock(check);
  }
  check_spin_lock(check);
  const size_t at = check_index_seek(index, range.begin);
  rondo_array_insert(index, at, range);
  check_index_check(index, at);
  check_spin_unlock(check);
  rondo_release(&check->allocator, old, old_capacity, sizeof range);
  return RONDO_OK;
}

bool check_index_remove(check_state *check, check_index *index, const char *begin, const char *end, check_range *out) {
  const size_t at = check_index_seek(index, begin);
  if (at == index->count || index->items[at].begin >= end) return false;
  *out = index->items[at];
  check_spin_lock(check);
  rondo_array_remove(index, at);
  check_index_check(index, at);
  check_spin_unlock(check);
  return true;
}

/* Regions ---------------------------------------------------------------------------------------------------------- */

static void forget_areas(check_state *check, const check_region *region) {
  check_range area;
  while (check_index_remove(check, &check->areas, region->base, region->base + region->bytes, &area))
    rondo_release(&check->allocator, area.object, 1, sizeof(check_area));
}

/* With `edit` held. */
static rondo_status destroy_region(check_state *check, check_region *region) {
  check_range range;
  forget_areas(check, region);
  if (check_index_remove(check, &check->regions, region->base, region->base + region->bytes, &range)) {
    check_spin_lock(check);
    check_scratch_clear(check, NULL, region->base, region->base + region->bytes);
    check_spin_unlock(check);
  }
  const rondo_status status = cpu_unreserve(&check->device->base, region->base, region->bytes);
  rondo_release(&check->allocator, region, 1, sizeof *region);
  return status;
}

/* Releases the oldest region of the quarantine. False if it is empty. */
static bool shrink_quarantine(check_state *check) {
  check_region *region = check->oldest;
  if (region == NULL) return false;
  check->oldest = region->next;
  if (check->oldest == NULL) check->newest = &check->oldest;
  assert(check->quarantine_count > 0 && check->quarantine_bytes >= region->bytes);
  check->quarantine_count--;
  check->quarantine_bytes -= region->bytes;
  rondo_status_ignore(destroy_region(check, region), "the addresses stay taken, which does no harm");
  return true;
}

static void quarantine(check_state *check, check_region *region) {
  region->next = NULL;
  *check->newest = region;
  check->newest = &region->next;
  check->quarantine_count++;
  check->quarantine_bytes += region->bytes;
  while (check->quarantine_count > QUARANTINE_COUNT || check->quarantine_bytes > QUARANTINE_BYTES)
    (void)shrink_quarantine(check);
}

/* If there are no addresses, those of the quarantine are released. */
static rondo_status reserve_addresses(check_state *check, size_t bytes, size_t alignment, void **out) {
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = cpu_reserve(&check->device->base, bytes, alignment, out);
  const bool at_once = status == RONDO_OK;
  while (status != RONDO_OK && shrink_quarantine(check))
    status = cpu_reserve(&check->device->base, bytes, alignment, out);
  if (!at_once && status == RONDO_OK) rondo_error_restore(&before);
  return status;
}

static rondo_status make_region(check_state *check, size_t bytes, size_t alignment, void **out) {
  void *memory;
  RONDO_TRY(rondo_allocate(&check->allocator, 1, sizeof(check_region), &memory));
  check_region *region = memory;
  rondo_status status = reserve_addresses(check, bytes, alignment, out);
  if (status == RONDO_OK) {
    region->base = *out;
    region->bytes = bytes;
    status =
        check_index_insert(check, &check->regions, (check_range){region->base, region->base + bytes, .object = region});
    if (status != RONDO_OK)
      rondo_status_ignore(cpu_unreserve(&check->device->base, region->base, bytes), "the first failure is reported");
  }
  if (status == RONDO_OK) return RONDO_OK;
  rondo_release(&check->allocator, region, 1, sizeof *region);
  *out = NULL;
  return status;
}

rondo_status check_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address) {
  check_state *check = ((cpu_device *)device)->check;
  *out_address = NULL;
  check_lock(check);
  const rondo_status status = make_region(check, bytes, alignment, out_address);
  check_unlock(check);
  return status;
}

rondo_status check_unreserve(rondo_device *device, void *address, size_t bytes) {
  check_state *check = ((cpu_device *)device)->check;
  (void)bytes;
  check_lock(check);
  const check_range *range = check_index_find(&check->regions, address);
  if (range != NULL) quarantine(check, range->object);
  check_unlock(check);
  return RONDO_OK;
}

/* Mappings --------------------------------------------------------------------------------------------------------- */

static rondo_status note_mapping(check_state *check, char *address, const rondo_physical *physical) {
  check_range range = {.begin = address, .end = address + physical->bytes};
  range.file = fcntl(cpu_physical_file(physical), F_DUPFD_CLOEXEC, 0);
  if (range.file < 0)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
                      "device %s: no file is left for a mapping: raise the limit on open files (ulimit -n)",
                      check->device->base.name);
  const rondo_status status = check_index_insert(check, &check->mappings, range);
  if (status != RONDO_OK) (void)close(range.file); /* nothing was written to it */
  return status;
}

static void forget_mappings(check_state *check, const char *begin, const char *end) {
  check_range range;
  while (check_index_remove(check, &check->mappings, begin, end, &range)) (void)close(range.file);
}

rondo_status check_map(rondo_device *device, void *address, rondo_physical *physical) {
  check_state *check = ((cpu_device *)device)->check;
  char *begin = address;
  check_lock(check);
  rondo_status status = note_mapping(check, begin, physical);
  if (status == RONDO_OK) {
    status = cpu_map(device, address, physical);
    if (status == RONDO_OK) status = cpu_protect(device, address, physical->bytes, RONDO_PROTECT_NONE);
    if (status != RONDO_OK) forget_mappings(check, begin, begin + physical->bytes);
  }
  check_unlock(check);
  return status;
}

rondo_status check_unmap(rondo_device *device, void *address, size_t bytes) {
  check_state *check = ((cpu_device *)device)->check;
  char *begin = address;
  check_lock(check);
  const rondo_status status = cpu_unmap(device, address, bytes);
  if (status == RONDO_OK) forget_mappings(check, begin, begin + bytes);
  check_unlock(check);
  return status;
}

/* Scratch ---------------------------------------------------------------------------------------------------------- */

/* Restores reserved addresses and the mappings among them. Neither can be accessed. */
static void put_back(const check_state *check, char *begin, char *end) {
  const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  (void)mmap(begin, (size_t)(end - begin), PROT_NONE, anonymous, -1, 0);
  for (size_t i = check_index_seek(&check->mappings, begin); i < check->mappings.count; i++) {
    const check_range *range = &check->mappings.items[i];
    if (range->begin >= end) break;
    char *from = range->begin > begin ? range->begin : begin;
    const char *to = range->end < end ? range->end : end;
    (void)mmap(from, (size_t)(to - from), PROT_NONE, MAP_SHARED | MAP_FIXED, range->file, (off_t)(from - range->begin));
    (void)madvise(from, (size_t)(to - from), MADV_DONTFORK);
  }
}

void check_scratch_clear(check_state *check, const check_run *run, const char *begin, const char *end) {
  for (uint32_t i = check->scratch_count; i-- > 0;) {
    const check_scratch at = check->scratches[i];
    if (run != NULL ? at.run != run : at.begin >= end || at.begin + at.bytes <= begin) continue;
    put_back(check, at.begin, at.begin + at.bytes);
    check->scratches[i] = check->scratches[--check->scratch_count];
  }
}

/* Host memory ------------------------------------------------------------------------------------------------------ */

rondo_status check_host_allocate(rondo_device *device, size_t bytes, void **out_address) {
  check_state *check = ((cpu_device *)device)->check;
  RONDO_TRY(cpu_host_allocate(device, bytes, out_address));
  char *begin = *out_address;
  check_lock(check);
  const rondo_status status =
      check_index_insert(check, &check->hosts, (check_range){begin, begin + bytes, .object = NULL});
  check_unlock(check);
  if (status != RONDO_OK) {
    cpu_host_release(device, begin, bytes);
    *out_address = NULL;
  }
  return status;
}

void check_host_release(rondo_device *device, void *address, size_t bytes) {
  check_state *check = ((cpu_device *)device)->check;
  check_range range;
  char *begin = address;
  check_lock(check);
  (void)check_index_remove(check, &check->hosts, begin, begin + bytes, &range);
  check_unlock(check);
  cpu_host_release(device, address, bytes);
}

/* Life ------------------------------------------------------------------------------------------------------------- */

void check_memory_init(check_state *check) {
  pthread_mutex_init(&check->edit, NULL);
  check->newest = &check->oldest;
}

/* All memory is released: what is left is in the quarantine. */
void check_memory_deinit(check_state *check) {
  while (shrink_quarantine(check)) {
  }
  assert(check->quarantine_count == 0 && check->quarantine_bytes == 0);
  rondo_array_free(&check->allocator, &check->regions);
  rondo_array_free(&check->allocator, &check->areas);
  rondo_array_free(&check->allocator, &check->mappings);
  rondo_array_free(&check->allocator, &check->hosts);
  pthread_mutex_destroy(&check->edit);
}
