/* SPDX-License-Identifier: MIT
 * Graphs of the fake driver: nodes in the order of their creation, edges with their data, queries. A child graph is a
 * deep copy that belongs to its node. Cycles are found at instantiation.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake.h"

fake_graph *fake_graph_new(void) {
  fake_graph *graph = fake_allocate(1, sizeof *graph);
  fake_object_add(&graph->object, FAKE_CUDA_GRAPH, NULL);
  return graph;
}

static void free_node(fake_node *node) {
  if (node->child != NULL) fake_graph_free(node->child);
  fake_work_release(node->work);
  fake_object_remove(&node->object);
  free(node);
}

void fake_graph_free(fake_graph *graph) {
  for (size_t i = 0; i < graph->count; i++) free_node(graph->nodes[i]);
  fake_object_remove(&graph->object);
  free(graph->nodes);
  free(graph->edges);
  free(graph);
}

/* Makes room for one more in an array. */
static void *grow(void *array, size_t count, size_t *capacity, size_t bytes) {
  if (count < *capacity) return array;
  *capacity = *capacity > 0 ? 2 * *capacity : 8;
  void *grown = fake_allocate(*capacity, bytes);
  if (count > 0) memcpy(grown, array, count * bytes);
  free(array);
  return grown;
}

static fake_node *append_node(fake_graph *graph, cu_node_type type, fake_work *work) {
  fake_node *node = fake_allocate(1, sizeof *node);
  node->graph = graph;
  node->type = type;
  node->work = work;
  node->index = graph->count;
  graph->nodes = grow(graph->nodes, graph->count, &graph->capacity, sizeof *graph->nodes);
  graph->nodes[graph->count++] = node;
  fake_object_add(&node->object, FAKE_CUDA_NODE, NULL);
  return node;
}

static void append_edge(fake_graph *graph, fake_edge edge) {
  graph->edges = grow(graph->edges, graph->edge_count, &graph->edge_capacity, sizeof edge);
  graph->edges[graph->edge_count++] = edge;
}

static fake_graph *copy_graph(const fake_graph *graph) {
  fake_graph *copy = fake_graph_new();
  for (size_t i = 0; i < graph->count; i++) {
    const fake_node *node = graph->nodes[i];
    fake_work_retain(node->work);
    fake_node *made = append_node(copy, node->type, node->work);
    made->source = fake_as(cu_graph_node, (fake_node *)node);
    if (node->child != NULL) made->child = copy_graph(node->child);
    if (made->child != NULL) made->child->owner = made;
  }
  for (size_t i = 0; i < graph->edge_count; i++) {
    const fake_edge *edge = &graph->edges[i];
    append_edge(copy, (fake_edge){copy->nodes[edge->from->index], copy->nodes[edge->to->index], edge->data});
  }
  return copy;
}

static fake_node *node_of(const fake_graph *graph, cu_graph_node handle) {
  fake_node *node = fake_need(FAKE_CUDA_NODE, fake_handle(handle));
  if (node == NULL || node->graph == graph) return node;
  (void)fake_violation(CU_INVALID_VALUE, "node %p is another graph's", (void *)handle);
  return NULL;
}

static bool are_dependencies_good(const fake_graph *graph, const cu_graph_node *before, size_t count) {
  if (count > 0 && before == NULL) return false;
  for (size_t i = 0; i < count; i++) {
    if (node_of(graph, before[i]) == NULL) return false;
    for (size_t k = 0; k < i; k++) {
      if (before[k] == before[i]) return false;
    }
  }
  return true;
}

cu_result fake_graph_add(fake_graph *graph, const cu_graph_node *before, const cu_edge_data *data, size_t count,
                         cu_node_type type, fake_work *work, fake_node **out) {
  *out = NULL;
  if (!are_dependencies_good(graph, before, count)) {
    fake_work_release(work);
    return CU_INVALID_VALUE;
  }
  fake_node *node = append_node(graph, type, work);
  for (size_t i = 0; i < count; i++) {
    fake_node *from = fake_find(FAKE_CUDA_NODE, fake_handle(before[i]));
    append_edge(graph, (fake_edge){from, node, data != NULL ? data[i] : (cu_edge_data){0}});
  }
  *out = node;
  return CU_OK;
}

/* Marks what leads straight to marked nodes; whether that were new ones. One pass marks all when edges were added
 * after those that lead to them. */
static bool mark_before(const fake_graph *graph, bool *seen) {
  bool has_marked = false;
  for (size_t i = graph->edge_count; i-- > 0;) {
    const fake_edge *edge = &graph->edges[i];
    if (!seen[edge->to->index] || seen[edge->from->index]) continue;
    seen[edge->from->index] = true;
    has_marked = true;
  }
  return has_marked;
}

bool fake_graph_has_memory(const fake_graph *graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const fake_node *node = graph->nodes[i];
    if (node->type == CU_NODE_ALLOC || node->type == CU_NODE_FREE) return true;
  }
  return false;
}

bool fake_graph_reaches(const fake_graph *graph, const fake_node *from, const fake_frontier *to) {
  bool *seen = fake_allocate(graph->count, sizeof *seen);
  for (size_t i = 0; i < to->count; i++) {
    const fake_node *node = fake_find(FAKE_CUDA_NODE, fake_handle(to->nodes[i]));
    if (node != NULL && node->graph == graph) seen[node->index] = true;
  }
  while (mark_before(graph, seen)) continue;
  const bool is_reached = seen[from->index];
  free(seen);
  return is_reached;
}

static fake_graph *need_graph(cu_graph handle) { return fake_need(FAKE_CUDA_GRAPH, fake_handle(handle)); }

cu_result fake_graph_create(cu_graph *out, unsigned flags) {
  cu_result code = fake_begin(CALL_graph_create, FAKE_ANYWHERE);
  if (code == CU_OK && (out == NULL || flags != 0)) code = CU_INVALID_VALUE;
  if (code == CU_OK) *out = fake_as(cu_graph, fake_graph_new());
  return fake_end(code);
}

cu_result fake_graph_destroy(cu_graph handle) {
  cu_result code = fake_begin(CALL_graph_destroy, FAKE_ALL_THE_SAME);
  fake_graph *graph = code == CU_OK ? need_graph(handle) : NULL;
  if (code == CU_OK && graph == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && graph->capture != NULL) code = CU_ILLEGAL_STATE;
  if (code == CU_OK && graph->owner != NULL) code = fake_violation(CU_INVALID_VALUE, "a child's graph destroyed");
  if (code == CU_OK) fake_graph_free(graph);
  return fake_end(code);
}

/* Ends a call that adds a node: adds it unless `code` says otherwise. Takes over `work`. */
static cu_result end_add(cu_result code, cu_graph_node *out, cu_graph graph_handle, const cu_graph_node *before,
                         size_t count, cu_node_type type, fake_work *work) {
  fake_graph *graph = code == CU_OK ? need_graph(graph_handle) : NULL;
  fake_node *node = NULL;
  if (code == CU_OK && (out == NULL || graph == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK)
    code = fake_graph_add(graph, before, NULL, count, type, work, &node);
  else
    fake_work_release(work);
  if (code == CU_OK) *out = fake_as(cu_graph_node, node);
  return fake_end(code);
}

cu_result fake_graph_add_kernel(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                                const cu_kernel_params *params) {
  cu_result code = fake_begin(CALL_graph_add_kernel, FAKE_IN_CONTEXT);
  fake_work *work = NULL;
  if (code == CU_OK && params == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_kernel(params, NULL, &work);
  return end_add(code, node, graph, before, count, CU_NODE_KERNEL, work);
}

cu_result fake_graph_add_copy(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                              const cu_copy *params, cu_context context_handle) {
  cu_result code = fake_begin(CALL_graph_add_copy, FAKE_IN_CONTEXT);
  fake_work *work = NULL;
  fake_context *context = code == CU_OK ? fake_need(FAKE_CUDA_CONTEXT, fake_handle(context_handle)) : NULL;
  if (code == CU_OK && context == NULL) code = CU_INVALID_CONTEXT;
  if (code == CU_OK && params == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_copy(params, context, false, &work);
  const fake_graph *to = code == CU_OK ? need_graph(graph) : NULL;
  if (to != NULL && fake_graph_has_freed(to, params)) {
    fake_work_release(work);
    return fake_end(CU_INVALID_VALUE);
  }
  return end_add(code, node, graph, before, count, CU_NODE_COPY, work);
}

cu_result fake_graph_add_memset(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                                const cu_memset_params *params, cu_context context_handle) {
  cu_result code = fake_begin(CALL_graph_add_memset, FAKE_IN_CONTEXT);
  fake_work *work = NULL;
  fake_context *context = code == CU_OK ? fake_need(FAKE_CUDA_CONTEXT, fake_handle(context_handle)) : NULL;
  if (code == CU_OK && context == NULL) code = CU_INVALID_CONTEXT;
  if (code == CU_OK && params == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_fill(params, context, false, &work);
  return end_add(code, node, graph, before, count, CU_NODE_MEMSET, work);
}

cu_result fake_graph_add_host(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                              const cu_host_params *params) {
  cu_result code = fake_begin(CALL_graph_add_host, FAKE_IN_CONTEXT);
  fake_work *work = NULL;
  if (code == CU_OK && params == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_host(params, fake_self.current, &work);
  return end_add(code, node, graph, before, count, CU_NODE_HOST, work);
}

cu_result fake_graph_add_memory_operations(cu_graph_node *node, cu_graph graph, const cu_graph_node *before,
                                           size_t count, const cu_memory_operations_params *params) {
  cu_result code = fake_begin(CALL_graph_add_memory_operations, FAKE_IN_CONTEXT);
  fake_work *work = NULL;
  if (code == CU_OK && (params == NULL || params->flags != 0)) code = CU_INVALID_VALUE;
  fake_context *context = code == CU_OK ? fake_need(FAKE_CUDA_CONTEXT, fake_handle(params->context)) : NULL;
  if (code == CU_OK && context == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_operations(params->operations, params->count, context, &work);
  return end_add(code, node, graph, before, count, CU_NODE_BATCH_MEMORY_OPERATION, work);
}

static cu_result add_semaphores(fake_call call, cu_node_type type, cu_graph_node *node, cu_graph graph,
                                const cu_graph_node *before, size_t count, const cu_semaphores_params *params) {
  cu_result code = fake_begin(call, FAKE_IN_CONTEXT);
  fake_work *work = NULL;
  if (code == CU_OK && params == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK)
    code = fake_work_semaphores(params->semaphores, params->params, params->count, type, fake_self.current, &work);
  return end_add(code, node, graph, before, count, type, work);
}

cu_result fake_graph_add_semaphore_signal(cu_graph_node *node, cu_graph graph, const cu_graph_node *before,
                                          size_t count, const cu_semaphores_params *params) {
  return add_semaphores(CALL_graph_add_semaphore_signal, CU_NODE_SEMAPHORE_SIGNAL, node, graph, before, count, params);
}

cu_result fake_graph_add_semaphore_wait(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                                        const cu_semaphores_params *params) {
  return add_semaphores(CALL_graph_add_semaphore_wait, CU_NODE_SEMAPHORE_WAIT, node, graph, before, count, params);
}

cu_result fake_graph_add_empty(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count) {
  const cu_result code = fake_begin(CALL_graph_add_empty, FAKE_ANYWHERE);
  return end_add(code, node, graph, before, count, CU_NODE_EMPTY, NULL);
}

cu_result fake_graph_add_event_record(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                                      cu_event event) {
  cu_result code = fake_begin(CALL_graph_add_event_record, FAKE_ANYWHERE);
  fake_work *work = NULL;
  if (code == CU_OK) code = fake_work_event(event, CU_NODE_EVENT_RECORD, &work);
  return end_add(code, node, graph, before, count, CU_NODE_EVENT_RECORD, work);
}

cu_result fake_graph_add_event_wait(cu_graph_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                                    cu_event event) {
  cu_result code = fake_begin(CALL_graph_add_event_wait, FAKE_ANYWHERE);
  fake_work *work = NULL;
  if (code == CU_OK) code = fake_work_event(event, CU_NODE_EVENT_WAIT, &work);
  return end_add(code, node, graph, before, count, CU_NODE_EVENT_WAIT, work);
}

cu_result fake_graph_add_child(cu_graph_node *out, cu_graph graph_handle, const cu_graph_node *before, size_t count,
                               cu_graph child_handle) {
  cu_result code = fake_begin(CALL_graph_add_child, FAKE_ANYWHERE);
  fake_graph *graph = code == CU_OK ? need_graph(graph_handle) : NULL;
  const fake_graph *child = graph != NULL ? need_graph(child_handle) : NULL;
  fake_node *node = NULL;
  if (code == CU_OK && (out == NULL || child == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_graph_has_memory(child)) code = CU_NOT_SUPPORTED;
  if (code != CU_OK) return fake_end(code);
  fake_graph *copy = copy_graph(child);
  code = fake_graph_add(graph, before, NULL, count, CU_NODE_GRAPH, NULL, &node);
  if (code != CU_OK) {
    fake_graph_free(copy);
    return fake_end(code);
  }
  copy->owner = node;
  node->child = copy;
  *out = fake_as(cu_graph_node, node);
  return fake_end(CU_OK);
}

cu_result fake_graph_clone(cu_graph *out, cu_graph handle) {
  cu_result code = fake_begin(CALL_graph_clone, FAKE_ANYWHERE);
  const fake_graph *graph = code == CU_OK ? need_graph(handle) : NULL;
  if (code == CU_OK && (out == NULL || graph == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK && fake_graph_has_memory(graph)) code = CU_NOT_SUPPORTED;
  if (code == CU_OK) *out = fake_as(cu_graph, copy_graph(graph));
  return fake_end(code);
}

cu_result fake_graph_find_in_clone(cu_graph_node *out, cu_graph_node of, cu_graph handle) {
  cu_result code = fake_begin(CALL_graph_find_in_clone, FAKE_ANYWHERE);
  const fake_graph *graph = code == CU_OK ? need_graph(handle) : NULL;
  size_t i = 0;
  if (code == CU_OK && (out == NULL || of == NULL || graph == NULL)) code = CU_INVALID_VALUE;
  while (code == CU_OK && i < graph->count && graph->nodes[i]->source != of) i++;
  if (code == CU_OK && i == graph->count) code = CU_INVALID_VALUE;
  if (code == CU_OK) *out = fake_as(cu_graph_node, graph->nodes[i]);
  return fake_end(code);
}

/* Edges ----------------------------------------------------------------------------------------------------------- */

/* The place of an edge, or the number of edges. */
static size_t find_edge(const fake_graph *graph, const fake_node *from, const fake_node *to) {
  size_t i = 0;
  while (i < graph->edge_count && (graph->edges[i].from != from || graph->edges[i].to != to)) i++;
  return i;
}

static bool is_plain(cu_edge_data data) {
  static const cu_edge_data plain;
  return memcmp(&data, &plain, sizeof plain) == 0;
}

static cu_result change_edge(fake_graph *graph, cu_graph_node from_handle, cu_graph_node to_handle, cu_edge_data data,
                             bool adds) {
  fake_node *from = node_of(graph, from_handle), *to = node_of(graph, to_handle);
  if (from == NULL || to == NULL || from == to) return CU_INVALID_VALUE;
  const size_t i = find_edge(graph, from, to);
  const bool is_there = i < graph->edge_count;
  if (is_there == adds) return CU_INVALID_VALUE;
  if (adds) {
    append_edge(graph, (fake_edge){from, to, data});
    return CU_OK;
  }
  if (memcmp(&graph->edges[i].data, &data, sizeof data) != 0) return CU_INVALID_VALUE;
  memmove(&graph->edges[i], &graph->edges[i + 1], (--graph->edge_count - i) * sizeof graph->edges[0]);
  return CU_OK;
}

static cu_result change_edges(cu_graph handle, const cu_graph_node *from, const cu_graph_node *to,
                              const cu_edge_data *data, size_t count, bool adds) {
  fake_graph *graph = need_graph(handle);
  cu_result code = graph == NULL ? CU_INVALID_VALUE : CU_OK;
  if (code == CU_OK && count > 0 && (from == NULL || to == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK && count > 0 && !adds && fake_graph_has_memory(graph)) code = CU_NOT_SUPPORTED;
  for (size_t i = 0; i < count && code == CU_OK; i++)
    code = change_edge(graph, from[i], to[i], data != NULL ? data[i] : (cu_edge_data){0}, adds);
  return code;
}

cu_result fake_graph_add_edges(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to,
                               const cu_edge_data *data, size_t count) {
  cu_result code = fake_begin(CALL_graph_add_edges, FAKE_ANYWHERE);
  if (code == CU_OK) code = change_edges(graph, from, to, data, count, true);
  return fake_end(code);
}

cu_result fake_graph_remove_edges(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to,
                                  const cu_edge_data *data, size_t count) {
  cu_result code = fake_begin(CALL_graph_remove_edges, FAKE_ANYWHERE);
  if (code == CU_OK) code = change_edges(graph, from, to, data, count, false);
  return fake_end(code);
}

static void remove_node(fake_node *node) {
  fake_graph *graph = node->graph;
  size_t kept = 0;
  for (size_t i = 0; i < graph->edge_count; i++) {
    if (graph->edges[i].from != node && graph->edges[i].to != node) graph->edges[kept++] = graph->edges[i];
  }
  graph->edge_count = kept;
  graph->count--;
  for (size_t i = node->index; i < graph->count; i++) {
    graph->nodes[i] = graph->nodes[i + 1];
    graph->nodes[i]->index = i;
  }
  free_node(node);
}

cu_result fake_graph_destroy_node(cu_graph_node handle) {
  cu_result code = fake_begin(CALL_graph_destroy_node, FAKE_ANYWHERE);
  fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  if (code == CU_OK && node == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK && node->graph->capture != NULL) code = CU_ILLEGAL_STATE;
  if (code == CU_OK && fake_graph_has_memory(node->graph)) code = CU_NOT_SUPPORTED;
  if (code == CU_OK) remove_node(node);
  return fake_end(code);
}

/* Queries --------------------------------------------------------------------------------------------------------- */

cu_result fake_graph_get_nodes(cu_graph handle, cu_graph_node *nodes, size_t *count) {
  cu_result code = fake_begin(CALL_graph_get_nodes, FAKE_ANYWHERE);
  const fake_graph *graph = code == CU_OK ? need_graph(handle) : NULL;
  if (code == CU_OK && (graph == NULL || count == NULL)) code = CU_INVALID_VALUE;
  if (code != CU_OK) return fake_end(code);
  for (size_t i = 0; nodes != NULL && i < *count; i++)
    nodes[i] = i < graph->count ? fake_as(cu_graph_node, graph->nodes[i]) : NULL;
  if (nodes == NULL || *count > graph->count) *count = graph->count;
  return fake_end(CU_OK);
}

static bool are_all_plain(const fake_graph *graph) {
  for (size_t i = 0; i < graph->edge_count; i++) {
    if (!is_plain(graph->edges[i].data)) return false;
  }
  return true;
}

static void read_edges(const fake_graph *graph, cu_graph_node *from, cu_graph_node *to, cu_edge_data *data,
                       size_t count) {
  for (size_t i = 0; i < count; i++) {
    const fake_edge *edge = i < graph->edge_count ? &graph->edges[i] : NULL;
    from[i] = edge != NULL ? fake_as(cu_graph_node, edge->from) : NULL;
    to[i] = edge != NULL ? fake_as(cu_graph_node, edge->to) : NULL;
    if (data != NULL) data[i] = edge != NULL ? edge->data : (cu_edge_data){0};
  }
}

cu_result fake_graph_get_edges(cu_graph handle, cu_graph_node *from, cu_graph_node *to, cu_edge_data *data,
                               size_t *count) {
  cu_result code = fake_begin(CALL_graph_get_edges, FAKE_ANYWHERE);
  const fake_graph *graph = code == CU_OK ? need_graph(handle) : NULL;
  if (code == CU_OK && (graph == NULL || count == NULL || (from == NULL) != (to == NULL))) code = CU_INVALID_VALUE;
  if (code == CU_OK && from != NULL && data == NULL && !are_all_plain(graph)) code = FAKE_LOSSY_QUERY;
  if (code != CU_OK) return fake_end(code);
  if (from != NULL) read_edges(graph, from, to, data, *count);
  if (from == NULL || *count > graph->edge_count) *count = graph->edge_count;
  return fake_end(CU_OK);
}

cu_result fake_graph_node_get_type(cu_graph_node handle, cu_node_type *type) {
  cu_result code = fake_begin(CALL_graph_node_get_type, FAKE_ANYWHERE);
  const fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  if (code == CU_OK && (node == NULL || type == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) *type = node->type;
  return fake_end(code);
}

/* The work of a node of this type; NULL when it is of another. */
static const fake_work *work_of(cu_graph_node handle, cu_node_type type) {
  const fake_node *node = fake_need(FAKE_CUDA_NODE, fake_handle(handle));
  return node != NULL && node->type == type ? node->work : NULL;
}

/* Copies what a node of this type is to do, from this place of its work. */
static cu_result get_params(fake_call call, cu_graph_node node, cu_node_type type, size_t offset, void *out,
                            size_t bytes) {
  cu_result code = fake_begin(call, FAKE_ANYWHERE);
  const fake_work *work = code == CU_OK ? work_of(node, type) : NULL;
  if (code == CU_OK && (work == NULL || out == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) memcpy(out, (const char *)work + offset, bytes);
  return fake_end(code);
}

cu_result fake_graph_kernel_get_params(cu_graph_node node, cu_kernel_params *params) {
  return get_params(CALL_graph_kernel_get_params, node, CU_NODE_KERNEL, offsetof(fake_work, of.kernel.params), params,
                    sizeof *params);
}

/* The node keeps its attributes. */
cu_result fake_graph_kernel_set_params(cu_graph_node handle, const cu_kernel_params *params) {
  cu_result code = fake_begin(CALL_graph_kernel_set_params, FAKE_IN_CONTEXT);
  fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  fake_work *work = NULL;
  const bool is_kernel = node != NULL && node->type == CU_NODE_KERNEL;
  if (code == CU_OK && (!is_kernel || params == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_work_kernel(params, &node->work->of.kernel.attributes, &work);
  if (code == CU_OK) {
    fake_work_release(node->work);
    node->work = work;
  }
  return fake_end(code);
}

cu_result fake_graph_copy_get_params(cu_graph_node node, cu_copy *params) {
  return get_params(CALL_graph_copy_get_params, node, CU_NODE_COPY, offsetof(fake_work, of.copy), params,
                    sizeof *params);
}

cu_result fake_graph_memset_get_params(cu_graph_node node, cu_memset_params *params) {
  return get_params(CALL_graph_memset_get_params, node, CU_NODE_MEMSET, offsetof(fake_work, of.fill), params,
                    sizeof *params);
}

cu_result fake_graph_host_get_params(cu_graph_node node, cu_host_params *params) {
  return get_params(CALL_graph_host_get_params, node, CU_NODE_HOST, offsetof(fake_work, of.host), params,
                    sizeof *params);
}

cu_result fake_graph_memory_operations_get_params(cu_graph_node handle, cu_memory_operations_params *params) {
  cu_result code = fake_begin(CALL_graph_memory_operations_get_params, FAKE_ANYWHERE);
  const fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  const bool is_good = node != NULL && node->type == CU_NODE_BATCH_MEMORY_OPERATION && params != NULL;
  if (code == CU_OK && !is_good) code = CU_INVALID_VALUE;
  if (code == CU_OK)
    *params = (cu_memory_operations_params){.context = fake_as(cu_context, node->work->context),
                                            .count = (unsigned)node->work->of.operations.count,
                                            .operations = node->work->of.operations.items};
  return fake_end(code);
}

cu_result fake_graph_child_get_graph(cu_graph_node handle, cu_graph *graph) {
  cu_result code = fake_begin(CALL_graph_child_get_graph, FAKE_ANYWHERE);
  const fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  if (code == CU_OK && (node == NULL || node->child == NULL || graph == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) *graph = fake_as(cu_graph, node->child);
  return fake_end(code);
}

/* What leads to a node, with its data. */
cu_result fake_graph_node_get_dependencies(cu_graph_node handle, cu_graph_node *before, cu_edge_data *data,
                                           size_t *count) {
  cu_result code = fake_begin(CALL_graph_node_get_dependencies, FAKE_ANYWHERE);
  const fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  size_t found = 0;
  if (code == CU_OK && (node == NULL || count == NULL)) code = CU_INVALID_VALUE;
  if (code != CU_OK) return fake_end(code);
  for (size_t i = 0; i < node->graph->edge_count; i++) {
    const fake_edge *edge = &node->graph->edges[i];
    if (edge->to != node) continue;
    if (before != NULL && data == NULL && !is_plain(edge->data)) return fake_end(FAKE_LOSSY_QUERY);
    if (before != NULL && found < *count) before[found] = fake_as(cu_graph_node, edge->from);
    if (before != NULL && data != NULL && found < *count) data[found] = edge->data;
    found++;
  }
  for (size_t i = found; before != NULL && i < *count; i++) before[i] = NULL;
  if (before == NULL || *count > found) *count = found;
  return fake_end(CU_OK);
}

static cu_result get_event(fake_call call, cu_graph_node node, cu_node_type type, cu_event *event) {
  cu_result code = fake_begin(call, FAKE_ANYWHERE);
  const fake_work *work = code == CU_OK ? work_of(node, type) : NULL;
  if (code == CU_OK && (work == NULL || event == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) *event = fake_as(cu_event, work->of.event);
  return fake_end(code);
}

cu_result fake_graph_event_record_get(cu_graph_node node, cu_event *event) {
  return get_event(CALL_graph_event_record_get, node, CU_NODE_EVENT_RECORD, event);
}

cu_result fake_graph_event_wait_get(cu_graph_node node, cu_event *event) {
  return get_event(CALL_graph_event_wait_get, node, CU_NODE_EVENT_WAIT, event);
}

/* The node gets a work like its own with these attributes. */
static cu_result change_attributes(fake_node *node, const fake_cuda_attributes *attributes) {
  fake_work *work;
  const cu_result code = fake_work_kernel(&node->work->of.kernel.params, attributes, &work);
  if (code != CU_OK) return code;
  fake_work_release(node->work);
  node->work = work;
  return CU_OK;
}

cu_result fake_graph_kernel_get_attribute(cu_graph_node handle, cu_launch_attribute_id id, cu_launch_value *value) {
  cu_result code = fake_begin(CALL_graph_kernel_get_attribute, FAKE_ANYWHERE);
  const fake_work *work = code == CU_OK ? work_of(handle, CU_NODE_KERNEL) : NULL;
  if (code == CU_OK && (work == NULL || value == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_attribute_get(&work->of.kernel.attributes, id, value);
  return fake_end(code);
}

cu_result fake_graph_kernel_set_attribute(cu_graph_node handle, cu_launch_attribute_id id,
                                          const cu_launch_value *value) {
  cu_result code = fake_begin(CALL_graph_kernel_set_attribute, FAKE_ANYWHERE);
  fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  if (code == CU_OK && (node == NULL || node->type != CU_NODE_KERNEL || value == NULL || id == CU_LAUNCH_PROGRAMMATIC))
    code = CU_INVALID_VALUE;
  if (code != CU_OK) return fake_end(code);
  fake_cuda_attributes attributes = node->work->of.kernel.attributes;
  code = fake_attribute_set(&attributes, id, value);
  return fake_end(code == CU_OK ? change_attributes(node, &attributes) : code);
}

cu_result fake_graph_kernel_copy_attributes(cu_graph_node handle, cu_graph_node source_handle) {
  cu_result code = fake_begin(CALL_graph_kernel_copy_attributes, FAKE_ANYWHERE);
  fake_node *node = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(handle)) : NULL;
  const fake_node *source = code == CU_OK ? fake_need(FAKE_CUDA_NODE, fake_handle(source_handle)) : NULL;
  const bool are_kernels =
      node != NULL && source != NULL && node->type == CU_NODE_KERNEL && source->type == CU_NODE_KERNEL;
  if (code == CU_OK && !are_kernels) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = change_attributes(node, &source->work->of.kernel.attributes);
  return fake_end(code);
}
