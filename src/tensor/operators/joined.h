/* SPDX-License-Identifier: MIT
 * Updates of several parameters in one kernel: rows whose `join` (tensor/operator.h) updates element by element. A
 * kernel's blocks are those of the single updates, one parameter's behind the other's, so each element is computed as
 * there, to the same bits. What they update are parameters of the kernel, so that verification sees every access.
 *
 * A kernel has the table, what they share, and then for each of RONDO_MOST_JOINED updates its pointers; NULL where
 * there are fewer. In CUDA: joined.cuh.
 */
#ifndef RONDO_TENSOR_OPERATORS_JOINED_H
#define RONDO_TENSOR_OPERATORS_JOINED_H

#include "tensor/operators/kernel_support.h"

/* The first parameter, without padding. */
typedef struct rondo_joined_table {
  size_t elements[RONDO_MOST_JOINED];
  uint32_t first_blocks[RONDO_MOST_JOINED + 2]; /* of each update; behind the last the number of all blocks */
} rondo_joined_table;

/* What a block does. */
typedef struct rondo_joined_share {
  uint32_t update;
  rondo_span span;
} rondo_joined_share;

rondo_joined_share rondo_joined_share_of(const rondo_joined_table *table, size_t block);

#define RONDO_SIX_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define RONDO_FIVE_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
/* The pointers of all updates, given those of one. */
#define RONDO_JOINED_PARAMETERS(...) RONDO_FIVE_TIMES(RONDO_SIX_TIMES(__VA_ARGS__))

/* Members of rondo_kernel_options. */
#define RONDO_PARAMETER_LIST(list) .param_list = (list), .param_count = sizeof(list) / sizeof(list)[0]

/* What a kernel of joined updates is emitted with. */
typedef struct rondo_joined_kernel {
  const rondo_kernel_options *code;
  const uint32_t *inputs; /* of the operation: an update's pointers, as the kernel has them; the first has the shape */
  uint32_t input_count;
} rondo_joined_kernel;

/* `shared`: the arguments behind the table. */
RONDO_MUST_USE rondo_status rondo_emit_joined(rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                                              const rondo_operation *const *operations, uint32_t count,
                                              const void *const *shared, size_t shared_count);

#endif
