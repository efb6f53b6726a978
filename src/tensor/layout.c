/* SPDX-License-Identifier: MIT
 * Dropping what nobody reads, ordering, lifetimes, places.
 */
#include "tensor/layout.h"

#include <assert.h>

#include "tensor/shape.h"

/* A value's life in the arena, in positions of the order. */
typedef struct life {
  bool lives;
  uint32_t first, last;
} life;

typedef struct arena_plan {
  life *lives; /* one a value */
  rondo_plan_item *items;
  rondo_place **places; /* of the items */
  size_t count;
  rondo_plan *plan;
} arena_plan;

/* Order ----------------------------------------------------------------------------------------------------------- */

static bool any_result_needed(const rondo_operation *operation, const bool *needed) {
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    if (needed[operation->results[r]]) return true;
  }
  return false;
}

/* Marks what outputs and updates are computed from. */
static void mark_needed(const rondo_program *program, bool *needed, bool *runs) {
  for (size_t i = 0; i < program->outputs.count; i++) needed[program->outputs.items[i].value] = true;
  for (size_t i = program->operations.count; i > 0; i--) {
    const rondo_operation *operation = &program->operations.items[i - 1];
    runs[i - 1] = operation->row->updates != 0 || any_result_needed(operation, needed);
    for (uint32_t k = 0; runs[i - 1] && k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] != RONDO_NO_VALUE) needed[operation->inputs[k]] = true;
    }
  }
}

static void append_order(const rondo_program *program, const bool *runs, bool updates, rondo_layout *layout) {
  for (uint32_t i = 0; i < program->operations.count; i++) {
    const rondo_operator *row = program->operations.items[i].row;
    if (runs[i] && (row->updates != 0) == updates) layout->order[layout->order_count++] = i;
  }
}

/* needed has an entry a value, and behind them one an operation. */
static rondo_status order_operations(const rondo_program *program, bool *needed, rondo_layout *layout) {
  bool *runs = needed == NULL ? NULL : needed + layout->values; /* NULL: nothing is in the program */
  mark_needed(program, needed, runs);
  append_order(program, runs, false, layout);
  const size_t computing = layout->order_count;
  append_order(program, runs, true, layout);
  if (layout->order_count > computing || program->outputs.count > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                    "program '%s' has no output and no optimizer, so nothing of it would run: add rondo_program_output",
                    program->name);
}

/* Persistent block ------------------------------------------------------------------------------------------------ */

static rondo_status fail_bytes(const rondo_program *program) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "the values of program '%s' have more bytes than fit in %zu bits", program->name,
                    8 * sizeof(size_t));
}

static rondo_status append(const rondo_program *program, size_t bytes, rondo_layout *layout, size_t *out_offset) {
  size_t rounded = 0;
  *out_offset = layout->persistent_bytes;
  if (!rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &rounded) ||
      !rondo_checked_add(layout->persistent_bytes, rounded, &layout->persistent_bytes)) {
    return fail_bytes(program);
  }
  return RONDO_OK;
}

/* All states and cells: also one that nothing reads can be written and saved. Constants that nothing reads cost a few
 * bytes. */
static rondo_status place_persistent(const rondo_program *program, rondo_layout *layout) {
  for (size_t i = 0; i < layout->values; i++) {
    const rondo_program_value *value = &program->values.items[i];
    if (value->kind == RONDO_VALUE_INPUT || value->kind == RONDO_VALUE_RESULT) continue;
    layout->places[i].block = RONDO_BLOCK_PERSISTENT;
    RONDO_TRY(append(program, rondo_shape_bytes(&value->shape), layout, &layout->places[i].offset));
  }
  for (size_t i = 0; i < layout->order_count; i++) {
    if (program->operations.items[layout->order[i]].row->checks_indices) layout->check_count++;
  }
  return append(program, layout->check_count * sizeof(uint64_t), layout, &layout->check_offset);
}

/* Arena ----------------------------------------------------------------------------------------------------------- */

static uint32_t bytes_owner(const rondo_program *program, uint32_t value) {
  while (program->values.items[value].view_of != RONDO_NO_VALUE) value = program->values.items[value].view_of;
  return value;
}

static bool lies_in_arena(const rondo_program *program, uint32_t value) {
  const rondo_value_kind kind = program->values.items[value].kind;
  return kind == RONDO_VALUE_INPUT || kind == RONDO_VALUE_RESULT;
}

static void touch(const rondo_program *program, life *lives, uint32_t value, uint32_t position) {
  life *of = &lives[bytes_owner(program, value)];
  if (!of->lives) *of = (life){true, position, position};
  if (position < of->first) of->first = position;
  if (position > of->last) of->last = position;
}

static void find_lives(const rondo_program *program, const rondo_layout *layout, life *lives) {
  const uint32_t end = (uint32_t)layout->order_count;
  for (uint32_t i = 0; i < layout->values; i++) {
    if (program->values.items[i].kind == RONDO_VALUE_INPUT) lives[i] = (life){true, 0, end};
  }
  for (uint32_t position = 0; position < end; position++) {
    const rondo_operation *operation = &program->operations.items[layout->order[position]];
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] != RONDO_NO_VALUE) touch(program, lives, operation->inputs[k], position);
    }
    for (uint32_t r = 0; r < operation->row->result_count; r++) touch(program, lives, operation->results[r], position);
  }
  for (size_t i = 0; i < program->outputs.count; i++) touch(program, lives, program->outputs.items[i].value, end);
}

static rondo_status add_item(const rondo_program *program, size_t bytes, life of, rondo_place *place,
                             arena_plan *arena) {
  rondo_plan_item *item = &arena->items[arena->count];
  *item = (rondo_plan_item){.alignment = RONDO_VALUE_ALIGNMENT, .lower = of.first, .upper = of.last + 1};
  if (!rondo_checked_align(bytes, RONDO_VALUE_ALIGNMENT, &item->bytes)) return fail_bytes(program);
  arena->places[arena->count++] = place;
  return RONDO_OK;
}

static rondo_status list_values(const rondo_program *program, const rondo_layout *layout, arena_plan *arena) {
  for (uint32_t i = 0; i < layout->values; i++) {
    if (!arena->lives[i].lives || !lies_in_arena(program, i)) continue;
    const size_t bytes = rondo_shape_bytes(rondo_program_shape(program, i));
    RONDO_TRY(add_item(program, bytes, arena->lives[i], &layout->places[i], arena));
  }
  return RONDO_OK;
}

static rondo_status list_workspaces(const rondo_program *program, rondo_resources *resources,
                                    const rondo_layout *layout, arena_plan *arena) {
  for (uint32_t position = 0; resources != NULL && position < layout->order_count; position++) {
    const uint32_t number = layout->order[position];
    const rondo_operator *row = program->operations.items[number].row;
    size_t bytes = 0;
    if (row->prepare == NULL) continue;
    const rondo_status status = row->prepare(resources, program, number, &bytes);
    if (status != RONDO_OK)
      return rondo_fail_context(status, "%s (operator %u of program '%s')", row->name, number, program->name);
    if (bytes == 0) continue;
    RONDO_TRY(add_item(program, bytes, (life){true, position, position}, &layout->workspaces[number], arena));
  }
  return RONDO_OK;
}

/* Compiling the same program twice gives the same addresses, so the plan is made without a clock. */
static rondo_status make_plan(const rondo_program *program, arena_plan *arena) {
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = arena->items, .count = arena->count};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .fast_only = true, .allocator = &program->allocator};
  return rondo_plan_make(&problem, &options, &arena->plan);
}

/* As many as there can be: a value each, and an operation. */
static size_t item_room(const rondo_layout *layout) { return layout->values + layout->operations; }

static rondo_status plan_arena(const rondo_program *program, rondo_resources *resources, rondo_layout *layout,
                               arena_plan *arena) {
  const rondo_allocator *allocator = &program->allocator;
  RONDO_TRY(rondo_allocate_items(allocator, layout->values, sizeof *arena->lives, &arena->lives));
  RONDO_TRY(rondo_allocate_items(allocator, item_room(layout), sizeof *arena->items, &arena->items));
  RONDO_TRY(rondo_allocate_items(allocator, item_room(layout), sizeof(rondo_place *), &arena->places));
  find_lives(program, layout, arena->lives);
  RONDO_TRY(list_values(program, layout, arena));
  RONDO_TRY(list_workspaces(program, resources, layout, arena));
  RONDO_TRY(make_plan(program, arena));
  for (size_t i = 0; i < arena->count; i++) {
    *arena->places[i] = (rondo_place){.block = RONDO_BLOCK_ARENA,
                                      .offset = rondo_plan_offsets(arena->plan)[i],
                                      .bytes = arena->items[i].bytes,
                                      .first = arena->items[i].lower,
                                      .last = arena->items[i].upper - 1};
  }
  rondo_plan_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_plan_get_info(arena->plan, &info));
  layout->arena_bytes = info.peak;
  layout->arena_bound = info.lower_bound;
  layout->arena_sum = info.sum;
  return RONDO_OK;
}

static void free_arena_plan(const rondo_program *program, const rondo_layout *layout, arena_plan *arena) {
  const rondo_allocator *allocator = &program->allocator;
  rondo_plan_destroy(arena->plan);
  rondo_release(allocator, arena->lives, layout->values, sizeof *arena->lives);
  rondo_release(allocator, arena->items, item_room(layout), sizeof *arena->items);
  rondo_release(allocator, arena->places, item_room(layout), sizeof(rondo_place *));
}

/* The whole ------------------------------------------------------------------------------------------------------- */

static rondo_status make_order(const rondo_program *program, rondo_layout *layout) {
  const rondo_allocator *allocator = &program->allocator;
  const size_t flags = layout->values + layout->operations;
  bool *needed = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, layout->operations, sizeof *layout->order, &layout->order));
  RONDO_TRY(rondo_allocate_items(allocator, layout->values, sizeof *layout->places, &layout->places));
  RONDO_TRY(rondo_allocate_items(allocator, layout->operations, sizeof *layout->workspaces, &layout->workspaces));
  RONDO_TRY(rondo_allocate_items(allocator, flags, sizeof *needed, &needed));
  const rondo_status status = order_operations(program, needed, layout);
  rondo_release(allocator, needed, flags, sizeof *needed);
  return status;
}

rondo_status rondo_layout_make(const rondo_program *program, rondo_resources *resources, rondo_layout *out) {
  *out = (rondo_layout){.operations = program->operations.count, .values = program->values.count};
  if (out->values == 0) return order_operations(program, NULL, out);
  RONDO_TRY(make_order(program, out));
  RONDO_TRY(place_persistent(program, out));
  arena_plan arena = {0};
  const rondo_status status = plan_arena(program, resources, out, &arena);
  free_arena_plan(program, out, &arena);
  if (status != RONDO_OK) return status;
  for (uint32_t i = 0; i < out->values; i++) out->places[i] = out->places[bytes_owner(program, i)];
  return RONDO_OK;
}

void rondo_layout_free(const rondo_program *program, rondo_layout *layout) {
  rondo_release(&program->allocator, layout->order, layout->operations, sizeof *layout->order);
  rondo_release(&program->allocator, layout->places, layout->values, sizeof *layout->places);
  rondo_release(&program->allocator, layout->workspaces, layout->operations, sizeof *layout->workspaces);
  *layout = (rondo_layout){0};
}
