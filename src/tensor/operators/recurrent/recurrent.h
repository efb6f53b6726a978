/* SPDX-License-Identifier: MIT
 * The operators lstm, gru and rnn: one layer in one direction (recurrent.c), of which the public functions make whole
 * networks (recurrent_layers.c). The product of the inputs with their weights is a matmul of its own over all steps.
 */
#ifndef RONDO_TENSOR_OPERATORS_RECURRENT_RECURRENT_H
#define RONDO_TENSOR_OPERATORS_RECURRENT_RECURRENT_H

#include "tensor/program/operator.h"

/* Inputs and results of the three rows; a row ends where its kind of cell needs no more. GATES [t, b, g h]: products of
 * the inputs, with all biases but BIAS, where g is 4 for lstm, 3 for gru and 1 for rnn. WEIGHT [g h, h], F32. HIDDEN
 * and CELL [b, h]: the states before the first step; omitted: zeros. LENGTHS [b] of indices; omitted: all have t steps.
 * BIAS [h], F32: what gru multiplies by the reset gate. */
enum {
  RONDO_RECURRENT_GATES,
  RONDO_RECURRENT_WEIGHT,
  RONDO_RECURRENT_HIDDEN,
  RONDO_RECURRENT_LENGTHS,
  RONDO_RECURRENT_CELL,
  RONDO_RECURRENT_BIAS
};

/* Y [t, b, h]; LAST and LAST_CELL [b, h]: the states after the last step. For the gradient, of each step: PREVIOUS [t,
 * b, h], the state before it; ACTIVATED [t, b, 4 h], the gates; CELLS [t, b, h], F32, the cells before it. */
enum {
  RONDO_RECURRENT_Y,
  RONDO_RECURRENT_LAST,
  RONDO_RECURRENT_PREVIOUS,
  RONDO_RECURRENT_ACTIVATED,
  RONDO_RECURRENT_LAST_CELL,
  RONDO_RECURRENT_CELLS
};

/* Flags of the attributes. */
enum { RONDO_RECURRENT_REVERSED, RONDO_RECURRENT_RELU };

/* The number of gates of a row. */
size_t rondo_recurrent_gates(const rondo_operator *row);

#endif
