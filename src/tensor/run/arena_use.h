/* SPDX-License-Identifier: MIT
 * Who may use the bytes of an arena that compiled programs share. The program that ran or was written to last is its
 * holder, and the values of the others in it are lost. A lost input must be written again before a run, and a lost
 * output computed again before it is read; until then these calls fail. One comparison if nothing is shared.
 */
#ifndef RONDO_TENSOR_RUN_ARENA_USE_H
#define RONDO_TENSOR_RUN_ARENA_USE_H

#include "base/component.h"
#include "tensor/program/program_internal.h"

#include "tensor/run/compiled.h"

/* _claim: before an input in the arena is written; makes the program the holder. _note_written: after it; the input is
 * no longer lost. */
void rondo_arena_claim(rondo_compiled *compiled);
void rondo_arena_note_written(rondo_compiled *compiled, rondo_named_value *value);

static inline bool rondo_arena_is_whole(const rondo_compiled *compiled) {
  return compiled->arena == NULL || (compiled->arena->holder == compiled && !compiled->has_lost);
}

/* Before a run where the arena is not whole: makes the program the holder, of outputs too. Errors:
 * INVALID_STATE/OVERWRITTEN naming an input that is lost; nothing has changed then. */
RONDO_MUST_USE rondo_status rondo_arena_take(rondo_compiled *compiled, const char *call);

/* Before an output is read. Errors: INVALID_STATE/OVERWRITTEN when it is lost. */
RONDO_MUST_USE rondo_status rondo_arena_require(const rondo_compiled *compiled, const rondo_named_value *value,
                                                const char *call);

/* Before copies in the order of the program's stream write all of its inputs at their addresses: makes the
 * program the one that holds the arena; no input of it is lost. */
RONDO_PRIVATE void rondo_compiled_claim_inputs(rondo_compiled *compiled);

/* Bytes of the arenas of all that share with it, and of the largest. */
RONDO_PRIVATE uint64_t rondo_compiled_arenas(const rondo_compiled *compiled, uint64_t *out_largest);

#endif
