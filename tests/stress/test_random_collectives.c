/* SPDX-License-Identifier: MIT
 * Random collectives among ranks of one process, eager and captured, on changing streams, in place and not, compared
 * with what each rank computes itself: all ranks draw the same list from one seed. Replays of several execs are mixed
 * with eager collectives, and a later collective sends the result of an earlier one (TR-16, MM-3).
 */
#include <string.h>

#include "support/test_effort.h"
#include "support/test_ranks.h"

enum { WORDS = 3000, STEPS = 100, EXECS = 3, ROUNDS = 40 };

typedef enum operation {
  ALL_REDUCE,
  BROADCAST,
  ALL_GATHER,
  REDUCE_SCATTER,
  ALL_TO_ALL,
  SHIFT, /* each rank sends to the rank `root` places further */
  SEND,  /* rank `root` sends to the next one, and the others do nothing */
  BARRIER,
  OPERATIONS
} operation;

/* A collective over a rank's words: the offsets of its buffers, and the number of its elements. */
typedef struct plan {
  operation operation;
  rondo_reduction reduction;
  size_t count, src, dst;
  uint32_t root;
} plan;

/* The two buffers do not overlap: they are in different halves, or are the same where that is allowed. */
static plan draw(uint64_t *random, uint32_t world_size) {
  plan p = {.operation = (operation)test_random_below(random, OPERATIONS),
            .reduction = (rondo_reduction)(1 + test_random_below(random, 3)),
            .count = 1 + test_random_below(random, WORDS / 2 / world_size),
            .root = test_random_below(random, world_size)};
  const size_t room = WORDS / 2 - p.count * world_size + 1;
  p.src = test_random_below(random, (uint32_t)room);
  p.dst = WORDS / 2 + test_random_below(random, (uint32_t)room);
  if (test_random_below(random, 2) == 0) {
    const size_t other = p.src;
    p.src = p.dst;
    p.dst = other;
  }
  if ((p.operation == ALL_REDUCE || p.operation == BROADCAST) && test_random_below(random, 3) == 0) p.dst = p.src;
  return p;
}

static rondo_status send_to_next(const test_rank *rank, rondo_stream *stream, const plan *p) {
  uint32_t *words = rank->src;
  const uint32_t next = (p->root + 1) % rank->world_size;
  if (rank->rank == p->root) return rondo_send(rank->communicator, stream, words + p->src, p->count, RONDO_I32, next);
  if (rank->rank == next)
    return rondo_receive(rank->communicator, stream, words + p->dst, p->count, RONDO_I32, p->root);
  return RONDO_OK;
}

static rondo_status call(const test_rank *rank, rondo_stream *stream, const plan *p) {
  uint32_t *words = rank->src;
  switch (p->operation) {
    case ALL_REDUCE:
      return rondo_all_reduce(rank->communicator, stream, words + p->src, words + p->dst, p->count, RONDO_I32,
                              p->reduction);
    case BROADCAST:
      return rondo_broadcast(rank->communicator, stream, words + p->src, words + p->dst, p->count, RONDO_I32, p->root);
    case ALL_GATHER:
      return rondo_all_gather(rank->communicator, stream, words + p->src, words + p->dst, p->count, RONDO_I32);
    case REDUCE_SCATTER:
      return rondo_reduce_scatter(rank->communicator, stream, words + p->src, words + p->dst, p->count, RONDO_I32,
                                  p->reduction);
    case ALL_TO_ALL:
      return rondo_all_to_all(rank->communicator, stream, words + p->src, words + p->dst, p->count, RONDO_I32);
    case SHIFT:
      return rondo_send_receive(rank->communicator, stream, words + p->src, (rank->rank + p->root) % rank->world_size,
                                words + p->dst, (rank->rank + rank->world_size - p->root) % rank->world_size, p->count,
                                RONDO_I32);
    case SEND:
      return send_to_next(rank, stream, p);
    default:
      return rondo_barrier(rank->communicator, stream);
  }
}

/* The model: the words of all ranks -------------------------------------------------------------------------------- */

typedef struct model {
  uint32_t world_size;
  uint32_t words[TEST_RANKS][WORDS];
} model;

static uint32_t combine(const model *m, rondo_reduction reduction, size_t at) {
  uint32_t result = m->words[0][at];
  for (uint32_t rank = 1; rank < m->world_size; rank++) {
    const uint32_t other = m->words[rank][at];
    const bool is_greater = (int32_t)other > (int32_t)result;
    if (reduction == RONDO_REDUCE_SUM)
      result += other;
    else if (is_greater == (reduction == RONDO_REDUCE_MAX))
      result = other;
  }
  return result;
}

static uint32_t value_at(const model *m, const plan *p, uint32_t rank, size_t i) {
  switch (p->operation) {
    case ALL_REDUCE:
      return combine(m, p->reduction, p->src + i);
    case BROADCAST:
      return m->words[p->root][p->src + i];
    case ALL_GATHER:
      return m->words[i / p->count][p->src + i % p->count];
    case ALL_TO_ALL:
      return m->words[i / p->count][p->src + rank * p->count + i % p->count];
    case SHIFT:
      return m->words[(rank + m->world_size - p->root) % m->world_size][p->src + i];
    case SEND:
      return m->words[p->root][p->src + i];
    default:
      return combine(m, p->reduction, p->src + rank * p->count + i);
  }
}

static void apply(model *m, const plan *p) {
  static _Thread_local model before;
  before = *m;
  const bool has_all = p->operation == ALL_GATHER || p->operation == ALL_TO_ALL;
  const size_t count = has_all ? p->count * m->world_size : p->count;
  if (p->operation == BARRIER) return;
  for (uint32_t rank = 0; rank < m->world_size; rank++)
    if (p->operation != SEND || rank == (p->root + 1) % m->world_size)
      for (size_t i = 0; i < count; i++) m->words[rank][p->dst + i] = value_at(&before, p, rank, i);
}

/* Runs ------------------------------------------------------------------------------------------------------------ */

/* A list that was captured. */
typedef struct recorded {
  rondo_exec *exec;
  plan plans[3];
  size_t count;
} recorded;

static rondo_status record(const test_rank *rank, uint64_t *random, recorded *out) {
  rondo_stream *stream = rank->fixture.stream;
  rondo_graph *graph;
  out->count = 1 + test_random_below(random, 3);
  TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  for (size_t i = 0; i < out->count; i++) {
    out->plans[i] = draw(random, rank->world_size);
    TRY(call(rank, stream, &out->plans[i]));
  }
  TRY(rondo_capture_end(stream, &graph));
  TRY(rondo_instantiate(graph, NULL, &out->exec));
  return rondo_graph_destroy(graph);
}

/* Work continues there after the work of the other stream. */
static rondo_status change_stream(const test_rank *rank, rondo_stream *const streams[2], size_t *at) {
  rondo_event *event;
  TRY(rondo_event_create(rank->fixture.device, NULL, &event));
  TRY(rondo_event_record(event, streams[*at]));
  *at = 1 - *at;
  const rondo_status status = rondo_stream_wait_event(streams[*at], event);
  rondo_event_destroy(event);
  return status;
}

static rondo_status take_steps(const test_rank *rank, uint64_t *random, model *m, const recorded *execs) {
  rondo_stream *streams[2] = {rank->fixture.stream, NULL};
  size_t at = 0;
  TRY(rondo_stream_create(rank->fixture.device, NULL, &streams[1]));
  for (uint32_t step = 0; step < test_effort(STEPS); step++) {
    const uint32_t which = test_random_below(random, EXECS + 3);
    if (test_random_below(random, 8) == 0) TRY(change_stream(rank, streams, &at));
    if (which < EXECS) {
      TRY(rondo_exec_launch(execs[which].exec, streams[at]));
      for (size_t i = 0; i < execs[which].count; i++) apply(m, &execs[which].plans[i]);
    } else {
      const plan p = draw(random, rank->world_size);
      TRY(call(rank, streams[at], &p));
      apply(m, &p);
    }
  }
  if (at == 1) TRY(change_stream(rank, streams, &at));
  return rondo_stream_destroy(streams[1]);
}

static rondo_status run_list(test_rank *rank, void *user) {
  static _Thread_local model m;
  static _Thread_local uint32_t got[WORDS];
  uint64_t random = *(const uint64_t *)user;
  recorded execs[EXECS] = {{0}};
  m.world_size = rank->world_size;
  for (uint32_t r = 0; r < rank->world_size; r++)
    for (size_t i = 0; i < WORDS; i++) m.words[r][i] = (uint32_t)test_random(&random);
  TRY(rondo_copy_async(rank->fixture.stream, rank->src, m.words[rank->rank], sizeof got));
  TRY(rondo_stream_synchronize(rank->fixture.stream));
  for (int i = 0; i < EXECS; i++) TRY(record(rank, &random, &execs[i]));
  TRY(take_steps(rank, &random, &m, execs));
  TRY(rondo_copy_async(rank->fixture.stream, got, rank->src, sizeof got));
  TRY(rondo_stream_synchronize(rank->fixture.stream));
  for (int i = 0; i < EXECS; i++) rondo_exec_destroy(execs[i].exec);
  if (memcmp(got, m.words[rank->rank], sizeof got) == 0) return RONDO_OK;
  print_error("rank %u has other words than the model, from seed %llu\n", rank->rank,
              (unsigned long long)*(const uint64_t *)user);
  return RONDO_INVALID_DATA;
}

DEVICE_TEST(test_tr16_mm3_random_collectives_agree_with_the_model) {
  for (uint64_t seed = 1; seed <= test_effort(ROUNDS); seed++) {
    test_ranks self;
    uint64_t random = seed;
    test_ranks_open(&self, NULL);
    test_ranks_do(&self, run_list, &random);
    test_ranks_close(&self);
  }
}
