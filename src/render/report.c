/* SPDX-License-Identifier: MIT
 * rondo_graph_report: makes the model of the graph, then writes the page around its sections. The page is well-formed
 * XML as well as HTML, so any parser can read it. Its colours are CSS variables, for light and dark. The page also
 * works without its script, which adds zooming, dragging, neighbours and details. The script avoids characters that XML
 * would need escaped.
 */
#include <rondo/report.h>

#include <inttypes.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"
#include "render/plan_picture.h"
#include "render/report_parts.h"

/* Style and script ------------------------------------------------------------------------------------------------- */

static const char *const style_rules[] = {
    ":root{color-scheme:light dark;--ink:#1b2733;--faint:#56636f;--line:#9aa5b1;--rule:#e1e6eb;--paper:#fff;"
    "--panel:#f7f9fb;--accent:#1d6fb8;--bad:#b3261e;--warn:#8a5a00}\n",
    "@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--faint:#9aa7b4;--line:#66717c;--rule:#2a323a;"
    "--paper:#14191e;--panel:#1a2026;--accent:#6fb3ee;--bad:#ff8a80;--warn:#e8b75a}}\n",
    "*{box-sizing:border-box}html{scroll-padding-top:3.2rem}\n",
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,\"Segoe UI\",Roboto,"
    "\"DejaVu Sans\",sans-serif;font-variant-numeric:tabular-nums}\n",
    "header,main,footer{max-width:1240px;margin:0 auto;padding:0 24px}header{padding-top:28px}\n",
    "h1{font-size:1.55rem;line-height:1.25;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:36px 0 12px}"
    "h3{font-size:.95rem;margin:24px 0 8px}p{margin:8px 0}\n",
    "header p,.note,footer{color:var(--faint)}footer{padding-top:24px;padding-bottom:32px;font-size:.85rem}\n",
    "nav{position:sticky;top:0;z-index:1;background:var(--paper);border-bottom:1px solid var(--rule);margin-top:16px}"
    "nav ul{display:flex;flex-wrap:wrap;gap:4px 22px;list-style:none;max-width:1240px;margin:0 auto;padding:9px 24px}"
    "\n",
    "a{color:var(--accent)}nav a{text-decoration:none}nav a:hover{text-decoration:underline}"
    ":focus-visible{outline:2px solid var(--accent);outline-offset:2px}\n",
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(158px,1fr));margin:0;overflow:hidden;border:"
    "1px solid var(--rule)}"
    ".figures div{padding:10px 14px;border:1px solid var(--rule);margin:0 -1px -1px 0}\n",
    "dt{font-size:.8rem;color:var(--faint)}dd{margin:0;font-size:1.3rem;line-height:1.35}"
    "small{display:block;font-size:.75rem;line-height:1.35;color:var(--faint)}\n",
    ".kinds{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;margin:14px 0 0;padding:0;font-size:.9rem}"
    ".kinds b{font-weight:600}\n",
    ".swatch{display:inline-block;width:11px;height:11px;border:1px solid;border-radius:2px;margin-right:7px}\n",
    ".scroll{overflow:auto;border:1px solid var(--rule);max-height:78vh}.view{background:var(--panel)}"
    ".view svg{display:block;margin:0 auto}\n",
    ".controls{display:flex;justify-content:flex-end;gap:4px;margin-bottom:6px}.controls[hidden]{display:none}"
    ".controls button{font:inherit;font-size:.85rem;min-width:30px;padding:2px 8px;border:1px solid var(--line);"
    "border-radius:3px;background:var(--paper);color:var(--ink);cursor:pointer}\n",
    ".detail{min-height:1.5em;font-size:.9rem;color:var(--faint);overflow-wrap:anywhere}\n",
    "table{border-collapse:collapse;width:100%;font-size:.86rem}th{position:sticky;top:0;background:var(--panel);"
    "text-align:left;font-weight:600}th,td{padding:4px 12px;border-bottom:1px solid var(--rule);vertical-align:top}"
    "td{overflow-wrap:anywhere}\n",
    ".number{text-align:right}.number,.kind{white-space:nowrap}.name{min-width:13rem}tr:target{background:var(--"
    "panel);outline:2px solid var(--accent)}"
    ".critical td:first-child{font-weight:600}.faulty td:first-child{color:var(--bad);font-weight:600}\n",
    ".bar{min-width:90px}.bar i{display:block;height:9px;margin-top:6px;min-width:1px;background:var(--accent)}\n",
    ".findings{list-style:none;margin:0;padding:0;border:1px solid var(--rule)}.findings li{padding:9px 14px;"
    "border-bottom:1px solid var(--rule);overflow-wrap:anywhere}.findings li:last-child{border-bottom:0}\n",
    ".error b{color:var(--bad)}.warning b{color:var(--warn)}summary{cursor:pointer;margin:10px 0}\n",
    "@media print{nav,.controls{display:none}.scroll{max-height:none;overflow:visible}}\n",
};

static const char *const script_lines[] = {
    "'use strict';\n",
    "const detail = document.getElementById('detail');\n",
    "for (const drawing of document.querySelectorAll('.drawing')) {\n",
    "  const view = drawing.querySelector('.view'), svg = view.querySelector('svg');\n",
    "  const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;\n",
    "  let scale = 1, from = null;\n",
    "  const zoom = (to, x, y) => {\n",
    "    const old = scale;\n",
    "    scale = Math.min(4, Math.max(0.05, to));\n",
    "    svg.setAttribute('width', width * scale);\n",
    "    svg.setAttribute('height', height * scale);\n",
    "    view.scrollLeft = (view.scrollLeft + x) * scale / old - x;\n",
    "    view.scrollTop = (view.scrollTop + y) * scale / old - y;\n",
    "  };\n",
    "  const fit = () => Math.min(1, view.clientWidth / width, view.clientHeight / height);\n",
    "  const controls = drawing.querySelector('.controls');\n",
    "  controls.hidden = false;\n",
    "  controls.addEventListener('click', event => {\n",
    "    const by = event.target.dataset.zoom, x = view.clientWidth / 2, y = view.clientHeight / 2;\n",
    "    if (by) zoom(by === 'fit' ? fit() : by === '0' ? 1 : scale * by, x, y);\n",
    "  });\n",
    "  view.addEventListener('keydown', event => {\n",
    "    const by = {'+': 1.25, '-': 0.8, '0': 1 / scale}[event.key];\n",
    "    if (by) zoom(scale * by, view.clientWidth / 2, view.clientHeight / 2);\n",
    "  });\n",
    "  view.addEventListener('wheel', event => {\n",
    "    if (!event.ctrlKey) return;\n",
    "    event.preventDefault();\n",
    "    const box = view.getBoundingClientRect();\n",
    "    zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);\n",
    "  }, {passive: false});\n",
    "  view.addEventListener('pointerdown', event => {\n",
    "    if (event.button === 0 ? !event.target.closest('a') : false)\n",
    "      from = {x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop};\n",
    "  });\n",
    "  window.addEventListener('pointerup', () => { from = null; });\n",
    "  view.addEventListener('pointermove', event => {\n",
    "    if (!from) return;\n",
    "    view.scrollLeft = from.x - event.clientX;\n",
    "    view.scrollTop = from.y - event.clientY;\n",
    "  });\n",
    "  const byNumber = new Map();\n",
    "  for (const node of svg.querySelectorAll('[data-n]')) byNumber.set(node.dataset.n, node);\n",
    "  const show = event => {\n",
    "    const node = event.target.closest('[data-n]');\n",
    "    for (const near of svg.querySelectorAll('.near')) near.classList.remove('near');\n",
    "    if (!node) return;\n",
    "    detail.textContent = node.querySelector('title').textContent;\n",
    "    node.classList.add('near');\n",
    "    const number = node.dataset.n;\n",
    "    for (const edge of svg.querySelectorAll(`[data-f=\"${number}\"],[data-t=\"${number}\"]`)) {\n",
    "      edge.classList.add('near');\n",
    "    }\n",
    "    for (const other of (node.dataset.d || '').split(' ')) byNumber.get(other)?.classList.add('near');\n",
    "  };\n",
    "  svg.addEventListener('pointerover', show);\n",
    "  svg.addEventListener('focusin', show);\n",
    "}\n",
};

/* The page --------------------------------------------------------------------------------------------------------- */

static const char *title_of(const rondo_report_model *m) {
  if (m->options->title != NULL && m->options->title[0] != '\0') return m->options->title;
  const char *name = m->graphs.items[0].graph->name;
  return name[0] == '\0' ? "Graph without a name" : name;
}

static void add_head(rondo_text *text, const rondo_report_model *m) {
  rondo_text_add(text,
                 "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                 "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, "
                 "initial-scale=1\"/>\n<meta name=\"generator\" content=\"Rondo " RONDO_VERSION_STRING
                 "\"/>\n<title>%s</title>\n<style>\n",
                 RONDO_REPORT_NAME(title_of(m)));
  rondo_text_add_lines(text, style_rules, sizeof style_rules / sizeof *style_rules);
  rondo_drawing_add_style(text);
  rondo_picture_add_style(text);
  rondo_text_add(text, "</style>\n</head>\n");
}

static rondo_status add_header(rondo_text *text, const rondo_report_model *m) {
  uint64_t fingerprint;
  RONDO_TRY(rondo_graph_fingerprint(m->graphs.items[0].graph, &fingerprint));
  rondo_text_add(text, "<header><h1>%s</h1><p>%s node%s, %s edge%s, fingerprint %016" PRIx64 "</p></header>\n",
                 RONDO_REPORT_NAME(title_of(m)), RONDO_GROUPED(m->node_count), m->node_count == 1 ? "" : "s",
                 RONDO_GROUPED(m->edge_count), m->edge_count == 1 ? "" : "s", fingerprint);
  return RONDO_OK;
}

static void add_navigation(rondo_text *text, const rondo_report_model *m) {
  rondo_text_add(text, "<nav aria-label=\"Sections\"><ul>");
  for (size_t i = 0; i < m->options->section_count; i++)
    rondo_text_add(text, "<li><a href=\"#host-%zu\">%s</a></li>", i, RONDO_REPORT_NAME(m->options->sections[i].title));
  rondo_text_add(text,
                 "<li><a href=\"#figures\">Figures</a></li>%s"
                 "<li><a href=\"#graph\">Graph</a></li><li><a href=\"#memory\">Memory</a></li>"
                 "<li><a href=\"#nodes\">Nodes</a></li></ul></nav>\n",
                 m->options->skip_verify ? "" : "<li><a href=\"#findings\">Findings</a></li>");
}

static void add_host_sections(rondo_text *text, const rondo_report_model *m) {
  for (size_t i = 0; i < m->options->section_count; i++) {
    const rondo_report_section *section = &m->options->sections[i];
    rondo_text_add(text, "<section id=\"host-%zu\"><h2>%s</h2>\n", i, RONDO_REPORT_NAME(section->title));
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
  rondo_text_add_lines(text, script_lines, sizeof script_lines / sizeof *script_lines);
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
  RONDO_TRY(rondo_check_call(call, "out_text", out_text));
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
