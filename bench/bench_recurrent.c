/* SPDX-License-Identifier: MIT
 * rondo_bench recurrent: one layer of lstm, gru or rnn, as a recorded program: evaluation, or a training step without
 * an optimizer, which computes all gradients of the sum of the results. bench/recurrent_vs_torch.py compares it with
 * PyTorch.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_check.h"
#include "common/random_numbers.h"
#include "rondo_bench.h"

#define MOST_ROUNDS 20000
#define FEWEST_ROUNDS 5
#define WARM_UPS 3

typedef rondo_status (*network_function)(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                                         const rondo_recurrent_options *options, rondo_value *out_y);

typedef struct network {
  const char *name;
  size_t gates;
  network_function add;
} network;

enum { TOTAL, PROCESSOR, TIMES }; /* until the work is complete; of the process's threads together */

typedef struct recurrent_bench {
  bench_base base;
  const char *cell;
  uint64_t steps, batch, features, hidden;
  bool training;
  const network *network;
  samples samples[TIMES];
  summary us[TIMES];
} recurrent_bench;

/* The program ----------------------------------------------------------------------------------------------------- */

static rondo_status add_lstm(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                             const rondo_recurrent_options *options, rondo_value *out_y) {
  return rondo_op_lstm(program, x, weights, options, out_y, NULL, NULL);
}

static rondo_status add_gru(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                            const rondo_recurrent_options *options, rondo_value *out_y) {
  return rondo_op_gru(program, x, weights, options, out_y, NULL);
}

static rondo_status add_rnn(rondo_program *program, rondo_value x, const rondo_recurrent_weights *weights,
                            const rondo_recurrent_options *options, rondo_value *out_y) {
  return rondo_op_rnn(program, x, weights, options, out_y, NULL);
}

static const network networks[] = {{"lstm", 4, add_lstm}, {"gru", 3, add_gru}, {"rnn", 1, add_rnn}};
#define NETWORKS (sizeof networks / sizeof networks[0])

static rondo_status add_input(rondo_program *program, const char *name, size_t rows, size_t columns, rondo_value *out) {
  return rondo_program_input(program, name, RONDO_F32, (size_t[]){rows, columns}, columns == 0 ? 1 : 2, out);
}

/* The sum of the results, and its gradients, each an output. */
static rondo_status add_gradients(rondo_program *program, rondo_value y, const rondo_value *of, size_t count) {
  static const char *const names[] = {"dx", "d_input", "d_hidden", "d_input_bias", "d_hidden_bias"};
  rondo_value loss, gradients[5];
  TOOL_TRY(rondo_op_sum(program, y, NULL, 0, false, &loss));
  TOOL_TRY(rondo_program_gradients(program, loss, of, count, gradients));
  for (size_t i = 0; i < count; i++) TOOL_TRY(rondo_program_output(program, names[i], gradients[i]));
  return RONDO_OK;
}

static rondo_status build(const recurrent_bench *b, rondo_program *program) {
  const size_t wide = b->network->gates * b->hidden;
  rondo_recurrent_weights w = {.input = {0}};
  rondo_value x, y;
  TOOL_TRY(rondo_program_input(program, "x", RONDO_F32, (size_t[]){b->steps, b->batch, b->features}, 3, &x));
  TOOL_TRY(add_input(program, "input", wide, b->features, &w.input));
  TOOL_TRY(add_input(program, "hidden", wide, b->hidden, &w.hidden));
  TOOL_TRY(add_input(program, "input_bias", wide, 0, &w.input_bias));
  TOOL_TRY(add_input(program, "hidden_bias", wide, 0, &w.hidden_bias));
  TOOL_TRY(b->network->add(program, x, &w, NULL, &y));
  TOOL_TRY(rondo_program_output(program, "y", y));
  if (!b->training) return RONDO_OK;
  return add_gradients(program, y, (rondo_value[]){x, w.input, w.hidden, w.input_bias, w.hidden_bias}, 5);
}

/* Between -0.05 and 0.05, as PyTorch initialises weights of some hundred states. */
static void write_inputs(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  draw_source source = draw_create(1, DRAW_BATCHES);
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'i') continue;
    const size_t count = value.bytes / sizeof(float);
    float *elements = bench_allocate(count, sizeof *elements);
    for (size_t k = 0; k < count; k++) elements[k] = (float)(0.1 * draw_unit(&source) - 0.05);
    check(rondo_compiled_write(compiled, value.name, elements, value.bytes));
    free(elements);
  }
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static double processor_us(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int measure(void *bench) {
  recurrent_bench *b = bench;
  rondo_program *program = bench_program("recurrent");
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS};
  check(build(b, program));
  rondo_compiled *compiled = bench_compile(program, b->base.device, &options);
  write_inputs(compiled);
  for (size_t i = 0; i < TIMES; i++) bench_samples_create(&b->samples[i], MOST_ROUNDS);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS + WARM_UPS, MOST_ROUNDS); rounds_next(&r);) {
    const double processor = processor_us();
    const uint64_t begin = clock_ns();
    check(rondo_compiled_run(compiled));
    check(rondo_compiled_synchronize(compiled));
    const double total = (double)(clock_ns() - begin) / 1e3;
    if (r.done <= WARM_UPS) continue;
    samples_add(&b->samples[TOTAL], total);
    samples_add(&b->samples[PROCESSOR], processor_us() - processor);
  }
  for (size_t i = 0; i < TIMES; i++) b->us[i] = samples_summarize(&b->samples[i]);
  check(rondo_compiled_destroy(compiled));
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static void report(void *bench, json *out) {
  const recurrent_bench *b = bench;
  json_text(out, "cell", b->cell);
  json_integer(out, "steps", b->steps);
  json_integer(out, "batch", b->batch);
  json_integer(out, "features", b->features);
  json_integer(out, "hidden", b->hidden);
  json_boolean(out, "training", b->training);
  json_summary(out, "total_us", b->us[TOTAL]);
  json_summary(out, "processor_us", b->us[PROCESSOR]);
}

static int check_settings(void *bench) {
  recurrent_bench *b = bench;
  for (size_t i = 0; i < NETWORKS; i++)
    if (strcmp(networks[i].name, b->cell) == 0) b->network = &networks[i];
  if (b->network == NULL) return tool_fail_usage("--cell takes lstm, gru or rnn, not '%s'", b->cell);
  return TOOL_OK;
}

static const recurrent_bench defaults = {.base = {.device_name = "cpu", .seconds = 2},
                                         .cell = "lstm",
                                         .steps = 64,
                                         .batch = 32,
                                         .features = 256,
                                         .hidden = 256};

#define OFFSET(member) offsetof(recurrent_bench, member)

static const option_row rows[] = {
    {"cell", "CELL", OPTION_TEXT, OFFSET(cell), 0, 0, "lstm, gru or rnn"},
    {"steps", "N", OPTION_COUNT, OFFSET(steps), 1, 65536, "steps of each sequence"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 65536, "sequences"},
    {"features", "N", OPTION_COUNT, OFFSET(features), 1, 65536, "numbers in a step of the input"},
    {"hidden", "N", OPTION_COUNT, OFFSET(hidden), 1, 65536, "states of a sequence"},
    {"training", NULL, OPTION_FLAG, OFFSET(training), 0, 0, "compute all gradients, too"},
};

const benchmark bench_recurrent = {
    .name = "recurrent",
    .summary = "a layer of an LSTM, GRU or RNN",
    .description =
        "Measures one layer in one direction as a recorded program; with --training, it also computes the\n"
        "gradients of the input, of both matrices and of both biases. Times are microseconds of a run until\n"
        "it is complete (total_us), and of all threads of the process together (processor_us).",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = check_settings,
    .measure = measure,
    .report = report,
};
