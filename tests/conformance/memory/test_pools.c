/* SPDX-License-Identifier: MIT
 * Stream-ordered pools (GM-19): named pools and the device's current pool, the order in which a pool searches for
 * memory (P1) with each policy on and off, deterministic reuse without the opportunistic policy, the release threshold,
 * attributes, trimming and destruction (P3). Freed bytes are never given to work that is not ordered after the free
 * (GM-9).
 */
#include "support/rondo_test.h"

enum { MIB = 1 << 20, COUNT = 1024 };

static rondo_pool *make_pool(test_fixture *t, uint64_t threshold) {
  const rondo_pool_options options = {RONDO_POOL_OPTIONS_INIT, .name = "pool", .release_threshold = threshold};
  rondo_pool *pool = NULL;
  assert_ok(rondo_pool_create(t->device, &options, &pool));
  return pool;
}

static void *take(rondo_stream *stream, rondo_pool *pool, size_t bytes) {
  void *address = NULL;
  assert_ok(rondo_malloc_async(stream, bytes, &(rondo_malloc_options){.name = "block", .pool = pool}, &address));
  assert_non_null(address);
  return address;
}

/* A block that is reused has the same address, except on a guarded device. */
static void assert_same_block(rondo_device *device, const void *again, const void *before) {
  rondo_device_info info = test_device_info(device);
  if (info.guarded)
    assert_ptr_not_equal(again, before);
  else
    assert_ptr_equal(again, before);
}

static uint64_t get(rondo_pool *pool, rondo_pool_attribute attribute) {
  uint64_t value = 4711;
  assert_ok(rondo_pool_get_attribute(pool, attribute, &value));
  return value;
}

static void set(rondo_pool *pool, rondo_pool_attribute attribute, uint64_t value) {
  assert_ok(rondo_pool_set_attribute(pool, attribute, value));
  assert_int_equal(get(pool, attribute), value);
}

/* Nothing but what always holds. */
static rondo_pool *make_strict_pool(test_fixture *t) {
  rondo_pool *pool = make_pool(t, UINT64_MAX);
  set(pool, RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES, 0);
  set(pool, RONDO_POOL_ALLOW_OPPORTUNISTIC, 0);
  set(pool, RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES, 0);
  return pool;
}

/* Two streams. The first one waits at a gate, after it has been given and freed a block of 2 MiB. */
typedef struct standoff {
  test_fixture *t;
  rondo_pool *pool;
  rondo_stream *first, *second;
  void *freed;
  test_gate gate;
} standoff;

static void begin(standoff *self, test_fixture *t, rondo_pool *pool) {
  *self = (standoff){.t = t, .pool = pool, .first = test_stream(t, "first"), .second = test_stream(t, "second")};
  test_gate_init(&self->gate);
  self->freed = take(self->first, pool, 2 * MIB);
  test_gate_hold(&self->gate, self->first);
  assert_ok(rondo_free_async(self->first, self->freed));
}

/* Allocates on the stream and frees there immediately. Returns whether it was the freed block, according to the address
 * (except on a guarded device) and to the number of chunks. */
static bool gets_it(standoff *self, rondo_stream *stream) {
  const uint64_t chunks = test_pool_statistics(self->pool).chunks;
  void *address = take(stream, self->pool, 2 * MIB);
  const bool same = test_pool_statistics(self->pool).chunks == chunks;
  assert_ok(rondo_free_async(stream, address));
  if (test_is_guarded(self->t))
    assert_ptr_not_equal(address, self->freed);
  else
    assert_int_equal(same, address == self->freed);
  return same;
}

static void end(standoff *self) {
  test_gate_open(&self->gate);
  test_stream_destroy(self->first);
  test_stream_destroy(self->second);
  test_gate_destroy(&self->gate);
  assert_ok(rondo_pool_destroy(self->pool));
}

/* The order of search --------------------------------------------------------------------------------------------- */

TEST_WORKERS(test_gm19_p1_the_same_stream_gets_it_at_once) {
  standoff s;
  begin(&s, t, make_strict_pool(t));
  assert_true(gets_it(&s, s.first));
  assert_int_equal(test_pool_statistics(s.pool).same_stream, 1);
  assert_int_equal(test_pool_statistics(s.pool).chunks, 1);
  end(&s);
}

TEST_WORKERS(test_gm19_p1_nobody_else_gets_what_is_in_use) {
  standoff s;
  begin(&s, t, make_pool(t, UINT64_MAX));
  assert_false(gets_it(&s, s.second));
  const rondo_pool_statistics now = test_pool_statistics(s.pool);
  assert_int_equal(now.chunks, 2);
  assert_int_equal(now.same_stream + now.host_ordered + now.event_ordered + now.opportunistic, 0);
  end(&s);
}

typedef void wait_fn(standoff *self);

static void wait_for_stream(standoff *self) { assert_ok(rondo_stream_synchronize(self->first)); }
static void wait_for_device(standoff *self) { assert_ok(rondo_device_synchronize(self->t->device)); }
static void wait_for_event(standoff *self) {
  rondo_event *event = test_event(self->t);
  assert_ok(rondo_event_record(event, self->first));
  assert_ok(rondo_event_synchronize(event));
  rondo_event_destroy(event);
}
static void ask_the_stream(standoff *self) {
  rondo_status status;
  while ((status = rondo_stream_query(self->first)) == RONDO_NOT_READY) test_sleep_ms(1);
  assert_ok(status);
}
static void ask_the_event(standoff *self) {
  rondo_event *event = test_event(self->t);
  rondo_status status;
  assert_ok(rondo_event_record(event, self->first));
  while ((status = rondo_event_query(event)) == RONDO_NOT_READY) test_sleep_ms(1);
  assert_ok(status);
  rondo_event_destroy(event);
}
static void destroy_the_stream(standoff *self) {
  test_stream_destroy(self->first);
  self->first = test_stream(self->t, "another");
}

/* Whatever the policies, any stream may reuse what the host has waited for. */
TEST_WORKERS(test_gm19_p1_what_the_host_waited_for) {
  static wait_fn *const ways[] = {wait_for_stream, wait_for_device, wait_for_event,
                                  ask_the_stream,  ask_the_event,   destroy_the_stream};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    standoff s;
    begin(&s, t, make_strict_pool(t));
    test_gate_open(&s.gate);
    ways[i](&s);
    assert_true(gets_it(&s, s.second));
    assert_int_equal(test_pool_statistics(s.pool).host_ordered, 1);
    assert_int_equal(test_pool_statistics(s.pool).chunks, 1);
    end(&s);
  }
}

/* Waiting for an event before the free does not order anything after the free. */
TEST(test_gm19_p1_what_the_host_did_not_wait_for) {
  rondo_pool *pool = make_strict_pool(t);
  rondo_stream *other = test_stream(t, "other");
  rondo_event *event = test_event(t);
  void *address = take(t->stream, pool, 2 * MIB);
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_free_async(t->stream, address));
  assert_ok(rondo_event_synchronize(event));
  void *another = take(other, pool, 2 * MIB);
  assert_ptr_not_equal(another, address);
  assert_ok(rondo_free_async(other, another));
  assert_ok(rondo_pool_destroy(pool));
}

TEST_WORKERS(test_gm19_p1_events_order_streams) {
  for (uint64_t follow = 0; follow < 2; follow++) {
    standoff s;
    begin(&s, t, make_strict_pool(t));
    set(s.pool, RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES, follow);
    test_order(s.t, s.first, s.second);
    assert_int_equal(gets_it(&s, s.second), follow);
    assert_int_equal(test_pool_statistics(s.pool).event_ordered, follow);
    end(&s);
  }
}

/* Through a third stream; and not through an event before the free. */
TEST_WORKERS(test_gm19_p2_order_is_transitive) {
  rondo_stream *between = test_stream(t, "between");
  standoff s;
  begin(&s, t, make_strict_pool(t));
  set(s.pool, RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES, 1);
  rondo_event *early = test_event(t);
  assert_ok(rondo_event_record(early, s.first));
  void *second = take(s.first, s.pool, 2 * MIB); /* the freed block, again */
  assert_same_block(t->device, second, s.freed);
  assert_ok(rondo_free_async(s.first, second));
  assert_ok(rondo_stream_wait_event(s.second, early));
  assert_false(gets_it(&s, s.second));
  test_order(t, s.first, between);
  test_order(t, between, s.second);
  void *own = take(s.second, s.pool, 2 * MIB); /* its own freed blocks come first */
  assert_ptr_not_equal(own, s.freed);
  assert_true(gets_it(&s, s.second));
  assert_ok(rondo_free_async(s.second, own));
  assert_int_equal(test_pool_statistics(s.pool).event_ordered, 1);
  rondo_event_destroy(early);
  end(&s);
}

/* An event node counts as recorded after everything that precedes its launch. */
TEST_WORKERS(test_gm19_p2_events_that_a_launch_records) {
  test_skip_if_serial();
  rondo_event *event = test_event(t);
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_event_record(graph, NULL, 0, event, &node));
  rondo_exec *exec = test_instantiate(graph);
  standoff s;
  begin(&s, t, make_strict_pool(t));
  set(s.pool, RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES, 1);
  assert_ok(rondo_exec_launch(exec, s.first));
  assert_ok(rondo_stream_wait_event(s.second, event));
  assert_true(gets_it(&s, s.second));
  end(&s);
}

static rondo_status post(void *user) { return sem_post(user) == 0 ? RONDO_OK : RONDO_EXECUTION_FAILED; }

TEST_WORKERS(test_gm19_p1_what_happens_to_be_done) {
  for (uint64_t allowed = 0; allowed < 2; allowed++) {
    standoff s;
    sem_t done;
    assert_int_equal(sem_init(&done, 0, 0), 0);
    begin(&s, t, make_strict_pool(t));
    set(s.pool, RONDO_POOL_ALLOW_OPPORTUNISTIC, allowed);
    assert_ok(rondo_host_async(s.first, post, &done));
    test_gate_open(&s.gate);
    while (sem_wait(&done) != 0) continue;
    assert_int_equal(gets_it(&s, s.second), allowed);
    assert_int_equal(test_pool_statistics(s.pool).opportunistic, allowed);
    end(&s);
    assert_int_equal(sem_destroy(&done), 0);
  }
}

/* P1 (vi): memory has run out, so the stream waits for what another one freed. */
static void check_internal(test_fixture *t, rondo_device *device, uint64_t allowed) {
  const rondo_pool_options options = {RONDO_POOL_OPTIONS_INIT, .name = "small", .release_threshold = UINT64_MAX};
  rondo_stream *first = NULL, *second = NULL;
  rondo_pool *pool = NULL;
  uint32_t *out = NULL;
  void *address = NULL, *again = NULL;
  test_gate gate;
  test_gate_init(&gate);
  assert_ok(rondo_stream_create(device, NULL, &first));
  assert_ok(rondo_stream_create(device, NULL, &second));
  assert_ok(rondo_pool_create(device, &options, &pool));
  assert_ok(rondo_host_malloc(device, COUNT * 4, (void **)&out));
  set(pool, RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES, allowed);
  assert_ok(rondo_malloc_async(first, 4 * MIB, &(rondo_malloc_options){.name = "big", .pool = pool}, &address));
  test_gate_hold(&gate, first);
  assert_ok(rondo_fill_async(first, &(rondo_fill){.dst = address, .value = 1, .element_bytes = 4, .width = COUNT}));
  assert_ok(rondo_copy_async(first, out, address, COUNT * 4));
  assert_ok(rondo_free_async(first, address));
  const rondo_status status = rondo_malloc_async(second, 4 * MIB, &(rondo_malloc_options){.pool = pool}, &again);
  if (allowed == 1) {
    assert_ok(status);
    assert_same_block(device, again, address);
    assert_ok(rondo_fill_async(second, &(rondo_fill){.dst = again, .value = 2, .element_bytes = 4, .width = COUNT}));
    assert_ok(rondo_free_async(second, again));
  } else {
    assert_fails(status, RONDO_OUT_OF_MEMORY);
    assert_message("small");
    assert_null(again);
  }
  assert_int_equal(test_pool_statistics(pool).internal_dependencies, allowed);
  test_gate_open(&gate);
  assert_ok(rondo_stream_synchronize(first));
  for (int i = 0; i < COUNT; i++) assert_int_equal(out[i], 1); /* the fill of the second came after */
  assert_ok(rondo_malloc_async(second, 4 * MIB, &(rondo_malloc_options){.pool = pool}, &again));
  assert_ok(rondo_free_async(second, again));
  assert_ok(rondo_host_free(device, out));
  assert_ok(rondo_stream_destroy(first));
  assert_ok(rondo_stream_destroy(second));
  assert_ok(rondo_pool_destroy(pool));
  test_gate_destroy(&gate);
  (void)t;
}

TEST(test_gm19_p1_memory_that_ran_out) {
  if (!test_device_is("cpu")) skip();
  for (uint64_t allowed = 0; allowed < 2; allowed++) {
    const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 4, .memory_limit_bytes = 6 * MIB};
    rondo_device *device = NULL;
    assert_ok(rondo_device_open(test_device_name(), &options, &device));
    check_internal(t, device, allowed);
    assert_ok(rondo_device_close(device));
  }
}

/* Chance ---------------------------------------------------------------------------------------------------------- */

enum { STREAMS = 3, LIVE = 24, STEPS = 600 };

typedef struct trace_run {
  test_fixture *t;
  rondo_pool *pool;
  rondo_stream *streams[STREAMS];
  rondo_event *event;
  void *live[LIVE];
  void *seen[STEPS]; /* addresses in the order of their first appearance */
  uint32_t seen_count;
  uint32_t served[STEPS]; /* which of them each allocation got */
  uint32_t served_count;
} trace_run;

static rondo_status dawdle(void *user) {
  test_sleep_ms((unsigned)(uintptr_t)user);
  return RONDO_OK;
}

static void allocate_one(trace_run *self, rondo_stream *stream, uint32_t at, size_t bytes) {
  uint32_t index = 0;
  self->live[at] = take(stream, self->pool, bytes);
  while (index < self->seen_count && self->seen[index] != self->live[at]) index++;
  if (index == self->seen_count) self->seen[self->seen_count++] = self->live[at];
  self->served[self->served_count++] = index;
}

/* `calls` draws the calls, `chance` the durations. */
static void run_trace(trace_run *self, uint64_t calls, uint64_t chance) {
  for (int i = 0; i < STREAMS; i++) self->streams[i] = test_stream(self->t, "traced");
  self->event = test_event(self->t);
  for (uint32_t step = 0; step < STEPS; step++) {
    rondo_stream *stream = self->streams[test_random_below(&calls, STREAMS)];
    rondo_stream *other = self->streams[test_random_below(&calls, STREAMS)];
    const uint32_t at = test_random_below(&calls, LIVE), choice = test_random_below(&calls, 100);
    const size_t bytes = (size_t)MIB / 32 << test_random_below(&calls, 4);
    if (self->live[at] == NULL) {
      allocate_one(self, stream, at, bytes);
    } else {
      assert_ok(rondo_free_async(stream, self->live[at]));
      self->live[at] = NULL;
    }
    if (choice < 20) assert_ok(rondo_event_record(self->event, other));
    if (choice >= 15 && choice < 40) assert_ok(rondo_stream_wait_event(stream, self->event));
    if (choice >= 90 && choice < 94) assert_ok(rondo_stream_synchronize(other));
    if (choice >= 94 && choice < 97) assert_ok(rondo_event_synchronize(self->event));
    if (test_random_below(&chance, 30) == 0) assert_ok(rondo_host_async(other, dawdle, (void *)(uintptr_t)1));
    if (test_random_below(&chance, 60) == 0) test_sleep_ms(1);
  }
  for (int i = 0; i < LIVE; i++) assert_ok(rondo_free_async(self->streams[0], self->live[i]));
  for (int i = 0; i < STREAMS; i++) test_stream_destroy(self->streams[i]);
  rondo_event_destroy(self->event);
}

/* With the opportunistic policy off, only the calls determine which memory is reused. */
TEST_WORKERS(test_gm19_reuse_without_chance_is_the_same_every_time) {
  static trace_run runs[4];
  for (uint64_t i = 0; i < 4; i++) {
    runs[i] = (trace_run){.t = t, .pool = make_pool(t, UINT64_MAX)};
    set(runs[i].pool, RONDO_POOL_ALLOW_OPPORTUNISTIC, 0);
    run_trace(&runs[i], 5, i);
    const rondo_pool_statistics now = test_pool_statistics(runs[i].pool);
    assert_true(now.same_stream > 0 && now.host_ordered > 0 && now.event_ordered > 0);
    assert_int_equal(now.opportunistic, 0);
    assert_ok(rondo_pool_destroy(runs[i].pool));
    assert_int_equal(runs[i].served_count, runs[0].served_count);
    assert_memory_equal(runs[i].served, runs[0].served, runs[0].served_count * sizeof *runs[0].served);
  }
}

/* GM-9: a free that is not ordered after the use of the memory before its allocation. The allocating stream is blocked
 * before that use; another stream frees, and gets the memory again. */
TEST_WORKERS(test_gm9_memory_that_is_reused_twice) {
  rondo_pool *pool = make_pool(t, UINT64_MAX);
  rondo_stream *other = test_stream(t, "other");
  uint32_t *out = test_words(t, COUNT), expected[COUNT];
  for (int i = 0; i < COUNT; i++) expected[i] = 1;
  for (int at_once = 0; at_once < 2; at_once++) {
    test_gate gate;
    test_gate_init(&gate);
    void *address = take(t->stream, pool, 2 * MIB);
    test_gate_hold(&gate, t->stream);
    assert_ok(
        rondo_fill_async(t->stream, &(rondo_fill){.dst = address, .value = 1, .element_bytes = 4, .width = COUNT}));
    assert_ok(rondo_copy_async(t->stream, out, address, COUNT * 4));
    assert_ok(rondo_free_async(t->stream, address));
    void *again = take(t->stream, pool, 2 * MIB);
    assert_same_block(t->device, again, address);
    if (at_once == 1)
      assert_ok(rondo_free(t->device, again));
    else
      assert_ok(rondo_free_async(other, again));
    void *third = take(other, pool, 2 * MIB);
    assert_ok(rondo_fill_async(other, &(rondo_fill){.dst = third, .value = 2, .element_bytes = 4, .width = COUNT}));
    assert_ok(rondo_free_async(other, third));
    test_sleep_ms(2);
    test_gate_open(&gate);
    assert_words(t, out, expected, COUNT);
    test_gate_destroy(&gate);
  }
  assert_ok(rondo_pool_destroy(pool));
}

/* Blocks that one stream freed side by side serve a larger one before the pool grows. */
TEST_WORKERS(test_gm19_neighbours_are_joined) {
  rondo_pool *pool = make_strict_pool(t);
  void *parts[8];
  test_gate gate;
  test_gate_init(&gate);
  for (int i = 0; i < 8; i++) parts[i] = take(t->stream, pool, MIB / 4);
  test_gate_hold(&gate, t->stream);
  for (int i = 0; i < 8; i++) assert_ok(rondo_free_async(t->stream, parts[i]));
  for (int i = 0; i < 2; i++) {
    void *large = take(t->stream, pool, i == 0 ? 2 * MIB : MIB + 1);
    assert_ok(rondo_free_async(t->stream, large));
  }
  assert_int_equal(test_pool_statistics(pool).chunks, 1);
  assert_int_equal(test_pool_statistics(pool).reserved, 2 * MIB);
  test_gate_open(&gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  test_gate_destroy(&gate);
  assert_ok(rondo_pool_destroy(pool));
}

/* Bytes ----------------------------------------------------------------------------------------------------------- */

TEST(test_gm19_release_threshold) {
  static const uint64_t thresholds[] = {0, 1, 3 * MIB, 4 * MIB, UINT64_MAX};
  static const uint64_t kept[] = {0, 2 * MIB, 4 * MIB, 4 * MIB, 8 * MIB};
  for (size_t i = 0; i < 5; i++) {
    rondo_pool *pool = make_pool(t, thresholds[i]);
    void *blocks[4];
    for (int k = 0; k < 4; k++) blocks[k] = take(t->stream, pool, 2 * MIB);
    for (int k = 0; k < 4; k++) assert_ok(rondo_free_async(t->stream, blocks[k]));
    assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 8 * MIB);
    assert_int_equal(get(pool, RONDO_POOL_USED_CURRENT), 0);
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), kept[i]);
    assert_int_equal(get(pool, RONDO_POOL_RESERVED_HIGH), 8 * MIB);
    set(pool, RONDO_POOL_RELEASE_THRESHOLD, 0); /* applies from the next synchronization on, whatever it waits for */
    assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), kept[i]);
    assert_ok(rondo_device_synchronize(t->device));
    assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 0);
    assert_ok(rondo_pool_destroy(pool));
  }
}

/* Freed immediately, it is also released at the next synchronization; used memory stays. */
TEST(test_gm19_release_of_what_was_freed_at_once) {
  rondo_event *event = test_event(t);
  rondo_pool *pool = make_pool(t, 0);
  void *blocks[2] = {take(t->stream, pool, 2 * MIB), take(t->stream, pool, 2 * MIB)};
  assert_ok(rondo_event_record(event, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free(t->device, blocks[0]));
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 4 * MIB);
  assert_ok(rondo_event_synchronize(event));
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 2 * MIB);
  assert_ok(rondo_free(t->device, blocks[1]));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 0);
  assert_ok(rondo_pool_destroy(pool));
}

TEST_WORKERS(test_gm19_p3_trim_to) {
  rondo_pool *pool = make_pool(t, UINT64_MAX);
  test_gate *gate = test_gate_make();
  void *blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = take(t->stream, pool, 2 * MIB);
  for (int i = 0; i < 2; i++) assert_ok(rondo_free_async(t->stream, blocks[i]));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_pool_trim(pool, 5 * MIB));
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 6 * MIB);
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_free_async(t->stream, blocks[2])); /* not done */
  assert_ok(rondo_pool_trim(pool, 0));
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 4 * MIB);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_pool_trim(pool, 0));
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_CURRENT), 2 * MIB);
  assert_ok(rondo_free_async(t->stream, blocks[3]));
  assert_ok(rondo_pool_destroy(pool));
}

TEST(test_gm16_pool_attributes) {
  rondo_pool *pool = make_pool(t, 7);
  uint64_t value = 0;
  for (int i = RONDO_POOL_FOLLOW_EVENT_DEPENDENCIES; i <= RONDO_POOL_ALLOW_INTERNAL_DEPENDENCIES; i++) {
    assert_int_equal(get(pool, (rondo_pool_attribute)i), 1);
    assert_invalid(rondo_pool_set_attribute(pool, (rondo_pool_attribute)i, 2), RONDO_REASON_OUT_OF_RANGE);
    set(pool, (rondo_pool_attribute)i, 0);
  }
  assert_int_equal(get(pool, RONDO_POOL_RELEASE_THRESHOLD), 7);
  set(pool, RONDO_POOL_RELEASE_THRESHOLD, 0);
  void *address = take(t->stream, pool, 1000);
  assert_int_equal(get(pool, RONDO_POOL_USED_CURRENT), 1024);
  assert_ok(rondo_free_async(t->stream, address));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(get(pool, RONDO_POOL_USED_HIGH), 1024);
  assert_int_equal(get(pool, RONDO_POOL_RESERVED_HIGH), 2 * MIB);
  for (int i = RONDO_POOL_RESERVED_CURRENT; i <= RONDO_POOL_USED_HIGH; i++) {
    const bool high = i == RONDO_POOL_RESERVED_HIGH || i == RONDO_POOL_USED_HIGH;
    assert_invalid(rondo_pool_set_attribute(pool, (rondo_pool_attribute)i, 1), RONDO_REASON_OUT_OF_RANGE);
    if (high) assert_ok(rondo_pool_set_attribute(pool, (rondo_pool_attribute)i, 0));
    if (!high) assert_fails(rondo_pool_set_attribute(pool, (rondo_pool_attribute)i, 0), RONDO_INVALID_ARGUMENT);
    assert_int_equal(get(pool, (rondo_pool_attribute)i), 0);
  }
  static const int wrong[] = {0, 9, -1, 1 << 20};
  for (size_t i = 0; i < 4; i++) {
    assert_invalid(rondo_pool_get_attribute(pool, (rondo_pool_attribute)wrong[i], &value), RONDO_REASON_BAD_OPTIONS);
    assert_invalid(rondo_pool_set_attribute(pool, (rondo_pool_attribute)wrong[i], 0), RONDO_REASON_BAD_OPTIONS);
  }
  assert_reason(rondo_pool_get_attribute(NULL, RONDO_POOL_USED_HIGH, &value), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_pool_get_attribute(pool, RONDO_POOL_USED_HIGH, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_pool_set_attribute(NULL, RONDO_POOL_USED_HIGH, 0), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_pool_get_statistics(pool, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_pool_trim(NULL, 0), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_pool_destroy(pool));
}

/* Several pools --------------------------------------------------------------------------------------------------- */

TEST(test_gm19_the_current_pool) {
  rondo_pool *standard = NULL, *current = NULL, *pool = make_pool(t, 0);
  assert_ok(rondo_device_get_default_pool(t->device, &standard));
  assert_ok(rondo_device_get_pool(t->device, &current));
  assert_ptr_equal(current, standard);
  assert_ok(rondo_device_set_pool(t->device, pool));
  assert_ok(rondo_device_get_pool(t->device, &current));
  assert_ptr_equal(current, pool);
  void *of_pool = take(t->stream, NULL, 256), *of_standard = take(t->stream, standard, 256);
  assert_int_equal(test_pool_statistics(pool).live_allocations, 1);
  assert_int_equal(test_pool_statistics(standard).live_allocations, 1);
  assert_int_equal(test_memory_statistics(t).live_allocations, 2);
  assert_int_equal(test_memory_statistics(t).pool_reserved, 4 * MIB);
  assert_int_equal(test_memory_statistics(t).pool_used, 512);
  assert_ok(rondo_device_set_pool(t->device, NULL));
  assert_ok(rondo_device_get_pool(t->device, &current));
  assert_ptr_equal(current, standard);
  assert_ok(rondo_device_set_pool(t->device, pool));
  assert_ok(rondo_free_async(t->stream, of_pool));
  assert_ok(rondo_free_async(t->stream, of_standard));
  assert_ok(rondo_pool_destroy(pool)); /* P3: the default pool is current again */
  assert_ok(rondo_device_get_pool(t->device, &current));
  assert_ptr_equal(current, standard);
  assert_invalid(rondo_pool_destroy(standard), RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_pool_destroy(NULL));
}

/* P3: a pool destroyed while allocations live is freed with the last one. */
TEST_WORKERS(test_gm19_p3_destruction_is_deferred) {
  rondo_pool *pool = make_pool(t, UINT64_MAX);
  uint32_t *out = test_words(t, 1);
  void *first = take(t->stream, pool, MIB), *second = take(t->stream, pool, 2 * MIB);
  test_gate *gate = test_gate_make();
  assert_ok(rondo_pool_destroy(pool));
  assert_int_equal(test_memory_statistics(t).pool_reserved, 4 * MIB);
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = second, .value = 3, .element_bytes = 4, .width = 1}));
  assert_ok(rondo_copy_async(t->stream, out, second, 4));
  assert_ok(rondo_free_async(t->stream, first));
  assert_ok(rondo_free_async(t->stream, second));
  assert_int_equal(test_memory_statistics(t).live_allocations, 1); /* `out` */
  assert_int_equal(test_memory_statistics(t).pool_reserved, 4 * MIB);
  test_gate_open(gate);
  assert_int_equal(test_word(t, out), 3);
  assert_int_equal(test_memory_statistics(t).pool_reserved, 0);
}

TEST(test_gm19_a_device_with_pools_is_in_use) {
  rondo_device *device = NULL;
  rondo_pool *pool = NULL;
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  assert_ok(rondo_pool_create(device, NULL, &pool));
  assert_error(rondo_device_close(device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("by 1 pool: ");
  assert_ok(rondo_pool_destroy(pool));
  assert_ok(rondo_device_close(device));
}

TEST(test_gm19_pools_of_another_device) {
  rondo_pool *pool = NULL;
  void *address = t;
  rondo_device *device = test_device(test_device_name(), NULL);
  assert_ok(rondo_device_get_default_pool(device, &pool));
  assert_invalid(rondo_malloc_async(t->stream, 256, &(rondo_malloc_options){.pool = pool}, &address),
                 RONDO_REASON_OTHER_DEVICE);
  assert_null(address);
  assert_invalid(rondo_device_set_pool(t->device, pool), RONDO_REASON_OTHER_DEVICE);
  pool = (rondo_pool *)(void *)t;
  assert_reason(rondo_pool_create(NULL, NULL, &pool), RONDO_REASON_NULL_ARGUMENT);
  assert_null(pool);
  assert_reason(rondo_pool_create(device, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_device_get_pool(NULL, &pool), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_device_get_default_pool(device, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_device_set_pool(NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* While capturing, a pool named changes nothing: the allocation is the graph's. */
TEST(test_gm7_a_pool_named_while_capturing) {
  rondo_pool *pool = make_pool(t, 0);
  rondo_node nodes[2];
  rondo_node_params params;
  size_t count = 2;
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  void *address = take(t->stream, pool, 4096);
  assert_ok(rondo_free_async(t->stream, address));
  rondo_graph *graph = test_capture_end(t->stream);
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_int_equal(count, 2);
  assert_ok(rondo_graph_get_params(graph, nodes[0], &params));
  assert_int_equal(params.kind, RONDO_NODE_ALLOC);
  assert_ptr_equal(params.as.alloc.address, address);
  assert_int_equal(test_pool_statistics(pool).reserved, 0);
  test_run_once(t, graph);
  assert_ok(rondo_pool_destroy(pool));
}
