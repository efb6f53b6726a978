/* SPDX-License-Identifier: MIT
 * A loaded model. All that it has is memory of its scratch, or mapped. It does not change after it was loaded.
 */
#ifndef RONDO_ONNX_FORMAT_ONNX_MODEL_H
#define RONDO_ONNX_FORMAT_ONNX_MODEL_H

#include <rondo/onnx.h>

#include "onnx/format/tensor_data.h"

struct rondo_onnx_model {
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_file_mapping mapping; /* of the file; empty if the model was parsed */
  const uint8_t *bytes;       /* of the file */
  rondo_onnx_external_files external;
  RondoOnnx__Model *message;
  rondo_onnx_info info;
  rondo_onnx_value *inputs, *outputs;
  rondo_onnx_operator *operators; /* sorted */
  size_t operator_count;
};

/* Where the model's tensors are read from; or, without a scratch, checked. */
rondo_onnx_data_source rondo_onnx_data_of(rondo_onnx_model *model);

/* Fills what the public calls tell about a valid model. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_describe(rondo_onnx_model *model);

#endif
