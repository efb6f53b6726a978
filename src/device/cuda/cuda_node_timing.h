/* SPDX-License-Identifier: MIT
 * How long each node of an executable takes: a second graph of the same nodes, each between two event records.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_NODE_TIMING_H
#define RONDO_DEVICE_CUDA_CUDA_NODE_TIMING_H

#include "device/cuda/cuda_executable.h"

/* driver.h's slots set_timing and times (cuda_node_timing.c). */
rondo_status cuda_set_timing(rondo_executable *executable, bool on);
void cuda_times(const rondo_executable *executable, uint64_t *out_ns);

#endif
