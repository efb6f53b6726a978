/* SPDX-License-Identifier: MIT
 * The part of cuSPARSE that examples/cuda_samples use, on the CUDA run time of the tests: products of a CSR matrix and
 * a vector, as a kernel that the library launches itself on the caller's stream. Threads: any, one for each handle.
 */
#ifndef RONDO_TESTS_CUSPARSE_H
#define RONDO_TESTS_CUSPARSE_H

#include <cstdint>

#include "cuda_runtime/cuda_runtime.h"

enum cusparseStatus_t { CUSPARSE_STATUS_SUCCESS = 0, CUSPARSE_STATUS_EXECUTION_FAILED = 6 };
enum cusparseOperation_t { CUSPARSE_OPERATION_NON_TRANSPOSE = 0 };
enum cusparseIndexType_t { CUSPARSE_INDEX_32I = 2 };
enum cusparseIndexBase_t { CUSPARSE_INDEX_BASE_ZERO = 0 };
enum cusparseSpMVAlg_t { CUSPARSE_SPMV_CSR_ALG2 = 3 };
enum cudaDataType { CUDA_R_64F = 1 };

struct cusparseContext {
  cudaStream_t stream;
};
struct cusparseMatrix {
  int rows;
  const int *offsets, *columns;
  const double *values;
};
struct cusparseVector {
  double *values;
};
using cusparseHandle_t = cusparseContext *;
using cusparseSpMatDescr_t = cusparseMatrix *;
using cusparseDnVecDescr_t = cusparseVector *;

inline cusparseStatus_t cusparseCreate(cusparseHandle_t *out) {
  *out = new cusparseContext{nullptr};
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *out, int64_t rows, int64_t, int64_t, void *offsets,
                                          void *columns, void *values, cusparseIndexType_t, cusparseIndexType_t,
                                          cusparseIndexBase_t, cudaDataType) {
  *out = new cusparseMatrix{static_cast<int>(rows), static_cast<const int *>(offsets),
                            static_cast<const int *>(columns), static_cast<const double *>(values)};
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroySpMat(cusparseSpMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *out, int64_t, void *values, cudaDataType) {
  *out = new cusparseVector{static_cast<double *>(values)};
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseDestroyDnVec(cusparseDnVecDescr_t vector) {
  delete vector;
  return CUSPARSE_STATUS_SUCCESS;
}

inline cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t, cusparseOperation_t, const void *,
                                                cusparseSpMatDescr_t, cusparseDnVecDescr_t, const void *,
                                                cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t, size_t *out) {
  *out = 256;
  return CUSPARSE_STATUS_SUCCESS;
}

inline void cusparse_product(cusparseMatrix a, double alpha, const double *x, double beta, double *y) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  double sum = 0;
  if (row >= a.rows) return;
  for (int i = a.offsets[row]; i < a.offsets[row + 1]; i++) sum += a.values[i] * x[a.columns[i]];
  y[row] = alpha * sum + (beta == 0 ? 0 : beta * y[row]);
}

/* The scalars are in host memory. */
inline cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t, const void *alpha,
                                     cusparseSpMatDescr_t a, cusparseDnVecDescr_t x, const void *beta,
                                     cusparseDnVecDescr_t y, cudaDataType, cusparseSpMVAlg_t, void *) {
  CUDA_LAUNCH(cusparse_product, static_cast<unsigned>(a->rows + 63) / 64, 64, 0, handle->stream)
  (*a, *static_cast<const double *>(alpha), x->values, *static_cast<const double *>(beta), y->values);
  return cudaGetLastError() == cudaSuccess ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}

#endif
