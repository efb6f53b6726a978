/* SPDX-License-Identifier: MIT
 * Programs that read a value step by step, by slices, splits, gathers or lookups: the gradient of the value is one
 * tensor, to which each step adds its part, so that memory and work grow linearly with the number of steps. Checked
 * against one split of the whole, and against finite differences.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { WIDTH = 8, FEW = 6 };

static const rondo_value none;

typedef enum way {
  BY_SLICE,
  BY_SPLIT,
  BY_INDEX_SELECT,
  BY_GATHER,
  BY_EMBEDDING,
  THROUGH_RESHAPE, /* a slice, in each step, of a result that has all of x and is the same in all steps */
  THROUGH_TRANSPOSE,
  THROUGH_SCALE,
  THROUGH_POOL,
  WAYS,
  BY_WHOLE_SPLIT = WAYS
} way;

static const char *const way_names[] = {"slice",        "split",           "index_select",   "gather",
                                        "embedding",    "slice (reshape)", "slice (trans.)", "slice (scale)",
                                        "slice (pool)", "whole split"};

/* An index that is the same in every run. */
static rondo_value constant_index(rondo_program *program, size_t index, const size_t *shape, size_t rank) {
  rondo_value value;
  assert_ok(rondo_op_full(program, RONDO_I32, shape, rank, (double)index, &value));
  return value;
}

/* Row `step` by a split in up to three parts, of which one is used. */
static rondo_value split_off(rondo_program *program, rondo_value x, size_t steps, size_t step) {
  rondo_value parts[3];
  size_t lengths[3], count = 0, mine;
  if (step > 0) lengths[count++] = step;
  mine = count;
  lengths[count++] = 1;
  if (step + 1 < steps) lengths[count++] = steps - step - 1;
  assert_ok(rondo_op_split(program, x, 0, lengths, count, parts));
  return parts[mine];
}

/* All of x, by operators that each step adds again. The images of a pool are single pixels. */
static rondo_value pass_whole(rondo_program *program, way by, rondo_value x, size_t steps) {
  const size_t image[] = {1, steps, 1, WIDTH}, column[] = {steps, 1, WIDTH};
  const rondo_pooling_options pixel = {RONDO_POOLING_OPTIONS_INIT, .kernel = {1, 1}};
  rondo_value whole;
  if (by == THROUGH_TRANSPOSE) assert_ok(rondo_op_transpose(program, x, 0, 1, &whole));
  if (by == THROUGH_SCALE) assert_ok(rondo_op_scale(program, x, 1.0f, &whole));
  if (by == THROUGH_RESHAPE) {
    assert_ok(rondo_op_reshape(program, x, image, 4, &whole));
    assert_ok(rondo_op_reshape(program, whole, column, 3, &whole));
  }
  if (by == THROUGH_POOL) {
    assert_ok(rondo_op_reshape(program, x, image, 4, &whole));
    assert_ok(rondo_op_max_pool(program, whole, &pixel, &whole, NULL));
  }
  return whole;
}

static rondo_value take_row_through(rondo_program *program, way by, rondo_value x, size_t steps, size_t step) {
  size_t start[RONDO_MAX_DIMENSIONS] = {0}, length[RONDO_MAX_DIMENSIONS], rank;
  const size_t row[] = {1, WIDTH};
  rondo_type type;
  rondo_value taken = pass_whole(program, by, x, steps);
  assert_ok(rondo_value_shape(program, taken, &type, length, &rank));
  for (size_t i = 0; i < rank; i++) {
    if (length[i] != steps) continue;
    start[i] = step;
    length[i] = 1;
  }
  assert_ok(rondo_op_slice(program, taken, start, length, NULL, &taken));
  assert_ok(rondo_op_reshape(program, taken, row, 2, &taken));
  return taken;
}

/* Row `step` of x, which is [steps, WIDTH]. */
static rondo_value take_row(rondo_program *program, way by, rondo_value x, size_t steps, size_t step) {
  const size_t start[] = {step, 0}, length[] = {1, WIDTH}, one = 1;
  rondo_value row;
  if (by == BY_SPLIT) return split_off(program, x, steps, step);
  if (by >= THROUGH_RESHAPE) return take_row_through(program, by, x, steps, step);
  if (by == BY_SLICE) assert_ok(rondo_op_slice(program, x, start, length, NULL, &row));
  if (by == BY_INDEX_SELECT)
    assert_ok(rondo_op_index_select(program, x, constant_index(program, step, &one, 1), 0, &row));
  if (by == BY_GATHER) assert_ok(rondo_op_gather(program, x, constant_index(program, step, length, 2), 0, &row));
  if (by == BY_EMBEDDING) assert_ok(rondo_op_embedding(program, x, constant_index(program, step, &one, 1), &row));
  return row;
}

static void take_rows(rondo_program *program, way by, rondo_value x, size_t steps, rondo_value *rows) {
  if (by == BY_WHOLE_SPLIT) {
    size_t *lengths = calloc(steps, sizeof *lengths);
    assert_non_null(lengths);
    for (size_t i = 0; i < steps; i++) lengths[i] = 1;
    assert_ok(rondo_op_split(program, x, 0, lengths, steps, rows));
    free(lengths);
    return;
  }
  for (size_t i = 0; i < steps; i++) rows[i] = take_row(program, by, x, steps, i);
}

/* loss = sum(h_last h_last) of h_t = tanh(h_(t-1) a + x_t). */
static rondo_value add_recurrence(rondo_program *program, rondo_value *rows, size_t steps) {
  const size_t shape[] = {1, WIDTH};
  rondo_value a, h = rows[0], loss;
  assert_ok(rondo_program_state(program, "a", RONDO_F32, shape, 2, &a));
  for (size_t i = 1; i < steps; i++) {
    assert_ok(rondo_op_mul(program, h, a, &h));
    assert_ok(rondo_op_add(program, h, rows[i], &h));
    assert_ok(rondo_op_tanh(program, h, &h));
  }
  assert_ok(rondo_op_mul(program, h, h, &h));
  assert_ok(rondo_op_sum(program, h, NULL, 0, false, &loss));
  return loss;
}

static rondo_program *make_unrolled(way by, size_t steps) {
  const size_t shape[] = {steps, WIDTH};
  rondo_program *program = test_new_program();
  rondo_value x, loss, gradient, *rows = calloc(steps, sizeof *rows);
  assert_non_null(rows);
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  take_rows(program, by, x, steps, rows);
  loss = add_recurrence(program, rows, steps);
  free(rows);
  assert_ok(rondo_program_gradients(program, loss, &x, 1, &gradient));
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_output(program, "dx", gradient));
  return program;
}

/* The costs of a program of this many steps. */
static rondo_compiled_info info_of(test_fixture *t, way by, size_t steps) {
  rondo_program *program = make_unrolled(by, steps);
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                         .branches = RONDO_BRANCHES_NEVER};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_ok(rondo_compiled_destroy(compiled));
  return info;
}

/* Four times the steps take four times as much, and hardly more. */
static void assert_linear(const char *name, const char *what, uint64_t few, uint64_t many) {
  if (many > few * 9 / 2)
    fail_msg("%s: %s grow from %llu to %llu", name, what, (unsigned long long)few, (unsigned long long)many);
}

TEST(test_memory_and_work_are_linear_in_the_steps) {
  for (way by = BY_SLICE; by < WAYS; by++) {
    const rondo_compiled_info few = info_of(t, by, 64), many = info_of(t, by, 256);
    assert_linear(way_names[by], "bytes without sharing", few.sum_bytes, many.sum_bytes);
    assert_linear(way_names[by], "bytes", few.arena_bytes, many.arena_bytes);
    assert_linear(way_names[by], "operators", few.operators, many.operators);
    assert_linear(way_names[by], "kernels", few.kernels, many.kernels);
  }
}

/* Values ----------------------------------------------------------------------------------------------------------- */

static float number_at(size_t i) { return (float)((int)(i * 37 % 23) - 11) / 16; }

static void write_numbers(rondo_compiled *compiled, const char *name, size_t count) {
  float *numbers = calloc(count, sizeof *numbers);
  assert_non_null(numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = number_at(i + count);
  assert_ok(rondo_compiled_write(compiled, name, numbers, count * sizeof *numbers));
  free(numbers);
}

/* Twice, since a sum must begin again in each run. */
static void run_unrolled(test_fixture *t, way by, size_t steps, const rondo_compile_options *options, float *dx) {
  rondo_program *program = make_unrolled(by, steps);
  rondo_compiled *compiled = test_compile(program, t->device, options);
  write_numbers(compiled, "x", steps * WIDTH);
  write_numbers(compiled, "a", WIDTH);
  for (int i = 0; i < 2; i++) assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "dx", dx, steps * WIDTH * sizeof *dx));
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_gradients_are_those_of_one_split) {
  enum { STEPS = 20 };
  const rondo_compile_options forms[] = {
      {RONDO_COMPILE_OPTIONS_INIT},
      {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_ALWAYS},
      {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_NEVER, .fusion = RONDO_FUSION_NEVER},
      {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER}};
  float expected[STEPS * WIDTH], dx[STEPS * WIDTH];
  run_unrolled(t, BY_WHOLE_SPLIT, STEPS, NULL, expected);
  for (way by = BY_SLICE; by < WAYS; by++) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
      memset(dx, 0, sizeof dx);
      run_unrolled(t, by, STEPS, &forms[i], dx);
      assert_near(dx, expected, STEPS * WIDTH, 1e-6f);
    }
  }
}

/* loss = sum of w v, for parts v that overlap, skip, repeat rows and are read whole. */
static rondo_value add_mixture(rondo_program *program, rondo_value x) {
  const size_t starts[][2] = {{0, 0}, {1, 2}, {0, 1}, {1, 2}}, lengths[][2] = {{4, 8}, {3, 3}, {6, 4}, {3, 3}};
  const size_t steps[][2] = {{1, 1}, {2, 2}, {1, 2}, {2, 2}}, three = 3, some[] = {2, WIDTH};
  rondo_value terms[9], parts[3], loss = none, repeated;
  assert_ok(rondo_op_full(program, RONDO_I32, &three, 1, 5, &repeated));
  for (int i = 0; i < 4; i++) assert_ok(rondo_op_slice(program, x, starts[i], lengths[i], steps[i], &terms[i]));
  assert_ok(rondo_op_index_select(program, x, repeated, 0, &terms[4]));
  assert_ok(rondo_op_gather(program, x, constant_index(program, 5, some, 2), 0, &terms[5]));
  assert_ok(rondo_op_embedding(program, x, repeated, &terms[6]));
  assert_ok(rondo_op_split(program, x, 0, (size_t[]){1, 2, 3}, 3, parts)); /* nothing reads the second */
  assert_ok(rondo_op_concat(program, (rondo_value[]){parts[2], parts[0], parts[2]}, 3, 0, &terms[7]));
  terms[8] = x;
  for (int i = 0; i < 9; i++) {
    rondo_value term;
    assert_ok(rondo_op_tanh(program, terms[i], &term));
    assert_ok(rondo_op_mul(program, term, terms[i], &term));
    assert_ok(rondo_op_cast(program, term, RONDO_F32, &term));
    assert_ok(rondo_op_sum(program, term, NULL, 0, false, &term));
    if (i > 0) assert_ok(rondo_op_add(program, loss, term, &loss));
    if (i == 0) loss = term;
  }
  return loss;
}

static void run_mixture(rondo_compiled *compiled, const float *x, float *loss, float *dx) {
  const size_t bytes = FEW * WIDTH * sizeof *x;
  assert_ok(rondo_compiled_write(compiled, "x", x, bytes));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "loss", loss, sizeof *loss));
  if (dx != NULL) assert_ok(rondo_compiled_read(compiled, "dx", dx, bytes));
}

/* With the parts taken of x in this type. */
static rondo_compiled *compile_mixture(test_fixture *t, rondo_type type) {
  const size_t shape[] = {FEW, WIDTH};
  rondo_program *program = test_new_program();
  rondo_value x, typed, gradient;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_op_cast(program, x, type, &typed));
  const rondo_value loss = add_mixture(program, typed);
  assert_ok(rondo_program_gradients(program, loss, &x, 1, &gradient));
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_output(program, "dx", gradient));
  return test_compile(program, t->device, NULL);
}

TEST(test_gradients_are_those_of_finite_differences) {
  rondo_compiled *compiled = compile_mixture(t, RONDO_F32);
  float numbers[FEW * WIDTH], dx[FEW * WIDTH], loss, above, below;
  for (size_t i = 0; i < FEW * WIDTH; i++) numbers[i] = number_at(i);
  run_mixture(compiled, numbers, &loss, dx);
  for (size_t i = 0; i < FEW * WIDTH; i++) {
    const float at = numbers[i], width = 0x1p-6f;
    numbers[i] = at + width;
    run_mixture(compiled, numbers, &above, NULL);
    numbers[i] = at - width;
    run_mixture(compiled, numbers, &below, NULL);
    numbers[i] = at;
    assert_true(fabsf((above - below) / (2 * width) - dx[i]) < 2e-2f);
  }
}

TEST(test_gradients_of_every_type_of_float) {
  const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  float numbers[FEW * WIDTH], dx[3][FEW * WIDTH], loss;
  for (size_t i = 0; i < FEW * WIDTH; i++) numbers[i] = number_at(i); /* exact in all types */
  for (size_t k = 0; k < 3; k++) {
    rondo_compiled *compiled = compile_mixture(t, types[k]);
    run_mixture(compiled, numbers, &loss, dx[k]);
    assert_ok(rondo_compiled_destroy(compiled));
  }
  for (size_t i = 0; i < FEW * WIDTH; i++) {
    assert_true(fabsf(dx[1][i] - dx[0][i]) <= 2e-3f * fabsf(dx[0][i]) + 5e-3f);
    assert_true(fabsf(dx[2][i] - dx[0][i]) <= 16e-3f * fabsf(dx[0][i]) + 4e-2f);
  }
}

/* Sums that begin alike -------------------------------------------------------------------------------------------- */

/* Two losses that share their last rows: the sums of their gradients begin alike and continue differently, and a
 * partial sum that one reads is not the other's. */
TEST(test_sums_that_begin_alike_stay_apart) {
  const size_t shape[] = {2, WIDTH};
  rondo_program *program = test_new_program();
  rondo_value x, rows[2], parts[3], losses[2], d[2], twice;
  float dx[2][2 * WIDTH], doubled[2 * WIDTH];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  for (size_t i = 0; i < 2; i++) rows[i] = take_row(program, BY_SLICE, x, 2, i);
  assert_ok(rondo_op_sum(program, rows[0], NULL, 0, false, &parts[0]));
  assert_ok(rondo_op_scale(program, rows[0], 3.0f, &parts[2]));
  assert_ok(rondo_op_sum(program, parts[2], NULL, 0, false, &parts[2]));
  assert_ok(rondo_op_sum(program, rows[1], NULL, 0, false, &parts[1]));
  assert_ok(rondo_op_add(program, parts[0], parts[1], &losses[0]));
  assert_ok(rondo_op_add(program, parts[2], parts[1], &losses[1]));
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_program_gradients(program, losses[i], &x, 1, &d[i]));
  assert_ok(rondo_op_add(program, d[0], d[0], &twice));
  assert_ok(rondo_program_output(program, "first", d[0]));
  assert_ok(rondo_program_output(program, "second", d[1]));
  assert_ok(rondo_program_output(program, "twice", twice));
  const rondo_staged_value staged[] = {{"first", RONDO_STAGING_HOST}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 1};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  write_numbers(compiled, "x", 2 * WIDTH);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "first", dx[0], sizeof dx[0]));
  assert_ok(rondo_compiled_read(compiled, "second", dx[1], sizeof dx[1]));
  assert_ok(rondo_compiled_read(compiled, "twice", doubled, sizeof doubled));
  for (size_t i = 0; i < 2 * WIDTH; i++) {
    assert_float_equal(dx[0][i], 1, 0);
    assert_float_equal(dx[1][i], i < WIDTH ? 3 : 1, 0);
    assert_float_equal(doubled[i], 2, 0);
  }
}

/* Requested gradients stay separate even if they are computed alike: each has its own. */
TEST(test_gradients_of_values_that_are_computed_alike) {
  const size_t shape[] = {WIDTH, 2};
  const char *const names[] = {"dx", "da", "db"};
  rondo_program *program = test_new_program();
  rondo_value asked[3], d[3], terms[3], sums[3], loss;
  float row[2 * WIDTH];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){2, WIDTH}, 2, &asked[0]));
  for (int i = 0; i < 3; i++) { /* asked[1], asked[2], and a third from which nothing is requested */
    assert_ok(rondo_op_reshape(program, asked[0], shape, 2, i < 2 ? &asked[i + 1] : &terms[2]));
    assert_ok(rondo_op_scale(program, i < 2 ? asked[i + 1] : terms[2], (float)(i + 1), &terms[i]));
    assert_ok(rondo_op_sum(program, terms[i], NULL, 0, false, &sums[i]));
  }
  assert_ok(rondo_op_add(program, sums[0], sums[1], &loss));
  assert_ok(rondo_op_add(program, loss, sums[2], &loss));
  assert_ok(rondo_program_gradients(program, loss, asked, 3, d));
  for (int i = 0; i < 3; i++) assert_ok(rondo_program_output(program, names[i], d[i]));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  write_numbers(compiled, "x", 2 * WIDTH);
  assert_ok(rondo_compiled_run(compiled));
  for (int k = 0; k < 3; k++) {
    assert_ok(rondo_compiled_read(compiled, names[k], row, sizeof row));
    for (int i = 0; i < 2 * WIDTH; i++) assert_float_equal(row[i], k == 0 ? 6.0f : (float)k, 0);
  }
}

/* Divided ---------------------------------------------------------------------------------------------------------- */

/* Steps on two devices in alternation: the sum moves from one to the other. */
TEST(test_sums_cross_between_devices) {
  enum { STEPS = 5 };
  const size_t shape[] = {STEPS, WIDTH};
  rondo_device *devices[2] = {t->device};
  rondo_program *program = test_new_program();
  rondo_divided *divided = NULL;
  rondo_value x, rows[STEPS], gradient;
  float expected[STEPS * WIDTH], dx[STEPS * WIDTH], numbers[STEPS * WIDTH], a[WIDTH];
  run_unrolled(t, BY_WHOLE_SPLIT, STEPS, NULL, expected);
  assert_ok(rondo_device_open(test_device_is("cpu") ? "cpu:1" : "cpu", NULL, &devices[1]));
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  take_rows(program, BY_SLICE, x, STEPS, rows);
  for (size_t i = 0; i < STEPS; i++) assert_ok(rondo_program_place(program, rows[i], (uint32_t)(i % 2)));
  const rondo_value loss = add_recurrence(program, rows, STEPS);
  assert_ok(rondo_program_gradients(program, loss, &x, 1, &gradient));
  assert_ok(rondo_program_output(program, "dx", gradient));
  for (size_t i = 0; i < STEPS * WIDTH; i++) numbers[i] = number_at(i + STEPS * WIDTH);
  for (size_t i = 0; i < WIDTH; i++) a[i] = number_at(i + WIDTH);
  assert_ok(rondo_compile_divided(program, devices, 2, NULL, &divided));
  assert_ok(rondo_divided_write(divided, "x", numbers, sizeof numbers));
  assert_ok(rondo_divided_write(divided, "a", a, sizeof a));
  for (int i = 0; i < 2; i++) assert_ok(rondo_divided_run(divided));
  assert_ok(rondo_divided_read(divided, "dx", dx, sizeof dx));
  assert_near(dx, expected, STEPS * WIDTH, 1e-5f);
  assert_ok(rondo_divided_destroy(divided));
  rondo_program_destroy(program);
  assert_ok(rondo_device_close(devices[1]));
}
