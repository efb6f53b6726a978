/* SPDX-License-Identifier: MIT
 * What a rank calls, in a form that ranks compare and send to each other. No padding.
 */
#ifndef RONDO_MPI_DESCRIPTION_H
#define RONDO_MPI_DESCRIPTION_H

#include <rondo/collective_engine.h>
#include <stdint.h>

typedef struct rondo_mpi_description {
  uint64_t number; /* of the collective; 0 before the first, and for SEND_RECEIVE */
  uint64_t count;
  uint32_t operation, type, reduction, root, to, from; /* operation 0: nothing is in progress */
  uint32_t is_average, reserved;
} rondo_mpi_description;

rondo_mpi_description rondo_mpi_describe(const rondo_collective *work, uint64_t number);

/* Of all but the number. */
uint64_t rondo_mpi_description_hash(const rondo_mpi_description *description);

/* "all_reduce (sum) of 4096 f32". */
void rondo_mpi_description_text(const rondo_mpi_description *description, char *text, size_t bytes);

#endif
