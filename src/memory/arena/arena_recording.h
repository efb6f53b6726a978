/* SPDX-License-Identifier: MIT
 * Recordings in an arena: how one begins, with what is alive and what it needs as records of its space, and what
 * it came to.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_RECORDING_H
#define RONDO_MEMORY_ARENA_ARENA_RECORDING_H

#include "memory/arena/arena.h"

/* Reads what was recorded: of the graph's own nodes, not of children. INVALID_ARGUMENT (the graph is not of an arena),
 * OUT_OF_MEMORY. Freed with the function below. */
RONDO_MUST_USE rondo_status rondo_arena_recording_read(const rondo_graph *graph, rondo_arena_recording *out);
void rondo_arena_recording_free(rondo_arena_recording *recording);

/* The arena that the graph was recorded into; NULL when into none. */
rondo_arena *rondo_arena_of(const rondo_graph *graph);

#endif
