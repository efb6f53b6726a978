/* SPDX-License-Identifier: MIT
 * Contention: there are at least as many long runs of executables as processors. Then the times that an executable
 * needs when it has the device for itself mean nothing, so each run goes node by node. It shares its grids, as eager
 * work does, only with threads that have a free processor. If every processor has a run, nobody helps: a helper would
 * take the processor of another run, and the owner of its grid would wait for it.
 *
 * Threads: any. Everything here is a hint that is read without order: runs are correct with and without contention.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CONTENTION_H
#define RONDO_DEVICE_CPU_CPU_CONTENTION_H

#include "device/cpu/cpu.h"

/* exists: there are as many long runs as processors. is_near: one more run at most is missing for that. is_full: each
 * processor has a run. is_uneven: there is contention, but a processor has several runs and another none. count: how
 * often contention has begun. */
bool cpu_contention_exists(const cpu_pool *pool);
bool cpu_contention_is_near(const cpu_pool *pool);
bool cpu_contention_is_full(const cpu_pool *pool);
bool cpu_contention_is_uneven(const cpu_pool *pool);
uint64_t cpu_contention_count(const cpu_pool *pool);

/* Whether the processor at an index of pool.processors has a long run; whether a worker's processor has a long run that
 * is not the worker's own (for the mover). */
bool cpu_contention_has_run_at(const cpu_pool *pool, uint32_t index);
bool cpu_contention_has_run_beside(const cpu_pool *pool, const cpu_participant *worker);

/* The thread of a long run calls enter before it, leave after it, and follow now and then in between. */
void cpu_contention_enter(cpu_participant *self);
void cpu_contention_follow(cpu_participant *self);
void cpu_contention_leave(cpu_participant *self);

#endif
