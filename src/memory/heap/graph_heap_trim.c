/* SPDX-License-Identifier: MIT
 * Returning memory to the system: trimming, reclaiming, and destroying spaces and heaps that have no users once their
 * launches are complete.
 */
#include "memory/heap/graph_heap_internal.h"

#include <assert.h>

#include "base/error.h"
#include "base/linked_list.h"
#include "base/log.h"
#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/memory_check.h"
#include "memory/pool/memory_pool.h"

/* Trimming -------------------------------------------------------------------------------------------------------- */

static bool is_alive(const rondo_address_space *space, const rondo_private_pages *pages) {
  const char *begin = rondo_address_space_at(space, pages->offset), *end = begin + pages->bytes;
  for (size_t i = 0; i < space->allocations.count; i++) {
    const rondo_graph_allocation *at = space->allocations.items[i];
    if (at->base.address < end && at->base.address + at->base.bytes > begin && rondo_graph_allocation_in_use(at))
      return true;
  }
  return false;
}

/* An allocation whose stream-ordered free may not be complete, with a reference; NULL when there is none. */
static rondo_graph_allocation *find_unfinished_free(rondo_address_space *space) {
  rondo_graph_allocation *found = NULL;
  pthread_mutex_lock(&space->memory->lock);
  for (size_t i = 0; i < space->allocations.count && found == NULL; i++) {
    rondo_graph_allocation *at = space->allocations.items[i];
    if (atomic_load_explicit(&at->freed_queue, memory_order_acquire) != 0 &&
        at->freed_event->ops->query(at->freed_event) != RONDO_OK)
      found = at;
  }
  if (found != NULL) found->references++;
  pthread_mutex_unlock(&space->memory->lock);
  return found;
}

/* Whether all stream-ordered frees are complete; with `wait` it waits for them. */
static rondo_status await_frees(rondo_address_space *space, bool wait, bool *out_done) {
  rondo_status status = RONDO_OK;
  rondo_graph_allocation *at;
  *out_done = true;
  while (status == RONDO_OK && *out_done && (at = find_unfinished_free(space)) != NULL) {
    if (wait) status = at->freed_event->ops->synchronize(at->freed_event);
    *out_done = wait;
    pthread_mutex_lock(&space->memory->lock);
    rondo_graph_allocation_release(at);
    pthread_mutex_unlock(&space->memory->lock);
  }
  return status;
}

/* Without `wait`, nothing is released while a free may not be complete. */
static rondo_status trim_privates(rondo_address_space *space, bool wait) {
  if (space->privates.count == 0) return RONDO_OK;
  bool done;
  RONDO_TRY(await_frees(space, wait, &done));
  if (!done) return RONDO_OK;
  for (size_t i = space->privates.count; i-- > 0;) {
    pthread_mutex_lock(&space->memory->lock);
    const bool alive = is_alive(space, &space->privates.items[i]);
    pthread_mutex_unlock(&space->memory->lock);
    if (!alive) RONDO_TRY(rondo_heap_remove_private(space, i));
  }
  return RONDO_OK;
}

/* The heap is idle. */
static rondo_status give_back(rondo_heap *heap, bool wait) {
  heap->version++;
  RONDO_TRY(rondo_heap_unmap_all(heap));
  rondo_heap_remove_all_chunks(heap);
  for (rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    RONDO_TRY(trim_privates(space, wait));
  return RONDO_OK;
}

rondo_status rondo_heap_trim(rondo_heap *heap) {
  RONDO_TRY(rondo_heap_wait_idle(heap));
  heap->lost = false;
  const rondo_status status = give_back(heap, true);
  rondo_heap_check(heap);
  return status;
}

static bool holds_memory(const rondo_heap *heap) {
  if (heap->chunks.count > 0) return true;
  for (const rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    if (space->privates.count > 0) return true;
  return false;
}

void rondo_heaps_reclaim_idle(rondo_device_memory *memory, bool with_uploads) {
  for (rondo_heap *heap = rondo_heap_first(memory); heap != NULL; heap = heap->next) {
    if (rondo_heap_use_of(heap) == RONDO_HEAP_PRIVATE || !rondo_heap_try_enter(heap)) continue;
    if (holds_memory(heap) && rondo_heap_is_dispensable(heap, with_uploads))
      rondo_status_ignore(give_back(heap, false), "memory that cannot be unmapped stays, and the caller finds none");
    rondo_heap_leave(heap);
  }
}

rondo_reclaim rondo_reclaim_begin(rondo_device_memory *memory) {
  rondo_reclaim reclaim = {.memory = memory};
  rondo_error_save(&reclaim.before);
  return reclaim;
}

bool rondo_reclaim_more(rondo_reclaim *reclaim, rondo_status status) {
  if (status == RONDO_OK && reclaim->steps > 0) rondo_error_restore(&reclaim->before);
  if (!rondo_reclaim_helps(status)) return false;
  switch (reclaim->steps++) {
    case 0:
      rondo_pools_give_back(reclaim->memory, true);
      return true;
    case 1:
      rondo_heaps_reclaim_idle(reclaim->memory, false);
      return true;
    case 2:
      rondo_heaps_reclaim_idle(reclaim->memory, true);
      return true;
    default:
      return false;
  }
}

rondo_status rondo_heaps_trim(rondo_device_memory *memory) {
  rondo_status status = RONDO_OK;
  for (rondo_heap *heap = rondo_heap_first(memory); heap != NULL; heap = heap->next) {
    if (rondo_heap_use_of(heap) == RONDO_HEAP_PRIVATE) continue;
    rondo_heap_enter(heap);
    const rondo_status trimmed = rondo_heap_trim(heap);
    rondo_heap_leave(heap);
    if (status == RONDO_OK) status = trimmed;
  }
  rondo_retired_sweep(memory, false);
  return status;
}

/* Retired spaces -------------------------------------------------------------------------------------------------- */

/* With the gate entered, because a trim can still find the space. */
static bool frees_done(rondo_address_space *space, bool wait) {
  for (size_t i = 0; i < space->allocations.count; i++) {
    const rondo_graph_allocation *at = space->allocations.items[i];
    if (atomic_load_explicit(&at->freed_queue, memory_order_acquire) == 0) continue;
    if (wait)
      rondo_status_ignore(at->freed_event->ops->synchronize(at->freed_event), "failed work has ended too");
    else if (at->freed_event->ops->query(at->freed_event) != RONDO_OK)
      return false;
  }
  return true;
}

/* Stops counting memory that could not be unmapped. The device keeps it as long as it is mapped, and never reuses the
 * addresses. */
static void abandon(rondo_address_space *space) {
  while (space->mappings.count > 0) rondo_heap_note_unmapped(space);
  while (space->privates.count > 0) {
    const rondo_private_pages *pages = &space->privates.items[--space->privates.count];
    rondo_graph_pages_abandon(space->memory, pages->physical, pages->bytes);
  }
}

/* Returns whether everything was unmapped. */
static bool unmap_retired(rondo_address_space *space) {
  rondo_status status = rondo_heap_unmap_space(space);
  while (status == RONDO_OK && space->privates.count > 0)
    status = rondo_heap_remove_private(space, space->privates.count - 1);
  if (status == RONDO_OK) return true;
  rondo_log(RONDO_LOG_ERROR, "memory", "unmapping graph memory failed: %s", rondo_last_error()->message);
  abandon(space);
  return false;
}

/* False when launches still run, or the gate is entered. */
static bool take_off_heap(rondo_address_space *space, bool wait, bool *out_unmapped) {
  rondo_heap *heap = space->heap;
  *out_unmapped = true;
  if (heap == NULL) return true;
  if (wait)
    rondo_heap_enter(heap);
  else if (!rondo_heap_try_enter(heap))
    return false;
  if (wait) rondo_status_ignore(rondo_heap_wait_idle(heap), "failed work has ended too");
  const bool done = (wait || rondo_heap_is_idle(heap)) && frees_done(space, wait);
  if (done) {
    *out_unmapped = unmap_retired(space);
    RONDO_LIST_REMOVE(space, next_bound, bound_link);
    rondo_heap_check(heap);
  }
  rondo_heap_leave(heap);
  return done;
}

/* Notes what a free node freed: until now only the record knows it. */
static void destroy_allocation(rondo_address_space *space, rondo_graph_allocation *at) {
  rondo_device_memory *memory = space->memory;
  const bool was_freed = atomic_load_explicit(&at->life, memory_order_acquire) == RONDO_LIFE_FREED;
  pthread_mutex_lock(&memory->lock);
  if (was_freed) rondo_allocation_table_note_freed(&memory->table, &at->base);
  rondo_graph_allocation_leave_table(at);
  pthread_mutex_unlock(&memory->lock);
  rondo_graph_allocation_destroy(at);
}

static void destroy_space(rondo_address_space *space, bool unmapped) {
  rondo_device_memory *memory = space->memory;
  assert(atomic_load_explicit(&space->references, memory_order_relaxed) == 0);
  if (space->arena != NULL) rondo_arena_unguard(space);
  for (size_t i = 0; i < space->allocations.count; i++) destroy_allocation(space, space->allocations.items[i]);
  if (space->arena != NULL)
    rondo_arena_leave(space);
  else
    rondo_address_space_give_back(space, unmapped);
  if (space->planned.profile != NULL) rondo_profile_release(space->planned.profile);
  rondo_array_free(&memory->allocator, &space->allocations);
  rondo_array_free(&memory->allocator, &space->alike);
  rondo_graph_points_free(space);
  rondo_array_free(&memory->allocator, &space->mappings);
  rondo_array_free(&memory->allocator, &space->privates);
  rondo_release(&memory->allocator, space, 1, sizeof *space);
}

static rondo_address_space *take_retired(rondo_device_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  rondo_address_space *list = memory->retired;
  memory->retired = NULL;
  pthread_mutex_unlock(&memory->lock);
  return list;
}

static void sweep_spaces(rondo_device_memory *memory, bool wait) {
  rondo_address_space *next;
  for (rondo_address_space *space = take_retired(memory); space != NULL; space = next) {
    next = space->next_retired;
    bool unmapped;
    if (take_off_heap(space, wait, &unmapped))
      destroy_space(space, unmapped);
    else
      rondo_address_space_retire(space);
  }
}

/* Empties an abandoned heap, with its gate entered, unless spaces are bound to it or launches run. */
static void empty_heap(rondo_heap *heap) {
  if (heap->bound != NULL || !rondo_heap_is_idle(heap)) return;
  rondo_heap_remove_all_chunks(heap);
  heap->last_queue = 0;
  heap->lost = false;
  pthread_mutex_lock(&heap->memory->lock);
  rondo_heap_set_use(heap, RONDO_HEAP_EMPTY);
  pthread_mutex_unlock(&heap->memory->lock);
  atomic_fetch_sub_explicit(&heap->memory->leaving, 1, memory_order_relaxed);
}

static void sweep_heaps(rondo_device_memory *memory) {
  if (atomic_load_explicit(&memory->leaving, memory_order_acquire) == 0) return;
  for (rondo_heap *heap = rondo_heap_first(memory); heap != NULL; heap = heap->next) {
    if (rondo_heap_use_of(heap) != RONDO_HEAP_LEAVING || !rondo_heap_try_enter(heap)) continue;
    if (rondo_heap_use_of(heap) == RONDO_HEAP_LEAVING) empty_heap(heap);
    rondo_heap_leave(heap);
  }
}

void rondo_retired_sweep(rondo_device_memory *memory, bool wait) {
  sweep_spaces(memory, wait);
  sweep_heaps(memory);
}

void rondo_heaps_destroy(rondo_device_memory *memory) {
  rondo_retired_sweep(memory, true);
  while (memory->heaps != NULL) {
    rondo_heap *heap = memory->heaps;
    memory->heaps = heap->next;
    assert(heap->bound == NULL);
    rondo_heap_remove_all_chunks(heap);
    rondo_array_free(&memory->allocator, &heap->chunks);
    heap->last->ops->destroy(heap->last);
    rondo_release(&memory->allocator, heap, 1, sizeof *heap);
  }
}
