/* SPDX-License-Identifier: MIT
 * Rondo as what makes and changes execs.
 */
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/change_target.h"
#include "common/tool.h"

typedef struct rondo_target {
  change_target base;
  rondo_device *device;
  uint32_t nodes;
  rondo_kernel *kernel;
  rondo_stream *stream;
  void *word;
  rondo_graph *graphs[2]; /* the same but for the arguments */
  rondo_node middle;      /* of the first */
  rondo_exec *exec;       /* of the first */
} rondo_target;

static const rondo_grid one_block = {1, 1, 1};

static rondo_status build(const rondo_target *t, uint32_t value, rondo_graph **out, rondo_node *out_middle) {
  rondo_node last = {0};
  TOOL_TRY(rondo_graph_create(t->device, NULL, out));
  for (uint32_t i = 0; i < t->nodes; i++) {
    TOOL_TRY(rondo_graph_add_kernel(*out, &last, i > 0, t->kernel, one_block, RONDO_ARGS(&t->word, &value), &last));
    if (i == t->nodes / 2) *out_middle = last;
  }
  return RONDO_OK;
}

/* Rounds ---------------------------------------------------------------------------------------------------------- */

static rondo_status time_instantiate(const rondo_target *t, samples *times) {
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node middle;
  const uint64_t begin = clock_ns();
  rondo_status status = build(t, 1, &graph, &middle);
  if (!status) status = rondo_instantiate(graph, NULL, &exec);
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  rondo_exec_destroy(exec);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status ? status : destroyed;
}

/* To the second graph and back. */
static rondo_status time_update(const rondo_target *t, samples *times) {
  for (size_t i = 0; i < 2; i++) {
    const uint64_t begin = clock_ns();
    TOOL_TRY(rondo_exec_update(t->exec, t->graphs[1 - i], NULL));
    samples_add(times, (double)(clock_ns() - begin) / 1e3);
  }
  return RONDO_OK;
}

static rondo_status patch(const rondo_target *t, uint32_t value) {
  const void *const args[] = {&t->word, &value};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL, .as.kernel = {.kernel = t->kernel, .grid = one_block, .args = args, .arg_count = 2}};
  return rondo_exec_set_params(t->exec, t->middle, &params);
}

static rondo_status time_launch(const rondo_target *t, bool with_patch, uint32_t value, samples *times) {
  const uint64_t begin = clock_ns();
  if (with_patch) TOOL_TRY(patch(t, value));
  TOOL_TRY(rondo_exec_launch(t->exec, t->stream));
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  return rondo_stream_synchronize(t->stream);
}

static rondo_status measure_round(const rondo_target *t, change_times *times) {
  TOOL_TRY(time_instantiate(t, &times->instantiate));
  TOOL_TRY(time_update(t, &times->update));
  for (uint32_t i = 0; i < CHANGE_PATCHES; i++) {
    TOOL_TRY(time_launch(t, true, i, &times->patch));
    TOOL_TRY(time_launch(t, false, 0, &times->launch));
  }
  return RONDO_OK;
}

static int run_round(change_target *target, change_times *times) {
  return measure_round((rondo_target *)target, times) ? tool_fail_status("Rondo") : TOOL_OK;
}

/* Beginning and end ----------------------------------------------------------------------------------------------- */

static int destroy(change_target *target) {
  rondo_target *t = (rondo_target *)target;
  int result = TOOL_OK;
  rondo_exec_destroy(t->exec);
  for (size_t i = 0; i < 2; i++) {
    if (rondo_graph_destroy(t->graphs[i])) result = tool_fail_status("a graph");
  }
  if (rondo_stream_destroy(t->stream)) result = tool_fail_status("a stream");
  if (rondo_free(t->device, t->word)) result = tool_fail_status("a word");
  rondo_kernel_destroy(t->kernel);
  free(t);
  return result;
}

static rondo_status make_objects(rondo_target *t) {
  rondo_node middle;
  TOOL_TRY(rondo_kernel_create(t->device, &bench_set_word, &t->kernel));
  TOOL_TRY(rondo_stream_create(t->device, NULL, &t->stream));
  TOOL_TRY(rondo_malloc(t->device, sizeof(uint32_t), "word", &t->word));
  TOOL_TRY(build(t, 1, &t->graphs[0], &t->middle));
  TOOL_TRY(build(t, 2, &t->graphs[1], &middle));
  return rondo_instantiate(t->graphs[0], NULL, &t->exec);
}

int change_rondo_create(rondo_device *device, uint32_t nodes, change_target **out) {
  rondo_target *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t) return tool_fail_memory("the benchmark");
  *t = (rondo_target){.base = {run_round, destroy}, .device = device, .nodes = nodes};
  if (!make_objects(t)) {
    *out = &t->base;
    return TOOL_OK;
  }
  const int result = tool_fail_status("the benchmark's graphs");
  (void)destroy(&t->base); /* the first failure is the one that is said */
  return result;
}
