/* SPDX-License-Identifier: MIT
 * sqrt, elementwise, and its gradient dx = dy / (2 y), which needs the result alone.
 */
#include <math.h>

#include "tensor/operators/elementwise/unary.h"
#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, sqrtf(x))
RONDO_SLOPE_CHUNK(slope, 0.5f * dy / kept)

static void sqrt_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void sqrt_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(sqrt, sqrt, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(sqrt_gradient, sqrt, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = sqrt_code, .chunk = forward, .gradient = &rondo_operator_sqrt_gradient, .keeps_result = true};
static const rondo_unary slope_family = {.code = sqrt_gradient_code, .slope = slope};

const rondo_operator rondo_operator_sqrt = {.name = "sqrt", .family = &forward_family, RONDO_UNARY_ROW(sqrt)};
const rondo_operator rondo_operator_sqrt_gradient = {
    .name = "sqrt_gradient", .family = &slope_family, RONDO_SLOPE_ROW(sqrt)};

rondo_status rondo_op_sqrt(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_sqrt, &value, 1, NULL, out_value);
}
