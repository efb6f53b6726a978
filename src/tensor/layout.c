/* SPDX-License-Identifier: MIT
 * Places: of what lives for ever one behind the other, of the rest as planned (tensor/arena_plan.h).
 */
#include "tensor/layout.h"

#include "tensor/arena_plan.h"
#include "tensor/resources.h"
#include "tensor/shape.h"

/* Persistent block ------------------------------------------------------------------------------------------------ */

static rondo_status append(const rondo_program *program, size_t bytes, rondo_layout *layout, size_t *out_offset) {
  size_t rounded = 0;
  *out_offset = layout->persistent_bytes;
  if (rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &rounded) &&
      rondo_checked_add(layout->persistent_bytes, rounded, &layout->persistent_bytes))
    return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "the values of program '%s' have more bytes than fit in %zu bits", program->name,
                    8 * sizeof(size_t));
}

/* All states and cells: also one that nothing reads can be written and saved. Constants that nothing reads cost a few
 * bytes. */
static rondo_status place_persistent(const rondo_program *program, rondo_layout *layout) {
  for (size_t i = 0; i < layout->schedule.values; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (rondo_value_is_transient(program, (uint32_t)i)) continue;
    layout->places[i].block = RONDO_BLOCK_PERSISTENT;
    RONDO_TRY(append(program, rondo_shape_bytes(&value->shape), layout, &layout->places[i].offset));
  }
  for (uint32_t p = 0; p < layout->schedule.count; p++) {
    if (program->operations.items[layout->schedule.order[p]].row->checks_indices) layout->check_count++;
  }
  return append(program, layout->check_count * sizeof(uint64_t), layout, &layout->check_offset);
}

/* Making ready ----------------------------------------------------------------------------------------------------- */

/* workspaces: one an operation, in bytes. */
static rondo_status make_ready(const rondo_program *program, rondo_resources *resources, const rondo_schedule *schedule,
                               size_t *workspaces) {
  for (uint32_t i = 0; resources != NULL && i < schedule->operations; i++) {
    const rondo_operator *row = program->operations.items[i].row;
    if (!schedule->runs[i] || row->prepare == NULL) continue;
    const rondo_status status = row->prepare(resources, program, i, &workspaces[i]);
    if (status != RONDO_OK)
      return rondo_fail_context(status, "%s (operator %u of program '%s')", row->name, i, program->name);
  }
  return RONDO_OK;
}

/* The whole ------------------------------------------------------------------------------------------------------- */

static rondo_status make(const rondo_program *program, rondo_resources *resources, rondo_branch_policy branches,
                         size_t *workspaces, rondo_layout *layout) {
  const rondo_schedule_sizes sizes = {.workspaces = workspaces, .alignment = RONDO_VALUE_ALIGNMENT};
  RONDO_TRY(make_ready(program, resources, &layout->schedule, workspaces));
  RONDO_TRY(rondo_schedule_order(program, &sizes, &layout->schedule));
  RONDO_TRY(place_persistent(program, layout));
  RONDO_TRY(rondo_arena_plan_make(program, workspaces, branches, layout));
  for (uint32_t i = 0; i < layout->schedule.values; i++) layout->places[i] = layout->places[layout->schedule.owners[i]];
  return RONDO_OK;
}

rondo_status rondo_layout_make(const rondo_program *program, rondo_resources *resources, rondo_branch_policy branches,
                               rondo_layout *out) {
  const rondo_allocator *allocator = &program->allocator;
  size_t *workspaces = NULL;
  *out = (rondo_layout){0};
  RONDO_TRY(rondo_schedule_choose(program, &out->schedule));
  const size_t operations = out->schedule.operations;
  RONDO_TRY(rondo_allocate_items(allocator, out->schedule.values, sizeof *out->places, &out->places));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof *out->workspaces, &out->workspaces));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof *workspaces, &workspaces));
  const rondo_status status = make(program, resources, branches, workspaces, out);
  rondo_release(allocator, workspaces, operations, sizeof *workspaces);
  return status;
}

void rondo_layout_free(const rondo_program *program, rondo_layout *layout) {
  rondo_release(&program->allocator, layout->places, layout->schedule.values, sizeof *layout->places);
  rondo_release(&program->allocator, layout->workspaces, layout->schedule.operations, sizeof *layout->workspaces);
  rondo_schedule_free(program, &layout->schedule);
  *layout = (rondo_layout){0};
}
