/* SPDX-License-Identifier: MIT
 * The optimizers: their options and what their updates read.
 */
#include <rondo/program.h>

#include <float.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/optimizer.h"
#include "tensor/program/program.h"

/* The checks that all public functions share. */
static rondo_status check_call(const rondo_program *program, const void *options, const char *call) {
  RONDO_TRY(rondo_require(call, "program", program));
  return rondo_require(call, "options", options);
}

/* Sets the extra value of all updates, if the caller gives one. */
static rondo_status read_momentum(const rondo_program *program, rondo_value momentum, rondo_optimizer *by) {
  by->extra = RONDO_NO_VALUE;
  return momentum.id == 0 ? RONDO_OK : rondo_optimizer_scalar(program, momentum, by->call, "momentum", &by->extra);
}

static float or_else(float number, float none) { return number == 0 ? none : number; }

rondo_status rondo_program_sgd(rondo_program *program, rondo_value loss, const rondo_sgd_options *options) {
  rondo_optimizer by = {.call = "rondo_program_sgd", .step = "sgd.step"};
  rondo_sgd_options given;
  RONDO_TRY(check_call(program, options, by.call));
  RONDO_TRY(rondo_versioned_read("rondo_sgd_options", options, &given, sizeof given));
  RONDO_TRY(read_momentum(program, given.momentum, &by));
  if (given.momentum.id == 0) by.sparse_row = &rondo_operator_sgd_rows;
  by.row = given.momentum.id == 0 ? &rondo_operator_sgd : &rondo_operator_sgd_momentum;
  if (given.momentum.id != 0) by.companions[0] = ".momentum";
  return rondo_optimizer_add(program, loss, &RONDO_TRAINING_OPTIONS(given), &by);
}

/* Adam ------------------------------------------------------------------------------------------------------------- */

enum { ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, ADAM_DECAY }; /* numbers */

static rondo_status count_adam(rondo_program *program, uint32_t step, uint32_t control, rondo_optimizer *by) {
  const uint32_t inputs[] = {step, control};
  return rondo_program_add(program, &rondo_operator_adam_step, inputs, 2, &by->attributes, &by->extra);
}

rondo_status rondo_program_adam(rondo_program *program, rondo_value loss, const rondo_adam_options *options) {
  rondo_optimizer by = {.call = "rondo_program_adam",
                        .row = &rondo_operator_adam,
                        .sparse_row = &rondo_operator_adam_rows,
                        .companions = {".m", ".v"},
                        .decay = ADAM_DECAY,
                        .step = "adam.step",
                        .count = count_adam};
  rondo_adam_options given;
  RONDO_TRY(check_call(program, options, by.call));
  RONDO_TRY(rondo_versioned_read("rondo_adam_options", options, &given, sizeof given));
  const float beta1 = or_else(given.beta1, 0.9f), beta2 = or_else(given.beta2, 0.999f);
  const float epsilon = or_else(given.epsilon, 1e-8f);
  if (!(beta1 > 0 && beta1 < 1 && beta2 > 0 && beta2 < 1 && epsilon > 0)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: beta1 %g and beta2 %g must be between 0 and 1, epsilon %g above 0", by.call, (double)beta1,
                      (double)beta2, (double)epsilon);
  }
  by.attributes = (rondo_attributes){.numbers = {[ADAM_BETA1] = beta1, [ADAM_BETA2] = beta2, [ADAM_EPSILON] = epsilon}};
  return rondo_optimizer_add(program, loss, &RONDO_TRAINING_OPTIONS(given), &by);
}

/* Adagrad and RMSprop ---------------------------------------------------------------------------------------------- */

enum { ADAPTIVE_KEEP, ADAPTIVE_EPSILON, ADAPTIVE_DECAY }; /* numbers */

static rondo_status fail_number(const char *call, const char *name, float number, const char *range) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %s is %g: give %s", call, name,
                    (double)number, range);
}

rondo_status rondo_program_adagrad(rondo_program *program, rondo_value loss, const rondo_adagrad_options *options) {
  rondo_optimizer by = {.call = "rondo_program_adagrad",
                        .row = &rondo_operator_adagrad,
                        .sparse_row = &rondo_operator_adagrad_rows,
                        .companions = {".sum"},
                        .extra = RONDO_NO_VALUE,
                        .decay = ADAPTIVE_DECAY,
                        .step = "adagrad.step"};
  rondo_adagrad_options given;
  RONDO_TRY(check_call(program, options, by.call));
  RONDO_TRY(rondo_versioned_read("rondo_adagrad_options", options, &given, sizeof given));
  const float epsilon = or_else(given.epsilon, 1e-10f);
  if (!(epsilon > 0)) return fail_number(by.call, "epsilon", epsilon, "a number above 0");
  if (!(given.rate_decay >= 0 && given.rate_decay <= FLT_MAX))
    return fail_number(by.call, "rate_decay", given.rate_decay, "at least 0");
  if (!(given.initial_sum >= 0 && given.initial_sum <= FLT_MAX))
    return fail_number(by.call, "initial_sum", given.initial_sum, "at least 0");
  by.attributes.numbers[ADAPTIVE_KEEP] = 1;
  by.attributes.numbers[ADAPTIVE_EPSILON] = epsilon;
  by.rate_decay = given.rate_decay;
  by.initial = given.initial_sum;
  return rondo_optimizer_add(program, loss, &RONDO_TRAINING_OPTIONS(given), &by);
}

rondo_status rondo_program_rmsprop(rondo_program *program, rondo_value loss, const rondo_rmsprop_options *options) {
  rondo_optimizer by = {.call = "rondo_program_rmsprop",
                        .row = &rondo_operator_rmsprop,
                        .companions = {".square"},
                        .decay = ADAPTIVE_DECAY,
                        .step = "rmsprop.step"};
  rondo_rmsprop_options given;
  RONDO_TRY(check_call(program, options, by.call));
  RONDO_TRY(rondo_versioned_read("rondo_rmsprop_options", options, &given, sizeof given));
  const float alpha = or_else(given.alpha, 0.99f), epsilon = or_else(given.epsilon, 1e-8f);
  if (!(alpha > 0 && alpha < 1)) return fail_number(by.call, "alpha", alpha, "a number between 0 and 1");
  if (!(epsilon > 0)) return fail_number(by.call, "epsilon", epsilon, "a number above 0");
  RONDO_TRY(read_momentum(program, given.momentum, &by));
  if (given.centered) by.companions[1] = ".mean";
  if (given.momentum.id != 0) by.companions[2] = ".momentum";
  by.attributes.numbers[ADAPTIVE_KEEP] = alpha;
  by.attributes.numbers[ADAPTIVE_EPSILON] = epsilon;
  return rondo_optimizer_add(program, loss, &RONDO_TRAINING_OPTIONS(given), &by);
}
