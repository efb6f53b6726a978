/* SPDX-License-Identifier: MIT
 * Bits do not depend on the number of workers, whichever library computes: convolutions and products of shapes that are
 * divided in every direction, with the gradients of both factors and of the bias, recorded and not. The process
 * determines the library: tests/CMakeLists.txt runs this with oneDNN for all shapes, with CBLAS alone and in plain C
 * (FW-4, FW-9).
 */
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { MOST_WORKERS = 3, VALUES = 4 };

/* A product when `x` has rank 2, otherwise a convolution. */
typedef struct work {
  const char *what;
  size_t rank, x[4], w[4], bias;
  size_t stride, padding, dilation;
  uint32_t groups;
} work;

static const work works[] = {
    {"dense, several images", 4, {6, 16, 18, 18}, {24, 16, 3, 3}, 24, 1, 1, 1, 1},
    {"dense, one image", 4, {1, 32, 24, 24}, {32, 32, 3, 3}, 32, 1, 1, 1, 1},
    {"eleven images of one channel", 4, {11, 1, 28, 28}, {32, 1, 5, 5}, 32, 1, 2, 1, 1},
    {"with strides and dilation", 4, {5, 12, 31, 29}, {20, 12, 3, 3}, 20, 2, 2, 2, 1},
    {"of groups", 4, {4, 24, 16, 16}, {36, 8, 3, 3}, 36, 1, 1, 1, 3},
    {"depthwise", 4, {4, 40, 12, 12}, {40, 1, 3, 3}, 40, 1, 1, 1, 40},
    {"of windows of one place", 4, {4, 48, 14, 14}, {64, 48, 1, 1}, 64, 1, 0, 1, 1},
    {"large", 2, {300, 200}, {200, 250}, 250, 0, 0, 0, 0},
    {"square", 2, {256, 256}, {256, 256}, 256, 0, 0, 0, 0},
    {"small", 2, {64, 32}, {32, 40}, 40, 0, 0, 0, 0},
    {"of one row", 2, {1, 500}, {500, 300}, 300, 0, 0, 0, 0},
    {"of many rows", 2, {1500, 33}, {33, 5}, 5, 0, 0, 0, 0},
    {"deep", 2, {24, 4000}, {4000, 20}, 20, 0, 0, 0, 0},
};

static rondo_value build(rondo_program *program, const work *of) {
  rondo_value x, w, bias, y = {0}, loss;
  assert_ok(rondo_program_state(program, "x", RONDO_F32, of->x, of->rank, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, of->w, of->rank, &w));
  assert_ok(rondo_program_state(program, "bias", RONDO_F32, &of->bias, 1, &bias));
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT,
                                      .groups = of->groups,
                                      .stride = {of->stride, of->stride},
                                      .padding = {of->padding, of->padding},
                                      .dilation = {of->dilation, of->dilation},
                                      .bias = bias};
  if (of->rank == 2)
    assert_ok(rondo_op_matmul(program, x, w, bias, &y));
  else
    assert_ok(rondo_op_conv(program, x, w, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_op_square(program, y, &loss));
  assert_ok(rondo_op_mean(program, loss, (const size_t[]){0, 1, 2, 3}, of->rank, false, &loss));
  return loss;
}

static void fill(rondo_compiled *compiled, const char *name, size_t bytes, uint64_t seed) {
  float *values = malloc(bytes);
  assert_non_null(values);
  for (size_t i = 0; i < bytes / sizeof *values; i++)
    values[i] = (float)test_random_below(&seed, 2001) / 1000.0f - 1.0f;
  assert_ok(rondo_compiled_write(compiled, name, values, bytes));
  free(values);
}

/* The bytes of y and of the states after the step. The caller frees them. */
typedef struct bits {
  void *values[VALUES];
  size_t bytes[VALUES];
} bits;

static const char *const names[VALUES] = {"x", "w", "bias", "y"};

static void read_bits(rondo_compiled *compiled, bits *out) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    for (size_t k = 0; k < VALUES; k++) {
      if (strcmp(value.name, names[k]) != 0) continue;
      out->bytes[k] = value.bytes;
      out->values[k] = malloc(value.bytes);
      assert_non_null(out->values[k]);
      assert_ok(rondo_compiled_read(compiled, value.name, out->values[k], value.bytes));
    }
  }
}

static void fill_states(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    for (size_t k = 0; k + 1 < VALUES; k++)
      if (strcmp(value.name, names[k]) == 0) fill(compiled, names[k], value.bytes, 11 + k);
  }
}

static void step(const work *of, uint32_t workers, rondo_record_policy record, bits *out) {
  const rondo_device_options device_options = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = record};
  rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT};
  rondo_device *device = NULL;
  rondo_program *program = test_new_program();
  assert_ok(rondo_device_open(test_device_name(), &device_options, &device));
  const rondo_value loss = build(program, of);
  assert_ok(rondo_program_cell(program, "rate", 50.0f, &sgd.learning_rate)); /* each gradient bit counts */
  assert_ok(rondo_program_sgd(program, loss, &sgd));
  rondo_compiled *compiled = test_compile(program, device, &options);
  fill_states(compiled);
  assert_ok(rondo_compiled_run(compiled));
  read_bits(compiled, out);
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
}

static void assert_same(const work *of, uint32_t workers, const bits *expected, bits *got) {
  for (size_t k = 0; k < VALUES; k++) {
    assert_int_equal(got->bytes[k], expected->bytes[k]);
    if (memcmp(got->values[k], expected->values[k], got->bytes[k]) != 0)
      fail_msg("%s, %s: other bits of %s with %u workers than with 1", of->rank == 2 ? "product" : "convolution",
               of->what, names[k], workers);
    free(got->values[k]);
  }
}

TEST(test_fw4_bits_do_not_depend_on_the_workers) {
  for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
    bits expected, got;
    step(&works[i], 1, RONDO_RECORD_NEVER, &expected);
    for (uint32_t workers = 1; workers <= MOST_WORKERS; workers++) {
      step(&works[i], workers, RONDO_RECORD_ALWAYS, &got);
      assert_same(&works[i], workers, &expected, &got);
    }
    step(&works[i], MOST_WORKERS, RONDO_RECORD_NEVER, &got);
    assert_same(&works[i], MOST_WORKERS, &expected, &got);
    for (size_t k = 0; k < VALUES; k++) free(expected.values[k]);
  }
}

int main(void) {
  if (!test_device_is("cpu")) return 77; /* other devices have none */
  return test_run_registered();
}
