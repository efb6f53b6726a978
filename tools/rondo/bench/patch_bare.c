/* SPDX-License-Identifier: MIT
 * The CUDA driver without Rondo as what launches with an input elsewhere: each reader's parameters are set in the
 * executable graph, from structs that are ready.
 */
#include <stdlib.h>

#include "bench/bare_driver.h"
#include "bench/bench_kernels.h"
#include "bench/patch_target.h"
#include "common/tool.h"

typedef struct bare_target {
  patch_target base;
  bare_device device;
  bare_stream stream;
  uint64_t inputs[PATCH_INPUTS], other, out;
  bare_graph graphs[PATCH_COUNTS];
  bare_exec execs[PATCH_COUNTS];
  bare_node readers[PATCH_COUNTS][PATCH_MOST_READERS];
  bool is_moved[PATCH_COUNTS];
  uint64_t moving; /* what the readers' argument is */
  void *args[2];
  bare_kernel_params params;
} bare_target;

static int launch(patch_target *target, size_t which, bool moves) {
  bare_target *t = (bare_target *)target;
  int code = 0;
  t->is_moved[which] ^= moves;
  t->moving = t->is_moved[which] ? t->other : t->inputs[0];
  for (uint32_t i = 0; moves && i < patch_readers[which] && !code; i++)
    code = t->device.driver.exec_set_kernel(t->execs[which], t->readers[which][i], &t->params);
  if (!code) code = t->device.driver.graph_launch(t->execs[which], t->stream);
  return bare_check(code, "launching with an input elsewhere");
}

static int copy(patch_target *target, size_t size) {
  const bare_target *t = (const bare_target *)target;
  int code = t->device.driver.copy_async(t->inputs[0], t->other, patch_sizes[size], t->stream);
  if (!code) code = t->device.driver.graph_launch(t->execs[0], t->stream);
  return bare_check(code, "copying an input and launching");
}

static int wait(patch_target *target) {
  const bare_target *t = (const bare_target *)target;
  return bare_check(t->device.driver.stream_synchronize(t->stream), "waiting for launches");
}

static void free_memory(const bare_target *t, uint64_t address) {
  if (address) (void)t->device.driver.mem_free_async(address, t->stream);
}

static int destroy(patch_target *target) {
  bare_target *t = (bare_target *)target;
  const bare_driver *driver = &t->device.driver;
  for (size_t i = 0; i < PATCH_COUNTS; i++) {
    if (t->execs[i]) (void)driver->exec_destroy(t->execs[i]);
    if (t->graphs[i]) (void)driver->graph_destroy(t->graphs[i]);
  }
  for (size_t i = 0; i < PATCH_INPUTS; i++) free_memory(t, t->inputs[i]);
  free_memory(t, t->other);
  free_memory(t, t->out);
  if (t->stream) (void)driver->stream_synchronize(t->stream);
  if (t->stream) (void)driver->stream_destroy(t->stream);
  bare_device_close(&t->device);
  free(t);
  return TOOL_OK;
}

static int build(bare_target *t, uint32_t nodes, size_t which) {
  bare_node last = NULL;
  int code = t->device.driver.graph_create(&t->graphs[which], 0);
  for (uint32_t i = 0; i < nodes && !code; i++) {
    const bare_node before = last;
    const bool reads = i < patch_readers[which];
    t->moving = t->inputs[reads ? 0 : 1 + i % (PATCH_INPUTS - 1)];
    code = t->device.driver.graph_add_kernel(&last, t->graphs[which], &before, i > 0, &t->params);
    if (reads) t->readers[which][i] = last;
  }
  bare_instantiate_params params = {0};
  return code ? code : t->device.driver.instantiate(&t->execs[which], t->graphs[which], &params);
}

static int make_objects(bare_target *t, uint32_t nodes) {
  const bare_driver *driver = &t->device.driver;
  const size_t most = patch_sizes[PATCH_SIZES - 1];
  t->args[0] = &t->moving;
  t->args[1] = &t->out;
  t->params = (bare_kernel_params){.function = t->device.kernel,
                                   .grid_x = 1,
                                   .grid_y = 1,
                                   .grid_z = 1,
                                   .block_x = 1,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .params = t->args};
  int code = driver->stream_create(&t->stream, BARE_NON_BLOCKING);
  for (size_t i = 0; i < PATCH_INPUTS && !code; i++) code = driver->mem_alloc_async(&t->inputs[i], most, t->stream);
  if (!code) code = driver->mem_alloc_async(&t->other, most, t->stream);
  if (!code) code = driver->mem_alloc_async(&t->out, sizeof(uint32_t), t->stream);
  for (size_t i = 0; i < PATCH_COUNTS && !code; i++) code = build(t, nodes, i);
  return bare_check(code, "making graphs");
}

int patch_bare_create(const char *device_name, uint32_t nodes, patch_target **out) {
  *out = NULL;
  if (!bare_is_cuda(device_name)) return TOOL_OK;
  bare_target *t = calloc(1, sizeof *t);
  if (!t) return tool_fail_memory("the benchmark");
  *t = (bare_target){.base = {launch, copy, wait, destroy}};
  if (bare_device_open(device_name, &bench_read_word, &t->device) == TOOL_OK && make_objects(t, nodes) == TOOL_OK) {
    *out = &t->base;
    return TOOL_OK;
  }
  (void)destroy(&t->base);
  return TOOL_FAILURE;
}
