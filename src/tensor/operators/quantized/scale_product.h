/* SPDX-License-Identifier: MIT
 * The end of a library's product of integers: y = sum * column scale * row scale (+ bias), of floats. Threads: as
 * tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_SCALE_PRODUCT_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_SCALE_PRODUCT_H

#include "tensor/operators/common/operator_tools.h"

typedef struct rondo_scale_product_memory {
  const int32_t *sums;        /* [rows, columns] */
  const float *row_scales;    /* [rows] */
  const float *column_scales; /* [columns] */
  const void *bias;           /* [columns], of y's type; NULL: none */
  void *y;                    /* [rows, columns] */
} rondo_scale_product_memory;

/* type: of y. */
RONDO_MUST_USE rondo_status rondo_emit_scale_product(rondo_emitter *emitter, rondo_type type, size_t rows,
                                                     size_t columns, const rondo_scale_product_memory *memory);

#endif
