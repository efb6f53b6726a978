/* SPDX-License-Identifier: MIT
 * tril and triu keep a triangle of each matrix and set the other elements to 0; eye is a matrix with ones on a
 * diagonal. They compare the numbers of rows and columns, which are one fused kernel with the selection. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/common/composition.h"

/* Numbers of rows, [rows, 1], plus the diagonal; and of columns, [columns]. Equal ones are on the diagonal. */
static rondo_status add_positions(rondo_program *program, size_t rows, size_t columns, int64_t diagonal,
                                  rondo_value *out_rows, rondo_value *out_columns) {
  RONDO_TRY(rondo_compose_positions(program, rows, (double)diagonal, 0, 2, out_rows));
  return rondo_compose_positions(program, columns, 0, 1, 2, out_columns);
}

/* A diagonal beyond the matrix is the nearest one that is outside of it. */
static int64_t within(int64_t diagonal, size_t rows, size_t columns) {
  const int64_t lowest = -(int64_t)rows, highest = (int64_t)columns;
  return diagonal < lowest ? lowest : diagonal > highest ? highest : diagonal;
}

typedef rondo_status (*compare_op)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value);

static rondo_status add_triangle(rondo_program *program, rondo_value value, int64_t diagonal, compare_op keeps,
                                 rondo_value *out_value) {
  const rondo_shape shape = rondo_shape_at(program, value);
  const size_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  rondo_value row, column, is_kept, zero;
  RONDO_TRY(add_positions(program, rows, columns, within(diagonal, rows, columns), &row, &column));
  RONDO_TRY(keeps(program, column, row, &is_kept));
  RONDO_TRY(rondo_compose_number(program, shape.type, 0, &zero));
  return rondo_op_select(program, is_kept, value, zero, out_value);
}

static rondo_status apply_triangle(rondo_program *program, const char *call, rondo_value value, int64_t diagonal,
                                   compare_op keeps, rondo_value *out_value) {
  char text[RONDO_SHAPE_TEXT];
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, call, out_value));
  RONDO_TRY(rondo_given_shape(program, value, call, "value", &shape));
  if (shape.rank < 2)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: the value is %s; it must be matrices [.., m, n]",
                      call, rondo_shape_text(text, &shape));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_triangle(program, value, diagonal, keeps, &made);
  return rondo_compose_end(program, call, mark, status, made, out_value);
}

rondo_status rondo_op_tril(rondo_program *program, rondo_value value, int64_t diagonal, rondo_value *out_value) {
  return apply_triangle(program, "tril", value, diagonal, rondo_op_less_equal, out_value);
}

rondo_status rondo_op_triu(rondo_program *program, rondo_value value, int64_t diagonal, rondo_value *out_value) {
  return apply_triangle(program, "triu", value, diagonal, rondo_op_greater_equal, out_value);
}

static rondo_status add_eye(rondo_program *program, rondo_type type, size_t rows, size_t columns, int64_t diagonal,
                            rondo_value *out_value) {
  rondo_value row, column, is_one;
  RONDO_TRY(add_positions(program, rows, columns, within(diagonal, rows, columns), &row, &column));
  RONDO_TRY(rondo_op_equal(program, column, row, &is_one));
  return rondo_op_cast(program, is_one, type, out_value);
}

rondo_status rondo_op_eye(rondo_program *program, rondo_type type, size_t rows, size_t columns, int64_t diagonal,
                          rondo_value *out_value) {
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "eye", out_value));
  RONDO_TRY(rondo_shape_make("eye", type, (size_t[]){rows, columns}, 2, &shape));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_eye(program, type, rows, columns, diagonal, &made);
  return rondo_compose_end(program, "eye", mark, status, made, out_value);
}
