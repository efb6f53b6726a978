/* SPDX-License-Identifier: MIT
 * The memory of a report: which allocations lie where and live when, how much of the address space they take
 * together, and what they would need at least.
 */
#ifndef RONDO_RENDER_REPORT_MEMORY_H
#define RONDO_RENDER_REPORT_MEMORY_H

#include "render/report_parts.h"

/* Freed by rondo_report_memory_free, also after a failure. Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED (bytes that do not add
 * up). */
RONDO_MUST_USE rondo_status rondo_report_memory_make(const rondo_report_model *model, rondo_report_memory *out);
void rondo_report_memory_free(rondo_report_memory *memory);
void rondo_report_add_memory(rondo_text *text, const rondo_report_memory *memory);

#endif
