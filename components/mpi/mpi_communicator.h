/* SPDX-License-Identifier: MIT
 * The communicators of a group: making, dividing and freeing them. Making waits for all ranks, but not longer than the
 * timeout.
 */
#ifndef RONDO_MPI_COMMUNICATOR_H
#define RONDO_MPI_COMMUNICATOR_H

#include "mpi/mpi_engine.h"

/* Duplicates of a communicator. UNAVAILABLE/TIMED_OUT if not all ranks come; `call` is what they should call. */
RONDO_MUST_USE rondo_status rondo_mpi_group_make(MPI_Comm communicator, uint32_t timeout_ms, const char *call,
                                                 rondo_mpi_group *out);

/* The group of the ranks with this color. */
RONDO_MUST_USE rondo_status rondo_mpi_group_divide(const rondo_mpi_group *group, uint32_t color, uint32_t key,
                                                   uint32_t timeout_ms, rondo_mpi_group *out);

/* Makes this rank's engine, which owns the group's communicators. All ranks of the group call it, and all return the
 * failure of the first one that has one; then the communicators are freed. `timeout_ms` is that of collectives. */
RONDO_MUST_USE rondo_status rondo_mpi_group_make_engine(rondo_mpi_group *group, uint32_t timeout_ms,
                                                        uint32_t join_timeout_ms, const char *call,
                                                        rondo_collective_engine *out);

void rondo_mpi_group_free(rondo_mpi_group *group);

#endif
