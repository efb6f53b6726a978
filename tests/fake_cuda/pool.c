/* SPDX-License-Identifier: MIT
 * Stream-ordered allocations of the fake driver, and the memory nodes that they become in a capture: what a foreign
 * library leaves in a graph. The address of a graph's allocation is fixed at capture. Its memory is allocated at the
 * first launch and lives as long as the graphs and execs that refer to it. As in the driver, the order of the calls
 * determines whether it is alive: a launch that allocates live memory, or frees memory that is not alive, is refused.
 */
#include <stdlib.h>

#include "fake_cuda/fake.h"

void fake_allocation_retain(fake_allocation *allocation) { allocation->references++; }

void fake_allocation_release(fake_allocation *allocation) {
  if (--allocation->references > 0) return;
  if (allocation->object.handle != 0) fake_object_remove(&allocation->object);
  fake_memory_drop(allocation->address);
  free(allocation);
}

/* While it is alive it is in the table, and has a reference to itself. */
static void set_alive(fake_allocation *allocation, bool alive) {
  if (alive == fake_allocation_is_alive(allocation)) return;
  if (alive) {
    fake_object_add_at(&allocation->object, FAKE_CUDA_POOL_MEMORY, allocation->context, allocation->address);
    fake_allocation_retain(allocation);
    return;
  }
  fake_object_remove(&allocation->object);
  fake_allocation_release(allocation);
}

bool fake_allocation_is_alive(const fake_allocation *allocation) { return allocation->object.handle != 0; }

static fake_allocation *new_allocation(fake_context *context, size_t bytes) {
  const uint64_t whole = (bytes + FAKE_GRANULARITY - 1) / FAKE_GRANULARITY * FAKE_GRANULARITY;
  const uint64_t address = fake_memory_hold(whole);
  if (address == 0) return NULL;
  fake_allocation *allocation = fake_allocate(1, sizeof *allocation);
  allocation->references = 1;
  allocation->context = context;
  allocation->address = address;
  allocation->bytes = bytes;
  allocation->held_bytes = whole;
  return allocation;
}

static cu_result back(fake_allocation *allocation) {
  if (allocation->is_backed) return CU_OK;
  const cu_result code = fake_memory_back(allocation->address, allocation->held_bytes, allocation->context->device);
  allocation->is_backed = code == CU_OK;
  return code;
}

/* Launches -------------------------------------------------------------------------------------------------------- */

static bool is_memory(cu_node_type type) { return type == CU_NODE_ALLOC || type == CU_NODE_FREE; }

bool fake_program_has_memory(const fake_program *program) {
  for (size_t i = 0; i < program->count; i++) {
    if (is_memory(program->types[i])) return true;
  }
  return false;
}

static bool allocates(const fake_program *program, const fake_allocation *allocation) {
  for (size_t i = 0; i < program->count; i++) {
    if (program->types[i] == CU_NODE_ALLOC && program->works[i]->of.allocation == allocation) return true;
  }
  return false;
}

/* What it allocates is not alive; what it frees it allocates itself, or is alive. */
static bool may_launch(const fake_program *program) {
  for (size_t i = 0; i < program->count; i++) {
    if (!is_memory(program->types[i])) continue;
    const fake_allocation *allocation = program->works[i]->of.allocation;
    const bool is_alive = fake_allocation_is_alive(allocation);
    if (program->types[i] == CU_NODE_ALLOC && is_alive) return false;
    if (program->types[i] == CU_NODE_FREE && !is_alive && !allocates(program, allocation)) return false;
  }
  return true;
}

cu_result fake_program_take_memory(const fake_program *program, bool frees_before) {
  for (size_t i = 0; i < program->count && frees_before; i++) {
    if (program->types[i] == CU_NODE_ALLOC) set_alive(program->works[i]->of.allocation, false);
  }
  if (!may_launch(program)) return CU_INVALID_VALUE;
  for (size_t i = 0; i < program->count; i++) {
    const cu_result code = program->types[i] == CU_NODE_ALLOC ? back(program->works[i]->of.allocation) : CU_OK;
    if (code != CU_OK) return code;
  }
  for (size_t i = 0; i < program->count; i++) {
    if (program->types[i] == CU_NODE_ALLOC) set_alive(program->works[i]->of.allocation, true);
  }
  for (size_t i = 0; i < program->count; i++) {
    if (program->types[i] == CU_NODE_FREE) set_alive(program->works[i]->of.allocation, false);
  }
  return CU_OK;
}

/* Calls ----------------------------------------------------------------------------------------------------------- */

static fake_work *memory_work(cu_node_type type, fake_context *context, fake_allocation *allocation) {
  fake_work *work = fake_allocate(1, sizeof *work);
  work->references = 1;
  work->type = type;
  work->context = context;
  work->of.allocation = allocation;
  return work;
}

static cu_result allocate(cu_address *out, size_t bytes, fake_stream *stream) {
  fake_context *context = stream->object.context;
  if (stream->capture != NULL && stream->capture->is_invalid) return CU_STREAM_CAPTURE_INVALIDATED;
  cu_result code = stream->capture == NULL ? fake_gate_legacy(stream) : CU_OK;
  if (code != CU_OK) return code;
  fake_allocation *allocation = new_allocation(context, bytes);
  if (allocation == NULL) return CU_OUT_OF_MEMORY;
  *out = allocation->address;
  if (stream->capture != NULL) {
    allocation->is_of_graph = true;
    return fake_capture_work(stream, memory_work(CU_NODE_ALLOC, context, allocation), CU_NODE_ALLOC);
  }
  code = back(allocation);
  if (code == CU_OK) set_alive(allocation, true);
  fake_allocation_release(allocation);
  return code;
}

cu_result fake_mem_alloc_async(cu_address *address, size_t bytes, cu_stream handle) {
  cu_result code = fake_begin(CALL_mem_alloc_async, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && (address == NULL || bytes == 0)) code = CU_INVALID_VALUE;
  if (code == CU_OK && bytes > fake_self.current->device->memory) code = CU_OUT_OF_MEMORY;
  if (code == CU_OK) code = allocate(address, bytes, stream);
  return fake_end(code);
}

/* The allocation that this graph's nodes make at the address; NULL: none. */
static fake_allocation *find_in_graph(const fake_graph *graph, uint64_t address, bool *out_is_freed) {
  fake_allocation *found = NULL;
  *out_is_freed = false;
  for (size_t i = 0; i < graph->count; i++) {
    const fake_node *node = graph->nodes[i];
    if (!is_memory(node->type) || node->work->of.allocation->address != address) continue;
    found = node->work->of.allocation;
    if (node->type == CU_NODE_FREE) *out_is_freed = true;
  }
  return found;
}

bool fake_graph_has_freed(const fake_graph *graph, const cu_copy *copy) {
  for (size_t i = 0; i < graph->count; i++) {
    const fake_node *node = graph->nodes[i];
    if (node->type != CU_NODE_FREE) continue;
    const fake_allocation *allocation = node->work->of.allocation;
    if (fake_copy_names(copy, allocation->address, allocation->held_bytes)) return true;
  }
  return false;
}

/* Memory of the graph itself, or that an earlier launch of another left alive; each once (M6). */
static cu_result capture_free(fake_stream *stream, uint64_t address) {
  bool is_freed;
  if (stream->capture->is_invalid) return CU_STREAM_CAPTURE_INVALIDATED;
  fake_allocation *allocation = find_in_graph(stream->capture->graph, address, &is_freed);
  if (allocation == NULL) allocation = fake_find(FAKE_CUDA_POOL_MEMORY, address);
  if (allocation == NULL || is_freed || !allocation->is_of_graph) return CU_INVALID_VALUE;
  fake_allocation_retain(allocation);
  return fake_capture_work(stream, memory_work(CU_NODE_FREE, stream->object.context, allocation), CU_NODE_FREE);
}

/* The memory goes when the stream comes there, which has the last hold on it; a graph's stays with its graph. */
static cu_result free_now(fake_stream *stream, uint64_t address) {
  fake_allocation *allocation = fake_find(FAKE_CUDA_POOL_MEMORY, address);
  cu_result code = fake_gate_legacy(stream);
  if (code == CU_OK && allocation == NULL) code = CU_INVALID_VALUE;
  if (code != CU_OK) return code;
  fake_allocation_retain(allocation);
  fake_work *work = memory_work(CU_NODE_FREE, stream->object.context, allocation);
  set_alive(allocation, false);
  return fake_stream_submit(stream, (fake_task){.work = work});
}

cu_result fake_mem_free_async(cu_address address, cu_stream handle) {
  cu_result code = fake_begin(CALL_mem_free_async, FAKE_IN_CONTEXT | FAKE_ALL_THE_SAME);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = stream->capture != NULL ? capture_free(stream, address) : free_now(stream, address);
  return fake_end(code);
}

static const fake_allocation *allocation_of(cu_graph_node handle, cu_node_type type) {
  const fake_node *node = fake_need(FAKE_CUDA_NODE, fake_handle(handle));
  return node != NULL && node->type == type ? node->work->of.allocation : NULL;
}

cu_result fake_graph_alloc_get_params(cu_graph_node node, cu_alloc_params *params) {
  cu_result code = fake_begin(CALL_graph_alloc_get_params, FAKE_ANYWHERE);
  const fake_allocation *allocation = code == CU_OK ? allocation_of(node, CU_NODE_ALLOC) : NULL;
  if (code == CU_OK && (allocation == NULL || params == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK)
    *params = (cu_alloc_params){.type = CU_ALLOCATION_PINNED,
                                .location = {CU_LOCATION_DEVICE, allocation->context->device->ordinal},
                                .bytes = allocation->bytes,
                                .address = allocation->address};
  return fake_end(code);
}

cu_result fake_graph_free_get_params(cu_graph_node node, cu_address *address) {
  cu_result code = fake_begin(CALL_graph_free_get_params, FAKE_ANYWHERE);
  const fake_allocation *allocation = code == CU_OK ? allocation_of(node, CU_NODE_FREE) : NULL;
  if (code == CU_OK && (allocation == NULL || address == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) *address = allocation->address;
  return fake_end(code);
}

void fake_allocations_reset(void) {
  fake_allocation *allocation;
  while ((allocation = fake_any(FAKE_CUDA_POOL_MEMORY)) != NULL) set_alive(allocation, false);
}
