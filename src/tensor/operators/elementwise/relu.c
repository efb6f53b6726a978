/* SPDX-License-Identifier: MIT
 * relu, max(0, x), elementwise, and its gradient, which needs the result alone. Not-a-number stays one.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

/* All ones for a number above 0. */
RONDO_INLINE uint32_t rondo_positive_mask(float x) {
  const uint32_t bits = rondo_float_bits(x);
  return 0u - (uint32_t)(bits - 1u < 0x7f800000u);
}

RONDO_INLINE float rondo_relu(float x) {
  const uint32_t magnitude = rondo_float_bits(x) & 0x7fffffffu;
  return rondo_choose(rondo_positive_mask(x) | rondo_nan_mask(magnitude), x, 0.0f);
}

RONDO_UNARY_CHUNK(forward, rondo_relu(x))
RONDO_SLOPE_CHUNK(slope, rondo_choose(rondo_positive_mask(kept), dy, 0.0f))

static void relu_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void relu_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(relu, relu, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(relu_gradient, relu, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = relu_code, .chunk = forward, .gradient = &rondo_operator_relu_gradient, .keeps_result = true};
static const rondo_unary slope_family = {.code = relu_gradient_code, .slope = slope};

const rondo_operator rondo_operator_relu = {.name = "relu", .family = &forward_family, RONDO_UNARY_ROW(relu)};
const rondo_operator rondo_operator_relu_gradient = {
    .name = "relu_gradient", .family = &slope_family, RONDO_SLOPE_ROW(relu)};

rondo_status rondo_op_relu(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_relu, &value, 1, NULL, out_value);
}
