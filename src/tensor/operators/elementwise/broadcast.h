/* SPDX-License-Identifier: MIT
 * Element-wise operators of up to three inputs, whose shapes are broadcast as in NumPy: aligned at the last dimension,
 * with dimensions of 1 repeated. The inputs' elements are gathered in chunks of float, or int64_t for integers, so that
 * the arithmetic works on whole chunks whatever the shapes.
 *
 * The kernels of such an operator are called <name>_TYPE(shape, inputs ..., result, options ...), or <name>_NUMBER if
 * they take integers too (broadcast.cuh). Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_BROADCAST_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_BROADCAST_H

#include "tensor/operators/common/element.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

/* The strides of the inputs: a scalar argument of kernels, without padding. Dimensions that are contiguous in all
 * inputs are merged; the last varies fastest. Strides count elements; 0 repeats. The last stride is 0 or 1. */
typedef struct rondo_broadcast {
  size_t count; /* elements of the result */
  size_t rank;  /* at least 1 */
  size_t dims[RONDO_MAX_DIMENSIONS];
  size_t strides[RONDO_MAX_TERMS][RONDO_MAX_DIMENSIONS];
} rondo_broadcast;

/* The numbers of a chunk: float, or int64_t for integer types. */
typedef union rondo_chunk_buffer {
  float floats[RONDO_CHUNK];
  int64_t integers[RONDO_CHUNK];
} rondo_chunk_buffer;

/* The strides of one input. */
typedef struct rondo_layout {
  size_t rank; /* at least 1 */
  const size_t *dims, *strides;
} rondo_layout;

/* What a buffer has: `count` elements, one row of the input again and again, which begins at `offset`. 0: anything. */
typedef struct rondo_repeated_row {
  size_t offset, count;
} rondo_repeated_row;

/* `count` elements from `first` on as numbers: in place, or converted into `buffer`. With a layout, the elements of the
 * input for these elements of the result; *held says what an earlier call left in the buffer, and is updated. */
const void *rondo_load_numbers(rondo_type type, const void *memory, size_t first, size_t count,
                               rondo_chunk_buffer *buffer);
const void *rondo_load_layout(const rondo_layout *layout, rondo_type type, const void *memory, size_t first,
                              size_t count, rondo_chunk_buffer *buffer, rondo_repeated_row *held);

/* At most `count`: how many elements from `first` on to load at once, so that a row that repeats is loaded once for
 * all chunks in which it repeats. */
size_t rondo_layout_chunk(const rondo_layout *layout, size_t first, size_t count);

/* Where to write numbers that rondo_store_numbers then stores: in place, or `buffer`. */
void *rondo_numbers_of(rondo_type type, void *memory, size_t first, rondo_chunk_buffer *buffer);
void rondo_store_numbers(rondo_type type, void *memory, size_t first, size_t count, const void *numbers);

/* Computes result[i] from terms[..][i]: float, or int64_t. */
typedef void (*rondo_term_chunk)(const void *const *terms, void *result, size_t count);

/* Defines `name`: y = expression in a, b and c of type `term`, of which there may be fewer. The loop is a function of
 * its own because compilers vectorise it only if its parameters are restrict. */
#define RONDO_TERM_CHUNK(name, term, result_type, expression)                                                          \
  RONDO_INLINE result_type name##_of(term a, term b, term c) {                                                         \
    (void)b;                                                                                                           \
    (void)c;                                                                                                           \
    return expression;                                                                                                 \
  }                                                                                                                    \
  RONDO_VECTORISED(                                                                                                    \
      name##_loop,                                                                                                     \
      (const term *restrict a, const term *restrict b, const term *restrict c, result_type *restrict y, size_t count), \
      (a, b, c, y, count)) {                                                                                           \
    RONDO_EACH_LANE(i, lane, count, y[i] = name##_of(a[i], b[i], c[i]));                                               \
  }                                                                                                                    \
  static void name(const void *const *terms, void *result, size_t count) {                                             \
    name##_loop(terms[0], terms[1], terms[2], result, count);                                                          \
  }

/* The `family` of a row. */
typedef struct rondo_broadcast_row {
  const rondo_kernel_options *code; /* one for each type of the last input */
  rondo_term_chunk floats;
  rondo_term_chunk integers; /* NULL: of float types only */
  bool gives_flags;          /* the result is BOOL */
  bool has_condition;        /* the first input is BOOL, whatever the others are */
} rondo_broadcast_row;

/* The CPU function of a row's kernel for this type. Its arguments are the shape, the inputs and the result. */
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

/* Adds the sum over the broadcast dimensions of `value`, which gives it the shape of `like`. Gives `value` itself if
 * both have one shape. The rank of `value` is not smaller than that of `like`, unless nothing was broadcast. */
RONDO_MUST_USE rondo_status rondo_add_sum_to(rondo_program *program, uint32_t value, uint32_t like,
                                             uint32_t *out_value);

#endif
