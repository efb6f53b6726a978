/* SPDX-License-Identifier: MIT
 * The harness of the benchmarks of `rondo bench` and of bench/. A benchmark declares its name and its options, and how
 * it prepares, measures, reports and finishes. The harness parses the options, opens the device, prints the results as
 * JSON or as tables, and cleans up. All of it runs on the main thread.
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
  uint64_t workers; /* of a CPU device; 0: automatic */
  double seconds;   /* 0 in the defaults: the benchmark has no --seconds */
  bool json;
  rondo_device *device;
  rondo_device_info info;
} bench_base;

typedef struct benchmark {
  const char *name, *summary;
  const char *description;            /* for --help */
  const char *operand, *operand_help; /* an input file; NULL: none */
  const void *defaults;               /* a state in which only the settings are set */
  size_t bytes;                       /* size of a state */
  const option_row *rows;             /* the benchmark's own options; the harness adds --device, --seconds and --json */
  size_t row_count;
  const char *seconds_help;         /* NULL: "about how long to measure" */
  const char *why_cuda;             /* why it needs a CUDA device; NULL: it runs on any device */
  const rondo_allocator *allocator; /* for the device; NULL: the default */
  int (*check)(void *bench);        /* checks the settings before the device is opened: TOOL_OK or TOOL_USAGE */
  int (*prepare)(void *bench);      /* check and prepare may be NULL */
  int (*measure)(void *bench);
  void (*report)(void *bench, json *out); /* called after the device's name and description are written */
  int (*finish)(void *bench); /* always called, even after a failure; then the harness closes the device. NULL: the
                                 process ends without cleanup */
  /* Replaces all of the above: prints JSON, and takes settings from the environment. Its argv has no --json; without
   * --json, the harness prints tables. */
  int (*program)(int argc, char **argv);
} benchmark;

/* Initializers for the state with its defaults, and for the table of options. */
#define BENCH_STATE(state) .defaults = &(state), .bytes = sizeof(state)
#define BENCH_OPTIONS(table) .rows = (table), .row_count = sizeof(table) / sizeof((table)[0])

#define BENCH_WORKERS(state)                                              \
  {                                                                       \
    "workers", "N", OPTION_COUNT, offsetof(state, base.workers), 0, 1024, \
        "worker threads of a CPU device; 0: automatic"                    \
  }

/* Finds the benchmark that argv[1] names and runs it. Messages begin with `command` and its name. Returns the exit
 * status. */
int benchmarks_run(const char *command, const benchmark *const *list, size_t count, int argc, char **argv);

/* Repeats until the time is over, but at least `fewest` and at most `most` times: for (rounds r = rounds_begin(seconds,
 * fewest, most); rounds_next(&r);) */
typedef struct rounds {
  uint64_t end;
  size_t done, fewest, most;
} rounds;

rounds rounds_begin(double seconds, size_t fewest, size_t most);
bool rounds_next(rounds *of);

/* a / b; 0 if b is not positive. */
double bench_ratio(double a, double b);

#endif
