/* SPDX-License-Identifier: MIT
 * Reductions of floats over any set of dimensions. Dimensions that lie together and share their fate are one; whether
 * the last is reduced ("rows") or kept ("columns") decides on the kernel. Where results are too few to keep a large GPU
 * busy, each is made of parts: a first kernel writes the parts' results, as F32, into a workspace, [kept, parts], and a
 * second joins them. The cut is made by the shape alone, so results do not depend on workers.
 *
 * A reduction's CUDA source has the kernels <name>_rows_TYPE, _columns_TYPE and _parts_TYPE(shape, from, to, factor).
 */
#ifndef RONDO_TENSOR_OPERATORS_REDUCTION_REDUCTION_H
#define RONDO_TENSOR_OPERATORS_REDUCTION_REDUCTION_H

#include "tensor/operators/common/element.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

/* A scalar of kernels, without padding. Strides count elements; the last dimension of all has 1. */
typedef struct rondo_reduction {
  size_t kept, reduced; /* results, and elements that each is made of */
  size_t parts, part;   /* of each result, and elements of a part; the last may have fewer */
  size_t kept_rank, reduced_rank;
  size_t kept_dims[RONDO_MAX_DIMENSIONS], kept_strides[RONDO_MAX_DIMENSIONS];
  size_t reduced_dims[RONDO_MAX_DIMENSIONS], reduced_strides[RONDO_MAX_DIMENSIONS];
} rondo_reduction;

/* On a CPU so many chunks are joined before they go into the total, so that rounding errors of sums stay small. */
#define RONDO_JOINED_AT_ONCE 256

/* into[i] = what into[i] and x[i] make together; `none` changes nothing. */
typedef struct rondo_joining {
  void (*merge)(float *restrict into, const float *restrict x, size_t count);
  float none;
} rondo_joining;

/* The CPU forms of the kernels. */
void rondo_reduce_rows_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args);
void rondo_reduce_columns_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args);
void rondo_reduce_parts_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args);

/* What a row is to the functions below. */
typedef struct rondo_reduction_row {
  const rondo_kernel_options *rows, *columns, *parts; /* one a type */
  bool is_mean;
} rondo_reduction_row;

/* Attributes: sizes are the dimensions that are reduced. */
enum { RONDO_REDUCE_ALL, RONDO_REDUCE_KEEPS }; /* flags: all dimensions; a reduced one stays, as 1 */

rondo_status rondo_infer_reduction(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results);
rondo_status rondo_prepare_reduction(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                     size_t *out_workspace_bytes);
rondo_status rondo_emit_reduction(rondo_emitter *emitter, const rondo_operation *operation);

/* Elements of the input that become one of the result. */
size_t rondo_reduction_elements(const rondo_program *program, const rondo_operation *operation);

/* A matrix whose columns are reduced. */
typedef struct rondo_columns {
  size_t rows, columns;
} rondo_columns;

/* Whether the operation is over the first dimensions of `value`, its input, and so few elements go into each result
 * that one kernel takes no longer than parts and what joins them. */
bool rondo_reduces_columns(const rondo_shape *value, const rondo_operation *operation, rondo_columns *out_columns);

/* Adds a view of `value` (a result, or its gradient) in which reduced dimensions are 1, and what repeats that to the
 * shape of the input. */
RONDO_MUST_USE rondo_status rondo_add_kept(rondo_program *program, const rondo_operation *operation, uint32_t value,
                                           uint32_t *out_value);
RONDO_MUST_USE rondo_status rondo_add_spread(rondo_program *program, const rondo_operation *operation, uint32_t value,
                                             uint32_t *out_value);

/* The body of the public operators; dims NULL: all. */
RONDO_MUST_USE rondo_status rondo_apply_reduction(rondo_program *program, const rondo_operator *row, rondo_value value,
                                                  const size_t *dims, size_t dim_count, bool keeps,
                                                  rondo_value *out_value);

/* Parameters of the kernels. */
#define RONDO_REDUCTION_PARAMETERS RONDO_SCALAR(rondo_reduction), RONDO_READS, RONDO_WRITES, RONDO_SCALAR(float)

#endif
