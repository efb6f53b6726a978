/* SPDX-License-Identifier: MIT
 * categorical (PR-5): what is drawn for each row, with temperatures, top-k and top-p; that rows are drawn by
 * themselves; how often each index is drawn; rows with -infinity and NaN; and what is refused.
 */
#include <math.h>
#include <rondo/random.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_operator.h"
#include "support/test_program.h"

enum { ROWS = 40, MOST_COLUMNS = 300 };

typedef struct draw_case {
  size_t columns, top_k;
  float top_p, temperatures[ROWS];
  bool has_temperatures, is_scalar;
  rondo_type type;
} draw_case;

typedef struct draw_inputs {
  float logits[ROWS * MOST_COLUMNS];
  int64_t seeds[ROWS];
  int32_t counters[ROWS];
} draw_inputs;

static rondo_program *build(const draw_case *c, size_t rows) {
  rondo_categorical_options options = {RONDO_CATEGORICAL_OPTIONS_INIT, .top_k = c->top_k, .top_p = c->top_p};
  rondo_program *program = test_new_program();
  rondo_value logits, seeds, counters, y;
  assert_ok(rondo_program_input(program, "logits", RONDO_F32, (size_t[]){rows, c->columns}, 2, &logits));
  assert_ok(rondo_op_cast(program, logits, c->type, &logits));
  assert_ok(rondo_program_input(program, "seeds", RONDO_I64, &rows, 1, &seeds));
  assert_ok(rondo_program_input(program, "counters", RONDO_I32, &rows, 1, &counters));
  if (c->has_temperatures)
    assert_ok(
        rondo_program_input(program, "temperature", RONDO_F32, &rows, c->is_scalar ? 0 : 1, &options.temperature));
  assert_ok(rondo_op_categorical(program, logits, seeds, counters, &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* Draws rows from `first` on. */
static void run(test_fixture *t, const draw_case *c, const draw_inputs *in, size_t first, size_t rows, int32_t *y) {
  draw_case copy = *c;
  const test_bytes inputs[] = {
      {"logits", (void *)(uintptr_t)(in->logits + first * c->columns), rows * c->columns * sizeof(float)},
      {"seeds", (void *)(uintptr_t)(in->seeds + first), rows * sizeof(int64_t)},
      {"counters", (void *)(uintptr_t)(in->counters + first), rows * sizeof(int32_t)},
      {c->has_temperatures ? "temperature" : NULL, c->has_temperatures ? copy.temperatures + first : NULL,
       c->is_scalar ? sizeof(float) : rows * sizeof(float)},
      {NULL, NULL, 0}};
  const test_bytes outputs[] = {{"y", y, rows * sizeof *y}, {NULL, NULL, 0}};
  test_run_program(t, build(c, rows), inputs, outputs);
}

static void fill(draw_inputs *in, size_t columns, uint64_t seed) {
  for (size_t i = 0; i < ROWS * columns; i++)
    in->logits[i] = (float)test_draw_between(&seed, 0, 1000) / 125 - 4; /* exact in F16 */
  for (size_t i = 0; i < ROWS; i++) {
    in->seeds[i] = (int64_t)(seed * (i + 3));
    in->counters[i] = (int32_t)test_draw_between(&seed, 0, 100000);
  }
}

/* The reference ---------------------------------------------------------------------------------------------------- */

static double uniform_of(const draw_inputs *in, size_t row) {
  return (rondo_philox((uint64_t)in->seeds[row], (uint32_t)in->counters[row], 0).x[0] >> 8) * 0x1p-24;
}

static bool comes_before(const float *logits, size_t a, size_t b) {
  return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void list_by_logit(const float *logits, size_t count, size_t *out) {
  for (size_t i = 0; i < count; i++) {
    size_t at = i;
    for (; at > 0 && comes_before(logits, i, out[at - 1]); at--) out[at] = out[at - 1];
    out[at] = i;
  }
}

/* Whether the index is the right one, or its neighbour where rounding decides. */
static bool is_right(const draw_case *c, const draw_inputs *in, size_t row, int32_t drawn) {
  const float *logits = in->logits + row * c->columns;
  const double temperature = c->has_temperatures ? (double)c->temperatures[c->is_scalar ? 0 : row] : 1;
  const bool is_sorted = c->top_k > 0 || (c->top_p > 0 && c->top_p < 1);
  const size_t kept = c->top_k > 0 ? c->top_k : c->columns;
  size_t order[MOST_COLUMNS] = {0};
  double sums[MOST_COLUMNS], sum = 0;
  list_by_logit(logits, c->columns, order);
  const float best = logits[order[0]];
  if (temperature == 0) return logits[drawn] == best;
  for (size_t i = 0; !is_sorted && i < c->columns; i++) order[i] = i;
  for (size_t i = 0; i < kept; i++) sums[i] = sum += exp((double)(logits[order[i]] - best) / temperature);
  const double mass = (c->top_p > 0 ? (double)c->top_p : 1) * sum, uniform = uniform_of(in, row), slack = 1e-5 * sum;
  double low = 0;
  for (size_t i = 0; i < kept; low = sums[i++]) {
    if ((size_t)drawn != order[i]) continue;
    for (size_t last = 0; last < kept; last++) { /* the candidates for the last index that top-p keeps */
      if (sums[last] < mass - slack) continue;
      const double bound = uniform * sums[last];
      if (bound >= low - slack && bound <= sums[i] + slack && i <= last) return true;
      if (sums[last] >= mass + slack) break;
    }
    return false;
  }
  return false;
}

static void check_case(test_fixture *t, const draw_case *c, uint64_t seed) {
  static draw_inputs in;
  int32_t y[ROWS], alone[ROWS];
  fill(&in, c->columns, seed);
  run(t, c, &in, 0, ROWS, y);
  for (size_t row = 0; row < ROWS; row++) {
    assert_in_range(y[row], 0, c->columns - 1);
    assert_true(is_right(c, &in, row, y[row]));
  }
  if (c->is_scalar) return;
  run(t, c, &in, 7, 3, alone);
  assert_memory_equal(alone, y + 7, 3 * sizeof *y);
}

TEST(test_pr5_indices_are_drawn_from_the_softmax) {
  for (size_t i = 0; i < 6; i++) {
    const size_t columns[] = {1, 2, 5, 64, 257, 300};
    const draw_case c = {.columns = columns[i], .type = RONDO_F32};
    check_case(t, &c, i + 1);
  }
}

TEST(test_pr5_temperatures_top_k_and_top_p_together) {
  static const float top_ps[] = {0, 0.001f, 0.3f, 0.9f, 1};
  uint64_t seed = 9;
  for (size_t i = 0; i < 15; i++) {
    draw_case c = {.columns = test_draw_between(&seed, 2, MOST_COLUMNS), .type = i % 3 == 0 ? RONDO_F16 : RONDO_F32};
    c.top_k = i % 2 == 0 ? 0 : test_draw_between(&seed, 1, c.columns);
    c.top_p = top_ps[i % 5];
    c.has_temperatures = i % 4 != 0;
    c.is_scalar = i % 4 == 1;
    for (size_t row = 0; row < ROWS; row++) c.temperatures[row] = (float)test_draw_between(&seed, 0, 6) / 4;
    check_case(t, &c, i + 20);
  }
}

/* Each of four indices, of probabilities 1/2, 1/4, 1/8 and 1/8, as often as it should be, within five deviations. */
TEST(test_pr5_indices_are_drawn_as_often_as_they_should_be) {
  enum { RUNS = 50, DRAWS = RUNS * ROWS };
  static draw_inputs in;
  const draw_case c = {.columns = 4, .type = RONDO_F32};
  const double expected[] = {0.5, 0.25, 0.125, 0.125};
  size_t counts[4] = {0};
  int32_t y[ROWS];
  rondo_compiled *compiled = test_compile(build(&c, ROWS), t->device, NULL);
  for (size_t row = 0; row < ROWS; row++) {
    for (size_t i = 0; i < 4; i++) in.logits[4 * row + i] = (float)log(expected[i]) + (float)row;
    in.seeds[row] = (int64_t)row;
  }
  assert_ok(rondo_compiled_write(compiled, "logits", in.logits, 4 * ROWS * sizeof(float)));
  assert_ok(rondo_compiled_write(compiled, "seeds", in.seeds, sizeof in.seeds));
  for (int32_t at = 0; at < RUNS; at++) {
    for (size_t row = 0; row < ROWS; row++) in.counters[row] = at;
    assert_ok(rondo_compiled_write(compiled, "counters", in.counters, sizeof in.counters));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
    for (size_t row = 0; row < ROWS; row++) counts[y[row]]++;
  }
  for (size_t i = 0; i < 4; i++) {
    const double deviation = sqrt(DRAWS * expected[i] * (1 - expected[i]));
    assert_true(fabs((double)counts[i] - DRAWS * expected[i]) < 5 * deviation);
  }
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Hidden indices are never drawn, whatever the order; a row of NaN still draws an index of the row. */
TEST(test_pr5_hidden_indices_are_not_drawn) {
  static draw_inputs in;
  int32_t y[ROWS];
  for (size_t i = 0; i < 3; i++) {
    const draw_case c = {.columns = 9, .top_k = i == 1 ? 5 : 0, .top_p = i == 2 ? 0.999f : 0, .type = RONDO_F32};
    fill(&in, c.columns, i + 1);
    for (size_t row = 0; row < ROWS; row++)
      for (size_t k = 0; k < c.columns; k++)
        if (k != 2 && k != 5) in.logits[row * c.columns + k] = row == 3 ? NAN : -INFINITY;
    run(t, &c, &in, 0, ROWS, y);
    for (size_t row = 0; row < ROWS; row++) {
      assert_in_range(y[row], 0, c.columns - 1);
      assert_true(row == 3 || y[row] == 2 || y[row] == 5);
    }
  }
}

UNIT_TEST(test_pr5_draws_that_do_not_fit_are_refused) {
  rondo_categorical_options options = {RONDO_CATEGORICAL_OPTIONS_INIT, .top_k = 5};
  rondo_program *program = test_new_program();
  rondo_value logits, cube, whole, seeds, few, counters, y;
  const size_t two = 2, one = 1;
  assert_ok(rondo_program_input(program, "logits", RONDO_F32, (size_t[]){2, 4}, 2, &logits));
  assert_ok(rondo_program_input(program, "cube", RONDO_F32, (size_t[]){2, 4, 1}, 3, &cube));
  assert_ok(rondo_program_input(program, "whole", RONDO_I32, (size_t[]){2, 4}, 2, &whole));
  assert_ok(rondo_program_input(program, "seeds", RONDO_I64, &two, 1, &seeds));
  assert_ok(rondo_program_input(program, "few", RONDO_I64, &one, 1, &few));
  assert_ok(rondo_program_input(program, "counters", RONDO_I32, &two, 1, &counters));
  assert_invalid(rondo_op_categorical(program, logits, seeds, counters, &options, &y), RONDO_REASON_OUT_OF_RANGE);
  assert_message("top_k 5 and top_p 1 of 4 columns");
  options = (rondo_categorical_options){RONDO_CATEGORICAL_OPTIONS_INIT, .top_p = 1.5f};
  assert_invalid(rondo_op_categorical(program, logits, seeds, counters, &options, &y), RONDO_REASON_OUT_OF_RANGE);
  options.top_p = NAN;
  assert_invalid(rondo_op_categorical(program, logits, seeds, counters, &options, &y), RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_categorical_options){RONDO_CATEGORICAL_OPTIONS_INIT, .temperature = logits};
  assert_invalid(rondo_op_categorical(program, logits, seeds, counters, &options, &y), RONDO_REASON_SHAPE);
  assert_message("a scalar or [n] with n 2");
  options.temperature = counters;
  assert_invalid(rondo_op_categorical(program, logits, seeds, counters, &options, &y), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_categorical(program, cube, seeds, counters, NULL, &y), RONDO_REASON_SHAPE);
  assert_invalid(rondo_op_categorical(program, whole, seeds, counters, NULL, &y), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_categorical(program, logits, counters, counters, NULL, &y), RONDO_REASON_TYPE);
  assert_invalid(rondo_op_categorical(program, logits, few, counters, NULL, &y), RONDO_REASON_SHAPE);
  assert_message("for each of the 2 rows");
  assert_int_equal(y.id, 0);
  assert_ok(rondo_op_categorical(program, logits, seeds, counters, NULL, &y));
  rondo_program_destroy(program);
}

int main(void) { return test_run_registered(); }
