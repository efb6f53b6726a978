/* SPDX-License-Identifier: MIT
 * Reverse-mode differentiation: walks the operations backwards from the loss and adds, for each, the operators that
 * turn gradients of results into gradients of inputs. A value that is used more than once gets the sum; operators that
 * read a part of it add theirs to the sum so far (rondo_operator.adds_gradients). Values that are computed alike share
 * one sum, which passes through the first of their operations. So a loop that reshapes or transposes a value in each
 * step, and reads a part of it, costs no more than one that does so once. A value whose gradient is requested has a sum
 * of its own. Only operations between the requested values and the loss are walked, so an operator without a gradient
 * matters only there.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "tensor/program/equal_operations.h"
#include "tensor/program/gradients.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/program_check.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

/* For the values that the program had before gradients were added. Each array is indexed by value. */
typedef struct walk {
  rondo_program *program;
  rondo_scratch scratch;
  size_t count;
  bool *depends;       /* a requested value, or computed from one */
  uint32_t *owners;    /* the first value that is computed in the same way */
  uint32_t *gradients; /* of owners only. RONDO_NO_VALUE: zeros */
  rondo_repeats repeats;
} walk;

static bool any_input_depends(const walk *w, const rondo_operation *operation) {
  if (operation->row->stops_gradients) return false;
  RONDO_EACH_INPUT(k, operation) {
    if (w->depends[operation->inputs[k]]) return true;
  }
  return false;
}

/* Called before the operation is marked, so that only requested results have a mark. */
static uint32_t find_alike(walk *w, uint32_t number) {
  const rondo_operation *operation = &w->program->operations.items[number];
  if (rondo_operation_makes_any(operation, w->depends) || !rondo_operator_may_repeat(operation->row)) return number;
  return rondo_repeats_find(w->program, w->owners, &w->repeats, number);
}

static void mark_dependents(walk *w, const uint32_t *values, size_t count) {
  for (uint32_t i = 0; i < w->count; i++) w->owners[i] = i;
  for (size_t i = 0; i < count; i++) w->depends[values[i]] = true;
  for (uint32_t i = 0; i < w->program->operations.count; i++) {
    const rondo_operation *operation = &w->program->operations.items[i];
    const rondo_operation *alike = &w->program->operations.items[find_alike(w, i)];
    const bool depends = any_input_depends(w, operation);
    for (uint32_t r = 0; r < operation->row->result_count; r++) {
      w->owners[operation->results[r]] = alike->results[r];
      const bool is_turn = operation->row->is_collective && r > 0;
      w->depends[operation->results[r]] = w->depends[operation->results[r]] || (depends && !is_turn);
    }
  }
}

rondo_status rondo_program_add_gradient(rondo_program *program, uint32_t gradient, uint32_t *inout_sum) {
  const uint32_t terms[] = {*inout_sum, gradient};
  if (*inout_sum != RONDO_NO_VALUE) return rondo_program_add(program, &rondo_operator_add, terms, 2, NULL, inout_sum);
  *inout_sum = gradient;
  return RONDO_OK;
}

/* Marks the operations that were added for an operation, including sums with the gradients of other readers of its
 * inputs. */
static void note_gradients(walk *w, uint32_t index, size_t before) {
  for (size_t i = before; i < w->program->operations.count; i++) {
    rondo_operation *added = &w->program->operations.items[i];
    if (added->gradient_of == 0) added->gradient_of = index + 1;
  }
}

/* A gradient has the dimensions of its input, and a floating-point type. */
static void assert_gradients(const rondo_program *program, const rondo_operation *operation,
                             const uint32_t *of_inputs) {
#ifdef NDEBUG
  (void)program, (void)operation, (void)of_inputs;
#else
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) {
    if (of_inputs[i] == RONDO_NO_VALUE) continue;
    const rondo_shape *gradient = rondo_program_shape(program, of_inputs[i]);
    const rondo_shape *input = rondo_operation_input(program, operation, i);
    assert(input != NULL && rondo_shape_is_float(gradient) && gradient->rank == input->rank);
    assert(memcmp(gradient->dims, input->dims, sizeof input->dims) == 0);
  }
#endif
}

/* Adds the operators that pass gradients through one operation, and the sums with gradients of its inputs' other
 * readers. */
static rondo_status pass_through(walk *w, const rondo_operation *operation, const uint32_t *of_results) {
  const bool adds = operation->row->adds_gradients && w->depends[operation->inputs[0]];
  uint32_t of_inputs[RONDO_MAX_OPERANDS];
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) of_inputs[i] = RONDO_NO_VALUE;
  if (adds) of_inputs[0] = w->gradients[w->owners[operation->inputs[0]]];
  RONDO_TRY(operation->row->differentiate(w->program, operation, of_results, of_inputs));
  assert_gradients(w->program, operation, of_inputs);
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) {
    if (of_inputs[i] == RONDO_NO_VALUE || !w->depends[operation->inputs[i]]) continue;
    uint32_t *sum = &w->gradients[w->owners[operation->inputs[i]]];
    if (adds && i == 0)
      *sum = of_inputs[0];
    else
      RONDO_TRY(rondo_program_add_gradient(w->program, of_inputs[i], sum));
  }
  return RONDO_OK;
}

static rondo_status check_constants(const walk *w, const rondo_operation *operation) {
  char text[RONDO_CALL_TEXT];
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t input = operation->inputs[k];
    if ((operation->row->constants >> k & 1u) == 0 || !w->depends[input]) continue;
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION,
                      "%s of %s has no gradient of its %s, %s, which is requested: freeze the state "
                      "(rondo_state_options), or use rondo_op_stop_gradient",
                      operation->row->name, w->program->label, operation->row->inputs[k],
                      rondo_value_text(text, w->program, input));
  }
  return RONDO_OK;
}

static rondo_status walk_operation(walk *w, uint32_t index) {
  const rondo_operation operation = w->program->operations.items[index];
  const size_t before = w->program->operations.count;
  uint32_t of_results[RONDO_MAX_RESULTS];
  bool has_gradient = false;
  for (uint32_t r = 0; r < operation.row->result_count; r++) {
    of_results[r] = w->gradients[operation.results[r]];
    has_gradient = has_gradient || of_results[r] != RONDO_NO_VALUE;
  }
  if (!has_gradient || !any_input_depends(w, &operation)) return RONDO_OK;
  if (operation.row->differentiate == NULL) {
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION,
                      "%s (operator %u of %s) has no gradient, but the loss depends through it on a value whose "
                      "gradient is requested: use another operator, or rondo_op_stop_gradient",
                      operation.row->name, index, w->program->label);
  }
  RONDO_TRY(check_constants(w, &operation));
  RONDO_TRY(pass_through(w, &operation, of_results));
  note_gradients(w, index, before);
  return RONDO_OK;
}

static rondo_status walk_back(walk *w, uint32_t loss, uint32_t seed, const uint32_t *values, size_t count,
                              uint32_t *gradients) {
  const size_t operations = w->program->operations.count;
  memset(w->gradients, 0xff, w->count * sizeof *w->gradients); /* RONDO_NO_VALUE */
  mark_dependents(w, values, count);
  uint32_t *of_loss = &w->gradients[w->owners[loss]];
  *of_loss = seed;
  if (seed == RONDO_NO_VALUE) RONDO_TRY(rondo_program_constant(w->program, 1.0f, of_loss));
  for (size_t i = operations; i > 0; i--) RONDO_TRY(walk_operation(w, (uint32_t)i - 1));
  for (size_t i = 0; i < count; i++) gradients[i] = w->gradients[values[i]];
  return RONDO_OK;
}

static rondo_status allocate(walk *w) {
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->count, sizeof *w->depends, &w->depends));
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->count, sizeof *w->owners, &w->owners));
  RONDO_TRY(rondo_scratch_take(&w->scratch, w->count, sizeof *w->gradients, &w->gradients));
  RONDO_TRY(rondo_repeats_make(w->program, &w->repeats));
  w->repeats.keeps_places = true; /* a gradient goes to the device of its operation */
  return RONDO_OK;
}

rondo_status rondo_program_differentiate(rondo_program *program, uint32_t loss, uint32_t seed, const uint32_t *values,
                                         size_t count, uint32_t *gradients) {
  const rondo_shape *shape = rondo_program_shape(program, loss);
  if (shape->type != RONDO_F32 || shape->rank != 0) {
    char text[RONDO_SHAPE_TEXT];
    return rondo_fail(RONDO_INVALID_ARGUMENT, shape->type != RONDO_F32 ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                      "gradients of %s: the loss must be a scalar f32, not %s", program->label,
                      rondo_shape_text(text, shape));
  }
  walk w = {.program = program, .scratch = {.allocator = &program->allocator}, .count = program->values.count};
  rondo_status status = allocate(&w);
  if (status == RONDO_OK) status = walk_back(&w, loss, seed, values, count, gradients);
  rondo_repeats_free(program, &w.repeats);
  rondo_scratch_free(&w.scratch);
  return status;
}

void rondo_program_mark_sources(const rondo_program *program, uint32_t value, bool *needed) {
  needed[value] = true;
  for (size_t i = program->operations.count; i > 0; i--) {
    const rondo_operation *operation = &program->operations.items[i - 1];
    if (!rondo_operation_makes_any(operation, needed)) continue;
    RONDO_EACH_INPUT(k, operation) needed[operation->inputs[k]] = true;
  }
}

/* Resolves the requested values and checks their types. */
static rondo_status resolve_requested(const rondo_program *program, const rondo_value *values, size_t count,
                                      uint32_t *indices) {
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(rondo_program_resolve(program, values[i], "rondo_program_gradients", "an entry of values", &indices[i]));
    const rondo_shape *shape = rondo_program_shape(program, indices[i]);
    if (!rondo_shape_is_float(shape)) {
      char text[RONDO_CALL_TEXT];
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                        "rondo_program_gradients: value %zu of the list is %s; only f32, f16 and bf16 have gradients",
                        i, rondo_value_text(text, program, indices[i]));
    }
  }
  return RONDO_OK;
}

/* A value without a gradient gets zeros. */
static rondo_status differentiate_all(rondo_program *program, uint32_t loss, const uint32_t *values, size_t count,
                                      uint32_t *gradients) {
  RONDO_TRY(rondo_program_differentiate(program, loss, RONDO_NO_VALUE, values, count, gradients));
  for (size_t i = 0; i < count; i++) {
    const rondo_shape shape = *rondo_program_shape(program, values[i]);
    if (gradients[i] == RONDO_NO_VALUE) RONDO_TRY(rondo_program_add_zeros(program, &shape, &gradients[i]));
  }
  return RONDO_OK;
}

static rondo_status add_gradients(rondo_program *program, uint32_t loss, const rondo_value *values, size_t count,
                                  uint32_t *requested, rondo_value *out_gradients) {
  uint32_t *gradients = count == 0 ? NULL : requested + count;
  RONDO_TRY(resolve_requested(program, values, count, requested));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = differentiate_all(program, loss, requested, count, gradients);
  if (status != RONDO_OK) {
    rondo_program_roll_back(program, mark);
    return status;
  }
  program->has_gradients = program->has_gradients || count > 0;
  for (size_t i = 0; i < count; i++) out_gradients[i] = rondo_program_tag(program, gradients[i]);
  return RONDO_OK;
}

rondo_status rondo_program_gradients(rondo_program *program, rondo_value loss, const rondo_value *values, size_t count,
                                     rondo_value *out_gradients) {
  static const char call[] = "rondo_program_gradients";
  RONDO_TRY(rondo_require(call, "program", program));
  if (count > 0) RONDO_TRY(rondo_require(call, "values", values));
  if (count > 0) RONDO_TRY(rondo_require(call, "out_gradients", out_gradients));
  for (size_t i = 0; i < count; i++) out_gradients[i] = (rondo_value){0};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_resolve(program, loss, call, "loss", &index));
  uint32_t *indices = NULL; /* followed by the indices of their gradients */
  RONDO_TRY(rondo_allocate_items(&program->allocator, count, 2 * sizeof *indices, &indices));
  const rondo_status status = add_gradients(program, index, values, count, indices, out_gradients);
  rondo_program_check(program);
  rondo_release(&program->allocator, indices, count, 2 * sizeof *indices);
  return status;
}
