/* SPDX-License-Identifier: MIT
 * quantize_linear, dequantize_linear and dynamic_quantize_linear, which consist of other operators, in F32. A chain of
 * element-wise operators is one kernel. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include <rondo/quantized.h>

#include "tensor/operators/common/composition.h"

/* What a call converts: x, and its scale and zero, which may be no value. */
typedef struct conversion {
  const char *call;
  rondo_value x, scale, zero;
  rondo_shape shape; /* of x */
  size_t dimension, block;
  rondo_type type; /* of the result */
} conversion;

static rondo_status fail_scale(const conversion *c, const rondo_shape *given, const char *what) {
  char text[RONDO_SHAPE_TEXT], other[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: %s is %s for x of %s in dimension %zu and blocks of %zu: use a scalar, an element for each "
                    "index of the dimension, or, with blocks, for each block",
                    c->call, what, rondo_shape_text(text, given), rondo_shape_text(other, &c->shape), c->dimension,
                    c->block);
}

/* A scale or zero of blocks becomes one of elements: each is repeated `block` times, and those beyond x are cut. A
 * block that is larger than the dimension is one of its size. */
static rondo_status expand_blocks(rondo_program *program, const conversion *c, const rondo_shape *given,
                                  const char *what, rondo_value *inout_value) {
  const size_t d = c->dimension, block = rondo_smaller(c->block, c->shape.dims[d]);
  const size_t blocks = rondo_divide_up(c->shape.dims[d], block);
  const size_t before = rondo_shape_elements_of(&c->shape, 0, d);
  const size_t after = rondo_shape_elements_of(&c->shape, d + 1, c->shape.rank);
  rondo_shape wanted = c->shape;
  wanted.dims[d] = blocks;
  wanted.type = given->type;
  if (!rondo_shape_same(given, &wanted)) return fail_scale(c, given, what);
  RONDO_TRY(rondo_op_reshape(program, *inout_value, (const size_t[]){before, blocks, 1, after}, 4, inout_value));
  RONDO_TRY(rondo_op_expand(program, *inout_value, (const size_t[]){before, blocks, block, after}, 4, inout_value));
  RONDO_TRY(rondo_op_reshape(program, *inout_value, (const size_t[]){before, blocks * block, after}, 3, inout_value));
  RONDO_TRY(rondo_op_slice(program, *inout_value, (const size_t[]){0, 0, 0},
                           (const size_t[]){before, c->shape.dims[d], after}, NULL, inout_value));
  return rondo_op_reshape(program, *inout_value, c->shape.dims, c->shape.rank, inout_value);
}

/* A scale or zero, as F32, in a shape that is broadcast to x. */
static rondo_status add_parameter(rondo_program *program, const conversion *c, const char *what,
                                  rondo_value *inout_value) {
  const rondo_shape given = rondo_shape_at(program, *inout_value);
  size_t dims[RONDO_MAX_DIMENSIONS];
  RONDO_TRY(rondo_op_cast(program, *inout_value, RONDO_F32, inout_value));
  if (rondo_shape_elements(&given) == 1) return rondo_op_reshape(program, *inout_value, NULL, 0, inout_value);
  if (c->dimension >= c->shape.rank) return fail_scale(c, &given, what);
  if (c->block > 1) return expand_blocks(program, c, &given, what, inout_value);
  if (given.rank != 1 || given.dims[0] != c->shape.dims[c->dimension]) return fail_scale(c, &given, what);
  for (uint32_t i = 0; i < c->shape.rank; i++) dims[i] = i == c->dimension ? given.dims[0] : 1;
  return rondo_op_reshape(program, *inout_value, dims, c->shape.rank, inout_value);
}

static rondo_status add_parameters(rondo_program *program, conversion *c) {
  RONDO_TRY(add_parameter(program, c, "the scale", &c->scale));
  return c->zero.id == 0 ? RONDO_OK : add_parameter(program, c, "the zero", &c->zero);
}

/* The cast limits to the range of the type. F32 is for a cast to a smaller float, which rounds. */
static rondo_status add_quantize(rondo_program *program, conversion *c) {
  rondo_value *x = &c->x;
  RONDO_TRY(add_parameters(program, c));
  RONDO_TRY(rondo_op_cast(program, *x, RONDO_F32, x));
  RONDO_TRY(rondo_op_div(program, *x, c->scale, x));
  if (c->type != RONDO_F32) RONDO_TRY(rondo_op_round(program, *x, x));
  if (c->zero.id != 0) RONDO_TRY(rondo_op_add(program, *x, c->zero, x));
  return rondo_op_cast(program, *x, c->type, x);
}

static rondo_status add_dequantize(rondo_program *program, conversion *c) {
  rondo_value *x = &c->x;
  RONDO_TRY(add_parameters(program, c));
  RONDO_TRY(rondo_op_cast(program, *x, RONDO_F32, x));
  if (c->zero.id != 0) RONDO_TRY(rondo_op_sub(program, *x, c->zero, x));
  RONDO_TRY(rondo_op_mul(program, *x, c->scale, x));
  return rondo_op_cast(program, *x, c->type, x);
}

static bool is_quantized(rondo_type type) {
  return type == RONDO_I8 || type == RONDO_U8 || type == RONDO_I32 || type == RONDO_F32;
}
static bool is_float(rondo_type type) { return type < 32 && (RONDO_FLOATS & RONDO_TYPE_BIT(type)) != 0; }

static rondo_status fail_types(const conversion *c, rondo_type zero) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                    "%s: from %s to %s with a zero of %s: quantised numbers are i8, u8, i32 or f32; others and the "
                    "scale are floats; a zero has the type of the quantised numbers",
                    c->call, rondo_type_name(c->shape.type), rondo_type_name(c->type),
                    zero == 0 ? "no type" : rondo_type_name(zero));
}

/* Without a zero point, its type is 0. */
static rondo_status read_call(rondo_program *program, const rondo_quantize_linear_options *options, conversion *c,
                              rondo_type *out_scale, rondo_type *out_zero) {
  rondo_quantize_linear_options given;
  rondo_shape scale, zero = {.type = (rondo_type)0};
  RONDO_TRY(rondo_given_shape(program, c->x, c->call, "x", &c->shape));
  RONDO_TRY(rondo_given_shape(program, c->scale, c->call, "scale", &scale));
  if (c->zero.id != 0) RONDO_TRY(rondo_given_shape(program, c->zero, c->call, "zero", &zero));
  RONDO_TRY(rondo_versioned_read("rondo_quantize_linear_options", options, &given, sizeof given));
  c->type = given.type;
  c->dimension = given.dimension;
  c->block = given.block == 0 ? 1 : given.block;
  *out_scale = scale.type;
  *out_zero = zero.type;
  return RONDO_OK;
}

/* Adds the conversion and ends the call. */
static rondo_status convert(rondo_program *program, conversion *c, rondo_status (*add)(rondo_program *, conversion *),
                            rondo_value *out_value) {
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add(program, c);
  return rondo_compose_end(program, c->call, mark, status, c->x, out_value);
}

rondo_status rondo_op_quantize_linear(rondo_program *program, rondo_value x, rondo_value scale, rondo_value zero,
                                      const rondo_quantize_linear_options *options, rondo_value *out_value) {
  conversion c = {.call = "quantize_linear", .x = x, .scale = scale, .zero = zero};
  rondo_type of_zero, of_scale;
  RONDO_TRY(rondo_program_begin(program, c.call, out_value));
  RONDO_TRY(read_call(program, options, &c, &of_scale, &of_zero));
  if (c.type == 0) c.type = of_zero == 0 ? RONDO_U8 : of_zero;
  if (!is_float(c.shape.type) || !is_float(of_scale) || !is_quantized(c.type) || (of_zero != 0 && of_zero != c.type))
    return fail_types(&c, of_zero);
  return convert(program, &c, add_quantize, out_value);
}

rondo_status rondo_op_dequantize_linear(rondo_program *program, rondo_value x, rondo_value scale, rondo_value zero,
                                        const rondo_quantize_linear_options *options, rondo_value *out_value) {
  conversion c = {.call = "dequantize_linear", .x = x, .scale = scale, .zero = zero};
  rondo_type of_zero, of_scale;
  RONDO_TRY(rondo_program_begin(program, c.call, out_value));
  RONDO_TRY(read_call(program, options, &c, &of_scale, &of_zero));
  if (c.type == 0) c.type = RONDO_F32;
  if (!is_quantized(c.shape.type) || !is_float(of_scale) || !is_float(c.type) ||
      (of_zero != 0 && of_zero != c.shape.type))
    return fail_types(&c, of_zero);
  return convert(program, &c, add_dequantize, out_value);
}

/* The range of x and 0: scale = (high - low) / 255, and the zero is where 0 lies in it. A range of 0 has the scale 0,
 * and x / 0 is not a number, which the cast makes 0. */
static rondo_status add_range(rondo_program *program, rondo_value x, rondo_value *out_scale, rondo_value *out_zero) {
  rondo_value low, high, none, zero;
  RONDO_TRY(rondo_op_full(program, RONDO_F32, NULL, 0, 0, &none));
  RONDO_TRY(rondo_op_min(program, x, NULL, 0, false, &low));
  RONDO_TRY(rondo_op_max(program, x, NULL, 0, false, &high));
  RONDO_TRY(rondo_op_minimum(program, low, none, &low));
  RONDO_TRY(rondo_op_maximum(program, high, none, &high));
  RONDO_TRY(rondo_op_sub(program, high, low, out_scale));
  RONDO_TRY(rondo_op_full(program, RONDO_F32, NULL, 0, 255, &none));
  RONDO_TRY(rondo_op_div(program, *out_scale, none, out_scale));
  RONDO_TRY(rondo_op_div(program, low, *out_scale, &zero));
  RONDO_TRY(rondo_op_neg(program, zero, &zero));
  RONDO_TRY(rondo_op_round(program, zero, &zero));
  return rondo_op_cast(program, zero, RONDO_U8, out_zero);
}

static rondo_status add_dynamic(rondo_program *program, rondo_value x, rondo_value *out_value, rondo_value *out_scale,
                                rondo_value *out_zero) {
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(add_range(program, x, out_scale, out_zero));
  return rondo_op_quantize_linear(program, x, *out_scale, *out_zero, NULL, out_value);
}

rondo_status rondo_op_dynamic_quantize_linear(rondo_program *program, rondo_value x, rondo_value *out_value,
                                              rondo_value *out_scale, rondo_value *out_zero) {
  static const char call[] = "dynamic_quantize_linear";
  rondo_shape shape;
  rondo_value made = {0}, scale = {0}, zero = {0};
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  RONDO_TRY(rondo_require(call, "out_scale", out_scale));
  RONDO_TRY(rondo_require(call, "out_zero", out_zero));
  *out_scale = *out_zero = (rondo_value){0};
  RONDO_TRY(rondo_given_shape(program, x, call, "x", &shape));
  if (!rondo_shape_is_float(&shape))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: x is %s; it must be f32, f16 or bf16", call,
                      rondo_type_name(shape.type));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_dynamic(program, x, &made, &scale, &zero);
  RONDO_TRY(rondo_compose_end(program, call, mark, status, made, out_value));
  *out_scale = scale;
  *out_zero = zero;
  return RONDO_OK;
}
