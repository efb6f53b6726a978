/* SPDX-License-Identifier: MIT
 * Runs a body eagerly. Outputs get memory from the tree's pool. A warm-up also notes what the body allocates, for the
 * plan of the recording that follows. There is one note for each segment, that is, for the work between host steps.
 */
#include "tree/eager_call.h"

#include <assert.h>
#include <stdio.h>

#include "tree/call.h"
#include "tree/function.h"
#include "tree/path/owned_buffer.h"
#include "tree/record/function_body.h"
#include "tree/record/record_gain.h"

/* Notes ------------------------------------------------------------------------------------------------------------ */

static void begin_notes(rondo_call *call) {
  assert(!call->is_noting);
  if (!call->is_warm_up) return;
  call->is_noting = rondo_profile_begin(call->stream) == RONDO_OK; /* without notes, memory is placed online */
}

static void end_notes(rondo_call *call) {
  if (!call->is_noting) return;
  rondo_noted_lifetimes *noted = NULL;
  call->is_noting = false;
  rondo_status status = rondo_profile_end_noted(call->stream, &noted);
  if (status == RONDO_OK) status = rondo_array_push(&call->tree->allocator, &call->notes, &noted);
  if (status == RONDO_OK) return;
  rondo_noted_lifetimes_release(noted);
  call->is_warm_up_unnoted = true;
}

static void free_notes(rondo_call *call) {
  for (size_t i = 0; i < call->notes.count; i++) rondo_noted_lifetimes_release(call->notes.items[i]);
  rondo_array_free(&call->tree->allocator, &call->notes);
}

/* The form keeps the notes of the last run that has all of them. */
static void keep_notes(rondo_form *form, rondo_call *call) {
  assert(!call->is_noting);
  if (call->notes.count == 0 || call->is_warm_up_unnoted) return;
  rondo_form_forget_notes(call->tree, form);
  form->noted = call->notes.items;
  form->noted_count = call->notes.count;
  form->noted_capacity = call->notes.capacity;
  call->notes.items = NULL;
  call->notes.count = call->notes.capacity = 0;
}

void rondo_form_forget_notes(const rondo_tree *tree, rondo_form *form) {
  for (size_t i = 0; i < form->noted_count; i++) rondo_noted_lifetimes_release(form->noted[i]);
  rondo_release(&tree->allocator, form->noted, form->noted_capacity, sizeof(rondo_noted_lifetimes *));
  form->noted = NULL;
  form->noted_count = form->noted_capacity = 0;
}

/* Host steps ------------------------------------------------------------------------------------------------------- */

rondo_status rondo_eager_host_step(rondo_call *call, rondo_host_function step, void *user) {
  rondo_call *whole = rondo_call_outermost(call);
  end_notes(whole);
  if (whole->meter != NULL) rondo_meter_stop(whole->meter);
  RONDO_TRY(rondo_stream_drain(call->stream, "rondo_call_host_step"));
  RONDO_TRY(rondo_body_take_step(call, step, user));
  begin_notes(whole);
  return RONDO_OK;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static void free_outputs(const rondo_call *call, size_t from) {
  for (size_t i = from; i < call->outputs.count; i++) {
    const rondo_output *output = &call->outputs.items[i].output;
    if (output->kind == RONDO_OUTPUT_FRESH) rondo_owned_free_address(call->tree, call->stream, output->address);
  }
}

static rondo_output_source source_of(const rondo_call *call) {
  if (call->recorder != NULL) return RONDO_OUTPUTS_NESTED;
  if (rondo_stream_find_capture(call->stream) == NULL) return RONDO_OUTPUTS_EAGER;
  return call->outer == NULL ? RONDO_OUTPUTS_CAPTURED : RONDO_OUTPUTS_NESTED;
}

static rondo_status return_outputs(rondo_call *call, rondo_buffer **outputs, size_t count) {
  const size_t made_count = call->outputs.count;
  rondo_output *made;
  size_t made_buffers = 0;
  rondo_status status = rondo_outputs_check_count(call->function, made_count, count);
  if (status == RONDO_OK) status = rondo_outputs_reserve(call->tree, made_count);
  if (status == RONDO_OK) status = rondo_allocate_items(&call->tree->allocator, made_count, sizeof *made, &made);
  if (status == RONDO_OK) {
    for (size_t i = 0; i < made_count; i++) made[i] = call->outputs.items[i].output;
    status = rondo_outputs_make(call->function, source_of(call), made, made_count, call->inputs, outputs, count,
                                &made_buffers);
    rondo_release(&call->tree->allocator, made, made_count, sizeof *made);
  }
  if (status != RONDO_OK) free_outputs(call, made_buffers);
  return status;
}

/* For path warm-ups. Without memory for the orders, paths are not warmed up. */
static void learn_orders(rondo_form *form, const rondo_call *call) {
  const rondo_allocator *allocator = &call->tree->allocator;
  const size_t count = call->outputs.count;
  rondo_saved_error before;
  rondo_error_save(&before);
  if (form->order_capacity != count) {
    rondo_form_forget_orders(call->tree, form);
    form->has_orders =
        rondo_allocate_items(allocator, count, sizeof *form->output_orders, &form->output_orders) == RONDO_OK;
    form->order_capacity = form->has_orders ? count : 0;
  }
  form->has_orders = form->order_capacity == count;
  for (size_t i = 0; i < form->order_capacity; i++) form->output_orders[i] = call->outputs.items[i].order;
  rondo_error_restore(&before);
}

void rondo_form_forget_orders(const rondo_tree *tree, rondo_form *form) {
  rondo_release(&tree->allocator, form->output_orders, form->order_capacity, sizeof *form->output_orders);
  form->output_orders = NULL;
  form->order_capacity = 0;
  form->has_orders = false;
}

/* A form is not recorded if its launches get different values in each run that are not inputs. */
static bool learn_values(rondo_form *form, rondo_call *call) {
  char message[RONDO_TREE_MESSAGE];
  if (!rondo_body_compare_values(form, call, message)) return false;
  if (++form->failures >= RONDO_MAX_FAILURES) rondo_form_skip(form, RONDO_SKIP_CHANGED, message);
  return true;
}

/* Updates the form from the run. */
static void learn(rondo_form *form, rondo_call *call) {
  if (call->refused != RONDO_SKIP_NONE) rondo_form_skip(form, call->refused, call->message);
  if (call->host_steps > 0 && call->tree->options.no_host_steps)
    rondo_form_skip(form, RONDO_SKIP_HOST_WORK,
                    "its body has host steps, and the tree does not record these (rondo_tree_options.no_host_steps)");
  form->output_count = call->outputs.count;
  form->host_steps = call->host_steps;
  learn_orders(form, call);
  const bool has_changed = learn_values(form, call);
  if (!call->is_warm_up || call->wants_warm_up || has_changed) return;
  if (form->warm_ups > 0) form->warm_ups--;
  keep_notes(form, call);
}

/* On a device that watches lifetimes, the run fails if the host code of the body accesses memory whose allocation the
 * stream has not reached yet. */
static void begin_body(rondo_call *call) {
  rondo_device *device = call->tree->device;
  const bool is_watched = device->ops->guard != NULL && call->tree->active == NULL;
  if (is_watched) call->host_watch = device->ops->guard->host_begin(device);
  rondo_body_begin(call);
}

/* The results of a run with such an access are invalid. */
static rondo_status end_body(rondo_call *call, rondo_status returned) {
  rondo_device *device = call->tree->device;
  const rondo_status status = rondo_body_end(call, returned);
  if (call->host_watch == NULL) return status;
  char who[RONDO_TREE_MESSAGE];
  (void)snprintf(who, sizeof who, "%s of '%.100s'", rondo_function_body_name(call->function),
                 call->function->origin->name);
  const rondo_status seen = device->ops->guard->host_end(device, call->host_watch, who);
  if (seen == RONDO_OK) return status;
  rondo_status_ignore(status, "it may be a consequence of the access that is reported");
  return seen;
}

void rondo_eager_begin(rondo_call *call, rondo_function *function, rondo_form *form, rondo_stream *stream,
                       rondo_resolved_input *inputs, bool is_warm_up) {
  const rondo_tree *tree = function->tree;
  *call = (rondo_call){.tree = function->tree,
                       .function = function,
                       .form = form,
                       .stream = stream,
                       .inputs = inputs,
                       .is_warm_up = is_warm_up,
                       .recorder = tree->active == NULL ? NULL : tree->active->recorder};
  call->notes_values =
      tree->active == NULL && form != NULL && form->skip == RONDO_SKIP_NONE && !function->options.freezes_values;
  begin_notes(call);
  rondo_estimate_begin(form, call);
  begin_body(call);
}

rondo_status rondo_eager_end(rondo_call *call, rondo_status returned, rondo_buffer **outputs, size_t count) {
  rondo_status status = end_body(call, returned);
  rondo_estimate_end(call->form, call, status);
  rondo_saved_error error;
  if (status != RONDO_OK) rondo_error_save(&error);
  end_notes(call);
  if (status != RONDO_OK) {
    free_outputs(call, 0);
    rondo_error_restore(&error);
  } else {
    status = return_outputs(call, outputs, count);
  }
  if (status == RONDO_OK && call->form != NULL) learn(call->form, call);
  assert(call->tree->active == NULL || call->tree->active->function != NULL);
  free_notes(call);
  rondo_body_free(call);
  return status;
}
