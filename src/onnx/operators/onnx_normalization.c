/* SPDX-License-Identifier: MIT
 * Normalizations.
 */
#include <float.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/import/scaled_image.h"
#include "onnx/operators/operator_families.h"

/* Operators of programs need an epsilon above 0; ONNX's may be 0. */
static rondo_status read_epsilon(rondo_onnx_node *node, float *out) {
  RONDO_TRY(rondo_onnx_attribute_float(node, "epsilon", 1e-5f, out));
  if (!(*out >= 0)) return rondo_onnx_refuse_attribute(node, "epsilon", "it is %g", (double)*out);
  if (*out == 0) *out = FLT_MIN;
  return RONDO_OK;
}

/* An operand as F32; no value where it is left out. */
static rondo_status float_operand(rondo_onnx_node *node, size_t index, rondo_value *out) {
  rondo_program *program;
  *out = (rondo_value){0};
  if (!rondo_onnx_has_input(node, index)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return rondo_op_cast(program, *out, RONDO_F32, out);
}

/* Mean and variance over these dimensions, which stay with size 1. */
static rondo_status add_moments(rondo_program *program, rondo_value x, const size_t *dims, size_t count,
                                rondo_value *out_mean, rondo_value *out_variance) {
  rondo_value distance;
  RONDO_TRY(rondo_op_mean(program, x, dims, count, true, out_mean));
  RONDO_TRY(rondo_op_sub(program, x, *out_mean, &distance));
  RONDO_TRY(rondo_op_square(program, distance, &distance));
  return rondo_op_mean(program, distance, dims, count, true, out_variance);
}

/* LayerNormalization, RMSNormalization ----------------------------------------------------------------------------- */

/* Which dimensions are normalised: those from the axis on. */
typedef struct last_dimensions {
  size_t first, count;
  const size_t *sizes;
  float epsilon;
} last_dimensions;

static rondo_status find_last_dimensions(rondo_onnx_node *node, last_dimensions *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t axis, stash_type;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", -1, &axis));
  RONDO_TRY(rondo_onnx_attribute_int(node, "stash_type", RONDO_ONNX_FLOAT, &stash_type));
  if (stash_type != RONDO_ONNX_FLOAT)
    return rondo_onnx_refuse_attribute(node, "stash_type", "programs compute normalizations in float");
  RONDO_TRY(read_epsilon(node, &out->epsilon));
  RONDO_TRY(rondo_onnx_axis(axis, have->rank, &out->first));
  out->count = have->rank - out->first;
  out->sizes = have->dims + out->first;
  return RONDO_OK;
}

/* The scale or shift with the sizes of these dimensions; no value where it is left out. */
static rondo_status expanded_operand(rondo_onnx_node *node, size_t index, const last_dimensions *over,
                                     rondo_value *out) {
  rondo_program *program;
  *out = (rondo_value){0};
  if (!rondo_onnx_has_input(node, index)) return RONDO_OK;
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  if (shape->rank == over->count && memcmp(shape->dims, over->sizes, shape->rank * sizeof *over->sizes) == 0)
    return RONDO_OK;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  return rondo_op_expand(program, *out, over->sizes, over->count, out);
}

/* Mean and inverse standard deviation, in float, as outputs 1 and 2. */
static rondo_status set_statistics(rondo_onnx_node *node, rondo_value x, const last_dimensions *over) {
  rondo_program *program;
  rondo_value mean, inverse;
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS];
  if (!rondo_onnx_wants_output(node, 1) && !rondo_onnx_wants_output(node, 2)) return RONDO_OK;
  for (size_t i = 0; i < over->count; i++) dims[i] = over->first + i;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(add_moments(program, x, dims, over->count, &mean, &inverse));
  RONDO_TRY(rondo_op_add_constant(program, inverse, over->epsilon, &inverse));
  RONDO_TRY(rondo_op_rsqrt(program, inverse, &inverse));
  RONDO_TRY(rondo_onnx_set_typed(node, 1, mean, RONDO_ONNX_FLOAT));
  return rondo_onnx_set_typed(node, 2, inverse, RONDO_ONNX_FLOAT);
}

static rondo_status add_layer_norm(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_type type = rondo_onnx_input_shape(node, 0)->type;
  last_dimensions over;
  rondo_program *program;
  rondo_value x, scale, shift, y;
  (void)data;
  RONDO_TRY(find_last_dimensions(node, &over));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(expanded_operand(node, 1, &over, &scale));
  RONDO_TRY(expanded_operand(node, 2, &over, &shift));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_layer_norm(program, x, scale, shift, over.count, over.epsilon, &y));
  RONDO_TRY(set_statistics(node, x, &over));
  return rondo_onnx_set_typed(node, 0, y, type);
}

static rondo_status add_rms_norm(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_type type = rondo_onnx_input_shape(node, 0)->type;
  last_dimensions over;
  rondo_program *program;
  rondo_value x, scale, y;
  (void)data;
  RONDO_TRY(find_last_dimensions(node, &over));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(expanded_operand(node, 1, &over, &scale));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_rms_norm(program, x, scale, over.count, over.epsilon, &y));
  return rondo_onnx_set_typed(node, 0, y, type);
}

/* GroupNormalization, InstanceNormalization ------------------------------------------------------------------------ */

/* Before operator set 21, scale and shift have a number for each group; of its channels from then on. */
static rondo_status channel_operand(rondo_onnx_node *node, size_t index, size_t groups, rondo_value *out) {
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, index);
  const size_t channels = rondo_onnx_input_shape(node, 0)->dims[1];
  rondo_program *program;
  RONDO_TRY(rondo_onnx_operand(node, index, out));
  if (node->opset >= 21) return RONDO_OK;
  if (shape->rank != 1 || shape->dims[0] != groups)
    return rondo_onnx_refuse(node, "input %zu has not one number for each of %zu groups", index, groups);
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, *out, (const size_t[]){groups, 1}, 2, out));
  RONDO_TRY(rondo_op_expand(program, *out, (const size_t[]){groups, channels / groups}, 2, out));
  return rondo_onnx_reshape(node, *out, &channels, 1, out);
}

static rondo_status add_group_norm(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t groups, stash_type;
  float epsilon;
  rondo_program *program;
  rondo_value x, scale, shift, y;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "num_groups", 0, &groups));
  RONDO_TRY(rondo_onnx_attribute_int(node, "stash_type", RONDO_ONNX_FLOAT, &stash_type));
  RONDO_TRY(read_epsilon(node, &epsilon));
  if (have->rank < 2 || groups < 1 || have->dims[1] % (size_t)groups != 0)
    return rondo_onnx_refuse_attribute(node, "num_groups", "it is %lld, which does not divide the channels",
                                       (long long)groups);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(channel_operand(node, 1, (size_t)groups, &scale));
  RONDO_TRY(channel_operand(node, 2, (size_t)groups, &shift));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_group_norm(program, x, (size_t)groups, scale, shift, epsilon, &y));
  return rondo_onnx_set_typed(node, 0, y, have->type);
}

static rondo_status add_instance_norm(rondo_onnx_node *node, const void *data) {
  float epsilon;
  rondo_program *program;
  rondo_value x, scale, shift, y;
  (void)data;
  RONDO_TRY(read_epsilon(node, &epsilon));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_operand(node, 1, &scale));
  RONDO_TRY(rondo_onnx_operand(node, 2, &shift));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_instance_norm(program, x, scale, shift, epsilon, &y));
  return rondo_onnx_set_typed(node, 0, y, rondo_onnx_input_shape(node, 0)->type);
}

/* BatchNormalization ----------------------------------------------------------------------------------------------- */

/* Reads what says whether the node trains. Before operator set 14, the number of its outputs does. */
static rondo_status read_training(rondo_onnx_node *node, float *out_momentum, bool *out_trains) {
  int64_t trains = 0, is_test, spatial = 1;
  RONDO_TRY(rondo_onnx_attribute_float(node, "momentum", 0.9f, out_momentum));
  if (node->opset < 7) RONDO_TRY(rondo_onnx_attribute_int(node, "is_test", 0, &is_test));
  if (node->opset < 9) RONDO_TRY(rondo_onnx_attribute_int(node, "spatial", 1, &spatial));
  if (node->opset >= 14) RONDO_TRY(rondo_onnx_attribute_int(node, "training_mode", 0, &trains));
  *out_trains = trains != 0;
  if (spatial == 0) return rondo_onnx_refuse_attribute(node, "spatial", "it is 0: statistics of each element");
  for (size_t i = 1; i < rondo_onnx_output_count(node) && node->opset < 14; i++)
    if (rondo_onnx_wants_output(node, i)) return rondo_onnx_refuse(node, "output %zu is one of training", i);
  return RONDO_OK;
}

static rondo_status set_running(rondo_onnx_node *node, size_t output, float momentum, rondo_value running,
                                rondo_value batch) {
  rondo_program *program;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_scale(program, running, momentum, &running));
  RONDO_TRY(rondo_op_scale(program, batch, 1 - momentum, &batch));
  RONDO_TRY(rondo_op_add(program, running, batch, &running));
  return rondo_onnx_set_typed(node, output, running, rondo_onnx_input_shape(node, 2 + output)->type);
}

/* Replaces the running mean and variance by those of the batch. */
static rondo_status use_batch_statistics(rondo_onnx_node *node, rondo_value x, float momentum,
                                         rondo_batch_norm_options *options) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_program *program;
  rondo_value mean, variance;
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS], count = 0;
  for (size_t i = 0; i < have->rank; i++)
    if (i != 1) dims[count++] = i;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(add_moments(program, x, dims, count, &mean, &variance));
  RONDO_TRY(rondo_onnx_reshape(node, mean, &have->dims[1], 1, &mean));
  RONDO_TRY(rondo_onnx_reshape(node, variance, &have->dims[1], 1, &variance));
  RONDO_TRY(set_running(node, 1, momentum, options->running_mean, mean));
  RONDO_TRY(set_running(node, 2, momentum, options->running_variance, variance));
  options->running_mean = mean;
  options->running_variance = variance;
  return RONDO_OK;
}

static rondo_status add_batch_norm(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .inference = true};
  float momentum;
  bool trains, is_made = false;
  rondo_program *program;
  rondo_value x, y;
  (void)data;
  RONDO_TRY(read_training(node, &momentum, &trains));
  RONDO_TRY(read_epsilon(node, &options.epsilon));
  if (!trains) RONDO_TRY(rondo_onnx_make_scaled_norm(node, options.epsilon, &is_made));
  if (is_made) return RONDO_OK;
  if (have->rank < 2) return rondo_onnx_refuse(node, "input 0 has %zu dimensions, and 2 are needed", have->rank);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(float_operand(node, 1, &options.scale));
  RONDO_TRY(float_operand(node, 2, &options.shift));
  RONDO_TRY(float_operand(node, 3, &options.running_mean));
  RONDO_TRY(float_operand(node, 4, &options.running_variance));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  if (trains) RONDO_TRY(use_batch_statistics(node, x, momentum, &options));
  RONDO_TRY(rondo_op_batch_norm(program, x, &options, &y));
  return rondo_onnx_set_typed(node, 0, y, have->type);
}

/* MeanVarianceNormalization, LpNormalization ----------------------------------------------------------------------- */

static rondo_status find_axes(rondo_onnx_node *node, size_t *dims, size_t *out_count) {
  static const int64_t all_but_channels[] = {0, 2, 3};
  const size_t rank = rondo_onnx_input_shape(node, 0)->rank;
  const int64_t *axes;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "axes", &axes, out_count));
  if (axes == NULL) {
    axes = all_but_channels;
    *out_count = 3;
  }
  if (*out_count > rank) return rondo_onnx_refuse_attribute(node, "axes", "%zu for %zu dimensions", *out_count, rank);
  for (size_t i = 0; i < *out_count; i++) RONDO_TRY(rondo_onnx_axis(axes[i], rank, &dims[i]));
  return RONDO_OK;
}

/* (x - mean) / (standard deviation + 1e-9), the number that ONNX's definition of the operator has. */
static rondo_status add_mean_variance(rondo_onnx_node *node, const void *data) {
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS], count;
  rondo_program *program;
  rondo_value x, mean, deviation, y;
  (void)data;
  RONDO_TRY(find_axes(node, dims, &count));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(add_moments(program, x, dims, count, &mean, &deviation));
  RONDO_TRY(rondo_op_sqrt(program, deviation, &deviation));
  RONDO_TRY(rondo_op_add_constant(program, deviation, 1e-9f, &deviation));
  RONDO_TRY(rondo_op_sub(program, x, mean, &y));
  RONDO_TRY(rondo_op_div(program, y, deviation, &y));
  return rondo_onnx_set_result(node, 0, y);
}

/* x / norm, and 0 where the norm is 0. */
static rondo_status divide_by_norm(rondo_onnx_node *node, rondo_value x, rondo_value norm) {
  rondo_program *program;
  rondo_type type;
  rondo_value zero, one, is_zero;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_program_type(node->importer, rondo_onnx_input_shape(node, 0)->type, &type));
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, 0, &zero));
  RONDO_TRY(rondo_op_full(program, type, NULL, 0, 1, &one));
  RONDO_TRY(rondo_op_equal(program, norm, zero, &is_zero));
  RONDO_TRY(rondo_op_select(program, is_zero, one, norm, &norm));
  RONDO_TRY(rondo_op_div(program, x, norm, &x));
  return rondo_onnx_set_result(node, 0, x);
}

static rondo_status add_lp_norm(rondo_onnx_node *node, const void *data) {
  int64_t given, order;
  size_t axis;
  rondo_program *program;
  rondo_value x, norm;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", -1, &given));
  RONDO_TRY(rondo_onnx_attribute_int(node, "p", 2, &order));
  if (order != 1 && order != 2)
    return rondo_onnx_refuse_attribute(node, "p", "it is %lld, not 1 or 2", (long long)order);
  RONDO_TRY(rondo_onnx_axis(given, rondo_onnx_input_shape(node, 0)->rank, &axis));
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(order == 1 ? rondo_op_abs(program, x, &norm) : rondo_op_square(program, x, &norm));
  RONDO_TRY(rondo_op_sum(program, norm, &axis, 1, true, &norm));
  if (order == 2) RONDO_TRY(rondo_op_sqrt(program, norm, &norm));
  return divide_by_norm(node, x, norm);
}

/* LRN -------------------------------------------------------------------------------------------------------------- */

static rondo_status add_local_response_norm(rondo_onnx_node *node, const void *data) {
  int64_t size;
  float alpha, beta, bias;
  rondo_program *program;
  rondo_value x;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "size", 0, &size));
  RONDO_TRY(rondo_onnx_attribute_float(node, "alpha", 1e-4f, &alpha));
  RONDO_TRY(rondo_onnx_attribute_float(node, "beta", 0.75f, &beta));
  RONDO_TRY(rondo_onnx_attribute_float(node, "bias", 1, &bias));
  if (size < 1) return rondo_onnx_refuse_attribute(node, "size", "it is %lld", (long long)size);
  RONDO_TRY(rondo_onnx_operand(node, 0, &x));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_local_response_norm(program, x, (size_t)size, alpha, beta, bias, &x));
  return rondo_onnx_set_result(node, 0, x);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"BatchNormalization", 6, 0, 5, 5, 0, add_batch_norm, NULL},
    {"GroupNormalization", 18, 0, 3, 3, 0, add_group_norm, NULL},
    {"InstanceNormalization", 6, 0, 3, 3, 0, add_instance_norm, NULL},
    {"LRN", 1, 0, 1, 1, 0, add_local_response_norm, NULL},
    {"LayerNormalization", 17, 0, 2, 3, 0, add_layer_norm, NULL},
    {"LpNormalization", 1, 0, 1, 1, 0, add_lp_norm, NULL},
    {"MeanVarianceNormalization", 9, 0, 1, 1, 0, add_mean_variance, NULL},
    {"RMSNormalization", 23, 0, 2, 2, 0, add_rms_norm, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_normalization, rows);
