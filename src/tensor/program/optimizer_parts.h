/* SPDX-License-Identifier: MIT
 * What optimizers (optimizer.c) and the rows that they add (operators/optimizer) share: the parts of the gradients'
 * norm, and the attributes of the row learning_rate.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPTIMIZER_PARTS_H
#define RONDO_TENSOR_PROGRAM_OPTIMIZER_PARTS_H

#include "tensor/program/operator.h"

#define RONDO_NORM_PARTS 64       /* sums of squares; NORM_PARTS in gradient_control.cu */
#define RONDO_SQUARED_GRADIENTS 7 /* gradients of one gradient_squares operator */

/* Reads the options, checks them and fills in defaults; `call` starts the messages. Errors as rondo_rate_at. */
RONDO_MUST_USE rondo_status rondo_rate_read(const rondo_rate_options *options, const char *call,
                                            rondo_rate_options *out);

/* For the row learning_rate, whose input is the I32 state that counts updates. */
rondo_attributes rondo_rate_attributes(const rondo_rate_options *options);

#endif
