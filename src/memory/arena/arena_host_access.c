/* SPDX-License-Identifier: MIT
 * Watching what the host does to memory of a recording, which is not there before a launch: the device notes accesses
 * to reserved addresses. Of a guarded device the slots live already, and are shut meanwhile.
 */
#include <assert.h>

#include "memory/arena/arena_host_access.h"
#include "memory/arena/arena_internal.h"

static rondo_status open_slots(rondo_device *device, const rondo_arena_slot *slots, size_t slot_count) {
  for (size_t i = 0; i < slot_count && device->ops->guard != NULL; i++)
    RONDO_TRY(device->ops->guard->hold(device, slots[i].address, slots[i].bytes, slots[i].name));
  return RONDO_OK;
}

static void shut_slots(rondo_device *device, const rondo_arena_slot *slots, size_t slot_count) {
  for (size_t i = 0; i < slot_count && device->ops->guard != NULL; i++)
    device->ops->guard->release(device, NULL, slots[i].address);
}

static void cover_slots(rondo_device *device, void *watch, const rondo_arena_slot *slots, size_t slot_count) {
  for (size_t i = 0; i < slot_count && device->ops->guard != NULL; i++)
    device->ops->guard->host_cover(device, watch, slots[i].address);
}

rondo_status rondo_arena_watch_begin(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count) {
  rondo_device *device = arena->memory->device;
  assert(arena->watch == NULL);
  if (device->ops->host_watch_begin == NULL) return RONDO_OK;
  shut_slots(device, slots, slot_count);
  arena->watch =
      device->ops->host_watch_begin(device, rondo_arena_base(arena) + arena->backed, arena->reserved - arena->backed);
  if (arena->watch == NULL) return open_slots(device, slots, slot_count);
  cover_slots(device, arena->watch, slots, slot_count);
  return RONDO_OK;
}

rondo_status rondo_arena_watch_end(rondo_arena *arena, const rondo_arena_slot *slots, size_t slot_count, size_t used,
                                   rondo_arena_access *out) {
  rondo_device *device = arena->memory->device;
  void *watch = arena->watch;
  *out = (rondo_arena_access){0};
  arena->watch = NULL;
  if (watch == NULL) return RONDO_OK;
  out->address = device->ops->host_watch_end(device, watch, arena->reserved - arena->backed,
                                             used > arena->backed ? used - arena->backed : 0, &out->bytes);
  return open_slots(device, slots, slot_count);
}
