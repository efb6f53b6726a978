/* SPDX-License-Identifier: MIT
 * The CUDA form of gradient_control.c.
 */
#include "tensor/operators/joined.cuh"
#include "tensor/operators/rows.cuh"

#define NORM_PARTS 64

__device__ inline void accumulate_one(float *sum, float g, bool is_first) { *sum = is_first ? g : *sum + g; }

extern "C" __global__ void accumulate(size_t count, const int *__restrict__ counters, float *__restrict__ sum,
                                      const float *__restrict__ g) {
  const bool is_first = counters[0] == 0;
  for (size_t i = first_element(); i < count; i += element_stride()) accumulate_one(&sum[i], g[i], is_first);
}

#define SUM_PARAMETERS(i) , float *sum##i, const float *g##i
#define SUM_PICK(i)         \
  case i:                   \
    sum = sum##i, g = g##i; \
    break;

extern "C" __global__ void accumulate_joined(joined_table table, const int *counters EACH_JOINED(SUM_PARAMETERS)) {
  const joined_share share = share_of(table);
  const bool is_first = counters[0] == 0;
  float *sum = 0;
  const float *g = 0;
  switch (share.update) { EACH_JOINED(SUM_PICK) }
  for (size_t i = share.first; i < share.elements; i += share.stride) accumulate_one(&sum[i], g[i], is_first);
}

#define SQUARED 7       /* gradients of an operation */
#define MOST_SQUARES 16 /* operations of a joined kernel */

struct squared_counts {
  size_t elements[SQUARED];
  u64 is_first;
};

struct joined_counts {
  size_t elements[MOST_SQUARES * SQUARED];
  u64 is_first;
};

/* A block a part: every NORM_PARTS-th stretch of BLOCK_THREADS elements of each gradient. */
__device__ inline float squares_of(const float *__restrict__ x, size_t count) {
  float sum = 0;
  for (size_t i = first_element(); i < count; i += element_stride()) sum += x[i] * x[i];
  return sum;
}

/* Of what the block's threads hold. */
__device__ inline float join_block(float sum) {
  row_team team;
  team.lane = threadIdx.x;
  team.lanes = BLOCK_THREADS;
  return team_join<join_sum>(team, sum);
}

extern "C" __global__ void gradient_squares(squared_counts counts, const float *before, float *parts, const float *x0,
                                            const float *x1, const float *x2, const float *x3, const float *x4,
                                            const float *x5, const float *x6) {
  float sum = squares_of(x0, counts.elements[0]);
  sum += squares_of(x1, counts.elements[1]);
  sum += squares_of(x2, counts.elements[2]);
  sum += squares_of(x3, counts.elements[3]);
  sum += squares_of(x4, counts.elements[4]);
  sum += squares_of(x5, counts.elements[5]);
  sum += squares_of(x6, counts.elements[6]);
  sum = join_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = (counts.is_first ? 0.0f : before[blockIdx.x]) + sum;
}

#define EACH_SQUARES(ROW) EACH_OF_TEN(ROW, ) ROW(10) ROW(11) ROW(12) ROW(13) ROW(14) ROW(15)
#define GRADIENTS(i)                                                                                                   \
  , const float *x##i##_0, const float *x##i##_1, const float *x##i##_2, const float *x##i##_3, const float *x##i##_4, \
      const float *x##i##_5, const float *x##i##_6
#define LIST(i)                  \
  x[i * SQUARED + 0] = x##i##_0; \
  x[i * SQUARED + 1] = x##i##_1; \
  x[i * SQUARED + 2] = x##i##_2; \
  x[i * SQUARED + 3] = x##i##_3; \
  x[i * SQUARED + 4] = x##i##_4; \
  x[i * SQUARED + 5] = x##i##_5; \
  x[i * SQUARED + 6] = x##i##_6;

/* Operation by operation as alone; one without a gradient is behind the last. */
extern "C" __global__ void gradient_squares_joined(joined_counts counts, const float *before,
                                                   float *parts EACH_SQUARES(GRADIENTS)) {
  __shared__ const float *x[MOST_SQUARES * SQUARED];
  float total = counts.is_first ? 0.0f : before[blockIdx.x];
  if (threadIdx.x == 0) {
    EACH_SQUARES(LIST)
  }
  __syncthreads();
  for (unsigned first = 0; first < MOST_SQUARES * SQUARED && counts.elements[first] > 0; first += SQUARED) {
    float sum = 0;
    for (unsigned i = first; i < first + SQUARED; i++) sum += squares_of(x[i], counts.elements[i]);
    total += join_block(sum);
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
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
