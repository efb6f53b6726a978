/* SPDX-License-Identifier: MIT
 * Copies and fills of the fake driver, as bytes on the host. An address in a reservation is device memory, which must
 * be mapped and accessible. Any other address is host memory.
 */
#include <string.h>

#include "fake_cuda/fake.h"

/* One side of a copy. */
typedef struct side {
  uint64_t start; /* of the first row */
  size_t pitch, slice;
  size_t bytes; /* from the first to the last */
  int type;
  bool is_device;
} side;

static size_t extent_of(const cu_copy *copy, size_t pitch, size_t slice) {
  const size_t rows = copy->height > 1 ? copy->height - 1 : 0, slices = copy->depth > 1 ? copy->depth - 1 : 0;
  return slices * slice + rows * pitch + copy->width;
}

static side source_of(const cu_copy *copy) {
  const uint64_t base = copy->src_type == CU_MEMORY_HOST ? fake_handle(copy->src_host) : copy->src_device;
  const size_t slice = copy->src_pitch * copy->src_height;
  const uint64_t start = base + copy->src_x + copy->src_y * copy->src_pitch + copy->src_z * slice;
  return (side){start,          copy->src_pitch,
                slice,          extent_of(copy, copy->src_pitch, slice),
                copy->src_type, fake_memory_is_device(start)};
}

static side destination_of(const cu_copy *copy) {
  const uint64_t base = copy->dst_type == CU_MEMORY_HOST ? fake_handle(copy->dst_host) : copy->dst_device;
  const size_t slice = copy->dst_pitch * copy->dst_height;
  const uint64_t start = base + copy->dst_x + copy->dst_y * copy->dst_pitch + copy->dst_z * slice;
  return (side){start,          copy->dst_pitch,
                slice,          extent_of(copy, copy->dst_pitch, slice),
                copy->dst_type, fake_memory_is_device(start)};
}

static bool is_side_good(const cu_copy *copy, side s, size_t height) {
  if (s.start == 0) return false;
  if (s.type != CU_MEMORY_HOST && s.type != CU_MEMORY_DEVICE && s.type != CU_MEMORY_UNIFIED) return false;
  if (s.type == CU_MEMORY_HOST && s.is_device) return false;
  if (s.type == CU_MEMORY_DEVICE && (!s.is_device || fake_memory_presence(s.start, 1) == FAKE_ABSENT)) return false;
  if (copy->height > 1 && s.pitch != 0 && s.pitch < copy->width) return false;
  return copy->depth <= 1 || height == 0 || height >= copy->height;
}

cu_result fake_copy_check(const cu_copy *copy) {
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return CU_INVALID_VALUE;
  if (copy->src_lod != 0 || copy->dst_lod != 0 || copy->reserved_source != NULL || copy->reserved_destination != NULL)
    return CU_INVALID_VALUE;
  if (copy->height > 1 && (copy->src_pitch == 0 || copy->dst_pitch == 0)) return CU_INVALID_VALUE;
  if (copy->depth > 1 && (copy->src_height == 0 || copy->dst_height == 0)) return CU_INVALID_VALUE;
  if (!is_side_good(copy, source_of(copy), copy->src_height)) return CU_INVALID_VALUE;
  return is_side_good(copy, destination_of(copy), copy->dst_height) ? CU_OK : CU_INVALID_VALUE;
}

fake_presence fake_copy_presence(const cu_copy *copy) {
  const side from = source_of(copy), to = destination_of(copy);
  const fake_presence one = fake_memory_presence(from.start, from.bytes);
  const fake_presence other = fake_memory_presence(to.start, to.bytes);
  return one < other ? one : other;
}

bool fake_copy_names(const cu_copy *copy, uint64_t address, size_t bytes) {
  const uint64_t from = source_of(copy).start, to = destination_of(copy).start;
  return (from >= address && from - address < bytes) || (to >= address && to - address < bytes);
}

bool fake_copy_is_1d(const cu_copy *copy) { return copy->height == 1 && copy->depth == 1; }

bool fake_copy_is_alike(const cu_copy *one, const cu_copy *other) {
  return source_of(one).is_device == source_of(other).is_device &&
         destination_of(one).is_device == destination_of(other).is_device;
}

static void *pointer_to(uint64_t address) { return (void *)(uintptr_t)address; }

/* With fake_mappings_lock. */
static bool copy_row(const fake_device *device, const cu_copy *copy, side from, side to, size_t y, size_t z) {
  const uint64_t src = from.start + y * from.pitch + z * from.slice;
  const uint64_t dst = to.start + y * to.pitch + z * to.slice;
  if (!fake_memory_allows(device, src, copy->width, false) || !fake_memory_allows(device, dst, copy->width, true))
    return false;
  memmove(pointer_to(dst), pointer_to(src), copy->width);
  return true;
}

bool fake_copy_run(const fake_device *device, const cu_copy *copy) {
  bool is_good = true;
  pthread_rwlock_rdlock(&fake_mappings_lock);
  const side from = source_of(copy), to = destination_of(copy);
  for (size_t z = 0; z < copy->depth && is_good; z++) {
    for (size_t y = 0; y < copy->height && is_good; y++) is_good = copy_row(device, copy, from, to, y, z);
  }
  pthread_rwlock_unlock(&fake_mappings_lock);
  return is_good;
}

static void fill_row(void *row, const cu_memset_params *fill) {
  unsigned char *bytes = row;
  for (size_t i = 0; i < fill->width; i++) {
    const uint16_t half = (uint16_t)fill->value;
    if (fill->element_bytes == 1) bytes[i] = (unsigned char)fill->value;
    if (fill->element_bytes == 2) memcpy(bytes + 2 * i, &half, sizeof half);
    if (fill->element_bytes == 4) memcpy(bytes + 4 * i, &fill->value, sizeof fill->value);
  }
}

bool fake_fill_run(const fake_device *device, const cu_memset_params *fill) {
  bool is_good = true;
  pthread_rwlock_rdlock(&fake_mappings_lock);
  for (size_t y = 0; y < fill->height && is_good; y++) {
    const uint64_t row = fill->dst + y * fill->pitch;
    is_good = fake_memory_allows(device, row, fill->width * fill->element_bytes, true);
    if (is_good) fill_row(pointer_to(row), fill);
  }
  pthread_rwlock_unlock(&fake_mappings_lock);
  return is_good;
}
