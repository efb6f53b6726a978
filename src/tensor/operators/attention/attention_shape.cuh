/* SPDX-License-Identifier: MIT
 * The shape argument of attention kernels and the strides of heads, as in attention.h.
 */
#include "tensor/operators/common/element.cuh"

struct attention_place {
  size_t batch, head, row;
};

struct attention_shape {
  size_t batches, heads, groups, rows, columns, size;
  attention_place q, k, y, own;
  float scale;
  unsigned causal;
};

/* All rows of a head: the first element, the elements from one row to the next, and the number of rows. */
struct head_rows {
  size_t begin, stride, count;
};

__device__ inline head_rows rows_in(const attention_place &place, size_t heads, size_t head, size_t count) {
  const head_rows rows = {head / heads * place.batch + head % heads * place.head, place.row, count};
  return rows;
}

/* The group of a head; both are counted over all batches. */
__device__ inline size_t group_of(const attention_shape &shape, size_t head) {
  return head / (shape.heads / shape.groups);
}
