/* SPDX-License-Identifier: MIT
 * The CUDA kernel of embedding_quantized.c: a team of threads writes a row of the result.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"
#include "tensor/operators/quantized/quantized.cuh"

struct look_up {
  size_t count;
  u64 wide_indices;
};

extern "C" __global__ void embedding_quantized_TYPE(
    quantized_scheme scheme, look_up shape, const void *__restrict__ indices, const unsigned char *__restrict__ values,
    const float *__restrict__ scales, const unsigned char *__restrict__ zeros, element *__restrict__ y, CHECK) {
  const index_cell check = begin_check(TO_CHECK);
  const row_team team = team_of(scheme.columns);
  const quantized_matrix table = {values, scales, zeros};
  for (size_t i = team.first; i < shape.count; i += team.stride) {
    const long long index = index_at(indices, shape.wide_indices != 0, i);
    const bool is_right = team.lane == 0 ? check_index(check, i, index, scheme.rows) : is_index(index, scheme.rows);
    write_quantized_row(scheme, table, is_right ? (size_t)index : 0, team.lane, team.lanes, y + i * scheme.columns);
  }
}
