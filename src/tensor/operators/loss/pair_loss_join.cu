/* SPDX-License-Identifier: MIT
 * The CUDA kernel that adds the parts of pair_loss.c. One block: each thread adds every 256th part, then the threads'
 * sums are added pair by pair.
 */
#include "tensor/operators/common/kernel_support.cuh"

extern "C" __global__ void pair_loss_join(const double *__restrict__ parts, size_t count, double divisor,
                                          float *__restrict__ loss) {
  __shared__ double sums[BLOCK_THREADS];
  double sum = 0;
  for (size_t i = threadIdx.x; i < count; i += BLOCK_THREADS) sum += parts[i];
  sums[threadIdx.x] = sum;
  add_halves(sums);
  if (threadIdx.x == 0) *loss = (float)(sums[0] / divisor);
}
