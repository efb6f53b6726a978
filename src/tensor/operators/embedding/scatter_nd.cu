/* SPDX-License-Identifier: MIT
 * The CUDA kernel of scatter_nd.c: a thread has a column of the first slot of a row, and applies its updates in order.
 */
#include "tensor/operators/embedding/scatter_combine.cuh"

struct scatter_table {
  size_t count, rows, columns;
  u64 reduction;
};

extern "C" __global__ void scatter_nd_NUMBER(scatter_table table, const long long *__restrict__ keys,
                                             const element *__restrict__ updates, element *y) {
  const unsigned reduction = (unsigned)table.reduction;
  for (size_t i = first_element(); i < table.count * table.columns; i += element_stride()) {
    const size_t slot = i / table.columns, column = i - slot * table.columns;
    const long long row = keys[slot] >> 32;
    if ((size_t)row >= table.rows || (slot > 0 && keys[slot - 1] >> 32 == row)) continue;
    element *to = y + (size_t)row * table.columns + column;
    element last = *to;
    number joined = to_number(last);
    for (size_t k = slot; k < table.count && keys[k] >> 32 == row; k++) {
      last = updates[(size_t)(keys[k] & 0xffffffffll) * table.columns + column];
      joined = combine(reduction, joined, to_number(last));
    }
    *to = reduction == REPLACE ? last : to_element(joined);
  }
}
