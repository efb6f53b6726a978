/* SPDX-License-Identifier: MIT
 * rondo_bench patch (TR-6): the cost of launching a graph with an input at another address, by patching the address
 * into the kernels that read it, and by copying the input to its recorded address; on a CUDA device also for the bare
 * driver. All are measured in alternation. The cost of patching grows linearly with the number of readers. The
 * benchmark computes the number of readers from which copying costs less.
 */
#include "bench/bench_kernels.h"
#include "bench/bench_target.h"
#include "bench_check.h"
#include "rondo_bench.h"

enum { COUNTS = 5, SIZES = 6, MOST_READERS = 16, MOST_ROUNDS = 20000, FEWEST_ROUNDS = 3, WARM_UPS = 3 };

/* The numbers of kernels that read the moving input, one graph for each; and the sizes that are copied instead. */
static const uint32_t readers[COUNTS] = {1, 2, 4, 8, MOST_READERS};
static const size_t sizes[SIZES] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};

/* A chain of kernels, of which the first `readers` read the first input. */
typedef struct line {
  target_graph graph;
  void *exec;
  rondo_patch_set *set; /* NULL for the bare driver, where each reader is patched separately */
  bool is_moved;
} line;

/* Rondo, or the bare driver. */
typedef struct side {
  const char *name;
  bench_target *target;
  target_inputs inputs;
  uint64_t other; /* the address of the first input in every second launch */
  line lines[COUNTS];
  cost launch[COUNTS], patched[COUNTS], copied[SIZES];
} side;

typedef struct patch_bench {
  bench_base base;
  uint64_t nodes;
  side sides[2];
  size_t side_count;
} patch_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void launch(side *s, size_t which, bool moves) {
  line *of = &s->lines[which];
  of->is_moved ^= moves;
  const uint64_t first = of->is_moved ? s->other : s->inputs.inputs[0];
  if (!moves) {
    check_tool(s->target->calls->launch(s->target, of->exec, 0));
  } else if (of->set) {
    const void *addresses[TARGET_INPUTS] = {(void *)(uintptr_t)first};
    for (size_t i = 1; i < TARGET_INPUTS; i++) addresses[i] = (void *)(uintptr_t)s->inputs.inputs[i];
    check(rondo_patch_set_launch(of->set, rondo_target_stream(s->target), addresses));
  } else {
    const uint64_t values[] = {first, s->inputs.out};
    for (uint32_t i = 0; i < readers[which]; i++)
      check_tool(s->target->calls->set(s->target, of->exec, &of->graph, i, values));
    check_tool(s->target->calls->launch(s->target, of->exec, 0));
  }
}

/* Before each sample, because the previous launch was of another graph. */
static void warm_up(side *s, size_t which) {
  for (size_t i = 0; i < WARM_UPS; i++) {
    launch(s, which, true);
    check_tool(s->target->calls->wait(s->target, 0));
  }
}

static void time_launch(side *s, size_t which, bool moves, cost *to) {
  COST_TIME(to, launch(s, which, moves), check_tool(s->target->calls->wait(s->target, 0)));
}

static void copy_and_launch(side *s, size_t bytes) {
  check_tool(s->target->calls->copy(s->target, s->inputs.inputs[0], s->other, bytes));
  check_tool(s->target->calls->launch(s->target, s->lines[0].exec, 0));
}

static void measure_round(side *s) {
  for (size_t i = 0; i < COUNTS; i++) {
    warm_up(s, i);
    time_launch(s, i, false, &s->launch[i]);
    time_launch(s, i, true, &s->patched[i]);
  }
  for (size_t i = 0; i < SIZES; i++) {
    warm_up(s, 0);
    COST_TIME(&s->copied[i], copy_and_launch(s, sizes[i]), check_tool(s->target->calls->wait(s->target, 0)));
  }
}

static void make_patch_set(const side *s, line *of) {
  rondo_patch_input inputs[TARGET_INPUTS];
  for (size_t i = 0; i < TARGET_INPUTS; i++)
    inputs[i] = (rondo_patch_input){.address = (void *)(uintptr_t)s->inputs.inputs[i],
                                    .bytes = i == 0 ? sizes[SIZES - 1] : sizeof(uint32_t)};
  check(rondo_patch_set_create(of->exec, inputs, TARGET_INPUTS, NULL, &of->set));
}

static void prepare_side(patch_bench *b, const char *name, bench_target *target) {
  side *s = &b->sides[b->side_count++];
  const size_t most = sizes[SIZES - 1];
  *s = (side){.name = name, .target = target};
  check_tool(target->calls->allocate(target, most, &s->other));
  for (size_t i = 0; i < TARGET_INPUTS; i++) check_tool(target->calls->allocate(target, most, &s->inputs.inputs[i]));
  check_tool(target->calls->allocate(target, sizeof(uint32_t), &s->inputs.out));
  for (size_t i = 0; i < COUNTS; i++) {
    s->inputs.readers = readers[i];
    const target_line work = {(uint32_t)b->nodes, 0, readers[i], target_input_arguments, &s->inputs};
    check_tool(target->calls->build(target, &work, &s->lines[i].graph));
    check_tool(target->calls->instantiate(target, &s->lines[i].graph, false, &s->lines[i].exec));
    if (b->side_count == 1) make_patch_set(s, &s->lines[i]);
  }
  check_tool(costs_create(s->launch, COUNTS, MOST_ROUNDS));
  check_tool(costs_create(s->patched, COUNTS, MOST_ROUNDS));
  check_tool(costs_create(s->copied, SIZES, MOST_ROUNDS));
}

static int measure(void *bench) {
  patch_bench *b = bench;
  bench_target *rondo, *bare;
  check_tool(rondo_target_create(b->base.device, &bench_read_word, 1, &rondo));
  check_tool(bare_target_create(b->base.device_name, &bench_read_word, 1, &bare));
  prepare_side(b, "rondo", rondo);
  if (bare) prepare_side(b, "bare", bare);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    for (size_t i = 0; i < b->side_count; i++) measure_round(&b->sides[i]);
  for (size_t i = 0; i < b->side_count; i++) {
    costs_summarize(b->sides[i].launch, COUNTS);
    costs_summarize(b->sides[i].patched, COUNTS);
    costs_summarize(b->sides[i].copied, SIZES);
  }
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

/* The additional cost of a launch with patching. */
static double added_by_patching(const side *s, size_t which, size_t time) {
  return s->patched[which].result[time].median - s->launch[which].result[time].median;
}

static double added_by_copying(const side *s, size_t size, size_t time) {
  return s->copied[size].result[time].median - s->launch[0].result[time].median;
}

/* The number of readers at which a line fitted through the costs of patching (least squares) reaches the cost of the
 * copy; 0 when the line does not rise or begins above that cost. */
static double crossing(const side *s, size_t size, size_t time) {
  double n = COUNTS, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < COUNTS; i++) {
    const double count = readers[i], added = added_by_patching(s, i, time);
    x += count, y += added, xx += count * count, xy += count * added;
  }
  const double slope = (n * xy - x * y) / (n * xx - x * x), start = (y - slope * x) / n;
  const double at = slope > 0 ? (added_by_copying(s, size, time) - start) / slope : 0;
  return at > 0 ? at : 0;
}

static void report_side(const side *s, json *out) {
  json_begin_object(out, s->name);
  json_begin_array(out, "readers");
  for (size_t i = 0; i < COUNTS; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "readers", readers[i]);
    cost_object_to_json(out, "launch", &s->launch[i]);
    cost_object_to_json(out, "patched", &s->patched[i]);
    json_real(out, "added_host_us", added_by_patching(s, i, COST_HOST));
    json_real(out, "added_total_us", added_by_patching(s, i, COST_TOTAL));
    json_end(out);
  }
  json_end(out);
  json_begin_array(out, "sizes");
  for (size_t i = 0; i < SIZES; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "bytes", sizes[i]);
    cost_object_to_json(out, "copied", &s->copied[i]);
    json_real(out, "added_host_us", added_by_copying(s, i, COST_HOST));
    json_real(out, "added_total_us", added_by_copying(s, i, COST_TOTAL));
    json_real(out, "crossing_host_readers", crossing(s, i, COST_HOST));
    json_real(out, "crossing_total_readers", crossing(s, i, COST_TOTAL));
    json_end(out);
  }
  json_end(out);
  json_end(out);
}

static void report(void *bench, json *out) {
  const patch_bench *b = bench;
  json_integer(out, "nodes", b->nodes);
  for (size_t i = 0; i < b->side_count; i++) report_side(&b->sides[i], out);
}

static const patch_bench defaults = {.base = {.device_name = "cpu", .seconds = 3}, .nodes = 32};

static const option_row rows[] = {
    {"nodes", "N", OPTION_COUNT, offsetof(patch_bench, nodes), MOST_READERS, 100000, "kernels of a graph"},
};

const benchmark bench_patch = {
    .name = "patch",
    .summary = "launching with an input elsewhere: patching it or copying it",
    .description =
        "Measures the launch of a chain of kernels that read eight inputs, one of which is at another address: by\n"
        "patching the address into the 1 to 16 kernels that read it, or by copying 4 KiB to 4 MiB to the recorded\n"
        "address. crossing_readers is the number of readers from which copying is cheaper. On a CUDA device, the\n"
        "same work is measured in the bare driver, in alternation. Times are microseconds: medians, with minimum\n"
        "and maximum.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .measure = measure,
    .report = report,
};
