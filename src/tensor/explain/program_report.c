/* SPDX-License-Identifier: MIT
 * The report of a compiled program: the report of its recorded graph, whose memory map also shows the values in the
 * program's arena. Thread-compatible, as the compiled program is.
 */
#include <rondo/program.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "tensor/run/compiled.h"

/* The number of nodes before the step. */
static uint32_t nodes_before(const rondo_compiled *compiled, uint32_t step) {
  return step == 0 ? 0 : compiled->steps.items[step - 1].nodes_end;
}

/* Makes a range for each value that a node uses. `ranges` has an element for each value. Returns the number of ranges.
 */
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

/* Adds ranges for the values in the arena to those of the user. */
static rondo_status report_with(const rondo_compiled *compiled, rondo_report_options *options, const rondo_node *nodes,
                                char **out_text) {
  const size_t capacity = compiled->held.count + options->range_count;
  rondo_report_range *ranges;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, capacity, sizeof *ranges, &ranges));
  if (options->range_count > 0) memcpy(ranges, options->ranges, options->range_count * sizeof *ranges);
  options->range_count += make_ranges(compiled, nodes, ranges + options->range_count);
  options->ranges = ranges;
  const rondo_status status = rondo_graph_report(compiled->graph, options, out_text);
  rondo_release(&compiled->allocator, ranges, capacity, sizeof *ranges);
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
  const size_t capacity = count;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, capacity, sizeof *nodes, &nodes));
  rondo_status status = rondo_graph_nodes(compiled->graph, nodes, &count);
  if (status == RONDO_OK) status = report_with(compiled, &known, nodes, out_text);
  rondo_release(&compiled->allocator, nodes, capacity, sizeof *nodes);
  return status;
}
