/* SPDX-License-Identifier: MIT
 * Parts by a greedy walk: the next part is of the place of the operation that is ready and has most changes of place
 * behind it, and takes all operations of that place that can run by then. Of two places no other choice gives fewer
 * parts: the row of changes that is longest makes each of its parts as early as it can be.
 */
#include "tensor/divide/division_parts.h"

#include <assert.h>

/* `after` runs behind `before`. Edges stand in the order of what is after, which is that of the walk. */
typedef struct part_edge {
  uint32_t before, after;
} part_edge;

typedef struct walker {
  const rondo_program *program;
  const rondo_places *places;
  uint32_t *part_of;
  uint32_t *order, count; /* what runs: updates last, else as it was added */
  uint32_t *heights;      /* one an operation: changes of place that can be behind it */
  RONDO_ARRAY(part_edge) edges;
  size_t *first_edge; /* one a position of the order, and the end */
} walker;

static bool is_update(const walker *w, uint32_t number) {
  return rondo_operator_is_update(w->program->operations.items[number].row);
}

static void list_order(walker *w) {
  for (int updates = 0; updates < 2; updates++)
    for (uint32_t i = 0; i < w->places->operations; i++)
      if (w->places->runs[i] && is_update(w, i) == (updates == 1)) w->order[w->count++] = i;
}

/* Edges ------------------------------------------------------------------------------------------------------------ */

static bool reads(const rondo_operation *operation, uint32_t value) {
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++)
    if (operation->inputs[k] == value) return true;
  return false;
}

static rondo_status add_edge(walker *w, uint32_t before, uint32_t after) {
  assert(w->places->runs[before] && w->places->runs[after]);
  return rondo_array_push(&w->program->allocator, &w->edges, (&(part_edge){before, after}));
}

/* Behind all that read or changed the state before it. */
static rondo_status follow_users(walker *w, uint32_t position, uint32_t state) {
  for (uint32_t p = 0; p < position; p++)
    if (reads(&w->program->operations.items[w->order[p]], state))
      RONDO_TRY(add_edge(w, w->order[p], w->order[position]));
  return RONDO_OK;
}

static rondo_status follow_changes(walker *w, uint32_t position, uint32_t state) {
  for (uint32_t p = 0; p < position; p++) {
    const rondo_operation *operation = &w->program->operations.items[w->order[p]];
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++)
      if (operation->inputs[k] == state && rondo_operation_updates(operation, k))
        RONDO_TRY(add_edge(w, w->order[p], w->order[position]));
  }
  return RONDO_OK;
}

/* What changes states does nothing in a run that failed, so no part changes any before all that may fail has run. */
static rondo_status follow_checks(walker *w, uint32_t position) {
  for (uint32_t p = 0; p < position; p++)
    if (w->program->operations.items[w->order[p]].row->checks_indices)
      RONDO_TRY(add_edge(w, w->order[p], w->order[position]));
  return RONDO_OK;
}

static rondo_status follow_inputs(walker *w, uint32_t position) {
  const uint32_t number = w->order[position];
  const rondo_operation *operation = &w->program->operations.items[number];
  if (operation->row->updates != 0) RONDO_TRY(follow_checks(w, position));
  RONDO_EACH_INPUT(k, operation) {
    const uint32_t input = operation->inputs[k];
    const rondo_program_value *value = &w->program->values.items[input];
    if (value->kind == RONDO_VALUE_RESULT) RONDO_TRY(add_edge(w, value->operation, number));
    if (value->kind != RONDO_VALUE_STATE) continue;
    if (rondo_operation_updates(operation, k))
      RONDO_TRY(follow_users(w, position, input));
    else if (rondo_places_reads_changed(w->program, w->places, number, input))
      RONDO_TRY(follow_changes(w, position, input));
  }
  return RONDO_OK;
}

static rondo_status find_edges(walker *w) {
  for (uint32_t p = 0; p < w->count; p++) {
    w->first_edge[p] = w->edges.count;
    RONDO_TRY(follow_inputs(w, p));
  }
  w->first_edge[w->count] = w->edges.count;
  return RONDO_OK;
}

/* What is behind an operation is final once the edges behind its own are done. */
static void find_heights(walker *w) {
  for (size_t i = w->edges.count; i-- > 0;) {
    const part_edge *edge = &w->edges.items[i];
    const uint32_t *place = w->places->of_operation;
    const uint32_t height = w->heights[edge->after] + (place[edge->before] != place[edge->after]);
    if (height > w->heights[edge->before]) w->heights[edge->before] = height;
  }
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

static bool is_ready(const walker *w, uint32_t position) {
  for (size_t i = w->first_edge[position]; i < w->first_edge[position + 1]; i++)
    if (w->part_of[w->edges.items[i].before] == RONDO_NO_VALUE) return false;
  return true;
}

/* Of those that are ready, the first of the greatest height; RONDO_NO_VALUE when all have a part. */
static uint32_t find_next(const walker *w) {
  uint32_t found = RONDO_NO_VALUE;
  for (uint32_t p = 0; p < w->count; p++) {
    const uint32_t number = w->order[p];
    if (w->part_of[number] != RONDO_NO_VALUE || !is_ready(w, p)) continue;
    if (found == RONDO_NO_VALUE || w->heights[number] > w->heights[found]) found = number;
  }
  return found;
}

static void make_parts(walker *w, uint32_t *out_count) {
  *out_count = 0;
  for (uint32_t next; (next = find_next(w)) != RONDO_NO_VALUE; (*out_count)++) {
    const uint32_t place = w->places->of_operation[next];
    for (uint32_t p = 0; p < w->count; p++) {
      const uint32_t number = w->order[p];
      const bool is_open = w->part_of[number] == RONDO_NO_VALUE && w->places->of_operation[number] == place;
      if (is_open && is_ready(w, p)) w->part_of[number] = *out_count;
    }
  }
}

static rondo_status walk(walker *w, uint32_t *out_count) {
  const rondo_allocator *allocator = &w->program->allocator;
  const size_t operations = w->places->operations;
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof *w->order, &w->order));
  RONDO_TRY(rondo_allocate_items(allocator, operations, sizeof *w->heights, &w->heights));
  RONDO_TRY(rondo_allocate_items(allocator, operations + 1, sizeof *w->first_edge, &w->first_edge));
  list_order(w);
  RONDO_TRY(find_edges(w));
  find_heights(w);
  make_parts(w, out_count);
  return RONDO_OK;
}

rondo_status rondo_parts_find(const rondo_program *program, const rondo_places *places, uint32_t *of_operation,
                              uint32_t *out_count) {
  const rondo_allocator *allocator = &program->allocator;
  walker w = {.program = program, .places = places, .part_of = of_operation};
  for (size_t i = 0; i < places->operations; i++) of_operation[i] = RONDO_NO_VALUE;
  const rondo_status status = walk(&w, out_count);
  rondo_release(allocator, w.order, places->operations, sizeof *w.order);
  rondo_release(allocator, w.heights, places->operations, sizeof *w.heights);
  rondo_release(allocator, w.first_edge, places->operations + 1, sizeof *w.first_edge);
  rondo_array_free(allocator, &w.edges);
  return status;
}
