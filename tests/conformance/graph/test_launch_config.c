/* SPDX-License-Identifier: MIT
 * AD-3: the configuration of a launch: block, dynamic shared memory and attributes, in launches, captures, nodes,
 * parameters, updates, patches, differences, fingerprints and dumps; and what is refused, with the limit.
 */
#include "support/test_tree.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = 4, BLOCKS = 3, MOST_THREADS = 1024, MOST_WORDS = HEAD + BLOCKS * MOST_THREADS };

static const rondo_launch_config plane = {.block = {8, 4, 0}, .shared_bytes = 32 * sizeof(uint32_t)};
static const rondo_launch_config box = {.block = {4, 4, 2}, .shared_bytes = 1000};
static const rondo_launch_config wide = {.block = {100, 0, 0}, .shared_bytes = 100 * 1024};

/* The kernel that shows its configuration, with its memory. */
typedef struct shown {
  test_fixture *t;
  uint32_t *in, *out;
  const void *args[2];
} shown;

static void make_shown(test_fixture *t, shown *out) {
  uint32_t values[MOST_WORDS];
  for (uint32_t i = 0; i < MOST_WORDS; i++) values[i] = 7 * i + 1;
  *out = (shown){.t = t, .in = test_words(t, MOST_WORDS), .out = test_words(t, MOST_WORDS)};
  out->args[0] = &out->in;
  out->args[1] = &out->out;
  test_write(t, out->in, values, sizeof values);
}

static rondo_node_params params_of(const shown *s, const rondo_launch_config *config) {
  return (rondo_node_params){.kind = RONDO_NODE_KERNEL,
                             .as.kernel = {.kernel = test_kernel(s->t, TEST_KERNEL_REVERSE),
                                           .grid = {BLOCKS, 1, 1},
                                           .args = s->args,
                                           .arg_count = 2,
                                           .config = config}};
}

static rondo_status launch(const shown *s, const rondo_launch_config *config) {
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .config = config};
  return rondo_launch_with(s->t->stream, test_kernel(s->t, TEST_KERNEL_REVERSE), (rondo_grid){BLOCKS, 1, 1}, s->args, 2,
                           &options);
}

static rondo_node add(const shown *s, rondo_graph *graph, const rondo_launch_config *config) {
  rondo_node_params params = params_of(s, config);
  rondo_node node = {0};
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  return node;
}

static uint32_t at_least_one(uint32_t size) { return size == 0 ? 1 : size; }

/* The kernel ran with the configuration; and the output is cleared. NULL: the default, a block of one thread. */
#define assert_shown(s, config) check_shown((s), (config), __FILE__, __LINE__)
static void check_shown(const shown *s, const rondo_launch_config *config, const char *file, int line) {
  uint32_t expected[MOST_WORDS] = {0}, zeros[MOST_WORDS] = {0};
  const rondo_dimensions block = config == NULL ? (rondo_dimensions){1, 1, 1} : config->block;
  expected[0] = at_least_one(block.x); /* the default is one thread */
  expected[1] = at_least_one(block.y);
  expected[2] = at_least_one(block.z);
  expected[3] = config == NULL ? 0 : config->shared_bytes;
  const uint32_t threads = expected[0] * expected[1] * expected[2];
  for (uint32_t i = 0; i < BLOCKS * threads && expected[3] > 0; i++)
    expected[HEAD + i] = 7 * (i / threads * threads + threads - 1 - i % threads) + 1;
  test_assert_words(s->t, s->out, expected, MOST_WORDS, file, line);
  test_write(s->t, s->out, zeros, sizeof zeros);
}

static rondo_graph *capture(const shown *s, const rondo_launch_config *config) {
  assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(launch(s, config));
  return test_capture_end(s->t->stream);
}

static rondo_node only_node(const rondo_graph *graph) {
  rondo_node node = {0};
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &node, &count));
  assert_int_equal(count, 1);
  return node;
}

static void run_nested(const shown *s, rondo_graph *inner) {
  rondo_graph *outer = test_graph(s->t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &node));
  test_run_once(s->t, outer);
  test_graph_destroy(outer);
}

static const rondo_launch_config clustered = {.block = {32, 0, 0}, .shared_bytes = 128, .cluster = {3, 0, 0}};
static const rondo_launch_config together = {.block = {16, 2, 0}, .shared_bytes = 128, .cooperative = true};
static const rondo_launch_config urgent = {.block = {8, 0, 0}, .shared_bytes = 64, .priority = -2};
static const rondo_launch_config early = {.shared_bytes = 32, .programmatic = true};
static const rondo_launch_config all = {.block = {4, 2, 2},
                                        .shared_bytes = 64,
                                        .cluster = {1, 1, 1},
                                        .priority = -1,
                                        .shared_percent = 50,
                                        .memory_domain = RONDO_MEMORY_DOMAIN_REMOTE,
                                        .programmatic = true};

static const rondo_launch_config *const shapes[] = {NULL,      &plane,  &box,   &wide, &clustered,
                                                    &together, &urgent, &early, &all};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST(test_ad3_launches_captures_nodes_and_children_have_the_configuration) {
  shown s;
  make_shown(t, &s);
  for (size_t i = 0; i < SHAPES; i++) {
    assert_ok(launch(&s, shapes[i]));
    assert_shown(&s, shapes[i]);
    rondo_graph *captured = capture(&s, shapes[i]), *built = test_graph(t), *clone = NULL;
    (void)add(&s, built, shapes[i]);
    assert_same_graph(captured, built);
    test_run_once(t, captured);
    assert_shown(&s, shapes[i]);
    run_nested(&s, built);
    assert_shown(&s, shapes[i]);
    assert_ok(rondo_graph_clone(built, &clone));
    assert_same_graph(clone, built);
    test_run_once(t, clone);
    assert_shown(&s, shapes[i]);
    test_graph_destroy(clone);
    test_graph_destroy(built);
    test_graph_destroy(captured);
  }
}

/* Work that still waits has its own configuration: the caller's may change. */
TEST(test_ad3_a_launch_copies_its_configuration) {
  shown s;
  make_shown(t, &s);
  rondo_launch_config config = plane;
  assert_ok(launch(&s, &config));
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add(&s, graph, &config);
  config = box;
  assert_shown(&s, &plane);
  const rondo_launch_config *kept = test_node_params(graph, node).as.kernel.config;
  assert_int_equal(kept->block.x, 8);
  assert_int_equal(kept->block.y, 4);
  assert_int_equal(kept->block.z, 1); /* without zeros */
  assert_int_equal(kept->shared_bytes, plane.shared_bytes);
  test_graph_destroy(graph);
}

/* What is the default, however it is said, is none. */
TEST(test_ad3_the_default_is_no_configuration) {
  static const rondo_launch_config zeros = {.shared_bytes = 0}, standard = {.block = {1, 1, 0}};
  shown s;
  make_shown(t, &s);
  rondo_graph *none = test_graph(t), *zero = test_graph(t), *same = test_graph(t);
  (void)add(&s, none, NULL);
  assert_null(test_node_params(zero, add(&s, zero, &zeros)).as.kernel.config);
  assert_null(test_node_params(same, add(&s, same, &standard)).as.kernel.config);
  assert_same_graph(none, zero);
  assert_same_graph(none, same);
  assert_ok(launch(&s, &zeros));
  assert_shown(&s, NULL);
  test_graph_destroy(same);
  test_graph_destroy(zero);
  test_graph_destroy(none);
}

TEST(test_ad3_parameters_are_read_and_set) {
  shown s;
  make_shown(t, &s);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add(&s, graph, &plane);
  rondo_node_params params = test_node_params(graph, node);
  assert_ok(rondo_graph_set_params(graph, node, &params)); /* as they are */
  assert_ok(rondo_graph_set_argument(graph, node, 1, &s.out));
  test_run_once(t, graph);
  assert_shown(&s, &plane);
  for (size_t i = SHAPES; i-- > 0;) {
    params = params_of(&s, shapes[i]);
    assert_ok(rondo_graph_set_params(graph, node, &params));
    test_run_once(t, graph);
    assert_shown(&s, shapes[i]);
  }
  test_graph_destroy(graph);
}

TEST(test_ad3_an_exec_is_changed) {
  shown s;
  make_shown(t, &s);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add(&s, graph, &plane);
  rondo_exec *exec = test_instantiate(graph);
  for (size_t round = 0; round < 2 * SHAPES; round++) {
    const rondo_launch_config *config = shapes[round % SHAPES];
    const rondo_node_params params = params_of(&s, config);
    assert_ok(rondo_exec_set_params(exec, node, &params));
    test_launch(t, exec);
    assert_shown(&s, config);
    assert_ok(rondo_exec_set_argument(exec, node, 0, &s.in));
    assert_ok(rondo_exec_set_enabled(exec, node, false));
    assert_ok(rondo_exec_set_enabled(exec, node, true));
    test_launch(t, exec);
    assert_shown(&s, config);
  }
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

/* Earlier launches of the exec keep theirs. */
TEST(test_ad3_launches_in_flight_keep_their_configuration) {
  test_skip_if_serial();
  shown s;
  make_shown(t, &s);
  uint32_t *other = test_words(t, MOST_WORDS);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add(&s, graph, &plane);
  rondo_exec *exec = test_instantiate(graph);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(exec, t->stream));
  const shown second = {.t = t, .in = s.in, .out = other, .args = {&second.in, &second.out}};
  const rondo_node_params params = params_of(&second, &box);
  assert_ok(rondo_exec_set_params(exec, node, &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_gate_open(gate);
  assert_shown(&s, &plane);
  assert_shown(&second, &box);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

TEST(test_ad3_an_exec_is_updated) {
  shown s;
  make_shown(t, &s);
  rondo_graph *first = capture(&s, &plane);
  rondo_exec *exec = test_instantiate(first);
  for (size_t round = 0; round < 2 * SHAPES; round++) {
    rondo_graph *next = capture(&s, shapes[round % SHAPES]);
    rondo_update_result result = {.struct_size = sizeof result};
    assert_ok(rondo_exec_update(exec, next, &result));
    assert_ok(rondo_exec_update(exec, next, &result)); /* nothing differs */
    test_launch(t, exec);
    assert_shown(&s, shapes[round % SHAPES]);
    test_graph_destroy(next);
  }
  rondo_exec_destroy(exec);
  test_graph_destroy(first);
}

TEST(test_ad3_inputs_of_a_configured_kernel_are_patched) {
  shown s;
  make_shown(t, &s);
  uint32_t *other = test_words(t, MOST_WORDS);
  rondo_graph *graph = capture(&s, &box);
  rondo_exec *exec = test_instantiate(graph);
  rondo_patch_set *set = NULL;
  const rondo_patch_input output = {.name = "out", .address = s.out, .bytes = MOST_WORDS * sizeof(uint32_t)};
  assert_ok(rondo_patch_set_create(exec, &output, 1, NULL, &set));
  assert_ok(rondo_patch_set_launch(set, t->stream, (const void *const[]){other}));
  const shown moved = {.t = t, .in = s.in, .out = other};
  assert_shown(&moved, &box);
  assert_ok(rondo_patch_set_launch(set, t->stream, (const void *const[]){s.out}));
  assert_shown(&s, &box);
  rondo_patch_set_destroy(set);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

static rondo_status launch_box(rondo_call *call, test_tree_case *c) {
  (void)call;
  return launch(c->user, &box);
}

/* Recordings of trees are captured like other graphs. */
TREE_TEST(test_ad3_recorded_calls_keep_the_configuration) {
  static shown s;
  test_tree_case c;
  make_shown(t, &s);
  test_tree_case_make(&c, t, NULL, NULL, launch_box);
  c.user = &s;
  c.from_run = 0;
  for (int i = 0; i < 4; i++) {
    rondo_buffer_release(test_call_words(t, c.function, c.words, TEST_CASE_WORDS));
    assert_shown(&s, &box);
  }
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

/* Differences and dumps ------------------------------------------------------------------------------------------- */

static uint64_t fingerprint_of(const rondo_graph *graph) {
  uint64_t fingerprint = 0;
  assert_ok(rondo_graph_fingerprint(graph, &fingerprint));
  return fingerprint;
}

TEST(test_ad3_other_configurations_differ) {
  shown s;
  make_shown(t, &s);
  for (size_t i = 0; i < SHAPES; i++) {
    for (size_t k = 0; k < SHAPES; k++) {
      rondo_graph *a = capture(&s, shapes[i]), *b = capture(&s, shapes[k]);
      rondo_difference difference = {0};
      size_t count = 1;
      assert_ok(rondo_graph_diff(a, b, true, &difference, &count));
      assert_int_equal(count, i != k);
      if (i != k) assert_int_equal(difference.kind, RONDO_DIFFERENCE_KERNEL);
      assert_int_equal(fingerprint_of(a) == fingerprint_of(b), i == k);
      test_graph_destroy(b);
      test_graph_destroy(a);
    }
  }
}

TEST(test_ad3_json_keeps_the_configuration) {
  shown s;
  make_shown(t, &s);
  for (size_t i = 0; i < SHAPES; i++) {
    rondo_graph *graph = capture(&s, shapes[i]), *copy = NULL;
    char *text = NULL, *again = NULL;
    assert_ok(rondo_graph_to_json(graph, false, &text));
    assert_ok(rondo_graph_from_json(text, strlen(text), &copy));
    assert_ok(rondo_graph_to_json(copy, false, &again));
    assert_string_equal(text, again);
    assert_true(fingerprint_of(graph) == fingerprint_of(copy));
    size_t count = 0;
    assert_ok(rondo_graph_diff(graph, copy, true, NULL, &count));
    assert_int_equal(count, 0);
    assert_int_equal(strstr(text, "\"config\"") != NULL, shapes[i] != NULL);
    rondo_text_free(again);
    rondo_text_free(text);
    test_graph_destroy(copy);
    test_graph_destroy(graph);
  }
}

TEST(test_ad3_json_has_the_fields_that_are_set) {
  shown s;
  make_shown(t, &s);
  rondo_graph *graph = capture(&s, &all);
  char *text = NULL;
  assert_ok(rondo_graph_to_json(graph, false, &text));
  assert_non_null(strstr(text,
                         "\"config\":{\"block\":[4,2,2],\"shared_bytes\":64,\"cluster\":[1,1,1],\"priority\":-1,"
                         "\"shared_percent\":50,\"memory_domain\":1,\"programmatic\":true}"));
  rondo_text_free(text);
  test_graph_destroy(graph);
}

static void refuse_json(const char *text, const char *from, const char *to, const char *message) {
  const char *at = strstr(text, from);
  char changed[4096];
  rondo_graph *graph = NULL;
  assert_non_null(at);
  (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  assert_fails(rondo_graph_from_json(changed, strlen(changed), &graph), RONDO_INVALID_DATA);
  assert_message(message);
  assert_null(graph);
}

TEST(test_ad3_bad_configurations_in_json_are_refused) {
  shown s;
  make_shown(t, &s);
  rondo_graph *graph = capture(&s, &all);
  char *text = NULL;
  assert_ok(rondo_graph_to_json(graph, false, &text));
  refuse_json(text, "[4,2,2]", "[4,2]", "three entries");
  refuse_json(text, "[4,2,2]", "[4000,2,2]", "1024");
  refuse_json(text, "\"priority\":-1", "\"priority\":-3000000000", "priority");
  refuse_json(text, "\"priority\":-1", "\"priority\":3000000000", "priority");
  refuse_json(text, "\"priority\":-1", "\"urgency\":-1", "urgency");
  refuse_json(text, "\"shared_percent\":50", "\"shared_percent\":101", "101");
  refuse_json(text, "\"memory_domain\":1", "\"memory_domain\":9", "memory_domain");
  refuse_json(text, "\"programmatic\":true", "\"programmatic\":1", "true or false");
  rondo_text_free(text);
  test_graph_destroy(graph);
}

TEST(test_ad3_dot_shows_the_configuration) {
  shown s;
  make_shown(t, &s);
  rondo_graph *graph = capture(&s, &box);
  char *text = NULL;
  assert_ok(rondo_graph_to_dot(graph, false, &text));
  assert_non_null(strstr(text, "4 x 4 x 2 threads"));
  assert_non_null(strstr(text, "1000 bytes of shared memory"));
  rondo_text_free(text);
  test_graph_destroy(graph);
  graph = capture(&s, &all);
  assert_ok(rondo_graph_to_dot(graph, false, &text));
  static const char *const words[] = {"50 % for shared memory", "clusters of 1 x 1 x 1", "priority -1",
                                      "remote memory domain", "programmatic"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) assert_non_null(strstr(text, words[i]));
  rondo_text_free(text);
  test_graph_destroy(graph);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

#define assert_refused(call, limit) \
  (assert_fails(call, RONDO_INVALID_ARGUMENT), assert_message("test_reverse"), assert_message(limit))

/* Every call that gets the configuration refuses it and leaves everything as it was. */
static void refuse(const shown *s, rondo_launch_config config, const char *limit) {
  rondo_graph *graph = test_graph(s->t);
  const rondo_node node = add(s, graph, &plane);
  rondo_exec *exec = test_instantiate(graph);
  rondo_node_params params = params_of(s, &config);
  rondo_node added = {0};
  assert_refused(launch(s, &config), limit);
  assert_refused(rondo_graph_add(graph, NULL, 0, &params, &added), limit);
  assert_refused(rondo_graph_set_params(graph, node, &params), limit);
  assert_refused(rondo_exec_set_params(exec, node, &params), limit);
  assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_refused(launch(s, &config), limit);
  rondo_graph *captured = test_capture_end(s->t->stream);
  assert_int_equal(test_node_count(captured), 0);
  test_launch(s->t, exec);
  assert_shown(s, &plane);
  test_graph_destroy(captured);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

TEST(test_ad3_what_no_device_can_is_refused) {
  shown s;
  make_shown(t, &s);
  refuse(&s, (rondo_launch_config){.block = {1025, 1, 1}}, "1024");
  refuse(&s, (rondo_launch_config){.block = {1, 1025, 1}}, "1024");
  refuse(&s, (rondo_launch_config){.block = {1, 1, 65}}, "64 in z");
  refuse(&s, (rondo_launch_config){.block = {32, 33, 1}}, "1024");
  refuse(&s, (rondo_launch_config){.block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}}, "1024");
  refuse(&s, (rondo_launch_config){.block = {0, 4, 1}}, "set x too");
  refuse(&s, (rondo_launch_config){.shared_bytes = 1 << 20}, test_device_name());
  refuse(&s, (rondo_launch_config){.shared_bytes = UINT32_MAX}, test_device_name());
  refuse(&s, (rondo_launch_config){.cluster = {2, 1, 1}}, "no multiple of its cluster of 2 x 1 x 1");
  refuse(&s, (rondo_launch_config){.cluster = {1, 17, 1}}, "at most 16");
  refuse(&s, (rondo_launch_config){.cluster = {0, 1, 0}}, "set x too");
  refuse(&s, (rondo_launch_config){.priority = -100}, "(last) to -5 (first)");
  refuse(&s, (rondo_launch_config){.priority = 1}, "0 (last)");
  refuse(&s, (rondo_launch_config){.shared_percent = 101}, "1 to 100");
  refuse(&s, (rondo_launch_config){.memory_domain = (rondo_memory_domain)2}, "RONDO_MEMORY_DOMAIN_");
}

static rondo_status launch_wide(const shown *s, uint32_t blocks, const rondo_launch_config *config) {
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .config = config};
  return rondo_launch_with(s->t->stream, test_kernel(s->t, TEST_KERNEL_EMPTY), (rondo_grid){blocks, 1, 1}, NULL, 0,
                           &options);
}

TEST(test_ad3_clusters_and_cooperative_grids_that_do_not_fit_are_refused) {
  static const rondo_launch_config eight = {.cluster = {8, 1, 1}}, sixteen = {.cluster = {16, 1, 1}};
  const rondo_launch_config cooperative = {.block = {1024, 1, 1}, .cooperative = true};
  shown s;
  make_shown(t, &s);
  assert_ok(launch_wide(&s, 16, &eight));
  assert_invalid(launch_wide(&s, 16, &sixteen), RONDO_REASON_BAD_SIZE);
  assert_message("at most 8");
  assert_ok(launch_wide(&s, 16, &cooperative));
  assert_invalid(launch_wide(&s, 1 << 20, &cooperative), RONDO_REASON_BAD_SIZE);
  assert_message("1048576 blocks");
  assert_message("at once");
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* A cluster divides the grids that the exec gets later, too. */
TEST(test_ad3_another_grid_must_fit_the_cluster) {
  shown s;
  make_shown(t, &s);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = add(&s, graph, &clustered);
  rondo_exec *exec = test_instantiate(graph);
  rondo_node_params params = test_node_params(graph, node);
  params.as.kernel.grid.x = 4;
  assert_invalid(rondo_graph_set_params(graph, node, &params), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_exec_set_params(exec, node, &params), RONDO_REASON_BAD_SIZE);
  assert_message("4 x 1 x 1");
  test_launch(t, exec);
  assert_shown(&s, &clustered);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

/* A kernel that may begin early waits for what comes before it; so does what follows. */
TEST(test_ad3_a_programmatic_kernel_sees_the_results_of_the_kernel_before_it) {
  shown s;
  make_shown(t, &s);
  uint32_t expected[BLOCKS];
  rondo_graph *graph;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, t->stream, s.in, BLOCKS, 3, 1);
  assert_ok(launch(&s, &early));
  test_affine(t, t->stream, s.out + HEAD, BLOCKS, 5, 2);
  graph = test_capture_end(t->stream);
  rondo_exec *exec = test_exec_of(graph);
  for (uint32_t round = 0, value[BLOCKS] = {1, 8, 15}; round < 3; round++) {
    test_launch(t, exec);
    for (uint32_t i = 0; i < BLOCKS; i++) expected[i] = 5 * (value[i] = 3 * value[i] + 1) + 2;
    assert_words(t, s.out + HEAD, expected, BLOCKS);
  }
  rondo_exec_destroy(exec);
}

TEST(test_ad3_the_largest_block_and_memory_run) {
  static const rondo_launch_config most = {.block = {8, 16, 8}, .shared_bytes = 96 * 1024};
  shown s;
  make_shown(t, &s);
  assert_ok(launch(&s, &most));
  assert_shown(&s, &most);
}

/* The first launch with more than 48 KiB may be in a capture of any mode. */
TEST(test_ad3_much_shared_memory_is_first_used_in_a_capture) {
  shown s;
  make_shown(t, &s);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_GLOBAL));
  assert_ok(launch(&s, &wide));
  rondo_graph *graph = test_capture_end(t->stream);
  assert_int_equal(test_node_params(graph, only_node(graph)).as.kernel.config->shared_bytes, wide.shared_bytes);
  test_run_once(t, graph);
  assert_shown(&s, &wide);
  test_graph_destroy(graph);
}

/* Limits of the code, which the fake driver knows by its name: registers, and static shared memory. */
static void refuse_code(test_fixture *t, const char *name, const char *source, rondo_launch_config config,
                        const char *limit) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = name, .block_threads = 1,
                                        .cpu = test_kernel_nothing, .cuda_source = source};
  rondo_kernel *kernel = test_kernel_make(t, &options);
  rondo_graph *graph = test_graph(t);
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = kernel, .grid = {1, 1, 1}, .config = &config}};
  const rondo_launch_options launched = {RONDO_LAUNCH_OPTIONS_INIT, .config = &config};
  rondo_node node = {0};
  assert_invalid(rondo_launch_with(t->stream, kernel, (rondo_grid){1, 1, 1}, NULL, 0, &launched),
                 RONDO_REASON_BAD_SIZE);
  assert_message(limit);
  assert_invalid(rondo_graph_add(graph, NULL, 0, &params, &node), RONDO_REASON_BAD_SIZE);
  assert_message(limit);
  params.as.kernel.config = NULL;
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  test_run_once(t, graph);
  test_graph_destroy(graph);
  rondo_kernel_destroy(kernel);
}

TEST(test_ad3_what_the_code_cannot_is_refused) {
  static const char heavy[] = "extern \"C\" __global__ void __launch_bounds__(512) heavy_config() {}\n";
  static const char fixed[] =
      "extern \"C\" __global__ void static_config() {\n"
      "  __shared__ volatile char fixed[16384]; fixed[threadIdx.x] = 1; }\n";
  if (!test_device_is("cuda")) skip();
  refuse_code(t, "heavy_config", heavy, (rondo_launch_config){.block = {32, 32, 1}}, "512");
  refuse_code(t, "static_config", fixed, (rondo_launch_config){.shared_bytes = 220 * 1024}, "static shared memory");
}
