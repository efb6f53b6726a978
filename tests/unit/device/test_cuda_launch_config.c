/* SPDX-License-Identifier: MIT
 * AD-3: which attributes the CUDA driver gets for a launch configuration: on streams, in captured and built graphs,
 * after changes, and of kernels that a library captured; and that a launch without a configuration makes no other calls
 * than before.
 */
#include <string.h>

#include "fake_cuda/fake_fixture.h"
#include "support/foreign_library.h"

static const rondo_launch_config all = {.block = {8, 1, 1},
                                        .shared_bytes = 64,
                                        .cluster = {2, 1, 1},
                                        .priority = -3,
                                        .shared_percent = 50,
                                        .memory_domain = RONDO_MEMORY_DOMAIN_REMOTE,
                                        .cooperative = true};
static const rondo_launch_config changed = {
    .block = {8, 1, 1}, .shared_bytes = 64, .cluster = {4, 1, 1}, .priority = -1};

enum { BLOCKS = 4, WORDS = 4 + 8 * BLOCKS };

typedef struct memory {
  uint32_t *in, *out;
  const void *args[2];
} memory;

static void make_memory(test_fixture *t, memory *out) {
  *out = (memory){.in = test_words(t, WORDS), .out = test_words(t, WORDS), .args = {&out->in, &out->out}};
}

static rondo_node_params params_of(test_fixture *t, const memory *m, const rondo_launch_config *config) {
  return (rondo_node_params){.kind = RONDO_NODE_KERNEL,
                             .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_REVERSE),
                                           .grid = {BLOCKS, 1, 1},
                                           .args = m->args,
                                           .arg_count = 2,
                                           .config = config}};
}

static rondo_status launch(test_fixture *t, const memory *m, const rondo_launch_config *config) {
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .config = config};
  return rondo_launch_with(t->stream, test_kernel(t, TEST_KERNEL_REVERSE), (rondo_grid){BLOCKS, 1, 1}, m->args, 2,
                           &options);
}

/* The kernel that ran last had the attributes of the configuration. */
static void assert_ran(test_fixture *t, const char *kernel, const rondo_launch_config *config) {
  static const rondo_launch_config none;
  assert_ok(rondo_stream_synchronize(t->stream));
  const fake_cuda_attributes ran = fake->ran(kernel);
  if (config == NULL) config = &none;
  assert_int_equal(ran.cooperative, config->cooperative);
  assert_int_equal(ran.cluster_x, config->cluster.x);
  assert_int_equal(ran.cluster_y, config->cluster.y);
  assert_int_equal(ran.cluster_z, config->cluster.z);
  assert_int_equal(ran.priority, config->priority);
  assert_int_equal(ran.memory_domain, (int)config->memory_domain);
  assert_int_equal(ran.shared_percent, config->shared_percent);
}

static void assert_exec(test_fixture *t, rondo_exec *exec, const rondo_launch_config *config) {
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ran(t, "test_reverse", config);
}

static rondo_graph *capture(test_fixture *t, const memory *m, const rondo_launch_config *config) {
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(launch(t, m, config));
  return test_capture_end(t->stream);
}

static rondo_node only_node(const rondo_graph *graph) {
  rondo_node node = {0};
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &node, &count));
  return node;
}

/* Own kernels ------------------------------------------------------------------------------------------------------ */

FAKE_TEST(test_ad3_launches_have_the_attributes) {
  memory m;
  make_memory(t, &m);
  assert_ok(launch(t, &m, &all));
  assert_ran(t, "test_reverse", &all);
  assert_ok(launch(t, &m, NULL));
  assert_ran(t, "test_reverse", NULL);
}

FAKE_TEST(test_ad3_nodes_have_the_attributes_captured_or_built) {
  memory m;
  make_memory(t, &m);
  rondo_graph *captured = capture(t, &m, &all), *built = test_graph(t);
  rondo_node_params params = params_of(t, &m, &all);
  rondo_node node;
  assert_ok(rondo_graph_add(built, NULL, 0, &params, &node));
  rondo_exec *execs[] = {test_instantiate(captured), test_instantiate(built)};
  for (int i = 0; i < 2; i++) {
    assert_exec(t, execs[i], &all);
    rondo_exec_destroy(execs[i]);
  }
  test_graph_destroy(built);
  test_graph_destroy(captured);
}

/* Also from and to none; no attribute of an earlier configuration is left. */
static void change_exec(test_fixture *t, const memory *m, rondo_graph *graph) {
  const rondo_launch_config *const configs[] = {&all, &changed, NULL, &changed, &all, NULL};
  const rondo_node node = only_node(graph);
  rondo_exec *exec = test_instantiate(graph);
  for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
    const rondo_node_params params = params_of(t, m, configs[i]);
    assert_ok(rondo_exec_set_params(exec, node, &params));
    assert_exec(t, exec, configs[i]);
  }
  rondo_exec_destroy(exec);
}

FAKE_TEST(test_ad3_an_exec_gets_other_attributes) {
  memory m;
  make_memory(t, &m);
  rondo_graph *captured = capture(t, &m, &all), *built = test_graph(t);
  rondo_node_params params = params_of(t, &m, NULL);
  rondo_node node;
  assert_ok(rondo_graph_add(built, NULL, 0, &params, &node));
  change_exec(t, &m, captured);
  change_exec(t, &m, built);
  test_graph_destroy(built);
  test_graph_destroy(captured);
}

FAKE_TEST(test_ad3_a_captured_node_gets_other_attributes) {
  memory m;
  make_memory(t, &m);
  rondo_graph *graph = capture(t, &m, &all);
  const rondo_launch_config *const configs[] = {&changed, NULL, &all};
  for (size_t i = 0; i < 3; i++) {
    const rondo_node_params params = params_of(t, &m, configs[i]);
    assert_ok(rondo_graph_set_params(graph, only_node(graph), &params));
    rondo_exec *exec = test_instantiate(graph);
    assert_exec(t, exec, configs[i]);
    rondo_exec_destroy(exec);
  }
  test_graph_destroy(graph);
}

/* Another block and other shared memory are parameters, which the driver changes in place. */
FAKE_TEST(test_ad3_other_attributes_alone_build_the_executable_again) {
  rondo_launch_config other = all;
  memory m;
  make_memory(t, &m);
  rondo_graph *graph = capture(t, &m, &all);
  rondo_exec *exec = test_instantiate(graph);
  rondo_node_params params = params_of(t, &m, &other);
  const uint64_t before = test_statistics(t).rebuilds;
  other.block.x = 4;
  other.shared_bytes = 32;
  assert_ok(rondo_exec_set_params(exec, only_node(graph), &params));
  assert_exec(t, exec, &other);
  assert_int_equal(test_statistics(t).rebuilds, before);
  other.memory_domain = RONDO_MEMORY_DOMAIN_DEFAULT;
  assert_ok(rondo_exec_set_params(exec, only_node(graph), &params));
  assert_exec(t, exec, &other);
  assert_int_equal(test_statistics(t).rebuilds, before + 1);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

/* A stream's priority is that of its captured nodes, but an exec runs with the priority of the stream of its launch. */
FAKE_TEST(test_ad3_a_captured_priority_of_a_stream_is_not_the_nodes) {
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .priority = -2};
  rondo_stream *urgent = NULL, *const own = t->stream;
  memory m;
  make_memory(t, &m);
  assert_ok(rondo_stream_create(t->device, &options, &urgent));
  t->stream = urgent;
  rondo_graph *graph = capture(t, &m, NULL);
  t->stream = own;
  assert_null(test_node_params(graph, only_node(graph)).as.kernel.config);
  rondo_exec *exec = test_instantiate(graph);
  assert_exec(t, exec, NULL);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  assert_ok(rondo_stream_destroy(urgent));
}

/* Programmatic dependent launch ------------------------------------------------------------------------------------ */

static uint64_t edges_added(void) { return fake->calls("cuGraphAddDependencies"); }

FAKE_TEST(test_ad3_edges_from_kernels_to_a_programmatic_node_are_programmatic) {
  const rondo_launch_config early = {.programmatic = true};
  memory m;
  make_memory(t, &m);
  rondo_graph *graph = test_graph(t);
  rondo_node_params params = params_of(t, &m, &early);
  rondo_node before[3], node;
  before[0] = add_set(t, graph, NULL, 0, 5, m.in);
  before[1] = add_set(t, graph, NULL, 0, 6, m.in + 1);
  const rondo_fill fill = {.dst = m.in + 2, .value = 7, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(graph, NULL, 0, &fill, &before[2]));
  assert_ok(rondo_graph_add(graph, before, 3, &params, &node));
  fake->forget();
  rondo_exec *exec = test_instantiate(graph);
  assert_int_equal(edges_added(), 2); /* all others come with their nodes */
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  fake->forget();
  params.as.kernel.config = NULL;
  assert_ok(rondo_exec_set_params(exec, node, &params)); /* which makes them ordinary */
  assert_int_equal(edges_added(), 0);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

FAKE_TEST(test_ad3_programmatic_launches_say_so) {
  const rondo_launch_config early = {.programmatic = true};
  memory m;
  make_memory(t, &m);
  assert_ok(launch(t, &m, &early));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(fake->ran("test_reverse").programmatic, 1);
}

/* What libraries capture ------------------------------------------------------------------------------------------- */

static const rondo_launch_config foreign_config = {.block = {2, 2, 2},
                                                   .shared_bytes = 256,
                                                   .cluster = {1, 1, 1},
                                                   .priority = -1,
                                                   .shared_percent = 25,
                                                   .memory_domain = RONDO_MEMORY_DOMAIN_REMOTE,
                                                   .cooperative = true};

static rondo_graph *capture_foreign(test_fixture *t, foreign_library *foreign, uint32_t *word) {
  const foreign_launch how = {.block = {2, 2, 2},
                              .cluster = {1, 1, 1},
                              .shared_bytes = 256,
                              .priority = -1,
                              .shared_percent = 25,
                              .memory_domain = 1,
                              .cooperative = 1};
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_int_equal(foreign_affine_with(foreign, rondo_stream_native(t->stream), 2, 1, word, &how), 0);
  return test_capture_end(t->stream);
}

static void assert_config(const rondo_launch_config *is, const rondo_launch_config *wanted) {
  assert_non_null(is);
  assert_memory_equal(&is->block, &wanted->block, sizeof is->block);
  assert_memory_equal(&is->cluster, &wanted->cluster, sizeof is->cluster);
  assert_int_equal(is->shared_bytes, wanted->shared_bytes);
  assert_int_equal(is->priority, wanted->priority);
  assert_int_equal(is->shared_percent, wanted->shared_percent);
  assert_int_equal(is->memory_domain, wanted->memory_domain);
  assert_int_equal(is->cooperative, wanted->cooperative);
}

FAKE_TEST(test_ad3_a_librarys_kernel_is_imported_with_its_configuration) {
  foreign_library *foreign = foreign_open();
  uint32_t *word = test_words(t, 1);
  assert_non_null(foreign);
  rondo_graph *graph = capture_foreign(t, foreign, word), *again = capture_foreign(t, foreign, word), *copy = NULL;
  rondo_node_params params = test_node_params(graph, only_node(graph));
  char *text = NULL;
  assert_config(params.as.kernel.config, &foreign_config);
  size_t differences = 0;
  assert_ok(rondo_graph_diff(graph, again, true, NULL, &differences));
  assert_int_equal(differences, 0);
  assert_ok(rondo_graph_to_json(graph, false, &text));
  assert_ok(rondo_graph_from_json(text, strlen(text), &copy));
  assert_config(test_node_params(copy, only_node(copy)).as.kernel.config, &foreign_config);
  rondo_text_free(text);
  test_graph_destroy(copy);
  test_graph_destroy(again);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_launch_config wanted = foreign_config;
  wanted.priority = 0; /* its priority may be its stream's */
  assert_ran(t, "foreign_affine", &wanted);
  wanted.cooperative = false;
  wanted.block = (rondo_dimensions){4, 1, 1};
  params.as.kernel.config = &wanted;
  assert_ok(rondo_exec_set_params(exec, only_node(graph), &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ran(t, "foreign_affine", &wanted);
  assert_int_equal(test_word(t, word), 3); /* two launches of one block */
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  foreign_close(foreign);
}

/* Limits and costs ------------------------------------------------------------------------------------------------- */

FAKE_TEST(test_ad3_what_the_gpu_does_not_have_is_unsupported) {
  const rondo_launch_config cluster = {.cluster = {2, 1, 1}}, cooperative = {.cooperative = true};
  rondo_device *older = NULL;
  rondo_stream *stream = NULL;
  fake->set_capability(5);
  assert_ok(rondo_device_open("cuda:1", NULL, &older));
  fake->set_capability(9);
  assert_ok(rondo_stream_create(older, NULL, &stream));
  rondo_kernel *kernel = NULL;
  assert_ok(rondo_kernel_create(older, test_kernel_options(TEST_KERNEL_EMPTY), &kernel));
  const rondo_launch_config *const refused[] = {&cluster, &cooperative};
  for (size_t i = 0; i < 2; i++) {
    const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .config = refused[i]};
    assert_error(rondo_launch_with(stream, kernel, (rondo_grid){2, 1, 1}, NULL, 0, &options), RONDO_UNSUPPORTED,
                 RONDO_REASON_NOT_SUPPORTED);
    assert_message("test_empty");
    assert_message("cuda:1");
  }
  rondo_kernel_destroy(kernel);
  const rondo_kernel_options wide = {RONDO_KERNEL_OPTIONS_INIT, .name = "wide", .cpu = test_kernel_nothing,
                                     .params = {{RONDO_ACCESS_SCALAR, 4100, 4}}};
  assert_invalid(rondo_kernel_create(older, &wide, &kernel), RONDO_REASON_BAD_SIZE);
  assert_message("4100 bytes");
  assert_message("4096");
  assert_ok(rondo_stream_destroy(stream));
  assert_ok(rondo_device_close(older));
  (void)t;
}

static uint64_t attribute_calls(void) {
  return fake->calls("cuLaunchKernelEx") + fake->calls("cuGraphKernelNodeSetAttribute") +
         fake->calls("cuGraphKernelNodeGetAttribute") + fake->calls("cuFuncSetAttribute") +
         fake->calls("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

FAKE_TEST(test_ad3_without_a_configuration_there_are_no_calls_for_attributes) {
  memory m;
  make_memory(t, &m);
  fake->forget();
  rondo_graph *graph = capture(t, &m, NULL);
  rondo_exec *exec = test_instantiate(graph);
  const rondo_node_params params = params_of(t, &m, NULL);
  assert_ok(rondo_exec_set_params(exec, only_node(graph), &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(launch(t, &m, NULL));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(attribute_calls(), 0);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

/* The driver is told once what dynamic shared memory a kernel may have. */
FAKE_TEST(test_ad3_a_kernel_is_allowed_shared_memory_once) {
  const rondo_launch_config much = {.block = {8, 1, 1}, .shared_bytes = 200 << 10};
  memory m;
  make_memory(t, &m);
  fake->forget();
  for (int i = 0; i < 5; i++) assert_ok(launch(t, &m, &much));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(fake->calls("cuFuncSetAttribute"), 1);
  assert_int_equal(fake->calls("cuFuncGetAttribute"), 1);
}
