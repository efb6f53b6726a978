/* SPDX-License-Identifier: MIT
 * Measures and reports, for every benchmark. Header only, in C that C++ accepts too.
 *
 * A program prints one JSON object: its name, its engine's version, and "rows" of flat fields, one row on each line.
 * Each configuration is measured in a separate child process (bench_child), so that no thread or binding of an earlier
 * one exists. A sample is
 *     start; launch; launched; wait; end        launch = launched - start, total = end - start.
 * Each graph is first replayed with a checking body: a replay that runs a node twice, too early or not at all ends the
 * program. Times are host times in nanoseconds.
 *
 * Environment, set by bench/run:
 *   BENCH_SHAPES, BENCH_BODIES, BENCH_ENGINES   comma-separated lists of what to measure; default: all
 *   BENCH_BUDGET_MS   time to measure a row; default: 150
 *   BENCH_GAP_US      time that the host sleeps before each replay; default: 0
 *   BENCH_PLACE       spread: host on the first processor, other threads on the second, first, ...; one: all on the
 *                     first; os: the system decides. Default: spread
 *   BENCH_LIMIT_S     time limit of a configuration; default: 60
 *   BENCH_ROUND       number of the round, copied to the output
 */
#ifndef RONDO_BENCH_MEASURE_H
#define RONDO_BENCH_MEASURE_H

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graphs.h"

/* One method to replay a graph. */
typedef struct bench_engine {
  const char *name;
  int threads; /* that run nodes */
  int batch;   /* replays in a sample: more than one when a replay is too short for the clock */
  int no_span; /* the engine cannot run the stamping body */
  void *self;
  void (*prepare)(void *self); /* called when the bodies of the graph have changed; may be NULL */
  void (*launch)(void *self);
  void (*wait)(void *self);
} bench_engine;

/* Settings -------------------------------------------------------------------------------------------------------- */

static inline long bench_setting(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? atol(value) : otherwise;
}

/* The device to measure, named by BENCH_DEVICE. */
static inline const char *bench_device(void) {
  const char *name = getenv("BENCH_DEVICE");
  return name != NULL && name[0] != '\0' ? name : "cpu";
}

static inline int bench_is_listed(const char *setting, const char *name) {
  const char *list = getenv(setting);
  if (list == NULL || list[0] == '\0') return 1;
  const size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
    if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ',')) return 1;
  }
  return 0;
}

static inline int bench_wants(int shape, const char *engine) {
  return bench_is_listed("BENCH_SHAPES", bench_shape_name(shape)) && bench_is_listed("BENCH_ENGINES", engine);
}

static inline const char *bench_place(void) {
  const char *place = getenv("BENCH_PLACE");
  return place != NULL && place[0] != '\0' ? place : "spread";
}

/* Reporting ------------------------------------------------------------------------------------------------------- */

typedef struct bench_report {
  FILE *out; /* where rows go: the parent's pipe in a child */
  int rows, failures;
} bench_report;

static inline bench_report *bench_reporting(void) {
  static bench_report report;
  return &report;
}

/* `version` may be "". */
static inline void bench_begin(const char *program, const char *version) {
  bench_reporting()->out = stdout;
  bench_calibrate();
  printf("{\"program\":\"%s\",\"version\":\"%s\",\"round\":%ld,\"rows\":[", program, version,
         bench_setting("BENCH_ROUND", 1));
  fflush(stdout);
}

/* Returns the exit status of main. */
static inline int bench_end(void) {
  printf("\n]}\n");
  return bench_reporting()->failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Prints what a child reported, one row on a line. Drops an incomplete last line. */
static inline void bench_forward_rows(FILE *from) {
  char line[1024];
  bench_report *report = bench_reporting();
  while (fgets(line, sizeof line, from) != NULL) {
    char *end = strchr(line, '\n');
    if (end == NULL) break;
    *end = '\0';
    printf("%s\n%s", report->rows++ > 0 ? "," : "", line);
  }
  fflush(stdout);
}

/* Returns true in a new child, which reports rows and ends with bench_child_end. In the parent, waits for the child and
 * returns false. */
static inline int bench_child(void) {
  int ends[2], status = 0;
  if (pipe(ends) != 0) {
    perror("pipe");
    exit(EXIT_FAILURE);
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    bench_reporting()->out = fdopen(ends[1], "w");
    alarm((unsigned)bench_setting("BENCH_LIMIT_S", 60));
    return 1;
  }
  close(ends[1]);
  FILE *rows = fdopen(ends[0], "r");
  if (rows != NULL) bench_forward_rows(rows);
  if (rows != NULL) fclose(rows);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "a configuration failed (status %#x)\n", (unsigned)status);
    bench_reporting()->failures++;
  }
  return 0;
}

/* Skips the engine's own teardown, which fails in some engines. */
static inline void bench_child_end(void) {
  fflush(bench_reporting()->out);
  _exit(EXIT_SUCCESS);
}

/* Numbers --------------------------------------------------------------------------------------------------------- */

/* Reports samples in a unit other than a replay's. */
static inline void bench_report_value(const char *measure, const char *unit, samples *values) {
  const summary of = samples_summarize(values);
  fprintf(bench_reporting()->out,
          "{\"measure\":\"%s\",\"unit\":\"%s\",\"samples\":%zu,\"median\":%.0f,\"min\":%.0f,\"max\":%.0f}\n", measure,
          unit, values->count, of.median, of.minimum, of.maximum);
}

/* The same for a single value. */
static inline void bench_report_one(const char *measure, const char *unit, double value) {
  samples one = {&value, 1, 1};
  bench_report_value(measure, unit, &one);
}

/* Memory for samples, which is never freed. */
static inline samples bench_samples(size_t capacity) {
  samples set;
  if (samples_create(&set, capacity)) return set;
  fprintf(stderr, "out of memory\n");
  exit(EXIT_FAILURE);
}

static inline uint64_t bench_cpu_ns(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u +
         (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
}

/* Placing --------------------------------------------------------------------------------------------------------- */

static inline void bench_bind(pid_t thread, size_t processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(thread, sizeof set, &set); /* a machine with one processor is unchanged */
}

/* The threads of the process in the order of their creation: the host, then the workers. */
static inline int bench_threads(pid_t threads[64]) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  if (folder == NULL) return 0;
  for (struct dirent *entry = readdir(folder); entry != NULL && count < 64; entry = readdir(folder)) {
    const pid_t thread = (pid_t)atol(entry->d_name);
    if (thread <= 0) continue;
    int at = count++;
    for (; at > 0 && threads[at - 1] > thread; at--) threads[at] = threads[at - 1];
    threads[at] = thread;
  }
  closedir(folder);
  return count;
}

static inline void bench_place_threads(void) {
  pid_t threads[64];
  const int one = strcmp(bench_place(), "one") == 0;
  if (strcmp(bench_place(), "os") == 0) return;
  const int count = bench_threads(threads);
  for (int i = 0; i < count; i++) bench_bind(threads[i], one ? 0 : (size_t)i % 2);
}

/* Replays --------------------------------------------------------------------------------------------------------- */

static inline void bench_prepare(const bench_engine *engine) {
  if (engine->prepare != NULL) engine->prepare(engine->self);
}

static inline void bench_verify_engine(const bench_engine *engine, bench_graph *graph) {
  enum { REPLAYS = 20 };
  bench_check_state *check = bench_check();
  check->graph = graph;
  check->stamps = (uint32_t *)bench_zeroed(graph->count, sizeof(uint32_t));
  check->counts = (uint32_t *)bench_zeroed(graph->count, sizeof(uint32_t));
  bench_set_bodies(graph, bench_checking);
  bench_prepare(engine);
  for (check->replay = 1; check->replay <= REPLAYS; check->replay++) {
    memset(check->counts, 0, graph->count * sizeof(uint32_t));
    engine->launch(engine->self);
    engine->wait(engine->self);
    for (uint32_t i = 0; i < graph->count; i++) {
      if (check->stamps[i] != check->replay || check->counts[i] != graph->nodes[i].blocks) check->wrong++;
    }
  }
  if (check->wrong > 0) {
    fprintf(stderr, "%s: %s ran wrong %u times\n", engine->name, graph->name, check->wrong);
    exit(EXIT_FAILURE);
  }
  free(check->stamps);
  free(check->counts);
}

enum { BENCH_MOST_SAMPLES = 20000, BENCH_FEWEST_SAMPLES = 20 };

/* Of replays, in nanoseconds. */
typedef struct bench_replays {
  samples launch, total;
  double cpu_ns; /* of all threads, for each replay */
} bench_replays;

/* The time from the first source's start to the last sink's end in the last replay. */
static inline uint64_t bench_span_ns(const bench_graph *graph) {
  const uint64_t *stamps = *bench_span_stamps();
  uint64_t first = UINT64_MAX, last = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    if (bench_is_source(graph, i) && stamps[i] < first) first = stamps[i];
    if (bench_is_sink(graph, i) && stamps[i] > last) last = stamps[i];
  }
  return last - first;
}

static inline void bench_sample(const bench_engine *engine, const bench_graph *span, bench_replays *to) {
  const uint64_t batch = (uint64_t)engine->batch;
  const uint64_t start = clock_ns();
  uint64_t launched = start;
  for (uint64_t k = 0; k < batch; k++) {
    engine->launch(engine->self);
    if (batch == 1) launched = clock_ns();
    engine->wait(engine->self);
  }
  const uint64_t end = clock_ns();
  samples_add(&to->launch, (double)((launched - start) / batch));
  samples_add(&to->total, (double)(span != NULL ? bench_span_ns(span) : (end - start) / batch));
}

static inline void bench_warm_up(const bench_engine *engine, uint64_t budget_ns) {
  const uint64_t end = clock_ns() + budget_ns / 5;
  for (int i = 0; i < BENCH_FEWEST_SAMPLES || clock_ns() < end; i++) {
    engine->launch(engine->self);
    engine->wait(engine->self);
  }
}

static inline void bench_take_samples(const bench_engine *engine, const bench_graph *span, bench_replays *to) {
  const uint64_t budget_ns = (uint64_t)bench_setting("BENCH_BUDGET_MS", 150) * 1000000u;
  const long gap_us = bench_setting("BENCH_GAP_US", 0);
  bench_warm_up(engine, budget_ns);
  if (to->launch.values == NULL) to->launch = bench_samples(BENCH_MOST_SAMPLES);
  if (to->total.values == NULL) to->total = bench_samples(BENCH_MOST_SAMPLES);
  to->launch.count = to->total.count = 0;
  const uint64_t cpu = bench_cpu_ns(), end = clock_ns() + budget_ns;
  while (!samples_are_full(&to->total) && (to->total.count < BENCH_FEWEST_SAMPLES || clock_ns() < end)) {
    if (gap_us > 0) usleep((useconds_t)gap_us);
    bench_sample(engine, span, to);
  }
  to->cpu_ns = (double)(bench_cpu_ns() - cpu) / (double)to->total.count / engine->batch;
}

static inline void bench_report_row(const bench_engine *engine, const bench_graph *graph, const char *body,
                                    double body_ns, bench_replays *of) {
  const summary launch = samples_summarize(&of->launch), total = samples_summarize(&of->total);
  fprintf(bench_reporting()->out,
          "{\"engine\":\"%s\",\"shape\":\"%s\",\"body\":\"%s\",\"threads\":%d,\"place\":\"%s\",\"gap_us\":%ld,"
          "\"samples\":%zu,\"launch_ns\":%.0f,\"launch_min_ns\":%.0f,\"launch_max_ns\":%.0f,\"total_ns\":%.0f,"
          "\"total_min_ns\":%.0f,\"total_p95_ns\":%.0f,\"total_max_ns\":%.0f,\"cpu_ns\":%.0f,\"body_ns\":%.1f}\n",
          engine->name, graph->name, body, engine->threads, bench_place(), bench_setting("BENCH_GAP_US", 0),
          of->total.count * (size_t)engine->batch, launch.median, launch.minimum, launch.maximum, total.median,
          total.minimum, total.p95, total.maximum, of->cpu_ns, body_ns);
}

static inline void bench_measure_body(const bench_engine *engine, bench_graph *graph, const char *name,
                                      bench_body body) {
  static bench_replays replays;
  if (!bench_is_listed("BENCH_BODIES", name)) return;
  bench_set_bodies(graph, body);
  bench_prepare(engine);
  bench_take_samples(engine, NULL, &replays);
  bench_report_row(engine, graph, name, bench_body_ns(body), &replays);
}

/* Empty bodies, with time stamps in the sources and sinks: the row's total is the time between the first and the last,
 * which CUDA's tools call the device time. */
static inline void bench_measure_span(const bench_engine *engine, bench_graph *graph) {
  static bench_replays replays;
  bench_engine single = *engine;
  if (engine->no_span || !bench_is_listed("BENCH_BODIES", "span")) return;
  single.batch = 1;
  *bench_span_stamps() = (uint64_t *)bench_zeroed(graph->count, sizeof(uint64_t));
  bench_set_bodies(graph, bench_empty);
  for (uint32_t i = 0; i < graph->count; i++) {
    if (bench_is_source(graph, i) || bench_is_sink(graph, i)) graph->nodes[i].body = bench_stamping;
  }
  bench_prepare(&single);
  bench_take_samples(&single, graph, &replays);
  bench_report_row(&single, graph, "span", 0, &replays);
  free(*bench_span_stamps());
}

/* Verifies the engine, then measures every requested body. Binds the threads in between, because some engines start
 * threads at the first launch. */
static inline void bench_measure(const bench_engine *engine, bench_graph *graph) {
  bench_engine single = *engine;
  single.batch = 1;
  bench_verify_engine(engine, graph);
  bench_place_threads();
  if (graph->count == 1) {
    bench_measure_body(&single, graph, "block", bench_block);
    return;
  }
  bench_measure_body(engine, graph, "empty", bench_empty);
  bench_measure_body(&single, graph, "microsecond", bench_microsecond);
  if (graph->count == 32) bench_measure_span(engine, graph);
}

#endif
