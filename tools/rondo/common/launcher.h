/* SPDX-License-Identifier: MIT
 * The launcher that started this process as one rank of several, read from the environment.
 */
#ifndef RONDO_TOOL_LAUNCHER_H
#define RONDO_TOOL_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct launcher {
  const char *name;
  const char *mpi; /* "openmpi" or "mpich"; "": any MPI; NULL: it starts no ranks of an MPI */
  uint32_t rank, size;
  uint32_t local_rank; /* among the ranks of this machine; 0 if the launcher does not say */
  uint32_t local_size; /* 0 if the launcher does not say */
} launcher;

/* Returns false without a launcher, or if its variables are not numbers. */
bool launcher_find(launcher *out);

#endif
