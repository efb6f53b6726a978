/* SPDX-License-Identifier: MIT
 * rondo bench memory (GM-9, GM-13): how many bytes a graph's memory holds, and what instantiating and launching it
 * cost. Addresses are chosen by Rondo, with three methods, and, on a CUDA device, by the driver's own memory nodes.
 */
#include "bench/bare_driver.h"
#include "bench/memory_work.h"
#include "bench/tool_benchmarks.h"
#include "common/tool.h"

enum { DRIVER = MEMORY_RELOCATED + 1, METHODS };
static const char *const method_names[METHODS] = {
    [MEMORY_ONLINE] = "online", [MEMORY_PROFILED] = "profiled", [MEMORY_RELOCATED] = "relocated", [DRIVER] = "driver"};

typedef struct method_result {
  bool is_measured;
  uint64_t bytes;
  summary instantiate, first, again, alternating;
  double profile_us;
  uint64_t remaps, moves;
} method_result;

typedef struct memory_bench {
  bench_base base;
  buffer_list list;
  memory_work work;
  method_result methods[METHODS];
} memory_bench;

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int measure_method(memory_bench *b, int method) {
  memory_times times;
  tool_show_progress("%s", method_names[method]);
  int result = memory_times_create(&times);
  if (result == TOOL_OK)
    result = method == DRIVER ? memory_measure_bare(b->base.device_name, &b->work, &times)
                              : memory_measure_rondo(b->base.device, &b->work, (memory_placing)method, &times);
  b->methods[method] = (method_result){.is_measured = true,
                                       .bytes = times.bytes,
                                       .instantiate = samples_summarize(&times.instantiate),
                                       .first = samples_summarize(&times.first),
                                       .again = samples_summarize(&times.again),
                                       .alternating = samples_summarize(&times.alternating),
                                       .profile_us = times.profile_us,
                                       .remaps = times.remaps,
                                       .moves = times.moves};
  memory_times_destroy(&times);
  return result;
}

static int measure(void *bench) {
  memory_bench *b = bench;
  const int count = bare_is_cuda(b->base.device_name) ? METHODS : DRIVER;
  int result = TOOL_OK;
  for (int method = 0; method < count && result == TOOL_OK; method++) result = measure_method(b, method);
  return result;
}

/* Results --------------------------------------------------------------------------------------------------------- */

/* Rounded up to the device's page size, because a device maps whole pages. */
static uint64_t page_bound(const memory_bench *b) {
  return (b->work.bound + b->base.info.page_bytes - 1) / b->base.info.page_bytes * b->base.info.page_bytes;
}

static double ratio_of(const memory_bench *b, const method_result *method) {
  return page_bound(b) > 0 ? (double)method->bytes / (double)page_bound(b) : 0;
}

static void write_method(const memory_bench *b, int method, json *out) {
  const method_result *result = &b->methods[method];
  json_begin_object(out, NULL);
  json_text(out, "way", method_names[method]);
  json_integer(out, "bytes", result->bytes);
  json_real(out, "ratio", ratio_of(b, result));
  json_summary(out, "instantiate_us", result->instantiate);
  json_summary(out, "first_us", result->first);
  json_summary(out, "again_us", result->again);
  json_summary(out, "alternating_us", result->alternating);
  if (method != DRIVER) json_real(out, "profile_us", result->profile_us);
  if (method != DRIVER) json_integer(out, "remaps", result->remaps);
  if (method != DRIVER) json_integer(out, "alternating_remaps", result->moves);
  json_end(out);
}

static void report(void *bench, json *out) {
  const memory_bench *b = bench;
  json_text(out, "file", b->base.operand);
  json_integer(out, "buffers", b->list.count);
  json_integer(out, "bound", b->work.bound);
  json_integer(out, "page_bound", page_bound(b));
  json_begin_array(out, "ways");
  for (int method = 0; method < METHODS; method++)
    if (b->methods[method].is_measured) write_method(b, method, out);
  json_end(out);
}

/* Prepare and finish ---------------------------------------------------------------------------------------------- */

static int prepare(void *bench) {
  memory_bench *b = bench;
  if (buffer_list_read(b->base.operand, &b->list) != TOOL_OK) return TOOL_FAILURE;
  return memory_work_create(file_display_name(b->base.operand), &b->list, &b->work);
}

static int finish(void *bench) {
  memory_bench *b = bench;
  memory_work_destroy(&b->work);
  buffer_list_release(&b->list);
  return TOOL_OK;
}

static const memory_bench defaults = {.base = {.device_name = "cpu"}};

const benchmark bench_memory = {
    .name = "memory",
    .summary = "memory inside a graph: the bytes it holds, what launches cost",
    .description =
        "Makes a graph of allocs and frees in the order of the buffers' lifetimes, each written by a kernel.\n"
        "Measures the bytes that the graph holds, and what it costs the host to instantiate it, to launch it for\n"
        "the first time, again, and on two streams alternately. The methods (JSON: ways) are: online (addresses\n"
        "are given as nodes are made), profiled (recorded again with the profile of the first graph), relocated\n"
        "(placed when instantiated) and, on a CUDA device, driver: the same captured without Rondo, as the driver's\n"
        "own memory nodes.\n\n"
        "The bound is the maximum number of live bytes. Times are microseconds, medians; remaps counts how often a\n"
        "round's later launches mapped memory again.",
    .operand = "FILE",
    .operand_help = "CSV whose first line names the columns id,lower,upper,size; '-' is standard input",
    BENCH_STATE(defaults),
    .prepare = prepare,
    .measure = measure,
    .report = report,
    .finish = finish,
};
