/* SPDX-License-Identifier: MIT
 * Patch sets inside the library, for layers that check addresses themselves.
 *
 * A *slot* is an input of the set, by its number: the address that the exec has for it, and its sites. An exec has what
 * was patched last. Its clone of the graph gets it (rondo_patch_settle) before anything reads the clone. One set at a
 * time is the exec's current one. The other sets of the exec, and a set whose sites an update changed, are *stale*
 * until rondo_patch_set_rebase says where their inputs are.
 *
 * Threads: as the exec.
 */
#ifndef RONDO_EXEC_PATCH_PATCH_H
#define RONDO_EXEC_PATCH_PATCH_H

#include <rondo/patch.h>

#include "exec/launch/exec_internal.h"

/* Whether the input may be at this address: it keeps the alignment that it was recorded with. Else it is copied
 * (to where the exec has it). */
static inline bool rondo_patch_fits(const void *recorded, const void *address) {
  return (((uintptr_t)recorded ^ (uintptr_t)address) & (RONDO_PATCH_ALIGNMENT - 1)) == 0;
}

/* rondo_patch_set_create after its checks: `options` is known, inputs are not NULL unless count is 0. An input that is
 * `told` (by input; NULL when none is) stays where the work has it, to where a kernel of the exec that copies ranges
 * (graph/kernel.h) copies it, or from where back: its sites are the other sides there, and nothing else is; its address
 * is its place in the work. */
RONDO_MUST_USE rondo_status rondo_patch_create(const char *call, rondo_exec *exec, const rondo_patch_input *inputs,
                                               size_t count, const bool *told, const rondo_patch_options *options,
                                               rondo_patch_set **out);

/* What the work of an exec does with memory, or may do for all that it says; launches and sets stay as they are. */
typedef struct rondo_patch_look {
  bool is_used, is_written;
} rondo_patch_look;

RONDO_MUST_USE rondo_status rondo_patch_look_for(const char *call, rondo_exec *exec, const void *address, size_t bytes,
                                                 rondo_patch_look *out);

/* Launches the set's exec with input i at addresses[i]; NULL leaves it where it is. All that rondo_exec_launch says
 * holds: of memory, of events, of streams that capture (the child graph has the patched addresses; what the exec holds
 * does not change).
 *
 * The caller guarantees that each address fits (rondo_patch_fits), that its input is patchable, and that as many
 * bytes as were recorded live there until the launch is done, reachable by the device. None of this is checked.
 *
 * HOT: compares each address with what the exec holds, and neither allocates nor locks once warm. Errors: as
 * rondo_exec_launch; INVALID_STATE/STALE_PATCHES. The exec then holds what it did before, or, where the work itself
 * failed on a synchronous device, perhaps the new addresses: the set knows. */
RONDO_MUST_USE rondo_status rondo_patch_launch(rondo_patch_set *set, rondo_stream *stream,
                                               const void *const *addresses);

/* Writes what the exec holds into its clones of the graph. Before they are read, compared or changed. Cannot fail. */
void rondo_patch_settle(rondo_exec *exec);

/* The nodes may have other parameters than the sets of the exec know: the current one is looked at with its next
 * launch. */
void rondo_patch_note_update(rondo_exec *exec);

/* Asserts the invariants of the exec's patch sets: slots, sites, and that its clones hold what a set says they do.
 * Nothing in builds without assertions. */
void rondo_patch_sets_check(const rondo_exec *exec);

/* The exec is about to be destroyed. */
void rondo_patch_leave(rondo_exec *exec);

#endif
