/* SPDX-License-Identifier: MIT
 * Lets every driver call of importing graphs and of making the driver's forms of them, and every host allocation, fail,
 * those of declarations of kernels (AD-4) too.
 * The error has the driver's code. Nothing is left in the driver or in host memory, the driver's graph stays the
 * caller's, and the same calls succeed afterwards (AD-2).
 */
#include "fault/fault_cuda.h"
#include "support/foreign_library.h"

enum { UNKNOWN = 999, WORDS = 16 };

static foreign_library *foreign;
static void *foreign_stream;
static size_t live_before;

typedef struct work {
  test_allocator allocator;
  rondo_device *device, *other;
  rondo_event *event;
  rondo_kernel *set, *empty; /* the second one is of the other device */
  uint32_t *words;
  void *given, *taken; /* the driver's graphs; the second is imported with its ownership */
  rondo_graph *graphs[6];
  rondo_exec *exec;
  uint32_t calls;
} work;

static void count_call(void *user) { ++*(uint32_t *)user; }

/* Without failures: what the calls under test are given. */
static void capture(work *w, void **out) {
  assert_int_equal(foreign_begin_capture(foreign, foreign_stream), 0);
  assert_int_equal(foreign_affine(foreign, foreign_stream, 2, 1, w->words), 0);
  assert_int_equal(foreign_affine_by_buffer(foreign, foreign_stream, 2, 1, w->words), 0);
  assert_int_equal(foreign_affine_early(foreign, foreign_stream, 2, 1, w->words), 0);
  assert_int_equal(foreign_copy(foreign, foreign_stream, w->words + 2, w->words, 4), 0);
  assert_int_equal(foreign_fill(foreign, foreign_stream, w->words + 4, 7, 2), 0);
  assert_int_equal(foreign_host(foreign, foreign_stream, count_call, &w->calls), 0);
  assert_int_equal(foreign_record_external(foreign, foreign_stream), 0);
  assert_int_equal(foreign_graph_end(foreign, foreign_stream, out), 0);
}

static void prepare(work *w) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &w->allocator.table};
  void *words;
  assert_ok(rondo_device_open("cuda:0", &options, &w->device));
  assert_ok(rondo_event_create(w->device, NULL, &w->event));
  assert_ok(rondo_kernel_create(w->device, test_kernel_options(TEST_KERNEL_SET), &w->set));
  assert_ok(rondo_device_open("cuda:1", &options, &w->other));
  assert_ok(rondo_kernel_create(w->other, test_kernel_options(TEST_KERNEL_EMPTY), &w->empty));
  assert_ok(rondo_malloc(w->device, WORDS * sizeof *w->words, NULL, &words));
  w->words = words;
  capture(w, &w->given);
  capture(w, &w->taken);
}

/* All kinds of nodes. */
static rondo_status build(work *w, rondo_graph **out) {
  const uint32_t value = 3;
  rondo_graph *inner = w->graphs[3];
  rondo_node last;
  TRY(rondo_graph_create(w->device, NULL, out));
  TRY(rondo_graph_add_kernel(*out, NULL, 0, w->set, (rondo_grid){4, 1, 1}, RONDO_ARGS(&value, &w->words), &last));
  TRY(rondo_graph_add_fill(*out, &last, 1, &(rondo_fill){.dst = w->words, .element_bytes = 4, .width = 2}, &last));
  TRY(rondo_graph_add_host(*out, &last, 1, test_host_count, &w->calls, &last));
  TRY(rondo_graph_add_copy(*out, &last, 1, &(rondo_copy){.dst = w->words + 8, .src = w->words, .width = 8}, &last));
  TRY(rondo_graph_add_empty(*out, &last, 1, &last));
  TRY(rondo_graph_add_kernel(*out, &last, 1, w->empty, (rondo_grid){1, 1, 1}, RONDO_NO_ARGS, &last));
  TRY(rondo_graph_add_event_wait(*out, &last, 1, w->event, &last));
  return inner == NULL ? RONDO_OK : rondo_graph_add_child(*out, &last, 1, inner, &last);
}

static rondo_status import_all(work *w) {
  const rondo_import_options taking = {RONDO_IMPORT_OPTIONS_INIT, .takes_ownership = true, .name = "taken"};
  rondo_node_params params;
  rondo_node first;
  size_t count = 1;
  void *native;
  TRY(rondo_graph_import(w->device, w->given, NULL, &w->graphs[0]));
  TRY(rondo_graph_nodes(w->graphs[0], &first, &count));
  TRY(rondo_graph_get_params(w->graphs[0], first, &params));
  TRY(rondo_graph_set_params(w->graphs[0], first, &params));
  TRY(rondo_graph_native(w->graphs[0], &native)); /* a copy, with the kernel set */
  TRY(rondo_graph_add_empty(w->graphs[0], NULL, 0, &first));
  TRY(rondo_graph_native(w->graphs[0], &native));
  TRY(rondo_graph_import(w->device, native, NULL, &w->graphs[1]));
  TRY(rondo_graph_import(w->device, w->taken, &taking, &w->graphs[2]));
  w->taken = NULL;
  return RONDO_OK;
}

/* AD-4. No kernel here has that name. */
static rondo_status declare(work *w) {
  const rondo_parameter parameters[] = {RONDO_SCALAR(uint32_t), RONDO_WRITES};
  const rondo_access_declaration declaration = {RONDO_ACCESS_DECLARATION_INIT, .name = "another_kernel",
                                                .params = parameters, .param_count = 2};
  TRY(rondo_access_declare(w->device, &declaration));
  return rondo_access_declare(w->device, &declaration);
}

static rondo_status do_all(work *w) {
  void *native;
  TRY(declare(w));
  TRY(import_all(w));
  TRY(build(w, &w->graphs[3]));
  TRY(build(w, &w->graphs[4]));
  TRY(rondo_graph_native(w->graphs[4], &native));
  TRY(rondo_graph_import(w->device, native, NULL, &w->graphs[5])); /* with a kernel of the other device (AD-8) */
  TRY(rondo_instantiate(w->graphs[2], NULL, &w->exec));
  return rondo_exec_native(w->exec, &native);
}

static void drop(work *w) {
  rondo_exec_destroy(w->exec);
  w->exec = NULL;
  for (int i = 0; i < 6; i++) {
    assert_ok(rondo_graph_destroy(w->graphs[i]));
    w->graphs[i] = NULL;
  }
}

/* The same calls succeed now. */
static void tear_down(work *w) {
  drop(w);
  if (w->taken == NULL) capture(w, &w->taken);
  assert_ok(do_all(w));
  drop(w);
  assert_int_equal(foreign_graph_destroy(foreign, w->given), 0);
  assert_ok(rondo_free(w->device, w->words));
  rondo_kernel_destroy(w->set);
  rondo_kernel_destroy(w->empty);
  rondo_event_destroy(w->event);
  assert_ok(rondo_device_close(w->other));
  assert_ok(rondo_device_close(w->device));
}

/* Refuses the nth call of `name`, or with NULL fails the nth allocation. Returns false when there are fewer. */
static bool run(const char *name, size_t at) {
  static work w;
  const char *const what = name != NULL ? name : "allocation";
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  fake->forget();
  prepare(&w);
  if (name != NULL)
    fake->fail_call(name, at, UNKNOWN, false);
  else
    atomic_store(&w.allocator.fail_at, atomic_load(&w.allocator.calls) + at);
  const rondo_status status = do_all(&w);
  const int32_t code = rondo_last_error()->driver_code;
  const bool failed = name != NULL ? fake->failed() != NULL : status != RONDO_OK;
  fake->forget();
  atomic_store(&w.allocator.fail_at, 0);
  if (failed && status == RONDO_OK) fail_msg("%s %zu failed, and no error was returned", what, at);
  if (failed && (name != NULL ? code != UNKNOWN : status != RONDO_OUT_OF_MEMORY))
    fail_msg("%s %zu: the status is %s, code %d: %s", what, at, rondo_status_name(status), code,
             rondo_last_error()->message);
  tear_down(&w);
  fault_cuda_assert_clean(&w.allocator, live_before, what, at);
  return failed;
}

static const char *const names[] = {
    "cuGraphClone",
    "cuGraphGetNodes",
    "cuGraphNodeGetType",
    "cuGraphNodeGetDependencies",
    "cuGraphKernelNodeGetParams",
    "cuGraphKernelNodeGetAttribute",
    "cuGraphNodeFindInClone",
    "cuGraphKernelNodeSetParams",
    "cuFuncGetParamInfo",
    "cuFuncGetName",
    "cuGraphMemcpyNodeGetParams",
    "cuGraphMemsetNodeGetParams",
    "cuGraphHostNodeGetParams",
    "cuGraphEventRecordNodeGetEvent",
    "cuGraphCreate",
    "cuGraphAddKernelNode",
    "cuGraphKernelNodeCopyAttributes",
    "cuGraphAddMemsetNode",
    "cuGraphAddMemcpyNode",
    "cuGraphAddHostNode",
    "cuGraphAddEmptyNode",
    "cuGraphAddEventWaitNode",
    "cuGraphAddChildGraphNode",
    "cuGraphAddDependencies",
    "cuGraphInstantiateWithParams",
};

UNIT_TEST(ad2_each_call_of_the_driver_is_refused) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t at = 1;
    while (run(names[i], at)) at++;
    if (at == 1) fail_msg("%s is not called", names[i]);
  }
}

UNIT_TEST(ad2_each_allocation_fails) {
  size_t at = 1;
  while (run(NULL, at)) at++;
  assert_true(at > 100);
}

static int load_driver(void **state) {
  assert_int_equal(fault_cuda_set_up(state), 0);
  foreign = foreign_open();
  assert_non_null(foreign);
  assert_int_equal(foreign_stream_create(foreign, FOREIGN_NON_BLOCKING, &foreign_stream), 0);
  live_before = fake->live(FAKE_CUDA_ANY);
  return 0;
}

static int unload(void **state) {
  (void)state;
  assert_int_equal(foreign_stream_destroy(foreign, foreign_stream), 0);
  foreign_close(foreign);
  return 0;
}

int main(void) { return test_run_registered_in(load_driver, unload); }
