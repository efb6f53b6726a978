/* SPDX-License-Identifier: MIT
 * Stochastic gradient descent. It updates a parameter p in place from its gradient g: p -= rate * g; or, with momentum
 * (Polyak 1964): v = momentum * v + g, p -= rate * v. Weight decay first adds decay * p to g. The rate and the momentum
 * are in device memory, where each run reads them (FW-5). Both operators use the same kernels: without momentum, v and
 * momentum are NULL. The optional control input is [factor, apply] of gradient_control.c: g is multiplied by the
 * factor, and nothing is updated if apply is 0. sgd_rows updates the rows of sparse gradients. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/common/sparse_rows.h"
#include "tensor/program/optimizer_parts.h"

enum { PARAMETER, GRADIENT, RATE, CONTROL, MOMENTUM, VELOCITY }; /* inputs; the last two with momentum only */
enum { DECAY };                                                  /* numbers */

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

/* `args` begins at the gate, decay, rate, control and momentum. False: the update is skipped. */
static bool read_rates(rondo_blocks blocks, void *const *args, sgd_rates *out) {
  const float *control = RONDO_ARG(const float *, 5), *momentum = RONDO_ARG(const float *, 6);
  *out = (sgd_rates){.rate = *RONDO_ARG(const float *, 4),
                     .momentum = momentum == NULL ? 0 : *momentum,
                     .decay = RONDO_ARG(float, 3),
                     .scale = rondo_control_factor(control)};
  return rondo_may_update(blocks, args) && rondo_control_applies(control);
}

/* `args` begins at the pointers of one parameter: p, g, which has this type, and v. */
static void update_span(rondo_type type, void *const *args, rondo_span span, sgd_rates rates) {
  float *p = RONDO_ARG(float *, 0), *v = RONDO_ARG(float *, 2), buffer[RONDO_CHUNK];
  RONDO_EACH_GRADIENT(type, at, count, span.first, span.last) {
    const float *g = rondo_load_chunk(type, RONDO_ARG(const void *, 1), at, count, buffer);
    if (v != NULL)
      momentum_span(p + at, g, v + at, count, rates);
    else
      sgd_span(p + at, g, count, rates);
  }
}

static void sgd_cpu(rondo_blocks blocks, void *const *args) {
  sgd_rates rates;
  if (!read_rates(blocks, args + 1, &rates)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    update_span(share.type, args + 8 + 3 * share.operation, share.span, rates);
  }
}

#define SHARED RONDO_GATE_PARAMETERS, RONDO_SCALAR(float), RONDO_READS, RONDO_READS, RONDO_READS
#define POINTERS RONDO_UPDATES, RONDO_READS, RONDO_UPDATES

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(rondo_joined_table), SHARED,
                                                    RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(sgd, sgd, joined_parameters);

static rondo_status infer_sgd(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_gradient(program, operation, PARAMETER, GRADIENT));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  RONDO_TRY(rondo_require_input(program, operation, RATE, RONDO_F32, 0));
  if (operation->inputs[VELOCITY] == RONDO_NO_VALUE) return RONDO_OK;
  RONDO_TRY(rondo_require_companion(program, operation, PARAMETER, VELOCITY));
  return rondo_require_input(program, operation, MOMENTUM, RONDO_F32, 0);
}

static rondo_status emit_sgd(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t inputs[] = {PARAMETER, GRADIENT, VELOCITY};
  static const uint32_t offsets[] = {RONDO_PART_PARAMETER, RONDO_PART_GRADIENT, RONDO_PART_COMPANION};
  const rondo_joined_kernel kernel = {&sgd_code, inputs,          3, GRADIENT, RONDO_ELEMENTWISE_GRAIN,
                                      offsets,   RONDO_MAX_JOINED};
  const float decay = operations[0]->attributes.numbers[DECAY];
  for (uint32_t i = 0; i < count; i++) {
    const bool is_simple = operations[i]->row == &rondo_operator_sgd;
    assert((operations[i]->inputs[VELOCITY] == RONDO_NO_VALUE) == is_simple);
    assert((operations[i]->inputs[MOMENTUM] == RONDO_NO_VALUE) == is_simple);
    (void)is_simple;
  }
  return rondo_emit_joined(
      emitter, &kernel, operations, count,
      RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(decay), RONDO_INPUT(RATE), RONDO_INPUT(CONTROL), RONDO_INPUT(MOMENTUM)));
}

static const rondo_join sgd_join = {
    .max = RONDO_MAX_JOINED, .shared = 1u << RATE | 1u << CONTROL | 1u << MOMENTUM, .of_parts = true, .emit = emit_sgd};

#define SGD_ROW .required = 3, .infer = infer_sgd, .join = &sgd_join

RONDO_OPERATOR(sgd, SGD_ROW, .inputs = {"parameter", "gradient", "rate", "control"}, .updates = 1u << PARAMETER);
RONDO_OPERATOR(sgd_momentum, SGD_ROW, .inputs = {"parameter", "gradient", "rate", "control", "momentum", "velocity"},
               .updates = 1u << PARAMETER | 1u << VELOCITY);

/* Rows ------------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernel: the slots of each of the joined updates. */
typedef struct joined_slots {
  rondo_slots of[RONDO_MAX_JOINED];
} joined_slots;

/* `args` begins at the pointers of one table: keys, values, p. */
static void update_rows(const rondo_slots *slots, void *const *args, rondo_span span, sgd_rates rates) {
  const int64_t *keys = RONDO_ARG(const int64_t *, 0);
  const float *values = RONDO_ARG(const float *, 1);
  float *p = RONDO_ARG(float *, 2);
  for (size_t slot = span.first; slot < span.last; slot++) {
    const size_t row = rondo_slot_row(keys, slots->rows, slot);
    if (row >= slots->rows) continue;
    rondo_prefetch_row(slots, keys, slot, p);
    sgd_span(p + row * slots->columns, values + slot * slots->columns, slots->columns, rates);
  }
}

static void sgd_rows_cpu(rondo_blocks blocks, void *const *args) {
  const joined_slots *slots = args[8];
  sgd_rates rates;
  if (!read_rates(blocks, args + 1, &rates)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    update_rows(&slots->of[share.operation], args + 9 + 3 * share.operation, share.span, rates);
  }
}

#define ROWS_POINTERS RONDO_READS, RONDO_READS, RONDO_UPDATES

static const rondo_parameter rows_parameters[] = {RONDO_SCALAR(rondo_joined_table), SHARED, RONDO_SCALAR(joined_slots),
                                                  RONDO_JOINED_PARAMETERS(ROWS_POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(sgd_rows, sgd, rows_parameters);

static rondo_status infer_sgd_rows(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  (void)results;
  return rondo_require_rows(program, operation, 1, 0);
}

static rondo_status emit_sgd_rows(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t inputs[] = {RONDO_ROWS_KEYS, GRADIENT, PARAMETER};
  joined_slots slots = {.of = {{0}}};
  size_t columns = 0;
  for (uint32_t i = 0; i < count; i++) {
    slots.of[i] = rondo_slots_of(emitter, operations[i]);
    columns = rondo_larger(columns, slots.of[i].columns);
  }
  const rondo_joined_kernel kernel = {&sgd_rows_code, inputs,          3, GRADIENT, rondo_slot_grain(columns),
                                      NULL,           RONDO_MAX_JOINED};
  const float decay = operations[0]->attributes.numbers[DECAY];
  return rondo_emit_joined(emitter, &kernel, operations, count,
                           RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(decay), RONDO_INPUT(RATE), RONDO_INPUT(CONTROL),
                                          RONDO_INPUT(MOMENTUM), RONDO_OBJECT(slots)));
}

static const rondo_join rows_join = {
    .max = RONDO_MAX_JOINED, .shared = 1u << RATE | 1u << CONTROL, .emit = emit_sgd_rows};

RONDO_OPERATOR(sgd_rows, .inputs = {"parameter", "gradient", "rate", "control", "-", "-", "-", "keys"}, .required = 3,
               .updates = 1u << PARAMETER, .infer = infer_sgd_rows, .join = &rows_join);
