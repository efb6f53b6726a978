/* SPDX-License-Identifier: MIT
 * How a report looks and moves.
 */
#ifndef RONDO_RENDER_REPORT_PAGE_H
#define RONDO_RENDER_REPORT_PAGE_H

#include "render/report_parts.h"

/* CSS and script of the page. */
void rondo_report_add_style(rondo_text *text);
void rondo_report_add_script(rondo_text *text);

#endif
