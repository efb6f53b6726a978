/* SPDX-License-Identifier: MIT
 * The component rondo-mpi, loaded at run time. So the tool is built without an MPI, runs on machines
 * without one, and one build of it runs under each MPI's launcher. A second executable would be one more name to know,
 * and one for each MPI. The component must be that of the launcher's MPI: with another one each process is the only
 * rank of a group of its own, which train_ranks.c refuses.
 */
#ifndef RONDO_TOOL_TRAIN_MPI_H
#define RONDO_TOOL_TRAIN_MPI_H

#include <rondo/rondo.h>

#include "common/launcher.h"

/* The functions of <rondo/mpi.h> that need no header of MPI. */
typedef struct train_mpi {
  rondo_status (*begin)(void);
  rondo_status (*communicator)(rondo_device *, const rondo_communicator_options *, rondo_communicator **);
  rondo_status (*end)(void);
  void (*abort)(int exit_status);
  char path[256]; /* of the component */
} train_mpi;

/* Loads the component `path`, or if that is NULL the one for the launcher's MPI: librondo_mpi_openmpi.so or
 * librondo_mpi_mpich.so, else librondo_mpi.so. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int train_mpi_load(const char *path, const launcher *started, train_mpi *out);

#endif
