/* SPDX-License-Identifier: MIT
 * Plans for an arena: what recordings allocate, and their slots, around the blocks that live when they begin.
 *
 * What outlives all that is planned stands at the low end, packed in the order of making, if that costs next to
 * nothing; the rest is planned around it, also on its bytes before it is allocated. Otherwise all is planned alike.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_RECORDING_PLAN_H
#define RONDO_MEMORY_ARENA_ARENA_RECORDING_PLAN_H

#include "memory/arena/arena.h"
#include "memory/graph_memory/address_space.h"
#include "memory/profile/memory_profile.h"

/* The plan of a recording that begins with the setting, of its lifetimes; NULL on a guarded device, which follows none.
 * OUT_OF_MEMORY, those of rondo_plan_make. */
RONDO_MUST_USE rondo_status rondo_arena_plan_setting(const rondo_arena_setting *setting, rondo_profile **out);

/* The most bytes that live at once in a recording, wherever they stand. */
RONDO_MUST_USE rondo_status rondo_arena_find_least(const rondo_address_space *space, const rondo_noted_lifetimes *noted,
                                                   size_t *out);

#endif
