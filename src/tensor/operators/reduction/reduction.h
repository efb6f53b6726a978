/* SPDX-License-Identifier: MIT
 * Reductions over any set of dimensions, of floats in F32 and of integers with 64 bits. Neighbouring dimensions that
 * are all reduced or all kept are merged. Whether the last is reduced ("rows") or kept ("columns") determines the
 * kernel. If there are too few results to keep a large GPU busy, each is computed in parts: a first kernel writes the
 * parts' results, as numbers, into a workspace [kept, parts], and a second kernel combines them. The shape alone
 * determines the parts, so results do not depend on the number of workers. Threads: any.
 *
 * A reduction's CUDA source has the kernels <name>_rows_TYPE, _columns_TYPE and _parts_TYPE(shape, from, to, factor),
 * or _NUMBER. The factor is for floats alone.
 */
#ifndef RONDO_TENSOR_OPERATORS_REDUCTION_REDUCTION_H
#define RONDO_TENSOR_OPERATORS_REDUCTION_REDUCTION_H

#include "tensor/operators/common/element.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

/* A scalar argument of kernels, without padding. Strides count elements; the last dimension has stride 1. */
typedef struct rondo_reduction {
  size_t kept, reduced; /* results, and elements that each reduces */
  size_t parts, part;   /* parts of each result, and elements of a part; the last may have fewer */
  size_t kept_rank, reduced_rank;
  size_t kept_dims[RONDO_MAX_DIMENSIONS], kept_strides[RONDO_MAX_DIMENSIONS];
  size_t reduced_dims[RONDO_MAX_DIMENSIONS], reduced_strides[RONDO_MAX_DIMENSIONS];
} rondo_reduction;

/* On a CPU, this many chunks are accumulated before they are added to the total, so that rounding errors stay small. */
#define RONDO_JOINED_AT_ONCE 256

/* How numbers are combined: float, or int64_t for integers. merge: into[i] = the combination of into[i] and x[i]; none:
 * the neutral element. */
typedef struct rondo_joining {
  void (*merge_floats)(float *restrict into, const float *restrict x, size_t count);
  void (*merge_integers)(int64_t *restrict into, const int64_t *restrict x, size_t count);
  float no_float;
  int64_t no_integer;
} rondo_joining;

/* The CPU functions of the kernels. */
void rondo_reduce_rows_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args);
void rondo_reduce_columns_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args);
void rondo_reduce_parts_cpu(rondo_type type, const rondo_joining *joining, rondo_blocks blocks, void *const *args);

/* The `family` of a row. */
typedef struct rondo_reduction_row {
  const rondo_kernel_options *rows, *columns, *parts; /* one for each type */
  bool is_mean;
} rondo_reduction_row;

/* Attributes: sizes are the reduced dimensions. */
enum { RONDO_REDUCE_ALL, RONDO_REDUCE_KEEPS }; /* flags: reduces all dimensions; keeps reduced dimensions, as 1 */

rondo_status rondo_infer_reduction(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results);
rondo_status rondo_prepare_reduction(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                     size_t *out_workspace_bytes);
rondo_status rondo_emit_reduction(rondo_emitter *emitter, const rondo_operation *operation);

/* The number of elements that each result reduces. */
size_t rondo_reduction_elements(const rondo_program *program, const rondo_operation *operation);

/* A matrix whose columns are reduced. */
typedef struct rondo_columns {
  size_t rows, columns;
} rondo_columns;

/* Whether the operation reduces the first dimensions of `value`, its input, and each result reduces so few elements
 * that one kernel is not slower than two. */
bool rondo_reduces_columns(const rondo_shape *value, const rondo_operation *operation, rondo_columns *out_columns);

/* rondo_add_kept adds a view of `value` (a result, or its gradient) in which reduced dimensions are 1. rondo_add_spread
 * adds that, broadcast to the shape of the input. */
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
