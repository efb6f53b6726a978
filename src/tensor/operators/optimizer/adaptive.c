/* SPDX-License-Identifier: MIT
 * Adagrad (Duchi, Hazan and Singer 2011) and RMSprop (Tieleman and Hinton 2012), as PyTorch defines them. Both keep a
 * sum s of squares of the gradient g and divide by its root: s = keep * s + add * g * g, p -= rate * g / (sqrt(s) +
 * epsilon). For Adagrad keep and add are 1; for RMSprop they are alpha and 1 - alpha. RMSprop may subtract the square
 * of the mean gradient from s (centered), and have momentum: v = momentum * v + step, p -= rate * v. Weight decay first
 * adds decay * p to g. Both operators use one kernel, in which what is not there is NULL. The rate and the momentum are
 * in device memory, where each run reads them (FW-5). The optional control input is [factor, apply] of
 * gradient_control.c. adagrad_rows updates the rows of a sparse gradient. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/common/sparse_rows.h"
#include "tensor/program/optimizer_parts.h"

enum { PARAMETER, GRADIENT, RATE, CONTROL, MOMENTUM, SQUARE, MEAN, VELOCITY }; /* inputs */
enum { TO_P, TO_S, TO_MEAN, TO_V, FROM_G, POINTERS_EACH };                     /* pointers of an operation */

/* A scalar argument of the kernel; without padding. The attributes' numbers: the first three. */
typedef struct adaptive_numbers {
  float keep, epsilon, decay, add;
} adaptive_numbers;

typedef struct adaptive_rates {
  float rate, momentum;
  float scale; /* of gradients */
} adaptive_rates;

static adaptive_numbers numbers_of(const rondo_operation *operation) {
  const float *numbers = operation->attributes.numbers;
  const bool is_sum = operation->row != &rondo_operator_rmsprop;
  return (adaptive_numbers){numbers[0], numbers[1], numbers[2], is_sum ? 1.0f : 1.0f - numbers[0]};
}

/* The gradients of a chunk and the squares to divide by. */
RONDO_VECTORISED(square_span,
                 (const float *restrict p, float *restrict s, const float *restrict g, size_t count, adaptive_numbers n,
                  float scale, float *restrict steps, float *restrict squares),
                 (p, s, g, count, n, scale, steps, squares)) {
  RONDO_EACH_LANE(i, lane, count, {
    steps[i] = g[i] * scale + n.decay * p[i];
    s[i] = n.keep * s[i] + n.add * (steps[i] * steps[i]);
    squares[i] = s[i];
  });
}

/* Rounding may make the variance negative. */
RONDO_VECTORISED(center_span,
                 (float *restrict mean, const float *restrict steps, float *restrict squares, size_t count,
                  adaptive_numbers n),
                 (mean, steps, squares, count, n)) {
  RONDO_EACH_LANE(i, lane, count, {
    mean[i] = n.keep * mean[i] + n.add * steps[i];
    const float variance = squares[i] - mean[i] * mean[i];
    squares[i] = variance > 0 ? variance : 0;
  });
}

RONDO_VECTORISED(divide_span, (float *restrict steps, const float *restrict squares, size_t count, float epsilon),
                 (steps, squares, count, epsilon)) {
  RONDO_EACH_LANE(i, lane, count, steps[i] /= sqrtf(squares[i]) + epsilon);
}

RONDO_VECTORISED(gather_speed, (float *restrict v, float *restrict steps, size_t count, float momentum),
                 (v, steps, count, momentum)) {
  RONDO_EACH_LANE(i, lane, count, steps[i] = v[i] = momentum * v[i] + steps[i]);
}

RONDO_VECTORISED(apply_span, (float *restrict p, const float *restrict steps, size_t count, float rate),
                 (p, steps, count, rate)) {
  RONDO_EACH_LANE(i, lane, count, p[i] -= rate * steps[i]);
}

/* `args` begins at the pointers of one parameter. At most RONDO_CHUNK elements from `at` on. */
static void update_chunk(void *const *args, const float *g, size_t at, size_t count, const adaptive_numbers *n,
                         const adaptive_rates *rates) {
  float *p = RONDO_ARG(float *, TO_P), *s = RONDO_ARG(float *, TO_S), *mean = RONDO_ARG(float *, TO_MEAN);
  float *v = RONDO_ARG(float *, TO_V), steps[RONDO_CHUNK], squares[RONDO_CHUNK];
  assert(count <= RONDO_CHUNK);
  square_span(p + at, s + at, g, count, *n, rates->scale, steps, squares);
  if (mean != NULL) center_span(mean + at, steps, squares, count, *n);
  divide_span(steps, squares, count, n->epsilon);
  if (v != NULL) gather_speed(v + at, steps, count, rates->momentum);
  apply_span(p + at, steps, count, rates->rate);
}

/* `args` begins at the gate, numbers, rate, control and momentum. False: the update is skipped. */
static bool read_rates(rondo_blocks blocks, void *const *args, adaptive_rates *out) {
  const float *control = RONDO_ARG(const float *, 5), *momentum = RONDO_ARG(const float *, 6);
  *out = (adaptive_rates){.rate = *RONDO_ARG(const float *, 4),
                          .momentum = momentum == NULL ? 0 : *momentum,
                          .scale = rondo_control_factor(control)};
  return rondo_may_update(blocks, args) && rondo_control_applies(control);
}

static void adaptive_cpu(rondo_blocks blocks, void *const *args) {
  adaptive_rates rates;
  float buffer[RONDO_CHUNK];
  if (!read_rates(blocks, args + 1, &rates)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    void *const *pointers = args + 8 + POINTERS_EACH * share.operation;
    RONDO_EACH_CHUNK(at, count, share.span.first, share.span.last) {
      const void *from = *(const void *const *)pointers[FROM_G];
      update_chunk(pointers, rondo_load_chunk(share.type, from, at, count, buffer), at, count, args[4], &rates);
    }
  }
}

#define SHARED RONDO_GATE_PARAMETERS, RONDO_SCALAR(adaptive_numbers), RONDO_READS, RONDO_READS, RONDO_READS
#define POINTERS RONDO_UPDATES, RONDO_UPDATES, RONDO_UPDATES, RONDO_UPDATES, RONDO_READS

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(rondo_joined_table), SHARED,
                                                    RONDO_FEWER_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(adaptive, adaptive, joined_parameters);

static rondo_status infer_adaptive(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, PARAMETER, RONDO_F32, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_gradient(program, operation, PARAMETER, GRADIENT));
  RONDO_TRY(rondo_require_input(program, operation, RATE, RONDO_F32, 0));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  RONDO_TRY(rondo_require_input(program, operation, MOMENTUM, RONDO_F32, 0));
  for (uint32_t i = SQUARE; i <= VELOCITY; i++)
    if (operation->inputs[i] != RONDO_NO_VALUE) RONDO_TRY(rondo_require_companion(program, operation, PARAMETER, i));
  return RONDO_OK;
}

static rondo_status emit_adaptive(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t inputs[] = {PARAMETER, SQUARE, MEAN, VELOCITY, GRADIENT};
  static const uint32_t offsets[] = {RONDO_PART_PARAMETER, RONDO_PART_COMPANION, RONDO_PART_COMPANION,
                                     RONDO_PART_COMPANION, RONDO_PART_GRADIENT};
  const rondo_joined_kernel kernel = {&adaptive_code,          inputs,  POINTERS_EACH,     GRADIENT,
                                      RONDO_ELEMENTWISE_GRAIN, offsets, RONDO_FEWER_JOINED};
  const adaptive_numbers numbers = numbers_of(operations[0]);
  return rondo_emit_joined(emitter, &kernel, operations, count,
                           RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(numbers), RONDO_INPUT(RATE), RONDO_INPUT(CONTROL),
                                          RONDO_INPUT(MOMENTUM)));
}

static const rondo_join adaptive_join = {.max = RONDO_FEWER_JOINED,
                                         .shared = 1u << RATE | 1u << CONTROL | 1u << MOMENTUM,
                                         .of_parts = true,
                                         .emit = emit_adaptive};

#define ADAPTIVE_ROW                                                                                                \
  .inputs = {"parameter", "gradient", "rate", "control", "momentum", "squares", "mean", "velocity"}, .required = 3, \
  .updates = 1u << PARAMETER | 1u << SQUARE | 1u << MEAN | 1u << VELOCITY, .infer = infer_adaptive,                 \
  .join = &adaptive_join

RONDO_OPERATOR(adagrad, ADAPTIVE_ROW);
RONDO_OPERATOR(rmsprop, ADAPTIVE_ROW);

/* Rows ------------------------------------------------------------------------------------------------------------- */

enum { ROWS_VALUES = 9, ROWS_POINTERS }; /* arguments: the values of the gradient, and TO_P and TO_S */

static void adagrad_rows_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_slots *slots = args[0];
  const int64_t *keys = RONDO_ARG(const int64_t *, 8);
  const float *values = RONDO_ARG(const float *, ROWS_VALUES);
  void *const none = NULL;
  void *const pointers[] = {args[ROWS_POINTERS], args[ROWS_POINTERS + 1], (void *)&none, (void *)&none};
  adaptive_rates rates;
  if (!read_rates(blocks, args + 1, &rates)) return;
  RONDO_EACH_ROW(slot, row, blocks, slots, keys) {
    rondo_prefetch_row(slots, keys, slot, RONDO_ARG(const float *, ROWS_POINTERS));
    rondo_prefetch_row(slots, keys, slot, RONDO_ARG(const float *, ROWS_POINTERS + 1));
    RONDO_EACH_CHUNK(at, count, 0, slots->columns)
      update_chunk(pointers, values + slot * slots->columns + at, row * slots->columns + at, count, args[4], &rates);
  }
}

RONDO_UNTYPED_KERNEL(adagrad_rows, adaptive, RONDO_SCALAR(rondo_slots), SHARED, RONDO_READS, RONDO_READS, RONDO_UPDATES,
                     RONDO_UPDATES);

static rondo_status infer_adagrad_rows(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  (void)results;
  return rondo_require_rows(program, operation, SQUARE, SQUARE);
}

static rondo_status emit_adagrad_rows(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_slots slots = rondo_slots_of(emitter, operation);
  const adaptive_numbers numbers = numbers_of(operation);
  return rondo_emit_operands(emitter, operation, &adagrad_rows_code,
                             rondo_slot_grid(emitter, slots.count, slots.columns),
                             RONDO_OPERANDS(RONDO_OBJECT(slots), RONDO_GATE, RONDO_OBJECT(numbers), RONDO_INPUT(RATE),
                                            RONDO_INPUT(CONTROL), RONDO_INPUT(MOMENTUM), RONDO_INPUT(RONDO_ROWS_KEYS),
                                            RONDO_INPUT(GRADIENT), RONDO_INPUT(PARAMETER), RONDO_INPUT(SQUARE)));
}

RONDO_OPERATOR(adagrad_rows, .inputs = {"parameter", "gradient", "rate", "control", "-", "squares", "-", "keys"},
               .required = 3, .updates = 1u << PARAMETER | 1u << SQUARE, .infer = infer_adagrad_rows,
               .emit = emit_adagrad_rows);
