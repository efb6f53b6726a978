/* SPDX-License-Identifier: MIT
 * Random programs; see test_random_program.h.
 */
#include "support/test_random_program.h"

#include <stdio.h>

enum { EDGE = TEST_RANDOM_EDGE, CELLS = TEST_RANDOM_CELLS, STATES = TEST_RANDOM_STATES };

static const rondo_value none;

static rondo_value add_operators(rondo_program *program, const test_random_shape *shape, uint64_t *seed,
                                 rondo_value *values, uint32_t count) {
  const uint32_t operators = 4 + test_random_below(seed, shape->most_operators), kinds = shape->adds ? 4 : 3;
  for (uint32_t i = 0; i < operators; i++, count++) {
    const rondo_value a = values[test_random_below(seed, count)], b = values[test_random_below(seed, count)];
    const uint32_t kind = test_random_below(seed, kinds);
    if (kind == 0) assert_ok(rondo_op_tanh(program, a, &values[count]));
    if (kind == 1) assert_ok(rondo_op_softmax(program, a, &values[count]));
    if (kind == 2) assert_ok(rondo_op_matmul(program, a, b, none, &values[count]));
    if (kind == 3) assert_ok(rondo_op_add(program, a, b, &values[count]));
  }
  return values[count - 1];
}

static rondo_value add_network(rondo_program *program, const test_random_shape *shape, uint64_t *seed) {
  static const char *const names[STATES] = {"w0", "w1", "w2"};
  const size_t dims[] = {EDGE, EDGE};
  rondo_value values[64], y;
  uint32_t count = 0;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, dims, 2, &values[count++]));
  if (shape->has_z) assert_ok(rondo_program_input(program, "z", RONDO_F32, dims, 2, &values[count++]));
  const uint32_t first_state = count;
  for (int i = 0; i < STATES; i++)
    assert_ok(rondo_program_state(program, names[i], RONDO_F32, dims, 2, &values[count++]));
  y = add_operators(program, shape, seed, values, count);
  assert_ok(rondo_op_matmul(program, y, values[first_state], none, &y));
  return y;
}

rondo_program *test_random_program(const test_random_shape *shape, uint64_t *seed) {
  const size_t row[] = {1, CELLS}, column[] = {CELLS, 1};
  rondo_program *program = NULL;
  rondo_value a, b, loss, rate;
  assert_ok(rondo_program_create(NULL, &program));
  const rondo_value y = add_network(program, shape, seed);
  assert_ok(rondo_op_reshape(program, y, row, 2, &a));
  assert_ok(rondo_op_reshape(program, y, column, 2, &b));
  assert_ok(rondo_op_matmul(program, a, b, none, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_cell(program, "rate", 0.01f, &rate));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_adam(program, loss, &adam));
  return program;
}

void test_random_program_write_states(rondo_compiled *compiled) {
  float numbers[CELLS];
  char name[16];
  for (int s = 0; s < STATES; s++) {
    for (int i = 0; i < CELLS; i++) numbers[i] = (float)((i * (s + 3)) % 11) / 11 - 0.5f;
    (void)snprintf(name, sizeof name, "w%d", s);
    assert_ok(rondo_compiled_write(compiled, name, numbers, sizeof numbers));
  }
}

void test_random_program_read_states(rondo_compiled *compiled, float out[STATES][CELLS]) {
  char name[16];
  for (int s = 0; s < STATES; s++) {
    (void)snprintf(name, sizeof name, "w%d", s);
    assert_ok(rondo_compiled_read(compiled, name, out[s], sizeof out[s]));
  }
}
