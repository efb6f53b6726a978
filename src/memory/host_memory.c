/* SPDX-License-Identifier: MIT
 * Host memory: allocating and freeing it. What was freed last is withheld from the allocator for a while. Until then
 * the addresses are nobody else's, so that work that still names them is refused. Larger blocks go back at once: the C
 * library's allocator unmaps them, which tells the same.
 *
 * Threads: any. The driver and the allocator are called without the lock.
 */
#include "base/error.h"
#include "memory/heap/heap.h"
#include "memory/host_memory_watch.h"
#include "memory/memory_errors.h"
#include "memory/pool/memory_pool.h"

/* The C library may keep blocks up to this size mapped after they are freed (DEFAULT_MMAP_THRESHOLD_MAX). */
enum { MOST_WITHHELD_BYTES = 32 << 20 };

static uint64_t held_by_pools_and_graphs(rondo_device_memory *memory) {
  rondo_memory_statistics held;
  rondo_memory_read_statistics(memory, &held);
  return held.pool_reserved + held.graph_reserved;
}

/* On a CPU device graphs and pools have the same memory as the host: what they keep idle makes room, after freed host
 * memory. The call is repeated only if there was any. */
static rondo_status allocate_host(rondo_device_memory *memory, size_t bytes, void **out_address) {
  rondo_device *device = memory->device;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = device->ops->host_allocate(device, bytes, out_address);
  if (!rondo_room_helps(status)) return status;
  const uint64_t held = held_by_pools_and_graphs(memory);
  const bool withheld = rondo_memory_release_withheld(memory);
  rondo_pools_give_back(memory, true);
  rondo_heaps_give_idle_back(memory, true);
  if (!withheld && held_by_pools_and_graphs(memory) == held) return status;
  status = device->ops->host_allocate(device, bytes, out_address);
  if (status == RONDO_OK) rondo_error_restore(&before);
  return status;
}

rondo_status rondo_memory_host_allocate(rondo_device_memory *memory, size_t bytes, void **out_address) {
  void *record, *address;
  RONDO_TRY(rondo_allocate(&memory->allocator, 1, sizeof(rondo_allocation), &record));
  const rondo_status status = allocate_host(memory, bytes, &address);
  if (status != RONDO_OK) {
    rondo_release(&memory->allocator, record, 1, sizeof(rondo_allocation));
    char asked[RONDO_SIZE_TEXT];
    return rondo_fail_context(status, "rondo_host_malloc of %s", rondo_size_text(asked, bytes));
  }
  rondo_allocation *allocation = record;
  *allocation = (rondo_allocation){.address = address, .bytes = bytes};
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_insert(&memory->allocator, &memory->host, allocation);
  pthread_mutex_unlock(&memory->lock);
  rondo_device_begin_use(memory->device, &rondo_allocation_use);
  *out_address = address;
  return RONDO_OK;
}

/* Under the lock. */
static rondo_status withdraw_host(rondo_device_memory *memory, const void *address, rondo_allocation **out) {
  *out = rondo_allocation_table_find(&memory->host, address);
  if (*out == NULL) return rondo_memory_refuse_host_free(memory, address);
  rondo_allocation_table_remove(&memory->host, *out);
  rondo_allocation_table_note_freed(&memory->host, *out);
  rondo_host_watches_note_freed(memory, *out);
  rondo_memory_note_ended(memory);
  return RONDO_OK;
}

static void withhold(rondo_device_memory *memory, rondo_allocation *allocation) {
  rondo_withheld *withheld = &memory->withheld;
  allocation->next = NULL;
  pthread_mutex_lock(&memory->lock);
  allocation->place = rondo_memory_note_own(memory, allocation->address, allocation->bytes);
  if (withheld->first == NULL)
    withheld->first = allocation;
  else
    withheld->last->next = allocation;
  withheld->last = allocation;
  withheld->bytes += allocation->bytes;
  withheld->count++;
  pthread_mutex_unlock(&memory->lock);
}

/* The first that is withheld beyond these limits, which is no longer the device's; NULL when there is none. */
static rondo_allocation *take_withheld(rondo_device_memory *memory, uint32_t most, size_t most_bytes) {
  rondo_withheld *withheld = &memory->withheld;
  pthread_mutex_lock(&memory->lock);
  rondo_allocation *first = withheld->count > most || withheld->bytes > most_bytes ? withheld->first : NULL;
  if (first != NULL) {
    withheld->first = first->next;
    withheld->bytes -= first->bytes;
    withheld->count--;
    rondo_range_leave(&memory->own, first->place);
    rondo_allocation_table_note_gone(&memory->allocator, &memory->host, first->address, first->bytes);
  }
  pthread_mutex_unlock(&memory->lock);
  return first;
}

static void give_to_driver(rondo_device_memory *memory, rondo_allocation *allocation) {
  memory->device->ops->host_release(memory->device, allocation->address, allocation->bytes);
  rondo_release(&memory->allocator, allocation, 1, sizeof *allocation);
}

/* Returns whether there was any. */
static bool release_beyond(rondo_device_memory *memory, uint32_t most, size_t most_bytes) {
  bool any = false;
  for (rondo_allocation *at; (at = take_withheld(memory, most, most_bytes)) != NULL; any = true)
    give_to_driver(memory, at);
  return any;
}

/* A block that alone is beyond the limit goes back at once, so that it takes no smaller one's place. */
static void release_large(rondo_device_memory *memory, rondo_allocation *allocation) {
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_note_gone(&memory->allocator, &memory->host, allocation->address, allocation->bytes);
  pthread_mutex_unlock(&memory->lock);
  give_to_driver(memory, allocation);
}

bool rondo_memory_release_withheld(rondo_device_memory *memory) { return release_beyond(memory, 0, 0); }

rondo_status rondo_memory_host_free(rondo_device_memory *memory, void *address) {
  rondo_allocation *allocation;
  pthread_mutex_lock(&memory->lock);
  const rondo_status status = withdraw_host(memory, address, &allocation);
  pthread_mutex_unlock(&memory->lock);
  RONDO_TRY(status);
  rondo_device_end_use(memory->device, &rondo_allocation_use);
  if (allocation->bytes > MOST_WITHHELD_BYTES) {
    release_large(memory, allocation);
    return RONDO_OK;
  }
  withhold(memory, allocation);
  (void)release_beyond(memory, RONDO_FREED_RING, MOST_WITHHELD_BYTES);
  return RONDO_OK;
}

bool rondo_memory_host_has(rondo_device_memory *memory, const void *address, size_t bytes) {
  pthread_mutex_lock(&memory->lock);
  const rondo_allocation *at = rondo_allocation_table_around(&memory->host, address);
  const bool has = at != NULL && bytes <= at->bytes - (size_t)((const char *)address - (const char *)at->address);
  pthread_mutex_unlock(&memory->lock);
  return has;
}
