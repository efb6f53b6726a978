/* SPDX-License-Identifier: MIT
 * rondo bench launch (GX-6, GX-10): the cost to launch empty kernels one by one on streams and as one graph, in the
 * shapes of the table of Yao and Li (2021), together with that table and the physical limit. On a CUDA device, the bare
 * driver without Rondo is measured, too. The methods are measured in alternation, so that a slow moment of the machine
 * affects all of them.
 */
#include <inttypes.h>
#include <string.h>

#include "bench/bench_kernels.h"
#include "bench/bench_target.h"
#include "bench/launch_threads.h"
#include "bench/tool_benchmarks.h"
#include "common/tool.h"

/* Returns from the calling function unless the call succeeded. */
#define CALL(call)                              \
  do {                                          \
    if ((call) != TOOL_OK) return TOOL_FAILURE; \
  } while (0)

/* Shapes ---------------------------------------------------------------------------------------------------------- */

/* Empty kernels and their order. The same calls enqueue them on a target's streams or, during a capture of the first
 * stream, add them to a graph. */
typedef struct launch_shape {
  const char *name;
  uint32_t nodes, streams;
  int (*enqueue)(bench_target *target, uint32_t nodes);
} launch_shape;

/* The three shapes of 32 kernels from the paper cited at `reference_row`, then lines of 320, 3200 and 10,000. */
enum { SHAPE_LINE, SHAPE_BRANCHES, SHAPE_FORK, SHAPE_LINE_320, SHAPE_LINE_3200, SHAPE_LINE_10000, LAUNCH_SHAPES };

static int enqueue_line(bench_target *target, uint32_t nodes) {
  for (uint32_t i = 0; i < nodes; i++) CALL(target->calls->enqueue(target, 0));
  return TOOL_OK;
}

static int enqueue_branches(bench_target *target, uint32_t nodes) {
  CALL(target->calls->fork(target));
  CALL(target->calls->follow(target, 1));
  for (uint32_t i = 0; i < nodes; i++) CALL(target->calls->enqueue(target, i % 2));
  return target->calls->join(target, 1);
}

/* One kernel, then `nodes` - 2 parallel kernels, then one kernel. */
static int enqueue_fork(bench_target *target, uint32_t nodes) {
  CALL(target->calls->enqueue(target, 0));
  CALL(target->calls->fork(target));
  CALL(target->calls->enqueue(target, 0));
  for (size_t stream = 1; stream < nodes - 2; stream++) {
    CALL(target->calls->follow(target, stream));
    CALL(target->calls->enqueue(target, stream));
    CALL(target->calls->join(target, stream));
  }
  return target->calls->enqueue(target, 0);
}

static const launch_shape launch_shapes[LAUNCH_SHAPES] = {
    [SHAPE_LINE] = {"line of 32", 32, 1, enqueue_line},
    [SHAPE_BRANCHES] = {"two branches of 16", 32, 2, enqueue_branches},
    [SHAPE_FORK] = {"fork 30 and join", 32, TARGET_STREAMS, enqueue_fork},
    [SHAPE_LINE_320] = {"line of 320", 320, 1, enqueue_line},
    [SHAPE_LINE_3200] = {"line of 3200", 3200, 1, enqueue_line},
    [SHAPE_LINE_10000] = {"line of 10,000", 10000, 1, enqueue_line},
};

/* Captures the shape and instantiates the graph for launches on the first stream. */
static int launch_record(bench_target *target, const launch_shape *shape, void **out_exec) {
  target_graph graph = {0};
  *out_exec = NULL;
  CALL(target->calls->begin_capture(target));
  int result = shape->enqueue(target, shape->nodes);
  const int ended = target->calls->end_capture(target, &graph);
  if (result == TOOL_OK) result = ended;
  if (result == TOOL_OK) result = target->calls->instantiate(target, &graph, true, out_exec);
  const int discarded = target->calls->discard_graph(target, &graph);
  return result == TOOL_OK ? discarded : result;
}

/* Samples --------------------------------------------------------------------------------------------------------- */

static int enqueue(bench_target *target, const launch_shape *shape, void *exec) {
  return exec ? target->calls->launch(target, exec, 0) : shape->enqueue(target, shape->nodes);
}

static int measure_device(bench_target *target, const launch_shape *shape, void *exec, cost *to) {
  double us = 0;
  CALL(target->calls->mark(target, false));
  CALL(enqueue(target, shape, exec));
  CALL(target->calls->mark(target, true));
  CALL(target->calls->wait(target, 0));
  CALL(target->calls->elapsed(target, &us));
  samples_add(&to->samples[COST_DEVICE], us);
  return TOOL_OK;
}

/* Takes `repeats` samples and waits after each. Launches exec; if it is NULL, enqueues the shape on streams. */
static int launch_measure(bench_target *target, const launch_shape *shape, void *exec, uint32_t repeats, cost *to) {
  for (uint32_t i = 0; i < repeats; i++)
    COST_TIME(to, CALL(enqueue(target, shape, exec)), CALL(target->calls->wait(target, 0)));
  for (uint32_t i = 0; i < repeats; i++) CALL(measure_device(target, shape, exec, to));
  return TOOL_OK;
}

/* Launches exec once and waits. Adds the host time of the call. */
static int launch_measure_call(bench_target *target, void *exec, samples *host) {
  const uint64_t begin = clock_ns();
  CALL(target->calls->launch(target, exec, 0));
  const uint64_t queued = clock_ns();
  samples_add(host, (double)(queued - begin) / 1e3);
  return target->calls->wait(target, 0);
}

/* Launches exec `count` times in a row. Adds the device time of one launch. */
static int launch_measure_row(bench_target *target, void *exec, uint32_t count, samples *device) {
  double us = 0;
  CALL(target->calls->mark(target, false));
  for (uint32_t i = 0; i < count; i++) CALL(target->calls->launch(target, exec, 0));
  CALL(target->calls->mark(target, true));
  CALL(target->calls->wait(target, 0));
  CALL(target->calls->elapsed(target, &us));
  samples_add(device, us / count);
  return TOOL_OK;
}

static void empty(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

typedef struct launch_call {
  rondo_cpu_function function;
  void *const *args;
} launch_call;

/* The physical limit: one thread calls as many functions in a loop. Adds the mean of several loops. */
static void launch_measure_loop(uint32_t nodes, samples *times) {
  enum { CALLS = 10000 };
  static launch_call calls[CALLS];              /* like the nodes of a graph: a function and its arguments */
  rondo_cpu_function volatile function = empty; /* volatile: the compiler must not inline the call */
  for (uint32_t i = 0; i < nodes; i++) calls[i] = (launch_call){.function = function};
  const rondo_blocks blocks = {.first = 0, .last = 1, .grid = {1, 1, 1}};
  /* Fewer calls would take less time than a read of the clock. */
  const uint32_t loops = nodes < 1000 ? 10000 / nodes : 1;
  const uint64_t begin = clock_ns();
  for (uint32_t loop = 0; loop < loops; loop++) {
    for (uint32_t i = 0; i < nodes; i++) calls[i].function(blocks, calls[i].args);
  }
  samples_add(times, (double)(clock_ns() - begin) / 1e3 / loops);
}

/* The benchmark --------------------------------------------------------------------------------------------------- */

#define SAMPLE_CAPACITY 200000

/* The last shape is measured for the launch call only; the others on streams, too. */
#define COMPARED_SHAPES SHAPE_LINE_10000
#define MINIMUM_ROUNDS 3

/* On a CUDA device, launches of Rondo and of the bare driver alternate until the time is over. Then several launches in
 * a row measure the device time, fewer for a very long line. All of it is done in several parts, each with its own
 * execs: the driver launches one of two equal execs some tens of nanoseconds faster than the other. */
#define COMPARED_PARTS 8
#define COMPARED_LAUNCHES 10000
#define FEWEST_LAUNCHES 8
#define ROW_LAUNCHES 100
#define LONG_ROW_LAUNCHES 10
#define ROWS_A_PART 6

static const uint32_t thread_counts[] = {1, 2, 4, 8};
#define THREAD_ROWS (sizeof thread_counts / sizeof thread_counts[0])

/* J. Yao, C. Li: CUDA Graph in TensorFlow, April 2021: graphs of 32 empty kernels on an A100, in the paper's unit. */
typedef struct reference_row {
  const char *pattern;
  double graph_host, graph_device, stream_host, stream_device, host_speedup, device_speedup;
} reference_row;

static const reference_row reference[] = {
    [SHAPE_LINE] = {"straight line", 4.43, 28.12, 65.25, 60.67, 14.7, 2.2},
    [SHAPE_BRANCHES] = {"two branches", 3.17, 15.47, 69.25, 83.46, 21.8, 5.4},
    [SHAPE_FORK] = {"fork and join", 4.28, 21.32, 93.75, 161.79, 21.9, 7.6},
};
#define REFERENCE_ROWS (sizeof reference / sizeof reference[0])

/* The methods to launch a shape. Those of the bare driver exist only on CUDA devices. */
enum { STREAM, GRAPH, BARE_STREAM, BARE_GRAPH, METHODS };

/* Rondo's launches and the bare driver's, in alternation. */
typedef struct compared_launches {
  summary host, bare_host;     /* the launch call only */
  summary device, bare_device; /* one launch of several in a row */
  size_t launches;             /* of each target */
} compared_launches;

typedef struct shape_result {
  summary methods[METHODS][COST_TIMES];
  compared_launches compared; /* CUDA devices only */
  summary loop;
  size_t samples; /* taken of the graph */
} shape_result;

typedef struct launch_bench {
  bench_base base;
  uint64_t launches;
  bench_target *rondo, *bare; /* bare: NULL unless the device is a CUDA device */
  cost methods[METHODS];      /* of the current shape */
  samples loop;
  shape_result shapes[LAUNCH_SHAPES];
  summary threads[THREAD_ROWS];
} launch_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void forget(launch_bench *b) {
  for (size_t i = 0; i < METHODS * COST_TIMES; i++) b->methods[i / COST_TIMES].samples[i % COST_TIMES].count = 0;
  b->loop.count = 0;
}

/* The execs of one shape. */
typedef struct recorded_shape {
  const launch_shape *shape;
  void *exec, *bare_exec; /* bare_exec: NULL without a bare driver */
  bool by_streams;        /* whether it is measured on streams, too */
} recorded_shape;

/* Takes one sample of each method of a target: on streams, then as a graph. */
static int measure_target(bench_target *target, const recorded_shape *r, void *exec, cost methods[2]) {
  const uint32_t repeats = r->shape->nodes < 100 ? 64 : 4;
  if (r->by_streams && launch_measure(target, r->shape, NULL, repeats, &methods[STREAM]) != TOOL_OK)
    return TOOL_FAILURE;
  return launch_measure(target, r->shape, exec, repeats, &methods[GRAPH]);
}

/* Takes one sample of each method of every target. */
static int measure_round(launch_bench *b, const recorded_shape *r) {
  if (measure_target(b->rondo, r, r->exec, &b->methods[STREAM]) != TOOL_OK) return TOOL_FAILURE;
  launch_measure_loop(r->shape->nodes, &b->loop);
  if (!b->bare) return TOOL_OK;
  return measure_target(b->bare, r, r->bare_exec, &b->methods[BARE_STREAM]);
}

static int measure_rounds(launch_bench *b, const recorded_shape *r, double seconds) {
  if (measure_round(b, r) != TOOL_OK) return TOOL_FAILURE; /* a warm-up, which is not counted */
  forget(b);
  const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
  for (size_t round = 0; round < MINIMUM_ROUNDS || clock_ns() < end; round++) {
    if (measure_round(b, r) != TOOL_OK) return TOOL_FAILURE;
    if (samples_are_full(&b->methods[GRAPH].samples[COST_HOST])) break;
  }
  return TOOL_OK;
}

/* Each target launches first in every other round. */
static int measure_in_alternation(launch_bench *b, const recorded_shape *r, size_t most, uint64_t end) {
  const size_t fewest = b->launches > 0 && r->by_streams ? most : FEWEST_LAUNCHES;
  samples *rondo = &b->methods[GRAPH].samples[COST_HOST], *bare = &b->methods[BARE_GRAPH].samples[COST_HOST];
  for (size_t i = 0; i < most && (i < fewest || clock_ns() < end); i++) {
    const bool is_first = i % 2 == 0;
    if (is_first && launch_measure_call(b->rondo, r->exec, rondo) != TOOL_OK) return TOOL_FAILURE;
    if (launch_measure_call(b->bare, r->bare_exec, bare) != TOOL_OK) return TOOL_FAILURE;
    if (!is_first && launch_measure_call(b->rondo, r->exec, rondo) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static int measure_rows(launch_bench *b, const recorded_shape *r, uint64_t end) {
  const uint32_t launches = r->shape->nodes < 10000 ? ROW_LAUNCHES : LONG_ROW_LAUNCHES;
  samples *rondo = &b->methods[GRAPH].samples[COST_DEVICE], *bare = &b->methods[BARE_GRAPH].samples[COST_DEVICE];
  for (size_t i = 0; i < ROWS_A_PART && (i == 0 || clock_ns() < end); i++) {
    if (launch_measure_row(b->rondo, r->exec, launches, rondo) != TOOL_OK) return TOOL_FAILURE;
    if (launch_measure_row(b->bare, r->bare_exec, launches, bare) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static void discard(launch_bench *b, recorded_shape *r) {
  if (r->exec) (void)b->rondo->calls->discard_exec(b->rondo, r->exec);
  if (r->bare_exec) (void)b->bare->calls->discard_exec(b->bare, r->bare_exec);
  r->exec = r->bare_exec = NULL;
}

/* Records the shape for each target. */
static int record(launch_bench *b, recorded_shape *r, bool bare_first) {
  int result = bare_first && b->bare ? launch_record(b->bare, r->shape, &r->bare_exec) : TOOL_OK;
  if (result == TOOL_OK) result = launch_record(b->rondo, r->shape, &r->exec);
  if (result == TOOL_OK && !bare_first && b->bare) result = launch_record(b->bare, r->shape, &r->bare_exec);
  if (result != TOOL_OK) discard(b, r);
  return result;
}

/* A warm-up launch, which is not counted. */
static int launch_once(bench_target *target, void *exec) {
  return target->calls->launch(target, exec, 0) == TOOL_OK ? target->calls->wait(target, 0) : TOOL_FAILURE;
}

static int measure_part(launch_bench *b, size_t index, size_t part, double seconds) {
  const size_t all = b->launches > 0 ? b->launches : COMPARED_LAUNCHES;
  const size_t most = all / COMPARED_PARTS + (part < all % COMPARED_PARTS);
  recorded_shape r = {.shape = &launch_shapes[index], .by_streams = index < COMPARED_SHAPES};
  if (record(b, &r, part % 2 == 1) != TOOL_OK) return TOOL_FAILURE;
  int result = launch_once(b->rondo, r.exec);
  if (result == TOOL_OK) result = launch_once(b->bare, r.bare_exec);
  if (result == TOOL_OK) result = measure_in_alternation(b, &r, most, clock_ns() + (uint64_t)(seconds * 5e8));
  if (result == TOOL_OK) result = measure_rows(b, &r, clock_ns() + (uint64_t)(seconds * 5e8));
  discard(b, &r);
  return result;
}

/* Reuses the samples' memory: measure_rounds has summarized them. */
static int measure_compared(launch_bench *b, size_t index, double seconds, compared_launches *out) {
  forget(b);
  for (size_t part = 0; part < COMPARED_PARTS; part++)
    if (measure_part(b, index, part, seconds / COMPARED_PARTS) != TOOL_OK) return TOOL_FAILURE;
  costs_summarize(b->methods, METHODS);
  const summary *rondo = b->methods[GRAPH].result, *bare = b->methods[BARE_GRAPH].result;
  *out = (compared_launches){.launches = b->methods[GRAPH].samples[COST_HOST].count,
                             .host = rondo[COST_HOST],
                             .bare_host = bare[COST_HOST],
                             .device = rondo[COST_DEVICE],
                             .bare_device = bare[COST_DEVICE]};
  return TOOL_OK;
}

static int measure_shape(launch_bench *b, size_t index, double seconds) {
  recorded_shape r = {.shape = &launch_shapes[index], .by_streams = index < COMPARED_SHAPES};
  shape_result *out = &b->shapes[index];
  if (record(b, &r, false) != TOOL_OK) return TOOL_FAILURE;
  const int result = measure_rounds(b, &r, seconds);
  discard(b, &r);
  *out = (shape_result){.samples = b->methods[GRAPH].samples[COST_HOST].count, .loop = samples_summarize(&b->loop)};
  costs_summarize(b->methods, METHODS);
  for (size_t i = 0; i < METHODS; i++) memcpy(out->methods[i], b->methods[i].result, sizeof out->methods[i]);
  return result == TOOL_OK && b->bare ? measure_compared(b, index, seconds, &out->compared) : result;
}

static int measure(void *bench) {
  launch_bench *b = bench;
  const double seconds = b->base.seconds / (LAUNCH_SHAPES + THREAD_ROWS);
  for (size_t i = 0; i < LAUNCH_SHAPES; i++) {
    tool_show_progress("%s", launch_shapes[i].name);
    if (measure_shape(b, i, seconds) != TOOL_OK) return TOOL_FAILURE;
  }
  for (size_t i = 0; i < THREAD_ROWS; i++) {
    tool_show_progress("%" PRIu32 " threads", thread_counts[i]);
    if (launch_from_threads(b->base.device, thread_counts[i], seconds, &b->threads[i]) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static void write_method(const summary method[COST_TIMES], const char *name, json *out) {
  json_begin_object(out, name);
  json_summary(out, "host_us", method[COST_HOST]);
  json_summary(out, "device_us", method[COST_DEVICE]);
  json_summary(out, "total_us", method[COST_TOTAL]);
  json_end(out);
}

/* Time of Rondo's graph compared with streams, either Rondo's or the bare driver's. */
static double speedup(const shape_result *result, int streams, int time) {
  return bench_ratio(result->methods[streams][time].median, result->methods[GRAPH][time].median);
}

/* The overhead of Rondo's launch over the bare driver's. */
static void write_compared(const compared_launches *compared, json *out) {
  json_begin_object(out, "beside_bare");
  json_integer(out, "launches", compared->launches);
  json_summary(out, "host_us", compared->host);
  json_summary(out, "bare_host_us", compared->bare_host);
  json_real(out, "host_ratio", bench_ratio(compared->host.median, compared->bare_host.median));
  json_real(out, "host_added_ns", 1e3 * (compared->host.median - compared->bare_host.median));
  json_summary(out, "device_us", compared->device);
  json_summary(out, "bare_device_us", compared->bare_device);
  json_real(out, "device_ratio", bench_ratio(compared->device.median, compared->bare_device.median));
  json_end(out);
}

/* Speedups here compare Rondo's graph with the bare driver's streams. */
static void write_bare(const shape_result *result, bool by_streams, json *out) {
  json_begin_object(out, "bare");
  if (by_streams) write_method(result->methods[BARE_STREAM], "stream", out);
  write_method(result->methods[BARE_GRAPH], "graph", out);
  if (by_streams) {
    json_begin_object(out, "speedup");
    json_real(out, "host", speedup(result, BARE_STREAM, COST_HOST));
    json_real(out, "device", speedup(result, BARE_STREAM, COST_DEVICE));
    json_end(out);
  }
  write_compared(&result->compared, out);
  json_end(out);
}

static void write_shape(const launch_shape *shape, const shape_result *result, bool has_bare, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "name", shape->name);
  json_integer(out, "nodes", shape->nodes);
  json_integer(out, "streams", shape->streams);
  json_integer(out, "samples", result->samples);
  write_method(result->methods[STREAM], "stream", out);
  write_method(result->methods[GRAPH], "graph", out);
  json_summary(out, "loop_us", result->loop);
  json_begin_object(out, "speedup");
  json_real(out, "host", speedup(result, STREAM, COST_HOST));
  json_real(out, "device", speedup(result, STREAM, COST_DEVICE));
  json_real(out, "total", speedup(result, STREAM, COST_TOTAL));
  json_end(out);
  if (has_bare) write_bare(result, true, out);
  json_end(out);
}

static void write_reference(const reference_row *row, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "pattern", row->pattern);
  json_real(out, "graph_host", row->graph_host);
  json_real(out, "graph_device", row->graph_device);
  json_real(out, "stream_host", row->stream_host);
  json_real(out, "stream_device", row->stream_device);
  json_real(out, "host_speedup", row->host_speedup);
  json_real(out, "device_speedup", row->device_speedup);
  json_end(out);
}

static void write_call(uint32_t count, const char *name, summary host, json *out) {
  json_begin_object(out, NULL);
  json_integer(out, name, count);
  json_summary(out, "host_us", host);
  json_end(out);
}

static void write_launch_call(const launch_bench *b, size_t index, json *out) {
  json_begin_object(out, NULL);
  json_integer(out, "nodes", launch_shapes[index].nodes);
  json_summary(out, "host_us", b->shapes[index].methods[GRAPH][COST_HOST]);
  if (b->bare) write_bare(&b->shapes[index], false, out);
  json_end(out);
}

static void report(void *bench, json *out) {
  const launch_bench *b = bench;
  json_integer(out, "workers", b->base.info.workers);
  json_begin_array(out, "shapes");
  for (size_t i = 0; i < COMPARED_SHAPES; i++) write_shape(&launch_shapes[i], &b->shapes[i], b->bare, out);
  json_end(out);
  json_begin_array(out, "reference_a100");
  for (size_t i = 0; i < REFERENCE_ROWS; i++) write_reference(&reference[i], out);
  json_end(out);
  json_begin_array(out, "launch_call");
  write_launch_call(b, SHAPE_LINE, out);
  write_launch_call(b, SHAPE_LINE_10000, out);
  json_end(out);
  json_begin_array(out, "threads");
  for (size_t i = 0; i < THREAD_ROWS; i++) write_call(thread_counts[i], "threads", b->threads[i], out);
  json_end(out);
}

/* Prepare and finish ---------------------------------------------------------------------------------------------- */

static int prepare(void *bench) {
  launch_bench *b = bench;
  if (rondo_target_create(b->base.device, &bench_empty, TARGET_STREAMS, &b->rondo) != TOOL_OK) return TOOL_FAILURE;
  if (bare_target_create(b->base.device_name, &bench_empty, TARGET_STREAMS, &b->bare) != TOOL_OK) return TOOL_FAILURE;
  bool has_memory = samples_create(&b->loop, SAMPLE_CAPACITY);
  for (size_t i = 0; i < METHODS; i++)
    has_memory = has_memory && samples_create(&b->methods[i].samples[COST_DEVICE], SAMPLE_CAPACITY);
  return has_memory ? costs_create(b->methods, METHODS, SAMPLE_CAPACITY) : tool_fail_memory("the times");
}

static int finish(void *bench) {
  launch_bench *b = bench;
  costs_destroy(b->methods, METHODS);
  samples_destroy(&b->loop);
  const int result = bench_target_destroy(b->bare);
  return bench_target_destroy(b->rondo) == TOOL_OK ? result : TOOL_FAILURE;
}

static const launch_bench defaults = {.base = {.device_name = "cpu", .seconds = 5}};

static const option_row rows[] = {
    BENCH_WORKERS(launch_bench),
    {"launches", "N", OPTION_COUNT, offsetof(launch_bench, launches), 0, SAMPLE_CAPACITY,
     "launches of each shape to compare with the bare driver's; 0: as time allows"},
};

const benchmark bench_launch = {
    .name = "launch",
    .summary = "empty kernels in five shapes: by streams, as a graph, as a loop",
    .description =
        "Measures what it costs to launch empty kernels: 32 in a straight line, in two branches, and as a fork and\n"
        "join (1 + 30 + 1), and straight lines of 320 and 3200. Each is enqueued eagerly (on two streams\n"
        "for the branches, on thirty for the fork) and launched as one graph captured from the same calls.\n"
        "The results include one thread that calls the same functions in a loop, which is the limit, and figures\n"
        "published for an A100 (J. Yao, C. Li: CUDA Graph in TensorFlow, April 2021). Then the launch call alone\n"
        "is measured, for 32 and for 10,000 nodes, and from 1, 2, 4 and 8 threads at once. On a CUDA device the\n"
        "same calls are measured in the bare driver, without Rondo.\n\n"
        "Times are microseconds: medians, with minimum and maximum. host: the calls that enqueue the work;\n"
        "device: between events before and after it; total: until the stream is synchronized. Speedups are the\n"
        "time by streams divided by the time of the graph.",
    .seconds_help = "about how long to measure; twice on CUDA",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .prepare = prepare,
    .measure = measure,
    .report = report,
    .finish = finish,
};
