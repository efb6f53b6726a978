/* SPDX-License-Identifier: MIT
 * Queues and memory of the CPU driver, through its tables: the ring wraps around and blocks when it is full, kernels
 * keep their arguments, two queues wait for each other's events, failures are returned once, an idle device sleeps,
 * stealing loses nothing, aliases show the same bytes, and work is traced by name.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

#include <rondo/trace.h>

#include "device/cpu/cpu.h"
#include "device/cpu/cpu_pool.h"
#include "device_tests.h"
#include "graph/node_params.h"

typedef struct wide {
  unsigned char bytes[200];
} wide;

static void add_wide(rondo_blocks blocks, void *const *args) {
  uint64_t *sum = *(uint64_t *const *)args[0];
  const wide *value = args[1];
  (void)blocks;
  for (size_t i = 0; i < sizeof value->bytes; i++) *sum += value->bytes[i];
}

static rondo_status count_one(void *user) {
  atomic_fetch_add((atomic_uint *)user, 1);
  return RONDO_OK;
}

CPU_TEST(ring_wraps_and_arguments_are_copied) {
  rondo_kernel *kernel;
  uint64_t sum_value = 0, expected = 0;
  uint64_t *sum = &sum_value;
  rondo_device *device = use_workers(f, 0);
  rondo_queue *queue = make_queue(f, "q");
  assert_ok(rondo_kernel_create(
      device,
      &(rondo_kernel_options){.name = "add_wide", .cpu = add_wide, .params = {RONDO_UPDATES, RONDO_SCALAR(wide)}},
      &kernel));
  for (unsigned n = 0; n < 5000; n++) {
    wide value;
    memset(&value, (int)(n % 251), sizeof value);
    const void *args[] = {&sum, &value};
    const rondo_node_params work = {.kind = RONDO_NODE_KERNEL,
                                    .as.kernel = {.kernel = kernel, .grid = {1, 1, 1}, .args = args, .arg_count = 2}};
    assert_ok(queue->ops->submit(queue, &work));
    memset(&value, 0xff, sizeof value); /* the queue has its own copy */
    expected += (uint64_t)(n % 251) * sizeof value;
  }
  assert_ok(queue->ops->synchronize(queue));
  assert_true(sum_value == expected);
  rondo_kernel_destroy(kernel);
}

/* A host thread that helps gets a participant that no other thread has, until it leaves. */
CPU_TEST(as_many_hosts_join_as_there_are_participants) {
  cpu_pool *pool = &((cpu_device *)use_workers(f, 2))->pool;
  cpu_participant *hosts[CPU_HOSTS];
  for (int i = 0; i < CPU_HOSTS; i++) {
    hosts[i] = cpu_pool_join(pool);
    assert_non_null(hosts[i]);
    for (int k = 0; k < i; k++) assert_ptr_not_equal(hosts[k], hosts[i]);
  }
  assert_null(cpu_pool_join(pool));
  cpu_pool_leave(pool, hosts[CPU_HOSTS / 2]);
  assert_ptr_equal(cpu_pool_join(pool), hosts[CPU_HOSTS / 2]);
  assert_null(cpu_pool_join(pool));
  for (int i = 0; i < CPU_HOSTS; i++) cpu_pool_leave(pool, hosts[i]);
}

typedef struct counter {
  atomic_uint value;
  unsigned expected;
  bool wrong;
} counter;

typedef struct visit {
  counter *at;
  unsigned turn;
} visit;

static rondo_status take_turn(void *user) {
  const visit *my = user;
  if (atomic_fetch_add(&my->at->value, 1) != my->turn) my->at->wrong = true;
  return RONDO_OK;
}

CPU_TEST(queues_wait_for_each_other_gx_2) {
  enum { TURNS = 400 };
  rondo_queue *queues[3];
  rondo_device_event *event;
  counter at = {0, 0, false};
  visit *visits = test_array(TURNS, sizeof *visits);
  rondo_device *device = use_workers(f, 2);
  assert_ok(device->ops->event_create(device, false, &event));
  for (int i = 0; i < 3; i++) queues[i] = make_queue(f, "q");
  for (unsigned turn = 0; turn < TURNS; turn++) {
    rondo_queue *queue = queues[turn % 3];
    visits[turn] = (visit){&at, turn};
    const rondo_node_params work = {.kind = RONDO_NODE_HOST, .as.host = {.function = take_turn, .user = &visits[turn]}};
    if (turn > 0) assert_ok(queue->ops->wait(queue, event));
    assert_ok(queue->ops->submit(queue, &work));
    assert_ok(queue->ops->record(queue, event)); /* the wait of before keeps what it waits for */
  }
  assert_ok(event->ops->synchronize(event));
  assert_ok(event->ops->query(event));
  assert_int_equal(atomic_load(&at.value), TURNS);
  assert_false(at.wrong);
  event->ops->destroy(event);
  free(visits);
}

static rondo_status refuse(void *user) {
  (void)user;
  return RONDO_IO_ERROR;
}

/* The only worker is held by another queue. The thread that launches finds the ring full, so it runs the work. */
CPU_TEST(a_launch_into_a_full_ring_allocates_nothing) {
  enum { LAUNCHES = 2 * CPU_RING_GRANULES };
  gate at = {false, false};
  atomic_uint count = 0;
  use_workers(f, 1);
  rondo_queue *held = make_queue(f, "held");
  rondo_queue *queue = make_queue(f, "q");
  close_queue_after(held, &at);
  const size_t before = atomic_load(&f->allocator.calls);
  const rondo_node_params work = {.kind = RONDO_NODE_HOST, .as.host = {.function = count_one, .user = &count}};
  for (int i = 0; i < LAUNCHES; i++) assert_ok(queue->ops->submit(queue, &work));
  assert_true(atomic_load(&count) > 0);
  assert_int_equal(atomic_load(&f->allocator.calls), before);
  assert_ok(queue->ops->synchronize(queue));
  assert_int_equal(atomic_load(&count), LAUNCHES);
  atomic_store(&at.open, true);
  close_device(f); /* whose work still refers to the stack */
}

CPU_TEST(failures_come_out_once) {
  rondo_device *device = use_workers(f, 0);
  rondo_queue *queue = make_queue(f, "loader");
  const rondo_node_params work = {.kind = RONDO_NODE_HOST, .name = "read batch", .as.host = {.function = refuse}};
  assert_ok(queue->ops->submit(queue, &work));
  assert_ok(queue->ops->submit(queue, &work));
  assert_int_equal(queue->ops->synchronize(queue), RONDO_EXECUTION_FAILED);
  assert_non_null(strstr(rondo_last_error()->message, "read batch"));
  assert_non_null(strstr(rondo_last_error()->message, "loader"));
  assert_non_null(strstr(rondo_last_error()->message, "IO_ERROR"));
  assert_ok(queue->ops->synchronize(queue));
  assert_ok(queue->ops->submit(queue, &work));
  assert_int_equal(device->ops->synchronize(device), RONDO_EXECUTION_FAILED);
}

static uint64_t processor_ns(void) {
  struct timespec time;
  assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Parks are counted, so that this asserts no time: once parked, a worker does not run until it is woken. */
CPU_TEST(an_idle_device_sleeps) {
  counter at = {0, 0, false};
  visit my = {&at, 0};
  rondo_device *device = use_workers(f, 2);
  rondo_queue *queue = make_queue(f, "q");
  const rondo_node_params work = {.kind = RONDO_NODE_HOST, .as.host = {.function = take_turn, .user = &my}};
  assert_ok(queue->ops->submit(queue, &work));
  assert_ok(queue->ops->synchronize(queue));
  const atomic_uint *sleepers = &((cpu_device *)device)->pool.sleepers.count;
  while (atomic_load(sleepers) < 2) rondo_yield();
  const uint64_t before = processor_ns();
  nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
  assert_true(processor_ns() - before < 50u * 1000 * 1000); /* a spinning worker would have used it all */
  assert_int_equal(atomic_load(sleepers), 2);
}

UNIT_TEST(aliases_show_the_same_bytes_gm_12) {
  rondo_device *device;
  rondo_physical *physical;
  void *a, *b;
  rondo_device_statistics statistics = {0};
  assert_ok(rondo_device_open("cpu:3", NULL, &device));
  const rondo_device_ops *ops = device->ops;
  const size_t page = 1 << 16;
  assert_ok(ops->reserve(device, 4 * page, 1 << 20, &a));
  assert_ok(ops->reserve(device, page, 0, &b));
  assert_int_equal((uintptr_t)a % (1 << 20), 0);
  assert_ok(ops->physical_create(device, page, RONDO_PHYSICAL_AGAIN, &physical));
  assert_ok(ops->map(device, (char *)a + page, physical));
  assert_ok(ops->map(device, b, physical));
  assert_ok(rondo_device_get_statistics(device, &statistics));
  assert_int_equal(statistics.mapped_bytes, 2 * page);
  strcpy((char *)a + page, "theme");
  assert_string_equal(b, "theme");
  ops->physical_destroy(physical); /* the pages live on with their mappings */
  assert_string_equal(b, "theme");
  assert_ok(ops->protect(device, b, page, RONDO_PROTECT_READ));
  assert_string_equal(b, "theme");
  assert_ok(ops->unmap(device, (char *)a + page, page));
  assert_ok(ops->unmap(device, b, page));
  assert_ok(ops->unreserve(device, a, 4 * page));
  assert_ok(ops->unreserve(device, b, page));
  assert_ok(rondo_device_get_statistics(device, &statistics));
  assert_int_equal(statistics.mapped_bytes, 0);
  assert_int_equal(statistics.maps, 2);
  assert_int_equal(ops->reserve(device, SIZE_MAX / 2 & ~(page - 1), 0, &a), RONDO_OUT_OF_MEMORY);
  assert_null(a);
  assert_ok(rondo_device_close(device));
}

typedef struct heard_spans {
  atomic_uint begun, ended, wrong;
  char names[8][128];
} heard_spans;

/* The queue runs its work in order, one at a time. */
static void hear_spans(void *user, const rondo_trace_event *event) {
  heard_spans *heard = user;
  if (strcmp(event->area, "stream") != 0) return;
  const unsigned ended = atomic_load(&heard->ended), begun = atomic_load(&heard->begun);
  if (event->track != rondo_thread_id()) atomic_fetch_add(&heard->wrong, 1);
  if (event->kind == RONDO_TRACE_BEGIN && begun == ended && begun < 8) {
    (void)snprintf(heard->names[begun], sizeof heard->names[begun], "%s", event->name);
    atomic_fetch_add(&heard->begun, 1);
  } else if (event->kind == RONDO_TRACE_END && begun == ended + 1 && strcmp(heard->names[ended], event->name) == 0) {
    atomic_fetch_add(&heard->ended, 1);
  } else {
    atomic_fetch_add(&heard->wrong, 1);
  }
}

/* A kernel with that name, destroyed before it runs. */
static void submit_kernel_called(rondo_queue *queue, const char *name, uint64_t **sum) {
  rondo_kernel *kernel;
  const wide value = {{1}};
  const void *args[] = {sum, &value};
  assert_ok(rondo_kernel_create(
      queue->device,
      &(rondo_kernel_options){.name = name, .cpu = add_wide, .params = {RONDO_UPDATES, RONDO_SCALAR(wide)}}, &kernel));
  const rondo_node_params work = {.kind = RONDO_NODE_KERNEL,
                                  .as.kernel = {.kernel = kernel, .grid = {1, 1, 1}, .args = args, .arg_count = 2}};
  assert_ok(queue->ops->submit(queue, &work));
  rondo_kernel_destroy(kernel);
}

static void submit_one_of_each(rondo_queue *queue, uint64_t **sum, visit *visits) {
  static char from[16] = "theme", to[16], filled[16];
  rondo_node_params works[] = {
      {.kind = RONDO_NODE_COPY, .as.copy = {.dst = to, .src = from, .width = sizeof to}},
      {.kind = RONDO_NODE_FILL, .as.fill = {.dst = filled, .value = 1, .element_bytes = 1, .width = sizeof filled}},
      {.kind = RONDO_NODE_HOST, .name = "named", .as.host = {.function = take_turn, .user = &visits[0]}},
      {.kind = RONDO_NODE_HOST, .as.host = {.function = take_turn, .user = &visits[1]}},
  };
  submit_kernel_called(queue, "add_wide", sum);
  for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
    rondo_node_params_resolve(&works[i]);
    assert_ok(queue->ops->submit(queue, &works[i]));
  }
}

CPU_TEST(stream_work_is_traced_by_name) {
  static const char *const expected[] = {"gate", "kernel", "add_wide", "copy", "fill", "named", "host function"};
  enum { COUNT = sizeof expected / sizeof *expected };
  gate at = {false, false};
  counter turns = {0, 0, false};
  visit visits[] = {{&turns, 0}, {&turns, 1}};
  heard_spans heard = {0};
  uint64_t sum_value = 0;
  uint64_t *sum = &sum_value;
  use_workers(f, 2);
  rondo_queue *queue = make_queue(f, "q");
  rondo_trace_set_sink(hear_spans, &heard);
  close_queue_after(queue, &at); /* the rest is submitted before it runs */
  rondo_trace_set_sink(NULL, NULL);
  submit_kernel_called(queue, "submitted untraced", &sum);
  rondo_trace_set_sink(hear_spans, &heard);
  submit_one_of_each(queue, &sum, visits);
  atomic_store(&at.open, true);
  assert_ok(queue->ops->synchronize(queue));
  rondo_trace_set_sink(NULL, NULL);
  assert_int_equal(atomic_load(&heard.wrong), 0);
  assert_int_equal(atomic_load(&heard.ended), COUNT);
  for (size_t i = 0; i < COUNT; i++) assert_string_equal(heard.names[i], expected[i]);
  assert_int_equal(sum_value, 2);
}

CPU_TEST(long_kernel_names_are_cut_in_traces) {
  heard_spans heard = {0};
  uint64_t sum_value = 0;
  uint64_t *sum = &sum_value;
  char name[101];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  use_workers(f, 0);
  rondo_queue *queue = make_queue(f, "q");
  rondo_trace_set_sink(hear_spans, &heard);
  submit_kernel_called(queue, name, &sum);
  assert_ok(queue->ops->synchronize(queue));
  rondo_trace_set_sink(NULL, NULL);
  assert_int_equal(atomic_load(&heard.wrong), 0);
  assert_int_equal(atomic_load(&heard.ended), 1);
  assert_int_equal(strlen(heard.names[0]), 63);
  assert_int_equal(strncmp(heard.names[0], name, 63), 0);
}
