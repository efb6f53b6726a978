/* SPDX-License-Identifier: MIT
 * The attributes of a node, by name. What is read is noted, because an attribute that nobody reads is one that the
 * operator's function does not know. An attribute in the body of a function may be one of the node that calls it.
 * Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_NODE_ATTRIBUTES_H
#define RONDO_ONNX_IMPORT_NODE_ATTRIBUTES_H

#include "onnx/format/attribute.h"
#include "onnx/import/import_node.h"

bool rondo_onnx_has_attribute(rondo_onnx_node *node, const char *name);

/* Read an attribute, or its default where the node has none. Lists and texts are the scratch's or the model's. Errors:
 * UNSUPPORTED/TYPE if it has another type. */
RONDO_MUST_USE rondo_status rondo_onnx_attribute_int(rondo_onnx_node *node, const char *name, int64_t otherwise,
                                                     int64_t *out);
RONDO_MUST_USE rondo_status rondo_onnx_attribute_float(rondo_onnx_node *node, const char *name, float otherwise,
                                                       float *out);
RONDO_MUST_USE rondo_status rondo_onnx_attribute_text(rondo_onnx_node *node, const char *name, const char *otherwise,
                                                      const char **out);
/* A list; *out is NULL and the count 0 where there is none. */
RONDO_MUST_USE rondo_status rondo_onnx_attribute_ints(rondo_onnx_node *node, const char *name, const int64_t **out,
                                                      size_t *out_count);
RONDO_MUST_USE rondo_status rondo_onnx_attribute_floats(rondo_onnx_node *node, const char *name, const float **out,
                                                        size_t *out_count);
/* NULL where there is none. */
RONDO_MUST_USE rondo_status rondo_onnx_attribute_graph(rondo_onnx_node *node, const char *name,
                                                       const RondoOnnx__Graph **out);
/* The attribute itself, with any type; NULL where there is none. */
const RondoOnnx__Attribute *rondo_onnx_attribute_of(rondo_onnx_node *node, const char *name);

/* UNSUPPORTED, naming it, if an attribute was not read. */
RONDO_MUST_USE rondo_status rondo_onnx_check_attributes_read(rondo_onnx_node *node);

#endif
