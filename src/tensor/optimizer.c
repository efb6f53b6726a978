/* SPDX-License-Identifier: MIT
 * Optimizers: the gradients of the loss for every F32 state that it depends on, and one update operator for each.
 * All or nothing: a failure rolls the program back.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned.h"
#include "tensor/operators.h"
#include "tensor/program_internal.h"
#include "tensor/shape.h"

/* The states to train, and their gradients. */
typedef struct trainees {
  rondo_program *program;
  const char *call;
  uint32_t *states;
  uint32_t *gradients;
  size_t count;
  size_t room;
} trainees;

/* Adds the update of one state. */
typedef rondo_status (*add_update)(const trainees *t, uint32_t state, uint32_t gradient, const void *user);

/* Collecting ------------------------------------------------------------------------------------------------------- */

static rondo_status collect(trainees *t, uint32_t loss) {
  const rondo_program *program = t->program;
  bool *needed = NULL;
  t->room = program->values.count;
  RONDO_TRY(rondo_allocate_items(&program->allocator, t->room, sizeof *needed, &needed));
  rondo_status status = rondo_allocate_items(&program->allocator, t->room, sizeof *t->states, &t->states);
  if (status == RONDO_OK) {
    status = rondo_allocate_items(&program->allocator, t->room, sizeof *t->gradients, &t->gradients);
  }
  if (status == RONDO_OK) rondo_program_mark_sources(program, loss, needed);
  for (uint32_t i = 0; status == RONDO_OK && i < t->room; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (needed[i] && value->kind == RONDO_VALUE_STATE && value->shape.type == RONDO_F32) t->states[t->count++] = i;
  }
  rondo_release(&program->allocator, needed, t->room, sizeof *needed);
  if (status == RONDO_OK && t->count == 0) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                      "%s: the loss of program '%s' depends on no f32 state, so there is nothing to train", t->call,
                      program->name);
  }
  return status;
}

static rondo_status add_updates(trainees *t, uint32_t loss, add_update add, const void *user) {
  RONDO_TRY(collect(t, loss));
  RONDO_TRY(rondo_program_differentiate(t->program, loss, t->states, t->count, t->gradients));
  for (size_t i = 0; i < t->count; i++) RONDO_TRY(add(t, t->states[i], t->gradients[i], user));
  for (size_t i = 0; i < t->count; i++) t->program->values.items[t->states[i]].trained = true;
  t->program->has_optimizer = true;
  return RONDO_OK;
}

/* `mark` is from before anything was added. */
static rondo_status train(trainees *t, uint32_t loss, add_update add, const void *user, rondo_program_mark mark) {
  const rondo_status status = add_updates(t, loss, add, user);
  rondo_release(&t->program->allocator, t->states, t->room, sizeof *t->states);
  rondo_release(&t->program->allocator, t->gradients, t->room, sizeof *t->gradients);
  if (status != RONDO_OK) rondo_program_roll_back(t->program, mark);
  return status;
}

/* A state beside the one called `name`: "<name><suffix>" of the same shape. */
static rondo_status declare_beside(rondo_program *program, uint32_t state, const char *suffix, uint32_t *out_index) {
  const rondo_shape shape = *rondo_program_shape(program, state);
  const char *base = program->values.items[state].name;
  const size_t bytes = strlen(base) + strlen(suffix) + 1;
  char *name = NULL;
  RONDO_TRY(rondo_allocate_items(&program->allocator, bytes, 1, &name));
  (void)snprintf(name, bytes, "%s%s", base, suffix);
  const rondo_status status = rondo_program_declare(program, RONDO_VALUE_STATE, name, &shape, 0, out_index);
  rondo_release(&program->allocator, name, bytes, 1);
  return status;
}

static rondo_status resolve_cell(const rondo_program *program, rondo_value value, const char *call, const char *what,
                                 uint32_t *out_index) {
  RONDO_TRY(rondo_program_resolve(program, value, call, what, out_index));
  if (program->values.items[*out_index].kind == RONDO_VALUE_CELL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: %s is not a cell; make one by rondo_program_cell",
                    call, what);
}

/* What both fronts check. */
static rondo_status check_call(const rondo_program *program, const void *options, rondo_value loss, const char *call,
                               uint32_t *out_loss) {
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "options", options));
  if (program->has_optimizer) {
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE, "%s: program '%s' has an optimizer already", call,
                      program->name);
  }
  return rondo_program_resolve(program, loss, call, "loss", out_loss);
}

/* SGD -------------------------------------------------------------------------------------------------------------- */

typedef struct sgd_cells {
  uint32_t rate, momentum; /* momentum: RONDO_NO_VALUE for none */
} sgd_cells;

static rondo_status add_sgd(const trainees *t, uint32_t state, uint32_t gradient, const void *user) {
  const sgd_cells *cells = user;
  uint32_t inputs[] = {state, gradient, cells->rate, RONDO_NO_VALUE, cells->momentum};
  if (cells->momentum == RONDO_NO_VALUE) {
    return rondo_program_add(t->program, &rondo_operator_sgd, inputs, 3, NULL, NULL);
  }
  RONDO_TRY(declare_beside(t->program, state, ".momentum", &inputs[3]));
  return rondo_program_add(t->program, &rondo_operator_sgd_momentum, inputs, 5, NULL, NULL);
}

rondo_status rondo_program_sgd(rondo_program *program, rondo_value loss, const rondo_sgd_options *options) {
  static const char call[] = "rondo_program_sgd";
  uint32_t index = 0;
  RONDO_TRY(check_call(program, options, loss, call, &index));
  rondo_sgd_options given;
  RONDO_TRY(rondo_versioned_read("rondo_sgd_options", options, &given, sizeof given));
  sgd_cells cells = {.momentum = RONDO_NO_VALUE};
  RONDO_TRY(resolve_cell(program, given.learning_rate, call, "learning_rate", &cells.rate));
  if (given.momentum.id != 0) RONDO_TRY(resolve_cell(program, given.momentum, call, "momentum", &cells.momentum));
  trainees t = {.program = program, .call = call};
  return train(&t, index, add_sgd, &cells, rondo_program_get_mark(program));
}

/* Adam ------------------------------------------------------------------------------------------------------------- */

typedef struct adam_setup {
  uint32_t rate, factors;
  rondo_attributes attributes; /* numbers: beta1, beta2, epsilon */
} adam_setup;

static rondo_status add_adam(const trainees *t, uint32_t state, uint32_t gradient, const void *user) {
  const adam_setup *setup = user;
  uint32_t inputs[] = {state, 0, 0, gradient, setup->rate, setup->factors};
  RONDO_TRY(declare_beside(t->program, state, ".m", &inputs[1]));
  RONDO_TRY(declare_beside(t->program, state, ".v", &inputs[2]));
  return rondo_program_add(t->program, &rondo_operator_adam, inputs, 6, &setup->attributes, NULL);
}

static rondo_status check_numbers(const rondo_adam_options *given, rondo_attributes *out) {
  const float beta1 = given->beta1 == 0 ? 0.9f : given->beta1;
  const float beta2 = given->beta2 == 0 ? 0.999f : given->beta2;
  const float epsilon = given->epsilon == 0 ? 1e-8f : given->epsilon;
  if (!(beta1 > 0 && beta1 < 1 && beta2 > 0 && beta2 < 1 && epsilon > 0)) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_program_adam: beta1 %g and beta2 %g must lie between 0 and 1, epsilon %g above 0",
                      (double)beta1, (double)beta2, (double)epsilon);
  }
  *out = (rondo_attributes){.numbers = {beta1, beta2, epsilon}};
  return RONDO_OK;
}

static rondo_status add_step(rondo_program *program, adam_setup *setup) {
  const rondo_shape scalar = rondo_shape_scalar(RONDO_I32);
  uint32_t step = 0;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "adam.step", &scalar, 0, &step));
  return rondo_program_add(program, &rondo_operator_adam_step, &step, 1, &setup->attributes, &setup->factors);
}

rondo_status rondo_program_adam(rondo_program *program, rondo_value loss, const rondo_adam_options *options) {
  static const char call[] = "rondo_program_adam";
  uint32_t index = 0;
  RONDO_TRY(check_call(program, options, loss, call, &index));
  rondo_adam_options given;
  adam_setup setup = {0};
  RONDO_TRY(rondo_versioned_read("rondo_adam_options", options, &given, sizeof given));
  RONDO_TRY(resolve_cell(program, given.learning_rate, call, "learning_rate", &setup.rate));
  RONDO_TRY(check_numbers(&given, &setup.attributes));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_step(program, &setup);
  if (status != RONDO_OK) {
    rondo_program_roll_back(program, mark);
    return status;
  }
  trainees t = {.program = program, .call = call};
  return train(&t, index, add_adam, &setup, mark);
}
