/* SPDX-License-Identifier: MIT
 * An exec: a clone of its graph, the lowering of that clone, the driver's executable, and the graph memory. Updates are
 * compared with the clone. When the exec is launched into a capture, the clone becomes a child graph there. An exec
 * that is relocated or draws random numbers has a second clone with other addresses. Then that one is lowered, and the
 * parameters of updates are translated to it.
 *
 * Threads: one at a time; different execs are independent, also those of one graph.
 */
#ifndef RONDO_EXEC_LAUNCH_EXEC_INTERNAL_H
#define RONDO_EXEC_LAUNCH_EXEC_INTERNAL_H

#include <rondo/exec.h>
#include <rondo/verify.h>

#include "device/retired_objects.h"
#include "exec/capture/capture_internal.h"
#include "exec/launch/lowering.h"
#include "exec/random/random_internal.h"
#include "memory/graph_memory/exec_memory.h"
#include "memory/graph_memory/relocation.h"
#include "memory/memory_errors.h"

struct rondo_exec {
  rondo_executable *executable;
  rondo_device *device;
  bool has_extras; /* a launch does more than the driver's launch: memory, events, random numbers, or `broken` */
  bool broken;     /* a failed update could not be undone: launches fail until an update succeeds */
  bool verify, auto_free, relocate; /* as in the options */
  bool relocates;                   /* graph memory of the second clone has other addresses */
  uint64_t last_queue;              /* its number, of the last launch; see rondo_exec_last_queue */
  uint64_t launches, updates;
  uint64_t checked;           /* the device's count of ended allocations when all that the nodes access was allocated */
  uint64_t checked_several;   /* the same for an exec of several devices: the sum of their counts */
  uint64_t checked_at_verify; /* what `checked` is if no allocation has ended since verification; RONDO_UNCHECKED: it
                                 has to be checked */
  rondo_freed_marks unfreed;  /* what was freed before that, or before the exec was created */
  bool is_unsure;             /* nodes may have other addresses since then */
  struct rondo_patch_set *patched;    /* the current one (patch.h); NULL: none */
  struct rondo_patch_set *patch_sets; /* all sets of the exec, by next */
  rondo_exec_memory *memory;          /* NULL when the graph has none */
  rondo_heap *heap;                   /* for its memory on every stream; NULL: the heap of the stream that launches */
  rondo_graph *graph;                 /* the clone */
  bool owns_nodes;                    /* the clones share no nodes, so that these can be written */
  rondo_graph *placed;                /* the second clone, or NULL */
  rondo_relocation *relocation;       /* of addresses in the second clone; NULL: graph memory is not moved */
  rondo_exec_random *random;          /* cells of the second clone; NULL: it draws no random numbers */
  rondo_lowering lowering;            /* of the second clone, else of the first; tags are those of the original graph */
  RONDO_ARRAY(uint32_t) records;      /* indices of the event-record nodes */
  rondo_plan_options plan;            /* options for relocating, also for updates */
  bool *disabled;                     /* by index */
  size_t disabled_count;
  rondo_findings *findings;        /* warnings of the last verification; NULL: none */
  rondo_launched_objects *objects; /* user objects that launches may use; NULL: none */
  rondo_device_list others;        /* of the clones, besides `device`: the exec keeps them open */
};

/* An exec without an executable. Instantiating completes it, and an update exchanges its contents with the exec's. */
typedef struct rondo_exec rondo_exec_draft;

/* For rondo_launched_objects_retire. */
static inline uint64_t rondo_exec_last_queue(const rondo_exec *exec) {
  return exec->executable->is_handed_out ? RONDO_QUEUE_UNKNOWN : exec->last_queue;
}

/* Whether a launch can skip the check that all memory is allocated that the nodes declare to access
 * (declared_access.c): no allocation has ended since the last check, or the exec is not verified. False for an exec of
 * several devices, whose counts the check adds up. */
#define RONDO_UNCHECKED UINT64_MAX
static inline bool rondo_exec_has_checked_access(const rondo_exec *exec) {
  return exec->checked == atomic_load_explicit(&exec->device->allocations_ended, memory_order_acquire) || !exec->verify;
}

/* The memory of the nodes is checked before the next launch. */
static inline void rondo_exec_forget_checked(rondo_exec *exec) {
  exec->checked = exec->checked_several = RONDO_UNCHECKED;
}

/* Inputs whose addresses a launch changes. */
typedef struct rondo_moves {
  const rondo_patch_change *changes;
  size_t count;
  bool are_made; /* out: the driver took them, even if something failed after that */
} rondo_moves;

/* rondo_exec_launch without its checks (launch.c), on a stream that does not capture. `moves` may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_launch_patched(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves);

/* The parameters of a lowered node. */
static inline const rondo_node_params *rondo_exec_params(const rondo_exec *exec, size_t index) {
  return exec->lowering.nodes.items[index].params;
}

#endif
