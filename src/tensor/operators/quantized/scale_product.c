/* SPDX-License-Identifier: MIT
 * Turns sums of a product of integers into floats, row by row. Threads: any; blocks of one kernel run at once.
 */
#include "tensor/operators/quantized/scale_product.h"

#include "tensor/operators/common/operator_rows.h"

/* A scalar argument of the kernel; without padding. */
typedef struct product_size {
  size_t rows, columns;
} product_size;

static void scale_row(rondo_type type, const rondo_scale_product_memory *memory, size_t columns, size_t row) {
  float scaled[RONDO_CHUNK], biases[RONDO_CHUNK];
  RONDO_EACH_CHUNK(at, length, 0, columns) {
    const int32_t *sums = memory->sums + row * columns + at;
    for (size_t i = 0; i < length; i++)
      scaled[i] = (float)sums[i] * memory->column_scales[at + i] * memory->row_scales[row];
    if (memory->bias != NULL)
      rondo_add_floats(rondo_load_chunk(type, memory->bias, at, length, biases), scaled, length);
    rondo_store_floats(type, memory->y, row * columns + at, length, scaled);
  }
}

static void scale_product_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const product_size *size = args[0];
  const rondo_scale_product_memory memory = {RONDO_ARG(const int32_t *, 1), RONDO_ARG(const float *, 2),
                                             RONDO_ARG(const float *, 3), RONDO_ARG(const void *, 4),
                                             RONDO_ARG(void *, 5)};
  RONDO_EACH_ITEM(row, blocks, size->rows) scale_row(type, &memory, size->columns, row);
}

RONDO_TYPED_KERNEL(scale_product, scale_product, RONDO_SCALAR(product_size), RONDO_READS, RONDO_READS, RONDO_READS,
                   RONDO_READS, RONDO_WRITES);

rondo_status rondo_emit_scale_product(rondo_emitter *emitter, rondo_type type, size_t rows, size_t columns,
                                      const rondo_scale_product_memory *memory) {
  const product_size size = {rows, columns};
  return rondo_emit_kernel(
      emitter, &scale_product_code[type], rondo_emit_grid(emitter, rows, rondo_row_grain(columns)),
      RONDO_ARGS(&size, &memory->sums, &memory->row_scales, &memory->column_scales, &memory->bias, &memory->y));
}
