/* SPDX-License-Identifier: MIT
 * mse: the mean, or sum, of (value - target)^2.
 */
#include "tensor/operators/loss/pair_loss.h"
#include "tensor/program/program_internal.h"

RONDO_INLINE float square(float a, float b) { return (a - b) * (a - b); }
RONDO_INLINE float slope_a(float a, float b) { return 2.0f * (a - b); }
RONDO_INLINE float slope_b(float a, float b) { return 2.0f * (b - a); }

RONDO_PAIR_LOSS_CHUNKS(square, slope_a, slope_b)

static void mse_parts_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_pair_parts(type, loss_chunk, blocks, args);
}

static void mse_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_pair_slope(type, slope_chunk, blocks, args);
}

RONDO_TYPED_KERNEL(mse_parts, mse, RONDO_PAIR_PARTS_PARAMETERS);
RONDO_TYPED_KERNEL(mse_gradient, mse, RONDO_PAIR_SLOPE_PARAMETERS);

static const rondo_pair_loss loss_family = {mse_parts_code, &rondo_operator_mse_gradient};
static const rondo_pair_loss slope_family = {.code = mse_gradient_code};

const rondo_operator rondo_operator_mse = {
    .name = "mse", .types = RONDO_FLOATS, .inputs = {"value", "target"}, .family = &loss_family, RONDO_PAIR_LOSS_ROW};
const rondo_operator rondo_operator_mse_gradient = {
    .name = "mse_gradient", .inputs = {"value", "target", "gradient"}, .family = &slope_family, RONDO_PAIR_SLOPE_ROW};

rondo_status rondo_op_mse(rondo_program *program, rondo_value value, rondo_value target, rondo_combine combine,
                          rondo_value *out_value) {
  return rondo_apply_pair_loss(program, &rondo_operator_mse, value, target, combine, out_value);
}
