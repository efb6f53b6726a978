/* SPDX-License-Identifier: MIT
 * local_response_norm: the mean of the squares of neighbouring channels is an avg_pool, around which are element-wise
 * operators, in F32. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "tensor/operators/common/composition.h"

typedef struct response {
  size_t size;
  float alpha, beta, bias;
} response;

/* x / s^beta. Square roots are quicker than powers; 3/4 is the beta of nearly all networks (Krizhevsky et al. 2012). */
static rondo_status add_quotient(rondo_program *program, rondo_value x, rondo_value s, float beta, rondo_value *out) {
  rondo_value exponent, root, fourth_root;
  if (beta == 0.75f || beta == 0.5f) {
    RONDO_TRY(rondo_op_sqrt(program, s, &root));
    if (beta == 0.75f) {
      RONDO_TRY(rondo_op_sqrt(program, root, &fourth_root));
      RONDO_TRY(rondo_op_mul(program, root, fourth_root, &root));
    }
    return rondo_op_div(program, x, root, out);
  }
  RONDO_TRY(rondo_op_full(program, RONDO_F32, NULL, 0, -(double)beta, &exponent));
  RONDO_TRY(rondo_op_pow(program, s, exponent, &s));
  return rondo_op_mul(program, x, s, out);
}

static rondo_status add_norm(rondo_program *program, rondo_value x, const rondo_shape *shape, const response *r,
                             rondo_value *out_value) {
  const size_t planes[] = {shape->dims[0], 1, shape->dims[1], rondo_shape_elements_of(shape, 2, shape->rank)};
  const rondo_pooling_options neighbours = {RONDO_POOLING_OPTIONS_INIT,
                                            .counts_padding = true,
                                            .kernel = {r->size, 1},
                                            .stride = {1, 1},
                                            .padding_before = {(r->size - 1) / 2},
                                            .padding_after = {r->size / 2}};
  rondo_value sums;
  RONDO_TRY(rondo_op_cast(program, x, RONDO_F32, &x));
  RONDO_TRY(rondo_op_square(program, x, &sums));
  RONDO_TRY(rondo_op_reshape(program, sums, planes, 4, &sums));
  RONDO_TRY(rondo_op_avg_pool(program, sums, &neighbours, &sums));
  RONDO_TRY(rondo_op_reshape(program, sums, shape->dims, shape->rank, &sums));
  RONDO_TRY(rondo_op_scale(program, sums, r->alpha, &sums));
  RONDO_TRY(rondo_op_add_constant(program, sums, r->bias, &sums));
  RONDO_TRY(add_quotient(program, x, sums, r->beta, &x));
  return rondo_op_cast(program, x, shape->type, out_value);
}

rondo_status rondo_op_local_response_norm(rondo_program *program, rondo_value x, size_t size, float alpha, float beta,
                                          float bias, rondo_value *out_value) {
  char text[RONDO_SHAPE_TEXT];
  const response r = {size, alpha, beta, bias};
  rondo_shape shape;
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "local_response_norm", out_value));
  RONDO_TRY(rondo_given_shape(program, x, "local_response_norm", "x", &shape));
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
  const rondo_status status = add_norm(program, x, &shape, &r, &made);
  return rondo_compose_end(program, "local_response_norm", mark, status, made, out_value);
}
