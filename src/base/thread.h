/* SPDX-License-Identifier: MIT
 * Threads and futexes on top of pthreads and Linux, and helpers for spin loops.
 * A futex word is a _Atomic uint32_t; waiting is private to the process, unless said otherwise.
 */
#ifndef RONDO_BASE_THREAD_H
#define RONDO_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rondo/status.h>

#include "base/component.h"

typedef struct rondo_thread {
  pthread_t handle;
} rondo_thread;

/* Starts a thread called `name` (at most 15 characters are kept) with all signals blocked, except those that a fault
 * raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS): if they were blocked, a fault would kill the process
 * without calling a handler.
 * Errors: LIMIT_EXCEEDED (the system's number of threads), OUT_OF_MEMORY. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_thread_start(rondo_thread *out, const char *name, void *(*run)(void *),
                                                             void *argument);
RONDO_PRIVATE void rondo_thread_join(rondo_thread thread);

/* Blocks the signals of the calling thread until rondo_signals_restore, including those that the C library reserves and
 * excludes from signal sets. SIGSEGV and SIGBUS are not changed, because a blocked fault kills the process. Signals
 * that arrive meanwhile are delivered to another thread, or to this one afterwards. Costs a system call. Calls can be
 * nested. */
RONDO_PRIVATE uint64_t rondo_signals_block(void); /* the mask before */
RONDO_PRIVATE void rondo_signals_restore(uint64_t before);

/* Binds the thread to one processor, given by the system's number; false if the system refuses. */
bool rondo_thread_bind(rondo_thread thread, int processor);

/* Asks the system to let the calling thread run in slices of this length. One with short slices gets a processor
 * sooner after it wakes, because it will give the processor back sooner. Only Linux 6.12 and later do so. A thread with
 * a policy other than SCHED_OTHER stays as it is. */
void rondo_thread_set_slice(uint64_t slice_ns);

/* The system's number of the processor that the calling thread runs on now; and that of the n-th processor that the
 * process may use (n modulo their number). -1 if the system call fails. */
int rondo_processor_now(void);
int rondo_processor_at(unsigned n);

/* Processors this process may run on; at least 1. */
unsigned rondo_processor_count(void);

/* A number for the calling thread, unique in the process, never 0. */
uint64_t rondo_thread_id(void);

/* "thread 4711 'loader'" in the caller's buffer: the number and name by which the system and debuggers know the calling
 * thread. */
#define RONDO_THREAD_LABEL 48
const char *rondo_thread_label(char buffer[RONDO_THREAD_LABEL]);

/* Sleeps while *word == expected, until woken (possibly spuriously). */
RONDO_PRIVATE void rondo_futex_wait(_Atomic uint32_t *word, uint32_t expected);
/* As rondo_futex_wait for at most `timeout_ns`. */
RONDO_PRIVATE void rondo_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes up to `count` threads. */
RONDO_PRIVATE void rondo_futex_wake(_Atomic uint32_t *word, unsigned count);

RONDO_PRIVATE void rondo_yield(void);

/* Tells the processor that this is a spin loop. */
static inline void rondo_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

#define RONDO_CACHE_LINE 64

/* Prefetches the cache line at `address` in order to write it. (For a generic target, compilers' own prefetch is one
 * for reading, which does not take the line from its current owner. Processors that do not know the instruction ignore
 * it.) */
static inline void rondo_prefetch_for_write(const void *address) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw (%0)" : : "r"(address));
#else
  __builtin_prefetch(address, 1);
#endif
}

#endif
