/* SPDX-License-Identifier: MIT
 * Writes ONNX models for tests, field by field, in the encoding of Protocol Buffers. The numbers of fields are those of
 * the format, so a test can also write what no exporter would.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_ONNX_H
#define RONDO_TESTS_SUPPORT_TEST_ONNX_H

#include <stddef.h>
#include <stdint.h>

/* A message. Zero is the empty one. It holds what a test needs; more fails the test. */
typedef struct onnx_bytes {
  size_t count;
  uint8_t bytes[8192];
} onnx_bytes;

void onnx_number(onnx_bytes *message, unsigned field, uint64_t value);
void onnx_data(onnx_bytes *message, unsigned field, const void *data, size_t count);
void onnx_text(onnx_bytes *message, unsigned field, const char *text);
void onnx_nest(onnx_bytes *message, unsigned field, const onnx_bytes *nested);

/* Messages that most tests need. Lists end with NULL; "" is an input that is left out. */
onnx_bytes onnx_model(const onnx_bytes *graph); /* IR version 8, operator set 17 */
onnx_bytes onnx_node(const char *name, const char *op, const char *const *inputs, const char *const *outputs);
onnx_bytes onnx_tensor(const char *name, int type, const int64_t *dims, size_t rank); /* without elements */
onnx_bytes onnx_value(const char *name, int type, const int64_t *dims,
                      size_t rank); /* -1: "batch"; -2: "length"; -3: "other" */

/* A sequence or an optional of such a tensor: ONNX_SEQUENCE, ONNX_OPTIONAL, or an optional of a sequence. */
typedef enum onnx_list { ONNX_SEQUENCE = 4, ONNX_OPTIONAL = 9, ONNX_OPTIONAL_SEQUENCE = 10 } onnx_list;
onnx_bytes onnx_list_value(const char *name, onnx_list kind, int type, const int64_t *dims, size_t rank);

/* Add parts to a graph. An output is described as a float of rank 0, which no importer believes; a node is named after
 * its first output. */
void onnx_add_input(onnx_bytes *graph, const char *name, int type, const int64_t *dims, size_t rank);
void onnx_add_list_input(onnx_bytes *graph, const char *name, onnx_list kind, int type, const int64_t *dims,
                         size_t rank);
void onnx_add_output(onnx_bytes *graph, const char *name);
void onnx_add_initializer(onnx_bytes *graph, const char *name, int type, const void *data, size_t bytes,
                          const int64_t *dims, size_t rank);
void onnx_add_node(onnx_bytes *graph, const char *op, const char *const *inputs, const char *const *outputs);

/* Add an attribute to a node. */
void onnx_add_int(onnx_bytes *node, const char *name, int64_t value);
void onnx_add_float(onnx_bytes *node, const char *name, float value);
void onnx_add_graph(onnx_bytes *node, const char *name, const onnx_bytes *graph);

/* The fields of a graph and of a model. */
enum {
  ONNX_GRAPH_NODE = 1,
  ONNX_GRAPH_NAME = 2,
  ONNX_GRAPH_INITIALIZER = 5,
  ONNX_GRAPH_INPUT = 11,
  ONNX_GRAPH_OUTPUT = 12
};
enum { ONNX_MODEL_IR_VERSION = 1, ONNX_MODEL_GRAPH = 7, ONNX_MODEL_OPSET = 8, ONNX_MODEL_FUNCTION = 25 };
enum { ONNX_NODE_ATTRIBUTE = 5 };
enum {
  ONNX_TENSOR_FLOATS = 4,
  ONNX_TENSOR_INTS = 5,
  ONNX_TENSOR_RAW = 9,
  ONNX_TENSOR_EXTERNAL = 13,
  ONNX_TENSOR_LOCATION = 14
};

#endif
