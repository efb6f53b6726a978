/* SPDX-License-Identifier: MIT
 * non_zero: the places of the elements that are not 0, in their order, and how many there are. The number of results is
 * a bound; those after the count are 0. A first kernel counts the elements of tiles, and a second one writes the places
 * of each tile after those of the tiles before. compress takes the parts of a value at such places. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/composition.h"
#include "tensor/operators/elementwise/broadcast.h"

enum { BOUND };         /* sizes */
enum { PLACES, COUNT }; /* results */

#define TILE 2048 /* also of non_zero.cu */

/* A scalar argument of the kernels; without padding. */
typedef struct non_zero_shape {
  size_t elements, bound, rank;
  size_t dims[RONDO_MAX_DIMENSIONS];
} non_zero_shape;

static size_t tile_count(size_t elements) { return rondo_divide_up(elements, TILE); }

static bool is_set(bool is_integer, const void *chunk, size_t i) {
  return is_integer ? ((const int64_t *)chunk)[i] != 0 : ((const float *)chunk)[i] != 0;
}

static void non_zero_count_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const non_zero_shape *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  int64_t *counts = RONDO_ARG(int64_t *, 2);
  rondo_chunk_buffer buffer;
  RONDO_EACH_ITEM(tile, blocks, tile_count(shape->elements)) {
    int64_t count = 0;
    RONDO_EACH_CHUNK(at, length, tile * TILE, rondo_smaller((tile + 1) * TILE, shape->elements)) {
      const void *chunk = rondo_load_numbers(type, x, at, length, &buffer);
      for (size_t i = 0; i < length; i++) count += is_set(rondo_is_integer(type), chunk, i);
    }
    counts[tile] = count;
  }
}

static size_t sum_of(const int64_t *counts, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += (size_t)counts[i];
  return sum;
}

/* The place of an element, one number for each dimension. */
static void put_place(const non_zero_shape *shape, size_t element, int64_t *places, size_t number) {
  for (size_t d = shape->rank; d > 0; d--) {
    places[(d - 1) * shape->bound + number] = (int64_t)(element % shape->dims[d - 1]);
    element /= shape->dims[d - 1];
  }
}

/* The places of a tile; `number` is the number of its first one. Returns that of the next tile. */
static size_t place_tile(rondo_type type, const non_zero_shape *shape, const void *x, size_t tile, size_t number,
                         int64_t *places) {
  rondo_chunk_buffer buffer;
  RONDO_EACH_CHUNK(at, length, tile * TILE, rondo_smaller((tile + 1) * TILE, shape->elements)) {
    const void *chunk = rondo_load_numbers(type, x, at, length, &buffer);
    for (size_t i = 0; i < length; i++) {
      if (!is_set(rondo_is_integer(type), chunk, i)) continue;
      if (number < shape->bound) put_place(shape, at + i, places, number);
      number++;
    }
  }
  return number;
}

static void non_zero_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const non_zero_shape *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  const int64_t *counts = RONDO_ARG(const int64_t *, 2);
  int64_t *places = RONDO_ARG(int64_t *, 3);
  const size_t tiles = tile_count(shape->elements), total = sum_of(counts, tiles);
  const rondo_span span = rondo_blocks_span(blocks, tiles, 1);
  size_t number = sum_of(counts, span.first);
  for (size_t tile = span.first; tile < span.last; tile++) number = place_tile(type, shape, x, tile, number, places);
  if (blocks.first > 0) return;
  *RONDO_ARG(int64_t *, 4) = (int64_t)total;
  for (size_t d = 0; d < shape->rank && total < shape->bound; d++)
    memset(places + d * shape->bound + total, 0, (shape->bound - total) * sizeof *places);
}

RONDO_NUMBER_KERNEL(non_zero_count, non_zero, RONDO_SCALAR(non_zero_shape), RONDO_READS, RONDO_WRITES);
RONDO_NUMBER_KERNEL(non_zero, non_zero, RONDO_SCALAR(non_zero_shape), RONDO_READS, RONDO_READS, RONDO_WRITES,
                    RONDO_WRITES);

static rondo_status infer_non_zero(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t bound = operation->attributes.sizes[BOUND];
  if (bound > rondo_shape_elements(value))
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the bound is %zu, but there are %zu elements: use 0 for as many", bound,
                                rondo_shape_elements(value));
  results[PLACES] = rondo_shape_matrix(RONDO_I64, value->rank == 0 ? 1 : value->rank, bound);
  results[COUNT] = rondo_shape_scalar(RONDO_I64);
  return RONDO_OK;
}

static rondo_status prepare_non_zero(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                     size_t *out_workspace_bytes) {
  const rondo_shape *value = rondo_operation_input(program, &program->operations.items[operation], 0);
  (void)resources;
  *out_workspace_bytes = tile_count(rondo_shape_elements(value)) * sizeof(int64_t);
  return RONDO_OK;
}

static rondo_status emit_non_zero(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  non_zero_shape shape = {.elements = rondo_shape_elements(value),
                          .bound = operation->attributes.sizes[BOUND],
                          .rank = value->rank == 0 ? 1 : value->rank};
  for (uint32_t d = 0; d < RONDO_MAX_DIMENSIONS; d++) shape.dims[d] = d < value->rank ? value->dims[d] : 1;
  const rondo_grid grid = rondo_emit_grid(emitter, tile_count(shape.elements), (rondo_grain){8, 1});
  RONDO_TRY(rondo_emit_operands(emitter, operation, &non_zero_count_code[value->type], grid,
                                RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_WORKSPACE)));
  return rondo_emit_operands(
      emitter, operation, &non_zero_code[value->type], grid,
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_WORKSPACE, RONDO_RESULT(PLACES), RONDO_RESULT(COUNT)));
}

RONDO_OPERATOR(non_zero, .types = RONDO_ALL_TYPES, .inputs = {"value"}, .required = 1, .result_count = 2,
               .infer = infer_non_zero, .prepare = prepare_non_zero, .emit = emit_non_zero);

rondo_status rondo_op_non_zero(rondo_program *program, rondo_value value, size_t bound, rondo_value *out_indices,
                               rondo_value *out_count) {
  rondo_shape shape;
  if (out_indices != NULL) *out_indices = (rondo_value){0};
  RONDO_TRY(rondo_require("non_zero", "out_count", out_count));
  *out_count = (rondo_value){0};
  RONDO_TRY(rondo_program_begin(program, "non_zero", out_indices));
  RONDO_TRY(rondo_given_shape(program, value, "non_zero", "value", &shape));
  const rondo_attributes attributes = {.sizes = {bound == 0 ? rondo_shape_elements(&shape) : bound}, .size_count = 1};
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_non_zero, &value, 1, &attributes, out_indices));
  *out_count = rondo_program_tag(program, program->operations.items[program->operations.count - 1].results[COUNT]);
  return RONDO_OK;
}

/* compress --------------------------------------------------------------------------------------------------------- */

typedef struct compress_call {
  rondo_value value, condition;
  rondo_shape shape; /* of the value */
  size_t dimension, bound;
} compress_call;

static rondo_status add_compress(rondo_program *program, const compress_call *of, rondo_value *out_value,
                                 rondo_value *out_count) {
  rondo_value places, positions, is_there, zero;
  RONDO_TRY(rondo_op_non_zero(program, of->condition, of->bound, &places, out_count));
  RONDO_TRY(rondo_op_reshape(program, places, &of->bound, 1, &places));
  RONDO_TRY(rondo_op_index_select(program, of->value, places, of->dimension, out_value));
  RONDO_TRY(rondo_compose_positions(program, of->bound, 0, of->dimension, of->shape.rank, &positions));
  RONDO_TRY(rondo_op_less(program, positions, *out_count, &is_there));
  RONDO_TRY(rondo_compose_number(program, of->shape.type, 0, &zero));
  return rondo_op_select(program, is_there, *out_value, zero, out_value);
}

static rondo_status check_compress(const rondo_program *program, compress_call *of) {
  char texts[2][RONDO_SHAPE_TEXT];
  rondo_shape condition;
  RONDO_TRY(rondo_given_shape(program, of->value, "compress", "value", &of->shape));
  RONDO_TRY(rondo_given_shape(program, of->condition, "compress", "condition", &condition));
  const bool has_type = condition.type == RONDO_BOOL;
  if (!has_type || of->dimension >= of->shape.rank || condition.rank != 1 ||
      condition.dims[0] > of->shape.dims[of->dimension] || of->bound > condition.dims[0])
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, has_type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
        "compress: condition %s and bound %zu do not fit dimension %zu of value %s: the condition is bool "
        "[n], n and the bound are at most the size of the dimension, and the bound is at most n",
        rondo_shape_text(texts[0], &condition), of->bound, of->dimension, rondo_shape_text(texts[1], &of->shape));
  if (of->bound == 0) of->bound = condition.dims[0];
  return RONDO_OK;
}

rondo_status rondo_op_compress(rondo_program *program, rondo_value value, rondo_value condition, size_t dimension,
                               size_t bound, rondo_value *out_value, rondo_value *out_count) {
  compress_call of = {.value = value, .condition = condition, .dimension = dimension, .bound = bound};
  rondo_value made = {0}, count = {0};
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_require("compress", "out_count", out_count));
  *out_count = (rondo_value){0};
  RONDO_TRY(rondo_program_begin(program, "compress", out_value));
  RONDO_TRY(check_compress(program, &of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_compress(program, &of, &made, &count);
  if (status == RONDO_OK) *out_count = count;
  return rondo_compose_end(program, "compress", mark, status, made, out_value);
}
