/* SPDX-License-Identifier: MIT
 * Element-wise operators: of one value, also with numbers, of two and of many with broadcasting, comparisons, Where,
 * Cast and Clip.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/import/scaled_image.h"
#include "onnx/import/widened_value.h"
#include "onnx/operators/operator_families.h"

typedef rondo_status (*unary_function)(rondo_program *program, rondo_value value, rondo_value *out_value);
typedef rondo_status (*binary_function)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value);

/* One value -------------------------------------------------------------------------------------------------------- */

typedef struct unary_form {
  unary_function function;
  rondo_onnx_type result; /* 0: the type of the input */
} unary_form;

static rondo_status set_empty_as(rondo_onnx_node *node, const rondo_onnx_shape *like, rondo_onnx_type type) {
  rondo_onnx_shape shape = *like;
  if (type != 0) shape.type = type;
  return rondo_onnx_set_empty(node, 0, &shape);
}

/* With type 0, the result has the type of input 0. */
static rondo_status set_as(rondo_onnx_node *node, rondo_value value, rondo_onnx_type type) {
  return rondo_onnx_set_fitted(node, 0, value, type != 0 ? type : rondo_onnx_input_shape(node, 0)->type);
}

static rondo_status add_unary(rondo_onnx_node *node, const void *data) {
  const unary_form *form = data;
  rondo_program *program;
  rondo_value x, y;
  if (rondo_onnx_shape_count(rondo_onnx_input_shape(node, 0)) == 0)
    return set_empty_as(node, rondo_onnx_input_shape(node, 0), form->result);
  if (rondo_onnx_input_shape(node, 0)->type == RONDO_ONNX_UINT64 && form->function != rondo_op_bitwise_not)
    return rondo_onnx_refuse(node, "programs hold integers of the type 'uint64' as I64, which have a sign");
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(form->function(program, x, &y));
  return set_as(node, y, form->result);
}

static rondo_status add_gelu(rondo_onnx_node *node, const void *data) {
  const char *approximate;
  rondo_program *program;
  rondo_value x, y;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_text(node, "approximate", "none", &approximate));
  const bool is_tanh = strcmp(approximate, "tanh") == 0;
  if (!is_tanh && strcmp(approximate, "none") != 0)
    return rondo_onnx_refuse_attribute(node, "approximate", "it is '%s'", approximate);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_gelu(program, x, is_tanh ? RONDO_GELU_TANH : RONDO_GELU_ERF, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* Infinities of one sign are those numbers that are infinite and on that side of 0. */
static rondo_status add_is_inf(rondo_onnx_node *node, const void *data) {
  int64_t negative, positive;
  rondo_program *program;
  rondo_type type;
  rondo_value x, y, zero, side;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "detect_negative", 1, &negative));
  RONDO_TRY(rondo_onnx_attribute_int(node, "detect_positive", 1, &positive));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_is_inf(program, x, &y));
  if (negative == 0 || positive == 0) {
    RONDO_TRY(rondo_onnx_program_type(node->importer, rondo_onnx_input_shape(node, 0)->type, &type));
    RONDO_TRY(rondo_op_full(program, type, NULL, 0, 0, &zero));
    RONDO_TRY(positive != 0 ? rondo_op_greater(program, x, zero, &side) : rondo_op_less(program, x, zero, &side));
    if (positive == 0 && negative == 0) RONDO_TRY(rondo_op_greater(program, side, side, &side));
    RONDO_TRY(rondo_op_logical_and(program, y, side, &y));
  }
  return rondo_onnx_set_result(node, 0, y);
}

/* One value and numbers of attributes ----------------------------------------------------------------------------- */

typedef struct number_attribute {
  const char *name; /* NULL: none */
  float otherwise;
} number_attribute;

typedef struct number_form {
  rondo_status (*add)(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out);
  number_attribute attributes[2];
} number_form;

static rondo_status leaky_relu(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  return rondo_op_leaky_relu(program, x, numbers[0], out);
}

static rondo_status elu(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  return rondo_op_elu(program, x, numbers[0], out);
}

static rondo_status celu(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  return rondo_op_celu(program, x, numbers[0], out);
}

static rondo_status selu(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  RONDO_TRY(rondo_op_elu(program, x, numbers[0], out));
  return rondo_op_scale(program, *out, numbers[1], out);
}

static rondo_status hardsigmoid(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  return rondo_op_hardsigmoid(program, x, numbers[0], numbers[1], out);
}

static rondo_status softplus(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  (void)numbers;
  return rondo_op_softplus(program, x, 1, out);
}

static rondo_status thresholded_relu(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  return rondo_op_threshold(program, x, numbers[0], 0, out);
}

static rondo_status shrink(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  return rondo_op_shrink(program, x, numbers[0], numbers[1], out);
}

static rondo_status swish(rondo_program *program, rondo_value x, const float *numbers, rondo_value *out) {
  if (numbers[0] == 1) return rondo_op_silu(program, x, out);
  RONDO_TRY(rondo_op_scale(program, x, numbers[0], out));
  RONDO_TRY(rondo_op_sigmoid(program, *out, out));
  return rondo_op_mul(program, x, *out, out);
}

static rondo_status add_numbers(rondo_onnx_node *node, const void *data) {
  const number_form *form = data;
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, 0);
  float numbers[2] = {0};
  rondo_program *program;
  rondo_value x, y;
  for (size_t i = 0; i < 2 && form->attributes[i].name != NULL; i++)
    RONDO_TRY(rondo_onnx_attribute_float(node, form->attributes[i].name, form->attributes[i].otherwise, &numbers[i]));
  if (rondo_onnx_shape_count(shape) == 0) return rondo_onnx_set_empty(node, 0, shape);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(form->add(program, x, numbers, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* A gate and a value of one shape: swish(gate) value. */
static rondo_status add_swiglu(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *gate_shape = rondo_onnx_input_shape(node, 0), *shape = rondo_onnx_input_shape(node, 1);
  float alpha;
  rondo_program *program;
  rondo_value gate, x;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_float(node, "alpha", 1, &alpha));
  if (gate_shape->rank != shape->rank || memcmp(gate_shape->dims, shape->dims, shape->rank * sizeof *shape->dims) != 0)
    return rondo_onnx_refuse(node, "its inputs have different shapes");
  if (rondo_onnx_shape_count(shape) == 0) return rondo_onnx_set_empty(node, 0, shape);
  RONDO_TRY(rondo_onnx_operand(node, 0, &gate));
  RONDO_TRY(rondo_onnx_operand(node, 1, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(swish(program, gate, &alpha, &gate));
  RONDO_TRY(rondo_op_mul(program, gate, x, &x));
  return rondo_onnx_set_result(node, 0, x);
}

/* Before operator set 7, a slope has one number for each channel, dimension 1. */
static rondo_status add_prelu(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0), *slope_shape = rondo_onnx_input_shape(node, 1);
  rondo_onnx_shape aligned = *slope_shape;
  rondo_program *program;
  rondo_value x, slope, y;
  (void)data;
  while (node->opset < 7 && aligned.rank > 0 && aligned.dims[0] > 1 && aligned.rank + 1 < have->rank)
    aligned.dims[aligned.rank++] = 1;
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_operand(node, 1, &slope));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, slope, aligned.dims, aligned.rank, &slope));
  RONDO_TRY(rondo_op_prelu(program, x, slope, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* Two values ------------------------------------------------------------------------------------------------------- */

typedef struct binary_form {
  binary_function function;
  rondo_onnx_type result;        /* 0: the type of the inputs */
  binary_function unsigned_long; /* of unsigned integers of 64 bits; NULL: as of others */
} binary_form;

static binary_function function_for(const rondo_onnx_node *node, const binary_form *form) {
  const bool is_unsigned_long = rondo_onnx_input_shape(node, 0)->type == RONDO_ONNX_UINT64;
  return is_unsigned_long && form->unsigned_long != NULL ? form->unsigned_long : form->function;
}

/* The shape to which all inputs are broadcast. */
static rondo_status broadcast_inputs(const rondo_onnx_node *node, rondo_onnx_shape *out) {
  *out = *rondo_onnx_input_shape(node, 0);
  for (size_t i = 1; i < rondo_onnx_input_count(node); i++) {
    const rondo_onnx_shape both = *out;
    RONDO_TRY(rondo_onnx_broadcast((const rondo_onnx_shape *const[]){&both, rondo_onnx_input_shape(node, i)}, 2, out));
  }
  return RONDO_OK;
}

static rondo_status add_binary(rondo_onnx_node *node, const void *data) {
  const binary_form *form = data;
  rondo_program *program;
  rondo_onnx_shape shape;
  rondo_value a, b, y;
  bool is_made = false;
  if (form->function == rondo_op_mul) RONDO_TRY(rondo_onnx_make_scaled_product(node, &is_made));
  if (form->function == rondo_op_add) RONDO_TRY(rondo_onnx_make_scaled_sum(node, &is_made));
  if (is_made) return RONDO_OK;
  RONDO_TRY(broadcast_inputs(node, &shape));
  if (rondo_onnx_shape_count(&shape) == 0) return set_empty_as(node, &shape, form->result);
  RONDO_TRY(rondo_onnx_operand(node, 0, &a));
  RONDO_TRY(rondo_onnx_operand(node, 1, &b));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(function_for(node, form)(program, a, b, &y));
  return set_as(node, y, form->result);
}

/* Operator set 6: the dimensions of the second value are those of the first from `axis` on, or the last ones. */
static rondo_status add_aligned(rondo_onnx_node *node, const void *data) {
  const binary_form *form = data;
  const rondo_onnx_shape *a_shape = rondo_onnx_input_shape(node, 0), *b_shape = rondo_onnx_input_shape(node, 1);
  rondo_onnx_shape aligned = *b_shape;
  int64_t broadcast, axis;
  rondo_program *program;
  rondo_value a, b, y;
  RONDO_TRY(rondo_onnx_attribute_int(node, "broadcast", 0, &broadcast));
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", (int64_t)a_shape->rank - (int64_t)b_shape->rank, &axis));
  if (axis < 0 || (uint64_t)axis + b_shape->rank > a_shape->rank)
    return rondo_onnx_refuse_attribute(node, "axis", "%lld: input 1 has %zu dimensions, and input 0 has %zu",
                                       (long long)axis, b_shape->rank, a_shape->rank);
  while ((size_t)axis + aligned.rank < a_shape->rank) aligned.dims[aligned.rank++] = 1;
  RONDO_TRY(rondo_onnx_operand(node, 0, &a));
  RONDO_TRY(rondo_onnx_operand(node, 1, &b));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, b, aligned.dims, aligned.rank, &b));
  RONDO_TRY(form->function(program, a, b, &y));
  return rondo_onnx_set_result(node, 0, y);
}

static bool is_float_type(rondo_type type) { return type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16; }

/* The result has the type of the base; an exponent of another type is one of floats if either is. */
static rondo_status add_pow(rondo_onnx_node *node, const void *data) {
  static const rondo_onnx_float_rounding rounding = {.mode = RONDO_ONNX_TO_NEAREST};
  rondo_program *program;
  rondo_type base_type, exponent_type;
  rondo_value base, exponent, y;
  (void)data;
  const rondo_onnx_type of_base = rondo_onnx_input_shape(node, 0)->type;
  const rondo_onnx_type of_exponent = rondo_onnx_input_shape(node, 1)->type;
  RONDO_TRY(rondo_onnx_held_type(node->importer, of_base, &base_type));
  RONDO_TRY(rondo_onnx_held_type(node->importer, of_exponent, &exponent_type));
  RONDO_TRY(rondo_onnx_operand(node, 0, &base));
  RONDO_TRY(rondo_onnx_operand(node, 1, &exponent));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (is_float_type(exponent_type) && !is_float_type(base_type)) {
    RONDO_TRY(rondo_onnx_cast_value(program, of_base, of_exponent, base, &rounding, &base));
    RONDO_TRY(rondo_op_pow(program, base, exponent, &y));
    RONDO_TRY(rondo_onnx_cast_value(program, of_exponent, of_base, y, &rounding, &y));
  } else {
    RONDO_TRY(rondo_onnx_cast_value(program, of_exponent, of_base, exponent, &rounding, &exponent));
    RONDO_TRY(rondo_op_pow(program, base, exponent, &y));
  }
  return rondo_onnx_set_fitted(node, 0, y, of_base);
}

/* A remainder of 0 has the sign of the divisor, too, as in NumPy. */
static rondo_status signed_remainder(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out) {
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  rondo_value zero, signed_zero, condition;
  RONDO_TRY(rondo_op_remainder(program, a, b, out));
  RONDO_TRY(rondo_value_shape(program, *out, &type, dims, &rank));
  if (!is_float_type(type)) return RONDO_OK;
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, 0, &zero));
  RONDO_TRY(rondo_op_sign(program, b, &signed_zero));
  RONDO_TRY(rondo_op_mul(program, signed_zero, zero, &signed_zero));
  RONDO_TRY(rondo_op_equal(program, *out, zero, &condition));
  return rondo_op_select(program, condition, signed_zero, *out, out);
}

static rondo_status add_mod(rondo_onnx_node *node, const void *data) {
  static const binary_form fmod_form = {rondo_op_fmod, 0, rondo_onnx_unsigned_remainder};
  static const binary_form remainder_form = {signed_remainder, 0, rondo_onnx_unsigned_remainder};
  int64_t is_fmod;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "fmod", 0, &is_fmod));
  return add_binary(node, is_fmod != 0 ? &fmod_form : &remainder_form);
}

static rondo_status add_bit_shift(rondo_onnx_node *node, const void *data) {
  static const binary_form left = {rondo_op_shift_left, 0, NULL};
  static const binary_form right = {rondo_op_shift_right, 0, rondo_onnx_unsigned_shift_right};
  const char *direction;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_text(node, "direction", "", &direction));
  if (strcmp(direction, "LEFT") == 0) return add_binary(node, &left);
  if (strcmp(direction, "RIGHT") == 0) return add_binary(node, &right);
  return rondo_onnx_refuse_attribute(node, "direction", "it is '%s', not LEFT or RIGHT", direction);
}

/* Many values ------------------------------------------------------------------------------------------------------ */

typedef struct many_form {
  binary_form each;
  bool is_mean;
} many_form;

static rondo_status add_many(rondo_onnx_node *node, const void *data) {
  const many_form *form = data;
  const size_t count = rondo_onnx_input_count(node);
  rondo_program *program;
  rondo_onnx_shape shape;
  rondo_value y, next;
  RONDO_TRY(broadcast_inputs(node, &shape));
  if (rondo_onnx_shape_count(&shape) == 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  for (size_t i = 1; i < count; i++) {
    RONDO_TRY(rondo_onnx_operand(node, i, &next));
    RONDO_TRY(function_for(node, &form->each)(program, y, next, &y));
  }
  if (form->is_mean && count > 1) RONDO_TRY(rondo_op_scale(program, y, 1.0f / (float)count, &y));
  return set_as(node, y, 0);
}

/* Where, Cast, Clip ------------------------------------------------------------------------------------------------ */

static rondo_status add_where(rondo_onnx_node *node, const void *data) {
  rondo_program *program;
  rondo_onnx_shape shape;
  rondo_value condition, x, y, result;
  (void)data;
  const rondo_onnx_type type = rondo_onnx_input_shape(node, 1)->type;
  RONDO_TRY(broadcast_inputs(node, &shape));
  if (rondo_onnx_shape_count(&shape) == 0) return set_empty_as(node, &shape, type);
  RONDO_TRY(rondo_onnx_operand(node, 0, &condition));
  RONDO_TRY(rondo_onnx_operand(node, 1, &x));
  RONDO_TRY(rondo_onnx_operand(node, 2, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_select(program, condition, x, y, &result));
  return rondo_onnx_set_typed(node, 0, result, type);
}

static rondo_status cast_to(rondo_onnx_node *node, rondo_onnx_type type, const rondo_onnx_float_rounding *rounding) {
  rondo_program *program;
  rondo_type held;
  rondo_value x, y;
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, 0);
  if (shape->type == type) {
    rondo_onnx_set_input(node, 0, 0);
    return RONDO_OK;
  }
  if (rondo_onnx_shape_count(shape) == 0) return set_empty_as(node, shape, type);
  RONDO_TRY(rondo_onnx_held_type(node->importer, type, &held));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_cast_value(program, shape->type, type, x, rounding, &y));
  RONDO_TRY(rondo_onnx_set_typed(node, 0, y, type));
  rondo_onnx_keep_count(node, node->inputs[0].counted_axis);
  return RONDO_OK;
}

/* `saturate` concerns 8-bit floats, and `round_mode` those that are powers of two. */
static rondo_status read_rounding(rondo_onnx_node *node, rondo_onnx_float_rounding *out) {
  static const char *const modes[] = {
      [RONDO_ONNX_TO_NEAREST] = "nearest", [RONDO_ONNX_UP] = "up", [RONDO_ONNX_DOWN] = "down"};
  int64_t saturate;
  const char *mode;
  RONDO_TRY(rondo_onnx_attribute_int(node, "saturate", 1, &saturate));
  RONDO_TRY(rondo_onnx_attribute_text(node, "round_mode", "up", &mode));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    *out = (rondo_onnx_float_rounding){.overflows = saturate == 0, .mode = (rondo_onnx_rounding_mode)i};
    if (strcmp(mode, modes[i]) == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse_attribute(node, "round_mode", "it is '%s'", mode);
}

static rondo_status add_cast(rondo_onnx_node *node, const void *data) {
  rondo_onnx_float_rounding rounding;
  int64_t to;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "to", 0, &to));
  RONDO_TRY(read_rounding(node, &rounding));
  if (to < RONDO_ONNX_FLOAT || to > RONDO_ONNX_INT2)
    return rondo_onnx_refuse_attribute(node, "to", "%lld is no type", (long long)to);
  return cast_to(node, (rondo_onnx_type)to, &rounding);
}

static rondo_status add_cast_like(rondo_onnx_node *node, const void *data) {
  rondo_onnx_float_rounding rounding;
  (void)data;
  RONDO_TRY(read_rounding(node, &rounding));
  return cast_to(node, rondo_onnx_input_shape(node, 1)->type, &rounding);
}

/* The same bits as another type of as many. */
static rondo_status add_bit_cast(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_type from = rondo_onnx_input_shape(node, 0)->type;
  int64_t number;
  rondo_program *program;
  rondo_type type, have;
  rondo_value x;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "to", 0, &number));
  const rondo_onnx_type to = (rondo_onnx_type)number;
  RONDO_TRY(rondo_onnx_held_type(node->importer, from, &have));
  RONDO_TRY(rondo_onnx_held_type(node->importer, to, &type));
  if (from == RONDO_ONNX_DOUBLE || to == RONDO_ONNX_DOUBLE)
    return rondo_onnx_refuse(node, "programs compute doubles as floats, which have other bits");
  if (rondo_onnx_small_float_of(from) != NULL || rondo_onnx_small_float_of(to) != NULL)
    return rondo_onnx_refuse(node, "programs compute small floats as larger ones, which have other bits");
  if (rondo_onnx_type_bits((int32_t)from) != rondo_onnx_type_bits((int32_t)to))
    return rondo_onnx_refuse_attribute(node, "to", "the types have different numbers of bits");
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (from == RONDO_ONNX_UINT32) RONDO_TRY(rondo_op_cast(program, x, have = RONDO_I32, &x));
  if (to == RONDO_ONNX_UINT32 && rondo_type_bytes(have) == sizeof(int32_t)) {
    RONDO_TRY(rondo_op_bitcast(program, x, RONDO_I32, &x));
    RONDO_TRY(rondo_op_cast(program, x, have = RONDO_I64, &x));
  }
  if (rondo_type_bytes(have) != rondo_type_bytes(type))
    return rondo_onnx_refuse_attribute(node, "to", "programs hold one of the types in a wider one");
  RONDO_TRY(rondo_op_bitcast(program, x, type, &x));
  return rondo_onnx_set_fitted(node, 0, x, to);
}

static rondo_status clamp_with(rondo_onnx_node *node, float lowest, float highest) {
  rondo_program *program;
  rondo_value x, y;
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_clamp(program, x, lowest, highest, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* Up to operator set 10, the limits are attributes. */
static rondo_status add_clip_attributes(rondo_onnx_node *node, const void *data) {
  float lowest, highest;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_float(node, "min", -INFINITY, &lowest));
  RONDO_TRY(rondo_onnx_attribute_float(node, "max", INFINITY, &highest));
  return clamp_with(node, lowest, highest);
}

/* A limit of a float value that is known without the values of inputs; an F32 holds those of all float types. */
static rondo_status find_limit(rondo_onnx_node *node, size_t index, float *inout) {
  const double *numbers;
  size_t count;
  if (!rondo_onnx_has_input(node, index)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_known_numbers(node, index, &numbers, &count));
  if (count != 1) return rondo_onnx_refuse(node, "input %zu has %zu elements, not one", index, count);
  *inout = (float)numbers[0];
  return RONDO_OK;
}

static rondo_status clip_values(rondo_onnx_node *node) {
  rondo_program *program;
  rondo_value y, limit;
  RONDO_TRY(rondo_onnx_operand(node, 0, &y));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (rondo_onnx_has_input(node, 1)) {
    RONDO_TRY(rondo_onnx_operand(node, 1, &limit));
    RONDO_TRY(rondo_op_maximum(program, y, limit, &y));
  }
  if (rondo_onnx_has_input(node, 2)) {
    RONDO_TRY(rondo_onnx_operand(node, 2, &limit));
    RONDO_TRY(rondo_op_minimum(program, y, limit, &y));
  }
  return rondo_onnx_set_result(node, 0, y);
}

static bool is_fixed(const rondo_onnx_node *node, size_t index) {
  return !rondo_onnx_has_input(node, index) ||
         (rondo_onnx_is_constant(node, index) && !rondo_onnx_has_result(&node->inputs[index]));
}

static rondo_status add_clip(rondo_onnx_node *node, const void *data) {
  float lowest = -INFINITY, highest = INFINITY;
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, 0);
  (void)data;
  if (rondo_onnx_shape_count(shape) == 0) return rondo_onnx_set_empty(node, 0, shape);
  const bool is_float = shape->type == RONDO_ONNX_FLOAT || shape->type == RONDO_ONNX_FLOAT16 ||
                        shape->type == RONDO_ONNX_BFLOAT16 || shape->type == RONDO_ONNX_DOUBLE;
  if (!is_float || !is_fixed(node, 1) || !is_fixed(node, 2)) return clip_values(node);
  RONDO_TRY(find_limit(node, 1, &lowest));
  RONDO_TRY(find_limit(node, 2, &highest));
  return clamp_with(node, lowest, highest);
}

/* The table -------------------------------------------------------------------------------------------------------- */

#define WIDE RONDO_ONNX_ROW_WIDE
#define MERGED RONDO_ONNX_ROW_MERGED
#define UNARY(name, first, ...)                                                         \
  {                                                                                     \
    name, first, 0, 1, 1, WIDE | MERGED, add_unary, &(const unary_form) { __VA_ARGS__ } \
  }
#define NUMBERS(name, first, function, ...)                           \
  {                                                                   \
    name, first, 0, 1, 1, MERGED, add_numbers, &(const number_form) { \
      function, { __VA_ARGS__ }                                       \
    }                                                                 \
  }
#define ORDERED(name, first, ...)                                                         \
  {                                                                                       \
    name, first, 0, 2, 2, WIDE | MERGED, add_binary, &(const binary_form) { __VA_ARGS__ } \
  }
#define BINARY(name, first, function, result) ORDERED(name, first, function, result, NULL)
#define ALIGNED(name, ...)                                                       \
  {                                                                              \
    name, 6, 6, 2, 2, 0, add_aligned, &(const binary_form) { __VA_ARGS__, NULL } \
  }
#define MANY(name, first, is_mean, ...)                                                                         \
  {                                                                                                             \
    name, first, 0, RONDO_ONNX_ANY_NUMBER, RONDO_ONNX_ANY_NUMBER, WIDE | MERGED, add_many, &(const many_form) { \
      {__VA_ARGS__}, is_mean                                                                                    \
    }                                                                                                           \
  }

static const rondo_onnx_row rows[] = {
    UNARY("Abs", 6, rondo_op_abs, 0),
    UNARY("Acos", 7, rondo_op_acos, 0),
    UNARY("Acosh", 9, rondo_op_acosh, 0),
    UNARY("Asin", 7, rondo_op_asin, 0),
    UNARY("Asinh", 9, rondo_op_asinh, 0),
    UNARY("Atan", 7, rondo_op_atan, 0),
    UNARY("Atanh", 9, rondo_op_atanh, 0),
    UNARY("BitwiseNot", 18, rondo_op_bitwise_not, 0),
    UNARY("Ceil", 6, rondo_op_ceil, 0),
    UNARY("Cos", 7, rondo_op_cos, 0),
    UNARY("Cosh", 9, rondo_op_cosh, 0),
    UNARY("Erf", 9, rondo_op_erf, 0),
    UNARY("Exp", 6, rondo_op_exp, 0),
    UNARY("Floor", 6, rondo_op_floor, 0),
    UNARY("HardSwish", 14, rondo_op_hardswish, 0),
    UNARY("IsNaN", 9, rondo_op_is_nan, RONDO_ONNX_BOOL),
    UNARY("Log", 6, rondo_op_log, 0),
    UNARY("Mish", 18, rondo_op_mish, 0),
    UNARY("Neg", 6, rondo_op_neg, 0),
    UNARY("Not", 1, rondo_op_logical_not, RONDO_ONNX_BOOL),
    UNARY("Reciprocal", 6, rondo_op_reciprocal, 0),
    UNARY("Relu", 6, rondo_op_relu, 0),
    UNARY("Round", 11, rondo_op_round, 0),
    UNARY("Sigmoid", 6, rondo_op_sigmoid, 0),
    UNARY("Sign", 9, rondo_op_sign, 0),
    UNARY("Sin", 7, rondo_op_sin, 0),
    UNARY("Sinh", 9, rondo_op_sinh, 0),
    UNARY("Softsign", 1, rondo_op_softsign, 0),
    UNARY("Sqrt", 6, rondo_op_sqrt, 0),
    UNARY("Tan", 7, rondo_op_tan, 0),
    UNARY("Tanh", 6, rondo_op_tanh, 0),
    NUMBERS("Celu", 12, celu, {"alpha", 1}),
    NUMBERS("Elu", 6, elu, {"alpha", 1}),
    NUMBERS("HardSigmoid", 6, hardsigmoid, {"alpha", 0.2f}, {"beta", 0.5f}),
    NUMBERS("LeakyRelu", 6, leaky_relu, {"alpha", 0.01f}),
    NUMBERS("Selu", 6, selu, {"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}),
    NUMBERS("Shrink", 9, shrink, {"lambd", 0.5f}, {"bias", 0}),
    NUMBERS("Softplus", 1, softplus, {NULL, 0}),
    NUMBERS("Swish", 24, swish, {"alpha", 1}),
    NUMBERS("ThresholdedRelu", 10, thresholded_relu, {"alpha", 1}),
    {"PRelu", 6, 0, 2, 2, 0, add_prelu, NULL},
    {"SwiGLU", 28, 0, 2, 2, MERGED, add_swiglu, NULL},
    {"Gelu", 20, 0, 1, 1, MERGED, add_gelu, NULL},
    {"IsInf", 10, 0, 1, 1, MERGED, add_is_inf, NULL},
    ALIGNED("Add", rondo_op_add, 0),
    BINARY("Add", 7, rondo_op_add, 0),
    ALIGNED("And", rondo_op_logical_and, RONDO_ONNX_BOOL),
    BINARY("And", 7, rondo_op_logical_and, RONDO_ONNX_BOOL),
    BINARY("BitwiseAnd", 18, rondo_op_bitwise_and, 0),
    BINARY("BitwiseOr", 18, rondo_op_bitwise_or, 0),
    BINARY("BitwiseXor", 18, rondo_op_bitwise_xor, 0),
    ALIGNED("Div", rondo_op_div, 0),
    ORDERED("Div", 7, rondo_op_div, 0, rondo_onnx_unsigned_div),
    ALIGNED("Equal", rondo_op_equal, RONDO_ONNX_BOOL),
    BINARY("Equal", 7, rondo_op_equal, RONDO_ONNX_BOOL),
    ALIGNED("Greater", rondo_op_greater, RONDO_ONNX_BOOL),
    ORDERED("Greater", 7, rondo_op_greater, RONDO_ONNX_BOOL, rondo_onnx_unsigned_greater),
    ORDERED("GreaterOrEqual", 12, rondo_op_greater_equal, RONDO_ONNX_BOOL, rondo_onnx_unsigned_greater_equal),
    ALIGNED("Less", rondo_op_less, RONDO_ONNX_BOOL),
    ORDERED("Less", 7, rondo_op_less, RONDO_ONNX_BOOL, rondo_onnx_unsigned_less),
    ORDERED("LessOrEqual", 12, rondo_op_less_equal, RONDO_ONNX_BOOL, rondo_onnx_unsigned_less_equal),
    ALIGNED("Mul", rondo_op_mul, 0),
    BINARY("Mul", 7, rondo_op_mul, 0),
    ALIGNED("Or", rondo_op_logical_or, RONDO_ONNX_BOOL),
    BINARY("Or", 7, rondo_op_logical_or, RONDO_ONNX_BOOL),
    ALIGNED("Sub", rondo_op_sub, 0),
    BINARY("Sub", 7, rondo_op_sub, 0),
    ALIGNED("Xor", rondo_op_logical_xor, RONDO_ONNX_BOOL),
    BINARY("Xor", 7, rondo_op_logical_xor, RONDO_ONNX_BOOL),
    {"BitShift", 11, 0, 2, 2, WIDE | MERGED, add_bit_shift, NULL},
    {"Mod", 10, 0, 2, 2, WIDE | MERGED, add_mod, NULL},
    ALIGNED("Pow", rondo_op_pow, 0),
    {"Pow", 7, 0, 2, 2, WIDE | MERGED, add_pow, NULL},
    MANY("Max", 6, false, rondo_op_maximum, 0, rondo_onnx_unsigned_maximum),
    MANY("Mean", 6, true, rondo_op_add, 0, NULL),
    MANY("Min", 6, false, rondo_op_minimum, 0, rondo_onnx_unsigned_minimum),
    MANY("Sum", 6, false, rondo_op_add, 0, NULL),
    {"BitCast", 26, 0, 1, 1, WIDE | MERGED, add_bit_cast, NULL},
    {"Cast", 6, 0, 1, 1, WIDE | MERGED | RONDO_ONNX_ROW_COUNTED, add_cast, NULL},
    {"CastLike", 15, 0, 2, 2, WIDE, add_cast_like, NULL},
    {"Clip", 6, 10, 1, 1, MERGED, add_clip_attributes, NULL},
    {"Clip", 11, 0, 1, 3, MERGED, add_clip, NULL},
    {"Where", 9, 0, 3, 3, WIDE | MERGED, add_where, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_elementwise, rows);
