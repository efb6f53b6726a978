/* SPDX-License-Identifier: MIT
 * dft and stft: discrete Fourier transforms by products with matrices of sines and cosines, in F32. Angles are whole
 * multiples of the smallest one, modulo a turn, so that they are exact for any length. Numbers are 1 or 2 parts, real
 * and imaginary. The inverse to real numbers adds a number that is left out, the conjugate of another one, by a factor
 * of 2. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "tensor/operators/common/composition.h"

#define TURN 6.283185307179586

/* A transform of the first `given` of `length` numbers, each of `parts`, into the first `count`, each of 2 parts; or
 * the inverse to `count` real numbers, where those that are not given are the conjugates of others. */
typedef struct transform {
  size_t length, given, count, parts;
  bool inverse, is_real;
} transform;

/* Angles as [given, count]. */
static rondo_status add_angles(rondo_program *program, const transform *t, rondo_value *out_angles) {
  rondo_value from, to, turn;
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, t->given, 0, 1, &from));
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, t->count, 0, 1, &to));
  RONDO_TRY(rondo_op_full(program, RONDO_I64, NULL, 0, (double)t->length, &turn));
  RONDO_TRY(rondo_op_reshape(program, from, (const size_t[]){t->given, 1}, 2, &from));
  RONDO_TRY(rondo_op_mul(program, from, to, out_angles));
  RONDO_TRY(rondo_op_remainder(program, *out_angles, turn, out_angles));
  RONDO_TRY(rondo_op_cast(program, *out_angles, RONDO_F32, out_angles));
  return rondo_op_scale(program, *out_angles, (float)(TURN / (double)t->length), out_angles);
}

/* How often a number counts, [given, 1]: the first once, those with a conjugate that is not given twice. */
static rondo_status add_repeats(rondo_program *program, const transform *t, rondo_value *out_repeats) {
  const size_t without = t->length % 2 == 0 ? 1 : 0; /* the last one is its own conjugate */
  const size_t twice = t->given > 1 + without ? t->given - 1 - without : 0;
  int64_t before[] = {1, 0}, after[] = {(int64_t)(t->given - 1 - twice), 0};
  if (twice == 0) return rondo_op_full(program, RONDO_F32, (const size_t[]){t->given, 1}, 2, 1, out_repeats);
  RONDO_TRY(rondo_op_full(program, RONDO_F32, (const size_t[]){twice, 1}, 2, 2, out_repeats));
  return rondo_op_pad(program, *out_repeats, before, after, RONDO_PAD_CONSTANT, 1, out_repeats);
}

/* The matrix [given, parts, count], of cosines and sines with their sign and share. */
static rondo_status add_real_matrix(rondo_program *program, const transform *t, rondo_value cosines, rondo_value sines,
                                    rondo_value *out_matrix) {
  rondo_value repeats;
  RONDO_TRY(add_repeats(program, t, &repeats));
  RONDO_TRY(rondo_op_mul(program, cosines, repeats, &cosines));
  RONDO_TRY(rondo_op_mul(program, sines, repeats, &sines));
  *out_matrix = cosines;
  return t->parts == 1 ? RONDO_OK : rondo_op_stack(program, (const rondo_value[]){cosines, sines}, 2, 1, out_matrix);
}

/* The matrix [given, parts, count, 2], or [given, parts, count]. */
static rondo_status add_matrix(rondo_program *program, const transform *t, rondo_value *out_matrix) {
  const float share = t->inverse ? 1.0f / (float)t->length : 1;
  rondo_value angles, cosines, sines, minus, rows[2];
  RONDO_TRY(add_angles(program, t, &angles));
  RONDO_TRY(rondo_op_cos(program, angles, &cosines));
  RONDO_TRY(rondo_op_sin(program, angles, &sines));
  RONDO_TRY(rondo_op_scale(program, cosines, share, &cosines));
  RONDO_TRY(rondo_op_scale(program, sines, t->inverse ? -share : share, &sines));
  if (t->is_real) return add_real_matrix(program, t, cosines, sines, out_matrix);
  RONDO_TRY(rondo_op_neg(program, sines, &minus));
  RONDO_TRY(rondo_op_stack(program, (const rondo_value[]){cosines, minus}, 2, 2, &rows[0]));
  RONDO_TRY(rondo_op_stack(program, (const rondo_value[]){sines, cosines}, 2, 2, &rows[1]));
  if (t->parts == 2) return rondo_op_stack(program, rows, 2, 1, out_matrix);
  return rondo_op_reshape(program, rows[0], (const size_t[]){t->given, 1, t->count, 2}, 4, out_matrix);
}

/* x [.., given, parts] -> [.., count, 2], or [.., count, 1]; `shape` is that of x. */
static rondo_status add_transform(rondo_program *program, const transform *t, const rondo_shape *shape,
                                  rondo_value *inout_x) {
  const size_t rows = rondo_shape_elements_of(shape, 0, shape->rank - 2), results = t->is_real ? 1 : 2;
  rondo_shape result = *shape;
  rondo_value matrix;
  RONDO_TRY(add_matrix(program, t, &matrix));
  RONDO_TRY(rondo_op_reshape(program, matrix, (const size_t[]){t->given * t->parts, t->count * results}, 2, &matrix));
  RONDO_TRY(rondo_op_reshape(program, *inout_x, (const size_t[]){rows, t->given * t->parts}, 2, inout_x));
  RONDO_TRY(rondo_op_matmul(program, *inout_x, matrix, (rondo_value){0}, inout_x));
  result.dims[shape->rank - 2] = t->count;
  result.dims[shape->rank - 1] = results;
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
                            rondo_value *out_value) {
  const size_t d = shape.rank - 2, size = shape.dims[d];
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  if (dimension != d) RONDO_TRY(rondo_op_transpose(program, x, dimension, d, &x));
  shape.dims[d] = shape.dims[dimension];
  if (dimension != d) shape.dims[dimension] = size;
  RONDO_TRY(set_length(program, t.given, &shape, &x));
  RONDO_TRY(add_transform(program, &t, &shape, &x));
  *out_value = x;
  return dimension == d ? RONDO_OK : rondo_op_transpose(program, x, dimension, d, out_value);
}

static rondo_status fail_shape(const char *what, const rondo_shape *given, const char *needs) {
  char text[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, rondo_shape_is_float(given) ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                    "%s is %s; it must be of floats, %s", what, rondo_shape_text(text, given), needs);
}

#define MOST_LENGTH ((size_t)1 << 20)

/* The length of the transform, if the options do not say it. */
static size_t default_length(const rondo_dft_options *options, size_t size) {
  return options->inverse && options->onesided ? 2 * (size - 1) : size;
}

static transform transform_of(const rondo_dft_options *options, size_t length, size_t parts) {
  const bool is_real = options->inverse && options->onesided;
  const size_t half = length / 2 + 1;
  return (transform){.length = length,
                     .given = is_real ? half : length,
                     .count = options->onesided && !is_real ? half : length,
                     .parts = parts,
                     .inverse = options->inverse,
                     .is_real = is_real};
}

rondo_status rondo_op_dft(rondo_program *program, rondo_value x, const rondo_dft_options *options,
                          rondo_value *out_value) {
  rondo_dft_options given;
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "dft", out_value));
  RONDO_TRY(rondo_given_shape(program, x, "dft", "x", &shape));
  RONDO_TRY(rondo_versioned_read("rondo_dft_options", options, &given, sizeof given));
  const size_t parts = rondo_shape_last(&shape);
  if (!rondo_shape_is_float(&shape) || shape.rank < 2 || parts > 2 || given.dimension >= shape.rank - 1)
    return fail_shape("dft: x", &shape, "with a last dimension of 1 or 2, and another one to transform");
  const size_t length = given.length == 0 ? default_length(&given, shape.dims[given.dimension]) : given.length;
  if (length > MOST_LENGTH || length == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "dft: a length of %zu: it is 1 to 2^20",
                      length);
  const transform t = transform_of(&given, length, parts);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_dft(program, x, shape, given.dimension, t, &made);
  return rondo_compose_end(program, "dft", mark, status, made, out_value);
}

/* The weights of a conv: [2 count, parts, length], the matrix times the window. */
static rondo_status add_frames(rondo_program *program, rondo_value signal, rondo_value window, size_t step,
                               const transform *t, const rondo_shape *shape, rondo_value *out_value) {
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
  return rondo_op_reshape(program, signal, (const size_t[]){shape->dims[0], count, t->count, 2}, 4, out_value);
}

rondo_status rondo_op_stft(rondo_program *program, rondo_value signal, rondo_value window, size_t frame_step,
                           size_t frame_length, bool onesided, rondo_value *out_value) {
  rondo_shape shape, of_window;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "stft", out_value));
  RONDO_TRY(rondo_given_shape(program, signal, "stft", "signal", &shape));
  if (!rondo_shape_is_float(&shape) || shape.rank != 3 || shape.dims[2] > 2 || frame_length == 0 || frame_step == 0 ||
      frame_length > shape.dims[1])
    return fail_shape("stft: the signal", &shape,
                      "[n, m, 1 or 2], with frames of 1 to m elements and a step of at least 1");
  if (window.id != 0) {
    RONDO_TRY(rondo_given_shape(program, window, "stft", "window", &of_window));
    if (!rondo_shape_is_float(&of_window) || of_window.rank != 1 || of_window.dims[0] != frame_length)
      return fail_shape("stft: the window", &of_window, "[frame_length]");
  }
  const transform t = transform_of(&(const rondo_dft_options){.onesided = onesided}, frame_length, shape.dims[2]);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_frames(program, signal, window, frame_step, &t, &shape, &made);
  return rondo_compose_end(program, "stft", mark, status, made, out_value);
}
