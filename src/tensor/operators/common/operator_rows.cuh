/* SPDX-License-Identifier: MIT
 * Reductions over rows of a matrix. A row belongs to a team: a warp, or the whole block if rows are wide. Neighbouring
 * lanes of the team read neighbouring elements. Lanes are combined by shuffles, and warps through shared memory, each
 * in a fixed order.
 */
#include "tensor/operators/common/floats.cuh"

#define NARROW_ROW 1024 /* RONDO_NARROW_ROW in operator_rows.h, which determines the grid */

struct row_team {
  unsigned lane, lanes;
  size_t first, stride; /* for (size_t row = team.first; row < rows; row += team.stride) */
};

/* All threads of a block, one of `blocks` for these rows, have the same team except for lane and first. */
__device__ inline row_team team_of(size_t columns, unsigned block, unsigned blocks) {
  row_team team;
  if (columns > NARROW_ROW) {
    team.lane = threadIdx.x;
    team.lanes = BLOCK_THREADS;
    team.first = block;
    team.stride = blocks;
  } else {
    team.lane = threadIdx.x % WARP;
    team.lanes = WARP;
    team.first = (size_t)block * WARPS + threadIdx.x / WARP;
    team.stride = (size_t)blocks * WARPS;
  }
  return team;
}

__device__ inline row_team team_of(size_t columns) { return team_of(columns, blockIdx.x, gridDim.x); }

struct join_sum {
  static __device__ float of(float a, float b) { return a + b; }
};

/* Ignores NaN, as rondo_row_max does; the sum of exponentials is NaN. */
struct join_max {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

/* Combines the values of the team's lanes; every lane gets the result. All lanes of the team must call it. */
template <class join, class number_type>
__device__ inline number_type team_join(const row_team &team, number_type value) {
  __shared__ number_type parts[WARPS];
  for (unsigned distance = WARP / 2; distance > 0; distance /= 2)
    value = join::of(value, __shfl_xor_sync(ALL_LANES, value, distance));
  if (team.lanes == WARP) return value;
  __syncthreads(); /* the previous parts have been read */
  if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
  __syncthreads();
  value = parts[0];
  for (unsigned warp = 1; warp < WARPS; warp++) value = join::of(value, parts[warp]);
  return value;
}

template <class T>
__device__ inline float row_max(const row_team &team, const T *x, size_t columns) {
  float largest = __int_as_float(0xff800000); /* less than any number */
  for (size_t i = team.lane; i < columns; i += team.lanes) largest = fmaxf(largest, to_float(x[i]));
  return team_join<join_max>(team, largest);
}

/* The sum of exp(x[i] - largest), where largest is the row's maximum. */
template <class T>
__device__ inline float row_exp_sum(const row_team &team, const T *x, float largest, size_t columns) {
  float sum = 0;
  for (size_t i = team.lane; i < columns; i += team.lanes) sum += expf(to_float(x[i]) - largest);
  return team_join<join_sum>(team, sum);
}
