/* SPDX-License-Identifier: MIT
 * Compiled kernels on disk, so that a machine compiles each source once. The files are in RONDO_CUDA_CACHE (else
 * $XDG_CACHE_HOME/rondo or ~/.cache/rondo). Together they have at most RONDO_CUDA_CACHE_BYTES; the least recently used
 * are removed first. PTX is not kept; what it said is. A file holds everything that its code depends on, and is used
 * only if that is the same byte for byte. It is renamed into place, so an incomplete file is never read. Folders and
 * files are private to their owner (0700 and 0600). Those of a user other than root and the caller, or that other users
 * can write to, are not used. A problem with the cache is logged, and the kernel is compiled. Threads and processes:
 * any.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_KERNEL_CACHE_H
#define RONDO_DEVICE_CUDA_CUDA_KERNEL_CACHE_H

#include "device/cuda/ptx/ptx_access.h"
#include "vendor/nvrtc.h"

/* What the code depends on. */
typedef struct cuda_cache_key {
  int compiler_version, major, minor; /* cuda_compiler_version; compute capability */
  const char *source;
} cuda_cache_key;

/* What a compilation gives: the code, and what its PTX said about the parameters of all its kernels. */
typedef struct cuda_compiled {
  cuda_code code;
  ptx_findings findings;
} cuda_compiled;
void cuda_compiled_free(const rondo_allocator *allocator, cuda_compiled *compiled);

/* Finds the code of a key, in memory of the allocator. False if the cache does not have it. */
bool cuda_cache_find(const rondo_allocator *allocator, const cuda_cache_key *key, cuda_compiled *out);
/* Stores it. Returns how many files were removed to keep to the bound; if the code alone is too large, it is one
 * of them. */
size_t cuda_cache_put(const cuda_cache_key *key, const cuda_compiled *compiled);

#endif
