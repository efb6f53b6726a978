/* SPDX-License-Identifier: MIT
 * The directory of reserved addresses, and access between devices.
 *
 * The owner of a range in the directory is its device. Ranges are disjoint. A forked child begins with an empty
 * directory, because its devices may reserve addresses that its parent's devices had reserved.
 */
#include "memory/peer_access.h"

#include <stdio.h>

#include "base/error.h"
#include "graph/node_name.h"
#include "memory/arena/arena_internal.h"
#include "memory/node_addresses.h"
#include "memory/range_index.h"

/* The directory --------------------------------------------------------------------------------------------------- */

atomic_uint rondo_peers_with_memory;

static pthread_mutex_t directory_lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_range_index directory;

rondo_device *rondo_peers_owner(const void *address) {
  rondo_range_found found;
  if (rondo_range_look(&directory, address, &found)) return found.owner;
  pthread_mutex_lock(&directory_lock);
  rondo_device *owner = rondo_range_around(&directory, address);
  pthread_mutex_unlock(&directory_lock);
  return owner;
}

/* Fails rather than leaving a range out, so that every address is found. */
static rondo_status enter_directory(rondo_device *device, const void *address, size_t bytes) {
  const rondo_allocator allocator = rondo_allocator_default();
  if (rondo_range_enter(&allocator, &directory, address, bytes, 0, device) != 0) return RONDO_OK;
  rondo_range_leave(&directory, 0);
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                    "there is no host memory to register %zu bytes of addresses of %s", bytes, device->name);
}

/* Another thread of the parent may have been changing the directory, so its memory is not released. */
static void forget_parent(void) {
  atomic_init(&directory.nodes, NULL);
  atomic_init(&directory.version, 0);
  atomic_init(&directory.root, 0);
  atomic_init(&directory.missing, 0);
  directory.unused = 0;
  atomic_init(&rondo_peers_with_memory, 0);
}

rondo_status rondo_peers_note(rondo_device *device, const void *address, size_t bytes) {
  atomic_store(&rondo_device_forget_parent, forget_parent);
  pthread_mutex_lock(&directory_lock);
  const rondo_status status = enter_directory(device, address, bytes);
  if (status == RONDO_OK && atomic_fetch_add_explicit(&device->reservations, 1, memory_order_relaxed) == 0)
    atomic_fetch_add_explicit(&rondo_peers_with_memory, 1, memory_order_relaxed);
  pthread_mutex_unlock(&directory_lock);
  return status;
}

void rondo_peers_forget(rondo_device *device, const void *address) {
  pthread_mutex_lock(&directory_lock);
  rondo_range_leave(&directory, rondo_range_find(&directory, address));
  if (atomic_fetch_sub_explicit(&device->reservations, 1, memory_order_relaxed) == 1)
    atomic_fetch_sub_explicit(&rondo_peers_with_memory, 1, memory_order_relaxed);
  pthread_mutex_unlock(&directory_lock);
}

rondo_status rondo_peers_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address) {
  RONDO_TRY(device->ops->reserve(device, bytes, alignment, out_address));
  const rondo_status status = rondo_peers_note(device, *out_address, bytes);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_status_ignore(device->ops->unreserve(device, *out_address, bytes), "the first failure is the one to report");
  *out_address = NULL;
  return status;
}

/* Removed from the directory first, because another device may reserve the addresses at once. */
rondo_status rondo_peers_unreserve(rondo_device *device, void *address, size_t bytes) {
  rondo_peers_forget(device, address);
  return device->ops->unreserve(device, address, bytes);
}

/* Access ---------------------------------------------------------------------------------------------------------- */

static uint64_t reachable_by(const rondo_device *owner) {
  return owner->ops->peers == NULL ? 0 : owner->ops->peers(owner);
}

rondo_status rondo_peers_check_list(const char *call, const rondo_device *owner, uint64_t peers) {
  const uint64_t unknown = peers & ~(reachable_by(owner) | rondo_device_peer_bit(owner));
  if (unknown == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_DEVICE,
                    "%s: the list of peers names device %d, which cannot access memory of %s "
                    "(see rondo_device_can_access_peer): leave it out",
                    call, __builtin_ctzll(unknown), owner->name);
}

rondo_status rondo_peers_admit(rondo_device *owner, uint64_t peers) {
  const uint64_t others = peers & ~rondo_device_peer_bit(owner);
  return others == 0 || owner->ops->admit == NULL ? RONDO_OK : owner->ops->admit(owner, others);
}

typedef struct access_search {
  uint64_t peers;
  rondo_peer_memory *out;
} access_search;

static uint64_t peers_of(const rondo_allocation *at) {
  if (at->kind == RONDO_ALLOCATION_GRAPH) return ((const rondo_graph_allocation *)at)->peers;
  if (at->kind == RONDO_ALLOCATION_ARENA)
    return atomic_load_explicit(&((const rondo_arena *)at)->peers, memory_order_relaxed);
  return atomic_load_explicit(&((const rondo_block *)at)->chunk->pool->peers, memory_order_relaxed);
}

static bool add_access(void *owner, void *user) {
  const rondo_allocation *at = owner;
  access_search *search = user;
  rondo_peer_memory *out = search->out;
  search->peers |= peers_of(at);
  if (out->begin == NULL) {
    snprintf(out->name, sizeof out->name, "%s", at->name == NULL ? "" : at->name);
    out->begin = at->address;
    out->bytes = at->bytes;
  }
  return true;
}

bool rondo_peers_find(const rondo_device *device, const void *address, rondo_peer_memory *out) {
  *out = (rondo_peer_memory){.owner = rondo_peers_owner(address)};
  if (out->owner == NULL || out->owner == device) return false;
  rondo_device_memory *memory = rondo_device_memory_made(out->owner);
  access_search search = {.peers = rondo_device_peer_bit(out->owner), .out = out};
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_visit_around(&memory->table, address, add_access, &search);
  pthread_mutex_unlock(&memory->lock);
  out->allowed = rondo_device_reaches(device, out->owner) && (search.peers & rondo_device_peer_bit(device)) != 0;
  return true;
}

static rondo_status fail_access(const rondo_device *device, const char *call, const rondo_node_params *work,
                                const rondo_node_where *where, const rondo_peer_memory *memory) {
  char label[RONDO_LABEL_BYTES], what[RONDO_ALLOCATION_LABEL + 16], name[RONDO_ALLOCATION_LABEL];
  if (memory->begin != NULL)
    snprintf(what, sizeof what, "allocation %s", rondo_named_size(name, memory->name, memory->bytes));
  else
    snprintf(what, sizeof what, "memory that is not allocated");
  rondo_node_label_at(label, work, where);
  return rondo_fail_node(where != NULL ? RONDO_INVALID_GRAPH : RONDO_INVALID_ARGUMENT, RONDO_REASON_NO_ACCESS,
                         where != NULL ? where->number : RONDO_NO_NODE,
                         "%s: %s on device %s accesses %s of device %s, which gives it no access: add the device to "
                         "rondo_alloc_node.peers, or grant it by rondo_pool_set_access or rondo_memory_set_access",
                         call, label, device->name, what, memory->owner->name);
}

rondo_status rondo_peers_check_slowly(const rondo_device *device, const char *call, const rondo_node_params *work,
                                      const rondo_node_where *where) {
  rondo_node_address addresses[RONDO_MAX_PARAMETERS];
  const size_t count = rondo_node_addresses(work, addresses);
  for (size_t i = 0; i < count; i++) {
    rondo_peer_memory memory;
    if (rondo_peers_find(device, addresses[i].address, &memory) && !memory.allowed)
      return fail_access(device, call, work, where, &memory);
  }
  return RONDO_OK;
}
