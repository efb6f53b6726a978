/* SPDX-License-Identifier: MIT
 * The reductions over dimensions: sum, mean, prod, max and min. reductions.inc has a row for each way to combine
 * elements. This file turns a row into its kernels, and defines the operators and their gradients.
 *
 * The sum of the columns of a matrix, such as the gradient of a bias, has a kernel of its own, so that several sums can
 * be joined. Its bits are those of reduction.h without parts. Threads: as tensor/program/operator.h says.
 */
#include <math.h>
#include <string.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/operators/reduction/reduction.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"

/* The table -------------------------------------------------------------------------------------------------------- */

#define KERNEL(name, kernel)                                                                   \
  static void name##_##kernel##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) { \
    rondo_reduce_##kernel##_cpu(type, &name##_joining, blocks, args);                          \
  }                                                                                            \
  RONDO_NUMBER_KERNEL(name##_##kernel, name, RONDO_REDUCTION_PARAMETERS);

#define MERGE(name, number, formula)                                                                                  \
  RONDO_INLINE number name##_of(number joined, number x) { return formula; }                                          \
  RONDO_VECTORISED(name##_merge, (number *restrict into, const number *restrict x, size_t count), (into, x, count)) { \
    RONDO_EACH_LANE(i, lane, count, into[i] = name##_of(into[i], x[i]));                                              \
  }

#define REDUCTION(name, formula, none_value, integers_formula, no_integer_value)                              \
  MERGE(name##_floats, float, formula)                                                                        \
  MERGE(name##_integers, int64_t, integers_formula)                                                           \
  static const rondo_joining name##_joining = {name##_floats_merge, name##_integers_merge, none_value,        \
                                               no_integer_value};                                             \
  KERNEL(name, rows)                                                                                          \
  KERNEL(name, columns)                                                                                       \
  KERNEL(name, parts)                                                                                         \
  static const rondo_reduction_row name##_family = {name##_rows_code, name##_columns_code, name##_parts_code, \
                                                    .is_mean = false};

#include "tensor/operators/reduction/reductions.inc"

static const rondo_reduction_row mean_family = {sum_rows_code, sum_columns_code, sum_parts_code, .is_mean = true};

/* Sums of the columns of a matrix ---------------------------------------------------------------------------------- */

#define MATRIX_GRAIN ((rondo_grain){64, 32})

RONDO_INLINE void add_row(const float *restrict x, float *restrict sums, size_t columns) {
  RONDO_EACH_LANE(j, lane, columns, sums[j] += x[j]);
}

/* Sums at most a chunk of neighbouring columns, in batches of rows. */
RONDO_INLINE void sum_columns(rondo_type type, const rondo_columns *shape, const void *x, size_t first, size_t count,
                              float *sums) {
  float buffer[RONDO_CHUNK], batch[RONDO_CHUNK];
  memset(sums, 0, count * sizeof *sums);
  for (size_t row = 0; row < shape->rows;) {
    const size_t end = rondo_smaller(row + RONDO_JOINED_AT_ONCE, shape->rows);
    memset(batch, 0, count * sizeof *batch);
    for (; row < end; row++)
      add_row(rondo_load_chunk(type, x, first + row * shape->columns, count, buffer), batch, count);
    add_row(batch, sums, count);
  }
}

RONDO_INLINE void sum_span(rondo_type type, const rondo_columns *shape, const void *x, void *y, rondo_span span) {
  float buffer[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, span.first, span.last) {
    float *sums = rondo_chunk_of(type, y, at, buffer);
    sum_columns(type, shape, x, at, length, sums);
    rondo_store_chunk(type, y, at, length, sums);
  }
}

RONDO_VECTORISED_KERNEL(sum_matrix_cpu) {
  const rondo_columns *shape = args[0];
  const rondo_span span = rondo_blocks_span(blocks, shape->columns, RONDO_LANES);
  sum_span(type, shape, RONDO_ARG(const void *, 1), RONDO_ARG(void *, 2), span);
}

/* The shapes of joined operations, after the table. */
typedef struct columns_shapes {
  rondo_columns of[RONDO_MAX_JOINED];
} columns_shapes;

RONDO_VECTORISED_KERNEL(sum_matrix_joined_cpu) {
  const columns_shapes *shapes = args[1];
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    const size_t at = 2 + 2 * (size_t)share.operation;
    sum_span(type, &shapes->of[share.operation], RONDO_ARG(const void *, at + 1), RONDO_ARG(void *, at), share.span);
  }
}

RONDO_TYPED_KERNEL(sum_matrix, sum_matrix, RONDO_SCALAR(rondo_columns), RONDO_READS, RONDO_WRITES);

#define POINTERS RONDO_WRITES, RONDO_READS

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_SCALAR(columns_shapes),
                                                    RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_TYPED_KERNEL_LIST(sum_matrix_joined, sum_matrix, joined_parameters);

static bool sums_matrix(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  rondo_columns unused;
  return rondo_shape_is_float(value) && rondo_reduces_columns(value, operation, &unused);
}

static rondo_status emit_joined(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {RONDO_RESULT_NUMBER(0), 0};
  const rondo_type type = rondo_emit_shape(emitter, operations[0]->inputs[0])->type;
  const rondo_joined_kernel kernel = {
      &sum_matrix_joined_code[type], values, 2, 0, MATRIX_GRAIN, NULL, RONDO_MAX_JOINED};
  columns_shapes shapes = {.of = {{0}}};
  assert(count <= RONDO_MAX_JOINED);
  for (uint32_t i = 0; i < count; i++)
    (void)rondo_reduces_columns(rondo_emit_shape(emitter, operations[i]->inputs[0]), operations[i], &shapes.of[i]);
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_OPERANDS(RONDO_OBJECT(shapes)));
}

static const rondo_join sum_matrix_join = {
    .max = RONDO_MAX_JOINED, .is_typed = true, .of_any_attributes = true, .takes = sums_matrix, .emit = emit_joined};

/* Operators -------------------------------------------------------------------------------------------------------- */

static rondo_status prepare_sum(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                size_t *out_workspace_bytes) {
  if (!sums_matrix(program, &program->operations.items[operation]))
    return rondo_prepare_reduction(resources, program, operation, out_workspace_bytes);
  *out_workspace_bytes = 0;
  return RONDO_OK;
}

static rondo_status emit_sum(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  rondo_columns shape;
  if (!rondo_shape_is_float(value) || !rondo_reduces_columns(value, operation, &shape))
    return rondo_emit_reduction(emitter, operation);
  return rondo_emit_operands(emitter, operation, &sum_matrix_code[value->type],
                             rondo_emit_grid(emitter, shape.columns, MATRIX_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0)));
}

static rondo_status differentiate_sum(rondo_program *program, const rondo_operation *operation,
                                      const uint32_t *result_gradients, uint32_t *input_gradients) {
  return rondo_add_spread(program, operation, result_gradients[0], &input_gradients[0]);
}

static rondo_status differentiate_mean(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_attributes share = rondo_scale_attributes(1.0f / (float)rondo_reduction_elements(program, operation));
  uint32_t scaled;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_scale, &result_gradients[0], 1, &share, &scaled));
  return rondo_add_spread(program, operation, scaled, &input_gradients[0]);
}

/* dx = dy / (how many elements are the maximum) where x is the maximum, else 0; for min, the minimum. */
static rondo_status differentiate_extreme(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t x = operation->inputs[0];
  const rondo_type type = rondo_program_shape(program, x)->type;
  rondo_attributes kept = operation->attributes;
  uint32_t y, dy, is_extreme, ones, count, share;
  kept.flags[RONDO_REDUCE_KEEPS] = true;
  RONDO_TRY(rondo_add_kept(program, operation, operation->results[0], &y));
  RONDO_TRY(rondo_add_kept(program, operation, result_gradients[0], &dy));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_equal, (uint32_t[]){x, y}, 2, NULL, &is_extreme));
  ones = is_extreme;
  RONDO_TRY(rondo_program_add_cast(program, type, &ones));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_sum, &ones, 1, &kept, &count));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_div, (uint32_t[]){dy, count}, 2, NULL, &share));
  return rondo_program_add(program, &rondo_operator_select_gradient_a, (uint32_t[]){is_extreme, share}, 2, NULL,
                           &input_gradients[0]);
}

/* The product of the other elements where an element is the only one that is 0; elsewhere anything. `filled` is x with
 * 1 for 0, and `ones` are 1 where x is 0. */
static rondo_status add_product_of_others(rondo_program *program, const rondo_attributes *kept, uint32_t filled,
                                          uint32_t ones, uint32_t *out_value) {
  const rondo_attributes less_one = {.numbers = {1, -1}};
  uint32_t zeros, more, is_only, product;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_prod, &filled, 1, kept, &product));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_sum, &ones, 1, kept, &zeros));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_add_constant, &zeros, 1, &less_one, &more));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_logical_not, &more, 1, NULL, &is_only));
  return rondo_program_add(program, &rondo_operator_select_gradient_a, (uint32_t[]){is_only, product}, 2, NULL,
                           out_value);
}

/* dy y / x where x is not 0, and dy times the product of the others where it is. */
static rondo_status differentiate_prod(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t x = operation->inputs[0];
  const rondo_type type = rondo_program_shape(program, x)->type;
  rondo_attributes kept = operation->attributes;
  uint32_t y, dy, is_zero, ones, filled, others, parts[2];
  kept.flags[RONDO_REDUCE_KEEPS] = true;
  RONDO_TRY(rondo_add_kept(program, operation, operation->results[0], &y));
  RONDO_TRY(rondo_add_kept(program, operation, result_gradients[0], &dy));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_logical_not, &x, 1, NULL, &is_zero));
  ones = is_zero;
  RONDO_TRY(rondo_program_add_cast(program, type, &ones));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_add, (uint32_t[]){x, ones}, 2, NULL, &filled));
  RONDO_TRY(add_product_of_others(program, &kept, filled, ones, &others));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_mul, (uint32_t[]){dy, others}, 2, NULL, &others));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_mul, (uint32_t[]){dy, y}, 2, NULL, &y));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_div, (uint32_t[]){y, filled}, 2, NULL, &y));
  RONDO_TRY(
      rondo_program_add(program, &rondo_operator_select_gradient_a, (uint32_t[]){is_zero, others}, 2, NULL, &parts[0]));
  RONDO_TRY(
      rondo_program_add(program, &rondo_operator_select_gradient_b, (uint32_t[]){is_zero, y}, 2, NULL, &parts[1]));
  return rondo_program_add(program, &rondo_operator_add, parts, 2, NULL, &input_gradients[0]);
}

#define OPERATOR(operator, takes, differentiates, prepares, emits, joins)                                           \
  const rondo_operator rondo_operator_##operator= {.name = #operator,                                               \
                                                   .types = takes,                                                  \
                                                   .inputs = {"value"},                                             \
                                                   .required = 1,                                                   \
                                                   .result_count = 1,                                               \
                                                   .family = &operator##_family,                                    \
                                                   .infer = rondo_infer_reduction,                                  \
                                                   .differentiate = differentiates,                                 \
                                                   .prepare = prepares,                                             \
                                                   .emit = emits,                                                   \
                                                   .join = joins};                                                  \
  rondo_status rondo_op_##operator(rondo_program *program, rondo_value value, const size_t *dims, size_t dim_count, \
                                   bool keeps, rondo_value *out_value) {                                            \
    return rondo_apply_reduction(program, &rondo_operator_##operator, value, dims, dim_count, keeps, out_value);    \
  }

OPERATOR(sum, RONDO_NUMBERS, differentiate_sum, prepare_sum, emit_sum, &sum_matrix_join)
OPERATOR(mean, RONDO_FLOATS, differentiate_mean, rondo_prepare_reduction, rondo_emit_reduction, NULL)
OPERATOR(prod, RONDO_NUMBERS, differentiate_prod, rondo_prepare_reduction, rondo_emit_reduction, NULL)
OPERATOR(max, RONDO_ALL_TYPES, differentiate_extreme, rondo_prepare_reduction, rondo_emit_reduction, NULL)
OPERATOR(min, RONDO_ALL_TYPES, differentiate_extreme, rondo_prepare_reduction, rondo_emit_reduction, NULL)
