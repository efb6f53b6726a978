/* SPDX-License-Identifier: MIT
 * dft and stft: discrete Fourier transforms by products with matrices of sines and cosines, in F32. Angles are whole
 * multiples of the smallest one, modulo a turn, so that they are exact for any length. Numbers are 1 or 2 parts, real
 * and imaginary. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "tensor/operators/common/operator_tools.h"

#define TURN 6.283185307179586

/* A transform of `length` numbers of `parts` into the first `count`. */
typedef struct transform {
  size_t length, count, parts;
  bool inverse;
} transform;

/* Angles as [length, count]. */
static rondo_status add_angles(rondo_program *program, const transform *t, rondo_value *out_angles) {
  rondo_value from, to, turn;
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, t->length, 0, 1, &from));
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, t->count, 0, 1, &to));
  RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)t->length, &turn));
  RONDO_TRY(rondo_op_reshape(program, from, (const size_t[]){t->length, 1}, 2, &from));
  RONDO_TRY(rondo_op_mul(program, from, to, out_angles));
  RONDO_TRY(rondo_op_remainder(program, *out_angles, turn, out_angles));
  RONDO_TRY(rondo_op_cast(program, *out_angles, RONDO_F32, out_angles));
  return rondo_op_scale(program, *out_angles, (float)(TURN / (double)t->length), out_angles);
}

/* The matrix [length, parts, count, 2]. */
static rondo_status add_matrix(rondo_program *program, const transform *t, rondo_value *out_matrix) {
  const float share = t->inverse ? 1.0f / (float)t->length : 1;
  rondo_value angles, cosines, sines, minus, rows[2];
  RONDO_TRY(add_angles(program, t, &angles));
  RONDO_TRY(rondo_op_cos(program, angles, &cosines));
  RONDO_TRY(rondo_op_sin(program, angles, &sines));
  RONDO_TRY(rondo_op_scale(program, cosines, share, &cosines));
  RONDO_TRY(rondo_op_scale(program, sines, t->inverse ? -share : share, &sines));
  RONDO_TRY(rondo_op_neg(program, sines, &minus));
  RONDO_TRY(rondo_op_stack(program, (const rondo_value[]){cosines, minus}, 2, 2, &rows[0]));
  RONDO_TRY(rondo_op_stack(program, (const rondo_value[]){sines, cosines}, 2, 2, &rows[1]));
  if (t->parts == 2) return rondo_op_stack(program, rows, 2, 1, out_matrix);
  return rondo_op_reshape(program, rows[0], (const size_t[]){t->length, 1, t->count, 2}, 4, out_matrix);
}

/* x [.., length, parts] -> [.., count, 2]; `shape` is that of x. */
static rondo_status add_transform(rondo_program *program, const transform *t, const rondo_shape *shape,
                                  rondo_value *inout_x) {
  const size_t rows = rondo_shape_elements_of(shape, 0, shape->rank - 2);
  rondo_shape result = *shape;
  rondo_value matrix;
  RONDO_TRY(add_matrix(program, t, &matrix));
  RONDO_TRY(rondo_op_reshape(program, matrix, (const size_t[]){t->length * t->parts, t->count * 2}, 2, &matrix));
  RONDO_TRY(rondo_op_reshape(program, *inout_x, (const size_t[]){rows, t->length * t->parts}, 2, inout_x));
  RONDO_TRY(rondo_op_matmul(program, *inout_x, matrix, (rondo_value){0}, inout_x));
  result.dims[shape->rank - 2] = t->count;
  result.dims[shape->rank - 1] = 2;
  return rondo_op_reshape(program, *inout_x, result.dims, result.rank, inout_x);
}

/* Cuts the dimension before the last to this length, or adds zeros. */
static rondo_status set_length(rondo_program *program, size_t length, rondo_shape *shape, rondo_value *inout_x) {
  const size_t d = shape->rank - 2, before = shape->dims[d];
  const size_t start[RONDO_MAX_DIMENSIONS] = {0};
  int64_t none[RONDO_MAX_DIMENSIONS] = {0}, after[RONDO_MAX_DIMENSIONS] = {0};
  shape->dims[d] = length;
  if (length < before) return rondo_op_slice(program, *inout_x, start, shape->dims, NULL, inout_x);
  after[d] = (int64_t)(length - before);
  return length == before ? RONDO_OK : rondo_op_pad(program, *inout_x, none, after, RONDO_PAD_CONSTANT, 0, inout_x);
}

/* The dimension is exchanged with the one before the last, and back. */
static rondo_status add_dft(rondo_program *program, rondo_value x, rondo_shape shape, size_t dimension, transform t,
                            uint32_t *out_result) {
  const size_t d = shape.rank - 2, size = shape.dims[d];
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  if (dimension != d) RONDO_TRY(rondo_op_transpose(program, x, dimension, d, &x));
  shape.dims[d] = shape.dims[dimension];
  if (dimension != d) shape.dims[dimension] = size;
  RONDO_TRY(set_length(program, t.length, &shape, &x));
  RONDO_TRY(add_transform(program, &t, &shape, &x));
  if (dimension != d) RONDO_TRY(rondo_op_transpose(program, x, dimension, d, &x));
  return rondo_program_resolve(program, x, "dft", "result", out_result);
}

static rondo_status fail_shape(const char *call, const rondo_shape *x, const char *needs) {
  char text[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, rondo_shape_is_float(x) ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "%s: x is %s; it must be of floats, %s", call, rondo_shape_text(text, x), needs);
}

#define MOST_LENGTH ((size_t)1 << 20)

rondo_status rondo_op_dft(rondo_program *program, rondo_value x, const rondo_dft_options *options,
                          rondo_value *out_value) {
  rondo_dft_options given;
  uint32_t index, result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin_of(program, "dft", x, "x", out_value, &index));
  RONDO_TRY(rondo_versioned_read("rondo_dft_options", options, &given, sizeof given));
  const rondo_shape shape = *rondo_program_shape(program, index);
  const size_t parts = rondo_shape_last(&shape);
  if (!rondo_shape_is_float(&shape) || shape.rank < 2 || parts > 2 || given.dimension + 1 >= shape.rank)
    return fail_shape("dft", &shape, "with a last dimension of 1 or 2, and another one to transform");
  const size_t length = given.length == 0 ? shape.dims[given.dimension] : given.length;
  if (length > MOST_LENGTH || (given.inverse && given.onesided))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "dft: a length of %zu%s: the length is at most 2^20, and an inverse is not onesided", length,
                      given.inverse && given.onesided ? ", inverse and onesided" : "");
  const transform t = {length, given.onesided ? length / 2 + 1 : length, parts, given.inverse};
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_dft(program, x, shape, given.dimension, t, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}

/* The weights of a conv: [2 count, parts, length], the matrix times the window. */
static rondo_status add_frames(rondo_program *program, rondo_value signal, rondo_value window, size_t step,
                               const transform *t, const rondo_shape *shape, uint32_t *out_result) {
  const rondo_conv_options frames = {RONDO_CONV_OPTIONS_INIT, .stride = {step}};
  const size_t count = (shape->dims[1] - t->length) / step + 1;
  rondo_value weight;
  RONDO_TRY(add_matrix(program, t, &weight));
  if (window.id != 0) {
    RONDO_TRY(rondo_op_cast(program, window, RONDO_F32, &window));
    RONDO_TRY(rondo_op_reshape(program, window, (const size_t[]){t->length, 1, 1, 1}, 4, &window));
    RONDO_TRY(rondo_op_mul(program, weight, window, &weight));
  }
  RONDO_TRY(rondo_op_permute(program, weight, (const size_t[]){2, 3, 1, 0}, &weight));
  RONDO_TRY(rondo_op_reshape(program, weight, (const size_t[]){t->count * 2, t->parts, t->length}, 3, &weight));
  RONDO_TRY(rondo_op_cast(program, signal, RONDO_F32, &signal));
  RONDO_TRY(rondo_op_transpose(program, signal, 1, 2, &signal));
  RONDO_TRY(rondo_op_conv(program, signal, weight, &frames, &signal));
  RONDO_TRY(rondo_op_transpose(program, signal, 1, 2, &signal));
  RONDO_TRY(rondo_op_reshape(program, signal, (const size_t[]){shape->dims[0], count, t->count, 2}, 4, &signal));
  return rondo_program_resolve(program, signal, "stft", "result", out_result);
}

rondo_status rondo_op_stft(rondo_program *program, rondo_value signal, rondo_value window, size_t frame_step,
                           size_t frame_length, bool onesided, rondo_value *out_value) {
  uint32_t index, of_window, result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin_of(program, "stft", signal, "signal", out_value, &index));
  const rondo_shape shape = *rondo_program_shape(program, index);
  if (!rondo_shape_is_float(&shape) || shape.rank != 3 || shape.dims[2] > 2 || frame_length == 0 || frame_step == 0 ||
      frame_length > shape.dims[1])
    return fail_shape("stft", &shape, "[n, m, 1 or 2], with frames of 1 to m elements and a step of at least 1");
  if (window.id != 0) {
    RONDO_TRY(rondo_program_resolve(program, window, "stft", "window", &of_window));
    const rondo_shape *given = rondo_program_shape(program, of_window);
    if (!rondo_shape_is_float(given) || given->rank != 1 || given->dims[0] != frame_length)
      return fail_shape("stft", given, "as the window: [frame_length]");
  }
  const transform t = {frame_length, onesided ? frame_length / 2 + 1 : frame_length, shape.dims[2], false};
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_frames(program, signal, window, frame_step, &t, &shape, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
