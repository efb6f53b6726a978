/* SPDX-License-Identifier: MIT
 * Kernels that are compiled for several vector widths give the same bits with each width that the processor has: unary
 * and broadcast operators on all kinds of numbers, and training steps of a network with the other operators. Products
 * are plain C: other kernels of products multiply and add in one rounding. So does attention with AVX2 and AVX-512, and
 * has the same bits with these two.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/program/operators.h"

static const char *const widths[] = {"plain", "avx2", "avx512"};
enum { PLAIN, AVX2, WIDTHS = sizeof widths / sizeof widths[0] };

/* False: the processor does not have it. */
static bool use(size_t width) {
  assert_int_equal(setenv("RONDO_CPU_VECTORS", widths[width], 1), 0);
  assert_int_equal(setenv("RONDO_CBLAS_LIBRARY", "none", 1), 0);
  rondo_options_reload();
  return rondo_vectors_choose() == (rondo_vectors)(RONDO_VECTORS_PLAIN + width);
}

static void use_widest(void) {
  unsetenv("RONDO_CPU_VECTORS");
  rondo_options_reload();
  (void)rondo_vectors_choose();
}

DEVICE_TEST(test_widths_are_chosen) {
  assert_true(use(PLAIN));
  assert_int_equal(rondo_vectors_used(), RONDO_VECTORS_PLAIN);
  use_widest();
  print_message("vectors: %d\n", (int)rondo_vectors_used());
#ifndef __x86_64__
  assert_int_equal(rondo_vectors_used(), RONDO_VECTORS_PLAIN);
#endif
}

/* Chunks ----------------------------------------------------------------------------------------------------------- */

#define COUNT 1003 /* not a multiple of the lanes */

/* Ends and patterns of bits: subnormal, infinite and no numbers, too. */
static void fill(float *x, uint64_t seed) {
  static const float ends[] = {0.0f, -0.0f, 1.0f, -1.0f, 88.0f, -88.0f, 104.5f, -104.5f, 1e-40f, 3e38f, -3e38f};
  for (size_t i = 0; i < COUNT; i++) {
    const uint32_t bits = (uint32_t)(test_random(&seed) >> 16);
    memcpy(&x[i], &bits, sizeof bits);
    if (i % 3 == 0) x[i] = (float)(int32_t)bits * 0x1p-28f; /* -8 .. 8 */
    if (i < sizeof ends / sizeof ends[0]) x[i] = ends[i];
  }
}

static void compute(const rondo_operator *row, const float *const *terms, void *result) {
  const rondo_chunk_call call = {.row = row,
                                 .terms = {terms[0], terms[1], terms[2]},
                                 .types = {RONDO_F32, RONDO_F32, RONDO_F32},
                                 .result_type = RONDO_F32,
                                 .result = result,
                                 .count = COUNT};
  row->element.compute(&call);
}

static bool is_one_of_two(const rondo_operator *row) {
  return row == &rondo_operator_add || row == &rondo_operator_sub || row == &rondo_operator_mul ||
         row == &rondo_operator_div || row == &rondo_operator_maximum || row == &rondo_operator_minimum;
}

static bool is_one_of_one(const rondo_operator *row) { return row->element.compute == rondo_compute_unary; }

DEVICE_TEST(test_chunks_have_the_same_bits) {
  static float inputs[3][COUNT], results[WIDTHS][COUNT];
  size_t rows = 0, compared = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  for (size_t i = 0; i < 3; i++) fill(inputs[i], i + 1);
  const float *const terms[] = {inputs[0], inputs[1], inputs[2]};
  for (size_t r = 0; r < rows; r++) {
    if (!is_one_of_one(table[r]) && !is_one_of_two(table[r])) continue;
    for (size_t width = 0; width < WIDTHS; width++) {
      if (!use(width)) continue;
      compute(table[r], terms, results[width]);
      for (size_t i = 0; i < COUNT; i++) {
        if (memcmp(&results[PLAIN][i], &results[width][i], sizeof(float)) != 0 &&
            (results[PLAIN][i] == results[PLAIN][i] || results[width][i] == results[width][i]))
          fail_msg("%s with %s: element %zu is %.9g, not %.9g", table[r]->name, widths[width], i,
                   (double)results[width][i], (double)results[PLAIN][i]);
      }
      compared++;
    }
  }
  use_widest();
  assert_true(compared >= 20);
}

/* A network -------------------------------------------------------------------------------------------------------- */

#define ROWS 70  /* more than a tile of attention */
#define WIDTH 36 /* not a multiple of the lanes */
#define HEADS 2
#define WORDS 37
#define STEPS 3

static const char *const names[] = {"table", "scale", "shift", "wide", "bias", "head"};

typedef struct network {
  rondo_program *program;
  size_t elements[8]; /* of each weight */
  uint32_t count;
} network;

static rondo_value weight(network *n, const size_t *dims, uint32_t rank) {
  rondo_value state;
  assert_ok(rondo_program_state(n->program, names[n->count], RONDO_F32, dims, rank, &state));
  n->elements[n->count++] = dims[0] * (rank > 1 ? dims[1] : 1);
  return state;
}

/* In the type that is computed with. */
static rondo_value cast(network *n, rondo_value value, rondo_type type) {
  rondo_value y;
  if (type == RONDO_F32) return value;
  assert_ok(rondo_op_cast(n->program, value, type, &y));
  return y;
}

static rondo_value attend(network *n, rondo_value x) {
  const rondo_attention_options causal = {RONDO_ATTENTION_OPTIONS_INIT, .causal = true};
  static const size_t apart[] = {1, ROWS, HEADS, WIDTH / HEADS}, rows[] = {ROWS, WIDTH}, order[] = {0, 2, 1, 3};
  rondo_value y;
  assert_ok(rondo_op_reshape(n->program, x, apart, 4, &y));
  assert_ok(rondo_op_permute(n->program, y, order, &y));
  assert_ok(rondo_op_attention(n->program, y, y, y, &causal, &y));
  assert_ok(rondo_op_permute(n->program, y, order, &y));
  assert_ok(rondo_op_reshape(n->program, y, rows, 2, &y));
  return y;
}

static void build(network *n, rondo_type type, bool attends) {
  rondo_value words, labels, x, y, sum, loss, rate;
  assert_ok(rondo_program_create(NULL, &n->program));
  rondo_program *p = n->program;
  assert_ok(rondo_program_input(p, "words", RONDO_I32, (const size_t[]){ROWS}, 1, &words));
  assert_ok(rondo_program_input(p, "labels", RONDO_I32, (const size_t[]){ROWS}, 1, &labels));
  assert_ok(rondo_program_cell(p, "rate", 0.01f, &rate));
  assert_ok(rondo_op_embedding(p, weight(n, (const size_t[]){WORDS, WIDTH}, 2), words, &x));
  x = cast(n, x, type);
  const rondo_value scale = weight(n, (const size_t[]){WIDTH}, 1), shift = weight(n, (const size_t[]){WIDTH}, 1);
  assert_ok(rondo_op_layer_norm(p, x, scale, shift, 1, 1e-5f, &y));
  if (attends) y = attend(n, y);
  assert_ok(rondo_op_add_layer_norm(p, x, y, scale, shift, 1, 1e-5f, &sum, &y));
  const rondo_value wide = cast(n, weight(n, (const size_t[]){WIDTH, WIDTH}, 2), type);
  const rondo_value bias = cast(n, weight(n, (const size_t[]){WIDTH}, 1), type);
  assert_ok(rondo_op_matmul(p, y, wide, bias, &y));
  assert_ok(rondo_op_gelu(p, y, RONDO_GELU_ERF, &y));
  assert_ok(rondo_op_add(p, sum, y, &y));
  assert_ok(rondo_op_rms_norm(p, y, scale, 1, 1e-5f, &y));
  assert_ok(rondo_op_softmax(p, y, &sum));
  assert_ok(rondo_op_mul(p, y, sum, &y));
  assert_ok(rondo_op_matmul(p, y, cast(n, weight(n, (const size_t[]){WIDTH, WORDS}, 2), type), (rondo_value){0}, &y));
  assert_ok(rondo_op_cross_entropy(p, y, labels, &loss));
  assert_ok(rondo_program_output(p, "loss", loss));
  const rondo_gradient_options clipped = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1.0f};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.01f,
                                   .gradients = &clipped};
  assert_ok(rondo_program_adam(p, loss, &adam));
}

/* The weights after some steps. */
static void train(const network *n, rondo_compiled *compiled, float *weights) {
  int32_t words[ROWS], labels[ROWS];
  uint64_t seed = 7;
  for (size_t i = 0; i < ROWS; i++) {
    words[i] = (int32_t)test_random_below(&seed, WORDS);
    labels[i] = (int32_t)test_random_below(&seed, WORDS);
  }
  assert_ok(rondo_compiled_write(compiled, "words", words, sizeof words));
  assert_ok(rondo_compiled_write(compiled, "labels", labels, sizeof labels));
  for (uint32_t i = 0; i < n->count; i++) {
    for (size_t k = 0; k < n->elements[i]; k++) weights[k] = (float)test_random_below(&seed, 2001) * 1e-3f - 1.0f;
    assert_ok(rondo_compiled_write(compiled, names[i], weights, n->elements[i] * sizeof *weights));
  }
  for (int step = 0; step < STEPS; step++) assert_ok(rondo_compiled_run(compiled));
  for (uint32_t i = 0; i < n->count; weights += n->elements[i++])
    assert_ok(rondo_compiled_read(compiled, names[i], weights, n->elements[i] * sizeof *weights));
}

static void check_training(rondo_device *device, rondo_type type, bool attends) {
  static float weights[WIDTHS][3 * WORDS * WIDTH + WIDTH * WIDTH];
  const size_t first = attends ? AVX2 : PLAIN;
  for (size_t width = first; width < WIDTHS; width++) {
    network n = {.count = 0};
    if (!use(width)) continue;
    build(&n, type, attends);
    rondo_compiled *compiled = test_compile_kept(n.program, device, NULL);
    train(&n, compiled, weights[width]);
    assert_memory_equal(weights[width], weights[first], sizeof weights[first]);
    assert_true(weights[width][0] == weights[width][0]);
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(n.program);
  }
}

TEST(test_training_has_the_same_bits) {
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  for (size_t type = 0; type < sizeof types / sizeof types[0]; type++) {
    check_training(t->device, types[type], false);
    check_training(t->device, types[type], true);
  }
  use_widest();
}
