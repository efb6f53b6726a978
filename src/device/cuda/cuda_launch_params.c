/* SPDX-License-Identifier: MIT
 * Kernels and copies as the driver takes them, on streams and in graphs. Addresses are unified: the driver finds the
 * kind of memory by the address. Threads: any.
 */
#include "device/cuda/cuda_launch_params.h"

#include <assert.h>

#include "device/cuda/cuda_foreign_nodes.h"
#include "graph/launch_config.h"

/* A copy as the driver describes it. */
typedef struct copy_shape {
  size_t height, depth, src_pitch, dst_pitch, src_slice, dst_slice; /* rows, slices; bytes */
} copy_shape;

static copy_shape shape_of(const rondo_copy *copy) {
  if (copy->height > 1 || copy->depth == 1)
    return (copy_shape){.height = copy->height,
                        .depth = copy->depth,
                        .src_pitch = copy->src_pitch,
                        .dst_pitch = copy->dst_pitch,
                        .src_slice = copy->src_slice_pitch,
                        .dst_slice = copy->dst_slice_pitch};
  return (copy_shape){.height = copy->depth, /* slices of one row are rows */
                      .depth = 1,
                      .src_pitch = copy->src_slice_pitch,
                      .dst_pitch = copy->dst_slice_pitch,
                      .src_slice = copy->src_slice_pitch * copy->depth,
                      .dst_slice = copy->dst_slice_pitch * copy->depth};
}

/* The driver counts the distance between slices in rows. */
static bool has_whole_rows(const copy_shape *shape) {
  return shape->src_slice % shape->src_pitch == 0 && shape->dst_slice % shape->dst_pitch == 0;
}

size_t cuda_copy_parts(const rondo_copy *copy) {
  const copy_shape shape = shape_of(copy);
  return has_whole_rows(&shape) ? 1 : shape.depth;
}

void cuda_copy_params(const rondo_copy *copy, size_t part, cu_copy *out) {
  const copy_shape shape = shape_of(copy);
  const bool is_whole = has_whole_rows(&shape);
  assert(part < cuda_copy_parts(copy));
  *out = (cu_copy){.src_type = CU_MEMORY_UNIFIED,
                   .src_device = cuda_address(copy->src) + part * shape.src_slice,
                   .src_pitch = shape.src_pitch,
                   .src_height = is_whole ? shape.src_slice / shape.src_pitch : shape.height,
                   .dst_type = CU_MEMORY_UNIFIED,
                   .dst_device = cuda_address(copy->dst) + part * shape.dst_slice,
                   .dst_pitch = shape.dst_pitch,
                   .dst_height = is_whole ? shape.dst_slice / shape.dst_pitch : shape.height,
                   .width = copy->width,
                   .height = shape.height,
                   .depth = is_whole ? shape.depth : 1};
}

cu_result cuda_copy_submit(const cuda_api *api, cu_stream stream, const rondo_copy *copy) {
  if (copy->height == 1 && copy->depth == 1)
    return api->copy_async(cuda_address(copy->dst), cuda_address(copy->src), copy->width, stream);
  const size_t parts = cuda_copy_parts(copy);
  cu_result code = CU_OK;
  for (size_t part = 0; part < parts && code == CU_OK; part++) {
    cu_copy params;
    cuda_copy_params(copy, part, &params);
    code = api->copy_3d_async(&params, stream);
  }
  return code;
}

static __attribute__((noinline)) void configured_params(const rondo_kernel_node *node, const cuda_kernel *compiled,
                                                        cu_kernel_params *out) {
  rondo_launch_config config;
  (void)rondo_launch_config_resolve(node, &config);
  if (compiled->foreign != NULL)
    *out = compiled->foreign->params;
  else
    *out = (cu_kernel_params){.function = compiled->function, .params = (void **)(uintptr_t)node->args};
  out->grid_x = node->grid.x;
  out->grid_y = node->grid.y;
  out->grid_z = node->grid.z;
  out->block_x = config.block.x;
  out->block_y = config.block.y;
  out->block_z = config.block.z;
  out->shared_bytes = config.shared_bytes;
}

void cuda_kernel_params(const rondo_kernel_node *node, cu_kernel_params *out) {
  const cuda_kernel *compiled = node->kernel->driver_data;
  if (__builtin_expect(compiled->foreign != NULL || node->config != NULL, 0)) {
    configured_params(node, compiled, out);
    return;
  }
  *out = (cu_kernel_params){.function = compiled->function,
                            .grid_x = node->grid.x,
                            .grid_y = node->grid.y,
                            .grid_z = node->grid.z,
                            .block_x = node->kernel->block_threads,
                            .block_y = 1,
                            .block_z = 1,
                            .params = (void **)(uintptr_t)node->args}; /* the driver only reads */
}

cu_result cuda_kernel_submit(const cuda_api *api, cu_stream stream, const rondo_kernel_node *node) {
  const cuda_foreign_kernel *foreign = cuda_foreign_of(node->kernel);
  void *list[CUDA_BUFFER_LIST];
  cu_kernel_params p;
  cuda_kernel_params(node, &p);
  if (foreign != NULL && node->arg_count > 0) cuda_foreign_arguments(foreign, true, node->args[0], list, &p);
  return cuda_launch_params(api, stream, &p);
}

cu_result cuda_launch_params(const cuda_api *api, cu_stream stream, const cu_kernel_params *p) {
  return api->launch_kernel(p->function, p->grid_x, p->grid_y, p->grid_z, p->block_x, p->block_y, p->block_z,
                            p->shared_bytes, stream, p->params, p->extra);
}
