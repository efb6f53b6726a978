/* SPDX-License-Identifier: MIT
 * The memory of a report: the address and lifetime of each allocation, the address range that they occupy, and the
 * minimum that they need. Addresses form groups, because memory that outlives its graph is elsewhere. The map omits
 * unused ranges that are longer than all allocations together.
 */
#include <inttypes.h>

#include "base/error.h"
#include "render/plan_picture.h"
#include "render/report_parts.h"

enum { MAP_WIDTH = 1160, MAP_HEIGHT = 560 };

/* Choosing --------------------------------------------------------------------------------------------------------- */

static void choose(rondo_report_memory *m) {
  const rondo_report_model *model = m->model;
  for (size_t i = 0; i < model->allocations.count; i++) {
    const rondo_report_allocation *allocation = &model->allocations.items[i];
    if (allocation->address == NULL) {
      m->without_address++;
    } else if (m->count == RONDO_REPORT_MAX_ALLOCATIONS) {
      m->left_out++;
    } else {
      m->shown[m->count++] = allocation;
    }
  }
}

static rondo_status add_up(rondo_report_memory *m) {
  size_t sum = 0;
  for (size_t i = 0; i < m->count; i++)
    if (!rondo_checked_add(sum, m->shown[i]->bytes, &sum))
      return rondo_fail(
          RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
          "rondo_graph_report: the sum of the bytes of %zu allocations exceeds %zu bits: report a part of the graph",
          m->count, 8 * sizeof(size_t));
  m->sum = sum;
  return RONDO_OK;
}

/* Computes offsets from the lowest address, without the long unused ranges. Allocations are sorted by address. */
static void find_offsets(rondo_report_memory *m) {
  uintptr_t base = 0, end = 0;
  for (size_t i = 0; i < m->count; i++) {
    const uintptr_t address = (uintptr_t)m->shown[i]->address;
    if (i == 0) base = end = address;
    if (address > end && address - end > m->sum) {
      base += address - end;
      end = address;
    }
    m->offsets[i] = address - base;
    const size_t bytes = m->shown[i]->bytes;
    const uintptr_t last = bytes > UINTPTR_MAX - address ? UINTPTR_MAX : address + bytes;
    if (last > end) end = last;
    if (end - base > m->peak) m->peak = end - base;
  }
}

static void list_items(rondo_report_memory *m) {
  for (size_t i = 0; i < m->count; i++) {
    const rondo_report_allocation *of = m->shown[i];
    const uint32_t until = of->free == RONDO_NO_NODE ? RONDO_PLAN_FOREVER : of->free + (of->is_range ? 1 : 0);
    m->items[i] = (rondo_plan_item){.bytes = of->bytes, .lower = of->alloc, .upper = until};
  }
}

static rondo_status find_bound(rondo_report_memory *m) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = m->items, .count = m->count};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true, .allocator = &m->model->allocator};
  rondo_plan_info info = {.struct_size = sizeof info};
  rondo_plan *plan;
  RONDO_TRY(rondo_plan_make(&problem, &options, &plan));
  const rondo_status status = rondo_plan_get_info(plan, &info);
  rondo_plan_destroy(plan);
  m->bound = info.lower_bound;
  return status;
}

rondo_status rondo_report_memory_make(const rondo_report_model *model, rondo_report_memory *out) {
  const rondo_allocator *allocator = &model->allocator;
  const size_t capacity = model->allocations.count;
  *out = (rondo_report_memory){.model = model};
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *out->shown, &out->shown));
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *out->offsets, &out->offsets));
  choose(out);
  if (out->count == 0) return RONDO_OK;
  RONDO_TRY(add_up(out));
  find_offsets(out);
  list_items(out);
  return find_bound(out);
}

void rondo_report_memory_free(rondo_report_memory *m) {
  const rondo_allocator *allocator = &m->model->allocator;
  const size_t capacity = m->model->allocations.count;
  rondo_release(allocator, m->shown, capacity, sizeof *m->shown);
  rondo_release(allocator, m->items, capacity, sizeof *m->items);
  rondo_release(allocator, m->offsets, capacity, sizeof *m->offsets);
}

/* The section ------------------------------------------------------------------------------------------------------ */

static void add_entry(rondo_text *text, const rondo_report_model *model, uint32_t entry) {
  const rondo_report_node *node = &model->nodes.items[entry];
  rondo_report_add_number(text, model, node->graph, node->slot);
}

static const char *name_of(const rondo_report_allocation *allocation) {
  return allocation->name[0] == '\0' ? "(no name)" : allocation->name;
}

static void describe(rondo_text *text, const void *user, size_t item) {
  const rondo_report_memory *m = user;
  const rondo_report_allocation *of = m->shown[item];
  rondo_text_add(text, "%s: %s bytes at offset %s", RONDO_REPORT_NAME(name_of(of)), RONDO_GROUPED(of->bytes),
                 RONDO_GROUPED(m->offsets[item]));
  if (!m->model->options->no_addresses) rondo_text_add(text, " (0x%" PRIxPTR ")", (uintptr_t)of->address);
  rondo_text_add(text, of->is_range ? ", from node " : ", allocated by node ");
  add_entry(text, m->model, of->alloc);
  if (of->free == RONDO_NO_NODE) {
    rondo_text_add(text, ", not freed in the graph");
    return;
  }
  rondo_text_add(text, of->is_range ? " through node " : ", freed by node ");
  add_entry(text, m->model, of->free);
}

static rondo_status add_map(rondo_text *text, const rondo_report_memory *m) {
  const char **names;
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = m->items, .count = m->count};
  RONDO_TRY(rondo_allocate_items(&m->model->allocator, m->count, sizeof *names, &names));
  for (size_t i = 0; i < m->count; i++) names[i] = m->shown[i]->name;
  const rondo_picture picture = {.problem = &problem,
                                 .offsets = m->offsets,
                                 .width = MAP_WIDTH,
                                 .height = MAP_HEIGHT,
                                 .title = "Address against time",
                                 .time_name = "nodes in order",
                                 .names = names,
                                 .describe = describe,
                                 .user = m};
  rondo_picture_add(text, &picture, false);
  rondo_release(&m->model->allocator, names, m->count, sizeof *names);
  return RONDO_OK;
}

static void add_row(rondo_text *text, const rondo_report_memory *m, size_t item) {
  const rondo_report_allocation *of = m->shown[item];
  rondo_text_add(text, "<tr><td>%s</td><td class=\"number\">%s</td><td class=\"number\">%s</td><td class=\"number\">",
                 RONDO_REPORT_NAME(name_of(of)), RONDO_GROUPED(of->bytes), RONDO_GROUPED(m->offsets[item]));
  add_entry(text, m->model, of->alloc);
  rondo_text_add(text, "</td><td class=\"number\">");
  if (of->free == RONDO_NO_NODE)
    rondo_text_add(text, "never");
  else
    add_entry(text, m->model, of->free);
  rondo_text_add(text, "</td></tr>\n");
}

static void add_table(rondo_text *text, const rondo_report_memory *m) {
  rondo_text_add(
      text,
      "<details><summary>Allocations as a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Allocations\"><table><thead><tr><th>Name</th><th class=\"number\">Bytes</th>"
      "<th class=\"number\">Offset</th><th class=\"number\">From node</th><th class=\"number\">To node</th>"
      "</tr></thead><tbody>\n");
  for (size_t i = 0; i < m->count && i < RONDO_REPORT_MAX_LISTED; i++) add_row(text, m, i);
  rondo_text_add(text, "</tbody></table></div>");
  if (m->count > RONDO_REPORT_MAX_LISTED)
    rondo_text_add(text, "<p class=\"note\">%zu more are not listed.</p>", m->count - RONDO_REPORT_MAX_LISTED);
  rondo_text_add(text, "</details>\n");
}

void rondo_report_add_memory(rondo_text *text, const rondo_report_memory *m) {
  rondo_text_add(text, "<section id=\"memory\"><h2>Memory</h2>\n");
  if (m->count == 0 && m->without_address == 0) rondo_text_add(text, "<p>No node allocates memory.</p>\n");
  if (m->without_address > 0)
    rondo_text_add(text, "<p class=\"note\">%zu allocation%s no address here, and cannot be drawn.</p>\n",
                   m->without_address, m->without_address == 1 ? " has" : "s have");
  if (m->left_out > 0) rondo_text_add(text, "<p class=\"note\">%zu more allocations are not drawn.</p>\n", m->left_out);
  if (m->count > 0 && text->failed == RONDO_OK) {
    rondo_text_add(text, "<div class=\"scroll view\" tabindex=\"0\" role=\"region\" aria-label=\"Memory map\">\n");
    const rondo_status status = add_map(text, m);
    if (status != RONDO_OK && text->failed == RONDO_OK) text->failed = status;
    rondo_text_add(text, "</div>\n");
    add_table(text, m);
  }
  rondo_text_add(text, "</section>\n");
}
