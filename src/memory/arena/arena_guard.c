/* SPDX-License-Identifier: MIT
 * Arenas on a guarded device: each allocation and slot has its own pages, after a guard page. The pages of a destroyed
 * recording are reused as late as possible: a cursor cycles through several times as many pages as are in use. Also the
 * watch of host accesses to memory of a recording that has not been launched yet.
 */
#include <assert.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "memory/arena/arena_guard.h"
#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/memory_errors.h"

/* The cursor starts over when it has passed this many times the bytes in use, but not before MIN_ROUND. */
#define ROUND 4
#define MIN_ROUND ((size_t)16 << 20)

static const rondo_guard_ops *guard_of(const rondo_arena *arena) { return arena->memory->device->ops->guard; }

/* The first range that ends after the offset. */
static size_t seek(const rondo_arena *arena, size_t offset) {
  size_t low = 0, high = arena->taken.count;
  RONDO_BINARY_SEARCH(low, high, middle, arena->taken.items[middle].end <= offset)
  return low;
}

/* The first gap of `bytes` bytes at or after the offset `from`; it may be after all ranges. */
static size_t find_gap(const rondo_arena *arena, size_t from, size_t bytes) {
  for (size_t i = seek(arena, from); i < arena->taken.count; i++) {
    const rondo_guarded_range *at = &arena->taken.items[i];
    if (at->begin >= from && at->begin - from >= bytes) return from;
    from = at->end;
  }
  return from;
}

static size_t taken_bytes(const rondo_arena *arena) {
  size_t bytes = 0;
  for (size_t i = 0; i < arena->taken.count; i++) bytes += arena->taken.items[i].end - arena->taken.items[i].begin;
  return bytes;
}

static rondo_status insert_range(rondo_arena *arena, size_t begin, size_t end, const rondo_address_space *owner) {
  const size_t position = seek(arena, begin);
  const rondo_guarded_range range = {.begin = begin, .end = end, .owner = owner};
  assert(begin < end && (position == arena->taken.count || end <= arena->taken.items[position].begin));
  RONDO_TRY(rondo_array_reserve(&arena->memory->allocator, &arena->taken, arena->taken.count + 1));
  rondo_array_insert(&arena->taken, position, range);
  return RONDO_OK;
}

/* Under the lock. */
static rondo_status take_range(rondo_arena *arena, const rondo_address_space *owner, size_t bytes, size_t *out) {
  size_t round = taken_bytes(arena) * ROUND;
  if (round < MIN_ROUND) round = MIN_ROUND;
  size_t begin = find_gap(arena, arena->cursor, bytes);
  if (begin > round || bytes > round - begin) begin = find_gap(arena, 0, bytes);
  if (begin > arena->reserved || bytes > arena->reserved - begin) return rondo_arena_fail_full(arena, bytes);
  RONDO_TRY(insert_range(arena, begin, begin + bytes, owner));
  arena->cursor = begin + bytes;
  *out = begin;
  return RONDO_OK;
}

rondo_status rondo_arena_take_guarded(rondo_address_space *space, size_t bytes, char **out) {
  rondo_arena *arena = space->arena;
  const size_t page = arena->memory->page_bytes;
  size_t whole, begin = 0;
  *out = NULL;
  if (!rondo_checked_align(bytes, page, &whole) || !rondo_checked_add(whole, page, &whole))
    return rondo_memory_fail_size(bytes);
  pthread_mutex_lock(&arena->memory->lock);
  const rondo_status status = take_range(arena, space, whole, &begin);
  pthread_mutex_unlock(&arena->memory->lock);
  RONDO_TRY(status);
  guard_of(arena)->forget(arena->memory->device, rondo_arena_base(arena) + begin, whole);
  *out = rondo_arena_base(arena) + begin + whole - bytes;
  return RONDO_OK;
}

/* Under the lock. The recording that allocated the block may still own its pages. */
static rondo_status keep_block(rondo_arena *arena, const rondo_address_space *space,
                               const rondo_graph_allocation *block) {
  const size_t page = arena->memory->page_bytes;
  size_t begin = (size_t)(block->base.address - rondo_arena_base(arena));
  const size_t end = (begin + rondo_graph_allocation_rounded(block) + page - 1) / page * page;
  begin = begin / page * page;
  const size_t at = seek(arena, begin);
  if (at < arena->taken.count && arena->taken.items[at].begin < end) return RONDO_OK;
  return insert_range(arena, begin, end, space);
}

rondo_status rondo_arena_guard_blocks(rondo_address_space *space) {
  rondo_arena *arena = space->arena;
  rondo_status status = RONDO_OK;
  if (guard_of(arena) == NULL) return RONDO_OK;
  pthread_mutex_lock(&arena->memory->lock);
  for (size_t i = 0; i < space->block_count && status == RONDO_OK; i++)
    status = keep_block(arena, space, space->allocations.items[i]);
  pthread_mutex_unlock(&arena->memory->lock);
  return status;
}

rondo_status rondo_arena_guard_slots(rondo_address_space *space) {
  rondo_arena *arena = space->arena;
  if (guard_of(arena) == NULL) return RONDO_OK;
  RONDO_TRY(rondo_arena_back(arena, space->top));
  for (size_t i = 0; i < space->held_count; i++) {
    const rondo_graph_allocation *record = space->allocations.items[i];
    if (record->role != RONDO_RECORD_SLOT) continue;
    RONDO_TRY(
        guard_of(arena)->hold(arena->memory->device, record->base.address, record->base.bytes, record->base.name));
    space->guarded_slots++;
  }
  return RONDO_OK;
}

void rondo_arena_unguard(rondo_address_space *space) {
  rondo_arena *arena = space->arena;
  size_t kept = 0;
  if (guard_of(arena) == NULL) return;
  for (size_t i = 0; i < space->held_count && space->guarded_slots > 0; i++) {
    const rondo_graph_allocation *record = space->allocations.items[i];
    if (record->role != RONDO_RECORD_SLOT) continue;
    guard_of(arena)->release(arena->memory->device, NULL, record->base.address);
    space->guarded_slots--;
  }
  pthread_mutex_lock(&arena->memory->lock);
  for (size_t i = 0; i < arena->taken.count; i++)
    if (arena->taken.items[i].owner != space) arena->taken.items[kept++] = arena->taken.items[i];
  arena->taken.count = kept;
  pthread_mutex_unlock(&arena->memory->lock);
}

void rondo_arena_end_life(rondo_arena *arena, rondo_queue *queue, void *address) {
  if (guard_of(arena) != NULL) guard_of(arena)->release(arena->memory->device, queue, address);
}

void rondo_memory_set_read_only(rondo_device_memory *memory, rondo_queue *queue, void *address, bool read_only) {
  const rondo_guard_ops *guard = memory->device->ops->guard;
  if (guard != NULL) guard->set_read_only(memory->device, queue, address, read_only);
}

/* Watching the host ----------------------------------------------------------------------------------------------- */

typedef enum slot_change { END_LIFE, BEGIN_LIFE, COVER } slot_change;

/* On a guarded device the slots are live; while they are watched they are not. */
static rondo_status change_slots(const rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count,
                                 slot_change change) {
  rondo_device *device = arena->memory->device;
  const rondo_guard_ops *guard = guard_of(arena);
  for (size_t i = 0; i < slot_count && guard != NULL; i++) {
    if (change == END_LIFE) guard->release(device, NULL, slots[i].address);
    if (change == BEGIN_LIFE) RONDO_TRY(guard->hold(device, slots[i].address, slots[i].bytes, slots[i].name));
    if (change == COVER) guard->host_cover(device, arena->watch, slots[i].address);
  }
  return RONDO_OK;
}

rondo_status rondo_arena_watch_begin(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count) {
  rondo_device *device = arena->memory->device;
  assert(arena->watch == NULL);
  if (device->ops->host_watch_begin == NULL) return RONDO_OK;
  RONDO_TRY(change_slots(arena, slots, slot_count, END_LIFE));
  arena->watch =
      device->ops->host_watch_begin(device, rondo_arena_base(arena) + arena->backed, arena->reserved - arena->backed);
  return change_slots(arena, slots, slot_count, arena->watch == NULL ? BEGIN_LIFE : COVER);
}

rondo_status rondo_arena_watch_end(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count, size_t used,
                                   rondo_arena_access *out) {
  rondo_device *device = arena->memory->device;
  void *watch = arena->watch;
  *out = (rondo_arena_access){0};
  arena->watch = NULL;
  if (watch == NULL) return RONDO_OK;
  out->address = device->ops->host_watch_end(device, watch, arena->reserved - arena->backed,
                                             used > arena->backed ? used - arena->backed : 0, &out->bytes);
  return change_slots(arena, slots, slot_count, BEGIN_LIFE);
}
