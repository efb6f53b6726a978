/* SPDX-License-Identifier: MIT
 * Contents of a node: its own copies of all that its parameters point to. Arguments of a kernel lie at the kernel's
 * offsets in one block aligned for any parameter, and behind them the list of their addresses; the kernel is retained;
 * a child graph is the node's alone.
 */
#include "graph/node.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

/* A slab has no other alignment. */
static const rondo_allocator *arguments_allocator(const rondo_graph *owner, const rondo_kernel *kernel) {
  return kernel->argument_alignment > RONDO_SLAB_STEP ? &owner->allocator : &owner->small;
}

/* Where the list of addresses begins in the block, behind the values. */
static size_t list_offset(const rondo_kernel *kernel) {
  return (kernel->argument_bytes + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

static size_t block_bytes(const rondo_kernel *kernel) {
  return list_offset(kernel) + kernel->parameter_count * sizeof(void *);
}

static rondo_status take_block(rondo_graph *owner, const rondo_kernel *kernel, void **out) {
  if (kernel->argument_alignment <= RONDO_SLAB_STEP) return rondo_slab_take(&owner->slab, block_bytes(kernel), out);
  return rondo_allocate_aligned(&owner->allocator, block_bytes(kernel), 1, kernel->argument_alignment, out);
}

static rondo_status copy_arguments(rondo_graph *owner, const rondo_kernel_node *from, rondo_graph_node *out) {
  rondo_kernel *kernel = from->kernel;
  void *block;
  if (kernel->parameter_count == 0) return RONDO_OK;
  RONDO_TRY(take_block(owner, kernel, &block));
  memset(block, 0, kernel->argument_bytes); /* what lies between values is compared too */
  out->arguments = block;
  out->argument_list = (const void **)(void *)((char *)block + list_offset(kernel));
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    unsigned char *value = (unsigned char *)block + kernel->offsets[i];
    rondo_argument_set(value, from->args[i], kernel->parameters[i].bytes);
    out->argument_list[i] = value;
  }
  out->params.as.kernel.args = out->argument_list;
  return RONDO_OK;
}

/* Zeros alone say nothing: such a list is left out, so that it makes no difference. */
static rondo_status copy_argument_bytes(const rondo_graph *owner, const rondo_kernel_node *from,
                                        rondo_graph_node *out) {
  const uint32_t count = from->kernel->parameter_count;
  bool known = false;
  for (uint32_t i = 0; i < count && from->arg_bytes != NULL; i++) known = known || from->arg_bytes[i] != 0;
  if (!known) return RONDO_OK;
  void *bytes;
  RONDO_TRY(rondo_allocate(&owner->small, count, sizeof(size_t), &bytes));
  memcpy(bytes, from->arg_bytes, count * sizeof(size_t));
  out->params.as.kernel.arg_bytes = bytes;
  return RONDO_OK;
}

static rondo_status copy_child(rondo_graph *owner, rondo_graph *given, bool take, rondo_graph_node *out) {
  rondo_graph *child = given;
  if (!take) RONDO_TRY(rondo_graph_clone_with(&owner->allocator, given, &child));
  child->is_child = true;
  child->parent = owner;
  out->params.as.child = child;
  return RONDO_OK;
}

/* A kernel's own name is not copied: the node retains the kernel. */
static bool has_kernels_name(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_KERNEL && (params->name == NULL || params->name == params->as.kernel.kernel->name);
}

static rondo_status copy_names(const rondo_allocator *allocator, const rondo_node_params *params,
                               rondo_graph_node *out) {
  char *name;
  if (has_kernels_name(params)) {
    out->params.name = params->as.kernel.kernel->name;
    return RONDO_OK;
  }
  const char *given = params->name;
  if (given == NULL && params->kind == RONDO_NODE_ALLOC) given = params->as.alloc.name;
  RONDO_TRY(rondo_allocate_text(allocator, given, &name));
  out->params.name = name;
  if (params->kind == RONDO_NODE_FOREIGN) {
    RONDO_TRY(rondo_allocate_text(allocator, params->as.foreign.what, &name));
    out->params.as.foreign.what = name;
  }
  if (params->kind != RONDO_NODE_ALLOC) return RONDO_OK;
  RONDO_TRY(rondo_allocate_text(allocator, params->as.alloc.name == NULL ? name : params->as.alloc.name, &name));
  out->params.as.alloc.name = name;
  return RONDO_OK;
}

/* What needs no memory; pointers that the node must own stay NULL. */
static void copy_plain(const rondo_node_params *params, rondo_graph_node *out) {
  out->params = *params;
  rondo_node_params_resolve(&out->params);
  out->params.name = NULL;
  if (params->kind == RONDO_NODE_KERNEL) {
    out->params.as.kernel.args = NULL;
    out->params.as.kernel.arg_bytes = NULL;
    rondo_kernel_retain(params->as.kernel.kernel);
  } else if (params->kind == RONDO_NODE_CHILD) {
    out->params.as.child = NULL;
  } else if (params->kind == RONDO_NODE_ALLOC) {
    out->params.as.alloc.name = NULL;
  } else if (params->kind == RONDO_NODE_FOREIGN) {
    out->params.as.foreign.what = NULL;
  }
}

rondo_status rondo_node_contents_make(rondo_graph *owner, const rondo_node_params *params, bool take_child,
                                      rondo_graph_node *out) {
  copy_plain(params, out);
  rondo_status status = copy_names(&owner->small, params, out);
  if (status == RONDO_OK && params->kind == RONDO_NODE_KERNEL) status = copy_arguments(owner, &params->as.kernel, out);
  if (status == RONDO_OK && params->kind == RONDO_NODE_KERNEL)
    status = copy_argument_bytes(owner, &params->as.kernel, out);
  if (status == RONDO_OK && params->kind == RONDO_NODE_CHILD)
    status = copy_child(owner, params->as.child, take_child, out);
  if (status != RONDO_OK) rondo_node_contents_free(owner, out);
  return status;
}

void rondo_node_contents_free(rondo_graph *owner, rondo_graph_node *node) {
  const rondo_allocator *allocator = &owner->small;
  rondo_node_params *params = &node->params;
  if (!has_kernels_name(params)) rondo_release_text(allocator, (char *)(uintptr_t)params->name);
  if (params->kind == RONDO_NODE_KERNEL) {
    rondo_kernel *kernel = params->as.kernel.kernel;
    rondo_release(arguments_allocator(owner, kernel), node->arguments, block_bytes(kernel), 1);
    rondo_release(allocator, (size_t *)(uintptr_t)params->as.kernel.arg_bytes, kernel->parameter_count, sizeof(size_t));
    rondo_kernel_release(kernel);
  } else if (params->kind == RONDO_NODE_CHILD) {
    rondo_graph_free(params->as.child);
  } else if (params->kind == RONDO_NODE_ALLOC) {
    rondo_release_text(allocator, (char *)params->as.alloc.name);
  } else if (params->kind == RONDO_NODE_FOREIGN) {
    rondo_release_text(allocator, (char *)params->as.foreign.what);
  }
  *params = (rondo_node_params){0};
  node->arguments = NULL;
  node->argument_list = NULL;
}
