/* SPDX-License-Identifier: MIT
 * What follows a matrix product or a convolution and can be computed with it: a bias, an activation. Threads: any.
 */
#include <string.h>

#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/matmul/matmul_problem.h"
#include "tensor/operators/patterns/pattern_finder.h"

enum { A, B, BIAS };          /* values: the inputs of the product or convolution */
enum { IS_CONV, ACTIVATION }; /* sizes */

static bool is_product(const rondo_operation *operation) {
  return operation != NULL && (operation->row == &rondo_operator_matmul || operation->row == &rondo_operator_conv);
}

/* Takes a product or convolution that has no activation yet. */
static bool take_product(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *product = rondo_find_maker(f, value);
  rondo_pattern_match *match = f->match;
  if (!is_product(product)) return false;
  const bool is_conv = product->row == &rondo_operator_conv;
  if (is_conv && f->search->target.is_cuda) return false; /* a chain adds the bias and applies the activation at once */
  if (!is_conv && product->attributes.sizes[RONDO_MATMUL_ACTIVATION] != RONDO_ACTIVATION_NONE) return false;
  if (is_conv && product->attributes.sizes[RONDO_CONV_ACTIVATION] != RONDO_ACTIVATION_NONE) return false;
  (void)rondo_take(f, value, product->row);
  memcpy(match->values, product->inputs, (BIAS + 1) * sizeof *match->values);
  match->sizes[IS_CONV] = is_conv;
  match->sizes[ACTIVATION] = RONDO_ACTIVATION_NONE;
  match->attributes = product->attributes;
  return true;
}

/* Bias ------------------------------------------------------------------------------------------------------------- */

/* Whether the value has one number for each column of a product, or for each channel of a convolution. */
static bool is_bias(const rondo_pattern_finder *f, uint32_t value, const rondo_shape *result) {
  const rondo_shape *bias = rondo_find_shape(f, value);
  if (bias->type != result->type) return false;
  if (f->match->sizes[IS_CONV] == 0) return rondo_is_of_last(bias, result, 1);
  const uint32_t planes = result->rank - 2;
  if (bias->rank != planes + 1 && bias->rank != planes + 2) return false;
  for (uint32_t i = 0; i < bias->rank; i++)
    if (bias->dims[i] != (i + planes + 1 == bias->rank ? result->dims[1] : 1)) return false;
  return true;
}

static bool find_bias(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_pattern_match before = *match;
  const rondo_operation *root = rondo_find_root(&f);
  const rondo_shape *result = rondo_find_shape(&f, root->results[0]);
  for (uint32_t k = 0; k < 2 && root->row == &rondo_operator_add; k++) {
    *match = before;
    if (!take_product(&f, root->inputs[k]) || match->values[BIAS] != RONDO_NO_VALUE) continue;
    if (!rondo_shape_same(rondo_find_shape(&f, root->inputs[k]), result)) continue;
    match->values[BIAS] = root->inputs[1 - k];
    if (is_bias(&f, root->inputs[1 - k], result)) return true;
  }
  return false;
}

/* Activation ------------------------------------------------------------------------------------------------------- */

static bool find_activation(const rondo_pattern_search *search, rondo_pattern_match *match) {
  static const struct {
    const rondo_operator *row;
    rondo_activation activation;
  } activations[] = {{&rondo_operator_relu, RONDO_ACTIVATION_RELU},
                     {&rondo_operator_gelu, RONDO_ACTIVATION_GELU},
                     {&rondo_operator_gelu_tanh, RONDO_ACTIVATION_GELU_TANH},
                     {&rondo_operator_silu, RONDO_ACTIVATION_SILU}};
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *root = rondo_find_root(&f);
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (root->row != activations[i].row || !take_product(&f, root->inputs[0])) continue;
    match->sizes[ACTIVATION] = (size_t)activations[i].activation;
    return true;
  }
  return false;
}

/* Replacing -------------------------------------------------------------------------------------------------------- */

static rondo_status add_product(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  rondo_value bias = rondo_optional_tag(program, match->values[BIAS]);
  if (bias.id != 0) {
    const size_t count = rondo_shape_elements(rondo_program_shape(program, match->values[BIAS]));
    RONDO_TRY(rondo_op_reshape(program, bias, &count, 1, &bias));
  }
  if (match->sizes[IS_CONV] == 0) {
    const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .bias = bias,
                                          .activation = (rondo_activation)match->sizes[ACTIVATION],
                                          .transpose_a = match->attributes.flags[RONDO_MATMUL_TRANSPOSE_A],
                                          .transpose_b = match->attributes.flags[RONDO_MATMUL_TRANSPOSE_B]};
    return rondo_op_matmul_with(program, rondo_program_tag(program, match->values[A]),
                                rondo_program_tag(program, match->values[B]), &options, out);
  }
  rondo_attributes attributes = match->attributes;
  attributes.sizes[RONDO_CONV_ACTIVATION] = match->sizes[ACTIVATION];
  const rondo_value inputs[] = {rondo_program_tag(program, match->values[A]),
                                rondo_program_tag(program, match->values[B]), bias};
  return rondo_program_apply(program, &rondo_operator_conv, inputs, 3, &attributes, out);
}

const rondo_pattern rondo_pattern_bias = {.name = "bias", .find = find_bias, .replace = add_product};
const rondo_pattern rondo_pattern_activation = {.name = "activation", .find = find_activation, .replace = add_product};
