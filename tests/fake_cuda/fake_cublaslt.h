/* SPDX-License-Identifier: MIT
 * What tests ask the fake cuBLASLt beside the library's own interface:
 *
 *   const fake_cublaslt_control *products = fake_cublaslt_get();   ... products->refuse("cublasLtMatmul", 14);
 *
 * Threads: any.
 */
#ifndef RONDO_TESTS_FAKE_CUBLASLT_H
#define RONDO_TESTS_FAKE_CUBLASLT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_cublaslt_control {
  size_t (*live)(void);         /* objects that are alive */
  uint64_t (*products)(void);   /* calls of cublasLtMatmul that did their work */
  uint64_t (*workspaces)(void); /* those of them that needed a workspace */
  /* The next call of a function returns the code and does nothing; NULL: none does. */
  void (*refuse)(const char *symbol, int code);
} fake_cublaslt_control;

#define FAKE_CUBLASLT_ENTRY "rondo_fake_cublaslt_control"
typedef const fake_cublaslt_control *(*fake_cublaslt_entry)(void);

/* NULL when RONDO_CUBLASLT_LIBRARY names no fake one. */
static inline const fake_cublaslt_control *fake_cublaslt_get(void) {
  const char *path = getenv("RONDO_CUBLASLT_LIBRARY");
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = library != NULL ? dlsym(library, FAKE_CUBLASLT_ENTRY) : NULL;
  if (symbol == NULL) return NULL;
  fake_cublaslt_entry entry;
  memcpy(&entry, &symbol, sizeof entry);
  return entry();
}

#endif
