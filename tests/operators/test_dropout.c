/* SPDX-License-Identifier: MIT
 * dropout against the same numbers drawn here: different numbers in each run, the same recorded and eager; p = 0, 1.
 */
#include <rondo/random.h>

#include "support/test_operator.h"
#include "support/test_program.h"

#define PROBABILITY 0.25

static const uint64_t no_seed[2] = {0, 0};

static bool is_dropped(const uint64_t state[2], size_t group, size_t i, double probability) {
  const rondo_random4 drawn = rondo_philox(state[0], group + i / 4, state[1]);
  return drawn.x[i % 4] >> 8 < (uint32_t)(probability * 0x1p24);
}

static void draw(uint64_t *seed, test_call *call) {
  static const double probabilities[] = {0, 0.25, 1};
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 0, 3);
  test_draw_shape(seed, rank, 20, shape);
  test_add_float(call, shape, rank, 0.5, 1);
  test_tensor *probability = test_add_float(call, NULL, 0, 0, 1);
  probability->type = RONDO_F32;
  probability->has_no_gradient = true;
  probability->values = &probabilities[test_random_below(seed, 3)];
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  (void)call;
  return rondo_op_dropout(program, in[0], in[1], result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const double probability = in[1][0];
  for (size_t i = 0; i < test_input_elements(call, 0); i++)
    y[i] = is_dropped(no_seed, 0, i, probability) ? 0 : in[0][i] / (1 - probability);
}

/* Two dropouts of 1001 ones each, after one another, and the gradient of the sum of the second in the first. */
static rondo_compiled *compile_two(rondo_device *device) {
  const size_t count = 1001;
  rondo_program *program = test_new_program();
  rondo_value x, probability, first, second, zeros, loss, gradient;
  assert_ok(rondo_program_state(program, "x", RONDO_F32, &count, 1, &x));
  assert_ok(rondo_program_cell(program, "probability", (float)PROBABILITY, &probability));
  assert_ok(rondo_op_dropout(program, x, probability, &first));
  assert_ok(rondo_op_dropout(program, first, probability, &second));
  assert_ok(rondo_op_full(program, RONDO_F32, &count, 1, 0, &zeros));
  assert_ok(rondo_op_mse(program, second, zeros, RONDO_COMBINE_SUM, &loss));
  assert_ok(rondo_program_gradients(program, loss, &x, 1, &gradient));
  assert_ok(rondo_program_output(program, "first", first));
  assert_ok(rondo_program_output(program, "second", second));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  return test_compile(program, device, NULL);
}

static void check_run(rondo_compiled *compiled, const uint64_t state[2]) {
  float first[1001], second[1001], gradient[1001];
  const float scale = 1 / (1 - (float)PROBABILITY);
  assert_ok(rondo_compiled_read(compiled, "first", first, sizeof first));
  assert_ok(rondo_compiled_read(compiled, "second", second, sizeof second));
  assert_ok(rondo_compiled_read(compiled, "gradient", gradient, sizeof gradient));
  for (size_t i = 0; i < 1001; i++) {
    const bool stays = !is_dropped(state, 0, i, PROBABILITY), stays_again = !is_dropped(state, 251, i, PROBABILITY);
    const float value = stays && stays_again ? scale * scale : 0, slope = 2 * value * scale * scale;
    assert_true(first[i] == (stays ? scale : 0));
    assert_near(&second[i], &value, 1, 1e-6f);
    assert_near(&gradient[i], &slope, 1, 1e-6f);
  }
}

TEST(test_runs_differ) {
  rondo_compiled *compiled = compile_two(t->device);
  uint64_t random[2] = {12345678901234567u, 40};
  float ones[1001];
  for (size_t i = 0; i < 1001; i++) ones[i] = 1;
  assert_ok(rondo_compiled_write(compiled, "x", ones, sizeof ones));
  assert_ok(rondo_compiled_write(compiled, "random", random, sizeof random));
  for (int run = 0; run < 6; run++) {
    assert_ok(run % 2 == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
    check_run(compiled, random);
    random[1] += 4;
    uint64_t now[2];
    assert_ok(rondo_compiled_read(compiled, "random", now, sizeof now));
    assert_memory_equal(now, random, sizeof now);
  }
  assert_ok(rondo_compiled_write(compiled, "probability", &(float){0}, sizeof(float)));
  assert_ok(rondo_compiled_run(compiled));
  float second[1001];
  assert_ok(rondo_compiled_read(compiled, "second", second, sizeof second));
  assert_memory_equal(second, ones, sizeof ones);
  assert_ok(rondo_compiled_destroy(compiled));
}

/* About as many elements are dropped as the probability says. */
TEST(test_share) {
  size_t dropped = 0;
  for (size_t i = 0; i < 100000; i++) dropped += is_dropped(no_seed, 0, i, PROBABILITY);
  assert_true(dropped > 24300 && dropped < 25700);
}

TEST(test_what_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4}, 1, &x));
  assert_invalid(rondo_op_dropout(program, x, x, &y), RONDO_REASON_SHAPE);
  assert_message("dropout(value 'x' [4], probability 'x' [4]");
  /* The failed call left nothing: the name is free. */
  assert_ok(rondo_program_state(program, "random", RONDO_F32, NULL, 0, &y));
  assert_invalid(rondo_op_dropout(program, x, y, &x), RONDO_REASON_DUPLICATE_NAME);
}

#define OPERATOR .build = build, .reference = reference

static const test_operator rows[] = {
    {.name = "dropout", .draw = draw, OPERATOR, .has_state = true},
};

TEST_OPERATOR_MAIN(rows)
