/* SPDX-License-Identifier: MIT
 * Compares the operators of programs with plain C references. For each operator, random cases are drawn from a seed.
 * A compiled program computes each case recorded and eagerly, which must give the same bits, and the reference computes
 * it in double precision. Gradients are compared with finite differences of the reference. Inputs of F16 and BF16 are
 * rounded before either computes with them.
 *
 *   static void draw(uint64_t *seed, test_call *call) { call->input_count = 1; test_draw_tensor(seed, ...); }
 *   static rondo_status build(const test_call *call, rondo_program *program, const rondo_value *in, rondo_value *y) {
 *     return rondo_op_tanh(program, in[0], y);
 *   }
 *   static void reference(const test_call *call, double *const *in, double *y) { ... }
 *   static const test_operator rows[] = {{.name = "tanh", .draw = draw, .build = build, .reference = reference}};
 *   TEST_OPERATOR_MAIN(rows)
 *
 * The rows of a family of operators have a `family` each.
 *
 * Uses only public headers. Each operator has RONDO_TEST_CASES (24) cases of each type.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_OPERATOR_H
#define RONDO_TESTS_SUPPORT_TEST_OPERATOR_H

#include "support/rondo_test.h"

#define TEST_MAX_TENSORS 6
#define TEST_MAX_DRAWN 32

/* An input. */
typedef struct test_tensor {
  rondo_type type; /* 0: the float type under test */
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
  double low, high;          /* random values in low .. high; for integers low <= i < high */
  bool has_no_gradient;      /* its gradient is not compared; integers never have one */
  bool has_rounded_gradient; /* its gradient is as precise as the float type under test, whatever its own type */
  const double *values;      /* instead of random values; NULL: random */
} test_tensor;

/* A case of an operator. */
typedef struct test_call {
  const struct test_operator *op;
  rondo_type type; /* float type of this run */
  size_t input_count;
  test_tensor inputs[TEST_MAX_TENSORS];
  size_t sizes[TEST_MAX_DRAWN]; /* further random choices that draw makes for its own use: strides, options */
  double numbers[4];
} test_call;

typedef rondo_status (*test_build)(const test_call *call, rondo_program *program, const rondo_value *inputs,
                                   rondo_value *result);

typedef struct test_operator {
  const char *name;
  /* Sets input_count, inputs, sizes and numbers: small shapes (some hundred elements) that include odd sizes. */
  void (*draw)(uint64_t *seed, test_call *call);
  /* Adds the operator to the program. It has one result of a float type, or of integers, which have no gradients. */
  test_build build;
  /* Computes the result in double precision. Inputs are doubles, integers too. */
  void (*reference)(const test_call *call, double *const *inputs, double *result);
  double tolerance;          /* of F32 results and gradients, relative to the larger of 1 and the value; 0: 4e-6 */
  double gradient_tolerance; /* 0: 20 times the tolerance */
  size_t gradient_samples;   /* elements of each gradient that are compared; 0: 30; an array of fewer: all */
  bool only_f32;
  bool has_no_gradient;
  bool takes_nan;     /* all inputs of float types are NaN, in F32; gradients are not compared */
  bool has_ties;      /* has no derivative where inputs are equal, as they often are in 16-bit types */
  bool has_state;     /* a second run gives another result and is not compared with the first */
  const void *family; /* data that distinguishes the operators of a family for draw, build and reference */
} test_operator;

/* For draw functions. test_draw_between: low <= n <= high. test_draw_shape: `rank` dimensions of 1 .. most, often 1. */
size_t test_draw_between(uint64_t *seed, size_t low, size_t high);
void test_draw_shape(uint64_t *seed, size_t rank, size_t most, size_t *shape);
size_t test_elements(const size_t *shape, size_t rank);
size_t test_input_elements(const test_call *call, size_t input);

/* Adds a float input of this shape with random values in low .. high. Returns it, so that the caller can set more
 * members. */
test_tensor *test_add_float(test_call *call, const size_t *shape, size_t rank, double low, double high);
/* Adds an I32 input, 0 <= i < bound. */
test_tensor *test_add_index(test_call *call, const size_t *shape, size_t rank, size_t bound);

/* Runs a program whose result y depends on its input "indices", which has a wrong index. The first read fails with this
 * message; the second returns the result. */
void test_wrong_index(test_fixture *fixture, rondo_program *program, rondo_value y, const void *indices, size_t bytes,
                      const char *message, void *result, size_t result_bytes);

/* All cases of one operator, on the fixture's device. */
void test_operator_cases(test_fixture *fixture, const test_operator *op);

/* The program runs the cases of each row as a test, then the file's other tests. */
#define TEST_OPERATOR_MAIN(rows) \
  int main(void) { return test_operator_main((rows), sizeof(rows) / sizeof((rows)[0])); }
int test_operator_main(const test_operator *rows, size_t row_count);

/* Compiles the program, writes its inputs, runs it once, reads its outputs and destroys both. */
typedef struct test_bytes {
  const char *name;
  void *bytes; /* written from or read into; NULL ends a list */
  size_t count;
} test_bytes;
#define TEST_BYTES(name, object) \
  { (name), (void *)&(object), sizeof(object) }
void test_run_program(test_fixture *fixture, rondo_program *program, const test_bytes *inputs,
                      const test_bytes *outputs);

#endif
