/* SPDX-License-Identifier: MIT
 * Which operator an activation is, and its step where no product applies it itself.
 */
#include "tensor/operators/elementwise/activation.h"

const rondo_unary *rondo_activation_family(rondo_activation activation) {
  static const rondo_operator *const rows[] = {[RONDO_ACTIVATION_RELU] = &rondo_operator_relu,
                                               [RONDO_ACTIVATION_GELU] = &rondo_operator_gelu,
                                               [RONDO_ACTIVATION_GELU_TANH] = &rondo_operator_gelu_tanh,
                                               [RONDO_ACTIVATION_SILU] = &rondo_operator_silu};
  return rows[activation] == NULL ? NULL : rows[activation]->family;
}

rondo_status rondo_emit_activation(rondo_emitter *emitter, rondo_activation activation, rondo_type type, const void *x,
                                   void *y, size_t count) {
  return rondo_emit_kernel(emitter, &rondo_activation_family(activation)->code[type],
                           rondo_emit_grid(emitter, count, RONDO_ELEMENTWISE_GRAIN), RONDO_ARGS(&x, &y, &count));
}
