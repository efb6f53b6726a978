/* SPDX-License-Identifier: MIT
 * See meter.h. A gate belongs to one meter at a time, until the gate's function has returned.
 */
#include "exec/cost/meter.h"

#include <assert.h>

#include "base/clock.h"
#include "base/thread.h"
#include "exec/capture/capture_internal.h"
#include "exec/cost/device_costs.h"

struct rondo_gate {
  rondo_gate *next; /* in the device's list */
  _Atomic uint32_t is_open;
  atomic_bool is_taken;
  uint64_t most_ns, thread;
};

/* Gates ------------------------------------------------------------------------------------------------------------ */

/* The thread that opens the gate does not wait at it: it may run the stream's work itself when the queue is full. */
static rondo_status hold_up(void *user) {
  rondo_gate *gate = user;
  const uint64_t end = rondo_clock_ns() + gate->most_ns;
  const bool is_opener = gate->thread == rondo_thread_id();
  for (uint64_t now = end - gate->most_ns; !is_opener && now < end; now = rondo_clock_ns()) {
    if (atomic_load_explicit(&gate->is_open, memory_order_acquire) != 0) break;
    rondo_futex_wait_for(&gate->is_open, 0, end - now);
  }
  atomic_store_explicit(&gate->is_taken, false, memory_order_release);
  return RONDO_OK;
}

static rondo_gate *find_gate(const rondo_gates *gates) {
  rondo_gate *gate = gates->first;
  while (gate != NULL && atomic_load_explicit(&gate->is_taken, memory_order_acquire)) gate = gate->next;
  return gate;
}

static rondo_status take_gate(rondo_device *device, rondo_gate **out) {
  rondo_gates *gates;
  RONDO_TRY(rondo_costs_gates(device, &gates));
  pthread_mutex_lock(&gates->lock);
  rondo_gate *gate = find_gate(gates);
  rondo_status status = RONDO_OK;
  if (gate == NULL) {
    status = rondo_allocate_items(&device->allocator, 1, sizeof *gate, &gate);
    if (status == RONDO_OK) {
      gate->next = gates->first;
      gates->first = gate;
    }
  }
  assert(status != RONDO_OK || !atomic_load_explicit(&gate->is_taken, memory_order_relaxed));
  if (status == RONDO_OK) atomic_store_explicit(&gate->is_taken, true, memory_order_relaxed);
  pthread_mutex_unlock(&gates->lock);
  *out = gate;
  return status;
}

void rondo_gates_free(rondo_gates *gates, const rondo_allocator *allocator) {
  while (gates->first != NULL) {
    rondo_gate *gate = gates->first;
    gates->first = gate->next;
    rondo_release(allocator, gate, 1, sizeof *gate);
  }
}

bool rondo_meter_holds(const rondo_stream *stream) {
  return !stream->synchronous && rondo_device_takes_libraries(stream->device);
}

static rondo_status queue_gate(rondo_meter *meter, uint64_t most_ns) {
  if (!rondo_meter_holds(meter->stream)) return RONDO_OK;
  rondo_gate *gate;
  RONDO_TRY(take_gate(meter->stream->device, &gate));
  atomic_store_explicit(&gate->is_open, 0, memory_order_relaxed);
  gate->most_ns = most_ns;
  gate->thread = rondo_thread_id();
  const rondo_status status = rondo_host_async(meter->stream, hold_up, gate);
  if (status == RONDO_OK)
    meter->gate = gate;
  else
    atomic_store_explicit(&gate->is_taken, false, memory_order_release);
  return status;
}

/* The gate's function may have ended long ago, and the gate may belong to another meter. Then that meter's gate opens
 * early, which only affects its measurement. */
static void open_gate(rondo_meter *meter) {
  if (meter->gate == NULL) return;
  atomic_store_explicit(&meter->gate->is_open, 1, memory_order_release);
  rondo_futex_wake(&meter->gate->is_open, 1);
  meter->gate = NULL;
}

/* Meters ----------------------------------------------------------------------------------------------------------- */

static rondo_status begin(rondo_meter *meter, uint64_t most_ns) {
  const rondo_event_options timing = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  RONDO_TRY(rondo_event_create(meter->stream->device, &timing, &meter->begin));
  RONDO_TRY(rondo_event_create(meter->stream->device, &timing, &meter->end));
  RONDO_TRY(queue_gate(meter, most_ns));
  return rondo_event_record(meter->begin, meter->stream);
}

static void stop_counting(rondo_meter *meter) {
  if (meter->counts) rondo_thread_unwatch();
  meter->counts = false;
}

rondo_status rondo_meter_begin(rondo_meter *meter, rondo_stream *stream, uint64_t most_ns) {
  *meter = (rondo_meter){.stream = stream};
  const rondo_status status = begin(meter, most_ns);
  if (status != RONDO_OK) rondo_meter_free(meter);
  meter->counts = status == RONDO_OK;
  if (meter->counts) rondo_thread_watch();
  meter->works = rondo_this_thread.works_queued;
  meter->began_ns = rondo_clock_ns();
  return status;
}

void rondo_meter_stop(rondo_meter *meter) {
  open_gate(meter);
  meter->host_ns = 0;
}

rondo_status rondo_meter_end(rondo_meter *meter) {
  const uint64_t now = rondo_clock_ns();
  assert(meter->counts && rondo_this_thread.works_queued >= meter->works);
  meter->works = rondo_this_thread.works_queued - meter->works;
  stop_counting(meter);
  const rondo_status status = rondo_event_record(meter->end, meter->stream);
  open_gate(meter);
  meter->host_ns = status == RONDO_OK ? now - meter->began_ns : 0;
  return status;
}

rondo_status rondo_meter_read(const rondo_meter *meter, rondo_gain *out) {
  RONDO_TRY(rondo_event_synchronize(meter->end));
  RONDO_TRY(rondo_event_elapsed(meter->begin, meter->end, &out->device_us));
  out->works = meter->works > UINT32_MAX ? UINT32_MAX : (uint32_t)meter->works;
  out->host_us = (double)meter->host_ns / 1e3;
  return RONDO_OK;
}

rondo_status rondo_queue_launch(rondo_stream *stream, void *exec) { return rondo_exec_launch(exec, stream); }

rondo_status rondo_meter_run(rondo_stream *stream, rondo_stream_work work, void *user, uint64_t most_ns,
                             rondo_gain *out) {
  rondo_meter meter;
  RONDO_TRY(rondo_meter_begin(&meter, stream, most_ns));
  rondo_status status = work(stream, user);
  if (status == RONDO_OK) status = rondo_meter_end(&meter);
  if (status == RONDO_OK) status = rondo_meter_read(&meter, out);
  rondo_meter_free(&meter);
  return status;
}

rondo_status rondo_time_run(rondo_stream *stream, rondo_stream_work work, void *user, double *out_host,
                            double *out_total) {
  RONDO_TRY(rondo_stream_synchronize(stream));
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(work(stream, user));
  const uint64_t queued = rondo_clock_ns();
  RONDO_TRY(rondo_stream_synchronize(stream));
  *out_host = (double)(queued - begin) / 1e3;
  *out_total = (double)(rondo_clock_ns() - begin) / 1e3;
  return RONDO_OK;
}

void rondo_meter_free(rondo_meter *meter) {
  rondo_saved_error error;
  rondo_error_save(&error);
  open_gate(meter);
  stop_counting(meter);
  rondo_event_destroy(meter->begin);
  rondo_event_destroy(meter->end);
  *meter = (rondo_meter){0};
  rondo_error_restore(&error);
}
