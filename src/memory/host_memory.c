/* SPDX-License-Identifier: MIT
 * Host memory. The latest freed blocks are withheld from the allocator, so that their addresses are not reused soon and
 * work that still uses them is refused. Large blocks are returned immediately: the C library's allocator unmaps them,
 * which can be detected too.
 *
 * Threads: any. The driver and the allocator are called without the lock.
 */
#include "memory/host_memory.h"

#include <assert.h>

#include "base/error.h"
#include "base/linked_list.h"
#include "memory/heap/graph_heap.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"
#include "memory/pool/memory_pool.h"

/* The C library may keep blocks up to this size mapped after they are freed (DEFAULT_MMAP_THRESHOLD_MAX). */
enum { MAX_WITHHELD_BYTES = 32 << 20 };

/* Allocating ------------------------------------------------------------------------------------------------------ */

static uint64_t reserved_by_pools_and_graphs(rondo_device_memory *memory) {
  rondo_memory_statistics figures;
  rondo_memory_read_statistics(memory, &figures);
  return figures.pool_reserved + figures.graph_reserved;
}

/* If the allocation fails, returns withheld host memory and the unused memory of pools and graphs, which on a CPU
 * device is host memory too. Tries again if there was any. */
static rondo_status allocate_host(rondo_device_memory *memory, size_t bytes, void **out_address) {
  rondo_device *device = memory->device;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = device->ops->host_allocate(device, bytes, out_address);
  if (!rondo_reclaim_helps(status)) return status;
  const uint64_t reserved = reserved_by_pools_and_graphs(memory);
  const bool withheld = rondo_memory_release_withheld(memory);
  rondo_pools_give_back(memory, true);
  rondo_heaps_reclaim_idle(memory, true);
  if (!withheld && reserved_by_pools_and_graphs(memory) == reserved) return status;
  status = device->ops->host_allocate(device, bytes, out_address);
  if (status == RONDO_OK) rondo_error_restore(&before);
  return status;
}

rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address) {
  rondo_allocation *allocation;
  void *address;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *allocation, &allocation));
  const rondo_status status = allocate_host(memory, bytes, &address);
  if (status != RONDO_OK) {
    rondo_release(&memory->allocator, allocation, 1, sizeof *allocation);
    char size[RONDO_SIZE_TEXT];
    return rondo_fail_context(status, "rondo_host_malloc of %s", rondo_size_text(size, bytes));
  }
  *allocation = (rondo_allocation){.address = address, .bytes = bytes};
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_insert(&memory->allocator, &memory->host, allocation);
  pthread_mutex_unlock(&memory->lock);
  rondo_device_begin_use(memory->device, &rondo_allocation_use);
  *out_address = address;
  return RONDO_OK;
}

bool rondo_memory_host_has(rondo_device_memory *memory, const void *address, size_t bytes) {
  pthread_mutex_lock(&memory->lock);
  const rondo_allocation *at = rondo_allocation_table_around(&memory->host, address);
  const bool has = at != NULL && bytes <= at->bytes - (size_t)((const char *)address - (const char *)at->address);
  pthread_mutex_unlock(&memory->lock);
  return has;
}

/* Freeing --------------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void notify_watches(rondo_device_memory *memory, const rondo_allocation *allocation) {
  for (rondo_host_watch *watch = memory->watches; watch != NULL; watch = watch->next) {
    if (atomic_load_explicit(&watch->freed, memory_order_relaxed) != 0) continue;
    for (size_t i = 0; i < watch->uses.count; i++)
      if (watch->uses.items[i].begin == allocation->address)
        atomic_store_explicit(&watch->freed, (uint32_t)i + 1, memory_order_release);
  }
}

/* Under the lock. */
static rondo_status withdraw_host(rondo_device_memory *memory, const void *address, rondo_allocation **out) {
  *out = rondo_allocation_table_find(&memory->host, address);
  if (*out == NULL) return rondo_memory_refuse_host_free(memory, address);
  rondo_allocation_table_remove(&memory->host, *out);
  rondo_allocation_table_note_freed(&memory->host, *out);
  notify_watches(memory, *out);
  rondo_memory_note_ended(memory);
  return RONDO_OK;
}

static void withhold(rondo_device_memory *memory, rondo_allocation *allocation) {
  rondo_withheld *withheld = &memory->withheld;
  allocation->next = NULL;
  pthread_mutex_lock(&memory->lock);
  allocation->index_node = rondo_memory_note_own(memory, allocation->address, allocation->bytes);
  *(withheld->first == NULL ? &withheld->first : &withheld->last->next) = allocation;
  withheld->last = allocation;
  withheld->bytes += allocation->bytes;
  withheld->count++;
  pthread_mutex_unlock(&memory->lock);
}

/* Takes the oldest block if more than these limits is withheld; otherwise NULL. */
static rondo_allocation *take_withheld(rondo_device_memory *memory, uint32_t max_count, size_t max_bytes) {
  rondo_withheld *withheld = &memory->withheld;
  pthread_mutex_lock(&memory->lock);
  rondo_allocation *first = withheld->count > max_count || withheld->bytes > max_bytes ? withheld->first : NULL;
  if (first != NULL) {
    assert(withheld->count > 0 && withheld->bytes >= first->bytes);
    withheld->first = first->next;
    withheld->bytes -= first->bytes;
    withheld->count--;
    rondo_range_leave(&memory->own, first->index_node);
    rondo_allocation_table_note_gone(&memory->allocator, &memory->host, first->address, first->bytes);
  }
  pthread_mutex_unlock(&memory->lock);
  return first;
}

static void give_to_driver(rondo_device_memory *memory, rondo_allocation *allocation) {
  memory->device->ops->host_release(memory->device, allocation->address, allocation->bytes);
  rondo_release(&memory->allocator, allocation, 1, sizeof *allocation);
}

/* Releases withheld blocks beyond the limits. Returns whether there were any. */
static bool release_beyond(rondo_device_memory *memory, uint32_t max_count, size_t max_bytes) {
  bool any = false;
  for (rondo_allocation *at; (at = take_withheld(memory, max_count, max_bytes)) != NULL; any = true)
    give_to_driver(memory, at);
  return any;
}

bool rondo_memory_release_withheld(rondo_device_memory *memory) { return release_beyond(memory, 0, 0); }

/* A block above the limit is returned immediately, so that smaller ones stay withheld. */
static void release_large(rondo_device_memory *memory, rondo_allocation *allocation) {
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_note_gone(&memory->allocator, &memory->host, allocation->address, allocation->bytes);
  pthread_mutex_unlock(&memory->lock);
  give_to_driver(memory, allocation);
}

rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address) {
  rondo_allocation *allocation;
  pthread_mutex_lock(&memory->lock);
  const rondo_status status = withdraw_host(memory, address, &allocation);
  pthread_mutex_unlock(&memory->lock);
  RONDO_TRY(status);
  rondo_device_end_use(memory->device, &rondo_allocation_use);
  if (allocation->bytes > MAX_WITHHELD_BYTES) {
    release_large(memory, allocation);
    return RONDO_OK;
  }
  withhold(memory, allocation);
  (void)release_beyond(memory, RONDO_FREED_RING, MAX_WITHHELD_BYTES);
  return RONDO_OK;
}

/* Watches --------------------------------------------------------------------------------------------------------- */

void rondo_host_watch_begin(rondo_device_memory *memory, rondo_host_watch *watch) {
  *watch = (rondo_host_watch){.memory = memory};
  pthread_mutex_lock(&memory->lock);
  RONDO_LIST_INSERT(memory->watches, watch, next, link);
  pthread_mutex_unlock(&memory->lock);
}

void rondo_host_watch_end(rondo_host_watch *watch) {
  rondo_device_memory *memory = watch->memory;
  if (memory == NULL) return;
  pthread_mutex_lock(&memory->lock);
  RONDO_LIST_REMOVE(watch, next, link);
  pthread_mutex_unlock(&memory->lock);
  rondo_array_free(&memory->allocator, &watch->uses);
  *watch = (rondo_host_watch){.memory = NULL};
}

static bool is_watched(const rondo_host_watch *watch, const rondo_allocation *allocation) {
  for (size_t i = 0; i < watch->uses.count; i++)
    if (watch->uses.items[i].begin == allocation->address) return true;
  return false;
}

/* Under the lock. */
static rondo_status look(rondo_host_watch *watch, const void *address, rondo_host_use *use, rondo_host_address *out) {
  rondo_device_memory *memory = watch->memory;
  const rondo_allocation *at = rondo_allocation_table_around(&memory->host, address);
  if (rondo_range_find(&memory->symbols, address) != 0) return RONDO_OK;
  if (at == NULL) {
    const bool freed = rondo_memory_find_freed(memory, address, 1, NULL) != NULL;
    *out = freed ? RONDO_ADDRESS_FREED : RONDO_ADDRESS_FOREIGN;
    return RONDO_OK;
  }
  *out = RONDO_ADDRESS_WATCHED;
  if (is_watched(watch, at)) return RONDO_OK;
  use->begin = at->address;
  use->bytes = at->bytes;
  return rondo_array_push(&memory->allocator, &watch->uses, use);
}

rondo_status rondo_host_watch_look(rondo_host_watch *watch, const void *address, const rondo_graph *graph,
                                   uint32_t slot, rondo_host_address *out) {
  rondo_device_memory *memory = watch->memory;
  rondo_device *device = memory->device;
  rondo_host_use use = {.graph = graph, .slot = slot};
  bool is_device;
  *out = RONDO_ADDRESS_DEVICE;
  if (rondo_peers_owner(address) != NULL) return RONDO_OK;
  pthread_mutex_lock(&memory->lock);
  const rondo_status status = look(watch, address, &use, out);
  pthread_mutex_unlock(&memory->lock);
  const bool is_unknown = status == RONDO_OK && *out == RONDO_ADDRESS_FOREIGN;
  if (is_unknown && device->ops->knows_address != NULL && device->ops->knows_address(device, address, &is_device))
    *out = RONDO_ADDRESS_DEVICE;
  return status;
}
