/* SPDX-License-Identifier: MIT
 * cumsum and cumprod (PR-8, ON-3): along each dimension, exclusive and reversed, of floats and integers.
 */
#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSION, EXCLUSIVE, REVERSED }; /* sizes */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  test_draw_shape(seed, rank, 6, shape);
  call->sizes[DIMENSION] = test_draw_between(seed, 0, rank - 1);
  call->sizes[EXCLUSIVE] = test_draw_between(seed, 0, 1);
  call->sizes[REVERSED] = test_draw_between(seed, 0, 1);
  if (test_random_below(seed, 3) == 0) shape[rank - 1] = test_draw_between(seed, 200, 700);
  test_add_float(call, shape, rank, -2, 2);
}

static void draw_integers(uint64_t *seed, test_call *call) {
  draw(seed, call);
  call->inputs[0].type = test_random_below(seed, 2) == 0 ? RONDO_I32 : RONDO_I64;
  call->inputs[0].low = -50;
  call->inputs[0].high = 50;
}

/* Near 1 and -1, so that products of many stay in range; or small integers, whose products wrap around or are 0. */
static void draw_factors(uint64_t *seed, test_call *call) {
  draw(seed, call);
  call->inputs[0].low = 0.9;
  call->inputs[0].high = 1.1;
}

static void draw_few_integers(uint64_t *seed, test_call *call) {
  do call->input_count = 0, draw_integers(seed, call);
  while (call->inputs[0].shape[call->inputs[0].rank - 1] > 6);
  call->inputs[0].low = -9;
  call->inputs[0].high = 9;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  return rondo_op_cumsum(program, in[0], call->sizes[DIMENSION], call->sizes[EXCLUSIVE] != 0,
                         call->sizes[REVERSED] != 0, result);
}

static rondo_status build_products(const test_call *call, rondo_program *program, const rondo_value *in,
                                   rondo_value *result) {
  return rondo_op_cumprod(program, in[0], call->sizes[DIMENSION], call->sizes[EXCLUSIVE] != 0,
                          call->sizes[REVERSED] != 0, result);
}

static void cumulate(const test_call *call, double *const *in, bool multiplies, double *y) {
  const test_tensor *x = &call->inputs[0];
  const size_t dimension = call->sizes[DIMENSION], size = x->shape[dimension];
  const size_t inner = test_elements(x->shape + dimension + 1, x->rank - dimension - 1);
  for (size_t i = 0; i < test_input_elements(call, 0); i++) {
    const size_t at = i / inner % size;
    y[i] = multiplies;
    for (size_t k = 0; k < size; k++) {
      const bool is_before = call->sizes[REVERSED] ? k > at : k < at;
      const double x_k = in[0][i - at * inner + k * inner];
      if (is_before || (k == at && !call->sizes[EXCLUSIVE])) y[i] = multiplies ? y[i] * x_k : y[i] + x_k;
    }
  }
}

static void reference(const test_call *call, double *const *in, double *y) { cumulate(call, in, false, y); }
static void reference_of_products(const test_call *call, double *const *in, double *y) { cumulate(call, in, true, y); }

UNIT_TEST(test_what_has_no_sums) {
  rondo_program *program = test_new_program();
  rondo_value x, flags, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3}, 1, &x));
  assert_ok(rondo_program_input(program, "flags", RONDO_BOOL, (size_t[]){3}, 1, &flags));
  assert_error(rondo_op_cumsum(program, x, 1, false, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_cumsum(program, flags, 0, false, false, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE);
  assert_message("flags");
  rondo_program_destroy(program);
}

#define CUMSUM .build = build, .reference = reference
#define CUMPROD .build = build_products, .reference = reference_of_products, .has_no_gradient = true

static const test_operator rows[] = {
    {.name = "cumsum", .draw = draw, CUMSUM, .tolerance = 1e-4, .gradient_tolerance = 2e-3},
    {.name = "cumsum", .draw = draw_integers, CUMSUM, .only_f32 = true, .has_no_gradient = true},
    {.name = "cumprod", .draw = draw_factors, CUMPROD, .tolerance = 1e-4},
    {.name = "cumprod", .draw = draw_few_integers, CUMPROD, .only_f32 = true},
};

TEST_OPERATOR_MAIN(rows)
