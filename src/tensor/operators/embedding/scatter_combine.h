/* SPDX-License-Identifier: MIT
 * How scatter and scatter_nd combine an element with an update, on a CPU; scatter_combine.cuh is the same for CUDA.
 * Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_EMBEDDING_SCATTER_COMBINE_H
#define RONDO_TENSOR_OPERATORS_EMBEDDING_SCATTER_COMBINE_H

#include <rondo/operators.h>

#include "base/error.h"

static inline float rondo_combine_floats(uint32_t reduction, float old, float update) {
  switch ((rondo_scatter_reduction)reduction) {
    case RONDO_SCATTER_ADD:
      return old + update;
    case RONDO_SCATTER_MUL:
      return old * update;
    case RONDO_SCATTER_MAX:
      return old > update || old != old ? old : update;
    case RONDO_SCATTER_MIN:
      return old < update || old != old ? old : update;
    default:
      return update;
  }
}

/* Integers wrap around. */
static inline int64_t rondo_combine_integers(uint32_t reduction, int64_t old, int64_t update) {
  switch ((rondo_scatter_reduction)reduction) {
    case RONDO_SCATTER_ADD:
      return (int64_t)((uint64_t)old + (uint64_t)update);
    case RONDO_SCATTER_MUL:
      return (int64_t)((uint64_t)old * (uint64_t)update);
    case RONDO_SCATTER_MAX:
      return old > update ? old : update;
    case RONDO_SCATTER_MIN:
      return old < update ? old : update;
    default:
      return update;
  }
}

/* OUT_OF_RANGE unless it is a reduction; `call` starts the message. */
static inline rondo_status rondo_require_scatter_reduction(const char *call, rondo_scatter_reduction reduction) {
  if (reduction >= RONDO_SCATTER_REPLACE && reduction <= RONDO_SCATTER_MIN) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: reduction %d does not exist: use RONDO_SCATTER_REPLACE, _ADD, _MUL, _MAX or _MIN", call,
                    (int)reduction);
}

#endif
