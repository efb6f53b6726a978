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
  atomic_uint ends, count, polls;
} scene;

static void note_end(void *user) { atomic_fetch_add(&((scene *)user)->ends, 1); }

/* Raises it in the third poll. */
static bool poll_thrice(void *user) {
  scene *s = user;
  if (atomic_fetch_add(&s->polls, 1) < 2) return false;
  s->device->ops->semaphore->raise(s->semaphore, 1);
  return true;
}

/* By workers alone. */
static void await(scene *s, unsigned value) {
  while (atomic_load(&s->count) < value) rondo_yield();
}

static void open_scene(scene *s) {
  *s = (scene){0};
  assert_ok(rondo_device_open("cpu", &(rondo_device_options){.workers = 1}, &s->device));
  assert_ok(s->device->ops->queue_create(s->device, "first", NULL, &s->first));
  assert_ok(s->device->ops->queue_create(s->device, "second", NULL, &s->second));
  assert_ok(s->device->ops->semaphore->create(s->device, note_end, poll_thrice, s, &s->semaphore));
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

typedef struct order_note {
  atomic_uint *count;
  uint32_t *order, node;
} order_note;

static rondo_status note_order(void *user) {
  const order_note *note = user;
  note->order[atomic_load(note->count)] = note->node;
  atomic_fetch_add(note->count, 1);
  return RONDO_OK;
}

/* Node 1 has the successors 2, 3 and 4. Only 4 leads to the wait, and 2 also needs node 0. */
UNIT_TEST(what_leads_to_a_wait_runs_first_mm_4) {
  enum { NODES = 5, WAIT = NODES };
  static const uint32_t edges[][2] = {{0, 2}, {1, 2}, {1, 3}, {1, 4}, {4, WAIT}}, expected[NODES] = {1, 4, 3, 0, 2};
  scene s;
  uint32_t order[NODES];
  order_note notes[NODES];
  rondo_executable *executable;
  edge_lists *graph = make_lists(NODES + 1, sizeof edges / sizeof edges[0]);
  open_scene(&s);
  for (uint32_t i = 0; i < NODES; i++) {
    notes[i] = (order_note){&s.count, order, i};
    graph->params[i] = (rondo_node_params){
        .kind = RONDO_NODE_HOST, .name = "node", .as.host = {.function = note_order, .user = &notes[i]}};
  }
  graph->params[WAIT].kind = RONDO_NODE_EVENT_WAIT;
  graph->nodes[WAIT].event = s.semaphore;
  for (size_t e = 0; e < sizeof edges / sizeof edges[0]; e++) add_test_edge(graph, edges[e][0], edges[e][1]);
  assert_ok(lower_lists(s.device, graph, &executable));
  free_lists(graph);
  s.device->ops->semaphore->ask(s.semaphore, 1);
  assert_ok(s.first->ops->launch(s.first, executable));
  await(&s, NODES);
  assert_memory_equal(order, expected, sizeof expected);
  s.device->ops->semaphore->raise(s.semaphore, 1);
  assert_ok(s.first->ops->synchronize(s.first));
  executable->ops->destroy(executable);
  s.semaphore->ops->destroy(s.semaphore);
  close_scene(&s);
}

/* Node, wait, node, wait, node. Where the wait is over when it is reached, the chain goes on at once; else what follows
 * runs when the semaphore is raised. A node in the middle asks for the next value, as a collective does. */
typedef struct chain_note {
  scene *s;
  uint64_t asks, raises; /* 0: nothing */
} chain_note;

static rondo_status run_chain_note(void *user) {
  const chain_note *note = user;
  const rondo_semaphore_ops *ops = note->s->device->ops->semaphore;
  if (note->asks != 0) ops->ask(note->s->semaphore, note->asks);
  if (note->raises != 0) ops->raise(note->s->semaphore, note->raises);
  atomic_fetch_add(&note->s->count, 1);
  return RONDO_OK;
}

static rondo_executable *make_chain(scene *s, chain_note notes[3]) {
  enum { NODES = 5 };
  rondo_executable *executable;
  edge_lists *graph = make_lists(NODES, NODES - 1);
  for (uint32_t i = 0; i < NODES; i += 2) {
    notes[i / 2] = (chain_note){.s = s};
    graph->params[i] = (rondo_node_params){
        .kind = RONDO_NODE_HOST, .name = "node", .as.host = {.function = run_chain_note, .user = &notes[i / 2]}};
  }
  for (uint32_t i = 1; i < NODES; i += 2) {
    graph->params[i].kind = RONDO_NODE_EVENT_WAIT;
    graph->nodes[i].event = s->semaphore;
  }
  for (uint32_t i = 1; i < NODES; i++) add_test_edge(graph, i - 1, i);
  assert_ok(lower_lists(s->device, graph, &executable));
  free_lists(graph);
  return executable;
}

UNIT_TEST(a_chain_goes_on_until_a_wait_is_not_over_mm_1) {
  scene s;
  chain_note notes[3];
  open_scene(&s);
  const rondo_semaphore_ops *ops = s.device->ops->semaphore;
  rondo_executable *executable = make_chain(&s, notes);
  for (uint64_t launch = 0; launch < 12; launch++) {
    const uint64_t first = 2 * launch + 1;
    const bool first_waits = launch % 2 != 0, second_waits = launch % 4 > 1;
    const unsigned before = atomic_load(&s.count);
    notes[0] = (chain_note){&s, first, first_waits ? 0 : first};
    notes[1] = (chain_note){&s, first + 1, second_waits ? 0 : first + 1};
    assert_ok(s.first->ops->launch(s.first, executable));
    if (first_waits) await(&s, before + 1);
    if (first_waits) assert_int_equal(s.first->ops->query(s.first), RONDO_NOT_READY);
    if (first_waits) ops->raise(s.semaphore, first);
    if (second_waits) await(&s, before + 2);
    if (second_waits) assert_int_equal(s.first->ops->query(s.first), RONDO_NOT_READY);
    if (second_waits) ops->raise(s.semaphore, first + 1);
    assert_ok(s.first->ops->synchronize(s.first));
    assert_int_equal(atomic_load(&s.count), before + 3);
  }
  s.semaphore->ops->destroy(s.semaphore);
  executable->ops->destroy(executable);
  close_scene(&s);
}

/* The only worker is busy: the host that waits polls, and runs what has waited. */
UNIT_TEST(a_host_that_waits_polls_and_goes_on_tr_16) {
  scene s;
  gate busy = {false};
  const rondo_node_params holds = {.kind = RONDO_NODE_HOST, .as.host = {.function = wait_at_gate, .user = &busy}};
  open_scene(&s);
  rondo_executable *executable = make_waiting_graph(&s);
  assert_ok(s.second->ops->submit(s.second, &holds));
  while (!atomic_load(&busy.reached)) rondo_yield();
  s.device->ops->semaphore->ask(s.semaphore, 1);
  assert_ok(s.first->ops->launch(s.first, executable));
  submit_count(s.first, &s.count);
  assert_true(s.device->ops->semaphore->begin_polling(s.semaphore, 0));
  assert_ok(s.first->ops->synchronize(s.first));
  assert_int_equal(atomic_load(&s.count), 1);
  assert_int_equal(atomic_load(&s.polls), 3);
  atomic_store(&busy.open, true);
  executable->ops->destroy(executable);
  s.semaphore->ops->destroy(s.semaphore);
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
