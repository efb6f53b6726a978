/* SPDX-License-Identifier: MIT
 * The CUDA form of cross_entropy.c.
 */
#include "tensor/operators/rows.cuh"

struct rows_shape {
  size_t rows, columns;
};

extern "C" __global__ void cross_entropy_rows(rows_shape shape, const float *__restrict__ logits,
                                              const int *__restrict__ labels, float *__restrict__ losses,
                                              float *__restrict__ maxima, float *__restrict__ sums, u64 *cell) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const float *x = logits + row * shape.columns;
    const float most = row_max(team, x, shape.columns);
    const float sum = row_exp_sum(team, x, most, shape.columns);
    if (team.lane > 0) continue;
    const int label = check_index(cell, row, labels[row], shape.columns) ? labels[row] : 0;
    maxima[row] = most;
    sums[row] = sum;
    losses[row] = logf(sum) - (x[label] - most);
  }
}

/* One block: each thread adds every 256th loss, then the threads' sums are added pair by pair. */
extern "C" __global__ void cross_entropy_mean(const float *__restrict__ losses, float *__restrict__ loss, size_t rows) {
  __shared__ double sums[BLOCK_THREADS];
  double sum = 0;
  for (size_t row = threadIdx.x; row < rows; row += BLOCK_THREADS) sum += (double)losses[row];
  sums[threadIdx.x] = sum;
  for (unsigned half = BLOCK_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *loss = (float)(sums[0] / (double)rows);
}

/* dlogits = (softmax(logits) - onehot(label)) * dloss / rows. */
extern "C" __global__ void cross_entropy_gradient(rows_shape shape, const float *__restrict__ logits,
                                                  const int *__restrict__ labels, const float *__restrict__ maxima,
                                                  const float *__restrict__ sums, const float *__restrict__ dloss,
                                                  float *__restrict__ gradient) {
  const float scale = *dloss / (float)shape.rows;
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const bool right = labels[row] >= 0 && (size_t)labels[row] < shape.columns;
    const size_t label = right ? (size_t)labels[row] : 0;
    const float most = maxima[row], factor = scale / sums[row];
    const float *x = logits + row * shape.columns;
    float *to = gradient + row * shape.columns;
    for (size_t i = team.lane; i < shape.columns; i += team.lanes)
      to[i] = factor * expf(x[i] - most) - (i == label ? scale : 0.0f);
  }
}
