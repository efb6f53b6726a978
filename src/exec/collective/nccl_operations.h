/* SPDX-License-Identifier: MIT
 * What NCCL's transport calls of NCCL: each operation as NCCL's calls, and what needs which version. The library is
 * loaded (rondo_library_require). Threads: any, but a communicator of NCCL belongs to one thread at a time.
 */
#ifndef RONDO_EXEC_COLLECTIVE_NCCL_OPERATIONS_H
#define RONDO_EXEC_COLLECTIVE_NCCL_OPERATIONS_H

#include <rondo/collective_engine.h>

#include "vendor/nccl.h"

/* What NCCL got in the course of time. */
typedef enum rondo_nccl_feature {
  RONDO_NCCL_SEND,    /* send and receive */
  RONDO_NCCL_AVERAGE, /* and BF16 */
  RONDO_NCCL_ADDRESS, /* joining at an address does not wait before the end of a group of calls */
  RONDO_NCCL_SPLIT
} rondo_nccl_feature;

/* UNSUPPORTED, with the version that is needed and the one that was found. */
RONDO_MUST_USE rondo_status rondo_nccl_require(rondo_nccl_feature feature);
RONDO_MUST_USE rondo_status rondo_nccl_require_operation(const rondo_collective *work);

/* One rank of NCCL's group. */
typedef struct rondo_nccl_rank {
  nccl_comm comm;
  uint32_t world_size;
  void *scratch; /* an int that is 0, which the device reads and writes: what a barrier sums up */
} rondo_nccl_rank;

/* Enqueues a collective on the stream. */
nccl_result rondo_nccl_enqueue(const rondo_nccl_rank *rank, const rondo_collective *work, nccl_stream stream);

/* EXECUTION_FAILED with NCCL's code and its name, unless it is a success. */
RONDO_MUST_USE rondo_status rondo_nccl_check(nccl_result result, const char *what);

/* Calls `call` while the environment variable NCCL_COMM_ID is `address`, or not set if that is NULL, and restores it.
 * NCCL reads it in ncclGetUniqueId, and inside a group of calls in ncclCommInitRank, in which rank 0 begins to listen.
 * Neither waits for another rank, so a lock makes threads take turns. */
typedef rondo_status (*rondo_nccl_address_call)(void *user);
RONDO_MUST_USE rondo_status rondo_nccl_with_address(const rondo_allocator *allocator, const char *address,
                                                    rondo_nccl_address_call call, void *user);

#endif
