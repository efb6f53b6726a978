/* SPDX-License-Identifier: MIT
 * How close to the lower bound memory is planned, and how fast: bench_plan [CSV...]
 *
 * Each CSV has the lines `id,lower,upper,size` under a heading, as the MiniMalloc benchmark's; without one, what
 * generators make is planned: items at random, layered like a training step, and layered like inference. A row is an
 * input planned with a budget. JSON goes to standard output, a table to the standard error.
 *
 *   BENCH_PLAN_MS      list of budgets in milliseconds, beside the fast path; default none
 *   BENCH_PLAN_ITEMS   list of sizes of what is generated; default 100000
 *   BENCH_PLAN_THREADS that search; default 1
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "measure.h"

typedef struct input {
  const char *name;
  rondo_plan_item *items;
  size_t count, room;
} input;

static void check(rondo_status status) {
  if (status == RONDO_OK) return;
  fprintf(stderr, "%s: %s\n", rondo_status_name(status), rondo_last_error()->message);
  exit(EXIT_FAILURE);
}

static void add(input *in, size_t bytes, uint32_t lower, uint32_t upper) {
  if (in->count == in->room) {
    in->room = in->room == 0 ? 1024 : 2 * in->room;
    in->items = realloc(in->items, in->room * sizeof *in->items);
    if (in->items == NULL) exit(EXIT_FAILURE);
  }
  in->items[in->count++] = (rondo_plan_item){.bytes = bytes, .lower = lower, .upper = upper};
}

/* Generators ------------------------------------------------------------------------------------------------------- */

static uint64_t random_below(uint64_t *state, uint64_t bound) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t mixed = *state;
  mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (mixed ^ (mixed >> 31)) % bound;
}

/* Every magnitude from 512 bytes on is as likely as the next. */
static size_t random_bytes(uint64_t *state, unsigned doublings) {
  const size_t least = (size_t)512 << random_below(state, doublings);
  return least + 512 * (size_t)random_below(state, least / 512);
}

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

static void plan(const input *in, uint32_t budget_ms) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = in->items, .count = in->count};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_ms = budget_ms, .fast_only = budget_ms == 0,
                                      .threads = (uint32_t)bench_setting("BENCH_PLAN_THREADS", 1)};
  rondo_plan *made = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  check(rondo_plan_make(&problem, &options, &made));
  check(rondo_plan_get_info(made, &info));
  check(rondo_plan_check(NULL, &problem, rondo_plan_offsets(made)));
  const double ratio = info.lower_bound == 0 ? 1 : (double)info.peak / (double)info.lower_bound;
  const double ms = (double)info.nanoseconds / 1e6;
  fprintf(stderr, "%-40s %9zu %8u %9.6f %10.2f  %-10s %s\n", in->name, in->count, budget_ms, ratio, ms, info.method,
          info.optimal ? "optimal" : "");
  fprintf(bench_reporting()->out,
          "{\"trace\":\"%s\",\"buffers\":%zu,\"budget_ms\":%u,\"lower_bound\":%zu,\"peak\":%zu,\"ratio\":%.6f,"
          "\"ms\":%.3f,\"method\":\"%s\",\"optimal\":%s}\n",
          in->name, in->count, budget_ms, info.lower_bound, info.peak, ratio, ms, info.method,
          info.optimal ? "true" : "false");
  rondo_plan_destroy(made);
}

/* In a process of its own: what one input leaves in the heap would flatter the next. */
static void measure(input *in) {
  if (bench_child()) {
    const char *budget = getenv("BENCH_PLAN_MS");
    plan(in, 0);
    while (budget != NULL && *budget != '\0') {
      plan(in, (uint32_t)strtoul(budget, NULL, 10));
      budget += strcspn(budget, ",");
      budget += *budget == ',';
    }
    bench_child_end();
  }
  free(in->items);
}

static void measure_generated(size_t items) {
  static void (*const makers[])(input * in, size_t items) = {make_random, make_training, make_inference};
  static const char *const names[] = {"random", "training", "inference"};
  for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
    input in = {.name = names[i]};
    makers[i](&in, items);
    measure(&in);
  }
}

int main(int argc, char **argv) {
  bench_begin("bench_plan", RONDO_VERSION_STRING);
  fprintf(stderr, "%-40s %9s %8s %9s %10s  %s\n", "input", "buffers", "budget", "ratio", "ms", "method");
  for (int i = 1; i < argc; i++) {
    const char *slash = strrchr(argv[i], '/');
    input in = {.name = slash == NULL ? argv[i] : slash + 1};
    read_file(&in, argv[i]);
    measure(&in);
  }
  const char *sizes = getenv("BENCH_PLAN_ITEMS");
  for (const char *at = sizes == NULL ? "100000" : sizes; argc == 1 && *at != '\0';) {
    measure_generated(strtoul(at, NULL, 10));
    at += strcspn(at, ",");
    at += *at == ',';
  }
  return bench_end();
}
