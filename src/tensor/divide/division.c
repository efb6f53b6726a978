/* SPDX-License-Identifier: MIT
 * Dividing: who has which named value, what crosses, and the parts' programs.
 */
#include "tensor/divide/division.h"

#include <stdio.h>
#include <string.h>

#include "tensor/divide/division_parts.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"

/* What is known of the program while it is divided. */
typedef struct divider {
  const rondo_program *program;
  const rondo_allocator *allocator;
  const rondo_place_list *list;
  rondo_division *division;
  rondo_places places;
  uint32_t part_count;
  uint32_t *part_of;     /* one an operation */
  uint32_t *first_part;  /* one a value: the first part that declares it; of results the one that computes it */
  uint32_t *last_change; /* one a value: the last part that changes it; RONDO_NO_VALUE: none */
  bool *is_used;         /* one a value: while a part is made, whether it reads it */
  uint32_t *values;      /* one a value: while a part is made, which value of it that is */
} divider;

static const rondo_program_value *value_at(const divider *d, uint32_t value) {
  return &d->program->values.items[value];
}

static const rondo_operation *operation_at(const divider *d, uint32_t number) {
  return &d->program->operations.items[number];
}

static uint32_t place_of(const divider *d, uint32_t part) { return d->division->parts.items[part].place; }

/* Whether a part has the value without anybody handing it over. */
static bool has_value(const divider *d, uint32_t part, uint32_t value) {
  const rondo_value_kind kind = value_at(d, value)->kind;
  if (kind == RONDO_VALUE_RESULT) return d->part_of[value_at(d, value)->operation] == part;
  return kind != RONDO_VALUE_STATE || d->places.of_value[value] == place_of(d, part);
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

/* Where nothing runs (all outputs show inputs and states), there is one part without operations. */
static rondo_status list_parts(divider *d) {
  RONDO_TRY(rondo_parts_find(d->program, &d->places, d->part_of, &d->part_count));
  if (d->part_count == 0) d->part_count = 1;
  for (uint32_t p = 0; p < d->part_count; p++)
    RONDO_TRY(rondo_array_push(d->allocator, &d->division->parts, (&(rondo_division_part){.place = 0})));
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

/* A state that nothing reads where it lies. */
static rondo_status house(divider *d, uint32_t value) {
  uint32_t *place = &d->places.of_value[value];
  if (*place == RONDO_NO_VALUE) *place = place_of(d, 0);
  d->first_part[value] = first_at(d, *place);
  if (d->first_part[value] != RONDO_NO_VALUE) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "the state '%s' of %s was placed on %s, where no operator runs: place one that reads it "
                    "there too, or leave the state where it is read",
                    value_at(d, value)->name, d->program->label, d->list->names[*place]);
}

static rondo_status house_values(divider *d) {
  for (uint32_t i = 0; i < d->places.values; i++) d->first_part[i] = d->last_change[i] = RONDO_NO_VALUE;
  for (uint32_t i = 0; i < d->places.operations; i++)
    for (uint32_t k = 0; d->part_of[i] != RONDO_NO_VALUE && k < RONDO_MAX_OPERANDS; k++)
      note_use(d, d->part_of[i], operation_at(d, i), k);
  for (uint32_t i = 0; i < d->places.values; i++) {
    const rondo_value_kind kind = value_at(d, i)->kind;
    if (kind == RONDO_VALUE_RESULT) d->first_part[i] = d->part_of[value_at(d, i)->operation];
    if (kind == RONDO_VALUE_RESULT || d->first_part[i] != RONDO_NO_VALUE) continue;
    if (kind == RONDO_VALUE_STATE) RONDO_TRY(house(d, i));
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

/* The crossing by which an operation of the part gets the value; NULL: it has it, or it is not listed yet. */
static rondo_crossing *find_crossing(const divider *d, uint32_t number, uint32_t value) {
  const uint32_t part = d->part_of[number];
  const bool is_state = rondo_value_is_state(d->program, value);
  const bool at_beginning = is_state && !rondo_places_reads_changed(d->program, &d->places, number, value);
  for (size_t i = 0; i < d->division->crossings.count; i++) {
    rondo_crossing *crossing = &d->division->crossings.items[i];
    if (crossing->value == value && crossing->to == part && crossing->at_beginning == at_beginning) return crossing;
  }
  return NULL;
}

static rondo_status add_crossing(divider *d, uint32_t number, uint32_t value) {
  const bool is_state = rondo_value_is_state(d->program, value);
  const bool is_changed = is_state && rondo_places_reads_changed(d->program, &d->places, number, value);
  rondo_crossing crossing = {.value = value,
                             .from = is_changed ? d->last_change[value] : d->first_part[value],
                             .to = d->part_of[number],
                             .at_beginning = is_state && !is_changed};
  name_crossing(d, &crossing);
  return rondo_array_push(d->allocator, &d->division->crossings, &crossing);
}

/* A change of the state behind the one that `number` is to see would be seen too. */
static rondo_status refuse_later_change(const divider *d, uint32_t number, uint32_t state) {
  for (uint32_t i = number + 1; i < d->places.operations; i++) {
    const rondo_operation *operation = operation_at(d, i);
    for (uint32_t k = 0; d->places.runs[i] && k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] != state || !rondo_operation_updates(operation, k)) continue;
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                        "%s (operator %u of %s) on %s reads the state '%s' of %s between two changes of it "
                        "in one run: place it where the state lies",
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
      if (rondo_value_is_state(d->program, value) && rondo_places_reads_changed(d->program, &d->places, i, value))
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
  const rondo_program_options options = {
      RONDO_PROGRAM_OPTIONS_INIT, .name = d->part_count == 1 ? d->program->name : name, .allocator = d->allocator};
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
  if (of->kind == RONDO_VALUE_CONSTANT) return rondo_program_constant(program, of->initial, &d->values[value]);
  RONDO_TRY(rondo_program_declare(program, of->kind, of->name, &of->shape, of->initial, &d->values[value]));
  program->values.items[d->values[value]].trained = of->trained;
  program->values.items[d->values[value]].frozen = of->frozen;
  return RONDO_OK;
}

/* In the program's order, which is what their numbers go by; then what comes from elsewhere. */
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

/* A state is shown as it is behind its last change. */
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
  program->has_optimizer = d->program->has_optimizer;
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
        RONDO_TRY(rondo_array_push(d->allocator, &d->division->values, &value));
    }
  }
  for (size_t i = 0; i < d->program->outputs.count; i++) {
    const rondo_named_output *output = &d->program->outputs.items[i];
    const rondo_division_value value = {.kind = 'o', .name = output->name, .part = output_part(d, output->value)};
    RONDO_TRY(rondo_array_push(d->allocator, &d->division->values, &value));
  }
  return RONDO_OK;
}

static rondo_status divide(divider *d) {
  const size_t values = d->places.values;
  RONDO_TRY(rondo_allocate_items(d->allocator, d->places.operations, sizeof *d->part_of, &d->part_of));
  RONDO_TRY(rondo_allocate_items(d->allocator, values, sizeof *d->first_part, &d->first_part));
  RONDO_TRY(rondo_allocate_items(d->allocator, values, sizeof *d->last_change, &d->last_change));
  RONDO_TRY(rondo_allocate_items(d->allocator, values, sizeof *d->is_used, &d->is_used));
  RONDO_TRY(rondo_allocate_items(d->allocator, values, sizeof *d->values, &d->values));
  RONDO_TRY(list_parts(d));
  RONDO_TRY(house_values(d));
  RONDO_TRY(list_crossings(d));
  for (uint32_t p = 0; p < d->part_count; p++) RONDO_TRY(make_part(d, p));
  return list_values(d);
}

rondo_status rondo_division_make(const rondo_program *program, const rondo_place_list *list, rondo_division *out) {
  *out = (rondo_division){.program = program};
  divider d = {.program = program, .allocator = &program->allocator, .list = list, .division = out};
  rondo_status status = rondo_places_find(program, list, &d.places);
  if (status == RONDO_OK) status = divide(&d);
  rondo_release(d.allocator, d.part_of, d.places.operations, sizeof *d.part_of);
  rondo_release(d.allocator, d.first_part, d.places.values, sizeof *d.first_part);
  rondo_release(d.allocator, d.last_change, d.places.values, sizeof *d.last_change);
  rondo_release(d.allocator, d.is_used, d.places.values, sizeof *d.is_used);
  rondo_release(d.allocator, d.values, d.places.values, sizeof *d.values);
  rondo_places_free(program, &d.places);
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
