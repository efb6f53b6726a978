/* SPDX-License-Identifier: MIT
 * cross_entropy: the mean over rows of -log softmax(logits)[label]. A first kernel writes each row's loss,
 * and its maximum and sum of exponentials, from which the gradient makes the softmax again; a second kernel, one block,
 * takes the mean, so that its order of adding is fixed.
 */
#include <math.h>

#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/rows.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { LOSS, ROW_LOSSES, ROW_MAXIMA, ROW_SUMS }; /* results */

/* What the kernels get as one scalar; without padding. */
typedef struct rows_shape {
  size_t rows, columns;
} rows_shape;

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void rows_cpu(rondo_blocks blocks, void *const *args) {
  const rows_shape *shape = args[0];
  const float *logits = RONDO_ARG(const float *, 1);
  const int32_t *labels = RONDO_ARG(const int32_t *, 2);
  float *losses = RONDO_ARG(float *, 3);
  float *maxima = RONDO_ARG(float *, 4);
  float *sums = RONDO_ARG(float *, 5);
  _Atomic uint64_t *cell = RONDO_ARG(_Atomic uint64_t *, 6);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->rows, 1);
    for (size_t row = span.first; row < span.last; row++) {
      const float *x = logits + row * shape->columns;
      const size_t label = rondo_check_index(cell, row, labels[row], shape->columns) ? (size_t)labels[row] : 0;
      maxima[row] = rondo_row_max(x, shape->columns);
      sums[row] = rondo_row_exp_sum(x, maxima[row], shape->columns);
      losses[row] = logf(sums[row]) - (x[label] - maxima[row]);
    }
  }
}

static const rondo_kernel_options rows_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "cross_entropy_rows", .cpu = rows_cpu,
                                               RONDO_CUDA(cross_entropy),
                                               .params = {RONDO_SCALAR(rows_shape), RONDO_READS, RONDO_READS,
                                                          RONDO_WRITES, RONDO_WRITES, RONDO_WRITES, RONDO_UPDATES}};

static void mean_cpu(rondo_blocks blocks, void *const *args) {
  const float *losses = RONDO_ARG(const float *, 0);
  float *loss = RONDO_ARG(float *, 1);
  const size_t rows = RONDO_ARG(size_t, 2);
  double sum = 0;
  (void)blocks; /* one */
  for (size_t row = 0; row < rows; row++) sum += (double)losses[row];
  *loss = (float)(sum / (double)rows);
}

static const rondo_kernel_options mean_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "cross_entropy_mean", .cpu = mean_cpu,
                                               RONDO_CUDA(cross_entropy),
                                               .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};

/* Also of the gradient, whose first two inputs are the same. */
static rondo_status require_logits_and_labels(const rondo_program *program, const rondo_operation *operation) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, 2));
  RONDO_TRY(rondo_require_input(program, operation, 1, RONDO_I32, 1));
  const rondo_shape *logits = rondo_operation_input(program, operation, 0);
  const rondo_shape *labels = rondo_operation_input(program, operation, 1);
  if (logits->dims[0] != labels->dims[0]) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%zu rows of logits for %zu labels",
                                logits->dims[0], labels->dims[0]);
  }
  if (logits->dims[1] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "more columns than i32 can count");
  }
  return RONDO_OK;
}

static rondo_status infer_cross_entropy(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  RONDO_TRY(require_logits_and_labels(program, operation));
  const size_t rows = rondo_operation_input(program, operation, 0)->dims[0];
  results[LOSS] = rondo_shape_scalar(RONDO_F32);
  for (size_t i = ROW_LOSSES; i <= ROW_SUMS; i++) results[i] = rondo_shape_vector(RONDO_F32, rows);
  return RONDO_OK;
}

static rondo_status differentiate_cross_entropy(rondo_program *program, const rondo_operation *operation,
                                                const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->inputs[0], operation->inputs[1], operation->results[ROW_MAXIMA],
                             operation->results[ROW_SUMS], result_gradients[LOSS]};
  return rondo_program_add(program, &rondo_operator_cross_entropy_gradient, inputs, 5, NULL, &input_gradients[0]);
}

static rows_shape shape_of(const rondo_shape *logits) { return (rows_shape){logits->dims[0], logits->dims[1]}; }

static rondo_status emit_cross_entropy(rondo_emitter *emitter, const rondo_operation *operation) {
  const rows_shape shape = shape_of(rondo_emit_shape(emitter, operation->inputs[0]));
  const float *logits = rondo_emit_address(emitter, operation->inputs[0]);
  const int32_t *labels = rondo_emit_address(emitter, operation->inputs[1]);
  float *loss = rondo_emit_address(emitter, operation->results[LOSS]);
  float *losses = rondo_emit_address(emitter, operation->results[ROW_LOSSES]);
  float *maxima = rondo_emit_address(emitter, operation->results[ROW_MAXIMA]);
  float *sums = rondo_emit_address(emitter, operation->results[ROW_SUMS]);
  void *cell = NULL;
  RONDO_TRY(rondo_emit_index_check(emitter, 1, shape.columns, &cell));
  RONDO_TRY(rondo_emit_kernel(emitter, &rows_code, rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.columns)),
                              RONDO_ARGS(&shape, &logits, &labels, &losses, &maxima, &sums, &cell)));
  return rondo_emit_kernel(emitter, &mean_code, (rondo_grid){.x = 1}, RONDO_ARGS(&losses, &loss, &shape.rows));
}

const rondo_operator rondo_operator_cross_entropy = {.name = "cross_entropy",
                                                     .inputs = {"logits", "labels"},
                                                     .required = 2,
                                                     .result_count = 4,
                                                     .checks_indices = true,
                                                     .infer = infer_cross_entropy,
                                                     .differentiate = differentiate_cross_entropy,
                                                     .emit = emit_cross_entropy};

rondo_status rondo_op_cross_entropy(rondo_program *program, rondo_value logits, rondo_value labels,
                                    rondo_value *out_value) {
  const rondo_value inputs[] = {logits, labels};
  return rondo_program_apply(program, &rondo_operator_cross_entropy, inputs, 2, NULL, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

/* dlogits = (softmax(logits) - onehot(label)) * dloss / rows. */
static void cross_entropy_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const rows_shape *shape = args[0];
  const float *logits = RONDO_ARG(const float *, 1);
  const int32_t *labels = RONDO_ARG(const int32_t *, 2);
  const float *maxima = RONDO_ARG(const float *, 3);
  const float *sums = RONDO_ARG(const float *, 4);
  const float scale = *RONDO_ARG(const float *, 5) / (float)shape->rows;
  float *gradient = RONDO_ARG(float *, 6);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->rows, 1);
    for (size_t row = span.first; row < span.last; row++) {
      const bool right = labels[row] >= 0 && (size_t)labels[row] < shape->columns;
      const float *x = logits + row * shape->columns;
      float *to = gradient + row * shape->columns;
      rondo_row_scaled_exp(x, maxima[row], scale / sums[row], to, shape->columns);
      to[right ? labels[row] : 0] -= scale;
    }
  }
}

static const rondo_kernel_options gradient_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "cross_entropy_gradient",
                                                   .cpu = cross_entropy_gradient_cpu, RONDO_CUDA(cross_entropy),
                                                   .params = {RONDO_SCALAR(rows_shape), RONDO_READS, RONDO_READS,
                                                              RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};

static rondo_status infer_cross_entropy_gradient(const rondo_program *program, const rondo_operation *operation,
                                                 rondo_shape *results) {
  RONDO_TRY(require_logits_and_labels(program, operation));
  for (uint32_t i = 2; i < 4; i++) RONDO_TRY(rondo_require_input(program, operation, i, RONDO_F32, 1));
  RONDO_TRY(rondo_require_input(program, operation, 4, RONDO_F32, 0));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status emit_cross_entropy_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rows_shape shape = shape_of(rondo_emit_shape(emitter, operation->inputs[0]));
  const float *logits = rondo_emit_address(emitter, operation->inputs[0]);
  const int32_t *labels = rondo_emit_address(emitter, operation->inputs[1]);
  const float *maxima = rondo_emit_address(emitter, operation->inputs[2]);
  const float *sums = rondo_emit_address(emitter, operation->inputs[3]);
  const float *dloss = rondo_emit_address(emitter, operation->inputs[4]);
  float *gradient = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &gradient_code,
                           rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.columns)),
                           RONDO_ARGS(&shape, &logits, &labels, &maxima, &sums, &dloss, &gradient));
}

const rondo_operator rondo_operator_cross_entropy_gradient = {
    .name = "cross_entropy_gradient",
    .inputs = {"logits", "labels", "maxima", "sums", "gradient"},
    .required = 5,
    .result_count = 1,
    .infer = infer_cross_entropy_gradient,
    .emit = emit_cross_entropy_gradient};
