/* SPDX-License-Identifier: MIT
 * The nodes of a driver's capture (rondo_capture_ops in driver.h): maps them to nodes of the graph, and adds nodes to
 * the graph for those that libraries captured.
 *
 * The driver's graph has all nodes of the capture: kernels as they were launched, and an empty node for each of Rondo's
 * own nodes that the driver must not see (memory, child graphs, work on memory that is not mapped yet). A node is
 * imported after all that it depends on, so that the graph's order is the driver's.
 *
 * A programmatic edge gives no order. A node that was captured after the later end of such an edge depends on both
 * ends, so that it comes after both, as in the stream.
 *
 * Threads: as the capture that it belongs to.
 */
#ifndef RONDO_EXEC_CAPTURE_CAPTURE_IMPORT_H
#define RONDO_EXEC_CAPTURE_CAPTURE_IMPORT_H

#include "base/array.h"
#include "device/driver.h"
#include "exec/capture/handle_map.h"
#include "graph/graph_internal.h"

typedef struct rondo_importer {
  rondo_captured *captured; /* a reference; NULL: the driver captures nothing */
  rondo_graph *graph;
  rondo_handle_map slots;                     /* the driver's name of a node -> 1 + its slot */
  RONDO_ARRAY(uint64_t) names;                /* the reverse, by slot; 0: it has none */
  RONDO_ARRAY(uint64_t) pending;              /* workspace: a stack of nodes to import */
  RONDO_ARRAY(rondo_node) order;              /* workspace: dependencies of the current node */
  RONDO_ARRAY(rondo_programmatic_edge) loose; /* workspace: its programmatic edges, whose `to` is not yet set */
} rondo_importer;

/* Imports the node and, first, its dependencies, unless they are known. Errors: OUT_OF_MEMORY and what the driver and
 * rondo_graph_insert return; what was imported stays, and is known. */
RONDO_MUST_USE rondo_status rondo_importer_add(rondo_importer *importer, uint64_t name);

/* Imports all nodes of a child's graph, in the driver's name, or of the captured graph itself for 0. */
RONDO_MUST_USE rondo_status rondo_importer_add_all(rondo_importer *importer, uint64_t graph);

/* `reserve` allocates for one `know`, which then cannot fail: from then on the slot is the driver's node `name`. */
RONDO_MUST_USE rondo_status rondo_importer_reserve(rondo_importer *importer);
void rondo_importer_know(rondo_importer *importer, uint64_t name, uint32_t slot);

/* The driver's name of a slot. If it has none yet, an empty node is made after those of the slot's dependencies. */
RONDO_MUST_USE rondo_status rondo_importer_name(rondo_importer *importer, uint32_t slot, uint64_t *out);

/* Fills importer->order with what a node after these known ones depends on, each once: they, and the nodes that
 * programmatic edges to them come from. */
RONDO_MUST_USE rondo_status rondo_importer_order_after(rondo_importer *importer, const uint64_t *names, size_t count);

/* The driver's graph was destroyed: forgets all references to it. */
void rondo_importer_forget(rondo_importer *importer);
void rondo_importer_free(rondo_importer *importer);

#endif
