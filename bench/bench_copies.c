/* SPDX-License-Identifier: MIT
 * rondo_bench copies (TR-6): the cost of copying inputs of a graph that have another address in each launch, on a CUDA
 * device and for the bare driver. Compares, in alternation, copies enqueued before the launch, one kernel enqueued
 * before the launch, and one kernel node that receives the addresses. The bare driver gets the kernel's argument as a
 * list of parameters or as a buffer. The library switches to enqueued copies at the size from which they cost less.
 * For functions, whose inputs are in device memory, they are compared with the kernel node; for requests, whose inputs
 * are in host memory, with the enqueued kernel.
 */
#include <string.h>

#include "bench_check.h"
#include "rondo_bench.h"

enum { MOST_RANGES = 16, COUNTS = 5, SIZES = 9, MOST_ROUNDS = 2000, FEWEST_ROUNDS = 3, WARM_UPS = 2 };
#define MOST_SUM (UINT64_C(256) << 20) /* of the bytes of all inputs of a launch */

static const uint32_t counts[COUNTS] = {1, 2, 4, 8, MOST_RANGES};
static const uint64_t sizes[SIZES] = {64, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};

enum { LAUNCH, QUEUED, IN_FRONT, LISTED, BUFFERED, WAYS };
static const char *const way_names[WAYS] = {[LAUNCH] = "launch",
                                            [QUEUED] = "queued",
                                            [IN_FRONT] = "kernel_in_front",
                                            [LISTED] = "kernel_list",
                                            [BUFFERED] = "kernel_buffer"};

typedef struct range_copy {
  uint64_t dst, src, bytes;
} range_copy;

typedef struct range_copies {
  uint64_t count;
  range_copy ranges[MOST_RANGES];
} range_copies;

typedef struct copies_case {
  bare_exec exec;
  bare_node node;
  unsigned blocks;
  cost costs[WAYS];
} copies_case;

typedef struct copies_bench {
  bench_base base;
  uint64_t most, unaligned;
  bool host;
  bare_device bare;
  bare_stream stream;
  uint64_t destination, sources[2];
  bare_exec work; /* only the graph */
  range_copies copies;
  bool is_moved;
  copies_case cases[COUNTS][SIZES];
} copies_bench;

/* The kernel ------------------------------------------------------------------------------------------------------ */

static const char source[] =
    "typedef unsigned long long u64;\n"
    "struct range { char *dst; const char *src; u64 bytes; };\n"
    "struct ranges { u64 count; range of[16]; };\n"
    "template <class T> __device__ void copy(const range &r, u64 first, u64 step) {\n"
    "  u64 head = -(u64)r.dst & (sizeof(T) - 1);\n"
    "  if (head > r.bytes) head = r.bytes;\n"
    "  const u64 body = head + ((r.bytes - head) & ~(u64)(sizeof(T) - 1));\n"
    "  for (u64 at = head + first * sizeof(T); at < body; at += step * sizeof(T))\n"
    "    *(T *)(r.dst + at) = *(const T *)(r.src + at);\n"
    "  if (first < head) r.dst[first] = r.src[first];\n"
    "  if (body + first < r.bytes && first < sizeof(T)) r.dst[body + first] = r.src[body + first];\n"
    "}\n"
    "extern \"C\" __global__ void bench_copy_ranges(const ranges all) {\n"
    "  const range &r = all.of[blockIdx.y];\n"
    "  const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x;\n"
    "  const u64 apart = (u64)r.dst ^ (u64)r.src;\n"
    "  if (blockIdx.y >= all.count || apart == 0) return;\n"
    "  if (apart % 16 == 0) copy<uint4>(r, first, step);\n"
    "  else if (apart % 4 == 0) copy<unsigned>(r, first, step);\n"
    "  else copy<char>(r, first, step);\n"
    "}\n";

enum { THREADS = 256, PIECE = 16, BLOCKS_A_PROCESSOR = 16, MOST_QUEUED_BLOCKS = 64 };

static void copy_cpu(rondo_blocks blocks, void *const *args) {
  const range_copies *all = args[0];
  for (size_t i = 0; blocks.first == 0 && i < all->count; i++) {
    const range_copy *range = &all->ranges[i];
    memcpy((void *)(uintptr_t)range->dst, (const void *)(uintptr_t)range->src, range->bytes);
  }
}

static const rondo_kernel_options kernel_options = {RONDO_KERNEL_OPTIONS_INIT, .name = "bench_copy_ranges",
                                                    .cpu = copy_cpu,           .block_threads = THREADS,
                                                    .cuda_source = source,     .params = {RONDO_SCALAR(range_copies)}};

static bare_kernel_params params_of(const copies_bench *b, unsigned blocks, unsigned ranges, void **list) {
  return (bare_kernel_params){.function = b->bare.kernel,
                              .grid_x = blocks,
                              .grid_y = ranges,
                              .grid_z = 1,
                              .block_x = THREADS,
                              .block_y = 1,
                              .block_z = 1,
                              .params = list};
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void move_inputs(copies_bench *b, uint32_t count, uint64_t bytes) {
  const uint64_t room = (bytes + 255) / 256 * 256;
  b->is_moved = !b->is_moved;
  b->copies.count = count;
  for (uint32_t i = 0; i < count; i++)
    b->copies.ranges[i] = (range_copy){
        .dst = b->destination + i * room, .src = b->sources[b->is_moved] + i * room + b->unaligned, .bytes = bytes};
}

static int queue_copies(const copies_bench *b) {
  int code = 0;
  for (uint32_t i = 0; i < b->copies.count && !code; i++)
    code = b->bare.driver.copy_async(b->copies.ranges[i].dst, b->copies.ranges[i].src, b->copies.ranges[i].bytes,
                                     b->stream);
  return code ? code : b->bare.driver.graph_launch(b->work, b->stream);
}

/* With as many blocks as the library's kernel, which leaves multiprocessors to other streams. */
static int queue_kernel(copies_bench *b, const copies_case *of) {
  const unsigned ranges = (unsigned)b->copies.count, most = MOST_QUEUED_BLOCKS / ranges + 1;
  void *list[] = {&b->copies};
  const int code = b->bare.driver.launch_kernel(b->bare.kernel, of->blocks < most ? of->blocks : most, ranges, 1,
                                                THREADS, 1, 1, 0, b->stream, list, NULL);
  return code ? code : b->bare.driver.graph_launch(b->work, b->stream);
}

static int tell_kernel(copies_bench *b, const copies_case *of, bool is_buffer) {
  void *list[] = {&b->copies};
  size_t bytes = sizeof b->copies;
  void *extra[] = {(void *)1, &b->copies, (void *)2, &bytes, NULL}; /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END */
  bare_kernel_params params = params_of(b, of->blocks, (unsigned)b->copies.count, is_buffer ? NULL : list);
  if (is_buffer) params.extra = extra;
  const int code = b->bare.driver.exec_set_kernel(of->exec, of->node, &params);
  return code ? code : b->bare.driver.graph_launch(of->exec, b->stream);
}

static int do_way(copies_bench *b, const copies_case *of, int way) {
  if (way == LAUNCH) return b->bare.driver.graph_launch(b->work, b->stream);
  if (way == QUEUED) return queue_copies(b);
  return way == IN_FRONT ? queue_kernel(b, of) : tell_kernel(b, of, way == BUFFERED);
}

static void time_way(copies_bench *b, copies_case *of, uint32_t count, uint64_t bytes, int way) {
  for (int i = 0; i <= WARM_UPS; i++) {
    cost *to = i < WARM_UPS ? NULL : &of->costs[way];
    move_inputs(b, count, bytes);
    COST_TIME(to, check_bare(do_way(b, of, way)), check_bare(b->bare.driver.stream_synchronize(b->stream)));
  }
}

static bool is_measured(const copies_bench *b, size_t c, size_t s) {
  return sizes[s] <= b->most && counts[c] * sizes[s] <= MOST_SUM;
}

static int measure(void *bench) {
  copies_bench *b = bench;
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    for (size_t i = 0; i < COUNTS * SIZES; i++)
      for (int way = 0; way < WAYS && is_measured(b, i / SIZES, i % SIZES); way++)
        time_way(b, &b->cases[i / SIZES][i % SIZES], counts[i / SIZES], sizes[i % SIZES], way);
  for (size_t i = 0; i < COUNTS * SIZES; i++) costs_summarize(b->cases[i / SIZES][i % SIZES].costs, WAYS);
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double added(const copies_case *of, int way, int time) {
  return of->costs[way].result[time].median - of->costs[LAUNCH].result[time].median;
}

/* The smallest size from which, at it and at every larger size, enqueued copies finish sooner than the kernel; 0 if
 * there is none. */
static uint64_t crossing(const copies_bench *b, size_t c) {
  const int kernel = b->host ? IN_FRONT : LISTED;
  uint64_t at = 0;
  for (size_t s = SIZES; s-- > 0;) {
    if (!is_measured(b, c, s)) continue;
    if (added(&b->cases[c][s], QUEUED, COST_TOTAL) >= added(&b->cases[c][s], kernel, COST_TOTAL)) break;
    at = sizes[s];
  }
  return at;
}

static void write_case(const copies_bench *b, size_t c, size_t s, json *out) {
  const copies_case *of = &b->cases[c][s];
  json_begin_object(out, NULL);
  json_integer(out, "inputs", counts[c]);
  json_integer(out, "bytes", sizes[s]);
  for (int way = 0; way < WAYS; way++) {
    json_begin_object(out, way_names[way]);
    cost_to_json(out, &of->costs[way]);
    json_real(out, "added_host_us", added(of, way, COST_HOST));
    json_real(out, "added_total_us", added(of, way, COST_TOTAL));
    json_end(out);
  }
  json_end(out);
}

static void report(void *bench, json *out) {
  const copies_bench *b = bench;
  json_integer(out, "unaligned", b->unaligned);
  json_boolean(out, "host", b->host);
  json_begin_array(out, "cases");
  for (size_t i = 0; i < COUNTS * SIZES; i++)
    if (is_measured(b, i / SIZES, i % SIZES)) write_case(b, i / SIZES, i % SIZES, out);
  json_end(out);
  json_begin_array(out, "crossings");
  for (size_t c = 0; c < COUNTS; c++) {
    json_begin_object(out, NULL);
    json_integer(out, "inputs", counts[c]);
    json_integer(out, "bytes", crossing(b, c));
    json_end(out);
  }
  json_end(out);
}

/* Preparing ------------------------------------------------------------------------------------------------------- */

/* With the kernel that copies nothing, the graph has only its work; with a case, the copying kernel precedes the work.
 * */
static bare_exec build(const copies_bench *b, copies_case *of, uint32_t ranges) {
  const bare_driver *driver = &b->bare.driver;
  range_copies nothing = {0};
  void *list[] = {&nothing};
  const bare_kernel_params work = params_of(b, 1, 1, list);
  bare_kernel_params copies = params_of(b, of ? of->blocks : 1, ranges, list);
  bare_instantiate_params params = {0};
  bare_graph graph = NULL;
  bare_exec exec = NULL;
  bare_node node;
  check_bare(driver->graph_create(&graph, 0));
  if (of) check_bare(driver->graph_add_kernel(&of->node, graph, NULL, 0, &copies));
  check_bare(driver->graph_add_kernel(&node, graph, of ? &of->node : NULL, of != NULL, &work));
  check_bare(driver->instantiate(&exec, graph, &params));
  return exec;
}

static unsigned blocks_for(const copies_bench *b, uint64_t bytes) {
  const uint64_t blocks = (bytes / PIECE + THREADS) / THREADS;
  const uint64_t most = (uint64_t)b->base.info.processors * BLOCKS_A_PROCESSOR;
  return (unsigned)(blocks < most ? blocks : most);
}

static uint64_t largest_sum(const copies_bench *b) {
  uint64_t most = 0;
  for (size_t i = 0; i < COUNTS * SIZES; i++) {
    const uint64_t sum = counts[i / SIZES] * ((sizes[i % SIZES] + 255) / 256 * 256);
    if (is_measured(b, i / SIZES, i % SIZES) && sum > most) most = sum;
  }
  return most + 256;
}

static void make_memory(copies_bench *b) {
  const uint64_t room = largest_sum(b);
  void *host_memory = NULL;
  check_bare(b->bare.driver.stream_create(&b->stream, BARE_NON_BLOCKING));
  check_bare(b->bare.driver.mem_alloc_async(&b->destination, (b->host ? 1 : 3) * room, b->stream));
  if (b->host) check(rondo_host_malloc(b->base.device, 2 * room, &host_memory));
  b->sources[0] = b->host ? (uint64_t)(uintptr_t)host_memory : b->destination + room;
  b->sources[1] = b->sources[0] + room;
}

/* Rondo compiles the kernel too, because the fake driver for machines without a GPU only knows Rondo's kernels. */
static int prepare(void *bench) {
  copies_bench *b = bench;
  rondo_kernel *kernel;
  check(rondo_kernel_create(b->base.device, &kernel_options, &kernel));
  check_tool(bare_device_open(b->base.device_name, &kernel_options, &b->bare));
  make_memory(b);
  b->work = build(b, NULL, 0);
  for (size_t i = 0; i < COUNTS * SIZES; i++) {
    copies_case *of = &b->cases[i / SIZES][i % SIZES];
    check_tool(costs_create(of->costs, WAYS, MOST_ROUNDS));
    of->blocks = blocks_for(b, sizes[i % SIZES]);
    of->exec = build(b, of, counts[i / SIZES]);
  }
  return TOOL_OK;
}

static const copies_bench defaults = {.base = {.device_name = "cuda:0", .seconds = 10}, .most = 64 << 20};

#define OFFSET(member) offsetof(copies_bench, member)

static const option_row rows[] = {
    {"most", "BYTES", OPTION_COUNT, OFFSET(most), 64, 1 << 30, "bytes of the largest input"},
    {"unaligned", "BYTES", OPTION_COUNT, OFFSET(unaligned), 0, 255, "how far inputs are from an aligned address"},
    {"host", NULL, OPTION_FLAG, OFFSET(host), 0, 0, "put the inputs in page-locked host memory"},
};

const benchmark bench_copies = {
    .name = "copies",
    .summary = "copying inputs before a graph: enqueued, or by a kernel in it",
    .description =
        "Measures, on a CUDA device, the launch of a graph whose 1 to 16 inputs of 64 bytes to 64 MiB are at\n"
        "other addresses each time and are copied to the recorded addresses: by copies enqueued before the\n"
        "launch, by one kernel enqueued before it, or by one kernel in the graph, which receives the addresses as\n"
        "a list of parameters or as a buffer. Only the driver is measured, without Rondo. Times are microseconds,\n"
        "medians; 'added' is the difference to launching the graph alone. A crossing is the size from which\n"
        "enqueued copies are faster than the kernel in the graph (for inputs in host memory: than the kernel\n"
        "before it); 0: there is none.",
    .why_cuda = "this benchmark calls the CUDA driver",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .prepare = prepare,
    .measure = measure,
    .report = report,
};
