/* SPDX-License-Identifier: MIT
 * batch_norm: made of other operators, in F32: means over all dimensions but the second, and what is broadcast along
 * it. One row of its own moves the running statistics on, after all that reads them (batch_norm_update).
 */
#include <math.h>

#include "base/error.h"
#include "base/versioned.h"
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/kernel_support.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

/* Running statistics ----------------------------------------------------------------------------------------------- */

enum { RUNNING_MEAN, RUNNING_VARIANCE, MEAN, VARIANCE }; /* inputs */
enum { MOMENTUM, UNBIASED };                             /* numbers; UNBIASED: by which the variance is multiplied */

static void batch_norm_update_cpu(rondo_blocks blocks, void *const *args) {
  float *running_mean = RONDO_ARG(float *, 0);
  float *running_variance = RONDO_ARG(float *, 1);
  const float *mean = RONDO_ARG(const float *, 2);
  const float *variance = RONDO_ARG(const float *, 3);
  const float momentum = RONDO_ARG(float, 4);
  const float unbiased = RONDO_ARG(float, 5);
  const size_t count = RONDO_ARG(size_t, 6);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    for (size_t i = span.first; i < span.last; i++) {
      running_mean[i] += momentum * (mean[i] - running_mean[i]);
      running_variance[i] += momentum * (variance[i] * unbiased - running_variance[i]);
    }
  }
}

static const rondo_kernel_options update_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "batch_norm_update", .cpu = batch_norm_update_cpu, RONDO_CUDA(batch_norm_update),
    .params = {RONDO_UPDATES, RONDO_UPDATES, RONDO_READS, RONDO_READS, RONDO_SCALAR(float), RONDO_SCALAR(float),
               RONDO_SCALAR(size_t)}};

static rondo_status infer_update(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t channels = rondo_shape_elements(rondo_operation_input(program, operation, MEAN));
  (void)results;
  for (uint32_t i = RUNNING_MEAN; i <= RUNNING_VARIANCE; i++) {
    RONDO_TRY(rondo_require_input(program, operation, i, RONDO_F32, 1));
    if (program->values.items[operation->inputs[i]].kind != RONDO_VALUE_STATE) {
      return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "%s must be a state",
                                  operation->row->inputs[i]);
    }
    if (rondo_operation_input(program, operation, i)->dims[0] != channels) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s must have the %zu channels",
                                  operation->row->inputs[i], channels);
    }
  }
  return RONDO_OK;
}

static rondo_status emit_update(rondo_emitter *emitter, const rondo_operation *operation) {
  const float *numbers = operation->attributes.numbers;
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[RUNNING_MEAN]));
  float *running_mean = rondo_emit_address(emitter, operation->inputs[RUNNING_MEAN]);
  float *running_variance = rondo_emit_address(emitter, operation->inputs[RUNNING_VARIANCE]);
  const float *mean = rondo_emit_address(emitter, operation->inputs[MEAN]);
  const float *variance = rondo_emit_address(emitter, operation->inputs[VARIANCE]);
  return rondo_emit_kernel(
      emitter, &update_code, rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
      RONDO_ARGS(&running_mean, &running_variance, &mean, &variance, &numbers[MOMENTUM], &numbers[UNBIASED], &count));
}

const rondo_operator rondo_operator_batch_norm_update = {
    .name = "batch_norm_update",
    .inputs = {"running_mean", "running_variance", "mean", "variance"},
    .required = 4,
    .updates = 1u << RUNNING_MEAN | 1u << RUNNING_VARIANCE,
    .infer = infer_update,
    .emit = emit_update};

/* Building --------------------------------------------------------------------------------------------------------- */

/* What is being built. */
typedef struct norm_build {
  rondo_program *program;
  rondo_type type;
  size_t rank, dims[RONDO_MAX_DIMENSIONS]; /* of the value */
  const rondo_batch_norm_options *options;
} norm_build;

/* [c] as [1, c, 1, ...]. */
static rondo_status along_channels(const norm_build *b, rondo_value value, rondo_value *out) {
  size_t dims[RONDO_MAX_DIMENSIONS];
  for (size_t i = 0; i < b->rank; i++) dims[i] = i == 1 ? b->dims[1] : 1;
  return rondo_op_reshape(b->program, value, dims, b->rank, out);
}

static rondo_status channel_means(const norm_build *b, rondo_value value, rondo_value *out) {
  size_t dims[RONDO_MAX_DIMENSIONS], count = 0;
  for (size_t i = 0; i < b->rank; i++) {
    if (i != 1) dims[count++] = i;
  }
  return rondo_op_mean(b->program, value, dims, count, true, out);
}

static rondo_status add_update(const norm_build *b, rondo_value mean, rondo_value variance) {
  const rondo_value inputs[] = {b->options->running_mean, b->options->running_variance, mean, variance};
  size_t count = 1;
  uint32_t indices[4];
  for (size_t i = 0; i < b->rank; i++) count *= i == 1 ? 1 : b->dims[i];
  for (uint32_t i = 0; i < 4; i++) {
    RONDO_TRY(rondo_program_resolve(b->program, inputs[i], "batch_norm", rondo_operator_batch_norm_update.inputs[i],
                                    &indices[i]));
  }
  const rondo_attributes attributes = {
      .numbers = {b->options->momentum, count > 1 ? (float)((double)count / (double)(count - 1)) : 1.0f}};
  return rondo_program_add(b->program, &rondo_operator_batch_norm_update, indices, 4, &attributes, NULL);
}

/* value - mean, and the variance, of the batch or running. */
static rondo_status centre(const norm_build *b, rondo_value value, rondo_value *off, rondo_value *variance) {
  rondo_value mean, squares;
  if (b->options->inference) {
    RONDO_TRY(along_channels(b, b->options->running_mean, &mean));
    RONDO_TRY(along_channels(b, b->options->running_variance, variance));
    return rondo_op_sub(b->program, value, mean, off);
  }
  RONDO_TRY(channel_means(b, value, &mean));
  RONDO_TRY(rondo_op_sub(b->program, value, mean, off));
  RONDO_TRY(rondo_op_square(b->program, *off, &squares));
  RONDO_TRY(channel_means(b, squares, variance));
  return b->options->running_mean.id == 0 ? RONDO_OK : add_update(b, mean, *variance);
}

static rondo_status build(const norm_build *b, rondo_value value, rondo_value *out) {
  rondo_value y, off, variance, deviation, parameter;
  RONDO_TRY(rondo_op_cast(b->program, value, RONDO_F32, &y));
  RONDO_TRY(centre(b, y, &off, &variance));
  RONDO_TRY(rondo_op_add_constant(b->program, variance, b->options->epsilon, &variance));
  RONDO_TRY(rondo_op_rsqrt(b->program, variance, &deviation));
  if (b->options->scale.id != 0) {
    RONDO_TRY(along_channels(b, b->options->scale, &parameter));
    RONDO_TRY(rondo_op_mul(b->program, deviation, parameter, &deviation));
  }
  RONDO_TRY(rondo_op_mul(b->program, off, deviation, &y));
  if (b->options->shift.id != 0) {
    RONDO_TRY(along_channels(b, b->options->shift, &parameter));
    RONDO_TRY(rondo_op_add(b->program, y, parameter, &y));
  }
  return rondo_op_cast(b->program, y, b->type, out);
}

static rondo_status check_options(const norm_build *b) {
  const rondo_batch_norm_options *o = b->options;
  if (!(o->epsilon > 0) || isinf(o->epsilon) || !(o->momentum >= 0 && o->momentum <= 1)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "batch_norm: epsilon is %g and momentum %g; the first must be finite and above 0, the second lie "
                      "between 0 and 1",
                      (double)o->epsilon, (double)o->momentum);
  }
  if (b->rank < 2) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "batch_norm: the value has %zu dimensions; the second "
                      "is that of channels",
                      b->rank);
  }
  const bool has_both = o->running_mean.id != 0 && o->running_variance.id != 0;
  if (has_both || (o->running_mean.id == o->running_variance.id && !o->inference)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                    "batch_norm: running_mean and running_variance are given both or, when training, neither");
}

rondo_status rondo_op_batch_norm(rondo_program *program, rondo_value value, const rondo_batch_norm_options *options,
                                 rondo_value *out_value) {
  RONDO_TRY(rondo_require("batch_norm", "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require("batch_norm", "program", program));
  RONDO_TRY(rondo_require("batch_norm", "options", options));
  rondo_batch_norm_options given;
  RONDO_TRY(rondo_versioned_read("rondo_batch_norm_options", options, &given, sizeof given));
  norm_build b = {.program = program, .options = &given};
  RONDO_TRY(rondo_value_shape(program, value, &b.type, b.dims, &b.rank));
  if (given.epsilon == 0) given.epsilon = 1e-5f;
  RONDO_TRY(check_options(&b));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = build(&b, value, out_value);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_program_roll_back(program, mark);
  *out_value = (rondo_value){0};
  return rondo_fail_context(status, "batch_norm");
}
