/* SPDX-License-Identifier: MIT
 * Element-wise operators with one input. unary_operators.inc is their table. This header declares what
 * other operators need: the family of a row, the kernel loop, and the activations that matrix products apply.
 *
 * Kernels are called <name>_TYPE(x, y, count) and <name>_gradient_TYPE(kept, dy, dx, count). A gradient is computed
 * from `kept`, which is the input or the result of the operator. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_UNARY_OPERATORS_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_UNARY_OPERATORS_H

#include <rondo/operators.h>

#include "tensor/operators/common/element.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

typedef void (*rondo_unary_chunk)(const float *restrict x, float *restrict y, size_t count);
typedef void (*rondo_integer_chunk)(const int64_t *restrict x, int64_t *restrict y, size_t count);
typedef void (*rondo_slope_chunk)(const float *restrict kept, const float *restrict dy, float *restrict dx,
                                  size_t count);

/* The family of a row: an operator has `chunk` and `gradient`, a gradient operator has `slope`. */
typedef struct rondo_unary {
  const rondo_kernel_options *code; /* one per type */
  rondo_unary_chunk chunk;
  rondo_integer_chunk integers; /* NULL: of float types only */
  rondo_slope_chunk slope;
  const rondo_operator *gradient;
  bool keeps_result; /* the gradient reads the result, not the input */
} rondo_unary;

/* The CPU function of every row whose inputs have the shape of the result: calls row->element.compute for each chunk.
 * The arguments are the inputs, the result, the count, and then the row's numbers or, if it has `others` inputs that
 * are not elements, the first of its sizes. */
void rondo_elementwise_cpu(const rondo_operator *row, rondo_type type, rondo_blocks blocks, void *const *args);

/* The `compute` of the rows of the table. */
void rondo_compute_unary(const rondo_chunk_call *call);

rondo_status rondo_infer_unary(const rondo_program *program, const rondo_operation *operation, rondo_shape *results);

/* The family of an activation's operator; NULL for RONDO_ACTIVATION_NONE. */
const rondo_unary *rondo_activation_family(rondo_activation activation);

/* y[i] = activation(x[i]) on a CPU. x and y do not overlap; the activation is not NONE. */
static inline void rondo_activate(rondo_activation activation, const float *x, float *y, size_t count) {
  rondo_activation_family(activation)->chunk(x, y, count);
}

/* The same in place; of NONE nothing. */
void rondo_activate_in_place(rondo_activation activation, float *y, size_t count);

/* Adds the step y = activation(x) to the emitter's operation. x may be y. */
RONDO_MUST_USE rondo_status rondo_emit_activation(rondo_emitter *emitter, rondo_activation activation, rondo_type type,
                                                  const void *x, void *y, size_t count);

/* Numbers of scale, add_constant and neg: slope x + offset. */
enum { RONDO_AFFINE_SLOPE, RONDO_AFFINE_OFFSET };

/* The attributes of rondo_operator_scale; with -1, those of rondo_operator_neg. Defined in affine.c. */
rondo_attributes rondo_scale_attributes(float number);

/* The parameters of the kernels. */
#define RONDO_UNARY_PARAMETERS RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)
#define RONDO_SLOPE_PARAMETERS RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)

#endif
