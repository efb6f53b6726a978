/* SPDX-License-Identifier: MIT
 * Data-parallel training on MPI (MM-4), run as `mpirun -n N test_mpi_training`: the ranks train one network, with
 * sharded states and without, recorded and eager. They divide the rows of a table, which begins with zeros (MM-3).
 * Their mean losses are those of one rank with the whole batch, which each of them computes too, and their weights have
 * the same bits. Before that, one of them compiles another program (MM-6).
 */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <rondo/mpi.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 24, INPUTS = 12, HIDDEN = 32, CLASSES = 4, WEIGHTS = INPUTS * HIDDEN, STEPS = 8 };

static int rank, size;

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

/* How a network is trained; NULL for the communicator: on one rank. */
typedef struct training {
  rondo_device *device;
  rondo_communicator *communicator;
  bool shards, eager;
  bool differs; /* it has another operator */
  float losses[STEPS], weights[WEIGHTS];
} training;

static size_t batch_of(const training *t) { return t->communicator == NULL ? BATCH : BATCH / (size_t)size; }

static rondo_status add_network(const training *t, rondo_program *program) {
  const size_t x_shape[] = {batch_of(t), INPUTS}, first[] = {INPUTS, HIDDEN}, second[] = {HIDDEN, CLASSES};
  const rondo_data_parallel_options options = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = t->shards,
                                               .bucket_bytes = 1024};
  const rondo_state_options divided = {RONDO_STATE_OPTIONS_INIT, .shard_rows = t->communicator != NULL};
  const size_t table_shape[] = {CLASSES + 1, INPUTS};
  rondo_value x, labels, table, w1, w2, rate, loss;
  if (t->communicator != NULL) TRY(rondo_program_data_parallel(program, t->communicator, &options));
  TRY(rondo_program_input(program, "x", RONDO_F32, x_shape, 2, &x));
  TRY(rondo_program_input(program, "labels", RONDO_I32, x_shape, 1, &labels));
  TRY(rondo_program_state(program, "w1", RONDO_F32, first, 2, &w1));
  TRY(rondo_program_state(program, "w2", RONDO_F32, second, 2, &w2));
  TRY(rondo_program_state_with(program, "table", RONDO_F32, table_shape, 2, &divided, &table));
  TRY(rondo_op_embedding(program, table, labels, &table));
  TRY(rondo_op_add(program, x, table, &x));
  TRY(rondo_op_matmul(program, x, w1, (rondo_value){0}, &x));
  TRY(t->differs ? rondo_op_relu(program, x, &x) : rondo_op_tanh(program, x, &x));
  TRY(rondo_op_matmul(program, x, w2, (rondo_value){0}, &x));
  TRY(rondo_op_cross_entropy(program, x, labels, &loss));
  TRY(rondo_program_output(program, "loss", loss));
  TRY(rondo_program_cell(program, "rate", 0.05f, &rate));
  const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .max_norm = 1};
  return rondo_program_adam(
      program, loss, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .gradients = &gradients});
}

static rondo_status write_numbers(rondo_compiled *compiled, const char *name, size_t first, size_t count) {
  float numbers[BATCH * HIDDEN];
  for (size_t i = 0; i < count; i++) numbers[i] = (float)((first + i) * 7919 % 1009) / 1009 - 0.5f;
  return rondo_compiled_write(compiled, name, numbers, count * sizeof *numbers);
}

static rondo_status write_start(const training *t, rondo_compiled *compiled) {
  const size_t batch = batch_of(t), first_row = t->communicator == NULL ? 0 : batch * (size_t)rank;
  int32_t labels[BATCH];
  for (size_t i = 0; i < batch; i++) labels[i] = (int32_t)((first_row + i) * 5 % CLASSES);
  TRY(rondo_compiled_write(compiled, "labels", labels, batch * sizeof *labels));
  TRY(write_numbers(compiled, "x", first_row * INPUTS, batch * INPUTS));
  if (t->communicator == NULL || rank == 0) {
    TRY(write_numbers(compiled, "w1", 1, WEIGHTS));
    TRY(write_numbers(compiled, "w2", 5, (size_t)HIDDEN * CLASSES));
  }
  return t->communicator == NULL ? RONDO_OK : rondo_compiled_broadcast(compiled, 0);
}

static rondo_status train(training *t) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .record = t->eager ? RONDO_RECORD_NEVER : RONDO_RECORD_ALWAYS};
  rondo_program *program;
  rondo_compiled *compiled;
  TRY(rondo_program_create(NULL, &program));
  TRY(add_network(t, program));
  TRY(rondo_compile(program, t->device, &options, &compiled));
  rondo_program_destroy(program);
  TRY(write_start(t, compiled));
  for (int i = 0; i < STEPS; i++) {
    TRY(rondo_compiled_run(compiled));
    TRY(rondo_compiled_read(compiled, "loss", &t->losses[i], sizeof t->losses[i]));
  }
  TRY(rondo_compiled_read(compiled, "w1", t->weights, sizeof t->weights));
  return rondo_compiled_destroy(compiled);
}

/* Whether the results of all ranks are those of one. */
static bool agree(const training *t, const training *alone) {
  float losses[STEPS], least[WEIGHTS], most[WEIGHTS];
  bool all = true;
  (void)MPI_Allreduce(t->losses, losses, STEPS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  (void)MPI_Allreduce(t->weights, least, WEIGHTS, MPI_FLOAT, MPI_MIN, MPI_COMM_WORLD);
  (void)MPI_Allreduce(t->weights, most, WEIGHTS, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  for (int i = 0; i < STEPS; i++) all = all && fabsf(losses[i] / (float)size - alone->losses[i]) < 1e-5f;
  for (int i = 0; i < WEIGHTS; i++) all = all && least[i] == most[i] && fabsf(least[i] - alone->weights[i]) < 1e-4f;
  if (!all) (void)fprintf(stderr, "rank %d: the losses or weights differ\n", rank);
  return all;
}

/* The last rank compiles another program (MM-6): all ranks are refused, and can go on. */
static rondo_status compile_others(const training *alone, rondo_communicator *communicator, bool *passed) {
  const training t = {.communicator = communicator, .differs = rank == size - 1};
  rondo_program *program;
  rondo_compiled *compiled;
  TRY(rondo_program_create(NULL, &program));
  TRY(add_network(&t, program));
  const bool refused = rondo_compile(program, alone->device, NULL, &compiled) == RONDO_INVALID_ARGUMENT &&
                       rondo_last_error()->reason == RONDO_REASON_MISMATCH &&
                       strstr(rondo_last_error()->message, "compiles another program") != NULL;
  rondo_program_destroy(program);
  if (!refused) (void)fprintf(stderr, "rank %d: not refused: %s\n", rank, rondo_last_error()->message);
  *passed = refused && *passed;
  return RONDO_OK;
}

static rondo_status run(bool *passed) {
  training alone = {.device = NULL};
  rondo_communicator *communicator;
  TRY(rondo_device_open("cpu", &(rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .workers = 1}, &alone.device));
  TRY(rondo_communicator_from_mpi(alone.device, MPI_COMM_WORLD, NULL, &communicator));
  TRY(compile_others(&alone, communicator, passed));
  TRY(train(&alone));
  for (int form = 0; form < 4; form++) {
    training t = {
        .device = alone.device, .communicator = communicator, .shards = form % 2 != 0, .eager = form / 2 != 0};
    TRY(train(&t));
    *passed = agree(&t, &alone) && *passed;
  }
  TRY(rondo_communicator_destroy(communicator));
  return rondo_device_close(alone.device);
}

int main(int argc, char **argv) {
  int level;
  bool passed = true;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 2;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (run(&passed) != RONDO_OK) {
    (void)fprintf(stderr, "rank %d: %s\n", rank, rondo_last_error()->message);
    passed = false;
  }
  if (!passed) (void)MPI_Abort(MPI_COMM_WORLD, 1);
  (void)MPI_Barrier(MPI_COMM_WORLD);
  (void)printf("rank %d passed\n", rank);
  (void)fflush(NULL);
  if (getenv("RONDO_TEST_WITHOUT_FINALIZE") != NULL) { /* see tests/mpi/run */
    (void)usleep(300 * 1000); /* MPICH's starter may drop what a rank says while another ends */
    _exit(EXIT_SUCCESS);
  }
  return MPI_Finalize() == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
