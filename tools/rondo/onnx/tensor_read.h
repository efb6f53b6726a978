/* SPDX-License-Identifier: MIT
 * Tensors in files: .npy (NumPy, npy_file.h) and .pb (a tensor in ONNX's format).
 */
#ifndef RONDO_TOOL_TENSOR_READ_H
#define RONDO_TOOL_TENSOR_READ_H

#include "common/host_tensor.h"

/* Reads a file, whose name ends in .npy or .pb. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int tensor_read(const char *path, host_tensor *out);

#endif
