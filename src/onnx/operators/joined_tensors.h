/* SPDX-License-Identifier: MIT
 * Lists of tensors that become one, and parts of a tensor, for sequences and for the values of iterations. Both are
 * inner nodes, which fold if they can. Tensors may have no elements. Threads: one at a time.
 */
#ifndef RONDO_ONNX_OPERATORS_JOINED_TENSORS_H
#define RONDO_ONNX_OPERATORS_JOINED_TENSORS_H

#include "onnx/import/import_node.h"

/* Joins one or more values along an axis of them, or along a new one. Errors: INVALID_ARGUMENT/OUT_OF_RANGE (the axis);
 * UNSUPPORTED (a value that is no tensor; types or shapes that do not fit). */
RONDO_MUST_USE rondo_status rondo_onnx_join(rondo_onnx_node *node, rondo_onnx_import_value *items, size_t count,
                                            int64_t given_axis, bool is_new, rondo_onnx_import_value *out);

/* `length` indices of an axis from `first` on; or one, without the axis. */
typedef struct rondo_onnx_part {
  size_t axis, first, length;
  bool drops_axis;
} rondo_onnx_part;

RONDO_MUST_USE rondo_status rondo_onnx_take_part(rondo_onnx_node *node, rondo_onnx_import_value *from,
                                                 const rondo_onnx_part *part, rondo_onnx_import_value *out);

#endif
