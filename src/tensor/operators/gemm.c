/* SPDX-License-Identifier: MIT
 * Which library makes a product. What there is is found out once, kept for the life of the process. The library is
 * never closed: other users of it in the process may hold its state.
 */
#define _GNU_SOURCE
#include "tensor/operators/gemm.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/dylib.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/options.h"
#include "tensor/operators/gemm_onednn.h"

/* The C interface to the BLAS ("Basic Linear Algebra Subprograms Technical Forum Standard", 2001, appendix B). */
typedef void (*cblas_sgemm_function)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                                     const float *a, int a_stride, const float *b, int b_stride, float beta, float *c,
                                     int c_stride);
typedef void (*set_threads_function)(int threads);

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANSPOSE = 111, CBLAS_TRANSPOSE = 112 };

/* Multiplications from which oneDNN is the quicker one: OpenBLAS has kernels for small products that arrange nothing
 * beforehand, but not for a b that is stored transposed. */
#define ONEDNN_LEAST 524288.0
#define ONEDNN_LEAST_TRANSPOSED 32768.0

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cblas_sgemm_function cblas_sgemm; /* written once, before any thread reads it */
static rondo_dylib library;
static bool has_onednn;
static size_t tiles = 8; /* enough for a usual number of workers */

static void limit_tiles(void) {
  const long processors = sysconf(_SC_NPROCESSORS_CONF); /* -1: the system does not say */
  if (!has_onednn && cblas_sgemm != NULL && processors > 0 && (size_t)processors < tiles) tiles = (size_t)processors;
}

static void use_one_thread(const rondo_dylib *from) {
  void *symbol = rondo_dylib_symbol(from, "openblas_set_num_threads");
  set_threads_function set_threads = NULL;
  if (symbol == NULL) return;
  memcpy(&set_threads, &symbol, sizeof set_threads);
  set_threads(1);
}

static bool use_library(const char *name, rondo_log_level level) {
  if (rondo_dylib_open(&name, 1, &library) != RONDO_OK) {
    rondo_log(level, "tensor", "no matrix products from %s: %s", name, rondo_last_error()->message);
    return false;
  }
  void *symbol = rondo_dylib_symbol(&library, "cblas_sgemm");
  if (symbol == NULL) {
    rondo_log(level, "tensor", "no matrix products from %s: it has no cblas_sgemm", library.path);
    rondo_dylib_close(&library);
    return false;
  }
  memcpy(&cblas_sgemm, &symbol, sizeof cblas_sgemm);
  use_one_thread(&library);
  return true;
}

static void find_library(void) {
  static const char *const usual[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"};
  const char *asked = rondo_option_text(RONDO_OPTION_CBLAS_LIBRARY);
  if (strcmp(asked, "none") == 0) return;
  has_onednn = asked[0] == '\0' && rondo_onednn_open();
  if (asked[0] != '\0' && use_library(asked, RONDO_LOG_WARNING)) return;
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
    if (use_library(usual[i], RONDO_LOG_DEBUG)) return;
  }
}

/* A library that is not there is no error of the call that looked for it. */
static void find_library_quietly(void) {
  rondo_saved_error before;
  rondo_error_save(&before);
  find_library();
  limit_tiles();
  rondo_error_restore(&before);
}

void rondo_gemm_prepare(void) {
  const int failed = pthread_once(&once, find_library_quietly);
  (void)failed; /* it has no errors but those of a wrong argument */
}

const char *rondo_gemm_library(void) { return has_onednn ? rondo_onednn_library() : library.path; }

bool rondo_gemm_has_onednn(void) { return has_onednn; }

size_t rondo_gemm_tiles(void) { return tiles; }

static bool fits_int(size_t value) { return value <= INT_MAX; }

static bool is_for_onednn(const rondo_gemm *gemm) {
  const double least = gemm->transpose_b ? ONEDNN_LEAST_TRANSPOSED : ONEDNN_LEAST;
  return has_onednn && (cblas_sgemm == NULL || (double)gemm->m * (double)gemm->n * (double)gemm->k >= least);
}

static void run_cblas(const rondo_gemm *gemm) {
  cblas_sgemm(CBLAS_ROW_MAJOR, gemm->transpose_a ? CBLAS_TRANSPOSE : CBLAS_NO_TRANSPOSE,
              gemm->transpose_b ? CBLAS_TRANSPOSE : CBLAS_NO_TRANSPOSE, (int)gemm->m, (int)gemm->n, (int)gemm->k, 1.0f,
              gemm->a, (int)gemm->a_stride, gemm->b, (int)gemm->b_stride, gemm->accumulate ? 1.0f : 0.0f, gemm->c,
              (int)gemm->c_stride);
}

void rondo_gemm_run(const rondo_gemm *gemm) {
  const bool fits = fits_int(gemm->m) && fits_int(gemm->n) && fits_int(gemm->k) && fits_int(gemm->a_stride) &&
                    fits_int(gemm->b_stride) && fits_int(gemm->c_stride);
  if (is_for_onednn(gemm) && rondo_onednn_run(gemm)) return;
  if (cblas_sgemm == NULL || !fits) {
    rondo_gemm_plain(gemm);
  } else {
    run_cblas(gemm);
  }
}
