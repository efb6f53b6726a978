/* SPDX-License-Identifier: MIT
 * Demotes inputs that move. PyTorch's CUDAGraph Trees have a similar limit for managed inputs
 * (torch/_inductor/cudagraph_trees.py, cudagraph_managed_input_rerecord_limit). A new recording counts as a move of an
 * input if the call differs in that input from the most similar recording after the same parent. So an input that does
 * not move is never demoted. After one parent, a function has at most its number of inputs times the limit recordings
 * for moved outputs.
 *
 * If the work writes a demoted input, or may write it, the copy is written back even without a declaration, because an
 * output of the path is written in place.
 */
#include "tree/record/demote_inputs.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "tree/call_inputs.h"
#include "tree/record/shared_execs.h"
#include "tree/recorded_calls.h"
#include "tree/recording_key.h"

/* Queries ---------------------------------------------------------------------------------------------------------- */

/* The demoted inputs of the function after this call; NULL: none. Moves them to the front, so that repeated calls
 * inspect one entry. */
static const rondo_demoted *find_demoted(rondo_recorded_call *parent, const rondo_function *function) {
  for (rondo_demoted **place = &parent->demoted; *place != NULL; place = &(*place)->next) {
    rondo_demoted *found = *place;
    if (found->function != function) continue;
    *place = found->next;
    found->next = parent->demoted;
    parent->demoted = found;
    return found;
  }
  return NULL;
}

static bool is_shared(const rondo_function *function, const rondo_resolved_input *inputs, size_t index) {
  for (size_t i = 0; i < function->options.input_count; i++)
    if (i != index && rondo_inputs_overlap(&inputs[index], &inputs[i])) return true;
  return false;
}

void rondo_demoted_apply(const rondo_function *function, rondo_resolved_input *inputs) {
  const rondo_demoted *demoted = find_demoted(function->tree->current, function);
  if (demoted == NULL || function->options.demotion != RONDO_DEMOTION_BIND) return;
  for (size_t i = 0; i < function->options.input_count; i++) {
    if (inputs[i].role != RONDO_ROLE_MANAGED || demoted->inputs[i].after == 0) continue;
    if (demoted->has_written && is_shared(function, inputs, i)) continue;
    inputs[i].role = RONDO_ROLE_MOVING;
    inputs[i].is_sole = false;
    inputs[i].is_mutated = inputs[i].is_mutated || demoted->inputs[i].is_written;
  }
}

bool rondo_demoted_skips(const rondo_function *function, const rondo_resolved_input *inputs) {
  rondo_recorded_call *parent = function->tree->current;
  if (parent == NULL || function->options.demotion != RONDO_DEMOTION_SKIP) return false;
  const rondo_demoted *demoted = find_demoted(parent, function);
  for (size_t i = 0; demoted != NULL && i < function->options.input_count; i++)
    if (inputs[i].role == RONDO_ROLE_MANAGED && demoted->inputs[i].after > 0) return true;
  return false;
}

/* Counting --------------------------------------------------------------------------------------------------------- */

/* Counts the inputs that are a different output of the path than in the recording. SIZE_MAX: something else differs.
 * `moves`, unless it is NULL, counts them by input. */
static size_t count_moved(const rondo_recorded_call *call, const uint64_t *key, size_t key_count, uint32_t *moves) {
  const uint64_t *at = rondo_key_inputs(call->function, call->key), *now = rondo_key_inputs(call->function, key);
  size_t moved = 0;
  if (call->key_count != key_count) return SIZE_MAX;
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_keyed_input recorded, asked;
    const uint64_t *const end = rondo_key_read_input(at, false, &recorded);
    const bool is_managed = recorded.role == RONDO_ROLE_MANAGED;
    if (memcmp(at, now, (size_t)(end - at - is_managed) * sizeof *at) != 0) return SIZE_MAX;
    now = rondo_key_read_input(now, false, &asked);
    at = end;
    const bool has_moved = is_managed && recorded.address != asked.address;
    moved += has_moved;
    if (has_moved && moves != NULL) moves[i]++;
  }
  return moved;
}

/* Finds the recording most similar to the call; of several, the newest. Raises tree->moves to the counts of these
 * recordings. */
static const rondo_recorded_call *find_closest(const rondo_tree *tree, const rondo_form *form, size_t key_count,
                                               size_t input_count) {
  const rondo_recorded_call *closest = NULL;
  size_t least = SIZE_MAX;
  for (const rondo_recorded_call *call = tree->current->children; call != NULL; call = call->sibling) {
    const size_t moved = call->form == form ? count_moved(call, tree->words, key_count, NULL) : SIZE_MAX;
    if (moved == SIZE_MAX) continue;
    for (size_t i = 0; call->moves != NULL && i < input_count; i++)
      if (call->moves[i] > tree->moves[i]) tree->moves[i] = call->moves[i];
    if (moved < least) closest = call;
    if (moved < least) least = moved;
  }
  return closest;
}

rondo_status rondo_demoted_keep_moves(const rondo_tree *tree, rondo_recorded_call *made) {
  const size_t count = made->function->options.input_count;
  bool has_moved = false;
  for (size_t i = 0; i < count; i++) has_moved |= tree->moves[i] > 0;
  if (!has_moved) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof *made->moves, &made->moves));
  memcpy(made->moves, tree->moves, count * sizeof *made->moves);
  return RONDO_OK;
}

/* Written inputs --------------------------------------------------------------------------------------------------- */

/* Gives a shared exec the parameters of the segment. */
static rondo_status take_exec(rondo_tree *tree, const rondo_recorded_call *call, const rondo_segment *segment) {
  assert(segment->tree_exec != NULL);
  return segment->tree_exec->holds == segment->number ? RONDO_OK : rondo_tree_exec_switch(tree, call, segment);
}

static rondo_status return_exec(const rondo_recorded_call *call, const rondo_segment *segment) {
  if (segment->patches == NULL) return RONDO_OK;
  for (size_t i = 0; i < call->bound_count; i++) call->patched_at[i] = NULL;
  return rondo_patch_set_rebase(segment->patches, call->patched_at);
}

/* Whether a segment writes the memory, or uses its address in an unknown way. */
static rondo_status inspect_segment(const rondo_segment *segment, const rondo_keyed_input *input, bool *inout_written) {
  rondo_patch_use look;
  RONDO_TRY(rondo_patch_find_use("rondo_function_call", segment->exec, input->address, input->bytes, &look));
  *inout_written |= look.is_written;
  return RONDO_OK;
}

static rondo_status inspect_inputs(const rondo_recorded_call *call, const rondo_segment *segment,
                                   rondo_demoted *demoted) {
  const uint64_t *words = rondo_key_inputs(call->function, call->key);
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_keyed_input input;
    bool is_written = demoted->inputs[i].is_written;
    words = rondo_key_read_input(words, false, &input);
    if ((input.role == RONDO_ROLE_MANAGED || input.role == RONDO_ROLE_STATIC) && input.bytes > 0)
      RONDO_TRY(inspect_segment(segment, &input, &is_written));
    demoted->inputs[i].is_written = is_written;
    demoted->has_written |= is_written;
  }
  return RONDO_OK;
}

static rondo_status look_for_writes(rondo_tree *tree, const rondo_recorded_call *call, rondo_demoted *demoted) {
  demoted->has_written |= call->function->has_written;
  for (size_t i = 0; i < call->segment_count; i++) {
    const rondo_segment *segment = &call->segments[i];
    RONDO_TRY(take_exec(tree, call, segment));
    const rondo_status status = inspect_inputs(call, segment, demoted);
    RONDO_TRY(return_exec(call, segment)); /* on failure too: the recording stays */
    RONDO_TRY(status);
  }
  return RONDO_OK;
}

/* Demoting --------------------------------------------------------------------------------------------------------- */

static void free_one(rondo_tree *tree, rondo_demoted *demoted) {
  assert(tree->demotion_count > 0);
  rondo_release(&tree->allocator, demoted->inputs, demoted->function->options.input_count, sizeof *demoted->inputs);
  rondo_release(&tree->allocator, demoted, 1, sizeof *demoted);
  tree->demotion_count--;
}

/* Finds or makes the demotions of the function after the path's end. *out is NULL if the limit is reached. */
static rondo_status open_demoted(rondo_tree *tree, const rondo_function *function, rondo_demoted **out) {
  const rondo_allocator *allocator = &tree->allocator;
  *out = find_demoted(tree->current, function) == NULL ? NULL : tree->current->demoted;
  if (*out != NULL || tree->demotion_count >= tree->options.max_recordings) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof **out, out));
  const rondo_status status =
      rondo_allocate_items(allocator, function->options.input_count, sizeof *(*out)->inputs, &(*out)->inputs);
  if (status != RONDO_OK) {
    rondo_release(allocator, *out, 1, sizeof **out);
    return status;
  }
  (*out)->function = function;
  (*out)->next = tree->current->demoted;
  tree->current->demoted = *out;
  tree->demotion_count++;
  return RONDO_OK;
}

static bool is_too_many(const rondo_function *function, uint32_t moves) {
  const uint32_t limit = function->tree->options.max_recordings_per_parent;
  return moves >= (function->options.demote_after < limit ? function->options.demote_after : limit);
}

/* `demoted`: the existing demotions; NULL if there are none. */
static bool is_to_demote(const rondo_function *function, const rondo_resolved_input *inputs,
                         const rondo_demoted *demoted, size_t index) {
  return inputs[index].role == RONDO_ROLE_MANAGED && (function->options.inputs[index] & 0xff) == RONDO_INPUT_MOVING &&
         (demoted == NULL || demoted->inputs[index].after == 0) && is_too_many(function, function->tree->moves[index]);
}

static void demote(rondo_function *function, rondo_demoted *demoted, size_t index) {
  assert(index < function->options.input_count && demoted->inputs[index].after == 0);
  rondo_tree *tree = function->tree;
  const bool is_skipped = function->options.demotion == RONDO_DEMOTION_SKIP;
  demoted->inputs[index].after = tree->moves[index];
  function->has_written_moving |= demoted->inputs[index].is_written;
  function->info.demoted++;
  tree->info.demoted++;
  rondo_log(RONDO_LOG_INFO, "tree",
            "input %zu of '%s' was a different output of the path in %" PRIu32 " recordings after recording %" PRIu32
            ": from now on %s there",
            index, function->origin->name, tree->moves[index], tree->current->number,
            is_skipped ? "the function runs eagerly" : "it is patched or copied like a moving input");
}

static bool is_shared_there(const rondo_recorded_call *call, size_t index, const rondo_keyed_input *input) {
  const uint64_t *words = rondo_key_inputs(call->function, call->key);
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_keyed_input other;
    words = rondo_key_read_input(words, false, &other);
    if (i != index && (other.role == RONDO_ROLE_MANAGED || other.role == RONDO_ROLE_STATIC) &&
        other.address < input->address + input->bytes && input->address < other.address + other.bytes)
      return true;
  }
  return false;
}

/* Whether the recording has an output of the path as a demoted input. Then no call matches it any more. */
static bool is_over(const rondo_recorded_call *call, const rondo_demoted *demoted) {
  const uint64_t *words = rondo_key_inputs(call->function, call->key);
  if (call->function != demoted->function) return false;
  for (size_t i = 0; i < call->function->options.input_count; i++) {
    rondo_keyed_input input;
    words = rondo_key_read_input(words, false, &input);
    if (input.role != RONDO_ROLE_MANAGED || demoted->inputs[i].after == 0) continue;
    if (!demoted->has_written || !is_shared_there(call, i, &input)) return true;
  }
  return false;
}

static void remove_over(rondo_tree *tree, const rondo_demoted *demoted) {
  assert(tree->current != NULL);
  for (rondo_recorded_call *call = tree->current->children, *next; call != NULL; call = next) {
    next = call->sibling;
    if (is_over(call, demoted)) rondo_recorded_remove(tree, call);
  }
}

static rondo_status demote_all(rondo_function *function, const rondo_recorded_call *closest,
                               const rondo_resolved_input *inputs, bool *out_demoted) {
  rondo_tree *tree = function->tree;
  rondo_demoted *demoted;
  RONDO_TRY(open_demoted(tree, function, &demoted));
  if (demoted == NULL) return RONDO_OK;
  RONDO_TRY(look_for_writes(tree, closest, demoted));
  for (size_t i = 0; i < function->options.input_count; i++) {
    if (!is_to_demote(function, inputs, demoted, i)) continue;
    demote(function, demoted, i);
    *out_demoted = true;
  }
  if (*out_demoted) remove_over(tree, demoted);
  return RONDO_OK;
}

rondo_status rondo_demoted_update(rondo_function *function, const rondo_form *form, const rondo_resolved_input *inputs,
                                  size_t key_count, bool *out_demoted) {
  rondo_tree *tree = function->tree;
  const size_t count = function->options.input_count;
  *out_demoted = false;
  if (count > 0) memset(tree->moves, 0, count * sizeof *tree->moves);
  if (tree->current == NULL || function->options.demotion == RONDO_DEMOTION_NEVER) return RONDO_OK;
  const rondo_recorded_call *closest = find_closest(tree, form, key_count, count);
  if (closest == NULL || count_moved(closest, tree->words, key_count, tree->moves) == 0) return RONDO_OK;
  const rondo_demoted *demoted = find_demoted(tree->current, function);
  for (size_t i = 0; i < count; i++)
    if (is_to_demote(function, inputs, demoted, i)) return demote_all(function, closest, inputs, out_demoted);
  return RONDO_OK;
}

/* Ending ----------------------------------------------------------------------------------------------------------- */

void rondo_demoted_free_all(rondo_tree *tree, rondo_recorded_call *parent) {
  while (parent->demoted != NULL) {
    rondo_demoted *demoted = parent->demoted;
    parent->demoted = demoted->next;
    free_one(tree, demoted);
  }
  rondo_release(&tree->allocator, parent->moves, parent->function->options.input_count, sizeof *parent->moves);
}

void rondo_demoted_forget(rondo_tree *tree, const rondo_function *function) {
  for (rondo_recorded_call *parent = tree->first; parent != NULL; parent = parent->next) {
    const bool is_there = find_demoted(parent, function) != NULL;
    if (!is_there) continue;
    rondo_demoted *demoted = parent->demoted;
    parent->demoted = demoted->next;
    free_one(tree, demoted);
  }
}
