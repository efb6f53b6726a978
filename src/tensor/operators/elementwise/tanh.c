/* SPDX-License-Identifier: MIT
 * tanh, elementwise, and its gradient dx = dy (1 - y^2), which needs the result alone.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, rondo_tanh(x))
RONDO_SLOPE_CHUNK(slope, dy *(1.0f - kept * kept))

static void tanh_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void tanh_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(tanh, tanh, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(tanh_gradient, tanh, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = tanh_code, .chunk = forward, .gradient = &rondo_operator_tanh_gradient, .keeps_result = true};
static const rondo_unary slope_family = {.code = tanh_gradient_code, .slope = slope};

const rondo_operator rondo_operator_tanh = {.name = "tanh", .family = &forward_family, RONDO_UNARY_ROW(tanh)};
const rondo_operator rondo_operator_tanh_gradient = {
    .name = "tanh_gradient", .family = &slope_family, RONDO_SLOPE_ROW(tanh)};

rondo_status rondo_op_tanh(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_tanh, &value, 1, NULL, out_value);
}
