/* SPDX-License-Identifier: MIT
 * Steepest descent, in place on a state: p -= rate g; and with momentum (Polyak 1964): v = momentum v + g, p -= rate v.
 * Weight decay adds decay p to g. Rate and momentum are cells, read on the device in each run (FW-5). The control,
 * which may be left out, is [factor, apply] of gradient_control.c: gradients are multiplied by the factor, and with an
 * apply of 0 nothing changes.
 */
#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"

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

RONDO_INLINE void sgd_one(float *p, float g, sgd_rates r) { *p -= r.rate * (g * r.scale + r.decay * *p); }

RONDO_INLINE void momentum_one(float *p, float g, float *v, sgd_rates r) {
  *v = r.momentum * *v + (g * r.scale + r.decay * *p);
  *p -= r.rate * *v;
}

RONDO_VECTORISED(sgd_span, (float *restrict p, const float *restrict g, size_t count, sgd_rates rates),
                 (p, g, count, rates)) {
  RONDO_EACH_LANE(i, lane, count, sgd_one(&p[i], g[i], rates));
}

RONDO_VECTORISED(momentum_span,
                 (float *restrict p, const float *restrict g, float *restrict v, size_t count, sgd_rates rates),
                 (p, g, v, count, rates)) {
  RONDO_EACH_LANE(i, lane, count, momentum_one(&p[i], g[i], &v[i], rates));
}

/* Arguments: the gate, numbers, rate, control, and for the form with momentum that, from `args` on. False: nothing is
 * to be done. */
static bool read_rates(rondo_blocks blocks, void *const *args, bool has_momentum, sgd_rates *out) {
  const sgd_numbers *numbers = args[3];
  const float *control = RONDO_ARG(const float *, 5);
  const bool is_controlled = numbers->is_controlled != 0;
  *out = (sgd_rates){.rate = *RONDO_ARG(const float *, 4),
                     .momentum = has_momentum ? *RONDO_ARG(const float *, 6) : 0,
                     .decay = numbers->decay,
                     .scale = is_controlled ? control[0] : 1.0f};
  return rondo_may_update(blocks, args) && (!is_controlled || control[1] != 0);
}

/* The pointers of one parameter, p and g, which is of this type, with momentum v, from `args` on. */
static void update_span(rondo_type type, void *const *args, bool has_momentum, rondo_span span, sgd_rates rates) {
  float *p = RONDO_ARG(float *, 0), room[RONDO_CHUNK];
  for (size_t at = span.first, count; at < span.last; at += count) {
    count = rondo_gradient_run(type, at, span.last);
    const float *g = rondo_load_chunk(type, RONDO_ARG(const void *, 1), at, count, room);
    if (has_momentum)
      momentum_span(p + at, g, RONDO_ARG(float *, 2) + at, count, rates);
    else
      sgd_span(p + at, g, count, rates);
  }
}

static void update(rondo_blocks blocks, void *const *args, bool has_momentum) {
  const size_t shared = has_momentum ? 7 : 6, count = RONDO_ARG(size_t, shared);
  const rondo_type type = (rondo_type)RONDO_ARG(uint32_t, has_momentum ? 11 : 9);
  sgd_rates rates;
  if (!read_rates(blocks, args, has_momentum, &rates)) return;
  update_span(type, args + shared + 1, has_momentum, rondo_blocks_span(blocks, count, RONDO_LANES), rates);
}

static void update_joined(rondo_blocks blocks, void *const *args, bool has_momentum) {
  const rondo_joined_table *table = args[0];
  const uint32_t pointers = has_momentum ? 3 : 2;
  sgd_rates rates;
  if (!read_rates(blocks, args + 1, has_momentum, &rates)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(table, block);
    update_span(share.type, args + 7 + has_momentum + pointers * share.operation, has_momentum, share.span, rates);
  }
}

static void sgd_cpu(rondo_blocks blocks, void *const *args) { update(blocks, args, false); }
static void momentum_cpu(rondo_blocks blocks, void *const *args) { update(blocks, args, true); }
static void sgd_joined_cpu(rondo_blocks blocks, void *const *args) { update_joined(blocks, args, false); }
static void momentum_joined_cpu(rondo_blocks blocks, void *const *args) { update_joined(blocks, args, true); }

#define SGD_SHARED RONDO_GATE_PARAMETERS, RONDO_SCALAR(sgd_numbers), RONDO_READS, RONDO_READS
#define SGD_POINTERS RONDO_UPDATES, RONDO_READS
#define MOMENTUM_SHARED SGD_SHARED, RONDO_READS
#define MOMENTUM_POINTERS RONDO_UPDATES, RONDO_READS, RONDO_UPDATES

static const rondo_parameter sgd_parameters[] = {RONDO_SCALAR(rondo_joined_table), SGD_SHARED,
                                                 RONDO_JOINED_PARAMETERS(SGD_POINTERS)};
static const rondo_parameter momentum_parameters[] = {RONDO_SCALAR(rondo_joined_table), MOMENTUM_SHARED,
                                                      RONDO_JOINED_PARAMETERS(MOMENTUM_POINTERS)};

/* Alone, joined. */
static const rondo_kernel_options sgd_code[] = {
    {RONDO_KERNEL_OPTIONS_INIT, .name = "sgd", .cpu = sgd_cpu, RONDO_CUDA(sgd),
     .params = {SGD_SHARED, RONDO_SCALAR(size_t), SGD_POINTERS, RONDO_SCALAR(uint32_t)}},
    {RONDO_KERNEL_OPTIONS_INIT, .name = "sgd_joined", .cpu = sgd_joined_cpu, RONDO_CUDA(sgd),
     RONDO_PARAMETER_LIST(sgd_parameters)}};

static const rondo_kernel_options momentum_code[] = {
    {RONDO_KERNEL_OPTIONS_INIT, .name = "sgd_momentum", .cpu = momentum_cpu, RONDO_CUDA(sgd),
     .params = {MOMENTUM_SHARED, RONDO_SCALAR(size_t), MOMENTUM_POINTERS, RONDO_SCALAR(uint32_t)}},
    {RONDO_KERNEL_OPTIONS_INIT, .name = "sgd_momentum_joined", .cpu = momentum_joined_cpu, RONDO_CUDA(sgd),
     RONDO_PARAMETER_LIST(momentum_parameters)}};

static rondo_status infer_sgd(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_gradient(program, operation, PARAMETER, GRADIENT));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  return rondo_require_input(program, operation, RATE, RONDO_F32, 0);
}

static rondo_status infer_momentum(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  RONDO_TRY(infer_sgd(program, operation, results));
  RONDO_TRY(rondo_require_same_shape(program, operation, PARAMETER, VELOCITY));
  return rondo_require_input(program, operation, MOMENTUM, RONDO_F32, 0);
}

/* The arguments that all updates share. */
typedef struct sgd_shared {
  sgd_numbers numbers;
  const float *rate, *control, *momentum;
} sgd_shared;

static sgd_shared shared_of(const rondo_emitter *emitter, const rondo_operation *operation) {
  const bool is_controlled = operation->inputs[CONTROL] != RONDO_NO_VALUE;
  const float *rate = rondo_emit_address(emitter, operation->inputs[RATE]);
  return (sgd_shared){.numbers = {operation->attributes.numbers[DECAY], is_controlled},
                      .rate = rate,
                      .control = is_controlled ? rondo_emit_address(emitter, operation->inputs[CONTROL]) : rate,
                      .momentum = rondo_emit_address(emitter, operation->inputs[MOMENTUM])};
}

static rondo_status emit_sgd(rondo_emitter *emitter, const rondo_operation *operation) {
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[PARAMETER]));
  const sgd_shared shared = shared_of(emitter, operation);
  float *p = rondo_emit_address(emitter, operation->inputs[PARAMETER]);
  const void *g = rondo_emit_address(emitter, operation->inputs[GRADIENT]);
  const uint32_t type = rondo_emit_shape(emitter, operation->inputs[GRADIENT])->type;
  float *v = rondo_emit_address(emitter, operation->inputs[VELOCITY]);
  const rondo_grid grid = rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN);
  const rondo_gate_memory gate = rondo_emit_gate(emitter);
  if (operation->row == &rondo_operator_sgd)
    return rondo_emit_kernel(
        emitter, &sgd_code[0], grid,
        RONDO_ARGS(RONDO_GATE_ARGUMENTS(gate), &shared.numbers, &shared.rate, &shared.control, &count, &p, &g, &type));
  return rondo_emit_kernel(emitter, &momentum_code[0], grid,
                           RONDO_ARGS(RONDO_GATE_ARGUMENTS(gate), &shared.numbers, &shared.rate, &shared.control,
                                      &shared.momentum, &count, &p, &g, &v, &type));
}

static rondo_status emit_joined(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t inputs[] = {PARAMETER, GRADIENT, VELOCITY};
  const bool has_momentum = operations[0]->row != &rondo_operator_sgd;
  const rondo_joined_kernel kernel = {has_momentum ? &momentum_code[1] : &sgd_code[1], inputs, has_momentum ? 3 : 2,
                                      GRADIENT, RONDO_ELEMENTWISE_GRAIN};
  const sgd_shared shared = shared_of(emitter, operations[0]);
  const rondo_gate_memory gate = rondo_emit_gate(emitter);
  const void *const args[] = {RONDO_GATE_ARGUMENTS(gate), &shared.numbers, &shared.rate, &shared.control,
                              &shared.momentum};
  return rondo_emit_joined(emitter, &kernel, operations, count, args, RONDO_GATE_COUNT + (has_momentum ? 4 : 3));
}

static const rondo_join sgd_join = {
    .most = RONDO_MOST_JOINED, .shared = 1u << RATE | 1u << CONTROL | 1u << MOMENTUM, .emit = emit_joined};

RONDO_OPERATOR(sgd, .inputs = {"parameter", "gradient", "rate", "control"}, .required = 3, .updates = 1u << PARAMETER,
               .infer = infer_sgd, .emit = emit_sgd, .join = &sgd_join);

RONDO_OPERATOR(sgd_momentum, .inputs = {"parameter", "gradient", "rate", "control", "velocity", "momentum"},
               .required = 3, .updates = 1u << PARAMETER | 1u << VELOCITY, .infer = infer_momentum, .emit = emit_sgd,
               .join = &sgd_join);
