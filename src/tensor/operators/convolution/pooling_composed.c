/* SPDX-License-Identifier: MIT
 * lp_pool and max_unpool, which consist of other operators: powers around a pool that sums, and a scatter into zeros.
 * Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "tensor/operators/common/composition.h"

/* |x|^p; p is at least 1. */
static rondo_status add_power(rondo_program *program, rondo_value *inout_value, float p) {
  rondo_value exponent;
  if (p == 2) return rondo_op_square(program, *inout_value, inout_value);
  RONDO_TRY(rondo_op_abs(program, *inout_value, inout_value));
  if (p == 1) return RONDO_OK;
  RONDO_TRY(rondo_op_full(program, RONDO_F32, NULL, 0, (double)p, &exponent));
  return rondo_op_pow(program, *inout_value, exponent, inout_value);
}

static rondo_status add_root(rondo_program *program, rondo_value *inout_value, float p) {
  rondo_value exponent;
  if (p == 1) return RONDO_OK;
  if (p == 2) return rondo_op_sqrt(program, *inout_value, inout_value);
  RONDO_TRY(rondo_op_full(program, RONDO_F32, NULL, 0, 1 / (double)p, &exponent));
  return rondo_op_pow(program, *inout_value, exponent, inout_value);
}

/* Sums of powers of F16 easily overflow, so all of it is F32. */
static rondo_status add_lp_pool(rondo_program *program, rondo_value x, rondo_type type, float p,
                                const rondo_pooling_options *sum, rondo_value *out_value) {
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(add_power(program, &x, p));
  RONDO_TRY(rondo_op_avg_pool(program, x, sum, &x));
  RONDO_TRY(add_root(program, &x, p));
  return rondo_op_cast(program, x, type, out_value);
}

rondo_status rondo_op_lp_pool(rondo_program *program, rondo_value x, float p, const rondo_pooling_options *options,
                              rondo_value *out_value) {
  rondo_pooling_options sum;
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "lp_pool", out_value));
  RONDO_TRY(rondo_given_shape(program, x, "lp_pool", "x", &shape));
  RONDO_TRY(rondo_require("lp_pool", "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_pooling_options", options, &sum, sizeof sum));
  if (!rondo_shape_is_float(&shape))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "lp_pool: x is %s; it must be f32, f16 or bf16",
                      rondo_type_name(shape.type));
  if (!(p >= 1 && isfinite(p)))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "lp_pool: p is %g; it must be a finite number of at least 1", (double)p);
  sum.divisor = 1;
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_lp_pool(program, x, shape.type, p, &sum, &made);
  return rondo_compose_end(program, "lp_pool", mark, status, made, out_value);
}

/* x and indices become rows, one for each channel of each image. */
static rondo_status add_unpool(rondo_program *program, rondo_value x, rondo_value indices, const rondo_shape *shape,
                               const rondo_shape *result, rondo_value *out_value) {
  const size_t rows = result->dims[0] * result->dims[1];
  const size_t to[] = {rows, rondo_shape_elements(result) / rows}, from[] = {rows, rondo_shape_elements(shape) / rows};
  rondo_value zeros;
  RONDO_TRY(rondo_op_reshape(program, x, from, 2, &x));
  RONDO_TRY(rondo_op_reshape(program, indices, from, 2, &indices));
  RONDO_TRY(rondo_op_full(program, result->type, to, 2, 0, &zeros));
  RONDO_TRY(rondo_op_scatter(program, zeros, 1, indices, x, &x));
  return rondo_compose_reshape(program, x, result, out_value);
}

static rondo_status check_unpool(const rondo_shape *x, const rondo_shape *indices) {
  char text[RONDO_SHAPE_TEXT], other[RONDO_SHAPE_TEXT];
  rondo_shape same = *x;
  same.type = indices->type;
  if (indices->type != RONDO_I32 && indices->type != RONDO_I64)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "max_unpool: indices are %s; they must be i32 or i64",
                      rondo_type_name(indices->type));
  if (x->rank >= 3 && x->rank <= 2 + RONDO_MAX_SPATIAL && rondo_shape_same(&same, indices)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "max_unpool: x is %s and indices are %s; both must be [n, c, ..] with one to three dimensions more",
                    rondo_shape_text(text, x), rondo_shape_text(other, indices));
}

rondo_status rondo_op_max_unpool(rondo_program *program, rondo_value x, rondo_value indices, const size_t *size,
                                 rondo_value *out_value) {
  rondo_shape shape, of_indices, result;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "max_unpool", out_value));
  RONDO_TRY(rondo_given_shape(program, x, "max_unpool", "x", &shape));
  RONDO_TRY(rondo_given_shape(program, indices, "max_unpool", "indices", &of_indices));
  RONDO_TRY(rondo_require("max_unpool", "size", size));
  RONDO_TRY(check_unpool(&shape, &of_indices));
  size_t dims[2 + RONDO_MAX_SPATIAL] = {shape.dims[0], shape.dims[1]};
  for (uint32_t i = 2; i < shape.rank; i++) dims[i] = size[i - 2];
  RONDO_TRY(rondo_shape_make("max_unpool", shape.type, dims, shape.rank, &result));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_unpool(program, x, indices, &shape, &result, &made);
  return rondo_compose_end(program, "max_unpool", mark, status, made, out_value);
}
