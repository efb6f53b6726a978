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

/* Attributes ------------------------------------------------------------------------------------------------------- */

enum { MOST_ATTRIBUTES = 6, PERCENT_VERSION = 12050, PROGRAMMATIC_MAJOR = 9 };

typedef struct attribute_list {
  unsigned count;
  cu_launch_attribute items[MOST_ATTRIBUTES];
} attribute_list;

static void add_number(attribute_list *list, cu_launch_attribute_id id, int number) {
  if (number != 0) list->items[list->count++] = (cu_launch_attribute){.id = id, .value.number = number};
}

/* What nodes have too. */
static void list_attributes(const cuda_device *device, const rondo_launch_config *config, attribute_list *out) {
  const rondo_dimensions size = config->cluster;
  out->count = 0;
  add_number(out, CU_LAUNCH_COOPERATIVE, config->cooperative);
  add_number(out, CU_LAUNCH_PRIORITY, config->priority);
  add_number(out, CU_LAUNCH_MEMORY_DOMAIN, (int)config->memory_domain);
  if (device->api->version >= PERCENT_VERSION) add_number(out, CU_LAUNCH_SHARED_PERCENT, (int)config->shared_percent);
  if (size.x != 0)
    out->items[out->count++] =
        (cu_launch_attribute){.id = CU_LAUNCH_CLUSTER, .value.size = {.x = size.x, .y = size.y, .z = size.z}};
}

bool cuda_may_begin_early(const cuda_device *device) { return device->major >= PROGRAMMATIC_MAJOR; }

cu_result cuda_launch_configured(const cuda_device *device, cu_stream stream, const cu_kernel_params *p,
                                 const rondo_launch_config *config) {
  attribute_list list;
  if (config == NULL || !rondo_launch_config_has_attributes(config)) return cuda_launch_params(device->api, stream, p);
  list_attributes(device, config, &list);
  if (cuda_may_begin_early(device)) add_number(&list, CU_LAUNCH_PROGRAMMATIC, config->programmatic);
  const cu_launch_config launch = {.grid_x = p->grid_x,
                                   .grid_y = p->grid_y,
                                   .grid_z = p->grid_z,
                                   .block_x = p->block_x,
                                   .block_y = p->block_y,
                                   .block_z = p->block_z,
                                   .shared_bytes = p->shared_bytes,
                                   .stream = stream,
                                   .attributes = list.items,
                                   .attribute_count = list.count};
  return device->api->launch_kernel_ex(&launch, p->function, p->params, p->extra);
}

cu_result cuda_node_attributes_set(const cuda_device *device, cu_graph_node node, const rondo_launch_config *config) {
  attribute_list list;
  cu_result code = CU_OK;
  list_attributes(device, config, &list);
  for (unsigned i = 0; i < list.count && code == CU_OK; i++)
    code = device->api->graph_kernel_set_attribute(node, list.items[i].id, &list.items[i].value);
  return code;
}

static cu_result read_number(const cuda_api *api, cu_graph_node node, cu_launch_attribute_id id, int *out) {
  cu_launch_value value;
  value.number = 0;
  const cu_result code = api->graph_kernel_get_attribute(node, id, &value);
  *out = value.number;
  return code;
}

static cu_result read_cluster(const cuda_api *api, cu_graph_node node, rondo_dimensions *out) {
  cu_launch_value value;
  value.size.x = value.size.y = value.size.z = 0;
  const cu_result code = api->graph_kernel_get_attribute(node, CU_LAUNCH_CLUSTER, &value);
  *out = (rondo_dimensions){value.size.x, value.size.y, value.size.z};
  return code;
}

/* A driver without an attribute does not know it, so no node has it. */
cu_result cuda_node_attributes_read(const cuda_api *api, cu_graph_node node, rondo_launch_config *out) {
  int cooperative = 0, priority = 0, domain = 0, percent = 0;
  cu_result code = read_cluster(api, node, &out->cluster);
  if (code == CU_OK) code = read_number(api, node, CU_LAUNCH_COOPERATIVE, &cooperative);
  if (code == CU_OK) code = read_number(api, node, CU_LAUNCH_PRIORITY, &priority);
  if (code == CU_OK) code = read_number(api, node, CU_LAUNCH_MEMORY_DOMAIN, &domain);
  if (code == CU_OK && api->version >= PERCENT_VERSION)
    code = read_number(api, node, CU_LAUNCH_SHARED_PERCENT, &percent);
  out->cooperative = cooperative != 0;
  out->priority = priority;
  out->memory_domain = domain == 0 ? RONDO_MEMORY_DOMAIN_DEFAULT : RONDO_MEMORY_DOMAIN_REMOTE;
  out->shared_percent = percent > 0 && percent <= 100 ? (uint32_t)percent : 0;
  return code;
}

/* Launches --------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) cu_result submit_configured(cu_stream stream, const rondo_kernel_node *node,
                                                             const cu_kernel_params *p) {
  const cuda_kernel *compiled = node->kernel->driver_data;
  rondo_launch_config config;
  (void)rondo_launch_config_resolve(node, &config);
  return cuda_launch_configured(compiled->device, stream, p, &config);
}

cu_result cuda_kernel_submit(const cuda_api *api, cu_stream stream, const rondo_kernel_node *node) {
  const cuda_foreign_kernel *foreign = cuda_foreign_of(node->kernel);
  void *list[CUDA_BUFFER_LIST];
  cu_kernel_params p;
  cuda_kernel_params(node, &p);
  if (foreign != NULL && node->arg_count > 0) cuda_foreign_arguments(foreign, true, node->args, list, &p);
  if (__builtin_expect(node->config != NULL, 0)) return submit_configured(stream, node, &p);
  return cuda_launch_params(api, stream, &p);
}

cu_result cuda_launch_params(const cuda_api *api, cu_stream stream, const cu_kernel_params *p) {
  return api->launch_kernel(p->function, p->grid_x, p->grid_y, p->grid_z, p->block_x, p->block_y, p->block_z,
                            p->shared_bytes, stream, p->params, p->extra);
}
