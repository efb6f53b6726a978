/* SPDX-License-Identifier: MIT
 * matmul: a' · b' (+ bias), where a' is a, or a transposed (flag 0), and b' likewise (flag 1); the public operator sets
 * neither, the gradients need both. And column_sum, the gradient of the bias.
 *
 * The result is cut into tiles by its shape alone, one block a tile, each computed by one thread (on CUDA, by the
 * threads of the block in a fixed order): that is what makes it independent of the number of workers.
 */
#include <string.h>

#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/gemm.h"
#include "tensor/operators/kernel_support.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { TRANSPOSE_A, TRANSPOSE_B }; /* flags */

/* Tiles ------------------------------------------------------------------------------------------------------------ */

/* A tile is big enough to use a worker's caches well. Where that leaves few of them, they are halved, until there are
 * enough for a usual number of workers or they are hardly worth a worker's while. */
#define TILE_EDGE 128
#define ENOUGH_TILES 8
#define ENOUGH_PRODUCTS 1048576.0 /* multiplications in a tile: some 10 microseconds */

typedef struct tiling {
  size_t rows, columns; /* of a tile */
  size_t down, across;  /* tiles */
} tiling;

static size_t tiles_of(size_t edge, size_t tile) { return edge / tile + (edge % tile != 0); }

static tiling tiling_of(size_t m, size_t n, size_t k) {
  tiling t = {.rows = m < TILE_EDGE ? m : TILE_EDGE, .columns = n < TILE_EDGE ? n : TILE_EDGE};
  while (tiles_of(m, t.rows) * tiles_of(n, t.columns) < ENOUGH_TILES &&
         (double)t.rows * (double)t.columns * (double)k > ENOUGH_PRODUCTS && (t.rows > 16 || t.columns > 16)) {
    if (t.columns >= t.rows) {
      t.columns = (t.columns + 1) / 2;
    } else {
      t.rows = (t.rows + 1) / 2;
    }
  }
  t.down = tiles_of(m, t.rows);
  t.across = tiles_of(n, t.columns);
  return t;
}

/* Of the tiles that gemm.cuh knows the largest of which there are enough to keep a large GPU's multiprocessors busy. */
#define ENOUGH_CUDA_TILES 128

static tiling cuda_tiling_of(size_t m, size_t n) {
  size_t edge = 128;
  while (edge > 32 && (double)tiles_of(m, edge) * (double)tiles_of(n, edge) < ENOUGH_CUDA_TILES) edge /= 2;
  return (tiling){edge, edge, tiles_of(m, edge), tiles_of(n, edge)};
}

/* Matrix product --------------------------------------------------------------------------------------------------- */

/* What the kernel gets as one scalar; without padding, because arguments are compared as bytes. */
typedef struct matmul_shape {
  size_t m, n, k;
  tiling tiles;
  uint64_t transpose_a, transpose_b;
} matmul_shape;

static void multiply_tile(const matmul_shape *shape, size_t tile, const float *a, const float *b, const float *bias,
                          float *c) {
  const size_t row = tile / shape->tiles.across * shape->tiles.rows;
  const size_t column = tile % shape->tiles.across * shape->tiles.columns;
  const size_t rows = shape->m - row < shape->tiles.rows ? shape->m - row : shape->tiles.rows;
  const size_t columns = shape->n - column < shape->tiles.columns ? shape->n - column : shape->tiles.columns;
  float *corner = c + row * shape->n + column;
  for (size_t i = 0; bias != NULL && i < rows; i++) {
    memcpy(corner + i * shape->n, bias + column, columns * sizeof *bias);
  }
  const rondo_gemm gemm = {.transpose_a = shape->transpose_a != 0,
                           .transpose_b = shape->transpose_b != 0,
                           .accumulate = bias != NULL,
                           .m = rows,
                           .n = columns,
                           .k = shape->k,
                           .a = shape->transpose_a != 0 ? a + row : a + row * shape->k,
                           .b = shape->transpose_b != 0 ? b + column * shape->k : b + column,
                           .c = corner,
                           .a_stride = shape->transpose_a != 0 ? shape->m : shape->k,
                           .b_stride = shape->transpose_b != 0 ? shape->k : shape->n,
                           .c_stride = shape->n};
  rondo_gemm_run(&gemm);
}

static void matmul_cpu(rondo_blocks blocks, void *const *args) {
  const matmul_shape *shape = args[0];
  const float *a = RONDO_ARG(const float *, 1);
  const float *b = RONDO_ARG(const float *, 2);
  float *c = RONDO_ARG(float *, 3);
  for (size_t tile = blocks.first; tile < blocks.last; tile++) multiply_tile(shape, tile, a, b, NULL, c);
}

static void matmul_bias_cpu(rondo_blocks blocks, void *const *args) {
  const matmul_shape *shape = args[0];
  const float *a = RONDO_ARG(const float *, 1);
  const float *b = RONDO_ARG(const float *, 2);
  const float *bias = RONDO_ARG(const float *, 3);
  float *c = RONDO_ARG(float *, 4);
  for (size_t tile = blocks.first; tile < blocks.last; tile++) multiply_tile(shape, tile, a, b, bias, c);
}

static const rondo_kernel_options matmul_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "matmul", .cpu = matmul_cpu, RONDO_CUDA(matmul),
    .params = {RONDO_SCALAR(matmul_shape), RONDO_READS, RONDO_READS, RONDO_WRITES}};

static const rondo_kernel_options matmul_bias_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "matmul_bias", .cpu = matmul_bias_cpu, RONDO_CUDA(matmul_bias),
    .params = {RONDO_SCALAR(matmul_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};

static matmul_shape shape_of(const rondo_shape *a, const rondo_shape *b, const rondo_attributes *attributes) {
  const bool transpose_a = attributes->flags[TRANSPOSE_A];
  const bool transpose_b = attributes->flags[TRANSPOSE_B];
  const size_t m = a->dims[transpose_a ? 1 : 0];
  const size_t k = a->dims[transpose_a ? 0 : 1];
  const size_t n = b->dims[transpose_b ? 0 : 1];
  return (matmul_shape){.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b};
}

static rondo_status infer_matmul(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  for (uint32_t i = 0; i < 2; i++) RONDO_TRY(rondo_require_input(program, operation, i, RONDO_F32, 2));
  const rondo_shape *b = rondo_operation_input(program, operation, 1);
  const rondo_shape *bias = rondo_operation_input(program, operation, 2);
  const matmul_shape shape = shape_of(rondo_operation_input(program, operation, 0), b, &operation->attributes);
  const size_t inner = b->dims[operation->attributes.flags[TRANSPOSE_B] ? 1 : 0];
  if (shape.k != inner) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the inner dimensions %zu and %zu differ",
                                shape.k, inner);
  }
  if (bias != NULL) {
    RONDO_TRY(rondo_require_input(program, operation, 2, RONDO_F32, 1));
    if (bias->dims[0] != shape.n) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the bias has %zu elements for %zu columns",
                                  bias->dims[0], shape.n);
    }
  }
  results[0] = rondo_shape_matrix(RONDO_F32, shape.m, shape.n);
  return RONDO_OK;
}

static rondo_status add_product(rondo_program *program, uint32_t a, uint32_t b, bool transpose_a, bool transpose_b,
                                uint32_t *out_value) {
  const uint32_t inputs[] = {a, b};
  const rondo_attributes attributes = {.flags = {transpose_a, transpose_b}};
  return rondo_program_add(program, &rondo_operator_matmul, inputs, 2, &attributes, out_value);
}

/* With y = a' b': da' = dy b'ᵀ and db' = a'ᵀ dy, transposed once more where a or b is stored transposed. */
static rondo_status differentiate_matmul(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t a = operation->inputs[0];
  const uint32_t b = operation->inputs[1];
  const uint32_t dy = result_gradients[0];
  const bool transpose_a = operation->attributes.flags[TRANSPOSE_A];
  const bool transpose_b = operation->attributes.flags[TRANSPOSE_B];
  RONDO_TRY(transpose_a ? add_product(program, b, dy, transpose_b, true, &input_gradients[0])
                        : add_product(program, dy, b, false, !transpose_b, &input_gradients[0]));
  RONDO_TRY(transpose_b ? add_product(program, dy, a, true, transpose_a, &input_gradients[1])
                        : add_product(program, a, dy, !transpose_a, false, &input_gradients[1]));
  if (operation->inputs[2] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_column_sum, &dy, 1, NULL, &input_gradients[2]);
}

/* rondo_step_call; user: a product. */
static rondo_status run_product(rondo_resources *resources, rondo_stream *stream, const void *user) {
  const rondo_product *product;
  (void)resources;
  memcpy(&product, user, sizeof product);
  return rondo_product_run(product, stream);
}

static rondo_status prepare_matmul(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                   size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const matmul_shape shape = shape_of(rondo_operation_input(program, operation, 0),
                                      rondo_operation_input(program, operation, 1), &operation->attributes);
  const rondo_product_shape product = {.m = shape.m,
                                       .n = shape.n,
                                       .k = shape.k,
                                       .transpose_a = shape.transpose_a != 0,
                                       .transpose_b = shape.transpose_b != 0,
                                       .has_bias = operation->inputs[2] != RONDO_NO_VALUE};
  return rondo_resources_add_product(resources, number, &product, out_workspace_bytes);
}

static rondo_status emit_product(rondo_emitter *emitter, rondo_product *product, const rondo_operation *operation) {
  const rondo_product_memory memory = {.a = rondo_emit_address(emitter, operation->inputs[0]),
                                       .b = rondo_emit_address(emitter, operation->inputs[1]),
                                       .bias = rondo_emit_address(emitter, operation->inputs[2]),
                                       .c = rondo_emit_address(emitter, operation->results[0]),
                                       .workspace = rondo_emit_workspace(emitter)};
  RONDO_TRY(rondo_product_bind(product, &memory));
  return rondo_emit_call(emitter, run_product, &product, sizeof product);
}

static rondo_status emit_matmul(rondo_emitter *emitter, const rondo_operation *operation) {
  rondo_product *product = rondo_emit_product(emitter);
  if (product != NULL) return emit_product(emitter, product, operation);
  matmul_shape shape = shape_of(rondo_emit_shape(emitter, operation->inputs[0]),
                                rondo_emit_shape(emitter, operation->inputs[1]), &operation->attributes);
  shape.tiles = rondo_emit_is_cuda(emitter) ? cuda_tiling_of(shape.m, shape.n) : tiling_of(shape.m, shape.n, shape.k);
  const rondo_grid grid = {.x = (uint32_t)(shape.tiles.across * shape.tiles.down)};
  const float *a = rondo_emit_address(emitter, operation->inputs[0]);
  const float *b = rondo_emit_address(emitter, operation->inputs[1]);
  const float *bias = rondo_emit_address(emitter, operation->inputs[2]);
  float *c = rondo_emit_address(emitter, operation->results[0]);
  rondo_gemm_prepare();
  if (bias == NULL) return rondo_emit_kernel(emitter, &matmul_code, grid, RONDO_ARGS(&shape, &a, &b, &c));
  return rondo_emit_kernel(emitter, &matmul_bias_code, grid, RONDO_ARGS(&shape, &a, &b, &bias, &c));
}

const rondo_operator rondo_operator_matmul = {.name = "matmul",
                                              .inputs = {"a", "b", "bias"},
                                              .required = 2,
                                              .result_count = 1,
                                              .infer = infer_matmul,
                                              .differentiate = differentiate_matmul,
                                              .prepare = prepare_matmul,
                                              .emit = emit_matmul};

rondo_status rondo_op_matmul(rondo_program *program, rondo_value a, rondo_value b, rondo_value bias,
                             rondo_value *out_value) {
  const rondo_value inputs[] = {a, b, bias};
  return rondo_program_apply(program, &rondo_operator_matmul, inputs, 3, NULL, out_value);
}

/* Column sums ------------------------------------------------------------------------------------------------------ */

#define COLUMN_GRAIN ((rondo_grain){64, 32})

static void sum_columns(const float *restrict x, size_t m, size_t n, size_t columns, float *restrict y) {
  memset(y, 0, columns * sizeof *y);
  for (size_t row = 0; row < m; row++, x += n) {
    size_t j = 0;
    for (; j + RONDO_LANES <= columns; j += RONDO_LANES) {
      for (size_t lane = j; lane < j + RONDO_LANES; lane++) y[lane] += x[lane];
    }
    for (; j < columns; j++) y[j] += x[j];
  }
}

static void column_sum_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = RONDO_ARG(const float *, 0);
  float *y = RONDO_ARG(float *, 1);
  const size_t m = RONDO_ARG(size_t, 2);
  const size_t n = RONDO_ARG(size_t, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, n, RONDO_LANES);
    sum_columns(x + span.first, m, n, span.last - span.first, y + span.first);
  }
}

static const rondo_kernel_options column_sum_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "column_sum", .cpu = column_sum_cpu, RONDO_CUDA(column_sum),
    .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t)}};

static rondo_status infer_column_sum(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, 2));
  results[0] = rondo_shape_vector(RONDO_F32, rondo_operation_input(program, operation, 0)->dims[1]);
  return RONDO_OK;
}

static rondo_status emit_column_sum(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const float *x = rondo_emit_address(emitter, operation->inputs[0]);
  float *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &column_sum_code, rondo_emit_grid(emitter, shape->dims[1], COLUMN_GRAIN),
                           RONDO_ARGS(&x, &y, &shape->dims[0], &shape->dims[1]));
}

const rondo_operator rondo_operator_column_sum = {.name = "column_sum",
                                                  .inputs = {"value"},
                                                  .required = 1,
                                                  .result_count = 1,
                                                  .infer = infer_column_sum,
                                                  .emit = emit_column_sum};
