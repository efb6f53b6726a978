/* SPDX-License-Identifier: MIT
 * bench_overlap: how much of the communication of a data-parallel training step is hidden, run as
 * `mpirun -n N bench_overlap`. The ranks train a GPT through rondo_communicator_from_mpi. Four forms of the step take
 * turns: without communication, in a group of one rank; without buckets, where each gradient is reduced by itself; with
 * one bucket, which is complete when the backward ends; and with buckets, which are reduced meanwhile. The share of the
 * communication of another form that buckets hide is 1 - (buckets - without) / (other - without).
 *
 * The latency of a network is added to each exchange: this program's versions of MPI's functions, which MPI's profiling
 * interface allows, test a request only once the latency has passed since its start.
 *
 * Rank 0 prints one JSON object, of medians. BENCH_LATENCY_US (default 1000), BENCH_BUCKET_KIB (1024), BENCH_WIDTH
 * (128), BENCH_LAYERS (4), BENCH_CONTEXT (64), BENCH_BATCH (4), BENCH_ROUNDS (21).
 */
#include <mpi.h>
#include <pthread.h>
#include <rondo/data_parallel.h>
#include <rondo/mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "mpi_bench.h"

enum { WITHOUT, EACH, ONE_BUCKET, BUCKETS, FORMS, MOST_ROUNDS = 201, STEPS = 4, MOST_TOKENS = 1 << 16 };
static const char *const names[FORMS] = {"without", "each_gradient", "one_bucket", "buckets"};

/* The latency ------------------------------------------------------------------------------------------------------ */

enum { MOST_DELAYED = 64 };
static struct {
  MPI_Request request;
  double due; /* seconds; 0: the place is free */
} delayed[MOST_DELAYED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double latency; /* seconds */

static int delay(int code, const MPI_Request *request) {
  const double due = MPI_Wtime() + latency;
  int at = 0;
  if (code != MPI_SUCCESS || latency <= 0) return code;
  pthread_mutex_lock(&lock);
  while (at < MOST_DELAYED && delayed[at].due > 0 && delayed[at].request != *request) at++;
  if (at < MOST_DELAYED) {
    delayed[at].request = *request;
    delayed[at].due = due;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

static bool is_on_its_way(MPI_Request request) {
  bool is_early = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_DELAYED; i++) {
    if (!(delayed[i].due > 0) || delayed[i].request != request) continue;
    is_early = MPI_Wtime() < delayed[i].due;
    if (!is_early) delayed[i].due = 0;
  }
  pthread_mutex_unlock(&lock);
  return is_early;
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm group, MPI_Request *request) {
  return delay(PMPI_Irecv(buffer, count, type, from, tag, group, request), request);
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm group,
                   MPI_Request *request) {
  return delay(PMPI_Iallreduce(in, out, count, type, op, group, request), request);
}

int MPI_Iallgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type,
                   MPI_Comm group, MPI_Request *request) {
  return delay(PMPI_Iallgather(in, in_count, in_type, out, out_count, out_type, group, request), request);
}

int MPI_Start(MPI_Request *request) { return delay(PMPI_Start(request), request); }

int MPI_Test(MPI_Request *request, int *is_done, MPI_Status *status) {
  *is_done = 0;
  return is_on_its_way(*request) ? MPI_SUCCESS : PMPI_Test(request, is_done, status);
}

int MPI_Testall(int count, MPI_Request *requests, int *are_done, MPI_Status *statuses) {
  *are_done = 0;
  for (int i = 0; i < count; i++)
    if (is_on_its_way(requests[i])) return MPI_SUCCESS;
  return PMPI_Testall(count, requests, are_done, statuses);
}

/* The step --------------------------------------------------------------------------------------------------------- */

typedef struct bench {
  rondo_device *device;
  rondo_communicator *communicators[2]; /* of this rank alone, and of all */
  language_model model;
  size_t batch;
  rondo_compiled *steps[FORMS];
} bench;

static void open_bench(bench *b) {
  unsigned char occurs[256];
  memset(occurs, 1, sizeof occurs);
  check(rondo_device_open("cpu", &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1}, &b->device));
  check(rondo_communicator_from_mpi(b->device, MPI_COMM_SELF, NULL, &b->communicators[0]));
  check(rondo_communicator_from_mpi(b->device, MPI_COMM_WORLD, NULL, &b->communicators[1]));
  b->model = (language_model){.kind = &model_gpt, .type = RONDO_F32, .vocabulary = vocabulary_create(occurs)};
  memcpy(b->model.sizes, model_gpt.sizes, sizeof b->model.sizes);
  b->model.sizes[MODEL_CONTEXT] = setting("BENCH_CONTEXT", 64);
  b->model.sizes[MODEL_WIDTH] = setting("BENCH_WIDTH", 128);
  b->model.sizes[MODEL_LAYERS] = setting("BENCH_LAYERS", 4);
  b->batch = setting("BENCH_BATCH", 4);
}

static rondo_compiled *make_step(const bench *b, int form) {
  static int32_t tokens[MOST_TOKENS];
  const uint64_t bucket_bytes = form == EACH      ? sizeof(float)
                                : form == BUCKETS ? (uint64_t)setting("BENCH_BUCKET_KIB", 1024) << 10
                                                  : UINT64_C(1) << 40;
  const rondo_data_parallel_options parallel = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .bucket_bytes = bucket_bytes};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS};
  const size_t count = b->batch * b->model.sizes[MODEL_CONTEXT];
  rondo_program *program;
  rondo_compiled *compiled;
  if (count > MOST_TOKENS) (void)MPI_Abort(MPI_COMM_WORLD, 2);
  for (size_t i = 0; i < count; i++) tokens[i] = (int32_t)(i * 7 % 256);
  check(rondo_program_create(NULL, &program));
  check(rondo_program_data_parallel(program, b->communicators[form != WITHOUT], &parallel));
  check(model_build_step(&b->model, program, b->batch, NULL));
  check(rondo_compile(program, b->device, &options, &compiled));
  rondo_program_destroy(program);
  if (model_initialize(&b->model, compiled, 1) != 0) (void)MPI_Abort(MPI_COMM_WORLD, 2);
  check(rondo_compiled_write(compiled, "tokens", tokens, count * sizeof *tokens));
  check(rondo_compiled_write(compiled, "labels", tokens, count * sizeof *tokens));
  return compiled;
}

/* Milliseconds of a step, the mean of the ranks. */
static double sample(const bench *b, int form) {
  (void)MPI_Barrier(MPI_COMM_WORLD);
  latency = form == WITHOUT ? 0 : setting("BENCH_LATENCY_US", 1000) * 1e-6;
  const double begin = MPI_Wtime();
  for (int i = 0; i < STEPS; i++) check(rondo_compiled_run(b->steps[form]));
  check(rondo_compiled_synchronize(b->steps[form]));
  const double own = (MPI_Wtime() - begin) * 1e3 / STEPS;
  double sum = 0;
  (void)MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / size;
}

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void measure(const bench *b) {
  static double samples[FORMS][MOST_ROUNDS];
  const uint32_t asked = setting("BENCH_ROUNDS", 21), rounds = asked < MOST_ROUNDS ? asked : MOST_ROUNDS;
  double median[FORMS];
  for (int form = 0; form < FORMS; form++) (void)sample(b, form);
  for (uint32_t r = 0; r < rounds; r++)
    for (int form = 0; form < FORMS; form++) samples[form][r] = sample(b, form);
  if (rank != 0) return;
  (void)printf("{\"name\": \"overlap\", \"ranks\": %d, \"gradient_bytes\": %.0f", size,
               4 * model_parameter_elements(&b->model));
  for (int form = 0; form < FORMS; form++) {
    qsort(samples[form], rounds, sizeof samples[form][0], compare);
    median[form] = samples[form][rounds / 2];
    (void)printf(", \"%s_ms\": [%.3f, %.3f]", names[form], samples[form][0], median[form]);
  }
  const double shown = median[BUCKETS] - median[WITHOUT];
  (void)printf(", \"hidden_of_each\": %.3f, \"hidden_of_one_bucket\": %.3f}\n",
               1 - shown / (median[EACH] - median[WITHOUT]), 1 - shown / (median[ONE_BUCKET] - median[WITHOUT]));
}

int main(int argc, char **argv) {
  int level;
  bench b = {0};
  (void)MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
  open_bench(&b);
  for (int form = 0; form < FORMS; form++) b.steps[form] = make_step(&b, form);
  measure(&b);
  for (int form = 0; form < FORMS; form++) check(rondo_compiled_destroy(b.steps[form]));
  for (int i = 0; i < 2; i++) check(rondo_communicator_destroy(b.communicators[i]));
  check(rondo_device_close(b.device));
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
