/* SPDX-License-Identifier: MIT
 * Learning rates by the step, told to the row learning_rate.
 */
#ifndef RONDO_TENSOR_PROGRAM_LEARNING_RATE_H
#define RONDO_TENSOR_PROGRAM_LEARNING_RATE_H

#include "tensor/program/operator.h"

/* Checked, with defaults; `call` starts the messages. Errors as rondo_rate_at. */
RONDO_MUST_USE rondo_status rondo_rate_read(const rondo_rate_options *options, const char *call,
                                            rondo_rate_options *out);

/* For the row learning_rate, whose input is the I32 that counts updates. */
rondo_attributes rondo_rate_attributes(const rondo_rate_options *options);

#endif
