/* SPDX-License-Identifier: MIT
 * embedding: rows of a table, gathered by indices. Its gradient adds the rows of dy that came from the same row of the
 * table, in the order of the indices: a block owns rows of the table, so that no two blocks add to one and the sum does
 * not depend on workers.
 */
#include <string.h>

#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/rows.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

/* What the kernels get as one scalar; without padding. */
typedef struct gather_shape {
  size_t rows, columns; /* of the table */
  size_t count;         /* indices */
} gather_shape;

static gather_shape shape_of(const rondo_shape *table, const rondo_shape *indices) {
  return (gather_shape){table->dims[0], table->dims[1], rondo_shape_elements(indices)};
}

/* Blocks of this many floats are worth a worker's while. */
#define GATHER_GRAIN 16384

static rondo_grain grain_of(size_t columns) {
  return (rondo_grain){GATHER_GRAIN / columns + 1, rondo_row_grain(columns).cuda};
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void embedding_cpu(rondo_blocks blocks, void *const *args) {
  const gather_shape *shape = args[0];
  const float *table = RONDO_ARG(const float *, 1);
  const int32_t *indices = RONDO_ARG(const int32_t *, 2);
  float *y = RONDO_ARG(float *, 3);
  _Atomic uint64_t *cell = RONDO_ARG(_Atomic uint64_t *, 4);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->count, 1);
    for (size_t i = span.first; i < span.last; i++) {
      const size_t row = rondo_check_index(cell, i, indices[i], shape->rows) ? (size_t)indices[i] : 0;
      memcpy(y + i * shape->columns, table + row * shape->columns, shape->columns * sizeof *y);
    }
  }
}

static const rondo_kernel_options embedding_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "embedding", .cpu = embedding_cpu, RONDO_CUDA(embedding),
    .params = {RONDO_SCALAR(gather_shape), RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_UPDATES}};

static rondo_status infer_embedding(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, 2));
  RONDO_TRY(rondo_require_input(program, operation, 1, RONDO_I32, RONDO_ANY_RANK));
  const rondo_shape *table = rondo_operation_input(program, operation, 0);
  rondo_shape result = *rondo_operation_input(program, operation, 1);
  if (result.rank == RONDO_MAX_DIMENSIONS) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the result would have %d dimensions",
                                RONDO_MAX_DIMENSIONS + 1);
  }
  if (table->dims[0] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the table has more rows than i32 can count");
  }
  result.type = RONDO_F32;
  result.dims[result.rank++] = table->dims[1];
  results[0] = result;
  return RONDO_OK;
}

static rondo_status differentiate_embedding(rondo_program *program, const rondo_operation *operation,
                                            const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->inputs[1], result_gradients[0]};
  const rondo_attributes attributes = {.sizes = {rondo_operation_input(program, operation, 0)->dims[0]},
                                       .size_count = 1};
  return rondo_program_add(program, &rondo_operator_embedding_gradient, inputs, 2, &attributes, &input_gradients[0]);
}

static rondo_status emit_embedding(rondo_emitter *emitter, const rondo_operation *operation) {
  const gather_shape shape =
      shape_of(rondo_emit_shape(emitter, operation->inputs[0]), rondo_emit_shape(emitter, operation->inputs[1]));
  const float *table = rondo_emit_address(emitter, operation->inputs[0]);
  const int32_t *indices = rondo_emit_address(emitter, operation->inputs[1]);
  float *y = rondo_emit_address(emitter, operation->results[0]);
  void *cell = NULL;
  RONDO_TRY(rondo_emit_index_check(emitter, 1, shape.rows, &cell));
  return rondo_emit_kernel(emitter, &embedding_code, rondo_emit_grid(emitter, shape.count, grain_of(shape.columns)),
                           RONDO_ARGS(&shape, &table, &indices, &y, &cell));
}

const rondo_operator rondo_operator_embedding = {.name = "embedding",
                                                 .inputs = {"table", "indices"},
                                                 .required = 2,
                                                 .result_count = 1,
                                                 .checks_indices = true,
                                                 .infer = infer_embedding,
                                                 .differentiate = differentiate_embedding,
                                                 .emit = emit_embedding};

rondo_status rondo_op_embedding(rondo_program *program, rondo_value table, rondo_value indices,
                                rondo_value *out_value) {
  const rondo_value inputs[] = {table, indices};
  return rondo_program_apply(program, &rondo_operator_embedding, inputs, 2, NULL, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* On a CPU a block looks at all indices, so there are few: enough for a usual number of workers. On CUDA a block has a
 * row, or this many columns of one, or where there are many, each of its warps has (embedding.cu). */
#define GRADIENT_BLOCKS 16
#define GRADIENT_COLUMNS 128
#define MANY_PIECES 4096

static rondo_grid gradient_grid(const rondo_emitter *emitter, const gather_shape *shape) {
  const size_t across = shape->columns / GRADIENT_COLUMNS + (shape->columns % GRADIENT_COLUMNS != 0);
  const size_t pieces = shape->rows * across;
  if (rondo_emit_is_cuda(emitter)) {
    return rondo_emit_grid(emitter, pieces, (rondo_grain){.cuda = pieces < MANY_PIECES ? 1 : RONDO_CUDA_THREADS / 32});
  }
  const size_t blocks = (shape->count + shape->rows) * shape->columns / GATHER_GRAIN + 1;
  const size_t share = shape->rows / (blocks < GRADIENT_BLOCKS ? blocks : GRADIENT_BLOCKS) + 1;
  return rondo_emit_grid(emitter, shape->rows, (rondo_grain){.cpu = share});
}

static void add_row(const float *restrict from, float *restrict to, size_t columns) {
  size_t j = 0;
  for (; j + RONDO_LANES <= columns; j += RONDO_LANES) {
    for (size_t lane = j; lane < j + RONDO_LANES; lane++) to[lane] += from[lane];
  }
  for (; j < columns; j++) to[j] += from[j];
}

/* A wrong index went to row 0 in the forward operator, and comes back there. */
static void gather_gradient(const gather_shape *shape, rondo_span rows, const int32_t *indices, const float *dy,
                            float *table) {
  memset(table + rows.first * shape->columns, 0, (rows.last - rows.first) * shape->columns * sizeof *table);
  for (size_t i = 0; i < shape->count; i++) {
    const bool right = indices[i] >= 0 && (size_t)indices[i] < shape->rows;
    const size_t row = right ? (size_t)indices[i] : 0;
    if (row < rows.first || row >= rows.last) continue;
    add_row(dy + i * shape->columns, table + row * shape->columns, shape->columns);
  }
}

static void embedding_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const gather_shape *shape = args[0];
  const int32_t *indices = RONDO_ARG(const int32_t *, 1);
  const float *dy = RONDO_ARG(const float *, 2);
  float *table = RONDO_ARG(float *, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    gather_gradient(shape, rondo_block_span(block, blocks, shape->rows, 1), indices, dy, table);
  }
}

static const rondo_kernel_options embedding_gradient_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "embedding_gradient", .cpu = embedding_gradient_cpu, RONDO_CUDA(embedding),
    .params = {RONDO_SCALAR(gather_shape), RONDO_READS, RONDO_READS, RONDO_WRITES}};

static rondo_status infer_embedding_gradient(const rondo_program *program, const rondo_operation *operation,
                                             rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_I32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, 1, RONDO_F32, RONDO_ANY_RANK));
  const rondo_shape *indices = rondo_operation_input(program, operation, 0);
  const rondo_shape *dy = rondo_operation_input(program, operation, 1);
  if (rondo_shape_elements(dy) != rondo_shape_elements(indices) * rondo_shape_last(dy)) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the gradient must have a row for each index");
  }
  results[0] = rondo_shape_matrix(RONDO_F32, operation->attributes.sizes[0], rondo_shape_last(dy));
  return RONDO_OK;
}

static rondo_status emit_embedding_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const gather_shape shape =
      shape_of(rondo_emit_shape(emitter, operation->results[0]), rondo_emit_shape(emitter, operation->inputs[0]));
  const int32_t *indices = rondo_emit_address(emitter, operation->inputs[0]);
  const float *dy = rondo_emit_address(emitter, operation->inputs[1]);
  float *table = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &embedding_gradient_code, gradient_grid(emitter, &shape),
                           RONDO_ARGS(&shape, &indices, &dy, &table));
}

const rondo_operator rondo_operator_embedding_gradient = {.name = "embedding_gradient",
                                                          .inputs = {"indices", "gradient"},
                                                          .required = 2,
                                                          .result_count = 1,
                                                          .infer = infer_embedding_gradient,
                                                          .emit = emit_embedding_gradient};
