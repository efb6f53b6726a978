/* SPDX-License-Identifier: MIT
 * The CUDA kernels of data_parallel.c.
 */
#include "tensor/operators/common/joined.cuh"

#define PARAMETERS(i) , float *to##i, const void *from##i
#define PICK(i)                 \
  case i:                       \
    to = to##i, from = from##i; \
    break;

extern "C" __global__ void copy_parts(joined_table table, GATE EACH_JOINED(PARAMETERS)) {
  if (!may_update(TO_GATE)) return;
  const joined_share share = share_of(table);
  float *to = 0;
  const void *from = 0;
  switch (share.operation) { EACH_JOINED(PICK) }
  each_gradient(share.type, from, share.first, share.elements, share.stride, [&](size_t i, float x) { to[i] = x; });
}

extern "C" __global__ void agree_find(GATE, int number, int *failed) {
  const bool may = may_update(TO_GATE);
  if (first_element() == 0) *failed = may ? 0 : number;
}

extern "C" __global__ void agree_check(const int *failed, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  if (first_element() == 0 && *failed != 0) check_index(to, 0, *failed - 1, 0);
}
