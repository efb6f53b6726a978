/* SPDX-License-Identifier: MIT
 * Looking at a program backwards.
 */
#include "tensor/operators/patterns/pattern_finder.h"

#include <math.h>
#include <string.h>

#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/operators/shape/zeros.h"

const rondo_operation *rondo_find_maker(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_program_value *of = &f->search->program->values.items[value];
  return of->kind == RONDO_VALUE_RESULT ? &f->search->program->operations.items[of->operation] : NULL;
}

const rondo_operation *rondo_find_made_by(const rondo_pattern_finder *f, uint32_t value, const rondo_operator *row) {
  const rondo_operation *maker = rondo_find_maker(f, value);
  return maker != NULL && maker->row == row && maker->results[0] == value ? maker : NULL;
}

void rondo_take_operation(const rondo_pattern_finder *f, const rondo_operation *operation) {
  rondo_pattern_match *match = f->match;
  match->is_full = match->is_full || match->member_count == RONDO_PATTERN_MEMBERS;
  if (match->is_full) return;
  match->members[match->member_count++] = (uint32_t)(operation - f->search->program->operations.items);
}

const rondo_operation *rondo_take(const rondo_pattern_finder *f, uint32_t value, const rondo_operator *row) {
  const rondo_operation *made = rondo_find_made_by(f, value, row);
  if (made != NULL) rondo_take_operation(f, made);
  return made;
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* How far a number of the type, which was rounded when the program was written, may be from the exact one. */
static double rounding_of(rondo_type type) { return type == RONDO_F16 ? 1e-3 : type == RONDO_BF16 ? 8e-3 : 1e-6; }

bool rondo_is_near(const rondo_pattern_finder *f, double a, double b) {
  const rondo_type type = rondo_find_shape(f, rondo_find_root(f)->results[0])->type;
  return fabs(a - b) <= rounding_of(type) * fabs(b);
}

bool rondo_is_number(const rondo_pattern_finder *f, uint32_t value, double number) {
  double found;
  return rondo_program_number(f->search->program, value, &found) && found == number;
}

/* One operation as slope input + offset; false: it is not one. */
static bool read_affine(const rondo_pattern_finder *f, const rondo_operation *operation, rondo_affine *out) {
  const rondo_operator *row = operation->row;
  const bool has_numbers =
      row == &rondo_operator_scale || row == &rondo_operator_add_constant || row == &rondo_operator_neg;
  const bool is_sum = row == &rondo_operator_add || row == &rondo_operator_sub, is_product = row == &rondo_operator_mul;
  double number;
  if (has_numbers) {
    const float *numbers = operation->attributes.numbers;
    *out =
        (rondo_affine){operation->inputs[0], (double)numbers[RONDO_AFFINE_SLOPE], (double)numbers[RONDO_AFFINE_OFFSET]};
    return true;
  }
  if (!is_sum && !is_product && row != &rondo_operator_div) return false;
  const bool is_second = rondo_program_number(f->search->program, operation->inputs[1], &number);
  if (!is_second && !rondo_program_number(f->search->program, operation->inputs[0], &number)) return false;
  *out = (rondo_affine){operation->inputs[is_second ? 0 : 1], 1, 0};
  if (is_product) out->slope = number;
  if (row == &rondo_operator_add) out->offset = number;
  if (row == &rondo_operator_sub) {
    out->slope = is_second ? 1 : -1;
    out->offset = is_second ? -number : number;
  }
  if (row != &rondo_operator_div) return true;
  out->slope = 1 / number;
  return is_second && number != 0;
}

/* Whether the match may go on into what computes the value. */
static bool is_inner(const rondo_pattern_finder *f, uint32_t value) { return f->search->readers[value] == 1; }

rondo_affine rondo_take_affine(const rondo_pattern_finder *f, uint32_t value) {
  rondo_affine all = {value, 1, 0}, step;
  for (;;) {
    const rondo_operation *maker = rondo_find_maker(f, all.base);
    if (maker == NULL || !is_inner(f, all.base) || !read_affine(f, maker, &step)) return all;
    if (!rondo_shape_same(rondo_find_shape(f, step.base), rondo_find_shape(f, all.base))) return all;
    rondo_take_operation(f, maker);
    all = (rondo_affine){step.base, all.slope * step.slope, all.slope * step.offset + all.offset};
  }
}

/* Factors ---------------------------------------------------------------------------------------------------------- */

static void multiply(rondo_factors *all, uint32_t value, uint32_t times) {
  for (uint32_t i = 0; i < times; i++) {
    if (all->count < RONDO_MOST_FACTORS) all->values[all->count] = value;
    all->count += all->count <= RONDO_MOST_FACTORS;
  }
}

/* How often the operation multiplies its first input with itself; 0: it does not. */
static uint32_t power_of(const rondo_pattern_finder *f, const rondo_operation *operation) {
  if (operation->row == &rondo_operator_square) return 2;
  if (operation->row != &rondo_operator_pow) return 0;
  return rondo_is_number(f, operation->inputs[1], 2) ? 2 : rondo_is_number(f, operation->inputs[1], 3) ? 3 : 0;
}

/* Replaces factor `at` by the factors of what computes it, if that is a product. */
static bool open_factor(const rondo_pattern_finder *f, rondo_factors *all, uint32_t at) {
  const uint32_t value = all->values[at];
  const rondo_operation *maker = rondo_find_maker(f, value);
  rondo_affine step;
  if (maker == NULL) return false;
  const uint32_t power = power_of(f, maker);
  const bool is_scaled = read_affine(f, maker, &step) && step.offset == 0;
  if (power == 0 && !is_scaled && maker->row != &rondo_operator_mul) return false;
  const uint32_t first = is_scaled ? step.base : maker->inputs[0], second = maker->inputs[1];
  const bool has_second = power == 0 && !is_scaled;
  const rondo_shape *shape = rondo_find_shape(f, value);
  if (!rondo_shape_same(rondo_find_shape(f, first), shape)) return false;
  if (has_second && !rondo_shape_same(rondo_find_shape(f, second), shape)) return false;
  rondo_take_operation(f, maker);
  if (is_scaled) all->number *= step.slope;
  all->values[at] = first;
  multiply(all, first, power > 0 ? power - 1 : 0);
  if (has_second) multiply(all, second, 1);
  return true;
}

rondo_factors rondo_take_factors(const rondo_pattern_finder *f, uint32_t value) {
  rondo_factors all = {.number = 1, .values = {value}, .count = 1};
  if (!open_factor(f, &all, 0)) return all;
  for (uint32_t at = 0; at < all.count && all.count <= RONDO_MOST_FACTORS;)
    at += !is_inner(f, all.values[at]) || !open_factor(f, &all, at);
  return all;
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

bool rondo_is_of_last(const rondo_shape *value, const rondo_shape *shape, size_t count) {
  const uint32_t rank = value->rank, ones = rank < count ? 0 : rank - (uint32_t)count;
  if (rank < count || rank > shape->rank) return false;
  for (uint32_t i = 0; i < ones; i++)
    if (value->dims[i] != 1) return false;
  return memcmp(value->dims + ones, shape->dims + (shape->rank - count), count * sizeof *value->dims) == 0;
}
