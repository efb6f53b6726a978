/* SPDX-License-Identifier: MIT
 * Activations that products apply to their results: operators of one input (unary.h), by the numbers of
 * rondo_activation.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_ACTIVATION_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_ACTIVATION_H

#include <rondo/operators.h>

#include "tensor/operators/elementwise/unary.h"

/* The family of the activation's operator; NULL for NONE. */
const rondo_unary *rondo_activation_family(rondo_activation activation);

/* y[i] = activation of x[i], on a CPU; not of NONE. x and y do not overlap. */
static inline void rondo_activate(rondo_activation activation, const float *x, float *y, size_t count) {
  void *const args[] = {&x, &y, &count};
  const rondo_blocks whole = {.last = 1, .grid = {1, 1, 1}};
  rondo_activation_family(activation)->code[RONDO_F32].cpu(whole, args);
}

/* Adds the step y = activation(x) to the emitter's operation. */
RONDO_MUST_USE rondo_status rondo_emit_activation(rondo_emitter *emitter, rondo_activation activation, rondo_type type,
                                                  const void *x, void *y, size_t count);

#endif
