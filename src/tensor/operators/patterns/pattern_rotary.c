/* SPDX-License-Identifier: MIT
 * Rotary position embedding that is spelled out, of x [b, n, t, d] in F32, whose pairs are halves apart. Either the
 * halves are rotated and concatenated:
 *
 *   concat(cos x1 - sin x2, sin x1 + cos x2)
 *
 * with cosines and sines of [b or 1, 1, t, d / 2]. Or the whole is multiplied, as Llama does it:
 *
 *   x cos(a) + concat(-x2, x1) sin(a), with a = concat(f, f) of [b or 1, 1, t, d]
 *
 * where both halves of the angles must be seen to be the same. Threads: any.
 */
#include "tensor/operators/attention/attention.h"
#include "tensor/operators/patterns/pattern_finder.h"

enum { X, COS, SIN, ANGLES = COS }; /* values; ANGLES: f */
enum { BATCHES, ROWS, OF_ANGLES };  /* sizes */
enum { SCALE };                     /* numbers; of cosines and sines of f */

/* Halves ----------------------------------------------------------------------------------------------------------- */

/* Whether the value is the half `which` of x along the last dimension; takes it. */
static bool take_half(const rondo_pattern_finder *f, uint32_t value, uint32_t which, uint32_t x) {
  const rondo_operation *maker = rondo_find_maker(f, value);
  if (maker == NULL || maker->inputs[0] != x) return false;
  const rondo_shape *whole = rondo_find_shape(f, x), *part = rondo_find_shape(f, value);
  const uint32_t last = whole->rank - 1;
  if (part->rank != whole->rank || 2 * part->dims[last] != whole->dims[last]) return false;
  if (!rondo_shape_same_except(part, whole, last)) return false;
  if (maker->row == &rondo_operator_split_2) {
    rondo_take_operation(f, maker);
    return maker->results[which] == value;
  }
  const size_t *starts = maker->attributes.sizes, *steps = starts + 2 * RONDO_MAX_DIMENSIONS;
  return rondo_take(f, value, &rondo_operator_slice) != NULL && steps[last] == 1 &&
         starts[last] == which * part->dims[last];
}

/* Takes a concatenation of two values along the last dimension. */
static const rondo_operation *take_concat(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *concat = rondo_take(f, value, &rondo_operator_concat);
  if (concat == NULL || concat->inputs[1] == RONDO_NO_VALUE || concat->inputs[2] != RONDO_NO_VALUE) return NULL;
  return concat->attributes.sizes[0] + 1 == rondo_find_shape(f, value)->rank ? concat : NULL;
}

/* Takes table * half, in either order; sets the table, or requires the one that is set. */
static bool take_product(const rondo_pattern_finder *f, uint32_t value, int table, uint32_t which) {
  const rondo_operation *product = rondo_take(f, value, &rondo_operator_mul);
  uint32_t *values = f->match->values;
  for (uint32_t k = 0; k < 2 && product != NULL; k++) {
    const uint32_t other = product->inputs[1 - k];
    if (values[table] != RONDO_NO_VALUE && values[table] != other) continue;
    if (!take_half(f, product->inputs[k], which, values[X])) continue;
    values[table] = other;
    return true;
  }
  return false;
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static bool is_rotated(const rondo_shape *x) {
  return x->rank == 4 && x->type == RONDO_F32 && x->dims[3] % 2 == 0 && x->dims[3] <= RONDO_HEAD_MAX;
}

/* Cosines or sines are [b or 1, 1, t, size], without leading ones. Sets batches and rows. */
static bool is_table(const rondo_pattern_finder *f, uint32_t value, size_t size) {
  const rondo_shape *table = rondo_find_shape(f, value), *x = rondo_find_shape(f, f->match->values[X]);
  size_t dims[4] = {1, 1, 1, 1};
  if (table->rank < 2 || table->rank > 4) return false;
  for (uint32_t i = 0; i < table->rank; i++) dims[4 - table->rank + i] = table->dims[i];
  f->match->sizes[BATCHES] = dims[0];
  f->match->sizes[ROWS] = dims[2];
  return (dims[0] == 1 || dims[0] == x->dims[0]) && dims[1] == 1 && dims[2] == x->dims[2] && dims[3] == size;
}

/* Forms ------------------------------------------------------------------------------------------------------------ */

/* The value that a half of the root's first term is taken from. */
static uint32_t find_whole(const rondo_pattern_finder *f, uint32_t product) {
  const rondo_operation *made = rondo_find_made_by(f, product, &rondo_operator_mul);
  for (uint32_t k = 0; k < 2 && made != NULL; k++) {
    const rondo_operation *half = rondo_find_maker(f, made->inputs[k]);
    if (half != NULL && (half->row == &rondo_operator_split_2 || half->row == &rondo_operator_slice) &&
        is_rotated(rondo_find_shape(f, half->inputs[0])))
      return half->inputs[0];
  }
  return RONDO_NO_VALUE;
}

static bool find_halves(const rondo_pattern_finder *f) {
  rondo_pattern_match *match = f->match;
  const rondo_operation *root = take_concat(f, rondo_find_root(f)->results[0]);
  if (root == NULL) return false;
  const rondo_operation *first = rondo_take(f, root->inputs[0], &rondo_operator_sub);
  const rondo_operation *second = rondo_take(f, root->inputs[1], &rondo_operator_add);
  if (first == NULL || second == NULL) return false;
  match->values[X] = find_whole(f, first->inputs[0]);
  if (match->values[X] == RONDO_NO_VALUE) return false;
  if (!take_product(f, first->inputs[0], COS, 0) || !take_product(f, first->inputs[1], SIN, 1)) return false;
  const rondo_pattern_match before = *match;
  bool fits = take_product(f, second->inputs[0], SIN, 0) && take_product(f, second->inputs[1], COS, 1);
  if (!fits) {
    *match = before;
    fits = take_product(f, second->inputs[1], SIN, 0) && take_product(f, second->inputs[0], COS, 1);
  }
  const size_t half = rondo_find_shape(f, match->values[X])->dims[3] / 2;
  return fits && is_table(f, match->values[COS], half) && is_table(f, match->values[SIN], half) &&
         rondo_shape_same(rondo_find_shape(f, match->values[COS]), rondo_find_shape(f, match->values[SIN]));
}

/* Whether a table is scale * row(concat(f, f)), perhaps reshaped, but not into rows of another length, whose halves
 * differ. Other heads and layers use it, too, so nothing is taken. */
static bool is_of_doubled(const rondo_pattern_finder *f, uint32_t table, const rondo_operator *row,
                          uint32_t *out_angles, double *out_scale) {
  rondo_pattern_match unused = *f->match;
  const rondo_pattern_finder looks = {f->search, &unused};
  const rondo_operation *view = rondo_find_made_by(f, table, &rondo_operator_reshape);
  const rondo_factors scaled = rondo_take_factors(&looks, view == NULL ? table : view->inputs[0]);
  const rondo_operation *made = scaled.count == 1 ? rondo_find_made_by(f, scaled.values[0], row) : NULL;
  const rondo_operation *doubled = made == NULL ? NULL : take_concat(&looks, made->inputs[0]);
  if (doubled == NULL || doubled->inputs[0] != doubled->inputs[1]) return false;
  const rondo_shape *angles = rondo_find_shape(f, doubled->results[0]);
  if (rondo_shape_last(angles) != rondo_shape_last(rondo_find_shape(f, table))) return false;
  *out_angles = doubled->inputs[0];
  *out_scale = scaled.number;
  return true;
}

/* Takes concat(-x2, x1). */
static bool take_rotated_half(const rondo_pattern_finder *f, uint32_t value, uint32_t x) {
  const rondo_operation *concat = take_concat(f, value);
  if (concat == NULL) return false;
  const rondo_affine second = rondo_take_affine(f, concat->inputs[0]);
  return second.slope == -1 && second.offset == 0 && take_half(f, second.base, 1, x) &&
         take_half(f, concat->inputs[1], 0, x);
}

/* Takes x cos(a) and concat(-x2, x1) sin(a), of which the inputs of two products are x and c, r and s. */
static bool take_whole(const rondo_pattern_finder *f, uint32_t x, uint32_t c, uint32_t r, uint32_t s) {
  rondo_pattern_match *match = f->match;
  uint32_t other;
  double scales[2];
  if (!is_rotated(rondo_find_shape(f, x))) return false;
  match->values[X] = x;
  match->sizes[OF_ANGLES] = 1;
  if (!is_table(f, c, rondo_find_shape(f, x)->dims[3])) return false;
  if (!rondo_shape_same(rondo_find_shape(f, c), rondo_find_shape(f, s))) return false;
  if (!is_of_doubled(f, c, &rondo_operator_cos, &match->values[ANGLES], &scales[0])) return false;
  if (!is_of_doubled(f, s, &rondo_operator_sin, &other, &scales[1])) return false;
  match->numbers[SCALE] = (float)scales[0];
  return other == match->values[ANGLES] && scales[0] == scales[1] && take_rotated_half(f, r, x);
}

static bool find_whole_form(const rondo_pattern_finder *f) {
  const rondo_pattern_match before = *f->match;
  const rondo_operation *root = rondo_find_root(f);
  for (uint32_t k = 0; k < 8 && root->row == &rondo_operator_add; k++) {
    *f->match = before;
    const rondo_operation *of_x = rondo_take(f, root->inputs[k & 1], &rondo_operator_mul);
    const rondo_operation *of_half = rondo_take(f, root->inputs[1 - (k & 1)], &rondo_operator_mul);
    if (of_x == NULL || of_half == NULL) return false;
    const uint32_t x = k >> 1 & 1, r = k >> 2 & 1;
    if (take_whole(f, of_x->inputs[x], of_x->inputs[1 - x], of_half->inputs[r], of_half->inputs[1 - r])) return true;
  }
  return false;
}

static bool find_rotary(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  return rondo_find_root(&f)->row == &rondo_operator_concat ? find_halves(&f) : find_whole_form(&f);
}

/* Replacing -------------------------------------------------------------------------------------------------------- */

/* Cosines, or sines, as [b or 1, t, d / 2]. */
static rondo_status add_table(rondo_program *program, const rondo_pattern_match *match, bool is_sine,
                              rondo_value *out) {
  const size_t half = rondo_program_shape(program, match->values[X])->dims[3] / 2;
  const size_t dims[] = {match->sizes[BATCHES], match->sizes[ROWS], half};
  *out = rondo_program_tag(program, match->values[is_sine && match->sizes[OF_ANGLES] == 0 ? SIN : COS]);
  if (match->sizes[OF_ANGLES] != 0) {
    RONDO_TRY(is_sine ? rondo_op_sin(program, *out, out) : rondo_op_cos(program, *out, out));
    if (match->numbers[SCALE] != 1) RONDO_TRY(rondo_op_scale(program, *out, match->numbers[SCALE], out));
  }
  return rondo_op_reshape(program, *out, dims, 3, out);
}

static rondo_status add_rotary(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const size_t size = rondo_program_shape(program, match->values[X])->dims[3];
  const rondo_attributes attributes = {.sizes = {size}, .size_count = 3};
  rondo_value tables[2], angles;
  RONDO_TRY(add_table(program, match, false, &tables[0]));
  RONDO_TRY(add_table(program, match, true, &tables[1]));
  RONDO_TRY(rondo_op_concat(program, tables, 2, 2, &angles));
  const rondo_value inputs[] = {rondo_program_tag(program, match->values[X]), angles};
  return rondo_program_apply(program, &rondo_operator_rotary, inputs, 2, &attributes, out);
}

const rondo_pattern rondo_pattern_rotary = {.name = "rotary", .find = find_rotary, .replace = add_rotary};
