/* SPDX-License-Identifier: MIT
 * Areas: making them, and the beginnings and ends of their lifetimes. The pages of an area that is not live cannot be
 * accessed. When its life begins, it is filled with poison, and with canaries on both sides. An area of the pools owns
 * its pages, which are released when its life ends, while its addresses stay in quarantine. The pages of an alloc
 * node's area are mapped by memory/.
 *
 * Invariant: an area is within its pages. Threads: as check.h says.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "device/check/check.h"
#include "device/check/check_allocation.h"
#include "device/check/check_memory.h"
#include "device/cpu/cpu_memory.h"

#define ALIGNMENT 256
#define POISON_BYTES ((size_t)64 << 20)
#define GUARD_BYTES ((size_t)64 << 10) /* on each side of an area of the pools: only addresses, no memory */

/* The system's limit on mappings ----------------------------------------------------------------------------------- */

/* Live areas of the process. Each divides the mapping around it into three. */
static _Atomic uint64_t live_areas;
static _Atomic uint64_t most_mappings; /* vm.max_map_count; 0: not read yet */

static uint64_t read_most_mappings(void) {
  char line[32] = "";
  FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
  if (file != NULL) {
    if (fgets(line, sizeof line, file) == NULL) line[0] = '\0';
    (void)fclose(file);
  }
  const uint64_t read = strtoull(line, NULL, 10);
  return read > 0 ? read : 65530;
}

/* A quarter of the mappings is left for the rest of the process. */
static rondo_status take_mappings(const check_state *check, const char *name) {
  uint64_t most = atomic_load_explicit(&most_mappings, memory_order_relaxed);
  if (most == 0) {
    most = read_most_mappings();
    atomic_store_explicit(&most_mappings, most, memory_order_relaxed);
  }
  const uint64_t limit = most / 8 * 3;
  const bool is_named = name != NULL && name[0] != '\0';
  if (atomic_fetch_add(&live_areas, 1) < limit) return RONDO_OK;
  atomic_fetch_sub(&live_areas, 1);
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE,
                    "an allocation%s%.60s%s on %s: %" PRIu64
                    " guarded allocations are alive, as many as vm.max_map_count "
                    "= %" PRIu64
                    " leaves room for with two mappings each: free some, raise it (sysctl -w "
                    "vm.max_map_count=%" PRIu64 "), or use a device that does not check",
                    is_named ? " '" : "", is_named ? name : "", is_named ? "'" : "", check->device->base.name, limit,
                    most, 4 * most);
}

static void give_mappings(void) {
  const uint64_t before = atomic_fetch_sub(&live_areas, 1);
  assert(before > 0);
  (void)before;
}

/* Canaries and poison ---------------------------------------------------------------------------------------------- */

/* A canary depends on its address, so that shifted bytes are found. Canaries repeat, so that long runs can be copied
 * and compared at once: each synchronisation checks all of them. */
enum { CANARY_PERIOD = 8 };

static unsigned char canary_at(const char *address) {
  return (unsigned char)(UINT64_C(0xc5963aa5c93669f1) >> 8 * ((uintptr_t)address % CANARY_PERIOD));
}

static size_t first_period(size_t bytes) { return bytes < CANARY_PERIOD ? bytes : CANARY_PERIOD; }

static void set_canaries(char *from, const char *to) {
  const size_t bytes = (size_t)(to - from);
  size_t done = first_period(bytes);
  for (size_t i = 0; i < done; i++) ((unsigned char *)from)[i] = canary_at(from + i);
  while (done < bytes) {
    const size_t more = done < bytes - done ? done : bytes - done;
    memcpy(from + done, from, more);
    done += more;
  }
}

static bool is_intact(const char *from, const char *to) {
  const size_t bytes = (size_t)(to - from), first = first_period(bytes);
  for (size_t i = 0; i < first; i++)
    if (((const unsigned char *)from)[i] != canary_at(from + i)) return false;
  return memcmp(from, from + first, bytes - first) == 0;
}

static const char *find_damage(const char *from, const char *to) {
  if (is_intact(from, to)) return NULL;
  for (; from < to; from++)
    if (*(const unsigned char *)from != canary_at(from)) return from;
  return NULL;
}

void check_area_set_canaries(const check_area *area) {
  set_canaries(area->pages, area->begin);
  set_canaries(area->begin + area->bytes, area->pages + area->page_bytes);
}

/* Searches after the area first, where damage is more common. */
const char *check_area_damage(const check_area *area) {
  const char *after = find_damage(area->begin + area->bytes, area->pages + area->page_bytes);
  return after != NULL ? after : find_damage(area->pages, area->begin);
}

static void poison_bytes(char *at, size_t bytes) {
  const uint32_t word = CHECK_POISON;
  for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) memcpy(at, &word, sizeof word);
  memcpy(at, &word, bytes);
}

/* Only the two ends of a very large area: the pages between are made when they are used, as on other devices. */
static void poison(const check_area *area) {
  if (area->bytes <= 2 * POISON_BYTES) {
    poison_bytes(area->begin, area->bytes);
    return;
  }
  poison_bytes(area->begin, POISON_BYTES);
  const size_t last = (area->bytes - POISON_BYTES) / sizeof(uint32_t) * sizeof(uint32_t);
  poison_bytes(area->begin + last, area->bytes - last);
}

rondo_status check_area_inspect(check_area *area, uint32_t node, const char *who) {
  char label[RONDO_ALLOCATION_LABEL];
  const char *at = area->life == CHECK_LIVE ? check_area_damage(area) : NULL;
  if (at == NULL) return RONDO_OK;
  const bool is_after = at >= area->begin;
  const size_t distance = is_after ? (size_t)(at - area->begin) - area->bytes + 1 : (size_t)(area->begin - at);
  check_area_set_canaries(area);
  return rondo_fail_node(
      RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE, node,
      "%s: allocation %s was written outside of its bounds, %zu byte%s %s: check the sizes and indices of "
      "the work that writes it",
      who, rondo_named_size(label, area->name, area->bytes), distance, distance == 1 ? "" : "s",
      is_after ? "past its end" : "before its beginning");
}

rondo_status check_areas_inspect(check_state *check, const char *who) {
  rondo_status status = RONDO_OK;
  check_lock(check);
  for (size_t i = 0; i < check->areas.count; i++) {
    const rondo_status found = check_area_inspect(check->areas.items[i].object, RONDO_NO_NODE, who);
    if (status == RONDO_OK) status = found;
  }
  check_unlock(check);
  return status;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

check_area *check_area_around(const check_state *check, const void *address) {
  const check_range *range = check_index_find(&check->areas, address);
  return range == NULL ? NULL : range->object;
}

/* With `edit` held: inserts a new area. */
static rondo_status enter_area(check_state *check, const check_area *area) {
  void *memory;
  assert(area->pages <= area->begin && area->begin + area->bytes <= area->pages + area->page_bytes);
  RONDO_TRY(rondo_allocate(&check->allocator, 1, sizeof *area, &memory));
  memcpy(memory, area, sizeof *area);
  const rondo_status status = check_index_insert(
      check, &check->areas, (check_range){area->pages, area->pages + area->page_bytes, .object = memory});
  if (status != RONDO_OK) rondo_release(&check->allocator, memory, 1, sizeof *area);
  return status;
}

static void name_area(check_area *area, const char *name) {
  (void)snprintf(area->name, sizeof area->name, "%s", name == NULL ? "" : name);
}

rondo_status check_area_make(check_state *check, size_t bytes, const char *name, void **out_address) {
  rondo_device *device = &check->device->base;
  check_area area = {.bytes = bytes};
  size_t rounded, reserved;
  void *base;
  name_area(&area, name);
  if (!rondo_checked_align(bytes, ALIGNMENT, &rounded) ||
      !rondo_checked_align(rounded, check->device->page_bytes, &area.page_bytes) ||
      !rondo_checked_add(area.page_bytes, 2 * GUARD_BYTES, &reserved))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE, "%zu bytes do not fit the address space", bytes);
  RONDO_TRY(take_mappings(check, area.name));
  rondo_status status = check_reserve(device, reserved, 0, &base);
  if (status == RONDO_OK) {
    area.pages = (char *)base + GUARD_BYTES;
    area.begin = area.pages + area.page_bytes - rounded;
    check_lock(check);
    status = enter_area(check, &area);
    check_unlock(check);
    if (status != RONDO_OK) rondo_status_ignore(check_unreserve(device, base, reserved), "the first failure counts");
  }
  if (status != RONDO_OK) give_mappings();
  *out_address = status == RONDO_OK ? area.begin : NULL;
  return status;
}

/* While an address of graph memory is reserved, it belongs to one allocation. Nodes of the same name and size share it.
 */
rondo_status check_area_note(check_state *check, char *address, size_t bytes, const char *name) {
  const size_t page = check->device->page_bytes;
  const uintptr_t first = (uintptr_t)address / page * page;
  check_area area = {.begin = address, .bytes = bytes, .graph = true};
  area.pages = address - ((uintptr_t)address - first);
  area.page_bytes = cpu_align((uintptr_t)address + bytes - first, page);
  name_area(&area, name);
  check_lock(check);
  const bool there = check_area_around(check, address) != NULL;
  const rondo_status status = there ? RONDO_OK : enter_area(check, &area);
  check_unlock(check);
  return status;
}

/* Lifetimes -------------------------------------------------------------------------------------------------------- */

rondo_status check_area_open(check_state *check, check_area *area, check_life life) {
  if (area->graph && area->life != CHECK_LIVE) RONDO_TRY(take_mappings(check, area->name));
  check_spin_lock(check);
  check_scratch_clear(check, NULL, area->pages, area->pages + area->page_bytes);
  const rondo_status status =
      cpu_protect(&check->device->base, area->pages, area->page_bytes, RONDO_PROTECT_READ_WRITE);
  const bool was_live = area->life == CHECK_LIVE;
  if (status == RONDO_OK) {
    area->life = life;
    area->read_only = false;
  }
  check_spin_unlock(check);
  if (status != RONDO_OK && area->graph && !was_live) give_mappings();
  return status;
}

/* An area of the pools loses its memory and keeps its addresses. */
static rondo_status withdraw_pages(check_state *check, const check_area *area) {
  if (area->graph) return cpu_protect(&check->device->base, area->pages, area->page_bytes, RONDO_PROTECT_NONE);
  const int fresh = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(area->pages, area->page_bytes, PROT_NONE, fresh, -1, 0) != MAP_FAILED) return RONDO_OK;
  const int error = errno;
  char label[RONDO_ALLOCATION_LABEL];
  return rondo_fail_errno(RONDO_OUT_OF_MEMORY, error, "withdrawing the pages of allocation %s",
                          rondo_named_size(label, area->name, area->bytes));
}

void check_area_shut(check_state *check, check_area *area, check_life life) {
  const bool was_live = area->life == CHECK_LIVE;
  char label[RONDO_ALLOCATION_LABEL];
  check_spin_lock(check);
  area->life = life;
  area->read_only = false;
  const rondo_status status = withdraw_pages(check, area);
  check_spin_unlock(check);
  if (was_live && area->graph) give_mappings();
  if (status != RONDO_OK)
    rondo_log(RONDO_LOG_ERROR, "check", "allocation %s can be accessed after its end: %s",
              rondo_named_size(label, area->name, area->bytes), rondo_last_error()->message);
}

void check_area_set_read_only(check_state *check, const char *address, bool read_only) {
  check_lock(check);
  check_area *area = check_area_around(check, address);
  if (area != NULL && area->begin == address && area->life == CHECK_LIVE && area->read_only != read_only) {
    char label[RONDO_ALLOCATION_LABEL];
    const rondo_protection allowed = read_only ? RONDO_PROTECT_READ : RONDO_PROTECT_READ_WRITE;
    check_spin_lock(check);
    const rondo_status status = cpu_protect(&check->device->base, area->pages, area->page_bytes, allowed);
    if (status == RONDO_OK) area->read_only = read_only;
    check_spin_unlock(check);
    if (status != RONDO_OK)
      rondo_log(RONDO_LOG_ERROR, "check", "allocation %s cannot be protected: %s",
                rondo_named_size(label, area->name, area->bytes), rondo_last_error()->message);
  }
  check_unlock(check);
}

void check_areas_forget(check_state *check, const char *begin, const char *end) {
  check_range range;
  check_lock(check);
  while (check_index_remove(check, &check->areas, begin, end, &range)) {
    check_area *area = range.object;
    if (area->life == CHECK_LIVE) check_area_shut(check, area, CHECK_ENDED);
    rondo_release(&check->allocator, area, 1, sizeof *area);
  }
  check_unlock(check);
}

static rondo_status fail_unknown(const check_state *check, const char *address) {
  return rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_FOREIGN_ADDRESS,
                    "device '%s': no allocation begins at %p: its memory was released meanwhile",
                    check->device->base.name, (const void *)address);
}

/* With `edit` held. If a graph frees what its last launch left, that life ends here (GM-10). */
static rondo_status begin_area(check_state *check, const char *address) {
  check_area *area = check_area_around(check, address);
  if (area == NULL || area->begin != address) return fail_unknown(check, address);
  if (!area->graph && area->life != CHECK_EARLY) return RONDO_OK; /* freed before its stream reached the alloc */
  const rondo_status damage = check_area_inspect(area, RONDO_NO_NODE, "at the end of its lifetime");
  RONDO_TRY(check_area_open(check, area, CHECK_LIVE));
  poison(area);
  check_area_set_canaries(area);
  return damage;
}

rondo_status check_area_begin(check_state *check, char *address) {
  check_lock(check);
  const rondo_status status = begin_area(check, address);
  check_unlock(check);
  return status;
}

/* With `edit` held. */
static rondo_status end_area(check_state *check, const char *address, bool *out_own) {
  check_area *area = check_area_around(check, address);
  if (area == NULL || area->begin != address) return fail_unknown(check, address);
  const rondo_status damage = check_area_inspect(area, RONDO_NO_NODE, "at the end of its lifetime");
  check_area_shut(check, area, CHECK_ENDED);
  *out_own = !area->graph;
  return damage;
}

rondo_status check_area_end(check_state *check, char *address) {
  bool own = false;
  check_lock(check);
  const rondo_status status = end_area(check, address, &own);
  const check_range *range = own ? check_index_find(&check->regions, address) : NULL;
  char *base = range == NULL ? NULL : range->begin;
  const size_t bytes = range == NULL ? 0 : (size_t)(range->end - range->begin);
  check_unlock(check);
  if (!own) return status;
  give_mappings();
  const rondo_status given = check_unreserve(&check->device->base, base, bytes);
  return status == RONDO_OK ? given : status;
}
