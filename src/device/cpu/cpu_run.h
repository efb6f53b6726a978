/* SPDX-License-Identifier: MIT
 * Running an executable, in a plain loop or by work stealing.
 */
#ifndef RONDO_DEVICE_CPU_CPU_RUN_H
#define RONDO_DEVICE_CPU_CPU_RUN_H

#include "device/cpu/cpu.h"

/* Runs it for `queue`. False: it was set aside; its last task finishes the queue's item. */
bool cpu_executable_run(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, cpu_item *item);

/* Runs a stolen entry and what follows from it. */
void cpu_run_entry(cpu_pool *pool, cpu_participant *self, uint64_t entry);

/* The same for a task that has waited for an event; false when there is none. */
bool cpu_run_injected(cpu_pool *pool, cpu_participant *self);

/* The function of an event-record node. */
void cpu_run_record(rondo_blocks blocks, void *const *args);

/* A run is over, or has work again: wakes the starters that sleep. */
void cpu_run_wake_starters(cpu_pool *pool);

#endif
