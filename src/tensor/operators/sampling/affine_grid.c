/* SPDX-License-Identifier: MIT
 * affine_grid: the product of the coordinates of an image's elements with matrices, as
 * torch.nn.functional.affine_grid. In F32. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/composition.h"

#define MOST_AXES 3

/* The coordinates along an axis, repeated for all elements: [1, .., 1]. */
static rondo_status add_axis(rondo_program *program, const size_t *size, size_t axes, size_t axis, bool aligns,
                             rondo_value *out_value) {
  const double count = (double)size[axis];
  const double first = aligns ? (size[axis] == 1 ? 0 : -1) : 1 / count - 1;
  const double step = aligns ? (size[axis] == 1 ? 0 : 2 / (count - 1)) : 2 / count;
  size_t line[MOST_AXES + 1] = {1, 1, 1, 1}, all[MOST_AXES + 1];
  line[axis] = size[axis];
  for (size_t i = 0; i < axes; i++) all[i] = size[i];
  all[axes] = 1;
  RONDO_TRY(rondo_op_arange(program, RONDO_F32, size[axis], first, step, out_value));
  RONDO_TRY(rondo_op_reshape(program, *out_value, line, axes + 1, out_value));
  return rondo_op_expand(program, *out_value, all, axes + 1, out_value);
}

static rondo_status add_grid(rondo_program *program, rondo_value theta, const rondo_shape *shape, const size_t *size,
                             bool aligns, rondo_value *out_value) {
  const size_t axes = shape->dims[1];
  size_t all[MOST_AXES + 2] = {shape->dims[0], 1, 1, 1, 1}, elements = 1;
  rondo_value columns[MOST_AXES + 1], grid;
  for (size_t i = 0; i < axes; i++) {
    RONDO_TRY(add_axis(program, size, axes, axes - 1 - i, aligns, &columns[i])); /* x first */
    all[1 + i] = size[i];
    elements *= size[i];
  }
  all[1 + axes] = 1;
  RONDO_TRY(rondo_op_full(program, RONDO_F32, all + 1, axes + 1, 1, &columns[axes]));
  RONDO_TRY(rondo_op_concat(program, columns, axes + 1, axes, &grid));
  RONDO_TRY(rondo_op_reshape(program, grid, (const size_t[]){1, elements, axes + 1}, 3, &grid));
  RONDO_TRY(rondo_op_cast(program, theta, RONDO_F32, &theta));
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  RONDO_TRY(rondo_op_matmul_with(program, grid, theta, &transposed, &grid));
  all[1 + axes] = axes;
  RONDO_TRY(rondo_op_reshape(program, grid, all, axes + 2, &grid));
  return rondo_op_cast(program, grid, shape->type, out_value);
}

rondo_status rondo_op_affine_grid(rondo_program *program, rondo_value theta, const size_t *size, bool align_corners,
                                  rondo_value *out_value) {
  char text[RONDO_SHAPE_TEXT];
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "affine_grid", out_value));
  RONDO_TRY(rondo_given_shape(program, theta, "affine_grid", "theta", &shape));
  RONDO_TRY(rondo_require("affine_grid", "size", size));
  const bool is_float = rondo_shape_is_float(&shape);
  const bool has_rank = shape.rank == 3 && shape.dims[2] == shape.dims[1] + 1;
  if (!is_float || !has_rank || (shape.dims[1] != 2 && shape.dims[1] != 3))
    return rondo_fail(RONDO_INVALID_ARGUMENT, is_float ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                      "affine_grid: theta is %s; it must be [n, 2, 3] or [n, 3, 4] of floats",
                      rondo_shape_text(text, &shape));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_grid(program, theta, &shape, size, align_corners, &made);
  return rondo_compose_end(program, "affine_grid", mark, status, made, out_value);
}
