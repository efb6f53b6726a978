/* SPDX-License-Identifier: MIT
 * A model of an ONNX file for `rondo serve`: the builder of its programs, and values for its inputs.
 */
#ifndef RONDO_TOOL_SERVED_ONNX_H
#define RONDO_TOOL_SERVED_ONNX_H

#include "common/options.h"
#include "serve/served_model.h"

typedef struct served_onnx served_onnx;

/* How it is served: inputs and sizes as for onnx_input_settings. */
typedef struct served_onnx_settings {
  option_list inputs, sizes;
  const rondo_device *device; /* for which programs are made */
  const char *rows; /* the name of the dimension that is the number of rows; NULL: the first one of each input */
  const char *length, *mask; /* as of rondo_onnx_builder_options, as is the next; length NULL: none */
  bool causal;
} served_onnx_settings;

/* Reads the file. Returns TOOL_OK, TOOL_FAILURE or TOOL_USAGE after a message, as the others do. Close the model after
 * any result. */
int served_onnx_open(const char *path, const served_onnx_settings *settings, served_model *out);

/* Writes so many rows of the longest length of an input of the session's model: those of a file, again from its first
 * one on, ones of the mask, zeros if the settings say so, or random ones. */
int served_onnx_fill_input(const served_model *model, const rondo_model_value *value, size_t rows, uint64_t seed,
                           void *out);

int served_onnx_close(served_onnx *model); /* may be NULL */

#endif
