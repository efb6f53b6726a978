/* SPDX-License-Identifier: MIT
 * Products of some rows of F32 with a quantised matrix on CUDA, which unpack the matrix in tiles: more rows than a warp
 * has sums for, and so few that converting the matrix first takes most of the time. A tile has all rows. The depth is
 * split into parts, so that there are enough tiles; their sums are in the workspace, and a second kernel adds them in
 * their order. Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_PARTS_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_PARTS_H

#include "tensor/operators/quantized/quantized_rows.h"

#define RONDO_QUANTIZED_PARTS_ROWS 64 /* the most rows */

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_quantized_parts {
  size_t m, n;
  size_t parts, part; /* how many, and columns of the matrix in each but the last: a multiple of RONDO_QUANTIZED_STEP */
} rondo_quantized_parts;

/* For m rows, at most RONDO_QUANTIZED_PARTS_ROWS. */
rondo_quantized_parts rondo_quantized_parts_of(const rondo_quantized_scheme *scheme, size_t m);

typedef struct rondo_quantized_parts_memory {
  const void *x;                          /* [m, columns] F32, unless */
  const rondo_quantized_rows_memory rows; /* there are rows of integers with their scales */
  rondo_quantized_matrix matrix;
  const void *bias; /* NULL: none */
  void *sums;       /* [parts, m, n] F32 */
  void *y;          /* [m, n] F32 */
} rondo_quantized_parts_memory;

RONDO_MUST_USE rondo_status rondo_emit_quantized_parts(rondo_emitter *emitter, const rondo_quantized_parts *parts,
                                                       const rondo_quantized_scheme *scheme,
                                                       const rondo_quantized_parts_memory *memory);

#endif
