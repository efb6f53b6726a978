/* SPDX-License-Identifier: MIT
 * Patch sets: creating them, launching with them, and detecting that their exec was updated otherwise. A set knows the
 * current addresses of the exec. A launch changes only the driver's parameters; the clones of the graph get the
 * addresses before something reads the clones.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/build/graph_build.h"
#include "exec/launch/declared_access.h"
#include "exec/launch/exec_check.h"
#include "exec/launch/exec_relocate.h"
#include "exec/launch/instantiate.h"
#include "exec/patch/patch_internal.h"
#include "graph/graph.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"

/* Clones ---------------------------------------------------------------------------------------------------------- */

/* The address of the site in the clone's node. */
static void *site_in(rondo_graph_node *node, const rondo_patch_site *site) {
  rondo_node_params *params = &node->params;
  if (params->kind == RONDO_NODE_KERNEL)
    return (char *)node->arguments + params->as.kernel.kernel->offsets[site->parameter] + site->offset;
  if (params->kind == RONDO_NODE_FILL) return &params->as.fill.dst;
  return site->parameter == RONDO_SITE_DST ? (void *)&params->as.copy.dst : (void *)&params->as.copy.src;
}

/* Writes the address to the slot's sites in the exec's clones. */
static void write_slot(const rondo_patch_set *set, uint32_t index, uint64_t address) {
  const rondo_exec *exec = set->exec;
  const rondo_patch_slot *slot = &set->slots[index];
  for (uint32_t i = slot->first; i < slot->first + slot->count; i++) {
    const rondo_patch_site *site = &set->sites[i];
    const rondo_lowered_origin *origin = &exec->lowering.origins.items[site->node];
    const uint64_t value = address + site->addend;
    memcpy(site_in(rondo_graph_at(origin->graph, origin->slot), site), &value, sizeof value);
    if (exec->placed == NULL) continue;
    rondo_graph *original = rondo_exec_original(exec, origin->graph);
    memcpy(site_in(rondo_graph_at(original, origin->slot), site), &value, sizeof value);
  }
}

void rondo_patch_settle(rondo_exec *exec) {
  rondo_patch_set *set = exec->patched;
  if (set == NULL || set->is_settled) return;
  for (uint32_t i = 0; i < set->slot_count; i++) write_slot(set, i, set->current[i]);
  set->is_settled = true;
}

/* Whether the node still has the site. */
static bool has_site(const rondo_node_params *params, const rondo_patch_site *site) {
  if (site->parameter == RONDO_SITE_SRC) return params->kind == RONDO_NODE_COPY && rondo_node_is_plain(params);
  if (site->parameter == RONDO_SITE_DST)
    return (params->kind == RONDO_NODE_COPY || params->kind == RONDO_NODE_FILL) && rondo_node_is_plain(params);
  if (params->kind != RONDO_NODE_KERNEL || site->parameter >= params->as.kernel.kernel->parameter_count) return false;
  return site->offset + sizeof(uint64_t) <= params->as.kernel.kernel->parameters[site->parameter].bytes;
}

/* STALE_PATCHES unless all sites in the clone, which is settled, have the slot's address. */
static rondo_status require_slot(const char *call, const rondo_patch_set *set, uint32_t index, uint64_t address) {
  const rondo_exec *exec = set->exec;
  const rondo_patch_slot *slot = &set->slots[index];
  char label[RONDO_LABEL_BYTES], input[RONDO_SLOT_LABEL];
  for (uint32_t i = slot->first; i < slot->first + slot->count; i++) {
    const rondo_patch_site *site = &set->sites[i];
    const rondo_lowered_origin *origin = &exec->lowering.origins.items[site->node];
    rondo_graph_node *node = rondo_graph_at(origin->graph, origin->slot);
    uint64_t value = 0;
    const bool is_there = has_site(&node->params, site);
    if (is_there) memcpy(&value, site_in(node, site), sizeof value);
    if (is_there && value == address + site->addend) continue;
    return rondo_fail_node(RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES,
                           exec->lowering.nodes.items[site->node].where.number,
                           "%s: %s does not have the address of %s, 0x%" PRIx64
                           ": pass the inputs' addresses to rondo_patch_set_rebase, or create a new set if the node "
                           "has other parameters",
                           call, rondo_lowering_label(&exec->lowering, site->node, label),
                           rondo_patch_slot_label(input, set, index), address);
  }
  return RONDO_OK;
}

/* Other calls of the exec ----------------------------------------------------------------------------------------- */

void rondo_patch_note_update(rondo_exec *exec) {
  if (exec->patched != NULL) exec->patched->is_unsure = true;
}

void rondo_patch_leave(rondo_exec *exec) {
  for (rondo_patch_set *set = exec->patch_sets; set != NULL; set = set->next) set->exec = NULL;
  exec->patch_sets = exec->patched = NULL;
}

#ifndef NDEBUG
/* If the set is settled and nothing else changed the exec, asserts that all sites have their addresses. */
static void check_sites(const rondo_patch_set *set, uint32_t index) {
  const rondo_patch_slot *slot = &set->slots[index];
  uint32_t nodes = 0;
  for (uint32_t i = slot->first; i < slot->first + slot->count; i++) {
    const rondo_patch_site *site = &set->sites[i];
    const rondo_lowered_origin *origin = &set->exec->lowering.origins.items[site->node];
    assert(site->node < set->exec->lowering.nodes.count);
    assert(i == slot->first || set->sites[i - 1].node <= site->node);
    nodes += i == slot->first || set->sites[i - 1].node != site->node;
    if (set != set->exec->patched || !set->is_settled || set->is_unsure) continue;
    rondo_graph_node *node = rondo_graph_at(origin->graph, origin->slot);
    const uint64_t expected = set->current[index] + site->addend;
    assert(has_site(&node->params, site));
    assert(memcmp(site_in(node, site), &expected, sizeof expected) == 0);
  }
  assert(nodes == slot->nodes);
}
#endif

void rondo_patch_sets_check(const rondo_exec *exec) {
  (void)exec;
#ifndef NDEBUG
  bool has_current = exec->patched == NULL;
  for (const rondo_patch_set *set = exec->patch_sets; set != NULL; set = set->next) {
    uint32_t sites = 0;
    assert(set->exec == exec);
    assert(set == exec->patched || set->is_settled); /* only the current set may be unsettled */
    assert(set->findings.count <= RONDO_PATCH_MOST_FINDINGS && set->findings.count <= set->finding_count);
    for (uint32_t i = 0; i < set->slot_count; i++) {
      assert(set->slots[i].count == 0 || set->slots[i].first == sites);
      check_sites(set, i);
      sites += set->slots[i].count;
    }
    assert(sites == set->site_count);
    has_current = has_current || set == exec->patched;
  }
  assert(has_current);
#endif
}

static rondo_status require_exec(const char *call, const rondo_patch_set *set) {
  if (set->exec != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES,
                    "%s: the exec of the patch set was destroyed: create a set for another exec", call);
}

rondo_status rondo_patch_set_rebase(rondo_patch_set *set, const void *const *addresses) {
  const char *const call = "rondo_patch_set_rebase";
  RONDO_TRY(rondo_check_call(call, "the patch set", set));
  if (addresses == NULL && set->slot_count > 0) return rondo_refuse_null(call, "the list of addresses");
  RONDO_TRY(require_exec(call, set));
  rondo_patch_settle(set->exec);
  for (uint32_t i = 0; i < set->slot_count; i++) {
    const uint64_t address = addresses[i] != NULL ? (uint64_t)(uintptr_t)addresses[i] : set->current[i];
    RONDO_TRY(require_slot(call, set, i, address));
  }
  for (uint32_t i = 0; i < set->slot_count; i++)
    if (addresses[i] != NULL) set->slots[i].recorded = set->current[i] = (uint64_t)(uintptr_t)addresses[i];
  set->exec->patched = set;
  set->is_settled = true;
  set->is_unsure = false;
  rondo_patch_sets_check(set->exec);
  return RONDO_OK;
}

/* Launching ------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_stale(const char *call) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES,
                    "%s: another patch set of the exec was created or rebased since: pass the addresses of the inputs "
                    "of this one to rondo_patch_set_rebase",
                    call);
}

/* The slow checks: an argument is wrong, or the exec may have been updated. */
static rondo_status check_slowly(rondo_patch_set *set, const rondo_stream *stream) {
  const char *const call = "rondo_patch_set_launch";
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  RONDO_TRY(require_exec(call, set));
  RONDO_TRY(rondo_require_device(call, "the stream", set->exec->device, stream->device));
  if (set->exec->patched != set) return refuse_stale(call);
  rondo_patch_settle(set->exec);
  for (uint32_t i = 0; i < set->slot_count; i++) RONDO_TRY(require_slot(call, set, i, set->current[i]));
  set->is_unsure = false;
  return RONDO_OK;
}

/* The child graph gets a copy of the clone with the addresses of this launch. The exec keeps its own. */
static rondo_status launch_into_capture(rondo_patch_set *set, rondo_stream *stream, const void *const *addresses) {
  RONDO_TRY(rondo_capture_refuse_stray(stream, "rondo_patch_set_launch"));
  rondo_patch_settle(set->exec);
  for (uint32_t i = 0; i < set->slot_count; i++)
    if (addresses[i] != NULL) write_slot(set, i, (uint64_t)(uintptr_t)addresses[i]);
  const rondo_status status = rondo_exec_launch(set->exec, stream);
  for (uint32_t i = 0; i < set->slot_count; i++)
    if (addresses[i] != NULL) write_slot(set, i, set->current[i]);
  return status;
}

/* Collects the slots whose addresses change. A slot without sites changes nothing in the exec. */
static inline size_t collect_changes(rondo_patch_set *set, const void *const *addresses) {
  const uint32_t slots = set->slot_count;
  uint64_t *current = set->current;
  size_t count = 0;
  for (uint32_t i = 0; i < slots; i++) {
    const uint64_t address = (uint64_t)(uintptr_t)addresses[i];
    if (__builtin_expect(address == current[i] || address == 0, 1)) continue;
    const rondo_patch_slot *slot = &set->slots[i];
    if (slot->count == 0) {
      current[i] = address;
      continue;
    }
    set->moving[count] = i;
    set->changes[count++] = (rondo_patch_change){&set->sites[slot->first], slot->count, current[i], address};
  }
  return count;
}

static inline void note_current(rondo_patch_set *set, size_t count) {
  for (size_t i = 0; i < count; i++) set->current[set->moving[i]] = set->changes[i].address;
  set->is_settled = false;
  set->patched += count;
}

/* Checks the memory that the exec accesses with the addresses of this launch. */
static __attribute__((noinline)) rondo_status check_access(rondo_patch_set *set, size_t count) {
  rondo_patch_settle(set->exec);
  for (size_t i = 0; i < count; i++) write_slot(set, set->moving[i], set->changes[i].address);
  const rondo_status status = rondo_exec_check_access("rondo_patch_set_launch", set->exec);
  for (size_t i = 0; i < count; i++) write_slot(set, set->moving[i], set->current[set->moving[i]]);
  return status;
}

rondo_status rondo_patch_launch(rondo_patch_set *set, rondo_stream *stream, const void *const *addresses) {
  rondo_exec *exec = set->exec;
  const bool fine = exec != NULL && exec->patched == set && !set->is_unsure && stream != NULL &&
                    exec->device == stream->device && !rondo_in_callback();
  if (__builtin_expect(!fine, 0)) RONDO_TRY(check_slowly(set, stream));
  exec = set->exec;
  if (__builtin_expect(!rondo_stream_runs_at_once(stream), 0)) return launch_into_capture(set, stream, addresses);
  rondo_moves moves = {.changes = set->changes, .count = collect_changes(set, addresses)};
  if (__builtin_expect(!rondo_exec_has_checked_access(exec), 0)) RONDO_TRY(check_access(set, moves.count));
  const rondo_status status = rondo_exec_launch_patched(exec, stream, moves.count > 0 ? &moves : NULL);
  if (moves.are_made) note_current(set, moves.count);
  return status;
}

/* Checks ---------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_unpatchable(const char *call, const rondo_patch_set *set, uint32_t input) {
  char label[RONDO_SLOT_LABEL];
  const char *why = "there are more findings than are kept";
  uint32_t node = RONDO_NO_NODE;
  for (size_t i = set->findings.count; i-- > 0;) {
    if (set->findings.items[i].input != input) continue;
    why = set->findings.items[i].message;
    const uint32_t index = rondo_lowering_find(&set->exec->lowering, set->findings.items[i].node);
    node =
        index < set->exec->lowering.nodes.count ? set->exec->lowering.nodes.items[index].where.number : RONDO_NO_NODE;
  }
  return rondo_fail_node(RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE, node, "%s: %s cannot be patched: %s", call,
                         rondo_patch_slot_label(label, set, input), why);
}

/* Checks that the memory at the address is allocated, large enough, and accessible to the device. */
static rondo_status check_memory_for(const char *call, const rondo_patch_set *set, uint32_t input, const void *address,
                                     rondo_device *device) {
  rondo_device_memory *memory = rondo_device_memory_made(device);
  const size_t bytes = set->slots[input].bytes;
  char label[RONDO_SLOT_LABEL];
  rondo_peer_memory peer;
  const bool has_peers = rondo_peers_others_have_memory(device);
  if (memory != NULL && rondo_memory_is_plain(memory, address, bytes)) return RONDO_OK;
  (void)rondo_patch_slot_label(label, set, input);
  if (memory != NULL) RONDO_TRY(rondo_memory_check_range(memory, call, label, address, bytes, true));
  if (!has_peers || !rondo_peers_find(device, address, &peer)) return RONDO_OK;
  if (!peer.allowed)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NO_ACCESS,
                      "%s: %s would be in memory of device '%s', to which '%s' has no access: grant it with "
                      "rondo_pool_set_access or rondo_memory_set_access",
                      call, label, peer.owner->name, device->name);
  const size_t offset = (size_t)((const char *)address - peer.begin);
  if (offset <= peer.bytes && bytes <= peer.bytes - offset) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %s has %zu bytes and would pass the end of an allocation of %zu bytes on device '%s'", call,
                    label, bytes, peer.bytes, peer.owner->name);
}

/* For the devices of the nodes that have the input. */
static rondo_status check_memory(const char *call, const rondo_patch_set *set, uint32_t input, const void *address) {
  const rondo_exec *exec = set->exec;
  const rondo_patch_slot *slot = &set->slots[input];
  rondo_device *checked = NULL;
  if (exec->graph->others.count == 0 || slot->count == 0)
    return check_memory_for(call, set, input, address, exec->device);
  for (size_t i = 0; i < slot->count; i++) {
    rondo_device *device = exec->lowering.nodes.items[set->sites[slot->first + i].node].device;
    if (device != checked) RONDO_TRY(check_memory_for(call, set, input, address, device));
    checked = device;
  }
  return RONDO_OK;
}

static rondo_status check_address(const char *call, const rondo_patch_set *set, uint32_t input, const void *address) {
  const rondo_patch_slot *slot = &set->slots[input];
  char label[RONDO_SLOT_LABEL];
  if ((uint64_t)(uintptr_t)address == set->current[input]) return RONDO_OK;
  if (!slot->is_patchable) return refuse_unpatchable(call, set, input);
  if (!rondo_patch_fits((const void *)(uintptr_t)slot->recorded, address))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISALIGNED,
                      "%s: %s was recorded at 0x%" PRIx64
                      " and would be at %p: the distance is not a multiple of %d bytes: copy it to the recorded "
                      "address",
                      call, rondo_patch_slot_label(label, set, input), slot->recorded, address, RONDO_PATCH_ALIGNMENT);
  return set->exec->verify ? check_memory(call, set, input, address) : RONDO_OK;
}

/* Creating -------------------------------------------------------------------------------------------------------- */

static rondo_status check_input(const char *call, const rondo_patch_input *input, size_t index, bool is_compared) {
  if (input->address == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: the address of input %zu is NULL", call,
                      index);
  if (input->bytes == 0 || input->bytes - 1 > UINTPTR_MAX - (uintptr_t)input->address)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: input %zu has %zu bytes at %p", call, index,
                      input->bytes, input->address);
  if (!is_compared && input->moved != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: input %zu has another address in the moved recording, but there is none: set "
                      "rondo_patch_options.moved",
                      call, index);
  if (!is_compared) return RONDO_OK;
  if (input->moved == NULL || input->moved == input->address)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: input %zu has no other address in the moved recording: record it with the input at another "
                      "address",
                      call, index);
  if (rondo_patch_fits(input->address, input->moved)) return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_MISALIGNED,
      "%s: input %zu is at %p and, in the moved recording, at %p: the distance is not a multiple of %d bytes", call,
      index, input->address, input->moved, RONDO_PATCH_ALIGNMENT);
}

static rondo_status check_recording(const char *call, const rondo_exec *exec, const rondo_graph *graph) {
  if (graph == NULL) return RONDO_OK;
  RONDO_TRY(rondo_require_device(call, "a recording", exec->device, graph->device));
  return rondo_build_refuse_captured(call, graph);
}

static rondo_status check_all(const char *call, const rondo_exec *exec, const rondo_patch_input *inputs, size_t count,
                              const rondo_patch_options *options) {
  if (count >= UINT32_MAX - 1)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "%s: %zu inputs are too many for a set: pass fewer", call, count);
  if (exec->broken)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_NOT_UPDATABLE,
        "%s: an update of this exec failed and could not be undone: update it again, or instantiate again", call);
  if (options->again != NULL && options->moved == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: rondo_patch_options.again is set without .moved: set .moved too", call);
  RONDO_TRY(check_recording(call, exec, options->moved));
  RONDO_TRY(check_recording(call, exec, options->again));
  for (size_t i = 0; i < count; i++) RONDO_TRY(check_input(call, &inputs[i], i, options->moved != NULL));
  return RONDO_OK;
}

static rondo_status make_slots(rondo_patch_set *set, const rondo_patch_input *inputs, const bool *copied,
                               uint32_t count) {
  const rondo_allocator *allocator = &set->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *set->slots, &set->slots));
  set->slot_count = count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *set->current, &set->current));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *set->changes, &set->changes));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *set->moving, &set->moving));
  for (uint32_t i = 0; i < count; i++) {
    rondo_patch_slot *slot = &set->slots[i];
    slot->recorded = set->current[i] = (uint64_t)(uintptr_t)inputs[i].address;
    slot->bytes = inputs[i].bytes;
    slot->is_patchable = true;
    slot->is_copied = copied != NULL && copied[i];
    RONDO_TRY(rondo_allocate_text(allocator, inputs[i].name, &slot->name));
  }
  return RONDO_OK;
}

static void free_set(rondo_patch_set *set) {
  const rondo_allocator allocator = set->allocator;
  for (uint32_t i = 0; i < set->slot_count; i++) rondo_release_text(&allocator, set->slots[i].name);
  for (size_t i = 0; i < set->findings.count; i++)
    rondo_release_text(&allocator, (char *)(uintptr_t)set->findings.items[i].message);
  rondo_array_free(&allocator, &set->findings);
  rondo_release(&allocator, set->sites, set->site_count, sizeof *set->sites);
  rondo_release(&allocator, set->changes, set->slot_count, sizeof *set->changes);
  rondo_release(&allocator, set->moving, set->slot_count, sizeof *set->moving);
  rondo_release(&allocator, set->current, set->slot_count, sizeof *set->current);
  rondo_release(&allocator, set->slots, set->slot_count, sizeof *set->slots);
  rondo_release(&allocator, set, 1, sizeof *set);
}

/* A set that is not in the exec's list. */
static rondo_status make_set(const char *call, rondo_exec *exec, const rondo_patch_input *inputs, size_t count,
                             const bool *copied, const rondo_patch_options *options, rondo_patch_set **out) {
  rondo_patch_set *set;
  RONDO_TRY(check_all(call, exec, inputs, count, options));
  RONDO_TRY(rondo_fail_context(rondo_exec_own_nodes(exec), "%s", call));
  RONDO_TRY(rondo_allocate_items(&exec->device->allocator, 1, sizeof *set, &set));
  set->allocator = exec->device->allocator;
  set->exec = exec;
  rondo_patch_settle(exec);
  rondo_status status = make_slots(set, inputs, copied, (uint32_t)count);
  if (status == RONDO_OK) status = rondo_patch_find_sites(call, set, inputs, options);
  if (status != RONDO_OK) {
    free_set(set);
    return status;
  }
  *out = set;
  return RONDO_OK;
}

rondo_status rondo_patch_create(const char *call, rondo_exec *exec, const rondo_patch_input *inputs, size_t count,
                                const bool *copied, const rondo_patch_options *options, rondo_patch_set **out) {
  rondo_patch_set *set;
  *out = NULL;
  RONDO_TRY(make_set(call, exec, inputs, count, copied, options, &set));
  set->is_settled = true;
  set->next = exec->patch_sets;
  exec->patch_sets = exec->patched = set;
  rondo_exec_check(exec);
  *out = set;
  return RONDO_OK;
}

void rondo_patch_set_destroy(rondo_patch_set *set) {
  if (set == NULL || (set->exec != NULL && set->exec->device->is_inherited)) return;
  rondo_exec *exec = set->exec;
  if (exec != NULL) {
    if (exec->patched == set) {
      rondo_patch_settle(exec);
      exec->patched = NULL;
    }
    rondo_patch_set **link = &exec->patch_sets;
    while (*link != set) link = &(*link)->next;
    *link = set->next;
  }
  free_set(set);
}

rondo_status rondo_patch_find_use(const char *call, rondo_exec *exec, const void *address, size_t bytes,
                                  rondo_patch_use *out) {
  const rondo_patch_input memory = {.address = address, .bytes = bytes};
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT};
  rondo_patch_set *set;
  RONDO_TRY(make_set(call, exec, &memory, 1, NULL, &options, &set));
  const rondo_patch_slot *slot = &set->slots[0];
  *out = (rondo_patch_use){.is_used = slot->count > 0 || !slot->is_patchable,
                           .is_written = slot->is_written || !slot->is_patchable,
                           .is_unknown = slot->is_unknown};
  free_set(set);
  return RONDO_OK;
}

/* Public calls --------------------------------------------------------------------------------------------------- */

static rondo_status require_index(const char *call, const char *what, size_t count, size_t index) {
  if (index < count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: index %zu is out of range: the set has %zu %s", call, index, count, what);
}

rondo_status rondo_patch_set_create(rondo_exec *exec, const rondo_patch_input *inputs, size_t count,
                                    const rondo_patch_options *options, rondo_patch_set **out_set) {
  const char *const call = "rondo_patch_set_create";
  RONDO_TRY(rondo_check_call(call, "out_set", out_set));
  *out_set = NULL;
  if (exec == NULL) return rondo_refuse_null(call, "the exec");
  RONDO_TRY(rondo_device_require_own(call, exec->device));
  if (inputs == NULL && count > 0) return rondo_refuse_null(call, "the list of inputs");
  rondo_patch_options known;
  RONDO_TRY(rondo_versioned_read("rondo_patch_options", options, &known, sizeof known));
  return rondo_patch_create(call, exec, inputs, count, NULL, &known, out_set);
}

rondo_status rondo_patch_set_check(const rondo_patch_set *set, uint32_t input, const void *address) {
  const char *const call = "rondo_patch_set_check";
  RONDO_TRY(rondo_check_call(call, "the patch set", set));
  if (address == NULL) return rondo_refuse_null(call, "the address");
  RONDO_TRY(require_exec(call, set));
  RONDO_TRY(require_index(call, "inputs", set->slot_count, input));
  return check_address(call, set, input, address);
}

rondo_status rondo_patch_set_launch(rondo_patch_set *set, rondo_stream *stream, const void *const *addresses) {
  const char *const call = "rondo_patch_set_launch";
  RONDO_TRY(rondo_check_call(call, "the patch set", set));
  if (addresses == NULL && set->slot_count > 0) return rondo_refuse_null(call, "the list of addresses");
  RONDO_TRY(require_exec(call, set));
  for (uint32_t i = 0; i < set->slot_count; i++)
    if (addresses[i] != NULL) RONDO_TRY(check_address(call, set, i, addresses[i]));
  return rondo_patch_launch(set, stream, addresses);
}

static uint64_t host_bytes(const rondo_patch_set *set) {
  const uint64_t slot_bytes = sizeof *set->slots + sizeof *set->current + sizeof *set->changes + sizeof *set->moving;
  uint64_t bytes = sizeof *set + set->slot_count * slot_bytes + set->site_count * sizeof *set->sites +
                   set->findings.capacity * sizeof *set->findings.items;
  for (uint32_t i = 0; i < set->slot_count; i++) bytes += strlen(set->slots[i].name) + 1;
  for (size_t i = 0; i < set->findings.count; i++) bytes += strlen(set->findings.items[i].message) + 1;
  return bytes;
}

rondo_status rondo_patch_set_get_info(const rondo_patch_set *set, rondo_patch_info *out_info) {
  const char *const call = "rondo_patch_set_get_info";
  RONDO_TRY(rondo_check_call(call, "the patch set", set));
  if (out_info == NULL) return rondo_refuse_null(call, "out_info");
  const rondo_patch_info info = {.struct_size = sizeof info,
                                 .inputs = set->slot_count,
                                 .sites = set->site_count,
                                 .findings = (uint32_t)set->findings.count,
                                 .found = set->finding_count,
                                 .noise = set->noise,
                                 .patched = set->patched,
                                 .host_bytes = host_bytes(set)};
  return rondo_versioned_write("rondo_patch_info", &info, out_info, sizeof info);
}

rondo_status rondo_patch_set_get_input(const rondo_patch_set *set, uint32_t input, rondo_patch_input_info *out_info) {
  const char *const call = "rondo_patch_set_get_input";
  RONDO_TRY(rondo_check_call(call, "the patch set", set));
  if (out_info == NULL) return rondo_refuse_null(call, "out_info");
  RONDO_TRY(require_index(call, "inputs", set->slot_count, input));
  const rondo_patch_slot *slot = &set->slots[input];
  const rondo_patch_input_info info = {.struct_size = sizeof info,
                                       .name = slot->name,
                                       .address = (const void *)(uintptr_t)set->current[input],
                                       .bytes = slot->bytes,
                                       .sites = slot->count,
                                       .nodes = slot->nodes,
                                       .is_written = slot->is_written,
                                       .is_patchable = slot->is_patchable};
  return rondo_versioned_write("rondo_patch_input_info", &info, out_info, sizeof info);
}

rondo_status rondo_patch_set_get_finding(const rondo_patch_set *set, size_t index, rondo_patch_finding *out_finding) {
  const char *const call = "rondo_patch_set_get_finding";
  RONDO_TRY(rondo_check_call(call, "the patch set", set));
  if (out_finding == NULL) return rondo_refuse_null(call, "out_finding");
  RONDO_TRY(require_index(call, "findings", set->findings.count, index));
  return rondo_versioned_write("rondo_patch_finding", &set->findings.items[index], out_finding,
                               sizeof(rondo_patch_finding));
}
