/* SPDX-License-Identifier: MIT
 * Relocating execs: writes the addresses that memory/graph_memory/relocation.h chooses into the clone that is lowered.
 * Both clones are of the same graph. So their nodes have the same slots, and their graphs the same serials.
 */
#include "exec/launch/exec_relocate.h"

#include <assert.h>

#include "exec/launch/exec_internal.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "memory/arena/arena.h"
#include "memory/arena/arena_recording.h"

bool rondo_exec_must_relocate(const rondo_graph *graph) {
  if (!graph->has_memory) return false;
  if (rondo_address_space_of(graph)->relocate) return true;
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    if (rondo_exec_must_relocate(child)) return true;
  return false;
}

rondo_status rondo_exec_refuse_arena(const char *call, const rondo_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  if (rondo_arena_of(graph) != NULL)
    return rondo_fail(
        RONDO_UNSUPPORTED, RONDO_REASON_NOT_RELOCATABLE,
        "%s: %s was recorded into an arena, whose other users depend on its addresses: instantiate without "
        "relocate",
        call, rondo_graph_label(label, graph));
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    RONDO_TRY(rondo_exec_refuse_arena(call, child));
  return RONDO_OK;
}

static rondo_relocated_node node_at(const rondo_lowering *lowering, size_t index, const rondo_node_params *params) {
  return (rondo_relocated_node){
      .params = params, .index = (uint32_t)index, .where = lowering->nodes.items[index].where};
}

static rondo_status make_relocation(rondo_exec_draft *draft, const rondo_plan_options *options,
                                    const rondo_relocation *like) {
  const rondo_lowering *lowering = &draft->lowering;
  const size_t count = lowering->nodes.count;
  rondo_device_memory *memory = rondo_address_space_of(draft->placed)->memory;
  const rondo_flat_edges edges = rondo_lowering_edges(lowering);
  rondo_relocated_node *nodes;
  RONDO_TRY(rondo_allocate_items(&lowering->allocator, count, sizeof *nodes, &nodes));
  for (size_t i = 0; i < count; i++) nodes[i] = node_at(lowering, i, lowering->nodes.items[i].params);
  const rondo_status status = rondo_relocation_create(memory, nodes, count, &edges, options, like, &draft->relocation);
  rondo_release(&lowering->allocator, nodes, count, sizeof *nodes);
  return status;
}

/* The addresses inside foreign work are unknown, so they cannot be rewritten. */
static rondo_status refuse_foreign(const rondo_lowering *lowering) {
  for (size_t i = 0; i < lowering->nodes.count; i++) {
    const rondo_lowered_node *node = &lowering->nodes.items[i];
    char where[RONDO_LABEL_BYTES];
    if (node->params->kind == RONDO_NODE_FOREIGN)
      return rondo_fail_node(
          RONDO_INVALID_GRAPH, RONDO_REASON_NOT_RELOCATABLE, node->where.number,
          "%s is a %s that a library captured, whose addresses cannot be rewritten: instantiate without relocate",
          rondo_node_where_text(where, &node->where), node->params->as.foreign.what);
  }
  return RONDO_OK;
}

rondo_status rondo_exec_draft_relocate(rondo_exec_draft *draft, const rondo_plan_options *options,
                                       const rondo_relocation *like) {
  if (!draft->relocates) return RONDO_OK;
  RONDO_TRY(refuse_foreign(&draft->lowering));
  RONDO_TRY(make_relocation(draft, options, like));
  for (size_t i = 0; i < draft->relocation->rewrites.count; i++) {
    const rondo_rewrite *rewrite = &draft->relocation->rewrites.items[i];
    const rondo_lowered_origin *origin = &draft->lowering.origins.items[rewrite->index];
    rondo_relocation_rewrite(rondo_graph_at(origin->graph, origin->slot), rewrite->field, rewrite->address);
  }
  rondo_relocation_forget_rewrites(draft->relocation);
  return RONDO_OK;
}

static void keep_params(const rondo_node_params *params, rondo_relocated_params *out) {
  out->params = *params;
  if (params->kind != RONDO_NODE_KERNEL) return;
  for (size_t i = 0; i < params->as.kernel.arg_count; i++) out->args[i] = params->as.kernel.args[i];
  out->params.as.kernel.args = out->args;
}

rondo_status rondo_exec_translate(const rondo_exec *exec, uint32_t index, const rondo_node_params *params,
                                  rondo_relocated_params *out) {
  if (exec->relocation != NULL) {
    const rondo_flat_edges edges = rondo_lowering_edges(&exec->lowering);
    const rondo_relocated_node at = node_at(&exec->lowering, index, params);
    RONDO_TRY(rondo_relocation_translate(exec->relocation, &edges, &at, out));
  } else {
    keep_params(params, out);
  }
  if (exec->random == NULL || params->kind != RONDO_NODE_KERNEL) return RONDO_OK;
  return rondo_exec_random_translate(exec->random, exec->lowering.origins.items[index].graph, &params->as.kernel,
                                     out->args, out->addresses);
}

static rondo_graph *find_source(rondo_graph *graph, uint32_t source_serial) {
  if (graph->source_serial == source_serial) return graph;
  rondo_graph *child, *found = NULL;
  for (uint32_t at = 0; found == NULL && (child = rondo_graph_next_child(graph, &at)) != NULL;)
    found = find_source(child, source_serial);
  return found;
}

const rondo_node_params *rondo_exec_given_params(const rondo_exec *exec, size_t index) {
  const rondo_lowered_origin *origin = &exec->lowering.origins.items[index];
  if (exec->placed == NULL || origin->graph == NULL) return rondo_exec_params(exec, index);
  return &rondo_graph_at(rondo_exec_original(exec, origin->graph), origin->slot)->params;
}

rondo_graph *rondo_exec_original(const rondo_exec *exec, const rondo_graph *placed) {
  rondo_graph *original = find_source(exec->graph, placed->source_serial);
  assert(original != NULL);
  return original;
}
