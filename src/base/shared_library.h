/* SPDX-License-Identifier: MIT
 * Shared libraries found at run time. Tries a list of names in order and keeps the error of each, so the message names
 * every candidate.
 */
#ifndef RONDO_BASE_SHARED_LIBRARY_H
#define RONDO_BASE_SHARED_LIBRARY_H

#include <stddef.h>

#include <rondo/status.h>

#include "base/component.h"

typedef struct rondo_dylib {
  void *handle;
  char path[256]; /* the candidate that opened */
} rondo_dylib;

/* Opens the first of `count` candidates that opens; skips NULL and "".
 * Errors: UNAVAILABLE, with each candidate's own error in the message; *out is then zeroed. */
RONDO_MUST_USE rondo_status rondo_dylib_open(const char *const *candidates, size_t count, rondo_dylib *out);
void rondo_dylib_close(rondo_dylib *library); /* a zeroed one is allowed */

/* NULL if it has no such symbol. Cast through a union or memcpy to a function pointer. */
RONDO_PRIVATE void *rondo_dylib_symbol(const rondo_dylib *library, const char *name);

#endif
