/* SPDX-License-Identifier: MIT
 * Each call of MPI fails once (MM-6), run as `mpirun -n 2 test_mpi_faults`. In round n, the n-th call that rank 1 makes
 * to begin something fails, by MPI's profiling interface. Rank 1 then gets MPI's error, and rank 0 one that comes
 * within the timeout; both free everything, and make another group in the next round. The last round makes fewer calls,
 * so nothing fails in it.
 *
 * Tests of requests are not counted, because a request is tested any number of times; nor are the messages by which
 * ranks ask each other how far they are, which come at any time; nor MPI_Comm_create_group, for which all ranks wait.
 */
#define _GNU_SOURCE
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <rondo/mpi.h>
#include <rondo/rondo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpi/mpi_test.h"

enum { COUNT = 20, MOST_ROUNDS = 200, JOIN_TIMEOUT_MS = 1000, TIMEOUT_MS = 5000, REPORT_BYTES = 100 };

/* Failing ---------------------------------------------------------------------------------------------------------- */

static atomic_int calls, failing = -1; /* the number of the call that fails; -1: none */

static bool is_due(void) { return rank == 1 && atomic_fetch_add(&calls, 1) == atomic_load(&failing); }

#define FAIL_OR(call) (is_due() ? MPI_ERR_INTERN : (call))

int MPI_Comm_idup(MPI_Comm from, MPI_Comm *to, MPI_Request *request) {
  return FAIL_OR(PMPI_Comm_idup(from, to, request));
}

int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *end, int *key,
                           void *extra) {
  return FAIL_OR(PMPI_Comm_create_keyval(copy, end, key, extra));
}

int MPI_Comm_set_attr(MPI_Comm group, int key, void *value) { return FAIL_OR(PMPI_Comm_set_attr(group, key, value)); }

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm group, MPI_Request *request) {
  const bool is_report = type == MPI_BYTE && count > REPORT_BYTES;
  return is_report ? PMPI_Isend(buffer, count, type, to, tag, group, request)
                   : FAIL_OR(PMPI_Isend(buffer, count, type, to, tag, group, request));
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm group, MPI_Request *request) {
  return FAIL_OR(PMPI_Irecv(buffer, count, type, from, tag, group, request));
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm group,
                   MPI_Request *request) {
  return FAIL_OR(PMPI_Iallreduce(in, out, count, type, op, group, request));
}

int MPI_Iallgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type,
                   MPI_Comm group, MPI_Request *request) {
  return FAIL_OR(PMPI_Iallgather(in, in_count, in_type, out, out_count, out_type, group, request));
}

int MPI_Ialltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type,
                  MPI_Comm group, MPI_Request *request) {
  return FAIL_OR(PMPI_Ialltoall(in, in_count, in_type, out, out_count, out_type, group, request));
}

int MPI_Ibarrier(MPI_Comm group, MPI_Request *request) { return FAIL_OR(PMPI_Ibarrier(group, request)); }

int MPI_Start(MPI_Request *request) { return FAIL_OR(PMPI_Start(request)); }

#if defined(OPEN_MPI)
#define INIT(name) MPIX_##name##_init
#define PROFILED_INIT(name) PMPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#define PROFILED_INIT(name) PMPI_##name##_init
#endif
int INIT(Bcast)(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm group, MPI_Info info,
                MPI_Request *request) {
  return FAIL_OR(PROFILED_INIT(Bcast)(buffer, count, type, root, group, info, request));
}

/* A round ---------------------------------------------------------------------------------------------------------- */

typedef struct scene {
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator, *part;
  void *x, *y;
} scene;

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

static rondo_status open_scene(scene *s) {
  TRY(rondo_device_open("cpu", &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1}, &s->device));
  TRY(rondo_stream_create(s->device, NULL, &s->stream));
  TRY(rondo_malloc(s->device, 2 * COUNT * sizeof(float), "x", &s->x));
  return rondo_malloc(s->device, 2 * COUNT * sizeof(float), "y", &s->y);
}

static rondo_status close_scene(const scene *s) {
  TRY(rondo_free(s->device, s->x));
  TRY(rondo_free(s->device, s->y));
  TRY(rondo_stream_destroy(s->stream));
  return rondo_device_close(s->device);
}

static rondo_status use_all(const scene *s) {
  const uint32_t other = (uint32_t)(1 - rank);
  TRY(rondo_all_reduce(s->communicator, s->stream, s->x, s->y, COUNT, RONDO_F32, RONDO_REDUCE_SUM));
  TRY(rondo_broadcast(s->communicator, s->stream, s->x, s->y, COUNT, RONDO_F32, 0));
  TRY(rondo_all_gather(s->communicator, s->stream, s->x, s->y, COUNT, RONDO_F32));
  TRY(rondo_all_to_all(s->communicator, s->stream, s->x, s->y, COUNT, RONDO_F32));
  TRY(rondo_send_receive(s->communicator, s->stream, s->x, other, s->y, other, COUNT, RONDO_F32));
  TRY(rondo_barrier(s->communicator, s->stream));
  return rondo_stream_synchronize(s->stream);
}

static rondo_status use_group(scene *s, MPI_Comm base) {
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT, .join_timeout_ms = JOIN_TIMEOUT_MS,
                                              .timeout_ms = TIMEOUT_MS};
  TRY(rondo_communicator_from_mpi(s->device, base, &options, &s->communicator));
  TRY(use_all(s));
  TRY(rondo_communicator_split(s->communicator, 0, (uint32_t)rank, &s->part));
  TRY(rondo_barrier(s->part, s->stream));
  return rondo_stream_synchronize(s->stream);
}

/* *more: a call has failed. */
static int run_round(scene *s, int number, bool *more) {
  MPI_Comm base;
  int was_due;
  REQUIRE(PMPI_Comm_dup(MPI_COMM_WORLD, &base) == MPI_SUCCESS); /* an abandoned join stays in progress on it */
  REQUIRE(PMPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  s->communicator = s->part = NULL;
  atomic_store(&calls, 0);
  atomic_store(&failing, number);
  const double begin = MPI_Wtime();
  const rondo_status status = use_group(s, base);
  const double seconds = MPI_Wtime() - begin;
  was_due = atomic_load(&calls) > number;
  atomic_store(&failing, -1);
  REQUIRE(rank == 0 || was_due == (status != RONDO_OK));
  REQUIRE(status == RONDO_OK || strstr(rondo_last_error()->message, "MPI") != NULL ||
          rondo_last_error()->reason == RONDO_REASON_TIMED_OUT);
  REQUIRE(seconds < 2e-3 * TIMEOUT_MS);
  REQUIRE(rondo_communicator_destroy(s->part) == RONDO_OK);
  REQUIRE(rondo_communicator_destroy(s->communicator) == RONDO_OK);
  REQUIRE(PMPI_Bcast(&was_due, 1, MPI_INT, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
  REQUIRE(was_due || status == RONDO_OK);
  *more = was_due;
  return PASSED;
}

static int run_rounds(void) {
  scene s = {0};
  bool more = true;
  int number = 0;
  REQUIRE(open_scene(&s) == RONDO_OK);
  for (; more && number < MOST_ROUNDS; number++)
    if (run_round(&s, number, &more) != PASSED) return FAILED;
  REQUIRE(!more);
  REQUIRE(close_scene(&s) == RONDO_OK);
  if (rank != 1)
    (void)printf("rank %d passed: %d calls failed\n", rank, number - 1); /* as tests/mpi/run --lost counts */
  return PASSED;
}

/* MPI_Finalize would wait for what was abandoned. */
int main(void) {
  int level;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 2;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
  (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH reports errors of requests there */
  const int result = size == 2 ? run_rounds() : FAILED;
  (void)fflush(NULL);
  if (result != PASSED) (void)MPI_Abort(MPI_COMM_WORLD, result);
  (void)PMPI_Barrier(MPI_COMM_WORLD);
  (void)usleep(300 * 1000); /* MPICH's starter may drop what a rank says while another ends */
  _exit(PASSED);
}
