/* SPDX-License-Identifier: MIT
 * The CUDA kernel of cumsum.c: a team computes a row, as many elements at a time as it has lanes, or, if the dimension
 * is not the last, a thread computes a column. The order of the sums or products is fixed.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct cumsum_shape {
  size_t outer, size, inner;
  unsigned exclusive, reversed, multiplies, unused;
};

/* Numbers are added, beginning with 0, or multiplied, beginning with 1. */
__device__ inline number start_of(const cumsum_shape &s) { return (number)(s.multiplies != 0 ? 1 : 0); }
__device__ inline number join(const cumsum_shape &s, number a, number b) { return s.multiplies != 0 ? a * b : a + b; }

/* Joins the numbers of the team's lanes up to this one; *total gets that of all. All lanes of the team must call it. */
__device__ inline number team_scan(const cumsum_shape &s, const row_team &team, number value, number *total) {
  __shared__ number parts[WARPS];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (unsigned distance = 1; distance < WARP; distance *= 2) {
    const number other = __shfl_up_sync(ALL_LANES, value, distance);
    if (lane >= distance) value = join(s, other, value);
  }
  *total = __shfl_sync(ALL_LANES, value, WARP - 1);
  if (team.lanes == WARP) return value;
  __syncthreads(); /* the previous parts have been read */
  if (lane == WARP - 1) parts[warp] = value;
  __syncthreads();
  number before = start_of(s), all = start_of(s);
  for (unsigned w = 0; w < WARPS; w++) {
    if (w == warp) before = all;
    all = join(s, all, parts[w]);
  }
  *total = all;
  return join(s, before, value);
}

/* If exclusive, a lane stores its result for the next element, and the first element is 0 or 1. */
__device__ inline void scan_row(const cumsum_shape &s, const row_team &team, const element *x, element *y) {
  const size_t moved = s.exclusive != 0 ? 1 : 0;
  number joined = start_of(s);
  if (moved != 0 && team.lane == 0) y[s.reversed != 0 ? s.size - 1 : 0] = to_element(joined);
  for (size_t first = 0; first < s.size; first += team.lanes) {
    const size_t k = first + team.lane, to = k + moved;
    const number own = k < s.size ? to_number(x[s.reversed != 0 ? s.size - 1 - k : k]) : start_of(s);
    number total;
    const number upto = join(s, joined, team_scan(s, team, own, &total));
    if (to < s.size) y[s.reversed != 0 ? s.size - 1 - to : to] = to_element(upto);
    joined = join(s, joined, total);
  }
}

extern "C" __global__ void cumsum_NUMBER(cumsum_shape shape, const element *__restrict__ x, element *__restrict__ y) {
  if (shape.inner == 1) {
    const row_team team = team_of(shape.size);
    for (size_t row = team.first; row < shape.outer; row += team.stride)
      scan_row(shape, team, x + row * shape.size, y + row * shape.size);
    return;
  }
  for (size_t i = first_element(); i < shape.outer * shape.inner; i += element_stride()) {
    const size_t first = i / shape.inner * shape.size * shape.inner + i % shape.inner;
    number joined = start_of(shape);
    for (size_t k = 0; k < shape.size; k++) {
      const size_t at = first + (shape.reversed != 0 ? shape.size - 1 - k : k) * shape.inner;
      const number next = join(shape, joined, to_number(x[at]));
      y[at] = to_element(shape.exclusive != 0 ? joined : next);
      joined = next;
    }
  }
}
