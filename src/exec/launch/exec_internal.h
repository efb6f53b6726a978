/* SPDX-License-Identifier: MIT
 * An exec: a clone of the graph it was made of, that clone lowered, the driver's executable, and the graph memory. The
 * clone is what updates are compared with, and what a capture gets when the exec is launched into it. An exec that is
 * relocated or draws random numbers has a second clone, with the addresses that are its own: that one is lowered, and
 * updates are translated to it.
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

/* Clones, twice if addresses are to change, and lowers; relocating, random numbers and the memory are left out. */
RONDO_MUST_USE rondo_status rondo_exec_draft_make(const char *call, rondo_graph *graph, bool relocate,
                                                  rondo_exec_draft *out);

/* Relocates the draft, if it is to be: with the plan of `like`, if that fits; options and like may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_draft_relocate(rondo_exec_draft *draft, const rondo_plan_options *options,
                                                      const rondo_relocation *like);
/* Gives it cells if it draws random numbers, those of `like` if they fit; like may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_draft_random(rondo_exec_draft *draft, const rondo_exec_random *like);

/* Fails with the first error that verification finds; warnings are kept in the draft. `graph` is what the draft was
 * made of: that there was nothing to find is noted there. */
RONDO_MUST_USE rondo_status rondo_exec_draft_verify(const char *call, rondo_exec_draft *draft, rondo_graph *graph);
RONDO_MUST_USE rondo_status rondo_exec_draft_memory(rondo_exec_draft *draft, bool auto_free);
void rondo_exec_draft_free(rondo_exec_draft *draft);

/* Whether the node would access what it does now; and whether all that a kernel's pointers reach are allocations in
 * which nothing can go wrong: they live, and no graph has them. */
bool rondo_exec_same_accesses(const rondo_exec *exec, uint32_t place, const rondo_node_params *params);
bool rondo_exec_reaches_plain(const rondo_exec *exec, const rondo_kernel_node *node);

/* Fails with the first mistake that the node's accesses would be with these parameters, resolved: of lifetimes, extents
 * and reach. Races are left out, because other nodes may have to change too. */
RONDO_MUST_USE rondo_status rondo_exec_verify_node(const rondo_exec *exec, uint32_t place,
                                                   const rondo_node_params *params);

/* Whether verification found nothing in the graph, and nothing has changed since: neither the graph nor the device's
 * allocations. Taken down when an exec is made or updated with it. */
bool rondo_exec_is_verified(const rondo_graph *graph);

/* Whether the graph differs from the exec's clone in parameters alone that can be put in place; if so the nodes with
 * other parameters, in the exec's order, go to `changes`, which has room for all. The graph is the exec's device's. */
bool rondo_exec_fits(const rondo_exec *exec, const rondo_graph *graph, rondo_node_change *changes, size_t *out_count);
/* *out_done: whether it fits; then its parameters are put in place, all or none. */
RONDO_MUST_USE rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph, bool *out_done);

/* Gives the driver what becomes of the exec's nodes; the lowering still has what they were. A failure takes back what
 * was given by then; where that fails too, the exec is broken. */
RONDO_MUST_USE rondo_status rondo_exec_commit(rondo_exec *exec, const rondo_node_change *changes, size_t count);

/* True when the graph, or one in it, was made to be relocated. */
bool rondo_exec_must_relocate(const rondo_graph *graph);

/* UNSUPPORTED/NOT_RELOCATABLE when the graph, or one in it, was recorded into an arena. */
RONDO_MUST_USE rondo_status rondo_exec_refuse_arena(const char *call, const rondo_graph *graph);

/* Other parameters for a node of an exec with a second clone, in the exec's addresses. */
RONDO_MUST_USE rondo_status rondo_exec_translate(const rondo_exec *exec, uint32_t place,
                                                 const rondo_node_params *params, rondo_relocated_params *out);

/* The graph of the first clone that has the same nodes as `placed`, a graph of the second. */
rondo_graph *rondo_exec_original(const rondo_exec *exec, const rondo_graph *placed);

/* The parameters of a lowered node as they were given: without relocating, those that it has. */
const rondo_node_params *rondo_exec_given_params(const rondo_exec *exec, size_t place);

void rondo_exec_note_extras(rondo_exec *exec);

/* Whether what the nodes declare to access is allocated now (declared_access.c). A launch asks unless no allocation has
 * ended since it was found so: rondo_exec_is_reached. Execs made without verification are not asked. */
#define RONDO_UNCHECKED UINT64_MAX
RONDO_MUST_USE rondo_status rondo_exec_check_reach(const char *call, rondo_exec *exec);
static inline bool rondo_exec_is_reached(const rondo_exec *exec) {
  return exec->checked == atomic_load_explicit(&exec->device->allocations_ended, memory_order_acquire) || !exec->verify;
}

/* The exec is made of the graph, or updated: looks whether all is allocated already, so that its first launch need not,
 * or notes that it must, and that the graph is not verified for other execs. Cannot fail. */
void rondo_exec_begin_reach(rondo_exec *exec, rondo_graph *graph);
/* The node at the place has got other addresses: the same. */
void rondo_exec_renew_reach(rondo_exec *exec, uint32_t place);

/* For an exec that was never launched or uploaded: its graph memory, if it has any, comes from a heap of its own,
 * whatever the stream, which goes with it; and the bytes there. */
RONDO_MUST_USE rondo_status rondo_exec_own_heap(rondo_exec *exec);
uint64_t rondo_exec_heap_bytes(const rondo_exec *exec);

/* Waits for its launches, on whatever streams, frees what they left allocated and nobody has freed, and destroys it. No
 * capture forbids that or becomes invalid; what failed has ended too. The caller has waited for other users of what is
 * allocated, and frees the graph before it. NULL is fine. */
void rondo_exec_end(rondo_exec *exec);

/* What a launch changes of where inputs are. */
typedef struct rondo_moves {
  const rondo_patch_change *changes;
  size_t count;
  bool are_made; /* out: the driver took them, also when something failed after that */
} rondo_moves;

/* rondo_exec_launch behind its front, on a stream that does not capture. `moves` may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_launch_patched(rondo_exec *exec, rondo_stream *stream, rondo_moves *moves);

/* The params of a lowered node. */
static inline const rondo_node_params *rondo_exec_params(const rondo_exec *exec, size_t place) {
  return exec->lowering.nodes.items[place].params;
}

#endif
