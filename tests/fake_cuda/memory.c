/* SPDX-License-Identifier: MIT
 * Memory of the fake driver. Address space is reserved without access. Physical memory is an anonymous file, mapped
 * shared into a reservation. Access is given per device, by page protection. The driver's refusals are each recorded as
 * a violation: sizes and addresses of whole granules, offset 0, no double mapping, whole mappings.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_cuda/fake.h"

typedef struct physical {
  fake_object object; /* in the table until it is released */
  fake_device *device;
  uint64_t bytes;
  int file;
  unsigned references; /* the handle's and those of mappings */
} physical;

typedef struct mapping {
  fake_object object;
  struct mapping *next; /* of the reservation, by address */
  uint64_t start, bytes;
  physical *memory;
  int access[FAKE_MAX_DEVICES]; /* CU_ACCESS_ */
} mapping;

typedef struct reservation {
  fake_object object;
  struct reservation *next;
  uint64_t start, bytes;
  mapping *mappings;
} reservation;

typedef struct host_memory {
  fake_object object;
  void *address;
  size_t bytes;
  struct host_memory *next, **link;
} host_memory;

enum { NO_MAPPING = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, HOST_ALIGNMENT = 4096, HOST_FLAGS = 7 };

pthread_rwlock_t fake_mappings_lock = PTHREAD_RWLOCK_INITIALIZER;
static reservation *reservations;
static host_memory *host_memories;

static bool is_granular(uint64_t number) { return number % FAKE_GRANULARITY == 0; }
static void *pointer_to(uint64_t address) { return (void *)(uintptr_t)address; }

/* The reservation that holds the whole range. */
static reservation *find_reservation(uint64_t address, uint64_t bytes) {
  for (reservation *r = reservations; r != NULL; r = r->next) {
    if (address >= r->start && bytes <= r->bytes && address - r->start <= r->bytes - bytes) return r;
  }
  return NULL;
}

/* The first mapping that ends after `address`. */
static mapping *first_after(const reservation *r, uint64_t address) {
  mapping *m = r->mappings;
  while (m != NULL && m->start + m->bytes <= address) m = m->next;
  return m;
}

/* Whether mappings cover the range without a hole, from the beginning of one to the end of one. */
static bool covers_whole(const reservation *r, uint64_t address, uint64_t bytes) {
  const mapping *m = first_after(r, address);
  const uint64_t end = address + bytes;
  if (m == NULL || m->start != address) return false;
  while (m != NULL && m->start == address && address < end) {
    address += m->bytes;
    m = m->next;
  }
  return address == end;
}

/* Of the device whose memory is there; -1 for none. */
static int ordinal_of(uint64_t address) {
  const reservation *r = find_reservation(address, 1);
  const mapping *m = r != NULL ? first_after(r, address) : NULL;
  return m != NULL && m->start <= address ? m->memory->device->ordinal : -1;
}

bool fake_memory_is_device(uint64_t address) {
  return find_reservation(address, 1) != NULL || fake_symbol_contains(address);
}

fake_presence fake_memory_presence(uint64_t address, size_t bytes) {
  const reservation *r = find_reservation(address, 1);
  if (r == NULL || r->object.handle == 0) return FAKE_PRESENT;
  const mapping *m = first_after(r, address);
  uint64_t end = address;
  for (; m != NULL && m->start <= end && end - address < bytes; m = m->next) end = m->start + m->bytes;
  if (end == address) return FAKE_ABSENT;
  return end - address >= bytes ? FAKE_PRESENT : FAKE_PARTLY_PRESENT;
}

bool fake_memory_allows(const fake_device *device, uint64_t address, size_t bytes, bool writes) {
  const reservation *r = find_reservation(address, 1);
  const int wanted = writes ? CU_ACCESS_READ_WRITE : CU_ACCESS_READ;
  if (r == NULL) return true;
  const mapping *m = first_after(r, address);
  uint64_t end = address;
  while (m != NULL && m->start <= end && (m->access[device->ordinal] & wanted) == wanted) {
    end = m->start + m->bytes;
    if (end - address >= bytes) return true;
    m = m->next;
  }
  return false;
}

static bool are_properties_good(const cu_allocation_properties *properties) {
  return properties != NULL && properties->type == CU_ALLOCATION_PINNED && properties->handle_types == 0 &&
         properties->location.type == CU_LOCATION_DEVICE;
}

cu_result fake_mem_granularity(size_t *bytes, const cu_allocation_properties *properties, cu_granularity option) {
  cu_result code = fake_begin(CALL_mem_granularity, FAKE_ANYWHERE);
  if (code == CU_OK && (bytes == NULL || !are_properties_good(properties) || option > 1)) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_device_at(properties->location.id) == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) *bytes = FAKE_GRANULARITY;
  return fake_end(code);
}

/* Address space aligned to `alignment`; 0 when the system has none. */
static uint64_t reserve_space(uint64_t bytes, uint64_t alignment) {
  if (bytes > INT64_MAX - alignment) return 0;
  void *found = mmap(NULL, bytes + alignment, PROT_NONE, NO_MAPPING, -1, 0);
  if (found == MAP_FAILED) return 0;
  const uint64_t start = fake_handle(found);
  const uint64_t aligned = (start + alignment - 1) / alignment * alignment;
  if (aligned > start) (void)munmap(found, aligned - start);
  const uint64_t after = start + alignment - aligned;
  if (after > 0) (void)munmap(pointer_to(aligned + bytes), after);
  return aligned;
}

/* NULL when there is no address space. */
static reservation *reserve(uint64_t bytes, uint64_t alignment) {
  const uint64_t start = reserve_space(bytes, alignment > FAKE_GRANULARITY ? alignment : FAKE_GRANULARITY);
  if (start == 0) return NULL;
  reservation *r = fake_allocate(1, sizeof *r);
  r->start = start;
  r->bytes = bytes;
  pthread_rwlock_wrlock(&fake_mappings_lock);
  r->next = reservations;
  reservations = r;
  pthread_rwlock_unlock(&fake_mappings_lock);
  return r;
}

cu_result fake_mem_reserve(cu_address *address, size_t bytes, size_t alignment, cu_address hint,
                           unsigned long long flags) {
  cu_result code = fake_begin(CALL_mem_reserve, FAKE_ANYWHERE);
  const bool is_good = address != NULL && bytes > 0 && is_granular(bytes) && (alignment & (alignment - 1)) == 0 &&
                       hint % HOST_ALIGNMENT == 0 && flags == 0;
  if (code == CU_OK && !is_good)
    code = fake_violation(CU_INVALID_VALUE, "cuMemAddressReserve of %zu bytes, alignment %zu", bytes, alignment);
  reservation *r = code == CU_OK ? reserve(bytes, alignment) : NULL;
  if (code == CU_OK && r == NULL) code = CU_OUT_OF_MEMORY;
  if (r != NULL) {
    fake_object_add(&r->object, FAKE_CUDA_RESERVATION, NULL);
    *address = r->start;
  }
  return fake_end(code);
}

static void unreserve(reservation *r) {
  reservation **place = &reservations;
  pthread_rwlock_wrlock(&fake_mappings_lock);
  while (*place != r) place = &(*place)->next;
  *place = r->next;
  (void)munmap(pointer_to(r->start), r->bytes);
  pthread_rwlock_unlock(&fake_mappings_lock);
  if (r->object.handle != 0) fake_object_remove(&r->object);
  free(r);
}

cu_result fake_mem_unreserve(cu_address address, size_t bytes) {
  cu_result code = fake_begin(CALL_mem_unreserve, FAKE_WHEN_LOST);
  reservation *r = code == CU_OK ? find_reservation(address, bytes) : NULL;
  const bool is_whole = r != NULL && r->start == address && r->bytes == bytes && r->mappings == NULL;
  if (code == CU_OK && !is_whole)
    code = fake_violation(CU_INVALID_VALUE, "cuMemAddressFree of 0x%llx, %zu bytes: %s", address, bytes,
                          r != NULL && r->mappings != NULL ? "something is mapped in it" : "not what was reserved");
  if (code == CU_OK) unreserve(r);
  return fake_end(code);
}

/* NULL when there is no memory. */
static physical *create(uint64_t bytes, fake_device *device) {
  if (bytes > device->memory || device->used > device->memory - bytes) return NULL;
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0) return NULL;
  if (ftruncate(file, (off_t)bytes) != 0) {
    (void)close(file);
    return NULL;
  }
  physical *memory = fake_allocate(1, sizeof *memory);
  memory->device = device;
  memory->bytes = bytes;
  memory->file = file;
  memory->references = 1;
  device->used += bytes;
  return memory;
}

cu_result fake_mem_create(cu_physical *handle, size_t bytes, const cu_allocation_properties *properties,
                          unsigned long long flags) {
  cu_result code = fake_begin(CALL_mem_create, FAKE_ANYWHERE);
  const bool is_good = handle != NULL && are_properties_good(properties) && bytes > 0 && is_granular(bytes) &&
                       flags == 0 && bytes <= INT64_MAX;
  if (code == CU_OK && !is_good) code = fake_violation(CU_INVALID_VALUE, "cuMemCreate of %zu bytes", bytes);
  fake_device *device = code == CU_OK ? fake_device_at(properties->location.id) : NULL;
  if (code == CU_OK && device == NULL) code = CU_INVALID_DEVICE;
  if (code == CU_OK) code = device->context.lost;
  physical *memory = code == CU_OK ? create(bytes, device) : NULL;
  if (code == CU_OK && memory == NULL) code = CU_OUT_OF_MEMORY;
  if (memory != NULL) {
    fake_object_add(&memory->object, FAKE_CUDA_PHYSICAL, NULL);
    *handle = memory->object.handle;
  }
  return fake_end(code);
}

static void release(physical *memory) {
  if (--memory->references > 0) return;
  memory->device->used -= memory->bytes;
  (void)close(memory->file);
  free(memory);
}

cu_result fake_mem_release(cu_physical handle) {
  cu_result code = fake_begin(CALL_mem_release, FAKE_WHEN_LOST);
  physical *memory = code == CU_OK ? fake_need(FAKE_CUDA_PHYSICAL, handle) : NULL;
  if (code == CU_OK && memory == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) {
    fake_object_remove(&memory->object);
    release(memory);
  }
  return fake_end(code);
}

static void add_mapping(reservation *r, mapping *m) {
  mapping **place = &r->mappings;
  while (*place != NULL && (*place)->start < m->start) place = &(*place)->next;
  m->next = *place;
  *place = m;
  m->memory->references++;
  if (r->object.handle != 0) fake_object_add(&m->object, FAKE_CUDA_MAPPING, NULL);
}

static cu_result map(reservation *r, uint64_t address, uint64_t bytes, physical *memory) {
  cu_result code = CU_OK;
  pthread_rwlock_wrlock(&fake_mappings_lock);
  void *mapped = mmap(pointer_to(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file, 0);
  if (mapped == MAP_FAILED) code = CU_OUT_OF_MEMORY;
  if (code == CU_OK) {
    mapping *m = fake_allocate(1, sizeof *m);
    m->start = address;
    m->bytes = bytes;
    m->memory = memory;
    add_mapping(r, m);
  }
  pthread_rwlock_unlock(&fake_mappings_lock);
  return code;
}

static cu_result check_map(const reservation *r, uint64_t address, uint64_t bytes, const physical *memory) {
  const char *fault = NULL;
  const mapping *there = r != NULL ? first_after(r, address) : NULL;
  if (bytes == 0 || !is_granular(bytes) || !is_granular(address)) fault = "not of whole granules";
  if (fault == NULL && r == NULL) fault = "not inside one reservation";
  if (fault == NULL && memory == NULL) fault = "no such physical memory";
  if (fault == NULL && bytes > memory->bytes) fault = "larger than the physical memory";
  if (fault == NULL && there != NULL && there->start < address + bytes) fault = "something is mapped there";
  if (fault == NULL && bytes < memory->bytes)
    return fake_violation(CU_NOT_SUPPORTED, "cuMemMap of a part of physical memory");
  if (fault == NULL) return memory->device->context.lost;
  return fake_violation(CU_INVALID_VALUE, "cuMemMap of %" PRIu64 " bytes at 0x%" PRIx64 ": %s", bytes, address, fault);
}

cu_result fake_mem_map(cu_address address, size_t bytes, size_t offset, cu_physical handle, unsigned long long flags) {
  cu_result code = fake_begin(CALL_mem_map, FAKE_ANYWHERE);
  if (code == CU_OK && (offset != 0 || flags != 0))
    code = fake_violation(CU_INVALID_VALUE, "cuMemMap with offset %zu, flags %llu", offset, flags);
  if (code != CU_OK) return fake_end(code);
  reservation *r = find_reservation(address, bytes);
  physical *memory = fake_need(FAKE_CUDA_PHYSICAL, handle);
  code = check_map(r, address, bytes, memory);
  if (code == CU_OK) code = map(r, address, bytes, memory);
  return fake_end(code);
}

/* The mappings of a range that they cover whole. */
static cu_result unmap(reservation *r, uint64_t address, uint64_t bytes) {
  cu_result code = CU_OK;
  mapping **place = &r->mappings;
  pthread_rwlock_wrlock(&fake_mappings_lock);
  if (mmap(pointer_to(address), bytes, PROT_NONE, NO_MAPPING | MAP_FIXED, -1, 0) == MAP_FAILED) code = CU_OUT_OF_MEMORY;
  while (code == CU_OK && *place != NULL) {
    mapping *m = *place;
    if (m->start < address || m->start >= address + bytes) {
      place = &m->next;
      continue;
    }
    *place = m->next;
    if (m->object.handle != 0) fake_object_remove(&m->object);
    release(m->memory);
    free(m);
  }
  pthread_rwlock_unlock(&fake_mappings_lock);
  return code;
}

cu_result fake_mem_unmap(cu_address address, size_t bytes) {
  cu_result code = fake_begin(CALL_mem_unmap, FAKE_WHEN_LOST);
  reservation *r = code == CU_OK ? find_reservation(address, bytes) : NULL;
  if (code == CU_OK && (r == NULL || bytes == 0 || !covers_whole(r, address, bytes)))
    code = fake_violation(CU_INVALID_VALUE, "cuMemUnmap of %zu bytes at 0x%llx: not whole mappings", bytes, address);
  if (code == CU_OK) code = unmap(r, address, bytes);
  return fake_end(code);
}

/* Page protection is the sum of what devices may do. */
static cu_result protect(const mapping *m) {
  int all = CU_ACCESS_NONE;
  for (int i = 0; i < FAKE_MAX_DEVICES; i++) all |= m->access[i];
  int protection = PROT_NONE;
  if (all == CU_ACCESS_READ) protection = PROT_READ;
  if (all == CU_ACCESS_READ_WRITE) protection = PROT_READ | PROT_WRITE;
  return mprotect(pointer_to(m->start), m->bytes, protection) == 0 ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result set_access(const reservation *r, uint64_t address, uint64_t bytes, const cu_access *access,
                            size_t count) {
  cu_result code = CU_OK;
  pthread_rwlock_wrlock(&fake_mappings_lock);
  for (mapping *m = first_after(r, address); m != NULL && m->start < address + bytes; m = m->next) {
    for (size_t i = 0; i < count; i++) m->access[access[i].location.id] = access[i].flags;
    if (code == CU_OK) code = protect(m);
  }
  pthread_rwlock_unlock(&fake_mappings_lock);
  return code;
}

static cu_result check_access(const cu_access *access, size_t count) {
  if (access == NULL || count == 0) return CU_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    const int flags = access[i].flags;
    if (access[i].location.type != CU_LOCATION_DEVICE) return CU_INVALID_VALUE;
    if (fake_device_at(access[i].location.id) == NULL) return CU_INVALID_DEVICE;
    if (flags != CU_ACCESS_NONE && flags != CU_ACCESS_READ && flags != CU_ACCESS_READ_WRITE) return CU_INVALID_VALUE;
    if (fake_devices[access[i].location.id].context.lost != CU_OK)
      return fake_devices[access[i].location.id].context.lost;
  }
  return CU_OK;
}

cu_result fake_mem_set_access(cu_address address, size_t bytes, const cu_access *access, size_t count) {
  cu_result code = fake_begin(CALL_mem_set_access, FAKE_ANYWHERE);
  if (code == CU_OK) code = check_access(access, count);
  const reservation *r = code == CU_OK ? find_reservation(address, bytes) : NULL;
  if (code == CU_OK && (r == NULL || bytes == 0 || !covers_whole(r, address, bytes)))
    code =
        fake_violation(CU_INVALID_VALUE, "cuMemSetAccess of %zu bytes at 0x%llx: not whole mappings", bytes, address);
  if (code == CU_OK) code = set_access(r, address, bytes, access, count);
  return fake_end(code);
}

cu_result fake_mem_get_info(size_t *free_bytes, size_t *total) {
  cu_result code = fake_begin(CALL_mem_get_info, FAKE_IN_CONTEXT);
  if (code == CU_OK && (free_bytes == NULL || total == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) {
    const fake_device *device = fake_self.current->device;
    *total = device->memory;
    *free_bytes = device->memory > device->used ? device->memory - device->used : 0;
  }
  return fake_end(code);
}

cu_result fake_host_alloc(void **address, size_t bytes, unsigned flags) {
  cu_result code = fake_begin(CALL_host_alloc, FAKE_IN_CONTEXT);
  void *memory = NULL;
  if (code == CU_OK && (address == NULL || bytes == 0 || flags > HOST_FLAGS)) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_gate_unsafe();
  if (code == CU_OK && posix_memalign(&memory, HOST_ALIGNMENT, bytes) != 0) code = CU_OUT_OF_MEMORY;
  if (code == CU_OK) {
    host_memory *kept = fake_allocate(1, sizeof *kept);
    kept->address = memory;
    kept->bytes = bytes;
    kept->next = host_memories;
    kept->link = &host_memories;
    if (kept->next != NULL) kept->next->link = &kept->next;
    host_memories = kept;
    fake_object_add_at(&kept->object, FAKE_CUDA_HOST_MEMORY, fake_self.current, fake_handle(memory));
    *address = memory;
  }
  return fake_end(code);
}

static void free_host(host_memory *memory) {
  fake_object_remove(&memory->object);
  *memory->link = memory->next;
  if (memory->next != NULL) memory->next->link = memory->link;
  free(memory->address);
  free(memory);
}

cu_result fake_host_free(void *address) {
  cu_result code = fake_begin(CALL_host_free, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  host_memory *memory = code == CU_OK ? fake_need(FAKE_CUDA_HOST_MEMORY, fake_handle(address)) : NULL;
  if (code == CU_OK && memory == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_gate_unsafe();
  if (code == CU_OK) fake_context_drain(fake_self.current); /* docs/cuda-probes.md, 22 */
  if (code == CU_OK) free_host(memory);
  return fake_end(code);
}

bool fake_memory_is_page_locked(uint64_t address) {
  for (const host_memory *at = host_memories; at != NULL; at = at->next)
    if (address - (uint64_t)(uintptr_t)at->address < at->bytes) return true;
  return false;
}

static cu_result give_attribute(cu_pointer_attribute attribute, cu_address address, void *value) {
  const bool is_device = fake_memory_is_device(address), is_there = is_device || fake_memory_is_page_locked(address);
  const unsigned type = is_device ? CU_MEMORY_DEVICE : CU_MEMORY_HOST;
  switch (attribute) {
    case CU_POINTER_MEMORY_TYPE:
      *(unsigned *)value = is_there ? type : 0;
      return CU_OK;
    case CU_POINTER_DEVICE_ORDINAL:
      *(int *)value = is_there ? ordinal_of(address) : 0;
      return CU_OK;
    default:
      return CU_INVALID_VALUE;
  }
}

cu_result fake_pointer_get_attribute(void *value, cu_pointer_attribute attribute, cu_address address) {
  cu_result code = fake_begin(CALL_pointer_get_attribute, FAKE_IN_CONTEXT);
  if (code == CU_OK && value == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && !fake_memory_is_device(address) && !fake_memory_is_page_locked(address)) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = give_attribute(attribute, address, value);
  return fake_end(code);
}

/* Unlike the one above, it takes any address. */
cu_result fake_pointer_get_attributes(unsigned count, cu_pointer_attribute *attributes, void **values,
                                      cu_address address) {
  cu_result code = fake_begin(CALL_pointer_get_attributes, FAKE_IN_CONTEXT);
  if (code == CU_OK && (count == 0 || attributes == NULL || values == NULL)) code = CU_INVALID_VALUE;
  for (unsigned i = 0; code == CU_OK && i < count; i++) code = give_attribute(attributes[i], address, values[i]);
  return fake_end(code);
}

uint64_t fake_memory_hold(uint64_t bytes) {
  const reservation *r = reserve(bytes, 0);
  return r != NULL ? r->start : 0;
}

cu_result fake_memory_back(uint64_t address, uint64_t bytes, fake_device *device) {
  const cu_access access = {{CU_LOCATION_DEVICE, device->ordinal}, CU_ACCESS_READ_WRITE};
  reservation *r = find_reservation(address, bytes);
  physical *memory = create(bytes, device);
  if (memory == NULL) return CU_OUT_OF_MEMORY;
  cu_result code = map(r, address, bytes, memory);
  if (code == CU_OK) code = set_access(r, address, bytes, &access, 1);
  release(memory);
  return code;
}

void fake_memory_drop(uint64_t address) {
  reservation *r = find_reservation(address, 1);
  if (r->mappings != NULL) (void)unmap(r, r->start, r->bytes);
  unreserve(r);
}

size_t fake_memory_mappings(int device) {
  size_t sum = 0;
  for (const reservation *r = reservations; r != NULL; r = r->next) {
    for (const mapping *m = r->mappings; m != NULL; m = m->next) sum += m->memory->device->ordinal == device;
  }
  return sum;
}

void fake_memory_reset(void) {
  void *object;
  while (reservations != NULL) {
    reservation *r = reservations;
    while (r->mappings != NULL) (void)unmap(r, r->mappings->start, r->mappings->bytes);
    unreserve(r);
  }
  while ((object = fake_any(FAKE_CUDA_PHYSICAL)) != NULL) {
    fake_object_remove(object);
    release(object);
  }
  while ((object = fake_any(FAKE_CUDA_HOST_MEMORY)) != NULL) free_host(object);
}
