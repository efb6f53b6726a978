/* SPDX-License-Identifier: MIT
 * Shapes of empty kernels, and one measurement of each way to launch them.
 */
#include "bench/launch_shapes.h"

#include "common/tool.h"

/* Returns from the calling function unless the call succeeded. */
#define CALL(call)                              \
  do {                                          \
    if ((call) != TOOL_OK) return TOOL_FAILURE; \
  } while (0)

/* Shapes ---------------------------------------------------------------------------------------------------------- */

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

/* One kernel, `nodes` - 2 side by side, one kernel. */
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

const launch_shape launch_shapes[LAUNCH_SHAPES] = {
    [SHAPE_LINE] = {"line of 32", 32, 1, enqueue_line},
    [SHAPE_BRANCHES] = {"two branches of 16", 32, 2, enqueue_branches},
    [SHAPE_FORK] = {"fork 30 and join", 32, TARGET_STREAMS, enqueue_fork},
    [SHAPE_LINE_320] = {"line of 320", 320, 1, enqueue_line},
    [SHAPE_LINE_3200] = {"line of 3200", 3200, 1, enqueue_line},
    [SHAPE_LINE_10000] = {"line of 10,000", 10000, 1, enqueue_line},
};

int launch_record(bench_target *target, const launch_shape *shape, void **out_exec) {
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

/* Measuring ------------------------------------------------------------------------------------------------------- */

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

int launch_measure(bench_target *target, const launch_shape *shape, void *exec, uint32_t repeats, cost *to) {
  for (uint32_t i = 0; i < repeats; i++)
    COST_TIME(to, CALL(enqueue(target, shape, exec)), CALL(target->calls->wait(target, 0)));
  for (uint32_t i = 0; i < repeats; i++) CALL(measure_device(target, shape, exec, to));
  return TOOL_OK;
}

int launch_measure_call(bench_target *target, void *exec, samples *host) {
  const uint64_t begin = clock_ns();
  CALL(target->calls->launch(target, exec, 0));
  const uint64_t queued = clock_ns();
  samples_add(host, (double)(queued - begin) / 1e3);
  return target->calls->wait(target, 0);
}

int launch_measure_row(bench_target *target, void *exec, uint32_t count, samples *device) {
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

void launch_measure_loop(uint32_t nodes, samples *times) {
  enum { CALLS = 10000 };
  static launch_call calls[CALLS];              /* as a graph holds them: a function and its arguments a node */
  rondo_cpu_function volatile function = empty; /* volatile: the compiler is not to know whom it calls */
  for (uint32_t i = 0; i < nodes; i++) calls[i] = (launch_call){.function = function};
  const rondo_blocks blocks = {.first = 0, .last = 1, .grid = {1, 1, 1}};
  const uint32_t loops = nodes < 1000 ? 10000 / nodes : 1; /* else shorter than reading the clock */
  const uint64_t begin = clock_ns();
  for (uint32_t loop = 0; loop < loops; loop++) {
    for (uint32_t i = 0; i < nodes; i++) calls[i].function(blocks, calls[i].args);
  }
  samples_add(times, (double)(clock_ns() - begin) / 1e3 / loops);
}
