/* SPDX-License-Identifier: MIT
 * Lets every driver call of a launch with moved inputs fail, once or from then on, and every allocation of creating a
 * patch set. A launch that fails leaves all inputs at their old addresses, in every node that reads them, also when the
 * driver does not undo an update. If a set cannot be created, the previous one stays.
 */
#include "fault/fault_cuda.h"

enum { WORDS = 16, READERS = 3, OUTPUTS = READERS + 2 };

/* Two inputs: one that kernels read, and one that a copy reads and a fill writes. */
typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *combine;
  uint32_t *read[2], *copied[2], *out;
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_patch_set *set;
} rig;

static uint32_t *make_words(const rig *r, uint32_t first) {
  uint32_t values[WORDS], *words = NULL;
  for (uint32_t i = 0; i < WORDS; i++) values[i] = first + i;
  assert_ok(rondo_malloc(r->device, sizeof values, NULL, (void **)&words));
  assert_ok(rondo_copy_async(r->stream, words, values, sizeof values));
  assert_ok(rondo_stream_synchronize(r->stream));
  return words;
}

static void build(rig *r) {
  rondo_node node;
  assert_ok(rondo_graph_create(r->device, NULL, &r->graph));
  for (uint32_t i = 0; i < READERS; i++) {
    const uint32_t *a = r->read[0] + i, *b = r->read[0];
    uint32_t *out = r->out + i;
    assert_ok(
        rondo_graph_add_kernel(r->graph, NULL, 0, r->combine, (rondo_grid){1, 1, 1}, RONDO_ARGS(&a, &b, &out), &node));
  }
  const rondo_fill fill = {.dst = r->copied[0] + 1, .value = 77, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(r->graph, NULL, 0, &fill, &node));
  const rondo_copy copy = {.dst = r->out + READERS, .src = r->copied[0], .width = 8};
  assert_ok(rondo_graph_add_copy(r->graph, &node, 1, &copy, &node));
  assert_ok(rondo_instantiate(r->graph, NULL, &r->exec));
}

static rondo_status make_set(const rig *r, rondo_patch_set **out) {
  const rondo_patch_input inputs[] = {{.name = "read", .address = r->read[0], .bytes = WORDS * 4},
                                      {.name = "copied", .address = r->copied[0], .bytes = WORDS * 4}};
  return rondo_patch_set_create(r->exec, inputs, 2, NULL, out);
}

static void set_up(rig *r) {
  *r = (rig){.device = NULL};
  test_allocator_init(&r->allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &r->allocator.table};
  fake->forget();
  assert_ok(rondo_device_open("cuda:0", &options, &r->device));
  assert_ok(rondo_stream_create(r->device, NULL, &r->stream));
  assert_ok(rondo_kernel_create(r->device, test_kernel_options(TEST_KERNEL_COMBINE), &r->combine));
  for (uint32_t i = 0; i < 2; i++) r->read[i] = make_words(r, 1000 * i), r->copied[i] = make_words(r, 5000 + 1000 * i);
  r->out = make_words(r, 0);
  build(r);
  assert_ok(make_set(r, &r->set));
}

static void tear_down(rig *r) {
  rondo_patch_set_destroy(r->set);
  rondo_exec_destroy(r->exec);
  assert_ok(rondo_graph_destroy(r->graph));
  rondo_kernel_destroy(r->combine);
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_free(r->device, r->read[i]));
    assert_ok(rondo_free(r->device, r->copied[i]));
  }
  assert_ok(rondo_free(r->device, r->out));
  assert_ok(rondo_stream_destroy(r->stream));
  assert_ok(rondo_device_close(r->device));
  assert_int_equal(atomic_load(&r->allocator.live), 0);
  char text[1024];
  fake->list_violations(text, sizeof text);
  if (fake->violations() > 0) fail_msg("misuse: %s", text);
  assert_int_equal(fake->live(FAKE_CUDA_ANY), 0);
}

/* The last launch read its inputs at location `at`. */
static void assert_read_at(const rig *r, uint32_t at) {
  uint32_t out[OUTPUTS];
  assert_ok(rondo_copy_async(r->stream, out, r->out, sizeof out));
  assert_ok(rondo_stream_synchronize(r->stream));
  for (uint32_t i = 0; i < READERS; i++) assert_int_equal(out[i], (1000 * at + i) * 31 + 1000 * at);
  assert_int_equal(out[READERS], 5000 + 1000 * at);
  assert_int_equal(out[READERS + 1], 77);
}

static rondo_status launch_at(const rig *r, uint32_t at) {
  const void *const addresses[] = {r->read[at], r->copied[at]};
  return rondo_patch_set_launch(r->set, r->stream, addresses);
}

/* Launches once with the nth call failing. Returns false when the launch makes fewer calls. */
static bool fail_launch(uint64_t nth, unsigned code, bool onward, size_t *failures) {
  static rig r;
  set_up(&r);
  assert_ok(launch_at(&r, 0));
  assert_read_at(&r, 0);
  fake->forget();
  fake->fail_call(NULL, nth, code, onward);
  const rondo_status status = launch_at(&r, 1);
  const bool failed = fake->failed() != NULL;
  fake->fail_call(NULL, 0, 0, false);
  if (status != RONDO_OK) {
    ++*failures;
    assert_true(rondo_last_error()->message[0] != '\0');
    assert_ok(rondo_exec_launch(r.exec, r.stream)); /* as if nothing had been tried */
    assert_read_at(&r, 0);
    assert_ok(launch_at(&r, 1));
  }
  assert_read_at(&r, 1);
  assert_ok(launch_at(&r, 0));
  assert_read_at(&r, 0);
  tear_down(&r);
  return failed;
}

static void sweep(unsigned code, bool onward, size_t least_failures) {
  size_t failures = 0;
  uint64_t nth = 1;
  while (fail_launch(nth, code, onward, &failures)) nth++;
  assert_true(nth > READERS + 2); /* each reader needs a separate call */
  assert_true(failures >= least_failures);
}

FAULT_CUDA_TEST(test_each_call_of_a_launch_is_refused) { sweep(REFUSED, false, READERS); }

FAULT_CUDA_TEST(test_calls_of_a_launch_are_refused_from_some_on) { sweep(REFUSED, true, READERS + 2); }

FAULT_CUDA_TEST(test_each_call_of_a_launch_runs_out_of_memory) { sweep(NO_MEMORY, false, READERS); }

FAULT_CUDA_TEST(test_calls_of_a_launch_run_out_of_memory_from_some_on) { sweep(NO_MEMORY, true, READERS + 2); }

/* When the input of a copy moves to another kind of memory, the exec is instantiated again, which may fail in the next
 * launch. */
FAULT_CUDA_TEST(test_a_launch_of_a_recreated_exec_is_refused) {
  static rig r;
  rondo_patch_set *set;
  rondo_graph *graph;
  rondo_node node;
  uint32_t *on_host, out[8];
  set_up(&r);
  assert_ok(rondo_host_malloc(r.device, WORDS * 4, (void **)&on_host));
  for (uint32_t i = 0; i < WORDS; i++) on_host[i] = 9000 + i;
  assert_ok(rondo_graph_create(r.device, NULL, &graph));
  for (uint32_t i = 0; i < 2; i++) {
    const rondo_copy copy = {.dst = r.out + 4 * i, .src = r.copied[0] + 4 * i, .width = 16};
    assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  }
  rondo_exec *exec = test_instantiate(graph);
  const rondo_patch_input input = {.name = "copied", .address = r.copied[0], .bytes = WORDS * 4};
  assert_ok(rondo_patch_set_create(exec, &input, 1, NULL, &set));
  const void *const addresses[] = {on_host};
  fake->fail_call("cuGraphLaunch", 1, REFUSED, false);
  assert_true(rondo_patch_set_launch(set, r.stream, addresses) != RONDO_OK);
  assert_non_null(fake->failed());
  fake->fail_call(NULL, 0, 0, false);
  assert_ok(rondo_exec_launch(exec, r.stream)); /* as if nothing had been tried */
  assert_ok(rondo_copy_async(r.stream, out, r.out, sizeof out));
  assert_ok(rondo_stream_synchronize(r.stream));
  for (uint32_t i = 0; i < 8; i++) assert_int_equal(out[i], 5000 + i);
  rondo_patch_set_destroy(set);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_host_free(r.device, on_host));
  tear_down(&r);
}

FAULT_CUDA_TEST(test_each_allocation_of_a_set_fails) {
  static rig r;
  rondo_patch_set *other = NULL;
  size_t at = 0;
  set_up(&r);
  while (other == NULL) {
    r.allocator.fail_at = r.allocator.calls + ++at;
    const rondo_status status = make_set(&r, &other);
    r.allocator.fail_at = 0;
    assert_true(status == RONDO_OK ? other != NULL : status == RONDO_OUT_OF_MEMORY && other == NULL);
    if (other != NULL) break;
    assert_ok(launch_at(&r, 1)); /* the previous set is still the current one */
    assert_read_at(&r, 1);
    assert_ok(launch_at(&r, 0));
  }
  rondo_patch_set_destroy(other);
  assert_true(at > 6);
  tear_down(&r);
}
