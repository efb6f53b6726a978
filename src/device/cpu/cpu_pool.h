/* SPDX-License-Identifier: MIT
 * The workers of a CPU device, and how they find work: queues that are ready, tasks of running graphs, shared grids.
 */
#ifndef RONDO_DEVICE_CPU_CPU_POOL_H
#define RONDO_DEVICE_CPU_CPU_POOL_H

#include "device/cpu/cpu.h"

RONDO_MUST_USE rondo_status cpu_pool_start(cpu_device *device, uint32_t workers);
void cpu_pool_stop(cpu_device *device);

/* Whether to leave a launch to the host thread that will wait for it: all processors but its own have long runs of
 * others, and a worker soon checks whether the host ran the launch. */
bool cpu_pool_leaves_to_host(const cpu_pool *pool);

/* Wakes one sleeping worker, if there is one. */
void cpu_pool_wake(cpu_pool *pool);

/* A participant for a host thread. NULL if all are taken. */
cpu_participant *cpu_pool_join(cpu_pool *pool);
void cpu_pool_leave(cpu_pool *pool, cpu_participant *participant);

/* Runs some of the shared work of `queue` (NULL: of any queue): blocks of a grid, or a stolen task. False if there is
 * none. */
bool cpu_pool_help(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue);

/* The same for grids only. */
bool cpu_pool_help_grid(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue);

/* Semaphores that the device's threads poll (rondo_semaphore_ops). Idle threads call cpu_pool_poll, which also runs
 * what has waited for them, if that belongs to `queue` (NULL: any); else it wakes a worker. Threads that run tasks call
 * cpu_pool_poll_each between them, and look at pool->injected themselves. A semaphore that is polled already is not
 * added again. When polling has ended, no thread polls it, but perhaps the caller itself. */
bool cpu_pool_begin_polling(cpu_pool *pool, cpu_semaphore *semaphore, uint64_t expected_ns);
void cpu_pool_end_polling(cpu_pool *pool, const cpu_semaphore *semaphore);
bool cpu_pool_is_polled_here(const cpu_pool *pool); /* by the calling thread, now */
bool cpu_pool_poll_each(cpu_pool *pool);            /* true if there was a semaphore that nobody else polls now */
void cpu_pool_poll_all(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue, cpu_backoff *backoff);
/* `self` may be NULL. In the caller's loop, notes whether it polled, and begins again if it ran something. */
static inline void cpu_pool_poll(cpu_pool *pool, cpu_participant *self, const cpu_queue *queue, cpu_backoff *backoff) {
  backoff->polls = false;
  if (atomic_load_explicit(&pool->polled_count, memory_order_relaxed) != 0)
    cpu_pool_poll_all(pool, self, queue, backoff);
}

/* Whether cpu_pool_help would find work. Ordered with what wakes sleepers (cpu_queue_begin_sleep). */
bool cpu_pool_has_shared(cpu_pool *pool, const cpu_participant *self, const cpu_queue *queue);

/* Call it before work of `queue`. Detaches the participant from the queue that it watches, if that is another queue,
 * because it will not check that queue for now. */
void cpu_pool_turn_to(cpu_participant *self, const cpu_queue *queue);

/* One turn of a waiting loop. True if it is time to sleep, which is soon if each processor has a long run. Never true
 * if `pool` is NULL. */
bool cpu_backoff_step(cpu_backoff *backoff, const cpu_pool *pool);

/* Moves workers away from processors with long runs of others while another processor has none. */
void cpu_pool_spread(cpu_pool *pool);

/* A host thread that is a participant calls this, so that workers leave its processor to it. */
void cpu_pool_note_host(cpu_pool *pool);

#endif
