/* SPDX-License-Identifier: MIT
 * Reading a graph that was recorded into an arena.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_RECORDING_H
#define RONDO_MEMORY_ARENA_ARENA_RECORDING_H

#include "memory/arena/arena.h"

/* Reads the graph's own nodes, not those of children. INVALID_ARGUMENT (the graph was not recorded into an arena),
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_arena_recording_read(const rondo_graph *graph, rondo_arena_recording *out);
void rondo_arena_recording_free(rondo_arena_recording *recording);

/* The arena into which the graph was recorded, or NULL. */
rondo_arena *rondo_arena_of(const rondo_graph *graph);

#endif
