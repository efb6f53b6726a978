/* SPDX-License-Identifier: MIT
 * Attention by the fake cuDNN, which computes what Rondo describes one operation at a time: results and gradients are
 * those of Rondo's kernels, of separate and packed heads, of heads that share k and v, with masks and windows, and in
 * parts; rows that see nothing; what the library does not take, or computes wrongly in some versions; calls that it
 * refuses; nothing of it is left.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "fake_cuda/fake_cudnn.h"
#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/operators/attention/attention_bias.h"

#define VERSION 91900 /* of cuDNN: 9.19 */

static const fake_cudnn_control *library;

static int set_up(void **state) {
  library = fake_cudnn_get();
  assert_non_null(library);
  library->refuse(NULL, 0);
  (void)library->refuse_call(0, 0);
  library->set_version(VERSION);
  return test_setup(state);
}

static int tear_down(void **state) {
  const bool clean = test_destroy_left();
  assert_int_equal(library->live(), 0);
  assert_int_equal(library->violations(), 0);
  assert_int_equal(library->inexact(), 0);
  return test_teardown(state) == 0 && clean ? 0 : -1;
}

#define ATTENTION_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up, tear_down)

/* Of rows and columns, BOOL or floats; of the columns of a batch; of all scores. A float is of q's type, or F32. */
typedef enum mask_form { NO_MASK, BOOL_MASK, PADDING, FLOAT_MASK, WHOLE_MASK, F32_MASK } mask_form;

typedef struct attention_case {
  rondo_type type;
  size_t batches, heads, groups, rows, columns, size;
  bool causal, is_packed, with_gradients, with_mask_gradient;
  mask_form mask;
  size_t window;
} attention_case;

/* Inputs are F32 and rounded in the program; all results are F32. The slopes make the loss depend on each element. */
typedef struct attention_program {
  rondo_program *program;
  rondo_value inputs[4]; /* of which there are gradients */
  size_t input_count;
} attention_program;

static void add_result(const attention_program *p, const char *name, rondo_value value) {
  assert_ok(rondo_op_cast(p->program, value, RONDO_F32, &value));
  assert_ok(rondo_program_output(p->program, name, value));
}

static rondo_value add_input(attention_program *p, const attention_case *c, const size_t *shape, size_t rank) {
  static const char *const names[] = {"q", "k", "v"};
  rondo_value value;
  assert_ok(rondo_program_input(p->program, names[p->input_count], RONDO_F32, shape, rank, &value));
  assert_ok(rondo_op_cast(p->program, value, c->type, &value));
  return p->inputs[p->input_count++] = value;
}

static bool is_bool(const attention_case *c) { return c->mask == BOOL_MASK || c->mask == PADDING; }

static rondo_value add_mask(attention_program *p, const attention_case *c, rondo_value *out_input) {
  const size_t whole[] = {c->batches, c->heads, c->rows, c->columns}, padding[] = {c->batches, 1, 1, c->columns};
  const bool is_plane = c->mask != WHOLE_MASK && c->mask != PADDING;
  const size_t *shape = c->mask == PADDING ? padding : is_plane ? whole + 2 : whole;
  rondo_value mask;
  assert_ok(rondo_program_input(p->program, "mask", RONDO_F32, shape, is_plane ? 2 : 4, out_input));
  assert_ok(rondo_op_cast(p->program, *out_input,
                          is_bool(c)            ? RONDO_BOOL
                          : c->mask == F32_MASK ? RONDO_F32
                                                : c->type,
                          &mask));
  return mask;
}

static rondo_value add_attention(attention_program *p, const attention_case *c, rondo_value *out_mask) {
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = c->causal, .window = c->window};
  const size_t of_q[] = {c->batches, c->heads, c->rows, c->size};
  const size_t of_k[] = {c->batches, c->groups, c->columns, c->size};
  const size_t packed[] = {c->batches, c->rows, (c->heads + 2 * c->groups) * c->size};
  rondo_value y;
  if (c->mask != NO_MASK) options.mask = add_mask(p, c, out_mask);
  if (c->is_packed) {
    const rondo_value qkv = add_input(p, c, packed, 3);
    assert_ok(rondo_op_attention_packed(p->program, qkv, c->heads, c->groups, &options, &y));
    return y;
  }
  const rondo_value q = add_input(p, c, of_q, 4), k = add_input(p, c, of_k, 4), v = add_input(p, c, of_k, 4);
  assert_ok(rondo_op_attention(p->program, q, k, v, &options, &y));
  return y;
}

static void add_gradients(attention_program *p, rondo_value y) {
  static const char *const names[] = {"dq", "dk", "dv", "dmask"};
  rondo_value loss, gradients[4];
  assert_ok(rondo_op_cast(p->program, y, RONDO_F32, &loss));
  assert_ok(rondo_op_square(p->program, loss, &loss));
  assert_ok(rondo_op_sum(p->program, loss, NULL, 0, false, &loss));
  assert_ok(rondo_program_gradients(p->program, loss, p->inputs, p->input_count, gradients));
  for (size_t i = 0; i < p->input_count; i++) add_result(p, names[i], gradients[i]);
}

static attention_program make_program(const attention_case *c) {
  attention_program p = {.program = test_named_program("heads")};
  rondo_value mask;
  const rondo_value y = add_attention(&p, c, &mask);
  add_result(&p, "y", y);
  if (c->with_mask_gradient) p.inputs[p.input_count++] = mask;
  if (c->with_gradients) add_gradients(&p, y);
  return p;
}

static rondo_compiled *compile(test_fixture *t, const attention_case *c, bool own) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS, .own_kernels = own};
  return test_compile(make_program(c).program, t->device, &options);
}

static float *allocate(size_t count) {
  float *numbers = calloc(count, sizeof *numbers);
  assert_non_null(numbers);
  return numbers;
}

/* Row 1 of a mask, or a batch of padding, sees nothing. With causality, others may see nothing too. */
static float mask_number(const attention_case *c, size_t at, uint64_t *seed) {
  const bool is_hidden = at / c->columns == 1 || test_random_below(seed, 3) == 0;
  if (is_bool(c)) return is_hidden ? 0 : 1;
  return is_hidden ? -INFINITY : (float)test_random_below(seed, 9) / 4 - 1;
}

static void write_inputs(const attention_case *c, rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  uint64_t seed = 7;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    const size_t count = value.bytes / sizeof(float);
    if (value.kind != 'i') continue;
    float *numbers = allocate(count);
    const bool is_mask = strcmp(value.name, "mask") == 0;
    for (size_t k = 0; k < count; k++)
      numbers[k] = is_mask ? mask_number(c, k, &seed) : (float)test_random_below(&seed, 2001) / 1000 - 1;
    assert_ok(rondo_compiled_write(compiled, value.name, numbers, value.bytes));
    free(numbers);
  }
}

/* The library rounds weights to the type before they are multiplied, Rondo's kernels do not. What should be 0 may be
 * the rounding error of sums of numbers near 1. */
static void assert_alike(const attention_case *c, const float *own, const float *other, size_t count) {
  const float unit = c->type == RONDO_BF16 ? 0.0078125f : 0.0009765625f;
  float most = 0.001f;
  for (size_t i = 0; i < count; i++) most = fmaxf(fabsf(own[i]), most);
  assert_near(other, own, count, 2 * unit * most);
}

/* Compares each output. */
static void compare(const attention_case *c, rondo_compiled *own, rondo_compiled *librarys) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(own, i, &value) == RONDO_OK; i++) {
    const size_t count = value.bytes / sizeof(float);
    if (value.kind != 'o') continue;
    float *numbers = allocate(2 * count);
    assert_ok(rondo_compiled_read(own, value.name, numbers, value.bytes));
    assert_ok(rondo_compiled_read(librarys, value.name, numbers + count, value.bytes));
    assert_alike(c, numbers, numbers + count, count);
    free(numbers);
  }
}

/* Runs of the library in a run of the case, whose results are those of Rondo's kernels. */
static uint64_t librarys_share(test_fixture *t, const attention_case *c) {
  rondo_compiled *own = compile(t, c, true), *librarys = compile(t, c, false);
  rondo_compiled *const both[] = {own, librarys};
  uint64_t before = 0;
  for (size_t i = 0; i < 2; i++) {
    write_inputs(c, both[i]);
    assert_ok(rondo_compiled_run(both[i]));
    assert_ok(rondo_compiled_synchronize(both[i]));
    before = library->graphs();
    assert_ok(rondo_compiled_run_eager(both[i]));
    assert_ok(rondo_compiled_synchronize(both[i]));
    if (i == 0) assert_int_equal(library->graphs(), before);
  }
  compare(c, own, librarys);
  const uint64_t share = library->graphs() - before;
  assert_ok(rondo_compiled_destroy(own));
  assert_ok(rondo_compiled_destroy(librarys));
  return share;
}

/* PR-4: a library computes attention where it is there. */
ATTENTION_TEST(test_pr4_attention_is_the_librarys) {
  static const attention_case cases[] = {
      {.type = RONDO_BF16, .batches = 2, .heads = 3, .groups = 3, .rows = 5, .columns = 7, .size = 8},
      {.type = RONDO_F16, .batches = 2, .heads = 3, .groups = 3, .rows = 6, .columns = 6, .size = 16, .causal = true},
      {.type = RONDO_F16, .batches = 1, .heads = 6, .groups = 2, .rows = 9, .columns = 9, .size = 8, .causal = true},
      {.type = RONDO_BF16,
       .batches = 2,
       .heads = 4,
       .groups = 4,
       .rows = 9,
       .columns = 9,
       .size = 8,
       .causal = true,
       .is_packed = true},
      {.type = RONDO_F16,
       .batches = 3,
       .heads = 4,
       .groups = 2,
       .rows = 5,
       .columns = 5,
       .size = 24,
       .is_packed = true},
      {.type = RONDO_BF16, .batches = 2, .heads = 2, .groups = 1, .rows = 7, .columns = 9, .size = 136},
      {.type = RONDO_F16, .batches = 1, .heads = 2, .groups = 2, .rows = 9, .columns = 9, .size = 256, .causal = true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    attention_case c = cases[i];
    assert_int_equal(librarys_share(t, &c), 1);
    c.with_gradients = true;
    assert_int_equal(librarys_share(t, &c), 2);
  }
}

#define SMALL .batches = 2, .heads = 4, .groups = 2, .size = 8

/* A mask of 9 columns is copied in rows of 16, one of 16 columns is read in place. */
ATTENTION_TEST(test_pr4_attention_with_masks_and_windows_is_the_librarys) {
  static const attention_case cases[] = {
      {.type = RONDO_F16, SMALL, .rows = 5, .columns = 9, .mask = BOOL_MASK},
      {.type = RONDO_BF16, SMALL, .rows = 5, .columns = 9, .mask = PADDING},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .mask = BOOL_MASK, .causal = true},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .mask = PADDING, .causal = true, .is_packed = true},
      {.type = RONDO_BF16, SMALL, .rows = 5, .columns = 9, .mask = FLOAT_MASK},
      {.type = RONDO_F16, SMALL, .rows = 5, .columns = 16, .mask = FLOAT_MASK},
      {.type = RONDO_BF16, SMALL, .rows = 16, .columns = 16, .mask = WHOLE_MASK, .causal = true},
      {.type = RONDO_F16, SMALL, .rows = 5, .columns = 9, .mask = WHOLE_MASK},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 3},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 1},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 9},
      {.type = RONDO_F16, SMALL, .rows = 5, .columns = 9, .window = 9},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 5, .window = 9},
      {.type = RONDO_BF16, SMALL, .rows = 9, .columns = 9, .window = 3, .causal = true},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 3, .causal = true, .mask = BOOL_MASK},
      {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 3, .mask = WHOLE_MASK, .is_packed = true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    attention_case c = cases[i];
    assert_int_equal(librarys_share(t, &c), 1);
    c.with_gradients = true;
    assert_int_equal(librarys_share(t, &c), 2);
  }
}

/* Own kernels compute the gradient of a mask, from what the library left. */
ATTENTION_TEST(test_pr4_the_gradient_of_a_mask_is_own_kernels) {
  const attention_case c = {.type = RONDO_F16,
                            SMALL,
                            .rows = 5,
                            .columns = 16,
                            .mask = FLOAT_MASK,
                            .with_gradients = true,
                            .with_mask_gradient = true};
  assert_int_equal(librarys_share(t, &c), 1);
}

/* Asserts that row 1 of each head is zeros, and that there is something else. */
static void assert_row_is_zeros(const attention_case *c, rondo_compiled *compiled, const char *name) {
  const size_t count = c->batches * c->heads * c->rows * c->size;
  float *numbers = allocate(count), most = 0;
  assert_ok(rondo_compiled_read(compiled, name, numbers, count * sizeof *numbers));
  for (size_t i = 0; i < count; i++) {
    assert_true(isfinite(numbers[i]));
    if (i / c->size % c->rows == 1) assert_true(numbers[i] == 0);
    most = fmaxf(most, fabsf(numbers[i]));
  }
  assert_true(most > 0);
  free(numbers);
}

/* PR-4: a row that sees nothing gives zeros, and no gradient passes through it. */
ATTENTION_TEST(test_pr4_a_row_that_sees_nothing_is_zeros) {
  static const mask_form masks[] = {BOOL_MASK, FLOAT_MASK};
  attention_case c = {.type = RONDO_F16, SMALL, .rows = 16, .columns = 16, .with_gradients = true};
  for (size_t i = 0; i < 2; i++) {
    const uint64_t before = library->graphs();
    c.mask = masks[i];
    rondo_compiled *compiled = compile(t, &c, false);
    write_inputs(&c, compiled);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_synchronize(compiled));
    assert_true(library->graphs() > before);
    assert_row_is_zeros(&c, compiled, "y");
    assert_row_is_zeros(&c, compiled, "dq");
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* Scores of 1.2 MB are stored in two parts: batches, or heads of one batch. So each has its part of a mask, too. */
ATTENTION_TEST(test_pr4_gradients_with_many_scores_are_made_in_parts) {
  attention_case c = {.type = RONDO_F16,
                      .batches = 2,
                      .heads = 2,
                      .groups = 2,
                      .rows = 384,
                      .columns = 384,
                      .size = 8,
                      .causal = true,
                      .mask = PADDING,
                      .with_gradients = true};
  assert_int_equal(librarys_share(t, &c), 1 + 2);
  c.batches = 1;
  c.heads = 4;
  c.mask = WHOLE_MASK;
  assert_int_equal(librarys_share(t, &c), 1 + 2);
}

/* Own kernels compute what the library does not take. */
ATTENTION_TEST(test_pr4_other_attention_is_own_kernels) {
  const attention_case plain = {.type = RONDO_F16,
                                .batches = 1,
                                .heads = 2,
                                .groups = 2,
                                .rows = 8,
                                .columns = 8,
                                .size = 8,
                                .with_gradients = true};
  attention_case cases[] = {plain, plain, plain, plain, plain, plain, plain};
  cases[0].type = RONDO_F32;
  cases[1].mask = F32_MASK;
  cases[2].window = 4;
  cases[2].columns = 12;
  cases[3].size = 12;
  cases[4].causal = true;
  cases[4].columns = 12;
  cases[5].type = RONDO_F32;
  cases[5].mask = BOOL_MASK;
  cases[6].window = 8;
  cases[6].rows = 12;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_int_equal(librarys_share(t, &cases[i]), 0);
}

/* Own kernels compute what the library has no engine for, though it is asked. */
ATTENTION_TEST(test_pr4_masks_without_an_engine_are_own_kernels) {
  attention_case c = {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 3, .mask = BOOL_MASK};
  library->refuse("cudnnBackendFinalize", 3000);
  assert_int_equal(librarys_share(t, &c), 0);
  c.with_gradients = true; /* the forward pass has none */
  library->refuse("cudnnBackendFinalize", 3000);
  assert_int_equal(librarys_share(t, &c), 1);
}

/* What versions of cuDNN compute wrongly. */
ATTENTION_TEST(test_pr4_attention_that_cudnn_computes_wrongly_is_own_kernels) {
  static const struct {
    size_t version;
    attention_case of;
    uint64_t share;
  } cases[] = {
      {90700, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9}, 1},
      {90700, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .mask = PADDING}, 0},
      {90700, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 3}, 0},
      {90700, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .window = 9, .causal = true}, 1},
      {91001, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9}, 0},
      {91002, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .mask = PADDING}, 1},
      {91400, {.type = RONDO_F16, SMALL, .rows = 2, .columns = 1024}, 1},
      {91400, {.type = RONDO_F16, SMALL, .rows = 2, .columns = 1025}, 0},
      {91500, {.type = RONDO_F16, SMALL, .rows = 2, .columns = 1025}, 1},
      {VERSION, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 64, .mask = PADDING, .with_gradients = true}, 1},
      {VERSION, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 128, .mask = PADDING, .with_gradients = true}, 2},
      {VERSION, {.type = RONDO_F16, SMALL, .rows = 9, .columns = 64, .with_gradients = true}, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    library->set_version(cases[i].version);
    assert_int_equal(librarys_share(t, &cases[i].of), cases[i].share);
  }
}

enum { SHARING_LAYERS = 4 };

/* Layers of attention with one mask of batches and columns. */
static rondo_compiled *compile_layers(test_fixture *t, const attention_case *c, const char *without,
                                      uint32_t *kernels) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                         .without_patterns = without};
  const size_t dims[] = {c->batches, c->heads, c->rows, c->size};
  const size_t key_dims[] = {c->batches, c->heads, c->columns, c->size};
  attention_program p = {.program = test_named_program("layers")};
  rondo_attention_options attention = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_value mask;
  attention.mask = add_mask(&p, c, &mask);
  rondo_value y = add_input(&p, c, dims, 4);
  const rondo_value k = add_input(&p, c, key_dims, 4), v = add_input(&p, c, key_dims, 4);
  for (size_t i = 0; i < SHARING_LAYERS; i++) assert_ok(rondo_op_attention(p.program, y, k, v, &attention, &y));
  add_result(&p, "y", y);
  rondo_compiled *compiled = test_compile(p.program, t->device, &options);
  assert_ok(rondo_compiled_get_info(compiled, &info));
  *kernels = info.kernels;
  return compiled;
}

/* Layers make the rows of a mask that the library reads once, not each for itself. */
ATTENTION_TEST(test_pr4_layers_share_the_rows_of_a_mask) {
  const attention_case cases[] = {
      {.type = RONDO_F16, .batches = 2, .heads = 2, .groups = 2, .rows = 16, .columns = 16, .size = 8, .mask = PADDING},
      {.type = RONDO_BF16,
       .batches = 2,
       .heads = 2,
       .groups = 2,
       .rows = 8,
       .columns = 8,
       .size = 16,
       .mask = BOOL_MASK}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t own, shared;
    rondo_compiled *one = compile_layers(t, &cases[i], "attention_mask", &own);
    rondo_compiled *other = compile_layers(t, &cases[i], NULL, &shared);
    assert_in_range(shared, 1, own - SHARING_LAYERS + 2); /* the library's form of a mask takes up to two kernels */
    write_inputs(&cases[i], one);
    write_inputs(&cases[i], other);
    assert_ok(rondo_compiled_run(one));
    assert_ok(rondo_compiled_run(other));
    compare(&cases[i], one, other);
    assert_ok(rondo_compiled_destroy(one));
    assert_ok(rondo_compiled_destroy(other));
  }
}

/* There are no rows to share if q has one: the library's copy of the mask stays in the attention. */
ATTENTION_TEST(test_pr4_the_mask_of_one_row_stays) {
  static const mask_form masks[] = {PADDING, BOOL_MASK, FLOAT_MASK, WHOLE_MASK};
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
    const attention_case c = {.type = RONDO_F16,
                              .batches = 2,
                              .heads = 2,
                              .groups = 2,
                              .rows = 1,
                              .columns = 64,
                              .size = 8,
                              .mask = masks[i]};
    rondo_compiled_pattern pattern = {.struct_size = sizeof pattern};
    uint32_t own, shared;
    rondo_compiled *one = compile_layers(t, &c, "attention_mask", &own), *other = compile_layers(t, &c, NULL, &shared);
    assert_int_equal(shared, own);
    for (size_t k = 0; rondo_compiled_get_pattern(other, k, &pattern) == RONDO_OK; k++)
      assert_string_not_equal(pattern.name, "attention_mask");
    write_inputs(&c, one);
    write_inputs(&c, other);
    assert_ok(rondo_compiled_run(one));
    assert_ok(rondo_compiled_run(other));
    compare(&c, one, other);
    assert_ok(rondo_compiled_destroy(one));
    assert_ok(rondo_compiled_destroy(other));
  }
}

/* A bias of more than 1 GB is not stored: own kernels compute it. */
ATTENTION_TEST(test_pr4_a_bias_that_is_too_large_is_not_planned) {
  rondo_attention_shape shape = {.batches = 1,
                                 .heads = 4,
                                 .rows = 16384,
                                 .columns = 32768,
                                 .mask = {.column = 1},
                                 .mask_kind = RONDO_MASK_BOOLEAN};
  rondo_attention_bias bias;
  (void)t;
  assert_true(rondo_attention_bias_plan(&shape, RONDO_F16, &bias));
  assert_int_equal(bias.bytes, RONDO_ATTENTION_BIAS_MAX);
  shape.rows++;
  assert_false(rondo_attention_bias_plan(&shape, RONDO_F16, &bias));
  shape.rows = SIZE_MAX / 8;
  assert_false(rondo_attention_bias_plan(&shape, RONDO_F16, &bias));
  shape = (rondo_attention_shape){.batches = 1,
                                  .heads = 4,
                                  .rows = 32768,
                                  .columns = 32768,
                                  .mask = {.row = 32768, .column = 1},
                                  .mask_kind = RONDO_MASK_TYPED};
  assert_true(rondo_attention_bias_plan(&shape, RONDO_F16, &bias)); /* in place */
  assert_int_equal(bias.bytes, 0);
}

/* There is little to multiply: 2 x 8 x 8 scores of 8 elements, twice. */
ATTENTION_TEST(test_pr4_little_attention_is_own_kernels) {
  const attention_case c = {
      .type = RONDO_F16, .batches = 1, .heads = 2, .groups = 2, .rows = 8, .columns = 8, .size = 8};
  static const char *const least[] = {"2048", "2049", "1"};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(setenv("RONDO_CUDNN_LEAST", least[i], 1), 0);
    rondo_options_reload();
    assert_int_equal(librarys_share(t, &c), i == 1 ? 0 : 1);
  }
}

/* Refuses call after call. The error has the operator, the library's code, and the remedy. */
ATTENTION_TEST(test_pr4_each_refusal_while_compiling_is_reported) {
  const attention_case c = {
      .type = RONDO_F16, SMALL, .rows = 9, .columns = 9, .mask = BOOL_MASK, .window = 3, .with_gradients = true};
  uint64_t number = 0;
  for (bool came = true; came; number++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS};
    rondo_program *program = make_program(&c).program;
    rondo_compiled *compiled = NULL;
    (void)library->refuse_call(number + 1, 5000);
    const rondo_status status = rondo_compile(program, t->device, &options, &compiled);
    came = library->refuse_call(0, 0);
    rondo_program_destroy(program);
    if (came) {
      assert_fails(status, RONDO_EXECUTION_FAILED);
      assert_message("RONDO_CUDNN_LIBRARY=none");
      assert_int_equal(rondo_last_error()->driver_code, 5000);
    } else {
      assert_ok(rondo_compiled_destroy(compiled));
    }
    assert_int_equal(library->live(), 0);
  }
  assert_true(number > 100);
}
