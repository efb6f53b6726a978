/* SPDX-License-Identifier: MIT
 * Creating execs in steps. An update uses the same steps for its draft.
 */
#ifndef RONDO_EXEC_LAUNCH_INSTANTIATE_H
#define RONDO_EXEC_LAUNCH_INSTANTIATE_H

#include "exec/launch/exec_internal.h"

/* Clones the graph, twice if addresses change, and lowers it. Relocating, random numbers and memory are later steps. */
RONDO_MUST_USE rondo_status rondo_exec_draft_make(const char *call, rondo_graph *graph, bool relocate,
                                                  rondo_exec_draft *out);

/* Clones a graph for an exec alone. */
RONDO_MUST_USE rondo_status rondo_exec_clone_graph(rondo_graph *graph, rondo_graph **out);

/* Comes before nodes of the exec's clones are written, also by the driver (rondo_executable_ops.launch_patched): copies
 * the nodes that other graphs share. The lowering and the driver find them again; other pointers into them are stale.
 * Errors: OUT_OF_MEMORY; the exec works as before. A draft is allowed. */
RONDO_MUST_USE rondo_status rondo_exec_copy_nodes(rondo_exec *exec);
RONDO_MUST_USE static inline rondo_status rondo_exec_own_nodes(rondo_exec *exec) {
  return __builtin_expect(exec->owns_nodes, 1) ? RONDO_OK : rondo_exec_copy_nodes(exec);
}

/* Creates cells if the graph draws random numbers. Uses those of `like` if they fit; `like` may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_draft_random(rondo_exec_draft *draft, const rondo_exec_random *like);
RONDO_MUST_USE rondo_status rondo_exec_draft_memory(rondo_exec_draft *draft, bool auto_free);
void rondo_exec_draft_free(rondo_exec_draft *draft);
void rondo_exec_note_extras(rondo_exec *exec);

/* Gives an exec with graph memory a heap of its own, which it uses on every stream and destroys at its end. Call it
 * before the first launch or upload. The second function returns the bytes in that heap. */
RONDO_MUST_USE rondo_status rondo_exec_own_heap(rondo_exec *exec);
uint64_t rondo_exec_heap_bytes(const rondo_exec *exec);

/* Waits for the launches on all streams, also for failed ones, frees memory that they left allocated, and destroys the
 * exec. Captures neither forbid that nor become invalid. The caller has waited for other users of that memory, and has
 * destroyed the graph. NULL is allowed. */
void rondo_exec_end(rondo_exec *exec);

#endif
