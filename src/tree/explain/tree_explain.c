/* SPDX-License-Identifier: MIT
 * rondo_tree_explain, and its part about the tree, functions and forms. Functions and forms are listed oldest first,
 * which is the reverse of their linked lists.
 */
#include "tree/explain/tree_explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exec/api_check.h"
#include "tree/record/demote_inputs.h"
#include "tree/recorded_calls.h"
#include "tree/recording_key.h"
#include "tree/skip_reason.h"
#include "tree/tree.h"

/* The tree --------------------------------------------------------------------------------------------------------- */

static void explain_limits(const rondo_tree *tree, rondo_document *out) {
  const rondo_tree_options *options = &tree->options;
  rondo_document_label(out, "bounds");
  rondo_document_object_begin(out, "bounds");
  rondo_document_count(out, "recordings", options->max_recordings, "% recording(s)");
  rondo_document_count(out, "recordings_per_parent", options->max_recordings_per_parent,
                       "% of a function in one place");
  rondo_document_bytes(out, "arena_bytes", options->max_bytes, options->max_bytes > 0 ? "arena %" : NULL);
  rondo_document_bytes(out, "exec_bytes", options->max_exec_bytes, options->max_exec_bytes > 0 ? "execs %" : NULL);
  rondo_document_count(out, NULL, tree->info.exec_overruns,
                       tree->info.exec_overruns > 0 ? " (% made beyond it)" : NULL);
  rondo_document_object_end(out);
}

static void explain_options(const rondo_tree *tree, const rondo_tree_info *info, rondo_document *out) {
  const rondo_tree_options *options = &tree->options;
  const bool clones = options->outputs == RONDO_OUTPUTS_CLONE;
  rondo_document_line(out, "tree");
  rondo_document_string(out, "name", options->name, options->name[0] != '\0' ? " '%'" : NULL);
  rondo_document_string(out, "device", tree->device->name, " on %:");
  rondo_document_count(out, NULL, info->functions, " % function(s)");
  rondo_document_count(out, NULL, info->recordings, "% recording(s)");
  rondo_document_count(out, NULL, info->roots, "% root(s)");
  rondo_document_string(out, "outputs", clones ? "clone" : "expire", clones ? "; outputs are cloned" : NULL);
  rondo_document_flag(out, "recording", !tree->is_off, NULL, "; recording is off");
  rondo_document_flag(out, "strict", options->strict, "; strict", NULL);
  rondo_document_flag(out, "deterministic", options->deterministic, "; deterministic", NULL);
  rondo_document_flag(out, "host_steps", !options->no_host_steps, NULL, "; no host steps");
  rondo_document_flag(out, "share_execs", options->share_execs, "; execs are shared", NULL);
  explain_limits(tree, out);
}

static uint64_t sum_skipped(const uint64_t skipped[RONDO_SKIP_ROOM]) {
  uint64_t sum = 0;
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++) sum += skipped[i];
  return sum;
}

static void explain_counters(const rondo_tree_info *info, rondo_document *out) {
  rondo_document_label(out, "calls");
  rondo_document_object_begin(out, "calls");
  rondo_document_count(out, "all", info->calls, "%:");
  rondo_document_count(out, "replayed", info->replayed, " % replayed");
  rondo_document_count(out, "recorded", info->recorded, "% recorded");
  rondo_document_count(out, "eager", sum_skipped(info->skipped), "% eager");
  rondo_document_object_end(out);
  rondo_document_count(out, "steps", info->steps, "; % step(s)");
  rondo_document_count(out, "prepared", info->prepared, info->prepared > 0 ? "; % prepared" : NULL);
  rondo_document_count(out, "evicted", info->evicted, "; recordings: % evicted");
  rondo_document_count(out, "rolled_back", info->rolled_back, "% rolled back");
  rondo_document_count(out, "allocations", info->allocations, NULL);
}

/* Why calls ran eagerly. `messages` has the last message of each reason; NULL: the tree has no messages. */
static void explain_reasons(const uint64_t skipped[RONDO_SKIP_ROOM], char *const *messages, rondo_document *out) {
  rondo_document_list_begin(out, "reasons");
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++) {
    if (skipped[i] == 0) continue;
    rondo_document_label(out, "eager");
    rondo_document_object_begin(out, NULL);
    rondo_document_string(out, "reason", rondo_skip_name((rondo_skip)i), "%");
    rondo_document_count(out, "calls", skipped[i], " %");
    if (messages != NULL)
      rondo_document_string(out, "message", messages[i] == NULL ? "" : messages[i], messages[i] == NULL ? NULL : ": %");
    rondo_document_object_end(out);
  }
  rondo_document_list_end(out);
}

static void explain_inputs(const rondo_tree_info *info, rondo_document *out) {
  rondo_document_label(out, "inputs");
  rondo_document_object_begin(out, "inputs");
  rondo_document_count(out, "patched", info->patched_inputs, "% patched");
  rondo_document_count(out, "copied", info->copied_inputs, "% copied");
  rondo_document_bytes(out, "copied_bytes", info->copied_bytes, " (%)");
  rondo_document_count(out, "clones", info->clones, "; % clone(s)");
  rondo_document_bytes(out, "cloned_bytes", info->cloned_bytes, " (%)");
  rondo_document_count(out, "demoted", info->demoted, info->demoted > 0 ? "; % demoted" : NULL);
  rondo_document_object_end(out);
}

static void explain_plans(const rondo_tree_info *info, rondo_document *out) {
  const bool is_planned = info->planned_paths > 0;
  if (is_planned || info->warmed_up_paths > 0) rondo_document_label(out, "plans");
  rondo_document_count(out, "planned_paths", info->planned_paths, is_planned ? "% path(s) planned again" : NULL);
  rondo_document_bytes(out, "planned_before", info->planned_before, is_planned ? "the last from %" : NULL);
  rondo_document_bytes(out, "planned_after", info->planned_after, is_planned ? " to %" : NULL);
  rondo_document_count(out, "warmed_up_paths", info->warmed_up_paths,
                       info->warmed_up_paths > 0 ? "; % path(s) planned from warm-ups" : NULL);
}

static void explain_memory(const rondo_tree_info *info, rondo_document *out) {
  const char *const shared = info->shared_execs > 0 ? "; % recording(s) without an exec of their own" : NULL;
  rondo_document_object_begin(out, "bytes");
  rondo_document_label(out, "arena");
  rondo_document_bytes(out, "arena_backed", info->arena_bytes, "% backed");
  rondo_document_bytes(out, "arena_used", info->arena_used, "; % needed");
  rondo_document_ratio(out, info->arena_used, info->arena_minimum, "% of the");
  rondo_document_bytes(out, "arena_minimum", info->arena_minimum,
                       info->arena_minimum > 0 ? " % that live at once at most" : NULL);
  rondo_document_label(out, "eager");
  rondo_document_bytes(out, "eager", info->eager_bytes,
                       "% in buffers of eager calls, clones, and buffers of rondo_buffer_create");
  rondo_document_label(out, "execs");
  rondo_document_bytes(out, "exec_host", info->exec_host_bytes, "% of the host");
  rondo_document_bytes(out, "exec_device", info->exec_device_bytes, "% of the device");
  rondo_document_count(out, "shared_execs", info->shared_execs, shared);
  rondo_document_count(out, "exec_switches", info->exec_switches, shared != NULL ? "switched % time(s)" : NULL);
  explain_plans(info, out);
  rondo_document_count(out, "exec_overruns", info->exec_overruns, NULL);
  rondo_document_object_end(out);
}

static void explain_path(const rondo_tree *tree, const rondo_tree_info *info, rondo_document *out) {
  rondo_document_label(out, "path");
  rondo_document_object_begin(out, "path");
  rondo_document_number(out, "step", tree->path_step, "step %:");
  rondo_document_count(out, "length", info->path_length, " % recording(s)");
  rondo_explain_optional(out, "recording", tree->current != NULL, rondo_path_last_number(tree), "the last is number %");
  rondo_document_count(out, "live_outputs", info->live_outputs, "; % live output(s)");
  rondo_document_object_end(out);
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static void explain_shape(const rondo_keyed_input *input, rondo_document *out) {
  rondo_document_list_begin(out, "shape");
  for (uint32_t i = 0; i < input->rank; i++) rondo_document_number_item(out, input->shape[i], i == 0 ? " [%" : "%");
  rondo_document_list_end(out);
  if (input->rank > 0) rondo_document_say(out, "]");
}

void rondo_explain_input(const rondo_keyed_input *input, const char *phrase, rondo_document *out) {
  static const char *const names[] = {[RONDO_ROLE_MOVING] = "moving",
                                      [RONDO_ROLE_STATIC] = "static",
                                      [RONDO_ROLE_MANAGED] = "managed",
                                      [RONDO_ROLE_SCALAR] = "scalar",
                                      [RONDO_ROLE_OPAQUE] = "opaque"};
  rondo_document_string(out, "kind", names[input->role], phrase);
  if (input->role == RONDO_ROLE_OPAQUE) return;
  if (input->role == RONDO_ROLE_SCALAR) {
    rondo_document_number(out, "value", input->bytes, " %");
    return;
  }
  rondo_document_bytes(out, "bytes", input->bytes, " %");
  rondo_document_number(out, "type", input->type, input->type != 0 ? " of type %" : NULL);
  explain_shape(input, out);
}

static void explain_state(const rondo_form *form, rondo_document *out) {
  const bool is_eager = form->skip != RONDO_SKIP_NONE, is_warming_up = !is_eager && form->warm_ups > 0;
  const bool is_recorded = !is_eager && !is_warming_up && form->recordings > 0;
  const char *const state = is_eager ? "eager" : is_warming_up ? "warming up" : is_recorded ? "recorded" : "warm";
  rondo_document_string(out, "state", state, "%");
  rondo_document_number(out, "warm_ups", form->warm_ups, is_warming_up ? "% to go" : NULL);
  rondo_document_count(out, "recordings", form->recordings, is_recorded && form->recordings > 1 ? " % times" : NULL);
  rondo_document_string(out, "reason", is_eager ? rondo_skip_name(form->skip) : NULL, ": %");
  rondo_document_string(out, "message", is_eager ? form->message : "", is_eager ? ": %" : NULL);
}

/* The key of a region's form: its first bytes in hexadecimal digits, and as text if they are text. */
static void explain_key(const rondo_function *function, const rondo_form *form, rondo_document *out) {
  enum { MOST_BYTES = 32 };
  const size_t bytes = function->caller_words == 0 ? 0 : (size_t)form->words[0];
  const size_t shown = bytes < MOST_BYTES ? bytes : MOST_BYTES;
  const char *const key = bytes == 0 ? "" : (const char *)(form->words + 1);
  char digits[2 * MOST_BYTES + 1] = "", text[MOST_BYTES + 1] = "";
  bool is_text = bytes > 0;
  for (size_t i = 0; i < shown; i++) {
    (void)snprintf(digits + 2 * i, 3, "%02x", (unsigned char)key[i]);
    is_text = is_text && key[i] >= ' ' && key[i] <= '~';
  }
  if (is_text) memcpy(text, key, shown);
  const bool has_key = function->region != NULL && function->caller_words > 0;
  if (has_key) rondo_document_label(out, "key");
  rondo_document_string(out, "key", has_key ? digits : NULL, bytes == 0 ? "none" : bytes > shown ? "%..." : "%");
  if (is_text) rondo_document_string(out, NULL, text, ", '%'");
  rondo_document_bytes(out, "key_bytes", bytes, bytes > 0 ? " (%)" : NULL);
}

static void explain_form(const rondo_function *function, const rondo_form *form, rondo_document *out) {
  const uint64_t *words = rondo_key_form_inputs(function, form->words);
  rondo_document_line(out, "  form %-8" PRIu32, form->number);
  rondo_document_object_begin(out, NULL);
  rondo_document_number(out, "form", form->number, NULL);
  explain_state(form, out);
  rondo_document_list_begin(out, "inputs");
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_keyed_input input;
    words = rondo_key_read_input(words, true, &input);
    rondo_document_object_begin(out, NULL);
    rondo_explain_input(&input, i == 0 ? "; inputs: %" : "%", out);
    rondo_document_object_end(out);
  }
  rondo_document_list_end(out);
  if (form->has_gain) {
    rondo_document_label(out, "gain");
    rondo_document_object_begin(out, "gain");
    rondo_gain_describe(&form->gain, out);
    rondo_document_object_end(out);
  } else {
    rondo_document_null(out, "gain");
  }
  explain_key(function, form, out);
  rondo_document_object_end(out);
}

/* What regions have in addition to functions. */
static void explain_region(const rondo_function *function, rondo_document *out) {
  if (function->region == NULL) {
    rondo_document_null(out, "region");
    return;
  }
  rondo_document_label(out, "bounds");
  rondo_document_object_begin(out, "region");
  rondo_document_count(out, "max_recordings", function->options.max_shapes, "% recording(s)");
  rondo_document_bytes(out, "max_exec_bytes", function->max_exec_bytes,
                       function->max_exec_bytes > 0 ? "execs %" : NULL);
  rondo_document_bytes(out, "exec_bytes", rondo_recorded_exec_bytes(function), "; execs have %");
  rondo_document_count(out, "evicted", function->evicted, "; % evicted");
  rondo_document_count(out, "died", function->died, function->died > 0 ? "; % capture(s) died" : NULL);
  rondo_document_object_end(out);
}

static void explain_forms(const rondo_function *function, rondo_document *out) {
  const rondo_form *last = NULL;
  rondo_document_list_begin(out, "forms");
  while (last != function->forms) {
    const rondo_form *form = function->forms;
    while (form->next != last) form = form->next;
    explain_form(function, form, out);
    last = form;
  }
  rondo_document_list_end(out);
}

/* Inputs that are demoted after this recording. */
static void explain_demoted_after(const rondo_function *function, const rondo_recorded_call *call,
                                  rondo_document *out) {
  const bool is_skipped = function->options.demotion == RONDO_DEMOTION_SKIP;
  const rondo_demoted *demoted = call->demoted;
  while (demoted != NULL && demoted->function != function) demoted = demoted->next;
  for (size_t i = 0; demoted != NULL && i < function->options.input_count; i++) {
    if (demoted->inputs[i].after == 0) continue;
    rondo_document_label(out, "demoted");
    rondo_document_object_begin(out, NULL);
    rondo_document_number(out, "after", call->number, "after %");
    rondo_document_string(out, NULL, call->function->origin->name, " '%'");
    rondo_document_number(out, "input", i, ": input %");
    rondo_document_count(out, "recordings", demoted->inputs[i].after, "another output of the path for % recording(s)");
    rondo_document_string(out, "way", is_skipped ? "eager" : "bound", ": %");
    rondo_document_object_end(out);
  }
}

static void explain_moved(const rondo_function *function, rondo_document *out) {
  const bool is_moved = function->info.moved > 0;
  if (is_moved) rondo_document_label(out, "moved");
  rondo_document_object_begin(out, "moved");
  rondo_document_count(out, "times", function->info.moved, is_moved ? "% time(s)" : NULL);
  rondo_document_string(out, "message", function->moved, is_moved ? "the last: %" : NULL);
  rondo_document_object_end(out);
}

static void explain_function_calls(const rondo_function *function, rondo_document *out) {
  rondo_document_count(out, "calls", function->info.calls, ", calls %:");
  rondo_document_count(out, "replayed", function->info.replayed, " % replayed");
  rondo_document_count(out, "recorded", function->info.recorded, "% recorded");
  rondo_document_count(out, "eager", sum_skipped(function->info.skipped), "% eager");
  rondo_document_count(out, "bodies", function->info.bodies, "; the body ran % time(s)");
  rondo_document_count(out, "prepared", function->info.prepared, function->info.prepared > 0 ? "; % prepared" : NULL);
}

static void explain_function(const rondo_function *function, rondo_document *out) {
  static const char *const kinds[] = {"inference", "forward", "backward"};
  static const char *const bindings[] = {"automatic", "copy", "patch"};
  rondo_document_line(out, function->region == NULL ? "\nfunction" : "\nregion");
  rondo_document_object_begin(out, NULL);
  rondo_document_string(out, "name", function->origin->name, " '%'");
  rondo_document_string(out, "kind", kinds[function->options.kind], NULL);
  rondo_document_string(out, "binding", bindings[function->options.binding], NULL);
  rondo_document_flag(out, "recording", !function->is_off, NULL, ", recording is off");
  explain_function_calls(function, out);
  explain_reasons(function->info.skipped, function->messages, out);
  explain_forms(function, out);
  rondo_document_list_begin(out, "demoted");
  for (const rondo_recorded_call *at = function->tree->first; at != NULL; at = at->next)
    explain_demoted_after(function, at, out);
  rondo_document_list_end(out);
  explain_moved(function, out);
  explain_region(function, out);
  rondo_document_object_end(out);
}

static void explain_functions(const rondo_tree *tree, rondo_document *out) {
  const rondo_function *last = NULL;
  rondo_document_list_begin(out, "functions");
  while (last != tree->functions) {
    const rondo_function *function = tree->functions;
    while (function->next != last) function = function->next;
    explain_function(function, out);
    last = function;
  }
  rondo_document_list_end(out);
}

/* The public call -------------------------------------------------------------------------------------------------- */

static void explain_tree(rondo_tree *tree, rondo_document *out) {
  rondo_tree_info info;
  rondo_tree_read_info(tree, &info);
  rondo_document_number(out, "rondo_tree", 1, NULL);
  explain_options(tree, &info, out);
  explain_counters(&info, out);
  explain_reasons(info.skipped, NULL, out);
  explain_inputs(&info, out);
  explain_memory(&info, out);
  explain_path(tree, &info, out);
  explain_functions(tree, out);
  rondo_explain_recordings(tree, out);
}

rondo_status rondo_tree_explain(rondo_tree *tree, rondo_explain_format format, char **out_text) {
  const char *const call = "rondo_tree_explain";
  rondo_document document;
  rondo_text text;
  RONDO_TRY(rondo_check_call(call, "out_text", (const void *)out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require(call, "the tree", tree));
  if ((unsigned)format > RONDO_EXPLAIN_JSON)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %u is not a format: use RONDO_EXPLAIN_TEXT or RONDO_EXPLAIN_JSON", call, (unsigned)format);
  RONDO_TRY(rondo_tree_enter(tree, call));
  rondo_text_init(&text, &tree->allocator);
  rondo_document_begin(&document, &text, format == RONDO_EXPLAIN_JSON);
  explain_tree(tree, &document);
  rondo_document_end(&document);
  rondo_tree_leave(tree);
  return rondo_text_hand_out(&text, out_text);
}
