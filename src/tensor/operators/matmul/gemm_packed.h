/* SPDX-License-Identifier: MIT
 * Products with a factor b' that is packed once and multiplied many times, as the weights of recurrent networks are in
 * each step. Packing copies b' into panels of 16 columns, which the inner loop reads in order; the libraries of gemm.h
 * would pack it again in each product. AVX2 and AVX-512 have forms with fused multiply-adds, which give the same bits
 * as each other, but not as the plain form. An element's sum is in the order of k in all forms, so it does not depend
 * on how many rows are multiplied together. The same loops multiply small factors in place. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_GEMM_PACKED_H
#define RONDO_TENSOR_OPERATORS_MATMUL_GEMM_PACKED_H

#include "tensor/operators/matmul/gemm.h"

#define RONDO_PANEL 16 /* columns */

/* The number of panels of n columns. A panel has 16 k floats, packed[p * 16 + j] being element [p, first + j] of b';
 * columns past the last are 0. */
static inline size_t rondo_gemm_panels(size_t n) { return n / RONDO_PANEL + (n % RONDO_PANEL != 0 ? 1 : 0); }

/* Packs one panel of b' [k, n] into `packed`, where the first panel begins. */
void rondo_gemm_pack(const rondo_gemm_factor *b, size_t k, size_t n, size_t panel, float *packed);

/* c [m, n] = a' · b', or c + a' · b' if c accumulates. b' is packed, with all its panels. */
typedef struct rondo_gemm_packed {
  size_t m, n, k;
  rondo_gemm_factor a;
  const float *packed;
  rondo_gemm_result c;
} rondo_gemm_packed;

void rondo_gemm_run_packed(const rondo_gemm_packed *gemm);

/* c = a' · b' + bias, or c + a' · b' + bias, for products so small that a library would take as long to pack b' as to
 * multiply it: b' is read in place, except for the columns after the last whole panel. b is not transposed.
 * `bias` has one number for each row; NULL: none. With `rectifies`, negative results become 0. k is at least 1. */
typedef struct rondo_gemm_small {
  size_t m, n, k;
  rondo_gemm_factor a, b;
  rondo_gemm_result c;
  const float *bias;
  bool rectifies;
} rondo_gemm_small;

#define RONDO_GEMM_SMALL_DEPTH 512 /* elements of a sum that is added to c at once */

void rondo_gemm_run_small(const rondo_gemm_small *gemm);

#endif
