/* SPDX-License-Identifier: MIT
 * Plans again the paths that need the most memory of the arena. A plan covers the calls of a path, starting with the
 * first one that has no plan. So planning a path does not change other paths with the same beginning. Planning
 * terminates, because a planned recording stays planned until it is removed or until all paths are planned on request.
 */
#include "tree/path/path_plan.h"

#include <string.h>

#include "base/log.h"
#include "memory/arena/arena_recording_plan.h"
#include "memory/profile/memory_profile.h"
#include "tree/path/path_warm_up.h"
#include "tree/recorded_calls.h"

/* When a path is planned, and when its plan is used. */
typedef struct path_worth {
  double planning;  /* a path is planned if it needs more than this times the maximum number of live bytes */
  double recording; /* its plan is used if it needs at most this times what the path needed */
  bool in_pages;    /* the plan must save at least one page */
} path_worth;
static const path_worth worth_steady = {.planning = 1.05, .recording = 0.97, .in_pages = true};
static const path_worth worth_on_demand = {.planning = 1.005, .recording = 0.995};

/* A path is planned automatically after so many paths began without a new recording. Each plan doubles the number, up
 * to MAX_STEADY. */
enum { MIN_STEADY = 2, MAX_STEADY = 64, MAX_PLANS = 16 };

typedef struct rondo_planned_part {
  const rondo_function *function;
  const rondo_form *form;
  size_t slot_count;
  uint32_t first_bit;
  uint64_t *dead_before;
  rondo_given_output *given; /* outputs that the caller must give to the call */
  size_t given_count, given_capacity;
  rondo_profile *profile;
  bool is_recorded;
} rondo_planned_part;

struct rondo_path_plan {
  rondo_path_plan *next; /* of the tree, newest first */
  uint64_t number;
  uint32_t after; /* number of the recording before the first part; 0: none */
  rondo_planned_part *parts;
  size_t count;
};

/* Plans ------------------------------------------------------------------------------------------------------------ */

static void free_part(const rondo_tree *tree, const rondo_planned_part *part) {
  if (part->profile != NULL) rondo_profile_release(part->profile);
  rondo_release(&tree->allocator, part->dead_before, rondo_bit_words(part->first_bit), sizeof *part->dead_before);
  rondo_release(&tree->allocator, part->given, part->given_capacity, sizeof *part->given);
}

static void free_plan(const rondo_tree *tree, rondo_path_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) free_part(tree, &plan->parts[i]);
  rondo_release(&tree->allocator, plan->parts, plan->count, sizeof *plan->parts);
  rondo_release(&tree->allocator, plan, 1, sizeof *plan);
}

static void drop_plan(rondo_tree *tree, rondo_path_plan *plan) {
  rondo_path_plan **place = &tree->plans;
  while (*place != plan) place = &(*place)->next;
  *place = plan->next;
  free_plan(tree, plan);
}

static rondo_path_plan *find_plan(const rondo_tree *tree, uint64_t number) {
  rondo_path_plan *plan = tree->plans;
  while (plan != NULL && plan->number != number) plan = plan->next;
  return plan;
}

/* The index of the part for the call after the path's end; `count`: none. */
static size_t next_part(const rondo_tree *tree, const rondo_path_plan *plan) {
  const rondo_recorded_call *current = tree->current;
  if (plan->after == rondo_path_last_number(tree)) return 0;
  return current != NULL && current->plan == plan->number ? (size_t)current->plan_part + 1 : plan->count;
}

/* Whether the caller gives the outputs that the part requires. */
static bool is_given(const rondo_planned_part *part, const rondo_resolved_input *inputs) {
  for (size_t i = 0; i < part->given_count; i++) {
    const rondo_resolved_input *input = &inputs[part->given[i].key - 1];
    if (input->role != RONDO_ROLE_MANAGED || !input->is_sole || input->buffer->bit != part->given[i].bit) return false;
  }
  return true;
}

static bool is_fitting(const rondo_tree *tree, const rondo_planned_part *part, const rondo_form *form,
                       const rondo_resolved_input *inputs, size_t slot_count) {
  return part->form == form && part->slot_count == slot_count && part->first_bit == tree->path_bits &&
         rondo_recorded_fits(tree, part->dead_before, part->first_bit) && is_given(part, inputs);
}

static rondo_profile *find(const rondo_tree *tree, const rondo_form *form, const rondo_resolved_input *inputs,
                           size_t slot_count, rondo_plan_position *out) {
  *out = (rondo_plan_position){0};
  for (const rondo_path_plan *plan = tree->plans; plan != NULL; plan = plan->next) {
    const size_t index = next_part(tree, plan);
    if (index >= plan->count) continue;
    const rondo_planned_part *part = &plan->parts[index];
    if (!is_fitting(tree, part, form, inputs, slot_count)) continue;
    *out = (rondo_plan_position){.plan = plan->number, .part = (uint32_t)index};
    return part->profile;
  }
  return NULL;
}

rondo_profile *rondo_path_plan_find(rondo_tree *tree, const rondo_form *form, const rondo_resolved_input *inputs,
                                    size_t slot_count, rondo_plan_position *out) {
  rondo_profile *profile = find(tree, form, inputs, slot_count, out);
  if (profile != NULL || !rondo_path_warm_up_plan(tree, form)) return profile;
  return find(tree, form, inputs, slot_count, out);
}

static bool is_recorded(const rondo_path_plan *plan) {
  for (size_t i = 0; i < plan->count; i++)
    if (!plan->parts[i].is_recorded) return false;
  return true;
}

void rondo_path_plan_note(rondo_tree *tree, rondo_recorded_call *made, rondo_plan_position place) {
  rondo_path_plan *plan = find_plan(tree, place.plan);
  if (place.plan == 0 || plan == NULL) return;
  made->plan = place.plan;
  made->plan_part = place.part;
  made->is_planned = true;
  plan->parts[place.part].is_recorded = true;
  if (is_recorded(plan)) drop_plan(tree, plan);
}

void rondo_path_plan_depart(rondo_tree *tree, rondo_plan_position place) {
  rondo_path_plan *plan = find_plan(tree, place.plan);
  if (plan != NULL) drop_plan(tree, plan);
}

static bool has_function(const rondo_path_plan *plan, const rondo_function *function) {
  for (size_t i = 0; i < plan->count; i++)
    if (plan->parts[i].function == function) return true;
  return false;
}

void rondo_path_plan_forget(rondo_tree *tree, const rondo_function *function) {
  for (rondo_path_plan *plan = tree->plans, *next; plan != NULL; plan = next) {
    next = plan->next;
    if (has_function(plan, function)) drop_plan(tree, plan);
  }
}

/* Adds a new plan to the tree. Drops the oldest plans beyond MAX_PLANS, which no calls used. */
static void keep_plan(rondo_tree *tree, rondo_path_plan *plan) {
  size_t count = 1;
  plan->number = ++tree->plans_made;
  plan->next = tree->plans;
  tree->plans = plan;
  for (rondo_path_plan *at = plan; at->next != NULL; count++) {
    if (count < MAX_PLANS)
      at = at->next;
    else
      drop_plan(tree, at->next);
  }
}

/* Paths ------------------------------------------------------------------------------------------------------------ */

/* The calls of a path that are planned together, and the blocks that are live before them. */
typedef struct planned_path {
  rondo_tree *tree;
  rondo_recorded_call **calls;
  rondo_path_part *parts;
  size_t *slots;        /* of all parts */
  rondo_path_end *ends; /* of all parts */
  rondo_arena_block *blocks;
  size_t count, slot_capacity, end_capacity, block_capacity;
  size_t slot_count, end_count, block_count;
  size_t need; /* bytes of the arena that the calls need without the plan */
} planned_path;

static rondo_recorded_call *find_largest(const rondo_tree *tree) {
  rondo_recorded_call *largest = NULL;
  for (rondo_recorded_call *call = tree->first; call != NULL; call = call->next)
    if (largest == NULL || call->arena_end > largest->arena_end) largest = call;
  return largest;
}

/* The end of the path on which each call is followed by the one that followed it last time. */
static rondo_recorded_call *find_end(rondo_recorded_call *call) {
  while (call->children != NULL) call = call->guess != NULL ? call->guess : call->children;
  return call;
}

/* Lists the calls of the path, starting with the first one that is not planned. Lists none if the allocations of a call
 * are not known. */
static rondo_status list_calls(planned_path *path, rondo_recorded_call *largest) {
  rondo_recorded_call *end = find_end(largest);
  size_t count = 0;
  for (const rondo_recorded_call *at = end; at != NULL; at = at->parent) {
    if (at->noted == NULL) return RONDO_OK;
    if (!at->is_planned) count = end->depth - at->depth + 1;
  }
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&path->tree->allocator, count, sizeof(rondo_recorded_call *), &path->calls));
  path->count = count;
  for (size_t i = count; i > 0; i--, end = end->parent) {
    path->calls[i - 1] = end;
    if (end->arena_end > path->need) path->need = end->arena_end;
  }
  return RONDO_OK;
}

static bool is_dead_before(const rondo_recorded_call *call, uint32_t bit) {
  return (call->dead_before[bit / 64] >> bit % 64 & 1) != 0;
}

/* If the output is given to the call, and its body drops it, the key of the end of its lifetime; otherwise 0. */
static uint64_t key_of_end(const rondo_recorded_call *call, uint32_t bit) {
  for (size_t i = 0; i < call->given_count; i++)
    if (call->given[i].bit == bit && rondo_noted_find_end(call->noted, call->given[i].key) != NULL)
      return call->given[i].key;
  return 0;
}

/* Finds the part in which an earlier output dies, starting with part `from`. False: it lives until the path ends. */
static bool find_life_end(const planned_path *path, size_t from, uint32_t bit, rondo_path_end *out) {
  for (size_t i = from; i < path->count; i++) {
    const rondo_recorded_call *call = path->calls[i];
    out->part = (uint32_t)i;
    out->key = is_dead_before(call, bit) ? 0 : key_of_end(call, bit);
    if (out->key != 0 || is_dead_before(call, bit)) return true;
  }
  return false;
}

static void fill_part(planned_path *path, size_t index) {
  const rondo_recorded_call *call = path->calls[index];
  rondo_path_part *part = &path->parts[index];
  *part = (rondo_path_part){.lifetimes = call->noted, .slot_count = call->bound_count};
  if (call->bound_count > 0) part->slots = path->slots + path->slot_count;
  for (size_t i = 0; i < call->bound_count; i++) path->slots[path->slot_count++] = call->bound[i].bytes;
  const size_t first_end = path->end_count;
  for (size_t i = 0; i < call->output_count; i++) {
    const rondo_output *output = &call->outputs[i];
    rondo_path_end end = {.allocation = output->allocation};
    if (output->kind == RONDO_OUTPUT_FRESH && find_life_end(path, index + 1, output->bit, &end))
      path->ends[path->end_count++] = end;
  }
  part->end_count = path->end_count - first_end;
  if (part->end_count > 0) part->ends = path->ends + first_end;
}

static rondo_status fill_parts(planned_path *path) {
  const rondo_allocator *allocator = &path->tree->allocator;
  for (size_t i = 0; i < path->count; i++) {
    path->slot_capacity += path->calls[i]->bound_count;
    path->end_capacity += path->calls[i]->bit_count;
  }
  RONDO_TRY(rondo_allocate_items(allocator, path->slot_capacity, sizeof *path->slots, &path->slots));
  RONDO_TRY(rondo_allocate_items(allocator, path->end_capacity, sizeof *path->ends, &path->ends));
  RONDO_TRY(rondo_allocate_items(allocator, path->count, sizeof *path->parts, &path->parts));
  for (size_t i = 0; i < path->count; i++) fill_part(path, i);
  return RONDO_OK;
}

/* Lists the live outputs of calls before the first planned call. */
static rondo_status fill_blocks(planned_path *path) {
  const rondo_recorded_call *first = path->calls[0];
  path->block_capacity = first->first_bit;
  RONDO_TRY(rondo_allocate_items(&path->tree->allocator, path->block_capacity, sizeof *path->blocks, &path->blocks));
  for (const rondo_recorded_call *at = first->parent; at != NULL; at = at->parent)
    for (size_t i = 0; i < at->output_count; i++) {
      const rondo_output *output = &at->outputs[i];
      rondo_path_end end = {.key = 0};
      if (output->kind != RONDO_OUTPUT_FRESH || is_dead_before(first, output->bit)) continue;
      if (!find_life_end(path, 0, output->bit, &end)) end = (rondo_path_end){.key = 0};
      path->blocks[path->block_count++] = (rondo_arena_block){
          .address = output->address, .bytes = output->extent.bytes, .key = end.key, .part = end.part};
    }
  return RONDO_OK;
}

static void free_path(const planned_path *path) {
  const rondo_allocator *allocator = &path->tree->allocator;
  for (size_t i = 0; i < path->count && path->parts != NULL; i++)
    if (path->parts[i].profile != NULL) rondo_profile_release(path->parts[i].profile);
  rondo_release(allocator, path->parts, path->count, sizeof *path->parts);
  rondo_release(allocator, path->ends, path->end_capacity, sizeof *path->ends);
  rondo_release(allocator, path->slots, path->slot_capacity, sizeof *path->slots);
  rondo_release(allocator, path->blocks, path->block_capacity, sizeof *path->blocks);
  rondo_release(allocator, path->calls, path->count, sizeof(rondo_recorded_call *));
}

/* Planning --------------------------------------------------------------------------------------------------------- */

/* Copies what the plan assumes about the call: dead outputs, and given outputs that its body drops. */
static rondo_status fill_premises(const rondo_allocator *allocator, const rondo_recorded_call *call,
                                  rondo_planned_part *out) {
  const size_t words = rondo_bit_words(call->first_bit);
  RONDO_TRY(rondo_allocate_items(allocator, words, sizeof *out->dead_before, &out->dead_before));
  out->first_bit = call->first_bit;
  if (words > 0) memcpy(out->dead_before, call->dead_before, words * sizeof *out->dead_before);
  RONDO_TRY(rondo_allocate_items(allocator, call->given_count, sizeof *out->given, &out->given));
  out->given_capacity = call->given_count;
  for (size_t i = 0; i < call->given_count; i++)
    if (rondo_noted_find_end(call->noted, call->given[i].key) != NULL) out->given[out->given_count++] = call->given[i];
  return RONDO_OK;
}

static rondo_status fill_plan(planned_path *path, rondo_path_plan *plan) {
  const rondo_allocator *allocator = &path->tree->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, path->count, sizeof *plan->parts, &plan->parts));
  plan->count = path->count;
  plan->after = path->calls[0]->parent == NULL ? 0 : path->calls[0]->parent->number;
  for (size_t i = 0; i < path->count; i++) {
    const rondo_recorded_call *call = path->calls[i];
    plan->parts[i] = (rondo_planned_part){.function = call->function,
                                          .form = call->form,
                                          .slot_count = call->bound_count,
                                          .profile = path->parts[i].profile};
    path->parts[i].profile = NULL;
    RONDO_TRY(fill_premises(allocator, call, &plan->parts[i]));
  }
  return RONDO_OK;
}

/* Adds a plan with the profiles of the path to the tree. */
static rondo_status make_plan(planned_path *path) {
  rondo_path_plan *plan;
  RONDO_TRY(rondo_allocate_items(&path->tree->allocator, 1, sizeof *plan, &plan));
  const rondo_status status = fill_plan(path, plan);
  if (status == RONDO_OK)
    keep_plan(path->tree, plan);
  else
    free_plan(path->tree, plan);
  return status;
}

static bool is_worth_recording(const planned_path *path, size_t peak, const path_worth *worth) {
  const size_t page = path->tree->memory->page_bytes;
  if ((double)peak > (double)path->need * worth->recording) return false;
  return !worth->in_pages || (peak + page - 1) / page < (path->need + page - 1) / page;
}

/* Keeps the plan, and removes the recordings of the path, which are then recorded again. */
static rondo_status use_plan(planned_path *path, const rondo_plan_info *info) {
  rondo_tree *tree = path->tree;
  rondo_recorded_call *first = path->calls[0];
  RONDO_TRY(make_plan(path));
  tree->info.planned_paths++;
  tree->info.planned_before = path->need;
  tree->info.planned_after = info->peak;
  rondo_log(RONDO_LOG_INFO, "tree",
            "the path that begins with '%s' is planned again: %zu recordings, which needed %zu bytes of the arena, "
            "will need %zu; the minimum is %zu",
            first->function->origin->name, path->count, path->need, info->peak, info->lower_bound);
  rondo_recorded_remove(tree, first);
  return RONDO_OK;
}

static void mark_planned(const planned_path *path) {
  for (size_t i = 0; i < path->count; i++) path->calls[i]->is_planned = true;
}

/* Plans the listed calls. */
static rondo_status plan_parts(planned_path *path, rondo_plan_info *out_info) {
  const rondo_tree *tree = path->tree;
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .gap = 1.005, .budget_ms = tree->options.plan_ms};
  RONDO_TRY(fill_parts(path));
  RONDO_TRY(fill_blocks(path));
  return rondo_arena_plan_path(tree->arena, path->blocks, path->block_count, path->parts, path->count, &options,
                               out_info);
}

static rondo_status plan_path(planned_path *path, rondo_recorded_call *largest, const path_worth *worth,
                              bool *out_planned) {
  rondo_plan_info info = {.struct_size = sizeof info};
  RONDO_TRY(list_calls(path, largest));
  if (path->count == 0) return RONDO_OK;
  RONDO_TRY(plan_parts(path, &info));
  *out_planned = is_worth_recording(path, info.peak, worth);
  if (*out_planned) return use_plan(path, &info);
  mark_planned(path);
  return RONDO_OK;
}

rondo_status rondo_path_plan_warmed_up(rondo_tree *tree, rondo_recorded_call *const *calls, size_t count) {
  planned_path path = {.tree = tree};
  rondo_plan_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_allocate_items(&tree->allocator, count, sizeof(rondo_recorded_call *), &path.calls));
  path.count = count;
  memcpy(path.calls, calls, count * sizeof(rondo_recorded_call *));
  rondo_status status = plan_parts(&path, &info);
  if (status == RONDO_OK) status = make_plan(&path);
  if (status == RONDO_OK) {
    tree->info.warmed_up_paths++;
    rondo_log(RONDO_LOG_INFO, "tree",
              "the path that begins with '%s' is planned from its warm-ups: %zu recordings, %zu bytes of the arena; "
              "the minimum is %zu",
              calls[0]->function->origin->name, count, info.peak, info.lower_bound);
  }
  free_path(&path);
  return status;
}

/* Plans the path of the recording that needs the most memory, if it exceeds the threshold. No path is in progress. */
static rondo_status plan_largest(rondo_tree *tree, const path_worth *worth, bool *out_planned) {
  rondo_recorded_call *largest = find_largest(tree);
  *out_planned = false;
  if (largest == NULL || largest->is_planned || tree->device->ops->guard != NULL) return RONDO_OK;
  if ((double)largest->arena_end <= (double)rondo_recorded_arena_minimum(tree) * worth->planning) return RONDO_OK;
  planned_path path = {.tree = tree};
  const rondo_status status = plan_path(&path, largest, worth, out_planned);
  free_path(&path);
  return status;
}

/* Frees arena memory that only removed recordings needed. Nothing runs, and nothing in the arena is retained. */
static rondo_status trim(const rondo_tree *tree) {
  rondo_arena_info arena;
  rondo_arena_get_info(tree->arena, &arena);
  const size_t initial = (size_t)tree->options.initial_bytes;
  return rondo_arena_trim(tree->arena, arena.high > initial ? arena.high : initial);
}

/* Automatic -------------------------------------------------------------------------------------------------------- */

/* Whether the new call reads memory of the previous path in the arena. */
static bool is_arena_read(const rondo_tree *tree, size_t input_count) {
  for (size_t i = 0; i < input_count; i++)
    if (tree->inputs[i].is_of_ending) return true;
  return false;
}

static rondo_status plan_steady(rondo_tree *tree, rondo_stream *stream, size_t input_count) {
  bool is_planned;
  RONDO_TRY(plan_largest(tree, &worth_steady, &is_planned));
  if (is_planned && tree->options.plan_after == 0 && tree->steady_after < MAX_STEADY) tree->steady_after *= 2;
  if (!is_planned || is_arena_read(tree, input_count)) return RONDO_OK;
  RONDO_TRY(rondo_stream_await(stream, "rondo_function_call"));
  return trim(tree);
}

void rondo_path_plan_begin_waiting(rondo_tree *tree) {
  tree->steady_after = tree->options.plan_after == 0 ? MIN_STEADY : tree->options.plan_after;
}

void rondo_path_plan_when_steady(rondo_tree *tree, rondo_stream *stream, size_t input_count) {
  rondo_saved_error before;
  rondo_error_save(&before);
  if (plan_steady(tree, stream, input_count) == RONDO_OK) return;
  rondo_log(RONDO_LOG_WARNING, "tree", "planning a path again: %s", rondo_last_error()->message);
  rondo_error_restore(&before);
}

/* On demand -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_path_plan_all(rondo_tree *tree) {
  bool is_planned = true;
  for (rondo_recorded_call *call = tree->first; call != NULL; call = call->next) call->is_planned = false;
  for (int i = 0; i < MAX_PLANS && is_planned; i++) RONDO_TRY(plan_largest(tree, &worth_on_demand, &is_planned));
  return trim(tree);
}
