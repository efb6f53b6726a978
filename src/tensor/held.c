/* SPDX-License-Identifier: MIT
 * Listing the arena's values and workspaces with their steps, and the report of a compiled program, whose memory map
 * they are. Lifetimes come from the layout, in positions of its order; steps know their operation, and stand in that
 * order.
 */
#include "tensor/held.h"

#include <rondo/report.h>
#include <stdio.h>
#include <string.h>

#include "base/versioned.h"
#include "tensor/compiled.h"
#include "tensor/emitter.h"

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
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (positions[compiled->steps.items[middle].operation] < position)
      low = middle + 1;
    else
      high = middle;
  }
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

/* Report ----------------------------------------------------------------------------------------------------------- */

/* What the graph had before the step. */
static uint32_t nodes_before(const rondo_compiled *compiled, uint32_t step) {
  return step == 0 ? 0 : compiled->steps.items[step - 1].nodes_end;
}

/* Values that no node uses have no range. `ranges` has room for all; returns how many there are. */
static size_t make_ranges(const rondo_compiled *compiled, const rondo_node *nodes, rondo_report_range *ranges) {
  size_t count = 0;
  for (size_t i = 0; i < compiled->held.count; i++) {
    const rondo_held_value *held = &compiled->held.items[i];
    const uint32_t first = nodes_before(compiled, held->first_step);
    const uint32_t end = compiled->steps.items[held->last_step].nodes_end;
    if (end <= first) continue;
    ranges[count++] = (rondo_report_range){.name = held->name,
                                           .address = held->address,
                                           .bytes = held->bytes,
                                           .first = nodes[first],
                                           .last = nodes[end - 1]};
  }
  return count;
}

/* The user's ranges, and behind them those of the arena. */
static rondo_status report_with(const rondo_compiled *compiled, rondo_report_options *options, const rondo_node *nodes,
                                char **out_text) {
  const size_t room = compiled->held.count + options->range_count;
  rondo_report_range *ranges;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, room, sizeof *ranges, &ranges));
  if (options->range_count > 0) memcpy(ranges, options->ranges, options->range_count * sizeof *ranges);
  options->range_count += make_ranges(compiled, nodes, ranges + options->range_count);
  options->ranges = ranges;
  const rondo_status status = rondo_graph_report(compiled->graph, options, out_text);
  rondo_release(&compiled->allocator, ranges, room, sizeof *ranges);
  return status;
}

static rondo_status refuse(const rondo_compiled *compiled, const rondo_report_options *options) {
  if (compiled->graph == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                      "rondo_compiled_report: %s was compiled without a recording, so it has no graph",
                      compiled->label);
  if (options->range_count == 0) return RONDO_OK;
  return rondo_require("rondo_compiled_report", "the list of ranges", options->ranges);
}

rondo_status rondo_compiled_report(const rondo_compiled *compiled, const rondo_report_options *options,
                                   char **out_text) {
  RONDO_TRY(rondo_require("rondo_compiled_report", "out_text", out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require("rondo_compiled_report", "compiled", compiled));
  rondo_report_options known;
  RONDO_TRY(rondo_versioned_read("rondo_report_options", options, &known, sizeof known));
  known.struct_size = sizeof known;
  RONDO_TRY(refuse(compiled, &known));
  size_t count = 0;
  rondo_node *nodes;
  RONDO_TRY(rondo_graph_nodes(compiled->graph, NULL, &count));
  const size_t room = count;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, room, sizeof *nodes, &nodes));
  rondo_status status = rondo_graph_nodes(compiled->graph, nodes, &count);
  if (status == RONDO_OK) status = report_with(compiled, &known, nodes, out_text);
  rondo_release(&compiled->allocator, nodes, room, sizeof *nodes);
  return status;
}
