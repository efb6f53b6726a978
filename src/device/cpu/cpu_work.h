/* SPDX-License-Identifier: MIT
 * Work that is no kernel: copies, fills and host functions, in a kernel's form, so that streams and graphs run all
 * work alike.
 */
#ifndef RONDO_DEVICE_CPU_CPU_WORK_H
#define RONDO_DEVICE_CPU_CPU_WORK_H

#include "device/cpu/cpu.h"

void cpu_run_nothing(rondo_blocks blocks, void *const *args);
void cpu_run_host(rondo_blocks blocks, void *const *args);
void cpu_run_copy(rondo_blocks blocks, void *const *args);
void cpu_run_fill(rondo_blocks blocks, void *const *args);
cpu_description cpu_describe(const rondo_node_params *params);

#endif
