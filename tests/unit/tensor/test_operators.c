/* SPDX-License-Identifier: MIT
 * The table of operators: elementary functions that kernels use, the operators that optimizers add, and the list that
 * programs see. The last test fails for an operator that no program here uses and that has no cases in tests/operators.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"
#include "tensor/operators/elementwise/elementary.h"
#include "tensor/program/operation.h"
#include "tensor/program/operator_registry.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/sharded_table.h"

static bool reached[512]; /* rows of the table that a program of these tests had */

static void note_rows(const rondo_program *program) {
  size_t rows = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  assert_true(rows <= sizeof reached / sizeof reached[0]);
  for (size_t i = 0; i < program->operations.count; i++) {
    for (size_t k = 0; k < rows; k++) reached[k] = reached[k] || program->operations.items[i].row == table[k];
  }
}

/* Elementary functions --------------------------------------------------------------------------------------------- */

static void assert_within(double got, double wanted, double relative) {
  if (fabs(got - wanted) > relative * fabs(wanted)) fail_msg("%.9g is not %.9g", got, wanted);
}

DEVICE_TEST(test_elementary_functions_are_close) {
  for (uint32_t bits = 0x00800000u; bits < 0x42ae0000u; bits += 1013) {
    const float x = rondo_float_of(bits);
    assert_within((double)rondo_tanh(x), tanh((double)x), 4e-7);
    assert_within((double)rondo_tanh(-x), tanh((double)-x), 4e-7);
    assert_within((double)rondo_exp_negative(-x), exp((double)-x), 4e-7);
    assert_within((double)rondo_exp(-x), exp((double)-x), 4e-7);
    assert_within((double)rondo_exp(x), exp((double)x), 4e-7);
    assert_within((double)rondo_erf(x), erf((double)x), 4e-7);
    assert_within((double)rondo_expm1(x), expm1((double)x), 4e-7);
    assert_within((double)rondo_expm1(-x), expm1((double)-x), 4e-7);
    assert_within((double)rondo_log1p(x), log1p((double)x), 4e-7);
    assert_within((double)rondo_erf(-x), erf((double)-x), 4e-7);
    assert_within((double)rondo_sigmoid(x), 1 / (1 + exp((double)-x)), 4e-7);
    assert_within((double)rondo_sigmoid(-x), 1 / (1 + exp((double)x)), 4e-7);
  }
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 997) {
    assert_within((double)rondo_log(rondo_float_of(bits)), log((double)rondo_float_of(bits)), 4e-7);
  }
  for (uint32_t bits = 0x3f700000u; bits < 0x3f900000u; bits++) { /* where it is near 0 */
    assert_within((double)rondo_log(rondo_float_of(bits)), log((double)rondo_float_of(bits)), 4e-7);
  }
}

/* In the far tail, where nothing is left of x Phi(x), the fit is wider. */
DEVICE_TEST(test_normal_distribution_is_close) {
  for (uint32_t bits = 0; bits < 0x41500000u; bits += 499) {
    const float x = rondo_float_of(bits), bell = (float)exp(-0.5 * (double)x * (double)x);
    const double tail = 0.5 * erfc((double)x / sqrt(2));
    assert_within((double)rondo_normal(-x, bell), tail, x < 7.5f ? 5e-7 : 3e-6);
    assert_within((double)rondo_normal(x, bell), 1 - tail, 5e-7);
  }
  assert_true(rondo_normal(0, 1) == 0.5f && rondo_normal(-0.0f, 1) == 0.5f && isnan(rondo_normal(NAN, NAN)));
  assert_true(rondo_normal(INFINITY, 0) == 1 && rondo_normal(-INFINITY, 0) == 0 && rondo_normal(1e30f, 0) == 1);
}

/* Zeros, infinities, what is too large or too small, and not a number. */
DEVICE_TEST(test_elementary_functions_at_ends) {
  assert_true(rondo_tanh(0) == 0 && !signbit(rondo_tanh(0.0f)) && signbit(rondo_tanh(-0.0f)));
  assert_true(rondo_tanh(INFINITY) == 1 && rondo_tanh(-INFINITY) == -1 && rondo_tanh(1e30f) == 1);
  assert_true(isnan(rondo_tanh(NAN)) && isnan(rondo_exp_negative(NAN)));
  assert_true(rondo_exp_negative(0) == 1 && rondo_exp_negative(-0.0f) == 1);
  assert_true(rondo_exp_negative(-INFINITY) == 0 && rondo_exp_negative(-90) == 0);
  assert_true(rondo_exp(0) == 1 && rondo_exp(-0.0f) == 1 && isnan(rondo_exp(NAN)));
  assert_true(rondo_exp(INFINITY) == INFINITY && rondo_exp(88.8f) == INFINITY && rondo_exp(1e30f) == INFINITY);
  assert_true(rondo_exp(-INFINITY) == 0 && rondo_exp(-104) == 0 && rondo_exp(-1e30f) == 0);
  for (float x = -87.5f; x > -104; x -= 0.01f) /* subnormal results */
    assert_true(fabs((double)rondo_exp(x) - exp((double)x)) < 0x1p-149 + 4e-7 * exp((double)x));
  assert_true(rondo_log(0) == -INFINITY && rondo_log(-0.0f) == -INFINITY && rondo_log(1) == 0);
  assert_true(rondo_log(INFINITY) == INFINITY && isnan(rondo_log(NAN)) && isnan(rondo_log(-NAN)));
  assert_true(isnan(rondo_log(-1)) && isnan(rondo_log(-INFINITY)) && isnan(rondo_log(-1e-45f)));
  assert_true(rondo_erf(0) == 0 && signbit(rondo_erf(-0.0f)) && isnan(rondo_erf(NAN)));
  assert_true(rondo_erf(INFINITY) == 1 && rondo_erf(-INFINITY) == -1 && rondo_erf(1e30f) == 1);
  assert_true(rondo_sigmoid(INFINITY) == 1 && rondo_sigmoid(-INFINITY) == 0 && isnan(rondo_sigmoid(NAN)));
}

/* Updates and zeros ------------------------------------------------------------------------------------------------ */

/* The optimizers' numbers are checked in the conformance suite; here their rows are reached. */
TEST(test_optimizers_and_zeros) {
  for (int kind = 0; kind < 4; kind++) {
    const size_t shape[] = {1, 1};
    const rondo_value none = {0};
    rondo_value w, idle, rate, loss, zeros;
    float value = 1;
    rondo_program *program = test_new_program();
    assert_ok(rondo_program_state(program, "w", RONDO_F32, shape, 2, &w));
    assert_ok(rondo_program_state(program, "idle", RONDO_F32, shape, 2, &idle));
    assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
    assert_ok(rondo_op_matmul(program, w, w, none, &loss));
    assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
    assert_ok(rondo_program_gradients(program, loss, &idle, 1, &zeros));
    assert_ok(rondo_program_output(program, "zeros", zeros));
    const rondo_gradient_options two_runs = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2, .norm_output = "norm"};
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate,
                                     .gradients = kind == 3 ? &two_runs : NULL};
    const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = kind == 1 ? rate : none};
    assert_ok(kind >= 2 ? rondo_program_adam(program, loss, &adam) : rondo_program_sgd(program, loss, &sgd));
    note_rows(program);
    rondo_compiled *compiled = test_compile_kept(program, t->device, NULL);
    assert_ok(rondo_compiled_write(compiled, "w", &value, sizeof value));
    assert_ok(rondo_compiled_write(compiled, "idle", &value, sizeof value));
    for (int i = 0; i < 2; i++) assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "zeros", &value, sizeof value));
    assert_true(value == 0);
    assert_ok(rondo_compiled_read(compiled, "idle", &value, sizeof value));
    assert_true(value == 1);
    assert_ok(rondo_compiled_read(compiled, "w", &value, sizeof value));
    const float wanted[] = {0, -0.5f}; /* 1 - 0.5 · 2; then 0, or with momentum - 0.5 · (0.5 · 2) */
    if (kind < 2) assert_true(value == wanted[kind]);
    if (kind == 2) assert_near(&value, &(float){0.033908f}, 1, 1e-5f); /* 1 - 0.5, then - 0.5 · 1.4737 / 1.5809 */
    if (kind == 3) assert_near(&value, &(float){0.5f}, 1, 1e-5f);      /* one step of two runs */
    assert_ok(rondo_compiled_destroy(compiled));
    rondo_program_destroy(program);
  }
}

/* Of these, the conformance suite has the numbers too. */
DEVICE_TEST(test_other_updates) {
  for (int kind = 0; kind < 2; kind++) {
    rondo_program *program = test_new_program();
    rondo_value w, b, rate, loss;
    assert_ok(rondo_program_state(program, "w", RONDO_F32, NULL, 0, &w));
    assert_ok(rondo_program_state(program, "b", RONDO_F32, NULL, 0, &b));
    assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
    assert_ok(rondo_op_mul(program, w, b, &loss));
    const rondo_parameter_group group = {.states = &b, .state_count = 1, .max_norm = 1};
    const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate, .groups = &group,
                                           .group_count = 1};
    const rondo_rmsprop_options rmsprop = {RONDO_RMSPROP_OPTIONS_INIT, .learning_rate = rate, .states = &b,
                                           .state_count = 1};
    if (kind == 1) assert_ok(rondo_program_assign(program, w, b));
    assert_ok(kind == 0 ? rondo_program_adagrad(program, loss, &adagrad)
                        : rondo_program_rmsprop(program, loss, &rmsprop));
    note_rows(program);
    rondo_program_destroy(program);
  }
}

DEVICE_TEST(test_updates_of_rows) {
  for (int kind = 0; kind < 3; kind++) {
    const rondo_state_options sparse = {RONDO_STATE_OPTIONS_INIT, .sparse = true};
    rondo_program *program = test_new_program();
    rondo_value table, index, rate, loss;
    assert_ok(rondo_program_state_with(program, "t", RONDO_F32, (size_t[]){3, 1}, 2, &sparse, &table));
    assert_ok(rondo_program_input(program, "index", RONDO_I32, NULL, 0, &index));
    assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
    assert_ok(rondo_op_embedding(program, table, index, &loss));
    assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
    const rondo_gradient_options twice = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 2};
    const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .gradients = &twice};
    const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
    const rondo_adagrad_options adagrad = {RONDO_ADAGRAD_OPTIONS_INIT, .learning_rate = rate};
    assert_ok(kind == 0   ? rondo_program_sgd(program, loss, &sgd)
              : kind == 1 ? rondo_program_adam(program, loss, &adam)
                          : rondo_program_adagrad(program, loss, &adagrad));
    note_rows(program);
    rondo_program_destroy(program);
  }
}

/* Owners of rows ---------------------------------------------------------------------------------------------------
 * A device sorts its indices for all owners, so the kernel runs with several without other ranks (MM-3). */

enum { INDICES = 700 /* more than threads of a block */, OWNERS = 3, PART = 34, TABLE_ROWS = 100 };

typedef struct routing {
  size_t slots; /* of an owner */
  int64_t indices[INDICES];
  int32_t to[OWNERS * INDICES], places[INDICES];
} routing;

static void draw_indices(routing *r) {
  for (size_t i = 0; i < INDICES; i++) r->indices[i] = (int64_t)(i * i * 31 + i * 7) % TABLE_ROWS;
}

/* Returns how many indices the busiest owner has. */
static size_t expect_routing(routing *r) {
  size_t taken[OWNERS] = {0}, most = 0;
  for (size_t i = 0; i < INDICES; i++) {
    const size_t index = (size_t)r->indices[i], owner = index / PART, slot = owner * r->slots + taken[owner]++;
    r->to[slot] = (int32_t)(index % PART);
    r->places[i] = (int32_t)slot;
  }
  for (size_t owner = 0; owner < OWNERS; owner++) {
    most = taken[owner] > most ? taken[owner] : most;
    for (size_t k = taken[owner]; k < r->slots; k++) r->to[owner * r->slots + k] = (int32_t)(k % PART);
  }
  return most;
}

static rondo_compiled *compile_routing(const test_fixture *t, rondo_type type, size_t slots) {
  const size_t count = INDICES;
  const rondo_attributes attributes = {.sizes = {[RONDO_ROUTE_RANKS] = OWNERS,
                                                 [RONDO_ROUTE_SLOTS] = slots,
                                                 [RONDO_ROUTE_PART] = PART,
                                                 [RONDO_ROUTE_ROWS] = TABLE_ROWS},
                                       .size_count = RONDO_ROUTE_SIZES};
  rondo_program *program = test_new_program();
  rondo_value indices;
  uint32_t input, routed[RONDO_MAX_RESULTS];
  assert_ok(rondo_program_input(program, "indices", type, &count, 1, &indices));
  assert_ok(rondo_program_resolve(program, indices, "a test", "indices", &input));
  assert_ok(rondo_program_add(program, &rondo_operator_route_indices, &input, 1, &attributes, routed));
  assert_ok(rondo_program_output(program, "slots", rondo_program_tag(program, routed[0])));
  assert_ok(rondo_program_output(program, "places", rondo_program_tag(program, routed[1])));
  note_rows(program);
  return test_compile(program, t->device, NULL);
}

static void write_indices(rondo_compiled *compiled, const routing *r, bool is_wide) {
  int32_t narrow[INDICES];
  for (size_t i = 0; i < INDICES; i++) narrow[i] = (int32_t)r->indices[i];
  if (is_wide)
    assert_ok(rondo_compiled_write(compiled, "indices", r->indices, sizeof r->indices));
  else
    assert_ok(rondo_compiled_write(compiled, "indices", narrow, sizeof narrow));
}

TEST(test_mm3_indices_are_sorted_by_owner) {
  static routing expected, got;
  for (int is_wide = 0; is_wide < 2; is_wide++) {
    expected.slots = INDICES / 2;
    draw_indices(&expected);
    assert_true(expect_routing(&expected) < expected.slots);
    rondo_compiled *compiled = compile_routing(t, is_wide != 0 ? RONDO_I64 : RONDO_I32, expected.slots);
    const size_t bytes = OWNERS * expected.slots * sizeof *got.to;
    write_indices(compiled, &expected, is_wide != 0);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "slots", got.to, bytes));
    assert_ok(rondo_compiled_read(compiled, "places", got.places, sizeof got.places));
    assert_memory_equal(got.to, expected.to, bytes);
    assert_memory_equal(got.places, expected.places, sizeof got.places);
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* The busiest owner has one slot too few; then an index is wrong. */
TEST(test_mm3_indices_without_a_slot_are_found) {
  static routing r;
  r.slots = INDICES / 2;
  draw_indices(&r);
  const size_t most = expect_routing(&r);
  for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
    rondo_compiled *compiled = compile_routing(t, RONDO_I32, is_wrong != 0 ? most : most - 1);
    if (is_wrong != 0) r.indices[INDICES - 1] = TABLE_ROWS;
    write_indices(compiled, &r, false);
    assert_ok(rondo_compiled_run(compiled));
    assert_fails(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED);
    assert_message(is_wrong != 0 ? "indices has 100 at position 699" : "capacity_factor");
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

/* Whether tests/operators has cases of this name, or of <beginning> where it is <beginning>_gradient and such. */
static bool has_own_cases(const char *name) {
  static const char *const names[] = {RONDO_TEST_OPERATOR_NAMES};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const size_t length = strlen(names[i]);
    if (strncmp(name, names[i], length) == 0 && (name[length] == '\0' || name[length] == '_')) return true;
  }
  return false;
}

/* Those of the table that programs are made of, in its order. */
DEVICE_TEST(test_operators_are_listed) {
  size_t rows = 0, listed = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  for (size_t i = 0; i < rows; i++) {
    rondo_operator_info info = {RONDO_OPERATOR_INFO_INIT};
    if (table[i]->types == 0) continue;
    assert_ok(rondo_operator_enumerate(listed++, &info));
    assert_string_equal(info.name, table[i]->name);
    assert_int_equal(info.types, table[i]->types);
  }
  rondo_operator_info info = {RONDO_OPERATOR_INFO_INIT};
  assert_true(listed > 50);
  assert_error(rondo_operator_enumerate(listed, &info), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_operator_enumerate(0, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* PR-2: the CUDA code of an element-wise operator of the user depends on its name and source alone, so that a cache on
 * disk finds it; a serial tells operators of one name apart. */
static uint64_t define_and_copy(const char *name, const char *source, char text[128]) {
  const rondo_operator_element element = {.cuda_source = source};
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = name, .inputs = {"x"},
                                                .element = &element};
  rondo_operator *row;
  assert_ok(rondo_operator_define(&definition, &row));
  assert_true(strlen(row->element.source) < 128);
  assert_non_null(strstr(row->element.function, name));
  memcpy(text, row->element.source, strlen(row->element.source) + 1);
  const uint64_t serial = rondo_user_operator_of(row)->serial;
  rondo_operator_destroy(row);
  return serial;
}

DEVICE_TEST(test_pr2_code_does_not_depend_on_the_process) {
  static const char source[] = "__device__ float once(float x) { return x; }";
  char first[128], second[128], other[128];
  const uint64_t serial = define_and_copy("once", source, first);
  assert_true(define_and_copy("once", source, second) > serial);
  assert_string_equal(first, second);
  (void)define_and_copy("once", "__device__ float once(float x) { return -x; }", other);
  assert_memory_not_equal(first, other, strlen("\nnamespace operator_0123456789abcdef"));
}

/* These need several ranks: conformance/data_parallel has their cases. */
static bool is_of_ranks(const rondo_operator *row) {
  return row->is_collective || row == &rondo_operator_bucket_put || row == &rondo_operator_parameter_take;
}

DEVICE_TEST(test_every_row_was_reached) {
  size_t rows = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  for (size_t i = 0; i < rows; i++) {
    if (!reached[i] && !has_own_cases(table[i]->name) && !is_of_ranks(table[i]))
      fail_msg("operator %s has no case", table[i]->name);
    if (table[i]->differentiate != NULL && table[i]->required > 0 && table[i]->types == 0 && !is_of_ranks(table[i]))
      fail_msg("operator %s does not say its types, so it is not listed", table[i]->name);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(table[i]->name, table[k]->name);
  }
}
