/* SPDX-License-Identifier: MIT
 * Records a call. The body runs while the stream captures into the arena. Live outputs of the path keep their memory
 * there, and moving inputs have slots. A body with host steps is recorded in segments; memory that a segment leaves is
 * a block of the next segment. Nothing is launched, and no host step runs, until the body has returned and the
 * recording is known to be valid. So an abandoned recording has no effect, and the body can run eagerly.
 */
#include "tree/record/record_call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exec/capture/capture_internal.h"
#include "graph/user_object.h"
#include "memory/arena/arena_recording.h"
#include "tree/eager_call.h"
#include "tree/function.h"
#include "tree/path/owned_buffer.h"
#include "tree/path/path.h"
#include "tree/record/bind_inputs.h"
#include "tree/record/check_inputs.h"
#include "tree/record/demote_inputs.h"
#include "tree/record/find_inputs.h"
#include "tree/record/function_body.h"
#include "tree/record/shared_execs.h"
#include "tree/recorded_calls.h"
#include "tree/replay.h"

/* Abandoning ------------------------------------------------------------------------------------------------------- */

rondo_status rondo_recorder_abandon(rondo_recorder *recorder, rondo_skip skip, bool is_for_good, const char *format,
                                    ...) {
  if (recorder->skip == RONDO_SKIP_NONE) {
    va_list arguments;
    va_start(arguments, format);
    recorder->skip = skip;
    recorder->is_for_good = is_for_good;
    (void)vsnprintf(recorder->message, sizeof recorder->message, format, arguments);
    va_end(arguments);
  }
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_RECORDED, "%s", recorder->message);
}

/* Fails if the recorder was abandoned inside the body, even if the body ignored that. */
static rondo_status check_not_abandoned(rondo_recorder *recorder) {
  return recorder->skip == RONDO_SKIP_NONE
             ? RONDO_OK
             : rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_RECORDED, "%s", recorder->message);
}

static rondo_status abandon_for_stray(rondo_recorder *recorder) {
  const bool is_device = recorder->watch.stray == RONDO_STRAY_DEVICE;
  return rondo_recorder_abandon(recorder, is_device ? RONDO_SKIP_SEVERAL_DEVICES : RONDO_SKIP_OTHER_WORK, true, "%s",
                                recorder->watch.message);
}

rondo_skip rondo_skip_of_error(void) {
  const rondo_error *error = rondo_last_error();
  if (error->reason == RONDO_REASON_OTHER_DEVICE || error->reason == RONDO_REASON_NO_ACCESS)
    return RONDO_SKIP_SEVERAL_DEVICES;
  return error->status == RONDO_OUT_OF_MEMORY ? RONDO_SKIP_MEMORY_LIMIT : RONDO_SKIP_OTHER_WORK;
}

/* Notes what invalidated the capture. The error that the body received is written for the owner of the capture, which
 * is the tree. */
static void note_cause(rondo_recorder *recorder) {
  const rondo_capture *capture = recorder->cause[0] == '\0' ? rondo_stream_capture(recorder->stream) : NULL;
  if (capture != NULL &&
      !rondo_capture_find_cause(capture, recorder->cause, sizeof recorder->cause, &recorder->cause_source))
    recorder->cause[0] = '\0';
}

/* What another thread or a library did does not concern the form, and may not happen again. */
static rondo_status abandon_for_death(rondo_recorder *recorder) {
  char thread[RONDO_THREAD_LABEL];
  if (recorder->cause_source == RONDO_CAUSE_ELSEWHERE)
    return rondo_recorder_abandon(recorder, RONDO_SKIP_CAPTURE_DIED, false,
                                  "its capture was made invalid by %s: keep such calls out of the time in which it is "
                                  "recorded (rondo_function_prepare), or let the other thread wait for a stream or an "
                                  "event",
                                  recorder->cause);
  return rondo_recorder_abandon(recorder, RONDO_SKIP_CAPTURE_DIED, false,
                                "the driver ended its capture on %s: %s: do what a library does only once, such as "
                                "creating its handles, before that, and what waits in a host step "
                                "(rondo_call_host_step)",
                                rondo_thread_label(thread), recorder->cause);
}

/* The body waits, queries, or does something at once that a replay would omit. */
static rondo_status abandon_for_host_work(rondo_recorder *recorder) {
  note_cause(recorder);
  if (recorder->cause_source != RONDO_CAUSE_OWN) return abandon_for_death(recorder);
  return rondo_recorder_abandon(
      recorder, RONDO_SKIP_HOST_WORK, true,
      "its body does work that cannot be recorded; do it outside of the body, or in a host step "
      "(rondo_call_host_step): %s",
      recorder->cause[0] == '\0' ? rondo_last_error()->message : recorder->cause);
}

/* Abandons the recording because the body, or ending the capture, failed. Stray work is the reason even if the body
 * then failed for another one. */
static rondo_status abandon_by_error(rondo_recorder *recorder, const rondo_call *call, rondo_status status) {
  const rondo_error *error = rondo_last_error();
  if (recorder->skip != RONDO_SKIP_NONE || status == RONDO_DEVICE_LOST) return status;
  if (call->refused != RONDO_SKIP_NONE)
    return rondo_recorder_abandon(recorder, call->refused, true, "%s", call->message);
  if (recorder->watch.stray != RONDO_STRAY_NONE) return abandon_for_stray(recorder);
  if (status == RONDO_NOT_READY) /* it has no message */
    return rondo_recorder_abandon(
        recorder, RONDO_SKIP_OTHER_WORK, false,
        "its body returned NOT_READY: it queries work that is not done yet; wait for that work before the call");
  if (status == RONDO_CAPTURE_REFUSED || status == RONDO_CAPTURE_INVALID) {
    if (error->reason != RONDO_REASON_UNJOINED && error->reason != RONDO_REASON_HOST_FUNCTION_FAILED)
      return abandon_for_host_work(recorder);
    return rondo_recorder_abandon_for_error(recorder, RONDO_SKIP_OTHER_WORK, true);
  }
  note_cause(recorder); /* because of which calls failed that are not Rondo's, so the body's status is its own */
  if (recorder->cause[0] != '\0' && recorder->cause_source != RONDO_CAUSE_OWN) return abandon_for_death(recorder);
  const rondo_skip skip = rondo_skip_of_error();
  return rondo_recorder_abandon_for_error(recorder, skip, skip == RONDO_SKIP_SEVERAL_DEVICES);
}

/* Beginning -------------------------------------------------------------------------------------------------------- */

/* The number of the input whose drop frees this buffer, plus one. 0: no input does, or host steps make that
 * unreliable. */
static uint64_t key_of_block(const rondo_recorder *recorder, const rondo_buffer *buffer) {
  if (recorder->form->host_steps > 0) return 0;
  for (size_t i = 0; i < recorder->function->options.input_count; i++)
    if (recorder->given[i].is_sole && recorder->given[i].buffer == buffer) return i + 1;
  return 0;
}

/* Lists the live outputs of the path. */
static rondo_status list_blocks(rondo_recorder *recorder) {
  const rondo_tree *tree = recorder->tree;
  for (size_t bit = 0; bit < tree->path_bits; bit++) {
    const rondo_buffer *buffer = tree->holders[bit];
    if (buffer == NULL) continue;
    const rondo_arena_block block = {.address = buffer->address,
                                     .bytes = buffer->capacity,
                                     .name = buffer->origin->name,
                                     .key = key_of_block(recorder, buffer)};
    RONDO_TRY(rondo_array_push(&tree->allocator, &recorder->blocks, &block));
  }
  recorder->path_blocks = recorder->blocks.count;
  return RONDO_OK;
}

/* Gives each moving input a slot and an entry in the recorded call. */
static rondo_status list_slots(rondo_recorder *recorder) {
  const rondo_allocator *allocator = &recorder->tree->allocator;
  const size_t input_count = recorder->function->options.input_count;
  for (size_t i = 0; i < input_count; i++) {
    const rondo_arena_slot slot = {.bytes = recorder->given[i].bytes, .name = "an input's slot"};
    if (recorder->given[i].role == RONDO_ROLE_MOVING && slot.bytes > 0)
      RONDO_TRY(rondo_array_push(allocator, &recorder->slots, &slot));
  }
  rondo_recorded_call *made = recorder->made;
  RONDO_TRY(rondo_allocate_items(allocator, recorder->slots.count, sizeof *made->bound, &made->bound));
  made->bound_count = recorder->slots.count;
  RONDO_TRY(rondo_allocate_items(allocator, 2 * made->bound_count, sizeof *made->addresses, &made->addresses));
  if (made->bound_count > 0) made->patched_at = made->addresses + made->bound_count;
  for (size_t i = 0, at = 0; i < input_count; i++) {
    const rondo_resolved_input *input = &recorder->given[i];
    if (input->role != RONDO_ROLE_MOVING || input->bytes == 0) continue;
    made->bound[at++] = (rondo_bound_input){.method = RONDO_BOUND_COPIED_BEFORE,
                                            .input = (uint32_t)i,
                                            .is_mutated = input->is_mutated,
                                            .bytes = input->bytes};
  }
  return RONDO_OK;
}

/* The body sees moving inputs in their slots. */
static void show_slots(rondo_recorder *recorder) {
  for (size_t i = 0; i < recorder->slots.count; i++) {
    rondo_bound_input *bound = &recorder->made->bound[i];
    bound->slot = recorder->slots.items[i].address;
    recorder->inputs[bound->input].address = bound->slot;
  }
}

/* Slots are blocks of the segments after the first. */
static rondo_status keep_slots(rondo_recorder *recorder) {
  for (size_t i = 0; i < recorder->slots.count; i++) {
    const rondo_arena_block block = {.address = recorder->slots.items[i].address,
                                     .bytes = recorder->slots.items[i].bytes,
                                     .name = recorder->slots.items[i].name};
    RONDO_TRY(rondo_array_push(&recorder->tree->allocator, &recorder->blocks, &block));
  }
  return RONDO_OK;
}

static rondo_status begin_segment(rondo_recorder *recorder) {
  const size_t index = recorder->segments.count;
  const rondo_form *form = recorder->form;
  rondo_arena_setting setting = {.arena = recorder->tree->arena,
                                 .blocks = recorder->blocks.items,
                                 .block_count = recorder->blocks.count,
                                 .profile = recorder->profile};
  if (recorder->profile == NULL && index < form->noted_count && !recorder->function->always_captures)
    setting.lifetimes = form->noted[index];
  if (index == 0) {
    setting.slots = recorder->slots.items;
    setting.slot_count = recorder->slots.count;
  }
  const rondo_status status = rondo_capture_begin_in_arena(recorder->stream, RONDO_CAPTURE_THREAD_LOCAL, &setting);
  if (status == RONDO_OUT_OF_MEMORY) return rondo_recorder_abandon_for_error(recorder, RONDO_SKIP_MEMORY_LIMIT, false);
  if (status != RONDO_OK) return rondo_recorder_abandon_for_error(recorder, RONDO_SKIP_OTHER_WORK, false);
  recorder->is_capturing = true;
  RONDO_TRY(rondo_arena_watch_begin(recorder->tree->arena, recorder->slots.items, recorder->slots.count));
  if (index > 0) return RONDO_OK;
  show_slots(recorder);
  return keep_slots(recorder);
}

/* Ending a segment ------------------------------------------------------------------------------------------------- */

/* How much of the arena is inspected if it is not known what was recorded. */
#define WATCHED_BYTES ((size_t)256 << 20)

static size_t used_bytes(const rondo_recorder *recorder, const rondo_graph *graph) {
  rondo_arena_recording recording;
  size_t used = WATCHED_BYTES;
  if (graph == NULL || rondo_arena_of(graph) != recorder->tree->arena) return used;
  if (rondo_arena_recording_read(graph, &recording) != RONDO_OK) return used;
  used = recording.need;
  rondo_arena_recording_free(&recording);
  return used;
}

/* Also ends watching the host. Sets recorder->access if the host accessed memory that had no pages. */
static rondo_status end_capture(rondo_recorder *recorder, rondo_graph **out) {
  rondo_saved_error error;
  rondo_arena_access access;
  recorder->is_capturing = false;
  note_cause(recorder);
  const rondo_status status = rondo_capture_end(recorder->stream, out);
  if (status != RONDO_OK) rondo_error_save(&error);
  if (status == RONDO_CAPTURE_INVALID && recorder->cause[0] == '\0') { /* found by this end */
    (void)snprintf(recorder->cause, sizeof recorder->cause, "%s", rondo_last_error()->message);
    recorder->cause_source = RONDO_CAUSE_DRIVER;
  }
  const size_t used = used_bytes(recorder, status == RONDO_OK ? *out : NULL);
  const rondo_status ended =
      rondo_arena_watch_end(recorder->tree->arena, recorder->slots.items, recorder->slots.count, used, &access);
  if (recorder->access.address == NULL) recorder->access = access;
  return status == RONDO_OK ? ended : rondo_error_raise(&error);
}

/* Whether the memory includes a byte that the host accessed. */
static bool is_touched(const rondo_recorder *recorder, const void *address, size_t bytes) {
  const uintptr_t begin = (uintptr_t)address, at = (uintptr_t)recorder->access.address;
  return begin < at + recorder->access.bytes && at < begin + bytes;
}

/* Names the slots and allocations that the host may have accessed. Several may share a page. */
static void name_touched(const rondo_recorder *recorder, const rondo_graph *graph, char *out, size_t capacity) {
  size_t length = 0;
  out[0] = '\0';
  for (size_t i = 0; i < recorder->slots.count && length < capacity; i++)
    if (is_touched(recorder, recorder->slots.items[i].address, recorder->slots.items[i].bytes))
      length += (size_t)snprintf(out + length, capacity - length, "%sinput %u", length == 0 ? "" : " or ",
                                 recorder->made->bound[i].input);
  for (size_t i = 0; graph != NULL && i < graph->nodes.count && length < capacity; i++) {
    const rondo_node_params *params = &graph->nodes.items[i].params;
    if (!graph->nodes.items[i].live || params->kind != RONDO_NODE_ALLOC) continue;
    if (!is_touched(recorder, params->as.alloc.address, params->as.alloc.bytes)) continue;
    const bool has_name = params->as.alloc.name[0] != '\0';
    length += (size_t)snprintf(out + length, capacity - length, "%sallocation%s%.40s%s of %s",
                               length == 0 ? "" : " or ", has_name ? " '" : "", params->as.alloc.name,
                               has_name ? "'" : "", RONDO_SIZE(params->as.alloc.bytes));
  }
}

/* The host would read undefined contents, and its writes would be lost in a replay. */
static rondo_status abandon_for_access(rondo_recorder *recorder, const rondo_graph *graph) {
  char name[160];
  name_touched(recorder, graph, name, sizeof name);
  return rondo_recorder_abandon(
      recorder, RONDO_SKIP_HOST_WORK, true,
      "its body accesses %s at %p on the host, which has no memory during a recording: do it outside of the "
      "body, or in a host step (rondo_call_host_step)",
      name[0] == '\0' ? "memory of the device" : name, recorder->access.address);
}

/* Backs the arena with memory for the recording, within the tree's limit. */
static rondo_status back_arena(rondo_recorder *recorder, size_t need) {
  const uint64_t limit = recorder->tree->options.max_bytes;
  if (limit != 0 && need > limit) {
    return rondo_recorder_abandon(
        recorder, RONDO_SKIP_MEMORY_LIMIT, false,
        "with the live outputs of the path it needs %s of the arena, whose limit is %s (rondo_tree_options.max_bytes)",
        RONDO_SIZE(need), RONDO_SIZE(limit));
  }
  if (need > recorder->made->arena_end) recorder->made->arena_end = need;
  const rondo_status status = rondo_arena_back(recorder->tree->arena, need);
  return status == RONDO_OK || status == RONDO_DEVICE_LOST
             ? status
             : rondo_recorder_abandon_for_error(recorder, RONDO_SKIP_MEMORY_LIMIT, false);
}

/* Removes the blocks that the segment freed, and adds the memory that it left. */
static rondo_status update_blocks(rondo_recorder *recorder, const rondo_arena_recording *recording) {
  for (size_t i = recording->ended_count; i > 0; i--) {
    const size_t gone = recording->ended[i - 1];
    if (gone < recorder->path_blocks) recorder->path_blocks--;
    recorder->blocks.count--;
    memmove(&recorder->blocks.items[gone], &recorder->blocks.items[gone + 1],
            (recorder->blocks.count - gone) * sizeof recorder->blocks.items[0]);
  }
  for (size_t i = 0; i < recording->output_count; i++) {
    const rondo_arena_block block = {
        .address = recording->outputs[i].address, .bytes = recording->outputs[i].bytes, .name = "a body's memory"};
    RONDO_TRY(rondo_array_push(&recorder->tree->allocator, &recorder->blocks, &block));
    RONDO_TRY(rondo_array_push(&recorder->tree->allocator, &recorder->allocations, &recording->outputs[i].allocation));
  }
  return RONDO_OK;
}

/* Stores what the segment allocates in the form. */
static rondo_status note_form(rondo_form *form, size_t segment, const rondo_graph *graph) {
  if (segment >= form->noted_count) return RONDO_OK;
  rondo_noted_lifetimes *noted;
  RONDO_TRY(rondo_noted_lifetimes_of_graph(graph, &noted));
  rondo_noted_lifetimes_release(form->noted[segment]);
  form->noted[segment] = noted;
  return RONDO_OK;
}

/* The segment did not allocate as planned. The next recording is planned from what it did. */
static rondo_status note_departure(rondo_recorder *recorder, const rondo_graph *graph) {
  if (recorder->profile != NULL) rondo_path_plan_depart(recorder->tree, recorder->position);
  RONDO_TRY(note_form(recorder->form, recorder->segments.count, graph));
  return rondo_recorder_abandon(
      recorder, RONDO_SKIP_DEPARTED, false,
      recorder->profile != NULL
          ? "the live outputs or its allocations differ from the plan of its path; the next call records it without "
            "the plan"
          : "its allocations differ from those of the previous run; the next call records it");
}

/* Notes lifetimes for a plan of the path. Nothing is planned on a device that watches lifetimes. */
static rondo_status note_lifetimes(const rondo_recorder *recorder, const rondo_graph *graph) {
  const rondo_allocator *allocator = &recorder->tree->allocator;
  const size_t count = recorder->function->options.input_count;
  rondo_recorded_call *made = recorder->made;
  if (recorder->form->host_steps > 0 || recorder->tree->device->ops->guard != NULL) return RONDO_OK;
  made->given_capacity = count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *made->given, &made->given));
  for (size_t i = 0; i < count; i++)
    if (recorder->given[i].role == RONDO_ROLE_MANAGED && recorder->given[i].is_sole)
      made->given[made->given_count++] = (rondo_given_output){.key = i + 1, .bit = recorder->given[i].buffer->bit};
  return rondo_noted_lifetimes_of_graph(graph, &made->noted);
}

static rondo_status read_recording(rondo_recorder *recorder, const rondo_graph *graph, size_t *out_need) {
  rondo_arena_recording recording;
  RONDO_TRY(rondo_arena_recording_read(graph, &recording));
  *out_need = recording.need;
  if (recording.least > recorder->made->arena_minimum) recorder->made->arena_minimum = recording.least;
  rondo_status status = recording.departed ? note_departure(recorder, graph) : RONDO_OK;
  if (status == RONDO_OK) status = note_lifetimes(recorder, graph);
  if (status == RONDO_OK) status = update_blocks(recorder, &recording);
  rondo_arena_recording_free(&recording);
  return status;
}

static rondo_status check_size(rondo_recorder *recorder, const rondo_exec *exec) {
  rondo_exec_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_exec_get_info(exec, &info));
  if (recorder->segments.count > 1 || info.node_count >= recorder->function->options.min_nodes) return RONDO_OK;
  return rondo_recorder_abandon(recorder, RONDO_SKIP_TOO_SMALL, true,
                                "it has %" PRIu32 " nodes, fewer than the minimum of %" PRIu32 " (min_nodes)",
                                info.node_count, recorder->function->options.min_nodes);
}

static rondo_status make_segment(rondo_recorder *recorder, rondo_graph *graph, bool is_last) {
  size_t need;
  RONDO_TRY(read_recording(recorder, graph, &need));
  const rondo_segment none = {0};
  RONDO_TRY(rondo_array_push(&recorder->tree->allocator, &recorder->segments, &none));
  rondo_segment *segment = &recorder->segments.items[recorder->segments.count - 1];
  RONDO_TRY(rondo_recorder_bind(recorder, graph, is_last && recorder->segments.count == 1, segment));
  RONDO_TRY(check_size(recorder, segment->exec));
  RONDO_TRY(rondo_object_list_gather(&recorder->tree->allocator, &recorder->made->objects, graph));
  return back_arena(recorder, need);
}

static rondo_status abandon_foreign(rondo_recorder *recorder, rondo_graph *graph) {
  rondo_status_ignore(rondo_graph_destroy(graph), "it belongs to nobody else");
  return rondo_recorder_abandon(recorder, RONDO_SKIP_OTHER_WORK, false,
                                "its body ended the capture that recorded it, and began another capture");
}

/* Makes the segment, and frees its graph, unless the tree shares execs. */
static rondo_status end_segment(rondo_recorder *recorder, const rondo_call *call, bool is_last) {
  rondo_graph *graph = NULL;
  rondo_status status = end_capture(recorder, &graph);
  if (status == RONDO_OK && recorder->access.address != NULL) status = abandon_for_access(recorder, graph);
  if (status != RONDO_OK) rondo_status_ignore(rondo_graph_destroy(graph), "it belongs to nobody else");
  if (status != RONDO_OK) return abandon_by_error(recorder, call, status);
  if (rondo_arena_of(graph) != recorder->tree->arena) return abandon_foreign(recorder, graph);
  if (is_last && recorder->segments.count == 0 && recorder->function->options.find_inputs)
    rondo_recorder_find(recorder);
  status = check_not_abandoned(recorder);
  if (status == RONDO_OK) status = make_segment(recorder, graph, is_last);
  if (status == RONDO_OK && rondo_tree_shares(recorder->tree)) {
    recorder->segments.items[recorder->segments.count - 1].graph = graph;
    return RONDO_OK;
  }
  const rondo_status gone = rondo_graph_destroy(graph);
  return status == RONDO_OK ? gone : status;
}

/* In the body ------------------------------------------------------------------------------------------------------ */

/* The work of the body must depend only on the form of its inputs. */
static rondo_status abandon_as_changed(rondo_recorder *recorder, const rondo_call *call) {
  const rondo_form *form = recorder->form;
  return rondo_recorder_abandon(
      recorder, RONDO_SKIP_CHANGED, false,
      "its body created %zu outputs and took %zu host steps, but %zu and %zu in the previous run: its work "
      "must depend only on the form of its inputs",
      call->outputs.count, call->host_steps, form->output_count, form->host_steps);
}

static rondo_status check_values(rondo_recorder *recorder, rondo_call *call) {
  char message[RONDO_TREE_MESSAGE];
  if (!rondo_body_compare_values(recorder->form, call, message)) return RONDO_OK;
  return rondo_recorder_abandon(recorder, RONDO_SKIP_CHANGED, false, "%s", message);
}

rondo_status rondo_recorder_require_stream(rondo_recorder *recorder, const rondo_function *function,
                                           rondo_stream *stream) {
  const rondo_capture *capture = rondo_stream_find_capture(stream);
  if (capture != NULL && capture == rondo_stream_find_capture(recorder->stream)) return RONDO_OK;
  return rondo_recorder_abandon(
      recorder, RONDO_SKIP_OTHER_WORK, true,
      "its body calls '%.60s' on %s, which is not part of the recording: use the call's stream, or a stream "
      "forked from it",
      function->origin->name, stream->label);
}

static rondo_status begin_next_segment(rondo_recorder *recorder, const rondo_call *call, rondo_host_function step,
                                       void *user) {
  RONDO_TRY(end_segment(recorder, call, false));
  rondo_segment *segment = &recorder->segments.items[recorder->segments.count - 1];
  segment->step = step;
  segment->user = user;
  return begin_segment(recorder);
}

/* Work of the library between segments is not stray work. */
rondo_status rondo_recorder_host_step(rondo_call *call, rondo_host_function step, void *user) {
  rondo_recorder *recorder = call->recorder;
  if (recorder->tree->options.no_host_steps)
    return rondo_recorder_abandon(
        recorder, RONDO_SKIP_HOST_WORK, true,
        "its body has host steps, and the tree does not record these (rondo_tree_options.no_host_steps)");
  RONDO_TRY(rondo_recorder_refuse_own_user(recorder, user));
  const rondo_call *whole = rondo_call_outermost(call);
  if (whole->host_steps > recorder->form->host_steps) return abandon_as_changed(recorder, whole);
  rondo_capture_watch *const paused = rondo_capture_watch_pause();
  const rondo_status status = begin_next_segment(recorder, call, step, user);
  rondo_capture_watch_resume(paused);
  return status;
}

/* Only the last segment frees dropped inputs. */
rondo_status rondo_recorder_drop_input(rondo_call *call, size_t index) {
  const rondo_resolved_input *input = &call->inputs[index];
  if (call->recorder->segments.count < call->recorder->form->host_steps) return RONDO_OK;
  return input->role == RONDO_ROLE_MANAGED ? rondo_free_async(call->stream, input->address) : RONDO_OK;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

static bool is_output(const rondo_call *call, const void *address) {
  for (size_t i = 0; i < call->outputs.count; i++) {
    const rondo_output *output = &call->outputs.items[i].output;
    if (output->kind == RONDO_OUTPUT_FRESH && output->address == address) return true;
  }
  return false;
}

/* The memory that the body left in the arena must be exactly its fresh outputs. */
static rondo_status check_left(rondo_recorder *recorder, const rondo_call *call) {
  size_t fresh = 0, left = 0;
  for (size_t i = 0; i < call->outputs.count; i++) fresh += call->outputs.items[i].output.kind == RONDO_OUTPUT_FRESH;
  for (size_t i = recorder->path_blocks + recorder->slots.count; i < recorder->blocks.count; i++) {
    const rondo_arena_block *block = &recorder->blocks.items[i];
    left++;
    if (is_output(call, block->address)) continue;
    return rondo_recorder_abandon(
        recorder, RONDO_SKIP_KEPT_MEMORY, true,
        "its body allocated %s, but neither freed it (rondo_free_async) nor created it as an output "
        "(rondo_call_output)",
        RONDO_SIZE(block->bytes));
  }
  if (left == fresh) return RONDO_OK;
  return rondo_recorder_abandon(recorder, RONDO_SKIP_CHANGED, true, "its body freed one of its outputs");
}

/* The number of the allocation that an output is. Only plans of paths need it, so only for bodies without host steps.
 */
static uint32_t allocation_of(const rondo_recorder *recorder, const void *address) {
  const size_t first = recorder->path_blocks + recorder->slots.count;
  for (size_t i = 0; i < recorder->allocations.count && first + i < recorder->blocks.count; i++)
    if (recorder->blocks.items[first + i].address == address) return recorder->allocations.items[i];
  return 0;
}

static rondo_status keep_outputs(rondo_recorder *recorder, const rondo_call *call) {
  rondo_recorded_call *made = recorder->made;
  RONDO_TRY(
      rondo_allocate_items(&recorder->tree->allocator, call->outputs.count, sizeof *made->outputs, &made->outputs));
  made->output_count = call->outputs.count;
  for (size_t i = 0; i < made->output_count; i++) {
    rondo_output *output = &made->outputs[i];
    *output = call->outputs.items[i].output;
    made->returns_inputs |= output->kind == RONDO_OUTPUT_OF_INPUT;
    if (output->kind != RONDO_OUTPUT_FRESH) continue;
    output->bit = made->first_bit + made->bit_count++;
    output->allocation = allocation_of(recorder, output->address);
  }
  RONDO_TRY(rondo_outputs_reserve(recorder->tree, made->output_count));
  return rondo_path_reserve(recorder->tree, (size_t)made->first_bit + made->bit_count);
}

/* The recorder ----------------------------------------------------------------------------------------------------- */

static rondo_status start(rondo_recorder *recorder, size_t key_count, uint64_t hash) {
  rondo_tree *tree = recorder->tree;
  const rondo_allocator *allocator = &tree->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *recorder->made, &recorder->made));
  rondo_recorded_call *made = recorder->made;
  made->function = recorder->function;
  made->form = recorder->form;
  made->parent = tree->current;
  made->hash = hash;
  if (made->parent != NULL) made->first_bit = made->parent->first_bit + made->parent->bit_count;
  RONDO_TRY(rondo_allocate_items(allocator, key_count, sizeof *made->key, &made->key));
  made->key_count = key_count;
  memcpy(made->key, tree->words, key_count * sizeof *made->key);
  RONDO_TRY(rondo_demoted_keep_moves(tree, made));
  RONDO_TRY(rondo_path_list_dead(tree, made->first_bit, &made->dead_before));
  const size_t count = recorder->function->options.input_count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *recorder->inputs, &recorder->inputs));
  if (count > 0) memcpy(recorder->inputs, recorder->given, count * sizeof *recorder->inputs);
  RONDO_TRY(list_blocks(recorder));
  RONDO_TRY(list_slots(recorder));
  if (recorder->function->always_captures) return RONDO_OK; /* its allocations may differ each time */
  recorder->profile =
      rondo_path_plan_find(tree, recorder->form, recorder->given, recorder->slots.count, &recorder->position);
  return RONDO_OK;
}

void rondo_recorder_begin_body(rondo_recorder *recorder, rondo_call *call) {
  assert(call->recorder == recorder);
  rondo_capture_watch_begin(&recorder->watch, recorder->function->origin->name, recorder->stream);
  rondo_body_begin(call);
}

rondo_status rondo_recorder_end_body(rondo_recorder *recorder, rondo_call *call, rondo_status returned) {
  rondo_status status = rondo_body_end(call, returned);
  rondo_capture_watch_end(&recorder->watch);
  if (rondo_stream_find_capture(recorder->stream) != NULL)
    RONDO_THEN(status, rondo_path_settle_nested(recorder->tree, recorder->stream));
  return status;
}

static rondo_status end_run(rondo_recorder *recorder, rondo_call *call, rondo_status returned) {
  recorder->has_body = false;
  const rondo_status status = rondo_recorder_end_body(recorder, call, returned);
  if (status != RONDO_OK) return abandon_by_error(recorder, call, status);
  RONDO_TRY(check_not_abandoned(recorder));
  if (call->refused != RONDO_SKIP_NONE)
    return rondo_recorder_abandon(recorder, call->refused, true, "%s", call->message);
  RONDO_TRY(check_values(recorder, call));
  RONDO_TRY(end_segment(recorder, call, true));
  const bool has_other_outputs =
      call->outputs.count != recorder->form->output_count && !recorder->function->always_captures;
  if (has_other_outputs || call->host_steps != recorder->form->host_steps) return abandon_as_changed(recorder, call);
  RONDO_TRY(check_left(recorder, call));
  return keep_outputs(recorder, call);
}

static rondo_status keep_segments(rondo_recorder *recorder) {
  assert(!recorder->is_capturing);
  assert(recorder->made->segments == NULL);
  rondo_recorded_call *made = recorder->made;
  const size_t count = recorder->segments.count;
  RONDO_TRY(rondo_allocate_items(&recorder->tree->allocator, count, sizeof *made->segments, &made->segments));
  memcpy(made->segments, recorder->segments.items, count * sizeof *made->segments);
  made->segment_count = count;
  recorder->segments.count = 0;
  return RONDO_OK;
}

/* Launches the recording as a replay, with its host steps, and adds it to the tree. */
static rondo_status commit(rondo_recorder *recorder) {
  assert(recorder->skip == RONDO_SKIP_NONE);
  rondo_tree *tree = recorder->tree;
  rondo_recorded_call *made = recorder->made;
  RONDO_TRY(rondo_recorded_reserve(tree));
  if (recorder->moved != NULL) RONDO_TRY(rondo_recorder_check(recorder));
  RONDO_TRY(keep_segments(recorder));
  if (!tree->is_preparing) RONDO_TRY(rondo_replay(tree, made, recorder->stream, recorder->given));
  rondo_recorded_add(tree, made);
  recorder->made = NULL;
  rondo_path_plan_note(tree, made, recorder->position);
  if (recorder->function->always_captures) rondo_recorded_supersede(tree, made);
  return RONDO_OK;
}

static void finish(rondo_recorder *recorder) {
  assert(!recorder->is_capturing);
  const rondo_allocator *allocator = &recorder->tree->allocator;
  for (size_t i = 0; i < recorder->segments.count; i++) {
    rondo_segment_free(recorder->tree, &recorder->segments.items[i]);
  }
  rondo_recorder_find_free(recorder);
  rondo_array_free(allocator, &recorder->segments);
  rondo_array_free(allocator, &recorder->blocks);
  rondo_array_free(allocator, &recorder->slots);
  rondo_array_free(allocator, &recorder->allocations);
  rondo_release(allocator, recorder->inputs, recorder->function->options.input_count, sizeof *recorder->inputs);
  rondo_recorded_free(recorder->tree, recorder->made);
}

/* Ends the capture, whatever happened to it. */
static void abandon_capture(rondo_recorder *recorder) {
  if (!recorder->is_capturing) return;
  rondo_graph *graph = NULL;
  rondo_status_ignore(end_capture(recorder, &graph), "the recording is abandoned");
  if (recorder->access.address != NULL) {
    recorder->skip = RONDO_SKIP_NONE; /* the body may have failed because of what it read */
    rondo_status_ignore(abandon_for_access(recorder, graph), "it is the reason from now on");
  }
  rondo_status_ignore(rondo_graph_destroy(graph), "it belongs to nobody else");
}

/* Frees outputs that were made while nothing captured, in a host step. */
static void free_uncaptured(const rondo_recorder *recorder, const rondo_call *call) {
  for (size_t i = 0; i < call->outputs.count; i++) {
    const rondo_output *output = &call->outputs.items[i].output;
    if (output->kind == RONDO_OUTPUT_FRESH && !rondo_arena_owns(recorder->tree->arena, output->address))
      rondo_owned_free_address(recorder->tree, recorder->stream, output->address);
  }
}

/* Undoes a recording that failed. Keeps the thread's last error. */
static void undo(rondo_recorder *recorder) {
  rondo_saved_error error;
  rondo_error_save(&error);
  abandon_capture(recorder);
  rondo_error_restore(&error);
}

static rondo_status begin(rondo_recorder *recorder, rondo_call *call, const rondo_record_request *request) {
  RONDO_TRY(start(recorder, request->key_count, request->hash));
  call->inputs = recorder->inputs;
  RONDO_TRY(begin_segment(recorder));
  rondo_recorder_begin_body(recorder, call);
  recorder->has_body = true;
  return RONDO_OK;
}

rondo_status rondo_record_begin(rondo_recorder *recorder, rondo_call *call, const rondo_record_request *request) {
  rondo_function *function = request->function;
  *recorder = (rondo_recorder){.tree = function->tree,
                               .function = function,
                               .form = request->form,
                               .stream = request->stream,
                               .given = request->inputs};
  *call = (rondo_call){.tree = function->tree, .function = function, .stream = request->stream, .recorder = recorder};
  call->notes_values = !function->options.freezes_values;
  rondo_error_save(&recorder->before);
  rondo_commons_begin_nested(function->tree->commons);
  return begin(recorder, call, request);
}

rondo_status rondo_record_end(rondo_recorder *recorder, rondo_call *call, rondo_status status,
                              rondo_record_result *out_result, rondo_recorded_call **out) {
  rondo_tree *tree = recorder->tree;
  *out = NULL;
  if (recorder->has_body) {
    status = end_run(recorder, call, status);
    if (status == RONDO_OK) status = commit(recorder);
  }
  rondo_commons_end_nested(tree->commons);
  if (status == RONDO_OK)
    *out = tree->last;
  else
    undo(recorder);
  free_uncaptured(recorder, call);
  rondo_body_free(call);
  out_result->skip = recorder->skip;
  out_result->has_died = recorder->cause[0] != '\0';
  memcpy(out_result->message, recorder->message, sizeof recorder->message);
  if (recorder->skip != RONDO_SKIP_NONE && recorder->is_for_good)
    rondo_form_skip(recorder->form, recorder->skip, recorder->message);
  finish(recorder);
  if (status != RONDO_OK && recorder->skip == RONDO_SKIP_NONE) return status;
  rondo_error_restore(&recorder->before); /* failures were handled, or are the reason in *out_result */
  return RONDO_OK;
}
