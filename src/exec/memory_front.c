/* SPDX-License-Identifier: MIT
 * Memory as users see it: the calls that act at once pass the gate of captures (C9), those in stream order become nodes
 * while the stream captures (C15).
 */
#include <rondo/memory.h>

#include "base/versioned.h"
#include "exec/capture_internal.h"

/* The checks of a call that acts at once. */
static rondo_status enter_at_once(const char *call, rondo_device *device, rondo_device_memory **out) {
  RONDO_TRY(rondo_front(call, "the device", device));
  RONDO_TRY(rondo_capture_refuse_unsafe(call));
  return rondo_device_memory_of(device, out);
}

static rondo_status check_request(const char *call, size_t bytes, void **out_address) {
  if (out_address == NULL) return rondo_refuse_null(call, "out_address");
  *out_address = NULL;
  if (bytes > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "%s: an allocation of 0 bytes: ask for at least 1, or leave it out", call);
}

rondo_status rondo_malloc(rondo_device *device, size_t bytes, const char *name, void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(check_request("rondo_malloc", bytes, out_address));
  RONDO_TRY(enter_at_once("rondo_malloc", device, &memory));
  return rondo_memory_allocate(memory, NULL, bytes, name, out_address);
}

rondo_status rondo_free(rondo_device *device, void *address) {
  rondo_device_memory *memory;
  if (address == NULL) return RONDO_OK;
  RONDO_TRY(enter_at_once("rondo_free", device, &memory));
  RONDO_TRY(rondo_memory_free(memory, "rondo_free", NULL, address));
  rondo_retired_sweep(memory, false);
  return RONDO_OK;
}

rondo_status rondo_host_malloc(rondo_device *device, size_t bytes, void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(check_request("rondo_host_malloc", bytes, out_address));
  RONDO_TRY(enter_at_once("rondo_host_malloc", device, &memory));
  return rondo_memory_host_allocate(memory, bytes, out_address);
}

rondo_status rondo_host_free(rondo_device *device, void *address) {
  rondo_device_memory *memory;
  if (address == NULL) return RONDO_OK;
  RONDO_TRY(enter_at_once("rondo_host_free", device, &memory));
  return rondo_memory_host_free(memory, address);
}

static rondo_status capture_malloc(rondo_stream *stream, size_t bytes, const char *name, void **out_address) {
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = bytes, .name = name}};
  RONDO_TRY(rondo_capture_add(stream, "rondo_malloc_async", &params, NULL));
  *out_address = params.as.alloc.address;
  return RONDO_OK;
}

rondo_status rondo_malloc_async(rondo_stream *stream, size_t bytes, const rondo_malloc_options *options,
                                void **out_address) {
  rondo_malloc_options known;
  rondo_device_memory *memory;
  RONDO_TRY(check_request("rondo_malloc_async", bytes, out_address));
  RONDO_TRY(rondo_front("rondo_malloc_async", "the stream", stream));
  RONDO_TRY(rondo_versioned_read("rondo_malloc_options", options, &known, sizeof known));
  if (rondo_stream_capture(stream) != NULL) return capture_malloc(stream, bytes, known.name, out_address);
  RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
  RONDO_TRY(rondo_device_memory_require(memory, "rondo_malloc_async"));
  return rondo_memory_allocate(memory, stream->queue, bytes, known.name, out_address);
}

rondo_status rondo_free_async(rondo_stream *stream, void *address) {
  RONDO_TRY(rondo_front("rondo_free_async", "the stream", stream));
  if (address == NULL) return RONDO_OK;
  if (rondo_stream_capture(stream) != NULL) {
    rondo_node_params params = {.kind = RONDO_NODE_FREE, .as.free_address = address};
    return rondo_capture_add(stream, "rondo_free_async", &params, NULL);
  }
  rondo_device_memory *memory;
  RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
  RONDO_TRY(rondo_memory_free(memory, "rondo_free_async", stream->queue, address));
  rondo_retired_sweep(memory, false);
  return RONDO_OK;
}

/* Reading the figures does not change what the device holds, but may find frees that are done; the state behind the
 * const handle is the library's own. */
static rondo_status memory_for_reading(const char *call, const rondo_device *device, rondo_device_memory **out) {
  RONDO_TRY(rondo_front(call, "the device", device));
  return rondo_device_memory_of((rondo_device *)(uintptr_t)device, out);
}

rondo_status rondo_memory_get_statistics(const rondo_device *device, rondo_memory_statistics *out_statistics) {
  rondo_device_memory *memory;
  RONDO_TRY(memory_for_reading("rondo_memory_get_statistics", device, &memory));
  if (out_statistics == NULL) return rondo_refuse_null("rondo_memory_get_statistics", "out_statistics");
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  rondo_memory_read_statistics(memory, &statistics);
  return rondo_versioned_write("rondo_memory_statistics", &statistics, out_statistics, sizeof statistics);
}

rondo_status rondo_memory_reset_highs(rondo_device *device) {
  rondo_device_memory *memory;
  RONDO_TRY(memory_for_reading("rondo_memory_reset_highs", device, &memory));
  rondo_memory_lower_highs(memory);
  return RONDO_OK;
}

rondo_status rondo_graph_memory_trim(rondo_device *device) {
  rondo_device_memory *memory;
  RONDO_TRY(enter_at_once("rondo_graph_memory_trim", device, &memory));
  return rondo_heaps_trim(memory);
}

rondo_status rondo_pool_trim(rondo_device *device, uint64_t keep_bytes) {
  rondo_device_memory *memory;
  RONDO_TRY(memory_for_reading("rondo_pool_trim", device, &memory));
  rondo_memory_trim_pool(memory, keep_bytes);
  return RONDO_OK;
}
