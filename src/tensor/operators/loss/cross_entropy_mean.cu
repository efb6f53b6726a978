/* SPDX-License-Identifier: MIT
 * The CUDA kernel of the mean in cross_entropy.c. One block: each thread adds every 256th loss, then the threads' sums
 * are added pair by pair.
 */
#include "tensor/operators/loss/cross_entropy.cuh"

extern "C" __global__ void cross_entropy_mean(rows_shape shape, const float *__restrict__ losses,
                                              const void *__restrict__ labels, const float *__restrict__ weights,
                                              float *__restrict__ loss, float *__restrict__ count) {
  __shared__ double sums[BLOCK_THREADS];
  __shared__ double counts[BLOCK_THREADS];
  double sum = 0;
  double counted = 0;
  for (size_t row = threadIdx.x; row < shape.rows; row += BLOCK_THREADS) {
    sum += (double)losses[row];
    const long long given = index_at(labels, shape.wide_labels, row);
    const double weight = weights == 0 ? 1.0 : (double)weights[is_index(given, shape.columns) ? given : 0];
    counted += is_ignored(shape, given) ? 0.0 : weight;
  }
  sums[threadIdx.x] = sum;
  counts[threadIdx.x] = counted;
  add_halves(sums);
  add_halves(counts);
  if (threadIdx.x > 0) return;
  *loss = counts[0] != 0 ? (float)(sums[0] / counts[0]) : 0.0f;
  *count = (float)counts[0];
}
