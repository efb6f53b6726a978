/* SPDX-License-Identifier: MIT
 * Splitting the blocks of one kernel over participants.
 */
#ifndef RONDO_DEVICE_CPU_CPU_GRID_H
#define RONDO_DEVICE_CPU_CPU_GRID_H

#include "device/cpu/cpu.h"

/* Runs all blocks of a kernel, and shares them if that pays. True if others ran some of them. */
bool cpu_grid_run(cpu_participant *self, cpu_queue *queue, rondo_cpu_function function, void *const *args,
                  rondo_blocks all);

/* Takes part in what `owner` shares; false when there is nothing to do, or it is not `queue`'s (any, when NULL). */
bool cpu_grid_join(cpu_participant *self, cpu_participant *owner, const cpu_queue *queue);

/* Whether there is something left to take part in. */
bool cpu_grid_has_more(cpu_participant *owner, const cpu_queue *queue);

#endif
