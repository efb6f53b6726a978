/* SPDX-License-Identifier: MIT
 * Heaps: their gates, who has them, their chunks, and what of them is mapped into a space. heap_bind.c binds spaces to
 * heaps, heap_trim.c gives back what is held.
 */
#include "memory/heap/heap_internal.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/memory_errors.h"
#include "memory/pool/memory_pool.h"

/* Gates ----------------------------------------------------------------------------------------------------------- */

void rondo_heap_enter_slowly(rondo_heap *heap) {
  while (atomic_exchange_explicit(&heap->gate, 2, memory_order_acquire) != 0) rondo_futex_wait(&heap->gate, 2);
}

void rondo_heap_wake(rondo_heap *heap) { rondo_futex_wake(&heap->gate, 1); }

/* Heaps ----------------------------------------------------------------------------------------------------------- */

static rondo_status create_heap(rondo_device_memory *memory, rondo_heap_use use, rondo_heap **out) {
  void *state;
  RONDO_TRY(rondo_allocate(&memory->allocator, 1, sizeof(rondo_heap), &state));
  rondo_heap *heap = state;
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

/* Nobody's, and if `empty` without anything in it; for `use`. NULL when there is none. */
static rondo_heap *take_heap(rondo_device_memory *memory, bool empty, rondo_heap_use use) {
  pthread_mutex_lock(&memory->lock);
  rondo_heap *heap = memory->heaps;
  while (heap != NULL && rondo_heap_use_of(heap) != RONDO_HEAP_EMPTY &&
         (empty || rondo_heap_use_of(heap) != RONDO_HEAP_SPARE))
    heap = heap->next;
  if (heap != NULL) rondo_heap_set_use(heap, use);
  pthread_mutex_unlock(&memory->lock);
  return heap;
}

rondo_status rondo_heap_acquire(rondo_device_memory *memory, rondo_heap **out) {
  *out = take_heap(memory, false, RONDO_HEAP_STREAM);
  return *out != NULL ? RONDO_OK : create_heap(memory, RONDO_HEAP_STREAM, out);
}

rondo_status rondo_heap_acquire_private(rondo_device_memory *memory, rondo_heap **out) {
  *out = take_heap(memory, true, RONDO_HEAP_PRIVATE);
  return *out != NULL ? RONDO_OK : create_heap(memory, RONDO_HEAP_PRIVATE, out);
}

void rondo_heap_release(rondo_heap *heap) {
  if (heap == NULL) return;
  pthread_mutex_lock(&heap->memory->lock);
  rondo_heap_set_use(heap, RONDO_HEAP_SPARE);
  pthread_mutex_unlock(&heap->memory->lock);
}

void rondo_heap_give_up(rondo_heap *heap) {
  if (heap == NULL) return;
  rondo_device_memory *memory = heap->memory;
  pthread_mutex_lock(&memory->lock);
  rondo_heap_set_use(heap, RONDO_HEAP_LEAVING);
  pthread_mutex_unlock(&memory->lock);
  atomic_fetch_add_explicit(&memory->leaving, 1, memory_order_release);
  rondo_retired_sweep(memory, false);
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

/* Mapping --------------------------------------------------------------------------------------------------------- */

/* The heap is idle. What cannot be unmapped stays noted as mapped, and the next attempt begins there. */
rondo_status rondo_heap_unmap_space(rondo_address_space *space) {
  rondo_device_memory *memory = space->memory;
  rondo_heap *heap = space->heap;
  if (space->mapped) heap->version++;
  space->mapped = false;
  while (space->mappings.count > 0) {
    const rondo_mapping *mapping = &space->mappings.items[space->mappings.count - 1];
    RONDO_TRY(
        memory->device->ops->unmap(memory->device, rondo_address_space_at(space, mapping->offset), mapping->bytes));
    rondo_heap_chunk *chunk = &heap->chunks.items[mapping->chunk];
    if (--chunk->mappings == 0) rondo_level_subtract(&memory->graph_used, chunk->bytes);
    space->mappings.count--;
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
  RONDO_TRY(rondo_array_reserve(&memory->allocator, &space->mappings, space->mappings.count + 1));
  RONDO_TRY(rondo_graph_pages_map(memory, rondo_address_space_at(space, offset), chunk->physical));
  space->mappings.items[space->mappings.count++] = mapping;
  if (chunk->mappings++ == 0) rondo_level_add(&memory->graph_used, chunk->bytes);
  return RONDO_OK;
}

/* Chunks ---------------------------------------------------------------------------------------------------------- */

void rondo_graph_pages_destroy(rondo_device_memory *memory, rondo_physical *physical, size_t bytes) {
  memory->device->ops->physical_destroy(physical);
  rondo_level_subtract(&memory->graph_reserved, bytes);
}

void rondo_heap_remove_chunk(rondo_heap *heap, size_t index) {
  rondo_heap_chunk *at = heap->chunks.items + index;
  assert(at->mappings == 0);
  rondo_graph_pages_destroy(heap->memory, at->physical, at->bytes);
  heap->chunks.count--;
  memmove(at, at + 1, (heap->chunks.count - index) * sizeof *at);
}

void rondo_heap_remove_all_chunks(rondo_heap *heap) {
  while (heap->chunks.count > 0) rondo_heap_remove_chunk(heap, heap->chunks.count - 1);
}

/* Whether memory was mapped ahead for a launch that has not come yet (GM-14). */
static bool is_awaited(const rondo_heap *heap) {
  for (const rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    if (space->uploaded) return true;
  return false;
}

bool rondo_heap_is_dispensable(const rondo_heap *heap, bool ahead) {
  return rondo_heap_use_of(heap) != RONDO_HEAP_PRIVATE && rondo_heap_is_idle(heap) && (ahead || !is_awaited(heap));
}

rondo_status rondo_graph_pages_create(rondo_device_memory *memory, size_t bytes, rondo_physical **out) {
  rondo_device *device = memory->device;
  rondo_room room = rondo_room_of(memory);
  rondo_status status;
  do status = device->ops->physical_create(device, bytes, out);
  while (rondo_room_make(&room, status));
  if (status != RONDO_OK) return rondo_memory_fail_growth(memory, status, "memory for graphs", bytes);
  rondo_level_add(&memory->graph_reserved, bytes);
  return RONDO_OK;
}

rondo_status rondo_graph_pages_map(rondo_device_memory *memory, char *address, rondo_physical *physical) {
  rondo_room room = rondo_room_of(memory);
  rondo_status status;
  do status = memory->device->ops->map(memory->device, address, physical);
  while (rondo_room_make(&room, status));
  return status;
}

/* A new chunk at `index`; those from there on move up, which is for unmapped chunks alone. */
rondo_status rondo_heap_insert_chunk(rondo_heap *heap, size_t index, size_t bytes) {
  RONDO_TRY(rondo_array_reserve(&heap->memory->allocator, &heap->chunks, heap->chunks.count + 1));
  rondo_heap_chunk chunk = {.bytes = bytes};
  RONDO_TRY(rondo_graph_pages_create(heap->memory, bytes, &chunk.physical));
  rondo_heap_chunk *at = heap->chunks.items + index;
  memmove(at + 1, at, (heap->chunks.count - index) * sizeof *at);
  *at = chunk;
  heap->chunks.count++;
  return RONDO_OK;
}

/* Private pages --------------------------------------------------------------------------------------------------- */

rondo_status rondo_heap_add_private(rondo_address_space *space, size_t position, size_t offset, size_t bytes) {
  rondo_device_memory *memory = space->memory;
  RONDO_TRY(rondo_array_reserve(&memory->allocator, &space->privates, space->privates.count + 1));
  rondo_private_pages pages = {.offset = offset, .bytes = bytes};
  RONDO_TRY(rondo_graph_pages_create(memory, bytes, &pages.physical));
  const rondo_status status = rondo_graph_pages_map(memory, rondo_address_space_at(space, offset), pages.physical);
  if (status != RONDO_OK) {
    rondo_graph_pages_destroy(memory, pages.physical, bytes);
    return status;
  }
  if (memory->device->ops->physical_seal != NULL) memory->device->ops->physical_seal(pages.physical);
  rondo_level_add(&memory->graph_used, bytes);
  rondo_private_pages *at = space->privates.items + position;
  memmove(at + 1, at, (space->privates.count - position) * sizeof *at);
  *at = pages;
  space->privates.count++;
  return RONDO_OK;
}

/* On failure the pages stay noted. */
rondo_status rondo_heap_remove_private(rondo_address_space *space, size_t position) {
  rondo_device_memory *memory = space->memory;
  rondo_private_pages *at = space->privates.items + position;
  RONDO_TRY(memory->device->ops->unmap(memory->device, rondo_address_space_at(space, at->offset), at->bytes));
  rondo_graph_pages_destroy(memory, at->physical, at->bytes);
  rondo_level_subtract(&memory->graph_used, at->bytes);
  space->privates.count--;
  memmove(at, at + 1, (space->privates.count - position) * sizeof *at);
  return RONDO_OK;
}

void rondo_heap_detach(rondo_address_space *space) {
  rondo_address_space **at = &space->heap->bound;
  while (*at != space) at = &(*at)->next_bound;
  *at = space->next_bound;
}
