/* SPDX-License-Identifier: MIT
 * rondo bench memory (GM-9, GM-13): how many bytes the memory of a graph holds, and what instantiating and launching it
 * cost, placed by Rondo in its three ways and, on a CUDA device, by the driver's own memory nodes.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/bare_driver.h"
#include "bench/bench_steps.h"
#include "bench/memory_work.h"
#include "commands/commands.h"
#include "common/buffer_csv.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct memory_settings {
  const char *device;
  bool json;
} memory_settings;

static const memory_settings defaults = {.device = "cpu"};

static const option_row rows[] = {
    OPTION_ROW_DEVICE(memory_settings),
    OPTION_ROW_JSON(memory_settings),
};

static const option_table table = {
    .command = "rondo bench memory",
    .operand = "FILE",
    .reads_operand = true,
    .operand_help = "lines of id,lower,upper,size below a line that names them; '-' is standard input",
    .description =
        "Makes a graph of allocs and frees in the order of the buffers' lifetimes, each written by a kernel.\n"
        "Measures the bytes that the graph holds, and what it costs the host to instantiate it, to launch it for\n"
        "the first time, again, and on two streams in turn. The ways are: online (addresses are given as nodes are\n"
        "made), profiled (recorded again with the profile of the first graph), relocated (placed when\n"
        "instantiated) and, on a CUDA device, driver: the same captured without Rondo, as the driver's own memory\n"
        "nodes.\n\n"
        "The bound is the most bytes that live at once. Times are microseconds, medians; remaps counts how often a\n"
        "round's later launches mapped memory again.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

enum { DRIVER = MEMORY_RELOCATED + 1, WAYS };
static const char *const way_names[WAYS] = {
    [MEMORY_ONLINE] = "online", [MEMORY_PROFILED] = "profiled", [MEMORY_RELOCATED] = "relocated", [DRIVER] = "driver"};

typedef struct way_result {
  bool is_measured;
  uint64_t bytes;
  summary instantiate, first, again, alternating;
  double profile_us;
  uint64_t remaps, moves;
} way_result;

typedef struct memory_bench {
  memory_settings settings;
  const char *path;
  rondo_device *device;
  rondo_device_info info;
  buffer_list list;
  memory_work work;
  way_result ways[WAYS];
} memory_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int measure_way(memory_bench *b, int way) {
  memory_times times;
  tool_show_progress("%s", way_names[way]);
  int result = memory_times_create(&times);
  if (result == TOOL_OK)
    result = way == DRIVER ? memory_measure_bare(b->settings.device, &b->work, &times)
                           : memory_measure_rondo(b->device, &b->work, (memory_placing)way, &times);
  b->ways[way] = (way_result){.is_measured = true,
                              .bytes = times.bytes,
                              .instantiate = samples_summarize(&times.instantiate),
                              .first = samples_summarize(&times.first),
                              .again = samples_summarize(&times.again),
                              .alternating = samples_summarize(&times.alternating),
                              .profile_us = times.profile_us,
                              .remaps = times.remaps,
                              .moves = times.moves};
  memory_times_destroy(&times);
  return result;
}

static int measure(void *bench) {
  memory_bench *b = bench;
  const int count = bare_is_cuda(b->settings.device) ? WAYS : DRIVER;
  int result = TOOL_OK;
  for (int way = 0; way < count && result == TOOL_OK; way++) result = measure_way(b, way);
  tool_clear_progress();
  return result;
}

/* Results --------------------------------------------------------------------------------------------------------- */

/* Rounded up to a page of the device: nothing less can be held. */
static uint64_t page_bound(const memory_bench *b) {
  return (b->work.bound + b->info.page_bytes - 1) / b->info.page_bytes * b->info.page_bytes;
}

static double ratio_of(const memory_bench *b, const way_result *way) {
  return page_bound(b) > 0 ? (double)way->bytes / (double)page_bound(b) : 0;
}

static void write_way(const memory_bench *b, int way, json *out) {
  const way_result *result = &b->ways[way];
  json_begin_object(out, NULL);
  json_text(out, "way", way_names[way]);
  json_integer(out, "bytes", result->bytes);
  json_real(out, "ratio", ratio_of(b, result));
  json_summary(out, "instantiate_us", result->instantiate);
  json_summary(out, "first_us", result->first);
  json_summary(out, "again_us", result->again);
  json_summary(out, "alternating_us", result->alternating);
  if (way == MEMORY_PROFILED) json_real(out, "profile_us", result->profile_us);
  if (way != DRIVER) json_integer(out, "remaps", result->remaps);
  if (way != DRIVER) json_integer(out, "alternating_remaps", result->moves);
  json_end(out);
}

static int show_json(const void *bench) {
  const memory_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_text(&out, "file", b->path);
  json_integer(&out, "buffers", b->list.count);
  json_integer(&out, "bound", b->work.bound);
  json_integer(&out, "page_bound", page_bound(b));
  json_begin_array(&out, "ways");
  for (int way = 0; way < WAYS; way++) {
    if (b->ways[way].is_measured) write_way(b, way, &out);
  }
  json_end(&out);
  return json_print(&out);
}

static int show_text(const void *bench) {
  const memory_bench *b = bench;
  tool_print_device("device   ", b->settings.device, &b->info);
  printf("buffers  %zu of %s\n", b->list.count, file_display_name(b->path));
  printf("bound    %" PRIu64 " bytes live at once; %" PRIu64 " in whole pages\n\n", b->work.bound, page_bound(b));
  printf("%-10s %14s %8s %14s %14s %12s %12s %8s\n", "", "bytes held", "ratio", "instantiate us", "first us",
         "again us", "in turn us", "remaps");
  for (int way = 0; way < WAYS; way++) {
    const way_result *result = &b->ways[way];
    if (!result->is_measured) continue;
    printf("%-10s %14" PRIu64 " %8.4f %14.1f %14.1f %12.2f %12.2f", way_names[way], result->bytes, ratio_of(b, result),
           result->instantiate.median, result->first.median, result->again.median, result->alternating.median);
    printf(way == DRIVER ? "\n" : " %8" PRIu64 "\n", result->remaps + result->moves);
  }
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

static int prepare(void *bench) {
  memory_bench *b = bench;
  if (buffer_list_read(b->path, &b->list) != TOOL_OK) return TOOL_FAILURE;
  if (rondo_device_open(b->settings.device, NULL, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  return memory_work_create(file_display_name(b->path), &b->list, &b->work);
}

static int take_down(void *bench) {
  memory_bench *b = bench;
  memory_work_destroy(&b->work);
  buffer_list_release(&b->list);
  return rondo_device_close(b->device) ? tool_fail_status("the device") : TOOL_OK;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_memory(int argc, char **argv) {
  memory_bench b = {.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, &b.path);
  if (parsed != OPTIONS_RUN) return parsed;
  return bench_steps_run(&steps, &b, b.settings.json);
}
