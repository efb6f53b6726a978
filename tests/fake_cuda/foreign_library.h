/* SPDX-License-Identifier: MIT
 * What the fake libraries beside the driver share: their lock, what tests count and let fail, and the driver that they
 * call, as foreign code finds it. Header only, because every such library is one source.
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

static void fill_driver(get_address_fn get_address, cuda_api *api) {
  void *symbol;
#define required(member, name, version, arguments) \
  if (get_address(#name, &symbol, version, 0, NULL) == CU_OK) memcpy(&api->member, &symbol, sizeof symbol);
#define optional required
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
}

#endif
