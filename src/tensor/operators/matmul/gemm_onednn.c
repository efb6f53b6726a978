/* SPDX-License-Identifier: MIT
 * What products need of oneDNN.
 */
#include "tensor/operators/matmul/gemm_onednn.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/thread.h"
#include "tensor/vendor/libraries.h"

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

typedef struct products_api {
  sgemm_function sgemm;
  version_function version;
} products_api;

static products_api api;
static get_threads_function get_threads; /* NULL: the library has no threads */
static set_threads_function set_threads;
static bool moves_stack; /* away from the thread's stack: see the header */

static bool find(const rondo_dylib *file, const char *name, void *function) {
  void *symbol = rondo_dylib_symbol(file, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool is_before(const onednn_version *v, int major, int minor, int patch) {
  if (v->major != major) return v->major < major;
  return v->minor != minor ? v->minor < minor : v->patch < patch;
}

static void check_stack(void) {
#ifdef __x86_64__
  const bool is_x86 = true;
#else
  const bool is_x86 = false;
#endif
  moves_stack = is_x86 && is_before(api.version(), 3, 11, 2);
  rondo_onednn_library.note =
      moves_stack ? "releases before 3.11.2 use the stack pointer for other things: signals wait during its calls" : "";
}

static const char *check_threads(const rondo_dylib *file) {
  check_stack();
  const unsigned runtime = api.version()->cpu_runtime;
  get_threads = NULL;
  if (runtime == RUNTIME_SEQUENTIAL) return NULL;
  if (runtime != RUNTIME_OPENMP) return "its threads are not OpenMP's, so that it cannot be told to use one";
  const bool found = find(file, "omp_get_max_threads", &get_threads) && find(file, "omp_set_num_threads", &set_threads);
  return found ? NULL : "its OpenMP has no omp_set_num_threads";
}

/* Elsewhere its products are plain loops. */
static const char *why_not(void) {
  if (rondo_library_asked(&rondo_cblas_library)[0] != '\0') return "RONDO_CBLAS_LIBRARY says what makes all products";
#ifndef __x86_64__
  if (rondo_library_asked(&rondo_onednn_library)[0] == '\0')
    return "it is quicker on x86-64 alone; RONDO_ONEDNN_LIBRARY names one all the same";
#endif
  return NULL;
}

static const rondo_library_symbol symbols[] = {{"dnnl_sgemm", offsetof(products_api, sgemm)},
                                               {"dnnl_version", offsetof(products_api, version)}};

/* Release 2 goes before 3: both make products, and convolutions need the interface of 2 (onednn.h). */
rondo_library rondo_onednn_library = {.name = "oneDNN",
                                      .purpose = "large matrix products on CPU devices",
                                      .needed = "oneDNN",
                                      .option = RONDO_OPTION_ONEDNN_LIBRARY,
                                      .usual = {"libdnnl.so.2", "libdnnl.so.3"},
                                      .symbols = symbols,
                                      .symbol_count = sizeof symbols / sizeof symbols[0],
                                      .functions = &api,
                                      .why_not = why_not,
                                      .accept = check_threads,
                                      .search = PTHREAD_MUTEX_INITIALIZER};

int rondo_onednn_major(void) { return api.version()->major; }

rondo_onednn_use rondo_onednn_begin(void) {
  const rondo_onednn_use use = {.threads = get_threads == NULL ? 1 : get_threads(),
                                .signals = moves_stack ? rondo_signals_block() : 0};
  if (use.threads != 1) set_threads(1);
  return use;
}

void rondo_onednn_end(rondo_onednn_use use) {
  if (use.threads != 1) set_threads(use.threads);
  if (moves_stack) rondo_signals_restore(use.signals);
}

bool rondo_onednn_run(const rondo_gemm *g) {
  const rondo_onednn_use use = rondo_onednn_begin();
  const int status = api.sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', (int64_t)g->m, (int64_t)g->n,
                               (int64_t)g->k, 1.0f, g->a, (int64_t)g->a_stride, g->b, (int64_t)g->b_stride,
                               g->accumulate ? 1.0f : 0.0f, g->c, (int64_t)g->c_stride);
  rondo_onednn_end(use);
  return status == SUCCESS;
}
