/* SPDX-License-Identifier: MIT
 * What rondo_onnx_build_program returns: descriptions of inputs, outputs and what is not supported, weights, and the
 * memory of constants.
 */
#ifndef RONDO_ONNX_IMPORT_BUILD_RESULT_H
#define RONDO_ONNX_IMPORT_BUILD_RESULT_H

#include "onnx/import/importer.h"

struct rondo_onnx_build {
  rondo_allocator allocator;
  rondo_scratch scratch;  /* texts, shapes, and the elements of outputs */
  rondo_scratch elements; /* copies of elements, to which weights refer; freed with the weights */
  rondo_weights *weights; /* NULL: freed */
  rondo_onnx_build_info info;
  RONDO_ARRAY(rondo_onnx_built_value) inputs;
  RONDO_ARRAY(rondo_onnx_built_value) outputs;
  RONDO_ARRAY(rondo_onnx_unsupported) unsupported;
  rondo_onnx_model_part *part; /* that was built; NULL: the model is not divided */
};

/* Adds the thread's last error to the list, as the reason why this node cannot be imported; or, without a node, as one
 * of the input or output `name`. */
RONDO_MUST_USE rondo_status rondo_onnx_report_node(rondo_onnx_importer *importer, const RondoOnnx__Node *node,
                                                   size_t index, int64_t opset, const char *attribute);
RONDO_MUST_USE rondo_status rondo_onnx_report_value(rondo_onnx_importer *importer, const char *what, const char *name);

/* The status of the whole model: UNSUPPORTED with the first reasons, if there are any. */
RONDO_MUST_USE rondo_status rondo_onnx_summarize(const rondo_onnx_build *build);

#endif
