/* SPDX-License-Identifier: MIT
 * Benchmarks that measure in turns with another engine's process (turns.py): steps on demand, and the memory of this
 * process. One thread.
 */
#ifndef RONDO_BENCH_BENCH_TURNS_H
#define RONDO_BENCH_BENCH_TURNS_H

#include <stdint.h>

#include "common/timing.h"

/* Prints "ready", then reads numbers of steps from standard input, one on a line, and answers each with the times of so
 * many steps, in microseconds. Adds them to `times`, too. `step` runs one and returns its time. */
void bench_take_turns(double (*step)(void *bench), void *bench, samples *times);

/* A field of /proc/self/status in bytes, such as "VmRSS:"; 0 where there is none. */
uint64_t bench_read_status(const char *field);

#endif
