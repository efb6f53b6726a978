/* SPDX-License-Identifier: MIT
 * The graph's inside, for the layers above: exec/ builds, captures, lowers and updates through it, memory/ asks for
 * order. A node stands in the slot of its number for ever; a removed one leaves a hole. Dependencies and dependents are
 * slot numbers, sorted, so that a duplicate edge is a binary search (B5). Node ids carry the graph's serial in their
 * upper half, so that a node of another graph is found out. Every zero that stands for a default in a node's parameters
 * is resolved when the node is made. No lock anywhere: a graph is thread-compatible; serials come from a process-wide
 * atomic.
 */
#ifndef RONDO_GRAPH_GRAPH_INTERNAL_H
#define RONDO_GRAPH_GRAPH_INTERNAL_H

#include <assert.h>

#include <rondo/graph.h>

#include "base/allocation.h"
#include "base/array.h"
#include "base/slab.h"
#include "base/text.h"
#include "graph/kernel.h"

/* Slot numbers, ascending. */
typedef RONDO_ARRAY(uint32_t) rondo_slots;

/* How an event begins, which is of a layer above: nodes that name one hold it. */
typedef struct rondo_lent_event {
  void (*hold)(rondo_event *event);
  void (*let_go)(rondo_event *event);
} rondo_lent_event;

typedef struct rondo_graph_node {
  bool live;                  /* false: removed, the slot is a hole and all else is zero */
  rondo_node_params params;   /* own copies, resolved; params.name and as.alloc.name are never NULL */
  void *arguments;            /* kernel: values at the kernel's offsets, in one block with the list; copy, fill: numbers
                                 that were given and do not count (rondo_given_numbers); NULL */
  const void **argument_list; /* params.as.kernel.args */
  rondo_slots dependencies;
  rondo_slots dependents;
  uint32_t clone_source; /* number in the graph this one was cloned from; RONDO_NO_NODE when made here */
  uint64_t captured;     /* the driver's name of it in what its graph's `captured` holds; 0 when there is none */
} rondo_graph_node;

/* An edge that gives no order (rondo_graph_programmatic_edges). Ports and type are the driver's. */
typedef struct rondo_programmatic_edge {
  uint32_t from, to;
  uint8_t from_port, to_port, type;
} rondo_programmatic_edge;

/* Something of a layer above that a graph and its clones hold. */
typedef struct rondo_graph_attachment {
  void *object; /* NULL when none */
  void (*retain)(void *object);
  void (*release)(void *object);
} rondo_graph_attachment;

struct rondo_graph {
  rondo_allocator allocator;
  rondo_slab slab;       /* has the contents and edges of nodes */
  rondo_allocator small; /* the slab's */
  rondo_device *device;  /* identity only; NULL = data only */
  char *name;
  uint32_t serial;        /* unique in the process, never 0 */
  uint32_t source_serial; /* graph this was cloned from; 0 when none */
  RONDO_ARRAY(rondo_graph_node) nodes;
  uint32_t live_count;
  uint32_t child_count;      /* child nodes among them */
  _Atomic uint64_t verified; /* what the layer above noted when verification found nothing; 0 after every change */
  uint32_t captures;         /* captures adding to it now */
  bool is_child;             /* belongs to a child node, of `parent` */
  bool has_memory;           /* an alloc or free node was ever added, also in a child at any depth */
  bool is_bound;             /* has bound nodes: it runs as the driver captured it (rondo_foreign_node). Never of
                                data */
  RONDO_ARRAY(rondo_programmatic_edge) programmatic; /* ascending by from, then to */
  rondo_graph *parent;                               /* the graph whose child node owns this one; NULL when none */
  uint32_t parent_slot;                              /* that child node */
  rondo_graph_attachment memory;                     /* graph memory, set by the memory layer */
  rondo_graph_attachment hold;     /* keeps the device open, set by whoever makes a graph for a device. Clones and
                                      children, which this layer makes, retain it; rondo_graph_free releases it */
  rondo_graph_attachment captured; /* keeps what the driver captured for nodes of it; as `hold` */
  rondo_graph_attachment
      random; /* what it draws from generators of random numbers, set by the layer above; as `hold` */
};

/* A graph for a device of which only the identity and the allocator are known here. `allocator` is resolved. */
RONDO_MUST_USE rondo_status rondo_graph_make(rondo_device *device, const rondo_allocator *allocator, const char *name,
                                             rondo_graph **out);
/* rondo_graph_clone, also of a bound graph: for its exec. */
RONDO_MUST_USE rondo_status rondo_graph_copy(const rondo_graph *graph, rondo_graph **out);
void rondo_graph_free(rondo_graph *graph); /* without the checks of rondo_graph_destroy; NULL is fine */

/* True when a stream captures into the graph or into a child at any depth. */
bool rondo_graph_is_captured_into(const rondo_graph *graph);

/* The slot of a node id, checked: UNKNOWN_NODE naming the graph. */
RONDO_MUST_USE rondo_status rondo_graph_find(const rondo_graph *graph, rondo_node node, uint32_t *out_slot);
/* The slots of a list, which messages call `list`. */
RONDO_MUST_USE rondo_status rondo_graph_find_all(const rondo_graph *graph, const char *list, const rondo_node *nodes,
                                                 size_t count, uint32_t *out_slots);
rondo_node rondo_graph_id(const rondo_graph *graph, uint32_t slot);
static inline rondo_graph_node *rondo_graph_at(const rondo_graph *graph, uint32_t slot) { /* slot of a live node */
  assert(slot < graph->nodes.count && graph->nodes.items[slot].live);
  return &graph->nodes.items[slot];
}

/* Where a node stands, for messages (node_where.c). */
typedef struct rondo_node_where {
  uint32_t number;    /* for rondo_error.node: in the graph around all, of the node or of the child node it is inside */
  uint32_t own;       /* its number in its own graph */
  const char *inside; /* of a node of a child graph "child 'inner' (node 7)", the child node; else NULL */
} rondo_node_where;

/* What messages call them, written into `buffer` and returned: "graph 'step'", "the graph" when it has no name;
 * "kernel 'saxpy' (node 2)", "copy (node 3)" when it has no name, and inside of a child graph
 * "copy (node 3 of child 'inner' (node 7))". NULL for `where`: of work in a stream, "a copy of 4.0 KiB to 0x7f0000". */
#define RONDO_LABEL_BYTES 272
const char *rondo_graph_label(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph);
const char *rondo_graph_name_label(char buffer[RONDO_LABEL_BYTES], const char *name);
const char *rondo_node_label(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params, uint32_t number);
const char *rondo_node_label_at(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params,
                                const rondo_node_where *where);
/* Of the node in the slot of a graph; `root` as below. */
const char *rondo_node_label_in(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph, const rondo_graph *root,
                                uint32_t slot);
/* Of what is left of a node: its kind and its name, "" or NULL when it has none. NULL for `where`: of work in a stream,
 * "kernel 'saxpy'", "a copy". */
const char *rondo_kind_label(char buffer[RONDO_LABEL_BYTES], rondo_node_kind kind, const char *name,
                             const rondo_node_where *where);
/* The part in brackets: "node 3 of child 'inner' (node 7)". */
const char *rondo_node_where_text(char buffer[RONDO_LABEL_BYTES], const rondo_node_where *where);

/* Which edge orders one node after another: "an edge 2 -> 5", of the graph around all if it can be there. */
#define RONDO_EDGE_TEXT 64
const char *rondo_node_edge_text(char buffer[RONDO_EDGE_TEXT], const rondo_node_where *from,
                                 const rondo_node_where *to);

/* Of the node in the slot of a graph, which may be a child graph of `root`, or, when that is NULL, of any. `inside`
 * points into the buffer. Below its two halves: the child node that has the graph, and the number. */
#define RONDO_INSIDE_BYTES 160
rondo_node_where rondo_node_where_in(char buffer[RONDO_INSIDE_BYTES], const rondo_graph *graph, const rondo_graph *root,
                                     uint32_t slot);
const char *rondo_graph_inside(char buffer[RONDO_INSIDE_BYTES], const rondo_graph *graph, const rondo_graph *root);
uint32_t rondo_graph_outer_number(const rondo_graph *graph, const rondo_graph *root, uint32_t slot);

/* With a text of its own, taken from the allocator, and freed there. */
RONDO_MUST_USE rondo_status rondo_node_where_copy(const rondo_allocator *allocator, const rondo_node_where *from,
                                                  rondo_node_where *out);
void rondo_node_where_free(const rondo_allocator *allocator, rondo_node_where *where);

/* Adds a node of any kind: checks the list of dependencies and the parameters (B2 to B4), copies, retains the kernel,
 * clones the child. For ALLOC the address must be set already; the memory layer has chosen it. Nothing changes on
 * failure. */
RONDO_MUST_USE rondo_status rondo_graph_insert(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                               const rondo_node_params *params, rondo_node *out);
/* The same with parameters that have passed rondo_node_params_check for the graph's device. */
RONDO_MUST_USE rondo_status rondo_graph_insert_checked(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                                       const rondo_node_params *params, rondo_node *out);

/* The checks of rondo_graph_insert alone, on the parameters (not the dependencies; the address of an ALLOC may still be
 * NULL). `where` starts the message: the call that was given them, so that a mistake reads the same queued or captured.
 * Does not allocate. */
RONDO_MUST_USE rondo_status rondo_node_params_check(const char *where, const rondo_device *device,
                                                    const rondo_node_params *params);

/* Gives checked parameters their defaults, as rondo_graph_insert does: no zero in a grid, height, depth or pitch; what
 * does not count (the pitch of one row) is what it would be by default; a fill's value has no bits past its element. */
void rondo_node_params_resolve(rondo_node_params *params);

/* A range of bytes that a copy or fill accesses, from its first to past its last; `what` names it in messages. */
typedef struct rondo_extent {
  const char *what;
  const void *address;
  size_t bytes;
} rondo_extent;

/* The ranges of a copy or fill, resolved or not; returns their number, 0 for other kinds. Those that
 * rondo_node_params_check would refuse are left out. */
#define RONDO_MOST_EXTENTS 2
size_t rondo_node_extents(const rondo_node_params *params, rondo_extent out[RONDO_MOST_EXTENTS]);

/* Replaces a node's parameters, checked; the old ones stay on failure. NODE_KIND when the kind is another one,
 * UNSUPPORTED for kinds CHILD, ALLOC and FREE. `params` may point into the node. */
RONDO_MUST_USE rondo_status rondo_graph_replace(rondo_graph *graph, uint32_t slot, const rondo_node_params *params);

/* The same in two steps, of which the second cannot fail, with parameters of the node's kind that were checked: makes
 * the contents that a node of the slot would get, and puts them there, or discards them. */
RONDO_MUST_USE rondo_status rondo_graph_prepare(rondo_graph *graph, uint32_t slot, const rondo_node_params *params,
                                                rondo_graph_node *out);
void rondo_graph_put(rondo_graph *graph, uint32_t slot, rondo_graph_node *prepared);
void rondo_graph_discard(rondo_graph *graph, rondo_graph_node *prepared);

/* Whether rondo_graph_overwrite may put the parameters, resolved, in place of the node's own: a kernel's arguments have
 * room there, and the name is the same. */
bool rondo_graph_fits(const rondo_graph *graph, uint32_t slot, const rondo_node_params *params);
void rondo_graph_overwrite(rondo_graph *graph, uint32_t slot, const rondo_node_params *params);

/* Removes a node with its edges. Errors: UNSUPPORTED/FOREIGN_WORK (the graph is bound); UNKNOWN_NODE (no live node in
 * that slot); INVALID_STATE/CAPTURING_INTO (C12), the graph or the node's child. Never fails for want of memory. What
 * relies on the node's order (address reuse) is the caller's to ask first. The check alone is what erasing begins with;
 * nothing else of it can fail. */
RONDO_MUST_USE rondo_status rondo_graph_erase(rondo_graph *graph, uint32_t slot);
RONDO_MUST_USE rondo_status rondo_graph_check_erase(const rondo_graph *graph, uint32_t slot);

/* Edges from[i] -> to[i] between live slots, all or none. Adding fails with SELF_EDGE, DUPLICATE_EDGE (there already,
 * or twice in the lists), UNKNOWN_NODE, OUT_OF_MEMORY; removing with MISSING_EDGE (not there, or twice in the lists)
 * and UNKNOWN_NODE, UNSUPPORTED/FOREIGN_WORK (the graph is bound), never for want of memory. */
RONDO_MUST_USE rondo_status rondo_graph_link_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                                   size_t count);
RONDO_MUST_USE rondo_status rondo_graph_erase_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                                    size_t count);

/* The same for one programmatic edge; its ends have neither kind of edge between them yet, else DUPLICATE_EDGE. */
RONDO_MUST_USE rondo_status rondo_graph_link_programmatic(rondo_graph *graph, const rondo_programmatic_edge *edge);

/* The programmatic edges that leave a slot; *out_count of them from there on. */
const rondo_programmatic_edge *rondo_graph_programmatic_from(const rondo_graph *graph, uint32_t slot,
                                                             size_t *out_count);

/* For a graph that is bound: what makes it so, and what helps. */
#define RONDO_BOUND_TEXT 400
const char *rondo_graph_bound_text(const rondo_graph *graph, char buffer[RONDO_BOUND_TEXT]);

/* For a graph that is bound: UNSUPPORTED/FOREIGN_WORK with that text behind "graph 'name' cannot ...", which is what.
 */
RONDO_MUST_USE rondo_status rondo_graph_refuse_bound(const rondo_graph *graph, const char *what);

/* Slots in topological order, lowest number first among the free ones; *out has live_count entries, freed with
 * rondo_release(allocator of the graph). INVALID_GRAPH/CYCLE names a node on the cycle. Programmatic edges
 * count. Does not look into children. The graph may be a child graph of `root`, from which the error counts. */
RONDO_MUST_USE rondo_status rondo_graph_order_in(const rondo_graph *graph, const rondo_graph *root, uint32_t **out);
RONDO_MUST_USE static inline rondo_status rondo_graph_order(const rondo_graph *graph, uint32_t **out) {
  return rondo_graph_order_in(graph, graph, out);
}

/* Ancestor queries for one set of dependencies: marks every slot that is `from` or comes before it. `marks` has
 * nodes.count entries, zeroed by the caller; work is linear in nodes and edges. Programmatic edges do not count. */
RONDO_MUST_USE rondo_status rondo_graph_mark_ancestors(const rondo_graph *graph, const uint32_t *from, size_t count,
                                                       bool *marks);

static inline bool rondo_node_names_event(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_EVENT_RECORD || params->kind == RONDO_NODE_EVENT_WAIT;
}
static inline bool rondo_node_is_memory(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_ALLOC || params->kind == RONDO_NODE_FREE;
}

/* Resolved: not a copy or fill of more than one dimension. */
static inline bool rondo_node_is_plain(const rondo_node_params *params) {
  if (params->kind == RONDO_NODE_COPY) return params->as.copy.height == 1 && params->as.copy.depth == 1;
  return params->kind != RONDO_NODE_FILL || params->as.fill.height == 1;
}

/* What differs between two nodes' parameters; 0 when nothing. See rondo_graph_diff. Both are resolved. Child graphs are
 * not compared here: that can fail. */
int rondo_node_params_compare(const rondo_node_params *a, const rondo_node_params *b, bool ignore_addresses);

/* rondo_graph_from_json with an allocator for the graph. */
RONDO_MUST_USE rondo_status rondo_graph_read_json(const rondo_allocator *allocator, const char *bytes, size_t count,
                                                  rondo_graph **out);

#endif
