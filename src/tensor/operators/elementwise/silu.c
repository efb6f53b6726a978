/* SPDX-License-Identifier: MIT
 * silu, x sigmoid(x), elementwise (Elfwing, Uchibe, Doya 2018), and its gradient, which needs the input.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

/* s (1 + x (1 - s)), s = sigmoid(x) */
RONDO_INLINE float silu_slope(float x, float dy) {
  const float s = rondo_sigmoid(x);
  return dy * (s * (1.0f + x * (1.0f - s)));
}

RONDO_UNARY_CHUNK(forward, x / (1.0f + rondo_exp(-x)))
RONDO_SLOPE_CHUNK(slope, silu_slope(kept, dy))

static void silu_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void silu_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(silu, silu, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(silu_gradient, silu, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = silu_code, .chunk = forward, .gradient = &rondo_operator_silu_gradient};
static const rondo_unary slope_family = {.code = silu_gradient_code, .slope = slope};

const rondo_operator rondo_operator_silu = {.name = "silu", .family = &forward_family, RONDO_UNARY_ROW(silu)};
const rondo_operator rondo_operator_silu_gradient = {
    .name = "silu_gradient", .family = &slope_family, RONDO_SLOPE_ROW(silu)};

rondo_status rondo_op_silu(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_silu, &value, 1, NULL, out_value);
}
