/* SPDX-License-Identifier: MIT
 * cross_entropy: labels of both types, rows that are ignored, label smoothing, weights of classes (PR-1); wrong labels.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { IGNORES, IGNORED }; /* sizes */
enum { SMOOTHING };        /* numbers */

static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 3);
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 4) == 0) shape[rank - 1] = test_draw_between(seed, 200, 1400);
  const size_t columns = shape[rank - 1];
  test_add_float(call, shape, rank, -4, 4);
  test_tensor *labels = test_add_index(call, shape, rank - 1, columns);
  if (test_random_below(seed, 2) == 0) labels->type = RONDO_I64;
  call->numbers[SMOOTHING] = test_random_below(seed, 2) == 0 ? 0 : 0.25;
  call->sizes[IGNORES] = test_random_below(seed, 2);
  call->sizes[IGNORED] = columns - 1;
}

/* PyTorch's weight=, which is F32 for all types of logits. */
static void draw_weighted(uint64_t *seed, test_call *call) {
  draw(seed, call);
  const size_t columns = call->inputs[0].shape[call->inputs[0].rank - 1];
  test_tensor *weights = test_add_float(call, &columns, 1, 0.25, 2);
  weights->type = RONDO_F32;
  weights->has_no_gradient = true;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const rondo_cross_entropy_options options = {
      RONDO_CROSS_ENTROPY_OPTIONS_INIT, .label_smoothing = (float)call->numbers[SMOOTHING],
      .ignores_label = call->sizes[IGNORES] == 1, .ignored_label = (int64_t)call->sizes[IGNORED],
      .weights = call->input_count > 2 ? in[2] : (rondo_value){0}};
  return rondo_op_cross_entropy_with(program, in[0], in[1], &options, result);
}

/* weights: NULL for none. */
static double row_loss(const double *x, size_t columns, size_t label, double smoothing, const double *weights) {
  double sum = 0, loss = 0;
  for (size_t i = 0; i < columns; i++) sum += exp(x[i]);
  for (size_t i = 0; i < columns; i++) {
    const double share = (i == label ? 1 - smoothing : 0) + smoothing / (double)columns;
    loss -= share * (weights == NULL ? 1 : weights[i]) * (x[i] - log(sum));
  }
  return loss;
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->inputs[0].shape[call->inputs[0].rank - 1];
  const double *weights = call->input_count > 2 ? in[2] : NULL;
  double total = 0, count = 0;
  for (size_t row = 0; row < test_input_elements(call, 1); row++) {
    const size_t label = (size_t)in[1][row];
    if (call->sizes[IGNORES] == 1 && label == call->sizes[IGNORED]) continue;
    total += row_loss(in[0] + row * columns, columns, label, call->numbers[SMOOTHING], weights);
    count += weights == NULL ? 1 : weights[label];
  }
  y[0] = count > 0 ? total / count : 0;
}

/* Large logits neither overflow nor lose what matters; the gradient of the right label stays between -1 and 0. */
TEST(test_large_logits) {
  const float x[9] = {1e4f, -1e4f, 0, 1e30f, 1e30f, -1e30f, -88, -100, -120};
  const float wanted = (float)((log(2) + 32 + log1p(exp(-12) + exp(-32))) / 3);
  const float slopes[9] = {0, 0, 0, 0.5f / 3, -0.5f / 3, 0, (1 - 6.144e-6f) / 3, 6.144e-6f / 3, -1.0f / 3};
  const int32_t given[3] = {0, 1, 2};
  float y, dx[9];
  rondo_program *program = test_new_program();
  rondo_value logits, labels, loss, gradient;
  assert_ok(rondo_program_input(program, "logits", RONDO_F32, (size_t[]){3, 3}, 2, &logits));
  assert_ok(rondo_program_input(program, "labels", RONDO_I32, (size_t[]){3}, 1, &labels));
  assert_ok(rondo_op_cross_entropy(program, logits, labels, &loss));
  assert_ok(rondo_program_gradients(program, loss, &logits, 1, &gradient));
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("logits", x), TEST_BYTES("labels", given), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("loss", y), TEST_BYTES("gradient", dx), {.name = NULL}});
  assert_near(&y, &wanted, 1, 1e-6f);
  assert_near(dx, slopes, 9, 1e-6f);
}

/* A program of 4 rows of 3 columns, compiled. */
static rondo_compiled *compile_labels(test_fixture *t, rondo_type type, const rondo_cross_entropy_options *options) {
  rondo_program *program = test_new_program();
  rondo_value logits, labels, loss;
  assert_ok(rondo_program_input(program, "logits", RONDO_F32, (size_t[]){4, 3}, 2, &logits));
  assert_ok(rondo_program_input(program, "labels", type, (size_t[]){4}, 1, &labels));
  assert_ok(rondo_op_cross_entropy_with(program, logits, labels, options, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  return test_compile(program, t->device, NULL);
}

/* The first wrong label is reported with its position, even if it does not fit an I32. An ignored -100 is valid. */
TEST(test_wrong_labels) {
  const struct {
    int64_t labels[4];
    const char *message;
  } cases[] = {{{0, 2, 3, -1},
                "labels has 3 at position 2, which is not in 0 .. 2; label 0 was used instead "
                "(rondo_cross_entropy_options can ignore a label)"},
               {{0, -100, 2, -1}, "labels has -1 at position 3, which is not in 0 .. 2"},
               {{INT64_C(1) << 40, 3, 0, 0}, "labels has 2147483647 or more at position 0"},
               {{0, 0, 0, INT64_MIN}, "labels has -2147483648 or less at position 3"}};
  const rondo_cross_entropy_options options = {RONDO_CROSS_ENTROPY_OPTIONS_INIT, .ignores_label = true,
                                               .ignored_label = -100};
  float loss;
  rondo_compiled *compiled = compile_labels(t, RONDO_I64, &options);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_ok(rondo_compiled_write(compiled, "labels", cases[i].labels, sizeof cases[i].labels));
    assert_ok(rondo_compiled_run(compiled));
    assert_error(rondo_compiled_read(compiled, "loss", &loss, sizeof loss), RONDO_EXECUTION_FAILED,
                 RONDO_REASON_OUT_OF_RANGE);
    assert_message("cross_entropy (operator 0)");
    assert_message(cases[i].message);
  }
  const int64_t ignored[] = {-100, -100, -100, -100};
  assert_ok(rondo_compiled_write(compiled, "labels", ignored, sizeof ignored));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "loss", &loss, sizeof loss));
  assert_true(loss == 0);
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_what_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value logits, labels, loss;
  assert_ok(rondo_program_input(program, "logits", RONDO_F32, (size_t[]){4, 3}, 2, &logits));
  assert_ok(rondo_program_input(program, "labels", RONDO_I32, (size_t[]){3}, 1, &labels));
  assert_invalid(rondo_op_cross_entropy(program, logits, labels, &loss), RONDO_REASON_SHAPE);
  assert_message("'labels' [3] i32");
  assert_invalid(rondo_op_cross_entropy(program, labels, labels, &loss), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_cross_entropy(program, logits, logits, &loss), RONDO_REASON_TYPE);
  assert_ok(rondo_program_input(program, "right", RONDO_I32, (size_t[]){4}, 1, &labels));
  rondo_cross_entropy_options options = {RONDO_CROSS_ENTROPY_OPTIONS_INIT, .label_smoothing = 1.5f};
  assert_invalid(rondo_op_cross_entropy_with(program, logits, labels, &options, &loss), RONDO_REASON_OUT_OF_RANGE);
  options.label_smoothing = 0;
  assert_ok(rondo_program_input(program, "few", RONDO_F32, (size_t[]){2}, 1, &options.weights));
  assert_invalid(rondo_op_cross_entropy_with(program, logits, labels, &options, &loss), RONDO_REASON_SHAPE);
  assert_message("weights must have 3 elements");
  assert_ok(rondo_program_input(program, "half", RONDO_F16, (size_t[]){3}, 1, &options.weights));
  assert_invalid(rondo_op_cross_entropy_with(program, logits, labels, &options, &loss), RONDO_REASON_TYPE);
}

#define OPERATOR .build = build, .reference = reference

static const test_operator rows[] = {
    {.name = "cross_entropy",
     .draw = draw,
     OPERATOR,
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 200},
    {.name = "cross_entropy", .draw = draw, OPERATOR, .takes_nan = true},
    {.name = "weighted cross_entropy",
     .draw = draw_weighted,
     OPERATOR,
     .tolerance = 2e-6,
     .gradient_tolerance = 1e-5,
     .gradient_samples = 200},
};

TEST_OPERATOR_MAIN(rows)
