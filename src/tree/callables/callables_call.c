/* SPDX-License-Identifier: MIT
 * Calls graphed callables: checks the order, copies inputs to their recorded addresses, and replays the part. Allocates
 * nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exec/api_check.h"
#include "tree/call.h"
#include "tree/call_inputs.h"
#include "tree/callables/callables_internal.h"
#include "tree/path/path.h"
#include "tree/tree.h"

/* Rounds ----------------------------------------------------------------------------------------------------------- */

static void release_outputs(const rondo_callable_part *part) {
  for (size_t i = 0; i < part->output_count; i++) {
    rondo_buffer_release(part->outputs[i]);
    part->outputs[i] = NULL;
  }
}

void rondo_callables_end_round(rondo_callables *callables) {
  callables->position = 0;
  for (size_t i = 0; i < callables->count; i++) {
    release_outputs(&callables->states[i].forward);
    release_outputs(&callables->states[i].backward);
  }
}

/* The outputs of the forward follow the gradients and the forward's inputs. */
static void set_forward_outputs(const rondo_callables *callables, const rondo_callable_part *part) {
  const int32_t entry = callables->order[callables->position];
  if (entry > 0) return;
  const rondo_callable_part *forward = &callables->states[-entry - 1].forward;
  const size_t first = part->value_count - forward->output_count;
  for (size_t i = 0; i < forward->output_count; i++)
    part->values[first + i] = (rondo_input){.buffer = forward->outputs[i]};
}

/* Outputs of the previous round are retained until the first call of this one. */
rondo_status rondo_callables_call_next(rondo_callables *callables, rondo_stream *stream) {
  rondo_callable_part *part = rondo_callables_part(callables, callables->position);
  if (callables->position == 0) {
    rondo_callables_end_round(callables);
    RONDO_TRY(rondo_tree_mark_step(callables->tree));
  }
  set_forward_outputs(callables, part);
  RONDO_TRY(
      rondo_function_call(part->function, stream, part->values, part->value_count, part->outputs, part->output_count));
  callables->info.calls++;
  callables->position = (callables->position + 1) % callables->order_count;
  callables->info.rounds += callables->position == 0;
  return RONDO_OK;
}

/* Order ------------------------------------------------------------------------------------------------------------ */

static const char *name_of(const rondo_callables *callables, size_t position) {
  return rondo_callables_part(callables, position)->function->origin->name;
}

/* As much of the order as fits: "a, b, b backward, a backward". */
static void write_order(const rondo_callables *callables, char *text, size_t capacity) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < callables->order_count && used < capacity; i++) {
    const int written = snprintf(text + used, capacity - used, "%s%s", i == 0 ? "" : ", ", name_of(callables, i));
    used += written > 0 ? (size_t)written : 0;
  }
  if (used >= capacity) memcpy(text + capacity - sizeof "...", "...", sizeof "...");
}

static rondo_status refuse_order(const char *call, const rondo_callables *callables, const rondo_callable_part *part) {
  char order[256];
  write_order(callables, order, sizeof order);
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_CALL_ORDER,
                    "%s: '%s' was called, but '%s' is due (call %zu of %zu of a round). The recorded order is %s. Call "
                    "in this order, or begin a new round (rondo_callables_restart)",
                    call, part->function->origin->name, name_of(callables, callables->position),
                    callables->position + 1, callables->order_count, order);
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_input(const char *call, const rondo_callable_part *part, size_t index, rondo_reason reason,
                                 const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: input %zu of '%s' %s", call, index,
                    part->function->origin->name, what);
}

static bool is_same_form(const rondo_resolved_input *given, const rondo_input *sample) {
  if (given->type == 0 && given->rank == 0) return true;
  return given->type == sample->type && given->rank == sample->rank &&
         (given->rank == 0 || memcmp(given->shape, sample->shape, given->rank * sizeof sample->shape[0]) == 0);
}

static rondo_status check_input(const char *call, const rondo_callable_part *part, size_t index,
                                const rondo_resolved_input *given) {
  const rondo_input *sample = &part->values[index];
  if (given->bytes != sample->bytes)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "%s: input %zu of '%s' has %zu bytes, but its recorded sample has %zu: pass as many bytes", call,
                      index, part->function->origin->name, given->bytes, sample->bytes);
  if (!is_same_form(given, sample))
    return refuse_input(call, part, index, RONDO_REASON_SHAPE, "has another type or shape than its sample");
  const bool is_static = (part->kinds[index] & 0xff) == RONDO_INPUT_STATIC;
  if (is_static && given->address != sample->address)
    return refuse_input(
        call, part, index, RONDO_REASON_FOREIGN_ADDRESS,
        "is static, but not at the address of its sample: declare it RONDO_INPUT_MOVING, so that it is copied");
  return RONDO_OK;
}

/* Fails if the input overlaps the memory of another input's sample, to which that input is copied, if the copy comes
 * before this input is read, or if this input is written back later. */
static rondo_status check_apart(const char *call, const rondo_callable_part *part, size_t index,
                                const rondo_resolved_input *inputs) {
  const rondo_resolved_input *given = &inputs[index];
  if (given->address == part->values[index].address) return RONDO_OK;
  for (size_t i = 0; i < part->caller_count; i++) {
    const char *sample = part->values[i].address;
    const bool is_written = i != index && inputs[i].address != sample;
    const bool matters = i < index || (part->kinds[index] & RONDO_INPUT_MUTATED) != 0;
    if (is_written && matters && given->address < sample + part->values[i].bytes &&
        sample < given->address + given->bytes)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OVERLAP,
                        "%s: input %zu of '%s' is in the memory of input %zu's sample, where that input is copied to: "
                        "pass it in other memory",
                        call, index, part->function->origin->name, i);
  }
  return RONDO_OK;
}

/* Resolves the inputs into tree->inputs and checks them. */
static rondo_status inspect_inputs(const char *call, const rondo_callables *callables, const rondo_callable_part *part,
                                   const rondo_input *inputs) {
  rondo_tree *tree = callables->tree;
  const size_t others = part->value_count - part->caller_count;
  set_forward_outputs(callables, part);
  if (part->caller_count > 0) memcpy(part->given, inputs, part->caller_count * sizeof *inputs);
  if (others > 0) memcpy(part->given + part->caller_count, part->values + part->caller_count, others * sizeof *inputs);
  RONDO_TRY(rondo_inputs_resolve(call, part->function, part->given, tree->inputs));
  for (size_t i = 0; i < part->caller_count; i++) RONDO_TRY(check_input(call, part, i, &tree->inputs[i]));
  for (size_t i = 0; i < part->caller_count; i++) RONDO_TRY(check_apart(call, part, i, tree->inputs));
  return RONDO_OK;
}

static rondo_status copy_in(rondo_callables *callables, rondo_stream *stream, const rondo_callable_part *part) {
  rondo_tree *tree = callables->tree;
  RONDO_TRY(rondo_path_follow(tree, stream));
  for (size_t i = 0; i < part->caller_count; i++) {
    const rondo_input *sample = &part->values[i];
    const char *address = tree->inputs[i].address;
    part->given[i].address = tree->inputs[i].address; /* for the write-back, because a call uses tree->inputs */
    if (address == sample->address) continue;
    RONDO_TRY(rondo_copy_async(stream, sample->address, address, sample->bytes));
    callables->info.copied_inputs++;
    callables->info.copied_bytes += sample->bytes;
  }
  return RONDO_OK;
}

static rondo_status copy_back(const rondo_callable_part *part, rondo_stream *stream) {
  for (size_t i = 0; i < part->caller_count; i++) {
    const rondo_input *sample = &part->values[i];
    if ((part->kinds[i] & RONDO_INPUT_MUTATED) != 0 && part->given[i].address != sample->address)
      RONDO_TRY(rondo_copy_async(stream, part->given[i].address, sample->address, sample->bytes));
  }
  return RONDO_OK;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

static rondo_status check_call(const char *call, const rondo_callables *callables, const rondo_callable_part *part,
                               size_t input_count, size_t output_count) {
  if (input_count != part->caller_count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                      "%s: '%s' has %zu inputs, but the call passes %zu", call, part->function->origin->name,
                      part->caller_count, input_count);
  if (output_count > part->output_count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                      "%s: the call requests %zu outputs of '%s', which has %zu", call, output_count,
                      part->function->origin->name, part->output_count);
  if (rondo_callables_part(callables, callables->position) != part) return refuse_order(call, callables, part);
  return RONDO_OK;
}

static rondo_status look_and_copy(const char *call, rondo_callables *callables, const rondo_callable_part *part,
                                  rondo_stream *stream, const rondo_input *inputs) {
  RONDO_TRY(rondo_tree_enter(callables->tree, call));
  rondo_status status = inspect_inputs(call, callables, part, inputs);
  if (status == RONDO_OK) status = copy_in(callables, stream, part);
  rondo_tree_leave(callables->tree);
  return status;
}

static rondo_status call_part(const char *call, rondo_callables *callables, const rondo_callable_part *part,
                              rondo_stream *stream, const rondo_input *inputs, rondo_buffer **outputs,
                              size_t output_count) {
  RONDO_TRY(look_and_copy(call, callables, part, stream, inputs));
  RONDO_TRY(rondo_callables_call_next(callables, stream));
  for (size_t i = 0; i < output_count; i++) {
    outputs[i] = part->outputs[i];
    rondo_buffer_retain(outputs[i]);
  }
  return copy_back(part, stream);
}

static rondo_status find_part(const char *call, const rondo_callables *callables, size_t index, bool is_backward,
                              rondo_stream *stream, const rondo_callable_part **out) {
  RONDO_TRY(rondo_check_call(call, "the callables", callables));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  RONDO_TRY(rondo_require_device(call, "the stream", callables->tree->device, stream->device));
  if (index >= callables->count)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: there is no callable %zu of %zu", call,
                      index, callables->count);
  const rondo_callable_state *state = &callables->states[index];
  *out = is_backward ? &state->backward : &state->forward;
  RONDO_TRY(rondo_call_refuse_capture(call, stream));
  if ((*out)->function != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: '%s' has no backward", call,
                    state->forward.function->origin->name);
}

static rondo_status call_checked(const char *call, rondo_callables *callables, size_t index, bool is_backward,
                                 rondo_stream *stream, const rondo_input *inputs, size_t input_count,
                                 rondo_buffer **outputs, size_t output_count) {
  const rondo_callable_part *part = NULL;
  RONDO_TRY(find_part(call, callables, index, is_backward, stream, &part));
  if (input_count > 0) RONDO_TRY(rondo_require(call, is_backward ? "gradients" : "inputs", inputs));
  if (output_count > 0) RONDO_TRY(rondo_require(call, "outputs", (const void *)outputs));
  RONDO_TRY(check_call(call, callables, part, input_count, output_count));
  return call_part(call, callables, part, stream, inputs, outputs, output_count);
}

static rondo_status call_one(const char *call, rondo_callables *callables, size_t index, bool is_backward,
                             rondo_stream *stream, const rondo_input *inputs, size_t input_count,
                             rondo_buffer **outputs, size_t output_count) {
  for (size_t i = 0; outputs != NULL && i < output_count; i++) outputs[i] = NULL;
  const rondo_status status =
      call_checked(call, callables, index, is_backward, stream, inputs, input_count, outputs, output_count);
  rondo_call_drop_given(inputs, input_count);
  return status;
}

rondo_status rondo_callables_forward(rondo_callables *callables, size_t index, rondo_stream *stream,
                                     const rondo_input *inputs, size_t input_count, rondo_buffer **outputs,
                                     size_t output_count) {
  return call_one("rondo_callables_forward", callables, index, false, stream, inputs, input_count, outputs,
                  output_count);
}

rondo_status rondo_callables_backward(rondo_callables *callables, size_t index, rondo_stream *stream,
                                      const rondo_input *gradients, size_t gradient_count, rondo_buffer **outputs,
                                      size_t output_count) {
  return call_one("rondo_callables_backward", callables, index, true, stream, gradients, gradient_count, outputs,
                  output_count);
}

rondo_status rondo_callables_restart(rondo_callables *callables) {
  const char *const call = "rondo_callables_restart";
  RONDO_TRY(rondo_check_call(call, "the callables", callables));
  RONDO_TRY(rondo_tree_enter(callables->tree, call));
  callables->position = 0;
  rondo_tree_leave(callables->tree);
  return RONDO_OK;
}
