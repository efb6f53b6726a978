/* SPDX-License-Identifier: MIT
 * A graph, for this layer and those above. exec/ builds, captures, lowers and updates graphs through it, and memory/
 * queries their order. A node's number is the index of its slot; a removed node leaves a hole. Dependencies and
 * dependents are sorted slot numbers, so a binary search finds a duplicate edge (B5). The upper half of a node id is
 * the graph's serial, by which a node of another graph is detected. Zeros that mean defaults are replaced when a node
 * is made.
 *
 * Threads: a graph is thread-compatible and has no lock. Graphs that share nodes may belong to different threads,
 * because shared nodes are only read. Serials come from an atomic of the process.
 */
#ifndef RONDO_GRAPH_GRAPH_INTERNAL_H
#define RONDO_GRAPH_GRAPH_INTERNAL_H

#include <assert.h>
#include <stdatomic.h>

#include <rondo/graph.h>

#include "base/allocation.h"
#include "base/array.h"
#include "base/slab.h"
#include "base/text.h"
#include "graph/kernel.h"

#define RONDO_NODE_LAST RONDO_NODE_SEMAPHORE_WAIT /* the highest kind */

/* Slot numbers, ascending. */
typedef RONDO_ARRAY(uint32_t) rondo_slots;

/* The first fields of an event, whose type belongs to a layer above. Nodes that refer to it retain it. */
typedef struct rondo_counted_event {
  void (*retain)(rondo_event *event);
  void (*release)(rondo_event *event);
} rondo_counted_event;

typedef struct rondo_graph_node {
  bool live;                /* false: a hole, and all else is zero */
  uint16_t device_number;   /* 1 + the index of params.device, also if the graph is only data; 0: the graph's device */
  uint32_t leaving;         /* how many programmatic edges leave it */
  rondo_node_params params; /* own copies, resolved; params.name and as.alloc.name are never NULL; params.device is NULL
                               for the graph's device */
  void *arguments; /* kernel: values at the kernel's offsets, in one block with the list; copy, fill: given numbers that
                      have no effect (rondo_given_numbers); memory operations: the operations; semaphores: their values;
                      NULL */
  const void **argument_list; /* params.as.kernel.args */
  rondo_slots dependencies;
  rondo_slots dependents;
  uint64_t captured; /* the driver's handle of the node in its graph's `captured`; 0: none */
} rondo_graph_node;

/* The memory of a graph's nodes. A graph and its clones share it, and the array of nodes, until one of them changes:
 * that one first copies its nodes (rondo_graph_own_nodes). So shared nodes are never written. Nodes with child graphs
 * are not shared, because a child knows its parent. */
typedef struct rondo_node_storage {
  atomic_uint graphs;    /* that share it */
  rondo_slab slab;       /* allocates the contents and edges of nodes */
  rondo_allocator small; /* allocates from the slab */
} rondo_node_storage;

/* An edge with ports and a type, which are the driver's (rondo_graph_programmatic_edges). */
typedef struct rondo_programmatic_edge {
  uint32_t from, to;
  uint8_t from_port, to_port, type;
  bool orders; /* made by the user, who promises that it orders its kernels; else it was captured */
} rondo_programmatic_edge;

static inline bool rondo_programmatic_same(const rondo_programmatic_edge *a, const rondo_programmatic_edge *b) {
  return a->from_port == b->from_port && a->to_port == b->to_port && a->type == b->type && a->orders == b->orders;
}

/* A device of nodes of a graph that belongs to another device. */
typedef struct rondo_other_device {
  rondo_device *device;
  uint16_t number; /* 1 + its index */
} rondo_other_device;

/* An object of a layer above that a graph and its clones retain. */
typedef struct rondo_graph_attachment {
  void *object; /* NULL if there is none */
  void (*retain)(void *object);
  void (*release)(void *object);
} rondo_graph_attachment;

/* A user object, and references to it that the owner of the list has (user_object.h). */
typedef struct rondo_object_entry {
  struct rondo_user_object *object;
  uint32_t count; /* at least 1 */
} rondo_object_entry;

/* An object may have several entries. */
typedef RONDO_ARRAY(rondo_object_entry) rondo_object_list;

struct rondo_graph {
  rondo_allocator allocator;
  rondo_node_storage *storage;
  rondo_device *device; /* identity only; NULL = data only */
  char *name;
  uint32_t serial;        /* unique in the process, never 0 */
  uint32_t source_serial; /* of the graph that this one was cloned from; 0 if none */
  uint32_t source_count;  /* its slots then: a node in one of these slots is a clone of the node with its number */
  bool keeps_nodes; /* clones copy its nodes: they are written without a further check, or callers point into them */
  RONDO_ARRAY(rondo_graph_node) nodes;
  uint32_t live_count;
  uint32_t child_count;      /* child nodes among them */
  _Atomic uint64_t verified; /* noted by the layer above when verification had no findings; 0 after every change */
  uint32_t captures;         /* captures in progress that add to the graph */
  bool is_child;             /* belongs to a child node, of `parent` */
  bool has_memory;           /* an alloc or free node was ever added, also in a child at any depth */
  /* has bound nodes: it runs as the driver captured it (rondo_foreign_node). Never true for a graph that is only data
   */
  bool is_bound;
  RONDO_ARRAY(rondo_programmatic_edge) programmatic; /* ascending by to, then from */
  rondo_object_list objects;                         /* what it retains; its children have their own */
  RONDO_ARRAY(rondo_kernel *) symbol_kernels;        /* of symbols that its nodes name; its children have their own */
  rondo_graph *parent;                               /* the graph whose child node owns this one; or NULL */
  uint32_t parent_slot;                              /* its slot in `parent` */
  rondo_graph_attachment memory;                     /* graph memory, set by the memory layer */
  /* keeps the device open; set by the layer that makes graphs for a device. Clones and children retain it, and
   * rondo_graph_free releases it */
  rondo_graph_attachment hold;
  /* Devices of its nodes, and of those of its children, besides its own; each once, also after its nodes were removed.
   * Those are left out of a clone. While `hold` has an object, hold.retain was called for each. */
  RONDO_ARRAY(rondo_other_device) others;
  rondo_graph_attachment captured; /* keeps what the driver captured for nodes of the graph; as `hold` */
  rondo_graph_attachment random;   /* its random numbers, set by the layer above; as `hold` */
  rondo_graph_attachment native;   /* the driver's form of the graph, set by the layer above; clones have none */
  bool is_native_stale;            /* the graph has changed since then */
  bool is_native_other;            /* by more than native_changes lists; the layer above sets both to false */
  /* Kernels that got other code, grids or arguments since the driver's form was last built from all nodes, ascending.
   * The layer above reserves the capacity; a kernel that does not fit is more than this lists. */
  rondo_slots native_changes;
};

static inline rondo_graph_node *rondo_graph_at(const rondo_graph *graph, uint32_t slot) { /* slot of a live node */
  assert(slot < graph->nodes.count && graph->nodes.items[slot].live);
  return &graph->nodes.items[slot];
}

/* Whether other graphs have the same nodes. Once it is false, it stays so until the graph is cloned. */
static inline bool rondo_graph_shares_nodes(const rondo_graph *graph) {
  return atomic_load_explicit(&graph->storage->graphs, memory_order_acquire) > 1;
}

/* The device that the node runs on. NULL if the graph is only data. */
static inline rondo_device *rondo_graph_node_device(const rondo_graph *graph, const rondo_graph_node *node) {
  return node->params.device == NULL ? graph->device : node->params.device;
}

/* The position of a node, for messages (node_name.c). */
typedef struct rondo_node_where {
  uint32_t number;    /* for rondo_error.node: in the outermost graph, the number of the node or of the child node that
                         contains it */
  uint32_t own;       /* its number in its own graph */
  const char *inside; /* for a node of a child graph, the child node: "child 'inner' (node 7)"; else NULL */
} rondo_node_where;

/* Buffer sizes for what messages call graphs and nodes (graph.h, node_name.h): "graph 'step'", or "the graph" without a
 * name; "kernel 'saxpy' (node 2)", or "copy (node 3)" without a name; in a child graph "copy (node 3 of child 'inner'
 * (node 7))"; for work in a stream "a copy of 4.0 KiB to 0x7f0000". */
#define RONDO_LABEL_BYTES 272
#define RONDO_EDGE_TEXT 64     /* "an edge 2 -> 5" */
#define RONDO_INSIDE_BYTES 160 /* rondo_node_where.inside */

/* The range of bytes that a copy or fill accesses, from its first to one past its last; `what` names it in messages. */
typedef struct rondo_extent {
  const char *what;
  const void *address;
  size_t bytes;
} rondo_extent;

#define RONDO_MOST_EXTENTS 2 /* of one node */

#define RONDO_BOUND_TEXT 400 /* rondo_graph_bound_text */

static inline bool rondo_node_names_event(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_EVENT_RECORD || params->kind == RONDO_NODE_EVENT_WAIT;
}
static inline bool rondo_node_names_semaphores(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_SEMAPHORE_SIGNAL || params->kind == RONDO_NODE_SEMAPHORE_WAIT;
}
static inline bool rondo_node_is_memory(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_ALLOC || params->kind == RONDO_NODE_FREE;
}

static inline bool rondo_operation_waits(const rondo_memory_operation *operation) {
  return operation->kind == RONDO_OPERATION_WAIT_32 || operation->kind == RONDO_OPERATION_WAIT_64;
}

/* Of the word; 0 for a flush. */
static inline size_t rondo_operation_bytes(const rondo_memory_operation *operation) {
  if (operation->kind == RONDO_OPERATION_FLUSH) return 0;
  return operation->kind >= RONDO_OPERATION_WAIT_64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

/* Whether both have the same kinds of operations, so that an exec can change from one to the other. */
static inline bool rondo_operations_alike(const rondo_memory_operations_node *a,
                                          const rondo_memory_operations_node *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->operations[i].kind != b->operations[i].kind) return false;
  return true;
}

/* False for a resolved copy or fill of more than one dimension. */
static inline bool rondo_node_is_plain(const rondo_node_params *params) {
  if (params->kind == RONDO_NODE_COPY) return params->as.copy.height == 1 && params->as.copy.depth == 1;
  return params->kind != RONDO_NODE_FILL || params->as.fill.height == 1;
}

#endif
