/* SPDX-License-Identifier: MIT
 * rondo bench tree (TR-1, TR-4, TR-6): what a call of a function that is replayed costs, beside the launch of the same
 * work without a tree and, on a CUDA device, by the driver without Rondo, all in turns; and the memory that trees hold.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench_steps.h"
#include "bench/memory_work.h"
#include "bench/patch_target.h"
#include "bench/tree_calls.h"
#include "bench/tree_memory.h"
#include "commands/commands.h"
#include "common/buffer_csv.h"
#include "common/json.h"
#include "common/options.h"
#include "common/timing.h"
#include "common/tool.h"

typedef struct tree_settings {
  const char *device, *buffers;
  uint64_t nodes, shapes, parts;
  double seconds;
  bool json;
} tree_settings;

static const tree_settings defaults = {
    .device = "cpu", .nodes = TREE_FEWEST_NODES, .shapes = 200, .parts = 4, .seconds = 3};

#define OFFSET(member) offsetof(tree_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(tree_settings),
    {"nodes", "N", OPTION_COUNT, OFFSET(nodes), TREE_FEWEST_NODES, 100000, "kernels of a function"},
    {"shapes", "N", OPTION_COUNT, OFFSET(shapes), 1, 1000, "shapes that one function is recorded for"},
    {"buffers", "FILE", OPTION_INPUT, OFFSET(buffers), 0, 0,
     "lifetimes of a path's memory, as for rondo plan; without it no path is measured"},
    {"parts", "N", OPTION_COUNT, OFFSET(parts), 1, 64, "functions of this path"},
    OPTION_ROW_SECONDS(tree_settings, "about how long to measure calls"),
    OPTION_ROW_JSON(tree_settings),
};

static const option_table table = {
    .command = "rondo bench tree",
    .description =
        "Measures what a replayed call of a function costs: a line of kernels that read eight inputs, of which\n"
        "none, one or four are at another address each time. The address is patched into their readers, or the\n"
        "input is copied. The same work is also launched without a tree and, on a CUDA device, in the bare driver,\n"
        "in alternation. Times are microseconds: medians, with minimum and maximum; 'added' is what comes on top\n"
        "of the launch.\n\n"
        "Then it measures the memory of trees: of one function that is recorded for many shapes of its input, and\n"
        "of a path of functions that allocate in the way a list of buffers says: as first recorded, planned from\n"
        "its warm-up; with each function recorded on its own, as after a reset; and planned again. The bound is\n"
        "the most bytes that live at once.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

#define MOST_ROUNDS 20000
#define FEWEST_ROUNDS 3
#define WARM_UPS 3

/* The launch without a tree, by Rondo and by the bare driver; then the cases. */
enum { LAUNCH, BARE, CALLS, COSTS = CALLS + TREE_CASES };

typedef struct tree_bench {
  tree_settings settings;
  rondo_device *device;
  rondo_device_info info;
  patch_target *launch, *bare; /* bare: NULL but on a CUDA device */
  tree_calls *calls;
  cost costs[COSTS];
  uint64_t hit_allocations; /* by calls that were measured */
  tree_memory shapes;
  tree_path_memory path;
} tree_bench;

/* Counting allocations -------------------------------------------------------------------------------------------- */

static _Atomic uint64_t allocations;

static void *allocate(void *self, size_t bytes, size_t alignment) {
  (void)self;
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *self, void *pointer, size_t bytes) {
  (void)self;
  (void)bytes;
  free(pointer);
}

static const rondo_allocator counting = {.allocate = allocate, .release = release};

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int time_launch(patch_target *target, cost *to) {
  if (!target) return TOOL_OK;
  for (int i = 0; i <= WARM_UPS; i++) {
    const uint64_t begin = clock_ns();
    if (target->launch(target, 0, false) != TOOL_OK) return TOOL_FAILURE;
    const uint64_t queued = clock_ns();
    if (target->wait(target) != TOOL_OK) return TOOL_FAILURE;
    if (i == WARM_UPS) cost_note(to, begin, queued, clock_ns());
  }
  return TOOL_OK;
}

static int time_call(tree_bench *b, size_t which) {
  for (int i = 0; i <= WARM_UPS; i++) {
    tree_calls_turn(b->calls, which);
    const uint64_t before = atomic_load_explicit(&allocations, memory_order_relaxed), begin = clock_ns();
    if (tree_calls_call(b->calls, which) != TOOL_OK) return TOOL_FAILURE;
    const uint64_t queued = clock_ns();
    if (tree_calls_wait(b->calls) != TOOL_OK) return TOOL_FAILURE;
    if (i < WARM_UPS) continue;
    cost_note(&b->costs[CALLS + which], begin, queued, clock_ns());
    b->hit_allocations += atomic_load_explicit(&allocations, memory_order_relaxed) - before;
  }
  return TOOL_OK;
}

static int measure_round(tree_bench *b) {
  if (time_launch(b->launch, &b->costs[LAUNCH]) != TOOL_OK) return TOOL_FAILURE;
  if (time_launch(b->bare, &b->costs[BARE]) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < TREE_CASES; i++) {
    if (time_call(b, i) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static int measure_calls(tree_bench *b) {
  const uint64_t end = clock_ns() + (uint64_t)(b->settings.seconds * 1e9);
  for (size_t round = 0; round < MOST_ROUNDS && (round < FEWEST_ROUNDS || clock_ns() < end); round++) {
    if (measure_round(b) != TOOL_OK) return TOOL_FAILURE;
  }
  costs_summarize(b->costs, COSTS);
  return tree_calls_check(b->calls);
}

static int measure_path(tree_bench *b) {
  buffer_list list = {0};
  memory_work work = {0};
  int result = buffer_list_read(b->settings.buffers, &list);
  if (result == TOOL_OK) result = memory_work_create(file_display_name(b->settings.buffers), &list, &work);
  if (result == TOOL_OK) result = tree_memory_of_path(b->device, &work, (size_t)b->settings.parts, &b->path);
  memory_work_destroy(&work);
  buffer_list_release(&list);
  return result;
}

static int measure(void *bench) {
  tree_bench *b = bench;
  tool_show_progress("calls");
  int result = measure_calls(b);
  tool_show_progress("memory");
  if (result == TOOL_OK) result = tree_memory_of_shapes(b->device, (uint32_t)b->settings.shapes, &b->shapes);
  if (result == TOOL_OK && b->settings.buffers) result = measure_path(b);
  tool_clear_progress();
  return result;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double added(const tree_bench *b, size_t of, size_t to, size_t time) {
  return b->costs[of].result[time].median - b->costs[to].result[time].median;
}

static double ratio(const tree_memory *of) { return of->least > 0 ? (double)of->used / (double)of->least : 0; }

static void write_call(const tree_bench *b, size_t which, json *out) {
  const tree_case *of = &tree_cases[which];
  json_begin_object(out, NULL);
  json_text(out, "case", of->name);
  json_integer(out, "moving", of->moving);
  json_integer(out, "readers", of->readers);
  json_text(out, "binding", of->moving == 0 ? "none" : of->binding == RONDO_BINDING_COPY ? "copy" : "patch");
  cost_to_json(out, &b->costs[CALLS + which]);
  json_real(out, "added_host_us", added(b, CALLS + which, LAUNCH, COST_HOST));
  json_real(out, "added_total_us", added(b, CALLS + which, LAUNCH, COST_TOTAL));
  if (b->bare) json_real(out, "added_to_bare_host_us", added(b, CALLS + which, BARE, COST_HOST));
  if (b->bare) json_real(out, "added_to_bare_total_us", added(b, CALLS + which, BARE, COST_TOTAL));
  json_end(out);
}

static void write_memory_fields(json *out, const tree_memory *of) {
  json_integer(out, "recordings", of->recordings);
  json_integer(out, "arena_used", of->used);
  json_integer(out, "arena_backed", of->backed);
  json_integer(out, "bound", of->least);
  json_real(out, "ratio", ratio(of));
  json_integer(out, "exec_host_bytes", of->exec_host);
  json_integer(out, "exec_device_bytes", of->exec_device);
}

static void write_memory(json *out, const char *name, const tree_memory *of) {
  json_begin_object(out, name);
  write_memory_fields(out, of);
  json_end(out);
}

static void write_path(json *out, const char *name, const tree_memory *of) {
  json_begin_object(out, name);
  write_memory_fields(out, of);
  json_real(out, "record_us", of->record_us);
  json_real(out, "replay_us", of->replay_us);
  json_end(out);
}

static int show_json(const void *bench) {
  const tree_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_integer(&out, "nodes", b->settings.nodes);
  json_integer(&out, "inputs", TREE_INPUTS);
  json_begin_object(&out, "launch");
  cost_to_json(&out, &b->costs[LAUNCH]);
  json_end(&out);
  if (b->bare) {
    json_begin_object(&out, "bare");
    cost_to_json(&out, &b->costs[BARE]);
    json_end(&out);
  }
  json_begin_array(&out, "calls");
  for (size_t i = 0; i < TREE_CASES; i++) write_call(b, i, &out);
  json_end(&out);
  json_integer(&out, "hit_allocations", b->hit_allocations);
  write_memory(&out, "shapes", &b->shapes);
  if (b->settings.buffers) {
    write_path(&out, "path", &b->path.first);
    write_path(&out, "path_recorded_singly", &b->path.singly);
    write_path(&out, "path_planned_again", &b->path.planned);
  }
  return json_print(&out);
}

static void print_cell(summary value) { printf(" %8.3f (%7.3f to %8.3f)", value.median, value.minimum, value.maximum); }

static void print_row(const tree_bench *b, const char *name, size_t row) {
  printf("%-24s", name);
  print_cell(b->costs[row].result[COST_HOST]);
  print_cell(b->costs[row].result[COST_TOTAL]);
  if (row >= CALLS) printf(" %8.3f %8.3f", added(b, row, LAUNCH, COST_HOST), added(b, row, LAUNCH, COST_TOTAL));
  if (row >= CALLS && b->bare) printf(" %8.3f %8.3f", added(b, row, BARE, COST_HOST), added(b, row, BARE, COST_TOTAL));
  putchar('\n');
}

static void print_memory(const char *name, const tree_memory *of) {
  printf("%-24s %10" PRIu32 " %14" PRIu64 " %14" PRIu64 " %8.4f %14" PRIu64 " %14" PRIu64 "\n", name, of->recordings,
         of->least, of->used, ratio(of), of->exec_host, of->exec_device);
}

static void print_times(const tree_path_memory *path) {
  printf("\n%-24s %10s %10s\n", "microseconds a step", "record", "replay");
  printf("%-24s %10.1f %10.1f\n", "path", path->first.record_us, path->first.replay_us);
  printf("%-24s %10.1f %10.1f\n", "path, recorded singly", path->singly.record_us, path->singly.replay_us);
  printf("%-24s %10.1f %10.1f\n", "path, planned again", path->planned.record_us, path->planned.replay_us);
}

static int show_text(const void *bench) {
  const tree_bench *b = bench;
  tool_print_device("device  ", b->settings.device, &b->info);
  printf("A line of %" PRIu64 " kernels that read %d inputs; microseconds, median (minimum to maximum)\n\n",
         b->settings.nodes, TREE_INPUTS);
  printf("%-24s %-30s %-29s %-17s %s\n", "", "host", "until done", "added: host, done", b->bare ? "to bare: both" : "");
  print_row(b, "launch", LAUNCH);
  if (b->bare) print_row(b, "bare launch", BARE);
  for (size_t i = 0; i < TREE_CASES; i++) print_row(b, tree_cases[i].name, CALLS + i);
  printf("\nallocations of host memory by these calls: %" PRIu64 "\n\n", b->hit_allocations);
  printf("%-24s %10s %14s %14s %8s %14s %14s\n", "bytes", "recordings", "bound", "arena", "ratio", "execs, host",
         "device");
  print_memory("shapes", &b->shapes);
  if (b->settings.buffers) {
    print_memory("path", &b->path.first);
    print_memory("path, recorded singly", &b->path.singly);
    print_memory("path, planned again", &b->path.planned);
    print_times(&b->path);
  }
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

static int prepare(void *bench) {
  tree_bench *b = bench;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &counting};
  const uint32_t nodes = (uint32_t)b->settings.nodes;
  if (rondo_device_open(b->settings.device, &options, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  if (!costs_create(b->costs, COSTS, MOST_ROUNDS)) return tool_fail_memory("the times");
  if (patch_rondo_create(b->device, nodes, &b->launch) != TOOL_OK) return TOOL_FAILURE;
  if (patch_bare_create(b->settings.device, nodes, &b->bare) != TOOL_OK) return TOOL_FAILURE;
  return tree_calls_create(b->device, nodes, &b->calls);
}

static int take_down(void *bench) {
  tree_bench *b = bench;
  int result = tree_calls_destroy(b->calls);
  if (patch_target_destroy(b->bare) != TOOL_OK) result = TOOL_FAILURE;
  if (patch_target_destroy(b->launch) != TOOL_OK) result = TOOL_FAILURE;
  costs_destroy(b->costs, COSTS);
  if (rondo_device_close(b->device)) result = tool_fail_status("the device");
  return result;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_tree(int argc, char **argv) {
  static tree_bench b;
  b = (tree_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  return bench_steps_run(&steps, &b, b.settings.json);
}
