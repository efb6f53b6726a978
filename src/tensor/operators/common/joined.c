/* SPDX-License-Identifier: MIT
 * The table of joined operations and the arguments of their kernels. Threads: any.
 */
#include "tensor/operators/common/joined.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/program/optimizer_parts.h"

rondo_joined_share rondo_joined_share_of(const rondo_joined_table *table, size_t block) {
  uint32_t operation = 0;
  while (block >= table->first_blocks[operation + 1]) {
    operation++;
    assert(operation < RONDO_MAX_JOINED);
  }
  const size_t first = table->first_blocks[operation];
  const rondo_blocks blocks = {.grid = {.x = table->first_blocks[operation + 1] - (uint32_t)first}};
  return (rondo_joined_share){operation, (rondo_type)table->types[operation],
                              rondo_block_span(block - first, blocks, table->elements[operation], RONDO_LANES)};
}

rondo_status rondo_require_gradient(const rondo_program *program, const rondo_operation *operation, uint32_t parameter,
                                    uint32_t gradient) {
  const rondo_shape *wanted = rondo_operation_input(program, operation, parameter);
  const rondo_shape *given = rondo_operation_input(program, operation, gradient);
  assert(wanted != NULL && given != NULL);
  if (operation->attributes.sizes[RONDO_PART_ALL] > 0)
    return rondo_require_input(program, operation, gradient, RONDO_F32, RONDO_ANY_RANK);
  RONDO_TRY(rondo_require_float(program, operation, gradient, wanted->rank));
  if (memcmp(given->dims, wanted->dims, wanted->rank * sizeof *wanted->dims) == 0) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s and %s must have the same sizes",
                              operation->row->inputs[parameter], operation->row->inputs[gradient]);
}

rondo_status rondo_require_companion(const rondo_program *program, const rondo_operation *operation, uint32_t parameter,
                                     uint32_t companion) {
  if (operation->attributes.sizes[RONDO_PART_ALL] > 0)
    return rondo_require_input(program, operation, companion, RONDO_F32, RONDO_ANY_RANK);
  return rondo_require_same_shape(program, operation, parameter, companion);
}

/* The number of elements of an operation. */
static size_t count_elements(const rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                             const rondo_operation *operation) {
  const size_t part = kernel->offsets == NULL ? 0 : operation->attributes.sizes[RONDO_PART_ALL];
  const uint32_t value = rondo_operand_value(operation, kernel->values[0]);
  return part > 0 ? part : rondo_shape_elements(rondo_emit_shape(emitter, value));
}

/* The address of the first element of value number `v` that the operation uses. */
static void *address_of(const rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                        const rondo_operation *operation, uint32_t v) {
  const uint32_t value = rondo_operand_value(operation, kernel->values[v]);
  unsigned char *const address = rondo_emit_address(emitter, value);
  if (address == NULL || kernel->offsets == NULL) return address;
  return address +
         operation->attributes.sizes[kernel->offsets[v]] * rondo_type_bytes(rondo_emit_shape(emitter, value)->type);
}

static void fill_table(const rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                       const rondo_operation *const *operations, uint32_t count, rondo_joined_table *table) {
  for (uint32_t i = 0; i < RONDO_MAX_JOINED; i++) {
    uint32_t blocks = 0;
    if (i < count) {
      table->elements[i] = count_elements(emitter, kernel, operations[i]);
      table->types[i] = (uint8_t)rondo_emit_shape(emitter, operations[i]->inputs[kernel->typed])->type;
      blocks = rondo_emit_grid(emitter, table->elements[i], kernel->grain).x;
    }
    assert(blocks <= UINT32_MAX - table->first_blocks[i]);
    table->first_blocks[i + 1] = table->first_blocks[i] + blocks;
  }
}

rondo_status rondo_emit_joined(rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                               const rondo_operation *const *operations, uint32_t count, const rondo_operand *shared,
                               size_t shared_count) {
  rondo_joined_table table = {.first_blocks = {0}};
  void *pointers[RONDO_MAX_PARAMETERS] = {NULL};
  rondo_operand operands[RONDO_MAX_PARAMETERS] = {RONDO_OBJECT(table)};
  const size_t first = 1 + shared_count, pointer_count = (size_t)kernel->max * kernel->value_count;
  assert(count > 0 && count <= kernel->max && kernel->max <= RONDO_MAX_JOINED && kernel->typed < RONDO_MAX_OPERANDS);
  assert(first + pointer_count <= RONDO_MAX_PARAMETERS);
  fill_table(emitter, kernel, operations, count, &table);
  memcpy(operands + 1, shared, shared_count * sizeof *shared);
  for (uint32_t i = 0; i < count * kernel->value_count; i++)
    pointers[i] = address_of(emitter, kernel, operations[i / kernel->value_count], i % kernel->value_count);
  for (size_t i = 0; i < pointer_count; i++) operands[first + i] = (rondo_operand)RONDO_OBJECT(pointers[i]);
  return rondo_emit_operands(emitter, operations[0], kernel->code,
                             (rondo_grid){.x = table.first_blocks[RONDO_MAX_JOINED]}, operands, first + pointer_count);
}
