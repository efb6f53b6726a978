/* SPDX-License-Identifier: MIT
 * What the kernels of attention share: the shape of one, and their forms for a CPU (attention_tile.c).
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_H

#include <rondo/operators.h>

#include "tensor/operators/element.h"

#define RONDO_HEAD_MOST 128 /* elements of a row of a head */

/* What the kernels get as one scalar; without padding. Row i of q sees the rows j of k with j < rondo_attention_sees.
 */
typedef struct rondo_attention_shape {
  size_t batches, heads, groups; /* a group of heads / groups heads has k and v in common */
  size_t rows, columns;          /* of q; of k and v */
  size_t size;                   /* of a head */
  float scale;
  uint32_t causal; /* the last row sees all columns, the one before all but one, .. */
} rondo_attention_shape;

static inline size_t rondo_attention_sees(const rondo_attention_shape *shape, size_t row) {
  return shape->causal != 0 ? shape->columns - shape->rows + row + 1 : shape->columns;
}

/* Rows or columns of a tile on a CPU. */
#define RONDO_ATTENTION_TILE 64

static inline size_t rondo_attention_tiles(size_t count) {
  return (count + RONDO_ATTENTION_TILE - 1) / RONDO_ATTENTION_TILE;
}

/* What both operators' files share ----------------------------------------------------------------------------------
 */

/* SHAPE or TYPE unless inputs 0 to 2 are q, k and v of one another. */
RONDO_MUST_USE rondo_status rondo_require_attention(const rondo_program *program, const rondo_operation *operation);

/* With the rows of k that input `keys` has. */
rondo_attention_shape rondo_attention_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t keys);

/* The front of both calls: their out-parameter and options. */
RONDO_MUST_USE rondo_status rondo_attention_attributes(const rondo_program *program, const char *call, rondo_value q,
                                                       const rondo_attention_options *options, rondo_attributes *out,
                                                       rondo_value *out_value);

/* Kernels, by the arguments behind the shape ------------------------------------------------------------------------
 */

/* shape, q, k, v, y, sums */
void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, y, dy, shares */
void rondo_attention_share_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, dy, sums, shares, dq */
void rondo_attention_q_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, dy, sums, shares, dk, dv */
void rondo_attention_k_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, k_cache, v_cache, length, y */
void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
