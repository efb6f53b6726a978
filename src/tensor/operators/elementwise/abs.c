/* SPDX-License-Identifier: MIT
 * abs, |x|, elementwise, and its gradient dx = dy sign(x), 0 where x is 0, which needs the input.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

/* dy with the sign of x; 0 where x is 0, not a number where x is not. */
RONDO_INLINE float abs_slope(float x, float dy) {
  const uint32_t bits = rondo_float_bits(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t is_number = 0u - (uint32_t)(magnitude - 1u < 0x7f800000u);
  return rondo_choose(is_number, rondo_float_of(rondo_float_bits(dy) ^ (bits & 0x80000000u)), 0.0f * x);
}

RONDO_UNARY_CHUNK(forward, rondo_float_of(rondo_float_bits(x) & 0x7fffffffu))
RONDO_SLOPE_CHUNK(slope, abs_slope(kept, dy))

static void abs_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void abs_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(abs, abs, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(abs_gradient, abs, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = abs_code, .chunk = forward, .gradient = &rondo_operator_abs_gradient};
static const rondo_unary slope_family = {.code = abs_gradient_code, .slope = slope};

const rondo_operator rondo_operator_abs = {.name = "abs", .family = &forward_family, RONDO_UNARY_ROW(abs)};
const rondo_operator rondo_operator_abs_gradient = {
    .name = "abs_gradient", .family = &slope_family, RONDO_SLOPE_ROW(abs)};

rondo_status rondo_op_abs(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_abs, &value, 1, NULL, out_value);
}
