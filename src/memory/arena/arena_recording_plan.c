/* SPDX-License-Identifier: MIT
 * Planning recordings of an arena. The recordings of a path form one DAG: each has a first node before its own nodes
 * and a last node after them, where the lives of its slots begin and end. The last node comes before the first node of
 * the next recording. A single recording is a path of length one.
 */
#include "memory/arena/arena_recording_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/memory_check.h"

/* A plan with the outputs at the low end may be this many times as large as one without. */
#define LOW_END_WORTH 1.02

typedef struct path_plan {
  const rondo_arena *arena;
  const rondo_allocator *allocator;
  rondo_scratch scratch; /* of the pointers below */
  const rondo_path_part *parts;
  size_t part_count;
  const rondo_arena_block *blocks;
  size_t block_count;
  size_t high;      /* a peak up to this is acceptable */
  uint32_t *begins; /* the first node of each part, and the node count */
  uint32_t node_count;
  uint32_t *starts, *successors;
  bool is_line;
  RONDO_ARRAY(rondo_plan_item) items;         /* by part: its allocations, then its slots */
  RONDO_ARRAY(rondo_plan_obstacle) obstacles; /* the blocks; then, while outputs are at the low end, the outputs */
  RONDO_ARRAY(rondo_plan_item) others;        /* the items that are not outputs */
  RONDO_ARRAY(rondo_offset_range) taken;      /* bytes that an output cannot have */
  size_t *offsets, *low;                      /* by item: the best ones so far; those with the outputs at the low end */
  rondo_verify_order order;                   /* made on first use */
  rondo_plan_info info;
} path_plan;

/* Nodes ----------------------------------------------------------------------------------------------------------- */

static uint32_t node_of(const path_plan *path, size_t part, uint32_t node) { return path->begins[part] + 1 + node; }
static uint32_t end_of(const path_plan *path, size_t part) { return path->begins[part + 1] - 1; }

static rondo_status number_nodes(path_plan *path) {
  size_t nodes = 0, edges = 0;
  RONDO_TRY(rondo_scratch_take(&path->scratch, path->part_count + 1, sizeof *path->begins, &path->begins));
  for (size_t i = 0; i < path->part_count; i++) {
    const rondo_noted_lifetimes *noted = path->parts[i].lifetimes;
    path->begins[i] = (uint32_t)nodes;
    nodes += (size_t)noted->node_count + 2;
    edges += noted->starts[noted->node_count] + 2 * (size_t)noted->node_count + 2;
    if (nodes >= UINT32_MAX || edges >= UINT32_MAX)
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                        "a path of %zu nodes and %zu edges up to part %zu cannot be planned: at most %u are supported: "
                        "make fewer calls in a step",
                        nodes, edges, i, UINT32_MAX - 1);
  }
  path->begins[path->part_count] = (uint32_t)nodes;
  path->node_count = (uint32_t)nodes;
  RONDO_TRY(rondo_scratch_take(&path->scratch, nodes + 1, sizeof *path->starts, &path->starts));
  return rondo_scratch_take(&path->scratch, edges, sizeof *path->successors, &path->successors);
}

static void add_edge(path_plan *path, uint32_t to, uint32_t *edges) { path->successors[(*edges)++] = to; }

static rondo_status link_part(path_plan *path, size_t part, uint32_t *edges) {
  const rondo_noted_lifetimes *noted = path->parts[part].lifetimes;
  bool *led_to; /* the nodes that have predecessors */
  RONDO_TRY(rondo_scratch_take(&path->scratch, noted->node_count, sizeof *led_to, &led_to));
  for (uint32_t i = 0; i < noted->starts[noted->node_count]; i++) led_to[noted->successors[i]] = true;
  path->starts[path->begins[part]] = *edges;
  for (uint32_t i = 0; i < noted->node_count; i++)
    if (!led_to[i]) add_edge(path, node_of(path, part, i), edges);
  if (noted->node_count == 0) add_edge(path, end_of(path, part), edges);
  for (uint32_t i = 0; i < noted->node_count; i++) {
    path->starts[node_of(path, part, i)] = *edges;
    for (uint32_t k = noted->starts[i]; k < noted->starts[i + 1]; k++)
      add_edge(path, node_of(path, part, noted->successors[k]), edges);
    if (noted->starts[i] == noted->starts[i + 1]) add_edge(path, end_of(path, part), edges);
  }
  path->starts[end_of(path, part)] = *edges;
  if (part + 1 < path->part_count) add_edge(path, path->begins[part + 1], edges);
  return RONDO_OK;
}

static rondo_flat_edges edges_of(const path_plan *path) {
  return (rondo_flat_edges){
      .node_count = path->node_count, .successor_start = path->starts, .successors = path->successors};
}

static rondo_status link_nodes(path_plan *path) {
  uint32_t edges = 0;
  for (size_t i = 0; i < path->part_count; i++) RONDO_TRY(link_part(path, i, &edges));
  path->starts[path->node_count] = edges;
  const rondo_flat_edges flat = edges_of(path);
  path->is_line = rondo_lifetimes_is_line(&flat);
  return RONDO_OK;
}

static rondo_status comes_before(path_plan *path, uint32_t before, uint32_t after, bool *out) {
  const rondo_flat_edges flat = edges_of(path);
  rondo_order_pair pair = {.before = before, .after = after};
  *out = before < after;
  if (path->is_line || !*out) return RONDO_OK;
  if (path->order.allocator == NULL)
    RONDO_TRY(rondo_verify_order_make(path->allocator, &flat, RONDO_ORDER_WIDEST, &path->order));
  if (rondo_verify_order_decide(&path->order, before, after, out)) return RONDO_OK;
  RONDO_TRY(rondo_verify_order_check(&path->order, &pair, 1));
  *out = pair.ordered;
  return RONDO_OK;
}

/* Items ----------------------------------------------------------------------------------------------------------- */

static rondo_status push_item(path_plan *path, size_t bytes, uint32_t lower, uint32_t upper) {
  const rondo_plan_item item = {.bytes = bytes, .alignment = RONDO_BLOCK_ALIGNMENT, .lower = lower, .upper = upper};
  return rondo_array_push(path->allocator, &path->items, &item);
}

static rondo_status fail_end(size_t part, const rondo_path_end *end, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "part %zu of a path: the end of allocation %u before or in part %u %s", part, end->allocation,
                    end->part, what);
}

/* Sets the end of an output's life. `items` are the part's. */
static rondo_status apply_end(path_plan *path, size_t part, const rondo_path_end *end, rondo_plan_item *items) {
  if (end->allocation >= path->parts[part].lifetimes->lifetimes.count)
    return fail_end(part, end, "names no allocation of the part");
  if (end->part <= part || end->part > path->part_count || (end->part == path->part_count && end->key != 0))
    return fail_end(part, end, "does not come after the part");
  rondo_plan_item *item = &items[end->allocation];
  if (item->upper != RONDO_PLAN_FOREVER) return fail_end(part, end, "is not its first end");
  if (end->key == 0) {
    item->upper = end_of(path, end->part - 1);
    return RONDO_OK;
  }
  const rondo_noted_end *noted = rondo_noted_find_end(path->parts[end->part].lifetimes, end->key);
  if (noted == NULL) return fail_end(part, end, "has a key that the part's lifetimes do not contain");
  item->upper = node_of(path, end->part, noted->node);
  return RONDO_OK;
}

static rondo_status add_part(path_plan *path, size_t part) {
  const rondo_path_part *at = &path->parts[part];
  const size_t first = path->items.count;
  for (size_t i = 0; i < at->lifetimes->lifetimes.count; i++) {
    const rondo_lifetime *lifetime = &at->lifetimes->lifetimes.items[i];
    const bool stays = lifetime->freed == RONDO_PLAN_FOREVER;
    RONDO_TRY(push_item(path, lifetime->bytes, node_of(path, part, lifetime->alloc),
                        stays ? RONDO_PLAN_FOREVER : node_of(path, part, lifetime->freed)));
  }
  for (size_t i = 0; i < at->slot_count; i++) {
    size_t rounded;
    if (!rondo_pool_round(at->slots[i], &rounded))
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                        "part %zu of a path: slot %zu has %zu bytes, more than the address space: use smaller slots",
                        part, i, at->slots[i]);
    RONDO_TRY(push_item(path, rounded, path->begins[part], end_of(path, part)));
  }
  for (size_t i = 0; i < at->end_count; i++) RONDO_TRY(apply_end(path, part, &at->ends[i], path->items.items + first));
  return RONDO_OK;
}

/* Where the block's life ends. */
static uint32_t block_end(const path_plan *path, const rondo_arena_block *block) {
  if (block->key == 0 && block->part > 0 && block->part <= path->part_count) return end_of(path, block->part - 1);
  for (size_t i = block->part; i < path->part_count && block->key != 0; i++) {
    const rondo_noted_end *end = rondo_noted_find_end(path->parts[i].lifetimes, block->key);
    if (end != NULL) return node_of(path, i, end->node);
  }
  return RONDO_PLAN_FOREVER;
}

static rondo_status add_blocks(path_plan *path) {
  for (size_t i = 0; i < path->block_count; i++) {
    const rondo_arena_block *block = &path->blocks[i];
    rondo_plan_obstacle obstacle = {.upper = block_end(path, block)};
    RONDO_TRY(rondo_arena_check_block(path->arena, block, &obstacle.bytes));
    obstacle.offset = (size_t)((char *)block->address - rondo_arena_base(path->arena));
    RONDO_TRY(rondo_array_push(path->allocator, &path->obstacles, &obstacle));
  }
  return RONDO_OK;
}

static rondo_status fill(path_plan *path) {
  RONDO_TRY(number_nodes(path));
  RONDO_TRY(link_nodes(path));
  for (size_t i = 0; i < path->part_count; i++) RONDO_TRY(add_part(path, i));
  return add_blocks(path);
}

static rondo_status allocate_offsets(path_plan *path) {
  const size_t count = path->items.count;
  RONDO_TRY(rondo_scratch_take(&path->scratch, count, sizeof *path->offsets, &path->offsets));
  return rondo_scratch_take(&path->scratch, count, sizeof *path->low, &path->low);
}

static path_plan new_path(const rondo_arena *arena, const rondo_path_part *parts, size_t count) {
  const rondo_allocator *allocator = &arena->memory->allocator;
  return (path_plan){
      .arena = arena, .allocator = allocator, .scratch.allocator = allocator, .parts = parts, .part_count = count};
}

static void free_path(path_plan *path) {
  const rondo_allocator *allocator = path->allocator;
  if (path->order.allocator != NULL) rondo_verify_order_free(&path->order);
  rondo_scratch_free(&path->scratch);
  rondo_array_free(allocator, &path->items);
  rondo_array_free(allocator, &path->obstacles);
  rondo_array_free(allocator, &path->others);
  rondo_array_free(allocator, &path->taken);
}

/* Planning -------------------------------------------------------------------------------------------------------- */

/* The problem of the path's order. `order` must live as long as the problem. */
static rondo_plan_problem problem_of(const path_plan *path, const rondo_plan_item *items, size_t count,
                                     size_t obstacles, rondo_plan_order *order) {
  *order = (rondo_plan_order){
      .node_count = path->node_count, .successor_start = path->starts, .successors = path->successors};
  return (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT,
                              .items = items,
                              .count = count,
                              .obstacles = path->obstacles.items,
                              .obstacle_count = obstacles,
                              .order = path->is_line ? NULL : order};
}

static rondo_status make_plan(const path_plan *path, const rondo_plan_item *items, size_t count, size_t obstacles,
                              const rondo_plan_options *options, rondo_plan **out) {
  rondo_plan_options used = *options;
  if (used.allocator == NULL) used.allocator = path->allocator;
  rondo_plan_order order;
  const rondo_plan_problem problem = problem_of(path, items, count, obstacles, &order);
  return rondo_plan_make(&problem, &used, out);
}

/* Plans all items together; keeps the offsets if they are better. */
static rondo_status plan_together(path_plan *path, const rondo_plan_options *options) {
  rondo_plan *plan;
  rondo_plan_info info = {.struct_size = sizeof info};
  RONDO_TRY(make_plan(path, path->items.items, path->items.count, path->block_count, options, &plan));
  const rondo_status status = rondo_plan_get_info(plan, &info);
  const size_t bound = path->info.lower_bound > info.lower_bound ? path->info.lower_bound : info.lower_bound;
  if (status == RONDO_OK && info.peak < path->info.peak) {
    if (path->items.count > 0)
      memcpy(path->offsets, rondo_plan_offsets(plan), path->items.count * sizeof *path->offsets);
    path->info = info;
  }
  if (status == RONDO_OK) path->info.lower_bound = bound;
  rondo_plan_destroy(plan);
  return status;
}

/* The lowest gap between the taken ranges. */
static size_t lowest_gap(const path_plan *path, size_t bytes) {
  size_t cursor = 0;
  for (size_t i = 0; i < path->taken.count; i++) {
    const rondo_offset_range *at = &path->taken.items[i];
    if (at->begin > cursor && at->begin - cursor >= bytes) return cursor;
    if (at->end > cursor) cursor = at->end;
  }
  return cursor;
}

/* The bytes that an output cannot have: blocks that are not freed before it, and earlier outputs. */
static rondo_status collect_taken(path_plan *path, const rondo_plan_item *output) {
  path->taken.count = 0;
  for (size_t i = 0; i < path->obstacles.count; i++) {
    const rondo_plan_obstacle *at = &path->obstacles.items[i];
    const rondo_offset_range range = {.begin = at->offset, .end = at->offset + at->bytes};
    bool gone = false;
    if (at->upper != RONDO_PLAN_FOREVER) RONDO_TRY(comes_before(path, at->upper, output->lower, &gone));
    if (!gone) RONDO_TRY(rondo_array_push(path->allocator, &path->taken, &range));
  }
  if (path->taken.count > 1)
    qsort(path->taken.items, path->taken.count, sizeof *path->taken.items, rondo_offset_range_compare);
  return RONDO_OK;
}

static rondo_status place_output(path_plan *path, size_t index, size_t *inout_top) {
  const rondo_plan_item *item = &path->items.items[index];
  rondo_plan_obstacle obstacle = {.bytes = item->bytes, .lower = item->lower, .upper = RONDO_PLAN_FOREVER};
  RONDO_TRY(collect_taken(path, item));
  obstacle.offset = lowest_gap(path, item->bytes);
  path->low[index] = obstacle.offset;
  if (obstacle.offset + item->bytes > *inout_top) *inout_top = obstacle.offset + item->bytes;
  return rondo_array_push(path->allocator, &path->obstacles, &obstacle);
}

static bool outlives(const rondo_plan_item *item) { return item->upper == RONDO_PLAN_FOREVER; }

/* Places the outputs at the low end, up to *out_top. */
static rondo_status place_outputs(path_plan *path, size_t *out_top) {
  *out_top = 0;
  path->others.count = 0;
  for (size_t i = 0; i < path->items.count; i++) {
    const rondo_plan_item *item = &path->items.items[i];
    if (outlives(item))
      RONDO_TRY(place_output(path, i, out_top));
    else
      RONDO_TRY(rondo_array_push(path->allocator, &path->others, item));
  }
  return RONDO_OK;
}

/* Plans the other items around the outputs. Keeps the plan if its peak, including outputs, is less than *inout_peak. */
static rondo_status plan_around(path_plan *path, const rondo_plan_options *options, size_t *inout_peak) {
  rondo_plan *plan;
  size_t top, next = 0;
  RONDO_TRY(place_outputs(path, &top));
  RONDO_TRY(make_plan(path, path->others.items, path->others.count, path->obstacles.count, options, &plan));
  rondo_plan_info info = {.struct_size = sizeof info};
  const rondo_status status = rondo_plan_get_info(plan, &info);
  const size_t *offsets = rondo_plan_offsets(plan);
  const size_t peak = info.peak > top ? info.peak : top;
  for (size_t i = 0; i < path->items.count && peak < *inout_peak; i++)
    if (!outlives(&path->items.items[i])) path->low[i] = offsets[next++];
  if (peak < *inout_peak) *inout_peak = peak;
  rondo_plan_destroy(plan);
  path->obstacles.count = path->block_count;
  return status;
}

static void take_low(path_plan *path, size_t peak) {
  size_t *before = path->offsets;
  path->offsets = path->low;
  path->low = before;
  path->info.optimal = peak == path->info.lower_bound;
  path->info.peak = peak;
}

/* The bytes that other recordings of the arena need: a plan up to this size is good enough. */
static size_t high_of(const rondo_arena *arena) {
  rondo_arena_info info;
  rondo_arena_get_info(arena, &info);
  return info.high;
}

static size_t with_gap(const path_plan *path, const rondo_plan_options *options) {
  const double gap = options->gap > 0 ? options->gap : 1.005;
  return (size_t)((double)path->info.lower_bound * gap);
}

static void add_life(size_t *changes, size_t bytes, uint32_t lower, uint32_t upper) {
  changes[lower] += bytes;
  if (upper != RONDO_PLAN_FOREVER) changes[upper] -= bytes;
}

/* For nodes that run in one order only: the maximum number of bytes that are live at the same time. */
static rondo_status find_most_live(path_plan *path, size_t *out) {
  size_t *changes, live = 0;
  *out = 0;
  RONDO_TRY(rondo_scratch_take(&path->scratch, path->node_count, sizeof *changes, &changes));
  for (size_t i = 0; i < path->items.count; i++)
    add_life(changes, path->items.items[i].bytes, path->items.items[i].lower, path->items.items[i].upper);
  for (size_t i = 0; i < path->block_count; i++)
    add_life(changes, path->obstacles.items[i].bytes, 0, path->obstacles.items[i].upper);
  for (uint32_t i = 0; i < path->node_count; i++) {
    live += changes[i];
    if (live > *out) *out = live;
  }
  return RONDO_OK;
}

/* Finds a lower bound. For a DAG, planning finds the bound, so this also makes a plan. */
static rondo_status find_bound(path_plan *path, const rondo_plan_options *quick) {
  path->info = (rondo_plan_info){.struct_size = sizeof path->info,
                                 .count = path->items.count,
                                 .peak = SIZE_MAX,
                                 .alignment = RONDO_BLOCK_ALIGNMENT,
                                 .method = "outputs first"};
  for (size_t i = 0; i < path->items.count; i++) path->info.sum += path->items.items[i].bytes;
  return path->is_line ? find_most_live(path, &path->info.lower_bound) : plan_together(path, quick);
}

/* Tries the fastest methods first, until a plan is good enough. A plan with the outputs at the low end may be `worth`
 * times as large as one without. */
static rondo_status solve(path_plan *path, const rondo_plan_options *options, double worth) {
  rondo_plan_options quick = *options, around = *options;
  size_t peak = SIZE_MAX;
  quick.fast_only = true;
  RONDO_TRY(find_bound(path, &quick));
  const size_t good = with_gap(path, options), enough = path->high > good ? path->high : good;
  if (around.capacity < enough) around.capacity = enough;
  RONDO_TRY(plan_around(path, &quick, &peak));
  if (peak > enough) RONDO_TRY(plan_around(path, &around, &peak));
  if (peak > enough && path->is_line) RONDO_TRY(plan_together(path, &quick));
  if (peak > enough && path->info.peak > good) RONDO_TRY(plan_together(path, options));
  if (peak <= enough || (double)peak <= (double)path->info.peak * worth) take_low(path, peak);
  return RONDO_OK;
}

/* Asserts that the offsets are aligned and within the plan's peak. For few items, also that those that are live at the
 * same time do not overlap each other or a block. */
static void check_path(const path_plan *path) {
#ifndef NDEBUG
  for (size_t i = 0; i < path->items.count; i++) {
    assert(path->offsets[i] % RONDO_BLOCK_ALIGNMENT == 0);
    assert(path->items.items[i].bytes <= path->info.peak);
    assert(path->offsets[i] <= path->info.peak - path->items.items[i].bytes);
  }
  if (path->items.count > RONDO_CHECKED_MEMBERS) return;
  rondo_plan_order order;
  const rondo_plan_problem problem = problem_of(path, path->items.items, path->items.count, path->block_count, &order);
  const rondo_status status = rondo_plan_check(path->allocator, &problem, path->offsets);
  assert(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
#else
  (void)path;
#endif
}

/* Adds the blocks and slots of a recording's space, as items that may be anywhere. */
static rondo_status add_held(path_plan *path, const rondo_address_space *space) {
  for (size_t i = 0; i < space->held_count; i++) {
    const rondo_graph_allocation *record = space->allocations.items[i];
    const rondo_arena_block block = {.key = record->key};
    const uint32_t end = i < space->block_count ? block_end(path, &block) : end_of(path, 0);
    RONDO_TRY(push_item(path, rondo_graph_allocation_rounded(record), 0, end));
  }
  return RONDO_OK;
}

static rondo_status find_least(path_plan *path, const rondo_address_space *space, size_t *out) {
  const rondo_plan_options quick = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true};
  rondo_plan_info info = {.struct_size = sizeof info};
  rondo_plan *plan;
  RONDO_TRY(fill(path));
  RONDO_TRY(add_held(path, space));
  if (path->is_line) return find_most_live(path, out);
  RONDO_TRY(make_plan(path, path->items.items, path->items.count, 0, &quick, &plan));
  const rondo_status status = rondo_plan_get_info(plan, &info);
  *out = info.lower_bound;
  rondo_plan_destroy(plan);
  return status;
}

rondo_status rondo_arena_find_least(const rondo_address_space *space, const rondo_noted_lifetimes *noted, size_t *out) {
  const rondo_path_part part = {.lifetimes = noted};
  path_plan path = new_path(space->arena, &part, 1);
  *out = 0;
  const rondo_status status = find_least(&path, space, out);
  free_path(&path);
  return status;
}

/* Profiles --------------------------------------------------------------------------------------------------------- */

static rondo_status make_profiles(const path_plan *path, rondo_path_part *parts) {
  const size_t *offsets = path->offsets;
  for (size_t i = 0; i < path->part_count; i++) {
    const rondo_path_part *at = &parts[i];
    RONDO_TRY(rondo_profile_build(at->lifetimes, at->slots, at->slot_count, offsets, &path->info, &parts[i].profile));
    if (offsets != NULL) offsets += at->lifetimes->lifetimes.count + at->slot_count; /* NULL: nothing is planned */
  }
  return RONDO_OK;
}

static rondo_status plan_parts(const rondo_arena *arena, const rondo_arena_block *blocks, size_t block_count,
                               rondo_path_part *parts, size_t count, const rondo_plan_options *options, bool is_path,
                               rondo_plan_info *out_info) {
  const rondo_plan_options defaults = {RONDO_PLAN_OPTIONS_INIT};
  path_plan path = new_path(arena, parts, count);
  const double worth = is_path ? 1 : LOW_END_WORTH;
  path.blocks = blocks;
  path.block_count = block_count;
  path.high = is_path ? 0 : high_of(arena);
  for (size_t i = 0; i < count; i++) parts[i].profile = NULL;
  rondo_status status = fill(&path);
  if (status == RONDO_OK) status = allocate_offsets(&path);
  if (status == RONDO_OK) status = solve(&path, options == NULL ? &defaults : options, worth);
  if (status == RONDO_OK) check_path(&path);
  if (status == RONDO_OK) status = make_profiles(&path, parts);
  if (status == RONDO_OK) atomic_fetch_add_explicit(&arena->memory->profiles, count, memory_order_relaxed);
  if (status == RONDO_OK && out_info != NULL) *out_info = path.info;
  free_path(&path);
  for (size_t i = 0; i < count && status != RONDO_OK; i++) {
    if (parts[i].profile != NULL) rondo_profile_release(parts[i].profile);
    parts[i].profile = NULL;
  }
  return status;
}

rondo_status rondo_arena_plan_path(rondo_arena *arena, const rondo_arena_block *blocks, size_t block_count,
                                   rondo_path_part *parts, size_t count, const rondo_plan_options *plan,
                                   rondo_plan_info *out_info) {
  return plan_parts(arena, blocks, block_count, parts, count, plan, true, out_info);
}

rondo_status rondo_arena_plan_setting(const rondo_arena_setting *setting, rondo_profile **out) {
  const rondo_arena *arena = setting->arena;
  const rondo_allocator *allocator = &arena->memory->allocator;
  size_t *slots;
  *out = NULL;
  if (arena->memory->device->ops->guard != NULL) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, setting->slot_count, sizeof *slots, &slots));
  for (size_t i = 0; i < setting->slot_count; i++) slots[i] = setting->slots[i].bytes;
  rondo_path_part part = {.lifetimes = setting->lifetimes, .slots = slots, .slot_count = setting->slot_count};
  const rondo_status status =
      plan_parts(arena, setting->blocks, setting->block_count, &part, 1, setting->plan, false, NULL);
  rondo_release(allocator, slots, setting->slot_count, sizeof *slots);
  *out = part.profile;
  return status;
}
