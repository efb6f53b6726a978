/* SPDX-License-Identifier: MIT
 * Feeding a recorded program (FW-3): batches of several sizes go into the slot, through pinned host memory, and through
 * device memory beside the runs, in turns. A step feeds the next batch and queues a run; steps are queued one behind
 * the other and waited for once a turn.
 *
 * - feed_K_slot, feed_K_host, feed_K_device: one step, of K KiB of input
 * - feed_K_slot_call, feed_K_host_call, feed_K_device_call: the calls of a step, feeding and running
 * - feed_K_run, feed_K_copy: the run alone, from the slot; the feed alone, to the slot
 * - feed_K_slot_hidden, feed_K_host_hidden, feed_K_device_hidden: per mille of the copy's time that the runs hide, from
 *   medians; of use where the copy is no small part of a step
 * - feed_K_slot_bytes, feed_K_host_bytes, feed_K_device_bytes: arena and buffers in device memory
 *
 *   BENCH_DEVICE    the device; default cpu
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "measure.h"

enum { WIDTH = 256, LAYERS = 2, SIZES = 3, WAYS = 3, MOST_TURNS = 400, TURN = 16 };
static const size_t row_counts[SIZES] = {16, 256, 2048};
static const struct {
  rondo_staging staging;
  const char *name;
} ways[WAYS] = {{RONDO_STAGING_SLOT, "slot"}, {RONDO_STAGING_HOST, "host"}, {RONDO_STAGING_DEVICE, "device"}};

static void check(rondo_status status) {
  if (status == RONDO_OK) return;
  fprintf(stderr, "%s: %s\n", rondo_status_name(status), rondo_last_error()->message);
  exit(EXIT_FAILURE);
}

/* The mean of what some layers make of the input. */
static rondo_compiled *make_model(rondo_device *device, size_t rows, rondo_staging staging) {
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value x, w;
  check(rondo_program_create(NULL, &program));
  check(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){rows, WIDTH}, 2, &x));
  check(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){WIDTH, WIDTH}, 2, &w));
  for (int i = 0; i < LAYERS; i++) {
    check(rondo_op_matmul(program, x, w, (rondo_value){0}, &x));
    check(rondo_op_tanh(program, x, &x));
  }
  check(rondo_op_mean(program, x, NULL, 0, false, &x));
  check(rondo_program_output(program, "mean", x));
  const rondo_staged_value staged = {"x", staging};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = &staged, .staged_count = 1};
  check(rondo_compile(program, device, &options, &compiled));
  rondo_program_destroy(program);
  return compiled;
}

typedef struct samples {
  size_t count;
  uint64_t step[MOST_TURNS], call[MOST_TURNS];
} samples;

typedef struct bench {
  rondo_compiled *compiled[WAYS];
  samples ways[WAYS], run, copy;
  float *batches[2];
  size_t rows, bytes;
} bench;

static void take_steps(bench *b, int way, samples *out) {
  rondo_compiled *compiled = b->compiled[way];
  uint64_t calls = 0;
  const uint64_t start = bench_now_ns();
  for (int i = 0; i < TURN; i++) {
    const uint64_t before = bench_now_ns();
    check(rondo_compiled_feed(compiled, "x", b->batches[i % 2], b->bytes));
    check(rondo_compiled_run(compiled));
    calls += bench_now_ns() - before;
  }
  check(rondo_compiled_synchronize(compiled));
  out->step[out->count] = (bench_now_ns() - start) / TURN;
  out->call[out->count++] = calls / TURN;
}

static void take_parts(bench *b) {
  rondo_compiled *compiled = b->compiled[0];
  uint64_t start = bench_now_ns();
  for (int i = 0; i < TURN; i++) check(rondo_compiled_run(compiled));
  check(rondo_compiled_synchronize(compiled));
  b->run.step[b->run.count++] = (bench_now_ns() - start) / TURN;
  start = bench_now_ns();
  for (int i = 0; i < TURN; i++) check(rondo_compiled_feed(compiled, "x", b->batches[i % 2], b->bytes));
  check(rondo_compiled_synchronize(compiled));
  b->copy.step[b->copy.count++] = (bench_now_ns() - start) / TURN;
}

static void take_turns(bench *b, uint64_t budget_ns) {
  const uint64_t end = bench_now_ns() + budget_ns;
  for (int way = 0; way < WAYS; way++) b->ways[way].count = 0;
  b->run.count = b->copy.count = 0;
  do {
    for (int way = 0; way < WAYS; way++) take_steps(b, way, &b->ways[way]);
    take_parts(b);
  } while (bench_now_ns() < end && b->run.count < MOST_TURNS);
}

static void report(const bench *b, const char *what, const char *unit, uint64_t *values, size_t count) {
  char measure[64];
  snprintf(measure, sizeof measure, "feed_%zu_%s", b->bytes / 1024, what);
  bench_report_value(measure, unit, values, count);
}

/* What a step takes less than the run and the copy one after the other. */
static uint64_t hidden_share(bench *b, int way) {
  const uint64_t run = bench_spread_of(b->run.step, b->run.count).median;
  const uint64_t copy = bench_spread_of(b->copy.step, b->copy.count).median;
  const uint64_t step = bench_spread_of(b->ways[way].step, b->ways[way].count).median;
  const uint64_t most = run + copy > step ? run + copy - step : 0;
  return (most < copy ? most : copy) * 1000 / (copy > 0 ? copy : 1);
}

static void report_way(bench *b, int way) {
  rondo_compiled_info info = {.struct_size = sizeof info};
  char what[32];
  check(rondo_compiled_get_info(b->compiled[way], &info));
  uint64_t hidden = hidden_share(b, way), bytes = info.arena_bytes + info.staging_device_bytes;
  report(b, ways[way].name, "ns", b->ways[way].step, b->ways[way].count);
  snprintf(what, sizeof what, "%s_call", ways[way].name);
  report(b, what, "ns", b->ways[way].call, b->ways[way].count);
  snprintf(what, sizeof what, "%s_hidden", ways[way].name);
  report(b, what, "per mille", &hidden, 1);
  snprintf(what, sizeof what, "%s_bytes", ways[way].name);
  report(b, what, "bytes", &bytes, 1);
}

static void measure_feeding(size_t rows) {
  static bench b;
  const uint64_t budget_ns = 4 * (uint64_t)bench_setting("BENCH_BUDGET_MS", 150) * 1000000u;
  rondo_device *device = NULL;
  check(rondo_device_open(bench_device(), NULL, &device));
  b.rows = rows;
  b.bytes = rows * WIDTH * sizeof(float);
  for (int i = 0; i < 2; i++) b.batches[i] = bench_zeroed(rows * WIDTH, sizeof(float));
  for (int way = 0; way < WAYS; way++) b.compiled[way] = make_model(device, rows, ways[way].staging);
  take_turns(&b, budget_ns / 10); /* warms up */
  take_turns(&b, budget_ns);
  for (int way = 0; way < WAYS; way++) report_way(&b, way);
  report(&b, "run", "ns", b.run.step, b.run.count);
  report(&b, "copy", "ns", b.copy.step, b.copy.count);
  bench_child_end();
}

int main(void) {
  bench_begin("bench_feed", rondo_version());
  for (int i = 0; i < SIZES; i++) {
    if (bench_child()) measure_feeding(row_counts[i]);
  }
  return bench_end();
}
