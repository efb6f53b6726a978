/* SPDX-License-Identifier: MIT
 * Measuring nodes: an exec is launched repeatedly while its driver records how long each node ran. The samples of one
 * node are adjacent, so that the median is a sort in place. Timing is off when the call returns, also after an error.
 * Launches that are not measured pay for one comparison of a pointer.
 */
#include <assert.h>

#include "exec/cost/device_costs.h"
#include "exec/launch/exec_internal.h"
#include "graph/graph.h"

#define MOST_REPEATS 1000

typedef struct measurement {
  rondo_exec *exec;
  rondo_stream *stream;
  uint32_t repeats;
  uint64_t *last;  /* of the last launch, by index, in nanoseconds */
  double *samples; /* `repeats` for each node, in microseconds */
} measurement;

static rondo_status check(const char *call, const rondo_exec *exec, rondo_stream *stream, uint32_t repeats) {
  if (stream == NULL) return rondo_refuse_null(call, "the stream");
  RONDO_TRY(rondo_require_device(call, "the stream", exec->device, stream->device));
  RONDO_TRY(rondo_graph_refuse_bound(exec->graph, "cannot be measured node by node"));
  if (repeats == 0 || repeats > MOST_REPEATS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %u repeats: pass 1 to %d", call,
                      (unsigned)repeats, MOST_REPEATS);
  if (rondo_stream_find_capture(stream) != NULL) return rondo_capture_refuse_stream(stream, call);
  return rondo_capture_refuse_stray(stream, call);
}

static rondo_status launch_once(const measurement *m) {
  RONDO_TRY(rondo_exec_launch(m->exec, m->stream));
  return rondo_stream_synchronize(m->stream);
}

static rondo_status take_samples(const measurement *m) {
  const rondo_executable *executable = m->exec->executable;
  const size_t count = m->exec->lowering.nodes.count;
  RONDO_TRY(launch_once(m)); /* warm-up, not counted */
  for (uint32_t r = 0; r < m->repeats; r++) {
    RONDO_TRY(launch_once(m));
    executable->ops->times(executable, m->last);
    for (size_t i = 0; i < count; i++) m->samples[i * m->repeats + r] = (double)m->last[i] / 1000;
  }
  return RONDO_OK;
}

static rondo_status take_timed_samples(const measurement *m) {
  rondo_executable *executable = m->exec->executable;
  RONDO_TRY(executable->ops->synchronize(executable));
  RONDO_TRY(executable->ops->set_timing(executable, true));
  const rondo_status status = take_samples(m);
  rondo_saved_error error;
  rondo_error_save(&error);
  const rondo_status waited = executable->ops->synchronize(executable);
  if (status == RONDO_OK) rondo_error_save(&error);
  const rondo_status off = executable->ops->set_timing(executable, false); /* for later launches */
  if (status == RONDO_OK && waited == RONDO_OK) return off;
  return rondo_error_raise(&error);
}

static rondo_node_time summarize(const measurement *m, size_t index) {
  double *samples = &m->samples[index * m->repeats];
  const double median = rondo_median(samples, m->repeats); /* which sorts them */
  assert(samples[0] <= median && median <= samples[m->repeats - 1]);
  return (rondo_node_time){.node = m->exec->lowering.origins.items[index].tag,
                           .microseconds = median,
                           .minimum = samples[0],
                           .maximum = samples[m->repeats - 1]};
}

/* Joins are omitted, because the user does not know them. */
static void write_times(const measurement *m, rondo_node_time *times, size_t capacity) {
  const rondo_lowering *lowering = &m->exec->lowering;
  size_t written = 0;
  for (size_t i = 0; i < lowering->nodes.count && written < capacity; i++)
    if (lowering->origins.items[i].graph != NULL) times[written++] = summarize(m, i);
  for (; written < capacity; written++) times[written] = (rondo_node_time){0};
}

static rondo_status measure(measurement *m, rondo_node_time *times, size_t capacity) {
  const rondo_allocator *allocator = &m->exec->device->allocator;
  const size_t count = m->exec->lowering.nodes.count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *m->last, &m->last));
  rondo_status status = rondo_allocate_items(allocator, count, m->repeats * sizeof *m->samples, &m->samples);
  if (status == RONDO_OK) status = take_timed_samples(m);
  if (status == RONDO_OK) write_times(m, times, capacity);
  rondo_release(allocator, m->samples, count, m->repeats * sizeof *m->samples);
  rondo_release(allocator, m->last, count, sizeof *m->last);
  return status;
}

rondo_status rondo_exec_measure(rondo_exec *exec, rondo_stream *stream, uint32_t repeats, rondo_node_time *times,
                                size_t *inout_count) {
  const char *const call = "rondo_exec_measure";
  RONDO_TRY(rondo_check_call(call, "the exec", exec));
  if (inout_count == NULL) return rondo_refuse_null(call, "the count");
  if (times != NULL) {
    measurement m = {.exec = exec, .stream = stream, .repeats = repeats};
    RONDO_TRY(check(call, exec, stream, repeats));
    RONDO_TRY(measure(&m, times, *inout_count));
  }
  *inout_count = exec->lowering.nodes.count - exec->lowering.join_count;
  return RONDO_OK;
}
