/* SPDX-License-Identifier: MIT
 * Shares execs. An exec takes device memory for each of its nodes. Recordings of one function often have the same work
 * and differ only in addresses, so one exec can run all of them. An update gives it the parameters of the recording to
 * run, which takes host time. Execs are shared on request (share_execs), or if another exec would exceed the limit of
 * the tree (max_exec_bytes).
 *
 * Invariant: while `holds` is the number of a segment, the exec has all parameters of that segment, except for
 * addresses of inputs, which the patch set of the segment knows.
 */
#include "tree/record/shared_execs.h"

#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "tree/recorded_calls.h"

static uint64_t exec_bytes(const rondo_tree *tree) { return tree->exec_bytes[0] + tree->exec_bytes[1]; }

static void give(rondo_tree_exec *tree_exec, rondo_segment *segment) {
  assert(segment->tree_exec == NULL && segment->number != 0);
  tree_exec->references++;
  tree_exec->holds = segment->number;
  segment->tree_exec = tree_exec;
  segment->exec = tree_exec->exec;
}

/* Uses an exec of other recordings for the graph. If an exec rejects the update, its work is different. */
static bool share(rondo_tree *tree, rondo_graph *graph, uint64_t fingerprint, rondo_segment *segment) {
  for (rondo_tree_exec *tree_exec = tree->execs; tree_exec != NULL; tree_exec = tree_exec->next) {
    if (tree_exec->fingerprint != fingerprint) continue;
    tree_exec->holds = 0;
    if (rondo_exec_update(tree_exec->exec, graph, NULL) != RONDO_OK) continue;
    give(tree_exec, segment);
    tree->info.shared_execs++;
    return true;
  }
  return false;
}

/* Whether the exec of an earlier recording takes the graph. */
static bool take_over(rondo_function *function, const rondo_recorded_call *call, rondo_graph *graph,
                      uint64_t fingerprint, rondo_segment *segment) {
  rondo_tree_exec *tree_exec = call->segments[0].tree_exec;
  tree_exec->holds = 0; /* its recording is not launched again */
  if (rondo_exec_update(tree_exec->exec, graph, NULL) != RONDO_OK) return false;
  tree_exec->fingerprint = fingerprint;
  give(tree_exec, segment);
  function->updates++;
  return true;
}

/* For a function that always captures: updates the exec of its recording with the same work, or of the one that was
 * used last, since a driver can also change grids and kernels. */
static bool reuse(rondo_function *function, rondo_graph *graph, uint64_t fingerprint, rondo_segment *segment) {
  const rondo_recorded_call *same = NULL, *latest = NULL;
  for (const rondo_recorded_call *call = function->tree->first; call != NULL; call = call->next) {
    if (call->function != function || call->segment_count != 1) continue;
    if (call->segments[0].tree_exec->fingerprint == fingerprint) same = call;
    if (latest == NULL || call->used > latest->used) latest = call;
  }
  if (same != NULL && take_over(function, same, graph, fingerprint, segment)) return true;
  return latest != NULL && latest != same && take_over(function, latest, graph, fingerprint, segment);
}

static rondo_status measure(rondo_tree_exec *tree_exec) {
  rondo_exec_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_exec_get_info(tree_exec->exec, &info));
  tree_exec->bytes[0] = info.host_bytes;
  tree_exec->bytes[1] = info.device_bytes;
  return RONDO_OK;
}

static rondo_status fill(rondo_tree_exec *tree_exec, rondo_graph *graph) {
  RONDO_TRY(rondo_instantiate(graph, NULL, &tree_exec->exec));
  return measure(tree_exec);
}

static rondo_status make(rondo_tree *tree, rondo_graph *graph, uint64_t fingerprint, rondo_segment *segment) {
  rondo_tree_exec *tree_exec;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, 1, sizeof *tree_exec, &tree_exec));
  const rondo_status status = fill(tree_exec, graph);
  if (status != RONDO_OK) {
    rondo_exec_destroy(tree_exec->exec);
    rondo_release(&tree->allocator, tree_exec, 1, sizeof *tree_exec);
    return status;
  }
  tree_exec->fingerprint = fingerprint;
  tree_exec->next = tree->execs;
  tree->execs = tree_exec;
  for (int i = 0; i < 2; i++) tree->exec_bytes[i] += tree_exec->bytes[i];
  give(tree_exec, segment);
  return RONDO_OK;
}

/* Evicts recordings until the execs, except for `besides` bytes, use less than the limit. */
static void keep_limit(rondo_tree *tree, uint64_t besides) {
  const uint64_t limit = tree->options.max_exec_bytes;
  if (limit == 0 || exec_bytes(tree) - besides < limit) return;
  rondo_recorded_evict_bytes(tree, limit + besides);
  if (exec_bytes(tree) - besides < limit) return;
  tree->info.exec_overruns++;
  rondo_log(RONDO_LOG_INFO, "tree", "an exec exceeds max_exec_bytes, because no recording can be evicted");
}

rondo_status rondo_tree_exec_acquire(rondo_function *function, rondo_graph *graph, bool is_trial,
                                     rondo_segment *segment, bool *out_made) {
  rondo_tree *tree = function->tree;
  const uint64_t limit = tree->options.max_exec_bytes;
  uint64_t fingerprint = 0;
  *out_made = false;
  segment->number = ++tree->segments_made;
  if (rondo_tree_shares(tree) || function->always_captures) RONDO_TRY(rondo_graph_fingerprint(graph, &fingerprint));
  if (function->always_captures && reuse(function, graph, fingerprint, segment)) return RONDO_OK;
  const bool is_short = limit != 0 && exec_bytes(tree) >= limit;
  if (rondo_tree_shares(tree) && (tree->options.share_execs || is_short) && share(tree, graph, fingerprint, segment))
    return RONDO_OK;
  if (!is_trial) keep_limit(tree, 0);
  *out_made = true;
  return make(tree, graph, fingerprint, segment);
}

void rondo_tree_exec_keep(rondo_tree *tree, const rondo_segment *segment) {
  keep_limit(tree, segment->tree_exec->bytes[0] + segment->tree_exec->bytes[1]);
}

void rondo_tree_exec_release(rondo_tree *tree, rondo_segment *segment) {
  rondo_tree_exec *tree_exec = segment->tree_exec;
  segment->tree_exec = NULL;
  segment->exec = NULL;
  if (tree_exec == NULL) return;
  if (tree_exec->holds == segment->number) tree_exec->holds = 0;
  assert(tree_exec->references > 0);
  if (--tree_exec->references > 0) return;
  rondo_tree_exec **place = &tree->execs;
  while (*place != tree_exec) place = &(*place)->next;
  *place = tree_exec->next;
  assert(tree->exec_bytes[0] >= tree_exec->bytes[0] && tree->exec_bytes[1] >= tree_exec->bytes[1]);
  for (int i = 0; i < 2; i++) tree->exec_bytes[i] -= tree_exec->bytes[i];
  rondo_exec_destroy(tree_exec->exec);
  rondo_release(&tree->allocator, tree_exec, 1, sizeof *tree_exec);
}

/* Tells the patch set that the exec now has the addresses of the segment's graph. */
static rondo_status rebase(const rondo_recorded_call *call, const rondo_segment *segment) {
  if (segment->patches == NULL) return RONDO_OK;
  for (size_t i = 0; i < call->bound_count; i++) call->patched_at[i] = call->bound[i].recorded;
  return rondo_patch_set_rebase(segment->patches, call->patched_at);
}

rondo_status rondo_tree_exec_switch(rondo_tree *tree, const rondo_recorded_call *call, const rondo_segment *segment) {
  rondo_tree_exec *tree_exec = segment->tree_exec;
  assert(segment->graph != NULL && tree_exec->holds != segment->number);
  tree_exec->holds = 0;
  RONDO_TRY(rondo_exec_update(tree_exec->exec, segment->graph, NULL));
  RONDO_TRY(rebase(call, segment));
  tree_exec->holds = segment->number;
  tree->info.exec_switches++;
  if (rondo_log_on(RONDO_LOG_DEBUG))
    rondo_log(RONDO_LOG_DEBUG, "tree", "recording %" PRIu32 " of '%s' gets the exec it shares", call->number,
              call->function->origin->name);
  return RONDO_OK;
}
