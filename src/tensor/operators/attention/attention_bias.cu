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
                                               element *__restrict__ bias) {
  const row_team team = team_of(shape.columns);
  const size_t count = rows.batches * rows.heads * shape.rows;
  for (size_t row = team.first; row < count; row += team.stride) {
    const size_t head = row / shape.rows, i = row % shape.rows;
    const size_t begin =
        head / rows.heads * shape.mask.batch + head % rows.heads * shape.mask.head + i * shape.mask.row;
    for (size_t j = team.lane; j < shape.columns; j += team.lanes)
      bias[row * rows.pitch + j] = to_element(mask_value(shape, mask, begin + j * shape.mask.column));
  }
}

/* Whether the mask of a row shows a column; all lanes of the warp get the result. */
__device__ inline bool sees_any(const attention_shape &shape, const void *mask, size_t begin,
                                const column_span &visible) {
  for (size_t first = visible.first; first < visible.last; first += WARP) {
    const size_t j = first + threadIdx.x % WARP;
    const bool sees = j < visible.last && mask_value(shape, mask, begin + j * shape.mask.column) != minus_infinity();
    if (__any_sync(ALL_LANES, sees)) return true;
  }
  return false;
}

/* A warp has a row, as rows of heads are narrow; of all heads, if they share the mask. */
extern "C" __global__ void attention_unseeing_TYPE(attention_shape shape, const void *__restrict__ mask,
                                                   element *__restrict__ y, float *__restrict__ sums) {
  const row_team team = team_of(shape.size);
  const batch_view view = view_of(shape, NULL, 0);
  const size_t heads = shape.mask.head == 0 ? 1 : shape.heads, each = shape.heads / heads;
  const size_t count = shape.batches * heads * shape.rows;
  for (size_t row = team.first; row < count; row += team.stride) {
    const size_t head = row / shape.rows, i = row - head * shape.rows;
    const size_t begin = head / heads * shape.mask.batch + head % heads * shape.mask.head + i * shape.mask.row;
    if (sees_any(shape, mask, begin, visible_columns(shape, view, i))) continue;
    for (size_t k = head * each; k < (head + 1) * each; k++) {
      const head_rows to = rows_in(shape.y, shape.heads, k, shape.rows);
      for (size_t j = team.lane; j < shape.size; j += team.lanes) y[to.begin + i * to.stride + j] = to_element(0.0f);
      if (sums != NULL && team.lane == 0) sums[k * shape.rows + i] = -minus_infinity();
    }
  }
}
