/* SPDX-License-Identifier: MIT
 * cast: converts elements to another type. Integers are converted to int64_t first, all other types to F32. Threads: as
 * tensor/program/operator.h says.
 */
#include "tensor/operators/elementwise/cast.h"

#include "tensor/operators/common/joined.h"

enum { TYPE }; /* sizes */

static bool is_float(rondo_type type) { return !rondo_is_integer(type); }

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* The range of an integer type: lowest <= x < limit. Floats represent both exactly. */
typedef struct integer_range {
  float lowest, limit;
  int64_t highest;
} integer_range;

RONDO_INLINE integer_range range_of(rondo_type type) {
  switch (type) {
    case RONDO_I8:
      return (integer_range){-128, 128, INT8_MAX};
    case RONDO_U8:
      return (integer_range){0, 256, UINT8_MAX};
    case RONDO_I32:
      return (integer_range){-0x1p31f, 0x1p31f, INT32_MAX};
    default:
      return (integer_range){-0x1p63f, 0x1p63f, INT64_MAX};
  }
}

RONDO_INLINE int64_t truncate_to(integer_range range, float x) {
  if (x >= range.limit) return range.highest;
  if (x < range.lowest) return (int64_t)range.lowest;
  return x == x ? (int64_t)x : 0;
}

RONDO_INLINE void floats_of(const int64_t *restrict x, float *restrict y, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = (float)x[i];
}

RONDO_INLINE void integers_of(rondo_type type, const float *restrict x, int64_t *restrict y, size_t count) {
  const integer_range range = range_of(type);
  if (type == RONDO_BOOL)
    for (size_t i = 0; i < count; i++) y[i] = x[i] != 0;
  else
    for (size_t i = 0; i < count; i++) y[i] = truncate_to(range, x[i]);
}

/* At most RONDO_CHUNK elements. */
RONDO_VECTORISED(cast_chunk, (rondo_type from, rondo_type to, const void *x, void *y, size_t first, size_t count),
                 (from, to, x, y, first, count)) {
  float floats[2][RONDO_CHUNK];
  int64_t integers[RONDO_CHUNK];
  if (is_float(to)) {
    float *chunk = rondo_chunk_of(to, y, first, floats[1]);
    if (is_float(from)) {
      memcpy(chunk, rondo_load_chunk(from, x, first, count, floats[0]), count * sizeof *chunk);
    } else {
      floats_of(rondo_load_integers(from, x, first, count, integers), chunk, count);
    }
    rondo_store_chunk(to, y, first, count, chunk);
  } else if (is_float(from)) {
    integers_of(to, rondo_load_chunk(from, x, first, count, floats[0]), integers, count);
    rondo_store_integers(to, y, first, count, integers);
  } else {
    rondo_store_integers(to, y, first, count, rondo_load_integers(from, x, first, count, integers));
  }
}

/* Processors convert vectors of 32 bits. */
RONDO_VECTORISED(small_to_floats, (const int64_t *restrict x, float *restrict y, size_t count), (x, y, count)) {
  RONDO_EACH_LANE(i, lane, count, y[i] = (float)(int32_t)x[i]);
}

/* A NaN becomes 0, which is in the range. */
RONDO_VECTORISED(floats_to_bytes, (const float *restrict x, integer_range range, int64_t *restrict y, size_t count),
                 (x, range, y, count)) {
  const float lowest = range.lowest, highest = (float)range.highest;
  RONDO_EACH_LANE(i, lane, count, {
    const float number = x[i] == x[i] ? x[i] : 0, limited = number > lowest ? number : lowest;
    y[i] = (int32_t)(limited < highest ? limited : highest);
  });
}

static bool is_small(rondo_type type) { return type == RONDO_I8 || type == RONDO_U8; }

/* Converts numbers to numbers of the other type; between two float or two integer types it copies them. */
static void compute_cast(const rondo_chunk_call *call) {
  const bool from_float = is_float(call->types[0]), to_float = is_float(call->result_type);
  if (from_float && is_small(call->result_type))
    floats_to_bytes(call->terms[0], range_of(call->result_type), call->result, call->count);
  else if (from_float && !to_float)
    integers_of(call->result_type, call->terms[0], call->result, call->count);
  else if (is_small(call->types[0]) && to_float)
    small_to_floats(call->terms[0], call->result, call->count);
  else if (!from_float && to_float)
    floats_of(call->terms[0], call->result, call->count);
  else
    memcpy(call->result, call->terms[0], call->count * (to_float ? sizeof(float) : sizeof(int64_t)));
}

/* `args` begins at x and y. */
static void cast_span(rondo_type from, rondo_type to, void *const *args, rondo_span span) {
  RONDO_EACH_CHUNK(at, length, span.first, span.last)
    cast_chunk(from, to, RONDO_ARG(const void *, 0), RONDO_ARG(void *, 1), at, length);
}

static void cast_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_type from = (rondo_type)RONDO_ARG(uint32_t, 2);
  const rondo_type to = (rondo_type)RONDO_ARG(uint32_t, 3);
  const size_t count = RONDO_ARG(size_t, 4);
  cast_span(from, to, args, rondo_blocks_span(blocks, count, RONDO_LANES));
}

static void cast_joined_cpu(rondo_blocks blocks, void *const *args) {
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_joined_share share = rondo_joined_share_of(args[0], block);
    cast_span(share.type, (rondo_type)RONDO_ARG(uint32_t, 1), args + 2 + 2 * share.operation, share.span);
  }
}

#define POINTERS RONDO_READS, RONDO_WRITES

static const rondo_parameter joined_parameters[] = {RONDO_SCALAR(rondo_joined_table), RONDO_SCALAR(uint32_t),
                                                    RONDO_JOINED_PARAMETERS(POINTERS)};

RONDO_UNTYPED_KERNEL(cast, cast, POINTERS, RONDO_SCALAR(uint32_t), RONDO_SCALAR(uint32_t), RONDO_SCALAR(size_t));
RONDO_UNTYPED_KERNEL_LIST(cast_joined, cast, joined_parameters);

/* Row -------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_cast(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *shape = rondo_operation_input(program, operation, 0);
  const rondo_type type = (rondo_type)operation->attributes.sizes[TYPE];
  return rondo_shape_make("cast", type, shape->dims, shape->rank, &results[0]);
}

/* The cast of an integer has no gradient. */
static rondo_status differentiate_cast(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_shape *shape = rondo_operation_input(program, operation, 0);
  if (!rondo_shape_is_float(shape)) return RONDO_OK;
  input_gradients[0] = result_gradients[0];
  return rondo_program_add_cast(program, shape->type, &input_gradients[0]);
}

rondo_status rondo_emit_cast(rondo_emitter *emitter, rondo_type from, rondo_type to, const void *x, void *y,
                             size_t count) {
  const uint32_t types[] = {from, to};
  return rondo_emit_kernel(emitter, &cast_code, rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN),
                           RONDO_ARGS(&x, &y, &types[0], &types[1], &count));
}

static rondo_status emit_cast(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[0]);
  const size_t count = rondo_shape_elements(shape);
  const uint32_t from = shape->type, to = (uint32_t)operation->attributes.sizes[TYPE];
  return rondo_emit_operands(
      emitter, operation, &cast_code, rondo_emit_grid(emitter, count, RONDO_PACKED_GRAIN),
      RONDO_OPERANDS(RONDO_INPUT(0), RONDO_RESULT(0), RONDO_OBJECT(from), RONDO_OBJECT(to), RONDO_OBJECT(count)));
}

static rondo_status emit_joined(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count) {
  static const uint32_t values[] = {0, RONDO_RESULT_NUMBER(0)};
  const rondo_joined_kernel kernel = {&cast_joined_code, values, 2, 0, RONDO_PACKED_GRAIN, NULL, RONDO_MAX_JOINED};
  const uint32_t to = (uint32_t)operations[0]->attributes.sizes[TYPE];
  return rondo_emit_joined(emitter, &kernel, operations, count, RONDO_OPERANDS(RONDO_OBJECT(to)));
}

/* Casts of parameters are joined into few kernels. */
static const rondo_join cast_join = {.max = RONDO_MAX_JOINED, .is_early = true, .emit = emit_joined};

RONDO_OPERATOR(cast, .types = RONDO_STORED_TYPES, .inputs = {"value"}, .required = 1, .result_count = 1,
               .infer = infer_cast, .differentiate = differentiate_cast, .emit = emit_cast, .join = &cast_join,
               .element = RONDO_ELEMENT(compute_cast, cast, cast));

rondo_status rondo_op_cast(rondo_program *program, rondo_value value, rondo_type type, rondo_value *out_value) {
  const rondo_attributes attributes = {.sizes = {[TYPE] = type}, .size_count = 1};
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin_of(program, "cast", value, "value", out_value, &index));
  if (rondo_program_shape(program, index)->type != type)
    return rondo_program_apply(program, &rondo_operator_cast, &value, 1, &attributes, out_value);
  *out_value = value;
  return RONDO_OK;
}
