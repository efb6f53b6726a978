/* SPDX-License-Identifier: MIT
 * einsum: products and sums of values by an equation, as numpy.einsum. Each dimension has a label: a letter, or a
 * number below the letters for one of an ellipsis. Repeated labels of an operand become a diagonal, and labels that
 * nothing else has are summed. Then operands are multiplied from the left to the right, by a matrix product of permuted
 * and reshaped values, or by mul where nothing is summed. Dimensions of size 1 are left out until the end, so they
 * broadcast. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/composition.h"

#define LABELS 128
#define ELLIPSIS_END 7 /* after the label of the last dimension of an ellipsis */
#define MAX_OPERANDS 32

/* A value and the labels of its dimensions. */
typedef struct einsum_term {
  rondo_value value;
  uint32_t rank;
  uint8_t labels[RONDO_MAX_DIMENSIONS];
} einsum_term;

typedef struct einsum_call {
  const char *equation;
  rondo_type type;
  size_t count;
  einsum_term operands[MAX_OPERANDS];
  uint32_t uses[MAX_OPERANDS + 1][LABELS]; /* how often an operand, or at the end the result, has a label */
  size_t sizes[LABELS];                    /* 0: no operand has the label */
  uint32_t rank;                           /* of the result */
  uint8_t labels[2 * RONDO_MAX_DIMENSIONS];
} einsum_call;

/* Parsing ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_text(const einsum_call *of, const char *problem) {
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
      "einsum: \"%s\": %s: write one term of letters for each operand, separated by commas, with at most one "
      "... each, and perhaps -> and the letters of the result",
      of->equation, problem);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The letters of a term in order. An ellipsis, if there is one, comes before letter `ellipsis`. */
typedef struct einsum_text {
  uint32_t count, ellipsis; /* ellipsis: UINT32_MAX if there is none */
  uint8_t letters[LABELS];
} einsum_text;

/* Reads a term up to a comma, an arrow or the end. */
static rondo_status read_term(const einsum_call *of, const char **inout_at, einsum_text *out) {
  *out = (einsum_text){.ellipsis = UINT32_MAX};
  for (const char *at = *inout_at;; at++) {
    if (*at == '\0' || *at == ',' || (at[0] == '-' && at[1] == '>')) {
      *inout_at = at;
      return RONDO_OK;
    }
    if (*at == ' ') continue;
    if (at[0] == '.' && at[1] == '.' && at[2] == '.' && out->ellipsis == UINT32_MAX) {
      out->ellipsis = out->count;
      at += 2;
    } else if (!is_letter(*at)) {
      return fail_text(of, *at == '.' ? "dots are wrong" : "a character is no letter");
    } else if (out->count == LABELS) {
      return fail_text(of, "a term is too long");
    } else {
      out->letters[out->count++] = (uint8_t)*at;
    }
  }
}

/* Labels of a term with `more` dimensions in its ellipsis. */
static void set_labels(const einsum_text *text, uint32_t more, uint32_t *out_rank, uint8_t *labels) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i <= text->count; i++) {
    for (uint32_t e = 0; i == text->ellipsis && e < more; e++) labels[rank++] = (uint8_t)(ELLIPSIS_END - more + e);
    if (i < text->count) labels[rank++] = text->letters[i];
  }
  *out_rank = rank;
}

static rondo_status fail_shape(const einsum_call *of, size_t operand, const rondo_shape *shape, const char *problem) {
  char text[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "einsum: \"%s\": operand %zu is %s: %s", of->equation,
                    operand, rondo_shape_text(text, shape), problem);
}

/* Two sizes of a label are equal, or one of them is 1. */
static bool takes_size(size_t *inout_size, size_t size) {
  if (*inout_size == 0 || *inout_size == 1) *inout_size = size;
  return size == 1 || size == *inout_size;
}

static rondo_status set_operand(einsum_call *of, size_t number, const einsum_text *text, const rondo_shape *shape) {
  einsum_term *operand = &of->operands[number];
  const bool has_ellipsis = text->ellipsis != UINT32_MAX;
  if (text->count > shape->rank || (text->count < shape->rank && !has_ellipsis))
    return fail_shape(of, number, shape,
                      "its term must have a letter for each dimension, or an ellipsis for the others");
  set_labels(text, shape->rank - text->count, &operand->rank, operand->labels);
  for (uint32_t d = 0; d < shape->rank; d++) {
    of->uses[number][operand->labels[d]]++;
    if (!takes_size(&of->sizes[operand->labels[d]], shape->dims[d]))
      return fail_shape(of, number, shape, "a letter has another size elsewhere, and neither is 1");
  }
  return RONDO_OK;
}

/* The dimensions of an ellipsis, then the letters that the operands have once, in alphabetical order. */
static rondo_status set_implicit(einsum_call *of) {
  for (uint8_t label = 1; label < LABELS; label++) {
    uint32_t uses = 0;
    for (size_t i = 0; i < of->count; i++) uses += of->uses[i][label];
    if (uses == 0 || (label >= ELLIPSIS_END && uses > 1)) continue;
    if (of->rank == RONDO_MAX_DIMENSIONS) return fail_text(of, "the result has too many dimensions");
    of->labels[of->rank++] = label;
  }
  return RONDO_OK;
}

static rondo_status set_result(einsum_call *of, const einsum_text *text) {
  uint32_t more = 0;
  for (uint32_t label = 1; label < ELLIPSIS_END; label++) more += of->sizes[label] > 0;
  if (text->count + (text->ellipsis == UINT32_MAX ? 0 : more) > RONDO_MAX_DIMENSIONS)
    return fail_text(of, "the result has too many dimensions");
  set_labels(text, more, &of->rank, of->labels);
  for (uint32_t d = 0; d < of->rank; d++) {
    if (of->sizes[of->labels[d]] == 0) return fail_text(of, "no operand has a letter of the result");
    if (of->uses[of->count][of->labels[d]]++ > 0) return fail_text(of, "the result has a letter twice");
  }
  return RONDO_OK;
}

static rondo_status read_operand(const rondo_program *program, einsum_call *of, size_t number, rondo_value value,
                                 const char **inout_at) {
  rondo_shape shape;
  einsum_text text;
  RONDO_TRY(rondo_given_shape(program, value, "einsum", "operand", &shape));
  RONDO_TRY(read_term(of, inout_at, &text));
  if (number == 0) of->type = shape.type;
  if (shape.type != of->type || (RONDO_NUMBERS & RONDO_TYPE_BIT(shape.type)) == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "einsum: operand %zu is %s and the first one %s: they must be numbers of one type", number,
                      rondo_type_name(shape.type), rondo_type_name(of->type));
  of->operands[number].value = value;
  return set_operand(of, number, &text, &shape);
}

static rondo_status read_equation(const rondo_program *program, const rondo_value *values, einsum_call *of) {
  const char *at = of->equation;
  einsum_text text;
  for (size_t i = 0; i < of->count; i++) {
    RONDO_TRY(read_operand(program, of, i, values[i], &at));
    const bool is_last = i + 1 == of->count;
    if (!is_last && *at != ',') return fail_text(of, "there are more operands than terms");
    if (is_last && *at == ',') return fail_text(of, "there are fewer operands than terms");
    at += *at == ',';
  }
  if (*at == '\0') {
    RONDO_TRY(set_implicit(of));
    for (uint32_t d = 0; d < of->rank; d++) of->uses[of->count][of->labels[d]] = 1;
    return RONDO_OK;
  }
  at += 2;
  RONDO_TRY(read_term(of, &at, &text));
  if (*at != '\0') return fail_text(of, "something follows the result");
  return set_result(of, &text);
}

/* Terms ------------------------------------------------------------------------------------------------------------ */

static uint32_t find(const einsum_term *term, uint8_t label) {
  uint32_t d = 0;
  while (d < term->rank && term->labels[d] != label) d++;
  return d;
}

static bool has(const einsum_term *term, uint8_t label) { return find(term, label) < term->rank; }

/* Whether the result or an operand from `first` on has the label. */
static bool is_used(const einsum_call *of, size_t first, uint8_t label) {
  bool used = false;
  for (size_t i = first; i <= of->count; i++) used = used || of->uses[i][label] > 0;
  return used;
}

static rondo_status permute_to(rondo_program *program, einsum_term *term, const uint8_t *labels) {
  size_t order[RONDO_MAX_DIMENSIONS];
  for (uint32_t d = 0; d < term->rank; d++) order[d] = find(term, labels[d]);
  RONDO_TRY(rondo_op_permute(program, term->value, order, &term->value));
  memcpy(term->labels, labels, term->rank);
  return RONDO_OK;
}

/* Removes the dimensions of size 1. */
static rondo_status squeeze(rondo_program *program, einsum_term *term) {
  const rondo_shape shape = rondo_shape_at(program, term->value);
  rondo_shape squeezed = {.type = shape.type};
  for (uint32_t d = 0; d < shape.rank; d++) {
    if (shape.dims[d] == 1) continue;
    term->labels[squeezed.rank] = term->labels[d];
    squeezed.dims[squeezed.rank++] = shape.dims[d];
  }
  term->rank = squeezed.rank;
  return rondo_compose_reshape(program, term->value, &squeezed, &term->value);
}

/* Dimensions a and b, of one label, move to the end, and every (n + 1)-th element of both together is kept. */
static rondo_status take_diagonal(rondo_program *program, einsum_term *term, uint32_t a, uint32_t b) {
  const rondo_shape shape = rondo_shape_at(program, term->value);
  const size_t n = shape.dims[a];
  size_t order[RONDO_MAX_DIMENSIONS], zeros[RONDO_MAX_DIMENSIONS] = {0}, steps[RONDO_MAX_DIMENSIONS];
  rondo_shape joined = {.type = shape.type};
  const uint8_t label = term->labels[a];
  uint32_t next = 0;
  for (uint32_t d = 0; d < shape.rank; d++) {
    if (d == a || d == b) continue;
    steps[next] = 1;
    joined.dims[next] = shape.dims[d];
    term->labels[next] = term->labels[d];
    order[next++] = d;
  }
  order[next] = a;
  order[next + 1] = b;
  RONDO_TRY(rondo_op_permute(program, term->value, order, &term->value));
  joined.dims[next] = n * n;
  joined.rank = next + 1;
  RONDO_TRY(rondo_compose_reshape(program, term->value, &joined, &term->value));
  joined.dims[next] = n;
  steps[next] = n + 1;
  term->labels[next] = label;
  term->rank = joined.rank;
  return rondo_op_slice(program, term->value, zeros, joined.dims, steps, &term->value);
}

/* Finds two dimensions of one label. */
static bool find_repeated(const einsum_term *term, uint32_t *out_a, uint32_t *out_b) {
  for (*out_a = 0; *out_a < term->rank; (*out_a)++) {
    for (*out_b = *out_a + 1; *out_b < term->rank; (*out_b)++)
      if (term->labels[*out_a] == term->labels[*out_b]) return true;
  }
  return false;
}

static rondo_status take_diagonals(rondo_program *program, einsum_term *term) {
  for (uint32_t a, b; find_repeated(term, &a, &b);) RONDO_TRY(take_diagonal(program, term, a, b));
  return RONDO_OK;
}

/* Sums the labels that no operand from `first` on has, nor the result. */
static rondo_status sum_unused(rondo_program *program, const einsum_call *of, size_t first, const einsum_term *other,
                               einsum_term *term) {
  size_t dims[RONDO_MAX_DIMENSIONS], count = 0;
  uint32_t kept = 0;
  for (uint32_t d = 0; d < term->rank; d++) {
    const uint8_t label = term->labels[d];
    if (is_used(of, first, label) || (other != NULL && has(other, label)))
      term->labels[kept++] = label;
    else
      dims[count++] = d;
  }
  term->rank = kept;
  return count == 0 ? RONDO_OK : rondo_op_sum(program, term->value, dims, count, false, &term->value);
}

/* Products --------------------------------------------------------------------------------------------------------- */

/* The labels of a product of a and b: in both and used later, in a alone, in both and summed, in b alone. */
enum { BATCH, ROWS, SUMMED, COLUMNS, KINDS };

typedef struct einsum_product {
  uint32_t counts[KINDS];
  uint8_t labels[KINDS][RONDO_MAX_DIMENSIONS];
  size_t sizes[KINDS];
} einsum_product;

static void push(const einsum_call *of, einsum_product *p, int kind, uint8_t label) {
  p->labels[kind][p->counts[kind]++] = label;
  p->sizes[kind] *= of->sizes[label];
}

static einsum_product sort_labels(const einsum_call *of, size_t next, const einsum_term *a, const einsum_term *b) {
  einsum_product p = {.sizes = {1, 1, 1, 1}};
  for (uint32_t d = 0; d < a->rank; d++) {
    const uint8_t label = a->labels[d];
    push(of, &p, !has(b, label) ? ROWS : is_used(of, next, label) ? BATCH : SUMMED, label);
  }
  for (uint32_t d = 0; d < b->rank; d++)
    if (!has(a, b->labels[d])) push(of, &p, COLUMNS, b->labels[d]);
  return p;
}

static bool is_ordered(const einsum_term *term, const uint8_t *labels) {
  return memcmp(term->labels, labels, term->rank) == 0;
}

/* Makes a term [batch, first, second], or leaves it [batch, second, first], which *out_is_swapped then says. */
static rondo_status arrange(rondo_program *program, const einsum_product *p, int first, int second, einsum_term *term,
                            bool *out_is_swapped) {
  uint8_t orders[2][3 * RONDO_MAX_DIMENSIONS];
  for (int swaps = 0; swaps < 2; swaps++) {
    const int kinds[] = {BATCH, swaps == 0 ? first : second, swaps == 0 ? second : first};
    uint32_t rank = 0;
    for (int k = 0; k < 3; k++) {
      memcpy(orders[swaps] + rank, p->labels[kinds[k]], p->counts[kinds[k]]);
      rank += p->counts[kinds[k]];
    }
    assert(rank == term->rank);
  }
  *out_is_swapped = !is_ordered(term, orders[0]) && is_ordered(term, orders[1]);
  if (!*out_is_swapped) RONDO_TRY(permute_to(program, term, orders[0]));
  const size_t wide[] = {p->sizes[BATCH], p->sizes[*out_is_swapped ? second : first],
                         p->sizes[*out_is_swapped ? first : second]};
  return rondo_op_reshape(program, term->value, wide, 3, &term->value);
}

/* [batch, rows, columns] of a [batch, rows, summed] and b [batch, summed, columns]. */
static rondo_status add_matmul(rondo_program *program, const einsum_product *p, einsum_term *a, einsum_term *b,
                               rondo_value *out_value) {
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT};
  RONDO_TRY(arrange(program, p, ROWS, SUMMED, a, &options.transpose_a));
  RONDO_TRY(arrange(program, p, SUMMED, COLUMNS, b, &options.transpose_b));
  return rondo_op_matmul_with(program, a->value, b->value, &options, out_value);
}

/* The same by a product of elements, [batch, rows, columns, summed], and its sum. */
static rondo_status add_mul(rondo_program *program, const einsum_product *p, einsum_term *a, einsum_term *b,
                            rondo_value *out_value) {
  const size_t *sizes = p->sizes, last = 3;
  uint8_t order[3 * RONDO_MAX_DIMENSIONS];
  memcpy(order, p->labels[BATCH], p->counts[BATCH]);
  memcpy(order + p->counts[BATCH], p->labels[ROWS], p->counts[ROWS]);
  memcpy(order + p->counts[BATCH] + p->counts[ROWS], p->labels[SUMMED], p->counts[SUMMED]);
  RONDO_TRY(permute_to(program, a, order));
  memcpy(order + p->counts[BATCH], p->labels[COLUMNS], p->counts[COLUMNS]);
  memcpy(order + p->counts[BATCH] + p->counts[COLUMNS], p->labels[SUMMED], p->counts[SUMMED]);
  RONDO_TRY(permute_to(program, b, order));
  const size_t of_a[] = {sizes[BATCH], sizes[ROWS], 1, sizes[SUMMED]};
  const size_t of_b[] = {sizes[BATCH], 1, sizes[COLUMNS], sizes[SUMMED]};
  RONDO_TRY(rondo_op_reshape(program, a->value, of_a, 4, &a->value));
  RONDO_TRY(rondo_op_reshape(program, b->value, of_b, 4, &b->value));
  RONDO_TRY(rondo_op_mul(program, a->value, b->value, out_value));
  return sizes[SUMMED] == 1 ? RONDO_OK : rondo_op_sum(program, *out_value, &last, 1, false, out_value);
}

/* a becomes the product of a and b; operands from `next` on follow. */
static rondo_status multiply(rondo_program *program, const einsum_call *of, size_t next, einsum_term *a,
                             einsum_term *b) {
  RONDO_TRY(sum_unused(program, of, next, b, a));
  RONDO_TRY(sum_unused(program, of, next, a, b));
  const einsum_product p = sort_labels(of, next, a, b);
  rondo_shape result = {.type = of->type};
  uint8_t labels[3 * RONDO_MAX_DIMENSIONS];
  const int kinds[] = {BATCH, ROWS, COLUMNS};
  uint32_t rank = 0;
  for (int k = 0; k < 3; k++) {
    memcpy(labels + rank, p.labels[kinds[k]], p.counts[kinds[k]]);
    rank += p.counts[kinds[k]];
  }
  if (rank > RONDO_MAX_DIMENSIONS) return fail_text(of, "a product of two operands has more than 6 dimensions");
  const bool is_float = (RONDO_FLOATS & RONDO_TYPE_BIT(of->type)) != 0;
  const bool is_product = is_float && p.sizes[SUMMED] > 1 && p.sizes[ROWS] * p.sizes[COLUMNS] > 1;
  RONDO_TRY(is_product ? add_matmul(program, &p, a, b, &a->value) : add_mul(program, &p, a, b, &a->value));
  result.rank = a->rank = rank;
  memcpy(a->labels, labels, rank);
  for (uint32_t d = 0; d < rank; d++) result.dims[d] = of->sizes[labels[d]];
  return rondo_compose_reshape(program, a->value, &result, &a->value);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* In the order of the result's labels, with those of size 1. */
static rondo_status finish(rondo_program *program, const einsum_call *of, einsum_term *term, rondo_value *out_value) {
  uint8_t labels[RONDO_MAX_DIMENSIONS];
  rondo_shape result = {.type = of->type, .rank = of->rank};
  uint32_t rank = 0;
  for (uint32_t d = 0; d < of->rank; d++) {
    result.dims[d] = of->sizes[of->labels[d]];
    if (result.dims[d] > 1) labels[rank++] = of->labels[d];
  }
  assert(rank == term->rank);
  RONDO_TRY(permute_to(program, term, labels));
  return rondo_compose_reshape(program, term->value, &result, out_value);
}

static rondo_status add_einsum(rondo_program *program, einsum_call *of, rondo_value *out_value) {
  einsum_term *product = &of->operands[0];
  for (size_t i = 0; i < of->count; i++) {
    RONDO_TRY(squeeze(program, &of->operands[i]));
    RONDO_TRY(take_diagonals(program, &of->operands[i]));
    if (i > 0) RONDO_TRY(multiply(program, of, i + 1, product, &of->operands[i]));
  }
  RONDO_TRY(sum_unused(program, of, of->count, NULL, product));
  return finish(program, of, product, out_value);
}

rondo_status rondo_op_einsum(rondo_program *program, const char *equation, const rondo_value *values, size_t count,
                             rondo_value *out_value) {
  rondo_value made = {0};
  RONDO_TRY(rondo_program_begin(program, "einsum", out_value));
  RONDO_TRY(rondo_require("einsum", "equation", equation));
  RONDO_TRY(rondo_require("einsum", "values", values));
  einsum_call of = {.equation = equation, .count = count};
  if (count == 0 || count > MAX_OPERANDS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT, "einsum: %zu operands: use 1 to %d", count,
                      MAX_OPERANDS);
  RONDO_TRY(read_equation(program, values, &of));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_einsum(program, &of, &made);
  return rondo_compose_end(program, "einsum", mark, status, made, out_value);
}
