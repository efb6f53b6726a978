/* SPDX-License-Identifier: MIT
 * A lowered graph on a CUDA device: the driver's executable graph, and of each node what it takes to make that again
 * (for an update that the driver refuses, for timing, node by node). Children are flattened. A node of Rondo's is one
 * or several of the driver's, one behind the other (cuda_node_parts); what is order alone, alloc and free nodes too, is
 * none where edges can stand for it, else an empty one (cuda_graph_build.h).
 *
 * Host functions need their records until the launches that call them are done: an executable that has some records an
 * event behind each launch, is freed when that is complete, and tells the records which queue it runs on by a host
 * function in front of each launch. One without host functions leaves all that to the driver.
 *
 * Threads: owner, as driver.h says; a host function's record is read by the driver's thread and the device's.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_EXECUTABLE_H
#define RONDO_DEVICE_CUDA_CUDA_EXECUTABLE_H

#include "base/slab.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_launch_params.h"
#include "graph/node_name.h"

/* A node's parameters. What patching it reads comes first, close together. */
struct cuda_node {
  rondo_node_kind kind;
  const void *const *args; /* a kernel's arguments, in the memory of the exec (rondo_executable_ops) */
  size_t first;            /* its nodes in the driver's graph are handles[first] and so on; NULL when it is left out */
  uint64_t patched;        /* by which run of patches it was set last (cuda_update.c) */
  bool is_foreign;         /* a library's kernel */
  bool enabled;
  bool owns_name; /* else it is the kernel's */
  bool is_bound;  /* was captured and cannot be made anew */
  const char *name;
  rondo_kernel *kernel; /* a reference, which keeps the code loaded; or NULL */
  union {
    cu_kernel_params kernel;
    rondo_copy copy;
    rondo_fill fill;
    cuda_host_work *host;
    cu_event event;
  } as;
  void *storage; /* a captured copy's cu_copy; the list that a foreign kernel's arguments are passed by; or NULL */
  size_t storage_bytes;
  uint64_t captured; /* what it was captured as, good while the executable is made; 0: not captured */
  rondo_node_where where;
};

/* For messages: "kernel 'saxpy' (node 3)"; returns buffer. */
static inline const char *cuda_node_label(char buffer[RONDO_LABEL_BYTES], const cuda_node *node) {
  return rondo_kind_label(buffer, node->kind, node->name, &node->where);
}

/* A driver's graph of an executable's nodes, and what was made of it. */
typedef struct cuda_built {
  cu_graph graph;
  cu_graph_exec exec;
  bool is_captured; /* `graph` is a captured one, and not to be destroyed with this */
} cuda_built;

struct cuda_executable {
  rondo_executable base;  /* what a launch and a change read comes first, close together */
  cu_graph_exec direct;   /* what is launched, where a launch is one call of the driver; else NULL (cuda_note_direct) */
  size_t kernel_count;    /* enabled ones */
  cuda_node *nodes;       /* in the order of the lowered graph */
  cu_graph_node *handles; /* of `built` */
  cuda_built built;
  size_t count, host_count, edge_count, disabled_count;
  bool has_foreign; /* work of libraries, which runs in graphs only */
  bool is_made;
  bool is_stale;         /* `built` is not as `nodes` are, because the driver did not take a change back */
  char *label;           /* "graph 'step'", for messages */
  rondo_slab slab;       /* has the contents of nodes */
  rondo_allocator small; /* the slab's */
  size_t node_room;      /* of `nodes`; `count` are made */
  size_t handle_count;
  uint32_t *predecessor_start; /* of node i: predecessors[predecessor_start[i] .. predecessor_start[i + 1]) */
  uint32_t *predecessors;
  rondo_lowered_edge *programmatic; /* beside them; from and to are nodes */
  size_t programmatic_count;
  rondo_captured *captured; /* what was captured of the graph it is made of: a reference, or NULL */
  cu_graph_exec before;     /* what `built` replaced and was not launched since: launches wait for its own; or NULL */
  uint64_t patch_runs;      /* so far */
  /* Only with host functions. */
  cu_event last;            /* behind the last launch */
  cuda_host_work *replaced; /* records that earlier launches may still call; by next */
  cuda_queue *queue;        /* where the launch under way reports failures; the driver's thread's */
  cuda_queue *queue_told;   /* the one that it was last told, in the order of launches */
  /* Timing: another executable with event records around each node; all NULL while it is off. */
  cuda_built timed;
  cu_event *stamps;           /* two a node: before it and behind it */
  cuda_executable *next_dead; /* waiting for its last launch */
};

static inline const rondo_allocator *cuda_allocator_of(const cuda_executable *executable) {
  return &executable->base.device->allocator;
}

/* To be called when what decides it has changed: timing, what is replaced or torn, foreign work. */
void cuda_note_direct(cuda_executable *executable);

/* Nodes (cuda_graph_node.c) --------------------------------------------------------------------------------------- */

/* How many nodes of the driver's it is, if it is not left out. */
static inline size_t cuda_node_parts(const cuda_node *node) {
  if (node->kind == RONDO_NODE_COPY) return node->storage != NULL ? 1 : cuda_copy_parts(&node->as.copy);
  return node->kind == RONDO_NODE_HOST ? 2 : 1;
}

/* Life and launches (cuda_executable.c) --------------------------------------------------------------------------- */

RONDO_MUST_USE rondo_status cuda_executable_create(rondo_device *device, const rondo_lowered_graph *graph,
                                                   rondo_executable **out);
RONDO_MUST_USE rondo_status cuda_queue_launch(rondo_queue *queue, rondo_executable *executable);
RONDO_MUST_USE rondo_status cuda_queue_upload(rondo_queue *queue, rondo_executable *executable);

/* Frees records of replaced host functions if no launch can call them. */
void cuda_executable_reap_replaced(cuda_executable *executable);

/* Changes (cuda_update.c): slots of rondo_executable_ops and rondo_queue_ops. */
RONDO_MUST_USE rondo_status cuda_executable_set_params(rondo_executable *executable, size_t index,
                                                       const rondo_lowered_node *node);
RONDO_MUST_USE rondo_status cuda_executable_set_many(rondo_executable *executable, const rondo_node_change *changes,
                                                     size_t count, size_t *out_done);
RONDO_MUST_USE rondo_status cuda_executable_set_enabled(rondo_executable *executable, size_t index, bool enabled);
void cuda_executable_rebind(rondo_executable *executable, size_t index, const rondo_kernel_node *kernel);
RONDO_MUST_USE rondo_status cuda_queue_launch_patched(rondo_queue *queue, rondo_executable *executable,
                                                      const rondo_patch_change *changes, size_t count);

/* Times (cuda_node_timing.c): slots of rondo_executable_ops. */
rondo_status cuda_set_timing(rondo_executable *executable, bool on);
void cuda_times(const rondo_executable *executable, uint64_t *out_ns);

/* Destroyed executables: kept until their launches are over. Frees those that are; with `all` the others too, whose
 * memory alone is then left for cuda_executables_free. */
void cuda_executables_reap(cuda_device *device, bool all);
void cuda_executables_free(cuda_device *device);

#endif
