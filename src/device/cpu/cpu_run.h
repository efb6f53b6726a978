/* SPDX-License-Identifier: MIT
 * Running an executable, by one of three plans.
 */
#ifndef RONDO_DEVICE_CPU_CPU_RUN_H
#define RONDO_DEVICE_CPU_CPU_RUN_H

#include "device/cpu/cpu.h"

/* Runs it for `queue`. False: suspended; the last segment finishes the queue's item. */
bool cpu_executable_run(cpu_executable *executable, cpu_queue *queue, cpu_participant *self, cpu_item *item);

/* Runs a stolen entry and what follows from it. */
void cpu_run_entry(cpu_pool *pool, cpu_participant *self, uint64_t entry);

/* The same for a segment that has waited for an event; false when there is none. */
bool cpu_run_injected(cpu_pool *pool, cpu_participant *self);
void cpu_run_record(rondo_blocks blocks, void *const *args);

/* For the plan by lanes: runs a segment; puts up an entry that takes a thief to a lane; wakes starters that sleep. */
void cpu_run_segment(const cpu_executable *executable, cpu_participant *self, const cpu_segment *segment);
void cpu_run_invite(const cpu_executable *executable, cpu_participant *self, uint32_t lane);
void cpu_run_wake_starters(cpu_pool *pool);

#endif
