/* SPDX-License-Identifier: MIT
 * conjugate_gradient.cu with Rondo: ten iterations are a region, with what cuBLAS and cuSPARSE enqueue. cuBLAS gets a
 * workspace, so that it does not allocate while it is captured.
 *
 * Fewer: calls that enqueue
 */
#include <cmath>
#include <vector>

#include <cublas_v2.h>
#include <cusparse.h>
#include <rondo/rondo.hpp>

#include "sample.h"

constexpr int side = 64, n = side * side, most = 1000, at_once = 10;

static void check_library(int status, const char *call) {
  if (status != 0) throw std::runtime_error(std::string(call) + ": " + std::to_string(status));
}
#define CHECK_LIBRARY(call) check_library(static_cast<int>(call), #call)

extern "C" __global__ void divide(const double *a, const double *b, double *quotient, double *minus_quotient) {
  *quotient = *a / *b;
  *minus_quotient = -*quotient;
}

struct scalars {
  double one, rr, new_rr, pq, alpha, minus_alpha, beta, minus_beta;
};

struct solver {
  cublasHandle_t blas;
  cusparseHandle_t sparse;
  cusparseSpMatDescr_t a;
  cusparseDnVecDescr_t p_vector, q_vector;
  int *offsets, *columns;
  double *values, *x, *r, *p, *q, *host_rr;
  void *buffer;
  scalars *s;   /* on the device */
  int enqueued; /* operations */
};

/* The product q = A p; without a result, the size of its buffer. */
static std::size_t multiply(solver *v, bool runs) {
  static const double one = 1, zero = 0;
  std::size_t bytes = 0;
  if (runs)
    CHECK_LIBRARY(cusparseSpMV(v->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, v->a, v->p_vector, &zero, v->q_vector,
                               CUDA_R_64F, CUSPARSE_SPMV_CSR_ALG2, v->buffer));
  else
    CHECK_LIBRARY(cusparseSpMV_bufferSize(v->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, v->a, v->p_vector, &zero,
                                          v->q_vector, CUDA_R_64F, CUSPARSE_SPMV_CSR_ALG2, &bytes));
  return bytes;
}

static void iterate(solver *v, cudaStream_t stream) {
  scalars *s = v->s;
  multiply(v, true);
  CHECK_LIBRARY(cublasDdot(v->blas, n, v->p, 1, v->q, 1, &s->pq));
  divide<<<1, 1, 0, stream>>>(&s->rr, &s->pq, &s->alpha, &s->minus_alpha);
  CHECK_LIBRARY(cublasDaxpy(v->blas, n, &s->alpha, v->p, 1, v->x, 1));
  CHECK_LIBRARY(cublasDaxpy(v->blas, n, &s->minus_alpha, v->q, 1, v->r, 1));
  CHECK_LIBRARY(cublasDdot(v->blas, n, v->r, 1, v->r, 1, &s->new_rr));
  divide<<<1, 1, 0, stream>>>(&s->new_rr, &s->rr, &s->beta, &s->minus_beta);
  CHECK_LIBRARY(cublasDscal(v->blas, n, &s->beta, v->p, 1));
  CHECK_LIBRARY(cublasDaxpy(v->blas, n, &s->one, v->r, 1, v->p, 1));
  CHECK(cudaMemcpyAsync(&s->rr, &s->new_rr, sizeof(double), cudaMemcpyDeviceToDevice, stream));
  v->enqueued += 10;
}

static void iterate_and_read(solver *v, cudaStream_t stream) {
  for (int i = 0; i < at_once; i++) iterate(v, stream);
  CHECK(cudaMemcpyAsync(v->host_rr, &v->s->rr, sizeof(double), cudaMemcpyDeviceToHost, stream));
  v->enqueued++;
}

/* Returns the number of iterations. */
static int solve(solver *v, cudaStream_t stream) {
  const rondo::device device("cuda:0");
  const rondo::memory<char> workspace(device, 4 << 20);
  CHECK_LIBRARY(cublasSetWorkspace(v->blas, workspace, workspace.bytes()));
  const rondo::stream adopted = rondo::stream::adopt(device, stream);
  const rondo::tree tree(device);
  const rondo::region<> region(tree, "iterations", {});
  int iterations = 0;
  do {
    region.run(adopted, {}, {}, [&](rondo::call &) { iterate_and_read(v, stream); });
    CHECK(cudaStreamSynchronize(stream));
    iterations += at_once;
  } while (iterations < most && std::sqrt(*v->host_rr) > 1e-9);
  v->enqueued += static_cast<int>(region.info().replayed);
  return iterations;
}

/* The five-point stencil; the solution is all ones, so b has the sum of each row. */
static void make_matrix(solver *v) {
  std::vector<int> offsets{0}, columns;
  std::vector<double> values, b;
  const auto add = [&](int column, double value) {
    columns.push_back(column);
    values.push_back(value);
    b.back() += value;
  };
  for (int row = 0; row < n; row++) {
    b.push_back(0);
    if (row >= side) add(row - side, -1);
    if (row % side > 0) add(row - 1, -1);
    add(row, 4);
    if (row % side < side - 1) add(row + 1, -1);
    if (row < n - side) add(row + side, -1);
    offsets.push_back(static_cast<int>(columns.size()));
  }
  double rr = 0;
  for (double each : b) rr += each * each;
  const scalars s = {1, rr, 0, 0, 0, 0, 0, 0};
  v->offsets = device_array(offsets.size(), offsets.data());
  v->columns = device_array(columns.size(), columns.data());
  v->values = device_array(values.size(), values.data());
  v->x = device_array<double>(n);
  v->r = device_array(n, b.data());
  v->p = device_array(n, b.data());
  v->q = device_array<double>(n);
  v->s = device_array(1, &s);
  CHECK_LIBRARY(cusparseCreateCsr(&v->a, n, n, static_cast<int>(values.size()), v->offsets, v->columns, v->values,
                                  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
}

static void begin(solver *v, cudaStream_t stream) {
  CHECK_LIBRARY(cublasCreate(&v->blas));
  CHECK_LIBRARY(cublasSetStream(v->blas, stream));
  CHECK_LIBRARY(cublasSetPointerMode(v->blas, CUBLAS_POINTER_MODE_DEVICE));
  CHECK_LIBRARY(cusparseCreate(&v->sparse));
  CHECK_LIBRARY(cusparseSetStream(v->sparse, stream));
  CHECK_LIBRARY(cusparseCreateDnVec(&v->p_vector, n, v->p, CUDA_R_64F));
  CHECK_LIBRARY(cusparseCreateDnVec(&v->q_vector, n, v->q, CUDA_R_64F));
  CHECK(cudaMalloc(&v->buffer, multiply(v, false) + 1));
}

static void end(solver *v) {
  for (cusparseDnVecDescr_t vector : {v->p_vector, v->q_vector}) CHECK_LIBRARY(cusparseDestroyDnVec(vector));
  CHECK_LIBRARY(cusparseDestroySpMat(v->a));
  CHECK_LIBRARY(cusparseDestroy(v->sparse));
  CHECK_LIBRARY(cublasDestroy(v->blas));
  for (int *array : {v->offsets, v->columns}) CHECK(cudaFree(array));
  for (double *array : {v->values, v->x, v->r, v->p, v->q}) CHECK(cudaFree(array));
  CHECK(cudaFree(v->buffer));
  CHECK(cudaFree(v->s));
  CHECK(cudaFreeHost(v->host_rr));
}

int main() {
  solver v = {};
  v.host_rr = host_array<double>(1);
  make_matrix(&v);
  const cudaStream_t stream = new_stream();
  begin(&v, stream);
  const int iterations = solve(&v, stream);

  std::vector<double> x(n);
  double error = 0;
  CHECK(cudaMemcpy(x.data(), v.x, n * sizeof(double), cudaMemcpyDeviceToHost));
  for (double each : x) error = std::fmax(error, std::fabs(each - 1));
  std::printf("calls that enqueue: %d\n", v.enqueued);
  std::printf("%d iterations, %s\n", iterations, error < 1e-8 ? "solved" : "not solved");
  end(&v);
  CHECK(cudaStreamDestroy(stream));
  return 0;
}
