/* SPDX-License-Identifier: MIT
 * The part of NCCL that Rondo uses, as nccl.h of NCCL 2 declares it ("NCCL API", in NVIDIA's documentation). Rondo
 * builds without that header. A test compares the two if a real header is installed.
 */
#ifndef RONDO_VENDOR_NCCL_ABI_H
#define RONDO_VENDOR_NCCL_ABI_H

#include <stddef.h>

/* Enumerations are ints in the interface. */
enum {
  NCCL_OK = 0,          /* ncclSuccess */
  NCCL_IN_PROGRESS = 7, /* ncclInProgress */

  NCCL_I8 = 0,   /* ncclInt8 */
  NCCL_U8 = 1,   /* ncclUint8 */
  NCCL_I32 = 2,  /* ncclInt32 */
  NCCL_I64 = 4,  /* ncclInt64 */
  NCCL_F16 = 6,  /* ncclFloat16 */
  NCCL_F32 = 7,  /* ncclFloat32 */
  NCCL_F64 = 8,  /* ncclFloat64 */
  NCCL_BF16 = 9, /* ncclBfloat16 */

  NCCL_SUM = 0, /* ncclSum */
  NCCL_MAX = 2, /* ncclMax */
  NCCL_MIN = 3, /* ncclMin */
  NCCL_AVG = 4  /* ncclAvg, since 2.10 */
};

typedef int nccl_result;    /* ncclResult_t */
typedef int nccl_type;      /* ncclDataType_t */
typedef int nccl_reduction; /* ncclRedOp_t */

typedef struct nccl_communicator *nccl_comm; /* ncclComm_t */
typedef struct nccl_queue *nccl_stream;      /* cudaStream_t, which is a CUstream */

typedef struct nccl_config nccl_config; /* ncclConfig_t; Rondo passes NULL: as the parent's */

/* ncclUniqueId; passed by value */
typedef struct nccl_unique_id {
  char internal[128];
} nccl_unique_id;

/* ROW(result, member, symbol, (arguments)) */
#define NCCL_FUNCTIONS(ROW)                                                                                     \
  ROW(nccl_result, get_version, ncclGetVersion, (int *out))                                                     \
  ROW(const char *, error_string, ncclGetErrorString, (nccl_result result))                                     \
  ROW(nccl_result, make_unique_id, ncclGetUniqueId, (nccl_unique_id * out))                                     \
  ROW(nccl_result, init_rank, ncclCommInitRank, (nccl_comm * out, int ranks, nccl_unique_id id, int rank))      \
  ROW(nccl_result, destroy, ncclCommDestroy, (nccl_comm comm))                                                  \
  ROW(nccl_result, break_off, ncclCommAbort, (nccl_comm comm))                                                  \
  ROW(nccl_result, async_error, ncclCommGetAsyncError, (nccl_comm comm, nccl_result * out))                     \
  ROW(nccl_result, count_ranks, ncclCommCount, (nccl_comm comm, int *out))                                      \
  ROW(nccl_result, get_rank, ncclCommUserRank, (nccl_comm comm, int *out))                                      \
  ROW(nccl_result, group_start, ncclGroupStart, (void))                                                         \
  ROW(nccl_result, group_end, ncclGroupEnd, (void))                                                             \
  ROW(nccl_result, all_reduce, ncclAllReduce,                                                                   \
      (const void *src, void *dst, size_t count, nccl_type type, nccl_reduction reduction, nccl_comm comm,      \
       nccl_stream stream))                                                                                     \
  ROW(nccl_result, broadcast, ncclBroadcast,                                                                    \
      (const void *src, void *dst, size_t count, nccl_type type, int root, nccl_comm comm, nccl_stream stream)) \
  ROW(nccl_result, all_gather, ncclAllGather,                                                                   \
      (const void *src, void *dst, size_t count, nccl_type type, nccl_comm comm, nccl_stream stream))           \
  ROW(nccl_result, reduce_scatter, ncclReduceScatter,                                                           \
      (const void *src, void *dst, size_t count, nccl_type type, nccl_reduction reduction, nccl_comm comm,      \
       nccl_stream stream))

/* Functions that older NCCLs lack: send and receive came with 2.7, split with 2.18. */
#define NCCL_OPTIONAL_FUNCTIONS(ROW)                                                                 \
  ROW(nccl_result, send, ncclSend,                                                                   \
      (const void *src, size_t count, nccl_type type, int peer, nccl_comm comm, nccl_stream stream)) \
  ROW(nccl_result, receive, ncclRecv,                                                                \
      (void *dst, size_t count, nccl_type type, int peer, nccl_comm comm, nccl_stream stream))       \
  ROW(nccl_result, split, ncclCommSplit, (nccl_comm comm, int color, int key, nccl_comm *out, nccl_config *config))

#endif
