/* SPDX-License-Identifier: MIT
 * The CUDA kernels of attention_plan.c: a block of threads for each batch, and a thread for an entry of its row of the
 * block table.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct plan_shape {
  size_t batches, rows, capacity, blocks, block_rows, table_blocks, heads;
  unsigned appends, length_step;
  u64 count_step;
};

struct plan_inputs {
  const int *lengths, *counts, *table, *slopes;
  const unsigned *writers; /* of each block, how many written entries of the table name it; 0: nothing is written */
};

struct plan_cells {
  index_cell lengths, counts, table;
};

struct batch_rows {
  int length, count;
};

/* As check_index; without a cell the run does not fail. */
__device__ inline bool is_below(const index_cell *cell, size_t position, int number, size_t bound) {
  return cell != 0 ? check_index(*cell, position, number, bound) : is_index(number, bound);
}

/* cells: 0 for a batch that another block of threads checks. */
__device__ inline batch_rows check_rows(const plan_shape &shape, const plan_inputs &in, size_t batch,
                                        const plan_cells *cells) {
  const batch_rows none = {0, 0};
  batch_rows rows = {shape.appends != 0 ? 0 : (int)shape.capacity, (int)shape.rows};
  if (in.counts != 0) {
    rows.count = in.counts[batch * shape.count_step];
    if (!is_below(cells ? &cells->counts : 0, batch, rows.count, shape.rows + 1)) return none;
    if (rows.count == 0) return none; /* the batch is left out, whatever its length */
  }
  if (in.lengths != 0) {
    const size_t space = shape.appends != 0 ? shape.capacity - (size_t)rows.count : shape.capacity;
    rows.length = in.lengths[batch * shape.length_step];
    if (!is_below(cells ? &cells->lengths : 0, batch, rows.length, space + 1)) return none;
  }
  return rows;
}

/* How many entries of its row of the table a batch uses. */
__device__ inline unsigned count_used(const plan_shape &shape, batch_rows rows) {
  const unsigned count = rows.length + (shape.appends != 0 ? rows.count : 0), each = (unsigned)shape.block_rows;
  return (count + each - 1) / each;
}

/* The first of these entries that the batch writes. */
__device__ inline unsigned first_written(const plan_shape &shape, batch_rows rows) {
  return rows.count == 0 ? count_used(shape, rows) : (unsigned)rows.length / (unsigned)shape.block_rows;
}

/* Whether no entry that the batch's rows use names a block that another entry writes. Each thread gets the result for
 * its entries. */
__device__ inline bool check_written(const plan_shape &shape, const plan_inputs &in, size_t batch, batch_rows rows,
                                     const plan_cells &cells) {
  const unsigned used = count_used(shape, rows), first = first_written(shape, rows);
  bool is_right = true;
  for (unsigned i = threadIdx.x; i < used; i += BLOCK_THREADS) {
    const size_t at = batch * shape.table_blocks + i;
    const int block = in.table[at];
    if (!is_index(block, shape.blocks) || in.writers[block] <= (i >= first ? 1u : 0u)) continue;
    check_index(cells.table, at, block, 0);
    is_right = false;
  }
  return is_right;
}

/* Only entries that the batch's rows use are looked at. Whether all of the thread's are blocks. */
__device__ inline bool check_table(const plan_shape &shape, const int *table, size_t batch, unsigned used,
                                   const plan_cells &cells) {
  bool is_right = true;
  for (unsigned i = threadIdx.x; i < used; i += BLOCK_THREADS) {
    const size_t at = batch * shape.table_blocks + i;
    if (!check_index(cells.table, at, table[at], shape.blocks)) is_right = false;
  }
  return is_right;
}

/* All threads of the block call it. */
__device__ inline void plan_batch(const plan_shape &shape, const plan_inputs &in, size_t batch, const plan_cells &cells,
                                  int *plan) {
  __shared__ int is_wrong; /* the table */
  batch_rows rows = check_rows(shape, in, batch, &cells);
  if (threadIdx.x == 0) is_wrong = 0;
  __syncthreads();
  if (shape.table_blocks > 0) {
    const unsigned used = count_used(shape, rows);
    bool is_right = check_table(shape, in.table, batch, used, cells);
    if (in.writers != 0 && !check_written(shape, in, batch, rows, cells)) is_right = false;
    if (!is_right) is_wrong = 1;
    __syncthreads();
    int *const table = plan + 2 * shape.batches + batch * shape.table_blocks;
    for (size_t i = threadIdx.x; i < shape.table_blocks; i += BLOCK_THREADS)
      table[i] = i < used && is_wrong == 0 ? in.table[batch * shape.table_blocks + i] : 0;
  }
  if (threadIdx.x == 0) {
    plan[batch] = is_wrong == 0 ? rows.length : 0;
    plan[shape.batches + batch] = is_wrong == 0 ? rows.count : 0;
  }
  __syncthreads(); /* before is_wrong is 0 for the next batch */
}

__device__ inline void plan_all(const plan_shape &shape, const plan_inputs &in, const plan_cells &cells, int *plan) {
  int *const slopes = plan + shape.batches * (2 + shape.table_blocks);
  for (size_t i = blockIdx.x; i < shape.batches; i += gridDim.x) plan_batch(shape, in, i, cells, plan);
  for (size_t i = first_element(); i < shape.heads; i += element_stride()) slopes[i] = in.slopes[i];
}

#define CHECK_OF(name) u64 *name##_cell, const u64 *name##_run, u64 *name##_mark, u64 *name##_begun
#define TO_CHECK_OF(name) name##_cell, name##_run, name##_mark, name##_begun

extern "C" __global__ void attention_plan(plan_shape shape, const int *__restrict__ lengths,
                                          const int *__restrict__ counts, const int *__restrict__ table,
                                          const int *__restrict__ slopes, const unsigned *__restrict__ writers,
                                          int *__restrict__ plan, CHECK_OF(length), CHECK_OF(count), CHECK_OF(table)) {
  const plan_inputs in = {lengths, counts, table, slopes, writers};
  const plan_cells cells = {begin_check(TO_CHECK_OF(length)), begin_check(TO_CHECK_OF(count)),
                            begin_check(TO_CHECK_OF(table))};
  plan_all(shape, in, cells, plan);
}

extern "C" __global__ void attention_slopes(plan_shape shape, const int *__restrict__ lengths,
                                            const int *__restrict__ counts, const int *__restrict__ table,
                                            const int *__restrict__ slopes, const unsigned *__restrict__ writers,
                                            int *__restrict__ plan) {
  const plan_inputs in = {lengths, counts, table, slopes, writers};
  const plan_cells cells = {};
  plan_all(shape, in, cells, plan);
}

/* Calls a function for each entry of the table that some batch uses, with whether it is written; a thread for each. */
template <typename function>
__device__ inline void for_used_entries(const plan_shape &shape, const plan_inputs &in, function call) {
  for (size_t at = first_element(); at < shape.batches * shape.table_blocks; at += element_stride()) {
    const batch_rows rows = check_rows(shape, in, at / shape.table_blocks, 0);
    const size_t i = at % shape.table_blocks;
    if (i < count_used(shape, rows) && is_index(in.table[at], shape.blocks))
      call(in.table[at], i >= first_written(shape, rows));
  }
}

#define WRITERS_WHOLE 0u /* as writers_part in attention_plan.c; by one block of threads */
#define WRITERS_CLEAR 1u
#define WRITERS_COUNT 2u

/* Numbers of blocks that no rows use are not set. */
extern "C" __global__ void attention_writers(plan_shape shape, const int *__restrict__ lengths,
                                             const int *__restrict__ counts, const int *__restrict__ table,
                                             unsigned *writers, unsigned part) {
  const plan_inputs in = {lengths, counts, table, 0, 0};
  if (part != WRITERS_COUNT) for_used_entries(shape, in, [=](int block, bool) { writers[block] = 0; });
  if (part == WRITERS_CLEAR) return;
  __syncthreads();
  for_used_entries(shape, in, [=](int block, bool is_written) {
    if (is_written) atomicAdd(&writers[block], 1u);
  });
}
