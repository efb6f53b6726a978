/* SPDX-License-Identifier: MIT
 * Arenas on a guarded device: pages of its own for each allocation and slot, behind one that nothing has. Pages of a
 * recording that is gone, and of what it left, are given out again last of all: a cursor goes round over several times
 * as many pages as are in use.
 */
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "memory/arena/arena_guard.h"
#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/graph_allocation.h"

/* The cursor goes round when it has passed so many times what is taken, and no less than that. */
#define ROUND 4
#define SMALLEST_ROUND ((size_t)16 << 20)

static const rondo_guard_ops *guard_of(const rondo_arena *arena) { return arena->memory->device->ops->guard; }

/* The first range that ends behind the offset. */
static size_t seek(const rondo_arena *arena, size_t offset) {
  size_t low = 0, high = arena->taken.count;
  RONDO_BINARY_SEARCH(low, high, middle, arena->taken.items[middle].end <= offset)
  return low;
}

/* Where so many bytes that nobody has begin, from an offset on; what is behind all is nobody's. */
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

/* There is room. */
static void insert_range(rondo_arena *arena, size_t begin, size_t end, const rondo_address_space *owner) {
  const size_t position = seek(arena, begin);
  rondo_guarded_range *at = arena->taken.items + position;
  memmove(at + 1, at, (arena->taken.count - position) * sizeof *at);
  *at = (rondo_guarded_range){.begin = begin, .end = end, .owner = owner};
  arena->taken.count++;
}

/* Under the lock. */
static rondo_status take_range(rondo_arena *arena, const rondo_address_space *owner, size_t bytes, size_t *out) {
  RONDO_TRY(rondo_array_reserve(&arena->memory->allocator, &arena->taken, arena->taken.count + 1));
  size_t round = taken_bytes(arena) * ROUND;
  if (round < SMALLEST_ROUND) round = SMALLEST_ROUND;
  size_t begin = find_gap(arena, arena->cursor, bytes);
  if (begin > round || bytes > round - begin) begin = find_gap(arena, 0, bytes);
  if (begin > arena->reserved || bytes > arena->reserved - begin) {
    char label[RONDO_ARENA_LABEL], asked[RONDO_SIZE_TEXT], reserved[RONDO_SIZE_TEXT];
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ADDRESS_SPACE,
                      "%s more do not fit the %s of addresses of %s, where %s gives each allocation pages of "
                      "its own: reserve more when it is made, or use a device that does not check",
                      rondo_size_text(asked, bytes), rondo_size_text(reserved, arena->reserved),
                      rondo_arena_label(label, arena), arena->memory->device->name);
  }
  insert_range(arena, begin, begin + bytes, owner);
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
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE, "%zu bytes do not fit the address space", bytes);
  pthread_mutex_lock(&arena->memory->lock);
  const rondo_status status = take_range(arena, space, whole, &begin);
  pthread_mutex_unlock(&arena->memory->lock);
  RONDO_TRY(status);
  guard_of(arena)->forget(arena->memory->device, rondo_arena_base(arena) + begin, whole);
  *out = rondo_arena_base(arena) + begin + whole - bytes;
  return RONDO_OK;
}

/* Under the lock. Its pages may still be those of the recording that made it. */
static rondo_status keep_block(rondo_arena *arena, const rondo_address_space *space,
                               const rondo_graph_allocation *block) {
  const size_t page = arena->memory->page_bytes;
  size_t begin = (size_t)(block->base.address - rondo_arena_base(arena));
  const size_t end = (begin + rondo_graph_allocation_rounded(block) + page - 1) / page * page;
  begin = begin / page * page;
  const size_t at = seek(arena, begin);
  if (at < arena->taken.count && arena->taken.items[at].begin < end) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&arena->memory->allocator, &arena->taken, arena->taken.count + 1));
  insert_range(arena, begin, end, space);
  return RONDO_OK;
}

rondo_status rondo_arena_guard_blocks(rondo_address_space *space) {
  rondo_arena *arena = space->arena;
  rondo_status status = RONDO_OK;
  if (guard_of(arena) == NULL) return RONDO_OK;
  pthread_mutex_lock(&arena->memory->lock);
  for (size_t i = 0; i < space->blocks.count && status == RONDO_OK; i++)
    status = keep_block(arena, space, space->blocks.items[i].record);
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
