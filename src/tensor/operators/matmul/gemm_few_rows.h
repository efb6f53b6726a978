/* SPDX-License-Identifier: MIT
 * Kernels for products of few rows, which read each element of b once or a few times, so that rearranging it first, as
 * libraries do, would take as long as multiplying. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_GEMM_FEW_ROWS_H
#define RONDO_TENSOR_OPERATORS_MATMUL_GEMM_FEW_ROWS_H

#include "tensor/operators/matmul/gemm.h"

/* A product of few rows with a transposed b, which is read in place. Only if rondo_gemm_is_thin: its shape is one that
 * this is faster for than a library, and the processor has AVX2 with fused multiply-adds, or AVX-512. */
bool rondo_gemm_is_thin(const rondo_gemm *gemm);
void rondo_gemm_thin(const rondo_gemm *gemm);

/* Whether the product is that of a row and a matrix. */
static inline bool rondo_gemm_is_row(const rondo_gemm *gemm) {
  return gemm->m == 1 && (!gemm->a.is_transposed || gemm->a.stride == 1);
}

/* Such a product. */
void rondo_gemm_row(const rondo_gemm *gemm);

#endif
