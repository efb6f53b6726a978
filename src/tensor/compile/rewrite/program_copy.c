/* SPDX-License-Identifier: MIT
 * Copying the named values, operations and outputs of a program. Threads: any number, for different programs.
 */
#include "tensor/compile/rewrite/program_copy.h"

#include <assert.h>
#include <string.h>

#include "tensor/program/operator_registry.h"
#include "tensor/program/program.h"

static rondo_status copy_named_value(rondo_program_copier *c, uint32_t number) {
  rondo_program_value value = c->from->values.items[number];
  if (value.kind == RONDO_VALUE_RESULT) return RONDO_OK;
  if (value.is_borrowed)
    return rondo_program_constant_borrowed(c->to, &value.shape, value.elements, &c->values[number]);
  if (value.elements != NULL)
    return rondo_program_constant_tensor(c->to, &value.shape, value.elements, &c->values[number]);
  value.readers = 0;
  value.name = NULL;
  if (c->from->values.items[number].name != NULL)
    RONDO_TRY(rondo_allocate_text(&c->to->allocator, c->from->values.items[number].name, &value.name));
  const rondo_status status = rondo_array_push(&c->to->allocator, &c->to->values, &value);
  if (status != RONDO_OK && value.name != NULL) rondo_release_text(&c->to->allocator, value.name);
  c->values[number] = (uint32_t)c->to->values.count - 1;
  return status;
}

rondo_status rondo_program_copy_begin(rondo_program_copier *c, rondo_scratch *scratch) {
  const rondo_program *from = c->from;
  const size_t values = from->values.count;
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = from->name, .allocator = &from->allocator};
  RONDO_TRY(rondo_scratch_take(scratch, values, sizeof *c->values, &c->values));
  memset(c->values, 0xff, values * sizeof *c->values); /* RONDO_NO_VALUE */
  RONDO_TRY(rondo_program_create(&options, &c->to));
  c->to->has_gradients = from->has_gradients;
  RONDO_TRY(rondo_array_reserve(&from->allocator, &c->to->operations, from->operations.count));
  RONDO_TRY(rondo_array_reserve(&from->allocator, &c->to->values, values));
  for (uint32_t i = 0; i < values; i++) RONDO_TRY(copy_named_value(c, i));
  return RONDO_OK;
}

static rondo_status copy_result(rondo_program_copier *c, uint32_t number) {
  rondo_program_value value = c->from->values.items[number];
  value.readers = 0;
  value.operation = (uint32_t)c->to->operations.count;
  if (value.view_of != RONDO_NO_VALUE) value.view_of = c->values[value.view_of];
  c->values[number] = (uint32_t)c->to->values.count;
  return rondo_array_push(&c->to->allocator, &c->to->values, &value);
}

/* Room for the operation is reserved first, so that its results never lack it. */
rondo_status rondo_program_copy_operation(rondo_program_copier *c, uint32_t number) {
  rondo_operation operation = c->from->operations.items[number];
  RONDO_TRY(rondo_array_reserve(&c->to->allocator, &c->to->operations, c->to->operations.count + 1));
  RONDO_TRY(rondo_array_reserve(&c->to->allocator, &c->to->values, c->to->values.count + operation.row->result_count));
  for (uint32_t i = 0; i < operation.row->result_count; i++) {
    RONDO_TRY(copy_result(c, operation.results[i]));
    operation.results[i] = c->values[operation.results[i]];
  }
  RONDO_EACH_INPUT(k, &operation) {
    operation.inputs[k] = c->values[operation.inputs[k]];
    assert(operation.inputs[k] != RONDO_NO_VALUE);
    c->to->values.items[operation.inputs[k]].readers++;
  }
  operation.gradient_of = 0;
  rondo_operator_retain(operation.row);
  c->to->operations.items[c->to->operations.count++] = operation;
  return RONDO_OK;
}

void rondo_program_copy_origin(const rondo_program_copier *c, size_t first, uint32_t number) {
  const rondo_operation *origin = &c->from->operations.items[number];
  for (size_t i = first; i < c->to->operations.count; i++) {
    c->to->operations.items[i].place = origin->place;
    c->to->operations.items[i].number = origin->number;
  }
}

static rondo_status copy_output(rondo_program_copier *c, const rondo_named_output *output) {
  rondo_named_output copy = {.value = c->values[output->value]};
  RONDO_TRY(rondo_allocate_text(&c->to->allocator, output->name, &copy.name));
  const rondo_status status = rondo_array_push(&c->to->allocator, &c->to->outputs, &copy);
  if (status == RONDO_OK)
    c->to->values.items[copy.value].readers++;
  else
    rondo_release_text(&c->to->allocator, copy.name);
  return status;
}

rondo_status rondo_program_copy_outputs(rondo_program_copier *c) {
  for (size_t i = 0; i < c->from->outputs.count; i++) RONDO_TRY(copy_output(c, &c->from->outputs.items[i]));
  return RONDO_OK;
}
