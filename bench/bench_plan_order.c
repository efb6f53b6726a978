/* SPDX-License-Identifier: MIT
 * rondo_bench plan_order: how close to the lower bound memory is planned on a partial order, how fast, and with how
 * much memory. DAGs are generated (plan_dags.h) in four shapes, on 2, 4 and 8 chains, with four ways of drawing sizes
 * and several seeds. Most items are short-lived, some live long, some are freed by another chain. A row is a DAG and a
 * budget. Each plan is checked, and made in a process of its own.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "plan_dags.h"
#include "rondo_bench.h"

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

static void report(const row *r, const dag *d, const rondo_plan_info *info, size_t bytes) {
  const double ratio = info->lower_bound == 0 ? 1 : (double)info->peak / (double)info->lower_bound;
  char way[16];
  name_budget(r->budget_ms, way);
  fprintf(bench_reporting()->out,
          "{\"measure\":\"plan %s DAG, %s, %u nodes on %u chains %s\",\"unit\":\"ns\",\"samples\":1,"
          "\"median\":%" PRIu64
          ",\"ratio\":%.6f,\"shape\":\"%s\",\"sizes\":\"%s\",\"nodes\":%u,\"edges\":%u,"
          "\"chains\":%u,\"seed\":%d,\"buffers\":%zu,\"budget_ms\":%u,\"lower_bound\":%zu,\"peak\":%zu,"
          "\"bytes\":%zu,\"steps\":%" PRIu64 ",\"method\":\"%s\",\"optimal\":%s}\n",
          r->shape, r->sizes, r->nodes, r->chains, way, info->nanoseconds, ratio, r->shape, r->sizes, r->nodes,
          d->edge_count, r->chains, r->seed, d->count, r->budget_ms, info->lower_bound, info->peak, bytes, info->steps,
          info->method, info->optimal ? "true" : "false");
}

static void plan(const row *r, const dag *d) {
  const rondo_plan_order order = {d->node_count, d->successor_start, d->successors};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = d->items, .count = d->count, .order = &order};
  counter counted = {0};
  const rondo_allocator allocator = {&counted, count_allocation, count_release};
  const rondo_plan_options options = {
      RONDO_PLAN_OPTIONS_INIT, .budget_ms = r->budget_ms, .fast_only = r->budget_ms == 0,
      .threads = (uint32_t)bench_setting("BENCH_PLAN_THREADS", 2), .allocator = &allocator};
  rondo_plan *made = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  check(rondo_plan_make(&problem, &options, &made));
  check(rondo_plan_get_info(made, &info));
  check(rondo_plan_check(NULL, &problem, rondo_plan_offsets(made)));
  report(r, d, &info, counted.most);
  rondo_plan_destroy(made);
}

/* Each in a process of its own: what one DAG leaves in the heap would flatter the next. */
static void measure(row *r, int shape, int sizes) {
  const int seeds = (int)bench_setting("BENCH_PLAN_SEEDS", r->nodes < LARGE ? 3 : 1);
  r->shape = shape_names[shape];
  r->sizes = size_names[sizes];
  for (r->seed = 0; r->seed < seeds; r->seed++) {
    if (!bench_child()) continue;
    dag d = make_dag(shape, sizes, r->nodes, r->chains, (uint64_t)r->seed);
    plan(r, &d);
    free_dag(&d);
    bench_child_end();
  }
}

static void measure_all(row *r) {
  for (int shape = 0; shape < SHAPES; shape++) {
    if (!bench_is_listed("BENCH_PLAN_SHAPES", shape_names[shape])) continue;
    for (const char *chains = text_setting("BENCH_PLAN_CHAINS", "2,4,8"); *chains != '\0';) {
      r->chains = (uint32_t)next_number(&chains);
      if (r->chains < 1 || r->chains > MOST_CHAINS) continue;
      for (int sizes = 0; sizes < SIZES; sizes++) {
        if (bench_is_listed("BENCH_PLAN_SIZES", size_names[sizes])) measure(r, shape, sizes);
      }
    }
  }
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  row r = {0};
  bench_begin("rondo_bench plan_order", RONDO_VERSION_STRING);
  for (const char *nodes = text_setting("BENCH_PLAN_NODES", "10000,100000"); *nodes != '\0';) {
    r.nodes = (uint32_t)next_number(&nodes);
    for (const char *budgets = text_setting("BENCH_PLAN_MS", r.nodes < LARGE ? "0,200" : "0,1500"); *budgets != '\0';) {
      r.budget_ms = (uint32_t)next_number(&budgets);
      measure_all(&r);
    }
  }
  return bench_end();
}

const benchmark bench_plan_order = {
    .name = "plan_order",
    .summary = "planning memory on a partial order: generated DAGs",
    .description =
        "Plans the memory of generated DAGs, in four shapes, on several chains, with four\n"
        "ways of drawing sizes, and measures how close to the lower bound, how fast and\n"
        "in how much memory.\n"
        "\n"
        "BENCH_PLAN_MS: list of budgets in milliseconds, 0 for the fast path; default\n"
        "0,200, and 0,1500 where there are 50,000 nodes or more\n"
        "\n"
        "BENCH_PLAN_NODES: list of sizes of the DAGs; default 10000,100000\n"
        "\n"
        "BENCH_PLAN_CHAINS: list; default 2,4,8\n"
        "\n"
        "BENCH_PLAN_SEEDS: how many; default 3, at 50,000 nodes and more 1\n"
        "\n"
        "BENCH_PLAN_THREADS: default 2\n"
        "\n"
        "BENCH_PLAN_SHAPES, BENCH_PLAN_SIZES: lists of names; all when not set",
    .program = run,
};
