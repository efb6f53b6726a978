/* SPDX-License-Identifier: MIT
 * What the attention operators share: their shape argument, functions of their files, and the CPU functions of their
 * kernels (attention_tile.c). Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_H

#include <rondo/operators.h>

#include "tensor/operators/common/element.h"

#define RONDO_HEAD_MAX 128 /* the maximum number of elements in a row of a head */

/* The strides of heads, in elements: from one batch, one head and one row to the next. */
typedef struct rondo_attention_place {
  size_t batch, head, row;
} rondo_attention_place;

/* A scalar argument of the kernels; without padding. The rows j < rondo_attention_sees(i) of k are visible to row i of
 * q. */
typedef struct rondo_attention_shape {
  size_t batches, heads, groups; /* heads / groups heads share k and v */
  size_t rows, columns;          /* of q; of k and v */
  size_t size;                   /* of a head */
  rondo_attention_place q, k, y; /* k: of v too; and of their gradients */
  rondo_attention_place own;     /* for decoding: of the token's k and v; k is then that of the caches */
  float scale;
  uint32_t causal; /* all columns are visible to the last row, all but one to the row before, .. */
} rondo_attention_shape;

/* The strides of separate heads, [b, heads, rows, size], and of heads packed in rows of `row` elements, [b, rows, row].
 */
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

static inline size_t rondo_attention_tiles(size_t count) { return rondo_divide_up(count, RONDO_ATTENTION_TILE); }

/* What the operators' files share ---------------------------------------------------------------------------------- */

/* The attributes of all operators. */
enum { RONDO_ATTENTION_CAUSAL };                        /* flags */
enum { RONDO_ATTENTION_SCALE };                         /* numbers */
enum { RONDO_ATTENTION_HEADS, RONDO_ATTENTION_GROUPS }; /* sizes, for packed heads */

/* SHAPE or TYPE unless inputs 0 to 2 are matching q, k and v. */
RONDO_MUST_USE rondo_status rondo_require_attention(const rondo_program *program, const rondo_operation *operation);

/* The shape of separate heads. `keys`: the input with the rows of k. */
rondo_attention_shape rondo_attention_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t keys);

/* SHAPE or TYPE unless each row of input 0 is the packed q, k and v of the heads in the attributes. Returns the
 * elements of a head. */
RONDO_MUST_USE rondo_status rondo_require_packed(const rondo_program *program, const rondo_operation *operation,
                                                 size_t *out_size);

/* The shape of packed heads, with the rows of input 0. */
rondo_attention_shape rondo_attention_packed_shape(const rondo_emitter *emitter, const rondo_operation *operation);

/* The addresses of q, k and v. */
typedef struct rondo_attention_parts {
  const void *q, *k, *v;
} rondo_attention_parts;
/* In a value of packed rows. */
rondo_attention_parts rondo_attention_parts_of(const rondo_emitter *emitter, const rondo_attention_shape *shape,
                                               uint32_t value);
/* In three values. */
rondo_attention_parts rondo_attention_parts_at(const rondo_emitter *emitter, const uint32_t *values);

/* Adds the kernel of an operation, whose inputs have one type and whose results are y and the sums of rows. */
RONDO_MUST_USE rondo_status rondo_emit_attention(rondo_emitter *emitter, const rondo_operation *operation,
                                                 const rondo_attention_shape *shape, const rondo_attention_parts *of);

/* Adds the kernel of the gradients. Inputs from `y` on are y, dy and the sums of rows. `to`: the gradients of q, k and
 * v; NULL for those that nothing reads. */
RONDO_MUST_USE rondo_status rondo_emit_attention_gradient(rondo_emitter *emitter, const rondo_operation *operation,
                                                          const rondo_attention_shape *shape,
                                                          const rondo_attention_parts *of, uint32_t y,
                                                          const rondo_attention_parts *to);

typedef struct rondo_packed_heads {
  size_t heads, groups;
} rondo_packed_heads;

/* The attributes for rows of `row` elements. `heads`: of packed rows, else NULL. */
RONDO_MUST_USE rondo_status rondo_attention_attributes(const char *call, size_t row, const rondo_packed_heads *heads,
                                                       const rondo_attention_options *options, rondo_attributes *out);

/* The beginning of a public function: rondo_program_begin_of, and the attributes for the rows of `value`. */
RONDO_MUST_USE rondo_status rondo_attention_begin(const rondo_program *program, const char *call, rondo_value value,
                                                  const char *what, const rondo_packed_heads *heads,
                                                  const rondo_attention_options *options, rondo_value *out_value,
                                                  rondo_attributes *out);

/* CPU functions of the kernels, with their arguments --------------------------------------------------------------- */

/* shape, q, k, v, y, sums */
void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, y, dy, sums, dq, dk, dv; the last three may be NULL */
void rondo_attention_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args);
/* shape, q, k, v, k_cache, v_cache, length, y, rondo_check_memory */
void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args);

#endif
