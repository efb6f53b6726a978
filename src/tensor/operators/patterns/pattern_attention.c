/* SPDX-License-Identifier: MIT
 * Attention that is spelled out: softmax(scale q k' + mask) v. The factor may be at q, k or the scores. The keys may be
 * transposed by a permute, which is then turned into one that is not, as matrices, or by the product. Keys and values
 * that an expand repeats for several heads are read as they are. A mask is added, or a select puts a number in place of
 * scores; then the mask is that number where it hides. Threads: any.
 */
#include <math.h>
#include <string.h>

#include "tensor/operators/attention/attention.h"
#include "tensor/operators/matmul/matmul_problem.h"
#include "tensor/operators/patterns/pattern_finder.h"
#include "tensor/operators/shape/zeros.h"

enum { Q, K, V, MASK }; /* values */
enum { ORDER = 0, KEYS = 4, REPEATED, MASKING };
/* sizes; ORDER: the order of a permute; KEYS: how K becomes the keys; REPEATED: K and V are [b, g, 1, s, d] */
enum { KEYS_AS_THEY_ARE, KEYS_PERMUTED, KEYS_SWAPPED }; /* of KEYS */
enum {
  MASK_IS_ADDED,
  MASK_SELECTS_SCORES,
  MASK_SELECTS_THE_NUMBER
};                      /* of MASKING; a select: what its condition takes */
enum { SCALE, HIDDEN }; /* numbers; HIDDEN: in place of hidden scores */

/* A select replaces scores by at most this number: added to a score, it gives the same sum as alone, so a row whose
 * keys are all hidden keeps equal weights. */
#define LEAST_HIDDEN (-1e30)

/* A product without a bias, an activation or a transposed a. */
static const rondo_operation *take_plain_product(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *product = rondo_take(f, value, &rondo_operator_matmul);
  if (product == NULL || product->inputs[2] != RONDO_NO_VALUE) return NULL;
  if (product->attributes.sizes[RONDO_MATMUL_ACTIVATION] != RONDO_ACTIVATION_NONE) return NULL;
  return product->attributes.flags[RONDO_MATMUL_TRANSPOSE_A] ? NULL : product;
}

/* Takes factors of a value, and multiplies the scale with them. */
static bool take_scale(const rondo_pattern_finder *f, uint32_t value, uint32_t *out) {
  const rondo_affine of = rondo_take_affine(f, value);
  *out = of.base;
  f->match->numbers[SCALE] *= (float)of.slope;
  return of.offset == 0;
}

/* Keys ------------------------------------------------------------------------------------------------------------- */

/* The permute of K that gives the keys, whose last two dimensions the permute in the program exchanges. */
static void set_order(rondo_pattern_match *match, const rondo_operation *permute, uint32_t rank) {
  bool is_order = true;
  memcpy(&match->sizes[ORDER], permute->attributes.sizes, rank * sizeof *match->sizes);
  match->sizes[ORDER + rank - 2] = permute->attributes.sizes[rank - 1];
  match->sizes[ORDER + rank - 1] = permute->attributes.sizes[rank - 2];
  for (uint32_t i = 0; i < rank; i++) is_order = is_order && match->sizes[ORDER + i] == i;
  match->sizes[KEYS] = is_order ? KEYS_AS_THEY_ARE : KEYS_PERMUTED;
}

/* Exporters transpose x [.., s, d] as matrices [n, s, d]: reshape(permute(reshape(x), [0, 2, 1])). Takes these, and
 * returns x; RONDO_NO_VALUE if the value is something else, or another operator reads something between. */
static uint32_t take_transposed(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *view = rondo_find_made_by(f, value, &rondo_operator_reshape);
  const rondo_operation *permute =
      view == NULL ? NULL : rondo_find_made_by(f, view->inputs[0], &rondo_operator_permute);
  const rondo_operation *first =
      permute == NULL ? NULL : rondo_find_made_by(f, permute->inputs[0], &rondo_operator_reshape);
  if (first == NULL || rondo_find_shape(f, permute->inputs[0])->rank != 3) return RONDO_NO_VALUE;
  const size_t *order = permute->attributes.sizes;
  const rondo_shape *x = rondo_find_shape(f, first->inputs[0]), *y = rondo_find_shape(f, value);
  const rondo_shape *matrices = rondo_find_shape(f, permute->inputs[0]);
  const uint32_t rank = x->rank;
  if (order[0] != 0 || order[1] != 2 || rank < 3 || y->rank != rank) return RONDO_NO_VALUE;
  if (memcmp(x->dims, y->dims, (rank - 2) * sizeof *x->dims) != 0 || matrices->dims[1] != x->dims[rank - 2] ||
      matrices->dims[2] != x->dims[rank - 1] || y->dims[rank - 1] != x->dims[rank - 2])
    return RONDO_NO_VALUE;
  if (f->search->readers[view->inputs[0]] != 1 || f->search->readers[permute->inputs[0]] != 1) return RONDO_NO_VALUE;
  (void)rondo_take(f, value, &rondo_operator_reshape);
  (void)rondo_take(f, view->inputs[0], &rondo_operator_permute);
  (void)rondo_take(f, permute->inputs[0], &rondo_operator_reshape);
  return first->inputs[0];
}

static bool take_keys(const rondo_pattern_finder *f, uint32_t value, bool is_transposed) {
  rondo_pattern_match *match = f->match;
  if (!take_scale(f, value, &match->values[K])) return false;
  match->sizes[KEYS] = is_transposed ? KEYS_AS_THEY_ARE : KEYS_SWAPPED;
  const bool is_alone = match->values[K] != value || f->search->readers[value] == 1;
  const uint32_t plain = is_transposed || !is_alone ? RONDO_NO_VALUE : take_transposed(f, match->values[K]);
  if (plain != RONDO_NO_VALUE) {
    match->sizes[KEYS] = KEYS_AS_THEY_ARE;
    return take_scale(f, plain, &match->values[K]);
  }
  const rondo_operation *permute = rondo_find_made_by(f, match->values[K], &rondo_operator_permute);
  if (is_transposed || permute == NULL) return true;
  set_order(match, permute, rondo_find_shape(f, value)->rank);
  const bool is_inner = f->search->readers[match->values[K]] == 1;
  if (is_inner) (void)rondo_take(f, match->values[K], &rondo_operator_permute);
  match->values[K] = permute->inputs[0];
  return !is_inner || take_scale(f, permute->inputs[0], &match->values[K]);
}

/* Whether an expand repeats each head: [b, g, 1, s, d] to [b, g, r, s, d], reshaped to the value's [b, g r, s, d]. */
static bool find_repeated(const rondo_pattern_finder *f, uint32_t value, uint32_t *out) {
  const rondo_operation *view = rondo_find_made_by(f, value, &rondo_operator_reshape);
  const rondo_operation *expand = view == NULL ? NULL : rondo_find_made_by(f, view->inputs[0], &rondo_operator_expand);
  if (expand == NULL) return false;
  const rondo_shape *one = rondo_find_shape(f, *out = expand->inputs[0]);
  const rondo_shape *all = rondo_find_shape(f, view->inputs[0]), *joined = rondo_find_shape(f, value);
  return one->rank == 5 && all->rank == 5 && joined->rank == 4 && one->dims[2] == 1 &&
         all->dims[1] * all->dims[2] == joined->dims[1] && one->dims[1] == all->dims[1] &&
         one->dims[0] == all->dims[0] && all->dims[0] == joined->dims[0] && one->dims[3] == all->dims[3] &&
         all->dims[3] == joined->dims[2] && one->dims[4] == all->dims[4] && all->dims[4] == joined->dims[3];
}

static void use_repeated(const rondo_pattern_finder *f) {
  rondo_pattern_match *match = f->match;
  uint32_t k, v;
  if (match->sizes[KEYS] != KEYS_AS_THEY_ARE) return;
  if (!find_repeated(f, match->values[K], &k) || !find_repeated(f, match->values[V], &v)) return;
  if (!rondo_shape_same(rondo_find_shape(f, k), rondo_find_shape(f, v))) return;
  match->values[K] = k;
  match->values[V] = v;
  match->sizes[REPEATED] = 1;
}

/* Scores ----------------------------------------------------------------------------------------------------------- */

/* q [.., t, d] and v [.., s, d] have the same leading dimensions as the scores [.., t, s]. */
static bool fits_attention(const rondo_pattern_finder *f, uint32_t scores) {
  const rondo_shape *q = rondo_find_shape(f, f->match->values[Q]), *v = rondo_find_shape(f, f->match->values[V]);
  const rondo_shape *s = rondo_find_shape(f, scores);
  const uint32_t rank = q->rank;
  if (rank < 2 || rank > 4 || v->rank != rank || s->rank != rank || q->dims[rank - 1] > RONDO_HEAD_MAX) return false;
  return memcmp(q->dims, s->dims, (rank - 1) * sizeof *q->dims) == 0 &&
         memcmp(q->dims, v->dims, (rank - 2) * sizeof *q->dims) == 0 && v->dims[rank - 2] == s->dims[rank - 1] &&
         v->dims[rank - 1] == q->dims[rank - 1];
}

/* The leading dimensions of the keys are those of the scores, too: products repeat them. */
static bool has_all_keys(const rondo_pattern_finder *f, const rondo_operation *product) {
  const rondo_shape *b = rondo_find_shape(f, product->inputs[1]), *s = rondo_find_shape(f, product->results[0]);
  return b->rank == s->rank && memcmp(b->dims, s->dims, (b->rank - 2) * sizeof *b->dims) == 0;
}

static bool take_product(const rondo_pattern_finder *f, uint32_t value) {
  uint32_t scores;
  if (!take_scale(f, value, &scores)) return false;
  const rondo_operation *product = take_plain_product(f, scores);
  if (product == NULL || !has_all_keys(f, product)) return false;
  return take_scale(f, product->inputs[0], &f->match->values[Q]) &&
         take_keys(f, product->inputs[1], product->attributes.flags[RONDO_MATMUL_TRANSPOSE_B]) &&
         fits_attention(f, scores);
}

static bool take_added_mask(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_pattern_match before = *f->match;
  const rondo_operation *sum = rondo_find_made_by(f, value, &rondo_operator_add);
  for (uint32_t k = 0; k < 2 && sum != NULL; k++) {
    *f->match = before;
    (void)rondo_take(f, value, &rondo_operator_add);
    f->match->values[MASK] = sum->inputs[1 - k];
    f->match->sizes[MASKING] = MASK_IS_ADDED;
    if (rondo_shape_same(rondo_find_shape(f, sum->inputs[k]), rondo_find_shape(f, value)) &&
        take_product(f, sum->inputs[k]))
      return true;
  }
  return false;
}

static bool take_selecting_mask(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_pattern_match before = *f->match;
  const rondo_operation *select = rondo_find_made_by(f, value, &rondo_operator_select);
  double hidden;
  for (uint32_t k = 1; k < 3 && select != NULL; k++) {
    *f->match = before;
    (void)rondo_take(f, value, &rondo_operator_select);
    f->match->values[MASK] = select->inputs[0];
    f->match->sizes[MASKING] = k == 1 ? MASK_SELECTS_SCORES : MASK_SELECTS_THE_NUMBER;
    if (!rondo_program_number(f->search->program, select->inputs[3 - k], &hidden) || !(hidden <= LEAST_HIDDEN))
      continue;
    f->match->numbers[HIDDEN] = (float)hidden;
    if (rondo_shape_same(rondo_find_shape(f, select->inputs[k]), rondo_find_shape(f, value)) &&
        take_product(f, select->inputs[k]))
      return true;
  }
  return false;
}

static bool take_scores(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_pattern_match before = *f->match;
  if (take_product(f, value)) return true;
  *f->match = before;
  if (take_added_mask(f, value)) return true;
  *f->match = before;
  return take_selecting_mask(f, value);
}

/* Exporters may put zeros in place of rows without a key, which are NaN. The operator gives zeros. */
static uint32_t take_zeroed(const rondo_pattern_finder *f, uint32_t value) {
  const rondo_operation *select = rondo_find_made_by(f, value, &rondo_operator_select);
  double number;
  if (select == NULL || !rondo_program_number(f->search->program, select->inputs[1], &number) || number != 0)
    return value;
  const rondo_operation *is_nan = rondo_find_made_by(f, select->inputs[0], &rondo_operator_is_nan);
  if (is_nan == NULL || is_nan->inputs[0] != select->inputs[2]) return value;
  if (!rondo_shape_same(rondo_find_shape(f, value), rondo_find_shape(f, select->inputs[2]))) return value;
  (void)rondo_take(f, value, &rondo_operator_select);
  (void)rondo_take(f, select->inputs[0], &rondo_operator_is_nan);
  return select->inputs[2];
}

static bool find_attention(const rondo_pattern_search *search, rondo_pattern_match *match) {
  const rondo_pattern_finder f = {search, match};
  const rondo_operation *root = take_plain_product(&f, rondo_find_root(&f)->results[0]);
  if (root == NULL || root->attributes.flags[RONDO_MATMUL_TRANSPOSE_B]) return false;
  const rondo_operation *softmax = rondo_take(&f, take_zeroed(&f, root->inputs[0]), &rondo_operator_softmax);
  if (softmax == NULL) return false;
  match->values[V] = root->inputs[1];
  match->numbers[SCALE] = 1;
  if (!take_scores(&f, softmax->inputs[0]) || !(match->numbers[SCALE] > 0) || !isfinite(match->numbers[SCALE]))
    return false;
  use_repeated(&f);
  return true;
}

/* Replacing -------------------------------------------------------------------------------------------------------- */

/* A view with four dimensions: [n, t, d] is [n, 1, t, d], and [t, d] is [1, 1, t, d]. Others stay as they are. */
static rondo_status add_heads(rondo_program *program, rondo_value value, rondo_value *out) {
  rondo_type type;
  size_t dims[RONDO_MAX_DIMENSIONS], rank;
  RONDO_TRY(rondo_value_shape(program, value, &type, dims, &rank));
  const size_t of_matrices[] = {dims[0], 1, dims[1], dims[2]}, of_matrix[] = {1, 1, dims[0], dims[1]};
  *out = value;
  if (rank == 3) return rondo_op_reshape(program, value, of_matrices, 4, out);
  return rank == 2 ? rondo_op_reshape(program, value, of_matrix, 4, out) : RONDO_OK;
}

static rondo_status add_operand(rondo_program *program, const rondo_pattern_match *match, int which, rondo_value *out) {
  *out = rondo_program_tag(program, match->values[which]);
  const rondo_shape shape = *rondo_program_shape(program, match->values[which]);
  if (which != Q && match->sizes[REPEATED] != 0)
    return rondo_op_reshape(program, *out, (const size_t[]){shape.dims[0], shape.dims[1], shape.dims[3], shape.dims[4]},
                            4, out);
  if (which == K && match->sizes[KEYS] == KEYS_PERMUTED)
    RONDO_TRY(rondo_op_permute(program, *out, &match->sizes[ORDER], out));
  if (which == K && match->sizes[KEYS] == KEYS_SWAPPED)
    RONDO_TRY(rondo_op_transpose(program, *out, shape.rank - 2, shape.rank - 1, out));
  return add_heads(program, *out, out);
}

/* Masks of matrices without heads get a dimension for them. */
static rondo_status add_mask(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  const rondo_shape q = *rondo_program_shape(program, match->values[Q]);
  rondo_value zero, hidden;
  *out = (rondo_value){0};
  if (match->values[MASK] == RONDO_NO_VALUE) return RONDO_OK;
  *out = rondo_program_tag(program, match->values[MASK]);
  if (match->sizes[MASKING] != MASK_IS_ADDED) {
    const bool is_visible = match->sizes[MASKING] == MASK_SELECTS_SCORES;
    RONDO_TRY(rondo_op_full(program, q.type, NULL, 0, 0, &zero));
    RONDO_TRY(rondo_op_full(program, q.type, NULL, 0, (double)match->numbers[HIDDEN], &hidden));
    RONDO_TRY(rondo_op_select(program, *out, is_visible ? zero : hidden, is_visible ? hidden : zero, out));
  }
  const size_t rank = rondo_program_shape(program, match->values[MASK])->rank;
  return q.rank == 3 && rank == 3 ? add_heads(program, *out, out) : RONDO_OK;
}

static rondo_status add_attention(rondo_program *program, const rondo_pattern_match *match, rondo_value *out) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .scale = match->numbers[SCALE]};
  const rondo_shape q_shape = *rondo_program_shape(program, match->values[Q]);
  rondo_value q, k, v;
  RONDO_TRY(add_operand(program, match, Q, &q));
  RONDO_TRY(add_operand(program, match, K, &k));
  RONDO_TRY(add_operand(program, match, V, &v));
  RONDO_TRY(add_mask(program, match, &options.mask));
  RONDO_TRY(rondo_op_attention(program, q, k, v, &options, out));
  return q_shape.rank == 4 ? RONDO_OK : rondo_op_reshape(program, *out, q_shape.dims, q_shape.rank, out);
}

const rondo_pattern rondo_pattern_attention = {.name = "attention", .find = find_attention, .replace = add_attention};
