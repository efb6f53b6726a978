/* SPDX-License-Identifier: MIT
 * bench_mpi: the all-reduce (sum) of F32, run as `mpirun -n N bench_mpi`: the loop of osu_allreduce (OSU
 * Micro-Benchmarks), which is blocking calls of MPI_Allreduce between two buffers, beside Rondo's, eager and replayed.
 *
 * In each round all take turns, so that a noisy moment hits all. A sample is the mean time of a call over a batch of
 * calls, averaged over the ranks, as osu_allreduce does it; a row has the least and the median of the rounds.
 * "persistent" starts MPI's persistent all-reduce and waits for it; "replay" launches a captured all-reduce and waits
 * for it at each call, as MPI_Allreduce does; "graph" launches a graph of GRAPH_CALLS all-reduces and waits once, as a
 * training step does; "eager" calls and waits.
 *
 * Rank 0 prints one JSON object; bench/mpi/run makes a table of it. BENCH_BUDGET_MS: time of a sample (default 40);
 * BENCH_ROUNDS (default 9); BENCH_MAX_BYTES (default 64 MiB).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <rondo/mpi.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_bench.h"

/* MPI 4 has persistent collectives; OpenMPI 4 has them as an extension. */
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#define MAKE_PERSISTENT MPIX_Allreduce_init
#else
#define MAKE_PERSISTENT MPI_Allreduce_init
#endif

enum { OSU, PERSISTENT, REPLAY, GRAPH, EAGER, METHODS, MAX_ROUNDS = 101, GRAPH_CALLS = 50, WARM_UP = 20 };
static const char *const names[METHODS] = {"osu_allreduce", "persistent", "replay", "graph", "eager"};

typedef struct bench {
  rondo_device *device;
  rondo_stream *stream;
  rondo_communicator *communicator;
  float *src, *dst;
  size_t count;
  rondo_exec *execs[METHODS]; /* of REPLAY and GRAPH */
  MPI_Request persistent;
} bench;

static void open_bench(bench *b, size_t bytes) {
  void *src, *dst;
  check(rondo_device_open("cpu", &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1}, &b->device));
  check(rondo_stream_create(b->device, NULL, &b->stream));
  check(rondo_communicator_from_mpi(b->device, MPI_COMM_WORLD, NULL, &b->communicator));
  check(rondo_malloc(b->device, bytes, "src", &src));
  check(rondo_malloc(b->device, bytes, "dst", &dst));
  b->src = src;
  b->dst = dst;
  for (size_t i = 0; i < bytes / sizeof *b->src; i++) b->src[i] = (float)rank;
}

static void close_bench(bench *b) {
  check(rondo_communicator_destroy(b->communicator));
  check(rondo_free(b->device, b->src));
  check(rondo_free(b->device, b->dst));
  check(rondo_stream_destroy(b->stream));
  check(rondo_device_close(b->device));
}

static void reduce(const bench *b) {
  check(rondo_all_reduce(b->communicator, b->stream, b->src, b->dst, b->count, RONDO_F32, RONDO_REDUCE_SUM));
}

static rondo_exec *capture(const bench *b, int calls) {
  rondo_graph *graph;
  rondo_exec *exec;
  check(rondo_capture_begin(b->stream, RONDO_CAPTURE_THREAD_LOCAL));
  for (int i = 0; i < calls; i++) reduce(b);
  check(rondo_capture_end(b->stream, &graph));
  check(rondo_instantiate(graph, NULL, &exec));
  check(rondo_graph_destroy(graph));
  return exec;
}

/* Runs at least `calls` all-reduces; returns their number. */
static int run(bench *b, int method, int calls) {
  int done = 0;
  while (done < calls) {
    if (method == OSU) (void)MPI_Allreduce(b->src, b->dst, (int)b->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (method == PERSISTENT) {
      (void)MPI_Start(&b->persistent);
      (void)MPI_Wait(&b->persistent, MPI_STATUS_IGNORE);
    }
    if (method == EAGER) reduce(b);
    if (method == REPLAY || method == GRAPH) check(rondo_exec_launch(b->execs[method], b->stream));
    if (method != OSU && method != PERSISTENT) check(rondo_stream_synchronize(b->stream));
    done += method == GRAPH ? GRAPH_CALLS : 1;
  }
  return done;
}

/* Microseconds of a call, the mean of the ranks. */
static double sample(bench *b, int method, int calls) {
  (void)MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  const int done = run(b, method, calls);
  const double own = (MPI_Wtime() - begin) * 1e6 / done;
  double sum = 0;
  (void)MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / size;
}

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void measure(bench *b, size_t bytes, int rounds, double budget_us, bool *is_first) {
  double samples[METHODS][MAX_ROUNDS], wanted = (double)size * (size - 1) / 2;
  b->count = bytes / sizeof *b->src;
  b->execs[REPLAY] = capture(b, 1);
  b->execs[GRAPH] = capture(b, GRAPH_CALLS);
  (void)MAKE_PERSISTENT(b->src, b->dst, (int)b->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &b->persistent);
  for (int m = 0; m < METHODS; m++) {
    b->dst[b->count - 1] = -1;
    (void)run(b, m, bytes < 1 << 20 ? WARM_UP : 1);
    if ((double)b->dst[b->count - 1] == wanted) continue;
    (void)fprintf(stderr, "%s of %zu bytes: wrong sum\n", names[m], bytes);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const double once_us = sample(b, OSU, bytes < 1 << 20 ? WARM_UP : 2);
  const int calls = once_us * 10 > budget_us ? 10 : (int)(budget_us / once_us);
  for (int r = 0; r < rounds; r++)
    for (int m = 0; m < METHODS; m++) samples[m][r] = sample(b, m, calls);
  for (int m = 0; m < METHODS; m++) {
    qsort(samples[m], (size_t)rounds, sizeof samples[m][0], compare);
    if (rank != 0) continue;
    (void)printf(
        "%s\n{\"ranks\": %d, \"bytes\": %zu, \"method\": \"%s\", \"calls\": %d, \"least_us\": %.3f, \"median_us\": "
        "%.3f}",
        *is_first ? "" : ",", size, bytes, names[m], calls, samples[m][0], samples[m][rounds / 2]);
    *is_first = false;
  }
  (void)fflush(stdout);
  rondo_exec_destroy(b->execs[REPLAY]);
  rondo_exec_destroy(b->execs[GRAPH]);
  (void)MPI_Request_free(&b->persistent);
}

int main(int argc, char **argv) {
  int level, length;
  bool is_first = true;
  bench b = {0};
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  (void)MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
  (void)MPI_Get_library_version(version, &length);
  for (int i = 0; version[i] != '\0'; i++)
    if (version[i] == ',' || version[i] == '\n') version[i] = '\0';
  for (char *c = version; *c != '\0'; c++)
    if (*c == '\t' || *c == '"') *c = ' ';
  const size_t most = (size_t)setting("BENCH_MAX_BYTES", 64 << 20);
  const long rounds = setting("BENCH_ROUNDS", 9);
  open_bench(&b, most);
  if (rank == 0) (void)printf("{\"name\": \"mpi\", \"mpi\": \"%s\", \"rows\": [", version);
  for (size_t bytes = 8; bytes <= most; bytes = bytes < most && bytes * 8 > most ? most : bytes * 8)
    measure(&b, bytes, rounds > MAX_ROUNDS ? MAX_ROUNDS : (int)rounds, (double)setting("BENCH_BUDGET_MS", 40) * 1e3,
            &is_first);
  if (rank == 0) (void)printf("\n]}\n");
  close_bench(&b);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
