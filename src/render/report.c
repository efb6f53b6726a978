/* SPDX-License-Identifier: MIT
 * rondo_graph_report: the model of the graph, then the page around its sections. The page is well-formed XML as well as
 * HTML, so that anything can read it.
 */
#include <rondo/report.h>

#include <inttypes.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "render/report_memory.h"
#include "render/report_page.h"
#include "render/report_parts.h"
#include "render/report_sections.h"

static const char *title_of(const rondo_report_model *m) {
  if (m->options->title != NULL && m->options->title[0] != '\0') return m->options->title;
  const char *name = m->graphs.items[0].graph->name;
  return name[0] == '\0' ? "Graph without a name" : name;
}

static void add_head(rondo_text *text, const rondo_report_model *m) {
  rondo_text_add(text,
                 "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                 "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, "
                 "initial-scale=1\"/>\n<meta name=\"generator\" content=\"Rondo " RONDO_VERSION_STRING "\"/>\n<title>");
  rondo_text_add_markup(text, title_of(m), RONDO_REPORT_NAME_BYTES);
  rondo_text_add(text, "</title>\n<style>\n");
  rondo_report_add_style(text);
  rondo_text_add(text, "</style>\n</head>\n");
}

static rondo_status add_header(rondo_text *text, const rondo_report_model *m) {
  uint64_t fingerprint;
  RONDO_TRY(rondo_graph_fingerprint(m->graphs.items[0].graph, &fingerprint));
  rondo_text_add(text, "<header><h1>");
  rondo_text_add_markup(text, title_of(m), RONDO_REPORT_NAME_BYTES);
  rondo_text_add(text, "</h1><p>");
  rondo_text_add_grouped(text, m->node_count);
  rondo_text_add(text, " node%s, ", m->node_count == 1 ? "" : "s");
  rondo_text_add_grouped(text, m->edge_count);
  rondo_text_add(text, " edge%s, fingerprint %016" PRIx64 "</p></header>\n", m->edge_count == 1 ? "" : "s",
                 fingerprint);
  return RONDO_OK;
}

static void add_navigation(rondo_text *text, const rondo_report_model *m) {
  rondo_text_add(text, "<nav aria-label=\"Sections\"><ul>");
  for (size_t i = 0; i < m->options->section_count; i++) {
    rondo_text_add(text, "<li><a href=\"#host-%zu\">", i);
    rondo_text_add_markup(text, m->options->sections[i].title, RONDO_REPORT_NAME_BYTES);
    rondo_text_add(text, "</a></li>");
  }
  rondo_text_add(text,
                 "<li><a href=\"#figures\">Figures</a></li>%s"
                 "<li><a href=\"#graph\">Graph</a></li><li><a href=\"#memory\">Memory</a></li>"
                 "<li><a href=\"#nodes\">Nodes</a></li></ul></nav>\n",
                 m->options->skip_verify ? "" : "<li><a href=\"#findings\">Findings</a></li>");
}

static void add_host_sections(rondo_text *text, const rondo_report_model *m) {
  for (size_t i = 0; i < m->options->section_count; i++) {
    const rondo_report_section *section = &m->options->sections[i];
    rondo_text_add(text, "<section id=\"host-%zu\"><h2>", i);
    rondo_text_add_markup(text, section->title, RONDO_REPORT_NAME_BYTES);
    rondo_text_add(text, "</h2>\n");
    rondo_text_add_bytes(text, section->markup, strlen(section->markup));
    rondo_text_add(text, "\n</section>\n");
  }
}

static rondo_status add_body(rondo_text *text, rondo_report_model *m, const rondo_report_memory *memory) {
  rondo_text_add(text, "<body>\n");
  RONDO_TRY(add_header(text, m));
  add_navigation(text, m);
  rondo_text_add(text, "<main>\n");
  add_host_sections(text, m);
  rondo_report_add_figures(text, m, memory);
  if (!m->options->skip_verify) RONDO_TRY(rondo_report_add_findings(text, m));
  RONDO_TRY(rondo_report_add_drawings(text, m));
  rondo_report_add_memory(text, memory);
  rondo_report_add_nodes(text, m);
  rondo_text_add(text, "</main>\n<footer>Written by Rondo " RONDO_VERSION_STRING ".</footer>\n<script>\n");
  rondo_report_add_script(text);
  rondo_text_add(text, "</script>\n</body>\n</html>\n");
  return RONDO_OK;
}

static rondo_status add_page(rondo_text *text, rondo_report_model *m) {
  rondo_report_memory memory;
  rondo_status status = rondo_report_memory_make(m, &memory);
  if (status == RONDO_OK) {
    add_head(text, m);
    status = add_body(text, m, &memory);
  }
  rondo_report_memory_free(&memory);
  return status;
}

static rondo_status check_lists(const char *call, const rondo_report_options *options) {
  if (options->time_count > 0 && options->times == NULL) return rondo_refuse_null(call, "the list of times");
  if (options->range_count > 0 && options->ranges == NULL) return rondo_refuse_null(call, "the list of ranges");
  if (options->section_count > 0 && options->sections == NULL) return rondo_refuse_null(call, "the list of sections");
  for (size_t i = 0; i < options->section_count; i++) {
    if (options->sections[i].title == NULL) return rondo_refuse_null(call, "the title of a section");
    if (options->sections[i].markup == NULL) return rondo_refuse_null(call, "the markup of a section");
  }
  return RONDO_OK;
}

rondo_status rondo_graph_report(const rondo_graph *graph, const rondo_report_options *options, char **out_text) {
  const char *const call = "rondo_graph_report";
  RONDO_TRY(rondo_front(call, "out_text", out_text));
  *out_text = NULL;
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  rondo_report_options known;
  RONDO_TRY(rondo_versioned_read("rondo_report_options", options, &known, sizeof known));
  RONDO_TRY(check_lists(call, &known));
  rondo_report_model model;
  rondo_text text;
  rondo_text_init(&text, &graph->allocator);
  rondo_status status = rondo_report_model_make(graph, &known, &model);
  if (status == RONDO_OK) status = add_page(&text, &model);
  rondo_report_model_free(&model);
  if (status == RONDO_OK) return rondo_text_hand_out(&text, out_text);
  rondo_text_deinit(&text);
  return status;
}
