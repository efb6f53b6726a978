/* SPDX-License-Identifier: MIT
 * The CUDA kernels of gradient_control.c.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/operator_rows.cuh"

#define NORM_PARTS 64

#define SUM_PARAMETERS(i) , float *sum##i, const void *g##i
#define SUM_PICK(i)         \
  case i:                   \
    sum = sum##i, g = g##i; \
    break;

extern "C" __global__ void accumulate(joined_table table, GATE, const int *runs EACH_JOINED(SUM_PARAMETERS)) {
  if (!may_update(TO_GATE)) return;
  const joined_share share = share_of(table);
  const bool is_first = *runs == 0;
  float *sum = 0;
  const void *g = 0;
  switch (share.operation) { EACH_JOINED(SUM_PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { sum[i] = is_first ? gradient : sum[i] + gradient; });
}

#define SQUARED 7      /* gradients of an operation */
#define MAX_SQUARES 16 /* operations of a kernel */

struct squared_counts {
  size_t elements[MAX_SQUARES * SQUARED];
  u64 is_first;
  unsigned char types[MAX_SQUARES * SQUARED];
};

/* The squares of a block's part: every NORM_PARTS-th run of BLOCK_THREADS elements of each gradient. */
__device__ inline float squares_of(unsigned type, const void *__restrict__ x, size_t count) {
  float sum = 0;
  each_gradient(type, x, first_element(), count, element_stride(), [&](size_t, float g) { sum = fmaf(g, g, sum); });
  return sum;
}

/* The sum over the block's threads. */
__device__ inline float join_block(float sum) {
  row_team team;
  team.lane = threadIdx.x;
  team.lanes = BLOCK_THREADS;
  return team_join<join_sum>(team, sum);
}

#define EACH_SQUARES(ROW) EACH_OF_TEN(ROW, ) ROW(10) ROW(11) ROW(12) ROW(13) ROW(14) ROW(15)
#define GRADIENTS(i)                                                                                              \
  , const void *x##i##_0, const void *x##i##_1, const void *x##i##_2, const void *x##i##_3, const void *x##i##_4, \
      const void *x##i##_5, const void *x##i##_6
#define LIST(i)                  \
  x[i * SQUARED + 0] = x##i##_0; \
  x[i * SQUARED + 1] = x##i##_1; \
  x[i * SQUARED + 2] = x##i##_2; \
  x[i * SQUARED + 3] = x##i##_3; \
  x[i * SQUARED + 4] = x##i##_4; \
  x[i * SQUARED + 5] = x##i##_5; \
  x[i * SQUARED + 6] = x##i##_6;

/* Adds operation by operation, as separate kernels do. Each operation but the last has a first gradient (emit_squares
 * asserts it), so a first gradient without elements marks the end of the list. */
extern "C" __global__ void gradient_squares(squared_counts counts, const float *before,
                                            float *parts EACH_SQUARES(GRADIENTS)) {
  __shared__ const void *x[MAX_SQUARES * SQUARED];
  float total = counts.is_first ? 0.0f : before[blockIdx.x];
  if (threadIdx.x == 0) {
    EACH_SQUARES(LIST)
  }
  __syncthreads();
  for (unsigned first = 0; first < MAX_SQUARES * SQUARED && counts.elements[first] > 0; first += SQUARED) {
    float sum = 0;
    for (unsigned i = first; i < first + SQUARED; i++) sum += squares_of(counts.types[i], x[i], counts.elements[i]);
    total += join_block(sum);
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

struct control_numbers {
  float max_norm;
  int round, growth_interval, most_runs;
  unsigned has_squares, has_scale;
};

__device__ inline void keep_scale(const control_numbers &n, bool finite, float *scale, int *good) {
  *good = !finite ? 0 : *good < 0x7fffffff ? *good + 1 : *good;
  if (!finite && *scale > 0x1p-126f) *scale *= 0.5f;
  if (*good < n.growth_interval) return;
  *good = 0;
  if (*scale < 0x1p126f) *scale *= 2.0f;
}

/* max_norm of 0: no clipping. */
__device__ inline float clip_factor(float norm, float max_norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6f) : 1.0f;
}

/* One thread computes. */
extern "C" __global__ void gradient_control(GATE, control_numbers n, int *runs, const float *parts, float *scale,
                                            int *good, float *control, float *norm) {
  if (first_element() > 0) return;
  float squares = 0;
  for (int i = 0; n.has_squares && i < NORM_PARTS; i++) squares += parts[i];
  const bool finite = isfinite(squares), last = *runs >= n.round - 1;
  const int round = n.round > 0 ? n.round : *runs == 0 ? n.most_runs : *runs;
  float factor = 1.0f / (float)round;
  if (n.has_scale) factor /= *scale;
  const float length = sqrtf(squares) * factor;
  *norm = length;
  control[0] = factor * clip_factor(length, n.max_norm);
  control[1] = last && finite && round > 0 ? 1.0f : 0.0f;
  if (!may_update(TO_GATE)) return;
  if (last && n.has_scale) keep_scale(n, finite, scale, good);
  *runs = last ? 0 : *runs + 1;
}

/* One thread computes. */
extern "C" __global__ void gradient_clip(float max_norm, const float *of_all, const float *parts, float *control) {
  if (first_element() > 0) return;
  float squares = 0;
  for (int i = 0; i < NORM_PARTS; i++) squares += parts[i];
  control[0] = of_all[0] * clip_factor(sqrtf(squares) * of_all[0], max_norm);
  control[1] = of_all[1];
}

extern "C" __global__ void squares_add(const float *a, const float *b, float *parts) {
  for (size_t i = first_element(); i < NORM_PARTS; i += element_stride()) parts[i] = a[i] + b[i];
}
