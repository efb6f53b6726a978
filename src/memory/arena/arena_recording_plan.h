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

/* Plans the recordings of a path together, as they run one after another, to need as little as they can. `blocks` live
 * when it begins and stay, but for those that a part is named for, or of which a part's lifetimes have an end with
 * their key. plan may be NULL; *out_info (may be NULL) is the plan's. On failure all profiles are NULL:
 * INVALID_ARGUMENT naming the part and end, those of rondo_plan_make, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_arena_plan_path(rondo_arena *arena, const rondo_arena_block *blocks,
                                                  size_t block_count, rondo_path_part *parts, size_t count,
                                                  const rondo_plan_options *plan, rondo_plan_info *out_info);

#endif
