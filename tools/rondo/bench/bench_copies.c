/* SPDX-License-Identifier: MIT
 * rondo bench copies (TR-6): what it costs on a CUDA device to copy the inputs of a graph that are elsewhere at each
 * launch, by the driver without Rondo: copies queued in front of the launch, one kernel that is queued there, or one
 * kernel node that is told where from, its argument given as the driver's list of parameters or as its buffer. All in
 * turns. From which size on queueing copies costs less says where the library had better do that: for functions, whose
 * inputs are the device's, against the kernel node, and for requests, whose are the host's, against the queued kernel.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_driver.h"
#include "bench/bench_steps.h"
#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/timing.h"
#include "common/tool.h"

typedef struct copies_settings {
  const char *device;
  uint64_t most, unaligned;
  double seconds;
  bool host, json;
} copies_settings;

static const copies_settings defaults = {.device = "cuda:0", .most = 64 << 20, .seconds = 10};

#define OFFSET(member) offsetof(copies_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(copies_settings),
    {"most", "BYTES", OPTION_COUNT, OFFSET(most), 64, 1 << 30, "bytes of the largest input"},
    {"unaligned", "BYTES", OPTION_COUNT, OFFSET(unaligned), 0, 255, "how far inputs are from an aligned address"},
    {"host", NULL, OPTION_FLAG, OFFSET(host), 0, 0, "put the inputs in page-locked host memory"},
    OPTION_ROW_SECONDS(copies_settings, "about how long to measure"),
    OPTION_ROW_JSON(copies_settings),
};

static const option_table table = {
    .command = "rondo bench copies",
    .description =
        "Measures, on a CUDA device, what it costs to launch a graph whose 1 to 16 inputs of 64 bytes to 64 MiB\n"
        "are somewhere else each time and are copied to where the graph expects them: by copies that are queued\n"
        "before the launch, by one kernel that is queued before it, and by one kernel in the graph that is told\n"
        "the addresses, as a list of parameters or as a buffer. Only the driver is measured, without Rondo. Times\n"
        "are microseconds, medians; 'added' is what comes on top of launching the graph alone.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

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
  bare_graph graph;
  bare_exec exec;
  bare_node node;
  unsigned blocks;
  cost costs[WAYS];
} copies_case;

typedef struct copies_bench {
  copies_settings settings;
  rondo_device *device;
  rondo_device_info info;
  rondo_kernel *kernel; /* for what stands in for a driver where there is no GPU */
  bare_device bare;
  bare_stream stream;
  uint64_t memory, destination, sources[2];
  void *host_memory; /* of the sources, if they are there */
  bare_graph work_graph;
  bare_exec work; /* the graph alone */
  range_copies told;
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
  b->told.count = count;
  for (uint32_t i = 0; i < count; i++)
    b->told.ranges[i] = (range_copy){.dst = b->destination + i * room,
                                     .src = b->sources[b->is_moved] + i * room + b->settings.unaligned,
                                     .bytes = bytes};
}

static int queue_copies(const copies_bench *b) {
  int code = 0;
  for (uint32_t i = 0; i < b->told.count && !code; i++)
    code = b->bare.driver.copy_async(b->told.ranges[i].dst, b->told.ranges[i].src, b->told.ranges[i].bytes, b->stream);
  return code ? code : b->bare.driver.graph_launch(b->work, b->stream);
}

/* Of as many blocks as the library's, which leaves processors to other streams. */
static int queue_kernel(copies_bench *b, const copies_case *of) {
  const unsigned ranges = (unsigned)b->told.count, most = MOST_QUEUED_BLOCKS / ranges + 1;
  void *list[] = {&b->told};
  const int code = b->bare.driver.launch_kernel(b->bare.kernel, of->blocks < most ? of->blocks : most, ranges, 1,
                                                THREADS, 1, 1, 0, b->stream, list, NULL);
  return code ? code : b->bare.driver.graph_launch(b->work, b->stream);
}

static int tell_kernel(copies_bench *b, const copies_case *of, bool is_buffer) {
  void *list[] = {&b->told};
  size_t bytes = sizeof b->told;
  void *extra[] = {(void *)1, &b->told, (void *)2, &bytes, NULL}; /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END */
  bare_kernel_params params = params_of(b, of->blocks, (unsigned)b->told.count, is_buffer ? NULL : list);
  if (is_buffer) params.extra = extra;
  const int code = b->bare.driver.exec_set_kernel(of->exec, of->node, &params);
  return code ? code : b->bare.driver.graph_launch(of->exec, b->stream);
}

static int do_way(copies_bench *b, const copies_case *of, int way) {
  if (way == LAUNCH) return b->bare.driver.graph_launch(b->work, b->stream);
  if (way == QUEUED) return queue_copies(b);
  return way == IN_FRONT ? queue_kernel(b, of) : tell_kernel(b, of, way == BUFFERED);
}

static int time_way(copies_bench *b, copies_case *of, uint32_t count, uint64_t bytes, int way) {
  int code = 0;
  for (int i = 0; i <= WARM_UPS && !code; i++) {
    move_inputs(b, count, bytes);
    const uint64_t begin = clock_ns();
    code = do_way(b, of, way);
    const uint64_t queued = clock_ns();
    if (!code) code = b->bare.driver.stream_synchronize(b->stream);
    if (i == WARM_UPS) cost_note(&of->costs[way], begin, queued, clock_ns());
  }
  return bare_check(code, "copying inputs and launching");
}

static bool is_measured(const copies_bench *b, size_t c, size_t s) {
  return sizes[s] <= b->settings.most && counts[c] * sizes[s] <= MOST_SUM;
}

static int measure_round(copies_bench *b) {
  for (size_t i = 0; i < COUNTS * SIZES; i++) {
    const size_t c = i / SIZES, s = i % SIZES;
    for (int way = 0; way < WAYS && is_measured(b, c, s); way++)
      if (time_way(b, &b->cases[c][s], counts[c], sizes[s], way) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static int measure(void *bench) {
  copies_bench *b = bench;
  const uint64_t end = clock_ns() + (uint64_t)(b->settings.seconds * 1e9);
  for (size_t round = 0; round < MOST_ROUNDS && (round < FEWEST_ROUNDS || clock_ns() < end); round++)
    if (measure_round(b) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < COUNTS * SIZES; i++) costs_summarize(b->cases[i / SIZES][i % SIZES].costs, WAYS);
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double added(const copies_case *of, int way, int time) {
  return of->costs[way].result[time].median - of->costs[LAUNCH].result[time].median;
}

/* The smallest size from which on queued copies are done sooner than the kernel's at each size; 0: there is none. */
static uint64_t crossing(const copies_bench *b, size_t c) {
  const int kernel = b->settings.host ? IN_FRONT : LISTED;
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
    json_end(out);
  }
  json_end(out);
}

static int show_json(const void *bench) {
  const copies_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_integer(&out, "unaligned", b->settings.unaligned);
  json_boolean(&out, "host", b->settings.host);
  json_begin_array(&out, "cases");
  for (size_t i = 0; i < COUNTS * SIZES; i++)
    if (is_measured(b, i / SIZES, i % SIZES)) write_case(b, i / SIZES, i % SIZES, &out);
  json_end(&out);
  json_begin_array(&out, "crossings");
  for (size_t c = 0; c < COUNTS; c++) {
    json_begin_object(&out, NULL);
    json_integer(&out, "inputs", counts[c]);
    json_integer(&out, "bytes", crossing(b, c));
    json_end(&out);
  }
  json_end(&out);
  return json_print(&out);
}

static void print_case(const copies_bench *b, size_t c, size_t s) {
  const copies_case *of = &b->cases[c][s];
  printf("%6" PRIu32 " %10" PRIu64, counts[c], sizes[s]);
  for (int time = 0; time < COST_TIMES; time++) {
    printf("   %9.3f", of->costs[LAUNCH].result[time].median);
    for (int way = QUEUED; way < WAYS; way++) printf(" %9.3f", added(of, way, time));
  }
  putchar('\n');
}

static int show_text(const void *bench) {
  const copies_bench *b = bench;
  tool_print_device("device  ", b->settings.device, &b->info);
  printf("Inputs copied in front of a graph, by the driver without Rondo; microseconds, medians\n\n%17s   %-49s   %s\n",
         "", "host", "until done");
  printf("%6s %10s", "inputs", "bytes");
  for (int time = 0; time < COST_TIMES; time++)
    printf("   %9s %9s %9s %9s %9s", "launch", "+queued", "+in front", "+list", "+buffer");
  putchar('\n');
  for (size_t i = 0; i < COUNTS * SIZES; i++)
    if (is_measured(b, i / SIZES, i % SIZES)) print_case(b, i / SIZES, i % SIZES);
  putchar('\n');
  for (size_t c = 0; c < COUNTS; c++)
    printf("%2" PRIu32 " inputs: queued copies are done sooner from %" PRIu64 " bytes on (0: never)\n", counts[c],
           crossing(b, c));
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

/* A kernel that copies nothing is what the graph does. */
static int build(const copies_bench *b, copies_case *of, uint32_t ranges, bare_graph *graph, bare_exec *exec) {
  const bare_driver *driver = &b->bare.driver;
  range_copies nothing = {0};
  void *list[] = {&nothing};
  const bare_kernel_params work = params_of(b, 1, 1, list);
  bare_kernel_params copies = params_of(b, of ? of->blocks : 1, ranges, list);
  bare_instantiate_params params = {0};
  bare_node node;
  int code = driver->graph_create(graph, 0);
  if (!code && of) code = driver->graph_add_kernel(&of->node, *graph, NULL, 0, &copies);
  if (!code) code = driver->graph_add_kernel(&node, *graph, of ? &of->node : NULL, of != NULL, &work);
  return code ? code : driver->instantiate(exec, *graph, &params);
}

static unsigned blocks_for(const copies_bench *b, uint64_t bytes) {
  const uint64_t blocks = (bytes / PIECE + THREADS) / THREADS;
  const uint64_t most = (uint64_t)b->info.processors * BLOCKS_A_PROCESSOR;
  return (unsigned)(blocks < most ? blocks : most);
}

static int make_cases(copies_bench *b) {
  int code = build(b, NULL, 0, &b->work_graph, &b->work);
  for (size_t i = 0; i < COUNTS * SIZES && !code; i++) {
    copies_case *of = &b->cases[i / SIZES][i % SIZES];
    if (!costs_create(of->costs, WAYS, MOST_ROUNDS)) return tool_fail_memory("the times");
    of->blocks = blocks_for(b, sizes[i % SIZES]);
    code = build(b, of, counts[i / SIZES], &of->graph, &of->exec);
  }
  return bare_check(code, "making graphs");
}

static uint64_t largest_sum(const copies_bench *b) {
  uint64_t most = 0;
  for (size_t i = 0; i < COUNTS * SIZES; i++) {
    const uint64_t sum = counts[i / SIZES] * ((sizes[i % SIZES] + 255) / 256 * 256);
    if (is_measured(b, i / SIZES, i % SIZES) && sum > most) most = sum;
  }
  return most + 256;
}

static int make_memory(copies_bench *b) {
  const uint64_t room = largest_sum(b);
  int code = b->bare.driver.stream_create(&b->stream, BARE_NON_BLOCKING);
  if (!code) code = b->bare.driver.mem_alloc_async(&b->memory, (b->settings.host ? 1 : 3) * room, b->stream);
  if (bare_check(code, "allocating inputs") != TOOL_OK) return TOOL_FAILURE;
  if (b->settings.host && rondo_host_malloc(b->device, 2 * room, &b->host_memory)) return tool_fail_status("--host");
  b->destination = b->memory;
  b->sources[0] = b->settings.host ? (uint64_t)(uintptr_t)b->host_memory : b->memory + room;
  b->sources[1] = b->sources[0] + room;
  return TOOL_OK;
}

static int prepare(void *bench) {
  copies_bench *b = bench;
  if (!bare_is_cuda(b->settings.device))
    return tool_fail(
        "--device: '%s' is no CUDA device: on others every input has a copy of its own, and there is nothing to "
        "compare",
        b->settings.device);
  if (rondo_device_open(b->settings.device, NULL, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  if (rondo_kernel_create(b->device, &kernel_options, &b->kernel)) return tool_fail_status("the kernel");
  if (bare_device_open(b->settings.device, &kernel_options, &b->bare) != TOOL_OK) return TOOL_FAILURE;
  return make_memory(b) == TOOL_OK ? make_cases(b) : TOOL_FAILURE;
}

static void free_case(const copies_bench *b, copies_case *of) {
  if (of->exec) (void)b->bare.driver.exec_destroy(of->exec);
  if (of->graph) (void)b->bare.driver.graph_destroy(of->graph);
  costs_destroy(of->costs, WAYS);
}

static int take_down(void *bench) {
  copies_bench *b = bench;
  const bare_driver *driver = &b->bare.driver;
  for (size_t i = 0; i < COUNTS * SIZES; i++) free_case(b, &b->cases[i / SIZES][i % SIZES]);
  if (b->work) (void)driver->exec_destroy(b->work);
  if (b->work_graph) (void)driver->graph_destroy(b->work_graph);
  if (b->memory) (void)driver->mem_free_async(b->memory, b->stream);
  if (b->stream) (void)driver->stream_synchronize(b->stream);
  if (b->stream) (void)driver->stream_destroy(b->stream);
  if (b->host_memory && rondo_host_free(b->device, b->host_memory)) tool_fail_status("the inputs");
  bare_device_close(&b->bare);
  rondo_kernel_destroy(b->kernel);
  return rondo_device_close(b->device) ? tool_fail_status("the device") : TOOL_OK;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_copies(int argc, char **argv) {
  static copies_bench b;
  b = (copies_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  return bench_steps_run(&steps, &b, b.settings.json);
}
