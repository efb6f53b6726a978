/* SPDX-License-Identifier: MIT
 * An exec: a clone of the graph it was made of, that clone lowered, the driver's executable, and the graph memory. The
 * clone is what updates are compared with, and what a capture gets when the exec is launched into it.
 *
 * Threads: one at a time; different execs are independent, also those of one graph.
 */
#ifndef RONDO_EXEC_EXEC_INTERNAL_H
#define RONDO_EXEC_EXEC_INTERNAL_H

#include <rondo/exec.h>
#include <rondo/verify.h>

#include "exec/capture_internal.h"
#include "exec/lowering.h"
#include "memory/exec_memory.h"

struct rondo_exec {
  rondo_executable *executable;
  rondo_device *device;
  bool has_extras; /* a launch is more than the driver's: memory, events, or the states below */
  bool broken;     /* a refused update could not be taken back: it runs again after one that takes effect */
  bool verify, auto_free;
  uint64_t launches, updates;
  rondo_exec_memory *memory;     /* NULL when the graph has none */
  rondo_graph *graph;            /* the clone */
  rondo_lowering lowering;       /* of the clone; places and tags are those of the graph the exec was made of */
  RONDO_ARRAY(uint32_t) records; /* places of the event-record nodes */
  bool *disabled;                /* by place */
  size_t disabled_count;
  rondo_findings *findings; /* warnings of the last verification; NULL when there were none */
};

/* What can be made of a graph before an executable: shared by instantiating and updating. */
typedef struct rondo_exec_draft {
  rondo_graph *graph;
  rondo_lowering lowering;
  rondo_exec_memory *memory;
  rondo_findings *findings;
} rondo_exec_draft;

/* Clones and lowers; the memory is left out. */
RONDO_MUST_USE rondo_status rondo_exec_draft_make(const char *call, rondo_graph *graph, rondo_exec_draft *out);
/* Fails with the first error that verification finds; warnings are kept in the draft. */
RONDO_MUST_USE rondo_status rondo_exec_draft_verify(const char *call, rondo_exec_draft *draft);
RONDO_MUST_USE rondo_status rondo_exec_draft_memory(rondo_exec_draft *draft, bool auto_free);
void rondo_exec_draft_free(rondo_exec_draft *draft);

/* Fails with the first mistake that the node's accesses would be with these parameters, resolved: of lifetimes, extents
 * and reach. Races are left out, because other nodes may have to change too. */
RONDO_MUST_USE rondo_status rondo_exec_verify_node(const rondo_exec *exec, uint32_t place,
                                                   const rondo_node_params *params);

/* The device's code for a kernel node: NO_FUNCTION naming kernel and node. */
RONDO_MUST_USE rondo_status rondo_exec_check_kernel(const char *call, rondo_device *device,
                                                    const rondo_node_params *params, uint32_t number);

void rondo_exec_note_extras(rondo_exec *exec);

/* The params of a lowered node. */
static inline const rondo_node_params *rondo_exec_params(const rondo_exec *exec, size_t place) {
  return exec->lowering.nodes.items[place].params;
}

#endif
