/* SPDX-License-Identifier: MIT
 * The interface through which tests control the fake cuDNN:
 *
 *   const fake_cudnn_control *convolutions = fake_cudnn_get();   ... convolutions->refuse("cudnnBackendExecute", 5000);
 *
 * Threads: any.
 */
#ifndef RONDO_TESTS_FAKE_CUDNN_H
#define RONDO_TESTS_FAKE_CUDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_cuda/fake_entry.h"

typedef struct fake_cudnn_control {
  size_t (*live)(void);           /* handles and descriptors that are alive */
  uint64_t (*convolutions)(void); /* plans of one that were executed */
  uint64_t (*workspaces)(void);   /* those of them that needed a workspace */
  uint64_t (*in_tf32)(void);      /* those of them that might use TF32 */
  uint64_t (*inexact)(void);      /* those that give other bits each time, or are less accurate than F32 */
  uint64_t (*violations)(void);   /* calls that the library's manual forbids */
  /* The next call of a function returns the code and does nothing; NULL: none does. */
  void (*refuse)(const char *symbol, int code);
  /* The same for the `number`-th call from now on, of whatever function that may fail; 0: none. Tells of the failure
   * that was ordered before whether it came. */
  bool (*refuse_call)(uint64_t number, int code);
  uint64_t (*graphs)(void);           /* plans of several operations that were executed */
  void (*set_version)(size_t number); /* what cudnnGetVersion says; 91900 at first */
} fake_cudnn_control;

#define FAKE_CUDNN_ENTRY "rondo_fake_cudnn_control"

/* NULL when RONDO_CUDNN_LIBRARY names no fake one. */
static inline const fake_cudnn_control *fake_cudnn_get(void) {
  return fake_entry_call("RONDO_CUDNN_LIBRARY", FAKE_CUDNN_ENTRY);
}

#endif
