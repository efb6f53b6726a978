/* SPDX-License-Identifier: MIT
 * tanh, elementwise, and its gradient dx = dy (1 - y^2), which needs the result alone.
 */
#include "tensor/elementary.h"
#include "tensor/emit.h"
#include "tensor/kernel_support.h"
#include "tensor/operators.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

/* Forward ---------------------------------------------------------------------------------------------------------- */

static void tanh_span(const float *restrict x, float *restrict y, size_t count) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = 0; lane < RONDO_LANES; lane++) y[i + lane] = rondo_tanh(x[i + lane]);
  }
  for (; i < count; i++) y[i] = rondo_tanh(x[i]);
}

static void tanh_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = RONDO_ARG(const float *, 0);
  float *y = RONDO_ARG(float *, 1);
  const size_t count = RONDO_ARG(size_t, 2);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    tanh_span(x + span.first, y + span.first, span.last - span.first);
  }
}

static const rondo_kernel_options tanh_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "tanh_forward", .cpu = tanh_cpu,
                                               RONDO_CUDA(op_tanh),
                                               .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};

static rondo_status infer_tanh(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, RONDO_ANY_RANK));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status differentiate_tanh(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {operation->results[0], result_gradients[0]};
  return rondo_program_add(program, &rondo_operator_tanh_gradient, inputs, 2, NULL, &input_gradients[0]);
}

static rondo_status emit_tanh(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[0]));
  const float *x = rondo_emit_address(emitter, operation->inputs[0]);
  float *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &tanh_code, rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&x, &y, &count));
}

const rondo_operator rondo_operator_tanh = {.name = "tanh",
                                            .inputs = {"value"},
                                            .required = 1,
                                            .result_count = 1,
                                            .infer = infer_tanh,
                                            .differentiate = differentiate_tanh,
                                            .emit = emit_tanh};

rondo_status rondo_op_tanh(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_tanh, &value, 1, NULL, out_value);
}

/* Gradient --------------------------------------------------------------------------------------------------------- */

static void tanh_gradient_span(const float *restrict y, const float *restrict dy, float *restrict dx, size_t count) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = i; lane < i + RONDO_LANES; lane++) dx[lane] = dy[lane] * (1.0f - y[lane] * y[lane]);
  }
  for (; i < count; i++) dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}

static void tanh_gradient_cpu(rondo_blocks blocks, void *const *args) {
  const float *y = RONDO_ARG(const float *, 0);
  const float *dy = RONDO_ARG(const float *, 1);
  float *dx = RONDO_ARG(float *, 2);
  const size_t count = RONDO_ARG(size_t, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    tanh_gradient_span(y + span.first, dy + span.first, dx + span.first, span.last - span.first);
  }
}

static const rondo_kernel_options tanh_gradient_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "tanh_gradient", .cpu = tanh_gradient_cpu, RONDO_CUDA(op_tanh),
    .params = {RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};

static rondo_status infer_tanh_gradient(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, 0, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_same_shape(program, operation, 0, 1));
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status emit_tanh_gradient(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[0]));
  const float *y = rondo_emit_address(emitter, operation->inputs[0]);
  const float *dy = rondo_emit_address(emitter, operation->inputs[1]);
  float *dx = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &tanh_gradient_code, rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&y, &dy, &dx, &count));
}

const rondo_operator rondo_operator_tanh_gradient = {.name = "tanh_gradient",
                                                     .inputs = {"result", "gradient"},
                                                     .required = 2,
                                                     .result_count = 1,
                                                     .infer = infer_tanh_gradient,
                                                     .emit = emit_tanh_gradient};
