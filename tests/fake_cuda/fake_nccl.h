/* SPDX-License-Identifier: MIT
 * The interface through which tests control the fake NCCL:
 *
 *    const fake_nccl_control *nccl = fake_nccl_get();   ... nccl->refuse("ncclAllReduce", 3);
 *
 * Threads: any.
 */
#ifndef RONDO_TESTS_FAKE_NCCL_H
#define RONDO_TESTS_FAKE_NCCL_H

#include <stddef.h>
#include <stdint.h>

#include "fake_cuda/fake_entry.h"

typedef struct fake_nccl_control {
  size_t (*live)(void);    /* communicators that are alive */
  uint64_t (*calls)(void); /* collectives that were given to it */
  /* The next call of a function returns the code and does nothing; NULL: none does. */
  void (*refuse)(const char *symbol, int code);
  void (*set_async_error)(int code); /* what all communicators have, from now on */
  void (*set_version)(int code);     /* as ncclGetVersion returns it; 0: the usual one */
  size_t (*waiting)(void);           /* ranks that wait until others join */
  /* The address of the last group whose rank 0 began to listen there, because NCCL_COMM_ID was set. */
  void (*get_address)(char *out, size_t bytes);
} fake_nccl_control;

#define FAKE_NCCL_ENTRY "rondo_fake_nccl_control"

/* NULL when RONDO_NCCL_LIBRARY names no fake one. */
static inline const fake_nccl_control *fake_nccl_get(void) {
  return fake_entry_call("RONDO_NCCL_LIBRARY", FAKE_NCCL_ENTRY);
}

#endif
