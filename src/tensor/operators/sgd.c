/* SPDX-License-Identifier: MIT
 * Steepest descent, in place on a state: p -= rate g; and with momentum (Polyak 1964): v = momentum v + g, p -= rate v.
 * Rate and momentum are cells, read on the device in each run (FW-5).
 */
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/kernel_support.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { PARAMETER, GRADIENT, RATE, VELOCITY, MOMENTUM }; /* inputs; the last two with momentum only */

static void sgd_span(float *restrict p, const float *restrict g, size_t count, float rate) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = i; lane < i + RONDO_LANES; lane++) p[lane] -= rate * g[lane];
  }
  for (; i < count; i++) p[i] -= rate * g[i];
}

static void sgd_cpu(rondo_blocks blocks, void *const *args) {
  float *p = RONDO_ARG(float *, PARAMETER);
  const float *g = RONDO_ARG(const float *, GRADIENT);
  const float rate = *RONDO_ARG(const float *, RATE);
  const size_t count = RONDO_ARG(size_t, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    sgd_span(p + span.first, g + span.first, span.last - span.first, rate);
  }
}

static void momentum_span(float *restrict p, const float *restrict g, float *restrict v, size_t count, float rate,
                          float momentum) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = i; lane < i + RONDO_LANES; lane++) {
      v[lane] = momentum * v[lane] + g[lane];
      p[lane] -= rate * v[lane];
    }
  }
  for (; i < count; i++) {
    v[i] = momentum * v[i] + g[i];
    p[i] -= rate * v[i];
  }
}

static void momentum_cpu(rondo_blocks blocks, void *const *args) {
  float *p = RONDO_ARG(float *, PARAMETER);
  const float *g = RONDO_ARG(const float *, GRADIENT);
  const float rate = *RONDO_ARG(const float *, RATE);
  float *v = RONDO_ARG(float *, VELOCITY);
  const float momentum = *RONDO_ARG(const float *, MOMENTUM);
  const size_t count = RONDO_ARG(size_t, 5);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    momentum_span(p + span.first, g + span.first, v + span.first, span.last - span.first, rate, momentum);
  }
}

static const rondo_kernel_options sgd_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "sgd", .cpu = sgd_cpu, RONDO_CUDA(sgd),
    .params = {RONDO_UPDATES, RONDO_READS, RONDO_READS, RONDO_SCALAR(size_t)}};

static const rondo_kernel_options momentum_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "sgd_momentum", .cpu = momentum_cpu, RONDO_CUDA(sgd),
    .params = {RONDO_UPDATES, RONDO_READS, RONDO_READS, RONDO_UPDATES, RONDO_READS, RONDO_SCALAR(size_t)}};

static rondo_status infer_sgd(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_same_shape(program, operation, PARAMETER, GRADIENT));
  return rondo_require_input(program, operation, RATE, RONDO_F32, 0);
}

static rondo_status infer_momentum(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  RONDO_TRY(infer_sgd(program, operation, results));
  RONDO_TRY(rondo_require_same_shape(program, operation, PARAMETER, VELOCITY));
  return rondo_require_input(program, operation, MOMENTUM, RONDO_F32, 0);
}

static rondo_status emit_sgd(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[PARAMETER]));
  float *p = rondo_emit_address(emitter, operation->inputs[PARAMETER]);
  const float *g = rondo_emit_address(emitter, operation->inputs[GRADIENT]);
  const float *rate = rondo_emit_address(emitter, operation->inputs[RATE]);
  return rondo_emit_kernel(emitter, &sgd_code, rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&p, &g, &rate, &count));
}

static rondo_status emit_momentum(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[PARAMETER]));
  float *p = rondo_emit_address(emitter, operation->inputs[PARAMETER]);
  const float *g = rondo_emit_address(emitter, operation->inputs[GRADIENT]);
  const float *rate = rondo_emit_address(emitter, operation->inputs[RATE]);
  float *v = rondo_emit_address(emitter, operation->inputs[VELOCITY]);
  const float *momentum = rondo_emit_address(emitter, operation->inputs[MOMENTUM]);
  return rondo_emit_kernel(emitter, &momentum_code, rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&p, &g, &rate, &v, &momentum, &count));
}

const rondo_operator rondo_operator_sgd = {.name = "sgd",
                                           .inputs = {"parameter", "gradient", "rate"},
                                           .required = 3,
                                           .updates = 1u << PARAMETER,
                                           .infer = infer_sgd,
                                           .emit = emit_sgd};

const rondo_operator rondo_operator_sgd_momentum = {.name = "sgd_momentum",
                                                    .inputs = {"parameter", "gradient", "rate", "velocity", "momentum"},
                                                    .required = 5,
                                                    .updates = 1u << PARAMETER | 1u << VELOCITY,
                                                    .infer = infer_momentum,
                                                    .emit = emit_momentum};
