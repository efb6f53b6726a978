/* SPDX-License-Identifier: MIT
 * Variables of kernels' code as memory of the device. A symbol whose address was asked for is in the table of the
 * device's allocations, until its kernel is freed. Graphs whose nodes name such an address retain the kernel.
 *
 * Threads: any for symbols, which are under the lock of the device's memory; graphs as their owner.
 */
#ifndef RONDO_MEMORY_SYMBOL_MEMORY_H
#define RONDO_MEMORY_SYMBOL_MEMORY_H

#include "graph/graph_internal.h"
#include "memory/device_memory.h"

/* Retains the kernels of the symbols of `device` that the parameters name. */
RONDO_MUST_USE rondo_status rondo_symbols_retain_slowly(rondo_graph *graph, const rondo_device *device,
                                                        const rondo_node_params *params);

RONDO_MUST_USE static inline rondo_status rondo_symbols_retain_of(rondo_graph *graph, const rondo_device *device,
                                                                  const rondo_node_params *params) {
  const rondo_device_memory *memory = device == NULL ? NULL : rondo_device_memory_made(device);
  if (memory == NULL || __builtin_expect(rondo_range_index_is_empty(&memory->symbols), 1)) return RONDO_OK;
  return rondo_symbols_retain_slowly(graph, device, params);
}

/* The same for symbols of the devices of the graph, of which the node's is one. After a failure, the graph retains some
 * of them. */
RONDO_MUST_USE static inline rondo_status rondo_symbols_retain(rondo_graph *graph, const rondo_node_params *params) {
  RONDO_TRY(rondo_symbols_retain_of(graph, graph->device, params));
  for (size_t i = 0; i < graph->others.count; i++)
    RONDO_TRY(rondo_symbols_retain_of(graph, graph->others.items[i].device, params));
  return RONDO_OK;
}

#endif
