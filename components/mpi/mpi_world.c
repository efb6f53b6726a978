/* SPDX-License-Identifier: MIT
 * MPI for programs that load the component at run time and have no header of MPI: its beginning, its world and its end.
 */
#include <rondo/mpi.h>
#include <stdlib.h>

#include "mpi/mpi_state.h"

RONDO_API rondo_status rondo_mpi_begin(void) {
  int is_initialized = 0, level = MPI_THREAD_SINGLE;
  RONDO_MPI_TRY(MPI_Initialized(&is_initialized), "asking whether MPI is initialized");
  if (!is_initialized) RONDO_MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level), "initializing MPI");
  const rondo_status status = rondo_mpi_require_ready();
  if (status != RONDO_OK || is_initialized) return status;
  return rondo_mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "setting the error handler");
}

RONDO_API rondo_status rondo_communicator_from_mpi_world(rondo_device *device,
                                                         const rondo_communicator_options *options,
                                                         rondo_communicator **out_communicator) {
  return rondo_communicator_from_mpi(device, MPI_COMM_WORLD, options, out_communicator);
}

RONDO_API rondo_status rondo_mpi_end(void) {
  const rondo_status status = rondo_mpi_require_running();
  return status == RONDO_OK ? rondo_mpi_check(MPI_Finalize(), "finalizing MPI") : status;
}

RONDO_API void rondo_mpi_abort(int exit_status) {
  if (rondo_mpi_require_running() == RONDO_OK) (void)MPI_Abort(MPI_COMM_WORLD, exit_status);
  _Exit(exit_status); /* MPI_Abort does not return, but its declaration does not say so */
}
