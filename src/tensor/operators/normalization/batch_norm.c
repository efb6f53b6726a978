/* SPDX-License-Identifier: MIT
 * batch_norm of [n, c, ...] with the statistics of the batch or given ones, and its gradient. batch_norm_update updates
 * the running statistics, after all that reads them. With h = (x - mean) / sqrt(variance + epsilon) and g = dy, dscale
 * = sum(g h), dshift = sum(g) and dx = scale / sqrt(variance + epsilon) · (g - mean(g) - h mean(g h)), without the
 * means if the statistics are given. Given statistics have no gradient. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/normalization/batch_norm.h"

#include <assert.h>
#include <math.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"

enum { EPSILON = RONDO_BATCH_NORM_EPSILON };
enum { FIXED = RONDO_BATCH_NORM_FIXED };
enum {
  VALUE = RONDO_BATCH_NORM_VALUE,
  SCALE = RONDO_BATCH_NORM_SCALE,
  SHIFT = RONDO_BATCH_NORM_SHIFT,
  GIVEN_MEAN = RONDO_BATCH_NORM_MEAN,
  GIVEN_VARIANCE = RONDO_BATCH_NORM_VARIANCE
};
enum { RESULT, OF_MEAN, OF_VARIANCE };                            /* its results */
enum { OF_VALUE, OF_RESULT, FROM_MEAN, FROM_VARIANCE, BY_SCALE }; /* inputs of the gradient */
enum { DX, DSCALE, DSHIFT };                                      /* its results */

/* Kernels ---------------------------------------------------------------------------------------------------------- */

RONDO_TYPED_KERNEL_OF(batch_norm_statistics, rondo_batch_norm_statistics_cpu, batch_norm,
                      RONDO_SCALAR(rondo_batch_norm_shape), RONDO_READS, RONDO_WRITES);
RONDO_TYPED_KERNEL_OF(batch_norm, rondo_batch_norm_cpu, batch_norm, RONDO_SCALAR(rondo_batch_norm_shape), RONDO_READS,
                      RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES,
                      RONDO_WRITES);
RONDO_TYPED_KERNEL_OF(batch_norm_gradient_sums, rondo_batch_norm_gradient_sums_cpu, batch_norm,
                      RONDO_SCALAR(rondo_batch_norm_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
                      RONDO_WRITES);
RONDO_TYPED_KERNEL_OF(batch_norm_gradient, rondo_batch_norm_gradient_cpu, batch_norm,
                      RONDO_SCALAR(rondo_batch_norm_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
                      RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES, RONDO_WRITES);

#define MAX_PARTS 64
#define CPU_PART 8192 /* the minimum number of elements in a part */

static void cut_for_cpu(rondo_batch_norm_shape *s) {
  if (s->inner == 1) s->width = RONDO_CHUNK;
  const size_t of_tile = s->images * s->inner * rondo_smaller(s->channels, s->width);
  const size_t parts = rondo_smaller(of_tile / CPU_PART + 1, MAX_PARTS);
  s->share = rondo_divide_up(s->images, rondo_smaller(parts, s->images));
}

/* On CUDA: channels of a tile and warps of a block (batch_norm.cu), the minimum number of elements in a part, and
 * enough blocks to keep a large GPU busy. */
#define CUDA_WIDTH 32
#define CUDA_WARPS (RONDO_CUDA_THREADS / 32)
#define CUDA_PART 1024
#define ENOUGH_BLOCKS 512

/* Runs are so long that each warp of a block has one. */
static void cut_for_cuda(rondo_batch_norm_shape *s) {
  if (s->inner == 1) s->width = CUDA_WIDTH;
  const size_t of_tile = s->images * s->inner * rondo_smaller(s->channels, s->width);
  const size_t max_parts = rondo_smaller(ENOUGH_BLOCKS / rondo_batch_norm_tiles(s) + 1, MAX_PARTS);
  const size_t parts = rondo_smaller(of_tile / CUDA_PART + 1, max_parts);
  const size_t of_warp = rondo_divide_up(s->images * s->inner, parts * CUDA_WARPS);
  s->run = rondo_smaller(rondo_divide_up(of_warp, 32) * 32, s->inner);
  s->cuts = rondo_divide_up(s->inner, s->run);
  s->share = rondo_divide_up(s->images * s->cuts, parts);
}

static rondo_batch_norm_shape shape_of(bool is_cuda, const rondo_shape *value, const rondo_attributes *attributes) {
  rondo_batch_norm_shape s = {.images = value->dims[0],
                              .channels = value->dims[1],
                              .inner = 1,
                              .width = 1,
                              .cuts = 1,
                              .epsilon = attributes->numbers[EPSILON],
                              .is_fixed = attributes->flags[FIXED]};
  for (uint32_t i = 2; i < value->rank; i++) s.inner *= value->dims[i];
  s.run = s.inner;
  (is_cuda ? cut_for_cuda : cut_for_cpu)(&s);
  s.parts = rondo_divide_up(s.images * s.cuts, s.share);
  assert(s.parts > 0 && s.parts <= MAX_PARTS);
  return s;
}

static rondo_grid grid_of(const rondo_emitter *emitter, const rondo_batch_norm_shape *s) {
  return rondo_emit_grid(emitter, rondo_batch_norm_tiles(s) * s->parts, (rondo_grain){1, 1});
}

/* The workspace has two numbers for each part and channel. */
static rondo_status prepare_norm(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                 size_t *out_workspace_bytes) {
  const rondo_operation *of = &program->operations.items[operation];
  const rondo_batch_norm_shape s =
      shape_of(resources->is_cuda, rondo_operation_input(program, of, VALUE), &of->attributes);
  *out_workspace_bytes = s.channels * s.parts * 2 * sizeof(float);
  return RONDO_OK;
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

static rondo_status require_channels(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                     size_t channels) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL) return RONDO_OK;
  RONDO_TRY(rondo_require_input(program, operation, input, RONDO_F32, 1));
  if (shape->dims[0] == channels) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s must have %zu elements, one for each channel",
                              operation->row->inputs[input], channels);
}

static rondo_status infer_norm(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  RONDO_TRY(rondo_require_float(program, operation, VALUE, RONDO_ANY_RANK));
  if (value->rank < 2) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the value has %u dimensions; it needs at least 2, the second for channels",
                                value->rank);
  }
  for (uint32_t i = SCALE; i <= GIVEN_VARIANCE; i++) RONDO_TRY(require_channels(program, operation, i, value->dims[1]));
  results[RESULT] = *value;
  results[OF_MEAN] = results[OF_VARIANCE] = rondo_shape_vector(RONDO_F32, value->dims[1]);
  return RONDO_OK;
}

static rondo_status differentiate_norm(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const bool is_fixed = operation->attributes.flags[FIXED];
  const uint32_t inputs[] = {operation->inputs[VALUE], result_gradients[RESULT],
                             is_fixed ? operation->inputs[GIVEN_MEAN] : operation->results[OF_MEAN],
                             is_fixed ? operation->inputs[GIVEN_VARIANCE] : operation->results[OF_VARIANCE],
                             operation->inputs[SCALE]};
  uint32_t gradients[RONDO_MAX_RESULTS];
  RONDO_TRY(
      rondo_program_add(program, &rondo_operator_batch_norm_gradient, inputs, 5, &operation->attributes, gradients));
  for (uint32_t i = VALUE; i <= SHIFT; i++) {
    if (operation->inputs[i] != RONDO_NO_VALUE) input_gradients[i] = gradients[i];
  }
  return RONDO_OK;
}

static rondo_status emit_norm(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const rondo_batch_norm_shape shape = shape_of(rondo_emit_is_cuda(emitter), value, &operation->attributes);
  const rondo_grid grid = grid_of(emitter, &shape);
  if (shape.is_fixed == 0) {
    RONDO_TRY(rondo_emit_operands(emitter, operation, &batch_norm_statistics_code[value->type], grid,
                                  RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_WORKSPACE)));
  }
  return rondo_emit_operands(
      emitter, operation, &batch_norm_code[value->type], grid,
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_WORKSPACE, RONDO_INPUT(SCALE), RONDO_INPUT(SHIFT),
                     RONDO_INPUT(GIVEN_MEAN), RONDO_INPUT(GIVEN_VARIANCE), RONDO_RESULT(RESULT), RONDO_RESULT(OF_MEAN),
                     RONDO_RESULT(OF_VARIANCE)));
}

RONDO_OPERATOR(batch_norm, .types = RONDO_FLOATS,
               .inputs = {"value", "scale", "shift", "running_mean", "running_variance"}, .required = 1,
               .result_count = 3, .spare_results = 1u << OF_MEAN | 1u << OF_VARIANCE, .infer = infer_norm,
               .differentiate = differentiate_norm, .prepare = prepare_norm, .emit = emit_norm);

/* Gradient --------------------------------------------------------------------------------------------------------- */

static rondo_status infer_gradient(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  RONDO_TRY(rondo_require_same_shape(program, operation, OF_VALUE, OF_RESULT));
  results[DX] = *rondo_operation_input(program, operation, OF_VALUE);
  results[DSCALE] = results[DSHIFT] = rondo_shape_vector(RONDO_F32, results[DX].dims[1]);
  return RONDO_OK;
}

static rondo_status emit_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[OF_VALUE]);
  const rondo_batch_norm_shape shape = shape_of(rondo_emit_is_cuda(emitter), value, &operation->attributes);
  const rondo_grid grid = grid_of(emitter, &shape);
  RONDO_TRY(rondo_emit_operands(emitter, operation, &batch_norm_gradient_sums_code[value->type], grid,
                                RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(OF_VALUE), RONDO_INPUT(OF_RESULT),
                                               RONDO_INPUT(FROM_MEAN), RONDO_INPUT(FROM_VARIANCE), RONDO_WORKSPACE)));
  return rondo_emit_operands(
      emitter, operation, &batch_norm_gradient_code[value->type], grid,
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(OF_VALUE), RONDO_INPUT(OF_RESULT), RONDO_INPUT(FROM_MEAN),
                     RONDO_INPUT(FROM_VARIANCE), RONDO_WORKSPACE, RONDO_INPUT(BY_SCALE), RONDO_RESULT(DX),
                     RONDO_RESULT(DSCALE), RONDO_RESULT(DSHIFT)));
}

RONDO_OPERATOR(batch_norm_gradient, .inputs = {"value", "gradient", "mean", "variance", "scale"}, .required = 4,
               .result_count = 3, .spare_results = 1u << DSCALE | 1u << DSHIFT, .infer = infer_gradient,
               .prepare = prepare_norm, .emit = emit_gradient);

/* Running statistics ----------------------------------------------------------------------------------------------- */

enum { RUNNING_MEAN, RUNNING_VARIANCE, MEAN, VARIANCE }; /* inputs */
enum { MOMENTUM, UNBIASED };                             /* numbers; UNBIASED: the factor of the unbiased variance */

/* A scalar argument of the kernel: the numbers of each of the joined updates. */
typedef struct update_numbers {
  float momentum[RONDO_MAX_JOINED], unbiased[RONDO_MAX_JOINED];
} update_numbers;

static void batch_norm_update_cpu(rondo_blocks blocks, void *const *args) {
  const update_numbers *numbers = args[4];
  if (!rondo_may_update(blocks, args + 1)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    const size_t at = 5 + 4 * (size_t)share.operation;
    float *running_mean = RONDO_ARG(float *, at), *running_variance = RONDO_ARG(float *, at + 1);
    const float *mean = RONDO_ARG(const float *, at + 2), *variance = RONDO_ARG(const float *, at + 3);
    const float momentum = numbers->momentum[share.operation], unbiased = numbers->unbiased[share.operation];
    for (size_t i = share.span.first; i < share.span.last; i++) {
      running_mean[i] += momentum * (mean[i] - running_mean[i]);
      running_variance[i] += momentum * (variance[i] * unbiased - running_variance[i]);
    }
  }
}

#define POINTERS RONDO_UPDATES, RONDO_UPDATES, RONDO_READS, RONDO_READS

static const rondo_parameter update_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_GATE_PARAMETERS,
                                                    RONDO_SCALAR(update_numbers), RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(batch_norm_update, batch_norm_update, update_parameters);

static rondo_status infer_update(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const size_t channels = rondo_shape_elements(rondo_operation_input(program, operation, MEAN));
  (void)results;
  for (uint32_t i = RUNNING_MEAN; i <= RUNNING_VARIANCE; i++) {
    RONDO_TRY(require_channels(program, operation, i, channels));
    if (program->values.items[operation->inputs[i]].kind != RONDO_VALUE_STATE) {
      return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "%s must be a state",
                                  operation->row->inputs[i]);
    }
  }
  return RONDO_OK;
}

static rondo_status emit_updates(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {RUNNING_MEAN, RUNNING_VARIANCE, MEAN, VARIANCE};
  const rondo_joined_kernel kernel = {&batch_norm_update_code, values, 4, RUNNING_MEAN, RONDO_ELEMENTWISE_GRAIN, NULL,
                                      RONDO_MAX_JOINED};
  update_numbers numbers = {.momentum = {0}};
  for (uint32_t i = 0; i < count; i++) {
    numbers.momentum[i] = operations[i]->attributes.numbers[MOMENTUM];
    numbers.unbiased[i] = operations[i]->attributes.numbers[UNBIASED];
  }
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(numbers)));
}

static const rondo_join update_join = {.max = RONDO_MAX_JOINED, .of_any_attributes = true, .emit = emit_updates};

RONDO_OPERATOR(batch_norm_update, .inputs = {"running_mean", "running_variance", "mean", "variance"}, .required = 4,
               .updates = 1u << RUNNING_MEAN | 1u << RUNNING_VARIANCE, .infer = infer_update, .join = &update_join);

/* Building --------------------------------------------------------------------------------------------------------- */

/* The arguments of the public function. */
typedef struct norm_build {
  rondo_program *program;
  rondo_type type;
  size_t rank, dims[RONDO_MAX_DIMENSIONS]; /* of the value */
  const rondo_batch_norm_options *options;
} norm_build;

static rondo_status add_update(const norm_build *b, const uint32_t *running, const uint32_t *results) {
  const uint32_t inputs[] = {running[0], running[1], results[OF_MEAN], results[OF_VARIANCE]};
  size_t count = 1;
  for (size_t i = 0; i < b->rank; i++) count *= i == 1 ? 1 : b->dims[i];
  const rondo_attributes attributes = {
      .numbers = {b->options->momentum, count > 1 ? (float)((double)count / (double)(count - 1)) : 1.0f}};
  return rondo_program_add(b->program, &rondo_operator_batch_norm_update, inputs, 4, &attributes, NULL);
}

static rondo_status build(const norm_build *b, rondo_value value, uint32_t *out_result) {
  const rondo_batch_norm_options *o = b->options;
  const rondo_value given[] = {value, o->scale, o->shift, o->running_mean, o->running_variance};
  const rondo_attributes attributes = {.numbers = {o->epsilon}, .flags = {o->inference}};
  uint32_t inputs[5], results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_resolve_inputs(b->program, &rondo_operator_batch_norm, given, 5, inputs));
  RONDO_TRY(
      rondo_program_add(b->program, &rondo_operator_batch_norm, inputs, o->inference ? 5 : 3, &attributes, results));
  *out_result = results[RESULT];
  return o->inference || o->running_mean.id == 0 ? RONDO_OK : add_update(b, &inputs[GIVEN_MEAN], results);
}

static rondo_status check_options(const norm_build *b) {
  const rondo_batch_norm_options *o = b->options;
  if (!(o->epsilon > 0) || isinf(o->epsilon) || !(o->momentum >= 0 && o->momentum <= 1)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "batch_norm: epsilon is %g and momentum %g; epsilon must be finite and above 0, and momentum "
                      "between 0 and 1",
                      (double)o->epsilon, (double)o->momentum);
  }
  const bool has_both = o->running_mean.id != 0 && o->running_variance.id != 0;
  if (has_both || (o->running_mean.id == o->running_variance.id && !o->inference)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                    "batch_norm: give both running_mean and running_variance, which inference normalizes with, or, "
                    "for training, neither");
}

rondo_status rondo_op_batch_norm(rondo_program *program, rondo_value value, const rondo_batch_norm_options *options,
                                 rondo_value *out_value) {
  RONDO_TRY(rondo_program_begin(program, "batch_norm", out_value));
  RONDO_TRY(rondo_require("batch_norm", "options", options));
  rondo_batch_norm_options given;
  RONDO_TRY(rondo_versioned_read("rondo_batch_norm_options", options, &given, sizeof given));
  norm_build b = {.program = program, .options = &given};
  RONDO_TRY(rondo_value_shape(program, value, &b.type, b.dims, &b.rank));
  if (given.epsilon == 0) given.epsilon = 1e-5f;
  RONDO_TRY(check_options(&b));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  uint32_t result = 0;
  const rondo_status status = build(&b, value, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
