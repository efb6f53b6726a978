/* SPDX-License-Identifier: MIT
 * local_response_norm: the mean of the squares of neighbouring channels is an avg_pool, around which are element-wise
 * operators, in F32. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "tensor/operators/common/operator_tools.h"

typedef struct response {
  size_t size;
  float alpha, beta, bias;
} response;

static rondo_status add_norm(rondo_program *program, rondo_value x, const rondo_shape *shape, const response *r,
                             uint32_t *out_result) {
  const size_t planes[] = {shape->dims[0], 1, shape->dims[1], rondo_shape_elements_of(shape, 2, shape->rank)};
  const rondo_pooling_options neighbours = {RONDO_POOLING_OPTIONS_INIT,
                                            .counts_padding = true,
                                            .kernel = {r->size, 1},
                                            .stride = {1, 1},
                                            .padding_before = {(r->size - 1) / 2},
                                            .padding_after = {r->size / 2}};
  rondo_value sums, exponent;
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(rondo_op_square(program, x, &sums));
  RONDO_TRY(rondo_op_reshape(program, sums, planes, 4, &sums));
  RONDO_TRY(rondo_op_avg_pool(program, sums, &neighbours, &sums));
  RONDO_TRY(rondo_op_reshape(program, sums, shape->dims, shape->rank, &sums));
  RONDO_TRY(rondo_op_scale(program, sums, r->alpha, &sums));
  RONDO_TRY(rondo_op_add_constant(program, sums, r->bias, &sums));
  RONDO_TRY(rondo_op_full(program, RONDO_F32, NULL, 0, -(double)r->beta, &exponent));
  RONDO_TRY(rondo_op_pow(program, sums, exponent, &sums));
  RONDO_TRY(rondo_op_mul(program, x, sums, &x));
  RONDO_TRY(rondo_op_cast(program, x, shape->type, &x));
  return rondo_program_resolve(program, x, "local_response_norm", "result", out_result);
}

rondo_status rondo_op_local_response_norm(rondo_program *program, rondo_value x, size_t size, float alpha, float beta,
                                          float bias, rondo_value *out_value) {
  char text[RONDO_SHAPE_TEXT];
  const response r = {size, alpha, beta, bias};
  uint32_t index, result = RONDO_NO_VALUE;
  RONDO_TRY(rondo_program_begin_of(program, "local_response_norm", x, "x", out_value, &index));
  const rondo_shape shape = *rondo_program_shape(program, index);
  if (!rondo_shape_is_float(&shape) || shape.rank < 2 || size == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, rondo_shape_is_float(&shape) ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                      "local_response_norm: x is %s, and the size %zu; x must be [n, c, ..] of floats, and the size at "
                      "least 1",
                      rondo_shape_text(text, &shape), size);
  if (!isfinite(alpha) || !isfinite(beta) || !isfinite(bias))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "local_response_norm: alpha %g, beta %g and bias %g must be finite", (double)alpha, (double)beta,
                      (double)bias);
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_norm(program, x, &shape, &r, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
