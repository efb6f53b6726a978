/* SPDX-License-Identifier: MIT
 * The harness of the benchmarks of `rondo bench` and of bench/. A benchmark says what it is called, which options it
 * has, how it prepares, measures, reports and finishes; the harness parses the options, opens the device, prints the
 * results as JSON or as tables, and takes everything down. All of it runs on the main thread.
 *
 * The state of a benchmark begins with a bench_base. Steps return TOOL_OK, or TOOL_FAILURE after a message.
 */
#ifndef RONDO_TOOL_BENCHMARK_H
#define RONDO_TOOL_BENCHMARK_H

#include <rondo/rondo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json.h"
#include "common/options.h"
#include "common/timed_runs.h"

typedef struct bench_base {
  const char *device_name, *operand;
  uint64_t workers; /* of a CPU device; 0 chooses */
  double seconds;   /* 0 as a default: the benchmark has no such option */
  bool json;
  rondo_device *device;
  rondo_device_info info;
} bench_base;

typedef struct benchmark {
  const char *name, *summary;
  const char *description;            /* of --help */
  const char *operand, *operand_help; /* a file that is read; NULL: none */
  const void *defaults;               /* a state with its settings alone */
  size_t bytes;                       /* of a state */
  const option_row *rows;             /* options of its own; the harness adds --device, --seconds and --json */
  size_t row_count;
  const char *seconds_help;         /* NULL: "about how long to measure" */
  const char *why_cuda;             /* why it needs a CUDA device; NULL: it runs on any */
  const rondo_allocator *allocator; /* of the device; NULL: the library's own */
  int (*check)(void *bench);        /* of the settings, before the device is opened: TOOL_OK or TOOL_USAGE */
  int (*prepare)(void *bench);      /* NULL where there is nothing to do, as is check */
  int (*measure)(void *bench);
  void (*report)(void *bench, json *out); /* after the device's name and description */
  int (*finish)(void *bench);             /* however far the others came; then the harness closes the device. NULL: the
                                             process ends after it, and nothing is taken down */
  int (*program)(int argc, char **argv);  /* instead of all that: prints JSON, with settings from the environment; its
                                             argv lacks --json, without which the harness prints tables */
} benchmark;

/* Members of a benchmark: the state with its defaults, and the table of its options. */
#define BENCH_STATE(state) .defaults = &(state), .bytes = sizeof(state)
#define BENCH_OPTIONS(table) .rows = (table), .row_count = sizeof(table) / sizeof((table)[0])

#define BENCH_WORKERS(state)                                              \
  {                                                                       \
    "workers", "N", OPTION_COUNT, offsetof(state, base.workers), 0, 1024, \
        "worker threads of a CPU device; 0: automatic"                    \
  }

/* Finds the benchmark that argv[1] names and runs it; its messages begin with `command` and its name. Returns the exit
 * status. */
int benchmarks_run(const char *command, const benchmark *const *list, size_t count, int argc, char **argv);

/* Rounds until the time is over, but at least `fewest` and at most `most`:
 * for (rounds r = rounds_begin(seconds, fewest, most); rounds_next(&r);) */
typedef struct rounds {
  uint64_t end;
  size_t done, fewest, most;
} rounds;

rounds rounds_begin(double seconds, size_t fewest, size_t most);
bool rounds_next(rounds *of);

/* a / b; 0 where b is not positive. */
double bench_ratio(double a, double b);

#endif
