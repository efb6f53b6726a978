/* SPDX-License-Identifier: MIT
 * Listing the addresses of a node.
 */
#include "memory/node_addresses.h"

#include <string.h>

static size_t list_pointers(const rondo_kernel_node *work, rondo_node_address *out) {
  size_t count = 0;
  for (uint32_t i = 0; i < work->kernel->parameter_count; i++) {
    if (!rondo_parameter_is_pointer(&work->kernel->parameters[i])) continue;
    out[count].field = i;
    memcpy(&out[count++].address, work->args[i], sizeof(void *));
  }
  return count;
}

static size_t list_operations(const rondo_memory_operations_node *work, rondo_node_address *out) {
  size_t count = 0;
  _Static_assert(RONDO_MAX_MEMORY_OPERATIONS <= RONDO_MAX_PARAMETERS, "the list has room for all operations");
  for (size_t i = 0; i < work->count; i++)
    if (work->operations[i].address != NULL)
      out[count++] = (rondo_node_address){.field = (uint32_t)i, .address = work->operations[i].address};
  return count;
}

size_t rondo_node_addresses(const rondo_node_params *params, rondo_node_address out[RONDO_MAX_PARAMETERS]) {
  if (params->kind == RONDO_NODE_KERNEL) return list_pointers(&params->as.kernel, out);
  if (params->kind == RONDO_NODE_FILL) {
    out[0] = (rondo_node_address){.field = 0, .address = params->as.fill.dst};
    return 1;
  }
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS) return list_operations(&params->as.memory_operations, out);
  if (params->kind != RONDO_NODE_COPY) return 0;
  out[0] = (rondo_node_address){.field = 0, .address = params->as.copy.dst};
  out[1] = (rondo_node_address){.field = 1, .address = params->as.copy.src};
  return 2;
}

bool rondo_graph_has_foreign_memory(const rondo_graph *graph, const void *address) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_node_params *params = &graph->nodes.items[i].params;
    const rondo_foreign_node *work = &params->as.foreign;
    if (!graph->nodes.items[i].live) continue;
    if (params->kind == RONDO_NODE_CHILD && rondo_graph_has_foreign_memory(params->as.child, address)) return true;
    if (params->kind == RONDO_NODE_FOREIGN && (uintptr_t)address - (uintptr_t)work->address < work->bytes) return true;
  }
  return false;
}
