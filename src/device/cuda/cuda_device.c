/* SPDX-License-Identifier: MIT
 * The driver "cuda": opening "cuda:N", what a device is, and how it is closed. A device holds one reference to its
 * GPU's primary context, which it shares with the CUDA runtime and with every library of the process.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/cuda/cuda_builtin_kernels.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_declared_kernels.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_host_function.h"
#include "device/cuda/cuda_kernel.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_operations.h"
#include "device/cuda/cuda_placeholder_memory.h"
#include "device/cuda/cuda_queue.h"

/* Life ------------------------------------------------------------------------------------------------------------- */

static void free_device(cuda_device *device) {
  const rondo_allocator allocator = device->base.allocator;
  rondo_array_free(&allocator, &device->mappings);
  rondo_array_free(&allocator, &device->reservations);
  rondo_array_free(&allocator, &device->left);
  rondo_array_free(&allocator, &device->shown);
  pthread_mutex_destroy(&device->lock);
  pthread_mutex_destroy(&device->mapping);
  pthread_mutex_destroy(&device->hosts.lock);
  pthread_cond_destroy(&device->hosts.changed);
  rondo_release(&allocator, device, 1, sizeof *device);
}

/* All queues are destroyed and were waited for. On a lost device, the driver's thread may still read some records:
 * these are freed last. */
static rondo_status device_close(rondo_device *base) {
  cuda_device *device = cuda_device_of(base);
  const rondo_status status = cuda_require(device);
  cuda_scope scope;
  cuda_hosts_stop(device);
  cuda_executables_reap(device, true);
  cuda_kernel_bury(device->fill);
  cuda_copies_unload(device);
  cuda_kernels_reap(device, true);
  cuda_enter_to_free(device, &scope);
  if (device->side != NULL) (void)device->api->stream_destroy(device->side); /* gone already on a lost device */
  cuda_leave(&scope);
  cuda_executables_free(device);
  cuda_dead_queues_free(device);
  cuda_enter_to_free(device, &scope);
  cuda_gates_free(device);
  cuda_declarations_free(device);
  cuda_placeholders_free(device);
  cuda_leave(&scope);
  (void)device->api->primary_release(device->handle); /* fails on a lost device, whose context is gone */
  free_device(device);
  return status;
}

static rondo_status device_synchronize(rondo_device *base) {
  cuda_device *device = cuda_device_of(base);
  const uint64_t epoch = atomic_load(&device->epoch);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->context_synchronize();
  RONDO_TRY(cuda_check(device, code, "waiting for device '%s'", base->name));
  cuda_queues_settle(device, epoch);
  return cuda_queues_take_failure(device);
}

/* Information ------------------------------------------------------------------------------------------------------ */

static void device_info(const rondo_device *base, rondo_device_info *out) {
  const cuda_device *device = (const cuda_device *)base;
  out->index = base->index;
  (void)snprintf(out->name, sizeof out->name, "%s", base->name);
  (void)snprintf(out->description, sizeof out->description, "%s", device->description);
  memcpy(out->uuid, device->uuid.bytes, sizeof out->uuid);
  out->processors = (uint32_t)device->processors;
  out->memory_bytes = device->memory_bytes;
  out->page_bytes = device->page_bytes;
  out->graph_memory = true;
  out->memory_pools = true;
  out->cuda = true;
}

static void count_work(cuda_device *device, rondo_device_statistics *out) {
  pthread_mutex_lock(&device->lock);
  out->kernels = device->kernels;
  out->launches = device->launches;
  for (const cuda_queue *queue = device->queues; queue != NULL; queue = queue->next) {
    out->kernels += atomic_load_explicit(&queue->kernels, memory_order_relaxed);
    out->launches += atomic_load_explicit(&queue->launches, memory_order_relaxed);
  }
  pthread_mutex_unlock(&device->lock);
}

static void device_statistics(const rondo_device *base, rondo_device_statistics *out) {
  const cuda_device *device = (const cuda_device *)base;
  count_work((cuda_device *)(uintptr_t)base, out);
  out->mapped_bytes = atomic_load_explicit(&device->mapped_bytes, memory_order_relaxed);
  out->maps = atomic_load_explicit(&device->maps, memory_order_relaxed);
  out->rebuilds = atomic_load_explicit(&device->rebuilds, memory_order_relaxed);
  out->kernels_compiled = atomic_load_explicit(&device->kernels_compiled, memory_order_relaxed);
  out->kernels_cached = atomic_load_explicit(&device->kernels_cached, memory_order_relaxed);
  out->cache_evictions = atomic_load_explicit(&device->cache_evictions, memory_order_relaxed);
}

static uint64_t device_peers(const rondo_device *device) { return ((const cuda_device *)device)->reachable_by; }

static const rondo_device_ops device_ops = {
    .close = device_close,
    .info = device_info,
    .statistics = device_statistics,
    .kernel_prepare = cuda_kernel_prepare,
    .copy_kernel = cuda_copy_kernel,
    .queued_copy_kernel = cuda_queued_copy_kernel,
    .queued_copy_blocks = cuda_queued_copy_blocks,
    .kernel_check = cuda_kernel_check,
    .config_check = cuda_config_check,
    .peers = device_peers,
    .admit = cuda_admit,
    .call_library = cuda_call_library,
    .queue_create = cuda_queue_create,
    .event_create = cuda_event_create,
    .executable_create = cuda_executable_create,
    .synchronize = device_synchronize,
    .settle = cuda_executables_settle,
    .reserve = cuda_reserve,
    .unreserve = cuda_unreserve,
    .physical_create = cuda_physical_create,
    .physical_destroy = cuda_physical_destroy,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .protect = cuda_protect,
    .host_allocate = cuda_host_allocate,
    .host_release = cuda_host_release,
    .knows_address = cuda_knows_address,
    .has_address = cuda_has_address,
    .capture = &cuda_capture_ops,
    .import_semaphore = cuda_import_semaphore,
};

/* Opening ---------------------------------------------------------------------------------------------------------- */

/* How many bytes of arguments a kernel may have, by compute capability. */
enum { NARROW_ARGUMENTS = 4096, WIDE_ARGUMENTS_MAJOR = 7 };

/* Returns the first code that is not CU_OK. */
static cu_result ask_attributes(cuda_device *device) {
  const cuda_api *api = device->api;
  size_t bytes = 0;
  int is_unified = 0, x = 0, y = 0, z = 0, shared = 0, clusters = 0, cooperative = 0;
  int has_64 = 0, has_nor = 0, has_flush = 0;
  const struct {
    cu_attribute attribute;
    int *value;
  } rows[] = {{CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, &device->processors},
              {CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &device->major},
              {CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &device->minor},
              {CU_ATTRIBUTE_UNIFIED_ADDRESSING, &is_unified},
              {CU_ATTRIBUTE_MAX_GRID_X, &x},
              {CU_ATTRIBUTE_MAX_GRID_Y, &y},
              {CU_ATTRIBUTE_MAX_GRID_Z, &z},
              {CU_ATTRIBUTE_MAX_SHARED_BYTES, &shared},
              {CU_ATTRIBUTE_CLUSTER_LAUNCH, &clusters},
              {CU_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative},
              {CU_ATTRIBUTE_64_BIT_MEMORY_OPERATIONS, &has_64},
              {CU_ATTRIBUTE_WAIT_VALUE_NOR, &has_nor},
              {CU_ATTRIBUTE_FLUSH_REMOTE_WRITES, &has_flush}};
  cu_result code = api->device_get(&device->handle, device->ordinal);
  if (code == CU_OK) code = api->device_get_name(device->description, sizeof device->description, device->handle);
  if (code == CU_OK) code = api->device_get_uuid(&device->uuid, device->handle);
  if (code == CU_OK) code = api->device_total_mem(&bytes, device->handle);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && code == CU_OK; i++)
    code = api->device_get_attribute(rows[i].value, rows[i].attribute, device->handle);
  device->memory_bytes = bytes;
  device->reads_host = is_unified != 0;
  device->base.most_blocks = (rondo_grid){(uint32_t)x, (uint32_t)y, (uint32_t)z};
  device->base.limits = (rondo_launch_limits){
      .argument_bytes = device->major >= WIDE_ARGUMENTS_MAJOR ? RONDO_MAX_PARAMETER_BYTES : NARROW_ARGUMENTS,
      .shared_bytes = (uint32_t)shared,
      .clusters = clusters != 0,
      .cooperative = cooperative != 0};
  device->base.operations =
      (rondo_operation_limits){.lacks_64 = has_64 == 0, .lacks_nor = has_nor == 0, .lacks_flush = has_flush == 0};
  return code;
}

/* Finds the devices that can be given access to this one's memory. */
static cu_result ask_peers(cuda_device *device) {
  const cuda_api *api = device->api;
  cu_result code = CU_OK;
  for (int i = 0; i < api->device_count && i < 64 && code == CU_OK; i++) {
    cu_device other;
    int can = i == device->ordinal;
    if (!can) code = api->device_get(&other, i);
    if (!can && code == CU_OK) code = api->device_can_access_peer(&can, other, device->handle);
    if (can) device->reachable_by |= UINT64_C(1) << i;
  }
  return code;
}

static rondo_status require_virtual_memory(cuda_device *device) {
  int has = 0;
  const cu_result code =
      device->api->device_get_attribute(&has, CU_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT, device->handle);
  RONDO_TRY(cuda_check(device, code, "asking what device '%s' can do", device->base.name));
  if (has != 0) return RONDO_OK;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                    "device '%s' (%s) has no virtual memory management (cuMemCreate, cuMemMap), which Rondo needs",
                    device->base.name, device->description);
}

static rondo_status ask_page_size(cuda_device *device) {
  const cu_allocation_properties properties = cuda_memory_properties(device);
  const cu_result code = device->api->mem_granularity(&device->page_bytes, &properties, CU_GRANULARITY_RECOMMENDED);
  return cuda_check(device, code, "asking for the page size of device '%s'", device->base.name);
}

static rondo_status ask_priorities(cuda_device *device) {
  int least = 0, greatest = 0;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = device->api->stream_priorities(&least, &greatest);
  device->base.limits.least_priority = least;
  device->base.limits.greatest_priority = greatest;
  return cuda_check(device, code, "asking for the priorities of device '%s'", device->base.name);
}

/* Called after the fill kernel was loaded, which is released if this fails. */
static rondo_status load_copies(cuda_device *device) {
  const rondo_status status = cuda_copies_load(device);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  cuda_copies_unload(device);
  cuda_kernel_bury(device->fill);
  cuda_kernels_reap(device, true);
  return rondo_error_raise(&error);
}

static rondo_status set_up(cuda_device *device) {
  const cuda_api *api = device->api;
  RONDO_TRY(cuda_check(device, ask_attributes(device), "asking what device '%s' is", device->base.name));
  RONDO_TRY(cuda_check(device, ask_peers(device), "asking for the peers of device '%s'", device->base.name));
  RONDO_TRY(require_virtual_memory(device));
  RONDO_TRY(cuda_check(device, api->primary_retain(&device->context, device->handle),
                       "taking the primary context of device '%s'", device->base.name));
  rondo_status status = ask_page_size(device);
  if (status == RONDO_OK) status = ask_priorities(device);
  if (status == RONDO_OK) status = cuda_fill_load(device);
  if (status == RONDO_OK) status = load_copies(device);
  if (status != RONDO_OK) (void)api->primary_release(device->handle); /* the first error is reported */
  return status;
}

static rondo_status cuda_open(const char *rest, const rondo_device_options *options, const rondo_allocator *allocator,
                              rondo_device **out) {
  const cuda_api *api;
  const char *const colon = rest[0] == '\0' ? "" : ":"; /* "cuda" is 'cuda:0' */
  uint32_t ordinal;
  (void)options; /* they are for CPU devices */
  *out = NULL;
  RONDO_TRY(rondo_fail_context(cuda_library_get(&api), "device 'cuda%s%.64s'", colon, rest));
  if (!rondo_device_parse_index(rest, &ordinal) || ordinal >= (uint32_t)api->device_count)
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_DEVICE,
                      "there is no device 'cuda%s%.64s': the driver shows %d, 'cuda:0' to 'cuda:%d'", colon, rest,
                      api->device_count, api->device_count - 1);
  cuda_device *device;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *device, &device));
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->mapping, NULL);
  cuda_hosts_prepare(device);
  device->base.tables = (rondo_device_tables){
      .device = device_ops, .queue = cuda_queue_ops, .event = cuda_event_ops, .executable = cuda_executable_ops};
  device->base.ops = &device->base.tables.device;
  device->base.allocator = *allocator;
  device->api = api;
  device->ordinal = (int)ordinal;
  device->base.index = ordinal;
  (void)snprintf(device->base.name, sizeof device->base.name, "cuda:%u", ordinal);
  const rondo_status status = set_up(device);
  if (status == RONDO_OK) {
    *out = &device->base;
    return RONDO_OK;
  }
  free_device(device);
  return status;
}

static bool cuda_enumerate(size_t index, const char **out_name, const char **out_unavailable) {
  static _Thread_local char name[sizeof "cuda:4294967295"];
  const cuda_api *api;
  *out_unavailable = cuda_library_why(&api);
  if (index >= (api != NULL ? (size_t)api->device_count : 1)) return false;
  (void)snprintf(name, sizeof name, "cuda:%u", (unsigned)index);
  *out_name = name;
  return true;
}

const rondo_driver rondo_cuda_driver = {.name = "cuda", .open = cuda_open, .enumerate = cuda_enumerate};
