/* SPDX-License-Identifier: MIT
 * Arenas: their addresses, and the memory that backs them in pieces, added and removed at the end.
 */
#include "memory/arena/arena_internal.h"

#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/linked_list.h"
#include "base/log.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/memory_check.h"
#include "memory/peer_access.h"

/* The maximum size of a piece: trimming releases whole pieces. */
#define MAX_PIECE ((size_t)64 << 20)

rondo_device *rondo_arena_device(const rondo_arena *arena) { return arena->memory->device; }

/* In the device's tables ------------------------------------------------------------------------------------------ */

bool rondo_arena_owns(const rondo_arena *arena, const void *address) {
  return (uintptr_t)address - (uintptr_t)rondo_arena_base(arena) < arena->reserved;
}

const rondo_arena *rondo_arena_find(const rondo_device_memory *memory, const void *address) {
  const rondo_arena *arena = memory->arenas;
  while (arena != NULL && !rondo_arena_owns(arena, address)) arena = arena->next;
  return arena;
}

/* Updates the device's table: `bytes` are backed. */
static void set_backed(rondo_arena *arena, size_t bytes) {
  rondo_device_memory *memory = arena->memory;
  const bool shrinks = bytes < arena->allocation.bytes;
  pthread_mutex_lock(&memory->lock);
  if (arena->allocation.bytes > 0) rondo_allocation_table_remove(&memory->table, &arena->allocation);
  arena->allocation.bytes = bytes;
  if (bytes > 0) rondo_allocation_table_insert(&memory->allocator, &memory->table, &arena->allocation);
  pthread_mutex_unlock(&memory->lock);
  if (shrinks) rondo_memory_note_ended(memory);
}

/* Backing --------------------------------------------------------------------------------------------------------- */

static char *end_of(const rondo_arena *arena) { return rondo_arena_base(arena) + arena->backed; }

static rondo_status add_piece(rondo_arena *arena, size_t bytes) {
  rondo_device_memory *memory = arena->memory;
  rondo_arena_piece piece = {.bytes = bytes};
  assert(bytes <= arena->reserved - arena->backed);
  RONDO_TRY(rondo_array_reserve(&memory->allocator, &arena->pieces, arena->pieces.count + 1));
  RONDO_TRY(rondo_graph_pages_create(memory, end_of(arena), bytes, &piece.physical));
  arena->pieces.items[arena->pieces.count++] = piece;
  arena->backed += bytes;
  rondo_level_add(&memory->arena_backed, bytes);
  return RONDO_OK;
}

static rondo_arena_piece *last_piece(const rondo_arena *arena) {
  assert(arena->pieces.count > 0);
  return &arena->pieces.items[arena->pieces.count - 1];
}

/* On failure the piece stays mapped. */
static rondo_status remove_piece(rondo_arena *arena) {
  rondo_device_memory *memory = arena->memory;
  const rondo_arena_piece *last = last_piece(arena);
  const rondo_guard_ops *guard = memory->device->ops->guard;
  char *const address = end_of(arena) - last->bytes;
  if (guard != NULL) guard->forget(memory->device, address, last->bytes);
  RONDO_TRY(rondo_graph_pages_destroy(memory, address, last->physical, last->bytes));
  rondo_level_subtract(&memory->arena_backed, last->bytes);
  arena->backed -= last->bytes;
  arena->pieces.count--;
  return RONDO_OK;
}

const char *rondo_arena_label(char buffer[RONDO_ARENA_LABEL], const rondo_arena *arena) {
  const bool is_named = arena->allocation.name[0] != '\0';
  (void)snprintf(buffer, RONDO_ARENA_LABEL, is_named ? "arena '%.60s'" : "an arena%s", arena->allocation.name);
  return buffer;
}

static rondo_status fail_reserve(const rondo_arena *arena, size_t bytes) {
  char label[RONDO_ARENA_LABEL], wanted[RONDO_SIZE_TEXT], reserved[RONDO_SIZE_TEXT];
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE,
                    "%s has addresses for %s, but %s are needed: reserve more when it is created",
                    rondo_arena_label(label, arena), rondo_size_text(reserved, arena->reserved),
                    rondo_size_text(wanted, bytes));
}

rondo_status rondo_arena_fail_full(const rondo_arena *arena, size_t bytes) {
  const rondo_device *device = arena->memory->device;
  const bool is_guarded = device->ops->guard != NULL;
  char label[RONDO_ARENA_LABEL], wanted[RONDO_SIZE_TEXT], reserved[RONDO_SIZE_TEXT];
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ADDRESS_SPACE,
                    "%s more do not fit into the %s of addresses of %s%s%s%s: reserve more when it is created%s",
                    rondo_size_text(wanted, bytes), rondo_size_text(reserved, arena->reserved),
                    rondo_arena_label(label, arena), is_guarded ? ", where " : "", is_guarded ? device->name : "",
                    is_guarded ? " gives each allocation its own pages" : "",
                    is_guarded ? ", or use a device that does not check" : "");
}

/* When a piece cannot be added, the pieces before it are removed again. */
static rondo_status grow(rondo_arena *arena, size_t bytes) {
  const size_t before = arena->backed;
  rondo_status status = RONDO_OK;
  while (status == RONDO_OK && arena->backed < bytes) {
    const size_t missing = bytes - arena->backed;
    status = add_piece(arena, missing < MAX_PIECE ? missing : MAX_PIECE);
  }
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error why;
  rondo_error_save(&why);
  while (arena->backed > before)
    if (remove_piece(arena) != RONDO_OK) break;
  char label[RONDO_ARENA_LABEL];
  return rondo_fail_context(rondo_error_raise(&why), "%s", rondo_arena_label(label, arena));
}

rondo_status rondo_arena_back(rondo_arena *arena, size_t bytes) {
  size_t whole;
  if (bytes <= arena->backed) return RONDO_OK;
  if (!rondo_checked_align(bytes, arena->memory->page_bytes, &whole) || whole > arena->reserved)
    return fail_reserve(arena, bytes);
  const rondo_status status = grow(arena, whole);
  set_backed(arena, arena->backed);
  rondo_arena_check(arena);
  return status;
}

rondo_status rondo_arena_trim(rondo_arena *arena, size_t keep) {
  rondo_status status = RONDO_OK;
  while (status == RONDO_OK && arena->pieces.count > 0 && arena->backed - last_piece(arena)->bytes >= keep)
    status = remove_piece(arena);
  set_backed(arena, arena->backed);
  rondo_arena_check(arena);
  return status;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static rondo_status reserve(rondo_arena *arena, size_t wanted) {
  rondo_device_memory *memory = arena->memory;
  size_t whole;
  if (!rondo_checked_align(wanted, memory->page_bytes, &whole)) return fail_reserve(arena, wanted);
  char *base;
  RONDO_TRY(rondo_graph_addresses_reserve(memory->device, wanted == 0 ? memory->page_bytes : whole,
                                          wanted == 0 ? rondo_graph_addresses_wanted(memory) : whole, &base,
                                          &arena->reserved));
  arena->allocation.address = base;
  pthread_mutex_lock(&memory->lock);
  arena->index_node = rondo_memory_note_own(memory, base, arena->reserved);
  RONDO_LIST_INSERT(memory->arenas, arena, next, link);
  pthread_mutex_unlock(&memory->lock);
  rondo_device_begin_use(memory->device, &rondo_allocation_use);
  return RONDO_OK;
}

rondo_status rondo_arena_create(rondo_device_memory *memory, const rondo_arena_options *options, rondo_arena **out) {
  const rondo_allocator *allocator = &memory->allocator;
  rondo_arena *arena;
  *out = NULL;
  RONDO_TRY(rondo_device_memory_require_nodes(memory, "an arena"));
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *arena, &arena));
  arena->memory = memory;
  arena->allocation.kind = RONDO_ALLOCATION_ARENA;
  atomic_init(&arena->references, 1);
  rondo_status status =
      rondo_allocate_text(allocator, options->name == NULL ? "" : options->name, &arena->allocation.name);
  if (status == RONDO_OK) {
    status = reserve(arena, options->reserve);
    if (status != RONDO_OK) rondo_release_text(allocator, arena->allocation.name);
  }
  if (status != RONDO_OK) {
    rondo_release(allocator, arena, 1, sizeof *arena);
    return status;
  }
  *out = arena;
  return RONDO_OK;
}

/* Stops counting memory that could not be unmapped. The device keeps it as long as it is mapped. */
static void abandon(rondo_arena *arena) {
  rondo_device_memory *memory = arena->memory;
  char label[RONDO_ARENA_LABEL];
  rondo_log(RONDO_LOG_ERROR, "memory", "unmapping %s failed: %s", rondo_arena_label(label, arena),
            rondo_last_error()->message);
  while (arena->pieces.count > 0) {
    const rondo_arena_piece *last = last_piece(arena);
    rondo_graph_pages_abandon(memory, last->physical, last->bytes);
    rondo_level_subtract(&memory->arena_backed, last->bytes);
    arena->pieces.count--;
  }
}

static void release(rondo_arena *arena) {
  if (atomic_fetch_sub_explicit(&arena->references, 1, memory_order_acq_rel) > 1) return;
  rondo_device_memory *memory = arena->memory;
  const bool unmapped = rondo_arena_trim(arena, 0) == RONDO_OK;
  if (!unmapped) abandon(arena);
  set_backed(arena, 0);
  assert(arena->spaces == NULL);
  pthread_mutex_lock(&memory->lock);
  RONDO_LIST_REMOVE(arena, next, link);
  pthread_mutex_unlock(&memory->lock);
  rondo_graph_addresses_give_back(memory, rondo_arena_base(arena), arena->reserved, arena->index_node, unmapped);
  rondo_device_end_use(memory->device, &rondo_allocation_use);
  rondo_array_free(&memory->allocator, &arena->pieces);
  rondo_array_free(&memory->allocator, &arena->taken);
  rondo_release_text(&memory->allocator, arena->allocation.name);
  rondo_release(&memory->allocator, arena, 1, sizeof *arena);
}

void rondo_arena_destroy(rondo_arena *arena) {
  if (arena == NULL) return;
  rondo_retired_sweep(arena->memory, false);
  release(arena);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

void rondo_arena_enter(rondo_arena *arena, rondo_address_space *space) {
  rondo_device_memory *memory = arena->memory;
  atomic_fetch_add_explicit(&arena->references, 1, memory_order_relaxed);
  space->arena = arena;
  space->first.base = rondo_arena_base(arena);
  space->first.bytes = arena->reserved;
  space->starts = &space->own;
  pthread_mutex_lock(&memory->lock);
  RONDO_LIST_INSERT(arena->spaces, space, next_in_arena, link_in_arena);
  arena->space_count++;
  pthread_mutex_unlock(&memory->lock);
}

void rondo_arena_leave(rondo_address_space *space) {
  rondo_arena *arena = space->arena;
  rondo_device_memory *memory = arena->memory;
  pthread_mutex_lock(&memory->lock);
  RONDO_LIST_REMOVE(space, next_in_arena, link_in_arena);
  arena->space_count--;
  pthread_mutex_unlock(&memory->lock);
  rondo_allocation_starts_deinit(&memory->allocator, &space->own);
  release(arena);
}

void rondo_arena_get_info(const rondo_arena *arena, rondo_arena_info *out) {
  rondo_device_memory *memory = arena->memory;
  rondo_retired_sweep(memory, false);
  *out = (rondo_arena_info){.base = rondo_arena_base(arena), .reserved = arena->reserved, .backed = arena->backed};
  pthread_mutex_lock(&memory->lock);
  out->recordings = arena->space_count;
  for (const rondo_address_space *space = arena->spaces; space != NULL; space = space->next_in_arena)
    if (space->top > out->high) out->high = space->top;
  pthread_mutex_unlock(&memory->lock);
}
