/* SPDX-License-Identifier: MIT
 * Losses of two values of one type and shape that are a sum or a mean over the elements. pair_losses.inc has a row for
 * each loss. This file turns a row into its kernels, its operators and the public function. The CUDA kernels are called
 * <name>_parts_TYPE and <name>_gradient_TYPE. The elements are split into parts by their count alone. One block sums a
 * part, and one block adds the parts. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/operator_tools.h"

/* The `family` of a row. */
typedef struct pair_loss {
  const rondo_kernel_options *code; /* one for each type */
  const rondo_operator *gradient;   /* NULL for the gradient itself */
} pair_loss;

/* A scalar argument of the kernels; without padding. */
typedef struct pair_shape {
  size_t count;
  size_t part;   /* elements of a part */
  size_t second; /* of a gradient: 1 for the second input */
} pair_shape;

typedef void (*loss_chunk)(const float *restrict a, const float *restrict b, float *restrict sums, size_t count);
typedef void (*loss_slope_chunk)(const float *restrict a, const float *restrict b, float scale, bool second,
                                 float *restrict to, size_t count);

enum { MEAN, SECOND }; /* flags: a mean, not a sum; of a gradient: for the second input */

#define PART 8192 /* the minimum number of elements in a part */
#define MAX_PARTS 1024

static pair_shape shape_of(const rondo_shape *shape, const rondo_attributes *attributes) {
  const size_t count = rondo_shape_elements(shape);
  assert(count > 0);
  return (pair_shape){count, rondo_larger(rondo_divide_up(count, MAX_PARTS), PART), attributes->flags[SECOND]};
}

static size_t parts_of(const pair_shape *shape) { return rondo_divide_up(shape->count, shape->part); }

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static double part_sum(rondo_type type, loss_chunk chunk, const pair_shape *shape, size_t part, const void *a,
                       const void *b) {
  float buffers[2][RONDO_CHUNK];
  const size_t first = part * shape->part;
  const size_t last = rondo_smaller(first + shape->part, shape->count);
  double total = 0;
  assert(first < last);
  RONDO_EACH_CHUNK(at, length, first, last) {
    float sums[RONDO_LANES] = {0};
    chunk(rondo_load_chunk(type, a, at, length, buffers[0]), rondo_load_chunk(type, b, at, length, buffers[1]), sums,
          length);
    total += (double)rondo_join_lanes(sums);
  }
  return total;
}

static void pair_parts(rondo_type type, loss_chunk chunk, rondo_blocks blocks, void *const *args) {
  const pair_shape *shape = args[0];
  const void *a = RONDO_ARG(const void *, 1);
  const void *b = RONDO_ARG(const void *, 2);
  double *parts = RONDO_ARG(double *, 3);
  RONDO_EACH_ITEM(part, blocks, parts_of(shape)) parts[part] = part_sum(type, chunk, shape, part, a, b);
}

static void pair_loss_join_cpu(rondo_blocks blocks, void *const *args) {
  const double *parts = RONDO_ARG(const double *, 0);
  const size_t count = RONDO_ARG(size_t, 1);
  const double divisor = RONDO_ARG(double, 2);
  float *loss = RONDO_ARG(float *, 3);
  double sum = 0;
  (void)blocks; /* one */
  for (size_t i = 0; i < count; i++) sum += parts[i];
  *loss = (float)(sum / divisor);
}

RONDO_UNTYPED_KERNEL(pair_loss_join, pair_loss_join, RONDO_READS, RONDO_SCALAR(size_t), RONDO_SCALAR(double),
                     RONDO_WRITES);

static void pair_slope(rondo_type type, loss_slope_chunk chunk, rondo_blocks blocks, void *const *args) {
  const pair_shape *shape = args[0];
  const float factor = RONDO_ARG(float, 1);
  const void *a = RONDO_ARG(const void *, 2);
  const void *b = RONDO_ARG(const void *, 3);
  const float scale = *RONDO_ARG(const float *, 4) * factor;
  void *d = RONDO_ARG(void *, 5);
  float buffers[3][RONDO_CHUNK];
  const rondo_span span = rondo_blocks_span(blocks, shape->count, RONDO_LANES);
  RONDO_EACH_CHUNK(at, length, span.first, span.last) {
    float *to = rondo_chunk_of(type, d, at, buffers[2]);
    chunk(rondo_load_chunk(type, a, at, length, buffers[0]), rondo_load_chunk(type, b, at, length, buffers[1]), scale,
          shape->second != 0, to, length);
    rondo_store_chunk(type, d, at, length, to);
  }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_pair_loss(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_same_shape(program, operation, 0, 1));
  results[0] = rondo_shape_scalar(RONDO_F32);
  return RONDO_OK;
}

static rondo_status infer_pair_slope(const rondo_program *program, const rondo_operation *operation,
                                     rondo_shape *results) {
  RONDO_TRY(infer_pair_loss(program, operation, results));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status differentiate_pair_loss(rondo_program *program, const rondo_operation *operation,
                                            const uint32_t *result_gradients, uint32_t *input_gradients) {
  const pair_loss *family = operation->row->family;
  const uint32_t inputs[] = {operation->inputs[0], operation->inputs[1], result_gradients[0]};
  rondo_attributes attributes = operation->attributes;
  for (uint32_t i = 0; i < 2; i++) {
    attributes.flags[SECOND] = i == 1;
    RONDO_TRY(rondo_program_add(program, family->gradient, inputs, 3, &attributes, &input_gradients[i]));
  }
  return RONDO_OK;
}

static rondo_status prepare_pair_loss(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                      size_t *out_workspace_bytes) {
  const rondo_operation *added = &program->operations.items[operation];
  const pair_shape shape = shape_of(rondo_operation_input(program, added, 0), &added->attributes);
  (void)resources;
  *out_workspace_bytes = parts_of(&shape) * sizeof(double);
  return RONDO_OK;
}

static rondo_status emit_pair_loss(rondo_emitter *emitter, const rondo_operation *operation) {
  const pair_loss *family = operation->row->family;
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const pair_shape shape = shape_of(value, &operation->attributes);
  const size_t parts = parts_of(&shape);
  const double divisor = operation->attributes.flags[MEAN] ? (double)shape.count : 1;
  RONDO_TRY(rondo_emit_operands(emitter, operation, &family->code[value->type],
                                rondo_emit_grid(emitter, parts, (rondo_grain){1, 1}),
                                RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_INPUT(1), RONDO_WORKSPACE)));
  return rondo_emit_operands(
      emitter, operation, &pair_loss_join_code, (rondo_grid){.x = 1},
      RONDO_OPERANDS(RONDO_WORKSPACE, RONDO_OBJECT(parts), RONDO_OBJECT(divisor), RONDO_RESULT(0)));
}

static rondo_status emit_pair_slope(rondo_emitter *emitter, const rondo_operation *operation) {
  const pair_loss *family = operation->row->family;
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const pair_shape shape = shape_of(value, &operation->attributes);
  const float factor = operation->attributes.flags[MEAN] ? 1.0f / (float)shape.count : 1.0f;
  return rondo_emit_operands(emitter, operation, &family->code[value->type],
                             rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(factor), RONDO_INPUT(0), RONDO_INPUT(1),
                                            RONDO_INPUT(2), RONDO_RESULT(0)));
}

static rondo_status apply_pair_loss(rondo_program *program, const rondo_operator *row, rondo_value a, rondo_value b,
                                    rondo_combine combine, rondo_value *out_value) {
  const rondo_value inputs[] = {a, b};
  const rondo_attributes attributes = {.flags = {combine == RONDO_COMBINE_MEAN}};
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require_combine(row->name, combine));
  return rondo_program_apply(program, row, inputs, 2, &attributes, out_value);
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define FORMULA RONDO_INLINE
#define PARTS_PARAMETERS RONDO_SCALAR(pair_shape), RONDO_READS, RONDO_READS, RONDO_WRITES
#define SLOPE_PARAMETERS \
  RONDO_SCALAR(pair_shape), RONDO_SCALAR(float), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES

#define CPU_FUNCTIONS(loss, formula, slope_in_a, slope_in_b)                                                          \
  RONDO_INLINE float loss##_of(float a, float b) { return formula; }                                                  \
  RONDO_INLINE float loss##_slope_a(float a, float b) { return slope_in_a; }                                          \
  RONDO_INLINE float loss##_slope_b(float a, float b) {                                                               \
    (void)b;                                                                                                          \
    return slope_in_b;                                                                                                \
  }                                                                                                                   \
  RONDO_VECTORISED(loss##_chunk,                                                                                      \
                   (const float *restrict a, const float *restrict b, float *restrict sums, size_t count),            \
                   (a, b, sums, count)) {                                                                             \
    RONDO_EACH_LANE(i, lane, count, sums[lane] += loss##_of(a[i], b[i]));                                             \
  }                                                                                                                   \
  RONDO_VECTORISED(                                                                                                   \
      loss##_slope_chunk,                                                                                             \
      (const float *restrict a, const float *restrict b, float scale, bool second, float *restrict to, size_t count), \
      (a, b, scale, second, to, count)) {                                                                             \
    if (second)                                                                                                       \
      RONDO_EACH_LANE(i, lane, count, to[i] = scale * loss##_slope_b(a[i], b[i]));                                    \
    else                                                                                                              \
      RONDO_EACH_LANE(i, lane, count, to[i] = scale * loss##_slope_a(a[i], b[i]));                                    \
  }                                                                                                                   \
  static void loss##_parts_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                             \
    pair_parts(type, loss##_chunk, blocks, args);                                                                     \
  }                                                                                                                   \
  static void loss##_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {                          \
    pair_slope(type, loss##_slope_chunk, blocks, args);                                                               \
  }

#define PAIR_LOSS(loss, input, formula, slope_in_a, slope_in_b)                                                  \
  CPU_FUNCTIONS(loss, formula, slope_in_a, slope_in_b)                                                           \
  RONDO_TYPED_KERNEL(loss##_parts, loss, PARTS_PARAMETERS);                                                      \
  RONDO_TYPED_KERNEL(loss##_gradient, loss, SLOPE_PARAMETERS);                                                   \
  static const pair_loss loss##_family = {loss##_parts_code, &rondo_operator_##loss##_gradient};                 \
  static const pair_loss loss##_gradient_family = {.code = loss##_gradient_code};                                \
  const rondo_operator rondo_operator_##loss = {.name = #loss,                                                   \
                                                .types = RONDO_FLOATS,                                           \
                                                .inputs = {input, "target"},                                     \
                                                .required = 2,                                                   \
                                                .result_count = 1,                                               \
                                                .family = &loss##_family,                                        \
                                                .infer = infer_pair_loss,                                        \
                                                .differentiate = differentiate_pair_loss,                        \
                                                .prepare = prepare_pair_loss,                                    \
                                                .emit = emit_pair_loss};                                         \
  const rondo_operator rondo_operator_##loss##_gradient = {.name = #loss "_gradient",                            \
                                                           .inputs = {input, "target", "gradient"},              \
                                                           .required = 3,                                        \
                                                           .result_count = 1,                                    \
                                                           .family = &loss##_gradient_family,                    \
                                                           .infer = infer_pair_slope,                            \
                                                           .emit = emit_pair_slope};                             \
  rondo_status rondo_op_##loss(rondo_program *program, rondo_value a, rondo_value target, rondo_combine combine, \
                               rondo_value *out_value) {                                                         \
    return apply_pair_loss(program, &rondo_operator_##loss, a, target, combine, out_value);                      \
  }

#include "tensor/operators/loss/pair_losses.inc"
