/* SPDX-License-Identifier: MIT
 * The page of a model in an ONNX file: what it has, its recorded graph, and the plan of its memory.
 */
#ifndef RONDO_TOOL_ONNX_REPORT_H
#define RONDO_TOOL_ONNX_REPORT_H

#include "common/options.h"

typedef struct onnx_report_settings {
  option_list inputs, sizes; /* as in onnx_input_settings */
  const char *device;
  const char *title; /* NULL: the path */
  bool no_addresses;
} onnx_report_settings;

/* Builds and records the model for the sizes of the settings, and makes the page, which the caller frees with
 * rondo_text_free. Returns TOOL_OK, TOOL_FAILURE or TOOL_USAGE after a message. */
int onnx_report_make(const char *path, const onnx_report_settings *settings, char **out_text);

#endif
