/* SPDX-License-Identifier: MIT
 * The operations of the fake driver's streams and nodes. They are checked and copied when they are enqueued or added,
 * and run later without the lock. They are immutable, so that later changes of a node do not affect launches in flight.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake.h"

enum { MAX_BLOCK_Z = 64 };

static fake_work *new_work(cu_node_type type, fake_context *context) {
  fake_work *work = fake_allocate(1, sizeof *work);
  work->references = 1;
  work->type = type;
  work->context = context;
  return work;
}

static bool is_shape_good(const cu_kernel_params *p) {
  if (p->grid_x == 0 || p->grid_y == 0 || p->grid_z == 0 || p->block_x == 0 || p->block_y == 0 || p->block_z == 0)
    return false;
  if (p->grid_x > FAKE_MAX_GRID_X || p->grid_y > FAKE_MAX_GRID_YZ || p->grid_z > FAKE_MAX_GRID_YZ) return false;
  if (p->block_x > FAKE_MAX_BLOCK_THREADS || p->block_y > FAKE_MAX_BLOCK_THREADS || p->block_z > MAX_BLOCK_Z)
    return false;
  return p->block_x * p->block_y * p->block_z <= FAKE_MAX_BLOCK_THREADS;
}

/* Beyond what the function's attribute allows, no block is launched. */
static bool is_shared_good(const fake_function *function, const cu_kernel_params *p) {
  return p->shared_bytes <= (unsigned)function->max_dynamic_shared;
}

/* The argument buffer of `extra`: pairs of a tag and a value, up to tag 0; false when it is none. */
static bool read_extra(void *const *extra, const void **out_bytes, size_t *out_count) {
  enum { END = 0, BUFFER = 1, BUFFER_BYTES = 2 };
  *out_bytes = NULL;
  *out_count = 0;
  for (; fake_handle(*extra) != END; extra += 2) {
    if (fake_handle(extra[0]) == BUFFER)
      *out_bytes = extra[1];
    else if (fake_handle(extra[0]) == BUFFER_BYTES)
      *out_count = *(const size_t *)extra[1];
    else
      return false;
  }
  return *out_bytes != NULL;
}

static bool are_arguments_good(const cu_kernel_params *params, const fake_kernel *kernel) {
  const void *bytes;
  size_t count;
  if (params->params != NULL && params->extra != NULL) return false;
  if (params->extra != NULL) return read_extra(params->extra, &bytes, &count) && count >= kernel->bytes;
  if (params->params == NULL) return kernel->count == 0;
  for (size_t i = 0; i < kernel->count; i++) {
    if (params->params[i] == NULL) return false;
  }
  return true;
}

static void keep_arguments(fake_kernel_work *work, const cu_kernel_params *params) {
  const fake_kernel *kernel = work->kernel;
  const void *extra = NULL;
  size_t count = 0;
  work->bytes = fake_allocate(1, kernel->bytes);
  if (params->extra != NULL) {
    (void)read_extra(params->extra, &extra, &count);
    memcpy(work->bytes, extra, kernel->bytes);
  }
  for (size_t i = 0; i < kernel->count; i++) {
    work->addresses[i] = work->bytes + kernel->offsets[i];
    if (extra == NULL) memcpy(work->addresses[i], params->params[i], kernel->parameters[i].bytes);
  }
  work->extra_bytes = kernel->bytes;
  void *const buffer_tag = (void *)(uintptr_t)1, *const bytes_tag = (void *)(uintptr_t)2;
  void *const form[5] = {buffer_tag, work->bytes, bytes_tag, &work->extra_bytes, NULL};
  memcpy(work->extra, form, sizeof form);
  work->params = *params;
  work->params.params = params->extra == NULL ? work->addresses : NULL;
  work->params.extra = params->extra != NULL ? work->extra : NULL;
}

/* Attributes ------------------------------------------------------------------------------------------------------- */

enum { MOST_CLUSTER = 8, LEAST_PRIORITY = FAKE_LEAST_PRIORITY, GREATEST_PRIORITY = FAKE_GREATEST_PRIORITY };

/* docs/cuda-probes.md, 44: priorities beyond the range become the nearest, and 0 for the cluster is none. */
cu_result fake_attribute_set(fake_cuda_attributes *attributes, cu_launch_attribute_id id,
                             const cu_launch_value *value) {
  const int number = value->number;
  switch (id) {
    case CU_LAUNCH_COOPERATIVE:
      attributes->cooperative = number != 0;
      return CU_OK;
    case CU_LAUNCH_CLUSTER:
      attributes->cluster_x = value->size.x;
      attributes->cluster_y = value->size.y;
      attributes->cluster_z = value->size.z;
      return CU_OK;
    case CU_LAUNCH_PROGRAMMATIC:
      attributes->programmatic = number != 0;
      return CU_OK;
    case CU_LAUNCH_PRIORITY:
      attributes->priority = number < GREATEST_PRIORITY ? GREATEST_PRIORITY : number;
      if (number > LEAST_PRIORITY) attributes->priority = LEAST_PRIORITY;
      return CU_OK;
    case CU_LAUNCH_MEMORY_DOMAIN:
      attributes->memory_domain = number;
      return number == 0 || number == 1 ? CU_OK : CU_INVALID_VALUE;
    case CU_LAUNCH_SHARED_PERCENT:
      attributes->shared_percent = number;
      return number >= 0 && number <= 100 ? CU_OK : CU_INVALID_VALUE;
    default:
      return CU_INVALID_VALUE;
  }
}

cu_result fake_attribute_get(const fake_cuda_attributes *attributes, cu_launch_attribute_id id,
                             cu_launch_value *value) {
  switch (id) {
    case CU_LAUNCH_COOPERATIVE:
      value->number = attributes->cooperative;
      return CU_OK;
    case CU_LAUNCH_CLUSTER:
      value->size.x = attributes->cluster_x;
      value->size.y = attributes->cluster_y;
      value->size.z = attributes->cluster_z;
      return CU_OK;
    case CU_LAUNCH_PRIORITY:
      value->number = attributes->priority;
      return CU_OK;
    case CU_LAUNCH_MEMORY_DOMAIN:
      value->number = attributes->memory_domain;
      return CU_OK;
    case CU_LAUNCH_SHARED_PERCENT:
      value->number = attributes->shared_percent;
      return CU_OK;
    default:
      return CU_INVALID_VALUE;
  }
}

static cu_result check_attributes(const fake_function *function, const cu_kernel_params *p,
                                  const fake_cuda_attributes *attributes) {
  const unsigned x = attributes->cluster_x, y = attributes->cluster_y, z = attributes->cluster_z;
  const uint64_t grid = (uint64_t)p->grid_x * p->grid_y * p->grid_z;
  if (x != 0 && (y == 0 || z == 0 || (uint64_t)x * y * z > MOST_CLUSTER)) return CU_INVALID_CLUSTER_SIZE;
  if (x != 0 && (p->grid_x % x != 0 || p->grid_y % y != 0 || p->grid_z % z != 0)) return CU_INVALID_CLUSTER_SIZE;
  if (attributes->cooperative == 0) return CU_OK;
  const int blocks = fake_function_blocks(function, p->block_x * p->block_y * p->block_z, p->shared_bytes);
  return grid > (uint64_t)blocks * FAKE_MULTIPROCESSORS ? CU_COOPERATIVE_LAUNCH_TOO_LARGE : CU_OK;
}

cu_result fake_work_kernel(const cu_kernel_params *params, const fake_cuda_attributes *attributes, fake_work **out) {
  static const fake_cuda_attributes none;
  *out = NULL;
  if (attributes == NULL) attributes = &none;
  if (params->function == NULL) return CU_INVALID_HANDLE;
  fake_function *function = fake_need(FAKE_CUDA_FUNCTION, fake_handle(params->function));
  if (function == NULL) return CU_INVALID_HANDLE;
  fake_kernel *kernel = fake_function_kernel(function);
  if (kernel == NULL) return CU_NOT_FOUND;
  if (!is_shape_good(params) || !is_shared_good(function, params) || !are_arguments_good(params, kernel))
    return CU_INVALID_VALUE;
  const cu_result code = check_attributes(function, params, attributes);
  if (code != CU_OK) return code;
  *out = new_work(CU_NODE_KERNEL, function->object.context);
  (*out)->of.kernel.attributes = *attributes;
  (*out)->of.kernel.function = function;
  (*out)->of.kernel.kernel = kernel;
  function->references++;
  keep_arguments(&(*out)->of.kernel, params);
  (*out)->of.kernel.params.context = fake_as(cu_context, function->object.context);
  return CU_OK;
}

static cu_result say_astray(void) {
  return fake_violation(CU_OK, "a copy of addresses that are not mapped: the driver takes them for the host's");
}

static cu_result look_at_copy(const cu_copy *params) {
  const fake_presence presence = fake_copy_presence(params);
  if (presence == FAKE_ABSENT) return say_astray();
  return presence == FAKE_PRESENT ? CU_OK : CU_INVALID_VALUE;
}

static cu_result look_at_fill(const cu_memset_params *params) {
  const size_t rows = params->height > 1 ? params->height - 1 : 0;
  const size_t bytes = rows * params->pitch + params->width * params->element_bytes;
  return fake_memory_presence(params->dst, bytes) == FAKE_PRESENT ? CU_OK : CU_INVALID_VALUE;
}

cu_result fake_work_look(const fake_work *work) {
  if (work->type == CU_NODE_COPY) return work->is_astray ? say_astray() : look_at_copy(&work->of.copy);
  return work->type == CU_NODE_MEMSET ? look_at_fill(&work->of.fill) : CU_OK;
}

cu_result fake_work_copy(const cu_copy *params, fake_context *context, bool is_captured, fake_work **out) {
  *out = NULL;
  cu_result code = fake_copy_check(params);
  if (code == CU_OK && !is_captured) code = look_at_copy(params);
  if (code != CU_OK) return code;
  *out = new_work(CU_NODE_COPY, context);
  (*out)->is_astray = is_captured && fake_copy_presence(params) == FAKE_ABSENT;
  (*out)->of.copy = *params;
  return CU_OK;
}

cu_result fake_work_fill(const cu_memset_params *params, fake_context *context, bool is_captured, fake_work **out) {
  const unsigned element = params->element_bytes;
  *out = NULL;
  if ((element != 1 && element != 2 && element != 4) || params->width == 0 || params->height == 0 ||
      params->dst % element != 0 || params->width > SIZE_MAX / element)
    return CU_INVALID_VALUE;
  if (params->height > 1 && (params->pitch < params->width * element || params->pitch % element != 0))
    return CU_INVALID_VALUE;
  if (params->dst == 0 || (!is_captured && look_at_fill(params) != CU_OK)) return CU_INVALID_VALUE;
  *out = new_work(CU_NODE_MEMSET, context);
  (*out)->of.fill = *params;
  return CU_OK;
}

cu_result fake_work_host(const cu_host_params *params, fake_context *context, fake_work **out) {
  *out = NULL;
  if (params->function == NULL) return CU_INVALID_VALUE;
  *out = new_work(CU_NODE_HOST, context);
  (*out)->of.host = *params;
  return CU_OK;
}

static bool is_long(const cu_memory_operation *operation) {
  return operation->of.operation >= CU_OPERATION_WAIT_VALUE_64;
}

static bool waits(const cu_memory_operation *operation) {
  return operation->of.operation == CU_OPERATION_WAIT_VALUE_32 || operation->of.operation == CU_OPERATION_WAIT_VALUE_64;
}

/* There are no flushes and no barriers. A word must be mapped, as far as the fake driver knows its address. */
static bool is_operation_good(const cu_memory_operation *operation) {
  const int kind = operation->of.operation;
  if (kind < CU_OPERATION_WAIT_VALUE_32 || kind > CU_OPERATION_WRITE_VALUE_64 || kind == CU_OPERATION_FLUSH)
    return false;
  if (operation->of.address == 0 || operation->of.address % (is_long(operation) ? 8 : 4) != 0) return false;
  if (fake_memory_presence(operation->of.address, 4) == FAKE_ABSENT) return false;
  return operation->of.flags <= (waits(operation) ? CU_WAIT_VALUE_NOR : 0);
}

cu_result fake_work_operations(const cu_memory_operation *operations, size_t count, fake_context *context,
                               fake_work **out) {
  *out = NULL;
  if (operations == NULL || count == 0 || count >= 256) return CU_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (!is_operation_good(&operations[i])) return CU_INVALID_VALUE;
  *out = new_work(CU_NODE_BATCH_MEMORY_OPERATION, context);
  (*out)->of.operations.items = fake_copy_of(operations, count * sizeof *operations);
  (*out)->of.operations.count = count;
  return CU_OK;
}

static bool is_fulfilled(const cu_memory_operation *operation) {
  const void *address = (const void *)(uintptr_t)operation->of.address;
  const uint64_t value = is_long(operation) ? operation->of.value : (uint32_t)operation->of.value;
  const uint64_t word = is_long(operation)
                            ? atomic_load_explicit((const _Atomic uint64_t *)address, memory_order_acquire)
                            : atomic_load_explicit((const _Atomic uint32_t *)address, memory_order_acquire);
  if (operation->of.flags == CU_WAIT_VALUE_EQUAL) return word == value;
  if (operation->of.flags == CU_WAIT_VALUE_AND) return (word & value) != 0;
  if (operation->of.flags == CU_WAIT_VALUE_NOR)
    return is_long(operation) ? ~(word | value) != 0 : (uint32_t) ~(word | value) != 0;
  return is_long(operation) ? (int64_t)(word - value) >= 0 : (int32_t)(word - value) >= 0;
}

static void write_value(const cu_memory_operation *operation) {
  void *address = (void *)(uintptr_t)operation->of.address;
  if (is_long(operation))
    atomic_store_explicit((_Atomic uint64_t *)address, operation->of.value, memory_order_release);
  else
    atomic_store_explicit((_Atomic uint32_t *)address, (uint32_t)operation->of.value, memory_order_release);
}

bool fake_operations_run(const fake_work *work, size_t *inout_done) {
  for (; *inout_done < work->of.operations.count; ++*inout_done) {
    const cu_memory_operation *operation = &work->of.operations.items[*inout_done];
    if (!waits(operation))
      write_value(operation);
    else if (!is_fulfilled(operation))
      return false;
  }
  return true;
}

cu_result fake_work_event(cu_event handle, cu_node_type type, fake_work **out) {
  *out = NULL;
  fake_event *event = fake_event_need(handle);
  if (event == NULL) return CU_INVALID_VALUE;
  *out = new_work(type, event->object.context);
  (*out)->of.event = event;
  event->references++;
  return CU_OK;
}

void fake_work_retain(fake_work *work) {
  if (work != NULL) work->references++;
}

void fake_work_release(fake_work *work) {
  if (work == NULL || --work->references > 0) return;
  if (work->type == CU_NODE_KERNEL) {
    fake_function_release(work->of.kernel.function);
    free(work->of.kernel.bytes);
  }
  free(work->source);
  if (work->type == CU_NODE_BATCH_MEMORY_OPERATION) free(work->of.operations.items);
  if (work->type == CU_NODE_SEMAPHORE_SIGNAL || work->type == CU_NODE_SEMAPHORE_WAIT)
    fake_work_release_semaphores(work);
  if (work->type == CU_NODE_EVENT_RECORD || work->type == CU_NODE_EVENT_WAIT) fake_event_release(work->of.event);
  if (work->type == CU_NODE_ALLOC || work->type == CU_NODE_FREE) fake_allocation_release(work->of.allocation);
  free(work);
}

/* A pointer into device memory points at what the device may access. */
static bool are_pointers_good(const fake_device *device, const fake_kernel_work *work) {
  const fake_kernel *kernel = work->kernel;
  bool good = true;
  pthread_rwlock_rdlock(&fake_mappings_lock);
  for (size_t i = 0; i < kernel->count && good; i++) {
    uint64_t address = 0;
    if (kernel->parameters[i].access == RONDO_ACCESS_SCALAR) continue;
    memcpy(&address, work->addresses[i], sizeof address);
    const bool writes = kernel->parameters[i].access != RONDO_ACCESS_READ;
    good = !fake_memory_is_device(address) || fake_memory_allows(device, address, 1, writes);
  }
  pthread_rwlock_unlock(&fake_mappings_lock);
  return good;
}

static void run_blocks(const fake_kernel_work *work, rondo_blocks blocks) {
  const cu_kernel_params *p = &work->params;
  enum { ALIGNMENT = 128 };
  const size_t bytes = (p->shared_bytes + (size_t)ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  rondo_thread_block block = {.threads = {p->block_x, p->block_y, p->block_z}, .shared_bytes = p->shared_bytes};
  if (bytes > 0) block.shared = aligned_alloc(ALIGNMENT, bytes);
  if (bytes > 0 && block.shared == NULL) abort(); /* no test can go on */
  work->kernel->block_function(blocks, &block, work->addresses);
  free(block.shared);
}

static bool run_kernel(const fake_device *device, const fake_kernel_work *work) {
  const cu_kernel_params *p = &work->params;
  const rondo_blocks blocks = {0, (size_t)p->grid_x * p->grid_y * p->grid_z, {p->grid_x, p->grid_y, p->grid_z}};
  if (work->kernel->faults || !are_pointers_good(device, work)) return false;
  if (work->kernel->block_function == NULL)
    work->kernel->function(blocks, work->addresses);
  else
    run_blocks(work, blocks);
  return true;
}

/* The real driver has one thread for the host functions of all streams. */
static bool is_calling_host;

static bool run_host(const cu_host_params *host) {
  fake_self.is_in_callback = true;
  host->function(host->user);
  fake_self.is_in_callback = false;
  return true;
}

static bool run_unlocked(const fake_work *work) {
  const fake_device *device = work->context->device;
  switch (work->type) {
    case CU_NODE_KERNEL:
      return run_kernel(device, &work->of.kernel);
    case CU_NODE_COPY:
      return fake_copy_run(device, &work->of.copy);
    case CU_NODE_MEMSET:
      return fake_fill_run(device, &work->of.fill);
    case CU_NODE_HOST:
      return run_host(&work->of.host);
    default:
      return true;
  }
}

/* A work of another context that a program runs is waited for by whoever loses either of the two. */
static void count_running(const fake_work *work, fake_context *launching, unsigned change) {
  work->context->running += change;
  if (launching != work->context) launching->running += change;
}

static bool is_either_lost(const fake_work *work, const fake_context *launching) {
  return !fake_context_works(work->context) || !fake_context_works(launching);
}

void fake_work_run(const fake_work *work, fake_context *launching) {
  if (work->type == CU_NODE_KERNEL && work->of.kernel.function->object.handle == 0)
    (void)fake_violation(CU_INVALID_HANDLE, "kernel %s runs after its module was unloaded",
                         work->of.kernel.kernel->name);
  if (work->type == CU_NODE_KERNEL) work->of.kernel.kernel->ran = work->of.kernel.attributes;
  while (work->type == CU_NODE_HOST && is_calling_host) fake_wait();
  const bool is_host = work->type == CU_NODE_HOST;
  if (is_host) is_calling_host = true;
  count_running(work, launching, !is_host);
  pthread_mutex_unlock(&fake_lock);
  const bool is_good = run_unlocked(work);
  pthread_mutex_lock(&fake_lock);
  if (is_host) is_calling_host = false;
  count_running(work, launching, -(unsigned)!is_host);
  if (is_host || is_either_lost(work, launching)) fake_signal(); /* only those, and who loses them, are waited for */
  if (!is_good) fake_context_lose(work->context, CU_ILLEGAL_ADDRESS);
}
