/* SPDX-License-Identifier: MIT
 * See copy_list.h.
 */
#include "exec/stream/copy_list.h"

#include <assert.h>

#include "exec/stream/stream_internal.h"

/* On the host, a launch takes as long as two or three copies or fills. The kernel is also complete before a few copies
 * by the copy engine are (`rondo_bench copies --host`, bench/results/2026-11-23-h200-feed.md). For many bytes the
 * difference is small compared with the copying itself, and the copy engine leaves the multiprocessors to other work.
 * The same is true if a kernel would copy byte by byte. */
enum { MOST_BYTES_BY_KERNEL = 2 << 20, MOST_BYTES_ONE_BY_ONE = 16 << 10, WORD = 4 };

void rondo_copy_list_begin(rondo_copy_list *list, rondo_stream *stream, size_t bytes) {
  const rondo_device *device = stream->device;
  assert(rondo_stream_capture(stream) == NULL);
  list->stream = stream;
  list->kernel = NULL;
  list->bytes = list->largest = list->ranges.count = 0;
  if (bytes <= MOST_BYTES_BY_KERNEL && device->ops->queued_copy_kernel != NULL)
    list->kernel = device->ops->queued_copy_kernel(device);
}

static rondo_status launch(rondo_copy_list *list) {
  const rondo_device *device = list->stream->device;
  assert(list->ranges.count > 0 && list->largest <= list->bytes);
  const rondo_grid grid = {.x = device->ops->queued_copy_blocks(device, list->bytes, list->largest),
                           .y = (uint32_t)list->ranges.count,
                           .z = 1};
  const rondo_status status = rondo_launch(list->stream, list->kernel, grid, RONDO_ARGS(&list->ranges));
  list->bytes = list->largest = list->ranges.count = 0;
  return status;
}

static rondo_status add(rondo_copy_list *list, void *dst, const void *src, size_t bytes) {
  assert(bytes > 0 && list->ranges.count < RONDO_MOST_QUEUED_RANGES);
  list->ranges.ranges[list->ranges.count++] = (rondo_range_copy){.dst = dst, .src = src, .bytes = bytes};
  list->bytes += bytes;
  if (bytes > list->largest) list->largest = bytes;
  return list->ranges.count < RONDO_MOST_QUEUED_RANGES ? RONDO_OK : launch(list);
}

static bool is_one_by_one(const void *dst, const void *src) { return ((uintptr_t)dst ^ (uintptr_t)src) % WORD != 0; }

rondo_status rondo_copy_list_add(rondo_copy_list *list, void *dst, const void *src, size_t bytes) {
  const bool is_slow = bytes > MOST_BYTES_ONE_BY_ONE && is_one_by_one(dst, src);
  return list->kernel == NULL || is_slow ? rondo_copy_async(list->stream, dst, src, bytes) : add(list, dst, src, bytes);
}

rondo_status rondo_copy_list_add_zeros(rondo_copy_list *list, void *dst, size_t bytes) {
  if (list->kernel != NULL) return add(list, dst, NULL, bytes);
  const rondo_fill zeros = {.dst = dst, .element_bytes = 1, .width = bytes};
  return rondo_fill_async(list->stream, &zeros);
}

rondo_status rondo_copy_list_end(rondo_copy_list *list) { return list->ranges.count == 0 ? RONDO_OK : launch(list); }
