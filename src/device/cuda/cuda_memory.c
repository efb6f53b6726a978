/* SPDX-License-Identifier: MIT
 * Virtual memory and host memory. Address ranges, physical allocations and mappings are the driver's
 * (cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess). Sizes are multiples of info.page_bytes. Everything acts
 * at once on the host.
 *
 * Invariant: device->mappings and device->reservations list what is mapped and reserved. Mappings of a device do not
 * overlap. Threads: any; the lists change under device->lock, and mappings also under device->mapping.
 */
#include "device/cuda/cuda_memory.h"

#include <assert.h>

#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_placeholder_memory.h"

/* Lists ------------------------------------------------------------------------------------------------------------ */

static rondo_status note(cuda_device *device, cuda_ranges *list, cu_address address, size_t bytes) {
  pthread_mutex_lock(&device->lock);
  const rondo_status status = rondo_array_reserve(&device->base.allocator, list, list->count + 1);
  if (status == RONDO_OK) {
    for (size_t i = 0; i < list->count; i++) /* ranges of a list do not overlap */
      assert(address + bytes <= list->items[i].address || list->items[i].address + list->items[i].bytes <= address);
    list->items[list->count++] = (cuda_range){address, bytes, NULL};
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* Removes all that begin in the range. */
static void forget(cuda_device *device, cuda_ranges *list, cu_address address, size_t bytes) {
  pthread_mutex_lock(&device->lock);
  for (size_t i = list->count; i-- > 0;) {
    const cuda_range *at = &list->items[i];
    if (at->address >= address && at->address - address < bytes) list->items[i] = list->items[--list->count];
  }
  pthread_mutex_unlock(&device->lock);
}

/* Address space and physical memory -------------------------------------------------------------------------------- */

/* A lost device has no memory any more, whatever the driver returns. */
static rondo_status check_freeing(cuda_device *device, cu_result code, const char *verb, size_t bytes,
                                  const void *address) {
  const rondo_status status =
      cuda_check(device, code, "%s %zu bytes at %p of device '%s'", verb, bytes, address, device->base.name);
  return cuda_is_lost(device) ? RONDO_OK : status;
}

rondo_status cuda_reserve(rondo_device *base, size_t bytes, size_t alignment, void **out_address) {
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  cu_address address = 0;
  *out_address = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(cuda_check(device, device->api->mem_reserve(&address, bytes, alignment, 0, 0),
                       "reserving %zu bytes of address space on device '%s'", bytes, base->name));
  const rondo_status status = note(device, &device->reservations, address, bytes);
  if (status == RONDO_OK)
    *out_address = (void *)(uintptr_t)address;
  else
    (void)device->api->mem_unreserve(address, bytes); /* the first error is reported */
  return status;
}

/* The list forgets the addresses first: once they are released, another thread may get the same. */
rondo_status cuda_unreserve(rondo_device *base, void *address, size_t bytes) {
  cuda_device *device = cuda_device_of(base);
  const cu_address at = cuda_address(address);
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  pthread_mutex_lock(&device->mapping);
  const rondo_status status = cuda_placeholders_yield(device, (cuda_range){at, bytes, NULL});
  pthread_mutex_unlock(&device->mapping);
  forget(device, &device->reservations, at, bytes);
  RONDO_TRY(status);
  return check_freeing(device, device->api->mem_unreserve(at, bytes), "releasing", bytes, address);
}

/* The amount of free memory is only information. It is 0 if the driver does not say. */
static rondo_status check_physical(cuda_device *device, cu_result code, size_t bytes) {
  char wanted[RONDO_SIZE_TEXT], left[RONDO_SIZE_TEXT];
  size_t free_bytes = 0, total = 0;
  (void)rondo_size_text(wanted, bytes);
  if (code != CU_OUT_OF_MEMORY)
    return cuda_check(device, code, "allocating %s on device '%s'", wanted, device->base.name);
  (void)device->api->mem_get_info(&free_bytes, &total);
  return cuda_check(device, code, "device '%s' has no %s of memory in one piece (%s free)", device->base.name, wanted,
                    rondo_size_text(left, free_bytes));
}

rondo_status cuda_physical_create(rondo_device *base, size_t bytes, rondo_physical_use use, rondo_physical **out) {
  cuda_device *device = cuda_device_of(base);
  const cu_allocation_properties properties = cuda_memory_properties(device);
  cuda_physical *physical;
  CUDA_SCOPE(scope);
  *out = NULL;
  (void)use;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(rondo_allocate_items(&base->allocator, 1, sizeof *physical, &physical));
  physical->base = (rondo_physical){base, bytes};
  const rondo_status status =
      check_physical(device, device->api->mem_create(&physical->handle, bytes, &properties, 0), bytes);
  if (status == RONDO_OK)
    *out = &physical->base;
  else
    rondo_release(&base->allocator, physical, 1, sizeof *physical);
  return status;
}

void cuda_physical_destroy(rondo_physical *base) {
  cuda_physical *physical = (cuda_physical *)base;
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  (void)device->api->mem_release(physical->handle); /* gone already on a lost device */
  rondo_release(&device->base.allocator, physical, 1, sizeof *physical);
}

/* Mappings and access ---------------------------------------------------------------------------------------------- */

enum { MAX_PEERS = 64 };

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

cu_result cuda_set_access(cuda_device *device, cu_address address, size_t bytes, int flags) {
  return set_access(device, address, bytes, flags, who_may_access(device));
}

/* With the mapping lock, so that the list does not change. */
static rondo_status let_access(cuda_device *device, uint64_t peers) {
  for (size_t i = 0; i < device->mappings.count; i++) {
    const cuda_range *at = &device->mappings.items[i];
    const cu_result code = set_access(device, at->address, at->bytes, CU_ACCESS_READ_WRITE, peers);
    RONDO_TRY(cuda_check(device, code, "giving other devices access to %zu bytes of device '%s'", at->bytes,
                         device->base.name));
  }
  return RONDO_OK;
}

/* A device is admitted only after it can access everything that is mapped. Other threads rely on this. */
rondo_status cuda_admit(rondo_device *base, uint64_t peers) {
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  if ((peers & ~who_may_access(device)) == 0) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  pthread_mutex_lock(&device->mapping);
  const uint64_t added = peers & ~who_may_access(device);
  const rondo_status status = added == 0 ? RONDO_OK : let_access(device, added);
  if (status == RONDO_OK) {
    pthread_mutex_lock(&device->lock);
    device->admitted |= added;
    pthread_mutex_unlock(&device->lock);
  }
  pthread_mutex_unlock(&device->mapping);
  return status;
}

/* With the mapping lock. A mapping without access is unmapped again. The first error is reported. */
static rondo_status map(cuda_device *device, cuda_range at, cu_physical physical) {
  RONDO_TRY(cuda_placeholders_yield(device, at));
  RONDO_TRY(cuda_placeholders_reserve_left(device));
  cu_result code = device->api->mem_map(at.address, at.bytes, 0, physical, 0);
  const bool is_mapped = code == CU_OK;
  if (is_mapped) code = cuda_set_access(device, at.address, at.bytes, CU_ACCESS_READ_WRITE);
  const rondo_status status = cuda_check(device, code, "mapping %zu bytes at %p of device '%s'", at.bytes,
                                         (void *)(uintptr_t)at.address, device->base.name);
  if (status == RONDO_OK || !is_mapped) return status;
  rondo_saved_error why;
  rondo_error_save(&why);
  cuda_placeholders_take_back(device, at);
  return rondo_error_raise(&why);
}

/* To all that hold the mapping lock, what is listed is mapped. */
static rondo_status map_and_note(cuda_device *device, cuda_range at, cu_physical physical) {
  RONDO_TRY(note(device, &device->mappings, at.address, at.bytes));
  const rondo_status status = map(device, at, physical);
  if (status != RONDO_OK) forget(device, &device->mappings, at.address, at.bytes);
  return status;
}

rondo_status cuda_map(rondo_device *base, void *address, rondo_physical *physical) {
  cuda_device *device = cuda_device_of(base);
  const cuda_range at = {cuda_address(address), physical->bytes, NULL};
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  pthread_mutex_lock(&device->mapping);
  const rondo_status status = map_and_note(device, at, ((cuda_physical *)physical)->handle);
  pthread_mutex_unlock(&device->mapping);
  if (status != RONDO_OK) return status;
  atomic_fetch_add_explicit(&device->mapped_bytes, at.bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->maps, 1, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status cuda_unmap(rondo_device *base, void *address, size_t bytes) {
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  pthread_mutex_lock(&device->mapping);
  const cu_result code = device->api->mem_unmap(cuda_address(address), bytes);
  const rondo_status status = check_freeing(device, code, "unmapping", bytes, address);
  if (status == RONDO_OK) forget(device, &device->mappings, cuda_address(address), bytes);
  pthread_mutex_unlock(&device->mapping);
  if (status == RONDO_OK) atomic_fetch_sub_explicit(&device->mapped_bytes, bytes, memory_order_relaxed);
  return status;
}

rondo_status cuda_protect(rondo_device *base, void *address, size_t bytes, rondo_protection protection) {
  static const int flags[] = {[RONDO_PROTECT_NONE] = CU_ACCESS_NONE,
                              [RONDO_PROTECT_READ] = CU_ACCESS_READ,
                              [RONDO_PROTECT_READ_WRITE] = CU_ACCESS_READ_WRITE};
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  assert((size_t)protection < sizeof flags / sizeof flags[0]);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = cuda_set_access(device, cuda_address(address), bytes, flags[protection]);
  return cuda_check(device, code, "changing the access to %zu bytes at %p of device '%s'", bytes, address, base->name);
}

/* Host memory ------------------------------------------------------------------------------------------------------ */

rondo_status cuda_host_allocate(rondo_device *base, size_t bytes, void **out_address) {
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  *out_address = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->host_alloc(out_address, bytes, CU_HOST_ALLOC_PORTABLE);
  return cuda_check(device, code, "allocating %zu bytes of pinned host memory for device '%s'", bytes, base->name);
}

void cuda_host_release(rondo_device *base, void *address, size_t bytes) {
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  (void)bytes;
  cuda_enter_to_free(device, &scope);
  (void)device->api->host_free(address); /* gone already on a lost device */
}

bool cuda_has_address(rondo_device *base, const void *address) {
  cuda_device *device = cuda_device_of(base);
  cu_pointer_attribute attributes[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_DEVICE_ORDINAL};
  CUDA_SCOPE(scope);
  unsigned type = 0; /* stays 0 if the driver does not know the address, which is no error here */
  int ordinal = -1;
  void *values[] = {&type, &ordinal};
  if (cuda_is_lost(device) || cuda_enter_for_work(device, &scope) != RONDO_OK) return false;
  const cu_result code = device->api->pointer_get_attributes(2, attributes, values, cuda_address(address));
  return code == CU_OK && type == CU_MEMORY_DEVICE && ordinal == device->ordinal;
}

bool cuda_knows_address(rondo_device *base, const void *address, bool *out_is_device) {
  cuda_device *device = cuda_device_of(base);
  CUDA_SCOPE(scope);
  unsigned type = 0;
  cuda_enter_to_free(device, &scope); /* also on a lost device, where the driver refuses */
  const cu_result code =
      device->api->pointer_get_attribute(&type, CU_POINTER_MEMORY_TYPE, (cu_address)(uintptr_t)address);
  *out_is_device = code == CU_OK && type == CU_MEMORY_DEVICE;
  return code == CU_OK && (type == CU_MEMORY_HOST || type == CU_MEMORY_DEVICE);
}
