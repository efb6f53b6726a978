/* SPDX-License-Identifier: MIT
 * ravel_indices: the numbers of rows that indices of several dimensions name. Negative indices count from the end. A
 * wrong index makes the run fail and gives -1. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/embedding/ravel_indices.h"

#include <assert.h>
#include <string.h>

enum { PER_BATCH, FIRST_BOUND }; /* sizes; from the second on, the bound of each column */

/* A scalar argument of the kernel; without padding. */
typedef struct ravel_shape {
  size_t count, per_batch, columns;
  uint64_t is_wide;
  size_t bounds[RONDO_MAX_DIMENSIONS];
} ravel_shape;

/* The number of the row that row i of the indices names; -1: none. */
static int64_t ravel(const ravel_shape *shape, const void *indices, size_t i, rondo_index_cell cell) {
  int64_t row = (int64_t)(i / shape->per_batch);
  bool is_right = true;
  for (size_t c = 0; c < shape->columns; c++) {
    const int64_t index = rondo_index_at(indices, shape->is_wide != 0, i * shape->columns + c);
    const int64_t bound = (int64_t)shape->bounds[c];
    if (index < -bound || index >= bound)
      is_right = rondo_check_index(cell, i * shape->columns + c, index, shape->bounds[c]);
    row = is_right ? row * bound + (index < 0 ? index + bound : index) : 0;
  }
  return is_right ? row : -1;
}

static void ravel_indices_cpu(rondo_blocks blocks, void *const *args) {
  const ravel_shape *shape = args[0];
  const void *indices = RONDO_ARG(const void *, 1);
  int64_t *rows = RONDO_ARG(int64_t *, 2);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 3);
  RONDO_EACH_ITEM(i, blocks, shape->count) rows[i] = ravel(shape, indices, i, cell);
}

RONDO_UNTYPED_KERNEL(ravel_indices, ravel_indices, RONDO_SCALAR(ravel_shape), RONDO_READS, RONDO_WRITES,
                     RONDO_CHECK_PARAMETERS);

static rondo_status infer_ravel(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *indices = rondo_operation_input(program, operation, 0);
  RONDO_TRY(rondo_require_indices(program, operation, 0, RONDO_ANY_RANK));
  results[0] = rondo_shape_vector(RONDO_I64, rondo_shape_elements(indices) / rondo_shape_last(indices));
  return RONDO_OK;
}

static rondo_status emit_ravel(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *indices = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t *sizes = operation->attributes.sizes;
  ravel_shape shape = {
      .columns = rondo_shape_last(indices), .per_batch = sizes[PER_BATCH], .is_wide = indices->type == RONDO_I64};
  shape.count = rondo_shape_elements(indices) / shape.columns;
  memcpy(shape.bounds, sizes + FIRST_BOUND, shape.columns * sizeof *sizes);
  RONDO_TRY(rondo_emit_operands(
      emitter, operation, &ravel_indices_code, rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0), RONDO_CHECK(0, shape.bounds[0]))));
  rondo_emit_index_bounds(emitter, shape.bounds, (uint32_t)shape.columns);
  return RONDO_OK;
}

RONDO_OPERATOR(ravel_indices, .types = RONDO_INDICES, .inputs = {"indices"}, .required = 1, .result_count = 1,
               .checks_indices = 1, .index_rule = "nor from the end; it names nothing", .infer = infer_ravel,
               .emit = emit_ravel);

rondo_status rondo_add_ravel_indices(rondo_program *program, const rondo_nd_shape *nd, rondo_value indices,
                                     rondo_value *out_rows) {
  rondo_attributes attributes = {.size_count = FIRST_BOUND + (uint32_t)nd->columns};
  attributes.sizes[PER_BATCH] = nd->count / rondo_shape_elements_of(&nd->value, 0, nd->batch);
  memcpy(attributes.sizes + FIRST_BOUND, nd->value.dims + nd->batch, nd->columns * sizeof *nd->value.dims);
  return rondo_program_apply(program, &rondo_operator_ravel_indices, &indices, 1, &attributes, out_rows);
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static bool fits(const rondo_nd_shape *nd) {
  if (nd->indices.rank == 0 || nd->batch >= nd->indices.rank || nd->batch > nd->value.rank) return false;
  for (size_t d = 0; d < nd->batch; d++)
    if (nd->indices.dims[d] != nd->value.dims[d]) return false;
  return rondo_shape_last(&nd->indices) <= nd->value.rank - nd->batch;
}

rondo_status rondo_nd_shape_read(const char *call, const rondo_program *program, rondo_value value, rondo_value indices,
                                 size_t batch, rondo_nd_shape *out) {
  char texts[2][RONDO_SHAPE_TEXT];
  rondo_nd_shape nd = {.batch = batch};
  RONDO_TRY(rondo_given_shape(program, value, call, "value", &nd.value));
  RONDO_TRY(rondo_given_shape(program, indices, call, "indices", &nd.indices));
  if (nd.indices.type != RONDO_I32 && nd.indices.type != RONDO_I64)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE, "%s: the indices are %s; they must be i32 or i64",
                      call, rondo_type_name(nd.indices.type));
  if (!fits(&nd))
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
        "%s: indices %s do not fit value %s: after %zu common dimensions, the last one of the indices has "
        "an index for each of the value's next dimensions",
        call, rondo_shape_text(texts[0], &nd.indices), rondo_shape_text(texts[1], &nd.value), batch);
  nd.columns = rondo_shape_last(&nd.indices);
  nd.count = rondo_shape_elements(&nd.indices) / nd.columns;
  nd.rows = rondo_shape_elements_of(&nd.value, 0, batch + nd.columns);
  nd.inner = rondo_shape_elements_of(&nd.value, batch + nd.columns, nd.value.rank);
  *out = nd;
  return RONDO_OK;
}

rondo_status rondo_nd_part_shape(const char *call, const rondo_nd_shape *nd, rondo_shape *out) {
  const size_t first = nd->batch + nd->columns, named = nd->indices.rank - 1, rank = named + nd->value.rank - first;
  size_t dims[2 * RONDO_MAX_DIMENSIONS];
  memcpy(dims, nd->indices.dims, named * sizeof *dims);
  memcpy(dims + named, nd->value.dims + first, (nd->value.rank - first) * sizeof *dims);
  return rondo_shape_make(call, nd->value.type, dims, rank, out);
}
