/* SPDX-License-Identifier: MIT
 * The shape argument of the kernels of cross_entropy, as in cross_entropy.c.
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
