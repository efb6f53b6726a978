/* SPDX-License-Identifier: MIT
 * Graph memory and pools used by several threads at once, on the CPU device: clones of one graph, which share
 * addresses; separate graphs, which share heaps when launches move between streams, with trims and uploads in between;
 * and stream-ordered memory that passes between threads (GM-12, GM-13, GM-15, GX-10). If two launches have the same
 * pages at once, bytes are wrong or ThreadSanitizer reports a race in a kernel.
 */
#include <rondo/rondo.h>
#include <string.h>

#include "support/rondo_test.h"

enum { THREADS = 4, ROUNDS = 150, WORDS = 1024 };

typedef struct worker {
  rondo_device *device;
  rondo_stream *stream, *other;
  rondo_exec *shared, *own;
  uint32_t *results; /* one word for each exec: how often its scratch memory kept its value */
  uint32_t id;
  rondo_status status;
  char message[256];
} worker;

static void fill_words(rondo_blocks blocks, void *const *args) {
  const uint32_t value = *(const uint32_t *)args[0];
  uint32_t *words = *(uint32_t *const *)args[1];
  for (size_t i = blocks.first; i < blocks.last; i++) words[i] = value;
}

static void count_kept(rondo_blocks blocks, void *const *args) {
  const uint32_t value = *(const uint32_t *)args[0];
  const uint32_t *words = *(uint32_t *const *)args[1];
  uint32_t *result = *(uint32_t *const *)args[2];
  bool kept = true;
  (void)blocks;
  for (size_t i = 0; i < WORDS; i++) kept = kept && words[i] == value;
  *result += kept;
}

static const rondo_kernel_options fill_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "fill_words", .cpu = fill_words,
                                                  .params = {RONDO_SCALAR(uint32_t), RONDO_WRITES}};
static const rondo_kernel_options count_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "count_kept", .cpu = count_kept,
                                                   .params = {RONDO_SCALAR(uint32_t), RONDO_READS, RONDO_UPDATES}};

/* alloc -> fill with `value` -> count whether it is unchanged -> free. Nodes 1 and 2 have the value. */
static rondo_graph *make_graph(rondo_device *device, rondo_kernel *fill, rondo_kernel *count, uint32_t value,
                               uint32_t *result) {
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_create(device, NULL, &graph));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, WORDS * sizeof(uint32_t), "scratch", &scratch, &node));
  assert_ok(
      rondo_graph_add_kernel(graph, &node, 1, fill, (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&value, &scratch), &node));
  assert_ok(rondo_graph_add_kernel(graph, &node, 1, count, (rondo_grid){1, 0, 0}, RONDO_ARGS(&value, &scratch, &result),
                                   &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  return graph;
}

/* The clone's own value and result, at the shared addresses. */
static rondo_exec *make_clone_exec(const rondo_graph *graph, rondo_kernel *fill, rondo_kernel *count, uint32_t value,
                                   uint32_t *result) {
  rondo_graph *clone = NULL;
  rondo_node nodes[4];
  size_t node_count = 4;
  rondo_node_params alloc;
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_nodes(clone, nodes, &node_count));
  assert_ok(rondo_graph_get_params(clone, nodes[0], &alloc));
  const void *const fill_args[] = {&value, &alloc.as.alloc.address};
  const void *const count_args[] = {&value, &alloc.as.alloc.address, &result};
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = fill, .grid = {WORDS, 0, 0}, .args = fill_args, .arg_count = 2}};
  assert_ok(rondo_graph_set_params(clone, nodes[1], &params));
  params.as.kernel = (rondo_kernel_node){.kernel = count, .grid = {1, 0, 0}, .args = count_args, .arg_count = 3};
  assert_ok(rondo_graph_set_params(clone, nodes[2], &params));
  rondo_exec *exec = test_instantiate(clone);
  test_graph_destroy(clone);
  return exec;
}

static rondo_status launch_round(const worker *self, int round) {
  rondo_stream *stream = round % 7 == 0 ? self->other : self->stream;
  rondo_status status = rondo_exec_launch(self->shared, self->stream);
  if (status == RONDO_OK) status = rondo_exec_launch(self->own, stream);
  if (status == RONDO_OK && round % 31 == 0) status = rondo_exec_upload(self->own, self->stream);
  if (status == RONDO_OK && self->id == 0 && round % 40 == 0) status = rondo_graph_memory_trim(self->device);
  return status;
}

/* Pool memory: written in stream order, freed on one stream or the other. */
static rondo_status pool_round(const worker *self, int round) {
  void *memory = NULL;
  rondo_status status = rondo_malloc_async(self->stream, 1000 + 64 * (size_t)(round % 50), NULL, &memory);
  const rondo_fill fill = {.dst = memory, .value = self->id, .element_bytes = 1, .width = 1000};
  if (status == RONDO_OK) status = rondo_fill_async(self->stream, &fill);
  if (status == RONDO_OK) status = rondo_free_async(self->stream, memory);
  if (status == RONDO_OK) status = rondo_malloc(self->device, 3000, NULL, &memory);
  if (status == RONDO_OK) status = rondo_free(self->device, memory);
  return status;
}

static void work(void *user) {
  worker *self = user;
  for (int round = 0; round < ROUNDS && self->status == RONDO_OK; round++) {
    self->status = launch_round(self, round);
    if (self->status == RONDO_OK) self->status = pool_round(self, round);
  }
  if (self->status == RONDO_OK) self->status = rondo_stream_synchronize(self->stream);
  if (self->status == RONDO_OK) self->status = rondo_stream_synchronize(self->other);
  if (self->status != RONDO_OK) strncpy(self->message, rondo_last_error()->message, sizeof self->message - 1);
}

TEST_WORKERS(test_gm12_threads_share_addresses_and_heaps) {
  worker workers[THREADS] = {{.id = 0}};
  test_thread threads[THREADS];
  uint32_t *results = test_words(t, 2 * THREADS);
  rondo_kernel *fill = test_kernel_make(t, &fill_options);
  rondo_kernel *count = test_kernel_make(t, &count_options);
  rondo_graph *family = make_graph(t->device, fill, count, 1, results);
  for (uint32_t i = 0; i < THREADS; i++) {
    rondo_graph *own = make_graph(t->device, fill, count, 100 + i, results + THREADS + i);
    workers[i] = (worker){.device = t->device, .id = i, .results = results};
    workers[i].stream = test_stream(t, "own");
    workers[i].other = test_stream(t, "other");
    workers[i].shared = make_clone_exec(family, fill, count, 1 + i, results + i);
    workers[i].own = test_instantiate(own);
    test_graph_destroy(own);
    threads[i] = (test_thread){.function = work, .user = &workers[i]};
  }
  test_on_threads(threads, THREADS);
  for (uint32_t i = 0; i < THREADS; i++) {
    if (workers[i].status != RONDO_OK) fail_msg("thread %u: %s", i, workers[i].message);
    assert_int_equal(test_word(t, results + i), ROUNDS);
    assert_int_equal(test_word(t, results + THREADS + i), ROUNDS);
    rondo_exec_destroy(workers[i].shared);
    rondo_exec_destroy(workers[i].own);
    test_stream_destroy(workers[i].stream);
    test_stream_destroy(workers[i].other);
  }
  test_graph_destroy(family);
  rondo_kernel_destroy(fill);
  rondo_kernel_destroy(count);
  test_words_free(t, results);
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(test_memory_statistics(t).graph_reserved, 0);
}
