/* SPDX-License-Identifier: MIT
 * Programs: creation, named values and outputs, and the tags of values.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "tensor/program/operation.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/program_check.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"
#include "tensor/program/sharded_table.h"

static atomic_uint last_serial;

/* Programs --------------------------------------------------------------------------------------------------------- */

rondo_status rondo_program_make_label(const rondo_allocator *allocator, const char *name, char **out) {
  char label[128];
  (void)snprintf(label, sizeof label, name[0] == '\0' ? "the program%s" : "program '%.100s'", name);
  return rondo_allocate_text(allocator, label, out);
}

rondo_status rondo_program_create(const rondo_program_options *options, rondo_program **out_program) {
  RONDO_TRY(rondo_require("rondo_program_create", "out_program", out_program));
  *out_program = NULL;
  rondo_program_options given;
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_program_options", options, &given));
  rondo_allocator allocator;
  RONDO_TRY(rondo_allocator_resolve(given.allocator, &allocator));
  rondo_program *program = NULL;
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *program, &program));
  program->allocator = allocator;
  rondo_status status = rondo_allocate_text(&allocator, given.name, &program->name);
  if (status == RONDO_OK) status = rondo_program_make_label(&allocator, program->name, &program->label);
  if (status != RONDO_OK) {
    rondo_release_text(&allocator, program->name);
    rondo_release(&allocator, program, 1, sizeof *program);
    return status;
  }
  program->serial = atomic_fetch_add(&last_serial, 1) + 1;
  *out_program = program;
  return RONDO_OK;
}

void rondo_program_destroy(rondo_program *program) {
  if (program == NULL) return;
  const rondo_allocator allocator = program->allocator;
  rondo_program_roll_back(program, (rondo_program_mark){0});
  rondo_array_free(&allocator, &program->values);
  rondo_array_free(&allocator, &program->operations);
  rondo_array_free(&allocator, &program->outputs);
  rondo_array_free(&allocator, &program->ranks.shards);
  rondo_release_text(&allocator, program->ranks.loss_output);
  rondo_release_text(&allocator, program->name);
  rondo_release_text(&allocator, program->label);
  rondo_release(&allocator, program, 1, sizeof *program);
}

rondo_program_mark rondo_program_get_mark(const rondo_program *program) {
  return (rondo_program_mark){program->values.count, program->operations.count, program->outputs.count,
                              program->ranks.turn};
}

void rondo_program_roll_back(rondo_program *program, rondo_program_mark mark) {
  assert(mark.values <= program->values.count && mark.operations <= program->operations.count);
  assert(mark.outputs <= program->outputs.count);
  while (program->operations.count > mark.operations) {
    const rondo_operation *last = &program->operations.items[--program->operations.count];
    RONDO_EACH_INPUT(i, last) program->values.items[last->inputs[i]].readers--;
    if (last->row == &rondo_operator_assign) program->values.items[last->inputs[0]].is_assigned = false;
    rondo_operator_release(last->row);
  }
  while (program->outputs.count > mark.outputs) {
    const rondo_named_output *last = &program->outputs.items[--program->outputs.count];
    program->values.items[last->value].readers--;
    rondo_release_text(&program->allocator, last->name);
  }
  while (program->values.count > mark.values) {
    const rondo_program_value *last = &program->values.items[--program->values.count];
    rondo_release_text(&program->allocator, last->name);
    if (!last->is_borrowed) rondo_release(&program->allocator, last->elements, rondo_shape_bytes(&last->shape), 1);
  }
  program->ranks.turn = (uint32_t)mark.turn;
  if (program->optimizer != NULL) return;
  program->ranks.buckets = 0;
  program->ranks.reduced_bytes = 0;
  program->ranks.shards.count = 0;
  program->ranks.round = program->ranks.runs = 0;
  program->ranks.first_last = program->ranks.end_last = 0;
}

/* Tags ------------------------------------------------------------------------------------------------------------- */

rondo_value rondo_program_tag(const rondo_program *program, uint32_t index) {
  assert(index < program->values.count);
  return (rondo_value){(uint64_t)program->serial << 32 | (index + 1)};
}

rondo_status rondo_program_resolve(const rondo_program *program, rondo_value value, const char *call, const char *what,
                                   uint32_t *out_index) {
  const uint32_t number = (uint32_t)value.id;
  if (value.id == 0) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: %s is no value", call, what);
  }
  if (value.id >> 32 != program->serial || number == 0 || number > program->values.count) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                      "%s: %s is a value of another program, not of %s", call, what, program->label);
  }
  *out_index = number - 1;
  return RONDO_OK;
}

const rondo_shape *rondo_program_shape(const rondo_program *program, uint32_t index) {
  assert(index < program->values.count);
  return &program->values.items[index].shape;
}

rondo_status rondo_value_shape(const rondo_program *program, rondo_value value, rondo_type *out_type, size_t *out_shape,
                               size_t *out_rank) {
  static const char call[] = "rondo_value_shape";
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "out_type", out_type));
  RONDO_TRY(rondo_require(call, "out_shape", out_shape));
  RONDO_TRY(rondo_require(call, "out_rank", out_rank));
  uint32_t index = 0;
  RONDO_TRY(rondo_program_resolve(program, value, call, "value", &index));
  const rondo_shape *shape = rondo_program_shape(program, index);
  *out_type = shape->type;
  *out_rank = shape->rank;
  memcpy(out_shape, shape->dims, sizeof shape->dims);
  return RONDO_OK;
}

/* Named values ----------------------------------------------------------------------------------------------------- */

bool rondo_program_has_name(const rondo_program *program, const char *name) {
  for (size_t i = 0; i < program->values.count; i++) {
    const char *other = program->values.items[i].name;
    if (other != NULL && strcmp(other, name) == 0) return true;
  }
  for (size_t i = 0; i < program->outputs.count; i++)
    if (strcmp(program->outputs.items[i].name, name) == 0) return true;
  return false;
}

static rondo_status check_name(const rondo_program *program, const char *name) {
  if (name == NULL || name[0] == '\0') {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "a value of %s needs a name", program->label);
  }
  if (!rondo_program_has_name(program, name)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
                    "%s has a value called '%s' already: use another name", program->label, name);
}

static rondo_status push_value(rondo_program *program, const rondo_program_value *value, uint32_t *out_index) {
  if (program->values.count >= RONDO_NO_VALUE - 1) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "%s has %zu values, the maximum: split the program",
                      program->label, program->values.count);
  }
  RONDO_TRY(rondo_array_push(&program->allocator, &program->values, value));
  *out_index = (uint32_t)program->values.count - 1;
  return RONDO_OK;
}

rondo_status rondo_program_declare(rondo_program *program, rondo_value_kind kind, const char *name,
                                   const rondo_shape *shape, float initial, uint32_t *out_index) {
  RONDO_TRY(check_name(program, name));
  rondo_program_value value = {
      .kind = kind, .shape = *shape, .initial = initial, .operation = RONDO_NO_VALUE, .view_of = RONDO_NO_VALUE};
  RONDO_TRY(rondo_allocate_text(&program->allocator, name, &value.name));
  const rondo_status status = push_value(program, &value, out_index);
  if (status != RONDO_OK) rondo_release_text(&program->allocator, value.name);
  return status;
}

rondo_status rondo_program_constant(rondo_program *program, float number, uint32_t *out_index) {
  const rondo_program_value value = {.kind = RONDO_VALUE_CONSTANT,
                                     .shape = rondo_shape_scalar(RONDO_F32),
                                     .initial = number,
                                     .operation = RONDO_NO_VALUE,
                                     .view_of = RONDO_NO_VALUE};
  return push_value(program, &value, out_index);
}

rondo_status rondo_program_add_number(rondo_program *program, float number, rondo_value *out_value) {
  uint32_t index = 0;
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_program_constant(program, number, &index));
  *out_value = rondo_program_tag(program, index);
  return RONDO_OK;
}

rondo_status rondo_program_constant_tensor(rondo_program *program, const rondo_shape *shape, const void *elements,
                                           uint32_t *out_index) {
  const size_t bytes = rondo_shape_bytes(shape);
  rondo_program_value value = {
      .kind = RONDO_VALUE_CONSTANT, .shape = *shape, .operation = RONDO_NO_VALUE, .view_of = RONDO_NO_VALUE};
  RONDO_TRY(rondo_allocate_copy(&program->allocator, elements, bytes, 1, &value.elements));
  const rondo_status status = push_value(program, &value, out_index);
  if (status != RONDO_OK) rondo_release(&program->allocator, value.elements, bytes, 1);
  return status;
}

rondo_status rondo_program_constant_borrowed(rondo_program *program, const rondo_shape *shape, const void *elements,
                                             uint32_t *out_index) {
  rondo_program_value value = {.kind = RONDO_VALUE_CONSTANT,
                               .shape = *shape,
                               .is_borrowed = true,
                               .operation = RONDO_NO_VALUE,
                               .view_of = RONDO_NO_VALUE};
  assert((uintptr_t)elements % rondo_type_bytes(shape->type) == 0);
  memcpy(&value.elements, &elements, sizeof elements); /* nobody writes to them */
  return push_value(program, &value, out_index);
}

typedef rondo_status add_constant(rondo_program *program, const rondo_shape *shape, const void *elements,
                                  uint32_t *out_index);

static rondo_status add_of_type(rondo_program *program, rondo_type type, const size_t *dims, size_t rank,
                                const void *elements, add_constant *add, rondo_value *out_value) {
  rondo_shape shape;
  uint32_t index = 0;
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_shape_make("a constant", type, dims, rank, &shape));
  RONDO_TRY(add(program, &shape, elements, &index));
  *out_value = rondo_program_tag(program, index);
  return RONDO_OK;
}

rondo_status rondo_program_add_tensor(rondo_program *program, rondo_type type, const size_t *dims, size_t rank,
                                      const void *elements, rondo_value *out_value) {
  return add_of_type(program, type, dims, rank, elements, rondo_program_constant_tensor, out_value);
}

rondo_status rondo_program_add_borrowed(rondo_program *program, rondo_type type, const size_t *dims, size_t rank,
                                        const void *elements, rondo_value *out_value) {
  return add_of_type(program, type, dims, rank, elements, rondo_program_constant_borrowed, out_value);
}

static rondo_status declare_shaped(const char *call, rondo_program *program, rondo_value_kind kind, const char *name,
                                   rondo_type type, const size_t *shape, size_t rank, rondo_value *out_value) {
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require(call, "program", program));
  if (rank > 0) RONDO_TRY(rondo_require(call, "shape", shape));
  if (name == NULL || name[0] == '\0') return rondo_fail_context(check_name(program, name), "%s", call);
  rondo_shape made;
  rondo_status status = rondo_shape_make(call, type, shape, rank, &made);
  uint32_t index = 0;
  if (status == RONDO_OK) status = rondo_program_declare(program, kind, name, &made, 0, &index);
  if (status != RONDO_OK) return rondo_fail_context(status, "'%s'", name);
  *out_value = rondo_program_tag(program, index);
  return RONDO_OK;
}

rondo_status rondo_program_input(rondo_program *program, const char *name, rondo_type type, const size_t *shape,
                                 size_t rank, rondo_value *out_value) {
  return declare_shaped("rondo_program_input", program, RONDO_VALUE_INPUT, name, type, shape, rank, out_value);
}

rondo_status rondo_program_state(rondo_program *program, const char *name, rondo_type type, const size_t *shape,
                                 size_t rank, rondo_value *out_value) {
  return declare_shaped("rondo_program_state", program, RONDO_VALUE_STATE, name, type, shape, rank, out_value);
}

static rondo_status check_sparse(const char *call, rondo_type type, size_t rank) {
  if (type != RONDO_F32)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: sparse: the type is %s: give f32", call,
                      rondo_type_name(type));
  if (rank == 2) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: sparse: the shape has %zu dimension(s): give 2, [rows, columns]", call, rank);
}

rondo_status rondo_program_state_with(rondo_program *program, const char *name, rondo_type type, const size_t *shape,
                                      size_t rank, const rondo_state_options *options, rondo_value *out_value) {
  static const char call[] = "rondo_program_state_with";
  rondo_state_options given;
  RONDO_TRY(rondo_require(call, "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_versioned_read("rondo_state_options", options, &given, sizeof given));
  size_t part[2];
  if (given.max_indices > 0 && !given.sparse)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: max_indices is for sparse states: set sparse, or leave it 0", call);
  if (given.sparse) RONDO_TRY(check_sparse(call, type, rank));
  if (given.shard_rows) RONDO_TRY(rondo_table_divide(call, program, type, shape, rank, &given, part));
  RONDO_TRY(
      declare_shaped(call, program, RONDO_VALUE_STATE, name, type, given.shard_rows ? part : shape, rank, out_value));
  rondo_program_value *state = &program->values.items[program->values.count - 1];
  state->frozen = given.frozen;
  state->is_sparse = given.sparse;
  state->max_indices = given.max_indices;
  state->is_sharded = given.shard_rows;
  state->table_rows = given.shard_rows ? shape[0] : 0;
  state->capacity_factor = given.capacity_factor;
  return RONDO_OK;
}

void rondo_program_expect_file(rondo_program *program, rondo_value state, size_t offset) {
  rondo_program_value *value = &program->values.items[(uint32_t)state.id - 1];
  assert(state.id >> 32 == program->serial && value->kind == RONDO_VALUE_STATE);
  value->is_in_file = true;
  value->file_offset = (uint32_t)(offset % RONDO_FILE_ALIGNMENT);
}

rondo_status rondo_program_cell(rondo_program *program, const char *name, float initial, rondo_value *out_value) {
  RONDO_TRY(rondo_require("rondo_program_cell", "out_value", out_value));
  *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require("rondo_program_cell", "program", program));
  const rondo_shape scalar = rondo_shape_scalar(RONDO_F32);
  uint32_t index = 0;
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_CELL, name, &scalar, initial, &index));
  *out_value = rondo_program_tag(program, index);
  return RONDO_OK;
}

rondo_status rondo_program_copy(rondo_program *program, uint32_t *inout_value) {
  const uint32_t value = *inout_value;
  rondo_attributes same_order = {.size_count = rondo_program_shape(program, value)->rank};
  for (uint32_t i = 0; i < same_order.size_count; i++) same_order.sizes[i] = i;
  return rondo_program_add(program, &rondo_operator_permute, &value, 1, &same_order, inout_value);
}

/* A view of a state or cell would show later changes by an update or the caller. So the output is a copy, which keeps
 * the value that the run computed with. */
static rondo_status copy_view(rondo_program *program, uint32_t *inout_value) {
  uint32_t root = *inout_value;
  while (program->values.items[root].view_of != RONDO_NO_VALUE) root = program->values.items[root].view_of;
  const rondo_value_kind kind = program->values.items[root].kind;
  if (root == *inout_value || (kind != RONDO_VALUE_STATE && kind != RONDO_VALUE_CELL)) return RONDO_OK;
  return rondo_program_copy(program, inout_value);
}

static rondo_status add_output(rondo_program *program, const char *name, uint32_t value) {
  rondo_named_output output = {.value = value};
  RONDO_TRY(copy_view(program, &output.value));
  RONDO_TRY(rondo_allocate_text(&program->allocator, name, &output.name));
  const rondo_status status = rondo_array_push(&program->allocator, &program->outputs, &output);
  if (status == RONDO_OK)
    program->values.items[output.value].readers++;
  else
    rondo_release_text(&program->allocator, output.name);
  return status;
}

rondo_status rondo_program_output(rondo_program *program, const char *name, rondo_value value) {
  RONDO_TRY(rondo_require("rondo_program_output", "program", program));
  uint32_t index = 0;
  RONDO_TRY(rondo_program_resolve(program, value, "rondo_program_output", "value", &index));
  RONDO_TRY(check_name(program, name));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_output(program, name, index);
  if (status != RONDO_OK) rondo_program_roll_back(program, mark);
  rondo_program_check(program);
  return status;
}
