/* SPDX-License-Identifier: MIT
 * Indices of several dimensions, as gather_nd and scatter_nd take them: each row of `indices`, [.., columns], names a
 * part of a value along its first dimensions. The value is a table, [rows, inner], and ravel_indices makes the number
 * of a row of it from each row of indices, as numpy.ravel_multi_index. The first `batch` dimensions are common to both.
 * Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_EMBEDDING_RAVEL_INDICES_H
#define RONDO_TENSOR_OPERATORS_EMBEDDING_RAVEL_INDICES_H

#include "tensor/operators/common/composition.h"

typedef struct rondo_nd_shape {
  rondo_shape value, indices;
  size_t batch, columns; /* dimensions that are common; sizes of a row of indices */
  size_t count;          /* rows of indices */
  size_t rows, inner;    /* of the table */
} rondo_nd_shape;

/* Checks the value and the indices of the public operator `call`. */
RONDO_MUST_USE rondo_status rondo_nd_shape_read(const char *call, const rondo_program *program, rondo_value value,
                                                rondo_value indices, size_t batch, rondo_nd_shape *out);

/* The shape of what the indices name: their dimensions without the last, then those of a part. SHAPE: too many. */
RONDO_MUST_USE rondo_status rondo_nd_part_shape(const char *call, const rondo_nd_shape *nd, rondo_shape *out);

/* Adds the numbers of rows, I64 [count]. A wrong index fails the run and gives -1. */
RONDO_MUST_USE rondo_status rondo_add_ravel_indices(rondo_program *program, const rondo_nd_shape *nd,
                                                    rondo_value indices, rondo_value *out_rows);

#endif
