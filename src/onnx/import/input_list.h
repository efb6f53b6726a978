/* SPDX-License-Identifier: MIT
 * The tensors that are the inputs of a model: a sequence is a list of them, and an optional is one, a list or nothing.
 * How many there are follows from the options of a build, by the rules of <rondo/onnx.h>. The order is the model's.
 *
 * Everything is memory of a scratch, or the model's. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_INPUT_LIST_H
#define RONDO_ONNX_IMPORT_INPUT_LIST_H

#include "onnx/format/onnx_model.h"
#include "onnx/import/import_value.h"

/* An input that is a tensor or an element of a sequence, or one of a kind that cannot be imported. */
typedef struct rondo_onnx_listed_input {
  rondo_onnx_value value; /* with its own name, "x" or "x[1]" */
  const RondoOnnx__Type *type;
  size_t owner; /* the input of the model, */
  size_t index; /* and which element of it */
} rondo_onnx_listed_input;

/* What an input of the model consists of. */
typedef struct rondo_onnx_input_span {
  rondo_onnx_value_kind kind; /* RONDO_ONNX_NOTHING: an optional without a value */
  size_t first, count;
} rondo_onnx_input_span;

typedef struct rondo_onnx_input_list {
  rondo_onnx_listed_input *items;
  size_t count;
  rondo_onnx_input_span *spans; /* for each input of the model */
} rondo_onnx_input_list;

/* Names of elements live as long as the scratch. Errors: INVALID_ARGUMENT/SHAPE (a sequence whose number of elements is
 * not known), /NULL_ARGUMENT (names of options); LIMIT_EXCEEDED (elements); OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_list_inputs(rondo_scratch *scratch, const rondo_onnx_model *model,
                                                   const rondo_onnx_build_options *options, rondo_onnx_input_list *out);

/* "name[index]", in the scratch. */
RONDO_MUST_USE rondo_status rondo_onnx_element_name(rondo_scratch *scratch, const char *name, size_t index,
                                                    const char **out);

#endif
