/* SPDX-License-Identifier: MIT
 * A kernel's code on a CUDA device: a source that is compiled when the kernel is made, an image that is loaded as a
 * module, or a function that the user has loaded.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_KERNEL_H
#define RONDO_DEVICE_CUDA_CUDA_KERNEL_H

#include "device/cuda/cuda.h"

RONDO_MUST_USE rondo_status cuda_kernel_prepare(rondo_device *device, rondo_kernel *kernel);
RONDO_MUST_USE rondo_status cuda_kernel_check(const rondo_device *device, const rondo_kernel_node *node);
RONDO_MUST_USE rondo_status cuda_config_check(const rondo_device *device, const rondo_kernel_node *node);

/* Code as text or binary, and its function `name`. Errors: INVALID_DATA with the driver's log, and others. */
RONDO_MUST_USE rondo_status cuda_kernel_load(cuda_device *device, const char *name, const void *image,
                                             cuda_kernel **out);

/* Gives a kernel a function that other code keeps loaded. */
RONDO_MUST_USE rondo_status cuda_kernel_adopt(cuda_device *device, rondo_kernel *kernel, cu_function function);

/* Compares the declared parameters with those of the function, as far as the driver reports them: BAD_SIZE. In the
 * device's context. */
RONDO_MUST_USE rondo_status cuda_kernel_check_parameters(const cuda_device *device, const rondo_kernel *kernel,
                                                         cu_function function);

/* Out of use: unloaded when no queue runs it any more. NULL is fine. */
void cuda_kernel_bury(cuda_kernel *kernel);

/* Unloads what is no longer run; with `all`, everything. */
void cuda_kernels_reap(cuda_device *device, bool all);
static inline void cuda_kernels_look(cuda_device *device) {
  if (__builtin_expect(atomic_load_explicit(&device->has_dead_kernels, memory_order_relaxed), 0))
    cuda_kernels_reap(device, false);
}

#endif
