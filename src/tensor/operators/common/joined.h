/* SPDX-License-Identifier: MIT
 * Operations on several values in one kernel: rows whose `join` (tensor/program/operator.h) works element by element,
 * as updates of parameters do. A kernel's blocks are those of the single operations, one behind the other's, so each
 * element is computed as there, to the same bits. What they access are parameters of the kernel, so that verification
 * sees it.
 *
 * A kernel has the table, what they share, and then for each of RONDO_MOST_JOINED operations its pointers; NULL where
 * there are fewer. In CUDA: joined.cuh. One of the inputs may be of several types. Gradients are of any type of float:
 * each element is made an F32 as it is read.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_JOINED_H
#define RONDO_TENSOR_OPERATORS_COMMON_JOINED_H

#include "tensor/operators/common/element.h"

/* The first parameter, without padding. */
typedef struct rondo_joined_table {
  size_t elements[RONDO_MOST_JOINED];
  uint32_t first_blocks[RONDO_MOST_JOINED + 2]; /* of each; behind the last the number of all blocks */
  uint8_t types[RONDO_MOST_JOINED + 2];         /* of the input of each that may be of several */
} rondo_joined_table;

/* What a block does. */
typedef struct rondo_joined_share {
  uint32_t operation;
  rondo_type type; /* as in the table */
  rondo_span span;
} rondo_joined_share;

rondo_joined_share rondo_joined_share_of(const rondo_joined_table *table, size_t block);

/* So many elements of a gradient are read together (rondo_load_chunk), from `at` on, before `last`. */
static inline size_t rondo_gradient_run(rondo_type type, size_t at, size_t last) {
  return type == RONDO_F32 ? last - at : rondo_chunk_length(at, last);
}

/* TYPE or SHAPE unless input `gradient` is of a type of float and has the sizes of input `parameter`. */
RONDO_MUST_USE rondo_status rondo_require_gradient(const rondo_program *program, const rondo_operation *operation,
                                                   uint32_t parameter, uint32_t gradient);

#define RONDO_SIX_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define RONDO_FIVE_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
/* The pointers of all operations, given those of one. */
#define RONDO_JOINED_PARAMETERS(...) RONDO_FIVE_TIMES(RONDO_SIX_TIMES(__VA_ARGS__))

/* Members of rondo_kernel_options. */
#define RONDO_PARAMETER_LIST(list) .param_list = (list), .param_count = sizeof(list) / sizeof(list)[0]

/* What a kernel of joined operations is emitted with. */
typedef struct rondo_joined_kernel {
  const rondo_kernel_options *code;
  const uint32_t *values; /* whose pointers it has of each operation; the first has the elements that blocks share */
  uint32_t value_count;
  uint32_t typed; /* the input that may be of several types */
  rondo_grain grain;
} rondo_joined_kernel;

/* `shared`: the arguments behind the table. */
RONDO_MUST_USE rondo_status rondo_emit_joined(rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                                              const rondo_operation *const *operations, uint32_t count,
                                              const void *const *shared, size_t shared_count);

#endif
