/* SPDX-License-Identifier: MIT
 * The plan by lanes: a schedule fixed ahead.
 */
#ifndef RONDO_DEVICE_CPU_CPU_LANES_H
#define RONDO_DEVICE_CPU_CPU_LANES_H

#include "device/cpu/cpu.h"

/* Lanes (cpu_lanes.c). Building makes none where they make no sense. Run: by the starter, who then waits until
 * sinks_left is 0; join: by who took an invitation. */
RONDO_MUST_USE rondo_status cpu_lanes_build(cpu_executable *executable);
void cpu_lanes_free(cpu_executable *executable);
void cpu_lanes_run(cpu_executable *executable, cpu_participant *self);
void cpu_lanes_join(cpu_executable *executable, cpu_participant *self, uint32_t lane);

#endif
