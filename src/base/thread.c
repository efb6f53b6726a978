/* SPDX-License-Identifier: MIT
 * pthreads and Linux futexes. Threads are joined, never detached. A futex wait may wake spuriously, also because of a
 * signal or because the word has already changed, so callers check the word again.
 */
#define _GNU_SOURCE
#include "base/thread.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define NAME_BYTES 16 /* the kernel's, with the NUL */

/* sched_getaffinity refuses a set smaller than the kernel's, so this is many times cpu_set_t's 1024 processors. */
typedef struct processor_set {
  cpu_set_t sets[8];
} processor_set;

static void block_signals(sigset_t *before) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  sigset_t blocked;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* Uses the system call, because pthread_sigmask does not block the signal that setuid sends to every thread. */
uint64_t rondo_signals_block(void) {
  uint64_t before = 0, blocked = ~(UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1));
  (void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, sizeof blocked);
  return before;
}

void rondo_signals_restore(uint64_t before) {
  (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

rondo_status rondo_thread_start(rondo_thread *out, const char *name, void *(*run)(void *), void *argument) {
  *out = (rondo_thread){0};
  sigset_t before;
  block_signals(&before); /* a new thread inherits the mask */
  pthread_t handle;
  const int error = pthread_create(&handle, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0)
    return rondo_fail_errno(RONDO_LIMIT_EXCEEDED, error,
                            "thread '%s' cannot be started: use fewer threads, or raise the limits of the user "
                            "(ulimit -u) and of the control group (pids.max)",
                            name);
  char short_name[NAME_BYTES];
  snprintf(short_name, sizeof short_name, "%.*s", NAME_BYTES - 1, name);
  pthread_setname_np(handle, short_name); /* only for debuggers: a failure does not matter */
  out->handle = handle;
  return RONDO_OK;
}

void rondo_thread_join(rondo_thread thread) {
  const int error = pthread_join(thread.handle, NULL);
  assert(error == 0);
  (void)error;
}

/* Fills `set` and returns its number of processors; 0 if the system call fails. */
static unsigned read_processors(processor_set *set) {
  memset(set, 0, sizeof *set);
  if (sched_getaffinity(getpid(), sizeof *set, set->sets) != 0) return 0;
  return (unsigned)CPU_COUNT_S(sizeof *set, set->sets);
}

unsigned rondo_processor_count(void) {
  processor_set set;
  const unsigned count = read_processors(&set);
  return count > 0 ? count : 1;
}

/* struct sched_attr of sched_setattr(2), for which glibc has no header. */
typedef struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} scheduling;

void rondo_thread_set_slice(uint64_t slice_ns) {
  scheduling now = {.size = 0}; /* the thread keeps its policy and its nice value */
  if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER) return;
  now.size = sizeof now;
  now.runtime = slice_ns;
  (void)syscall(SYS_sched_setattr, 0, &now, 0); /* a refusal only costs time */
}

int rondo_processor_now(void) { return sched_getcpu(); }

int rondo_processor_at(unsigned n) {
  processor_set usable;
  const unsigned count = read_processors(&usable);
  if (count == 0) return -1;
  size_t processor = 0;
  for (unsigned left = n % count;; processor++) {
    if (!CPU_ISSET_S(processor, sizeof usable, usable.sets)) continue;
    if (left == 0) return (int)processor;
    left--;
  }
}

bool rondo_thread_bind(rondo_thread thread, int processor) {
  processor_set one;
  if (processor < 0 || (size_t)processor >= 8 * sizeof one) return false;
  memset(&one, 0, sizeof one);
  CPU_SET_S((size_t)processor, sizeof one, one.sets);
  return pthread_setaffinity_np(thread.handle, sizeof one, one.sets) == 0;
}

uint64_t rondo_thread_id(void) {
  static _Atomic uint64_t given = 0;
  static _Thread_local uint64_t id = 0;
  if (id == 0) id = atomic_fetch_add_explicit(&given, 1, memory_order_relaxed) + 1;
  return id;
}

const char *rondo_thread_label(char buffer[RONDO_THREAD_LABEL]) {
  char name[16] = "";
  if (prctl(PR_GET_NAME, name) != 0) name[0] = '\0';
  (void)snprintf(buffer, RONDO_THREAD_LABEL, "thread %ld '%.15s'", (long)syscall(SYS_gettid), name);
  return buffer;
}

void rondo_futex_wait(_Atomic uint32_t *word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static struct timespec timespec_of(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / UINT64_C(1000000000)), .tv_nsec = (long)(ns % UINT64_C(1000000000))};
}

void rondo_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
  const struct timespec timeout = timespec_of(timeout_ns);
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, NULL, 0);
}

void rondo_futex_wake(_Atomic uint32_t *word, unsigned count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count > INT_MAX ? INT_MAX : (int)count, NULL, NULL, 0);
}

void rondo_yield(void) { sched_yield(); }
