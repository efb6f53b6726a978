/* SPDX-License-Identifier: MIT
 * Lists the arena's items with their steps. The layout has live ranges as positions in its order. Each step knows its
 * operation, and the steps are in that order.
 */
#include "tensor/run/arena_values.h"

#include <stdio.h>

#include "base/binary_search.h"
#include "tensor/compile/emitter.h"
#include "tensor/run/compiled.h"

enum { NAME_BYTES = RONDO_CHAIN_NAME + 32 };

/* The name of an input or output; else the operator and its number, for a workspace too. */
static const char *name_of(const rondo_program *program, const rondo_schedule *schedule, uint32_t item,
                           char buffer[NAME_BYTES]) {
  const bool is_workspace = item >= schedule->values;
  const rondo_program_value *value = is_workspace ? NULL : &program->values.items[item];
  const uint32_t operation = is_workspace ? item - (uint32_t)schedule->values : value->operation;
  if (value != NULL && value->name != NULL) return value->name;
  for (size_t i = 0; i < program->outputs.count; i++)
    if (program->outputs.items[i].value == item) return program->outputs.items[i].name;
  char name[RONDO_CHAIN_NAME];
  rondo_schedule_name(program, schedule, operation, name, sizeof name);
  (void)snprintf(buffer, NAME_BYTES, "%s%s %u", is_workspace ? "workspace of " : "", name,
                 program->operations.items[operation].number);
  return buffer;
}

/* The first step of the operation at `position`, or after it. positions: by operation. */
static uint32_t first_step_from(const rondo_compiled *compiled, const uint32_t *positions, uint32_t position) {
  uint32_t low = 0, high = (uint32_t)compiled->steps.count;
  RONDO_BINARY_SEARCH(low, high, middle, positions[compiled->steps.items[middle].operation] < position)
  return low;
}

static rondo_status list_item(const rondo_location *location, const char *name, rondo_compiled *compiled,
                              const uint32_t *positions) {
  rondo_held_value held = {.address = rondo_location_address(location, compiled),
                           .bytes = location->bytes,
                           .first_step = first_step_from(compiled, positions, location->first)};
  const uint32_t end = first_step_from(compiled, positions, location->last + 1);
  if (end <= held.first_step) return RONDO_OK;
  held.last_step = end - 1;
  RONDO_TRY(rondo_allocate_text(&compiled->allocator, name, &held.name));
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->held, &held);
  if (status != RONDO_OK) rondo_release_text(&compiled->allocator, held.name);
  return status;
}

rondo_status rondo_held_list(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled) {
  const rondo_schedule *schedule = &layout->schedule;
  char buffer[NAME_BYTES];
  uint32_t *positions;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, schedule->operations, sizeof *positions, &positions));
  for (uint32_t p = 0; p < schedule->count; p++) positions[schedule->order[p]] = p;
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < layout->users.count && status == RONDO_OK; i++) {
    const rondo_location *location = rondo_layout_location(layout, i);
    if (location != NULL) status = list_item(location, name_of(program, schedule, i, buffer), compiled, positions);
  }
  rondo_release(&compiled->allocator, positions, schedule->operations, sizeof *positions);
  return status;
}

void rondo_held_free(rondo_compiled *compiled) {
  for (size_t i = 0; i < compiled->held.count; i++)
    rondo_release_text(&compiled->allocator, compiled->held.items[i].name);
  rondo_array_free(&compiled->allocator, &compiled->held);
}
