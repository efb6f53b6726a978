/* SPDX-License-Identifier: MIT
 * What the benchmarks on MPI share: the rank, its settings, and its end if a call fails.
 */
#ifndef RONDO_MPI_BENCH_H
#define RONDO_MPI_BENCH_H

#include <mpi.h>
#include <rondo/rondo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

static void check(rondo_status status) {
  if (status == RONDO_OK) return;
  (void)fprintf(stderr, "rank %d: %s\n", rank, rondo_last_error()->message);
  (void)MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A setting of the environment. */
static uint32_t setting(const char *name, uint32_t otherwise) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? (uint32_t)atol(value) : otherwise;
}

#endif
