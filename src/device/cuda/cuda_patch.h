/* SPDX-License-Identifier: MIT
 * Launches with inputs at other addresses.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_PATCH_H
#define RONDO_DEVICE_CUDA_CUDA_PATCH_H

#include "device/cuda/cuda.h"

RONDO_MUST_USE rondo_status cuda_queue_launch_patched(rondo_queue *queue, rondo_executable *executable,
                                                      const rondo_patch_change *changes, size_t count);

#endif
