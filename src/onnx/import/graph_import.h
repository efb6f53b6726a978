/* SPDX-License-Identifier: MIT
 * Imports nodes in their order: finds their inputs by name, calls the function of their operator, and gives names to
 * their results. Nodes that call a function of the model become those of its body. A node that cannot be imported is
 * reported, and its results are unknown; nodes that use unknown values are left out, and reported only if their
 * operator does not exist.
 * Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_GRAPH_IMPORT_H
#define RONDO_ONNX_IMPORT_GRAPH_IMPORT_H

#include "onnx/import/import_node.h"

/* How many nodes are imported at most unless the options say so, so that a loop in a bad file ends. */
#define RONDO_ONNX_MOST_NODES (1u << 18)

/* And how many inputs and outputs they have, with items of sequences, so that a loop in a bad file takes no more than
 * some hundred megabytes. */
#define RONDO_ONNX_MOST_VALUES (1u << 21)

/* Counts values for the limit. Errors: LIMIT_EXCEEDED. */
RONDO_MUST_USE rondo_status rondo_onnx_count_values(rondo_onnx_importer *importer, size_t count);

/* Gives a value a name in the innermost scope. If the scope has the name, it keeps its value: an initializer may be the
 * default of an input. */
RONDO_MUST_USE rondo_status rondo_onnx_define(rondo_onnx_importer *importer, const char *name,
                                              const rondo_onnx_import_value *value);

/* The value of a name, which exists: the model was checked. */
const rondo_onnx_import_value *rondo_onnx_look_up(const rondo_onnx_importer *importer, const char *name);

/* Initializers of a graph; those of the main graph keep their names. */
RONDO_MUST_USE rondo_status rondo_onnx_import_initializers(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph,
                                                           bool is_main);
RONDO_MUST_USE rondo_status rondo_onnx_import_nodes(rondo_onnx_importer *importer, RondoOnnx__Node *const *nodes,
                                                    size_t count);

/* Imports the graph of an attribute, in a scope of its own, with these values as inputs; out_outputs gets as many as
 * the graph has. */
RONDO_MUST_USE rondo_status rondo_onnx_import_graph(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph,
                                                    const rondo_onnx_import_value *inputs, size_t count,
                                                    rondo_onnx_import_value *out_outputs);

#endif
