/* SPDX-License-Identifier: MIT
 * Areas: making them, and the beginnings and ends of their lifetimes.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_ALLOCATION_H
#define RONDO_DEVICE_CHECK_CHECK_ALLOCATION_H

#include "device/check/check.h"

/* Areas (check_allocation.c). What is called with `edit` held says so. */
RONDO_MUST_USE rondo_status check_area_make(check_state *check, size_t bytes, const char *name, void **out_address);
RONDO_MUST_USE rondo_status check_area_note(check_state *check, char *address, size_t bytes, const char *name);

/* A lifetime begins: pages are there, poisoned, with canaries around the area; or ends. Found damage comes out by
 * check_fail. */
RONDO_MUST_USE rondo_status check_area_begin(check_state *check, char *address);
RONDO_MUST_USE rondo_status check_area_end(check_state *check, char *address);

/* With `edit` held: lets it be accessed or not; its contents stay when its memory does. */
RONDO_MUST_USE rondo_status check_area_open(check_state *check, check_area *area, check_life life);
void check_area_shut(check_state *check, check_area *area, check_life life);

/* What begins at the address, if it lives, may be written or not. */
void check_area_set_read_only(check_state *check, const char *address, bool read_only);

/* Takes areas of graphs that touch the range out of the tables. */
void check_areas_forget(check_state *check, const char *begin, const char *end);
void check_area_set_canaries(const check_area *area);

/* With `edit` held: a byte around the area that is not the canary's any more, or NULL. */
const char *check_area_damage(const check_area *area);

/* With `edit` held: OUT_OF_RANGE when there is damage, which is mended; `who` did or saw it. */
RONDO_MUST_USE rondo_status check_area_inspect(check_area *area, uint32_t node, const char *who);

/* All live areas. */
RONDO_MUST_USE rondo_status check_areas_inspect(check_state *check, const char *who);
check_area *check_area_around(const check_state *check, const void *address); /* with `edit` held */

#endif
