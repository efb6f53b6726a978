/* SPDX-License-Identifier: MIT
 * Products and convolutions of numbers that were quantised: dequantize_linear of x and of a weight, matmul or conv,
 * with bias and relu, become matmul_integer or conv_integer. A quantize_linear after them becomes its rounding. Maxima
 * of windows between a dequantize_linear and a quantize_linear with the same scale and zero are those of the integers.
 * The scales of x and of the result are numbers of the program; the weight is a state and has one scale, or one for
 * each column or output channel. What dequantises x and the weight may have other readers, for which it stays. Threads:
 * any.
 */
#include <rondo/quantized.h>

#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/convolution/pooling.h"
#include "tensor/operators/integer/integer_product.h"
#include "tensor/operators/matmul/matmul_problem.h"
#include "tensor/operators/patterns/pattern_finder.h"
#include "tensor/operators/shape/zeros.h"

enum { A, B, A_ZERO, B_ZERO, BIAS, SCALE, RESULT_ZERO }; /* values; BIAS is also an input of a conv or matmul */
enum { KIND, ACTIVATION, TYPE };                         /* sizes; TYPE: of the result */
enum { A_SCALE, B_SCALE, RESULT_SCALE };                 /* numbers; B_SCALE: of a sum */
enum { CONVOLUTION, PRODUCT, SUM, MAXIMA };              /* kinds */

static bool is_byte(rondo_type type) { return type == RONDO_I8 || type == RONDO_U8; }

/* What a value is a view or a cast of. */
static uint32_t behind_views(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *maker;
  while ((maker = rondo_find_made_by(f, value, &rondo_operator_reshape)) != NULL) value = maker->inputs[0];
  return value;
}

/* The 8-bit integers of which the value is the F32; RONDO_NO_VALUE: there are none. */
static uint32_t bytes_of(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *cast = rondo_find_made_by(f, behind_views(f, value), &rondo_operator_cast);
  if (cast == NULL || !is_byte(rondo_find_shape(f, cast->inputs[0])->type)) return RONDO_NO_VALUE;
  return cast->inputs[0];
}

/* Dequantised values ----------------------------------------------------------------------------------------------- */

/* (bytes - zero) scale */
typedef struct dequantized {
  uint32_t bytes, zero, scale;           /* zero: the integers, or RONDO_NO_VALUE; scale: as it is broadcast */
  const rondo_shape *zero_shape, *shape; /* how the zero is broadcast; of the bytes */
} dequantized;

static bool find_centred(const rondo_pattern_finder *f, uint32_t value, dequantized *out) {
  const rondo_operation *difference = rondo_find_made_by(f, value, &rondo_operator_sub);
  out->zero = RONDO_NO_VALUE;
  if (difference != NULL) {
    value = difference->inputs[0];
    out->zero = bytes_of(f, difference->inputs[1]);
    out->zero_shape = rondo_find_shape(f, difference->inputs[1]);
    if (out->zero == RONDO_NO_VALUE) return false;
  }
  const rondo_operation *cast = rondo_find_made_by(f, value, &rondo_operator_cast);
  if (cast == NULL) return false;
  out->bytes = cast->inputs[0];
  out->shape = rondo_find_shape(f, out->bytes);
  return is_byte(out->shape->type) &&
         (out->zero == RONDO_NO_VALUE || rondo_find_shape(f, out->zero)->type == out->shape->type);
}

static bool find_dequantized(const rondo_pattern_finder *f, uint32_t value, dequantized *out) {
  const rondo_operation *product = rondo_find_made_by(f, value, &rondo_operator_mul);
  rondo_shape shape = *rondo_find_shape(f, value);
  if (product == NULL || shape.type != RONDO_F32) return false;
  out->scale = product->inputs[1];
  if (!find_centred(f, product->inputs[0], out)) return false;
  shape.type = out->shape->type;
  return rondo_shape_same(out->shape, &shape);
}

/* Whether a parameter that is broadcast to `of` has one element, or one for each index of a dimension. */
static bool is_along(const rondo_shape *parameter, const rondo_shape *of, uint32_t dimension) {
  if (rondo_shape_elements(parameter) == 1) return true;
  if (parameter->rank > of->rank || rondo_shape_elements(parameter) != of->dims[dimension]) return false;
  const uint32_t missing = of->rank - parameter->rank;
  return dimension >= missing && parameter->dims[dimension - missing] == of->dims[dimension];
}

/* Products --------------------------------------------------------------------------------------------------------- */

static bool is_scale(const rondo_pattern_finder *f, uint32_t value, float *out) {
  double number;
  if (!rondo_program_number(f->search->program, value, &number) || !(number > 0)) return false;
  *out = (float)number;
  return true;
}

/* A value with one scale and one zero, as A or B. */
static bool take_x(const rondo_pattern_finder *f, uint32_t value, uint32_t which) {
  rondo_pattern_match *match = f->match;
  dequantized x;
  if (!find_dequantized(f, value, &x) || !is_scale(f, x.scale, &match->numbers[A_SCALE + which])) return false;
  if (x.zero != RONDO_NO_VALUE && rondo_shape_elements(x.zero_shape) != 1) return false;
  match->values[A + which] = x.bytes;
  match->values[A_ZERO + which] = x.zero;
  return true;
}

/* A weight whose output channels are in this dimension. */
static bool take_weight(const rondo_pattern_finder *f, uint32_t value, uint32_t channels) {
  rondo_pattern_match *match = f->match;
  dequantized w;
  if (!find_dequantized(f, value, &w) || f->search->program->values.items[w.bytes].kind != RONDO_VALUE_STATE)
    return false;
  if (!is_along(rondo_find_shape(f, w.scale), w.shape, channels)) return false;
  if (w.zero != RONDO_NO_VALUE && !is_along(w.zero_shape, w.shape, channels)) return false;
  match->values[B] = w.bytes;
  match->values[B_ZERO] = w.zero;
  match->values[SCALE] = w.scale;
  return true;
}

/* Takes a product or convolution whose factors are dequantised. */
static bool take_product(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *product = rondo_find_maker(f, value);
  rondo_pattern_match *match = f->match;
  if (product == NULL || product->results[0] != value) return false;
  const bool is_conv = product->row == &rondo_operator_conv;
  if (!is_conv && product->row != &rondo_operator_matmul) return false;
  if (!is_conv && product->attributes.flags[RONDO_MATMUL_TRANSPOSE_A]) return false;
  const uint32_t rank = rondo_find_shape(f, product->inputs[B])->rank;
  const uint32_t columns = product->attributes.flags[RONDO_MATMUL_TRANSPOSE_B] ? rank - 2 : rank - 1;
  match->sizes[KIND] = is_conv ? CONVOLUTION : PRODUCT;
  match->sizes[ACTIVATION] = product->attributes.sizes[is_conv ? RONDO_CONV_ACTIVATION : RONDO_MATMUL_ACTIVATION];
  if (match->sizes[ACTIVATION] != RONDO_ACTIVATION_NONE && match->sizes[ACTIVATION] != RONDO_ACTIVATION_RELU)
    return false;
  if (rank < 2 || !take_x(f, product->inputs[A], A) || !take_weight(f, product->inputs[B], is_conv ? 0 : columns))
    return false;
  (void)rondo_take(f, value, product->row);
  match->values[BIAS] = product->inputs[2];
  match->attributes = product->attributes;
  match->sizes[TYPE] = RONDO_F32;
  match->numbers[RESULT_SCALE] = 1;
  return true;
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

/* Takes a sum of two dequantised values of one shape, perhaps with a relu. */
static bool take_sum(const rondo_pattern_finder *f, uint32_t value) {
  rondo_pattern_match *match = f->match;
  const rondo_operation *relu = rondo_take(f, value, &rondo_operator_relu);
  const rondo_operation *sum = rondo_take(f, relu == NULL ? value : relu->inputs[0], &rondo_operator_add);
  if (sum == NULL || !take_x(f, sum->inputs[A], A) || !take_x(f, sum->inputs[B], B)) return false;
  match->sizes[KIND] = SUM;
  match->sizes[ACTIVATION] = relu == NULL ? RONDO_ACTIVATION_NONE : RONDO_ACTIVATION_RELU;
  rondo_shape a = *rondo_find_shape(f, match->values[A]), b = *rondo_find_shape(f, match->values[B]);
  a.type = b.type;
  return rondo_shape_same(&a, &b);
}

/* Maxima ----------------------------------------------------------------------------------------------------------- */

/* Takes a max_pool of dequantised values. */
static bool take_maxima(const rondo_pattern_finder *f, uint32_t value) {
  rondo_pattern_match *match = f->match;
  const rondo_operation *pool = rondo_take(f, value, &rondo_operator_max_pool);
  if (pool == NULL || pool->results[0] != value || !take_x(f, pool->inputs[0], A)) return false;
  const rondo_shape *x = rondo_find_shape(f, match->values[A]);
  match->sizes[KIND] = MAXIMA;
  match->attributes = pool->attributes;
  return x->dims[x->rank - 1] <= RONDO_POOLED_BYTES;
}

/* A zero as a number. */
static bool is_same_zero(const rondo_pattern_finder *f, uint32_t a, uint32_t b) {
  double of_a = 0, of_b = 0;
  if (a == b) return true;
  return (a == RONDO_NO_VALUE || rondo_program_number(f->search->program, a, &of_a)) &&
         (b == RONDO_NO_VALUE || rondo_program_number(f->search->program, b, &of_b)) && of_a == of_b;
}

/* Whether the result is quantised as what the maxima are of. */
static bool is_alike(const rondo_pattern_finder *f) {
  const rondo_pattern_match *match = f->match;
  return match->numbers[RESULT_SCALE] == match->numbers[A_SCALE] &&
         rondo_find_shape(f, match->values[A])->type == (rondo_type)match->sizes[TYPE] &&
         is_same_zero(f, match->values[A_ZERO], match->values[RESULT_ZERO]);
}

/* Quantised results ------------------------------------------------------------------------------------------------ */

/* cast(round(y / scale) + zero): takes the operations between y and the root, a cast to an 8-bit integer; returns
 * y, or RONDO_NO_VALUE. */
static uint32_t take_quantizing(const rondo_pattern_finder *f, const rondo_operation *root, uint32_t *out_zero,
                                float *out_scale) {
  uint32_t value = root->inputs[0];
  const rondo_operation *sum = rondo_take(f, value, &rondo_operator_add);
  *out_zero = RONDO_NO_VALUE;
  if (sum != NULL) {
    value = sum->inputs[0];
    *out_zero = bytes_of(f, sum->inputs[1]);
    if (*out_zero == RONDO_NO_VALUE || rondo_shape_elements(rondo_find_shape(f, *out_zero)) != 1 ||
        rondo_find_shape(f, *out_zero)->type != rondo_find_shape(f, root->results[0])->type)
      return RONDO_NO_VALUE;
  }
  const rondo_operation *rounding = rondo_take(f, value, &rondo_operator_round);
  const rondo_operation *quotient = rounding == NULL ? NULL : rondo_take(f, rounding->inputs[0], &rondo_operator_div);
  if (quotient == NULL || !is_scale(f, quotient->inputs[1], out_scale)) return RONDO_NO_VALUE;
  return quotient->inputs[0];
}

static bool find_quantized(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *root = rondo_find_root(&f);
  uint32_t zero;
  float scale;
  if (search->target.is_cuda) return false;
  if (root->row != &rondo_operator_cast) return take_product(&f, root->results[0]);
  if (!is_byte(rondo_find_shape(&f, root->results[0])->type)) return false;
  const uint32_t y = take_quantizing(&f, root, &zero, &scale);
  if (y == RONDO_NO_VALUE || (!take_product(&f, y) && !take_sum(&f, y) && !take_maxima(&f, y))) return false;
  match->values[RESULT_ZERO] = zero;
  match->numbers[RESULT_SCALE] = scale;
  match->sizes[TYPE] = rondo_find_shape(&f, root->results[0])->type;
  return match->sizes[KIND] != MAXIMA || is_alike(&f);
}

/* Replacing -------------------------------------------------------------------------------------------------------- */

/* A parameter with one element as a scalar, and with more as a list. */
static rondo_status flat(rondo_program *program, uint32_t value, rondo_value *out) {
  *out = (rondo_value){0};
  if (value == RONDO_NO_VALUE) return RONDO_OK;
  const size_t count = rondo_shape_elements(rondo_program_shape(program, value));
  return rondo_op_reshape(program, rondo_program_tag(program, value), &count, count == 1 ? 0 : 1, out);
}

static rondo_status add_sum(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const uint32_t *values = match->values;
  rondo_add_integer_options options = {RONDO_ADD_INTEGER_OPTIONS_INIT,
                                       .result_type = (rondo_type)match->sizes[TYPE],
                                       .activation = (rondo_activation)match->sizes[ACTIVATION],
                                       .a_scale = match->numbers[A_SCALE],
                                       .b_scale = match->numbers[B_SCALE],
                                       .result_scale = match->numbers[RESULT_SCALE]};
  RONDO_TRY(flat(program, values[A_ZERO], &options.a_zero));
  RONDO_TRY(flat(program, values[B_ZERO], &options.b_zero));
  RONDO_TRY(flat(program, values[RESULT_ZERO], &options.result_zero));
  return rondo_op_add_integer(program, rondo_program_tag(program, values[A]), rondo_program_tag(program, values[B]),
                              &options, out);
}

static rondo_status add_maxima(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const rondo_value x = rondo_program_tag(program, match->values[A]);
  return rondo_program_apply(program, &rondo_operator_max_pool_bytes, &x, 1, &match->attributes, out);
}

static rondo_status replace_quantized(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const uint32_t *values = match->values;
  if (match->sizes[KIND] == SUM) return add_sum(program, match, out);
  if (match->sizes[KIND] == MAXIMA) return add_maxima(program, match, out);
  rondo_integer_product_options options = {
      RONDO_INTEGER_PRODUCT_OPTIONS_INIT, .result_type = (rondo_type)match->sizes[TYPE],
      .activation = (rondo_activation)match->sizes[ACTIVATION], .a_scale = match->numbers[A_SCALE],
      .result_scale = match->numbers[RESULT_SCALE]};
  RONDO_TRY(flat(program, values[A_ZERO], &options.a_zero));
  RONDO_TRY(flat(program, values[B_ZERO], &options.b_zero));
  RONDO_TRY(flat(program, values[BIAS], &options.bias));
  RONDO_TRY(flat(program, values[SCALE], &options.scale));
  RONDO_TRY(flat(program, values[RESULT_ZERO], &options.result_zero));
  const rondo_value a = rondo_program_tag(program, values[A]), b = rondo_program_tag(program, values[B]);
  if (match->sizes[KIND] == CONVOLUTION)
    return rondo_add_conv_integer(program, a, b, &match->attributes, &options, out);
  options.transpose_b = match->attributes.flags[RONDO_MATMUL_TRANSPOSE_B];
  return rondo_op_matmul_integer(program, a, b, &options, out);
}

const rondo_pattern rondo_pattern_quantized = {
    .name = "quantized", .find = find_quantized, .replace = replace_quantized};
