/* SPDX-License-Identifier: MIT
 * rotary: rotary position embedding (Su et al. 2021, RoFormer). Pairs of elements of a head are rotated by an angle
 * that is the row's position times the pair's frequency; the gradient rotates back. rotary_angles computes the cosines
 * and sines of all rows once for all heads, layers and directions, as operations that compute the same run once. Angles
 * are computed in double precision, so that they are right at large positions. Threads: as tensor/program/operator.h
 * says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/attention/attention.h"
#include "tensor/operators/common/operator_tools.h"

enum { POSITIONS, FREQUENCIES }; /* inputs of rotary_angles */
enum { X, ANGLES };              /* inputs of rotary */
enum {
  DIMS,
  HEADS,
  COPIED
};                             /* sizes: rotated elements of a head; of packed rows, the heads that are rotated, and
                                  those that are copied */
enum { BASE, POSITION_SCALE }; /* numbers */
enum { INTERLEAVED, BACK, PACKED }; /* flags */

/* Angles ----------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel; without padding. */
typedef struct angles_shape {
  size_t rows, pairs;
  double step, position_scale; /* frequency i is 2^(-i step) */
} angles_shape;

#define TURN 6.283185307179586477

/* Each row of the result is the cosines, then the sines, of all pairs. */
static void rotary_angles_cpu(rondo_blocks blocks, void *const *args) {
  const angles_shape *shape = args[0];
  const int32_t *positions = RONDO_ARG(const int32_t *, 1);
  const float *given = RONDO_ARG(const float *, 2);
  float *to = RONDO_ARG(float *, 3);
  double frequencies[RONDO_HEAD_MAX / 2];
  assert(shape->pairs <= RONDO_HEAD_MAX / 2);
  for (size_t i = 0; i < shape->pairs; i++)
    frequencies[i] = given != NULL ? (double)given[i] : exp2(-(double)i * shape->step);
  RONDO_EACH_ITEM(row, blocks, shape->rows) {
    const double position = (double)positions[row] * shape->position_scale;
    for (size_t i = 0; i < shape->pairs; i++) {
      const double angle = position * frequencies[i];
      const float rest = (float)(angle - TURN * rint(angle / TURN));
      to[2 * row * shape->pairs + i] = cosf(rest);
      to[(2 * row + 1) * shape->pairs + i] = sinf(rest);
    }
  }
}

RONDO_UNTYPED_KERNEL(rotary_angles, rotary_angles, RONDO_SCALAR(angles_shape), RONDO_READS, RONDO_READS, RONDO_WRITES);

static rondo_status infer_angles(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *positions = rondo_operation_input(program, operation, POSITIONS);
  const size_t dims = operation->attributes.sizes[DIMS];
  RONDO_TRY(rondo_require_input(program, operation, POSITIONS, RONDO_I32, positions->rank == 1 ? 1 : 2));
  RONDO_TRY(rondo_require_input(program, operation, FREQUENCIES, RONDO_F32, 1));
  const rondo_shape *frequencies = rondo_operation_input(program, operation, FREQUENCIES);
  if (frequencies != NULL && frequencies->dims[0] != dims / 2)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "%zu rotated elements of a head need %zu frequencies", dims, dims / 2);
  results[0] = *positions;
  results[0].type = RONDO_F32;
  results[0].dims[results[0].rank++] = dims;
  return RONDO_OK;
}

static rondo_status emit_angles(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_attributes *attributes = &operation->attributes;
  const size_t dims = attributes->sizes[DIMS];
  const angles_shape shape = {.rows = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[POSITIONS])),
                              .pairs = dims / 2,
                              .step = 2 * log2((double)attributes->numbers[BASE]) / (double)dims,
                              .position_scale = (double)attributes->numbers[POSITION_SCALE]};
  return rondo_emit_operands(
      emitter, operation, &rotary_angles_code,
      rondo_emit_grid(emitter, shape.rows, (rondo_grain){512 / dims + 1, RONDO_CUDA_THREADS / dims + 1}),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(POSITIONS), RONDO_INPUT(FREQUENCIES), RONDO_RESULT(0)));
}

RONDO_OPERATOR(rotary_angles, .inputs = {"positions", "frequencies"}, .required = 1, .result_count = 1,
               .infer = infer_angles, .emit = emit_angles);

/* Rotation --------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel; without padding. Row i of x, out of all heads, has the angles of `batch` and `row`.
 */
typedef struct rotary_shape {
  size_t batches, heads, rows, size; /* of x */
  size_t rotated;                    /* the first heads of a batch */
  size_t pairs;
  size_t angle_batch;   /* from one batch to the next, in rows of angles; 0: all have the same */
  uint32_t packed;      /* heads are inside of rows */
  uint32_t interleaved; /* a pair is two neighbours, else it is half of the rotated elements apart */
  uint64_t back;        /* the other direction */
} rotary_shape;

/* The head of row i, and its row of angles. */
static size_t head_of(const rotary_shape *shape, size_t i, size_t *out_angle) {
  const size_t inner = shape->packed != 0 ? shape->heads : shape->rows,
               outer = i / inner % (shape->packed != 0 ? shape->rows : shape->heads);
  const size_t head = shape->packed != 0 ? i % inner : outer, row = shape->packed != 0 ? outer : i % inner;
  *out_angle = i / (shape->heads * shape->rows) * shape->angle_batch + row;
  return head;
}

RONDO_INLINE void rotate_halves(size_t pairs, const float *restrict cosines, const float *restrict sines, float sign,
                                const float *restrict x, float *restrict y) {
  RONDO_EACH_LANE(i, lane, pairs, y[i] = x[i] * cosines[i] - sign * x[i + pairs] * sines[i]);
  RONDO_EACH_LANE(i, lane, pairs, y[i + pairs] = x[i + pairs] * cosines[i] + sign * x[i] * sines[i]);
}

RONDO_INLINE void rotate_neighbours(size_t pairs, const float *restrict cosines, const float *restrict sines,
                                    float sign, const float *restrict x, float *restrict y) {
  for (size_t i = 0; i < pairs; i++) {
    y[2 * i] = x[2 * i] * cosines[i] - sign * x[2 * i + 1] * sines[i];
    y[2 * i + 1] = x[2 * i + 1] * cosines[i] + sign * x[2 * i] * sines[i];
  }
}

RONDO_VECTORISED(rotate_row,
                 (const rotary_shape *shape, rondo_type type, const void *x, size_t at, const float *angles, void *y),
                 (shape, type, x, at, angles, y)) {
  float buffers[2][RONDO_HEAD_MAX];
  const float sign = shape->back != 0 ? -1.0f : 1.0f;
  const float *from = rondo_load_chunk(type, x, at, shape->size, buffers[0]);
  float *to = rondo_chunk_of(type, y, at, buffers[1]);
  if (shape->interleaved != 0)
    rotate_neighbours(shape->pairs, angles, angles + shape->pairs, sign, from, to);
  else
    rotate_halves(shape->pairs, angles, angles + shape->pairs, sign, from, to);
  memcpy(to + 2 * shape->pairs, from + 2 * shape->pairs, (shape->size - 2 * shape->pairs) * sizeof *to);
  rondo_store_chunk(type, y, at, shape->size, to);
}

static void rotary_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rotary_shape *shape = args[0];
  const char *x = RONDO_ARG(const char *, 1);
  const float *angles = RONDO_ARG(const float *, 2);
  char *y = RONDO_ARG(char *, 3);
  const size_t bytes = rondo_type_bytes(type);
  RONDO_EACH_ITEM(i, blocks, shape->batches * shape->heads * shape->rows) {
    const size_t at = i * shape->size;
    size_t angle;
    if (head_of(shape, i, &angle) < shape->rotated)
      rotate_row(shape, type, x, at, angles + 2 * angle * shape->pairs, y);
    else
      memcpy(y + at * bytes, x + at * bytes, shape->size * bytes);
  }
}

RONDO_TYPED_KERNEL(rotary, rotary, RONDO_SCALAR(rotary_shape), RONDO_READS, RONDO_READS, RONDO_WRITES);

/* The rows of x: [b, n, t, d], or [b, t, n d] with the heads of the attributes. */
static rotary_shape shape_of(const rondo_shape *x, const rondo_attributes *attributes) {
  const size_t *sizes = attributes->sizes, heads = sizes[HEADS] + sizes[COPIED];
  rotary_shape shape = {.batches = x->dims[0],
                        .heads = x->dims[1],
                        .rows = x->dims[2],
                        .size = x->dims[3],
                        .rotated = x->dims[1],
                        .pairs = sizes[DIMS] / 2,
                        .packed = attributes->flags[PACKED],
                        .interleaved = attributes->flags[INTERLEAVED],
                        .back = attributes->flags[BACK]};
  if (!attributes->flags[PACKED]) return shape;
  shape.heads = heads;
  shape.rows = x->dims[1];
  shape.size = x->dims[2] / heads;
  shape.rotated = sizes[HEADS];
  return shape;
}

/* x is right already when the angles are made; they may still be those of other rows. */
static rondo_status infer_rotary(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const rondo_shape *angles = rondo_operation_input(program, operation, ANGLES);
  const rotary_shape shape = shape_of(x, &operation->attributes);
  const size_t rows = angles->dims[angles->rank - 2], batches = angles->rank == 3 ? angles->dims[0] : 1;
  results[0] = *x;
  if (rows == shape.rows && (batches == 1 || batches == shape.batches)) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "positions must be [t] or [b, t], with t %zu and b %zu or 1", shape.rows, shape.batches);
}

static rondo_status differentiate_rotary(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {result_gradients[0], operation->inputs[ANGLES]};
  rondo_attributes attributes = operation->attributes;
  attributes.flags[BACK] = !attributes.flags[BACK];
  if (result_gradients[0] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_rotary, inputs, 2, &attributes, &input_gradients[X]);
}

static rondo_status emit_rotary(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *x = rondo_emit_shape(emitter, operation->inputs[X]);
  const rondo_shape *angles = rondo_emit_shape(emitter, operation->inputs[ANGLES]);
  rotary_shape shape = shape_of(x, &operation->attributes);
  const rondo_grain grain = {4096 / shape.size + 1, RONDO_CUDA_THREADS / 32};
  shape.angle_batch = angles->rank == 3 && angles->dims[0] > 1 ? shape.rows : 0;
  return rondo_emit_operands(emitter, operation, &rotary_code[x->type],
                             rondo_emit_grid(emitter, shape.batches * shape.heads * shape.rows, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(ANGLES), RONDO_RESULT(0)));
}

RONDO_OPERATOR(rotary, .types = RONDO_FLOATS, .inputs = {"x", "angles"}, .required = 2, .result_count = 1,
               .infer = infer_rotary, .differentiate = differentiate_rotary, .emit = emit_rotary);

/* Call ------------------------------------------------------------------------------------------------------------- */

static const char call[] = "rotary";

/* The elements of a head of x. */
static rondo_status head_size(const rondo_shape *x, const rondo_rotary_options *o, size_t *out_size) {
  const bool is_packed = o->heads > 0;
  const size_t rank = is_packed ? 3 : 4, heads = is_packed ? o->heads + 2 * o->groups : 1, row = rondo_shape_last(x);
  const bool fits = o->groups <= row && o->heads <= row && heads > 0 && row % heads == 0;
  if (!rondo_shape_is_float(x))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: x must be F32, F16 or BF16", call);
  if (x->rank != rank || !fits)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: x must be %s", call,
                      is_packed ? "[b, t, (h + 2 g) d] for the heads h and groups g of the options" : "[b, n, t, d]");
  *out_size = row / heads;
  if (*out_size <= RONDO_HEAD_MAX) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a head has %zu elements; the maximum is %d", call,
                    *out_size, RONDO_HEAD_MAX);
}

static rondo_status read_options(const rondo_shape *x, const rondo_rotary_options *o, rondo_attributes *out) {
  size_t size = 0;
  RONDO_TRY(head_size(x, o, &size));
  const size_t dims = o->dims == 0 ? size : o->dims;
  if (dims % 2 != 0 || dims > size)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
        "%s: %zu elements of a head cannot be rotated: the number must be even, and at most the head's %zu", call, dims,
        size);
  if (!(o->base >= 0 && o->base < INFINITY) || !isfinite(o->position_scale))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: base %g and position_scale %g must be finite, and base above 0, or 0 for the default", call,
                      (double)o->base, (double)o->position_scale);
  *out = (rondo_attributes){.sizes = {[DIMS] = dims, [HEADS] = o->heads, [COPIED] = o->groups},
                            .size_count = 3,
                            .numbers = {[BASE] = o->base == 0 ? 10000.0f : o->base,
                                        [POSITION_SCALE] = o->position_scale == 0 ? 1.0f : o->position_scale},
                            .flags = {[INTERLEAVED] = o->interleaved, [PACKED] = o->heads > 0}};
  if (o->heads > 0) out->sizes[HEADS] += o->groups; /* q and k */
  return RONDO_OK;
}

/* Only what the angles depend on, so that calls that differ in the rest share them. */
static rondo_attributes of_angles(const rondo_attributes *attributes) {
  rondo_attributes of = {.sizes = {[DIMS] = attributes->sizes[DIMS]}, .size_count = 1};
  memcpy(of.numbers, attributes->numbers, sizeof of.numbers);
  return of;
}

static rondo_status add_rotary(rondo_program *program, const uint32_t *inputs, uint32_t x,
                               const rondo_attributes *attributes, uint32_t *out) {
  const rondo_attributes of = of_angles(attributes);
  uint32_t terms[] = {x, 0};
  RONDO_TRY(rondo_program_add(program, &rondo_operator_rotary_angles, inputs, 2, &of, &terms[ANGLES]));
  return rondo_program_add(program, &rondo_operator_rotary, terms, 2, attributes, out);
}

rondo_status rondo_op_rotary(rondo_program *program, rondo_value x, rondo_value positions,
                             const rondo_rotary_options *options, rondo_value *out_value) {
  rondo_rotary_options given;
  rondo_attributes attributes;
  uint32_t index = 0, result = 0, inputs[2] = {RONDO_NO_VALUE, RONDO_NO_VALUE};
  RONDO_TRY(rondo_program_begin_of(program, call, x, "x", out_value, &index));
  RONDO_TRY(rondo_versioned_read("rondo_rotary_options", options, &given, sizeof given));
  RONDO_TRY(rondo_program_resolve(program, positions, call, "positions", &inputs[POSITIONS]));
  if (given.frequencies.id != 0)
    RONDO_TRY(rondo_program_resolve(program, given.frequencies, call, "frequencies", &inputs[FREQUENCIES]));
  RONDO_TRY(read_options(rondo_program_shape(program, index), &given, &attributes));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_rotary(program, inputs, index, &attributes, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
