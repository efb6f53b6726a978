/* SPDX-License-Identifier: MIT
 * Binding spaces to heaps: choosing chunks for a space, growing and splitting heaps to fit, and entering gates.
 */
#include "memory/heap/graph_heap_internal.h"

#include <assert.h>

#include "base/error.h"
#include "base/linked_list.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/memory_check.h"

/* Pieces ---------------------------------------------------------------------------------------------------------- */

/* Bytes that the heap must back: a section between private pages. Chunks may extend past it, up to `capacity` bytes. */
typedef struct piece {
  size_t offset, bytes, capacity;
} piece;

/* The next piece from *offset on; false after the last. *index counts the private pages so far. A piece is in one range
 * of addresses. */
static bool next_piece(const rondo_address_space *space, size_t *offset, size_t *index, piece *out) {
  while (*index < space->privates.count && space->privates.items[*index].offset == *offset)
    *offset += space->privates.items[(*index)++].bytes;
  if (*offset >= space->need) return false;
  const rondo_address_range *range = rondo_address_range_of(space, *offset);
  size_t limit = range->offset + range->bytes, end = range->offset + rondo_address_range_bytes(range);
  if (*index < space->privates.count && space->privates.items[*index].offset < limit)
    limit = space->privates.items[*index].offset;
  if (limit < end) end = limit;
  if (space->need < end) end = space->need;
  *out = (piece){.offset = *offset, .bytes = end - *offset, .capacity = limit - *offset};
  *offset = end;
  return true;
}

/* Growing --------------------------------------------------------------------------------------------------------- */

/* Whether a chunk suits a piece of `bytes`: it fits into the capacity, and at most half of it is unused. */
static bool suits(const rondo_heap_chunk *chunk, size_t bytes, size_t capacity) {
  return chunk->bytes <= bytes || (chunk->bytes <= capacity && chunk->bytes / 2 <= bytes);
}

/* Moves the last chunk of another heap, whose gate is entered, to the end of `heap`; false if it does not suit or is in
 * use. */
static bool take_last_chunk(rondo_heap *heap, rondo_heap *idle, size_t bytes, size_t capacity) {
  const size_t count = idle->chunks.count;
  if (count == 0 || !suits(&idle->chunks.items[count - 1], bytes, capacity)) return false;
  if (!rondo_heap_is_dispensable(idle, false) || rondo_heap_unmap_all(idle) != RONDO_OK) return false;
  idle->lost = true;
  heap->chunks.items[heap->chunks.count++] = idle->chunks.items[--idle->chunks.count];
  return true;
}

/* Takes a chunk from an idle heap of another stream: graphs that run one after another share memory across streams. A
 * heap that lost a chunk takes none, so that two streams do not take it from each other forever. */
static bool take_idle_chunk(rondo_heap *heap, size_t bytes, size_t capacity) {
  bool taken = false;
  if (heap->lost) return false;
  rondo_heap *other = rondo_heap_first(heap->memory);
  rondo_saved_error before;
  rondo_error_save(&before);
  for (; other != NULL && !taken; other = other->next) {
    if (other == heap || rondo_heap_use_of(other) == RONDO_HEAP_PRIVATE) continue;
    if (!rondo_heap_try_enter(other)) continue; /* waiting is allowed only by ascending id */
    taken = take_last_chunk(heap, other, bytes, capacity);
    rondo_heap_leave(other);
  }
  rondo_error_restore(&before);
  return taken;
}

/* Adds a chunk for `bytes` bytes that the heap lacks. */
static rondo_status grow(rondo_heap *heap, size_t bytes, size_t capacity) {
  RONDO_TRY(rondo_array_reserve(&heap->memory->allocator, &heap->chunks, heap->chunks.count + 1));
  atomic_fetch_add_explicit(&heap->memory->heap_growth, 1, memory_order_relaxed);
  return take_idle_chunk(heap, bytes, capacity) ? RONDO_OK : rondo_heap_insert_chunk(heap, heap->chunks.count, bytes);
}

/* Replaces a chunk by two, the first of `bytes`. Waits until the heap is idle. */
static rondo_status split_chunk(rondo_heap *heap, size_t index, size_t bytes) {
  const size_t rest = heap->chunks.items[index].bytes - bytes;
  assert(bytes > 0 && rest > 0 && rest < heap->chunks.items[index].bytes);
  RONDO_TRY(rondo_heap_wait_idle(heap));
  RONDO_TRY(rondo_heap_unmap_all(heap));
  rondo_heap_remove_chunk(heap, index);
  RONDO_TRY(rondo_heap_insert_chunk(heap, index, bytes));
  return rondo_heap_insert_chunk(heap, index + 1, rest);
}

/* Splits chunks from *index on so that they end with the piece, and grows the heap when there are too few. */
static rondo_status cut_chunks(rondo_heap *heap, const piece *at, size_t *index) {
  size_t left = at->bytes, capacity = at->capacity;
  while (left > 0) {
    if (*index == heap->chunks.count) RONDO_TRY(grow(heap, left, capacity));
    const size_t bytes = heap->chunks.items[*index].bytes;
    if (bytes > capacity) {
      RONDO_TRY(split_chunk(heap, *index, left));
      continue;
    }
    left -= bytes < left ? bytes : left;
    capacity -= bytes;
    (*index)++;
  }
  return RONDO_OK;
}

static rondo_status map_piece(rondo_address_space *space, const piece *at, size_t *index) {
  size_t offset = at->offset, left = at->bytes;
  while (left > 0) {
    const size_t bytes = space->heap->chunks.items[*index].bytes;
    RONDO_TRY(rondo_heap_map_chunk(space, offset, (uint32_t)(*index)++));
    left -= bytes < left ? bytes : left;
    offset += bytes;
  }
  return RONDO_OK;
}

/* Binding --------------------------------------------------------------------------------------------------------- */

/* Finds the bytes of `range` that have no private pages, and with `add` adds pages for them, separately for each range
 * of addresses. Sets *out_missing if there were any. */
static rondo_status cover_private(rondo_address_space *space, rondo_offset_range range, bool add, bool *out_missing) {
  size_t at = range.begin;
  for (size_t i = 0; at < range.end; i++) {
    const bool past = i == space->privates.count;
    const size_t begin = past ? range.end : space->privates.items[i].offset;
    const size_t end = past ? range.end : begin + space->privates.items[i].bytes;
    if (end <= at && !past) continue;
    size_t gap_end = begin < range.end ? begin : range.end;
    if (gap_end > at) {
      const rondo_address_range *addresses = rondo_address_range_of(space, at);
      const size_t last = addresses->offset + rondo_address_range_bytes(addresses);
      if (last < gap_end) gap_end = last;
      *out_missing = true;
      if (!add) return RONDO_OK;
      RONDO_TRY(rondo_heap_add_private(space, i, at, gap_end - at));
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

/* Whether two spaces share a chunk. The chunks of a space ascend. */
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

/* The bytes of the space that the heap must back. */
static size_t shared_bytes(const rondo_address_space *space) {
  size_t bytes = 0, offset = 0, index = 0;
  piece at;
  while (next_piece(space, &offset, &index, &at)) bytes += at.bytes;
  return bytes;
}

/* Whether the chunks from `first` up to those of the exec's other spaces have `bytes`; if not, *out_next is the chunk
 * to try next. */
static bool run_fits(const rondo_heap *heap, const rondo_space_need *needs, size_t count,
                     const rondo_address_space *space, size_t first, size_t bytes, size_t *out_next) {
  size_t limit = SIZE_MAX;
  for (size_t i = 0; i < count; i++) {
    const rondo_address_space *other = needs[i].space;
    if (other == space || other->mappings.count == 0) continue;
    const size_t begin = other->mappings.items[0].chunk;
    const size_t end = other->mappings.items[other->mappings.count - 1].chunk + (size_t)1;
    if (end <= first || begin >= limit) continue;
    limit = begin;
    *out_next = end;
  }
  if (limit == SIZE_MAX) return true;
  for (size_t i = first; i < limit && bytes > 0; i++)
    bytes -= heap->chunks.items[i].bytes < bytes ? heap->chunks.items[i].bytes : bytes;
  return bytes == 0;
}

/* The first chunk of the lowest run of chunks that the exec's other spaces do not use. */
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
    rondo_status_ignore(rondo_heap_unmap_space(space),
                        "the list keeps what stays mapped; the first failure is reported");
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
  if (space->mappings.count > 0) RONDO_TRY(rondo_heap_wait_idle(heap));
  RONDO_TRY(rondo_heap_unmap_space(space));
  if (need->bytes > space->need) space->need = need->bytes;
  RONDO_TRY(cover_privates(need, true, &missing));
  return map_space(heap, space, find_run(heap, needs, count, space));
}

/* Splitting a chunk for one space may unmap others. The loop ends, because chunks cannot be split forever. */
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

static void attach(rondo_heap *heap, rondo_address_space *space) {
  space->heap = heap;
  RONDO_LIST_INSERT(heap->bound, space, next_bound, bound_link);
}

/* The gates of both heaps are entered. */
static rondo_status move_space(rondo_address_space *space, rondo_heap *heap) {
  RONDO_TRY(rondo_heap_wait_idle(space->heap));
  RONDO_TRY(rondo_heap_unmap_space(space));
  pthread_mutex_lock(&heap->memory->lock);
  RONDO_LIST_REMOVE(space, next_bound, bound_link);
  attach(heap, space);
  pthread_mutex_unlock(&heap->memory->lock);
  return RONDO_OK;
}

/* Reads the heaps of all spaces into `seen`. Returns the heap to which they are bound. */
static rondo_heap *choose_heap(rondo_heap *target, rondo_space_need *needs, size_t count, bool move) {
  rondo_heap *chosen = move ? target : NULL;
  pthread_mutex_lock(&target->memory->lock);
  for (size_t i = 0; i < count; i++) {
    needs[i].seen = needs[i].space->heap;
    if (chosen == NULL) chosen = needs[i].seen;
  }
  pthread_mutex_unlock(&target->memory->lock);
  return chosen == NULL ? target : chosen;
}

/* Of the chosen heap and those in `seen`, the one with the lowest id that is at least `id`; NULL when there is none. */
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

/* With the gates entered: binds unbound spaces to the chosen heap; false if another thread has moved a space since its
 * heap was read. */
static bool claim_spaces(rondo_heap *chosen, rondo_space_need *needs, size_t count) {
  bool same = true;
  pthread_mutex_lock(&chosen->memory->lock);
  for (size_t i = 0; i < count; i++) same = same && needs[i].space->heap == needs[i].seen;
  for (size_t i = 0; i < count && same; i++)
    if (needs[i].space->heap == NULL) attach(chosen, needs[i].space);
  pthread_mutex_unlock(&chosen->memory->lock);
  return same;
}

/* Tries again after trimming. Other heaps have released their unused memory already; this one may still have memory of
 * earlier graphs, which it returns after their launches. */
static rondo_status satisfy_trimmed(rondo_heap *heap, rondo_space_need *needs, size_t count,
                                    const rondo_saved_error *before) {
  rondo_saved_error refusal;
  rondo_error_save(&refusal);
  if (rondo_heap_trim(heap) != RONDO_OK) return rondo_error_raise(&refusal);
  const rondo_status status = satisfy_all(heap, needs, count);
  if (status == RONDO_OK) rondo_error_restore(before);
  return status;
}

static rondo_status bind_entered(rondo_heap *chosen, rondo_space_need *needs, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (needs[i].space->heap != chosen) RONDO_TRY(move_space(needs[i].space, chosen));
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = satisfy_all(chosen, needs, count);
  if (!rondo_reclaim_helps(status) || rondo_heap_use_of(chosen) == RONDO_HEAP_PRIVATE) return status;
  return satisfy_trimmed(chosen, needs, count, &before);
}

rondo_status rondo_heap_bind(rondo_heap *target, rondo_space_need *needs, size_t count, bool move,
                             rondo_heap **out_heap) {
  rondo_retired_sweep(target->memory, false);
  for (;;) {
    rondo_heap *chosen = choose_heap(target, needs, count, move);
    enter_all(chosen, needs, count);
    if (!claim_spaces(chosen, needs, count)) {
      leave_all_but(NULL, chosen, needs, count);
      continue;
    }
    const rondo_status status = bind_entered(chosen, needs, count);
    rondo_heap_check(chosen);
    leave_all_but(status == RONDO_OK ? chosen : NULL, chosen, needs, count);
    *out_heap = chosen;
    return status;
  }
}
