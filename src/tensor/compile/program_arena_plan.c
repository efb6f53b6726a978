/* SPDX-License-Identifier: MIT
 * Live ranges and plans. In the order, a live range ends with the last use. In a graph with branches it ends with the
 * use that all other uses come before; if there is none, at the first operation that comes after all uses. A kernel of
 * several operations starts with the first of them, and what they use is live until the last one ends.
 *
 * A plan for branches has one node for the start of the run and three for each position: a gate that opens when all
 * predecessors have ended, the beginning, where results and the workspace become live, and the end.
 */
#include "tensor/compile/program_arena_plan.h"

#include <assert.h>

#include "base/allocation.h"
#include "plan/partial_order/order_bound.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

/* Branches may take this much of the order's memory, in hundredths. */
#define MAX_BRANCH_BYTES 110

/* Search steps where the fast path leaves a gap: of one plan, and of all plans for branches. A step takes about a
 * microsecond, so plans for branches of small arenas, of which little can be saved, get fewer steps. */
#define SEARCH_STEPS 20000
#define BRANCH_STEPS 60000
#define LEAST_BRANCH_STEPS 2000
#define BYTES_OF_STEP 64 /* of the order's memory */

/* Where an earlier program of this structure has been searched for a plan. */
#define FEW_STEPS 1000

/* A plan is searched until its peak is so near the bound, and taken from an earlier one if it is nearly as near. */
#define GAP 1.005
#define EARLIER_GAP 1.02

typedef struct arena_item {
  rondo_location *location;
  const uint32_t *users; /* positions, rising; NULL: none */
  uint32_t user_count;
  size_t bytes;
  bool from_start, to_end; /* it is live from the start of the run, and until its end */
} arena_item;

typedef struct arena {
  const rondo_program *program;
  rondo_scratch scratch;
  const rondo_staged_list *staged;
  rondo_layout *layout;
  arena_item *items;
  size_t count, capacity;
  rondo_plan_item *planned;          /* by item */
  bool *is_output;                   /* by value */
  const bool *waits;                 /* by position: whether it is a collective or waits for one; NULL: none is */
  rondo_earlier_plans *plans;        /* of earlier programs; NULL: none */
  const rondo_earlier_plan *earlier; /* the one of this structure; NULL: none */
  rondo_earlier_plan made;           /* what is decided now, for later ones */
} arena;

/* Items ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_item(arena *a, uint32_t number, rondo_location *location, size_t bytes, bool from_start,
                             bool to_end) {
  const rondo_edges *users = &a->layout->users;
  const uint32_t user_count = users->start[number + 1] - users->start[number];
  assert(a->count < a->capacity && bytes > 0);
  arena_item *item = &a->items[a->count++];
  *item = (arena_item){.location = location,
                       .users = user_count == 0 ? NULL : users->items + users->start[number],
                       .user_count = user_count,
                       .from_start = from_start,
                       .to_end = to_end};
  if (rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &item->bytes)) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "a value of %s has more bytes than fit in %zu bits: make it smaller", a->program->label,
                    8 * sizeof(size_t));
}

/* An item for each input, and for each result that has memory and that an operation uses. */
static rondo_status list_values(arena *a) {
  const rondo_edges *users = &a->layout->users;
  for (size_t i = 0; i < a->program->outputs.count; i++)
    a->is_output[a->layout->schedule.owners[a->program->outputs.items[i].value]] = true;
  for (uint32_t i = 0; i < a->layout->schedule.values; i++) {
    const rondo_program_value *value = &a->program->values.items[i];
    const bool is_input = value->kind == RONDO_VALUE_INPUT;
    const bool is_used = users->start[i] < users->start[i + 1] && rondo_value_is_made(a->program, i);
    if (!is_input && !(value->kind == RONDO_VALUE_RESULT && is_used)) continue;
    const bool is_written = is_input && rondo_staged_how(a->staged, value->name) == RONDO_STAGING_SLOT;
    RONDO_TRY(add_item(a, i, &a->layout->locations[i], rondo_shape_bytes(&value->shape), is_input,
                       is_written || a->is_output[i]));
  }
  return RONDO_OK;
}

static rondo_status list_workspaces(arena *a, const size_t *workspaces) {
  for (uint32_t p = 0; p < a->layout->schedule.count; p++) {
    const uint32_t number = a->layout->schedule.order[p];
    if (workspaces[number] == 0) continue;
    RONDO_TRY(add_item(a, (uint32_t)a->layout->schedule.values + number, &a->layout->workspaces[number],
                       workspaces[number], false, false));
  }
  return RONDO_OK;
}

static rondo_status list_users(arena *a, const size_t *workspaces) {
  const rondo_schedule *schedule = &a->layout->schedule;
  rondo_edges touched;
  rondo_status status =
      rondo_schedule_touched(a->program, schedule, schedule->order, schedule->count, workspaces, &touched);
  if (status == RONDO_OK)
    status = rondo_edges_transpose(a->scratch.allocator, &touched, (uint32_t)(schedule->values + schedule->operations),
                                   &a->layout->users);
  rondo_edges_free(a->scratch.allocator, &touched);
  return status;
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

static uint64_t steps_after(const rondo_earlier_plan *earlier) { return earlier == NULL ? SEARCH_STEPS : FEW_STEPS; }

/* `start`: the offsets of an earlier plan, whose gap was `gap`; NULL: none. */
static rondo_status run_planner(arena *a, const rondo_plan_order *order, uint64_t steps, const size_t *start,
                                double gap, rondo_plan **out_plan, rondo_plan_info *out_info) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = a->planned, .count = a->count, .order = order};
  const double enough = start == NULL || gap * EARLIER_GAP < GAP ? GAP : gap * EARLIER_GAP;
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = steps, .gap = enough, .start = start,
                                      .allocator = a->scratch.allocator};
  *out_info = (rondo_plan_info){.struct_size = sizeof *out_info};
  RONDO_TRY(rondo_plan_make(&problem, &options, out_plan));
  RONDO_TRY(rondo_plan_get_info(*out_plan, out_info));
  a->layout->reused_plans += start != NULL && out_info->steps == 0;
  return RONDO_OK;
}

/* Copies the offsets of a plan for later programs. The gap stays that of a search, however often it is reused. */
static rondo_status keep_offsets(const arena *a, const rondo_plan *plan, const rondo_plan_info *info,
                                 double earlier_gap, size_t **out_offsets, double *out_gap) {
  const double gap = (double)info->peak / (double)info->lower_bound;
  if (a->plans == NULL) return RONDO_OK;
  *out_gap = earlier_gap > 0 && earlier_gap < gap ? earlier_gap : gap;
  return rondo_allocate_copy(&a->plans->allocator, rondo_plan_offsets(plan), a->count, sizeof **out_offsets,
                             out_offsets);
}

/* Whether nothing says when it dies. */
static bool is_endless(const arena_item *item) { return item->to_end || item->user_count == 0; }

static uint32_t last_position(const arena *a, const arena_item *item) {
  const rondo_schedule *schedule = &a->layout->schedule;
  return is_endless(item) ? schedule->count : rondo_kernel_last(schedule, item->users[item->user_count - 1]);
}

static uint32_t first_position(const arena *a, const arena_item *item) {
  return item->from_start ? 0 : rondo_kernel_first(&a->layout->schedule, item->users[0]);
}

/* Places the items as planned. The live range that is kept is that in the order. */
static void take_plan(arena *a, const rondo_plan *plan, const rondo_plan_info *info, bool has_branches) {
  const size_t *offsets = rondo_plan_offsets(plan);
  for (size_t i = 0; i < a->count; i++) {
    *a->items[i].location = (rondo_location){.block = RONDO_BLOCK_ARENA,
                                             .offset = offsets[i],
                                             .bytes = a->items[i].bytes,
                                             .first = first_position(a, &a->items[i]),
                                             .last = last_position(a, &a->items[i])};
  }
  a->layout->has_branches = has_branches;
  a->layout->arena_bytes = info->peak;
  a->layout->arena_bound = info->lower_bound;
  a->layout->arena_sum = info->sum;
}

static rondo_status plan_order(arena *a) {
  for (size_t i = 0; i < a->count; i++) {
    a->planned[i] = (rondo_plan_item){.bytes = a->items[i].bytes,
                                      .alignment = RONDO_VALUE_ALIGNMENT,
                                      .lower = first_position(a, &a->items[i]),
                                      .upper = last_position(a, &a->items[i]) + 1};
  }
  rondo_plan *plan = NULL;
  rondo_plan_info info;
  const rondo_earlier_plan *earlier = a->earlier;
  const double gap = earlier == NULL ? 0 : earlier->gap;
  rondo_status status =
      run_planner(a, NULL, steps_after(earlier), earlier == NULL ? NULL : earlier->offsets, gap, &plan, &info);
  if (status == RONDO_OK) take_plan(a, plan, &info, false);
  if (status == RONDO_OK) a->layout->straight_bytes = info.peak;
  if (status == RONDO_OK && a->count > 0) status = keep_offsets(a, plan, &info, gap, &a->made.offsets, &a->made.gap);
  rondo_plan_destroy(plan);
  return status;
}

/* Branches --------------------------------------------------------------------------------------------------------- */

#define START_NODE 0

static uint32_t gate_of(uint32_t position) { return 1 + 3 * position; }
static uint32_t beginning_of(uint32_t position) { return 2 + 3 * position; }
static uint32_t end_of(uint32_t position) { return 3 + 3 * position; }

/* A trial of branches: edges, and what follows from them. */
typedef struct trial {
  rondo_edges before, after;
  rondo_ancestors ancestors;
  rondo_scratch scratch;
  uint32_t *successor_start, *successors;
  const rondo_earlier_plan *earlier; /* that decides how it is planned; NULL: none */
} trial;

static bool all_come_before(const arena *a, const trial *t, const arena_item *item, uint32_t position) {
  for (uint32_t u = item->user_count; u > 0; u--) {
    const uint32_t user = rondo_kernel_last(&a->layout->schedule, item->users[u - 1]);
    if (user != position && !rondo_comes_before(&t->ancestors, user, position)) return false;
  }
  return true;
}

/* The node at which the item dies. */
static uint32_t find_end(const arena *a, const trial *t, const arena_item *item) {
  if (is_endless(item)) return RONDO_PLAN_FOREVER;
  const uint32_t last = last_position(a, item);
  if (all_come_before(a, t, item, last)) return end_of(last);
  for (uint32_t p = last + 1; p < a->layout->schedule.count; p++) {
    if (all_come_before(a, t, item, p)) return gate_of(p);
  }
  return RONDO_PLAN_FOREVER;
}

static void list_live_ranges(arena *a, const trial *t) {
  for (size_t i = 0; i < a->count; i++) {
    const arena_item *item = &a->items[i];
    a->planned[i] = (rondo_plan_item){.bytes = item->bytes,
                                      .alignment = RONDO_VALUE_ALIGNMENT,
                                      .lower = item->from_start ? START_NODE : beginning_of(first_position(a, item)),
                                      .upper = find_end(a, t, item)};
  }
}

static bool is_root(const trial *t, uint32_t position) {
  return t->before.start[position] == t->before.start[position + 1];
}

/* The successors of all nodes. The start is followed by the gates without predecessors, a gate by its beginning, a
 * beginning by its end, and an end by the gates that wait for it. */
static void list_successors(trial *t) {
  const rondo_edges *after = &t->after;
  uint32_t at = 0;
  t->successor_start[START_NODE] = at;
  for (uint32_t p = 0; p < after->count; p++)
    if (is_root(t, p)) t->successors[at++] = gate_of(p);
  for (uint32_t p = 0; p < after->count; p++) {
    t->successor_start[gate_of(p)] = at;
    t->successors[at++] = beginning_of(p);
    t->successor_start[beginning_of(p)] = at;
    t->successors[at++] = end_of(p);
    t->successor_start[end_of(p)] = at;
    for (uint32_t e = after->start[p]; e < after->start[p + 1]; e++) t->successors[at++] = gate_of(after->items[e]);
  }
  t->successor_start[gate_of(after->count)] = at;
}

static rondo_status derive(trial *t) {
  const uint32_t count = t->before.count;
  const size_t capacity = 3 * (size_t)count + t->before.start[count]; /* each position may be a root */
  RONDO_TRY(rondo_edges_transpose(t->scratch.allocator, &t->before, count, &t->after));
  RONDO_TRY(rondo_ancestors_make(t->scratch.allocator, &t->before, &t->ancestors));
  RONDO_TRY(rondo_scratch_take(&t->scratch, gate_of(count) + (size_t)1, sizeof(uint32_t), &t->successor_start));
  RONDO_TRY(rondo_scratch_take(&t->scratch, capacity, sizeof(uint32_t), &t->successors));
  list_successors(t);
  return RONDO_OK;
}

static void free_trial(trial *t) {
  rondo_edges_free(t->scratch.allocator, &t->before);
  rondo_edges_free(t->scratch.allocator, &t->after);
  rondo_ancestors_free(t->scratch.allocator, &t->ancestors);
  rondo_scratch_free(&t->scratch);
}

static uint64_t branch_steps(const arena *a) {
  const uint64_t steps = a->layout->straight_bytes / BYTES_OF_STEP;
  if (steps < LEAST_BRANCH_STEPS) return LEAST_BRANCH_STEPS;
  return steps < BRANCH_STEPS ? steps : BRANCH_STEPS;
}

/* The edges of the trial become the schedule's. */
static void take_trial(arena *a, trial *t, const rondo_plan *plan, const rondo_plan_info *info) {
  const rondo_edges replaced = a->layout->schedule.before;
  take_plan(a, plan, info, true);
  a->layout->schedule.before = t->before;
  t->before = replaced;
}

static rondo_status search_trial(arena *a, trial *t, const rondo_plan_order *order, size_t most_bytes,
                                 bool *out_taken) {
  rondo_plan *plan = NULL;
  rondo_plan_info info;
  const rondo_earlier_plan *earlier = t->earlier;
  const size_t *start = earlier == NULL ? NULL : earlier->branch_offsets;
  const uint64_t most = steps_after(earlier);
  const uint64_t left = branch_steps(a) - a->layout->branch_steps;
  const double gap = start == NULL ? 0 : earlier->branch_gap;
  rondo_status status = run_planner(a, order, left < most ? left : most, start, gap, &plan, &info);
  *out_taken = status == RONDO_OK && info.peak <= most_bytes;
  if (status == RONDO_OK) {
    a->layout->branch_bytes = info.peak;
    a->layout->branch_steps += info.steps < left ? info.steps : left;
  }
  if (*out_taken) take_trial(a, t, plan, &info);
  if (*out_taken) status = keep_offsets(a, plan, &info, gap, &a->made.branch_offsets, &a->made.branch_gap);
  rondo_plan_destroy(plan);
  return status;
}

/* Branches whose lower bound is too high are not planned: plans with many live values take longest. */
static rondo_status plan_trial(arena *a, trial *t, size_t most_bytes, bool *out_taken) {
  RONDO_TRY(derive(t));
  list_live_ranges(a, t);
  const rondo_plan_order order = {
      .node_count = gate_of(t->before.count), .successor_start = t->successor_start, .successors = t->successors};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = a->planned, .count = a->count, .order = &order};
  RONDO_TRY(rondo_serial_bytes(a->scratch.allocator, &problem, &a->layout->branch_bytes));
  if (a->layout->branch_bytes > most_bytes) return RONDO_OK;
  return search_trial(a, t, &order, most_bytes, out_taken);
}

/* width: about how many operations can overlap; 0: as many as the dependencies allow. */
static rondo_status try_width(arena *a, uint32_t width, const rondo_earlier_plan *earlier, size_t most_bytes,
                              bool *out_taken) {
  trial t = {.scratch = {.allocator = a->scratch.allocator}, .earlier = earlier};
  a->made.width = width;
  rondo_status status = rondo_edges_narrow(a->scratch.allocator, &a->layout->schedule.before,
                                           width == 0 ? a->layout->schedule.count : width, a->waits, &t.before);
  if (status == RONDO_OK) status = plan_trial(a, &t, most_bytes, out_taken);
  free_trial(&t);
  return status;
}

/* Collectives, and what waits for one, such as updates, may overlap with all that does not depend on them, whatever the
 * width. Otherwise an update would pass its wait on to the rest of the backward. */
static rondo_status find_waiting(arena *a) {
  const rondo_schedule *schedule = &a->layout->schedule;
  bool *waits, any = false;
  RONDO_TRY(rondo_scratch_take(&a->scratch, schedule->count, sizeof *waits, &waits));
  for (uint32_t p = 0; p < schedule->count; p++) {
    waits[p] = a->program->operations.items[schedule->order[p]].row->is_collective;
    for (uint32_t e = schedule->before.start[p]; e < schedule->before.start[p + 1]; e++)
      waits[p] = waits[p] || waits[schedule->before.items[e]];
    any = any || waits[p];
  }
  if (any) a->waits = waits;
  return RONDO_OK;
}

static rondo_status try_widths(arena *a, size_t most_bytes, bool *out_taken) {
  static const uint32_t widths[] = {0, 32, 16, 8, 4, 2};
  const uint32_t count = a->layout->schedule.before.count;
  *out_taken = false;
  for (size_t i = 0; i < sizeof widths / sizeof widths[0] && !*out_taken && !a->layout->ended_early; i++) {
    if (widths[i] >= count) continue;
    RONDO_TRY(try_width(a, widths[i], NULL, most_bytes, out_taken));
    a->layout->ended_early = !*out_taken && a->layout->branch_steps == branch_steps(a);
  }
  return RONDO_OK;
}

/* As an earlier program of this structure: with branches of the same width, if they fit, or without. */
static rondo_status try_earlier(arena *a, size_t most_bytes, bool *out_taken, bool *out_decided) {
  const rondo_earlier_plan *earlier = a->earlier;
  *out_taken = *out_decided = false;
  if (earlier == NULL) return RONDO_OK;
  RONDO_TRY(try_width(a, earlier->width, earlier, most_bytes, out_taken));
  *out_decided = *out_taken || earlier->branch_offsets == NULL;
  if (*out_decided && !*out_taken) a->layout->ended_early = earlier->ended_early;
  return RONDO_OK;
}

/* If no width fits, collectives still overlap with a single chain of the others, whatever memory that takes. */
static rondo_status try_branches(arena *a, rondo_branch_policy branches) {
  const rondo_edges *before = &a->layout->schedule.before;
  if (branches == RONDO_BRANCHES_NEVER || rondo_edges_are_chain(before)) return RONDO_OK;
  a->layout->ended_early = before->count > RONDO_MAX_REDUCED;
  if (a->layout->ended_early) return RONDO_OK;
  const bool always = branches == RONDO_BRANCHES_ALWAYS;
  const size_t most_bytes = always ? SIZE_MAX : a->layout->straight_bytes / 100 * MAX_BRANCH_BYTES;
  bool taken, is_decided;
  RONDO_TRY(find_waiting(a));
  RONDO_TRY(try_earlier(a, most_bytes, &taken, &is_decided));
  if (!is_decided) RONDO_TRY(try_widths(a, most_bytes, &taken));
  if (taken || a->waits == NULL) return RONDO_OK;
  const uint64_t all = branch_steps(a), last = all < SEARCH_STEPS ? all : SEARCH_STEPS;
  if (a->layout->branch_steps > all - last) a->layout->branch_steps = all - last;
  a->layout->ended_early = false;
  return try_width(a, 1, NULL, SIZE_MAX, &taken);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status keep_order(const arena *a, rondo_earlier_plan *made) {
  const rondo_schedule *schedule = &a->layout->schedule;
  const rondo_allocator *allocator = &a->plans->allocator;
  made->positions = schedule->count;
  const rondo_structure *structure = &a->layout->structure;
  RONDO_TRY(rondo_allocate_copy(allocator, structure->items, structure->count, sizeof *structure->items,
                                &made->structure.items));
  made->structure.count = made->structure.capacity = structure->count;
  RONDO_TRY(rondo_allocate_copy(allocator, schedule->order, schedule->count, sizeof *made->order, &made->order));
  RONDO_TRY(rondo_allocate_copy(allocator, schedule->joined, schedule->count, sizeof *made->joined, &made->joined));
  return rondo_edges_copy(allocator, &schedule->before, &made->before);
}

/* Before branches narrow the dependencies. The earlier plan is that of this order. */
static rondo_status begin_plan(arena *a) {
  const rondo_earlier_plan *earlier = a->layout->earlier;
  if (a->plans == NULL) return RONDO_OK;
  a->made = (rondo_earlier_plan){.count = a->count};
  a->earlier = earlier != NULL && earlier->count == a->count ? earlier : NULL;
  return keep_order(a, &a->made);
}

static rondo_status plan(arena *a, const size_t *workspaces, rondo_branch_policy branches) {
  const size_t values = a->layout->schedule.values;
  a->capacity = values + a->layout->schedule.count;
  RONDO_TRY(rondo_scratch_take(&a->scratch, a->capacity, sizeof *a->items, &a->items));
  RONDO_TRY(rondo_scratch_take(&a->scratch, a->capacity, sizeof *a->planned, &a->planned));
  RONDO_TRY(rondo_scratch_take(&a->scratch, values, sizeof *a->is_output, &a->is_output));
  RONDO_TRY(list_users(a, workspaces));
  RONDO_TRY(list_values(a));
  RONDO_TRY(list_workspaces(a, workspaces));
  RONDO_TRY(begin_plan(a));
  RONDO_TRY(plan_order(a));
  RONDO_TRY(try_branches(a, branches));
  a->made.ended_early = a->layout->ended_early;
  return a->plans == NULL || a->count == 0 ? RONDO_OK : rondo_earlier_plans_keep(a->plans, &a->made);
}

rondo_status rondo_arena_plan_make(const rondo_program *program, const size_t *workspaces,
                                   const rondo_layout_options *options, rondo_layout *layout) {
  arena a = {.program = program,
             .scratch = {.allocator = &program->allocator},
             .staged = &options->staged,
             .layout = layout,
             .plans = options->plans};
  const rondo_status status = plan(&a, workspaces, options->branches);
  if (a.plans != NULL) rondo_earlier_plan_free(&a.plans->allocator, &a.made);
  rondo_scratch_free(&a.scratch);
  return status;
}
