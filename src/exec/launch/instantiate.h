/* SPDX-License-Identifier: MIT
 * Making execs: clone, lower, check, give the driver its executable.
 */
#ifndef RONDO_EXEC_LAUNCH_INSTANTIATE_H
#define RONDO_EXEC_LAUNCH_INSTANTIATE_H

#include "exec/launch/exec_internal.h"

/* Clones, twice if addresses are to change, and lowers; relocating, random numbers and the memory are left out. */
RONDO_MUST_USE rondo_status rondo_exec_draft_make(const char *call, rondo_graph *graph, bool relocate,
                                                  rondo_exec_draft *out);

/* Gives it cells if it draws random numbers, those of `like` if they fit; like may be NULL. */
RONDO_MUST_USE rondo_status rondo_exec_draft_random(rondo_exec_draft *draft, const rondo_exec_random *like);
RONDO_MUST_USE rondo_status rondo_exec_draft_memory(rondo_exec_draft *draft, bool auto_free);
void rondo_exec_draft_free(rondo_exec_draft *draft);
void rondo_exec_note_extras(rondo_exec *exec);

/* For an exec that was never launched or uploaded: its graph memory, if it has any, comes from a heap of its own on
 * every stream. The heap is destroyed with the exec. The second function returns the bytes in that heap. */
RONDO_MUST_USE rondo_status rondo_exec_own_heap(rondo_exec *exec);
uint64_t rondo_exec_heap_bytes(const rondo_exec *exec);

/* Waits for its launches on all streams, frees memory that they left allocated, and destroys it. No capture forbids
 * that or becomes invalid; launches that failed have ended too. The caller has waited for other users of what is
 * allocated, and frees the graph before it. NULL is fine. */
void rondo_exec_end(rondo_exec *exec);

#endif
