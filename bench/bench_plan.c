/* SPDX-License-Identifier: MIT
 * rondo_bench plan: how close plans come to the lower bound, and how much time and memory planning takes. A row is an
 * input and a mode: the fast path, a budget, or a capacity to fit into. It is planned several times. For inputs in many
 * shapes, it is planned once for each seed.
 *
 * rondo_bench plan_order: the same on a partial order. DAGs have four shapes, several numbers of chains, four
 * distributions of sizes and several seeds. Most items are short-lived, some live long, and some are freed by another
 * chain. A row is a DAG and a budget.
 *
 * rondo_bench lifetimes prints generated lifetimes as the CSV that `rondo bench memory` and `rondo plan` read.
 *
 * Each input has its own process.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>

#include "measure.h"
#include "plan_dags.h"
#include "plan_shapes.h"
#include "rondo_bench.h"

/* Settings and memory ---------------------------------------------------------------------------------------------- */

/* The next number of a comma-separated list; *at moves past it. */
static unsigned long next_number(const char **at) {
  char *end = NULL;
  const unsigned long number = strtoul(*at, &end, 10);
  *at = *end == ',' ? end + 1 : *end == '\0' ? end : "";
  return number;
}

static const char *text_setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value == NULL ? otherwise : value;
}

/* Counts the bytes that planning allocates, on all threads. */
typedef struct counter {
  _Atomic size_t bytes, most;
} counter;

static void *count_allocation(void *self, size_t bytes, size_t alignment) {
  counter *c = self;
  const size_t now = atomic_fetch_add(&c->bytes, bytes) + bytes;
  size_t most = atomic_load(&c->most);
  while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now)) continue;
  void *block = NULL;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
}

static void count_release(void *self, void *pointer, size_t bytes) {
  counter *c = self;
  atomic_fetch_sub(&c->bytes, bytes);
  free(pointer);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

enum { MAX_SAMPLES = 101 };

typedef struct mode {
  const char *name;
  uint32_t budget_ms; /* 0: the fast path */
  size_t capacity;
} mode;

typedef struct outcome {
  rondo_plan_info worst; /* of the plan with the highest ratio */
  samples times, ratios; /* nanoseconds; peak to lower bound */
  size_t bytes;          /* maximum that planning allocated at any time */
} outcome;

static double ratio_of(const rondo_plan_info *info) {
  return info->lower_bound == 0 ? 1 : (double)info->peak / (double)info->lower_bound;
}

/* Makes and checks a plan. *inout_bytes is the maximum that planning allocated at any time. */
static rondo_plan_info make_plan(const rondo_plan_problem *problem, const mode *by, size_t *inout_bytes) {
  counter counted = {0};
  const rondo_allocator allocator = {&counted, count_allocation, count_release};
  const rondo_plan_options options = {
      RONDO_PLAN_OPTIONS_INIT,  .budget_ms = by->budget_ms,
      .capacity = by->capacity, .threads = (uint32_t)bench_setting("BENCH_PLAN_THREADS", 2),
      .allocator = &allocator,  .fast_only = by->budget_ms == 0};
  rondo_plan *made = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  check(rondo_plan_make(problem, &options, &made));
  check(rondo_plan_get_info(made, &info));
  check(rondo_plan_check(NULL, problem, rondo_plan_offsets(made)));
  rondo_plan_destroy(made);
  if (counted.most > *inout_bytes) *inout_bytes = counted.most;
  return info;
}

static void plan_once(const input *in, const mode *by, outcome *out) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = in->items, .count = in->count};
  const rondo_plan_info info = make_plan(&problem, by, &out->bytes);
  if (out->times.count == 0 || ratio_of(&info) >= ratio_of(&out->worst)) out->worst = info;
  samples_add(&out->times, (double)info.nanoseconds);
  samples_add(&out->ratios, ratio_of(&info));
}

static void report(const input *in, const mode *by, outcome *out) {
  const summary time = samples_summarize(&out->times), ratio = samples_summarize(&out->ratios);
  const rondo_plan_info *info = &out->worst;
  fprintf(bench_reporting()->out,
          "{\"measure\":\"plan %s %s\",\"unit\":\"ns\",\"samples\":%zu,\"median\":%.0f,\"min\":%.0f,\"max\":%.0f,"
          "\"ratio\":%.6f,\"ratio_min\":%.6f,\"ratio_max\":%.6f,\"buffers\":%zu,"
          "\"budget_ms\":%u,\"capacity\":%zu,\"lower_bound\":%zu,\"peak\":%zu,\"bytes\":%zu,\"method\":\"%s\","
          "\"optimal\":%s}\n",
          in->name, by->name, out->times.count, time.median, time.minimum, time.maximum, ratio.median, ratio.minimum,
          ratio.maximum, in->count, by->budget_ms, by->capacity, info->lower_bound, info->peak, out->bytes,
          info->method, info->optimal ? "true" : "false");
}

static size_t samples_setting(const char *name) {
  const long wanted = bench_setting(name, 3);
  return wanted < 1 ? 1 : wanted > MAX_SAMPLES ? MAX_SAMPLES : (size_t)wanted;
}

static void plan(const input *in, const mode *by) {
  const size_t count = samples_setting("BENCH_PLAN_SAMPLES");
  outcome out = {.times = bench_samples(count), .ratios = bench_samples(count)};
  for (size_t i = 0; i < count; i++) plan_once(in, by, &out);
  report(in, by, &out);
}

/* In its own process, because the heap that one input leaves would distort the next result. */
static void measure(input *in, const char *budgets, size_t capacity) {
  if (bench_child()) {
    uint32_t longest = 0;
    plan(in, &(mode){"fast", 0, 0});
    while (*budgets != '\0') {
      char name[32];
      const uint32_t budget = (uint32_t)next_number(&budgets);
      snprintf(name, sizeof name, "%ums", budget);
      plan(in, &(mode){name, budget, 0});
      if (budget > longest) longest = budget;
    }
    if (capacity > 0) plan(in, &(mode){"capacity", longest == 0 ? 5000 : longest, capacity});
    bench_child_end();
  }
  free(in->items);
}

static void measure_generated(size_t items) {
  for (size_t i = 0; i < GENERATORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s %zu", generators[i].name, items);
    input in = {.name = name};
    generators[i].make(&in, items, generators[i].seed);
    measure(&in, text_setting("BENCH_PLAN_MS", ""), 0);
  }
}

static void plan_shape(const size_shape *sizes, const life_shape *lives, size_t items) {
  char name[64];
  const mode fast = {"fast", 0, 0};
  const size_t seeds = samples_setting("BENCH_PLAN_SEEDS");
  outcome out = {.times = bench_samples(seeds), .ratios = bench_samples(seeds)};
  snprintf(name, sizeof name, "%s, %s", sizes->name, lives->name);
  for (size_t i = 0; i < seeds; i++) {
    input in = {.name = name};
    make_shape(&in, sizes, lives, items, i + 1);
    plan_once(&in, &fast, &out);
    free(in.items);
  }
  report(&(input){.name = name, .count = items}, &fast, &out);
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

/* Lifetimes -------------------------------------------------------------------------------------------------------- */

static void print_input(const input *in) {
  printf("id,lower,upper,size\n");
  for (size_t i = 0; i < in->count; i++) {
    const rondo_plan_item *item = &in->items[i];
    printf("%zu,%" PRIu32 ",%" PRIu32 ",%zu\n", i, item->lower, item->upper, item->bytes);
  }
}

static int run_lifetimes(int argc, char **argv) {
  const size_t items = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  for (size_t i = 0; i < GENERATORS && argc > 1; i++) {
    if (strcmp(generators[i].name, argv[1]) != 0) continue;
    input in = {.name = argv[1]};
    generators[i].make(&in, items, generators[i].seed);
    print_input(&in);
    free(in.items);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  return tool_fail_usage("give a kind of lifetimes: random, training, inference, blocks or chain");
}

/* Partial orders --------------------------------------------------------------------------------------------------- */

enum { LARGE = 50000 };

typedef struct row {
  const char *shape, *sizes;
  uint32_t nodes, chains, budget_ms;
  int seed;
} row;

static void name_budget(uint32_t budget_ms, char out[16]) {
  if (budget_ms == 0) {
    snprintf(out, 16, "fast");
  } else {
    snprintf(out, 16, "%ums", budget_ms);
  }
}

static void report_dag(const row *r, const dag *d, const rondo_plan_info *info, size_t bytes) {
  char budget[16];
  name_budget(r->budget_ms, budget);
  fprintf(bench_reporting()->out,
          "{\"measure\":\"plan %s DAG, %s, %u nodes on %u chains %s\",\"unit\":\"ns\",\"samples\":1,"
          "\"median\":%" PRIu64
          ",\"ratio\":%.6f,\"shape\":\"%s\",\"sizes\":\"%s\",\"nodes\":%u,\"edges\":%u,"
          "\"chains\":%u,\"seed\":%d,\"buffers\":%zu,\"budget_ms\":%u,\"lower_bound\":%zu,\"peak\":%zu,"
          "\"bytes\":%zu,\"steps\":%" PRIu64 ",\"method\":\"%s\",\"optimal\":%s}\n",
          r->shape, r->sizes, r->nodes, r->chains, budget, info->nanoseconds, ratio_of(info), r->shape, r->sizes,
          r->nodes, d->edge_count, r->chains, r->seed, d->count, r->budget_ms, info->lower_bound, info->peak, bytes,
          info->steps, info->method, info->optimal ? "true" : "false");
}

static void plan_dag(const row *r, const dag *d) {
  const rondo_plan_order order = {d->node_count, d->successor_start, d->successors};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = d->items, .count = d->count, .order = &order};
  size_t bytes = 0;
  const rondo_plan_info info = make_plan(&problem, &(mode){.budget_ms = r->budget_ms}, &bytes);
  report_dag(r, d, &info, bytes);
}

/* Each in its own process, because the heap that one DAG leaves would distort the next result. */
static void measure_dags(row *r, int shape, int sizes) {
  const int seeds = (int)bench_setting("BENCH_PLAN_SEEDS", r->nodes < LARGE ? 3 : 1);
  r->shape = shape_names[shape];
  r->sizes = size_names[sizes];
  for (r->seed = 0; r->seed < seeds; r->seed++) {
    if (!bench_child()) continue;
    dag d = make_dag(shape, sizes, r->nodes, r->chains, (uint64_t)r->seed);
    plan_dag(r, &d);
    free_dag(&d);
    bench_child_end();
  }
}

static void measure_orders(row *r) {
  for (int shape = 0; shape < SHAPES; shape++) {
    if (!bench_is_listed("BENCH_PLAN_SHAPES", shape_names[shape])) continue;
    for (const char *chains = text_setting("BENCH_PLAN_CHAINS", "2,4,8"); *chains != '\0';) {
      r->chains = (uint32_t)next_number(&chains);
      if (r->chains < 1 || r->chains > MAX_CHAINS) continue;
      for (int sizes = 0; sizes < SIZES; sizes++) {
        if (bench_is_listed("BENCH_PLAN_SIZES", size_names[sizes])) measure_dags(r, shape, sizes);
      }
    }
  }
}

static int run(int argc, char **argv) {
  bench_begin("rondo_bench plan", RONDO_VERSION_STRING);
  for (int i = 1; i < argc; i++) measure_file(argv[i]);
  for (const char *at = text_setting("BENCH_PLAN_ITEMS", "100000,1000000"); *at != '\0';) {
    measure_generated(next_number(&at));
  }
  for (const char *at = text_setting("BENCH_PLAN_SHAPED", "100000"); *at != '\0';) measure_shapes(next_number(&at));
  return bench_end();
}

static int run_order(int argc, char **argv) {
  (void)argc;
  (void)argv;
  row r = {0};
  bench_begin("rondo_bench plan_order", RONDO_VERSION_STRING);
  for (const char *nodes = text_setting("BENCH_PLAN_NODES", "10000,100000"); *nodes != '\0';) {
    r.nodes = (uint32_t)next_number(&nodes);
    for (const char *budgets = text_setting("BENCH_PLAN_MS", r.nodes < LARGE ? "0,200" : "0,1500"); *budgets != '\0';) {
      r.budget_ms = (uint32_t)next_number(&budgets);
      measure_orders(&r);
    }
  }
  return bench_end();
}

const benchmark bench_plan = {
    .name = "plan",
    .summary = "planning memory: buffers with lifetimes, [CSV...]",
    .description =
        "Plans lists of buffers, and measures the distance to the lower bound, the time and the memory of\n"
        "planning: rondo_bench plan [CSV...]. The first line of a CSV names the columns id,lower,upper,size.\n"
        "Generated lists are planned too: random buffers, layers of a training step, layers of inference, a\n"
        "training step of blocks, and random buffers in many shapes.\n\n"
        "BENCH_PLAN_MS: list of budgets in milliseconds, in addition to the fast path; default 10,1000,5000 for\n"
        "files, none for generated lists\n\n"
        "BENCH_PLAN_CAPACITY: capacity in bytes for files, within the longest budget; default none\n\n"
        "BENCH_PLAN_ITEMS: list of sizes of generated lists; default 100000,1000000\n\n"
        "BENCH_PLAN_SHAPED: the same for buffers in many shapes; default 100000\n\n"
        "BENCH_PLAN_SEEDS: seeds of each shape; default 3\n\n"
        "BENCH_PLAN_THREADS: threads of the search; default 2\n\n"
        "BENCH_PLAN_SAMPLES: plans for each row; default 3",
    .program = run,
};

const benchmark bench_plan_order = {
    .name = "plan_order",
    .summary = "planning memory on a partial order: generated DAGs",
    .description =
        "Plans the memory of generated DAGs, in four shapes, on several chains, with four distributions of sizes,\n"
        "and measures the distance to the lower bound, the time and the memory of planning.\n\n"
        "BENCH_PLAN_MS: list of budgets in milliseconds, 0 for the fast path; default 0,200, and 0,1500 from\n"
        "50,000 nodes on\n\n"
        "BENCH_PLAN_NODES: list of sizes of the DAGs; default 10000,100000\n\n"
        "BENCH_PLAN_CHAINS: list of numbers of chains; default 2,4,8\n\n"
        "BENCH_PLAN_SEEDS: number of seeds; default 3, from 50,000 nodes on 1\n\n"
        "BENCH_PLAN_THREADS: threads of the search; default 2\n\n"
        "BENCH_PLAN_SHAPES, BENCH_PLAN_SIZES: lists of names; default all",
    .program = run_order,
};

const benchmark bench_lifetimes = {
    .name = "lifetimes",
    .summary = "prints generated lifetimes as CSV: KIND [ITEMS]",
    .description =
        "Prints generated lifetimes as a CSV for 'rondo bench memory' and 'rondo plan': rondo_bench lifetimes\n"
        "KIND [ITEMS]. KIND is random, training, inference, blocks or chain; ITEMS is 1000 by default.",
    .program = run_lifetimes,
};
