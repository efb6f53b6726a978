/* SPDX-License-Identifier: MIT
 * GM-18: work in a graph may access the same memory as work on a stream. Memory that its nodes declare must be
 * allocated when the graph is launched. Freed memory is an error already in instantiate, update and patch. The error
 * names node, address, allocation and remedy, nothing runs, and the exec can be launched once the memory is allocated.
 */
#define _DEFAULT_SOURCE
#include "support/test_effort.h"
#include "support/test_graph_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rondo/patch.h>

enum { WORDS = 16, BYTES = WORDS * 4, LARGE = 8 << 20, HUGE = 96 << 20 };

/* A graph that allocates `bytes`, sets the first words to 7 and leaves them allocated. */
static rondo_graph *make_owner(test_fixture *t, uint32_t **out_words) {
  rondo_graph *graph = test_graph(t);
  const test_allocation kept = test_add_alloc(graph, NULL, 0, BYTES, "kept");
  test_add_set(t, graph, kept.node, kept.words, WORDS, 7);
  *out_words = kept.words;
  return graph;
}

/* The accesses to `words`: a copy's source and destination, a fill, and a kernel's pointer. */
enum { WAYS = 4 };

static rondo_node add_use(test_fixture *t, rondo_graph *graph, int way, uint32_t *words, uint32_t *other) {
  rondo_node node = {0};
  const rondo_fill fill = {.dst = words, .value = 7, .element_bytes = 4, .width = WORDS};
  const rondo_copy copy = {.dst = way == 0 ? other : words, .src = way == 0 ? words : other, .width = BYTES};
  if (way < 2) assert_ok(rondo_graph_add_copy(graph, NULL, 0, &copy, &node));
  if (way == 2) assert_ok(rondo_graph_add_fill(graph, NULL, 0, &fill, &node));
  if (way == 3) node = test_add_affine(t, graph, NULL, 0, words, 1, 0);
  return node;
}

static void refuse_launch(test_fixture *t, rondo_exec *exec, rondo_reason reason, const char *words) {
  assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_LIFETIME, reason);
  assert_message("rondo_exec_launch");
  assert_message("(node 0)");
  assert_message(words);
}

static void assert_names(const void *address) {
  char text[32];
  snprintf(text, sizeof text, "%p", address);
  assert_message(text);
}

/* Memory of another graph: instantiated before it is allocated, launched while it is, in child graphs too. */
TEST(test_gm18_graph_memory_of_another_graph) {
  uint32_t *kept = NULL, *other = test_words(t, WORDS);
  rondo_graph *owner = make_owner(t, &kept);
  rondo_exec *owns = test_instantiate(owner);
  for (int i = 0; i < 2 * WAYS; i++) {
    rondo_graph *user = test_graph(t), *outer = test_graph(t);
    rondo_node node;
    add_use(t, user, i % WAYS, kept, other);
    assert_ok(rondo_graph_add_child(outer, NULL, 0, user, &node));
    rondo_exec *uses = test_instantiate(i < WAYS ? user : outer);
    refuse_launch(t, uses, i == 0 ? RONDO_REASON_NOT_ALLOCATED : RONDO_REASON_USE_AFTER_FREE, "'kept' (64 B)");
    assert_names(kept);
    assert_message(i == 0 ? "no launch has left allocated" : "was freed");
    assert_message("launch a graph first that allocates it");
    assert_ok(rondo_exec_launch(owns, t->stream));
    for (int k = 0; k < 2; k++) assert_ok(rondo_exec_launch(uses, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_ok(rondo_free(t->device, kept));
    refuse_launch(t, uses, RONDO_REASON_USE_AFTER_FREE, "'kept' (64 B)");
    rondo_exec_destroy(uses);
    test_graph_destroy(user);
    test_graph_destroy(outer);
  }
  test_assert_all(t, other, WORDS, 7);
}

/* An exec that frees the memory itself, between launches of the one that allocates it: each has its turn. */
TEST(test_gm18_allocated_and_freed_in_turn) {
  uint32_t *kept = NULL, *other = test_words(t, WORDS);
  rondo_graph *owner = make_owner(t, &kept), *reader = test_graph(t), *last = test_graph(t);
  add_use(t, reader, 0, kept, other);
  test_add_free(last, add_use(t, last, 0, kept, other), kept);
  rondo_exec *owns = test_instantiate(owner), *reads = test_instantiate(reader), *frees = test_instantiate(last);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(owns, t->stream));
    assert_ok(rondo_exec_launch(reads, t->stream));
    assert_ok(rondo_exec_launch(frees, t->stream));
    refuse_launch(t, reads, RONDO_REASON_USE_AFTER_FREE, "'kept'");
    assert_error(rondo_exec_launch(frees, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  }
  assert_ok(rondo_stream_synchronize(t->stream));
  test_assert_all(t, other, WORDS, 7);
}

/* The graph that would have allocated it is gone: its addresses are nobody's. */
TEST(test_gm18_memory_of_a_graph_that_is_gone) {
  uint32_t *kept = NULL, *other = test_words(t, WORDS);
  rondo_graph *owner = make_owner(t, &kept), *user = test_graph(t);
  add_use(t, user, 0, kept, other);
  rondo_exec *uses = test_instantiate(user);
  test_graph_destroy(owner);
  refuse_launch(t, uses, RONDO_REASON_NOT_ALLOCATED, "of a graph that was destroyed");
}

/* Memory of the other kinds, small (the device keeps its addresses) and large (its addresses go back to the system). */
static uint32_t *take(test_fixture *t, int kind, size_t bytes) {
  void *address = NULL;
  if (kind == 0) assert_ok(rondo_malloc(t->device, bytes, "gone", &address));
  if (kind == 1) assert_ok(rondo_malloc_async(t->stream, bytes, &(rondo_malloc_options){.name = "gone"}, &address));
  if (kind == 2) assert_ok(rondo_host_malloc(t->device, bytes, &address));
  assert_ok(rondo_stream_synchronize(t->stream));
  return address;
}

static void give(test_fixture *t, int kind, void *address) {
  if (kind == 0) assert_ok(rondo_free(t->device, address));
  if (kind == 1) assert_ok(rondo_free_async(t->stream, address));
  if (kind == 2) assert_ok(rondo_host_free(t->device, address));
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_gm18_memory_freed_before_a_launch) {
  uint32_t *other = test_words(t, WORDS);
  for (int i = 0; i < 6 * WAYS; i++) {
    const int kind = i / 2 % 3, way = i / 6;
    if (kind == 2 && way > 1) continue; /* host memory is for copies */
    rondo_graph *user = test_graph(t);
    uint32_t *gone = take(t, kind, i % 2 == 0 ? BYTES : LARGE);
    rondo_node node = add_use(t, user, way, gone, other);
    rondo_exec *uses = test_instantiate(user);
    for (int k = 0; k < 2; k++) assert_ok(rondo_exec_launch(uses, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    give(t, kind, gone);
    refuse_launch(t, uses, RONDO_REASON_USE_AFTER_FREE, "which was freed");
    assert_names(gone);
    if (kind < 2) assert_message("'gone'");
    assert_ok(rondo_exec_set_enabled(uses, node, false));
    assert_ok(rondo_exec_launch(uses, t->stream)); /* work that does not run accesses nothing */
    assert_ok(rondo_exec_set_enabled(uses, node, true));
    refuse_launch(t, uses, RONDO_REASON_USE_AFTER_FREE, "which was freed");
    rondo_exec_destroy(uses);
    test_graph_destroy(user);
  }
}

/* A CUDA driver may keep freed addresses mapped. Then freed memory cannot be told from memory that someone else
 * allocated there. Memory that the device itself keeps is always recognized. */
static bool is_kept_by_driver(int kind, void *address, size_t bytes) {
  const char *device = getenv("RONDO_TEST_DEVICE");
  const bool is_real = device != NULL && strncmp(device, "cuda", 4) == 0 && getenv("RONDO_CUDA_LIBRARY") == NULL;
  const bool is_sanitized = TEST_EFFORT_DIVISOR > 1 && kind == 2; /* a sanitizer's allocator keeps it mapped, too */
  const bool is_given_back = kind == 0 ? bytes > BYTES : kind == 1 || bytes == HUGE;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  return (is_real || is_sanitized) && is_given_back &&
         msync((void *)((uintptr_t)address & ~(page - 1)), page, MS_ASYNC) == 0;
}

/* Freed memory is refused where it is named: by the graph, by instantiate and by changes of an exec. */
static void refuse_freed(test_fixture *t, int kind, size_t bytes, int way, uint32_t *other) {
  rondo_graph *user = test_graph(t), *stale = test_graph(t);
  rondo_exec *uses = NULL, *none = NULL;
  uint32_t *gone = take(t, kind, bytes), *lives = take(t, 0, BYTES);
  const rondo_node node = add_use(t, user, way, lives, other), mate = add_use(t, stale, way, gone, other);
  uses = test_instantiate(user);
  give(t, kind, gone);
  if (is_kept_by_driver(kind, gone, bytes)) {
    give(t, 0, lives);
    rondo_exec_destroy(uses);
    test_graph_destroy(user);
    test_graph_destroy(stale);
    return;
  }
  assert_error(rondo_instantiate(stale, NULL, &none), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  if (kind < 2) assert_message("'gone'");
  assert_names(gone);
  assert_null(none);
  rondo_node_params params = test_node_params(stale, mate);
  assert_error(rondo_exec_set_params(uses, node, &params), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_names(gone);
  assert_fails(rondo_exec_update(uses, stale, NULL), RONDO_UPDATE_REFUSED);
  assert_names(gone);
  assert_ok(rondo_exec_launch(uses, t->stream)); /* as it was */
  assert_ok(rondo_stream_synchronize(t->stream));
  give(t, 0, lives);
  rondo_exec_destroy(uses);
  test_graph_destroy(user);
  test_graph_destroy(stale);
}

TEST(test_gm18_freed_memory_is_refused_at_once) {
  uint32_t *other = test_words(t, WORDS);
  for (int i = 0; i < 3 * WAYS; i++) {
    const int kind = i % 3, way = i / 3;
    if (kind == 2 && way > 1) continue; /* host memory is for copies */
    refuse_freed(t, kind, BYTES, way, other);
    if (kind == 2) refuse_freed(t, kind, LARGE, way, other);
    if (kind == 2) refuse_freed(t, kind, HUGE, way, other);
  }
}

static void refuse_copies(test_fixture *t, uint32_t *gone, uint32_t *other) {
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  for (int way = 0; way < 2; way++) {
    const rondo_copy copy = {.dst = way == 0 ? other : gone, .src = way == 0 ? gone : other, .width = BYTES};
    assert_error(rondo_graph_add_copy(graph, NULL, 0, &copy, &node), RONDO_INVALID_LIFETIME,
                 RONDO_REASON_USE_AFTER_FREE);
    assert_message("which was freed");
    assert_error(rondo_copy_async(t->stream, copy.dst, copy.src, BYTES), RONDO_INVALID_LIFETIME,
                 RONDO_REASON_USE_AFTER_FREE);
    assert_message("which was freed");
  }
  test_graph_destroy(graph);
}

/* It cannot be named later either, whatever its size, as long as no one else has the addresses. */
TEST(test_gm18_freed_memory_cannot_be_named) {
  static const size_t sizes[] = {BYTES, LARGE, HUGE};
  uint32_t *other = test_words(t, WORDS);
  for (int i = 0; i < 9; i++) {
    uint32_t *gone = take(t, i / 3, sizes[i % 3]);
    give(t, i / 3, gone);
    if (!is_kept_by_driver(i / 3, gone, sizes[i % 3])) refuse_copies(t, gone, other);
  }
}

/* Memory of the program at the addresses of freed host memory is accepted. */
TEST(test_gm18_addresses_of_freed_host_memory_that_others_have) {
  uint32_t *other = test_words(t, WORDS);
  for (int i = 0; i < 200; i++) {
    const size_t bytes = i < 180 ? BYTES : i < 190 ? LARGE : HUGE;
    give(t, 2, take(t, 2, bytes));
    uint32_t *mine = malloc(bytes);
    assert_non_null(mine);
    for (int k = 0; k < WORDS; k++) mine[k] = 7;
    rondo_graph *graph = test_graph(t);
    add_use(t, graph, 0, mine, other);
    test_run_once(t, graph);
    assert_ok(rondo_copy_async(t->stream, other, mine, BYTES));
    assert_ok(rondo_stream_synchronize(t->stream));
    test_graph_destroy(graph);
    free(mine);
  }
  test_assert_all(t, other, WORDS, 7);
}

/* New addresses, then the old ones are freed: only what the exec has now counts. */
TEST(test_gm18_old_addresses_are_freed) {
  uint32_t *other = test_words(t, WORDS);
  for (int way = 0; way < WAYS; way++) {
    rondo_graph *user = test_graph(t), *next = test_graph(t);
    uint32_t *before = take(t, 0, LARGE), *after = take(t, 0, LARGE);
    const rondo_node node = add_use(t, user, way, before, other), mate = add_use(t, next, way, after, other);
    rondo_exec *uses = test_instantiate(user);
    assert_ok(rondo_exec_launch(uses, t->stream));
    rondo_node_params params = test_node_params(next, mate);
    assert_ok(way % 2 == 0 ? rondo_exec_set_params(uses, node, &params) : rondo_exec_update(uses, next, NULL));
    assert_ok(rondo_stream_synchronize(t->stream));
    give(t, 0, before);
    test_launch(t, uses);
    give(t, 0, after);
    refuse_launch(t, uses, RONDO_REASON_USE_AFTER_FREE, "'gone'");
    rondo_exec_destroy(uses);
    test_graph_destroy(user);
    test_graph_destroy(next);
  }
}

static uint64_t withheld_bytes(const test_fixture *t) { return test_memory_statistics(t).host_withheld; }

/* The addresses of small blocks are kept, whatever else is freed, until the device is trimmed. */
TEST(test_gm18_freed_host_memory_is_kept_and_counted) {
  uint32_t *other = test_words(t, WORDS), *gone = take(t, 2, BYTES);
  assert_ok(rondo_memory_trim(t->device));
  assert_int_equal(withheld_bytes(t), 0);
  give(t, 2, gone);
  assert_int_equal(withheld_bytes(t), BYTES);
  give(t, 2, take(t, 2, HUGE));
  assert_int_equal(withheld_bytes(t), BYTES);
  refuse_copies(t, gone, other);
  assert_ok(rondo_memory_trim(t->device));
  assert_int_equal(withheld_bytes(t), 0);
}

TEST(test_gm18_patched_addresses) {
  uint32_t *other = test_words(t, WORDS), *before = take(t, 0, BYTES), *after = take(t, 0, BYTES),
           *fixed = take(t, 0, BYTES);
  rondo_graph *user = test_graph(t);
  rondo_patch_set *set = NULL;
  add_use(t, user, 3, fixed, other);
  add_use(t, user, 0, before, other);
  rondo_exec *uses = test_instantiate(user);
  const rondo_patch_input input = {.name = "in", .address = before, .bytes = BYTES};
  assert_ok(rondo_patch_set_create(uses, &input, 1, NULL, &set));
  assert_ok(rondo_patch_set_launch(set, t->stream, (const void *[]){before}));
  assert_ok(rondo_stream_synchronize(t->stream));
  give(t, 0, before);
  assert_error(rondo_patch_set_launch(set, t->stream, (const void *[]){before}), RONDO_INVALID_LIFETIME,
               RONDO_REASON_USE_AFTER_FREE);
  assert_message("rondo_patch_set_launch");
  for (int i = 0; i < 2; i++) assert_ok(rondo_patch_set_launch(set, t->stream, (const void *[]){after}));
  test_launch(t, uses);
  give(t, 0, fixed);
  refuse_launch(t, uses, RONDO_REASON_USE_AFTER_FREE, "'gone'");
  assert_error(rondo_patch_set_launch(set, t->stream, (const void *[]){after}), RONDO_INVALID_LIFETIME,
               RONDO_REASON_USE_AFTER_FREE);
  give(t, 0, after);
  rondo_patch_set_destroy(set);
}
