/* SPDX-License-Identifier: MIT
 * A packing problem prepared for the exact searches: time cut into sections (plan/interval/sections.h), and for each
 * section the items that begin, end and live there. Items without bytes are left out.
 *
 * Never changes once made, so all searching threads share one. Memory: one entry for each pair of an item and a section
 * that it lives in, at most RONDO_SEARCH_MAX_COVER.
 */
#ifndef RONDO_PLAN_SEARCH_SEARCH_SECTIONS_H
#define RONDO_PLAN_SEARCH_SEARCH_SECTIONS_H

#include "base/allocation.h"
#include "plan/interval/sections.h"

#define RONDO_SEARCH_NONE UINT32_MAX
#define RONDO_SEARCH_MAX_ITEMS (UINT32_C(1) << 14)
#define RONDO_SEARCH_MAX_COVER (UINT32_C(1) << 21)
#define RONDO_SEARCH_MAX_BYTES (UINT64_C(1) << 62) /* of all items, so that no offset overflows */

typedef struct rondo_search_sections {
  uint32_t item_count, section_count;
  uint32_t *given;       /* of each item: its number in the caller's list */
  rondo_box *items;      /* over sections */
  uint64_t *least;       /* of each item: bytes of the smallest item that overlaps it; 1 if there is none */
  uint32_t *twin;        /* of each item: the one before it with the same bytes and sections, or RONDO_SEARCH_NONE */
  uint32_t *cover_index; /* of each item: the sum of sections of the items before it */
  uint64_t *load;        /* of each section: live bytes */
  uint32_t *begin_start; /* the items that begin in section s are begins[begin_start[s] .. begin_start[s + 1]) */
  uint32_t *begins;
  uint32_t *end_start; /* items with upper == s, for s up to section_count, likewise */
  uint32_t *ends;
  uint32_t *cover_start; /* items that live in section s, likewise */
  uint32_t *cover;
  uint32_t cover_count;
  uint64_t max_load; /* the lower bound */
} rondo_search_sections;

/* *out_made is false if the problem exceeds the limits above or has no items with bytes. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_search_sections_make(rondo_scratch *scratch, const rondo_box *items, size_t count,
                                                       rondo_search_sections *out, bool *out_made);

#endif
