/* SPDX-License-Identifier: MIT
 * square, x^2, elementwise, and its gradient dx = 2 x dy, which needs the input.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, x *x)
RONDO_SLOPE_CHUNK(slope, 2.0f * kept * dy)

static void square_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void square_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(square, square, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(square_gradient, square, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = square_code, .chunk = forward, .gradient = &rondo_operator_square_gradient};
static const rondo_unary slope_family = {.code = square_gradient_code, .slope = slope};

const rondo_operator rondo_operator_square = {.name = "square", .family = &forward_family, RONDO_UNARY_ROW(square)};
const rondo_operator rondo_operator_square_gradient = {
    .name = "square_gradient", .family = &slope_family, RONDO_SLOPE_ROW(square)};

rondo_status rondo_op_square(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_square, &value, 1, NULL, out_value);
}
