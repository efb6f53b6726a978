/* SPDX-License-Identifier: MIT
 * rondo_bench change (GX-5): the host cost of instantiating an exec, of updating it from a whole graph, and of updating
 * one node and launching; on a CUDA device also for the bare driver. Rondo and the driver are measured in alternation.
 */
#include "bench/bench_kernels.h"
#include "bench/bench_target.h"
#include "bench_check.h"
#include "rondo_bench.h"

enum { MOST_ROUNDS = 2000, FEWEST_ROUNDS = 3, PATCHES = 64 };

enum { INSTANTIATE, UPDATE, PATCH, LAUNCH, QUANTITIES };
static const struct {
  const char *name;
  size_t samples; /* in a round */
} quantities[QUANTITIES] = {[INSTANTIATE] = {"instantiate", 1},
                            [UPDATE] = {"update", 2},
                            [PATCH] = {"patch_and_launch", PATCHES},
                            [LAUNCH] = {"launch", PATCHES}};

/* Rondo, or the bare driver. */
typedef struct side {
  bench_target *target;
  uint64_t word;
  target_graph graphs[2]; /* identical except for the arguments */
  void *exec;             /* of the first */
  samples times[QUANTITIES];
} side;

typedef struct change_bench {
  bench_base base;
  uint64_t nodes;
  side sides[2];
  size_t side_count;
} change_bench;

/* Each kernel sets the word to a number. */
typedef struct word_value {
  uint64_t word, value;
} word_value;

static void set_word_arguments(const void *user, uint32_t index, uint64_t values[2]) {
  const word_value *of = user;
  (void)index;
  values[0] = of->word;
  values[1] = of->value;
}

static void build(const change_bench *b, const side *s, uint64_t value, target_graph *out) {
  const word_value user = {s->word, value};
  const target_line work = {(uint32_t)b->nodes, (uint32_t)b->nodes / 2, 1, set_word_arguments, &user};
  check_tool(s->target->calls->build(s->target, &work, out));
}

static void note(side *s, int quantity, uint64_t begin) {
  samples_add(&s->times[quantity], (double)(clock_ns() - begin) / 1e3);
}

/* The time includes building the graph node by node. */
static void time_instantiate(const change_bench *b, side *s) {
  target_graph graph;
  const uint64_t begin = clock_ns();
  build(b, s, 1, &graph);
  void *exec;
  check_tool(s->target->calls->instantiate(s->target, &graph, false, &exec));
  note(s, INSTANTIATE, begin);
  check_tool(s->target->calls->discard_exec(s->target, exec));
  check_tool(s->target->calls->discard_graph(s->target, &graph));
}

static void time_launch(side *s, bool with_patch, uint64_t value) {
  const uint64_t begin = clock_ns();
  if (with_patch)
    check_tool(s->target->calls->set(s->target, s->exec, &s->graphs[0], 0, (const uint64_t[]){s->word, value}));
  check_tool(s->target->calls->launch(s->target, s->exec, 0));
  note(s, with_patch ? PATCH : LAUNCH, begin);
  check_tool(s->target->calls->wait(s->target, 0));
}

static void measure_round(const change_bench *b, side *s) {
  time_instantiate(b, s);
  for (size_t i = 0; i < 2; i++) { /* to the second graph and back */
    const uint64_t begin = clock_ns();
    check_tool(s->target->calls->update(s->target, s->exec, &s->graphs[1 - i]));
    note(s, UPDATE, begin);
  }
  for (uint64_t i = 0; i < PATCHES; i++) {
    time_launch(s, true, i);
    time_launch(s, false, 0);
  }
}

static void prepare_side(change_bench *b, bench_target *target) {
  side *s = &b->sides[b->side_count++];
  s->target = target;
  check_tool(target->calls->allocate(target, sizeof(uint32_t), &s->word));
  for (size_t i = 0; i < 2; i++) build(b, s, i + 1, &s->graphs[i]);
  check_tool(target->calls->instantiate(target, &s->graphs[0], false, &s->exec));
  for (size_t i = 0; i < QUANTITIES; i++) bench_samples_create(&s->times[i], quantities[i].samples * MOST_ROUNDS);
}

static int measure(void *bench) {
  change_bench *b = bench;
  bench_target *rondo, *bare;
  check_tool(rondo_target_create(b->base.device, &bench_set_word, 1, &rondo));
  check_tool(bare_target_create(b->base.device_name, &bench_set_word, 1, &bare));
  prepare_side(b, rondo);
  if (bare) prepare_side(b, bare);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    for (size_t i = 0; i < b->side_count; i++) measure_round(b, &b->sides[i]);
  return TOOL_OK;
}

static void report(void *bench, json *out) {
  change_bench *b = bench;
  json_integer(out, "nodes", b->nodes);
  for (size_t i = 0; i < QUANTITIES; i++) {
    const summary rondo = samples_summarize(&b->sides[0].times[i]), bare = samples_summarize(&b->sides[1].times[i]);
    json_begin_object(out, quantities[i].name);
    json_summary(out, "host_us", rondo);
    if (b->side_count > 1) json_summary(out, "bare_host_us", bare);
    if (b->side_count > 1) json_real(out, "ratio", bench_ratio(rondo.median, bare.median));
    json_end(out);
  }
}

static const change_bench defaults = {.base = {.device_name = "cpu", .seconds = 3}, .nodes = 1000};

static const option_row rows[] = {
    {"nodes", "N", OPTION_COUNT, offsetof(change_bench, nodes), 1, 100000, "kernels of a graph"},
};

const benchmark bench_change = {
    .name = "change",
    .summary = "making an exec, updating it, patching a node and launching",
    .description =
        "Measures what it costs the host to change a graph that is a chain of kernels: to build and instantiate\n"
        "it, to update an exec from a graph with different arguments in every node, to patch the arguments of one\n"
        "node and launch, and only to launch. On a CUDA device, the same work is measured in the bare driver, in\n"
        "alternation. Times are microseconds: medians, with minimum and maximum.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .measure = measure,
    .report = report,
};
