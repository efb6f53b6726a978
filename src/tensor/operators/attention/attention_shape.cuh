/* SPDX-License-Identifier: MIT
 * The shape of attention, as attention.h has it: where the rows of heads lie.
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

/* All rows of a head: the element where the first begins, elements from one to the next, how many. */
struct head_rows {
  size_t begin, stride, count;
};

__device__ inline head_rows rows_in(const attention_place &place, size_t heads, size_t head, size_t count) {
  const head_rows rows = {head / heads * place.batch + head % heads * place.head, place.row, count};
  return rows;
}

/* Of all batches, heads of a batch being a multiple of those of a group. */
__device__ inline size_t group_of(const attention_shape &shape, size_t head) {
  return head / (shape.heads / shape.groups);
}
