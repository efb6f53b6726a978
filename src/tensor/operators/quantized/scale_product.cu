/* SPDX-License-Identifier: MIT
 * The CUDA kernel of scale_product.c: a team of threads has a row.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct product_size {
  size_t rows, columns;
};

extern "C" __global__ void scale_product_TYPE(product_size size, const int *__restrict__ sums,
                                              const float *__restrict__ row_scales,
                                              const float *__restrict__ column_scales, const element *__restrict__ bias,
                                              element *__restrict__ y) {
  const row_team team = team_of(size.columns);
  for (size_t row = team.first; row < size.rows; row += team.stride) {
    const float row_scale = row_scales[row];
    for (size_t j = team.lane; j < size.columns; j += team.lanes) {
      const float x = (float)sums[row * size.columns + j] * column_scales[j] * row_scale;
      y[row * size.columns + j] = to_element(bias == NULL ? x : x + to_float(bias[j]));
    }
  }
}
