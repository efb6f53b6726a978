/* SPDX-License-Identifier: MIT
 * Which dimensions of a model's inputs and outputs are the number of rows and the length of a session's model. Those of
 * inputs follow from their names. Those of outputs are found by comparing builds of several sizes, because exporters do
 * not name them reliably. Pure.
 */
#ifndef RONDO_ONNX_RUN_ROW_DIMENSIONS_H
#define RONDO_ONNX_RUN_ROW_DIMENSIONS_H

#include "onnx/import/importer.h"

typedef struct rondo_onnx_row_names {
  const rondo_onnx_input_list *listed;
  const rondo_onnx_build_options *options;
  const char *rows;   /* NULL: the first dimension of each input where it is dynamic, and others of its name */
  const char *length; /* NULL: none */
} rondo_onnx_row_names;

/* Whether dimension `index` of an input that has a shape is the rows; or the length. */
bool rondo_onnx_is_rows(const rondo_onnx_row_names *names, const rondo_onnx_value *input, size_t index);
bool rondo_onnx_is_length(const rondo_onnx_row_names *names, const rondo_onnx_value *input, size_t index);

/* Sets the length, if it is NULL, to the only name of other dynamic dimensions of inputs whose size is not given.
 * Errors: INVALID_ARGUMENT with SHAPE (there are several). */
RONDO_MUST_USE rondo_status rondo_onnx_choose_length(rondo_onnx_row_names *names);

/* Errors: INVALID_ARGUMENT with UNKNOWN_NAME (no input has the rows or the length), SHAPE (no input has a dynamic first
 * dimension), BAD_OPTIONS (rows and length are the same dimension). */
RONDO_MUST_USE rondo_status rondo_onnx_check_row_names(const rondo_onnx_row_names *names);

/* The dimensions of each input of the list. */
void rondo_onnx_find_input_dimensions(const rondo_onnx_row_names *names, rondo_onnx_row_dimensions *out);

/* A build of the model for a size. */
typedef struct rondo_onnx_sized_build {
  const rondo_onnx_build *build;
  size_t rows, length;
} rondo_onnx_sized_build;

/* Finds the dimensions of each output of the model from two builds that differ in rows. `longer`, which has the rows of
 * `few` and another length, is NULL without a length. With needs_length, each output must have it. Outputs that are the
 * same in each run have none. Errors: INVALID_ARGUMENT with SHAPE, naming the output. */
RONDO_MUST_USE rondo_status rondo_onnx_find_output_dimensions(const rondo_onnx_sized_build *few,
                                                              const rondo_onnx_sized_build *more,
                                                              const rondo_onnx_sized_build *longer, bool needs_length,
                                                              rondo_onnx_row_dimensions *out);

#endif
