/* SPDX-License-Identifier: MIT
 * The CUDA kernels of cross_entropy.c.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/loss/cross_entropy.cuh"

extern "C" __global__ void cross_entropy_rows_TYPE(rows_shape shape, const element *__restrict__ logits,
                                                   const void *__restrict__ labels, const float *__restrict__ weights,
                                                   float *__restrict__ losses, float *__restrict__ maxima,
                                                   float *__restrict__ sums, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  const row_team team = team_of(shape.columns);
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const element *x = logits + row * shape.columns;
    const float largest = row_max(team, x, shape.columns);
    const float sum = row_exp_sum(team, x, largest, shape.columns);
    const float log_sum = logf(sum);
    float below = 0;
    if (shape.is_smoothed) {
      for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
        const float z = to_float(x[i]) - largest;
        below += weights == 0 ? z : weights[i] * (log_sum - z);
      }
      below = team_join<join_sum>(team, below);
    }
    if (team.lane > 0) continue;
    const long long given = index_at(labels, shape.wide_labels, row);
    maxima[row] = largest;
    sums[row] = sum;
    losses[row] = 0;
    if (is_ignored(shape, given)) continue;
    const size_t label = check_index(to, row, given, shape.columns) ? (size_t)given : 0;
    const float z = to_float(x[label]) - largest;
    losses[row] = weights == 0 ? log_sum - shape.to_label * z - shape.to_each * below
                               : shape.to_label * weights[label] * (log_sum - z) + shape.to_each * below;
  }
}

/* dlogits = (softmax(logits) - (1 - s) onehot(label) - s / n) * dloss / count; 0 in rows that are ignored. */
extern "C" __global__ void cross_entropy_gradient_TYPE(rows_shape shape, const element *__restrict__ logits,
                                                       const void *__restrict__ labels,
                                                       const float *__restrict__ maxima, const float *__restrict__ sums,
                                                       const float *__restrict__ count, const float *__restrict__ dloss,
                                                       const float *__restrict__ weights,
                                                       element *__restrict__ gradient) {
  const float scale = *count != 0 ? *dloss / *count : 0.0f, share = shape.to_each * scale;
  const row_team team = team_of(shape.columns);
  float all = 0; /* the sum of the weights */
  if (weights != 0 && shape.is_smoothed) {
    for (size_t i = team.lane; i < shape.columns; i += team.lanes) all += weights[i];
    all = team_join<join_sum>(team, all);
  }
  for (size_t row = team.first; row < shape.rows; row += team.stride) {
    const long long given = index_at(labels, shape.wide_labels, row);
    const bool ignored = is_ignored(shape, given);
    const size_t label = is_index(given, shape.columns) ? (size_t)given : 0;
    const float to_label = weights == 0 ? shape.to_label * scale : shape.to_label * scale * weights[label];
    const float largest = maxima[row], factor = (weights == 0 ? scale : to_label + share * all) / sums[row];
    const element *x = logits + row * shape.columns;
    element *to = gradient + row * shape.columns;
    for (size_t i = team.lane; i < shape.columns; i += team.lanes) {
      const float of_class = weights == 0 ? share : share * weights[i];
      const float shares = i == label ? of_class + to_label : of_class;
      to[i] = to_element(ignored ? 0.0f : factor * expf(to_float(x[i]) - largest) - shares);
    }
  }
}
