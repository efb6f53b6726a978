/* SPDX-License-Identifier: MIT
 * Weights that a model has as 8-bit integers, which DequantizeLinear makes floats. Most operators read the floats,
 * which are computed at import. A product or convolution may read the integers instead: then its program has them as a
 * state, with the operators of dequantize_linear after it, and the compiler makes an integer product of all (pattern
 * "quantized"). Threads: one at a time.
 */
#ifndef RONDO_ONNX_OPERATORS_QUANTIZED_OPERAND_H
#define RONDO_ONNX_OPERATORS_QUANTIZED_OPERAND_H

#include <rondo/quantized.h>

#include "onnx/import/import_node.h"

/* Notes for output 0 of a DequantizeLinear node what it is computed from, if that is a constant of 8-bit integers. */
RONDO_MUST_USE rondo_status rondo_onnx_keep_quantized(rondo_onnx_node *node,
                                                      const rondo_quantize_linear_options *given);

/* An input as rondo_onnx_operand has it, or dequantised in the program. out_transposed: whether the matrix is
 * transposed, because rows of integers are multiplied faster; NULL: it must not be. */
RONDO_MUST_USE rondo_status rondo_onnx_quantized_operand(rondo_onnx_node *node, size_t index, bool *out_transposed,
                                                         rondo_value *out);

/* A constant matrix of 8-bit integers, transposed; any other input as rondo_onnx_operand has it. */
RONDO_MUST_USE rondo_status rondo_onnx_integer_matrix(rondo_onnx_node *node, size_t index, bool *out_transposed,
                                                      rondo_value *out);

#endif
