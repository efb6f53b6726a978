/* SPDX-License-Identifier: MIT
 * What the kernels of attention share: the shape of one, and their forms for a CPU (attention_tile.c).
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_H

#include <rondo/operators.h>

#include "tensor/operators/common/element.h"

#define RONDO_HEAD_MOST 128 /* elements of a row of a head */

/* Where rows of heads lie: elements from one batch to the next, from one head, from one row. */
typedef struct rondo_attention_place {
  size_t batch, head, row;
} rondo_attention_place;

/* What the kernels get as one scalar; without padding. Row i of q sees the rows j of k with j < rondo_attention_sees.
 */
typedef struct rondo_attention_shape {
  size_t batches, heads, groups; /* a group of heads / groups heads has k and v in common */
  size_t rows, columns;          /* of q; of k and v */
  size_t size;                   /* of a head */
  rondo_attention_place q, k, y; /* k: v, too; and the gradients of each */
  rondo_attention_place own;     /* of decoding: k and v of the token, where k is the caches' */
  float scale;
  uint32_t causal; /* the last row sees all columns, the one before all but one, .. */
} rondo_attention_shape;

/* The same for heads that lie one behind another, [b, heads, rows, size]; and side by side in rows of `row` elements,
 * [b, rows, row]. */
static inline rondo_attention_place rondo_attention_stacked(size_t heads, size_t rows, size_t size) {
  return (rondo_attention_place){heads * rows * size, rows * size, size};
}
static inline rondo_attention_place rondo_attention_abreast(size_t rows, size_t row, size_t size) {
  return (rondo_attention_place){rows * row, size, row};
}

static inline size_t rondo_attention_sees(const rondo_attention_shape *shape, size_t row) {
  return shape->causal != 0 ? shape->columns - shape->rows + row + 1 : shape->columns;
}

/* Rows or columns of a tile on a CPU. */
#define RONDO_ATTENTION_TILE 64

static inline size_t rondo_attention_tiles(size_t count) {
  return (count + RONDO_ATTENTION_TILE - 1) / RONDO_ATTENTION_TILE;
}

/* What the operators' files share ---------------------------------------------------------------------------------- */

/* Attributes of all. */
enum { RONDO_ATTENTION_CAUSAL };                        /* flags */
enum { RONDO_ATTENTION_SCALE };                         /* numbers */
enum { RONDO_ATTENTION_HEADS, RONDO_ATTENTION_GROUPS }; /* sizes, where heads lie side by side */

/* SHAPE or TYPE unless inputs 0 to 2 are q, k and v of one another. */
RONDO_MUST_USE rondo_status rondo_require_attention(const rondo_program *program, const rondo_operation *operation);

/* With the rows of k that input `keys` has. */
rondo_attention_shape rondo_attention_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t keys);

/* SHAPE or TYPE unless input 0 has rows in which q, k and v of so many heads lie side by side; the elements of a head.
 */
RONDO_MUST_USE rondo_status rondo_require_packed(const rondo_program *program, const rondo_operation *operation,
                                                 size_t *out_size);

/* With as many rows as input 0 has. */
rondo_attention_shape rondo_attention_packed_shape(const rondo_emitter *emitter, const rondo_operation *operation);

/* Where q, k and v begin. */
typedef struct rondo_attention_parts {
  const void *q, *k, *v;
} rondo_attention_parts;
/* Of rows in which they lie side by side. */
rondo_attention_parts rondo_attention_parts_of(const rondo_emitter *emitter, const rondo_attention_shape *shape,
                                               uint32_t value);
/* Of three values. */
rondo_attention_parts rondo_attention_parts_at(const rondo_emitter *emitter, const uint32_t *values);

/* What runs: a kernel. Inputs of `operation` are of one type; its results are y and the sums of rows. */
RONDO_MUST_USE rondo_status rondo_emit_attention(rondo_emitter *emitter, const rondo_operation *operation,
                                                 const rondo_attention_shape *shape, const rondo_attention_parts *of);

/* The same of the gradients. Inputs from `y` on are y, dy and the sums of rows; `to`: where the gradients of q, k and v
 * go, NULL for one that is not wanted. */
RONDO_MUST_USE rondo_status rondo_emit_attention_gradient(rondo_emitter *emitter, const rondo_operation *operation,
                                                          const rondo_attention_shape *shape,
                                                          const rondo_attention_parts *of, uint32_t y,
                                                          const rondo_attention_parts *to);

/* The fronts of the calls. First the out-parameter and the program, with the elements of a row of `value`; then the
 * options, of heads of `size` elements, or of so many in a row. */
RONDO_MUST_USE rondo_status rondo_attention_begin(const rondo_program *program, const char *call, rondo_value value,
                                                  const char *what, rondo_value *out_value, size_t *out_size);
RONDO_MUST_USE rondo_status rondo_attention_attributes(const char *call, size_t size,
                                                       const rondo_attention_options *options, rondo_attributes *out);

typedef struct rondo_packed_heads {
  size_t heads, groups;
} rondo_packed_heads;
RONDO_MUST_USE rondo_status rondo_packed_attributes(const char *call, size_t row, const rondo_packed_heads *heads,
                                                    const rondo_attention_options *options, rondo_attributes *out);

/* Kernels, by the arguments behind the shape ----------------------------------------------------------------------- */

/* shape, q, k, v, y, sums */
void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, y, dy, sums, dq, dk, dv; of the last three those that are wanted */
void rondo_attention_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, k_cache, v_cache, length, y, rondo_check_memory */
void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
