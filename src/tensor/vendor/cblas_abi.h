/* SPDX-License-Identifier: MIT
 * The part of the C interface to the BLAS that Rondo uses ("Basic Linear Algebra Subprograms Technical Forum Standard",
 * 2001, appendix B).
 */
#ifndef RONDO_TENSOR_VENDOR_CBLAS_ABI_H
#define RONDO_TENSOR_VENDOR_CBLAS_ABI_H

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANSPOSE = 111, CBLAS_TRANSPOSE = 112 };

/* ROW(result, member, symbol, (arguments)) */
#define CBLAS_FUNCTIONS(ROW)                                                                                        \
  ROW(void, sgemm, cblas_sgemm,                                                                                     \
      (int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int a_stride, \
       const float *b, int b_stride, float beta, float *c, int c_stride))

#endif
