/* SPDX-License-Identifier: MIT
 * Placeholder memory: pages that are mapped at addresses of graph memory, so that the driver takes these addresses for
 * a device's memory: while nodes are made, and during a capture. The same few pages are mapped everywhere. No work
 * accesses them, because other pages are mapped there before the nodes run.
 *
 * Invariant: everything happens under the device's mapping lock. Placeholders give way to memory that is mapped for
 * good. If the driver refuses to unmap a placeholder, or a mapping that failed half-way, this is noted in device->left
 * and tried again before anything is mapped. Nothing is mapped over it.
 */
#include "device/cuda/cuda_placeholder_memory.h"

#include <assert.h>

#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_memory.h"
#include "graph/byte_box.h"

/* Setting the access to a mapping costs the same for one page as for many (docs/cuda-probes.md, 35). So long runs are
 * mapped in pieces of this size. */
enum { PIECE_PAGES = 16 };

/* Finding addresses ------------------------------------------------------------------------------------------------ */

/* Whether a range holds the address. *end is lowered to the end of that range, or to the beginning of the next. */
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

/* Whether the address is reserved, not mapped, and without a placeholder. The answer holds up to *out_end, at most
 * `end`. */
static bool find_bare(const cuda_placeholders *self, cu_address address, cu_address end, cu_address *out_end) {
  cuda_device *device = self->device;
  *out_end = end;
  pthread_mutex_lock(&device->lock);
  bool is_bare = find(&device->reservations, address, out_end) && !find(&device->mappings, address, out_end);
  pthread_mutex_unlock(&device->lock);
  const cuda_ranges *const standing[] = {&self->ranges, &device->shown, &device->left};
  for (size_t i = 0; i < 3; i++) is_bare = is_bare && !find(standing[i], address, out_end);
  return is_bare;
}

/* Mapping ---------------------------------------------------------------------------------------------------------- */

rondo_status cuda_placeholders_begin(cuda_device *device, cuda_placeholders *out) {
  const cu_allocation_properties properties = cuda_memory_properties(device);
  *out = (cuda_placeholders){.device = device};
  pthread_mutex_lock(&device->mapping);
  if (device->placeholder != 0) return RONDO_OK;
  return cuda_check(device, device->api->mem_create(&device->placeholder, device->page_bytes, &properties, 0),
                    "making a page of device '%s'", device->base.name);
}

/* Memory for a piece, which lives as long as its mappings. 0 if none is needed or available. */
static cu_physical make_piece(cuda_device *device, size_t bytes, size_t piece_bytes) {
  const cu_allocation_properties properties = cuda_memory_properties(device);
  cu_physical piece = 0;
  if (bytes < piece_bytes) return 0;
  return device->api->mem_create(&piece, piece_bytes, &properties, 0) == CU_OK ? piece : 0;
}

/* Maps `bytes` from mapped->address on. mapped->bytes counts what is mapped. */
static cu_result map_run(cuda_device *device, cuda_range *mapped, size_t bytes) {
  const size_t piece_bytes = PIECE_PAGES * device->page_bytes;
  const cu_physical piece = make_piece(device, bytes, piece_bytes);
  cu_result code = CU_OK;
  while (code == CU_OK && mapped->bytes < bytes) {
    const bool is_piece = piece != 0 && bytes - mapped->bytes >= piece_bytes;
    const size_t next = is_piece ? piece_bytes : device->page_bytes;
    code = device->api->mem_map(mapped->address + mapped->bytes, next, 0, is_piece ? piece : device->placeholder, 0);
    if (code == CU_OK) mapped->bytes += next;
  }
  if (piece != 0) (void)device->api->mem_release(piece); /* without mappings, this frees it */
  return code;
}

/* Reserves capacity to note everything that the driver may refuse to unmap. */
static rondo_status add_range(cuda_placeholders *self, cuda_range at) {
  cuda_device *device = self->device;
  const rondo_allocator *allocator = &device->base.allocator;
  const size_t most_left = device->left.count + device->shown.count + self->ranges.count + 1;
  RONDO_TRY(rondo_array_reserve(allocator, &device->left, most_left));
  RONDO_TRY(rondo_array_reserve(allocator, &self->ranges, self->ranges.count + 1));
  cuda_range *mapped = &self->ranges.items[self->ranges.count++];
  *mapped = (cuda_range){at.address, 0, NULL};
  cu_result code = map_run(device, mapped, at.bytes);
  if (code == CU_OK) code = cuda_set_access(device, at.address, at.bytes, CU_ACCESS_READ_WRITE);
  return cuda_check(device, code, "mapping placeholder pages of device '%s' for %zu bytes of graph memory",
                    device->base.name, at.bytes);
}

rondo_status cuda_placeholders_add(cuda_placeholders *self, const void *memory, size_t bytes) {
  const size_t page_bytes = self->device->page_bytes;
  cu_address from = cuda_address(memory);
  const cu_address end = from + bytes;
  from -= from % page_bytes;
  while (from < end) {
    cu_address next;
    const bool is_bare = find_bare(self, from, end, &next);
    next += (page_bytes - next % page_bytes) % page_bytes;
    assert(next > from);
    if (is_bare) RONDO_TRY(add_range(self, (cuda_range){from, next - from, NULL}));
    from = next;
  }
  return RONDO_OK;
}

rondo_status cuda_placeholders_add_copy(cuda_placeholders *self, const rondo_copy *copy) {
  RONDO_TRY(cuda_placeholders_add(self, copy->src, rondo_copy_src_bytes(copy)));
  return cuda_placeholders_add(self, copy->dst, rondo_copy_dst_bytes(copy));
}

/* Unmapping -------------------------------------------------------------------------------------------------------- */

/* A lost device has no mappings, whatever the driver returns. */
static bool unmap(cuda_device *device, cuda_range at) {
  const cu_result code = at.bytes > 0 ? device->api->mem_unmap(at.address, at.bytes) : CU_OK;
  return cuda_check(device, code, "unmapping placeholder pages of device '%s'", device->base.name) == RONDO_OK ||
         cuda_is_lost(device);
}

/* What cannot be unmapped now is tried again later. */
static void unmap_or_note(cuda_device *device, cuda_range at) {
  if (unmap(device, at)) return;
  assert(device->left.count < device->left.capacity); /* reserved before it was mapped */
  device->left.items[device->left.count++] = at;
}

static bool do_overlap(cuda_range a, cuda_range b) {
  return a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

/* Unmaps placeholders of captures there. If `at` has an owner, only those of the owner. */
static void take_back(cuda_device *device, cuda_range at) {
  for (size_t i = device->shown.count; i-- > 0;) {
    const cuda_range shown = device->shown.items[i];
    if (!do_overlap(shown, at) || (at.owner != NULL && at.owner != shown.owner)) continue;
    device->shown.items[i] = device->shown.items[--device->shown.count];
    unmap_or_note(device, shown);
  }
}

/* Unmaps what was left there. Fails if the driver refuses. */
static rondo_status clear_left(cuda_device *device, cuda_range at) {
  for (size_t i = device->left.count; i-- > 0;) {
    const cuda_range left = device->left.items[i];
    if (!do_overlap(left, at)) continue;
    if (!unmap(device, left))
      return rondo_fail_context(rondo_last_error()->status, "%zu bytes at %p are still mapped to what was there before",
                                at.bytes, (void *)(uintptr_t)at.address);
    device->left.items[i] = device->left.items[--device->left.count];
  }
  return RONDO_OK;
}

rondo_status cuda_placeholders_yield(cuda_device *device, cuda_range at) {
  for (size_t i = device->left.count; i-- > 0;) {
    if (unmap(device, device->left.items[i])) device->left.items[i] = device->left.items[--device->left.count];
  }
  take_back(device, at);
  return clear_left(device, at);
}

rondo_status cuda_placeholders_reserve_left(cuda_device *device) {
  const size_t most_left = device->left.count + device->shown.count + 1;
  return rondo_array_reserve(&device->base.allocator, &device->left, most_left);
}

void cuda_placeholders_take_back(cuda_device *device, cuda_range at) { unmap_or_note(device, at); }

void cuda_placeholders_end(cuda_placeholders *self) {
  for (size_t i = 0; i < self->ranges.count; i++) unmap_or_note(self->device, self->ranges.items[i]);
  pthread_mutex_unlock(&self->device->mapping);
  rondo_array_free(&self->device->base.allocator, &self->ranges);
}

rondo_status cuda_placeholders_keep(cuda_placeholders *self, cuda_ranges *kept) {
  cuda_device *device = self->device;
  const rondo_allocator *allocator = &device->base.allocator;
  const size_t count = self->ranges.count;
  rondo_status status = rondo_array_reserve(allocator, &device->shown, device->shown.count + count);
  if (status == RONDO_OK) status = rondo_array_reserve(allocator, kept, kept->count + count);
  for (size_t i = 0; i < count && status == RONDO_OK; i++) {
    self->ranges.items[i].owner = kept;
    device->shown.items[device->shown.count++] = kept->items[kept->count++] = self->ranges.items[i];
  }
  if (status == RONDO_OK) self->ranges.count = 0;
  cuda_placeholders_end(self);
  return status;
}

void cuda_placeholders_drop(cuda_device *device, cuda_ranges *kept) {
  pthread_mutex_lock(&device->mapping);
  for (size_t i = 0; i < kept->count; i++) take_back(device, kept->items[i]);
  pthread_mutex_unlock(&device->mapping);
  rondo_array_free(&device->base.allocator, kept);
}

void cuda_placeholders_free(cuda_device *device) {
  if (device->placeholder != 0) (void)device->api->mem_release(device->placeholder); /* gone already on a lost device */
}
