/* SPDX-License-Identifier: MIT
 * Checks the structure of a model once, when it is loaded, so that later code may rely on it:
 *   - every message has the fields that the format requires, and every tensor can be read;
 *   - each value is computed by one node, before all nodes that use it; so there are no cycles;
 *   - attributes of a node have different names;
 *   - functions of the model do not call each other in a circle.
 * Threads: one at a time.
 */
#ifndef RONDO_ONNX_FORMAT_MODEL_CHECK_H
#define RONDO_ONNX_FORMAT_MODEL_CHECK_H

#include "onnx/format/tensor_data.h"

/* How deep functions of a model may call each other. */
#define RONDO_ONNX_MOST_CALLS 64

/* Attributes of a node; an operator has at most about ten. */
#define RONDO_ONNX_MOST_ATTRIBUTES 64

/* Room for rondo_onnx_node_label. */
#define RONDO_ONNX_NODE_LABEL 160

/* "node 'conv1' (Conv)", or "node 12 (Conv)" of a node without a name; returns `out`. */
const char *rondo_onnx_node_label(char out[RONDO_ONNX_NODE_LABEL], const RondoOnnx__Node *node, size_t index);

/* What a node computes: its operator's domain, "" for ONNX's own, which is also called "ai.onnx". */
const char *rondo_onnx_node_domain(const RondoOnnx__Node *node);

/* Sorts the functions, which have no order in the format, so that they are found by bisection. */
void rondo_onnx_sort_functions(RondoOnnx__Model *model);

/* The function of the model that a node calls, by its index, or the number of functions if it calls none. */
size_t rondo_onnx_find_function(const RondoOnnx__Model *model, const RondoOnnx__Node *node);

/* Errors: INVALID_DATA with MALFORMED, UNKNOWN_NAME, DUPLICATE_NAME, CYCLE; LIMIT_EXCEEDED; UNSUPPORTED; those of
 * rondo_onnx_read_tensor. They name graph and node. */
RONDO_MUST_USE rondo_status rondo_onnx_check_model(const rondo_allocator *allocator,
                                                   const rondo_onnx_data_source *source, const RondoOnnx__Model *model);

#endif
