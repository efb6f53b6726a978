/* SPDX-License-Identifier: MIT
 * rondo_bench training: a training step of a small language model (embedding, two matrix products with tanh between,
 * cross entropy, Adam) at several sizes, recorded as one graph and eager, in alternation on the same memory.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { BATCH = 32, CONTEXT = 8, SYMBOLS = 64, WIDTH = 16, SIZES = 3, MOST_STEPS = 4000, TURN = 20 };
static const size_t hidden_sizes[SIZES] = {32, 128, 512};

static rondo_value add_state(rondo_program *program, const char *name, size_t rows, size_t columns) {
  const size_t shape[2] = {rows, columns};
  rondo_value value;
  check(rondo_program_state(program, name, RONDO_F32, rows == 0 ? shape + 1 : shape, rows == 0 ? 1 : 2, &value));
  return value;
}

static rondo_value build_loss(rondo_program *program, size_t hidden) {
  const size_t tokens_shape[2] = {BATCH, CONTEXT}, labels_shape[1] = {BATCH}, joined[2] = {BATCH, CONTEXT * WIDTH};
  rondo_value tokens, labels, x;
  check(rondo_program_input(program, "tokens", RONDO_I32, tokens_shape, 2, &tokens));
  check(rondo_program_input(program, "labels", RONDO_I32, labels_shape, 1, &labels));
  const rondo_value table = add_state(program, "table", SYMBOLS, WIDTH);
  const rondo_value w1 = add_state(program, "w1", CONTEXT * WIDTH, hidden), b1 = add_state(program, "b1", 0, hidden);
  const rondo_value w2 = add_state(program, "w2", hidden, SYMBOLS), b2 = add_state(program, "b2", 0, SYMBOLS);
  check(rondo_op_embedding(program, table, tokens, &x));
  check(rondo_op_reshape(program, x, joined, 2, &x));
  check(rondo_op_matmul(program, x, w1, b1, &x));
  check(rondo_op_tanh(program, x, &x));
  check(rondo_op_matmul(program, x, w2, b2, &x));
  check(rondo_op_cross_entropy(program, x, labels, &x));
  check(rondo_program_output(program, "loss", x));
  return x;
}

/* Random weights, so that the numbers are ordinary ones. */
static void write_weights(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  uint64_t random = 1;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 's' || value.type != RONDO_F32 || strchr(value.name, '.') != NULL) continue;
    const size_t count = value.bytes / sizeof(float);
    float *weights = bench_zeroed(count, sizeof *weights);
    for (size_t k = 0; k < count; k++) weights[k] = (float)bench_random_below(&random, 2001) / 10000.0f - 0.1f;
    check(rondo_compiled_write(compiled, value.name, weights, value.bytes));
    free(weights);
  }
}

static void write_batch(rondo_compiled *compiled) {
  int32_t tokens[BATCH * CONTEXT], labels[BATCH];
  uint64_t random = 2;
  for (int i = 0; i < BATCH * CONTEXT; i++) tokens[i] = (int32_t)bench_random_below(&random, SYMBOLS);
  for (int i = 0; i < BATCH; i++) labels[i] = tokens[i * CONTEXT];
  check(rondo_compiled_write(compiled, "tokens", tokens, sizeof tokens));
  check(rondo_compiled_write(compiled, "labels", labels, sizeof labels));
}

static rondo_compiled *make_model(rondo_device *device, size_t hidden) {
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value rate;
  check(rondo_program_create(NULL, &program));
  const rondo_value loss = build_loss(program, hidden);
  check(rondo_program_cell(program, "rate", 0.001f, &rate));
  const rondo_adam_options options = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate};
  check(rondo_program_adam(program, loss, &options));
  check(rondo_compile(program, device, NULL, &compiled));
  rondo_program_destroy(program);
  write_weights(compiled);
  write_batch(compiled);
  return compiled;
}

typedef struct steps {
  rondo_status (*run)(rondo_compiled *compiled);
  samples host, total; /* nanoseconds */
} steps;

static void take_turn(rondo_compiled *compiled, steps *self) {
  for (int i = 0; i < TURN && !samples_are_full(&self->total); i++) {
    const uint64_t start = clock_ns();
    check(self->run(compiled));
    const uint64_t enqueued = clock_ns();
    check(rondo_compiled_synchronize(compiled));
    samples_add(&self->total, (double)(clock_ns() - start));
    samples_add(&self->host, (double)(enqueued - start));
  }
}

static void report(size_t hidden, const char *manner, steps *self) {
  char measure[64];
  snprintf(measure, sizeof measure, "train_%zu_%s", hidden, manner);
  bench_report_value(measure, "ns", &self->total);
  snprintf(measure, sizeof measure, "train_%zu_%s_host", hidden, manner);
  bench_report_value(measure, "ns", &self->host);
}

static void measure_training(size_t hidden) {
  steps recorded = {rondo_compiled_run, bench_samples(MOST_STEPS), bench_samples(MOST_STEPS)};
  steps eager = {rondo_compiled_run_unrecorded, bench_samples(MOST_STEPS), bench_samples(MOST_STEPS)};
  const uint64_t budget_ns = 4 * (uint64_t)bench_setting("BENCH_BUDGET_MS", 150) * 1000000u;
  rondo_device *device = NULL;
  check(rondo_device_open(bench_device(), NULL, &device));
  rondo_compiled *compiled = make_model(device, hidden);
  for (int turn = 0; turn < 2; turn++) { /* the first warms up */
    const uint64_t end = clock_ns() + (turn == 0 ? budget_ns / 10 : budget_ns);
    recorded.host.count = recorded.total.count = eager.host.count = eager.total.count = 0;
    do {
      take_turn(compiled, &recorded);
      take_turn(compiled, &eager);
    } while (clock_ns() < end && !samples_are_full(&recorded.total));
  }
  report(hidden, "recorded", &recorded);
  report(hidden, "unrecorded", &eager);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench training", rondo_version());
  for (int i = 0; i < SIZES; i++) {
    if (bench_child()) measure_training(hidden_sizes[i]);
  }
  return bench_end();
}

const benchmark bench_training = {
    .name = "training",
    .summary = "a training step of a small model, recorded and eager",
    .description =
        "Measures a training step of a small language model (embedding, two matrix\n"
        "products with tanh between, cross entropy, Adam) at several sizes, recorded as\n"
        "one graph and eager, in alternation on the same memory. Rows, of H units in the\n"
        "hidden layer:\n"
        "\n"
        "train_H_recorded, train_H_unrecorded: one step until complete\n"
        "\n"
        "train_H_recorded_host, train_H_unrecorded_host: the call that enqueues the step\n"
        "\n"
        "BENCH_DEVICE: the device; default cpu",
    .program = run,
};
