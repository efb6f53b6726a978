/* SPDX-License-Identifier: MIT
 * The CUDA kernels of attention_bias.c. A team has a row: of the bias, or of y.
 */
#include "tensor/operators/attention/attention_shape.cuh"
#include "tensor/operators/common/kernel_support.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct bias_rows {
  size_t batches, heads, pitch;
};

extern "C" __global__ void attention_bias_TYPE(attention_shape shape, bias_rows rows, const void *__restrict__ mask,
                                               element *__restrict__ bias, u8 *__restrict__ noted) {
  const row_team team = team_of(shape.columns);
  const batch_view view = view_of(shape, NULL, 0);
  const size_t count = rows.batches * rows.heads * shape.rows;
  for (size_t row = team.first; row < count; row += team.stride) {
    const size_t head = row / shape.rows, i = row % shape.rows;
    const size_t begin =
        head / rows.heads * shape.mask.batch + head % rows.heads * shape.mask.head + i * shape.mask.row;
    const column_span visible = visible_columns(shape, view, i);
    float sees = 0.0f;
    for (size_t j = team.lane; j < shape.columns; j += team.lanes) {
      const float x = mask_value(shape, mask, begin + j * shape.mask.column);
      if (bias != NULL) bias[row * rows.pitch + j] = to_element(x);
      if (j >= visible.first && j < visible.last && x != minus_infinity()) sees = 1.0f;
    }
    sees = team_join<join_max>(team, sees);
    if (noted != NULL && team.lane == 0) noted[row] = sees == 0.0f ? 1 : 0;
  }
}

extern "C" __global__ void attention_unseeing_TYPE(attention_shape shape, bias_rows rows, const u8 *__restrict__ noted,
                                                   element *__restrict__ y, float *__restrict__ sums) {
  const row_team team = team_of(shape.size);
  const size_t count = shape.batches * shape.heads * shape.rows;
  for (size_t row = team.first; row < count; row += team.stride) {
    const size_t head = row / shape.rows, i = row % shape.rows;
    const size_t batch = rows.batches > 1 ? head / shape.heads : 0, own = rows.heads > 1 ? head % shape.heads : 0;
    if (noted[(batch * rows.heads + own) * shape.rows + i] == 0) continue;
    const head_rows to = rows_in(shape.y, shape.heads, head, shape.rows);
    for (size_t j = team.lane; j < shape.size; j += team.lanes) y[to.begin + i * to.stride + j] = to_element(0.0f);
    if (sums != NULL && team.lane == 0) sums[row] = -minus_infinity();
  }
}
