/* SPDX-License-Identifier: MIT
 * Lists the arena's values and workspaces with their steps. Lifetimes come from the layout, as positions in its order.
 * Each step knows its operation, and the steps are in that order.
 */
#include "tensor/run/arena_values.h"

#include <stdio.h>

#include "base/binary_search.h"
#include "tensor/compile/emitter.h"
#include "tensor/run/compiled.h"

enum { NAME_BYTES = RONDO_CHAIN_NAME + 16 };

/* Names ------------------------------------------------------------------------------------------------------------ */

/* The name of an input or output, or the operator and its number. */
static const char *name_of(const rondo_program *program, const rondo_schedule *schedule, uint32_t value,
                           char buffer[NAME_BYTES]) {
  const rondo_program_value *of = &program->values.items[value];
  if (of->name != NULL) return of->name;
  for (size_t i = 0; i < program->outputs.count; i++)
    if (program->outputs.items[i].value == value) return program->outputs.items[i].name;
  char name[RONDO_CHAIN_NAME];
  rondo_schedule_name(program, schedule, of->operation, name, sizeof name);
  (void)snprintf(buffer, NAME_BYTES, "%s %u", name, of->operation);
  return buffer;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

/* By operation, its position in the order. */
static void find_positions(const rondo_layout *layout, uint32_t *positions) {
  for (uint32_t i = 0; i < layout->schedule.count; i++) positions[layout->schedule.order[i]] = i;
}

/* The first step of an operation at `position` or behind it. */
static uint32_t first_step_from(const rondo_compiled *compiled, const uint32_t *positions, uint32_t position) {
  uint32_t low = 0, high = (uint32_t)compiled->steps.count;
  RONDO_BINARY_SEARCH(low, high, middle, positions[compiled->steps.items[middle].operation] < position)
  return low;
}

/* Listing ---------------------------------------------------------------------------------------------------------- */

static rondo_status list_place(const rondo_place *place, const char *name, rondo_compiled *compiled,
                               const uint32_t *positions) {
  rondo_held_value held = {.address = rondo_place_address(place, compiled),
                           .bytes = place->bytes,
                           .first_step = first_step_from(compiled, positions, place->first)};
  const uint32_t behind = first_step_from(compiled, positions, place->last + 1);
  if (behind <= held.first_step) return RONDO_OK;
  held.last_step = behind - 1;
  RONDO_TRY(rondo_allocate_text(&compiled->allocator, name, &held.name));
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->held, &held);
  if (status != RONDO_OK) rondo_release_text(&compiled->allocator, held.name);
  return status;
}

static rondo_status list_values(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled,
                                const uint32_t *positions) {
  char buffer[NAME_BYTES];
  for (uint32_t i = 0; i < layout->schedule.values; i++) {
    if (layout->places[i].block != RONDO_BLOCK_ARENA || layout->schedule.owners[i] != i) continue;
    RONDO_TRY(list_place(&layout->places[i], name_of(program, &layout->schedule, i, buffer), compiled, positions));
  }
  return RONDO_OK;
}

static rondo_status list_workspaces(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled,
                                    const uint32_t *positions) {
  char buffer[NAME_BYTES];
  for (uint32_t i = 0; i < layout->schedule.operations; i++) {
    if (layout->workspaces[i].block == RONDO_BLOCK_NONE) continue;
    (void)snprintf(buffer, sizeof buffer, "workspace of %s %u", program->operations.items[i].row->name, i);
    RONDO_TRY(list_place(&layout->workspaces[i], buffer, compiled, positions));
  }
  return RONDO_OK;
}

rondo_status rondo_held_list(const rondo_program *program, const rondo_layout *layout, rondo_compiled *compiled) {
  uint32_t *positions;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, layout->schedule.operations, sizeof *positions, &positions));
  find_positions(layout, positions);
  rondo_status status = list_values(program, layout, compiled, positions);
  if (status == RONDO_OK) status = list_workspaces(program, layout, compiled, positions);
  rondo_release(&compiled->allocator, positions, layout->schedule.operations, sizeof *positions);
  return status;
}

void rondo_held_free(rondo_compiled *compiled) {
  for (size_t i = 0; i < compiled->held.count; i++)
    rondo_release_text(&compiled->allocator, compiled->held.items[i].name);
  rondo_array_free(&compiled->allocator, &compiled->held);
}
