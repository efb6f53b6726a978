/* SPDX-License-Identifier: MIT
 * How scatter and scatter_nd combine an element with an update, as scatter_combine.h does on a CPU.
 */
#include "tensor/operators/common/element.cuh"

/* As rondo_scatter_reduction. */
enum { REPLACE, ADD, MUL, MAX, MIN };

template <class N>
__device__ inline N combine(unsigned reduction, N old, N update) {
  switch (reduction) {
    case ADD:
      return old + update;
    case MUL:
      return old * update;
    case MAX:
      return old > update || old != old ? old : update;
    case MIN:
      return old < update || old != old ? old : update;
    default:
      return update;
  }
}
