/* SPDX-License-Identifier: MIT
 * Uses the component rondo-mpi as it is installed, as one rank without a starter: the sum of one rank is its own value.
 */
#include <rondo/mpi.h>
#include <rondo/rondo.h>
#include <stdio.h>

static rondo_status sum(rondo_device *device, float *value) {
  rondo_stream *stream = NULL;
  rondo_communicator *communicator = NULL;
  rondo_status status = rondo_stream_create(device, NULL, &stream);
  if (status == RONDO_OK) status = rondo_communicator_from_mpi(device, MPI_COMM_SELF, NULL, &communicator);
  if (status == RONDO_OK) status = rondo_all_reduce(communicator, stream, value, value, 1, RONDO_F32, RONDO_REDUCE_SUM);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  const rondo_status destroyed = rondo_communicator_destroy(communicator), ended = rondo_stream_destroy(stream);
  if (status != RONDO_OK) return status;
  return destroyed != RONDO_OK ? destroyed : ended;
}

int main(int argc, char **argv) {
  int level;
  float value = 3;
  rondo_device *device = NULL;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
  rondo_status status = rondo_device_open("cpu", NULL, &device);
  if (status == RONDO_OK) status = sum(device, &value);
  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  if (device != NULL && rondo_device_close(device) != RONDO_OK) return 1;
  if (MPI_Finalize() != MPI_SUCCESS || status != RONDO_OK || value != 3) return 1;
  printf("%s ok\n", rondo_version());
  return 0;
}
