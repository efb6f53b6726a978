/* SPDX-License-Identifier: MIT
 * The memory that a launch may write, as it was before and as one order left it, so that another order starts from the
 * same bytes and can be compared with the first. Kernels declare by their parameters what they write, and may write
 * their symbols too. A kernel with a
 * pointer in another parameter may write anything, so all live memory of the device is kept. Memory that is not an
 * allocation of the device is known for copies and fills only: a kernel that writes such memory cannot be run twice.
 * Nothing is kept if it would take too much memory.
 *
 * Threads: the thread that explores, with the gate closed.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/check/check.h"
#include "device/check/check_allocation.h"
#include "device/check/check_memory.h"
#include "device/check/check_snapshot.h"
#include "graph/byte_box.h"

/* What writes ------------------------------------------------------------------------------------------------------ */

/* Adds an entry for a write. merge_entries removes duplicates. */
static bool add_entry(check_snapshot *snapshot, check_area *area, char *begin, size_t bytes) {
  const check_life life = area == NULL ? CHECK_LIVE : area->life;
  const check_entry entry = {.area = area, .begin = begin, .bytes = bytes, .life_before = life, .life_after = life};
  return rondo_array_push(&snapshot->check->allocator, &snapshot->entries, &entry) == RONDO_OK;
}

/* Host memory may overlap another entry. Then both hold the same bytes. */
static bool add_written(check_snapshot *snapshot, char *address, size_t bytes) {
  const check_state *check = snapshot->check;
  check_area *area = check_area_around(check, address);
  if (area != NULL) return add_entry(snapshot, area, area->begin, area->bytes);
  if (check_index_find(&check->regions, address) != NULL) return true; /* it will fault */
  const check_range *host = check_index_find(&check->hosts, address);
  if (host != NULL) return add_entry(snapshot, NULL, host->begin, (size_t)(host->end - host->begin));
  return bytes > 0 && add_entry(snapshot, NULL, address, bytes);
}

static bool add_all_live(check_snapshot *snapshot) {
  const check_index *areas = &snapshot->check->areas;
  for (size_t i = 0; i < areas->count; i++) {
    check_area *area = areas->items[i].object;
    if (area->life == CHECK_LIVE && !add_entry(snapshot, area, area->begin, area->bytes)) return false;
  }
  return true;
}

static char *word_at(const void *value) {
  char *word;
  memcpy(&word, value, sizeof word);
  return word;
}

/* A parameter without declared access that may be a pointer. */
static bool add_undeclared(check_snapshot *snapshot, const unsigned char *value, uint32_t bytes, bool *out_anything) {
  const check_state *check = snapshot->check;
  for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
    char *word = word_at(value + at);
    const check_range *host = check_index_find(&check->hosts, word);
    *out_anything = *out_anything || check_index_find(&check->regions, word) != NULL;
    if (host != NULL && !add_written(snapshot, word, 0)) return false;
  }
  return true;
}

static bool add_symbols(check_snapshot *snapshot, const check_work *work) {
  for (uint32_t i = 0; i < work->symbol_count; i++) {
    const rondo_code_symbol *symbol = &work->symbols[i];
    if (symbol->address != NULL && !add_written(snapshot, symbol->address, symbol->bytes)) return false;
  }
  return true;
}

static bool add_kernel(check_snapshot *snapshot, const check_work *work, bool *out_anything) {
  if (!add_symbols(snapshot, work)) return false;
  for (uint32_t i = 0; i < work->parameter_count; i++) {
    const rondo_parameter *parameter = &work->parameters[i];
    if (parameter->access == RONDO_ACCESS_READ) continue;
    if (parameter->access == RONDO_ACCESS_SCALAR) {
      if (!add_undeclared(snapshot, work->values[i], parameter->bytes, out_anything)) return false;
      continue;
    }
    char *address = word_at(work->values[i]);
    if (address != NULL && !add_written(snapshot, address, 0)) return false;
  }
  return true;
}

static bool add_work(check_snapshot *snapshot, const check_work *work, bool *out_anything) {
  switch (work->kind) {
    case RONDO_NODE_KERNEL:
      return add_kernel(snapshot, work, out_anything);
    case RONDO_NODE_COPY:
      return add_written(snapshot, ((const rondo_copy *)work->args[0])->dst, rondo_copy_dst_bytes(work->args[0]));
    case RONDO_NODE_FILL:
      return add_written(snapshot, ((const rondo_fill *)work->args[0])->dst, rondo_fill_bytes(work->args[0]));
    case RONDO_NODE_ALLOC:
    case RONDO_NODE_FREE:
      return add_written(snapshot, work->address, 0);
    default:
      return false; /* a host function may do anything */
  }
}

static bool add_works(check_snapshot *snapshot, const cpu_executable *executable) {
  bool anything = false;
  for (size_t i = 0; i < executable->node_count; i++) {
    const check_work *work = check_work_of(&executable->nodes[i]);
    if (work != NULL && !add_work(snapshot, work, &anything)) return false;
  }
  return !anything || add_all_live(snapshot);
}

static int compare_entries(const void *a, const void *b) {
  const check_entry *x = a, *y = b;
  if (x->begin != y->begin) return (uintptr_t)x->begin < (uintptr_t)y->begin ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Keeps one entry for each address, the longest. */
static void merge_entries(check_snapshot *snapshot) {
  check_entry *items = snapshot->entries.items;
  size_t kept = 0;
  if (snapshot->entries.count > 1) qsort(items, snapshot->entries.count, sizeof *items, compare_entries);
  for (size_t i = 0; i < snapshot->entries.count; i++)
    if (kept == 0 || items[kept - 1].begin != items[i].begin) items[kept++] = items[i];
  snapshot->entries.count = kept;
}

/* Keeping ---------------------------------------------------------------------------------------------------------- */

/* Copies the bytes that are live now. False if there is no memory. */
static bool keep(const check_snapshot *snapshot, const check_entry *entry, char **out) {
  void *memory;
  *out = NULL;
  if (entry->area != NULL && entry->area->life != CHECK_LIVE) return true;
  if (rondo_allocate(&snapshot->check->allocator, 1, entry->bytes, &memory) != RONDO_OK) return false;
  memcpy(memory, entry->begin, entry->bytes);
  *out = memory;
  return true;
}

/* Two copies may take a quarter of the machine's memory together. */
static bool is_affordable(const check_snapshot *snapshot) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const size_t most = pages > 0 ? (size_t)pages / 8 * snapshot->check->device->page_bytes : SIZE_MAX;
  size_t sum = 0;
  for (size_t i = 0; i < snapshot->entries.count; i++) {
    if (!rondo_checked_add(sum, snapshot->entries.items[i].bytes, &sum) || sum > most) return false;
  }
  return true;
}

bool check_snapshot_take(check_snapshot *snapshot, check_state *check, const cpu_executable *executable) {
  *snapshot = (check_snapshot){.check = check};
  check_lock(check);
  bool taken = add_works(snapshot, executable);
  merge_entries(snapshot);
  taken = taken && is_affordable(snapshot);
  for (size_t i = 0; taken && i < snapshot->entries.count; i++)
    taken = keep(snapshot, &snapshot->entries.items[i], &snapshot->entries.items[i].before);
  check_unlock(check);
  return taken;
}

bool check_snapshot_keep_result(check_snapshot *snapshot) {
  bool kept = true;
  for (size_t i = 0; kept && i < snapshot->entries.count; i++) {
    check_entry *entry = &snapshot->entries.items[i];
    if (entry->area != NULL) entry->life_after = entry->area->life;
    kept = keep(snapshot, entry, &entry->after);
  }
  return kept;
}

void check_snapshot_free(check_snapshot *snapshot) {
  const rondo_allocator *allocator = &snapshot->check->allocator;
  for (size_t i = 0; i < snapshot->entries.count; i++) {
    rondo_release(allocator, snapshot->entries.items[i].before, 1, snapshot->entries.items[i].bytes);
    rondo_release(allocator, snapshot->entries.items[i].after, 1, snapshot->entries.items[i].bytes);
  }
  rondo_array_free(allocator, &snapshot->entries);
}

/* Restoring and comparing ------------------------------------------------------------------------------------------ */

static void restore_entry(check_state *check, const check_entry *entry, check_life life, const char *bytes) {
  check_area *area = entry->area;
  if (area != NULL && area->life != life) {
    if (life != CHECK_LIVE)
      check_area_shut(check, area, life);
    else if (check_area_open(check, area, life) != RONDO_OK)
      return; /* not expected: it was accessible before with as many mappings */
  }
  if (bytes == NULL || (area != NULL && area->read_only)) return; /* what cannot be written has not changed */
  memcpy(entry->begin, bytes, entry->bytes);
  if (area != NULL) check_area_set_canaries(area);
}

void check_snapshot_restore(check_snapshot *snapshot, bool result) {
  check_lock(snapshot->check);
  for (size_t i = 0; i < snapshot->entries.count; i++) {
    const check_entry *entry = &snapshot->entries.items[i];
    restore_entry(snapshot->check, entry, result ? entry->life_after : entry->life_before,
                  result ? entry->after : entry->before);
  }
  check_unlock(snapshot->check);
}

const check_entry *check_snapshot_compare(const check_snapshot *snapshot, size_t *out_offset) {
  for (size_t i = 0; i < snapshot->entries.count; i++) {
    const check_entry *entry = &snapshot->entries.items[i];
    const bool lives = entry->area == NULL || entry->area->life == CHECK_LIVE;
    if (entry->after == NULL || !lives || memcmp(entry->after, entry->begin, entry->bytes) == 0) continue;
    size_t at = 0;
    while (entry->after[at] == entry->begin[at]) at++;
    *out_offset = at;
    return entry;
  }
  return NULL;
}
