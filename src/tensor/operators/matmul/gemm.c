/* SPDX-License-Identifier: MIT
 * Which library computes a product. The libraries are found once and kept for the life of the process. Threads: any.
 */
#define _GNU_SOURCE
#include "tensor/operators/matmul/gemm.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tensor/operators/common/vectors.h"
#include "tensor/operators/matmul/gemm_few_rows.h"
#include "tensor/operators/matmul/gemm_packed.h"
#include "tensor/vendor/onednn.h"

typedef void (*set_threads_function)(int threads);

/* With at least this many multiplications, oneDNN is faster. OpenBLAS has kernels for small products that pack nothing
 * first, but not for a transposed b. For oneDNN, signals are blocked, which takes half a microsecond
 * (tensor/vendor/onednn.h).
 */
#define ONEDNN_LEAST 524288.0
#define ONEDNN_LEAST_TRANSPOSED 131072.0

/* With fewer multiplications of BF16, a call takes longer than converting the factors. */
#define BF16_LEAST 32768.0

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Written once, before any thread reads them. */
static bool has_onednn, has_cblas, has_bf16;
static size_t cblas_tiles = RONDO_GEMM_TILES;

static void limit_tiles(void) {
  const long processors = sysconf(_SC_NPROCESSORS_CONF); /* -1: the system does not say */
  if (processors > 0 && processors < RONDO_GEMM_TILES) cblas_tiles = (size_t)processors;
}

static void use_one_thread(void) {
  void *symbol = rondo_dylib_symbol(&rondo_cblas.file, "openblas_set_num_threads");
  set_threads_function set_threads = NULL;
  if (symbol == NULL) return;
  memcpy(&set_threads, &symbol, sizeof set_threads);
  set_threads(1);
}

/* With AVX-512, oneDNN and own kernels compute all products, unless the user named a CBLAS. OpenBLAS has kernels for it
 * by the names of processors, and runs those of AVX2, which are half as fast, on others that it does not know; and
 * loading it takes milliseconds and megabytes. RONDO_CPU_VECTORS does not matter: products by libraries have the same
 * bits with any of its values. */
static bool find_cblas(void) {
  const bool is_needed = !rondo_library_find(&rondo_onednn_products) ||
                         rondo_vectors_of_processor() != RONDO_VECTORS_AVX512 ||
                         rondo_library_asked(&rondo_cblas)[0] != '\0';
  return is_needed && rondo_library_find(&rondo_cblas);
}

static void settle(void) {
  has_onednn = rondo_library_find(&rondo_onednn_products);
  has_cblas = find_cblas();
  has_bf16 = has_onednn && rondo_onednn_product_api.gemm_bf16 != NULL;
  if (has_cblas) use_one_thread();
  limit_tiles();
}

/* The search, which may log, comes first: no thread may wait in pthread_once for the user's log function. */
void rondo_gemm_prepare(void) {
  (void)find_cblas();
  const int failed = pthread_once(&once, settle);
  (void)failed; /* it has no errors but those of a wrong argument */
}

static bool fits_int(size_t value) { return value <= INT_MAX; }

/* Without AVX-512, oneDNN reads a transposed a, and a b that is not transposed, down its columns. If rows are a
 * multiple of half a page apart, their elements share a few sets of the cache: with a page, oneDNN takes twice as long
 * as OpenBLAS, with half a page 1.3 times as long. */
#define ONEDNN_SLOW_STRIDE 512

static bool is_for_onednn(const rondo_gemm *gemm) {
  const double products = (double)gemm->m * (double)gemm->n * (double)gemm->k;
  if (!has_onednn || !has_cblas) return has_onednn;
  if (gemm->a.is_transposed && gemm->a.stride % ONEDNN_SLOW_STRIDE == 0) return false;
  if (!gemm->b.is_transposed && gemm->b.stride % ONEDNN_SLOW_STRIDE == 0) return false;
  return products >= (gemm->b.is_transposed ? ONEDNN_LEAST_TRANSPOSED : ONEDNN_LEAST);
}

/* With fewer multiplications, packing a factor and making the code of the library's kernels take longer. */
#define LIBRARY_LEAST 131072.0

bool rondo_gemm_is_own(const rondo_gemm *gemm) {
  if (rondo_library_asked(&rondo_cblas)[0] != '\0') return false;
  const bool is_small = (double)gemm->m * (double)gemm->n * (double)gemm->k < LIBRARY_LEAST;
  return rondo_gemm_is_thin(gemm) || rondo_gemm_is_row(gemm) ||
         (is_small && gemm->k > 0 && !gemm->b.is_transposed && rondo_vectors_used() == RONDO_VECTORS_AVX512);
}

size_t rondo_gemm_tiles(const rondo_gemm *gemm) {
  const bool is_own = rondo_gemm_is_own(gemm); /* asked first: own kernels may be used before rondo_gemm_prepare */
  return !is_own && has_cblas && !is_for_onednn(gemm) ? cblas_tiles : RONDO_GEMM_TILES;
}

static void run_cblas(const rondo_gemm *gemm) {
  rondo_cblas_api.sgemm(CBLAS_ROW_MAJOR, gemm->a.is_transposed ? CBLAS_TRANSPOSE : CBLAS_NO_TRANSPOSE,
                        gemm->b.is_transposed ? CBLAS_TRANSPOSE : CBLAS_NO_TRANSPOSE, (int)gemm->m, (int)gemm->n,
                        (int)gemm->k, 1.0f, gemm->a.at, (int)gemm->a.stride, gemm->b.at, (int)gemm->b.stride,
                        gemm->c.accumulates ? 1.0f : 0.0f, gemm->c.at, (int)gemm->c.stride);
}

/* False if oneDNN had no memory; c is then unchanged. */
static bool run_onednn(const rondo_gemm *g) {
  const rondo_onednn_use use = rondo_onednn_begin();
  const int status = rondo_onednn_product_api.sgemm(g->a.is_transposed ? 'T' : 'N', g->b.is_transposed ? 'T' : 'N',
                                                    (int64_t)g->m, (int64_t)g->n, (int64_t)g->k, 1.0f, g->a.at,
                                                    (int64_t)g->a.stride, g->b.at, (int64_t)g->b.stride,
                                                    g->c.accumulates ? 1.0f : 0.0f, g->c.at, (int64_t)g->c.stride);
  rondo_onednn_end(use);
  return status == ONEDNN_OK;
}

static void run_own(const rondo_gemm *gemm) {
  if (rondo_gemm_is_thin(gemm))
    rondo_gemm_thin(gemm);
  else if (rondo_gemm_is_row(gemm))
    rondo_gemm_row(gemm);
  else
    rondo_gemm_run_small(&(rondo_gemm_small){gemm->m, gemm->n, gemm->k, gemm->a, gemm->b, gemm->c, NULL, false});
}

void rondo_gemm_run(const rondo_gemm *gemm) {
  const bool fits = fits_int(gemm->m) && fits_int(gemm->n) && fits_int(gemm->k) && fits_int(gemm->a.stride) &&
                    fits_int(gemm->b.stride) && fits_int(gemm->c.stride);
  assert(gemm->a.at != NULL && gemm->b.at != NULL && gemm->c.at != NULL && gemm->c.stride >= gemm->n);
  assert(gemm->a.stride >= (gemm->a.is_transposed ? gemm->m : gemm->k));
  assert(gemm->b.stride >= (gemm->b.is_transposed ? gemm->k : gemm->n));
  if (rondo_gemm_is_own(gemm)) {
    run_own(gemm);
    return;
  }
  if (is_for_onednn(gemm) && run_onednn(gemm)) return;
  if (!has_cblas || !fits) {
    rondo_gemm_plain(gemm);
  } else {
    run_cblas(gemm);
  }
}

/* BF16 ------------------------------------------------------------------------------------------------------------- */

bool rondo_gemm_is_for_bf16(size_t m, size_t n, size_t k) {
  return has_bf16 && rondo_vectors_multiply_bf16() && fits_int(m) && fits_int(n) && fits_int(k) &&
         (double)m * (double)n * (double)k >= BF16_LEAST;
}

bool rondo_gemm_run_bf16(const rondo_gemm_bf16 *g) {
  assert(g->a.stride >= (g->a.is_transposed ? g->m : g->k) && g->b.stride >= (g->b.is_transposed ? g->k : g->n));
  assert(has_bf16 && g->c.stride >= g->n);
  const rondo_onednn_use use = rondo_onednn_begin();
  const int status = rondo_onednn_product_api.gemm_bf16(g->a.is_transposed ? 'T' : 'N', g->b.is_transposed ? 'T' : 'N',
                                                        (int64_t)g->m, (int64_t)g->n, (int64_t)g->k, 1.0f, g->a.at,
                                                        (int64_t)g->a.stride, g->b.at, (int64_t)g->b.stride,
                                                        g->c.accumulates ? 1.0f : 0.0f, g->c.at, (int64_t)g->c.stride);
  rondo_onednn_end(use);
  return status == ONEDNN_OK;
}
