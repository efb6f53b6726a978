/* SPDX-License-Identifier: MIT
 * Measures how long each node of an executable takes, with a second graph of the same nodes in which each node is
 * between two event records. A node begins when the second records of its predecessors are done, so that parallel nodes
 * do not count. Programmatic edges count as full ones. Threads: the executable's owner.
 */
#include <assert.h>

#include "base/allocation.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_graph_build.h"
#include "device/cuda/cuda_graph_node.h"

/* Working memory for making the second graph. */
typedef struct timed_parts {
  cu_graph_node *ends;   /* the second record of each node so far */
  cu_graph_node *before; /* working memory for the predecessors of a node */
  cu_graph_node *inner;  /* working memory for the parts of a node */
} timed_parts;

/* Node i between stamps 2i and 2i + 1. A disabled node is an empty one. */
static cu_result add_timed(cuda_executable *executable, size_t i, const timed_parts *parts) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  const cuda_node empty = {.kind = RONDO_NODE_EMPTY};
  const cuda_node *node = executable->nodes[i].enabled ? &executable->nodes[i] : &empty;
  const cu_graph graph = executable->timed.graph;
  cu_graph_node begin;
  size_t count = 0;
  for (uint32_t e = executable->predecessor_start[i]; e < executable->predecessor_start[i + 1]; e++)
    parts->before[count++] = parts->ends[executable->predecessors[e]];
  for (size_t e = 0; e < executable->programmatic_count; e++)
    if (executable->programmatic[e].to == i) parts->before[count++] = parts->ends[executable->programmatic[e].from];
  cu_result code = api->graph_add_event_record(&begin, graph, parts->before, count, executable->stamps[2 * i]);
  if (code == CU_OK) code = cuda_node_add(executable, node, graph, &begin, 1, parts->inner);
  const cu_graph_node *last = &parts->inner[cuda_node_parts(node) - 1];
  if (code == CU_OK) code = api->graph_add_event_record(&parts->ends[i], graph, last, 1, executable->stamps[2 * i + 1]);
  return code;
}

static rondo_status add_all_timed(cuda_executable *executable, const timed_parts *parts) {
  cuda_device *device = cuda_device_of(executable->base.device);
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    RONDO_TRY(cuda_check_node(device, add_timed(executable, i, parts), node, "timing ", executable->label));
  }
  return RONDO_OK;
}

static rondo_status make_timed_graph(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t count = executable->count, room = 2 * count + executable->handle_count;
  cu_graph_node *nodes;
  RONDO_TRY(cuda_check(device, device->api->graph_create(&executable->timed.graph, 0), "making a graph on device '%s'",
                       device->base.name));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *nodes, &nodes));
  const timed_parts parts = {nodes, nodes + count, nodes + 2 * count};
  const rondo_status status = add_all_timed(executable, &parts);
  rondo_release(allocator, nodes, room, sizeof *nodes);
  return status;
}

static rondo_status make_stamps(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const size_t count = 2 * executable->count;
  RONDO_TRY(rondo_allocate_items(cuda_allocator_of(executable), count, sizeof(cu_event), &executable->stamps));
  for (size_t i = 0; i < count; i++)
    RONDO_TRY(cuda_check(device, device->api->event_create(&executable->stamps[i], CU_EVENT_FLAG_DEFAULT),
                         "making %zu events on device '%s'", count, device->base.name));
  return RONDO_OK;
}

static rondo_status make_timed_exec(cuda_executable *executable, void *unused) {
  (void)unused;
  RONDO_TRY(make_timed_graph(executable));
  return cuda_instantiate(executable, &executable->timed, NULL);
}

static rondo_status make_timed(cuda_executable *executable) {
  RONDO_TRY(make_stamps(executable));
  return cuda_with_placeholders(executable, make_timed_exec, NULL);
}

static void free_timed(cuda_executable *executable) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  cuda_built_free(executable, &executable->timed);
  for (size_t i = 0; executable->stamps != NULL && i < 2 * executable->count; i++)
    if (executable->stamps[i] != NULL)
      (void)api->event_destroy(executable->stamps[i]); /* gone already on a lost device */
  rondo_release(cuda_allocator_of(executable), executable->stamps, 2 * executable->count, sizeof(cu_event));
  executable->stamps = NULL;
}

rondo_status cuda_set_timing(rondo_executable *base, bool on) {
  cuda_executable *executable = (cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  cuda_enter_to_free(device, &scope);
  free_timed(executable);
  const rondo_status status = on ? make_timed(executable) : RONDO_OK;
  if (status != RONDO_OK) free_timed(executable);
  cuda_note_direct(executable);
  return status;
}

void cuda_times(const rondo_executable *base, uint64_t *out_ns) {
  const cuda_executable *executable = (const cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  const rondo_status entered = cuda_enter(device, &scope);
  assert(executable->stamps != NULL || executable->count == 0); /* timing is on */
  for (size_t i = 0; i < executable->count; i++) {
    float milliseconds = 0; /* if the device is lost */
    if (entered == RONDO_OK)
      (void)device->api->event_elapsed_time(&milliseconds, executable->stamps[2 * i], executable->stamps[2 * i + 1]);
    out_ns[i] = (uint64_t)((double)milliseconds * 1e6);
  }
}
