/* SPDX-License-Identifier: MIT
 * Strided copies. Strides may be negative: they wrap around. One kernel copies rows of the result's last dimension. The
 * other is for sources that are contiguous along the result's second-last dimension; it copies in tiles, so that
 * neighbours are read and written together on both sides. Threads: any.
 */
#include "tensor/operators/shape/strided.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/element.h"
#include "tensor/operators/common/strided_lanes.h"
#include "tensor/program/shape.h"

#define LAST (RONDO_MAX_DIMENSIONS - 1)
#define TILE 32 /* also of strided.cu */

/* Making ----------------------------------------------------------------------------------------------------------- */

void rondo_strides_of(const rondo_shape *shape, size_t *strides) {
  size_t stride = 1;
  for (uint32_t i = shape->rank; i > 0; i--) {
    strides[i - 1] = stride;
    stride *= shape->dims[i - 1];
  }
}

/* Adds a dimension before those from `first` on, or merges it with the first of them; returns the new first. */
static uint32_t put_dimension(rondo_strided *copy, uint32_t first, size_t size, size_t stride) {
  if (size == 1) return first;
  if (first <= LAST && stride == copy->dims[first] * copy->strides[first]) {
    copy->dims[first] *= size;
    return first;
  }
  assert(first > 0);
  copy->dims[first - 1] = size;
  copy->strides[first - 1] = stride;
  return first - 1;
}

/* Doubles the unit while two units are always copied together. */
static void widen(rondo_strided *copy) {
  while (copy->unit_bytes < 16 && copy->strides[LAST] == 1 && copy->dims[LAST] % 2 == 0 && copy->offset % 2 == 0) {
    for (uint32_t i = 0; i < LAST; i++) {
      if (copy->strides[i] % 2 != 0) return;
    }
    for (uint32_t i = 0; i < LAST; i++) copy->strides[i] = (size_t)((int64_t)copy->strides[i] / 2);
    copy->dims[LAST] /= 2;
    copy->offset /= 2;
    copy->count /= 2;
    copy->unit_bytes *= 2;
  }
}

rondo_strided rondo_strided_make(const rondo_shape *result, size_t offset, const size_t *strides) {
  rondo_strided copy = {
      .count = rondo_shape_elements(result), .offset = offset, .unit_bytes = rondo_type_bytes(result->type)};
  uint32_t first = RONDO_MAX_DIMENSIONS;
  for (uint32_t i = result->rank; i > 0; i--) first = put_dimension(&copy, first, result->dims[i - 1], strides[i - 1]);
  assert(first <= RONDO_MAX_DIMENSIONS);
  for (uint32_t i = 0; i < first; i++) copy.dims[i] = 1;
  if (first > LAST) copy.strides[LAST] = 1;
  return copy;
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

size_t rondo_strided_place(const rondo_strided *copy, size_t number, uint32_t end) {
  size_t at = copy->offset;
  for (uint32_t i = end; i > 0; i--) {
    at += number % copy->dims[i - 1] * copy->strides[i - 1];
    number /= copy->dims[i - 1];
  }
  return at;
}

/* Copies `count` units, which are `from_stride` and `to_stride` bytes apart. */
static void copy_units(const unsigned char *from, int64_t from_stride, unsigned char *to, size_t to_stride,
                       size_t bytes, size_t count) {
  for (size_t i = 0; i < count; i++, to += to_stride) {
    const unsigned char *unit = from + (int64_t)i * from_stride;
    switch (bytes) { /* constant sizes, so that compilers emit moves */
      case 1:
        *to = *unit;
        break;
      case 2:
        memcpy(to, unit, 2);
        break;
      case 4:
        memcpy(to, unit, 4);
        break;
      case 8:
        memcpy(to, unit, 8);
        break;
      default:
        memcpy(to, unit, 16);
    }
  }
}

static void copy_row(const rondo_strided *copy, const unsigned char *from, unsigned char *to) {
  const size_t bytes = copy->unit_bytes;
  if (copy->strides[LAST] == 1)
    memcpy(to, from, copy->dims[LAST] * bytes);
  else
    copy_units(from, (int64_t)(copy->strides[LAST] * bytes), to, bytes, bytes, copy->dims[LAST]);
}

static void strided_copy_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_strided *copy = args[0];
  const unsigned char *from = RONDO_ARG(const unsigned char *, 1);
  unsigned char *to = RONDO_ARG(unsigned char *, 2);
  const size_t length = copy->dims[LAST];
  RONDO_EACH_ITEM(row, blocks, copy->count / length) {
    copy_row(copy, from + rondo_strided_place(copy, row, LAST) * copy->unit_bytes,
             to + row * length * copy->unit_bytes);
  }
}

/* Four units of four bytes. */
RONDO_INLINE rondo_four load_four(const unsigned char *from) {
  rondo_four units;
  memcpy(&units, from, sizeof units);
  return units;
}

/* Copies 4 x 4 units of four bytes: columns of the target are contiguous in the source. */
RONDO_INLINE void transpose_four(const unsigned char *from, int64_t from_stride, unsigned char *to, size_t to_stride) {
  const rondo_four a = load_four(from), b = load_four(from + from_stride);
  const rondo_four c = load_four(from + 2 * from_stride), d = load_four(from + 3 * from_stride);
  const rondo_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const rondo_four ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const rondo_four cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const rondo_four rows[] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                             __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5),
                             __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7)};
  for (size_t i = 0; i < 4; i++) memcpy(to + i * to_stride, &rows[i], sizeof rows[i]);
}

/* Transposes as many units of four bytes as make whole squares of four; `columns` of the target. */
static void transpose_squares(const unsigned char *from, int64_t from_stride, unsigned char *to, size_t to_stride,
                              size_t rows, size_t columns) {
  for (size_t column = 0; column + 4 <= columns; column += 4)
    for (size_t row = 0; row + 4 <= rows; row += 4)
      transpose_four(from + (int64_t)column * from_stride + row * 4, from_stride, to + row * to_stride + column * 4,
                     to_stride);
}

/* Three columns, as the colours of an image, four rows at a time. */
static void interleave_three(const unsigned char *from, int64_t from_stride, unsigned char *to, size_t rows) {
  size_t i = 0;
  for (; i + 4 <= rows; i += 4, to += 3 * sizeof(rondo_four)) {
    const unsigned char *at = from + i * 4;
    const rondo_four a = load_four(at), b = load_four(at + from_stride), c = load_four(at + 2 * from_stride);
    const rondo_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), bc = __builtin_shufflevector(b, c, 1, 5, 2, 6);
    const rondo_four ca = __builtin_shufflevector(c, a, 2, 7, 2, 7), bc_end = __builtin_shufflevector(b, c, 3, 7, 3, 7);
    const rondo_four all[] = {__builtin_shufflevector(ab, c, 0, 1, 4, 2), __builtin_shufflevector(bc, a, 0, 1, 6, 2),
                              __builtin_shufflevector(ca, bc_end, 0, 1, 4, 5)};
    memcpy(to, all, sizeof all);
  }
  for (; i < rows; i++, to += 12) copy_units(from + i * 4, from_stride, to, 4, 4, 3);
}

static size_t tiles_along(size_t size) { return rondo_divide_up(size, TILE); }

/* Transposes tile `number` and, if all tiles of a plane are below each other, those after it in the plane, as many as
 * there are before `end`. Returns the number of the next one. */
static size_t transpose_tiles(const rondo_strided *copy, size_t number, size_t end, const unsigned char *from,
                              unsigned char *to) {
  const size_t rows = copy->dims[LAST - 1], columns = copy->dims[LAST], bytes = copy->unit_bytes;
  const size_t across = tiles_along(columns), plane = number / (tiles_along(rows) * across);
  const size_t row = number / across % tiles_along(rows) * TILE, column = number % across * TILE;
  const unsigned char *source =
      from + (rondo_strided_place(copy, plane, LAST - 1) + column * copy->strides[LAST] + row) * bytes;
  unsigned char *target = to + (plane * rows * columns + row * columns + column) * bytes;
  const int64_t stride = (int64_t)(copy->strides[LAST] * bytes);
  const size_t tiles = across == 1 ? rondo_smaller(end - number, tiles_along(rows - row)) : 1;
  const size_t height = rondo_smaller(tiles * TILE, rows - row), width = rondo_smaller(TILE, columns - column);
  if (bytes == 4 && columns == 3) {
    interleave_three(source, stride, target, height);
    return number + tiles;
  }
  const size_t square_rows = bytes == 4 ? height / 4 * 4 : 0, square_columns = bytes == 4 ? width / 4 * 4 : 0;
  transpose_squares(source, stride, target, columns * bytes, square_rows, square_columns);
  for (size_t i = 0; i < height; i++) {
    const size_t done = i < square_rows ? square_columns : 0;
    copy_units(source + (int64_t)done * stride + i * bytes, stride, target + (i * columns + done) * bytes, bytes, bytes,
               width - done);
  }
  return number + tiles;
}

static size_t tile_count(const rondo_strided *copy) {
  const size_t rows = copy->dims[LAST - 1], columns = copy->dims[LAST];
  return copy->count / (rows * columns) * tiles_along(rows) * tiles_along(columns);
}

static void strided_transpose_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_strided *copy = args[0];
  const unsigned char *from = RONDO_ARG(const unsigned char *, 1);
  unsigned char *to = RONDO_ARG(unsigned char *, 2);
  const rondo_span span = rondo_blocks_span(blocks, tile_count(copy), 1);
  for (size_t tile = span.first; tile < span.last;) tile = transpose_tiles(copy, tile, span.last, from, to);
}

RONDO_UNTYPED_KERNEL(strided_copy, strided, RONDO_SCALAR(rondo_strided), RONDO_READS, RONDO_WRITES);
RONDO_UNTYPED_KERNEL(strided_transpose, strided, RONDO_SCALAR(rondo_strided), RONDO_READS, RONDO_WRITES);

rondo_status rondo_emit_strided(rondo_emitter *emitter, const rondo_strided *copy, uint32_t from, uint32_t to) {
  return rondo_emit_strided_at(emitter, copy, rondo_emit_address(emitter, from), rondo_emit_address(emitter, to));
}

rondo_status rondo_emit_strided_at(rondo_emitter *emitter, const rondo_strided *copy, const void *from, void *to) {
  rondo_strided wide = *copy;
  widen(&wide);
  if (wide.strides[LAST] != 1 && wide.strides[LAST - 1] == 1) {
    return rondo_emit_kernel(emitter, &strided_transpose_code,
                             rondo_emit_grid(emitter, tile_count(&wide), (rondo_grain){8, 1}),
                             RONDO_ARGS(&wide, &from, &to));
  }
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const size_t length = wide.dims[LAST];
  const rondo_grain grain = {8192 / length + 1, RONDO_CUDA_THREADS};
  return rondo_emit_kernel(emitter, &strided_copy_code,
                           rondo_emit_grid(emitter, is_cuda ? wide.count : wide.count / length, grain),
                           RONDO_ARGS(&wide, &from, &to));
}

rondo_status rondo_emit_sum_so_far(rondo_emitter *emitter, uint32_t sum, uint32_t result) {
  const rondo_shape *shape = rondo_emit_shape(emitter, result);
  size_t strides[RONDO_MAX_DIMENSIONS];
  if (rondo_emit_address(emitter, sum) == rondo_emit_address(emitter, result)) return RONDO_OK;
  rondo_strides_of(shape, strides);
  const rondo_strided copy = rondo_strided_make(shape, 0, strides);
  return rondo_emit_strided(emitter, &copy, sum, result);
}
