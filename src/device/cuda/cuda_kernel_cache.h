/* SPDX-License-Identifier: MIT
 * Compiled kernels on disk, so that each source is compiled once a machine: files in RONDO_CUDA_CACHE (else
 * $XDG_CACHE_HOME/rondo or ~/.cache/rondo), together at most RONDO_CUDA_CACHE_BYTES, the longest unused going first.
 * A file holds all that its code depends on, and is used only when that is the same byte for byte; it appears by being
 * renamed, so that nobody sees half of one. Folders and files are made for their owner alone (0700 and 0600); those
 * that belong to a user other than root and the caller, or that other users may write to, are not used. What goes wrong
 * with the cache is said in the log and means compiling. Threads and processes: any.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_KERNEL_CACHE_H
#define RONDO_DEVICE_CUDA_CUDA_KERNEL_CACHE_H

#include "vendor/nvrtc.h"

/* What code depends on. */
typedef struct cuda_cache_key {
  int compiler_version, major, minor; /* cuda_compiler_version; compute capability */
  const char *source;
} cuda_cache_key;

/* The code, from the allocator; false when there is none. */
bool cuda_cache_find(const rondo_allocator *allocator, const cuda_cache_key *key, cuda_code *out);
/* Returns how many files went to keep to the bound, what was put there being one of them when it is too large. */
size_t cuda_cache_put(const cuda_cache_key *key, const cuda_code *code);

#endif
