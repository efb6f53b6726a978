/* SPDX-License-Identifier: MIT
 * Matrix products of one tile, on the calling thread: by oneDNN or CBLAS if these libraries are found, else in plain C.
 * Some products need no library (rondo_gemm_is_own).
 * The libraries are found once in a process, and the shape of a product alone decides which one computes it, so all
 * products of a shape are computed alike. Threads: any, after rondo_gemm_prepare.
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_GEMM_H
#define RONDO_TENSOR_OPERATORS_MATMUL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * ("none": plain C). Looks for a library with cblas_sgemm (rondo_cblas) if it would be used, and sets
 * OpenBLAS to one thread, for the whole process and permanently: the number belongs to all threads
 * (openblas_set_num_threads), so restoring it after each product would race. Users of other BLAS libraries must set
 * theirs. Later calls do nothing. Thread-safe. */
void rondo_gemm_prepare(void);

/* The most tiles that rondo_gemm_tiles returns: enough for a typical number of workers. */
#define RONDO_GEMM_TILES 8

/* How many tiles a large product is split into; the addresses do not matter. CBLAS packs the factors of each tile
 * again, so it gets no more tiles than the machine has processors, even if the process may use fewer. After
 * rondo_gemm_prepare, unless rondo_gemm_is_own. */
size_t rondo_gemm_tiles(const rondo_gemm *gemm);

/* After rondo_gemm_prepare, unless rondo_gemm_is_own. Any thread. */
void rondo_gemm_run(const rondo_gemm *gemm);

/* The same with factors of BF16, as bits; sums are F32. */
typedef struct rondo_gemm_bf16_factor {
  const uint16_t *at;
  size_t stride;
  bool is_transposed;
} rondo_gemm_bf16_factor;

typedef struct rondo_gemm_bf16 {
  size_t m, n, k;
  rondo_gemm_bf16_factor a, b;
  rondo_gemm_result c;
} rondo_gemm_bf16;

/* Whether rondo_gemm_run_bf16 is faster for products of this size than converting the factors to F32: the processor has
 * instructions for BF16, and oneDNN uses them. These treat subnormal numbers as 0. After rondo_gemm_prepare. */
bool rondo_gemm_is_for_bf16(size_t m, size_t n, size_t k);

/* Multiplies factors of BF16 as they are. False if the library had no memory; c is then unchanged. Only if
 * rondo_gemm_is_for_bf16, for the whole product that this is a tile of. Any thread. */
bool rondo_gemm_run_bf16(const rondo_gemm_bf16 *gemm);

/* Plain C, blocked: the reference for the libraries. */
void rondo_gemm_plain(const rondo_gemm *gemm);

/* Whether own kernels compute the product and each of its tiles: few rows with a transposed b, a row and a matrix, and
 * with AVX-512 small products; none if RONDO_CBLAS_LIBRARY is set. These do not need rondo_gemm_prepare. The addresses
 * do not matter. */
bool rondo_gemm_is_own(const rondo_gemm *gemm);

#endif
