/* SPDX-License-Identifier: MIT
 * Creates graphed callables: checks and copies the options, then calls the parts in order until all are recorded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "tree/call.h"
#include "tree/call_inputs.h"
#include "tree/callables/callables_internal.h"
#include "tree/tree.h"

#define CALL "rondo_callables_create"

enum { DEFAULT_WARM_UPS = 3, MIN_RECORDINGS = 4096, MAX_CALLABLES = INT32_MAX / 2 };

/* Checks ----------------------------------------------------------------------------------------------------------- */

static rondo_status refuse(const char *name, size_t index, const char *what) {
  const bool is_named = name != NULL && name[0] != '\0';
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, CALL ": callable %zu%s%.80s%s: %s", index,
                    is_named ? " ('" : "", is_named ? name : "", is_named ? "')" : "", what);
}

static bool is_kind(uint32_t kind) {
  const uint32_t base = kind & ~(uint32_t)RONDO_INPUT_MUTATED;
  return base == RONDO_INPUT_MOVING || base == RONDO_INPUT_STATIC;
}

static rondo_status check_samples(const rondo_callable *asked, size_t index, const uint32_t *kinds,
                                  const rondo_input *samples, size_t count) {
  if (count > 0 && (kinds == NULL || samples == NULL))
    return refuse(asked->name, index, "inputs without kinds or samples: give a kind and a sample for every input");
  for (size_t i = 0; i < count; i++) {
    if (!is_kind(kinds[i]))
      return refuse(asked->name, index,
                    "inputs must be RONDO_INPUT_MOVING or RONDO_INPUT_STATIC: a scalar or pointer would be frozen; "
                    "pass it in `user`, or in memory");
    if (samples[i].buffer != NULL || samples[i].address == NULL || samples[i].bytes == 0)
      return refuse(asked->name, index, "a sample must be memory with an address and bytes, not a buffer");
  }
  return RONDO_OK;
}

static rondo_status check_callable(const rondo_callable *asked, size_t index) {
  if (asked->name == NULL || asked->name[0] == '\0' || asked->forward == NULL)
    return refuse(asked->name, index, "name and forward are required");
  if (asked->reserved[0] != NULL || asked->reserved[1] != NULL)
    return refuse(asked->name, index, "'reserved' is set: leave it zero");
  RONDO_TRY(check_samples(asked, index, asked->inputs, asked->samples, asked->input_count));
  if (asked->backward == NULL) return RONDO_OK;
  return check_samples(asked, index, asked->gradients, asked->gradient_samples, asked->gradient_count);
}

static size_t find_in_order(const rondo_callables *callables, int32_t entry) {
  size_t at = 0;
  while (at < callables->order_count && callables->order[at] != entry) at++;
  return at;
}

/* Each part occurs once, and a backward after its forward. */
static rondo_status check_order(const rondo_callables *callables, const rondo_callables_options *options) {
  size_t parts = 0;
  for (size_t i = 0; i < options->callable_count; i++) {
    const rondo_callable *asked = &options->callables[i];
    const size_t forward = find_in_order(callables, (int32_t)i + 1);
    const size_t backward = find_in_order(callables, -(int32_t)i - 1);
    parts += asked->backward != NULL ? 2 : 1;
    if (forward == callables->order_count) return refuse(asked->name, i, "the order does not contain its forward");
    if (asked->backward != NULL && (backward == callables->order_count || backward < forward))
      return refuse(asked->name, i, "the order does not contain its backward after its forward");
  }
  if (parts == callables->order_count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    CALL ": the order has %zu calls, but the callables have %zu: list each call once",
                    callables->order_count, parts);
}

static rondo_status read_options(const rondo_callables_options *given, rondo_callables_options *out) {
  RONDO_TRY(rondo_require(CALL, "options", given));
  RONDO_TRY(rondo_versioned_read("rondo_callables_options", given, out, sizeof *out));
  RONDO_TRY(rondo_require(CALL, "options.callables", out->callables));
  if (out->callable_count == 0 || out->callable_count > MAX_CALLABLES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, CALL ": %zu callables: give 1 to %d",
                      out->callable_count, MAX_CALLABLES);
  for (size_t i = 0; i < out->callable_count; i++) RONDO_TRY(check_callable(&out->callables[i], i));
  if (out->warm_ups == 0) out->warm_ups = DEFAULT_WARM_UPS;
  return RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

static rondo_status make_order(rondo_callables *callables, const rondo_callables_options *options) {
  const size_t count = options->callable_count;
  size_t at = 0;
  callables->order_count = options->order_count;
  if (options->order == NULL) {
    callables->order_count = count;
    for (size_t i = 0; i < count; i++) callables->order_count += options->callables[i].backward != NULL;
  }
  const size_t capacity = callables->order_count;
  callables->order_count = 0; /* until the order is allocated */
  RONDO_TRY(rondo_allocate_items(&callables->allocator, capacity, sizeof *callables->order, &callables->order));
  callables->order_count = capacity;
  if (options->order != NULL) {
    if (capacity > 0) memcpy(callables->order, options->order, capacity * sizeof *options->order);
    return check_order(callables, options);
  }
  for (size_t i = 0; i < count; i++) callables->order[at++] = (int32_t)i + 1;
  for (size_t i = count; i > 0; i--)
    if (options->callables[i - 1].backward != NULL) callables->order[at++] = -(int32_t)i;
  return RONDO_OK;
}

static rondo_status allocate_part(const rondo_allocator *allocator, rondo_callable_part *part, size_t caller_count,
                                  size_t value_count, size_t output_count) {
  RONDO_TRY(rondo_allocate_items(allocator, value_count, sizeof *part->kinds, &part->kinds));
  part->value_count = value_count;
  RONDO_TRY(rondo_allocate_items(allocator, value_count, sizeof *part->values, &part->values));
  RONDO_TRY(rondo_allocate_items(allocator, value_count, sizeof *part->given, &part->given));
  RONDO_TRY(rondo_allocate_items(allocator, output_count, sizeof(rondo_buffer *), &part->outputs));
  part->caller_count = caller_count;
  part->output_count = output_count;
  return RONDO_OK;
}

/* All inputs are static, at the addresses of the samples. */
static rondo_status make_function(const rondo_callables *callables, rondo_callable_part *part, const char *name,
                                  rondo_function_body body, void *user, uint32_t warm_ups) {
  uint32_t *kinds;
  RONDO_TRY(rondo_allocate_items(&callables->allocator, part->value_count, sizeof *kinds, &kinds));
  for (size_t i = 0; i < part->value_count; i++)
    kinds[i] = RONDO_INPUT_STATIC | (part->kinds[i] & (uint32_t)RONDO_INPUT_MUTATED);
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT,      .name = name,        .body = body, .user = user, .inputs = kinds,
      .input_count = part->value_count, .warm_ups = warm_ups};
  const rondo_status status = rondo_function_create(callables->tree, &options, &part->function);
  rondo_release(&callables->allocator, kinds, part->value_count, sizeof *kinds);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, CALL);
}

static void set_inputs(rondo_callable_part *part, size_t first, const uint32_t *kinds, const rondo_input *samples,
                       size_t count) {
  for (size_t i = 0; i < count; i++) {
    part->kinds[first + i] = kinds[i];
    part->values[first + i] = samples[i];
    part->values[first + i].give = false;
  }
}

static rondo_status make_forward(const rondo_callables *callables, rondo_callable_part *part,
                                 const rondo_callable *asked, uint32_t warm_ups) {
  RONDO_TRY(allocate_part(&callables->allocator, part, asked->input_count, asked->input_count, asked->output_count));
  set_inputs(part, 0, asked->inputs, asked->samples, asked->input_count);
  return make_function(callables, part, asked->name, asked->forward, asked->user, warm_ups);
}

/* The inputs and outputs of the forward follow the gradients. The backward must not write them. */
static rondo_status make_backward(const rondo_callables *callables, rondo_callable_part *part,
                                  const rondo_callable *asked, uint32_t warm_ups) {
  const size_t gradients = asked->gradient_count, inputs = asked->input_count;
  char name[128];
  RONDO_TRY(allocate_part(&callables->allocator, part, gradients, gradients + inputs + asked->output_count,
                          asked->backward_output_count));
  set_inputs(part, 0, asked->gradients, asked->gradient_samples, gradients);
  set_inputs(part, gradients, asked->inputs, asked->samples, inputs);
  for (size_t i = gradients; i < part->value_count; i++) part->kinds[i] = RONDO_INPUT_STATIC;
  (void)snprintf(name, sizeof name, "%.80s backward", asked->name);
  return make_function(callables, part, name, asked->backward, asked->user, warm_ups);
}

static rondo_status make_parts(rondo_callables *callables, const rondo_callables_options *options) {
  const rondo_allocator *allocator = &callables->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, options->callable_count, sizeof *callables->states, &callables->states));
  callables->count = options->callable_count;
  for (size_t i = 0; i < callables->count; i++) {
    const rondo_callable *asked = &options->callables[i];
    rondo_callable_state *state = &callables->states[i];
    RONDO_TRY(make_forward(callables, &state->forward, asked, options->warm_ups));
    if (asked->backward != NULL) RONDO_TRY(make_backward(callables, &state->backward, asked, options->warm_ups));
  }
  return RONDO_OK;
}

/* Later calls must not run a body, so the limits never evict a recording. */
static rondo_status make_tree(rondo_callables *callables, rondo_device *device,
                              const rondo_callables_options *options) {
  const size_t recordings = 2 * callables->order_count;
  const rondo_tree_options tree = {
      RONDO_TREE_OPTIONS_INIT,
      .outputs = options->outputs,
      .name = options->name,
      .max_bytes = options->max_bytes,
      .max_recordings = recordings < MIN_RECORDINGS ? MIN_RECORDINGS : (uint32_t)recordings,
      .strict = true,
      .no_plan_again = true};
  const rondo_status status = rondo_tree_create(device, &tree, &callables->tree);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, CALL);
}

/* Recording -------------------------------------------------------------------------------------------------------- */

/* Calls one round. Reports whether all bodies were recorded or replayed. */
static rondo_status call_round(rondo_callables *callables, rondo_stream *stream, bool *out_is_recorded) {
  *out_is_recorded = true;
  for (size_t i = 0; i < callables->order_count; i++) {
    RONDO_TRY(rondo_callables_call_next(callables, stream));
    *out_is_recorded &= callables->tree->last_call.outcome != RONDO_CALL_EAGER;
  }
  return RONDO_OK;
}

/* A part whose recording departs from its profile is recorded again in the next round. */
static rondo_status call_rounds(rondo_callables *callables, rondo_stream *stream, uint32_t warm_ups) {
  bool is_recorded = false;
  for (uint32_t i = 0; !is_recorded && i < warm_ups + 1 + RONDO_MAX_FAILURES; i++)
    RONDO_TRY(call_round(callables, stream, &is_recorded));
  if (is_recorded) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED, CALL ": '%s' is not recorded: %s: %s",
                    callables->tree->last_call.function, rondo_skip_name(callables->tree->last_call.skip),
                    callables->tree->message);
}

static rondo_status save_part(const rondo_callables *callables, rondo_stream *stream, const rondo_callable_part *part,
                              rondo_saved *out) {
  rondo_tree *tree = callables->tree;
  RONDO_TRY(rondo_inputs_resolve(CALL, part->function, part->values, tree->inputs));
  return rondo_save(tree, stream, part->function, tree->inputs, out);
}

/* Returns the first failure. */
static rondo_status end_saves(const rondo_callables *callables, rondo_stream *stream, rondo_saved *saves,
                              size_t count) {
  rondo_status first = RONDO_OK;
  while (count > 0) {
    rondo_status_keep_first(&first, rondo_save_end(callables->tree, stream, &saves[--count], false));
  }
  return first;
}

/* Calls the rounds, then restores what they write and the random numbers they draw. */
static rondo_status record_saved(rondo_callables *callables, rondo_stream *stream, uint32_t warm_ups,
                                 rondo_saved *saves) {
  size_t saved = 0;
  rondo_status status = RONDO_OK;
  while (status == RONDO_OK && saved < callables->order_count) {
    status = save_part(callables, stream, rondo_callables_part(callables, saved), &saves[saved]);
    if (status == RONDO_OK) saved++;
  }
  if (status == RONDO_OK) status = call_rounds(callables, stream, warm_ups);
  rondo_callables_end_round(callables);
  RONDO_THEN(status, end_saves(callables, stream, saves, saved));
  return status;
}

static rondo_status record(rondo_callables *callables, rondo_stream *stream, uint32_t warm_ups) {
  rondo_saved *saves;
  RONDO_TRY(rondo_allocate_items(&callables->allocator, callables->order_count, sizeof *saves, &saves));
  const rondo_status status = record_saved(callables, stream, warm_ups, saves);
  rondo_release(&callables->allocator, saves, callables->order_count, sizeof *saves);
  callables->info.rounds = callables->info.calls = 0;
  return status;
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static void free_part(const rondo_allocator *allocator, const rondo_callable_part *part) {
  rondo_release(allocator, part->kinds, part->value_count, sizeof *part->kinds);
  rondo_release(allocator, part->values, part->value_count, sizeof *part->values);
  rondo_release(allocator, part->given, part->value_count, sizeof *part->given);
  rondo_release(allocator, part->outputs, part->output_count, sizeof(rondo_buffer *));
}

static void free_callables(rondo_callables *callables) {
  const rondo_allocator allocator = callables->allocator;
  for (size_t i = 0; i < callables->count; i++) {
    free_part(&allocator, &callables->states[i].forward);
    free_part(&allocator, &callables->states[i].backward);
  }
  rondo_release(&allocator, callables->states, callables->count, sizeof *callables->states);
  rondo_release(&allocator, callables->order, callables->order_count, sizeof *callables->order);
  rondo_release(&allocator, callables, 1, sizeof *callables);
}

static rondo_status make(rondo_callables *callables, rondo_device *device, rondo_stream *stream,
                         const rondo_callables_options *options) {
  RONDO_TRY(make_order(callables, options));
  RONDO_TRY(make_tree(callables, device, options));
  RONDO_TRY(make_parts(callables, options));
  return record(callables, stream, options->warm_ups);
}

/* Frees what a failed rondo_callables_create made. */
static void discard(rondo_callables *callables) {
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(rondo_tree_destroy(callables->tree), "the first failure is reported");
  free_callables(callables);
  rondo_error_restore(&error);
}

rondo_status rondo_callables_create(rondo_device *device, rondo_stream *stream, const rondo_callables_options *options,
                                    rondo_callables **out_callables) {
  rondo_callables_options known;
  rondo_callables *callables;
  RONDO_TRY(rondo_check_call(CALL, "out_callables", out_callables));
  *out_callables = NULL;
  RONDO_TRY(rondo_require(CALL, "the device", device));
  RONDO_TRY(rondo_require(CALL, "the stream", stream));
  RONDO_TRY(rondo_require_device(CALL, "the stream", device, stream->device));
  RONDO_TRY(rondo_device_require_own(CALL, device));
  RONDO_TRY(read_options(options, &known));
  RONDO_TRY(rondo_call_refuse_capture(CALL, stream));
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *callables, &callables));
  callables->allocator = device->allocator;
  const rondo_status status = make(callables, device, stream, &known);
  if (status != RONDO_OK) {
    discard(callables);
    return status;
  }
  *out_callables = callables;
  return RONDO_OK;
}

rondo_status rondo_callables_destroy(rondo_callables *callables) {
  const char *const call = "rondo_callables_destroy";
  if (callables == NULL || callables->tree->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_check_call(call, "the callables", callables));
  RONDO_TRY(rondo_tree_enter(callables->tree, call));
  rondo_tree_leave(callables->tree);
  rondo_callables_end_round(callables);
  const rondo_status status = rondo_tree_destroy(callables->tree);
  free_callables(callables);
  return status;
}

rondo_status rondo_callables_get_info(rondo_callables *callables, rondo_callables_info *out_info) {
  const char *const call = "rondo_callables_get_info";
  rondo_tree_info tree = {.struct_size = sizeof tree};
  RONDO_TRY(rondo_check_call(call, "the callables", callables));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  RONDO_TRY(rondo_tree_get_info(callables->tree, &tree));
  const int32_t entry = callables->order[callables->position];
  const rondo_callable_state *state = &callables->states[(entry > 0 ? entry : -entry) - 1];
  rondo_callables_info info = callables->info;
  info.callables = (uint32_t)callables->count;
  info.calls_per_round = (uint32_t)callables->order_count;
  info.position = (uint32_t)callables->position;
  info.next = state->forward.function->origin->name;
  info.is_backward = entry < 0;
  info.arena_bytes = tree.arena_bytes;
  info.exec_host_bytes = tree.exec_host_bytes;
  info.exec_device_bytes = tree.exec_device_bytes;
  for (size_t i = 0; i < callables->order_count; i++)
    info.bodies += rondo_callables_part(callables, i)->function->info.bodies;
  return rondo_versioned_write("rondo_callables_info", &info, out_info, sizeof info);
}
