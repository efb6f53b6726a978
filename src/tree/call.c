/* SPDX-License-Identifier: MIT
 * A call of a function, from its begin to its end. It resolves the inputs once, begins a step if the call begins one,
 * finds the recording and launches it. A call without a recording takes the slow path: it warms up, is recorded, or
 * runs eagerly for a reason.
 *
 * Invariant: a replay neither allocates nor locks. Threads: the thread that entered the tree.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tree/call.h"
#include "tree/call_inputs.h"
#include "tree/eager_call.h"
#include "tree/function.h"
#include "tree/pad_to_bucket.h"
#include "tree/path/owned_buffer.h"
#include "tree/path/path.h"
#include "tree/path/path_plan.h"
#include "tree/path/path_warm_up.h"
#include "tree/record/demote_inputs.h"
#include "tree/record/function_body.h"
#include "tree/record/record_call.h"
#include "tree/record/record_gain.h"
#include "tree/recorded_calls.h"
#include "tree/recording_key.h"
#include "tree/replay.h"
#include "tree/skip_reason.h"
#include "tree/tree.h"
#include "tree/tree_check.h"

void rondo_call_drop_given(const rondo_input *given, size_t count) {
  for (size_t i = 0; given != NULL && i < count; i++)
    if (given[i].give) rondo_buffer_release(given[i].buffer);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* Without marked steps or scopes, each call is a step, unless a backward call is to follow. */
static void begin_step(rondo_tree *tree) {
  if (tree->scopes == 0 && !tree->is_marking && !tree->is_backward_pending) tree->step++;
}

/* A call of a new step begins a new path. So does a call when no output of the old path is retained. The first `inputs`
 * of tree->inputs are the call's: all of them, or none if they are raw. */
static rondo_status enter_path(rondo_function *function, rondo_stream *stream, size_t inputs) {
  rondo_tree *tree = function->tree;
  const bool is_new_step = tree->step != tree->path_step, is_dead = rondo_path_is_dead(tree);
  if (!is_new_step && !is_dead) return RONDO_OK;
  if (!is_dead || tree->current != NULL || tree->is_eager) {
    RONDO_TRY(rondo_path_finish(tree, stream, inputs));
    if (inputs > 0) rondo_inputs_leave_path(function, tree->inputs);
    if (__builtin_expect(++tree->steady_paths == tree->steady_after, 0) && !tree->options.no_plan_again)
      rondo_path_plan_when_steady(tree, stream, inputs);
  }
  tree->info.steps += is_new_step;
  tree->path_step = tree->step;
  return RONDO_OK;
}

/* Replays ---------------------------------------------------------------------------------------------------------- */

static void note_outcome(const rondo_function *function, rondo_call_outcome outcome, rondo_skip skip,
                         uint32_t recording) {
  rondo_tree *tree = function->tree;
  tree->last_call.outcome = outcome;
  tree->last_call.skip = skip;
  tree->last_call.recording = recording;
  tree->last_call.step = tree->step;
  tree->last_call.function = function->origin->name;
}

static rondo_status finish_recorded(const rondo_call_request *asked, rondo_recorded_call *call,
                                    rondo_call_outcome outcome) {
  rondo_tree *tree = asked->function->tree;
  size_t made_buffers;
  rondo_path_advance(tree, call);
  note_outcome(asked->function, outcome, RONDO_SKIP_NONE, call->number);
  if (call->output_count == 0) return RONDO_OK;
  return rondo_outputs_make(asked->function, RONDO_OUTPUTS_RECORDED, call->outputs, call->output_count, tree->inputs,
                            asked->outputs, asked->output_count, &made_buffers);
}

static rondo_status launch(const rondo_call_request *asked, rondo_recorded_call *call) {
  rondo_tree *tree = asked->function->tree;
  if (__builtin_expect(asked->raw != NULL || call->bound_count == 0, 1))
    return rondo_replay_launch(call, asked->stream);
  return rondo_replay(tree, call, asked->stream, tree->inputs);
}

static rondo_status replay(const rondo_call_request *asked, rondo_recorded_call *call) {
  assert(call->function == asked->function);
  rondo_tree *tree = asked->function->tree;
  RONDO_TRY(rondo_outputs_check_count(asked->function, call->output_count, asked->output_count));
  RONDO_TRY(launch(asked, call));
  call->replays++;
  tree->info.replayed++;
  asked->function->info.replayed++;
  if (__builtin_expect(rondo_log_on(RONDO_LOG_DEBUG), 0))
    rondo_log(RONDO_LOG_DEBUG, "tree", "'%s' is replayed: number %" PRIu32, asked->function->origin->name,
              call->number);
  return finish_recorded(asked, call, RONDO_CALL_REPLAYED);
}

static inline bool is_replayable(const rondo_function *function) {
  return !function->tree->is_eager && !function->tree->is_off && !function->is_off && !function->always_captures;
}

/* Finds the recorded call of raw inputs and sets their addresses. NULL: the call needs more than that, and the inputs
 * are resolved now. */
static rondo_recorded_call *find_raw(rondo_call_request *asked) {
  assert(asked->raw != NULL && asked->function->takes_raw);
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  const bool is_on = is_replayable(function);
  rondo_recorded_call *call = is_on ? rondo_recorded_guess_raw(tree, function, asked->raw) : NULL;
  const bool is_usual = call != NULL && !call->returns_inputs && asked->output_count <= call->output_count;
  if (__builtin_expect(is_usual, 1) && rondo_replay_set_addresses(tree, call, asked->raw)) return call;
  rondo_status_ignore(rondo_inputs_resolve(asked->name, function, asked->raw, tree->inputs),
                      "raw inputs are always valid");
  asked->raw = NULL;
  return NULL;
}

/* The recording of a call with resolved inputs. NULL: there is none yet, or the call must not be replayed. */
static rondo_recorded_call *find_resolved(rondo_call_request *asked) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  if (__builtin_expect(function->has_written, 0) && rondo_inputs_are_written_shared(function, tree->inputs))
    return NULL;
  if (__builtin_expect(tree->current != NULL && tree->current->demoted != NULL, 0))
    rondo_demoted_apply(function, tree->inputs);
  rondo_recorded_call *call = NULL;
  const bool is_on = is_replayable(function);
  if (is_on) call = rondo_recorded_guess(tree, function, tree->inputs);
  if (__builtin_expect(call == NULL, 0)) {
    asked->key_count = rondo_key_make(tree, function, tree->inputs, tree->words);
    asked->hash = rondo_key_hash(tree->words, asked->key_count);
    if (is_on) call = rondo_recorded_find(tree, tree->words, asked->key_count, asked->hash);
  }
  return call;
}

/* The slow path ---------------------------------------------------------------------------------------------------- */

static void note_skip(const rondo_function *function, rondo_call_outcome outcome, rondo_skip skip,
                      const char *message) {
  rondo_tree *tree = function->tree;
  note_outcome(function, outcome, skip, 0);
  (void)snprintf(tree->message, sizeof tree->message, "%s", message);
}

/* The call ran eagerly, so later calls of the path do too. */
static void continue_eagerly(const rondo_call_request *asked, rondo_form *form) {
  rondo_tree *tree = asked->function->tree;
  tree->is_eager = true;
  rondo_path_warm_up_add(asked->function, form, asked->outputs, asked->output_count);
}

static rondo_status begin_eager(const rondo_call_request *asked, rondo_body_run *run, rondo_form *form, rondo_skip skip,
                                const char *message) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  rondo_skip_note(function, skip, message);
  const bool is_refused = tree->options.strict && rondo_skip_is_strict(skip);
  note_skip(function, is_refused ? RONDO_CALL_NONE : RONDO_CALL_EAGER, skip, message);
  if (is_refused) return rondo_skip_refuse(function, skip, message);
  run->kind = RONDO_RUN_EAGER;
  run->form = form;
  run->skip = skip;
  rondo_eager_begin(&run->call, function, form, asked->stream, tree->inputs, skip == RONDO_SKIP_WARM_UP);
  return RONDO_OK;
}

static rondo_status end_eager(const rondo_call_request *asked, rondo_body_run *run, rondo_status returned) {
  const bool is_warm_up = run->skip == RONDO_SKIP_WARM_UP || run->skip == RONDO_SKIP_AFTER_WARM_UP;
  const rondo_status status = rondo_eager_end(&run->call, returned, asked->outputs, asked->output_count);
  if (status == RONDO_OK && (run->is_departed || is_warm_up))
    continue_eagerly(asked, run->form);
  else if (run->is_departed)
    asked->function->tree->is_eager = true;
  return status;
}

/* Counts the recordings of the function after the path's end. */
static uint32_t count_siblings(const rondo_function *function) {
  const rondo_tree *tree = function->tree;
  uint32_t count = 0;
  const rondo_recorded_call *call = rondo_path_children(tree);
  for (; call != NULL; call = call->sibling) count += call->function == function;
  return count;
}

static bool wants_recording(const rondo_function *function) {
  const rondo_tree_options *options = &function->tree->options;
  const rondo_recording_question question = {.struct_size = sizeof question,
                                             .recordings = function->info.recordings,
                                             .function = function->origin->name,
                                             .asked = (rondo_function *)(uintptr_t)function};
  return options->should_record == NULL || options->should_record(options->user, &question);
}

/* The newest recording of the form after the path's end. */
static const rondo_recorded_call *find_latest(const rondo_tree *tree, const rondo_form *form) {
  const rondo_recorded_call *call = rondo_path_children(tree);
  const rondo_recorded_call *latest = NULL;
  for (; call != NULL; call = call->sibling)
    if (call->form == form && (latest == NULL || call->number > latest->number)) latest = call;
  return latest;
}

static void note_moved(rondo_function *function, bool is_full, size_t input, const char *before, const char *now) {
  function->info.moved++;
  (void)snprintf(function->moved, sizeof function->moved,
                 "static input %zu was at 0x%" PRIxPTR " when it was recorded and is at 0x%" PRIxPTR
                 " now; each address makes another recording%s: keep it at one address (rondo_buffer_create), or "
                 "declare it RONDO_INPUT_MOVING, so that it is copied or patched",
                 input, (uintptr_t)before, (uintptr_t)now,
                 is_full ? ", and the limit is reached (rondo_tree_options.max_recordings_per_parent)" : "");
  rondo_log(function->info.moved == 1 ? RONDO_LOG_INFO : RONDO_LOG_DEBUG, "tree", "'%s': %s", function->origin->name,
            function->moved);
}

/* Compares the call's key, in tree->words, with the latest recording of the form after the same parent. Returns whether
 * a static input moved, and notes it in function->moved (FW-7). A moving pointer is the usual reason why a function is
 * recorded repeatedly. */
static bool find_moved(rondo_function *function, const rondo_form *form, bool is_full) {
  const rondo_tree *tree = function->tree;
  const rondo_recorded_call *latest = find_latest(tree, form);
  if (latest == NULL) return false;
  const uint64_t *then = rondo_key_inputs(function, latest->key), *now = rondo_key_inputs(function, tree->words);
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_keyed_input recorded, asked;
    then = rondo_key_read_input(then, false, &recorded);
    now = rondo_key_read_input(now, false, &asked);
    if (recorded.role != RONDO_ROLE_STATIC || asked.role != RONDO_ROLE_STATIC) continue;
    if (recorded.address == asked.address) continue;
    note_moved(function, is_full, i, recorded.address, asked.address);
    return true;
  }
  return false;
}

rondo_skip rondo_call_find_skip(rondo_function *function, const rondo_form *form, const char **out_message) {
  const rondo_tree *tree = function->tree;
  *out_message = "";
  if (tree->is_eager) {
    *out_message = "an earlier call of the step was a warm-up, so addresses are not fixed yet";
    return RONDO_SKIP_AFTER_WARM_UP;
  }
  if (rondo_demoted_skips(function, tree->inputs)) {
    *out_message =
        "one of its inputs was a different output of the path too often (rondo_function_options.demote_after): pass "
        "the "
        "same output each time, or let it be copied or patched (demotion)";
    return RONDO_SKIP_MOVING_OUTPUT;
  }
  const bool is_full = function->region == NULL && count_siblings(function) >= tree->options.max_recordings_per_parent;
  const bool has_moved = find_moved(function, form, is_full);
  if (is_full) {
    *out_message =
        has_moved
            ? function->moved
            : "it has reached the maximum number of recordings after one call "
              "(rondo_tree_options.max_recordings_per_parent): the set of retained outputs of its step keeps changing";
    return RONDO_SKIP_RECORDING_LIMIT;
  }
  if (wants_recording(function)) return RONDO_SKIP_NONE;
  *out_message = "rondo_tree_options.should_record returned false";
  return RONDO_SKIP_REFUSED;
}

/* Recordings beyond a region's limits are evicted once the new one has taken over an exec. */
static void keep_region_limits(rondo_function *function) {
  if (function->region != NULL)
    rondo_recorded_evict_of(function, function->options.max_shapes, function->max_exec_bytes);
}

/* After the first death, the next call is recorded. After each further one in a row, twice as many calls and one run
 * eagerly before that, so captures that always die cost little. */
static void wait_after_death(rondo_form *form, const char *message) {
  enum { MOST_DOUBLINGS = 10 };
  form->waits = (1U << form->deaths) - 1;
  if (form->deaths < MOST_DOUBLINGS) form->deaths++;
  (void)snprintf(form->message, sizeof form->message, "%s", message);
}

static rondo_status begin_after_failure(const rondo_call_request *asked, rondo_body_run *run,
                                        const rondo_record_result *result) {
  rondo_form *form = run->form;
  asked->function->tree->info.rolled_back++;
  asked->function->died += result->has_died;
  run->has_died = result->has_died;
  if (run->is_abandoned) return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_LEFT, "it was abandoned");
  if (result->skip == RONDO_SKIP_CAPTURE_DIED)
    wait_after_death(form, result->message);
  else if (++form->failures >= RONDO_MAX_FAILURES)
    rondo_form_skip(form, result->skip, result->message);
  run->is_departed = result->skip == RONDO_SKIP_DEPARTED;
  return begin_eager(asked, run, form, result->skip, result->message);
}

static rondo_status end_recording(const rondo_call_request *asked, rondo_body_run *run, rondo_status status) {
  rondo_tree *tree = asked->function->tree;
  rondo_record_result result;
  rondo_recorded_call *call;
  RONDO_TRY(rondo_record_end(&run->recorder, &run->call, status, &result, &call));
  if (call == NULL) return begin_after_failure(asked, run, &result);
  run->form->failures = run->form->deaths = 0;
  tree->info.recorded++;
  asked->function->info.recorded++;
  rondo_log(RONDO_LOG_INFO, "tree", "'%s' is recorded: number %" PRIu32 " after %" PRIu32 ", %zu bytes of the arena",
            asked->function->origin->name, call->number, call->parent == NULL ? 0 : call->parent->number,
            call->arena_end);
  if (asked->output_count > call->output_count)
    return rondo_outputs_check_count(asked->function, call->output_count, asked->output_count);
  RONDO_TRY(finish_recorded(asked, call, RONDO_CALL_RECORDED));
  keep_region_limits(asked->function);
  return RONDO_OK;
}

static rondo_status begin_recording(const rondo_call_request *asked, rondo_body_run *run, rondo_form *form) {
  rondo_tree *tree = asked->function->tree;
  assert(form->warm_ups == 0 && !rondo_form_is_skipped(form, tree->inputs));
  if (!rondo_recorded_evict(tree))
    return begin_eager(asked, run, form, RONDO_SKIP_RECORDING_LIMIT, RONDO_ALL_ARE_NEEDED);
  const rondo_record_request request = {.function = asked->function,
                                        .form = form,
                                        .stream = asked->stream,
                                        .inputs = tree->inputs,
                                        .key_count = asked->key_count,
                                        .hash = asked->hash};
  run->form = form;
  const rondo_status status = rondo_record_begin(&run->recorder, &run->call, &request);
  if (status != RONDO_OK) return end_recording(asked, run, status);
  run->kind = RONDO_RUN_RECORDED;
  return RONDO_OK;
}

static rondo_status begin_new(rondo_call_request *asked, rondo_body_run *run) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  rondo_form *form;
  const char *message;
  if (function->has_written && rondo_inputs_are_written_shared(function, tree->inputs))
    return begin_eager(asked, run, NULL, RONDO_SKIP_MUTATED_INPUT, RONDO_INPUTS_ARE_SHARED);
  if (tree->is_off || function->is_off)
    return begin_eager(asked, run, NULL, RONDO_SKIP_DISABLED, "recording is off (rondo_tree_set_recording)");
  RONDO_TRY(rondo_form_find(function, tree->inputs, &form));
  if (rondo_form_is_skipped(form, tree->inputs)) return begin_eager(asked, run, form, form->skip, form->message);
  if (form->warm_ups > 0) return begin_eager(asked, run, form, RONDO_SKIP_WARM_UP, "");
  if (form->waits > 0) {
    form->waits--;
    return begin_eager(asked, run, form, RONDO_SKIP_CAPTURE_DIED, form->message);
  }
  if (!tree->is_eager && !asked->is_demoted && !function->always_captures) {
    RONDO_TRY(rondo_demoted_update(function, form, tree->inputs, asked->key_count, &asked->is_demoted));
    if (asked->is_demoted) { /* the key has changed */
      rondo_recorded_call *const call = find_resolved(asked);
      return call != NULL ? replay(asked, call) : begin_new(asked, run);
    }
  }
  const rondo_skip skip = rondo_call_find_skip(function, form, &message);
  if (skip != RONDO_SKIP_NONE) return begin_eager(asked, run, form, skip, message);
  RONDO_TRY(rondo_estimate_decide(function, form));
  if (form->skip == RONDO_SKIP_NO_GAIN) return begin_eager(asked, run, form, form->skip, form->message);
  return begin_recording(asked, run, form);
}

/* Without marked steps, a training step lasts until its backward call. */
static void note_kind(const rondo_function *function) {
  if (function->options.kind == RONDO_FUNCTION_FORWARD) function->tree->is_backward_pending = true;
  if (function->options.kind == RONDO_FUNCTION_BACKWARD) function->tree->is_backward_pending = false;
}

static inline rondo_status end_outermost(const rondo_call_request *asked, rondo_status status) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  if (__builtin_expect(tree->is_watched, 0)) rondo_memory_protect_inputs(tree, asked->stream, function, false);
  if (__builtin_expect(function->padding != NULL, 0)) {
    const rondo_status ended = rondo_padding_end(function, asked->stream, status == RONDO_OK);
    if (status == RONDO_OK) status = ended;
  }
  if (tree->step_buffers != NULL) rondo_path_sweep(tree, asked->stream);
  if (status == RONDO_OK) note_kind(function);
  rondo_path_check(tree);
  return status;
}

static rondo_status enter_outermost(rondo_call_request *asked, const rondo_input *given) {
  assert(asked->function->tree->active == NULL);
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  if (asked->raw == NULL && function->options.input_count > 0)
    RONDO_TRY(rondo_inputs_resolve(asked->name, function, given, tree->inputs));
  RONDO_TRY(rondo_path_follow(tree, asked->stream));
  rondo_path_settle(tree, asked->stream);
  begin_step(tree);
  RONDO_TRY(enter_path(function, asked->stream, asked->raw != NULL ? 0 : function->options.input_count));
  if (__builtin_expect(function->padding != NULL, 0))
    RONDO_TRY(rondo_padding_begin("rondo_function_call", function, asked->stream, true));
  if (__builtin_expect(tree->is_watched, 0)) rondo_memory_protect_inputs(tree, asked->stream, function, true);
  return RONDO_OK;
}

/* Calls inside bodies and captures --------------------------------------------------------------------------------- */

static void release_inputs(const rondo_function *function, rondo_resolved_input *inputs) {
  rondo_release(&function->tree->allocator, inputs, function->options.input_count, sizeof *inputs);
}

/* The work becomes part of the enclosing body or capture. */
static rondo_status begin_inside(const rondo_call_request *asked, const rondo_input *given, rondo_run_kind kind,
                                 rondo_body_run *run) {
  rondo_function *function = asked->function;
  const rondo_skip skip = kind == RONDO_RUN_NESTED ? RONDO_SKIP_NESTED : RONDO_SKIP_CAPTURING;
  RONDO_TRY(rondo_allocate_items(&function->tree->allocator, function->options.input_count, sizeof *run->inputs,
                                 &run->inputs));
  const rondo_status status = rondo_inputs_resolve(asked->name, function, given, run->inputs);
  if (status != RONDO_OK) {
    release_inputs(function, run->inputs);
    return status;
  }
  rondo_skip_note(function, skip, "");
  if (skip == RONDO_SKIP_CAPTURING) note_skip(function, RONDO_CALL_EAGER, skip, "");
  run->kind = kind;
  rondo_eager_begin(&run->call, function, NULL, asked->stream, run->inputs, false);
  return RONDO_OK;
}

static rondo_status end_inside(const rondo_call_request *asked, rondo_body_run *run, rondo_status returned) {
  const rondo_status status = rondo_eager_end(&run->call, returned, asked->outputs, asked->output_count);
  release_inputs(asked->function, run->inputs);
  return status;
}

static rondo_status begin_nested(const rondo_call_request *asked, const rondo_input *given, rondo_body_run *run) {
  const rondo_call *body = asked->function->tree->active;
  if (body->recorder != NULL) RONDO_TRY(rondo_recorder_require_stream(body->recorder, asked->function, asked->stream));
  return begin_inside(asked, given, RONDO_RUN_NESTED, run);
}

static void leave_capture(const rondo_call_request *asked, rondo_body_run *run) {
  rondo_tree *tree = asked->function->tree;
  rondo_capture_watch_end(&run->watch);
  rondo_status_ignore(rondo_path_settle_nested(tree, asked->stream), "the capture is invalid, or owns the memory");
  rondo_commons_end_nested(tree->commons);
}

/* The stream captures for the caller or for another tree. Allocations of calls inside the body are freed in this
 * capture unless the body keeps them. A stream without a capture would do stray work, which is refused. */
static rondo_status begin_in_capture(const rondo_call_request *asked, const rondo_input *given, rondo_body_run *run) {
  RONDO_TRY(rondo_capture_refuse_stray(asked->stream, asked->name));
  rondo_commons_begin_nested(asked->function->tree->commons);
  rondo_capture_watch_begin(&run->watch, asked->function->origin->name, asked->stream);
  const rondo_status status = begin_inside(asked, given, RONDO_RUN_CAPTURED, run);
  if (status != RONDO_OK) leave_capture(asked, run);
  return status;
}

static rondo_status end_in_capture(const rondo_call_request *asked, rondo_body_run *run, rondo_status returned) {
  const rondo_status status = end_inside(asked, run, returned);
  leave_capture(asked, run);
  return status;
}

/* From begin to end ------------------------------------------------------------------------------------------------ */

static inline bool is_outermost(const rondo_call_request *asked) {
  return asked->function->tree->active == NULL && rondo_stream_runs_at_once(asked->stream);
}

/* Completes a call that is replayed, or fails. Returns whether it did. If not, a run of the body is due. */
static bool complete_without_run(rondo_call_request *asked, const rondo_input *given, rondo_status *status) {
  asked->function->info.calls++;
  asked->function->tree->info.calls++;
  if (__builtin_expect(!is_outermost(asked), 0)) return false;
  *status = enter_outermost(asked, given);
  if (__builtin_expect(*status != RONDO_OK, 0)) return true;
  rondo_recorded_call *call = asked->raw != NULL ? find_raw(asked) : NULL;
  if (__builtin_expect(call == NULL, 0)) call = find_resolved(asked);
  if (__builtin_expect(call == NULL, 0)) return false;
  *status = end_outermost(asked, replay(asked, call));
  return true;
}

static rondo_status begin_run(rondo_call_request *asked, const rondo_input *given, rondo_body_run *run) {
  run->is_departed = run->has_died = run->is_abandoned = false;
  if (asked->function->tree->active != NULL) return begin_nested(asked, given, run);
  if (!rondo_stream_runs_at_once(asked->stream)) return begin_in_capture(asked, given, run);
  const rondo_status status = begin_new(asked, run);
  return run->kind == RONDO_RUN_NONE ? end_outermost(asked, status) : RONDO_OK;
}

rondo_status rondo_call_begin(rondo_call_request *asked, const rondo_input *given, rondo_body_run *run) {
  rondo_status status;
  run->kind = RONDO_RUN_NONE;
  return complete_without_run(asked, given, &status) ? status : begin_run(asked, given, run);
}

rondo_status rondo_call_end(rondo_call_request *asked, rondo_body_run *run, rondo_status returned) {
  const rondo_run_kind kind = run->kind;
  run->kind = RONDO_RUN_NONE;
  if (kind == RONDO_RUN_NESTED) return end_inside(asked, run, returned);
  if (kind == RONDO_RUN_CAPTURED) return end_in_capture(asked, run, returned);
  const rondo_status status =
      kind == RONDO_RUN_RECORDED ? end_recording(asked, run, returned) : end_eager(asked, run, returned);
  return run->kind == RONDO_RUN_NONE ? end_outermost(asked, status) : RONDO_OK;
}

/* Apart from the replay, which has no need of this large frame. */
static __attribute__((noinline)) rondo_status call_body(rondo_call_request *asked, const rondo_input *given) {
  rondo_body_run run;
  run.kind = RONDO_RUN_NONE;
  rondo_status status = begin_run(asked, given, &run);
  while (run.kind != RONDO_RUN_NONE) status = rondo_call_end(asked, &run, rondo_body_callback(&run.call));
  return status;
}

static rondo_status call_entered(rondo_call_request *asked, const rondo_input *given) {
  rondo_status status;
  return complete_without_run(asked, given, &status) ? status : call_body(asked, given);
}

/* Argument checks -------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) rondo_status refuse(const char *call, const rondo_function *function,
                                                     const rondo_stream *stream, const rondo_input *inputs,
                                                     size_t input_count) {
  RONDO_TRY(rondo_check_call(call, "the function", function));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  if (input_count > 0) RONDO_TRY(rondo_require(call, "inputs", inputs));
  RONDO_TRY(rondo_require_device(call, "the stream", function->tree->device, stream->device));
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                    "%s: '%s' has %zu inputs, but the call passes %zu", call, function->origin->name,
                    function->options.input_count, input_count);
}

rondo_status rondo_call_check(const char *call, const rondo_function *function, const rondo_stream *stream,
                              const rondo_input *inputs, size_t input_count) {
  const bool fine = function != NULL && stream != NULL && (inputs != NULL || input_count == 0) &&
                    function->tree->device == stream->device && input_count == function->options.input_count &&
                    !rondo_in_callback();
  return __builtin_expect(fine, 1) ? RONDO_OK : refuse(call, function, stream, inputs, input_count);
}

rondo_status rondo_call_refuse_capture(const char *call, rondo_stream *stream) {
  if (rondo_stream_find_capture(stream) == NULL) return rondo_capture_refuse_stray(stream, call);
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: %s captures: call it before the capture begins or after its end", call, stream->label);
}

static rondo_status call_checked(rondo_call_request *asked, const rondo_input *given) {
  rondo_tree *tree = asked->function->tree;
  if (rondo_tree_is_mine(tree)) return call_entered(asked, given);
  RONDO_TRY(rondo_tree_enter(tree, "rondo_function_call"));
  const rondo_status status = call_entered(asked, given);
  rondo_tree_leave(tree);
  return status;
}

rondo_status rondo_function_call(rondo_function *function, rondo_stream *stream, const rondo_input *inputs,
                                 size_t input_count, rondo_buffer **outputs, size_t output_count) {
  const char *const call = "rondo_function_call";
  if (outputs != NULL) rondo_call_clear_outputs(outputs, output_count);
  rondo_call_request asked = {
      .name = call, .function = function, .stream = stream, .outputs = outputs, .output_count = output_count};
  rondo_status status = rondo_call_check(call, function, stream, inputs, input_count);
  if (status == RONDO_OK && output_count > 0) status = rondo_require(call, "outputs", (const void *)outputs);
  if (status == RONDO_OK) {
    asked.raw = rondo_inputs_find_raw(function, inputs);
    status = call_checked(&asked, inputs);
  }
  if (asked.raw == NULL) rondo_call_drop_given(inputs, input_count);
  return status;
}
