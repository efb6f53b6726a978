/* SPDX-License-Identifier: MIT
 * The CUDA kernel of dequantize.c: a team of threads writes a row.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"
#include "tensor/operators/quantized/quantized.cuh"

extern "C" __global__ void dequantize_TYPE(quantized_scheme scheme, const unsigned char *__restrict__ values,
                                           const float *__restrict__ scales, const unsigned char *__restrict__ zeros,
                                           element *__restrict__ y) {
  const row_team team = team_of(scheme.columns);
  const quantized_matrix matrix = {values, scales, zeros};
  for (size_t row = team.first; row < scheme.rows; row += team.stride)
    write_quantized_row(scheme, matrix, row, team.lane, team.lanes, y + row * scheme.columns);
}
