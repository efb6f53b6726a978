/* SPDX-License-Identifier: MIT
 * What patterns (tensor/compile/rewrite/operator_patterns.h) use to look at a program from a value backwards. What is
 * taken becomes a member of the match. A search that may fail and be tried in another way works on a copy of the match.
 * Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_PATTERNS_PATTERN_FINDER_H
#define RONDO_TENSOR_OPERATORS_PATTERNS_PATTERN_FINDER_H

#include "tensor/compile/rewrite/operator_patterns.h"
#include "tensor/operators/common/operator_tools.h"

typedef struct rondo_pattern_finder {
  const rondo_pattern_search *search;
  rondo_pattern_match *match;
} rondo_pattern_finder;

static inline const rondo_shape *rondo_find_shape(const rondo_pattern_finder *f, uint32_t value) {
  return rondo_program_shape(f->search->program, value);
}

static inline const rondo_operation *rondo_find_root(const rondo_pattern_finder *f) {
  return &f->search->program->operations.items[f->match->root];
}

/* The operation that computes the value; NULL: none does, as it is an input, state, cell or constant. */
const rondo_operation *rondo_find_maker(const rondo_pattern_finder *f, uint32_t value);

/* Makes an operation a member. */
void rondo_take_operation(const rondo_pattern_finder *f, const rondo_operation *operation);

/* The same as rondo_find_maker if it is of this row, and else NULL; rondo_take also makes it a member. */
const rondo_operation *rondo_find_made_by(const rondo_pattern_finder *f, uint32_t value, const rondo_operator *row);
const rondo_operation *rondo_take(const rondo_pattern_finder *f, uint32_t value, const rondo_operator *row);

/* The tag of a value that may be RONDO_NO_VALUE. */
static inline rondo_value rondo_optional_tag(const rondo_program *program, uint32_t value) {
  return value == RONDO_NO_VALUE ? (rondo_value){0} : rondo_program_tag(program, value);
}

/* Whether the value is this number. */
bool rondo_is_number(const rondo_pattern_finder *f, uint32_t value, double number);

/* Whether a product of numbers in the program is b, apart from their rounding to the type of the root. */
bool rondo_is_near(const rondo_pattern_finder *f, double a, double b);

/* value = slope base + offset. Takes scale, add_constant, neg, and add, sub, mul and div with one number, as long as
 * nothing else reads what they compute. The shape stays the same. */
typedef struct rondo_affine {
  uint32_t base;
  double slope, offset;
} rondo_affine;
rondo_affine rondo_take_affine(const rondo_pattern_finder *f, uint32_t value);

/* value = number times the product of `count` values of its shape. Takes products, squares, and powers of 2 and 3 in
 * the same way. `value` itself may have any readers. */
#define RONDO_MOST_FACTORS 6
typedef struct rondo_factors {
  double number;
  uint32_t values[RONDO_MOST_FACTORS], count; /* more than fit: RONDO_MOST_FACTORS + 1 */
} rondo_factors;
rondo_factors rondo_take_factors(const rondo_pattern_finder *f, uint32_t value);

/* Whether the value has the elements of the last `count` dimensions of a shape: these, after ones. */
bool rondo_is_of_last(const rondo_shape *value, const rondo_shape *shape, size_t count);

#endif
