/* SPDX-License-Identifier: MIT
 * Work that is not a kernel: copies, fills and host functions, with functions like those of kernels. So streams and
 * graphs run all work in the same way.
 */
#ifndef RONDO_DEVICE_CPU_CPU_WORK_H
#define RONDO_DEVICE_CPU_CPU_WORK_H

#include <assert.h>

#include "device/cpu/cpu.h"

void cpu_run_nothing(rondo_blocks blocks, void *const *args);
void cpu_run_host(rondo_blocks blocks, void *const *args);
void cpu_run_copy(rondo_blocks blocks, void *const *args);
void cpu_run_fill(rondo_blocks blocks, void *const *args);
cpu_description cpu_describe(const rondo_node_params *params);

/* Copies a kernel's arguments to `values`, and their addresses to `args`. */
static inline void cpu_copy_arguments(const rondo_kernel_node *work, void **args, void *values) {
  const rondo_kernel *kernel = work->kernel;
  assert(kernel->cpu != NULL); /* the caller has called kernel_check */
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    args[i] = (unsigned char *)values + kernel->offsets[i];
    rondo_argument_set(args[i], work->args[i], kernel->parameters[i].bytes);
  }
}

static inline rondo_blocks cpu_kernel_blocks(const rondo_kernel_node *work) {
  return (rondo_blocks){0, (size_t)rondo_grid_blocks(work->grid), work->grid};
}

#endif
