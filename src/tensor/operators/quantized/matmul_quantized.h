/* SPDX-License-Identifier: MIT
 * The parameters of the kernels of matmul_quantized, and its CPU functions.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_MATMUL_QUANTIZED_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_MATMUL_QUANTIZED_H

#include "tensor/operators/matmul/matmul_problem.h"
#include "tensor/operators/quantized/quantized_rows.h"

/* Scalar arguments: problem, scheme. Then x; its rows as integers and their scales, which are used in place of x (NULL:
 * x is used); values, scales and zeros of the matrix; bias (may be NULL); y. */
#define RONDO_MATMUL_QUANTIZED_PARAMETERS                                                                          \
  RONDO_SCALAR(rondo_matmul_problem), RONDO_SCALAR(rondo_quantized_scheme), RONDO_READS, RONDO_READS, RONDO_READS, \
      RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES

/* The CPU function of these kernels: tiles of products with dequantised panels of the matrix. */
void rondo_matmul_quantized_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
