/* SPDX-License-Identifier: MIT
 * Functions: registered bodies, and the forms of their inputs.
 */
#include "tree/function.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "device/retired_objects.h"
#include "memory/arena/arena_guard.h"
#include "tree/call_inputs.h"
#include "tree/eager_call.h"
#include "tree/pad_to_bucket.h"
#include "tree/path/path_plan.h"
#include "tree/path/path_warm_up.h"
#include "tree/record/demote_inputs.h"
#include "tree/recorded_calls.h"
#include "tree/recording_key.h"
#include "tree/region.h"
#include "tree/skip_reason.h"
#include "tree/tree.h"
#include "tree/tree_check.h"

enum { MAX_INPUTS = 1024, DEFAULT_SHAPES = 64, DEFAULT_DEMOTE_AFTER = 5 };

/* Forms ------------------------------------------------------------------------------------------------------------ */

void rondo_form_skip(rondo_form *form, rondo_skip skip, const char *message) {
  form->skip = skip;
  (void)snprintf(form->message, sizeof form->message, "%s", message);
}

/* MUTATED_INPUT applies only while the written input is not an output of the path, and was not demoted. */
bool rondo_form_is_skipped(const rondo_form *form, const rondo_resolved_input *inputs) {
  if (form->skip != RONDO_SKIP_MUTATED_INPUT) return form->skip != RONDO_SKIP_NONE;
  const rondo_resolved_input *written = &inputs[form->written_input];
  return written->role != RONDO_ROLE_MANAGED && !written->is_mutated;
}

/* Reasons that are known before the first call of the form. */
static void decide_skip(const rondo_function *function, rondo_form *form) {
  const rondo_function_options *options = &function->options;
  if (options->record == RONDO_RECORD_NEVER)
    rondo_form_skip(form, RONDO_SKIP_DISABLED, "its options forbid it (rondo_function_options.record)");
  else if (options->unsafe)
    rondo_form_skip(form, RONDO_SKIP_UNSAFE, "its options forbid it (rondo_function_options.unsafe)");
  else if (options->unsafe_deterministic && function->tree->options.deterministic)
    rondo_form_skip(form, RONDO_SKIP_UNSAFE_DETERMINISTIC,
                    "its options forbid it in a deterministic tree (rondo_function_options.unsafe_deterministic)");
  else if (options->static_shapes && form->number > 1)
    rondo_form_skip(form, RONDO_SKIP_CHANGING_SHAPES,
                    "the form of its inputs differs from the first one (rondo_function_options.static_shapes): pad the "
                    "inputs, or allow several forms");
  else if (form->number > options->max_shapes)
    rondo_form_skip(
        form, RONDO_SKIP_SHAPE_LIMIT,
        "it has the maximum number of forms of inputs (rondo_function_options.max_shapes): pad the inputs to "
        "fewer shapes, or raise the limit");
}

static rondo_status make_form(rondo_function *function, const uint64_t *words, size_t count, rondo_form **out) {
  const rondo_allocator *allocator = &function->tree->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof **out, out));
  rondo_form *form = *out;
  const rondo_status status = rondo_allocate_items(allocator, count, sizeof *form->words, &form->words);
  if (status != RONDO_OK) {
    rondo_release(allocator, form, 1, sizeof *form);
    return status;
  }
  if (count > 0) memcpy(form->words, words, count * sizeof *words);
  form->word_count = count;
  form->number = ++function->info.shapes;
  form->warm_ups = function->options.warm_ups;
  form->next = function->forms;
  function->forms = form;
  decide_skip(function, form);
  return RONDO_OK;
}

static void free_form(const rondo_tree *tree, rondo_form *form) {
  rondo_form_forget_notes(tree, form);
  rondo_form_forget_orders(tree, form);
  rondo_launch_values_free(&form->values);
  rondo_meter_free(&form->meter);
  rondo_release(&tree->allocator, form->words, form->word_count, sizeof *form->words);
  rondo_release(&tree->allocator, form, 1, sizeof *form);
}

/* The place of the least recently used form without recordings; NULL: each has one. */
static rondo_form **find_idle_form(rondo_function *function) {
  rondo_form **oldest = NULL;
  for (rondo_form **place = &function->forms; *place != NULL; place = &(*place)->next)
    if ((*place)->recordings == 0 && (oldest == NULL || (*place)->used < (*oldest)->used)) oldest = place;
  return oldest;
}

/* A region has any number of keys, one after another: at the limit, its least recently used form makes room. Returns
 * the number of the new form; 0: that is the next one. */
static uint32_t make_room(rondo_function *function) {
  rondo_tree *tree = function->tree;
  if (function->region == NULL || function->info.shapes < function->options.max_shapes) return 0;
  rondo_path_warm_up_forget(tree, function);
  rondo_path_plan_forget(tree, function);
  rondo_form **place = find_idle_form(function);
  for (uint32_t left = function->info.recordings; place == NULL && left > 0; left--) {
    rondo_recorded_evict_of(function, left - 1, 0);
    place = find_idle_form(function);
  }
  if (place == NULL) return 0;
  rondo_form *form = *place;
  const uint32_t number = form->number;
  *place = form->next;
  function->info.shapes--;
  free_form(tree, form);
  return number;
}

/* Beyond the limit, all forms share one, so that any number of shapes takes bounded memory. */
static rondo_form *find_last_form(const rondo_function *function) {
  const bool is_full = function->info.shapes > function->options.max_shapes ||
                       (function->options.static_shapes && function->info.shapes > 1);
  return is_full ? function->forms : NULL;
}

rondo_status rondo_form_find(rondo_function *function, const rondo_resolved_input *inputs, rondo_form **out) {
  rondo_tree *tree = function->tree;
  const rondo_allocator *allocator = &tree->allocator;
  const size_t capacity = rondo_key_max_words(function->options.input_count, function->caller_words);
  uint64_t *words;
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *words, &words));
  const size_t count = rondo_key_make_form(function, inputs, words);
  rondo_form *form = function->forms;
  while (form != NULL &&
         !(form->word_count == count && (count == 0 || memcmp(form->words, words, count * sizeof *words) == 0)))
    form = form->next;
  const uint32_t number = form == NULL ? make_room(function) : 0;
  if (form == NULL) form = find_last_form(function);
  *out = form;
  const rondo_status status = form == NULL ? make_form(function, words, count, out) : RONDO_OK;
  rondo_release(allocator, words, capacity, sizeof *words);
  if (status != RONDO_OK) return status;
  if (number > 0) (*out)->number = number;
  (*out)->used = ++tree->tick;
  return RONDO_OK;
}

static void free_forms(rondo_function *function) {
  while (function->forms != NULL) {
    rondo_form *form = function->forms;
    function->forms = form->next;
    free_form(function->tree, form);
  }
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static rondo_status check_inputs(const char *call, const rondo_function_options *options) {
  if (options->input_count > MAX_INPUTS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: '%s' has %zu inputs, and the maximum is %d", call, options->name, options->input_count,
                      MAX_INPUTS);
  if (options->input_count > 0) RONDO_TRY(rondo_require(call, "inputs", options->inputs));
  for (size_t i = 0; i < options->input_count; i++) {
    const uint32_t others = options->inputs[i] & ~(uint32_t)RONDO_INPUT_MUTATED;
    const uint32_t unpadded = others & ~(uint32_t)(RONDO_INPUT_ROWS | RONDO_INPUT_LENGTH);
    const uint32_t kind = unpadded == RONDO_INPUT_MOVING ? RONDO_INPUT_MOVING : others;
    const bool is_memory = kind == RONDO_INPUT_MOVING || kind == RONDO_INPUT_STATIC;
    if (is_memory || ((kind == RONDO_INPUT_SCALAR || kind == RONDO_INPUT_OPAQUE) && kind == options->inputs[i]))
      continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: input %zu of '%s' is %#" PRIx32
                      ", which is not a kind of input: use RONDO_INPUT_MOVING or another RONDO_INPUT_ name",
                      call, i, options->name, options->inputs[i]);
  }
  return RONDO_OK;
}

static rondo_status check_choice(const char *call, const char *name, unsigned value, unsigned last, const char *what) {
  if (value <= last) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: '%s': %u is not a %s", call, name, value,
                    what);
}

static rondo_status read_options(const char *call, const rondo_function_options *given, rondo_function_options *out) {
  RONDO_TRY(rondo_require(call, "options", given));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_function_options", given, out));
  RONDO_TRY(rondo_require(call, "options.name", out->name));
  if (out->name[0] == '\0')
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                      "%s: options.name is empty: give a name for messages and explanations", call);
  RONDO_TRY(rondo_require(call, "options.body", (const void *)(uintptr_t)out->body));
  RONDO_TRY(check_choice(call, out->name, (unsigned)out->kind, RONDO_FUNCTION_BACKWARD,
                         "kind of function: use a RONDO_FUNCTION_ name"));
  RONDO_TRY(
      check_choice(call, out->name, (unsigned)out->binding, RONDO_BINDING_PATCH, "binding: use a RONDO_BINDING_ name"));
  RONDO_TRY(check_choice(call, out->name, (unsigned)out->demotion, RONDO_DEMOTION_NEVER,
                         "demotion: use a RONDO_DEMOTION_ name"));
  RONDO_TRY(rondo_record_policy_check(call, out->record));
  RONDO_TRY(rondo_gain_bar_check(call, (rondo_gain_bar){.least = out->least_gain}));
  if (out->demote_after == 0) out->demote_after = DEFAULT_DEMOTE_AFTER;
  const uint32_t fewest = out->record == RONDO_RECORD_AUTO ? 2 : 1;
  if (out->warm_ups < fewest) out->warm_ups = fewest;
  if (out->max_shapes == 0) out->max_shapes = DEFAULT_SHAPES;
  RONDO_TRY(check_inputs(call, out));
  return rondo_padding_check(out);
}

/* The scratch memory of a call is as large as the largest function needs. */
static rondo_status reserve_scratch(rondo_tree *tree, size_t input_count, size_t caller_words) {
  const rondo_allocator *allocator = &tree->allocator;
  if (input_count < tree->input_capacity) input_count = tree->input_capacity;
  size_t words = rondo_key_max_words(input_count, caller_words);
  if (input_count <= tree->input_capacity && words <= tree->word_capacity) return RONDO_OK;
  if (words < tree->word_capacity) words = tree->word_capacity;
  rondo_resolved_input *inputs = NULL;
  uint32_t *moves = NULL;
  uint64_t *key = NULL;
  rondo_status status = rondo_allocate_items(allocator, input_count, sizeof *inputs, &inputs);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, input_count, sizeof *moves, &moves);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, words, sizeof *key, &key);
  if (status != RONDO_OK) {
    rondo_release(allocator, inputs, input_count, sizeof *inputs);
    rondo_release(allocator, moves, input_count, sizeof *moves);
    return status;
  }
  rondo_release(allocator, tree->inputs, tree->input_capacity, sizeof *tree->inputs);
  rondo_release(allocator, tree->moves, tree->input_capacity, sizeof *tree->moves);
  rondo_release(allocator, tree->words, tree->word_capacity, sizeof *tree->words);
  tree->inputs = inputs;
  tree->moves = moves;
  tree->input_capacity = input_count;
  tree->words = key;
  tree->word_capacity = words;
  return RONDO_OK;
}

static bool has_memory_alone(const rondo_function_options *options) {
  for (size_t i = 0; i < options->input_count; i++)
    if ((options->inputs[i] & 0xff) > RONDO_INPUT_STATIC) return false;
  return true;
}

static rondo_status fill(rondo_function *function, rondo_tree *tree, const rondo_function_options *options,
                         size_t caller_words) {
  const size_t count = options->input_count;
  uint32_t *inputs;
  function->tree = tree;
  function->info.last_message = function->message;
  function->info.moved_message = function->moved;
  function->options = *options;
  function->options.inputs = NULL;
  function->options.input_count = 0;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, caller_words, sizeof(uint64_t), &function->caller_key));
  function->caller_words = caller_words;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof *inputs, &inputs));
  if (count > 0) memcpy(inputs, options->inputs, count * sizeof *inputs);
  for (size_t i = 0; i < count; i++) {
    function->has_written |= (inputs[i] & RONDO_INPUT_MUTATED) != 0;
    const bool comes_moving = (inputs[i] & 0xff) == RONDO_INPUT_MOVING;
    function->has_written_moving |= comes_moving && (inputs[i] & RONDO_INPUT_MUTATED) != 0;
  }
  function->options.inputs = inputs;
  function->options.input_count = count;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof *function->by_address, &function->by_address));
  for (uint32_t i = 0; i < count; i++) function->by_address[i] = i;
  RONDO_TRY(reserve_scratch(tree, count, function->caller_words));
  function->options.buckets = function->options.lengths = NULL;
  RONDO_TRY(rondo_padding_create(tree, options, &function->padding));
  function->takes_raw =
      !function->has_written && function->padding == NULL && !tree->is_watched && has_memory_alone(&function->options);
  RONDO_TRY(rondo_origin_create(tree->commons, options->name, &function->origin));
  function->options.name = function->origin->name;
  return RONDO_OK;
}

static rondo_status create(rondo_tree *tree, const rondo_function_options *options, size_t caller_words,
                           rondo_function **out) {
  rondo_function *function;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, 1, sizeof *function, &function));
  const rondo_status status = fill(function, tree, options, caller_words);
  if (status != RONDO_OK) {
    rondo_function_free(function);
    return status;
  }
  function->number = ++tree->functions_made;
  function->next = tree->functions;
  tree->functions = function;
  tree->info.functions++;
  *out = function;
  return RONDO_OK;
}

rondo_status rondo_function_make(const char *call, rondo_tree *tree, const rondo_function_options *options,
                                 size_t caller_words, rondo_function **out) {
  rondo_function_options known;
  RONDO_TRY(rondo_check_call(call, "the tree", tree));
  RONDO_TRY(rondo_device_require_own(call, tree->device));
  RONDO_TRY(read_options(call, options, &known));
  RONDO_TRY(rondo_tree_enter(tree, call));
  const rondo_status status = create(tree, &known, caller_words, out);
  rondo_tree_leave(tree);
  return status;
}

rondo_status rondo_function_create(rondo_tree *tree, const rondo_function_options *options,
                                   rondo_function **out_function) {
  const char *const call = "rondo_function_create";
  RONDO_TRY(rondo_check_call(call, "out_function", out_function));
  *out_function = NULL;
  return rondo_function_make(call, tree, options, 0, out_function);
}

void rondo_function_free(rondo_function *function) {
  rondo_tree *tree = function->tree;
  free_forms(function);
  rondo_padding_free(tree, function->padding);
  rondo_skip_forget(function);
  rondo_release(&tree->allocator, function->caller_key, function->caller_words, sizeof(uint64_t));
  rondo_region_free(tree, function->region);
  if (function->origin != NULL) rondo_origin_retire(tree->commons, function->origin);
  rondo_release(&tree->allocator, (void *)(uintptr_t)function->options.inputs, function->options.input_count,
                sizeof *function->options.inputs);
  rondo_release(&tree->allocator, function->by_address, function->options.input_count, sizeof *function->by_address);
  rondo_release(&tree->allocator, function, 1, sizeof *function);
}

/* Outputs of a removed recording stay valid for their step, whose further calls run eagerly. */
static void leave_path(rondo_tree *tree, const rondo_function *function) {
  for (const rondo_recorded_call *at = tree->current; at != NULL; at = at->parent)
    if (at->function == function) {
      tree->is_eager = true;
      tree->current = NULL;
      return;
    }
}

void rondo_function_forget_recordings(rondo_function *function) {
  rondo_tree *tree = function->tree;
  leave_path(tree, function);
  rondo_path_plan_forget(tree, function);
  rondo_demoted_forget(tree, function);
  rondo_path_warm_up_forget(tree, function);
  for (rondo_recorded_call *call = tree->first, *next; call != NULL; call = next) {
    next = call->next;
    if (call->function != function) continue;
    rondo_recorded_remove(tree, call);
    next = tree->first; /* the recordings after it were removed too */
  }
}

static void destroy(rondo_function *function) {
  rondo_tree *tree = function->tree;
  rondo_function_forget_recordings(function);
  rondo_function **place = &tree->functions;
  while (*place != function) place = &(*place)->next;
  *place = function->next;
  tree->info.functions--;
  if (tree->last_call.function == function->origin->name) tree->last_call = (rondo_call_info){.function = ""};
  rondo_function_free(function);
}

const char *rondo_function_call_name(const rondo_function *function) {
  return function->region == NULL ? "rondo_function_call" : "rondo_region_begin";
}

const char *rondo_function_body_name(const rondo_function *function) {
  return function->region == NULL ? "rondo_function_call: the body" : "rondo_region_end: the code";
}

rondo_status rondo_function_remove(const char *call, rondo_function *function) {
  if (function == NULL || function->tree->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_check_call(call, "the function", function));
  rondo_tree *tree = function->tree;
  RONDO_TRY(rondo_tree_enter(tree, call));
  destroy(function);
  rondo_retired_objects_look(tree->device, RONDO_QUEUE_NONE);
  rondo_tree_check(tree);
  rondo_tree_leave(tree);
  return RONDO_OK;
}

rondo_status rondo_function_destroy(rondo_function *function) {
  return rondo_function_remove("rondo_function_destroy", function);
}

rondo_status rondo_function_set_recording(rondo_function *function, bool on) {
  const char *const call = "rondo_function_set_recording";
  RONDO_TRY(rondo_check_call(call, "the function", function));
  RONDO_TRY(rondo_tree_enter(function->tree, call));
  function->is_off = !on;
  rondo_tree_leave(function->tree);
  return RONDO_OK;
}

rondo_status rondo_function_get_info(const rondo_function *function, rondo_function_info *out_info) {
  const char *const call = "rondo_function_get_info";
  RONDO_TRY(rondo_check_call(call, "the function", function));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  RONDO_TRY(rondo_tree_enter(function->tree, call));
  rondo_function_info info = function->info;
  rondo_tree_leave(function->tree);
  return rondo_versioned_write("rondo_function_info", &info, out_info, sizeof info);
}

/* Watched devices -------------------------------------------------------------------------------------------------- */

/* The tree owns the outputs of the path, so they may be written without a declaration. */
static bool is_of_path(const rondo_tree *tree, const rondo_resolved_input *input) {
  if (input->buffer == NULL) return false;
  const rondo_buffer *base = input->buffer->base != NULL ? input->buffer->base : input->buffer;
  return base->generation == tree->commons->generation;
}

void rondo_memory_protect_inputs(rondo_tree *tree, rondo_stream *stream, const rondo_function *function, bool on) {
  if (!tree->is_watched || rondo_inputs_are_written_shared(function, tree->inputs)) return;
  for (size_t i = 0; i < function->options.input_count; i++) {
    const rondo_resolved_input *input = &tree->inputs[i];
    if (input->role == RONDO_ROLE_MOVING && !input->is_mutated && input->bytes > 0 && !is_of_path(tree, input))
      rondo_memory_set_read_only(tree->memory, stream->queue, input->address, on);
  }
}
