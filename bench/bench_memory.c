/* SPDX-License-Identifier: MIT
 * How much memory graphs with alloc and free nodes hold, and what that costs: bench_memory [CSV...]
 *
 * Each CSV (plan_items.h), or with none what generators make, becomes a graph in a line: frees and allocs in the order
 * of the steps, with some bytes of each allocation written behind its alloc node. Ways: `online` (addresses are given
 * as nodes are made), `profiled` (recorded again, with the profile of the online graph), `relocated` (instantiated with
 * relocate). Bytes are those that the device holds after one launch; their ratio is to the most that is live at once,
 * rounded up to a page of the device. JSON goes to standard output, a table to the standard error.
 *
 *   BENCH_DEVICE          the device; default cpu
 *   BENCH_MEMORY_ITEMS    allocations of what is generated; default 1000
 *   BENCH_MEMORY_SAMPLES  instantiates a way; default 5
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdbool.h>

#include "measure.h"
#include "plan_items.h"

enum { MOST_SAMPLES = 101, LAUNCHES = 50, WRITTEN = 64 };

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* An alloc or free of an item. In a step what ends there goes before what begins. */
typedef struct step {
  uint32_t at;
  bool is_alloc;
  size_t item;
} step;

static int compare_steps(const void *a, const void *b) {
  const step *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->is_alloc != y->is_alloc) return x->is_alloc ? 1 : -1;
  return (x->item > y->item) - (x->item < y->item);
}

static step *make_steps(const input *in) {
  step *steps = bench_zeroed(2 * in->count, sizeof *steps);
  for (size_t i = 0; i < in->count; i++) {
    steps[2 * i] = (step){.at = in->items[i].lower, .is_alloc = true, .item = i};
    steps[2 * i + 1] = (step){.at = in->items[i].upper, .item = i};
  }
  qsort(steps, 2 * in->count, sizeof *steps, compare_steps);
  return steps;
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

static rondo_node add_alloc(rondo_graph *graph, rondo_node last, size_t bytes, void **out_address) {
  rondo_node node;
  check(rondo_graph_add_alloc(graph, &last, last.id != 0, bytes, NULL, out_address, &node));
  const rondo_fill fill = {
      .dst = *out_address, .value = 1, .element_bytes = 1, .width = bytes < WRITTEN ? bytes : WRITTEN};
  check(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  return node;
}

static rondo_graph *record(rondo_device *device, const input *in, const step *steps, rondo_profile *profile) {
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = in->name, .profile = profile};
  void **addresses = bench_zeroed(in->count, sizeof *addresses);
  rondo_graph *graph;
  rondo_node last = {0};
  check(rondo_graph_create(device, &options, &graph));
  for (size_t i = 0; i < 2 * in->count; i++) {
    const size_t item = steps[i].item;
    if (steps[i].is_alloc)
      last = add_alloc(graph, last, in->items[item].bytes, &addresses[item]);
    else
      check(rondo_graph_add_free(graph, &last, 1, addresses[item], &last));
  }
  free(addresses);
  return graph;
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

/* What is reported of a way, one row each. */
typedef enum quantity { HELD, PROFILE, INSTANTIATE, FIRST, RELAUNCH, REMAPS, ALTERNATE, MOVES, QUANTITIES } quantity;

typedef struct series {
  uint64_t samples[MOST_SAMPLES * LAUNCHES];
  size_t count;
} series;

typedef struct result {
  series of[QUANTITIES];
  uint64_t bound; /* bytes, rounded up to a page */
} result;

static void note(result *out, quantity what, uint64_t value) {
  series *list = &out->of[what];
  list->samples[list->count++] = value;
}

static rondo_memory_statistics statistics(const rondo_device *device) {
  rondo_memory_statistics now = {.struct_size = sizeof now};
  check(rondo_memory_get_statistics(device, &now));
  return now;
}

/* Launches and waits; nanoseconds. */
static uint64_t launch(rondo_exec *exec, rondo_stream *stream) {
  const uint64_t start = bench_now_ns();
  check(rondo_exec_launch(exec, stream));
  check(rondo_stream_synchronize(stream));
  return bench_now_ns() - start;
}

/* Launches on the streams in turn; times, and how often memory was mapped again in all of them. */
static void launch_on(result *out, rondo_exec *exec, rondo_stream *const *streams, size_t count, quantity time,
                      quantity remaps) {
  const uint64_t before = statistics(rondo_stream_device(streams[0])).remaps;
  for (size_t i = 0; i < LAUNCHES; i++) note(out, time, launch(exec, streams[i % count]));
  note(out, remaps, statistics(rondo_stream_device(streams[0])).remaps - before);
}

static void sample(result *out, rondo_graph *graph, bool relocate, rondo_stream *const streams[2]) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  rondo_device *device = rondo_stream_device(streams[0]);
  rondo_exec *exec;
  check(rondo_graph_memory_trim(device));
  const uint64_t start = bench_now_ns();
  check(rondo_instantiate(graph, &options, &exec));
  note(out, INSTANTIATE, bench_now_ns() - start);
  note(out, FIRST, launch(exec, streams[0]));
  note(out, HELD, statistics(device).graph_reserved);
  launch_on(out, exec, streams, 1, RELAUNCH, REMAPS);
  launch_on(out, exec, streams, 2, ALTERNATE, MOVES);
  rondo_exec_destroy(exec);
}

/* The most that is live at once, each allocation rounded up to the multiple of 256 that it takes. */
static uint64_t bound_of(const rondo_device *device, const input *in, const step *steps) {
  rondo_device_info info = {.struct_size = sizeof info};
  uint64_t live = 0, most = 0;
  check(rondo_device_get_info(device, &info));
  for (size_t i = 0; i < 2 * in->count; i++) {
    const uint64_t bytes = (in->items[steps[i].item].bytes + 255) / 256 * 256;
    live = steps[i].is_alloc ? live + bytes : live - bytes;
    if (live > most) most = live;
  }
  return (most + info.page_bytes - 1) / info.page_bytes * info.page_bytes;
}

/* The graph made again with its profile, in its place. */
static void profile_graph(result *out, rondo_device *device, const input *in, const step *steps, rondo_graph **graph) {
  rondo_profile *profile;
  const uint64_t start = bench_now_ns();
  check(rondo_profile_create(*graph, NULL, &profile));
  note(out, PROFILE, bench_now_ns() - start);
  check(rondo_graph_destroy(*graph));
  *graph = record(device, in, steps, profile);
  rondo_profile_destroy(profile);
}

typedef struct way {
  const char *name;
  bool profiled, relocated;
} way;

static const way ways[] = {
    {.name = "online"}, {.name = "profiled", .profiled = true}, {.name = "relocated", .relocated = true}};

static void measure_way(result *out, const input *in, const step *steps, const way *by) {
  const long wanted = bench_setting("BENCH_MEMORY_SAMPLES", 5);
  const long samples = wanted < 1 ? 1 : wanted > MOST_SAMPLES ? MOST_SAMPLES : wanted;
  rondo_device *device;
  rondo_stream *streams[2];
  check(rondo_device_open(bench_device(), NULL, &device));
  for (int i = 0; i < 2; i++) check(rondo_stream_create(device, NULL, &streams[i]));
  out->bound = bound_of(device, in, steps);
  rondo_graph *graph = record(device, in, steps, NULL);
  if (by->profiled) profile_graph(out, device, in, steps, &graph);
  for (long i = 0; i < samples; i++) sample(out, graph, by->relocated, streams);
  check(rondo_graph_destroy(graph));
  for (int i = 0; i < 2; i++) check(rondo_stream_destroy(streams[i]));
  check(rondo_device_close(device));
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static const char *const names[QUANTITIES] = {"bytes",    "profile", "instantiate", "first",
                                              "relaunch", "remaps",  "alternate",   "moves"};
static const char *const units[QUANTITIES] = {"bytes", "ns", "ns", "ns", "ns", "count", "ns", "count"};

static void report_row(const input *in, const way *by, result *out, quantity what) {
  series *list = &out->of[what];
  const bench_spread spread = bench_spread_of(list->samples, list->count);
  fprintf(bench_reporting()->out,
          "{\"measure\":\"memory %.30s %s %s\",\"unit\":\"%s\",\"samples\":%zu,\"median\":%" PRIu64 ",\"min\":%" PRIu64
          ",\"max\":%" PRIu64,
          in->name, by->name, names[what], units[what], list->count, spread.median, spread.minimum, spread.maximum);
  if (what == HELD)
    fprintf(bench_reporting()->out, ",\"bound\":%" PRIu64 ",\"ratio\":%.6f", out->bound,
            (double)spread.median / (double)out->bound);
  fprintf(bench_reporting()->out, "}\n");
}

static double median_of(result *out, quantity what) {
  series *list = &out->of[what];
  return list->count == 0 ? 0 : (double)bench_spread_of(list->samples, list->count).median;
}

static void report(const input *in, const way *by, result *out) {
  for (quantity what = 0; what < QUANTITIES; what++) {
    if (out->of[what].count > 0) report_row(in, by, out, what);
  }
  fprintf(stderr, "%-30s %6zu %-9s %12.0f %8.4f %10.2f %10.2f %10.1f %10.1f %7.0f %10.1f %7.0f\n", in->name, in->count,
          by->name, median_of(out, HELD), median_of(out, HELD) / (double)out->bound, median_of(out, PROFILE) / 1e6,
          median_of(out, INSTANTIATE) / 1e6, median_of(out, FIRST) / 1e3, median_of(out, RELAUNCH) / 1e3,
          median_of(out, REMAPS), median_of(out, ALTERNATE) / 1e3, median_of(out, MOVES));
}

/* Each way in a process of its own. */
static void measure(input *in) {
  static result out;
  step *steps = make_steps(in);
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    if (!bench_child()) continue;
    measure_way(&out, in, steps, &ways[i]);
    report(in, &ways[i], &out);
    bench_child_end();
  }
  free(steps);
  free(in->items);
}

static void measure_generated(size_t items) {
  for (size_t i = 0; i < GENERATORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s %zu", generators[i].name, items);
    input in = {.name = name};
    generators[i].make(&in, items);
    measure(&in);
  }
}

int main(int argc, char **argv) {
  bench_begin("bench_memory", RONDO_VERSION_STRING);
  fprintf(stderr, "%-30s %6s %-9s %12s %8s %10s %10s %10s %10s %7s %10s %7s\n", "input", "allocs", "way", "bytes",
          "ratio", "profile ms", "inst. ms", "first us", "again us", "remaps", "altern. us", "moves");
  for (int i = 1; i < argc; i++) {
    input in = open_file(argv[i]);
    measure(&in);
  }
  if (argc == 1) measure_generated((size_t)bench_setting("BENCH_MEMORY_ITEMS", 1000));
  return bench_end();
}
