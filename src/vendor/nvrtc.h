/* SPDX-License-Identifier: MIT
 * Compiles CUDA C at run time with NVRTC, which is loaded (vendor/library_loader.h) at the first compilation. Threads:
 * any.
 */
#ifndef RONDO_VENDOR_NVRTC_H
#define RONDO_VENDOR_NVRTC_H

#include <stddef.h>

#include "base/allocation.h"

typedef struct cuda_code {
  char *bytes; /* an image for cuModuleLoadDataEx, from the caller's allocator */
  size_t count;
} cuda_code;

/* Major * 1000 + minor * 10. A compiled image depends on it. Errors: UNAVAILABLE, with the error of each candidate. */
RONDO_MUST_USE rondo_status cuda_compiler_version(int *out);

/* Compiles to machine code for compute capability major.minor. *out_ptx is the PTX that it was made of, a text that
 * ends in NUL, or empty if the compiler does not return it. Errors: UNAVAILABLE, also if the compiler does not know
 * that capability; INVALID_DATA with its log if the source does not compile; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status cuda_compile(const rondo_allocator *allocator, const char *name, const char *source,
                                         int major, int minor, cuda_code *out, cuda_code *out_ptx);

#endif
