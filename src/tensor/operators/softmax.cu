/* SPDX-License-Identifier: MIT
 * The CUDA form of softmax.c.
 */
#include "tensor/operators/rows.cuh"

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, size_t rows, size_t columns) {
  const row_team team = team_of(columns);
  for (size_t row = team.first; row < rows; row += team.stride) {
    const float *from = x + row * columns;
    const float most = row_max(team, from, columns);
    const float sum = row_exp_sum(team, from, most, columns);
    row_scaled_exp(team, from, most, 1.0f / sum, y + row * columns, columns);
  }
}

extern "C" __global__ void softmax_gradient(const float *__restrict__ y, const float *__restrict__ dy,
                                            float *__restrict__ dx, size_t rows, size_t columns) {
  const row_team team = team_of(columns);
  for (size_t row = team.first; row < rows; row += team.stride) {
    const size_t at = row * columns;
    const float dot = row_dot(team, y + at, dy + at, columns);
    for (size_t i = at + team.lane; i < at + columns; i += team.lanes) dx[i] = y[i] * (dy[i] - dot);
  }
}
