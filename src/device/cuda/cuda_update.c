/* SPDX-License-Identifier: MIT
 * Changing executables: other parameters of nodes, nodes on and off, and launches with inputs at other addresses
 * (patches). A change holds for later launches. The driver keeps what earlier launches were given.
 *
 * A kernel's arguments are in the exec's memory (rondo_executable_ops). A change of parameters gives the driver the
 * caller's values, and the caller writes them to that memory later. A patch writes addresses to that memory, then gives
 * the driver each node with sites, once. If the driver refuses a change of a node, the executable is built again.
 *
 * Threads: the owner of the executable.
 */
#include <assert.h>
#include <string.h>

#include "base/allocation.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_graph_build.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_host_function.h"
#include "device/cuda/cuda_operations.h"
#include "device/cuda/cuda_placeholder_memory.h"
#include "graph/launch_config.h"
#include "graph/semaphore_data.h"

/* Parameters ------------------------------------------------------------------------------------------------------- */

/* Earlier launches may still call the record that is replaced. The new record takes over its gate. */
static void replace_host(cuda_executable *executable, cuda_node *node, cuda_node *changed) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_gate_give(device, changed->as.host->gate);
  changed->as.host->gate = node->as.host->gate;
  node->as.host->next = executable->replaced;
  executable->replaced = node->as.host;
  node->as.host = NULL;
}

static rondo_status keep_kernel(cuda_executable *executable, rondo_kernel *kernel) {
  size_t i = 0;
  while (i < executable->replaced_kernels.count && executable->replaced_kernels.items[i] != kernel) i++;
  if (i < executable->replaced_kernels.count) return RONDO_OK;
  RONDO_TRY(rondo_array_push(cuda_allocator_of(executable), &executable->replaced_kernels, &kernel));
  rondo_kernel_retain(kernel);
  return RONDO_OK;
}

static rondo_status keep_semaphore(cuda_executable *executable, rondo_external_semaphore *semaphore) {
  size_t i = 0;
  while (i < executable->replaced_semaphores.count && executable->replaced_semaphores.items[i] != semaphore) i++;
  if (i < executable->replaced_semaphores.count) return RONDO_OK;
  RONDO_TRY(rondo_array_push(cuda_allocator_of(executable), &executable->replaced_semaphores, &semaphore));
  rondo_semaphore_retain(semaphore);
  return RONDO_OK;
}

/* Queues of a device say when launches there have ended: neither those of other devices, nor those by the driver.
 * Unloading code waits for all work of its device, also the driver's; destroying a semaphore does not. */
static rondo_status keep_replaced(cuda_executable *executable, const cuda_node *node, const cuda_node *changed) {
  const bool is_elsewhere = &node->device->base != executable->base.device;
  const bool has_semaphores = cuda_has_semaphores(node) && (is_elsewhere || executable->base.is_handed_out);
  const bool has_kernel = node->kernel != changed->kernel && is_elsewhere;
  if (!has_kernel && !has_semaphores) return RONDO_OK;
  RONDO_TRY(cuda_executable_mark_launches(executable));
  if (has_kernel) return keep_kernel(executable, node->kernel);
  for (size_t i = 0; i < node->as.semaphores.count; i++)
    RONDO_TRY(keep_semaphore(executable, node->as.semaphores.items[i]));
  return RONDO_OK;
}

static void exchange(cuda_node *one, cuda_node *other) {
  const cuda_node kept = *one;
  *one = *other;
  *other = kept;
}

/* Builds the executable again if the driver refused a change in place. If that fails too, the refusal is reported. */
static rondo_status rebuild_unless(cu_result code, cuda_executable *executable, cuda_node *node, cuda_node *changed) {
  cuda_device *device = cuda_device_of(executable->base.device);
  if (code == CU_OK) return RONDO_OK;
  rondo_saved_error first, before;
  rondo_error_save(&before);
  const rondo_status status = cuda_check_node(device, code, changed, "changing ", executable->label);
  if (status == RONDO_OUT_OF_MEMORY || status == RONDO_DEVICE_LOST) return status;
  rondo_error_save(&first);
  exchange(node, changed);
  const rondo_status rebuilt = cuda_executable_rebuild(executable);
  exchange(node, changed);
  if (rebuilt != RONDO_OK) return rondo_error_raise(&first);
  rondo_error_restore(&before);
  return RONDO_OK;
}

static rondo_status change_node(cuda_executable *executable, const cuda_node *changed, cu_result *out_code) {
  cuda_placeholders placeholders;
  const bool is_copy = changed->kind == RONDO_NODE_COPY;
  if (!is_copy && changed->kind != RONDO_NODE_MEMORY_OPERATIONS) {
    *out_code = cuda_node_change(executable, &executable->built, changed);
    return RONDO_OK;
  }
  rondo_status status = cuda_placeholders_begin(cuda_device_of(executable->base.device), &placeholders);
  if (status == RONDO_OK)
    status = is_copy ? cuda_placeholders_add_copy(&placeholders, &changed->as.copy)
                     : cuda_operations_add_placeholders(&placeholders, changed->storage,
                                                        changed->storage_bytes / sizeof(cu_memory_operation));
  if (status == RONDO_OK) *out_code = cuda_node_change(executable, &executable->built, changed);
  cuda_placeholders_end(&placeholders);
  return status;
}

/* The driver changes no attributes of an executable, and no edges. */
static bool has_attributes(const cuda_node *node, const cuda_node *changed) {
  if (!node->is_configured && !changed->is_configured) return true;
  const bool was_early = node->is_configured && node->config->programmatic;
  const bool is_early = changed->is_configured && changed->config->programmatic;
  return was_early == is_early && rondo_launch_config_same_attributes(node->config, changed->config);
}

/* `refused` is the code with which the driver refused to overwrite the parameters. CU_OK: they do not fit in place. */
static rondo_status replace_node(cuda_executable *executable, cuda_node *node, const rondo_lowered_node *lowered,
                                 cu_result refused) {
  cuda_node changed = {0};
  assert(lowered->params->kind == node->kind);
  RONDO_TRY(cuda_node_make(executable, lowered, &changed));
  changed.first = node->first;
  changed.enabled = node->enabled;
  changed.captured = node->captured;
  const rondo_status kept = keep_replaced(executable, node, &changed);
  if (kept != RONDO_OK) {
    cuda_node_free(executable, &changed);
    return kept;
  }
  const bool is_host = node->kind == RONDO_NODE_HOST;
  cuda_gate *const own_gate = is_host ? changed.as.host->gate : NULL;
  if (is_host) changed.as.host->gate = node->as.host->gate;
  const bool is_other = !has_attributes(node, &changed);
  cu_result code = refused == CU_OK && is_other ? CU_GRAPH_EXEC_UPDATE_FAILURE : refused;
  rondo_status status = code == CU_OK ? change_node(executable, &changed, &code) : RONDO_OK;
  if (status == RONDO_OK) status = rebuild_unless(code, executable, node, &changed);
  if (is_host) changed.as.host->gate = own_gate;
  if (status != RONDO_OK) {
    cuda_node_free(executable, &changed);
    return status;
  }
  cuda_executable_reap_replaced(executable);
  if (is_host) replace_host(executable, node, &changed);
  if (node->kernel == changed.kernel) changed.args = node->args;
  changed.name = node->name;
  changed.where = node->where;
  cuda_node_free(executable, node);
  *node = changed;
  cuda_note_direct(executable);
  return RONDO_OK;
}

/* Whether the node already runs with this configuration. */
static inline bool has_config(const cuda_node *node, const rondo_kernel_node *kernel) {
  rondo_launch_config config;
  if (__builtin_expect(!node->is_configured && kernel->config == NULL, 1)) return true;
  const bool is_default = !rondo_launch_config_resolve(kernel, &config);
  return rondo_launch_config_same(node->config, is_default ? NULL : &config);
}

/* The same kernel, name and configuration: its arguments can be overwritten. */
static inline bool fits(const cuda_node *node, const rondo_node_params *params) {
  return node->kind == RONDO_NODE_KERNEL && params->kind == RONDO_NODE_KERNEL &&
         node->kernel == params->as.kernel.kernel && !node->is_foreign && has_config(node, &params->as.kernel) &&
         (node->name == params->name || strcmp(node->name, params->name) == 0);
}

static inline void set_grid(cu_kernel_params *params, rondo_grid grid) {
  params->grid_x = grid.x;
  params->grid_y = grid.y;
  params->grid_z = grid.z;
}

/* Changes a kernel's grid and arguments in place, which the driver allows in any capture mode (docs/cuda-probes.md, 7).
 * Until set_nodes ends, the node reads the arguments where the caller has them. */
static inline cu_result overwrite(cuda_executable *executable, cuda_node *node, const rondo_lowered_node *lowered) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  const rondo_kernel_node *kernel = &lowered->params->as.kernel;
  cu_kernel_params *own = &node->as.kernel;
  const rondo_grid before = {own->grid_x, own->grid_y, own->grid_z};
  set_grid(own, kernel->grid);
  own->params = (void **)(uintptr_t)kernel->args; /* the driver only reads */
  const cu_result code = api->exec_set_kernel(executable->built.exec, executable->handles[node->first], own);
  if (__builtin_expect(code == CU_OK, 1)) return code;
  cuda_node_bind(node, node->args);
  set_grid(own, before);
  return code;
}

/* Loads what a change needs while the driver works on the change before. */
static inline void fetch(const cuda_executable *executable, const rondo_node_change *change) {
  const char *node = (const char *)&executable->nodes[change->index];
  __builtin_prefetch(node, 1);
  __builtin_prefetch(node + 64, 1);
  if (change->node.params->kind == RONDO_NODE_KERNEL) __builtin_prefetch(change->node.params->as.kernel.args);
}

/* Kernels read their arguments from the exec's memory again. If a node now has another kernel, the caller calls rebind
 * next. */
static void bind_nodes(cuda_executable *executable, const rondo_node_change *changes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    cuda_node *node = &executable->nodes[changes[i].index];
    if (node->kind == RONDO_NODE_KERNEL) cuda_node_bind(node, node->args);
  }
}

/* `scope` was entered for work; NULL: it has the relaxed mode already. Returns how many nodes were changed. */
static size_t change_nodes(cuda_executable *executable, const rondo_node_change *changes, size_t count,
                           cuda_scope *scope, rondo_status *out_status) {
  *out_status = RONDO_OK;
  for (size_t i = 0; i < count; i++) {
    assert(changes[i].index < executable->count);
    cuda_node *node = &executable->nodes[changes[i].index];
    const rondo_lowered_node *then = &changes[i].node;
    cu_result code = CU_OK;
    if (i + 1 < count) fetch(executable, &changes[i + 1]);
    if (fits(node, then->params)) {
      code = overwrite(executable, node, then);
      if (__builtin_expect(code == CU_OK, 1)) continue;
    }
    if (scope != NULL) cuda_relax(scope);
    *out_status = replace_node(executable, node, then, code);
    if (*out_status != RONDO_OK) return i;
  }
  return count;
}

static size_t set_nodes(cuda_executable *executable, const rondo_node_change *changes, size_t count, cuda_scope *scope,
                        rondo_status *out_status) {
  executable->is_marked = false;
  const size_t done = change_nodes(executable, changes, count, scope, out_status);
  bind_nodes(executable, changes, count);
  return done;
}

void cuda_executable_rebind(rondo_executable *base, size_t index, const rondo_lowered_node *lowered) {
  cuda_node *node = &((cuda_executable *)base)->nodes[index];
  const bool is_kernel = node->kind == RONDO_NODE_KERNEL;
  assert(lowered == NULL || lowered->params->kind == node->kind);
  assert(lowered == NULL || !is_kernel || lowered->params->as.kernel.kernel == node->kernel);
  node->name = lowered == NULL ? "" : lowered->params->name;
  node->where = lowered == NULL ? (rondo_node_where){.number = node->where.number} : lowered->where;
  if (is_kernel) cuda_node_bind(node, lowered == NULL ? NULL : lowered->params->as.kernel.args);
}

rondo_status cuda_executable_set_params(rondo_executable *base, size_t index, const rondo_lowered_node *lowered) {
  const rondo_node_change change = {.index = (uint32_t)index, .node = *lowered};
  CUDA_SCOPE(scope);
  rondo_status status;
  RONDO_TRY(cuda_enter_for_work(cuda_device_of(base->device), &scope));
  (void)set_nodes((cuda_executable *)base, &change, 1, &scope, &status);
  return status;
}

rondo_status cuda_executable_set_many(rondo_executable *base, const rondo_node_change *changes, size_t count,
                                      size_t *out_done) {
  CUDA_SCOPE(scope);
  rondo_status status;
  *out_done = 0;
  RONDO_TRY(cuda_enter(cuda_device_of(base->device), &scope));
  *out_done = set_nodes((cuda_executable *)base, changes, count, NULL, &status);
  return status;
}

rondo_status cuda_executable_set_enabled(rondo_executable *base, size_t index, bool enabled) {
  cuda_executable *executable = (cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  cuda_node *node = &executable->nodes[index];
  CUDA_SCOPE(scope);
  if (node->enabled == enabled) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = cuda_node_switch(executable, &executable->built, executable->handles, node, enabled);
  if (code != CU_OK && cuda_node_parts(node) > 1) {
    executable->is_stale = true; /* some parts may be switched */
    cuda_note_direct(executable);
  }
  RONDO_TRY(cuda_check_node(device, code, node, enabled ? "switching on " : "switching off ", executable->label));
  node->enabled = enabled;
  executable->disabled_count += enabled ? (size_t)-1 : 1;
  if (node->kind == RONDO_NODE_KERNEL) executable->kernel_count += enabled ? 1 : (size_t)-1;
  return RONDO_OK;
}

/* Patches ---------------------------------------------------------------------------------------------------------- */

static inline void *site_in_kernel(const cuda_node *node, const rondo_patch_site *site) {
  return (unsigned char *)(uintptr_t)node->args[site->parameter] + site->offset;
}

/* `storage` holds the parameters of a captured copy as the driver described them. They are out of date now. */
static void *site_in_copy(cuda_executable *executable, cuda_node *node, const rondo_patch_site *site) {
  rondo_release(cuda_allocator_of(executable), node->storage, 1, node->storage_bytes);
  node->storage = NULL;
  node->storage_bytes = 0;
  return site->parameter == RONDO_SITE_DST ? (void *)&node->as.copy.dst : (void *)&node->as.copy.src;
}

static inline void *site_in(cuda_executable *executable, cuda_node *node, const rondo_patch_site *site) {
  if (__builtin_expect(node->kind == RONDO_NODE_KERNEL, 1)) return site_in_kernel(node, site);
  return node->kind == RONDO_NODE_COPY ? site_in_copy(executable, node, site) : &node->as.fill.dst;
}

/* Writes the addresses to the nodes; with `back`, the addresses from before. True if some nodes are copies. */
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

/* The node that the driver refused, and the thread's last error before that. */
typedef struct cuda_refusal {
  cuda_node *node;
  rondo_saved_error before;
} cuda_refusal;

/* Updates a copy or fill, or reports `code`, with which the driver refused a kernel. */
static __attribute__((noinline)) rondo_status update_other(cuda_executable *executable, cuda_node *node, cu_result code,
                                                           cuda_refusal *out) {
  out->node = node;
  rondo_error_save(&out->before);
  if (node->kind == RONDO_NODE_FILL) code = cuda_node_change(executable, &executable->built, node);
  if (node->kind == RONDO_NODE_COPY) RONDO_TRY(change_node(executable, node, &code));
  return cuda_check_node(cuda_device_of(executable->base.device), code, node, "patching ", executable->label);
}

static inline rondo_status update_node(cuda_executable *executable, cuda_node *node, cuda_refusal *out) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  cu_result code = CU_OK;
  if (__builtin_expect(node->kind == RONDO_NODE_KERNEL, 1)) {
    code = api->exec_set_kernel(executable->built.exec, executable->handles[node->first], &node->as.kernel);
    if (__builtin_expect(code == CU_OK, 1)) return RONDO_OK;
  }
  return update_other(executable, node, code, out);
}

/* Passes the nodes of the sites to the driver. If `only` is not 0: only those that the run of this number updated. Ends
 * at the first failure. */
static rondo_status update_nodes(cuda_executable *executable, const rondo_patch_change *changes, size_t count,
                                 uint64_t only, cuda_refusal *out) {
  const uint64_t run = ++executable->patch_runs;
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < changes[i].count; k++) {
      cuda_node *node = &executable->nodes[changes[i].sites[k].node];
      if (node->patched == run || (only != 0 && node->patched != only)) continue;
      const rondo_status status = update_node(executable, node, out);
      if (status != RONDO_OK) return status;
      node->patched = run;
    }
  }
  return RONDO_OK;
}

/* Restores the nodes that the last run updated. */
static void undo_patch(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  const uint64_t run = executable->patch_runs;
  rondo_saved_error first;
  cuda_refusal refusal;
  rondo_error_save(&first);
  (void)write_sites(executable, changes, count, true);
  if (update_nodes(executable, changes, count, run, &refusal) != RONDO_OK) executable->is_stale = true;
  cuda_note_direct(executable);
  rondo_error_restore(&first);
}

/* The driver does not change a copy from one kind of memory to another: the executable is built again. */
static bool wants_rebuild(rondo_status status, const cuda_node *failed) {
  return failed->kind == RONDO_NODE_COPY && status != RONDO_OUT_OF_MEMORY && status != RONDO_DEVICE_LOST;
}

/* The new executable has all nodes as they are now. They count as updated by the last run, so undo_patch restores
 * them. */
static rondo_status rebuild_patched(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  RONDO_TRY(cuda_executable_rebuild(executable));
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < changes[i].count; k++)
      executable->nodes[changes[i].sites[k].node].patched = executable->patch_runs;
  return RONDO_OK;
}

static rondo_status patch_inside(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  cuda_refusal refusal;
  rondo_status status = update_nodes(executable, changes, count, 0, &refusal);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  if (wants_rebuild(status, refusal.node)) status = rebuild_patched(executable, changes, count);
  if (status == RONDO_OK)
    rondo_error_restore(&refusal.before);
  else
    undo_patch(executable, changes, count);
  return status;
}

/* Only copies need the relaxed mode, because memory is mapped while they change. */
static rondo_status enter_to_patch(cuda_device *device, bool has_copies, cuda_scope *out) {
  return has_copies ? cuda_enter(device, out) : cuda_enter_for_work(device, out);
}

static rondo_status patch(cuda_executable *executable, const rondo_patch_change *changes, size_t count) {
  CUDA_SCOPE(scope);
  const bool has_copies = write_sites(executable, changes, count, false);
  const rondo_status status = enter_to_patch(cuda_device_of(executable->base.device), has_copies, &scope);
  if (__builtin_expect(status != RONDO_OK, 0)) {
    (void)write_sites(executable, changes, count, true);
    return status;
  }
  return patch_inside(executable, changes, count);
}

rondo_status cuda_queue_launch_patched(rondo_queue *queue, rondo_executable *base, const rondo_patch_change *changes,
                                       size_t count) {
  cuda_executable *executable = (cuda_executable *)base;
  RONDO_TRY(patch(executable, changes, count));
  const rondo_status status = cuda_queue_launch(queue, base);
  if (__builtin_expect(status == RONDO_OK, 1)) return RONDO_OK;
  CUDA_SCOPE(scope);
  cuda_enter_to_free(cuda_device_of(base->device), &scope);
  undo_patch(executable, changes, count);
  return status;
}
