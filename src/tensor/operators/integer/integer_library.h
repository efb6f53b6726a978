/* SPDX-License-Identifier: MIT
 * A product of matrices of 8-bit integers by a library on CUDA (cublaslt.h). The library multiplies I8, rows with rows,
 * in whole units. So kernels before it copy a, and b transposed, with zeros up to a unit; those of U8 less 128. The
 * zeros of a and b, and the 128, are taken off the sums afterwards, by the sums of a's rows and of b's columns.
 * Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_LIBRARY_H
#define RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_LIBRARY_H

#include "tensor/operators/integer/integer_product.h"

/* Prepares the library's product of a [m, k] and b [k, n] for an operation, if it takes these sizes and they are worth
 * it. If not, *out_workspace_bytes is 0, and rondo_emit_product NULL. */
RONDO_MUST_USE rondo_status rondo_integer_library_prepare(rondo_resources *resources, uint32_t operation, size_t m,
                                                          size_t n, size_t k, size_t *out_workspace_bytes);

/* Emits what was prepared, for inputs 0 and 1 and those of rondo_integer_require. */
RONDO_MUST_USE rondo_status rondo_emit_integer_library(rondo_emitter *emitter, const rondo_operation *operation,
                                                       const rondo_integer_ending *ending, size_t m, size_t n,
                                                       size_t k);

#endif
