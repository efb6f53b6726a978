/* SPDX-License-Identifier: MIT
 * What operators on sparse gradients share. Threads: any.
 */
#include "tensor/operators/common/sparse_rows.h"

#include "tensor/operators/common/operator_rows.h"

enum { TABLE, GRADIENT, RATE, CONTROL }; /* inputs of updates */

#define FLOATS_OF_BLOCK 16384

rondo_status rondo_require_rows(const rondo_program *program, const rondo_operation *operation,
                                uint32_t first_companion, uint32_t last_companion) {
  RONDO_TRY(rondo_require_input(program, operation, TABLE, RONDO_F32, 2));
  RONDO_TRY(rondo_require_input(program, operation, GRADIENT, RONDO_F32, 2));
  RONDO_TRY(rondo_require_input(program, operation, RATE, RONDO_F32, 0));
  RONDO_TRY(rondo_require_input(program, operation, CONTROL, RONDO_F32, 1));
  RONDO_TRY(rondo_require_input(program, operation, RONDO_ROWS_KEYS, RONDO_I64, 1));
  for (uint32_t i = first_companion; i <= last_companion; i++)
    RONDO_TRY(rondo_require_same_shape(program, operation, TABLE, i));
  return RONDO_OK;
}

rondo_slots rondo_slots_of(const rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *table = rondo_emit_shape(emitter, operation->inputs[TABLE]);
  const size_t count = rondo_shape_elements(rondo_emit_shape(emitter, operation->inputs[RONDO_ROWS_KEYS]));
  return (rondo_slots){.count = count, .rows = table->dims[0], .columns = table->dims[1]};
}

rondo_grain rondo_slot_grain(size_t columns) {
  return (rondo_grain){FLOATS_OF_BLOCK / columns + 1, rondo_row_grain(columns).cuda};
}

rondo_grid rondo_slot_grid(const rondo_emitter *emitter, size_t count, size_t columns) {
  return rondo_emit_grid(emitter, count, rondo_slot_grain(columns));
}
