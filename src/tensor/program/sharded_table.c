/* SPDX-License-Identifier: MIT
 * Sharded tables.
 */
#include "tensor/program/sharded_table.h"

#include <math.h>

#include "base/error.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

rondo_status rondo_table_divide(const char *call, const rondo_program *program, rondo_type type, const size_t *shape,
                                size_t rank, const rondo_state_options *options, size_t part[2]) {
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "shape", shape));
  if (program->ranks.communicator == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                      "%s: shard_rows: %s has no ranks: call rondo_program_data_parallel before", call, program->label);
  if (rank != 2)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                      "%s: shard_rows: the shape has %zu dimension(s): give 2, [rows, columns]", call, rank);
  if (type != RONDO_F32 && type != RONDO_F16 && type != RONDO_BF16)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "%s: shard_rows: the type is %s: give f32, f16 or bf16", call, rondo_type_name(type));
  if (!(options->capacity_factor >= 0))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: shard_rows: capacity_factor is %g: give at least 0", call, (double)options->capacity_factor);
  part[0] = shape[0] / program->ranks.count + (shape[0] % program->ranks.count != 0);
  part[1] = shape[1];
  return RONDO_OK;
}

/* For one owner. */
static size_t slots_of(const rondo_program *program, const rondo_program_value *table, size_t indices) {
  const double mean = (double)indices / program->ranks.count;
  const double slots = ceil((double)table->capacity_factor * mean);
  return slots >= 1 && slots < (double)indices ? (size_t)slots : indices;
}

size_t rondo_table_received(const rondo_program *program, uint32_t table, size_t indices) {
  size_t received;
  const size_t slots = slots_of(program, &program->values.items[table], indices);
  return rondo_checked_multiply(slots, program->ranks.count, &received) ? received : SIZE_MAX;
}

rondo_status rondo_table_fetch(rondo_program *program, uint32_t offsets, uint32_t *inout_table,
                               uint32_t *inout_indices) {
  const rondo_program_value *table = &program->values.items[*inout_table];
  if (table->table_rows == 0) return RONDO_OK;
  const size_t indices = rondo_shape_elements(rondo_program_shape(program, *inout_indices));
  const rondo_attributes attributes = {.sizes = {[RONDO_ROUTE_RANKS] = program->ranks.count,
                                                 [RONDO_ROUTE_SLOTS] = slots_of(program, table, indices),
                                                 [RONDO_ROUTE_PART] = table->shape.dims[0],
                                                 [RONDO_ROUTE_ROWS] = table->table_rows},
                                       .size_count = RONDO_ROUTE_SIZES};
  const uint32_t looked_up[] = {*inout_indices, offsets};
  uint32_t routed[RONDO_MAX_RESULTS], inputs[] = {*inout_table, 0}, rows;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_route_indices, looked_up, 2, &attributes, routed));
  RONDO_TRY(rondo_program_add_collective(program, &rondo_operator_all_to_all, routed[0], &inputs[1]));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_embedding, inputs, 2, NULL, &rows));
  RONDO_TRY(rondo_program_add_collective(program, &rondo_operator_all_to_all, rows, inout_table));
  *inout_indices = routed[1];
  return RONDO_OK;
}

rondo_status rondo_table_check_reader(const rondo_program *program, const rondo_operation *operation) {
  const bool is_public = operation->row->types != 0;
  if (!is_public || operation->row == &rondo_operator_embedding) return RONDO_OK;
  RONDO_EACH_INPUT(k, operation) {
    if (program->values.items[operation->inputs[k]].table_rows == 0) continue;
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "%s is a table whose rows are divided between ranks (shard_rows): only embedding and "
                                "embedding_bag read it, as their table",
                                operation->row->inputs[k]);
  }
  return RONDO_OK;
}
