/* SPDX-License-Identifier: MIT
 * Heaps through public calls: physical bytes, remaps and growth of graphs on streams, in exact bytes (GM-12 to GM-16).
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fake_driver.h"
#include "memory/heap/graph_heap.h"
#include "memory/memory_check.h"
#include "support/rondo_test.h"

#define S ((size_t)64 << 10)

typedef struct rig {
  rondo_device *device;
  rondo_stream *streams[8];
} rig;

static void set_up(rig *self) {
  self->device = fake_open(NULL);
  for (int i = 0; i < 8; i++) assert_ok(rondo_stream_create(self->device, NULL, &self->streams[i]));
}

static void tear_down(rig *self) {
  assert_true(test_destroy_left());
  for (int i = 0; i < 8; i++) assert_ok(rondo_stream_destroy(self->streams[i]));
  assert_int_equal(fake_close(self->device), 0);
}

static int set_up_test(void **state) {
  static rig self;
  set_up(&self);
  *state = &self;
  return 0;
}

static int tear_down_test(void **state) {
  tear_down(*state);
  return 0;
}

static rondo_memory_statistics figures(const rig *self) {
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_memory_get_statistics(self->device, &statistics));
  return statistics;
}

/* Checks all of the device's memory, heap by heap. */
static void check_memory(const rig *self) {
  rondo_device_memory *memory = rondo_device_memory_made(self->device);
  pthread_mutex_lock(&memory->lock);
  rondo_memory_check(memory);
  pthread_mutex_unlock(&memory->lock);
  for (rondo_heap *heap = memory->heaps; heap != NULL; heap = heap->next) {
    rondo_heap_enter(heap);
    rondo_heap_check(heap);
    rondo_heap_leave(heap);
  }
}

/* The memory of graphs, by Rondo's statistics and by the driver's ledger. */
static size_t held(const rig *self) {
  check_memory(self);
  const rondo_memory_statistics statistics = figures(self);
  assert_int_equal(statistics.graph_reserved, fake_of(self->device)->physical_bytes);
  return (size_t)statistics.graph_reserved;
}

/* An exec that allocates `bytes` and frees them, or leaves them allocated. */
static rondo_exec *make_exec(rig *self, size_t bytes, bool keep, void **out_address) {
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  void *address = NULL;
  assert_ok(rondo_graph_create(self->device, NULL, &graph));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, bytes, "block", &address, &node));
  if (!keep) assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_graph_destroy(graph));
  if (out_address != NULL) *out_address = address;
  return exec;
}

#define WITH_RIG_TEST(name) TEST_REGISTER(name, rig *self, set_up_test, tear_down_test, false)

/* GM-12: launches on two streams, one after the other is complete, share memory; launches that overlap do not; and in
 * alternation the streams do not take it from each other forever. */
WITH_RIG_TEST(test_gm12_streams_share_one_after_another) {
  rondo_exec *execs[3];
  void *addresses[3];
  for (int i = 0; i < 3; i++) execs[i] = make_exec(self, S, false, &addresses[i]);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(execs[i], self->streams[i]));
    memset(addresses[i], i, S);
    assert_int_equal(held(self), S);
  }
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 3; i++) {
      assert_ok(rondo_exec_launch(execs[i], self->streams[i]));
      memset(addresses[i], i, S);
    }
  assert_int_equal(held(self), 3 * S);
  const uint64_t remaps = figures(self).remaps;
  assert_true(remaps <= 2);
  fake_of(self->device)->stalled = true;
  for (int i = 0; i < 6; i++) assert_ok(rondo_exec_launch(execs[i % 3], self->streams[i % 3]));
  assert_int_equal(figures(self).remaps, remaps);
  rondo_exec *more = make_exec(self, S, false, NULL);
  assert_ok(rondo_exec_launch(more, self->streams[4])); /* nobody is idle */
  assert_int_equal(held(self), 4 * S);
  rondo_exec_destroy(more);
  for (int i = 0; i < 3; i++) rondo_exec_destroy(execs[i]);
}

/* An exec with holes: temporaries around two allocations that stay. Returns the bytes of the temporaries. */
static rondo_exec *make_holed(rig *self, void *kept[2], char *temporaries[3]) {
  static const size_t sizes[] = {3 * FAKE_PAGE, FAKE_PAGE + 100, 5 * FAKE_PAGE, 10, 2 * FAKE_PAGE};
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  assert_ok(rondo_graph_create(self->device, NULL, &graph));
  for (int i = 0; i < 5; i++) {
    void *address = NULL;
    assert_ok(rondo_graph_add_alloc(graph, &node, i > 0, sizes[i], NULL, &address, &node));
    if (i % 2 == 1)
      kept[i / 2] = address;
    else
      temporaries[i / 2] = address;
  }
  for (int i = 0; i < 3; i++) assert_ok(rondo_graph_add_free(graph, &node, 1, temporaries[i], &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_graph_destroy(graph));
  return exec;
}

/* Chunks are mapped around memory that stays, also if the heap was one chunk before, and if another exec needs it whole
 * afterwards. */
UNIT_TEST(test_gm13_chunks_around_unfreed_memory) {
  for (int before = 0; before < 2; before++) {
    rig self;
    set_up(&self);
    void *kept[2], *whole_address;
    char *temporaries[3];
    rondo_exec *whole = make_exec(&self, 16 * FAKE_PAGE, false, &whole_address);
    if (before == 1) assert_ok(rondo_exec_launch(whole, self.streams[0]));
    rondo_exec *holed = make_holed(&self, kept, temporaries);
    assert_ok(rondo_exec_launch(holed, self.streams[0]));
    memset(kept[0], 1, FAKE_PAGE + 100);
    memset(kept[1], 2, 10);
    memset(temporaries[0], 3, 3 * FAKE_PAGE);
    memset(temporaries[1], 4, 5 * FAKE_PAGE);
    memset(temporaries[2], 5, 2 * FAKE_PAGE);
    assert_ok(rondo_exec_launch(whole, self.streams[0]));
    memset(whole_address, 6, 16 * FAKE_PAGE);
    for (size_t i = 0; i < FAKE_PAGE + 100; i++) assert_int_equal(((char *)kept[0])[i], 1);
    assert_int_equal(((char *)kept[1])[9], 2);
    const size_t private_bytes = 4 * FAKE_PAGE; /* pages 3 and 4 of the first, 9 and 10 of what follows it */
    assert_true(held(&self) <= 16 * FAKE_PAGE + private_bytes);
    const uint64_t remaps = figures(&self).remaps;
    assert_ok(rondo_free(self.device, kept[0]));
    assert_ok(rondo_free(self.device, kept[1]));
    for (int i = 0; i < 5; i++) {
      assert_ok(rondo_exec_launch(whole, self.streams[0]));
      assert_ok(rondo_exec_launch(holed, self.streams[0]));
      for (int k = 0; k < 2; k++) assert_ok(rondo_free_async(self.streams[0], kept[k]));
    }
    assert_int_equal(figures(&self).remaps, remaps); /* steady */
    rondo_exec_destroy(whole);
    rondo_exec_destroy(holed);
    tear_down(&self);
  }
}

/* GM-13, GM-14: a launch on another stream remaps nothing and waits for the last one; an upload there moves the memory;
 * after an upload the launch maps nothing. */
WITH_RIG_TEST(test_gm14_launches_and_uploads_on_other_streams) {
  rondo_exec *exec = make_exec(self, S, false, NULL);
  assert_ok(rondo_exec_upload(exec, self->streams[0]));
  const size_t maps = fake_of(self->device)->maps;
  assert_int_equal(maps, 1);
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  const size_t waits = fake_of(self->device)->waits;
  assert_ok(rondo_exec_launch(exec, self->streams[1]));
  assert_int_equal(fake_of(self->device)->waits, waits + 1);
  assert_ok(rondo_exec_launch(exec, self->streams[1]));
  assert_int_equal(fake_of(self->device)->waits, waits + 1);
  assert_int_equal(fake_of(self->device)->maps, maps);
  assert_int_equal(figures(self).remaps, 0);
  assert_ok(rondo_exec_upload(exec, self->streams[1]));
  assert_int_equal(figures(self).remaps, 1);
  assert_int_equal(held(self), 2 * S);
  assert_ok(rondo_exec_launch(exec, self->streams[1]));
  assert_int_equal(figures(self).remaps, 1);
  assert_ok(rondo_graph_memory_trim(self->device));
  assert_int_equal(held(self), 0);
  assert_ok(rondo_exec_launch(exec, self->streams[1])); /* GM-15: maps again */
  assert_int_equal(held(self), S);
  assert_int_equal(figures(self).remaps, 2);
}

/* GM-14: another stream does not take memory that was uploaded and not launched yet. */
WITH_RIG_TEST(test_gm14_uploaded_memory_stays) {
  rondo_exec *uploaded = make_exec(self, S, false, NULL), *other = make_exec(self, S, false, NULL);
  assert_ok(rondo_exec_upload(uploaded, self->streams[0]));
  assert_ok(rondo_exec_launch(other, self->streams[1]));
  assert_int_equal(held(self), 2 * S);
  const size_t maps = fake_of(self->device)->maps;
  assert_ok(rondo_exec_launch(uploaded, self->streams[0]));
  assert_int_equal(fake_of(self->device)->maps, maps);
}

/* Another graph on the first stream waits for the graph that was launched on the second stream with the first one's
 * heap. */
WITH_RIG_TEST(test_gm12_a_moved_launch_orders_the_heap) {
  rondo_exec *moved = make_exec(self, S, false, NULL), *other = make_exec(self, S, false, NULL);
  assert_ok(rondo_exec_launch(moved, self->streams[0]));
  assert_ok(rondo_exec_launch(other, self->streams[0]));
  assert_ok(rondo_exec_launch(moved, self->streams[1]));
  const size_t waits = fake_of(self->device)->waits;
  assert_ok(rondo_exec_launch(other, self->streams[0]));
  assert_int_equal(fake_of(self->device)->waits, waits + 1);
}

/* GM-12: a free on another stream comes before the next life of the same allocation. */
WITH_RIG_TEST(test_gm9_a_free_elsewhere_is_waited_for) {
  void *kept;
  rondo_exec *exec = make_exec(self, S, true, &kept);
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  assert_ok(rondo_free_async(self->streams[3], kept));
  const size_t waits = fake_of(self->device)->waits;
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  assert_int_equal(fake_of(self->device)->waits, waits + 1);
  assert_ok(rondo_free_async(self->streams[0], kept));
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  assert_int_equal(fake_of(self->device)->waits, waits + 1);
  assert_ok(rondo_free(self->device, kept));
}

/* A graph with memory inside a graph with memory: each has its own pages, and each still runs alone. */
WITH_RIG_TEST(test_gm20_children_with_memory) {
  rondo_graph *inner = NULL, *outer = NULL;
  rondo_node node = {0};
  void *in = NULL, *out = NULL;
  assert_ok(rondo_graph_create(self->device, NULL, &inner));
  assert_ok(rondo_graph_create(self->device, NULL, &outer));
  assert_ok(rondo_graph_add_alloc(inner, NULL, 0, S, "inner", &in, &node));
  assert_ok(rondo_graph_add_free(inner, &node, 1, in, &node));
  assert_ok(rondo_graph_add_alloc(outer, NULL, 0, 2 * S, "outer", &out, &node));
  assert_ok(rondo_graph_add_child(outer, &node, 1, inner, &node));
  assert_ok(rondo_graph_add_free(outer, &node, 1, out, &node));
  rondo_exec *alone = test_instantiate(inner);
  rondo_exec *both = test_instantiate(outer);
  assert_ok(rondo_exec_launch(alone, self->streams[0]));
  assert_int_equal(held(self), S);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(both, self->streams[0]));
    memset(in, 1, S);
    memset(out, 2, 2 * S);
    for (size_t k = 0; k < S; k++) assert_int_equal(((char *)in)[k], 1);
    assert_ok(rondo_exec_launch(alone, self->streams[0]));
  }
  assert_int_equal(held(self), 3 * S);
  assert_true(figures(self).remaps <= 1);
  assert_ok(rondo_graph_destroy(inner));
  assert_ok(rondo_graph_destroy(outer));
}

/* Graph and exec are destroyed in flight: addresses and pages stay until the launch is complete. */
WITH_RIG_TEST(test_gm4_destroyed_in_flight) {
  fake_of(self->device)->stalled = true;
  rondo_exec *exec = make_exec(self, S, false, NULL);
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  rondo_exec_destroy(exec);
  assert_int_equal(figures(self).graph_used, S);
  assert_int_equal(fake_of(self->device)->reservations, 1);
  fake_of(self->device)->stalled = false;
  assert_int_equal(figures(self).graph_used, 0);
  assert_int_equal(fake_of(self->device)->reservations, 0);
  assert_int_equal(held(self), S);
}

/* If memory cannot be unmapped, an upload cannot move it; the exec still works, and so does a later upload. */
WITH_RIG_TEST(test_unmapping_fails) {
  void *address;
  rondo_exec *exec = make_exec(self, S, false, &address);
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  fake_of(self->device)->fail_unmaps = true;
  assert_fails(rondo_exec_upload(exec, self->streams[1]), RONDO_OUT_OF_MEMORY);
  assert_fails(rondo_exec_launch(exec, self->streams[0]), RONDO_OUT_OF_MEMORY);
  assert_fails(rondo_graph_memory_trim(self->device), RONDO_OUT_OF_MEMORY);
  fake_of(self->device)->fail_unmaps = false;
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  memset(address, 1, S);
  assert_ok(rondo_exec_upload(exec, self->streams[1]));
  memset(address, 1, S);
}

/* A heap outlives its stream and serves the next one. */
WITH_RIG_TEST(test_a_heap_is_inherited) {
  rondo_exec *exec = make_exec(self, S, false, NULL), *other = make_exec(self, S, false, NULL);
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  assert_ok(rondo_stream_destroy(self->streams[0]));
  assert_ok(rondo_stream_create(self->device, NULL, &self->streams[0]));
  assert_ok(rondo_exec_launch(other, self->streams[0]));
  assert_ok(rondo_exec_launch(exec, self->streams[0]));
  assert_int_equal(held(self), S);
  assert_int_equal(figures(self).remaps, 0);
}

/* GM-20, decision 2: execs of a graph and its clone share addresses; an allocation that one left live keeps the others
 * from overwriting it. */
WITH_RIG_TEST(test_gm20_relatives_do_not_run_over_each_other) {
  rondo_graph *graph = NULL, *clone = NULL;
  rondo_node node = {0}, copy = {0};
  void *address = NULL;
  assert_ok(rondo_graph_create(self->device, NULL, &graph));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, S, "shared", &address, &node));
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, node, &copy));
  assert_ok(rondo_graph_add_free(clone, &copy, 1, address, &copy));
  rondo_exec *keeps = test_instantiate(graph);
  rondo_exec *again = test_instantiate(graph);
  rondo_exec *frees = test_instantiate(clone);
  assert_ok(rondo_exec_launch(frees, self->streams[0]));
  assert_ok(rondo_exec_launch(keeps, self->streams[1]));
  assert_error(rondo_exec_launch(frees, self->streams[0]), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  assert_message("shared");
  assert_error(rondo_exec_launch(again, self->streams[0]), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  assert_ok(rondo_free_async(self->streams[2], address));
  assert_ok(rondo_exec_launch(again, self->streams[0]));
  assert_ok(rondo_free_async(self->streams[2], address));
  assert_ok(rondo_exec_launch(frees, self->streams[0]));
  assert_error(rondo_free_async(self->streams[2], address), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_graph_destroy(clone));
}

/* Random execs on random streams: temporaries of different graphs share pages, and memory that stays never changes. */
UNIT_TEST(test_gm12_random_launches) {
  enum { EXECS = 12, STEPS = 400 };
  rig self;
  set_up(&self);
  uint64_t random = 5;
  rondo_exec *execs[EXECS];
  void *kept[EXECS][2];
  char *temporaries[EXECS][3];
  bool alive[EXECS] = {false};
  unsigned char marks[EXECS];
  for (int i = 0; i < EXECS; i++) execs[i] = make_holed(&self, kept[i], temporaries[i]);
  for (int step = 0; step < STEPS; step++) {
    const uint32_t at = test_random_below(&random, EXECS);
    rondo_stream *stream = self.streams[test_random_below(&random, 3)];
    const uint32_t what = test_random_below(&random, 20);
    if (what == 0) assert_ok(rondo_graph_memory_trim(self.device));
    if (what == 1) assert_ok(rondo_exec_upload(execs[at], stream));
    if (alive[at]) {
      assert_error(rondo_exec_launch(execs[at], stream), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
      for (int k = 0; k < 2; k++) assert_int_equal(*(unsigned char *)kept[at][k], marks[at]);
      for (int k = 0; k < 2; k++) assert_ok(rondo_free_async(stream, kept[at][k]));
    } else {
      assert_ok(rondo_exec_launch(execs[at], stream));
      marks[at] = (unsigned char)step;
      for (int k = 0; k < 3; k++) memset(temporaries[at][k], ~step & 0xff, 2 * FAKE_PAGE);
      for (int k = 0; k < 2; k++) *(unsigned char *)kept[at][k] = marks[at];
    }
    alive[at] = !alive[at];
    for (int i = 0; i < EXECS; i++)
      for (int k = 0; k < 2 && alive[i]; k++) assert_int_equal(*(unsigned char *)kept[i][k], marks[i]);
    assert_true(held(&self) <= EXECS * 4 * FAKE_PAGE + 3 * 16 * FAKE_PAGE);
  }
  for (int i = 0; i < EXECS; i++) {
    for (int k = 0; k < 2 && alive[i]; k++) assert_ok(rondo_free(self.device, kept[i][k]));
    rondo_exec_destroy(execs[i]);
  }
  tear_down(&self);
}
