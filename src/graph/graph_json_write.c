/* SPDX-License-Identifier: MIT
 * A graph as JSON (<rondo/graph.h> describes the format). Each kernel is listed once, in the order of the first nodes
 * that use them. Nodes are in the order of their numbers, and a child graph is inside its node. The same graph always
 * gives the same text.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_json_read.h"
#include "graph/launch_config.h"
#include "graph/node.h"
#include "graph/node_fields.h"
#include "graph/semaphore_data.h"

/* A kernel and its index in the text's list of kernels. */
typedef struct listed_kernel {
  const rondo_kernel *kernel;
  uint32_t index;
} listed_kernel;

typedef struct json_writer {
  rondo_text text;
  const rondo_graph *graph; /* whose nodes are being written */
  bool with_addresses;
  RONDO_ARRAY(listed_kernel) kernels;       /* sorted by address, for searching */
  RONDO_ARRAY(const rondo_kernel *) listed; /* by index */
} json_writer;

/* Kernels --------------------------------------------------------------------------------------------------------- */

static bool find_kernel(const json_writer *writer, const rondo_kernel *kernel, size_t *out_at) {
  size_t low = 0, high = writer->kernels.count;
  RONDO_BINARY_SEARCH(low, high, middle, (uintptr_t)writer->kernels.items[middle].kernel < (uintptr_t)kernel)
  *out_at = low;
  return low < writer->kernels.count && writer->kernels.items[low].kernel == kernel;
}

static rondo_status list_kernel(json_writer *writer, const rondo_kernel *kernel) {
  const rondo_allocator *allocator = &writer->text.allocator;
  size_t at;
  if (find_kernel(writer, kernel, &at)) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(allocator, &writer->kernels, writer->kernels.count + 1));
  RONDO_TRY(rondo_array_push(allocator, &writer->listed, &kernel));
  const listed_kernel listed = {.kernel = kernel, .index = (uint32_t)(writer->listed.count - 1)};
  rondo_array_insert(&writer->kernels, at, listed);
  return RONDO_OK;
}

static rondo_status list_kernels(json_writer *writer, const rondo_graph *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) continue;
    if (node->params.kind == RONDO_NODE_KERNEL) RONDO_TRY(list_kernel(writer, node->params.as.kernel.kernel));
    if (node->params.kind == RONDO_NODE_CHILD) RONDO_TRY(list_kernels(writer, node->params.as.child));
  }
  return RONDO_OK;
}

/* After those of nodes, so that reading and writing again gives the same order. */
static rondo_status list_symbol_kernels(json_writer *writer, const rondo_graph *graph) {
  const rondo_graph *child;
  for (size_t i = 0; i < graph->symbol_kernels.count; i++)
    RONDO_TRY(list_kernel(writer, graph->symbol_kernels.items[i]));
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    RONDO_TRY(list_symbol_kernels(writer, child));
  return RONDO_OK;
}

static void put_size(rondo_text *text, const char *key, uint64_t value) {
  rondo_json_key(text, key);
  rondo_json_u64(text, value);
}

static void put_text(rondo_text *text, const char *key, const char *value) {
  rondo_json_key(text, key);
  rondo_json_string(text, value);
}

static void put_numbers(rondo_text *text, const uint64_t *numbers, size_t count) {
  rondo_json_array_begin(text);
  for (size_t i = 0; i < count; i++) rondo_json_u64(text, numbers[i]);
  rondo_json_array_end(text);
}

/* One line for each kernel and node, so texts can be compared line by line. */
static void begin_line(rondo_text *text) {
  rondo_text_add_bytes(text, "\n", 1);
  rondo_json_object_begin(text);
}

/* Omitted if there are none. */
static void put_symbols(rondo_text *text, const rondo_kernel *kernel) {
  if (kernel->symbol_count == 0) return;
  rondo_json_key(text, "symbols");
  rondo_json_array_begin(text);
  for (uint32_t i = 0; i < kernel->symbol_count; i++) {
    rondo_json_object_begin(text);
    put_text(text, "name", kernel->symbols[i].name);
    put_size(text, "bytes", kernel->symbols[i].bytes);
    rondo_json_object_end(text);
  }
  rondo_json_array_end(text);
}

static void put_kernel(rondo_text *text, const rondo_kernel *kernel) {
  begin_line(text);
  put_text(text, "name", kernel->name);
  put_size(text, "block_threads", kernel->block_threads);
  rondo_json_key(text, "parameters");
  rondo_json_array_begin(text);
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    rondo_json_object_begin(text);
    put_text(text, "access", rondo_access_names[kernel->parameters[i].access]);
    put_size(text, "bytes", kernel->parameters[i].bytes);
    put_size(text, "alignment", kernel->parameters[i].alignment);
    rondo_json_object_end(text);
  }
  rondo_json_array_end(text);
  put_symbols(text, kernel);
  rondo_json_object_end(text);
}

static void put_kernels(json_writer *writer) {
  rondo_json_key(&writer->text, "kernels");
  rondo_json_array_begin(&writer->text);
  for (size_t i = 0; i < writer->listed.count; i++) put_kernel(&writer->text, writer->listed.items[i]);
  rondo_json_array_end(&writer->text);
}

/* Nodes ----------------------------------------------------------------------------------------------------------- */

static void put_address_value(rondo_text *text, uintptr_t address) {
  char printed[2 + 2 * sizeof address + 1];
  snprintf(printed, sizeof printed, "0x%" PRIxPTR, address);
  rondo_json_string(text, printed);
}

static void put_address(json_writer *writer, const char *key, const void *address) {
  if (!writer->with_addresses || address == NULL) return;
  rondo_json_key(&writer->text, key);
  put_address_value(&writer->text, (uintptr_t)address);
}

/* Writes an address in a symbol, with or without addresses: the symbol and the offset in it. False for others. */
static bool put_symbol_address(json_writer *writer, const char *key, const void *address) {
  const rondo_kernel *kernel;
  const rondo_code_symbol *symbol = rondo_graph_symbol_at(writer->graph, address, &kernel);
  size_t at;
  if (symbol == NULL || !find_kernel(writer, kernel, &at)) return false;
  if (key != NULL) rondo_json_key(&writer->text, key);
  rondo_json_object_begin(&writer->text);
  put_size(&writer->text, "kernel", writer->kernels.items[at].index);
  put_text(&writer->text, "symbol", symbol->name);
  put_size(&writer->text, "offset", (uintptr_t)address - (uintptr_t)symbol->address);
  rondo_json_object_end(&writer->text);
  return true;
}

static void put_argument(json_writer *writer, const rondo_parameter *parameter, const void *value) {
  const void *address;
  if (parameter->access == RONDO_ACCESS_SCALAR) {
    rondo_json_hex(&writer->text, value, parameter->bytes);
    return;
  }
  memcpy(&address, value, sizeof address);
  if (put_symbol_address(writer, NULL, address)) return;
  if (writer->with_addresses) {
    put_address_value(&writer->text, (uintptr_t)address);
  } else {
    rondo_json_string(&writer->text, NULL);
  }
}

static void put_config_field(rondo_text *text, const rondo_config_field *field, const void *value) {
  const rondo_dimensions *size = value;
  switch (field->type) {
    case RONDO_CONFIG_DIMENSIONS:
      put_numbers(text, (const uint64_t[]){size->x, size->y, size->z}, 3);
      break;
    case RONDO_CONFIG_U32:
      rondo_json_u64(text, *(const uint32_t *)value);
      break;
    case RONDO_CONFIG_I32:
      rondo_json_i64(text, *(const int32_t *)value);
      break;
    case RONDO_CONFIG_FLAG:
      rondo_json_bool(text, *(const bool *)value);
      break;
  }
}

static void put_config(rondo_text *text, const rondo_launch_config *config) {
  if (config == NULL) return;
  rondo_json_key(text, "config");
  rondo_json_object_begin(text);
  for (size_t i = 0; i < RONDO_CONFIG_FIELDS; i++) {
    const rondo_config_field *field = &rondo_config_fields[i];
    if (rondo_config_field_is_zero(config, field)) continue;
    rondo_json_key(text, field->name);
    put_config_field(text, field, rondo_config_field_in(config, field));
  }
  rondo_json_object_end(text);
}

static void put_argument_bytes(rondo_text *text, const rondo_kernel_node *node) {
  if (node->arg_bytes == NULL) return;
  rondo_json_key(text, "argument_bytes");
  rondo_json_array_begin(text);
  for (uint32_t i = 0; i < node->kernel->parameter_count; i++) rondo_json_u64(text, node->arg_bytes[i]);
  rondo_json_array_end(text);
}

static void put_kernel_node(json_writer *writer, const rondo_kernel_node *node) {
  rondo_text *text = &writer->text;
  size_t at;
  const uint32_t index = find_kernel(writer, node->kernel, &at) ? writer->kernels.items[at].index : 0;
  put_size(text, "kernel", index);
  rondo_json_key(text, "grid");
  put_numbers(text, (const uint64_t[]){node->grid.x, node->grid.y, node->grid.z}, 3);
  rondo_json_key(text, "arguments");
  rondo_json_array_begin(text);
  for (uint32_t i = 0; i < node->kernel->parameter_count; i++)
    put_argument(writer, &node->kernel->parameters[i], node->args[i]);
  rondo_json_array_end(text);
  put_argument_bytes(text, node);
  put_config(text, node->config);
}

/* The numbers of the devices. Omitted if there are none. */
static void put_peers(rondo_text *text, const char *key, uint64_t peers) {
  if (peers == 0) return;
  rondo_json_key(text, key);
  rondo_json_array_begin(text);
  for (unsigned i = 0; i < 64; i++)
    if ((peers >> i & 1) != 0) rondo_json_u64(text, i);
  rondo_json_array_end(text);
}

static void put_field(json_writer *writer, const rondo_node_field *field, const rondo_node_params *params) {
  const void *value = rondo_node_field_in(params, field);
  switch (field->type) {
    case RONDO_FIELD_SPECIAL:
      break;
    case RONDO_FIELD_ADDRESS:
      if (!put_symbol_address(writer, field->name, *(const void *const *)value))
        put_address(writer, field->name, *(const void *const *)value);
      break;
    case RONDO_FIELD_HANDLE:
    case RONDO_FIELD_FUNCTION:
      put_address(writer, field->name, *(const void *const *)value);
      break;
    case RONDO_FIELD_FLAG:
      rondo_json_key(&writer->text, field->name);
      rondo_json_bool(&writer->text, *(const bool *)value);
      break;
    case RONDO_FIELD_TEXT:
      put_text(&writer->text, field->name, *(const char *const *)value);
      break;
    case RONDO_FIELD_PEERS:
      put_peers(&writer->text, field->name, rondo_node_field_number(field, params));
      break;
    case RONDO_FIELD_U32:
    case RONDO_FIELD_SIZE:
    case RONDO_FIELD_PITCH:
      put_size(&writer->text, field->name, rondo_node_field_number(field, params));
      break;
  }
}

static void put_operation(json_writer *writer, const rondo_memory_operation *operation) {
  rondo_text *text = &writer->text;
  rondo_json_object_begin(text);
  put_text(text, "kind", rondo_operation_names[operation->kind]);
  if (rondo_operation_waits(operation)) put_text(text, "condition", rondo_condition_names[operation->condition]);
  if (!put_symbol_address(writer, "address", operation->address)) put_address(writer, "address", operation->address);
  put_size(text, "value", operation->value);
  rondo_json_object_end(text);
}

static void put_operations(json_writer *writer, const rondo_memory_operations_node *node) {
  rondo_json_key(&writer->text, "operations");
  rondo_json_array_begin(&writer->text);
  for (size_t i = 0; i < node->count; i++) put_operation(writer, &node->operations[i]);
  rondo_json_array_end(&writer->text);
}

static void put_semaphores(rondo_text *text, const rondo_semaphores_node *node) {
  rondo_json_key(text, "semaphores");
  rondo_json_array_begin(text);
  for (size_t i = 0; i < node->count; i++) {
    rondo_json_object_begin(text);
    put_text(text, "name", node->values[i].semaphore->name);
    put_size(text, "value", node->values[i].value);
    rondo_json_object_end(text);
  }
  rondo_json_array_end(text);
}

static void put_nodes(json_writer *writer, const rondo_graph *graph);

static void put_child(json_writer *writer, const rondo_graph *child) {
  rondo_json_key(&writer->text, "child");
  rondo_json_object_begin(&writer->text);
  put_text(&writer->text, "name", child->name);
  put_nodes(writer, child);
  rondo_json_object_end(&writer->text);
}

static void put_params(json_writer *writer, const rondo_node_params *params) {
  const rondo_node_fields fields = rondo_node_fields_of(params->kind);
  if (params->kind == RONDO_NODE_KERNEL) put_kernel_node(writer, &params->as.kernel);
  if (params->kind == RONDO_NODE_CHILD) put_child(writer, params->as.child);
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS) put_operations(writer, &params->as.memory_operations);
  if (rondo_node_names_semaphores(params)) put_semaphores(&writer->text, &params->as.semaphores);
  for (size_t i = 0; i < fields.count; i++) put_field(writer, &fields.items[i], params);
}

/* The edges that lead to the node, each as [from, from_port, to_port, type], and 1 if it orders. Omitted if there are
 * none. */
static void put_programmatic(rondo_text *text, const rondo_graph *graph, uint32_t slot) {
  size_t count;
  const rondo_programmatic_edge *edges = rondo_graph_programmatic_to(graph, slot, &count);
  if (count == 0) return;
  rondo_json_key(text, "programmatic");
  rondo_json_array_begin(text);
  for (size_t i = 0; i < count; i++) {
    const uint64_t numbers[] = {edges[i].from, edges[i].from_port, edges[i].to_port, edges[i].type, 1};
    put_numbers(text, numbers, edges[i].orders ? 5 : 4);
  }
  rondo_json_array_end(text);
}

static void put_node(json_writer *writer, const rondo_graph *graph, uint32_t slot) {
  const rondo_graph_node *node = &graph->nodes.items[slot];
  rondo_text *text = &writer->text;
  begin_line(text);
  put_size(text, "number", slot);
  put_text(text, "kind", rondo_node_kind_name(node->params.kind));
  put_text(text, "name", node->params.name);
  if (node->device_number != 0) put_size(text, "device", node->device_number - UINT32_C(1));
  const rondo_node_params params = rondo_node_given_params(node);
  put_params(writer, &params);
  rondo_json_key(text, "dependencies");
  rondo_json_array_begin(text);
  for (size_t i = 0; i < node->dependencies.count; i++) rondo_json_u64(text, node->dependencies.items[i]);
  rondo_json_array_end(text);
  put_programmatic(text, graph, slot);
  rondo_json_object_end(text);
}

static void put_nodes(json_writer *writer, const rondo_graph *graph) {
  const rondo_graph *outer = writer->graph;
  writer->graph = graph;
  rondo_json_key(&writer->text, "nodes");
  rondo_json_array_begin(&writer->text);
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i].live) put_node(writer, graph, (uint32_t)i);
  rondo_json_array_end(&writer->text);
  writer->graph = outer;
}

static void put_document(json_writer *writer, const rondo_graph *graph) {
  rondo_json_object_begin(&writer->text);
  put_size(&writer->text, "rondo_graph", RONDO_GRAPH_JSON_VERSION);
  put_text(&writer->text, "name", graph->name);
  put_kernels(writer);
  put_nodes(writer, graph);
  rondo_json_object_end(&writer->text);
  rondo_text_add_bytes(&writer->text, "\n", 1);
}

rondo_status rondo_graph_to_json(const rondo_graph *graph, bool with_addresses, char **out_text) {
  RONDO_TRY(rondo_require("rondo_graph_to_json", "the out-parameter", out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require("rondo_graph_to_json", "the graph", graph));
  json_writer writer = {.with_addresses = with_addresses};
  rondo_text_init(&writer.text, &graph->allocator);
  rondo_status status = list_kernels(&writer, graph);
  if (status == RONDO_OK) status = list_symbol_kernels(&writer, graph);
  if (status == RONDO_OK) {
    put_document(&writer, graph);
    status = rondo_text_hand_out(&writer.text, out_text);
  }
  rondo_array_free(&graph->allocator, &writer.kernels);
  rondo_array_free(&graph->allocator, &writer.listed);
  return status;
}
