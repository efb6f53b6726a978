/* SPDX-License-Identifier: MIT
 * AD-8: Lets every call of the CUDA driver and every host allocation fail while execs that retain user objects are
 * launched, updated and destroyed, and while streams and the device are waited for; also allocations on a CPU device.
 * Every object is released once, on the thread of the program, and after the last launch that uses it.
 */
#include <pthread.h>

#include "fault/fault_cuda_sweep.h"

enum { THINGS = 3 };

/* What an object stands for. */
typedef struct thing {
  bool is_retained;
  atomic_uint released, runs, late; /* late: uses after the release */
} thing;

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_stream *stream, *other;
  rondo_graph *graphs[THINGS];
  rondo_exec *execs[THINGS];
  thing things[THINGS];
  pthread_t thread;
  bool is_elsewhere; /* an object was released on another thread */
} work;

static void release_thing(void *user) {
  atomic_fetch_add(&((thing *)user)->released, 1);
  work.is_elsewhere |= !pthread_equal(work.thread, pthread_self());
}

static rondo_status use_thing(void *user) {
  thing *it = user;
  atomic_fetch_add(&it->runs, 1);
  if (atomic_load(&it->released) > 0) atomic_fetch_add(&it->late, 1);
  return RONDO_OK;
}

static rondo_status retain(rondo_graph *graph, thing *it) {
  rondo_user_object *object;
  TRY(rondo_user_object_create(it, release_thing, 1, &allocator.table, &object));
  it->is_retained = true;
  const rondo_status status = rondo_graph_retain_object(graph, object, 1, true);
  if (status != RONDO_OK) assert_ok(rondo_user_object_release(object, 1));
  return status;
}

static rondo_status make_graph(int i) {
  rondo_node node;
  TRY(rondo_graph_create(work.device, NULL, &work.graphs[i]));
  TRY(retain(work.graphs[i], &work.things[i]));
  TRY(rondo_graph_add_host(work.graphs[i], NULL, 0, use_thing, &work.things[i], &node));
  return rondo_instantiate(work.graphs[i], NULL, &work.execs[i]);
}

static rondo_status make(const char *name) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  TRY(rondo_device_open(name, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_stream_create(work.device, NULL, &work.other));
  for (int i = 0; i < THINGS; i++) TRY(make_graph(i));
  return RONDO_OK;
}

/* The exec no longer exists while its last launch runs. */
static void drop(int i) {
  rondo_exec_destroy(work.execs[i]);
  work.execs[i] = NULL;
  rondo_graph *graph = work.graphs[i];
  work.graphs[i] = NULL;
  assert_ok(rondo_graph_destroy(graph));
}

static rondo_status run(const char *name) {
  memset(&work, 0, sizeof work);
  work.thread = pthread_self();
  TRY(make(name));
  TRY(rondo_exec_launch(work.execs[0], work.stream));
  drop(0);
  TRY(rondo_stream_synchronize(work.stream)); /* the launch is known to be over by its stream, */
  TRY(rondo_exec_launch(work.execs[1], work.stream));
  TRY(rondo_exec_launch(work.execs[1], work.other));
  TRY(rondo_exec_update(work.execs[1], work.graphs[2], NULL)); /* leaves the second object to the launches, */
  TRY(rondo_stream_synchronize(work.stream));                  /* one of which is on a stream that nobody waits for, */
  TRY(rondo_exec_launch(work.execs[1], work.other));
  drop(1);
  TRY(rondo_device_synchronize(work.device)); /* or by the device, */
  TRY(rondo_exec_launch(work.execs[2], work.other));
  drop(2);
  rondo_stream *ended = work.other;
  work.other = NULL;
  return rondo_stream_destroy(ended); /* or when the device closes */
}

static void tear_down(void) {
  for (int i = 0; i < THINGS; i++) drop(i);
  rondo_status status = rondo_stream_destroy(work.other);
  status = rondo_stream_destroy(work.stream);
  status = rondo_device_close(work.device);
  (void)status;
}

static void assert_whole(void) {
  for (int i = 0; i < THINGS; i++) assert_int_equal(atomic_load(&work.things[i].runs), i == 0 ? 1 : 2);
  for (int i = 0; i < THINGS - 1; i++) assert_int_equal(atomic_load(&work.things[i].released), 1);
}

static void check(const fault_failure *of, rondo_status status) {
  if (status == RONDO_OK) assert_int_equal(atomic_load(&work.things[2].runs), 2);
  assert_false(work.is_elsewhere);
  for (int i = 0; i < THINGS; i++) {
    assert_int_equal(atomic_load(&work.things[i].released), work.things[i].is_retained);
    assert_int_equal(atomic_load(&work.things[i].late), 0);
  }
  fault_work_assert_clean(of);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .check = check,
                            .least = 40,
                            .other = "cpu",
                            .memory = &allocator};
