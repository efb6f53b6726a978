/* SPDX-License-Identifier: MIT
 * Dividing: which operations form a part, which part has which named value, what crosses between parts, and the
 * programs of the parts.
 */
#include "tensor/divide/division.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tensor/program/operation.h"
#include "tensor/program/program.h"

/* What is known about the program while it is divided. */
typedef struct divider {
  const rondo_program *program;
  rondo_scratch scratch;
  const rondo_placement_list *list;
  rondo_division *division;
  rondo_placements places;
  uint32_t part_count;
  uint32_t *part_of;     /* by operation; RONDO_NO_VALUE: it does not run */
  uint32_t *first_part;  /* by value: the first part that declares it; of results the part that computes it */
  uint32_t *last_change; /* by value: the last part that changes it; RONDO_NO_VALUE: none */
  bool *is_used;         /* by value, while a part is made: whether the part uses it */
  uint32_t *values;      /* by value, while a part is made: its index in the program of the part */
} divider;

static const rondo_program_value *value_at(const divider *d, uint32_t value) {
  return &d->program->values.items[value];
}

static const rondo_operation *operation_at(const divider *d, uint32_t number) {
  return &d->program->operations.items[number];
}

static uint32_t place_of(const divider *d, uint32_t part) { return d->division->parts.items[part].place; }

/* Whether a part has the value without a crossing. */
static bool has_value(const divider *d, uint32_t part, uint32_t value) {
  const rondo_value_kind kind = value_at(d, value)->kind;
  if (kind == RONDO_VALUE_RESULT) return d->part_of[value_at(d, value)->operation] == part;
  return kind != RONDO_VALUE_STATE || d->places.of_value[value] == place_of(d, part);
}

/* Finding parts ---------------------------------------------------------------------------------------------------- */

/* Parts are found by a greedy walk. The next part is on the device of the ready operation with the most changes of
 * device on a path from it, and takes all operations of that device that can run by then. For two devices no other
 * choice gives fewer parts: each part of the path with the most changes is as early as it can be. */

/* `after` runs after `before`. Edges are sorted by `after`, in the order of the walk. */
typedef struct part_edge {
  uint32_t before, after;
} part_edge;

typedef struct walker {
  const rondo_program *program;
  const rondo_placements *places;
  uint32_t *part_of;
  uint32_t *order, count; /* the operations that run: updates last, the others as they were added */
  uint32_t *heights;      /* by operation: the maximum number of changes of device on a path from it */
  RONDO_ARRAY(part_edge) edges;
  size_t *first_edge; /* by position of the order, and the end */
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

static bool reads_value(const rondo_operation *operation, uint32_t value) {
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++)
    if (operation->inputs[k] == value) return true;
  return false;
}

static rondo_status add_edge(walker *w, uint32_t before, uint32_t after) {
  assert(w->places->runs[before] && w->places->runs[after]);
  return rondo_array_push(&w->program->allocator, &w->edges, (&(part_edge){before, after}));
}

/* The operation comes after all that read or changed the state before it. */
static rondo_status follow_users(walker *w, uint32_t position, uint32_t state) {
  for (uint32_t p = 0; p < position; p++)
    if (reads_value(&w->program->operations.items[w->order[p]], state))
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

/* An update does nothing in a run that failed, so it comes after all operations that may fail. */
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
    else if (rondo_placements_reads_changed(w->program, w->places, number, input))
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

/* Walks the edges backwards, so that the height of `after` is final when an edge is visited. */
static void find_heights(walker *w) {
  for (size_t i = w->edges.count; i-- > 0;) {
    const part_edge *edge = &w->edges.items[i];
    const uint32_t *place = w->places->of_operation;
    const uint32_t height = w->heights[edge->after] + (place[edge->before] != place[edge->after]);
    if (height > w->heights[edge->before]) w->heights[edge->before] = height;
  }
}

/* Choosing --------------------------------------------------------------------------------------------------------- */

static bool is_ready(const walker *w, uint32_t position) {
  for (size_t i = w->first_edge[position]; i < w->first_edge[position + 1]; i++)
    if (w->part_of[w->edges.items[i].before] == RONDO_NO_VALUE) return false;
  return true;
}

/* The ready operation of the greatest height, the first of equals; RONDO_NO_VALUE when all have a part. */
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

rondo_status rondo_parts_find(const rondo_program *program, const rondo_placements *places, rondo_scratch *scratch,
                              uint32_t *of_operation, uint32_t *out_count) {
  const size_t operations = places->operations;
  walker w = {.program = program, .places = places, .part_of = of_operation};
  for (size_t i = 0; i < operations; i++) of_operation[i] = RONDO_NO_VALUE;
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *w.order, &w.order));
  RONDO_TRY(rondo_scratch_take(scratch, operations, sizeof *w.heights, &w.heights));
  RONDO_TRY(rondo_scratch_take(scratch, operations + 1, sizeof *w.first_edge, &w.first_edge));
  list_order(&w);
  const rondo_status status = find_edges(&w);
  if (status == RONDO_OK) {
    find_heights(&w);
    make_parts(&w, out_count);
  }
  rondo_array_free(&program->allocator, &w.edges);
  return status;
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

/* If nothing runs (all outputs show inputs and states), there is one part without operations. */
static rondo_status list_parts(divider *d) {
  RONDO_TRY(rondo_parts_find(d->program, &d->places, &d->scratch, d->part_of, &d->part_count));
  if (d->part_count == 0) d->part_count = 1;
  for (uint32_t p = 0; p < d->part_count; p++)
    RONDO_TRY(rondo_array_push(d->scratch.allocator, &d->division->parts, (&(rondo_division_part){.place = 0})));
  for (uint32_t i = 0; i < d->places.operations; i++) {
    if (d->part_of[i] == RONDO_NO_VALUE) continue;
    rondo_division_part *part = &d->division->parts.items[d->part_of[i]];
    part->place = d->places.of_operation[i];
    part->operators++;
  }
  return RONDO_OK;
}

static void note_use(divider *d, uint32_t part, const rondo_operation *operation, uint32_t input) {
  const uint32_t value = operation->inputs[input];
  if (value == RONDO_NO_VALUE || !has_value(d, part, value)) return;
  if (d->first_part[value] == RONDO_NO_VALUE || part < d->first_part[value]) d->first_part[value] = part;
  if (!rondo_operation_updates(operation, input)) return;
  if (d->last_change[value] == RONDO_NO_VALUE || part > d->last_change[value]) d->last_change[value] = part;
}

/* The first part at the place; RONDO_NO_VALUE when there is none. */
static uint32_t first_at(const divider *d, uint32_t place) {
  for (uint32_t p = 0; p < d->part_count; p++)
    if (place_of(d, p) == place) return p;
  return RONDO_NO_VALUE;
}

/* A state that no operation at its place reads. */
static rondo_status place_unread_state(divider *d, uint32_t value) {
  uint32_t *place = &d->places.of_value[value];
  if (*place == RONDO_NO_VALUE) *place = place_of(d, 0);
  d->first_part[value] = first_at(d, *place);
  if (d->first_part[value] != RONDO_NO_VALUE) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "the state '%s' of %s was placed on %s, where no operator runs: place an operator that reads it "
                    "there too, or do not place the state",
                    value_at(d, value)->name, d->program->label, d->list->names[*place]);
}

static rondo_status place_values(divider *d) {
  for (uint32_t i = 0; i < d->places.values; i++) d->first_part[i] = d->last_change[i] = RONDO_NO_VALUE;
  for (uint32_t i = 0; i < d->places.operations; i++)
    for (uint32_t k = 0; d->part_of[i] != RONDO_NO_VALUE && k < RONDO_MAX_OPERANDS; k++)
      note_use(d, d->part_of[i], operation_at(d, i), k);
  for (uint32_t i = 0; i < d->places.values; i++) {
    const rondo_value_kind kind = value_at(d, i)->kind;
    if (kind == RONDO_VALUE_RESULT) d->first_part[i] = d->part_of[value_at(d, i)->operation];
    if (kind == RONDO_VALUE_RESULT || d->first_part[i] != RONDO_NO_VALUE) continue;
    if (kind == RONDO_VALUE_STATE) RONDO_TRY(place_unread_state(d, i));
    if (kind != RONDO_VALUE_STATE) d->first_part[i] = 0;
  }
  return RONDO_OK;
}

/* What crosses ----------------------------------------------------------------------------------------------------- */

static bool is_name_taken(const divider *d, const char *name) {
  for (size_t i = 0; i < d->program->values.count; i++)
    if (d->program->values.items[i].name != NULL && strcmp(d->program->values.items[i].name, name) == 0) return true;
  for (size_t i = 0; i < d->program->outputs.count; i++)
    if (strcmp(d->program->outputs.items[i].name, name) == 0) return true;
  return false;
}

static void name_crossing(const divider *d, rondo_crossing *crossing) {
  const char *when = crossing->at_beginning ? "old value" : "value";
  (void)snprintf(crossing->name, sizeof crossing->name, "%s %u", when, crossing->value);
  for (unsigned i = 1; is_name_taken(d, crossing->name); i++)
    (void)snprintf(crossing->name, sizeof crossing->name, "%s %u.%u", when, crossing->value, i);
}

/* The crossing by which operation `number` gets the value; NULL: its part has it, or it is not listed yet. */
static rondo_crossing *find_crossing(const divider *d, uint32_t number, uint32_t value) {
  const uint32_t part = d->part_of[number];
  const bool is_state = rondo_value_is_state(d->program, value);
  const bool at_beginning = is_state && !rondo_placements_reads_changed(d->program, &d->places, number, value);
  for (size_t i = 0; i < d->division->crossings.count; i++) {
    rondo_crossing *crossing = &d->division->crossings.items[i];
    if (crossing->value == value && crossing->to == part && crossing->at_beginning == at_beginning) return crossing;
  }
  return NULL;
}

static rondo_status add_crossing(divider *d, uint32_t number, uint32_t value) {
  const bool is_state = rondo_value_is_state(d->program, value);
  const bool is_changed = is_state && rondo_placements_reads_changed(d->program, &d->places, number, value);
  rondo_crossing crossing = {.value = value,
                             .from = is_changed ? d->last_change[value] : d->first_part[value],
                             .to = d->part_of[number],
                             .at_beginning = is_state && !is_changed};
  name_crossing(d, &crossing);
  return rondo_array_push(d->scratch.allocator, &d->division->crossings, &crossing);
}

/* `number` would also see a change of the state after the one that it must see. */
static rondo_status refuse_later_change(const divider *d, uint32_t number, uint32_t state) {
  for (uint32_t i = number + 1; i < d->places.operations; i++) {
    const rondo_operation *operation = operation_at(d, i);
    for (uint32_t k = 0; d->places.runs[i] && k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] != state || !rondo_operation_updates(operation, k)) continue;
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                        "%s (operator %u of %s) on %s reads the state '%s' of %s between two changes of it "
                        "in one run: place it on the device of the state",
                        operation_at(d, number)->row->name, number, d->program->label,
                        d->list->names[d->places.of_operation[number]], value_at(d, state)->name,
                        d->list->names[d->places.of_value[state]]);
    }
  }
  return RONDO_OK;
}

static rondo_status list_crossings(divider *d) {
  for (uint32_t i = 0; i < d->places.operations; i++) {
    if (d->part_of[i] == RONDO_NO_VALUE) continue;
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      const uint32_t value = operation_at(d, i)->inputs[k];
      if (value == RONDO_NO_VALUE || has_value(d, d->part_of[i], value)) continue;
      if (find_crossing(d, i, value) != NULL) continue;
      if (rondo_value_is_state(d->program, value) && rondo_placements_reads_changed(d->program, &d->places, i, value))
        RONDO_TRY(refuse_later_change(d, i, value));
      RONDO_TRY(add_crossing(d, i, value));
    }
  }
  return RONDO_OK;
}

/* The parts' programs ---------------------------------------------------------------------------------------------- */

static rondo_status create_program(divider *d, uint32_t part) {
  char name[256];
  (void)snprintf(name, sizeof name, "%.160s%spart %u of %u on %s", d->program->name,
                 d->program->name[0] == '\0' ? "" : ", ", part + 1, d->part_count, d->list->names[place_of(d, part)]);
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT,
                                         .name = d->part_count == 1 ? d->program->name : name,
                                         .allocator = d->scratch.allocator};
  return rondo_program_create(&options, &d->division->parts.items[part].program);
}

static void mark_used(divider *d, uint32_t part) {
  for (uint32_t i = 0; i < d->places.values; i++) {
    d->is_used[i] = d->first_part[i] == part;
    d->values[i] = RONDO_NO_VALUE;
  }
  for (uint32_t i = 0; i < d->places.operations; i++) {
    for (uint32_t k = 0; d->part_of[i] == part && k < RONDO_MAX_OPERANDS; k++) {
      const uint32_t value = operation_at(d, i)->inputs[k];
      if (value != RONDO_NO_VALUE && has_value(d, part, value)) d->is_used[value] = true;
    }
  }
}

static rondo_status declare_value(divider *d, rondo_program *program, uint32_t value) {
  const rondo_program_value *of = value_at(d, value);
  if (of->elements != NULL) return rondo_program_constant_tensor(program, &of->shape, of->elements, &d->values[value]);
  if (of->kind == RONDO_VALUE_CONSTANT) return rondo_program_constant(program, of->initial, &d->values[value]);
  RONDO_TRY(rondo_program_declare(program, of->kind, of->name, &of->shape, of->initial, &d->values[value]));
  rondo_program_value *made = &program->values.items[d->values[value]];
  made->trained = of->trained;
  made->group = of->group;
  made->frozen = of->frozen;
  made->is_assigned = of->is_assigned;
  made->is_in_file = of->is_in_file;
  made->file_offset = of->file_offset;
  return RONDO_OK;
}

/* Declares values in the program's order, then the crossings to the part. */
static rondo_status declare_values(divider *d, uint32_t part, rondo_program *program) {
  for (uint32_t i = 0; i < d->places.values; i++)
    if (d->is_used[i] && value_at(d, i)->kind != RONDO_VALUE_RESULT) RONDO_TRY(declare_value(d, program, i));
  for (size_t i = 0; i < d->division->crossings.count; i++) {
    rondo_crossing *crossing = &d->division->crossings.items[i];
    if (crossing->to != part) continue;
    RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_INPUT, crossing->name,
                                    rondo_program_shape(d->program, crossing->value), 0, &crossing->input));
  }
  return RONDO_OK;
}

static uint32_t input_of(const divider *d, uint32_t number, uint32_t value) {
  if (value == RONDO_NO_VALUE) return value;
  return has_value(d, d->part_of[number], value) ? d->values[value] : find_crossing(d, number, value)->input;
}

static rondo_status copy_operation(divider *d, rondo_program *program, uint32_t number) {
  const rondo_operation *operation = operation_at(d, number);
  uint32_t inputs[RONDO_MAX_OPERANDS], results[RONDO_MAX_RESULTS];
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) inputs[k] = input_of(d, number, operation->inputs[k]);
  RONDO_TRY(rondo_program_add(program, operation->row, inputs, RONDO_MAX_OPERANDS, &operation->attributes, results));
  program->operations.items[program->operations.count - 1].number = operation->number;
  for (uint32_t r = 0; r < operation->row->result_count; r++) d->values[operation->results[r]] = results[r];
  return RONDO_OK;
}

static rondo_status output_crossings(const divider *d, uint32_t part, rondo_program *program) {
  for (size_t i = 0; i < d->division->crossings.count; i++) {
    const rondo_crossing *crossing = &d->division->crossings.items[i];
    bool is_there = crossing->from != part || crossing->at_beginning;
    for (size_t k = 0; k < i && !is_there; k++)
      is_there = strcmp(d->division->crossings.items[k].name, crossing->name) == 0;
    if (!is_there)
      RONDO_TRY(rondo_program_output(program, crossing->name, rondo_program_tag(program, d->values[crossing->value])));
  }
  return RONDO_OK;
}

/* The part that shows an output: a state is shown after its last change. */
static uint32_t output_part(const divider *d, uint32_t value) {
  return d->last_change[value] != RONDO_NO_VALUE ? d->last_change[value] : d->first_part[value];
}

static rondo_status add_outputs(const divider *d, uint32_t part, rondo_program *program) {
  RONDO_TRY(output_crossings(d, part, program));
  for (size_t i = 0; i < d->program->outputs.count; i++) {
    const rondo_named_output *output = &d->program->outputs.items[i];
    if (output_part(d, output->value) == part)
      RONDO_TRY(rondo_program_output(program, output->name, rondo_program_tag(program, d->values[output->value])));
  }
  return RONDO_OK;
}

static rondo_status make_part(divider *d, uint32_t part) {
  RONDO_TRY(create_program(d, part));
  rondo_program *program = d->division->parts.items[part].program;
  program->optimizer = d->program->optimizer;
  program->has_gradients = d->program->has_gradients;
  mark_used(d, part);
  RONDO_TRY(declare_values(d, part, program));
  for (uint32_t i = 0; i < d->places.operations; i++)
    if (d->part_of[i] == part) RONDO_TRY(copy_operation(d, program, i));
  return add_outputs(d, part, program);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status list_values(divider *d) {
  static const char kinds[] = {'s', 'c', 'i'};
  for (size_t k = 0; k < sizeof kinds; k++) {
    for (uint32_t i = 0; i < d->places.values; i++) {
      const rondo_division_value value = {.kind = kinds[k], .name = value_at(d, i)->name, .part = d->first_part[i]};
      if (rondo_value_letter(value_at(d, i)->kind) == kinds[k])
        RONDO_TRY(rondo_array_push(d->scratch.allocator, &d->division->values, &value));
    }
  }
  for (size_t i = 0; i < d->program->outputs.count; i++) {
    const rondo_named_output *output = &d->program->outputs.items[i];
    const rondo_division_value value = {.kind = 'o', .name = output->name, .part = output_part(d, output->value)};
    RONDO_TRY(rondo_array_push(d->scratch.allocator, &d->division->values, &value));
  }
  return RONDO_OK;
}

static rondo_status divide(divider *d) {
  const size_t values = d->places.values;
  RONDO_TRY(rondo_scratch_take(&d->scratch, d->places.operations, sizeof *d->part_of, &d->part_of));
  RONDO_TRY(rondo_scratch_take(&d->scratch, values, sizeof *d->first_part, &d->first_part));
  RONDO_TRY(rondo_scratch_take(&d->scratch, values, sizeof *d->last_change, &d->last_change));
  RONDO_TRY(rondo_scratch_take(&d->scratch, values, sizeof *d->is_used, &d->is_used));
  RONDO_TRY(rondo_scratch_take(&d->scratch, values, sizeof *d->values, &d->values));
  RONDO_TRY(list_parts(d));
  RONDO_TRY(place_values(d));
  RONDO_TRY(list_crossings(d));
  for (uint32_t p = 0; p < d->part_count; p++) RONDO_TRY(make_part(d, p));
  return list_values(d);
}

rondo_status rondo_division_make(const rondo_program *program, const rondo_placement_list *list, rondo_division *out) {
  *out = (rondo_division){.program = program};
  divider d = {.program = program, .scratch = {.allocator = &program->allocator}, .list = list, .division = out};
  rondo_status status = rondo_placements_find(program, list, &d.scratch, &d.places);
  if (status == RONDO_OK) status = divide(&d);
  rondo_scratch_free(&d.scratch);
  return status;
}

void rondo_division_free(rondo_division *division) {
  if (division->program == NULL) return;
  const rondo_allocator *allocator = &division->program->allocator;
  for (size_t i = 0; i < division->parts.count; i++) rondo_program_destroy(division->parts.items[i].program);
  rondo_array_free(allocator, &division->parts);
  rondo_array_free(allocator, &division->crossings);
  rondo_array_free(allocator, &division->values);
  *division = (rondo_division){0};
}
