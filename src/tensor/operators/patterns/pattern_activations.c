/* SPDX-License-Identifier: MIT
 * Activations that are spelled out: gelu with erf and with tanh, and silu. Factors may be in any order, and constants
 * before or behind the others. Threads: any.
 */
#include "tensor/operators/patterns/pattern_finder.h"

enum { X };    /* values */
enum { FORM }; /* sizes: a rondo_gelu_form */

#define SQRT_HALF 0.70710678118654752
#define SQRT_2_OVER_PI 0.79788456080286536
#define CUBIC 0.044715

/* Gelu ------------------------------------------------------------------------------------------------------------- */

static bool is_cube(const rondo_factors *factors, uint32_t x) {
  return factors->count == 3 && factors->values[0] == x && factors->values[1] == x && factors->values[2] == x;
}

/* Takes x + 0.044715 x^3. */
static bool take_cubic_sum(const rondo_pattern_finder *f, uint32_t value, uint32_t x) {
  const rondo_operation *sum = rondo_take(f, value, &rondo_operator_add);
  for (uint32_t k = 0; k < 2 && sum != NULL; k++) {
    if (sum->inputs[k] != x) continue;
    const rondo_factors cube = rondo_take_factors(f, sum->inputs[1 - k]);
    return rondo_is_near(f, cube.number, CUBIC) && is_cube(&cube, x);
  }
  return false;
}

/* Takes 1 + 0.044715 x^2. */
static bool take_cubic_factor(const rondo_pattern_finder *f, uint32_t value, uint32_t x) {
  const rondo_affine of = rondo_take_affine(f, value);
  const rondo_factors square = rondo_take_factors(f, of.base);
  return rondo_is_near(f, of.offset, 1) && rondo_is_near(f, of.slope * square.number, CUBIC) && square.count == 2 &&
         square.values[0] == x && square.values[1] == x;
}

/* Takes sqrt(2 / pi) (x + 0.044715 x^3), or the same with x as a factor. */
static bool take_tanh_argument(const rondo_pattern_finder *f, uint32_t value, uint32_t x) {
  const rondo_factors all = rondo_take_factors(f, value);
  if (!rondo_is_near(f, all.number, SQRT_2_OVER_PI)) return false;
  if (all.count == 1) return take_cubic_sum(f, all.values[0], x);
  if (all.count != 2) return false;
  return all.values[0] == x   ? take_cubic_factor(f, all.values[1], x)
         : all.values[1] == x ? take_cubic_factor(f, all.values[0], x)
                              : false;
}

/* Takes (1 + erf(x / sqrt(2))) / 2 or (1 + tanh(..)) / 2, where the half is this number times what the value has. */
static bool take_gate(const rondo_pattern_finder *f, uint32_t value, uint32_t x, double number) {
  const rondo_affine gate = rondo_take_affine(f, value);
  if (!rondo_is_near(f, gate.slope * number, 0.5) || !rondo_is_near(f, gate.offset * number, 0.5)) return false;
  const rondo_operation *erf = rondo_take(f, gate.base, &rondo_operator_erf);
  f->match->sizes[FORM] = erf != NULL ? RONDO_GELU_ERF : RONDO_GELU_TANH;
  f->match->values[X] = x;
  if (erf != NULL) {
    const rondo_affine argument = rondo_take_affine(f, erf->inputs[0]);
    return argument.base == x && argument.offset == 0 && rondo_is_near(f, argument.slope, SQRT_HALF);
  }
  const rondo_operation *tanh = rondo_take(f, gate.base, &rondo_operator_tanh);
  return tanh != NULL && take_tanh_argument(f, tanh->inputs[0], x);
}

/* Whether the root can be a product; its factors are then x and another one. */
static bool take_two_factors(const rondo_pattern_finder *f, rondo_factors *out) {
  const rondo_operation *root = rondo_find_root(f);
  if (root->row != &rondo_operator_mul && root->row != &rondo_operator_scale && root->row != &rondo_operator_div)
    return false;
  *out = rondo_take_factors(f, root->results[0]);
  return out->count == 2;
}

static bool find_gelu(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  rondo_factors all;
  if (!take_two_factors(&f, &all)) return false;
  const rondo_pattern_match before = *match;
  if (take_gate(&f, all.values[1], all.values[0], all.number)) return true;
  *match = before;
  return take_gate(&f, all.values[0], all.values[1], all.number);
}

static rondo_status add_gelu(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  return rondo_op_gelu(program, rondo_program_tag(program, match->values[X]), (rondo_gelu_form)match->sizes[FORM], out);
}

/* Silu ------------------------------------------------------------------------------------------------------------- */

static bool find_silu(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  rondo_factors all;
  if (!take_two_factors(&f, &all) || all.number != 1) return false;
  for (uint32_t k = 0; k < 2; k++) {
    const rondo_operation *sigmoid = rondo_find_made_by(&f, all.values[k], &rondo_operator_sigmoid);
    if (sigmoid == NULL || sigmoid->inputs[0] != all.values[1 - k]) continue;
    (void)rondo_take(&f, all.values[k], &rondo_operator_sigmoid);
    match->values[X] = all.values[1 - k];
    return true;
  }
  return false;
}

static rondo_status add_silu(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  return rondo_op_silu(program, rondo_program_tag(program, match->values[X]), out);
}

const rondo_pattern rondo_pattern_gelu = {.name = "gelu", .find = find_gelu, .replace = add_gelu};
const rondo_pattern rondo_pattern_silu = {.name = "silu", .find = find_silu, .replace = add_silu};
