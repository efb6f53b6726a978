/* SPDX-License-Identifier: MIT
 * The collective engine on MPI, one for each rank: its state, and what its files share.
 *
 * A collective goes through phases: the ranks agree on what it is (only if its description is new, or from time to
 * time), then MPI moves the data. In both phases `request` is tested until it is done; nothing waits.
 *
 * Invariant: the phase is IDLE exactly if no request is in progress. Data, agreements and divisions of the group use
 * communicators of their own, and all-reduces by pairs a tag of their own, so that they cannot match each other.
 *
 * Threads: as <rondo/collective_engine.h> says. `state` knows the threads in MPI, for MPI_Finalize (mpi_state.h).
 */
#ifndef RONDO_MPI_ENGINE_H
#define RONDO_MPI_ENGINE_H

#include <mpi.h>
#include <rondo/collective_engine.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/mpi_description.h"
#include "mpi/mpi_liveness.h"
#include "mpi/mpi_operations.h"
#include "mpi/mpi_state.h"

typedef enum rondo_mpi_phase { RONDO_MPI_IDLE, RONDO_MPI_AGREES, RONDO_MPI_DIFFERS, RONDO_MPI_MOVES } rondo_mpi_phase;

/* The communicators of a group: for data; for agreements, messages and all-reduces by pairs; for dividing the group. */
typedef struct rondo_mpi_group {
  MPI_Comm data, control, division;
  int rank, size;
} rondo_mpi_group;

typedef struct rondo_mpi_engine {
  rondo_mpi_state state;
  rondo_mpi_group group;
  rondo_mpi_phase phase;
  rondo_collective work;               /* in progress */
  rondo_mpi_description own, *all;     /* of it; by rank, if they differ */
  uint64_t sent_hash[2], max_hash[2];  /* of the agreement: the hash and its complement */
  uint64_t number;                     /* of the collective among those of the whole group */
  uint64_t history[RONDO_MPI_HISTORY]; /* by number, modulo: a hash of all descriptions up to that collective */
  MPI_Request agreement;
  rondo_mpi_operation operation; /* that moves the data */
  rondo_mpi_cache cache;
  rondo_mpi_liveness liveness;
  uint32_t timeout_ms; /* of a collective */
  /* A division failed: a late rank may still answer it, so the group cannot be divided any more. */
  bool has_failed_split;
  rondo_reason split_reason;
} rondo_mpi_engine;

/* Makes the engine of this rank, which owns the group's communicators if it succeeds. OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_mpi_engine_make(const rondo_mpi_group *group, uint32_t timeout_ms,
                                                  rondo_collective_engine *out);

#endif
