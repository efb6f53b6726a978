/* SPDX-License-Identifier: MIT
 * rondo bench patch (TR-6): what it costs to launch a graph with an input elsewhere: by patching its address into the
 * kernels that read it, and by copying it to where it was recorded; on a CUDA device also by the driver without Rondo.
 * All are measured in turns. From how many readers on copying costs less is computed from the costs of patching, which
 * are a line in the number of readers.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/bench_steps.h"
#include "bench/patch_target.h"
#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/timing.h"
#include "common/tool.h"

const uint32_t patch_readers[PATCH_COUNTS] = {1, 2, 4, 8, PATCH_MOST_READERS};
const size_t patch_sizes[PATCH_SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};

typedef struct patch_settings {
  const char *device;
  uint64_t nodes;
  double seconds;
  bool json;
} patch_settings;

static const patch_settings defaults = {.device = "cpu", .nodes = 32, .seconds = 3};

#define OFFSET(member) offsetof(patch_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(patch_settings),
    {"nodes", "N", OPTION_COUNT, OFFSET(nodes), PATCH_MOST_READERS, 100000, "kernels of a graph"},
    OPTION_ROW_SECONDS(patch_settings, "about how long to measure"),
    OPTION_ROW_JSON(patch_settings),
};

static const option_table table = {
    .command = "rondo bench patch",
    .description =
        "Measures what it costs to launch a line of kernels, which read eight inputs, when one of the inputs is at\n"
        "another address: by patching the address into the 1 to 16 kernels that read it, or by copying 4 KiB to 4\n"
        "MiB to where the input was. It also gives the number of readers from which copying is cheaper. On a CUDA\n"
        "device the same is measured in the bare driver, in alternation. Times are microseconds: medians, with\n"
        "minimum and maximum.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

#define MOST_ROUNDS 20000
#define FEWEST_ROUNDS 3
#define WARM_UPS 3

static const char *const time_names[COST_TIMES] = {[COST_HOST] = "host", [COST_TOTAL] = "total"};

typedef struct patch_costs {
  cost launch[PATCH_COUNTS], patched[PATCH_COUNTS], copied[PATCH_SIZES];
} patch_costs;

enum { RONDO, BARE, TARGETS };

typedef struct patch_bench {
  patch_settings settings;
  rondo_device *device;
  rondo_device_info info;
  patch_target *targets[TARGETS]; /* the second is NULL but on a CUDA device */
  patch_costs costs[TARGETS];
} patch_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int wait_and_note(patch_target *target, uint64_t begin, cost *to) {
  const uint64_t queued = clock_ns();
  if (target->wait(target) != TOOL_OK) return TOOL_FAILURE;
  cost_note(to, begin, queued, clock_ns());
  return TOOL_OK;
}

static int time_launch(patch_target *target, size_t which, bool moves, cost *to) {
  const uint64_t begin = clock_ns();
  if (target->launch(target, which, moves) != TOOL_OK) return TOOL_FAILURE;
  return wait_and_note(target, begin, to);
}

static int time_copy(patch_target *target, size_t size, cost *to) {
  const uint64_t begin = clock_ns();
  if (target->copy(target, size) != TOOL_OK) return TOOL_FAILURE;
  return wait_and_note(target, begin, to);
}

/* What was launched before was another graph. */
static int warm_up(patch_target *target, size_t which) {
  for (size_t i = 0; i < WARM_UPS; i++) {
    if (target->launch(target, which, true) != TOOL_OK || target->wait(target) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static int measure_round(patch_target *target, patch_costs *costs) {
  for (size_t i = 0; i < PATCH_COUNTS; i++) {
    if (warm_up(target, i) != TOOL_OK) return TOOL_FAILURE;
    if (time_launch(target, i, false, &costs->launch[i]) != TOOL_OK) return TOOL_FAILURE;
    if (time_launch(target, i, true, &costs->patched[i]) != TOOL_OK) return TOOL_FAILURE;
  }
  for (size_t i = 0; i < PATCH_SIZES; i++) {
    if (warm_up(target, 0) != TOOL_OK) return TOOL_FAILURE;
    if (time_copy(target, i, &costs->copied[i]) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static int measure(void *bench) {
  patch_bench *b = bench;
  const uint64_t end = clock_ns() + (uint64_t)(b->settings.seconds * 1e9);
  for (size_t round = 0; round < MOST_ROUNDS && (round < FEWEST_ROUNDS || clock_ns() < end); round++) {
    for (size_t i = 0; i < TARGETS && b->targets[i]; i++) {
      if (measure_round(b->targets[i], &b->costs[i]) != TOOL_OK) return TOOL_FAILURE;
    }
  }
  for (size_t i = 0; i < TARGETS; i++) {
    costs_summarize(b->costs[i].launch, PATCH_COUNTS);
    costs_summarize(b->costs[i].patched, PATCH_COUNTS);
    costs_summarize(b->costs[i].copied, PATCH_SIZES);
  }
  return TOOL_OK;
}

/* What came of it ------------------------------------------------------------------------------------------------- */

/* What patching adds to a launch. */
static double added_by_patching(const patch_costs *costs, size_t which, size_t time) {
  return costs->patched[which].result[time].median - costs->launch[which].result[time].median;
}

static double added_by_copying(const patch_costs *costs, size_t size, size_t time) {
  return costs->copied[size].result[time].median - costs->launch[0].result[time].median;
}

/* The number of readers at which a straight line through the costs of patching (least squares) meets the copy's; 0 when
 * the line does not rise or begins above. */
static double crossing(const patch_costs *costs, size_t size, size_t time) {
  double n = PATCH_COUNTS, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < PATCH_COUNTS; i++) {
    const double readers = patch_readers[i], added = added_by_patching(costs, i, time);
    x += readers, y += added, xx += readers * readers, xy += readers * added;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x), start = (y - slope * x) / n;
  const double at = slope > 0 ? (added_by_copying(costs, size, time) - start) / slope : 0;
  return at > 0 ? at : 0;
}

static void show_cost(json *out, const char *name, const cost *of) {
  json_begin_object(out, name);
  cost_to_json(out, of);
  json_end(out);
}

static void show_reader_row(json *out, const patch_costs *costs, size_t which) {
  show_cost(out, "launch", &costs->launch[which]);
  show_cost(out, "patched", &costs->patched[which]);
  json_real(out, "added_host_us", added_by_patching(costs, which, COST_HOST));
  json_real(out, "added_total_us", added_by_patching(costs, which, COST_TOTAL));
}

static void show_size_row(json *out, const patch_costs *costs, size_t size) {
  show_cost(out, "copied", &costs->copied[size]);
  json_real(out, "added_host_us", added_by_copying(costs, size, COST_HOST));
  json_real(out, "added_total_us", added_by_copying(costs, size, COST_TOTAL));
  json_real(out, "crossing_host_readers", crossing(costs, size, COST_HOST));
  json_real(out, "crossing_total_readers", crossing(costs, size, COST_TOTAL));
}

static void show_target(json *out, const patch_costs *costs) {
  json_begin_array(out, "readers");
  for (size_t i = 0; i < PATCH_COUNTS; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "readers", patch_readers[i]);
    show_reader_row(out, costs, i);
    json_end(out);
  }
  json_end(out);
  json_begin_array(out, "sizes");
  for (size_t i = 0; i < PATCH_SIZES; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "bytes", patch_sizes[i]);
    show_size_row(out, costs, i);
    json_end(out);
  }
  json_end(out);
}

static int show_json(const void *bench) {
  const patch_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_integer(&out, "nodes", b->settings.nodes);
  json_begin_object(&out, "rondo");
  show_target(&out, &b->costs[RONDO]);
  json_end(&out);
  if (b->targets[BARE]) {
    json_begin_object(&out, "bare");
    show_target(&out, &b->costs[BARE]);
    json_end(&out);
  }
  return json_print(&out);
}

static void print_target(const char *name, const patch_costs *costs) {
  for (size_t t = 0; t < COST_TIMES; t++) {
    printf("\n%s, %s:\n", name, time_names[t]);
    for (size_t i = 0; i < PATCH_COUNTS; i++) {
      printf("  %2" PRIu32 " readers   launch %8.3f   patched %8.3f   added %7.3f\n", patch_readers[i],
             costs->launch[i].result[t].median, costs->patched[i].result[t].median, added_by_patching(costs, i, t));
    }
    for (size_t i = 0; i < PATCH_SIZES; i++) {
      printf("  copy of %4zu KiB                     %8.3f   added %7.3f   patching costs as much at %.1f readers\n",
             patch_sizes[i] >> 10, costs->copied[i].result[t].median, added_by_copying(costs, i, t),
             crossing(costs, i, t));
    }
  }
}

static int show_text(const void *bench) {
  const patch_bench *b = bench;
  tool_print_device("device  ", b->settings.device, &b->info);
  printf("A line of %" PRIu64 " kernels that read %d inputs, one of which moves; microseconds, medians\n",
         b->settings.nodes, PATCH_INPUTS);
  print_target("Rondo", &b->costs[RONDO]);
  if (b->targets[BARE]) print_target("The driver without Rondo", &b->costs[BARE]);
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

int patch_target_destroy(patch_target *target) { return target ? target->destroy(target) : TOOL_OK; }

static int prepare(void *bench) {
  patch_bench *b = bench;
  const uint32_t nodes = (uint32_t)b->settings.nodes;
  if (rondo_device_open(b->settings.device, NULL, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  for (size_t i = 0; i < TARGETS; i++) {
    patch_costs *costs = &b->costs[i];
    if (!costs_create(costs->launch, PATCH_COUNTS, MOST_ROUNDS) ||
        !costs_create(costs->patched, PATCH_COUNTS, MOST_ROUNDS) ||
        !costs_create(costs->copied, PATCH_SIZES, MOST_ROUNDS)) {
      return tool_fail_memory("the times");
    }
  }
  if (patch_rondo_create(b->device, nodes, &b->targets[RONDO]) != TOOL_OK) return TOOL_FAILURE;
  return patch_bare_create(b->settings.device, nodes, &b->targets[BARE]);
}

static int take_down(void *bench) {
  patch_bench *b = bench;
  int result = TOOL_OK;
  for (size_t i = TARGETS; i-- > 0;) {
    if (patch_target_destroy(b->targets[i]) != TOOL_OK) result = TOOL_FAILURE;
    costs_destroy(b->costs[i].launch, PATCH_COUNTS);
    costs_destroy(b->costs[i].patched, PATCH_COUNTS);
    costs_destroy(b->costs[i].copied, PATCH_SIZES);
  }
  if (rondo_device_close(b->device)) result = tool_fail_status("the device");
  return result;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_patch(int argc, char **argv) {
  static patch_bench b;
  b = (patch_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  return bench_steps_run(&steps, &b, b.settings.json);
}
