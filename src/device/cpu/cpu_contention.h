/* SPDX-License-Identifier: MIT
 * Crowds: as many long runs of executables as there are processors.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CONTENTION_H
#define RONDO_DEVICE_CPU_CPU_CONTENTION_H

#include "device/cpu/cpu.h"

/* Crowds (cpu_contention.c): whether there are as many long runs as processors; whether one more, at most, makes them
 * as many; whether each processor has one, so that helping with one would keep another from running; whether some have
 * the same, and one none; how often crowds began.
 */
bool cpu_crowd_is_there(const cpu_pool *pool);
bool cpu_crowd_wants_one(const cpu_pool *pool);
bool cpu_crowd_is_full(const cpu_pool *pool);
bool cpu_crowd_is_stacked(const cpu_pool *pool);
uint64_t cpu_crowd_count(const cpu_pool *pool);

/* Whether a processor, by its place, has a long run; whether a worker's has one that is not its own (by the mover). */
bool cpu_crowd_has_run_at(const cpu_pool *pool, uint32_t place);
bool cpu_crowd_has_run_beside(const cpu_pool *pool, const cpu_participant *worker);

/* Around a long run, and now and then in it, by who runs it. */
void cpu_crowd_enter(cpu_participant *self);
void cpu_crowd_follow(cpu_participant *self);
void cpu_crowd_leave(cpu_participant *self);

#endif
