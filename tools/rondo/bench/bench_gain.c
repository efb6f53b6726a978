/* SPDX-License-Identifier: MIT
 * rondo bench gain (FW-8): the gain of recording for several numbers of kernels and elements, predicted and then
 * measured. Each case is recorded after its prediction. Then both ways are measured in alternation.
 */
#include <inttypes.h>
#include <math.h>

#include "bench/tool_benchmarks.h"
#include "common/tool.h"

enum { COUNTS = 5, SIZES = 5, MOST_ROUNDS = 1000, FEWEST_ROUNDS = 5, WARM_UPS = 20, PREDICTED_REPEATS = 201 };
static const uint32_t counts[COUNTS] = {1, 4, 16, 64, 256};
static const uint64_t sizes[SIZES] = {1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 24};
#define MOST_ELEMENTS (UINT64_C(1) << 24) /* elements in one CPU run */
#define BAR 0.25

typedef struct gain_case {
  uint32_t count;
  uint64_t size;
  rondo_gain predicted;
  cost eager, recorded;
} gain_case;

typedef struct gain_bench {
  bench_base base;
  rondo_costs costs;
  rondo_stream *stream;
  rondo_kernel *kernel;
  float *memory;
  gain_case cases[COUNTS * SIZES];
  size_t case_count;
} gain_bench;

/* Kernel ---------------------------------------------------------------------------------------------------------- */

static void scale_cpu(rondo_blocks blocks, void *const *args) {
  float *values = *(float *const *)args[0];
  const uint64_t count = *(const uint64_t *)args[1];
  const uint64_t share = (count + blocks.grid.x - 1) / blocks.grid.x;
  for (uint64_t block = blocks.first; block < blocks.last; block++)
    for (uint64_t i = block * share; i < (block + 1) * share && i < count; i++) values[i] = values[i] * 0.5f + 1;
}

static const rondo_kernel_options kernel_options = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "bench_scale", .cpu = scale_cpu,
    .cuda_source =
        "extern \"C\" __global__ void bench_scale(float *values, unsigned long long count) {\n"
        "  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;\n"
        "  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  for (; i < count; i += step) values[i] = values[i] * 0.5f + 1;\n"
        "}\n",
    .params = {RONDO_UPDATES, RONDO_SCALAR(uint64_t)}};

/* CPU: blocks of about 16 KiB. CUDA: blocks of 256 threads with up to 8 elements each. */
static rondo_grid grid_of(const gain_bench *b, uint64_t size) {
  const uint64_t share = b->base.info.cuda ? 2048 : 4096, blocks = (size + share - 1) / share;
  return (rondo_grid){.x = (uint32_t)blocks};
}

typedef struct gain_work {
  const gain_bench *bench;
  const gain_case *of;
} gain_work;

static rondo_status queue_work(rondo_stream *stream, void *user) {
  const gain_work *work = user;
  const gain_bench *b = work->bench;
  const rondo_grid grid = grid_of(b, work->of->size);
  for (uint32_t i = 0; i < work->of->count; i++)
    TOOL_TRY(rondo_launch(stream, b->kernel, grid, RONDO_ARGS(&b->memory, &work->of->size)));
  return RONDO_OK;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static rondo_status record(gain_work *work, rondo_exec **out) {
  rondo_stream *stream = work->bench->stream;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = stream};
  rondo_graph *graph = NULL;
  TOOL_TRY(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status queued = queue_work(stream, work);
  rondo_status status = rondo_capture_end(stream, &graph);
  if (!status) status = queued;
  if (!status) status = rondo_instantiate(graph, &options, out);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status ? status : destroyed;
}

static rondo_status queue_exec(rondo_stream *stream, void *exec) { return rondo_exec_launch(exec, stream); }

static rondo_status time_run(const gain_bench *b, rondo_stream_work work, void *user, cost *to) {
  COST_TIME(to, TOOL_TRY(work(b->stream, user)), TOOL_TRY(rondo_stream_synchronize(b->stream)));
  return RONDO_OK;
}

static rondo_status measure_turns(const gain_bench *b, gain_case *of, gain_work *work, rondo_exec *exec,
                                  double seconds) {
  rounds measured = rounds_begin(seconds, FEWEST_ROUNDS, MOST_ROUNDS);
  for (rounds r = {measured.end, 0, FEWEST_ROUNDS, WARM_UPS}; rounds_next(&r);)
    TOOL_TRY(time_run(b, queue_exec, exec, NULL));
  while (rounds_next(&measured)) {
    TOOL_TRY(time_run(b, queue_work, work, &of->eager));
    TOOL_TRY(time_run(b, queue_exec, exec, &of->recorded));
  }
  return RONDO_OK;
}

static rondo_status measure_case(const gain_bench *b, gain_case *of, double seconds) {
  gain_work work = {b, of};
  rondo_exec *exec = NULL;
  of->predicted.struct_size = sizeof of->predicted;
  TOOL_TRY(time_run(b, queue_work, &work, NULL));
  TOOL_TRY(rondo_gain_measure(b->stream, queue_work, &work, of->count * of->size < 1 << 20 ? PREDICTED_REPEATS : 0,
                              &of->predicted));
  TOOL_TRY(record(&work, &exec));
  const rondo_status status = measure_turns(b, of, &work, exec, seconds);
  rondo_exec_destroy(exec);
  costs_summarize(&of->eager, 1);
  costs_summarize(&of->recorded, 1);
  return status;
}

static int measure(void *bench) {
  gain_bench *b = bench;
  for (size_t i = 0; i < b->case_count; i++) {
    gain_case *of = &b->cases[i];
    tool_show_progress("%" PRIu32 " kernels of %" PRIu64 " elements", of->count, of->size);
    if (measure_case(b, of, b->base.seconds / (double)b->case_count)) return tool_fail_status("a run");
  }
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double saved(double eager, double recorded) { return eager > 0 ? 1 - recorded / eager : 0; }

static double measured_gain(const gain_case *of) {
  return bench_ratio(of->eager.result[COST_TOTAL].median, of->recorded.result[COST_TOTAL].median);
}

static double difference(const gain_case *of) { return bench_ratio(of->predicted.total_gain, measured_gain(of)) - 1; }

static double measured_saved(const gain_case *of) {
  return saved(of->eager.result[COST_HOST].median, of->recorded.result[COST_HOST].median);
}

static double predicted_saved(const gain_case *of) {
  return saved(of->predicted.host_us, of->predicted.recorded_host_us);
}

static size_t count_within(const gain_bench *b) {
  size_t count = 0;
  for (size_t i = 0; i < b->case_count; i++) count += fabs(difference(&b->cases[i])) <= BAR;
  return count;
}

static void write_costs(const rondo_costs *costs, json *out) {
  json_begin_object(out, "costs");
  json_real(out, "stream_host", costs->stream_host);
  json_real(out, "stream_host_kernel", costs->stream_host_kernel);
  json_real(out, "stream_latency", costs->stream_latency);
  json_real(out, "stream_kernel", costs->stream_kernel);
  json_real(out, "launch_host", costs->launch_host);
  json_real(out, "launch_host_node", costs->launch_host_node);
  json_real(out, "launch_host_cold", costs->launch_host_cold);
  json_real(out, "launch_latency", costs->launch_latency);
  json_real(out, "launch_kernel", costs->launch_kernel);
  json_real(out, "record", costs->record);
  json_real(out, "record_node", costs->record_node);
  json_end(out);
}

static void write_case(const gain_case *of, json *out) {
  json_begin_object(out, NULL);
  json_integer(out, "kernels", of->count);
  json_integer(out, "elements", of->size);
  cost_object_to_json(out, "eager", &of->eager);
  cost_object_to_json(out, "recorded", &of->recorded);
  json_begin_object(out, "predicted");
  json_real(out, "eager_host_us", of->predicted.host_us);
  json_real(out, "eager_device_us", of->predicted.device_us);
  json_real(out, "eager_total_us", of->predicted.total_us);
  json_real(out, "recorded_host_us", of->predicted.recorded_host_us);
  json_real(out, "recorded_total_us", of->predicted.recorded_total_us);
  json_real(out, "gain", of->predicted.total_gain);
  json_real(out, "host_saved", predicted_saved(of));
  json_integer(out, "runs_to_repay", of->predicted.runs_to_repay);
  json_boolean(out, "pays", rondo_gain_pays(&of->predicted, 0, 0));
  json_end(out);
  json_real(out, "gain", measured_gain(of));
  json_real(out, "host_saved", measured_saved(of));
  json_real(out, "difference", difference(of));
  json_end(out);
}

static void report(void *bench, json *out) {
  const gain_bench *b = bench;
  write_costs(&b->costs, out);
  json_begin_array(out, "cases");
  for (size_t i = 0; i < b->case_count; i++) write_case(&b->cases[i], out);
  json_end(out);
  json_integer(out, "within_25_percent", count_within(b));
}

/* Prepare and finish ---------------------------------------------------------------------------------------------- */

static int make_cases(gain_bench *b) {
  for (size_t s = 0; s < SIZES; s++) {
    for (size_t c = 0; c < COUNTS; c++) {
      if (!b->base.info.cuda && counts[c] * sizes[s] > MOST_ELEMENTS) continue;
      gain_case *of = &b->cases[b->case_count++];
      of->count = counts[c];
      of->size = sizes[s];
      if (costs_create(&of->eager, 1, MOST_ROUNDS) != TOOL_OK || costs_create(&of->recorded, 1, MOST_ROUNDS) != TOOL_OK)
        return TOOL_FAILURE;
    }
  }
  return TOOL_OK;
}

static rondo_status make_objects(gain_bench *b) {
  void *memory;
  TOOL_TRY(rondo_stream_create(b->base.device, NULL, &b->stream));
  TOOL_TRY(rondo_kernel_create(b->base.device, &kernel_options, &b->kernel));
  TOOL_TRY(rondo_malloc(b->base.device, sizes[SIZES - 1] * sizeof *b->memory, "elements", &memory));
  b->memory = memory;
  const rondo_fill zeros = {.dst = memory, .element_bytes = 4, .width = sizes[SIZES - 1]};
  TOOL_TRY(rondo_fill_async(b->stream, &zeros));
  TOOL_TRY(rondo_stream_synchronize(b->stream));
  return rondo_device_get_costs(b->base.device, &b->costs);
}

static int prepare(void *bench) {
  gain_bench *b = bench;
  return make_objects(b) ? tool_fail_status("the benchmark's kernel and memory") : make_cases(b);
}

static int finish(void *bench) {
  gain_bench *b = bench;
  for (size_t i = 0; i < b->case_count; i++) {
    costs_destroy(&b->cases[i].eager, 1);
    costs_destroy(&b->cases[i].recorded, 1);
  }
  const int result = rondo_stream_destroy(b->stream) ? tool_fail_status("the stream") : TOOL_OK;
  rondo_kernel_destroy(b->kernel);
  return b->base.device && rondo_free(b->base.device, b->memory) ? tool_fail_status("the memory") : result;
}

static const gain_bench defaults = {.base = {.device_name = "cpu", .seconds = 5}, .costs = {RONDO_COSTS_INIT}};

const benchmark bench_gain = {
    .name = "gain",
    .summary = "what recording gains, predicted and measured",
    .description =
        "Predicts what recording gains, from the times of eager runs and the cost of the device's launches. Then\n"
        "records and measures it, for lines of 1 to 256 kernels of 256 to 16 Mi elements each. The gain is\n"
        "the eager time divided by the recorded time, both until the work is done. host_saved is the share of the "
        "host's\n"
        "time that is saved; difference compares the predicted gain with the measured one. Times are microseconds,\n"
        "medians.",
    BENCH_STATE(defaults),
    .prepare = prepare,
    .measure = measure,
    .report = report,
    .finish = finish,
};
