/* SPDX-License-Identifier: MIT
 * The part of cuBLAS that examples/cuda_samples use, on the CUDA run time of the tests: kernels that the library
 * launches itself on the caller's stream, with scalars in device memory. Threads: any, one for each handle.
 */
#ifndef RONDO_TESTS_CUBLAS_V2_H
#define RONDO_TESTS_CUBLAS_V2_H

#include "cuda_runtime/cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_EXECUTION_FAILED = 13 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
struct cublasContext {
  cudaStream_t stream;
};
using cublasHandle_t = cublasContext *;

inline cublasStatus_t cublasCreate(cublasHandle_t *out) {
  *out = new cublasContext{nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t mode) {
  return mode == CUBLAS_POINTER_MODE_DEVICE ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }

inline void cublas_dot(int n, const double *x, const double *y, double *result) {
  *result = 0;
  for (int i = 0; i < n; i++) *result += x[i] * y[i];
}
inline void cublas_axpy(int n, const double *alpha, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] += *alpha * x[i];
}
inline void cublas_scal(int n, const double *alpha, double *x) {
  for (int i = 0; i < n; i++) x[i] *= *alpha;
}

inline cublasStatus_t cublas_status() {
  return cudaGetLastError() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
inline cublasStatus_t cublasDdot(cublasHandle_t handle, int n, const double *x, int, const double *y, int,
                                 double *result) {
  CUDA_LAUNCH(cublas_dot, 1, 1, 0, handle->stream)(n, x, y, result);
  return cublas_status();
}
inline cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double *alpha, const double *x, int, double *y,
                                  int) {
  CUDA_LAUNCH(cublas_axpy, 1, 1, 0, handle->stream)(n, alpha, x, y);
  return cublas_status();
}
inline cublasStatus_t cublasDscal(cublasHandle_t handle, int n, const double *alpha, double *x, int) {
  CUDA_LAUNCH(cublas_scal, 1, 1, 0, handle->stream)(n, alpha, x);
  return cublas_status();
}

#endif
