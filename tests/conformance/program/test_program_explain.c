/* SPDX-License-Identifier: MIT
 * A compiled program explains itself (FW-7): rondo_compiled_explain as text and as JSON, whose fields are those that
 * the header documents; what is not recorded and why, and what would increase the gain. Costs are given, so that
 * decisions and advice depend on no clock.
 */
#include <jansson.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

/* With these nothing pays; and with those all does, and nodes cost nothing. */
static const rondo_costs dear = {RONDO_COSTS_INIT, .launch_host = 1e9, .launch_latency = 1e9};
static const rondo_costs cheap = {RONDO_COSTS_INIT, .stream_kernel = 1e9, .launch_latency = 1e-9};

static const rondo_value none = {0};

/* tanh(x w) and softmax(x v), which are independent, and their sum. */
static rondo_compiled *compile(test_fixture *t, const rondo_compile_options *options) {
  rondo_program *program = test_named_program("odd \"name\"\n\xff");
  rondo_value x, w, v, a, b;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){8, 16}, 2, &x));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){16, 16}, 2, &w));
  assert_ok(rondo_program_state(program, "v", RONDO_F32, (const size_t[]){16, 16}, 2, &v));
  assert_ok(rondo_op_matmul(program, x, w, none, &a));
  assert_ok(rondo_op_tanh(program, a, &a));
  assert_ok(rondo_op_matmul(program, x, v, none, &b));
  assert_ok(rondo_op_softmax(program, b, &b));
  assert_ok(rondo_op_add(program, a, b, &a));
  assert_ok(rondo_program_output(program, "y", a));
  return test_compile(program, t->device, options);
}

static json_t *explain(const rondo_compiled *compiled) {
  char *text = NULL;
  json_error_t error;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_JSON, &text));
  json_t *json = json_loads(text, 0, &error);
  if (json == NULL) fail_msg("%s: %s", error.text, text);
  rondo_text_free(text);
  return json;
}

static void assert_text_has(const rondo_compiled *compiled, const char *part) {
  char *text = NULL;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &text));
  if (strstr(text, part) == NULL) fail_msg("no '%s' in:\n%s", part, text);
  rondo_text_free(text);
}

static const char *string_of(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}
static json_int_t number_of(const json_t *json, const char *key) {
  return json_integer_value(json_object_get(json, key));
}

static bool is_advised(const json_t *json, const char *kind) {
  const json_t *all = json_object_get(json, "advice");
  for (size_t i = 0; i < json_array_size(all); i++)
    if (strcmp(string_of(json_array_get(all, i), "kind"), kind) == 0) return true;
  return false;
}

static void assert_keys(json_t *json, const char *const *keys, size_t count) {
  const char *key;
  json_t *value;
  size_t at = 0;
  json_object_foreach(json, key, value) {
    assert_true(at < count);
    assert_string_equal(key, keys[at++]);
  }
  assert_int_equal(at, count);
}

TEST(test_fw7_json_has_the_fields_of_the_header) {
  static const char *const keys[] = {"rondo_compiled", "name",        "device",        "recorded",      "policy",
                                     "reason",         "message",     "kernels",       "operators",     "nodes",
                                     "dependencies",   "branches",    "arena_bytes",   "branch_bytes",  "state_bytes",
                                     "inputs",         "input_bytes", "staged_inputs", "gain",          "advice",
                                     "executor",       "memory",      "updates",       "data_parallel", "patterns"};
  static const char *const memory_keys[] = {"lower_bound", "straight_bytes", "order_peak", "program_peak",
                                            "packed_bytes"};
  static const char *const gain_keys[] = {
      "works",     "host_us",   "device_us",  "total_us",      "recorded_host_us", "recorded_total_us",
      "record_us", "host_gain", "total_gain", "runs_to_repay", "is_measured"};
  assert_ok(rondo_device_set_costs(t->device, &cheap));
  rondo_compiled *compiled = compile(t, NULL);
  assert_ok(rondo_compiled_measure(compiled, 2, NULL));
  json_t *json = explain(compiled);
  assert_keys(json, keys, sizeof keys / sizeof keys[0]);
  assert_keys(json_object_get(json, "gain"), gain_keys, sizeof gain_keys / sizeof gain_keys[0]);
  json_t *memory = json_object_get(json, "memory");
  assert_keys(memory, memory_keys, sizeof memory_keys / sizeof memory_keys[0]);
  assert_true(number_of(memory, "order_peak") > 0 &&
              number_of(memory, "order_peak") <= number_of(memory, "program_peak"));
  assert_int_equal(number_of(memory, "lower_bound"), number_of(json, "arena_bytes"));
  assert_int_equal(number_of(json, "rondo_compiled"), 1);
  assert_string_equal(string_of(json, "name"), "odd \"name\"\n\xef\xbf\xbd");
  assert_true(json_is_true(json_object_get(json, "recorded")));
  assert_true(json_is_null(json_object_get(json, "reason")));
  assert_string_equal(string_of(json, "policy"), "always");
  assert_true(number_of(json, "nodes") > 0);
  assert_int_equal(number_of(json, "inputs"), 1);
  assert_int_equal(number_of(json, "input_bytes"), 8 * 16 * 4);
  assert_true(json_is_true(json_object_get(json_object_get(json, "gain"), "is_measured")));
  assert_true(json_is_null(json_object_get(json, "executor")));
  json_decref(json);
  assert_text_has(compiled, "program 'odd \\\"name\\\"\\n\xef\xbf\xbd' on ");
  assert_text_has(compiled, "gain         measured: host ");
  assert_text_has(compiled, "writing 1 input (512 B), each at its fixed address");
  assert_text_has(compiled, "memory       1.0000 of its lower bound; results live at once ");
}

/* SE-10: whether an executor is used, and why not. */
TEST(test_fw7_executors_are_reported) {
  static const char *const keys[] = {"used", "reason", "expensive", "sequential_us", "executor_us"};
  rondo_executor *executor = test_executor(t, NULL);
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = executor};
  for (int i = 0; i < 2; i++) {
    options.executor_policy = i == 0 ? RONDO_EXECUTOR_AUTO : RONDO_EXECUTOR_ALWAYS;
    rondo_compiled *compiled = compile(t, &options);
    rondo_compiled_info info = test_compiled_info(compiled);
    json_t *json = explain(compiled), *told = json_object_get(json, "executor");
    assert_keys(told, keys, sizeof keys / sizeof keys[0]);
    assert_int_equal(json_is_true(json_object_get(told, "used")), info.sequential_reason == RONDO_SEQUENTIAL_NONE);
    assert_int_equal(json_is_null(json_object_get(told, "reason")), info.sequential_reason == RONDO_SEQUENTIAL_NONE);
    json_decref(json);
    assert_text_has(compiled, info.sequential_reason == RONDO_SEQUENTIAL_NONE ? "executor     used for eager runs, "
                                                                              : "executor     not used, ");
    if (info.executor_us > 0) assert_text_has(compiled, "; one after another ");
    assert_ok(rondo_compiled_destroy(compiled));
  }
}

TEST(test_fw7_what_is_not_recorded_has_a_reason) {
  assert_ok(rondo_device_set_costs(t->device, &dear));
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  rondo_compiled *compiled = compile(t, &options);
  json_t *json = explain(compiled);
  assert_false(json_is_true(json_object_get(json, "recorded")));
  assert_string_equal(string_of(json, "reason"), "REQUESTED");
  assert_true(json_is_null(json_object_get(json, "gain")));
  assert_true(is_advised(json, "MEASURE"));
  json_decref(json);
  assert_text_has(compiled, "not recorded REQUESTED: it was compiled with RONDO_RECORD_NEVER");
  assert_text_has(compiled, "gain         not known");
  assert_ok(rondo_compiled_destroy(compiled));

  options.record = RONDO_RECORD_AUTO;
  compiled = compile(t, &options);
  json = explain(compiled);
  assert_string_equal(string_of(json, "reason"), "NO_GAIN");
  assert_non_null(strstr(string_of(json, "message"), "recording it gains too little"));
  assert_non_null(strstr(string_of(json, "message"), "predicted to take"));
  assert_true(is_advised(json, "LARGER_PIECE"));
  json_decref(json);
  assert_text_has(compiled, "not recorded NO_GAIN: recording it gains too little: ");
  assert_text_has(compiled, "gain         predicted: host ");
}

TEST(test_fw7_what_would_raise_the_gain) {
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  assert_ok(rondo_device_set_costs(t->device, &cheap));
  rondo_compiled *compiled = compile(t, &options);
  assert_ok(rondo_compiled_measure(compiled, 1, NULL)); /* a recorded run is predicted to take no time but the launch */
  json_t *json = explain(compiled);
  assert_true(is_advised(json, "RECORD"));
  assert_true(is_advised(json, "JOIN_WORKS"));
  assert_false(is_advised(json, "LARGER_PIECE"));
  json_decref(json);
  assert_text_has(compiled, "RECORD: recording it would pay: compile it with RONDO_RECORD_ALWAYS");
}

TEST(test_fw7_branches_are_reported) {
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .branches = RONDO_BRANCHES_NEVER};
  rondo_compiled *compiled = compile(t, &options);
  json_t *json = explain(compiled);
  assert_string_equal(string_of(json, "branches"), "refused");
  assert_true(is_advised(json, "BRANCHES"));
  json_decref(json);
  assert_ok(rondo_compiled_destroy(compiled));

  options.branches = RONDO_BRANCHES_ALWAYS;
  compiled = compile(t, &options);
  json = explain(compiled);
  assert_string_equal(string_of(json, "branches"), "taken");
  assert_false(is_advised(json, "BRANCHES"));
  assert_true(number_of(json, "branch_bytes") == number_of(json, "arena_bytes"));
  json_decref(json);
  assert_text_has(compiled, "branches     parallel, by ");
}

/* Three products are wide for a moment each: side by side they take two or three times the memory. */
TEST(test_fw7_branches_that_take_too_much_memory_are_reported) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
  rondo_program *program = test_new_program();
  rondo_value x, in, out, parts[3];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){8, 8}, 2, &x));
  for (size_t i = 0; i < 3; i++) {
    assert_ok(rondo_program_state(program, names[2 * i], RONDO_F32, (const size_t[]){8, 4096}, 2, &in));
    assert_ok(rondo_program_state(program, names[2 * i + 1], RONDO_F32, (const size_t[]){4096, 8}, 2, &out));
    assert_ok(rondo_op_matmul(program, x, in, none, &parts[i]));
    assert_ok(rondo_op_matmul(program, parts[i], out, none, &parts[i]));
  }
  for (size_t i = 1; i < 3; i++) assert_ok(rondo_op_add(program, parts[0], parts[i], &parts[0]));
  assert_ok(rondo_program_output(program, "y", parts[0]));
  rondo_compiled *compiled = test_compile(program, t->device, NULL);
  json_t *json = explain(compiled);
  assert_string_equal(string_of(json, "branches"), "memory");
  assert_true(number_of(json, "branch_bytes") > number_of(json, "arena_bytes"));
  assert_true(is_advised(json, "BRANCHES"));
  json_decref(json);
  assert_text_has(compiled, "none: they would need an arena of");
}

/* Two chains of so many operators that their dependencies are not searched. */
TEST(test_fw7_branches_that_are_not_tried_are_reported) {
  enum { OPERATORS = 16386 };
  const size_t one = 1;
  rondo_program *program = test_new_program();
  rondo_value lines[2];
  assert_ok(rondo_program_input(program, "x", RONDO_F32, &one, 1, &lines[0]));
  assert_ok(rondo_op_tanh(program, lines[0], &lines[1]));
  for (int i = 0; i < OPERATORS; i++) assert_ok(rondo_op_softmax(program, lines[i % 2], &lines[i % 2]));
  for (int i = 0; i < 2; i++) assert_ok(rondo_program_output(program, i == 0 ? "a" : "b", lines[i]));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  assert_true(test_compiled_info(compiled).branches_ended_early);
  json_t *json = explain(compiled);
  assert_string_equal(string_of(json, "branches"), "budget");
  json_decref(json);
  assert_text_has(compiled, "none: not planned, as there are more than 16,384 operators");
}

TEST(test_a_program_without_a_name_is_reported) {
  rondo_program *program = test_new_program();
  rondo_value x;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, NULL, 0, &x));
  assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_program_output(program, "y", x));
  rondo_compiled *compiled = test_compile_kept(program, t->device, NULL);
  char *text = NULL;
  assert_ok(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, &text));
  assert_int_equal(strncmp(text, "the program on ", 15), 0);
  rondo_text_free(text);
}

TEST(test_what_cannot_be_explained_is_refused) {
  char *text = NULL;
  rondo_compiled *compiled = compile(t, NULL);
  assert_invalid(rondo_compiled_explain(compiled, (rondo_explain_format)2, &text), RONDO_REASON_BAD_OPTIONS);
  assert_null(text);
  assert_invalid(rondo_compiled_explain(NULL, RONDO_EXPLAIN_TEXT, &text), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_explain(compiled, RONDO_EXPLAIN_TEXT, NULL), RONDO_REASON_NULL_ARGUMENT);
}
