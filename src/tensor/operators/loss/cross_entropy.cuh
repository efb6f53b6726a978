/* SPDX-License-Identifier: MIT
 * What the kernels of cross_entropy share: their shape, as cross_entropy.c has it.
 */
#include "tensor/operators/common/operator_rows.cuh"

struct rows_shape {
  size_t rows, columns;
  long long ignored;
  unsigned wide_labels;
  unsigned short ignores, is_smoothed;
  float to_label, to_each;
};

__device__ inline bool is_ignored(const rows_shape &shape, long long label) {
  return shape.ignores != 0 && label == shape.ignored;
}
