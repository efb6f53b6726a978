/* SPDX-License-Identifier: MIT
 * The attributes of nodes. Threads: any.
 */
#ifndef RONDO_ONNX_FORMAT_ATTRIBUTE_H
#define RONDO_ONNX_FORMAT_ATTRIBUTE_H

#include "onnx/format/tensor_data.h"

/* The numbers of AttributeProto.AttributeType in the format. */
typedef enum rondo_onnx_attribute_type {
  RONDO_ONNX_ATTRIBUTE_FLOAT = 1,
  RONDO_ONNX_ATTRIBUTE_INT = 2,
  RONDO_ONNX_ATTRIBUTE_STRING = 3,
  RONDO_ONNX_ATTRIBUTE_TENSOR = 4,
  RONDO_ONNX_ATTRIBUTE_GRAPH = 5,
  RONDO_ONNX_ATTRIBUTE_FLOATS = 6,
  RONDO_ONNX_ATTRIBUTE_INTS = 7,
  RONDO_ONNX_ATTRIBUTE_STRINGS = 8,
  RONDO_ONNX_ATTRIBUTE_TENSORS = 9,
  RONDO_ONNX_ATTRIBUTE_GRAPHS = 10,
  RONDO_ONNX_ATTRIBUTE_SPARSE_TENSOR = 11,
  RONDO_ONNX_ATTRIBUTE_SPARSE_TENSORS = 12,
  RONDO_ONNX_ATTRIBUTE_TYPE = 13,
  RONDO_ONNX_ATTRIBUTE_TYPES = 14
} rondo_onnx_attribute_type;

/* The node's attribute of this name, or NULL. */
const RondoOnnx__Attribute *rondo_onnx_find_attribute(const RondoOnnx__Node *node, const char *name);

/* Checks that an attribute has a name, a known type and a value of that type; its tensors are read, and its graphs are
 * not looked at. In a function's body, it may refer to an attribute of the function instead (`in_function`). Errors:
 * INVALID_DATA with MALFORMED; UNSUPPORTED/TYPE (an unknown type); those of rondo_onnx_read_tensor. They name the
 * attribute. */
RONDO_MUST_USE rondo_status rondo_onnx_check_attribute(const rondo_onnx_data_source *source,
                                                       const RondoOnnx__Attribute *attribute, bool in_function);

/* The dense parts of a sparse tensor are read and fit each other. Errors: the same. */
RONDO_MUST_USE rondo_status rondo_onnx_check_sparse(const rondo_onnx_data_source *source,
                                                    const RondoOnnx__SparseTensor *sparse);

#endif
