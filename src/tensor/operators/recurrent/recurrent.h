/* SPDX-License-Identifier: MIT
 * The operators lstm, gru and rnn: one layer in one direction, of which the public functions make whole networks
 * (recurrent_layers.c). recurrent.c has the cells that PyTorch trains, with gradients; recurrent_general.c the other
 * cells of ONNX, without. The product of the inputs with their weights is a matmul of its own over all steps.
 */
#ifndef RONDO_TENSOR_OPERATORS_RECURRENT_RECURRENT_H
#define RONDO_TENSOR_OPERATORS_RECURRENT_RECURRENT_H

#include "tensor/operators/common/operator_tools.h"

/* Inputs and results of the rows; a row ends where its kind of cell needs no more. GATES [t, b, g h]: products of
 * the inputs, with all biases but BIAS, where g is 4 for lstm, 3 for gru and 1 for rnn. WEIGHT [g h, h], F32. HIDDEN
 * and CELL [b, h]: the states before the first step; omitted: zeros. LENGTHS [b] of indices; omitted: all have t steps.
 * BIAS [h], F32: what gru multiplies by the reset gate. PEEPHOLE [3 h], F32, of lstm_general: what the gates input,
 * forget and output see of the cell. */
enum {
  RONDO_RECURRENT_GATES,
  RONDO_RECURRENT_WEIGHT,
  RONDO_RECURRENT_HIDDEN,
  RONDO_RECURRENT_LENGTHS,
  RONDO_RECURRENT_CELL,
  RONDO_RECURRENT_BIAS,
  RONDO_RECURRENT_PEEPHOLE
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

/* The results of the general rows. */
enum { RONDO_GENERAL_Y, RONDO_GENERAL_LAST, RONDO_GENERAL_LAST_CELL };

/* Flags of the attributes; the last two of general rows. */
enum { RONDO_RECURRENT_REVERSED, RONDO_RECURRENT_IS_RELU, RONDO_RECURRENT_RESET_FIRST, RONDO_RECURRENT_COUPLED };

/* Attributes of general rows: the first number is the limit of clip, 0: none; the sizes have, for each activation, its
 * kind and the bits of alpha and beta. The activations are those of gates, of the candidate, and of lstm's cell. */
#define RONDO_RECURRENT_ACTIVATIONS 3
enum { RONDO_RECURRENT_KIND, RONDO_RECURRENT_ALPHA, RONDO_RECURRENT_BETA, RONDO_RECURRENT_ACTIVATION_SIZES };

typedef enum rondo_cell_kind { RONDO_CELL_RNN, RONDO_CELL_GRU, RONDO_CELL_LSTM } rondo_cell_kind;

/* The family of the rows. gradient: NULL for general rows. */
typedef struct rondo_recurrent_family {
  rondo_cell_kind kind;
  size_t gates;
  const rondo_operator *gradient;
} rondo_recurrent_family;

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_recurrent_shape {
  size_t steps, batch, hidden, gates;
  size_t rows, units;  /* of a block: sequences of the batch, and elements of their states */
  size_t first, count; /* the steps of this launch, in the order in which they are computed */
  uint32_t kind, is_reversed, is_relu, wide_lengths;
  uint32_t is_packed, is_transposed; /* the weights: as gemm_packed.h says; [h, g h] */
  uint32_t row_teams, parts;         /* of the warps of a CUDA block (recurrent.cu) */
} rondo_recurrent_shape;

#define RONDO_RECURRENT_MAX_GATES 4
#define RONDO_RECURRENT_CUDA_ROWS 4 /* of a block of general rows: ROWS in recurrent_general.cu */

/* The step that is computed as step `number`. */
static inline size_t rondo_recurrent_step(const rondo_recurrent_shape *shape, size_t number) {
  return shape->is_reversed != 0 ? shape->steps - 1 - number : number;
}

/* Whether a sequence has the step. lengths: NULL: all have all. */
static inline bool rondo_recurrent_has_step(const rondo_recurrent_shape *shape, const void *lengths, size_t sequence,
                                            size_t step) {
  return lengths == NULL || (int64_t)step < rondo_index_at(lengths, shape->wide_lengths, sequence);
}

/* The shape of an operation by its values of gates and of lengths, which may be omitted. */
rondo_recurrent_shape rondo_recurrent_shape_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                               uint32_t gates_value, uint32_t lengths_value);

/* Checks the inputs of a row, and gives the shapes of y and of the states. */
RONDO_MUST_USE rondo_status rondo_recurrent_infer(const rondo_program *program, const rondo_operation *operation,
                                                  rondo_shape *out_all, rondo_shape *out_state);

#endif
