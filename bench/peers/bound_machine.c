/* SPDX-License-Identifier: MIT
 * The costs of the machine without any runtime: reading the clock, passing a value to a thread that spins, and waking a
 * thread that sleeps. The sleeper has slept for the gap of a cold replay (BENCH_GAP_US, default 5000).
 *
 *   clock          one clock_gettime
 *   hand_over      from one spinning thread to another
 *   wake_call      FUTEX_WAKE, for the caller
 *   wake_to_run    from the start of that call until the sleeper runs
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "measure.h"
#include "park.h"

enum { SPINS = 20000, WAKES = 60 };

typedef struct partner {
  park_word ping, pong;
  atomic_ullong woke_ns;
  uint32_t rounds;
  park_policy policy;
} partner;

static void *answer(void *argument) {
  partner *self = argument;
  bench_bind(0, 1);
  for (uint32_t i = 1; i <= self->rounds; i++) {
    park_await(&self->ping, i, self->policy);
    atomic_store(&self->woke_ns, clock_ns());
    park_post(&self->pong, i);
  }
  return NULL;
}

static pthread_t start(partner *self, uint32_t rounds, park_policy policy) {
  pthread_t thread;
  memset(self, 0, sizeof *self);
  self->rounds = rounds;
  self->policy = policy;
  bench_bind(0, 0);
  if (pthread_create(&thread, NULL, answer, self) != 0) exit(EXIT_FAILURE);
  return thread;
}

static void measure_clock(void) {
  enum { SAMPLES = 101, READS = 1000 };
  samples times = bench_samples(SAMPLES);
  for (int i = 0; i < SAMPLES; i++) {
    const uint64_t begin = clock_ns();
    for (int k = 0; k < READS; k++) clock_ns();
    samples_add(&times, (double)((clock_ns() - begin) / READS));
  }
  bench_report_value("clock", "ns", &times);
}

static void measure_hand_over(void) {
  samples times = bench_samples(SPINS);
  static partner self;
  const pthread_t thread = start(&self, SPINS, (park_policy){PARK_NEVER, 0});
  for (uint32_t i = 1; i <= SPINS; i++) {
    const uint64_t begin = clock_ns();
    park_post(&self.ping, i);
    park_await(&self.pong, i, self.policy);
    samples_add(&times, (double)((clock_ns() - begin) / 2));
  }
  pthread_join(thread, NULL);
  bench_report_value("hand_over", "ns", &times);
}

static void measure_wake(void) {
  samples calls = bench_samples(WAKES), runs = bench_samples(WAKES);
  static partner self;
  const useconds_t gap_us = (useconds_t)bench_setting("BENCH_GAP_US", 5000);
  const pthread_t thread = start(&self, WAKES, (park_policy){0, 0});
  for (uint32_t i = 1; i <= WAKES; i++) {
    usleep(gap_us > 0 ? gap_us : 5000);
    const uint64_t begin = clock_ns();
    park_post(&self.ping, i);
    samples_add(&calls, (double)(clock_ns() - begin));
    park_await(&self.pong, i, (park_policy){PARK_NEVER, 0});
    samples_add(&runs, (double)(atomic_load(&self.woke_ns) - begin));
  }
  pthread_join(thread, NULL);
  bench_report_value("wake_call", "ns", &calls);
  bench_report_value("wake_to_run", "ns", &runs);
}

int main(void) {
  bench_begin("bound_machine", "");
  if (bench_child()) {
    measure_clock();
    measure_hand_over();
    measure_wake();
    bench_child_end();
  }
  return bench_end();
}
