/* SPDX-License-Identifier: MIT
 * rondo_program_assign: a state becomes a value at the end of a run (PR-3). The operator is an update, like those of
 * optimizers, of running statistics and of caches: it runs after all readers of its state and does nothing in a run
 * that failed. It copies the value. A value that shows a state is copied before, so that it is the one before the run.
 * Threads: as tensor/program/operator.h says.
 */
#include <string.h>

#include "tensor/operators/common/joined.h"
#include "tensor/operators/common/operator_tools.h"
#include "tensor/program/program_check.h"

enum { STATE, VALUE }; /* inputs */

static void assign_cpu(rondo_blocks blocks, void *const *args) {
  if (!rondo_may_update(blocks, args + 1)) return;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    const size_t bytes = rondo_type_bytes(share.type), first = share.span.first * bytes;
    char *to = RONDO_ARG(char *, 4 + 2 * share.operation);
    memcpy(to + first, RONDO_ARG(const char *, 5 + 2 * share.operation) + first, share.span.last * bytes - first);
  }
}

#define POINTERS RONDO_UPDATES, RONDO_READS

static const rondo_parameter assign_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_GATE_PARAMETERS,
                                                    RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL_LIST(assign, assign, assign_parameters);

static rondo_status infer_assign(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *state = rondo_operation_input(program, operation, STATE);
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_program_value *of = &program->values.items[operation->inputs[STATE]];
  (void)results;
  if (of->kind != RONDO_VALUE_STATE)
    return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "only states are assigned");
  if (of->table_rows > 0)
    return rondo_fail_operation(program, operation, RONDO_REASON_BAD_OPTIONS,
                                "the state is a table whose rows are divided between ranks (shard_rows)");
  if (state->type != value->type)
    return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "cast the value to the state's type");
  if (rondo_shape_same(state, value)) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "state and value must have one shape");
}

static rondo_status emit_assign(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {STATE, VALUE};
  const rondo_joined_kernel kernel = {&assign_code, values, 2, STATE, RONDO_ELEMENTWISE_GRAIN, NULL, RONDO_MAX_JOINED};
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_OPERANDS(RONDO_GATE));
}

static const rondo_join assign_join = {.max = RONDO_MAX_JOINED, .emit = emit_assign};

RONDO_OPERATOR(assign, .inputs = {"state", "value"}, .required = 2, .updates = 1u << STATE, .infer = infer_assign,
               .join = &assign_join);

/* Building --------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_changed(const rondo_program *program, uint32_t state) {
  char text[RONDO_CALL_TEXT];
  for (size_t i = 0; i < program->operations.count; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] != state || !rondo_operation_updates(operation, k)) continue;
      return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                        "rondo_program_assign: %s is changed by %s (operator %zu of %s) already: a run changes a state "
                        "in one way",
                        rondo_value_text(text, program, state), operation->row->name, i, program->label);
    }
  }
  return RONDO_OK;
}

/* Replaces a value that shows a state by a copy. */
static rondo_status copy_state(rondo_program *program, uint32_t *inout_value) {
  uint32_t root = *inout_value;
  while (program->values.items[root].view_of != RONDO_NO_VALUE) root = program->values.items[root].view_of;
  if (program->values.items[root].kind != RONDO_VALUE_STATE) return RONDO_OK;
  return rondo_program_copy(program, inout_value);
}

static rondo_status add_assign(rondo_program *program, uint32_t state, uint32_t value) {
  uint32_t inputs[] = {state, value};
  RONDO_TRY(copy_state(program, &inputs[VALUE]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_assign, inputs, 2, NULL, NULL));
  program->values.items[state].is_assigned = true;
  return RONDO_OK;
}

rondo_status rondo_program_assign(rondo_program *program, rondo_value state, rondo_value value) {
  static const char call[] = "rondo_program_assign";
  uint32_t to = 0, from = 0;
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_program_resolve(program, state, call, "state", &to));
  RONDO_TRY(rondo_program_resolve(program, value, call, "value", &from));
  RONDO_TRY(refuse_changed(program, to));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_assign(program, to, from);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  rondo_program_check(program);
  return status;
}
