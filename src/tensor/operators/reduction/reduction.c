/* SPDX-License-Identifier: MIT
 * The shapes, CPU loops and kernels of reductions over dimensions. Threads: any.
 */
#include "tensor/operators/reduction/reduction.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "tensor/program/operation.h"

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static bool reduces(const rondo_operation *operation, uint32_t dimension) {
  const rondo_attributes *attributes = &operation->attributes;
  if (attributes->flags[RONDO_REDUCE_ALL]) return true;
  for (uint32_t i = 0; i < attributes->size_count; i++) {
    if (attributes->sizes[i] == dimension) return true;
  }
  return false;
}

/* Columns of a tile: the lanes of a warp, or a chunk. */
#define CUDA_TILE 32
#define CPU_TILE RONDO_CHUNK

/* Enough blocks to keep a large GPU busy, and the minimum number of elements (of a row) or rows in a part. */
#define ENOUGH_BLOCKS 512
#define MIN_OF_ROW 2048
#define MIN_ROWS 64
/* For a matrix with at most this many rows, one kernel sums the columns, even if they are few: this saves a launch, and
 * the sums of several matrices can be joined (reductions.c). */
#define MAX_ROWS 8192

static bool is_of_columns(const rondo_reduction *shape) { return shape->kept_strides[shape->kept_rank - 1] == 1; }

static size_t column_tiles(const rondo_reduction *shape, size_t tile) {
  const size_t columns = shape->kept_dims[shape->kept_rank - 1];
  return shape->kept / columns * rondo_divide_up(columns, tile);
}

static void cut(rondo_reduction *shape, size_t parts) {
  shape->part = parts < 2 ? shape->reduced : rondo_divide_up(shape->reduced, parts);
  shape->parts = rondo_divide_up(shape->reduced, shape->part);
}

/* On a CPU: enough blocks for its workers, and enough elements in each. */
#define CPU_BLOCKS 8
#define CPU_PART 65536

static void cut_for_cpu(rondo_reduction *shape) {
  const size_t blocks = is_of_columns(shape) ? column_tiles(shape, CPU_TILE) : shape->kept;
  cut(shape, rondo_smaller(CPU_BLOCKS / blocks, shape->kept * shape->reduced / blocks / CPU_PART));
}

static void cut_for_cuda(rondo_reduction *shape) {
  const bool of_columns = is_of_columns(shape);
  const size_t blocks = of_columns                          ? column_tiles(shape, CUDA_TILE)
                        : shape->reduced > RONDO_NARROW_ROW ? shape->kept
                                                            : rondo_divide_up(shape->kept, RONDO_CUDA_THREADS / 32);
  const size_t max_parts = shape->reduced / (of_columns ? MIN_ROWS : MIN_OF_ROW);
  cut(shape, rondo_smaller(ENOUGH_BLOCKS / blocks, max_parts));
}

/* Adds a dimension to a list, or widens its last. */
static void push(size_t dim, size_t stride, bool widens, size_t *rank, size_t *dims, size_t *strides) {
  assert(*rank < RONDO_MAX_DIMENSIONS && (!widens || *rank > 0));
  if (!widens) dims[(*rank)++] = 1;
  dims[*rank - 1] *= dim;
  strides[*rank - 1] = stride;
}

static rondo_reduction lay_out(const rondo_shape *x, const rondo_operation *operation, bool is_cuda) {
  rondo_reduction shape = {.kept = 1, .reduced = 1};
  size_t stride = rondo_shape_elements(x);
  int last = -1; /* whether the dimension before was reduced */
  for (uint32_t d = 0; d < x->rank; d++) {
    const size_t dim = x->dims[d];
    const bool is_reduced = reduces(operation, d);
    stride /= dim;
    if (dim == 1) continue;
    if (is_reduced) {
      push(dim, stride, last == 1, &shape.reduced_rank, shape.reduced_dims, shape.reduced_strides);
      shape.reduced *= dim;
    } else {
      push(dim, stride, last == 0, &shape.kept_rank, shape.kept_dims, shape.kept_strides);
      shape.kept *= dim;
    }
    last = is_reduced ? 1 : 0;
  }
  if (shape.kept_rank == 0) push(1, 0, false, &shape.kept_rank, shape.kept_dims, shape.kept_strides);
  if (shape.reduced_rank == 0) push(1, 1, false, &shape.reduced_rank, shape.reduced_dims, shape.reduced_strides);
  (is_cuda ? cut_for_cuda : cut_for_cpu)(&shape);
  assert(shape.kept * shape.reduced == rondo_shape_elements(x) && shape.parts > 0);
  return shape;
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static size_t number_bytes(rondo_type type) { return rondo_is_integer(type) ? sizeof(int64_t) : sizeof(float); }

/* Numbers that are combined: float, or int64_t of integers. */
typedef struct accumulator {
  const rondo_joining *joining;
  bool is_integer;
  size_t width, merged;
  rondo_chunk_buffer values, totals;
} accumulator;

static void clear(const accumulator *a, rondo_chunk_buffer *numbers) {
  if (a->is_integer) {
    for (size_t i = 0; i < a->width; i++) numbers->integers[i] = a->joining->no_integer;
  } else {
    const float none = a->joining->no_float;
    RONDO_EACH_LANE(i, lane, a->width, numbers->floats[i] = none);
  }
}

static void merge(const accumulator *a, rondo_chunk_buffer *into, const void *x, size_t count) {
  if (a->is_integer)
    a->joining->merge_integers(into->integers, x, count);
  else
    a->joining->merge_floats(into->floats, x, count);
}

/* Number i of an array. */
static const void *number_at(bool is_integer, const void *numbers, size_t i) {
  return is_integer ? (const void *)((const int64_t *)numbers + i) : (const void *)((const float *)numbers + i);
}

static void start(accumulator *a, rondo_type type, const rondo_joining *joining, size_t width) {
  a->joining = joining;
  a->is_integer = rondo_is_integer(type);
  a->width = width;
  a->merged = 0;
  clear(a, &a->values);
  clear(a, &a->totals);
}

static void settle(accumulator *a) {
  merge(a, &a->totals, &a->values, a->width);
  clear(a, &a->values);
  a->merged = 0;
}

static void take(accumulator *a, const void *x, size_t count) {
  merge(a, &a->values, x, count);
  if (++a->merged == RONDO_JOINED_AT_ONCE) settle(a);
}

/* Combines all totals pair by pair; the width is a power of two. */
static const void *join_all(accumulator *a) {
  assert((a->width & (a->width - 1)) == 0);
  for (size_t half = a->width / 2; half > 0; half /= 2)
    merge(a, &a->totals, number_at(a->is_integer, &a->totals, half), half);
  return &a->totals;
}

static size_t offset_of(size_t rank, const size_t *dims, const size_t *strides, size_t index) {
  size_t offset = 0;
  for (size_t d = rank; d > 1; d--) {
    offset += index % dims[d - 1] * strides[d - 1];
    index /= dims[d - 1];
  }
  return rank == 0 ? 0 : offset + index * strides[0];
}

static size_t kept_offset(const rondo_reduction *shape, size_t index) {
  return offset_of(shape->kept_rank, shape->kept_dims, shape->kept_strides, index);
}

static size_t reduced_offset(const rondo_reduction *shape, size_t index) {
  return offset_of(shape->reduced_rank, shape->reduced_dims, shape->reduced_strides, index);
}

/* The elements of a part. */
static rondo_span part_span(const rondo_reduction *shape, size_t part) {
  assert(part < shape->parts);
  return (rondo_span){part * shape->part, rondo_smaller((part + 1) * shape->part, shape->reduced)};
}

/* Stores a result or, if there are several parts, that of a part. */
static void put(rondo_type type, const rondo_reduction *shape, void *to, size_t at, const void *number, float factor) {
  const bool is_integer = rondo_is_integer(type);
  if (shape->parts > 1)
    memcpy(is_integer ? (void *)((int64_t *)to + at) : (void *)((float *)to + at), number, number_bytes(type));
  else if (is_integer)
    rondo_store_integers(type, to, at, 1, number);
  else
    rondo_store_one(type, to, at, *(const float *)number * factor);
}

/* The smallest power of two that is at least RONDO_LANES and `count`, but at most a chunk. */
static size_t width_for(size_t count) {
  size_t width = RONDO_LANES;
  while (width < count && width < RONDO_CHUNK) width *= 2;
  return width;
}

/* The totals of a row that is one chunk. */
static void take_whole(accumulator *a, const void *x, size_t count) {
  const size_t bytes = a->is_integer ? sizeof(int64_t) : sizeof(float);
  assert(count <= a->width);
  clear(a, &a->totals);
  memcpy(&a->totals, x, count * bytes);
}

static void reduce_row(rondo_type type, const rondo_reduction *shape, const rondo_joining *joining, const void *x,
                       size_t base, rondo_span span, accumulator *a) {
  const size_t max_run = shape->reduced_dims[shape->reduced_rank - 1];
  const size_t count = span.last - span.first;
  rondo_chunk_buffer buffer;
  if (count <= RONDO_CHUNK && span.first % max_run + count <= max_run) {
    *a = (accumulator){.joining = joining, .is_integer = rondo_is_integer(type), .width = width_for(count)};
    take_whole(a, rondo_load_numbers(type, x, base + reduced_offset(shape, span.first), count, &buffer), count);
    return;
  }
  start(a, type, joining, width_for(rondo_smaller(max_run, count)));
  for (size_t at = span.first, length; at < span.last; at += length) {
    length = rondo_smaller(rondo_smaller(max_run - at % max_run, span.last - at), RONDO_CHUNK);
    take(a, rondo_load_numbers(type, x, base + reduced_offset(shape, at), length, &buffer), length);
  }
  settle(a);
}

void rondo_reduce_rows_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args) {
  const rondo_reduction *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *to = RONDO_ARG(void *, 2);
  accumulator a;
  RONDO_EACH_ITEM(item, blocks, shape->kept * shape->parts) {
    const size_t base = kept_offset(shape, item / shape->parts);
    reduce_row(type, shape, joining, x, base, part_span(shape, item % shape->parts), &a);
    put(type, shape, to, item, join_all(&a), RONDO_ARG(float, 3));
  }
}

/* How many rows of a matrix with few columns are read as one. */
static size_t rows_at_once(const rondo_reduction *shape, size_t columns) {
  return shape->reduced_rank == 1 && shape->reduced_strides[0] == columns && columns < CPU_TILE ? CPU_TILE / columns
                                                                                                : 1;
}

/* The totals of `width` columns of these rows. */
static void reduce_columns(accumulator *a, rondo_type type, const rondo_reduction *shape, const void *x, size_t base,
                           size_t width, rondo_span span, size_t at_once) {
  rondo_chunk_buffer buffer;
  for (size_t r = span.first, rows; r < span.last; r += rows) {
    rows = rondo_smaller(at_once, span.last - r);
    take(a, rondo_load_numbers(type, x, base + reduced_offset(shape, r), rows * width, &buffer), rows * width);
  }
  settle(a);
  for (size_t i = 1; i < at_once; i++) merge(a, &a->totals, number_at(a->is_integer, &a->totals, i * width), width);
}

void rondo_reduce_columns_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args) {
  const rondo_reduction *shape = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  void *to = RONDO_ARG(void *, 2);
  const size_t columns = shape->kept_dims[shape->kept_rank - 1], at_once = rows_at_once(shape, columns);
  const size_t tiles = rondo_divide_up(columns, CPU_TILE);
  accumulator a;
  RONDO_EACH_ITEM(item, blocks, column_tiles(shape, CPU_TILE) * shape->parts) {
    const size_t tile = item / shape->parts;
    const size_t first = tile / tiles * columns + tile % tiles * CPU_TILE; /* result */
    const size_t width = rondo_chunk_length(tile % tiles * CPU_TILE, columns);
    start(&a, type, joining, width * at_once);
    reduce_columns(&a, type, shape, x, kept_offset(shape, first), width, part_span(shape, item % shape->parts),
                   at_once);
    for (size_t i = 0; i < width; i++) {
      put(type, shape, to, (first + i) * shape->parts + item % shape->parts, number_at(a.is_integer, &a.totals, i),
          RONDO_ARG(float, 3));
    }
  }
}

void rondo_reduce_parts_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args) {
  rondo_reduction shape = *(const rondo_reduction *)args[0];
  const void *from = RONDO_ARG(const void *, 1);
  void *y = RONDO_ARG(void *, 2);
  const size_t parts = shape.parts;
  shape.parts = 1;
  RONDO_EACH_ITEM(k, blocks, shape.kept) {
    accumulator a;
    start(&a, type, joining, width_for(parts));
    RONDO_EACH_CHUNK(at, length, 0, parts) take(&a, number_at(a.is_integer, from, k * parts + at), length);
    settle(&a);
    put(type, &shape, y, k, join_all(&a), RONDO_ARG(float, 3));
  }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status check_dimensions(const rondo_program *program, const rondo_operation *operation) {
  const rondo_attributes *attributes = &operation->attributes;
  for (uint32_t i = 0; i < attributes->size_count; i++) {
    RONDO_TRY(rondo_require_dimension(program, operation, 0, attributes->sizes[i]));
    for (uint32_t k = 0; k < i; k++) {
      if (attributes->sizes[i] == attributes->sizes[k])
        return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "dimension %zu is named twice",
                                    attributes->sizes[i]);
    }
  }
  return RONDO_OK;
}

/* The shape of the input with reduced dimensions 1, or without them. */
static rondo_shape result_shape(const rondo_shape *x, const rondo_operation *operation, bool keeps) {
  rondo_shape result = {.type = x->type};
  for (uint32_t d = 0; d < x->rank; d++) {
    const bool is_reduced = reduces(operation, d);
    if (!is_reduced || keeps) result.dims[result.rank++] = is_reduced ? 1 : x->dims[d];
  }
  return result;
}

rondo_status rondo_infer_reduction(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  if (operation->row->types == 0) RONDO_TRY(rondo_require_float(program, operation, 0, RONDO_ANY_RANK));
  RONDO_TRY(check_dimensions(program, operation));
  results[0] = result_shape(rondo_operation_input(program, operation, 0), operation,
                            operation->attributes.flags[RONDO_REDUCE_KEEPS]);
  return RONDO_OK;
}

bool rondo_reduces_columns(const rondo_shape *value, const rondo_operation *operation, rondo_columns *out_columns) {
  const rondo_reduction shape = lay_out(value, operation, true);
  *out_columns = (rondo_columns){shape.reduced, shape.kept};
  return is_of_columns(&shape) && shape.kept_rank == 1 && shape.reduced_rank == 1 &&
         (shape.parts == 1 || shape.reduced <= MAX_ROWS);
}

size_t rondo_reduction_elements(const rondo_program *program, const rondo_operation *operation) {
  return lay_out(rondo_operation_input(program, operation, 0), operation, false).reduced;
}

static size_t workspace_bytes(rondo_type type, const rondo_reduction *shape) {
  return shape->parts > 1 ? shape->kept * shape->parts * number_bytes(type) : 0;
}

rondo_status rondo_prepare_reduction(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                     size_t *out_workspace_bytes) {
  const rondo_operation *of = &program->operations.items[operation];
  const rondo_shape *value = rondo_operation_input(program, of, 0);
  rondo_device_info info = {.struct_size = sizeof info};
  *out_workspace_bytes = 0;
  RONDO_TRY(rondo_device_get_info(resources->device, &info));
  const rondo_reduction shape = lay_out(value, of, info.cuda);
  *out_workspace_bytes = workspace_bytes(value->type, &shape);
  return RONDO_OK;
}

static rondo_grid grid_of(const rondo_emitter *emitter, const rondo_reduction *shape) {
  if (!is_of_columns(shape)) return rondo_emit_grid(emitter, shape->kept * shape->parts, rondo_row_grain(shape->part));
  const size_t tiles = column_tiles(shape, rondo_emit_is_cuda(emitter) ? CUDA_TILE : CPU_TILE);
  return rondo_emit_grid(emitter, tiles * shape->parts, (rondo_grain){32 / shape->part + 1, 1});
}

rondo_status rondo_emit_reduction(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_reduction_row *family = operation->row->family;
  const rondo_shape *input = rondo_emit_shape(emitter, operation->inputs[0]);
  const rondo_reduction shape = lay_out(input, operation, rondo_emit_is_cuda(emitter));
  const float factor = family->is_mean ? 1.0f / (float)shape.reduced : 1.0f;
  const void *x = rondo_emit_address(emitter, operation->inputs[0]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  void *to = shape.parts > 1 ? rondo_emit_workspace(emitter) : y;
  const rondo_kernel_options *code = is_of_columns(&shape) ? family->columns : family->rows;
  RONDO_TRY(
      rondo_emit_kernel(emitter, &code[input->type], grid_of(emitter, &shape), RONDO_ARGS(&shape, &x, &to, &factor)));
  if (shape.parts == 1) return RONDO_OK;
  return rondo_emit_kernel(emitter, &family->parts[input->type],
                           rondo_emit_grid(emitter, shape.kept, rondo_row_grain(shape.parts)),
                           RONDO_ARGS(&shape, &to, &y, &factor));
}

/* For gradients ---------------------------------------------------------------------------------------------------- */

rondo_status rondo_add_kept(rondo_program *program, const rondo_operation *operation, uint32_t value,
                            uint32_t *out_value) {
  *out_value = value;
  if (operation->attributes.flags[RONDO_REDUCE_KEEPS]) return RONDO_OK;
  const rondo_shape shape = result_shape(rondo_operation_input(program, operation, 0), operation, true);
  return rondo_program_add_shaped(program, &rondo_operator_reshape, value, shape, out_value);
}

rondo_status rondo_add_spread(rondo_program *program, const rondo_operation *operation, uint32_t value,
                              uint32_t *out_value) {
  const rondo_shape shape = *rondo_operation_input(program, operation, 0);
  uint32_t kept;
  RONDO_TRY(rondo_add_kept(program, operation, value, &kept));
  return rondo_program_add_shaped(program, &rondo_operator_expand, kept, shape, out_value);
}

rondo_status rondo_apply_reduction(rondo_program *program, const rondo_operator *row, rondo_value value,
                                   const size_t *dims, size_t dim_count, bool keeps, rondo_value *out_value) {
  rondo_attributes attributes = {.flags = {[RONDO_REDUCE_ALL] = dims == NULL, [RONDO_REDUCE_KEEPS] = keeps}};
  if (out_value != NULL) *out_value = (rondo_value){0};
  if (dims != NULL && dim_count > RONDO_MAX_DIMENSIONS) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: %zu dimensions to reduce: pass at most %d",
                      row->name, dim_count, RONDO_MAX_DIMENSIONS);
  }
  for (size_t i = 0; dims != NULL && i < dim_count; i++) attributes.sizes[attributes.size_count++] = dims[i];
  return rondo_program_apply(program, row, &value, 1, &attributes, out_value);
}
