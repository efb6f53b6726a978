/* SPDX-License-Identifier: MIT
 * Enqueues work on streams of the fake driver: copies, fills, host functions, kernels. On a capturing stream, the work
 * becomes a node.
 */
#include "fake_cuda/fake.h"

/* Takes over `work`. */
static cu_result give(fake_stream *stream, fake_work *work) {
  if (stream->capture != NULL) return fake_capture_work(stream, work, work->type);
  cu_result code = fake_gate_legacy(stream);
  const bool is_kernel = work->type == CU_NODE_KERNEL;
  if (code == CU_OK && is_kernel) fake_stream_serialize(stream);
  if (code == CU_OK) code = stream->object.context->lost;
  if (code != CU_OK) {
    fake_work_release(work);
    return code;
  }
  code = fake_stream_submit(stream, (fake_task){.work = work});
  if (is_kernel) fake_stream_serialize(stream);
  return code;
}

static cu_result give_copy(cu_stream handle, const cu_copy *copy) {
  fake_stream *stream = fake_stream_need(handle);
  fake_work *work;
  if (stream == NULL) return CU_INVALID_HANDLE;
  if (copy == NULL) return CU_INVALID_VALUE;
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return CU_OK;
  const cu_result code = fake_work_copy(copy, stream->object.context, stream->capture != NULL, &work);
  if (code == CU_OK && stream->capture == NULL) fake_late_take_source(work);
  return code == CU_OK ? give(stream, work) : code;
}

cu_result fake_copy_async(cu_address dst, cu_address src, size_t bytes, cu_stream stream) {
  cu_result code = fake_begin(CALL_copy_async, FAKE_IN_CONTEXT);
  if (code == CU_OK) {
    const cu_copy copy = {.src_type = CU_MEMORY_UNIFIED,
                          .src_device = src,
                          .dst_type = CU_MEMORY_UNIFIED,
                          .dst_device = dst,
                          .width = bytes,
                          .height = 1,
                          .depth = 1};
    code = give_copy(stream, &copy);
  }
  return fake_end(code);
}

cu_result fake_copy_3d_async(const cu_copy *copy, cu_stream stream) {
  cu_result code = fake_begin(CALL_copy_3d_async, FAKE_IN_CONTEXT);
  if (code == CU_OK) code = give_copy(stream, copy);
  return fake_end(code);
}

static cu_result fill(fake_call call, cu_stream handle, cu_memset_params params) {
  cu_result code = fake_begin(call, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  fake_work *work;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code != CU_OK || params.width == 0 || params.height == 0) return fake_end(code);
  code = fake_work_fill(&params, stream->object.context, stream->capture != NULL, &work);
  if (code == CU_OK) code = give(stream, work);
  return fake_end(code);
}

cu_result fake_memset_8_async(cu_address dst, unsigned char value, size_t count, cu_stream stream) {
  return fill(CALL_memset_8_async, stream, (cu_memset_params){dst, 0, value, 1, count, 1});
}

cu_result fake_memset_16_async(cu_address dst, unsigned short value, size_t count, cu_stream stream) {
  return fill(CALL_memset_16_async, stream, (cu_memset_params){dst, 0, value, 2, count, 1});
}

cu_result fake_memset_32_async(cu_address dst, unsigned value, size_t count, cu_stream stream) {
  return fill(CALL_memset_32_async, stream, (cu_memset_params){dst, 0, value, 4, count, 1});
}

cu_result fake_memset_2d_8_async(cu_address dst, size_t pitch, unsigned char value, size_t width, size_t height,
                                 cu_stream stream) {
  return fill(CALL_memset_2d_8_async, stream, (cu_memset_params){dst, pitch, value, 1, width, height});
}

cu_result fake_memset_2d_16_async(cu_address dst, size_t pitch, unsigned short value, size_t width, size_t height,
                                  cu_stream stream) {
  return fill(CALL_memset_2d_16_async, stream, (cu_memset_params){dst, pitch, value, 2, width, height});
}

cu_result fake_memset_2d_32_async(cu_address dst, size_t pitch, unsigned value, size_t width, size_t height,
                                  cu_stream stream) {
  return fill(CALL_memset_2d_32_async, stream, (cu_memset_params){dst, pitch, value, 4, width, height});
}

cu_result fake_launch_host_function(cu_stream handle, cu_host_function function, void *user) {
  cu_result code = fake_begin(CALL_launch_host_function, FAKE_ANYWHERE);
  const cu_host_params params = {function, user};
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  fake_work *work;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_work_host(&params, stream->object.context, &work);
  if (code == CU_OK) code = give(stream, work);
  return fake_end(code);
}

/* Without attributes it has those of the stream. */
static cu_result give_kernel(cu_stream handle, const cu_kernel_params *params, const fake_cuda_attributes *attributes) {
  fake_stream *stream = fake_stream_need(handle);
  fake_work *work;
  if (stream == NULL) return CU_INVALID_HANDLE;
  fake_cuda_attributes own = {.priority = stream->priority};
  const cu_result code = fake_work_kernel(params, attributes != NULL ? attributes : &own, &work);
  if (code != CU_OK) return code;
  if (work->context == stream->object.context) return give(stream, work);
  fake_work_release(work);
  return fake_violation(CU_INVALID_HANDLE, "kernel launched on a stream of another context");
}

cu_result fake_launch_kernel(cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, cu_stream stream, void **params,
                             void **extra) {
  cu_result code = fake_begin(CALL_launch_kernel, FAKE_IN_CONTEXT);
  const cu_kernel_params kernel = {.function = function,
                                   .grid_x = grid_x,
                                   .grid_y = grid_y,
                                   .grid_z = grid_z,
                                   .block_x = block_x,
                                   .block_y = block_y,
                                   .block_z = block_z,
                                   .shared_bytes = shared_bytes,
                                   .params = params,
                                   .extra = extra};
  if (code == CU_OK) code = give_kernel(stream, &kernel, NULL);
  return fake_end(code);
}

static cu_result read_attributes(const cu_launch_config *launch, const fake_stream *stream, fake_cuda_attributes *out) {
  cu_result code = CU_OK;
  *out = (fake_cuda_attributes){.priority = stream->priority};
  for (unsigned i = 0; i < launch->attribute_count && code == CU_OK; i++)
    code = fake_attribute_set(out, launch->attributes[i].id, &launch->attributes[i].value);
  return code;
}

static bool is_kernel(cu_graph_node handle) {
  const fake_node *node = fake_find(FAKE_CUDA_NODE, fake_handle(handle));
  return node != NULL && node->type == CU_NODE_KERNEL;
}

/* The next kernel that is captured may begin before the kernel before it has ended. */
static void loosen_frontier(fake_stream *stream) {
  const cu_edge_data programmatic = {.from_port = 1, .type = 1};
  if (stream->capture == NULL || stream->frontier.count != 1 || !is_kernel(stream->frontier.nodes[0])) return;
  stream->frontier.data[0] = programmatic;
}

cu_result fake_launch_kernel_ex(const cu_launch_config *launch, cu_function function, void **params, void **extra) {
  fake_cuda_attributes attributes;
  cu_result code = fake_begin(CALL_launch_kernel_ex, FAKE_IN_CONTEXT);
  if (code == CU_OK && launch == NULL) code = CU_INVALID_VALUE;
  fake_stream *stream = code == CU_OK ? fake_stream_need(launch->stream) : NULL;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = read_attributes(launch, stream, &attributes);
  if (code != CU_OK) return fake_end(code);
  const cu_kernel_params kernel = {.function = function,
                                   .grid_x = launch->grid_x,
                                   .grid_y = launch->grid_y,
                                   .grid_z = launch->grid_z,
                                   .block_x = launch->block_x,
                                   .block_y = launch->block_y,
                                   .block_z = launch->block_z,
                                   .shared_bytes = launch->shared_bytes,
                                   .params = params,
                                   .extra = extra};
  if (attributes.programmatic != 0) loosen_frontier(stream);
  return fake_end(give_kernel(launch->stream, &kernel, &attributes));
}

cu_result fake_stream_wait_value_32(cu_stream handle, cu_address address, uint32_t value, unsigned flags) {
  cu_result code = fake_begin(CALL_stream_wait_value_32, FAKE_IN_CONTEXT);
  const cu_memory_operation wait = {
      .of = {.operation = CU_OPERATION_WAIT_VALUE_32, .address = address, .value = value, .flags = flags}};
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  fake_work *work;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_work_operations(&wait, 1, stream->object.context, &work);
  if (code == CU_OK) code = give(stream, work);
  return fake_end(code);
}

cu_result fake_stream_batch_mem_op(cu_stream handle, unsigned count, cu_memory_operation *operations, unsigned flags) {
  cu_result code = fake_begin(CALL_stream_batch_mem_op, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  fake_work *work;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK && flags != 0) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_operations(operations, count, stream->object.context, &work);
  if (code == CU_OK) code = give(stream, work);
  return fake_end(code);
}

static cu_result submit_semaphores(fake_call call, cu_node_type type, const cu_external_semaphore *semaphores,
                                   const cu_semaphore_params *params, unsigned count, cu_stream handle) {
  cu_result code = fake_begin(call, FAKE_IN_CONTEXT);
  fake_stream *stream = code == CU_OK ? fake_stream_need(handle) : NULL;
  fake_work *work;
  if (code == CU_OK && stream == NULL) code = CU_INVALID_HANDLE;
  if (code == CU_OK) code = fake_work_semaphores(semaphores, params, count, type, stream->object.context, &work);
  if (code == CU_OK) code = give(stream, work);
  return fake_end(code);
}

cu_result fake_signal_semaphores_async(const cu_external_semaphore *semaphores, const cu_semaphore_params *params,
                                       unsigned count, cu_stream stream) {
  return submit_semaphores(CALL_signal_semaphores_async, CU_NODE_SEMAPHORE_SIGNAL, semaphores, params, count, stream);
}

cu_result fake_wait_semaphores_async(const cu_external_semaphore *semaphores, const cu_semaphore_params *params,
                                     unsigned count, cu_stream stream) {
  return submit_semaphores(CALL_wait_semaphores_async, CU_NODE_SEMAPHORE_WAIT, semaphores, params, count, stream);
}
