/* SPDX-License-Identifier: MIT
 * layer_norm and rms_norm, with and without scale and shift; what they refuse. add_layer_norm, also in all types
 * against an add and a layer_norm, whose bits it has, gradients included.
 */
#include <math.h>
#include <stdio.h>

#include "support/test_operator.h"
#include "support/test_program.h"

enum { DIMENSIONS, HAS_SCALE, HAS_SHIFT, COLUMNS }; /* sizes */

#define EPSILON 1e-3

static const rondo_value none;

static void draw_value(uint64_t *seed, test_call *call) {
  size_t shape[RONDO_MAX_DIMENSIONS];
  const size_t rank = test_draw_between(seed, 1, 4);
  const size_t dimensions = test_draw_between(seed, 1, rank < 2 ? rank : 2);
  const size_t *last = shape + rank - dimensions;
  test_draw_shape(seed, rank, 7, shape);
  if (test_random_below(seed, 6) == 0)
    shape[rank - 1] = test_draw_between(seed, 200, 1400);
  else if (test_random_below(seed, 6) == 0)
    shape[0] = test_draw_between(seed, 60, 300);
  call->sizes[DIMENSIONS] = dimensions;
  call->sizes[COLUMNS] = test_elements(last, dimensions);
  test_add_float(call, shape, rank, -2, 3);
  call->sizes[HAS_SCALE] = test_random_below(seed, 3) != 0;
  if (call->sizes[HAS_SCALE]) test_add_float(call, last, dimensions, 0.5, 2);
}

/* Sometimes the parameters are F32 and the value is not. */
static void widen(uint64_t *seed, test_call *call) {
  const bool is_wide = test_random_below(seed, 2) == 0;
  for (size_t i = 1; i < call->input_count && is_wide; i++) call->inputs[i].type = RONDO_F32;
}

static void draw_all(uint64_t *seed, test_call *call) {
  draw_value(seed, call);
  call->sizes[HAS_SHIFT] = test_random_below(seed, 3) != 0;
  const size_t dimensions = call->sizes[DIMENSIONS];
  const test_tensor *value = &call->inputs[0];
  if (call->sizes[HAS_SHIFT]) test_add_float(call, value->shape + value->rank - dimensions, dimensions, -1, 1);
  widen(seed, call);
}

/* More rows than a part of a sum over rows. */
static void draw_rows(uint64_t *seed, test_call *call) {
  const size_t columns = test_draw_between(seed, 5, 40), rows = test_draw_between(seed, 60, 300);
  test_add_float(call, (size_t[]){rows, columns}, 2, -2, 3);
  test_add_float(call, &columns, 1, 0.5, 2);
  test_add_float(call, &columns, 1, -1, 1);
  call->sizes[DIMENSIONS] = call->sizes[HAS_SCALE] = call->sizes[HAS_SHIFT] = 1;
  call->sizes[COLUMNS] = columns;
}

static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *result) {
  const rondo_value scale = call->sizes[HAS_SCALE] ? in[1] : none;
  const rondo_value shift = call->sizes[HAS_SHIFT] ? in[1 + call->sizes[HAS_SCALE]] : none;
  return rondo_op_layer_norm(program, in[0], scale, shift, call->sizes[DIMENSIONS], (float)EPSILON, result);
}

static void draw_rms(uint64_t *seed, test_call *call) {
  draw_value(seed, call);
  widen(seed, call);
}

static rondo_status build_rms(const test_call *call, rondo_program *program, const rondo_value *in,
                              rondo_value *result) {
  const rondo_value scale = call->sizes[HAS_SCALE] ? in[1] : none;
  return rondo_op_rms_norm(program, in[0], scale, call->sizes[DIMENSIONS], (float)EPSILON, result);
}

static void reference(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->sizes[COLUMNS], rows = test_input_elements(call, 0) / columns;
  const bool is_rms = call->op->build == build_rms; /* its mean is 0 */
  const double *scale = call->sizes[HAS_SCALE] ? in[1] : NULL;
  const double *shift = call->sizes[HAS_SHIFT] ? in[1 + call->sizes[HAS_SCALE]] : NULL;
  for (size_t row = 0; row < rows; row++) {
    const double *x = in[0] + row * columns;
    double mean = 0, variance = 0;
    for (size_t i = 0; i < columns && !is_rms; i++) mean += x[i] / (double)columns;
    for (size_t i = 0; i < columns; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)columns;
    for (size_t i = 0; i < columns; i++) {
      const double h = (x[i] - mean) / sqrt(variance + (double)(float)EPSILON);
      y[row * columns + i] = h * (scale == NULL ? 1 : scale[i]) + (shift == NULL ? 0 : shift[i]);
    }
  }
}

TEST(test_what_does_not_fit) {
  rondo_program *program = test_new_program();
  rondo_value x, scale, half, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  assert_ok(rondo_program_state(program, "scale", RONDO_F32, (size_t[]){4}, 1, &scale));
  assert_ok(rondo_program_state(program, "half", RONDO_F16, (size_t[]){6}, 1, &half));
  assert_invalid(rondo_op_layer_norm(program, x, scale, none, 1, 1e-5f, &y), RONDO_REASON_SHAPE);
  assert_message("'scale' [4]");
  assert_invalid(rondo_op_layer_norm(program, x, half, none, 1, 1e-5f, &y), RONDO_REASON_TYPE);
  for (size_t dimensions = 0; dimensions <= 3; dimensions += 3) {
    assert_invalid(rondo_op_rms_norm(program, x, none, dimensions, 1e-5f, &y), RONDO_REASON_SHAPE);
  }
  const float epsilons[] = {0, -1, INFINITY, NAN};
  for (size_t i = 0; i < 4; i++) {
    assert_invalid(rondo_op_rms_norm(program, x, none, 1, epsilons[i], &y), RONDO_REASON_OUT_OF_RANGE);
  }
}

/* add_layer_norm --------------------------------------------------------------------------------------------------- */

enum { USED = COLUMNS + 1 }; /* sizes */
enum { BOTH, ONLY_VALUE, ONLY_SUM, USES };

static void draw_add(uint64_t *seed, test_call *call) {
  size_t shape[] = {test_draw_between(seed, 1, 40), test_draw_between(seed, 2, 30)};
  if (test_random_below(seed, 6) == 0) shape[1] = test_draw_between(seed, 200, 1400);
  if (shape[1] > 200) shape[0] = test_draw_between(seed, 1, 3);
  call->sizes[COLUMNS] = shape[1];
  call->sizes[USED] = test_random_below(seed, USES);
  test_add_float(call, shape, 2, -2, 2);
  test_add_float(call, shape, 2, -1, 1);
  test_add_float(call, &shape[1], 1, 0.5, 2);
  test_add_float(call, &shape[1], 1, -1, 1);
}

static rondo_status build_add(const test_call *call, rondo_program *program, const rondo_value *in,
                              rondo_value *result) {
  rondo_value sum;
  const rondo_status status =
      rondo_op_add_layer_norm(program, in[0], in[1], in[2], in[3], 1, (float)EPSILON, &sum, result);
  if (status != RONDO_OK || call->sizes[USED] == ONLY_VALUE) return status;
  if (call->sizes[USED] == ONLY_SUM) *result = sum;
  return call->sizes[USED] == ONLY_SUM ? RONDO_OK : rondo_op_add(program, sum, *result, result);
}

static void reference_add_row(const double *sum, size_t columns, const double *scale, const double *shift, size_t used,
                              double *y) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < columns; i++) mean += sum[i] / (double)columns;
  for (size_t i = 0; i < columns; i++) variance += (sum[i] - mean) * (sum[i] - mean) / (double)columns;
  for (size_t i = 0; i < columns; i++) {
    const double value = (sum[i] - mean) / sqrt(variance + (double)(float)EPSILON) * scale[i] + shift[i];
    y[i] = (used == ONLY_SUM ? 0 : value) + (used == ONLY_VALUE ? 0 : sum[i]);
  }
}

static void reference_add(const test_call *call, double *const *in, double *y) {
  const size_t columns = call->sizes[COLUMNS], rows = test_input_elements(call, 0) / columns;
  double sum[1400];
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < columns; i++) sum[i] = in[0][row * columns + i] + in[1][row * columns + i];
    reference_add_row(sum, columns, in[2], in[3], call->sizes[USED], y + row * columns);
  }
}

/* The same bits ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 19, WIDTH = 37, ELEMENTS = ROWS * WIDTH };
enum { X, ADDEND, OF_SCALE, OF_SHIFT, INPUTS };

static const char *const names[INPUTS] = {"x", "addend", "scale", "shift"};

static void add_network(rondo_program *program, bool is_one, const rondo_value *in, rondo_value *loss) {
  rondo_value sum, value;
  if (is_one) {
    assert_ok(rondo_op_add_layer_norm(program, in[X], in[ADDEND], in[OF_SCALE], in[OF_SHIFT], 1, (float)EPSILON, &sum,
                                      &value));
  } else {
    assert_ok(rondo_op_add(program, in[X], in[ADDEND], &sum));
    assert_ok(rondo_op_layer_norm(program, sum, in[OF_SCALE], in[OF_SHIFT], 1, (float)EPSILON, &value));
  }
  assert_ok(rondo_op_tanh(program, value, &value));
  assert_ok(rondo_op_add(program, sum, value, &value));
  assert_ok(rondo_op_mul(program, value, value, &value));
  assert_ok(rondo_op_cast(program, value, RONDO_F32, &value));
  assert_ok(rondo_program_output(program, "squares", value));
  assert_ok(rondo_op_mean(program, value, NULL, 0, false, loss));
}

static rondo_program *new_program(rondo_type type, bool is_one) {
  const size_t shape[] = {ROWS, WIDTH};
  rondo_value in[INPUTS], gradients[INPUTS], loss;
  rondo_program *program = test_new_program();
  for (int i = X; i < INPUTS; i++)
    assert_ok(rondo_program_state(program, names[i], i < OF_SCALE ? type : RONDO_F32, i < OF_SCALE ? shape : shape + 1,
                                  i < OF_SCALE ? 2 : 1, &in[i]));
  add_network(program, is_one, in, &loss);
  assert_ok(rondo_program_gradients(program, loss, in, INPUTS, gradients));
  for (int i = X; i < INPUTS; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "of %s", names[i]);
    assert_ok(rondo_op_cast(program, gradients[i], RONDO_F32, &gradients[i]));
    assert_ok(rondo_program_output(program, name, gradients[i]));
  }
  return program;
}

static void write_states(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  uint64_t seed = 7;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    float numbers[ELEMENTS];
    uint16_t halves[ELEMENTS];
    const size_t count = value.bytes / rondo_type_bytes(value.type);
    if (value.kind != 's') continue;
    for (size_t k = 0; k < count; k++) {
      numbers[k] = (float)test_random_below(&seed, 4001) / 1000.0f - 2;
      halves[k] = (uint16_t)(0x3c00u + test_random_below(&seed, 0x300)); /* numbers of the order of 1 in both types */
    }
    const void *bytes = value.type == RONDO_F32 ? (const void *)numbers : (const void *)halves;
    assert_ok(rondo_compiled_write(compiled, value.name, bytes, value.bytes));
  }
}

/* Into `outputs`, which has room for all of them. */
static size_t run_program(test_fixture *t, rondo_type type, bool is_one, float *outputs, uint32_t *kernels) {
  rondo_program *program = new_program(type, is_one);
  rondo_compiled_value value = {.struct_size = sizeof value};
  rondo_compiled_info info = {.struct_size = sizeof info};
  size_t count = 0;
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  assert_ok(rondo_compiled_get_info(compiled, &info));
  *kernels = info.kernels;
  write_states(compiled);
  assert_ok(rondo_compiled_run(compiled));
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'o') continue;
    assert_ok(rondo_compiled_read(compiled, value.name, outputs + count, value.bytes));
    count += value.bytes / sizeof *outputs;
  }
  assert_ok(rondo_compiled_destroy(compiled));
  return count;
}

TEST(test_fw1_it_has_the_bits_of_add_and_layer_norm) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16};
  float wanted[3 * ELEMENTS + 2 * WIDTH], got[3 * ELEMENTS + 2 * WIDTH];
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    uint32_t apart, joined;
    assert_int_equal(run_program(t, types[i], false, wanted, &apart), 3 * ELEMENTS + 2 * WIDTH);
    assert_int_equal(run_program(t, types[i], true, got, &joined), 3 * ELEMENTS + 2 * WIDTH);
    assert_memory_equal(got, wanted, sizeof wanted);
    assert_int_equal(joined, apart - 2); /* the sum and that of its gradients */
  }
}

TEST(test_add_layer_norm_that_does_not_fit) {
  const float epsilon = (float)EPSILON;
  rondo_program *program = test_new_program();
  rondo_value x, short_one, half, sum, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (size_t[]){4, 6}, 2, &x));
  assert_ok(rondo_program_input(program, "short one", RONDO_F32, (size_t[]){6}, 1, &short_one));
  assert_ok(rondo_program_input(program, "half", RONDO_F16, (size_t[]){4, 6}, 2, &half));
  assert_invalid(rondo_op_add_layer_norm(program, x, short_one, none, none, 1, epsilon, &sum, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_add_layer_norm(program, x, half, none, none, 1, epsilon, &sum, &y), RONDO_REASON_SHAPE);
  assert_int_equal(rondo_op_add_layer_norm(program, x, none, none, none, 1, epsilon, &sum, &y), RONDO_INVALID_ARGUMENT);
  assert_message("addend");
  assert_int_equal(rondo_op_add_layer_norm(program, x, x, none, none, 1, epsilon, NULL, &y), RONDO_INVALID_ARGUMENT);
  assert_true(sum.id == 0 && y.id == 0);
  assert_ok(rondo_op_add_layer_norm(program, x, x, none, none, 1, epsilon, &sum, &y));
}

/* The table -------------------------------------------------------------------------------------------------------- */

/* In F16 and BF16 the sum of add_layer_norm is rounded in between; there it is compared with the two operators. */
#define NORM .reference = reference, .tolerance = 1e-5, .gradient_tolerance = 3e-4

static const test_operator rows[] = {
    {.name = "layer_norm", .draw = draw_all, .build = build, NORM},
    {.name = "layer_norm", .draw = draw_rows, .build = build, NORM},
    {.name = "add_layer_norm",
     .draw = draw_add,
     .build = build_add,
     .reference = reference_add,
     .tolerance = 1e-5,
     .gradient_tolerance = 3e-4,
     .only_f32 = true},
    {.name = "rms_norm", .draw = draw_rms, .build = build_rms, NORM},
};

TEST_OPERATOR_MAIN(rows)
