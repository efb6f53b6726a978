/* SPDX-License-Identifier: MIT
 * The directory of reserved addresses, and access between devices.
 *
 * The directory is a sorted array that one writer at a time changes in place; readers look whether the version was even
 * and the same before and after, and look again if not. It moves to a larger array when it is full; the old ones stay,
 * because a reader may be in them, and are together no larger than the last.
 */
#include "memory/peers.h"

#include <stdio.h>

#include "base/error.h"
#include "memory/address_space.h"
#include "memory/node_addresses.h"

/* The directory --------------------------------------------------------------------------------------------------- */

typedef struct reserved_range {
  _Atomic uintptr_t begin, end;
  _Atomic(rondo_device *) device;
} reserved_range;

typedef struct directory {
  struct directory *older;
  size_t capacity;
  reserved_range ranges[]; /* by address, apart */
} directory;

#define FIRST_CAPACITY 256

atomic_uint rondo_peers_with_memory;

static pthread_mutex_t directory_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(directory *) current_directory;
static _Atomic size_t range_count;
static _Atomic uint64_t directory_version; /* odd: being changed */

static void copy_range(reserved_range *to, const reserved_range *from) {
  atomic_store_explicit(&to->begin, atomic_load_explicit(&from->begin, memory_order_relaxed), memory_order_release);
  atomic_store_explicit(&to->end, atomic_load_explicit(&from->end, memory_order_relaxed), memory_order_release);
  atomic_store_explicit(&to->device, atomic_load_explicit(&from->device, memory_order_relaxed), memory_order_release);
}

/* The first range that ends behind the address. What a reader finds while the directory changes is looked at again. */
static size_t find_range(const directory *at, size_t count, uintptr_t address) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (atomic_load_explicit(&at->ranges[middle].end, memory_order_acquire) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Under the directory's lock, as all that changes it. The version makes the number of ranges fit the array. */
static rondo_status make_room(size_t count) {
  directory *old = atomic_load_explicit(&current_directory, memory_order_relaxed);
  if (old != NULL && count < old->capacity) return RONDO_OK;
  const rondo_allocator allocator = rondo_allocator_default();
  const size_t capacity = old == NULL ? FIRST_CAPACITY : 2 * old->capacity;
  void *memory;
  RONDO_TRY(rondo_allocate(&allocator, 1, sizeof(directory) + capacity * sizeof(reserved_range), &memory));
  directory *new = memory;
  new->older = old;
  new->capacity = capacity;
  for (size_t i = 0; i < count; i++) copy_range(&new->ranges[i], &old->ranges[i]);
  atomic_store_explicit(&current_directory, new, memory_order_release);
  return RONDO_OK;
}

static void begin_change(void) { atomic_fetch_add_explicit(&directory_version, 1, memory_order_acq_rel); }
static void end_change(void) { atomic_fetch_add_explicit(&directory_version, 1, memory_order_release); }

static void insert_range(uintptr_t begin, uintptr_t end, rondo_device *device) {
  directory *at = atomic_load_explicit(&current_directory, memory_order_relaxed);
  const size_t count = atomic_load_explicit(&range_count, memory_order_relaxed);
  const size_t index = find_range(at, count, begin);
  begin_change();
  for (size_t i = count; i > index; i--) copy_range(&at->ranges[i], &at->ranges[i - 1]);
  atomic_store_explicit(&at->ranges[index].begin, begin, memory_order_release);
  atomic_store_explicit(&at->ranges[index].end, end, memory_order_release);
  atomic_store_explicit(&at->ranges[index].device, device, memory_order_release);
  atomic_store_explicit(&range_count, count + 1, memory_order_release);
  end_change();
}

static void remove_range(uintptr_t begin) {
  directory *at = atomic_load_explicit(&current_directory, memory_order_relaxed);
  const size_t count = atomic_load_explicit(&range_count, memory_order_relaxed);
  const size_t index = find_range(at, count, begin);
  begin_change();
  for (size_t i = index; i + 1 < count; i++) copy_range(&at->ranges[i], &at->ranges[i + 1]);
  atomic_store_explicit(&range_count, count - 1, memory_order_release);
  end_change();
}

rondo_device *rondo_peers_owner(const void *address) {
  for (;;) {
    const uint64_t version = atomic_load_explicit(&directory_version, memory_order_acquire);
    if (version % 2 != 0) continue;
    const directory *at = atomic_load_explicit(&current_directory, memory_order_acquire);
    size_t count = atomic_load_explicit(&range_count, memory_order_acquire);
    if (at == NULL) return NULL;
    if (count > at->capacity) continue;
    const size_t index = find_range(at, count, (uintptr_t)address);
    rondo_device *device = NULL;
    if (index < count && atomic_load_explicit(&at->ranges[index].begin, memory_order_acquire) <= (uintptr_t)address)
      device = atomic_load_explicit(&at->ranges[index].device, memory_order_acquire);
    if (atomic_load_explicit(&directory_version, memory_order_acquire) == version) return device;
  }
}

rondo_status rondo_peers_note(rondo_device *device, const void *address, size_t bytes) {
  const uintptr_t begin = (uintptr_t)address;
  pthread_mutex_lock(&directory_lock);
  const rondo_status status = make_room(atomic_load_explicit(&range_count, memory_order_relaxed));
  if (status == RONDO_OK) {
    insert_range(begin, begin + bytes, device);
    if (atomic_fetch_add_explicit(&device->reservations, 1, memory_order_relaxed) == 0)
      atomic_fetch_add_explicit(&rondo_peers_with_memory, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&directory_lock);
  return status;
}

void rondo_peers_forget(rondo_device *device, const void *address) {
  pthread_mutex_lock(&directory_lock);
  remove_range((uintptr_t)address);
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

/* Out of the directory first: the addresses may be another device's at once. */
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
                    "(rondo_device_can_access_peer tells): leave it out",
                    call, __builtin_ctzll(unknown), owner->name);
}

typedef struct access_search {
  uint64_t peers;
  rondo_peer_memory *out;
} access_search;

static bool add_access(rondo_allocation *at, void *user) {
  access_search *search = user;
  rondo_peer_memory *out = search->out;
  search->peers |= at->kind == RONDO_ALLOCATION_GRAPH
                       ? ((rondo_graph_allocation *)at)->peers
                       : atomic_load_explicit(&((rondo_block *)at)->chunk->pool->peers, memory_order_relaxed);
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
  rondo_device_memory *memory = atomic_load_explicit(&out->owner->memory.state, memory_order_acquire);
  access_search search = {.peers = rondo_device_peer_bit(out->owner), .out = out};
  pthread_mutex_lock(&memory->lock);
  rondo_allocation_table_visit_around(&memory->table, address, add_access, &search);
  pthread_mutex_unlock(&memory->lock);
  out->allowed = rondo_device_reaches(device, out->owner) && (search.peers & rondo_device_peer_bit(device)) != 0;
  return true;
}

static rondo_status fail_access(const rondo_device *device, const char *call, const rondo_node_params *work,
                                uint32_t number, const rondo_peer_memory *memory) {
  char label[RONDO_LABEL_BYTES], what[RONDO_PEER_NAME + 64], size[RONDO_SIZE_TEXT];
  const bool is_node = number != RONDO_NO_NODE;
  if (memory->begin != NULL)
    snprintf(what, sizeof what, "allocation '%s' (%s)", memory->name, rondo_size_text(size, memory->bytes));
  else
    snprintf(what, sizeof what, "memory that is not allocated");
  if (is_node)
    rondo_node_label(label, work, number);
  else
    snprintf(label, sizeof label, "%s '%.60s'", rondo_node_kind_name(work->kind), work->name == NULL ? "" : work->name);
  return rondo_fail_node(is_node ? RONDO_INVALID_GRAPH : RONDO_INVALID_ARGUMENT, RONDO_REASON_NO_ACCESS, number,
                         "%s: %s on device %s accesses %s of device %s, which gives it no access: name the device in "
                         "rondo_alloc_node.peers, or grant it by rondo_pool_set_access or rondo_memory_set_access",
                         call, label, device->name, what, memory->owner->name);
}

rondo_status rondo_peers_check_slowly(const rondo_device *device, const char *call, const rondo_node_params *work,
                                      uint32_t number) {
  rondo_node_address addresses[RONDO_MAX_PARAMETERS];
  const size_t count = rondo_node_addresses(work, addresses);
  for (size_t i = 0; i < count; i++) {
    rondo_peer_memory memory;
    if (rondo_peers_find(device, addresses[i].address, &memory) && !memory.allowed)
      return fail_access(device, call, work, number, &memory);
  }
  return RONDO_OK;
}
