/* SPDX-License-Identifier: MIT
 * See cuda_operations.h. Kinds and conditions have the driver's numbers.
 */
#include "device/cuda/cuda_operations.h"

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
