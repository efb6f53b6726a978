/* SPDX-License-Identifier: MIT
 * The CUDA kernel of assign.c: copies elements of 1, 2, 4 or 8 bytes.
 */
#include "tensor/operators/common/joined.cuh"

template <class T>
__device__ inline void copy_share(const joined_share &share, void *to, const void *from) {
  for (size_t i = share.first; i < share.elements; i += share.stride) ((T *)to)[i] = ((const T *)from)[i];
}

#define PARAMETERS(i) , void *to##i, const void *from##i
#define PICK(i)                 \
  case i:                       \
    to = to##i, from = from##i; \
    break;

extern "C" __global__ void assign(joined_table table, GATE EACH_JOINED(PARAMETERS)) {
  const joined_share share = share_of(table);
  void *to = 0;
  const void *from = 0;
  if (!may_update(TO_GATE)) return;
  switch (share.operation) { EACH_JOINED(PICK) }
  switch (share.type) { /* as rondo_type */
    case 1:
    case 2:
      return copy_share<unsigned>(share, to, from);
    case 3:
    case 4:
      return copy_share<u64>(share, to, from);
    case 5:
    case 6:
      return copy_share<unsigned short>(share, to, from);
    default:
      return copy_share<unsigned char>(share, to, from);
  }
}
