/* SPDX-License-Identifier: MIT
 * Areas: making them, and the beginnings and ends of their lifetimes.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_ALLOCATION_H
#define RONDO_DEVICE_CHECK_CHECK_ALLOCATION_H

#include "device/check/check.h"

/* Call these without `edit` held, unless a comment says otherwise. */
RONDO_MUST_USE rondo_status check_area_make(check_state *check, size_t bytes, const char *name, void **out_address);
RONDO_MUST_USE rondo_status check_area_note(check_state *check, char *address, size_t bytes, const char *name);

/* Begins a lifetime, with poison in the area and canaries around it; or ends it. Returns damage that is found. */
RONDO_MUST_USE rondo_status check_area_begin(check_state *check, char *address);
RONDO_MUST_USE rondo_status check_area_end(check_state *check, char *address);

/* With `edit` held: allow access to the area, or forbid it. The contents stay if the memory does. */
RONDO_MUST_USE rondo_status check_area_open(check_state *check, check_area *area, check_life life);
void check_area_shut(check_state *check, check_area *area, check_life life);

/* Whether a live area that begins at the address may be written. */
void check_area_set_read_only(check_state *check, const char *address, bool read_only);

/* Removes areas of graphs that overlap the range. */
void check_areas_forget(check_state *check, const char *begin, const char *end);
void check_area_set_canaries(const check_area *area);

/* With `edit` held: a damaged canary around the area, or NULL. */
const char *check_area_damage(const check_area *area);

/* With `edit` held: OUT_OF_RANGE if there is damage, which is repaired. `who` caused or found it. */
RONDO_MUST_USE rondo_status check_area_inspect(check_area *area, uint32_t node, const char *who);

/* All live areas. */
RONDO_MUST_USE rondo_status check_areas_inspect(check_state *check, const char *who);
check_area *check_area_around(const check_state *check, const void *address); /* with `edit` held */

#endif
