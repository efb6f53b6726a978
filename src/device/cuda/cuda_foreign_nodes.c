/* SPDX-License-Identifier: MIT
 * Kernels, copies and other nodes that libraries captured: they are read from the captured graph, and added to the
 * graph of an executable.
 */
#include "device/cuda/cuda_foreign_nodes.h"

#include <string.h>

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_declared_kernels.h"
#include "device/cuda/cuda_kernel.h"
#include "device/cuda/cuda_launch_params.h"
#include "graph/launch_config.h"
#include "graph/node_params.h"

/* Tags in the list by which a kernel may get its arguments (CU_LAUNCH_PARAM_). */
enum { LAUNCH_END = 0, LAUNCH_BUFFER = 1, LAUNCH_BUFFER_BYTES = 2 };

static cuda_device *device_of(const cuda_captured *captured) { return cuda_device_of(captured->base.device); }

/* Reading kernels -------------------------------------------------------------------------------------------------- */

/* Offset and size of argument `index`; *out_is_there is false past the last. */
static rondo_status ask_argument(cuda_device *device, cu_function function, size_t index, size_t *out_offset,
                                 size_t *out_bytes, bool *out_is_there) {
  const cu_result code = device->api->function_param_info == NULL
                             ? CU_NOT_SUPPORTED
                             : device->api->function_param_info(function, index, out_offset, out_bytes);
  *out_is_there = code == CU_OK;
  return code == CU_INVALID_VALUE ? RONDO_OK : cuda_check(device, code, "asking for argument %zu of a kernel", index);
}

static rondo_status fail_argument(size_t bytes, size_t offset) {
  return rondo_fail(
      RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
      "a kernel with an argument of %zu bytes at %zu: at most %d bytes are possible in all: pass a pointer to it",
      bytes, offset, RONDO_MAX_PARAMETER_BYTES);
}

/* Where the function expects its arguments. */
static rondo_status find_arguments(cuda_captured *captured, cu_function function, cuda_foreign_kernel *out) {
  const rondo_allocator *allocator = &captured->base.device->allocator;
  captured->places.count = 0;
  for (;;) {
    bool is_there;
    size_t offset = 0, bytes = 0;
    RONDO_TRY(ask_argument(device_of(captured), function, captured->places.count, &offset, &bytes, &is_there));
    if (!is_there) break;
    if (offset > RONDO_MAX_PARAMETER_BYTES || bytes > RONDO_MAX_PARAMETER_BYTES - offset)
      return fail_argument(bytes, offset);
    const cuda_argument place = {(uint32_t)offset, (uint32_t)bytes};
    RONDO_TRY(rondo_array_push(allocator, &captured->places, &place));
    out->has_gaps = out->has_gaps || offset != out->bytes;
    if (offset + bytes > out->bytes) out->bytes = offset + bytes;
  }
  RONDO_TRY(rondo_allocate_copy(allocator, captured->places.items, captured->places.count, sizeof *out->arguments,
                                &out->arguments));
  out->count = captured->places.count;
  return RONDO_OK;
}

/* Copies arguments that were given one by one to where the kernel expects them. */
static rondo_status gather_arguments(cuda_captured *captured, void *const *arguments,
                                     const cuda_foreign_kernel *foreign) {
  RONDO_TRY(rondo_array_reserve(&captured->base.device->allocator, &captured->values, foreign->bytes));
  if (foreign->has_gaps) memset(captured->values.items, 0, foreign->bytes);
  for (size_t i = 0; i < foreign->count; i++)
    rondo_argument_set(captured->values.items + foreign->arguments[i].offset, arguments[i],
                       foreign->arguments[i].bytes);
  captured->argument_values = captured->values.items;
  return RONDO_OK;
}

/* Arguments that were given as one buffer. */
static rondo_status find_buffer(void *const *extra, const void **out, size_t *out_bytes) {
  *out = NULL;
  *out_bytes = 0;
  for (; (uintptr_t)extra[0] != LAUNCH_END; extra += 2) {
    if ((uintptr_t)extra[0] == LAUNCH_BUFFER) *out = extra[1];
    if ((uintptr_t)extra[0] == LAUNCH_BUFFER_BYTES) memcpy(out_bytes, extra[1], sizeof *out_bytes);
  }
  if (*out != NULL && *out_bytes <= RONDO_MAX_PARAMETER_BYTES) return RONDO_OK;
  return rondo_fail(
      RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
      "a kernel whose arguments are a buffer of %zu bytes: at most %d are possible: pass a pointer to some of "
      "them",
      *out_bytes, RONDO_MAX_PARAMETER_BYTES);
}

void cuda_foreign_kernel_free(cuda_device *device, cuda_foreign_kernel *foreign) {
  const rondo_allocator *allocator = &device->base.allocator;
  if (foreign == NULL) return;
  rondo_release(allocator, foreign->arguments, foreign->count, sizeof *foreign->arguments);
  rondo_captured_release(foreign->captured);
  rondo_release(allocator, foreign, 1, sizeof *foreign);
}

/* A kernel without code, which gets the function from cuda_kernel_adopt. The limits on the sizes of Rondo's own kernels
 * do not apply. It runs on the device `runs_on`. What it keeps belongs to `device`, on whose queues its graph is
 * launched. */
static rondo_status make_kernel(cuda_device *device, cuda_device *runs_on, const char *name,
                                const cuda_foreign_kernel *foreign, const rondo_kernel *declaration,
                                rondo_kernel **out) {
  const cu_kernel_params *p = &foreign->params;
  const rondo_parameter all = {
      .access = RONDO_ACCESS_SCALAR, .bytes = (uint32_t)foreign->bytes, .alignment = 16}; /* in one */
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = name,
                                  .block_threads = p->block_x * p->block_y * p->block_z};
  if (declaration != NULL) {
    options.param_list = declaration->parameters;
    options.param_count = declaration->parameter_count;
  } else if (foreign->bytes > 0) {
    options.params[0] = all;
  }
  RONDO_TRY(rondo_kernel_make(NULL, &device->base.allocator, &options, out));
  (*out)->device = &runs_on->base;
  (*out)->is_foreign = declaration == NULL;
  (*out)->is_launched_elsewhere = true;
  (*out)->cuda_function = p->function;
  const rondo_status status = cuda_kernel_adopt(device, *out, p->function);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_kernel_release(*out);
  *out = NULL;
  return status;
}

/* Finds the parameters: the declared ones, or where the function expects its arguments. */
static rondo_status find_parameters(cuda_captured *captured, const cu_kernel_params *params,
                                    cuda_foreign_kernel *foreign, rondo_kernel *declaration) {
  if (declaration == NULL && params->params != NULL && params->extra == NULL)
    return find_arguments(captured, params->function, foreign);
  if (declaration == NULL) return RONDO_OK;
  RONDO_TRY(cuda_kernel_check_parameters(device_of(captured), declaration, params->function));
  foreign->is_declared = true;
  foreign->bytes = declaration->argument_bytes;
  return RONDO_OK;
}

/* Owns `foreign` from now on, also if it fails. */
static rondo_status finish_kernel(cuda_captured *captured, cuda_device *runs_on, const cu_kernel_params *params,
                                  cuda_foreign_kernel *foreign, rondo_kernel **out) {
  cuda_device *device = device_of(captured);
  const char *name = NULL;
  rondo_status status = cuda_check(device, device->api->function_get_name(&name, params->function),
                                   "asking for the name of a captured kernel");
  if (name == NULL || name[0] == '\0') name = "kernel";
  rondo_kernel *declaration = status == RONDO_OK ? cuda_declaration_find(runs_on, params->function, name) : NULL;
  if (status == RONDO_OK) status = find_parameters(captured, params, foreign, declaration);
  if (status == RONDO_OK) status = make_kernel(device, runs_on, name, foreign, declaration, out);
  rondo_kernel_release(declaration);
  if (status != RONDO_OK) {
    cuda_foreign_kernel_free(device, foreign);
    return status;
  }
  ((cuda_kernel *)(*out)->driver_data)->foreign = foreign;
  const rondo_kernel_node launch = {.kernel = *out, .config = &foreign->config};
  rondo_launch_config resolved;
  foreign->is_configured = rondo_launch_config_resolve(&launch, &resolved);
  return RONDO_OK;
}

/* A kernel of a library object (cuLibrary) has another handle, with a function for each context. */
static rondo_status find_function(cuda_device *device, cu_kernel_params *params) {
  CUDA_SCOPE(scope);
  if (params->function != NULL || params->kernel == NULL) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  return cuda_check(device, device->api->kernel_get_function(&params->function, params->kernel),
                    "reading a captured kernel");
}

/* The GPU of another context; -1 if the driver does not say. */
static cu_device find_gpu(cuda_device *device, cu_context context) {
  cu_device gpu;
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  const bool is_found =
      device->api->context_set_current(context) == CU_OK && device->api->context_get_device(&gpu) == CU_OK;
  (void)device->api->context_set_current(device->context); /* which the scope leaves */
  return is_found ? gpu : -1;
}

static rondo_status fail_context(cuda_device *device, const cu_kernel_params *params) {
  const char *name = NULL;
  if (params->function == NULL || device->api->function_get_name(&name, params->function) != CU_OK || name == NULL)
    name = "";
  const cu_device gpu = find_gpu(device, params->context);
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                    "kernel '%s' runs in context %p of GPU %d, which is that of no open device, and the graph belongs "
                    "to device '%s' of GPU %d: open the device first (rondo_device_open), which works in its primary "
                    "context, and keep it open as long as the graph",
                    name, (void *)params->context, gpu, device->base.name, device->handle);
}

/* A search for the device that works in a context. */
typedef struct context_search {
  cuda_captured *captured;
  cu_context context;
  rondo_device *found;
} context_search;

/* There is capacity in the list of the devices that are used. */
static bool has_context(rondo_device *device, void *user) {
  context_search *search = user;
  if (device->is_inherited || !rondo_device_shares_driver(device, search->captured->base.device)) return false;
  if (((const cuda_device *)device)->context != search->context) return false;
  rondo_devices_use(&search->captured->others, device);
  search->found = device;
  return true;
}

/* The device in whose context the kernel runs. It stays open until the reading ends; a graph retains it. */
static rondo_status find_device(cuda_captured *captured, const cu_kernel_params *params, cuda_device **out) {
  context_search search = {.captured = captured, .context = params->context};
  *out = device_of(captured);
  if (params->context == NULL || params->context == (*out)->context) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&captured->base.device->allocator, &captured->others, captured->others.count + 1));
  if (!rondo_device_find(has_context, &search)) return fail_context(*out, params);
  *out = cuda_device_of(search.found);
  return RONDO_OK;
}

static rondo_status read_config(cuda_device *device, cu_graph_node node, const cu_kernel_params *params,
                                rondo_launch_config *out) {
  *out = (rondo_launch_config){.block = {params->block_x, params->block_y, params->block_z},
                               .shared_bytes = params->shared_bytes};
  CUDA_TRY(device, cuda_node_attributes_read(device->api, node, out), "reading the attributes of a captured kernel");
  if (rondo_launch_config_has_attributes(out))
    atomic_store_explicit(&device->has_attributes, true, memory_order_relaxed);
  return RONDO_OK;
}

/* What a kernel's nodes share: all but the grid and the arguments. */
static cu_kernel_params shared_params(const cu_kernel_params *params) {
  cu_kernel_params shared = *params;
  shared.grid_x = shared.grid_y = shared.grid_z = 0;
  shared.params = shared.extra = NULL;
  return shared;
}

static rondo_status make_foreign(cuda_captured *captured, cuda_device *runs_on, const cu_kernel_params *params,
                                 const rondo_launch_config *config, size_t buffer_bytes, rondo_kernel **out) {
  cuda_device *device = device_of(captured);
  cuda_foreign_kernel *foreign;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(rondo_allocate_items(&device->base.allocator, 1, sizeof *foreign, &foreign));
  foreign->captured = &captured->base;
  rondo_captured_retain(&captured->base);
  foreign->params = shared_params(params);
  foreign->config = *config;
  foreign->has_buffer = params->extra != NULL;
  foreign->bytes = buffer_bytes;
  return finish_kernel(captured, runs_on, params, foreign, out);
}

/* Whether arguments that are given in this form fit the kernel. */
static bool fits_arguments(const cuda_foreign_kernel *foreign, const cu_kernel_params *params, size_t buffer_bytes) {
  if (foreign->is_declared) return true;
  if (foreign->has_buffer || params->extra != NULL)
    return foreign->has_buffer && params->extra != NULL && foreign->bytes == buffer_bytes;
  return (foreign->count > 0) == (params->params != NULL);
}

static bool is_launched_alike(const cuda_foreign_kernel *foreign, const cu_kernel_params *params,
                              const rondo_launch_config *config, size_t buffer_bytes) {
  const cu_kernel_params *a = &foreign->params;
  return a->function == params->function && a->kernel == params->kernel && a->context == params->context &&
         !rondo_launch_config_differs(&foreign->config, config) && fits_arguments(foreign, params, buffer_bytes);
}

/* Most graphs launch few functions many times. A kernel that was read lately is used again. */
static rondo_status find_kernel(cuda_captured *captured, cuda_device *runs_on, const cu_kernel_params *params,
                                const rondo_launch_config *config, size_t buffer_bytes, rondo_kernel **out) {
  const uintptr_t at = (uintptr_t)params->function >> 4;
  rondo_kernel **const lately = &captured->kernels[(at ^ at >> 6) % CUDA_KERNELS_KEPT];
  rondo_kernel *made;
  if (*lately == NULL || !is_launched_alike(cuda_foreign_of(*lately), params, config, buffer_bytes)) {
    RONDO_TRY(make_foreign(captured, runs_on, params, config, buffer_bytes, &made));
    rondo_kernel_release(*lately);
    *lately = made;
  }
  *out = *lately;
  return RONDO_OK;
}

void cuda_foreign_forget_kernels(cuda_captured *captured) {
  for (size_t i = 0; i < CUDA_KERNELS_KEPT; i++) {
    rondo_kernel_release(captured->kernels[i]);
    captured->kernels[i] = NULL;
  }
}

/* Lists the arguments of a declared kernel where the driver has them: one by one, or in one buffer. */
static rondo_status list_arguments(cuda_captured *captured, const cu_kernel_params *params, const rondo_kernel *kernel,
                                   size_t buffer_bytes) {
  const uint32_t count = kernel->parameter_count;
  if ((params->extra != NULL || params->params == NULL) && buffer_bytes < kernel->argument_bytes)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
        "kernel '%s': its arguments are a buffer of %zu bytes, and the parameters that were declared with "
        "rondo_access_declare take %u: declare those that it has",
        kernel->name, buffer_bytes, kernel->argument_bytes);
  RONDO_TRY(rondo_array_reserve(&captured->base.device->allocator, &captured->argument_list, count));
  for (uint32_t i = 0; i < count; i++)
    captured->argument_list.items[i] = params->extra != NULL
                                           ? (const char *)captured->argument_values + kernel->offsets[i]
                                           : (const char *)params->params[i];
  return RONDO_OK;
}

static rondo_status read_arguments(cuda_captured *captured, const cu_kernel_params *params, const rondo_kernel *kernel,
                                   size_t buffer_bytes) {
  const cuda_foreign_kernel *foreign = cuda_foreign_of(kernel);
  if (foreign->is_declared) return list_arguments(captured, params, kernel, buffer_bytes);
  if (params->extra != NULL || params->params == NULL) return RONDO_OK;
  return gather_arguments(captured, params->params, foreign);
}

rondo_status cuda_foreign_kernel_read(cuda_captured *captured, cu_graph_node node, rondo_kernel_node *out) {
  cu_kernel_params params = {0};
  size_t buffer_bytes = 0;
  rondo_launch_config config;
  rondo_kernel *kernel;
  cuda_device *runs_on;
  captured->argument_values = NULL;
  CUDA_TRY(device_of(captured), device_of(captured)->api->graph_kernel_get_params(node, &params),
           "reading a captured kernel");
  RONDO_TRY(find_device(captured, &params, &runs_on));
  RONDO_TRY(find_function(runs_on, &params));
  RONDO_TRY(read_config(runs_on, node, &params, &config));
  if (params.extra != NULL) RONDO_TRY(find_buffer(params.extra, &captured->argument_values, &buffer_bytes));
  RONDO_TRY(find_kernel(captured, runs_on, &params, &config, buffer_bytes, &kernel));
  RONDO_TRY(read_arguments(captured, &params, kernel, buffer_bytes));
  const cuda_foreign_kernel *foreign = cuda_foreign_of(kernel);
  *out = (rondo_kernel_node){.kernel = kernel,
                             .grid = {params.grid_x, params.grid_y, params.grid_z},
                             .args = foreign->is_declared ? captured->argument_list.items : &captured->argument_values,
                             .arg_count = kernel->parameter_count,
                             .config = foreign->is_configured ? &foreign->config : NULL};
  return RONDO_OK;
}

/* Arguments -------------------------------------------------------------------------------------------------------- */

void cuda_foreign_arguments(const cuda_foreign_kernel *foreign, bool as_buffer, const void *const *arguments,
                            void **list, cu_kernel_params *out) {
  const uintptr_t at = (uintptr_t)arguments[0], bytes = (uintptr_t)&foreign->bytes; /* the driver only reads */
  void *const buffer[CUDA_BUFFER_LIST] = {(void *)(uintptr_t)LAUNCH_BUFFER, (void *)at,
                                          (void *)(uintptr_t)LAUNCH_BUFFER_BYTES, (void *)bytes,
                                          (void *)(uintptr_t)LAUNCH_END};
  out->params = foreign->is_declared ? (void **)(uintptr_t)arguments : NULL;
  out->extra = NULL;
  if (foreign->is_declared || foreign->bytes == 0) return;
  if (as_buffer) {
    memcpy(list, buffer, sizeof buffer);
    out->extra = list;
    return;
  }
  for (size_t i = 0; i < foreign->count; i++) list[i] = (void *)(at + foreign->arguments[i].offset);
  out->params = list;
}

/* Copies ----------------------------------------------------------------------------------------------------------- */

/* One side of a copy: its first byte, and its pitches. */
typedef struct copy_side {
  int type;
  uintptr_t address;
  size_t x, y, z, pitch, height;
} copy_side;

static bool place_side(const copy_side *side, const cu_copy *copy, uintptr_t *out_address, size_t *out_pitch,
                       size_t *out_slice) {
  const bool has_rows = copy->height > 1 || side->y > 0 || copy->depth > 1 || side->z > 0;
  size_t slice = 0, offset;
  if (side->type == CU_MEMORY_ARRAY || side->address == 0) return false;
  if (has_rows && !rondo_checked_multiply(side->pitch, side->height, &slice)) return false;
  if (!rondo_checked_multiply(slice, side->z, &offset)) return false;
  *out_address = side->address + offset + side->pitch * side->y + side->x;
  *out_pitch = copy->height > 1 ? side->pitch : 0;
  *out_slice = copy->depth > 1 ? slice : 0;
  return true;
}

bool cuda_foreign_copy_read(const cu_copy *from, rondo_copy *out) {
#define SIDE(side)                                                                                               \
  {                                                                                                              \
    from->side##_type, from->side##_type == CU_MEMORY_HOST ? (uintptr_t)from->side##_host : from->side##_device, \
        from->side##_x, from->side##_y, from->side##_z, from->side##_pitch, from->side##_height                  \
  }
  const copy_side src = SIDE(src), dst = SIDE(dst);
#undef SIDE
  uintptr_t to, at;
  *out = (rondo_copy){.width = from->width, .height = from->height, .depth = from->depth};
  if (!place_side(&dst, from, &to, &out->dst_pitch, &out->dst_slice_pitch)) return false;
  if (!place_side(&src, from, &at, &out->src_pitch, &out->src_slice_pitch)) return false;
  out->dst = (void *)to;
  out->src = (const void *)at;
  const bool is_row = from->height <= 1 && from->depth <= 1;
  return !is_row || (to > at ? to - at : at - to) >= from->width;
}

/* Whether the captured copy is the resolved copy `b`. Fields that have no effect are not compared. */
static bool is_same_copy(const rondo_copy *captured, const rondo_copy *b) {
  rondo_node_params params = {.kind = RONDO_NODE_COPY, .as.copy = *captured};
  rondo_node_params_resolve(&params);
  return memcmp(&params.as.copy, b, sizeof *b) == 0;
}

/* As the source, except for the type of memory, which the driver is to find by the address: graph memory was not mapped
 * during the capture, and may have been taken for host memory. */
static cu_result read_copy(const cuda_api *api, cu_graph_node source, cu_copy *out) {
  const cu_result code = api->graph_copy_get_params(source, out);
  if (code != CU_OK) return code;
  if (out->src_type == CU_MEMORY_HOST) out->src_device = (cu_address)(uintptr_t)out->src_host;
  if (out->dst_type == CU_MEMORY_HOST) out->dst_device = (cu_address)(uintptr_t)out->dst_host;
  if (out->src_type != CU_MEMORY_ARRAY) out->src_type = CU_MEMORY_UNIFIED;
  if (out->dst_type != CU_MEMORY_ARRAY) out->dst_type = CU_MEMORY_UNIFIED;
  return CU_OK;
}

cu_result cuda_foreign_copy_find(const cuda_device *device, uint64_t captured, const rondo_copy *copy,
                                 bool *out_is_found, cu_copy *out) {
  const cu_graph_node node = cuda_captured_handle(captured);
  cu_node_type type = CU_NODE_EMPTY;
  rondo_copy read;
  *out_is_found = false;
  cu_result code = device->api->graph_node_get_type(node, &type);
  if (code != CU_OK || type != CU_NODE_COPY) return code;
  code = read_copy(device->api, node, out);
  *out_is_found = code == CU_OK && cuda_foreign_copy_read(out, &read) && is_same_copy(&read, copy);
  return code;
}

/* Other nodes ------------------------------------------------------------------------------------------------------ */

static cu_result add_event(const cuda_api *api, cu_node_type type, cu_graph_node source, cu_graph graph,
                           const cu_graph_node *before, size_t count, cu_graph_node *out) {
  cu_event event;
  const bool records = type == CU_NODE_EVENT_RECORD;
  const cu_result code =
      records ? api->graph_event_record_get(source, &event) : api->graph_event_wait_get(source, &event);
  if (code != CU_OK) return code;
  return records ? api->graph_add_event_record(out, graph, before, count, event)
                 : api->graph_add_event_wait(out, graph, before, count, event);
}

cu_result cuda_foreign_add(const cuda_device *device, cu_graph_node source, cu_graph graph, const cu_graph_node *before,
                           size_t count, cu_graph_node *out) {
  const cuda_api *api = device->api;
  cu_node_type type;
  cu_host_params host;
  cu_copy copy;
  cu_result code = api->graph_node_get_type(source, &type);
  if (code != CU_OK) return code;
  switch (type) {
    case CU_NODE_HOST:
      code = api->graph_host_get_params(source, &host);
      return code == CU_OK ? api->graph_add_host(out, graph, before, count, &host) : code;
    case CU_NODE_COPY:
      code = read_copy(api, source, &copy);
      return code == CU_OK ? api->graph_add_copy(out, graph, before, count, &copy, device->context) : code;
    case CU_NODE_EVENT_RECORD:
    case CU_NODE_EVENT_WAIT:
      return add_event(api, type, source, graph, before, count, out);
    default:
      return CU_NOT_SUPPORTED;
  }
}
