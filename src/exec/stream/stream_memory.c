/* SPDX-License-Identifier: MIT
 * The public functions of memory. A capture may forbid the calls that act at once (C9). The calls in stream order
 * become nodes while the stream captures (C15).
 */
#include <rondo/memory.h>

#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"
#include "memory/host_memory.h"
#include "memory/peer_access.h"

/* The checks of all calls on the memory of a device. A call that only reads statistics passes a const device: it may
 * find frees that are done by now, and notes them in the library's own state. */
static rondo_status enter(const char *call, const rondo_device *device, rondo_device_memory **out) {
  RONDO_TRY(rondo_check_call(call, "the device", device));
  RONDO_TRY(rondo_device_require_own(call, device));
  return rondo_device_memory_of((rondo_device *)(uintptr_t)device, out);
}

/* The checks of a call that acts at once. A capture that forbids the call must be found first: making the device's
 * memory may fail, and the capture would stay valid. */
static rondo_status enter_at_once(const char *call, rondo_device *device, rondo_device_memory **out) {
  RONDO_TRY(rondo_check_call(call, "the device", device));
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(rondo_capture_refuse_unsafe(call));
  return rondo_device_memory_of(device, out);
}

/* The checks of a call about a device's pools. */
static rondo_status enter_pools(const char *call, rondo_device *device, rondo_device_memory **out) {
  RONDO_TRY(enter(call, device, out));
  return rondo_device_memory_require_pools(*out, call);
}

/* The checks of a call in stream order, on a stream that does not capture. */
static rondo_status enter_stream(const char *call, rondo_stream *stream, rondo_device_memory **out) {
  RONDO_TRY(rondo_capture_refuse_stray(stream, call));
  return enter_pools(call, stream->device, out);
}

static rondo_status check_request(const char *call, size_t bytes, void **out_address) {
  if (out_address == NULL) return rondo_refuse_null(call, "out_address");
  *out_address = NULL;
  if (bytes > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "%s: an allocation of 0 bytes: allocate at least 1, or omit the call", call);
}

rondo_status rondo_malloc(rondo_device *device, size_t bytes, const char *name, void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(check_request("rondo_malloc", bytes, out_address));
  RONDO_TRY(enter_at_once("rondo_malloc", device, &memory));
  return rondo_memory_allocate(memory, NULL, NULL, bytes, name, out_address);
}

rondo_status rondo_free(rondo_device *device, void *address) {
  rondo_device_memory *memory;
  if (address == NULL || (device != NULL && device->is_inherited)) return RONDO_OK;
  RONDO_TRY(enter_at_once("rondo_free", device, &memory));
  return rondo_memory_free(memory, "rondo_free", NULL, address);
}

rondo_status rondo_host_malloc(rondo_device *device, size_t bytes, void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(check_request("rondo_host_malloc", bytes, out_address));
  RONDO_TRY(enter_at_once("rondo_host_malloc", device, &memory));
  return rondo_memory_host_allocate(memory, bytes, out_address);
}

rondo_status rondo_host_free(rondo_device *device, void *address) {
  rondo_device_memory *memory;
  if (address == NULL || (device != NULL && device->is_inherited)) return RONDO_OK;
  RONDO_TRY(enter_at_once("rondo_host_free", device, &memory));
  return rondo_memory_host_free(memory, address);
}

/* A pool that is passed must belong to the device. While capturing it is used only for its peers. */
static rondo_status check_pool(const char *call, const rondo_device *device, const rondo_pool *pool) {
  return pool == NULL ? RONDO_OK : rondo_require_device(call, "the pool", device, pool->device);
}

/* The node stores which peers have access to the pool now (GM-17). */
static rondo_status capture_malloc(rondo_stream *stream, size_t bytes, const rondo_malloc_options *options,
                                   void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
  rondo_node_params params = {
      .kind = RONDO_NODE_ALLOC,
      .as.alloc = {.bytes = bytes, .name = options->name, .peers = rondo_pools_read_peers(memory, options->pool)}};
  RONDO_TRY(rondo_capture_add(stream, "rondo_malloc_async", &params));
  *out_address = params.as.alloc.address;
  return RONDO_OK;
}

rondo_status rondo_malloc_async(rondo_stream *stream, size_t bytes, const rondo_malloc_options *options,
                                void **out_address) {
  const char *const call = "rondo_malloc_async";
  rondo_malloc_options known;
  rondo_device_memory *memory;
  RONDO_TRY(check_request(call, bytes, out_address));
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  RONDO_TRY(rondo_device_require_own(call, stream->device));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_malloc_options", options, &known));
  RONDO_TRY(check_pool(call, stream->device, known.pool));
  if (rondo_stream_find_capture(stream) != NULL) return capture_malloc(stream, bytes, &known, out_address);
  RONDO_TRY(enter_stream(call, stream, &memory));
  return rondo_memory_allocate(memory, &stream->order, known.pool, bytes, known.name, out_address);
}

rondo_status rondo_free_async(rondo_stream *stream, void *address) {
  const char *const call = "rondo_free_async";
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  if (address == NULL || stream->device->is_inherited) return RONDO_OK;
  if (rondo_stream_find_capture(stream) != NULL) {
    rondo_node_params params = {.kind = RONDO_NODE_FREE, .as.free_address = address};
    return rondo_capture_add(stream, call, &params);
  }
  rondo_device_memory *memory;
  RONDO_TRY(enter_stream(call, stream, &memory));
  return rondo_memory_free(memory, call, &stream->order, address);
}

rondo_status rondo_memory_get_statistics(const rondo_device *device, rondo_memory_statistics *out_statistics) {
  rondo_device_memory *memory;
  RONDO_TRY(enter("rondo_memory_get_statistics", device, &memory));
  if (out_statistics == NULL) return rondo_refuse_null("rondo_memory_get_statistics", "out_statistics");
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  rondo_memory_read_statistics(memory, &statistics);
  return rondo_versioned_write("rondo_memory_statistics", &statistics, out_statistics, sizeof statistics);
}

rondo_status rondo_memory_reset_highs(rondo_device *device) {
  rondo_device_memory *memory;
  RONDO_TRY(enter("rondo_memory_reset_highs", device, &memory));
  rondo_memory_lower_highs(memory);
  return RONDO_OK;
}

rondo_status rondo_graph_memory_trim(rondo_device *device) {
  rondo_device_memory *memory;
  RONDO_TRY(enter_at_once("rondo_graph_memory_trim", device, &memory));
  RONDO_TRY(rondo_device_memory_require_nodes(memory, "rondo_graph_memory_trim"));
  return rondo_heaps_trim(memory);
}

rondo_status rondo_memory_trim(rondo_device *device) {
  rondo_device_memory *memory;
  RONDO_TRY(enter_at_once("rondo_memory_trim", device, &memory));
  rondo_pools_give_back(memory, false);
  (void)rondo_memory_release_withheld(memory);
  return memory->memory_nodes ? rondo_heaps_trim(memory) : RONDO_OK;
}

/* Pools ----------------------------------------------------------------------------------------------------------- */

static rondo_status enter_pool(const char *call, const rondo_pool *pool, rondo_device_memory **out) {
  RONDO_TRY(rondo_check_call(call, "the pool", pool));
  return enter(call, pool->device, out);
}

rondo_status rondo_pool_create(rondo_device *device, const rondo_pool_options *options, rondo_pool **out_pool) {
  const char *const call = "rondo_pool_create";
  RONDO_TRY(rondo_check_call(call, "out_pool", out_pool));
  *out_pool = NULL;
  rondo_pool_options known;
  rondo_device_memory *memory;
  RONDO_TRY(enter_pools(call, device, &memory));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_pool_options", options, &known));
  return rondo_pools_make(memory, &known, out_pool);
}

rondo_status rondo_pool_destroy(rondo_pool *pool) {
  rondo_device_memory *memory;
  if (pool == NULL || pool->device->is_inherited) return RONDO_OK;
  RONDO_TRY(enter_pool("rondo_pool_destroy", pool, &memory));
  return rondo_pools_destroy(memory, pool);
}

static rondo_status get_pool(const char *call, rondo_device *device, bool is_default, rondo_pool **out_pool) {
  rondo_device_memory *memory;
  RONDO_TRY(rondo_check_call(call, "out_pool", out_pool));
  *out_pool = NULL;
  RONDO_TRY(enter_pools(call, device, &memory));
  *out_pool = is_default ? &memory->default_pool : rondo_pools_current(memory);
  return RONDO_OK;
}

rondo_status rondo_device_get_default_pool(rondo_device *device, rondo_pool **out_pool) {
  return get_pool("rondo_device_get_default_pool", device, true, out_pool);
}

rondo_status rondo_device_get_pool(rondo_device *device, rondo_pool **out_pool) {
  return get_pool("rondo_device_get_pool", device, false, out_pool);
}

rondo_status rondo_device_set_pool(rondo_device *device, rondo_pool *pool) {
  const char *const call = "rondo_device_set_pool";
  rondo_device_memory *memory;
  RONDO_TRY(enter_pools(call, device, &memory));
  RONDO_TRY(check_pool(call, device, pool));
  rondo_pools_set_current(memory, pool);
  return RONDO_OK;
}

/* Access by other devices ----------------------------------------------------------------------------------------- */

static rondo_status check_peer(const char *call, const rondo_device *owner, const rondo_device *peer) {
  RONDO_TRY(rondo_check_call(call, "the peer", peer));
  if (rondo_device_reaches(peer, owner)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: device '%s' cannot access memory of '%s' (see rondo_device_can_access_peer): copy through the "
                    "host",
                    call, peer->name, owner->name);
}

static rondo_status set_access(const char *call, rondo_pool *pool, const rondo_device *peer, bool access) {
  RONDO_TRY(check_peer(call, pool->device, peer));
  const uint64_t bit = rondo_device_peer_bit(peer);
  const bool own = bit == rondo_device_peer_bit(pool->device);
  if (own && !access)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NO_ACCESS,
                      "%s: device '%s' always has access to its own memory: pass another device", call, peer->name);
  if (own) return RONDO_OK;
  if (access) RONDO_TRY(rondo_fail_context(rondo_peers_admit(pool->device, bit), "%s", call));
  if (access)
    atomic_fetch_or_explicit(&pool->peers, bit, memory_order_relaxed);
  else
    atomic_fetch_and_explicit(&pool->peers, ~bit, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status rondo_memory_set_access(rondo_device *device, const rondo_device *peer, bool access) {
  const char *const call = "rondo_memory_set_access";
  rondo_device_memory *memory;
  RONDO_TRY(enter(call, device, &memory));
  return set_access(call, &memory->immediate, peer, access);
}

rondo_status rondo_pool_set_access(rondo_pool *pool, const rondo_device *peer, bool access) {
  RONDO_TRY(rondo_check_call("rondo_pool_set_access", "the pool", pool));
  return set_access("rondo_pool_set_access", pool, peer, access);
}

rondo_status rondo_pool_get_access(const rondo_pool *pool, const rondo_device *peer, bool *out_access) {
  const char *const call = "rondo_pool_get_access";
  RONDO_TRY(rondo_check_call(call, "out_access", out_access));
  *out_access = false;
  RONDO_TRY(rondo_check_call(call, "the pool", pool));
  RONDO_TRY(check_peer(call, pool->device, peer));
  const uint64_t allowed =
      atomic_load_explicit(&pool->peers, memory_order_relaxed) | rondo_device_peer_bit(pool->device);
  *out_access = (allowed & rondo_device_peer_bit(peer)) != 0;
  return RONDO_OK;
}

/* Attributes ------------------------------------------------------------------------------------------------------ */

rondo_status rondo_pool_get_attribute(rondo_pool *pool, rondo_pool_attribute attribute, uint64_t *out_value) {
  const char *const call = "rondo_pool_get_attribute";
  rondo_device_memory *memory;
  RONDO_TRY(rondo_check_call(call, "out_value", out_value));
  *out_value = 0;
  RONDO_TRY(enter_pool(call, pool, &memory));
  return rondo_pools_read(memory, pool, attribute, out_value);
}

rondo_status rondo_pool_set_attribute(rondo_pool *pool, rondo_pool_attribute attribute, uint64_t value) {
  rondo_device_memory *memory;
  RONDO_TRY(enter_pool("rondo_pool_set_attribute", pool, &memory));
  return rondo_pools_write(memory, pool, attribute, value);
}

rondo_status rondo_pool_get_statistics(rondo_pool *pool, rondo_pool_statistics *out_statistics) {
  rondo_device_memory *memory;
  RONDO_TRY(enter_pool("rondo_pool_get_statistics", pool, &memory));
  if (out_statistics == NULL) return rondo_refuse_null("rondo_pool_get_statistics", "out_statistics");
  rondo_pool_statistics statistics = {.struct_size = sizeof statistics};
  rondo_pools_read_statistics(memory, pool, &statistics);
  return rondo_versioned_write("rondo_pool_statistics", &statistics, out_statistics, sizeof statistics);
}

rondo_status rondo_pool_trim(rondo_pool *pool, uint64_t keep_bytes) {
  rondo_device_memory *memory;
  RONDO_TRY(enter_pool("rondo_pool_trim", pool, &memory));
  rondo_pools_trim(memory, pool, keep_bytes);
  return RONDO_OK;
}
