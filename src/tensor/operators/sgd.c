/* SPDX-License-Identifier: MIT
 * Steepest descent, in place on a state: p -= rate g; and with momentum (Polyak 1964): v = momentum v + g, p -= rate v.
 * Weight decay adds decay p to g. Rate and momentum are cells, read on the device in each run (FW-5). The control,
 * which may be left out, is [factor, apply] of gradient_control.c: gradients are multiplied by the factor, and with an
 * apply of 0 nothing changes.
 */
#include "tensor/emit.h"
#include "tensor/operators.h"
#include "tensor/operators/kernel_support.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

enum { PARAMETER, GRADIENT, RATE, CONTROL, VELOCITY, MOMENTUM }; /* inputs; the last two with momentum only */
enum { DECAY };                                                  /* numbers */

/* What the kernels get as one scalar; without padding. */
typedef struct sgd_numbers {
  float decay;
  uint32_t is_controlled;
} sgd_numbers;

typedef struct sgd_rates {
  float rate, momentum, decay;
  float scale; /* of gradients */
} sgd_rates;

static inline void sgd_one(float *p, float g, sgd_rates r) { *p -= r.rate * (g * r.scale + r.decay * *p); }

static inline void momentum_one(float *p, float g, float *v, sgd_rates r) {
  *v = r.momentum * *v + (g * r.scale + r.decay * *p);
  *p -= r.rate * *v;
}

static void sgd_span(float *restrict p, const float *restrict g, size_t count, sgd_rates rates) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = i; lane < i + RONDO_LANES; lane++) sgd_one(&p[lane], g[lane], rates);
  }
  for (; i < count; i++) sgd_one(&p[i], g[i], rates);
}

static void momentum_span(float *restrict p, const float *restrict g, float *restrict v, size_t count,
                          sgd_rates rates) {
  size_t i = 0;
  for (; i + RONDO_LANES <= count; i += RONDO_LANES) {
    for (size_t lane = i; lane < i + RONDO_LANES; lane++) momentum_one(&p[lane], g[lane], &v[lane], rates);
  }
  for (; i < count; i++) momentum_one(&p[i], g[i], &v[i], rates);
}

/* Arguments of both kernels: numbers, p, g, rate, control, count; with momentum v and momentum behind them. */
static sgd_rates rates_of(void *const *args, bool *out_applies) {
  const sgd_numbers *numbers = args[0];
  const float *control = RONDO_ARG(const float *, 4);
  const bool is_controlled = numbers->is_controlled != 0;
  *out_applies = !is_controlled || control[1] != 0;
  return (sgd_rates){
      .rate = *RONDO_ARG(const float *, 3), .decay = numbers->decay, .scale = is_controlled ? control[0] : 1.0f};
}

static void sgd_cpu(rondo_blocks blocks, void *const *args) {
  float *p = RONDO_ARG(float *, 1);
  const float *g = RONDO_ARG(const float *, 2);
  const size_t count = RONDO_ARG(size_t, 5);
  bool applies;
  const sgd_rates rates = rates_of(args, &applies);
  for (size_t block = blocks.first; applies && block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    sgd_span(p + span.first, g + span.first, span.last - span.first, rates);
  }
}

static void momentum_cpu(rondo_blocks blocks, void *const *args) {
  float *p = RONDO_ARG(float *, 1);
  const float *g = RONDO_ARG(const float *, 2);
  const size_t count = RONDO_ARG(size_t, 5);
  float *v = RONDO_ARG(float *, 6);
  bool applies;
  sgd_rates rates = rates_of(args, &applies);
  rates.momentum = *RONDO_ARG(const float *, 7);
  for (size_t block = blocks.first; applies && block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, count, RONDO_LANES);
    momentum_span(p + span.first, g + span.first, v + span.first, span.last - span.first, rates);
  }
}

static const rondo_kernel_options sgd_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "sgd", .cpu = sgd_cpu, RONDO_CUDA(sgd),
    .params = {RONDO_SCALAR(sgd_numbers), RONDO_UPDATES, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_SCALAR(size_t)}};

static const rondo_kernel_options momentum_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "sgd_momentum", .cpu = momentum_cpu, RONDO_CUDA(sgd),
    .params = {RONDO_SCALAR(sgd_numbers), RONDO_UPDATES, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_SCALAR(size_t),
               RONDO_UPDATES, RONDO_READS}};

static rondo_status infer_sgd(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_same_shape(program, operation, PARAMETER, GRADIENT));
  if (operation->inputs[CONTROL] != RONDO_NO_VALUE)
    RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
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
  const bool has_momentum = operation->row == &rondo_operator_sgd_momentum;
  const sgd_numbers numbers = {operation->attributes.numbers[DECAY], operation->inputs[CONTROL] != RONDO_NO_VALUE};
  float *p = rondo_emit_address(emitter, operation->inputs[PARAMETER]);
  const float *g = rondo_emit_address(emitter, operation->inputs[GRADIENT]);
  const float *rate = rondo_emit_address(emitter, operation->inputs[RATE]);
  const float *control = numbers.is_controlled != 0 ? rondo_emit_address(emitter, operation->inputs[CONTROL]) : rate;
  float *v = rondo_emit_address(emitter, operation->inputs[VELOCITY]);
  const float *momentum = rondo_emit_address(emitter, operation->inputs[MOMENTUM]);
  const rondo_grid grid = rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN);
  if (!has_momentum)
    return rondo_emit_kernel(emitter, &sgd_code, grid, RONDO_ARGS(&numbers, &p, &g, &rate, &control, &count));
  return rondo_emit_kernel(emitter, &momentum_code, grid,
                           RONDO_ARGS(&numbers, &p, &g, &rate, &control, &count, &v, &momentum));
}

const rondo_operator rondo_operator_sgd = {.name = "sgd",
                                           .inputs = {"parameter", "gradient", "rate", "control"},
                                           .required = 3,
                                           .updates = 1u << PARAMETER,
                                           .infer = infer_sgd,
                                           .emit = emit_sgd};

const rondo_operator rondo_operator_sgd_momentum = {
    .name = "sgd_momentum",
    .inputs = {"parameter", "gradient", "rate", "control", "velocity", "momentum"},
    .required = 3,
    .updates = 1u << PARAMETER | 1u << VELOCITY,
    .infer = infer_momentum,
    .emit = emit_sgd};
