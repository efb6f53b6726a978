/* SPDX-License-Identifier: MIT
 * Layer normalization and root mean square normalization that are spelled out: c / sqrt(mean(c^2) + epsilon), where c
 * is x - mean(x) or x, then times a scale and plus a shift. The quotient may also be a product with rsqrt, with the
 * reciprocal of the root or with the power -1/2. Threads: any.
 */
#include "tensor/operators/patterns/pattern_finder.h"
#include "tensor/operators/reduction/reduction.h"

enum { X, SCALE, SHIFT }; /* values */
enum { DIMENSIONS };      /* sizes: how many are normalised, the last ones */
enum { EPSILON };         /* numbers */

/* Means ------------------------------------------------------------------------------------------------------------ */

/* Takes the mean of x over its last dimensions, which stay as ones. */
static bool take_mean(const rondo_pattern_finder *f, uint32_t value, uint32_t *out_x, size_t *out_count) {
  const rondo_shape *result = rondo_find_shape(f, value);
  const rondo_operation *view = rondo_take(f, value, &rondo_operator_reshape);
  const rondo_operation *mean = rondo_take(f, view == NULL ? value : view->inputs[0], &rondo_operator_mean);
  if (mean == NULL) return false;
  const rondo_attributes *attributes = &mean->attributes;
  const rondo_shape *x = rondo_find_shape(f, *out_x = mean->inputs[0]);
  *out_count = attributes->flags[RONDO_REDUCE_ALL] ? x->rank : attributes->size_count;
  if (*out_count == 0 || result->rank != x->rank) return false;
  for (uint32_t i = 0; i < attributes->size_count; i++)
    if (attributes->sizes[i] < x->rank - *out_count) return false;
  for (uint32_t i = 0; i < x->rank; i++)
    if (result->dims[i] != (i < x->rank - *out_count ? x->dims[i] : 1)) return false;
  return true;
}

/* The core --------------------------------------------------------------------------------------------------------- */

/* Takes x - mean(x). */
static bool take_distance(const rondo_pattern_finder *f, uint32_t value, uint32_t *out_x, size_t *out_count) {
  const rondo_operation *difference = rondo_take(f, value, &rondo_operator_sub);
  uint32_t of_mean;
  if (difference == NULL || !take_mean(f, difference->inputs[1], &of_mean, out_count)) return false;
  *out_x = difference->inputs[0];
  return of_mean == *out_x;
}

/* Takes the square of a value. */
static bool take_square(const rondo_pattern_finder *f, uint32_t value, uint32_t *out) {
  const rondo_operation *square = rondo_take(f, value, &rondo_operator_square);
  if (square == NULL) square = rondo_take(f, value, &rondo_operator_pow);
  if (square == NULL) square = rondo_take(f, value, &rondo_operator_mul);
  if (square == NULL) return false;
  *out = square->inputs[0];
  if (square->row == &rondo_operator_pow) return rondo_is_number(f, square->inputs[1], 2);
  return square->row != &rondo_operator_mul || square->inputs[1] == *out;
}

/* Takes a root, or the reciprocal of one. */
static bool take_root(const rondo_pattern_finder *f, uint32_t value, bool is_reciprocal, uint32_t *out) {
  const rondo_operation *root = NULL;
  if (is_reciprocal) {
    root = rondo_take(f, value, &rondo_operator_rsqrt);
    if (root == NULL) root = rondo_take(f, value, &rondo_operator_pow);
    if (root != NULL) {
      *out = root->inputs[0];
      return root->row == &rondo_operator_rsqrt || rondo_is_number(f, root->inputs[1], -0.5);
    }
    const rondo_operation *quotient = rondo_take(f, value, &rondo_operator_reciprocal);
    if (quotient == NULL) {
      quotient = rondo_take(f, value, &rondo_operator_div);
      if (quotient == NULL || !rondo_is_number(f, quotient->inputs[0], 1)) return false;
      value = quotient->inputs[1];
    } else {
      value = quotient->inputs[0];
    }
  }
  root = rondo_take(f, value, &rondo_operator_sqrt);
  if (root == NULL) return false;
  *out = root->inputs[0];
  return true;
}

/* Takes the rest, of c and what it is divided by, or multiplied with. */
static bool take_parts(const rondo_pattern_finder *f, uint32_t c, uint32_t deviation, bool is_reciprocal,
                       bool is_centred) {
  rondo_pattern_match *match = f->match;
  uint32_t sum, squares, squared, other;
  size_t count;
  if (!take_root(f, deviation, is_reciprocal, &sum)) return false;
  const rondo_affine variance = rondo_take_affine(f, sum);
  const float epsilon = (float)variance.offset;
  if (variance.slope != 1 || !(epsilon > 0) || !(epsilon < 1)) return false;
  if (!take_mean(f, variance.base, &squares, &match->sizes[DIMENSIONS])) return false;
  if (!take_square(f, squares, &squared)) return false;
  match->numbers[EPSILON] = epsilon;
  match->values[X] = c;
  if (!is_centred) return squared == c;
  if (!take_distance(f, c, &match->values[X], &count) || count != match->sizes[DIMENSIONS]) return false;
  if (squared == c) return true;
  return take_distance(f, squared, &other, &count) && other == match->values[X] && count == match->sizes[DIMENSIONS];
}

static bool take_core(const rondo_pattern_finder *f, uint32_t value, bool is_centred) {
  const rondo_pattern_match before = *f->match;
  const rondo_operation *quotient = rondo_take(f, value, &rondo_operator_div);
  if (quotient != NULL) return take_parts(f, quotient->inputs[0], quotient->inputs[1], false, is_centred);
  const rondo_operation *product = rondo_find_made_by(f, value, &rondo_operator_mul);
  for (uint32_t k = 0; k < 2 && product != NULL; k++) {
    *f->match = before;
    (void)rondo_take(f, value, &rondo_operator_mul);
    if (take_parts(f, product->inputs[k], product->inputs[1 - k], true, is_centred)) return true;
  }
  return false;
}

/* Parameters ------------------------------------------------------------------------------------------------------- */

/* Sets the scale or shift if the value is one. */
static bool set_parameter(const rondo_pattern_finder *f, int which, uint32_t value) {
  f->match->values[which] = value;
  return rondo_is_of_last(rondo_find_shape(f, value), rondo_find_shape(f, f->match->values[X]),
                          f->match->sizes[DIMENSIONS]);
}

/* Takes the core times a scale, or the core. */
static bool take_scaled(const rondo_pattern_finder *f, uint32_t value, bool is_centred) {
  const rondo_pattern_match before = *f->match;
  const rondo_operation *product = rondo_find_made_by(f, value, &rondo_operator_mul);
  for (uint32_t k = 0; k < 2 && product != NULL; k++) {
    *f->match = before;
    (void)rondo_take(f, value, &rondo_operator_mul);
    if (take_core(f, product->inputs[k], is_centred) && set_parameter(f, SCALE, product->inputs[1 - k])) return true;
  }
  *f->match = before;
  return take_core(f, value, is_centred);
}

static bool has_shape_of_x(const rondo_pattern_finder *f) {
  return rondo_shape_same(rondo_find_shape(f, rondo_find_root(f)->results[0]),
                          rondo_find_shape(f, f->match->values[X]));
}

static bool find_layer_norm(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_pattern_match before = *match;
  const rondo_operation *root = rondo_find_root(&f);
  for (uint32_t k = 0; k < 2 && root->row == &rondo_operator_add; k++) {
    *match = before;
    if (take_scaled(&f, root->inputs[k], true) && set_parameter(&f, SHIFT, root->inputs[1 - k]))
      return has_shape_of_x(&f);
  }
  *match = before;
  return take_scaled(&f, root->results[0], true) && has_shape_of_x(&f);
}

static bool find_rms_norm(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *root = rondo_find_root(&f);
  if (root->row != &rondo_operator_mul && root->row != &rondo_operator_div) return false;
  return take_scaled(&f, root->results[0], false) && has_shape_of_x(&f);
}

/* Replacing -------------------------------------------------------------------------------------------------------- */

/* The scale or shift in the shape of the normalised dimensions. *out is zero if the pattern has no such parameter. */
static rondo_status add_parameter(rondo_program *program, const rondo_pattern_match *match, int which,
                                  rondo_value *out) {
  const size_t count = match->sizes[DIMENSIONS];
  *out = (rondo_value){0};
  if (match->values[which] == RONDO_NO_VALUE) return RONDO_OK;
  const rondo_shape x = *rondo_program_shape(program, match->values[X]);
  return rondo_op_reshape(program, rondo_program_tag(program, match->values[which]), x.dims + (x.rank - count), count,
                          out);
}

static rondo_status add_layer_norm(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  rondo_value scale, shift;
  RONDO_TRY(add_parameter(program, match, SCALE, &scale));
  RONDO_TRY(add_parameter(program, match, SHIFT, &shift));
  return rondo_op_layer_norm(program, rondo_program_tag(program, match->values[X]), scale, shift,
                             match->sizes[DIMENSIONS], match->numbers[EPSILON], out);
}

static rondo_status add_rms_norm(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  rondo_value scale;
  RONDO_TRY(add_parameter(program, match, SCALE, &scale));
  return rondo_op_rms_norm(program, rondo_program_tag(program, match->values[X]), scale, match->sizes[DIMENSIONS],
                           match->numbers[EPSILON], out);
}

const rondo_pattern rondo_pattern_layer_norm = {
    .name = "layer_norm", .find = find_layer_norm, .replace = add_layer_norm};
const rondo_pattern rondo_pattern_rms_norm = {.name = "rms_norm", .find = find_rms_norm, .replace = add_rms_norm};
