/* SPDX-License-Identifier: MIT
 * sigmoid, 1 / (1 + exp(-x)), elementwise, and its gradient dx = dy y (1 - y), which needs the result alone.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, rondo_sigmoid(x))
RONDO_SLOPE_CHUNK(slope, dy *kept *(1.0f - kept))

static void sigmoid_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void sigmoid_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(sigmoid, sigmoid, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(sigmoid_gradient, sigmoid, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = sigmoid_code, .chunk = forward, .gradient = &rondo_operator_sigmoid_gradient, .keeps_result = true};
static const rondo_unary slope_family = {.code = sigmoid_gradient_code, .slope = slope};

const rondo_operator rondo_operator_sigmoid = {.name = "sigmoid", .family = &forward_family, RONDO_UNARY_ROW(sigmoid)};
const rondo_operator rondo_operator_sigmoid_gradient = {
    .name = "sigmoid_gradient", .family = &slope_family, RONDO_SLOPE_ROW(sigmoid)};

rondo_status rondo_op_sigmoid(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_sigmoid, &value, 1, NULL, out_value);
}
