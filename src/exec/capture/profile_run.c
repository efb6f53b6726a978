/* SPDX-License-Identifier: MIT
 * Profiles of eager runs: the public calls of memory/profile/warm_up_log.h.
 */
#include "base/versioned_struct.h"
#include "exec/build/graph_build.h"
#include "exec/capture/arena_capture.h"
#include "exec/capture/capture_internal.h"
#include "memory/profile/memory_profile.h"
#include "memory/profile/warm_up_log.h"

rondo_status rondo_profile_begin(rondo_stream *stream) {
  const char *const call = "rondo_profile_begin";
  rondo_device_memory *memory;
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  if (rondo_stream_find_capture(stream) != NULL)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
        "%s: %s captures, so its work does not run: end the capture first, or create the profile from its "
        "graph",
        call, stream->label);
  RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
  RONDO_TRY(rondo_device_memory_require_pools(memory, call));
  return rondo_warm_up_begin(memory, &stream->order, stream->label);
}

rondo_status rondo_profile_end_noted(rondo_stream *stream, rondo_noted_lifetimes **out) {
  rondo_device_memory *memory;
  *out = NULL;
  RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
  rondo_warm_up *run = rondo_warm_up_end(memory, &stream->order);
  if (run == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_PROFILING,
                      "rondo_profile_end: no profile was begun on %s: call rondo_profile_begin first", stream->label);
  const rondo_status status = rondo_warm_up_note(run, out);
  rondo_warm_up_destroy(run);
  return status;
}

static rondo_status plan_run(rondo_stream *stream, const rondo_plan_options *options, rondo_profile **out) {
  rondo_device_memory *memory;
  rondo_noted_lifetimes *noted;
  RONDO_TRY(rondo_device_memory_of(stream->device, &memory));
  RONDO_TRY(rondo_profile_end_noted(stream, &noted));
  const rondo_status status = rondo_profile_of_noted(noted, options, out);
  rondo_noted_lifetimes_release(noted);
  RONDO_TRY(status);
  (*out)->hold = rondo_build_hold(stream->device);
  atomic_fetch_add_explicit(&memory->profiles, 1, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status rondo_profile_end(rondo_stream *stream, const rondo_plan_options *plan_options,
                               rondo_profile **out_profile) {
  const char *const call = "rondo_profile_end";
  rondo_plan_options known;
  RONDO_TRY(rondo_check_call(call, "out_profile", out_profile));
  *out_profile = NULL;
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  RONDO_TRY(rondo_versioned_read("rondo_plan_options", plan_options, &known, sizeof known));
  return plan_run(stream, &known, out_profile);
}

void rondo_profile_note_end(rondo_stream *stream, uint64_t key) {
  rondo_device_memory *memory = atomic_load_explicit(&stream->device->memory.state, memory_order_acquire);
  if (memory != NULL && rondo_warm_up_runs(memory)) rondo_warm_up_note_end(memory, &stream->order, key);
}
