/* SPDX-License-Identifier: MIT
 * Verification for the user: flattens the graph, tells graph/verify.h what allocations stand around it, and hands the
 * findings out, of a graph alone or on the way to an exec.
 */
#include <rondo/verify.h>

#include <stdio.h>
#include <string.h>

#include "base/logging.h"
#include "base/versioned.h"
#include "exec/exec_internal.h"
#include "graph/verify.h"
#include "memory/known_range.h"

/* Allocations around ----------------------------------------------------------------------------------------------- */

/* What is known beside the graph. */
typedef struct surroundings {
  rondo_device_memory *memory; /* NULL when the graph has no device, or that has no allocations */
  const rondo_verify_allocation *given;
  size_t given_count;
} surroundings;

/* The one that begins at the address, else one that it lies in. */
static const rondo_verify_allocation *find_given(const surroundings *around, const void *address) {
  const rondo_verify_allocation *found = NULL;
  for (size_t i = 0; i < around->given_count; i++) {
    const rondo_verify_allocation *at = &around->given[i];
    const uintptr_t begin = (uintptr_t)at->address, sought = (uintptr_t)address;
    if (begin == sought && at->bytes > 0) return at;
    if (begin < sought && sought - begin < at->bytes) found = at;
  }
  return found;
}

static bool find_range(void *user, const void *address, rondo_known_range *out) {
  const surroundings *around = user;
  const rondo_verify_allocation *given = find_given(around, address);
  if (given == NULL) return around->memory != NULL && rondo_memory_find_range(around->memory, address, out);
  *out = (rondo_known_range){.begin = given->address, .bytes = given->bytes};
  snprintf(out->name, sizeof out->name, "%s", given->name == NULL ? "" : given->name);
  snprintf(out->no_access, sizeof out->no_access, "%s", given->no_access == NULL ? "" : given->no_access);
  return true;
}

/* Flattened graphs ------------------------------------------------------------------------------------------------ */

static rondo_status verify_lowering(const rondo_lowering *lowering, const rondo_device *device, bool clone_tags,
                                    const rondo_verify_options *options, rondo_findings **out) {
  const size_t count = lowering->nodes.count;
  surroundings around = {.given = options->allocations, .given_count = options->allocation_count};
  if (device != NULL) around.memory = atomic_load_explicit(&device->memory.state, memory_order_acquire);
  void *memory;
  *out = NULL;
  RONDO_TRY(rondo_allocate(&lowering->allocator, count, sizeof(rondo_flat_node), &memory));
  rondo_flat_node *nodes = memory;
  for (size_t i = 0; i < count; i++)
    nodes[i] = (rondo_flat_node){.params = lowering->nodes.items[i].params,
                                 .graph = lowering->origins.items[i].graph,
                                 .slot = lowering->origins.items[i].slot};
  const rondo_verify_input input = {
      .allocator = &lowering->allocator,
      .nodes = nodes,
      .edges = {.node_count = count, .successor_start = lowering->successor_start, .successors = lowering->successors},
      .find = find_range,
      .user = &around,
      .knows_all = device != NULL,
      .clone_tags = clone_tags,
      .max_findings = options->max_findings};
  const rondo_status status = rondo_verify(&input, out);
  rondo_release(&lowering->allocator, nodes, count, sizeof *nodes);
  return status;
}

static rondo_status verify_graph(const rondo_graph *graph, const rondo_verify_options *options, rondo_findings **out) {
  rondo_lowering lowering;
  RONDO_TRY(rondo_lower((rondo_graph *)(uintptr_t)graph, &lowering)); /* which only reads it */
  const rondo_status status = verify_lowering(&lowering, graph->device, false, options, out);
  rondo_lowering_free(&lowering);
  return status;
}

rondo_status rondo_graph_verify(const rondo_graph *graph, const rondo_verify_options *options,
                                rondo_findings **out_findings) {
  const char *const call = "rondo_graph_verify";
  RONDO_TRY(rondo_front(call, "out_findings", out_findings));
  *out_findings = NULL;
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  rondo_verify_options known;
  RONDO_TRY(rondo_versioned_read("rondo_verify_options", options, &known, sizeof known));
  if (known.allocations == NULL && known.allocation_count > 0)
    return rondo_refuse_null(call, "the list of allocations");
  const rondo_status status = verify_graph(graph, &known, out_findings);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

/* Execs ----------------------------------------------------------------------------------------------------------- */

static void log_warnings(const char *call, const rondo_graph *graph, const rondo_findings *findings) {
  uint64_t warnings;
  char label[RONDO_LABEL_BYTES];
  rondo_finding first = {.struct_size = sizeof first};
  rondo_findings_totals(findings, NULL, &warnings);
  if (!rondo_log_on(RONDO_LOG_WARNING) || rondo_findings_get(findings, 0, &first) != RONDO_OK) return;
  rondo_log(RONDO_LOG_WARNING, "exec", "%s: %s has %llu warnings, which rondo_exec_get_findings lists; the first: %s",
            call, rondo_graph_label(label, graph), (unsigned long long)warnings, first.message);
}

rondo_status rondo_exec_draft_verify(const char *call, rondo_exec_draft *draft) {
  const rondo_verify_options options = {RONDO_VERIFY_OPTIONS_INIT};
  rondo_findings *findings;
  RONDO_TRY(verify_lowering(&draft->lowering, draft->graph->device, true, &options, &findings));
  const rondo_status status = rondo_findings_raise(findings);
  if (status != RONDO_OK || rondo_findings_count(findings) == 0) {
    rondo_findings_destroy(findings);
    return status;
  }
  log_warnings(call, draft->graph, findings);
  draft->findings = findings;
  return RONDO_OK;
}

rondo_status rondo_exec_get_findings(const rondo_exec *exec, const rondo_findings **out_findings) {
  const char *const call = "rondo_exec_get_findings";
  RONDO_TRY(rondo_front(call, "out_findings", out_findings));
  *out_findings = NULL;
  if (exec == NULL) return rondo_refuse_null(call, "the exec");
  *out_findings = exec->findings;
  return RONDO_OK;
}
