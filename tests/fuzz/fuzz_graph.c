/* SPDX-License-Identifier: MIT
 * The graph builder: the input is a stream of calls on a few graphs, some wrong, some out of memory. After each call
 * the graphs must be consistent: edges known at both ends, a valid order or a real cycle, no change after an error,
 * clones without a difference, texts that read back as the same graph, and nothing left at the end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "fuzz/fuzz_target.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_internal.h"
#include "graph/graph_json_read.h"
#include "graph/topological_order.h"
#include "support/test_allocator.h"

#define GRAPHS 4
#define KERNELS 3
#define MAX_CALLS 300
#define MAX_DEEP 300 /* nodes of a graph with its children, so that copies of copies stay small */
#define MAX_LIST 4

static char identities[2];
static int64_t event_holds; /* of the only event */
static void hold_event(rondo_event *event) { event_holds += event != NULL; }
static void let_event_go(rondo_event *event) { event_holds -= event != NULL; }
static rondo_counted_event lent_event = {hold_event, let_event_go};
static char memory[4096];

typedef struct fuzz_run {
  const uint8_t *data;
  size_t left;
  test_allocator allocator;
  rondo_graph *graphs[GRAPHS];
  rondo_kernel *kernels[KERNELS]; /* two belong to the graphs' device, one to none */
} fuzz_run;

static uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

static rondo_device *device(void) { return (rondo_device *)(void *)&identities[0]; }

/* Being whole ----------------------------------------------------------------------------------------------------- */

static size_t count_deep(const rondo_graph *graph) {
  size_t count = graph->nodes.count;
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i].live && graph->nodes.items[i].params.kind == RONDO_NODE_CHILD)
      count += count_deep(graph->nodes.items[i].params.as.child);
  return count;
}

static bool holds(const rondo_slots *slots, uint32_t slot) {
  for (size_t i = 0; i < slots->count; i++)
    if (slots->items[i] == slot) return true;
  return false;
}

/* Ascending, of live nodes, and known at the other end. */
static void require_slots(const rondo_graph *graph, uint32_t slot, const rondo_slots *slots, bool dependencies) {
  for (size_t i = 0; i < slots->count; i++) {
    const uint32_t other = slots->items[i];
    REQUIRE(i == 0 || slots->items[i - 1] < other);
    REQUIRE(other != slot && other < graph->nodes.count && graph->nodes.items[other].live);
    const rondo_graph_node *node = &graph->nodes.items[other];
    REQUIRE(holds(dependencies ? &node->dependents : &node->dependencies, slot));
  }
}

/* Marks what comes directly before the node, by edges of all types. Returns whether that was new. */
static bool mark_before(const rondo_graph *graph, uint32_t slot, bool *marks) {
  const rondo_slots *dependencies = &rondo_graph_at(graph, slot)->dependencies;
  bool is_new = false;
  for (size_t i = 0; i < dependencies->count; i++) {
    is_new |= !marks[dependencies->items[i]];
    marks[dependencies->items[i]] = true;
  }
  for (size_t i = 0; i < graph->programmatic.count; i++) {
    const rondo_programmatic_edge *edge = &graph->programmatic.items[i];
    if (edge->to != slot) continue;
    is_new |= !marks[edge->from];
    marks[edge->from] = true;
  }
  return is_new;
}

static void require_on_cycle(const rondo_graph *graph, uint32_t slot) {
  bool before[MAX_DEEP + 16] = {false};
  bool is_new = mark_before(graph, slot, before);
  while (is_new) {
    is_new = false;
    for (uint32_t i = 0; i < graph->nodes.count; i++) is_new |= before[i] && mark_before(graph, i, before);
  }
  REQUIRE(before[slot]);
}

static void require_order(const rondo_graph *graph) {
  uint32_t *order;
  bool done[MAX_DEEP + 16] = {false};
  if (rondo_graph_order(graph, &order) != RONDO_OK) {
    REQUIRE(rondo_last_error()->reason == RONDO_REASON_CYCLE);
    require_on_cycle(graph, rondo_last_error()->node);
    return;
  }
  for (uint32_t i = 0; i < graph->live_count; i++) {
    const rondo_slots *dependencies = &rondo_graph_at(graph, order[i])->dependencies;
    for (size_t d = 0; d < dependencies->count; d++) REQUIRE(done[dependencies->items[d]]);
    REQUIRE(!done[order[i]]);
    done[order[i]] = true;
  }
  rondo_release(&graph->allocator, order, graph->live_count, sizeof *order);
}

static void require_whole(const rondo_graph *graph) {
  uint32_t live = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) {
      REQUIRE(node->dependencies.count == 0 && node->dependents.count == 0);
      continue;
    }
    live++;
    REQUIRE(node->params.name != NULL);
    require_slots(graph, (uint32_t)i, &node->dependencies, true);
    require_slots(graph, (uint32_t)i, &node->dependents, false);
    if (node->params.kind != RONDO_NODE_CHILD) continue;
    REQUIRE(node->params.as.child->parent == graph && node->params.as.child->is_child);
    REQUIRE(graph->has_memory || !node->params.as.child->has_memory);
    require_whole(node->params.as.child);
  }
  REQUIRE(live == graph->live_count);
  require_order(graph);
}

/* A hash of everything that a failed call must leave unchanged. */
static uint64_t hash_graph(const rondo_graph *graph) {
  uint64_t state = rondo_hash_u64(RONDO_HASH_START, graph->nodes.count);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) continue;
    state = rondo_hash_u64(state, (uint64_t)node->params.kind);
    state = rondo_hash_text(state, node->params.name);
    state = rondo_hash_bytes(state, node->dependencies.items, node->dependencies.count * sizeof(uint32_t));
    if (node->params.kind == RONDO_NODE_CHILD) state = rondo_hash_u64(state, hash_graph(node->params.as.child));
    if (node->params.kind == RONDO_NODE_KERNEL) state = rondo_hash_u64(state, node->params.as.kernel.grid.x);
  }
  const size_t edges = graph->programmatic.count;
  return rondo_hash_bytes(state, graph->programmatic.items, edges * sizeof *graph->programmatic.items);
}

/* Choosing -------------------------------------------------------------------------------------------------------- */

static rondo_graph *some_graph(fuzz_run *run) { return run->graphs[take(run) % GRAPHS]; }

/* The graph that the input chooses, or the graph of one of its child nodes. */
static rondo_graph *some_inner_graph(fuzz_run *run) {
  rondo_graph *graph = some_graph(run);
  const uint8_t slot = take(run);
  if (slot >= graph->nodes.count || !graph->nodes.items[slot].live) return graph;
  const rondo_node_params *params = &graph->nodes.items[slot].params;
  return params->kind == RONDO_NODE_CHILD ? params->as.child : graph;
}

/* Usually a number of a node. */
static uint32_t some_slot(fuzz_run *run, const rondo_graph *graph) {
  const uint8_t choice = take(run);
  return choice < 250 && graph->nodes.count > 0 ? (uint32_t)(choice % graph->nodes.count) : choice;
}

/* Usually a node of the graph; sometimes the zero tag, or a node of another graph. */
static rondo_node some_node(fuzz_run *run, const rondo_graph *graph) {
  const uint32_t slot = some_slot(run, graph);
  if (slot == 255) return (rondo_node){0};
  return rondo_graph_id(slot == 254 ? run->graphs[0] : graph, slot);
}

static void *some_address(fuzz_run *run) {
  const uint8_t choice = take(run);
  return choice == 255 ? NULL : memory + 8 * choice;
}

static size_t some_size(fuzz_run *run) {
  const uint8_t choice = take(run);
  return choice < 240 ? choice : SIZE_MAX >> (choice - 240) * 4;
}

static const char *some_name(fuzz_run *run) {
  static const char *const names[] = {NULL, "", "step", "\"];\n\\", "\xff\xc3"};
  return names[take(run) % (sizeof names / sizeof *names)];
}

static rondo_status do_nothing(void *user) {
  (void)user;
  return RONDO_OK;
}

/* The arguments of kernel nodes point here. */
typedef struct argument_values {
  uint32_t scalar;
  void *address;
  const void *list[2];
  rondo_memory_operation operations[2];
  rondo_semaphore_value semaphore;
} argument_values;

static void choose_kernel(fuzz_run *run, rondo_kernel_node *out, argument_values *arguments) {
  arguments->scalar = take(run);
  arguments->address = some_address(run);
  arguments->list[0] = &arguments->scalar;
  arguments->list[1] = &arguments->address;
  const uint8_t choice = take(run);
  *out = (rondo_kernel_node){.kernel = run->kernels[choice % KERNELS],
                             .grid = {.x = choice % 5, .y = choice / 16},
                             .args = arguments->list,
                             .arg_count = choice == 255 ? 1 : 2};
}

static void choose_copy(fuzz_run *run, rondo_copy *out) {
  *out = (rondo_copy){.dst = some_address(run), .src = some_address(run), .width = some_size(run)};
  if (take(run) % 2 == 0) return;
  out->height = some_size(run);
  out->depth = some_size(run);
  out->dst_pitch = some_size(run);
  out->src_slice_pitch = some_size(run);
}

static void choose_operations(fuzz_run *run, rondo_memory_operations_node *out, argument_values *arguments) {
  *out = (rondo_memory_operations_node){.operations = arguments->operations, .count = take(run) % 3u};
  for (size_t i = 0; i < 2; i++)
    arguments->operations[i] = (rondo_memory_operation){.kind = (rondo_memory_operation_kind)(take(run) % 7),
                                                        .condition = (rondo_wait_condition)(take(run) % 5),
                                                        .address = some_address(run),
                                                        .value = some_size(run)};
}

/* There are no semaphores without a device: these are refused. */
static void choose_semaphores(fuzz_run *run, rondo_semaphores_node *out, argument_values *arguments) {
  arguments->semaphore = (rondo_semaphore_value){.value = take(run)};
  *out = (rondo_semaphores_node){.values = &arguments->semaphore, .count = take(run) % 2u};
}

/* High numbers are the latest kinds, so that inputs from before them mean the same. */
static rondo_node_kind choose_kind(fuzz_run *run) {
  const uint8_t choice = take(run);
  return (rondo_node_kind)(choice >= 244 ? RONDO_NODE_MEMORY_OPERATIONS + choice % 3 : choice % 12);
}

static void choose_params(fuzz_run *run, rondo_node_params *out, argument_values *arguments) {
  *out = (rondo_node_params){.kind = choose_kind(run), .name = some_name(run)};
  switch (out->kind) {
    case RONDO_NODE_KERNEL:
      choose_kernel(run, &out->as.kernel, arguments);
      break;
    case RONDO_NODE_HOST:
      out->as.host = (rondo_host_node){.function = take(run) == 255 ? NULL : do_nothing, .user = some_address(run)};
      break;
    case RONDO_NODE_COPY:
      choose_copy(run, &out->as.copy);
      break;
    case RONDO_NODE_FILL:
      out->as.fill = (rondo_fill){some_address(run), take(run), take(run) % 8u, some_size(run), some_size(run), 0};
      break;
    case RONDO_NODE_CHILD:
      out->as.child = some_graph(run);
      break;
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
      out->as.event = take(run) == 255 ? NULL : (rondo_event *)(void *)&lent_event;
      break;
    case RONDO_NODE_ALLOC:
      out->as.alloc = (rondo_alloc_node){.bytes = some_size(run), .address = memory, .name = some_name(run)};
      break;
    case RONDO_NODE_FREE:
      out->as.free_address = some_address(run);
      break;
    case RONDO_NODE_FOREIGN:
      out->as.foreign = (rondo_foreign_node){.what = take(run) == 255 ? NULL : "copy", .bytes = some_size(run)};
      break;
    case RONDO_NODE_MEMORY_OPERATIONS:
      choose_operations(run, &out->as.memory_operations, arguments);
      break;
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      choose_semaphores(run, &out->as.semaphores, arguments);
      break;
    case RONDO_NODE_EMPTY:
      break;
  }
}

/* Calls ----------------------------------------------------------------------------------------------------------- */

static rondo_status call_insert(fuzz_run *run, rondo_graph *graph) {
  rondo_node_params params;
  argument_values arguments;
  rondo_node dependencies[MAX_LIST], node;
  choose_params(run, &params, &arguments);
  const size_t count = take(run) % (MAX_LIST + 1);
  for (size_t i = 0; i < count; i++) dependencies[i] = some_node(run, graph);
  const size_t before = graph->live_count, added = params.kind == RONDO_NODE_CHILD ? count_deep(params.as.child) : 1;
  const rondo_graph *root = graph;
  while (root->parent != NULL) root = root->parent;
  if (count_deep(root) + added > MAX_DEEP) return RONDO_OK;
  const rondo_status status = rondo_graph_insert(graph, dependencies, count, &params, &node);
  REQUIRE((status == RONDO_OK) == (node.id != 0));
  REQUIRE(graph->live_count == before + (status == RONDO_OK ? 1 : 0));
  return status;
}

static rondo_status call_replace(fuzz_run *run, rondo_graph *graph) {
  rondo_node_params params;
  argument_values arguments;
  choose_params(run, &params, &arguments);
  return rondo_graph_replace(graph, some_slot(run, graph), &params);
}

static rondo_status call_add_edges(fuzz_run *run, rondo_graph *graph) {
  rondo_node from[MAX_LIST], to[MAX_LIST];
  const size_t count = take(run) % (MAX_LIST + 1);
  for (size_t i = 0; i < count; i++) {
    from[i] = some_node(run, graph);
    to[i] = some_node(run, graph);
  }
  return rondo_graph_add_edges(graph, from, to, count);
}

/* Programmatic ones, usually with right ports, are added or removed. */
static rondo_status call_programmatic(fuzz_run *run, rondo_graph *graph) {
  uint32_t from[MAX_LIST], to[MAX_LIST];
  rondo_edge_data data[MAX_LIST] = {{0}};
  const size_t count = take(run) % (MAX_LIST + 1);
  const bool removes = take(run) % 4 == 3;
  for (size_t i = 0; i < count; i++) {
    const size_t edges = graph->programmatic.count;
    const uint8_t choice = take(run);
    from[i] = some_slot(run, graph);
    to[i] = some_slot(run, graph);
    data[i].from_port = choice % 4;
    data[i].type = choice % 16 == 15 ? 0 : RONDO_EDGE_PROGRAMMATIC;
    if (!removes || edges == 0 || choice % 8 == 7) continue;
    const rondo_programmatic_edge *edge = &graph->programmatic.items[choice % edges];
    from[i] = edge->from;
    to[i] = edge->to;
    data[i].from_port = edge->from_port;
  }
  return removes ? rondo_graph_erase_edges_with(graph, from, to, data, count)
                 : rondo_graph_link_edges_with(graph, from, to, data, count);
}

static rondo_status call_erase_edges(fuzz_run *run, rondo_graph *graph) {
  uint32_t from[MAX_LIST], to[MAX_LIST];
  const size_t count = take(run) % (MAX_LIST + 1);
  for (size_t i = 0; i < count; i++) {
    to[i] = some_slot(run, graph);
    from[i] = some_slot(run, graph);
    if (to[i] >= graph->nodes.count) continue;
    const rondo_slots *dependencies = &graph->nodes.items[to[i]].dependencies; /* usually an existing one */
    if (from[i] % 4 != 3 && dependencies->count > 0) from[i] = dependencies->items[from[i] % dependencies->count];
  }
  return rondo_graph_erase_edges(graph, from, to, count);
}

static rondo_status call_clone(fuzz_run *run, const rondo_graph *graph) {
  rondo_graph **place = &run->graphs[take(run) % GRAPHS];
  rondo_graph *clone;
  RONDO_TRY(rondo_graph_clone(graph, &clone));
  const size_t fail_at = run->allocator.fail_at;
  run->allocator.fail_at = 0;
  require_whole(clone);
  size_t differences = 0;
  const rondo_status status = rondo_graph_diff(graph, clone, false, NULL, &differences);
  REQUIRE(status == RONDO_INVALID_GRAPH || (status == RONDO_OK && differences == 0));
  for (size_t i = 0; i < graph->nodes.count; i++) {
    rondo_node copy;
    const rondo_status found = rondo_graph_find_in_clone(clone, rondo_graph_id(graph, (uint32_t)i), &copy);
    REQUIRE((found == RONDO_OK) == graph->nodes.items[i].live);
  }
  run->allocator.fail_at = fail_at;
  rondo_graph_free(*place);
  *place = clone;
  return RONDO_OK;
}

static rondo_status call_compare(fuzz_run *run, const rondo_graph *graph) {
  const rondo_graph *other = some_graph(run);
  rondo_difference differences[MAX_LIST];
  size_t count = MAX_LIST;
  uint64_t a, b;
  RONDO_TRY(rondo_graph_diff(graph, other, true, differences, &count));
  RONDO_TRY(rondo_graph_fingerprint(graph, &a));
  RONDO_TRY(rondo_graph_fingerprint(other, &b));
  REQUIRE(count > 0 || a == b);
  REQUIRE(graph != other || count == 0);
  return RONDO_OK;
}

/* Writes the graph as text, and reads it back. */
static rondo_status check_json(fuzz_run *run, const rondo_graph *graph, bool with_addresses) {
  char *first, *second;
  rondo_graph *back;
  RONDO_TRY(rondo_graph_to_json(graph, with_addresses, &first));
  rondo_status status = rondo_graph_read_json(&run->allocator.table, first, strlen(first), &back);
  REQUIRE(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY || status == RONDO_UNSUPPORTED);
  if (status == RONDO_OK) {
    status = rondo_graph_to_json(back, with_addresses, &second);
    if (status == RONDO_OK) {
      REQUIRE(with_addresses || strcmp(first, second) == 0);
      rondo_text_free(second);
    }
    rondo_graph_free(back);
  }
  rondo_text_free(first);
  return status;
}

static rondo_status call_dump(fuzz_run *run, const rondo_graph *graph) {
  const bool with_addresses = take(run) % 2 == 1;
  char *text;
  RONDO_TRY(rondo_graph_to_dot(graph, with_addresses, &text));
  REQUIRE(strncmp(text, "digraph", 7) == 0);
  rondo_text_free(text);
  const rondo_status status = check_json(run, graph, with_addresses);
  return status == RONDO_UNSUPPORTED ? RONDO_OK : status;
}

static rondo_status call_queries(fuzz_run *run, const rondo_graph *graph) {
  rondo_node nodes[MAX_LIST], others[MAX_LIST];
  rondo_node_params params;
  size_t count = take(run) % (MAX_LIST + 1);
  RONDO_TRY(rondo_graph_edges(graph, nodes, others, &count));
  count = MAX_LIST;
  RONDO_TRY(rondo_graph_roots(graph, nodes, &count));
  count = MAX_LIST;
  RONDO_TRY(rondo_graph_dependencies(graph, some_node(run, graph), nodes, &count));
  count = MAX_LIST;
  RONDO_TRY(rondo_graph_dependents(graph, some_node(run, graph), nodes, &count));
  count = MAX_LIST;
  RONDO_TRY(rondo_graph_sort(graph, nodes, &count));
  REQUIRE(count == graph->live_count);
  return rondo_graph_get_params(graph, some_node(run, graph), &params);
}

static rondo_status call_one(fuzz_run *run, uint8_t choice, rondo_graph *graph) {
  switch (choice % 12) {
    case 0:
      return rondo_graph_erase(graph, some_slot(run, graph));
    case 1:
      return call_add_edges(run, graph);
    case 2:
      return call_programmatic(run, graph);
    case 3:
      return call_erase_edges(run, graph);
    case 4:
      return call_clone(run, graph);
    case 5:
      return call_compare(run, graph);
    case 6:
      return call_dump(run, graph);
    case 7:
      return call_queries(run, graph);
    case 8:
      return call_replace(run, graph);
    default:
      return call_insert(run, graph);
  }
}

static void call_some(fuzz_run *run) {
  const uint8_t choice = take(run);
  /* A clone may free the graph that it replaces, so only whole graphs are cloned. */
  rondo_graph *graph = choice % 12 == 4 ? some_graph(run) : some_inner_graph(run);
  const uint64_t before = hash_graph(graph);
  run->allocator.calls = 0;
  run->allocator.fail_at = choice >= 240 ? 1 + take(run) % 32u : 0;
  const rondo_status status = call_one(run, choice, graph);
  run->allocator.fail_at = 0;
  if (status == RONDO_OK) return;
  REQUIRE(rondo_last_error()->status == status && rondo_last_error()->message[0] != '\0');
  REQUIRE(status != RONDO_OUT_OF_MEMORY || choice >= 240);
  REQUIRE(hash_graph(graph) == before);
}

static void set_up(fuzz_run *run) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "kernel",
                                        .params = {RONDO_SCALAR(uint32_t), RONDO_UPDATES}};
  test_allocator_init(&run->allocator);
  for (size_t i = 0; i < KERNELS; i++)
    REQUIRE(rondo_kernel_make(i < 2 ? device() : NULL, &run->allocator.table, &options, &run->kernels[i]) == RONDO_OK);
  for (size_t i = 0; i < GRAPHS; i++)
    REQUIRE(rondo_graph_make(device(), &run->allocator.table, i % 2 == 0 ? "graph" : "", &run->graphs[i]) == RONDO_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_run run = {.data = data, .left = size};
  set_up(&run);
  for (int i = 0; i < MAX_CALLS && run.left > 0; i++) {
    call_some(&run);
    for (size_t g = 0; g < GRAPHS; g++) require_whole(run.graphs[g]);
  }
  for (size_t i = 0; i < GRAPHS; i++) rondo_graph_free(run.graphs[i]);
  for (size_t i = 0; i < KERNELS; i++) rondo_kernel_release(run.kernels[i]);
  REQUIRE(run.allocator.live == 0 && run.allocator.faults == 0 && event_holds == 0);
  return 0;
}
