/* SPDX-License-Identifier: MIT
 * Equations of einsum (PR-8). Whatever the text is, rondo_op_einsum adds a value of the right shape or returns a typed
 * error and adds nothing; a program with the result compiles and runs, and the sums of small whole numbers are exactly
 * those of the definition. The input: the number of operands, a byte for the rank of each and one for each of its
 * sizes, then the equation.
 */
#include <math.h>
#include <rondo/rondo.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

enum { MOST_OPERANDS = 4, MOST_RANK = 4, MOST_SIZE = 3, MOST_TEXT = 48, MOST_ELEMENTS = 81, LETTERS = 128 };

typedef struct operand {
  size_t shape[MOST_RANK], rank;
  rondo_value value;
} operand;

typedef struct input {
  const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

static size_t elements_of(const size_t *shape, size_t rank) {
  size_t elements = 1;
  for (size_t d = 0; d < rank; d++) elements *= shape[d];
  return elements;
}

/* Elements 1, 2, .. 7, 1, .. */
static void add_operand(rondo_program *program, input *in, size_t number, operand *out) {
  char name[24];
  out->rank = next(in) % (MOST_RANK + 1);
  for (size_t d = 0; d < out->rank; d++) out->shape[d] = 1 + next(in) % MOST_SIZE;
  snprintf(name, sizeof name, "x%zu", number);
  REQUIRE(rondo_program_input(program, name, RONDO_F32, out->shape, out->rank, &out->value) == RONDO_OK);
}

static void fill(rondo_compiled *compiled, const operand *operands, size_t count) {
  float numbers[MOST_ELEMENTS];
  for (size_t i = 0; i < MOST_ELEMENTS; i++) numbers[i] = (float)(1 + i % 7);
  for (size_t i = 0; i < count; i++) {
    char name[24];
    snprintf(name, sizeof name, "x%zu", i);
    const size_t bytes = elements_of(operands[i].shape, operands[i].rank) * sizeof *numbers;
    REQUIRE(rondo_compiled_write(compiled, name, numbers, bytes) == RONDO_OK);
  }
}

/* An equation that rondo_op_einsum took, if it has an arrow and no ellipsis: the labels of each term. */
typedef struct labels {
  char of[MOST_OPERANDS + 1][MOST_TEXT + 1]; /* the result comes last */
  size_t sizes[LETTERS];
} labels;

static bool read_labels(const char *equation, const operand *operands, size_t count, labels *out) {
  size_t term = 0, length = 0;
  memset(out, 0, sizeof *out);
  const char *arrow = strstr(equation, "->");
  if (arrow == NULL || strchr(equation, '.') != NULL) return false;
  for (const char *c = equation; *c != '\0'; c++) {
    if (*c == ',' || c == arrow) term++, length = 0;
    if (c == arrow) term = count, c++;
    if (*c == ',' || *c == ' ' || *c == '>') continue;
    out->of[term][length++] = *c;
  }
  for (size_t i = 0; i < count; i++)
    for (size_t d = 0; d < operands[i].rank; d++) {
      size_t *size = &out->sizes[(size_t)out->of[i][d]];
      if (operands[i].shape[d] > *size) *size = operands[i].shape[d];
    }
  return true;
}

/* The element of an operand at these indices of labels; a size of 1 is broadcast. */
static double element_at(const labels *l, const operand *x, size_t number, const size_t *indices) {
  size_t at = 0;
  for (size_t d = 0; d < x->rank; d++)
    at = at * x->shape[d] + (x->shape[d] == 1 ? 0 : indices[(size_t)l->of[number][d]]);
  return (double)(1 + at % 7);
}

static bool advance(const labels *l, size_t *indices) {
  for (size_t letter = 0; letter < LETTERS; letter++) {
    if (l->sizes[letter] == 0) continue;
    if (++indices[letter] < l->sizes[letter]) return true;
    indices[letter] = 0;
  }
  return false;
}

static void check_sums(const labels *l, const operand *operands, size_t count, const float *result, size_t elements) {
  static double sums[MOST_ELEMENTS * MOST_ELEMENTS];
  size_t indices[LETTERS] = {0};
  memset(sums, 0, elements * sizeof *sums);
  do {
    double product = 1;
    size_t to = 0;
    for (size_t i = 0; i < count; i++) product *= element_at(l, &operands[i], i, indices);
    for (const char *c = l->of[count]; *c != '\0'; c++) to = to * l->sizes[(size_t)*c] + indices[(size_t)*c];
    REQUIRE(to < elements);
    sums[to] += product;
  } while (advance(l, indices));
  for (size_t i = 0; i < elements; i++) REQUIRE(fabs(sums[i] - (double)result[i]) <= 1e-4 * fabs(sums[i]));
}

static void run(rondo_device *device, rondo_program *program, const operand *operands, size_t count, const char *text,
                rondo_value made) {
  static float result[MOST_ELEMENTS * MOST_ELEMENTS];
  size_t shape[RONDO_MAX_DIMENSIONS], rank, elements;
  rondo_compiled *compiled;
  rondo_type type;
  labels l;
  REQUIRE(rondo_value_shape(program, made, &type, shape, &rank) == RONDO_OK && type == RONDO_F32);
  elements = elements_of(shape, rank);
  if (elements > sizeof result / sizeof *result) return;
  REQUIRE(rondo_program_output(program, "y", made) == RONDO_OK);
  REQUIRE(rondo_compile(program, device, NULL, &compiled) == RONDO_OK);
  fill(compiled, operands, count);
  REQUIRE(rondo_compiled_run(compiled) == RONDO_OK);
  REQUIRE(rondo_compiled_read(compiled, "y", result, elements * sizeof *result) == RONDO_OK);
  if (read_labels(text, operands, count, &l)) check_sums(&l, operands, count, result, elements);
  REQUIRE(rondo_compiled_destroy(compiled) == RONDO_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rondo_device *device;
  input in = {data, data + size};
  operand operands[MOST_OPERANDS];
  rondo_value values[MOST_OPERANDS], made = {1};
  char text[MOST_TEXT + 1] = {0};
  rondo_program *program;
  if (device == NULL) REQUIRE(rondo_device_open("cpu", NULL, &device) == RONDO_OK);
  REQUIRE(rondo_program_create(NULL, &program) == RONDO_OK);
  const size_t count = 1 + next(&in) % MOST_OPERANDS;
  for (size_t i = 0; i < count; i++) {
    add_operand(program, &in, i, &operands[i]);
    values[i] = operands[i].value;
  }
  const size_t rest = (size_t)(in.end - in.at);
  memcpy(text, in.at, rest < MOST_TEXT ? rest : MOST_TEXT);
  const rondo_status status = rondo_op_einsum(program, text, values, count, &made);
  REQUIRE((status == RONDO_OK) == (made.id != 0));
  REQUIRE(status == RONDO_OK || status == RONDO_INVALID_ARGUMENT);
  if (status == RONDO_OK) run(device, program, operands, count, text, made);
  rondo_program_destroy(program);
  return 0;
}
