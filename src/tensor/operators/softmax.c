/* SPDX-License-Identifier: MIT
 * softmax over the last dimension, with the row's maximum taken off first; and its gradient dx = y (dy - y·dy).
 */
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/rows.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

static size_t rows_of(const rondo_shape *shape) { return rondo_shape_elements(shape) / rondo_shape_last(shape); }

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void softmax_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = RONDO_ARG(const float *, 0);
  float *y = RONDO_ARG(float *, 1);
  const size_t rows = RONDO_ARG(size_t, 2);
  const size_t columns = RONDO_ARG(size_t, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, rows, 1);
    for (size_t row = span.first; row < span.last; row++) {
      const float *from = x + row * columns;
      const float most = rondo_row_max(from, columns);
      const float sum = rondo_row_exp_sum(from, most, columns);
      rondo_row_scaled_exp(from, most, 1.0f / sum, y + row * columns, columns);
    }
  }
}

static const rondo_kernel_options softmax_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "softmax", .cpu = softmax_cpu, RONDO_CUDA(softmax),
    .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t)}};

static rondo_status infer_softmax(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  if (results[0].rank > 0) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "a scalar has no last dimension");
}

static rondo_status differentiate_softmax(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->results[0], result_gradients[0]};
  return rondo_program_add(program, &rondo_operator_softmax_gradient, inputs, 2, NULL, &input_gradients[0]);
}

static rondo_status emit_softmax(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t columns = rondo_shape_last(shape);
  const size_t rows = rows_of(shape);
  const float *x = rondo_emit_address(emitter, operation->inputs[0]);
  float *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &softmax_code, rondo_emit_grid(emitter, rows, rondo_row_grain(columns)),
                           RONDO_ARGS(&x, &y, &rows, &columns));
}

const rondo_operator rondo_operator_softmax = {.name = "softmax",
                                               .inputs = {"value"},
                                               .required = 1,
                                               .result_count = 1,
                                               .infer = infer_softmax,
                                               .differentiate = differentiate_softmax,
                                               .emit = emit_softmax};

rondo_status rondo_op_softmax(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_softmax, &value, 1, NULL, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

static void softmax_gradient_row(const float *restrict y, const float *restrict dy, float *restrict dx, size_t count) {
  const float dot = rondo_row_dot(y, dy, count);
  for (size_t i = 0; i < count; i++) dx[i] = y[i] * (dy[i] - dot);
}

static void softmax_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const float *y = RONDO_ARG(const float *, 0);
  const float *dy = RONDO_ARG(const float *, 1);
  float *dx = RONDO_ARG(float *, 2);
  const size_t rows = RONDO_ARG(size_t, 3);
  const size_t columns = RONDO_ARG(size_t, 4);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, rows, 1);
    for (size_t row = span.first; row < span.last; row++) {
      softmax_gradient_row(y + row * columns, dy + row * columns, dx + row * columns, columns);
    }
  }
}

static const rondo_kernel_options softmax_gradient_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "softmax_gradient", .cpu = softmax_gradient_cpu, RONDO_CUDA(softmax),
    .params = {RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t), RONDO_SCALAR(size_t)}};

static rondo_status infer_softmax_gradient(const rondo_program *program, const rondo_operation *operation,
                                           rondo_shape *results) {
  RONDO_TRY(infer_softmax(program, operation, results));
  return rondo_require_same_shape(program, operation, 0, 1);
}

static rondo_status emit_softmax_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t columns = rondo_shape_last(shape);
  const size_t rows = rows_of(shape);
  const float *y = rondo_emit_address(emitter, operation->inputs[0]);
  const float *dy = rondo_emit_address(emitter, operation->inputs[1]);
  float *dx = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &softmax_gradient_code, rondo_emit_grid(emitter, rows, rondo_row_grain(columns)),
                           RONDO_ARGS(&y, &dy, &dx, &rows, &columns));
}

const rondo_operator rondo_operator_softmax_gradient = {.name = "softmax_gradient",
                                                        .inputs = {"result", "gradient"},
                                                        .required = 2,
                                                        .result_count = 1,
                                                        .infer = infer_softmax_gradient,
                                                        .emit = emit_softmax_gradient};
