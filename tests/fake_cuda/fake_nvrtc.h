/* SPDX-License-Identifier: MIT
 * The functions of the fake run-time compiler as a table, for tests that load it by name:
 *
 *    fake_nvrtc_api nvrtc;   if (fake_nvrtc_load(getenv("RONDO_NVRTC_LIBRARY"), &nvrtc)) ...
 *
 * Threads: any.
 */
#ifndef RONDO_TESTS_FAKE_NVRTC_H
#define RONDO_TESTS_FAKE_NVRTC_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct fake_nvrtc_program fake_nvrtc_program;

typedef struct fake_nvrtc_api {
#define ROW(result, member, symbol, arguments) result(*member) arguments;
#include "fake_cuda/nvrtc_symbols.h"
#undef ROW
} fake_nvrtc_api;

/* False when the library or one of its functions is missing. It stays loaded. */
static inline bool fake_nvrtc_load(const char *path, fake_nvrtc_api *out) {
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol;
  if (library == NULL) return false;
#define ROW(result, member, name, arguments)                 \
  if ((symbol = dlsym(library, name)) == NULL) return false; \
  memcpy(&out->member, &symbol, sizeof symbol);
#include "fake_cuda/nvrtc_symbols.h"
#undef ROW
  return true;
}

#endif
