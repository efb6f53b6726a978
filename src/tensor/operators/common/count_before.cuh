/* SPDX-License-Identifier: MIT
 * How a block numbers its threads that have a flag.
 */
#include "tensor/operators/common/kernel_support.cuh"

/* How many threads before this one have the flag; *total: all threads of the block, which must all call it. */
__device__ inline unsigned count_before(bool flag, unsigned *total) {
  __shared__ unsigned parts[WARPS];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const unsigned votes = __ballot_sync(ALL_LANES, flag);
  __syncthreads(); /* the previous parts have been read */
  if (lane == 0) parts[warp] = __popc(votes);
  __syncthreads();
  unsigned before = 0, all = 0;
  for (unsigned w = 0; w < WARPS; w++) {
    if (w == warp) before = all;
    all += parts[w];
  }
  *total = all;
  return before + __popc(votes & ((1u << lane) - 1));
}
