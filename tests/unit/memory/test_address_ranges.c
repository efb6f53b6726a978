/* SPDX-License-Identifier: MIT
 * Graphs whose address range is full and which get further ranges (GM-2): the placement, and what a launch maps, with
 * memory that outlives the graph and memory that is freed.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "fault/fake_driver.h"
#include "memory/graph_memory/address_ranges.h"
#include "support/rondo_test.h"

#define MIB ((size_t)1 << 20)

enum { FIRST = 64 }; /* MiB of the first range */

/* A graph with few addresses. */
static rondo_graph *make_graph(rondo_device *device) {
  rondo_graph *graph = NULL;
  assert_ok(rondo_graph_create(device, NULL, &graph));
  assert_ok(rondo_address_space_reserve(rondo_address_space_of(graph), 1));
  assert_int_equal(rondo_address_space_of(graph)->first.bytes, FIRST * MIB);
  return graph;
}

static char *add_alloc(rondo_graph *graph, rondo_node *last, size_t mib) {
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, last, last->id != 0, mib * MIB, NULL, &address, last));
  return address;
}

static void add_free(rondo_graph *graph, rondo_node *last, void *address) {
  assert_ok(rondo_graph_add_free(graph, last, 1, address, last));
}

static size_t count_ranges(const rondo_graph *graph) {
  size_t count = 0;
  const rondo_address_range *range = &rondo_address_space_of(graph)->first;
  for (; range != NULL; range = rondo_address_range_next(range)) count++;
  return count;
}

static size_t offset_of(const rondo_graph *graph, const char *address) {
  const rondo_address_space *space = rondo_address_space_of(graph);
  const size_t offset = rondo_address_space_offset(space, address);
  assert_ptr_equal(rondo_address_space_at(space, offset), address);
  return offset;
}

static void touch(char *address, size_t mib) { address[0] = address[mib * MIB - 1] = 1; }

static rondo_memory_statistics figures(rondo_device *device) {
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_memory_get_statistics(device, &statistics));
  return statistics;
}

static rondo_exec *launch(rondo_graph *graph, rondo_stream *stream) {
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  return exec;
}

/* A fake device, a stream, and a graph with few addresses. */
typedef struct rig {
  rondo_device *device;
  rondo_stream *stream;
  rondo_graph *graph;
  rondo_node last; /* of the graph */
} rig;

static rig open_rig(void) {
  rig r = {.device = fake_open(NULL)};
  assert_ok(rondo_stream_create(r.device, NULL, &r.stream));
  r.graph = make_graph(r.device);
  return r;
}

static void close_rig(const rig *r) {
  assert_ok(rondo_graph_destroy(r->graph));
  assert_ok(rondo_stream_destroy(r->stream));
  assert_int_equal(fake_close(r->device), 0);
}

/* The rest of a full range takes no memory, and gaps of all ranges are used. */
UNIT_TEST(test_gm2_a_graph_gets_further_addresses) {
  rig r = open_rig();
  char *small, *large, *reused;
  char *kept = add_alloc(r.graph, &r.last, 30);
  small = add_alloc(r.graph, &r.last, 20);
  large = add_alloc(r.graph, &r.last, 40);
  assert_int_equal(count_ranges(r.graph), 2);
  assert_int_equal(offset_of(r.graph, small), 30 * MIB);
  assert_int_equal(offset_of(r.graph, large), 50 * MIB);
  add_free(r.graph, &r.last, small);
  reused = add_alloc(r.graph, &r.last, 20);
  assert_ptr_equal(reused, small);
  add_free(r.graph, &r.last, kept);
  add_free(r.graph, &r.last, large);
  add_free(r.graph, &r.last, reused);
  fake_of(r.device)->most_addresses = 600 * MIB; /* the second range has more */
  char *many[12];
  for (int i = 0; i < 12; i++) many[i] = add_alloc(r.graph, &r.last, 100);
  for (int i = 0; i < 12; i++) add_free(r.graph, &r.last, many[i]);
  assert_int_equal(count_ranges(r.graph), 2);
  rondo_exec *exec = launch(r.graph, r.stream);
  assert_int_equal(figures(r.device).graph_used, 1250 * MIB); /* 50 in the first range, where nothing more fits */
  rondo_exec_destroy(exec);
  close_rig(&r);
}

/* Where a process has few addresses left, ranges are as large as they can be. */
UNIT_TEST(test_gm2_many_ranges) {
  rig r = open_rig();
  fake_of(r.device)->most_addresses = 300 * MIB;
  char *many[12];
  for (int i = 0; i < 12; i++) many[i] = add_alloc(r.graph, &r.last, 60);
  for (int i = 0; i < 12; i++) add_free(r.graph, &r.last, many[i]);
  assert_in_range(count_ranges(r.graph), 3, 6);
  rondo_exec *exec = launch(r.graph, r.stream);
  assert_int_equal(figures(r.device).graph_used, 720 * MIB);
  rondo_exec_destroy(exec);
  close_rig(&r);
}

/* The last size tried is the one that is needed. */
UNIT_TEST(test_gm2_a_process_with_hardly_enough_addresses) {
  rondo_device *device = fake_open(NULL);
  rondo_graph *graph = NULL;
  rondo_node last = {0};
  void *none = device;
  assert_ok(rondo_graph_create(device, NULL, &graph));
  fake_of(device)->most_addresses = 1000 * MIB;
  assert_error(rondo_graph_add_alloc(graph, NULL, 0, 1001 * MIB, NULL, &none, &last), RONDO_OUT_OF_MEMORY,
               RONDO_REASON_ADDRESS_SPACE);
  assert_message("reserving at least 1001.0 MiB of addresses for graph memory");
  assert_null(none);
  last = (rondo_node){0};
  (void)add_alloc(graph, &last, 900);
  fake_of(device)->most_addresses = 700 * MIB;
  (void)add_alloc(graph, &last, 600);
  assert_int_equal(count_ranges(graph), 2);
  assert_ok(rondo_graph_destroy(graph));
  assert_int_equal(fake_close(device), 0);
}

/* Memory that the graph leaves allocated, on both sides of a border of ranges, is freed separately. */
UNIT_TEST(test_gm4_memory_that_stays_in_two_ranges) {
  rig r = open_rig();
  char *before = add_alloc(r.graph, &r.last, 50), *after = add_alloc(r.graph, &r.last, 20);
  assert_int_equal(count_ranges(r.graph), 2);
  assert_int_equal(offset_of(r.graph, after), offset_of(r.graph, before) + 50 * MIB);
  rondo_exec *exec = launch(r.graph, r.stream);
  touch(before, 50);
  touch(after, 20);
  assert_int_equal(figures(r.device).graph_used, 70 * MIB);
  assert_ok(rondo_free(r.device, before));
  assert_ok(rondo_graph_memory_trim(r.device));
  touch(after, 20);
  assert_ok(rondo_free(r.device, after));
  assert_ok(rondo_exec_launch(exec, r.stream));
  touch(before, 50);
  assert_ok(rondo_free_async(r.stream, before));
  assert_ok(rondo_free_async(r.stream, after));
  rondo_exec_destroy(exec);
  close_rig(&r);
}

/* A clone uses the ranges that its original got, and vice versa. */
UNIT_TEST(test_gm2_clones_share_further_addresses) {
  rig r = open_rig();
  rondo_graph *clone = NULL;
  rondo_node copy = {0};
  char *addresses[3];
  addresses[0] = add_alloc(r.graph, &r.last, 50);
  assert_ok(rondo_graph_clone(r.graph, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, r.last, &copy));
  addresses[1] = add_alloc(r.graph, &r.last, 50);
  addresses[2] = add_alloc(clone, &copy, 60);
  assert_int_equal(count_ranges(r.graph), 2);
  assert_true(addresses[2] >= addresses[1] + 50 * MIB);
  for (int i = 0; i < 2; i++) {
    add_free(r.graph, &r.last, addresses[i]);
    add_free(clone, &copy, addresses[2 * i]);
  }
  rondo_exec *execs[] = {launch(r.graph, r.stream), launch(clone, r.stream)};
  assert_ok(rondo_graph_destroy(r.graph));
  assert_ok(rondo_exec_launch(execs[0], r.stream));
  for (int i = 0; i < 2; i++) rondo_exec_destroy(execs[i]);
  r.graph = clone;
  close_rig(&r);
}

/* Each call that can fail fails while a space grows. */
UNIT_TEST(test_gm2_growth_that_fails_leaves_the_graph) {
  for (size_t fail_at = 1, failures = 1; failures > 0; fail_at++) {
    rondo_device *device = fake_open(NULL);
    rondo_graph *graph = make_graph(device);
    rondo_node last = {0}, next = {0};
    void *address = NULL;
    (void)add_alloc(graph, &last, 50);
    fake_of(device)->fail_at = fake_of(device)->calls + fail_at;
    fake_of(device)->fail_rest = true;
    const rondo_status status = rondo_graph_add_alloc(graph, &last, 1, 50 * MIB, NULL, &address, &next);
    failures = status != RONDO_OK;
    fake_of(device)->fail_at = 0;
    if (failures > 0) {
      assert_null(address);
      assert_int_equal(count_ranges(graph), 1);
      (void)add_alloc(graph, &last, 50);
    }
    assert_int_equal(count_ranges(graph), 2);
    assert_ok(rondo_graph_destroy(graph));
    assert_int_equal(fake_close(device), 0);
  }
}

/* Another graph may use an allocation in a later range while it is live (GM-18). */
UNIT_TEST(test_gm18_uses_of_further_ranges) {
  static const char *const names[] = {"cpu", "cpu:check"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    assert_ok(rondo_device_open(names[k], NULL, &device));
    assert_ok(rondo_stream_create(device, NULL, &stream));
    rondo_graph *graph = make_graph(device), *user = NULL;
    rondo_node last = {0}, node = {0};
    char *near = add_alloc(graph, &last, 50), *far = add_alloc(graph, &last, 50);
    assert_int_equal(count_ranges(graph), 2);
    const rondo_fill fill = {.dst = far, .width = 50 * MIB, .height = 1, .value = 7, .element_bytes = 1};
    assert_ok(rondo_graph_create(device, NULL, &user));
    assert_ok(rondo_graph_add_fill(user, NULL, 0, &fill, &node));
    rondo_exec *exec = test_instantiate(graph);
    rondo_exec *use = test_instantiate(user);
    assert_error(rondo_exec_launch(use, stream), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
    assert_error(rondo_fill_async(stream, &fill), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
    assert_ok(rondo_exec_launch(exec, stream));
    assert_ok(rondo_exec_launch(use, stream));
    assert_ok(rondo_stream_synchronize(stream));
    assert_int_equal(far[50 * MIB - 1], 7);
    assert_ok(rondo_free(device, near));
    assert_ok(rondo_free(device, far));
    assert_error(rondo_exec_launch(use, stream), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
    rondo_exec_destroy(exec);
    assert_ok(rondo_graph_destroy(graph));
    assert_error(rondo_exec_launch(use, stream), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
    assert_message("memory of a graph that was destroyed");
    rondo_exec_destroy(use);
    assert_ok(rondo_graph_destroy(user));
    assert_ok(rondo_stream_destroy(stream));
    assert_ok(rondo_device_close(device));
  }
}

/* On all available devices: data in all ranges. */
UNIT_TEST(test_gm2_data_in_several_ranges) {
  static const char *const names[] = {"cpu", "cpu:check"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    assert_ok(rondo_device_open(names[k], NULL, &device));
    assert_ok(rondo_stream_create(device, NULL, &stream));
    rondo_graph *graph = make_graph(device);
    rondo_node last = {0};
    enum { BLOCKS = 6 };
    char *blocks[BLOCKS], byte = 0;
    for (int i = 0; i < BLOCKS; i++) {
      blocks[i] = add_alloc(graph, &last, 40);
      const rondo_fill fill = {
          .dst = blocks[i], .width = 40 * MIB, .height = 1, .value = (uint32_t)i + 1, .element_bytes = 1};
      assert_ok(rondo_graph_add_fill(graph, &last, 1, &fill, &last));
    }
    assert_true(count_ranges(graph) > 1);
    rondo_exec *exec = launch(graph, stream);
    for (int i = 0; i < BLOCKS; i++) {
      assert_ok(rondo_copy_async(stream, &byte, blocks[i] + 40 * MIB - 1, 1));
      assert_ok(rondo_stream_synchronize(stream));
      assert_int_equal(byte, i + 1);
      assert_ok(rondo_free_async(stream, blocks[i]));
    }
    rondo_exec_destroy(exec);
    assert_ok(rondo_graph_destroy(graph));
    assert_ok(rondo_stream_destroy(stream));
    assert_ok(rondo_device_close(device));
  }
}
