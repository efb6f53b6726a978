/* SPDX-License-Identifier: MIT
 * Address spaces: who holds them, and the lives of their allocations.
 */
#include "memory/address_space.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Holding --------------------------------------------------------------------------------------------------------- */

rondo_status rondo_address_space_create(rondo_device_memory *memory, rondo_address_space **out) {
  *out = NULL;
  void *state;
  RONDO_TRY(rondo_allocate(&memory->allocator, 1, sizeof(rondo_address_space), &state));
  rondo_address_space *space = state;
  space->memory = memory;
  atomic_init(&space->references, 1);
  *out = space;
  return RONDO_OK;
}

void rondo_address_space_configure(rondo_address_space *space, const rondo_graph *graph, rondo_profile *profile,
                                   bool relocate) {
  space->relocate = relocate;
  if (profile == NULL || space->memory->device->ops->guard != NULL) return;
  space->planned = (rondo_planned_addresses){.profile = profile, .serial = graph->serial};
  rondo_profile_retain(profile);
}

void rondo_address_space_retain(rondo_address_space *space) {
  atomic_fetch_add_explicit(&space->references, 1, memory_order_relaxed);
}

void rondo_address_space_release(rondo_address_space *space) {
  if (atomic_fetch_sub_explicit(&space->references, 1, memory_order_acq_rel) > 1) return;
  rondo_device_memory *memory = space->memory;
  pthread_mutex_lock(&memory->lock);
  space->next_retired = memory->retired;
  memory->retired = space;
  pthread_mutex_unlock(&memory->lock);
}

static void retain_for_clone(void *object) {
  rondo_address_space *space = object;
  atomic_fetch_add_explicit(&space->clones, 1, memory_order_relaxed);
  rondo_address_space_retain(space);
}
void rondo_address_space_forget_clone(rondo_address_space *space) {
  atomic_fetch_sub_explicit(&space->clones, 1, memory_order_relaxed);
}

static void release_for_graph(void *object) { rondo_address_space_release(object); }

rondo_graph_attachment rondo_address_space_attachment(rondo_address_space *space) {
  return (rondo_graph_attachment){.object = space, .retain = retain_for_clone, .release = release_for_graph};
}

rondo_address_space *rondo_address_space_of(const rondo_graph *graph) { return graph->memory.object; }

/* Records --------------------------------------------------------------------------------------------------------- */

const char *rondo_allocation_label(char buffer[RONDO_ALLOCATION_LABEL], const rondo_allocation *allocation) {
  char size[RONDO_SIZE_TEXT];
  snprintf(buffer, RONDO_ALLOCATION_LABEL, "'%.64s' (%s)", allocation->name == NULL ? "" : allocation->name,
           rondo_size_text(size, allocation->bytes));
  return buffer;
}

/* Where an address stands among the space's records, or would. */
static size_t position_of(const rondo_address_space *space, const char *address) {
  size_t low = 0, high = space->allocations.count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (space->allocations.items[middle]->base.address < address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static rondo_graph_allocation *as_graph(rondo_allocation *at) {
  return at != NULL && at->kind == RONDO_ALLOCATION_GRAPH ? (rondo_graph_allocation *)at : NULL;
}

rondo_graph_allocation *rondo_graph_allocation_find(const rondo_address_space *space, const rondo_alloc_node *node) {
  rondo_allocation *at = rondo_allocation_table_find(&space->memory->table, node->address);
  for (; at != NULL; at = rondo_allocation_table_next(at)) {
    rondo_graph_allocation *graph = as_graph(at);
    if (graph != NULL && graph->space == space && at->bytes == node->bytes &&
        strcmp(at->name, node->name == NULL ? "" : node->name) == 0)
      return graph;
  }
  return NULL;
}

static rondo_status make_record(rondo_address_space *space, const rondo_alloc_node *node,
                                rondo_graph_allocation **out) {
  const rondo_allocator *allocator = &space->memory->allocator;
  RONDO_TRY(rondo_array_reserve(allocator, &space->allocations, space->allocations.count + 1));
  void *state;
  RONDO_TRY(rondo_allocate(allocator, 1, sizeof(rondo_graph_allocation), &state));
  rondo_graph_allocation *record = state;
  record->base = (rondo_allocation){.address = node->address, .bytes = node->bytes, .kind = RONDO_ALLOCATION_GRAPH};
  record->space = space;
  record->free_slot = RONDO_NO_NODE;
  const rondo_status status = rondo_allocate_text(allocator, node->name, &record->base.name);
  if (status != RONDO_OK) {
    rondo_release(allocator, record, 1, sizeof *record);
    return status;
  }
  const size_t position = position_of(space, record->base.address);
  rondo_graph_allocation **at = space->allocations.items + position;
  memmove(at + 1, at, (space->allocations.count - position) * sizeof *at);
  *at = record;
  space->allocations.count++;
  rondo_allocation_table_insert(allocator, &space->memory->table, &record->base);
  *out = record;
  return RONDO_OK;
}

rondo_status rondo_graph_allocation_of(rondo_address_space *space, const rondo_alloc_node *node,
                                       rondo_graph_allocation **out) {
  *out = rondo_graph_allocation_find(space, node);
  if (*out == NULL) RONDO_TRY(make_record(space, node, out));
  (*out)->references++;
  (*out)->peers |= node->peers;
  return RONDO_OK;
}

void rondo_graph_allocation_destroy(rondo_graph_allocation *record) {
  const rondo_allocator *allocator = &record->space->memory->allocator;
  if (record->freed_event != NULL) record->freed_event->ops->destroy(record->freed_event);
  rondo_release_text(allocator, record->base.name);
  rondo_release(allocator, record, 1, sizeof *record);
}

/* A clone may hold a node that this record stands for, which is not counted: so records of spaces with clones stay. The
 * bytes of a free that may not have been reached stay taken too. */
static bool is_forgettable(const rondo_graph_allocation *record) {
  return record->references == 0 && atomic_load_explicit(&record->space->clones, memory_order_relaxed) == 0 &&
         atomic_load_explicit(&record->life, memory_order_relaxed) != RONDO_LIFE_LIVE && record->freed_event == NULL;
}

void rondo_graph_allocation_release(rondo_graph_allocation *record) {
  assert(record->references > 0);
  record->references--;
  if (!is_forgettable(record)) return;
  rondo_address_space *space = record->space;
  size_t position = position_of(space, record->base.address);
  while (space->allocations.items[position] != record) position++;
  rondo_graph_allocation **at = space->allocations.items + position;
  space->allocations.count--;
  memmove(at, at + 1, (space->allocations.count - position) * sizeof *at);
  rondo_allocation_table_remove(&space->memory->table, &record->base);
  rondo_graph_allocation_destroy(record);
}

rondo_graph_allocation *rondo_graph_allocation_at(const rondo_device_memory *memory, const void *address) {
  rondo_graph_allocation *latest = NULL;
  rondo_allocation *at = rondo_allocation_table_find(&memory->table, address);
  for (; at != NULL; at = rondo_allocation_table_next(at)) {
    rondo_graph_allocation *record = as_graph(at);
    if (record == NULL) continue;
    if (atomic_load_explicit(&record->life, memory_order_acquire) == RONDO_LIFE_LIVE) return record;
    if (latest == NULL) latest = record;
  }
  return latest;
}

/* Lives ----------------------------------------------------------------------------------------------------------- */

static bool change_life(rondo_graph_allocation *allocation, rondo_life from, rondo_life to) {
  uint32_t expected = (uint32_t)from;
  return atomic_compare_exchange_strong_explicit(&allocation->life, &expected, (uint32_t)to, memory_order_acq_rel,
                                                 memory_order_relaxed);
}

static void count_life(rondo_graph_allocation *allocation) {
  rondo_address_space *space = allocation->space;
  rondo_address_space_retain(space);
  atomic_fetch_add_explicit(&space->live, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&space->memory->device->allocations, 1, memory_order_relaxed);
}

static void uncount_life(rondo_address_space *space) {
  atomic_fetch_sub_explicit(&space->memory->device->allocations, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&space->live, 1, memory_order_relaxed);
  rondo_address_space_release(space);
}

bool rondo_graph_allocation_begin(rondo_graph_allocation *allocation, rondo_life from) {
  if (!change_life(allocation, from, RONDO_LIFE_LIVE)) return false;
  count_life(allocation);
  return true;
}

void rondo_graph_allocation_cancel(rondo_graph_allocation *allocation, rondo_life before) {
  atomic_store_explicit(&allocation->life, (uint32_t)before, memory_order_release);
  uncount_life(allocation->space);
}

bool rondo_graph_allocation_claim(rondo_graph_allocation *allocation) {
  return change_life(allocation, RONDO_LIFE_LIVE, RONDO_LIFE_FREED);
}

void rondo_graph_allocation_unclaim(rondo_graph_allocation *allocation) {
  atomic_store_explicit(&allocation->life, (uint32_t)RONDO_LIFE_LIVE, memory_order_release);
}

void rondo_graph_allocation_finish(rondo_graph_allocation *allocation, rondo_queue *queue) {
  atomic_store_explicit(&allocation->freed_queue, queue, memory_order_release);
  uncount_life(allocation->space);
}

rondo_status rondo_graph_allocation_prepare_free(rondo_graph_allocation *allocation) {
  rondo_device_memory *memory = allocation->space->memory;
  pthread_mutex_lock(&memory->lock);
  const bool there = allocation->freed_event != NULL;
  pthread_mutex_unlock(&memory->lock);
  if (there) return RONDO_OK;
  rondo_device_event *event;
  RONDO_TRY(memory->device->ops->event_create(memory->device, false, &event));
  pthread_mutex_lock(&memory->lock);
  const bool first = allocation->freed_event == NULL;
  if (first) allocation->freed_event = event;
  pthread_mutex_unlock(&memory->lock);
  if (!first) event->ops->destroy(event);
  return RONDO_OK;
}

/* The life is claimed. What a guarded device does with the end of a life stands before the event: a launch that begins
 * the next one waits for that. */
static rondo_status free_in_order(rondo_graph_allocation *allocation, rondo_queue *queue) {
  rondo_device *device = allocation->space->memory->device;
  const rondo_guard_ops *guard = device->ops->guard;
  rondo_status status = queue == NULL ? RONDO_OK : rondo_graph_allocation_prepare_free(allocation);
  if (status == RONDO_OK && guard != NULL) guard->release(device, queue, allocation->base.address);
  if (status == RONDO_OK && queue != NULL) status = queue->ops->record(queue, allocation->freed_event);
  if (status != RONDO_OK) rondo_graph_allocation_unclaim(allocation);
  return status;
}

rondo_status rondo_graph_allocation_free(rondo_graph_allocation *allocation, rondo_queue *queue) {
  rondo_device_memory *memory = allocation->space->memory;
  char label[RONDO_ALLOCATION_LABEL];
  rondo_status status = RONDO_OK;
  const bool claimed = rondo_graph_allocation_claim(allocation);
  if (!claimed)
    status = rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE,
                        "graph allocation %s is being freed by another thread too",
                        rondo_allocation_label(label, &allocation->base));
  else
    status = free_in_order(allocation, queue);
  rondo_address_space *space = allocation->space;
  pthread_mutex_lock(&memory->lock);
  if (status == RONDO_OK) {
    rondo_allocation_table_note_freed(&memory->table, &allocation->base);
    atomic_store_explicit(&allocation->freed_queue, queue, memory_order_release);
  }
  rondo_graph_allocation_release(allocation);
  pthread_mutex_unlock(&memory->lock);
  if (status == RONDO_OK) uncount_life(space);
  return status;
}
