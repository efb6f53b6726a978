/* SPDX-License-Identifier: MIT
 * Host memory that runs out: each allocation of a run through the library fails once. Every call that needs it returns
 * OUT_OF_MEMORY, sets its out-parameter to NULL, and leaks nothing; what existed still works.
 */
#include "support/rondo_test.h"

#include <string.h>

#include "support/test_effort.h"

/* Everything that the run creates, so that it can be destroyed after a failure at any point. */
typedef struct objects {
  rondo_device *device;
  rondo_stream *stream, *side;
  rondo_event *event;
  rondo_kernel *kernel;
  rondo_graph *built, *inner, *captured, *clone;
  rondo_exec *exec, *captured_exec;
  void *memory, *ordered;
  char *text;

  rondo_error error; /* of the first failure in the capture; its status is OK when there was none */
} objects;

static rondo_status open_all(objects *o, const test_allocator *allocator) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator->table};
  TRY(rondo_device_open(test_device_name(), &options, &o->device));
  TRY(rondo_stream_create(o->device, &(rondo_stream_options){.name = "main"}, &o->stream));
  TRY(rondo_stream_create(o->device, NULL, &o->side));
  TRY(rondo_event_create(o->device, NULL, &o->event));
  TRY(rondo_kernel_create(o->device, test_kernel_options(TEST_KERNEL_AFFINE), &o->kernel));
  TRY(rondo_malloc(o->device, 4096, "memory", &o->memory));
  return rondo_malloc_async(o->stream, 4096, NULL, &o->ordered);
}

static rondo_status build_all(objects *o) {
  const uint32_t one = 1;
  void *scratch = NULL;
  rondo_node node = {0};
  TRY(rondo_graph_create(o->device, &(rondo_graph_options){.name = "built"}, &o->built));
  TRY(rondo_graph_create(o->device, NULL, &o->inner));
  TRY(rondo_graph_add_kernel(o->inner, NULL, 0, o->kernel, (rondo_grid){8, 0, 0}, RONDO_ARGS(&one, &one, &o->memory),
                             &node));
  TRY(rondo_graph_add_alloc(o->built, NULL, 0, 4096, "scratch", &scratch, &node));
  const rondo_fill fill = {.dst = scratch, .value = 1, .element_bytes = 4, .width = 16};
  TRY(rondo_graph_add_fill(o->built, &node, 1, &fill, &node));
  TRY(rondo_graph_add_child(o->built, &node, 1, o->inner, &node));
  TRY(rondo_graph_add_event_record(o->built, &node, 1, o->event, &node));
  TRY(rondo_graph_add_free(o->built, &node, 1, scratch, &node));
  TRY(rondo_graph_clone(o->built, &o->clone));
  TRY(rondo_graph_to_json(o->built, true, &o->text));
  return rondo_instantiate(o->built, NULL, &o->exec);
}

static rondo_status capture_work(objects *o) {
  const uint32_t one = 1;
  void *scratch = NULL;
  TRY(rondo_malloc_async(o->stream, 4096, NULL, &scratch));
  TRY(rondo_launch(o->stream, o->kernel, (rondo_grid){8, 0, 0}, RONDO_ARGS(&one, &one, &o->memory)));
  TRY(rondo_event_record(o->event, o->stream));
  TRY(rondo_stream_wait_event(o->side, o->event));
  TRY(rondo_launch(o->side, o->kernel, (rondo_grid){8, 0, 0}, RONDO_ARGS(&one, &one, &o->memory)));
  TRY(rondo_event_record(o->event, o->side));
  TRY(rondo_stream_wait_event(o->stream, o->event));
  TRY(rondo_exec_launch(o->exec, o->stream));
  return rondo_free_async(o->stream, scratch);
}

static rondo_status capture_all(objects *o) {
  TRY(rondo_capture_begin(o->stream, RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status recorded = capture_work(o);
  if (recorded != RONDO_OK) o->error = *rondo_last_error(); /* ending may fail too, where a driver captures */
  const rondo_status ended = rondo_capture_end(o->stream, &o->captured);
  TRY(recorded);
  TRY(ended);
  return rondo_instantiate(o->captured, NULL, &o->captured_exec);
}

static rondo_status run_all(objects *o) {
  const uint32_t one = 1, *apart = (const uint32_t *)o->memory + 64; /* from what the execs write meanwhile */
  for (int i = 0; i < 3; i++) {
    TRY(rondo_exec_launch(o->exec, o->stream));
    TRY(rondo_launch(o->side, o->kernel, (rondo_grid){8, 0, 0}, RONDO_ARGS(&one, &one, &apart)));
    TRY(rondo_stream_synchronize(o->stream));
    TRY(rondo_exec_launch(o->captured_exec, o->stream));
    TRY(rondo_stream_synchronize(o->side));
    TRY(rondo_exec_update(o->exec, o->clone, NULL));
  }
  TRY(rondo_free_async(o->stream, o->ordered));
  o->ordered = NULL;
  return rondo_device_synchronize(o->device);
}

/* A capture whose end ran out of memory continues: it is ended now. */
static void end_capture(objects *o) {
  rondo_graph *graph = NULL;
  if (test_capture_info(o->stream).state == RONDO_CAPTURE_NONE) return;
  const rondo_status ended = rondo_capture_end(o->stream, &graph);
  assert_true(ended != RONDO_OUT_OF_MEMORY);
  assert_ok(rondo_graph_destroy(graph));
}

static void tear_down(objects *o) {
  if (o->stream != NULL) end_capture(o);
  rondo_text_free(o->text);
  rondo_exec_destroy(o->exec);
  rondo_exec_destroy(o->captured_exec);
  assert_ok(rondo_graph_destroy(o->built));
  assert_ok(rondo_graph_destroy(o->inner));
  assert_ok(rondo_graph_destroy(o->captured));
  assert_ok(rondo_graph_destroy(o->clone));
  if (o->stream != NULL) assert_ok(rondo_stream_synchronize(o->stream));
  if (o->side != NULL) assert_ok(rondo_stream_synchronize(o->side));
  if (o->ordered != NULL) assert_ok(rondo_free(o->device, o->ordered));
  if (o->memory != NULL) assert_ok(rondo_free(o->device, o->memory));
  rondo_event_destroy(o->event);
  rondo_kernel_destroy(o->kernel);
  assert_ok(rondo_stream_destroy(o->stream));
  assert_ok(rondo_stream_destroy(o->side));
  assert_ok(rondo_device_close(o->device));
}

static rondo_status run_with(test_allocator *allocator) {
  objects o = {.device = NULL};
  rondo_status status = open_all(&o, allocator);
  if (status == RONDO_OK) status = build_all(&o);
  if (status == RONDO_OK) status = capture_all(&o);
  if (status == RONDO_OK) status = run_all(&o);
  const rondo_error error = o.error.status != RONDO_OK ? o.error : *rondo_last_error();
  if (status != RONDO_OK) assert_true(error.status == status && strlen(error.message) > 0);
  /* As a user would after the peak is over: memory can be had again. */
  atomic_store(&allocator->fail_at, 0);
  tear_down(&o);
  assert_int_equal(atomic_load(&allocator->live), 0);
  assert_int_equal(atomic_load(&allocator->faults), 0);
  return status;
}

static void fail_each_allocation(bool with_later_ones) {
  test_allocator allocator;
  test_allocator_init(&allocator);
  assert_ok(run_with(&allocator));
  const size_t calls = atomic_load(&allocator.calls);
  assert_true(calls > 20);
  const size_t step = test_is_serial() ? test_failure_step() : 1;
  size_t tried = 0, failures = 0;
  for (size_t at = 1; at <= calls; at += step) {
    tried++;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_on, with_later_ones);
    atomic_store(&allocator.fail_at, at);
    const rondo_status status = run_with(&allocator);
    if (status == RONDO_OK) continue; /* the allocation was not essential */
    failures++;
    if (status == RONDO_CAPTURE_INVALID) continue; /* ended a capture in which memory ran out */
    assert_int_equal(status, RONDO_OUT_OF_MEMORY);
  }
  assert_true(failures > tried / 2);
}

TEST(test_each_allocation_may_fail_alone) { fail_each_allocation(false); }

TEST(test_each_allocation_may_fail_with_all_later_ones) { fail_each_allocation(true); }

/* The library takes memory from the device's allocator only, and gives all of it back. */
TEST(test_the_allocator_is_used_and_emptied) {
  test_allocator allocator;
  test_allocator_init(&allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  rondo_device *device = NULL;
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_device_open(test_device_name(), &options, &device));
  assert_true(atomic_load(&allocator.live) > 0);
  assert_ok(rondo_device_get_statistics(device, &statistics));
  assert_true(statistics.host_allocations > 0 && statistics.host_allocations <= atomic_load(&allocator.calls));
  assert_ok(rondo_device_close(device));
  assert_true(test_allocator_is_clean(&allocator));
}

/* A graph of data takes the allocator of its options. */
TEST(test_a_graph_of_data_uses_its_allocator) {
  test_allocator allocator;
  test_allocator_init(&allocator);
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .allocator = &allocator.table, .name = "data"};
  rondo_graph *graph = NULL, *clone = NULL;
  rondo_node node = {0};
  assert_ok(rondo_graph_create(NULL, &options, &graph));
  for (int i = 0; i < 100; i++) assert_ok(rondo_graph_add_empty(graph, &node, i > 0, &node));
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_true(atomic_load(&allocator.live) > 0);
  test_graph_destroy(graph);
  test_graph_destroy(clone);
  assert_true(test_allocator_is_clean(&allocator));
}

TEST(test_half_an_allocator_is_refused) {
  test_allocator allocator;
  test_allocator_init(&allocator);
  rondo_allocator half = allocator.table;
  half.release = NULL;
  rondo_device *device = (rondo_device *)&half;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &half};
  assert_fails(rondo_device_open(test_device_name(), &options, &device), RONDO_INVALID_ARGUMENT);
  assert_null(device);
}
