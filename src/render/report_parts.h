/* SPDX-License-Identifier: MIT
 * The parts of a report's page, each written into one growing text; errors are the text's.
 */
#ifndef RONDO_RENDER_REPORT_PARTS_H
#define RONDO_RENDER_REPORT_PARTS_H

#include <rondo/plan.h>

#include "render/report_model.h"

/* What a page holds at most; the rest is left out, and that is said. */
#define RONDO_REPORT_MOST_DRAWN 20000
#define RONDO_REPORT_MOST_LISTED 2000
#define RONDO_REPORT_MOST_ALLOCATIONS 20000
#define RONDO_REPORT_NAME_BYTES 120

/* "kernel saxpy (node 3.1)", escaped, and after a colon its parameters, dependencies and time. `brief` leaves pointers
 * out. */
void rondo_report_add_node(rondo_text *text, const rondo_report_model *model, uint32_t place, bool brief);

/* The same without a name: "4 x 1 x 1 blocks, reads 0x7f00". */
void rondo_report_add_parameters(rondo_text *text, const rondo_report_model *model, uint32_t place, bool brief);

/* "3.1": the numbers from the outermost graph on. */
void rondo_report_add_number(rondo_text *text, const rondo_report_model *model, uint32_t graph, uint32_t slot);

/* "12.3 \xC2\xB5s", "4.56 ms". */
void rondo_report_add_time(rondo_text *text, double us);

/* What the memory map shows. */
typedef struct rondo_report_memory {
  const rondo_report_model *model;
  rondo_plan_item *items; /* one an allocation that is shown, lifetimes as places in the list */
  size_t *offsets;        /* from the lowest address on; far parts of the address space put together */
  const rondo_report_allocation **shown;
  size_t count, left_out, without_address;
  uint64_t sum;
  size_t peak, bound;
} rondo_report_memory;

/* Freed by rondo_report_memory_free, also after a failure. Errors: OUT_OF_MEMORY, LIMIT_EXCEEDED (bytes that do not add
 * up). */
RONDO_MUST_USE rondo_status rondo_report_memory_make(const rondo_report_model *model, rondo_report_memory *out);
void rondo_report_memory_free(rondo_report_memory *memory);

/* Sections of the page. */
void rondo_report_add_figures(rondo_text *text, const rondo_report_model *model, const rondo_report_memory *memory);
RONDO_MUST_USE rondo_status rondo_report_add_findings(rondo_text *text, rondo_report_model *model);
RONDO_MUST_USE rondo_status rondo_report_add_drawings(rondo_text *text, const rondo_report_model *model);
void rondo_report_add_memory(rondo_text *text, const rondo_report_memory *memory);
void rondo_report_add_nodes(rondo_text *text, const rondo_report_model *model);

/* CSS and script of the page. */
void rondo_report_add_style(rondo_text *text);
void rondo_report_add_script(rondo_text *text);

#endif
