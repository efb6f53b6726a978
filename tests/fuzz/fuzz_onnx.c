/* SPDX-License-Identifier: MIT
 * Feeds bytes to the reader of ONNX models (ON-10). Of a model that it accepts, everything can be read: texts, shapes,
 * operators in order, and each element of each tensor. A refusal must leave nothing and give a reason.
 */
#include <rondo/onnx.h>
#include <string.h>

#include "fuzz/fuzz_target.h"
#include "onnx/format/onnx_model.h"

static volatile uint8_t sink; /* every byte is read */

static void read_value(const rondo_onnx_value *value) {
  REQUIRE(value->name != NULL && value->type_name != NULL);
  if (value->element != NULL) read_value(value->element);
  for (size_t i = 0; i < value->rank; i++)
    REQUIRE(value->dimensions[i].name != NULL && (!value->dimensions[i].is_dynamic || value->dimensions[i].size == 0));
}

static void read_description(const rondo_onnx_model *model) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_onnx_operator before = {.struct_size = sizeof before}, next = before;
  size_t inputs = 0, outputs = 0;
  for (; rondo_onnx_get_input(model, inputs, &value) == RONDO_OK; inputs++) read_value(&value);
  for (; rondo_onnx_get_output(model, outputs, &value) == RONDO_OK; outputs++) read_value(&value);
  REQUIRE(inputs == model->info.inputs && outputs == model->info.outputs);
  for (size_t i = 0; rondo_onnx_get_operator(model, i, &next) == RONDO_OK; i++) {
    REQUIRE(next.nodes > 0 && next.name[0] != '\0');
    if (i > 0)
      REQUIRE(strcmp(before.domain, next.domain) < 0 ||
              (strcmp(before.domain, next.domain) == 0 && strcmp(before.name, next.name) < 0));
    before = next;
  }
}

static void read_tensors(rondo_onnx_model *model) {
  const RondoOnnx__Graph *graph = model->message->graph;
  const rondo_onnx_data_source source = rondo_onnx_data_of(model);
  for (size_t i = 0; i < graph->n_initializer; i++) {
    rondo_onnx_tensor tensor;
    REQUIRE(rondo_onnx_read_tensor(&source, graph->initializer[i], &tensor) == RONDO_OK);
    for (size_t k = 0; tensor.strings == NULL && k < tensor.bytes; k++) sink = ((const uint8_t *)tensor.elements)[k];
    for (size_t k = 0; tensor.strings != NULL && k < tensor.count; k++) sink = (uint8_t)tensor.strings[k].len;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rondo_onnx_model *model = NULL;
  const rondo_status status = rondo_onnx_parse(data, size, NULL, &model);
  REQUIRE((status == RONDO_OK) == (model != NULL));
  REQUIRE(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
  if (status != RONDO_OK) return 0;
  read_description(model);
  read_tensors(model);
  rondo_onnx_destroy(model);
  return 0;
}
