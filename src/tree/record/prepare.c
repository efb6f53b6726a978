/* SPDX-License-Identifier: MIT
 * Prepares a call: warms up and records as the call would, but without effects. Runs of the body are undone, and
 * recordings are not launched. At the end the path and its outputs are unchanged.
 */
#include "base/log.h"

#include <assert.h>

#include "exec/api_check.h"
#include "tree/call.h"
#include "tree/call_inputs.h"
#include "tree/eager_call.h"
#include "tree/function.h"
#include "tree/pad_to_bucket.h"
#include "tree/path/path.h"
#include "tree/record/demote_inputs.h"
#include "tree/record/function_body.h"
#include "tree/record/record_call.h"
#include "tree/record/record_gain.h"
#include "tree/record/save_inputs.h"
#include "tree/recorded_calls.h"
#include "tree/recording_key.h"
#include "tree/tree.h"
#include "tree/tree_check.h"

#define CALL "rondo_function_prepare"

/* In addition to the function's warm-ups, for a body that calls rondo_call_warm_up_again each time. */
enum { MAX_WARM_UPS = 64 };

typedef struct rondo_preparation {
  rondo_function *function;
  rondo_stream *stream;
  rondo_form *form;
} rondo_preparation;

static rondo_status refuse(const rondo_function *function, rondo_skip skip, const char *message) {
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED, CALL ": '%s' is not recorded: %s: %s",
                    function->origin->name, rondo_skip_name(skip), message);
}

/* Warming up ------------------------------------------------------------------------------------------------------- */

static rondo_status settle_and_undo(const rondo_preparation *p, rondo_saved *saved) {
  rondo_path_settle(p->function->tree, p->stream);
  return rondo_save_end(p->function->tree, p->stream, saved, false);
}

static rondo_status warm_up_once(const rondo_preparation *p) {
  rondo_tree *tree = p->function->tree;
  rondo_saved saved;
  RONDO_TRY(rondo_save(tree, p->stream, p->function, tree->inputs, &saved));
  rondo_call call;
  rondo_eager_begin(&call, p->function, p->form, p->stream, tree->inputs, true);
  rondo_status status = rondo_eager_end(&call, rondo_body_callback(&call), NULL, 0);
  RONDO_THEN(status, settle_and_undo(p, &saved));
  return status;
}

static rondo_status warm_up(const rondo_preparation *p) {
  for (uint32_t i = 0; p->form->skip == RONDO_SKIP_NONE && p->form->warm_ups > 0; i++) {
    if (i == MAX_WARM_UPS + p->function->options.warm_ups)
      return refuse(
          p->function, RONDO_SKIP_WARM_UP,
          "its body calls rondo_call_warm_up_again in every warm-up: call it only while something is not initialized");
    RONDO_TRY(warm_up_once(p));
  }
  return RONDO_OK;
}

/* Recording -------------------------------------------------------------------------------------------------------- */

static rondo_status record_once(const rondo_preparation *p, size_t key_count, rondo_record_result *out_result,
                                rondo_recorded_call **out) {
  rondo_tree *tree = p->function->tree;
  const rondo_record_request request = {.function = p->function,
                                        .form = p->form,
                                        .stream = p->stream,
                                        .inputs = tree->inputs,
                                        .key_count = key_count,
                                        .hash = rondo_key_hash(tree->words, key_count)};
  rondo_recorder recorder;
  rondo_call call;
  tree->is_preparing = true;
  rondo_status status = rondo_record_begin(&recorder, &call, &request);
  if (status == RONDO_OK) status = rondo_body_callback(&call);
  status = rondo_record_end(&recorder, &call, status, out_result, out);
  tree->is_preparing = false;
  if (status != RONDO_OK) return status;
  if (*out == NULL) {
    tree->info.rolled_back++;
    return RONDO_OK;
  }
  tree->info.prepared++;
  p->function->info.prepared++;
  rondo_log(RONDO_LOG_INFO, "tree", "'%s' is prepared: number %u", p->function->origin->name, (*out)->number);
  return RONDO_OK;
}

/* If a recording departs from its profile, it is recorded again with a new profile. */
static rondo_status record(const rondo_preparation *p, size_t key_count) {
  rondo_record_result result;
  for (int i = 0; i < RONDO_MAX_FAILURES; i++) {
    rondo_recorded_call *call;
    RONDO_TRY(record_once(p, key_count, &result, &call));
    if (call != NULL) return RONDO_OK;
    if (result.skip != RONDO_SKIP_DEPARTED) break;
  }
  return refuse(p->function, result.skip, result.message);
}

/* Makes the key of the call, with demoted inputs, and looks it up. */
static bool find_recorded(const rondo_preparation *p, size_t *out_key_count) {
  rondo_tree *tree = p->function->tree;
  if (tree->current != NULL && tree->current->demoted != NULL) rondo_demoted_apply(p->function, tree->inputs);
  const size_t count = rondo_key_make(tree, p->function, tree->inputs, tree->words);
  *out_key_count = count;
  return rondo_recorded_find(tree, tree->words, count, rondo_key_hash(tree->words, count)) != NULL;
}

static rondo_status look(const rondo_preparation *p, size_t *out_key_count, bool *out_recorded) {
  const rondo_tree *tree = p->function->tree;
  bool is_demoted;
  *out_recorded = find_recorded(p, out_key_count);
  if (*out_recorded) return RONDO_OK;
  RONDO_TRY(rondo_demoted_update(p->function, p->form, tree->inputs, *out_key_count, &is_demoted));
  if (is_demoted) *out_recorded = find_recorded(p, out_key_count);
  return RONDO_OK;
}

static rondo_status prepare_here(rondo_preparation *p) {
  rondo_function *function = p->function;
  rondo_tree *tree = function->tree;
  const char *message;
  size_t key_count = 0;
  bool is_recorded = false;
  if (tree->is_off || function->is_off)
    return refuse(function, RONDO_SKIP_DISABLED, "recording is off (rondo_tree_set_recording)");
  if (rondo_inputs_are_written_shared(function, tree->inputs))
    return refuse(function, RONDO_SKIP_MUTATED_INPUT, RONDO_INPUTS_ARE_SHARED);
  RONDO_TRY(rondo_form_find(function, tree->inputs, &p->form));
  RONDO_TRY(warm_up(p));
  if (rondo_form_is_skipped(p->form, tree->inputs)) return refuse(function, p->form->skip, p->form->message);
  if (!tree->is_eager) RONDO_TRY(look(p, &key_count, &is_recorded));
  if (is_recorded) return RONDO_OK;
  const rondo_skip skip = rondo_call_find_skip(function, p->form, &message);
  if (skip != RONDO_SKIP_NONE) return refuse(function, skip, message);
  RONDO_TRY(rondo_estimate_decide(function, p->form));
  if (p->form->skip == RONDO_SKIP_NO_GAIN) return refuse(function, p->form->skip, p->form->message);
  if (!rondo_recorded_evict(tree)) return refuse(function, RONDO_SKIP_RECORDING_LIMIT, RONDO_ALL_ARE_NEEDED);
  return record(p, key_count);
}

static rondo_status prepare_padded(rondo_preparation *p) {
  rondo_tree *tree = p->function->tree;
  RONDO_TRY(rondo_padding_begin(CALL, p->function, p->stream, false));
  rondo_memory_protect_inputs(tree, p->stream, p->function, true);
  const rondo_status status = prepare_here(p);
  rondo_memory_protect_inputs(tree, p->stream, p->function, false);
  const rondo_status ended = rondo_padding_end(p->function, p->stream, false);
  return status == RONDO_OK ? ended : status;
}

/* The path --------------------------------------------------------------------------------------------------------- */

/* The state of a path that is suspended. */
typedef struct suspended_path {
  size_t bits;
  bool is_eager;
} suspended_path;

/* Whether the next call begins a path. */
static bool is_step_over(const rondo_tree *tree) {
  const bool begins_step = tree->scopes == 0 && !tree->is_marking && !tree->is_backward_pending;
  return begins_step || tree->step != tree->path_step || rondo_path_is_dead(tree);
}

static rondo_status prepare_at_root(rondo_preparation *p) {
  assert(p->function->tree->suspended == NULL);
  rondo_tree *tree = p->function->tree;
  const suspended_path suspended = {tree->path_bits, tree->is_eager};
  rondo_inputs_leave_path(p->function, tree->inputs);
  tree->has_unknown_outputs = !rondo_path_is_dead(tree);
  tree->suspended = tree->current;
  tree->current = NULL;
  tree->path_bits = 0;
  tree->is_eager = false;
  const rondo_status status = prepare_padded(p);
  tree->has_unknown_outputs = false;
  tree->current = tree->suspended;
  tree->suspended = NULL;
  tree->path_bits = suspended.bits;
  tree->is_eager = suspended.is_eager;
  return status;
}

static rondo_status prepare(rondo_preparation *p, const rondo_input *given) {
  rondo_tree *tree = p->function->tree;
  RONDO_TRY(rondo_call_refuse_capture(CALL, p->stream));
  RONDO_TRY(rondo_inputs_resolve(CALL, p->function, given, tree->inputs));
  RONDO_TRY(rondo_path_follow(tree, p->stream));
  rondo_path_settle(tree, p->stream);
  return is_step_over(tree) ? prepare_at_root(p) : prepare_padded(p);
}

rondo_status rondo_function_prepare(rondo_function *function, rondo_stream *stream, const rondo_input *inputs,
                                    size_t input_count) {
  RONDO_TRY(rondo_call_check(CALL, function, stream, inputs, input_count));
  RONDO_TRY(rondo_tree_enter(function->tree, CALL));
  rondo_preparation preparation = {.function = function, .stream = stream};
  const rondo_status status = prepare(&preparation, inputs);
  rondo_tree_check(function->tree);
  rondo_tree_leave(function->tree);
  return status;
}
