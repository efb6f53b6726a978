/* SPDX-License-Identifier: MIT
 * Contents of a node: its own copies of everything that its parameters point to. A kernel's arguments are at the
 * kernel's offsets in one block, which is aligned for any parameter; the list of their addresses follows them. The node
 * retains its kernel and event, and owns its child graph. Copies and fills are stored in normal form, together with the
 * numbers that the caller gave.
 */
#include "graph/node.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/graph_clone.h"
#include "graph/launch_config.h"
#include "graph/node_params.h"
#include "graph/semaphore_data.h"

/* A slab aligns to RONDO_SLAB_STEP only. */
static const rondo_allocator *arguments_allocator(const rondo_graph *owner, const rondo_kernel *kernel) {
  return kernel->argument_alignment > RONDO_SLAB_STEP ? &owner->allocator : &owner->storage->small;
}

/* Where the list of addresses begins in the block, after the values. */
static size_t list_offset(const rondo_kernel *kernel) { return rondo_argument_words(kernel) * sizeof(uint64_t); }

static size_t block_bytes(const rondo_kernel *kernel) {
  return list_offset(kernel) + kernel->parameter_count * sizeof(void *);
}

static rondo_status take_block(rondo_graph *owner, const rondo_kernel *kernel, void **out) {
  if (kernel->argument_alignment <= RONDO_SLAB_STEP)
    return rondo_slab_take(&owner->storage->slab, block_bytes(kernel), out);
  return rondo_allocate_aligned(&owner->allocator, block_bytes(kernel), 1, kernel->argument_alignment, out);
}

/* Blocks are compared with the bytes between the values, and after them up to a whole word. */
static inline void clear_gaps(const rondo_kernel *kernel, void *block) {
  if (kernel->has_gaps)
    memset(block, 0, list_offset(kernel));
  else
    memset((char *)block + list_offset(kernel) - sizeof(uint64_t), 0, sizeof(uint64_t));
}

/* `values` are the arguments in the layout of another node's block. If it is NULL, the parameters point to each. */
static inline rondo_status copy_arguments(rondo_graph *owner, const rondo_kernel_node *from, const void *values,
                                          rondo_graph_node *out) {
  const rondo_kernel *kernel = from->kernel;
  void *block;
  if (kernel->parameter_count == 0) return RONDO_OK;
  RONDO_TRY(take_block(owner, kernel, &block));
  if (values == NULL)
    clear_gaps(kernel, block);
  else
    rondo_arguments_copy(kernel, block, values);
  const void **list = (const void **)(void *)((char *)block + list_offset(kernel));
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    unsigned char *value = (unsigned char *)block + kernel->offsets[i];
    if (values == NULL) rondo_argument_set(value, from->args[i], kernel->parameters[i].bytes);
    list[i] = value;
  }
  out->arguments = block;
  out->argument_list = list;
  out->params.as.kernel.args = list;
  return RONDO_OK;
}

static rondo_status copy_config(const rondo_graph *owner, const rondo_kernel_node *from, rondo_graph_node *out) {
  rondo_launch_config resolved, *copy;
  if (!rondo_launch_config_resolve(from, &resolved)) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&owner->storage->small, 1, sizeof *copy, &copy));
  *copy = resolved;
  out->params.as.kernel.config = copy;
  return RONDO_OK;
}

/* A list of zeros gives no information. It is omitted, so that it makes no difference. */
static rondo_status copy_argument_bytes(const rondo_graph *owner, const rondo_kernel_node *from,
                                        rondo_graph_node *out) {
  const uint32_t count = from->kernel->parameter_count;
  bool known = false;
  for (uint32_t i = 0; i < count; i++) known = known || from->arg_bytes[i] != 0;
  if (!known) return RONDO_OK;
  size_t *bytes;
  RONDO_TRY(rondo_allocate_items(&owner->storage->small, count, sizeof *bytes, &bytes));
  memcpy(bytes, from->arg_bytes, count * sizeof(size_t));
  out->params.as.kernel.arg_bytes = bytes;
  return RONDO_OK;
}

static rondo_status copy_text(const rondo_graph *owner, const char *text, const char **out) {
  char *copy;
  const rondo_status status = rondo_allocate_text(&owner->storage->small, text, &copy);
  *out = copy;
  return status;
}

/* A kernel's own name is not copied: the node retains the kernel. */
static bool has_kernels_name(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_KERNEL && (params->name == NULL || params->name == params->as.kernel.kernel->name);
}

static rondo_status make_kernel(rondo_graph *owner, const rondo_node_params *params, const void *values,
                                rondo_graph_node *out) {
  const rondo_kernel_node *from = &params->as.kernel;
  rondo_kernel *kernel = from->kernel;
  out->params = (rondo_node_params){
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = kernel, .grid = rondo_grid_resolve(from->grid), .arg_count = from->arg_count}};
  rondo_kernel_retain(kernel);
  if (has_kernels_name(params))
    out->params.name = kernel->name;
  else
    RONDO_TRY(copy_text(owner, params->name, &out->params.name));
  RONDO_TRY(copy_arguments(owner, from, values, out));
  if (from->config != NULL) RONDO_TRY(copy_config(owner, from, out));
  return from->arg_bytes == NULL ? RONDO_OK : copy_argument_bytes(owner, from, out);
}

/* The nodes of the owner, which may be in the child, are written next: the clone must not share them. */
static rondo_status clone_child(rondo_graph *owner, const rondo_graph *child, rondo_graph **out) {
  const bool kept = owner->keeps_nodes;
  owner->keeps_nodes = true;
  const rondo_status status = rondo_graph_clone_with(&owner->allocator, child, out);
  owner->keeps_nodes = kept;
  return status;
}

static rondo_status make_child(rondo_graph *owner, const rondo_node_params *params, bool take, rondo_graph_node *out) {
  rondo_graph *child = params->as.child;
  out->params.kind = RONDO_NODE_CHILD;
  RONDO_TRY(copy_text(owner, params->name, &out->params.name));
  if (!take) RONDO_TRY(clone_child(owner, child, &child));
  child->is_child = true;
  child->parent = owner;
  out->params.as.child = child;
  return RONDO_OK;
}

static rondo_status make_alloc(rondo_graph *owner, const rondo_node_params *params, rondo_graph_node *out) {
  const char *own = params->as.alloc.name, *name = params->name == NULL ? own : params->name;
  out->params = *params;
  out->params.name = out->params.as.alloc.name = NULL;
  RONDO_TRY(copy_text(owner, name, &out->params.name));
  return copy_text(owner, own == NULL ? out->params.name : own, &out->params.as.alloc.name);
}

/* Numbers of a copy, or of a fill, which has one pitch and a value. They do not affect what the node does. */
typedef struct rondo_given_numbers {
  size_t pitches[4];
  uint32_t value;
} rondo_given_numbers;

enum { DST, SRC, DST_SLICE, SRC_SLICE };

static rondo_given_numbers numbers_of(const rondo_node_params *params) {
  const rondo_copy *copy = &params->as.copy;
  const rondo_fill *fill = &params->as.fill;
  if (params->kind == RONDO_NODE_FILL) return (rondo_given_numbers){.pitches = {fill->pitch}, .value = fill->value};
  return (rondo_given_numbers){
      .pitches = {copy->dst_pitch, copy->src_pitch, copy->dst_slice_pitch, copy->src_slice_pitch}};
}

/* Keeps the given numbers if resolving changed more than zeros. */
static rondo_status keep_given(const rondo_graph *owner, const rondo_node_params *params, rondo_graph_node *out) {
  if (params->kind != RONDO_NODE_COPY && params->kind != RONDO_NODE_FILL) return RONDO_OK;
  rondo_given_numbers given = numbers_of(params), resolved = numbers_of(&out->params), *kept;
  for (size_t i = 0; i < 4; i++)
    if (given.pitches[i] == 0) given.pitches[i] = resolved.pitches[i];
  if (memcmp(given.pitches, resolved.pitches, sizeof given.pitches) == 0 && given.value == resolved.value)
    return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&owner->storage->small, 1, sizeof *kept, &kept));
  *kept = given;
  out->arguments = kept;
  return RONDO_OK;
}

rondo_node_params rondo_node_given_params(const rondo_graph_node *node) {
  rondo_node_params params = node->params;
  const rondo_given_numbers *given = node->arguments;
  if (given == NULL || (params.kind != RONDO_NODE_COPY && params.kind != RONDO_NODE_FILL)) return params;
  if (params.kind == RONDO_NODE_FILL) {
    params.as.fill.pitch = given->pitches[DST];
    params.as.fill.value = given->value;
    return params;
  }
  params.as.copy.dst_pitch = given->pitches[DST];
  params.as.copy.src_pitch = given->pitches[SRC];
  params.as.copy.dst_slice_pitch = given->pitches[DST_SLICE];
  params.as.copy.src_slice_pitch = given->pitches[SRC_SLICE];
  return params;
}

static void forget_given(rondo_graph *owner, rondo_graph_node *node) {
  rondo_release(&owner->storage->small, node->arguments, 1, sizeof(rondo_given_numbers));
  node->arguments = NULL;
}

/* Event nodes of graphs from JSON have no event. */
static rondo_counted_event *event_of(const rondo_node_params *params) {
  return rondo_node_names_event(params) ? (rondo_counted_event *)(void *)params->as.event : NULL;
}

static void retain_event(const rondo_node_params *params) {
  const rondo_counted_event *event = event_of(params);
  if (event != NULL) event->retain(params->as.event);
}

static void release_event(const rondo_node_params *params) {
  const rondo_counted_event *event = event_of(params);
  if (event != NULL) event->release(params->as.event);
}

void rondo_node_overwrite(rondo_graph *owner, rondo_graph_node *node, const rondo_node_params *params) {
  const char *name = node->params.name;
  assert(params->kind == node->params.kind);
  retain_event(params);
  release_event(&node->params);
  forget_given(owner, node);
  node->params = *params;
  node->params.name = name;
}

static rondo_status make_operations(rondo_graph *owner, const rondo_node_params *params, rondo_graph_node *out) {
  const rondo_memory_operations_node *from = &params->as.memory_operations;
  rondo_memory_operation *copy;
  out->params.kind = RONDO_NODE_MEMORY_OPERATIONS;
  RONDO_TRY(copy_text(owner, params->name, &out->params.name));
  RONDO_TRY(rondo_allocate_items(&owner->storage->small, from->count, sizeof *copy, &copy));
  memcpy(copy, from->operations, from->count * sizeof *copy);
  out->arguments = copy;
  out->params.as.memory_operations = (rondo_memory_operations_node){.operations = copy, .count = from->count};
  return RONDO_OK;
}

static rondo_status make_semaphores(rondo_graph *owner, const rondo_node_params *params, rondo_graph_node *out) {
  const rondo_semaphores_node *from = &params->as.semaphores;
  rondo_semaphore_value *copy;
  out->params.kind = params->kind;
  RONDO_TRY(copy_text(owner, params->name, &out->params.name));
  RONDO_TRY(rondo_allocate_items(&owner->storage->small, from->count, sizeof *copy, &copy));
  memcpy(copy, from->values, from->count * sizeof *copy);
  for (size_t i = 0; i < from->count; i++) rondo_semaphore_retain(copy[i].semaphore);
  out->arguments = copy;
  out->params.as.semaphores = (rondo_semaphores_node){.values = copy, .count = from->count};
  return RONDO_OK;
}

static void free_semaphores(const rondo_graph *owner, rondo_graph_node *node) {
  const rondo_semaphores_node *list = &node->params.as.semaphores;
  for (size_t i = 0; i < list->count; i++) rondo_semaphore_release(list->values[i].semaphore);
  rondo_release(&owner->storage->small, node->arguments, list->count, sizeof *list->values);
}

static rondo_status make_other(rondo_graph *owner, const rondo_node_params *params, rondo_graph_node *out) {
  const bool is_foreign = params->kind == RONDO_NODE_FOREIGN;
  out->params = *params;
  out->params.name = NULL;
  if (is_foreign) out->params.as.foreign.what = NULL;
  rondo_node_params_resolve(&out->params);
  retain_event(params);
  RONDO_TRY(copy_text(owner, params->name, &out->params.name));
  if (is_foreign) return copy_text(owner, params->as.foreign.what, &out->params.as.foreign.what);
  return keep_given(owner, params, out);
}

static rondo_status make_contents(rondo_graph *owner, const rondo_node_params *params, const void *values,
                                  bool take_child, rondo_graph_node *out) {
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return make_kernel(owner, params, values, out);
    case RONDO_NODE_CHILD:
      return make_child(owner, params, take_child, out);
    case RONDO_NODE_ALLOC:
      return make_alloc(owner, params, out);
    case RONDO_NODE_MEMORY_OPERATIONS:
      return make_operations(owner, params, out);
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return make_semaphores(owner, params, out);
    default:
      return make_other(owner, params, out);
  }
}

static rondo_status make_or_free(rondo_graph *owner, const rondo_node_params *params, const void *values,
                                 bool take_child, rondo_graph_node *out) {
  const rondo_status status = make_contents(owner, params, values, take_child, out);
  out->params.device = params->device;
  if (status != RONDO_OK) rondo_node_contents_free(owner, out);
  return status;
}

rondo_status rondo_node_contents_make(rondo_graph *owner, const rondo_node_params *params, bool take_child,
                                      rondo_graph_node *out) {
  out->device_number = params->device == NULL ? 0 : rondo_graph_device_number(owner, params->device);
  return make_or_free(owner, params, NULL, take_child, out);
}

rondo_status rondo_node_contents_copy(rondo_graph *owner, const rondo_graph_node *from, rondo_graph_node *out) {
  out->device_number = from->device_number;
  if (from->params.kind == RONDO_NODE_KERNEL) return make_or_free(owner, &from->params, from->arguments, false, out);
  const rondo_node_params params = rondo_node_given_params(from);
  return make_or_free(owner, &params, from->arguments, false, out);
}

void rondo_node_contents_free(rondo_graph *owner, rondo_graph_node *node) {
  const rondo_allocator *allocator = &owner->storage->small;
  rondo_node_params *params = &node->params;
  if (!has_kernels_name(params)) rondo_release_text(allocator, (char *)(uintptr_t)params->name);
  if (params->kind == RONDO_NODE_KERNEL) {
    rondo_kernel *kernel = params->as.kernel.kernel;
    rondo_release(arguments_allocator(owner, kernel), node->arguments, block_bytes(kernel), 1);
    rondo_release(allocator, (size_t *)(uintptr_t)params->as.kernel.arg_bytes, kernel->parameter_count, sizeof(size_t));
    rondo_release(allocator, (void *)(uintptr_t)params->as.kernel.config, 1, sizeof(rondo_launch_config));
    rondo_kernel_release(kernel);
  } else if (params->kind == RONDO_NODE_CHILD) {
    rondo_graph_free(params->as.child);
  } else if (params->kind == RONDO_NODE_ALLOC) {
    rondo_release_text(allocator, (char *)params->as.alloc.name);
  } else if (params->kind == RONDO_NODE_MEMORY_OPERATIONS) {
    rondo_release(allocator, node->arguments, params->as.memory_operations.count, sizeof(rondo_memory_operation));
  } else if (rondo_node_names_semaphores(params)) {
    free_semaphores(owner, node);
  } else if (params->kind == RONDO_NODE_FOREIGN) {
    rondo_release_text(allocator, (char *)params->as.foreign.what);
  } else {
    release_event(params);
    forget_given(owner, node);
  }
  *params = (rondo_node_params){0};
  node->device_number = 0;
  node->arguments = NULL;
  node->argument_list = NULL;
}
