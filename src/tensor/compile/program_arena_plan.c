/* SPDX-License-Identifier: MIT
 * Lives and plans. A life ends behind the last use in the order; where the graph has branches, behind all uses: at the
 * end of the use that all others come before, or, where there is none, at the first operation that comes behind them
 * all. A kernel of several operations runs when the first of them does; what they touch lives until the last is over.
 *
 * The nodes of a plan for branches: one for the start of the run, then three a position: a gate that opens when all
 * before it has ended, the beginning, where results and the workspace get their places, and the end.
 */
#include "tensor/compile/program_arena_plan.h"

#include <assert.h>

#include "base/allocation.h"
#include "plan/partial_order/order_bound.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

/* Branches may take so much more memory than the order, in hundredths. */
#define MOST_BRANCH_BYTES 110

/* Search steps where the fast path leaves a gap: of one plan, and of all plans for branches. */
#define SEARCH_STEPS 20000
#define BRANCH_STEPS 60000

typedef struct arena_item {
  rondo_place *place;
  uint32_t first_user; /* users[first_user] up to users[end_user]: positions, rising */
  uint32_t end_user;
  size_t bytes;
  bool from_start, for_ever;
} arena_item;

typedef struct arena {
  const rondo_program *program;
  const rondo_allocator *allocator;
  const rondo_staged_list *staged;
  rondo_layout *layout;
  arena_item *items;
  uint32_t *item_of; /* one a value: its item plus one */
  uint32_t *users;
  size_t count, item_room, user_room;
  rondo_plan_item *planned; /* one an item */
} arena;

static const rondo_operation *operation_at(const arena *a, uint32_t position) {
  return rondo_schedule_operation(a->program, &a->layout->schedule, a->layout->schedule.order[position]);
}

/* Items ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_item(arena *a, const arena_item *item, size_t bytes) {
  assert(a->count < a->item_room && bytes > 0);
  arena_item *mine = &a->items[a->count++];
  *mine = *item;
  if (rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &mine->bytes)) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE, "a value of %s has more bytes than fit in %zu bits",
                    a->program->label, 8 * sizeof(size_t));
}

/* The owners of what an operation reads and makes; the same one perhaps twice. */
static uint32_t list_touched(const arena *a, uint32_t position, uint32_t touched[]) {
  const rondo_operation *operation = operation_at(a, position);
  const uint32_t *owners = a->layout->schedule.owners;
  uint32_t count = 0;
  RONDO_EACH_INPUT(k, operation) touched[count++] = owners[operation->inputs[k]];
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    if (rondo_value_is_made(a->program, operation->results[r])) touched[count++] = owners[operation->results[r]];
  }
  return count;
}

#define MOST_TOUCHED (RONDO_MAX_OPERANDS + RONDO_MAX_RESULTS)
#define MOST_USERS 2 /* positions that an operation makes users of what it touches */

/* An item for each value that was marked, and each input. */
static rondo_status list_values(arena *a) {
  for (uint32_t i = 0; i < a->layout->schedule.values; i++) {
    const rondo_program_value *value = &a->program->values.items[i];
    const bool is_input = value->kind == RONDO_VALUE_INPUT;
    if (a->item_of[i] == 0 && !is_input) continue; /* no operation that runs touches it */
    const bool is_kept = is_input && rondo_staged_how(a->staged, value->name) == RONDO_STAGING_SLOT;
    const arena_item item = {.place = &a->layout->places[i], .from_start = is_input, .for_ever = is_kept};
    a->item_of[i] = (uint32_t)a->count + 1;
    RONDO_TRY(add_item(a, &item, rondo_shape_bytes(rondo_program_shape(a->program, i))));
  }
  for (size_t i = 0; i < a->program->outputs.count; i++) {
    const uint32_t owner = a->layout->schedule.owners[a->program->outputs.items[i].value];
    if (a->item_of[owner] != 0) a->items[a->item_of[owner] - 1].for_ever = true;
  }
  return RONDO_OK;
}

/* Into item_of, of what lies in the arena. */
static void mark_touched(arena *a) {
  uint32_t touched[MOST_TOUCHED];
  for (uint32_t p = 0; p < a->layout->schedule.count; p++) {
    const uint32_t count = list_touched(a, p, touched);
    for (uint32_t i = 0; i < count; i++) a->item_of[touched[i]] = rondo_value_is_transient(a->program, touched[i]);
  }
}

static void add_user(arena *a, arena_item *item, uint32_t position) {
  if (item->end_user > item->first_user && a->users[item->end_user - 1] == position) return;
  assert(item->end_user < a->user_room);
  assert(item->end_user == item->first_user || a->users[item->end_user - 1] < position);
  a->users[item->end_user++] = position;
}

/* Of what the operations of a kernel touch, from position `first` to `last`, `user` is a user. */
static void add_users(arena *a, uint32_t first, uint32_t last, uint32_t user) {
  uint32_t touched[MOST_TOUCHED];
  for (uint32_t p = first; p <= last; p++) {
    const uint32_t count = list_touched(a, p, touched);
    for (uint32_t i = 0; i < count; i++) {
      if (a->item_of[touched[i]] != 0) add_user(a, &a->items[a->item_of[touched[i]] - 1], user);
    }
  }
}

/* Room for each item's users, then the users: positions rise. What a kernel of several operations touches is used from
 * the first of them to the last. */
static void list_users(arena *a) {
  const rondo_schedule *schedule = &a->layout->schedule;
  uint32_t touched[MOST_TOUCHED], room = 0;
  for (uint32_t p = 0; p < schedule->count; p++) {
    const uint32_t count = list_touched(a, p, touched);
    for (uint32_t i = 0; i < count; i++) {
      if (a->item_of[touched[i]] != 0) a->items[a->item_of[touched[i]] - 1].end_user += MOST_USERS;
    }
  }
  for (size_t i = 0; i < a->count; i++) {
    const uint32_t mine = a->items[i].end_user;
    a->items[i].first_user = a->items[i].end_user = room;
    room += mine;
  }
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first]) {
    const uint32_t last = first + schedule->joined[first] - 1;
    add_users(a, first, last, first);
    if (last > first) add_users(a, first, last, last);
  }
}

static rondo_status list_workspaces(arena *a, const size_t *workspaces) {
  uint32_t at = (uint32_t)(a->user_room - a->layout->schedule.count); /* behind the values' users */
  for (uint32_t p = 0; p < a->layout->schedule.count; p++, at++) {
    const uint32_t number = a->layout->schedule.order[p];
    if (workspaces[number] == 0) continue;
    a->users[at] = p;
    const arena_item item = {.place = &a->layout->workspaces[number], .first_user = at, .end_user = at + 1};
    RONDO_TRY(add_item(a, &item, workspaces[number]));
  }
  return RONDO_OK;
}

/* Plans ------------------------------------------------------------------------------------------------------------ */

static rondo_status run_planner(const arena *a, const rondo_plan_order *order, uint64_t steps, rondo_plan **out_plan,
                                rondo_plan_info *out_info) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = a->planned, .count = a->count, .order = order};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = steps, .gap = 1.005,
                                      .allocator = a->allocator};
  *out_info = (rondo_plan_info){.struct_size = sizeof *out_info};
  RONDO_TRY(rondo_plan_make(&problem, &options, out_plan));
  return rondo_plan_get_info(*out_plan, out_info);
}

static uint32_t last_position(const arena *a, const arena_item *item) {
  return item->for_ever || item->end_user == item->first_user ? a->layout->schedule.count
                                                              : a->users[item->end_user - 1];
}

static uint32_t first_position(const arena *a, const arena_item *item) {
  return item->from_start ? 0 : a->users[item->first_user];
}

/* As the plan says; what is kept of a life is its extent in the order. */
static void take_plan(arena *a, const rondo_plan *plan, const rondo_plan_info *info, bool has_branches) {
  const size_t *offsets = rondo_plan_offsets(plan);
  for (size_t i = 0; i < a->count; i++) {
    *a->items[i].place = (rondo_place){.block = RONDO_BLOCK_ARENA,
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
  const rondo_status status = run_planner(a, NULL, SEARCH_STEPS, &plan, &info);
  if (status == RONDO_OK) take_plan(a, plan, &info, false);
  if (status == RONDO_OK) a->layout->straight_bytes = info.peak;
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
  uint32_t *successor_start, *successors;
  size_t start_room, successor_room;
} trial;

static bool all_come_before(const arena *a, const trial *t, const arena_item *item, uint32_t position) {
  for (uint32_t u = item->end_user; u > item->first_user; u--) {
    const uint32_t user = a->users[u - 1];
    if (user != position && !rondo_comes_before(&t->ancestors, user, position)) return false;
  }
  return true;
}

static uint32_t node_behind(const arena *a, const trial *t, const arena_item *item) {
  if (item->for_ever || item->end_user == item->first_user) return RONDO_PLAN_FOREVER;
  const uint32_t last = a->users[item->end_user - 1];
  if (all_come_before(a, t, item, last)) return end_of(last);
  for (uint32_t p = last + 1; p < a->layout->schedule.count; p++) {
    if (all_come_before(a, t, item, p)) return gate_of(p);
  }
  return RONDO_PLAN_FOREVER;
}

static void list_lives(arena *a, const trial *t) {
  for (size_t i = 0; i < a->count; i++) {
    const arena_item *item = &a->items[i];
    a->planned[i] = (rondo_plan_item){.bytes = item->bytes,
                                      .alignment = RONDO_VALUE_ALIGNMENT,
                                      .lower = item->from_start ? START_NODE : beginning_of(a->users[item->first_user]),
                                      .upper = node_behind(a, t, item)};
  }
}

static bool is_root(const trial *t, uint32_t position) {
  return t->before.start[position] == t->before.start[position + 1];
}

/* The successors of all nodes: of the start the gates that wait for nothing else, of a gate its beginning, of a
 * beginning its end, of an end the gates that wait for it. */
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

static rondo_status derive(const arena *a, trial *t) {
  const uint32_t count = t->before.count;
  RONDO_TRY(rondo_edges_turn(a->allocator, &t->before, &t->after));
  RONDO_TRY(rondo_ancestors_make(a->allocator, &t->before, &t->ancestors));
  t->start_room = gate_of(count) + (size_t)1;
  t->successor_room = 3 * (size_t)count + t->before.start[count]; /* each position may be a root */
  RONDO_TRY(rondo_allocate_items(a->allocator, t->start_room, sizeof(uint32_t), &t->successor_start));
  RONDO_TRY(rondo_allocate_items(a->allocator, t->successor_room, sizeof(uint32_t), &t->successors));
  list_successors(t);
  return RONDO_OK;
}

static void free_trial(const arena *a, trial *t) {
  rondo_edges_free(a->allocator, &t->before);
  rondo_edges_free(a->allocator, &t->after);
  rondo_ancestors_free(a->allocator, &t->ancestors);
  rondo_release(a->allocator, t->successor_start, t->start_room, sizeof(uint32_t));
  rondo_release(a->allocator, t->successors, t->successor_room, sizeof(uint32_t));
}

/* The edges of a trial that is taken become the schedule's. */
static void take_trial(arena *a, trial *t, const rondo_plan *plan, const rondo_plan_info *info) {
  const rondo_edges mine = a->layout->schedule.before;
  take_plan(a, plan, info, true);
  a->layout->schedule.before = t->before;
  t->before = mine;
}

static rondo_status search_trial(arena *a, trial *t, const rondo_plan_order *order, size_t most_bytes,
                                 bool *out_taken) {
  rondo_plan *plan = NULL;
  rondo_plan_info info;
  const uint64_t left = BRANCH_STEPS - a->layout->branch_steps;
  const rondo_status status = run_planner(a, order, left < SEARCH_STEPS ? left : SEARCH_STEPS, &plan, &info);
  *out_taken = status == RONDO_OK && info.peak <= most_bytes;
  if (status == RONDO_OK) {
    a->layout->branch_bytes = info.peak;
    a->layout->branch_steps += info.steps < left ? info.steps : left;
  }
  if (*out_taken) take_trial(a, t, plan, &info);
  rondo_plan_destroy(plan);
  return status;
}

/* What needs too much in any plan is not planned: that would take the longest, with so many values live at once. */
static rondo_status plan_trial(arena *a, trial *t, size_t most_bytes, bool *out_taken) {
  RONDO_TRY(derive(a, t));
  list_lives(a, t);
  const rondo_plan_order order = {
      .node_count = gate_of(t->before.count), .successor_start = t->successor_start, .successors = t->successors};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = a->planned, .count = a->count, .order = &order};
  RONDO_TRY(rondo_serial_bytes(a->allocator, &problem, &a->layout->branch_bytes));
  if (a->layout->branch_bytes > most_bytes) return RONDO_OK;
  return search_trial(a, t, &order, most_bytes, out_taken);
}

/* width: of the branches, 0 for as wide as the dependencies let them be. */
static rondo_status try_width(arena *a, uint32_t width, size_t most_bytes, bool *out_taken) {
  trial t = {0};
  rondo_status status = rondo_edges_narrow(a->allocator, &a->layout->schedule.before,
                                           width == 0 ? a->layout->schedule.count : width, &t.before);
  if (status == RONDO_OK) status = plan_trial(a, &t, most_bytes, out_taken);
  free_trial(a, &t);
  return status;
}

static rondo_status try_branches(arena *a, rondo_branch_policy branches) {
  static const uint32_t widths[] = {0, 32, 16, 8, 4, 2};
  const rondo_edges *before = &a->layout->schedule.before;
  if (branches == RONDO_BRANCHES_NEVER || rondo_edges_are_straight(before)) return RONDO_OK;
  a->layout->ended_early = before->count > RONDO_MOST_REDUCED;
  if (a->layout->ended_early) return RONDO_OK;
  const bool always = branches == RONDO_BRANCHES_ALWAYS;
  const size_t most_bytes = always ? SIZE_MAX : a->layout->straight_bytes / 100 * MOST_BRANCH_BYTES;
  bool taken = false;
  for (size_t i = 0; i < sizeof widths / sizeof widths[0] && !taken && !a->layout->ended_early; i++) {
    if (widths[i] >= before->count) continue;
    RONDO_TRY(try_width(a, widths[i], most_bytes, &taken));
    a->layout->ended_early = !taken && a->layout->branch_steps == BRANCH_STEPS;
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status allocate(arena *a) {
  const size_t values = a->layout->schedule.values, count = a->layout->schedule.count;
  a->item_room = values + count;
  a->user_room = (MOST_USERS * MOST_TOUCHED + 1) * count;
  RONDO_TRY(rondo_allocate_items(a->allocator, a->item_room, sizeof *a->items, &a->items));
  RONDO_TRY(rondo_allocate_items(a->allocator, a->item_room, sizeof *a->planned, &a->planned));
  RONDO_TRY(rondo_allocate_items(a->allocator, values, sizeof *a->item_of, &a->item_of));
  return rondo_allocate_items(a->allocator, a->user_room, sizeof *a->users, &a->users);
}

static void release(arena *a) {
  rondo_release(a->allocator, a->items, a->item_room, sizeof *a->items);
  rondo_release(a->allocator, a->planned, a->item_room, sizeof *a->planned);
  rondo_release(a->allocator, a->item_of, a->layout->schedule.values, sizeof *a->item_of);
  rondo_release(a->allocator, a->users, a->user_room, sizeof *a->users);
}

static rondo_status plan(arena *a, const size_t *workspaces, rondo_branch_policy branches) {
  RONDO_TRY(allocate(a));
  mark_touched(a);
  RONDO_TRY(list_values(a));
  list_users(a);
  RONDO_TRY(list_workspaces(a, workspaces));
  RONDO_TRY(plan_order(a));
  return try_branches(a, branches);
}

rondo_status rondo_arena_plan_make(const rondo_program *program, const size_t *workspaces,
                                   const rondo_layout_options *options, rondo_layout *layout) {
  arena a = {.program = program, .allocator = &program->allocator, .staged = &options->staged, .layout = layout};
  const rondo_status status = plan(&a, workspaces, options->branches);
  release(&a);
  return status;
}
