/* SPDX-License-Identifier: MIT
 * Heaps: their gates, users and chunks, and single mappings. graph_heap_map.c binds spaces to heaps, graph_heap_trim.c
 * returns memory to the system.
 */
#include <assert.h>

#include "base/error.h"
#include "base/linked_list.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/heap/graph_heap_internal.h"
#include "memory/memory_errors.h"

/* Gates ----------------------------------------------------------------------------------------------------------- */

void rondo_heap_enter_slowly(rondo_heap *heap) {
  while (atomic_exchange_explicit(&heap->gate, 2, memory_order_acquire) != 0) rondo_futex_wait(&heap->gate, 2);
}

/* Heaps ----------------------------------------------------------------------------------------------------------- */

static rondo_status create_heap(rondo_device_memory *memory, rondo_heap_use use, rondo_heap **out) {
  rondo_heap *heap;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *heap, &heap));
  heap->memory = memory;
  atomic_init(&heap->use, (uint32_t)use);
  const rondo_status status = memory->device->ops->event_create(memory->device, false, &heap->last);
  if (status != RONDO_OK) {
    rondo_release(&memory->allocator, heap, 1, sizeof *heap);
    return status;
  }
  pthread_mutex_lock(&memory->lock);
  heap->id = memory->heap_count++;
  heap->next = memory->heaps;
  memory->heaps = heap;
  pthread_mutex_unlock(&memory->lock);
  *out = heap;
  return RONDO_OK;
}

/* A private heap begins empty. A stream's heap may still have memory that another stream left. */
rondo_status rondo_heap_acquire(rondo_device_memory *memory, rondo_heap_use use, rondo_heap **out) {
  assert(use == RONDO_HEAP_STREAM || use == RONDO_HEAP_PRIVATE);
  pthread_mutex_lock(&memory->lock);
  rondo_heap *heap = memory->heaps;
  while (heap != NULL && rondo_heap_use_of(heap) != RONDO_HEAP_EMPTY &&
         (use == RONDO_HEAP_PRIVATE || rondo_heap_use_of(heap) != RONDO_HEAP_SPARE))
    heap = heap->next;
  if (heap != NULL) rondo_heap_set_use(heap, use);
  pthread_mutex_unlock(&memory->lock);
  *out = heap;
  return heap != NULL ? RONDO_OK : create_heap(memory, use, out);
}

static void change_use(rondo_heap *heap, rondo_heap_use from, rondo_heap_use to) {
  pthread_mutex_lock(&heap->memory->lock);
  assert(rondo_heap_use_of(heap) == from);
  (void)from;
  rondo_heap_set_use(heap, to);
  pthread_mutex_unlock(&heap->memory->lock);
}

void rondo_heap_release(rondo_heap *heap) {
  if (heap != NULL) change_use(heap, RONDO_HEAP_STREAM, RONDO_HEAP_SPARE);
}

void rondo_heap_abandon(rondo_heap *heap) {
  if (heap == NULL) return;
  change_use(heap, RONDO_HEAP_PRIVATE, RONDO_HEAP_LEAVING);
  atomic_fetch_add_explicit(&heap->memory->leaving, 1, memory_order_release);
  rondo_retired_sweep(heap->memory, false);
}

uint64_t rondo_heap_bytes(rondo_heap *heap) {
  uint64_t bytes = 0;
  rondo_heap_enter(heap);
  for (size_t i = 0; i < heap->chunks.count; i++) bytes += heap->chunks.items[i].bytes;
  for (const rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    for (size_t i = 0; i < space->privates.count; i++) bytes += space->privates.items[i].bytes;
  rondo_heap_leave(heap);
  return bytes;
}

rondo_status rondo_heap_wait(rondo_heap *heap) {
  rondo_heap_enter(heap);
  const rondo_status status = rondo_heap_wait_idle(heap);
  rondo_heap_leave(heap);
  return status;
}

rondo_heap *rondo_heap_first(rondo_device_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  rondo_heap *heap = memory->heaps;
  pthread_mutex_unlock(&memory->lock);
  return heap;
}

/* Whether an upload mapped memory for a later launch (GM-14). */
static bool has_upload(const rondo_heap *heap) {
  for (const rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    if (space->uploaded) return true;
  return false;
}

bool rondo_heap_is_dispensable(const rondo_heap *heap, bool with_uploads) {
  return rondo_heap_use_of(heap) != RONDO_HEAP_PRIVATE && rondo_heap_is_idle(heap) &&
         (with_uploads || !has_upload(heap));
}

/* Pages ----------------------------------------------------------------------------------------------------------- */

static rondo_status create_pages(rondo_device_memory *memory, size_t bytes, rondo_physical_use use,
                                 rondo_physical **out) {
  rondo_reclaim reclaim = rondo_reclaim_begin(memory);
  rondo_status status;
  do status = memory->device->ops->physical_create(memory->device, bytes, use, out);
  while (rondo_reclaim_more(&reclaim, status));
  if (status != RONDO_OK) return rondo_memory_fail_growth(memory, status, "memory for graphs", bytes);
  rondo_level_add(&memory->graph_reserved, bytes);
  return RONDO_OK;
}

static void destroy_pages(rondo_device_memory *memory, rondo_physical *physical, size_t bytes) {
  memory->device->ops->physical_destroy(physical);
  rondo_level_subtract(&memory->graph_reserved, bytes);
}

static rondo_status map_pages(rondo_device_memory *memory, char *address, rondo_physical *physical) {
  rondo_reclaim reclaim = rondo_reclaim_begin(memory);
  rondo_status status;
  do status = memory->device->ops->map(memory->device, address, physical);
  while (rondo_reclaim_more(&reclaim, status));
  return status;
}

rondo_status rondo_graph_pages_create(rondo_device_memory *memory, char *address, size_t bytes, rondo_physical **out) {
  assert(bytes > 0 && bytes % memory->page_bytes == 0);
  RONDO_TRY(create_pages(memory, bytes, RONDO_PHYSICAL_ONCE, out));
  const rondo_status status = map_pages(memory, address, *out);
  if (status != RONDO_OK) {
    destroy_pages(memory, *out, bytes);
    return status;
  }
  rondo_level_add(&memory->graph_used, bytes);
  return RONDO_OK;
}

void rondo_graph_pages_abandon(rondo_device_memory *memory, rondo_physical *physical, size_t bytes) {
  destroy_pages(memory, physical, bytes);
  rondo_level_subtract(&memory->graph_used, bytes);
}

rondo_status rondo_graph_pages_destroy(rondo_device_memory *memory, char *address, rondo_physical *physical,
                                       size_t bytes) {
  RONDO_TRY(memory->device->ops->unmap(memory->device, address, bytes));
  rondo_graph_pages_abandon(memory, physical, bytes);
  return RONDO_OK;
}

/* Chunks ---------------------------------------------------------------------------------------------------------- */

void rondo_heap_remove_chunk(rondo_heap *heap, size_t index) {
  const rondo_heap_chunk *at = &heap->chunks.items[index];
  assert(index < heap->chunks.count && at->mappings == 0);
  destroy_pages(heap->memory, at->physical, at->bytes);
  rondo_array_remove(&heap->chunks, index);
}

void rondo_heap_remove_all_chunks(rondo_heap *heap) {
  while (heap->chunks.count > 0) rondo_heap_remove_chunk(heap, heap->chunks.count - 1);
}

rondo_status rondo_heap_insert_chunk(rondo_heap *heap, size_t index, size_t bytes) {
  rondo_heap_chunk chunk = {.bytes = bytes};
  assert(index == heap->chunks.count || heap->chunks.items[index].mappings == 0);
  RONDO_TRY(rondo_array_reserve(&heap->memory->allocator, &heap->chunks, heap->chunks.count + 1));
  RONDO_TRY(create_pages(heap->memory, bytes, RONDO_PHYSICAL_AGAIN, &chunk.physical));
  rondo_array_insert(&heap->chunks, index, chunk);
  return RONDO_OK;
}

/* Mapping --------------------------------------------------------------------------------------------------------- */

void rondo_heap_note_unmapped(rondo_address_space *space) {
  rondo_heap_chunk *chunk = &space->heap->chunks.items[space->mappings.items[--space->mappings.count].chunk];
  assert(chunk->mappings > 0);
  if (--chunk->mappings == 0) rondo_level_subtract(&space->memory->graph_used, chunk->bytes);
}

rondo_status rondo_heap_unmap_space(rondo_address_space *space) {
  rondo_device *device = space->memory->device;
  if (space->mapped) space->heap->version++;
  space->mapped = false;
  while (space->mappings.count > 0) {
    const rondo_mapping *last = &space->mappings.items[space->mappings.count - 1];
    RONDO_TRY(device->ops->unmap(device, rondo_address_space_at(space, last->offset), last->bytes));
    rondo_heap_note_unmapped(space);
  }
  return RONDO_OK;
}

rondo_status rondo_heap_unmap_all(rondo_heap *heap) {
  for (rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    RONDO_TRY(rondo_heap_unmap_space(space));
  return RONDO_OK;
}

rondo_status rondo_heap_map_chunk(rondo_address_space *space, size_t offset, uint32_t index) {
  rondo_device_memory *memory = space->memory;
  rondo_heap_chunk *chunk = &space->heap->chunks.items[index];
  const rondo_mapping mapping = {.offset = offset, .bytes = chunk->bytes, .chunk = index};
  assert(index < space->heap->chunks.count && offset % memory->page_bytes == 0);
  RONDO_TRY(rondo_array_reserve(&memory->allocator, &space->mappings, space->mappings.count + 1));
  RONDO_TRY(map_pages(memory, rondo_address_space_at(space, offset), chunk->physical));
  space->mappings.items[space->mappings.count++] = mapping;
  if (chunk->mappings++ == 0) rondo_level_add(&memory->graph_used, chunk->bytes);
  return RONDO_OK;
}

rondo_status rondo_heap_add_private(rondo_address_space *space, size_t position, size_t offset, size_t bytes) {
  rondo_private_pages pages = {.offset = offset, .bytes = bytes};
  assert(position <= space->privates.count);
  RONDO_TRY(rondo_array_reserve(&space->memory->allocator, &space->privates, space->privates.count + 1));
  RONDO_TRY(rondo_graph_pages_create(space->memory, rondo_address_space_at(space, offset), bytes, &pages.physical));
  rondo_array_insert(&space->privates, position, pages);
  return RONDO_OK;
}

rondo_status rondo_heap_remove_private(rondo_address_space *space, size_t position) {
  const rondo_private_pages *at = &space->privates.items[position];
  RONDO_TRY(
      rondo_graph_pages_destroy(space->memory, rondo_address_space_at(space, at->offset), at->physical, at->bytes));
  rondo_array_remove(&space->privates, position);
  return RONDO_OK;
}
