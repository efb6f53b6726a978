/* SPDX-License-Identifier: MIT
 * Recordings: a capture, its graph, an exec and a private heap in one object. Ending the capture makes all of these, or
 * none if it fails. So a recording is empty or ready, and a replay is one launch of an exec.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "exec/launch/instantiate.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "memory/profile/memory_profile.h"
#include "tree/recording/recording_internal.h"

static const rondo_device_use recording_use = {.rank = 8, .name = "recording"};

/* Life ------------------------------------------------------------------------------------------------------------- */

static void make_label(rondo_recording *recording, const char *name) {
  const bool is_named = name != NULL && name[0] != '\0';
  (void)snprintf(recording->label, sizeof recording->label, is_named ? "recording '%.60s'" : "the recording%s",
                 is_named ? name : "");
}

static rondo_status check_options(const char *call, const rondo_recording_options *options) {
  if (options->profile == NULL || !options->relocate) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: options has both relocate and a profile: use only one of them", call);
}

rondo_status rondo_recording_create(rondo_device *device, const rondo_recording_options *options,
                                    rondo_recording **out_recording) {
  const char *const call = "rondo_recording_create";
  rondo_recording_options known;
  rondo_plan_options plan;
  void *state;
  RONDO_TRY(rondo_check_call(call, "out_recording", out_recording));
  *out_recording = NULL;
  if (device == NULL) return rondo_refuse_null(call, "the device");
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(rondo_versioned_read("rondo_recording_options", options, &known, sizeof known));
  RONDO_TRY(rondo_versioned_read("rondo_plan_options", known.plan, &plan, sizeof plan));
  RONDO_TRY(check_options(call, &known));
  RONDO_TRY(rondo_allocate(&device->allocator, 1, sizeof(rondo_recording), &state));
  rondo_recording *recording = state;
  recording->device = device;
  recording->relocate = known.relocate;
  recording->lasting_host_memory = known.lasting_host_memory;
  recording->plan = plan;
  recording->profile = known.profile;
  if (known.profile != NULL) rondo_profile_retain(known.profile);
  make_label(recording, known.name);
  rondo_device_begin_use(device, &recording_use);
  *out_recording = recording;
  return RONDO_OK;
}

static bool is_capturing(const rondo_recording *recording) {
  const rondo_capture *capture = recording->capture;
  return capture != NULL && atomic_load_explicit(&capture->state, memory_order_acquire) != RONDO_CAPTURE_OVER;
}

static rondo_status fail_capturing(const char *call, const rondo_recording *recording, const char *remedy) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING, "%s: %s is capturing the work of %s: %s", call,
                    recording->label, recording->capture->origin_name, remedy);
}

rondo_status rondo_recording_destroy(rondo_recording *recording) {
  const char *const call = "rondo_recording_destroy";
  if (recording == NULL || recording->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_refuse_in_callback(call));
  if (is_capturing(recording)) return fail_capturing(call, recording, "end the capture, or reset the recording, first");
  rondo_recording_reset(recording);
  rondo_device *device = recording->device;
  if (recording->profile != NULL) rondo_profile_release(recording->profile);
  rondo_release(&device->allocator, recording, 1, sizeof *recording);
  rondo_device_end_use(device, &recording_use);
  return RONDO_OK;
}

/* Resetting -------------------------------------------------------------------------------------------------------- */

static void forget_capture(rondo_recording *recording) {
  if (recording->capture != NULL) rondo_capture_release(recording->capture);
  recording->capture = NULL;
}

/* Frees the graph and the exec. No work of them may be running. */
static void discard(rondo_recording *recording) {
  rondo_host_watch_end(&recording->watch);
  if (recording->graph != NULL) rondo_graph_free(recording->graph);
  rondo_exec_end(recording->exec);
  recording->exec = NULL;
  recording->graph = NULL;
}

/* Ends the capture, or invalidates it if this thread cannot end it or its stream was destroyed. */
static void drop_capture(rondo_recording *recording) {
  rondo_graph *graph = NULL;
  rondo_stream *origin = recording->capture->origin;
  const rondo_status ended = origin == NULL ? RONDO_CAPTURE_INVALID : rondo_capture_end(origin, &graph);
  if (ended == RONDO_OK) rondo_graph_free(graph);
  if (is_capturing(recording)) rondo_capture_invalidate(recording->capture, "rondo_recording_reset");
}

void rondo_recording_reset(rondo_recording *recording) {
  if (recording == NULL || rondo_in_callback() || recording->device->is_inherited) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  const bool captures = is_capturing(recording);
  if (captures || recording->exec != NULL) {
    recording->resets++;
    recording->was_reset = true;
  }
  if (captures) drop_capture(recording);
  forget_capture(recording);
  discard(recording);
  rondo_error_restore(&before);
}

/* Capturing -------------------------------------------------------------------------------------------------------- */

static rondo_status enter(const char *call, const rondo_recording *recording, const rondo_stream *stream) {
  RONDO_TRY(rondo_check_call(call, "the recording", recording));
  if (stream == NULL) return rondo_refuse_null(call, "the stream");
  return rondo_require_device(call, "the stream", recording->device, stream->device);
}

rondo_status rondo_recording_capture_begin(rondo_recording *recording, rondo_stream *stream, rondo_capture_mode mode) {
  const char *const call = "rondo_recording_capture_begin";
  RONDO_TRY(enter(call, recording, stream));
  if (recording->exec != NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                      "%s: %s already holds a capture: reset it first, or use another recording", call,
                      recording->label);
  if (is_capturing(recording)) return fail_capturing(call, recording, "end that capture first");
  forget_capture(recording);
  const rondo_capture_options options = {RONDO_CAPTURE_OPTIONS_INIT, .mode = mode, .profile = recording->profile,
                                         .relocate = recording->relocate};
  RONDO_TRY(rondo_fail_context(rondo_capture_begin_with(stream, &options), "%s", recording->label));
  recording->capture = rondo_stream_capture(stream);
  rondo_capture_retain(recording->capture);
  return RONDO_OK;
}

/* Makes everything that a replay needs from the graph. */
static rondo_status make_ready(rondo_recording *recording, const char *call, rondo_stream *stream) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .auto_free_on_launch = true,
                                             .relocate = recording->relocate, .plan = &recording->plan};
  rondo_device_memory *memory;
  RONDO_TRY(rondo_device_memory_of(recording->device, &memory));
  rondo_host_watch_begin(memory, &recording->watch);
  RONDO_TRY(rondo_recording_check(recording, call));
  RONDO_TRY(rondo_instantiate(recording->graph, &options, &recording->exec));
  RONDO_TRY(rondo_exec_own_heap(recording->exec));
  return rondo_exec_upload(recording->exec, stream);
}

static rondo_status check_end(const char *call, const rondo_recording *recording, const rondo_stream *stream) {
  if (!is_capturing(recording))
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING, "%s: %s does not capture: %s", call,
                      recording->label,
                      recording->capture == NULL ? "begin first" : "another call has ended its capture");
  const rondo_stream *origin = recording->capture->origin;
  if (origin == stream || (origin == NULL && rondo_stream_capture(stream) == recording->capture)) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNMATCHED_STREAM,
                    "%s: %s is capturing the work of %s, not of %s: end the capture on that stream", call,
                    recording->label, recording->capture->origin_name, stream->label);
}

/* The usual causes of an invalid capture are a wait for captured work and a call that acts immediately. */
static rondo_status fail_end(const rondo_recording *recording, rondo_status status) {
  if (status != RONDO_CAPTURE_INVALID) return rondo_fail_context(status, "%s", recording->label);
  return rondo_fail_context(
      status,
      "%s (allocate, copy inputs and outputs, and wait outside of the capture: inputs and outputs must be in memory "
      "that is allocated before the capture, written before a replay and read after it)",
      recording->label);
}

rondo_status rondo_recording_capture_end(rondo_recording *recording, rondo_stream *stream) {
  const char *const call = "rondo_recording_capture_end";
  RONDO_TRY(enter(call, recording, stream));
  rondo_status status = check_end(call, recording, stream);
  if (status == RONDO_OK) {
    status = rondo_capture_end(stream, &recording->graph);
    if (status != RONDO_OK) status = fail_end(recording, status);
  }
  if (status != RONDO_OK && is_capturing(recording)) return status;
  forget_capture(recording);
  RONDO_TRY(status);
  status = make_ready(recording, call, stream);
  if (status == RONDO_OK) {
    recording->captures++;
    return RONDO_OK;
  }
  rondo_saved_error why;
  rondo_error_save(&why);
  discard(recording);
  return rondo_fail_context(rondo_error_raise(&why), "%s", recording->label);
}

/* Replaying -------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_freed(const char *call, const rondo_recording *recording, const rondo_host_use *use) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(
      RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE,
      rondo_graph_outer_number(use->graph, recording->graph, use->slot),
      "%s: %s of %s names %s of rondo_host_malloc at %p, which was freed: keep it until the reset, or use device "
      "memory that is written before each replay. Reset the recording, and capture again",
      call, rondo_node_label_in(label, use->graph, recording->graph, use->slot), recording->label,
      RONDO_SIZE(use->bytes), (const void *)use->begin);
}

static rondo_status refuse_replay(rondo_recording *recording, rondo_stream *stream) {
  const char *const call = "rondo_recording_replay";
  RONDO_TRY(enter(call, recording, stream));
  if (is_capturing(recording)) return fail_capturing(call, recording, "end the capture first");
  if (recording->exec == NULL && recording->was_reset)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_WAS_RESET,
                      "%s: %s was reset and holds nothing to replay: capture again", call, recording->label);
  if (recording->exec == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED, "%s: %s holds nothing to replay: capture first",
                      call, recording->label);
  const rondo_host_use *freed = rondo_host_watch_freed(&recording->watch);
  if (freed != NULL) return refuse_freed(call, recording, freed);
  return rondo_capture_refuse_stream(stream, call);
}

rondo_status rondo_recording_replay(rondo_recording *recording, rondo_stream *stream) {
  const bool fine = recording != NULL && stream != NULL && recording->exec != NULL &&
                    recording->device == stream->device && rondo_host_watch_freed(&recording->watch) == NULL &&
                    rondo_stream_find_capture(stream) == NULL && !rondo_in_callback();
  if (__builtin_expect(!fine, 0)) return refuse_replay(recording, stream);
  RONDO_TRY(rondo_exec_launch(recording->exec, stream));
  recording->replays++;
  return RONDO_OK;
}

/* Decisions of the host -------------------------------------------------------------------------------------------- */

typedef struct decision_words {
  const char *what, *remedy;
} decision_words;

static const decision_words *words_of(rondo_decision decision) {
  static const decision_words conditional = {
      "a conditional",
      "record each branch separately and choose on the host which one to replay, or select in a kernel"};
  static const decision_words loop = {
      "a loop that values end",
      "record the body of the loop and replay it from the host, or record a fixed number of iterations"};
  static const decision_words loss_scale = {
      "a loss scale that changes",
      "keep the scale in a cell of device memory that kernels read, and change it between replays"};
  switch (decision) {
    case RONDO_DECISION_CONDITIONAL:
      return &conditional;
    case RONDO_DECISION_LOOP:
      return &loop;
    case RONDO_DECISION_LOSS_SCALE:
      return &loss_scale;
  }
  return NULL;
}

rondo_status rondo_recording_note_decision(rondo_stream *stream, rondo_decision decision, const char *name) {
  const char *const call = "rondo_recording_note_decision";
  RONDO_TRY(rondo_check_call(call, "the stream", stream));
  const decision_words *words = words_of(decision);
  if (words == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %d is not a decision: use a RONDO_DECISION_ name", call, (int)decision);
  rondo_capture *capture = rondo_stream_find_capture(stream);
  if (capture == NULL) return RONDO_OK;
  char quoted[112] = "";
  if (name != NULL && name[0] != '\0') (void)snprintf(quoted, sizeof quoted, ", '%.100s',", name);
  RONDO_TRY(rondo_capture_require_active(capture, call));
  rondo_capture_invalidate(capture, "%s%s", words->what, quoted);
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_HOST_DECISION,
                    "%s: %s%s cannot be recorded: the capture on %s would keep one outcome for all replays. The "
                    "capture is now invalid: %s",
                    call, words->what, quoted, capture->origin_name, words->remedy);
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

const rondo_graph *rondo_recording_graph(const rondo_recording *recording) {
  return recording == NULL ? NULL : recording->graph;
}

rondo_exec *rondo_recording_exec(const rondo_recording *recording) {
  return recording == NULL ? NULL : recording->exec;
}

static rondo_status read_exec(const rondo_recording *recording, rondo_recording_info *info) {
  rondo_exec_info exec = {.struct_size = sizeof exec};
  RONDO_TRY(rondo_exec_get_info(recording->exec, &exec));
  info->state = RONDO_RECORDING_READY;
  info->node_count = exec.node_count;
  info->pool_bytes = rondo_exec_heap_bytes(recording->exec);
  info->host_bytes = exec.host_bytes;
  info->device_bytes = exec.device_bytes;
  info->foreign_bytes = exec.foreign_bytes;
  return RONDO_OK;
}

rondo_status rondo_recording_get_info(const rondo_recording *recording, rondo_recording_info *out_info) {
  const char *const call = "rondo_recording_get_info";
  RONDO_TRY(rondo_check_call(call, "the recording", recording));
  if (out_info == NULL) return rondo_refuse_null(call, "out_info");
  rondo_recording_info info = {.struct_size = sizeof info,
                               .captures = recording->captures,
                               .replays = recording->replays,
                               .resets = recording->resets};
  if (is_capturing(recording)) info.state = RONDO_RECORDING_CAPTURING;
  if (recording->exec != NULL) RONDO_TRY(read_exec(recording, &info));
  return rondo_versioned_write("rondo_recording_info", &info, out_info, sizeof info);
}
