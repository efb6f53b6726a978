/* SPDX-License-Identifier: MIT
 * How close to the lower bound memory is planned on a partial order, how fast, and with how much memory.
 *
 * DAGs are generated (plan_dags.h) in four shapes, on 2, 4 and 8 chains, with four ways of drawing sizes and several
 * seeds. Most items are short-lived, some live long, some are freed by another chain. JSON on standard output has a row
 * for each DAG and budget, the table on the standard error a line for all seeds: the worst and the median of peak to
 * lower bound and of the time, and the most memory that planning had allocated. Each plan is checked.
 *
 *   BENCH_PLAN_MS       list of budgets in milliseconds, 0 for the fast path; default 0,200, and 0,1500 where there are
 *                       50,000 nodes or more
 *   BENCH_PLAN_NODES    list of sizes of the DAGs; default 10000,100000
 *   BENCH_PLAN_CHAINS   list; default 2,4,8
 *   BENCH_PLAN_SEEDS    how many; default 3, at 50,000 nodes and more 1
 *   BENCH_PLAN_THREADS  default 2
 *   BENCH_PLAN_SHAPES, BENCH_PLAN_SIZES   lists of names; all when not set
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include <rondo/rondo.h>

#include "measure.h"
#include "plan_dags.h"

enum { MOST_SEEDS = 64, LARGE = 50000 };

/* Of all seeds; shared with the children that plan. */
typedef struct figures {
  double ratios[MOST_SEEDS], milliseconds[MOST_SEEDS];
  size_t bytes;
  char method[32]; /* of the worst */
} figures;

typedef struct row {
  const char *shape, *sizes;
  uint32_t nodes, chains, budget_ms;
  int seed;
} row;

static double most_of(const double *values, int count) {
  double most = 0;
  for (int i = 0; i < count; i++) most = values[i] > most ? values[i] : most;
  return most;
}

/* Sorts them. */
static double median_of(double *values, int count) {
  for (int i = 1; i < count; i++) {
    const double value = values[i];
    int at = i;
    for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
    values[at] = value;
  }
  return count == 0 ? 0 : values[count / 2];
}

static void name_budget(uint32_t budget_ms, char out[16]) {
  if (budget_ms == 0) {
    snprintf(out, 16, "fast");
  } else {
    snprintf(out, 16, "%ums", budget_ms);
  }
}

static void report(const row *r, const dag *d, const rondo_plan_info *info, size_t bytes, figures *out) {
  const double ratio = info->lower_bound == 0 ? 1 : (double)info->peak / (double)info->lower_bound;
  if (ratio >= most_of(out->ratios, r->seed)) snprintf(out->method, sizeof out->method, "%s", info->method);
  out->ratios[r->seed] = ratio;
  out->milliseconds[r->seed] = (double)info->nanoseconds / 1e6;
  if (bytes > out->bytes) out->bytes = bytes;
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

static void plan(const row *r, const dag *d, figures *out) {
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
  report(r, d, &info, counted.most, out);
  rondo_plan_destroy(made);
}

static void print_line(const row *r, int seeds, figures *found) {
  char budget[16];
  name_budget(r->budget_ms, budget);
  fprintf(stderr, "%-10s %-8s %6u %9u %-8s %8.4f %8.4f %9.1f %9.1f %7zu  %s\n", r->shape, r->sizes, r->chains, r->nodes,
          budget, median_of(found->ratios, seeds), most_of(found->ratios, seeds), median_of(found->milliseconds, seeds),
          most_of(found->milliseconds, seeds), found->bytes >> 10, found->method);
}

/* Each in a process of its own: what one DAG leaves in the heap would flatter the next. */
static void measure(row *r, int shape, int sizes, figures *found) {
  int seeds = (int)bench_setting("BENCH_PLAN_SEEDS", r->nodes < LARGE ? 3 : 1);
  if (seeds > MOST_SEEDS) seeds = MOST_SEEDS;
  memset(found, 0, sizeof *found);
  r->shape = shape_names[shape];
  r->sizes = size_names[sizes];
  for (r->seed = 0; r->seed < seeds; r->seed++) {
    if (!bench_child()) continue;
    dag d = make_dag(shape, sizes, r->nodes, r->chains, (uint64_t)r->seed);
    plan(r, &d, found);
    free_dag(&d);
    bench_child_end();
  }
  print_line(r, seeds, found);
}

static void measure_all(row *r, figures *found) {
  for (int shape = 0; shape < SHAPES; shape++) {
    if (!bench_is_listed("BENCH_PLAN_SHAPES", shape_names[shape])) continue;
    for (const char *chains = text_setting("BENCH_PLAN_CHAINS", "2,4,8"); *chains != '\0';) {
      r->chains = (uint32_t)next_number(&chains);
      if (r->chains < 1 || r->chains > MOST_CHAINS) continue;
      for (int sizes = 0; sizes < SIZES; sizes++) {
        if (bench_is_listed("BENCH_PLAN_SIZES", size_names[sizes])) measure(r, shape, sizes, found);
      }
    }
  }
}

int main(void) {
  row r = {0};
  figures *found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return EXIT_FAILURE;
  bench_begin("bench_plan_order", RONDO_VERSION_STRING);
  fprintf(stderr, "%-10s %-8s %6s %9s %-8s %8s %8s %9s %9s %7s  %s\n", "DAG", "sizes", "chains", "nodes", "budget",
          "median", "worst", "ms", "worst", "KiB", "method");
  for (const char *nodes = text_setting("BENCH_PLAN_NODES", "10000,100000"); *nodes != '\0';) {
    r.nodes = (uint32_t)next_number(&nodes);
    for (const char *budgets = text_setting("BENCH_PLAN_MS", r.nodes < LARGE ? "0,200" : "0,1500"); *budgets != '\0';) {
      r.budget_ms = (uint32_t)next_number(&budgets);
      measure_all(&r, found);
    }
  }
  return bench_end();
}
