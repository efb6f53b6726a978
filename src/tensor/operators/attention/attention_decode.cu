/* SPDX-License-Identifier: MIT
 * The CUDA kernel of attention_decode.c: a block computes a row of q, and each of its warps reads every 8th visible
 * row. The results of the warps are combined in their order.
 */
#include "tensor/operators/attention/attention_shape.cuh"

#define HEAD_MAX 128            /* elements of a row */
#define PARTS (HEAD_MAX / WARP) /* of a lane */

/* The running result of a warp. All lanes have the same maximum and sum; each has its elements of the weighted rows. */
struct seen {
  float largest, sum, values[PARTS];
};

__device__ inline void load_row(const element *row, size_t size, float *out) {
#pragma unroll
  for (unsigned i = 0; i < PARTS; i++) {
    const unsigned at = threadIdx.x % WARP + WARP * i;
    out[i] = at < size ? to_float(row[at]) : 0.0f;
  }
}

__device__ inline void see_row(const float *q, const element *key, const element *value, size_t size, float scale,
                               seen &so_far) {
  float row[PARTS], score = 0;
  load_row(key, size, row);
#pragma unroll
  for (unsigned i = 0; i < PARTS; i++) score += q[i] * row[i];
  for (unsigned distance = WARP / 2; distance > 0; distance /= 2) score += __shfl_xor_sync(ALL_LANES, score, distance);
  score *= scale;
  const float largest = fmaxf(so_far.largest, score);
  const float correction = expf(so_far.largest - largest), weight = expf(score - largest);
  load_row(value, size, row);
#pragma unroll
  for (unsigned i = 0; i < PARTS; i++) so_far.values[i] = so_far.values[i] * correction + weight * row[i];
  so_far.sum = so_far.sum * correction + weight;
  so_far.largest = largest;
}

__device__ inline void join_warps(const seen &mine, element *y, size_t size) {
  __shared__ float largest[WARPS], sums[WARPS], values[WARPS][HEAD_MAX];
  const unsigned warp = threadIdx.x / WARP;
#pragma unroll
  for (unsigned i = 0; i < PARTS; i++) values[warp][threadIdx.x % WARP + WARP * i] = mine.values[i];
  if (threadIdx.x % WARP == 0) {
    largest[warp] = mine.largest;
    sums[warp] = mine.sum;
  }
  __syncthreads();
  if (threadIdx.x < size) {
    float all = largest[0], sum = 0, value = 0;
    for (unsigned i = 1; i < WARPS; i++) all = fmaxf(all, largest[i]);
    for (unsigned i = 0; i < WARPS; i++) {
      const float factor = sums[i] == 0.0f ? 0.0f : expf(largest[i] - all); /* a warp without rows */
      sum += factor * sums[i];
      value += factor * values[i][threadIdx.x];
    }
    y[threadIdx.x] = to_element(value / sum);
  }
  __syncthreads();
}

extern "C" __global__ void attention_decode_TYPE(attention_shape shape, const element *__restrict__ q,
                                                 const element *__restrict__ k, const element *__restrict__ v,
                                                 const element *__restrict__ k_cache,
                                                 const element *__restrict__ v_cache, const int *__restrict__ length,
                                                 element *__restrict__ y, CHECK) {
  const index_cell cell_of = begin_check(TO_CHECK);
  const size_t size = shape.size, given = *length < 0 ? 0 : (size_t)*length;
  const size_t count = given < shape.columns ? given : shape.columns;
  if (blockIdx.x == 0 && threadIdx.x == 0) check_index(cell_of, 0, *length, shape.columns);
  for (size_t head = blockIdx.x; head < shape.batches * shape.heads; head += gridDim.x) {
    const size_t group = group_of(shape, head), own = rows_in(shape.own, shape.groups, group, 1).begin;
    const head_rows cache = rows_in(shape.k, shape.groups, group, shape.columns);
    float row[PARTS];
    seen so_far = {__int_as_float(0xff800000), 0.0f, {0.0f}};
    load_row(q + rows_in(shape.q, shape.heads, head, 1).begin, size, row);
    for (size_t i = threadIdx.x / WARP; i <= count; i += WARPS) {
      const bool is_own = i == count;
      const size_t at = is_own ? own : cache.begin + i * cache.stride;
      see_row(row, (is_own ? k : k_cache) + at, (is_own ? v : v_cache) + at, size, shape.scale, so_far);
    }
    join_warps(so_far, y + rows_in(shape.y, shape.heads, head, 1).begin, size);
  }
}
