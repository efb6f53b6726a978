/* SPDX-License-Identifier: MIT
 * The CUDA kernels of softmax.c.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct softmax_shape {
  size_t rows, columns, is_log;
};

extern "C" __global__ void softmax_TYPE(softmax_shape shape, const element *__restrict__ x, element *__restrict__ y) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const element *from = x + row * shape.columns;
    element *to = y + row * shape.columns;
    const float largest = row_max(team, from, shape.columns);
    const float sum = row_exp_sum(team, from, largest, shape.columns);
    const float log_sum = logf(sum), scale = 1.0f / sum;
    for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
      const float below = to_float(from[i]) - largest;
      to[i] = to_element(shape.is_log ? below - log_sum : scale * expf(below));
    }
  }
}

extern "C" __global__ void softmax_gradient_TYPE(softmax_shape shape, const element *__restrict__ y,
                                                 const element *__restrict__ dy, element *__restrict__ dx) {
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const size_t at = row * shape.columns;
    float sum = 0;
    for (size_t i = at + team.lane; i < at + shape.columns; i += team.lanes)
      sum += (shape.is_log ? 1.0f : to_float(y[i])) * to_float(dy[i]);
    sum = team_join<join_sum>(team, sum);
    for (size_t i = at + team.lane; i < at + shape.columns; i += team.lanes) {
      const float result = to_float(y[i]), gradient = to_float(dy[i]);
      dx[i] = to_element(shape.is_log ? gradient - expf(result) * sum : result * (gradient - sum));
    }
  }
}
