/* SPDX-License-Identifier: MIT
 * The CUDA kernel of attention_decode_row.c: a block computes a row of q, and each of its warps reads every 8th visible
 * row. The results of the warps are combined in their order.
 */
#include "tensor/operators/attention/attention_shape.cuh"

/* The running result of a warp. All lanes have the same maximum and sum; each has its elements of the weighted rows,
 * every 32nd of a head. */
template <unsigned parts>
struct seen {
  float largest, sum, values[parts];
};

template <unsigned parts>
__device__ inline void load_row(const element *row, size_t size, float *out) {
#pragma unroll
  for (unsigned i = 0; i < parts; i++) {
    const unsigned at = threadIdx.x % WARP + WARP * i;
    out[i] = at < size ? to_float(row[at]) : 0.0f;
  }
}

/* The product of q and a row, which all lanes get. */
template <unsigned parts>
__device__ inline float multiply_row(const float *q, const element *key, size_t size) {
  float row[parts], product = 0;
  load_row<parts>(key, size, row);
#pragma unroll
  for (unsigned i = 0; i < parts; i++) product += q[i] * row[i];
  for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
    product += __shfl_xor_sync(ALL_LANES, product, distance);
  return product;
}

template <unsigned parts>
__device__ inline void see_row(float score, const element *value, size_t size, seen<parts> &so_far) {
  float row[parts];
  if (score == minus_infinity()) return;
  const float largest = fmaxf(so_far.largest, score);
  const float correction = expf(so_far.largest - largest), weight = expf(score - largest);
  load_row<parts>(value, size, row);
#pragma unroll
  for (unsigned i = 0; i < parts; i++) so_far.values[i] = so_far.values[i] * correction + weight * row[i];
  so_far.sum = so_far.sum * correction + weight;
  so_far.largest = largest;
}

/* A row that sees nothing is zeros. */
template <unsigned parts>
__device__ inline void join_warps(const seen<parts> &mine, element *y, size_t size) {
  __shared__ float largest[WARPS], sums[WARPS], values[WARPS][parts * WARP];
  const unsigned warp = threadIdx.x / WARP;
#pragma unroll
  for (unsigned i = 0; i < parts; i++) values[warp][threadIdx.x % WARP + WARP * i] = mine.values[i];
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
    y[threadIdx.x] = to_element(sum == 0.0f ? 0.0f : value / sum);
  }
  __syncthreads();
}

template <unsigned parts>
__device__ inline void decode_row(const attention_shape &shape, const attention_memory &memory, size_t head,
                                  element *y) {
  const batch_view view = view_of(shape, memory.plan, head);
  const score_terms terms = terms_of(shape, memory, head);
  const size_t group = group_of(shape, head);
  column_span visible = {0, 0};
  float row[parts];
  seen<parts> so_far = {minus_infinity(), 0.0f, {0.0f}};
  if (view.rows > 0) visible = visible_columns(shape, view, 0);
  load_row<parts>(memory.q + rows_in(shape.q, shape.heads, head, 1).begin, shape.size, row);
  for (size_t i = visible.first + threadIdx.x / WARP; i < visible.last; i += WARPS) {
    const float product =
        multiply_row<parts>(row, column_row(shape, view, group, i, memory.k, memory.k_cache), shape.size);
    see_row<parts>(score_of(shape, view, terms, visible, 0, i, product),
                   column_row(shape, view, group, i, memory.v, memory.v_cache), shape.size, so_far);
  }
  join_warps<parts>(so_far, y + rows_in(shape.y, shape.heads, head, 1).begin, shape.size);
}

extern "C" __global__ void attention_decode_TYPE(attention_shape shape, const element *__restrict__ q,
                                                 const element *__restrict__ k, const element *__restrict__ v,
                                                 const element *__restrict__ k_cache,
                                                 const element *__restrict__ v_cache, const void *__restrict__ mask,
                                                 const int *__restrict__ plan, element *__restrict__ y) {
  const attention_memory memory = {q, k, v, k_cache, v_cache, mask, plan, NULL, NULL, NULL};
  for (size_t head = blockIdx.x; head < shape.batches * shape.heads; head += gridDim.x) {
    if (shape.size <= 64)
      decode_row<64 / WARP>(shape, memory, head, y);
    else if (shape.size <= 128)
      decode_row<128 / WARP>(shape, memory, head, y);
    else
      decode_row<HEAD_MAX / WARP>(shape, memory, head, y);
  }
}
