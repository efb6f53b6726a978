/* SPDX-License-Identifier: MIT
 * Adam (Kingma and Ba 2015, algorithm 1), optionally with decoupled weight decay (Loshchilov and Hutter 2019).
 * The operator adam_step increments the step number t, a state on the device, and computes the two factors
 * 1 / (1 - beta^t) that correct the bias of the moments. The operator adam updates parameters and their moments; one
 * kernel updates several parameters. The decays and epsilon are fixed when the operator is added (attributes). The rate
 * is in device memory, where each run reads it (FW-5). The optional control input is [factor, apply] of
 * gradient_control.c: the gradient is multiplied by the factor, and nothing is updated if apply is 0. adam_rows updates
 * the rows of a sparse gradient alone (lazy Adam), with the factors of all updates. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/common/sparse_rows.h"
#include "tensor/program/optimizer_parts.h"

/* A scalar argument of the kernels; without padding. The attributes' numbers. */
typedef struct adam_numbers {
  float beta1, beta2, epsilon, decay;
} adam_numbers;

static adam_numbers numbers_of(const rondo_operation *operation) {
  const float *numbers = operation->attributes.numbers;
  assert(numbers[0] < 1 && numbers[1] < 1);
  return (adam_numbers){numbers[0], numbers[1], numbers[2], numbers[3]};
}

/* Step ------------------------------------------------------------------------------------------------------------- */

enum { STEP, STEP_CONTROL }; /* inputs */

static void adam_step_cpu(rondo_blocks blocks, void *const *args) {
  const adam_numbers *numbers = args[3];
  int32_t *step = RONDO_ARG(int32_t *, 4);
  float *factors = RONDO_ARG(float *, 5);
  const float *control = RONDO_ARG(const float *, 6);
  const bool is_counted = rondo_may_update(blocks, args) && rondo_control_applies(control);
  if (is_counted && *step < INT32_MAX) *step += 1;
  factors[0] = (float)(1.0 / (1.0 - pow((double)numbers->beta1, *step)));
  factors[1] = (float)(1.0 / (1.0 - pow((double)numbers->beta2, *step)));
}

RONDO_UNTYPED_KERNEL(adam_step, adam, RONDO_GATE_PARAMETERS, RONDO_SCALAR(adam_numbers), RONDO_UPDATES, RONDO_WRITES,
                     RONDO_READS);

static rondo_status infer_adam_step(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  RONDO_TRY(rondo_require_input(program, operation, STEP, RONDO_I32, 0));
  RONDO_TRY(rondo_require_input(program, operation, STEP_CONTROL, RONDO_F32, 1));
  results[0] = rondo_shape_vector(RONDO_F32, 2);
  return RONDO_OK;
}

static rondo_status emit_adam_step(rondo_emitter *emitter, const rondo_operation *operation) {
  const adam_numbers numbers = numbers_of(operation);
  return rondo_emit_operands(
      emitter, operation, &adam_step_code, (rondo_grid){.x = 1},
      RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(numbers), RONDO_INPUT(STEP), RONDO_RESULT(0), RONDO_INPUT(STEP_CONTROL)));
}

RONDO_OPERATOR(adam_step, .inputs = {"step", "control"}, .required = 1, .result_count = 1, .updates = 1u << STEP,
               .infer = infer_adam_step, .emit = emit_adam_step);

/* Update ----------------------------------------------------------------------------------------------------------- */

enum { PARAMETER, GRADIENT, RATE, CONTROL, FACTORS, FIRST, SECOND }; /* inputs */

typedef struct adam_rates {
  float rate;   /* times the first factor */
  float second; /* the second factor */
  float keep;   /* 1 - rate decay: what decay leaves of a parameter (Loshchilov and Hutter 2019) */
  float scale;  /* of gradients */
} adam_rates;

RONDO_INLINE void adam_one(float *p, float *m, float *v, float raw, const adam_numbers *n, adam_rates rates) {
  const float g = raw * rates.scale;
  *m = n->beta1 * *m + (1.0f - n->beta1) * g;
  *v = n->beta2 * *v + (1.0f - n->beta2) * (g * g);
  *p = *p * rates.keep - rates.rate * *m / (sqrtf(*v * rates.second) + n->epsilon);
}

RONDO_VECTORISED(adam_span,
                 (float *restrict p, float *restrict m, float *restrict v, const float *restrict g, size_t count,
                  adam_numbers numbers, adam_rates rates),
                 (p, m, v, g, count, numbers, rates)) {
  RONDO_EACH_LANE(i, lane, count, adam_one(&p[i], &m[i], &v[i], g[i], &numbers, rates));
}

/* `args` begins at the gate, numbers, rate, factors and control. False: the update is skipped. */
static bool read_rates(rondo_blocks blocks, void *const *args, adam_rates *out) {
  const adam_numbers *numbers = args[3];
  const float rate = *RONDO_ARG(const float *, 4), *factors = RONDO_ARG(const float *, 5);
  const float *control = RONDO_ARG(const float *, 6);
  *out = (adam_rates){rate * factors[0], factors[1], 1.0f - rate * numbers->decay, rondo_control_factor(control)};
  return rondo_may_update(blocks, args) && rondo_control_applies(control);
}

/* `args` begins at the pointers of one parameter: p, m, v and g, which has this type. */
static void update_span(rondo_type type, void *const *args, rondo_span span, adam_numbers numbers, adam_rates rates) {
  float *p = RONDO_ARG(float *, 0), *m = RONDO_ARG(float *, 1), *v = RONDO_ARG(float *, 2), buffer[RONDO_CHUNK];
  RONDO_EACH_GRADIENT(type, at, count, span.first, span.last) {
    const float *g = rondo_load_chunk(type, RONDO_ARG(const void *, 3), at, count, buffer);
    adam_span(p + at, m + at, v + at, g, count, numbers, rates);
  }
}

static void adam_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_joined_table *table = args[0];
  const adam_numbers *numbers = args[4];
  adam_rates rates;
  if (!read_rates(blocks, args + 1, &rates)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(table, block);
    update_span(share.type, args + 8 + 4 * share.operation, share.span, *numbers, rates);
  }
}

#define SHARED RONDO_GATE_PARAMETERS, RONDO_SCALAR(adam_numbers), RONDO_READS, RONDO_READS, RONDO_READS
#define POINTERS RONDO_UPDATES, RONDO_UPDATES, RONDO_UPDATES, RONDO_READS

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(rondo_joined_table), SHARED,
                                                    RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(adam, adam, joined_parameters);

static rondo_status infer_adam(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  for (uint32_t i = FIRST; i <= SECOND; i++) RONDO_TRY(rondo_require_companion(program, operation, PARAMETER, i));
  RONDO_TRY(rondo_require_gradient(program, operation, PARAMETER, GRADIENT));
  RONDO_TRY(rondo_require_input(program, operation, RATE, RONDO_F32, 0));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  return rondo_require_input(program, operation, FACTORS, RONDO_F32, 1);
}

static rondo_status emit_adam(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t inputs[] = {PARAMETER, FIRST, SECOND, GRADIENT};
  static const uint32_t offsets[] = {RONDO_PART_PARAMETER, RONDO_PART_COMPANION, RONDO_PART_COMPANION,
                                     RONDO_PART_GRADIENT};
  const rondo_joined_kernel kernel = {&adam_code, inputs,          4, GRADIENT, RONDO_ELEMENTWISE_GRAIN,
                                      offsets,    RONDO_MAX_JOINED};
  const adam_numbers numbers = numbers_of(operations[0]);
  return rondo_emit_joined(
      emitter, &kernel, operations, count,
      RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(numbers), RONDO_INPUT(RATE), RONDO_INPUT(FACTORS), RONDO_INPUT(CONTROL)));
}

static const rondo_join adam_join = {
    .max = RONDO_MAX_JOINED, .shared = 1u << RATE | 1u << FACTORS | 1u << CONTROL, .of_parts = true, .emit = emit_adam};

RONDO_OPERATOR(adam, .inputs = {"parameter", "gradient", "rate", "control", "factors", "first moment", "second moment"},
               .required = 3, .updates = 1u << PARAMETER | 1u << FIRST | 1u << SECOND, .infer = infer_adam,
               .join = &adam_join);

/* Rows ------------------------------------------------------------------------------------------------------------- */

static void adam_rows_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_slots *slots = args[0];
  const adam_numbers *numbers = args[4];
  const int64_t *keys = RONDO_ARG(const int64_t *, 8);
  const float *values = RONDO_ARG(const float *, 9);
  float *p = RONDO_ARG(float *, 10), *m = RONDO_ARG(float *, 11), *v = RONDO_ARG(float *, 12);
  adam_rates rates;
  if (!read_rates(blocks, args + 1, &rates)) return;
  RONDO_EACH_ROW(slot, row, blocks, slots, keys) {
    const size_t at = row * slots->columns;
    rondo_prefetch_row(slots, keys, slot, p);
    rondo_prefetch_row(slots, keys, slot, m);
    rondo_prefetch_row(slots, keys, slot, v);
    adam_span(p + at, m + at, v + at, values + slot * slots->columns, slots->columns, *numbers, rates);
  }
}

RONDO_UNTYPED_KERNEL(adam_rows, adam, RONDO_SCALAR(rondo_slots), SHARED, RONDO_READS, RONDO_READS, RONDO_UPDATES,
                     RONDO_UPDATES, RONDO_UPDATES);

static rondo_status infer_adam_rows(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, FACTORS, RONDO_F32, 1));
  return rondo_require_rows(program, operation, FIRST, SECOND);
}

static rondo_status emit_adam_rows(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_slots slots = rondo_slots_of(emitter, operation);
  const adam_numbers numbers = numbers_of(operation);
  return rondo_emit_operands(
      emitter, operation, &adam_rows_code, rondo_slot_grid(emitter, slots.count, slots.columns),
      RONDO_OPERANDS(RONDO_OBJECT(slots), RONDO_GATE, RONDO_OBJECT(numbers), RONDO_INPUT(RATE), RONDO_INPUT(FACTORS),
                     RONDO_INPUT(CONTROL), RONDO_INPUT(RONDO_ROWS_KEYS), RONDO_INPUT(GRADIENT), RONDO_INPUT(PARAMETER),
                     RONDO_INPUT(FIRST), RONDO_INPUT(SECOND)));
}

RONDO_OPERATOR(adam_rows,
               .inputs = {"parameter", "gradient", "rate", "control", "factors", "first moment", "second moment",
                          "keys"},
               .required = 3, .updates = 1u << PARAMETER | 1u << FIRST | 1u << SECOND, .infer = infer_adam_rows,
               .emit = emit_adam_rows);
