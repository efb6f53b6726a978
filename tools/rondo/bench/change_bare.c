/* SPDX-License-Identifier: MIT
 * The CUDA driver without Rondo as what makes and changes execs, by the calls that stand for change_rondo.c's.
 */
#include <stdlib.h>

#include "bench/bare_driver.h"
#include "bench/bench_kernels.h"
#include "bench/change_target.h"
#include "common/tool.h"

typedef struct bare_target {
  change_target base;
  bare_device device;
  uint32_t nodes;
  bare_stream stream;
  uint64_t word;
  bare_graph graphs[2];
  bare_node middle;
  bare_exec exec;
} bare_target;

static bare_kernel_params kernel_params(const bare_target *t, void **args) {
  return (bare_kernel_params){.function = t->device.kernel,
                              .grid_x = 1,
                              .grid_y = 1,
                              .grid_z = 1,
                              .block_x = 1,
                              .block_y = 1,
                              .block_z = 1,
                              .params = args};
}

static int build(const bare_target *t, uint32_t value, bare_graph *out, bare_node *out_middle) {
  uint64_t word = t->word;
  void *args[] = {&word, &value};
  const bare_kernel_params params = kernel_params(t, args);
  bare_node last = NULL;
  int code = t->device.driver.graph_create(out, 0);
  for (uint32_t i = 0; i < t->nodes && !code; i++) {
    const bare_node before = last;
    code = t->device.driver.graph_add_kernel(&last, *out, &before, i > 0, &params);
    if (i == t->nodes / 2) *out_middle = last;
  }
  return code;
}

/* Rounds ---------------------------------------------------------------------------------------------------------- */

static int instantiate(const bare_target *t, bare_graph graph, bare_exec *out) {
  bare_instantiate_params params = {0};
  return t->device.driver.instantiate(out, graph, &params);
}

static int time_instantiate(const bare_target *t, samples *times) {
  bare_graph graph = NULL;
  bare_exec exec = NULL;
  bare_node middle;
  const uint64_t begin = clock_ns();
  int code = build(t, 1, &graph, &middle);
  if (!code) code = instantiate(t, graph, &exec);
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  if (exec) (void)t->device.driver.exec_destroy(exec);
  if (graph) (void)t->device.driver.graph_destroy(graph);
  return code;
}

static int time_update(const bare_target *t, samples *times) {
  for (size_t i = 0; i < 2; i++) {
    bare_update_result result;
    const uint64_t begin = clock_ns();
    const int code = t->device.driver.exec_update(t->exec, t->graphs[1 - i], &result);
    samples_add(times, (double)(clock_ns() - begin) / 1e3);
    if (code) return code;
  }
  return 0;
}

static int patch(const bare_target *t, uint32_t value) {
  uint64_t word = t->word;
  void *args[] = {&word, &value};
  const bare_kernel_params params = kernel_params(t, args);
  return t->device.driver.exec_set_kernel(t->exec, t->middle, &params);
}

static int time_launch(const bare_target *t, bool with_patch, uint32_t value, samples *times) {
  const uint64_t begin = clock_ns();
  int code = with_patch ? patch(t, value) : 0;
  if (!code) code = t->device.driver.graph_launch(t->exec, t->stream);
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  return code ? code : t->device.driver.stream_synchronize(t->stream);
}

static int run_round(change_target *target, change_times *times) {
  const bare_target *t = (const bare_target *)target;
  int code = time_instantiate(t, &times->instantiate);
  if (!code) code = time_update(t, &times->update);
  for (uint32_t i = 0; i < CHANGE_PATCHES && !code; i++) {
    code = time_launch(t, true, i, &times->patch);
    if (!code) code = time_launch(t, false, 0, &times->launch);
  }
  return bare_check(code, "making and changing graphs");
}

/* Beginning and end ----------------------------------------------------------------------------------------------- */

static int destroy(change_target *target) {
  bare_target *t = (bare_target *)target;
  const bare_driver *driver = &t->device.driver;
  if (t->exec) (void)driver->exec_destroy(t->exec);
  for (size_t i = 0; i < 2; i++) {
    if (t->graphs[i]) (void)driver->graph_destroy(t->graphs[i]);
  }
  if (t->word) {
    (void)driver->mem_free_async(t->word, t->stream);
    (void)driver->stream_synchronize(t->stream);
  }
  if (t->stream) (void)driver->stream_destroy(t->stream);
  bare_device_close(&t->device);
  free(t);
  return TOOL_OK;
}

static int make_objects(bare_target *t) {
  bare_node middle;
  int code = t->device.driver.stream_create(&t->stream, BARE_NON_BLOCKING);
  if (!code) code = t->device.driver.mem_alloc_async(&t->word, sizeof(uint32_t), t->stream);
  if (!code) code = t->device.driver.stream_synchronize(t->stream);
  if (!code) code = build(t, 1, &t->graphs[0], &t->middle);
  if (!code) code = build(t, 2, &t->graphs[1], &middle);
  if (!code) code = instantiate(t, t->graphs[0], &t->exec);
  return bare_check(code, "making graphs");
}

int change_bare_create(const char *device_name, uint32_t nodes, change_target **out) {
  *out = NULL;
  if (!bare_is_cuda(device_name)) return TOOL_OK;
  bare_target *t = calloc(1, sizeof *t);
  if (!t) return tool_fail_memory("the benchmark");
  *t = (bare_target){.base = {run_round, destroy}, .nodes = nodes};
  if (bare_device_open(device_name, &bench_set_word, &t->device) == TOOL_OK && make_objects(t) == TOOL_OK) {
    *out = &t->base;
    return TOOL_OK;
  }
  (void)destroy(&t->base);
  return TOOL_FAILURE;
}
