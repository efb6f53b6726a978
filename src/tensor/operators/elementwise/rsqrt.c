/* SPDX-License-Identifier: MIT
 * rsqrt, 1 / sqrt(x), elementwise, and its gradient dx = -dy y^3 / 2, which needs the result alone.
 */
#include <math.h>

#include "tensor/operators/elementwise/unary.h"
#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, 1.0f / sqrtf(x))
RONDO_SLOPE_CHUNK(slope, -0.5f * dy * (kept * kept * kept))

static void rsqrt_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void rsqrt_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(rsqrt, rsqrt, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(rsqrt_gradient, rsqrt, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = rsqrt_code, .chunk = forward, .gradient = &rondo_operator_rsqrt_gradient, .keeps_result = true};
static const rondo_unary slope_family = {.code = rsqrt_gradient_code, .slope = slope};

const rondo_operator rondo_operator_rsqrt = {.name = "rsqrt", .family = &forward_family, RONDO_UNARY_ROW(rsqrt)};
const rondo_operator rondo_operator_rsqrt_gradient = {
    .name = "rsqrt_gradient", .family = &slope_family, RONDO_SLOPE_ROW(rsqrt)};

rondo_status rondo_op_rsqrt(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_rsqrt, &value, 1, NULL, out_value);
}
