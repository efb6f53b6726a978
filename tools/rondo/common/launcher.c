/* SPDX-License-Identifier: MIT
 * The variables that each launcher sets. The first row whose rank and size are set wins: under Slurm, an MPI's own
 * launcher or srun's plugin for it sets more than srun alone.
 */
#define _GNU_SOURCE
#include "common/launcher.h"

#include <errno.h>
#include <stdlib.h>

typedef struct launcher_row {
  const char *name, *mpi;
  const char *rank, *size, *local_rank, *local_size;
} launcher_row;

static const launcher_row rows[] = {
    {"OpenMPI's mpirun", "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH's mpirun", "mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"torchrun", NULL, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"srun", "", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

static bool read_number(const char *name, uint32_t *out) {
  const char *text = secure_getenv(name);
  char *end = NULL;
  if (!text || text[0] < '0' || text[0] > '9') return false;
  errno = 0;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end != '\0' || errno != 0 || value > UINT32_MAX) return false;
  *out = (uint32_t)value;
  return true;
}

bool launcher_find(launcher *out) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const launcher_row *row = &rows[i];
    *out = (launcher){.name = row->name, .mpi = row->mpi};
    if (!read_number(row->rank, &out->rank) || !read_number(row->size, &out->size) || out->rank >= out->size) continue;
    (void)read_number(row->local_rank, &out->local_rank);
    (void)read_number(row->local_size, &out->local_size);
    return true;
  }
  *out = (launcher){0};
  return false;
}
