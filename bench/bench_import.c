/* SPDX-License-Identifier: MIT
 * rondo_bench import (AD-2): what it costs to import a graph of the driver and to hand out the driver's form of a
 * graph, beside what the driver's own calls cost: to copy the graph, and to copy it and read what an importer has to
 * know of its nodes, which is their kinds, edges with data, kernel parameters and launch attributes. The graph is a
 * line of captured kernels. Only on CUDA devices.
 */
#include "bench/bench_kernels.h"
#include "bench/bench_target.h"
#include "bench_check.h"
#include "rondo_bench.h"

enum { MOST_ROUNDS = 500, FEWEST_ROUNDS = 5 };

enum {
  COPY,
  COPY_AND_READ,
  COPY_AND_READ_PARAMS,
  IMPORT,
  TAKE_OVER,
  HAND_OUT,
  HAND_OUT_CHANGED,
  HAND_OUT_OTHER,
  QUANTITIES
};
static const char *const names[QUANTITIES] = {[COPY] = "copy_by_driver",
                                              [COPY_AND_READ] = "copy_and_read_by_driver",
                                              [COPY_AND_READ_PARAMS] = "copy_and_read_params_by_driver",
                                              [IMPORT] = "import",
                                              [TAKE_OVER] = "import_taking_ownership",
                                              [HAND_OUT] = "hand_out",
                                              [HAND_OUT_CHANGED] = "hand_out_changed",
                                              [HAND_OUT_OTHER] = "hand_out_other_topology"};

typedef struct import_bench {
  bench_base base;
  uint64_t nodes;
  bench_target *rondo, *bare;
  uint64_t word;
  target_graph graph; /* the driver's */
  bare_node *read;    /* workspace: its nodes */
  samples times[QUANTITIES];
} import_bench;

static void set_word_arguments(const void *user, uint32_t index, uint64_t values[2]) {
  values[0] = *(const uint64_t *)user;
  values[1] = index;
}

static void capture(const import_bench *b, target_graph *out) {
  const target_line line = {.nodes = (uint32_t)b->nodes, .arguments = set_word_arguments, .user = &b->word};
  check_tool(b->bare->calls->begin_capture(b->bare));
  check_tool(b->bare->calls->enqueue_line(b->bare, &line));
  check_tool(b->bare->calls->end_capture(b->bare, out));
}

static void note(import_bench *b, int quantity, uint64_t begin) {
  samples_add(&b->times[quantity], (double)(clock_ns() - begin) / 1e3);
}

/* By the driver's own calls ---------------------------------------------------------------------------------------- */

/* Cooperative, cluster, priority, memory domain and carve-out: those that a rondo_launch_config has. */
static const int attributes[] = {2, 4, 8, 10, 14};

/* The driver has no call that reads several attributes, or several nodes. */
static void read_node(const bare_driver *driver, bare_node node) {
  enum { MOST = 16 };
  bare_node before[MOST];
  bare_edge_data data[MOST];
  bare_kernel_params params;
  bare_attribute_value value;
  size_t count = MOST;
  int type;
  check_bare(driver->graph_node_get_type(node, &type));
  check_bare(driver->graph_node_get_dependencies(node, before, data, &count));
  check_bare(driver->graph_kernel_get_params(node, &params));
  for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
    check_bare(driver->graph_kernel_get_attribute(node, attributes[i], &value));
}

static void read_nodes(const import_bench *b, bare_graph graph, bool reads_params_alone) {
  const bare_driver *driver = &bare_target_device(b->bare)->driver;
  size_t count = (size_t)b->nodes;
  bare_kernel_params params;
  check_bare(driver->graph_get_nodes(graph, b->read, &count));
  for (size_t i = 0; i < count; i++) {
    if (reads_params_alone)
      check_bare(driver->graph_kernel_get_params(b->read[i], &params));
    else
      read_node(driver, b->read[i]);
  }
}

static void time_driver(import_bench *b, int quantity) {
  const bare_driver *driver = &bare_target_device(b->bare)->driver;
  bare_graph copy;
  const uint64_t begin = clock_ns();
  check_bare(driver->graph_clone(&copy, b->graph.graph));
  if (quantity != COPY) read_nodes(b, copy, quantity == COPY_AND_READ_PARAMS);
  note(b, quantity, begin);
  check_bare(driver->graph_destroy(copy));
}

/* By Rondo --------------------------------------------------------------------------------------------------------- */

static void time_hand_out(import_bench *b, rondo_graph *graph, int quantity) {
  void *native;
  const uint64_t begin = clock_ns();
  check(rondo_graph_native(graph, &native));
  note(b, quantity, begin);
}

/* Setting a node's parameters, also to what they are, is a change. */
static void change(rondo_graph *graph) {
  rondo_node first;
  rondo_node_params params;
  size_t count = 1;
  check(rondo_graph_nodes(graph, &first, &count));
  check(rondo_graph_get_params(graph, first, &params));
  check(rondo_graph_set_params(graph, first, &params));
}

/* Adds a node, so that the driver's form has to be built from all nodes. */
static void extend(rondo_graph *graph) {
  rondo_node node;
  check(rondo_graph_add_empty(graph, NULL, 0, &node));
}

static void time_import(import_bench *b) {
  rondo_graph *graph;
  const uint64_t begin = clock_ns();
  check(rondo_graph_import(b->base.device, b->graph.graph, NULL, &graph));
  note(b, IMPORT, begin);
  time_hand_out(b, graph, HAND_OUT);
  change(graph);
  time_hand_out(b, graph, HAND_OUT_CHANGED);
  extend(graph);
  time_hand_out(b, graph, HAND_OUT_OTHER);
  check(rondo_graph_destroy(graph));
}

static void time_take_over(import_bench *b) {
  const rondo_import_options options = {RONDO_IMPORT_OPTIONS_INIT, .takes_ownership = true};
  target_graph given;
  rondo_graph *graph;
  capture(b, &given);
  const uint64_t begin = clock_ns();
  check(rondo_graph_import(b->base.device, given.graph, &options, &graph));
  note(b, TAKE_OVER, begin);
  check(rondo_graph_destroy(graph));
}

static int measure(void *bench) {
  import_bench *b = bench;
  if (!bare_is_cuda(b->base.device_name))
    return tool_fail_usage("device '%s' has no driver with graphs: pass --device cuda:0", b->base.device_name);
  check_tool(rondo_target_create(b->base.device, &bench_set_word, 1, &b->rondo)); /* registers the kernel */
  check_tool(bare_target_create(b->base.device_name, &bench_set_word, 1, &b->bare));
  check_tool(b->bare->calls->allocate(b->bare, sizeof(uint32_t), &b->word));
  capture(b, &b->graph);
  b->read = bench_allocate((size_t)b->nodes, sizeof *b->read);
  for (size_t i = 0; i < QUANTITIES; i++) bench_samples_create(&b->times[i], MOST_ROUNDS);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);) {
    time_driver(b, COPY);
    time_driver(b, COPY_AND_READ);
    time_driver(b, COPY_AND_READ_PARAMS);
    time_import(b);
    time_take_over(b);
  }
  return TOOL_OK;
}

static double median(import_bench *b, int quantity) { return samples_summarize(&b->times[quantity]).median; }

static void report(void *bench, json *out) {
  import_bench *b = bench;
  json_integer(out, "nodes", b->nodes);
  for (int i = 0; i < QUANTITIES; i++) {
    json_begin_object(out, names[i]);
    json_summary(out, "host_us", samples_summarize(&b->times[i]));
    json_end(out);
  }
  json_real(out, "import_ratio", bench_ratio(median(b, IMPORT), median(b, COPY_AND_READ)));
  json_real(out, "hand_out_ratio", bench_ratio(median(b, HAND_OUT), median(b, COPY)));
  json_real(out, "hand_out_changed_ratio", bench_ratio(median(b, HAND_OUT_CHANGED), median(b, COPY)));
}

static const import_bench defaults = {.base = {.device_name = "cuda:0", .seconds = 2}, .nodes = 1000};

static const option_row rows[] = {
    {"nodes", "N", OPTION_COUNT, offsetof(import_bench, nodes), 1, 100000, "kernels of the graph"},
};

const benchmark bench_import = {
    .name = "import",
    .summary = "importing a graph of the driver, and handing one out",
    .description =
        "Measures on a CUDA device what it costs the host to import a graph of captured kernels, as a copy and\n"
        "with its ownership, and to hand out the driver's form of the imported graph, as it is, after a kernel got\n"
        "other parameters, and after a node was added. import_ratio compares with copying the graph and reading its\n"
        "nodes by the driver's own calls, hand_out_ratio and hand_out_changed_ratio with copying it. Times are\n"
        "microseconds: medians, with minimum and maximum.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .measure = measure,
    .report = report,
};
