/* SPDX-License-Identifier: MIT
 * Plans for an arena: the allocations and slots of recordings, around the blocks that are live when they begin.
 *
 * Outputs that outlive the plan are packed at the low end, in the order of their allocation, if the peak grows by
 * little or nothing. The rest is planned around them, and may use their bytes before they are allocated. Otherwise
 * everything is planned together.
 */
#ifndef RONDO_MEMORY_ARENA_ARENA_RECORDING_PLAN_H
#define RONDO_MEMORY_ARENA_ARENA_RECORDING_PLAN_H

#include "memory/arena/arena.h"
#include "memory/graph_memory/address_space.h"
#include "memory/profile/memory_profile.h"

/* Plans a recording that begins with the setting and has its lifetimes. *out is NULL on a guarded device, which follows
 * no plan. OUT_OF_MEMORY, those of rondo_plan_make. */
RONDO_MUST_USE rondo_status rondo_arena_plan_setting(const rondo_arena_setting *setting, rondo_profile **out);

/* The maximum number of bytes that are live at the same time in a recording. */
RONDO_MUST_USE rondo_status rondo_arena_find_least(const rondo_address_space *space, const rondo_noted_lifetimes *noted,
                                                   size_t *out);

/* Plans the recordings of a path, which run one after another, together. `blocks` are live when it begins. They stay
 * live unless their `part`, or an end with their key in a part's lifetimes, ends them. plan may be NULL; out_info may
 * be NULL. On failure all profiles are NULL: INVALID_ARGUMENT naming the part and end, those of rondo_plan_make,
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_arena_plan_path(rondo_arena *arena, const rondo_arena_block *blocks,
                                                  size_t block_count, rondo_path_part *parts, size_t count,
                                                  const rondo_plan_options *plan, rondo_plan_info *out_info);

#endif
