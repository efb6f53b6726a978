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

#endif
