/* SPDX-License-Identifier: MIT
 * rondo_bench tree (TR-1, TR-4, TR-6, AD-5): the cost of a replayed call of a function or region, compared, in
 * alternation, with launching the same work without a tree and, on a CUDA device, with the bare driver; and the memory
 * of trees. Each case is a function in a separate tree, so cases do not affect each other.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/bench_target.h"
#include "bench/memory_work.h"
#include "bench_check.h"
#include "rondo_bench.h"
#include "tree_memory.h"

enum { CASES = 9, MOST_MOVING = 4, FEWEST_NODES = 32, INPUT_BYTES = 64 << 10 };
enum { MOST_ROUNDS = 20000, FEWEST_ROUNDS = 3, WARM_UPS = 3 };

/* The first `moving` inputs have another address in every call; `readers` kernels read each of them. */
typedef struct tree_case {
  const char *name;
  uint32_t moving, readers;
  rondo_binding binding;
  bool is_region; /* with a key of eight bytes; otherwise a function */
  bool is_alone;  /* ... that has no inputs and outputs: its addresses do not change */
} tree_case;

static const tree_case cases[CASES] = {
    {.name = "no input moves", .readers = 1},
    {.name = "one patched, 1 reader", .moving = 1, .readers = 1, .binding = RONDO_BINDING_PATCH},
    {.name = "one patched, 4 readers", .moving = 1, .readers = 4, .binding = RONDO_BINDING_PATCH},
    {.name = "four patched, 1 reader", .moving = 4, .readers = 1, .binding = RONDO_BINDING_PATCH},
    {.name = "four patched, 4 readers", .moving = 4, .readers = 4, .binding = RONDO_BINDING_PATCH},
    {.name = "one copied, 64 KiB", .moving = 1, .readers = 1, .binding = RONDO_BINDING_COPY},
    {.name = "region, a key alone", .readers = 1, .is_region = true, .is_alone = true},
    {.name = "region, no input moves", .readers = 1, .is_region = true},
    {.name = "region, one patched", .moving = 1, .readers = 1, .binding = RONDO_BINDING_PATCH, .is_region = true},
};

/* The launch without a tree, by Rondo and in the bare driver; then the cases. */
enum { LAUNCH, BARE, CALLS, COSTS = CALLS + CASES };

typedef struct side {
  bench_target *target; /* NULL: without the bare driver */
  void *exec;
} side;

struct tree_bench;

typedef struct case_state {
  const struct tree_bench *bench;
  const tree_case *is;
  rondo_tree *tree;
  rondo_function *function; /* or */
  rondo_region *region;
  rondo_input inputs[TARGET_INPUTS];
  rondo_buffer *output;
  bool is_moved;
} case_state;

typedef struct tree_bench {
  bench_base base;
  const char *buffers;
  uint64_t nodes, shapes, parts;
  side sides[2]; /* LAUNCH and BARE */
  rondo_kernel *kernel;
  rondo_stream *stream;
  void *inputs[TARGET_INPUTS], *others[MOST_MOVING]; /* `others`: the addresses of moving inputs in every second call */
  case_state cases[CASES];
  cost costs[COSTS];
  uint64_t hit_allocations; /* by the measured calls */
  tree_memory shapes_memory;
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

/* Calls ----------------------------------------------------------------------------------------------------------- */

/* The index of the input that kernel `i` reads. */
static size_t input_of(const tree_case *of, uint32_t i) {
  return i < of->moving * of->readers ? i / of->readers : of->moving + i % (TARGET_INPUTS - of->moving);
}

static rondo_status read_inputs(rondo_call *call, void *user) {
  const case_state *state = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *out = state->bench->others[0];
  if (!state->is->is_alone) TOOL_TRY(rondo_call_output(call, 0, sizeof(uint32_t), NULL, &out));
  for (uint32_t i = 0; i < state->bench->nodes; i++) {
    const size_t input = input_of(state->is, i);
    const void *in = state->is->is_alone ? state->bench->inputs[input] : rondo_call_input(call, input);
    TOOL_TRY(rondo_launch(stream, state->bench->kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&in, &out)));
  }
  return RONDO_OK;
}

/* Moves the inputs for the next call, and releases the last output. */
static void move_inputs(case_state *state) {
  rondo_buffer_release(state->output);
  state->output = NULL;
  state->is_moved = !state->is_moved;
  for (size_t i = 0; i < state->is->moving; i++)
    state->inputs[i].address = state->is_moved ? state->bench->others[i] : state->bench->inputs[i];
}

static rondo_status call_region(case_state *state, rondo_stream *stream) {
  const uint64_t key = 7;
  const rondo_region_arguments arguments = {.key = &key,
                                            .key_bytes = sizeof key,
                                            .inputs = state->inputs,
                                            .input_count = state->is->is_alone ? 0 : TARGET_INPUTS,
                                            .outputs = &state->output,
                                            .output_count = !state->is->is_alone};
  rondo_call *call;
  TOOL_TRY(rondo_region_begin(state->region, stream, &arguments, &call));
  do TOOL_TRY(rondo_region_end(state->region, stream, call ? read_inputs(call, state) : RONDO_OK, &call));
  while (call);
  return RONDO_OK;
}

static rondo_status make_call(case_state *state, rondo_stream *stream) {
  return state->region ? call_region(state, stream)
                       : rondo_function_call(state->function, stream, state->inputs, TARGET_INPUTS, &state->output, 1);
}

static void time_call(tree_bench *b, size_t which) {
  case_state *state = &b->cases[which];
  for (int i = 0; i <= WARM_UPS; i++) {
    move_inputs(state);
    const uint64_t before = atomic_load_explicit(&allocations, memory_order_relaxed);
    cost *to = i < WARM_UPS ? NULL : &b->costs[CALLS + which];
    COST_TIME(to, check(make_call(state, b->stream)), check(rondo_stream_synchronize(b->stream)));
    if (to) b->hit_allocations += atomic_load_explicit(&allocations, memory_order_relaxed) - before;
  }
}

static void time_launch(const side *s, cost *to) {
  for (int i = 0; s->target && i <= WARM_UPS; i++)
    COST_TIME(i < WARM_UPS ? NULL : to, check_tool(s->target->calls->launch(s->target, s->exec, 0)),
              check_tool(s->target->calls->wait(s->target, 0)));
}

/* Fails unless all calls except the first two were replays, and inputs were bound as the case requires. */
static int check_calls(const tree_bench *b) {
  for (size_t i = 0; i < CASES; i++) {
    const tree_case *of = &cases[i];
    rondo_tree_info info = {.struct_size = sizeof info};
    check(rondo_tree_get_info(b->cases[i].tree, &info));
    if (info.replayed + 2 != info.calls || info.recorded != 1)
      return tool_fail("of %" PRIu64 " calls (%s) %" PRIu64 " were replayed", info.calls, of->name, info.replayed);
    if (of->binding == RONDO_BINDING_PATCH ? info.copied_inputs != 0 : of->moving > 0 && info.patched_inputs != 0)
      return tool_fail("inputs (%s) were not bound as the case says", of->name);
  }
  return TOOL_OK;
}

/* Preparing ------------------------------------------------------------------------------------------------------- */

static void prepare_case(tree_bench *b, size_t which) {
  static uint32_t kinds[TARGET_INPUTS];
  case_state *state = &b->cases[which];
  *state = (case_state){.bench = b, .is = &cases[which]};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT,  .name = state->is->name,      .body = read_inputs, .user = state, .inputs = kinds,
      .input_count = TARGET_INPUTS, .binding = state->is->binding};
  const rondo_region_options region = {RONDO_REGION_OPTIONS_INIT,
                                       .name = state->is->name,
                                       .inputs = kinds,
                                       .input_count = state->is->is_alone ? 0 : TARGET_INPUTS,
                                       .binding = state->is->binding,
                                       .key_bytes = sizeof(uint64_t)};
  for (size_t i = 0; i < TARGET_INPUTS; i++) {
    kinds[i] = RONDO_INPUT_MOVING;
    state->inputs[i] = (rondo_input){.address = b->inputs[i], .bytes = INPUT_BYTES};
  }
  check(rondo_tree_create(b->base.device, NULL, &state->tree));
  if (state->is->is_region)
    check(rondo_region_create(state->tree, &region, &state->region));
  else
    check(rondo_function_create(state->tree, &options, &state->function));
}

static void prepare_side(tree_bench *b, int which, bench_target *target) {
  target_inputs inputs = {.readers = 1};
  target_graph graph;
  if (!target) return;
  for (size_t i = 0; i < TARGET_INPUTS; i++)
    check_tool(target->calls->allocate(target, INPUT_BYTES, &inputs.inputs[i]));
  check_tool(target->calls->allocate(target, sizeof(uint32_t), &inputs.out));
  const target_line work = {.nodes = (uint32_t)b->nodes, .arguments = target_input_arguments, .user = &inputs};
  check_tool(target->calls->build(target, &work, &graph));
  b->sides[which].target = target;
  check_tool(target->calls->instantiate(target, &graph, false, &b->sides[which].exec));
}

static int prepare(void *bench) {
  tree_bench *b = bench;
  bench_target *rondo, *bare;
  check(rondo_kernel_create(b->base.device, &bench_read_word, &b->kernel));
  check(rondo_stream_create(b->base.device, NULL, &b->stream));
  for (size_t i = 0; i < TARGET_INPUTS; i++) check(rondo_malloc(b->base.device, INPUT_BYTES, "input", &b->inputs[i]));
  for (size_t i = 0; i < MOST_MOVING; i++) check(rondo_malloc(b->base.device, INPUT_BYTES, "other", &b->others[i]));
  for (size_t i = 0; i < CASES; i++) prepare_case(b, i);
  check_tool(rondo_target_create(b->base.device, &bench_read_word, 1, &rondo));
  check_tool(bare_target_create(b->base.device_name, &bench_read_word, 1, &bare));
  prepare_side(b, LAUNCH, rondo);
  prepare_side(b, BARE, bare);
  return costs_create(b->costs, COSTS, MOST_ROUNDS);
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void measure_path(tree_bench *b) {
  buffer_list list = {0};
  memory_work work = {0};
  check_tool(buffer_list_read(b->buffers, &list));
  check_tool(memory_work_create(file_display_name(b->buffers), &list, &work));
  tree_memory_of_path(b->base.device, &work, (size_t)b->parts, &b->path);
}

static int measure(void *bench) {
  tree_bench *b = bench;
  tool_show_progress("calls");
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);) {
    time_launch(&b->sides[LAUNCH], &b->costs[LAUNCH]);
    time_launch(&b->sides[BARE], &b->costs[BARE]);
    for (size_t i = 0; i < CASES; i++) time_call(b, i);
  }
  costs_summarize(b->costs, COSTS);
  check_tool(check_calls(b));
  tool_show_progress("memory");
  tree_memory_of_shapes(b->base.device, (uint32_t)b->shapes, &b->shapes_memory);
  if (b->buffers) measure_path(b);
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double added(const tree_bench *b, size_t of, size_t to, size_t time) {
  return b->costs[of].result[time].median - b->costs[to].result[time].median;
}

static void report_call(const tree_bench *b, size_t which, json *out) {
  const tree_case *of = &cases[which];
  json_begin_object(out, NULL);
  json_text(out, "case", of->name);
  json_integer(out, "moving", of->moving);
  json_integer(out, "readers", of->readers);
  json_text(out, "binding", of->moving == 0 ? "none" : of->binding == RONDO_BINDING_COPY ? "copy" : "patch");
  cost_to_json(out, &b->costs[CALLS + which]);
  json_real(out, "added_host_us", added(b, CALLS + which, LAUNCH, COST_HOST));
  json_real(out, "added_total_us", added(b, CALLS + which, LAUNCH, COST_TOTAL));
  if (b->sides[BARE].target) {
    json_real(out, "added_to_bare_host_us", added(b, CALLS + which, BARE, COST_HOST));
    json_real(out, "added_to_bare_total_us", added(b, CALLS + which, BARE, COST_TOTAL));
  }
  json_end(out);
}

static void report_memory(json *out, const char *name, const tree_memory *of, bool is_path) {
  json_begin_object(out, name);
  json_integer(out, "recordings", of->recordings);
  json_integer(out, "arena_used", of->used);
  json_integer(out, "arena_backed", of->backed);
  json_integer(out, "bound", of->least);
  json_real(out, "ratio", bench_ratio((double)of->used, (double)of->least));
  json_integer(out, "exec_host_bytes", of->exec_host);
  json_integer(out, "exec_device_bytes", of->exec_device);
  if (is_path) json_real(out, "record_us", of->record_us);
  if (is_path) json_real(out, "replay_us", of->replay_us);
  json_end(out);
}

static void report(void *bench, json *out) {
  const tree_bench *b = bench;
  json_integer(out, "nodes", b->nodes);
  json_integer(out, "inputs", TARGET_INPUTS);
  cost_object_to_json(out, "launch", &b->costs[LAUNCH]);
  if (b->sides[BARE].target) cost_object_to_json(out, "bare", &b->costs[BARE]);
  json_begin_array(out, "calls");
  for (size_t i = 0; i < CASES; i++) report_call(b, i, out);
  json_end(out);
  json_integer(out, "hit_allocations", b->hit_allocations);
  report_memory(out, "shapes", &b->shapes_memory, false);
  if (!b->buffers) return;
  report_memory(out, "path", &b->path.first, true);
  report_memory(out, "path_recorded_singly", &b->path.singly, true);
  report_memory(out, "path_planned_again", &b->path.planned, true);
}

static const tree_bench defaults = {
    .base = {.device_name = "cpu", .seconds = 3}, .nodes = FEWEST_NODES, .shapes = 200, .parts = 4};

static const option_row rows[] = {
    {"nodes", "N", OPTION_COUNT, offsetof(tree_bench, nodes), FEWEST_NODES, 100000, "kernels of a function"},
    {"shapes", "N", OPTION_COUNT, offsetof(tree_bench, shapes), 1, 1000, "shapes that one function is recorded for"},
    {"buffers", "FILE", OPTION_INPUT, offsetof(tree_bench, buffers), 0, 0,
     "lifetimes of a path's memory, as for rondo plan; without it no path is measured"},
    {"parts", "N", OPTION_COUNT, offsetof(tree_bench, parts), 1, 64, "functions of this path"},
};

const benchmark bench_tree = {
    .name = "tree",
    .summary = "calls of recorded functions; the memory of trees",
    .description =
        "Measures a replayed call of a function, or of a region with a key: a chain of kernels that read eight\n"
        "inputs, of which none, one or four are at another address each time. The address is patched into the\n"
        "kernels that read it, or the input is copied. The same work is also launched without a tree and, on a\n"
        "CUDA device, in the bare driver, in alternation. Times are microseconds: medians, with minimum and\n"
        "maximum; 'added' is the difference to the launch.\n\n"
        "Then measures the memory of trees: of one function that is recorded for many shapes of its input, and of\n"
        "a path of functions that allocate as a list of buffers says. The path is measured as first recorded,\n"
        "planned from its warm-up; with each function recorded on its own, as after a reset; and planned again.\n"
        "The bound is the maximum of live bytes.",
    .seconds_help = "about how long to measure calls",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .allocator = &counting,
    .prepare = prepare,
    .measure = measure,
    .report = report,
};
