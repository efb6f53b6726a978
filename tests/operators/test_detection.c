/* SPDX-License-Identifier: MIT
 * Detection and transforms (ON-3): roi_align, max_roi_pool, non_max_suppression, local_response_norm, fold, dft, stft
 * and det.
 */
#include <math.h>
#include <string.h>

#include "support/test_operator.h"
#include "support/test_program.h"

#define TURN 6.283185307179586

/* local_response_norm ---------------------------------------------------------------------------------------------- */

static const float betas[] = {0.75f, 0.5f, 0.6f};

static void draw_response(uint64_t *seed, test_call *call) {
  const size_t shape[] = {test_draw_between(seed, 1, 2), test_draw_between(seed, 1, 6), test_draw_between(seed, 1, 4)};
  call->sizes[0] = test_draw_between(seed, 1, 5);
  call->sizes[1] = test_random_below(seed, sizeof betas / sizeof betas[0]);
  test_add_float(call, shape, 3, -2, 2);
}

static rondo_status build_response(const test_call *call, rondo_program *program, const rondo_value *in,
                                   rondo_value *y) {
  return rondo_op_local_response_norm(program, in[0], call->sizes[0], 0.5f, betas[call->sizes[1]], 1.5f, y);
}

static void refer_response(const test_call *call, double *const *in, double *y) {
  const size_t *shape = call->inputs[0].shape, size = call->sizes[0];
  for (size_t i = 0; i < shape[0] * shape[1] * shape[2]; i++) {
    const size_t channel = i / shape[2] % shape[1];
    double sum = 0;
    for (size_t k = 0; k < size; k++) {
      const size_t other = channel + k - (size - 1) / 2; /* below 0 it is very large */
      if (other < shape[1]) sum += pow(in[0][i + other * shape[2] - channel * shape[2]], 2);
    }
    y[i] = in[0][i] / pow(1.5 + 0.5 / (double)size * sum, (double)betas[call->sizes[1]]);
  }
}

/* dft -------------------------------------------------------------------------------------------------------------- */

enum { INVERSE, ONESIDED, LENGTH };

static void draw_dft(uint64_t *seed, test_call *call) {
  const size_t shape[] = {2, test_draw_between(seed, 1, 9), 3, test_draw_between(seed, 1, 2)};
  call->sizes[INVERSE] = test_draw_between(seed, 0, 1);
  call->sizes[ONESIDED] = test_draw_between(seed, 0, 1);
  call->sizes[LENGTH] = test_random_below(seed, 2) == 0 ? shape[1] : test_draw_between(seed, 1, 9);
  test_add_float(call, shape, 4, -1, 1);
}

static rondo_status build_dft(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const rondo_dft_options options = {RONDO_DFT_OPTIONS_INIT, .inverse = call->sizes[INVERSE] != 0,
                                     .onesided = call->sizes[ONESIDED] != 0, .dimension = 1,
                                     .length = call->sizes[LENGTH]};
  return rondo_op_dft(program, in[0], &options, y);
}

/* Of k real numbers: the sum over the numbers of a transform, of which those from k / 2 + 1 on are conjugates. */
static void refer_real(const test_call *call, double *const *in, double *y) {
  const size_t *shape = call->inputs[0].shape, length = call->sizes[LENGTH], parts = shape[3];
  for (size_t i = 0; i < 2 * length * 3; i++) {
    y[i] = 0;
    for (size_t k = 0; k < length; k++) {
      const size_t from = k <= length / 2 ? k : length - k;
      const double angle = TURN * (double)(k * (i / 3 % length)) / (double)length, sign = from == k ? -1 : 1;
      const double *x = in[0] + ((i / 3 / length * shape[1] + from) * 3 + i % 3) * parts;
      if (from < shape[1]) y[i] += (x[0] * cos(angle) + sign * (parts == 2 ? x[1] : 0) * sin(angle)) / (double)length;
    }
  }
}

static void refer_dft(const test_call *call, double *const *in, double *y) {
  if (call->sizes[INVERSE] && call->sizes[ONESIDED]) {
    refer_real(call, in, y);
    return;
  }
  const size_t *shape = call->inputs[0].shape, length = call->sizes[LENGTH], parts = shape[3];
  const size_t count = call->sizes[ONESIDED] ? length / 2 + 1 : length;
  const double sign = call->sizes[INVERSE] ? 1 : -1, share = call->sizes[INVERSE] ? 1 / (double)length : 1;
  for (size_t i = 0; i < 2 * count * 3; i++) {
    double real = 0, imaginary = 0;
    for (size_t k = 0; k < length && k < shape[1]; k++) {
      const double *x = in[0] + ((i / 3 / count * shape[1] + k) * 3 + i % 3) * parts;
      const double angle = sign * TURN * (double)(k * (i / 3 % count)) / (double)length;
      const double other = parts == 2 ? x[1] : 0;
      real += x[0] * cos(angle) - other * sin(angle);
      imaginary += x[0] * sin(angle) + other * cos(angle);
    }
    y[2 * i] = real * share;
    y[2 * i + 1] = imaginary * share;
  }
}

/* det -------------------------------------------------------------------------------------------------------------- */

static void draw_det(uint64_t *seed, test_call *call) {
  const size_t m = test_draw_between(seed, 1, 5);
  test_add_float(call, (size_t[]){test_draw_between(seed, 1, 3), m, m}, 3, -1, 1);
}

static rondo_status build_det(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  (void)call;
  return rondo_op_det(program, in[0], y);
}

/* By the first row. */
static double expand(const double *a, size_t m) {
  double sum = 0, minor[16];
  if (m == 0) return 1;
  for (size_t j = 0; j < m; j++) {
    for (size_t i = 0; i < (m - 1) * (m - 1); i++) {
      const size_t column = i % (m - 1);
      minor[i] = a[(i / (m - 1) + 1) * m + column + (column >= j ? 1 : 0)];
    }
    sum += (j % 2 == 0 ? 1 : -1) * a[j] * expand(minor, m - 1);
  }
  return sum;
}

static void refer_det(const test_call *call, double *const *in, double *y) {
  const size_t *shape = call->inputs[0].shape;
  for (size_t i = 0; i < shape[0]; i++) y[i] = expand(in[0] + i * shape[1] * shape[1], shape[1]);
}

/* fold ------------------------------------------------------------------------------------------------------------- */

enum { CHANNELS = 2, HEIGHT = 7, WIDTH = 6, TAPS = 2 * 3 };

static void draw_fold(uint64_t *seed, test_call *call) {
  size_t *s = call->sizes;
  s[0] = test_draw_between(seed, 1, 2); /* stride */
  s[1] = test_draw_between(seed, 1, 2); /* dilation of rows */
  s[2] = test_draw_between(seed, 0, 1); /* padding of columns */
  s[3] = (HEIGHT - s[1] - 1) / s[0] + 1;
  s[4] = (WIDTH + 2 * s[2] - 3) / s[0] + 1;
  test_add_float(call, (size_t[]){2, CHANNELS * TAPS, s[3] * s[4]}, 3, -1, 1);
}

static rondo_status build_fold(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
  const size_t *s = call->sizes;
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .stride = {s[0], s[0]}, .dilation = {s[1], 1},
                                      .padding = {0, s[2]}};
  return rondo_op_fold(program, in[0], (size_t[]){HEIGHT, WIDTH}, (size_t[]){2, 3}, &options, 2, y);
}

static void refer_fold(const test_call *call, double *const *in, double *y) {
  const size_t *s = call->sizes, windows = s[3] * s[4];
  memset(y, 0, 2 * CHANNELS * HEIGHT * WIDTH * sizeof *y);
  for (size_t i = 0; i < 2 * CHANNELS * TAPS * windows; i++) {
    const size_t window = i % windows, tap = i / windows % TAPS, channel = i / windows / TAPS;
    const size_t row = window / s[4] * s[0] + tap / 3 * s[1], column = window % s[4] * s[0] + tap % 3 - s[2];
    if (row < HEIGHT && column < WIDTH) y[(channel * HEIGHT + row) * WIDTH + column] += in[0][i];
  }
}

/* Others ----------------------------------------------------------------------------------------------------------- */

static rondo_value input(rondo_program *program, const char *name, rondo_type type, const size_t *shape, size_t rank) {
  rondo_value made;
  assert_ok(rondo_program_input(program, name, type, shape, rank, &made));
  return made;
}

/* Frames of a cosine of 2 turns in 8 elements. */
TEST(test_stft_finds_a_frequency) {
  float signal[16], window[8], y[3 * 5 * 2];
  rondo_program *program = test_new_program();
  rondo_value made;
  for (int i = 0; i < 16; i++) signal[i] = cosf((float)(TURN * 2 * i / 8));
  for (int i = 0; i < 8; i++) window[i] = 0.5f;
  const rondo_value x = input(program, "x", RONDO_F32, (size_t[]){1, 16, 1}, 3);
  const rondo_value w = input(program, "w", RONDO_F32, (size_t[]){8}, 1);
  assert_ok(rondo_op_stft(program, x, w, 4, 8, true, &made));
  assert_ok(rondo_program_output(program, "y", made));
  test_run_program(t, program, (const test_bytes[]){TEST_BYTES("x", signal), TEST_BYTES("w", window), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", y), {.name = NULL}});
  for (int i = 0; i < 15; i++) {
    assert_true(fabsf(y[2 * i] - (i % 5 == 2 ? 2.0f : 0.0f)) < 1e-4f);
    assert_true(fabsf(y[2 * i + 1]) < 1e-4f);
  }
}

/* The best box hides the one that overlaps it, not the others; classes do not see each other. */
TEST(test_overlapping_boxes_of_non_max_suppression) {
  float boxes[4 * 4] = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 2, 2, 3, 3, 3, 3, 2.1f, 2};
  float scores[2 * 4] = {0.9f, 0.8f, 0.7f, 0.6f, 0.1f, 0.5f, 0.2f, 0.05f};
  int32_t selected[8 * 3], count;
  const int32_t wanted[8 * 3] = {0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const rondo_non_max_suppression_options options = {RONDO_NON_MAX_SUPPRESSION_OPTIONS_INIT, .iou_threshold = 0.5f,
                                                     .score_threshold = 0.1f, .has_score_threshold = true};
  rondo_program *program = test_new_program();
  rondo_value of_selected, of_count;
  const rondo_value b = input(program, "boxes", RONDO_F32, (size_t[]){1, 4, 4}, 3);
  const rondo_value s = input(program, "scores", RONDO_F32, (size_t[]){1, 2, 4}, 3);
  assert_ok(rondo_op_non_max_suppression(program, b, s, &options, &of_selected, &of_count));
  assert_ok(rondo_program_output(program, "selected", of_selected));
  assert_ok(rondo_program_output(program, "count", of_count));
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("boxes", boxes), TEST_BYTES("scores", scores), {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("selected", selected), TEST_BYTES("count", count), {.name = NULL}});
  assert_int_equal(count, 4);
  assert_memory_equal(selected, wanted, sizeof wanted);
}

/* On an image whose elements are their columns, samples are the columns of their places. */
TEST(test_regions_of_roi_align) {
  float x[2 * 8 * 8], rois[2 * 4] = {1, 1, 5, 5, 0, 2, 7, 6}, numbered[2 * 5] = {0, 1, 1, 4, 4, 1, 0, 2, 7, 6};
  float aligned[2 * 2 * 2], largest[2 * 2 * 2];
  int32_t images[2] = {0, 1};
  const rondo_roi_align_options options = {RONDO_ROI_ALIGN_OPTIONS_INIT, .size = {2, 2}, .sampling_ratio = 2};
  rondo_program *program = test_new_program();
  rondo_value y, z;
  for (int i = 0; i < 128; i++) x[i] = (float)(i % 8 + i / 64 * 100);
  const rondo_value v = input(program, "x", RONDO_F32, (size_t[]){2, 1, 8, 8}, 4);
  const rondo_value r = input(program, "rois", RONDO_F32, (size_t[]){2, 4}, 2);
  const rondo_value n = input(program, "numbered", RONDO_F32, (size_t[]){2, 5}, 2);
  const rondo_value i = input(program, "images", RONDO_I32, (size_t[]){2}, 1);
  assert_ok(rondo_op_roi_align(program, v, r, i, &options, &y));
  assert_ok(rondo_op_max_roi_pool(program, v, n, (size_t[]){2, 2}, 0, &z));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_output(program, "z", z));
  test_run_program(t, program,
                   (const test_bytes[]){TEST_BYTES("x", x),
                                        TEST_BYTES("rois", rois),
                                        TEST_BYTES("numbered", numbered),
                                        TEST_BYTES("images", images),
                                        {.name = NULL}},
                   (const test_bytes[]){TEST_BYTES("y", aligned), TEST_BYTES("z", largest), {.name = NULL}});
  const float means[8] = {2, 4, 2, 4, 101.75f, 105.25f, 101.75f, 105.25f};
  const float maxima[8] = {2, 4, 2, 4, 103, 107, 103, 107};
  for (int k = 0; k < 8; k++) assert_true(fabsf(aligned[k] - means[k]) < 1e-4f && largest[k] == maxima[k]);
}

/* A region of 2e9 x 2e9 has 2^40 samples, nearly all of them outside of the image. */
TEST(test_regions_that_are_much_larger_than_the_image) {
  float x[4 * 4], rois[2 * 4] = {-1e9f, -1e9f, 1e9f, 1e9f, NAN, 0, INFINITY, 3}, means[2], maxima[2];
  int32_t images[2] = {0, 0};
  rondo_roi_align_options options = {RONDO_ROI_ALIGN_OPTIONS_INIT, .size = {1, 1}};
  rondo_program *program = test_new_program();
  rondo_value mean, largest;
  for (int i = 0; i < 16; i++) x[i] = -1;
  const rondo_value v = input(program, "x", RONDO_F32, (size_t[]){1, 1, 4, 4}, 4);
  const rondo_value r = input(program, "rois", RONDO_F32, (size_t[]){2, 4}, 2);
  const rondo_value i = input(program, "images", RONDO_I32, (size_t[]){2}, 1);
  assert_ok(rondo_op_roi_align(program, v, r, i, &options, &mean));
  options.takes_max = true;
  assert_ok(rondo_op_roi_align(program, v, r, i, &options, &largest));
  assert_ok(rondo_program_output(program, "mean", mean));
  assert_ok(rondo_program_output(program, "largest", largest));
  test_run_program(
      t, program,
      (const test_bytes[]){TEST_BYTES("x", x), TEST_BYTES("rois", rois), TEST_BYTES("images", images), {.name = NULL}},
      (const test_bytes[]){TEST_BYTES("mean", means), TEST_BYTES("largest", maxima), {.name = NULL}});
  for (int k = 0; k < 2; k++) assert_true(fabsf(means[k]) < 1e-6f && maxima[k] == 0);
}

/* A region whose image is not a number fails the run, as one whose image does not exist. */
TEST(test_regions_of_max_roi_pool_without_an_image) {
  float rois[2 * 5] = {0, 0, 0, 3, 3, NAN, 0, 0, 3, 3}, y[2];
  rondo_program *program = test_new_program();
  rondo_value made;
  const rondo_value v = input(program, "x", RONDO_F32, (size_t[]){1, 1, 4, 4}, 4);
  const rondo_value r = input(program, "indices", RONDO_F32, (size_t[]){2, 5}, 2);
  assert_ok(rondo_op_max_roi_pool(program, v, r, (size_t[]){1, 1}, 0, &made));
  test_wrong_index(t, program, made, rois, sizeof rois,
                   "max_roi_pool (operator 0): rois has -1 at position 1, which is not in 0 .. 0; the region of image "
                   "0 was used",
                   y, sizeof y);
}

UNIT_TEST(test_what_cannot_be_detected) {
  rondo_program *program = test_new_program();
  rondo_value y, count;
  const rondo_value x = input(program, "x", RONDO_F32, (size_t[]){1, 2, 3}, 3);
  const rondo_value pairs = input(program, "pairs", RONDO_F32, (size_t[]){1, 3, 2}, 3);
  const rondo_roi_align_options align = {RONDO_ROI_ALIGN_OPTIONS_INIT, .spatial_scale = NAN};
  const rondo_roi_align_options samples = {RONDO_ROI_ALIGN_OPTIONS_INIT, .sampling_ratio = (size_t)1 << 33};
  const rondo_non_max_suppression_options nms = {RONDO_NON_MAX_SUPPRESSION_OPTIONS_INIT, .iou_threshold = NAN};
  const rondo_dft_options no_dimension = {RONDO_DFT_OPTIONS_INIT, .dimension = SIZE_MAX};
  assert_error(rondo_op_non_max_suppression(program, x, x, NULL, &y, &count), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_error(rondo_op_non_max_suppression(program, x, x, &nms, &y, &count), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_roi_align(program, x, x, x, &align, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_roi_align(program, x, x, x, &samples, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_op_max_roi_pool(program, x, x, (size_t[]){2, 2}, 1, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_error(rondo_op_local_response_norm(program, x, 0, 1, 1, 1, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_local_response_norm(program, x, SIZE_MAX, 1, 1, 1, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_message("local_response_norm: avg_pool(x result of reshape"); /* the call, and what refuses it */
  assert_error(rondo_op_det(program, x, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_dft(program, x, NULL, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  assert_error(rondo_op_dft(program, pairs, &no_dimension, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  const rondo_dft_options to_real = {RONDO_DFT_OPTIONS_INIT, .inverse = true, .onesided = true};
  assert_error(rondo_op_dft(program, pairs, &to_real, &y), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_error(rondo_op_stft(program, x, (rondo_value){0}, 1, 1, false, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_error(rondo_op_fold(program, x, (size_t[]){4}, (size_t[]){5}, NULL, 1, &y), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_SHAPE);
  assert_message("fold: windows of 5 elements do not fit along dimension 0 of the image, which has 4 elements");
  assert_int_equal(y.id, 0);
  rondo_program_destroy(program);
}

#define ROW(name) .draw = draw_##name, .build = build_##name, .reference = refer_##name

static const test_operator rows[] = {
    {.name = "local_response_norm", ROW(response), .tolerance = 1e-5, .gradient_tolerance = 1e-3},
    {.name = "dft", ROW(dft), .tolerance = 1e-5, .gradient_tolerance = 1e-3, .only_f32 = true},
    {.name = "det", ROW(det), .tolerance = 1e-5, .has_no_gradient = true},
    {.name = "fold", ROW(fold), .tolerance = 1e-5, .gradient_tolerance = 1e-3},
};

TEST_OPERATOR_MAIN(rows)
