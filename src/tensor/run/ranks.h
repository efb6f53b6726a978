/* SPDX-License-Identifier: MIT
 * The ranks that train a data-parallel program together, as a compiled program knows them (<rondo/data_parallel.h>).
 */
#ifndef RONDO_TENSOR_RUN_RANKS_H
#define RONDO_TENSOR_RUN_RANKS_H

#include <rondo/program.h>

#include "base/array.h"
#include "tensor/program/operator.h"

/* A state of which each rank has a part, in a flat state. Its elements are those from `offset` on of the flat states of
 * all ranks, one after the other. A table whose rows are divided is the flat state of itself. */
typedef struct rondo_rank_shard {
  char *name;
  rondo_shape shape;
  size_t value; /* the flat state: index among the named values */
  size_t offset;
} rondo_rank_shard;

typedef struct rondo_ranks {
  struct rondo_communicator *communicator; /* the caller's; NULL: the program is not data-parallel */
  uint32_t rank, count;
  RONDO_ARRAY(rondo_rank_shard) shards; /* those of one flat state are together */
  uint32_t round;                       /* runs of an update; 0 or 1: each run is one */
  size_t first_last, end_last;          /* operations that only the last run of a round has */
  void *runs;                           /* the state that counts the accumulated runs; NULL: round is at most 1 */
  bool is_short;                        /* the run that is being enqueued or captured is not the last of its round */
} rondo_ranks;

/* Keeps the communicator and the shards. The values are named. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_ranks_keep(const rondo_program *program, rondo_compiled *compiled);
void rondo_ranks_free(rondo_compiled *compiled);

/* Around the enqueueing of a run, if the program has rounds: chooses whether it is a short one. All ranks choose alike,
 * because they count their calls: a run that fails counts too. The count is in the sharing; it is read from the state
 * after that was written. The first waits if it has to read. */
RONDO_MUST_USE rondo_status rondo_ranks_begin_run(rondo_compiled *compiled);
void rondo_ranks_end_run(rondo_compiled *compiled, bool is_enqueued);

/* Compares the fingerprints of all ranks. Waits for them. Errors: INVALID_ARGUMENT/MISMATCH; those of collectives. */
RONDO_MUST_USE rondo_status rondo_ranks_compare(const rondo_program *program, const rondo_compiled *compiled);

/* Gathers a flat state of all ranks into host memory: its elements times the ranks. */
RONDO_MUST_USE rondo_status rondo_ranks_gather(rondo_compiled *compiled, size_t value, void *out);

/* Copies the mean of the ranks' states to host memory, by which each can go on as if it had summed it. */
RONDO_MUST_USE rondo_status rondo_ranks_average(rondo_compiled *compiled, const char *name, float *out);

#endif
