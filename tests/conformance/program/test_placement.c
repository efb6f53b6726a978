/* SPDX-License-Identifier: MIT
 * Placement (SE-12): operators on two devices, the device under test and a CPU device. The effect of places and rules,
 * and the default; the minimum number of parts; the results of the undivided program, also in training; shared states,
 * values that are written, read and shared; wrong indices and wrong places.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { ROWS = 6, FEATURES = 3, WIDTH = 4, IDS = 10, CLASSES = 5 };

static const rondo_value none = {0};

/* The device under test, and another one. */
typedef struct pair {
  rondo_device *devices[2];
  bool is_exact; /* both are CPU devices */
} pair;

static pair open_pair(test_fixture *t) {
  const bool is_exact = test_device_is("cpu");
  return (pair){.devices = {t->device, test_device(is_exact ? "cpu:1" : "cpu", NULL)}, .is_exact = is_exact};
}

static void assert_alike(const pair *p, const float *actual, const float *expected, size_t count) {
  if (p->is_exact) assert_memory_equal(actual, expected, count * sizeof *actual);
  assert_near(actual, expected, count, 1e-4f);
}

/* The network ------------------------------------------------------------------------------------------------------ */

/* Names of values that a test may place. */
typedef struct network {
  rondo_program *program;
  rondo_value table, ids, looked_up, hidden, joined, score;
} network;

static rondo_program *make_program(void) { return test_named_program("net"); }

/* score = tanh(concat(relu(x w), table[ids])) v */
static network make_network(size_t rows) {
  network n = {.program = make_program()};
  rondo_value product, active;
  const rondo_value x = test_value(n.program, 'i', "x", rows, FEATURES);
  assert_ok(rondo_program_input(n.program, "ids", RONDO_I32, &rows, 1, &n.ids));
  const rondo_value w = test_value(n.program, 's', "w", FEATURES, WIDTH);
  n.table = test_value(n.program, 's', "table", IDS, WIDTH);
  const rondo_value v = test_value(n.program, 's', "v", 2 * WIDTH, CLASSES);
  assert_ok(rondo_op_matmul(n.program, x, w, none, &product));
  assert_ok(rondo_op_relu(n.program, product, &n.hidden));
  assert_ok(rondo_op_embedding(n.program, n.table, n.ids, &n.looked_up));
  assert_ok(rondo_op_concat(n.program, (rondo_value[]){n.hidden, n.looked_up}, 2, 1, &n.joined));
  assert_ok(rondo_op_tanh(n.program, n.joined, &active));
  assert_ok(rondo_op_matmul(n.program, active, v, none, &n.score));
  assert_ok(rondo_program_output(n.program, "score", n.score));
  return n;
}

/* The network, with the table and its look-ups on the second device. */
static rondo_program *make_placed(size_t rows) {
  const network n = make_network(rows);
  assert_ok(rondo_program_place(n.program, n.table, 1));
  return n.program;
}

static void train(network *n, size_t rows) {
  rondo_value labels, loss, rate;
  assert_ok(rondo_program_input(n->program, "labels", RONDO_I32, &rows, 1, &labels));
  assert_ok(rondo_program_cell(n->program, "rate", 0.05f, &rate));
  assert_ok(rondo_op_cross_entropy(n->program, n->score, labels, &loss));
  assert_ok(rondo_program_output(n->program, "loss", loss));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  assert_ok(rondo_program_adam(n->program, loss, &adam));
}

/* Values that both forms of a program write. */
typedef rondo_status (*writer)(void *target, const char *name, const void *data, size_t bytes);

static rondo_status write_compiled(void *target, const char *name, const void *data, size_t bytes) {
  return rondo_compiled_write(target, name, data, bytes);
}

static rondo_status write_divided(void *target, const char *name, const void *data, size_t bytes) {
  return rondo_divided_write(target, name, data, bytes);
}

static void write_reals(writer write, void *target, const char *name, size_t count, unsigned seed) {
  float data[128];
  assert_true(count <= 128);
  for (size_t i = 0; i < count; i++) data[i] = (float)((int)((i * 37 + seed * 11) % 23) - 11) / 16;
  assert_ok(write(target, name, data, count * sizeof *data));
}

static void write_states(writer write, void *target) {
  write_reals(write, target, "w", FEATURES * WIDTH, 1);
  write_reals(write, target, "table", IDS * WIDTH, 2);
  write_reals(write, target, "v", 2 * WIDTH * CLASSES, 3);
}

static void write_inputs(writer write, void *target, size_t rows, unsigned seed) {
  int32_t ids[ROWS];
  for (size_t i = 0; i < rows; i++) ids[i] = (int32_t)((i * 7 + seed) % IDS);
  write_reals(write, target, "x", rows * FEATURES, seed);
  assert_ok(write(target, "ids", ids, rows * sizeof *ids));
}

static void write_labels(writer write, void *target, unsigned seed) {
  int32_t labels[ROWS];
  for (size_t i = 0; i < ROWS; i++) labels[i] = (int32_t)((i + seed) % CLASSES);
  assert_ok(write(target, "labels", labels, sizeof labels));
}

/* The undivided program's scores. */
static void expect_scores(test_fixture *t, size_t rows, unsigned seed, float *scores) {
  rondo_compiled *compiled = test_compile(make_network(rows).program, t->device, NULL);
  write_states(write_compiled, compiled);
  write_inputs(write_compiled, compiled, rows, seed);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "score", scores, rows * CLASSES * sizeof *scores));
  assert_ok(rondo_compiled_destroy(compiled));
}

static rondo_divided *divide(const pair *p, rondo_program *program, const rondo_divide_options *options) {
  rondo_divided *divided = test_compile_divided(program, p->devices, 2, options);
  rondo_program_destroy(program);
  return divided;
}

static rondo_divided_info info_of(const rondo_divided *divided) {
  rondo_divided_info info = {.struct_size = sizeof info};
  assert_ok(rondo_divided_get_info(divided, &info));
  return info;
}

static rondo_divided_part part_of(const rondo_divided *divided, size_t index) {
  rondo_divided_part part = {.struct_size = sizeof part};
  assert_ok(rondo_divided_get_part(divided, index, &part));
  return part;
}

static rondo_divided_copy first_copy_of(const rondo_divided *divided) {
  rondo_divided_copy copy = {.struct_size = sizeof copy};
  assert_ok(rondo_divided_get_copy(divided, 0, &copy));
  return copy;
}

/* Runs it some times, recorded and not, and compares each with the undivided program. */
static void assert_scores(test_fixture *t, const pair *p, rondo_divided *divided, size_t rows) {
  for (unsigned seed = 4; seed < 8; seed++) {
    float scores[ROWS * CLASSES], expected[ROWS * CLASSES];
    expect_scores(t, rows, seed, expected);
    write_inputs(write_divided, divided, rows, seed);
    assert_ok(seed % 2 == 0 ? rondo_divided_run(divided) : rondo_divided_run_eager(divided));
    assert_ok(rondo_divided_read(divided, "score", scores, rows * CLASSES * sizeof *scores));
    assert_alike(p, scores, expected, rows * CLASSES);
  }
}

/* Where operators run ---------------------------------------------------------------------------------------------- */

TEST(test_se12_lookups_run_where_the_table_was_placed) {
  pair p = open_pair(t);
  rondo_divided *divided = divide(&p, make_placed(ROWS), NULL);
  assert_int_equal(info_of(divided).parts, 2);
  assert_int_equal(info_of(divided).copies, 1);
  assert_int_equal(info_of(divided).crossings, 1);
  assert_int_equal(info_of(divided).copy_bytes, ROWS * WIDTH * sizeof(float));
  assert_ptr_equal(part_of(divided, 0).device, p.devices[1]);
  assert_int_equal(part_of(divided, 0).operators, 1);
  assert_ptr_equal(part_of(divided, 1).device, p.devices[0]);
  assert_int_equal(part_of(divided, 1).operators, 5);
  assert_non_null(rondo_compiled_exec(part_of(divided, 0).compiled)); /* each recorded on its own device */
  assert_non_null(rondo_compiled_exec(part_of(divided, 1).compiled));
  const rondo_divided_copy copy = first_copy_of(divided);
  assert_string_equal(copy.what, "embedding");
  assert_int_equal(copy.from, 0);
  assert_int_equal(copy.to, 1);
  assert_false(copy.at_beginning);
  write_states(write_divided, divided);
  assert_scores(t, &p, divided, ROWS);
  assert_int_equal(info_of(divided).host_bytes, ROWS * WIDTH * sizeof(float));
}

/* Between two GPUs, values also cross through host memory. */
TEST(test_se12_two_gpus_and_a_cpu) {
  pair p = open_pair(t);
  rondo_device *third = NULL;
  network n = make_network(ROWS);
  const rondo_status opened = rondo_device_open(p.is_exact ? "cpu:2" : "cuda:1", NULL, &third);
  if (opened == RONDO_OK) {
    rondo_device *const devices[] = {p.devices[0], p.devices[1], third};
    assert_ok(rondo_program_place(n.program, n.table, 1));
    assert_ok(rondo_program_place(n.program, n.score, 2));
    rondo_divided *divided = test_compile_divided(n.program, devices, 3, NULL);
    assert_int_equal(info_of(divided).parts, 3);
    write_states(write_divided, divided);
    assert_scores(t, &p, divided, ROWS);
    assert_ok(rondo_divided_destroy(divided));
    assert_ok(rondo_device_close(third));
  }
}

/* Whichever says it: an operator's place, a rule by name, a rule by bytes, which takes the last product along. */
TEST(test_se12_rules_place_by_name_and_by_bytes) {
  pair p = open_pair(t);
  const rondo_placement_rule rules[] = {{.operator_name = "embedding", .place = 1},
                                        {.least_bytes = IDS * WIDTH * sizeof(float), .place = 1}};
  for (int way = 0; way < 3; way++) {
    network n = make_network(ROWS);
    const rondo_divide_options options = {RONDO_DIVIDE_OPTIONS_INIT, .rules = &rules[way == 2],
                                          .rule_count = way > 0 ? 1 : 0};
    if (way == 0) assert_ok(rondo_program_place(n.program, n.looked_up, 1));
    rondo_divided *divided = divide(&p, n.program, &options);
    assert_int_equal(info_of(divided).parts, way == 2 ? 3 : 2);
    assert_ptr_equal(part_of(divided, 0).device, p.devices[1]);
    write_states(write_divided, divided);
    assert_scores(t, &p, divided, ROWS);
    assert_ok(rondo_divided_destroy(divided));
  }
}

/* A sum of looked-up rows reads no state, and stays with the lookups. An operator on both devices' values runs at place
 * 0. */
TEST(test_se12_what_reads_no_state_follows_its_inputs) {
  pair p = open_pair(t);
  rondo_program *program = make_program();
  rondo_value ids, looked_up, flat, sum, y;
  const size_t shape[] = {ROWS, 2}, flat_shape[] = {ROWS, 2 * WIDTH};
  const rondo_value table = test_value(program, 's', "table", IDS, WIDTH);
  const rondo_value w = test_value(program, 's', "w", 2 * WIDTH, CLASSES);
  assert_ok(rondo_program_input(program, "ids", RONDO_I32, shape, 2, &ids));
  assert_ok(rondo_op_embedding(program, table, ids, &looked_up));
  assert_ok(rondo_op_reshape(program, looked_up, flat_shape, 2, &flat));
  assert_ok(rondo_op_relu(program, flat, &sum));
  assert_ok(rondo_op_matmul(program, sum, w, none, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_place(program, table, 1));
  rondo_divided *divided = divide(&p, program, NULL);
  assert_int_equal(info_of(divided).parts, 2);
  assert_int_equal(part_of(divided, 0).operators, 3);
  assert_int_equal(part_of(divided, 1).operators, 1);
  const rondo_divided_copy copy = first_copy_of(divided);
  assert_string_equal(copy.what, "relu");
}

/* y = ((x a) b) c) d, alternating between the devices. */
static rondo_program *make_chain(rondo_value products[4]) {
  static const char *const names[] = {"a", "b", "c", "d"};
  rondo_program *program = make_program();
  rondo_value y = test_value(program, 'i', "x", ROWS, WIDTH);
  for (int i = 0; i < 4; i++) {
    assert_ok(rondo_op_matmul(program, y, test_value(program, 's', names[i], WIDTH, WIDTH), none, &products[i]));
    assert_ok(rondo_op_tanh(program, products[i], &y));
  }
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static void run_chain(writer write, void *target) {
  static const char *const names[] = {"a", "b", "c", "d"};
  for (unsigned i = 0; i < 4; i++) write_reals(write, target, names[i], WIDTH * WIDTH, i);
  write_reals(write, target, "x", ROWS * WIDTH, 5);
}

TEST(test_se12_parts_are_as_few_as_places_allow) {
  pair p = open_pair(t);
  static const uint32_t places[3][4] = {{0, 1, 0, 1}, {1, 1, 0, 0}, {1, 0, 0, 1}};
  static const uint32_t parts[] = {4, 2, 3};
  rondo_value products[4];
  rondo_program *program = make_chain(products);
  float expected[ROWS * WIDTH], y[ROWS * WIDTH];
  rondo_compiled *whole = test_compile(program, t->device, NULL);
  run_chain(write_compiled, whole);
  assert_ok(rondo_compiled_run(whole));
  assert_ok(rondo_compiled_read(whole, "y", expected, sizeof expected));
  assert_ok(rondo_compiled_destroy(whole));
  for (int way = 0; way < 3; way++) {
    program = make_chain(products);
    for (int i = 0; i < 4; i++) assert_ok(rondo_program_place(program, products[i], places[way][i]));
    rondo_divided *divided = divide(&p, program, NULL);
    assert_int_equal(info_of(divided).parts, parts[way]);
    run_chain(write_divided, divided);
    for (int i = 0; i < 3; i++) assert_ok(rondo_divided_run(divided)); /* nobody waits in between */
    assert_ok(rondo_divided_read(divided, "y", y, sizeof y));
    assert_alike(&p, y, expected, ROWS * WIDTH);
    assert_ok(rondo_divided_destroy(divided));
  }
}

TEST(test_se12_one_device_is_one_part) {
  pair p = {.devices = {t->device, t->device}, .is_exact = true};
  rondo_divided *divided = divide(&p, make_placed(ROWS), NULL);
  assert_int_equal(info_of(divided).parts, 1);
  assert_int_equal(info_of(divided).copies, 0);
  write_states(write_divided, divided);
  assert_scores(t, &p, divided, ROWS);
}

/* States ----------------------------------------------------------------------------------------------------------- */

/* The lookups, their gradient and their part of the optimizer run there; losses and states are those of the undivided
 * program. */
TEST(test_se12_training_keeps_a_table_with_its_updates) {
  pair p = open_pair(t);
  enum { STEPS = 6 };
  network whole = make_network(ROWS), parted = make_network(ROWS);
  train(&whole, ROWS);
  train(&parted, ROWS);
  rondo_compiled *compiled = test_compile(whole.program, t->device, NULL);
  assert_ok(rondo_program_place(parted.program, parted.table, 1));
  rondo_divided *divided = divide(&p, parted.program, NULL);
  assert_int_equal(info_of(divided).parts, 3);
  write_states(write_compiled, compiled);
  write_states(write_divided, divided);
  for (unsigned step = 0; step < STEPS; step++) {
    float loss = 0, expected = 1;
    write_inputs(write_compiled, compiled, ROWS, step);
    write_inputs(write_divided, divided, ROWS, step);
    write_labels(write_compiled, compiled, step);
    write_labels(write_divided, divided, step);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(step % 2 == 0 ? rondo_divided_run(divided) : rondo_divided_run_eager(divided));
    assert_ok(rondo_compiled_read(compiled, "loss", &expected, sizeof expected));
    assert_ok(rondo_divided_read(divided, "loss", &loss, sizeof loss));
    assert_alike(&p, &loss, &expected, 1);
  }
  float table[IDS * WIDTH], expected[IDS * WIDTH];
  assert_ok(rondo_compiled_read(compiled, "table", expected, sizeof expected));
  assert_ok(rondo_divided_read(divided, "table", table, sizeof table));
  assert_alike(&p, table, expected, IDS * WIDTH);
}

/* Both layers read one state, on two devices, and it is trained: the other one reads it as it was before the run. */
TEST(test_se12_a_state_is_read_elsewhere_as_it_was) {
  pair p = open_pair(t);
  rondo_compiled *compiled = NULL;
  rondo_divided *divided = NULL;
  for (int is_divided = 0; is_divided < 2; is_divided++) {
    rondo_program *program = make_program();
    rondo_value first, second, loss, rate;
    const rondo_value x = test_value(program, 'i', "x", ROWS, WIDTH);
    const rondo_value wanted = test_value(program, 'i', "wanted", ROWS, WIDTH);
    const rondo_value w = test_value(program, 's', "w", WIDTH, WIDTH);
    assert_ok(rondo_op_matmul(program, x, w, none, &first));
    assert_ok(rondo_op_matmul(program, first, w, none, &second));
    assert_ok(rondo_op_mse(program, second, wanted, RONDO_COMBINE_MEAN, &loss));
    assert_ok(rondo_program_output(program, "loss", loss));
    assert_ok(rondo_program_output(program, "w now", w));
    assert_ok(rondo_program_cell(program, "rate", 0.25f, &rate));
    const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
    assert_ok(rondo_program_sgd(program, loss, &sgd));
    assert_ok(rondo_program_place(program, second, 1));
    if (is_divided == 0) compiled = test_compile(program, t->device, NULL);
    if (is_divided == 1) divided = divide(&p, program, NULL);
  }
  rondo_divided_copy copy = {.struct_size = sizeof copy};
  uint32_t at_beginning = 0;
  for (size_t i = 0; rondo_divided_get_copy(divided, i, &copy) == RONDO_OK; i++) {
    at_beginning += copy.at_beginning;
    if (copy.at_beginning) assert_string_equal(copy.what, "w");
  }
  assert_true(at_beginning > 0);
  write_reals(write_compiled, compiled, "w", WIDTH * WIDTH, 1);
  write_reals(write_divided, divided, "w", WIDTH * WIDTH, 1);
  for (unsigned step = 0; step < 5; step++) {
    float now[WIDTH * WIDTH], expected[WIDTH * WIDTH];
    write_reals(write_compiled, compiled, "x", ROWS * WIDTH, step);
    write_reals(write_divided, divided, "x", ROWS * WIDTH, step);
    write_reals(write_compiled, compiled, "wanted", ROWS * WIDTH, step + 9);
    write_reals(write_divided, divided, "wanted", ROWS * WIDTH, step + 9);
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_divided_run(divided));
    assert_ok(rondo_compiled_read(compiled, "w now", expected, sizeof expected));
    assert_ok(rondo_divided_read(divided, "w now", now, sizeof now));
    assert_alike(&p, now, expected, WIDTH * WIDTH);
  }
}

/* Values that are computed alike on two devices have gradients there, too. */
TEST(test_se12_gradients_go_where_their_operation_was_placed) {
  pair p = open_pair(t);
  rondo_program *program = make_program();
  rondo_value here, there, sum, gradient;
  size_t operators = 0;
  const rondo_value x = test_value(program, 's', "x", ROWS, WIDTH);
  assert_ok(rondo_op_tanh(program, x, &here));
  assert_ok(rondo_op_tanh(program, x, &there));
  assert_ok(rondo_op_mul(program, here, there, &sum));
  assert_ok(rondo_op_sum(program, sum, NULL, 0, false, &sum));
  assert_ok(rondo_program_place(program, there, 1));
  assert_ok(rondo_program_gradients(program, sum, &x, 1, &gradient));
  assert_ok(rondo_program_output(program, "gradient", gradient));
  rondo_divided *divided = divide(&p, program, NULL);
  for (size_t i = 0; i < info_of(divided).parts; i++) {
    const rondo_divided_part part = part_of(divided, i);
    if (part.device == p.devices[1]) operators += part.operators;
  }
  assert_int_equal(operators, 2); /* tanh and its gradient */
}

static bool is_named(const char *name, void *wanted) { return strcmp(name, wanted) == 0; }

TEST(test_se12_weights_come_and_go) {
  pair p = open_pair(t);
  rondo_weights *weights = NULL, *one = NULL;
  rondo_weight w = {.bytes = 0};
  char w_name[] = "w";
  rondo_divided *divided = divide(&p, make_placed(ROWS), NULL);
  write_states(write_divided, divided);
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_create(NULL, &one));
  assert_ok(rondo_weights_gather_divided(weights, divided, NULL, NULL));
  assert_ok(rondo_weights_find(weights, "table", &w));
  assert_int_equal(w.bytes, IDS * WIDTH * sizeof(float));
  assert_ok(rondo_weights_gather_divided(one, divided, is_named, w_name));
  assert_error(rondo_weights_find(one, "table", &w), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_weights_gather_divided(weights, divided, NULL, NULL), RONDO_REASON_DUPLICATE_NAME);
  assert_error(rondo_weights_apply_divided(one, divided, NULL, NULL), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  write_reals(write_divided, divided, "table", IDS * WIDTH, 20);
  write_reals(write_divided, divided, "w", FEATURES * WIDTH, 20);
  assert_ok(rondo_weights_apply_divided(weights, divided, NULL, NULL));
  assert_scores(t, &p, divided, ROWS);
  rondo_weights_destroy(weights);
  rondo_weights_destroy(one);
}

/* A smaller batch shares streams, states and arenas, or only states. */
TEST(test_se12_divided_programs_share) {
  pair p = open_pair(t);
  rondo_divided *large = divide(&p, make_placed(ROWS), NULL), *small[2] = {NULL};
  write_states(write_divided, large);
  for (int i = 0; i < 2; i++) {
    const rondo_divide_options options = {RONDO_DIVIDE_OPTIONS_INIT, .share = large, .share_states_only = i == 1};
    small[i] = divide(&p, make_placed(2), &options);
  }
  for (int i = 0; i < 2; i++) {
    assert_scores(t, &p, large, ROWS);
    assert_scores(t, &p, small[i], 2);
  }
  assert_ok(rondo_divided_destroy(large));
  assert_scores(t, &p, small[0], 2);
  assert_scores(t, &p, small[1], 2);
  const network n = make_network(2); /* in one part */
  rondo_divided *other = NULL;
  const rondo_divide_options options = {RONDO_DIVIDE_OPTIONS_INIT, .share = small[0]};
  assert_invalid(rondo_compile_divided(n.program, p.devices, 2, &options, &other), RONDO_REASON_OTHER_DEVICE);
  assert_null(other);
}

/* Mistakes --------------------------------------------------------------------------------------------------------- */

/* y = tanh(x s) s, with a state s of this name, and tanh on the second device: three parts. */
static rondo_program *make_sandwich(const rondo_program_options *options, const char *state) {
  rondo_program *program = NULL;
  rondo_value y;
  assert_ok(rondo_program_create(options, &program));
  const rondo_value x = test_value(program, 'i', "x", WIDTH, WIDTH), s = test_value(program, 's', state, WIDTH, WIDTH);
  assert_ok(rondo_op_matmul(program, x, s, none, &y));
  assert_ok(rondo_program_place(program, y, 0));
  assert_ok(rondo_op_tanh(program, y, &y));
  assert_ok(rondo_program_place(program, y, 1));
  assert_ok(rondo_op_matmul(program, y, s, none, &y));
  assert_ok(rondo_program_place(program, y, 0));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

/* A program, and each of its parts, is called by its name, or by what it is. */
TEST(test_se12_messages_name_the_programs) {
  pair p = open_pair(t);
  const rondo_program_options named = {RONDO_PROGRAM_OPTIONS_INIT, .name = "net"};
  const rondo_program_options *const options[] = {&named, NULL};
  const char *const missing[] = {"not in program 'net', which is to be shared",
                                 "not in the program, which is to be shared"};
  const char *const parts[] = {"program 'net, part 2 of 3 on ", "program 'part 2 of 3 on "};
  for (int i = 0; i < 2; i++) {
    char *text = NULL;
    rondo_divided *other = NULL, *divided = divide(&p, make_sandwich(options[i], "s"), NULL);
    rondo_program *program = make_sandwich(options[i], "other");
    const rondo_divide_options share = {RONDO_DIVIDE_OPTIONS_INIT, .share = divided};
    assert_invalid(rondo_compile_divided(program, p.devices, 2, &share, &other), RONDO_REASON_UNKNOWN_NAME);
    assert_message(missing[i]);
    assert_ok(rondo_compiled_explain(part_of(divided, 1).compiled, RONDO_EXPLAIN_TEXT, &text));
    assert_non_null(strstr(text, parts[i]));
    rondo_text_free(text);
    rondo_program_destroy(program);
    assert_ok(rondo_divided_destroy(divided));
  }
}

TEST(test_se12_a_wrong_index_comes_out_of_waiting) {
  pair p = open_pair(t);
  rondo_divided *divided = divide(&p, make_placed(ROWS), NULL);
  const int32_t ids[ROWS] = {0, 1, IDS, 3, 4, 5};
  float scores[ROWS * CLASSES];
  write_states(write_divided, divided);
  assert_ok(rondo_divided_write(divided, "ids", ids, sizeof ids));
  assert_ok(rondo_divided_run(divided));
  assert_error(rondo_divided_read(divided, "score", scores, sizeof scores), RONDO_EXECUTION_FAILED,
               RONDO_REASON_OUT_OF_RANGE);
  assert_message("embedding (operator 2");       /* of the undivided program */
  assert_ok(rondo_divided_synchronize(divided)); /* it was told */
  assert_ok(rondo_divided_run(divided));
  assert_error(rondo_divided_synchronize(divided), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_divided_synchronize(NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_scores(t, &p, divided, ROWS);
}

TEST(test_se12_wrong_places_are_reported) {
  pair p = open_pair(t);
  network n = make_network(ROWS);
  rondo_divided *divided = (rondo_divided *)&n;
  const rondo_value other = {n.table.id ^ (UINT64_C(1) << 40)};
  assert_invalid(rondo_program_place(NULL, n.table, 0), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_program_place(n.program, none, 0), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_program_place(n.program, other, 0), RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_program_place(n.program, n.ids, 0), RONDO_REASON_BAD_OPTIONS);
  assert_message("'ids'");
  assert_invalid(rondo_program_place(n.program, n.table, RONDO_MAX_PLACES), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_compile_divided(n.program, p.devices, 0, NULL, &divided), RONDO_REASON_OUT_OF_RANGE);
  assert_null(divided);
  assert_invalid(rondo_compile_divided(n.program, (rondo_device *[]){t->device, NULL}, 2, NULL, &divided),
                 RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_program_place(n.program, n.looked_up, 2));
  assert_invalid(rondo_compile_divided(n.program, p.devices, 2, NULL, &divided), RONDO_REASON_OUT_OF_RANGE);
  assert_message("embedding");
  assert_ok(rondo_program_place(n.program, n.looked_up, 0));
  assert_ok(rondo_program_place(n.program, n.table, 1)); /* where nothing runs: the look-up was placed elsewhere */
  assert_invalid(rondo_compile_divided(n.program, p.devices, 2, NULL, &divided), RONDO_REASON_BAD_OPTIONS);
  assert_message("'table'");
}

TEST(test_se12_wrong_options_are_reported) {
  pair p = open_pair(t);
  network n = make_network(ROWS);
  rondo_divided *divided = NULL;
  const rondo_placement_rule silent = {.place = 1}, far = {.operator_name = "matmul", .place = 2};
  rondo_divide_options options = {RONDO_DIVIDE_OPTIONS_INIT, .rules = &silent, .rule_count = 1};
  assert_invalid(rondo_compile_divided(n.program, p.devices, 2, &options, &divided), RONDO_REASON_BAD_OPTIONS);
  options.rules = &far;
  assert_invalid(rondo_compile_divided(n.program, p.devices, 2, &options, &divided), RONDO_REASON_OUT_OF_RANGE);
  const rondo_staged_value staged = {"x", RONDO_STAGING_HOST};
  const rondo_compile_options compile = {RONDO_COMPILE_OPTIONS_INIT, .staged = &staged, .staged_count = 1};
  options = (rondo_divide_options){RONDO_DIVIDE_OPTIONS_INIT, .compile = &compile};
  assert_invalid(rondo_compile_divided(n.program, p.devices, 2, &options, &divided), RONDO_REASON_BAD_OPTIONS);
  rondo_program_destroy(n.program);
  rondo_program *empty = make_program();
  assert_invalid(rondo_compile_divided(empty, p.devices, 2, NULL, &divided), RONDO_REASON_NONE);
}

/* Two caches that one operator writes. */
TEST(test_se12_a_change_from_elsewhere_is_refused) {
  pair p = open_pair(t);
  rondo_program *program = make_program();
  rondo_divided *divided = NULL;
  const size_t cache_shape[] = {2, 1, 8, 4}, one_shape[] = {2, 1, 1, 4};
  rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT};
  rondo_value parts[3], y;
  assert_ok(rondo_program_state(program, "k", RONDO_F32, cache_shape, 4, &options.k_cache));
  assert_ok(rondo_program_state(program, "v", RONDO_F32, cache_shape, 4, &options.v_cache));
  for (int i = 0; i < 3; i++) {
    const char *const names[] = {"q now", "k now", "v now"};
    assert_ok(rondo_program_input(program, names[i], RONDO_F32, one_shape, 4, &parts[i]));
  }
  assert_ok(rondo_program_input(program, "length", RONDO_I32, NULL, 0, &options.lengths));
  assert_ok(rondo_op_attention(program, parts[0], parts[1], parts[2], &options, &y));
  assert_ok(rondo_program_output(program, "y", y));
  assert_ok(rondo_program_place(program, options.k_cache, 0));
  assert_ok(rondo_program_place(program, options.v_cache, 1));
  assert_invalid(rondo_compile_divided(program, p.devices, 2, NULL, &divided), RONDO_REASON_BAD_OPTIONS);
  assert_message("changes the state");
}

TEST(test_se12_no_graph_is_of_two_devices) {
  pair p = open_pair(t);
  rondo_divided *divided = divide(&p, make_placed(ROWS), NULL);
  rondo_stream *stream = rondo_compiled_stream(part_of(divided, 1).compiled);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_divided_run(divided), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  test_graph_destroy(test_capture_end(stream));
  write_states(write_divided, divided);
  assert_scores(t, &p, divided, ROWS);
  float x = 0;
  assert_error(rondo_divided_write(divided, "z", &x, sizeof x), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_error(rondo_divided_read(divided, "value 3", &x, sizeof x), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  rondo_divided_part part = {.struct_size = sizeof part};
  rondo_divided_copy copy = {.struct_size = sizeof copy};
  assert_error(rondo_divided_get_part(divided, 2, &part), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_divided_get_copy(divided, 1, &copy), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_divided_destroy(divided));
  assert_ok(rondo_divided_destroy(NULL));
}
