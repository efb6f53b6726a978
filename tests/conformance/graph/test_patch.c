/* SPDX-License-Identifier: MIT
 * TR-6: an exec is launched with its inputs at other addresses, without copying them. Every launch has its own inputs,
 * also while it waits in a queue. A word that is not certainly an address is found and never patched. A set notices
 * that its exec was changed otherwise.
 */
#include <string.h>

#include "support/foreign_library.h"
#include "support/rondo_test.h"

enum { WORDS = 16, PLACES = 5, MANY = 300 };

/* Buffers, filled with different numbers. */
static uint32_t *make_buffer(test_fixture *t, uint32_t number) {
  uint32_t values[WORDS], *words = test_words(t, WORDS);
  for (uint32_t i = 0; i < WORDS; i++) values[i] = 1000 * number + i;
  test_write(t, words, values, sizeof values);
  return words;
}

static void destroy_patch_set(void *set) { rondo_patch_set_destroy(set); }

/* A set that the caller destroys, and one that it leaves to its fixture. */
static rondo_patch_set *make_loose_set(rondo_exec *exec, const rondo_patch_input *inputs, size_t count) {
  rondo_patch_set *set;
  assert_ok(rondo_patch_set_create(exec, inputs, count, NULL, &set));
  return set;
}

static rondo_patch_set *make_set(rondo_exec *exec, const rondo_patch_input *inputs, size_t count) {
  return test_leave(destroy_patch_set, make_loose_set(exec, inputs, count));
}

/* A set of one input, compared with other recordings; NULL: not recorded again. */
static rondo_patch_set *make_compared_set(rondo_exec *exec, const rondo_patch_input *inputs, size_t count,
                                          const rondo_graph *moved, const rondo_graph *again) {
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = moved, .again = again};
  rondo_patch_set *set;
  assert_ok(rondo_patch_set_create(exec, inputs, count, &options, &set));
  return test_leave(destroy_patch_set, set);
}

/* The addresses of a launch. */
#define AT(...) ((const void *const[]){__VA_ARGS__})

static rondo_patch_input input_of(const char *name, const uint32_t *words) {
  return (rondo_patch_input){.name = name, .address = words, .bytes = WORDS * sizeof *words};
}

static rondo_patch_input_info info_of(const rondo_patch_set *set, uint32_t input) {
  rondo_patch_input_info info = {.struct_size = sizeof info};
  assert_ok(rondo_patch_set_get_input(set, input, &info));
  return info;
}

static rondo_patch_info totals_of(const rondo_patch_set *set) {
  rondo_patch_info info = {.struct_size = sizeof info};
  assert_ok(rondo_patch_set_get_info(set, &info));
  return info;
}

static rondo_patch_finding finding_of(const rondo_patch_set *set, size_t index) {
  rondo_patch_finding finding = {.struct_size = sizeof finding};
  assert_ok(rondo_patch_set_get_finding(set, index, &finding));
  assert_true(strlen(finding.message) > 20);
  return finding;
}

static void launch_at(test_fixture *t, rondo_patch_set *set, const uint32_t *a, const uint32_t *b) {
  assert_ok(rondo_patch_set_launch(set, t->stream, AT(a, b)));
}

static rondo_node add_combine(test_fixture *t, rondo_graph *graph, const rondo_node *before, const uint32_t *a,
                              const uint32_t *b, uint32_t *out, uint32_t blocks) {
  rondo_node node;
  assert_ok(rondo_graph_add_kernel(graph, before, before != NULL, test_kernel(t, TEST_KERNEL_COMBINE),
                                   (rondo_grid){blocks, 0, 0}, RONDO_ARGS(&a, &b, &out), &node));
  return node;
}

/* Sites by what is declared ---------------------------------------------------------------------------------------- */

/* out[0..3] = a * 31 + b[4..7], out[4..7] = a by a copy, in a child graph out[8] = 7 * b[0] + 3 and out[9] = 5 after a
 * fill of b[0]; so that reads, writes, distances, copies, fills and children are all there. */
static rondo_graph *make_work(test_fixture *t, const uint32_t *a, uint32_t *b, uint32_t *out) {
  rondo_graph *graph = test_graph(t), *child = test_graph(t);
  rondo_node node = add_combine(t, graph, NULL, a, b + 4, out, 4), inner;
  const rondo_copy copy = {.dst = out + 4, .src = a, .width = 4 * sizeof *a};
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  const rondo_fill fill = {.dst = b, .value = 9, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(child, NULL, 0, &fill, &inner));
  inner = test_add_affine(t, child, &inner, 1, b, 7, 3);
  const rondo_copy back = {.dst = out + 8, .src = b, .width = sizeof *b};
  assert_ok(rondo_graph_add_copy(child, &inner, 1, &back, &inner));
  assert_ok(rondo_graph_add_child(graph, &node, 1, child, &node));
  test_graph_destroy(child);
  return graph;
}

/* The result of the work for buffers number `a` and `b`. */
static void assert_work(test_fixture *t, const uint32_t *out, uint32_t a, uint32_t b) {
  uint32_t expected[9];
  for (uint32_t i = 0; i < 4; i++) {
    expected[i] = (1000 * a + i) * 31 + 1000 * b + 4 + i;
    expected[4 + i] = 1000 * a + i;
  }
  expected[8] = 9 * 7 + 3;
  assert_words(t, out, expected, 9);
}

TEST(test_tr6_every_launch_reads_its_own_inputs) {
  uint32_t *a[PLACES], *b[PLACES], *out = test_words(t, WORDS);
  for (uint32_t i = 0; i < PLACES; i++) a[i] = make_buffer(t, i), b[i] = make_buffer(t, 10 + i);
  rondo_graph *graph = make_work(t, a[0], b[0], out);
  rondo_exec *exec = test_exec_of(graph);
  rondo_patch_set *set = make_loose_set(exec, (rondo_patch_input[]){input_of("a", a[0]), input_of("b", b[0])}, 2);
  const rondo_patch_input_info of_a = info_of(set, 0), of_b = info_of(set, 1);
  assert_true(of_a.sites == 2 && of_a.nodes == 2 && of_a.is_patchable && !of_a.is_written);
  assert_true(of_b.sites == 4 && of_b.nodes == 4 && of_b.is_patchable && of_b.is_written);
  assert_string_equal(of_b.name, "b");
  for (uint32_t i = 0; i < PLACES; i++) {
    launch_at(t, set, a[i], b[PLACES - 1 - i]);
    assert_work(t, out, i, 10 + PLACES - 1 - i);
    assert_int_equal(test_word(t, b[PLACES - 1 - i]), 9 * 7 + 3);
    assert_ptr_equal(info_of(set, 0).address, a[i]);
  }
  launch_at(t, set, NULL, NULL);
  assert_work(t, out, PLACES - 1, 10);
  assert_ok(rondo_exec_launch(exec, t->stream)); /* patched inputs stay */
  assert_work(t, out, PLACES - 1, 10);
  assert_int_equal(totals_of(set).patched, 2 * PLACES - 1);
  assert_true(totals_of(set).sites == 6 && totals_of(set).found == 0 && totals_of(set).host_bytes > 0);
  rondo_patch_set_destroy(set);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_work(t, out, PLACES - 1, 10);
}

/* U1: launches that wait in a queue have the inputs that they were given; also where a launch waits inside. */
static void keep_inputs_in_flight(test_fixture *t, rondo_event *event) {
  enum { LAUNCHES = 40 };
  uint32_t *in[PLACES], *out[LAUNCHES], expected[LAUNCHES];
  for (uint32_t i = 0; i < PLACES; i++) in[i] = make_buffer(t, i);
  for (uint32_t i = 0; i < LAUNCHES; i++) out[i] = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  rondo_node wait;
  if (event != NULL) assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, event, &wait));
  add_combine(t, graph, event != NULL ? &wait : NULL, in[0], in[0] + 8, out[0], 8);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of(NULL, in[0]), input_of(NULL, out[0])};
  rondo_patch_set *set = make_set(exec, inputs, 2);
  rondo_stream *other = test_stream(t, "other");
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  if (event != NULL) assert_ok(rondo_event_record(event, t->stream));
  for (uint32_t i = 0; i < LAUNCHES; i++) {
    assert_ok(rondo_patch_set_launch(set, i % 3 == 2 ? other : t->stream, AT(in[i * 7 % PLACES], out[i])));
  }
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_stream_synchronize(other));
  for (uint32_t i = 0; i < LAUNCHES; i++) {
    const uint32_t number = i * 7 % PLACES;
    for (uint32_t k = 0; k < 8; k++) expected[k] = (1000 * number + k) * 31 + 1000 * number + 8 + k;
    assert_words(t, out[i], expected, 8);
  }
  for (uint32_t i = 0; i < LAUNCHES; i++) test_words_free(t, out[i]);
}

TEST_WORKERS(test_tr6_launches_in_flight_keep_their_inputs) {
  test_skip_if_serial();
  keep_inputs_in_flight(t, NULL);
}

TEST_WORKERS(test_tr6_launches_that_wait_inside_keep_their_inputs) {
  test_skip_if_serial();
  rondo_event *event = test_event(t);
  keep_inputs_in_flight(t, event);
}

/* More sites than a launch's record in a queue can hold, and a parameter before the first parameter. */
TEST(test_tr6_an_input_of_many_readers) {
  uint32_t *in[2] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, MANY), expected[MANY];
  rondo_graph *graph = test_graph(t);
  for (uint32_t i = 0; i < MANY; i++) add_combine(t, graph, NULL, in[0] + i % 4, in[0] + 4, out + i, 1);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("in", in[0])};
  rondo_patch_set *set = make_set(exec, inputs, 1);
  assert_true(info_of(set, 0).sites == 2 * MANY && info_of(set, 0).nodes == MANY);
  for (uint32_t round = 0; round < 4; round++) {
    const uint32_t number = 1 + (round + 1) % 2;
    launch_at(t, set, in[number - 1], NULL);
    for (uint32_t i = 0; i < MANY; i++) expected[i] = (1000 * number + i % 4) * 31 + 1000 * number + 4;
    assert_words(t, out, expected, MANY);
  }
}

/* A node with two inputs and an output, which all move at once. */
TEST(test_tr6_a_node_of_several_inputs) {
  uint32_t *buffers[4];
  for (uint32_t i = 0; i < 4; i++) buffers[i] = make_buffer(t, i + 1);
  rondo_graph *graph = test_graph(t);
  add_combine(t, graph, NULL, buffers[0], buffers[1], buffers[2], 2);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("a", buffers[0]), input_of("b", buffers[1]), input_of("c", buffers[2])};
  rondo_patch_set *set = make_set(exec, inputs, 3);
  const void *const addresses[] = {buffers[1], buffers[0], buffers[3]};
  assert_ok(rondo_patch_set_launch(set, t->stream, addresses));
  const uint32_t expected[] = {2000 * 31 + 1000, 2001 * 31 + 1001, 4002};
  assert_words(t, buffers[3], expected, 3);
  assert_int_equal(test_word(t, buffers[2]), 3000);
}

/* Patches of a disabled node apply when it is enabled again. */
TEST(test_tr6_disabled_nodes_are_patched_too) {
  uint32_t *in[2] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add_combine(t, graph, NULL, in[0], in[0], out, 1);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("in", in[0])};
  rondo_patch_set *set = make_set(exec, inputs, 1);
  assert_ok(rondo_exec_set_enabled(exec, node, false));
  launch_at(t, set, in[1], NULL);
  assert_int_equal(test_word(t, out), 0);
  assert_ok(rondo_exec_set_enabled(exec, node, true));
  launch_at(t, set, in[1], NULL);
  assert_int_equal(test_word(t, out), 2000 * 32);
}

/* Graph memory, events, relocating, captures ----------------------------------------------------------------------- */

/* out = in * 31 + in by a buffer of the graph's own, with an event after it. */
static rondo_graph *make_memory_work(test_fixture *t, const uint32_t *in, uint32_t *out, rondo_event *event,
                                     bool relocate) {
  rondo_graph *graph;
  rondo_node node;
  void *scratch;
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .relocate = relocate};
  assert_ok(rondo_graph_create(t->device, &options, &graph));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, WORDS * sizeof *in, "scratch", &scratch, &node));
  node = add_combine(t, graph, &node, in, in, scratch, 4);
  const rondo_copy copy = {.dst = out, .src = scratch, .width = 4 * sizeof *in};
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &copy, &node));
  if (event != NULL) assert_ok(rondo_graph_add_event_record(graph, &node, 1, event, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  return graph;
}

static void patch_memory_work(test_fixture *t, bool relocate) {
  uint32_t *in[2] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, WORDS);
  rondo_event *event = test_event(t);
  rondo_graph *graph = make_memory_work(t, in[0], out, event, relocate);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("in", in[0])};
  rondo_patch_set *set = make_loose_set(exec, inputs, 1);
  assert_int_equal(info_of(set, 0).sites, 2);
  for (uint32_t round = 0; round < 4; round++) {
    launch_at(t, set, in[round % 2], NULL);
    assert_ok(rondo_event_synchronize(event));
    assert_int_equal(test_word(t, out + 1), (1000 * (1 + round % 2) + 1) * 32);
  }
  assert_ok(rondo_exec_update(exec, graph, NULL)); /* the exec has its first address again, which the set must notice */
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, out + 1), 1001 * 32);
  assert_error(rondo_patch_set_launch(set, t->stream, AT(in[1])), RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES);
  assert_ok(rondo_patch_set_rebase(set, AT(in[0])));
  launch_at(t, set, in[1], NULL);
  assert_int_equal(test_word(t, out + 1), 2001 * 32);
  rondo_patch_set_destroy(set); /* after its exec */
  test_graph_destroy(graph);
}

TEST(test_tr6_gm_execs_with_graph_memory_and_events) { patch_memory_work(t, false); }
TEST(test_tr6_gm20_relocated_execs) { patch_memory_work(t, true); }

/* C16: a launch on a stream that captures becomes a child with the addresses of the launch; the exec keeps its own. */
TEST(test_tr6_c16_launches_into_captures) {
  uint32_t *in[3], *out = test_words(t, WORDS);
  for (uint32_t i = 0; i < 3; i++) in[i] = make_buffer(t, i + 1);
  rondo_graph *graph = test_graph(t), *captured[2];
  add_combine(t, graph, NULL, in[0], in[0], out, 1);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("in", in[0])};
  rondo_patch_set *set = make_set(exec, inputs, 1);
  launch_at(t, set, in[1], NULL);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  launch_at(t, set, in[2], NULL);
  captured[0] = test_capture_end(t->stream);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_exec_launch(exec, t->stream));
  captured[1] = test_capture_end(t->stream);
  test_run_once(t, captured[0]);
  assert_int_equal(test_word(t, out), 3000 * 32);
  test_run_once(t, captured[1]);
  assert_int_equal(test_word(t, out), 2000 * 32);
  assert_ptr_equal(info_of(set, 0).address, in[1]);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, out), 2000 * 32);
}

/* Changes outside the set ----------------------------------------------------------------------------------------- */

typedef struct pair {
  test_fixture *t;
  uint32_t *in[3], *out;
  rondo_graph *graph;
  rondo_node node;
  rondo_exec *exec;
  rondo_patch_set *set;
} pair;

/* The caller destroys exec and set. */
static pair make_loose_pair(test_fixture *t) {
  pair p = {.t = t, .out = test_words(t, WORDS), .graph = test_graph(t)};
  for (uint32_t i = 0; i < 3; i++) p.in[i] = make_buffer(t, i + 1);
  p.node = add_combine(t, p.graph, NULL, p.in[0], p.in[0] + 1, p.out, 1);
  p.exec = test_instantiate(p.graph);
  p.set = make_loose_set(p.exec, (rondo_patch_input[]){input_of("in", p.in[0])}, 1);
  return p;
}

static pair make_pair(test_fixture *t) {
  pair p = make_loose_pair(t);
  test_leave(destroy_patch_set, p.set);
  return p;
}

/* out = 31 * in[number - 1][0] + in[number - 1][1], after a launch with the input there. */
static void assert_pair(const pair *p, uint32_t number) {
  assert_int_equal(test_word(p->t, p->out), 1000 * number * 31 + 1000 * number + 1);
}

static void launch_pair(const pair *p, uint32_t number) {
  launch_at(p->t, p->set, p->in[number - 1], NULL);
  assert_pair(p, number);
}

/* The set is refused with this message, and accepts no addresses. */
static void assert_stale(const pair *p, const void *const *addresses, const char *words) {
  assert_error(rondo_patch_set_launch(p->set, p->t->stream, addresses), RONDO_INVALID_STATE,
               RONDO_REASON_STALE_PATCHES);
  assert_message(words);
  assert_error(rondo_patch_set_rebase(p->set, addresses), RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES);
}

static void set_node(const pair *p, const uint32_t *a, const uint32_t *b) {
  const void *const args[] = {&a, &b, &p->out};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = test_kernel(p->t, TEST_KERNEL_COMBINE), .grid = {1, 1, 1}, .args = args, .arg_count = 3}};
  assert_ok(rondo_exec_set_params(p->exec, p->node, &params));
}

TEST(test_tr6_u1_parameters_that_change_outside_the_set) {
  pair p = make_pair(t);
  launch_at(p.t, p.set, p.in[1], NULL);
  set_node(&p, p.in[1], p.in[1] + 1); /* the same */
  launch_pair(&p, 3);
  set_node(&p, p.in[2], p.in[0]); /* not the input any more */
  assert_stale(&p, AT(p.in[1]), "input 'in'");
  assert_ok(rondo_exec_launch(p.exec, p.t->stream));
  assert_int_equal(test_word(p.t, p.out), 3000 * 31 + 1000);
  set_node(&p, p.in[0], p.in[0] + 1);
  assert_ok(rondo_patch_set_rebase(p.set, AT(p.in[0])));
  launch_pair(&p, 2);
}

/* The node has no such parameter any more. */
TEST(test_tr6_u1_kernels_that_change_outside_the_set) {
  pair p = make_pair(t);
  const uint32_t value = 6;
  const void *const args[] = {&value, &p.out};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = test_kernel(p.t, TEST_KERNEL_SET), .grid = {1, 1, 1}, .args = args, .arg_count = 2}};
  assert_ok(rondo_exec_set_params(p.exec, p.node, &params));
  assert_stale(&p, AT(NULL), "");
  assert_ok(rondo_exec_launch(p.exec, p.t->stream));
  assert_int_equal(test_word(p.t, p.out), 6);
}

/* Measuring launches with what was patched, and leaves it. */
TEST(test_tr6_measuring_between_patched_launches) {
  pair p = make_pair(t);
  rondo_node_time times[1];
  size_t count = 1;
  launch_pair(&p, 2);
  assert_ok(rondo_exec_measure(p.exec, p.t->stream, 2, times, &count));
  assert_pair(&p, 2);
  launch_pair(&p, 3);
}

TEST(test_tr6_one_set_at_a_time_is_current) {
  pair p = make_pair(t);
  launch_at(p.t, p.set, p.in[1], NULL);
  rondo_patch_set *other = make_loose_set(p.exec, (rondo_patch_input[]){input_of("again", p.in[1])}, 1);
  assert_error(rondo_patch_set_launch(p.set, p.t->stream, AT(p.in[2])), RONDO_INVALID_STATE,
               RONDO_REASON_STALE_PATCHES);
  launch_at(p.t, other, p.in[2], NULL);
  assert_pair(&p, 3);
  assert_error(rondo_patch_set_rebase(p.set, AT(p.in[1])), RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES);
  assert_ok(rondo_patch_set_rebase(p.set, AT(p.in[2])));
  assert_error(rondo_patch_set_launch(other, p.t->stream, AT(NULL)), RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES);
  launch_pair(&p, 1);
  rondo_patch_set_destroy(other);
  launch_pair(&p, 2);
}

/* Two recordings of one form share an exec: each with a set of its own. */
TEST(test_tr6_two_recordings_share_an_exec) {
  pair p = make_pair(t);
  uint32_t *out = test_words(p.t, WORDS);
  rondo_graph *second = test_graph(p.t);
  add_combine(p.t, second, NULL, p.in[2], p.in[2] + 1, out, 1);
  uint64_t fingerprints[2];
  assert_ok(rondo_graph_fingerprint(p.graph, &fingerprints[0]));
  assert_ok(rondo_graph_fingerprint(second, &fingerprints[1]));
  assert_true(fingerprints[0] == fingerprints[1]);
  assert_ok(rondo_exec_update(p.exec, second, NULL));
  rondo_patch_set *other = make_loose_set(p.exec, (rondo_patch_input[]){input_of("in", p.in[2])}, 1);
  for (uint32_t round = 0; round < 4; round++) {
    assert_ok(rondo_exec_update(p.exec, p.graph, NULL));
    assert_ok(rondo_patch_set_rebase(p.set, AT(p.in[0])));
    launch_at(p.t, p.set, p.in[1], NULL);
    assert_pair(&p, 2);
    assert_ok(rondo_exec_update(p.exec, second, NULL));
    assert_ok(rondo_patch_set_rebase(other, AT(p.in[2])));
    launch_at(p.t, other, p.in[0], NULL);
    assert_int_equal(test_word(p.t, out), 1000 * 31 + 1001);
  }
  rondo_patch_set_destroy(other);
}

TEST(test_tr6_l2_an_exec_that_is_gone) {
  pair p = make_loose_pair(t);
  rondo_exec_destroy(p.exec);
  assert_stale(&p, AT(p.in[1]), "");
  assert_error(rondo_patch_set_check(p.set, 0, p.in[1]), RONDO_INVALID_STATE, RONDO_REASON_STALE_PATCHES);
  assert_int_equal(totals_of(p.set).inputs, 1);
  rondo_patch_set_destroy(p.set);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_tr6_addresses_are_checked) {
  pair p = make_pair(t);
  uint32_t *small = NULL;
  assert_ok(rondo_malloc(p.t->device, 4, "small", (void **)&small));
  const void *addresses[] = {(const char *)p.in[1] + 4};
  assert_invalid(rondo_patch_set_launch(p.set, p.t->stream, addresses), RONDO_REASON_MISALIGNED);
  addresses[0] = small;
  assert_invalid(rondo_patch_set_launch(p.set, p.t->stream, addresses), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_patch_set_check(p.set, 0, small), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_free(p.t->device, small));
  assert_fails(rondo_patch_set_check(p.set, 0, small), RONDO_INVALID_LIFETIME);
  assert_invalid(rondo_patch_set_check(p.set, 1, p.in[1]), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_patch_set_check(p.set, 0, p.in[1]));
  assert_ok(rondo_patch_set_check(p.set, 0, p.in[0]));
  launch_at(p.t, p.set, NULL, NULL); /* nothing was patched */
  assert_pair(&p, 1);
  assert_int_equal(totals_of(p.set).patched, 0);
}

TEST(test_tr6_bad_sets_are_refused) {
  pair p = make_pair(t);
  rondo_patch_set *set = p.set;
  const rondo_patch_input a = input_of("a", p.in[0]);
  rondo_patch_input moved = input_of("b", p.in[1]), misaligned = a;
  moved.moved = p.in[2];
  misaligned.moved = p.in[0] + 1;
  const struct {
    rondo_patch_input inputs[2];
    size_t count;
    const rondo_graph *moved, *again;
    rondo_reason reason;
  } bad[] = {
      {{a, input_of("b", p.in[0] + WORDS - 1)}, 2, NULL, NULL, RONDO_REASON_OUT_OF_RANGE},
      {{a, {.address = p.in[1]}}, 2, NULL, NULL, RONDO_REASON_BAD_SIZE},
      {{a, {.bytes = 4}}, 2, NULL, NULL, RONDO_REASON_NULL_ARGUMENT},
      {{a, moved}, 2, NULL, NULL, RONDO_REASON_BAD_OPTIONS},
      {{a}, 1, NULL, p.graph, RONDO_REASON_BAD_OPTIONS},
      {{a}, 1, p.graph, NULL, RONDO_REASON_BAD_OPTIONS}, /* it is not said where the input moved to */
      {{misaligned}, 1, p.graph, NULL, RONDO_REASON_MISALIGNED},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = bad[i].moved, .again = bad[i].again};
    assert_invalid(rondo_patch_set_create(p.exec, bad[i].inputs, bad[i].count, &options, &set), bad[i].reason);
    assert_null(set);
  }
  assert_invalid(rondo_patch_set_create(NULL, &a, 1, NULL, &set), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_patch_set_create(p.exec, NULL, 1, NULL, &set), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_patch_set_launch(p.set, NULL, (const void *const[]){NULL}), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_patch_set_launch(p.set, p.t->stream, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_patch_finding finding = {.struct_size = sizeof finding};
  assert_invalid(rondo_patch_set_get_finding(p.set, 0, &finding), RONDO_REASON_OUT_OF_RANGE);
  launch_pair(&p, 2);
  rondo_patch_set_destroy(NULL);
}

TEST(test_tr6_a_set_without_inputs) {
  pair p = make_pair(t);
  rondo_patch_set *set = make_set(p.exec, NULL, 0);
  assert_ok(rondo_patch_set_launch(set, p.t->stream, NULL));
  assert_pair(&p, 1);
}

/* out[1] = both halves of `wide`, exclusively or-ed; the others are as they were given. */
static rondo_node add_mixed(test_fixture *t, rondo_graph *graph, uint64_t wide, uint32_t last, uint32_t *out) {
  const uint8_t a = 1;
  const uint16_t c = 2;
  const double d = 3;
  const test_triple triple = {{4, 5, 6}};
  rondo_node node;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, test_kernel(t, TEST_KERNEL_MIXED), (rondo_grid){1, 0, 0},
                                   RONDO_ARGS(&a, &wide, &c, &d, &triple, &last, &out), &node));
  return node;
}

static uint32_t halves(const void *address) {
  const uint64_t value = (uint64_t)(uintptr_t)address;
  return (uint32_t)(value >> 32) ^ (uint32_t)value;
}

/* A scalar that may be an address is reported, and its input is never patched. */
TEST(test_tr6_suspected_addresses) {
  uint32_t *in[2] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add_mixed(t, graph, (uint64_t)(uintptr_t)(in[0] + 1), 7, out);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("in", in[0]), input_of("out", out)};
  rondo_patch_set *set = make_set(exec, inputs, 2);
  assert_true(!info_of(set, 0).is_patchable && info_of(set, 0).sites == 0 && info_of(set, 1).is_patchable);
  const rondo_patch_finding finding = finding_of(set, 0);
  assert_true(finding.kind == RONDO_PATCH_SUSPECTED && finding.node.id == node.id && finding.parameter == 1);
  assert_true(finding.offset == 0 && finding.bytes == 8 && finding.input == 0);
  assert_true(finding.value == (uint64_t)(uintptr_t)(in[0] + 1));
  assert_error(rondo_patch_set_launch(set, t->stream, AT(in[1], NULL)), RONDO_UPDATE_REFUSED,
               RONDO_REASON_NOT_UPDATABLE);
  assert_message("test_mixed");
  launch_at(t, set, in[0], out);
  assert_int_equal(test_word(t, out + 1), halves(in[0] + 1));
}

/* A box, whose addresses no update changes, and a host function's pointer. */
TEST(test_tr6_addresses_that_cannot_change) {
  uint32_t *in[2] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  rondo_node box, host;
  const rondo_copy copy = {.dst = out, .src = in[0], .width = 4, .height = 2, .src_pitch = 8, .dst_pitch = 4};
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &box));
  assert_ok(rondo_graph_add_host(graph, &box, 1, test_host_nothing, in[1], &host));
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input inputs[] = {input_of("box", in[0]), input_of("user", in[1])};
  rondo_patch_set *set = make_set(exec, inputs, 2);
  assert_int_equal(totals_of(set).findings, 2);
  assert_true(finding_of(set, 0).kind == RONDO_PATCH_FIXED && finding_of(set, 0).node.id == box.id);
  assert_true(finding_of(set, 1).kind == RONDO_PATCH_SUSPECTED && finding_of(set, 1).node.id == host.id);
  assert_int_equal(finding_of(set, 1).parameter, RONDO_PATCH_NO_PARAMETER);
  assert_error(rondo_patch_set_launch(set, t->stream, AT(out, NULL)), RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE);
  launch_at(t, set, in[0], in[1]);
  assert_int_equal(test_word(t, out + 1), 1002);
}

/* Comparing recordings --------------------------------------------------------------------------------------------- */

/* A recording: the input's address in a scalar, a value that may differ, and memory of the recording's own. */
typedef struct recording {
  const uint32_t *in;
  uint32_t last, factor;
  uint32_t *scratch;
} recording;

static rondo_graph *record(test_fixture *t, recording r, uint32_t *out) {
  rondo_graph *graph = test_graph(t);
  add_mixed(t, graph, (uint64_t)(uintptr_t)(r.in + 2), r.last, out);
  test_add_affine(t, graph, NULL, 0, r.scratch, r.factor, 1);
  const rondo_copy copy = {.dst = out + 8, .src = r.in, .width = 8};
  rondo_node node;
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  return graph;
}

typedef struct compared {
  test_fixture *t;
  uint32_t *in[3], *scratch, *out;
} compared;

static compared make_compared(test_fixture *t) {
  compared c = {.t = t, .scratch = test_words(t, WORDS), .out = test_words(t, WORDS)};
  for (uint32_t i = 0; i < 3; i++) c.in[i] = make_buffer(t, i + 1);
  return c;
}

/* A set of an exec of the first recording, compared with the others. */
static rondo_patch_set *compare(const compared *c, const recording recordings[3]) {
  rondo_graph *graphs[3];
  for (int i = 0; i < 3; i++) graphs[i] = record(c->t, recordings[i], c->out);
  rondo_patch_input input = input_of("in", recordings[0].in);
  input.moved = recordings[1].in;
  return make_compared_set(test_instantiate(graphs[0]), &input, 1, graphs[1], graphs[2]);
}

TEST(test_tr6_addresses_in_scalars_are_found_by_comparing) {
  const compared c = make_compared(t);
  /* The scratch memory moves too, which is its recording's own business. */
  const recording recordings[] = {
      {c.in[0], 7, 1, c.scratch}, {c.in[1], 7, 1, c.scratch + 1}, {c.in[0], 7, 1, c.scratch}};
  rondo_patch_set *set = compare(&c, recordings);
  assert_true(info_of(set, 0).is_patchable && info_of(set, 0).sites == 2 && totals_of(set).found == 0);
  launch_at(c.t, set, c.in[2], NULL);
  assert_int_equal(test_word(c.t, c.out + 1), halves(c.in[2] + 2));
  assert_int_equal(test_word(c.t, c.out + 9), 3001);
}

/* A learning rate, a seed: values that change from recording to recording, and not in the exec. */
TEST(test_tr6_frozen_values_are_reported) {
  const compared c = make_compared(t);
  const recording recordings[] = {{c.in[0], 7, 1, c.scratch}, {c.in[1], 8, 2, c.scratch}, {c.in[0], 7, 3, c.scratch}};
  rondo_patch_set *set = compare(&c, recordings);
  assert_true(info_of(set, 0).is_patchable && totals_of(set).findings == 2 && totals_of(set).noise == 0);
  const rondo_patch_finding last = finding_of(set, 0), factor = finding_of(set, 1);
  assert_true(last.kind == RONDO_PATCH_FROZEN && last.parameter == 5 && last.bytes == 4);
  assert_true(last.value == 7 && last.moved_value == 8 && last.input == RONDO_PATCH_NO_INPUT);
  assert_true(factor.kind == RONDO_PATCH_FROZEN && factor.parameter == 0 && factor.value == 1);
  assert_non_null(strstr(factor.message, "rondo_exec_set_params"));
}

/* Memory that is not the input and moved as far all the same: it must not follow the input. */
TEST(test_tr6_other_memory_that_moved_as_far) {
  uint32_t *memory = test_words(t, 4 * 1024), *out = test_words(t, WORDS);
  rondo_graph *graphs[2];
  for (int i = 0; i < 2; i++) graphs[i] = record(t, (recording){memory + 64 * i, 7, 1, memory + 1024 + 64 * i}, out);
  rondo_exec *exec = test_instantiate(graphs[0]);
  const rondo_patch_input input = {.address = memory, .bytes = 64, .moved = memory + 64};
  rondo_patch_set *set = make_compared_set(exec, &input, 1, graphs[1], NULL);
  assert_true(!info_of(set, 0).is_patchable && info_of(set, 0).sites == 2);
  assert_int_equal(finding_of(set, 0).kind, RONDO_PATCH_FIXED);
}

/* An address that the work has from elsewhere than its input. */
TEST(test_tr6_addresses_that_do_not_move) {
  uint32_t *in[2] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, WORDS);
  rondo_graph *graphs[2];
  for (int i = 0; i < 2; i++) {
    graphs[i] = test_graph(t);
    add_combine(t, graphs[i], NULL, in[i], in[0], out, 1);
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  rondo_patch_input input = input_of("in", in[0]);
  input.moved = in[1];
  rondo_patch_set *set = make_compared_set(exec, &input, 1, graphs[1], NULL);
  assert_true(!info_of(set, 0).is_patchable && info_of(set, 0).sites == 1);
  assert_true(finding_of(set, 0).kind == RONDO_PATCH_FIXED && finding_of(set, 0).parameter == 1);
}

/* Inputs that moved as far: their own words are known by where they point to, others are not. */
TEST(test_tr6_inputs_that_moved_as_far) {
  uint32_t *memory = test_words(t, 4 * 1024), *out = test_words(t, WORDS);
  uint32_t *a = memory, *b = memory + 1024;
  rondo_graph *graphs[2];
  for (uint32_t i = 0; i < 2; i++) {
    graphs[i] = test_graph(t);
    add_combine(t, graphs[i], NULL, a + 2048 * i, b + 2048 * i, out, 1);
    add_combine(t, graphs[i], NULL, a + 2048 * i, a + 2048 * i + 512, out + 1, 1);
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  const rondo_patch_input inputs[] = {{.name = "a", .address = a, .bytes = 64, .moved = a + 2048},
                                      {.name = "b", .address = b, .bytes = 64, .moved = b + 2048}};
  rondo_patch_set *set = make_compared_set(exec, inputs, 2, graphs[1], NULL);
  assert_true(info_of(set, 0).sites == 2 && info_of(set, 1).sites == 1);
  assert_true(!info_of(set, 0).is_patchable && !info_of(set, 1).is_patchable); /* a + 512 may be either's */
  assert_int_equal(totals_of(set).findings, 2);
}

static void refuse_recording(const pair *p, rondo_graph *other, rondo_reason reason) {
  rondo_patch_set *set;
  rondo_patch_input input = input_of("in", p->in[0]);
  input.moved = p->in[1];
  const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = other};
  assert_error(rondo_patch_set_create(p->exec, &input, 1, &options, &set), RONDO_UPDATE_REFUSED, reason);
  assert_null(set);
}

TEST(test_tr6_recordings_of_other_work_are_refused) {
  pair p = make_pair(t);
  rondo_graph *other = test_graph(p.t);
  rondo_node node;
  refuse_recording(&p, other, RONDO_REASON_TOPOLOGY_CHANGED);
  other = test_graph(p.t);
  add_combine(p.t, other, NULL, p.in[1], p.in[1] + 1, p.out, 2); /* another grid */
  refuse_recording(&p, other, RONDO_REASON_FUNCTION_CHANGED);
  other = test_graph(p.t);
  test_add_affine(p.t, other, NULL, 0, p.out, 1, 1);
  refuse_recording(&p, other, RONDO_REASON_FUNCTION_CHANGED);
  other = test_graph(p.t);
  assert_ok(rondo_graph_add_empty(other, NULL, 0, &node));
  refuse_recording(&p, other, RONDO_REASON_NODE_KIND_CHANGED);
  launch_at(p.t, p.set, p.in[1], NULL); /* the set is the current one still */
  assert_pair(&p, 2);
}

/* A fill of a word, a copy of the input's first word. */
static rondo_graph *record_named(test_fixture *t, const uint32_t *in, uint32_t *out, const char *name) {
  rondo_graph *graph = test_graph(t);
  rondo_node nodes[2];
  const rondo_fill fill = {.dst = out, .value = 9, .element_bytes = 4, .width = 1};
  const rondo_copy copy = {.dst = out + 1, .src = in, .width = sizeof *in};
  assert_ok(rondo_graph_add_fill(graph, NULL, 0, &fill, &nodes[0]));
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &nodes[1]));
  for (int i = 0; i < 2; i++) {
    rondo_node_params params;
    assert_ok(rondo_graph_get_params(graph, nodes[i], &params));
    params.name = name;
    assert_ok(rondo_graph_set_params(graph, nodes[i], &params));
  }
  return graph;
}

/* Names are for people: a recording with other names is of the same work. */
TEST(test_tr6_recordings_with_other_names) {
  uint32_t *in[] = {make_buffer(t, 1), make_buffer(t, 2)}, *out = test_words(t, WORDS);
  rondo_graph *graph = record_named(t, in[0], out, "first"), *other = record_named(t, in[1], out, "second");
  rondo_patch_input input = input_of("in", in[0]);
  input.moved = in[1];
  rondo_patch_set *set = make_compared_set(test_instantiate(graph), &input, 1, other, NULL);
  assert_int_equal(info_of(set, 0).sites, 1);
  launch_at(t, set, in[1], NULL);
  assert_words(t, out, ((const uint32_t[]){9, 2000}), 2);
}

/* GX-8: kernels of libraries, in both forms, whose arguments nobody declared. */
static rondo_graph *record_foreign(test_fixture *t, foreign_library *foreign, uint32_t factor, uint32_t *word,
                                   uint32_t *out) {
  void *native = rondo_stream_native(t->stream);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_int_equal(foreign_affine(foreign, native, factor, 1, word), 0);
  assert_int_equal(foreign_affine_by_buffer(foreign, native, 3, 2, word + 1), 0);
  assert_int_equal(foreign_copy(foreign, native, out, word, 8), 0);
  return test_capture_end(t->stream);
}

TEST(test_tr6_gx8_addresses_in_kernels_of_libraries) {
  if (!test_device_is("cuda")) skip();
  foreign_library *foreign = foreign_open();
  uint32_t *in[3], *out = test_words(t, WORDS);
  for (uint32_t i = 0; i < 3; i++) in[i] = make_buffer(t, i + 1);
  for (uint32_t noisy = 0; noisy < 2; noisy++) {
    const uint32_t at[] = {0, 1, 0};
    rondo_graph *graphs[3];
    for (uint32_t i = 0; i < 3; i++) graphs[i] = record_foreign(t, foreign, 5 + noisy * i, in[at[i]], out);
    rondo_exec *exec = test_instantiate(graphs[0]);
    rondo_patch_input input = input_of("in", in[0]);
    rondo_patch_set *set = make_loose_set(exec, &input, 1);
    assert_true(!info_of(set, 0).is_patchable && info_of(set, 0).sites == 1); /* the copy's; two are suspected */
    assert_int_equal(totals_of(set).findings, 2);
    rondo_patch_set_destroy(set);
    input.moved = in[1];
    const rondo_patch_options options = {RONDO_PATCH_OPTIONS_INIT, .moved = graphs[1], .again = graphs[2]};
    assert_ok(rondo_patch_set_create(exec, &input, 1, &options, &set));
    assert_true(info_of(set, 0).is_patchable && info_of(set, 0).sites == 3 && totals_of(set).noise == noisy);
    for (uint32_t i = 0; i < 3; i++) {
      uint32_t expected[2] = {test_word(t, in[2 - i]) * 5 + 1, test_word(t, in[2 - i] + 1) * 3 + 2};
      launch_at(t, set, in[2 - i], NULL);
      assert_words(t, out, expected, 2);
    }
    rondo_patch_set_destroy(set);
    rondo_exec_destroy(exec);
    for (int i = 0; i < 3; i++) test_graph_destroy(graphs[i]);
  }
  foreign_close(foreign);
}

/* A graph that runs as it was captured, for the memory in it that the driver manages. */
static rondo_graph *record_bound(test_fixture *t, foreign_library *foreign, uint32_t *word, uint32_t *out) {
  void *native = rondo_stream_native(t->stream), *scratch = NULL;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_int_equal(foreign_allocate(foreign, native, 64, &scratch), 0);
  assert_int_equal(foreign_affine(foreign, native, 5, 1, word), 0);
  test_affine(t, t->stream, word + 1, 1, 3, 2);
  assert_int_equal(foreign_copy(foreign, native, scratch, word, 8), 0);
  assert_int_equal(foreign_copy(foreign, native, out, scratch, 8), 0);
  assert_int_equal(foreign_free(foreign, native, scratch), 0);
  return test_capture_end(t->stream);
}

TEST(test_tr6_gx8_graphs_that_run_as_captured) {
  if (!test_device_is("cuda")) skip();
  foreign_library *foreign = foreign_open();
  uint32_t *in[3], *out = test_words(t, WORDS);
  for (uint32_t i = 0; i < 3; i++) in[i] = make_buffer(t, i + 1);
  rondo_graph *graphs[] = {record_bound(t, foreign, in[0], out), record_bound(t, foreign, in[1], out),
                           record_bound(t, foreign, in[0], out)};
  rondo_exec *exec = test_instantiate(graphs[0]);
  rondo_patch_input input = input_of("in", in[0]);
  input.moved = in[1];
  rondo_patch_set *set = make_compared_set(exec, &input, 1, graphs[1], graphs[2]);
  assert_true(info_of(set, 0).is_patchable && info_of(set, 0).sites == 3);
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t expected[] = {test_word(t, in[i]) * 5 + 1, test_word(t, in[i] + 1) * 3 + 2};
    launch_at(t, set, in[i], NULL);
    assert_words(t, out, expected, 2);
  }
  foreign_close(foreign);
}

/* On a checking device an access through a patched address is watched like any other. */
TEST(test_tr6_checking_devices_follow_the_inputs) {
  if (!test_is_guarded(t)) skip();
  pair p = make_loose_pair(t);
  uint32_t *gone = test_words(t, WORDS);
  rondo_patch_set_destroy(p.set);
  rondo_exec_destroy(p.exec);
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  p.exec = test_instantiate_with(p.graph, &options);
  const rondo_patch_input inputs[] = {input_of("in", p.in[0])};
  p.set = make_loose_set(p.exec, inputs, 1);
  test_leave(destroy_patch_set, p.set);
  test_words_free(t, gone);
  launch_at(t, p.set, gone, NULL); /* what verification would have refused */
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_USE_AFTER_FREE);
  launch_at(t, p.set, p.in[1], NULL);
  assert_pair(&p, 2);
}
