/* SPDX-License-Identifier: MIT
 * Placing values: permanent ones one after another, the others as planned (tensor/compile/program_arena_plan.h).
 */
#include "tensor/compile/layout.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "tensor/compile/join_updates.h"
#include "tensor/compile/layout_check.h"
#include "tensor/compile/program_arena_plan.h"
#include "tensor/compile/program_structure.h"
#include "tensor/compile/state_packing.h"
#include "tensor/program/shape.h"
#include "tensor/run/index_check.h"

/* Permanent values ------------------------------------------------------------------------------------------------- */

/* Adds to the bytes of a block; *out_offset is where they begin. */
static rondo_status append(const rondo_program *program, size_t bytes, size_t *block_bytes, size_t *out_offset) {
  size_t rounded = 0;
  assert(*block_bytes % RONDO_VALUE_ALIGNMENT == 0);
  *out_offset = *block_bytes;
  if (rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &rounded) &&
      rondo_checked_add(*block_bytes, rounded, block_bytes))
    return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "the values of %s have more bytes than fit in %zu bits: make them smaller", program->label,
                    8 * sizeof(size_t));
}

/* Whether the elements of a state may be mapped from their file. */
static bool may_map(const rondo_program_value *value, const rondo_layout_options *options,
                    const rondo_location *location) {
  const bool is_cpu = options->resources != NULL && !options->resources->is_cuda;
  return value->is_in_file && is_cpu && location->packed == NULL && value->file_offset % RONDO_VALUE_ALIGNMENT == 0 &&
         rondo_shape_bytes(&value->shape) >= RONDO_LEAST_MAPPED;
}

/* Before such a state: it gets the same offset in a page as in its file. */
static rondo_status append_gap(const rondo_program *program, const rondo_program_value *value, size_t *block_bytes) {
  const size_t at = *block_bytes % RONDO_FILE_ALIGNMENT, wanted = value->file_offset;
  size_t offset;
  return append(program, (wanted + RONDO_FILE_ALIGNMENT - at) % RONDO_FILE_ALIGNMENT, block_bytes, &offset);
}

static rondo_status require_same(const rondo_program *program, const rondo_program_value *value,
                                 const rondo_shared_value *shared) {
  const char kind = rondo_value_letter(value->kind);
  if (kind == shared->kind && rondo_shape_same(&value->shape, &shared->shape)) return RONDO_OK;
  char text[RONDO_SHAPE_TEXT], other[RONDO_SHAPE_TEXT];
  const rondo_reason reason = kind != shared->kind                      ? RONDO_REASON_DUPLICATE_NAME
                              : value->shape.type != shared->shape.type ? RONDO_REASON_TYPE
                                                                        : RONDO_REASON_SHAPE;
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, reason,
      "'%s' is a %s %s in %s, but the program to share with has it as a %s %s: a shared value must be the "
      "same in both; rename one of them",
      value->name, kind == 's' ? "state" : "cell", rondo_shape_text(text, &value->shape), program->label,
      shared->kind == 's' ? "state" : "cell", rondo_shape_text(other, &shared->shape));
}

/* The caller of plain_states relies on addresses. */
static rondo_status refuse_packed(const rondo_program *program, const rondo_program_value *value) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "the state '%s' of %s is packed in the program to share with, so its rows have no fixed address: "
                    "compile that one with plain_states, too",
                    value->name, program->label);
}

/* Of a packed state with rows of `bytes`. */
static rondo_status count_packed(const rondo_program *program, const rondo_location *location, size_t bytes,
                                 rondo_layout *layout) {
  size_t at;
  RONDO_TRY(append(program, rondo_packed_state_bytes(location->packed), &layout->packed_bytes, &at));
  return location->reads_rows ? append(program, bytes, &layout->rows_bytes, &at) : RONDO_OK;
}

/* Whether kernels can read memory that is not the device's. */
static bool is_read_in_place(const rondo_layout_options *options) {
  return options->resources != NULL && !options->resources->is_cuda && !options->resources->is_guarded;
}

static rondo_status place_value(const rondo_program *program, const rondo_layout_options *options, size_t index,
                                rondo_layout *layout) {
  const rondo_sharing *sharing = options->sharing;
  const rondo_program_value *value = &program->values.items[index];
  rondo_location *location = &layout->locations[index];
  assert(!rondo_value_is_transient(program, (uint32_t)index) && location->block == RONDO_BLOCK_NONE);
  const size_t bytes = rondo_shape_bytes(&value->shape);
  if (value->is_borrowed && is_read_in_place(options)) {
    *location = (rondo_location){.block = RONDO_BLOCK_BORROWED, .offset = (size_t)(uintptr_t)value->elements};
    return RONDO_OK;
  }
  if (value->kind == RONDO_VALUE_CONSTANT) {
    location->block = RONDO_BLOCK_OWN;
    return append(program, bytes, &layout->own_bytes, &location->offset);
  }
  if (location->packed != NULL && options->plain_states) return refuse_packed(program, value);
  if (location->packed != NULL) RONDO_TRY(count_packed(program, location, bytes, layout));
  const size_t state_bytes = location->packed == NULL ? bytes : rondo_packed_state_bytes(location->packed);
  const uint32_t shared = rondo_sharing_find(sharing, value->name);
  location->block = shared == RONDO_NO_VALUE ? RONDO_BLOCK_STATES : RONDO_BLOCK_SHARED;
  if (shared == RONDO_NO_VALUE) {
    if (may_map(value, options, location)) RONDO_TRY(append_gap(program, value, &layout->state_bytes));
    return append(program, state_bytes, &layout->state_bytes, &location->offset);
  }
  RONDO_TRY(require_same(program, value, &sharing->values.items[shared]));
  RONDO_TRY(append(program, state_bytes, &layout->shared_bytes, &location->offset));
  location->offset = shared;
  return RONDO_OK;
}

/* A program has a gate if it has both index checks and updates, which do nothing after a check has failed. */
static rondo_status place_gate(const rondo_program *program, rondo_layout *layout) {
  bool has_updates = false;
  for (uint32_t p = 0; p < layout->schedule.count; p++) {
    const rondo_operator *row = program->operations.items[layout->schedule.order[p]].row;
    layout->check_count += row->checks_indices;
    has_updates = has_updates || row->updates != 0;
  }
  if (layout->check_count == 0 || !has_updates) return RONDO_OK;
  layout->gate_bytes = sizeof(rondo_update_gate) + layout->check_count * sizeof(uint64_t);
  return append(program, layout->gate_bytes, &layout->own_bytes, &layout->gate_offset);
}

/* Places all states and cells, because one that nothing reads can still be written and saved. Constants of equal bits
 * are one. */
static rondo_status place_lasting(const rondo_program *program, const rondo_layout_options *options,
                                  rondo_layout *layout) {
  for (size_t i = 0; i < layout->schedule.values; i++) {
    if (!rondo_value_is_transient(program, (uint32_t)i) && layout->schedule.owners[i] == i)
      RONDO_TRY(place_value(program, options, i, layout));
  }
  return place_gate(program, layout);
}

rondo_staging rondo_staged_how(const rondo_staged_list *staged, const char *name) {
  for (size_t i = 0; i < staged->count; i++)
    if (strcmp(staged->items[i].name, name) == 0) return staged->items[i].staging;
  return RONDO_STAGING_SLOT;
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

/* On CUDA, what may have a workspace has one: for other sizes, libraries choose algorithms that need one or none, and
 * kernels split their work or do not. So programs of other sizes have the same structure, and reuse the plan of their
 * memory (tensor/compile/program_structure.h). */
#define LEAST_WORKSPACE 1

/* workspaces: bytes by operation. */
static rondo_status prepare(const rondo_program *program, rondo_resources *resources, const rondo_schedule *schedule,
                            size_t *workspaces) {
  if (resources == NULL) return RONDO_OK;
  for (uint32_t i = 0; i < schedule->operations; i++) {
    const rondo_operator *row = program->operations.items[i].row;
    if (!schedule->runs[i] || row->prepare == NULL) continue;
    const rondo_status status = row->prepare(resources, program, i, &workspaces[i]);
    if (status != RONDO_OK)
      return rondo_fail_context(status, "%s (operator %u of %s)", row->name, program->operations.items[i].number,
                                program->label);
    if (resources->is_cuda && workspaces[i] == 0) workspaces[i] = LEAST_WORKSPACE;
  }
  return RONDO_OK;
}

/* The whole ------------------------------------------------------------------------------------------------------- */

/* With chains, unless the order of the chains has a higher peak. */
static rondo_status choose_order(const rondo_program *program, const rondo_schedule_sizes *sizes,
                                 rondo_fusion_policy fusion, rondo_schedule *schedule) {
  RONDO_TRY(rondo_schedule_order(program, sizes, schedule));
  const size_t peak = schedule->peak;
  if (fusion != RONDO_FUSION_NEVER) RONDO_TRY(rondo_schedule_fuse(program, sizes->alignment, schedule));
  if (schedule->chains.count == 0) return RONDO_OK;
  RONDO_TRY(rondo_schedule_order(program, sizes, schedule));
  if (schedule->peak <= peak) return RONDO_OK;
  rondo_schedule_unfuse(schedule);
  return rondo_schedule_order(program, sizes, schedule);
}

/* The order of an earlier program of this structure, if it is as good: then that program's plan fits. */
static rondo_status prefer_earlier(const rondo_program *program, const rondo_layout_options *options,
                                   const rondo_schedule_sizes *sizes, rondo_layout *layout) {
  bool is_taken;
  if (options->plans == NULL) return RONDO_OK;
  RONDO_TRY(rondo_structure_make(program, options, &layout->schedule, sizes->workspaces, &layout->structure));
  const rondo_earlier_plan *earlier = rondo_earlier_plans_find(options->plans, &layout->structure);
  if (earlier == NULL) return RONDO_OK;
  RONDO_TRY(rondo_joins_prefer(program, sizes, earlier, &layout->schedule, &is_taken));
  layout->earlier = is_taken ? earlier : NULL;
  return RONDO_OK;
}

static rondo_status make(const rondo_program *program, const rondo_layout_options *options, size_t *workspaces,
                         rondo_layout *layout) {
  const rondo_schedule_sizes sizes = {.workspaces = workspaces, .alignment = RONDO_VALUE_ALIGNMENT};
  layout->schedule.isolates_user_operators = options->resources != NULL && options->resources->is_guarded;
  RONDO_TRY(rondo_state_packing_choose(program, options, layout));
  RONDO_TRY(prepare(program, options->resources, &layout->schedule, workspaces));
  RONDO_TRY(choose_order(program, &sizes, options->fusion, &layout->schedule));
  RONDO_TRY(rondo_joins_make(program, &sizes, options->fusion, &layout->schedule));
  RONDO_TRY(prefer_earlier(program, options, &sizes, layout));
  RONDO_TRY(place_lasting(program, options, layout));
  RONDO_TRY(rondo_arena_plan_make(program, workspaces, options, layout));
  layout->earlier = NULL;
  for (uint32_t i = 0; i < layout->schedule.values; i++)
    layout->locations[i] = layout->locations[layout->schedule.owners[i]];
  return RONDO_OK;
}

rondo_status rondo_layout_make(const rondo_program *program, const rondo_layout_options *options, rondo_layout *out) {
  const rondo_layout_options defaults = {.branches = RONDO_BRANCHES_AUTO};
  const rondo_allocator *allocator = &program->allocator;
  size_t *workspaces = NULL;
  *out = (rondo_layout){0};
  RONDO_TRY(rondo_schedule_choose(program, &out->schedule));
  const size_t operations = out->schedule.operations;
  RONDO_TRY(rondo_allocate_items(allocator, out->schedule.values, sizeof *out->locations, &out->locations));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof *out->workspaces, &out->workspaces));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof *workspaces, &workspaces));
  const rondo_status status = make(program, options == NULL ? &defaults : options, workspaces, out);
  if (status == RONDO_OK) rondo_layout_check(program, out);
  rondo_release(allocator, workspaces, operations, sizeof *workspaces);
  return status;
}

static void release_packed(rondo_layout *layout) {
  for (size_t i = 0; layout->locations != NULL && i < layout->schedule.values; i++)
    if (layout->schedule.owners[i] == i)
      rondo_status_ignore(rondo_packed_state_release(layout->locations[i].packed), "a state with rows is shared");
}

void rondo_layout_free(const rondo_program *program, rondo_layout *layout) {
  release_packed(layout);
  rondo_release(&program->allocator, layout->locations, layout->schedule.values, sizeof *layout->locations);
  rondo_release(&program->allocator, layout->workspaces, layout->schedule.operations, sizeof *layout->workspaces);
  rondo_edges_free(&program->allocator, &layout->users);
  rondo_array_free(&program->allocator, &layout->structure);
  rondo_schedule_free(program, &layout->schedule);
  *layout = (rondo_layout){0};
}
