/* SPDX-License-Identifier: MIT
 * What optimizers (optimizer.c) and the rows that they add (operators/optimizer) share: the parts of the gradients'
 * norm, updates of a part of a state, and the attributes of the row learning_rate.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPTIMIZER_PARTS_H
#define RONDO_TENSOR_PROGRAM_OPTIMIZER_PARTS_H

#include "tensor/program/operator.h"

#define RONDO_NORM_PARTS 64       /* sums of squares; NORM_PARTS in gradient_control.cu */
#define RONDO_SQUARED_GRADIENTS 7 /* gradients of one gradient_squares operator */

/* The sizes of an update's attributes: how many elements it updates (0: all, from the first on), and the first element
 * in the parameter, in the states that belong to it (its companions), and in the gradient. */
enum { RONDO_PART_ALL, RONDO_PART_PARAMETER, RONDO_PART_COMPANION, RONDO_PART_GRADIENT, RONDO_PART_SIZES };

/* What an optimizer updates by one operator: a trained state, or a part of it. */
typedef struct rondo_update_part {
  uint32_t state, gradient;
  uint32_t keys;   /* of a sparse gradient (sparse_gradient.h), plus one; 0: the gradient is a whole tensor */
  uint32_t bucket; /* whose flat states are the companions; RONDO_NO_VALUE: these have the shape of the state */
  size_t sizes[RONDO_PART_SIZES];
  size_t own_first,
      own_count; /* the elements of the part whose squares this rank sums; with RONDO_PART_ALL of 0: all */
} rondo_update_part;

/* Reads the options, checks them and fills in defaults; `call` starts the messages. Errors as rondo_rate_at. */
RONDO_MUST_USE rondo_status rondo_rate_read(const rondo_rate_options *options, const char *call,
                                            rondo_rate_options *out);

/* For the row learning_rate, whose input is the I32 state that counts updates. */
rondo_attributes rondo_rate_attributes(const rondo_rate_options *options);

#endif
