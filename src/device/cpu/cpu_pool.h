/* SPDX-License-Identifier: MIT
 * The workers of a CPU device, and how they find work: queues that are ready, tasks of running graphs, grids
 * that are shared.
 */
#ifndef RONDO_DEVICE_CPU_CPU_POOL_H
#define RONDO_DEVICE_CPU_CPU_POOL_H

#include "device/cpu/cpu.h"

RONDO_MUST_USE rondo_status cpu_pool_start(cpu_device *device, uint32_t workers);
void cpu_pool_stop(cpu_device *device);

/* Whether a host thread that is going to wait for what it launches is best left to run it: others have long runs on all
 * processors but its own, and a worker looks soon whether it did. */
bool cpu_pool_leaves_to_host(const cpu_pool *pool);

/* Wakes one sleeping worker when there is one. */
void cpu_pool_wake(cpu_pool *pool);

/* A participant for a host thread, or NULL when all are taken. */
cpu_participant *cpu_pool_join(cpu_pool *pool);
void cpu_pool_leave(cpu_pool *pool, cpu_participant *participant);

/* Does a bit of `queue`'s work that is shared now (any queue's when NULL): a grid's blocks, a stolen task. False
 * when there was none. */
bool cpu_pool_help(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue);

/* The same, only for grids. */
bool cpu_pool_help_grid(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue);

/* Whether there is something left that it would do, in the order of what wakes sleepers (cpu_queue_begin_sleep). */
bool cpu_pool_has_shared(cpu_pool *pool, const cpu_participant *self, const cpu_queue *queue);

/* To be called before work of `queue`'s: lets another queue go that the participant watches, since it will not look at
 * that one for now. */
void cpu_pool_turn_to(cpu_participant *self, const cpu_queue *queue);

/* One turn; true when it is time to sleep: soon where each processor has a long run; never without a pool. */
bool cpu_backoff_step(cpu_backoff *backoff, const cpu_pool *pool);

/* Moves workers off processors where others' long runs are while one has none. */
void cpu_pool_spread(cpu_pool *pool);

/* A host thread that works along tells the workers which processor to leave to it. */
void cpu_pool_note_host(cpu_pool *pool);

#endif
