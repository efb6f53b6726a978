/* SPDX-License-Identifier: MIT
 * Collectives of all ranks: their results for each type and reduction, eager and captured, in place and not, with a
 * thread for each rank and with one thread for all, on the minimum number of workers (TR-16, MM-3). Those of pairs and
 * of subgroups are in test_collective_groups.c.
 */
#include <string.h>

#include "support/test_numbers.h"
#include "support/test_ranks.h"

enum { MOST = 300000 /* elements of 4 bytes: many times what is combined at once */ };

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* Element `i` of rank `rank`: a small whole number, so that sums are exact in all types. */
static int64_t value_of(uint32_t rank, size_t i) { return (int64_t)((i * 7 + rank * 13) % 19) - 9; }

static int64_t combine(rondo_reduction reduction, int64_t a, int64_t b) {
  if (reduction == RONDO_REDUCE_SUM || reduction == RONDO_REDUCE_AVERAGE) return a + b;
  return (reduction == RONDO_REDUCE_MAX) == (a > b) ? a : b;
}

static int64_t combined(uint32_t world_size, rondo_reduction reduction, size_t i) {
  int64_t result = value_of(0, i);
  for (uint32_t rank = 1; rank < world_size; rank++) result = combine(reduction, result, value_of(rank, i));
  return result;
}

/* Collectives ------------------------------------------------------------------------------------------------------ */

typedef enum operation { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, OPERATIONS } operation;

typedef struct task {
  operation operation;
  rondo_type type;
  rondo_reduction reduction;
  size_t count;
  bool in_place, captured;
  uint32_t root;
} task;

static size_t src_count(const task *k, uint32_t world_size) {
  return k->operation == REDUCE_SCATTER || k->operation == ALL_TO_ALL ? k->count * world_size : k->count;
}

static size_t dst_count(const task *k, uint32_t world_size) {
  return k->operation == ALL_GATHER || k->operation == ALL_TO_ALL ? k->count * world_size : k->count;
}

/* Element `i` of a source. Those of an average are multiples of the number of ranks, so that it is a whole number. */
static int64_t source(const task *k, const test_rank *rank, size_t i) {
  return value_of(rank->rank, i) * (k->reduction == RONDO_REDUCE_AVERAGE ? (int64_t)rank->world_size : 1);
}

static int64_t expected(const task *k, const test_rank *rank, size_t i) {
  switch (k->operation) {
    case ALL_REDUCE:
      return combined(rank->world_size, k->reduction, i);
    case BROADCAST:
      return value_of(k->root, i);
    case ALL_GATHER:
      return value_of((uint32_t)(i / k->count), i % k->count);
    case ALL_TO_ALL:
      return value_of((uint32_t)(i / k->count), rank->rank * k->count + i % k->count);
    default:
      return combined(rank->world_size, k->reduction, rank->rank * k->count + i);
  }
}

/* The larger of the two. */
static size_t most_count(const task *k, uint32_t world_size) {
  const size_t src = src_count(k, world_size), dst = dst_count(k, world_size);
  return src > dst ? src : dst;
}

/* Where the two buffers are: in place a part of the larger one is the smaller. */
static void place(const task *k, const test_rank *rank, char **src, char **dst) {
  const size_t own = rank->rank * k->count * rondo_type_bytes(k->type);
  *src = rank->src;
  *dst = rank->dst;
  if (!k->in_place) return;
  if (k->operation == ALL_GATHER)
    *src = *dst + own;
  else
    *dst = *src + (k->operation == REDUCE_SCATTER ? own : 0);
}

static rondo_status call(const task *k, test_rank *rank) {
  char *src, *dst;
  rondo_stream *stream = rank->fixture.stream;
  place(k, rank, &src, &dst);
  switch (k->operation) {
    case ALL_REDUCE:
      return rondo_all_reduce(rank->communicator, stream, src, dst, k->count, k->type, k->reduction);
    case BROADCAST:
      return rondo_broadcast(rank->communicator, stream, rank->rank == k->root ? src : NULL, dst, k->count, k->type,
                             k->root);
    case ALL_GATHER:
      return rondo_all_gather(rank->communicator, stream, src, dst, k->count, k->type);
    case ALL_TO_ALL:
      return rondo_all_to_all(rank->communicator, stream, src, dst, k->count, k->type);
    default:
      return rondo_reduce_scatter(rank->communicator, stream, src, dst, k->count, k->type, k->reduction);
  }
}

static rondo_status fill_sources(const task *k, test_rank *rank, int64_t *host) {
  const size_t count = src_count(k, rank->world_size), bytes = count * rondo_type_bytes(k->type);
  char *src, *dst;
  place(k, rank, &src, &dst);
  memset(host, 0xff, most_count(k, rank->world_size) * sizeof *host);
  TRY(rondo_copy_async(rank->fixture.stream, dst, host, dst_count(k, rank->world_size) * rondo_type_bytes(k->type)));
  TRY(rondo_stream_synchronize(rank->fixture.stream));
  for (size_t i = 0; i < count; i++) test_put_number(host, k->type, i, source(k, rank, i));
  TRY(rondo_copy_async(rank->fixture.stream, src, host, bytes));
  return rondo_stream_synchronize(rank->fixture.stream);
}

static rondo_status run_captured(const task *k, test_rank *rank) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(call(k, rank));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  rondo_status status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK && !k->in_place) status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  rondo_exec_destroy(exec);
  return status;
}

/* test_rank_function: fills, calls, compares; a difference is a failure of its own. */
static rondo_status run_task(test_rank *rank, void *user) {
  const task *k = user;
  const size_t most = most_count(k, rank->world_size);
  int64_t *host = test_calloc(most, sizeof *host), *wanted = test_calloc(most, sizeof *wanted);
  const size_t count = dst_count(k, rank->world_size), bytes = count * rondo_type_bytes(k->type);
  char *src, *dst;
  place(k, rank, &src, &dst);
  rondo_status status = fill_sources(k, rank, host);
  if (status == RONDO_OK) status = k->captured ? run_captured(k, rank) : call(k, rank);
  if (status == RONDO_OK) status = rondo_copy_async(rank->fixture.stream, host, dst, bytes);
  if (status == RONDO_OK) status = rondo_stream_synchronize(rank->fixture.stream);
  for (size_t i = 0; i < count; i++) test_put_number(wanted, k->type, i, expected(k, rank, i));
  if (status == RONDO_OK && memcmp(host, wanted, bytes) != 0) {
    print_error("rank %u: operation %d of %zu %s gives something else (in place %d, captured %d)\n", rank->rank,
                (int)k->operation, k->count, rondo_type_name(k->type), k->in_place, k->captured);
    status = RONDO_INVALID_DATA;
  }
  test_free(host);
  test_free(wanted);
  return status;
}

static const size_t counts[] = {1, 5, 1024, 4099};
static const rondo_type types[] = {RONDO_F32, RONDO_F64, RONDO_I32, RONDO_I64, RONDO_F16, RONDO_BF16, RONDO_I8};
enum { TYPES = sizeof types / sizeof types[0] };

static bool is_reduced(operation which) { return which == ALL_REDUCE || which == REDUCE_SCATTER; }

static void run_all_forms(test_ranks *self, task k) {
  for (int form = 0; form < 4; form++) {
    k.in_place = form % 2 != 0;
    k.captured = form >= 2;
    if (k.in_place && k.operation == ALL_TO_ALL) continue;
    test_ranks_do(self, run_task, &k);
  }
}

DEVICE_TEST(test_tr16_mm3_operations_compute_what_they_say) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (int o = 0; o < OPERATIONS; o++) {
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
      task k = {.operation = (operation)o, .type = types[c], .count = counts[c], .root = 1};
      if (is_reduced(k.operation)) k.reduction = (rondo_reduction)(1 + (c + (size_t)o) % 3);
      run_all_forms(&self, k);
    }
  }
  test_ranks_close(&self);
}

static bool has_average(rondo_type type) { return type != RONDO_I32 && type != RONDO_I64 && type != RONDO_I8; }

DEVICE_TEST(test_tr16_mm3_every_type_is_reduced) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (size_t t = 0; t < TYPES; t++) {
    for (int r = RONDO_REDUCE_SUM; r <= (has_average(types[t]) ? RONDO_REDUCE_AVERAGE : RONDO_REDUCE_MIN); r++) {
      task k = {.type = types[t], .count = 100, .reduction = (rondo_reduction)r};
      for (int form = 0; form < 4; form++) {
        k.operation = form % 2 == 0 ? ALL_REDUCE : REDUCE_SCATTER;
        k.captured = form >= 2;
        test_ranks_do(&self, run_task, &k);
      }
    }
  }
  test_ranks_close(&self);
}

DEVICE_TEST(test_tr16_mm3_every_type_is_moved) {
  static const operation moving[] = {BROADCAST, ALL_GATHER, ALL_TO_ALL};
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (size_t t = 0; t < TYPES; t++) {
    for (size_t o = 0; o < sizeof moving / sizeof moving[0]; o++) {
      task k = {.operation = moving[o], .type = types[t], .count = 33, .root = 1};
      test_ranks_do(&self, run_task, &k);
    }
  }
  test_ranks_close(&self);
}

/* Many times what is combined at once (32 KiB), and one element more and less than that. */
DEVICE_TEST(test_tr16_mm3_sizes_around_a_chunk) {
  static const size_t chunks[] = {8191, 8192, 8193, 16384, 2 * 16384 + 1};
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
    task k = {.operation = ALL_REDUCE, .type = RONDO_F32, .count = chunks[i], .reduction = RONDO_REDUCE_SUM};
    run_all_forms(&self, k);
    k.operation = REDUCE_SCATTER;
    k.type = RONDO_F16;
    k.reduction = RONDO_REDUCE_AVERAGE;
    run_all_forms(&self, k);
  }
  test_ranks_close(&self);
}

/* Large ones; and what the communicator says of itself. */
DEVICE_TEST(test_tr16_mm3_large_ones) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (int o = 0; o < OPERATIONS; o++) {
    task k = {.operation = (operation)o, .type = RONDO_F32, .count = MOST / TEST_RANKS};
    if (is_reduced(k.operation)) k.reduction = RONDO_REDUCE_SUM;
    run_all_forms(&self, k);
  }
  if (!test_device_is("cuda")) {
    rondo_communicator_info info = {.struct_size = sizeof info};
    assert_ok(rondo_communicator_get_info(self.ranks[1].communicator, &info));
    assert_int_equal(info.rank, 1);
    assert_int_equal(info.world_size, self.count);
    assert_false(info.failed);
    assert_int_equal(info.collectives, 4 * OPERATIONS - 2);
    assert_true(info.completed >= info.collectives);
    assert_string_equal(info.engine, "process");
  }
  test_ranks_close(&self);
}

/* Order of summation ---------------------------------------------------------------------------------------------- */

static const float parts[] = {1e8f, 1.0f, -1e8f};

typedef struct order_task {
  float results[TEST_RANKS];
  uint64_t random;
} order_task;

static rondo_status sum_late(test_rank *rank, void *user) {
  order_task *self = user;
  rondo_stream *stream = rank->fixture.stream;
  TRY(rondo_copy_async(stream, rank->src, &parts[rank->rank], sizeof(float)));
  if ((self->random >> rank->rank) % 2 != 0) test_sleep_ms(2);
  TRY(rondo_all_reduce(rank->communicator, stream, rank->src, rank->dst, 1, RONDO_F32, RONDO_REDUCE_SUM));
  TRY(rondo_copy_async(stream, &self->results[rank->rank], rank->dst, sizeof(float)));
  return rondo_stream_synchronize(stream);
}

/* (1e8 + 1) - 1e8 is 0 in single precision; other orders give 1. The order of arrival must not matter. */
DEVICE_TEST(test_tr16_sums_are_in_the_order_of_ranks) {
  test_ranks self;
  order_task sums = {.random = 0};
  test_ranks_open(&self, NULL);
  volatile float wanted = parts[0] + parts[1];
  for (uint32_t rank = 2; rank < self.count; rank++) wanted = wanted + parts[rank];
  for (sums.random = 0; sums.random < 16; sums.random++) {
    test_ranks_do(&self, sum_late, &sums);
    for (uint32_t rank = 0; rank < self.count; rank++) assert_true(sums.results[rank] == wanted);
  }
  test_ranks_close(&self);
}

/* Replays ---------------------------------------------------------------------------------------------------------- */

enum { REPLAYS = 25, WORDS = 2000 };

/* Each rank's own graph: words = words * 3 + rank + 1; words = the sum of all ranks'. */
static rondo_status replay(test_rank *rank, void *user) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  rondo_exec *exec;
  const uint32_t factor = 3, term = rank->rank + 1;
  const rondo_fill zeros = {.dst = rank->src, .element_bytes = 4, .width = WORDS};
  (void)user;
  TRY(rondo_fill_async(stream, &zeros));
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_launch(stream, rank->fixture.kernels[TEST_KERNEL_AFFINE], (rondo_grid){.x = WORDS},
                   RONDO_ARGS(&factor, &term, &rank->src)));
  TRY(rondo_all_reduce(rank->communicator, stream, rank->src, rank->src, WORDS, RONDO_I32, RONDO_REDUCE_SUM));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  rondo_status status = RONDO_OK;
  for (int i = 0; i < REPLAYS && status == RONDO_OK; i++) status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  rondo_exec_destroy(exec);
  return status;
}

static void check_replayed(test_ranks *self) {
  uint32_t wanted = 0;
  static uint32_t all[WORDS];
  for (int i = 0; i < REPLAYS; i++) {
    uint32_t sum = 0;
    for (uint32_t rank = 0; rank < self->count; rank++) sum += wanted * 3 + rank + 1;
    wanted = sum;
  }
  for (size_t i = 0; i < WORDS; i++) all[i] = wanted;
  for (uint32_t rank = 0; rank < self->count; rank++)
    assert_words(&self->ranks[rank].fixture, self->ranks[rank].src, all, WORDS);
}

DEVICE_TEST(test_tr16_each_device_records_and_replays_its_part) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) (void)test_kernel(&self.ranks[i].fixture, TEST_KERNEL_AFFINE);
  test_ranks_do(&self, replay, NULL);
  check_replayed(&self);
  test_ranks_close(&self);
}

/* A library may set up ranks at the first call. Of each operation, the very first call of each size is captured. */
DEVICE_TEST(test_tr16_mm3_nothing_need_be_done_before_capturing) {
  static const size_t sizes[] = {5, MOST / TEST_RANKS};
  for (int o = 0; o < OPERATIONS; o++) {
    test_ranks self;
    test_ranks_open(&self, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      task k = {.operation = (operation)o, .type = RONDO_F32, .count = sizes[i], .captured = true};
      if (is_reduced(k.operation)) k.reduction = RONDO_REDUCE_SUM;
      test_ranks_do(&self, run_task, &k);
    }
    test_ranks_close(&self);
  }
}

/* One thread ------------------------------------------------------------------------------------------------------ */

/* Queues for rank 0 before any other rank has been given anything, and reads rank 0 first. */
DEVICE_TEST(test_tr16_one_thread_drives_all_ranks) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) {
    test_rank *rank = &self.ranks[i];
    const uint32_t word = 1u << (8 * i);
    const rondo_fill fill = {.dst = rank->src, .value = word, .element_bytes = 4, .width = 10};
    assert_ok(rondo_fill_async(rank->fixture.stream, &fill));
    for (int k = 0; k < 5; k++)
      assert_ok(rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->src, 10, RONDO_I32,
                                 RONDO_REDUCE_MAX));
    assert_ok(rondo_barrier(rank->communicator, rank->fixture.stream));
  }
  for (uint32_t i = 0; i < self.count; i++)
    assert_int_equal(test_word(&self.ranks[i].fixture, self.ranks[i].src), 1u << (8 * (self.count - 1)));
  test_ranks_close(&self);
}

/* All ranks on one device with one worker: a waiting rank must not block it. */
TEST(test_tr16_ranks_share_one_device) {
  enum { SHARING = 4 };
  rondo_device *devices[SHARING] = {t->device, t->device, t->device, t->device};
  rondo_communicator *communicators[SHARING];
  rondo_stream *streams[SHARING];
  uint32_t *words = test_words(t, SHARING);
  if (test_device_is("cuda")) {
    test_words_free(t, words);
    skip();
  }
  assert_ok(rondo_communicator_create_all(devices, SHARING, NULL, communicators));
  for (uint32_t i = 0; i < SHARING; i++) {
    streams[i] = test_stream(t, NULL);
    test_affine(t, streams[i], words + i, 1, 1, i + 1);
    assert_ok(rondo_all_reduce(communicators[i], streams[i], words + i, words + i, 1, RONDO_I32, RONDO_REDUCE_SUM));
  }
  for (uint32_t i = 0; i < SHARING; i++) {
    assert_ok(rondo_stream_synchronize(streams[i]));
    assert_int_equal(test_word(t, words + i), 10);
    test_stream_destroy(streams[i]);
    assert_ok(rondo_communicator_destroy(communicators[i]));
  }
}

/* Two communicators in branches of one graph, met in opposite orders by two devices with a worker each. */
DEVICE_TEST(test_tr16_branches_may_meet_in_any_order) {
  test_ranks self;
  rondo_communicator *others[TEST_RANKS];
  rondo_device *devices[TEST_RANKS];
  rondo_exec *execs[TEST_RANKS];
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) devices[i] = self.ranks[i].fixture.device;
  assert_ok(rondo_communicator_create_all(devices, self.count, NULL, others));
  for (uint32_t i = 0; i < self.count; i++) {
    test_fixture *t = &self.ranks[i].fixture;
    rondo_communicator *both[] = {self.ranks[i].communicator, others[i]};
    rondo_stream *side = test_stream(t, "side");
    int32_t *words[] = {self.ranks[i].src, self.ranks[i].dst};
    test_write(t, words[0], &(int32_t){1}, sizeof(int32_t));
    test_write(t, words[1], &(int32_t){2}, sizeof(int32_t));
    assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
    test_order(t, t->stream, side);
    for (uint32_t k = 0; k < 2; k++) {
      const uint32_t which = (k + i) % 2;
      assert_ok(rondo_all_reduce(both[which], which == 0 ? t->stream : side, words[which], words[which], 1, RONDO_I32,
                                 RONDO_REDUCE_SUM));
    }
    test_order(t, side, t->stream);
    rondo_graph *graph = test_capture_end(t->stream);
    execs[i] = test_exec_of(graph);
    test_stream_destroy(side);
  }
  for (int k = 0; k < 3; k++)
    for (uint32_t i = 0; i < self.count; i++) assert_ok(rondo_exec_launch(execs[i], self.ranks[i].fixture.stream));
  for (uint32_t i = 0; i < self.count; i++) {
    assert_int_equal(test_word(&self.ranks[i].fixture, self.ranks[i].src), self.count * self.count * self.count);
    assert_int_equal(test_word(&self.ranks[i].fixture, self.ranks[i].dst), 2 * self.count * self.count * self.count);
    rondo_exec_destroy(execs[i]);
    assert_ok(rondo_communicator_destroy(others[i]));
  }
  test_ranks_close(&self);
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

/* The same collective captured twice is the same graph, which says what it reads and writes. */
DEVICE_TEST(test_tr16_captured_collectives_are_graphs_like_others) {
  test_ranks self;
  rondo_graph *graphs[2];
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  test_rank *rank = &self.ranks[0];
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_capture_begin(rank->fixture.stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_ok(rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->dst, 10, RONDO_F32,
                               RONDO_REDUCE_SUM));
    graphs[i] = test_capture_end(rank->fixture.stream);
  }
  rondo_node nodes[4];
  rondo_node_params params;
  size_t count = 4;
  assert_ok(rondo_graph_nodes(graphs[0], nodes, &count));
  assert_int_equal(count, 2);
  assert_ok(rondo_graph_get_params(graphs[0], nodes[0], &params));
  assert_int_equal(params.kind, RONDO_NODE_KERNEL);
  assert_string_equal(params.name, "all_reduce");
  assert_ok(rondo_graph_get_params(graphs[0], nodes[1], &params));
  assert_int_equal(params.kind, RONDO_NODE_EVENT_WAIT);
  assert_same_graph(graphs[0], graphs[1]);
  for (int i = 0; i < 2; i++) test_graph_destroy(graphs[i]);
  test_ranks_close(&self);
}

/* Memory of the graph itself, also relocated: the addresses of a collective move with it. */
static rondo_status run_in_graph_memory(test_rank *rank, void *user) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  rondo_exec *exec;
  void *scratch;
  const bool relocate = *(const bool *)user;
  const uint32_t factor = 0, term = rank->rank + 5;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_malloc_async(stream, WORDS * 4, NULL, &scratch));
  const rondo_fill zeros = {.dst = scratch, .element_bytes = 4, .width = WORDS};
  TRY(rondo_fill_async(stream, &zeros));
  TRY(rondo_launch(stream, rank->fixture.kernels[TEST_KERNEL_AFFINE], (rondo_grid){.x = WORDS},
                   RONDO_ARGS(&factor, &term, &scratch)));
  TRY(rondo_all_reduce(rank->communicator, stream, scratch, rank->dst, WORDS, RONDO_I32, RONDO_REDUCE_SUM));
  TRY(rondo_free_async(stream, scratch));
  TRY(rondo_capture_end(stream, &graph));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  TRY(rondo_instantiate(graph, &options, &exec));
  TRY(rondo_graph_destroy(graph));
  rondo_status status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  rondo_exec_destroy(exec);
  return status;
}

DEVICE_TEST(test_tr16_graph_memory_is_sent) {
  test_ranks self;
  if (test_device_is("cuda")) skip(); /* there libraries need memory from before the capture */
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) (void)test_kernel(&self.ranks[i].fixture, TEST_KERNEL_AFFINE);
  for (int relocate = 0; relocate < 2; relocate++) {
    test_ranks_do(&self, run_in_graph_memory, &(bool){relocate != 0});
    for (uint32_t i = 0; i < self.count; i++)
      assert_int_equal(test_word(&self.ranks[i].fixture, (uint32_t *)self.ranks[i].dst + WORDS - 1), 5 + 6 + 7);
  }
  test_ranks_close(&self);
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static rondo_status instantiate_part(test_rank *rank, void *user) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  rondo_exec **execs = user;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_all_reduce(rank->communicator, stream, rank->src, rank->src, 8, RONDO_I32, RONDO_REDUCE_SUM));
  TRY(rondo_capture_end(stream, &graph));
  rondo_communicator *communicator = rank->communicator;
  rank->communicator = NULL;
  TRY(rondo_communicator_destroy(communicator));
  TRY(rondo_instantiate(graph, NULL, &execs[rank->rank]));
  return rondo_graph_destroy(graph);
}

static rondo_status launch_and_destroy(test_rank *rank, void *user) {
  rondo_exec *exec = ((rondo_exec **)user)[rank->rank];
  TRY(rondo_exec_launch(exec, rank->fixture.stream));
  TRY(rondo_exec_launch(exec, rank->fixture.stream));
  rondo_exec_destroy(exec); /* in flight */
  return rondo_stream_synchronize(rank->fixture.stream);
}

/* The communicator is destroyed first, then the graph, then the exec while it runs. */
DEVICE_TEST(test_tr16_graphs_keep_what_they_need) {
  test_ranks self;
  rondo_exec *execs[TEST_RANKS];
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) {
    const rondo_fill ones = {.dst = self.ranks[i].src, .value = 1, .element_bytes = 4, .width = 8};
    assert_ok(rondo_fill_async(self.ranks[i].fixture.stream, &ones));
  }
  test_ranks_do(&self, instantiate_part, execs);
  test_ranks_do(&self, launch_and_destroy, execs);
  for (uint32_t i = 0; i < self.count; i++)
    assert_int_equal(test_word(&self.ranks[i].fixture, self.ranks[i].src), self.count * self.count);
  test_ranks_close(&self);
}

/* Destroying waits for what is queued. */
DEVICE_TEST(test_tr16_destroying_waits_for_queued_work) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) {
    test_rank *rank = &self.ranks[i];
    const rondo_fill twos = {.dst = rank->src, .value = 2, .element_bytes = 4, .width = 4};
    assert_ok(rondo_fill_async(rank->fixture.stream, &twos));
    assert_ok(rondo_all_gather(rank->communicator, rank->fixture.stream, rank->src, rank->dst, 4, RONDO_I32));
  }
  for (uint32_t i = 0; i < self.count; i++) {
    assert_ok(rondo_communicator_destroy(self.ranks[i].communicator));
    self.ranks[i].communicator = NULL;
    assert_int_equal(test_word(&self.ranks[i].fixture, (uint32_t *)self.ranks[i].dst + 4 * self.count - 1), 2);
  }
  test_ranks_close(&self);
}

DEVICE_TEST(test_tr16_a_device_outlives_its_communicators) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  assert_error(rondo_device_close(self.ranks[0].fixture.device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 communicator");
  test_ranks_close(&self);
}

/* A group of one. */
TEST(test_tr16_a_rank_may_be_alone) {
  rondo_communicator *communicator;
  uint32_t *words = test_words(t, 4);
  const rondo_status status = rondo_communicator_create_all(&t->device, 1, NULL, &communicator);
  if (test_ranks_are_missing(status)) {
    test_words_free(t, words);
    skip();
  }
  assert_int_equal(status, RONDO_OK);
  test_affine(t, t->stream, words, 2, 1, 7);
  assert_ok(rondo_all_reduce(communicator, t->stream, words, words + 2, 2, RONDO_I32, RONDO_REDUCE_MIN));
  assert_ok(rondo_barrier(communicator, t->stream));
  assert_int_equal(test_word(t, words + 3), 7);
  assert_ok(rondo_communicator_destroy(communicator));
}
