/* SPDX-License-Identifier: MIT
 * A model that is a function: its inputs, outputs and constants are what the user says, as nothing tells them before
 * the body runs.
 */
#include <string.h>

#include "exec/api_check.h"
#include "session/function_model.h"
#include "session/session_internal.h"

static const char call[] = "rondo_session_add_model";

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

static rondo_status add_value(rondo_session_model *model, const rondo_row_value *given, bool is_input) {
  const rondo_allocator *allocator = &model->session->allocator;
  rondo_session_value value = {.name = NULL};
  RONDO_TRY(write_value(given, &value));
  RONDO_TRY(rondo_allocate_text(allocator, given->name, &value.name));
  const rondo_status status = is_input ? rondo_array_push(allocator, &model->inputs, &value)
                                       : rondo_array_push(allocator, &model->outputs, &value);
  if (status != RONDO_OK) rondo_release_text(allocator, value.name);
  return status;
}

rondo_status rondo_function_model_fill(rondo_session_model *model, const rondo_model_options *o) {
  const rondo_allocator *allocator = &model->session->allocator;
  for (size_t i = 0; i < o->input_count; i++) RONDO_TRY(add_value(model, &o->inputs[i], true));
  for (size_t i = 0; i < o->output_count; i++) RONDO_TRY(add_value(model, &o->outputs[i], false));
  RONDO_TRY(rondo_array_reserve(allocator, &model->constants, o->constant_count));
  for (size_t i = 0; i < o->constant_count; i++) {
    model->constants.items[i] = o->constants[i];
    model->constants.items[i].name = NULL;
  }
  model->constants.count = o->constant_count;
  return RONDO_OK;
}
