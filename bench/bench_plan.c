/* SPDX-License-Identifier: MIT
 * How close to the lower bound memory is planned, how fast, and in how much memory: bench_plan [CSV...]
 *
 * Each CSV has the lines `id,lower,upper,size` under a heading, as the MiniMalloc benchmark's. What generators make is
 * planned too: items at random, layered like a training step, layered like inference, and a training step of blocks;
 * and items at random in many shapes, each with several seeds. A row is an input planned in one way, as often as set:
 * by the fast path, within a budget, or until it fits into a capacity; or a shape, with each seed once. JSON goes to
 * standard output, a table to the standard error.
 *
 *   BENCH_PLAN_MS        list of budgets in milliseconds, beside the fast path; default 10,1000,5000 for files, none
 *                        for what is generated
 *   BENCH_PLAN_CAPACITY  bytes into which files are packed, within the longest budget; default none
 *   BENCH_PLAN_ITEMS     list of sizes of what is generated; default 100000,1000000
 *   BENCH_PLAN_SHAPED    list of sizes of what is generated in many shapes; default 100000
 *   BENCH_PLAN_SEEDS     of each shape; default 3
 *   BENCH_PLAN_THREADS   that search; default 2
 *   BENCH_PLAN_SAMPLES   plans a row; default 3
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdbool.h>

#include "measure.h"
#include "plan_shapes.h"

/* Rows ------------------------------------------------------------------------------------------------------------- */

enum { MOST_SAMPLES = 101 };

/* One way of planning. */
typedef struct way {
  const char *name;
  uint32_t budget_ms; /* 0: the fast path */
  size_t capacity;
} way;

typedef struct outcome {
  rondo_plan_info worst;         /* that of the highest ratio */
  uint64_t times[MOST_SAMPLES];  /* nanoseconds */
  uint64_t ratios[MOST_SAMPLES]; /* millionths */
  size_t bytes;                  /* of memory, the most at once in any plan */
} outcome;

static uint64_t ratio_of(const rondo_plan_info *info) {
  return info->lower_bound == 0 ? 1000000 : (uint64_t)(1e6 * (double)info->peak / (double)info->lower_bound + 0.5);
}

static void plan_once(const input *in, const way *by, outcome *out, size_t sample) {
  counter counted = {0};
  const rondo_allocator allocator = {&counted, count_allocation, count_release};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = in->items, .count = in->count};
  const rondo_plan_options options = {
      RONDO_PLAN_OPTIONS_INIT,  .budget_ms = by->budget_ms,
      .capacity = by->capacity, .threads = (uint32_t)bench_setting("BENCH_PLAN_THREADS", 2),
      .allocator = &allocator,  .fast_only = by->budget_ms == 0};
  rondo_plan *made = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  check(rondo_plan_make(&problem, &options, &made));
  check(rondo_plan_get_info(made, &info));
  check(rondo_plan_check(NULL, &problem, rondo_plan_offsets(made)));
  rondo_plan_destroy(made);
  out->times[sample] = info.nanoseconds;
  out->ratios[sample] = ratio_of(&info);
  if (sample == 0 || ratio_of(&info) >= ratio_of(&out->worst)) out->worst = info;
  if (counted.most > out->bytes) out->bytes = counted.most;
}

/* Sorts the samples. */
static void report(const input *in, const way *by, outcome *out, size_t samples) {
  const bench_spread time = bench_spread_of(out->times, samples);
  const bench_spread ratio = bench_spread_of(out->ratios, samples);
  const rondo_plan_info *info = &out->worst;
  const bool fits = info->peak <= by->capacity;
  fprintf(stderr, "%-30s %8zu %-8s %9.6f %9.6f %9.6f %10.2f %10.2f %10.2f %7zu  %-9s %s%s\n", in->name, in->count,
          by->name, (double)ratio.median / 1e6, (double)ratio.minimum / 1e6, (double)ratio.maximum / 1e6,
          (double)time.median / 1e6, (double)time.minimum / 1e6, (double)time.maximum / 1e6, out->bytes >> 10,
          info->method, info->optimal ? "optimal" : "",
          by->capacity == 0 ? ""
          : fits            ? " fits"
                            : " does not fit");
  fprintf(bench_reporting()->out,
          "{\"measure\":\"plan %s %s\",\"unit\":\"ns\",\"samples\":%zu,\"median\":%" PRIu64 ",\"min\":%" PRIu64
          ",\"max\":%" PRIu64
          ",\"ratio\":%.6f,\"ratio_min\":%.6f,\"ratio_max\":%.6f,\"buffers\":%zu,"
          "\"budget_ms\":%u,\"capacity\":%zu,\"lower_bound\":%zu,\"peak\":%zu,\"bytes\":%zu,\"method\":\"%s\","
          "\"optimal\":%s}\n",
          in->name, by->name, samples, time.median, time.minimum, time.maximum, (double)ratio.median / 1e6,
          (double)ratio.minimum / 1e6, (double)ratio.maximum / 1e6, in->count, by->budget_ms, by->capacity,
          info->lower_bound, info->peak, out->bytes, info->method, info->optimal ? "true" : "false");
}

static size_t samples_setting(const char *name) {
  const long wanted = bench_setting(name, 3);
  return wanted < 1 ? 1 : wanted > MOST_SAMPLES ? MOST_SAMPLES : (size_t)wanted;
}

static void plan(const input *in, const way *by) {
  outcome out = {.bytes = 0};
  const size_t samples = samples_setting("BENCH_PLAN_SAMPLES");
  for (size_t i = 0; i < samples; i++) plan_once(in, by, &out, i);
  report(in, by, &out, samples);
}

/* In a process of its own: what one input leaves in the heap would flatter the next. */
static void measure(input *in, const char *budgets, size_t capacity) {
  if (bench_child()) {
    uint32_t longest = 0;
    plan(in, &(way){"fast", 0, 0});
    while (*budgets != '\0') {
      char name[32];
      const uint32_t budget = (uint32_t)next_number(&budgets);
      snprintf(name, sizeof name, "%ums", budget);
      plan(in, &(way){name, budget, 0});
      if (budget > longest) longest = budget;
    }
    if (capacity > 0) plan(in, &(way){"capacity", longest == 0 ? 5000 : longest, capacity});
    bench_child_end();
  }
  free(in->items);
}

static void measure_generated(size_t items) {
  for (size_t i = 0; i < GENERATORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s %zu", generators[i].name, items);
    input in = {.name = name};
    generators[i].make(&in, items);
    measure(&in, text_setting("BENCH_PLAN_MS", ""), 0);
  }
}

static void plan_shape(const size_shape *sizes, const life_shape *lives, size_t items) {
  char name[64];
  outcome out = {.bytes = 0};
  const way fast = {"fast", 0, 0};
  const size_t seeds = samples_setting("BENCH_PLAN_SEEDS");
  snprintf(name, sizeof name, "%s, %s", sizes->name, lives->name);
  for (size_t i = 0; i < seeds; i++) {
    input in = {.name = name};
    make_shape(&in, sizes, lives, items, i + 1);
    plan_once(&in, &fast, &out, i);
    free(in.items);
  }
  report(&(input){.name = name, .count = items}, &fast, &out, seeds);
}

static void measure_shapes(size_t items) {
  for (size_t size = 0; size < SIZE_SHAPES; size++) {
    for (size_t life = 0; life < LIFE_SHAPES; life++) {
      if (!bench_child()) continue;
      plan_shape(&size_shapes[size], &life_shapes[life], items);
      bench_child_end();
    }
  }
}

static void measure_file(const char *path) {
  input in = open_file(path);
  measure(&in, text_setting("BENCH_PLAN_MS", "10,1000,5000"), (size_t)bench_setting("BENCH_PLAN_CAPACITY", 0));
}

int main(int argc, char **argv) {
  bench_begin("bench_plan", RONDO_VERSION_STRING);
  fprintf(stderr, "%-30s %8s %-8s %9s %9s %9s %10s %10s %10s %7s  %s\n", "input", "buffers", "budget", "ratio", "least",
          "largest", "ms", "least", "largest", "KiB", "method");
  for (int i = 1; i < argc; i++) measure_file(argv[i]);
  for (const char *at = text_setting("BENCH_PLAN_ITEMS", "100000,1000000"); *at != '\0';) {
    measure_generated(next_number(&at));
  }
  for (const char *at = text_setting("BENCH_PLAN_SHAPED", "100000"); *at != '\0';) measure_shapes(next_number(&at));
  return bench_end();
}
