/* SPDX-License-Identifier: MIT
 * Virtual memory: address ranges, physical allocations and mappings are the driver's (cuMemAddressReserve, cuMemCreate,
 * cuMemMap, cuMemSetAccess); sizes are multiples of the granularity that info.page_bytes says. All act at once on the
 * host.
 */
#include "base/error.h"
#include "device/cuda/cuda.h"

static cu_allocation_properties properties_of(const cuda_device *device) {
  return (cu_allocation_properties){.type = CU_ALLOCATION_PINNED,
                                    .location = {.type = CU_LOCATION_DEVICE, .id = device->ordinal}};
}

/* Lists ----------------------------------------------------------------------------------------------------------- */

static rondo_status note(cuda_device *device, cuda_ranges *list, cu_address address, size_t bytes) {
  pthread_mutex_lock(&device->lock);
  const rondo_status status = rondo_array_reserve(&device->base.allocator, list, list->count + 1);
  if (status == RONDO_OK) list->items[list->count++] = (cuda_range){address, bytes};
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* All that begin in the range. */
static void forget(cuda_device *device, cuda_ranges *list, cu_address address, size_t bytes) {
  pthread_mutex_lock(&device->lock);
  for (size_t i = list->count; i-- > 0;) {
    const cuda_range *at = &list->items[i];
    if (at->address >= address && at->address - address < bytes) list->items[i] = list->items[--list->count];
  }
  pthread_mutex_unlock(&device->lock);
}

/* Whether one of them holds the address. *end, where it lies further on, becomes the end of that one, or the beginning
 * of the next. */
static bool find(const cuda_ranges *list, cu_address address, cu_address *end) {
  for (size_t i = 0; i < list->count; i++) {
    const cuda_range at = list->items[i];
    if (address >= at.address && address - at.address < at.bytes) {
      if (at.address + at.bytes < *end) *end = at.address + at.bytes;
      return true;
    }
    if (at.bytes > 0 && at.address > address && at.address < *end) *end = at.address;
  }
  return false;
}

/* Whether it is reserved, and neither mapped nor in `others`. *out_behind, `end` at most, is as far as the same is to
 * be said. */
static bool find_bare(cuda_device *device, const cuda_ranges *others, cu_address address, cu_address end,
                      cu_address *out_behind) {
  *out_behind = end;
  pthread_mutex_lock(&device->lock);
  const bool is_bare = find(&device->reservations, address, out_behind) &&
                       !find(&device->mappings, address, out_behind) && !find(others, address, out_behind);
  pthread_mutex_unlock(&device->lock);
  return is_bare;
}

/* Address space and physical memory ------------------------------------------------------------------------------- */

/* A lost device holds nothing any more, whatever it says. */
static rondo_status check_freeing(cuda_device *device, cu_result code, const char *verb, size_t bytes,
                                  const void *address) {
  const rondo_status status =
      cuda_check(device, code, "%s %zu bytes at %p of device '%s'", verb, bytes, address, device->base.name);
  return cuda_is_lost(device) ? RONDO_OK : status;
}

static bool unmap_range(cuda_device *device, cuda_range at) {
  const cu_result code = device->api->mem_unmap(at.address, at.bytes);
  return check_freeing(device, code, "unmapping", at.bytes, (const void *)(uintptr_t)at.address) == RONDO_OK;
}

/* Another try to unmap what stand-ins left. With the mapping lock. */
static void unmap_left(cuda_device *device) {
  for (size_t i = device->left.count; i-- > 0;) {
    if (unmap_range(device, device->left.items[i])) device->left.items[i] = device->left.items[--device->left.count];
  }
}

rondo_status cuda_reserve(rondo_device *base, size_t bytes, size_t alignment, void **out_address) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  cu_address address = 0;
  *out_address = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->mem_reserve(&address, bytes, alignment, 0, 0);
  rondo_status status =
      cuda_check(device, code, "reserving %zu bytes of address space on device '%s'", bytes, device->base.name);
  if (status == RONDO_OK) {
    status = note(device, &device->reservations, address, bytes);
    if (status != RONDO_OK) (void)device->api->mem_unreserve(address, bytes); /* the first error is the one to tell */
  }
  cuda_leave(&scope);
  if (status == RONDO_OK) *out_address = (void *)(uintptr_t)address;
  return status;
}

rondo_status cuda_unreserve(rondo_device *base, void *address, size_t bytes) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  cuda_enter_to_free(device, &scope);
  pthread_mutex_lock(&device->mapping);
  unmap_left(device);
  pthread_mutex_unlock(&device->mapping);
  const cu_result code = device->api->mem_unreserve(cuda_address(address), bytes);
  cuda_leave(&scope);
  forget(device, &device->reservations, cuda_address(address), bytes);
  return check_freeing(device, code, "giving back", bytes, address);
}

rondo_status cuda_physical_create(rondo_device *base, size_t bytes, rondo_physical **out) {
  cuda_device *device = cuda_device_of(base);
  const cu_allocation_properties properties = properties_of(device);
  cuda_scope scope;
  void *memory;
  *out = NULL;
  RONDO_TRY(rondo_allocate(&base->allocator, 1, sizeof(cuda_physical), &memory));
  cuda_physical *physical = memory;
  physical->base = (rondo_physical){base, bytes};
  rondo_status status = cuda_enter(device, &scope);
  if (status == RONDO_OK) {
    const cu_result code = device->api->mem_create(&physical->handle, bytes, &properties, 0);
    status = cuda_check(device, code, "device '%s' has no %zu bytes of memory left in one piece", base->name, bytes);
    cuda_leave(&scope);
  }
  if (status == RONDO_OK)
    *out = &physical->base;
  else
    rondo_release(&base->allocator, physical, 1, sizeof *physical);
  return status;
}

void cuda_physical_destroy(rondo_physical *base) {
  cuda_physical *physical = (cuda_physical *)base;
  cuda_device *device = cuda_device_of(base->device);
  cuda_scope scope;
  cuda_enter_to_free(device, &scope);
  (void)device->api->mem_release(physical->handle); /* on a lost device it is gone already */
  cuda_leave(&scope);
  rondo_release(&device->base.allocator, physical, 1, sizeof *physical);
}

/* Mappings, and who may access them ------------------------------------------------------------------------------- */

enum { MAX_PEERS = 64 };

/* For the device and those that it has admitted. */
static cu_result set_access(cuda_device *device, cu_address address, size_t bytes, int flags, uint64_t peers) {
  cu_access access[MAX_PEERS];
  size_t count = 0;
  for (uint64_t left = peers; left != 0; left &= left - 1)
    access[count++] = (cu_access){.location = {CU_LOCATION_DEVICE, __builtin_ctzll(left)}, .flags = flags};
  return device->api->mem_set_access(address, bytes, access, count);
}

static uint64_t who_may_access(cuda_device *device) {
  pthread_mutex_lock(&device->lock);
  const uint64_t peers = device->admitted | UINT64_C(1) << device->ordinal;
  pthread_mutex_unlock(&device->lock);
  return peers;
}

/* The mapping with the lowest address from `*address` on; false past the last. */
static bool next_mapping(cuda_device *device, cu_address *address, cuda_range *out) {
  bool found = false;
  pthread_mutex_lock(&device->lock);
  for (size_t i = 0; i < device->mappings.count; i++) {
    const cuda_range *at = &device->mappings.items[i];
    if (at->address < *address || (found && at->address > out->address)) continue;
    *out = *at;
    found = true;
  }
  pthread_mutex_unlock(&device->lock);
  if (found) *address = out->address + out->bytes;
  return found;
}

/* What is mapped from now on is for the new peers too; then comes what was mapped before. A mapping that went meanwhile
 * needs no access. */
rondo_status cuda_admit(rondo_device *base, uint64_t peers) {
  cuda_device *device = cuda_device_of(base);
  cuda_range at = {0};
  cu_address address = 0;
  cuda_scope scope;
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&device->lock);
  const uint64_t added = peers & ~device->admitted;
  device->admitted |= added;
  pthread_mutex_unlock(&device->lock);
  if (added == 0) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  while (status == RONDO_OK && next_mapping(device, &address, &at)) {
    const cu_result code = set_access(device, at.address, at.bytes, CU_ACCESS_READ_WRITE, added);
    cu_address same = at.address;
    cuda_range now;
    if (code == CU_INVALID_VALUE && (!next_mapping(device, &same, &now) || now.address != at.address)) continue;
    status = cuda_check(device, code, "letting other devices access %zu bytes of device '%s'", at.bytes, base->name);
  }
  cuda_leave(&scope);
  if (status == RONDO_OK) return RONDO_OK;
  pthread_mutex_lock(&device->lock);
  device->admitted &= ~added;
  pthread_mutex_unlock(&device->lock);
  return status;
}

rondo_status cuda_map(rondo_device *base, void *address, rondo_physical *physical) {
  cuda_device *device = cuda_device_of(base);
  const cu_address at = cuda_address(address);
  cuda_scope scope;
  RONDO_TRY(note(device, &device->mappings, at, physical->bytes));
  rondo_status status = cuda_enter(device, &scope);
  if (status == RONDO_OK) {
    pthread_mutex_lock(&device->mapping);
    unmap_left(device);
    cu_result code = device->api->mem_map(at, physical->bytes, 0, ((cuda_physical *)physical)->handle, 0);
    if (code == CU_OK) {
      code = set_access(device, at, physical->bytes, CU_ACCESS_READ_WRITE, who_may_access(device));
      if (code != CU_OK) (void)device->api->mem_unmap(at, physical->bytes); /* the first error is the one to tell */
    }
    pthread_mutex_unlock(&device->mapping);
    status = cuda_check(device, code, "mapping %zu bytes at %p of device '%s'", physical->bytes, address, base->name);
    cuda_leave(&scope);
  }
  if (status != RONDO_OK) {
    forget(device, &device->mappings, at, physical->bytes);
    return status;
  }
  atomic_fetch_add_explicit(&device->mapped_bytes, physical->bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->maps, 1, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status cuda_unmap(rondo_device *base, void *address, size_t bytes) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  cuda_enter_to_free(device, &scope);
  pthread_mutex_lock(&device->mapping);
  const cu_result code = device->api->mem_unmap(cuda_address(address), bytes);
  pthread_mutex_unlock(&device->mapping);
  cuda_leave(&scope);
  const rondo_status status = check_freeing(device, code, "unmapping", bytes, address);
  if (status != RONDO_OK) return status;
  forget(device, &device->mappings, cuda_address(address), bytes);
  atomic_fetch_sub_explicit(&device->mapped_bytes, bytes, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status cuda_protect(rondo_device *base, void *address, size_t bytes, rondo_protection protection) {
  static const int flags[] = {[RONDO_PROTECT_NONE] = CU_ACCESS_NONE,
                              [RONDO_PROTECT_READ] = CU_ACCESS_READ,
                              [RONDO_PROTECT_READ_WRITE] = CU_ACCESS_READ_WRITE};
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = set_access(device, cuda_address(address), bytes, flags[protection], who_may_access(device));
  const rondo_status status =
      cuda_check(device, code, "changing the access to %zu bytes at %p of device '%s'", bytes, address, base->name);
  cuda_leave(&scope);
  return status;
}

/* Stand-ins ------------------------------------------------------------------------------------------------------- */

rondo_status cuda_stand_ins_begin(cuda_device *device, cuda_stand_ins *out) {
  const cu_allocation_properties properties = properties_of(device);
  *out = (cuda_stand_ins){.device = device};
  pthread_mutex_lock(&device->mapping);
  if (device->stand_in != 0) return RONDO_OK;
  return cuda_check(device, device->api->mem_create(&device->stand_in, device->page_bytes, &properties, 0),
                    "making a page of device '%s'", device->base.name);
}

/* One call maps a page, one more gives access to all of them; so another one ends it. */
static rondo_status stand_in(cuda_stand_ins *self, cuda_range at) {
  cuda_device *device = self->device;
  const rondo_allocator *allocator = &device->base.allocator;
  RONDO_TRY(rondo_array_reserve(allocator, &self->ranges, self->ranges.count + 1));
  RONDO_TRY(rondo_array_reserve(allocator, &device->left, device->left.count + self->ranges.count + 1));
  cuda_range *mapped = &self->ranges.items[self->ranges.count++];
  *mapped = (cuda_range){at.address, 0};
  cu_result code = CU_OK;
  while (code == CU_OK && mapped->bytes < at.bytes) {
    code = device->api->mem_map(at.address + mapped->bytes, device->page_bytes, 0, device->stand_in, 0);
    if (code == CU_OK) mapped->bytes += device->page_bytes;
  }
  if (code == CU_OK) code = set_access(device, at.address, at.bytes, CU_ACCESS_READ_WRITE, who_may_access(device));
  return cuda_check(device, code, "letting a page of device '%s' stand in for %zu bytes of graph memory",
                    device->base.name, at.bytes);
}

rondo_status cuda_stand_ins_add(cuda_stand_ins *self, const void *memory, size_t bytes) {
  cuda_device *device = self->device;
  cu_address from = cuda_address(memory);
  const cu_address end = from + bytes;
  from -= from % device->page_bytes;
  while (from < end) {
    cu_address behind;
    const bool is_bare = find_bare(device, &self->ranges, from, end, &behind);
    behind += (device->page_bytes - behind % device->page_bytes) % device->page_bytes;
    if (is_bare) RONDO_TRY(stand_in(self, (cuda_range){from, behind - from}));
    from = behind;
  }
  return RONDO_OK;
}

rondo_status cuda_stand_ins_add_copy(cuda_stand_ins *self, const rondo_copy *copy) {
  size_t src, dst;
  cuda_copy_extents(copy, &src, &dst);
  RONDO_TRY(cuda_stand_ins_add(self, copy->src, src));
  return cuda_stand_ins_add(self, copy->dst, dst);
}

void cuda_stand_ins_end(cuda_stand_ins *self) {
  cuda_device *device = self->device;
  for (size_t i = 0; i < self->ranges.count; i++) {
    const cuda_range at = self->ranges.items[i];
    if (at.bytes > 0 && !unmap_range(device, at)) device->left.items[device->left.count++] = at;
  }
  pthread_mutex_unlock(&device->mapping);
  rondo_array_free(&device->base.allocator, &self->ranges);
}

void cuda_stand_in_free(cuda_device *device) {
  if (device->stand_in != 0) (void)device->api->mem_release(device->stand_in); /* on a lost device it is gone already */
}

/* Host memory ----------------------------------------------------------------------------------------------------- */

rondo_status cuda_host_allocate(rondo_device *base, size_t bytes, void **out_address) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  *out_address = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->host_alloc(out_address, bytes, CU_HOST_ALLOC_PORTABLE);
  const rondo_status status =
      cuda_check(device, code, "%zu bytes of host memory for device '%s' cannot be had", bytes, base->name);
  cuda_leave(&scope);
  return status;
}

void cuda_host_release(rondo_device *base, void *address, size_t bytes) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  (void)bytes;
  cuda_enter_to_free(device, &scope);
  (void)device->api->host_free(address); /* on a lost device it is gone already */
  cuda_leave(&scope);
}

bool cuda_knows_address(rondo_device *base, const void *address) {
  cuda_device *device = cuda_device_of(base);
  cuda_scope scope;
  unsigned type = 0;
  cuda_enter_to_free(device, &scope); /* on a lost device too, where the driver refuses */
  const cu_result code =
      device->api->pointer_get_attribute(&type, CU_POINTER_MEMORY_TYPE, (cu_address)(uintptr_t)address);
  cuda_leave(&scope);
  return code == CU_OK && (type == CU_MEMORY_HOST || type == CU_MEMORY_DEVICE);
}
