/* SPDX-License-Identifier: MIT
 * batch_norm with the statistics of the batch, which update running statistics, and with given statistics.
 */
#include <math.h>

#include "support/test_operator.h"
#include "support/test_program.h"

#define EPSILON 0.1

enum { HAS_SCALE, HAS_SHIFT }; /* sizes */

/* Sometimes many images, so that the statistics of a channel are computed in parts, or many neighbouring channels. */
static void draw(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 2, 4), kind = test_random_below(seed, 10);
  test_draw_shape(seed, rank, 6, shape);
  if (kind == 0) shape[0] = test_draw_between(seed, 9000, 10000) / test_elements(&shape[1], rank - 1);
  if (kind == 1 && rank == 2) shape[1] = test_draw_between(seed, 250, 270);
  if (kind == 2) shape[rank - 1] = test_draw_between(seed, 250, 270);
  test_add_float(call, shape, rank, -2, 3);
  call->sizes[HAS_SCALE] = test_random_below(seed, 4) != 0;
  call->sizes[HAS_SHIFT] = test_random_below(seed, 4) != 0;
  if (call->sizes[HAS_SCALE]) test_add_float(call, &shape[1], 1, 0.5, 2)->type = RONDO_F32;
  if (call->sizes[HAS_SHIFT]) test_add_float(call, &shape[1], 1, -1, 1)->type = RONDO_F32;
}

static rondo_batch_norm_options options_of(const test_call *call, const rondo_value *in) {
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .epsilon = (float)EPSILON};
  if (call->sizes[HAS_SCALE]) options.scale = in[1];
  if (call->sizes[HAS_SHIFT]) options.shift = in[1 + call->sizes[HAS_SCALE]];
  return options;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const rondo_batch_norm_options options = options_of(call, in);
  return rondo_op_batch_norm(program, in[0], &options, result);
}

/* The elements of a channel: a plane of each image. */
typedef struct channel_elements {
  size_t count, plane, channels, channel;
} channel_elements;

static channel_elements elements_of(const test_call *call, size_t channel) {
  const test_tensor *value = &call->inputs[0];
  return (channel_elements){.count = test_input_elements(call, 0) / value->shape[1],
                            .plane = test_elements(value->shape + 2, value->rank - 2),
                            .channels = value->shape[1],
                            .channel = channel};
}

static size_t place_of(const channel_elements *of, size_t k) {
  return (k / of->plane * of->channels + of->channel) * of->plane + k % of->plane;
}

static void normalise(const test_call *call, double *const *in, size_t channel, double mean, double variance,
                      double *y) {
  const double scale = call->sizes[HAS_SCALE] ? in[1][channel] : 1;
  const double shift = call->sizes[HAS_SHIFT] ? in[1 + call->sizes[HAS_SCALE]][channel] : 0;
  const channel_elements of = elements_of(call, channel);
  for (size_t k = 0; k < of.count; k++) {
    const size_t i = place_of(&of, k);
    y[i] = (in[0][i] - mean) / sqrt(variance + (double)(float)EPSILON) * scale + shift;
  }
}

static void reference(const test_call *call, double *const *in, double *y) {
  for (size_t c = 0; c < call->inputs[0].shape[1]; c++) {
    const channel_elements of = elements_of(call, c);
    double mean = 0, variance = 0;
    for (size_t k = 0; k < of.count; k++) mean += in[0][place_of(&of, k)] / (double)of.count;
    for (size_t k = 0; k < of.count; k++) {
      const double apart = in[0][place_of(&of, k)] - mean;
      variance += apart * apart / (double)of.count;
    }
    normalise(call, in, c, mean, variance, y);
  }
}

/* By given statistics, the last two inputs. */
static void draw_inference(uint64_t *seed, test_call *call) {
  draw(seed, call);
  const size_t channels = call->inputs[0].shape[1];
  for (int i = 0; i < 2; i++) {
    test_tensor *given = test_add_float(call, &channels, 1, i == 0 ? -1 : 0.1, 1);
    given->type = RONDO_F32;
    given->has_no_gradient = true;
  }
}

static rondo_status build_inference(const test_call *call, rondo_program *program, const rondo_value *in,
                                    rondo_value *result) {
  rondo_batch_norm_options options = options_of(call, in);
  options.inference = true;
  options.running_mean = in[call->input_count - 2];
  options.running_variance = in[call->input_count - 1];
  return rondo_op_batch_norm(program, in[0], &options, result);
}

static void reference_inference(const test_call *call, double *const *in, double *y) {
  for (size_t c = 0; c < call->inputs[0].shape[1]; c++)
    normalise(call, in, c, in[call->input_count - 2][c], in[call->input_count - 1][c], y);
}

/* Two channels of three elements each: means 2 and 20, variances 2/3 and 200/3. */
TEST(test_running_statistics) {
  rondo_program *program = test_new_program();
  rondo_value x, y, inferred;
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .momentum = 0.5f};
  const float data[3][2] = {{1, 10}, {2, 20}, {3, 30}};
  float means[2], variances[2], result[3][2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3, 2}, 2, &x));
  assert_ok(rondo_program_state(program, "mean", RONDO_F32, (size_t[]){2}, 1, &options.running_mean));
  assert_ok(rondo_program_state(program, "variance", RONDO_F32, (size_t[]){2}, 1, &options.running_variance));
  assert_ok(rondo_op_batch_norm(program, x, &options, &y));
  options.inference = true;
  assert_ok(rondo_op_batch_norm(program, x, &options, &inferred));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "inferred", inferred));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_write(compiled, "x", data, sizeof data));
  for (int run = 0; run < 2; run++)
    assert_ok(run == 0 ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
  assert_ok(rondo_compiled_read(compiled, "mean", means, sizeof means));
  assert_ok(rondo_compiled_read(compiled, "variance", variances, sizeof variances));
  assert_near(means, ((float[]){1.5f, 15}), 2, 1e-6f);
  assert_near(variances, ((float[]){0.75f, 75}), 2, 1e-6f);
  /* The second run inferred by what the first one left: means 1 and 10, variances 1/2 and 50. */
  assert_ok(rondo_compiled_read(compiled, "inferred", result, sizeof result));
  assert_near(&result[2][0], &(float){2.8284f}, 1, 1e-3f);
  assert_near(&result[2][1], &(float){2.8284f}, 1, 1e-3f);
}

TEST(test_what_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x, three, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){3, 2}, 2, &x));
  assert_ok(rondo_program_state(program, "three", RONDO_F32, (size_t[]){3}, 1, &three));
  rondo_batch_norm_options options = {RONDO_BATCH_NORM_OPTIONS_INIT, .scale = three};
  assert_invalid(rondo_op_batch_norm(program, x, &options, &y), RONDO_REASON_SHAPE);
  options = (rondo_batch_norm_options){RONDO_BATCH_NORM_OPTIONS_INIT, .running_mean = three};
  assert_invalid(rondo_op_batch_norm(program, x, &options, &y), RONDO_REASON_NULL_ARGUMENT);
  options.running_variance = three;
  assert_invalid(rondo_op_batch_norm(program, x, &options, &y), RONDO_REASON_SHAPE);
  options.momentum = 2;
  assert_invalid(rondo_op_batch_norm(program, x, &options, &y), RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_batch_norm_options){RONDO_BATCH_NORM_OPTIONS_INIT, .inference = true};
  assert_invalid(rondo_op_batch_norm(program, x, &options, &y), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_op_batch_norm(program, three, &(rondo_batch_norm_options){RONDO_BATCH_NORM_OPTIONS_INIT}, &y),
                 RONDO_REASON_SHAPE);
  assert_true(y.id == 0);
}

#define OPERATOR .build = build, .reference = reference
#define INFERENCE .build = build_inference, .reference = reference_inference

static const test_operator rows[] = {
    {.name = "batch_norm", .draw = draw, OPERATOR, .tolerance = 1e-5, .gradient_tolerance = 3e-4},
    {.name = "batch_norm", .draw = draw_inference, INFERENCE, .tolerance = 1e-5, .gradient_tolerance = 3e-4},
};

TEST_OPERATOR_MAIN(rows)
