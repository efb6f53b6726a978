/* SPDX-License-Identifier: MIT
 * GM-18 (M5 to M8): every misuse of memory has its own error, which names the allocation, and changes nothing; calls
 * that only look like a misuse pass.
 */
#define _GNU_SOURCE
#include "support/rondo_test.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 4096, LARGE = 8 << 20 };

static void *take_async(test_fixture *t, size_t bytes, const char *name) {
  void *address = NULL;
  assert_ok(rondo_malloc_async(t->stream, bytes, &(rondo_malloc_options){.name = name}, &address));
  return address;
}

#define assert_misuse(call, reason, words)              \
  do {                                                  \
    assert_error(call, RONDO_INVALID_LIFETIME, reason); \
    assert_message(words);                              \
  } while (false)

/* All three ways to free it fail with the same error. */
static void check_frees(test_fixture *t, void *address, rondo_reason reason, const char *words) {
  assert_misuse(rondo_free(t->device, address), reason, words);
  assert_message("rondo_free: ");
  assert_misuse(rondo_free_async(t->stream, address), reason, words);
  assert_message("rondo_free_async: ");
}

TEST(test_gm18_double_frees) {
  static const size_t sizes[] = {100, LARGE};
  for (size_t i = 0; i < 2; i++)
    for (int way = 0; way < 4; way++) {
      void *address = way % 2 == 0 ? test_allocate(t, sizes[i], "twice") : take_async(t, sizes[i], "twice");
      if (way / 2 == 0) assert_ok(rondo_free(t->device, address));
      if (way / 2 == 1) assert_ok(rondo_free_async(t->stream, address));
      check_frees(t, address, RONDO_REASON_DOUBLE_FREE, i == 0 ? "'twice' (100 B)" : "'twice' (8.0 MiB)");
      assert_ok(rondo_stream_synchronize(t->stream));
      check_frees(t, address, RONDO_REASON_DOUBLE_FREE, "'twice'");
    }
  void *host = NULL;
  assert_ok(rondo_host_malloc(t->device, 300, &host));
  assert_ok(rondo_host_free(t->device, host));
  assert_misuse(rondo_host_free(t->device, host), RONDO_REASON_DOUBLE_FREE, "300 bytes");
  assert_ok(rondo_free(t->device, NULL));
  assert_ok(rondo_host_free(t->device, NULL));
}

TEST(test_gm18_addresses_inside) {
  char *plain = test_allocate(t, BYTES, "plain"), *ordered = take_async(t, BYTES, "ordered"), *host = NULL;
  assert_ok(rondo_host_malloc(t->device, BYTES, (void **)&host));
  check_frees(t, plain + 1, RONDO_REASON_INTERIOR_ADDRESS, "1 byte into allocation 'plain' (4.0 KiB)");
  check_frees(t, plain + BYTES - 1, RONDO_REASON_INTERIOR_ADDRESS, "4095 bytes into allocation 'plain'");
  check_frees(t, ordered + 256, RONDO_REASON_INTERIOR_ADDRESS, "256 bytes into allocation 'ordered'");
  assert_misuse(rondo_host_free(t->device, host + 8), RONDO_REASON_INTERIOR_ADDRESS, "8 bytes into 4096 bytes");
  assert_ok(rondo_free(t->device, plain));
  assert_ok(rondo_free_async(t->stream, ordered));
  assert_ok(rondo_host_free(t->device, host));
}

TEST(test_gm18_the_wrong_call) {
  char *plain = test_allocate(t, BYTES, "plain"), *host = NULL;
  assert_ok(rondo_host_malloc(t->device, BYTES, (void **)&host));
  check_frees(t, host, RONDO_REASON_WRONG_MEMORY, "rondo_host_free");
  check_frees(t, host + 16, RONDO_REASON_WRONG_MEMORY, "16 bytes into 4096 bytes of host memory");
  assert_misuse(rondo_host_free(t->device, plain), RONDO_REASON_WRONG_MEMORY, "'plain'");
  assert_misuse(rondo_host_free(t->device, plain + 16), RONDO_REASON_WRONG_MEMORY, "16 bytes into allocation 'plain'");
  assert_ok(rondo_free(t->device, plain));
  assert_ok(rondo_host_free(t->device, host));
}

TEST(test_gm18_foreign_addresses) {
  rondo_device *other = NULL;
  void *theirs = NULL, *heap = malloc(64);
  int local = 0;
  assert_ok(rondo_device_open(test_device_name(), NULL, &other));
  assert_ok(rondo_malloc(other, 64, "theirs", &theirs));
  void *const foreign[] = {&local, heap, theirs, (void *)1, (void *)UINTPTR_MAX};
  for (size_t i = 0; i < 5; i++) {
    check_frees(t, foreign[i], RONDO_REASON_FOREIGN_ADDRESS, "is not the address of an allocation of device");
    assert_misuse(rondo_host_free(t->device, foreign[i]), RONDO_REASON_FOREIGN_ADDRESS, "is not host memory");
  }
  check_frees(t, theirs, RONDO_REASON_FOREIGN_ADDRESS, "belongs to another device opened as");
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_invalid(rondo_graph_add_free(graph, NULL, 0, theirs, &node), RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("belongs to another device opened as");
  test_graph_destroy(graph);
  assert_ok(rondo_free(other, theirs));
  assert_ok(rondo_device_close(other));
  free(heap);
}

/* alloc -> fill -> free, or without the free. */
static rondo_graph *make_graph(test_fixture *t, const char *name, bool frees, void **out_address) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, name, out_address, &node));
  const rondo_fill fill = {.dst = *out_address, .element_bytes = 4, .width = BYTES / 4};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  if (frees) assert_ok(rondo_graph_add_free(graph, &node, 1, *out_address, &node));
  return graph;
}

TEST(test_gm18_m6_graph_memory) {
  void *kept = NULL, *scratch = NULL;
  rondo_node node;
  rondo_graph *keeps = make_graph(t, "kept", false, &kept), *frees = make_graph(t, "scratch", true, &scratch);
  rondo_exec *exec = test_instantiate(keeps);
  check_frees(t, kept, RONDO_REASON_NOT_ALLOCATED, "'kept'");
  check_frees(t, scratch, RONDO_REASON_NOT_ALLOCATED, "'scratch'");
  test_run_once(t, frees);
  check_frees(t, scratch, RONDO_REASON_NOT_ALLOCATED, "'scratch'");
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  assert_message("'kept'");
  check_frees(t, (char *)kept + 64, RONDO_REASON_INTERIOR_ADDRESS, "64 bytes into allocation 'kept'");
  assert_ok(rondo_free_async(t->stream, kept));
  check_frees(t, kept, RONDO_REASON_DOUBLE_FREE, "'kept'");
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free(t->device, kept));
  assert_invalid(rondo_graph_add_free(frees, NULL, 0, scratch, &node), RONDO_REASON_DOUBLE_FREE);
  assert_message("'scratch'");
}

/* C15, M6: free nodes name memory of alloc nodes; the error says what the memory is instead. */
TEST(test_gm18_m6_free_nodes_of_other_memory) {
  rondo_graph *graph = test_graph(t);
  char *plain = test_allocate(t, BYTES, "plain"), *gone = test_allocate(t, BYTES, "gone"), *host = NULL;
  rondo_node node;
  int local = 0;
  assert_ok(rondo_host_malloc(t->device, BYTES, (void **)&host));
  assert_ok(rondo_free(t->device, gone));
  void *made = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, BYTES, "made", &made, &node));
  char *inside = (char *)made + 8;
  const struct {
    void *address;
    const char *words;
  } cases[] = {{plain, "the address of allocation 'plain' (4.0 KiB), of no alloc node: free it outside of graphs"},
               {plain + 8, "8 bytes into allocation 'plain'"},
               {inside, "8 bytes into allocation 'made' (4.0 KiB) of an alloc node: free its address"},
               {host, "the address of 4096 bytes of host memory"},
               {gone, "allocation 'gone' (4.0 KiB), freed before"},
               {&local, "is not the address of an alloc node"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_invalid(rondo_graph_add_free(graph, NULL, 0, cases[i].address, &node), RONDO_REASON_FOREIGN_ADDRESS);
    assert_message(cases[i].words);
    assert_true(node.id == 0);
  }
  assert_fails(rondo_graph_add_free(graph, NULL, 0, NULL, &node), RONDO_INVALID_ARGUMENT);
  assert_ok(rondo_free(t->device, plain));
  assert_ok(rondo_host_free(t->device, host));
}

static void assert_node_count(const rondo_graph *graph, size_t expected) {
  size_t count = 0;
  assert_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, expected);
}

/* M6: an allocation is freed by its own graph or by others, whichever has a free node first, until that is gone. */
TEST(test_gm18_m6_free_nodes_here_and_there) {
  void *memory = NULL;
  rondo_node node, own, outside, nodes[2];
  size_t count = 2;
  rondo_graph *owner = make_graph(t, "shared", false, &memory), *other = test_graph(t), *third = test_graph(t);
  assert_ok(rondo_graph_nodes(owner, nodes, &count));
  assert_ok(rondo_graph_add_free(other, NULL, 0, memory, &outside));
  assert_invalid(rondo_graph_add_free(owner, &nodes[1], 1, memory, &node), RONDO_REASON_DOUBLE_FREE);
  assert_message("'shared'");
  assert_message("another graph");
  assert_true(node.id == 0);
  assert_node_count(owner, 2);
  assert_ok(rondo_graph_add_free(third, NULL, 0, memory, &node)); /* others may, one after the other */
  test_graph_destroy(third);
  assert_fails(rondo_graph_add_free(owner, &nodes[1], 1, memory, &node), RONDO_INVALID_ARGUMENT);
  assert_ok(rondo_graph_remove(other, outside));
  assert_ok(rondo_graph_add_free(owner, &nodes[1], 1, memory, &own));
  assert_invalid(rondo_graph_add_free(other, NULL, 0, memory, &node), RONDO_REASON_DOUBLE_FREE);
  assert_message("'shared'");
  assert_node_count(other, 0);
  assert_ok(rondo_graph_remove(owner, own));
  assert_ok(rondo_graph_add_free(other, NULL, 0, memory, &outside));
  rondo_exec *frees = test_exec_of(other);
  assert_fails(rondo_graph_add_free(owner, &nodes[1], 1, memory, &node), RONDO_INVALID_ARGUMENT); /* the exec's */
  rondo_exec_destroy(frees);
  assert_ok(rondo_graph_add_free(owner, &nodes[1], 1, memory, &own));
}

/* M6, GM-20: of a graph and its clone, one may free what the other leaves. The second launch then finds nothing to
 * free, or the memory still allocated, and reports it before anything runs. */
TEST(test_gm20_m6_clones_free_here_and_there) {
  void *memory = NULL;
  rondo_node node, mate = {0}, nodes[2];
  size_t count = 2;
  rondo_graph *owner = make_graph(t, "shared", false, &memory), *other = test_graph(t), *clone = NULL;
  assert_ok(rondo_graph_nodes(owner, nodes, &count));
  assert_ok(rondo_graph_clone(owner, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, nodes[1], &mate));
  assert_ok(rondo_graph_add_free(other, NULL, 0, memory, &node));
  assert_ok(rondo_graph_add_free(clone, &mate, 1, memory, &node));
  rondo_exec *keeps = test_instantiate(owner), *outside = test_instantiate(other), *frees = test_instantiate(clone);
  assert_ok(rondo_exec_launch(frees, t->stream));
  assert_error(rondo_exec_launch(outside, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_message("'shared'");
  assert_ok(rondo_exec_launch(keeps, t->stream));
  assert_error(rondo_exec_launch(frees, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  assert_ok(rondo_exec_launch(outside, t->stream));
  assert_error(rondo_exec_launch(outside, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_ok(rondo_exec_launch(frees, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  test_graph_destroy(clone);
}

/* A copy out of, a copy into and a fill of the bytes all fail alike. */
static void check_uses(test_fixture *t, void *address, rondo_reason reason, const char *words) {
  char outside[64] = {0};
  assert_misuse(rondo_copy_async(t->stream, outside, address, 64), reason, words);
  assert_message("source of 64 bytes");
  assert_misuse(rondo_copy_async(t->stream, address, outside, 64), reason, words);
  assert_message("destination of 64 bytes");
  const rondo_fill fill = {.dst = address, .element_bytes = 1, .width = 64};
  assert_misuse(rondo_fill_async(t->stream, &fill), reason, words);
  assert_message("rondo_fill_async");
}

TEST(test_gm18_use_after_free) {
  rondo_pool *pool = NULL;
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  char outside[64];
  assert_ok(rondo_device_get_default_pool(t->device, &pool));
  assert_ok(rondo_pool_set_attribute(pool, RONDO_POOL_RELEASE_THRESHOLD, UINT64_MAX));
  for (int way = 0; way < 2; way++) {
    char *address = way == 0 ? test_allocate(t, BYTES, "gone") : take_async(t, BYTES, "gone");
    assert_ok(rondo_copy_async(t->stream, outside, address, 64));
    if (way == 0) assert_ok(rondo_stream_synchronize(t->stream));
    assert_ok(way == 0 ? rondo_free(t->device, address) : rondo_free_async(t->stream, address));
    check_uses(t, address, RONDO_REASON_USE_AFTER_FREE, "the address of allocation 'gone' (4.0 KiB), which was freed");
    check_uses(t, address + 512, RONDO_REASON_USE_AFTER_FREE, "512 bytes into allocation 'gone'");
    const rondo_fill fill = {.dst = address, .element_bytes = 1, .width = 64};
    assert_misuse(rondo_graph_add_fill(graph, NULL, 0, &fill, &node), RONDO_REASON_USE_AFTER_FREE, "'gone'");
    assert_ok(rondo_stream_synchronize(t->stream));
    check_uses(t, address, RONDO_REASON_USE_AFTER_FREE, "'gone'");
  }
}

/* Graph memory, used from outside: only what a launch has left allocated, in the order of the calls. */
TEST(test_gm18_m4_use_of_graph_memory) {
  void *kept = NULL, *scratch = NULL;
  char outside[64];
  rondo_graph *keeps = make_graph(t, "kept", false, &kept), *frees = make_graph(t, "scratch", true, &scratch);
  rondo_exec *exec = test_instantiate(keeps);
  check_uses(t, kept, RONDO_REASON_NOT_ALLOCATED, "'kept'");
  test_run_once(t, frees);
  check_uses(t, scratch, RONDO_REASON_NOT_ALLOCATED, "'scratch'");
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_copy_async(t->stream, outside, kept, 64));
  assert_invalid(rondo_copy_async(t->stream, outside, (char *)kept + BYTES - 63, 64), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_free_async(t->stream, kept));
  check_uses(t, kept, RONDO_REASON_USE_AFTER_FREE, "'kept'");
}

/* Addresses that were given back to the system may be anybody's. */
TEST(test_gm18_addresses_come_back_as_other_memory) {
  if (!test_device_is("cpu") || test_is_guarded(t)) skip(); /* a guarded device keeps them for a while */
  uint32_t *words = test_words(t, 16);
  void *address = test_allocate(t, LARGE, "large");
  assert_ok(rondo_free(t->device, address));
  char *own = mmap(address, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  assert_ptr_equal(own, address);
  own[0] = 17;
  assert_ok(rondo_copy_async(t->stream, words, own, 64));
  assert_int_equal(test_word(t, words), 17);
  assert_int_equal(munmap(own, LARGE), 0);
}

/* M5: sizes that make no sense. */
TEST(test_gm18_m5_sizes_of_alloc_nodes) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  void *address = t;
  assert_invalid(rondo_graph_add_alloc(graph, NULL, 0, 0, "none", &address, &node), RONDO_REASON_BAD_SIZE);
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50};
  for (size_t i = 0; i < 3; i++) {
    assert_fails(rondo_graph_add_alloc(graph, NULL, 0, sizes[i], "vast", &address, &node), RONDO_OUT_OF_MEMORY);
    assert_true(address == NULL && node.id == 0);
  }
}
