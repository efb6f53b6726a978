/* SPDX-License-Identifier: MIT
 * Making, changing and freeing executables. Invariant: tasks partition the nodes, in an order that the edges allow. The
 * caller notes a change, and the launch that it belongs to applies it. Threads: the caller's side, except
 * cpu_executable_apply, which the owner of the queue calls.
 */
#ifndef RONDO_DEVICE_CPU_CPU_EXECUTABLE_H
#define RONDO_DEVICE_CPU_CPU_EXECUTABLE_H

#include "device/cpu/cpu.h"

RONDO_MUST_USE rondo_status cpu_executable_create(rondo_device *device, const rondo_lowered_graph *graph,
                                                  rondo_executable **out);

/* Frees destroyed executables whose launches are done. With `wait`, waits for the others and frees all. */
void cpu_executable_reap(cpu_device *device, bool wait);
void cpu_executable_settle(rondo_device *device); /* the slot of rondo_device_ops */
/* Asserts the invariants. Call it while the executable does not run. */
void cpu_executable_check(const cpu_executable *executable);
void cpu_executable_apply(cpu_executable *executable, cpu_change_list *changes);

#endif
