/* SPDX-License-Identifier: MIT
 * Losses of two values of one type and shape that are a sum, or a mean, over the elements: mse, bce_with_logits. Such a
 * loss's file has functions of chunks (RONDO_PAIR_LOSS_CHUNKS), their kernels, and two rows made of a rondo_pair_loss;
 * its CUDA source has the kernels <name>_parts_TYPE and <name>_gradient_TYPE (pair_loss.cuh). The elements are cut into
 * parts by their count alone; a part's sum is taken by one block, and one block adds the parts.
 */
#ifndef RONDO_TENSOR_OPERATORS_LOSS_PAIR_LOSS_H
#define RONDO_TENSOR_OPERATORS_LOSS_PAIR_LOSS_H

#include <rondo/operators.h>

#include "tensor/operators/common/element.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/program/operators.h"

/* The family of these rows. */
typedef struct rondo_pair_loss {
  const rondo_kernel_options *code; /* one a type */
  const rondo_operator *gradient;   /* NULL of the gradient itself, which has none */
} rondo_pair_loss;

/* What the kernels get as one scalar; without padding. */
typedef struct rondo_pair_shape {
  size_t count;
  size_t part;   /* elements of one */
  size_t second; /* of a gradient: 1 for that of the second input */
} rondo_pair_shape;

/* loss_chunk and slope_chunk, for rondo_pair_parts and rondo_pair_slope, of three functions of elements a and b: the
 * loss and its slopes. */
#define RONDO_PAIR_LOSS_CHUNKS(loss, slope_a, slope_b)                                                                 \
  RONDO_VECTORISED(loss_chunk, (const float *restrict a, const float *restrict b, float *restrict sums, size_t count), \
                   (a, b, sums, count)) {                                                                              \
    RONDO_EACH_LANE(i, lane, count, sums[lane] += loss(a[i], b[i]));                                                   \
  }                                                                                                                    \
  RONDO_VECTORISED(                                                                                                    \
      slope_chunk,                                                                                                     \
      (const float *restrict a, const float *restrict b, float scale, bool second, float *restrict to, size_t count),  \
      (a, b, scale, second, to, count)) {                                                                              \
    if (second)                                                                                                        \
      RONDO_EACH_LANE(i, lane, count, to[i] = scale * slope_b(a[i], b[i]));                                            \
    else                                                                                                               \
      RONDO_EACH_LANE(i, lane, count, to[i] = scale * slope_a(a[i], b[i]));                                            \
  }

typedef void (*rondo_loss_chunk)(const float *restrict x, const float *restrict y, float *restrict sums, size_t count);
typedef void (*rondo_loss_slope_chunk)(const float *restrict x, const float *restrict y, float scale, bool second,
                                       float *restrict to, size_t count);

/* The CPU forms of the kernels; args as the CUDA kernels have them. */
void rondo_pair_parts(rondo_type type, rondo_loss_chunk chunk, rondo_blocks blocks, void *const *args);
void rondo_pair_slope(rondo_type type, rondo_loss_slope_chunk chunk, rondo_blocks blocks, void *const *args);

/* What a row has in common with all others of the family. */
rondo_status rondo_infer_pair_loss(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results);
rondo_status rondo_infer_pair_slope(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results);
rondo_status rondo_differentiate_pair_loss(rondo_program *program, const rondo_operation *operation,
                                           const uint32_t *result_gradients, uint32_t *input_gradients);
rondo_status rondo_prepare_pair_loss(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                     size_t *out_workspace_bytes);
rondo_status rondo_emit_pair_loss(rondo_emitter *emitter, const rondo_operation *operation);
rondo_status rondo_emit_pair_slope(rondo_emitter *emitter, const rondo_operation *operation);

/* The body of the public functions. */
rondo_status rondo_apply_pair_loss(rondo_program *program, const rondo_operator *row, rondo_value a, rondo_value b,
                                   rondo_combine combine, rondo_value *out_value);

/* Members of rondo_operator. */
#define RONDO_PAIR_LOSS_ROW                                                                       \
  .required = 2, .result_count = 1, .infer = rondo_infer_pair_loss, .emit = rondo_emit_pair_loss, \
  .differentiate = rondo_differentiate_pair_loss, .prepare = rondo_prepare_pair_loss
#define RONDO_PAIR_SLOPE_ROW \
  .required = 3, .result_count = 1, .infer = rondo_infer_pair_slope, .emit = rondo_emit_pair_slope

/* Parameters of the kernels. */
#define RONDO_PAIR_PARTS_PARAMETERS RONDO_SCALAR(rondo_pair_shape), RONDO_READS, RONDO_READS, RONDO_WRITES
#define RONDO_PAIR_SLOPE_PARAMETERS \
  RONDO_SCALAR(rondo_pair_shape), RONDO_SCALAR(float), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES

#endif
