/* SPDX-License-Identifier: MIT
 * The interface through which tests control the fake cuBLASLt:
 *
 *    const fake_cublaslt_control *products = fake_cublaslt_get();   ... products->refuse("cublasLtMatmul", 14);
 *
 * Threads: any.
 */
#ifndef RONDO_TESTS_FAKE_CUBLASLT_H
#define RONDO_TESTS_FAKE_CUBLASLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_cuda/fake_entry.h"

typedef struct fake_cublaslt_control {
  size_t (*live)(void);         /* objects that are alive */
  uint64_t (*products)(void);   /* calls of cublasLtMatmul that did their work */
  uint64_t (*workspaces)(void); /* those of them that needed a workspace */
  uint64_t (*in_tf32)(void);    /* those of them that might use TF32 */
  /* The next call of a function returns the code and does nothing; NULL: none does. */
  void (*refuse)(const char *symbol, int code);
  uint64_t (*of_integers)(void); /* products of I8 that did their work */
  void (*lack_integers)(bool);   /* whether there is no algorithm for products of I8; false at first */
  uint64_t (*of_float8)(void);   /* products of 8-bit floats that did their work */
} fake_cublaslt_control;

#define FAKE_CUBLASLT_ENTRY "rondo_fake_cublaslt_control"

/* NULL when RONDO_CUBLASLT_LIBRARY names no fake one. */
static inline const fake_cublaslt_control *fake_cublaslt_get(void) {
  return fake_entry_call("RONDO_CUBLASLT_LIBRARY", FAKE_CUBLASLT_ENTRY);
}

#endif
