/* SPDX-License-Identifier: MIT
 * What the benchmarks of planning share: settings, numbers at random that are the same on every machine, memory that is
 * counted. What fails ends the program.
 */
#ifndef RONDO_BENCH_PLAN_INPUTS_H
#define RONDO_BENCH_PLAN_INPUTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

static inline uint64_t random_below(uint64_t *state, uint64_t bound) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t mixed = *state;
  mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (mixed ^ (mixed >> 31)) % bound;
}

/* Every magnitude from 512 bytes on is as likely as the next. */
static inline size_t random_bytes(uint64_t *state, unsigned doublings) {
  const size_t least = (size_t)512 << random_below(state, doublings);
  return least + 512 * (size_t)random_below(state, least / 512);
}

/* The next number of a list with commas; *at moves to the next one. */
static inline unsigned long next_number(const char **at) {
  char *end = NULL;
  const unsigned long number = strtoul(*at, &end, 10);
  *at = *end == ',' ? end + 1 : *end == '\0' ? end : "";
  return number;
}

static inline const char *text_setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value == NULL ? otherwise : value;
}

/* Counts the bytes that planning takes, on any thread. */
typedef struct counter {
  _Atomic size_t bytes, most;
} counter;

static inline void *count_allocation(void *self, size_t bytes, size_t alignment) {
  counter *c = self;
  const size_t now = atomic_fetch_add(&c->bytes, bytes) + bytes;
  size_t most = atomic_load(&c->most);
  while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now)) continue;
  void *block = NULL;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static inline void count_release(void *self, void *pointer, size_t bytes) {
  counter *c = self;
  atomic_fetch_sub(&c->bytes, bytes);
  free(pointer);
}

#endif
