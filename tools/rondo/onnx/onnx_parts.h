/* SPDX-License-Identifier: MIT
 * A model that runs in parts, because shapes of it depend on data: a runner, as a function of a tree. The first run is
 * eager and compiles the parts; later ones replay their recordings.
 *
 * Functions return TOOL_OK, or TOOL_FAILURE after a message. One thread at a time.
 */
#ifndef RONDO_TOOL_ONNX_PARTS_H
#define RONDO_TOOL_ONNX_PARTS_H

#include "onnx/onnx_program.h"

/* Makes of->parts, and copies the inputs to the device. The options are those of compiling; NULL: the default. */
int onnx_parts_open(onnx_program *of, rondo_device *device, const rondo_compile_options *options);
int onnx_parts_close(onnx_program *of);

/* Runs and waits. The outputs are those of this run until the next one. */
int onnx_parts_run(const onnx_program *of);

/* As onnx_program_read_output. */
int onnx_parts_read_output(const onnx_program *of, size_t index, onnx_output *out);

/* Writes how many parts the runner keeps, and how often its calls waited. */
int onnx_parts_to_json(const onnx_program *of, json *out);

#endif
