/* SPDX-License-Identifier: MIT
 * Dividing programs, through internal functions (SE-12): an operator without a kernel for a device, a state that is
 * read between two changes of it, names that are taken, and parts of many devices in an order that keeps the program's
 * order.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "tensor/compile/emit.h"
#include "tensor/divide/division.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

enum { ROWS = 4 };

/* An operator for CPU devices alone, and one that changes the state that it reads ---------------------------------- */

static void twice_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(const float **)args[0];
  float *y = *(float **)args[1];
  (void)blocks;
  for (int i = 0; i < ROWS; i++) y[i] = 2 * x[i];
}

static const rondo_kernel_options twice_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "twice", .cpu = twice_cpu,
                                                .params = {RONDO_READS, RONDO_WRITES}};

static rondo_status twice_infer(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

static rondo_status twice_emit(rondo_emitter *emitter, const rondo_operation *operation) {
  const void *x = rondo_emit_address(emitter, operation->inputs[0]);
  void *y = rondo_emit_address(emitter, operation->results[0]);
  return rondo_emit_kernel(emitter, &twice_code, (rondo_grid){.x = 1}, RONDO_ARGS(&x, &y));
}

static const rondo_operator twice = {
    .name = "twice", .inputs = {"x"}, .required = 1, .result_count = 1, .infer = twice_infer, .emit = twice_emit};
static const rondo_operator change = {
    .name = "change", .inputs = {"state"}, .required = 1, .updates = 1, .result_count = 1, .infer = twice_infer};
static const rondo_operator look = {.name = "look",
                                    .inputs = {"state", "after"},
                                    .required = 2,
                                    .is_late = true,
                                    .result_count = 1,
                                    .infer = twice_infer};

static rondo_program *make_program(void) {
  rondo_program *program = NULL;
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "net"};
  assert_ok(rondo_program_create(&options, &program));
  return program;
}

static uint32_t declare(rondo_program *program, rondo_value_kind kind, const char *name) {
  const rondo_shape shape = rondo_shape_vector(RONDO_F32, ROWS);
  uint32_t index;
  assert_ok(rondo_program_declare(program, kind, name, &shape, 0, &index));
  return index;
}

static uint32_t add(rondo_program *program, const rondo_operator *row, uint32_t a, uint32_t b, uint32_t place) {
  const uint32_t inputs[] = {a, b};
  uint32_t results[RONDO_MAX_RESULTS];
  assert_ok(rondo_program_add(program, row, inputs, rondo_operator_input_count(row), NULL, results));
  assert_ok(rondo_program_place(program, rondo_program_tag(program, results[0]), place));
  return results[0];
}

/* Places of devices of their own. */
static rondo_placement_list make_list(size_t count) {
  rondo_placement_list list = {.count = count};
  for (uint32_t i = 0; i < count; i++) {
    list.first[i] = i;
    memcpy(list.names[i], "cpu:0", sizeof "cpu:0");
    list.names[i][4] = (char)('0' + i);
  }
  return list;
}

TEST(test_se12_a_device_without_the_kernel_is_reported) {
  rondo_device *cpu = NULL;
  rondo_divided *divided = NULL;
  rondo_program *program = make_program();
  assert_ok(rondo_device_open("cpu", NULL, &cpu));
  const uint32_t y = add(program, &twice, declare(program, RONDO_VALUE_INPUT, "x"), 0, 0);
  assert_ok(rondo_program_output(program, "y", rondo_program_tag(program, y)));
  rondo_device *const devices[] = {t->device, cpu};
  assert_error(rondo_compile_divided(program, devices, 2, NULL, &divided), RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION);
  assert_null(divided);
  assert_message("twice");
  assert_message("cuda:0");
  assert_message("list cpu:0 has one");
  assert_error(rondo_compile_divided(program, devices, 1, NULL, &divided), RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION);
  assert_message("none has one");
  assert_ok(rondo_program_place(program, rondo_program_tag(program, y), 1));
  assert_ok(rondo_compile_divided(program, devices, 2, NULL, &divided));
  const float x[ROWS] = {1, 2, 3, 4}, doubled[ROWS] = {2, 4, 6, 8};
  float read[ROWS];
  assert_ok(rondo_divided_write(divided, "x", x, sizeof x));
  assert_ok(rondo_divided_run(divided));
  assert_ok(rondo_divided_read(divided, "y", read, sizeof read));
  assert_memory_equal(read, doubled, sizeof read);
  assert_ok(rondo_divided_destroy(divided));
  rondo_program_destroy(program);
  assert_ok(rondo_device_close(cpu));
}

/* A copy to another device sees the state after all changes of a part, so there must be none that it may not see. */
TEST(test_se12_a_look_between_two_changes_is_refused) {
  for (int changes = 1; changes < 3; changes++) {
    const rondo_placement_list list = make_list(2);
    rondo_program *program = make_program();
    rondo_division division;
    const uint32_t s = declare(program, RONDO_VALUE_STATE, "s");
    const uint32_t changed = add(program, &change, s, 0, 0);
    const uint32_t seen = add(program, &look, s, changed, 1);
    if (changes == 2) (void)add(program, &change, s, 0, 0);
    assert_ok(rondo_program_output(program, "seen", rondo_program_tag(program, seen)));
    if (changes == 2)
      assert_error(rondo_division_make(program, &list, &division), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
    else
      assert_ok(rondo_division_make(program, &list, &division));
    if (changes == 1) {
      assert_int_equal(division.parts.count, 2);
      assert_int_equal(division.crossings.count, 2);
      for (size_t i = 0; i < 2; i++) assert_false(division.crossings.items[i].at_beginning);
    }
    rondo_division_free(&division);
    rondo_program_destroy(program);
  }
}

TEST(test_se12_names_of_crossings_are_free_ones) {
  const rondo_placement_list list = make_list(2);
  rondo_program *program = make_program();
  rondo_division division;
  const uint32_t x = declare(program, RONDO_VALUE_INPUT, "value 2"), s = declare(program, RONDO_VALUE_STATE, "w");
  const uint32_t y = add(program, &rondo_operator_add, x, s, 0);
  assert_int_equal(y, 2);
  const uint32_t z = add(program, &rondo_operator_relu, y, 0, 1);
  assert_ok(rondo_program_output(program, "value 2.1", rondo_program_tag(program, z)));
  assert_ok(rondo_division_make(program, &list, &division));
  assert_int_equal(division.crossings.count, 1);
  assert_string_equal(division.crossings.items[0].name, "value 2.2");
  rondo_division_free(&division);
  rondo_program_destroy(program);
}

/* What a part's operations read is computed in it or before it. */
static void assert_ordered(const rondo_program *program, const rondo_placements *places, const uint32_t *parts) {
  for (uint32_t i = 0; i < program->operations.count; i++) {
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      const uint32_t input = program->operations.items[i].inputs[k];
      if (input == RONDO_NO_VALUE || program->values.items[input].kind != RONDO_VALUE_RESULT) continue;
      assert_true(parts[program->values.items[input].operation] <= parts[i]);
      for (uint32_t j = 0; j < i; j++)
        if (parts[j] == parts[i]) assert_int_equal(places->of_operation[j], places->of_operation[i]);
    }
  }
}

/* The fewest parts of two places, by trying both first places and taking all that can be taken. */
static uint32_t least_parts(const rondo_program *program, const rondo_placements *places) {
  uint32_t least = UINT32_MAX;
  for (uint32_t first = 0; first < 2; first++) {
    bool done[64] = {false};
    uint32_t parts = 0;
    for (size_t left = program->operations.count, place = first; left > 0; place = 1 - place, parts++) {
      for (uint32_t i = 0; i < program->operations.count; i++) {
        bool is_ready = !done[i] && places->of_operation[i] == place;
        for (uint32_t k = 0; is_ready && k < RONDO_MAX_OPERANDS; k++) {
          const uint32_t input = program->operations.items[i].inputs[k];
          if (input == RONDO_NO_VALUE || program->values.items[input].kind != RONDO_VALUE_RESULT) continue;
          is_ready = done[program->values.items[input].operation];
        }
        if (!is_ready) continue;
        done[i] = true;
        left--;
      }
      if (parts == 0 && left == program->operations.count) parts--; /* nothing could begin there */
    }
    if (parts < least) least = parts;
  }
  return least;
}

TEST(test_se12_parts_of_random_programs) {
  enum { OPERATIONS = 24, PROGRAMS = 200 };
  uint64_t random = 7;
  for (int n = 0; n < PROGRAMS; n++) {
    const uint32_t devices = n % 2 == 0 ? 2 : 4;
    const rondo_placement_list list = make_list(devices);
    rondo_program *program = make_program();
    rondo_scratch scratch = {.allocator = &program->allocator};
    rondo_placements places;
    uint32_t values[OPERATIONS + 1] = {declare(program, RONDO_VALUE_INPUT, "x")}, parts[OPERATIONS], count = 0;
    for (size_t i = 0; i < OPERATIONS; i++) {
      const uint32_t a = values[test_random_below(&random, (uint32_t)i + 1)],
                     b = values[test_random_below(&random, (uint32_t)i + 1)];
      char name[16];
      values[i + 1] = add(program, &rondo_operator_add, a, b, (uint32_t)test_random_below(&random, devices));
      (void)snprintf(name, sizeof name, "y%zu", i);
      assert_ok(rondo_program_output(program, name, rondo_program_tag(program, values[i + 1])));
    }
    assert_ok(rondo_placements_find(program, &list, &scratch, &places));
    assert_ok(rondo_parts_find(program, &places, &scratch, parts, &count));
    assert_ordered(program, &places, parts);
    if (devices == 2) assert_int_equal(count, least_parts(program, &places));
    rondo_scratch_free(&scratch);
    rondo_program_destroy(program);
  }
}
