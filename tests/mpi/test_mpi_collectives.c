/* SPDX-License-Identifier: MIT
 * Collectives on MPI, and of NCCL's ranks that MPI joins, compute what they say (MM-1, MM-3), run as `mpirun -n N
 * test_mpi_collectives CASE` on the device RONDO_TEST_DEVICE: each operation, type and reduction, eager, captured and
 * replayed, on buffers that move, on several streams and threads, in subgroups. Each rank checks its own results, and
 * ends with 0. Data is whole numbers, so that results are exact in every type and in the order that MPI chooses.
 */
#define _GNU_SOURCE
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <pthread.h>
#include <rondo/mpi.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/mpi_test.h"
#include "support/test_numbers.h"

enum { MOST = 40000, MANY = 150000 /* more than 1 MiB of F64 */, REPLAYS = 4, LONG = 600 };

#define OK(call) REQUIRE((call) == RONDO_OK)
#define DO(call) \
  if ((call) != PASSED) return FAILED

/* Scene ------------------------------------------------------------------------------------------------------------ */

typedef struct scene {
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator;
  char *x, *y;    /* 8 bytes for each of MOST elements and each rank, or of MANY elements */
  int64_t *host;  /* of the same size */
  char *expected; /* likewise */
} scene;

static const char *device_name(void) {
  const char *name = getenv("RONDO_TEST_DEVICE");
  return name == NULL ? "cpu" : name;
}

static const char *engine_name(void) { return strncmp(device_name(), "cuda", 4) == 0 ? "NCCL" : "MPI"; }

static int open_scene(scene *s) {
  const size_t most = MOST * (size_t)size, bytes = sizeof(int64_t) * (most > MANY ? most : MANY);
  void *x, *y;
  OK(rondo_device_open(device_name(), &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1}, &s->device));
  OK(rondo_stream_create(s->device, NULL, &s->stream));
  OK(rondo_malloc(s->device, bytes, "x", &x));
  OK(rondo_malloc(s->device, bytes, "y", &y));
  OK(rondo_communicator_from_mpi(s->device, MPI_COMM_WORLD, NULL, &s->communicator));
  s->x = x;
  s->y = y;
  s->host = malloc(bytes);
  s->expected = malloc(bytes);
  REQUIRE(s->host != NULL && s->expected != NULL);
  return PASSED;
}

static int close_scene(scene *s) {
  OK(rondo_communicator_destroy(s->communicator));
  OK(rondo_free(s->device, s->x));
  OK(rondo_free(s->device, s->y));
  OK(rondo_stream_destroy(s->stream));
  OK(rondo_device_close(s->device));
  free(s->host);
  free(s->expected);
  return PASSED;
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

/* Element `i` of a rank: small, and a multiple of the number of ranks, so that an average is whole. `turn` changes it.
 */
static int64_t value_of(rondo_type type, int of_rank, size_t i, int turn) {
  const int64_t least = type == RONDO_U8 ? 0 : -9;
  return ((int64_t)(i * 7 + (size_t)of_rank * 13 + (size_t)turn * 5) % 19 + least) * size;
}

static int64_t reduce(rondo_type type, rondo_reduction reduction, size_t i, int turn) {
  int64_t result = value_of(type, 0, i, turn);
  for (int r = 1; r < size; r++) {
    const int64_t value = value_of(type, r, i, turn);
    if (reduction == RONDO_REDUCE_SUM || reduction == RONDO_REDUCE_AVERAGE)
      result += value;
    else if ((reduction == RONDO_REDUCE_MAX) == (value > result))
      result = value;
  }
  return reduction == RONDO_REDUCE_AVERAGE ? result / size : result;
}

/* Tasks ------------------------------------------------------------------------------------------------------------ */

typedef enum operation { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, RING, OPERATIONS } operation;

typedef struct task {
  operation operation;
  rondo_type type;
  rondo_reduction reduction;
  size_t count;
  bool in_place;
  uint32_t root;
} task;

static size_t src_count(const task *k) {
  return k->operation == REDUCE_SCATTER || k->operation == ALL_TO_ALL ? k->count * (size_t)size : k->count;
}

static size_t dst_count(const task *k) {
  return k->operation == ALL_GATHER || k->operation == ALL_TO_ALL ? k->count * (size_t)size : k->count;
}

static int64_t expected(const task *k, size_t i, int turn) {
  const size_t own = (size_t)rank * k->count;
  switch (k->operation) {
    case ALL_REDUCE:
      return reduce(k->type, k->reduction, i, turn);
    case BROADCAST:
      return value_of(k->type, (int)k->root, i, turn);
    case ALL_GATHER:
      return value_of(k->type, (int)(i / k->count), i % k->count, turn);
    case ALL_TO_ALL:
      return value_of(k->type, (int)(i / k->count), own + i % k->count, turn);
    case RING:
      return value_of(k->type, (rank + size - 1) % size, i, turn);
    default:
      return reduce(k->type, k->reduction, own + i, turn);
  }
}

/* In place, the smaller buffer is a part of the larger one. */
static void place(const scene *s, const task *k, char **src, char **dst) {
  const size_t own = (size_t)rank * k->count * rondo_type_bytes(k->type);
  *src = s->x;
  *dst = s->y;
  if (!k->in_place) return;
  if (k->operation == ALL_GATHER)
    *src = s->y + own;
  else
    *dst = s->x + (k->operation == REDUCE_SCATTER ? own : 0);
}

static rondo_status call(const scene *s, const task *k) {
  char *src, *dst;
  place(s, k, &src, &dst);
  switch (k->operation) {
    case ALL_REDUCE:
      return rondo_all_reduce(s->communicator, s->stream, src, dst, k->count, k->type, k->reduction);
    case BROADCAST:
      return rondo_broadcast(s->communicator, s->stream, (uint32_t)rank == k->root ? src : NULL, dst, k->count, k->type,
                             k->root);
    case ALL_GATHER:
      return rondo_all_gather(s->communicator, s->stream, src, dst, k->count, k->type);
    case ALL_TO_ALL:
      return rondo_all_to_all(s->communicator, s->stream, src, dst, k->count, k->type);
    case RING:
      return rondo_send_receive(s->communicator, s->stream, src, (uint32_t)((rank + 1) % size), dst,
                                (uint32_t)((rank + size - 1) % size), k->count, k->type);
    default:
      return rondo_reduce_scatter(s->communicator, s->stream, src, dst, k->count, k->type, k->reduction);
  }
}

static int fill(const scene *s, const task *k, int turn) {
  char *src, *dst;
  const size_t width = rondo_type_bytes(k->type);
  place(s, k, &src, &dst);
  memset(s->host, 0xff, dst_count(k) * width);
  OK(rondo_copy_async(s->stream, dst, s->host, dst_count(k) * width));
  OK(rondo_stream_synchronize(s->stream));
  for (size_t i = 0; i < src_count(k); i++) test_put_number(s->host, k->type, i, value_of(k->type, rank, i, turn));
  OK(rondo_copy_async(s->stream, src, s->host, src_count(k) * width));
  OK(rondo_stream_synchronize(s->stream));
  return PASSED;
}

static int compare(const scene *s, const task *k, int turn) {
  char *src, *dst;
  const size_t count = dst_count(k), bytes = count * rondo_type_bytes(k->type);
  place(s, k, &src, &dst);
  OK(rondo_copy_async(s->stream, s->host, dst, bytes));
  OK(rondo_stream_synchronize(s->stream));
  for (size_t i = 0; i < count; i++) test_put_number(s->expected, k->type, i, expected(k, i, turn));
  if (memcmp(s->host, s->expected, bytes) == 0) return PASSED;
  (void)fprintf(stderr, "rank %d: operation %d of %zu %s, reduction %d, in place %d, turn %d: wrong result\n", rank,
                (int)k->operation, k->count, rondo_type_name(k->type), (int)k->reduction, k->in_place, turn);
  return FAILED;
}

static int capture(const scene *s, const task *k, rondo_graph **out) {
  OK(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  OK(call(s, k));
  OK(rondo_capture_end(s->stream, out));
  return PASSED;
}

/* Eager, then replayed with other data each time. */
static int run_task(const scene *s, const task *k) {
  rondo_graph *graph;
  rondo_exec *exec;
  DO(fill(s, k, 0));
  OK(call(s, k));
  DO(compare(s, k, 0));
  DO(capture(s, k, &graph));
  OK(rondo_instantiate(graph, NULL, &exec));
  OK(rondo_graph_destroy(graph));
  for (int turn = 1; turn <= REPLAYS; turn++) {
    DO(fill(s, k, turn));
    OK(rondo_exec_launch(exec, s->stream));
    DO(compare(s, k, turn));
  }
  rondo_exec_destroy(exec);
  return PASSED;
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

static const rondo_type types[] = {RONDO_F32, RONDO_F64,  RONDO_I32, RONDO_I64,
                                   RONDO_F16, RONDO_BF16, RONDO_I8,  RONDO_U8};
enum { TYPES = sizeof types / sizeof types[0] };

static bool has_average(rondo_type type) {
  return type == RONDO_F32 || type == RONDO_F64 || type == RONDO_F16 || type == RONDO_BF16;
}

static int run_reductions(const scene *s, task k) {
  if (k.operation != ALL_REDUCE && k.operation != REDUCE_SCATTER) return run_task(s, &k);
  for (int r = RONDO_REDUCE_SUM; r <= (has_average(k.type) ? RONDO_REDUCE_AVERAGE : RONDO_REDUCE_MIN); r++) {
    k.reduction = (rondo_reduction)r;
    DO(run_task(s, &k));
  }
  return PASSED;
}

/* 100 elements use a persistent collective where MPI has them, 40,000 do not. All-reduces of 2 and 4 ranks are
 * exchanges of pairs. */
static int operations(void) {
  static const size_t counts[] = {1, 100, MOST};
  scene s = {0};
  DO(open_scene(&s));
  for (int o = 0; o < OPERATIONS; o++)
    for (int t = 0; t < TYPES; t++)
      for (int form = 0; form < 6; form++) {
        const task k = {.operation = (operation)o,
                        .type = types[t],
                        .count = counts[form / 2],
                        .in_place = form % 2 != 0,
                        .root = (uint32_t)((t + o) % size)};
        if (k.in_place && (o == ALL_TO_ALL || o == RING)) continue;
        DO(run_reductions(&s, k));
      }
  return close_scene(&s);
}

/* In several parts, the last of which is smaller. */
static int large(void) {
  scene s = {0};
  DO(open_scene(&s));
  for (int form = 0; form < 2; form++) {
    const task k = {.operation = ALL_REDUCE,
                    .type = RONDO_F64,
                    .reduction = RONDO_REDUCE_SUM,
                    .count = MANY + (size_t)form * 7 - 8,
                    .in_place = form == 1};
    DO(run_task(&s, &k));
  }
  return close_scene(&s);
}

/* The maximum and the minimum are NaN if one rank has one. */
static int nan_wins(void) {
  static const uint16_t nans[] = {0x7e00, 0x7fc0}; /* of F16 and BF16 */
  scene s = {0};
  DO(open_scene(&s));
  for (int form = 0; form < 4; form++) {
    const rondo_reduction reduction = form % 2 == 0 ? RONDO_REDUCE_MAX : RONDO_REDUCE_MIN;
    const float value = rank == size - 1 ? strtof("nan", NULL) : (float)rank;
    float result = 0;
    uint16_t half = rank == 0 ? nans[form / 2] : 0, half_result = 0;
    OK(rondo_copy_async(s.stream, s.x, &value, sizeof value));
    OK(rondo_all_reduce(s.communicator, s.stream, s.x, s.y, 1, RONDO_F32, reduction));
    OK(rondo_copy_async(s.stream, &result, s.y, sizeof result));
    OK(rondo_copy_async(s.stream, s.x, &half, sizeof half));
    OK(rondo_all_reduce(s.communicator, s.stream, s.x, s.y, 1, form < 2 ? RONDO_F16 : RONDO_BF16, reduction));
    OK(rondo_copy_async(s.stream, &half_result, s.y, sizeof half_result));
    OK(rondo_stream_synchronize(s.stream));
    REQUIRE(result != result);
    REQUIRE((half_result & 0x7fff) > (form < 2 ? 0x7c00 : 0x7f80));
  }
  return close_scene(&s);
}

/* One description at several addresses: calls, an exec that is updated, and two execs in turn. */
static int moved(void) {
  scene s = {0}, other;
  rondo_graph *graph;
  rondo_exec *exec, *second;
  const task k = {.operation = ALL_REDUCE, .type = RONDO_F32, .reduction = RONDO_REDUCE_SUM, .count = 1000};
  DO(open_scene(&s));
  other = s;
  other.x = s.y + MOST;
  other.y = s.x + MOST;
  DO(run_task(&s, &k));
  DO(run_task(&other, &k));
  DO(capture(&s, &k, &graph));
  OK(rondo_instantiate(graph, NULL, &exec));
  OK(rondo_graph_destroy(graph));
  DO(capture(&other, &k, &graph));
  OK(rondo_instantiate(graph, NULL, &second));
  for (int turn = 0; turn < LONG; turn++) {
    const scene *where = turn % 2 == 0 ? &s : &other;
    DO(fill(where, &k, turn));
    OK(rondo_exec_launch(turn % 2 == 0 ? exec : second, s.stream));
    DO(compare(where, &k, turn));
  }
  OK(rondo_exec_update(exec, graph, NULL));
  OK(rondo_graph_destroy(graph));
  for (int turn = 0; turn < REPLAYS; turn++) {
    DO(fill(&other, &k, turn));
    OK(rondo_exec_launch(exec, s.stream));
    DO(compare(&other, &k, turn));
  }
  rondo_exec_destroy(exec);
  rondo_exec_destroy(second);
  return close_scene(&s);
}

/* More descriptions than have persistent requests, and than the engine remembers, in turn. */
static int many(void) {
  scene s = {0};
  task k = {.operation = ALL_REDUCE, .type = RONDO_F32, .reduction = RONDO_REDUCE_SUM};
  DO(open_scene(&s));
  for (int round = 0; round < 2; round++)
    for (k.count = 1; k.count <= 900; k.count++) {
      if (k.count % 100 == 1) DO(fill(&s, &k, round));
      OK(call(&s, &k));
      if (k.count % 100 == 1) DO(compare(&s, &k, round));
    }
  OK(rondo_stream_synchronize(s.stream));
  return close_scene(&s);
}

/* A graph with a collective of the subgroup, and one of all ranks. */
static int replay_in(const scene *s, rondo_communicator *half) {
  rondo_graph *graph;
  rondo_exec *exec;
  OK(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  OK(rondo_all_reduce(half, s->stream, s->x, s->y, 1, RONDO_I32, RONDO_REDUCE_SUM));
  OK(rondo_all_reduce(s->communicator, s->stream, s->y, s->y, 1, RONDO_I32, RONDO_REDUCE_SUM));
  OK(rondo_capture_end(s->stream, &graph));
  OK(rondo_instantiate(graph, NULL, &exec));
  OK(rondo_graph_destroy(graph));
  for (int turn = 0; turn < REPLAYS; turn++) {
    int32_t value = rank + turn, result = 0, wanted = 0;
    for (int r = 0; r < size; r++) wanted += (r + turn) * ((size + 1 - r % 2) / 2); /* once for each of its half */
    OK(rondo_copy_async(s->stream, s->x, &value, sizeof value));
    OK(rondo_exec_launch(exec, s->stream));
    OK(rondo_copy_async(s->stream, &result, s->y, sizeof result));
    OK(rondo_stream_synchronize(s->stream));
    REQUIRE(result == wanted);
  }
  rondo_exec_destroy(exec);
  return PASSED;
}

/* Halves of the ranks in reverse order, each with a communicator of its own, beside that of all. */
static int split(void) {
  scene s = {0};
  rondo_communicator *half;
  rondo_communicator_info info = {.struct_size = sizeof info};
  int32_t value = 1 << rank, result = 0, wanted = 0;
  DO(open_scene(&s));
  OK(rondo_communicator_split(s.communicator, (uint32_t)(rank % 2), (uint32_t)(size - rank), &half));
  OK(rondo_communicator_get_info(half, &info));
  REQUIRE(info.world_size == (uint32_t)((size + 1 - rank % 2) / 2) && strcmp(info.engine, engine_name()) == 0);
  REQUIRE(info.rank == info.world_size - 1 - (uint32_t)(rank / 2));
  for (int r = rank % 2; r < size; r += 2) wanted += 1 << r;
  for (int i = 0; i < 10; i++) {
    OK(rondo_copy_async(s.stream, s.x, &value, sizeof value));
    OK(rondo_all_reduce(half, s.stream, s.x, s.y, 1, RONDO_I32, RONDO_REDUCE_SUM));
    OK(rondo_copy_async(s.stream, &result, s.y, sizeof result));
    OK(rondo_barrier(s.communicator, s.stream));
    OK(rondo_stream_synchronize(s.stream));
    REQUIRE(result == wanted);
  }
  DO(replay_in(&s, half));
  OK(rondo_communicator_destroy(half));
  return close_scene(&s);
}

/* Even ranks send, which the next one receives; captured, and replayed with other data. */
static rondo_status call_send(const scene *s, const task *k) {
  if (rank % 2 != 0) return rondo_receive(s->communicator, s->stream, s->y, k->count, k->type, k->root);
  const rondo_status status = rondo_send(s->communicator, s->stream, s->x, k->count, k->type, k->root + 1);
  return status == RONDO_OK ? rondo_copy_async(s->stream, s->y, s->x, k->count * rondo_type_bytes(k->type)) : status;
}

static int sends(void) {
  static const size_t counts[] = {1, MOST};
  scene s = {0};
  DO(open_scene(&s));
  for (int form = 0; form < 2 * TYPES; form++) {
    const task k = {
        .operation = BROADCAST, .type = types[form / 2], .count = counts[form % 2], .root = (uint32_t)(rank & ~1)};
    rondo_graph *graph;
    rondo_exec *exec;
    OK(rondo_capture_begin(s.stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(call_send(&s, &k));
    OK(rondo_capture_end(s.stream, &graph));
    OK(rondo_instantiate(graph, NULL, &exec));
    OK(rondo_graph_destroy(graph));
    for (int turn = 0; turn < REPLAYS; turn++) {
      DO(fill(&s, &k, turn));
      OK(rondo_exec_launch(exec, s.stream));
      DO(compare(&s, &k, turn));
    }
    rondo_exec_destroy(exec);
  }
  return close_scene(&s);
}

/* How often rondo-mpi made persistent requests, and started any. */
static int made, started;

int MPI_Start(MPI_Request *request) {
  started++;
  return PMPI_Start(request);
}

#if defined(OPEN_MPI)
#define INIT(name) MPIX_##name##_init
#define PROFILED_INIT(name) PMPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#define PROFILED_INIT(name) PMPI_##name##_init
#endif
int INIT(Bcast)(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm communicator, MPI_Info info,
                MPI_Request *request) {
  made++;
  return PROFILED_INIT(Bcast)(buffer, count, type, root, communicator, info, request);
}

/* A captured collective is one persistent request, which each launch starts. */
static int made_once(void) {
  const task k = {.operation = BROADCAST, .type = RONDO_F32, .count = 100, .root = 1};
  scene s = {0};
  rondo_graph *graph;
  rondo_exec *exec;
  DO(open_scene(&s));
  DO(capture(&s, &k, &graph));
  OK(rondo_instantiate(graph, NULL, &exec));
  OK(rondo_graph_destroy(graph));
  for (int turn = 0; turn < LONG; turn++) {
    DO(fill(&s, &k, turn));
    OK(rondo_exec_launch(exec, s.stream));
    DO(compare(&s, &k, turn));
  }
  REQUIRE(made == 1 && started == LONG);
  rondo_exec_destroy(exec);
  return close_scene(&s);
}

/* One graph of each kind of collective, launched thousands of times without a wait. The numbers of each rank move on by
 * one rank in a step: by an all-gather, all-to-all, or sends. So a launch too many or too few is seen in the end. */
static rondo_status move_on(const scene *s, int64_t *numbers, int64_t *others) {
  rondo_communicator *const c = s->communicator;
  const uint32_t next = (uint32_t)((rank + 1) % size), last = (uint32_t)((rank + size - 1) % size);
  const size_t bytes = sizeof *numbers;
  rondo_status status = rondo_all_gather(c, s->stream, numbers, others, 1, RONDO_I64);
  if (status == RONDO_OK) status = rondo_copy_async(s->stream, numbers, others + next, bytes);
  if (status == RONDO_OK) status = rondo_send_receive(c, s->stream, numbers, last, others, next, 1, RONDO_I64);
  if (status == RONDO_OK) status = rondo_copy_async(s->stream, numbers, others, bytes);
  if (status == RONDO_OK) status = rondo_all_to_all(c, s->stream, numbers + 1, others, 1, RONDO_I64);
  if (status == RONDO_OK) status = rondo_all_reduce(c, s->stream, numbers, others, 1, RONDO_I64, RONDO_REDUCE_SUM);
  if (status == RONDO_OK) status = rondo_copy_async(s->stream, numbers + 1 + size, others, bytes);
  if (status == RONDO_OK) status = rondo_broadcast(c, s->stream, numbers, others, 1, RONDO_I64, 1);
  return status == RONDO_OK ? rondo_barrier(c, s->stream) : status;
}

static int thousands(void) {
  enum { LAUNCHES = 2000 };
  scene s = {0};
  rondo_graph *graph;
  rondo_exec *exec;
  int64_t sum = 0;
  DO(open_scene(&s));
  int64_t *const numbers = (int64_t *)(void *)s.x, *const others = (int64_t *)(void *)s.y;
  for (int i = 0; i < 2 + size; i++) s.host[i] = 100 + rank;
  for (int r = 0; r < size; r++) sum += 100 + r;
  OK(rondo_copy_async(s.stream, numbers, s.host, (size_t)(2 + size) * sizeof *numbers));
  OK(rondo_capture_begin(s.stream, RONDO_CAPTURE_THREAD_LOCAL));
  OK(move_on(&s, numbers, others));
  OK(rondo_capture_end(s.stream, &graph));
  OK(rondo_instantiate(graph, NULL, &exec));
  OK(rondo_graph_destroy(graph));
  for (int i = 0; i < LAUNCHES; i++) OK(rondo_exec_launch(exec, s.stream));
  OK(rondo_copy_async(s.stream, s.host, numbers, (size_t)(2 + size) * sizeof *numbers));
  OK(rondo_copy_async(s.stream, s.host + 2 + size, others, sizeof *others));
  OK(rondo_stream_synchronize(s.stream));
  REQUIRE(s.host[0] == 100 + (rank + 2 * LAUNCHES) % size); /* two moves in each launch */
  REQUIRE(s.host[1 + size] == sum);
  REQUIRE(s.host[2 + size] == 100 + (1 + 2 * LAUNCHES) % size);
  rondo_exec_destroy(exec);
  return close_scene(&s);
}

/* Two communicators on two streams, whose collectives overlap; and one on two streams that events order. */
static int streams(void) {
  scene s = {0}, other = {0};
  rondo_event *event;
  const task k = {.operation = ALL_REDUCE, .type = RONDO_I32, .reduction = RONDO_REDUCE_SUM, .count = 3000};
  DO(open_scene(&s));
  DO(open_scene(&other));
  OK(rondo_event_create(s.device, NULL, &event));
  for (int turn = 0; turn < 50; turn++) {
    DO(fill(&s, &k, turn));
    DO(fill(&other, &k, turn + 1));
    OK(call(turn % 2 == 0 ? &s : &other, &k));
    OK(call(turn % 2 == 0 ? &other : &s, &k));
    DO(compare(&s, &k, turn));
    DO(compare(&other, &k, turn + 1));
  }
  scene second = s;
  OK(rondo_stream_create(s.device, NULL, &second.stream));
  for (int turn = 0; turn < 50; turn++) {
    DO(fill(&s, &k, turn));
    OK(call(&s, &k));
    OK(rondo_event_record(event, s.stream));
    OK(rondo_stream_wait_event(second.stream, event));
    OK(call(&second, &k));
    DO(compare(&second, &k, turn));
  }
  rondo_event_destroy(event);
  OK(rondo_stream_destroy(second.stream));
  DO(close_scene(&other));
  return close_scene(&s);
}

/* Two threads, each with its own device and communicator. */
static void *run_thread(void *user) {
  const task k = {.operation = ALL_REDUCE, .type = RONDO_F64, .reduction = RONDO_REDUCE_SUM, .count = 500};
  scene *s = user;
  for (int i = 0; i < 100; i++)
    if (run_task(s, &k) != PASSED) return NULL;
  return s;
}

static int threads(void) {
  scene all[2] = {0};
  pthread_t thread;
  void *result;
  DO(open_scene(&all[0]));
  DO(open_scene(&all[1]));
  REQUIRE(pthread_create(&thread, NULL, run_thread, &all[1]) == 0);
  void *const own = run_thread(&all[0]);
  REQUIRE(pthread_join(thread, &result) == 0);
  REQUIRE(own != NULL && result != NULL);
  DO(close_scene(&all[0]));
  return close_scene(&all[1]);
}

/* An exec outlives its communicator, on each rank for another time; then groups are made and destroyed again. */
static int destroyed(void) {
  const task k = {.operation = ALL_GATHER, .type = RONDO_F32, .count = 64};
  for (int i = 0; i < 20; i++) {
    scene s = {0};
    rondo_graph *graph;
    rondo_exec *exec;
    DO(open_scene(&s));
    DO(capture(&s, &k, &graph));
    OK(rondo_instantiate(graph, NULL, &exec));
    if (rank % 2 == 0) OK(rondo_communicator_destroy(s.communicator));
    if (rank % 2 == 0) s.communicator = NULL;
    OK(rondo_graph_destroy(graph));
    for (int turn = 0; turn < 3; turn++) {
      DO(fill(&s, &k, turn));
      OK(rondo_exec_launch(exec, s.stream));
      DO(compare(&s, &k, turn));
    }
    OK(rondo_communicator_destroy(s.communicator));
    s.communicator = NULL;
    rondo_exec_destroy(exec);
    DO(close_scene(&s));
  }
  return PASSED;
}

/* Ranks come late, so that they ask each other how far they are; then the group is made again. */
static int slow(void) {
  const task k = {.operation = BROADCAST, .type = RONDO_I64, .count = 10, .root = 0};
  for (int i = 0; i < 3; i++) {
    scene s = {0};
    DO(open_scene(&s));
    for (int late = 0; late < size; late++) {
      const struct timespec pause = {.tv_nsec = 600 * 1000 * 1000};
      if (rank == late) (void)nanosleep(&pause, NULL);
      DO(run_task(&s, &k));
      OK(rondo_barrier(s.communicator, s.stream));
    }
    OK(rondo_stream_synchronize(s.stream));
    DO(close_scene(&s));
  }
  return PASSED;
}

static const struct {
  const char *name;
  int (*run)(void);
} cases[] = {
    {"operations", operations}, {"large", large},     {"nan_wins", nan_wins},
    {"moved", moved},           {"many", many},       {"split", split},
    {"streams", streams},       {"threads", threads}, {"slow", slow},
    {"destroyed", destroyed},   {"sends", sends},     {"made_once", made_once},
    {"thousands", thousands},
};

/* Without MPI_Finalize, the starter counts who passed (tests/mpi/run). */
static int end(void) {
  if (getenv("RONDO_TEST_WITHOUT_FINALIZE") == NULL) return MPI_Finalize() == MPI_SUCCESS ? PASSED : FAILED;
  (void)MPI_Barrier(MPI_COMM_WORLD);
  (void)printf("rank %d passed\n", rank);
  (void)fflush(NULL);
  (void)usleep(300 * 1000); /* MPICH's starter may drop what a rank says while another ends */
  _exit(PASSED);
}

int main(int argc, char **argv) {
  int level;
  if (argc != 2 || MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 2;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    const int result = cases[i].run();
    if (result != PASSED) (void)MPI_Abort(MPI_COMM_WORLD, result);
    return end();
  }
  (void)fprintf(stderr, "usage: mpirun -n N test_mpi_collectives CASE\n");
  (void)MPI_Abort(MPI_COMM_WORLD, 2);
  return 2;
}
