/* SPDX-License-Identifier: MIT
 * Measuring what a device costs. Lines of empty kernels, of two lengths, run on a stream and as execs in alternation,
 * so that a slow moment affects all of them. The medians of the two lengths give a straight line: a base, and the cost
 * of each kernel.
 */
#include "exec/cost/device_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"
#include "exec/launch/exec_internal.h"

enum {
  ARGUMENTS = 4,
  LENGTHS = 2,
  RECORDINGS = 3,
  FEWEST_ROUNDS = 5,
  MOST_ROUNDS = 25,
  WARM_ROUNDS = 10 /* a CPU device tries its ways to run an exec in the first launches */
};
static const uint32_t lengths[LENGTHS] = {8, 96};
#define OTHER_BYTES ((size_t)4 << 20)
#define ROUNDS_END_NS UINT64_C(8000000)
#define GATE_NS UINT64_C(5000000)

/* The additional costs of moving inputs. A GPU, measured on an H200 (bench/results/2026-11-22-h200-copies.md): a launch
 * that was told other arguments takes the driver longer until it is done, however few, so that up to 2 MiB a copy is
 * done before one patched reader. A CPU, measured on two cores of a Xeon (bench/results/2026-11-21-patching.md, of 1 to
 * 16 readers): 0.005 a node until the work is done; copies of 4 to 256 KiB grow by 0.042 to 0.047 for each KiB. */
static const rondo_costs cpu_inputs = {
    .input_patched_node = 0.005, .input_copied_each = 0.06, .input_queued_each = 0.4, .input_copied_kib = 0.042};
static const rondo_costs gpu_inputs = {.input_patched = 3,
                                       .input_patched_node = 0.45,
                                       .input_copied = 2.1,
                                       .input_copied_each = 0.12,
                                       .input_queued_each = 8.5,
                                       .input_copied_kib = 0.0006};

#define COST(member) \
  { #member, offsetof(rondo_costs, member) }
static const struct {
  const char *name;
  size_t offset;
} fields[] = {COST(stream_host),        COST(stream_host_kernel),
              COST(stream_latency),     COST(stream_kernel),
              COST(launch_host),        COST(launch_host_node),
              COST(launch_host_cold),   COST(launch_latency),
              COST(launch_kernel),      COST(record),
              COST(record_node),        COST(input_patched),
              COST(input_patched_node), COST(input_copied),
              COST(input_copied_each),  COST(input_queued_each),
              COST(input_copied_kib)};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static double cost_of(const rondo_costs *costs, size_t field) {
  double cost;
  memcpy(&cost, (const char *)costs + fields[field].offset, sizeof cost);
  return cost;
}

/* Adds the costs of moving inputs, unless they were given. */
static void add_inputs(const rondo_device *device, rondo_costs *costs) {
  const rondo_costs *own = device->ops->copy_kernel != NULL ? &gpu_inputs : &cpu_inputs;
  for (size_t i = 0; i < FIELDS; i++)
    if (cost_of(costs, i) == 0)
      memcpy((char *)costs + fields[i].offset, (const char *)own + fields[i].offset, sizeof(double));
}

/* The slot --------------------------------------------------------------------------------------------------------- */

typedef enum costs_state { UNKNOWN, BEING_MEASURED, KNOWN } costs_state;

typedef struct costs_slot {
  rondo_allocator allocator;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  costs_state state;
  rondo_costs costs;
  rondo_gates gates;
} costs_slot;

static void release_slot(void *state) {
  costs_slot *slot = state;
  const rondo_allocator allocator = slot->allocator;
  rondo_gates_free(&slot->gates, &allocator);
  pthread_mutex_destroy(&slot->gates.lock);
  pthread_mutex_destroy(&slot->lock);
  pthread_cond_destroy(&slot->changed);
  rondo_release(&allocator, slot, 1, sizeof *slot);
}

static void init_slot(void *state, const rondo_allocator *allocator) {
  costs_slot *slot = state;
  slot->allocator = *allocator;
  pthread_mutex_init(&slot->lock, NULL);
  pthread_mutex_init(&slot->gates.lock, NULL);
  pthread_cond_init(&slot->changed, NULL);
}

static rondo_status slot_of(rondo_device *device, costs_slot **out) {
  static const rondo_state_kind kind = {sizeof(costs_slot), init_slot, release_slot};
  return rondo_device_state(device, &device->costs, &kind, out);
}

rondo_status rondo_costs_gates(rondo_device *device, rondo_gates **out) {
  costs_slot *slot;
  RONDO_TRY(slot_of(device, &slot));
  *out = &slot->gates;
  return RONDO_OK;
}

/* Samples ---------------------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double rondo_median(double *samples, size_t count) {
  if (count == 0) return 0;
  qsort(samples, count, sizeof *samples, compare);
  return (samples[(count - 1) / 2] + samples[count / 2]) / 2;
}

/* Of a length. */
typedef struct line_samples {
  double stream_device[MOST_ROUNDS], stream_beyond[MOST_ROUNDS]; /* beyond: what the whole has more than the larger of
                                                                    the host's and the device's time */
  double stream_host[MOST_ROUNDS];
  double launch_host[MOST_ROUNDS], launch_total[MOST_ROUNDS];
  double record_us;
} line_samples;

typedef struct laboratory {
  rondo_stream *stream;
  rondo_kernel *kernel; /* no user's, and not counted by the device */
  rondo_exec *execs[LENGTHS];
  size_t rounds;
  line_samples lines[LENGTHS];
  double cold[FEWEST_ROUNDS]; /* the host's time of a launch of the shorter line */
  unsigned char *other;       /* memory to fill the processor's caches with */
} laboratory;

static double microseconds(uint64_t begin, uint64_t end) { return (double)(end - begin) / 1e3; }

/* Lines ------------------------------------------------------------------------------------------------------------ */

/* Reads its arguments, as any kernel does. */
static void do_little(rondo_blocks blocks, void *const *args) {
  volatile size_t sum = blocks.first;
  for (size_t i = 0; i < ARGUMENTS; i++) sum += *(const size_t *)args[i];
  (void)sum;
}

static rondo_status make_kernel(rondo_device *device, rondo_kernel **out) {
  static const char ptx[] =
      ".version 6.3\n.target sm_52\n.address_size 64\n"
      ".visible .entry rondo_little(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{ ret; }\n";
  const rondo_kernel_options options = {
      RONDO_KERNEL_OPTIONS_INIT,
      .name = "rondo_little",
      .block_threads = 32,
      .cpu = do_little,
      .params = {RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t)},
      .cuda_image = ptx};
  RONDO_TRY(rondo_kernel_make(device, &device->allocator, &options, out));
  const rondo_status status =
      device->ops->kernel_prepare == NULL ? RONDO_OK : device->ops->kernel_prepare(device, *out);
  (*out)->cuda_image = NULL;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_kernel_release(*out);
  *out = NULL;
  return status;
}

/* A line to be queued: rondo_stream_work. */
typedef struct line_work {
  rondo_kernel *kernel;
  uint32_t length;
} line_work;

static rondo_status queue_line(rondo_stream *stream, void *user) {
  const line_work *line = user;
  for (uint32_t i = 0; i < line->length; i++) {
    const size_t number = i;
    RONDO_TRY(rondo_launch(stream, line->kernel, (rondo_grid){.x = 1}, RONDO_ARGS(&number, &number, &number, &number)));
  }
  return RONDO_OK;
}

/* The captures that measurements have open, on all devices. They do not keep other measurements from starting. */
static _Atomic uint32_t own_captures;

static rondo_status capture_work(const laboratory *lab, uint32_t length, rondo_graph **out) {
  RONDO_TRY(rondo_capture_begin(lab->stream, RONDO_CAPTURE_RELAXED));
  const rondo_status status = queue_line(lab->stream, &(line_work){lab->kernel, length});
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status ended = rondo_capture_end(lab->stream, out);
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

static rondo_status capture_line(const laboratory *lab, uint32_t length, rondo_graph **out) {
  atomic_fetch_add_explicit(&own_captures, 1, memory_order_acq_rel);
  const rondo_status status = capture_work(lab, length, out);
  atomic_fetch_sub_explicit(&own_captures, 1, memory_order_acq_rel);
  return status;
}

static rondo_status run_exec(const laboratory *lab, rondo_exec *exec, double *out_host, double *out_total) {
  return rondo_time_run(lab->stream, rondo_queue_launch, exec, out_host, out_total);
}

static rondo_status record_line(laboratory *lab, uint32_t length, rondo_exec **out) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = lab->stream};
  rondo_graph *graph = NULL;
  double host, total;
  rondo_status status = capture_line(lab, length, &graph);
  if (status == RONDO_OK) status = rondo_instantiate(graph, &options, out);
  if (status == RONDO_OK) status = run_exec(lab, *out, &host, &total);
  const rondo_status gone = rondo_graph_destroy(graph);
  return status == RONDO_OK ? gone : status;
}

/* The last one is kept. */
static rondo_status time_recording(laboratory *lab, size_t line) {
  double samples[RECORDINGS];
  for (size_t i = 0; i < RECORDINGS; i++) {
    rondo_exec_destroy(lab->execs[line]);
    lab->execs[line] = NULL;
    const uint64_t begin = rondo_clock_ns();
    RONDO_TRY(record_line(lab, lengths[line], &lab->execs[line]));
    samples[i] = microseconds(begin, rondo_clock_ns());
  }
  lab->lines[line].record_us = rondo_median(samples, RECORDINGS);
  return RONDO_OK;
}

/* The first of all makes more ready than itself. */
static rondo_status record_lines(laboratory *lab) {
  rondo_exec *first = NULL;
  const rondo_status status = record_line(lab, lengths[0], &first);
  rondo_exec_destroy(first);
  RONDO_TRY(status);
  for (size_t i = 0; i < LENGTHS; i++) RONDO_TRY(time_recording(lab, i));
  return RONDO_OK;
}

/* Rounds ----------------------------------------------------------------------------------------------------------- */

static rondo_status take_samples(laboratory *lab, size_t line, size_t round) {
  line_samples *samples = &lab->lines[line];
  line_work work = {lab->kernel, lengths[line]};
  rondo_gain metered = {0};
  double total;
  RONDO_TRY(rondo_time_run(lab->stream, queue_line, &work, &samples->stream_host[round], &total));
  RONDO_TRY(rondo_meter_run(lab->stream, queue_line, &work, GATE_NS, &metered));
  samples->stream_device[round] = metered.device_us;
  samples->stream_beyond[round] = fmax(0, total - fmax(metered.host_us, metered.device_us));
  return run_exec(lab, lab->execs[line], &samples->launch_host[round], &samples->launch_total[round]);
}

static rondo_status run_rounds(laboratory *lab) {
  for (size_t i = 0; i < WARM_ROUNDS; i++)
    for (size_t line = 0; line < LENGTHS; line++) RONDO_TRY(take_samples(lab, line, 0));
  const uint64_t end = rondo_clock_ns() + ROUNDS_END_NS;
  while (lab->rounds < FEWEST_ROUNDS || (lab->rounds < MOST_ROUNDS && rondo_clock_ns() < end)) {
    for (size_t line = 0; line < LENGTHS; line++) RONDO_TRY(take_samples(lab, line, lab->rounds));
    lab->rounds++;
  }
  return RONDO_OK;
}

/* Evicts the processor's caches. */
static void forget(laboratory *lab) {
  for (size_t i = 0; i < OTHER_BYTES; i += RONDO_CACHE_LINE) lab->other[i]++;
}

static rondo_status run_cold(laboratory *lab) {
  double total;
  for (size_t i = 0; i < FEWEST_ROUNDS; i++) {
    forget(lab);
    RONDO_TRY(run_exec(lab, lab->execs[0], &lab->cold[i], &total));
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* Fits a straight line through what two lengths cost. Neither the base nor the slope is negative. */
static void fit(double first, double second, double *out_base, double *out_each) {
  *out_each = fmax(0, (second - first) / (lengths[1] - lengths[0]));
  *out_base = fmax(0, first - lengths[0] * *out_each);
}

/* The same for the medians of two lists of samples. */
static void fit_medians(const laboratory *lab, double *first, double *second, double *out_base, double *out_each) {
  fit(rondo_median(first, lab->rounds), rondo_median(second, lab->rounds), out_base, out_each);
}

/* A line that the device ran while it was queued shows what the host takes of it: then a kernel of a stream is taken to
 * cost the device what one of an exec does, by whose code it runs on a CPU. Such lines are nearly as slow as the host,
 * others at most a third of it. */
static void correct_stream_kernel(const laboratory *lab, rondo_costs *inout) {
  if (rondo_meter_holds(lab->stream) || inout->stream_kernel < inout->stream_host_kernel / 2) return;
  inout->stream_kernel = fmin(inout->stream_kernel, inout->launch_kernel);
}

static void conclude(laboratory *lab, rondo_costs *out) {
  line_samples *a = &lab->lines[0], *b = &lab->lines[1];
  double unused;
  *out = (rondo_costs){.stream_latency = rondo_median(a->stream_beyond, lab->rounds)};
  fit_medians(lab, a->stream_device, b->stream_device, &unused, &out->stream_kernel);
  fit_medians(lab, a->launch_host, b->launch_host, &out->launch_host, &out->launch_host_node);
  fit_medians(lab, a->launch_total, b->launch_total, &out->launch_latency, &out->launch_kernel);
  fit_medians(lab, a->stream_host, b->stream_host, &out->stream_host, &out->stream_host_kernel);
  correct_stream_kernel(lab, out);
  const double hot = out->launch_host + lengths[0] * out->launch_host_node;
  out->launch_host_cold = fmax(0, rondo_median(lab->cold, FEWEST_ROUNDS) - hot);
  fit(a->record_us, b->record_us, &out->record, &out->record_node);
}

static rondo_status work_in(laboratory *lab, rondo_device *device, rondo_costs *out) {
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = "costs"};
  RONDO_TRY(rondo_stream_create(device, &options, &lab->stream));
  RONDO_TRY(make_kernel(device, &lab->kernel));
  RONDO_TRY(record_lines(lab));
  RONDO_TRY(run_rounds(lab));
  RONDO_TRY(rondo_allocate_items(&device->allocator, OTHER_BYTES, 1, &lab->other));
  RONDO_TRY(run_cold(lab));
  conclude(lab, out);
  return RONDO_OK;
}

/* `status` takes precedence over the failure of destroying the stream. */
static rondo_status leave(laboratory *lab, const rondo_allocator *allocator, rondo_status status) {
  rondo_saved_error error;
  rondo_error_save(&error);
  for (size_t i = 0; i < LENGTHS; i++) rondo_exec_destroy(lab->execs[i]);
  const rondo_status gone = rondo_stream_destroy(lab->stream);
  if (lab->kernel != NULL) rondo_kernel_release(lab->kernel);
  rondo_release(allocator, lab->other, OTHER_BYTES, 1);
  return status == RONDO_OK ? gone : rondo_error_raise(&error);
}

/* Measures in the capture mode that does not disturb a capture of another thread. */
static rondo_status measure(rondo_device *device, rondo_costs *out) {
  laboratory *lab;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *lab, &lab));
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) {
    status = leave(lab, &device->allocator, work_in(lab, device, out));
    rondo_status_ignore(rondo_capture_exchange_thread_mode(&mode), "it was the thread's mode before");
  }
  rondo_release(&device->allocator, lab, 1, sizeof *lab);
  return rondo_fail_context(status, "measuring what device '%s' costs", device->name);
}

/* Public calls ----------------------------------------------------------------------------------------------------- */

static rondo_status refuse_while_capturing(const char *call, const rondo_device *device) {
  const uint32_t own = atomic_load_explicit(&own_captures, memory_order_acquire);
  if (atomic_load_explicit(&rondo_capture_count, memory_order_acquire) <= own) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: the costs of device '%s' were not measured yet, and cannot be during a capture: call it "
                    "before, or set them with rondo_device_set_costs; the capture stays valid",
                    call, device->name);
}

/* Whether the caller is to measure. With the lock. */
static bool wait_or_begin(costs_slot *slot) {
  while (slot->state == BEING_MEASURED) pthread_cond_wait(&slot->changed, &slot->lock);
  if (slot->state == KNOWN) return false;
  slot->state = BEING_MEASURED;
  return true;
}

/* Costs that were given meanwhile stay. */
static void settle(costs_slot *slot, rondo_status status, const rondo_costs *costs) {
  pthread_mutex_lock(&slot->lock);
  if (slot->state == BEING_MEASURED) {
    slot->state = status == RONDO_OK ? KNOWN : UNKNOWN;
    if (status == RONDO_OK) slot->costs = *costs;
  }
  pthread_cond_broadcast(&slot->changed);
  pthread_mutex_unlock(&slot->lock);
}

static rondo_status find(const char *call, rondo_device *device, costs_slot *slot, rondo_costs *out) {
  pthread_mutex_lock(&slot->lock);
  const bool is_mine = wait_or_begin(slot);
  *out = slot->costs;
  pthread_mutex_unlock(&slot->lock);
  if (!is_mine) return RONDO_OK;
  rondo_status status = refuse_while_capturing(call, device);
  if (status == RONDO_OK) status = measure(device, out);
  if (status == RONDO_OK) add_inputs(device, out);
  settle(slot, status, out);
  return status;
}

void rondo_costs_known(rondo_device *device, rondo_costs *out) {
  costs_slot *slot = atomic_load_explicit(&device->costs.state, memory_order_acquire);
  *out = (rondo_costs){.struct_size = sizeof *out};
  if (slot != NULL) {
    pthread_mutex_lock(&slot->lock);
    if (slot->state == KNOWN) *out = slot->costs;
    pthread_mutex_unlock(&slot->lock);
  }
  add_inputs(device, out);
}

rondo_status rondo_device_get_costs(rondo_device *device, rondo_costs *out_costs) {
  const char *const call = "rondo_device_get_costs";
  rondo_costs costs;
  costs_slot *slot;
  RONDO_TRY(rondo_check_call(call, "the device", device));
  if (out_costs == NULL) return rondo_refuse_null(call, "out_costs");
  RONDO_TRY(rondo_versioned_check("rondo_costs", out_costs, sizeof costs));
  RONDO_TRY(slot_of(device, &slot));
  RONDO_TRY(find(call, device, slot, &costs));
  return rondo_versioned_write("rondo_costs", &costs, out_costs, sizeof costs);
}

static rondo_status check_costs(const rondo_costs *costs) {
  for (size_t i = 0; i < FIELDS; i++) {
    const double us = cost_of(costs, i);
    if (!isfinite(us) || us < 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "rondo_device_set_costs: %s is %g microseconds: give 0 or more", fields[i].name, us);
  }
  return RONDO_OK;
}

rondo_status rondo_device_set_costs(rondo_device *device, const rondo_costs *costs) {
  rondo_costs known;
  costs_slot *slot;
  RONDO_TRY(rondo_check_call("rondo_device_set_costs", "the device", device));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_costs", costs, &known));
  RONDO_TRY(check_costs(&known));
  RONDO_TRY(slot_of(device, &slot));
  add_inputs(device, &known);
  pthread_mutex_lock(&slot->lock);
  slot->costs = known;
  slot->state = costs != NULL ? KNOWN : UNKNOWN;
  pthread_cond_broadcast(&slot->changed);
  pthread_mutex_unlock(&slot->lock);
  return RONDO_OK;
}
