/* SPDX-License-Identifier: MIT
 * What the attention operators share: their shape argument, and functions of attention.c. Threads: any.
 *
 * Columns are the rows of k and v. With caches, the columns of a batch are the rows that its caches hold, then the new
 * rows, unless there are none: then the caches are only read, and attention is not causal. A row of q has a position
 * among the columns. Causality, windows and slopes depend on it.
 *
 * A plan is an I32 value that says how many rows a batch has: a length for each batch, then a count of new rows for
 * each batch, then the block table, then the bits of a slope for each head. The operators of attention_plan.c check
 * what they write into it, so kernels rely on it. Layers that read the same lengths share a plan.
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_H

#include <rondo/operators.h>

#include "tensor/operators/common/element.h"

#define RONDO_HEAD_MAX 256 /* the maximum number of elements in a row of a head */

/* The strides of heads, in elements: from one batch, one head and one row to the next. */
typedef struct rondo_attention_place {
  size_t batch, head, row;
} rondo_attention_place;

/* The strides of a mask; 0 where it is broadcast. */
typedef struct rondo_attention_plane {
  size_t batch, head, row, column;
} rondo_attention_plane;

typedef enum rondo_mask_kind { RONDO_MASK_NONE, RONDO_MASK_BOOLEAN, RONDO_MASK_F32, RONDO_MASK_TYPED } rondo_mask_kind;

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_attention_shape {
  size_t batches, heads, groups;   /* heads / groups heads share k and v */
  size_t rows, columns;            /* of q; of k and v, or of the caches */
  size_t size;                     /* of a head */
  rondo_attention_place q, k, y;   /* k: of v too; and of their gradients */
  rondo_attention_place cache;     /* a batch of it is a block; size 0 of a row: there are no caches */
  size_t block_rows, table_blocks; /* rows of a block of the caches; entries of the block table for a sequence, 0: no
                                      table */
  rondo_attention_plane mask;
  size_t window; /* 0: none */
  float scale;
  uint32_t causal;     /* bool; with caches also: they are followed by new rows */
  uint32_t mask_kind;  /* rondo_mask_kind */
  uint32_t has_slopes; /* bool */
} rondo_attention_shape;

/* The strides of heads one after the other, [b, heads, rows, size], and of heads in rows of `row` elements, [b, rows,
 * row]. */
static inline rondo_attention_place rondo_attention_stacked(size_t heads, size_t rows, size_t size) {
  return (rondo_attention_place){heads * rows * size, rows * size, size};
}
static inline rondo_attention_place rondo_attention_abreast(size_t rows, size_t row, size_t size) {
  return (rondo_attention_place){rows * row, size, row};
}

/* Rows or columns of a tile on a CPU. */
#define RONDO_ATTENTION_TILE 64

static inline size_t rondo_attention_tiles(size_t count) { return rondo_divide_up(count, RONDO_ATTENTION_TILE); }

/* What the operators' files share ---------------------------------------------------------------------------------- */

/* The first inputs of all operators; K and V are omitted if Q is packed, or if caches are only read. After them,
 * attention_decode has caches, and attention_gradient y, its gradient and the sums of rows. */
enum { RONDO_ATTENTION_Q, RONDO_ATTENTION_K, RONDO_ATTENTION_V, RONDO_ATTENTION_MASK, RONDO_ATTENTION_PLAN };
enum { RONDO_ATTENTION_K_CACHE = RONDO_ATTENTION_PLAN + 1, RONDO_ATTENTION_V_CACHE };

/* The attributes of all operators. */
enum { RONDO_ATTENTION_CAUSAL, RONDO_ATTENTION_PACKED, RONDO_ATTENTION_SLOPES }; /* flags */
enum { RONDO_ATTENTION_SCALE };                                                  /* numbers */
enum {
  RONDO_ATTENTION_HEADS,  /* of packed rows */
  RONDO_ATTENTION_GROUPS, /* of packed rows */
  RONDO_ATTENTION_WINDOW,
  RONDO_ATTENTION_TABLE,  /* entries of the block table for a sequence; 0: no table */
  RONDO_ATTENTION_LAYOUT, /* bits of what is [b, rows, heads, size], as products compute it, without caches */
  RONDO_ATTENTION_SIZES
}; /* sizes */
enum { RONDO_ATTENTION_ROWS_OF_Q = 1, RONDO_ATTENTION_ROWS_OF_K = 2 /* and v */, RONDO_ATTENTION_ROWS_OF_Y = 4 };

/* The dimensions of q, k and v, whatever their layout. */
typedef struct rondo_attention_dims {
  size_t batches, heads, groups, rows, columns, size;
} rondo_attention_dims;

rondo_attention_dims rondo_attention_dims_of(const rondo_shape *q, const rondo_shape *k,
                                             const rondo_attributes *attributes);

/* SHAPE if a head has too many elements. */
RONDO_MUST_USE rondo_status rondo_require_head(const rondo_program *program, const rondo_operation *operation,
                                               size_t size);
/* SHAPE or TYPE unless the inputs Q, K and V match. */
RONDO_MUST_USE rondo_status rondo_require_attention(const rondo_program *program, const rondo_operation *operation,
                                                    rondo_attention_dims *out);
/* SHAPE or TYPE unless the input MASK, if there is one, fits rows of q times `columns`. */
RONDO_MUST_USE rondo_status rondo_require_mask(const rondo_program *program, const rondo_operation *operation,
                                               const rondo_attention_dims *dims, size_t columns);

/* The shape of an operation without caches. */
rondo_attention_shape rondo_attention_shape_of(const rondo_program *program, const rondo_operation *operation);
/* The strides of its input MASK, and how it is read. */
void rondo_attention_set_mask(const rondo_program *program, const rondo_operation *operation,
                              rondo_attention_shape *shape);

/* The addresses of q, k and v, or of their gradients, which are the first three of `values`, or parts of the first. */
typedef struct rondo_attention_parts {
  const void *q, *k, *v;
} rondo_attention_parts;
rondo_attention_parts rondo_attention_parts_of(const rondo_emitter *emitter, const rondo_attention_shape *shape,
                                               const rondo_operation *operation, const uint32_t *values);

/* Emits the kernel of attention or attention_decode. */
RONDO_MUST_USE rondo_status rondo_emit_attention(rondo_emitter *emitter, const rondo_operation *operation,
                                                 const rondo_attention_shape *shape);

#endif
