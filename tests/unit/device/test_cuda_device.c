/* SPDX-License-Identifier: MIT
 * The CUDA device where it does more than forward calls, on the fake driver: host functions on separate threads, code
 * that stays loaded while it runs, updates that the driver refuses, contexts, synchronous launches, and the loss of the
 * device.
 */
#include <rondo/rondo.h>
#include <stdatomic.h>
#include <stdio.h>

#include "fake_cuda/fake_fixture.h"
#include "vendor/cuda_driver.h"

/* Host functions -------------------------------------------------------------------------------------------------- */

static rondo_status open_gate(void *gate) {
  test_gate_open(gate);
  return RONDO_OK;
}

static rondo_status count_call(void *count) {
  (*(atomic_int *)count)++;
  return RONDO_OK;
}

/* The driver has one thread for all of them (docs/cuda-probes.md, 20). A function that waits in vain for the other one
 * fails (test_gate_pass), and so does the synchronization. */
FAKE_TEST(host_functions_of_streams_do_not_hold_each_other_up) {
  rondo_stream *other = test_stream(t, "other");
  test_gate *gate = test_gate_make();
  for (int i = 0; i < 10; i++) {
    test_gate_hold(gate, t->stream);
    assert_ok(rondo_host_async(other, open_gate, gate));
    assert_ok(rondo_stream_synchronize(other));
    assert_ok(rondo_stream_synchronize(t->stream));
  }
}

FAKE_TEST(host_functions_in_branches_do_not_hold_each_other_up) {
  rondo_graph *graph = test_graph(t);
  rondo_node waits, opens;
  test_gate *gate = test_gate_make();
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_gate_pass, gate, &waits));
  assert_ok(rondo_graph_add_host(graph, NULL, 0, open_gate, gate, &opens));
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 10; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* The function is called only if the stream will wait for it. */
FAKE_TEST(a_host_function_that_is_refused_is_not_called) {
  atomic_int calls = 0;
  fake->fail_call("cuStreamWaitValue32", 1, 1, false);
  assert_fails(rondo_host_async(t->stream, count_call, &calls), RONDO_EXECUTION_FAILED);
  fake->fail_call("cuLaunchHostFunc", 1, 1, false);
  assert_fails(rondo_host_async(t->stream, count_call, &calls), RONDO_EXECUTION_FAILED);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(atomic_load(&calls), 0);
  for (int i = 0; i < 3; i++) assert_ok(rondo_host_async(t->stream, count_call, &calls));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(atomic_load(&calls), 3);
}

/* A function that an earlier launch still calls stays valid when the node gets another function. */
FAKE_TEST(a_host_node_changes_while_a_launch_waits_at_it) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  atomic_int calls = 0;
  test_gate *gate = test_gate_make();
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_gate_pass, gate, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_gate_await(gate);
  const rondo_node_params params = {.kind = RONDO_NODE_HOST, .as.host = {.function = count_call, .user = &calls}};
  assert_ok(rondo_exec_set_params(exec, node, &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_exec_destroy(exec);
  assert_int_equal(atomic_load(&calls), 0);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(atomic_load(&calls), 1);
}

/* What the launch enqueued before it was refused still uses the exec. */
FAKE_TEST(an_exec_outlasts_a_launch_that_is_refused) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  atomic_int calls = 0;
  test_gate *gate = test_gate_make();
  assert_ok(rondo_graph_add_host(graph, NULL, 0, count_call, &calls, &node));
  rondo_exec *exec = test_instantiate(graph);
  test_gate_hold(gate, t->stream);
  fake->fail_call("cuGraphLaunch", 1, 1, false);
  assert_fails(rondo_exec_launch(exec, t->stream), RONDO_EXECUTION_FAILED);
  rondo_exec_destroy(exec);
  assert_int_equal(fake->live(FAKE_CUDA_EXEC), 1);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(atomic_load(&calls), 0);
}

/* Code ------------------------------------------------------------------------------------------------------------ */

static rondo_kernel *make_kernel(test_fixture *t, const char *name) {
  char source[128];
  (void)snprintf(source, sizeof source, "extern \"C\" __global__ void %s() {}\n", name);
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = name, .cuda_source = source,
                                        .cpu = test_kernel_options(TEST_KERNEL_EMPTY)->cpu};
  rondo_kernel *kernel = test_kernel_make(t, &options);
  return kernel;
}

FAKE_TEST(code_stays_while_a_stream_runs_it) {
  rondo_stream *other = test_stream(t, "other");
  rondo_kernel *kernel = make_kernel(t, "passing");
  const size_t modules = fake->live(FAKE_CUDA_MODULE);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_launch(t->stream, kernel, one_block, RONDO_NO_ARGS));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(fake->live(FAKE_CUDA_MODULE), modules);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(fake->live(FAKE_CUDA_MODULE), modules); /* unloading would wait for other streams */
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(fake->live(FAKE_CUDA_MODULE), modules - 1);
}

FAKE_TEST(code_stays_while_an_exec_runs_it) {
  rondo_kernel *kernel = make_kernel(t, "passing");
  const size_t modules = fake->live(FAKE_CUDA_MODULE);
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  test_gate *gate = test_gate_make();
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, one_block, RONDO_NO_ARGS, &node));
  rondo_exec *exec = test_instantiate(graph);
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_kernel_destroy(kernel);
  assert_int_equal(fake->live(FAKE_CUDA_MODULE), modules);
  test_gate_open(gate);
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(fake->live(FAKE_CUDA_MODULE), modules - 1);
}

FAKE_TEST(code_goes_when_other_code_comes) {
  rondo_kernel *kernel = make_kernel(t, "first");
  const size_t modules = fake->live(FAKE_CUDA_MODULE);
  for (int i = 0; i < 10; i++) {
    assert_ok(rondo_launch(t->stream, kernel, one_block, RONDO_NO_ARGS));
    assert_ok(rondo_stream_synchronize(t->stream));
    rondo_kernel_destroy(kernel);
    kernel = make_kernel(t, "next");
    assert_int_equal(fake->live(FAKE_CUDA_MODULE), modules);
  }
}

/* Kernels from images and from loaded functions. Errors of code are reported where the code is given. */

static const char empty_ptx[] = ".version 6.3\n.target sm_52\n.address_size 64\n.visible .entry from_ptx()\n{ ret; }\n";

/* A module that the test itself loads, in the device's primary context. */
typedef struct own_module {
  const cuda_api *api;
  cu_module module;
  cu_function function;
} own_module;

static own_module load_own(const char *image, const char *name) {
  own_module own = {0};
  cu_context context;
  assert_ok(cuda_library_get(&own.api));
  assert_int_equal(own.api->primary_retain(&context, 0), CU_OK);
  assert_int_equal(own.api->context_set_current(context), CU_OK);
  assert_int_equal(own.api->module_load(&own.module, image, 0, NULL, NULL), CU_OK);
  assert_int_equal(own.api->module_get_function(&own.function, own.module, name), CU_OK);
  return own;
}

/* Its code is still there. */
static void unload_own(const own_module *own) {
  assert_int_equal(own->api->module_unload(own->module), CU_OK);
  assert_int_equal(own->api->context_set_current(NULL), CU_OK);
  assert_int_equal(own->api->primary_release(0), CU_OK);
}

FAKE_TEST(kernels_are_made_from_ptx_and_from_functions) {
  rondo_kernel *from_ptx = NULL;
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "from_ptx", .cuda_image = empty_ptx,
                                  .cpu = test_kernel_options(TEST_KERNEL_EMPTY)->cpu};
  assert_ok(rondo_kernel_create(t->device, &options, &from_ptx));
  const own_module own = load_own(empty_ptx, "from_ptx");
  options.cuda_image = NULL;
  options.cuda_function = own.function;
  rondo_kernel *from_function = test_kernel_make(t, &options);
  assert_ok(rondo_launch(t->stream, from_ptx, one_block, RONDO_NO_ARGS));
  assert_ok(rondo_launch(t->stream, from_function, one_block, RONDO_NO_ARGS));
  assert_ok(rondo_stream_synchronize(t->stream));
  options.cuda_image = empty_ptx;
  rondo_kernel *none = from_ptx;
  assert_invalid(rondo_kernel_create(t->device, &options, &none), RONDO_REASON_BAD_OPTIONS);
  assert_null(none);
  rondo_kernel_destroy(from_ptx);
  rondo_kernel_destroy(from_function);
  unload_own(&own);
}

FAKE_TEST(code_that_is_wrong_is_refused) {
  rondo_kernel *kernel = NULL;
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "wrong", .cuda_image = "no image"};
  assert_fails(rondo_kernel_create(t->device, &options, &kernel), RONDO_INVALID_DATA);
  assert_message("the image was not made by the fake compiler");
  options.cuda_image = empty_ptx;
  assert_error(rondo_kernel_create(t->device, &options, &kernel), RONDO_INVALID_DATA, RONDO_REASON_NO_FUNCTION);
  assert_message("wrong");
  options.cuda_image = NULL;
  options.cuda_source = "#error so it is\nextern \"C\" __global__ void wrong() {}\n";
  assert_fails(rondo_kernel_create(t->device, &options, &kernel), RONDO_INVALID_DATA);
  assert_message("so it is"); /* the compiler's log */
  options.cuda_source = "extern \"C\" __global__ void other() {}\n";
  assert_error(rondo_kernel_create(t->device, &options, &kernel), RONDO_INVALID_DATA, RONDO_REASON_NO_FUNCTION);
  assert_null(kernel);
}

/* A function of other parameters than those that are declared. */
FAKE_TEST(parameters_are_compared_with_the_code) {
  static const struct {
    rondo_parameter parameters[3];
    const char *message;
  } rows[] = {
      {{RONDO_SCALAR(uint32_t)}, "its CUDA code has more"},
      {{RONDO_SCALAR(uint32_t), RONDO_WRITES, RONDO_WRITES}, "3 parameters are declared, its CUDA code has 2"},
      {{RONDO_SCALAR(uint64_t), RONDO_WRITES},
       "parameter 0 is declared with 8 bytes at offset 0, its CUDA code has 4 bytes at offset 0"},
      {{RONDO_SCALAR(uint32_t), RONDO_WRITES}, NULL},
  };
  const own_module own = load_own(".version 6.3\n.visible .entry test_set()\n", "test_set"); /* a word and a pointer */
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "set", .cuda_function = own.function};
    rondo_kernel *kernel = NULL;
    memcpy(options.params, rows[i].parameters, sizeof rows[i].parameters);
    const rondo_status status = rondo_kernel_create(t->device, &options, &kernel);
    if (rows[i].message == NULL) {
      assert_ok(status);
    } else {
      assert_invalid(status, RONDO_REASON_BAD_SIZE);
      assert_message(rows[i].message);
    }
    rondo_kernel_destroy(kernel);
  }
  unload_own(&own);
}

/* Changes --------------------------------------------------------------------------------------------------------- */

static rondo_node_params set_params(test_fixture *t, const uint32_t *value, uint32_t *const *words, const void **args) {
  args[0] = value;
  args[1] = words;
  return (rondo_node_params){
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_SET), .grid = one_block, .args = args, .arg_count = 2}};
}

/* An exec of one kernel, which writes 1 to a word; and the parameters with which it writes 2. */
typedef struct one_set {
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_node node;
  uint32_t *word, two;
  const void *args[2];
  rondo_node_params params;
} one_set;

static void one_set_make(test_fixture *t, one_set *out) {
  *out = (one_set){.graph = test_graph(t), .word = test_words(t, 1), .two = 2};
  out->node = add_set(t, out->graph, NULL, 0, 1, out->word);
  out->exec = test_instantiate(out->graph);
  out->params = set_params(t, &out->two, &out->word, out->args);
}

/* An exec that was built again keeps its disabled nodes, and runs after the launches of the one before, on any stream.
 */
FAKE_TEST(what_the_driver_refuses_to_change_is_made_again) {
  rondo_stream *other = test_stream(t, "other");
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 2), *second = words + 1;
  const uint32_t three = 3;
  const void *args[2];
  rondo_node held;
  test_gate *gate = test_gate_make();
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_gate_pass, gate, &held));
  const rondo_node first = add_set(t, graph, &held, 1, 1, words), last = add_set(t, graph, &first, 1, 2, second);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_set_enabled(exec, last, false));
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_gate_await(gate);
  fake->fail_call("cuGraphExecKernelNodeSetParams", 1, 1, false);
  const rondo_node_params params = set_params(t, &three, &words, args);
  assert_ok(rondo_exec_set_params(exec, first, &params));
  assert_int_equal(test_statistics(t).rebuilds, 1);
  assert_ok(rondo_exec_launch(exec, other));
  test_gate_open(gate);
  test_gate_await(gate);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(test_word(t, words), 3);
  assert_int_equal(test_word(t, second), 0);
}

/* Slices whose distance is not a number of rows are one copy each, and these are switched one by one. */
FAKE_TEST(a_copy_is_not_switched_in_part) {
  rondo_graph *graph = test_graph(t);
  uint32_t *from = test_words(t, 32), *to = test_words(t, 32), values[32];
  const rondo_copy copy = {.dst = to,
                           .src = from,
                           .width = 8,
                           .height = 2,
                           .depth = 3,
                           .dst_pitch = 16,
                           .src_pitch = 16,
                           .dst_slice_pitch = 40,
                           .src_slice_pitch = 40};
  rondo_node node;
  for (uint32_t i = 0; i < 32; i++) values[i] = 7;
  assert_ok(rondo_copy_async(t->stream, from, values, sizeof values));
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  rondo_exec *exec = test_instantiate(graph);
  fake->fail_call("cuGraphNodeSetEnabled", 2, 1, false);
  assert_fails(rondo_exec_set_enabled(exec, node, false), RONDO_EXECUTION_FAILED);
  assert_non_null(fake->failed());
  assert_ok(rondo_exec_launch(exec, t->stream));
  for (int slice = 0; slice < 3; slice++) assert_int_equal(test_word(t, to + 10 * slice), 7);
  assert_ok(rondo_exec_set_enabled(exec, node, false));
}

/* If measuring fails while it waits for launches, the exec runs as usual, also after changes. */
FAKE_TEST(what_cannot_be_measured_runs_as_before) {
  rondo_node_time times[1];
  size_t count = 1;
  one_set s;
  one_set_make(t, &s);
  fake->fail_call("cuGraphUpload", 2, 2, false); /* after the first, before anything is measured */
  assert_fails(rondo_exec_measure(s.exec, t->stream, 1, times, &count), RONDO_OUT_OF_MEMORY);
  assert_ok(rondo_exec_set_params(s.exec, s.node, &s.params));
  launch_and_expect(t, s.exec, s.word, 2);
}

FAKE_TEST(when_that_fails_too_the_first_refusal_comes_out) {
  one_set s;
  one_set_make(t, &s);
  fake->fail_call(NULL, 3, 801, true); /* after making the context current */
  assert_fails(rondo_exec_set_params(s.exec, s.node, &s.params), RONDO_UNSUPPORTED);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(s.node));
  fake->fail_call(NULL, 0, 0, false);
  assert_int_equal(test_statistics(t).rebuilds, 0);
  launch_and_expect(t, s.exec, s.word, 1);
  assert_ok(rondo_exec_set_params(s.exec, s.node, &s.params));
  launch_and_expect(t, s.exec, s.word, 2);
}

/* How often the driver was called since the last query. */
typedef struct change_calls {
  uint64_t set, current, mode;
} change_calls;

static change_calls calls_since(change_calls *last) {
  const change_calls now = {fake->calls("cuGraphExecKernelNodeSetParams"), fake->calls("cuCtxGetCurrent"),
                            fake->calls("cuThreadExchangeStreamCaptureMode")};
  const change_calls since = {now.set - last->set, now.current - last->current, now.mode - last->mode};
  *last = now;
  return since;
}

enum { LINE = 8 };

/* Lines of kernels that set the same word, each of which has a value; their execs, and the last node of the first. */
typedef struct lines {
  uint32_t *word;
  rondo_graph *graphs[3];
  rondo_exec *execs[3];
  rondo_node last;
} lines;

static void lines_make(test_fixture *t, const uint32_t values[][LINE], int count, lines *out) {
  *out = (lines){.word = test_words(t, 1)};
  for (int g = count - 1; g >= 0; g--) {
    out->graphs[g] = test_graph(t);
    for (int i = 0; i < LINE; i++) out->last = add_set(t, out->graphs[g], &out->last, i > 0, values[g][i], out->word);
    out->execs[g] = test_instantiate(out->graphs[g]);
  }
}

/* GX-5: an update enters the device once and calls the driver once for each node that changes. A patch does not change
 * the capture mode. */
FAKE_TEST(an_update_enters_the_device_once) {
  static const uint32_t values[3][LINE] = {
      {1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 4, 5, 6, 7, 8, 7}, {1, 3, 2, 5, 6, 7, 8, 7}};
  static const struct {
    int graph;
    uint64_t differing; /* nodes, from the graph before; at first it is graphs[0] */
  } steps[] = {{1, LINE - 1}, {2, 1}, {1, 1}, {0, LINE - 1}, {0, 0}};
  const uint32_t value = 9;
  const void *args[2];
  change_calls last_calls = {0}, since;
  lines l;
  lines_make(t, values, 3, &l);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    calls_since(&last_calls);
    assert_ok(rondo_exec_update(l.execs[0], l.graphs[steps[i].graph], NULL));
    since = calls_since(&last_calls);
    assert_int_equal(since.set, steps[i].differing);
    assert_true(since.current == 1 && since.mode == 2);
    launch_and_expect(t, l.execs[0], l.word, values[steps[i].graph][LINE - 1]);
  }
  const rondo_node_params params = set_params(t, &value, &l.word, args);
  calls_since(&last_calls);
  assert_ok(rondo_exec_set_params(l.execs[0], l.last, &params));
  since = calls_since(&last_calls);
  assert_true(since.set == 1 && since.current == 1 && since.mode == 0);
  launch_and_expect(t, l.execs[0], l.word, value);
}

/* GX-5, U3: if the driver has no memory for some node, everything is as before. A node that cannot be changed in place
 * is made again among the others. */
FAKE_TEST(an_update_is_whole) {
  static const uint32_t values[2][LINE] = {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12, 13, 14, 15, 16}};
  lines l;
  lines_make(t, values, 2, &l);
  for (uint64_t nth = 1; nth <= LINE; nth++) {
    fake->fail_call("cuGraphExecKernelNodeSetParams", nth, 2, false);
    assert_fails(rondo_exec_update(l.execs[0], l.graphs[1], NULL), RONDO_OUT_OF_MEMORY);
    launch_and_expect(t, l.execs[0], l.word, 8);
  }
  for (uint64_t nth = 1; nth <= LINE; nth++) {
    const int to = (int)nth % 2;
    fake->fail_call("cuGraphExecKernelNodeSetParams", nth, 801, false);
    assert_ok(rondo_exec_update(l.execs[0], l.graphs[to], NULL));
    assert_int_equal(test_statistics(t).rebuilds, nth);
    launch_and_expect(t, l.execs[0], l.word, values[to][LINE - 1]);
  }
  for (int rebuilds = 0; rebuilds < 2; rebuilds++) { /* the update that repairs it may have to make it again */
    fake->fail_call("cuGraphExecKernelNodeSetParams", 4, 2, true);
    assert_fails(rondo_exec_update(l.execs[0], l.graphs[1], NULL), RONDO_OUT_OF_MEMORY);
    fake->fail_call(NULL, 0, 0, false);
    if (rebuilds > 0) fake->fail_call("cuGraphExecKernelNodeSetParams", 1, 801, false);
    assert_error(rondo_exec_launch(l.execs[0], t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_UPDATABLE);
    assert_ok(rondo_exec_update(l.execs[0], l.graphs[0], NULL));
    launch_and_expect(t, l.execs[0], l.word, 8);
  }
}

/* Two words are set, or only the second; then the first node has another kernel. */
static rondo_graph *make_pair(test_fixture *t, bool sets_first, uint32_t second, uint32_t *words) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  if (sets_first)
    node = add_set(t, graph, NULL, 0, 1, words);
  else
    assert_ok(
        rondo_graph_add_kernel(graph, NULL, 0, test_kernel(t, TEST_KERNEL_EMPTY), one_block, RONDO_NO_ARGS, &node));
  (void)add_set(t, graph, &node, 1, second, words + 1);
  return graph;
}

/* U3: a node has the kernel of an update that failed, whose arguments are freed. The next update gives it others. */
FAKE_TEST(a_kernel_that_cannot_be_taken_back_is_given_again) {
  uint32_t *words = test_words(t, 2);
  rondo_graph *first = make_pair(t, true, 2, words), *second = make_pair(t, false, 3, words);
  rondo_exec *exec = test_instantiate(first);
  for (int round = 0; round < 2; round++) {
    fake->fail_call("cuGraphExecKernelNodeSetParams", 2, 2, true);
    assert_fails(rondo_exec_update(exec, round == 0 ? second : first, NULL), RONDO_OUT_OF_MEMORY);
    fake->fail_call(NULL, 0, 0, false);
    assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_UPDATABLE);
    assert_ok(rondo_exec_update(exec, round == 0 ? second : first, NULL));
    launch_and_expect(t, exec, words + 1, round == 0 ? 3 : 2);
  }
  assert_int_equal(test_word(t, words), 1);
}

/* GX-12: memory depends on kernels and copies. Empty nodes take none. */
FAKE_TEST(device_memory_of_execs_is_accounted) {
  uint32_t *words = test_words(t, 2);
  uint64_t bytes[3];
  for (int kernels = 0; kernels < 3; kernels++) {
    rondo_graph *graph = test_graph(t);
    rondo_node node;
    assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
    for (int i = 0; i < kernels; i++) node = add_set(t, graph, &node, 1, 1, words);
    rondo_exec *exec = test_instantiate(graph);
    rondo_exec_info info = test_exec_info(exec);
    bytes[kernels] = info.device_bytes;
    rondo_exec_destroy(exec);
    test_graph_destroy(graph);
  }
  assert_int_equal(bytes[0], 0);
  assert_true(bytes[1] > 100000 && bytes[2] > bytes[1] + 2000 && bytes[2] < bytes[1] + 4000);
}

/* Work of a destroyed stream counts too. */
FAKE_TEST(what_was_launched_stays_counted) {
  const uint32_t value = 7;
  one_set s;
  one_set_make(t, &s);
  const rondo_device_statistics before = test_statistics(t);
  for (int i = 0; i < 2; i++) {
    rondo_stream *stream = test_stream(t, "short");
    assert_ok(rondo_exec_launch(s.exec, stream));
    assert_ok(rondo_launch(stream, test_kernel(t, TEST_KERNEL_SET), one_block, RONDO_ARGS(&value, &s.word)));
    test_stream_destroy(stream);
  }
  assert_ok(rondo_exec_launch(s.exec, t->stream));
  assert_int_equal(test_statistics(t).launches, before.launches + 3);
  assert_int_equal(test_statistics(t).kernels, before.kernels + 5);
}

/* Peers: memory that is mapped when a device is admitted, and what is mapped later. */
FAKE_TEST(peers_reach_what_is_and_what_will_be_mapped) {
  rondo_device *other = NULL;
  rondo_kernel *combine = NULL;
  rondo_stream *stream = NULL;
  uint32_t *early = test_words(t, 4), *late;
  void *out = NULL;
  assert_ok(rondo_device_open("cuda:1", NULL, &other));
  assert_int_equal(test_device_info(other).index, 1);
  assert_ok(rondo_stream_create(other, NULL, &stream));
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_COMBINE), &combine));
  assert_ok(rondo_malloc(other, 16, NULL, &out));
  fake->fail_call("cuMemSetAccess", 1, 2, false);
  assert_fails(rondo_memory_set_access(t->device, other, true), RONDO_OUT_OF_MEMORY);
  assert_message("rondo_memory_trim");
  assert_invalid(rondo_launch(stream, combine, one_block, RONDO_ARGS(&early, &early, &out)), RONDO_REASON_NO_ACCESS);
  assert_ok(rondo_memory_set_access(t->device, other, true));
  late = test_words(t, 1 << 20);
  for (int i = 0; i < 2; i++) {
    uint32_t *words = i == 0 ? early : late;
    assert_ok(rondo_launch(stream, combine, one_block, RONDO_ARGS(&words, &words, &out)));
    assert_ok(rondo_stream_synchronize(stream));
  }
  test_words_free(t, early);
  test_words_free(t, late);
  assert_ok(rondo_free(other, out));
  rondo_kernel_destroy(combine);
  assert_ok(rondo_stream_destroy(stream));
  assert_ok(rondo_device_close(other));
}

/* Contexts -------------------------------------------------------------------------------------------------------- */

FAKE_TEST(launching_makes_no_context_current) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  rondo_exec *exec = test_instantiate(graph);
  rondo_event *event = test_event(t);
  assert_ok(rondo_exec_launch(exec, t->stream));
  const uint64_t calls = fake->calls(NULL);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(fake->calls(NULL), calls + 2);
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_stream_wait_event(t->stream, event));
  assert_int_equal(fake->calls(NULL), calls + 4);
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* Freeing ---------------------------------------------------------------------------------------------------------- */

/* Calls that free are made even when the context cannot be made current, or when the driver refuses to unmap. */
FAKE_TEST(what_cannot_be_freed_is_no_reason_to_stop) {
  rondo_graph *graph = test_graph(t);
  void *address;
  rondo_node node;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 1 << 20, "scratch", &address, &node));
  assert_ok(
      rondo_graph_add_fill(graph, &node, 1, &(rondo_fill){.dst = address, .element_bytes = 4, .width = 16}, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  test_run_once(t, graph);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  test_graph_destroy(graph);
  fake->fail_call("cuCtxSetCurrent", 1, 201, true);
  rondo_exec_destroy(exec);
  fake->fail_call("cuMemUnmap", 1, 999, true);
  assert_int_equal(fake->live(FAKE_CUDA_EXEC), 0);
  assert_int_equal(fake->live(FAKE_CUDA_GRAPH), 0);
}

/* Loss ------------------------------------------------------------------------------------------------------------- */

#define LAUNCH_FAILED 719

/* Closes the fixture's device, which is lost; nothing of it is left. */
static void close_lost(test_fixture *t) {
  for (size_t i = 0; i < TEST_KERNEL_COUNT; i++) {
    rondo_kernel_destroy(t->kernels[i]);
    t->kernels[i] = NULL;
  }
  assert_fails(rondo_stream_destroy(t->stream), RONDO_DEVICE_LOST);
  assert_fails(rondo_device_close(t->device), RONDO_DEVICE_LOST);
}

static void open_again(test_fixture *t) {
  assert_int_equal(atomic_load(&t->allocator.live), 0);
  assert_int_equal(fake->live(FAKE_CUDA_ANY), 0);
  assert_ok(rondo_device_open("cuda:0", &(rondo_device_options){.allocator = &t->allocator.table}, &t->device));
  assert_ok(rondo_stream_create(t->device, NULL, &t->stream));
}

/* Every later call reports the loss with the driver's code. Objects can be freed, and CPU devices continue. */
FAKE_TEST(a_fault_loses_the_device) {
  rondo_kernel *kernel = make_kernel(t, "fault_here");
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, one_block, RONDO_NO_ARGS, &node));
  rondo_exec *exec = test_instantiate(graph), *second = NULL;
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_DEVICE_LOST);
  assert_string_equal(rondo_last_error()->driver_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  assert_message("cuda:0");
  assert_fails(rondo_exec_launch(exec, t->stream), RONDO_DEVICE_LOST);
  assert_message("not waited for: the graph on");
  assert_fails(rondo_instantiate(graph, NULL, &second), RONDO_DEVICE_LOST);
  assert_message("not waited for: the graph on");
  assert_fails(rondo_launch(t->stream, kernel, one_block, RONDO_NO_ARGS), RONDO_DEVICE_LOST);
  rondo_device *cpu = NULL;
  assert_ok(rondo_device_open("cpu", NULL, &cpu));
  assert_ok(rondo_device_close(cpu));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_kernel_destroy(kernel);
  close_lost(t);
  open_again(t);
}

static rondo_exec *launch_named(test_fixture *t, const char *name, rondo_stream *stream) {
  rondo_graph *graph = NULL;
  rondo_node node;
  assert_ok(rondo_graph_create(t->device, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .name = name}, &graph));
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_graph_destroy(graph));
  return exec;
}

/* Graphs that were launched last, were not waited for and still exist. */
FAKE_TEST(a_loss_names_the_graphs_that_may_have_been_at_fault) {
  rondo_stream *streams[4];
  rondo_exec *execs[4];
  static const char *const names[] = {"waited_for", "destroyed", "first", "second"};
  rondo_exec *settled = launch_named(t, "settled", t->stream);
  assert_ok(rondo_device_synchronize(t->device));
  for (size_t i = 0; i < 4; i++) {
    streams[i] = test_stream(t, names[i]);
    execs[i] = launch_named(t, names[i], streams[i]);
  }
  assert_ok(rondo_stream_synchronize(streams[0]));
  rondo_exec_destroy(execs[1]);
  execs[1] = NULL;
  fake->lose(0, LAUNCH_FAILED);
  assert_fails(rondo_stream_synchronize(streams[3]), RONDO_DEVICE_LOST);
  assert_message("graph 'first' on stream 'first'");
  assert_message("graph 'second' on stream 'second'");
  assert_null(strstr(rondo_last_error()->message, "waited_for"));
  assert_null(strstr(rondo_last_error()->message, "destroyed"));
  assert_null(strstr(rondo_last_error()->message, "settled"));
  rondo_exec_destroy(settled);
  for (size_t i = 0; i < 4; i++) {
    rondo_exec_destroy(execs[i]);
    assert_fails(rondo_stream_destroy(streams[i]), RONDO_DEVICE_LOST);
  }
  close_lost(t);
  open_again(t);
}

/* A host function that runs when the device is lost finds its stream's memory until it is done. */
FAKE_TEST(host_functions_outlast_their_stream_on_a_lost_device) {
  rondo_stream *other = test_stream(t, "other");
  test_gate gate;
  test_gate_init(&gate);
  test_gate_hold(&gate, other);
  fake->lose(0, LAUNCH_FAILED);
  assert_fails(rondo_stream_synchronize(other), RONDO_DEVICE_LOST);
  assert_fails(rondo_stream_destroy(other), RONDO_DEVICE_LOST);
  test_gate_open(&gate);
  close_lost(t);
  test_gate_destroy(&gate);
  open_again(t);
}

/* Node by node, so that the node at fault is named. */
FAKE_TEST(a_synchronous_launch_names_the_node) {
  rondo_device *device = NULL;
  rondo_stream *stream = NULL;
  rondo_graph *graph = NULL;
  rondo_kernel *good = NULL, *bad = NULL;
  rondo_node node;
  atomic_int calls = 0;
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "fault_there",
                                        .cpu = test_kernel_options(TEST_KERNEL_EMPTY)->cpu,
                                        .cuda_source = "extern \"C\" __global__ void fault_there() {}\n"};
  assert_ok(rondo_device_open("cuda:1", &(rondo_device_options){.synchronous = true}, &device));
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_kernel_create(device, test_kernel_options(TEST_KERNEL_EMPTY), &good));
  assert_ok(rondo_kernel_create(device, &options, &bad));
  assert_ok(rondo_graph_create(device, NULL, &graph));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, good, one_block, RONDO_NO_ARGS, &node));
  assert_ok(rondo_graph_add_host(graph, &node, 1, count_call, &calls, &node));
  rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL, .name = "the bad one", .as.kernel = {.kernel = bad, .grid = one_block}};
  assert_ok(rondo_graph_add(graph, &node, 1, &params, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_fails(rondo_exec_launch(exec, stream), RONDO_DEVICE_LOST);
  assert_message("the bad one");
  assert_int_equal(rondo_last_error()->node, rondo_node_number(node));
  assert_int_equal(atomic_load(&calls), 1);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  rondo_kernel_destroy(good);
  rondo_kernel_destroy(bad);
  assert_fails(rondo_stream_destroy(stream), RONDO_DEVICE_LOST);
  assert_fails(rondo_device_close(device), RONDO_DEVICE_LOST);
  assert_ok(rondo_stream_synchronize(t->stream)); /* the other device goes on */
}
