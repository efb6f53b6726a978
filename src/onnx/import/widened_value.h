/* SPDX-License-Identifier: MIT
 * Values of types that programs lack, which are computed in wider ones (onnx/format/widened_elements.h): what rounds a
 * result to the numbers that its type has, and what unsigned integers of 64 bits need, which are held as I64.
 *
 * All functions add operators to a program, whose last parameter is the result. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_WIDENED_VALUE_H
#define RONDO_ONNX_IMPORT_WIDENED_VALUE_H

#include <rondo/operators.h>

#include "onnx/format/widened_elements.h"

/* A result of the wider type becomes one of the type: integers keep their lower bits, floats are rounded and limited to
 * the largest number. A value of another type stays. */
RONDO_MUST_USE rondo_status rondo_onnx_fit_value(rondo_program *program, rondo_onnx_type type, rondo_value value,
                                                 rondo_value *out);

/* The same, but integers that do not fit become the least or the largest one. */
RONDO_MUST_USE rondo_status rondo_onnx_saturate_value(rondo_program *program, rondo_onnx_type type, rondo_value value,
                                                      rondo_value *out);

/* Of powers of two. */
typedef enum rondo_onnx_rounding_mode {
  RONDO_ONNX_TO_NEAREST,
  RONDO_ONNX_UP,
  RONDO_ONNX_DOWN
} rondo_onnx_rounding_mode;

/* How floats become small ones. */
typedef struct rondo_onnx_float_rounding {
  bool overflows; /* what is too large becomes NaN, or infinity where the type has it, and not the largest number */
  rondo_onnx_rounding_mode mode;
} rondo_onnx_float_rounding;

/* Casts a value of type `from`, as programs have it, to type `to`. */
RONDO_MUST_USE rondo_status rondo_onnx_cast_value(rondo_program *program, rondo_onnx_type from, rondo_onnx_type to,
                                                  rondo_value value, const rondo_onnx_float_rounding *rounding,
                                                  rondo_value *out);

/* Unsigned integers of 64 bits. Division by 0 gives what that of I64 gives. */
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_order(rondo_program *program, rondo_value value, rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_less(rondo_program *program, rondo_value a, rondo_value b,
                                                     rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_less_equal(rondo_program *program, rondo_value a, rondo_value b,
                                                           rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_greater(rondo_program *program, rondo_value a, rondo_value b,
                                                        rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_greater_equal(rondo_program *program, rondo_value a, rondo_value b,
                                                              rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_maximum(rondo_program *program, rondo_value a, rondo_value b,
                                                        rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_minimum(rondo_program *program, rondo_value a, rondo_value b,
                                                        rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_div(rondo_program *program, rondo_value a, rondo_value b,
                                                    rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_remainder(rondo_program *program, rondo_value a, rondo_value b,
                                                          rondo_value *out);
RONDO_MUST_USE rondo_status rondo_onnx_unsigned_shift_right(rondo_program *program, rondo_value a, rondo_value b,
                                                            rondo_value *out);

#endif
