/* SPDX-License-Identifier: MIT
 * A tree explained to people: aligned lines, each with one thing. Names and messages are escaped as in JSON, so that a
 * line stays one.
 */
#include <inttypes.h>

#include "tree/explain/tree_explain.h"
#include "tree/recording_key.h"
#include "tree/tree.h"

enum { LABEL = 13, DEEPEST = 16 };

static void put_escaped(rondo_text *out, const char *value) {
  char escaped[2 * RONDO_TREE_MESSAGE];
  const size_t length = rondo_json_escape(escaped, sizeof escaped, value);
  rondo_text_add_bytes(out, escaped, length);
}

static void put_name(rondo_text *out, const char *name) {
  rondo_text_add(out, "'");
  put_escaped(out, name);
  rondo_text_add(out, "'");
}

/* Where a line's text begins; "" goes on below the line before. */
static void put_label(rondo_text *out, const char *label) { rondo_text_add(out, "  %-*s", LABEL, label); }

static void put_size(rondo_text *out, uint64_t bytes) {
  char size[RONDO_SIZE_TEXT];
  rondo_text_add(out, "%s", rondo_size_text(size, bytes));
}

/* "3 calls", "1 call" */
static void put_count(rondo_text *out, uint64_t count, const char *one, const char *several) {
  rondo_text_add_grouped(out, count);
  rondo_text_add(out, " %s", count == 1 ? one : several);
}

/* The tree --------------------------------------------------------------------------------------------------------- */

static void put_flags(const rondo_tree *tree, rondo_text *out) {
  if (tree->is_off) rondo_text_add(out, "; recording is off");
  if (tree->options.strict) rondo_text_add(out, "; strict");
  if (tree->options.deterministic) rondo_text_add(out, "; deterministic");
  if (tree->options.separate) rondo_text_add(out, "; recordings are separate");
  if (tree->options.share_execs) rondo_text_add(out, "; execs are shared");
  if (tree->options.no_host_steps) rondo_text_add(out, "; no host steps");
  if (tree->options.outputs == RONDO_OUTPUTS_CLONE) rondo_text_add(out, "; outputs are cloned");
}

static void put_heading(const rondo_tree *tree, const rondo_tree_info *info, rondo_text *out) {
  rondo_text_add(out, "tree ");
  if (tree->options.name[0] != '\0') {
    put_name(out, tree->options.name);
    rondo_text_add(out, " ");
  }
  rondo_text_add(out, "on %s: ", tree->device->name);
  put_count(out, info->functions, "function", "functions");
  rondo_text_add(out, ", ");
  put_count(out, info->recordings, "recording", "recordings");
  rondo_text_add(out, ", ");
  put_count(out, info->roots, "root", "roots");
  put_flags(tree, out);
  rondo_text_add(out, "\n");
}

static void put_how_called(uint64_t calls, uint64_t replayed, uint64_t recorded, uint64_t as_is, rondo_text *out) {
  rondo_text_add_grouped(out, calls);
  rondo_text_add(out, ": %" PRIu64 " replayed, %" PRIu64 " recorded, %" PRIu64 " run as they are", replayed, recorded,
                 as_is);
}

/* Reasons without a message on one line, the others on one each. */
static void put_reasons(const uint64_t skipped[RONDO_SKIP_ROOM], char *const *messages, rondo_text *out) {
  const char *before = "";
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++) {
    if (skipped[i] == 0 || (messages != NULL && messages[i] != NULL)) continue;
    if (before[0] == '\0') put_label(out, "as it is");
    rondo_text_add(out, "%s%s %" PRIu64, before, rondo_skip_name((rondo_skip)i), skipped[i]);
    before = ", ";
  }
  if (before[0] != '\0') rondo_text_add(out, "\n");
  for (size_t i = 0; messages != NULL && i < RONDO_SKIP_ROOM; i++) {
    if (skipped[i] == 0 || messages[i] == NULL) continue;
    put_label(out, "as it is");
    rondo_text_add(out, "%s %" PRIu64 ": ", rondo_skip_name((rondo_skip)i), skipped[i]);
    put_escaped(out, messages[i]);
    rondo_text_add(out, "\n");
  }
}

static void put_inputs(const rondo_tree_info *info, rondo_text *out) {
  put_label(out, "inputs");
  rondo_text_add(out, "%" PRIu64 " patched, %" PRIu64 " copied (", info->patched_inputs, info->copied_inputs);
  put_size(out, info->copied_bytes);
  rondo_text_add(out, "); ");
  put_count(out, info->clones, "clone", "clones");
  rondo_text_add(out, " (");
  put_size(out, info->cloned_bytes);
  rondo_text_add(out, ")");
  if (info->demoted > 0) rondo_text_add(out, "; %" PRIu64 " demoted", info->demoted);
  rondo_text_add(out, "\n");
}

static void put_path(const rondo_tree *tree, const rondo_tree_info *info, rondo_text *out) {
  put_label(out, "path");
  rondo_text_add(out, "step %" PRIu64 ": ", tree->path_step);
  put_count(out, info->path_length, "recording", "recordings");
  if (tree->current != NULL) rondo_text_add(out, ", the last is number %" PRIu32, tree->current->number);
  rondo_text_add(out, "; ");
  put_count(out, info->live_outputs, "output lives\n", "outputs live\n");
}

static void put_arena(const rondo_tree_info *info, rondo_text *out) {
  put_label(out, "arena");
  put_size(out, info->arena_used);
  if (info->arena_least > 0) {
    rondo_text_add(out, " needed, ");
    rondo_text_add_ratio(out, (size_t)info->arena_used, (size_t)info->arena_least);
    rondo_text_add(out, " of the ");
    put_size(out, info->arena_least);
    rondo_text_add(out, " that live at once at most");
  }
  rondo_text_add(out, "; ");
  put_size(out, info->arena_bytes);
  rondo_text_add(out, " backed");
  if (info->rehearsed_paths > 0) {
    rondo_text_add(out, "; ");
    put_count(out, info->rehearsed_paths, "path planned as it was warmed up", "paths planned as they were warmed up");
  }
  if (info->planned_paths > 0) {
    rondo_text_add(out, "; ");
    put_count(out, info->planned_paths, "path planned again, from ", "paths planned again, the last from ");
    put_size(out, info->planned_before);
    rondo_text_add(out, " to ");
    put_size(out, info->planned_after);
  }
  rondo_text_add(out, "\n");
}

static void put_memory(const rondo_tree_info *info, rondo_text *out) {
  put_arena(info, out);
  put_label(out, "un-recorded");
  put_size(out, info->unrecorded_bytes);
  rondo_text_add(out, " in buffers of calls run as they are, clones, and those of rondo_buffer_create\n");
  put_label(out, "execs");
  put_size(out, info->exec_host_bytes);
  rondo_text_add(out, " of the host, ");
  put_size(out, info->exec_device_bytes);
  rondo_text_add(out, " of the device");
  if (info->shared_execs > 0)
    rondo_text_add(out, "; %" PRIu64 " recordings without one of their own, %" PRIu64 " switches", info->shared_execs,
                   info->exec_switches);
  rondo_text_add(out, "\n");
}

static void put_bound(const char *what, uint64_t bytes, rondo_text *out) {
  if (bytes == 0) return;
  rondo_text_add(out, ", %s ", what);
  put_size(out, bytes);
}

static void put_bounds(const rondo_tree *tree, rondo_text *out) {
  put_label(out, "bounds");
  rondo_text_add_grouped(out, tree->options.max_recordings);
  rondo_text_add(out, " recordings, %" PRIu32 " of a function in one place", tree->options.max_recordings_per_place);
  put_bound("arena", tree->options.max_bytes, out);
  put_bound("execs", tree->options.max_exec_bytes, out);
  if (tree->exec_overruns > 0) rondo_text_add(out, " (%" PRIu64 " made beyond it)", tree->exec_overruns);
  rondo_text_add(out, "; given up %" PRIu64 ", taken back %" PRIu64 "\n", tree->evicted, tree->rolled_back);
}

static void put_tree(const rondo_tree *tree, const rondo_tree_info *info, rondo_text *out) {
  put_heading(tree, info, out);
  put_label(out, "calls");
  put_how_called(info->calls, info->replayed, info->recorded, rondo_explain_skipped(info->skipped), out);
  rondo_text_add(out, "; ");
  put_count(out, info->steps, "step", "steps");
  if (info->prepared > 0) rondo_text_add(out, "; %" PRIu64 " prepared", info->prepared);
  rondo_text_add(out, "\n");
  put_reasons(info->skipped, NULL, out);
  put_inputs(info, out);
  put_path(tree, info, out);
  put_memory(info, out);
  put_bounds(tree, out);
}

/* Functions -------------------------------------------------------------------------------------------------------- */

/* "moving 4.0 KiB [2, 8] of type 1" */
static void put_input(const rondo_keyed_input *input, rondo_text *out) {
  rondo_text_add(out, "%s", rondo_explain_way(input->way));
  if (input->way == RONDO_WAY_OPAQUE) return;
  rondo_text_add(out, " ");
  if (input->way == RONDO_WAY_SCALAR) {
    rondo_text_add(out, "%" PRIu64, input->bytes);
    return;
  }
  put_size(out, input->bytes);
  for (uint32_t i = 0; i < input->rank; i++) rondo_text_add(out, "%s%" PRIu64, i == 0 ? " [" : ", ", input->shape[i]);
  if (input->rank > 0) rondo_text_add(out, "]");
  if (input->type != 0) rondo_text_add(out, " of type %" PRIu32, input->type);
}

static void put_state(const rondo_form *form, rondo_text *out) {
  rondo_text_add(out, "%s", rondo_explain_state(form));
  if (form->skip != RONDO_SKIP_NONE) {
    rondo_text_add(out, ": %s: ", rondo_skip_name(form->skip));
    put_escaped(out, form->message);
  } else if (form->warm_ups > 0) {
    rondo_text_add(out, ", %" PRIu32 " to go", form->warm_ups);
  } else if (form->recordings > 1) {
    rondo_text_add(out, " %" PRIu32 " times", form->recordings);
  }
  rondo_text_add(out, "\n");
}

static void put_form(const rondo_function *function, const rondo_form *form, rondo_text *out) {
  const uint64_t *words = form->words;
  rondo_text_add(out, "  form %-*" PRIu32, LABEL - 5, form->number);
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_keyed_input input;
    words = rondo_key_read_input(words, true, &input);
    if (i > 0) rondo_text_add(out, ", ");
    put_input(&input, out);
  }
  rondo_text_add(out, "%s", function->options.input_count > 0 ? ": " : "no input: ");
  put_state(form, out);
  if (!form->has_gain) return;
  put_label(out, "gain");
  rondo_gain_to_text(&form->gain, out);
  rondo_text_add(out, "\n");
}

static void put_moved(const rondo_function *function, rondo_text *out) {
  if (function->moved_count == 0) return;
  put_label(out, "moved");
  put_count(out, function->moved_count, "time: ", "times, the last: ");
  rondo_text_add(out, "%s\n", function->moved);
}

static void put_demoted(const rondo_function *function, const rondo_recorded_call *behind, rondo_text *out) {
  const rondo_demoted *demoted = rondo_explain_demoted(behind, function);
  for (size_t i = 0; demoted != NULL && i < function->options.input_count; i++) {
    if (demoted->inputs[i].after == 0) continue;
    put_label(out, "demoted");
    rondo_text_add(out, "input %zu behind %" PRIu32 " ", i, behind->number);
    put_name(out, behind->function->origin->name);
    rondo_text_add(out, ", another output of the path for %" PRIu32 " recordings: %s\n", demoted->inputs[i].after,
                   rondo_explain_demotion(function));
  }
}

static void put_function(const rondo_function *function, rondo_text *out) {
  const rondo_form *form = NULL;
  rondo_text_add(out, "\nfunction ");
  put_name(out, function->origin->name);
  rondo_text_add(out, ", calls ");
  put_how_called(function->calls, function->replayed, function->recorded, rondo_explain_skipped(function->skipped),
                 out);
  rondo_text_add(out, "; the body ran ");
  put_count(out, function->bodies, "time", "times");
  if (function->prepared > 0) rondo_text_add(out, "; %" PRIu64 " prepared", function->prepared);
  rondo_text_add(out, "%s\n", function->is_off ? "; recording is off" : "");
  put_reasons(function->skipped, function->messages, out);
  put_moved(function, out);
  while ((form = rondo_explain_next_form(function, form)) != NULL) put_form(function, form, out);
  for (const rondo_recorded_call *at = function->tree->first; at != NULL; at = at->next) put_demoted(function, at, out);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

static void indent(const rondo_recorded_call *call, rondo_text *out) {
  rondo_text_add(out, "%*s", 2 * (int)(call->depth < DEEPEST ? call->depth : DEEPEST), "");
}

static void begin_line(const rondo_recorded_call *call, rondo_text *out) {
  indent(call, out);
  rondo_text_add(out, "   ");
}

static void put_path_to(const rondo_recorded_call *call, rondo_text *out) {
  for (uint32_t depth = 1; depth <= call->depth; depth++) {
    const rondo_recorded_call *at = call;
    while (at->depth > depth) at = at->parent;
    rondo_text_add(out, "%s%" PRIu32, depth == 1 ? "" : " > ", at->number);
  }
}

static void put_how_bound(const rondo_explained_input *input, rondo_text *out) {
  if (input->bound == NULL) return;
  rondo_text_add(out, ", %s", rondo_explain_bound(input->bound));
  if (input->bound->way == RONDO_BOUND_PATCHED) {
    rondo_text_add(out, " in ");
    put_count(out, input->nodes, "node", "nodes");
  } else if (input->bound->way == RONDO_BOUND_COPIED_BEFORE) {
    rondo_text_add(out, " the launch");
  }
}

static void put_recorded_inputs(const rondo_recorded_call *call, rondo_text *out) {
  const uint64_t *words = rondo_key_inputs(call->key);
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_explained_input input;
    words = rondo_explain_input(call, i, words, &input);
    begin_line(call, out);
    rondo_text_add(out, "input %zu: ", i);
    put_input(&input.keyed, out);
    put_how_bound(&input, out);
    if (input.keyed.way == RONDO_WAY_STATIC) rondo_text_add(out, " at 0x%" PRIxPTR, (uintptr_t)input.keyed.address);
    if (input.from != NULL) {
      rondo_text_add(out, ", output %zu of %" PRIu32 " ", input.output, input.from->number);
      put_name(out, input.from->function->origin->name);
    }
    rondo_text_add(out, "\n");
  }
}

static void put_output(const rondo_tree *tree, const rondo_recorded_call *call, size_t index, rondo_text *out) {
  const rondo_output *output = &call->outputs[index];
  begin_line(call, out);
  rondo_text_add(out, "output %zu: ", index);
  put_size(out, output->extent.bytes);
  switch (output->place) {
    case RONDO_OUTPUT_EMPTY:
      break;
    case RONDO_OUTPUT_FRESH:
      rondo_text_add(out, " at %zu of the arena%s", rondo_explain_offset(tree, call, output),
                     rondo_explain_is_live(tree, call, output) ? ", live" : "");
      break;
    case RONDO_OUTPUT_OF_INPUT:
      rondo_text_add(out, " at %zu of input %" PRIu32, output->offset, output->of);
      break;
    case RONDO_OUTPUT_OF_OUTPUT:
      rondo_text_add(out, " at %zu of output %" PRIu32, output->offset, output->of);
  }
  rondo_text_add(out, "\n");
}

static void put_slots(const rondo_recorded_call *call, rondo_text *out) {
  put_size(out, rondo_explain_slots(call, false));
  rondo_text_add(out, " in slots, ");
  put_size(out, rondo_explain_slots(call, true));
  rondo_text_add(out, " of them idle; ");
}

static void put_work(const rondo_recorded_call *call, rondo_text *out) {
  begin_line(call, out);
  put_count(out, rondo_explain_nodes(call), "node", "nodes");
  rondo_text_add(out, " in ");
  put_count(out, call->segment_count, "segment", "segments");
  rondo_text_add(out, "; arena to ");
  put_size(out, call->arena_end);
  rondo_text_add(out, ", ");
  put_size(out, call->arena_least);
  rondo_text_add(out, " live at once; ");
  if (call->bound_count > 0) put_slots(call, out);
  rondo_text_add(out, "execs ");
  put_size(out, call->exec_bytes[0]);
  rondo_text_add(out, " of the host, ");
  put_size(out, call->exec_bytes[1]);
  rondo_text_add(out, " of the device\n");
}

static void put_findings(const rondo_recorded_call *call, const rondo_segment *segment, rondo_text *out) {
  const uint32_t count = rondo_explain_finding_count(segment);
  for (uint32_t i = 0; i < count; i++) {
    rondo_patch_finding finding;
    rondo_explain_read_finding(segment, i, &finding);
    begin_line(call, out);
    rondo_text_add(out, "%s: ", rondo_explain_finding(finding.kind));
    put_escaped(out, finding.message);
    rondo_text_add(out, "\n");
  }
}

static void put_recording(const rondo_tree *tree, const rondo_recorded_call *call, rondo_text *out) {
  indent(call, out);
  rondo_text_add(out, "%" PRIu32 " ", call->number);
  put_name(out, call->function->origin->name);
  rondo_text_add(out, " form %" PRIu32 ", replayed ", call->form->number);
  put_count(out, call->replays, "time", "times");
  rondo_text_add(out, "; path ");
  put_path_to(call, out);
  rondo_text_add(out, "%s\n", rondo_explain_is_on_path(tree, call) ? " (now)" : "");
  put_recorded_inputs(call, out);
  for (size_t i = 0; i < call->output_count; i++) put_output(tree, call, i, out);
  put_work(call, out);
  for (size_t i = 0; i < call->segment_count; i++) put_findings(call, &call->segments[i], out);
}

void rondo_explain_text(rondo_tree *tree, rondo_text *out) {
  const rondo_function *function = NULL;
  const rondo_recorded_call *call = NULL;
  rondo_tree_info info;
  rondo_tree_read_info(tree, &info);
  put_tree(tree, &info, out);
  while ((function = rondo_explain_next_function(tree, function)) != NULL) put_function(function, out);
  if (tree->first != NULL) rondo_text_add(out, "\nrecordings\n");
  while ((call = rondo_explain_next_recording(tree, call)) != NULL) put_recording(tree, call, out);
}
