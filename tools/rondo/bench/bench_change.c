/* SPDX-License-Identifier: MIT
 * rondo bench change (GX-5): what it costs the host to make an exec, to update it by a whole graph, and to patch one
 * node of it and launch; on a CUDA device also by the driver without Rondo. Both are measured in turns.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/bench_steps.h"
#include "bench/change_target.h"
#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct change_settings {
  const char *device;
  uint64_t nodes;
  double seconds;
  bool json;
} change_settings;

static const change_settings defaults = {.device = "cpu", .nodes = 1000, .seconds = 3};

#define OFFSET(member) offsetof(change_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(change_settings),
    {"nodes", "N", OPTION_COUNT, OFFSET(nodes), 1, 100000, "kernels of a graph"},
    OPTION_ROW_SECONDS(change_settings, "about how long to measure"),
    OPTION_ROW_JSON(change_settings),
};

static const option_table table = {
    .command = "rondo bench change",
    .description =
        "Measures, for graphs that are a line of kernels, what it costs the host to make one node by node and\n"
        "instantiate it, to update an exec from a graph with different arguments in every node, to patch one\n"
        "node's arguments and launch, and only to launch. On a CUDA device the same is measured in the bare\n"
        "driver, in alternation. Times are microseconds: medians, with minimum and maximum.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

#define MOST_ROUNDS 2000
#define FEWEST_ROUNDS 3

enum { INSTANTIATE, UPDATE, PATCH, LAUNCH, QUANTITIES };
static const struct {
  const char *name, *words;
} quantities[QUANTITIES] = {[INSTANTIATE] = {"instantiate", "make and instantiate"},
                            [UPDATE] = {"update", "update all nodes"},
                            [PATCH] = {"patch_and_launch", "patch one and launch"},
                            [LAUNCH] = {"launch", "launch"}};

typedef struct change_bench {
  change_settings settings;
  rondo_device *device;
  rondo_device_info info;
  change_target *rondo, *bare; /* bare: NULL but on a CUDA device */
  change_times rondo_times, bare_times;
  summary results[QUANTITIES], bare_results[QUANTITIES];
} change_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void summarize(change_times *times, summary out[QUANTITIES]) {
  out[INSTANTIATE] = samples_summarize(&times->instantiate);
  out[UPDATE] = samples_summarize(&times->update);
  out[PATCH] = samples_summarize(&times->patch);
  out[LAUNCH] = samples_summarize(&times->launch);
}

static int measure_round(change_bench *b) {
  if (b->rondo->round(b->rondo, &b->rondo_times) != TOOL_OK) return TOOL_FAILURE;
  return b->bare ? b->bare->round(b->bare, &b->bare_times) : TOOL_OK;
}

static int measure(void *bench) {
  change_bench *b = bench;
  const uint64_t end = clock_ns() + (uint64_t)(b->settings.seconds * 1e9);
  for (size_t round = 0; round < MOST_ROUNDS && (round < FEWEST_ROUNDS || clock_ns() < end); round++) {
    if (measure_round(b) != TOOL_OK) return TOOL_FAILURE;
  }
  summarize(&b->rondo_times, b->results);
  summarize(&b->bare_times, b->bare_results);
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double ratio(const change_bench *b, size_t quantity) {
  const double bare = b->bare_results[quantity].median;
  return bare > 0 ? b->results[quantity].median / bare : 0;
}

static int show_json(const void *bench) {
  const change_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_integer(&out, "nodes", b->settings.nodes);
  for (size_t i = 0; i < QUANTITIES; i++) {
    json_begin_object(&out, quantities[i].name);
    json_summary(&out, "host_us", b->results[i]);
    if (b->bare) json_summary(&out, "bare_host_us", b->bare_results[i]);
    if (b->bare) json_real(&out, "ratio", ratio(b, i));
    json_end(&out);
  }
  return json_print(&out);
}

static void print_cell(summary value) {
  printf(" %10.2f (%9.2f to %9.2f)", value.median, value.minimum, value.maximum);
}

static int show_text(const void *bench) {
  const change_bench *b = bench;
  tool_print_device("device  ", b->settings.device, &b->info);
  printf("A line of %" PRIu64 " kernels; microseconds of the host, median (minimum to maximum)\n\n", b->settings.nodes);
  for (size_t i = 0; i < QUANTITIES; i++) {
    printf("%-21s", quantities[i].words);
    print_cell(b->results[i]);
    if (b->bare) {
      printf("   bare");
      print_cell(b->bare_results[i]);
      printf("   ratio %.3f", ratio(b, i));
    }
    putchar('\n');
  }
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

static int destroy_target(change_target *target) { return target ? target->destroy(target) : TOOL_OK; }

static int create_times(change_times *times, size_t rounds) {
  *times = (change_times){0};
  if (samples_create(&times->instantiate, rounds) && samples_create(&times->update, 2 * rounds) &&
      samples_create(&times->patch, CHANGE_PATCHES * rounds) &&
      samples_create(&times->launch, CHANGE_PATCHES * rounds)) {
    return TOOL_OK;
  }
  return tool_fail_memory("the times");
}

static void destroy_times(change_times *times) {
  samples_destroy(&times->instantiate);
  samples_destroy(&times->update);
  samples_destroy(&times->patch);
  samples_destroy(&times->launch);
}

static int prepare(void *bench) {
  change_bench *b = bench;
  const uint32_t nodes = (uint32_t)b->settings.nodes;
  if (rondo_device_open(b->settings.device, NULL, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  if (create_times(&b->rondo_times, MOST_ROUNDS) != TOOL_OK) return TOOL_FAILURE;
  if (create_times(&b->bare_times, MOST_ROUNDS) != TOOL_OK) return TOOL_FAILURE;
  if (change_rondo_create(b->device, nodes, &b->rondo) != TOOL_OK) return TOOL_FAILURE;
  return change_bare_create(b->settings.device, nodes, &b->bare);
}

static int take_down(void *bench) {
  change_bench *b = bench;
  int result = destroy_target(b->bare);
  if (destroy_target(b->rondo) != TOOL_OK) result = TOOL_FAILURE;
  destroy_times(&b->rondo_times);
  destroy_times(&b->bare_times);
  if (rondo_device_close(b->device)) result = tool_fail_status("the device");
  return result;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_change(int argc, char **argv) {
  change_bench b = {.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  return bench_steps_run(&steps, &b, b.settings.json);
}
