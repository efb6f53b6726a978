/* SPDX-License-Identifier: MIT
 * Checks before a launch that the memory is allocated that the exec's nodes declare to access (GM-18): in copies,
 * fills, and pointer parameters of kernels, also in child graphs. It ignores memory that the exec itself allocates or
 * frees, memory of an arena that the exec was recorded into, and disabled nodes.
 *
 * The device counts the allocations that end. An exec stores the count at which everything was allocated, so that a
 * warm launch compares two numbers. If they differ, each range is looked up again, usually without a lock.
 *
 * Threads: as the exec.
 */
#include <stdio.h>
#include <string.h>

#include "exec/launch/declared_access.h"
#include "exec/patch/patch.h"
#include "graph/graph.h"
#include "graph/node_params.h"
#include "memory/arena/arena.h"
#include "memory/arena/arena_recording.h"
#include "memory/memory_errors.h"

enum { REMEMBERED = 8 };

/* A walk over the nodes. It remembers ranges that are allocated, because adjacent nodes often access the same memory.
 */
typedef struct access_check {
  const rondo_exec *exec;
  rondo_device_memory *memory;    /* of the exec's device; NULL: it has none */
  const rondo_freed_marks *since; /* in it; NULL: unknown */
  rondo_range_found found[REMEMBERED];
  size_t next;
} access_check;

static bool is_remembered(const access_check *self, uintptr_t address, size_t bytes) {
  for (size_t i = 0; i < REMEMBERED; i++) {
    const rondo_range_found *at = &self->found[i];
    if (address >= at->begin && address < at->end && bytes <= at->end - address) return true;
  }
  return false;
}

/* The memory of another device of the exec; NULL: it has none. */
static rondo_device_memory *other_memory(const access_check *self, size_t index) {
  return rondo_device_memory_made(self->exec->graph->others.items[index].device);
}

static bool find_plain(const access_check *self, const void *address, size_t bytes, rondo_range_found *out) {
  if (self->memory != NULL && rondo_memory_find_plain(self->memory, address, bytes, out)) return true;
  for (size_t i = 0; i < self->exec->graph->others.count; i++) {
    const rondo_device_memory *memory = other_memory(self, i);
    if (memory != NULL && rondo_memory_find_plain(memory, address, bytes, out)) return true;
  }
  return false;
}

/* Whether the range is allocated, or is memory that this check ignores. */
static bool is_fine(access_check *self, uint32_t index, const void *address, size_t bytes) {
  rondo_range_found found;
  if (address == NULL || is_remembered(self, (uintptr_t)address, bytes)) return true;
  if (find_plain(self, address, bytes, &found)) {
    self->found[self->next++ % REMEMBERED] = found;
    return true;
  }
  const rondo_arena *arena = rondo_arena_of(self->exec->lowering.origins.items[index].graph);
  if (arena != NULL && rondo_arena_owns(arena, address)) return true;
  return self->exec->memory != NULL && rondo_exec_memory_covers(self->exec->memory, address);
}

/* In the memory of each device of the exec. */
static rondo_status check_still(const access_check *self, const char *call, const char *what, const void *address,
                                size_t bytes) {
  if (self->memory != NULL) RONDO_TRY(rondo_memory_check_still(self->memory, call, what, address, bytes, self->since));
  for (size_t i = 0; i < self->exec->graph->others.count; i++) {
    rondo_device_memory *memory = other_memory(self, i);
    if (memory != NULL) RONDO_TRY(rondo_memory_check_still(memory, call, what, address, bytes, NULL));
  }
  return RONDO_OK;
}

/* The slow check, for a range that is not known to be allocated. */
static rondo_status check_range(const access_check *self, const char *call, uint32_t index, const char *what,
                                const void *address, size_t bytes) {
  if (check_still(self, call, what, address, bytes) == RONDO_OK) return RONDO_OK;
  char node[RONDO_LABEL_BYTES], graph[RONDO_LABEL_BYTES], where[2 * RONDO_LABEL_BYTES + 40];
  snprintf(where, sizeof where, "%s of %s: %s", call, rondo_graph_label(graph, self->exec->graph),
           rondo_lowering_label(&self->exec->lowering, index, node));
  const rondo_status status = check_still(self, where, what, address, bytes);
  if (status == RONDO_OK) return RONDO_OK;
  const rondo_error *why = rondo_last_error();
  return rondo_fail_node(status, why->reason, self->exec->lowering.nodes.items[index].where.number, "%s", why->message);
}

static rondo_status check_kernel(access_check *self, const char *call, uint32_t index, const rondo_kernel_node *work) {
  for (uint32_t i = 0; i < work->kernel->parameter_count; i++) {
    if (work->kernel->parameters[i].access == RONDO_ACCESS_SCALAR) continue;
    const void *address;
    char what[32];
    memcpy(&address, work->args[i], sizeof address);
    const size_t bytes = work->arg_bytes == NULL ? 0 : work->arg_bytes[i];
    if (is_fine(self, index, address, bytes)) continue;
    snprintf(what, sizeof what, "memory of parameter %u", (unsigned)i);
    RONDO_TRY(check_range(self, call, index, what, address, bytes));
  }
  return RONDO_OK;
}

static rondo_status check_operations(access_check *self, const char *call, uint32_t index,
                                     const rondo_memory_operations_node *work) {
  for (size_t i = 0; i < work->count; i++) {
    const rondo_memory_operation *operation = &work->operations[i];
    const size_t bytes = rondo_operation_bytes(operation);
    char what[48];
    if (operation->address == NULL || is_fine(self, index, operation->address, bytes)) continue;
    snprintf(what, sizeof what, "word of memory operation %zu", i);
    RONDO_TRY(check_range(self, call, index, what, operation->address, bytes));
  }
  return RONDO_OK;
}

static rondo_status check_node(access_check *self, const char *call, uint32_t index) {
  const rondo_node_params *params = rondo_exec_params(self->exec, index);
  rondo_extent extents[RONDO_MOST_EXTENTS];
  if (self->exec->disabled[index]) return RONDO_OK;
  if (params->kind == RONDO_NODE_KERNEL) return check_kernel(self, call, index, &params->as.kernel);
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return check_operations(self, call, index, &params->as.memory_operations);
  if (params->kind != RONDO_NODE_COPY && params->kind != RONDO_NODE_FILL) return RONDO_OK;
  const size_t count = rondo_node_extents(params, extents);
  for (size_t i = 0; i < count; i++)
    if (!is_fine(self, index, extents[i].address, extents[i].bytes))
      RONDO_TRY(check_range(self, call, index, extents[i].what, extents[i].address, extents[i].bytes));
  return RONDO_OK;
}

static access_check begin(const rondo_exec *exec) {
  const bool is_known = !exec->is_unsure && exec->patched == NULL;
  return (access_check){
      .exec = exec, .memory = rondo_device_memory_made(exec->device), .since = is_known ? &exec->unfreed : NULL};
}

static bool has_memory(const access_check *self) { return self->memory != NULL || self->exec->graph->others.count > 0; }

static uint64_t count_ended(const rondo_exec *exec) {
  const rondo_graph *graph = exec->graph;
  uint64_t ended = atomic_load_explicit(&exec->device->allocations_ended, memory_order_acquire);
  for (size_t i = 0; i < graph->others.count; i++)
    ended += atomic_load_explicit(&graph->others.items[i].device->allocations_ended, memory_order_acquire);
  return ended;
}

/* A launch compares `checked` with the count of one device. */
static void note_checked(rondo_exec *exec, uint64_t ended) {
  *(exec->graph->others.count == 0 ? &exec->checked : &exec->checked_several) = ended;
}

rondo_status rondo_exec_check_access(const char *call, rondo_exec *exec) {
  const uint64_t ended = count_ended(exec);
  rondo_freed_marks freed = {0};
  if (exec->graph->others.count > 0 && (exec->checked_several == ended || !exec->verify)) return RONDO_OK;
  rondo_patch_settle(exec);
  access_check self = begin(exec);
  if (!has_memory(&self)) return RONDO_OK;
  if (self.memory != NULL) rondo_memory_mark_freed(self.memory, &freed);
  for (uint32_t i = 0; i < exec->lowering.nodes.count; i++) RONDO_TRY(check_node(&self, call, i));
  note_checked(exec, ended);
  if (exec->disabled_count > 0) return RONDO_OK; /* disabled nodes were not checked */
  exec->unfreed = freed;
  exec->is_unsure = false;
  return RONDO_OK;
}

void rondo_exec_begin_access(rondo_exec *exec, rondo_graph *graph) {
  rondo_device_memory *memory = rondo_device_memory_made(exec->device);
  rondo_saved_error before;
  rondo_exec_forget_checked(exec);
  if (!exec->verify || (memory == NULL && graph->others.count == 0)) return;
  exec->unfreed = (rondo_freed_marks){0};
  if (memory != NULL) rondo_memory_mark_freed(memory, &exec->unfreed);
  exec->is_unsure = false;
  if (exec->checked_at_verify == count_ended(exec)) {
    exec->checked = exec->checked_at_verify;
    return;
  }
  rondo_error_save(&before);
  if (rondo_exec_check_access("rondo_instantiate", exec) == RONDO_OK) return;
  rondo_error_restore(&before);
  atomic_store_explicit(&graph->verified, 0, memory_order_relaxed);
}

void rondo_exec_renew_access(rondo_exec *exec, uint32_t index) {
  access_check self = begin(exec);
  rondo_saved_error before;
  if (!exec->verify || !has_memory(&self)) return;
  exec->is_unsure = true;
  self.since = NULL;
  rondo_error_save(&before);
  if (check_node(&self, "rondo_exec_set_params", index) == RONDO_OK) return;
  rondo_error_restore(&before);
  rondo_exec_forget_checked(exec);
}
