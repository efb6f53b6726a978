/* SPDX-License-Identifier: MIT
 * Rondo as what launches with an input elsewhere: by a patch set.
 */
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/patch_target.h"
#include "common/tool.h"

typedef struct rondo_target {
  patch_target base;
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *stream;
  void *inputs[PATCH_INPUTS], *other, *out; /* `other`: where the first input is at every second launch */
  rondo_exec *execs[PATCH_COUNTS];
  rondo_patch_set *sets[PATCH_COUNTS];
  bool is_moved[PATCH_COUNTS];
} rondo_target;

static int launch(patch_target *target, size_t which, bool moves) {
  rondo_target *t = (rondo_target *)target;
  const void *addresses[PATCH_INPUTS] = {t->inputs[0]};
  for (size_t i = 1; i < PATCH_INPUTS; i++) addresses[i] = t->inputs[i];
  t->is_moved[which] ^= moves;
  if (t->is_moved[which]) addresses[0] = t->other;
  const rondo_status status = moves ? rondo_patch_set_launch(t->sets[which], t->stream, addresses)
                                    : rondo_exec_launch(t->execs[which], t->stream);
  return status ? tool_fail_status("Rondo") : TOOL_OK;
}

static int copy(patch_target *target, size_t size) {
  const rondo_target *t = (const rondo_target *)target;
  if (rondo_copy_async(t->stream, t->inputs[0], t->other, patch_sizes[size]) ||
      rondo_exec_launch(t->execs[0], t->stream)) {
    return tool_fail_status("Rondo");
  }
  return TOOL_OK;
}

static int wait(patch_target *target) {
  return rondo_stream_synchronize(((rondo_target *)target)->stream) ? tool_fail_status("Rondo") : TOOL_OK;
}

static int destroy(patch_target *target) {
  rondo_target *t = (rondo_target *)target;
  int result = TOOL_OK;
  for (size_t i = 0; i < PATCH_COUNTS; i++) {
    rondo_patch_set_destroy(t->sets[i]);
    rondo_exec_destroy(t->execs[i]);
  }
  if (rondo_stream_destroy(t->stream)) result = tool_fail_status("a stream");
  for (size_t i = 0; i < PATCH_INPUTS; i++) {
    if (rondo_free(t->device, t->inputs[i])) result = tool_fail_status("an input");
  }
  if (rondo_free(t->device, t->other) || rondo_free(t->device, t->out)) result = tool_fail_status("a buffer");
  rondo_kernel_destroy(t->kernel);
  free(t);
  return result;
}

static rondo_status build(const rondo_target *t, uint32_t nodes, uint32_t readers, rondo_graph **out) {
  rondo_node last = {0};
  TOOL_TRY(rondo_graph_create(t->device, NULL, out));
  for (uint32_t i = 0; i < nodes; i++) {
    const void *in = t->inputs[i < readers ? 0 : 1 + i % (PATCH_INPUTS - 1)];
    TOOL_TRY(
        rondo_graph_add_kernel(*out, &last, i > 0, t->kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&in, &t->out), &last));
  }
  return RONDO_OK;
}

static rondo_status make_exec(rondo_target *t, uint32_t nodes, size_t which) {
  rondo_graph *graph = NULL;
  rondo_patch_input inputs[PATCH_INPUTS];
  rondo_status status = build(t, nodes, patch_readers[which], &graph);
  if (!status) status = rondo_instantiate(graph, NULL, &t->execs[which]);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  for (size_t i = 0; i < PATCH_INPUTS; i++) {
    inputs[i] =
        (rondo_patch_input){.address = t->inputs[i], .bytes = i == 0 ? patch_sizes[PATCH_SIZES - 1] : sizeof(uint32_t)};
  }
  if (!status) status = rondo_patch_set_create(t->execs[which], inputs, PATCH_INPUTS, NULL, &t->sets[which]);
  return status ? status : destroyed;
}

static rondo_status make_objects(rondo_target *t, uint32_t nodes) {
  const size_t most = patch_sizes[PATCH_SIZES - 1];
  TOOL_TRY(rondo_kernel_create(t->device, &bench_read_word, &t->kernel));
  TOOL_TRY(rondo_stream_create(t->device, NULL, &t->stream));
  for (size_t i = 0; i < PATCH_INPUTS; i++) TOOL_TRY(rondo_malloc(t->device, most, "input", &t->inputs[i]));
  TOOL_TRY(rondo_malloc(t->device, most, "other", &t->other));
  TOOL_TRY(rondo_malloc(t->device, sizeof(uint32_t), "out", &t->out));
  for (size_t i = 0; i < PATCH_COUNTS; i++) TOOL_TRY(make_exec(t, nodes, i));
  return RONDO_OK;
}

int patch_rondo_create(rondo_device *device, uint32_t nodes, patch_target **out) {
  rondo_target *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t) return tool_fail_memory("the benchmark");
  *t = (rondo_target){.base = {launch, copy, wait, destroy}, .device = device};
  if (!make_objects(t, nodes)) {
    *out = &t->base;
    return TOOL_OK;
  }
  const int result = tool_fail_status("the benchmark's graphs");
  (void)destroy(&t->base); /* the first failure is the one that is said */
  return result;
}
