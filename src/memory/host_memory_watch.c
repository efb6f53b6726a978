/* SPDX-License-Identifier: MIT
 * Watching host memory.
 */
#include "memory/host_memory_watch.h"

#include "base/error.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"

void rondo_host_watch_begin(rondo_device_memory *memory, rondo_host_watch *watch) {
  *watch = (rondo_host_watch){.memory = memory};
  pthread_mutex_lock(&memory->lock);
  watch->next = memory->watches;
  watch->link = &memory->watches;
  if (watch->next != NULL) watch->next->link = &watch->next;
  memory->watches = watch;
  pthread_mutex_unlock(&memory->lock);
}

void rondo_host_watch_end(rondo_host_watch *watch) {
  rondo_device_memory *memory = watch->memory;
  if (memory == NULL) return;
  pthread_mutex_lock(&memory->lock);
  *watch->link = watch->next;
  if (watch->next != NULL) watch->next->link = watch->link;
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
static rondo_status look(rondo_host_watch *watch, const void *address, const rondo_host_use *use,
                         rondo_host_address *out) {
  rondo_device_memory *memory = watch->memory;
  const rondo_allocation *at = rondo_allocation_table_around(&memory->host, address);
  if (at == NULL) {
    const bool freed = rondo_memory_find_freed(memory, address, 1, NULL) != NULL;
    *out = freed ? RONDO_ADDRESS_FREED : RONDO_ADDRESS_FOREIGN;
    return RONDO_OK;
  }
  *out = RONDO_ADDRESS_WATCHED;
  if (is_watched(watch, at)) return RONDO_OK;
  const rondo_host_use with_range = {.begin = at->address, .bytes = at->bytes, .graph = use->graph, .slot = use->slot};
  return rondo_array_push(&memory->allocator, &watch->uses, &with_range);
}

rondo_status rondo_host_watch_look(rondo_host_watch *watch, const void *address, const rondo_graph *graph,
                                   uint32_t slot, rondo_host_address *out) {
  rondo_device_memory *memory = watch->memory;
  *out = RONDO_ADDRESS_DEVICE;
  if (rondo_peers_owner(address) != NULL) return RONDO_OK;
  const rondo_host_use use = {.graph = graph, .slot = slot};
  pthread_mutex_lock(&memory->lock);
  const rondo_status status = look(watch, address, &use, out);
  pthread_mutex_unlock(&memory->lock);
  rondo_device *device = memory->device;
  const bool is_unknown = status == RONDO_OK && *out == RONDO_ADDRESS_FOREIGN;
  bool is_device;
  if (is_unknown && device->ops->knows_address != NULL && device->ops->knows_address(device, address, &is_device))
    *out = RONDO_ADDRESS_DEVICE;
  return status;
}

void rondo_host_watches_note_freed(rondo_device_memory *memory, const rondo_allocation *allocation) {
  for (rondo_host_watch *watch = memory->watches; watch != NULL; watch = watch->next) {
    if (atomic_load_explicit(&watch->freed, memory_order_relaxed) != 0) continue;
    for (size_t i = 0; i < watch->uses.count; i++)
      if (watch->uses.items[i].begin == allocation->address)
        atomic_store_explicit(&watch->freed, (uint32_t)i + 1, memory_order_release);
  }
}
