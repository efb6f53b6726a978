/* SPDX-License-Identifier: MIT
 * Execs, events and captures with a driver that records every call: the driver calls of a launch, the state after an
 * update that fails half-way, and when destroyed events are reused.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "exec/launch/exec_check.h"
#include "exec/launch/exec_internal.h"
#include "exec/launch/exec_verify.h"
#include "exec/launch/update_in_place.h"
#include "fault/fake_driver.h"
#include "support/rondo_test.h"

typedef struct rig {
  test_fixture t; /* with a device of the fake driver */
  rondo_kernel *kernel;
} rig;

static int set_up(void **state) {
  static rig self;
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "nothing", .cpu = test_kernel_nothing,
                                        .params = {RONDO_SCALAR(uint32_t)}};
  self = (rig){.t.device = fake_open(NULL)};
  assert_ok(rondo_stream_create(self.t.device, NULL, &self.t.stream));
  assert_ok(rondo_kernel_make(self.t.device, &self.t.device->allocator, &options, &self.kernel));
  *state = &self;
  return 0;
}

static int tear_down(void **state) {
  rig *self = *state;
  fake_of(self->t.device)->fail_at = 0;
  fake_of(self->t.device)->stalled = false;
  const bool clean = test_destroy_left();
  rondo_kernel_release(self->kernel);
  assert_ok(rondo_stream_destroy(self->t.stream));
  return clean && fake_close(self->t.device) == 0 ? 0 : -1;
}

/* A kernel node with one argument, `args[0]`. */
static rondo_node_params params_of(const rig *self, const void *const *args) {
  return (rondo_node_params){.kind = RONDO_NODE_KERNEL,
                             .as.kernel = {.kernel = self->kernel, .grid = {1, 0, 0}, .args = args, .arg_count = 1}};
}

/* A chain of `count` kernels with the values first, first + 1, ... */
static rondo_graph *make_line(rig *self, int count, uint32_t first, rondo_node *nodes) {
  rondo_graph *graph = test_graph(&self->t);
  rondo_node node = {0};
  for (int i = 0; i < count; i++) {
    const uint32_t value = first + (uint32_t)i;
    assert_ok(
        rondo_graph_add_kernel(graph, &node, i > 0, self->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&value), &node));
    if (nodes != NULL) nodes[i] = node;
  }
  return graph;
}

static void assert_values(const rondo_exec *exec, const uint32_t *expected, size_t count) {
  rondo_exec_check(exec);
  const fake_executable *executable = (const fake_executable *)exec->executable;
  for (size_t i = 0; i < count; i++) assert_int_equal(executable->marks[i], expected[i]);
}

#define RIG_TEST(name) TEST_REGISTER(name, rig *self, set_up, tear_down, false)

/* GX-4: a launch without memory or events is one call of the driver. */
RIG_TEST(test_gx4_a_launch_is_one_call) {
  rondo_graph *graph = make_line(self, 5, 1, NULL);
  rondo_exec *exec = test_instantiate(graph);
  const size_t calls = fake_of(self->t.device)->calls;
  for (int i = 0; i < 10; i++) assert_ok(rondo_exec_launch(exec, self->t.stream));
  assert_int_equal(fake_of(self->t.device)->calls, calls + 10);
}

/* GX-9: a synchronous device waits for every operation. */
RIG_TEST(test_gx9_synchronous_devices_wait) {
  rondo_stream *waiting = NULL;
  self->t.device->synchronous = true;
  assert_ok(rondo_stream_create(self->t.device, NULL, &waiting));
  const size_t calls = fake_of(self->t.device)->calls;
  assert_ok(rondo_host_async(waiting, test_host_nothing, NULL));
  assert_int_equal(fake_of(self->t.device)->calls, calls + 2);
  fake_of(self->t.device)->fail_at = calls + 4;
  assert_fails(rondo_host_async(waiting, test_host_nothing, NULL), RONDO_OUT_OF_MEMORY);
  assert_message("rondo_host_async");
  assert_message("RONDO_SYNC");
  assert_ok(rondo_stream_destroy(waiting));
}

/* U3: an update that the driver refuses halfway is undone. */
RIG_TEST(test_gx5_a_broken_off_update_is_taken_back) {
  const uint32_t before[4] = {10, 11, 12, 13}, after[4] = {20, 21, 22, 23};
  rondo_graph *old = make_line(self, 4, 10, NULL), *fresh = make_line(self, 4, 20, NULL);
  rondo_exec *exec = test_instantiate(old);
  fake_of(self->t.device)->fail_at = fake_of(self->t.device)->calls + 3;
  assert_fails(rondo_exec_update(exec, fresh, NULL), RONDO_OUT_OF_MEMORY);
  assert_values(exec, before, 4);
  assert_ok(rondo_exec_launch(exec, self->t.stream));
  assert_ok(rondo_exec_update(exec, fresh, NULL));
  assert_values(exec, after, 4);
}

/* If undoing fails too, the exec refuses to run until an update succeeds. */
RIG_TEST(test_gx5_an_exec_never_runs_half_an_update) {
  const uint32_t after[4] = {20, 21, 22, 23};
  rondo_node nodes[4];
  rondo_graph *old = make_line(self, 4, 10, nodes), *fresh = make_line(self, 4, 20, NULL);
  rondo_exec *exec = test_instantiate(old);
  fake_of(self->t.device)->fail_at = fake_of(self->t.device)->calls + 3;
  fake_of(self->t.device)->fail_rest = true;
  assert_fails(rondo_exec_update(exec, fresh, NULL), RONDO_OUT_OF_MEMORY);
  fake_of(self->t.device)->fail_at = 0;
  assert_error(rondo_exec_launch(exec, self->t.stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_UPDATABLE);
  assert_ok(rondo_exec_update(exec, fresh, NULL));
  assert_values(exec, after, 4);
  assert_ok(rondo_exec_launch(exec, self->t.stream));
  rondo_exec_info info = test_exec_info(exec);
  assert_true(info.launches == 1 && info.updates == 1);
  const uint32_t value = 77;
  const rondo_node_params params = params_of(self, (const void *[]){&value});
  assert_ok(rondo_exec_set_params(exec, nodes[2], &params)); /* tags stay those of the first graph */
  assert_int_equal(((fake_executable *)exec->executable)->marks[2], 77);
}

static bool fits(const rondo_exec *exec, const rondo_graph *graph, size_t *out_changes) {
  rondo_node_change changes[4];
  return rondo_exec_fits(exec, graph, changes, out_changes);
}

/* U3: the same for updates in place with verified graphs. The driver refuses each call in turn, and then also the calls
 * that would undo the update. */
RIG_TEST(test_gx5_an_update_in_place_is_whole) {
  fake_device *driver = fake_of(self->t.device);
  const uint32_t before[4] = {10, 11, 12, 13}, after[4] = {20, 21, 22, 23};
  rondo_graph *old = make_line(self, 4, 10, NULL), *fresh = make_line(self, 4, 20, NULL);
  size_t changes;
  rondo_exec *exec = test_instantiate(old);
  (void)test_instantiate(fresh); /* verifies it */
  assert_true(fits(exec, old, &changes));
  assert_int_equal(changes, 0);
  for (size_t i = 1; i <= 4; i++) {
    assert_true(fits(exec, fresh, &changes));
    assert_int_equal(changes, 4);
    driver->fail_at = driver->calls + i;
    assert_fails(rondo_exec_update(exec, fresh, NULL), RONDO_OUT_OF_MEMORY);
    assert_values(exec, before, 4);
    assert_ok(rondo_exec_launch(exec, self->t.stream));
  }
  driver->fail_at = driver->calls + 3;
  driver->fail_rest = true;
  assert_fails(rondo_exec_update(exec, fresh, NULL), RONDO_OUT_OF_MEMORY);
  driver->fail_at = 0;
  driver->fail_rest = false;
  assert_error(rondo_exec_launch(exec, self->t.stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_UPDATABLE);
  assert_ok(rondo_exec_update(exec, fresh, NULL));
  assert_values(exec, after, 4);
  assert_true(fits(exec, old, &changes));
  assert_ok(rondo_exec_update(exec, old, NULL));
  assert_values(exec, before, 4);
  assert_true(fits(exec, fresh, &changes));
}

/* One of many nodes differs. The driver gets only that one. */
RIG_TEST(test_gx5_an_update_gives_what_differs) {
  const uint32_t value = 99, after[4] = {10, 11, 99, 13};
  rondo_node nodes[4];
  rondo_graph *old = make_line(self, 4, 10, NULL), *fresh = make_line(self, 4, 10, nodes);
  const rondo_node_params params = params_of(self, (const void *[]){&value});
  rondo_node_change changes[4];
  size_t count;
  assert_ok(rondo_graph_set_params(fresh, nodes[2], &params));
  rondo_exec *exec = test_instantiate(old);
  for (int known = 0; known < 2; known++) {
    if (known) (void)test_instantiate(fresh); /* verifies it */
    assert_true(rondo_exec_fits(exec, fresh, changes, &count) == (known == 1));
    if (known) assert_true(count == 1 && changes[0].index == 2);
    const size_t calls = fake_of(self->t.device)->calls;
    assert_ok(rondo_exec_update(exec, fresh, NULL));
    assert_int_equal(fake_of(self->t.device)->calls, calls + 1);
    assert_values(exec, after, 4);
    assert_ok(rondo_exec_update(exec, old, NULL));
    if (!known) assert_ok(rondo_graph_set_params(fresh, nodes[2], &params)); /* now it must be verified again */
  }
}

static void assert_known_again(rig *self, rondo_graph *graph) {
  assert_false(rondo_exec_is_verified(graph));
  rondo_exec *exec = test_instantiate(graph);
  assert_true(rondo_exec_is_verified(graph));
  assert_ok(rondo_exec_launch(exec, self->t.stream));
}

/* A graph counts as verified until it or the device's allocations change. */
RIG_TEST(test_gx5_what_is_known_of_a_graph_ends_with_a_change) {
  rondo_node nodes[4], more;
  rondo_graph *graph = make_line(self, 4, 10, nodes), *child = make_line(self, 2, 1, NULL);
  const uint32_t value = 77;
  const rondo_node_params params = params_of(self, (const void *[]){&value});
  rondo_node_params child_params = {.kind = RONDO_NODE_CHILD};
  void *address = NULL;
  assert_known_again(self, graph);
  assert_ok(rondo_graph_set_params(graph, nodes[1], &params));
  assert_known_again(self, graph);
  assert_ok(rondo_graph_add_edges(graph, &nodes[0], &nodes[2], 1));
  assert_known_again(self, graph);
  assert_ok(rondo_graph_remove_edges(graph, &nodes[0], &nodes[2], 1));
  assert_known_again(self, graph);
  assert_ok(rondo_graph_remove(graph, nodes[3]));
  assert_known_again(self, graph);
  assert_ok(rondo_graph_add_child(graph, &nodes[2], 1, child, &more));
  assert_known_again(self, graph);
  assert_ok(rondo_graph_get_params(graph, more, &child_params));
  assert_ok(rondo_graph_add_empty(child_params.as.child, NULL, 0, &more));
  assert_known_again(self, graph);
  assert_ok(rondo_host_malloc(self->t.device, 64, &address));
  assert_known_again(self, graph);
  assert_ok(rondo_host_free(self->t.device, address));
  assert_known_again(self, graph);
}

/* GX-9: destroyed events are reused once they are complete. Creating an event queries them. */
RIG_TEST(test_gx9_events_come_back_when_complete) {
  rondo_event *first = NULL, *second = NULL, *third = NULL, *timed = NULL;
  assert_ok(rondo_event_create(self->t.device, NULL, &first));
  fake_of(self->t.device)->stalled = true;
  assert_ok(rondo_event_record(first, self->t.stream));
  rondo_event_destroy(first);
  assert_ok(rondo_event_create(self->t.device, NULL, &second));
  assert_ptr_not_equal(second, first);
  assert_int_equal(self->t.device->events_reused, 0);
  fake_of(self->t.device)->stalled = false;
  assert_ok(rondo_event_create(self->t.device, &(rondo_event_options){.timing = true}, &timed));
  assert_ptr_not_equal(timed, first);
  assert_ok(rondo_event_create(self->t.device, NULL, &third));
  assert_ptr_equal(third, first);
  assert_true(self->t.device->events_created == 3 && self->t.device->events_reused == 1);
  double microseconds;
  assert_error(rondo_event_elapsed(timed, timed, &microseconds), RONDO_INVALID_STATE, RONDO_REASON_EVENT_NOT_RECORDED);
  rondo_event_destroy(second);
  rondo_event_destroy(third);
  rondo_event_destroy(timed);
}

/* The frontier from rondo_capture_get_info can be passed to rondo_capture_set_frontier, also while it grows. */
RIG_TEST(test_c13_a_lent_frontier_comes_back) {
  assert_ok(rondo_capture_begin(self->t.stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_host_async(self->t.stream, test_host_nothing, NULL));
  rondo_capture_info info = test_capture_info(self->t.stream);
  for (int i = 0; i < 10; i++) {
    rondo_node node = {0};
    assert_ok(rondo_graph_add_empty(info.graph, NULL, 0, &node));
    assert_ok(rondo_capture_set_frontier(self->t.stream, &node, 1, false));
    info = test_capture_info(self->t.stream);
    assert_int_equal(info.frontier_count, i + 2);
    assert_ok(rondo_capture_set_frontier(self->t.stream, info.frontier, info.frontier_count, i % 2 == 0));
    info = test_capture_info(self->t.stream);
    assert_int_equal(info.frontier_count, i + 2);
  }
  (void)test_capture_end(self->t.stream);
}

static void note_release(void *released) { *(bool *)released = true; }

/* An exec whose graph retains an object that sets *released. */
static rondo_exec *make_retaining(rig *self, bool *released) {
  rondo_user_object *object;
  rondo_graph *graph = make_line(self, 1, 1, NULL);
  *released = false;
  assert_ok(rondo_user_object_create(released, note_release, 1, NULL, &object));
  assert_ok(rondo_graph_retain_object(graph, object, 1, true));
  return test_exec_of(graph);
}

/* AD-8: waiting for a new stream at the address of a destroyed one says nothing of launches on that one, if their end
 * could not be awaited when it was destroyed. This driver never waits there. */
RIG_TEST(test_ad8_streams_are_not_known_by_their_address) {
  enum { TRIES = 16 };
  bool released;
  rondo_stream *old, *fresh[TRIES];
  rondo_exec *exec = make_retaining(self, &released);
  fake_of(self->t.device)->stalled = true;
  assert_ok(rondo_stream_create(self->t.device, NULL, &old));
  assert_ok(rondo_exec_launch(exec, old));
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_destroy(old));
  for (int i = 0; i < TRIES; i++) { /* one of them is where the old one was, unless a sanitizer prevents that */
    assert_ok(rondo_stream_create(self->t.device, NULL, &fresh[i]));
    assert_ok(rondo_stream_synchronize(fresh[i]));
    assert_false(released);
  }
  for (int i = 0; i < TRIES; i++) assert_ok(rondo_stream_destroy(fresh[i]));
  fake_of(self->t.device)->stalled = false;
  assert_ok(rondo_stream_synchronize(self->t.stream));
  assert_true(released);
}

/* Likewise, a launch comes after those on streams that are gone. */
RIG_TEST(test_gm_launches_follow_those_of_destroyed_streams) {
  enum { TRIES = 16 };
  rondo_graph *graph = test_graph(&self->t);
  rondo_stream *streams[TRIES];
  rondo_node node;
  void *memory;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, FAKE_PAGE, NULL, &memory, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, memory, &node));
  rondo_exec *exec = test_instantiate(graph);
  fake_of(self->t.device)->stalled = true;
  for (int i = 0; i < TRIES; i++) { /* each gets the heap of the one before */
    const size_t waits = fake_of(self->t.device)->waits;
    assert_ok(rondo_stream_create(self->t.device, NULL, &streams[i]));
    assert_ok(rondo_exec_launch(exec, streams[i]));
    assert_int_equal(fake_of(self->t.device)->waits, waits + (i > 0));
    assert_ok(rondo_stream_destroy(streams[i]));
  }
}

/* AD-8: objects stay while waiting for their launches fails. */
RIG_TEST(test_ad8_failed_waits_release_nothing) {
  bool released;
  rondo_exec *exec = make_retaining(self, &released);
  fake_of(self->t.device)->stalled = true;
  assert_ok(rondo_exec_launch(exec, self->t.stream));
  rondo_exec_destroy(exec);
  for (int i = 0; i < 3; i++) {
    fake_of(self->t.device)->fail_at = fake_of(self->t.device)->calls + 1;
    assert_fails(i == 1 ? rondo_device_synchronize(self->t.device) : rondo_stream_synchronize(self->t.stream),
                 RONDO_OUT_OF_MEMORY);
    assert_false(released);
  }
  assert_ok(rondo_stream_synchronize(self->t.stream));
  assert_true(released);
}

/* AD-8: nor does a mark that could not be recorded. */
RIG_TEST(test_ad8_launches_without_a_mark_are_waited_for) {
  bool released;
  rondo_exec *exec = make_retaining(self, &released);
  assert_ok(rondo_exec_launch(exec, self->t.stream));
  fake_of(self->t.device)->fail_at = fake_of(self->t.device)->calls + 1;
  rondo_exec_destroy(exec);
  rondo_exec_destroy(test_exec_of(make_line(self, 1, 1, NULL)));
  assert_false(released);
  assert_ok(rondo_stream_synchronize(self->t.stream));
  assert_true(released);
}

/* Destroying a stream during its capture makes the capture invalid and leaks nothing. */
RIG_TEST(test_streams_destroyed_while_capturing) {
  rondo_stream *origin = NULL, *member = NULL;
  rondo_event *event = NULL;
  rondo_graph *graph = NULL;
  assert_ok(rondo_event_create(self->t.device, NULL, &event));
  for (int who = 0; who < 2; who++) {
    assert_ok(rondo_stream_create(self->t.device, &(rondo_stream_options){.name = "origin"}, &origin));
    assert_ok(rondo_stream_create(self->t.device, &(rondo_stream_options){.name = "member"}, &member));
    assert_ok(rondo_capture_begin(origin, RONDO_CAPTURE_GLOBAL));
    assert_ok(rondo_host_async(origin, test_host_nothing, NULL));
    assert_ok(rondo_event_record(event, origin));
    assert_ok(rondo_stream_wait_event(member, event));
    if (who == 0) {
      assert_ok(rondo_stream_destroy(member));
      assert_error(rondo_host_async(origin, test_host_nothing, NULL), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
      assert_message("member");
      assert_error(rondo_capture_end(origin, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
      assert_ok(rondo_stream_destroy(origin));
    } else {
      assert_ok(rondo_stream_destroy(origin));
      assert_error(rondo_host_async(member, test_host_nothing, NULL), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
      assert_message("origin");
      assert_error(rondo_capture_end(member, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
      assert_ok(rondo_host_async(member, test_host_nothing, NULL)); /* the capture has ended: it runs */
      assert_ok(rondo_stream_destroy(member));
    }
    assert_int_equal(rondo_capture_count, 0);
    assert_error(rondo_event_query(event), RONDO_CAPTURE_REFUSED, RONDO_REASON_CAPTURED_EVENT);
  }
  rondo_event_destroy(event);
}
