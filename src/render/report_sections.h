/* SPDX-License-Identifier: MIT
 * The sections of a report's page but for the memory: figures, findings, drawings, nodes.
 */
#ifndef RONDO_RENDER_REPORT_SECTIONS_H
#define RONDO_RENDER_REPORT_SECTIONS_H

#include "render/report_parts.h"

/* Sections of the page. */
void rondo_report_add_figures(rondo_text *text, const rondo_report_model *model, const rondo_report_memory *memory);
RONDO_MUST_USE rondo_status rondo_report_add_findings(rondo_text *text, rondo_report_model *model);
RONDO_MUST_USE rondo_status rondo_report_add_drawings(rondo_text *text, const rondo_report_model *model);
void rondo_report_add_nodes(rondo_text *text, const rondo_report_model *model);

#endif
