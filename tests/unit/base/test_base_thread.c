/* SPDX-License-Identifier: MIT
 * Threads, binding, futexes.
 */
#define _GNU_SOURCE

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "support/rondo_test.h"

#define MILLISECOND UINT64_C(1000000)

typedef struct report {
  _Atomic uint32_t go;
  char name[16];
  bool usr1_blocked, term_blocked, segv_blocked, bus_blocked;
  uint64_t id;
  int processors;
} report;

static void *look_around(void *argument) {
  report *out = argument;
  while (atomic_load(&out->go) == 0) rondo_futex_wait(&out->go, 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  out->usr1_blocked = sigismember(&mask, SIGUSR1) == 1;
  out->term_blocked = sigismember(&mask, SIGTERM) == 1;
  out->segv_blocked = sigismember(&mask, SIGSEGV) == 1;
  out->bus_blocked = sigismember(&mask, SIGBUS) == 1;
  pthread_getname_np(pthread_self(), out->name, sizeof out->name);
  out->id = rondo_thread_id();
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) out->processors = CPU_COUNT(&set);
  return argument;
}

static void release(report *of) {
  atomic_store(&of->go, 1);
  rondo_futex_wake(&of->go, 1);
}

UNIT_TEST(test_a_thread_has_its_name_and_blocks_signals) {
  report seen = {0};
  rondo_thread thread;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  assert_ok(rondo_thread_start(&thread, "rondo-worker-number-7", look_around, &seen));
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  release(&seen);
  rondo_thread_join(thread);
  assert_string_equal(seen.name, "rondo-worker-nu");
  assert_true(seen.usr1_blocked && seen.term_blocked);
  assert_false(seen.segv_blocked || seen.bus_blocked); /* a fault handler must still be reached */
  for (int number = 1; number < 32; number++)
    assert_int_equal(sigismember(&before, number), sigismember(&after, number));
}

UNIT_TEST(test_binding_to_each_processor) {
  const unsigned count = rondo_processor_count();
  assert_true(count >= 1);
  for (unsigned n = 0; n < count + 2 && n < 8; n++) {
    report seen = {0};
    rondo_thread thread;
    assert_ok(rondo_thread_start(&thread, "bound", look_around, &seen));
    const bool bound = rondo_thread_bind(thread, rondo_processor_at(n));
    release(&seen);
    rondo_thread_join(thread);
    assert_true(bound);
    assert_int_equal(seen.processors, 1);
  }
}

UNIT_TEST(test_processors_are_what_the_process_may_use) {
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  assert_int_equal(rondo_processor_count(), CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  const unsigned count = rondo_processor_count();
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_int_equal(count, 1);
}

UNIT_TEST(test_thread_ids_differ) {
  enum { THREADS = 8 };
  report seen[THREADS];
  rondo_thread threads[THREADS];
  memset(seen, 0, sizeof seen);
  for (int i = 0; i < THREADS; i++) assert_ok(rondo_thread_start(&threads[i], "id", look_around, &seen[i]));
  for (int i = 0; i < THREADS; i++) release(&seen[i]);
  for (int i = 0; i < THREADS; i++) rondo_thread_join(threads[i]);
  const uint64_t own = rondo_thread_id();
  assert_int_not_equal(own, 0);
  assert_int_equal(rondo_thread_id(), own);
  for (int i = 0; i < THREADS; i++) {
    assert_int_not_equal(seen[i].id, 0);
    assert_int_not_equal(seen[i].id, own);
    for (int j = 0; j < i; j++) assert_int_not_equal(seen[i].id, seen[j].id);
  }
}

UNIT_TEST(test_a_changed_word_is_not_waited_for) {
  _Atomic uint32_t word = 1;
  rondo_futex_wait(&word, 0);
  const uint64_t start = rondo_clock_ns();
  rondo_futex_wait_for(&word, 0, 10000 * MILLISECOND);
  assert_true(rondo_clock_ns() - start < 5000 * MILLISECOND);
}

UNIT_TEST(test_waiting_ends_at_its_time) {
  _Atomic uint32_t word = 0;
  const uint64_t start = rondo_clock_ns();
  rondo_futex_wait_for(&word, 0, 20 * MILLISECOND);
  const uint64_t took = rondo_clock_ns() - start;
  assert_in_range(took, 10 * MILLISECOND, 10000 * MILLISECOND);
}

typedef struct game {
  _Atomic uint32_t turn;
  unsigned rounds;
} game;

static void *play(void *argument) {
  game *shared = argument;
  for (unsigned i = 0; i < shared->rounds; i++) {
    for (uint32_t turn; (turn = atomic_load(&shared->turn)) % 2 == 0;) rondo_futex_wait(&shared->turn, turn);
    atomic_fetch_add(&shared->turn, 1);
    rondo_futex_wake(&shared->turn, 1);
  }
  return NULL;
}

UNIT_TEST(test_waking_passes_the_turn_on) {
  game shared = {.rounds = 2000};
  rondo_thread other;
  assert_ok(rondo_thread_start(&other, "ping", play, &shared));
  for (unsigned i = 0; i < shared.rounds; i++) {
    for (uint32_t turn; (turn = atomic_load(&shared.turn)) % 2 == 1;) rondo_futex_wait(&shared.turn, turn);
    atomic_fetch_add(&shared.turn, 1);
    rondo_futex_wake(&shared.turn, UINT32_MAX);
  }
  rondo_thread_join(other);
  assert_int_equal(atomic_load(&shared.turn), 2 * shared.rounds);
}

typedef struct schedule {
  int policy, nice, policy_after, nice_after;
} schedule;

static void *set_slice(void *argument) {
  schedule *s = argument;
  const struct sched_param none = {.sched_priority = 0};
  if (sched_setscheduler(0, s->policy, &none) != 0 || setpriority(PRIO_PROCESS, 0, s->nice) != 0) return NULL;
  rondo_thread_set_slice(UINT64_C(100000));
  s->policy_after = sched_getscheduler(0);
  s->nice_after = getpriority(PRIO_PROCESS, 0);
  return NULL;
}

UNIT_TEST(test_a_thread_with_a_slice_keeps_its_policy) {
  static const int policies[] = {SCHED_OTHER, SCHED_BATCH};
  for (size_t i = 0; i < 2; i++) {
    schedule s = {.policy = policies[i], .nice = 19, .policy_after = -1};
    rondo_thread thread;
    assert_ok(rondo_thread_start(&thread, "slice", set_slice, &s));
    rondo_thread_join(thread);
    assert_int_equal(s.policy_after, policies[i]);
    assert_int_equal(s.nice_after, 19);
  }
}

UNIT_TEST(test_the_clock_goes_forward) {
  uint64_t last = rondo_clock_ns();
  assert_int_not_equal(last, 0);
  for (int i = 0; i < 10000; i++) {
    const uint64_t now = rondo_clock_ns();
    assert_true(now >= last);
    last = now;
    rondo_relax();
  }
  usleep(2000);
  rondo_yield();
  assert_true(rondo_clock_ns() - last >= 2 * MILLISECOND);
}

static atomic_int handled;

static void note(int number) { atomic_store(&handled, number); }

UNIT_TEST(test_blocked_signals_wait_but_for_faults) {
  const int sent[] = {SIGTERM, SIGUSR1, SIGPROF, SIGTRAP, SIGRTMIN, SIGRTMAX};
  const struct sigaction action = {.sa_handler = note};
  for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
    struct sigaction before;
    atomic_store(&handled, 0);
    assert_int_equal(sigaction(sent[i], &action, &before), 0);
    const uint64_t outer = rondo_signals_block(), inner = rondo_signals_block();
    assert_int_equal(raise(sent[i]), 0);
    rondo_signals_restore(inner);
    assert_int_equal(atomic_load(&handled), 0);
    rondo_signals_restore(outer);
    assert_int_equal(atomic_load(&handled), sent[i]);
    assert_int_equal(sigaction(sent[i], &before, NULL), 0);
  }
}

/* The C library keeps its own signals, 32 and 33, out of the sets of pthread_sigmask: the kernel tells of them. */
UNIT_TEST(test_signals_of_the_c_library_are_blocked) {
  const uint64_t own = UINT64_C(3) << 31, faults = UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1);
  const uint64_t before = rondo_signals_block(), during = rondo_signals_block();
  rondo_signals_restore(before);
  assert_true((during & own) == own);
  assert_true((during & faults) == (before & faults));
  const uint64_t after = rondo_signals_block();
  rondo_signals_restore(after);
  assert_true(after == before);
}
