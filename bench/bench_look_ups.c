/* SPDX-License-Identifier: MIT
 * rondo_bench look_ups (PR-7): how much a training step of DLRM grows with the rows of its tables, of which it reads
 * and updates the same number. Random rows of a large table are in no cache, so some growth is the machine's. The
 * yardstick is a bare loop, which reads and updates the same rows of memory of the same size, without a network.
 *
 * Both programs and both loops are measured in turns. Each step has other rows, as in training.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "common/random_numbers.h"
#include "networks/network.h"
#include "rondo_bench.h"

enum { MOST_SAMPLES = 100000, WARM_UPS = 8, FEWEST_STEPS = 20, ROWS_AHEAD = 8 };
enum { FEW, MANY, SIZES };

/* Tables of one number of rows: in a program, and for the bare loop. */
typedef struct sized_tables {
  size_t rows; /* of each table */
  rondo_compiled *compiled;
  float *weights, *squares; /* [tables, rows, width]; squares: of Adagrad, else NULL */
  int32_t *indices;         /* [tables, batch] */
  samples step, bare;
  summary step_us, bare_us;
} sized_tables;

typedef struct look_ups_bench {
  bench_base base;
  const char *optimizer_name;
  uint64_t few, many, tables, batch, width;
  network_optimizer optimizer;
  float *buffer; /* [tables, batch, width] */
  draw_source source;
  sized_tables sizes[SIZES];
} look_ups_bench;

/* The bare loop ---------------------------------------------------------------------------------------------------- */

/* The weights of an index; asks for those of a later one. */
static size_t row_at(const look_ups_bench *b, const sized_tables *s, size_t at) {
  const size_t count = b->tables * b->batch, later = at + ROWS_AHEAD < count ? at + ROWS_AHEAD : at;
  const size_t next = (later / b->batch * s->rows + (size_t)s->indices[later]) * b->width;
  __builtin_prefetch(s->weights + next);
  if (s->squares) __builtin_prefetch(s->squares + next);
  return (at / b->batch * s->rows + (size_t)s->indices[at]) * b->width;
}

static void update_row(const look_ups_bench *b, const sized_tables *s, size_t row, const float *gradient) {
  float *weights = s->weights + row;
  for (size_t k = 0; !s->squares && k < b->width; k++) weights[k] -= 0.001f * gradient[k];
  if (!s->squares) return;
  float *squares = s->squares + row;
  for (size_t k = 0; k < b->width; k++) {
    squares[k] += gradient[k] * gradient[k];
    weights[k] -= 0.001f * gradient[k] / (sqrtf(squares[k]) + 1e-10f);
  }
}

static void run_bare(const look_ups_bench *b, const sized_tables *s) {
  const size_t count = b->tables * b->batch, row_bytes = b->width * sizeof(float);
  for (size_t i = 0; i < count; i++) memcpy(b->buffer + i * b->width, s->weights + row_at(b, s, i), row_bytes);
  for (size_t i = 0; i < count; i++) update_row(b, s, row_at(b, s, i), b->buffer + i * b->width);
}

/* Pages are those of Rondo's memory. */
static float *make_tables(const look_ups_bench *b, const sized_tables *s) {
  const size_t bytes = b->tables * s->rows * b->width * sizeof(float);
  void *memory;
  check(rondo_malloc(b->base.device, bytes, "bare tables", &memory));
  memset(memory, 0, bytes);
  return memory;
}

/* The program ------------------------------------------------------------------------------------------------------ */

static void make_program(const look_ups_bench *b, sized_tables *s) {
  const network_dlrm_sizes sizes = {
      .batch = b->batch, .dense = 13, .tables = b->tables, .rows = s->rows, .width = b->width};
  const network_row row = {"dlrm", network_dlrm, &sizes, b->optimizer, RONDO_F32};
  network_builder builder = {.program = bench_program(row.name)};
  network_add(&builder, &row);
  s->compiled = bench_compile(builder.program, b->base.device, NULL);
}

/* The layers' weights; tables begin as zeros. */
static void fill_layers(look_ups_bench *b, const sized_tables *s) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(s->compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 's' || value.rank != 2 || strncmp(value.name, "tables.", 7) == 0) continue;
    const size_t count = value.bytes / sizeof(float);
    float *data = bench_allocate(count, sizeof *data);
    for (size_t k = 0; k < count; k++) data[k] = (float)(0.1 * draw_unit(&b->source) - 0.05);
    check(rondo_compiled_write(s->compiled, value.name, data, value.bytes));
    free(data);
  }
}

static void draw_rows(look_ups_bench *b, const sized_tables *s) {
  const size_t count = b->tables * b->batch;
  for (size_t i = 0; i < count; i++) s->indices[i] = (int32_t)draw_below(&b->source, (uint32_t)s->rows);
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

static void run_step(look_ups_bench *b, sized_tables *s, bool is_counted) {
  draw_rows(b, s);
  check(rondo_compiled_write(s->compiled, "rows", s->indices, b->tables * b->batch * sizeof *s->indices));
  check(rondo_compiled_synchronize(s->compiled));
  const uint64_t begin = clock_ns();
  check(rondo_compiled_run(s->compiled));
  check(rondo_compiled_synchronize(s->compiled));
  if (is_counted) samples_add(&s->step, (double)(clock_ns() - begin) / 1e3);
}

static void run_loop(look_ups_bench *b, sized_tables *s, bool is_counted) {
  draw_rows(b, s);
  const uint64_t begin = clock_ns();
  run_bare(b, s);
  if (is_counted) samples_add(&s->bare, (double)(clock_ns() - begin) / 1e3);
}

static void prepare_size(look_ups_bench *b, sized_tables *s, uint64_t rows) {
  s->rows = rows / b->tables;
  s->indices = bench_allocate(b->tables * b->batch, sizeof *s->indices);
  bench_samples_create(&s->step, MOST_SAMPLES);
  bench_samples_create(&s->bare, MOST_SAMPLES);
  make_program(b, s);
  fill_layers(b, s);
  s->weights = make_tables(b, s);
  if (b->optimizer == NETWORK_ADAGRAD) s->squares = make_tables(b, s);
}

static int measure(void *bench) {
  look_ups_bench *b = bench;
  b->source = draw_create(1, DRAW_BATCHES);
  b->buffer = bench_allocate(b->tables * b->batch * b->width, sizeof *b->buffer);
  prepare_size(b, &b->sizes[FEW], b->few);
  prepare_size(b, &b->sizes[MANY], b->many);
  for (rounds r = rounds_begin(b->base.seconds, WARM_UPS + FEWEST_STEPS, MOST_SAMPLES); rounds_next(&r);) {
    for (int i = 0; i < SIZES; i++) run_step(b, &b->sizes[i], r.done > WARM_UPS);
    for (int i = 0; i < SIZES; i++) run_loop(b, &b->sizes[i], r.done > WARM_UPS);
  }
  for (int i = 0; i < SIZES; i++) {
    b->sizes[i].step_us = samples_summarize(&b->sizes[i].step);
    b->sizes[i].bare_us = samples_summarize(&b->sizes[i].bare);
  }
  return TOOL_OK;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static void report(void *bench, json *out) {
  const look_ups_bench *b = bench;
  const sized_tables *few = &b->sizes[FEW], *many = &b->sizes[MANY];
  const double grown = many->step_us.median - few->step_us.median, bare = many->bare_us.median - few->bare_us.median;
  json_text(out, "optimizer", b->optimizer_name);
  json_integer(out, "tables", b->tables);
  json_integer(out, "few_rows", few->rows * b->tables);
  json_integer(out, "many_rows", many->rows * b->tables);
  json_summary(out, "few_step_us", few->step_us);
  json_summary(out, "many_step_us", many->step_us);
  json_summary(out, "few_bare_us", few->bare_us);
  json_summary(out, "many_bare_us", many->bare_us);
  json_real(out, "growth", bench_ratio(many->step_us.median, few->step_us.median));
  json_real(out, "bare_growth", bench_ratio(many->bare_us.median, few->bare_us.median));
  json_real(out, "explained", bench_ratio(bare, grown));
}

static int check_settings(void *bench) {
  look_ups_bench *b = bench;
  const bool is_adagrad = strcmp(b->optimizer_name, "adagrad") == 0;
  if (!is_adagrad && strcmp(b->optimizer_name, "sgd") != 0)
    return tool_fail_usage("--optimizer takes sgd or adagrad, not '%s'", b->optimizer_name);
  if (b->few < b->tables || b->many < b->tables) return tool_fail_usage("give a row or more for each table");
  b->optimizer = is_adagrad ? NETWORK_ADAGRAD : NETWORK_SGD;
  return TOOL_OK;
}

static const look_ups_bench defaults = {.base = {.device_name = "cpu", .seconds = 5},
                                        .optimizer_name = "sgd",
                                        .few = 10000,
                                        .many = 10000000,
                                        .tables = 26,
                                        .batch = 128,
                                        .width = 16};

#define OFFSET(member) offsetof(look_ups_bench, member)

static const option_row rows[] = {
    {"optimizer", "NAME", OPTION_TEXT, OFFSET(optimizer_name), 0, 0, "sgd or adagrad"},
    {"few", "N", OPTION_COUNT, OFFSET(few), 1, 1u << 30, "rows of all small tables together"},
    {"many", "N", OPTION_COUNT, OFFSET(many), 1, 1u << 30, "rows of all large tables together"},
    {"tables", "N", OPTION_COUNT, OFFSET(tables), 1, 32, "tables of each network"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 65536, "indices of a table in a step"},
    {"width", "N", OPTION_COUNT, OFFSET(width), 1, 1024, "numbers in a row"},
    BENCH_WORKERS(look_ups_bench),
};

const benchmark bench_look_ups = {
    .name = "look_ups",
    .summary = "a step with few and with many rows in its tables",
    .description =
        "Measures recorded training steps of DLRM with small and with large tables, and for each a bare loop that\n"
        "reads and updates the same number of random rows. Times are microseconds. growth and bare_growth are the\n"
        "times with many rows divided by those with few; explained is the time that the loop grows by, divided by\n"
        "the time that the step grows by.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = check_settings,
    .measure = measure,
    .report = report,
};
