/* SPDX-License-Identifier: MIT
 * Launches with inputs at other addresses. Nodes keep their parameters as the driver takes them, so that patching is to
 * write the address where the node has it and to give the driver the node again; each node once, however many of its
 * sites change. What is under way keeps what it was launched with: that is the driver's rule for its executables.
 */
#include <string.h>

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_patch.h"

static inline void *site_in_kernel(const cuda_node *node, const rondo_patch_site *site) {
  return (unsigned char *)(uintptr_t)node->args[site->parameter] + site->offset;
}

/* A captured copy is no longer the one that the driver described. */
static void *site_in_copy(cuda_executable *executable, cuda_node *node, const rondo_patch_site *site) {
  rondo_release(&executable->small, node->storage, 1, node->storage_bytes);
  node->storage = NULL;
  node->storage_bytes = 0;
  return site->parameter == RONDO_SITE_DST ? (void *)&node->as.copy.dst : (void *)&node->as.copy.src;
}

static inline void *site_in(cuda_executable *executable, cuda_node *node, const rondo_patch_site *site) {
  if (__builtin_expect(node->kind == RONDO_NODE_KERNEL, 1)) return site_in_kernel(node, site);
  return node->kind == RONDO_NODE_COPY ? site_in_copy(executable, node, site) : &node->as.fill.dst;
}

/* Writes the addresses into the nodes; `back`: those from before. True when there are copies among these. */
static inline bool write_sites(cuda_executable *executable, const rondo_patch_change *changes, size_t count,
                               bool back) {
  bool has_copies = false;
  for (size_t i = 0; i < count; i++) {
    const rondo_patch_change *change = &changes[i];
    const uint64_t address = back ? change->before : change->address;
    for (size_t k = 0; k < change->count; k++) {
      const rondo_patch_site *site = &change->sites[k];
      cuda_node *node = &executable->nodes[site->node];
      const uint64_t value = address + site->addend;
      memcpy(site_in(executable, node, site), &value, sizeof value);
      has_copies |= node->kind == RONDO_NODE_COPY;
    }
  }
  return has_copies;
}

/* The node that was refused, and the thread's last error from before. */
typedef struct cuda_refusal {
  cuda_node *node;
  rondo_saved_error before;
} cuda_refusal;

/* What is not a kernel of the executable's, and what the driver refused. */
static __attribute__((noinline)) rondo_status set_otherwise(cuda_executable *executable, cuda_node *node,
                                                            cu_result code, cuda_refusal *out) {
  out->node = node;
  rondo_error_save(&out->before);
  if (node->kind == RONDO_NODE_FILL) code = cuda_node_change(executable, &executable->built, node);
  if (node->kind == RONDO_NODE_COPY) RONDO_TRY(cuda_executable_change(executable, node, &code));
  return cuda_check_node(cuda_device_of(executable->base.device), code, node, "patching ", executable->label);
}

static inline rondo_status set_node(cuda_executable *executable, cuda_node *node, cuda_refusal *out) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  cu_result code = CU_OK;
  if (__builtin_expect(node->kind == RONDO_NODE_KERNEL, 1)) {
    code = api->exec_set_kernel(executable->built.exec, executable->handles[node->first], &node->as.kernel);
    if (__builtin_expect(code == CU_OK, 1)) return RONDO_OK;
  }
  return set_otherwise(executable, node, code, out);
}

/* Gives the driver the nodes of the sites; of run `only`, unless that is 0. The first failure ends it. */
static rondo_status set_nodes(cuda_executable *executable, const rondo_patch_change *changes, size_t count,
                              uint64_t only, cuda_refusal *out) {
  const uint64_t run = ++executable->patch_runs;
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < changes[i].count; k++) {
      cuda_node *node = &executable->nodes[changes[i].sites[k].node];
      if (node->patched == run || (only != 0 && node->patched != only)) continue;
      const rondo_status status = set_node(executable, node, out);
      if (status != RONDO_OK) return status;
      node->patched = run;
    }
  }
  return RONDO_OK;
}

/* The nodes that the last run has set. */
static void take_back(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  const uint64_t run = executable->patch_runs;
  rondo_saved_error first;
  cuda_refusal refusal;
  rondo_error_save(&first);
  (void)write_sites(executable, changes, count, true);
  if (set_nodes(executable, changes, count, run, &refusal) != RONDO_OK) executable->is_stale = true;
  cuda_note_direct(executable);
  rondo_error_restore(&first);
}

/* The driver changes no copy from one kind of memory to another: the executable is then made anew. */
static bool wants_rebuild(rondo_status status, const cuda_node *failed) {
  return failed->kind == RONDO_NODE_COPY && status != RONDO_OUT_OF_MEMORY && status != RONDO_DEVICE_LOST;
}

/* What was made anew has all nodes as they are now: to be taken back, they are those of the last run. */
static rondo_status rebuild(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  RONDO_TRY(cuda_executable_rebuild(executable));
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < changes[i].count; k++)
      executable->nodes[changes[i].sites[k].node].patched = executable->patch_runs;
  return RONDO_OK;
}

static rondo_status patch_inside(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  cuda_refusal refusal;
  rondo_status status = set_nodes(executable, changes, count, 0, &refusal);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  if (wants_rebuild(status, refusal.node)) status = rebuild(executable, changes, count);
  if (status == RONDO_OK)
    rondo_error_restore(&refusal.before);
  else
    take_back(executable, changes, count);
  return status;
}

/* Nodes but copies are changed as work is submitted: nothing is mapped for them, and no capture minds. */
static rondo_status enter(cuda_device *device, bool has_copies, cuda_scope *out) {
  return has_copies ? cuda_enter(device, out) : cuda_enter_for_work(device, out);
}

static rondo_status patch(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  cuda_scope scope;
  const bool has_copies = write_sites(executable, changes, count, false);
  rondo_status status = enter(cuda_device_of(executable->base.device), has_copies, &scope);
  if (__builtin_expect(status != RONDO_OK, 0)) {
    (void)write_sites(executable, changes, count, true);
    return status;
  }
  status = patch_inside(executable, changes, count);
  cuda_leave(&scope);
  return status;
}

rondo_status cuda_queue_launch_patched(rondo_queue *queue, rondo_executable *base, const rondo_patch_change *changes,
                                       size_t count) {
  cuda_executable *executable = (cuda_executable *)base;
  RONDO_TRY(patch(executable, changes, count));
  const rondo_status status = cuda_queue_launch(queue, base);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  cuda_scope scope;
  cuda_enter_to_free(cuda_device_of(base->device), &scope);
  take_back(executable, changes, count);
  cuda_leave(&scope);
  return status;
}
