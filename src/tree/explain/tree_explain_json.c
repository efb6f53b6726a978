/* SPDX-License-Identifier: MIT
 * A tree explained as JSON. Its fields and their order are the header's (<rondo/tree.h>).
 */
#include <inttypes.h>
#include <stdio.h>

#include "tree/explain/tree_explain.h"
#include "tree/recording_key.h"
#include "tree/tree.h"

static void put_number(rondo_text *out, const char *key, uint64_t value) {
  rondo_json_key(out, key);
  rondo_json_u64(out, value);
}

static void put_bool(rondo_text *out, const char *key, bool value) {
  rondo_json_key(out, key);
  rondo_json_bool(out, value);
}

static void put_string(rondo_text *out, const char *key, const char *value) {
  rondo_json_key(out, key);
  rondo_json_string(out, value);
}

/* A number, or null for `none`. */
static void put_number_or_null(rondo_text *out, const char *key, uint32_t value, uint32_t none) {
  if (value == none)
    put_string(out, key, NULL);
  else
    put_number(out, key, value);
}

static void begin_list(rondo_text *out, const char *key) {
  rondo_json_key(out, key);
  rondo_json_array_begin(out);
}

static void begin_object(rondo_text *out, const char *key) {
  rondo_json_key(out, key);
  rondo_json_object_begin(out);
}

/* The tree --------------------------------------------------------------------------------------------------------- */

static void put_options(const rondo_tree *tree, rondo_text *out) {
  const rondo_tree_options *options = &tree->options;
  put_string(out, "name", options->name);
  put_string(out, "device", tree->device->name);
  put_string(out, "outputs", options->outputs == RONDO_OUTPUTS_CLONE ? "clone" : "expire");
  put_bool(out, "recording", !tree->is_off);
  put_bool(out, "strict", options->strict);
  put_bool(out, "deterministic", options->deterministic);
  put_bool(out, "separate", options->separate);
  put_bool(out, "host_steps", !options->no_host_steps);
  put_bool(out, "share_execs", options->share_execs);
  begin_object(out, "bounds");
  put_number(out, "recordings", options->max_recordings);
  put_number(out, "recordings_per_place", options->max_recordings_per_place);
  put_number(out, "arena_bytes", options->max_bytes);
  put_number(out, "exec_bytes", options->max_exec_bytes);
  rondo_json_object_end(out);
}

static void put_counters(const rondo_tree_info *info, rondo_text *out) {
  begin_object(out, "calls");
  put_number(out, "all", info->calls);
  put_number(out, "replayed", info->replayed);
  put_number(out, "recorded", info->recorded);
  put_number(out, "as_they_are", rondo_explain_skipped(info->skipped));
  rondo_json_object_end(out);
  put_number(out, "steps", info->steps);
  put_number(out, "prepared", info->prepared);
  put_number(out, "evicted", info->evicted);
  put_number(out, "rolled_back", info->rolled_back);
  put_number(out, "allocations", info->allocations);
}

/* `messages` is NULL where there are none. */
static void put_reasons(const uint64_t skipped[RONDO_SKIP_ROOM], char *const *messages, rondo_text *out) {
  begin_list(out, "reasons");
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++) {
    if (skipped[i] == 0) continue;
    rondo_json_object_begin(out);
    put_string(out, "reason", rondo_skip_name((rondo_skip)i));
    put_number(out, "calls", skipped[i]);
    if (messages != NULL) put_string(out, "message", messages[i] == NULL ? "" : messages[i]);
    rondo_json_object_end(out);
  }
  rondo_json_array_end(out);
}

static void put_bytes(const rondo_tree_info *info, rondo_text *out) {
  begin_object(out, "inputs");
  put_number(out, "patched", info->patched_inputs);
  put_number(out, "copied", info->copied_inputs);
  put_number(out, "copied_bytes", info->copied_bytes);
  put_number(out, "clones", info->clones);
  put_number(out, "cloned_bytes", info->cloned_bytes);
  put_number(out, "demoted", info->demoted);
  rondo_json_object_end(out);
  begin_object(out, "bytes");
  put_number(out, "arena_backed", info->arena_bytes);
  put_number(out, "arena_used", info->arena_used);
  put_number(out, "arena_least", info->arena_least);
  put_number(out, "unrecorded", info->unrecorded_bytes);
  put_number(out, "exec_host", info->exec_host_bytes);
  put_number(out, "exec_device", info->exec_device_bytes);
  put_number(out, "shared_execs", info->shared_execs);
  put_number(out, "exec_switches", info->exec_switches);
  put_number(out, "planned_paths", info->planned_paths);
  put_number(out, "planned_before", info->planned_before);
  put_number(out, "planned_after", info->planned_after);
  put_number(out, "rehearsed_paths", info->rehearsed_paths);
  put_number(out, "exec_overruns", info->exec_overruns);
  rondo_json_object_end(out);
}

static void put_path(const rondo_tree *tree, const rondo_tree_info *info, rondo_text *out) {
  begin_object(out, "path");
  put_number(out, "step", tree->path_step);
  put_number(out, "length", info->path_length);
  put_number_or_null(out, "recording", tree->current == NULL ? 0 : tree->current->number, 0);
  put_number(out, "live_outputs", info->live_outputs);
  rondo_json_object_end(out);
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static void put_layout(uint64_t bytes, uint32_t type, uint32_t rank, const uint64_t *shape, rondo_text *out) {
  put_number(out, "bytes", bytes);
  put_number(out, "type", type);
  begin_list(out, "shape");
  for (uint32_t i = 0; i < rank; i++) rondo_json_u64(out, shape[i]);
  rondo_json_array_end(out);
}

/* The object stays open. */
static void begin_input(const rondo_keyed_input *input, rondo_text *out) {
  rondo_json_object_begin(out);
  put_string(out, "kind", rondo_explain_way(input->way));
  if (input->way == RONDO_WAY_SCALAR)
    put_number(out, "value", input->bytes);
  else if (input->way != RONDO_WAY_OPAQUE)
    put_layout(input->bytes, input->type, input->rank, input->shape, out);
}

static void put_gain(const rondo_form *form, rondo_text *out) {
  if (!form->has_gain) {
    put_string(out, "gain", NULL);
    return;
  }
  begin_object(out, "gain");
  rondo_gain_to_json(&form->gain, out);
  rondo_json_object_end(out);
}

static void put_form(const rondo_function *function, const rondo_form *form, rondo_text *out) {
  const uint64_t *words = form->words;
  rondo_json_object_begin(out);
  put_number(out, "form", form->number);
  put_string(out, "state", rondo_explain_state(form));
  put_number(out, "warm_ups", form->warm_ups);
  put_number(out, "recordings", form->recordings);
  put_string(out, "reason", form->skip == RONDO_SKIP_NONE ? NULL : rondo_skip_name(form->skip));
  put_string(out, "message", form->skip == RONDO_SKIP_NONE ? "" : form->message);
  begin_list(out, "inputs");
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_keyed_input input;
    words = rondo_key_read_input(words, true, &input);
    begin_input(&input, out);
    rondo_json_object_end(out);
  }
  rondo_json_array_end(out);
  put_gain(form, out);
  rondo_json_object_end(out);
}

static void put_forms(const rondo_function *function, rondo_text *out) {
  const rondo_form *form = NULL;
  begin_list(out, "forms");
  while ((form = rondo_explain_next_form(function, form)) != NULL) put_form(function, form, out);
  rondo_json_array_end(out);
}

static void put_demoted_behind(const rondo_function *function, const rondo_recorded_call *behind, rondo_text *out) {
  const rondo_demoted *demoted = rondo_explain_demoted(behind, function);
  for (size_t i = 0; demoted != NULL && i < function->options.input_count; i++) {
    if (demoted->inputs[i].after == 0) continue;
    rondo_json_object_begin(out);
    put_number(out, "behind", behind->number);
    put_number(out, "input", i);
    put_number(out, "recordings", demoted->inputs[i].after);
    put_string(out, "way", rondo_explain_demotion(function));
    rondo_json_object_end(out);
  }
}

static void put_demoted(const rondo_function *function, rondo_text *out) {
  begin_list(out, "demoted");
  for (const rondo_recorded_call *behind = function->tree->first; behind != NULL; behind = behind->next)
    put_demoted_behind(function, behind, out);
  rondo_json_array_end(out);
}

static void put_function(const rondo_function *function, rondo_text *out) {
  static const char *const kinds[] = {"inference", "forward", "backward"};
  static const char *const bindings[] = {"automatic", "copy", "patch"};
  rondo_json_object_begin(out);
  put_string(out, "name", function->origin->name);
  put_string(out, "kind", kinds[function->options.kind]);
  put_string(out, "binding", bindings[function->options.binding]);
  put_bool(out, "recording", !function->is_off);
  put_number(out, "calls", function->calls);
  put_number(out, "replayed", function->replayed);
  put_number(out, "recorded", function->recorded);
  put_number(out, "as_they_are", rondo_explain_skipped(function->skipped));
  put_number(out, "bodies", function->bodies);
  put_number(out, "prepared", function->prepared);
  put_reasons(function->skipped, function->messages, out);
  put_forms(function, out);
  put_demoted(function, out);
  begin_object(out, "moved");
  put_number(out, "times", function->moved_count);
  put_string(out, "message", function->moved);
  rondo_json_object_end(out);
  rondo_json_object_end(out);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* From the root to the call: by depth, since calls know those before them only. */
static void put_path_to(const rondo_recorded_call *call, rondo_text *out) {
  begin_list(out, "path");
  for (uint32_t depth = 1; depth <= call->depth; depth++) {
    const rondo_recorded_call *at = call;
    while (at->depth > depth) at = at->parent;
    rondo_json_u64(out, at->number);
  }
  rondo_json_array_end(out);
}

static void put_address(const char *address, rondo_text *out) {
  char digits[24];
  (void)snprintf(digits, sizeof digits, "0x%" PRIxPTR, (uintptr_t)address);
  put_string(out, "address", digits);
}

static void put_input(const rondo_explained_input *input, rondo_text *out) {
  begin_input(&input->keyed, out);
  if (input->bound != NULL) {
    put_string(out, "way", rondo_explain_bound(input->bound));
    put_number(out, "nodes", input->nodes);
  }
  if (input->keyed.way == RONDO_WAY_STATIC) put_address(input->keyed.address, out);
  if (input->from != NULL) {
    put_number(out, "recording", input->from->number);
    put_number(out, "output", input->output);
  }
  rondo_json_object_end(out);
}

static void put_inputs(const rondo_recorded_call *call, rondo_text *out) {
  const uint64_t *words = rondo_key_inputs(call->key);
  begin_list(out, "inputs");
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_explained_input input;
    words = rondo_explain_input(call, i, words, &input);
    put_input(&input, out);
  }
  rondo_json_array_end(out);
}

static void put_output(const rondo_tree *tree, const rondo_recorded_call *call, const rondo_output *output,
                       rondo_text *out) {
  static const char *const places[] = {[RONDO_OUTPUT_EMPTY] = "empty",
                                       [RONDO_OUTPUT_FRESH] = "arena",
                                       [RONDO_OUTPUT_OF_INPUT] = "input",
                                       [RONDO_OUTPUT_OF_OUTPUT] = "output"};
  rondo_json_object_begin(out);
  put_string(out, "place", places[output->place]);
  put_number(out, "bytes", output->extent.bytes);
  if (output->place == RONDO_OUTPUT_FRESH) {
    put_number(out, "offset", rondo_explain_offset(tree, call, output));
    put_bool(out, "is_live", rondo_explain_is_live(tree, call, output));
  } else if (output->place != RONDO_OUTPUT_EMPTY) {
    put_number(out, "offset", output->offset);
    put_number(out, "of", output->of);
  }
  rondo_json_object_end(out);
}

static void put_findings_of(const rondo_recorded_call *call, size_t segment, rondo_text *out) {
  const rondo_segment *of = &call->segments[segment];
  const uint32_t count = rondo_explain_finding_count(of);
  for (uint32_t i = 0; i < count; i++) {
    rondo_patch_finding finding;
    rondo_explain_read_finding(of, i, &finding);
    rondo_json_object_begin(out);
    put_number(out, "segment", segment);
    put_string(out, "kind", rondo_explain_finding(finding.kind));
    put_number(out, "node", rondo_node_number(finding.node));
    put_number_or_null(out, "parameter", finding.parameter, RONDO_PATCH_NO_PARAMETER);
    const bool has_input = finding.input != RONDO_PATCH_NO_INPUT;
    put_number_or_null(out, "input", has_input ? call->bound[finding.input].input : finding.input,
                       RONDO_PATCH_NO_INPUT);
    put_string(out, "message", finding.message);
    rondo_json_object_end(out);
  }
}

static void put_work(const rondo_recorded_call *call, rondo_text *out) {
  put_number(out, "replays", call->replays);
  put_number(out, "nodes", rondo_explain_nodes(call));
  put_number(out, "segments", call->segment_count);
  put_number(out, "arena_bytes", call->arena_end);
  put_number(out, "arena_least", call->arena_least);
  put_number(out, "exec_host_bytes", call->exec_bytes[0]);
  put_number(out, "exec_device_bytes", call->exec_bytes[1]);
}

static void put_recording(const rondo_tree *tree, const rondo_recorded_call *call, rondo_text *out) {
  rondo_json_object_begin(out);
  put_number(out, "number", call->number);
  put_number_or_null(out, "parent", call->parent == NULL ? 0 : call->parent->number, 0);
  put_path_to(call, out);
  put_bool(out, "is_on_path", rondo_explain_is_on_path(tree, call));
  put_string(out, "function", call->function->origin->name);
  put_number(out, "form", call->form->number);
  put_work(call, out);
  put_inputs(call, out);
  begin_list(out, "outputs");
  for (size_t i = 0; i < call->output_count; i++) put_output(tree, call, &call->outputs[i], out);
  rondo_json_array_end(out);
  begin_list(out, "findings");
  for (size_t i = 0; i < call->segment_count; i++) put_findings_of(call, i, out);
  rondo_json_array_end(out);
  put_number(out, "slot_bytes", rondo_explain_slots(call, false));
  put_number(out, "idle_slot_bytes", rondo_explain_slots(call, true));
  rondo_json_object_end(out);
}

void rondo_explain_json(rondo_tree *tree, rondo_text *out) {
  const rondo_function *function = NULL;
  rondo_tree_info info;
  rondo_tree_read_info(tree, &info);
  rondo_json_object_begin(out);
  put_number(out, "rondo_tree", 1);
  put_options(tree, out);
  put_counters(&info, out);
  put_reasons(info.skipped, NULL, out);
  put_bytes(&info, out);
  put_path(tree, &info, out);
  begin_list(out, "functions");
  while ((function = rondo_explain_next_function(tree, function)) != NULL) put_function(function, out);
  rondo_json_array_end(out);
  begin_list(out, "recordings");
  for (const rondo_recorded_call *call = tree->first; call != NULL; call = call->next) put_recording(tree, call, out);
  rondo_json_array_end(out);
  rondo_json_object_end(out);
}
