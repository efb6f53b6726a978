/* SPDX-License-Identifier: MIT
 * Losses of two values, element by element: mse and bce_with_logits, mean and sum.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { COMBINE }; /* sizes */

typedef struct pair_loss {
  rondo_status (*op)(rondo_program *program, rondo_value a, rondo_value b, rondo_combine combine,
                     rondo_value *out_value);
  double (*value_at)(double a, double b);
  double low, high, target_low; /* the targets are at most 1 */
} pair_loss;

static void add_pair(test_call *call, const size_t *shape, size_t rank, size_t combine) {
  const pair_loss *family = call->op->family;
  test_add_float(call, shape, rank, family->low, family->high);
  test_add_float(call, shape, rank, family->target_low, 1);
  call->sizes[COMBINE] = combine;
}

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 4);
  test_draw_shape(seed, rank, 7, shape);
  add_pair(call, shape, rank, test_random_below(seed, 2) == 0 ? RONDO_COMBINE_MEAN : RONDO_COMBINE_SUM);
}

/* Several parts of the sum. */
static void draw_many(uint64_t *seed, test_call *call) {
  const size_t count = test_draw_between(seed, 8000, 40000);
  add_pair(call, &count, 1, RONDO_COMBINE_MEAN);
}

/* Logits so large that exp overflows. */
static void draw_large(uint64_t *seed, test_call *call) {
  const size_t count = test_draw_between(seed, 1, 40);
  add_pair(call, &count, 1, RONDO_COMBINE_MEAN);
  call->inputs[0].has_no_gradient = call->inputs[1].has_no_gradient = true;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const pair_loss *family = call->op->family;
  return family->op(program, in[0], in[1], (rondo_combine)call->sizes[COMBINE], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const pair_loss *family = call->op->family;
  const size_t count = test_input_elements(call, 0);
  y[0] = 0;
  for (size_t i = 0; i < count; i++) y[0] += family->value_at(in[0][i], in[1][i]);
  if (call->sizes[COMBINE] == RONDO_COMBINE_MEAN) y[0] /= (double)count;
}

static double square(double a, double b) { return (a - b) * (a - b); }

static double binary_entropy(double x, double t) {
  return t * (x < -700 ? -x : log1p(exp(-x))) + (1 - t) * (x > 700 ? x : log1p(exp(x)));
}

TEST(test_what_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value a, b, y;
  assert_ok(rondo_program_input(program, "a", RONDO_F32, (size_t[]){4}, 1, &a));
  assert_ok(rondo_program_input(program, "b", RONDO_F16, (size_t[]){4}, 1, &b));
  assert_invalid(rondo_op_mse(program, a, b, RONDO_COMBINE_MEAN, &y), RONDO_REASON_SHAPE);
  assert_message("'b' [4] f16");
  assert_invalid(rondo_op_mse(program, a, a, (rondo_combine)7, &y), RONDO_REASON_OUT_OF_RANGE);
}

#define LOSS(op, value_at, low, high, target_low) \
  .build = build, .reference = reference, .family = &(const pair_loss) { op, value_at, low, high, target_low }

static const test_operator rows[] = {
    {.name = "mse", LOSS(rondo_op_mse, square, -1, 1, -1), .draw = draw},
    {.name = "mse", LOSS(rondo_op_mse, square, -1, 1, -1), .draw = draw_many},
    {.name = "bce_with_logits", LOSS(rondo_op_bce_with_logits, binary_entropy, -5, 5, 0), .draw = draw},
    {.name = "bce_with_logits", LOSS(rondo_op_bce_with_logits, binary_entropy, -1e4, 1e4, 0), .draw = draw_large},
};

TEST_OPERATOR_MAIN(rows)
