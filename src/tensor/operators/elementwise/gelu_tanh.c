/* SPDX-License-Identifier: MIT
 * gelu_tanh, the approximation of gelu as x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks,
 * Gimpel 2016), computed as x sigmoid(2 u), and its gradient, which needs the input. The public function is in gelu.c.
 */
#include "tensor/operators/elementwise/unary.h"

/* 2 u */
RONDO_INLINE float gelu_twice(float x) { return 1.59576912f * x * (1.0f + 0.044715f * x * x); }

/* s + x s (1 - s) 2 u', s = sigmoid(2 u). Beyond 16 s (1 - s) is 0, and u' may be infinite. */
RONDO_INLINE float gelu_tanh_slope(float x, float dy) {
  const uint32_t is_far = 0u - (uint32_t)((rondo_float_bits(x) & 0x7fffffffu) - 0x41800000u < 0x3e000001u);
  const float s = rondo_sigmoid(gelu_twice(x));
  const float z = rondo_choose(is_far, 16.0f, x);
  return dy * (s + z * s * (1.0f - s) * (1.59576912f + 0.214065595f * z * z));
}

RONDO_UNARY_CHUNK(forward, x *rondo_sigmoid(gelu_twice(x)))
RONDO_SLOPE_CHUNK(slope, gelu_tanh_slope(kept, dy))

static void gelu_tanh_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void gelu_tanh_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(gelu_tanh, gelu_tanh, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(gelu_tanh_gradient, gelu_tanh, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = gelu_tanh_code, .chunk = forward, .gradient = &rondo_operator_gelu_tanh_gradient};
static const rondo_unary slope_family = {.code = gelu_tanh_gradient_code, .slope = slope};

const rondo_operator rondo_operator_gelu_tanh = {
    .name = "gelu_tanh", .family = &forward_family, RONDO_UNARY_ROW(gelu_tanh)};
const rondo_operator rondo_operator_gelu_tanh_gradient = {
    .name = "gelu_tanh_gradient", .family = &slope_family, RONDO_SLOPE_ROW(gelu_tanh)};
