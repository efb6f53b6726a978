/* SPDX-License-Identifier: MIT
 * The declarations of what kernels of the program and its libraries do with their parameters (<rondo/access.h>). A
 * device keeps one for each function or name. Threads: any.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_DECLARED_KERNELS_H
#define RONDO_DEVICE_CUDA_CUDA_DECLARED_KERNELS_H

#include "device/cuda/cuda.h"

/* A slot of rondo_capture_ops. */
RONDO_MUST_USE rondo_status cuda_declare(rondo_device *device, rondo_kernel *declaration);

/* The declaration of a function with this name, to which the caller gets a reference; or NULL. */
rondo_kernel *cuda_declaration_find(cuda_device *device, cu_function function, const char *name);

void cuda_declarations_free(cuda_device *device);

#endif
