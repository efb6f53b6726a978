/* SPDX-License-Identifier: MIT
 * rondo_bench verify: the duration of verification, for large graphs without an error, of ordinary and of worst-case
 * shapes. Only rondo_graph_verify is timed, flattening included.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "common/random_numbers.h"
#include "measure.h"
#include "rondo_bench.h"

enum { MOST_SAMPLES = 500, FEWEST_SAMPLES = 5, BUFFER_BYTES = 4096, TILE = 64, MOST_DEPENDENCIES = 8 };

typedef struct sketch {
  rondo_device *device;
  rondo_kernel *kernel; /* (reads, reads, writes) */
  rondo_graph *graph;
  rondo_node *nodes; /* created so far */
  size_t count, room;
} sketch;

static uint32_t random_below(uint64_t *state, uint32_t bound) { return (uint32_t)(draw_next(state) % bound); }

/* Nodes ------------------------------------------------------------------------------------------------------------ */

static rondo_node keep(sketch *self, rondo_node node) {
  if (self->count == self->room) exit(EXIT_FAILURE);
  self->nodes[self->count++] = node;
  return node;
}

static char *alloc(sketch *self, const rondo_node *after, size_t count, size_t bytes, rondo_node *out) {
  void *address = NULL;
  check(rondo_graph_add_alloc(self->graph, after, count, bytes, "buffer", &address, out));
  (void)keep(self, *out);
  return address;
}

static rondo_node freed(sketch *self, const rondo_node *after, size_t count, void *address) {
  rondo_node node;
  check(rondo_graph_add_free(self->graph, after, count, address, &node));
  return keep(self, node);
}

/* Pointers may be NULL; bytes of 0 are not declared. */
static rondo_node work(sketch *self, const rondo_node *after, size_t count, char *const pointers[3], size_t bytes) {
  const void *const args[] = {&pointers[0], &pointers[1], &pointers[2]};
  const size_t arg_bytes[] = {bytes, bytes, bytes};
  rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = self->kernel, .grid = {1, 1, 1}, .args = args, .arg_count = 3, .arg_bytes = arg_bytes}};
  rondo_node node;
  check(rondo_graph_add(self->graph, after, count, &params, &node));
  return keep(self, node);
}

static rondo_node join(sketch *self, const rondo_node *after, size_t count) {
  rondo_node node;
  check(rondo_graph_add_empty(self->graph, after, count, &node));
  return keep(self, node);
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

/* Four streams with separate buffers, which are allocated, written, read by two more kernels and freed. Every hundredth
 * kernel waits for another stream. */
static void make_streams_with(sketch *self, size_t bytes) {
  rondo_node last[4];
  char *before[4];
  for (int s = 0; s < 4; s++) before[s] = alloc(self, NULL, 0, BUFFER_BYTES, &last[s]);
  for (size_t i = 0; self->count + 5 <= self->room; i++) {
    const size_t s = i % 4;
    rondo_node after[2] = {last[s], last[(s + 1) % 4]};
    char *fresh = alloc(self, after, i % 100 == 99 ? 2 : 1, BUFFER_BYTES, &after[0]);
    for (int k = 0; k < 3; k++) after[0] = work(self, after, 1, (char *const[]){before[s], before[s], fresh}, bytes);
    last[s] = freed(self, after, 1, before[s]);
    before[s] = fresh;
  }
}

static void make_streams(sketch *self) { make_streams_with(self, BUFFER_BYTES); }
static void make_streams_undeclared(sketch *self) { make_streams_with(self, 0); }

/* One buffer that one kernel writes and all others read in parallel. */
static void make_readers(sketch *self) {
  rondo_node first;
  char *buffer = alloc(self, NULL, 0, BUFFER_BYTES, &first);
  first = work(self, &first, 1, (char *const[]){NULL, NULL, buffer}, BUFFER_BYTES);
  const size_t readers = self->count;
  while (self->count + 1 < self->room) (void)work(self, &first, 1, (char *const[]){buffer, NULL, NULL}, BUFFER_BYTES);
  (void)freed(self, self->nodes + readers, self->count - readers, buffer);
}

/* Independent branches: allocate, work, free. */
static void make_fork(sketch *self) {
  const rondo_node root = join(self, NULL, 0);
  while (self->count + 3 <= self->room) {
    rondo_node last;
    char *buffer = alloc(self, &root, 1, BUFFER_BYTES, &last);
    last = work(self, &last, 1, (char *const[]){NULL, NULL, buffer}, BUFFER_BYTES);
    (void)freed(self, &last, 1, buffer);
  }
}

/* Writes `count` tiles; or makes `count` reads of `bytes` bytes, read i at i * `stride`. All follow `last`. Returns the
 * node that follows all. */
static rondo_node write_tiles(sketch *self, char *buffer, size_t count, rondo_node last) {
  const size_t first = self->count;
  for (size_t i = 0; i < count; i++) (void)work(self, &last, 1, (char *const[]){NULL, NULL, buffer + i * TILE}, TILE);
  return join(self, self->nodes + first, count);
}

static rondo_node read_tiles(sketch *self, char *buffer, size_t count, size_t stride, size_t bytes, rondo_node last) {
  const size_t first = self->count;
  for (size_t i = 0; i < count; i++)
    (void)work(self, &last, 1, (char *const[]){buffer + i * stride, NULL, NULL}, bytes);
  return join(self, self->nodes + first, count);
}

/* Writes the tiles, reads each with the tiles after it (`window` in all; 0: every read covers the whole buffer), and
 * writes them again. */
static void make_tiles_of(sketch *self, size_t window) {
  const size_t third = self->room / 3 - 2, tiles = third + window;
  rondo_node last;
  char *buffer = alloc(self, NULL, 0, tiles * TILE, &last);
  last = write_tiles(self, buffer, third, last);
  last = read_tiles(self, buffer, third, window > 0 ? TILE : 0, (window > 0 ? window : tiles) * TILE, last);
  last = write_tiles(self, buffer, third, last);
  (void)freed(self, &last, 1, buffer);
}

static void make_tiles(sketch *self) { make_tiles_of(self, 0); }
static void make_windows(sketch *self) { make_tiles_of(self, 32); }

/* A sequential program in which every kernel waits exactly for the kernels that its data depends on. */
typedef struct tracked {
  char *address;
  rondo_node writer, readers[MOST_DEPENDENCIES];
  size_t reader_count;
} tracked;

static void depend(rondo_node *after, size_t *count, rondo_node on) {
  for (size_t i = 0; i < *count; i++)
    if (after[i].id == on.id) return;
  after[(*count)++] = on;
}

static void step(sketch *self, tracked *buffers, size_t buffer_count, uint64_t *random) {
  tracked *out = &buffers[random_below(random, (uint32_t)buffer_count)], *in[2];
  rondo_node after[4 + MOST_DEPENDENCIES];
  size_t count = 0;
  for (int i = 0; i < 2; i++) {
    do in[i] = &buffers[random_below(random, (uint32_t)buffer_count)];
    while (in[i] == out || in[i]->reader_count == MOST_DEPENDENCIES);
    depend(after, &count, in[i]->writer);
  }
  depend(after, &count, out->writer);
  for (size_t i = 0; i < out->reader_count; i++) depend(after, &count, out->readers[i]);
  const rondo_node node =
      work(self, after, count, (char *const[]){in[0]->address, in[1]->address, out->address}, BUFFER_BYTES);
  out->writer = node;
  out->reader_count = 0;
  for (int i = 0; i < 2; i++)
    if (in[i]->reader_count < MOST_DEPENDENCIES) in[i]->readers[in[i]->reader_count++] = node;
}

static void make_dataflow(sketch *self) {
  const size_t buffer_count = self->room / 5;
  tracked *buffers = bench_zeroed(buffer_count, sizeof *buffers);
  uint64_t random = 1;
  for (size_t i = 0; i < buffer_count; i++) buffers[i].address = alloc(self, NULL, 0, BUFFER_BYTES, &buffers[i].writer);
  while (self->count < self->room) step(self, buffers, buffer_count, &random);
  free(buffers);
}

/* A matrix of SIDE * SIDE blocks, each filled by a node of its own, repeated up to the number of kernels. */
static void make_blocks_of(sketch *self, size_t side) {
  enum { ROW = 32 };
  rondo_node last;
  char *matrix = alloc(self, NULL, 0, side * ROW * side * ROW, &last);
  while (self->count + side * side + 2 <= self->room) {
    const size_t first = self->count;
    for (size_t i = 0; i < side * side; i++) {
      const rondo_fill fill = {.dst = matrix + i / side * ROW * side * ROW + i % side * ROW,
                               .element_bytes = 1,
                               .width = ROW,
                               .height = ROW,
                               .pitch = side * ROW};
      rondo_node node;
      check(rondo_graph_add_fill(self->graph, &last, 1, &fill, &node));
      (void)keep(self, node);
    }
    last = join(self, self->nodes + first, self->count - first);
  }
  (void)freed(self, &last, 1, matrix);
}

static void make_blocks(sketch *self) { make_blocks_of(self, 32); }
static void make_matrix(sketch *self) { make_blocks_of(self, 99); }

/* Thousands of nodes write a tile of a buffer each; then thousands read the whole buffer, each in a separate branch. */
static void make_gather(sketch *self) {
  const size_t third = self->room / 3 - 2;
  rondo_node last;
  char *buffer = alloc(self, NULL, 0, third * TILE, &last);
  const rondo_node all = write_tiles(self, buffer, third, last);
  const size_t readers = self->count;
  for (size_t i = 0; i < third; i++) {
    last = work(self, &all, 1, (char *const[]){buffer, NULL, NULL}, third * TILE);
    (void)join(self, &last, 1);
  }
  (void)freed(self, self->nodes + readers, self->count - readers, buffer);
}

typedef struct shape {
  const char *name;
  void (*make)(sketch *self);
} shape;

static const shape shapes[] = {
    {"streams", make_streams}, {"streams_undeclared", make_streams_undeclared},
    {"readers", make_readers}, {"fork", make_fork},
    {"tiles", make_tiles},     {"dataflow", make_dataflow},
    {"blocks", make_blocks},   {"matrix", make_matrix},
    {"gather", make_gather},   {"windows", make_windows},
};

/* Measuring -------------------------------------------------------------------------------------------------------- */

static void empty_kernel(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

static void verify_once(const sketch *self, const char *name) {
  rondo_findings *findings = NULL;
  check(rondo_graph_verify(self->graph, NULL, &findings));
  if (rondo_findings_count(findings) > 0) {
    rondo_finding finding = {.struct_size = sizeof finding};
    check(rondo_findings_get(findings, 0, &finding));
    check_tool(tool_fail("shape '%s' has a finding: %s", name, finding.message));
  }
  rondo_findings_destroy(findings);
}

static void report(const sketch *self, const char *name, samples *times) {
  const summary of = samples_summarize(times);
  size_t edges = 0;
  check(rondo_graph_edges(self->graph, NULL, NULL, &edges));
  fprintf(bench_reporting()->out,
          "{\"measure\":\"verify_%s\",\"unit\":\"ns\",\"samples\":%zu,\"median\":%.0f,\"min\":%.0f,\"max\":%.0f,"
          "\"nodes\":%zu,\"edges\":%zu}\n",
          name, times->count, of.median, of.minimum, of.maximum, self->count, edges);
}

static void measure(const shape *at) {
  sketch self = {.room = (size_t)bench_setting("BENCH_VERIFY_NODES", 10000)};
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "work", .cpu = empty_kernel,
                                        .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}};
  const double seconds = 1e-3 * (double)bench_setting("BENCH_BUDGET_MS", 150);
  samples times = bench_samples(MOST_SAMPLES);
  self.nodes = bench_zeroed(self.room, sizeof *self.nodes);
  check(rondo_device_open("cpu", NULL, &self.device));
  check(rondo_kernel_create(self.device, &options, &self.kernel));
  check(rondo_graph_create(self.device, NULL, &self.graph));
  at->make(&self);
  verify_once(&self, at->name);
  for (rounds r = rounds_begin(seconds, FEWEST_SAMPLES, MOST_SAMPLES); rounds_next(&r);) {
    const uint64_t start = clock_ns();
    verify_once(&self, at->name);
    samples_add(&times, (double)(clock_ns() - start));
  }
  report(&self, at->name, &times);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench verify", rondo_version());
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    if (bench_is_listed("BENCH_VERIFY_SHAPES", shapes[i].name) && bench_child()) measure(&shapes[i]);
  }
  return bench_end();
}

const benchmark bench_verify = {
    .name = "verify",
    .summary = "verifying large graphs, of ordinary shapes and of the worst",
    .description =
        "Measures rondo_graph_verify, flattening included, on large graphs without mistakes, of ordinary shapes\n"
        "and of the worst. Rows: verify_SHAPE.\n\n"
        "BENCH_VERIFY_NODES: nodes of each graph; default 10000\n\n"
        "BENCH_VERIFY_SHAPES: list of shapes; default all",
    .program = run,
};
