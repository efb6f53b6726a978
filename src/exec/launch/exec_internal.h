/* SPDX-License-Identifier: MIT
 * An exec: a clone of its graph, the lowering of that clone, the driver's executable, and the graph memory. Updates are
 * compared with the clone, and a capture gets it when the exec is launched into the capture. An exec that is relocated
 * or draws random numbers has a second clone, with its own addresses: that one is lowered, and updates are translated
 * to it.
 *
 * Threads: one at a time; different execs are independent, also those of one graph.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_INTERNAL_H
#define RONDO_EXEC_LAUNCH_EXEC_INTERNAL_H

#include <rondo/exec.h>
#include <rondo/verify.h>

#include "exec/capture/capture_internal.h"
#include "exec/launch/lowering.h"
#include "exec/random/random_internal.h"
#include "memory/graph_memory/exec_memory.h"
#include "memory/graph_memory/relocation.h"
#include "memory/memory_errors.h"

struct rondo_exec {
  rondo_executable *executable;
  rondo_device *device;
  bool has_extras; /* a launch is more than the driver's: memory, events, random numbers, or the states below */
  bool broken;     /* a refused update could not be taken back: it runs again after one that takes effect */
  bool verify, auto_free, relocate; /* as asked for */
  bool relocates;                   /* the second clone has addresses of its own for graph memory */
  uint64_t launches, updates;
  uint64_t checked;          /* the device's count of ended allocations when what the nodes access was allocated */
  rondo_freed_marks unfreed; /* what was freed by then, or by the making of the exec */
  bool is_unsure;            /* nodes may have got other addresses since, of memory that is not the device's */
  struct rondo_patch_set *patched;    /* the current one, which knows what the clones do not (patch.h); or NULL */
  struct rondo_patch_set *patch_sets; /* made for it, by next */
  rondo_exec_memory *memory;          /* NULL when the graph has none */
  rondo_heap *heap;                   /* its own, for its memory on every stream; NULL: the launch stream's */
  rondo_graph *graph;                 /* the clone */
  rondo_graph *placed;                /* the second one; NULL when there is none */
  rondo_relocation *relocation;       /* of graph memory between the two; NULL when that stays where it is */
  rondo_exec_random *random;          /* of cells between the two; NULL when it draws no random numbers */
  rondo_lowering lowering;       /* of the clone, or the second; places and tags are of the graph that was cloned */
  RONDO_ARRAY(uint32_t) records; /* places of the event-record nodes */
  rondo_plan_options plan;       /* for relocating, also at updates */
  bool *disabled;                /* by place */
  size_t disabled_count;
  rondo_findings *findings; /* warnings of the last verification; NULL when there were none */
};

/* What can be made of a graph before an executable: what instantiating completes, and updating exchanges for what the
 * exec has. */
typedef struct rondo_exec rondo_exec_draft;

/* Whether what the nodes declare to access is allocated now (declared_access.c). A launch asks unless no allocation has
 * ended since it was found so: rondo_exec_is_reached. Execs made without verification are not asked. */
#define RONDO_UNCHECKED UINT64_MAX
static inline bool rondo_exec_is_reached(const rondo_exec *exec) {
  return exec->checked == atomic_load_explicit(&exec->device->allocations_ended, memory_order_acquire) || !exec->verify;
}

/* What a launch changes of where inputs are. */
typedef struct rondo_moves {
  const rondo_patch_change *changes;
  size_t count;
  bool are_made; /* out: the driver took them, also when something failed after that */
} rondo_moves;

/* rondo_exec_launch after its checks (launch.c), on a stream that does not capture. `moves` may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_launch_patched(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves);

/* The params of a lowered node. */
static inline const rondo_node_params *rondo_exec_params(const rondo_exec *exec, size_t place) {
  return exec->lowering.nodes.items[place].params;
}

#endif
