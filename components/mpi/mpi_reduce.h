/* SPDX-License-Identifier: MIT
 * MPI's operation for a reduction. MPI's own ones sum numbers and compare integers. The others combine as Rondo
 * promises: F16 and BF16, and the maximum and minimum of floating-point numbers, where a NaN wins. They are made when
 * they are first needed, and MPI frees them at its end. Threads: any.
 */
#ifndef RONDO_MPI_REDUCE_H
#define RONDO_MPI_REDUCE_H

#include <mpi.h>
#include <rondo/collective_engine.h>

/* MPI_OP_NULL: MPI could not make it. */
MPI_Op rondo_mpi_reduce_find(rondo_type type, rondo_reduction reduction);

#endif
