/* SPDX-License-Identifier: MIT
 * A batch normalization in inference after a convolution: with s = scale / sqrt(variance + epsilon), the convolution
 * has the weights w s and the bias (bias - mean) s + shift. These are computed in each run, because states may be
 * written between runs. So it pays if there are fewer weights than results. Threads: any.
 */
#include "tensor/operators/patterns/pattern_batch_norm.h"

#include <string.h>

#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/normalization/batch_norm.h"
#include "tensor/operators/patterns/pattern_finder.h"

enum { X, WEIGHT, BIAS, SCALE, SHIFT, MEAN, VARIANCE }; /* values */
enum { EPSILON };                                       /* numbers */

static bool find_batch_norm(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *norm = rondo_find_root(&f);
  if (norm->row != &rondo_operator_batch_norm || !norm->attributes.flags[RONDO_BATCH_NORM_FIXED]) return false;
  const rondo_operation *conv = rondo_take(&f, norm->inputs[RONDO_BATCH_NORM_VALUE], &rondo_operator_conv);
  if (conv == NULL || conv->attributes.sizes[RONDO_CONV_ACTIVATION] != RONDO_ACTIVATION_NONE) return false;
  const rondo_shape *weight = rondo_find_shape(&f, conv->inputs[WEIGHT]);
  if (weight->type != RONDO_F32) return false;
  memcpy(match->values, conv->inputs, (BIAS + 1) * sizeof *match->values);
  for (uint32_t i = 0; i < 4; i++) match->values[SCALE + i] = norm->inputs[RONDO_BATCH_NORM_SCALE + i];
  match->numbers[EPSILON] = norm->attributes.numbers[RONDO_BATCH_NORM_EPSILON];
  match->attributes = conv->attributes;
  return rondo_shape_elements(weight) < rondo_shape_elements(rondo_find_shape(&f, norm->results[0]));
}

rondo_status rondo_add_norm_factors(rondo_program *program, const rondo_norm_values *of, rondo_value *out_factor,
                                    rondo_value *out_offset) {
  const rondo_value mean = rondo_program_tag(program, of->mean), bias = rondo_optional_tag(program, of->bias);
  const rondo_value scale = rondo_optional_tag(program, of->scale), shift = rondo_optional_tag(program, of->shift);
  RONDO_TRY(rondo_op_add_constant(program, rondo_program_tag(program, of->variance), of->epsilon, out_factor));
  RONDO_TRY(rondo_op_rsqrt(program, *out_factor, out_factor));
  if (scale.id != 0) RONDO_TRY(rondo_op_mul(program, *out_factor, scale, out_factor));
  RONDO_TRY(bias.id == 0 ? rondo_op_neg(program, mean, out_offset) : rondo_op_sub(program, bias, mean, out_offset));
  RONDO_TRY(rondo_op_mul(program, *out_offset, *out_factor, out_offset));
  return shift.id == 0 ? RONDO_OK : rondo_op_add(program, *out_offset, shift, out_offset);
}

static rondo_status add_scaled_conv(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const rondo_shape weight = *rondo_program_shape(program, match->values[WEIGHT]);
  const size_t each[RONDO_MAX_DIMENSIONS] = {weight.dims[0], 1, 1, 1, 1, 1};
  rondo_value factor, factors,
      inputs[] = {rondo_program_tag(program, match->values[X]), rondo_program_tag(program, match->values[WEIGHT]), {0}};
  const rondo_norm_values of = {match->values[BIAS], match->values[SCALE],    match->values[SHIFT],
                                match->values[MEAN], match->values[VARIANCE], match->numbers[EPSILON]};
  RONDO_TRY(rondo_add_norm_factors(program, &of, &factor, &inputs[BIAS]));
  RONDO_TRY(rondo_op_reshape(program, factor, each, weight.rank, &factors));
  RONDO_TRY(rondo_op_mul(program, inputs[WEIGHT], factors, &inputs[WEIGHT]));
  return rondo_program_apply(program, &rondo_operator_conv, inputs, 3, &match->attributes, out);
}

const rondo_pattern rondo_pattern_batch_norm = {
    .name = "batch_norm", .find = find_batch_norm, .replace = add_scaled_conv};
