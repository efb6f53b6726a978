/* SPDX-License-Identifier: MIT
 * Finds and checks attributes.
 */
#include "onnx/format/attribute.h"

#include <string.h>

#include "base/error.h"

const RondoOnnx__Attribute *rondo_onnx_find_attribute(const RondoOnnx__Node *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; i++)
    if (strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i];
  return NULL;
}

/* Whether the value that the type asks for is there. A list may be empty. */
static bool has_value(const RondoOnnx__Attribute *attribute) {
  switch ((rondo_onnx_attribute_type)attribute->type) {
    case RONDO_ONNX_ATTRIBUTE_TENSOR:
      return attribute->t != NULL;
    case RONDO_ONNX_ATTRIBUTE_GRAPH:
      return attribute->g != NULL;
    case RONDO_ONNX_ATTRIBUTE_SPARSE_TENSOR:
      return attribute->sparse_tensor != NULL;
    case RONDO_ONNX_ATTRIBUTE_TYPE:
      return attribute->tp != NULL;
    default:
      return true; /* numbers and texts that are left out are 0 and empty */
  }
}

static rondo_status check_rows(const rondo_onnx_tensor *values, const rondo_onnx_tensor *indices) {
  if (values->rank == 1 && (indices->rank == 1 || indices->rank == 2) && indices->type == RONDO_ONNX_INT64 &&
      indices->dims[0] == values->dims[0])
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_SHAPE,
                    "the sparse tensor '%s' has not one row of indices, int64, for each value", values->name);
}

rondo_status rondo_onnx_check_sparse(const rondo_onnx_data_source *source, const RondoOnnx__SparseTensor *sparse) {
  rondo_onnx_tensor values, indices;
  if (sparse->values == NULL || sparse->indices == NULL)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "a sparse tensor has no %s",
                      sparse->values == NULL ? "values" : "indices");
  RONDO_TRY(rondo_onnx_read_tensor(source, sparse->values, &values));
  RONDO_TRY(rondo_onnx_read_tensor(source, sparse->indices, &indices));
  return check_rows(&values, &indices);
}

static rondo_status check_tensors(const rondo_onnx_data_source *source, const RondoOnnx__Attribute *attribute) {
  rondo_onnx_tensor tensor;
  if (attribute->t != NULL) RONDO_TRY(rondo_onnx_read_tensor(source, attribute->t, &tensor));
  for (size_t i = 0; i < attribute->n_tensors; i++)
    RONDO_TRY(rondo_onnx_read_tensor(source, attribute->tensors[i], &tensor));
  if (attribute->sparse_tensor != NULL) RONDO_TRY(rondo_onnx_check_sparse(source, attribute->sparse_tensor));
  for (size_t i = 0; i < attribute->n_sparse_tensors; i++)
    RONDO_TRY(rondo_onnx_check_sparse(source, attribute->sparse_tensors[i]));
  return RONDO_OK;
}

static rondo_status check_value(const rondo_onnx_data_source *source, const RondoOnnx__Attribute *attribute,
                                bool in_function) {
  if (attribute->type < RONDO_ONNX_ATTRIBUTE_FLOAT || attribute->type > RONDO_ONNX_ATTRIBUTE_TYPES)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "its type has the number %d, which Rondo does not know",
                      attribute->type);
  if (attribute->ref_attr_name != NULL && attribute->ref_attr_name[0] != '\0') {
    if (in_function) return RONDO_OK;
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "it refers to the attribute '%s' of a function, and is in none", attribute->ref_attr_name);
  }
  if (!has_value(attribute))
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "it has no value of its type");
  return check_tensors(source, attribute);
}

rondo_status rondo_onnx_check_attribute(const rondo_onnx_data_source *source, const RondoOnnx__Attribute *attribute,
                                        bool in_function) {
  if (attribute->name == NULL || attribute->name[0] == '\0')
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "an attribute has no name");
  return rondo_fail_context(check_value(source, attribute, in_function), "attribute '%s'", attribute->name);
}
