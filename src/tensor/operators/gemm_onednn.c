/* SPDX-License-Identifier: MIT
 * oneDNN, found once and never closed: other users of it in the process may hold its state.
 */
#include "tensor/operators/gemm_onednn.h"

#include <stdint.h>
#include <string.h>

#include "base/dylib.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/options.h"

/* oneDNN's C interface (oneapi/dnnl/dnnl.h). */
typedef int (*sgemm_function)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                              const float *a, int64_t a_stride, const float *b, int64_t b_stride, float beta, float *c,
                              int64_t c_stride);
typedef struct onednn_version {
  int major, minor, patch;
  const char *hash;
  unsigned cpu_runtime, gpu_runtime;
} onednn_version;
typedef const onednn_version *(*version_function)(void);
enum { SUCCESS = 0 };
enum { RUNTIME_SEQUENTIAL = 1, RUNTIME_OPENMP = 2 }; /* of a version's cpu_runtime */

/* OpenMP's, of the runtime that the library was linked to. */
typedef int (*get_threads_function)(void);
typedef void (*set_threads_function)(int threads);

static rondo_dylib library;
static sgemm_function sgemm;
static get_threads_function get_threads; /* NULL: the library has no threads */
static set_threads_function set_threads;
static int major;

bool rondo_onednn_find(const char *name, void *function) {
  void *symbol = rondo_dylib_symbol(&library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static const char *find_functions(void) {
  version_function version;
  if (!rondo_onednn_find("dnnl_sgemm", &sgemm) || !rondo_onednn_find("dnnl_version", &version))
    return "it has no dnnl_sgemm";
  major = version()->major;
  const unsigned runtime = version()->cpu_runtime;
  if (runtime == RUNTIME_SEQUENTIAL) return NULL;
  if (runtime != RUNTIME_OPENMP) return "its threads are not OpenMP's, so that it cannot be told to use one";
  const bool found =
      rondo_onednn_find("omp_get_max_threads", &get_threads) && rondo_onednn_find("omp_set_num_threads", &set_threads);
  return found ? NULL : "its OpenMP has no omp_set_num_threads";
}

static bool open_library(const char *name, rondo_log_level level) {
  const char *trouble;
  if (rondo_dylib_open(&name, 1, &library) != RONDO_OK) {
    rondo_log(level, "tensor", "no matrix products from %s: %s", name, rondo_last_error()->message);
    return false;
  }
  trouble = find_functions();
  if (trouble == NULL) return true;
  rondo_log(level, "tensor", "no matrix products from %s: %s", library.path, trouble);
  rondo_dylib_close(&library);
  return false;
}

bool rondo_onednn_open(void) {
  static const char *const usual[] = {"libdnnl.so.3", "libdnnl.so.2"};
  const char *asked = rondo_option_text(RONDO_OPTION_ONEDNN_LIBRARY);
  if (strcmp(asked, "none") == 0) return false;
  if (asked[0] != '\0' && open_library(asked, RONDO_LOG_WARNING)) return true;
#ifdef __x86_64__
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
    if (open_library(usual[i], RONDO_LOG_DEBUG)) return true;
  }
#else
  (void)usual;
#endif
  return false;
}

const char *rondo_onednn_library(void) { return library.path; }

int rondo_onednn_major(void) { return major; }

int rondo_onednn_begin(void) {
  const int threads = get_threads == NULL ? 1 : get_threads();
  if (threads != 1) set_threads(1);
  return threads;
}

void rondo_onednn_end(int threads) {
  if (threads != 1) set_threads(threads);
}

bool rondo_onednn_run(const rondo_gemm *g) {
  const int threads = rondo_onednn_begin();
  const int status = sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', (int64_t)g->m, (int64_t)g->n,
                           (int64_t)g->k, 1.0f, g->a, (int64_t)g->a_stride, g->b, (int64_t)g->b_stride,
                           g->accumulate ? 1.0f : 0.0f, g->c, (int64_t)g->c_stride);
  rondo_onednn_end(threads);
  return status == SUCCESS;
}
