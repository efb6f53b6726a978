/* SPDX-License-Identifier: MIT
 * Patch sets inside the library, for layers that check addresses themselves.
 *
 * A *slot* is an input of the set: its address in the exec, and its sites. The driver's executable has the addresses of
 * the last patched launch. The exec's clones of the graph get them (rondo_patch_settle) before anything reads the
 * clones. One set at a time is the exec's current one. The other sets of the exec, and a set whose sites an update
 * changed, are *stale* until rondo_patch_set_rebase passes the addresses of their inputs.
 *
 * Threads: as the exec.
 */
#ifndef RONDO_EXEC_PATCH_PATCH_H
#define RONDO_EXEC_PATCH_PATCH_H

#include <rondo/patch.h>

#include "exec/launch/exec_internal.h"

/* Whether an input can be patched to this address: it has the alignment that was recorded. Otherwise copy the input to
 * the recorded address. */
static inline bool rondo_patch_fits(const void *recorded, const void *address) {
  return (((uintptr_t)recorded ^ (uintptr_t)address) & (RONDO_PATCH_ALIGNMENT - 1)) == 0;
}

/* rondo_patch_set_create after the checks of its pointers and of the version of its options: `options` is complete, and
 * inputs are not NULL unless count is 0. `copied` has a flag for each input, or is NULL. The work uses a copied input
 * at its recorded address. A kernel of the exec that copies ranges (graph/kernel.h) copies it to that address, or from
 * there back. The sites of a copied input are the other addresses of these copies, and only they. */
RONDO_MUST_USE rondo_status rondo_patch_create(const char *call, rondo_exec *exec, const rondo_patch_input *inputs,
                                               size_t count, const bool *copied, const rondo_patch_options *options,
                                               rondo_patch_set **out);

/* How the work of an exec uses memory, as far as it is declared: true if in doubt. Changes nothing. */
typedef struct rondo_patch_use {
  bool is_used, is_written;
  bool is_unknown; /* there is work of a library whose addresses are not known */
} rondo_patch_use;

RONDO_MUST_USE rondo_status rondo_patch_find_use(const char *call, rondo_exec *exec, const void *address, size_t bytes,
                                                 rondo_patch_use *out);

/* Launches the set's exec with input i at addresses[i]; NULL keeps its address. As rondo_exec_launch for memory, events
 * and streams that capture. (In a capture the child graph has the new addresses, and the exec keeps the old ones.)
 *
 * The caller guarantees that each address fits (rondo_patch_fits), that the input is patchable, and that the memory
 * there, of the recorded size, stays allocated until the launch is done and is accessible to the device. None of this
 * is checked.
 *
 * HOT: compares each address with that of the exec, and neither allocates nor locks once warm. Errors: as
 * rondo_exec_launch; INVALID_STATE/STALE_PATCHES. After an error the exec has the old addresses or, if the work itself
 * failed on a synchronous device, perhaps the new ones; the set knows which. */
RONDO_MUST_USE rondo_status rondo_patch_launch(rondo_patch_set *set, rondo_stream *stream,
                                               const void *const *addresses);

/* Writes the addresses of the last launch into the exec's clones of the graph. Call it before they are read, compared
 * or changed. */
void rondo_patch_settle(rondo_exec *exec);

/* Notes that nodes of the exec may have other parameters. The current set checks its sites at its next launch. */
void rondo_patch_note_update(rondo_exec *exec);

/* Asserts the invariants of the exec's patch sets: slots, sites, and the addresses in the clones. Does nothing in
 * builds without assertions. */
void rondo_patch_sets_check(const rondo_exec *exec);

/* The exec is about to be destroyed. */
void rondo_patch_leave(rondo_exec *exec);

#endif
