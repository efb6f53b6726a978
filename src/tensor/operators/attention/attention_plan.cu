/* SPDX-License-Identifier: MIT
 * The CUDA kernels of attention_plan.c: a thread for each batch.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct plan_shape {
  size_t batches, rows, capacity, blocks, block_rows, table_blocks, heads;
  unsigned appends, length_step;
  u64 count_step;
};

struct plan_inputs {
  const int *lengths, *counts, *table, *slopes;
};

struct plan_cells {
  index_cell lengths, counts, table;
};

struct batch_rows {
  int length, count;
};

__device__ inline batch_rows check_rows(const plan_shape &shape, const plan_inputs &in, size_t batch,
                                        const plan_cells &cells) {
  const batch_rows none = {0, 0};
  batch_rows rows = {shape.appends != 0 ? 0 : (int)shape.capacity, (int)shape.rows};
  if (in.counts != 0) {
    rows.count = in.counts[batch * shape.count_step];
    if (!check_index(cells.counts, batch, rows.count, shape.rows + 1)) return none;
    if (rows.count == 0) return none; /* the batch is left out, whatever its length */
  }
  if (in.lengths != 0) {
    const size_t space = shape.appends != 0 ? shape.capacity - (size_t)rows.count : shape.capacity;
    rows.length = in.lengths[batch * shape.length_step];
    if (!check_index(cells.lengths, batch, rows.length, space + 1)) return none;
  }
  return rows;
}

/* Only entries that the batch's rows use are looked at. Whether all of them are blocks. */
__device__ inline bool check_table(const plan_shape &shape, const int *table, size_t batch, batch_rows rows,
                                   const plan_cells &cells, int *to) {
  const size_t count = (size_t)rows.length + (shape.appends != 0 ? (size_t)rows.count : 0);
  const size_t used = (count + shape.block_rows - 1) / shape.block_rows;
  bool is_right = true;
  for (size_t i = 0; i < shape.table_blocks; i++) {
    const size_t at = batch * shape.table_blocks + i;
    const bool is_block = i < used && check_index(cells.table, at, table[at], shape.blocks);
    is_right = is_right && (is_block || i >= used);
    to[i] = is_block ? table[at] : 0;
  }
  return is_right;
}

__device__ inline void plan_batch(const plan_shape &shape, const plan_inputs &in, size_t batch, const plan_cells &cells,
                                  int *plan) {
  batch_rows rows = check_rows(shape, in, batch, cells);
  if (shape.table_blocks > 0) {
    int *const table = plan + 2 * shape.batches + batch * shape.table_blocks;
    if (!check_table(shape, in.table, batch, rows, cells, table)) {
      for (size_t i = 0; i < shape.table_blocks; i++) table[i] = 0;
      rows.length = rows.count = 0;
    }
  }
  plan[batch] = rows.length;
  plan[shape.batches + batch] = rows.count;
}

__device__ inline void plan_all(const plan_shape &shape, const plan_inputs &in, const plan_cells &cells, int *plan) {
  int *const slopes = plan + shape.batches * (2 + shape.table_blocks);
  for (size_t i = first_element(); i < shape.batches; i += element_stride()) plan_batch(shape, in, i, cells, plan);
  for (size_t i = first_element(); i < shape.heads; i += element_stride()) slopes[i] = in.slopes[i];
}

#define CHECK_OF(name) u64 *name##_cell, const u64 *name##_run, u64 *name##_mark, u64 *name##_begun
#define TO_CHECK_OF(name) name##_cell, name##_run, name##_mark, name##_begun

extern "C" __global__ void attention_plan(plan_shape shape, const int *__restrict__ lengths,
                                          const int *__restrict__ counts, const int *__restrict__ table,
                                          const int *__restrict__ slopes, int *__restrict__ plan, CHECK_OF(length),
                                          CHECK_OF(count), CHECK_OF(table)) {
  const plan_inputs in = {lengths, counts, table, slopes};
  const plan_cells cells = {begin_check(TO_CHECK_OF(length)), begin_check(TO_CHECK_OF(count)),
                            begin_check(TO_CHECK_OF(table))};
  plan_all(shape, in, cells, plan);
}

extern "C" __global__ void attention_slopes(plan_shape shape, const int *__restrict__ lengths,
                                            const int *__restrict__ counts, const int *__restrict__ table,
                                            const int *__restrict__ slopes, int *__restrict__ plan) {
  const plan_inputs in = {lengths, counts, table, slopes};
  const plan_cells cells = {};
  plan_all(shape, in, cells, plan);
}
