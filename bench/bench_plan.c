/* SPDX-License-Identifier: MIT
 * How close to the lower bound memory is planned, how fast, and in how much memory: bench_plan [CSV...]
 *
 * Each CSV has the lines `id,lower,upper,size` under a heading, as the MiniMalloc benchmark's. What generators make is
 * planned too: items at random, layered like a training step, and layered like inference. A row is an input planned in
 * one way, as often as set: by the fast path, within a budget, or until it fits into a capacity. JSON goes to standard
 * output, a table to the standard error.
 *
 *   BENCH_PLAN_MS        list of budgets in milliseconds, beside the fast path; default 10,1000,5000 for files, none
 *                        for what is generated
 *   BENCH_PLAN_CAPACITY  bytes into which files are packed, within the longest budget; default none
 *   BENCH_PLAN_ITEMS     list of sizes of what is generated; default 100000,1000000
 *   BENCH_PLAN_THREADS   that search; default 2
 *   BENCH_PLAN_SAMPLES   plans a row; default 3
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdbool.h>

#include "measure.h"
#include "plan_inputs.h"

typedef struct input {
  const char *name;
  rondo_plan_item *items;
  size_t count, room;
} input;

static void add(input *in, size_t bytes, uint32_t lower, uint32_t upper) {
  if (in->count == in->room) {
    in->room = in->room == 0 ? 1024 : 2 * in->room;
    in->items = realloc(in->items, in->room * sizeof *in->items);
    if (in->items == NULL) exit(EXIT_FAILURE);
  }
  in->items[in->count++] = (rondo_plan_item){.bytes = bytes, .lower = lower, .upper = upper};
}

/* Generators ------------------------------------------------------------------------------------------------------- */

static void make_random(input *in, size_t items) {
  uint64_t state = 1;
  for (size_t i = 0; i < items; i++) {
    const uint32_t lower = (uint32_t)random_below(&state, items);
    const uint32_t longest = (uint32_t)1 << random_below(&state, 12);
    add(in, random_bytes(&state, 12), lower, lower + 1 + (uint32_t)random_below(&state, longest));
  }
}

/* A layer keeps what its backward pass needs until that; both passes use scratch; the gradients of the weights live
 * until the optimizer, which comes layer by layer behind the backward pass. */
static void make_training(input *in, size_t items) {
  uint64_t state = 2;
  const uint32_t layers = (uint32_t)(items / 8);
  const uint32_t back = 4 * layers;
  for (uint32_t layer = 0; layer < layers; layer++) {
    const uint32_t forward = 4 * layer;
    const uint32_t backward = back + 4 * (layers - 1 - layer);
    const size_t width = 512 * (64 + (size_t)random_below(&state, 4) * 64);
    for (int kept = 0; kept < 3; kept++) add(in, width * (1 + random_below(&state, 4)), forward + 1, backward + 3);
    add(in, width * 4, forward, forward + 3);
    add(in, width * (1 + random_below(&state, 8)), forward + 2, forward + 4);
    add(in, width * 4, backward, backward + 4);
    add(in, width * (1 + random_below(&state, 8)), backward + 1, backward + 3);
    add(in, random_bytes(&state, 10), backward + 2, 2 * back + layer + 1);
  }
}

/* Short lives in a chain, some that skip layers, and blocks of several branches that are joined. */
static void make_inference(input *in, size_t items) {
  uint64_t state = 3;
  for (uint32_t step = 0; in->count < items; step += 8) {
    const size_t width = 512 * (1 + (size_t)random_below(&state, 4096));
    add(in, width, step, step + 9);
    for (uint32_t branch = 0; branch < 3; branch++) {
      add(in, width * (1 + random_below(&state, 4)), step + 1 + branch, step + 4 + branch);
      add(in, random_bytes(&state, 8), step + 2 + branch, step + 8);
    }
    if (random_below(&state, 4) == 0) add(in, width, step, step + 8 * (2 + (uint32_t)random_below(&state, 16)));
  }
}

/* Files ------------------------------------------------------------------------------------------------------------ */

static void read_file(input *in, const char *path) {
  char line[256];
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    exit(EXIT_FAILURE);
  }
  while (fgets(line, sizeof line, file) != NULL) {
    uint32_t lower = 0, upper = 0;
    size_t bytes = 0;
    if (sscanf(line, "%*[^,],%" SCNu32 ",%" SCNu32 ",%zu", &lower, &upper, &bytes) == 3) add(in, bytes, lower, upper);
  }
  fclose(file);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

enum { MOST_SAMPLES = 101 };

/* One way of planning. */
typedef struct way {
  const char *name;
  uint32_t budget_ms; /* 0: the fast path */
  size_t capacity;
} way;

typedef struct outcome {
  rondo_plan_info worst;        /* that of the highest peak */
  uint64_t times[MOST_SAMPLES]; /* nanoseconds */
  uint64_t peaks[MOST_SAMPLES];
  size_t bytes; /* of memory, the most at once in any plan */
} outcome;

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
  out->peaks[sample] = info.peak;
  if (info.peak >= out->worst.peak) out->worst = info;
  if (counted.most > out->bytes) out->bytes = counted.most;
}

static double ratio_of(const rondo_plan_info *info, uint64_t peak) {
  return info->lower_bound == 0 ? 1 : (double)peak / (double)info->lower_bound;
}

/* Sorts the samples. */
static void report(const input *in, const way *by, outcome *out, size_t samples) {
  const bench_spread time = bench_spread_of(out->times, samples);
  const bench_spread peak = bench_spread_of(out->peaks, samples);
  const rondo_plan_info *info = &out->worst;
  const bool fits = peak.maximum <= by->capacity;
  fprintf(stderr, "%-30s %8zu %-8s %9.6f %9.6f %9.6f %10.2f %10.2f %10.2f %7zu  %-9s %s%s\n", in->name, in->count,
          by->name, ratio_of(info, peak.median), ratio_of(info, peak.minimum), ratio_of(info, peak.maximum),
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
          in->name, by->name, samples, time.median, time.minimum, time.maximum, ratio_of(info, peak.median),
          ratio_of(info, peak.minimum), ratio_of(info, peak.maximum), in->count, by->budget_ms, by->capacity,
          info->lower_bound, info->peak, out->bytes, info->method, info->optimal ? "true" : "false");
}

static void plan(const input *in, const way *by) {
  outcome out = {.bytes = 0};
  const long wanted = bench_setting("BENCH_PLAN_SAMPLES", 3);
  const size_t samples = wanted < 1 ? 1 : wanted > MOST_SAMPLES ? MOST_SAMPLES : (size_t)wanted;
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
  static void (*const makers[])(input * in, size_t items) = {make_random, make_training, make_inference};
  static const char *const names[] = {"random", "training", "inference"};
  for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s %zu", names[i], items);
    input in = {.name = name};
    makers[i](&in, items);
    measure(&in, text_setting("BENCH_PLAN_MS", ""), 0);
  }
}

static void measure_file(const char *path) {
  const char *slash = strrchr(path, '/');
  input in = {.name = slash == NULL ? path : slash + 1};
  read_file(&in, path);
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
  return bench_end();
}
