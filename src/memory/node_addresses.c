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

size_t rondo_node_addresses(const rondo_node_params *params, rondo_node_address out[RONDO_MAX_PARAMETERS]) {
  if (params->kind == RONDO_NODE_KERNEL) return list_pointers(&params->as.kernel, out);
  if (params->kind == RONDO_NODE_FILL) {
    out[0] = (rondo_node_address){.field = 0, .address = params->as.fill.dst};
    return 1;
  }
  if (params->kind != RONDO_NODE_COPY) return 0;
  out[0] = (rondo_node_address){.field = 0, .address = params->as.copy.dst};
  out[1] = (rondo_node_address){.field = 1, .address = params->as.copy.src};
  return 2;
}
