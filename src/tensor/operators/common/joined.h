/* SPDX-License-Identifier: MIT
 * One kernel for several element-wise operations of one row, such as the updates of all parameters: rows with a `join`
 * (tensor/program/operator.h). The blocks of the kernel are those of the single operations, one operation after the
 * other, so each element has the same bits as from a kernel of its own. All memory that the kernel accesses is among
 * its parameters, so that verification sees it.
 *
 * The parameters are the table, the arguments that all operations share, and then the pointers of RONDO_MAX_JOINED
 * operations, or of fewer; NULL where there are fewer. joined.cuh is the CUDA form. One input may have a different type
 * in each operation. Gradients may have any float type: each element is converted to F32 when it is read.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_JOINED_H
#define RONDO_TENSOR_OPERATORS_COMMON_JOINED_H

#include "tensor/operators/common/element.h"

/* The first parameter, without padding. */
typedef struct rondo_joined_table {
  size_t elements[RONDO_MAX_JOINED];
  uint32_t first_blocks[RONDO_MAX_JOINED + 2]; /* of each operation; after the last, the number of all blocks */
  uint8_t types[RONDO_MAX_JOINED + 2];         /* of the input whose type may differ */
} rondo_joined_table;

/* The work of a block. */
typedef struct rondo_joined_share {
  uint32_t operation;
  rondo_type type; /* from the table */
  rondo_span span;
} rondo_joined_share;

rondo_joined_share rondo_joined_share_of(const rondo_joined_table *table, size_t block);

/* The loop over the runs of a gradient's elements first .. last - 1 that rondo_load_chunk reads together: all of them
 * for F32, else a chunk. */
#define RONDO_EACH_GRADIENT(type, at, length, first, last) \
  for (size_t at = (first), length;                        \
       at < (last) && (length = (type) == RONDO_F32 ? (last)-at : rondo_chunk_length(at, last)) > 0; at += length)

/* TYPE or SHAPE unless input `gradient` has a float type and the sizes of input `parameter`, of which the operation may
 * update a part. */
RONDO_MUST_USE rondo_status rondo_require_gradient(const rondo_program *program, const rondo_operation *operation,
                                                   uint32_t parameter, uint32_t gradient);

/* TYPE or SHAPE unless input `companion` is F32 and has the shape of the parameter, or holds the same part of it. */
RONDO_MUST_USE rondo_status rondo_require_companion(const rondo_program *program, const rondo_operation *operation,
                                                    uint32_t parameter, uint32_t companion);

#define RONDO_SIX_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define RONDO_FIVE_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
/* The pointers of all operations, given those of one. */
#define RONDO_JOINED_PARAMETERS(...) RONDO_FIVE_TIMES(RONDO_SIX_TIMES(__VA_ARGS__))

/* The same for operations with more than four pointers each, of which fewer fit into RONDO_MAX_PARAMETERS. */
#define RONDO_FEWER_JOINED 20
#define RONDO_FOUR_TIMES(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
#define RONDO_FEWER_JOINED_PARAMETERS(...) RONDO_FIVE_TIMES(RONDO_FOUR_TIMES(__VA_ARGS__))

/* How to emit a kernel of joined operations. */
typedef struct rondo_joined_kernel {
  const rondo_kernel_options *code;
  const uint32_t *values; /* the values of an operation whose pointers it takes; the first is split into blocks */
  uint32_t value_count;
  uint32_t typed; /* the input whose type may differ */
  rondo_grain grain;
  const uint32_t *offsets; /* of operations on parts: by value, the index of the attribute's size that has its first
                              element (tensor/program/optimizer_parts.h); NULL: operations are on whole values */
  uint32_t max;            /* operations whose pointers it takes, at most RONDO_MAX_JOINED */
} rondo_joined_kernel;

/* `shared`: the arguments after the table (RONDO_OPERANDS), those of the first operation. */
RONDO_MUST_USE rondo_status rondo_emit_joined(rondo_emitter *emitter, const rondo_joined_kernel *kernel,
                                              const rondo_operation *const *operations, uint32_t count,
                                              const rondo_operand *shared, size_t shared_count);

#endif
