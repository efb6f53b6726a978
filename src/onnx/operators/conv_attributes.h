/* SPDX-License-Identifier: MIT
 * The attributes of Conv, which convolutions of integers have, too. In onnx_convolution.c. Threads: one at a time.
 */
#ifndef RONDO_ONNX_OPERATORS_CONV_ATTRIBUTES_H
#define RONDO_ONNX_OPERATORS_CONV_ATTRIBUTES_H

#include <rondo/operators.h>

#include "onnx/import/import_node.h"

/* Options without a bias; `weight` is the input that has the weights. Errors: UNSUPPORTED. */
RONDO_MUST_USE rondo_status rondo_onnx_read_conv(rondo_onnx_node *node, size_t weight, rondo_conv_options *out);

#endif
