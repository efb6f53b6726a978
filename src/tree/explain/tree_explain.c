/* SPDX-License-Identifier: MIT
 * rondo_tree_explain: its front door, and reading what both formats say.
 */
#include "tree/explain/tree_explain.h"

#include "exec/api_check.h"
#include "tree/recording_key.h"
#include "tree/tree.h"

/* Order ------------------------------------------------------------------------------------------------------------ */

const rondo_function *rondo_explain_next_function(const rondo_tree *tree, const rondo_function *last) {
  const rondo_function *next = NULL;
  for (const rondo_function *at = tree->functions; at != NULL && at != last; at = at->next) next = at;
  return next;
}

const rondo_form *rondo_explain_next_form(const rondo_function *function, const rondo_form *last) {
  const rondo_form *next = NULL;
  for (const rondo_form *at = function->forms; at != NULL && at != last; at = at->next) next = at;
  return next;
}

/* Of the same family, made after `last`; the first with NULL. */
static const rondo_recorded_call *next_of_family(const rondo_recorded_call *family, const rondo_recorded_call *last) {
  const rondo_recorded_call *next = NULL;
  for (const rondo_recorded_call *at = family; at != NULL && at != last; at = at->sibling) next = at;
  return next;
}

const rondo_recorded_call *rondo_explain_next_recording(const rondo_tree *tree, const rondo_recorded_call *last) {
  if (last == NULL) return next_of_family(tree->roots, NULL);
  if (last->children != NULL) return next_of_family(last->children, NULL);
  for (const rondo_recorded_call *at = last; at != NULL; at = at->parent) {
    const rondo_recorded_call *next = next_of_family(at->parent == NULL ? tree->roots : at->parent->children, at);
    if (next != NULL) return next;
  }
  return NULL;
}

/* Inputs ----------------------------------------------------------------------------------------------------------- */

static void find_bound(const rondo_recorded_call *call, size_t index, rondo_explained_input *out) {
  for (size_t i = 0; i < call->bound_count; i++) {
    if (call->bound[i].input != index) continue;
    out->bound = &call->bound[i];
    rondo_patch_input_info info = {.struct_size = sizeof info};
    for (size_t s = 0; s < call->segment_count; s++)
      if (call->segments[s].patches != NULL &&
          rondo_patch_set_get_input(call->segments[s].patches, (uint32_t)i, &info) == RONDO_OK)
        out->nodes += info.nodes;
  }
}

static bool is_in(const rondo_output *output, const char *address) {
  const char *begin = output->address;
  return output->place == RONDO_OUTPUT_FRESH && address >= begin && address < begin + output->extent.bytes;
}

/* Of outputs that had the same place one after the other, the latest is the one that is read. */
static void find_source(const rondo_recorded_call *call, rondo_explained_input *out) {
  for (const rondo_recorded_call *at = call->parent; at != NULL; at = at->parent) {
    for (size_t i = 0; i < at->output_count; i++) {
      if (!is_in(&at->outputs[i], out->keyed.address)) continue;
      out->from = at;
      out->output = i;
      return;
    }
  }
}

const uint64_t *rondo_explain_input(const rondo_recorded_call *call, size_t index, const uint64_t *words,
                                    rondo_explained_input *out) {
  *out = (rondo_explained_input){.nodes = 0};
  words = rondo_key_read_input(words, false, &out->keyed);
  if (out->keyed.way == RONDO_WAY_MOVING) find_bound(call, index, out);
  if (out->keyed.way == RONDO_WAY_MANAGED) find_source(call, out);
  return words;
}

/* Words ------------------------------------------------------------------------------------------------------------ */

const char *rondo_explain_way(rondo_input_way way) {
  static const char *const names[] = {[RONDO_WAY_MOVING] = "moving",
                                      [RONDO_WAY_STATIC] = "static",
                                      [RONDO_WAY_MANAGED] = "managed",
                                      [RONDO_WAY_SCALAR] = "scalar",
                                      [RONDO_WAY_OPAQUE] = "opaque"};
  return names[way];
}

const char *rondo_explain_bound(const rondo_bound_input *bound) {
  if (bound->way == RONDO_BOUND_PATCHED) return "patched";
  return bound->way == RONDO_BOUND_COPIED ? "copied" : "copied before";
}

const char *rondo_explain_state(const rondo_form *form) {
  if (form->skip != RONDO_SKIP_NONE) return "as it is";
  if (form->warm_ups > 0) return "warming up";
  return form->recordings > 0 ? "recorded" : "warm";
}

const rondo_demoted *rondo_explain_demoted(const rondo_recorded_call *behind, const rondo_function *function) {
  const rondo_demoted *at = behind->demoted;
  while (at != NULL && at->function != function) at = at->next;
  return at;
}

const char *rondo_explain_demotion(const rondo_function *function) {
  return function->options.demotion == RONDO_DEMOTION_SKIP ? "as it is" : "bound";
}

const char *rondo_explain_finding(rondo_patch_finding_kind kind) {
  if (kind == RONDO_PATCH_FROZEN) return "frozen";
  return kind == RONDO_PATCH_FIXED ? "fixed" : "suspected";
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

bool rondo_explain_is_on_path(const rondo_tree *tree, const rondo_recorded_call *call) {
  const rondo_recorded_call *at = tree->current;
  while (at != NULL && at != call) at = at->parent;
  return at != NULL;
}

bool rondo_explain_is_live(const rondo_tree *tree, const rondo_recorded_call *call, const rondo_output *output) {
  if (output->place != RONDO_OUTPUT_FRESH) return false;
  if (call->arena != NULL) return call->holders[output->bit] != NULL;
  return rondo_explain_is_on_path(tree, call) && (tree->live[output->bit / 64] >> output->bit % 64 & 1) != 0;
}

size_t rondo_explain_offset(const rondo_tree *tree, const rondo_recorded_call *call, const rondo_output *output) {
  rondo_arena_info arena;
  rondo_arena_get_info(call->arena != NULL ? call->arena : tree->arena, &arena);
  return (size_t)((const char *)output->address - (const char *)arena.base);
}

uint64_t rondo_explain_nodes(const rondo_recorded_call *call) {
  uint64_t nodes = 0;
  for (size_t i = 0; i < call->segment_count; i++) {
    rondo_exec_info info = {.struct_size = sizeof info};
    if (rondo_exec_get_info(call->segments[i].exec, &info) == RONDO_OK) nodes += info.node_count;
  }
  return nodes;
}

uint64_t rondo_explain_skipped(const uint64_t skipped[RONDO_SKIP_ROOM]) {
  uint64_t all = 0;
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++) all += skipped[i];
  return all;
}

uint64_t rondo_explain_slots(const rondo_recorded_call *call, bool is_patched) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < call->bound_count; i++)
    if (!is_patched || call->bound[i].way == RONDO_BOUND_PATCHED) bytes += call->bound[i].bytes;
  return bytes;
}

uint32_t rondo_explain_finding_count(const rondo_segment *segment) {
  rondo_patch_info info = {.struct_size = sizeof info};
  return segment->patches != NULL && rondo_patch_set_get_info(segment->patches, &info) == RONDO_OK ? info.findings : 0;
}

void rondo_explain_read_finding(const rondo_segment *segment, uint32_t index, rondo_patch_finding *out) {
  *out = (rondo_patch_finding){.struct_size = sizeof *out, .message = ""};
  rondo_status_ignore(rondo_patch_set_get_finding(segment->patches, index, out), "it is one of those that there are");
}

/* The front door --------------------------------------------------------------------------------------------------- */

rondo_status rondo_tree_explain(rondo_tree *tree, rondo_explain_format format, char **out_text) {
  const char *const call = "rondo_tree_explain";
  rondo_text text;
  RONDO_TRY(rondo_front(call, "out_text", (const void *)out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require(call, "the tree", tree));
  if ((unsigned)format > RONDO_EXPLAIN_JSON)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %u is no format: use RONDO_EXPLAIN_TEXT or RONDO_EXPLAIN_JSON", call, (unsigned)format);
  RONDO_TRY(rondo_tree_enter(tree, call));
  rondo_text_init(&text, &tree->allocator);
  (format == RONDO_EXPLAIN_JSON ? rondo_explain_json : rondo_explain_text)(tree, &text);
  rondo_tree_leave(tree);
  return rondo_text_hand_out(&text, out_text);
}
