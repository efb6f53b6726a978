/* SPDX-License-Identifier: MIT
 * matmul_integer: products of matrices of 8-bit integers, in tiles (integer_product.h). Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/quantized/integer_product.h"

enum { A, B };
#define LEADING (RONDO_MAX_DIMENSIONS - 2)

/* A scalar argument of the kernels; without padding. The leading dimensions are those of the result, and the distances
 * of the matrices in a and b; 0 where one is repeated. */
typedef struct matmul_shape {
  size_t dims[LEADING], a_steps[LEADING], b_steps[LEADING];
  size_t matrices, m, k, n;
  rondo_integer_ending ending;
} matmul_shape;

/* The first elements of the matrices of product `number`. */
static void find_matrices(const matmul_shape *s, size_t number, size_t *out_a, size_t *out_b) {
  *out_a = *out_b = 0;
  for (size_t i = LEADING; i > 0; i--) {
    const size_t at = number % s->dims[i - 1];
    *out_a += at * s->a_steps[i - 1];
    *out_b += at * s->b_steps[i - 1];
    number /= s->dims[i - 1];
  }
}

/* Copies a panel of each factor: `depth` columns of a from its element `a`, and rows of b from its element `b`. */
static void gather(const matmul_shape *s, const void *from_a, const uint8_t *from_b, size_t a, size_t b, size_t depth,
                   int32_t a_zero, rondo_integer_tile *tile) {
  for (size_t i = 0; i < tile->rows; i++) {
    int16_t *to = &tile->a[i * RONDO_INTEGER_DEPTH];
    for (size_t k = 0; k < depth; k++)
      to[k] = (int16_t)(rondo_byte_at(from_a, s->ending.a_unsigned, a + i * s->k + k) - a_zero);
    if (depth % 2 != 0) to[depth] = 0;
  }
  for (size_t k = 0; k < depth; k++) memcpy(&tile->b[k * RONDO_INTEGER_COLUMNS], from_b + b + k * s->n, tile->columns);
}

static void find_zeros(const matmul_shape *s, const void *zeros, size_t column, size_t count, int32_t *out) {
  for (size_t j = 0; j < count; j++)
    out[j] = zeros == NULL ? 0 : rondo_byte_at(zeros, s->ending.b_unsigned, s->ending.zeros_b == 1 ? 0 : column + j);
}

/* shape, a, b, a_zero, b_zero, bias, scale, result_zero, result */
static rondo_integer_arrays arrays_of(void *const *args) {
  return (rondo_integer_arrays){.a_zero = RONDO_ARG(const void *, 3),
                                .b_zero = RONDO_ARG(const void *, 4),
                                .bias = RONDO_ARG(const int32_t *, 5),
                                .scale = RONDO_ARG(const float *, 6),
                                .result_zero = RONDO_ARG(const void *, 7),
                                .result = RONDO_ARG(void *, 8)};
}

static size_t across(const matmul_shape *s) { return rondo_divide_up(s->n, RONDO_INTEGER_COLUMNS); }
static size_t down(const matmul_shape *s) { return rondo_divide_up(s->m, RONDO_INTEGER_ROWS); }

static void multiply_tile(const matmul_shape *s, void *const *args, size_t number, rondo_integer_tile *tile) {
  const rondo_integer_arrays arrays = arrays_of(args);
  const size_t product = number / across(s) / down(s), row = number / across(s) % down(s) * RONDO_INTEGER_ROWS;
  const size_t column = number % across(s) * RONDO_INTEGER_COLUMNS;
  const int32_t a_zero = arrays.a_zero == NULL ? 0 : rondo_byte_at(arrays.a_zero, s->ending.a_unsigned, 0);
  int32_t zeros[RONDO_INTEGER_COLUMNS];
  size_t a, b;
  tile->rows = rondo_smaller(s->m - row, RONDO_INTEGER_ROWS);
  tile->columns = rondo_smaller(s->n - column, RONDO_INTEGER_COLUMNS);
  memset(tile->sums, 0, sizeof tile->sums);
  find_matrices(s, product, &a, &b);
  find_zeros(s, arrays.b_zero, column, tile->columns, zeros);
  for (size_t from = 0; from < s->k; from += RONDO_INTEGER_DEPTH) {
    const size_t depth = rondo_smaller(s->k - from, RONDO_INTEGER_DEPTH);
    gather(s, RONDO_ARG(const void *, 1), RONDO_ARG(const uint8_t *, 2), a + row * s->k + from,
           b + from * s->n + column, depth, a_zero, tile);
    rondo_integer_multiply(tile, depth, s->ending.b_unsigned != 0);
    if (arrays.b_zero != NULL) rondo_integer_subtract(tile, depth, zeros);
  }
  for (size_t i = 0; i < tile->rows; i++)
    rondo_integer_store(&s->ending, &arrays, tile, i, column, (product * s->m + row + i) * s->n + column);
}

static void matmul_integer_cpu(rondo_blocks blocks, void *const *args) {
  const matmul_shape *s = args[0];
  rondo_integer_tile tile;
  memset(tile.b, 0, sizeof tile.b); /* bytes after the columns are read */
  RONDO_EACH_TILE(number, blocks, s->matrices * down(s) * across(s)) multiply_tile(s, args, number, &tile);
}

RONDO_UNTYPED_KERNEL(matmul_integer, integer_product, RONDO_SCALAR(matmul_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

/* The size of a leading dimension of a factor of this rank, aligned at the last; 1 if it has none. */
static size_t leading_size(const rondo_shape *shape, size_t rank, size_t dimension) {
  const size_t missing = rank - shape->rank;
  return dimension < missing ? 1 : shape->dims[dimension - missing];
}

static rondo_status infer_matmul_integer(const rondo_program *program, const rondo_operation *operation,
                                         rondo_shape *results) {
  const rondo_shape *a = rondo_operation_input(program, operation, A),
                    *b = rondo_operation_input(program, operation, B);
  const rondo_shape *larger = a->rank > b->rank ? a : b;
  rondo_type type;
  bool fits = a->rank >= 2 && b->rank >= 2 && a->dims[a->rank - 1] == b->dims[b->rank - 2];
  size_t dims[RONDO_MAX_DIMENSIONS];
  for (uint32_t i = 0; fits && i + 2 < larger->rank; i++) {
    const size_t of_a = leading_size(a, larger->rank, i), of_b = leading_size(b, larger->rank, i);
    fits = of_a == of_b || of_a == 1 || of_b == 1;
    dims[i] = of_a == 1 ? of_b : of_a;
  }
  if (!fits)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a must be [.., m, k] and b [.., k, n], with leading dimensions that can be broadcast");
  dims[larger->rank - 2] = a->dims[a->rank - 2];
  dims[larger->rank - 1] = b->dims[b->rank - 1];
  RONDO_TRY(rondo_integer_require(program, operation, dims[larger->rank - 1], &type));
  return rondo_shape_make("matmul_integer", type, dims, larger->rank, &results[0]);
}

static matmul_shape shape_of(const rondo_shape *a, const rondo_shape *b, const rondo_shape *result) {
  matmul_shape s = {.matrices = 1, .m = result->dims[result->rank - 2], .n = result->dims[result->rank - 1]};
  s.k = a->dims[a->rank - 1];
  size_t step_a = s.m * s.k, step_b = s.k * s.n;
  for (size_t i = LEADING; i > 0; i--) {
    const bool exists = i + result->rank > RONDO_MAX_DIMENSIONS;
    const size_t d = exists ? i + result->rank - RONDO_MAX_DIMENSIONS - 1 : 0;
    const size_t of_a = exists ? leading_size(a, result->rank, d) : 1;
    const size_t of_b = exists ? leading_size(b, result->rank, d) : 1;
    s.dims[i - 1] = exists ? result->dims[d] : 1;
    s.a_steps[i - 1] = of_a == 1 ? 0 : step_a;
    s.b_steps[i - 1] = of_b == 1 ? 0 : step_b;
    s.matrices *= s.dims[i - 1];
    step_a *= of_a;
    step_b *= of_b;
  }
  return s;
}

static rondo_status emit_matmul_integer(rondo_emitter *emitter, const rondo_operation *operation) {
  matmul_shape shape =
      shape_of(rondo_emit_shape(emitter, operation->inputs[A]), rondo_emit_shape(emitter, operation->inputs[B]),
               rondo_emit_shape(emitter, operation->results[0]));
  shape.ending = rondo_integer_ending_of(emitter, operation, false);
  const size_t elements = shape.matrices * shape.m * shape.n;
  const rondo_grain grain = {1, RONDO_CUDA_THREADS};
  const rondo_grid grid = rondo_emit_is_cuda(emitter) ? rondo_emit_grid(emitter, elements, grain)
                                                      : rondo_tile_grid(shape.matrices * down(&shape) * across(&shape));
  return rondo_emit_operands(
      emitter, operation, &matmul_integer_code, grid,
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(A), RONDO_INPUT(B), RONDO_INPUT(RONDO_INTEGER_A_ZERO),
                     RONDO_INPUT(RONDO_INTEGER_B_ZERO), RONDO_INPUT(RONDO_INTEGER_BIAS),
                     RONDO_INPUT(RONDO_INTEGER_SCALE), RONDO_INPUT(RONDO_INTEGER_RESULT_ZERO), RONDO_RESULT(0)));
}

RONDO_OPERATOR(matmul_integer, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .inputs = {"a", "b", "a_zero", "b_zero", "bias", "scale", "result_zero"}, .required = 2,
               .result_count = 1, .infer = infer_matmul_integer, .emit = emit_matmul_integer);

rondo_status rondo_op_matmul_integer(rondo_program *program, rondo_value a, rondo_value b,
                                     const rondo_integer_product_options *products, rondo_value *out_value) {
  rondo_value inputs[RONDO_INTEGER_INPUTS] = {a, b};
  rondo_attributes attributes = {0};
  RONDO_TRY(rondo_program_begin(program, "matmul_integer", out_value));
  RONDO_TRY(rondo_integer_read("matmul_integer", products, inputs, &attributes));
  return rondo_program_apply(program, &rondo_operator_matmul_integer, inputs, RONDO_INTEGER_INPUTS, &attributes,
                             out_value);
}
