/* SPDX-License-Identifier: MIT
 * The CUDA kernel of the mean in cross_entropy.c. One block: each thread adds every 256th loss, then the threads' sums
 * are added pair by pair.
 */
#include "tensor/operators/loss/cross_entropy.cuh"

extern "C" __global__ void cross_entropy_mean(rows_shape shape, const float *__restrict__ losses,
                                              const void *__restrict__ labels, float *__restrict__ loss,
                                              float *__restrict__ count) {
  __shared__ double sums[BLOCK_THREADS];
  __shared__ u64 counts[BLOCK_THREADS];
  double sum = 0;
  u64 counted = 0;
  for (size_t row = threadIdx.x; row < shape.rows; row += BLOCK_THREADS) {
    sum += (double)losses[row];
    counted += is_ignored(shape, index_at(labels, shape.wide_labels, row)) ? 0 : 1;
  }
  sums[threadIdx.x] = sum;
  counts[threadIdx.x] = counted;
  add_halves(sums);
  add_halves(counts);
  if (threadIdx.x > 0) return;
  *loss = counts[0] > 0 ? (float)(sums[0] / (double)counts[0]) : 0.0f;
  *count = (float)counts[0];
}
