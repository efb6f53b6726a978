/* SPDX-License-Identifier: MIT
 * The rows that the benchmarks printed, read back: one flat JSON object a line, as measure.h writes them, so that a
 * line is enough to look a field up. A figure over the rounds is the median of the rounds' medians, with the smallest
 * and the largest of them; a ratio is taken within each round first.
 */
#ifndef RONDO_BENCH_ROWS_H
#define RONDO_BENCH_ROWS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST_ROUNDS = 64, ROWS_NAME = 64 };

/* Of a replay, or, when `measure` is not empty, a value of its own. */
typedef struct bench_row {
  long round;
  char engine[ROWS_NAME], shape[ROWS_NAME], body[ROWS_NAME], place[ROWS_NAME], measure[ROWS_NAME];
  long threads, gap_us;
  double launch_ns, total_ns; /* medians */
  double value;               /* of a measure */
  double ratio;               /* of a plan's peak to its lower bound; 0: of no plan */
} bench_row;

typedef struct bench_rows {
  bench_row *items;
  size_t count, capacity;
  long rounds;
} bench_rows;

/* A value for each round; not a number where there is none. */
typedef struct bench_series {
  double of_round[ROWS_MOST_ROUNDS];
} bench_series;

typedef struct bench_figure {
  double median, minimum, maximum;
  size_t rounds; /* 0: never measured */
} bench_figure;

/* Reading --------------------------------------------------------------------------------------------------------- */

/* Where the value of a field starts in the line, or NULL. */
static inline const char *rows_field(const char *line, const char *name) {
  char quoted[ROWS_NAME + 4];
  snprintf(quoted, sizeof quoted, "\"%s\":", name);
  const char *at = strstr(line, quoted);
  if (at == NULL) return NULL;
  at += strlen(quoted);
  return at + strspn(at, " ");
}

static inline double rows_number(const char *line, const char *name) {
  const char *at = rows_field(line, name);
  return at == NULL ? 0 : strtod(at, NULL);
}

static inline void rows_text(const char *line, const char *name, char out[ROWS_NAME]) {
  const char *at = rows_field(line, name);
  out[0] = '\0';
  if (at == NULL || *at != '"') return;
  const size_t length = strcspn(at + 1, "\"");
  snprintf(out, ROWS_NAME, "%.*s", (int)length, at + 1);
}

static inline bench_row *rows_next(bench_rows *rows) {
  if (rows->count == rows->capacity) {
    rows->capacity = rows->capacity == 0 ? 256 : 2 * rows->capacity;
    rows->items = realloc(rows->items, rows->capacity * sizeof *rows->items);
    if (rows->items == NULL) exit(EXIT_FAILURE);
  }
  return &rows->items[rows->count++];
}

static inline void rows_add(bench_rows *rows, const char *line, long round) {
  bench_row *row = rows_next(rows);
  *row = (bench_row){.round = round,
                     .threads = (long)rows_number(line, "threads"),
                     .gap_us = (long)rows_number(line, "gap_us"),
                     .launch_ns = rows_number(line, "launch_ns"),
                     .total_ns = rows_number(line, "total_ns"),
                     .value = rows_number(line, "median"),
                     .ratio = rows_number(line, "ratio")};
  rows_text(line, "engine", row->engine);
  rows_text(line, "shape", row->shape);
  rows_text(line, "body", row->body);
  rows_text(line, "place", row->place);
  rows_text(line, "measure", row->measure);
}

/* The figures of a way in what rondo bench memory prints, as measures "memory INPUT WAY QUANTITY"; times in ns. */
static inline void rows_add_memory(bench_rows *rows, const char *line, const char *input, long round) {
  static const struct {
    const char *field, *quantity;
    double scale;
  } quantities[] = {{"bytes", "bytes", 1},
                    {"profile_us", "profile", 1e3},
                    {"instantiate_us", "instantiate", 1e3},
                    {"first_us", "first", 1e3},
                    {"again_us", "relaunch", 1e3},
                    {"remaps", "remaps", 1},
                    {"alternating_us", "alternate", 1e3},
                    {"alternating_remaps", "moves", 1}};
  char way[ROWS_NAME];
  rows_text(line, "way", way);
  for (size_t i = 0; i < sizeof quantities / sizeof quantities[0]; i++) {
    if (rows_field(line, quantities[i].field) == NULL) continue;
    bench_row *row = rows_next(rows);
    *row = (bench_row){.round = round, .value = quantities[i].scale * rows_number(line, quantities[i].field)};
    if (i == 0) row->ratio = rows_number(line, "ratio");
    snprintf(row->measure, sizeof row->measure, "memory %.30s %.12s %s", input, way, quantities[i].quantity);
  }
}

/* Reads what one program printed. Returns 0 when the file cannot be read. */
static inline int rows_read(bench_rows *rows, const char *path) {
  char line[1024], input[ROWS_NAME] = "";
  long round = 1;
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    return 0;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    if (rows_field(line, "program") != NULL) round = (long)rows_number(line, "round");
    if (round < 1 || round > ROWS_MOST_ROUNDS) round = ROWS_MOST_ROUNDS;
    if (round > rows->rounds) rows->rounds = round;
    if (rows_field(line, "input") != NULL) rows_text(line, "input", input);
    if (rows_field(line, "way") != NULL) rows_add_memory(rows, line, input, round);
    if (rows_field(line, "engine") != NULL || rows_field(line, "measure") != NULL) rows_add(rows, line, round);
  }
  fclose(file);
  return 1;
}

/* Looking up ------------------------------------------------------------------------------------------------------ */

typedef enum rows_column { COLUMN_LAUNCH, COLUMN_TOTAL } rows_column;

typedef struct rows_key {
  const char *engine;
  long threads; /* 0: whichever is fastest in the round */
  const char *shape, *body, *place;
  long gap_us;
} rows_key;

static inline int rows_match(const bench_row *row, const rows_key *key) {
  return row->measure[0] == '\0' && strcmp(row->engine, key->engine) == 0 && strcmp(row->shape, key->shape) == 0 &&
         strcmp(row->body, key->body) == 0 && strcmp(row->place, key->place) == 0 && row->gap_us == key->gap_us &&
         (key->threads == 0 || row->threads == key->threads);
}

static inline bench_series series_empty(void) {
  bench_series series;
  for (int i = 0; i < ROWS_MOST_ROUNDS; i++) series.of_round[i] = NAN;
  return series;
}

static inline void series_take_least(bench_series *series, long round, double value) {
  double *at = &series->of_round[round - 1];
  if (isnan(*at) || value < *at) *at = value;
}

static inline bench_series rows_series(const bench_rows *rows, const rows_key *key, rows_column column) {
  bench_series series = series_empty();
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->items[i];
    if (rows_match(row, key)) {
      series_take_least(&series, row->round, column == COLUMN_LAUNCH ? row->launch_ns : row->total_ns);
    }
  }
  return series;
}

static inline bench_series rows_measure(const bench_rows *rows, const char *measure) {
  bench_series series = series_empty();
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->items[i];
    if (strcmp(row->measure, measure) == 0) series_take_least(&series, row->round, row->value);
  }
  return series;
}

static inline bench_series rows_ratio(const bench_rows *rows, const char *measure) {
  bench_series series = series_empty();
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->items[i];
    if (row->ratio > 0 && strcmp(row->measure, measure) == 0) series_take_least(&series, row->round, row->ratio);
  }
  return series;
}

/* An engine that is neither Rondo nor a hand-written bound. */
static inline int rows_is_peer(const bench_row *row) {
  return row->measure[0] == '\0' && strncmp(row->engine, "rondo", 5) != 0 && strncmp(row->engine, "bound", 5) != 0;
}

/* The fastest peer of each round, whichever it is. */
static inline bench_series rows_best_peer(const bench_rows *rows, const char *shape, const char *body) {
  bench_series series = series_empty();
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->items[i];
    const rows_key key = {row->engine, 0, shape, body, "spread", 0};
    if (rows_is_peer(row) && rows_match(row, &key)) series_take_least(&series, row->round, row->total_ns);
  }
  return series;
}

/* a / b, or a - b, in each round. */
static inline bench_series series_ratio(bench_series a, bench_series b) {
  for (int i = 0; i < ROWS_MOST_ROUNDS; i++) a.of_round[i] /= b.of_round[i];
  return a;
}

static inline bench_series series_difference(bench_series a, bench_series b) {
  for (int i = 0; i < ROWS_MOST_ROUNDS; i++) a.of_round[i] -= b.of_round[i];
  return a;
}

static inline bench_series series_scaled(bench_series a, double factor) {
  for (int i = 0; i < ROWS_MOST_ROUNDS; i++) a.of_round[i] *= factor;
  return a;
}

static inline int rows_compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static inline bench_figure figure_of(const bench_series *series) {
  double sorted[ROWS_MOST_ROUNDS];
  bench_figure figure = {NAN, NAN, NAN, 0};
  for (int i = 0; i < ROWS_MOST_ROUNDS; i++) {
    if (isfinite(series->of_round[i])) sorted[figure.rounds++] = series->of_round[i];
  }
  if (figure.rounds == 0) return figure;
  qsort(sorted, figure.rounds, sizeof sorted[0], rows_compare_numbers);
  figure.median = (sorted[(figure.rounds - 1) / 2] + sorted[figure.rounds / 2]) / 2;
  figure.minimum = sorted[0];
  figure.maximum = sorted[figure.rounds - 1];
  return figure;
}

#endif
