/* SPDX-License-Identifier: MIT
 * Relocating: instantiation chooses new addresses for graph memory. The allocations that a flattened graph both makes
 * and frees are planned together, on the graph's exact order, in an address space that belongs to the exec. Every
 * declared address in the graph is rewritten. An allocation that the graph does not free keeps its address.
 *
 * An address in a node refers to the allocation that is live there: the one whose alloc node comes before the node,
 * while every other allocation that covers the address is freed before that alloc node. So a graph with memory can be a
 * child several times, in branches that run at the same time. A node is refused if one of its addresses is ambiguous,
 * or cannot be rewritten.
 *
 * Immutable once created. Threads: as the exec.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_RELOCATION_H
#define RONDO_MEMORY_GRAPH_MEMORY_RELOCATION_H

#include <rondo/plan.h>

#include "memory/graph_memory/exec_memory.h"
#include "memory/profile/lifetime_log.h"

#define RONDO_NEVER_FREED UINT32_MAX

/* An alloc node of the flattened graph. */
typedef struct rondo_moved {
  const char *begin, *end;     /* in the graph */
  char *to;                    /* its new address; `begin` when it stays */
  uint32_t index, freed_index; /* nodes of the flattened graph; RONDO_NEVER_FREED */
  rondo_node_where where;      /* of the alloc node, for messages; its text is the graph's */
  bool is_ambiguous;           /* it overlaps one that is not freed before it, or that is ambiguous */
} rondo_moved;

/* An address in a node that must be rewritten. `field`: the parameter of a kernel; the destination (0) or source (1) of
 * a copy; 0 for the address of a fill, alloc or free node. */
typedef struct rondo_rewrite {
  uint32_t index, field;
  void *address; /* the new one */
} rondo_rewrite;

typedef struct rondo_relocation {
  rondo_device_memory *memory;
  rondo_address_space *space;     /* a reference; NULL when nothing moves */
  RONDO_ARRAY(rondo_moved) moved; /* in topological order */
  RONDO_ARRAY(uint32_t) by_begin; /* their numbers, sorted by `begin` */
  RONDO_ARRAY(const char *) ends; /* for each of these, the highest end up to it */
  RONDO_ARRAY(rondo_rewrite) rewrites;
  rondo_plan_info plan;
} rondo_relocation;

/* A node of the flattened graph. */
typedef struct rondo_relocated_node {
  const rondo_node_params *params;
  uint32_t index;         /* in topological order */
  rondo_node_where where; /* for messages */
} rondo_relocated_node;

/* `nodes` are all nodes of the flattened graph, in topological order. options may be NULL. `like` may be NULL; if its
 * graph has the same allocations at the same nodes, its plan and space are reused. Errors:
 * INVALID_LIFETIME/NOT_ALLOCATED (an access or a free that is not ordered after the alloc),
 * INVALID_GRAPH/NOT_RELOCATABLE, OUT_OF_MEMORY, those of rondo_plan_make. */
RONDO_MUST_USE rondo_status rondo_relocation_create(rondo_device_memory *memory, const rondo_relocated_node *nodes,
                                                    size_t count, const rondo_flat_edges *edges,
                                                    const rondo_plan_options *options, const rondo_relocation *like,
                                                    rondo_relocation **out);
void rondo_relocation_destroy(rondo_relocation *relocation); /* NULL is allowed */

/* Whether relocating chose the address. */
bool rondo_relocation_owns(const rondo_relocation *relocation, const void *address);

/* Sets an address in a node of the exec's copy of the graph; frees the list of rewrites when all are set. */
void rondo_relocation_rewrite(rondo_graph_node *node, uint32_t field, void *address);
void rondo_relocation_forget_rewrites(rondo_relocation *relocation);

/* Parameters with rewritten addresses. */
typedef struct rondo_relocated_params {
  rondo_node_params params;
  const void *args[RONDO_MAX_PARAMETERS];
  void *addresses[RONDO_MAX_PARAMETERS];
  rondo_memory_operation operations[RONDO_MAX_MEMORY_OPERATIONS];
} rondo_relocated_params;

/* Rewrites new parameters for the node at `at->index`, which contain the graph's addresses. `edges` and errors as for
 * _create. */
RONDO_MUST_USE rondo_status rondo_relocation_translate(const rondo_relocation *relocation,
                                                       const rondo_flat_edges *edges, const rondo_relocated_node *at,
                                                       rondo_relocated_params *out);

/* Host memory of the struct itself. */
uint64_t rondo_relocation_host_bytes(const rondo_relocation *relocation);

#endif
