/* SPDX-License-Identifier: MIT
 * The checks of this layer's data structures: sorted and disjoint ranges, sums that equal counters, lists whose links
 * agree, and members that refer to their owners.
 */
#include "memory/memory_check.h"

#ifndef NDEBUG

#include <assert.h>

#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/graph_memory/exec_memory_internal.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/heap/graph_heap_internal.h"
#include "memory/host_memory.h"

/* Pools ------------------------------------------------------------------------------------------------------------ */

/* Blocks fill the chunk; free ones are joined with their neighbours. Returns how many blocks are in no bin. */
static size_t check_chunk(const rondo_pool *pool, const rondo_chunk *chunk) {
  size_t offset = 0, used = 0, live = 0;
  const rondo_block *before = NULL;
  assert(chunk->pool == pool && chunk->blocks != NULL);
  for (const rondo_block *block = chunk->blocks; block != NULL; before = block, block = block->next) {
    assert(block->chunk == chunk && block->previous == before);
    assert(block->offset == offset && block->bytes > 0);
    assert(block->state != RONDO_BLOCK_PENDING || (block->fence != NULL && block->fence->references > 0));
    assert(block->state != RONDO_BLOCK_FREE || block->fence == NULL);
    assert(before == NULL || block->state != RONDO_BLOCK_FREE || before->state != RONDO_BLOCK_FREE);
    offset += block->bytes;
    if (block->state != RONDO_BLOCK_LIVE) continue;
    used += block->bytes;
    live++;
  }
  assert(offset == chunk->bytes);
  assert(used == chunk->used);
  return live;
}

/* Each bin is a list of smaller blocks than the next bin's. Returns how many blocks there are. */
static size_t check_bins(const rondo_bins *bins, rondo_block_state state) {
  size_t count = 0, smallest = 0;
  for (unsigned bin = 0; bin < RONDO_POOL_BINS; bin++) {
    const rondo_block *before = NULL;
    size_t largest = 0;
    for (const rondo_block *block = bins->heads[bin]; block != NULL; before = block, block = block->bin_next) {
      assert(block->state == state && block->bin_previous == before);
      assert(block->bytes > smallest);
      if (block->bytes > largest) largest = block->bytes;
      count++;
    }
    const bool is_filled = (bins->filled[bin / 64] >> bin % 64 & 1) != 0;
    assert(is_filled == (bins->heads[bin] != NULL));
    if (largest > 0) smallest = largest;
  }
  return count;
}

/* Pending blocks of one slot, by the numbers of their frees; the same ones are in the bins. */
static size_t check_pending(const rondo_pending_list *list, uint32_t slot) {
  size_t count = 0;
  const rondo_block *before = NULL;
  for (const rondo_block *block = list->oldest; block != NULL; before = block, block = block->age_next) {
    assert(block->age_previous == before);
    assert(block->fence->slot == slot);
    assert(before == NULL || before->fence->number <= block->fence->number);
    count++;
  }
  assert(list->newest == before);
  assert(check_bins(&list->bins, RONDO_BLOCK_PENDING) == count);
  return count;
}

static size_t count_blocks(const rondo_chunk *chunk) {
  size_t count = 0;
  for (const rondo_block *block = chunk->blocks; block != NULL; block = block->next) count++;
  return count;
}

void rondo_pool_check(const rondo_pool *pool) {
  size_t blocks = 0, live = 0, binned = check_bins(&pool->free, RONDO_BLOCK_FREE);
  uint64_t used = 0, reserved = 0;
  rondo_chunk *const *link = &pool->chunks;
  for (const rondo_chunk *chunk = *link; chunk != NULL; link = &chunk->next, chunk = *link) {
    assert(chunk->link == link);
    assert(!chunk->dedicated || pool->kind == RONDO_ALLOCATION_IMMEDIATE);
    live += check_chunk(pool, chunk);
    blocks += count_blocks(chunk);
    used += chunk->used;
    reserved += chunk->bytes;
  }
  for (uint32_t slot = 0; slot < pool->by_slot.count; slot++) binned += check_pending(&pool->by_slot.items[slot], slot);
  assert(blocks == live + binned);
  assert(pool->figures.live_allocations == live);
  assert(pool->figures.used == used && used <= pool->figures.used_high);
  assert(pool->figures.reserved == reserved && reserved <= pool->figures.reserved_high);
  assert(pool->spare == NULL || (pool->spare->pool == pool && pool->spare->used == 0));
}

/* Tables ----------------------------------------------------------------------------------------------------------- */

static void check_starts(const rondo_allocation_starts *starts) {
  size_t count = 0;
  assert((starts->bucket_count & (starts->bucket_count - 1)) == 0);
  for (size_t i = 0; i < starts->bucket_count; i++) {
    rondo_allocation *const *link = &starts->buckets[i];
    for (; *link != NULL; link = &(*link)->next, count++) assert((*link)->link == link);
  }
  assert(starts->count == count);
}

void rondo_allocation_table_check(const rondo_allocation_table *table) {
  size_t listed = 0;
  check_starts(&table->starts);
  assert(rondo_range_index_check(&table->index) == table->starts.count);
  for (size_t i = 0; i < RONDO_FREED_RING; i++) {
    const rondo_freed *freed = &table->freed[i];
    assert(freed->number <= table->freed_count);
    assert((freed->address == NULL) == (freed->number == 0));
    assert(freed->gone || !freed->is_listed);
    listed += freed->is_listed;
  }
  assert(rondo_range_index_check(&table->gone) == listed);
}

/* Devices ---------------------------------------------------------------------------------------------------------- */

static void check_pools(const rondo_device_memory *memory) {
  uint64_t used = 0, reserved = 0;
  uint32_t destroyed = 0;
  bool has_current = false;
  rondo_pool_check(&memory->immediate);
  for (const rondo_pool *pool = &memory->default_pool; pool != NULL; pool = pool->next) {
    rondo_pool_check(pool);
    assert(pool->total == &memory->stream_ordered);
    used += pool->figures.used;
    reserved += pool->figures.reserved;
    destroyed += pool->destroyed;
    has_current = has_current || (pool == memory->current && !pool->destroyed);
  }
  assert(has_current);
  assert(memory->destroyed_pools == destroyed);
  assert(memory->stream_ordered.used == used && memory->stream_ordered.reserved == reserved);
}

static void check_orders(const rondo_order_table *orders) {
  for (size_t i = 0; i < orders->count; i++) assert(orders->items[i].waited <= orders->items[i].freed);
  assert(orders->count == 0 || orders->items[0].freed == 0);
}

static void check_host(const rondo_device_memory *memory) {
  const rondo_withheld *withheld = &memory->withheld;
  size_t bytes = 0, count = 0;
  const rondo_allocation *last = NULL;
  for (const rondo_allocation *at = withheld->first; at != NULL; last = at, at = at->next, count++) bytes += at->bytes;
  assert(withheld->bytes == bytes && withheld->count == count);
  assert(last == NULL || withheld->last == last);
  struct rondo_host_watch *const *link = &memory->watches;
  for (; *link != NULL; link = &(*link)->next) assert((*link)->link == link && (*link)->memory == memory);
}

void rondo_memory_check(const rondo_device_memory *memory) {
  rondo_allocation_table_check(&memory->table);
  rondo_allocation_table_check(&memory->host);
  (void)rondo_range_index_check(&memory->own);
  (void)rondo_range_index_check(&memory->symbols);
  check_pools(memory);
  check_orders(&memory->orders);
  check_host(memory);
  uint32_t heaps = 0;
  for (const rondo_heap *heap = memory->heaps; heap != NULL; heap = heap->next, heaps++) {
    assert(heap->memory == memory);
    assert(heap->next == NULL || heap->next->id < heap->id);
  }
  assert(memory->heap_count == heaps);
}

/* Heaps ------------------------------------------------------------------------------------------------------------ */

/* The mappings and the private pages of a space do not overlap. */
static void check_space_pages(const rondo_heap *heap, const rondo_address_space *space) {
  size_t end = 0, next_chunk = 0, next_private = 0;
  for (size_t i = 0; i < space->mappings.count; i++) {
    const rondo_mapping *at = &space->mappings.items[i];
    assert(at->offset >= end);
    assert(at->chunk >= next_chunk && at->chunk < heap->chunks.count);
    assert(heap->chunks.items[at->chunk].bytes == at->bytes && heap->chunks.items[at->chunk].mappings > 0);
    end = at->offset + at->bytes;
    next_chunk = (size_t)at->chunk + 1;
    for (; next_private < space->privates.count && space->privates.items[next_private].offset < end; next_private++)
      assert(space->privates.items[next_private].offset + space->privates.items[next_private].bytes <= at->offset);
  }
  for (size_t i = 1; i < space->privates.count; i++)
    assert(space->privates.items[i - 1].offset + space->privates.items[i - 1].bytes <= space->privates.items[i].offset);
}

void rondo_heap_check(const rondo_heap *heap) {
  size_t of_chunks = 0, of_spaces = 0;
  assert(atomic_load_explicit(&heap->gate, memory_order_relaxed) != 0);
  for (size_t i = 0; i < heap->chunks.count; i++) {
    assert(heap->chunks.items[i].physical != NULL);
    assert(heap->chunks.items[i].bytes % heap->memory->page_bytes == 0);
    of_chunks += heap->chunks.items[i].mappings;
  }
  for (const rondo_address_space *space = heap->bound; space != NULL; space = space->next_bound) {
    assert(space->heap == heap && space->arena == NULL);
    assert(!space->mapped || space->mapped_before);
    check_space_pages(heap, space);
    of_spaces += space->mappings.count;
  }
  assert(of_chunks == of_spaces);
  assert(rondo_heap_use_of(heap) != RONDO_HEAP_EMPTY || (heap->bound == NULL && heap->chunks.count == 0));
}

/* Address spaces --------------------------------------------------------------------------------------------------- */

static void check_ranges(const rondo_address_space *space) {
  for (const rondo_address_range *at = &space->first, *next; at != NULL; at = next) {
    next = rondo_address_range_next(at);
    if (next == NULL) continue;
    assert(next->offset >= at->offset && next->offset - at->offset <= at->bytes);
    assert(!rondo_address_range_has(at, next->base) && !rondo_address_range_has(next, at->base));
  }
}

static void check_record(const rondo_address_space *space, size_t position) {
  const rondo_graph_allocation *record = space->allocations.items[position];
  const size_t offset = rondo_address_space_offset(space, record->base.address);
  const rondo_address_range *range = rondo_address_range_of(space, offset);
  assert(record->space == space && record->position == position);
  assert(record->base.kind == RONDO_ALLOCATION_GRAPH);
  assert(offset - range->offset + rondo_graph_allocation_rounded(record) <= range->bytes);
  assert(!record->open || record->free_slot == RONDO_NO_NODE);
  assert((record->role == RONDO_RECORD_BLOCK) == (position < space->block_count));
  assert((record->role == RONDO_RECORD_NODES) == (position >= space->held_count));
}

/* Live allocations are sorted by address, and those that no node frees are disjoint. */
static void check_point(const rondo_address_space *space, const rondo_graph_point *point) {
  const char *end = NULL;
  assert(point->used <= space->view.points.uses);
  assert(point->used > 0 || (point->live.count == 0 && point->roots.count == 0));
  assert(point->noted <= space->view.points.noted.count || point->used == 0);
  for (size_t i = 0; i < point->live.count; i++) {
    const rondo_graph_allocation *record = point->live.items[i];
    assert(record->space == space);
    assert(i == 0 || point->live.items[i - 1]->base.address <= record->base.address);
    if (!record->open || space->relocate) continue;
    assert(record->base.address >= end);
    end = record->base.address + record->base.bytes;
  }
}

void rondo_address_space_check(const rondo_address_space *space) {
  size_t alike = 0;
  assert(space->starts == (space->arena == NULL ? &space->memory->table.starts : &space->own));
  assert(space->first.base != NULL || space->allocations.count == 0);
  assert(space->block_count <= space->held_count && space->held_count <= space->allocations.count);
  check_ranges(space);
  for (size_t i = 0; i < space->allocations.count; i++) check_record(space, i);
  for (size_t i = 0; i < space->alike.count; i++)
    for (const rondo_graph_allocation *at = space->alike.items[i]; at != NULL; at = at->next_alike) alike++;
  assert(alike == space->allocations.count - space->held_count);
  for (size_t i = 1; i < space->outside_frees.count; i++)
    assert(space->outside_frees.items[i - 1].address <= space->outside_frees.items[i].address);
  for (size_t i = 0; i < RONDO_GRAPH_POINTS; i++) check_point(space, &space->view.points.items[i]);
  assert(space->planned.profile == NULL || space->planned.next <= space->planned.profile->allocs.count);
}

/* Execs ------------------------------------------------------------------------------------------------------------ */

static uint64_t check_need(const rondo_exec_memory *exec, const rondo_space_need *need) {
  const size_t page = exec->memory->page_bytes;
  uint64_t bytes = need->bytes;
  size_t end = need->bytes;
  assert(need->bytes % page == 0);
  for (size_t i = 0; i < need->privates.count; i++) {
    const rondo_offset_range *at = &need->privates.items[i];
    assert(at->begin < at->end && at->begin % page == 0 && at->end % page == 0);
    assert(i == 0 || at[-1].begin <= at->begin);
    if (at->end <= end) continue;
    bytes += at->end - (at->begin > end ? at->begin : end);
    end = at->end;
  }
  return bytes;
}

void rondo_exec_memory_check(const rondo_exec_memory *exec) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < exec->needs.count; i++) {
    const rondo_space_need *need = &exec->needs.items[i];
    for (size_t k = 0; k < i; k++) assert(exec->needs.items[k].space != need->space);
    assert(i == 0 || need->privates.count == 0 || need[-1].privates.count > 0);
    bytes += check_need(exec, need);
  }
  assert(exec->bytes == bytes);
  for (size_t i = 0; i < exec->covered.count; i++) {
    assert(exec->covered.items[i].begin < exec->covered.items[i].end);
    assert(i == 0 || exec->covered.items[i - 1].end <= exec->covered.items[i].begin);
  }
  for (size_t i = 0; i < exec->unfreed.count; i++)
    assert(rondo_exec_memory_covers(exec, exec->unfreed.items[i].allocation->base.address));
  for (size_t i = 0; i < exec->frees.count; i++) assert(exec->frees.items[i].allocation->freed_event != NULL);
  assert(exec->unfreed.count + exec->frees.count <= exec->held.count);
  assert(exec->awaited.count == 0);
}

/* Arenas ----------------------------------------------------------------------------------------------------------- */

void rondo_arena_check(const rondo_arena *arena) {
  size_t backed = 0, end = 0;
  uint32_t spaces = 0;
  for (size_t i = 0; i < arena->pieces.count; i++) backed += arena->pieces.items[i].bytes;
  assert(arena->backed == backed && backed <= arena->reserved);
  assert(backed % arena->memory->page_bytes == 0);
  pthread_mutex_lock(&arena->memory->lock);
  assert(arena->allocation.bytes == backed);
  for (const rondo_address_space *space = arena->spaces; space != NULL; space = space->next_in_arena, spaces++) {
    assert(space->arena == arena && space->first.base == rondo_arena_base(arena));
    assert(space->top <= arena->reserved);
  }
  assert(arena->space_count == spaces);
  for (size_t i = 0; i < arena->taken.count; i++) {
    assert(arena->taken.items[i].begin >= end && arena->taken.items[i].begin < arena->taken.items[i].end);
    end = arena->taken.items[i].end;
  }
  pthread_mutex_unlock(&arena->memory->lock);
}

/* Profiles --------------------------------------------------------------------------------------------------------- */

static void check_edges(const rondo_noted_lifetimes *noted) {
  assert(noted->starts[0] == 0);
  for (uint32_t i = 0; i < noted->node_count; i++) {
    assert(noted->starts[i] <= noted->starts[i + 1]);
    for (uint32_t k = noted->starts[i]; k < noted->starts[i + 1]; k++) {
      assert(noted->successors[k] > i && noted->successors[k] < noted->node_count);
      assert(k == noted->starts[i] || noted->successors[k - 1] <= noted->successors[k]);
    }
  }
}

void rondo_noted_lifetimes_check(const rondo_noted_lifetimes *noted) {
  check_edges(noted);
  for (size_t i = 0; i < noted->lifetimes.count; i++) {
    const rondo_lifetime *at = &noted->lifetimes.items[i];
    assert(at->bytes > 0 && at->bytes % RONDO_BLOCK_ALIGNMENT == 0);
    assert(at->alloc < at->freed && at->alloc < noted->node_count);
    assert(at->freed == RONDO_PLAN_FOREVER || at->freed < noted->node_count);
  }
  for (size_t i = 0; i < noted->ends.count; i++) {
    assert(noted->ends.items[i].key != 0 && noted->ends.items[i].node < noted->node_count);
    assert(i == 0 || noted->ends.items[i - 1].key < noted->ends.items[i].key);
  }
}

static size_t check_planned(const rondo_profile *profile, const rondo_planned_alloc *items, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    assert(items[i].offset % RONDO_BLOCK_ALIGNMENT == 0);
    assert(items[i].bytes <= profile->plan.peak && items[i].offset <= profile->plan.peak - items[i].bytes);
    sum += items[i].bytes;
  }
  return sum;
}

void rondo_profile_check(const rondo_profile *profile) {
  size_t sum = check_planned(profile, profile->allocs.items, profile->allocs.count);
  sum += check_planned(profile, profile->slots.items, profile->slots.count);
  assert(atomic_load_explicit(&profile->references, memory_order_relaxed) > 0);
  assert(sum <= profile->plan.sum); /* a path's plan has the sum of all its parts */
}

#endif
