/* SPDX-License-Identifier: MIT
 * A copy of a program in which patterns of operators are replaced (operator_patterns.h). The caller's program is not
 * changed. The search is repeated, because a replacement may belong to a further pattern: a bias that was joined to a
 * product, and then the activation behind it. Patterns that rewrite whole programs come last.
 *
 * Operators keep the numbers that they have in the caller's program (rondo_operation.number), for messages. Programs
 * with an optimizer and data-parallel ones are left as they are: their ranks have to stay the same.
 */
#ifndef RONDO_TENSOR_COMPILE_REWRITE_REWRITTEN_PROGRAM_H
#define RONDO_TENSOR_COMPILE_REWRITE_REWRITTEN_PROGRAM_H

#include "tensor/compile/rewrite/operator_patterns.h"

/* How often each pattern was replaced. */
typedef struct rondo_pattern_counts {
  uint32_t of[RONDO_PATTERN_COUNT];
} rondo_pattern_counts;

/* *out is NULL if no pattern of the set is in the program; else the caller destroys it. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_program_rewrite(const rondo_program *program, rondo_pattern_set set,
                                                  rondo_pattern_target target, rondo_pattern_counts *out_counts,
                                                  rondo_program **out);

#endif
