/* SPDX-License-Identifier: MIT
 * exp, elementwise, and its gradient dx = dy y, which needs the result alone.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, rondo_exp(x))
RONDO_SLOPE_CHUNK(slope, dy *kept)

static void exp_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void exp_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(exp, exp, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(exp_gradient, exp, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = exp_code, .chunk = forward, .gradient = &rondo_operator_exp_gradient, .keeps_result = true};
static const rondo_unary slope_family = {.code = exp_gradient_code, .slope = slope};

const rondo_operator rondo_operator_exp = {.name = "exp", .family = &forward_family, RONDO_UNARY_ROW(exp)};
const rondo_operator rondo_operator_exp_gradient = {
    .name = "exp_gradient", .family = &slope_family, RONDO_SLOPE_ROW(exp)};

rondo_status rondo_op_exp(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_exp, &value, 1, NULL, out_value);
}
