/* SPDX-License-Identifier: MIT
 * Heaps: their chunks, binding spaces to them, mapping, trimming. Within this file "the heap is idle" means that its
 * gate is entered and its last launch is done: nothing then uses any mapping of it.
 */
#include "memory/heap.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/logging.h"
#include "memory/arena_internal.h"
#include "memory/misuse.h"
#include "memory/peers.h"
#include "memory/pools.h"

/* Gates ----------------------------------------------------------------------------------------------------------- */

void rondo_heap_enter_slowly(rondo_heap *heap) {
  while (atomic_exchange_explicit(&heap->gate, 2, memory_order_acquire) != 0) rondo_futex_wait(&heap->gate, 2);
}

void rondo_heap_wake(rondo_heap *heap) { rondo_futex_wake(&heap->gate, 1); }

/* Heaps ----------------------------------------------------------------------------------------------------------- */

static rondo_heap_use use_of(const rondo_heap *heap) {
  return (rondo_heap_use)atomic_load_explicit(&heap->use, memory_order_acquire);
}

/* Under the memory's lock. */
static void set_use(rondo_heap *heap, rondo_heap_use use) {
  atomic_store_explicit(&heap->use, (uint32_t)use, memory_order_release);
}

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
  while (heap != NULL && use_of(heap) != RONDO_HEAP_EMPTY && (empty || use_of(heap) != RONDO_HEAP_SPARE))
    heap = heap->next;
  if (heap != NULL) set_use(heap, use);
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
  set_use(heap, RONDO_HEAP_SPARE);
  pthread_mutex_unlock(&heap->memory->lock);
}

void rondo_heap_give_up(rondo_heap *heap) {
  if (heap == NULL) return;
  rondo_device_memory *memory = heap->memory;
  pthread_mutex_lock(&memory->lock);
  set_use(heap, RONDO_HEAP_LEAVING);
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

static rondo_status wait_idle(rondo_heap *heap) {
  return heap->last_queue == NULL ? RONDO_OK : heap->last->ops->synchronize(heap->last);
}

rondo_status rondo_heap_wait(rondo_heap *heap) {
  rondo_heap_enter(heap);
  const rondo_status status = wait_idle(heap);
  rondo_heap_leave(heap);
  return status;
}

static bool is_idle(const rondo_heap *heap) {
  return heap->last_queue == NULL || heap->last->ops->query(heap->last) == RONDO_OK;
}

/* Chunks ---------------------------------------------------------------------------------------------------------- */

static void give_idle_back(rondo_device_memory *memory);

/* What is held for later only makes room first: the pools' memory, then that of idle heaps. */
rondo_status rondo_graph_pages_create(rondo_device_memory *memory, size_t bytes, rondo_physical **out) {
  rondo_device *device = memory->device;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = device->ops->physical_create(device, bytes, out);
  const bool had_none = status == RONDO_OUT_OF_MEMORY;
  if (status == RONDO_OUT_OF_MEMORY) {
    rondo_pools_give_back(memory, true);
    status = device->ops->physical_create(device, bytes, out);
  }
  if (status == RONDO_OUT_OF_MEMORY) {
    give_idle_back(memory);
    status = device->ops->physical_create(device, bytes, out);
  }
  if (status != RONDO_OK) return rondo_memory_fail_growth(memory, status, "memory for graphs", bytes);
  if (had_none) rondo_error_restore(&before);
  rondo_level_add(&memory->graph_reserved, bytes);
  return RONDO_OK;
}

void rondo_graph_pages_destroy(rondo_device_memory *memory, rondo_physical *physical, size_t bytes) {
  memory->device->ops->physical_destroy(physical);
  rondo_level_subtract(&memory->graph_reserved, bytes);
}

/* A new chunk at `index`; those from there on move up, which is for unmapped chunks alone. */
static rondo_status insert_chunk(rondo_heap *heap, size_t index, size_t bytes) {
  RONDO_TRY(rondo_array_reserve(&heap->memory->allocator, &heap->chunks, heap->chunks.count + 1));
  rondo_heap_chunk chunk = {.bytes = bytes};
  RONDO_TRY(rondo_graph_pages_create(heap->memory, bytes, &chunk.physical));
  rondo_heap_chunk *at = heap->chunks.items + index;
  memmove(at + 1, at, (heap->chunks.count - index) * sizeof *at);
  *at = chunk;
  heap->chunks.count++;
  return RONDO_OK;
}

static void remove_chunk(rondo_heap *heap, size_t index) {
  rondo_heap_chunk *at = heap->chunks.items + index;
  assert(at->mappings == 0);
  rondo_graph_pages_destroy(heap->memory, at->physical, at->bytes);
  heap->chunks.count--;
  memmove(at, at + 1, (heap->chunks.count - index) * sizeof *at);
}

static void remove_all_chunks(rondo_heap *heap) {
  while (heap->chunks.count > 0) remove_chunk(heap, heap->chunks.count - 1);
}

/* Mapping --------------------------------------------------------------------------------------------------------- */

/* The heap is idle. What cannot be unmapped stays noted as mapped, and the next attempt begins there. */
static rondo_status unmap_space(rondo_address_space *space) {
  rondo_device_memory *memory = space->memory;
  rondo_heap *heap = space->heap;
  if (space->mapped) heap->version++;
  space->mapped = false;
  while (space->mappings.count > 0) {
    const rondo_mapping *mapping = &space->mappings.items[space->mappings.count - 1];
    RONDO_TRY(memory->device->ops->unmap(memory->device, space->base + mapping->offset, mapping->bytes));
    rondo_heap_chunk *chunk = &heap->chunks.items[mapping->chunk];
    if (--chunk->mappings == 0) rondo_level_subtract(&memory->graph_used, chunk->bytes);
    space->mappings.count--;
  }
  return RONDO_OK;
}

static rondo_status unmap_all(rondo_heap *heap) {
  for (rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    RONDO_TRY(unmap_space(space));
  return RONDO_OK;
}

static rondo_status map_chunk(rondo_address_space *space, size_t offset, uint32_t index) {
  rondo_device_memory *memory = space->memory;
  rondo_heap_chunk *chunk = &space->heap->chunks.items[index];
  const rondo_mapping mapping = {.offset = offset, .bytes = chunk->bytes, .chunk = index};
  RONDO_TRY(rondo_array_reserve(&memory->allocator, &space->mappings, space->mappings.count + 1));
  RONDO_TRY(memory->device->ops->map(memory->device, space->base + offset, chunk->physical));
  space->mappings.items[space->mappings.count++] = mapping;
  if (chunk->mappings++ == 0) rondo_level_add(&memory->graph_used, chunk->bytes);
  return RONDO_OK;
}

/* What the heap must fill: the bytes between private pages. Chunks may reach past its end, up to `room` bytes. */
typedef struct piece {
  size_t offset, bytes, room;
} piece;

/* The next piece from *offset on, with *index counting private pages; false past the last. */
static bool next_piece(const rondo_address_space *space, size_t *offset, size_t *index, piece *out) {
  while (*index < space->privates.count && space->privates.items[*index].offset == *offset)
    *offset += space->privates.items[(*index)++].bytes;
  if (*offset >= space->need) return false;
  const size_t limit = *index == space->privates.count ? space->reserved : space->privates.items[*index].offset;
  const size_t end = limit < space->need ? limit : space->need;
  *out = (piece){.offset = *offset, .bytes = end - *offset, .room = limit - *offset};
  *offset = end;
  return true;
}

/* Growing --------------------------------------------------------------------------------------------------------- */

/* A chunk is taken for a request of `bytes` when it has room for it and little of it is left over. */
static bool suits(const rondo_heap_chunk *chunk, size_t bytes, size_t room) {
  return chunk->bytes <= bytes || (chunk->bytes <= room && chunk->bytes / 2 <= bytes);
}

/* Whether memory was mapped ahead for a launch that has not come yet (GM-14). */
static bool is_awaited(const rondo_heap *heap) {
  for (const rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    if (space->uploaded) return true;
  return false;
}

/* Whether nothing is lost but time when the heap, whose gate is entered, loses its memory. */
static bool is_dispensable(const rondo_heap *heap) {
  return use_of(heap) != RONDO_HEAP_PRIVATE && is_idle(heap) && !is_awaited(heap);
}

/* Moves the last chunk of an idle heap, whose gate is entered, behind those of `heap`; false when it does not suit or
 * cannot be had. */
static bool take_last_chunk(rondo_heap *heap, rondo_heap *idle, size_t bytes, size_t room) {
  const size_t count = idle->chunks.count;
  if (count == 0 || !suits(&idle->chunks.items[count - 1], bytes, room)) return false;
  if (!is_dispensable(idle) || unmap_all(idle) != RONDO_OK) return false;
  idle->lost = true;
  heap->chunks.items[heap->chunks.count++] = idle->chunks.items[--idle->chunks.count];
  return true;
}

/* Takes a chunk that another stream's heap does not use now: graphs that are launched one after another share memory,
 * also on several streams. A heap that lost a chunk takes none, so that streams in turn do not take from each other
 * for ever. */
static bool take_idle_chunk(rondo_heap *heap, size_t bytes, size_t room) {
  bool taken = false;
  if (heap->lost) return false;
  pthread_mutex_lock(&heap->memory->lock);
  rondo_heap *other = heap->memory->heaps;
  pthread_mutex_unlock(&heap->memory->lock);
  rondo_saved_error before;
  rondo_error_save(&before);
  for (; other != NULL && !taken; other = other->next) {
    if (other == heap || use_of(other) == RONDO_HEAP_PRIVATE) continue;
    if (!rondo_heap_try_enter(other)) continue; /* who waits for gates enters them by their ids */
    taken = take_last_chunk(heap, other, bytes, room);
    rondo_heap_leave(other);
  }
  rondo_error_restore(&before);
  return taken;
}

/* What heaps of streams hold and do not use now goes back to the system; a heap whose gate is entered keeps its own. */
static void give_idle_back(rondo_device_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  rondo_heap *heap = memory->heaps;
  pthread_mutex_unlock(&memory->lock);
  for (; heap != NULL; heap = heap->next) {
    if (use_of(heap) == RONDO_HEAP_PRIVATE || !rondo_heap_try_enter(heap)) continue;
    if (heap->chunks.count > 0 && is_dispensable(heap) && unmap_all(heap) == RONDO_OK) remove_all_chunks(heap);
    rondo_heap_leave(heap);
  }
}

/* Another chunk behind the others, for `bytes` that are missing. */
static rondo_status grow(rondo_heap *heap, size_t bytes, size_t room) {
  RONDO_TRY(rondo_array_reserve(&heap->memory->allocator, &heap->chunks, heap->chunks.count + 1));
  atomic_fetch_add_explicit(&heap->memory->heap_growth, 1, memory_order_relaxed);
  return take_idle_chunk(heap, bytes, room) ? RONDO_OK : insert_chunk(heap, heap->chunks.count, bytes);
}

/* Replaces a chunk by two, the first of `bytes`. The heap is idle. */
static rondo_status split_chunk(rondo_heap *heap, size_t index, size_t bytes) {
  const size_t rest = heap->chunks.items[index].bytes - bytes;
  RONDO_TRY(wait_idle(heap));
  RONDO_TRY(unmap_all(heap));
  remove_chunk(heap, index);
  RONDO_TRY(insert_chunk(heap, index, bytes));
  return insert_chunk(heap, index + 1, rest);
}

/* Makes chunks from *index on end where the piece does, growing the heap when there are too few. */
static rondo_status cut_chunks(rondo_heap *heap, const piece *at, size_t *index) {
  size_t left = at->bytes, room = at->room;
  while (left > 0) {
    if (*index == heap->chunks.count) RONDO_TRY(grow(heap, left, room));
    const size_t bytes = heap->chunks.items[*index].bytes;
    if (bytes > room) {
      RONDO_TRY(split_chunk(heap, *index, left));
      continue;
    }
    left -= bytes < left ? bytes : left;
    room -= bytes;
    (*index)++;
  }
  return RONDO_OK;
}

static rondo_status map_piece(rondo_address_space *space, const piece *at, size_t *index) {
  size_t offset = at->offset, left = at->bytes;
  while (left > 0) {
    const size_t bytes = space->heap->chunks.items[*index].bytes;
    RONDO_TRY(map_chunk(space, offset, (uint32_t)(*index)++));
    left -= bytes < left ? bytes : left;
    offset += bytes;
  }
  return RONDO_OK;
}

/* Private pages --------------------------------------------------------------------------------------------------- */

static rondo_status add_private(rondo_address_space *space, size_t position, size_t offset, size_t bytes) {
  rondo_device_memory *memory = space->memory;
  RONDO_TRY(rondo_array_reserve(&memory->allocator, &space->privates, space->privates.count + 1));
  rondo_private_pages pages = {.offset = offset, .bytes = bytes};
  RONDO_TRY(rondo_graph_pages_create(memory, bytes, &pages.physical));
  const rondo_status status = memory->device->ops->map(memory->device, space->base + offset, pages.physical);
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
static rondo_status remove_private(rondo_address_space *space, size_t position) {
  rondo_device_memory *memory = space->memory;
  rondo_private_pages *at = space->privates.items + position;
  RONDO_TRY(memory->device->ops->unmap(memory->device, space->base + at->offset, at->bytes));
  rondo_graph_pages_destroy(memory, at->physical, at->bytes);
  rondo_level_subtract(&memory->graph_used, at->bytes);
  space->privates.count--;
  memmove(at, at + 1, (space->privates.count - position) * sizeof *at);
  return RONDO_OK;
}

/* Walks the bytes of `range` that are not private yet; with `add` they become so. Returns in *out_missing whether there
 * were any. */
static rondo_status cover_private(rondo_address_space *space, rondo_page_range range, bool add, bool *out_missing) {
  size_t at = range.begin;
  for (size_t i = 0; at < range.end; i++) {
    const bool past = i == space->privates.count;
    const size_t begin = past ? range.end : space->privates.items[i].offset;
    const size_t end = past ? range.end : begin + space->privates.items[i].bytes;
    if (end <= at && !past) continue;
    const size_t gap_end = begin < range.end ? begin : range.end;
    if (gap_end > at) {
      *out_missing = true;
      if (!add) return RONDO_OK;
      RONDO_TRY(add_private(space, i, at, gap_end - at));
      at = gap_end;
      continue;
    }
    at = end;
  }
  return RONDO_OK;
}

static rondo_status cover_privates(rondo_space_need *need, bool add, bool *out_missing) {
  for (size_t i = 0; i < need->privates.count; i++)
    RONDO_TRY(cover_private(need->space, need->privates.items[i], add, out_missing));
  return RONDO_OK;
}

/* Binding --------------------------------------------------------------------------------------------------------- */

/* Whether two spaces have a chunk in common; runs of chunks are ascending. */
static bool share_chunks(const rondo_address_space *a, const rondo_address_space *b) {
  if (a->mappings.count == 0 || b->mappings.count == 0) return false;
  return a->mappings.items[0].chunk <= b->mappings.items[b->mappings.count - 1].chunk &&
         b->mappings.items[0].chunk <= a->mappings.items[a->mappings.count - 1].chunk;
}

static bool is_satisfied(rondo_space_need *needs, size_t index) {
  rondo_space_need *need = &needs[index];
  bool missing = false;
  if (!need->space->mapped || need->space->need < need->bytes) return false;
  if (cover_privates(need, false, &missing) != RONDO_OK || missing) return false;
  for (size_t i = 0; i < index; i++)
    if (share_chunks(needs[i].space, need->space)) return false;
  return true;
}

/* What the heap must give to the space. */
static size_t shared_bytes(const rondo_address_space *space) {
  size_t bytes = 0, offset = 0, index = 0;
  piece at;
  while (next_piece(space, &offset, &index, &at)) bytes += at.bytes;
  return bytes;
}

/* Whether the chunks from `first` up to those of the exec's other spaces hold `bytes`; else *out_next is where to try
 * next. */
static bool run_fits(const rondo_heap *heap, const rondo_space_need *needs, size_t count,
                     const rondo_address_space *space, size_t first, size_t bytes, size_t *out_next) {
  size_t limit = SIZE_MAX;
  for (size_t i = 0; i < count; i++) {
    const rondo_address_space *other = needs[i].space;
    if (other == space || other->mappings.count == 0) continue;
    const size_t begin = other->mappings.items[0].chunk;
    const size_t behind = other->mappings.items[other->mappings.count - 1].chunk + (size_t)1;
    if (behind <= first || begin >= limit) continue;
    limit = begin;
    *out_next = behind;
  }
  if (limit == SIZE_MAX) return true;
  for (size_t i = first; i < limit && bytes > 0; i++)
    bytes -= heap->chunks.items[i].bytes < bytes ? heap->chunks.items[i].bytes : bytes;
  return bytes == 0;
}

/* The first chunk of the lowest run that the exec's other spaces leave to the space. */
static size_t find_run(const rondo_heap *heap, const rondo_space_need *needs, size_t count,
                       const rondo_address_space *space) {
  const size_t bytes = shared_bytes(space);
  size_t first = 0, next = 0;
  while (!run_fits(heap, needs, count, space, first, bytes, &next)) first = next;
  return first;
}

static rondo_status map_space(rondo_heap *heap, rondo_address_space *space, size_t first) {
  size_t offset = 0, index = 0, chunk = first;
  piece at;
  while (next_piece(space, &offset, &index, &at)) RONDO_TRY(cut_chunks(heap, &at, &chunk));
  offset = index = 0;
  chunk = first;
  rondo_status status = RONDO_OK;
  while (status == RONDO_OK && next_piece(space, &offset, &index, &at)) status = map_piece(space, &at, &chunk);
  if (status != RONDO_OK) {
    rondo_status_ignore(unmap_space(space), "what stays mapped is noted; the first failure is the one to report");
    return status;
  }
  if (space->mapped_before) atomic_fetch_add_explicit(&heap->memory->remaps, 1, memory_order_relaxed);
  space->mapped_before = true;
  space->mapped = true;
  return RONDO_OK;
}

static rondo_status satisfy(rondo_heap *heap, rondo_space_need *needs, size_t count, size_t index) {
  rondo_space_need *need = &needs[index];
  rondo_address_space *space = need->space;
  bool missing = false;
  if (space->mappings.count > 0) RONDO_TRY(wait_idle(heap));
  RONDO_TRY(unmap_space(space));
  if (need->bytes > space->need) space->need = need->bytes;
  RONDO_TRY(cover_privates(need, true, &missing));
  return map_space(heap, space, find_run(heap, needs, count, space));
}

/* Making room for one space may unmap others, when a chunk is split; chunks are split finitely often. */
static rondo_status satisfy_all(rondo_heap *heap, rondo_space_need *needs, size_t count) {
  size_t index = 0;
  while (index < count) {
    if (is_satisfied(needs, index)) {
      index++;
      continue;
    }
    RONDO_TRY(satisfy(heap, needs, count, index));
    index = 0;
  }
  return RONDO_OK;
}

static void detach(rondo_address_space *space) {
  rondo_address_space **at = &space->heap->bound;
  while (*at != space) at = &(*at)->next_bound;
  *at = space->next_bound;
}

static void attach(rondo_heap *heap, rondo_address_space *space) {
  space->heap = heap;
  space->next_bound = heap->bound;
  heap->bound = space;
}

/* Gates of both heaps are entered. */
static rondo_status move_space(rondo_address_space *space, rondo_heap *heap) {
  RONDO_TRY(wait_idle(space->heap));
  RONDO_TRY(unmap_space(space));
  pthread_mutex_lock(&heap->memory->lock);
  detach(space);
  attach(heap, space);
  pthread_mutex_unlock(&heap->memory->lock);
  return RONDO_OK;
}

/* Notes the heaps of all spaces, and returns the one to bind them to. */
static rondo_heap *look_around(rondo_heap *target, rondo_space_need *needs, size_t count, bool move) {
  rondo_heap *chosen = move ? target : NULL;
  pthread_mutex_lock(&target->memory->lock);
  for (size_t i = 0; i < count; i++) {
    needs[i].seen = needs[i].space->heap;
    if (chosen == NULL) chosen = needs[i].seen;
  }
  pthread_mutex_unlock(&target->memory->lock);
  return chosen == NULL ? target : chosen;
}

/* The noted heap with the lowest id that is at least `id`; NULL past the last. */
static rondo_heap *next_gate(rondo_heap *chosen, const rondo_space_need *needs, size_t count, uint64_t id) {
  rondo_heap *next = chosen->id >= id ? chosen : NULL;
  for (size_t i = 0; i < count; i++) {
    rondo_heap *heap = needs[i].seen;
    if (heap != NULL && heap->id >= id && (next == NULL || heap->id < next->id)) next = heap;
  }
  return next;
}

static void enter_all(rondo_heap *chosen, const rondo_space_need *needs, size_t count) {
  rondo_heap *heap = next_gate(chosen, needs, count, 0);
  while (heap != NULL) {
    rondo_heap_enter(heap);
    heap = next_gate(chosen, needs, count, (uint64_t)heap->id + 1);
  }
}

static void leave_all_but(rondo_heap *keep, rondo_heap *chosen, const rondo_space_need *needs, size_t count) {
  rondo_heap *heap = next_gate(chosen, needs, count, 0);
  while (heap != NULL) {
    rondo_heap *next = next_gate(chosen, needs, count, (uint64_t)heap->id + 1);
    if (heap != keep) rondo_heap_leave(heap);
    heap = next;
  }
}

/* With the gates entered: true when nobody moved a space since it was looked at; unbound ones are then the chosen
 * heap's. */
static bool claim_spaces(rondo_heap *chosen, rondo_space_need *needs, size_t count) {
  bool same = true;
  pthread_mutex_lock(&chosen->memory->lock);
  for (size_t i = 0; i < count; i++) same = same && needs[i].space->heap == needs[i].seen;
  for (size_t i = 0; i < count && same; i++)
    if (needs[i].space->heap == NULL) attach(chosen, needs[i].space);
  pthread_mutex_unlock(&chosen->memory->lock);
  return same;
}

static rondo_status bind_entered(rondo_heap *chosen, rondo_space_need *needs, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (needs[i].space->heap != chosen) RONDO_TRY(move_space(needs[i].space, chosen));
  return satisfy_all(chosen, needs, count);
}

rondo_status rondo_heap_bind(rondo_heap *target, rondo_space_need *needs, size_t count, bool move,
                             rondo_heap **out_heap) {
  rondo_retired_sweep(target->memory, false);
  for (;;) {
    rondo_heap *chosen = look_around(target, needs, count, move);
    enter_all(chosen, needs, count);
    if (!claim_spaces(chosen, needs, count)) {
      leave_all_but(NULL, chosen, needs, count);
      continue;
    }
    const rondo_status status = bind_entered(chosen, needs, count);
    leave_all_but(status == RONDO_OK ? chosen : NULL, chosen, needs, count);
    *out_heap = chosen;
    return status;
  }
}

/* Trimming -------------------------------------------------------------------------------------------------------- */

static bool is_alive(const rondo_address_space *space, const rondo_private_pages *pages) {
  const char *begin = space->base + pages->offset, *end = begin + pages->bytes;
  for (size_t i = 0; i < space->allocations.count; i++) {
    const rondo_graph_allocation *at = space->allocations.items[i];
    if (at->base.address < end && at->base.address + at->base.bytes > begin &&
        atomic_load_explicit(&at->life, memory_order_acquire) == RONDO_LIFE_LIVE)
      return true;
  }
  return false;
}

/* An allocation whose stream-ordered free may not have been reached, with a reference; NULL when there is none. */
static rondo_graph_allocation *find_unfinished_free(rondo_address_space *space) {
  rondo_graph_allocation *found = NULL;
  pthread_mutex_lock(&space->memory->lock);
  for (size_t i = 0; i < space->allocations.count && found == NULL; i++) {
    rondo_graph_allocation *at = space->allocations.items[i];
    if (atomic_load_explicit(&at->freed_queue, memory_order_acquire) != NULL &&
        at->freed_event->ops->query(at->freed_event) != RONDO_OK)
      found = at;
  }
  if (found != NULL) found->references++;
  pthread_mutex_unlock(&space->memory->lock);
  return found;
}

static rondo_status wait_frees(rondo_address_space *space) {
  rondo_status status = RONDO_OK;
  rondo_graph_allocation *at;
  while (status == RONDO_OK && (at = find_unfinished_free(space)) != NULL) {
    status = at->freed_event->ops->synchronize(at->freed_event);
    pthread_mutex_lock(&space->memory->lock);
    rondo_graph_allocation_release(at);
    pthread_mutex_unlock(&space->memory->lock);
  }
  return status;
}

static rondo_status trim_privates(rondo_address_space *space) {
  if (space->privates.count == 0) return RONDO_OK;
  RONDO_TRY(wait_frees(space));
  for (size_t i = space->privates.count; i-- > 0;) {
    pthread_mutex_lock(&space->memory->lock);
    const bool alive = is_alive(space, &space->privates.items[i]);
    pthread_mutex_unlock(&space->memory->lock);
    if (!alive) RONDO_TRY(remove_private(space, i));
  }
  return RONDO_OK;
}

static rondo_status trim_heap(rondo_heap *heap) {
  RONDO_TRY(wait_idle(heap));
  heap->version++;
  RONDO_TRY(unmap_all(heap));
  remove_all_chunks(heap);
  heap->lost = false;
  for (rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound)
    RONDO_TRY(trim_privates(space));
  return RONDO_OK;
}

static rondo_heap *first_heap(rondo_device_memory *memory) {
  pthread_mutex_lock(&memory->lock);
  rondo_heap *heap = memory->heaps;
  pthread_mutex_unlock(&memory->lock);
  return heap;
}

rondo_status rondo_heaps_trim(rondo_device_memory *memory) {
  rondo_status status = RONDO_OK;
  for (rondo_heap *heap = first_heap(memory); heap != NULL; heap = heap->next) {
    if (use_of(heap) == RONDO_HEAP_PRIVATE) continue;
    rondo_heap_enter(heap);
    const rondo_status trimmed = trim_heap(heap);
    rondo_heap_leave(heap);
    if (status == RONDO_OK) status = trimmed;
  }
  rondo_retired_sweep(memory, false);
  return status;
}

/* Retired spaces -------------------------------------------------------------------------------------------------- */

/* Nobody else knows the space any more, but trimming finds it through its heap: so the gate is entered. */
static bool frees_done(rondo_address_space *space, bool wait) {
  for (size_t i = 0; i < space->allocations.count; i++) {
    const rondo_graph_allocation *at = space->allocations.items[i];
    if (atomic_load_explicit(&at->freed_queue, memory_order_acquire) == NULL) continue;
    if (wait)
      rondo_status_ignore(at->freed_event->ops->synchronize(at->freed_event), "what failed has ended too");
    else if (at->freed_event->ops->query(at->freed_event) != RONDO_OK)
      return false;
  }
  return true;
}

/* What could not be unmapped is counted as gone: the device holds its memory as long as it is mapped, and gives the
 * addresses to nobody. */
static void abandon(rondo_address_space *space) {
  rondo_device_memory *memory = space->memory;
  rondo_heap *heap = space->heap;
  while (space->mappings.count > 0) {
    rondo_heap_chunk *chunk = &heap->chunks.items[space->mappings.items[--space->mappings.count].chunk];
    if (--chunk->mappings == 0) rondo_level_subtract(&memory->graph_used, chunk->bytes);
  }
  while (space->privates.count > 0) {
    const rondo_private_pages *pages = &space->privates.items[--space->privates.count];
    rondo_graph_pages_destroy(memory, pages->physical, pages->bytes);
    rondo_level_subtract(&memory->graph_used, pages->bytes);
  }
}

/* Whether nothing is mapped any more. */
static bool unmap_retired(rondo_address_space *space) {
  rondo_status status = unmap_space(space);
  while (status == RONDO_OK && space->privates.count > 0) status = remove_private(space, space->privates.count - 1);
  if (status == RONDO_OK) return true;
  rondo_log(RONDO_LOG_ERROR, "memory", "unmapping graph memory failed: %s", rondo_last_error()->message);
  abandon(space);
  return false;
}

/* False when launches still run, or somebody is at the gate. */
static bool take_off_heap(rondo_address_space *space, bool wait, bool *out_unmapped) {
  rondo_heap *heap = space->heap;
  *out_unmapped = true;
  if (heap == NULL) return true;
  if (wait)
    rondo_heap_enter(heap);
  else if (!rondo_heap_try_enter(heap))
    return false;
  if (wait) rondo_status_ignore(wait_idle(heap), "what failed has ended too");
  const bool done = (wait || is_idle(heap)) && frees_done(space, wait);
  if (done) {
    *out_unmapped = unmap_retired(space);
    detach(space);
  }
  rondo_heap_leave(heap);
  return done;
}

/* What a free node ended is known as freed by its record alone. */
static void destroy_allocation(rondo_address_space *space, rondo_graph_allocation *at) {
  rondo_device_memory *memory = space->memory;
  const bool was_freed = atomic_load_explicit(&at->life, memory_order_acquire) == RONDO_LIFE_FREED;
  pthread_mutex_lock(&memory->lock);
  if (was_freed) rondo_allocation_table_note_freed(&memory->table, &at->base);
  rondo_graph_allocation_leave_table(at);
  pthread_mutex_unlock(&memory->lock);
  rondo_graph_allocation_destroy(at);
}

void rondo_graph_addresses_give_back(rondo_device_memory *memory, char *base, size_t bytes, uint32_t place,
                                     bool unmapped) {
  rondo_device *device = memory->device;
  pthread_mutex_lock(&memory->lock);
  rondo_memory_note_gone(memory, base, bytes, place);
  pthread_mutex_unlock(&memory->lock);
  if (!unmapped) rondo_peers_forget(device, base);
  if (unmapped && rondo_peers_unreserve(device, base, bytes) != RONDO_OK)
    rondo_log(RONDO_LOG_ERROR, "memory", "giving back addresses of graph memory failed: %s",
              rondo_last_error()->message);
}

static void destroy_space(rondo_address_space *space, bool unmapped) {
  rondo_device_memory *memory = space->memory;
  for (size_t i = 0; i < space->allocations.count; i++) destroy_allocation(space, space->allocations.items[i]);
  if (space->arena != NULL)
    rondo_arena_leave(space);
  else if (space->base != NULL)
    rondo_graph_addresses_give_back(memory, space->base, space->reserved, space->place, unmapped);
  if (space->planned.profile != NULL) rondo_profile_release(space->planned.profile);
  rondo_array_free(&memory->allocator, &space->allocations);
  rondo_array_free(&memory->allocator, &space->alike);
  rondo_array_free(&memory->allocator, &space->blocks);
  rondo_standpoints_free(space);
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

static void put_back_retired(rondo_address_space *space) {
  rondo_device_memory *memory = space->memory;
  pthread_mutex_lock(&memory->lock);
  space->next_retired = memory->retired;
  memory->retired = space;
  pthread_mutex_unlock(&memory->lock);
}

static void sweep_spaces(rondo_device_memory *memory, bool wait) {
  rondo_address_space *next;
  for (rondo_address_space *space = take_retired(memory); space != NULL; space = next) {
    next = space->next_retired;
    bool unmapped;
    if (take_off_heap(space, wait, &unmapped))
      destroy_space(space, unmapped);
    else
      put_back_retired(space);
  }
}

/* A heap that was given up, its gate entered: as long as something is bound to it or runs there it stays as it is. */
static void empty_heap(rondo_heap *heap) {
  if (heap->bound != NULL || !is_idle(heap)) return;
  remove_all_chunks(heap);
  heap->last_queue = NULL;
  heap->lost = false;
  pthread_mutex_lock(&heap->memory->lock);
  set_use(heap, RONDO_HEAP_EMPTY);
  pthread_mutex_unlock(&heap->memory->lock);
  atomic_fetch_sub_explicit(&heap->memory->leaving, 1, memory_order_relaxed);
}

static void sweep_heaps(rondo_device_memory *memory) {
  if (atomic_load_explicit(&memory->leaving, memory_order_acquire) == 0) return;
  for (rondo_heap *heap = first_heap(memory); heap != NULL; heap = heap->next) {
    if (use_of(heap) != RONDO_HEAP_LEAVING || !rondo_heap_try_enter(heap)) continue;
    if (use_of(heap) == RONDO_HEAP_LEAVING) empty_heap(heap);
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
    remove_all_chunks(heap);
    rondo_array_free(&memory->allocator, &heap->chunks);
    heap->last->ops->destroy(heap->last);
    rondo_release(&memory->allocator, heap, 1, sizeof *heap);
  }
}
