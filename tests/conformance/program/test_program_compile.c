/* SPDX-License-Identifier: MIT
 * Compiling and running programs (FW-1): fixed addresses, a separate stream and graph, a warm-up without effects,
 * removed operators, every error of building, compiling, writing and reading, and wrong indices that fail a run.
 */
#include <math.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

static rondo_program *make_program(void) { return test_named_program("small"); }

static rondo_compiled *compile(test_fixture *t, rondo_program *program) {
  return test_compile_kept(program, t->device, NULL);
}

static const rondo_value none = {0};

/* y = tanh(x w), and "x w" itself if requested. */
static rondo_program *make_layer(void) {
  rondo_program *program = make_program();
  const rondo_value x = test_value(program, 'i', "x", 2, 3);
  const rondo_value w = test_value(program, 's', "w", 3, 4);
  rondo_value product, y;
  assert_ok(rondo_op_matmul(program, x, w, none, &product));
  assert_ok(rondo_op_tanh(program, product, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static const float layer_x[6] = {1, 0, 0, 0, 1, -1};
static const float layer_w[12] = {0.1f, 0.2f, 0.3f, 0.4f, 1, 2, 3, 4, -1, -2, -3, -4};

static void write_layer(rondo_compiled *compiled) {
  assert_ok(rondo_compiled_write(compiled, "x", layer_x, sizeof layer_x));
  assert_ok(rondo_compiled_write(compiled, "w", layer_w, sizeof layer_w));
}

static void assert_layer(rondo_compiled *compiled) {
  float y[8], wanted[8];
  for (int j = 0; j < 4; j++) {
    wanted[j] = tanhf(layer_w[j]);
    wanted[4 + j] = tanhf(layer_w[4 + j] - layer_w[8 + j]);
  }
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  assert_near(y, wanted, 8, 1e-6f);
}

/* FW-1 ------------------------------------------------------------------------------------------------------------- */

TEST(test_fw1_compiled_programs_outlive_the_program) {
  rondo_program *program = make_layer();
  rondo_compiled *first = compile(t, program);
  rondo_compiled *second = compile(t, program);
  rondo_program_destroy(program);
  write_layer(first);
  assert_ok(rondo_compiled_run(first));
  assert_layer(first);
  float y[8], zeros[8] = {0};
  assert_ok(rondo_compiled_read(second, "y", y, sizeof y));
  assert_memory_equal(y, zeros, sizeof y);
  write_layer(second);
  assert_ok(rondo_compiled_run_eager(second));
  assert_layer(second);
  assert_ok(rondo_compiled_destroy(first));
  assert_ok(rondo_compiled_run(second));
  assert_layer(second);
}

TEST(test_fw1_it_owns_a_stream_a_graph_and_an_exec) {
  rondo_program *program = make_layer();
  rondo_compiled *compiled = compile(t, program);
  size_t nodes = 0;
  assert_non_null(rondo_compiled_stream(compiled));
  assert_ptr_not_equal(rondo_compiled_stream(compiled), t->stream);
  assert_ptr_equal(rondo_stream_device(rondo_compiled_stream(compiled)), t->device);
  assert_non_null(rondo_compiled_exec(compiled));
  assert_ok(rondo_graph_nodes(rondo_compiled_graph(compiled), NULL, &nodes));
  assert_int_equal(nodes, 2);
  assert_ok(rondo_compiled_destroy(compiled));

  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  compiled = test_compile_kept(program, t->device, &options);
  assert_null(rondo_compiled_graph(compiled));
  assert_null(rondo_compiled_exec(compiled));
  write_layer(compiled);
  assert_ok(rondo_compiled_run(compiled));
  assert_layer(compiled);
  assert_ok(rondo_compiled_destroy(NULL));
}

TEST(test_fw1_addresses_are_fixed_and_reported) {
  rondo_program *program = make_layer();
  rondo_compiled *compiled = compile(t, program);
  const struct {
    char kind;
    const char *name;
    size_t bytes;
  } wanted[] = {{'s', "w", 48}, {'i', "x", 24}, {'o', "y", 32}};
  void *addresses[3];
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; i < 3; i++) {
    assert_ok(rondo_compiled_get_value(compiled, i, &value));
    assert_int_equal(value.kind, wanted[i].kind);
    assert_string_equal(value.name, wanted[i].name);
    assert_int_equal(value.bytes, wanted[i].bytes);
    assert_int_equal(value.rank, 2);
    addresses[i] = value.address;
  }
  assert_error(rondo_compiled_get_value(compiled, 3, &value), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  write_layer(compiled);
  for (int i = 0; i < 10; i++) assert_ok(rondo_compiled_run(compiled));
  for (size_t i = 0; i < 3; i++) {
    assert_ok(rondo_compiled_get_value(compiled, i, &value));
    assert_ptr_equal(value.address, addresses[i]);
  }
  assert_ok(rondo_compiled_synchronize(compiled));
  /* The graph reads the input's slot and writes the output's. */
  float x[6], y[8];
  test_read(t, x, addresses[1], sizeof x);
  test_read(t, y, addresses[2], sizeof y);
  assert_memory_equal(x, layer_x, sizeof x);
  assert_near(&y[0], &(float){tanhf(0.1f)}, 1, 1e-6f);
}

/* The warm-up runs the updates; none of their effects may remain. */
TEST(test_fw1_the_warm_up_leaves_no_trace) {
  rondo_program *program = make_program();
  const rondo_value w = test_value(program, 's', "w", 1, 3);
  const rondo_value x = test_value(program, 'i', "x", 3, 1);
  rondo_value rate, momentum, y;
  assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
  assert_ok(rondo_program_cell(program, "momentum", 0.25f, &momentum));
  assert_ok(rondo_op_matmul(program, w, x, none, &y));
  assert_ok(rondo_op_reshape(program, y, NULL, 0, &y));
  const rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .momentum = momentum};
  assert_ok(rondo_program_sgd(program, y, &options));
  rondo_compiled *compiled = compile(t, program);
  const char *states[] = {"w", "w.momentum"};
  for (size_t i = 0; i < 2; i++) {
    const float zeros[3] = {0};
    float values[3] = {1, 1, 1};
    assert_ok(rondo_compiled_read(compiled, states[i], values, sizeof values));
    assert_memory_equal(values, zeros, sizeof values);
  }
  float cell = 0;
  assert_ok(rondo_compiled_read(compiled, "rate", &cell, sizeof cell));
  assert_true(cell == 0.5f);
  /* d(w x)/dw = x: a run moves w by -rate x. */
  const float inputs[3] = {1, 2, 4}, moved[3] = {-0.5f, -1, -2};
  float values[3];
  assert_ok(rondo_compiled_write(compiled, "x", inputs, sizeof inputs));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "w", values, sizeof values));
  assert_memory_equal(values, moved, sizeof moved);
}

/* An output sees the state as it was before the run, wherever the optimizer was added. */
TEST(test_fw4_updates_come_last) {
  rondo_program *program = make_program();
  const rondo_value w = test_value(program, 's', "w", 1, 1);
  const size_t square[] = {1, 1};
  rondo_value rate, loss, after;
  assert_ok(rondo_program_cell(program, "rate", 1, &rate));
  assert_ok(rondo_op_matmul(program, w, w, none, &loss));
  assert_ok(rondo_op_reshape(program, loss, NULL, 0, &loss));
  const rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, loss, &options));
  assert_ok(rondo_op_reshape(program, w, square, 2, &after));
  assert_ok(rondo_op_tanh(program, after, &after));
  assert_ok(rondo_program_output(program, "seen", after));
  assert_ok(rondo_program_output(program, "kept", w));
  rondo_compiled *compiled = compile(t, program);
  const float start = 0.25f, seen = tanhf(0.25f), kept = -0.25f; /* w - 2 w */
  float value = 0;
  assert_ok(rondo_compiled_write(compiled, "w", &start, sizeof start));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "seen", &value, sizeof value));
  assert_near(&value, &seen, 1, 1e-6f);
  assert_ok(rondo_compiled_read(compiled, "kept", &value, sizeof value));
  assert_true(value == kept);
}

/* The same of outputs that show a state or a cell in another shape, of any number of dimensions. */
TEST(test_fw4_reshaped_states_are_those_of_the_run) {
  const size_t one[] = {1}, cube[] = {2, 1, 3}, row[] = {6};
  const float start[6] = {1, -2, 3, 0.5f, 4, -5}, rate_before = 1, rate_after = 2;
  rondo_program *program = make_program();
  const rondo_value w = test_value(program, 's', "w", 2, 3);
  rondo_value rate, shaped, flat, cell, loss;
  assert_ok(rondo_program_cell(program, "rate", rate_before, &rate));
  assert_ok(rondo_op_reshape(program, w, cube, 3, &shaped));
  assert_ok(rondo_op_reshape(program, shaped, row, 1, &flat));
  assert_ok(rondo_op_reshape(program, rate, one, 1, &cell));
  assert_ok(rondo_program_output(program, "shaped", shaped));
  assert_ok(rondo_program_output(program, "flat", flat));
  assert_ok(rondo_program_output(program, "cell", cell));
  assert_ok(rondo_program_output(program, "kept", w));
  assert_invalid(rondo_program_output(program, "kept", shaped), RONDO_REASON_DUPLICATE_NAME);
  assert_ok(rondo_op_square(program, w, &loss));
  assert_ok(rondo_op_sum(program, loss, NULL, 0, false, &loss));
  const rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_sgd(program, loss, &options));
  rondo_compiled *compiled = compile(t, program);
  float values[6];
  assert_ok(rondo_compiled_write(compiled, "w", start, sizeof start));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_write(compiled, "rate", &rate_after, sizeof rate_after));
  assert_ok(rondo_compiled_read(compiled, "shaped", values, sizeof values));
  assert_memory_equal(values, start, sizeof start);
  assert_ok(rondo_compiled_read(compiled, "flat", values, sizeof values));
  assert_memory_equal(values, start, sizeof start);
  assert_ok(rondo_compiled_read(compiled, "cell", values, sizeof values[0]));
  assert_true(values[0] == rate_before);
  assert_ok(rondo_compiled_read(compiled, "kept", values, sizeof values));
  for (size_t i = 0; i < 6; i++) assert_true(values[i] == -start[i]); /* w - 2 w */
}

/* Values that no one reads are not computed: the second layer, and all gradients but one. */
TEST(test_fw1_dead_operators_are_dropped) {
  rondo_program *program = make_layer();
  rondo_compiled *lean = compile(t, program);
  const rondo_value x = test_value(program, 'i', "more", 5, 7);
  rondo_value dead;
  assert_ok(rondo_op_tanh(program, x, &dead));
  assert_ok(rondo_op_softmax(program, dead, &dead));
  rondo_compiled *other = compile(t, program);
  rondo_compiled_info a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
  assert_ok(rondo_compiled_get_info(lean, &a));
  assert_ok(rondo_compiled_get_info(other, &b));
  assert_int_equal(a.kernels, 2);
  assert_int_equal(b.kernels, 2);
  assert_int_equal(a.parameters, 12);
  assert_true(a.lower_bound <= a.arena_bytes && a.arena_bytes <= a.sum_bytes);
  const float values[35] = {0};
  assert_ok(rondo_compiled_write(other, "more", values, sizeof values)); /* a slot that nothing reads */
  write_layer(other);
  assert_ok(rondo_compiled_run(other));
  assert_layer(other);
}

/* A long chain needs memory for two of its values, not for all. */
TEST(test_fw1_the_arena_is_shared_by_values_that_do_not_meet) {
  rondo_program *program = make_program();
  rondo_value x = test_value(program, 'i', "x", 64, 64);
  for (int i = 0; i < 40; i++) assert_ok(rondo_op_tanh(program, x, &x));
  assert_ok(rondo_program_output(program, "y", x));
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER};
  rondo_compiled *compiled = test_compile(program, t->device, &options);
  rondo_compiled_info info = test_compiled_info(compiled);
  const uint64_t one = 64 * 64 * sizeof(float);
  assert_int_equal(info.kernels, 40);
  assert_int_equal(info.sum_bytes, 41 * one);
  assert_int_equal(info.lower_bound, 3 * one); /* the input keeps its slot */
  assert_int_equal(info.arena_bytes, 3 * one);
  float values[64 * 64], wanted[64 * 64];
  for (int i = 0; i < 64 * 64; i++) values[i] = wanted[i] = (float)(i - 2000) / 1000;
  for (int k = 0; k < 40; k++) {
    for (int i = 0; i < 64 * 64; i++) wanted[i] = tanhf(wanted[i]);
  }
  assert_ok(rondo_compiled_write(compiled, "x", values, sizeof values));
  for (int k = 0; k < 2; k++) assert_ok(rondo_compiled_run(compiled)); /* the slot is read again, and still complete */
  assert_ok(rondo_compiled_read(compiled, "y", values, sizeof values));
  assert_near(values, wanted, 64 * 64, 1e-5f);
}

/* Nothing allocates while capturing, nor in the runs of what was captured: the graph has no memory nodes, a recorded
 * compilation holds what an eager one holds, and running takes nothing more. */
TEST(test_fw2_nothing_allocates_while_capturing) {
  enum { MOST_NODES = 16 };
  rondo_program *program = make_layer();
  rondo_compiled *both[2] = {NULL, NULL};
  rondo_memory_statistics memory[3] = {{0}};
  for (int i = 0; i < 2; i++) {
    const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                           .record = i == 0 ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
    memory[i] = test_memory_statistics(t);
    both[i] = test_compile_kept(program, t->device, &options);
  }
  memory[2] = test_memory_statistics(t);
  assert_int_equal(memory[2].live_allocations - memory[1].live_allocations,
                   memory[1].live_allocations - memory[0].live_allocations);
  assert_int_equal(memory[2].graph_reserved, 0);
  assert_int_equal(memory[2].pool_used, memory[0].pool_used);
  rondo_node nodes[MOST_NODES];
  size_t count = MOST_NODES;
  assert_ok(rondo_graph_nodes(rondo_compiled_graph(both[1]), nodes, &count));
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    assert_ok(rondo_graph_get_params(rondo_compiled_graph(both[1]), nodes[i], &params));
    assert_int_equal(params.kind, RONDO_NODE_KERNEL);
  }
  rondo_device_statistics before = {0}, after = {0};
  write_layer(both[1]);
  assert_ok(rondo_compiled_run(both[1]));
  assert_ok(rondo_compiled_synchronize(both[1]));
  assert_ok(rondo_device_get_statistics(t->device, &before));
  for (int i = 0; i < 100; i++) assert_ok(rondo_compiled_run(both[1]));
  assert_ok(rondo_compiled_synchronize(both[1]));
  assert_ok(rondo_device_get_statistics(t->device, &after));
  assert_int_equal(after.host_allocations, before.host_allocations);
  assert_int_equal(after.maps, before.maps);
}

/* Much more than the staging memory holds, in one write; and an input that is an output. */
TEST(test_fw1_large_writes) {
  enum { ROWS = 700, COLUMNS = 1000 };
  static float values[ROWS * COLUMNS], back[ROWS * COLUMNS];
  rondo_program *program = make_program();
  const rondo_value w = test_value(program, 's', "w", ROWS, COLUMNS);
  const rondo_value x = test_value(program, 'i', "x", 1, 3);
  assert_ok(rondo_program_output(program, "same", x));
  assert_ok(rondo_program_output(program, "all", w));
  rondo_compiled *compiled = compile(t, program);
  for (int round = 0; round < 3; round++) {
    const float small[3] = {(float)round, 2, 3};
    float small_back[3];
    for (size_t i = 0; i < ROWS * COLUMNS; i++) values[i] = (float)(i % 1009) + (float)round;
    assert_ok(rondo_compiled_write(compiled, "w", values, sizeof values));
    assert_ok(rondo_compiled_write(compiled, "x", small, sizeof small));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "all", back, sizeof back));
    assert_memory_equal(back, values, sizeof back);
    assert_ok(rondo_compiled_read(compiled, "same", small_back, sizeof small_back));
    assert_memory_equal(small_back, small, sizeof small);
  }
}

/* Compiling does not affect another stream's capture on the same thread, nor the reverse. */
TEST(test_fw1_compiling_during_a_capture) {
  rondo_program *program = make_layer();
  rondo_graph *graph = NULL;
  uint32_t *words = test_words(t, 4);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_GLOBAL));
  test_affine(t, t->stream, words, 4, 1, 1);
  rondo_compiled *compiled = compile(t, program);
  write_layer(compiled);
  assert_ok(rondo_compiled_run(compiled));
  graph = test_capture_end(t->stream);
  size_t nodes = 0;
  assert_ok(rondo_graph_nodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 1);
  test_graph_destroy(graph);
  assert_layer(compiled);
}

/* Errors of use ---------------------------------------------------------------------------------------------------- */

TEST(test_fw1_wrong_reads_and_writes_are_refused) {
  rondo_program *program = make_layer();
  rondo_compiled *compiled = compile(t, program);
  float values[16] = {0};
  assert_error(rondo_compiled_write(compiled, "z", values, 4), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_message("'z' of program");
  assert_message("is no value; it takes: w, x");
  assert_error(rondo_compiled_write(compiled, "y", values, 32), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_error(rondo_compiled_read(compiled, "x", values, 24), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_message("'x' of program");
  assert_message("is an input; it takes: w, y");
  assert_invalid(rondo_compiled_write(compiled, "x", values, 20), RONDO_REASON_BAD_SIZE);
  assert_message("'x' [2, 3] has 24 bytes, and the call gives 20");
  assert_invalid(rondo_compiled_read(compiled, "y", values, 0), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_compiled_read(compiled, NULL, values, 4), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compiled_write(compiled, "x", NULL, 24), RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_compiled_write: data is NULL");
  assert_invalid(rondo_compiled_run(NULL), RONDO_REASON_NULL_ARGUMENT);
  write_layer(compiled);
  assert_ok(rondo_compiled_run(compiled));
  assert_layer(compiled);
}

TEST(test_fw1_what_cannot_be_compiled_is_refused) {
  rondo_program *program = make_program();
  rondo_compiled *compiled = (rondo_compiled *)1;
  assert_fails(rondo_compile(program, t->device, NULL, &compiled), RONDO_INVALID_ARGUMENT);
  assert_message("no output");
  assert_null(compiled);
  const rondo_value x = test_value(program, 'i', "x", 2, 2);
  assert_fails(rondo_compile(program, t->device, NULL, &compiled), RONDO_INVALID_ARGUMENT);
  assert_invalid(rondo_compile(NULL, t->device, NULL, &compiled), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_compile(program, NULL, NULL, &compiled), RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_compile: device is NULL");
  assert_ok(rondo_program_output(program, "x again", x));
  compiled = compile(t, program);
  assert_ok(rondo_compiled_run(compiled));
}

/* More memory than the machine has address space: the error says what was wanted, and nothing is left. */
TEST(test_fw1_memory_that_cannot_be_had) {
  rondo_program *program = make_program();
  const size_t shape[] = {(size_t)1 << 30, (size_t)1 << 25};
  rondo_value x;
  rondo_compiled *compiled = NULL;
  assert_ok(rondo_program_state(program, "huge", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_program_output(program, "out", x));
  assert_fails(rondo_compile(program, t->device, NULL, &compiled), RONDO_OUT_OF_MEMORY);
  assert_message("states of program 'small'");
  assert_null(compiled);
}

/* Wrong indices ---------------------------------------------------------------------------------------------------- */

static rondo_compiled *compile_lookup(test_fixture *t) {
  rondo_program *program = make_program();
  const size_t count[] = {3};
  rondo_value tokens, labels, rows, loss;
  const rondo_value table = test_value(program, 's', "table", 5, 2);
  assert_ok(rondo_program_input(program, "tokens", RONDO_I32, count, 1, &tokens));
  assert_ok(rondo_program_input(program, "labels", RONDO_I32, count, 1, &labels));
  assert_ok(rondo_op_embedding(program, table, tokens, &rows));
  assert_ok(rondo_program_output(program, "rows", rows));
  assert_ok(rondo_op_cross_entropy(program, rows, labels, &loss));
  assert_ok(rondo_program_output(program, "loss", loss));
  return test_compile(program, t->device, NULL);
}

static void run_lookup(rondo_compiled *compiled, const int32_t tokens[3], const int32_t labels[3]) {
  assert_ok(rondo_compiled_write(compiled, "tokens", tokens, 3 * sizeof *tokens));
  assert_ok(rondo_compiled_write(compiled, "labels", labels, 3 * sizeof *labels));
  assert_ok(rondo_compiled_run(compiled));
}

TEST(test_fw1_a_wrong_index_fails_the_run) {
  rondo_compiled *compiled = compile_lookup(t);
  const int32_t right[3] = {0, 4, 2}, zeros[3] = {0}, above[3] = {1, 5, -1}, below[3] = {0, 0, INT32_MIN};
  const int32_t bad_label[3] = {0, 1, 2};
  const float table[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  float rows[6], loss = 0;
  assert_ok(rondo_compiled_write(compiled, "table", table, sizeof table));
  run_lookup(compiled, above, zeros);
  assert_error(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("embedding (operator 0): indices has 5 at position 1, which is not in 0 .. 4");
  assert_ok(rondo_compiled_synchronize(compiled)); /* told once */
  run_lookup(compiled, below, zeros);
  run_lookup(compiled, right, zeros); /* does not take it back */
  assert_error(rondo_compiled_read(compiled, "loss", &loss, sizeof loss), RONDO_EXECUTION_FAILED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("-2147483648 at position 2");
  run_lookup(compiled, right, bad_label);
  assert_error(rondo_compiled_read(compiled, "loss", &loss, sizeof loss), RONDO_EXECUTION_FAILED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("cross_entropy (operator 1): labels has 2 at position 2, which is not in 0 .. 1");
  run_lookup(compiled, right, zeros);
  assert_ok(rondo_compiled_read(compiled, "rows", rows, sizeof rows));
  const float wanted[6] = {1, 2, 9, 10, 5, 6};
  assert_memory_equal(rows, wanted, sizeof wanted);
}

TEST(test_fw1_a_wrong_index_nobody_waited_for_comes_out_at_the_end) {
  rondo_compiled *compiled = compile_lookup(t);
  const int32_t wrong[3] = {9, 9, 9}, zeros[3] = {0};
  run_lookup(compiled, wrong, zeros);
  assert_error(rondo_compiled_destroy(compiled), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
}
