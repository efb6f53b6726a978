/* SPDX-License-Identifier: MIT
 * Threads, mutexes and futexes over pthreads and Linux, and how to wait a little.
 * A futex word is a _Atomic uint32_t; waiting is private to the process, unless said otherwise.
 */
#ifndef RONDO_BASE_THREAD_H
#define RONDO_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rondo/status.h>

typedef struct rondo_thread {
  pthread_t handle;
} rondo_thread;

/* Starts a thread called `name` (at most 15 characters are kept) with all signals blocked, save those that a fault of
 * its own raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS): blocked, these would kill the process past any
 * handler.
 * Errors: LIMIT_EXCEEDED (the system's number of threads), OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_thread_start(rondo_thread *out, const char *name, void *(*run)(void *),
                                               void *argument);
void rondo_thread_join(rondo_thread thread);

/* Blocks the signals of the calling thread, also those that the C library uses itself and keeps out of signal sets,
 * until rondo_signals_restore. SIGSEGV and SIGBUS stay as they are, since a fault that is blocked kills the process.
 * What arrives meanwhile is delivered to another thread, or here afterwards. Costs a system call. Calls can be nested.
 */
uint64_t rondo_signals_block(void); /* the mask before */
void rondo_signals_restore(uint64_t before);

/* Binds the thread to one processor, by the system's number of it; false when refused. */
bool rondo_thread_bind(rondo_thread thread, int processor);

/* The system's number of the processor that the calling thread runs on now; of the n-th that the process may use (n
 * modulo their number). -1 when the system does not say. */
int rondo_processor_now(void);
int rondo_processor_at(unsigned n);

/* Processors this process may run on; at least 1. */
unsigned rondo_processor_count(void);

/* A number for the calling thread, unique in the process, never 0. */
uint64_t rondo_thread_id(void);

/* Sleeps while *word == expected, until woken (also without cause). */
void rondo_futex_wait(_Atomic uint32_t *word, uint32_t expected);
/* As rondo_futex_wait for at most `timeout_ns`. */
void rondo_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes up to `count` threads. */
void rondo_futex_wake(_Atomic uint32_t *word, unsigned count);

/* The same for a word in memory that processes share. */
void rondo_futex_wait_shared_for(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void rondo_futex_wake_shared(_Atomic uint32_t *word, unsigned count);

void rondo_yield(void);

/* Tells the processor that this is a spin loop. */
static inline void rondo_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

#define RONDO_CACHE_LINE 64

/* Asks for the cache line at `address`, to be written soon. (Without a processor named, compilers make a read of it,
 * which leaves the line with whoever has it now; processors that don't know the instruction pass over it.) */
static inline void rondo_prefetch_for_write(const void *address) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw (%0)" : : "r"(address));
#else
  __builtin_prefetch(address, 1);
#endif
}

#endif
