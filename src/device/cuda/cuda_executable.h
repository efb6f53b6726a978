/* SPDX-License-Identifier: MIT
 * A lowered graph on a CUDA device: the driver's executable graph, and for each node what is needed to make it again:
 * when the driver refuses a change, for timing, and to run node by node. Child graphs are flattened. A node is one or
 * several of the driver's nodes, in a row (cuda_node_parts). A node that is order alone (empty, alloc, free) is left
 * out where edges can replace it, else it is an empty node (cuda_graph_build.h).
 *
 * The records of host functions are needed until the launches that call them are done. So an executable with host
 * functions records an event after each launch and is freed after that event. Before a launch, a host function sets
 * the queue that the records run on. Without host functions, the driver does all this.
 *
 * Threads: the owner, as driver.h says. The driver's thread and the device's threads read records of host functions.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_EXECUTABLE_H
#define RONDO_DEVICE_CUDA_CUDA_EXECUTABLE_H

#include "device/cuda/cuda.h"
#include "device/cuda/cuda_launch_params.h"
#include "graph/node_name.h"

/* A node. The fields that patches read come first, close together. */
struct cuda_node {
  rondo_node_kind kind;
  const void *const *args; /* a kernel's arguments, in the memory of the exec (rondo_executable_ops) */
  size_t first;            /* its parts are handles[first] and so on, which are NULL if it is left out */
  uint64_t patched;        /* the last run of patches that set it (cuda_update.c) */
  bool is_foreign;         /* a library's kernel */
  bool enabled;
  bool is_bound;        /* exists only in the captured graph */
  bool is_configured;   /* has a launch configuration: `config` */
  const char *name;     /* in the memory of the exec, like the text of `where` */
  rondo_kernel *kernel; /* a reference, which keeps the code loaded; or NULL */
  union {
    cu_kernel_params kernel;
    rondo_copy copy;
    rondo_fill fill;
    cuda_host_work *host;
    cu_event event;
    struct {
      rondo_external_semaphore **items; /* references, at the end of `storage` */
      size_t count;
    } semaphores;
    cuda_executable *child; /* of an exported graph's child node: it owns what the child's nodes use */
  } as;
  void *storage; /* a captured copy's cu_copy; the list by which a foreign kernel gets its arguments; operations or
                    semaphores in the driver's form; or NULL */
  size_t storage_bytes;
  const rondo_launch_config *config; /* a kernel's own copy, resolved; NULL: the default */
  uint64_t captured;   /* its name in the captured graph, valid while the executable is made; 0: not captured */
  cuda_device *device; /* in whose context it runs */
  rondo_node_where where;
};

/* For messages: "kernel 'saxpy' (node 3)". Returns buffer. */
static inline const char *cuda_node_label(char buffer[RONDO_LABEL_BYTES], const cuda_node *node) {
  return rondo_kind_label(buffer, node->kind, node->name, &node->where);
}

/* How many of the driver's nodes it is, if it is not left out. */
static inline size_t cuda_node_parts(const cuda_node *node) { /* an exported host function has only the first */
  if (node->kind == RONDO_NODE_COPY) return node->storage != NULL ? 1 : cuda_copy_parts(&node->as.copy);
  return node->kind == RONDO_NODE_HOST ? 2 : 1;
}

static inline bool cuda_has_semaphores(const cuda_node *node) {
  return node->kind == RONDO_NODE_SEMAPHORE_SIGNAL || node->kind == RONDO_NODE_SEMAPHORE_WAIT;
}

/* Whether it only orders other nodes and does nothing when it runs. */
static inline bool cuda_is_order_alone(const cuda_node *node) {
  return node->kind == RONDO_NODE_EMPTY || node->kind == RONDO_NODE_ALLOC || node->kind == RONDO_NODE_FREE;
}

/* The driver's graph, and the executable graph that was instantiated from it. */
typedef struct cuda_built {
  cu_graph graph;
  cu_graph_exec exec;
  bool is_captured; /* `graph` is a captured graph, which is not destroyed with this */
} cuda_built;

struct cuda_executable {
  rondo_executable base;  /* the fields that a launch and a change read come first, close together */
  cu_graph_exec direct;   /* launched by one driver call; NULL if a launch needs more (cuda_note_direct) */
  size_t kernel_count;    /* enabled ones */
  cuda_node *nodes;       /* in the order of the lowered graph */
  cu_graph_node *handles; /* of `built` */
  cuda_built built;
  size_t count, host_count, edge_count, disabled_count;
  size_t most_before;  /* of the nodes that a node comes after */
  bool is_exported;    /* its graph is for callers (cuda_graph_export.c), and is never instantiated here */
  bool has_foreign;    /* has work of libraries, which runs in graphs only */
  bool has_order;      /* has nodes that are order alone */
  bool has_copies;     /* has nodes that may need placeholder memory: copies, fills, memory operations */
  bool has_configs;    /* a node has, or had, a launch configuration */
  bool has_priorities; /* nodes were given priorities, so that each runs with its own */
  bool is_made;
  bool is_stale;    /* `built` differs from `nodes`, because the driver did not take a change back */
  char *label;      /* "graph 'step'", for messages */
  size_t node_room; /* of `nodes`; `count` are made */
  size_t handle_count;
  uint32_t
      *predecessor_start; /* full edges of node i: predecessors[predecessor_start[i] .. predecessor_start[i + 1]) */
  uint32_t *predecessors;
  rondo_lowered_edge *programmatic; /* besides these; from and to are nodes */
  size_t programmatic_count;
  rondo_captured *captured; /* what its graph was captured as: a reference, or NULL */
  cu_graph_exec before;     /* replaced by `built`; the next launch waits for it; or NULL */
  uint64_t patch_runs;      /* so far */
  rondo_device_list others; /* of its nodes */
  /* Kernels and semaphores that changes have replaced and earlier launches may still use, each once. Those of other
   * devices are not freed while launches run here, and semaphores not while launches by the driver run. */
  RONDO_ARRAY(rondo_kernel *) replaced_kernels;
  RONDO_ARRAY(rondo_external_semaphore *) replaced_semaphores;
  bool is_marked; /* in this call: `last` marks the end of all launches so far */
  /* Only with host functions; the event also with nodes of other devices, or if its handle was returned. With host
   * functions it is recorded after each launch, else when something is replaced and when the executable is destroyed.
   */
  cu_event last;
  cuda_host_work *replaced; /* records that earlier launches may still call; by next */
  cuda_queue *queue;        /* where the current launch reports failures; written by the driver's thread */
  cuda_queue *queue_set;    /* the last queue that was set by a launch */
  /* Timing: another executable graph with event records around each node. All NULL while it is off. */
  cuda_built timed;
  cu_event *stamps;           /* two for each node: before it and after it */
  cuda_executable *next_dead; /* waits for its last launch */
};

static inline const rondo_allocator *cuda_allocator_of(const cuda_executable *executable) {
  return &executable->base.device->allocator;
}

/* Life and launches (cuda_executable.c) ---------------------------------------------------------------------------- */

RONDO_MUST_USE rondo_status cuda_executable_create(rondo_device *device, const rondo_lowered_graph *graph,
                                                   rondo_executable **out);

/* An executable with nodes, which has nothing of the driver's yet. The second frees it, also later. In the
 * device's context. */
RONDO_MUST_USE rondo_status cuda_executable_make(cuda_device *device, const rondo_lowered_graph *graph,
                                                 bool is_exported, cuda_executable **out);
void cuda_executable_free(cuda_executable *executable);
RONDO_MUST_USE rondo_status cuda_queue_launch(rondo_queue *queue, rondo_executable *executable);
RONDO_MUST_USE rondo_status cuda_queue_upload(rondo_queue *queue, rondo_executable *executable);

/* Decides what `direct` is. Call it when timing, `before`, `is_stale` or foreign work has changed. */
void cuda_note_direct(cuda_executable *executable);

/* Asserts the invariant: counts, handles and edges agree with the nodes. */
void cuda_executable_check(const cuda_executable *executable);

/* Frees what was replaced (host functions, kernels, semaphores) if no launch can use it. */
void cuda_executable_reap_replaced(cuda_executable *executable);

/* Comes before a node's kernel or semaphores are replaced and kept: marks the launches that may use them, once a call.
 * In the device's context. */
RONDO_MUST_USE rondo_status cuda_executable_mark_launches(cuda_executable *executable);

/* Destroyed executables are kept until their launches are done. Frees those that are done. With `all`, waits for the
 * others too, and leaves their memory to cuda_executables_free. */
void cuda_executables_reap(cuda_device *device, bool all);
void cuda_executables_free(cuda_device *device);
void cuda_executables_settle(rondo_device *device); /* the slot of rondo_device_ops */

/* Changes (cuda_update.c): slots of rondo_executable_ops and rondo_queue_ops --------------------------------------- */

RONDO_MUST_USE rondo_status cuda_executable_set_params(rondo_executable *executable, size_t index,
                                                       const rondo_lowered_node *node);
RONDO_MUST_USE rondo_status cuda_executable_set_many(rondo_executable *executable, const rondo_node_change *changes,
                                                     size_t count, size_t *out_done);
RONDO_MUST_USE rondo_status cuda_executable_set_enabled(rondo_executable *executable, size_t index, bool enabled);
void cuda_executable_rebind(rondo_executable *executable, size_t index, const rondo_lowered_node *node);
RONDO_MUST_USE rondo_status cuda_queue_launch_patched(rondo_queue *queue, rondo_executable *executable,
                                                      const rondo_patch_change *changes, size_t count);

/* Times (cuda_node_timing.c): slots of rondo_executable_ops -------------------------------------------------------- */

rondo_status cuda_set_timing(rondo_executable *executable, bool on);
void cuda_times(const rondo_executable *executable, uint64_t *out_ns);

#endif
