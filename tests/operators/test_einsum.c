/* SPDX-License-Identifier: MIT
 * einsum: equations of products, diagonals, sums and ellipses, with a reference that goes over all labels.
 */
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

/* Of the labels a, b, .. */
static const size_t label_sizes[] = {3, 4, 5, 2, 3, 4, 2, 3};
#define LABELS (sizeof label_sizes / sizeof label_sizes[0])

/* An equation without an ellipsis or an implicit result, for the reference; and how the program writes it. */
typedef struct equation {
  const char *written, *terms[3], *result;
  const char *ones; /* "0b": dimension b of operand 0 has size 1; NULL: none */
} equation;

static size_t size_of(const equation *of, size_t operand, char label) {
  if (of->ones != NULL && of->ones[0] == (char)('0' + operand) && of->ones[1] == label) return 1;
  return label_sizes[label - 'a'];
}

static void draw(uint64_t *seed, test_call *call) {
  const equation *of = call->op->family;
  (void)seed;
  for (size_t i = 0; i < 3 && of->terms[i] != NULL; i++) {
    size_t shape[RONDO_MAX_DIMENSIONS];
    for (size_t d = 0; d < strlen(of->terms[i]); d++) shape[d] = size_of(of, i, of->terms[i][d]);
    test_add_float(call, shape, strlen(of->terms[i]), -1, 1);
  }
}

static void draw_integers(uint64_t *seed, test_call *call) {
  draw(seed, call);
  for (size_t i = 0; i < call->input_count; i++) {
    call->inputs[i].type = RONDO_I32;
    call->inputs[i].low = -9;
    call->inputs[i].high = 10;
  }
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const equation *of = call->op->family;
  return rondo_op_einsum(program, of->written, in, call->input_count, y);
}

/* The place in an operand or the result, for a number of each label. */
static size_t place_of(const equation *of, size_t operand, const char *term, const size_t *numbers) {
  size_t place = 0;
  for (const char *label = term; *label != '\0'; label++) {
    const size_t size = size_of(of, operand, *label);
    place = place * size + (size == 1 ? 0 : numbers[*label - 'a']);
  }
  return place;
}

/* The size of label number l, or 1 if no operand has it. */
static size_t size_in(const equation *of, size_t l) {
  for (size_t k = 0; k < 3 && of->terms[k] != NULL; k++)
    if (strchr(of->terms[k], (int)('a' + l)) != NULL) return label_sizes[l];
  return 1;
}

static void reference(const test_call *call, double *const *in, double *y) {
  const equation *of = call->op->family;
  size_t all = 1, results = 1, numbers[LABELS];
  for (size_t l = 0; l < LABELS; l++) all *= size_in(of, l);
  for (const char *label = of->result; *label != '\0'; label++) results *= label_sizes[*label - 'a'];
  memset(y, 0, results * sizeof *y);
  for (size_t i = 0; i < all; i++) {
    double product = 1;
    for (size_t l = 0, rest = i; l < LABELS; l++) {
      numbers[l] = rest % size_in(of, l);
      rest /= size_in(of, l);
    }
    for (size_t k = 0; k < call->input_count; k++) product *= in[k][place_of(of, k, of->terms[k], numbers)];
    y[place_of(of, 9, of->result, numbers)] += product;
  }
}

UNIT_TEST(test_on3_wrong_equations) {
  static const struct {
    const char *text;
    size_t count;
    rondo_reason reason;
  } wrong[] = {{"ij,jk->ik", 1, RONDO_REASON_OUT_OF_RANGE},   {"ij", 2, RONDO_REASON_OUT_OF_RANGE},
               {"i1,jk", 2, RONDO_REASON_OUT_OF_RANGE},       {"ij,jk->il", 2, RONDO_REASON_OUT_OF_RANGE},
               {"ij,jk->ii", 2, RONDO_REASON_OUT_OF_RANGE},   {"ij,jk->ik->i", 2, RONDO_REASON_OUT_OF_RANGE},
               {"..ij,jk->ik", 2, RONDO_REASON_OUT_OF_RANGE}, {"i,jk->ik", 2, RONDO_REASON_SHAPE},
               {"ijk,jk->ik", 2, RONDO_REASON_SHAPE},         {"ij,ij->i", 2, RONDO_REASON_SHAPE},
               {"...i...,jk", 2, RONDO_REASON_OUT_OF_RANGE}};
  rondo_program *program = test_new_program();
  rondo_value values[2], whole, y;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (size_t[]){2, 3}, 2, &values[0]));
  assert_ok(rondo_program_input(program, "b", RONDO_F32, (size_t[]){3, 4}, 2, &values[1]));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, (size_t[]){3, 4}, 2, &whole));
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_error(rondo_op_einsum(program, wrong[i].text, values, wrong[i].count, &y), RONDO_INVALID_ARGUMENT,
                 wrong[i].reason);
    assert_int_equal(y.id, 0);
  }
  assert_error(rondo_op_einsum(program, "", values, 0, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT);
  assert_error(rondo_op_einsum(program, NULL, values, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  values[1] = whole;
  assert_error(rondo_op_einsum(program, "ij,jk", values, 2, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_message("einsum: operand 1 is i32 and the first one f32: they must be numbers of one type");
  rondo_program_destroy(program);
}

/* What the program gets; and the terms and the result with a letter for each dimension. */
#define EQUATION(text, a, b, c, result, ones) \
  .name = text, .build = build, .reference = reference, .family = &(const equation) { text, {a, b, c}, result, ones }
#define FLOATS(...) \
  { EQUATION(__VA_ARGS__), .draw = draw, .tolerance = 2e-5, .only_f32 = true, .gradient_samples = 8 }
#define ALL_FLOATS(...) \
  { EQUATION(__VA_ARGS__), .draw = draw, .tolerance = 2e-5, .gradient_samples = 8 }
#define INTEGERS(...) \
  { EQUATION(__VA_ARGS__), .draw = draw_integers, .only_f32 = true, .has_no_gradient = true }

static const test_operator rows[] = {
    ALL_FLOATS("ab,bc->ac", "ab", "bc", NULL, "ac", NULL),
    FLOATS("ab,bc", "ab", "bc", NULL, "ac", NULL),
    FLOATS("ba,bc->ca", "ba", "bc", NULL, "ca", NULL),
    FLOATS(" ab , cb -> ac ", "ab", "cb", NULL, "ac", NULL),
    FLOATS("abc,acd->abd", "abc", "acd", NULL, "abd", NULL),
    FLOATS("bac,dca->bad", "bac", "dca", NULL, "bad", NULL),
    FLOATS("ab,ab->", "ab", "ab", NULL, "", NULL),
    ALL_FLOATS("ab,ab->a", "ab", "ab", NULL, "a", NULL),
    ALL_FLOATS("a,b->ab", "a", "b", NULL, "ab", NULL),
    FLOATS("a,b->ba", "a", "b", NULL, "ba", NULL),
    FLOATS("ab->ba", "ab", NULL, NULL, "ba", NULL),
    FLOATS("ba", "ba", NULL, NULL, "ab", NULL),
    FLOATS("abc->b", "abc", NULL, NULL, "b", NULL),
    FLOATS("aa->a", "aa", NULL, NULL, "a", NULL),
    FLOATS("aa", "aa", NULL, NULL, "", NULL),
    ALL_FLOATS("abab->ba", "abab", NULL, NULL, "ba", NULL),
    FLOATS("abcb,b->ca", "abcb", "b", NULL, "ca", NULL),
    FLOATS("ab,bc,cd->ad", "ab", "bc", "cd", "ad", NULL),
    FLOATS("a,ab,b->", "a", "ab", "b", "", NULL),
    FLOATS("ab,ac,ad->abcd", "ab", "ac", "ad", "abcd", NULL),
    ALL_FLOATS("...b,bc->...c", "adb", "bc", NULL, "adc", NULL),
    FLOATS("b...,...->b...", "bad", "d", NULL, "bad", NULL),
    FLOATS("...ab,...bc", "deab", "ebc", NULL, "deac", NULL),
    FLOATS("...", "ab", NULL, NULL, "ab", NULL),
    FLOATS("...a->a", "bca", NULL, NULL, "a", NULL),
    FLOATS("ab,ab->ab", "ab", "ab", NULL, "ab", "0a"),
    ALL_FLOATS("ab,bc->ac", "ab", "bc", NULL, "ac", "1b"),
    FLOATS("...b,...b->...", "ab", "ab", NULL, "a", "1a"),
    INTEGERS("ab,bc->ac", "ab", "bc", NULL, "ac", NULL),
    INTEGERS("abc,acd->", "abc", "acd", NULL, "", NULL),
    INTEGERS("aab->ba", "aab", NULL, NULL, "ba", NULL),
};

TEST_OPERATOR_MAIN(rows)
