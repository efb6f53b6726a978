/* SPDX-License-Identifier: MIT
 * Operators of one input that work element by element, in types of float. Such an operator's file has two functions of
 * chunks (RONDO_UNARY_CHUNK, RONDO_SLOPE_CHUNK), their kernels, and two rows made of a rondo_unary; its CUDA source has
 * the kernels <name>_TYPE(x, y, count) and <name>_gradient_TYPE(kept, dy, dx, count). The gradient is computed from
 * what is kept, the input or the result; the result is better where both would do, since its memory is often held
 * anyway.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_UNARY_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_UNARY_H

#include "tensor/operators/common/element.h"
#include "tensor/program/operators.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

typedef void (*rondo_unary_chunk)(const float *restrict x, float *restrict y, size_t count);
typedef void (*rondo_slope_chunk)(const float *restrict kept, const float *restrict dy, float *restrict dx,
                                  size_t count);

/* The family of these rows. */
typedef struct rondo_unary {
  const rondo_kernel_options *code; /* one a type */
  rondo_unary_chunk chunk;          /* the operator, or */
  rondo_slope_chunk slope;          /* the gradient */
  const rondo_operator *gradient;   /* NULL of the gradient itself, which has none */
  bool keeps_result;
} rondo_unary;

/* `name`(x, y, count): y[i] = expression in `x`. */
#define RONDO_UNARY_CHUNK(name, expression)                                                           \
  RONDO_INLINE float name##_of(float x) { return expression; }                                        \
  RONDO_VECTORISED(name, (const float *restrict x, float *restrict y, size_t count), (x, y, count)) { \
    RONDO_EACH_LANE(i, lane, count, y[i] = name##_of(x[i]));                                          \
  }

/* `name`(kept, dy, dx, count): dx[i] = expression in `kept` and `dy`. */
#define RONDO_SLOPE_CHUNK(name, expression)                                                                        \
  RONDO_INLINE float name##_of(float kept, float dy) { return expression; }                                        \
  RONDO_VECTORISED(name, (const float *restrict kept, const float *restrict dy, float *restrict dx, size_t count), \
                   (kept, dy, dx, count)) {                                                                        \
    RONDO_EACH_LANE(i, lane, count, dx[i] = name##_of(kept[i], dy[i]));                                            \
  }

/* The CPU forms of the kernels; args as the CUDA kernels have them. */
void rondo_unary_cpu(rondo_type type, rondo_unary_chunk chunk, rondo_blocks blocks, void *const *args);
void rondo_slope_cpu(rondo_type type, rondo_slope_chunk chunk, rondo_blocks blocks, void *const *args);

/* What a row has in common with all others of the family. */
rondo_status rondo_infer_unary(const rondo_program *program, const rondo_operation *operation, rondo_shape *results);
rondo_status rondo_infer_slope(const rondo_program *program, const rondo_operation *operation, rondo_shape *results);
rondo_status rondo_differentiate_unary(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients);
rondo_status rondo_emit_unary(rondo_emitter *emitter, const rondo_operation *operation);
rondo_status rondo_emit_slope(rondo_emitter *emitter, const rondo_operation *operation);
void rondo_compute_unary(const rondo_chunk_call *call);
void rondo_compute_slope(const rondo_chunk_call *call);

/* What an operation of rondo_operator_scale, or of rondo_operator_neg with -1, has. */
rondo_attributes rondo_scale_attributes(float number);

/* Members of rondo_operator, of the operator `operator` and its gradient. */
#define RONDO_UNARY_ROW(operator)                                                                           \
  .types = RONDO_FLOATS, .inputs = {"value"}, .required = 1, .result_count = 1, .infer = rondo_infer_unary, \
  .differentiate = rondo_differentiate_unary, .emit = rondo_emit_unary,                                     \
  .element = RONDO_ELEMENT(rondo_compute_unary, operator, operator)
#define RONDO_SLOPE_ROW(operator)                                                               \
  .inputs = {"kept", "gradient"}, .required = 2, .result_count = 1, .infer = rondo_infer_slope, \
  .emit = rondo_emit_slope, .element = RONDO_ELEMENT(rondo_compute_slope, operator##_gradient, operator)

/* Parameters of the kernels. */
#define RONDO_UNARY_PARAMETERS RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)
#define RONDO_SLOPE_PARAMETERS RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)

#endif
