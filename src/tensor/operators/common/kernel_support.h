/* SPDX-License-Identifier: MIT
 * What the operators' CPU kernels share: how work is split into blocks, how a kernel reports a wrong index, and when it
 * may update state.
 *
 * The split depends on the shape alone and a kernel computes each block independently, so results do not depend on the
 * number of workers. Inner loops run over a fixed number of lanes, so that compilers vectorise them at -O2.
 * Threads: any; blocks of one kernel run at once.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_KERNEL_SUPPORT_H
#define RONDO_TENSOR_OPERATORS_COMMON_KERNEL_SUPPORT_H

#include <assert.h>
#include <stdatomic.h>

#include "tensor/compile/emit.h"
#include "tensor/operators/common/operator_cuda_sources.h"
#include "tensor/run/index_check.h"

#define RONDO_LANES 16

/* Executes the statements for each `i` in 0 .. count - 1; `lane` is i % RONDO_LANES. The inner loop is vectorised. */
#define RONDO_EACH_LANE(i, lane, count, ...)                         \
  do {                                                               \
    size_t i##_at = 0;                                               \
    for (; i##_at + RONDO_LANES <= (count); i##_at += RONDO_LANES) { \
      for (size_t lane = 0; lane < RONDO_LANES; lane++) {            \
        const size_t i = i##_at + lane;                              \
        __VA_ARGS__;                                                 \
      }                                                              \
    }                                                                \
    for (size_t lane = 0; i##_at + lane < (count); lane++) {         \
      const size_t i = i##_at + lane;                                \
      __VA_ARGS__;                                                   \
    }                                                                \
  } while (0)

/* The value of argument `index` of a kernel, whose arguments are `args`. */
#define RONDO_ARG(type, index) (*(type const *)args[index])

/* Elements of a block of a cheap element-wise kernel. */
#define RONDO_ELEMENTWISE_GRAIN ((rondo_grain){8192, RONDO_CUDA_THREADS})
/* The same for CUDA kernels whose threads process four elements at once. */
#define RONDO_PACKED_GRAIN ((rondo_grain){8192, 4 * RONDO_CUDA_THREADS})

typedef struct rondo_span {
  size_t first, last; /* first <= i < last */
} rondo_span;

static inline size_t rondo_smaller(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t rondo_larger(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t rondo_divide_up(size_t count, size_t by) { return count / by + (count % by != 0); }

/* A block for each tile. Where there are more tiles than a grid has blocks, blocks process several (RONDO_EACH_TILE).
 */
static inline rondo_grid rondo_tile_grid(size_t tiles) {
  return (rondo_grid){.x = (uint32_t)rondo_smaller(tiles, (size_t)1 << 30)};
}

/* The items of block `block`, out of `count`. All blocks but the last have equally many, a multiple of `unit`. */
static inline rondo_span rondo_block_span(size_t block, rondo_blocks blocks, size_t count, size_t unit) {
  assert(unit > 0 && blocks.grid.x > 0);
  const size_t share = rondo_divide_up(rondo_divide_up(count, unit), blocks.grid.x) * unit;
  const size_t first = rondo_smaller(block * share, count);
  return (rondo_span){first, count - first > share ? first + share : count};
}

/* The items of all `blocks`, which are contiguous: for kernels that compute each item independently. */
static inline rondo_span rondo_blocks_span(rondo_blocks blocks, size_t count, size_t unit) {
  assert(blocks.first < blocks.last && blocks.last <= blocks.grid.x);
  const size_t first = rondo_block_span(blocks.first, blocks, count, unit).first;
  return (rondo_span){first, rondo_block_span(blocks.last - 1, blocks, count, unit).last};
}

/* The loop over the items of all `blocks`, for kernels that compute each of `count` items independently. */
#define RONDO_EACH_ITEM(i, blocks, count)                                                                        \
  for (size_t i = rondo_blocks_span(blocks, count, 1).first, i##_end = rondo_blocks_span(blocks, count, 1).last; \
       i < i##_end; i++)

/* The same where a block has every grid.x-th tile, so that the blocks of a large grid begin with neighbouring tiles. */
#define RONDO_EACH_TILE(number, blocks, count)                                                   \
  for (size_t number##_block = (blocks).first; number##_block < (blocks).last; number##_block++) \
    for (size_t number = number##_block; number < (count); number += (blocks).grid.x)

/* Indices are I32, or I64 where `is_wide` is not 0. */
static inline int64_t rondo_index_at(const void *indices, uint32_t is_wide, size_t i) {
  return is_wide != 0 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* Where a kernel reports a wrong index (rondo_check_memory). */
typedef struct rondo_index_cell {
  _Atomic uint64_t *cell;
  const uint64_t *run;
  _Atomic uint64_t *mark; /* NULL: no update reads it */
} rondo_index_cell;

/* `args` begins at the arguments of rondo_check_memory. Call it first in each call of a kernel's function. */
static inline rondo_index_cell rondo_begin_check(rondo_blocks blocks, void *const *args) {
  const rondo_index_cell to = {RONDO_ARG(_Atomic uint64_t *, 0), RONDO_ARG(const uint64_t *, 1),
                               RONDO_ARG(_Atomic uint64_t *, 2)};
  assert(to.cell != NULL && (to.mark == NULL || to.run != NULL));
  uint64_t *begun = RONDO_ARG(uint64_t *, 3);
  if (begun != NULL && blocks.first == 0) *begun = *to.run;
  return to;
}

/* True if 0 <= index < bound. Otherwise the run fails, and the cell keeps the wrong index at the lowest position, in
 * whatever order the blocks run: the position plus one in the upper half; the index, clamped to an I32, in the lower
 * half. 0: no wrong index. */
static inline bool rondo_check_index(rondo_index_cell to, size_t position, int64_t index, size_t bound) {
  if (index >= 0 && (uint64_t)index < bound) return true;
  _Atomic uint64_t *const cell = to.cell;
  if (to.mark != NULL) atomic_store_explicit(to.mark, *to.run + 1, memory_order_relaxed);
  const int32_t reported = (int32_t)(index < INT32_MIN ? INT32_MIN : index > INT32_MAX ? INT32_MAX : index);
  const uint64_t place = position < UINT32_MAX - 1 ? position + 1 : UINT32_MAX;
  const uint64_t mine = place << 32 | (uint32_t)reported;
  uint64_t held = atomic_load_explicit(cell, memory_order_relaxed);
  while ((held == 0 || mine < held) &&
         !atomic_compare_exchange_weak_explicit(cell, &held, mine, memory_order_relaxed, memory_order_relaxed)) {
  }
  return false;
}

/* Rows of large tables are read in any order, and each comes from memory. Asking for a row some items before it is used
 * lets several be on their way at once. */
#define RONDO_ROWS_AHEAD 8
static inline void rondo_prefetch(const void *address) { __builtin_prefetch(address); }

/* Whether a kernel may update state: not in a run that failed. `args` begins at the arguments of rondo_gate_memory.
 * Call it first in each call of an update's function. */
static inline bool rondo_may_update(rondo_blocks blocks, void *const *args) {
  const uint32_t count = RONDO_ARG(uint32_t, 0);
  const uint64_t *marks = RONDO_ARG(const uint64_t *, 1); /* the run's number, and the mark of each check */
  uint64_t *next = RONDO_ARG(uint64_t *, 2);
  bool has_failed = false;
  for (uint32_t i = 1; i <= count; i++) has_failed |= marks[i] == marks[0] + 1;
  if (next != NULL && blocks.first == 0) *next = marks[0] + 1;
  return !has_failed;
}

/* The control of an update is [factor, apply] of gradient_control.c: gradients are multiplied by the factor, and an
 * apply of 0 skips the update. NULL: there is no control. */
static inline float rondo_control_factor(const float *control) { return control == NULL ? 1.0f : control[0]; }
static inline bool rondo_control_applies(const float *control) { return control == NULL || control[1] != 0; }

#endif
