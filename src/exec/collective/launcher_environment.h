/* SPDX-License-Identifier: MIT
 * What a launcher (torchrun, Slurm) tells each process through the environment: its rank, the number of ranks, and the
 * address where NCCL of rank 0 listens while ranks join. <rondo/collective.h> says which variables count. An empty
 * variable counts as unset. Threads: any, while no thread changes these variables.
 */
#ifndef RONDO_EXEC_COLLECTIVE_LAUNCHER_ENVIRONMENT_H
#define RONDO_EXEC_COLLECTIVE_LAUNCHER_ENVIRONMENT_H

#include <rondo/status.h>
#include <stdint.h>

#define RONDO_LAUNCHER_ADDRESS_BYTES 80

typedef struct rondo_launcher {
  uint32_t rank, world_size;
  char address[RONDO_LAUNCHER_ADDRESS_BYTES]; /* "host:port" or "[IPv6]:port", as NCCL_COMM_ID has it */
} rondo_launcher;

/* Errors: UNAVAILABLE/UNKNOWN_NAME (a variable is missing), INVALID_DATA/MALFORMED. */
RONDO_MUST_USE rondo_status rondo_launcher_read(rondo_launcher *out);

#endif
