/* SPDX-License-Identifier: MIT
 * See cuda_operations.h. Kinds and conditions have the driver's numbers.
 */
#include "device/cuda/cuda_operations.h"

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/semaphore_data.h"

void cuda_operations_params(const rondo_memory_operations_node *node, cu_memory_operation *out) {
  for (size_t i = 0; i < node->count; i++) {
    const rondo_memory_operation *operation = &node->operations[i];
    out[i] = (cu_memory_operation){.words = {0}};
    out[i].of.operation = (int)operation->kind;
    if (operation->kind == RONDO_OPERATION_FLUSH) continue;
    out[i].of.address = (cu_address)(uintptr_t)operation->address;
    out[i].of.value = operation->value;
    out[i].of.flags = (unsigned)operation->condition;
  }
}

cu_result cuda_operations_submit(const cuda_device *device, cu_stream stream,
                                 const rondo_memory_operations_node *node) {
  cu_memory_operation operations[RONDO_MAX_MEMORY_OPERATIONS];
  cuda_operations_params(node, operations);
  return device->api->stream_batch_mem_op(stream, (unsigned)node->count, operations, 0);
}

rondo_status cuda_operations_add_placeholders(cuda_placeholders *to, const cu_memory_operation *operations,
                                              size_t count) {
  for (size_t i = 0; i < count; i++) {
    const bool is_long = operations[i].of.operation >= CU_OPERATION_WAIT_VALUE_64;
    const void *word = (const void *)(uintptr_t)operations[i].of.address;
    if (operations[i].of.operation == CU_OPERATION_FLUSH) continue;
    RONDO_TRY(cuda_placeholders_add(to, word, is_long ? sizeof(uint64_t) : sizeof(uint32_t)));
  }
  return RONDO_OK;
}

/* False for barriers, and for flags besides the condition. */
static bool read_one(const cu_memory_operation *from, rondo_memory_operation *out) {
  const int kind = from->of.operation;
  if (kind < CU_OPERATION_WAIT_VALUE_32 || kind > CU_OPERATION_WRITE_VALUE_64) return false;
  *out = (rondo_memory_operation){.kind = (rondo_memory_operation_kind)kind};
  if (kind == CU_OPERATION_FLUSH) return true; /* its flags are at another place, and must be 0 */
  const bool is_short = rondo_operation_bytes(out) == sizeof(uint32_t);
  if (from->of.flags > (rondo_operation_waits(out) ? CU_WAIT_VALUE_NOR : 0)) return false;
  out->condition = (rondo_wait_condition)from->of.flags;
  out->address = (void *)(uintptr_t)from->of.address;
  out->value = is_short ? (uint32_t)from->of.value : from->of.value;
  return true;
}

cu_result cuda_operations_read(const cuda_api *api, cu_graph_node node,
                               rondo_memory_operation out[RONDO_MAX_MEMORY_OPERATIONS], size_t *out_count) {
  cu_memory_operations_params params = {.count = 0};
  *out_count = 0;
  const cu_result code = api->graph_memory_operations_get_params(node, &params);
  if (code != CU_OK || params.count > RONDO_MAX_MEMORY_OPERATIONS || params.flags != 0) return code;
  for (unsigned i = 0; i < params.count; i++)
    if (!read_one(&params.operations[i], &out[i])) return CU_OK;
  *out_count = params.count;
  return CU_OK;
}

/* Semaphores ------------------------------------------------------------------------------------------------------ */

static rondo_status fail_import(cuda_device *device, cu_result code, const rondo_external_semaphore *semaphore,
                                int descriptor) {
  if (code != CU_INVALID_VALUE && code != CU_INVALID_HANDLE)
    return cuda_check(device, code, "importing semaphore '%s' from the file descriptor %d to device '%s'",
                      semaphore->name, descriptor, device->base.name);
  return rondo_fail_driver(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, (int32_t)code,
                           cuda_code_name(device->api, code),
                           "device '%s' does not take the file descriptor %d for a semaphore of this type: export it "
                           "for this GPU, and import it once",
                           device->base.name, descriptor);
}

static void release(void *data) { cuda_kernel_bury(data); }

rondo_status cuda_import_semaphore(rondo_device *base, rondo_semaphore_type type, int descriptor,
                                   rondo_external_semaphore *semaphore) {
  cuda_device *device = cuda_device_of(base);
  const cu_semaphore_handle handle = {.type = (int)type, .handle.descriptor = descriptor};
  cuda_kernel *kept;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(rondo_allocate_items(&base->allocator, 1, sizeof *kept, &kept));
  *kept = (cuda_kernel){.device = device};
  const cu_result code = device->api->import_external_semaphore(&kept->semaphore, &handle);
  if (code != CU_OK) {
    rondo_release(&base->allocator, kept, 1, sizeof *kept);
    return fail_import(device, code, semaphore, descriptor);
  }
  semaphore->driver_data = kept;
  semaphore->driver_release = release;
  return RONDO_OK;
}

/* First the parameters, then the handles. */
enum { EACH = sizeof(cu_semaphore_params) + sizeof(cu_external_semaphore) };

size_t cuda_semaphores_bytes(size_t count) { return count * EACH; }

cu_semaphores_params cuda_semaphores_in(void *storage, size_t count) {
  cu_semaphore_params *params = storage;
  return (cu_semaphores_params){
      .semaphores = (cu_external_semaphore *)(void *)(params + count), .params = params, .count = (unsigned)count};
}

void cuda_semaphores_fill(const rondo_semaphores_node *node, void *storage) {
  const cu_semaphores_params list = cuda_semaphores_in(storage, node->count);
  cu_semaphore_params *params = storage;
  for (size_t i = 0; i < node->count; i++) {
    params[i] = (cu_semaphore_params){.value = node->values[i].value};
    list.semaphores[i] = ((const cuda_kernel *)node->values[i].semaphore->driver_data)->semaphore;
  }
}

cu_result cuda_semaphores_submit(const cuda_device *device, cu_stream stream, rondo_node_kind kind,
                                 const cu_semaphores_params *params) {
  const cuda_api *api = device->api;
  return kind == RONDO_NODE_SEMAPHORE_SIGNAL
             ? api->signal_semaphores_async(params->semaphores, params->params, params->count, stream)
             : api->wait_semaphores_async(params->semaphores, params->params, params->count, stream);
}
