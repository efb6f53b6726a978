/* SPDX-License-Identifier: MIT
 * Weights of another library in a program (PR-10): tensors that rules name and transpose, and floats of other types,
 * are applied to compiled and divided programs; what does not fit changes nothing.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { ROWS = 45, COLUMNS = 300, COUNT = ROWS * COLUMNS, BIAS = 7 };

static const rondo_weight_rule rules[] = {{.from = "net.*.weight", .to = "*.matrix", .transpose = true},
                                          {.from = "net.**", .to = "**"}};

/* Numbers that F16 and BF16 have. */
static float number_at(size_t i) { return (float)(int)(i % 97) / 4 - 8; }

static uint16_t half_of(float x) { /* BF16: the upper half */
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static void add(rondo_weights *weights, const char *name, rondo_type type, const size_t *shape, size_t rank) {
  static float floats[COUNT];
  static uint16_t halves[COUNT];
  size_t count = 1;
  rondo_weight weight = {.name = name, .type = type, .rank = rank};
  for (size_t d = 0; d < rank; d++) count *= weight.shape[d] = shape[d];
  for (size_t i = 0; i < count; i++) floats[i] = number_at(i), halves[i] = half_of(floats[i]);
  weight.data = type == RONDO_F32 ? (const void *)floats : halves;
  weight.bytes = count * rondo_type_bytes(type);
  assert_ok(rondo_weights_add(weights, &weight));
}

/* A matrix [COLUMNS, ROWS] and a vector, by way of a file. */
static rondo_weights *load_foreign(rondo_type type, const rondo_weights_options *options) {
  char path[] = "/tmp/rondo-weights-apply-XXXXXX";
  rondo_weights *weights = NULL;
  const int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(close(file), 0);
  assert_ok(rondo_weights_create(NULL, &weights));
  add(weights, "net.up.weight", type, (const size_t[]){COLUMNS, ROWS}, 2);
  add(weights, "net.up.bias", type, (const size_t[]){BIAS}, 1);
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
  assert_ok(rondo_weights_load(path, options, &weights));
  assert_int_equal(unlink(path), 0);
  return weights;
}

static rondo_program *make_program(rondo_type type, rondo_value states[2]) {
  rondo_program *program = test_new_program();
  const size_t matrix[] = {ROWS, COLUMNS}, bias = BIAS;
  rondo_value sum;
  assert_ok(rondo_program_state(program, "up.matrix", type, matrix, 2, &states[0]));
  assert_ok(rondo_program_state(program, "up.bias", type, &bias, 1, &states[1]));
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_op_sum(program, states[i], NULL, 0, false, &sum));
    assert_ok(rondo_program_output(program, i == 0 ? "first" : "second", sum));
  }
  return program;
}

static void assert_states(const void *matrix, const void *bias, rondo_type type) {
  for (size_t i = 0; i < COUNT; i++) {
    const float wanted = number_at(i % COLUMNS * ROWS + i / COLUMNS);
    if (type == RONDO_F32)
      assert_true(((const float *)matrix)[i] == wanted);
    else
      assert_int_equal(((const uint16_t *)matrix)[i], half_of(wanted));
  }
  for (size_t i = 0; i < BIAS; i++)
    assert_true(type == RONDO_F32 ? ((const float *)bias)[i] == number_at(i)
                                  : ((const uint16_t *)bias)[i] == half_of(number_at(i)));
}

static float matrix[COUNT], bias[BIAS]; /* what a program has */

static size_t bytes_of(rondo_type type, size_t count) { return rondo_type_bytes(type) * count; }

TEST(test_pr10_tensors_are_transposed_and_converted) {
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2,
                                         .convert_floats = true};
  for (int form = 0; form < 4; form++) {
    const rondo_type type = types[form / 2];
    rondo_value states[2];
    rondo_weights *weights = load_foreign(types[form % 2], &options);
    rondo_compiled *compiled = test_compile(make_program(type, states), t->device, NULL);
    assert_ok(rondo_weights_apply(weights, compiled, NULL, NULL));
    rondo_weights_destroy(weights);
    assert_ok(rondo_compiled_read(compiled, "up.matrix", matrix, bytes_of(type, COUNT)));
    assert_ok(rondo_compiled_read(compiled, "up.bias", bias, bytes_of(type, BIAS)));
    assert_states(matrix, bias, type);
  }
}

/* All numbers of the 8-bit floats, which an F16 can hold. */
TEST(test_pr8_tensors_of_8_bit_floats) {
  static const rondo_type types[] = {RONDO_F8_E4M3, RONDO_F8_E5M2};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .convert_floats = true};
  const size_t count = 256;
  for (int k = 0; k < 2; k++) {
    uint8_t bits[256], same[256];
    float wide[256], cast[256];
    rondo_weights *weights = NULL;
    rondo_program *program = test_new_program();
    rondo_value as_is, converted, value;
    for (size_t i = 0; i < count; i++) bits[i] = (uint8_t)i;
    assert_ok(rondo_weights_create(NULL, &weights));
    for (int i = 0; i < 2; i++)
      assert_ok(rondo_weights_add(weights, &(rondo_weight){.name = i == 0 ? "same" : "wide",
                                                           .type = types[k],
                                                           .rank = 1,
                                                           .shape = {count},
                                                           .data = bits,
                                                           .bytes = count}));
    char path[] = "/tmp/rondo-weights-apply-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    assert_ok(rondo_weights_save(weights, path));
    rondo_weights_destroy(weights);
    assert_ok(rondo_weights_load(path, &options, &weights));
    assert_int_equal(unlink(path), 0);
    assert_ok(rondo_program_state(program, "same", types[k], &count, 1, &as_is));
    assert_ok(rondo_program_state(program, "wide", RONDO_F32, &count, 1, &converted));
    assert_ok(rondo_op_cast(program, as_is, RONDO_F32, &value));
    assert_ok(rondo_program_output(program, "cast", value));
    assert_ok(rondo_op_sum(program, converted, NULL, 0, false, &value));
    assert_ok(rondo_program_output(program, "sum", value));
    rondo_compiled *compiled = test_compile(program, t->device, NULL);
    assert_ok(rondo_weights_apply(weights, compiled, NULL, NULL));
    rondo_weights_destroy(weights);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "same", same, sizeof same));
    assert_ok(rondo_compiled_read(compiled, "wide", wide, sizeof wide));
    assert_ok(rondo_compiled_read(compiled, "cast", cast, sizeof cast));
    assert_memory_equal(same, bits, sizeof bits);
    for (size_t i = 0; i < count; i++) assert_true(wide[i] == cast[i] || (wide[i] != wide[i] && cast[i] != cast[i]));
    rondo_compiled_destroy(compiled);
  }
}

TEST(test_pr10_a_divided_program_gets_foreign_weights) {
  rondo_device *devices[] = {t->device, test_device(test_device_is("cpu") ? "cpu:1" : "cpu", NULL)};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2,
                                         .convert_floats = true};
  rondo_value states[2];
  rondo_weights *weights = load_foreign(RONDO_BF16, &options);
  rondo_program *program = make_program(RONDO_F32, states);
  assert_ok(rondo_program_place(program, states[1], 1));
  rondo_divided *divided = test_compile_divided(program, devices, 2, NULL);
  assert_ok(rondo_weights_apply_divided(weights, divided, NULL, NULL));
  rondo_weights_destroy(weights);
  assert_ok(rondo_divided_read(divided, "up.matrix", matrix, sizeof matrix));
  assert_ok(rondo_divided_read(divided, "up.bias", bias, sizeof bias));
  assert_states(matrix, bias, RONDO_F32);
}

typedef struct name_filter {
  const char *name;
  int calls;
} name_filter;

static bool has_name(const char *name, void *user) {
  name_filter *filter = user;
  filter->calls++;
  return strcmp(name, filter->name) == 0;
}

/* A filter of names that are known only when the program runs. */
TEST(test_pr10_a_filter_gets_the_callers_pointer) {
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2};
  static const float zeros[COUNT];
  rondo_value states[2];
  rondo_weight weight;
  rondo_weights *weights = load_foreign(RONDO_F32, &options), *gathered = NULL;
  rondo_compiled *compiled = test_compile(make_program(RONDO_F32, states), t->device, NULL);
  name_filter filter = {.name = "up.bias"};
  assert_ok(rondo_weights_apply(weights, compiled, has_name, &filter));
  assert_true(filter.calls >= 2);
  assert_ok(rondo_compiled_read(compiled, "up.matrix", matrix, sizeof matrix));
  assert_memory_equal(matrix, zeros, sizeof matrix);
  assert_ok(rondo_compiled_read(compiled, "up.bias", bias, sizeof bias));
  assert_float_equal(bias[BIAS - 1], number_at(BIAS - 1), 0);
  filter = (name_filter){.name = "up.matrix"};
  assert_ok(rondo_weights_create(NULL, &gathered));
  assert_ok(rondo_weights_gather(gathered, compiled, has_name, &filter));
  assert_ok(rondo_weights_at(gathered, 0, &weight));
  assert_string_equal(weight.name, "up.matrix");
  assert_error(rondo_weights_at(gathered, 1, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  rondo_weights_destroy(gathered);
  rondo_weights_destroy(weights);
}

/* Another type without the option; a matrix that no rule transposes. */
TEST(test_pr10_what_does_not_fit_changes_nothing) {
  const rondo_weights_options strict = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2};
  static const rondo_weight_rule plain[] = {{.from = "net.up.weight", .to = "up.matrix"},
                                            {.from = "net.**", .to = "**"}};
  const rondo_weights_options wrong = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = plain, .rule_count = 2};
  static const float zeros[BIAS];
  rondo_value states[2];
  rondo_compiled *compiled = test_compile(make_program(RONDO_F32, states), t->device, NULL);
  rondo_weights *weights = load_foreign(RONDO_BF16, &strict);
  assert_error(rondo_weights_apply(weights, compiled, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_TYPE);
  rondo_weights_destroy(weights);
  weights = load_foreign(RONDO_F32, &wrong);
  assert_error(rondo_weights_apply(weights, compiled, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_SHAPE);
  assert_message("'up.matrix' as [300, 45], the program's state is [45, 300]");
  rondo_weights_destroy(weights);
  assert_ok(rondo_compiled_read(compiled, "up.bias", bias, sizeof bias));
  assert_memory_equal(bias, zeros, sizeof bias);
}

/* A rule for a name that no tensor has; the states of an optimizer, which no file has. */
TEST(test_pr10_what_lacks_a_tensor_is_counted_with_what_is_left_over) {
  static const rondo_weight_rule typo[] = {{.from = "net.up.wieght", .to = "up.matrix"},
                                           {.from = "net.up.bias", .to = "up.bias"}};
  const rondo_weights_options wrong = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = typo, .rule_count = 2};
  const rondo_weights_options right = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2};
  rondo_value states[2], rate, loss;
  rondo_program *program = make_program(RONDO_F32, states);
  assert_ok(rondo_program_cell(program, "rate", 0.1f, &rate));
  assert_ok(rondo_op_sum(program, states[1], NULL, 0, false, &loss));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_adam(program, loss, &adam));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  rondo_weights *weights = load_foreign(RONDO_F32, &wrong);
  assert_error(rondo_weights_apply(weights, compiled, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  assert_message(
      "the state 'up.matrix', the first of 4 without one; tensors without a state: 1, the first is 'net.up.w");
  rondo_weights_destroy(weights);
  weights = load_foreign(RONDO_F32, &right);
  assert_error(rondo_weights_apply(weights, compiled, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  assert_message(
      "the first of 3 without one; the program also has the states of its optimizer, which `only` leaves out");
  rondo_weights_destroy(weights);
}
