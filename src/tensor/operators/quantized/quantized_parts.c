/* SPDX-License-Identifier: MIT
 * How the depth of products with a quantised matrix is split, and the CPU functions of the kernels. Threads: any.
 */
#include "tensor/operators/quantized/quantized_parts.h"

#include "tensor/operators/common/element.h"

/* Enough tiles for a large device, and the minimum columns of a part. */
#define ENOUGH_TILES 264
#define MIN_PART 256

/* As in quantized_parts.cu: a tile has 4,096 sums. */
static size_t tiles_of(size_t m, size_t n) { return rondo_divide_up(n, m <= 32 ? 128 : 64); }

rondo_quantized_parts rondo_quantized_parts_of(const rondo_quantized_scheme *scheme, size_t m) {
  const size_t most = rondo_divide_up(scheme->columns, MIN_PART);
  const size_t wanted = rondo_divide_up(ENOUGH_TILES, tiles_of(m, scheme->rows));
  const size_t each = rondo_divide_up(scheme->columns, rondo_smaller(wanted, most));
  const size_t part = rondo_divide_up(each, RONDO_QUANTIZED_STEP) * RONDO_QUANTIZED_STEP;
  return (rondo_quantized_parts){m, scheme->rows, rondo_divide_up(scheme->columns, part), part};
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

typedef struct part_factors {
  const rondo_quantized_scheme *scheme;
  const float *x;
  const int8_t *rows; /* NULL: x is used */
  const float *row_scales;
  rondo_quantized_matrix matrix;
} part_factors;

static float left_at(const part_factors *f, size_t row, size_t column) {
  const size_t padded = rondo_divide_up(f->scheme->columns, RONDO_QUANTIZED_STEP) * RONDO_QUANTIZED_STEP;
  if (f->rows == NULL) return f->x[row * f->scheme->columns + column];
  return f->row_scales[row] * (float)f->rows[row * padded + column];
}

/* One column of the product, of all rows, over some columns of the matrix. */
static void add_part(const part_factors *f, size_t m, size_t n, size_t j, rondo_span columns, float *sums) {
  float unpacked[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, columns.first, columns.last) {
    rondo_dequantize_row(f->scheme, &f->matrix, j, at, length, unpacked);
    for (size_t i = 0; i < m; i++)
      for (size_t k = 0; k < length; k++) sums[i * n + j] += left_at(f, i, at + k) * unpacked[k];
  }
}

/* Arguments: shape, scheme; x, its rows as integers, and their scales; values, scales and zeros of the matrix; sums. */
static void quantized_parts_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_quantized_parts *s = args[0];
  const part_factors f = {args[1],
                          RONDO_ARG(const float *, 2),
                          RONDO_ARG(const int8_t *, 3),
                          RONDO_ARG(const float *, 4),
                          {RONDO_ARG(const uint8_t *, 5), RONDO_ARG(const float *, 6), RONDO_ARG(const uint8_t *, 7)}};
  RONDO_EACH_ITEM(part, blocks, s->parts) {
    float *sums = RONDO_ARG(float *, 8) + part * s->m * s->n;
    const size_t first = part * s->part, last = rondo_smaller(first + s->part, f.scheme->columns);
    for (size_t i = 0; i < s->m * s->n; i++) sums[i] = 0;
    for (size_t j = 0; j < s->n; j++) add_part(&f, s->m, s->n, j, (rondo_span){first, last}, sums);
  }
}

/* Arguments: shape; sums, bias, y. */
static void quantized_sum_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_quantized_parts *s = args[0];
  const float *sums = RONDO_ARG(const float *, 1), *bias = RONDO_ARG(const float *, 2);
  RONDO_EACH_ITEM(i, blocks, s->m * s->n) {
    float sum = 0;
    for (size_t part = 0; part < s->parts; part++) sum += sums[part * s->m * s->n + i];
    RONDO_ARG(float *, 3)[i] = bias == NULL ? sum : sum + bias[i % s->n];
  }
}

RONDO_UNTYPED_KERNEL(quantized_parts, quantized_parts, RONDO_SCALAR(rondo_quantized_parts),
                     RONDO_SCALAR(rondo_quantized_scheme), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_WRITES);
RONDO_UNTYPED_KERNEL(quantized_sum, quantized_parts, RONDO_SCALAR(rondo_quantized_parts), RONDO_READS, RONDO_READS,
                     RONDO_WRITES);

rondo_status rondo_emit_quantized_parts(rondo_emitter *emitter, const rondo_quantized_parts *parts,
                                        const rondo_quantized_scheme *scheme,
                                        const rondo_quantized_parts_memory *memory) {
  RONDO_TRY(rondo_emit_kernel(
      emitter, &quantized_parts_code, rondo_tile_grid(tiles_of(parts->m, parts->n) * parts->parts),
      RONDO_ARGS(parts, scheme, &memory->x, &memory->rows.values, &memory->rows.scales, &memory->matrix.values,
                 &memory->matrix.scales, &memory->matrix.zeros, &memory->sums)));
  return rondo_emit_kernel(emitter, &quantized_sum_code,
                           rondo_emit_grid(emitter, parts->m * parts->n, RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(parts, &memory->sums, &memory->bias, &memory->y));
}
