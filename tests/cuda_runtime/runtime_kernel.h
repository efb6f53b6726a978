/* SPDX-License-Identifier: MIT
 * A kernel of the CUDA run time without a GPU (cuda_runtime.h): a static variable for each. The first launch loads it.
 */
#ifndef RONDO_TESTS_CUDA_RUNTIME_KERNEL_H
#define RONDO_TESTS_CUDA_RUNTIME_KERNEL_H

#include <rondo/kernel.h>

typedef struct runtime_kernel {
  const char *name;
  rondo_cpu_block_function run;
  const rondo_parameter *parameters;
  size_t count;
  void *loaded; /* the driver's function, or Rondo's kernel; requires the run time's lock */
} runtime_kernel;

#endif
