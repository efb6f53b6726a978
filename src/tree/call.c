/* SPDX-License-Identifier: MIT
 * A call: its inputs looked at once, its step begun, its recording found and launched. What is not found goes the slow
 * way: warmed up, recorded, or run as it is for a reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/logging.h"
#include "tree/function.h"
#include "tree/own.h"
#include "tree/plain.h"

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_input(const rondo_function *function, size_t index, rondo_reason reason, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "rondo_function_call: input %zu of '%s' %s", index,
                    function->origin->name, what);
}

static rondo_status resolve_buffer(const rondo_function *function, size_t index, const rondo_input *given,
                                   rondo_resolved_input *out) {
  const rondo_buffer *buffer = given->buffer;
  if (!rondo_buffer_is_current(buffer)) return rondo_buffer_refuse_stale("rondo_function_call", buffer);
  char *const memory = rondo_buffer_memory(buffer);
  const size_t offset = given->address == NULL ? 0 : (size_t)((char *)given->address - memory);
  if (offset > buffer->extent.bytes || given->bytes > buffer->extent.bytes - offset)
    return refuse_input(function, index, RONDO_REASON_OUT_OF_RANGE, "is not inside its buffer");
  out->buffer = given->buffer;
  out->address = memory + offset;
  out->bytes = given->bytes == 0 ? buffer->extent.bytes - offset : given->bytes;
  if (given->type == 0) {
    out->type = buffer->extent.type;
    out->rank = buffer->extent.rank;
    out->shape = buffer->extent.shape;
  }
  const rondo_buffer *base = buffer->base != NULL ? buffer->base : buffer;
  if (base->kind == RONDO_BUFFER_ARENA && base->commons == function->tree->commons) out->way = RONDO_WAY_MANAGED;
  out->is_sole = given->give && buffer->base == NULL && offset == 0 && base->kind == RONDO_BUFFER_ARENA &&
                 atomic_load_explicit(&buffer->references, memory_order_relaxed) == 1;
  return RONDO_OK;
}

static rondo_status resolve_memory(const rondo_function *function, size_t index, const rondo_input *given,
                                   rondo_resolved_input *out) {
  out->type = given->type;
  out->rank = given->rank;
  out->shape = given->shape;
  if (given->rank > RONDO_TREE_MAX_RANK)
    return refuse_input(function, index, RONDO_REASON_SHAPE, "has more dimensions than RONDO_TREE_MAX_RANK");
  if (given->buffer != NULL) return resolve_buffer(function, index, given, out);
  if (given->bytes > 0 && given->address == NULL)
    return refuse_input(function, index, RONDO_REASON_NULL_ARGUMENT, "has bytes and neither buffer nor address");
  out->address = given->address;
  out->bytes = given->bytes;
  return RONDO_OK;
}

static rondo_status resolve(const rondo_function *function, const rondo_input *given, rondo_resolved_input *out) {
  for (size_t i = 0; i < function->options.input_count; i++) {
    const uint32_t kind = function->options.inputs[i];
    out[i].is_mutated = (kind & RONDO_INPUT_MUTATED) != 0;
    out[i].is_sole = out[i].is_of_ending = false;
    out[i].type = out[i].rank = 0;
    out[i].buffer = NULL;
    switch (kind & 0xff) {
      case RONDO_INPUT_SCALAR:
        out[i].way = RONDO_WAY_SCALAR;
        out[i].address = NULL;
        out[i].bytes = given[i].scalar;
        break;
      case RONDO_INPUT_OPAQUE:
        out[i].way = RONDO_WAY_OPAQUE;
        out[i].address = given[i].address;
        out[i].bytes = 0;
        break;
      default:
        out[i].way = (kind & 0xff) == RONDO_INPUT_STATIC ? RONDO_WAY_STATIC : RONDO_WAY_MOVING;
        RONDO_TRY(resolve_memory(function, i, &given[i], &out[i]));
    }
  }
  return RONDO_OK;
}

/* Outputs of the path that ends are no longer of a path, nor where they were if they were cloned. */
static void resolve_again(const rondo_function *function, const rondo_input *given, rondo_resolved_input *inputs) {
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_resolved_input *input = &inputs[i];
    if (input->way != RONDO_WAY_MANAGED) continue;
    const rondo_buffer *buffer = input->buffer;
    const rondo_buffer *base = buffer->base != NULL ? buffer->base : buffer;
    const size_t offset = given[i].address == NULL ? 0 : (size_t)(input->address - rondo_buffer_memory(buffer));
    input->way = RONDO_WAY_MOVING;
    input->is_sole = false;
    input->is_of_ending = base->kind == RONDO_BUFFER_ARENA;
    if (!input->is_of_ending) input->address = rondo_buffer_memory(buffer) + offset;
  }
}

/* Given references go, whatever became of the call. */
static void drop_given(const rondo_input *given, size_t count) {
  for (size_t i = 0; given != NULL && i < count; i++)
    if (given[i].give) rondo_buffer_release(given[i].buffer);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* Without marks and scopes each call is a step, unless a backward is to come. */
static void begin_step(rondo_tree *tree) {
  if (tree->scopes == 0 && !tree->is_marking && !tree->is_backward_pending) tree->step++;
}

/* A call of a new step begins a new path; so does one when nobody holds anything of the old path. */
static rondo_status enter_path(rondo_function *function, rondo_stream *stream, const rondo_input *given) {
  rondo_tree *tree = function->tree;
  const bool is_new_step = tree->step != tree->path_step;
  if (is_new_step) {
    tree->path_step = tree->step;
    tree->steps++;
  } else if (!rondo_path_is_dead(tree)) {
    return RONDO_OK;
  }
  if (tree->current == NULL && !tree->is_unrecorded && rondo_path_is_dead(tree)) return RONDO_OK;
  RONDO_TRY(rondo_path_finish(tree, stream, function->options.input_count));
  resolve_again(function, given, tree->inputs);
  return RONDO_OK;
}

/* The slow way ----------------------------------------------------------------------------------------------------- */

typedef struct rondo_asked {
  rondo_function *function;
  rondo_stream *stream;
  rondo_buffer **outputs;
  size_t output_count;
  size_t key_count;
  uint64_t hash;
} rondo_asked;

static void note_outcome(const rondo_function *function, rondo_call_outcome outcome, rondo_skip skip,
                         uint32_t recording) {
  rondo_tree *tree = function->tree;
  tree->last_call.outcome = outcome;
  tree->last_call.skip = skip;
  tree->last_call.recording = recording;
  tree->last_call.step = tree->step;
  tree->last_call.function = function->origin->name;
}

static rondo_status run_plain(const rondo_asked *asked, rondo_form *form, rondo_skip skip, const char *message) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  rondo_skip_note(function, skip, message);
  if (tree->options.strict && rondo_skip_is_strict(skip)) return rondo_skip_refuse(function, skip, message);
  note_outcome(function, RONDO_CALL_UNRECORDED, skip, 0);
  const bool is_warm_up = skip == RONDO_SKIP_WARM_UP;
  RONDO_TRY(
      rondo_plain_run(function, form, asked->stream, tree->inputs, is_warm_up, asked->outputs, asked->output_count));
  if (is_warm_up || skip == RONDO_SKIP_BEHIND_WARM_UP) tree->is_unrecorded = true;
  return RONDO_OK;
}

/* Recordings of the function behind the path's end. */
static uint32_t count_siblings(const rondo_function *function) {
  const rondo_tree *tree = function->tree;
  uint32_t count = 0;
  const rondo_recorded_call *call = tree->current == NULL ? tree->roots : tree->current->children;
  for (; call != NULL; call = call->sibling) count += call->function == function;
  return count;
}

static bool is_asked_for(const rondo_function *function) {
  const rondo_tree_options *options = &function->tree->options;
  const rondo_recording_question question = {.struct_size = sizeof question,
                                             .recordings = function->recordings,
                                             .function = function->origin->name,
                                             .asked = (rondo_function *)(uintptr_t)function};
  return options->should_record == NULL || options->should_record(options->user, &question);
}

/* Why a form that is warm is not recorded here and now; NONE. */
static rondo_skip look_for_skip(const rondo_function *function, const char **out_message) {
  const rondo_tree *tree = function->tree;
  *out_message = "";
  if (tree->is_unrecorded) {
    *out_message = "a call before it in the step warmed up, so that addresses are not fixed";
    return RONDO_SKIP_BEHIND_WARM_UP;
  }
  if (count_siblings(function) >= tree->options.max_recordings_per_place) {
    *out_message =
        "it was recorded as often as it may be behind the same call "
        "(rondo_tree_options.max_recordings_per_place): its static inputs move, or what is held of its step "
        "keeps changing";
    return RONDO_SKIP_RECORDING_LIMIT;
  }
  if (is_asked_for(function)) return RONDO_SKIP_NONE;
  *out_message = "rondo_tree_options.should_record said no";
  return RONDO_SKIP_REFUSED;
}

static rondo_status finish_recorded(const rondo_asked *asked, rondo_recorded_call *call, rondo_call_outcome outcome) {
  rondo_tree *tree = asked->function->tree;
  size_t taken;
  rondo_path_advance(tree, call);
  note_outcome(asked->function, outcome, RONDO_SKIP_NONE, call->number);
  return rondo_outputs_take(asked->function, RONDO_OUTPUTS_RECORDED, call->outputs, call->output_count, tree->inputs,
                            asked->outputs, asked->output_count, &taken);
}

/* Recordings that fail again and again are not tried for ever. */
enum { MOST_FAILURES = 3 };

static rondo_status run_after_failure(const rondo_asked *asked, rondo_form *form, const rondo_record_result *result) {
  rondo_tree *tree = asked->function->tree;
  tree->rolled_back++;
  if (++form->failures >= MOST_FAILURES) rondo_form_skip(form, result->skip, result->message);
  const rondo_status status = run_plain(asked, form, result->skip, result->message);
  if (result->skip == RONDO_SKIP_DEPARTED) tree->is_unrecorded = true;
  return status;
}

static rondo_status record(const rondo_asked *asked, rondo_form *form) {
  rondo_tree *tree = asked->function->tree;
  rondo_record_result result;
  rondo_recorded_call *call;
  rondo_recorded_evict(tree);
  RONDO_TRY(rondo_record_call(asked->function, form, asked->stream, tree->inputs, asked->key_count, asked->hash,
                              &result, &call));
  if (call == NULL) return run_after_failure(asked, form, &result);
  form->failures = 0;
  tree->recorded++;
  asked->function->recorded++;
  rondo_log(RONDO_LOG_INFO, "tree", "'%s' is recorded: number %" PRIu32 " behind %" PRIu32 ", %zu bytes of the arena",
            asked->function->origin->name, call->number, call->parent == NULL ? 0 : call->parent->number,
            call->arena_end);
  if (asked->output_count > call->output_count)
    return rondo_outputs_check_count(asked->function, call->output_count, asked->output_count);
  return finish_recorded(asked, call, RONDO_CALL_RECORDED);
}

static rondo_status run_new(const rondo_asked *asked) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  rondo_form *form;
  const char *message;
  if (tree->is_off || function->is_off)
    return run_plain(asked, NULL, RONDO_SKIP_DISABLED, "recording is off (rondo_tree_set_recording)");
  RONDO_TRY(rondo_form_find(function, tree->inputs, &form));
  if (form->skip != RONDO_SKIP_NONE) return run_plain(asked, form, form->skip, form->message);
  if (form->warm_ups > 0) return run_plain(asked, form, RONDO_SKIP_WARM_UP, "");
  const rondo_skip skip = look_for_skip(function, &message);
  if (skip != RONDO_SKIP_NONE) return run_plain(asked, form, skip, message);
  return record(asked, form);
}

/* A moving input that the body writes must have no byte in common with another input: copied or patched, the others
 * would or would not see what is written. */
static bool is_written_shared(const rondo_function *function, const rondo_resolved_input *inputs) {
  const size_t count = function->options.input_count;
  for (size_t i = 0; i < count; i++) {
    const rondo_resolved_input *written = &inputs[i];
    if (!written->is_mutated || written->way != RONDO_WAY_MOVING) continue;
    for (size_t j = 0; j < count; j++) {
      const rondo_resolved_input *other = &inputs[j];
      if (j != i && other->address < written->address + written->bytes &&
          written->address < other->address + other->bytes && other->way <= RONDO_WAY_MANAGED)
        return true;
    }
  }
  return false;
}

/* Dispatch --------------------------------------------------------------------------------------------------------- */

static rondo_status replay(const rondo_asked *asked, rondo_recorded_call *call) {
  rondo_tree *tree = asked->function->tree;
  RONDO_TRY(rondo_outputs_check_count(asked->function, call->output_count, asked->output_count));
  RONDO_TRY(rondo_replay(tree, call, asked->stream, tree->inputs));
  call->replays++;
  tree->replayed++;
  asked->function->replayed++;
  if (__builtin_expect(rondo_log_on(RONDO_LOG_DEBUG), 0))
    rondo_log(RONDO_LOG_DEBUG, "tree", "'%s' is replayed: number %" PRIu32, asked->function->origin->name,
              call->number);
  return finish_recorded(asked, call, RONDO_CALL_REPLAYED);
}

static rondo_status dispatch(rondo_asked *asked) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  if (__builtin_expect(function->has_written_moving, 0) && is_written_shared(function, tree->inputs))
    return run_plain(asked, NULL, RONDO_SKIP_MUTATED_INPUT,
                     "a moving input that it writes has bytes in common with another input");
  asked->key_count = rondo_key_make(tree, function, tree->inputs, tree->words);
  rondo_recorded_call *call = NULL;
  if (!tree->is_unrecorded && !tree->is_off && !function->is_off) {
    call = rondo_recorded_guess(tree, tree->words, asked->key_count);
    if (call == NULL) {
      asked->hash = rondo_key_hash(tree->words, asked->key_count);
      call = rondo_recorded_find(tree, tree->words, asked->key_count, asked->hash);
    }
  }
  return call != NULL ? replay(asked, call) : run_new(asked);
}

/* A training step's calls belong together until its backward. */
static void note_kind(const rondo_function *function) {
  if (function->options.kind == RONDO_FUNCTION_FORWARD) function->tree->is_backward_pending = true;
  if (function->options.kind == RONDO_FUNCTION_BACKWARD) function->tree->is_backward_pending = false;
}

static rondo_status call_outermost(rondo_asked *asked, const rondo_input *given) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  RONDO_TRY(resolve(function, given, tree->inputs));
  rondo_path_settle(tree, asked->stream);
  RONDO_TRY(rondo_path_follow(tree, asked->stream));
  begin_step(tree);
  RONDO_TRY(enter_path(function, asked->stream, given));
  rondo_memory_protect_inputs(tree, asked->stream, function, true);
  const rondo_status status = dispatch(asked);
  rondo_memory_protect_inputs(tree, asked->stream, function, false);
  if (tree->step_buffers != NULL) rondo_path_sweep(tree, asked->stream);
  if (status == RONDO_OK) note_kind(function);
  return status;
}

/* Inside a body, or into a capture of the caller's: the work becomes a part of that. */
static rondo_status call_inside(const rondo_asked *asked, const rondo_input *given, rondo_skip skip) {
  rondo_function *function = asked->function;
  rondo_tree *tree = function->tree;
  rondo_resolved_input *inputs;
  const size_t count = function->options.input_count;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof *inputs, &inputs));
  rondo_status status = resolve(function, given, inputs);
  if (status == RONDO_OK) {
    rondo_skip_note(function, skip, "");
    status = rondo_plain_run(function, NULL, asked->stream, inputs, false, asked->outputs, asked->output_count);
  }
  rondo_release(&tree->allocator, inputs, count, sizeof *inputs);
  return status;
}

static rondo_status call_entered(rondo_asked *asked, const rondo_input *given) {
  rondo_function *function = asked->function;
  function->calls++;
  function->tree->calls++;
  if (__builtin_expect(function->tree->active != NULL, 0)) return call_inside(asked, given, RONDO_SKIP_NESTED);
  if (__builtin_expect(rondo_stream_find_capture(asked->stream) != NULL, 0))
    return call_inside(asked, given, RONDO_SKIP_CAPTURING);
  return call_outermost(asked, given);
}

/* The front door --------------------------------------------------------------------------------------------------- */

static rondo_status check_call(const rondo_function *function, const rondo_stream *stream, const rondo_input *inputs,
                               size_t input_count, rondo_buffer **outputs, size_t output_count) {
  const char *const call = "rondo_function_call";
  RONDO_TRY(rondo_front(call, "the function", function));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  if (input_count > 0) RONDO_TRY(rondo_require(call, "inputs", inputs));
  if (output_count > 0) RONDO_TRY(rondo_require(call, "outputs", (const void *)outputs));
  RONDO_TRY(rondo_require_device(call, "the stream", function->tree->device, stream->device));
  if (input_count == function->options.input_count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT, "%s: '%s' has %zu inputs; %zu were given",
                    call, function->origin->name, function->options.input_count, input_count);
}

static rondo_status call_checked(rondo_asked *asked, const rondo_input *given) {
  rondo_tree *tree = asked->function->tree;
  if (rondo_tree_is_mine(tree)) return call_entered(asked, given);
  RONDO_TRY(rondo_tree_enter(tree, "rondo_function_call"));
  const rondo_status status = call_entered(asked, given);
  rondo_tree_leave(tree);
  return status;
}

rondo_status rondo_function_call(rondo_function *function, rondo_stream *stream, const rondo_input *inputs,
                                 size_t input_count, rondo_buffer **outputs, size_t output_count) {
  for (size_t i = 0; outputs != NULL && i < output_count; i++) outputs[i] = NULL;
  rondo_asked asked = {.function = function, .stream = stream, .outputs = outputs, .output_count = output_count};
  rondo_status status = check_call(function, stream, inputs, input_count, outputs, output_count);
  if (status == RONDO_OK) status = call_checked(&asked, inputs);
  drop_given(inputs, input_count);
  return status;
}
