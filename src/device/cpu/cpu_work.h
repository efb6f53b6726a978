/* SPDX-License-Identifier: MIT
 * Functions for all work like those of kernels: for kernels that get their block, for copies, fills and host functions.
 * So streams and graphs run all work in the same way.
 */
#ifndef RONDO_DEVICE_CPU_CPU_WORK_H
#define RONDO_DEVICE_CPU_CPU_WORK_H

#include <assert.h>

#include "device/cpu/cpu.h"
#include "graph/launch_config.h"

void cpu_run_nothing(rondo_blocks blocks, void *const *args);
void cpu_run_host(rondo_blocks blocks, void *const *args);
void cpu_run_copy(rondo_blocks blocks, void *const *args);
void cpu_run_fill(rondo_blocks blocks, void *const *args);
cpu_description cpu_describe(const rondo_node_params *params);

/* Copies a kernel's arguments to `values`, and their addresses to `args`. */
static inline void cpu_copy_arguments(const rondo_kernel_node *work, void **args, void *values) {
  const rondo_kernel *kernel = work->kernel;
  assert(kernel->cpu != NULL || kernel->cpu_block != NULL); /* the caller has called kernel_check */
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    args[i] = (unsigned char *)values + kernel->offsets[i];
    rondo_argument_set(args[i], work->args[i], kernel->parameters[i].bytes);
  }
}

/* A kernel whose function gets its block (rondo_cpu_block_function). It runs by cpu_run_block, whose args[0] points to
 * this. It comes after the values of the arguments. Their addresses are one more than the parameters: the last is args
 * of cpu_run_block. */
typedef struct cpu_block_work {
  rondo_cpu_block_function function;
  void *const *args;
  rondo_thread_block block; /* without memory */
  cpu_shared_memory *memory;
} cpu_block_work;
void cpu_run_block(rondo_blocks blocks, void *const *args);

static inline uint32_t cpu_address_count(const rondo_kernel *kernel) {
  return kernel->parameter_count + (kernel->cpu == NULL ? 1 : 0);
}
static inline size_t cpu_value_bytes(const rondo_kernel *kernel) {
  if (kernel->cpu != NULL) return kernel->argument_bytes;
  return cpu_align(kernel->argument_bytes, alignof(cpu_block_work)) + sizeof(cpu_block_work);
}

/* How the work runs, after cpu_copy_arguments wrote to `args` and `values`. *out_args are those of the function. */
rondo_cpu_function cpu_prepare_block(cpu_device *device, const rondo_kernel_node *work, void **args, void *values,
                                     void *const **out_args);
static inline rondo_cpu_function cpu_prepare_kernel(cpu_device *device, const rondo_kernel_node *work, void **args,
                                                    void *values, void *const **out_args) {
  cpu_copy_arguments(work, args, values);
  *out_args = args;
  if (__builtin_expect(work->kernel->cpu != NULL, 1)) return work->kernel->cpu;
  return cpu_prepare_block(device, work, args, values, out_args);
}

static inline rondo_blocks cpu_kernel_blocks(const rondo_kernel_node *work) {
  return (rondo_blocks){0, (size_t)rondo_grid_blocks(work->grid), work->grid};
}

#endif
