/* SPDX-License-Identifier: MIT
 * Sharing the blocks of one kernel between participants.
 */
#ifndef RONDO_DEVICE_CPU_CPU_GRID_H
#define RONDO_DEVICE_CPU_CPU_GRID_H

#include "device/cpu/cpu.h"

/* Runs all blocks of a kernel, and shares them if that is faster. *cost_ns is about how long they take one after the
 * other, 0 if that is not known; it is updated. NULL for work that runs once. True if others ran some of them. */
bool cpu_grid_run(cpu_participant *self, cpu_queue *queue, rondo_cpu_function function, void *const *args,
                  rondo_blocks all, uint32_t *cost_ns);

/* Runs blocks that `owner` shares. False if there are none, or if they are not of `queue` (NULL: any queue). */
bool cpu_grid_join(cpu_participant *self, cpu_participant *owner, const cpu_queue *queue);

/* Whether there are blocks that could be run. */
bool cpu_grid_has_more(cpu_participant *owner, const cpu_queue *queue);

#endif
