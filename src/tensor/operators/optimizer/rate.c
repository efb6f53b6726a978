/* SPDX-License-Identifier: MIT
 * learning_rate: the rate of a schedule (rondo_rate_options), computed from the number of updates before the run, which
 * is a state. count_update counts updates if the optimizer does not, or runs; the size of its attributes is the count
 * that becomes 0 (0: none does). Threads: as tensor/program/operator.h says.
 */
#include "tensor/program/optimizer_parts.h"

#include <float.h>
#include <math.h>

#include "tensor/operators/common/operator_tools.h"

enum { RATE, LAST, FACTOR };                /* numbers */
enum { KIND, WARM_UP, PERIOD, SIZE_COUNT }; /* sizes */
enum { RESTARTS };                          /* flags */

/* A scalar argument of the kernel; without padding. */
typedef struct rate_numbers {
  double rate, last, factor;
  uint32_t kind, warm_up, period, restarts;
} rate_numbers;

/* Rates ------------------------------------------------------------------------------------------------------------ */

static double cosine(const rate_numbers *n, uint64_t t) {
  const double pi = 3.14159265358979323846;
  const uint64_t at = n->restarts != 0 ? t % n->period : t;
  if (at >= n->period) return n->last;
  return n->last + (n->rate - n->last) * (1 + cos(pi * (double)at / n->period)) / 2;
}

static double rate_at(const rate_numbers *n, uint64_t updates) {
  const double next = (double)updates + 1;
  if (updates < n->warm_up) return n->rate * next / n->warm_up;
  const uint64_t t = updates - n->warm_up;
  switch ((rondo_rate_kind)n->kind) {
    case RONDO_RATE_LINEAR:
      return t >= n->period ? n->last : n->rate + (n->last - n->rate) * ((double)t / n->period);
    case RONDO_RATE_COSINE:
      return cosine(n, t);
    case RONDO_RATE_STEPS:
      return n->rate * pow(n->factor, (double)(t / n->period));
    case RONDO_RATE_INVERSE_SQRT:
      return n->rate * sqrt((n->warm_up == 0 ? 1 : n->warm_up) / next);
    case RONDO_RATE_CONSTANT:
      break;
  }
  return n->rate;
}

static rate_numbers numbers_of(const rondo_attributes *a) {
  return (rate_numbers){.rate = (double)a->numbers[RATE],
                        .last = (double)a->numbers[LAST],
                        .factor = (double)a->numbers[FACTOR],
                        .kind = (uint32_t)a->sizes[KIND],
                        .warm_up = (uint32_t)a->sizes[WARM_UP],
                        .period = (uint32_t)a->sizes[PERIOD],
                        .restarts = a->flags[RESTARTS]};
}

/* Options ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_number(const char *call, const char *name, float number, const char *range) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: schedule: %s %g must be %s", call, name,
                    (double)number, range);
}

static rondo_status check_numbers(const rondo_rate_options *o, const char *call) {
  const bool falls = o->kind == RONDO_RATE_LINEAR || o->kind == RONDO_RATE_COSINE;
  if (!(o->rate > 0 && o->rate <= FLT_MAX)) return fail_number(call, "rate", o->rate, "a number above 0");
  if (!(o->last >= 0 && o->last <= o->rate)) return fail_number(call, "last", o->last, "from 0 to the rate");
  if (!(o->factor > 0 && o->factor <= 1)) return fail_number(call, "factor", o->factor, "above 0, at most 1");
  if (o->period == 0 && (falls || o->kind == RONDO_RATE_STEPS)) return fail_number(call, "period", 0, "at least 1");
  return RONDO_OK;
}

rondo_status rondo_rate_read(const rondo_rate_options *options, const char *call, rondo_rate_options *out) {
  RONDO_TRY(rondo_require(call, "schedule", options));
  RONDO_TRY(rondo_versioned_read("rondo_rate_options", options, out, sizeof *out));
  if ((uint32_t)out->kind > RONDO_RATE_INVERSE_SQRT) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: schedule: kind %d does not exist: use a RONDO_RATE_ name", call, (int)out->kind);
  }
  if (out->factor == 0) out->factor = 0.1f;
  return check_numbers(out, call);
}

rondo_attributes rondo_rate_attributes(const rondo_rate_options *options) {
  return (rondo_attributes){.numbers = {options->rate, options->last, options->factor},
                            .sizes = {(size_t)options->kind, options->warm_up, options->period},
                            .size_count = SIZE_COUNT,
                            .flags = {options->restarts}};
}

rondo_status rondo_rate_at(const rondo_rate_options *options, uint64_t updates, float *out_rate) {
  static const char call[] = "rondo_rate_at";
  rondo_rate_options known;
  RONDO_TRY(rondo_require(call, "out_rate", out_rate));
  *out_rate = 0;
  RONDO_TRY(rondo_rate_read(options, call, &known));
  const rondo_attributes attributes = rondo_rate_attributes(&known);
  const rate_numbers numbers = numbers_of(&attributes);
  *out_rate = (float)rate_at(&numbers, updates);
  return RONDO_OK;
}

/* learning_rate ---------------------------------------------------------------------------------------------------- */

static void learning_rate_cpu(rondo_blocks blocks, void *const *args) {
  const int32_t *updates = RONDO_ARG(const int32_t *, 1);
  float *rate = RONDO_ARG(float *, 2);
  (void)blocks; /* one */
  *rate = (float)rate_at(args[0], *updates < 0 ? 0 : (uint64_t)*updates);
}

RONDO_UNTYPED_KERNEL(learning_rate, rate, RONDO_SCALAR(rate_numbers), RONDO_READS, RONDO_WRITES);

static rondo_status infer_learning_rate(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  results[0] = rondo_shape_scalar(RONDO_F32);
  return rondo_require_input(program, operation, 0, RONDO_I32, 0);
}

static rondo_status emit_learning_rate(rondo_emitter *emitter, const rondo_operation *operation) {
  const rate_numbers numbers = numbers_of(&operation->attributes);
  return rondo_emit_operands(emitter, operation, &learning_rate_code, (rondo_grid){.x = 1},
                             RONDO_OPERANDS(RONDO_OBJECT(numbers), RONDO_INPUT(0), RONDO_RESULT(0)));
}

RONDO_OPERATOR(learning_rate, .inputs = {"updates"}, .required = 1, .result_count = 1, .infer = infer_learning_rate,
               .emit = emit_learning_rate);

/* count_update ----------------------------------------------------------------------------------------------------- */

enum { UPDATES, CONTROL }; /* inputs; the optional control is that of gradient_control.c */

static void count_update_cpu(rondo_blocks blocks, void *const *args) {
  const int32_t most = RONDO_ARG(int32_t, 3);
  int32_t *updates = RONDO_ARG(int32_t *, 4);
  const bool is_counted = rondo_may_update(blocks, args) && rondo_control_applies(RONDO_ARG(const float *, 5));
  if (is_counted && *updates < INT32_MAX) *updates = *updates + 1 == most ? 0 : *updates + 1;
}

RONDO_UNTYPED_KERNEL(count_update, rate, RONDO_GATE_PARAMETERS, RONDO_SCALAR(int32_t), RONDO_UPDATES, RONDO_READS);

static rondo_status infer_count_update(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  (void)results;
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  return rondo_require_input(program, operation, UPDATES, RONDO_I32, 0);
}

static rondo_status emit_count_update(rondo_emitter *emitter, const rondo_operation *operation) {
  const int32_t most = (int32_t)operation->attributes.sizes[0];
  return rondo_emit_operands(
      emitter, operation, &count_update_code, (rondo_grid){.x = 1},
      RONDO_OPERANDS(RONDO_GATE, RONDO_OBJECT(most), RONDO_INPUT(UPDATES), RONDO_INPUT(CONTROL)));
}

const rondo_operator rondo_operator_count_update = {.name = "learning_rate_step",
                                                    .inputs = {"updates", "control"},
                                                    .required = 1,
                                                    .updates = 1u << UPDATES,
                                                    .infer = infer_count_update,
                                                    .emit = emit_count_update};
