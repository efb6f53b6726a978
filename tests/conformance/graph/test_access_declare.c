/* SPDX-License-Identifier: MIT
 * Kernels that a library launches, whose parameters are declared: they are verified, patched and relocated like kernels
 * of Rondo's (AD-4). On a device whose driver captures no kernels, only the refusals are tested.
 */
#include <string.h>

#include "support/foreign_library.h"
#include "support/rondo_test.h"

#define assert_foreign(call) assert_int_equal((call), 0)
#define WORDS 8

static const rondo_parameter affine_parameters[] = {RONDO_SCALAR(uint32_t), RONDO_SCALAR(uint32_t), RONDO_UPDATES};
#define AFFINE_PARAMETERS .params = affine_parameters, .param_count = 3

typedef struct scene {
  test_fixture *t;
  foreign_library *foreign;
  void *native;
  uint32_t *words;
} scene;

static int set_up(void **state) {
  static scene s;
  if (test_setup(state) != 0) return -1;
  s = (scene){.t = *state};
  if (test_device_is("cuda")) s.foreign = foreign_open();
  if (s.foreign != NULL) s.native = rondo_stream_native(s.t->stream);
  if (s.foreign != NULL) s.words = test_words(s.t, WORDS);
  *state = &s;
  return 0;
}

static int tear_down(void **state) {
  scene *s = *state;
  if (s->foreign != NULL) test_words_free(s->t, s->words);
  if (s->foreign != NULL) foreign_close(s->foreign);
  *state = s->t;
  return test_teardown(state);
}

static void enter(const scene *s) {
  if (!test_device_is("cuda")) skip();
  assert_non_null(s->foreign);
}

#define SCENE_TEST(name) TEST_DEFINE(name, scene *s, set_up, tear_down)

static void declare_by_name(const scene *s) {
  const rondo_access_declaration declaration = {RONDO_ACCESS_DECLARATION_INIT, .name = "foreign_affine",
                                                AFFINE_PARAMETERS};
  assert_ok(rondo_access_declare(s->t->device, &declaration));
}

static void begin(const scene *s) { assert_ok(rondo_capture_begin(s->t->stream, RONDO_CAPTURE_THREAD_LOCAL)); }

static rondo_graph *capture_one(const scene *s, bool by_buffer, uint32_t *word) {
  begin(s);
  assert_foreign(by_buffer ? foreign_affine_by_buffer(s->foreign, s->native, 3, 5, word)
                           : foreign_affine(s->foreign, s->native, 3, 5, word));
  return test_capture_end(s->t->stream);
}

static rondo_node_params only_node(const rondo_graph *graph) {
  rondo_node node;
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &node, &count));
  assert_int_equal(count, 1);
  return test_node_params(graph, node);
}

static void set_word(const scene *s, uint32_t *word, uint32_t value) { test_write(s->t, word, &value, sizeof value); }

static void assert_declared(const scene *s, rondo_graph *graph) {
  const rondo_node_params params = only_node(graph);
  size_t count;
  const rondo_parameter *parameters = rondo_kernel_parameters(params.as.kernel.kernel, &count);
  assert_int_equal(count, 3);
  assert_int_equal(parameters[2].access, RONDO_ACCESS_READ_WRITE);
  assert_int_equal(*(const uint32_t *)params.as.kernel.args[1], 5);
  assert_ptr_equal(*(uint32_t *const *)params.as.kernel.args[2], s->words);
  set_word(s, s->words, 2);
  test_launch(s->t, test_instantiate(graph));
  assert_int_equal(test_word(s->t, s->words), 11);
}

SCENE_TEST(test_ad4_by_name_both_forms_of_arguments) {
  enter(s);
  declare_by_name(s);
  assert_declared(s, capture_one(s, false, s->words));
  assert_declared(s, capture_one(s, true, s->words));
}

/* A function's own declaration is preferred, and a later one replaces it. */
SCENE_TEST(test_ad4_by_function) {
  enter(s);
  rondo_parameter reads[3];
  memcpy(reads, affine_parameters, sizeof reads);
  reads[2].access = RONDO_ACCESS_READ;
  rondo_access_declaration declaration = {RONDO_ACCESS_DECLARATION_INIT,
                                          .function = foreign_affine_function(s->foreign), .params = reads,
                                          .param_count = 3};
  declare_by_name(s);
  assert_ok(rondo_access_declare(s->t->device, &declaration));
  const rondo_node_params params = only_node(capture_one(s, false, s->words));
  assert_int_equal(rondo_kernel_parameters(params.as.kernel.kernel, NULL)[2].access, RONDO_ACCESS_READ);
  declaration.params = affine_parameters;
  assert_ok(rondo_access_declare(s->t->device, &declaration));
  assert_declared(s, capture_one(s, false, s->words));
}

/* Without the declaration this is a warning (GX-8), and the graph is instantiated. */
SCENE_TEST(test_ad4_mistakes_with_graph_memory_are_errors) {
  enter(s);
  rondo_exec *exec;
  declare_by_name(s);
  begin(s);
  void *memory = test_allocate_async(s->t->stream, 4096);
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 1, memory));
  assert_ok(rondo_free_async(s->t->stream, memory));
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 1, memory));
  rondo_graph *graph = test_capture_end(s->t->stream);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("foreign_affine");
}

/* Two branches of a library write the same word. A declaration has no number of bytes, so that is a warning. */
SCENE_TEST(test_ad4_races_are_found) {
  enter(s);
  void *forked;
  rondo_findings *findings;
  rondo_finding finding = {.struct_size = sizeof finding};
  declare_by_name(s);
  begin(s);
  assert_foreign(foreign_fork(s->foreign, s->native, &forked));
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 1, s->words));
  assert_foreign(foreign_affine(s->foreign, forked, 1, 1, s->words));
  assert_foreign(foreign_join(s->foreign, s->native));
  assert_ok(rondo_graph_verify(test_capture_end(s->t->stream), NULL, &findings));
  assert_int_equal(rondo_findings_count(findings), 1);
  assert_ok(rondo_findings_get(findings, 0, &finding));
  assert_int_equal(finding.reason, RONDO_REASON_RACE);
  rondo_findings_destroy(findings);
}

SCENE_TEST(test_ad4_graph_memory_is_relocated) {
  enter(s);
  const rondo_instantiate_options relocating = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  declare_by_name(s);
  begin(s);
  void *memory = test_allocate_async(s->t->stream, 4096);
  assert_ok(rondo_fill_async(s->t->stream, &(rondo_fill){.dst = memory, .value = 7, .element_bytes = 4, .width = 1}));
  assert_foreign(foreign_affine(s->foreign, s->native, 2, 1, memory));
  assert_ok(rondo_copy_async(s->t->stream, s->words, memory, 4));
  assert_ok(rondo_free_async(s->t->stream, memory));
  rondo_graph *graph = test_capture_end(s->t->stream);
  test_launch(s->t, test_instantiate_with(graph, &relocating));
  assert_int_equal(test_word(s->t, s->words), 15);
}

SCENE_TEST(test_ad4_inputs_are_patched_by_declaration) {
  enter(s);
  declare_by_name(s);
  uint32_t *other = test_words(s->t, WORDS);
  rondo_exec *exec = test_exec_of(capture_one(s, false, s->words));
  const rondo_patch_input input = {.address = s->words, .bytes = WORDS * sizeof *s->words};
  rondo_patch_set *set;
  assert_ok(rondo_patch_set_create(exec, &input, 1, NULL, &set));
  set_word(s, other, 1);
  assert_ok(rondo_patch_set_launch(set, s->t->stream, &(const void *){other}));
  assert_int_equal(test_word(s->t, other), 8);
  set_word(s, s->words, 10);
  assert_ok(rondo_patch_set_launch(set, s->t->stream, &(const void *){s->words}));
  assert_int_equal(test_word(s->t, s->words), 35);
  assert_int_equal(test_word(s->t, other), 8);
  rondo_patch_set_destroy(set);
}

/* An argument is set, and the graph updates an exec. */
SCENE_TEST(test_ad4_arguments_are_set_and_updated) {
  enter(s);
  declare_by_name(s);
  const uint32_t factor = 4;
  rondo_graph *graph = capture_one(s, false, s->words), *second = capture_one(s, true, s->words + 1);
  rondo_exec *exec = test_instantiate(graph);
  rondo_node node;
  size_t count = 1;
  assert_ok(rondo_graph_nodes(graph, &node, &count));
  assert_ok(rondo_exec_set_argument(exec, node, 0, &factor));
  set_word(s, s->words, 1);
  test_launch(s->t, exec);
  assert_int_equal(test_word(s->t, s->words), 9);
  assert_ok(rondo_exec_update(exec, second, NULL));
  test_launch(s->t, exec);
  assert_int_equal(test_word(s->t, s->words + 1), 5);
}

SCENE_TEST(test_ad4_imported_graphs_have_the_declared_parameters) {
  enter(s);
  void *native;
  rondo_graph *graph;
  const rondo_import_options taking = {RONDO_IMPORT_OPTIONS_INIT, .takes_ownership = true};
  void *stream;
  assert_foreign(foreign_stream_create(s->foreign, FOREIGN_NON_BLOCKING, &stream));
  declare_by_name(s);
  assert_foreign(foreign_begin_capture(s->foreign, stream));
  assert_foreign(foreign_affine(s->foreign, stream, 3, 5, s->words));
  assert_foreign(foreign_graph_end(s->foreign, stream, &native));
  assert_foreign(foreign_stream_destroy(s->foreign, stream));
  assert_ok(rondo_graph_import(s->t->device, native, &taking, &graph));
  assert_declared(s, graph);
  assert_ok(rondo_graph_destroy(graph));
}

/* Refusals -------------------------------------------------------------------------------------------------------- */

static void refuse(const scene *s, const rondo_access_declaration *declaration, rondo_reason reason) {
  assert_invalid(rondo_access_declare(s->t->device, declaration), reason);
}

SCENE_TEST(test_ad4_declarations_that_say_nothing) {
  int function;
  rondo_access_declaration d = {RONDO_ACCESS_DECLARATION_INIT, AFFINE_PARAMETERS};
  assert_invalid(rondo_access_declare(NULL, &d), RONDO_REASON_NULL_ARGUMENT);
  refuse(s, NULL, RONDO_REASON_NULL_ARGUMENT);
  refuse(s, &d, RONDO_REASON_NULL_ARGUMENT);
  d.name = "";
  refuse(s, &d, RONDO_REASON_BAD_OPTIONS);
  d.name = "foreign_affine";
  d.function = &function;
  refuse(s, &d, RONDO_REASON_BAD_OPTIONS);
  d.function = NULL;
  d.param_count = 0;
  refuse(s, &d, RONDO_REASON_ARGUMENT_COUNT);
  d.param_count = 3;
  d.params = NULL;
  refuse(s, &d, RONDO_REASON_NULL_ARGUMENT);
  d.params = affine_parameters;
  if (s->foreign != NULL) return;
  assert_error(rondo_access_declare(s->t->device, &d), RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED);
}

SCENE_TEST(test_ad4_parameters_that_the_function_does_not_have) {
  enter(s);
  const rondo_parameter sizes[] = {RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint32_t), RONDO_UPDATES};
  rondo_access_declaration d = {RONDO_ACCESS_DECLARATION_INIT, .function = foreign_affine_function(s->foreign),
                                .params = affine_parameters, .param_count = 2};
  refuse(s, &d, RONDO_REASON_BAD_SIZE);
  d.param_count = 3;
  d.params = sizes;
  refuse(s, &d, RONDO_REASON_BAD_SIZE);
}

/* A name is compared when its kernel is captured; the stream captures again afterwards. */
SCENE_TEST(test_ad4_a_wrong_declaration_by_name_fails_the_capture) {
  enter(s);
  rondo_graph *graph;
  const rondo_access_declaration wrong = {RONDO_ACCESS_DECLARATION_INIT, .name = "foreign_affine",
                                          .params = affine_parameters, .param_count = 1};
  assert_ok(rondo_access_declare(s->t->device, &wrong));
  begin(s);
  assert_foreign(foreign_affine(s->foreign, s->native, 1, 1, s->words));
  assert_reason(rondo_capture_end(s->t->stream, &graph), RONDO_REASON_BAD_SIZE);
  assert_message("foreign_affine");
  declare_by_name(s);
  assert_declared(s, capture_one(s, false, s->words));
}
