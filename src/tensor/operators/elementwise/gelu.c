/* SPDX-License-Identifier: MIT
 * gelu, x Phi(x), elementwise, where Phi is the distribution function of the normal distribution (Hendrycks, Gimpel
 * 2016), and its gradient, which needs the input. Its approximation is gelu_tanh.c.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

/* Phi(x) */
RONDO_INLINE float gelu_share(float x) { return 0.5f + 0.5f * rondo_erf(x * 0.707106781f); }

/* Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi) */
RONDO_INLINE float gelu_slope(float x, float dy) {
  return dy * (gelu_share(x) + x * 0.398942280f * rondo_exp_negative(-0.5f * x * x));
}

RONDO_UNARY_CHUNK(forward, x *gelu_share(x))
RONDO_SLOPE_CHUNK(slope, gelu_slope(kept, dy))

static void gelu_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void gelu_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(gelu, gelu, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(gelu_gradient, gelu, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = gelu_code, .chunk = forward, .gradient = &rondo_operator_gelu_gradient};
static const rondo_unary slope_family = {.code = gelu_gradient_code, .slope = slope};

const rondo_operator rondo_operator_gelu = {.name = "gelu", .family = &forward_family, RONDO_UNARY_ROW(gelu)};
const rondo_operator rondo_operator_gelu_gradient = {
    .name = "gelu_gradient", .family = &slope_family, RONDO_SLOPE_ROW(gelu)};

rondo_status rondo_op_gelu(rondo_program *program, rondo_value value, rondo_gelu_form form, rondo_value *out_value) {
  RONDO_TRY(rondo_require("gelu", "out_value", out_value));
  *out_value = (rondo_value){0};
  if (form != RONDO_GELU_ERF && form != RONDO_GELU_TANH) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "gelu: form %d is neither RONDO_GELU_ERF nor RONDO_GELU_TANH", (int)form);
  }
  const rondo_operator *row = form == RONDO_GELU_TANH ? &rondo_operator_gelu_tanh : &rondo_operator_gelu;
  return rondo_program_apply(program, row, &value, 1, NULL, out_value);
}
