/* SPDX-License-Identifier: MIT
 * rondo bench launch (GX-6, GX-10): what it costs to launch empty kernels node by node through streams and as one
 * graph, in the shapes of the table of Yao and Li (2021), with that table and the physical limit beside it. Ways are
 * measured in turns, so that a slow moment of the machine meets all of them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "json.h"
#include "launch_rig.h"
#include "launch_threads.h"
#include "options.h"
#include "tool.h"

typedef struct launch_settings {
  const char *device;
  double seconds;
  uint64_t workers;
  bool json;
} launch_settings;

static const launch_settings defaults = {.device = "cpu", .seconds = 5};

#define OFFSET(member) offsetof(launch_settings, member)

static const option_row rows[] = {
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device to measure"},
    {"seconds", "X", OPTION_REAL, OFFSET(seconds), 0.01, 3600, "time to measure for, about"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0 chooses"},
    {"json", NULL, OPTION_FLAG, OFFSET(json), 0, 0, "print one JSON object"},
};

static const option_table table = {
    .command = "rondo bench launch",
    .description =
        "Measures what it costs to launch empty kernels: 32 in a straight line, in two branches, and as a fork and\n"
        "join (1 + 30 + 1), and straight lines of 320 and 3200, handed to streams node by node (two streams for the\n"
        "branches, thirty for the fork) and as one graph captured from the same calls; beside them one thread that\n"
        "calls the same functions in a loop, which is the limit, and the table for an A100 of the document that\n"
        "Rondo goes back to (J. Yao, C. Li: CUDA Graph in TensorFlow, April 2021).\n"
        "Then the launch call alone for 32 and for 10,000 nodes, and from 1, 2, 4 and 8 threads at once.\n\n"
        "Times are microseconds, medians with minimum and maximum. host: the calls that hand the work over; device:\n"
        "between events before and behind it; total: until the stream is synchronized.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

/* Shapes measured by streams too; the last is for the launch call only. */
#define COMPARED_SHAPES SHAPE_LINE_10000
#define SAMPLE_CAPACITY 200000
#define MINIMUM_ROUNDS 3

static const uint32_t thread_counts[] = {1, 2, 4, 8};
#define THREAD_ROWS (sizeof thread_counts / sizeof thread_counts[0])

/* J. Yao, C. Li: CUDA Graph in TensorFlow, April 2021: on an A100, graphs of 32 empty kernels, in its own unit. */
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

typedef struct way_summary {
  summary host, device, total;
} way_summary;

typedef struct shape_result {
  way_summary stream, graph;
  summary loop;
  size_t samples; /* of the graph */
} shape_result;

typedef struct launch_bench {
  launch_settings settings;
  rondo_device *device;
  rondo_device_info info;
  launch_rig rig;
  launch_times stream, graph; /* used for one shape after the other */
  samples loop;
  shape_result shapes[LAUNCH_SHAPES];
  summary threads[THREAD_ROWS];
} launch_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static way_summary summarize(launch_times *times) {
  return (way_summary){samples_summarize(&times->host), samples_summarize(&times->device),
                       samples_summarize(&times->total)};
}

static void forget(launch_bench *b) {
  launch_times *const ways[] = {&b->stream, &b->graph};
  for (size_t i = 0; i < 2; i++) ways[i]->host.count = ways[i]->device.count = ways[i]->total.count = 0;
  b->loop.count = 0;
}

/* One turn of each way. */
static rondo_status measure_round(launch_bench *b, const launch_shape *shape, rondo_exec *exec, bool by_streams) {
  const uint32_t repeats = shape->nodes < 100 ? 64 : 4;
  if (by_streams) TOOL_TRY(launch_rig_measure(&b->rig, shape, NULL, repeats, &b->stream));
  TOOL_TRY(launch_rig_measure(&b->rig, shape, exec, repeats, &b->graph));
  launch_measure_loop(shape->nodes, &b->loop);
  return RONDO_OK;
}

static rondo_status measure_rounds(launch_bench *b, const launch_shape *shape, rondo_exec *exec, double seconds,
                                   bool by_streams) {
  TOOL_TRY(measure_round(b, shape, exec, by_streams)); /* wakes everything up and is not counted */
  forget(b);
  const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
  for (size_t round = 0; round < MINIMUM_ROUNDS || clock_ns() < end; round++) {
    TOOL_TRY(measure_round(b, shape, exec, by_streams));
    if (samples_are_full(&b->graph.host)) break;
  }
  return RONDO_OK;
}

static rondo_status measure_shape(launch_bench *b, size_t index, double seconds) {
  const launch_shape *shape = &launch_shapes[index];
  rondo_exec *exec = NULL;
  TOOL_TRY(launch_rig_record(&b->rig, shape, &exec));
  const rondo_status status = measure_rounds(b, shape, exec, seconds, index < COMPARED_SHAPES);
  rondo_exec_destroy(exec);
  b->shapes[index] = (shape_result){.stream = summarize(&b->stream),
                                    .graph = summarize(&b->graph),
                                    .loop = samples_summarize(&b->loop),
                                    .samples = b->graph.host.count};
  return status;
}

static int measure(launch_bench *b) {
  const double seconds = b->settings.seconds / (LAUNCH_SHAPES + THREAD_ROWS);
  for (size_t i = 0; i < LAUNCH_SHAPES; i++) {
    tool_show_progress("%s", launch_shapes[i].name);
    if (measure_shape(b, i, seconds)) return tool_fail_status("%s", launch_shapes[i].name);
  }
  for (size_t i = 0; i < THREAD_ROWS; i++) {
    tool_show_progress("%" PRIu32 " threads", thread_counts[i]);
    if (launch_from_threads(b->device, thread_counts[i], seconds, &b->threads[i]) != TOOL_OK) return TOOL_FAILURE;
  }
  tool_clear_progress();
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double ratio(double slow, double fast) { return fast > 0 ? slow / fast : 0; }

static void write_way(const way_summary *way, const char *name, json *out) {
  json_begin_object(out, name);
  json_summary(out, "host_us", way->host);
  json_summary(out, "device_us", way->device);
  json_summary(out, "total_us", way->total);
  json_end(out);
}

static void write_shape(const launch_shape *shape, const shape_result *result, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "name", shape->name);
  json_integer(out, "nodes", shape->nodes);
  json_integer(out, "streams", shape->streams);
  json_integer(out, "samples", result->samples);
  write_way(&result->stream, "stream", out);
  write_way(&result->graph, "graph", out);
  json_summary(out, "loop_us", result->loop);
  json_begin_object(out, "speedup");
  json_real(out, "host", ratio(result->stream.host.median, result->graph.host.median));
  json_real(out, "device", ratio(result->stream.device.median, result->graph.device.median));
  json_real(out, "total", ratio(result->stream.total.median, result->graph.total.median));
  json_end(out);
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

static int show_json(const launch_bench *b) {
  const shape_result *const calls[] = {&b->shapes[SHAPE_LINE], &b->shapes[SHAPE_LINE_10000]};
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_integer(&out, "workers", b->info.workers);
  json_begin_array(&out, "shapes");
  for (size_t i = 0; i < COMPARED_SHAPES; i++) write_shape(&launch_shapes[i], &b->shapes[i], &out);
  json_end(&out);
  json_begin_array(&out, "reference_a100");
  for (size_t i = 0; i < REFERENCE_ROWS; i++) write_reference(&reference[i], &out);
  json_end(&out);
  json_begin_array(&out, "launch_call");
  for (size_t i = 0; i < 2; i++) write_call(i ? 10000 : 32, "nodes", calls[i]->graph.host, &out);
  json_end(&out);
  json_begin_array(&out, "threads");
  for (size_t i = 0; i < THREAD_ROWS; i++) write_call(thread_counts[i], "threads", b->threads[i], &out);
  json_end(&out);
  return json_print(&out);
}

static void print_cell(summary value) { printf(" %9.2f (%8.2f to %9.2f)", value.median, value.minimum, value.maximum); }

static void print_way(const char *name, const way_summary *way) {
  printf("  %-9s", name);
  print_cell(way->host);
  print_cell(way->device);
  print_cell(way->total);
  putchar('\n');
}

static void print_shape(const launch_shape *shape, const shape_result *result) {
  printf("%s, by %" PRIu32 " stream%s\n", shape->name, shape->streams, shape->streams == 1 ? "" : "s");
  print_way("streams", &result->stream);
  print_way("graph", &result->graph);
  printf("  %-9s %76s", "loop", "");
  print_cell(result->loop);
  printf("\n  %-9s %9.1f %33.1f %33.1f\n", "speedup", ratio(result->stream.host.median, result->graph.host.median),
         ratio(result->stream.device.median, result->graph.device.median),
         ratio(result->stream.total.median, result->graph.total.median));
}

static void print_reference(void) {
  puts("\nThe table of \"CUDA Graph in TensorFlow\": 32 empty kernels, on an A100, in the document's own unit");
  printf("  %-15s %11s %13s %12s %14s %13s %8s\n", "", "graph host", "graph device", "stream host", "stream device",
         "host speedup", "device");
  for (size_t i = 0; i < REFERENCE_ROWS; i++) {
    const reference_row *row = &reference[i];
    printf("  %-15s %11.2f %13.2f %12.2f %14.2f %13.1f %8.1f\n", row->pattern, row->graph_host, row->graph_device,
           row->stream_host, row->stream_device, row->host_speedup, row->device_speedup);
  }
}

static void print_calls(const launch_bench *b) {
  puts("\nThe launch call alone");
  printf("  32 nodes    ");
  print_cell(b->shapes[SHAPE_LINE].graph.host);
  printf("\n  10,000 nodes");
  print_cell(b->shapes[SHAPE_LINE_10000].graph.host);
  puts("\n\nThe launch call from several threads at once, each with a graph of 32 nodes and a stream of its own");
  for (size_t i = 0; i < THREAD_ROWS; i++) {
    printf("  %" PRIu32 " thread%s   ", thread_counts[i], thread_counts[i] == 1 ? " " : "s");
    print_cell(b->threads[i]);
    putchar('\n');
  }
}

static int show_text(const launch_bench *b) {
  printf("device  %s: %s, %" PRIu32 " worker%s\n", b->settings.device, b->info.description, b->info.workers,
         b->info.workers == 1 ? "" : "s");
  puts("Empty kernels; microseconds, median (minimum to maximum); speedup: streams over graph\n");
  printf("%12s%-33s %-33s %s\n", "", "host hands over", "device", "total until synchronized");
  for (size_t i = 0; i < COMPARED_SHAPES; i++) print_shape(&launch_shapes[i], &b->shapes[i]);
  print_reference();
  print_calls(b);
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

static int prepare(launch_bench *b) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)b->settings.workers};
  if (rondo_device_open(b->settings.device, &options, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  if (launch_rig_create(b->device, &b->rig)) return tool_fail_status("the benchmark's kernels and streams");
  if (launch_times_create(&b->stream, SAMPLE_CAPACITY) && launch_times_create(&b->graph, SAMPLE_CAPACITY) &&
      samples_create(&b->loop, SAMPLE_CAPACITY)) {
    return TOOL_OK;
  }
  return tool_fail("there is no memory for the times");
}

static int take_down(launch_bench *b) {
  int result = TOOL_OK;
  launch_times_destroy(&b->stream);
  launch_times_destroy(&b->graph);
  samples_destroy(&b->loop);
  if (launch_rig_destroy(&b->rig)) result = tool_fail_status("the benchmark's streams");
  if (rondo_device_close(b->device)) result = tool_fail_status("the device");
  return result;
}

int bench_launch(int argc, char **argv) {
  launch_bench b = {.settings = defaults};
  const option_result parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed == OPTIONS_DONE ? TOOL_OK : TOOL_USAGE;
  int result = prepare(&b);
  if (result == TOOL_OK) result = measure(&b);
  if (result == TOOL_OK) result = b.settings.json ? show_json(&b) : show_text(&b);
  const int taken_down = take_down(&b);
  return result == TOOL_OK ? taken_down : result;
}
