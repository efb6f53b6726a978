/* SPDX-License-Identifier: MIT
 * Running an executable, in a plain loop or by work stealing.
 */
#ifndef RONDO_DEVICE_CPU_CPU_RUN_H
#define RONDO_DEVICE_CPU_CPU_RUN_H

#include "device/cpu/cpu.h"

/* Runs the executable for `queue`. False if the queue was set aside: then the last task finishes the queue's item. */
bool cpu_executable_run(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, cpu_item *item);

/* Runs a stolen entry, and then the tasks that become ready. */
void cpu_run_entry(cpu_pool *pool, cpu_participant *self, uint64_t entry);

/* The same for a task that has waited for an event, of `queue` or, if that is NULL, of any queue. Returns false if no
 * such task is ready. */
bool cpu_run_injected(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue);

/* The function of an event-record node. */
void cpu_run_record(rondo_blocks blocks, void *const *args);

/* Wakes the starters that sleep, because a run is over or has work again. */
void cpu_run_wake_starters(cpu_pool *pool);

#endif
