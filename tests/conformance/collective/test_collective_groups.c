/* SPDX-License-Identifier: MIT
 * Collectives of some of the ranks: send and receive in pairs, in a ring and to itself, and groups that are divided by
 * color and key, also again, and while collectives of the old group run (MM-3).
 */
#include <string.h>

#include "support/test_ranks.h"

enum { FEW = 5, MANY = 100000 /* elements */ };

/* Sending and receiving ------------------------------------------------------------------------------------------- */

static uint32_t word_of(uint32_t rank, size_t i) { return (uint32_t)i * 2654435761u + rank; }

/* What each rank enqueues, and what it then has. */
typedef struct exchange {
  rondo_status (*enqueue)(const test_rank *rank, const struct exchange *self);
  uint32_t (*sender)(const test_rank *rank); /* the rank whose words come; the world's size: none */
  size_t count;
  bool is_captured;
} exchange;

/* Rank 0 sends to the last, and all others do nothing. */
static rondo_status enqueue_pair(const test_rank *rank, const exchange *self) {
  const uint32_t last = rank->world_size - 1;
  rondo_stream *stream = rank->fixture.stream;
  if (rank->rank == 0) return rondo_send(rank->communicator, stream, rank->src, self->count, RONDO_I32, last);
  if (rank->rank == last) return rondo_receive(rank->communicator, stream, rank->dst, self->count, RONDO_I32, 0);
  return RONDO_OK;
}

static uint32_t sender_of_pair(const test_rank *rank) {
  return rank->rank == rank->world_size - 1 ? 0 : rank->world_size;
}

/* To the next rank, and from the one before. */
static rondo_status enqueue_ring(const test_rank *rank, const exchange *self) {
  const uint32_t size = rank->world_size;
  return rondo_send_receive(rank->communicator, rank->fixture.stream, rank->src, (rank->rank + 1) % size, rank->dst,
                            (rank->rank + size - 1) % size, self->count, RONDO_I32);
}

static uint32_t sender_of_ring(const test_rank *rank) { return (rank->rank + rank->world_size - 1) % rank->world_size; }

/* The words of rank 0 go from rank to rank: each sends what it has received. */
static rondo_status enqueue_chain(const test_rank *rank, const exchange *self) {
  rondo_stream *stream = rank->fixture.stream;
  const void *const words = rank->rank == 0 ? rank->src : rank->dst;
  if (rank->rank > 0) TRY(rondo_receive(rank->communicator, stream, rank->dst, self->count, RONDO_I32, rank->rank - 1));
  if (rank->rank + 1 == rank->world_size) return RONDO_OK;
  return rondo_send(rank->communicator, stream, words, self->count, RONDO_I32, rank->rank + 1);
}

static uint32_t sender_of_chain(const test_rank *rank) { return rank->rank == 0 ? rank->world_size : 0; }

static rondo_status enqueue_to_itself(const test_rank *rank, const exchange *self) {
  return rondo_send_receive(rank->communicator, rank->fixture.stream, rank->src, rank->rank, rank->dst, rank->rank,
                            self->count, RONDO_I32);
}

static uint32_t sender_is_itself(const test_rank *rank) { return rank->rank; }

static rondo_status replay_exchange(const test_rank *rank, const exchange *self) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  rondo_exec *exec;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(self->enqueue(rank, self));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &exec));
  TRY(rondo_graph_destroy(graph));
  rondo_status status = RONDO_OK;
  for (int i = 0; i < 3 && status == RONDO_OK; i++) status = rondo_exec_launch(exec, stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  rondo_exec_destroy(exec);
  return status;
}

static rondo_status run_exchange(test_rank *rank, void *user) {
  const exchange *self = user;
  rondo_stream *stream = rank->fixture.stream;
  const uint32_t sender = self->sender(rank);
  const size_t bytes = self->count * sizeof(uint32_t);
  uint32_t *words = test_calloc(self->count, sizeof *words);
  for (size_t i = 0; i < self->count; i++) words[i] = word_of(rank->rank, i);
  rondo_status status = rondo_copy_async(stream, rank->src, words, bytes);
  const rondo_fill zeros = {.dst = rank->dst, .element_bytes = 4, .width = self->count};
  if (status == RONDO_OK) status = rondo_fill_async(stream, &zeros);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  if (status == RONDO_OK) status = self->is_captured ? replay_exchange(rank, self) : self->enqueue(rank, self);
  if (status == RONDO_OK) status = rondo_copy_async(stream, words, rank->dst, bytes);
  if (status == RONDO_OK) status = rondo_stream_synchronize(stream);
  bool is_right = true;
  for (size_t i = 0; i < self->count; i++)
    is_right = is_right && words[i] == (sender == rank->world_size ? 0 : word_of(sender, i));
  test_free(words);
  if (status == RONDO_OK && !is_right) print_error("rank %u has received something else\n", rank->rank);
  return status == RONDO_OK && !is_right ? RONDO_INVALID_DATA : status;
}

static void run_exchanges(exchange self) {
  test_ranks ranks;
  test_ranks_open(&ranks, NULL);
  for (int form = 0; form < 4; form++) {
    self.is_captured = form % 2 != 0;
    self.count = form < 2 ? FEW : MANY;
    test_ranks_do(&ranks, run_exchange, &self);
  }
  test_ranks_close(&ranks);
}

DEVICE_TEST(test_mm3_one_sends_and_one_receives) { run_exchanges((exchange){enqueue_pair, sender_of_pair, 0, false}); }

DEVICE_TEST(test_mm3_each_sends_what_it_received) {
  run_exchanges((exchange){enqueue_chain, sender_of_chain, 0, false});
}

DEVICE_TEST(test_mm3_a_ring_sends_and_receives_at_once) {
  run_exchanges((exchange){enqueue_ring, sender_of_ring, 0, false});
}

DEVICE_TEST(test_mm3_a_rank_sends_to_itself) {
  run_exchanges((exchange){enqueue_to_itself, sender_is_itself, 0, false});
}

/* One thread enqueues all, the receivers first. */
DEVICE_TEST(test_mm3_one_thread_sends_and_receives) {
  test_ranks self;
  if (test_device_is("cuda")) skip();
  test_ranks_open(&self, NULL);
  const exchange ring = {enqueue_ring, sender_of_ring, 1, false};
  for (uint32_t i = self.count; i-- > 0;) {
    const test_rank *rank = &self.ranks[i];
    const rondo_fill fill = {.dst = rank->src, .value = i + 1, .element_bytes = 4, .width = 1};
    assert_ok(rondo_fill_async(rank->fixture.stream, &fill));
    assert_ok(enqueue_ring(rank, &ring));
  }
  for (uint32_t i = 0; i < self.count; i++)
    assert_int_equal(test_word(&self.ranks[i].fixture, self.ranks[i].dst), sender_of_ring(&self.ranks[i]) + 1);
  test_ranks_close(&self);
}

/* Dividing -------------------------------------------------------------------------------------------------------- */

/* Sums up 1 << rank among the ranks of a communicator. */
static rondo_status sum_of(const test_rank *rank, rondo_communicator *communicator, void *word, int32_t *out) {
  rondo_stream *stream = rank->fixture.stream;
  const rondo_fill fill = {.dst = word, .value = 1u << rank->rank, .element_bytes = 4, .width = 1};
  TRY(rondo_fill_async(stream, &fill));
  TRY(rondo_all_reduce(communicator, stream, word, word, 1, RONDO_I32, RONDO_REDUCE_SUM));
  TRY(rondo_copy_async(stream, out, word, sizeof *out));
  return rondo_stream_synchronize(stream);
}

static rondo_status require(bool is_true) { return is_true ? RONDO_OK : RONDO_INVALID_DATA; }

static rondo_status check_place(rondo_communicator *communicator, uint32_t rank, uint32_t size) {
  rondo_communicator_info info = {.struct_size = sizeof info};
  TRY(rondo_communicator_get_info(communicator, &info));
  return require(info.rank == rank && info.world_size == size && !info.failed);
}

/* The last rank is alone, and the others form a group in the opposite order. */
static rondo_status divide(test_rank *rank, void *user) {
  const uint32_t others = rank->world_size - 1;
  const bool is_last = rank->rank == others;
  rondo_communicator *part;
  int32_t sum = 0;
  (void)user;
  TRY(rondo_communicator_split(rank->communicator, is_last ? 7 : 3, others - rank->rank, &part));
  rondo_status status = is_last ? check_place(part, 0, 1) : check_place(part, others - 1 - rank->rank, others);
  if (status == RONDO_OK) status = sum_of(rank, part, rank->src, &sum);
  if (status == RONDO_OK) status = require(sum == (is_last ? 1 << others : (1 << others) - 1));
  if (status == RONDO_OK) status = sum_of(rank, rank->communicator, rank->dst, &sum);
  if (status == RONDO_OK) status = require(sum == (1 << rank->world_size) - 1);
  const rondo_status destroyed = rondo_communicator_destroy(part);
  return status == RONDO_OK ? destroyed : status;
}

DEVICE_TEST(test_mm3_groups_are_divided_by_color_and_key) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  for (int i = 0; i < 3; i++) test_ranks_do(&self, divide, NULL);
  test_ranks_close(&self);
}

/* All ranks in one color, and then each in its own. The first group is gone before the second is used. */
static rondo_status divide_twice(test_rank *rank, void *user) {
  rondo_communicator *all, *own;
  int32_t sum = 0;
  (void)user;
  TRY(rondo_communicator_split(rank->communicator, 0, 0, &all));
  rondo_status status = check_place(all, rank->rank, rank->world_size);
  if (status == RONDO_OK) status = rondo_communicator_split(all, rank->rank, 0, &own);
  const rondo_status destroyed = rondo_communicator_destroy(all);
  TRY(status);
  TRY(destroyed);
  status = check_place(own, 0, 1);
  if (status == RONDO_OK) status = sum_of(rank, own, rank->src, &sum);
  if (status == RONDO_OK) status = require(sum == 1 << rank->rank);
  const rondo_status last = rondo_communicator_destroy(own);
  return status == RONDO_OK ? last : status;
}

DEVICE_TEST(test_mm3_divided_groups_are_divided_again) {
  test_ranks self;
  test_ranks_open(&self, NULL);
  test_ranks_do(&self, divide_twice, NULL);
  test_ranks_close(&self);
}

enum { BOTH = 50 };

/* Two streams, each with the collectives of one group: they may run at the same time. */
static rondo_status enqueue_both(const test_rank *rank, rondo_communicator *part, rondo_stream *side) {
  const rondo_fill ones = {.dst = rank->src, .value = 1, .element_bytes = 4, .width = FEW};
  const rondo_fill more = {.dst = rank->dst, .value = 1, .element_bytes = 4, .width = FEW};
  TRY(rondo_fill_async(rank->fixture.stream, &ones));
  TRY(rondo_fill_async(side, &more));
  for (int i = 0; i < BOTH; i++) {
    TRY(rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->src, FEW, RONDO_I32,
                         RONDO_REDUCE_SUM));
    TRY(rondo_all_reduce(part, side, rank->dst, rank->dst, FEW, RONDO_I32, RONDO_REDUCE_MAX));
  }
  TRY(rondo_stream_synchronize(rank->fixture.stream));
  return rondo_stream_synchronize(side);
}

/* The group is divided while a collective of it waits: rank 0 enqueues one first, and the others after the split. */
static rondo_status divide_while_running(test_rank *rank, void *user) {
  rondo_communicator *part;
  rondo_stream *side;
  int32_t sum = 0;
  (void)user;
  if (rank->rank == 0) TRY(rondo_barrier(rank->communicator, rank->fixture.stream));
  TRY(rondo_communicator_split(rank->communicator, 1, rank->rank, &part));
  if (rank->rank != 0) TRY(rondo_barrier(rank->communicator, rank->fixture.stream));
  TRY(rondo_stream_create(rank->fixture.device, NULL, &side));
  rondo_status status = enqueue_both(rank, part, side);
  if (status == RONDO_OK) status = sum_of(rank, part, rank->dst, &sum);
  if (status == RONDO_OK) status = require(sum == (1 << rank->world_size) - 1);
  const rondo_status destroyed = rondo_communicator_destroy(part);
  const rondo_status gone = rondo_stream_destroy(side);
  TRY(status);
  TRY(destroyed);
  return gone;
}

DEVICE_TEST(test_mm3_collectives_of_both_groups_run) {
  test_ranks self;
  if (test_device_is("cuda")) skip(); /* NCCL's groups may not wait for each other */
  test_ranks_open(&self, NULL);
  test_ranks_do(&self, divide_while_running, NULL);
  test_ranks_close(&self);
}

/* The group is divided while a stream captures its collectives. Those of the group and of the subgroup are launched
 * after both communicators are gone. */
static rondo_status divide_and_capture(test_rank *rank, void *user) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_communicator *part;
  rondo_graph *graph;
  rondo_exec **execs = user;
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_barrier(rank->communicator, stream));
  TRY(rondo_communicator_split(rank->communicator, 0, 0, &part));
  TRY(rondo_all_to_all(part, stream, rank->src, rank->dst, 1, RONDO_I32));
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &execs[rank->rank]));
  TRY(rondo_graph_destroy(graph));
  rondo_communicator *const whole = rank->communicator;
  rank->communicator = NULL;
  TRY(rondo_communicator_destroy(whole));
  return rondo_communicator_destroy(part);
}

static rondo_status launch_twice(test_rank *rank, void *user) {
  rondo_exec *exec = ((rondo_exec **)user)[rank->rank];
  for (int i = 0; i < 2; i++) TRY(rondo_exec_launch(exec, rank->fixture.stream));
  const rondo_status status = rondo_stream_synchronize(rank->fixture.stream);
  rondo_exec_destroy(exec);
  return status;
}

DEVICE_TEST(test_mm3_divided_groups_live_on_in_graphs) {
  test_ranks self;
  rondo_exec *execs[TEST_RANKS];
  test_ranks_open(&self, NULL);
  for (uint32_t i = 0; i < self.count; i++) {
    const rondo_fill fill = {.dst = self.ranks[i].src, .value = i + 1, .element_bytes = 4, .width = TEST_RANKS};
    assert_ok(rondo_fill_async(self.ranks[i].fixture.stream, &fill));
    assert_ok(rondo_stream_synchronize(self.ranks[i].fixture.stream));
  }
  test_ranks_do(&self, divide_and_capture, execs);
  test_ranks_do(&self, launch_twice, execs);
  for (uint32_t i = 0; i < self.count; i++)
    for (uint32_t k = 0; k < self.count; k++)
      assert_int_equal(test_word(&self.ranks[i].fixture, (uint32_t *)self.ranks[i].dst + k), k + 1);
  test_ranks_close(&self);
}
