/* SPDX-License-Identifier: MIT
 * The CUDA form of gradient_control.c.
 */
#include "tensor/operators/rows.cuh"

#define NORM_PARTS 64

extern "C" __global__ void accumulate(float *__restrict__ sum, const float *__restrict__ g,
                                      const int *__restrict__ counters, size_t count) {
  const bool is_first = counters[0] == 0;
  for (size_t i = first_element(); i < count; i += element_stride()) sum[i] = is_first ? g[i] : sum[i] + g[i];
}

struct squared_counts {
  size_t elements[7];
  unsigned long long is_first;
};

/* A block a part: every NORM_PARTS-th stretch of BLOCK_THREADS elements of each gradient. */
__device__ inline float squares_of(const float *__restrict__ x, size_t count) {
  float sum = 0;
  for (size_t i = first_element(); i < count; i += element_stride()) sum += x[i] * x[i];
  return sum;
}

extern "C" __global__ void gradient_squares(squared_counts counts, const float *before, float *parts, const float *x0,
                                            const float *x1, const float *x2, const float *x3, const float *x4,
                                            const float *x5, const float *x6) {
  row_team team; /* the whole block */
  team.lane = threadIdx.x;
  team.lanes = BLOCK_THREADS;
  float sum = squares_of(x0, counts.elements[0]);
  sum += squares_of(x1, counts.elements[1]);
  sum += squares_of(x2, counts.elements[2]);
  sum += squares_of(x3, counts.elements[3]);
  sum += squares_of(x4, counts.elements[4]);
  sum += squares_of(x5, counts.elements[5]);
  sum += squares_of(x6, counts.elements[6]);
  sum = team_join<join_sum>(team, sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = (counts.is_first ? 0.0f : before[blockIdx.x]) + sum;
}

struct control_numbers {
  float max_norm;
  int round, growth_interval;
  unsigned has_squares, has_scale;
};

__device__ inline void keep_scale(const control_numbers &n, bool finite, float *scale, int *counters) {
  counters[1] = finite ? counters[1] + 1 : 0;
  if (!finite) *scale *= 0.5f;
  if (counters[1] < n.growth_interval) return;
  counters[1] = 0;
  if (*scale < 0x1p126f) *scale *= 2.0f;
}

/* One thread works. */
extern "C" __global__ void gradient_control(control_numbers n, int *counters, const float *parts, float *scale,
                                            float *control, float *norm) {
  if (first_element() > 0) return;
  float squares = 0;
  for (int i = 0; n.has_squares && i < NORM_PARTS; i++) squares += parts[i];
  const bool finite = isfinite(squares), last = counters[0] + 1 >= n.round;
  float factor = 1.0f / (float)n.round;
  if (n.has_scale) factor /= *scale;
  const float length = sqrtf(squares) * factor;
  if (n.max_norm > 0 && length > n.max_norm) factor *= n.max_norm / (length + 1e-6f);
  *norm = length;
  control[0] = factor;
  control[1] = last && finite ? 1.0f : 0.0f;
  if (last && n.has_scale) keep_scale(n, finite, scale, counters);
  counters[0] = last ? 0 : counters[0] + 1;
}
