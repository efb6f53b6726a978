/* SPDX-License-Identifier: MIT
 * Contention: at least as many long runs of executables as processors. The times that an executable needs when it has
 * the device for itself say nothing then, so each run goes node by node. It shares its grids, as eager work does, only
 * with threads for which a processor is left. If every processor has a run, nobody helps: a helper would take the
 * processor of another run, and its owner would wait for it.
 *
 * Threads: any. Everything here is a hint that is read without order: each plan of a run is right with and without
 * contention.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CONTENTION_H
#define RONDO_DEVICE_CPU_CPU_CONTENTION_H

#include "device/cpu/cpu.h"

/* exists: as many long runs as processors. is_near: at most one more run makes it so. is_full: each processor has a
 * run. is_uneven: contention, but some processor has several runs and another none. count: how often contention began.
 */
bool cpu_contention_exists(const cpu_pool *pool);
bool cpu_contention_is_near(const cpu_pool *pool);
bool cpu_contention_is_full(const cpu_pool *pool);
bool cpu_contention_is_uneven(const cpu_pool *pool);
uint64_t cpu_contention_count(const cpu_pool *pool);

/* Whether a processor, by its place, has a long run; whether a worker's has one that is not its own (by the mover). */
bool cpu_contention_has_run_at(const cpu_pool *pool, uint32_t place);
bool cpu_contention_has_run_beside(const cpu_pool *pool, const cpu_participant *worker);

/* Around a long run, and now and then in it, by who runs it. */
void cpu_contention_enter(cpu_participant *self);
void cpu_contention_follow(cpu_participant *self);
void cpu_contention_leave(cpu_participant *self);

#endif
