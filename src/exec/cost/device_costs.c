/* SPDX-License-Identifier: MIT
 * Measuring the costs of a device. Chains of empty kernels, of two lengths, run on a stream and as execs in
 * alternation, so that a slow moment affects all of them. A straight line through the medians of the two lengths gives
 * a base and the cost of each kernel.
 */
#include "exec/cost/device_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/numbers/real.h"
#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"
#include "exec/launch/exec_internal.h"

enum {
  ARGUMENTS = 4,
  LENGTHS = 2,
  RECORDINGS = 3,
  FEWEST_ROUNDS = 5,
  MOST_ROUNDS = 25,
  WARM_ROUNDS = 10 /* a CPU device tries its methods to run an exec in the first launches */
};
static const uint32_t lengths[LENGTHS] = {8, 96};
#define OTHER_BYTES ((size_t)4 << 20)
#define ROUNDS_END_NS UINT64_C(8000000)
#define GATE_NS UINT64_C(5000000)

/* The additional costs of moving inputs, in microseconds. GPU, measured on an H200
 * (bench/results/2026-11-22-h200-copies.md): a launch with changed arguments, however few, is done later, so that a
 * copy of up to 2 MiB is faster than patching one reader. CPU, measured on two cores of a Xeon
 * (bench/results/2026-11-21-patching.md, 1 to 16 readers): 0.005 for each patched node until the work is done; copies
 * of 4 to 256 KiB take 0.042 to 0.047 for each KiB. */
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

/* Of the chains of one length. */
typedef struct chain_samples {
  double stream_device[MOST_ROUNDS];
  double stream_beyond[MOST_ROUNDS]; /* the total time minus the larger of the host's and the device's time */
  double stream_host[MOST_ROUNDS];
  double launch_host[MOST_ROUNDS], launch_total[MOST_ROUNDS];
  double record_us;
} chain_samples;

typedef struct measurement {
  rondo_stream *stream;
  rondo_kernel *kernel; /* not counted by the device */
  rondo_exec *execs[LENGTHS];
  size_t rounds;
  chain_samples chains[LENGTHS];
  double cold[FEWEST_ROUNDS]; /* the host's time for a launch of the shorter chain */
  unsigned char *other;       /* memory that fills the processor's caches */
} measurement;

static double microseconds(uint64_t begin, uint64_t end) { return (double)(end - begin) / 1e3; }

/* Chains ----------------------------------------------------------------------------------------------------------- */

/* A kernel that only reads its arguments. */
static void run_empty(rondo_blocks blocks, void *const *args) {
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
      .cpu = run_empty,
      .params = {RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t)},
      .cuda_image = ptx};
  return rondo_device_make_kernel(device, &options, out);
}

/* User data of enqueue_chain, which is a rondo_stream_work. */
typedef struct chain_work {
  rondo_kernel *kernel;
  uint32_t length;
} chain_work;

static rondo_status enqueue_chain(rondo_stream *stream, void *user) {
  const chain_work *chain = user;
  for (uint32_t i = 0; i < chain->length; i++) {
    const size_t number = i;
    RONDO_TRY(
        rondo_launch(stream, chain->kernel, (rondo_grid){.x = 1}, RONDO_ARGS(&number, &number, &number, &number)));
  }
  return RONDO_OK;
}

/* The number of captures that measurements have begun, on all devices. Other measurements can start during these. */
static _Atomic uint32_t own_captures;

static rondo_status capture_work(const measurement *m, uint32_t length, rondo_graph **out) {
  RONDO_TRY(rondo_capture_begin(m->stream, RONDO_CAPTURE_RELAXED));
  const rondo_status status = enqueue_chain(m->stream, &(chain_work){m->kernel, length});
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status ended = rondo_capture_end(m->stream, out);
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

static rondo_status capture_chain(const measurement *m, uint32_t length, rondo_graph **out) {
  atomic_fetch_add_explicit(&own_captures, 1, memory_order_acq_rel);
  const rondo_status status = capture_work(m, length, out);
  atomic_fetch_sub_explicit(&own_captures, 1, memory_order_acq_rel);
  return status;
}

static rondo_status run_exec(const measurement *m, rondo_exec *exec, double *out_host, double *out_total) {
  return rondo_time_run(m->stream, rondo_queue_launch, exec, out_host, out_total);
}

static rondo_status record_chain(measurement *m, uint32_t length, rondo_exec **out) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = m->stream};
  rondo_graph *graph = NULL;
  double host, total;
  rondo_status status = capture_chain(m, length, &graph);
  if (status == RONDO_OK) status = rondo_instantiate(graph, &options, out);
  if (status == RONDO_OK) status = run_exec(m, *out, &host, &total);
  const rondo_status gone = rondo_graph_destroy(graph);
  return status == RONDO_OK ? gone : status;
}

/* Records the chain several times and keeps the last exec. */
static rondo_status time_recording(measurement *m, size_t chain) {
  double samples[RECORDINGS];
  for (size_t i = 0; i < RECORDINGS; i++) {
    rondo_exec_destroy(m->execs[chain]);
    m->execs[chain] = NULL;
    const uint64_t begin = rondo_clock_ns();
    RONDO_TRY(record_chain(m, lengths[chain], &m->execs[chain]));
    samples[i] = microseconds(begin, rondo_clock_ns());
  }
  m->chains[chain].record_us = rondo_median(samples, RECORDINGS);
  return RONDO_OK;
}

/* The first recording of all is slower, and is not measured. */
static rondo_status record_chains(measurement *m) {
  rondo_exec *first = NULL;
  const rondo_status status = record_chain(m, lengths[0], &first);
  rondo_exec_destroy(first);
  RONDO_TRY(status);
  for (size_t i = 0; i < LENGTHS; i++) RONDO_TRY(time_recording(m, i));
  return RONDO_OK;
}

/* Rounds ----------------------------------------------------------------------------------------------------------- */

static rondo_status take_samples(measurement *m, size_t chain, size_t round) {
  chain_samples *samples = &m->chains[chain];
  chain_work work = {m->kernel, lengths[chain]};
  rondo_gain metered = {0};
  double total;
  RONDO_TRY(rondo_time_run(m->stream, enqueue_chain, &work, &samples->stream_host[round], &total));
  RONDO_TRY(rondo_meter_run(m->stream, enqueue_chain, &work, GATE_NS, &metered));
  samples->stream_device[round] = metered.device_us;
  samples->stream_beyond[round] = rondo_fmax(0, total - rondo_fmax(metered.host_us, metered.device_us));
  return run_exec(m, m->execs[chain], &samples->launch_host[round], &samples->launch_total[round]);
}

static rondo_status run_rounds(measurement *m) {
  for (size_t i = 0; i < WARM_ROUNDS; i++)
    for (size_t chain = 0; chain < LENGTHS; chain++) RONDO_TRY(take_samples(m, chain, 0));
  const uint64_t end = rondo_clock_ns() + ROUNDS_END_NS;
  while (m->rounds < FEWEST_ROUNDS || (m->rounds < MOST_ROUNDS && rondo_clock_ns() < end)) {
    for (size_t chain = 0; chain < LENGTHS; chain++) RONDO_TRY(take_samples(m, chain, m->rounds));
    m->rounds++;
  }
  return RONDO_OK;
}

static void evict_caches(measurement *m) {
  for (size_t i = 0; i < OTHER_BYTES; i += RONDO_CACHE_LINE) m->other[i]++;
}

static rondo_status run_cold(measurement *m) {
  double total;
  for (size_t i = 0; i < FEWEST_ROUNDS; i++) {
    evict_caches(m);
    RONDO_TRY(run_exec(m, m->execs[0], &m->cold[i], &total));
  }
  return RONDO_OK;
}

/* All costs -------------------------------------------------------------------------------------------------------- */

/* Fits a straight line through what two lengths cost. Neither the base nor the slope is negative. */
static void fit(double first, double second, double *out_base, double *out_each) {
  *out_each = rondo_fmax(0, (second - first) / (lengths[1] - lengths[0]));
  *out_base = rondo_fmax(0, first - lengths[0] * *out_each);
}

/* The same for the medians of two lists of samples. */
static void fit_medians(const measurement *m, double *first, double *second, double *out_base, double *out_each) {
  fit(rondo_median(first, m->rounds), rondo_median(second, m->rounds), out_base, out_each);
}

/* If the device ran the chain while the host enqueued it, the device's time is that of the host. Then a kernel on a
 * stream is assumed to cost the device as much as one in an exec, which runs with the same code on a CPU. The time of
 * such chains is nearly that of the host; other chains take at most a third of it. */
static void correct_stream_kernel(const measurement *m, rondo_costs *inout) {
  if (rondo_meter_holds(m->stream) || inout->stream_kernel < inout->stream_host_kernel / 2) return;
  inout->stream_kernel = rondo_fmin(inout->stream_kernel, inout->launch_kernel);
}

static void conclude(measurement *m, rondo_costs *out) {
  chain_samples *a = &m->chains[0], *b = &m->chains[1];
  double unused;
  *out = (rondo_costs){.stream_latency = rondo_median(a->stream_beyond, m->rounds)};
  fit_medians(m, a->stream_device, b->stream_device, &unused, &out->stream_kernel);
  fit_medians(m, a->launch_host, b->launch_host, &out->launch_host, &out->launch_host_node);
  fit_medians(m, a->launch_total, b->launch_total, &out->launch_latency, &out->launch_kernel);
  fit_medians(m, a->stream_host, b->stream_host, &out->stream_host, &out->stream_host_kernel);
  correct_stream_kernel(m, out);
  const double hot = out->launch_host + lengths[0] * out->launch_host_node;
  out->launch_host_cold = rondo_fmax(0, rondo_median(m->cold, FEWEST_ROUNDS) - hot);
  fit(a->record_us, b->record_us, &out->record, &out->record_node);
}

static rondo_status measure_all(measurement *m, rondo_device *device, rondo_costs *out) {
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = "costs"};
  RONDO_TRY(rondo_stream_create(device, &options, &m->stream));
  RONDO_TRY(make_kernel(device, &m->kernel));
  RONDO_TRY(record_chains(m));
  RONDO_TRY(run_rounds(m));
  RONDO_TRY(rondo_allocate_items(&device->allocator, OTHER_BYTES, 1, &m->other));
  RONDO_TRY(run_cold(m));
  conclude(m, out);
  return RONDO_OK;
}

/* `status` takes precedence over the failure of destroying the stream. */
static rondo_status finish(measurement *m, const rondo_allocator *allocator, rondo_status status) {
  rondo_saved_error error;
  rondo_error_save(&error);
  for (size_t i = 0; i < LENGTHS; i++) rondo_exec_destroy(m->execs[i]);
  const rondo_status gone = rondo_stream_destroy(m->stream);
  if (m->kernel != NULL) rondo_kernel_release(m->kernel);
  rondo_release(allocator, m->other, OTHER_BYTES, 1);
  return status == RONDO_OK ? gone : rondo_error_raise(&error);
}

/* Measures in the capture mode that does not disturb a capture of another thread. */
static rondo_status measure(rondo_device *device, rondo_costs *out) {
  measurement *m;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *m, &m));
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) {
    status = finish(m, &device->allocator, measure_all(m, device, out));
    rondo_status_ignore(rondo_capture_exchange_thread_mode(&mode), "it was the thread's mode before");
  }
  rondo_release(&device->allocator, m, 1, sizeof *m);
  return rondo_fail_context(status, "measuring the costs of device '%s'", device->name);
}

/* Public calls ----------------------------------------------------------------------------------------------------- */

static rondo_status refuse_while_capturing(const char *call, const rondo_device *device) {
  const uint32_t own = atomic_load_explicit(&own_captures, memory_order_acquire);
  if (atomic_load_explicit(&rondo_capture_count, memory_order_acquire) <= own) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: the costs of device '%s' were not measured yet, and cannot be measured during a capture: call "
                    "this before the capture, or set the costs with rondo_device_set_costs; the capture stays valid",
                    call, device->name);
}

/* Whether the caller must measure. With the lock. */
static bool wait_or_begin(costs_slot *slot) {
  while (slot->state == BEING_MEASURED) pthread_cond_wait(&slot->changed, &slot->lock);
  if (slot->state == KNOWN) return false;
  slot->state = BEING_MEASURED;
  return true;
}

/* Ends a measurement. Costs that were set in the meantime stay. */
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
