/* SPDX-License-Identifier: MIT
 * Kernels of reductions (reduction.h). join::of combines two numbers; join::none is the neutral element.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

#define MAX_DIMENSIONS 6

struct reduction {
  size_t kept, reduced, parts, part, kept_rank, reduced_rank;
  size_t kept_dims[MAX_DIMENSIONS], kept_strides[MAX_DIMENSIONS];
  size_t reduced_dims[MAX_DIMENSIONS], reduced_strides[MAX_DIMENSIONS];
};

template <class index>
__device__ inline size_t offset_in(size_t rank, const size_t *dims, const size_t *strides, index position) {
  size_t offset = 0;
  for (unsigned d = (unsigned)rank; d > 1; d--) {
    const index rest = position / (index)dims[d - 1];
    offset += (position - rest * (index)dims[d - 1]) * strides[d - 1];
    position = rest;
  }
  return rank == 0 ? 0 : offset + position * strides[0];
}

/* 32-bit division is much faster. */
__device__ inline size_t offset_of(size_t rank, const size_t *dims, const size_t *strides, size_t position) {
  return position <= 0xffffffffu ? offset_in<unsigned>(rank, dims, strides, (unsigned)position)
                                 : offset_in<size_t>(rank, dims, strides, position);
}

__device__ inline size_t part_end(const reduction &shape, size_t begin) {
  return shape.reduced - begin < shape.part ? shape.reduced : begin + shape.part;
}

/* The factor is for floats alone. */
__device__ inline float scaled(float value, float factor) { return value * factor; }
__device__ inline i64 scaled(i64 value, float) { return value; }

/* Stores a result or, if there are several parts, that of a part. */
__device__ inline void put(const reduction &shape, void *to, size_t at, number value, float factor) {
  if (shape.parts > 1) {
    ((number *)to)[at] = value;
  } else {
    ((element *)to)[at] = to_element(scaled(value, factor));
  }
}

/* Elements that are read before the first is combined, so that several reads are in flight. */
#define BATCH 8

/* Reduces the elements x[offset(i)] for i = first, first + stride, .. before end, in this order. */
template <class join, class F>
__device__ inline number join_every(const element *__restrict__ x, size_t first, size_t end, size_t stride, F offset) {
  number value = join::none();
  for (; first < end; first += BATCH * stride) {
    number read[BATCH];
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) {
      const size_t at = first + i * stride;
      read[i] = at < end ? to_number(x[offset(at)]) : join::none();
    }
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) value = join::of(value, read[i]);
  }
  return value;
}

/* A team reduces a part of a row. */
template <class join>
__device__ inline void reduce_rows(const reduction &shape, const element *__restrict__ x, void *__restrict__ to,
                                   float factor) {
  const row_team team = team_of(shape.part);
  for (size_t item = team.first; item < shape.kept * shape.parts; item += team.stride) {
    const size_t row = item / shape.parts;
    const size_t begin = (item - row * shape.parts) * shape.part, end = part_end(shape, begin);
    const element *from = x + offset_of(shape.kept_rank, shape.kept_dims, shape.kept_strides, row);
    number value;
    if (shape.reduced_rank == 1)
      value = join_every<join>(from, begin + team.lane, end, team.lanes, [](size_t i) { return i; });
    else
      value = join_every<join>(from, begin + team.lane, end, team.lanes, [&](size_t i) {
        return offset_of(shape.reduced_rank, shape.reduced_dims, shape.reduced_strides, i);
      });
    value = team_join<join>(team, value);
    if (team.lane == 0) put(shape, to, item, value, factor);
  }
}

/* Combines the values of a block's warps, in order. Each lane has a column; the lanes of the first warp call
 * put(value). All threads must call it. */
template <class join, class F>
__device__ inline void join_warps(number value, bool has_column, F put) {
  __shared__ number joined[WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  joined[warp][lane] = value;
  __syncthreads();
  if (warp == 0 && has_column) {
    for (unsigned other = 1; other < WARPS; other++) value = join::of(value, joined[other][lane]);
    put(value);
  }
  __syncthreads(); /* they have been read */
}

/* A block reduces a part of 32 columns. */
template <class join>
__device__ inline void reduce_columns(const reduction &shape, const element *__restrict__ x, void *__restrict__ to,
                                      float factor) {
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const size_t columns = shape.kept_dims[shape.kept_rank - 1];
  const size_t tiles = (columns + WARP - 1) / WARP, items = shape.kept / columns * tiles * shape.parts;
  for (size_t item = blockIdx.x; item < items; item += gridDim.x) {
    const size_t tile = item / shape.parts, part = item - tile * shape.parts;
    const size_t outer = tile / tiles, column = (tile - outer * tiles) * WARP + lane;
    const size_t begin = part * shape.part, end = part_end(shape, begin);
    const element *from = x + offset_of(shape.kept_rank - 1, shape.kept_dims, shape.kept_strides, outer) + column;
    number value = join::none();
    if (column < columns)
      value = join_every<join>(from, begin + warp, end, WARPS, [&](size_t row) {
        return offset_of(shape.reduced_rank, shape.reduced_dims, shape.reduced_strides, row);
      });
    join_warps<join>(value, column < columns,
                     [&](number all) { put(shape, to, (outer * columns + column) * shape.parts + part, all, factor); });
  }
}

/* A team combines the parts of a result. */
template <class join>
__device__ inline void reduce_parts(const reduction &shape, const number *__restrict__ from, element *__restrict__ y,
                                    float factor) {
  const row_team team = team_of(shape.parts);
  for (size_t result = team.first; result < shape.kept; result += team.stride) {
    number value = join::none();
    for (size_t i = team.lane; i < shape.parts; i += team.lanes)
      value = join::of(value, from[result * shape.parts + i]);
    value = team_join<join>(team, value);
    if (team.lane == 0) y[result] = to_element(scaled(value, factor));
  }
}
