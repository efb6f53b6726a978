/* SPDX-License-Identifier: MIT
 * The parts of a report's page. All are added to one text, which keeps the first error.
 */
#ifndef RONDO_RENDER_REPORT_PARTS_H
#define RONDO_RENDER_REPORT_PARTS_H

#include <rondo/plan.h>

#include "render/node_details.h"
#include "render/report_model.h"

/* Limits of a page. The page says how much it leaves out. */
#define RONDO_REPORT_MAX_DRAWN 20000
#define RONDO_REPORT_MAX_LISTED 2000
#define RONDO_REPORT_MAX_ALLOCATIONS 20000

/* A name, escaped and cut, in a buffer that exists until the end of the enclosing block. */
#define RONDO_REPORT_NAME_BYTES RONDO_DETAILS_HTML_NAME_BYTES
#define RONDO_REPORT_NAME(name)                                             \
  rondo_markup_text((char[RONDO_MARKUP_TEXT(RONDO_REPORT_NAME_BYTES)]){""}, \
                    RONDO_MARKUP_TEXT(RONDO_REPORT_NAME_BYTES), (name), RONDO_REPORT_NAME_BYTES)

/* One node --------------------------------------------------------------------------------------------------------- */

/* Adds the number of a node with those of the child nodes around it: "3.1". */
void rondo_report_add_number(rondo_text *text, const rondo_report_model *model, uint32_t graph, uint32_t slot);

/* Memory (report_memory.c) ----------------------------------------------------------------------------------------- */

/* The address and lifetime of each allocation, the address range that they occupy, and the minimum that they need. */
typedef struct rondo_report_memory {
  const rondo_report_model *model;
  rondo_plan_item *items; /* by shown allocation; lifetimes are entries of the list */
  size_t *offsets;        /* from the lowest address, without long unused ranges */
  const rondo_report_allocation **shown;
  size_t count, left_out, without_address;
  uint64_t sum;
  size_t peak, bound;
} rondo_report_memory;

/* Freed by rondo_report_memory_free, also after a failure. Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED (the sum of the bytes
 * overflows). */
RONDO_MUST_USE rondo_status rondo_report_memory_make(const rondo_report_model *model, rondo_report_memory *out);
void rondo_report_memory_free(rondo_report_memory *memory);
void rondo_report_add_memory(rondo_text *text, const rondo_report_memory *memory);

/* Other sections (report_sections.c) ------------------------------------------------------------------------------- */

void rondo_report_add_figures(rondo_text *text, const rondo_report_model *model, const rondo_report_memory *memory);
RONDO_MUST_USE rondo_status rondo_report_add_findings(rondo_text *text, rondo_report_model *model);
RONDO_MUST_USE rondo_status rondo_report_add_drawings(rondo_text *text, const rondo_report_model *model);
void rondo_report_add_nodes(rondo_text *text, const rondo_report_model *model);

#endif
