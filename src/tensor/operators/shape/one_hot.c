/* SPDX-License-Identifier: MIT
 * one_hot: for each index, a row of zeros with a one at the index. A wrong index makes the run fail and gives zeros.
 * one_hot_values has other numbers than 0 and 1, which are values, along any dimension; it compares positions.
 * Threads: as tensor/program/operator.h says.
 */
#include <string.h>

#include "tensor/operators/common/composition.h"

enum { SIZE, TYPE }; /* sizes */

/* A scalar argument of the kernel; without padding. */
typedef struct one_hot_shape {
  size_t count, size;
  uint64_t one; /* the bits of a 1 */
  uint32_t wide_indices, unit_bytes;
} one_hot_shape;

static uint64_t one_of(rondo_type type) {
  return type == RONDO_F32 ? 0x3f800000u : type == RONDO_F16 ? 0x3c00u : type == RONDO_BF16 ? 0x3f80u : 1u;
}

static void put_one(const one_hot_shape *shape, void *y, size_t at) {
  if (shape->unit_bytes == 1) ((uint8_t *)y)[at] = (uint8_t)shape->one;
  if (shape->unit_bytes == 2) ((uint16_t *)y)[at] = (uint16_t)shape->one;
  if (shape->unit_bytes == 4) ((uint32_t *)y)[at] = (uint32_t)shape->one;
  if (shape->unit_bytes == 8) ((uint64_t *)y)[at] = shape->one;
}

static void one_hot_cpu(rondo_blocks blocks, void *const *args) {
  const one_hot_shape *shape = args[0];
  const void *indices = RONDO_ARG(const void *, 1);
  char *y = RONDO_ARG(char *, 2);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 3);
  const size_t row_bytes = shape->size * shape->unit_bytes;
  RONDO_EACH_ITEM(i, blocks, shape->count) {
    const int64_t index = rondo_index_at(indices, shape->wide_indices, i);
    memset(y + i * row_bytes, 0, row_bytes);
    if (!rondo_check_index(cell, i, index, shape->size)) continue;
    put_one(shape, y, i * shape->size + (size_t)index);
  }
}

RONDO_UNTYPED_KERNEL(one_hot, one_hot, RONDO_SCALAR(one_hot_shape), RONDO_READS, RONDO_WRITES, RONDO_CHECK_PARAMETERS);

static rondo_status infer_one_hot(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_require_indices(program, operation, 0, RONDO_ANY_RANK));
  const rondo_shape *indices = rondo_operation_input(program, operation, 0);
  if (indices->rank == RONDO_MAX_DIMENSIONS) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the result would have %d dimensions",
                                RONDO_MAX_DIMENSIONS + 1);
  }
  if (indices->type == RONDO_I32 && sizes[SIZE] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a row has %zu elements, more than an i32 can count: use i64 indices", sizes[SIZE]);
  }
  size_t dims[RONDO_MAX_DIMENSIONS];
  memcpy(dims, indices->dims, sizeof dims);
  dims[indices->rank] = sizes[SIZE];
  return rondo_shape_make("one_hot", (rondo_type)sizes[TYPE], dims, indices->rank + 1, &results[0]);
}

static rondo_status emit_one_hot(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *of_indices = rondo_emit_shape(emitter, operation->inputs[0]);
  const rondo_shape *result = rondo_emit_shape(emitter, operation->results[0]);
  const one_hot_shape shape = {.count = rondo_shape_elements(of_indices),
                               .size = rondo_shape_last(result),
                               .one = one_of(result->type),
                               .wide_indices = of_indices->type == RONDO_I64,
                               .unit_bytes = (uint32_t)rondo_type_bytes(result->type)};
  const size_t count = rondo_emit_is_cuda(emitter) ? shape.count * shape.size : shape.count;
  return rondo_emit_operands(
      emitter, operation, &one_hot_code,
      rondo_emit_grid(emitter, count, (rondo_grain){8192 / shape.size + 1, RONDO_CUDA_THREADS}),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(0), RONDO_CHECK(0, shape.size)));
}

RONDO_OPERATOR(one_hot, .types = RONDO_TYPE_BIT(RONDO_I32) | RONDO_TYPE_BIT(RONDO_I64), .inputs = {"indices"},
               .required = 1, .result_count = 1, .checks_indices = 1, .index_rule = "its row is zeros",
               .infer = infer_one_hot, .emit = emit_one_hot);

rondo_status rondo_op_one_hot(rondo_program *program, rondo_value indices, size_t size, rondo_type type,
                              rondo_value *out_value) {
  const rondo_attributes attributes = {.sizes = {size, (size_t)type}, .size_count = 2};
  return rondo_program_apply(program, &rondo_operator_one_hot, &indices, 1, &attributes, out_value);
}

/* one_hot_values --------------------------------------------------------------------------------------------------- */

typedef struct one_hot_call {
  rondo_value indices, off, on;
  rondo_shape shape, values; /* of the indices, and of both values */
  size_t size, dimension;
} one_hot_call;

static rondo_status add_values(rondo_program *program, const one_hot_call *of, rondo_value *out_value) {
  const uint32_t rank = of->shape.rank + 1;
  rondo_shape wide = {.rank = rank};
  rondo_value indices, positions, is_on, off, on;
  for (uint32_t d = 0; d < rank; d++)
    wide.dims[d] = d == of->dimension ? 1 : of->shape.dims[d < of->dimension ? d : d - 1];
  RONDO_TRY(rondo_op_cast(program, of->indices, RONDO_I64, &indices));
  RONDO_TRY(rondo_op_wrap_indices(program, indices, of->size, &indices));
  RONDO_TRY(rondo_compose_reshape(program, indices, &wide, &indices));
  RONDO_TRY(rondo_compose_positions(program, of->size, 0, of->dimension, rank, &positions));
  RONDO_TRY(rondo_op_equal(program, indices, positions, &is_on));
  RONDO_TRY(rondo_op_reshape(program, of->off, NULL, 0, &off));
  RONDO_TRY(rondo_op_reshape(program, of->on, NULL, 0, &on));
  return rondo_op_select(program, is_on, on, off, out_value);
}

static rondo_status check_values(const rondo_program *program, one_hot_call *of) {
  static const char name[] = "one_hot_values";
  char texts[3][RONDO_SHAPE_TEXT];
  rondo_shape on;
  RONDO_TRY(rondo_given_shape(program, of->indices, name, "indices", &of->shape));
  RONDO_TRY(rondo_given_shape(program, of->off, name, "off", &of->values));
  RONDO_TRY(rondo_given_shape(program, of->on, name, "on", &on));
  const bool has_type = (of->shape.type == RONDO_I32 || of->shape.type == RONDO_I64) && on.type == of->values.type;
  if (has_type && of->shape.rank < RONDO_MAX_DIMENSIONS && of->dimension <= of->shape.rank && of->size > 0 &&
      rondo_shape_elements(&on) == 1 && rondo_shape_elements(&of->values) == 1)
    return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, has_type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
      "%s: indices %s, off %s and on %s, with %zu positions in dimension %zu of the result: indices are i32 "
      "or i64 with at most %d dimensions, and off and on are one element each, of one type",
      name, rondo_shape_text(texts[0], &of->shape), rondo_shape_text(texts[1], &of->values),
      rondo_shape_text(texts[2], &on), of->size, of->dimension, RONDO_MAX_DIMENSIONS - 1);
}

rondo_status rondo_op_one_hot_values(rondo_program *program, rondo_value indices, size_t size, size_t dimension,
                                     rondo_value off, rondo_value on, rondo_value *out_value) {
  one_hot_call of = {.indices = indices, .off = off, .on = on, .size = size, .dimension = dimension};
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "one_hot_values", out_value));
  RONDO_TRY(check_values(program, &of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_values(program, &of, &made);
  return rondo_compose_end(program, "one_hot_values", mark, status, made, out_value);
}
