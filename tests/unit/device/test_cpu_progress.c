/* SPDX-License-Identifier: MIT
 * The CPU driver makes progress whatever its workers do: queues that move from thread to thread, queues destroyed while
 * all workers are busy, many graphs that wait for events, workers that help others, event nodes whose event changes. A
 * defect here usually is a hang, which the timeout of the test ends.
 */
#include <pthread.h>

#include "device/cpu/cpu.h"
#include "device_tests.h"

/* Waits without helping, so only workers run the work. */
static void wait_for(const atomic_uint *counter, unsigned value) {
  while (atomic_load(counter) < value) rondo_yield();
}

static void *synchronize_device(void *device) {
  assert_ok(((rondo_device *)device)->ops->synchronize(device));
  return NULL;
}

/* The worker detaches from a queue while a host thread owns it, whose wait ends before the last item. */
CPU_TEST(what_a_host_thread_leaves_is_taken_up_gx_2) {
  pthread_t host;
  atomic_uint of_first = 0, of_second = 0;
  gate worker = {false, false}, owner = {false, false};
  rondo_device *device = use_workers(f, 1);
  rondo_queue *first = make_queue(f, "first");
  rondo_queue *second = make_queue(f, "second");
  close_queue_after(second, &worker);
  const rondo_node_params hold = {.kind = RONDO_NODE_HOST, .as.host = {.function = wait_at_gate, .user = &owner}};
  assert_ok(first->ops->submit(first, &hold));
  assert_int_equal(pthread_create(&host, NULL, synchronize_device, device), 0);
  while (!atomic_load(&owner.reached)) rondo_yield();
  atomic_store(&worker.open, true);
  /* It comes to the queue, finds it owned, and watches it until it parks. */
  const cpu_pool *pool = &((cpu_device *)device)->pool;
  while (atomic_load(&((cpu_queue *)first)->attached) != CPU_ATTACHED && atomic_load(&pool->sleepers.count) == 0)
    rondo_yield();
  submit_count(first, &of_first);
  submit_count(second, &of_second);
  wait_for(&of_second, 1);
  atomic_store(&owner.open, true);
  wait_for(&of_first, 1);
  assert_int_equal(pthread_join(host, NULL), 0);
}

/* Its work is done, so only its destruction is waited for. */
CPU_TEST(destroying_an_idle_queue_waits_for_no_worker) {
  rondo_queue *idle;
  gate at = {false, false};
  atomic_uint count = 0;
  rondo_device *device = use_workers(f, 1);
  rondo_queue *busy = make_queue(f, "busy");
  assert_ok(device->ops->queue_create(device, "idle", NULL, &idle));
  close_queue_after(busy, &at);
  submit_count(idle, &count);
  assert_ok(idle->ops->synchronize(idle));
  assert_int_equal(atomic_load(&count), 1);
  assert_ok(idle->ops->destroy(idle));
  assert_false(atomic_load(&at.open));
  atomic_store(&at.open, true);
  close_device(f); /* whose work still refers to the stack */
}

static rondo_status fail_inside(void *user) {
  (void)user;
  return rondo_fail(RONDO_IO_ERROR, RONDO_REASON_NONE, "fix the cause");
}

static rondo_status fail_inside_and_go_on(void *user) {
  return fail_inside(user) == RONDO_IO_ERROR ? RONDO_OK : RONDO_INVALID_STATE;
}

/* The only worker is held, so that the waiting thread runs the functions: its wait succeeds, whatever they meet. */
CPU_TEST(who_waits_keeps_its_last_error) {
  rondo_device_event *event;
  gate at = {false, false};
  const rondo_node_params goes_on = {.kind = RONDO_NODE_HOST, .as.host = {.function = fail_inside_and_go_on}};
  const rondo_node_params fails = {.kind = RONDO_NODE_HOST, .as.host = {.function = fail_inside}};
  rondo_device *device = use_workers(f, 1);
  rondo_queue *busy = make_queue(f, "busy");
  rondo_queue *idle = make_queue(f, "idle");
  assert_ok(device->ops->event_create(device, false, &event));
  close_queue_after(busy, &at);
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "from before"), RONDO_NOT_FOUND);
  assert_ok(idle->ops->submit(idle, &goes_on));
  assert_ok(idle->ops->synchronize(idle));
  assert_string_equal(rondo_last_error()->message, "from before");
  assert_ok(idle->ops->submit(idle, &fails));
  assert_ok(idle->ops->record(idle, event));
  assert_ok(event->ops->synchronize(event));
  assert_string_equal(rondo_last_error()->message, "from before");
  assert_int_equal(idle->ops->synchronize(idle), RONDO_EXECUTION_FAILED);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_HOST_FUNCTION_FAILED);
  atomic_store(&at.open, true);
  event->ops->destroy(event);
  close_device(f); /* whose work still refers to the stack */
}

static rondo_executable *make_waiting_graph(rondo_device *device, rondo_device_event *event) {
  rondo_executable *executable;
  edge_lists *graph = make_lists(1, 0);
  graph->params[0].kind = RONDO_NODE_EVENT_WAIT;
  graph->nodes[0].event = event;
  assert_ok(lower_lists(device, graph, &executable));
  free_lists(graph);
  return executable;
}

CPU_TEST(any_number_of_graphs_may_wait_inside_gx_1) {
  enum { GRAPHS = 150 };
  rondo_queue *queues[GRAPHS];
  rondo_executable *executables[GRAPHS];
  rondo_device_event *event;
  gate at = {false, false};
  atomic_uint count = 0;
  rondo_device *device = use_workers(f, 2);
  assert_ok(device->ops->event_create(device, false, &event));
  rondo_queue *held = make_queue(f, "held");
  rondo_queue *other = make_queue(f, "other");
  close_queue_after(held, &at);
  assert_ok(held->ops->record(held, event));
  for (int i = 0; i < GRAPHS; i++) {
    assert_ok(device->ops->queue_create(device, "q", NULL, &queues[i]));
    executables[i] = make_waiting_graph(device, event);
    assert_ok(queues[i]->ops->launch(queues[i], executables[i]));
  }
  submit_count(other, &count);
  wait_for(&count, 1);
  atomic_store(&at.open, true);
  for (int i = 0; i < GRAPHS; i++) {
    assert_ok(queues[i]->ops->synchronize(queues[i]));
    executables[i]->ops->destroy(executables[i]);
    assert_ok(queues[i]->ops->destroy(queues[i]));
  }
  event->ops->destroy(event);
}

enum { BACKLOG = 150 };

typedef struct feeder {
  rondo_queue *queue;
  atomic_uint given, done;
  atomic_bool stop;
} feeder;

static rondo_status take_a_while(void *user) {
  for (int i = 0; i < 20000; i++) rondo_relax();
  return count_up(user);
}

/* Keeps the queue from running empty. */
static void *feed(void *argument) {
  feeder *my = argument;
  const rondo_node_params work = {.kind = RONDO_NODE_HOST, .as.host = {.function = take_a_while, .user = &my->done}};
  while (!atomic_load(&my->stop)) {
    if (atomic_load(&my->given) - atomic_load(&my->done) > BACKLOG) {
      rondo_yield();
    } else {
      assert_ok(my->queue->ops->submit(my->queue, &work));
      atomic_fetch_add(&my->given, 1);
    }
  }
  return NULL;
}

CPU_TEST(a_busy_queue_does_not_starve_a_graph_that_waited_gx_1) {
  rondo_device_event *event;
  pthread_t thread;
  gate at = {false, false};
  atomic_uint count = 0;
  rondo_device *device = use_workers(f, 1);
  assert_ok(device->ops->event_create(device, false, &event));
  rondo_queue *busy = make_queue(f, "busy");
  rondo_queue *waiting = make_queue(f, "waiting");
  rondo_queue *recording = make_queue(f, "recording");
  rondo_executable *executable = make_waiting_graph(device, event);
  close_queue_after(busy, &at); /* so that the graph runs before its event is complete */
  submit_count(recording, &count);
  assert_ok(recording->ops->record(recording, event));
  assert_ok(waiting->ops->launch(waiting, executable));
  feeder my = {.queue = busy};
  assert_int_equal(pthread_create(&thread, NULL, feed, &my), 0);
  wait_for(&my.given, BACKLOG);
  atomic_store(&at.open, true);
  while (waiting->ops->query(waiting) == RONDO_NOT_READY) rondo_yield();
  atomic_store(&my.stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  executable->ops->destroy(executable);
  event->ops->destroy(event);
  close_device(f); /* whose work still refers to the stack */
}

typedef struct meeting {
  atomic_uint arrived;
  atomic_bool open;
} meeting;

static void wait_in_kernel(rondo_blocks blocks, void *const *args) {
  meeting *at = *(meeting *const *)args[0];
  (void)blocks;
  atomic_fetch_add(&at->arrived, 1);
  while (!atomic_load(&at->open)) rondo_yield();
}

static rondo_status make_meeting_kernel(rondo_device *device, rondo_kernel **out) {
  const rondo_kernel_options options = {.name = "meet", .cpu = wait_in_kernel, .params = {RONDO_UPDATES}};
  return rondo_kernel_create(device, &options, out);
}

/* Two parallel nodes, each of which runs until the meeting is open. */
static rondo_executable *make_meeting_graph(rondo_device *device, rondo_kernel *kernel, meeting **at) {
  rondo_executable *executable;
  edge_lists *graph = make_lists(2, 0);
  const void *args[] = {at};
  for (uint32_t i = 0; i < 2; i++) set_test_kernel(graph, i, kernel, 1, args);
  assert_ok(lower_lists(device, graph, &executable));
  free_lists(graph);
  return executable;
}

/* Of three workers two run the graph, one of them by helping, perhaps away from a queue that it watched. */
CPU_TEST(a_worker_that_helps_holds_no_queue) {
  enum { ROUNDS = 20, MAX_TURNS = 300 };
  rondo_kernel *kernel;
  meeting meeting_value = {0, true}, *at = &meeting_value;
  atomic_uint count = 0;
  rondo_device *device = use_workers(f, 3);
  rondo_queue *watched = make_queue(f, "watched");
  rondo_queue *running = make_queue(f, "running");
  assert_ok(make_meeting_kernel(device, &kernel));
  for (unsigned round = 0; round < ROUNDS; round++) {
    rondo_executable *executable = make_meeting_graph(device, kernel, &at);
    for (int i = 0; i < 5; i++) assert_ok(running->ops->launch(running, executable)); /* the other plan's trials */
    assert_ok(running->ops->synchronize(running));
    atomic_store(&at->open, false);
    atomic_store(&at->arrived, 0);
    submit_count(watched, &count);
    wait_for(&count, 2 * round + 1);
    assert_ok(running->ops->launch(running, executable));
    for (int turn = 0; turn < MAX_TURNS && atomic_load(&at->arrived) < 2; turn++) rondo_yield();
    submit_count(watched, &count);
    wait_for(&count, 2 * round + 2);
    atomic_store(&at->open, true);
    assert_ok(running->ops->synchronize(running));
    executable->ops->destroy(executable);
  }
  rondo_kernel_destroy(kernel);
}

/* Since the beginning of the clock, which is the time of an event that was never recorded. */
static int64_t time_of(rondo_device_event *event) {
  const cpu_event never = {0};
  int64_t time_ns = 0;
  assert_ok(event->ops->synchronize(event));
  assert_ok(event->ops->elapsed(&never.base, event, &time_ns));
  return time_ns;
}

/* An event keeps its time when its node records another event. A running launch records the event of its launch. */
CPU_TEST(a_record_node_may_change_its_event_gx_5) {
  rondo_executable *executable;
  rondo_device_event *plain, *events[3];
  rondo_device *device = use_workers(f, 1);
  rondo_queue *queue = make_queue(f, "q");
  assert_ok(device->ops->event_create(device, false, &plain));
  for (int i = 0; i < 3; i++) assert_ok(device->ops->event_create(device, true, &events[i]));
  edge_lists *graph = make_lists(1, 0);
  graph->params[0].kind = RONDO_NODE_EVENT_RECORD;
  graph->nodes[0].event = plain;
  assert_ok(lower_lists(device, graph, &executable));
  gate at = {false, false};
  close_queue_after(queue, &at);
  for (int i = 0; i < 3; i++) {
    assert_ok(queue->ops->launch(queue, executable));
    graph->nodes[0].event = events[i];
    assert_ok(executable->ops->set_params(executable, 0, &graph->nodes[0]));
  }
  assert_ok(queue->ops->launch(queue, executable));
  assert_int_equal(plain->ops->query(plain), RONDO_NOT_READY);
  atomic_store(&at.open, true);
  assert_ok(plain->ops->synchronize(plain));
  const int64_t first = time_of(events[0]), second = time_of(events[1]), third = time_of(events[2]);
  assert_true(0 < first && first <= second && second <= third);
  assert_ok(queue->ops->launch(queue, executable));
  assert_ok(queue->ops->synchronize(queue));
  assert_true(time_of(events[0]) == first && time_of(events[1]) == second && time_of(events[2]) > third);
  executable->ops->destroy(executable);
  free_lists(graph);
  plain->ops->destroy(plain);
  for (int i = 0; i < 3; i++) events[i]->ops->destroy(events[i]);
}

/* An event-wait node, then a node that joins the meeting. */
static rondo_executable *make_late_graph(rondo_device *device, rondo_device_event *event, rondo_kernel *kernel,
                                         meeting **at) {
  rondo_executable *executable;
  edge_lists *graph = make_lists(2, 1);
  const void *args[] = {at};
  add_test_edge(graph, 0, 1);
  graph->params[0].kind = RONDO_NODE_EVENT_WAIT;
  graph->nodes[0].event = event;
  set_test_kernel(graph, 1, kernel, 1, args);
  assert_ok(lower_lists(device, graph, &executable));
  free_lists(graph);
  return executable;
}

/* Graphs that waited for one event continue in parallel, one on each worker. */
CPU_TEST(graphs_that_waited_run_side_by_side_gx_1) {
  enum { GRAPHS = 3 };
  rondo_queue *queues[GRAPHS];
  rondo_executable *executables[GRAPHS];
  rondo_device_event *event;
  rondo_kernel *kernel;
  gate holder = {false, false};
  meeting meeting_value = {0, false}, *at = &meeting_value;
  rondo_device *device = use_workers(f, GRAPHS);
  assert_ok(make_meeting_kernel(device, &kernel));
  assert_ok(device->ops->event_create(device, false, &event));
  rondo_queue *held = make_queue(f, "held");
  close_queue_after(held, &holder);
  assert_ok(held->ops->record(held, event));
  for (int i = 0; i < GRAPHS; i++) {
    assert_ok(device->ops->queue_create(device, "q", NULL, &queues[i]));
    executables[i] = make_late_graph(device, event, kernel, &at);
    assert_ok(queues[i]->ops->launch(queues[i], executables[i]));
  }
  atomic_store(&holder.open, true);
  wait_for(&at->arrived, GRAPHS);
  atomic_store(&at->open, true);
  for (int i = 0; i < GRAPHS; i++) {
    assert_ok(queues[i]->ops->destroy(queues[i]));
    executables[i]->ops->destroy(executables[i]);
  }
  rondo_kernel_destroy(kernel);
  event->ops->destroy(event);
}

/* A meeting of all workers that begins when all but one are asleep. */
typedef struct late_meeting {
  meeting at;
  const cpu_pool *pool;
} late_meeting;

static void wait_till_others_sleep(rondo_blocks blocks, void *const *args) {
  late_meeting *late = *(late_meeting *const *)args[0];
  (void)blocks;
  while (!atomic_load(&late->at.open) && atomic_load(&late->pool->sleepers.count) + 1 < late->pool->worker_count)
    rondo_yield();
}

/* A node during which the other threads fall asleep, and after it `guests` parallel nodes that meet. */
static rondo_executable *make_sleepy_graph(rondo_device *device, rondo_kernel *kernel, meeting **at, uint32_t guests) {
  static const rondo_kernel_options options = {
      .name = "sleepy", .cpu = wait_till_others_sleep, .params = {RONDO_UPDATES}};
  rondo_executable *executable;
  rondo_kernel *sleepy;
  edge_lists *graph = make_lists(guests + 1, guests);
  const void *args[] = {at};
  assert_ok(rondo_kernel_create(device, &options, &sleepy));
  set_test_kernel(graph, 0, sleepy, 1, args);
  for (uint32_t i = 1; i <= guests; i++) {
    set_test_kernel(graph, i, kernel, 1, args);
    add_test_edge(graph, 0, i);
  }
  assert_ok(lower_lists(device, graph, &executable));
  free_lists(graph);
  rondo_kernel_destroy(sleepy);
  return executable;
}

/* Workers that fell asleep while a graph had nothing for them are woken when it has. */
CPU_TEST(sleepers_are_woken_for_what_comes_late) {
  enum { WORKERS = 3 };
  rondo_kernel *kernel;
  late_meeting late = {.at = {0, true}};
  meeting *at = &late.at;
  rondo_device *device = use_workers(f, WORKERS);
  rondo_queue *queue = make_queue(f, "q");
  assert_ok(make_meeting_kernel(device, &kernel));
  late.pool = &((cpu_device *)device)->pool;
  rondo_executable *executable = make_sleepy_graph(device, kernel, &at, WORKERS);
  for (int i = 0; i < 5; i++) assert_ok(queue->ops->launch(queue, executable)); /* the plain loop's trials */
  assert_ok(queue->ops->synchronize(queue));
  atomic_store(&at->open, false);
  atomic_store(&at->arrived, 0);
  assert_ok(queue->ops->launch(queue, executable));
  wait_for(&at->arrived, WORKERS);
  atomic_store(&at->open, true);
  assert_ok(queue->ops->synchronize(queue));
  executable->ops->destroy(executable);
  rondo_kernel_destroy(kernel);
}

/* All participants meet after a node during which the others fall asleep: workers, the starter, the waiting host. */
typedef struct full_meeting {
  atomic_uint arrived, wanted;
  atomic_bool begun, open;
  const cpu_pool *pool;
  const cpu_queue *queue;
} full_meeting;

static unsigned sleeping(const full_meeting *at) {
  return atomic_load(&at->pool->sleepers.count) + atomic_load(&at->pool->starters.count) +
         atomic_load(&at->queue->timeline.sleepers);
}

static void keep_starter_till_other_begins(rondo_blocks blocks, void *const *args) {
  full_meeting *at = *(full_meeting *const *)args[0];
  (void)blocks;
  while (!atomic_load(&at->open) && !atomic_load(&at->begun)) rondo_yield();
}

static void wait_till_all_others_sleep(rondo_blocks blocks, void *const *args) {
  full_meeting *at = *(full_meeting *const *)args[0];
  (void)blocks;
  atomic_store(&at->begun, true);
  while (!atomic_load(&at->open) && sleeping(at) + 1 < atomic_load(&at->wanted)) rondo_yield();
}

static void meet_all(rondo_blocks blocks, void *const *args) {
  full_meeting *at = *(full_meeting *const *)args[0];
  (void)blocks;
  if (atomic_fetch_add(&at->arrived, 1) + 1 == atomic_load(&at->wanted)) atomic_store(&at->open, true);
  while (!atomic_load(&at->open)) rondo_yield();
}

/* Two nodes to begin with, and `guests` after the second. */
static rondo_executable *make_full_graph(rondo_device *device, full_meeting **at, uint32_t guests) {
  static const rondo_cpu_function functions[] = {keep_starter_till_other_begins, wait_till_all_others_sleep, meet_all};
  rondo_executable *executable;
  rondo_kernel *kernels[3];
  edge_lists *graph = make_lists(guests + 2, guests);
  const void *args[] = {at};
  for (int i = 0; i < 3; i++) {
    const rondo_kernel_options options = {.name = "meet", .cpu = functions[i], .params = {RONDO_UPDATES}};
    assert_ok(rondo_kernel_create(device, &options, &kernels[i]));
  }
  for (uint32_t i = 0; i < guests + 2; i++) {
    set_test_kernel(graph, i, kernels[i < 2 ? i : 2], 1, args);
    if (i >= 2) add_test_edge(graph, 1, i);
  }
  assert_ok(lower_lists(device, graph, &executable));
  free_lists(graph);
  for (int i = 0; i < 3; i++) rondo_kernel_destroy(kernels[i]);
  return executable;
}

/* The host sleeps when the work becomes ready, and so does the thread that started the graph: in some rounds a worker,
 * which the host then waits for, and in others the host itself. */
CPU_TEST(waiting_hosts_are_woken_for_what_comes_late) {
  enum { WORKERS = 2, ROUNDS = 6 };
  rondo_queue *queue;
  full_meeting all = {.open = true}, *at = &all;
  rondo_device *device = use_workers(f, WORKERS);
  at->pool = &((cpu_device *)device)->pool;
  for (int round = 0; round < ROUNDS; round++) {
    assert_ok(device->ops->queue_create(device, "q", NULL, &queue));
    at->queue = (const cpu_queue *)queue;
    rondo_executable *executable = make_full_graph(device, &at, WORKERS + 1);
    for (int i = 0; i < 5; i++) assert_ok(queue->ops->launch(queue, executable)); /* the plain loop's trials */
    assert_ok(queue->ops->synchronize(queue));
    atomic_store(&at->arrived, 0);
    atomic_store(&at->wanted, WORKERS + 1);
    atomic_store(&at->begun, false);
    atomic_store(&at->open, false);
    assert_ok(queue->ops->launch(queue, executable));
    while (round % 2 == 0 && !atomic_load(&at->begun)) rondo_yield();
    assert_ok(queue->ops->synchronize(queue));
    assert_int_equal(atomic_load(&at->arrived), WORKERS + 1);
    executable->ops->destroy(executable);
    assert_ok(queue->ops->destroy(queue));
  }
}
