/* SPDX-License-Identifier: MIT
 * Finds uses of addresses that no parameter declares. The body is captured twice more: with its moving inputs
 * elsewhere, and with them at their first addresses. The patch set compares the graphs, which are never launched.
 */
#include <string.h>

#include "base/log.h"
#include "tree/record/find_inputs.h"
#include "tree/record/function_body.h"
#include "tree/record/record_call.h"

/* An additional capture of the body. Its slots come after the first `block_count` of the recorder's blocks. */
typedef struct rondo_further {
  rondo_recorder *recorder;
  rondo_arena_slot *slots;
  rondo_resolved_input *inputs;
  size_t block_count, slot_count;
  bool is_planned; /* its memory is planned as in the first capture; otherwise it is placed sequentially */
} rondo_further;

/* A gap after the slots, so that allocations of the body move by a different distance than the slots. */
enum { GAP_BYTES = 4096 };

/* The body sees moving inputs in the slots, and no input is dropped yet. */
static void show_inputs(const rondo_further *further) {
  const rondo_recorder *recorder = further->recorder;
  const rondo_recorded_call *made = recorder->made;
  memcpy(further->inputs, recorder->given, recorder->function->options.input_count * sizeof *further->inputs);
  for (size_t i = 0; i < made->bound_count; i++)
    further->inputs[made->bound[i].input].address = further->slots[i].address;
}

static rondo_status capture(const rondo_further *further, rondo_graph **out) {
  rondo_recorder *recorder = further->recorder;
  rondo_arena_setting setting = {.arena = recorder->tree->arena,
                                 .blocks = recorder->blocks.items,
                                 .block_count = further->block_count,
                                 .slots = further->slots,
                                 .slot_count = further->slot_count};
  if (further->is_planned) setting.profile = recorder->profile;
  if (further->is_planned && recorder->profile == NULL && recorder->form->noted_count > 0)
    setting.lifetimes = recorder->form->noted[0];
  rondo_call call = {.tree = recorder->tree,
                     .function = recorder->function,
                     .stream = recorder->stream,
                     .recorder = recorder,
                     .inputs = further->inputs};
  RONDO_TRY(rondo_capture_begin_in_arena(recorder->stream, RONDO_CAPTURE_THREAD_LOCAL, &setting));
  show_inputs(further);
  rondo_recorder_begin_body(recorder, &call);
  const rondo_status status = rondo_recorder_end_body(recorder, &call, rondo_body_callback(&call));
  rondo_body_free(&call);
  const rondo_status ended = rondo_capture_end(recorder->stream, out);
  return status == RONDO_OK ? ended : status;
}

static bool has_same_slots(const rondo_further *further) {
  for (size_t i = 0; i < further->recorder->made->bound_count; i++)
    if (further->slots[i].address != further->recorder->slots.items[i].address) return false;
  return true;
}

/* Captures with the inputs elsewhere. The slots of the first capture are blocks here, so the new slots do not overlap.
 */
static rondo_status capture_moved(rondo_further *further) {
  rondo_recorder *recorder = further->recorder;
  const size_t count = recorder->made->bound_count;
  further->block_count = recorder->path_blocks + recorder->slots.count;
  further->slot_count = count + 1;
  RONDO_TRY(capture(further, &recorder->moved));
  RONDO_TRY(rondo_allocate_items(&recorder->tree->allocator, count, sizeof *recorder->elsewhere, &recorder->elsewhere));
  for (size_t i = 0; i < count; i++) recorder->elsewhere[i] = further->slots[i].address;
  return RONDO_OK;
}

/* Captures with the inputs at their first addresses. Values in launches of libraries that differ from this capture too
 * are noise, not addresses. A device that watches lifetimes does not need this: it never reuses an address, and does
 * not accept the work of libraries. */
static rondo_status capture_again(rondo_further *further) {
  if (further->recorder->tree->device->ops->guard != NULL) return RONDO_OK;
  further->block_count = further->recorder->path_blocks;
  further->slot_count = further->recorder->slots.count;
  further->is_planned = true;
  RONDO_TRY(capture(further, &further->recorder->again));
  if (has_same_slots(further)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_RECORDED,
                    "the second recording of '%s' was not planned like the first one",
                    further->recorder->function->origin->name);
}

static rondo_status capture_both(rondo_further *further) {
  const rondo_recorder *recorder = further->recorder;
  const rondo_allocator *allocator = &recorder->tree->allocator;
  const size_t slots = recorder->slots.count, inputs = recorder->function->options.input_count;
  RONDO_TRY(rondo_allocate_items(allocator, slots + 1, sizeof *further->slots, &further->slots));
  RONDO_TRY(rondo_allocate_items(allocator, inputs, sizeof *further->inputs, &further->inputs));
  memcpy(further->slots, recorder->slots.items, slots * sizeof *further->slots);
  further->slots[slots] = (rondo_arena_slot){.bytes = GAP_BYTES, .name = "a gap"};
  RONDO_TRY(capture_moved(further));
  return capture_again(further);
}

void rondo_recorder_find(rondo_recorder *recorder) {
  if (recorder->slots.count == 0) return;
  rondo_further further = {.recorder = recorder};
  const rondo_status status = capture_both(&further);
  rondo_release(&recorder->tree->allocator, further.slots, recorder->slots.count + 1, sizeof *further.slots);
  rondo_release(&recorder->tree->allocator, further.inputs, recorder->function->options.input_count,
                sizeof *further.inputs);
  if (status == RONDO_OK) return;
  rondo_log(RONDO_LOG_WARNING, "tree",
            "only the declared addresses of the inputs of '%s' are patched, because the search for others failed: %s",
            recorder->function->origin->name, rondo_last_error()->message);
  rondo_recorder_find_free(recorder);
}

void rondo_recorder_find_free(rondo_recorder *recorder) {
  rondo_status_ignore(rondo_graph_destroy(recorder->moved), "it belongs to nobody else");
  rondo_status_ignore(rondo_graph_destroy(recorder->again), "it belongs to nobody else");
  rondo_release(&recorder->tree->allocator, recorder->elsewhere, recorder->slots.count, sizeof *recorder->elsewhere);
  recorder->moved = recorder->again = NULL;
  recorder->elsewhere = NULL;
}

void rondo_recorder_log_findings(const rondo_recorder *recorder, const rondo_patch_set *patches) {
  rondo_patch_info info = {.struct_size = sizeof info};
  if (!rondo_log_on(RONDO_LOG_WARNING) || rondo_patch_set_get_info(patches, &info) != RONDO_OK) return;
  for (size_t i = 0; i < info.findings; i++) {
    rondo_patch_finding finding = {.struct_size = sizeof finding};
    if (rondo_patch_set_get_finding(patches, i, &finding) == RONDO_OK)
      rondo_log(finding.kind == RONDO_PATCH_FROZEN ? RONDO_LOG_WARNING : RONDO_LOG_INFO, "tree", "'%s': %s",
                recorder->function->origin->name, finding.message);
  }
}
