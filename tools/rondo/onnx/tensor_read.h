/* SPDX-License-Identifier: MIT
 * Tensors in files: .npy (NumPy, npy_file.h) and .pb (in ONNX's format: a tensor, a sequence of tensors, or an optional
 * of either).
 */
#ifndef RONDO_TOOL_TENSOR_READ_H
#define RONDO_TOOL_TENSOR_READ_H

#include "common/host_tensor.h"

/* Reads a file, whose name ends in .npy or .pb. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int tensor_read(const char *path, host_tensor *out);

/* Reads an element of a file of an input or output of a model. A tensor is element 0; so is the array of a .npy. Past
 * the last element, *out_exists is false, and there is nothing to destroy. */
int tensor_read_element(const char *path, const rondo_onnx_value *value, size_t index, host_tensor *out,
                        bool *out_exists);

#endif
