/* SPDX-License-Identifier: MIT
 * The graph memory of an exec: creating it, and the steps before and after a launch.
 */
#include "memory/graph_memory/exec_memory.h"

#include <assert.h>

#include "base/error.h"
#include "graph/node_name.h"
#include "memory/graph_memory/exec_memory_internal.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/memory_check.h"

rondo_status rondo_exec_memory_create(rondo_device_memory *memory, const rondo_memory_node *nodes, size_t count,
                                      bool auto_free, rondo_exec_memory **out) {
  *out = NULL;
  if (count == 0) return RONDO_OK;
  rondo_exec_memory *exec;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *exec, &exec));
  exec->memory = memory;
  exec->auto_free = auto_free;
  const rondo_status status = rondo_exec_memory_pair(exec, nodes, count);
  if (status != RONDO_OK) {
    rondo_exec_memory_destroy(exec);
    return status;
  }
  rondo_exec_memory_check(exec);
  *out = exec;
  return RONDO_OK;
}

void rondo_exec_memory_destroy(rondo_exec_memory *exec) {
  if (exec == NULL) return;
  rondo_device_memory *memory = exec->memory;
  const rondo_allocator *allocator = &memory->allocator;
  pthread_mutex_lock(&memory->lock);
  for (size_t i = 0; i < exec->held.count; i++) rondo_graph_allocation_release(exec->held.items[i]);
  pthread_mutex_unlock(&memory->lock);
  for (size_t i = 0; i < exec->needs.count; i++) rondo_array_free(allocator, &exec->needs.items[i].privates);
  for (size_t i = 0; i < exec->spaces.count; i++) rondo_address_space_release(exec->spaces.items[i]);
  rondo_array_free(allocator, &exec->needs);
  rondo_array_free(allocator, &exec->unfreed);
  for (size_t i = 0; i < exec->frees.count; i++) rondo_node_where_free(allocator, &exec->frees.items[i].where);
  rondo_array_free(allocator, &exec->frees);
  rondo_array_free(allocator, &exec->covered);
  rondo_array_free(allocator, &exec->held);
  rondo_array_free(allocator, &exec->awaited);
  rondo_array_free(allocator, &exec->spaces);
  rondo_release(allocator, exec, 1, sizeof *exec);
}

/* Takes a reference if the allocation is live. */
static bool retain_live(rondo_device_memory *memory, rondo_graph_allocation *allocation) {
  pthread_mutex_lock(&memory->lock);
  const bool live = atomic_load_explicit(&allocation->life, memory_order_acquire) == RONDO_LIFE_LIVE;
  if (live) allocation->references++;
  pthread_mutex_unlock(&memory->lock);
  return live;
}

void rondo_exec_memory_free_live(rondo_exec_memory *exec) {
  for (size_t i = 0; i < exec->unfreed.count; i++) {
    rondo_graph_allocation *at = exec->unfreed.items[i].allocation;
    if (retain_live(exec->memory, at))
      rondo_status_ignore(rondo_graph_allocation_free(at, NULL), "it fails only if another thread frees it now");
  }
}

uint64_t rondo_exec_memory_bytes(const rondo_exec_memory *exec) { return exec->bytes; }

uint64_t rondo_exec_memory_host_bytes(const rondo_exec_memory *exec) {
  return sizeof *exec + exec->needs.capacity * sizeof *exec->needs.items +
         (exec->unfreed.capacity + exec->frees.capacity) * sizeof(rondo_outside) +
         exec->covered.capacity * sizeof(rondo_covered_range) +
         (exec->held.capacity + exec->awaited.capacity + exec->spaces.capacity) * sizeof(void *);
}

/* Launching -------------------------------------------------------------------------------------------------------- */

static rondo_status bind(rondo_exec_memory *exec, rondo_heap *heap, bool move) {
  rondo_heap *bound;
  RONDO_TRY(rondo_heap_bind(heap, exec->needs.items, exec->needs.count, move, &bound));
  exec->heap = bound;
  exec->version = bound->version;
  return RONDO_OK;
}

rondo_status rondo_exec_memory_upload(rondo_exec_memory *exec, rondo_heap *heap) {
  if (exec->needs.count == 0) return RONDO_OK;
  RONDO_TRY(bind(exec, heap, true));
  for (size_t i = 0; i < exec->needs.count; i++) exec->needs.items[i].space->uploaded = true;
  rondo_heap_leave(exec->heap);
  rondo_exec_memory_check(exec);
  return RONDO_OK;
}

/* Enters the gate of the heap, with everything mapped. */
static rondo_status enter_mapped(rondo_exec_memory *exec, rondo_heap *heap) {
  if (exec->heap != NULL) {
    rondo_heap_enter(exec->heap);
    if (exec->heap->version == exec->version) return RONDO_OK;
    rondo_heap_leave(exec->heap);
  }
  return bind(exec, heap, false);
}

static rondo_life life_of(const rondo_graph_allocation *allocation) {
  return (rondo_life)atomic_load_explicit(&allocation->life, memory_order_acquire);
}

static bool covers(const rondo_exec_memory *exec, const rondo_allocation *allocation) {
  const size_t at = rondo_address_map_find(&exec->covered, allocation->address);
  return at < exec->covered.count && exec->covered.items[at].begin < allocation->address + allocation->bytes;
}

bool rondo_exec_memory_covers(const rondo_exec_memory *exec, const void *address) {
  const rondo_allocation byte = {.address = (char *)(uintptr_t)address, .bytes = 1};
  if (covers(exec, &byte)) return true;
  for (size_t i = 0; i < exec->frees.count; i++) {
    const rondo_allocation *freed = &exec->frees.items[i].allocation->base;
    if ((uintptr_t)address - (uintptr_t)freed->address < freed->bytes) return true;
  }
  return false;
}

static bool is_unfreed(const rondo_exec_memory *exec, const rondo_graph_allocation *allocation) {
  for (size_t i = 0; i < exec->unfreed.count; i++)
    if (exec->unfreed.items[i].allocation == allocation) return true;
  return false;
}

static rondo_status fail_allocated(const rondo_graph_allocation *allocation, const char *what) {
  char label[RONDO_ALLOCATION_LABEL];
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED,
                    "allocation %s of %s is still allocated: free it first, outside or by launching a graph that does, "
                    "or instantiate with auto_free_on_launch",
                    rondo_allocation_label(label, &allocation->base), what);
}

/* Refuses to launch if another exec of the graph left an allocation whose bytes this exec uses. Called only if execs of
 * the graph leave different allocations. */
static rondo_status check_other_execs(rondo_exec_memory *exec, const rondo_address_space *space) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&exec->memory->lock);
  for (size_t i = 0; i < space->allocations.count && status == RONDO_OK; i++) {
    const rondo_graph_allocation *at = space->allocations.items[i];
    if (rondo_graph_allocation_in_use(at) && !is_unfreed(exec, at) && covers(exec, &at->base))
      status = fail_allocated(at, "another exec or clone of the graph");
  }
  pthread_mutex_unlock(&exec->memory->lock);
  return status;
}

static rondo_status check_spaces(rondo_exec_memory *exec) {
  for (size_t i = 0; i < exec->needs.count; i++) {
    const rondo_address_space *space = exec->needs.items[i].space;
    unsigned live = atomic_load_explicit(&space->live, memory_order_acquire);
    for (size_t k = 0; k < exec->unfreed.count && live > 0; k++) {
      const rondo_graph_allocation *own = exec->unfreed.items[k].allocation;
      if (own->space == space && life_of(own) == RONDO_LIFE_LIVE) live--;
    }
    if (live > 0) RONDO_TRY(check_other_execs(exec, space));
  }
  return RONDO_OK;
}

static rondo_status fail_ending(const rondo_graph_allocation *allocation) {
  char label[RONDO_ALLOCATION_LABEL];
  return rondo_fail(RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED,
                    "allocation %s of the last launch is being freed by another thread: let that call return first",
                    rondo_allocation_label(label, &allocation->base));
}

static rondo_status fail_free(const rondo_outside *at, rondo_life life) {
  char label[RONDO_ALLOCATION_LABEL], node[RONDO_LABEL_BYTES];
  const bool never = life == RONDO_LIFE_NEVER;
  return rondo_fail_node(RONDO_INVALID_LIFETIME, never ? RONDO_REASON_NOT_ALLOCATED : RONDO_REASON_DOUBLE_FREE,
                         at->where.number, "%s frees allocation %s, which %s",
                         rondo_kind_label(node, RONDO_NODE_FREE, NULL, &at->where),
                         rondo_allocation_label(label, &at->allocation->base),
                         never ? "is not allocated: launch the graph that allocates it first"
                               : "was freed already: launch the graph that allocates it again first");
}

/* Undoes the changes of the first `begun` unfreed and the first `claimed` freed allocations. */
static void undo_lives(rondo_exec_memory *exec, size_t begun, size_t claimed) {
  assert(begun <= exec->unfreed.count && claimed <= exec->frees.count);
  for (size_t i = 0; i < claimed; i++) rondo_graph_allocation_unclaim(exec->frees.items[i].allocation);
  for (size_t i = 0; i < begun; i++) {
    const rondo_outside *at = &exec->unfreed.items[i];
    if (at->before != RONDO_LIFE_LIVE) rondo_graph_allocation_cancel(at->allocation, at->before);
  }
}

/* A live allocation stays live if the launch frees it first (GM-10). */
static rondo_status begin_life(const rondo_exec_memory *exec, rondo_outside *at) {
  at->before = life_of(at->allocation);
  if (at->before == RONDO_LIFE_ENDING) return fail_ending(at->allocation);
  const bool fine =
      at->before == RONDO_LIFE_LIVE ? exec->auto_free : rondo_graph_allocation_begin(at->allocation, at->before);
  return fine ? RONDO_OK : fail_allocated(at->allocation, "the last launch");
}

static rondo_status change_lives(rondo_exec_memory *exec) {
  size_t begun = 0, claimed = 0;
  rondo_status status = RONDO_OK;
  for (; begun < exec->unfreed.count; begun++) {
    status = begin_life(exec, &exec->unfreed.items[begun]);
    if (status != RONDO_OK) break;
  }
  for (; status == RONDO_OK && claimed < exec->frees.count; claimed++) {
    rondo_outside *at = &exec->frees.items[claimed];
    at->before = life_of(at->allocation);
    if (rondo_graph_allocation_claim(at->allocation)) continue;
    status = fail_free(at, at->before);
    break;
  }
  if (status != RONDO_OK) undo_lives(exec, begun, claimed);
  return status;
}

/* Whether an allocation that another exec left in the space was freed in stream order. */
static bool must_await_frees(const rondo_exec_memory *exec, const rondo_address_space *space) {
  unsigned freed = atomic_load_explicit(&space->ordered_frees, memory_order_acquire);
  for (size_t i = 0; i < exec->unfreed.count && freed > 0; i++) {
    const rondo_graph_allocation *own = exec->unfreed.items[i].allocation;
    if (own->space == space && atomic_load_explicit(&own->freed_queue, memory_order_acquire) != 0) freed--;
  }
  return freed > 0;
}

/* Lists those whose bytes the exec uses, with references. */
static rondo_status list_awaited(rondo_exec_memory *exec, const rondo_address_space *space) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&exec->memory->lock);
  for (size_t i = 0; i < space->allocations.count && status == RONDO_OK; i++) {
    rondo_graph_allocation *at = space->allocations.items[i];
    if (atomic_load_explicit(&at->freed_queue, memory_order_acquire) == 0 || !covers(exec, &at->base)) continue;
    status = rondo_array_push(&exec->memory->allocator, &exec->awaited, &at);
    if (status == RONDO_OK) at->references++;
  }
  pthread_mutex_unlock(&exec->memory->lock);
  return status;
}

/* Work after the launch also comes after the frees for which the launch waited, so it need not wait again. */
static void release_awaited(rondo_exec_memory *exec, bool launched) {
  if (exec->awaited.count == 0) return;
  for (size_t i = 0; i < exec->awaited.count && launched; i++)
    rondo_graph_allocation_set_freed_queue(exec->awaited.items[i], NULL);
  pthread_mutex_lock(&exec->memory->lock);
  for (size_t i = 0; i < exec->awaited.count; i++) rondo_graph_allocation_release(exec->awaited.items[i]);
  pthread_mutex_unlock(&exec->memory->lock);
  exec->awaited.count = 0;
}

/* Waits for stream-ordered frees of allocations that other execs of the graph left: their bytes may still be read. */
static rondo_status wait_for_frees(rondo_exec_memory *exec, rondo_queue *queue) {
  for (size_t i = 0; i < exec->needs.count; i++) {
    const rondo_address_space *space = exec->needs.items[i].space;
    if (must_await_frees(exec, space)) RONDO_TRY(list_awaited(exec, space));
  }
  for (size_t i = 0; i < exec->awaited.count; i++) {
    const rondo_graph_allocation *at = exec->awaited.items[i];
    const uint64_t freed = atomic_load_explicit(&at->freed_queue, memory_order_acquire);
    if (freed != queue->number) RONDO_TRY(queue->ops->wait(queue, at->freed_event));
  }
  return RONDO_OK;
}

/* Waits for earlier launches on the heap, and for stream-ordered frees of the bytes that the launch allocates. */
static rondo_status wait_for_earlier(rondo_exec_memory *exec, rondo_queue *queue) {
  if (exec->needs.count == 0) return RONDO_OK;
  rondo_heap *heap = exec->heap;
  if (heap->last_queue != 0 && heap->last_queue != queue->number) RONDO_TRY(queue->ops->wait(queue, heap->last));
  for (size_t i = 0; i < exec->unfreed.count; i++) {
    rondo_graph_allocation *at = exec->unfreed.items[i].allocation;
    const uint64_t freed = atomic_load_explicit(&at->freed_queue, memory_order_acquire);
    if (freed != 0 && freed != queue->number) RONDO_TRY(queue->ops->wait(queue, at->freed_event));
  }
  return wait_for_frees(exec, queue);
}

rondo_status rondo_exec_memory_begin(rondo_exec_memory *exec, rondo_heap *heap, rondo_queue *queue) {
  if (exec->needs.count > 0) RONDO_TRY(enter_mapped(exec, heap));
  rondo_status status = check_spaces(exec);
  if (status == RONDO_OK) {
    status = change_lives(exec);
    if (status == RONDO_OK) {
      status = wait_for_earlier(exec, queue);
      if (status != RONDO_OK) undo_lives(exec, exec->unfreed.count, exec->frees.count);
    }
  }
  if (status != RONDO_OK) release_awaited(exec, false);
  if (status != RONDO_OK && exec->needs.count > 0) rondo_heap_leave(exec->heap);
  return status;
}

/* Records the launch, for later ones to wait for. */
static rondo_status record_launch(rondo_exec_memory *exec, rondo_queue *queue) {
  if (exec->needs.count > 0) {
    RONDO_TRY(queue->ops->record(queue, exec->heap->last));
    exec->heap->last_queue = queue->number;
    for (size_t i = 0; i < exec->needs.count; i++) exec->needs.items[i].space->uploaded = false;
  }
  for (size_t i = 0; i < exec->frees.count; i++)
    RONDO_TRY(queue->ops->record(queue, exec->frees.items[i].allocation->freed_event));
  return RONDO_OK;
}

static void finish_lives(rondo_exec_memory *exec, rondo_queue *queue) {
  for (size_t i = 0; i < exec->unfreed.count; i++)
    rondo_graph_allocation_set_freed_queue(exec->unfreed.items[i].allocation, NULL);
  for (size_t i = 0; i < exec->frees.count; i++) rondo_graph_allocation_finish(exec->frees.items[i].allocation, queue);
}

rondo_status rondo_exec_memory_end(rondo_exec_memory *exec, rondo_queue *queue, rondo_status launched) {
  rondo_status status = launched;
  rondo_queue *frees_on = queue;
  if (launched == RONDO_OK && record_launch(exec, queue) != RONDO_OK) {
    /* The launch already runs. Without an event for it, wait here, so that no later work has to wait for it. */
    status = queue->ops->await(queue);
    frees_on = NULL;
  }
  if (status == RONDO_OK)
    finish_lives(exec, frees_on);
  else
    undo_lives(exec, exec->unfreed.count, exec->frees.count);
  release_awaited(exec, status == RONDO_OK);
  if (exec->held.count <= RONDO_CHECKED_MEMBERS) rondo_exec_memory_check(exec);
  if (exec->needs.count > 0) rondo_heap_leave(exec->heap);
  return status;
}
