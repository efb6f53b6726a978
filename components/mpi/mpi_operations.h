/* SPDX-License-Identifier: MIT
 * Moving the data of a collective by MPI. An all-reduce of few ranks consists of exchanges between pairs (mpi_pairs.h).
 * Other small collectives use persistent requests, which the cache keeps by
 * description: a request is made when the ranks have agreed on a description for the first time, which is the same
 * moment on all ranks, as MPI demands. It is bound to buffers of the cache, and data is copied, because the addresses
 * of a replay may change. Other collectives are non-blocking ones on the user's buffers.
 *
 * Invariant: whether a description is in the cache depends on the sequence of descriptions only, so it is the same on
 * all ranks. Threads: as the engine's.
 */
#ifndef RONDO_MPI_OPERATIONS_H
#define RONDO_MPI_OPERATIONS_H

#include <mpi.h>
#include <stdbool.h>

#include "mpi/mpi_description.h"
#include "mpi/mpi_pairs.h"

struct rondo_mpi_group;

/* Up to this size, a persistent collective with its copies is faster than a non-blocking one. An all-reduce of 2 ranks
 * takes, in microseconds, persistent and non-blocking: OpenMPI 4.1: 8 bytes 0.9 and 1.2, 4 KiB 6.5 and 6.5, 16 KiB 12.5
 * and 10.8; MPICH 4.0: 8 bytes 0.7 and 1.4, 16 KiB 6.7 and 6.9, 32 KiB 15.8 and 14.4. */
#if defined(OPEN_MPI)
enum { RONDO_MPI_PERSISTENT_BYTES = 4 << 10 };
#else
enum { RONDO_MPI_PERSISTENT_BYTES = 16 << 10 };
#endif
enum { RONDO_MPI_CACHE_PLACES = 1024 };
enum { RONDO_MPI_CACHE_ENTRIES = 768, RONDO_MPI_CACHE_PERSISTENT = 64 };

/* A description that the ranks have agreed on. */
typedef struct rondo_mpi_known {
  rondo_mpi_description description; /* its number is 0 */
  uint64_t hash;
  MPI_Request request;     /* persistent; MPI_REQUEST_NULL: too large */
  unsigned char *in, *out; /* its buffers, in one block; a broadcast has one buffer */
  size_t in_bytes, out_bytes;
} rondo_mpi_known;

/* A hash table. The first 64 small descriptions have persistent requests, with buffers of at most 2 * 16 KiB each. */
typedef struct rondo_mpi_cache {
  rondo_mpi_known known[RONDO_MPI_CACHE_PLACES]; /* operation 0: free */
  rondo_mpi_known *last;                         /* that was found; or NULL */
  int count, persistent;
  void *temporary; /* what is received, where MPI does not allow the user's buffer */
  size_t temporary_bytes;
} rondo_mpi_cache;

/* A collective whose data moves. */
typedef struct rondo_mpi_operation {
  MPI_Request requests[2];
  rondo_mpi_known *known; /* whose persistent request is in use, or NULL */
  int count, tested;      /* requests; those that are done, and then the next one is tested */
  int received;           /* elements that a RECEIVE expects, as the first request; -1: none */
  MPI_Status status;      /* of a RECEIVE */
  MPI_Datatype type;
  rondo_type received_type;
  const void *copy_from; /* copied when it is done */
  void *copy_to;
  size_t copy_bytes;
  rondo_mpi_pairs pairs;
} rondo_mpi_operation;

/* LIMIT_EXCEEDED: more elements than an int counts. */
RONDO_MUST_USE rondo_status rondo_mpi_operation_check(const rondo_collective *work, int ranks);

/* NULL: the ranks have not agreed on it before. */
rondo_mpi_known *rondo_mpi_cache_find(rondo_mpi_cache *cache, const rondo_mpi_description *description, uint64_t hash);

/* The one that was found last, if the description is the same: without a hash. Else NULL. */
rondo_mpi_known *rondo_mpi_cache_find_again(const rondo_mpi_cache *cache, const rondo_mpi_description *description);

/* Adds a description, with a persistent request if it is small, unless the cache is full: then *out is NULL. */
RONDO_MUST_USE rondo_status rondo_mpi_cache_add(rondo_mpi_cache *cache, const struct rondo_mpi_group *group,
                                                const rondo_collective *work, const rondo_mpi_description *description,
                                                uint64_t hash, rondo_mpi_known **out);

/* Frees the requests too, unless MPI has ended. */
void rondo_mpi_cache_free(rondo_mpi_cache *cache, bool has_mpi);

/* `known` may be NULL. `hash`: of the description. */
RONDO_MUST_USE rondo_status rondo_mpi_operation_start(rondo_mpi_operation *operation, rondo_mpi_cache *cache,
                                                      const struct rondo_mpi_group *group, rondo_mpi_known *known,
                                                      const rondo_collective *work, uint64_t hash);
RONDO_MUST_USE rondo_status rondo_mpi_operation_test(rondo_mpi_operation *operation, bool *out_is_done);

#endif
