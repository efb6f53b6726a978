/* SPDX-License-Identifier: MIT
 * Adds operators to a program: checks inputs, infers shapes, adds results. Also makes the messages about them.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/program/operation.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"
#include "tensor/program/sharded_table.h"

const rondo_shape *rondo_operation_input(const rondo_program *program, const rondo_operation *operation,
                                         uint32_t input) {
  assert(input < RONDO_MAX_OPERANDS);
  const uint32_t value = operation->inputs[input];
  return value == RONDO_NO_VALUE ? NULL : rondo_program_shape(program, value);
}

/* Messages --------------------------------------------------------------------------------------------------------- */

static void add_text(char buffer[RONDO_CALL_TEXT], const char *format, ...) RONDO_PRINTF(2, 3);

static void add_text(char buffer[RONDO_CALL_TEXT], const char *format, ...) {
  const size_t used = strlen(buffer);
  if (RONDO_CALL_TEXT - used < 8) return;
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(buffer + used, RONDO_CALL_TEXT - used, format, arguments);
  va_end(arguments);
}

static void add_value(char buffer[RONDO_CALL_TEXT], const rondo_program *program, uint32_t index) {
  const rondo_program_value *value = &program->values.items[index];
  char shape[RONDO_SHAPE_TEXT];
  (void)rondo_shape_text(shape, &value->shape);
  if (value->kind == RONDO_VALUE_RESULT) {
    const rondo_operation *maker = &program->operations.items[value->operation];
    add_text(buffer, "result of %s (operator %u) %s", maker->row->name, maker->number, shape);
  } else if (value->elements != NULL) {
    add_text(buffer, "constant %s", shape);
  } else if (value->kind == RONDO_VALUE_CONSTANT) {
    add_text(buffer, "constant %g", (double)value->initial);
  } else {
    add_text(buffer, "'%s' %s", value->name, shape);
  }
}

const char *rondo_value_text(char buffer[RONDO_CALL_TEXT], const rondo_program *program, uint32_t index) {
  buffer[0] = '\0';
  add_value(buffer, program, index);
  return buffer;
}

static void describe_operation(const rondo_program *program, const rondo_operation *operation,
                               char buffer[RONDO_CALL_TEXT]) {
  buffer[0] = '\0';
  add_text(buffer, "%s(", operation->row->name);
  const uint32_t count = rondo_operator_input_count(operation->row);
  for (uint32_t i = 0; i < count; i++) {
    if (operation->inputs[i] == RONDO_NO_VALUE) continue;
    add_text(buffer, "%s%s ", i == 0 ? "" : ", ", operation->row->inputs[i]);
    add_value(buffer, program, operation->inputs[i]);
  }
  add_text(buffer, ")");
}

rondo_status rondo_fail_operation(const rondo_program *program, const rondo_operation *operation, rondo_reason reason,
                                  const char *format, ...) {
  char call[RONDO_CALL_TEXT];
  char message[RONDO_CALL_TEXT];
  describe_operation(program, operation, call);
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(message, sizeof message, format, arguments);
  va_end(arguments);
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: %s", call, message);
}

bool rondo_program_reads(const rondo_program *program, uint32_t value) {
  return program->values.items[value].readers > 0;
}

bool rondo_value_is_made(const rondo_program *program, uint32_t value) {
  const rondo_program_value *of = &program->values.items[value];
  if (of->kind != RONDO_VALUE_RESULT) return true;
  const rondo_operation *operation = &program->operations.items[of->operation];
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    const bool is_spare = (operation->row->spare_results >> r & 1u) != 0;
    if (is_spare && operation->results[r] == value) return rondo_program_reads(program, value);
  }
  return true;
}

static rondo_status require_rank(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                 uint32_t rank) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (rank == RONDO_ANY_RANK || shape->rank == rank) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s must have %u dimensions, not %u",
                              operation->row->inputs[input], rank, shape->rank);
}

static rondo_status fail_type(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                              const char *wanted) {
  return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "%s must be %s, not %s",
                              operation->row->inputs[input], wanted,
                              rondo_type_name(rondo_operation_input(program, operation, input)->type));
}

rondo_status rondo_require_input(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                 rondo_type type, uint32_t rank) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL) return RONDO_OK; /* an omitted optional input */
  if (shape->type != type) return fail_type(program, operation, input, rondo_type_name(type));
  return require_rank(program, operation, input, rank);
}

rondo_status rondo_require_float(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                 uint32_t rank) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL) return RONDO_OK; /* an omitted optional input */
  if (!rondo_shape_is_float(shape)) return fail_type(program, operation, input, "f32, f16 or bf16");
  return require_rank(program, operation, input, rank);
}

rondo_status rondo_require_indices(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                   uint32_t rank) {
  const rondo_type type = rondo_operation_input(program, operation, input)->type;
  if (type != RONDO_I32 && type != RONDO_I64) return fail_type(program, operation, input, "i32 or i64");
  return require_rank(program, operation, input, rank);
}

rondo_status rondo_infer_same(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

rondo_status rondo_require_same_shape(const rondo_program *program, const rondo_operation *operation, uint32_t a,
                                      uint32_t b) {
  const rondo_shape *x = rondo_operation_input(program, operation, a);
  const rondo_shape *y = rondo_operation_input(program, operation, b);
  if (rondo_shape_same(x, y)) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s and %s must have one type and shape",
                              operation->row->inputs[a], operation->row->inputs[b]);
}

rondo_status rondo_require_dimension(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                     size_t dimension) {
  const uint32_t rank = rondo_operation_input(program, operation, input)->rank;
  if (dimension < rank) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "there is no dimension %zu: %s has %u, counted from 0", dimension,
                              operation->row->inputs[input], rank);
}

rondo_status rondo_read_dimensions(const char *call, const size_t *dims, size_t count, rondo_attributes *out) {
  *out = (rondo_attributes){.size_count = 0};
  if (count > 0) RONDO_TRY(rondo_require(call, "shape", dims));
  if (count > RONDO_MAX_DIMENSIONS) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: %zu dimensions: use at most %d", call, count,
                      RONDO_MAX_DIMENSIONS);
  }
  if (count > 0) memcpy(out->sizes, dims, count * sizeof *dims);
  out->size_count = (uint32_t)count;
  return RONDO_OK;
}

rondo_status rondo_require_combine(const char *call, rondo_combine combine) {
  if (combine == RONDO_COMBINE_MEAN || combine == RONDO_COMBINE_SUM) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: combine %d is neither RONDO_COMBINE_MEAN nor _SUM", call, (int)combine);
}

bool rondo_attributes_same(const rondo_attributes *a, const rondo_attributes *b) {
  return a->size_count == b->size_count && memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0 &&
         memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0 && memcmp(a->flags, b->flags, sizeof a->flags) == 0;
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

/* Checks the type of the row's typed input. The row's infer checks the rest. */
static rondo_status check_type(const rondo_program *program, const rondo_operation *operation) {
  const rondo_operator *row = operation->row;
  const rondo_shape *shape = rondo_operation_input(program, operation, row->typed_input);
  char wanted[64] = "";
  if (row->types == 0 || shape == NULL || (row->types & RONDO_TYPE_BIT(shape->type)) != 0) return RONDO_OK;
  uint32_t left = row->types;
  for (uint32_t type = 0; left != 0; type++) {
    if ((left & RONDO_TYPE_BIT(type)) == 0) continue;
    left &= ~RONDO_TYPE_BIT(type);
    const char *before = wanted[0] == '\0' ? "" : left == 0 ? " or " : ", ";
    const size_t used = strlen(wanted);
    (void)snprintf(wanted + used, sizeof wanted - used, "%s%s", before, rondo_type_name((rondo_type)type));
  }
  return fail_type(program, operation, row->typed_input, wanted);
}

static rondo_status infer(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  memset(results, 0, RONDO_MAX_RESULTS * sizeof *results);
  RONDO_TRY(check_type(program, operation));
  RONDO_TRY(operation->row->infer(program, operation, results));
  for (uint32_t i = 0; i < operation->row->result_count; i++) {
    const rondo_shape made = results[i];
    RONDO_TRY(rondo_shape_make(operation->row->name, made.type, made.dims, made.rank, &results[i]));
  }
  return RONDO_OK;
}

/* Reserves memory for the operation and its results, so that adding them cannot fail halfway. */
static rondo_status reserve(rondo_program *program, uint32_t results) {
  if (program->values.count + results >= RONDO_NO_VALUE - 1) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "%s has %zu values, the maximum: split the program",
                      program->label, program->values.count);
  }
  const rondo_allocator *allocator = &program->allocator;
  if (program->values.capacity < program->values.count + results) {
    RONDO_TRY(rondo_array_reserve(allocator, &program->values, 2 * program->values.count + results));
  }
  if (program->operations.capacity < program->operations.count + 1) {
    RONDO_TRY(rondo_array_reserve(allocator, &program->operations, 2 * program->operations.count + 1));
  }
  return RONDO_OK;
}

static rondo_status refuse_assigned(const rondo_program *program, const rondo_operation *operation) {
  const bool assigns = operation->row == &rondo_operator_assign; /* rondo_program_assign checks more */
  for (uint32_t k = 0; operation->row->updates != 0 && !assigns && k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t input = operation->inputs[k];
    if (input == RONDO_NO_VALUE || !rondo_operation_updates(operation, k)) continue;
    if (program->values.items[input].is_assigned)
      return rondo_fail_operation(program, operation, RONDO_REASON_BAD_OPTIONS,
                                  "%s is assigned by rondo_program_assign, and a run changes a state in one way",
                                  operation->row->inputs[k]);
  }
  return RONDO_OK;
}

rondo_status rondo_program_add(rondo_program *program, const rondo_operator *row, const uint32_t *inputs,
                               uint32_t count, const rondo_attributes *attributes, uint32_t *out_results) {
  rondo_operation operation = {.row = row, .number = (uint32_t)program->operations.count};
  rondo_shape shapes[RONDO_MAX_RESULTS];
  assert(count <= RONDO_MAX_OPERANDS && count >= row->required && row->result_count <= RONDO_MAX_RESULTS);
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) operation.inputs[i] = i < count ? inputs[i] : RONDO_NO_VALUE;
  for (uint32_t i = 0; i < RONDO_MAX_RESULTS; i++) operation.results[i] = RONDO_NO_VALUE;
  if (attributes != NULL) operation.attributes = *attributes;
  RONDO_TRY(rondo_table_check_reader(program, &operation));
  RONDO_TRY(refuse_assigned(program, &operation));
  RONDO_TRY(infer(program, &operation, shapes));
  RONDO_TRY(reserve(program, row->result_count));
  for (uint32_t i = 0; i < row->result_count; i++) {
    operation.results[i] = (uint32_t)program->values.count;
    program->values.items[program->values.count++] =
        (rondo_program_value){.kind = RONDO_VALUE_RESULT,
                              .shape = shapes[i],
                              .operation = (uint32_t)program->operations.count,
                              .view_of = row->is_view ? operation.inputs[0] : RONDO_NO_VALUE};
    if (out_results != NULL) out_results[i] = operation.results[i];
  }
  RONDO_EACH_INPUT(i, &operation) program->values.items[operation.inputs[i]].readers++;
  rondo_operator_retain(row);
  program->operations.items[program->operations.count++] = operation;
  return RONDO_OK;
}

rondo_status rondo_program_add_shaped(rondo_program *program, const rondo_operator *row, uint32_t value,
                                      rondo_shape shape, uint32_t *out_value) {
  rondo_attributes attributes = {.size_count = shape.rank};
  memcpy(attributes.sizes, shape.dims, shape.rank * sizeof *shape.dims);
  return rondo_program_add(program, row, &value, 1, &attributes, out_value);
}

rondo_status rondo_program_add_cast(rondo_program *program, rondo_type type, uint32_t *inout_value) {
  const rondo_attributes to = {.sizes = {(size_t)type}, .size_count = 1};
  const uint32_t from = *inout_value;
  if (rondo_program_shape(program, from)->type == type) return RONDO_OK;
  return rondo_program_add(program, &rondo_operator_cast, &from, 1, &to, inout_value);
}

rondo_status rondo_program_add_collective(rondo_program *program, const rondo_operator *row, uint32_t value,
                                          uint32_t *out_value) {
  const uint32_t inputs[] = {value, program->ranks.turn};
  const rondo_attributes attributes = {.sizes = {program->ranks.count}, .size_count = 1};
  uint32_t results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_add(program, row, inputs, 2, &attributes, results));
  *out_value = results[0];
  program->ranks.turn = results[1];
  return RONDO_OK;
}

rondo_status rondo_program_begin(const rondo_program *program, const char *call, rondo_value *out_value) {
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  *out_value = (rondo_value){0};
  return rondo_require(call, "program", program);
}

rondo_status rondo_program_begin_of(const rondo_program *program, const char *call, rondo_value value, const char *what,
                                    rondo_value *out_value, uint32_t *out_index) {
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  return rondo_program_resolve(program, value, call, what, out_index);
}

rondo_status rondo_program_finish(rondo_program *program, rondo_program_mark mark, rondo_status status, uint32_t result,
                                  rondo_value *out_value) {
  if (status == RONDO_OK)
    *out_value = rondo_program_tag(program, result);
  else
    rondo_program_roll_back(program, mark);
  return status;
}

rondo_status rondo_program_resolve_inputs(const rondo_program *program, const rondo_operator *row,
                                          const rondo_value *inputs, uint32_t count, uint32_t *out_indices) {
  assert(count <= rondo_operator_input_count(row));
  for (uint32_t i = 0; i < count; i++) {
    out_indices[i] = RONDO_NO_VALUE;
    if (i >= row->required && inputs[i].id == 0) continue;
    RONDO_TRY(rondo_program_resolve(program, inputs[i], row->name, row->inputs[i], &out_indices[i]));
  }
  return RONDO_OK;
}

rondo_status rondo_program_apply(rondo_program *program, const rondo_operator *row, const rondo_value *inputs,
                                 uint32_t count, const rondo_attributes *attributes, rondo_value *out_value) {
  uint32_t indices[RONDO_MAX_OPERANDS], results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_begin(program, row->name, out_value));
  RONDO_TRY(rondo_program_resolve_inputs(program, row, inputs, count, indices));
  RONDO_TRY(rondo_program_add(program, row, indices, count, attributes, results));
  *out_value = rondo_program_tag(program, results[0]);
  return RONDO_OK;
}
