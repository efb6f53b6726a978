/* SPDX-License-Identifier: MIT
 * The part of rondo_tree_explain about recordings: their position in the tree, work, inputs, outputs and findings. Text
 * lists recordings depth first and indents each below its parent. JSON lists them oldest first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tree/explain/tree_explain.h"
#include "tree/recording_key.h"

enum { DEEPEST = 16 }; /* levels that are indented */

static void begin_line(const rondo_recorded_call *call, rondo_document *out) {
  rondo_document_line(out, "%*s   ", 2 * (int)(call->depth < DEEPEST ? call->depth : DEEPEST), "");
}

static bool is_on_path(const rondo_tree *tree, const rondo_recorded_call *call) {
  const rondo_recorded_call *at = tree->current;
  while (at != NULL && at != call) at = at->parent;
  return at != NULL;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static const rondo_bound_input *find_bound(const rondo_recorded_call *call, size_t input) {
  for (size_t i = 0; i < call->bound_count; i++)
    if (call->bound[i].input == input) return &call->bound[i];
  return NULL;
}

/* Counts the nodes that have the input's address, or copy from it. */
static uint64_t count_nodes_of(const rondo_recorded_call *call, const rondo_bound_input *bound) {
  uint64_t nodes = 0;
  rondo_patch_input_info info = {.struct_size = sizeof info};
  for (size_t i = 0; i < call->segment_count; i++)
    if (call->segments[i].patches != NULL &&
        rondo_patch_set_get_input(call->segments[i].patches, (uint32_t)(bound - call->bound), &info) == RONDO_OK)
      nodes += info.nodes;
  return nodes;
}

static void explain_bound(const rondo_recorded_call *call, size_t input, rondo_document *out) {
  static const char *const names[] = {[RONDO_BOUND_PATCHED] = "patched",
                                      [RONDO_BOUND_COPIED] = "copied",
                                      [RONDO_BOUND_COPIED_BEFORE] = "copied before"};
  const rondo_bound_input *bound = find_bound(call, input);
  if (bound == NULL) return;
  rondo_document_string(out, "way", names[bound->method], "%");
  if (bound->method == RONDO_BOUND_COPIED_BEFORE) rondo_document_say(out, " the launch");
  rondo_document_count(out, "nodes", count_nodes_of(call, bound),
                       bound->method == RONDO_BOUND_PATCHED ? " in % node(s)" : NULL);
}

static void explain_address(const char *address, rondo_document *out) {
  char digits[24];
  (void)snprintf(digits, sizeof digits, "0x%" PRIxPTR, (uintptr_t)address);
  rondo_document_string(out, "address", digits, " at %");
}

static bool contains(const rondo_output *output, const char *address) {
  const char *begin = output->address;
  return output->kind == RONDO_OUTPUT_FRESH && address >= begin && address < begin + output->extent.bytes;
}

/* Names the output at the address. If several outputs of the path use the address, the latest one. */
static void explain_source(const rondo_recorded_call *call, const char *address, rondo_document *out) {
  for (const rondo_recorded_call *at = call->parent; at != NULL; at = at->parent)
    for (size_t i = 0; i < at->output_count; i++) {
      if (!contains(&at->outputs[i], address)) continue;
      rondo_document_number(out, "recording", at->number, "from %");
      rondo_document_string(out, NULL, at->function->origin->name, " '%'");
      rondo_document_number(out, "output", i, " output %");
      return;
    }
}

static void explain_inputs(const rondo_recorded_call *call, rondo_document *out) {
  const uint64_t *words = rondo_key_inputs(call->function, call->key);
  rondo_document_list_begin(out, "inputs");
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_keyed_input input;
    words = rondo_key_read_input(words, false, &input);
    begin_line(call, out);
    rondo_document_object_begin(out, NULL);
    rondo_document_number(out, NULL, i, "input %:");
    rondo_explain_input(&input, " %", out);
    if (input.role == RONDO_ROLE_MOVING) explain_bound(call, i, out);
    if (input.role == RONDO_ROLE_STATIC) explain_address(input.address, out);
    if (input.role == RONDO_ROLE_MANAGED) explain_source(call, input.address, out);
    rondo_document_object_end(out);
  }
  rondo_document_list_end(out);
}

/* Outputs ---------------------------------------------------------------------------------------------------------- */

static bool is_live(const rondo_tree *tree, const rondo_recorded_call *call, const rondo_output *output) {
  return is_on_path(tree, call) && (tree->live[output->bit / 64] >> output->bit % 64 & 1) != 0;
}

static size_t find_offset(const rondo_tree *tree, const rondo_output *output) {
  rondo_arena_info arena;
  rondo_arena_get_info(tree->arena, &arena);
  return (size_t)((const char *)output->address - (const char *)arena.base);
}

static void explain_output(const rondo_tree *tree, const rondo_recorded_call *call, size_t index, rondo_document *out) {
  static const char *const places[] = {[RONDO_OUTPUT_EMPTY] = "empty",
                                       [RONDO_OUTPUT_FRESH] = "arena",
                                       [RONDO_OUTPUT_OF_INPUT] = "input",
                                       [RONDO_OUTPUT_OF_OUTPUT] = "output"};
  const rondo_output *output = &call->outputs[index];
  begin_line(call, out);
  rondo_document_object_begin(out, NULL);
  rondo_document_number(out, NULL, index, "output %:");
  rondo_document_string(out, "place", places[output->kind], NULL);
  rondo_document_bytes(out, "bytes", output->extent.bytes, " %");
  if (output->kind == RONDO_OUTPUT_FRESH) {
    rondo_document_number(out, "offset", find_offset(tree, output), " at % of the arena");
    rondo_document_flag(out, "is_live", is_live(tree, call, output), "live", NULL);
  } else if (output->kind != RONDO_OUTPUT_EMPTY) {
    rondo_document_number(out, "offset", output->offset, " at %");
    rondo_document_number(out, "of", output->of,
                          output->kind == RONDO_OUTPUT_OF_INPUT ? " of input %" : " of output %");
  }
  rondo_document_object_end(out);
}

static void explain_outputs(const rondo_tree *tree, const rondo_recorded_call *call, rondo_document *out) {
  rondo_document_list_begin(out, "outputs");
  for (size_t i = 0; i < call->output_count; i++) explain_output(tree, call, i, out);
  rondo_document_list_end(out);
}

/* Findings --------------------------------------------------------------------------------------------------------- */

static void explain_finding(const rondo_recorded_call *call, size_t segment, const rondo_patch_finding *finding,
                            rondo_document *out) {
  static const char *const kinds[] = {
      [RONDO_PATCH_SUSPECTED] = "suspected", [RONDO_PATCH_FIXED] = "fixed", [RONDO_PATCH_FROZEN] = "frozen"};
  begin_line(call, out);
  rondo_document_object_begin(out, NULL);
  rondo_document_number(out, "segment", segment, NULL);
  rondo_document_string(out, "kind", kinds[finding->kind], "%");
  rondo_document_number(out, "node", rondo_node_number(finding->node), NULL);
  const bool has_input = finding->input != RONDO_PATCH_NO_INPUT;
  rondo_explain_optional(out, "parameter", finding->parameter != RONDO_PATCH_NO_PARAMETER, finding->parameter, NULL);
  rondo_explain_optional(out, "input", has_input, has_input ? call->bound[finding->input].input : 0, NULL);
  rondo_document_string(out, "message", finding->message, ": %");
  rondo_document_object_end(out);
}

static void explain_findings_of(const rondo_recorded_call *call, size_t segment, rondo_document *out) {
  const rondo_patch_set *patches = call->segments[segment].patches;
  rondo_patch_info info = {.struct_size = sizeof info};
  if (patches == NULL || rondo_patch_set_get_info(patches, &info) != RONDO_OK) return;
  for (uint32_t i = 0; i < info.findings; i++) {
    rondo_patch_finding finding = {.struct_size = sizeof finding, .message = ""};
    rondo_status_ignore(rondo_patch_set_get_finding(patches, i, &finding), "the index is below the number of findings");
    explain_finding(call, segment, &finding, out);
  }
}

static void explain_findings(const rondo_recorded_call *call, rondo_document *out) {
  rondo_document_list_begin(out, "findings");
  for (size_t i = 0; i < call->segment_count; i++) explain_findings_of(call, i, out);
  rondo_document_list_end(out);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* Lists the calls from the root to this one. */
static void explain_path_to(const rondo_tree *tree, const rondo_recorded_call *call, rondo_document *out) {
  rondo_document_list_begin(out, "path");
  for (uint32_t depth = 1; depth <= call->depth; depth++) {
    const rondo_recorded_call *at = call;
    while (at->depth > depth) at = at->parent;
    rondo_document_number_item(out, at->number, depth == 1 ? " (path %" : " > %");
  }
  rondo_document_list_end(out);
  rondo_document_flag(out, "is_on_path", is_on_path(tree, call), ", now)", ")");
}

static void explain_position(const rondo_tree *tree, const rondo_recorded_call *call, rondo_document *out) {
  rondo_document_line(out, "%*s", 2 * (int)(call->depth < DEEPEST ? call->depth : DEEPEST), "");
  rondo_document_number(out, "number", call->number, "%");
  rondo_explain_optional(out, "parent", call->parent != NULL, call->parent == NULL ? 0 : call->parent->number, NULL);
  explain_path_to(tree, call, out);
  rondo_document_string(out, "function", call->function->origin->name, " '%'");
  rondo_document_number(out, "form", call->form->number, " form %");
  rondo_document_count(out, "replays", call->replays, "replayed % time(s)");
}

static uint64_t count_nodes(const rondo_recorded_call *call) {
  uint64_t nodes = 0;
  for (size_t i = 0; i < call->segment_count; i++) {
    rondo_exec_info info = {.struct_size = sizeof info};
    if (rondo_exec_get_info(call->segments[i].exec, &info) == RONDO_OK) nodes += info.node_count;
  }
  return nodes;
}

static void explain_work(const rondo_recorded_call *call, rondo_document *out) {
  begin_line(call, out);
  rondo_document_count(out, "nodes", count_nodes(call), "% node(s)");
  rondo_document_count(out, "segments", call->segment_count, " in % segment(s)");
  rondo_document_bytes(out, "arena_bytes", call->arena_end, "; arena to %");
  rondo_document_bytes(out, "arena_minimum", call->arena_minimum, "% live at once");
  rondo_document_bytes(out, "exec_host_bytes", call->exec_bytes[0], "; execs % of the host");
  rondo_document_bytes(out, "exec_device_bytes", call->exec_bytes[1], "% of the device");
}

/* The bytes of the slots. Slots of patched inputs are idle. */
static void explain_slots(const rondo_recorded_call *call, rondo_document *out) {
  uint64_t bytes = 0, idle = 0;
  for (size_t i = 0; i < call->bound_count; i++) {
    bytes += call->bound[i].bytes;
    if (call->bound[i].method == RONDO_BOUND_PATCHED) idle += call->bound[i].bytes;
  }
  if (call->bound_count > 0) begin_line(call, out);
  rondo_document_bytes(out, "slot_bytes", bytes, call->bound_count > 0 ? "% in slots" : NULL);
  rondo_document_bytes(out, "idle_slot_bytes", idle, call->bound_count > 0 ? "% of them idle" : NULL);
}

static void explain_recording(const rondo_tree *tree, const rondo_recorded_call *call, rondo_document *out) {
  rondo_document_object_begin(out, NULL);
  explain_position(tree, call, out);
  explain_work(call, out);
  explain_inputs(call, out);
  explain_outputs(tree, call, out);
  explain_findings(call, out);
  explain_slots(call, out);
  rondo_document_object_end(out);
}

/* The sibling that was made after `last`. NULL for `last`: the oldest sibling. */
static const rondo_recorded_call *next_sibling(const rondo_recorded_call *siblings, const rondo_recorded_call *last) {
  const rondo_recorded_call *next = NULL;
  for (const rondo_recorded_call *at = siblings; at != NULL && at != last; at = at->sibling) next = at;
  return next;
}

/* The recording after `last`, depth first. NULL for `last`: the first. */
static const rondo_recorded_call *next_depth_first(const rondo_tree *tree, const rondo_recorded_call *last) {
  if (last == NULL) return next_sibling(tree->roots, NULL);
  if (last->children != NULL) return next_sibling(last->children, NULL);
  for (const rondo_recorded_call *at = last; at != NULL; at = at->parent) {
    const rondo_recorded_call *next = next_sibling(at->parent == NULL ? tree->roots : at->parent->children, at);
    if (next != NULL) return next;
  }
  return NULL;
}

void rondo_explain_recordings(const rondo_tree *tree, rondo_document *out) {
  const rondo_recorded_call *call = NULL;
  if (tree->first != NULL) rondo_document_line(out, "\nrecordings");
  rondo_document_list_begin(out, "recordings");
  if (out->is_json)
    for (call = tree->first; call != NULL; call = call->next) explain_recording(tree, call, out);
  else
    while ((call = next_depth_first(tree, call)) != NULL) explain_recording(tree, call, out);
  rondo_document_list_end(out);
}
