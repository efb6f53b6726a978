/* SPDX-License-Identifier: MIT
 * The content of a report before it is written: the graph and its children as one list of entries, in an order in which
 * they can run, with times, depths, the critical path and the lifetimes of memory. A node has one entry. A child node
 * has two, before and after the nodes of its child graph. Thread-compatible.
 */
#ifndef RONDO_RENDER_REPORT_MODEL_H
#define RONDO_RENDER_REPORT_MODEL_H

#include <rondo/report.h>

#include "base/array.h"
#include "render/graph_drawing.h"

#define RONDO_REPORT_KINDS (RONDO_NODE_LAST + 1)
#define RONDO_REPORT_PREFIX_BYTES 200

/* The graph, or a child graph at any depth. */
typedef struct rondo_report_graph {
  const rondo_graph *graph;
  uint32_t parent, parent_slot;           /* the child node; RONDO_NO_NODE: none */
  char prefix[RONDO_REPORT_PREFIX_BYTES]; /* "n", "n3_": node 1 is n1, n3_1 */
  uint32_t *order;                        /* slots, topological */
  uint32_t *begin, *end;                  /* by slot: entries in the list, which differ for a child node */
  rondo_drawing_mark *marks;              /* by slot */
} rondo_report_graph;

/* An entry of the list. */
typedef struct rondo_report_node {
  uint32_t graph, slot;
  bool runs; /* it is not the begin or end of a child node */
  bool timed;
  double us; /* 0 when not timed */
  uint32_t depth;
} rondo_report_node;

typedef struct rondo_report_edge {
  uint32_t from, to;
} rondo_report_edge;

/* Memory that is live from the begin of one node to the begin of another. */
typedef struct rondo_report_allocation {
  const char *name;
  const void *address;
  size_t bytes;
  uint32_t alloc, free; /* entries in the list; free is RONDO_NO_NODE if no node frees it */
  bool is_range;        /* a range of the user, which is live until `free` has ended */
} rondo_report_allocation;

typedef struct rondo_report_model {
  rondo_allocator allocator;
  const rondo_report_options *options;
  RONDO_ARRAY(rondo_report_graph) graphs; /* a graph precedes its children; the first is the whole graph */
  RONDO_ARRAY(rondo_report_node) nodes;
  RONDO_ARRAY(rondo_report_edge) edges;                       /* between entries, sorted by `from` */
  RONDO_ARRAY(rondo_report_allocation) allocations;           /* sorted by address */
  size_t of_kind[RONDO_REPORT_KINDS], node_count, edge_count; /* of all graphs */
  uint32_t depth, width; /* nodes on the longest path; maximum nodes at one depth */
  bool timed;
  double total_us, critical_us, longest_us;
  size_t critical_count; /* nodes on the critical path; if all nodes are on it, none is marked */
} rondo_report_model;

/* Freed by rondo_report_model_free, also after a failure. Errors: CYCLE; UNKNOWN_NODE (a time or range of a node that
 * is not in the graph); OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_report_model_make(const rondo_graph *graph, const rondo_report_options *options,
                                                    rondo_report_model *out);
void rondo_report_model_free(rondo_report_model *model);

/* "12.3 \xC2\xB5s", or "4.56 ms" for 1000 microseconds and more. RONDO_REPORT_TIME makes a buffer that exists until the
 * end of the enclosing block. */
#define RONDO_REPORT_TIME_TEXT 32
#define RONDO_REPORT_TIME(us, ms_decimals) \
  rondo_report_time_text((char[RONDO_REPORT_TIME_TEXT]){""}, (us), (ms_decimals))
const char *rondo_report_time_text(char out[RONDO_REPORT_TIME_TEXT], double us, int ms_decimals);

/* Finds the first entry of a node. UNKNOWN_NODE, with a message that names `what`: no graph of the report has it. */
RONDO_MUST_USE rondo_status rondo_report_find(const rondo_report_model *model, const char *what, rondo_node node,
                                              uint32_t *out_entry);

static inline const rondo_graph_node *rondo_report_node_of(const rondo_report_model *model, uint32_t entry) {
  const rondo_report_node *node = &model->nodes.items[entry];
  return &model->graphs.items[node->graph].graph->nodes.items[node->slot];
}
static inline const rondo_node_params *rondo_report_params(const rondo_report_model *model, uint32_t entry) {
  return &rondo_report_node_of(model, entry)->params;
}

#endif
