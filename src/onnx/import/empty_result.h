/* SPDX-License-Identifier: MIT
 * Results without elements, of operators that know nothing of them: a node is tried with sizes 1 and 2 in place of 0,
 * in a program that never runs, and a dimension of the result that grows with them has size 0. So the boxes of an image
 * in which a model found none pass through the rest of the model.
 * Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_EMPTY_RESULT_H
#define RONDO_ONNX_IMPORT_EMPTY_RESULT_H

#include "onnx/import/import_node.h"

/* Adds the operators of a node to a folding program, with these inputs; the node's outputs are its results. */
typedef rondo_status (*rondo_onnx_try_node)(rondo_onnx_node *node);

/* Sets the results of a node that was refused because an input has no elements. *out_is_set is false, and nothing has
 * changed, if not all of them are empty. Errors: OUT_OF_MEMORY and others that end the import. */
RONDO_MUST_USE rondo_status rondo_onnx_set_empty_results(rondo_onnx_node *node, rondo_onnx_try_node try_node,
                                                         bool *out_is_set);

#endif
