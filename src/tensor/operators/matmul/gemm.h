/* SPDX-License-Identifier: MIT
 * Matrix products of one tile, on the calling thread: by oneDNN or CBLAS if these libraries are found, else in plain C.
 * The libraries are found once in a process, and the shape of a product alone decides which one computes it, so all
 * products of a shape are computed alike. Threads: any, after rondo_gemm_prepare.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_GEMM_H
#define RONDO_TENSOR_OPERATORS_MATMUL_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include <rondo/status.h>

/* A factor or result in memory, row by row; stride: the elements from one stored row to the next. */
typedef struct rondo_gemm_factor {
  const float *at;
  size_t stride;
  bool is_transposed;
} rondo_gemm_factor;

typedef struct rondo_gemm_result {
  float *at;
  size_t stride;
  bool accumulates;
} rondo_gemm_result;

/* c [m, n] = a' · b', or c + a' · b' if it accumulates. a' [m, k] is a, or the transpose of a, which is then stored as
 * [k, m]. b' [k, n] is b, or the transpose of b, stored as [n, k]. */
typedef struct rondo_gemm {
  size_t m, n, k;
  rondo_gemm_factor a, b;
  rondo_gemm_result c;
} rondo_gemm;

/* Looks for oneDNN (tensor/vendor/onednn.h), unless RONDO_CBLAS_LIBRARY is set: then that library computes all products
 * ("none": plain C). Looks for a library with cblas_sgemm (rondo_cblas), and sets
 * OpenBLAS to one thread, for the whole process and permanently: the number belongs to all threads
 * (openblas_set_num_threads), so restoring it after each product would race. Users of other BLAS libraries must set
 * theirs. Later calls do nothing. Thread-safe. */
void rondo_gemm_prepare(void);

/* How many tiles a large product is split into; the addresses do not matter. CBLAS packs the factors of each tile
 * again, so it gets no more tiles than the machine has processors, even if the process may use fewer. After
 * rondo_gemm_prepare. */
size_t rondo_gemm_tiles(const rondo_gemm *gemm);

/* After rondo_gemm_prepare. Any thread. */
void rondo_gemm_run(const rondo_gemm *gemm);

/* Plain C, blocked: the reference for the libraries. */
void rondo_gemm_plain(const rondo_gemm *gemm);

#endif
