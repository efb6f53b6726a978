/* SPDX-License-Identifier: MIT
 * Finds the inputs and outputs of a model, and the bytes of one row of each. For a program, builds it for two numbers
 * of rows and compares the two: the first dimension must be the rows times a constant, and states must be equal. For a
 * function, the user declares them, because they are unknown until the body runs. Called while the model is made. Uses
 * no device, and takes no lock except in rondo_model_make_program.
 */
#include <string.h>

#include "exec/api_check.h"
#include "session/model_values.h"
#include "session/session_model.h"
#include "tensor/program/program.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

static const char call[] = "rondo_session_add_model";

/* Adds a value to the model's inputs or outputs, which own its name from then on. */
static rondo_status push_value(rondo_session_model *model, const char *name, rondo_session_value value, bool is_input) {
  const rondo_allocator *allocator = &model->session->allocator;
  RONDO_TRY(rondo_allocate_text(allocator, name, &value.name));
  const rondo_status status = is_input ? rondo_array_push(allocator, &model->inputs, &value)
                                       : rondo_array_push(allocator, &model->outputs, &value);
  if (status != RONDO_OK) rondo_release_text(allocator, value.name);
  return status;
}

rondo_status rondo_model_check_rows(const char *called, const rondo_session_model *model, size_t rows) {
  size_t bytes;
  for (size_t i = 0; i < model->inputs.count; i++)
    if (!rondo_checked_multiply(model->inputs.items[i].row_bytes, rows, &bytes))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "%s: %zu rows of '%s' do not fit the address space: give fewer rows", called, rows,
                        model->inputs.items[i].name);
  return RONDO_OK;
}

/* Programs --------------------------------------------------------------------------------------------------------- */

enum { FEW_ROWS = 2, MORE_ROWS = 3 };

static rondo_status refuse_shape(const rondo_session_model *model, const char *what, const char *name,
                                 const rondo_shape *few, const rondo_shape *more, const char *rule) {
  char a[RONDO_SHAPE_TEXT], b[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: %s '%s' of model '%s' is %s for %d rows and %s for %d: %s", what, name,
                    model->name, rondo_shape_text(a, few), FEW_ROWS, rondo_shape_text(b, more), MORE_ROWS, rule);
}

static bool grows_by_rows(const rondo_shape *few, const rondo_shape *more) {
  if (few->type != more->type || few->rank != more->rank || few->rank == 0) return false;
  if (few->dims[0] % FEW_ROWS != 0 || more->dims[0] % MORE_ROWS != 0) return false;
  if (few->dims[0] / FEW_ROWS != more->dims[0] / MORE_ROWS) return false;
  return few->rank == 1 || memcmp(few->dims + 1, more->dims + 1, (few->rank - 1) * sizeof *few->dims) == 0;
}

static rondo_status add_value(rondo_session_model *model, const char *what, const char *name, const rondo_shape *few,
                              const rondo_shape *more, bool is_input) {
  if (!grows_by_rows(few, more))
    return refuse_shape(model, what, name, few, more,
                        "the first dimension must be the rows times a constant, and all else the same");
  const rondo_session_value value = {.type = few->type, .row_bytes = rondo_shape_bytes(few) / FEW_ROWS};
  return push_value(model, name, value, is_input);
}

static rondo_status refuse_other_values(const rondo_session_model *model, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: model '%s' has different %s for %d rows than for %d", model->name, what,
                    FEW_ROWS, MORE_ROWS);
}

static rondo_status refuse_other_name(const rondo_session_model *model, const char *few, const char *more) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: '%s' of model '%s' for %d rows is '%s' for %d rows: create "
                    "the same values in the same order",
                    few, model->name, FEW_ROWS, more == NULL ? "" : more, MORE_ROWS);
}

static rondo_status compare_values(rondo_session_model *model, const rondo_program *few, const rondo_program *more) {
  if (few->values.count != more->values.count) return refuse_other_values(model, "values");
  for (uint32_t i = 0; i < few->values.count; i++) {
    const rondo_program_value *a = &few->values.items[i], *b = &more->values.items[i];
    if (a->kind != b->kind) return refuse_other_values(model, "values");
    if (a->name != NULL && (b->name == NULL || strcmp(a->name, b->name) != 0))
      return refuse_other_name(model, a->name, b->name);
    if (a->kind == RONDO_VALUE_INPUT) RONDO_TRY(add_value(model, "input", a->name, &a->shape, &b->shape, true));
    if (a->kind == RONDO_VALUE_STATE && (a->shape.type != b->shape.type || !rondo_shape_same(&a->shape, &b->shape)))
      return refuse_shape(model, "state", a->name, &a->shape, &b->shape, "states are shared by all numbers of rows");
  }
  return RONDO_OK;
}

static rondo_status compare_outputs(rondo_session_model *model, const rondo_program *few, const rondo_program *more) {
  if (few->outputs.count != more->outputs.count) return refuse_other_values(model, "outputs");
  for (size_t i = 0; i < few->outputs.count; i++) {
    const rondo_named_output *a = &few->outputs.items[i], *b = &more->outputs.items[i];
    if (strcmp(a->name, b->name) != 0) return refuse_other_name(model, a->name, b->name);
    RONDO_TRY(add_value(model, "output", a->name, rondo_program_shape(few, a->value),
                        rondo_program_shape(more, b->value), false));
  }
  return RONDO_OK;
}

static rondo_status check_counts(const rondo_session_model *model) {
  if (model->inputs.count == 0 || model->outputs.count == 0)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
        "rondo_session_add_model: model '%s' has %zu inputs and %zu outputs: it needs at least one of each",
        model->name, model->inputs.count, model->outputs.count);
  if (model->inputs.count <= RONDO_SESSION_MAX_VALUES && model->outputs.count <= RONDO_SESSION_MAX_VALUES)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "rondo_session_add_model: model '%s' has %zu inputs and %zu outputs: use at most %d of each",
                    model->name, model->inputs.count, model->outputs.count, RONDO_SESSION_MAX_VALUES);
}

rondo_status rondo_model_probe(rondo_session_model *model) {
  rondo_program *few = NULL, *more = NULL;
  rondo_status status = rondo_model_make_program(model, FEW_ROWS, &few);
  if (status == RONDO_OK) status = rondo_model_make_program(model, MORE_ROWS, &more);
  if (status == RONDO_OK) status = compare_values(model, few, more);
  if (status == RONDO_OK) status = compare_outputs(model, few, more);
  rondo_program_destroy(few);
  rondo_program_destroy(more);
  return status == RONDO_OK ? check_counts(model) : status;
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static rondo_status check_values(const char *what, const rondo_row_value *values, size_t count) {
  if (count == 0 || count > RONDO_SESSION_MAX_VALUES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: a function of %zu %s: give 1 to %d (rondo_model_options.%s)", call, count, what,
                      RONDO_SESSION_MAX_VALUES, what);
  RONDO_TRY(rondo_require(call, what, values));
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(rondo_require(call, "a value's name", values[i].name));
    if (values[i].rank >= RONDO_TREE_MAX_RANK || rondo_type_bytes(values[i].type) == 0)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
          "%s: '%s' of the %s has rows of rank %u and type %d: give a rank of at most %d and a type of rondo_type",
          call, values[i].name, what, values[i].rank, (int)values[i].type, RONDO_TREE_MAX_RANK - 1);
  }
  return RONDO_OK;
}

rondo_status rondo_function_model_check(const rondo_model_options *o) {
  if (o->build != NULL || o->weights != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: a model is a program, with `build` and `weights`, or a function, with `body`, not both",
                      call);
  RONDO_TRY(check_values("inputs", o->inputs, o->input_count));
  RONDO_TRY(check_values("outputs", o->outputs, o->output_count));
  if (o->constant_count > 0) RONDO_TRY(rondo_require(call, "constants", o->constants));
  for (size_t i = 0; i < o->constant_count; i++) {
    RONDO_TRY(rondo_require(call, "a constant's address", o->constants[i].address));
    if (o->constants[i].bytes == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                        "%s: constant %zu at %p has 0 bytes: give its size, or leave it out", call, i,
                        o->constants[i].address);
  }
  return RONDO_OK;
}

static rondo_status fail_size(const rondo_row_value *given) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: a row of '%s' has no bytes, or more than fit the address space: give other sizes", call,
                    given->name);
}

static rondo_status write_value(const rondo_row_value *given, rondo_session_value *out) {
  out->type = given->type;
  out->rank = given->rank;
  out->row_bytes = rondo_type_bytes(given->type);
  for (uint32_t i = 0; i < given->rank; i++) {
    out->shape[i] = given->shape[i];
    if (!rondo_checked_multiply(out->row_bytes, given->shape[i], &out->row_bytes)) return fail_size(given);
  }
  return out->row_bytes == 0 ? fail_size(given) : RONDO_OK;
}

static rondo_status declare_value(rondo_session_model *model, const rondo_row_value *given, bool is_input) {
  rondo_session_value value = {.name = NULL};
  RONDO_TRY(write_value(given, &value));
  return push_value(model, given->name, value, is_input);
}

rondo_status rondo_function_model_fill(rondo_session_model *model, const rondo_model_options *o) {
  const rondo_allocator *allocator = &model->session->allocator;
  for (size_t i = 0; i < o->input_count; i++) RONDO_TRY(declare_value(model, &o->inputs[i], true));
  for (size_t i = 0; i < o->output_count; i++) RONDO_TRY(declare_value(model, &o->outputs[i], false));
  RONDO_TRY(rondo_array_reserve(allocator, &model->constants, o->constant_count));
  for (size_t i = 0; i < o->constant_count; i++) {
    model->constants.items[i] = o->constants[i];
    model->constants.items[i].name = NULL;
  }
  model->constants.count = o->constant_count;
  return RONDO_OK;
}
