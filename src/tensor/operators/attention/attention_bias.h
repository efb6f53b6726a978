/* SPDX-License-Identifier: MIT
 * The mask of attention as a bias, which a library adds to scores (cudnn_attention.h): elements of q's type for every
 * row and column; batches and heads may share them. A mask that is like this is read in place, others are written to
 * the workspace as it. The library's result for a row that sees nothing is undefined. So a kernel after it looks at the
 * mask of each row, up to the first column that is seen, and sets these rows: y to 0, and the sum to infinity, with
 * which their gradients are 0.
 * Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_BIAS_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_BIAS_H

#include "tensor/operators/attention/attention.h"

/* The library needs strides of so many elements, which are 16 bytes. */
#define RONDO_ATTENTION_BIAS_UNIT 8

/* The maximum size of a bias in the workspace. */
#define RONDO_ATTENTION_BIAS_MAX ((size_t)1 << 30)

typedef struct rondo_attention_bias {
  bool is_copied;
  size_t batches, heads;       /* of the bias; 1 where all share one */
  rondo_attention_place place; /* the strides of the bias, in elements; a batch or head of 0: all share one */
  size_t bytes;                /* of the workspace, at its beginning */
} rondo_attention_bias;

/* Plans the bias of a mask, for q of 16 bits; all zero if there is no mask. False if it needs too much memory. */
bool rondo_attention_bias_plan(const rondo_attention_shape *shape, rondo_type type, rondo_attention_bias *out);

/* Emits the kernel before the library's work, if it is needed, and returns where the bias is; NULL without a mask. */
RONDO_MUST_USE rondo_status rondo_emit_attention_bias(rondo_emitter *emitter, const rondo_operation *operation,
                                                      const rondo_attention_shape *shape,
                                                      const rondo_attention_bias *bias, const void **out_bias);

/* Emits the kernel after it, if there is a mask. The results of the operation are y and the sums. */
RONDO_MUST_USE rondo_status rondo_emit_unseeing_rows(rondo_emitter *emitter, const rondo_operation *operation,
                                                     const rondo_attention_shape *shape);

#endif
