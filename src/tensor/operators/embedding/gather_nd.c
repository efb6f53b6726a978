/* SPDX-License-Identifier: MIT
 * gather_nd: parts of a value that are named by indices of several dimensions, as rows of a table. And wrap_indices,
 * which makes indices of those that count from the end. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/embedding/ravel_indices.h"

/* embedding has the faster gradient, and takes floats alone. */
static rondo_status add_gather(rondo_program *program, const rondo_nd_shape *nd, const rondo_shape *part,
                               rondo_value value, rondo_value indices, rondo_value *out_value) {
  rondo_value table, rows, picked;
  RONDO_TRY(rondo_add_ravel_indices(program, nd, indices, &rows));
  RONDO_TRY(rondo_op_reshape(program, value, (size_t[]){nd->rows, nd->inner}, 2, &table));
  if (rondo_shape_is_float(&nd->value) && nd->rows <= INT32_MAX)
    RONDO_TRY(rondo_op_embedding(program, table, rows, &picked));
  else
    RONDO_TRY(rondo_op_index_select(program, table, rows, 0, &picked));
  return rondo_compose_reshape(program, picked, part, out_value);
}

rondo_status rondo_op_gather_nd(rondo_program *program, rondo_value value, rondo_value indices, size_t batch_dimensions,
                                rondo_value *out_value) {
  rondo_nd_shape nd;
  rondo_shape part;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "gather_nd", out_value));
  RONDO_TRY(rondo_nd_shape_read("gather_nd", program, value, indices, batch_dimensions, &nd));
  RONDO_TRY(rondo_nd_part_shape("gather_nd", &nd, &part));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_gather(program, &nd, &part, value, indices, &made);
  return rondo_compose_end(program, "gather_nd", mark, status, made, out_value);
}

/* wrap_indices ----------------------------------------------------------------------------------------------------- */

static rondo_status add_wrapped(rondo_program *program, rondo_value indices, rondo_type type, size_t size,
                                rondo_value *out_value) {
  rondo_value zero, of_size, is_negative, wrapped;
  RONDO_TRY(rondo_compose_number(program, type, 0, &zero));
  RONDO_TRY(rondo_compose_number(program, type, (double)size, &of_size));
  RONDO_TRY(rondo_op_less(program, indices, zero, &is_negative));
  RONDO_TRY(rondo_op_add(program, indices, of_size, &wrapped));
  return rondo_op_select(program, is_negative, wrapped, indices, out_value);
}

rondo_status rondo_op_wrap_indices(rondo_program *program, rondo_value indices, size_t size, rondo_value *out_value) {
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "wrap_indices", out_value));
  RONDO_TRY(rondo_given_shape(program, indices, "wrap_indices", "indices", &shape));
  if (shape.type != RONDO_I32 && shape.type != RONDO_I64)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "wrap_indices: the indices are %s; they must be i32 or i64", rondo_type_name(shape.type));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_wrapped(program, indices, shape.type, size, &made);
  return rondo_compose_end(program, "wrap_indices", mark, status, made, out_value);
}
