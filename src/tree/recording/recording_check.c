/* SPDX-License-Identifier: MIT
 * Refuses work that a captured graph must not contain: decisions that the host would have to make again, and copies of
 * host memory that may be freed. Kernels may receive any address that the device can access. Host memory of
 * rondo_host_malloc that the graph uses is watched.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "graph/node_name.h"
#include "memory/node_addresses.h"
#include "tree/recording/recording_internal.h"

/* One node, for messages. */
typedef struct visit {
  const char *call;
  rondo_recording *recording;
  const rondo_graph *graph;
  uint32_t slot;
  const rondo_node_params *params;
} visit;

static const char *label_of(const visit *at, char buffer[RONDO_LABEL_BYTES]) {
  return rondo_node_label_in(buffer, at->graph, at->recording->graph, at->slot);
}

static uint32_t number_of(const visit *at) {
  return rondo_graph_outer_number(at->graph, at->recording->graph, at->slot);
}

static rondo_status refuse_conditional(const visit *at) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_HOST_DECISION, number_of(at),
                         "%s: %s of %s is a conditional node, which cannot be recorded: decide on the host which of "
                         "several recordings to replay, or run this work eagerly",
                         at->call, label_of(at, label), at->recording->label);
}

static rondo_status refuse_host_memory(const visit *at, const rondo_node_address *place, bool freed) {
  char label[RONDO_LABEL_BYTES];
  const bool is_source = at->params->kind == RONDO_NODE_COPY && place->field == 1;
  return rondo_fail_node(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_WRONG_MEMORY, number_of(at),
      "%s: %s of %s %s host memory at %p, %s: at a replay it may have another owner. Copy inputs and "
      "outputs outside of the capture, from and to memory that was allocated before it; or use memory "
      "of rondo_host_malloc and keep it until the reset; or promise to keep this memory "
      "(rondo_recording_options.lasting_host_memory)",
      at->call, label_of(at, label), at->recording->label, is_source ? "reads" : "writes", (const void *)place->address,
      freed ? "which rondo_host_free has freed" : "which the library does not know");
}

static rondo_status check_address(const visit *at, const rondo_node_address *place) {
  rondo_host_address where;
  RONDO_TRY(rondo_host_watch_look(&at->recording->watch, place->address, at->graph, at->slot, &where));
  const bool is_lasting = where == RONDO_ADDRESS_DEVICE || where == RONDO_ADDRESS_WATCHED;
  if (is_lasting || at->params->kind == RONDO_NODE_KERNEL || at->recording->lasting_host_memory) return RONDO_OK;
  if (rondo_graph_has_foreign_memory(at->graph, place->address)) return RONDO_OK;
  return refuse_host_memory(at, place, where == RONDO_ADDRESS_FREED);
}

static rondo_status check_node(const visit *at) {
  if (at->params->kind == RONDO_NODE_FOREIGN)
    return strcmp(at->params->as.foreign.what, RONDO_FOREIGN_CONDITIONAL) == 0 ? refuse_conditional(at) : RONDO_OK;
  rondo_node_address addresses[RONDO_MAX_PARAMETERS];
  const size_t count = rondo_node_addresses(at->params, addresses);
  for (size_t i = 0; i < count; i++) RONDO_TRY(check_address(at, &addresses[i]));
  return RONDO_OK;
}

static rondo_status check_graph(const char *call, rondo_recording *recording, const rondo_graph *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) continue;
    const visit at = {
        .call = call, .recording = recording, .graph = graph, .slot = (uint32_t)i, .params = &node->params};
    RONDO_TRY(check_node(&at));
    if (node->params.kind == RONDO_NODE_CHILD) RONDO_TRY(check_graph(call, recording, node->params.as.child));
  }
  return RONDO_OK;
}

rondo_status rondo_recording_check(rondo_recording *recording, const char *call) {
  return check_graph(call, recording, recording->graph);
}
