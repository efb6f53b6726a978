/* SPDX-License-Identifier: MIT
 * The gain of recording: predicting, measuring and describing it, and deciding by it. Owns nothing.
 */
#include "exec/cost/recording_gain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/numbers/real.h"
#include "base/versioned_struct.h"
#include "exec/capture/capture_internal.h"
#include "exec/cost/device_costs.h"

enum { MOST_REPEATS = 1000, CHOSEN_REPEATS = 25 };
#define CHOSEN_NS 10e6 /* time of each kind of run if the caller leaves the number of repeats open */
#define LEAST_GAIN 1.1
#define EXPECTED_RUNS 1000
#define MOST_GATE_NS UINT64_C(20000000)
#define MOST_RUNS 1e18 /* more than this is never */

/* Predicting ------------------------------------------------------------------------------------------------------- */

static double saved_us(const rondo_gain *gain) {
  return rondo_fmax(0, rondo_fmax(gain->total_us - gain->recorded_total_us, gain->host_us - gain->recorded_host_us));
}

/* The max that recording can save of the total: the host's time, and the additional costs of a stream and its kernels.
 * If the rest is more than the measured device time, the runs differed. */
static double most_saved_us(const rondo_costs *costs, const rondo_gain *gain) {
  return gain->host_us + costs->stream_latency +
         (double)gain->works * rondo_fmax(0, costs->stream_kernel - costs->launch_kernel);
}

static void predict_recorded(const rondo_costs *costs, rondo_gain *gain) {
  const double works = gain->works;
  const double beyond = rondo_fmax(0, gain->host_us - costs->stream_host - works * costs->stream_host_kernel);
  gain->recorded_host_us =
      costs->launch_host + works * costs->launch_host_node + rondo_fmin(costs->launch_host_cold, beyond);
  const double predicted = costs->launch_latency + works * costs->launch_kernel +
                           rondo_fmax(0, gain->device_us - works * costs->stream_kernel);
  const double least = gain->device_us > 0 ? gain->total_us - most_saved_us(costs, gain) : 0;
  gain->recorded_total_us = rondo_fmax(predicted, least);
}

static void conclude(const rondo_costs *costs, rondo_gain *gain) {
  const double saved = saved_us(gain);
  gain->record_us = costs->record + gain->works * costs->record_node;
  gain->host_gain = gain->recorded_host_us > 0 ? gain->host_us / gain->recorded_host_us : 0;
  gain->total_gain = gain->recorded_total_us > 0 ? gain->total_us / gain->recorded_total_us : 0;
  const double runs = saved > 0 ? gain->record_us / saved : INFINITY;
  gain->runs_to_repay = runs < MOST_RUNS ? rondo_ceil(rondo_fmax(1, runs)) : 0;
}

rondo_status rondo_gain_estimate(const rondo_costs *costs, rondo_gain *inout_gain) {
  const char *const call = "rondo_gain_estimate";
  rondo_costs known;
  rondo_gain gain;
  RONDO_TRY(rondo_require(call, "costs", costs));
  RONDO_TRY(rondo_require(call, "inout_gain", inout_gain));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_costs", costs, &known));
  RONDO_TRY(rondo_versioned_read("rondo_gain", inout_gain, &gain, sizeof gain));
  if (gain.total_us <= 0) gain.total_us = known.stream_latency + rondo_fmax(gain.host_us, gain.device_us);
  if (!gain.is_measured) predict_recorded(&known, &gain);
  conclude(&known, &gain);
  return rondo_versioned_write("rondo_gain", &gain, inout_gain, sizeof gain);
}

/* Deciding --------------------------------------------------------------------------------------------------------- */

static double least_of(rondo_gain_bar bar) { return bar.least == 0 ? LEAST_GAIN : bar.least; }
static uint64_t runs_of(rondo_gain_bar bar) { return bar.runs == 0 ? EXPECTED_RUNS : bar.runs; }

/* The gain, where time that the host saves counts as total time. */
static double counted_gain(const rondo_gain *gain) {
  const double left = gain->total_us - saved_us(gain);
  return left > 0 ? gain->total_us / left : INFINITY;
}

bool rondo_gain_pays(const rondo_gain *gain, double least, uint64_t runs) {
  const rondo_gain_bar bar = {.least = least, .runs = runs};
  if (gain == NULL || gain->runs_to_repay == 0) return false;
  return counted_gain(gain) >= least_of(bar) && gain->runs_to_repay <= runs_of(bar);
}

rondo_status rondo_gain_bar_check(const char *call, rondo_gain_bar bar) {
  if (bar.least == 0 || (isfinite(bar.least) && bar.least >= 1)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: least_gain is %g: pass at least 1, or 0 for the default, %g", call, bar.least, LEAST_GAIN);
}

rondo_status rondo_record_policy_check(const char *call, rondo_record_policy policy) {
  if ((unsigned)policy <= RONDO_RECORD_AUTO) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: %u is not a record policy: use a value of rondo_record_policy", call, (unsigned)policy);
}

/* Describing ------------------------------------------------------------------------------------------------------- */

void rondo_gain_explain(const rondo_gain *gain, rondo_gain_bar bar, char *buffer, size_t capacity) {
  const bool is_slow = counted_gain(gain) < least_of(bar);
  const int length =
      snprintf(buffer, capacity,
               "recording it gains too little: %" PRIu32
               " kernels and copies take %.1f us, %.1f us of it the host's, and %s "
               "%.1f us and %.1f us recorded, %.2f times as fast",
               gain->works, gain->total_us, gain->host_us, gain->is_measured ? "took" : "are predicted to take",
               gain->recorded_total_us, gain->recorded_host_us, counted_gain(gain));
  if (length < 0 || (size_t)length >= capacity) return;
  char *const rest = buffer + length;
  const size_t left = capacity - (size_t)length;
  if (is_slow)
    (void)snprintf(
        rest, left,
        ", but least_gain is %.2f: record more work at once (a whole step), merge or enlarge its kernels, or "
        "use RONDO_RECORD_ALWAYS",
        least_of(bar));
  else
    (void)snprintf(rest, left,
                   ", which repays the %.0f us of recording after %" PRIu64 " runs, but %" PRIu64
                   " are expected: raise their number, or use RONDO_RECORD_ALWAYS",
                   gain->record_us, gain->runs_to_repay, runs_of(bar));
}

void rondo_gain_describe(const rondo_gain *gain, rondo_document *out) {
  const bool is_repaid = gain->runs_to_repay != 0;
  rondo_document_say(out, gain->is_measured ? "measured:" : "predicted:");
  rondo_document_count(out, "works", gain->works, NULL);
  rondo_document_real(out, "host_us", gain->host_us, 1, " host % us");
  rondo_document_real(out, "device_us", gain->device_us, 1, NULL);
  rondo_document_real(out, "total_us", gain->total_us, 1, "until done % us");
  rondo_document_real(out, "recorded_host_us", gain->recorded_host_us, 1, "; recorded: host % us");
  rondo_document_real(out, "recorded_total_us", gain->recorded_total_us, 1, "until done % us");
  rondo_document_real(out, "record_us", gain->record_us, 0, is_repaid ? "; recording takes % us" : NULL);
  rondo_document_real(out, "host_gain", gain->host_gain, 2, "; host % times as fast");
  rondo_document_real(out, "total_gain", gain->total_gain, 2, "until done % times as fast");
  rondo_document_count(out, "runs_to_repay", gain->runs_to_repay,
                       is_repaid ? "; repaid after % run(s)" : "; recording is never repaid");
  rondo_document_flag(out, "is_measured", gain->is_measured, NULL, NULL);
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

typedef struct measurement {
  rondo_stream *stream;
  rondo_stream_work work;
  void *user;
  rondo_exec *exec;              /* NULL: recorded runs are predicted */
  uint32_t repeats;              /* 0: the first run sets it to as many as fit */
  double *host, *device, *total; /* `repeats` samples each, in one array */
} measurement;

/* Times runs, and waits for each. */
static rondo_status time_runs(const measurement *m, rondo_stream_work work, void *user, double *out_host,
                              double *out_total) {
  for (uint32_t i = 0; i < m->repeats; i++) RONDO_TRY(rondo_time_run(m->stream, work, user, &m->host[i], &m->total[i]));
  *out_host = rondo_median(m->host, m->repeats);
  *out_total = rondo_median(m->total, m->repeats);
  return RONDO_OK;
}

/* The gate is closed for longer than the host needs to enqueue the work, but not for long. */
static uint64_t gate_ns(const rondo_gain *gain) {
  const uint64_t twice = (uint64_t)(2e3 * gain->host_us) + 200000;
  return twice < MOST_GATE_NS ? twice : MOST_GATE_NS;
}

static rondo_status meter_run(const measurement *m, rondo_gain *gain, double *out_device) {
  rondo_gain metered = {0};
  const rondo_status status = rondo_meter_run(m->stream, m->work, m->user, gate_ns(gain), &metered);
  gain->works = metered.works;
  *out_device = metered.device_us;
  return status;
}

/* A warm-up run, which is not counted. */
static rondo_status run_first(measurement *m) {
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(m->work(m->stream, m->user));
  RONDO_TRY(rondo_stream_synchronize(m->stream));
  const double repeats = CHOSEN_NS / (double)(rondo_clock_ns() - begin + 1);
  if (m->repeats == 0) m->repeats = (uint32_t)rondo_fmin(CHOSEN_REPEATS, rondo_fmax(1, repeats));
  return RONDO_OK;
}

static rondo_status take_samples(measurement *m, rondo_gain *gain) {
  RONDO_TRY(run_first(m));
  RONDO_TRY(time_runs(m, m->work, m->user, &gain->host_us, &gain->total_us));
  for (uint32_t i = 0; i < m->repeats; i++) RONDO_TRY(meter_run(m, gain, &m->device[i]));
  gain->device_us = rondo_fmin(rondo_median(m->device, m->repeats), gain->total_us);
  if (m->exec == NULL) return rondo_stream_synchronize(m->stream);
  gain->is_measured = true;
  return time_runs(m, rondo_queue_launch, m->exec, &gain->recorded_host_us, &gain->recorded_total_us);
}

static rondo_status take(measurement *m, rondo_gain *out) {
  const rondo_allocator *allocator = &m->stream->device->allocator;
  rondo_costs costs = {.struct_size = sizeof costs};
  double *samples;
  RONDO_TRY(rondo_device_get_costs(m->stream->device, &costs));
  const size_t capacity = m->repeats == 0 ? CHOSEN_REPEATS : m->repeats;
  RONDO_TRY(rondo_allocate_items(allocator, 3 * capacity, sizeof *samples, &samples));
  m->host = samples;
  m->device = samples + capacity;
  m->total = samples + 2 * capacity;
  *out = (rondo_gain){.struct_size = sizeof *out};
  const rondo_status status = take_samples(m, out);
  rondo_release(allocator, samples, 3 * capacity, sizeof *samples);
  return status == RONDO_OK ? rondo_gain_estimate(&costs, out) : status;
}

rondo_status rondo_gain_check(const char *call, rondo_stream *stream, uint32_t repeats) {
  if (repeats > MOST_REPEATS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %" PRIu32 " repeats: pass at most %d",
                      call, repeats, MOST_REPEATS);
  if (rondo_stream_find_capture(stream) != NULL)
    return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                      "%s: %s captures: call it before the capture begins or after its end; the capture stays valid",
                      call, stream->label);
  return rondo_capture_refuse_stray(stream, call);
}

rondo_status rondo_gain_take(const char *call, rondo_stream *stream, rondo_stream_work work, void *user,
                             rondo_exec *exec, uint32_t repeats, rondo_gain *out) {
  measurement m = {.stream = stream, .work = work, .user = user, .exec = exec, .repeats = repeats};
  RONDO_TRY(rondo_gain_check(call, stream, repeats));
  return take(&m, out);
}

rondo_status rondo_gain_measure(rondo_stream *stream, rondo_stream_work work, void *user, uint32_t repeats,
                                rondo_gain *out_gain) {
  const char *const call = "rondo_gain_measure";
  rondo_gain gain;
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  RONDO_TRY(rondo_require(call, "the work", (const void *)(uintptr_t)work));
  RONDO_TRY(rondo_require(call, "out_gain", out_gain));
  RONDO_TRY(rondo_versioned_check("rondo_gain", out_gain, sizeof gain));
  const uint64_t before = rondo_error_number();
  const rondo_status status = rondo_gain_take(call, stream, work, user, NULL, repeats, &gain);
  RONDO_TRY(rondo_fail_callback(status, before, "%s: the work", call));
  return rondo_versioned_write("rondo_gain", &gain, out_gain, sizeof gain);
}
