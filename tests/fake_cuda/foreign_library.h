/* SPDX-License-Identifier: MIT
 * Shared by the fake libraries other than the driver: their lock, the calls that tests count and fail, and the driver
 * that they call, found as foreign code finds it. Header only, because every such library is one source.
 */
#ifndef RONDO_TESTS_FAKE_FOREIGN_LIBRARY_H
#define RONDO_TESTS_FAKE_FOREIGN_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/cuda_driver.h"

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t live; /* objects */
static char failing[64];
static int failure;

static size_t count_live(void) {
  pthread_mutex_lock(&lock);
  const size_t count = live;
  pthread_mutex_unlock(&lock);
  return count;
}

/* One of the library's own counters. */
static uint64_t read_count(const uint64_t *counter) {
  pthread_mutex_lock(&lock);
  const uint64_t count = *counter;
  pthread_mutex_unlock(&lock);
  return count;
}

/* The next call of a function returns the code and does nothing; NULL: none does. */
static void set_failure(const char *symbol, int code) {
  pthread_mutex_lock(&lock);
  failing[0] = '\0';
  if (symbol != NULL) strncat(failing, symbol, sizeof failing - 1);
  failure = code;
  pthread_mutex_unlock(&lock);
}

/* The code that this call is to fail with; 0: none, which is success in each library. */
static int begin(const char *symbol) {
  int code = 0;
  pthread_mutex_lock(&lock);
  if (strcmp(failing, symbol) == 0) {
    code = failure;
    failing[0] = '\0';
  }
  pthread_mutex_unlock(&lock);
  return code;
}

typedef cu_result (*get_address_fn)(const char *symbol, void **out, int version, uint64_t flags, int *found);

/* How the driver that RONDO_CUDA_LIBRARY names finds its functions; NULL when there is none. */
static get_address_fn find_driver_entry(void) {
  const char *path = getenv("RONDO_CUDA_LIBRARY");
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  get_address_fn get_address = NULL;
  if (symbol != NULL) memcpy(&get_address, &symbol, sizeof get_address);
  return get_address;
}

/* Objects of the library, which tests count. */
static inline void note_live(size_t change) {
  pthread_mutex_lock(&lock);
  live += change;
  pthread_mutex_unlock(&lock);
}

static inline void *make_object(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (memory == NULL) abort();
  note_live(1);
  return memory;
}

static inline void free_object(void *object) {
  free(object);
  note_live((size_t)-1);
}

/* The library's own names of its codes. */
typedef struct code_name {
  int code;
  const char *name;
} code_name;

static const char *find_code_name(const code_name *names, size_t count, int code, const char *otherwise) {
  for (size_t i = 0; i < count; i++)
    if (names[i].code == code) return names[i].name;
  return otherwise;
}
#define CODE_NAME(names, code, otherwise) find_code_name(names, sizeof(names) / sizeof *(names), code, otherwise)

static void fill_driver(get_address_fn get_address, cuda_api *api) {
  void *symbol;
#define required(member, name, version, arguments) \
  if (get_address(#name, &symbol, version, 0, NULL) == CU_OK) memcpy(&api->member, &symbol, sizeof symbol);
#define optional required
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
}

static cuda_api driver_api;
static get_address_fn driver_entry;

static void find_driver(void) {
  driver_entry = find_driver_entry();
  if (driver_entry != NULL) fill_driver(driver_entry, &driver_api);
}

/* The driver's functions that the library calls; NULL when there is no driver. */
static const cuda_api *driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  return pthread_once(&once, find_driver) == 0 && driver_entry != NULL ? &driver_api : NULL;
}

/* A kernel of the library: what it is called, its CPU function, and where its function goes. */
typedef struct library_kernel {
  const char *name;
  rondo_cpu_function cpu;
  cu_function *out;
} library_kernel;

/* Loads the library's kernels, which have one parameter, in the current context. False when that fails; nothing is
 * loaded then. */
static inline bool load_kernels(const char *image, const library_kernel *kernels, size_t count,
                                rondo_parameter parameter, cu_context *out_context, cu_module *out_module) {
  const cuda_api *api = driver();
  if (api == NULL || api->test_kernel == NULL) return false;
  for (size_t i = 0; i < count; i++) (void)api->test_kernel(kernels[i].name, kernels[i].cpu, NULL, 1, &parameter);
  if (api->context_get_current(out_context) != CU_OK || *out_context == NULL ||
      api->module_load(out_module, image, 0, NULL, NULL) != CU_OK)
    return false;
  for (size_t i = 0; i < count; i++) {
    if (api->module_get_function(kernels[i].out, *out_module, kernels[i].name) == CU_OK) continue;
    (void)api->module_unload(*out_module);
    return false;
  }
  return true;
}

#endif
