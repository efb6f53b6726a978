/* SPDX-License-Identifier: MIT
 * Data-parallel training: two ranks train one network, each on its own half of the batch. Here the ranks are threads of
 * one process, with a CPU device each; ranks that are processes differ only in how they make their communicator. Each
 * rank records its step as a graph, in which gradients are reduced while others are still being computed, and keeps
 * half of the optimizer's states.
 *
 *   train_ranks
 *
 * Prints: 2 ranks have learned 64 of 64 products
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { RANKS = 2, DIGITS = 8, BATCH = DIGITS * DIGITS / RANKS, WIDTH = 16, HIDDEN = 64, STEPS = 300 };

/* One rank. */
typedef struct trainer {
  uint32_t rank;
  rondo_device *device;
  rondo_communicator *communicator;
  int learned; /* products of this rank's half */
} trainer;

/* From two digits to the last digit of their product, in base DIGITS. */
static rondo_status write_network(rondo_program *program, rondo_value *out_loss) {
  rondo_value digits, answers, table, w1, b1, w2, x;
  TRY(rondo_program_input(program, "digits", RONDO_I32, (size_t[]){2 * BATCH}, 1, &digits));
  TRY(rondo_program_input(program, "answers", RONDO_I32, (size_t[]){BATCH}, 1, &answers));
  TRY(rondo_program_state(program, "table", RONDO_F32, (size_t[]){DIGITS, WIDTH}, 2, &table));
  TRY(rondo_program_state(program, "w1", RONDO_F32, (size_t[]){2 * WIDTH, HIDDEN}, 2, &w1));
  TRY(rondo_program_state(program, "b1", RONDO_F32, (size_t[]){HIDDEN}, 1, &b1));
  TRY(rondo_program_state(program, "w2", RONDO_F32, (size_t[]){HIDDEN, DIGITS}, 2, &w2));
  TRY(rondo_op_embedding(program, table, digits, &x));
  TRY(rondo_op_reshape(program, x, (size_t[]){BATCH, 2 * WIDTH}, 2, &x));
  TRY(rondo_op_matmul(program, x, w1, b1, &x));
  TRY(rondo_op_tanh(program, x, &x));
  TRY(rondo_op_matmul(program, x, w2, (rondo_value){0}, &x));
  TRY(rondo_program_output(program, "logits", x));
  return rondo_op_cross_entropy(program, x, answers, out_loss);
}

static rondo_status make_network(const trainer *t, rondo_compiled **out) {
  rondo_program *program;
  rondo_value loss, rate;
  TRY(rondo_program_create(NULL, &program));
  TRY(write_network(program, &loss));

  /* Before the optimizer, which then reduces the gradients of all ranks. */
  const rondo_data_parallel_options options = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = true};
  TRY(rondo_program_data_parallel(program, t->communicator, &options));
  TRY(rondo_program_cell(program, "rate", 0.01f, &rate));
  TRY(rondo_program_adam(program, loss, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate}));

  TRY(rondo_compile(program, t->device, NULL, out)); /* waits for the other ranks */
  rondo_program_destroy(program);
  return RONDO_OK;
}

/* Initial values must differ: with zeros, all units would learn the same. */
static rondo_status spread(rondo_compiled *compiled, const char *name, size_t count) {
  float values[2 * WIDTH * HIDDEN];
  for (size_t i = 0; i < count; i++) values[i] = ((float)(i * 7919 % 1009) / 1009 - 0.5f) / 2;
  return rondo_compiled_write(compiled, name, values, count * sizeof *values);
}

/* Rank 0 has the initial values; the others get them from it. */
static rondo_status start(const trainer *t, rondo_compiled *compiled) {
  if (t->rank == 0) {
    TRY(spread(compiled, "table", DIGITS * WIDTH));
    TRY(spread(compiled, "w1", 2 * WIDTH * HIDDEN));
    TRY(spread(compiled, "w2", HIDDEN * DIGITS));
  }
  return rondo_compiled_broadcast(compiled, 0);
}

/* Each rank has its own part of the batch: every second pair of digits. */
static int answer_of(const trainer *t, int i, int32_t pair[2]) {
  const int number = RANKS * i + (int)t->rank;
  pair[0] = number / DIGITS;
  pair[1] = number % DIGITS;
  return pair[0] * pair[1] % DIGITS;
}

static rondo_status write_part(const trainer *t, rondo_compiled *compiled) {
  int32_t digits[BATCH][2], answers[BATCH];
  for (int i = 0; i < BATCH; i++) answers[i] = answer_of(t, i, digits[i]);
  TRY(rondo_compiled_write(compiled, "digits", digits, sizeof digits));
  return rondo_compiled_write(compiled, "answers", answers, sizeof answers);
}

static rondo_status count_learned(trainer *t, rondo_compiled *compiled) {
  float logits[BATCH][DIGITS];
  int32_t pair[2];
  TRY(rondo_compiled_read(compiled, "logits", logits, sizeof logits));
  for (int i = 0; i < BATCH; i++) {
    int best = 0;
    for (int k = 1; k < DIGITS; k++) best = logits[i][k] > logits[i][best] ? k : best;
    t->learned += best == answer_of(t, i, pair);
  }
  return RONDO_OK;
}

static rondo_status train(trainer *t) {
  rondo_compiled *compiled;
  TRY(make_network(t, &compiled));
  TRY(start(t, compiled));
  TRY(write_part(t, compiled));
  for (int step = 0; step < STEPS; step++) TRY(rondo_compiled_run(compiled)); /* one launch */
  TRY(count_learned(t, compiled));
  return rondo_compiled_destroy(compiled);
}

static void *run_rank(void *user) {
  trainer *t = user;
  if (train(t) == RONDO_OK) return t;
  fprintf(stderr, "rank %u: %s\n", t->rank, rondo_last_error()->message);
  exit(EXIT_FAILURE); /* the other rank would wait for this one */
}

static rondo_status make_ranks(trainer ranks[RANKS]) {
  static const char *const names[RANKS] = {"cpu:0", "cpu:1"};
  rondo_device *devices[RANKS];
  rondo_communicator *communicators[RANKS];
  for (uint32_t i = 0; i < RANKS; i++) TRY(rondo_device_open(names[i], NULL, &devices[i]));
  TRY(rondo_communicator_create_all(devices, RANKS, NULL, communicators));
  for (uint32_t i = 0; i < RANKS; i++)
    ranks[i] = (trainer){.rank = i, .device = devices[i], .communicator = communicators[i]};
  return RONDO_OK;
}

int main(void) {
  trainer ranks[RANKS];
  pthread_t threads[RANKS];
  int learned = 0;
  if (make_ranks(ranks) != RONDO_OK) {
    fprintf(stderr, "%s\n", rondo_last_error()->message);
    return EXIT_FAILURE;
  }
  for (int i = 0; i < RANKS; i++)
    if (pthread_create(&threads[i], NULL, run_rank, &ranks[i]) != 0) return EXIT_FAILURE;
  for (int i = 0; i < RANKS; i++) {
    void *done;
    if (pthread_join(threads[i], &done) != 0 || done == NULL) return EXIT_FAILURE;
    learned += ranks[i].learned;
  }
  for (int i = 0; i < RANKS; i++) {
    if (rondo_communicator_destroy(ranks[i].communicator) != RONDO_OK) return EXIT_FAILURE;
    if (rondo_device_close(ranks[i].device) != RONDO_OK) return EXIT_FAILURE;
  }
  printf("%d ranks have learned %d of %d products\n", RANKS, learned, RANKS * BATCH);
  return EXIT_SUCCESS;
}
