/* SPDX-License-Identifier: MIT
 * An all-reduce as exchanges between pairs of ranks, in groups of 2, 4 or 8 ranks: for a small one, an exchange with
 * each rank whose number differs in one bit; for a large one, the same with halves, quarters and so on, of which each
 * rank sums up its own, and then collects those of the others. MPI's own non-blocking and persistent forms of these do
 * more work for each call. An all-reduce of 2 ranks takes, in microseconds, by MPI's blocking call, the faster of its
 * other two, and pairs: OpenMPI 4.1: 8 bytes 0.61, 1.16 and 0.65, 4 KiB 3.7, 6.2 and 3.1, 2 MiB 630, 540 and 360;
 * MPICH 4.0: 8 bytes 0.72, 0.75 and 0.43, 4 KiB 2.8, 2.7 and 2.3, 2 MiB 700, 630 and 340.
 *
 * Messages go over the control communicator. Their tag is a part of the hash of what the rank calls, so ranks that call
 * different all-reduces wait, until they learn it from each other's reports, instead of combining what does not belong
 * together. Threads: as the engine's.
 */
#ifndef RONDO_MPI_PAIRS_H
#define RONDO_MPI_PAIRS_H

#include <mpi.h>
#include <rondo/collective_engine.h>
#include <stdbool.h>

struct rondo_mpi_group;

/* Memory that an all-reduce needs beside its buffers: half of a segment, which should fit into a cache. */
enum { RONDO_MPI_PAIRS_TEMPORARY = 512 << 10 };

typedef struct rondo_mpi_part {
  size_t at, count; /* elements of the segment */
} rondo_mpi_part;

typedef struct rondo_mpi_pairs {
  const struct rondo_mpi_group *group; /* NULL: another form is used */
  rondo_combine_function combine;
  MPI_Datatype type;
  int tag;
  size_t width, left, count; /* bytes of an element; elements that are left, and of this segment */
  const char *src;           /* of this segment */
  char *dst, *temporary;
  int levels, step;
  rondo_mpi_part in; /* what this step receives */
} rondo_mpi_pairs;

/* The same on all ranks. */
bool rondo_mpi_pairs_fit(const struct rondo_mpi_group *group, const rondo_collective *work);

/* Starts the first exchange, with both requests. `type` has the width of the element, `hash` is the description's. */
RONDO_MUST_USE rondo_status rondo_mpi_pairs_start(rondo_mpi_pairs *pairs, const struct rondo_mpi_group *group,
                                                  const rondo_collective *work, uint64_t hash, MPI_Datatype type,
                                                  void *temporary, MPI_Request requests[2]);

/* An exchange is over: starts the next one, unless it was the last. */
RONDO_MUST_USE rondo_status rondo_mpi_pairs_go_on(rondo_mpi_pairs *pairs, MPI_Request requests[2], bool *out_is_done);

#endif
