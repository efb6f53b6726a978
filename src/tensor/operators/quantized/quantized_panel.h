/* SPDX-License-Identifier: MIT
 * Panels of a quantised matrix as floats, for products with more rows than dot products are fast for
 * (matmul_quantized_tile.c). A panel is read from a few rows of the matrix, converted in registers, and small enough
 * for the nearest cache, so that the product reads only the bytes of the matrix from memory. All forms give the same
 * bits. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_PANEL_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_PANEL_H

#include "tensor/operators/matmul/gemm_packed.h"
#include "tensor/operators/quantized/quantized_scheme.h"

/* The panel (gemm_packed.h) of RONDO_PANEL rows of the matrix from `row` on: packed[p * RONDO_PANEL + j] is element
 * first + p of row `row` + j. What belongs to rows past the last is 0. `first` is a multiple of RONDO_QUANTIZED_STEP.
 */
void rondo_quantized_panel(const rondo_quantized_scheme *scheme, const rondo_quantized_matrix *matrix, size_t row,
                           size_t first, size_t depth, float *packed);

#endif
