/* SPDX-License-Identifier: MIT
 * The sections of a report's page except for memory: figures, findings, drawings, nodes. Also the description of one
 * node, for tooltips and the table.
 */
#include <inttypes.h>
#include <rondo/verify.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/verify/findings.h"
#include "render/node_details.h"
#include "render/report_parts.h"

/* One node --------------------------------------------------------------------------------------------------------- */

enum { BRIEF_PARAMETERS = 4, MAX_DEPENDENCIES = 24 };

void rondo_report_add_number(rondo_text *text, const rondo_report_model *model, uint32_t graph, uint32_t slot) {
  const rondo_report_graph *of = &model->graphs.items[graph];
  if (of->parent != RONDO_NO_NODE) {
    rondo_report_add_number(text, model, of->parent, of->parent_slot);
    rondo_text_add(text, ".");
  }
  rondo_text_add(text, "%" PRIu32, slot);
}

/* Adds the parameters of a node: "4 x 1 x 1 blocks, reads 0x7f00". */
static void add_parameters(rondo_text *text, const rondo_report_model *model, uint32_t entry, bool brief) {
  const rondo_node_details details = {.text = text,
                                      .graph = model->graphs.items[model->nodes.items[entry].graph].graph,
                                      .with_addresses = !model->options->no_addresses,
                                      .max_parameters = brief ? BRIEF_PARAMETERS : RONDO_MAX_PARAMETERS};
  rondo_node_details_add(&details, rondo_report_node_of(model, entry));
}

static void add_dependency_list(rondo_text *text, const rondo_slots *dependencies) {
  for (size_t i = 0; i < dependencies->count && i < MAX_DEPENDENCIES; i++)
    rondo_text_add(text, "%s%" PRIu32, i == 0 ? "; after " : ", ", dependencies->items[i]);
  if (dependencies->count > MAX_DEPENDENCIES)
    rondo_text_add(text, " and %zu more", dependencies->count - MAX_DEPENDENCIES);
}

/* Adds "kernel saxpy (node 3.1): ", then its parameters, dependencies and time. `brief` leaves out most pointers. */
static void add_node(rondo_text *text, const rondo_report_model *model, uint32_t entry, bool brief) {
  const rondo_report_node *node = &model->nodes.items[entry];
  const rondo_graph_node *of = &model->graphs.items[node->graph].graph->nodes.items[node->slot];
  rondo_text_add(text, "%s%s%s (node ", rondo_node_kind_name(of->params.kind), of->params.name[0] != '\0' ? " " : "",
                 RONDO_REPORT_NAME(of->params.name));
  rondo_report_add_number(text, model, node->graph, node->slot);
  rondo_text_add(text, "): ");
  add_parameters(text, model, entry, brief);
  add_dependency_list(text, &of->dependencies);
  if (node->timed) rondo_text_add(text, "; %s", RONDO_REPORT_TIME(node->us, 2));
}

/* Figures ---------------------------------------------------------------------------------------------------------- */

static void add_figure(rondo_text *text, const char *name, const char *value, const char *note) {
  const bool has_note = note[0] != '\0';
  rondo_text_add(text, "<div><dt>%s</dt><dd>%s%s%s%s</dd></div>\n", name, value, has_note ? "<small>" : "", note,
                 has_note ? "</small>" : "");
}

static void add_bytes(rondo_text *text, const char *name, uint64_t bytes, const char *what) {
  char note[80];
  snprintf(note, sizeof note, "%s bytes, %s", RONDO_GROUPED(bytes), what);
  add_figure(text, name, RONDO_SIZE(bytes), note);
}

static void add_times(rondo_text *text, const rondo_report_model *m) {
  char note[64];
  if (!m->timed) {
    add_figure(text, "Critical path", RONDO_GROUPED(m->critical_count), "nodes; no times were measured");
    return;
  }
  snprintf(note, sizeof note, "of %zu nodes", m->critical_count);
  add_figure(text, "Critical path", RONDO_REPORT_TIME(m->critical_us, 2), note);
  add_figure(text, "All nodes", RONDO_REPORT_TIME(m->total_us, 2), "one after another");
  if (m->critical_us > 0)
    add_figure(text, "Parallelism", RONDO_FIXED(m->total_us / m->critical_us, 2), "all nodes over critical path");
}

static void add_memory_figures(rondo_text *text, const rondo_report_memory *memory) {
  if (memory->model->allocations.count == 0) return;
  add_figure(text, "Allocations", RONDO_GROUPED(memory->model->allocations.count), "");
  if (memory->count == 0) return;
  add_bytes(text, "Allocated", memory->sum, "without sharing");
  add_bytes(text, "Peak", memory->peak, "of addresses taken");
  add_bytes(text, "Lower bound", memory->bound, "live at once");
  if (memory->bound > 0) add_figure(text, "Ratio", RONDO_RATIO(memory->peak, memory->bound), "peak over lower bound");
}

static void add_kinds(rondo_text *text, const rondo_report_model *m) {
  rondo_text_add(text, "<ul class=\"kinds\" aria-label=\"Nodes by kind\">\n");
  for (int kind = RONDO_NODE_KERNEL; kind < RONDO_REPORT_KINDS; kind++) {
    if (m->of_kind[kind] == 0) continue;
    const char *name = rondo_node_kind_name((rondo_node_kind)kind);
    rondo_text_add(text, "<li><span class=\"swatch %s\"></span>%s <b>%s</b></li>\n", name, name,
                   RONDO_GROUPED(m->of_kind[kind]));
  }
  rondo_text_add(text, "</ul>\n");
}

void rondo_report_add_figures(rondo_text *text, const rondo_report_model *m, const rondo_report_memory *memory) {
  rondo_text_add(text, "<section id=\"figures\"><h2>Figures</h2>\n<dl class=\"figures\">\n");
  add_figure(text, "Nodes", RONDO_GROUPED(m->node_count), m->graphs.count > 1 ? "with those of child graphs" : "");
  add_figure(text, "Edges", RONDO_GROUPED(m->edge_count), "");
  add_figure(text, "Depth", RONDO_GROUPED(m->depth), "nodes on the longest path");
  add_figure(text, "Width", RONDO_GROUPED(m->width), "nodes at one depth, at most");
  add_times(text, m);
  add_memory_figures(text, memory);
  rondo_text_add(text, "</dl>\n");
  add_kinds(text, m);
  rondo_text_add(text, "</section>\n");
}

/* Findings --------------------------------------------------------------------------------------------------------- */

/* Adds the node of a finding, with a link to its row. */
static void add_finding_node(rondo_text *text, const rondo_report_model *m, uint32_t entry, bool links) {
  const rondo_report_node *node = &m->nodes.items[entry];
  rondo_text_add(text, " at node ");
  if (links) rondo_text_add(text, "<a href=\"#row-%s%" PRIu32 "\">", m->graphs.items[node->graph].prefix, node->slot);
  rondo_report_add_number(text, m, node->graph, node->slot);
  if (links) rondo_text_add(text, "</a>");
}

/* The message with a question mark in place of each address's digits. */
static const char *hide_addresses(char shown[RONDO_FINDING_MESSAGE], const char *message) {
  char *to = shown;
  while (*message != '\0') {
    *to++ = *message++;
    if (to - shown < 2 || to[-2] != '0' || to[-1] != 'x') continue;
    const size_t digits = strspn(message, "0123456789abcdef");
    if (digits > 0) *to++ = '?';
    message += digits;
  }
  *to = '\0';
  return shown;
}

static rondo_status add_finding(rondo_text *text, rondo_report_model *m, const rondo_finding *finding) {
  char shown[RONDO_FINDING_MESSAGE];
  const bool is_error = finding->severity == RONDO_SEVERITY_ERROR;
  uint32_t entry;
  rondo_text_add(text, "<li class=\"%s\"><b>%s</b> %s", rondo_severity_name(finding->severity),
                 is_error ? "Error" : "Warning", rondo_reason_name(finding->reason));
  if (finding->node.id != 0) {
    RONDO_TRY(rondo_report_find(m, "a finding", finding->node, &entry));
    const rondo_report_node *node = &m->nodes.items[entry];
    if (is_error) m->graphs.items[node->graph].marks[node->slot].faulty = true;
    add_finding_node(text, m, entry, m->node_count <= RONDO_REPORT_MAX_LISTED);
  }
  rondo_text_add(text, "<br/>");
  const bool hides = m->options->no_addresses;
  rondo_text_add_markup(text, hides ? hide_addresses(shown, finding->message) : finding->message, SIZE_MAX);
  rondo_text_add(text, "</li>\n");
  return RONDO_OK;
}

static rondo_status list_findings(rondo_text *text, rondo_report_model *m, const rondo_findings *findings) {
  uint64_t errors, warnings;
  const size_t count = rondo_findings_count(findings);
  rondo_findings_totals(findings, &errors, &warnings);
  rondo_text_add(text, "<p>%" PRIu64 " error%s, %" PRIu64 " warning%s.</p>\n", errors, errors == 1 ? "" : "s", warnings,
                 warnings == 1 ? "" : "s");
  if (count == 0) return RONDO_OK;
  rondo_text_add(text, "<ul class=\"findings\">\n");
  for (size_t i = 0; i < count; i++) {
    rondo_finding finding = {.struct_size = sizeof finding};
    RONDO_TRY(rondo_findings_get(findings, i, &finding));
    RONDO_TRY(add_finding(text, m, &finding));
  }
  rondo_text_add(text, "</ul>\n");
  if (errors + warnings > count)
    rondo_text_add(text, "<p class=\"note\">%" PRIu64 " more are not listed.</p>\n", errors + warnings - count);
  return RONDO_OK;
}

rondo_status rondo_report_add_findings(rondo_text *text, rondo_report_model *m) {
  rondo_findings *findings;
  RONDO_TRY(rondo_graph_verify(m->graphs.items[0].graph, NULL, &findings));
  rondo_text_add(text, "<section id=\"findings\"><h2>Findings</h2>\n");
  const rondo_status status = list_findings(text, m, findings);
  rondo_text_add(text, "</section>\n");
  rondo_findings_destroy(findings);
  return status;
}

/* Drawings --------------------------------------------------------------------------------------------------------- */

static void describe(rondo_text *text, const void *user, const rondo_graph *graph, uint32_t slot) {
  const rondo_report_model *m = user;
  uint32_t index = 0;
  while (m->graphs.items[index].graph != graph) index++;
  add_node(text, m, m->graphs.items[index].begin[slot], graph->live_count > RONDO_DRAWING_MAX_NODES);
}

static void add_heading(rondo_text *text, const rondo_report_model *m, uint32_t index) {
  const rondo_report_graph *of = &m->graphs.items[index];
  if (of->parent == RONDO_NO_NODE) return;
  rondo_text_add(text, "<h3 id=\"in-%s\">In node ", of->prefix);
  rondo_report_add_number(text, m, of->parent, of->parent_slot);
  if (of->graph->name[0] != '\0') rondo_text_add(text, ": %s", RONDO_REPORT_NAME(of->graph->name));
  rondo_text_add(text, "</h3>\n");
}

static void add_controls(rondo_text *text) {
  rondo_text_add(text,
                 "<div class=\"controls\" hidden=\"hidden\"><button type=\"button\" data-zoom=\"1.25\" "
                 "aria-label=\"Larger\">+</button><button type=\"button\" data-zoom=\"0.8\" aria-label=\"Smaller\">"
                 "\xE2\x88\x92</button><button type=\"button\" data-zoom=\"0\">1:1</button>"
                 "<button type=\"button\" data-zoom=\"fit\">fit</button></div>\n");
}

/* *inout_left: how many more nodes may be drawn. */
static rondo_status add_drawing(rondo_text *text, const rondo_report_model *m, uint32_t index, bool links,
                                size_t *inout_left) {
  const rondo_report_graph *of = &m->graphs.items[index];
  size_t shown;
  const rondo_drawing drawing = {.graph = of->graph,
                                 .order = of->order,
                                 .marks = of->marks,
                                 .prefix = of->prefix,
                                 .links = links,
                                 .max_cells = *inout_left,
                                 .label = index == 0 ? "The graph" : "A child graph",
                                 .describe = describe,
                                 .user = m};
  rondo_text_add(text, "<div class=\"drawing\">");
  add_controls(text);
  rondo_text_add(text, "<div class=\"scroll view\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n", drawing.label);
  RONDO_TRY(rondo_drawing_add(text, &drawing, &shown));
  rondo_text_add(text, "</div></div>\n");
  *inout_left -= shown;
  if (shown < of->graph->live_count)
    rondo_text_add(text, "<p class=\"note\">%zu more nodes are not drawn.</p>\n", of->graph->live_count - shown);
  return RONDO_OK;
}

rondo_status rondo_report_add_drawings(rondo_text *text, const rondo_report_model *m) {
  size_t left = RONDO_REPORT_MAX_DRAWN, graphs_left = 0;
  rondo_text_add(text, "<section id=\"graph\"><h2>Graph</h2>\n");
  if (m->node_count == 0) rondo_text_add(text, "<p>The graph has no nodes.</p>\n");
  for (uint32_t i = 0; i < m->graphs.count; i++) {
    const size_t nodes = m->graphs.items[i].graph->live_count;
    const bool small = nodes <= RONDO_DRAWING_MAX_NODES;
    if (nodes == 0) continue;
    if (left == 0 || (small && nodes > left)) {
      graphs_left++;
      continue;
    }
    add_heading(text, m, i);
    RONDO_TRY(add_drawing(text, m, i, m->node_count <= RONDO_REPORT_MAX_LISTED, &left));
  }
  if (graphs_left > 0)
    rondo_text_add(text, "<p class=\"note\">%zu more child graphs are not drawn.</p>\n", graphs_left);
  rondo_text_add(text, "<p class=\"detail\" id=\"detail\" aria-live=\"polite\"></p>\n</section>\n");
  return RONDO_OK;
}

/* Nodes ------------------------------------------------------------------------------------------------------------ */

static void add_time_cell(rondo_text *text, const rondo_report_model *m, const rondo_report_node *node) {
  if (node->timed)
    rondo_text_add(text, "<td class=\"number\">%s</td><td class=\"bar\"><i style=\"width:%s%%\"></i></td>",
                   RONDO_FIXED(node->us, 1), RONDO_FIXED(m->longest_us > 0 ? 100 * node->us / m->longest_us : 0, 1));
  else
    rondo_text_add(text, "<td class=\"number\"></td><td class=\"bar\"></td>");
}

static void add_dependencies(rondo_text *text, const rondo_report_graph *graph, const rondo_slots *dependencies,
                             bool links) {
  enum { MAX_SHOWN = 16 };
  for (size_t i = 0; i < dependencies->count && i < MAX_SHOWN; i++) {
    const uint32_t slot = dependencies->items[i];
    rondo_text_add(text, "%s", i == 0 ? "" : " ");
    if (links) rondo_text_add(text, "<a href=\"#row-%s%" PRIu32 "\">", graph->prefix, slot);
    rondo_text_add(text, "%" PRIu32 "%s", slot, links ? "</a>" : "");
  }
  if (dependencies->count > MAX_SHOWN) rondo_text_add(text, " and %zu more", dependencies->count - MAX_SHOWN);
}

static void add_row(rondo_text *text, const rondo_report_model *m, uint32_t entry, bool links) {
  const rondo_report_node *node = &m->nodes.items[entry];
  const rondo_report_graph *graph = &m->graphs.items[node->graph];
  const rondo_graph_node *of = &graph->graph->nodes.items[node->slot];
  const rondo_drawing_mark *mark = &graph->marks[node->slot];
  const char *kind = rondo_node_kind_name(of->params.kind);
  rondo_text_add(text, "<tr id=\"row-%s%" PRIu32 "\"%s><td class=\"number\">", graph->prefix, node->slot,
                 mark->faulty     ? " class=\"faulty\""
                 : mark->critical ? " class=\"critical\""
                                  : "");
  rondo_report_add_number(text, m, node->graph, node->slot);
  rondo_text_add(text, "</td><td class=\"kind\"><span class=\"swatch %s\"></span>%s</td><td class=\"name\">%s</td><td>",
                 kind, kind, RONDO_REPORT_NAME(of->params.name));
  add_parameters(text, m, entry, false);
  rondo_text_add(text, "</td><td>");
  add_dependencies(text, graph, &of->dependencies, links);
  rondo_text_add(text, "</td>");
  if (m->timed) add_time_cell(text, m, node);
  rondo_text_add(text, "</tr>\n");
}

/* The second entry of a child node has no row. */
static bool has_row(const rondo_report_model *m, uint32_t entry) {
  const rondo_report_node *node = &m->nodes.items[entry];
  return m->graphs.items[node->graph].begin[node->slot] == entry;
}

void rondo_report_add_nodes(rondo_text *text, const rondo_report_model *m) {
  size_t listed = 0;
  const bool links = m->node_count <= RONDO_REPORT_MAX_LISTED;
  rondo_text_add(text,
                 "<section id=\"nodes\"><h2>Nodes</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"Nodes\"><table><thead><tr><th class=\"number\">Node</th><th>Kind</th><th>Name</th>"
                 "<th>Does</th><th>After</th>%s</tr></thead><tbody>\n",
                 m->timed ? "<th class=\"number\">\xC2\xB5s</th><th></th>" : "");
  for (uint32_t i = 0; i < m->nodes.count && listed < RONDO_REPORT_MAX_LISTED; i++) {
    if (!has_row(m, i)) continue;
    add_row(text, m, i, links);
    listed++;
  }
  rondo_text_add(text, "</tbody></table></div>\n");
  if (listed < m->node_count)
    rondo_text_add(text, "<p class=\"note\">%zu more nodes are not listed.</p>\n", m->node_count - listed);
  rondo_text_add(text, "</section>\n");
}
