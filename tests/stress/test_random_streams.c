/* SPDX-License-Identifier: MIT
 * Random work on several streams that wait for one another through events, more than their queues hold. The test keeps
 * a vector clock for each stream, so that it knows which earlier operations precede each new one. The new operation
 * reads only their words and writes a separate word. A word that differs from the same work in a plain loop, or a data
 * race, shows a lost order.
 */
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"

enum { STREAMS = 5, EVENTS = 12, EXECS = 3, OPERATIONS = 40000 };

/* Operation i of all: its word is a mixture of two earlier words. */
typedef struct operation {
  uint32_t index, inputs[2]; /* an operation without order before it reads its own number */
  uint32_t *words;
} operation;

/* The number of operations of each stream that precede. */
typedef struct vector_clock {
  uint32_t seen[STREAMS];
} vector_clock;

typedef struct run_state {
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *streams[STREAMS];
  rondo_event *events[EVENTS];
  rondo_exec *execs[EXECS];
  uint32_t exec_words[EXECS], exec_expected[EXECS];
  vector_clock clocks[STREAMS], event_clocks[EVENTS];
  uint32_t *by_stream[STREAMS]; /* the operations of each stream, in order */
  uint32_t by_stream_count[STREAMS];
  operation *operations;
  uint32_t count;
  uint32_t *words, *expected;
  uint64_t random;
} run_state;

static uint32_t mix(const operation *self, const uint32_t *words) {
  uint32_t value = self->index * 0x9e3779b1u;
  for (int i = 0; i < 2; i++) {
    const uint32_t input = self->inputs[i];
    value = (value ^ (input == self->index ? input : words[input])) * 0x85ebca6bu;
    value ^= value >> 13;
  }
  return value;
}

static void mix_cpu(rondo_blocks blocks, void *const *args) {
  const operation *self = *(const operation *const *)args[0];
  (void)blocks;
  self->words[self->index] = mix(self, self->words);
}

static rondo_status mix_on_host(void *user) {
  const operation *self = user;
  self->words[self->index] = mix(self, self->words);
  return RONDO_OK;
}

static void step_cpu(rondo_blocks blocks, void *const *args) {
  uint32_t *word = *(uint32_t *const *)args[0];
  (void)blocks;
  *word = *word * 5 + 1;
}

/* A random operation that precedes the next one of the stream, or `index` when none was picked. */
static uint32_t pick_input(run_state *r, uint32_t stream, uint32_t index) {
  const uint32_t from = test_random_below(&r->random, STREAMS);
  const uint32_t seen = r->clocks[stream].seen[from];
  if (seen == 0) return index;
  const uint32_t back = test_random_below(&r->random, seen < 20 ? seen : 20);
  return r->by_stream[from][seen - 1 - back];
}

static void queue_operation(run_state *r, uint32_t stream) {
  operation *self = &r->operations[r->count];
  *self = (operation){.index = r->count, .words = r->words};
  for (int i = 0; i < 2; i++) self->inputs[i] = pick_input(r, stream, r->count);
  if (test_random_below(&r->random, 4) == 0) {
    assert_ok(rondo_host_async(r->streams[stream], mix_on_host, self));
  } else {
    assert_ok(rondo_launch(r->streams[stream], r->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&self)));
  }
  r->expected[r->count] = mix(self, r->expected);
  r->by_stream[stream][r->by_stream_count[stream]++] = r->count++;
  r->clocks[stream].seen[stream] = r->by_stream_count[stream];
}

static void merge(vector_clock *into, const vector_clock *from) {
  for (int i = 0; i < STREAMS; i++) {
    if (from->seen[i] > into->seen[i]) into->seen[i] = from->seen[i];
  }
}

static void renew_event(run_state *r, uint32_t event) {
  rondo_event_destroy(r->events[event]);
  assert_ok(rondo_event_create(r->device, NULL, &r->events[event]));
  memset(&r->event_clocks[event], 0, sizeof r->event_clocks[event]);
}

static void take_step(run_state *r) {
  const uint32_t stream = test_random_below(&r->random, STREAMS), event = test_random_below(&r->random, EVENTS);
  const uint32_t what = test_random_below(&r->random, 40);
  if (what < 6) {
    assert_ok(rondo_event_record(r->events[event], r->streams[stream]));
    r->event_clocks[event] = r->clocks[stream];
  } else if (what < 12) {
    assert_ok(rondo_stream_wait_event(r->streams[stream], r->events[event]));
    merge(&r->clocks[stream], &r->event_clocks[event]);
  } else if (what == 12) {
    renew_event(r, event);
  } else if (what == 13) {
    const uint32_t exec = test_random_below(&r->random, EXECS);
    assert_ok(rondo_exec_launch(r->execs[exec], r->streams[stream]));
    for (int i = 0; i < 4; i++) r->exec_expected[exec] = r->exec_expected[exec] * 5 + 1;
  } else {
    queue_operation(r, stream);
  }
}

static void make_execs(run_state *r) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "step", .cpu = step_cpu,
                                        .params = {RONDO_SCALAR(void *)}};
  rondo_kernel *step = NULL;
  assert_ok(rondo_kernel_create(r->device, &options, &step));
  for (int i = 0; i < EXECS; i++) {
    rondo_graph *graph = NULL;
    rondo_node node = {0};
    const uint32_t *word = &r->exec_words[i];
    assert_ok(rondo_graph_create(r->device, NULL, &graph));
    for (int k = 0; k < 4; k++) {
      assert_ok(rondo_graph_add_kernel(graph, &node, k > 0, step, (rondo_grid){1, 0, 0}, RONDO_ARGS(&word), &node));
    }
    r->execs[i] = test_exec_of(graph);
  }
  rondo_kernel_destroy(step);
}

static void *zeroed(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  assert_non_null(memory);
  return memory;
}

static void open_run(run_state *r, uint32_t workers, uint64_t seed) {
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .workers = workers};
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "mix", .cpu = mix_cpu,
                                       .params = {RONDO_SCALAR(void *)}};
  r->random = seed;
  r->operations = zeroed(OPERATIONS, sizeof *r->operations);
  r->words = zeroed(OPERATIONS, sizeof *r->words);
  r->expected = zeroed(OPERATIONS, sizeof *r->expected);
  assert_ok(rondo_device_open("cpu", &device, &r->device));
  assert_ok(rondo_kernel_create(r->device, &kernel, &r->kernel));
  for (int i = 0; i < STREAMS; i++) {
    r->by_stream[i] = zeroed(OPERATIONS, sizeof *r->by_stream[i]);
    assert_ok(rondo_stream_create(r->device, NULL, &r->streams[i]));
  }
  for (int i = 0; i < EVENTS; i++) assert_ok(rondo_event_create(r->device, NULL, &r->events[i]));
  make_execs(r);
}

static void close_run(run_state *r) {
  for (int i = 0; i < STREAMS; i++) {
    test_stream_destroy(r->streams[i]);
    free(r->by_stream[i]);
  }
  for (int i = 0; i < EVENTS; i++) rondo_event_destroy(r->events[i]);
  for (int i = 0; i < EXECS; i++) rondo_exec_destroy(r->execs[i]);
  rondo_kernel_destroy(r->kernel);
  assert_ok(rondo_device_close(r->device));
  free(r->operations);
  free(r->words);
  free(r->expected);
}

static void run_streams(uint32_t workers, uint64_t seed) {
  run_state *r = zeroed(1, sizeof *r);
  open_run(r, workers, seed);
  while (r->count < OPERATIONS) take_step(r);
  assert_ok(rondo_device_synchronize(r->device));
  for (uint32_t i = 0; i < r->count; i++) {
    if (r->words[i] != r->expected[i])
      fail_msg("word of operation %u is wrong, seed %llu", i, (unsigned long long)seed);
  }
  assert_memory_equal(r->exec_words, r->exec_expected, sizeof r->exec_words);
  close_run(r);
  free(r);
}

UNIT_TEST(test_random_streams_with_one_worker) {
  for (uint64_t seed = 1; seed <= 4; seed++) run_streams(1, seed);
}

UNIT_TEST(test_random_streams_with_two_workers) {
  for (uint64_t seed = 11; seed <= 14; seed++) run_streams(2, seed);
}

UNIT_TEST(test_random_streams_with_six_workers) {
  for (uint64_t seed = 21; seed <= 24; seed++) run_streams(6, seed);
}
