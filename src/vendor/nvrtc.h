/* SPDX-License-Identifier: MIT
 * Compiling CUDA C at run time by NVRTC, which is loaded (vendor/library.h) at the first compilation.
 * Threads: any.
 */
#ifndef RONDO_VENDOR_NVRTC_H
#define RONDO_VENDOR_NVRTC_H

#include <stddef.h>

#include "base/allocation.h"

typedef struct cuda_code {
  char *bytes; /* an image for cuModuleLoadDataEx; from the allocator that was given */
  size_t count;
} cuda_code;

/* Major * 1000 + minor * 10, as part of what a compiled image depends on. Errors: UNAVAILABLE, with each candidate's
 * own error. */
RONDO_MUST_USE rondo_status cuda_compiler_version(int *out);

/* Machine code for compute capability major.minor. Errors: UNAVAILABLE, also when the compiler does not know that;
 * INVALID_DATA with its log when the source does not compile, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status cuda_compile(const rondo_allocator *allocator, const char *name, const char *source,
                                         int major, int minor, cuda_code *out);

#endif
