/* SPDX-License-Identifier: MIT
 * Updates that are joined into few kernels, and updates with a kernel each: the same bits, fewer kernels, and hardly
 * more memory (FW-4), whatever is done to gradients before, recorded and not, with branches and without.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"

#define LAYERS 21
#define STEPS 3

static const rondo_value none;

typedef enum method { SGD, MOMENTUM, ADAM, RMSPROP, METHODS } method;

/* Programs --------------------------------------------------------------------------------------------------------- */

static void add_optimizer(rondo_program *program, rondo_value loss, method by,
                          const rondo_gradient_options *gradients) {
  rondo_value rate, momentum = none;
  assert_ok(rondo_program_cell(program, "rate", 0.05f, &rate));
  if (by == MOMENTUM || by == RMSPROP) assert_ok(rondo_program_cell(program, "momentum", 0.9f, &momentum));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.01f,
                                   .gradients = gradients};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = momentum,
                                 .gradients = gradients};
  const rondo_rmsprop_options rmsprop = {RONDO_RMSPROP_OPTIONS_INIT, .learning_rate = rate, .momentum = momentum,
                                         .centered = true,           .weight_decay = 0.01f, .gradients = gradients};
  if (by == RMSPROP)
    assert_ok(rondo_program_rmsprop(program, loss, &rmsprop));
  else
    assert_ok(by == ADAM ? rondo_program_adam(program, loss, &adam) : rondo_program_sgd(program, loss, &sgd));
}

static rondo_value new_state(rondo_program *program, const char *kind, int layer, size_t rows, size_t columns) {
  const size_t shape[] = {rows, columns};
  char name[16];
  rondo_value state;
  (void)snprintf(name, sizeof name, "%s%d", kind, layer);
  assert_ok(rondo_program_state(program, name, RONDO_F32, rows == 0 ? shape + 1 : shape, rows == 0 ? 1 : 2, &state));
  return state;
}

/* A product with a bias in one of the types of float; the parameters are F32. */
static void add_layer(rondo_program *program, rondo_type type, rondo_value w, rondo_value b, rondo_value *x) {
  assert_ok(rondo_op_cast(program, *x, type, x));
  assert_ok(rondo_op_cast(program, w, type, &w));
  assert_ok(rondo_op_cast(program, b, type, &b));
  assert_ok(rondo_op_matmul(program, *x, w, b, x));
  assert_ok(rondo_op_tanh(program, *x, x));
}

/* A chain of products with biases, of widths that are no multiples of anything: more parameters than one kernel takes.
 */
static rondo_program *new_program(method by, size_t rows, size_t width, bool is_mixed,
                                  const rondo_gradient_options *gradients) {
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  rondo_program *program = test_new_program();
  size_t from = 5;
  const size_t shape[] = {rows, from};
  rondo_value x, target, loss;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  for (int i = 0; i < LAYERS; i++) {
    const size_t to = width + (size_t)(i % 4);
    const rondo_value w = new_state(program, "w", i, from, to), b = new_state(program, "b", i, 0, to);
    add_layer(program, types[is_mixed ? i % 3 : 0], w, b, &x);
    from = to;
  }
  const size_t last[] = {rows, from};
  assert_ok(rondo_program_input(program, "target", RONDO_F32, last, 2, &target));
  assert_ok(rondo_op_cast(program, x, RONDO_F32, &x));
  assert_ok(rondo_op_mse(program, x, target, RONDO_COMBINE_MEAN, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  add_optimizer(program, loss, by, gradients);
  return program;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void write_random(rondo_compiled *compiled, const rondo_compiled_value *value, uint64_t seed) {
  const size_t count = value->bytes / sizeof(float);
  float *numbers = malloc(count * sizeof *numbers);
  assert_non_null(numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)test_random_below(&seed, 2001) / 2000.0f - 0.5f;
  assert_ok(rondo_compiled_write(compiled, value->name, numbers, value->bytes));
  free(numbers);
}

/* The bytes of all states, one after the other. */
static unsigned char *train(rondo_compiled *compiled, size_t *out_bytes) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  unsigned char *states = NULL;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    const bool is_weight = value.kind == 's' && strchr(value.name, '.') == NULL;
    if (is_weight || value.kind == 'i') write_random(compiled, &value, i + 1);
  }
  for (int i = 0; i < STEPS; i++) assert_ok(rondo_compiled_run(compiled));
  *out_bytes = 0;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 's') continue;
    states = realloc(states, *out_bytes + value.bytes);
    assert_non_null(states);
    assert_ok(rondo_compiled_read(compiled, value.name, states + *out_bytes, value.bytes));
    *out_bytes += value.bytes;
  }
  return states;
}

static unsigned char *run_form(test_fixture *t, rondo_program *program, const rondo_compile_options *options,
                               rondo_compiled_info *info, size_t *out_bytes) {
  rondo_compiled *compiled = test_compile_kept(program, t->device, options);
  *info = (rondo_compiled_info){.struct_size = sizeof *info};
  assert_ok(rondo_compiled_get_info(compiled, info));
  unsigned char *states = train(compiled, out_bytes);
  assert_ok(rondo_compiled_destroy(compiled));
  return states;
}

/* Compares every form of the program with separate updates. Returns how many kernels joining saves. */
static uint32_t compare_forms(test_fixture *t, rondo_program *program) {
  const rondo_compile_options forms[] = {
      {RONDO_COMPILE_OPTIONS_INIT},
      {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER},
      {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_NEVER},
      {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_ALWAYS},
  };
  const rondo_compile_options alone = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER};
  rondo_compiled_info info, apart;
  size_t bytes, wanted_bytes;
  unsigned char *wanted = run_form(t, program, &alone, &apart, &wanted_bytes);
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    unsigned char *states = run_form(t, program, &forms[i], &info, &bytes);
    assert_int_equal(bytes, wanted_bytes);
    assert_memory_equal(states, wanted, bytes);
    assert_true(info.kernels < apart.kernels);
    assert_true(info.order_peak <= apart.order_peak + apart.order_peak / 64);
    free(states);
  }
  free(wanted);
  return apart.kernels - info.kernels;
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* Many rows: more than the gradients is alive while they are computed. Two kernels update 42 parameters. */
TEST(test_fw4_joined_updates_leave_the_same_bits) {
  const rondo_gradient_options forms[] = {
      {RONDO_GRADIENT_OPTIONS_INIT},
      {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.01f},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2},
      {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .max_norm = 0.01f, .scale_loss = true, .norm_output = "norm"},
  };
  const size_t count = sizeof forms / sizeof forms[0], step = count / test_effort((uint32_t)count);
  for (int by = SGD; by < METHODS; by++) {
    for (size_t f = ((size_t)by + 1) % step; f < count; f += step) {
      rondo_program *program = new_program((method)by, 256, 7, false, &forms[f]);
      const uint32_t saved = compare_forms(t, program);
      assert_true(saved >= 3 * LAYERS - 8); /* updates, and sums of gradients for biases */
      if (forms[f].max_norm > 0) assert_true(saved >= 2 * LAYERS - 4 + 2 * LAYERS / 7 - 1);
      rondo_program_destroy(program);
    }
  }
}

/* One kernel reads gradients in F32, BF16 and F16 without a conversion. */
TEST(test_fw4_gradients_of_mixed_types_are_joined) {
  const rondo_gradient_options forms[METHODS] = {
      [SGD] = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2},
      [MOMENTUM] = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 0.01f, .scale_loss = true, .initial_scale = 64},
      [ADAM] = {RONDO_GRADIENT_OPTIONS_INIT},
  };
  for (int by = METHODS - (int)test_effort(METHODS); by < METHODS; by++) {
    rondo_program *program = new_program((method)by, 256, 18, true, &forms[by]);
    assert_true(compare_forms(t, program) >= 2 * LAYERS - 4 + 2 * LAYERS * 2 / 3 - 5);
    rondo_program_destroy(program);
  }
}

/* One row: gradients of weights are nearly all that is live, and are freed one by one; those of biases wait. */
TEST(test_fw4_large_gradients_do_not_wait) {
  rondo_program *program = new_program(ADAM, 1, 70, false, NULL);
  const uint32_t saved = compare_forms(t, program);
  assert_in_range(saved, LAYERS / 2, LAYERS + 1);
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

/* Over the first dimensions of few rows, of any rank: one kernel for all of a type, with results of one size. Others
 * have separate kernels: over so many rows that they are computed in parts, over the last dimension, over one in the
 * middle. */
static const struct {
  size_t shape[3], dims[2];
  uint32_t rank, dim_count;
  bool keeps;
} sums[] = {
    {{6, 33}, {0}, 2, 1, false},    {{2, 5, 33}, {0, 1}, 3, 2, false}, {{2, 5, 33}, {0, 1}, 3, 2, true},
    {{2, 3, 11}, {0}, 3, 1, false}, {{2048, 33}, {0}, 2, 1, false},    {{2049, 33}, {0}, 2, 1, false},
    {{33, 6}, {1}, 2, 1, false},    {{4, 5, 6}, {1}, 3, 1, false},
};
enum { SUMS = sizeof sums / sizeof sums[0], JOINED_SUMS = 5 };

static rondo_program *new_sums(rondo_type type) {
  rondo_program *program = test_new_program();
  char name[16];
  for (int i = 0; i < SUMS; i++) {
    rondo_value value;
    (void)snprintf(name, sizeof name, "x%d", i);
    assert_ok(rondo_program_input(program, name, RONDO_F32, sums[i].shape, sums[i].rank, &value));
    assert_ok(rondo_op_cast(program, value, type, &value));
    assert_ok(rondo_op_sum(program, value, sums[i].dims, sums[i].dim_count, sums[i].keeps, &value));
    name[0] = 'y';
    assert_ok(rondo_program_output(program, name, value));
  }
  return program;
}

/* The bytes of all outputs, one after the other. */
static void run_sums(test_fixture *t, rondo_program *program, const rondo_compile_options *options,
                     rondo_compiled_info *info, unsigned char *out_bytes) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  rondo_compiled *compiled = test_compile_kept(program, t->device, options);
  *info = (rondo_compiled_info){.struct_size = sizeof *info};
  assert_ok(rondo_compiled_get_info(compiled, info));
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++)
    if (value.kind == 'i') write_random(compiled, &value, i + 1);
  assert_ok(rondo_compiled_run(compiled));
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'o') continue;
    assert_ok(rondo_compiled_read(compiled, value.name, out_bytes, value.bytes));
    out_bytes += value.bytes;
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_fw4_sums_of_columns_are_joined) {
  const rondo_compile_options forms[] = {{RONDO_COMPILE_OPTIONS_INIT},
                                         {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER}};
  const rondo_compile_options alone = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER};
  const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  for (size_t k = 0; k < 3; k++) {
    unsigned char joined[4096] = {0}, apart[4096] = {1};
    rondo_compiled_info info, of_apart;
    rondo_program *program = new_sums(types[k]);
    run_sums(t, program, &alone, &of_apart, apart);
    for (size_t f = 0; f < 2; f++) {
      memset(joined, 0, sizeof joined);
      joined[0] = 1;
      run_sums(t, program, &forms[f], &info, joined);
      assert_memory_equal(joined, apart, sizeof joined);
      if (types[k] == RONDO_F32) assert_int_equal(of_apart.kernels - info.kernels, JOINED_SUMS - 1);
    }
    rondo_program_destroy(program);
  }
}
