/* SPDX-License-Identifier: MIT
 * rondo_bench replay: Rondo's replays of the graphs that every peer replays (graphs.h). Devices have one worker thread.
 * The host runs nodes while it waits, so two threads run nodes.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { GRAPH, STREAM, STREAMS, LOOP, VARIANTS };
static const char *const names[VARIANTS] = {"rondo", "rondo-stream", "rondo-streams", "rondo-loop"};

/* Kernels --------------------------------------------------------------------------------------------------------- */

/* A kernel function calls a body for a range of blocks; it is written out so that the compiler inlines the body. */
#define KERNEL_OF(body)                                                              \
  static void body##_kernel(rondo_blocks blocks, void *const *args) {                \
    void *argument = *(void *const *)args[0];                                        \
    for (size_t b = blocks.first; b < blocks.last; b++) body(argument, (uint32_t)b); \
  }
KERNEL_OF(bench_empty)
KERNEL_OF(bench_microsecond)
KERNEL_OF(bench_block)
KERNEL_OF(bench_checking)
KERNEL_OF(bench_stamping)

enum { KERNELS = 5 };
static const struct {
  bench_body body;
  rondo_cpu_function function;
  const char *name;
} kernel_table[KERNELS] = {
    {bench_empty, bench_empty_kernel, "empty"},          {bench_microsecond, bench_microsecond_kernel, "microsecond"},
    {bench_block, bench_block_kernel, "block"},          {bench_checking, bench_checking_kernel, "checking"},
    {bench_stamping, bench_stamping_kernel, "stamping"},
};

static size_t kernel_index(bench_body body) {
  size_t i = 0;
  while (kernel_table[i].body != body) i++;
  return i;
}

/* The runtime ----------------------------------------------------------------------------------------------------- */

/* What a node calls in the plain loop: the function, the whole grid, the addresses of the arguments. */
typedef struct loop_call {
  rondo_cpu_function function;
  rondo_blocks blocks;
  void *args[1];
} loop_call;

typedef struct runner {
  bench_graph *graph;
  rondo_device *device;
  rondo_kernel *kernels[KERNELS];
  rondo_stream *streams[2];
  rondo_exec *exec;
  uint8_t *stream_of;   /* rondo-streams: the stream of a node */
  uint8_t *crosses;     /* rondo-streams: whether a node on the other stream waits for it */
  rondo_event **events; /* rondo-streams: of nodes that others wait for */
  rondo_event *ends[2]; /* rondo-streams: begin and end of a replay */
  loop_call *calls;
} runner;

static void open_runner(runner *self) {
  check(rondo_device_open("cpu", &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1}, &self->device));
  for (int i = 0; i < 2; i++) check(rondo_stream_create(self->device, NULL, &self->streams[i]));
  for (size_t i = 0; i < KERNELS; i++) {
    const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = kernel_table[i].name,
                                          .cpu = kernel_table[i].function, .params = {RONDO_SCALAR(void *)}};
    check(rondo_kernel_create(self->device, &options, &self->kernels[i]));
  }
}

/* The graph ------------------------------------------------------------------------------------------------------- */

static void add_node(const runner *self, rondo_graph *graph, rondo_node *nodes, uint32_t i) {
  const bench_graph *shape = self->graph;
  const bench_node *node = &shape->nodes[i];
  rondo_node before[32];
  size_t count = 0;
  for (uint32_t k = shape->predecessor_start[i]; k < shape->predecessor_start[i + 1]; k++) {
    before[count++] = nodes[shape->predecessors[k]];
  }
  check(rondo_graph_add_kernel(graph, before, count, self->kernels[kernel_index(node->body)],
                               (rondo_grid){.x = node->blocks}, RONDO_ARGS(&node->argument), &nodes[i]));
}

static void graph_prepare(void *argument) {
  runner *self = argument;
  rondo_graph *graph = NULL;
  rondo_node *nodes = bench_zeroed(self->graph->count, sizeof *nodes);
  rondo_exec_destroy(self->exec);
  check(rondo_graph_create(self->device, NULL, &graph));
  for (uint32_t i = 0; i < self->graph->count; i++) add_node(self, graph, nodes, i);
  check(rondo_instantiate(graph, NULL, &self->exec));
  check(rondo_exec_upload(self->exec, self->streams[0]));
  check(rondo_graph_destroy(graph));
  free(nodes);
}

static void graph_launch(void *argument) {
  const runner *self = argument;
  check(rondo_exec_launch(self->exec, self->streams[0]));
}

static void stream_wait(void *argument) {
  const runner *self = argument;
  check(rondo_stream_synchronize(self->streams[0]));
}

/* Streams --------------------------------------------------------------------------------------------------------- */

static void enqueue_node(const runner *self, rondo_stream *stream, const bench_node *node) {
  check(rondo_launch(stream, self->kernels[kernel_index(node->body)], (rondo_grid){.x = node->blocks},
                     RONDO_ARGS(&node->argument)));
}

static void stream_launch(void *argument) {
  const runner *self = argument;
  for (uint32_t i = 0; i < self->graph->count; i++) enqueue_node(self, self->streams[0], &self->graph->nodes[i]);
}

/* The second chain, or every other node between fork and join, runs on the second stream. */
static void plan_streams(runner *self, int shape) {
  const bench_graph *graph = self->graph;
  self->stream_of = bench_zeroed(graph->count, 1);
  self->crosses = bench_zeroed(graph->count, 1);
  self->events = bench_zeroed(graph->count, sizeof *self->events);
  for (uint32_t i = 0; i < graph->count; i++) {
    self->stream_of[i] = shape == BENCH_BRANCH2X16 ? i >= 16 : i > 0 && i < 31 && i % 2 == 1;
  }
  for (uint32_t i = 0; i < graph->count; i++) {
    for (uint32_t k = graph->successor_start[i]; k < graph->successor_start[i + 1]; k++) {
      if (self->stream_of[graph->successors[k]] != self->stream_of[i]) self->crosses[i] = 1;
    }
    if (self->crosses[i]) check(rondo_event_create(self->device, NULL, &self->events[i]));
  }
  for (int i = 0; i < 2; i++) check(rondo_event_create(self->device, NULL, &self->ends[i]));
}

/* A node waits for the last node of the other stream that it depends on, which implies all nodes before that one. */
static void wait_for_other_stream(const runner *self, uint32_t i) {
  const bench_graph *graph = self->graph;
  rondo_event *last = NULL;
  for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
    const uint32_t before = graph->predecessors[k];
    if (self->stream_of[before] != self->stream_of[i]) last = self->events[before];
  }
  if (last != NULL) check(rondo_stream_wait_event(self->streams[self->stream_of[i]], last));
}

static void streams_launch(void *argument) {
  const runner *self = argument;
  check(rondo_event_record(self->ends[0], self->streams[0]));
  check(rondo_stream_wait_event(self->streams[1], self->ends[0]));
  for (uint32_t i = 0; i < self->graph->count; i++) {
    rondo_stream *stream = self->streams[self->stream_of[i]];
    wait_for_other_stream(self, i);
    enqueue_node(self, stream, &self->graph->nodes[i]);
    if (self->crosses[i]) check(rondo_event_record(self->events[i], stream));
  }
  check(rondo_event_record(self->ends[1], self->streams[1]));
  check(rondo_stream_wait_event(self->streams[0], self->ends[1]));
}

/* The loop -------------------------------------------------------------------------------------------------------- */

static void loop_prepare(void *argument) {
  runner *self = argument;
  if (self->calls == NULL) self->calls = bench_zeroed(self->graph->count, sizeof *self->calls);
  for (uint32_t i = 0; i < self->graph->count; i++) {
    bench_node *node = &self->graph->nodes[i];
    const rondo_grid grid = {.x = node->blocks, .y = 1, .z = 1};
    self->calls[i] = (loop_call){.function = kernel_table[kernel_index(node->body)].function,
                                 .blocks = {.first = 0, .last = node->blocks, .grid = grid},
                                 .args = {&node->argument}};
  }
}

static void loop_launch(void *argument) {
  const runner *self = argument;
  for (uint32_t i = 0; i < self->graph->count; i++) {
    const loop_call *call = &self->calls[i];
    call->function(call->blocks, call->args);
  }
}

static void loop_wait(void *self) { (void)self; }

/* ----------------------------------------------------------------------------------------------------------------- */

static void measure(int variant, int shape) {
  runner self = {.graph = bench_graph_create(shape)};
  bench_engine engine = {.name = names[variant], .threads = 2, .batch = 1, .self = &self, .wait = stream_wait};
  switch (variant) {
    case GRAPH:
      engine.prepare = graph_prepare;
      engine.launch = graph_launch;
      break;
    case STREAM:
      engine.launch = stream_launch;
      break;
    case STREAMS:
      engine.launch = streams_launch;
      break;
    default:
      engine.threads = 1;
      engine.prepare = loop_prepare;
      engine.launch = loop_launch;
      engine.wait = loop_wait;
      if (self.graph->count <= 32 && bench_setting("BENCH_GAP_US", 0) == 0) engine.batch = 50;
  }
  if (variant != LOOP) open_runner(&self);
  if (variant == STREAMS) plan_streams(&self, shape);
  bench_measure(&engine, self.graph);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench replay", rondo_version());
  for (int shape = 0; shape < BENCH_SHAPE_COUNT; shape++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      const int branches = shape == BENCH_BRANCH2X16 || shape == BENCH_FORK30;
      if (variant == STREAMS && !branches) continue;
      if (bench_wants(shape, names[variant]) && bench_child()) measure(variant, shape);
    }
  }
  return bench_end();
}

const benchmark bench_replay = {
    .name = "replay",
    .summary = "replaying the graphs that the peers replay",
    .description =
        "Replays the graphs of the peers, with one worker thread and the host. Engines:\n\n"
        "rondo: the uploaded exec; a launch is one rondo_exec_launch\n\n"
        "rondo-stream: the nodes enqueued one by one on one stream, in topological order\n\n"
        "rondo-streams: on two streams, with an event where an edge crosses; only shapes with branches\n\n"
        "rondo-loop: no runtime; one thread calls the kernel functions in a loop\n\n"
        "bench/measure.h lists the settings in the environment.",
    .program = run,
};
