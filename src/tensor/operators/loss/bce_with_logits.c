/* SPDX-License-Identifier: MIT
 * bce_with_logits: the mean, or sum, of the binary cross entropy of sigmoid(x) with the target t, in the form that
 * overflows for no x: max(x, 0) - x t + log(1 + exp(-|x|)). Its slope in x is sigmoid(x) - t.
 */
#include <math.h>

#include "tensor/operators/loss/pair_loss.h"
#include "tensor/program/program_internal.h"

RONDO_INLINE float loss_of(float x, float t) {
  const float above = x < 0 ? 0 : x; /* NaN stays */
  return above - x * t + log1pf(rondo_exp_negative(-fabsf(x)));
}

/* Over 1 + exp(-|x|) goes exp(-|x|) for x < 0, and 1 for others. */
RONDO_INLINE float slope_of_logits(float x, float t) {
  const float e = rondo_exp_negative(-fabsf(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e) - t;
}

RONDO_INLINE float slope_of_target(float x, float t) {
  (void)t;
  return -x;
}

RONDO_PAIR_LOSS_CHUNKS(loss_of, slope_of_logits, slope_of_target)

static void bce_with_logits_parts_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_pair_parts(type, loss_chunk, blocks, args);
}

static void bce_with_logits_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_pair_slope(type, slope_chunk, blocks, args);
}

RONDO_TYPED_KERNEL(bce_with_logits_parts, bce_with_logits, RONDO_PAIR_PARTS_PARAMETERS);
RONDO_TYPED_KERNEL(bce_with_logits_gradient, bce_with_logits, RONDO_PAIR_SLOPE_PARAMETERS);

static const rondo_pair_loss loss_family = {bce_with_logits_parts_code, &rondo_operator_bce_with_logits_gradient};
static const rondo_pair_loss slope_family = {.code = bce_with_logits_gradient_code};

const rondo_operator rondo_operator_bce_with_logits = {.name = "bce_with_logits",
                                                       .types = RONDO_FLOATS,
                                                       .inputs = {"logits", "target"},
                                                       .family = &loss_family,
                                                       RONDO_PAIR_LOSS_ROW};
const rondo_operator rondo_operator_bce_with_logits_gradient = {.name = "bce_with_logits_gradient",
                                                                .inputs = {"logits", "target", "gradient"},
                                                                .family = &slope_family,
                                                                RONDO_PAIR_SLOPE_ROW};

rondo_status rondo_op_bce_with_logits(rondo_program *program, rondo_value logits, rondo_value target,
                                      rondo_combine combine, rondo_value *out_value) {
  return rondo_apply_pair_loss(program, &rondo_operator_bce_with_logits, logits, target, combine, out_value);
}
