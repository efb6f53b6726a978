/* SPDX-License-Identifier: MIT
 * The CUDA kernel of the mean in cross_entropy.c. One block: each thread adds every 256th loss, then the threads' sums
 * are added pair by pair.
 */
#include "tensor/operators/loss/cross_entropy.cuh"

/* Rows that a thread reads before it adds the first, so that several reads are in flight. */
#define BATCH 8

/* What a row counts for. */
__device__ inline double weight_of(const rows_shape &shape, const void *labels, const float *weights, size_t row) {
  const long long given = index_at(labels, shape.wide_labels, row);
  const double weight = weights == 0 ? 1.0 : (double)weights[is_index(given, shape.columns) ? given : 0];
  return is_ignored(shape, given) ? 0.0 : weight;
}

extern "C" __global__ void cross_entropy_mean(rows_shape shape, const float *__restrict__ losses,
                                              const void *__restrict__ labels, const float *__restrict__ weights,
                                              float *__restrict__ loss, float *__restrict__ count) {
  __shared__ double sums[BLOCK_THREADS];
  __shared__ double counts[BLOCK_THREADS];
  double sum = 0;
  double counted = 0;
  for (size_t row = threadIdx.x; row < shape.rows; row += BATCH * BLOCK_THREADS) {
    float read[BATCH];
    double counts_for[BATCH];
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
      const size_t at = row + i * BLOCK_THREADS;
      read[i] = at < shape.rows ? losses[at] : 0.0f;
      counts_for[i] = at < shape.rows ? weight_of(shape, labels, weights, at) : 0.0;
    }
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
      sum += (double)read[i];
      counted += counts_for[i];
    }
  }
  sums[threadIdx.x] = sum;
  counts[threadIdx.x] = counted;
  add_halves(sums);
  add_halves(counts);
  if (threadIdx.x > 0) return;
  *loss = counts[0] != 0 ? (float)(sums[0] / counts[0]) : 0.0f;
  *count = (float)counts[0];
}
