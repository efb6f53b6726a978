/* SPDX-License-Identifier: MIT
 * Semaphores of the CPU driver: a wait for one holds no worker, continues when it is raised to the requested value, and
 * fails when the semaphore fails. It ends after everything that may still use it (TR-16).
 */
#include "device/cpu/cpu.h"
#include "device_tests.h"

typedef struct scene {
  rondo_device *device;
  rondo_queue *first, *second;
  rondo_device_event *semaphore;
  atomic_uint ends, count;
} scene;

static void note_end(void *ends) { atomic_fetch_add((atomic_uint *)ends, 1); }

/* By workers alone. */
static void await(scene *s, unsigned value) {
  while (atomic_load(&s->count) < value) rondo_yield();
}

static void open_scene(scene *s) {
  *s = (scene){0};
  assert_ok(rondo_device_open("cpu", &(rondo_device_options){.workers = 1}, &s->device));
  assert_ok(s->device->ops->queue_create(s->device, "first", &s->first));
  assert_ok(s->device->ops->queue_create(s->device, "second", &s->second));
  assert_ok(s->device->ops->semaphore->create(s->device, note_end, &s->ends, &s->semaphore));
}

static void close_scene(scene *s) {
  assert_ok(s->first->ops->destroy(s->first));
  assert_ok(s->second->ops->destroy(s->second));
  assert_ok(rondo_device_close(s->device));
  assert_int_equal(atomic_load(&s->ends), 1);
}

UNIT_TEST(a_wait_ends_when_raised_and_holds_no_worker_tr_16) {
  scene s;
  open_scene(&s);
  const rondo_semaphore_ops *ops = s.device->ops->semaphore;
  assert_ok(s.first->ops->wait(s.first, s.semaphore)); /* nothing is requested, so the wait is over */
  submit_count(s.first, &s.count);
  await(&s, 1);
  ops->ask(s.semaphore, 2);
  assert_ok(s.first->ops->wait(s.first, s.semaphore));
  submit_count(s.first, &s.count);
  submit_count(s.second, &s.count); /* by the same worker */
  await(&s, 2);
  ops->raise(s.semaphore, 1);
  assert_int_equal(s.first->ops->query(s.first), RONDO_NOT_READY);
  ops->raise(s.semaphore, 2);
  ops->raise(s.semaphore, 1); /* it only grows */
  await(&s, 3);
  s.semaphore->ops->destroy(s.semaphore);
  assert_int_equal(atomic_load(&s.ends), 1);
  close_scene(&s);
}

static rondo_executable *make_waiting_graph(const scene *s) {
  rondo_executable *executable;
  edge_lists *graph = make_lists(1, 0);
  graph->params[0].kind = RONDO_NODE_EVENT_WAIT;
  graph->nodes[0].event = s->semaphore;
  assert_ok(lower_lists(s->device, graph, &executable));
  free_lists(graph);
  return executable;
}

/* Each launch waits for the value that is requested when it runs. */
UNIT_TEST(graphs_wait_for_what_is_asked_when_they_run_tr_16) {
  scene s;
  open_scene(&s);
  const rondo_semaphore_ops *ops = s.device->ops->semaphore;
  rondo_executable *executable = make_waiting_graph(&s);
  for (unsigned i = 1; i <= 3; i++) {
    ops->ask(s.semaphore, i);
    assert_ok(s.first->ops->launch(s.first, executable));
    submit_count(s.first, &s.count);
    submit_count(s.second, &s.count);
    await(&s, 2 * i - 1);
    assert_int_equal(s.first->ops->query(s.first), RONDO_NOT_READY);
    ops->raise(s.semaphore, i);
    await(&s, 2 * i);
  }
  s.semaphore->ops->destroy(s.semaphore);
  assert_int_equal(atomic_load(&s.ends), 0); /* the executable may reach its wait */
  executable->ops->destroy(executable);
  close_scene(&s);
}

static void assert_lost(rondo_queue *queue) {
  assert_int_equal(queue->ops->synchronize(queue), RONDO_EXECUTION_FAILED);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_PEER_LOST);
}

UNIT_TEST(a_failure_reaches_all_that_wait_tr_16) {
  scene s;
  rondo_saved_error error;
  open_scene(&s);
  const rondo_semaphore_ops *ops = s.device->ops->semaphore;
  rondo_executable *executable = make_waiting_graph(&s);
  ops->ask(s.semaphore, 1);
  assert_ok(s.first->ops->wait(s.first, s.semaphore));
  assert_ok(s.second->ops->launch(s.second, executable));
  (void)rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_PEER_LOST, "it has left");
  rondo_error_save(&error);
  ops->fail_waits(s.semaphore, &error);
  assert_lost(s.first);
  assert_non_null(strstr(rondo_last_error()->message, "it has left"));
  assert_lost(s.second);
  assert_ok(s.first->ops->wait(s.first, s.semaphore)); /* later ones fail too */
  assert_lost(s.first);
  s.semaphore->ops->destroy(s.semaphore);
  executable->ops->destroy(executable);
  close_scene(&s);
}
