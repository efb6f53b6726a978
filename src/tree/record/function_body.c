/* SPDX-License-Identifier: MIT
 * The interface of a call for its body: stream, inputs, outputs, host steps and refusals. Recorded and eager calls use
 * the same code, because in both an output is memory that is allocated on the stream.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/versioned_struct.h"
#include "tree/eager_call.h"
#include "tree/function.h"
#include "tree/record/function_body.h"
#include "tree/record/record_call.h"
#include "tree/region.h"

#define MAX_OUTPUTS 1024

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Removes entries after the last output, which belong to refused calls of rondo_call_output. Checks that there is no
 * gap. */
static rondo_status settle_outputs(rondo_call *call) {
  while (call->outputs.count > 0 && !call->outputs.items[call->outputs.count - 1].is_made) call->outputs.count--;
  for (size_t i = 0; i < call->outputs.count; i++)
    if (!call->outputs.items[i].is_made)
      return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NO_OUTPUT,
                        "%s of '%s' did not create output %zu of %zu: create all outputs from 0 on (rondo_call_output)",
                        rondo_function_body_name(call->function), call->function->origin->name, i, call->outputs.count);
  return RONDO_OK;
}

rondo_status rondo_body_callback(rondo_call *call) {
  rondo_region *const outer = rondo_region_swap_open(NULL);
  rondo_status status = call->function->options.body(call, call->function->options.user);
  RONDO_THEN(status, rondo_region_close_left("the body", call->function));
  rondo_region_swap_open(outer);
  return status;
}

void rondo_body_begin(rondo_call *call) {
  rondo_tree *tree = call->tree;
  call->outer = tree->active;
  tree->active = call;
  call->function->info.bodies++;
  call->errors_before = rondo_error_number();
  rondo_stream_hold(call->stream);
  if (call->notes_values) rondo_launch_values_begin(&call->values, &tree->allocator);
}

rondo_status rondo_body_end(rondo_call *call, rondo_status returned) {
  assert(call->tree->active == call);
  if (call->notes_values) rondo_launch_values_end(&call->values);
  rondo_stream_let_go(call->stream);
  call->tree->active = call->outer;
  RONDO_TRY(rondo_fail_callback(returned, call->errors_before, "%s of '%s'", rondo_function_body_name(call->function),
                                call->function->origin->name));
  if (call->failed_step != RONDO_OK)
    return rondo_fail(call->failed_step, RONDO_REASON_HOST_FUNCTION_FAILED,
                      "%s of '%s' continued after its host step failed (%s): return the failure",
                      rondo_function_body_name(call->function), call->function->origin->name,
                      rondo_status_name(call->failed_step));
  return settle_outputs(call);
}

rondo_status rondo_host_step_run(const rondo_function *function, rondo_host_function step, void *user) {
  rondo_region *const outer = rondo_region_swap_open(NULL);
  const uint64_t before = rondo_error_number();
  rondo_status status = step(user);
  RONDO_THEN(status, rondo_region_close_left("a host step", function));
  rondo_region_swap_open(outer);
  return rondo_fail_callback(status, before, "%s: a host step of '%s'", rondo_function_call_name(function),
                             function->origin->name);
}

rondo_status rondo_body_take_step(rondo_call *call, rondo_host_function step, void *user) {
  rondo_tree *tree = call->tree;
  rondo_call *const inner = tree->active;
  tree->active = NULL;
  rondo_launch_values *const paused = rondo_launch_values_pause();
  const rondo_status status = rondo_host_step_run(call->function, step, user);
  rondo_launch_values_resume(paused);
  tree->active = inner;
  if (status != RONDO_OK) rondo_call_outermost(call)->failed_step = status;
  return status;
}

rondo_call *rondo_call_outermost(rondo_call *call) {
  while (call->outer != NULL) call = call->outer;
  return call;
}

bool rondo_body_compare_values(rondo_form *form, rondo_call *call, char message[RONDO_TREE_MESSAGE]) {
  if (!call->notes_values) return false;
  const bool differ = rondo_launch_values_differ(&form->values, &call->values, message, RONDO_TREE_MESSAGE);
  rondo_launch_values_free(&form->values);
  form->values = call->values;
  call->values = (rondo_launch_values){0};
  if (differ)
    rondo_log(RONDO_LOG_WARNING, "tree", "'%s' is not recorded now: %s", call->function->origin->name, message);
  return differ;
}

void rondo_body_free(rondo_call *call) {
  rondo_array_free(&call->tree->allocator, &call->outputs);
  rondo_launch_values_free(&call->values);
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

rondo_stream *rondo_call_stream(const rondo_call *call) { return call == NULL ? NULL : call->stream; }

void *rondo_call_input(const rondo_call *call, size_t index) {
  return call == NULL || index >= call->function->options.input_count ? NULL : call->inputs[index].address;
}

static rondo_status check_input(const char *name, const rondo_call *call, size_t index) {
  RONDO_TRY(rondo_require(name, "the call", call));
  if (index < call->function->options.input_count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: there is no input %zu: '%s' has %zu", name,
                    index, call->function->origin->name, call->function->options.input_count);
}

rondo_status rondo_call_get_input(const rondo_call *call, size_t index, rondo_input *out_input) {
  const char *const name = "rondo_call_get_input";
  RONDO_TRY(rondo_require(name, "out_input", out_input));
  *out_input = (rondo_input){0};
  RONDO_TRY(check_input(name, call, index));
  const rondo_resolved_input *input = &call->inputs[index];
  *out_input = (rondo_input){.address = input->address, .type = input->type, .rank = input->rank};
  if (input->role == RONDO_ROLE_SCALAR)
    out_input->scalar = input->bytes;
  else
    out_input->bytes = input->bytes;
  if (input->rank > 0) memcpy(out_input->shape, input->shape, input->rank * sizeof input->shape[0]);
  return RONDO_OK;
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

/* Opens the entry of output `index`, which must not exist yet. */
static rondo_status open_output(const char *name, rondo_call *call, size_t index, rondo_made_output **out) {
  RONDO_TRY(rondo_require(name, "the call", call));
  if (index >= MAX_OUTPUTS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: output %zu of '%s' is above the maximum of %d", name, index, call->function->origin->name,
                      MAX_OUTPUTS);
  const rondo_made_output none = {0};
  while (call->outputs.count <= index) RONDO_TRY(rondo_array_push(&call->tree->allocator, &call->outputs, &none));
  *out = &call->outputs.items[index];
  if (!(*out)->is_made) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
                    "%s: output %zu of '%s' exists already: create each output once", name, index,
                    call->function->origin->name);
}

/* Messages use the name of an output, or the function and the number of the output. */
static void name_output(const rondo_call *call, size_t index, const char *name, rondo_made_output *made) {
  if (name[0] != '\0')
    (void)snprintf(made->name, sizeof made->name, "%.60s", name);
  else
    (void)snprintf(made->name, sizeof made->name, "%.48s.%zu", call->function->origin->name, index);
}

rondo_status rondo_call_output(rondo_call *call, size_t index, size_t bytes, const rondo_output_options *options,
                               void **out_address) {
  const char *const name = "rondo_call_output";
  rondo_made_output *made;
  const char *label;
  RONDO_TRY(rondo_require(name, "out_address", out_address));
  *out_address = NULL;
  RONDO_TRY(open_output(name, call, index, &made));
  RONDO_TRY(rondo_layout_read(name, bytes, options, &made->output.extent, &label));
  name_output(call, index, label, made);
  if (bytes > 0) {
    const rondo_malloc_options memory = {RONDO_MALLOC_OPTIONS_INIT, .name = made->name, .pool = call->tree->pool};
    RONDO_TRY(rondo_malloc_async(call->stream, bytes, &memory, &made->output.address));
    made->order = ++call->fresh_count;
  }
  made->output.kind = bytes > 0 ? RONDO_OUTPUT_FRESH : RONDO_OUTPUT_EMPTY;
  made->is_made = true;
  *out_address = made->output.address;
  return RONDO_OK;
}

/* Makes an output in existing memory. */
static rondo_status make_part(const char *name, rondo_made_output *made, size_t whole, size_t offset, size_t bytes,
                              const rondo_output_options *options) {
  const char *label;
  if (offset > whole || bytes > whole - offset)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %zu bytes from %zu on of %zu bytes", name,
                      bytes, offset, whole);
  RONDO_TRY(rondo_layout_read(name, bytes, options, &made->output.extent, &label));
  made->output.offset = offset;
  made->is_made = true;
  return RONDO_OK;
}

rondo_status rondo_call_output_of_input(rondo_call *call, size_t index, size_t input, size_t offset, size_t bytes,
                                        const rondo_output_options *options) {
  const char *const name = "rondo_call_output_of_input";
  rondo_made_output *made;
  RONDO_TRY(open_output(name, call, index, &made));
  RONDO_TRY(check_input(name, call, input));
  if (call->inputs[input].is_dropped)
    return rondo_fail(
        RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE,
        "%s: input %zu of '%s' was dropped (rondo_call_drop_input): create outputs from it before, or do not drop it",
        name, input, call->function->origin->name);
  if ((call->function->options.inputs[input] & (RONDO_INPUT_ROWS | RONDO_INPUT_LENGTH)) != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: input %zu of '%s' may be padded (RONDO_INPUT_ROWS, RONDO_INPUT_LENGTH), so no output can be "
                      "a part of it: copy it",
                      name, input, call->function->origin->name);
  RONDO_TRY(make_part(name, made, call->inputs[input].bytes, offset, bytes, options));
  made->output.kind = RONDO_OUTPUT_OF_INPUT;
  made->output.of = (uint32_t)input;
  return RONDO_OK;
}

rondo_status rondo_call_output_of_output(rondo_call *call, size_t index, size_t output, size_t offset, size_t bytes,
                                         const rondo_output_options *options) {
  const char *const name = "rondo_call_output_of_output";
  rondo_made_output *made;
  RONDO_TRY(open_output(name, call, index, &made));
  if (output >= call->outputs.count || !call->outputs.items[output].is_made)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: there is no output %zu of '%s' yet", name,
                      output, call->function->origin->name);
  const rondo_output *whole = &call->outputs.items[output].output;
  RONDO_TRY(make_part(name, made, whole->extent.bytes, offset, bytes, options));
  made->output.kind = RONDO_OUTPUT_OF_OUTPUT;
  made->output.of = (uint32_t)output;
  if (whole->kind == RONDO_OUTPUT_FRESH || whole->kind == RONDO_OUTPUT_EMPTY) return RONDO_OK;
  /* A part of a part is a part of the whole. */
  made->output.kind = whole->kind;
  made->output.of = whole->of;
  made->output.offset += whole->offset;
  return RONDO_OK;
}

/* Requests --------------------------------------------------------------------------------------------------------- */

/* Whether an output refers to the input and retains it. */
static bool is_returned(const rondo_call *call, size_t input) {
  for (size_t i = 0; i < call->outputs.count; i++) {
    const rondo_made_output *made = &call->outputs.items[i];
    if (made->is_made && made->output.kind == RONDO_OUTPUT_OF_INPUT && made->output.of == input) return true;
  }
  return false;
}

rondo_status rondo_call_drop_input(rondo_call *call, size_t index) {
  const char *const name = "rondo_call_drop_input";
  RONDO_TRY(check_input(name, call, index));
  rondo_resolved_input *input = &call->inputs[index];
  if (!input->is_sole || input->is_dropped || is_returned(call, index)) return RONDO_OK;
  input->is_dropped = input->role == RONDO_ROLE_MANAGED;
  if (call->recorder != NULL) return rondo_recorder_drop_input(call, index);
  if (call->outer == NULL)
    rondo_profile_note_end(call->stream, index + 1); /* keys refer to inputs of the outermost call */
  return RONDO_OK;
}

rondo_status rondo_call_host_step(rondo_call *call, rondo_host_function step, void *user) {
  const char *const name = "rondo_call_host_step";
  RONDO_TRY(rondo_require(name, "the call", call));
  RONDO_TRY(rondo_require(name, "the step", (const void *)(uintptr_t)step));
  rondo_call_outermost(call)->host_steps++;
  if (call->recorder != NULL) return rondo_recorder_host_step(call, step, user);
  return rondo_eager_host_step(call, step, user);
}

rondo_status rondo_call_warm_up_again(rondo_call *call) {
  RONDO_TRY(rondo_require("rondo_call_warm_up_again", "the call", call));
  rondo_call *whole = rondo_call_outermost(call);
  whole->wants_warm_up = whole->is_warm_up;
  return RONDO_OK;
}

/* The refusal applies to the form of the outermost call. */
rondo_status rondo_call_refuse(rondo_call *call, rondo_skip reason, const char *what) {
  const char *const name = "rondo_call_refuse";
  RONDO_TRY(rondo_require(name, "the call", call));
  RONDO_TRY(rondo_require(name, "what", what));
  if (reason != RONDO_SKIP_UNKNOWN_SHAPE && reason != RONDO_SKIP_HOST_WORK && reason != RONDO_SKIP_UNSAFE &&
      reason != RONDO_SKIP_UNSAFE_DETERMINISTIC)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: the reason must be UNKNOWN_SHAPE, HOST_WORK, UNSAFE or UNSAFE_DETERMINISTIC, not %s", name,
                      rondo_skip_name(reason));
  if (reason == RONDO_SKIP_UNSAFE_DETERMINISTIC && !call->tree->options.deterministic) return RONDO_OK;
  rondo_call *whole = rondo_call_outermost(call);
  if (whole->refused == RONDO_SKIP_NONE) {
    whole->refused = reason;
    (void)snprintf(whole->message, sizeof whole->message, "the body of '%.100s' refused it for '%.200s'",
                   call->function->origin->name, what);
  }
  if (call->recorder == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_RECORDED, "%s: '%s' is being recorded, which '%s' forbids",
                    name, call->function->origin->name, what);
}
