/* SPDX-License-Identifier: MIT
 * Elements of a quantised matrix, for the operators that compute with all of them or with some of its rows.
 * Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_DEQUANTIZE_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_DEQUANTIZE_H

#include "tensor/operators/quantized/quantized_scheme.h"

/* Writes a row to elements first_out .. of `out`. */
void rondo_store_dequantized(rondo_type type, const rondo_quantized_scheme *scheme,
                             const rondo_quantized_matrix *matrix, size_t row, void *out, size_t first_out);

/* Emits the kernel that writes all elements to `out`, device memory. */
RONDO_MUST_USE rondo_status rondo_emit_dequantize(rondo_emitter *emitter, rondo_type type,
                                                  const rondo_quantized_scheme *scheme,
                                                  const rondo_quantized_matrix *matrix, const void *out);

/* The attributes of dequantize, whose result has the type of the options, and those of embedding_quantized. */
rondo_attributes rondo_dequantize_attributes(const rondo_quantized_options *options, size_t columns);

#endif
