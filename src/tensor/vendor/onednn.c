/* SPDX-License-Identifier: MIT
 * Finds oneDNN, and prepares and restores the thread around its calls.
 */
#include "tensor/vendor/onednn.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"

/* Functions of the OpenMP runtime that the library is linked to. */
typedef int (*get_threads_function)(void);
typedef void (*set_threads_function)(int threads);

onednn_products_api rondo_onednn_product_api;
onednn_api rondo_onednn;

static get_threads_function get_threads; /* NULL: the library has no threads */
static set_threads_function set_threads;
static bool moves_stack; /* away from the thread's stack: see the header */

/* Products --------------------------------------------------------------------------------------------------------- */

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
  moves_stack = is_x86 && is_before(rondo_onednn_product_api.version(), 3, 11, 2);
  rondo_onednn_products.note =
      moves_stack ? "releases before 3.11.2 use the stack pointer for other data: signals are blocked during its calls"
                  : "";
}

static rondo_status refuse(const rondo_dylib *file, const char *why) {
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s: %s", file->path, why);
}

static rondo_status check_threads(const rondo_dylib *file) {
  check_stack();
  const unsigned runtime = rondo_onednn_product_api.version()->cpu_runtime;
  get_threads = NULL;
  if (runtime == ONEDNN_RUNTIME_SEQUENTIAL) return RONDO_OK;
  if (runtime != ONEDNN_RUNTIME_OPENMP)
    return refuse(file, "its threads are not those of OpenMP, so it cannot be limited to one thread");
  const bool found = find(file, "omp_get_max_threads", &get_threads) && find(file, "omp_set_num_threads", &set_threads);
  return found ? RONDO_OK : refuse(file, "its OpenMP has no omp_set_num_threads");
}

/* On other processors than x86-64 its products are plain loops. */
static const char *why_not(void) {
  if (rondo_library_asked(&rondo_cblas)[0] != '\0') return "RONDO_CBLAS_LIBRARY is set, which is used for all products";
#ifndef __x86_64__
  if (rondo_library_asked(&rondo_onednn_products)[0] == '\0')
    return "it is faster only on x86-64; set RONDO_ONEDNN_LIBRARY to use it anyway";
#endif
  return NULL;
}

static const char *const product_symbols[] = {ONEDNN_PRODUCT_FUNCTIONS(RONDO_LIBRARY_NAME)};

/* Release 2 is preferred to 3: both have products, but convolutions need the interface of 2. */
rondo_library rondo_onednn_products = {.name = "oneDNN",
                                       .purpose = "large matrix products on CPU devices",
                                       .needed = "oneDNN",
                                       .option = RONDO_OPTION_ONEDNN_LIBRARY,
                                       .usual = {"libdnnl.so.2", "libdnnl.so.3"},
                                       RONDO_LIBRARY_FUNCTIONS(product_symbols, rondo_onednn_product_api),
                                       .optional_count = ONEDNN_OPTIONAL_PRODUCTS,
                                       .why_not = why_not,
                                       .accept = check_threads,
                                       .search = PTHREAD_MUTEX_INITIALIZER};

/* Convolutions ----------------------------------------------------------------------------------------------------- */

static rondo_status make_engine(const rondo_dylib *file) {
  if (rondo_onednn_product_api.version()->major != 2) return refuse(file, "it is another release than oneDNN 2");
  const int code = rondo_onednn.engine_create(&rondo_onednn.engine, ONEDNN_CPU, 0);
  if (code == ONEDNN_OK) return RONDO_OK;
  rondo_onednn_convolutions.is_faulty = true;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s: it cannot make an engine for the CPU (code %d)",
                    file->path, code);
}

static const char *const symbols[] = {ONEDNN_FUNCTIONS(RONDO_LIBRARY_NAME)};

rondo_library rondo_onednn_convolutions = {.name = "oneDNN",
                                           .purpose = "convolutions on CPU devices",
                                           .needed = "oneDNN 2",
                                           .option = RONDO_OPTION_ONEDNN_LIBRARY,
                                           RONDO_LIBRARY_FUNCTIONS(symbols, rondo_onednn),
                                           .base = &rondo_onednn_products,
                                           .accept = make_engine,
                                           .search = PTHREAD_MUTEX_INITIALIZER};

/* Calls ------------------------------------------------------------------------------------------------------------ */

rondo_onednn_use rondo_onednn_begin(void) {
  const rondo_onednn_use use = {.threads = get_threads == NULL ? 1 : get_threads(),
                                .signals = moves_stack ? rondo_signals_block() : 0};
  assert(use.threads >= 1);
  if (use.threads != 1) set_threads(1);
  return use;
}

void rondo_onednn_end(rondo_onednn_use use) {
  if (use.threads != 1) set_threads(use.threads);
  if (moves_stack) rondo_signals_restore(use.signals);
}

void rondo_onednn_log_no_pass(int pass, int code) {
  rondo_log(RONDO_LOG_DEBUG, "vendor", "oneDNN cannot make pass %d of a convolution: code %d", pass, code);
}
