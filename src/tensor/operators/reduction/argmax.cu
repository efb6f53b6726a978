/* SPDX-License-Identifier: MIT
 * The CUDA kernel of argmax.c: a team computes a row or, if the dimension is not the last, a thread computes a result.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct argmax_shape {
  size_t outer, size, inner;
  unsigned is_min, is_last;
};

struct candidate {
  number value;
  unsigned at;
};

/* NaN is better than all numbers; the first of equal elements is better, or the last one. */
__device__ inline bool is_better(const candidate &a, const candidate &b, const argmax_shape &shape) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  const bool goes_first = shape.is_last != 0 ? a.at > b.at : a.at < b.at;
  if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || goes_first);
  if (a.value == b.value) return goes_first;
  return shape.is_min != 0 ? a.value < b.value : a.value > b.value;
}

/* The best of the team's lanes. All lanes of the team must call it. */
__device__ inline candidate team_best(const row_team &team, candidate best, const argmax_shape &shape) {
  __shared__ number values[WARPS];
  __shared__ unsigned indices[WARPS];
  for (unsigned distance = WARP / 2; distance > 0; distance /= 2) {
    const candidate other = {__shfl_xor_sync(ALL_LANES, best.value, distance),
                             __shfl_xor_sync(ALL_LANES, best.at, distance)};
    if (is_better(other, best, shape)) best = other;
  }
  if (team.lanes == WARP) return best;
  __syncthreads(); /* the previous values have been read */
  if (threadIdx.x % WARP == 0) {
    values[threadIdx.x / WARP] = best.value;
    indices[threadIdx.x / WARP] = best.at;
  }
  __syncthreads();
  for (unsigned warp = 0; warp < WARPS; warp++) {
    const candidate other = {values[warp], indices[warp]};
    if (is_better(other, best, shape)) best = other;
  }
  return best;
}

/* The best of every step-th element from `at` on. */
__device__ inline candidate scan(const element *x, size_t at, size_t step, const argmax_shape &shape) {
  candidate best = {to_number(x[at * shape.inner]), (unsigned)at};
  for (at += step; at < shape.size; at += step) {
    const candidate here = {to_number(x[at * shape.inner]), (unsigned)at};
    if (is_better(here, best, shape)) best = here;
  }
  return best;
}

extern "C" __global__ void argmax_NUMBER(argmax_shape shape, const element *__restrict__ x, int *__restrict__ y) {
  if (shape.inner == 1) {
    const row_team team = team_of(shape.size);
    for (size_t row = team.first; row < shape.outer; row += team.stride) {
      /* A lane without an element of its own reads the last one. */
      const size_t from = team.lane < shape.size ? team.lane : shape.size - 1;
      const candidate best = team_best(team, scan(x + row * shape.size, from, team.lanes, shape), shape);
      if (team.lane == 0) y[row] = (int)best.at;
    }
    return;
  }
  for (size_t i = first_element(); i < shape.outer * shape.inner; i += element_stride()) {
    const element *from = x + i / shape.inner * shape.size * shape.inner + i % shape.inner;
    y[i] = (int)scan(from, 0, 1, shape).at;
  }
}
