/* SPDX-License-Identifier: MIT
 * Merges what the programs of a run printed: table [--json OUT] FILE...
 *
 * Prints tables in Markdown on standard output: times of all engines by shape, cold and crowded replays, graph against
 * stream with the figures of "CUDA Graph in TensorFlow" beside, training, planning, graph memory, host costs, and each
 * bar with what was measured and whether it was met. With --json, also writes one object that holds every program's own
 * object and the bars.
 */
#include <stdbool.h>

#include "rows.h"

enum { SHAPES = 6 };
static const char *const shapes[SHAPES] = {"line32", "branch2x16", "fork30", "line1000", "dag10k", "grid4096"};

/* Cells ----------------------------------------------------------------------------------------------------------- */

static void format_ns(char out[32], double ns) {
  const double size = fabs(ns);
  if (size >= 1e6) {
    snprintf(out, 32, "%.2f ms", ns / 1e6);
  } else if (size >= 1e3) {
    snprintf(out, 32, size >= 1e4 ? "%.1f us" : "%.2f us", ns / 1e3);
  } else {
    snprintf(out, 32, size >= 10 ? "%.0f ns" : "%.1f ns", ns);
  }
}

static void format_exact(char out[32], double value) { snprintf(out, 32, "%.4f", value); }

static void format_plain(char out[32], double value) { snprintf(out, 32, value >= 100 ? "%.0f" : "%.2f", value); }

/* " median [least - largest] |", or a dash. */
static void print_figure(const bench_series *series, void (*format)(char[32], double)) {
  char median[32], least[32], largest[32];
  const bench_figure figure = figure_of(series);
  if (figure.rounds == 0) {
    printf(" - |");
    return;
  }
  format(median, figure.median);
  format(least, figure.minimum);
  format(largest, figure.maximum);
  if (figure.rounds == 1) {
    printf(" %s |", median);
  } else {
    printf(" %s [%s - %s] |", median, least, largest);
  }
}

/* Engines by shape ------------------------------------------------------------------------------------------------ */

typedef struct section {
  const char *title;
  const char *body, *place;
  long gap_us;
  rows_column column;
  int first_shape, last_shape;
} section;

static const section sections[] = {
    {"Empty bodies: time of one replay until complete", "empty", "spread", 0, COLUMN_TOTAL, 0, 4},
    {"Empty bodies: the launch call", "empty", "spread", 0, COLUMN_LAUNCH, 0, 4},
    {"Bodies of one microsecond: time of one replay", "microsecond", "spread", 0, COLUMN_TOTAL, 0, 4},
    {"One kernel of 4096 blocks of 200 ns", "block", "spread", 0, COLUMN_TOTAL, 5, 5},
    {"Empty bodies: from the first node's start to the last one's end", "span", "spread", 0, COLUMN_TOTAL, 0, 2},
    {"After a rest of 5 ms: empty bodies, time of one replay", "empty", "spread", 5000, COLUMN_TOTAL, 0, 2},
    {"After a rest of 5 ms: empty bodies, the launch call", "empty", "spread", 5000, COLUMN_LAUNCH, 0, 2},
    {"All threads on one processor: empty bodies", "empty", "one", 0, COLUMN_TOTAL, 0, 2},
    {"All threads on one processor: bodies of one microsecond", "microsecond", "one", 0, COLUMN_TOTAL, 0, 2},
};

static bool belongs(const bench_row *row, const section *of) {
  bool shape = false;
  for (int i = of->first_shape; i <= of->last_shape; i++) shape = shape || strcmp(row->shape, shapes[i]) == 0;
  return shape && row->measure[0] == '\0' && strcmp(row->body, of->body) == 0 && strcmp(row->place, of->place) == 0 &&
         row->gap_us == of->gap_us;
}

/* Whether no earlier row of the section has the same engine and number of threads. */
static bool is_first_of_engine(const bench_rows *rows, size_t index, const section *of) {
  const bench_row *row = &rows->items[index];
  for (size_t i = 0; i < index; i++) {
    const bench_row *other = &rows->items[i];
    if (belongs(other, of) && strcmp(other->engine, row->engine) == 0 && other->threads == row->threads) return false;
  }
  return true;
}

static void print_section_head(const section *of) {
  printf("\n## %s\n\n| engine | threads |", of->title);
  for (int i = of->first_shape; i <= of->last_shape; i++) printf(" %s |", shapes[i]);
  printf("\n|---|---|");
  for (int i = of->first_shape; i <= of->last_shape; i++) printf("---|");
  printf("\n");
}

static void print_section(const bench_rows *rows, const section *of) {
  bool begun = false;
  for (size_t k = 0; k < rows->count; k++) {
    const bench_row *row = &rows->items[k];
    if (!belongs(row, of) || !is_first_of_engine(rows, k, of)) continue;
    if (!begun) print_section_head(of);
    begun = true;
    printf("| %s | %ld |", row->engine, row->threads);
    for (int i = of->first_shape; i <= of->last_shape; i++) {
      const rows_key key = {row->engine, row->threads, shapes[i], of->body, of->place, of->gap_us};
      const bench_series series = rows_series(rows, &key, of->column);
      print_figure(&series, format_ns);
    }
    printf("\n");
  }
}

/* Graph against stream -------------------------------------------------------------------------------------------- */

static bench_series rondo_series(const bench_rows *rows, const char *engine, const char *shape, const char *body,
                                 rows_column column) {
  const rows_key key = {engine, 0, shape, body, "spread", 0};
  return rows_series(rows, &key, column);
}

static void print_pair_cells(const bench_rows *rows, const char *stream, const char *shape, const char *body,
                             rows_column column) {
  const bench_series a = rondo_series(rows, stream, shape, body, column);
  const bench_series b = rondo_series(rows, "rondo", shape, body, column);
  const bench_series ratio = series_ratio(a, b);
  print_figure(&b, format_ns);
  print_figure(&a, format_ns);
  print_figure(&ratio, format_plain);
}

/* GX-6. The document (CUDA Graph in TensorFlow, 2021: 32 empty kernels on an A100) prints milliseconds for what must be
 * microseconds. */
static void print_graph_against_stream(const bench_rows *rows) {
  static const char *const streams[3] = {"rondo-stream", "rondo-streams", "rondo-streams"};
  static const char *const document[3] = {
      "4.43 us / 65.25 us = 14.7; device 28.12 us / 60.67 us = 2.2",
      "3.17 us / 69.25 us = 21.8; device 15.47 us / 83.46 us = 5.4",
      "4.28 us / 93.75 us = 21.9; device 21.32 us / 161.79 us = 7.6",
  };
  printf("\n## Graph against stream: 32 empty kernels\n\n");
  printf(
      "| shape | graph, host | stream, host | ratio | graph, total | stream, total | ratio | graph, first to last |"
      " stream, first to last | ratio | A100, graph / stream |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 0; i < 3; i++) {
    printf("| %s |", shapes[i]);
    print_pair_cells(rows, streams[i], shapes[i], "empty", COLUMN_LAUNCH);
    print_pair_cells(rows, streams[i], shapes[i], "empty", COLUMN_TOTAL);
    print_pair_cells(rows, streams[i], shapes[i], "span", COLUMN_TOTAL);
    printf(" %s |\n", document[i]);
  }
}

static void print_measures(const bench_rows *rows) {
  static const char *const measures[][2] = {
      {"clock", "reading the clock"},
      {"hand_over", "hand-over between two spinning threads"},
      {"wake_call", "waking a sleeper after 5 ms, for the caller"},
      {"wake_to_run", "waking a sleeper after 5 ms, until it runs"},
      {"idle_cpu", "an idle device: processor time in a second"},
      {"launch_threads_1", "one launch call, 1 thread launching"},
      {"launch_threads_2", "one launch call, 2 threads at once"},
      {"launch_threads_4", "one launch call, 4 threads at once"},
      {"launch_threads_8", "one launch call, 8 threads at once"},
  };
  printf("\n## Machine and host\n\n| what | time |\n|---|---|\n");
  for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
    const bench_series series = rows_measure(rows, measures[i][0]);
    printf("| %s |", measures[i][1]);
    print_figure(&series, format_ns);
    printf("\n");
  }
}

/* Training -------------------------------------------------------------------------------------------------------- */

enum { MODELS = 3 };
static const int hidden_sizes[MODELS] = {32, 128, 512};

static bench_series training(const bench_rows *rows, int hidden, const char *manner) {
  char measure[64];
  snprintf(measure, sizeof measure, "train_%d_%s", hidden, manner);
  return rows_measure(rows, measure);
}

static void print_training(const bench_rows *rows) {
  static const char *const manners[] = {"recorded", "unrecorded", "recorded_host", "unrecorded_host"};
  printf(
      "\n## A training step of a language model\n\n| hidden units | recorded | un-recorded | recorded, host |"
      " un-recorded, host |\n|---|---|---|---|---|\n");
  for (int i = 0; i < MODELS; i++) {
    printf("| %d |", hidden_sizes[i]);
    for (size_t k = 0; k < 4; k++) {
      const bench_series series = training(rows, hidden_sizes[i], manners[k]);
      print_figure(&series, format_ns);
    }
    printf("\n");
  }
}

/* Planning -------------------------------------------------------------------------------------------------------- */

static bool is_first_of_measure(const bench_rows *rows, size_t index) {
  for (size_t i = 0; i < index; i++) {
    if (strcmp(rows->items[i].measure, rows->items[index].measure) == 0) return false;
  }
  return true;
}

static void print_plans(const bench_rows *rows) {
  printf("\n## Planning memory\n\n| input, way | time | peak to lower bound |\n|---|---|---|\n");
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->items[i];
    if (row->ratio <= 0 || strncmp(row->measure, "plan ", 5) != 0 || !is_first_of_measure(rows, i)) continue;
    const bench_series time = rows_measure(rows, row->measure);
    const bench_series ratio = rows_ratio(rows, row->measure);
    printf("| %s |", row->measure + strlen("plan "));
    print_figure(&time, format_ns);
    print_figure(&ratio, format_exact);
    printf("\n");
  }
}

/* Graph memory ---------------------------------------------------------------------------------------------------- */

static void format_count(char out[32], double value) { snprintf(out, 32, "%.0f", value); }

static void format_mib(char out[32], double bytes) { snprintf(out, 32, "%.2f MiB", bytes / (1 << 20)); }

static void print_memory_row(const bench_rows *rows, const char *name) {
  static const struct {
    const char *quantity;
    void (*format)(char[32], double);
  } columns[] = {{"profile", format_ns},   {"instantiate", format_ns}, {"first", format_ns},   {"relaunch", format_ns},
                 {"remaps", format_count}, {"alternate", format_ns},   {"moves", format_count}};
  char measure[ROWS_NAME];
  snprintf(measure, sizeof measure, "%s bytes", name);
  const bench_series held = rows_measure(rows, measure), ratio = rows_ratio(rows, measure);
  printf("| %s |", name + strlen("memory "));
  print_figure(&held, format_mib);
  print_figure(&ratio, format_exact);
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
    snprintf(measure, sizeof measure, "%s %s", name, columns[i].quantity);
    const bench_series series = rows_measure(rows, measure);
    print_figure(&series, columns[i].format);
  }
  printf("\n");
}

/* Launch calls; remaps in 100 launches on one stream, and on two in turn. */
static void print_memory(const bench_rows *rows) {
  printf(
      "\n## Graph memory\n\n| input, way | held | to the bound | making the profile | instantiate | first launch |"
      " launch | remaps in 100 | launch on two streams in turn | remaps in 100 "
      "|\n|---|---|---|---|---|---|---|---|---|---|"
      "\n");
  for (size_t i = 0; i < rows->count; i++) {
    char name[ROWS_NAME];
    const bench_row *row = &rows->items[i];
    const size_t length = strlen(row->measure);
    if (row->ratio <= 0 || strncmp(row->measure, "memory ", 7) != 0 || !is_first_of_measure(rows, i)) continue;
    snprintf(name, sizeof name, "%.*s", (int)(length - strlen(" bytes")), row->measure);
    print_memory_row(rows, name);
  }
}

/* Bars ------------------------------------------------------------------------------------------------------------ */

typedef enum bar_unit { UNIT_NS, UNIT_RATIO, UNIT_FINE_RATIO, UNIT_COUNT } bar_unit;

typedef struct bar {
  char name[96];
  bar_unit unit;
  bool at_least;
  double bound;
  bench_series measured;
} bar;

enum { MOST_BARS = 256 };
typedef struct bars {
  bar items[MOST_BARS];
  size_t count;
} bars;

static void add_bar(bars *list, const char *name, bar_unit unit, bool at_least, double bound, bench_series measured) {
  bar *self = &list->items[list->count++];
  *self = (bar){.unit = unit, .at_least = at_least, .bound = bound, .measured = measured};
  snprintf(self->name, sizeof self->name, "%s", name);
}

static bool is_met(const bar *self) {
  const double median = figure_of(&self->measured).median;
  return self->at_least ? median >= self->bound : median <= self->bound;
}

static void add_launch_bars(bars *list, const bench_rows *rows) {
  const bench_series small = rondo_series(rows, "rondo", "line32", "empty", COLUMN_LAUNCH);
  const bench_series bare = rondo_series(rows, "bound-async", "dag10k", "empty", COLUMN_LAUNCH);
  const bench_series large = rondo_series(rows, "rondo", "dag10k", "empty", COLUMN_LAUNCH);
  const bench_series stream = rondo_series(rows, "rondo-stream", "line32", "empty", COLUMN_LAUNCH);
  const bench_series busy = rondo_series(rows, "rondo-stream", "line32", "microsecond", COLUMN_LAUNCH);
  add_bar(list, "launch call, 32 nodes", UNIT_NS, false, 150, small);
  add_bar(list, "launch call, 10,000 nodes", UNIT_NS, false, 150, large);
  /* Not against 32 nodes: 10,000 leave no line of the launch in the first cache, whoever launches. */
  add_bar(list, "launch call, 10,000 nodes, against a bare hand-over", UNIT_RATIO, false, 1.5,
          series_ratio(large, bare));
  add_bar(list, "a kernel handed to a stream, empty bodies", UNIT_NS, false, 100, series_scaled(stream, 1.0 / 32));
  add_bar(list, "a kernel handed to a stream, bodies of 1 us", UNIT_NS, false, 100, series_scaled(busy, 1.0 / 32));
}

static void add_loop_bars(bars *list, const bench_rows *rows) {
  static const struct {
    const char *shape;
    double bound;
  } limits[] = {{"line32", 10}, {"line1000", 2}, {"dag10k", 2}};
  for (size_t i = 0; i < 3; i++) {
    char name[96];
    const bench_series mine = rondo_series(rows, "rondo", limits[i].shape, "empty", COLUMN_TOTAL);
    const bench_series loop = rondo_series(rows, "rondo-loop", limits[i].shape, "empty", COLUMN_TOTAL);
    snprintf(name, sizeof name, "empty %s against the plain loop", limits[i].shape);
    add_bar(list, name, UNIT_RATIO, false, limits[i].bound, series_ratio(mine, loop));
  }
}

static void add_peer_bar(bars *list, const bench_rows *rows, const char *shape, const char *body, double bound) {
  char name[96];
  const bench_series mine = rondo_series(rows, "rondo", shape, body, COLUMN_TOTAL);
  snprintf(name, sizeof name, "%s, %s bodies: times faster than the best peer", shape, body);
  add_bar(list, name, UNIT_RATIO, true, bound, series_ratio(rows_best_peer(rows, shape, body), mine));
}

/* Where the bodies are the cost, all good engines stand at the same limit, and the fastest of some twenty of them lies
 * a little below it by chance: 0.97 is not behind. */
static void add_peer_bars(bars *list, const bench_rows *rows) {
  for (int i = 0; i < 5; i++) add_peer_bar(list, rows, shapes[i], "empty", i < 3 ? 3 : 10);
  for (int i = 0; i < 5; i++) add_peer_bar(list, rows, shapes[i], "microsecond", 0.97);
  add_peer_bar(list, rows, "grid4096", "block", 0.97);
}

/* Two threads at best halve the loop; between fork and join 15 nodes each, and two that nothing can run beside. */
static void add_share_bars(bars *list, const bench_rows *rows) {
  static const struct {
    const char *shape, *body;
    double ideal, bound;
  } shares[] = {{"branch2x16", "microsecond", 1.0 / 2, 0.93},
                {"fork30", "microsecond", 17.0 / 32, 0.90},
                {"dag10k", "microsecond", 1.0 / 2, 0.95},
                {"grid4096", "block", 1.0 / 2, 0.96}};
  for (size_t i = 0; i < 4; i++) {
    char name[96];
    const bench_series mine = rondo_series(rows, "rondo", shares[i].shape, shares[i].body, COLUMN_TOTAL);
    const bench_series loop = rondo_series(rows, "rondo-loop", shares[i].shape, shares[i].body, COLUMN_TOTAL);
    snprintf(name, sizeof name, "%s, %s bodies: share of the ideal of two threads", shares[i].shape, shares[i].body);
    add_bar(list, name, UNIT_RATIO, true, shares[i].bound, series_ratio(series_scaled(loop, shares[i].ideal), mine));
  }
}

static void add_waiting_bars(bars *list, const bench_rows *rows) {
  const rows_key cold = {"rondo", 0, "line32", "empty", "spread", 5000};
  const rows_key crowded = {"rondo", 0, "line32", "empty", "one", 0};
  const bench_series wake = rows_measure(rows, "wake_call");
  add_bar(list, "cold line32: the launch call over the bare wake call", UNIT_NS, false, 3000,
          series_difference(rows_series(rows, &cold, COLUMN_LAUNCH), wake));
  add_bar(list, "cold line32: launch and wait over the bare wake call", UNIT_NS, false, 3000,
          series_difference(rows_series(rows, &cold, COLUMN_TOTAL), wake));
  add_bar(list, "line32 with all threads on one processor", UNIT_NS, false, 10000,
          rows_series(rows, &crowded, COLUMN_TOTAL));
  add_bar(list, "processor time of an idle device in a second", UNIT_NS, false, 100000, rows_measure(rows, "idle_cpu"));
}

/* A hundredth is what two runs of the same differ by. */
static void add_training_bars(bars *list, const bench_rows *rows) {
  for (int i = 0; i < MODELS; i++) {
    char name[96];
    const bench_series mine = training(rows, hidden_sizes[i], "recorded");
    const bench_series other = training(rows, hidden_sizes[i], "unrecorded");
    snprintf(name, sizeof name, "training step, %d hidden units: recorded against un-recorded", hidden_sizes[i]);
    add_bar(list, name, UNIT_RATIO, false, 1, series_ratio(mine, other));
  }
}

static void add_order_bars(bars *list, const bench_rows *rows) {
  static const char *const inputs[] = {"random", "fork-join", "streams", "layered"};
  static const char *const sizes[] = {"powers", "uniform", "heavy", "network"};
  for (size_t i = 0; i < 16; i++) {
    for (unsigned chains = 2; chains <= 8; chains *= 2) {
      char name[96], measure[ROWS_NAME];
      const char *input = inputs[i / 4], *size = sizes[i % 4];
      snprintf(measure, sizeof measure, "plan %s DAG, %s, 10000 nodes on %u chains 200ms", input, size, chains);
      snprintf(name, sizeof name, "planning 10,000 nodes on %u chains, %s, %s: peak to bound", chains, input, size);
      add_bar(list, name, UNIT_FINE_RATIO, false, 1.07, rows_ratio(rows, measure));
      snprintf(measure, sizeof measure, "plan %s DAG, %s, 100000 nodes on %u chains fast", input, size, chains);
      snprintf(name, sizeof name, "planning 100,000 nodes on %u chains, %s, %s", chains, input, size);
      add_bar(list, name, UNIT_NS, false, 2e9, rows_measure(rows, measure));
    }
  }
}

static void add_plan_bars(bars *list, const bench_rows *rows) {
  static const char *const inputs[] = {"random", "training", "inference"};
  for (size_t i = 0; i < 3; i++) {
    char name[96], measure[ROWS_NAME];
    snprintf(measure, sizeof measure, "plan %s 100000 fast", inputs[i]);
    snprintf(name, sizeof name, "planning 100,000 buffers, %s", inputs[i]);
    add_bar(list, name, UNIT_NS, false, 7e8, rows_measure(rows, measure));
    snprintf(name, sizeof name, "planning 100,000 buffers, %s: peak to lower bound", inputs[i]);
    add_bar(list, name, UNIT_FINE_RATIO, false, 1.001, rows_ratio(rows, measure));
    snprintf(measure, sizeof measure, "plan %s 1000000 fast", inputs[i]);
    snprintf(name, sizeof name, "planning 1,000,000 buffers, %s", inputs[i]);
    add_bar(list, name, UNIT_NS, false, 1e10, rows_measure(rows, measure));
  }
}

static void add_memory_bars(bars *list, const bench_rows *rows) {
  static const char *const inputs[] = {"random", "training", "inference"}, *const ways[] = {"profiled", "relocated"};
  for (size_t i = 0; i < 6; i++) {
    char name[96], measure[ROWS_NAME];
    snprintf(measure, sizeof measure, "memory %s 1000 %s bytes", inputs[i / 2], ways[i % 2]);
    snprintf(name, sizeof name, "graph memory, %s, %s: bytes held to the bound", inputs[i / 2], ways[i % 2]);
    add_bar(list, name, UNIT_FINE_RATIO, false, 1.01, rows_ratio(rows, measure));
    snprintf(measure, sizeof measure, "memory %s 1000 %s remaps", inputs[i / 2], ways[i % 2]);
    snprintf(name, sizeof name, "graph memory, %s, %s: remaps in steady state", inputs[i / 2], ways[i % 2]);
    add_bar(list, name, UNIT_COUNT, false, 0, rows_measure(rows, measure));
  }
}

static void print_bars(const bars *list) {
  static void (*const formats[])(char[32], double) = {format_ns, format_plain, format_exact, format_count};
  printf("\n## Bars\n\n| what | bar | measured | |\n|---|---|---|---|\n");
  for (size_t i = 0; i < list->count; i++) {
    const bar *self = &list->items[i];
    void (*format)(char[32], double) = formats[self->unit];
    char bound[32];
    format(bound, self->bound);
    printf("| %s | %s %s |", self->name, self->at_least ? "at least" : "at most", bound);
    print_figure(&self->measured, format);
    printf(" %s |\n", figure_of(&self->measured).rounds == 0 ? "not measured" : is_met(self) ? "met" : "**not met**");
  }
}

/* JSON ------------------------------------------------------------------------------------------------------------ */

static void write_number(FILE *out, const char *name, double value) {
  if (isfinite(value)) {
    fprintf(out, ",\"%s\":%.6g", name, value);
  } else {
    fprintf(out, ",\"%s\":null", name);
  }
}

static void write_bars(FILE *out, const bars *list) {
  for (size_t i = 0; i < list->count; i++) {
    const bar *self = &list->items[i];
    const bench_figure figure = figure_of(&self->measured);
    fprintf(out, "%s\n{\"bar\":\"%s\",\"unit\":\"%s\",\"sense\":\"%s\"", i > 0 ? "," : "", self->name,
            self->unit == UNIT_NS      ? "ns"
            : self->unit == UNIT_COUNT ? "count"
                                       : "ratio",
            self->at_least ? "at least" : "at most");
    write_number(out, "bound", self->bound);
    write_number(out, "median", figure.median);
    write_number(out, "min", figure.minimum);
    write_number(out, "max", figure.maximum);
    fprintf(out, ",\"met\":%s}", figure.rounds == 0 ? "null" : is_met(self) ? "true" : "false");
  }
}

static void copy_file(FILE *out, const char *path) {
  char buffer[4096];
  size_t count;
  FILE *file = fopen(path, "r");
  if (file == NULL) return;
  while ((count = fread(buffer, 1, sizeof buffer, file)) > 0) fwrite(buffer, 1, count, out);
  fclose(file);
}

static bool write_json(const char *path, const bars *list, long rounds, char *const *files, int count) {
  FILE *out = fopen(path, "w");
  if (out == NULL) {
    perror(path);
    return false;
  }
  fprintf(out, "{\"rounds\":%ld,\"bars\":[", rounds);
  write_bars(out, list);
  fprintf(out, "\n],\"programs\":[\n");
  for (int i = 0; i < count; i++) {
    if (i > 0) fprintf(out, ",\n");
    copy_file(out, files[i]);
  }
  fprintf(out, "]}\n");
  return fclose(out) == 0;
}

int main(int argc, char **argv) {
  static bars list;
  bench_rows rows = {.items = NULL};
  const char *json = NULL;
  int first = 1;
  if (argc > 2 && strcmp(argv[1], "--json") == 0) {
    json = argv[2];
    first = 3;
  }
  if (first >= argc) {
    fprintf(stderr, "usage: table [--json OUT] FILE...\n");
    return 2;
  }
  for (int i = first; i < argc; i++) {
    if (!rows_read(&rows, argv[i])) return EXIT_FAILURE;
  }
  add_launch_bars(&list, &rows);
  add_loop_bars(&list, &rows);
  add_peer_bars(&list, &rows);
  add_share_bars(&list, &rows);
  add_waiting_bars(&list, &rows);
  add_training_bars(&list, &rows);
  add_plan_bars(&list, &rows);
  add_order_bars(&list, &rows);
  add_memory_bars(&list, &rows);
  printf("Medians of %ld rounds [smallest - largest of the rounds' medians].\n", rows.rounds);
  for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) print_section(&rows, &sections[i]);
  print_graph_against_stream(&rows);
  print_training(&rows);
  print_plans(&rows);
  print_memory(&rows);
  print_measures(&rows);
  print_bars(&list);
  const bool written = json == NULL || write_json(json, &list, rows.rounds, argv + first, argc - first);
  free(rows.items);
  return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
