/* SPDX-License-Identifier: MIT
 * Writes ONNX models for tests.
 */
#include "support/test_onnx.h"

#include <string.h>

#include "support/test_cases.h"

static void put(onnx_bytes *message, const void *bytes, size_t count) {
  assert_true(count <= sizeof message->bytes - message->count);
  memcpy(message->bytes + message->count, bytes, count);
  message->count += count;
}

static void put_number(onnx_bytes *message, uint64_t value) {
  do {
    const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    put(message, &byte, 1);
    value >>= 7;
  } while (value > 0);
}

void onnx_number(onnx_bytes *message, unsigned field, uint64_t value) {
  put_number(message, (uint64_t)field << 3);
  put_number(message, value);
}

void onnx_data(onnx_bytes *message, unsigned field, const void *data, size_t count) {
  put_number(message, (uint64_t)field << 3 | 2);
  put_number(message, count);
  if (count > 0) put(message, data, count);
}

void onnx_text(onnx_bytes *message, unsigned field, const char *text) { onnx_data(message, field, text, strlen(text)); }

void onnx_nest(onnx_bytes *message, unsigned field, const onnx_bytes *nested) {
  onnx_data(message, field, nested->bytes, nested->count);
}

onnx_bytes onnx_model(const onnx_bytes *graph) {
  onnx_bytes model = {0}, opset = {0};
  onnx_number(&opset, 2, 17);
  onnx_number(&model, ONNX_MODEL_IR_VERSION, 8);
  onnx_text(&model, 2, "a test");
  onnx_nest(&model, ONNX_MODEL_GRAPH, graph);
  onnx_nest(&model, ONNX_MODEL_OPSET, &opset);
  return model;
}

onnx_bytes onnx_node(const char *name, const char *op, const char *const *inputs, const char *const *outputs) {
  onnx_bytes node = {0};
  for (size_t i = 0; inputs[i] != NULL; i++) onnx_text(&node, 1, inputs[i]);
  for (size_t i = 0; outputs[i] != NULL; i++) onnx_text(&node, 2, outputs[i]);
  onnx_text(&node, 3, name);
  onnx_text(&node, 4, op);
  return node;
}

onnx_bytes onnx_tensor(const char *name, int type, const int64_t *dims, size_t rank) {
  onnx_bytes tensor = {0};
  for (size_t i = 0; i < rank; i++) onnx_number(&tensor, 1, (uint64_t)dims[i]);
  onnx_number(&tensor, 2, (uint64_t)type);
  onnx_text(&tensor, 8, name);
  return tensor;
}

/* A message "Type". */
static onnx_bytes tensor_type(int type, const int64_t *dims, size_t rank) {
  onnx_bytes kind = {0}, tensor = {0}, shape = {0};
  for (size_t i = 0; i < rank; i++) {
    onnx_bytes dimension = {0};
    if (dims[i] < 0)
      onnx_text(&dimension, 2, dims[i] == -1 ? "batch" : dims[i] == -2 ? "length" : "other");
    else
      onnx_number(&dimension, 1, (uint64_t)dims[i]);
    onnx_nest(&shape, 1, &dimension);
  }
  onnx_number(&tensor, 1, (uint64_t)type);
  onnx_nest(&tensor, 2, &shape);
  onnx_nest(&kind, 1, &tensor);
  return kind;
}

static onnx_bytes type_around(onnx_list kind, const onnx_bytes *inner) {
  onnx_bytes element = {0}, type = {0};
  onnx_nest(&element, 1, inner);
  onnx_nest(&type, (unsigned)kind, &element);
  return type;
}

static onnx_bytes value_of(const char *name, const onnx_bytes *type) {
  onnx_bytes value = {0};
  onnx_text(&value, 1, name);
  onnx_nest(&value, 2, type);
  return value;
}

onnx_bytes onnx_value(const char *name, int type, const int64_t *dims, size_t rank) {
  const onnx_bytes kind = tensor_type(type, dims, rank);
  return value_of(name, &kind);
}

onnx_bytes onnx_list_value(const char *name, onnx_list kind, int type, const int64_t *dims, size_t rank) {
  const onnx_bytes tensor = tensor_type(type, dims, rank);
  onnx_bytes list = type_around(kind == ONNX_OPTIONAL ? ONNX_OPTIONAL : ONNX_SEQUENCE, &tensor);
  if (kind == ONNX_OPTIONAL_SEQUENCE) list = type_around(ONNX_OPTIONAL, &list);
  return value_of(name, &list);
}

/* Parts of graphs and nodes -------------------------------------------------------------------------------------- */

void onnx_add_input(onnx_bytes *graph, const char *name, int type, const int64_t *dims, size_t rank) {
  const onnx_bytes value = onnx_value(name, type, dims, rank);
  onnx_nest(graph, ONNX_GRAPH_INPUT, &value);
}

void onnx_add_list_input(onnx_bytes *graph, const char *name, onnx_list kind, int type, const int64_t *dims,
                         size_t rank) {
  const onnx_bytes value = onnx_list_value(name, kind, type, dims, rank);
  onnx_nest(graph, ONNX_GRAPH_INPUT, &value);
}

void onnx_add_output(onnx_bytes *graph, const char *name) {
  const onnx_bytes value = onnx_value(name, 1, NULL, 0);
  onnx_nest(graph, ONNX_GRAPH_OUTPUT, &value);
}

void onnx_add_initializer(onnx_bytes *graph, const char *name, int type, const void *data, size_t bytes,
                          const int64_t *dims, size_t rank) {
  onnx_bytes tensor = onnx_tensor(name, type, dims, rank);
  onnx_data(&tensor, ONNX_TENSOR_RAW, data, bytes);
  onnx_nest(graph, ONNX_GRAPH_INITIALIZER, &tensor);
}

static onnx_bytes attribute(const char *name, int type) {
  onnx_bytes bytes = {0};
  onnx_text(&bytes, 1, name);
  onnx_number(&bytes, 20, (uint64_t)type);
  return bytes;
}

void onnx_add_int(onnx_bytes *node, const char *name, int64_t value) {
  onnx_bytes bytes = attribute(name, 2);
  onnx_number(&bytes, 3, (uint64_t)value);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &bytes);
}

void onnx_add_float(onnx_bytes *node, const char *name, float value) {
  onnx_bytes bytes = attribute(name, 1);
  put_number(&bytes, 2 << 3 | 5);
  put(&bytes, &value, sizeof value);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &bytes);
}

void onnx_add_graph(onnx_bytes *node, const char *name, const onnx_bytes *graph) {
  onnx_bytes bytes = attribute(name, 5);
  onnx_nest(&bytes, 6, graph);
  onnx_nest(node, ONNX_NODE_ATTRIBUTE, &bytes);
}

void onnx_add_node(onnx_bytes *graph, const char *op, const char *const *inputs, const char *const *outputs) {
  const onnx_bytes node = onnx_node(outputs[0], op, inputs, outputs);
  onnx_nest(graph, ONNX_GRAPH_NODE, &node);
}
