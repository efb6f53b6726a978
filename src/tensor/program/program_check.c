/* SPDX-License-Identifier: MIT
 * The invariant of programs, in debug builds. The check does not allocate, so it compares only the sum of the readers
 * of all values.
 */
#include "tensor/program/program_check.h"

#ifndef NDEBUG

#include <assert.h>

static void check_shape(const rondo_shape *shape) {
  assert(shape->rank <= RONDO_MAX_DIMENSIONS);
  assert(shape->type != RONDO_F64 && rondo_type_bytes(shape->type) > 0);
  for (uint32_t i = 0; i < RONDO_MAX_DIMENSIONS; i++) assert((shape->dims[i] > 0) == (i < shape->rank));
}

static void check_value(const rondo_program *program, uint32_t index) {
  const rondo_program_value *value = &program->values.items[index];
  const bool is_result = value->kind == RONDO_VALUE_RESULT, is_constant = value->kind == RONDO_VALUE_CONSTANT;
  check_shape(&value->shape);
  assert((value->name == NULL) == (is_result || is_constant));
  assert(is_result ? value->operation < program->operations.count : value->operation == RONDO_NO_VALUE);
  assert(value->view_of == RONDO_NO_VALUE || (is_result && value->view_of < index));
  assert(value->kind == RONDO_VALUE_STATE ||
         (!value->trained && !value->frozen && !value->is_assigned && !value->is_sparse && value->place == 0));
  assert(is_constant || value->elements == NULL);
  assert(!value->is_borrowed || value->elements != NULL);
  assert(!value->trained || (!value->frozen && !value->is_assigned));
}

static void check_input(const rondo_program *program, uint32_t number, uint32_t value) {
  assert(value < program->values.count);
  const rondo_program_value *of = &program->values.items[value];
  assert(of->kind != RONDO_VALUE_RESULT || of->operation < number);
}

/* Returns the number of inputs. */
static size_t check_operation(const rondo_program *program, uint32_t number) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_operator *row = operation->row;
  const uint32_t inputs = rondo_operator_input_count(row);
  size_t count = 0;
  assert(row->infer != NULL && row->required <= inputs && row->result_count <= RONDO_MAX_RESULTS);
  assert(operation->attributes.size_count <= RONDO_MAX_SIZES && operation->gradient_of <= number);
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    const bool is_there = operation->inputs[k] != RONDO_NO_VALUE;
    assert(is_there ? k < inputs : k >= row->required);
    if (is_there) check_input(program, number, operation->inputs[k]);
    count += is_there;
  }
  for (uint32_t r = 0; r < RONDO_MAX_RESULTS; r++) {
    const uint32_t result = operation->results[r];
    assert((result != RONDO_NO_VALUE) == (r < row->result_count));
    assert(result == RONDO_NO_VALUE || program->values.items[result].operation == number);
  }
  return count;
}

void rondo_program_check(const rondo_program *program) {
  size_t uses = program->outputs.count, readers = 0;
  assert(program->serial != 0 && program->name != NULL && program->label != NULL);
  for (uint32_t i = 0; i < program->values.count; i++) {
    check_value(program, i);
    readers += program->values.items[i].readers;
  }
  for (uint32_t i = 0; i < program->operations.count; i++) uses += check_operation(program, i);
  assert(readers == uses);
  for (size_t i = 0; i < program->outputs.count; i++) {
    assert(program->outputs.items[i].name != NULL);
    assert(program->outputs.items[i].value < program->values.count);
  }
}

#endif
