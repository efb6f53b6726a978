/* SPDX-License-Identifier: MIT
 * Operators of up to three inputs that work element by element, whose shapes are broadcast together as NumPy does it:
 * aligned at the last dimension, and a dimension of 1 is repeated. The inputs' elements are gathered chunk by chunk as
 * floats, or as int64_t where they are integers, so that the arithmetic is of whole chunks whatever the shapes.
 *
 * Such an operator's kernels are called <name>_TYPE(shape, inputs ..., result, options ...), or <name>_NUMBER where
 * they are of integers too (broadcast.cuh).
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_BROADCAST_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_BROADCAST_H

#include "tensor/operators/common/element.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

/* How inputs lie under the result: a scalar of kernels, without padding. Dimensions that lie alike in all inputs are
 * one, and the last varies fastest. Strides count elements; 0 repeats, and that of the last dimension is 0 or 1. */
typedef struct rondo_broadcast {
  size_t count; /* elements of the result */
  size_t rank;  /* at least 1 */
  size_t dims[RONDO_MAX_DIMENSIONS];
  size_t strides[RONDO_MAX_TERMS][RONDO_MAX_DIMENSIONS];
} rondo_broadcast;

static inline bool rondo_is_integer(rondo_type type) { return type == RONDO_I32 || type == RONDO_I64; }

/* Numbers of a chunk: floats, or int64_t where the type is an integer. */
typedef union rondo_chunk_room {
  float floats[RONDO_CHUNK];
  int64_t integers[RONDO_CHUNK];
} rondo_chunk_room;

/* How one input lies under the result. */
typedef struct rondo_layout {
  size_t rank; /* at least 1 */
  const size_t *dims, *strides;
} rondo_layout;

/* `count` elements from `first` on as numbers: where they lie, or converted into room. With a layout, the input's
 * elements for those of the result. */
const void *rondo_load_numbers(rondo_type type, const void *memory, size_t first, size_t count, rondo_chunk_room *room);
const void *rondo_load_layout(const rondo_layout *layout, rondo_type type, const void *memory, size_t first,
                              size_t count, rondo_chunk_room *room);

/* result[i] of terms[..][i]: floats, or int64_t. */
typedef void (*rondo_term_chunk)(const void *const *terms, void *result, size_t count);

/* `name`: y = expression in a, b and c of type `term`, of which there may be fewer. */
#define RONDO_TERM_CHUNK(name, term, result_type, expression)                                              \
  RONDO_INLINE result_type name##_of(term a, term b, term c) {                                             \
    (void)b;                                                                                               \
    (void)c;                                                                                               \
    return expression;                                                                                     \
  }                                                                                                        \
  RONDO_VECTORISED(name, (const void *const *terms, void *result, size_t count), (terms, result, count)) { \
    const term *a = terms[0], *b = terms[1], *c = terms[2];                                                \
    result_type *restrict y = result;                                                                      \
    RONDO_EACH_LANE(i, lane, count, y[i] = name##_of(a[i], b[i], c[i]));                                   \
  }

/* The family of a row. */
typedef struct rondo_broadcast_row {
  const rondo_kernel_options *code; /* one per type of the last input */
  rondo_term_chunk floats;
  rondo_term_chunk integers; /* NULL: of float types only */
  bool gives_flags;          /* the result is I32 */
  bool has_condition;        /* the first input is I32, whatever the others are */
} rondo_broadcast_row;

/* The CPU kernel of a row, for elements of this type. Its arguments are the shape, the inputs and the result. */
void rondo_broadcast_cpu(const rondo_operator *row, rondo_type type, rondo_blocks blocks, void *const *args);

#define RONDO_BROADCAST_CPU(operator)                                                   \
  static void operator##_cpu(rondo_type type, rondo_blocks blocks, void *const *args) { \
    rondo_broadcast_cpu(&rondo_operator_##operator, type, blocks, args);                \
  }

rondo_status rondo_infer_broadcast(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results);
rondo_status rondo_emit_broadcast(rondo_emitter *emitter, const rondo_operation *operation);
void rondo_compute_broadcast(const rondo_chunk_call *call);

/* Members of rondo_operator. `source_name` is the CUDA source with <operator>_of. */
#define RONDO_BROADCAST_ROW(operator, source_name)                                                               \
  .family = &operator##_family, .result_count = 1, .infer = rondo_infer_broadcast, .emit = rondo_emit_broadcast, \
  .element = RONDO_ELEMENT(rondo_compute_broadcast, operator, source_name)

/* The parameters of the kernels. */
#define RONDO_BROADCAST_PARAMETERS_1 RONDO_SCALAR(rondo_broadcast), RONDO_READS, RONDO_WRITES
#define RONDO_BROADCAST_PARAMETERS_2 RONDO_SCALAR(rondo_broadcast), RONDO_READS, RONDO_READS, RONDO_WRITES
#define RONDO_BROADCAST_PARAMETERS_3 RONDO_SCALAR(rondo_broadcast), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES

/* Adds what gives `value` the shape `like` has by adding up what was repeated; `value` itself where they have one
 * shape. The rank is not smaller, unless nothing was repeated. */
RONDO_MUST_USE rondo_status rondo_add_sum_to(rondo_program *program, uint32_t value, uint32_t like,
                                             uint32_t *out_value);

#endif
