/* SPDX-License-Identifier: MIT
 * Address spaces: their references, and the lives of their allocations.
 */
#include "memory/graph_memory/address_space.h"

#include <assert.h>

#include "base/error.h"
#include "memory/graph_memory/free_nodes.h"
#include "memory/graph_memory/graph_allocation.h"

/* References ------------------------------------------------------------------------------------------------------ */

rondo_status rondo_address_space_create(rondo_device_memory *memory, rondo_address_space **out) {
  static _Atomic uint64_t serials;
  *out = NULL;
  rondo_address_space *space;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *space, &space));
  space->memory = memory;
  space->starts = &memory->table.starts;
  space->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
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
  const unsigned before = atomic_fetch_add_explicit(&space->references, 1, memory_order_relaxed);
  assert(before > 0);
  (void)before;
}

bool rondo_address_space_retain_unless_retired(rondo_address_space *space) {
  unsigned references = atomic_load_explicit(&space->references, memory_order_relaxed);
  while (references > 0) {
    if (atomic_compare_exchange_weak_explicit(&space->references, &references, references + 1, memory_order_relaxed,
                                              memory_order_relaxed))
      return true;
  }
  return false;
}

void rondo_address_space_retire(rondo_address_space *space) {
  rondo_device_memory *memory = space->memory;
  pthread_mutex_lock(&memory->lock);
  rondo_address_space_forget_outside_frees(space);
  space->next_retired = memory->retired;
  memory->retired = space;
  pthread_mutex_unlock(&memory->lock);
}

void rondo_address_space_release(rondo_address_space *space) {
  if (atomic_fetch_sub_explicit(&space->references, 1, memory_order_acq_rel) == 1) rondo_address_space_retire(space);
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
  rondo_device_begin_use(space->memory->device, &rondo_allocation_use);
}

/* The release order lets a launch that sees no live allocation also see the free for which it must wait. */
static void uncount_life(rondo_address_space *space) {
  rondo_device_end_use(space->memory->device, &rondo_allocation_use);
  atomic_fetch_sub_explicit(&space->live, 1, memory_order_release);
  rondo_address_space_release(space);
}

bool rondo_graph_allocation_begin(rondo_graph_allocation *allocation, rondo_life from) {
  if (!change_life(allocation, from, RONDO_LIFE_LIVE)) return false;
  count_life(allocation);
  return true;
}

void rondo_graph_allocation_cancel(rondo_graph_allocation *allocation, rondo_life before) {
  atomic_store_explicit(&allocation->life, (uint32_t)before, memory_order_release);
  rondo_memory_note_ended(allocation->space->memory);
  uncount_life(allocation->space);
}

bool rondo_graph_allocation_claim(rondo_graph_allocation *allocation) {
  return change_life(allocation, RONDO_LIFE_LIVE, RONDO_LIFE_ENDING);
}

void rondo_graph_allocation_unclaim(rondo_graph_allocation *allocation) {
  assert(atomic_load_explicit(&allocation->life, memory_order_relaxed) == RONDO_LIFE_ENDING);
  atomic_store_explicit(&allocation->life, (uint32_t)RONDO_LIFE_LIVE, memory_order_release);
}

void rondo_graph_allocation_set_freed_queue(rondo_graph_allocation *allocation, const rondo_queue *queue) {
  const uint64_t number = queue == NULL ? 0 : queue->number;
  atomic_uint *count = &allocation->space->ordered_frees;
  /* Counted first, so that the count is never too low. */
  if (number != 0) atomic_fetch_add_explicit(count, 1, memory_order_release);
  const uint64_t before = atomic_exchange_explicit(&allocation->freed_queue, number, memory_order_acq_rel);
  if (before != 0) atomic_fetch_sub_explicit(count, 1, memory_order_release);
}

/* Sets the queue first, so that a launch that sees the end of the life also sees the free for which it must wait. */
static void end_life(rondo_graph_allocation *allocation, rondo_queue *queue) {
  assert(rondo_graph_allocation_in_use(allocation));
  rondo_graph_allocation_set_freed_queue(allocation, queue);
  atomic_store_explicit(&allocation->life, (uint32_t)RONDO_LIFE_FREED, memory_order_release);
  rondo_memory_note_ended(allocation->space->memory);
}

void rondo_graph_allocation_finish(rondo_graph_allocation *allocation, rondo_queue *queue) {
  end_life(allocation, queue);
  uncount_life(allocation->space);
}

rondo_status rondo_graph_allocation_prepare_free(rondo_graph_allocation *allocation) {
  rondo_device_memory *memory = allocation->space->memory;
  pthread_mutex_lock(&memory->lock);
  const bool has_event = allocation->freed_event != NULL;
  pthread_mutex_unlock(&memory->lock);
  if (has_event) return RONDO_OK;
  rondo_device_event *event;
  RONDO_TRY(memory->device->ops->event_create(memory->device, false, &event));
  pthread_mutex_lock(&memory->lock);
  const bool first = allocation->freed_event == NULL;
  if (first) allocation->freed_event = event;
  pthread_mutex_unlock(&memory->lock);
  if (!first) event->ops->destroy(event);
  return RONDO_OK;
}

/* The life is claimed. A guarded device ends it before the event, because the next launch that uses the bytes waits for
 * the event. */
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
                        "another thread is freeing graph allocation %s: free it once",
                        rondo_allocation_label(label, &allocation->base));
  else
    status = free_in_order(allocation, queue);
  rondo_address_space *space = allocation->space;
  pthread_mutex_lock(&memory->lock);
  if (status == RONDO_OK) {
    rondo_allocation_table_note_freed(&memory->table, &allocation->base);
    end_life(allocation, queue);
  }
  rondo_graph_allocation_release(allocation);
  pthread_mutex_unlock(&memory->lock);
  if (status == RONDO_OK) uncount_life(space);
  return status;
}
