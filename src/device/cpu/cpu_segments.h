/* SPDX-License-Identifier: MIT
 * The plan by segments: chains of nodes (each the only successor of its only predecessor) become one segment, so
 * that a straight line costs nothing to schedule.
 */
#ifndef RONDO_DEVICE_CPU_CPU_SEGMENTS_H
#define RONDO_DEVICE_CPU_CPU_SEGMENTS_H

#include "device/cpu/cpu.h"

/* Building (cpu_segments.c): chains of the lowered graph. */
RONDO_MUST_USE rondo_status cpu_segments_build(cpu_executable *executable, const rondo_lowered_graph *graph);
void cpu_segments_free(cpu_executable *executable);

#endif
