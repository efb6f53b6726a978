/* SPDX-License-Identifier: MIT
 * rondo_bench feed (FW-3): feeding a recorded program. Batches of several sizes are copied into the slot, through
 * pinned host memory and through device memory, while runs are in progress, in alternation. A step feeds the next batch
 * and enqueues a run. The steps of a turn are enqueued without waiting; the host waits at the end of the turn.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { WIDTH = 256, LAYERS = 2, SIZES = 3, WAYS = 3, MOST_TURNS = 400, TURN = 16 };
static const size_t row_counts[SIZES] = {16, 256, 2048};
static const struct {
  rondo_staging staging;
  const char *name;
} ways[WAYS] = {{RONDO_STAGING_SLOT, "slot"}, {RONDO_STAGING_HOST, "host"}, {RONDO_STAGING_DEVICE, "device"}};

/* The mean of the input after some layers. */
static rondo_compiled *make_model(rondo_device *device, size_t rows, rondo_staging staging) {
  rondo_program *program = bench_program("feed");
  rondo_value x, w;
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
  return bench_compile(program, device, &options);
}

typedef struct bench {
  rondo_compiled *compiled[WAYS];
  samples step[WAYS], call[WAYS], run, copy; /* nanoseconds */
  float *batches[2];
  size_t bytes;
} bench;

static void add_mean(samples *to, uint64_t start) { samples_add(to, (double)((clock_ns() - start) / TURN)); }

static void take_steps(bench *b, int way) {
  rondo_compiled *compiled = b->compiled[way];
  uint64_t calls = 0;
  const uint64_t start = clock_ns();
  for (int i = 0; i < TURN; i++) {
    const uint64_t before = clock_ns();
    check(rondo_compiled_feed(compiled, "x", b->batches[i % 2], b->bytes));
    check(rondo_compiled_run(compiled));
    calls += clock_ns() - before;
  }
  check(rondo_compiled_synchronize(compiled));
  add_mean(&b->step[way], start);
  samples_add(&b->call[way], (double)(calls / TURN));
}

static void take_parts(bench *b) {
  rondo_compiled *compiled = b->compiled[0];
  uint64_t start = clock_ns();
  for (int i = 0; i < TURN; i++) check(rondo_compiled_run(compiled));
  check(rondo_compiled_synchronize(compiled));
  add_mean(&b->run, start);
  start = clock_ns();
  for (int i = 0; i < TURN; i++) check(rondo_compiled_feed(compiled, "x", b->batches[i % 2], b->bytes));
  check(rondo_compiled_synchronize(compiled));
  add_mean(&b->copy, start);
}

static void forget(bench *b) {
  for (int way = 0; way < WAYS; way++) b->step[way].count = b->call[way].count = 0;
  b->run.count = b->copy.count = 0;
}

static void take_turns(bench *b, double seconds) {
  forget(b);
  for (rounds r = rounds_begin(seconds, 1, MOST_TURNS); rounds_next(&r);) {
    for (int way = 0; way < WAYS; way++) take_steps(b, way);
    take_parts(b);
  }
}

static const char *name_of(const bench *b, const char *what, const char *suffix) {
  static char measure[64];
  snprintf(measure, sizeof measure, "feed_%zu_%s%s", b->bytes / 1024, what, suffix);
  return measure;
}

/* How much shorter a step is than the run plus the copy, as a share of these. */
static double hidden_share(bench *b, int way) {
  const double run = samples_summarize(&b->run).median, copy = samples_summarize(&b->copy).median;
  const double most = run + copy - samples_summarize(&b->step[way]).median;
  return most <= 0 || copy <= 0 ? 0 : 1000 * (most < copy ? most : copy) / copy;
}

static void report_way(bench *b, int way) {
  rondo_compiled_info info = {.struct_size = sizeof info};
  check(rondo_compiled_get_info(b->compiled[way], &info));
  bench_report_value(name_of(b, ways[way].name, ""), "ns", &b->step[way]);
  bench_report_value(name_of(b, ways[way].name, "_call"), "ns", &b->call[way]);
  bench_report_one(name_of(b, ways[way].name, "_hidden"), "per mille", hidden_share(b, way));
  bench_report_one(name_of(b, ways[way].name, "_bytes"), "bytes",
                   (double)(info.arena_bytes + info.staging_device_bytes));
}

static void measure_feeding(size_t rows) {
  bench b = {
      .bytes = rows * WIDTH * sizeof(float), .run = bench_samples(MOST_TURNS), .copy = bench_samples(MOST_TURNS)};
  const double seconds = 4e-3 * (double)bench_setting("BENCH_BUDGET_MS", 150);
  rondo_device *device = NULL;
  check(rondo_device_open(bench_device(), NULL, &device));
  for (int i = 0; i < 2; i++) b.batches[i] = bench_zeroed(rows * WIDTH, sizeof(float));
  for (int way = 0; way < WAYS; way++) {
    b.compiled[way] = make_model(device, rows, ways[way].staging);
    b.step[way] = bench_samples(MOST_TURNS);
    b.call[way] = bench_samples(MOST_TURNS);
  }
  take_turns(&b, seconds / 10); /* warms up */
  take_turns(&b, seconds);
  for (int way = 0; way < WAYS; way++) report_way(&b, way);
  bench_report_value(name_of(&b, "run", ""), "ns", &b.run);
  bench_report_value(name_of(&b, "copy", ""), "ns", &b.copy);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench feed", rondo_version());
  for (int i = 0; i < SIZES; i++) {
    if (bench_child()) measure_feeding(row_counts[i]);
  }
  return bench_end();
}

const benchmark bench_feed = {
    .name = "feed",
    .summary = "feeding a recorded program from the host",
    .description =
        "Feeds batches of several sizes to a recorded program: directly into its input, through pinned host\n"
        "memory, and through device memory while runs continue. A step feeds the next batch and enqueues a run.\n"
        "Rows, for K KiB of input:\n\n"
        "feed_K_slot, feed_K_host, feed_K_device: one step\n\n"
        "..._call: the calls of a step, to feed and to run\n\n"
        "feed_K_run, feed_K_copy: the run alone, from the input; the feed alone\n\n"
        "..._hidden: per mille of the copy's time that overlaps with runs, from medians; useful if the copy is a\n"
        "large part of a step\n\n"
        "..._bytes: arena and buffers in device memory\n\n"
        "BENCH_DEVICE: the device; default cpu\n\n"
        "BENCH_BUDGET_MS: the time of a row; default 150",
    .program = run,
};
