/* SPDX-License-Identifier: MIT
 * Matrix products of one tile, on the calling thread: by oneDNN and CBLAS where these libraries are found, in plain C
 * otherwise. Which there are is settled once a process and which one makes a product by its shape, so that all products
 * of a shape are made alike.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_GEMM_H
#define RONDO_TENSOR_OPERATORS_MATMUL_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include <rondo/status.h>

/* c [m, n] = a' · b', or c + a' · b' when `accumulate`, row by row: a' [m, k] is a, or a transposed when a is stored as
 * [k, m]; b' [k, n] is b, or b stored as [n, k]. A stride is the elements from one stored row to the next. */
typedef struct rondo_gemm {
  bool transpose_a, transpose_b, accumulate;
  size_t m, n, k;
  const float *a, *b;
  float *c;
  size_t a_stride, b_stride, c_stride;
} rondo_gemm;

/* Looks for oneDNN (vendor/onednn.h), unless RONDO_CBLAS_LIBRARY is set: then its library makes all products ("none":
 * plain C does). Looks for a library with cblas_sgemm (rondo_cblas of vendor/libraries.h), and tells
 * OpenBLAS to use one thread: for the whole process and for good. Putting its number back after each product would
 * race, since it belongs to all threads (openblas_set_num_threads), and other BLAS libraries must be told by their
 * users. Later calls do nothing. Thread-safe. */
void rondo_gemm_prepare(void);

/* The tiles that a product is cut into where each is worth a worker's while. CBLAS arranges the factors of each tile
 * anew, so it gets no more of them than the machine has processors, whatever the process may use of these. After
 * rondo_gemm_prepare. */
size_t rondo_gemm_tiles(void);

/* After rondo_gemm_prepare. Any thread. */
void rondo_gemm_run(const rondo_gemm *gemm);

/* Plain C: blocked, the oracle of the other. */
void rondo_gemm_plain(const rondo_gemm *gemm);

#endif
