/* SPDX-License-Identifier: MIT
 * A batch normalization with given statistics as a factor and an offset of each channel. Threads: any, for different
 * programs.
 */
#ifndef RONDO_TENSOR_OPERATORS_PATTERNS_PATTERN_BATCH_NORM_H
#define RONDO_TENSOR_OPERATORS_PATTERNS_PATTERN_BATCH_NORM_H

#include "tensor/program/program_internal.h"

/* Values of a program, of one number for each channel. RONDO_NO_VALUE: no bias, scale or shift. */
typedef struct rondo_norm_values {
  uint32_t bias, scale, shift, mean, variance;
  float epsilon;
} rondo_norm_values;

/* Adds factor = scale / sqrt(variance + epsilon) and offset = (bias - mean) factor + shift. They are computed in each
 * run, because states may be written between runs. */
RONDO_MUST_USE rondo_status rondo_add_norm_factors(rondo_program *program, const rondo_norm_values *of,
                                                   rondo_value *out_factor, rondo_value *out_offset);

#endif
